"""A state with a right checksum and wrong contents is refused in one line, or is harmless."""

from dataclasses import fields
from functools import cache

import numpy as np
import pytest

from nbspam.counts.table import compact
from nbspam.errors import ModelFileError
from nbspam.settings import Settings, TokenSettings
from nbspam.store import fields as checked
from nbspam.store.doctor import BAD, findings
from nbspam.store.library import train
from nbspam.store.model import StoredModel
from nbspam.store.modelfile import load_state, save_state
from nbspam.store.open import load_classifier
from nbspam.store.text import model_lines, model_of_lines
from stress import damage
from support import COLUMN_MODELS, HAM, MELONS, ROOT, complains

pytestmark = pytest.mark.usefixtures("quick_disk")
TEXTS = ("ship sail", "sail sea wave", "cloud wing bird", "wing wind", "rose leaf", "leaf oak")
TRAININGS = {
    "mail": {},
    "many": {"preset": "text"},
    "plain": {"preset": "text", "model": "multinomial"},
    "features-network": {"model": "network", "max_features": 20},
    "features-spode": {"model": "spode", "max_features": 20},
    "table-spode": {"model": "spode", "target": "好瓜"},
    "table-aode-numbers": {"model": "aode", "target": "好瓜", "discretise": "none"},
    "table-mixed": {"model": "mixed", "target": "好瓜"},
    "table-gaussian": {
        "model": "gaussian",
        "target": "好瓜",
        "drop": ("色泽", "根蒂", "敲声", "纹理", "脐部", "触感"),
    },
}


@cache
def state_of(name):
    """Return the state of a small model of one kind."""
    chosen = TRAININGS[name]
    if "target" in chosen:
        given = MELONS
    elif "preset" in chosen:
        given = [(text, f"class{n // 2}") for n, text in enumerate(TEXTS)]
    else:
        given = [
            (path.read_bytes(), label)
            for label in ("ham", "spam")
            for path in sorted((ROOT / "corpora" / "mail" / label).iterdir())[:12]
        ]
    return train(given, day=20_000, **chosen).classifier.to_state()


def changed(state, way, value):
    """Return a state in which one value is another."""
    first, *rest = way
    if isinstance(state, list):
        new = changed(state[first], rest, value)
        return [*state[:first], new, *state[first + 1 :]]
    new = changed(state[first], rest, value) if rest else value(state.get(first))
    return {**state, first: new}


def always(value):
    return lambda old: value


def without(name):
    return lambda old: {key: value for key, value in old.items() if key != name}


def one(at, value):
    """Return what sets one number of an array."""

    def change(old):
        new = np.array(old)
        new[at] = value
        return new

    return change


REFUSED = {
    "mail": [
        (["classes"], always(["spam", "ham"]), "classes"),
        (["classes"], always(["ham", "ham"]), "classes"),
        (["classes"], always(["ham", 1]), "classes"),
        (["class_count"], one(0, np.nan), "class_count: out of range"),
        (["class_count"], one(0, -1), "class_count: out of range"),
        (["keys"], lambda old: old.astype(np.int64), "keys"),
        (["keys"], lambda old: old[:-1], "text_offsets: of shape"),
        (["text_offsets"], lambda old: np.append(old[1:], old[:1]), "text_offsets: ends at 0"),
        (["text_offsets"], lambda old: one(0, 1 << 20)(old.astype(int)), "text_offsets: out"),
        (["group"], one(3, 99), "group: out of range"),
        (["feature_count"], lambda old: old[:, :1], "feature_count: of shape"),
        (["feature_count"], lambda old: one(0, np.inf)(old.astype(float)), "out of range"),
        (["document_frequency"], lambda old: old.astype(np.float16), "document_frequency"),
        (["worth"], one(0, np.nan), "worth: out of range"),
        (["worth"], lambda old: old[:0], "worth: of shape"),
        (["correction"], one(0, np.inf), "correction: out of range"),
        (["settings", "alpha"], always("often"), "settings: alpha"),
        (["settings", "strip"], always("quotes"), "settings: strip"),
        (["settings", "class_prior"], always([0.5, 0.6]), "settings: class_prior"),
        (["settings", "class_prior"], always([1.0]), "settings: class_prior"),
        (["settings", "tokens", "max_length"], always(40.0), "settings: tokens"),
        (["settings", "tokens", "punctuation"], always("é"), "settings: tokens"),
        (["lacks"], always(np.array([0, 1], np.uint8)), "others_had"),
        (["memory", "label"], one(0, 7), "memory: label: out of range"),
        (["memory", "told"], always(np.array([40], np.uint32)), "told: out of range"),
        (["memory", "sample_bits"], always(64), "memory: sample_bits"),
        (["memory", "decayed"], always(-1), "memory: decayed"),
        (["memory", "ledger"], always(0), "memory: ledger"),
        (["memory"], always(7), "not subscriptable"),
        (["cutoffs"], always({"spam": 0.5}), "cutoffs"),
        (["kind"], always(["table"]), "a model of kind"),
    ],
    "many": [
        (["blend"], one(0, -1.0), "blend: out of range"),
        (["blend"], lambda old: old[:3], "blend: of shape"),
        (["blend"], one(-1, 0.0), "blend: no tail"),
        (["group_total"], lambda old: old[:, :1], "group_total: of shape"),
        (["group_size"], lambda old: old[:2], "group_size: of shape"),
    ],
    "plain": [
        (["weight"], one((0, 0), np.nan), "weight: out of range"),
        (["intercept"], lambda old: old[:1], "intercept: of shape"),
    ],
    "features-network": [
        (["learnt", "arrows_"], one((0, 20), 1), "arrows_: the class has parents"),
        (["learnt", "arrows_"], one(([0, 1], [1, 0]), 1), "arrows_: a cycle"),
        (["learnt", "rows_"], one((0, 0), 2), "rows_: out of range"),
        (["learnt", "levels_"], one(0, 3), "levels_"),
        (["parameters", "start"], always("leaf"), "parameters: start"),
        (["parameters", "levels"], always([2]), "parameters: levels"),
    ],
    "features-spode": [
        (["keys"], lambda old: old[:5], "of shape"),
        (["classes"], always(["ham"]), "of shape"),
        (["learnt", "pair_count_"], one((0, 0, 1), 1e6), "pair_count_: impossible"),
        (["learnt", "parent_"], always(20), "parent_"),
        (["parameters", "parent"], always(20), "parameters: parent"),
    ],
    "table-spode": [
        (["learnt"], without("parent_loss_"), "parent_errors_ or parent_loss_"),
    ],
    "table-aode-numbers": [
        (["learnt"], without("given_mean_"), "given_count_ or given_mean_"),
        (["learnt", "given_count_"], lambda old: old * 0, "given_deviation_: of no values"),
    ],
    "table-gaussian": [
        (["learnt", "value_count_"], lambda old: old * 0, "deviation_: of no values"),
    ],
    "table-mixed": [
        (["columns", 0, "levels"], always(["a", "a", "b"]), "columns: levels"),
        (["columns", 0, "cuts"], always([1.0]), "columns: both levels and cuts"),
        (["columns", 0, "name"], always(3), "columns"),
        (["target"], always(None), "target"),
        (["learnt", "mean_"], one((0, 0), np.inf), "mean_: out of range"),
        (["learnt", "deviation_"], one((0, 0), -1), "deviation_: out of range"),
        (["parameters", "dirichlet"], always([None]), "parameters: dirichlet"),
        (["counts"], lambda old: old[:, 1:], "counts: of shape"),
    ],
}
CASES = [
    pytest.param(name, *case, id=f"{name}-{number}-{case[0][-1]}")
    for name, cases in REFUSED.items()
    for number, case in enumerate(cases)
]


@pytest.mark.parametrize(("name", "way", "value", "what"), CASES)
def test_what_we_do_not_write_is_refused_in_one_line(tmp_path, name, way, value, what):
    path = str(tmp_path / "m")
    save_state(path, state_of(name))
    checked.check_state(load_state(path))
    save_state(path, changed(state_of(name), way, value))
    with pytest.raises(ModelFileError) as caught:
        load_classifier(path)

    assert what in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")
    assert str(caught.value).endswith(("; train it again", "; upgrade nbspam"))


@pytest.mark.parametrize(
    ("way", "value"),
    [
        (["keys"], lambda old: old[::-1].copy()),
        (["text_offsets"], one(3, 0)),
        (["memory", "digest"], lambda old: old[::-1].copy()),
        (["memory", "sample_digest"], one(0, 12345)),
        (["memory", "sample_offsets"], one(1, 4000)),
        (["memory", "sample_column"], one(0, 1 << 20)),
        (["memory", "told"], always(np.array([2, 2], np.uint32))),
    ],
)
def test_what_only_learning_reads_is_checked_there_and_by_doctor(nbspam, tmp_path, way, value):
    path = str(tmp_path / "m")
    save_state(path, changed(state_of("mail"), way, value))

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
    assert parameters <= set(checked.PARAMETERS)


@pytest.mark.parametrize(
    ("made", "times"), [(damage.damage_bytes, 60), (damage.damage_states, 150)]
)
def test_no_damage_is_silent_and_no_mutation_ends_in_a_traceback(
    made, times, tmp_path, quick_disk
):
    assert made(times, 7, tmp_path) == []


def test_a_class_whose_name_is_not_utf_8_is_exported_and_comes_back(tmp_path):
    path = str(tmp_path / "m")
    save_state(path, {**state_of("mail"), "classes": ["ham", "\udcff"]})
    lines = list(model_lines(StoredModel(path).whole()))

    assert model_of_lines(iter(lines), "x").classes == ("ham", "\udcff")


def test_words_of_a_model_without_smoothing(nbspam, tmp_path):
    path = str(tmp_path / "m")
    save_state(path, changed(state_of("mail"), ["settings", "alpha"], always(0)))

    status, out, _ = nbspam("words", "-m", path)
    assert status == 0
    assert "nan" not in out


def test_counts_beyond_32_bits_are_stored_as_they_are():
    assert compact(np.array([2.0**32])).tolist() == [2.0**32]


# ---- the reference page ----


def test_the_reference_page_names_every_field():
    page = (ROOT / "docs" / "reference" / "model-file.md").read_text(encoding="utf-8")
    own = (checked.TOKENS, checked.FORGOTTEN, checked.COMBINED, checked.BLENDED, checked.SUMMED)
    tables = (*own, checked.MEMORY, checked.PART, checked.TABLE, checked.COLUMN, checked.CUTOFFS)
    for name in {name for table in tables for name in table}:
        assert f"`{name}`" in page, name
