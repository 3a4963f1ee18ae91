"""From choices to settings: the defaults, what changes them, and what is refused."""

import pytest

from nbspam.classifier.em import em_chosen, train_with_unlabelled
from nbspam.classifier.training import learn_items
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
    settings_for,
    settings_from_dict,
)
from nbspam.sources.items import Item, read_items
from nbspam.sources.records import read_records
from nbspam.store.open import load_classifier, save_classifier
from nbspam.tables.training import read_table, table_settings, train_table
from support import ROOT

LIHANG = ROOT / "corpora" / "lihang-4.1.csv"


def items(labels, is_text=False):
    return [Item(str(n), label, b"some text", is_text) for n, label in enumerate(labels)]


# --- what `nbspam train` uses, a user of the library gets ------------------------------------


def write_texts(path, labels):
    path.write_text("".join(f"{label}\tsome text of {label}, {n}\n" for n, label in labels))
    return path


@pytest.mark.parametrize(
    ("corpus", "options", "choices"),
    [
        ("mail", [], SettingsChoices()),
        ("two", [], SettingsChoices()),
        ("many", [], SettingsChoices()),
        ("mail", ["--pairs", "--min-df", "2"], SettingsChoices(pairs=True, min_df=2)),
        ("mail", ["--model", "bernoulli"], SettingsChoices(model="bernoulli")),
        ("two", ["--alpha", "auto"], SettingsChoices(alpha="auto")),
        ("two", ["--class-prior", "0.3,0.7"], SettingsChoices(class_prior=(0.3, 0.7))),
        ("mail", ["--preset", "tutorial"], SettingsChoices(preset="tutorial")),
        ("many", ["--strip", "quotes"], SettingsChoices(strip=("quotes",))),
        (
            "two",
            ["--model", "tan", "--features", "3"],
            SettingsChoices(model="tan", max_features=3),
        ),
    ],
)
def test_the_command_and_the_library_train_the_same_model(
    nbspam, folder, model, tmp_path, corpus, options, choices
):
    classes = {"two": "ab", "many": "abc"}.get(corpus)
    source = write_texts(tmp_path / "t.tsv", enumerate(classes * 5)) if classes else folder
    status, _, err = nbspam("train", source, *options, "-j", 1)
    assert (status, err) == (0, "")
    by_command = load_classifier(str(model))

    settings, found = settings_for(read_items([str(source)]), choices)
    by_library = learn_items(found, settings, day=by_command_day(by_command)).classifier

    assert by_library.settings == by_command.settings
    save_classifier(str(tmp_path / "library.nbspam"), by_library)
    assert (tmp_path / "library.nbspam").read_bytes() == model.read_bytes()


def by_command_day(classifier):
    """Return the day on which a model was trained, where it keeps that."""
    memory = getattr(classifier, "memory", None)
    return 0 if memory is None else int(memory.last_seen.max())


def test_the_same_holds_of_tables(table, model, tmp_path):
    options = ("--target", "Y", "--alpha", "2", "--estimate", "map", "--categorical", "X1")
    assert table("train", LIHANG, *options)[0] == 0

    choices = SettingsChoices(alpha=2.0, estimate="map")
    settings = table_settings(choices, TableChoices("Y", categorical=("X1",)))
    data = read_table(read_records([str(LIHANG)]), settings)
    save_classifier(str(tmp_path / "library.nbspam"), train_table(data.table, settings))
    assert (tmp_path / "library.nbspam").read_bytes() == model.read_bytes()


def test_the_same_holds_of_em(nbspam, model, folder, tmp_path):
    others = folder / "ham"
    assert nbspam("train", folder, "--unlabelled", others, "--min-df", "1", "-j", 1)[0] == 0

    report = train_with_unlabelled(
        read_items([str(folder)]),
        read_items([str(others)]),
        em_chosen(SettingsChoices(min_df=1), False),
    )
    save_classifier(str(tmp_path / "library.nbspam"), report.classifier)
    assert (tmp_path / "library.nbspam").read_bytes() == model.read_bytes()


def test_every_choice_is_an_option_of_train():
    import click

    command = click.command("x")(training_options(lambda training: training))
    assert {parameter.name for parameter in command.params} == set(SettingsChoices._fields)


# --- what the defaults are -------------------------------------------------------------------


@pytest.mark.parametrize("is_text", [False, True])
@pytest.mark.parametrize("many", [False, True])
def test_without_choices_a_corpus_gets_its_preset(is_text, many):
    presets = MANY if many else PRESETS

    assert (
        chosen_settings(SettingsChoices(), is_text, many) == presets["text" if is_text else "mail"]
    )
    assert (
        chosen_settings(SettingsChoices(preset="tutorial"), is_text, many) == PRESETS["tutorial"]
    )


@pytest.mark.parametrize(
    "choices",
    [
        SettingsChoices(model="complement"),
        SettingsChoices(alpha=0.1),
        SettingsChoices(class_prior="estimated"),
        SettingsChoices(weighting="counts"),
    ],
)
@pytest.mark.parametrize("many", [False, True])
def test_choosing_part_of_a_model_gives_one_that_sums_its_evidence(choices, many):
    settings = chosen_settings(choices, True, many)

    assert not settings.combine
    assert settings.tokens == PLAIN["text"].tokens
    for name, value in choices.given.items():
        assert getattr(settings, name) == value


def test_choosing_tokens_keeps_the_preset():
    settings = chosen_settings(
        SettingsChoices(pairs=True, characters=False, min_df=3), is_text=True
    )

    assert settings.combine
    assert (settings.tokens.pairs, settings.tokens.characters) == (True, False)
    assert settings.min_df == 3


def test_stripping_reads_mail_as_text():
    assert chosen_settings(SettingsChoices(strip=("quotes",)), is_text=False).reading == "text"


@pytest.mark.parametrize("model", FEATURES)
def test_models_of_dependent_tokens_use_few_tokens(model):
    settings = chosen_settings(SettingsChoices(model=model, estimate="map"), is_text=False)

    assert settings.max_features == FEATURES[model]
    assert (settings.weighting, settings.alpha) == ("presence", 1.0)
    assert settings.parameters == {"estimate": "map"}
    assert (
        chosen_settings(SettingsChoices(model=model, max_features=7), is_text=False).max_features
        == 7
    )


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("many", [False, True])
def test_bernoulli_is_the_textbooks_model_whatever_the_source(preset, many):
    settings = chosen_settings(
        SettingsChoices(model="bernoulli", preset=preset), is_text=False, many=many
    )

    assert (settings.weighting, settings.alpha, settings.combine) == ("presence", 1.0, False)
    assert (
        chosen_settings(SettingsChoices(model="bernoulli", alpha=0.1), is_text=True).alpha == 0.1
    )


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        (SettingsChoices(criterion="bic"), "--criterion: for tables and --model spode"),
        (SettingsChoices(model="bernoulli", min_support=2.0), "--min-support: for tables"),
        (SettingsChoices(preset="letters"), "--preset letters: unknown; choose from mail, text"),
        (SettingsChoices(model="oracle"), "model: 'oracle' is none of bernoulli"),
        (SettingsChoices(weighting="gold"), "weighting: 'gold' is none of presence"),
        (
            SettingsChoices(strip=("feet",)),
            "--strip feet: not a part of a text; choose from headers",
        ),
        (SettingsChoices(beta=(2, 5)), "--beta: for --model bernoulli"),
        *(
            (
                SettingsChoices(model=model, weighting=weighting),
                f"{weighting}: --model {model} sees only",
            )
            for model in ("bernoulli", "tan")
            for weighting in ("counts", "unit-length", "log-length", "tf-idf")
        ),
    ],
)
def test_choices_that_contradict_each_other_are_refused(choices, words):
    with pytest.raises(UsageError) as refused:
        chosen_settings(choices, is_text=False)
    assert words in str(refused.value)


# --- what a corpus is ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "many"),
    [
        ("abab", False),
        ("abac", True),
        (["spam", "a", "b", "c"], False),  # classes of a mail filter are believed at once
        ([None, None], False),
    ],
)
@pytest.mark.parametrize("is_text", [False, True])
def test_a_look_tells_text_and_many_classes_and_loses_no_item(labels, many, is_text):
    given = items(labels, is_text)
    found = look_at_items(iter(given))

    assert found[:2] == (is_text, many)
    assert list(found[2]) == given


def test_the_search_for_a_third_class_ends():
    given = items("ababc")

    assert look_at_items(given, max_items=4)[1] is False
    assert look_at_items(given, max_items=5)[1] is True
    assert look_at_items(given, max_bytes=4 * len(b"some text"))[1] is False


def test_a_look_draws_no_more_mail_than_it_needs():
    drawn = []

    def stream():
        for item in items(["ham", "spam", "ham"]):
            drawn.append(item)
            yield item

    look_at_items(stream())
    assert len(drawn) == 1


def test_without_items_there_is_nothing_to_look_at():
    with pytest.raises(InputError, match="nothing to read"):
        look_at_items([])


# --- tables ----------------------------------------------------------------------------------


def test_a_target_makes_a_table():
    assert is_for_table(SettingsChoices(model="mixed"), TableChoices(target="y"))
    assert not is_for_table(SettingsChoices(model="tan"), TableChoices())


@pytest.mark.parametrize(
    ("choices", "columns", "words"),
    [
        (SettingsChoices(), TableChoices(numeric=("x",)), "--numeric: for the columns of a table"),
        (SettingsChoices(), TableChoices(parent="x"), "--parent: for the columns of a table"),
        (
            SettingsChoices(model="mixed"),
            TableChoices(),
            "--model mixed: for the columns of a table",
        ),
    ],
)
def test_choices_for_tables_need_a_target(choices, columns, words):
    with pytest.raises(UsageError, match=words):
        is_for_table(choices, columns)


def test_table_settings_keep_what_was_chosen_and_default_the_rest():
    settings = table_settings(
        SettingsChoices(model="spode", alpha=2.0),
        TableChoices("y", discretise="width", parent="x"),
    )

    assert (settings.target, settings.model, settings.discretise) == ("y", "spode", "width")
    assert settings.parameters == {"alpha": 2.0, "parent": "x"}
    assert table_settings(SettingsChoices(), TableChoices("y")).model is None


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


# --- the model file --------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [*PRESETS.values(), *MANY.values(), *PLAIN.values()])
def test_settings_come_back_from_plain_values(settings):
    assert settings_from_dict(settings.to_dict()) == settings
