"""From choices to settings: the defaults, what changes them, and what is refused."""

import click
import numpy as np
import pytest

import nbspam as library
from nbspam.cli.training_options import training_options
from nbspam.errors import InputError, UsageError
from nbspam.settings import (
    FEATURES,
    MANY,
    PLAIN,
    PRESETS,
    SettingsChoices,
    TableChoices,
    chosen_settings,
    is_for_table,
    look_at_items,
    settings_from_dict,
)
from nbspam.sources.items import Item
from nbspam.store.open import load_classifier
from nbspam.tables.training import table_settings
from support import LIHANG


def items(labels, is_text=False):
    return [Item(str(n), label, b"some text", is_text) for n, label in enumerate(labels)]


# --- what `nbspam train` uses, a user of the library gets ------------------------------------


def write_texts(path, labels):
    path.write_text("".join(f"{label}\tsome text of {label}, {n}\n" for n, label in labels))
    return path


@pytest.mark.parametrize(
    ("corpus", "options", "choices"),
    [
        ("mail", "", {}), ("two", "", {}), ("many", "", {}),
        ("mail", "--pairs --min-df 2", {"pairs": True, "min_df": 2}),
        ("mail", "--model bernoulli", {"model": "bernoulli"}),
        ("two", "--alpha auto", {"alpha": "auto"}),
        ("two", "--class-prior 0.3,0.7", {"class_prior": (0.3, 0.7)}),
        ("mail", "--preset tutorial", {"preset": "tutorial"}),
        ("many", "--strip quotes", {"strip": ("quotes",)}),
        ("two", "--model tan --features 3", {"model": "tan", "max_features": 3}),
    ],
)  # fmt: skip
def test_the_command_and_the_library_train_the_same_model(
    nbspam, folder, model, tmp_path, corpus, options, choices
):
    classes = {"two": "ab", "many": "abc"}.get(corpus)
    source = write_texts(tmp_path / "t.tsv", enumerate(classes * 5)) if classes else folder
    nbspam.out("train", source, *options.split(), "-j", 1)
    by_command = load_classifier(str(model))
    memory = getattr(by_command, "memory", None)
    day = 0 if memory is None else int(memory.last_seen.max())

    library.train(source, day=day, **choices).save(tmp_path / "library.nbspam")
    assert (tmp_path / "library.nbspam").read_bytes() == model.read_bytes()


def test_the_same_holds_of_tables(table, model, tmp_path):
    options = ("--target", "Y", "--alpha", "2", "--estimate", "map", "--categorical", "X1")
    assert table("train", LIHANG, *options)[0] == 0

    choices = {"target": "Y", "alpha": 2.0, "estimate": "map", "categorical": ("X1",)}
    library.train(LIHANG, **choices).save(tmp_path / "library.nbspam")
    assert (tmp_path / "library.nbspam").read_bytes() == model.read_bytes()


def test_the_same_holds_of_em(nbspam, model, folder, tmp_path):
    others = folder / "ham"
    assert nbspam("train", folder, "--unlabelled", others, "--min-df", "1", "-j", 1)[0] == 0

    library.train(folder, unlabelled=others, min_df=1).save(tmp_path / "library.nbspam")
    assert (tmp_path / "library.nbspam").read_bytes() == model.read_bytes()


def test_every_choice_is_an_option_of_train():
    command = click.command("x")(training_options(lambda training: training))
    assert {parameter.name for parameter in command.params} == set(SettingsChoices._fields)


def chosen(is_text=False, many=False, **choices):
    return chosen_settings(SettingsChoices(**choices), is_text, many)


# --- what the defaults are -------------------------------------------------------------------


@pytest.mark.parametrize("is_text", [False, True])
@pytest.mark.parametrize("many", [False, True])
def test_without_choices_a_corpus_gets_its_preset(is_text, many):
    presets = MANY if many else PRESETS

    assert chosen(is_text, many) == presets["text" if is_text else "mail"]
    assert chosen(is_text, many).weighting == ("log-length" if many else "presence")
    assert chosen(is_text, many, preset="tutorial") == PRESETS["tutorial"]
    assert chosen(is_text, many, model="complement").weighting == "counts"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model", "complement"), ("alpha", 0.1), ("class_prior", "estimated"),
        ("weighting", "counts"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("many", [False, True])
def test_choosing_part_of_a_model_gives_one_that_sums_its_evidence(name, value, many):
    settings = chosen(True, many, **{name: value})

    assert not settings.combine
    assert settings.tokens == PLAIN["text"].tokens
    assert getattr(settings, name) == value


def test_choosing_tokens_keeps_the_preset():
    settings = chosen(is_text=True, pairs=True, characters=False, min_df=3)

    assert settings.combine
    assert (settings.tokens.pairs, settings.tokens.characters) == (True, False)
    assert settings.min_df == 3
    assert chosen(strip=("quotes",)).reading == "text"  # stripping reads mail as text


@pytest.mark.parametrize("model", FEATURES)
def test_models_of_dependent_tokens_use_few_tokens(model):
    settings = chosen(model=model, estimate="map")

    assert settings.max_features == FEATURES[model]
    assert (settings.weighting, settings.alpha) == ("presence", 1.0)
    assert settings.parameters == {"estimate": "map"}
    assert chosen(model=model, max_features=7).max_features == 7


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"criterion": "bic"}, "--criterion: for tables and --model spode"),
        ({"model": "bernoulli", "min_support": 2.0}, "--min-support: for tables"),
        ({"preset": "letters"}, "--preset letters: unknown; choose from mail, text"),
        ({"model": "oracle"}, "model: 'oracle' is unknown; choose from bernoulli"),
        ({"weighting": "gold"}, "weighting: 'gold' is unknown; choose from presence"),
        ({"strip": ("feet",)}, "--strip feet: not a part of a text; choose from headers"),
        ({"min_df": 1 << 63}, "--min-df: 9223372036854775808 is not a whole number from 1 to 9,"),
        ({"max_features": 10**30}, "--max-features: 10{30} is not a whole number"),
        ({"beta": (2, 5)}, "--beta: for --model bernoulli"),
        *(
            ({"model": model, "weighting": kind}, f"{kind}: --model {model} sees only")
            for model, kind in (("bernoulli", "counts"), ("tan", "tf-idf"))
        ),
    ],
)
def test_choices_that_contradict_each_other_are_refused(choices, words):
    with pytest.raises(UsageError, match=words):
        chosen(**choices)


# --- what a corpus is ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "many"),
    [
        ("abab", False), ("abac", True),
        (["spam", "a", "b", "c"], False),  # classes of a mail filter are believed at once
        ([None, None], False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_text", [False, True])
def test_a_look_tells_text_and_many_classes_and_loses_no_item(labels, many, is_text):
    given = items(labels, is_text)
    found = look_at_items(iter(given))

    assert found[:2] == (is_text, many)
    assert list(found[2]) == given


def test_a_look_draws_no_more_than_it_needs(monkeypatch):
    drawn = []
    look_at_items(drawn.append(item) or item for item in items(["ham", "spam", "ham"]))
    assert len(drawn) == 1
    given = items("ababc")
    for name, most, many in (
        ("_MAX_ITEMS", 5, True),
        ("_MAX_ITEMS", 4, False),
        ("_MAX_BYTES", 4 * len(b"some text"), False),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(f"nbspam.settings.{name}", most)
            assert look_at_items(given)[1] is many
    with pytest.raises(InputError, match="nothing to read"):
        look_at_items([])


# --- tables ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choices", "columns", "words"),
    [
        ({}, {"numeric": ("x",)}, "--numeric: for the columns of a table"),
        ({}, {"parent": "x"}, "--parent: for the columns of a table"),
        ({"model": "mixed"}, {}, "--model mixed: for the columns of a table"),
    ],
)
def test_choices_for_tables_need_a_target(choices, columns, words):
    with pytest.raises(UsageError, match=words):
        is_for_table(SettingsChoices(**choices), TableChoices(**columns))
    assert is_for_table(SettingsChoices(**choices), TableChoices(target="y", **columns))
    assert not is_for_table(SettingsChoices(model="tan"), TableChoices())


def test_table_settings_keep_what_was_chosen_and_default_the_rest():
    settings = table_settings(
        SettingsChoices(model="spode", alpha=2.0),
        TableChoices("y", discretise="width", parent="x"),
    )

    assert (settings.target, settings.model, settings.discretise) == ("y", "spode", "width")
    assert settings.parameters == {"alpha": 2.0, "parent": "x"}
    assert table_settings(SettingsChoices(), TableChoices("y")).model is None
    for prior in ((0.3, 0.7), [0.3, 0.7], np.array([0.3, 0.7])):
        settings = table_settings(SettingsChoices(class_prior=prior), TableChoices("y"))
        assert settings.parameters == {"class_prior": (0.3, 0.7)}


@pytest.mark.parametrize(
    ("choices", "columns", "words"),
    [
        (SettingsChoices(pairs=True), TableChoices("y"), "--pairs: for mail and text"),
        (SettingsChoices(alpha="auto"), TableChoices("y"), "--alpha auto: not a number"),
        (SettingsChoices(), TableChoices("y", bins=3), "--bins: mdl finds how many"),
    ],
)
def test_choices_about_tokens_are_refused_for_tables(choices, columns, words):
    with pytest.raises(UsageError, match=words):
        table_settings(choices, columns)


@pytest.mark.parametrize("settings", [*PRESETS.values(), *MANY.values(), *PLAIN.values()])
def test_settings_come_back_from_plain_values(settings):
    assert settings_from_dict(settings.to_dict()) == settings
