"""A state with a right checksum and wrong contents is refused in one line, or is harmless."""

from copy import deepcopy
from dataclasses import fields
from functools import cache, reduce

import numpy as np
import pytest

from nbspam.counts.table import compact
from nbspam.decision import cutoffs
from nbspam.errors import ModelFileError
from nbspam.settings import Settings, TokenSettings
from nbspam.sources.items import Item
from nbspam.store import fields as checked
from nbspam.store.library import train
from nbspam.store.model import StoredModel
from nbspam.store.modelfile import load_state
from nbspam.store.open import load_classifier
from nbspam.store.text import model_lines, model_of_lines
from nbspam.store.upkeep import BAD, findings
from nbspam.tokens.people import learned_sent_mail
from stored import save_state
from stress import damage
from support import CATEGORIES, COLUMN_MODELS, HAM, MELONS, ROOT, complains

TEXTS = ("ship sail", "sail sea wave", "cloud wing bird", "wing wind", "rose leaf", "leaf oak")
LABELLED = [(text, f"class{n // 2}") for n, text in enumerate(TEXTS)]
MAILS = [
    (path.read_bytes(), label)
    for label in ("ham", "spam")
    for path in sorted((ROOT / "corpora" / "mail" / label).iterdir())[:12]
]
CUTOFFS = cutoffs(10, 0.2)._asdict()
SENT = b"From: me@x\nTo: p%d@x\nMessage-ID: <%d@x>\n\nhello\n"
SENT_MAIL = learned_sent_mail(Item("", None, SENT % (n, n)) for n in range(3)).to_dict()
TRAININGS = {
    "mail": (MAILS, {}),
    "many": (LABELLED, {"preset": "text"}),
    "plain": (LABELLED, {"preset": "text", "model": "multinomial"}),
    "features-network": (MAILS, {"model": "network", "max_features": 20}),
    "features-spode": (MAILS, {"model": "spode", "max_features": 20}),
    "table-spode": (MELONS, {"model": "spode", "target": "好瓜"}),
    "table-aode-numbers": (MELONS, {"model": "aode", "target": "好瓜", "discretise": "none"}),
    "table-mixed": (MELONS, {"model": "mixed", "target": "好瓜"}),
    "table-gaussian": (MELONS, {"model": "gaussian", "target": "好瓜", "drop": CATEGORIES}),
}


@cache
def state_of(name):
    """Return the state of a small model of one kind."""
    given, chosen = TRAININGS[name]
    return train(given, day=20_000, **chosen).classifier.to_state()


def changed(state, way, new):
    """Return a state in which the value at a way, such as "memory/label", is another.

    new: the other value, or what makes it of the old one.
    """
    state = deepcopy(dict(state))
    *rest, last = (int(step) if step.isdigit() else step for step in way.split("/"))
    inner = reduce(lambda values, step: values[step], rest, state)
    inner[last] = new(inner.get(last)) if callable(new) else new
    return state


def one(at, value):
    """Return what sets one number of an array."""

    def change(array):
        array = np.array(array)
        array[at] = value
        return array

    return change


def without(name):
    return lambda old: {key: value for key, value in old.items() if key != name}


def turned(array):
    return array[::-1].copy()


REFUSED = {
    "mail": [
        ("classes", ["spam", "ham"], "classes"),
        ("classes", ["ham", "ham"], "classes"),
        ("classes", ["ham", 1], "classes"),
        ("class_count", one(0, np.nan), "class_count: out of range"),
        ("class_count", one(0, -1), "class_count: out of range"),
        ("keys", lambda old: old.astype(np.int64), "keys"),
        ("keys", lambda old: old[:-1], "text_offsets: of shape"),
        ("text_offsets", lambda old: np.append(old[1:], old[:1]), "text_offsets: ends at 0"),
        ("text_offsets", lambda old: one(0, 1 << 20)(old.astype(int)), "text_offsets: out"),
        ("group", one(3, 99), "group: out of range"),
        ("feature_count", lambda old: old[:, :1], "feature_count: of shape"),
        ("feature_count", lambda old: one(0, np.inf)(old.astype(float)), "out of range"),
        ("document_frequency", lambda old: old.astype(np.float16), "document_frequency"),
        ("worth", one(0, np.nan), "worth: out of range"),
        ("worth", lambda old: old[:0], "worth: of shape"),
        ("correction", one(0, np.inf), "correction: out of range"),
        ("usual", 1.5, "usual"),
        ("usual", None, "usual"),
        ("settings/alpha", "often", "settings: alpha"),
        ("settings/model", "network", "settings: model"),
        ("settings/strip", "quotes", "settings: strip"),
        ("settings/class_prior", [0.5, 0.6], "settings: class_prior"),
        ("settings/class_prior", [1.0], "settings: class_prior"),
        ("settings/tokens/max_length", 40.0, "settings: tokens"),
        ("settings/tokens/punctuation", "é", "settings: tokens"),
        ("lacks", np.array([0, 1], np.uint8), "others_had"),
        ("memory/label", one(0, 7), "memory: label: out of range"),
        ("memory/told", np.array([40], np.uint32), "told: out of range"),
        ("memory/sample_bits", 64, "memory: sample_bits"),
        ("memory/shared", one(-1, 1 << 40), "memory: shared"),
        ("memory/decayed", -1, "memory: decayed"),
        ("memory/ledger", 0, "memory: ledger"),
        ("memory", 7, "not subscriptable"),
        ("cutoffs", {"spam": 0.5}, "cutoffs"),
        ("cutoffs", {**CUTOFFS, "more": 1}, "cutoffs"),
        ("cutoffs", {**CUTOFFS, "spam": "0.5"}, "cutoffs: spam"),
        ("cutoffs", {**CUTOFFS, "spam": 1.4}, "cutoffs: spam"),
        ("cutoffs", {**CUTOFFS, "ham": float("nan")}, "cutoffs: ham"),
        ("cutoffs", {**CUTOFFS, "spam": 0.1}, "cutoffs: ham above spam"),
        ("cutoffs", {**CUTOFFS, "fp_cost": 0}, "cutoffs: fp_cost"),
        ("cutoffs", {**CUTOFFS, "unsure_cost": -1}, "cutoffs: unsure_cost"),
        ("settings/columns", {"text": [1], "label": None}, "settings: columns"),
        ("kind", ["table"], "a model of kind"),
        ("kind", "dreams", "a model of kind 'dreams'; upgrade nbspam"),
        ("sent_mail", {**SENT_MAIL, "facts": SENT_MAIL["facts"][::-1]}, "facts: not rising"),
        ("sent_mail", {**SENT_MAIL, "when": SENT_MAIL["when"][1:]}, "sent_mail: when: of shape"),
        ("sent_mail", {**SENT_MAIL, "sent": SENT_MAIL["sent"].astype(int)}, "sent_mail: sent"),
    ],
    "many": [
        ("blend", one(0, -1.0), "blend: out of range"),
        ("blend", lambda old: old[:3], "blend: of shape"),
        ("blend", one(-1, 0.0), "blend: no tail"),
        ("group_total", lambda old: old[:, :1], "group_total: of shape"),
        ("group_size", lambda old: old[:2], "group_size: of shape"),
    ],
    "plain": [
        ("weight", one((0, 0), np.nan), "weight: out of range"),
        ("intercept", lambda old: old[:1], "intercept: of shape"),
        ("settings/parameters", {"class_dirichlet": [1.0]}, "parameters: class_dirichlet"),
    ],
    "features-network": [
        ("learnt/arrows_", one((0, 20), 1), "arrows_: the class has parents"),
        ("learnt/arrows_", one(([0, 1], [1, 0]), 1), "arrows_: a cycle"),
        ("learnt/rows_", one((0, 0), 2), "rows_: out of range"),
        ("learnt/rows_", one((0, -1), -1), "rows_: out of range"),
        ("learnt/levels_", one(0, 3), "levels_"),
        ("parameters/start", "leaf", "parameters: start"),
        ("parameters/levels", [2], "parameters: levels"),
    ],
    "features-spode": [
        ("keys", lambda old: old[:5], "of shape"),
        ("classes", ["ham"], "of shape"),
        ("learnt/pair_count_", one((0, 0, 1), 1e6), "pair_count_: impossible"),
        ("learnt/parent_", 20, "parent_"),
        ("parameters/parent", 20, "parameters: parent"),
    ],
    "table-spode": [("learnt", without("parent_loss_"), "parent_errors_ or parent_loss_")],
    "table-aode-numbers": [
        ("learnt", without("given_mean_"), "given_count_ or given_mean_"),
        ("learnt/given_count_", lambda old: old * 0, "given_deviation_: of no values"),
    ],
    "table-gaussian": [
        ("learnt/value_count_", lambda old: old * 0, "deviation_: of no values"),
        ("learnt/n_features_in_", 9, "n_features_in_"),
    ],
    "table-mixed": [
        ("columns/0/levels", ["a", "a", "b"], "columns: levels"),
        ("columns/0/cuts", [1.0], "columns: both levels and cuts"),
        ("columns/0/name", 3, "columns"),
        ("target", None, "target"),
        ("model", "none", "model"),
        ("learnt", {}, "class_count_"),
        ("learnt/levels_", one(0, 1 << 40), "levels_"),
        ("learnt/levels_", one(0, -3), "levels_"),
        ("parameters/colour", "red", "parameters"),
        ("learnt/more_", 1, "learnt: more_"),
        ("learnt/mean_", one((0, 0), np.inf), "mean_: out of range"),
        ("learnt/deviation_", one((0, 0), -1), "deviation_: out of range"),
        ("parameters/dirichlet", [None], "parameters: dirichlet"),
        ("parameters/dirichlet", [[1.0], *[None] * 8], "parameters: dirichlet"),
        ("counts", lambda old: old[:, 1:], "counts: of shape"),
    ],
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_we_do_not_write_is_refused_in_one_line(tmp_path, name):
    path = str(tmp_path / "m")
    save_state(path, state_of(name))
    with_all = {"cutoffs": CUTOFFS, "sent_mail": SENT_MAIL}
    checked.check_state({**load_state(path), **with_all})
    for way, new, what in REFUSED[name]:
        save_state(path, changed(state_of(name), way, new))
        with pytest.raises(ModelFileError) as caught:
            load_classifier(path)
        said = str(caught.value)
        assert said.startswith(f"{path}: ")
        assert what in said, (way, what)
        assert said.endswith(("; train it again", "; upgrade nbspam"))
        assert "\n" not in said


def test_what_only_learning_reads_is_checked_there_and_by_doctor(nbspam, tmp_path):
    path = str(tmp_path / "m")
    once = np.ones(len(state_of("mail")["memory"]["sample_column"]), np.uint8)
    save_state(path, changed(state_of("mail"), "memory/sample_count", once))
    assert BAD not in [finding.state for finding in findings(path)]
    for way, new in (
        ("memory/sample_count", one(0, 0)(once)),  # a token of a message occurs in it
        ("keys", turned),
        ("text_offsets", one(3, 0)),
        ("memory/digest", turned),
        ("memory/sample_digest", one(0, 12345)),
        ("memory/sample_offsets", one(1, 4000)),
        ("memory/sample_column", one(0, 1 << 20)),
        ("memory/told", np.array([2, 2], np.uint32)),
    ):
        save_state(path, changed(state_of("mail"), way, new))

        assert nbspam("classify", "-m", path, stdin=HAM)[0] == 0
        assert [f.what for f in findings(path) if f.state == BAD] == ["contents"]
        with pytest.raises(ModelFileError, match="its contents do not fit"):
            StoredModel(path)
        assert complains(nbspam("update", "-m", path, "--ham", "-", stdin=HAM), 1, "do not fit")


def test_every_setting_and_parameter_has_its_check():
    kept_elsewhere = {"sent_mail"}
    assert set(checked.SETTINGS) | kept_elsewhere == {field.name for field in fields(Settings)}
    assert set(checked.TOKENIZER) == set(TokenSettings._fields)
    parameters = {name for Class in COLUMN_MODELS for name in Class().get_params()}
    assert parameters <= set(checked.PARAMETER_FIELDS)


@pytest.mark.parametrize(
    ("made", "times"), [(damage.damage_bytes, 60), (damage.damage_states, 150)]
)
def test_no_damage_is_silent_and_no_mutation_ends_in_a_traceback(made, times, tmp_path):
    assert made(times, 7, tmp_path) == []


def test_odd_contents_that_are_allowed_harm_nobody(nbspam, tmp_path):
    """A class whose name is not UTF-8, and no smoothing."""
    path = str(tmp_path / "m")
    save_state(path, {**state_of("mail"), "classes": ["ham", "\udcff"]})
    lines = list(model_lines(StoredModel(path).whole()))
    assert model_of_lines(iter(lines), "x").classes == ("ham", "\udcff")

    save_state(path, changed(state_of("mail"), "settings/alpha", 0))
    status, out, _ = nbspam("words", "-m", path)
    assert (status, "nan" in out) == (0, False)


def test_counts_beyond_32_bits_are_stored_as_they_are():
    assert compact(np.array([2.0**32])).tolist() == [2.0**32]


def test_the_reference_page_names_every_field():
    page = (ROOT / "docs" / "reference" / "model-file.md").read_text(encoding="utf-8")
    tables = (
        *(checked.TOKEN_FIELDS, checked.FORGOTTEN, checked.MEMORY, checked.PART_FIELDS),
        *(checked.COMBINED, checked.BLENDED, checked.SUMMED, checked.CUTOFFS),
        *(checked.TABLE, checked.COLUMN_FIELDS),
    )
    for name in {name for table in tables for name in table}:
        assert f"`{name}`" in page, name
