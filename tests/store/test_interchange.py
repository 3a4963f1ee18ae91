import json
import random
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.classifier.training import train_classifier
from nbspam.counts.counting import count_items
from nbspam.errors import InputError, NbspamError
from nbspam.settings import MANY, PRESETS, TokenSettings
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from nbspam.store.open import read_text_model as load_file
from nbspam.store.open import save_classifier
from nbspam.store.text import model_lines, model_of_lines
from nbspam.tokens.definition import Token, reference_key
from support import HAM, SPAM, examples

WORDS = st.sampled_from(["pills", "lunch", "größe", "漢字", "v1agra", "a", "http://x.example/y"])
TEXTS = st.lists(WORDS, max_size=8).map(" ".join)
CORPORA = st.lists(st.tuples(TEXTS, st.sampled_from("abc"), TEXTS), min_size=3, max_size=8)


def lines_of(path):
    return list(model_lines(StoredModel(str(path)).whole()))


def test_the_text_of_a_model_that_learned_on_and_forgot_is_that_model(
    nbspam, trained, tmp_path, monkeypatch
):
    # The journal is part of the model: what is dumped is what its file would hold.
    assert nbspam("update", "--ham", "-", stdin=SPAM)[0] == 0
    once = lines_of(trained)
    save_classifier(str(trained), model_of_lines(once, "x"))
    assert lines_of(trained) == once
    assert nbspam("unlearn", "-", stdin=SPAM)[1] == "un-learned 1\n"
    monkeypatch.setattr("nbspam.cli.options.today", lambda: 30_000)
    assert nbspam("prune", "--min-df", "2", "--half-life", "5000")[0] == 0
    header = nbspam("export")[1].splitlines()[0]
    assert header.endswith('"decayed": "2052-02-20", "others_had": 1}')
    copy = tmp_path / "copy.nbspam"
    save_classifier(str(copy), model_of_lines(lines_of(trained), "x"))
    assert copy.read_bytes() == trained.read_bytes()


@examples(25)
@given(corpus=CORPORA, chosen=st.sampled_from([*PRESETS.values(), *MANY.values()]))
def test_the_round_trip_is_the_identity(tmp_path_factory, corpus, chosen):
    items = [
        Item(str(n), label, f"Subject: {subject}\n\n{body} {n}\n".encode())
        for n, (subject, label, body) in enumerate(corpus)
    ]
    items += [Item("x", "a", HAM), Item("y", "b", SPAM)]
    classifier = train_classifier(count_items(items, chosen), chosen, day=20_000)

    lines = list(model_lines(classifier))
    scratch = tmp_path_factory.mktemp("models")
    names = [str(scratch / name) for name in "ab"]
    save_classifier(names[0], classifier)
    save_classifier(names[1], model_of_lines(lines, "x"))
    assert (scratch / "a").read_bytes() == (scratch / "b").read_bytes()


def test_lines_can_be_read(nbspam, trained):
    header, *rows = map(json.loads, lines_of(trained))
    tokens = {row["token"]: row for row in rows if "token" in row}
    messages = [row for row in rows if "message" in row]

    assert header["classes"] == {"ham": 2, "spam": 2}
    assert tokens["subject:pills"]["count"] == {"spam": 2}
    assert tokens["subject:pills"]["group"] == "subject"
    assert tokens["subject:pills"]["documents"] == 2
    assert [row["class"] for row in messages].count("ham") == 2
    assert all(len(row["message"]) == 16 for row in messages)
    named = {list(tokens)[column] for column in messages[0]["tokens"]}
    assert named & {"subject:pills", "subject:lunch"}


def test_counts_can_be_edited(nbspam, trained, tmp_path):
    lines = lines_of(trained)
    more = b'{"token": "viagra", "group": "text", "count": {"spam": 2}, "documents": 2, '
    (tmp_path / "edited").write_bytes(b"".join([*lines[:1], more, b'"seen": "2026-01-02"}\n']))

    classifier = load_file(str(tmp_path / "edited"))
    key = reference_key(Token("body", b"viagra"))
    (column,) = classifier.table.vocabulary.columns(np.array([key], np.uint64)).tolist()
    assert classifier.table.feature_count[column].tolist() == [0, 2]


SETTINGS = PRESETS["mail"].to_dict()
HEADER = {
    "nbspam": "model",
    "format": 1,
    "settings": SETTINGS,
    "classes": {"ham": 1, "spam": 1},
    "sample_bits": 0,
    "decayed": None,
}
TOKEN = {"token": "a", "group": "text", "count": {"ham": 1}, "documents": 1, "seen": "2026-11-21"}
MESSAGE = {"message": "0f", "class": "ham", "day": "2026-11-21", "tokens": [0]}


def with_settings(**changes):
    return {**HEADER, "settings": {**SETTINGS, **changes}}


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ([], "x: empty"),
        ([b"{"], "x: line 1: not JSON"),
        ([b"\xff"], "x: line 1: not JSON"),
        ([b"[" * 100_000], "x: line 1: not JSON"),
        ([[]], "line 1: not the first line of a model"),
        ([{**HEADER, "format": 2}], "format 2, but this program reads 1"),
        ([{**HEADER, "classes": {"b": 1, "a": 1}}], "classes are not sorted"),
        ([{**HEADER, "classes": {"a": 1}}], "only one class"),
        ([{**HEADER, "classes": {"a": 0, "b": 1}}], "a class without messages"),
        ([{**HEADER, "classes": {"a": -1, "b": 1}}], "-1 is not a number from 0 up"),
        ([{**HEADER, "classes": {"a": float("nan"), "b": 1}}], "nan is not a number"),
        ([{**HEADER, "settings": {}}], "no 'tokens'"),
        ([with_settings(model="x")], "settings: model: 'x'"),
        ([with_settings(min_df="x")], "settings: min_df: 'x'"),
        ([with_settings(tokens={**SETTINGS["tokens"], "max_length": 10**12})], "max_length: "),
        ([HEADER, 7], "line 2: "),
        ([HEADER, {"token": 7}], "line 2: 7 is not text"),
        ([HEADER, {"token": "a" * 70_000}], "line 2: a token of more than 65,536 bytes"),
        ([HEADER, {**TOKEN, "group": "x"}], "line 2: group: 'x' is none of text, route"),
        ([HEADER, {**TOKEN, "count": {"work": 1}}], "'work', which the first line does not have"),
        ([HEADER, {**TOKEN, "count": 1}], "line 2: "),
        ([HEADER, {**TOKEN, "documents": 1.5}], "1.5 is not a whole number"),
        ([HEADER, {**TOKEN, "seen": "yesterday"}], "line 2: Invalid isoformat"),
        ([HEADER, {**TOKEN, "seen": "1066-10-14"}], "is not a whole number from 0"),
        ([HEADER, {**TOKEN, "key": "ff" * 9}], "is not a whole number from 0"),
        ([HEADER, TOKEN, TOKEN], "x: a token is there twice"),
        ([HEADER, TOKEN, {}], "line 3: no 'message'"),
        ([HEADER, TOKEN, {**MESSAGE, "class": "work"}], "line 3: a class 'work' that"),
        ([HEADER, TOKEN, MESSAGE, MESSAGE], "x: a message is there twice"),
        ([HEADER, TOKEN, {**MESSAGE, "tokens": [1]}], "x: index 1 is out of bounds"),
        ([HEADER, TOKEN, {**MESSAGE, "tokens": [0, 0]}], "a token of a message is there"),
        ([with_settings(weighting="counts"), TOKEN, {**MESSAGE, "times": []}], "numbers of times"),
        ([HEADER, TOKEN, {**MESSAGE, "times": [0]}], "occurs in a message 0 times"),
    ],
)
def test_lines_that_are_no_model_are_refused(lines, complaint):
    encoded = [x if isinstance(x, bytes) else json.dumps(x).encode() for x in lines]
    with pytest.raises(NbspamError) as caught:
        model_of_lines(encoded, "x")

    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


BLENDED = (
    {**HEADER, "settings": MANY["mail"].to_dict(), "classes": {"ham": 1, "spam": 1, "x": 2}},
    {**TOKEN, "count": {"ham": 0.5, "x": 1}},
    {**MESSAGE, "times": [1]},
)


@pytest.mark.parametrize("values", [(HEADER, TOKEN, MESSAGE), BLENDED])
@pytest.mark.parametrize("seed", range(40))
def test_damaged_lines_never_raise_anything_else(seed, values):
    rng = random.Random(seed)
    lines = [json.dumps(line).encode() for line in values]
    for _ in range(50):
        damaged = [bytearray(line) for line in lines]
        for _ in range(rng.randint(1, 4)):
            line = rng.choice(damaged)
            line[rng.randrange(len(line))] = rng.choice(b'019ae{}[]",:-\\ \xff')
        with suppress(NbspamError):
            model_of_lines([bytes(line) for line in damaged], "x")


def test_export_and_import_are_commands(nbspam, trained, tmp_path):
    status, out, err = nbspam("export")
    assert (status, err) == (0, "")
    assert nbspam("export", "-m", trained)[1] == out

    copy = tmp_path / "copy.nbspam"
    status, said, _ = nbspam("import", "-", "-m", copy, stdin=out.encode())
    assert (status, said.startswith("imported ")) == (0, True)
    assert copy.read_bytes() == trained.read_bytes()

    (tmp_path / "d.jsonl").write_text(out)
    _, said, _ = nbspam("import", "--json", tmp_path / "d.jsonl", "-m", copy)
    assert json.loads(said)["read"] == {"ham": 2, "spam": 2}
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(InputError, match="give a file that nbspam export wrote"):
            load_file(str(path))


def test_a_key_that_does_not_follow_from_its_text_is_spelt_out():
    settings = replace(PRESETS["mail"], tokens=TokenSettings(punctuation=":"))
    items = [Item("a", "a", b"Subject: x\n\nsubject:lunch"), Item("b", "b", SPAM)]
    lines = list(model_lines(train_classifier(count_items(items, settings), settings)))
    key = reference_key(Token("body", b"subject:lunch"))
    assert any(f'"key": "{key:016x}"'.encode() in line for line in lines)

    assert key in model_of_lines(lines, "x").table.vocabulary.keys.tolist()
