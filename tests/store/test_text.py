"""A model as text: it comes back, people can edit it, and word lists of bogofilter are read."""

import gzip
import json
import random
import shutil
import subprocess
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.decision import Cutoffs
from nbspam.errors import InputError, NbspamError, UsageError
from nbspam.settings import MANY, PRESETS, TokenSettings
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from nbspam.store.open import keep_cutoffs, load_classifier, save_classifier
from nbspam.store.open import read_text_model as load_file
from nbspam.store.text import (
    bogofilter_lines,
    model_lines,
    model_of_bogofilter_lines,
    model_of_lines,
)
from nbspam.tokens.definition import Token, reference_key
from stored import bytes_of, train_on
from stored import trained as trained_on
from support import HAM, SPAM, complains, examples, memory_of, needs, words_of

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
    monkeypatch.setattr("nbspam.cli.learning.today", lambda: 30_000)
    assert nbspam("prune", "--min-df", "2", "--half-life", "5000")[0] == 0
    keep_cutoffs(str(trained), Cutoffs(0.9, 0.1, 2.0, 0.25))
    header = nbspam("export")[1].splitlines()[0]
    assert '"decayed": "2052-02-20", "others_had": 1, "cutoffs": {"spam": 0.9, ' in header
    again = model_of_lines(lines_of(trained), "x")
    assert bytes_of(again, tmp_path / "copy") == trained.read_bytes()


@examples(25)
@given(corpus=CORPORA, chosen=st.sampled_from([*PRESETS.values(), *MANY.values()]))
def test_the_round_trip_is_the_identity(tmp_path_factory, corpus, chosen):
    items = [
        Item(str(n), label, f"Subject: {subject}\n\n{body} {n}\n".encode())
        for n, (subject, label, body) in enumerate(corpus)
    ]
    items += [Item("x", "a", HAM), Item("y", "b", SPAM)]
    path = tmp_path_factory.mktemp("models") / "m"
    expected = train_on(items, path, chosen)
    lines = list(model_lines(load_classifier(str(path))))
    assert bytes_of(model_of_lines(lines, "x"), path) == expected


def test_lines_can_be_read_and_counts_edited(trained, tmp_path):
    lines = lines_of(trained)
    assert any(b'"count": {"spam": 2}' in line for line in lines)  # and not 2.0
    header, *rows = map(json.loads, lines)
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

    more = b'{"token": "viagra", "group": "text", "count": {"spam": 2}, "documents": 2, '
    (tmp_path / "edited").write_bytes(
        b"".join([lines[0], more, b'"seen": "2026-01-02"}\n', lines[-1]])
    )

    classifier = load_file(str(tmp_path / "edited"))
    key = reference_key(Token("body", b"viagra"))
    (column,) = classifier.table.vocabulary.columns(np.array([key], np.uint64)).tolist()
    assert classifier.table.feature_count[column].tolist() == [0, 2]


def test_a_class_of_odd_bytes_is_in_lines_of_readable_utf8():
    odd = "caf\u00e9\udcff\u202e"
    lines = list(model_lines(trained_on([Item("a", odd, HAM), Item("b", "a", SPAM)])))
    assert all(line[:-1].decode().isprintable() for line in lines)
    assert model_of_lines(lines, "x").classes == ("a", odd)


SETTINGS = PRESETS["mail"].to_dict()
HEADER = {"nbspam": "model", "format": 1, "settings": SETTINGS, "classes": {"ham": 1, "spam": 1}}
HEADER |= {"sample_bits": 0, "decayed": None}
CUTOFFS = {"spam": 0.9, "ham": 0.1, "fp_cost": 2.0, "unsure_cost": None}
TOKEN = {"token": "a", "group": "text", "count": {"ham": 1}, "documents": 1, "seen": "2026-11-21"}
MESSAGE = {"message": "0f", "class": "ham", "day": "2026-11-21", "tokens": [0]}
END = {"nbspam": "end"}


def with_settings(**changes):
    return {**HEADER, "settings": {**SETTINGS, **changes}}


def test_lines_that_are_no_model_are_refused():
    for lines, complaint in (
        ([], "x: empty"),
        ([b"{"], "x: line 1: not an object in JSON"),
        ([b"\xff"], "x: line 1: not an object in JSON"),
        ([b"[" * 100_000], "x: line 1: not an object in JSON"),
        ([HEADER, [1]], "x: line 2: not an object in JSON"),
        ([{}], "line 1: not the first line of a model"),
        ([{**HEADER, "format": 2}], "format 2, but this program reads 1"),
        ([{**HEADER, "classes": {"b": 1, "a": 1}}], "classes are not sorted"),
        ([{**HEADER, "classes": {"a": 1}}, END], "only one class"),
        ([{**HEADER, "classes": {"a": 0, "b": 1}}], "a class without messages"),
        ([{**HEADER, "classes": {"a": -1, "b": 1}}], "-1 is not a number from 0 up"),
        ([{**HEADER, "classes": {"a": float("nan"), "b": 1}}], "nan is not a number"),
        ([{**HEADER, "settings": {}}], "no 'tokens'"),
        ([with_settings(model="x")], "settings: model: 'x'"),
        ([with_settings(min_df="x")], "settings: min_df: 'x'"),
        ([with_settings(tokens={**SETTINGS["tokens"], "max_length": 10**12})], "max_length: "),
        ([{**HEADER, "others_had": -1}], "line 1: -1 is not a whole number"),
        ([{**HEADER, "cutoffs": {"spam": 0.9}}], "line 1: cutoffs"),
        ([{**HEADER, "cutoffs": {**CUTOFFS, "ham": 2}}], "line 1: cutoffs: ham"),
        ([{**HEADER, "ledger": -1}], "line 1: ledger: -1 is neither true nor false"),
        ([HEADER, TOKEN, {**MESSAGE, "told": None}], "told: None is neither true nor false"),
        ([HEADER, TOKEN, MESSAGE], "x: cut off, because the last line is not"),
        ([HEADER, END, TOKEN], "line 3: a line behind the last"),
        ([HEADER, {"token": 7}], "line 2: 7 is not text"),
        ([HEADER, {"token": "a" * 70_000}], "line 2: a token of more than 65,536 bytes"),
        ([HEADER, {**TOKEN, "group": "x"}], "line 2: group: 'x' is none of text, route"),
        ([HEADER, {**TOKEN, "count": {"work": 1}}], "'work', which the first line does not have"),
        ([HEADER, {**TOKEN, "count": 1}], "line 2: "),
        ([HEADER, {**TOKEN, "count": {"ham": 2}}], "line 2: a token in more messages than there"),
        ([HEADER, {**TOKEN, "documents": 1.5}], "1.5 is not a whole number"),
        ([HEADER, {**TOKEN, "seen": "today" * 99}], "line 2: Invalid isoformat"),
        ([HEADER, {**TOKEN, "seen": "1066-10-14"}], "is not a whole number from 0"),
        ([HEADER, {**TOKEN, "key": "f" * 5000}], "is not a hash of at most 16 hexadecimal"),
        ([HEADER, TOKEN, TOKEN, END], "x: a token is there twice"),
        ([HEADER, TOKEN, {}], "line 3: no 'message'"),
        ([HEADER, TOKEN, {**MESSAGE, "class": "work"}], "line 3: a class 'work' that"),
        ([HEADER, TOKEN, {**MESSAGE, "message": f"{2**64:x}"}], "is not a hash"),
        ([HEADER, TOKEN, MESSAGE, MESSAGE, END], "x: a message is there twice"),
        ([HEADER, TOKEN, {**MESSAGE, "tokens": [1]}], "x: line 3: 1 is not a whole"),
        ([HEADER, TOKEN, {**MESSAGE, "tokens": [0, 0]}, END], "a token of a message is there"),
        (
            [with_settings(weighting="counts"), TOKEN, {**MESSAGE, "times": []}, END],
            "numbers of times",
        ),
        ([HEADER, TOKEN, {**MESSAGE, "times": [0]}], "occurs in a message 0 times"),
    ):
        encoded = [x if isinstance(x, bytes) else json.dumps(x).encode() for x in lines]
        with pytest.raises(NbspamError) as caught:
            model_of_lines(encoded, "x")

        assert complaint in str(caught.value)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 400


BLENDED = (
    {**HEADER, "settings": MANY["mail"].to_dict(), "classes": {"ham": 1, "spam": 1, "x": 2}},
    {**TOKEN, "count": {"ham": 0.5, "x": 1}},
    {**MESSAGE, "times": [1]},
)


@pytest.mark.parametrize("values", [(HEADER, TOKEN, MESSAGE, END), (*BLENDED, END)])
def test_damaged_lines_never_raise_anything_else(values):
    rng = random.Random(1)
    lines = [json.dumps(line).encode() for line in values]
    for _ in range(2000):
        damaged = [bytearray(line) for line in lines]
        for _ in range(rng.randint(1, 4)):
            line = rng.choice(damaged)
            line[rng.randrange(len(line))] = rng.choice(b'019ae{}[]",:-\\ \xff')
        with suppress(NbspamError):
            model_of_lines([bytes(line) for line in damaged], "x")


def test_export_and_import_are_commands(nbspam, trained, tmp_path):
    out = nbspam.out("export")
    assert nbspam("export", "-m", trained)[1] == out

    copy = tmp_path / "copy.nbspam"
    (tmp_path / "d.jsonl").write_text(out)
    (tmp_path / "d.jsonl.gz").write_bytes(gzip.compress(out.encode()))
    for source in ("-", tmp_path / "d.jsonl", tmp_path / "d.jsonl.gz"):
        status, said, _ = nbspam("import", source, "-m", copy, "--json", stdin=out.encode())
        assert (status, json.loads(said)["read"]) == (0, {"ham": 2, "spam": 2})
        assert copy.read_bytes() == trained.read_bytes()
    assert nbspam("import", "-", "-m", copy, stdin=out.encode())[1].startswith("imported ")
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(InputError, match="give a file that nbspam export wrote"):
            load_file(str(path))
    (tmp_path / "cut.gz").write_bytes((tmp_path / "d.jsonl.gz").read_bytes()[:-20])
    assert complains(nbspam("import", tmp_path / "cut.gz"), 1, "cut.gz: damaged")


def test_a_key_that_does_not_follow_from_its_text_is_spelt_out():
    settings = replace(PRESETS["mail"], tokens=TokenSettings(punctuation=":"))
    items = [Item("a", "a", b"Subject: x\n\nsubject:lunch"), Item("b", "b", SPAM)]
    lines = list(model_lines(trained_on(items, settings)))
    key = reference_key(Token("body", b"subject:lunch"))
    assert any(f'"key": "{key:016x}"'.encode() in line for line in lines)

    assert key in model_of_lines(lines, "x").table.vocabulary.keys.tolist()


LABELS = ("ham", "spam")
LIST = b"""\
subj:free 10 0 20261121
Viagra 5 0 20261120
VIAGRA 7 0 20261122
example.org 1 4 20260101
rtrn:example 1 2 0
rcvd:mx 3 4 0
head:X-Mailer 2 3 0
http://x 1 0 0
buy*now 4 0 0
.MSG_COUNT 10 20 20261122
.ENCODING 2 0 20261122
"""


def counts(classifier):
    rows = classifier.table.feature_count.astype(int).tolist()
    return dict(zip(words_of(classifier.table), map(tuple, rows), strict=True))


def model_of(path):
    return StoredModel(str(path)).whole()


def test_a_word_list_becomes_our_tokens_cut_and_folded_with_their_counts_and_days():
    classifier = model_of_bogofilter_lines(LIST.splitlines(keepends=True), "x")
    found = counts(classifier)

    assert found["subject:free"] == (0, 10)
    assert found["return-path:example"] == (2, 1)
    assert found["received:mx"] == (4, 3)
    assert found["header:x-mailer"] == found["mailer:x-mailer"] == (3, 2)
    assert "date:x-mailer" not in found
    assert found["2g:buy now"] == (0, 4)
    assert found["example"] == found["org"] == (4, 1)
    assert found["http"] == found["x"] == (0, 1)
    assert found["viagra"] == (0, 10)  # 5 + 7, and there are ten messages
    assert classifier.table.class_count.tolist() == [20, 10]
    days = dict(zip(found, classifier.memory.last_seen.tolist(), strict=True))
    assert days["viagra"] - days["subject:free"] == 1
    assert days["received:mx"] == 0
    assert len(classifier.memory.ledger.digests) == 0
    assert next(iter(bogofilter_lines(classifier))) == b".MSG_COUNT 10 20 20261122\n"
    (verdict,) = classifier.classify([Item("a", None, b"Subject: free\n\nviagra\n")])
    assert verdict.label == "spam"


@pytest.mark.parametrize("options", [(), ("--pairs",)])
def test_what_was_dumped_and_loaded_is_dumped_the_same(nbspam, model, mails, tmp_path, options):
    for label in LABELS:
        (tmp_path / label).mkdir()
        for path in sorted((mails / label).iterdir())[::10]:
            (tmp_path / label / path.name).symlink_to(path)
    nbspam("train", "--ham", tmp_path / "ham", "--spam", tmp_path / "spam", *options)
    lines = list(bogofilter_lines(model_of(model)))

    again = model_of_bogofilter_lines(lines, "x")
    assert list(bogofilter_lines(again)) == lines
    assert counts(again) == counts(model_of(model))
    assert again.settings == model_of(model).settings


def test_a_loaded_model_classifies_and_learns_on(nbspam, trained, tmp_path):
    (tmp_path / "list").write_text(nbspam("export", "--format", "bogoutil")[1])
    assert nbspam("import", tmp_path / "list")[0] == 0

    assert nbspam("classify", stdin=SPAM)[1].startswith("spam")
    assert nbspam("classify", stdin=HAM)[1].startswith("ham")
    assert nbspam("update", "--ham", "-", stdin=b"Subject: x\n\nnew\n")[1] == "learned 1\n"
    assert ".MSG_COUNT 2 3 " in nbspam("export", "--format", "bogoutil")[1]


def test_days_beyond_ours_and_bytes_that_are_no_text_are_no_obstacle():
    days = {b"0": 0, b"19700102": 1, b"18000101": 0, b"99991231": 65_535, b"9" * 40: 0}
    lines = [b"word%d 0 0 %b\n" % each for each in enumerate(days)]
    classifier = model_of_bogofilter_lines([b".MSG_COUNT 1 1 0\n", *lines], "x")
    found = zip(words_of(classifier.table), classifier.memory.last_seen.tolist(), strict=True)
    assert sorted(found) == [(f"word{n}", day) for n, day in enumerate(days.values())]
    lines = [b".MSG_COUNT 2 2 0\n", b"gr\xfc\xdfe 1 0 99999999\n"]
    assert counts(model_of_bogofilter_lines(lines, "x")) in ({"grüsse": (0, 1)}, {"grüße": (0, 1)})


def test_a_word_list_takes_little_memory_for_each_token():
    lines = [b".MSG_COUNT 1 1 0\n", *[b"head:w%d 1 0 0\n" % n for n in range(2000)]]
    assert memory_of(model_of_bogofilter_lines, lines, "x")[1] < 12_000 * 300


def test_only_ham_and_spam_in_whole_numbers_can_be_dumped(nbspam, tmp_path, folder, model):
    nbspam("train", folder, "--weighting", "unit-length")
    status, _, err = nbspam("export", "--format", "bogoutil")
    assert (status, "counts are weights" in err) == (2, True)

    (folder / "ham").rename(folder / "work")
    nbspam("train", folder)
    with pytest.raises(UsageError, match="the classes are spam, work"):
        list(bogofilter_lines(model_of(model)))


bogofilter = needs("bogofilter", "bogoutil")


def run(*command, stdin=b""):
    return subprocess.run(command, input=stdin, capture_output=True, check=True).stdout


@bogofilter
def test_a_bogofilter_moves_in(tmp_path):
    def mail(n, label):
        words = " ".join(f"{label}{(7 * n + k) % 40}" for k in range(15))
        return f"From: {label}@example.org\nSubject: {label} {n}\n\n{words}\n".encode()

    for option, label in (("-s", "spam"), ("-n", "ham")):
        for n in range(10):
            run("bogofilter", "-C", "-d", tmp_path, option, stdin=mail(n, label))
    (tmp_path / "list").write_bytes(run("bogoutil", "-d", tmp_path / "wordlist.db"))

    classifier = load_file(str(tmp_path / "list"))

    assert classifier.table.class_count.tolist() == [10, 10]
    items = [Item(f"{label}{n}", label, mail(n, label)) for n in range(10, 40) for label in LABELS]
    assert all(v.label == i.label for v, i in zip(classifier.classify(items), items, strict=True))


@bogofilter
def test_bogofilter_reads_what_is_dumped(nbspam, model, mails, tmp_path):
    nbspam("train", mails)
    lines = b"".join(bogofilter_lines(model_of(model)))
    word_list = tmp_path / "wordlist.db"
    run("bogoutil", "-l", word_list, stdin=lines)

    assert sorted(run("bogoutil", "-d", word_list).splitlines()) == sorted(lines.splitlines())


# ---- what cannot be imported ----

BACKUP = b"v\t3\tdb_version # this must be the first line!!!\nv\t40\tnum_spam\n"
DUMP = b"0.000          0          3          0  non-token data: bayes db version\n"
EXPORT = b'0,3,8868,"$"\n0,1,8868,"$ fax"\n'
ADVICE = "train from the mail: nbspam train --spam PATH --ham PATH"
NO_LINE = "not `token spam ham yyyymmdd`"


def test_an_import_says_why_it_cannot_be_and_makes_no_model(nbspam, model):
    for text, words in (
        (b"free 1 2\n", f"line 1: {NO_LINE}"),
        (b"free 1 x 0\n", f"line 1: {NO_LINE}"),
        (b"a 1 1 0\nfree -1 2 0\n", f"line 2: {NO_LINE}"),
        (b"free 99999999999999 2 0\n", f"line 1: {NO_LINE}"),
        (b" 1 2 0\n", f"line 1: {NO_LINE}"),
        (b"free 1 2 0\n", "no line of .MSG_COUNT"),
        (b".MSG_COUNT 1 1 0\n", "no line of token"),
        (b".MSG_COUNT 0 0 0\na 0 0 0\n", "no messages"),
        (b".MSG_COUNT 1 1 0\n:: 1 1 0\n", "no line of token"),
        (BACKUP, f"a backup of sa-learn, which has hashes in place of words; {ADVICE}"),
        (DUMP, f"a dump of sa-learn, which has hashes in place of words; {ADVICE}"),
        (b"0.016          0          1 1027452784  0063f1f351\n", "a dump of sa-learn"),
        (EXPORT, "an export of spamprobe, which does not say in how many"),
        (b"0.3000000       0       3  0x000022a4  $\n", "a dump of spamprobe"),
    ):
        assert complains(nbspam("import", "-", stdin=text), 1, "nbspam: -: ", words)
        assert not model.exists()


@pytest.mark.parametrize(("program", "learn", "write"), [
    pytest.param(
        *("sa-learn", ["--dbpath", "bayes", "--spam"], ["--dbpath", "bayes", "--backup"]),
        marks=pytest.mark.slow,
    ),
    ("spamprobe", ["-c", "-d", "probe", "spam"], ["-d", "probe", "export"]),
    ("spamprobe", ["-c", "-d", "probe", "spam"], ["-d", "probe", "dump"]),
])  # fmt: skip
def test_what_the_programs_write_themselves_is_known(
    nbspam, model, mails, tmp_path, monkeypatch, program, learn, write
):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    run(program, *learn, str(mails / "spam" / "001-pills-plain.eml"))
    assert complains(nbspam("import", "-", stdin=run(program, *write)), 1, program, ADVICE)
