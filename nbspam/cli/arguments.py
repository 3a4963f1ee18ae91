"""From the words of a command line to the library's values: items, settings, models, rules.

Secret: which functions of the library read what the options name.
"""

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from nbspam.cli.decisions import rule_of
from nbspam.cli.options import Decision, Labels
from nbspam.cli.output import counted, or_standard_input, report_lack, report_skipped, warn
from nbspam.cli.values import ESTIMATED, Shares
from nbspam.errors import UsageError
from nbspam.settings import (
    Choices,
    Settings,
    TableChoices,
    as_learned,
    chosen,
    first_is_text,
    option_name,
)
from nbspam.sources.items import Item, SourceOptions, read_items
from nbspam.sources.mailboxes import holds_many

if TYPE_CHECKING:
    from nbspam.answering import AnyClassifier
    from nbspam.classifier.classifier import Classifier
    from nbspam.classifier.clusters import Start
    from nbspam.decision import Rule
    from nbspam.models.network.questions import NamedNetwork
    from nbspam.sources.records import Record
    from nbspam.store.tables import StoredTable
    from nbspam.tables.schema import Schema
    from nbspam.tables.training import TableData, TableSettings

_NO_LABELS = Labels()
_MAX_UNSEEN = 5  # categories that are named on standard error


def today() -> int:
    """Return the number of today, counted in days from 1970-01-01."""
    return int(time.time() // 86_400)


# --- mail and text ---------------------------------------------------------------------------


def items_of(
    sources: Iterable[str], reading: SourceOptions, labels: Labels = _NO_LABELS
) -> Iterator[Item]:
    """Return the items of all sources, then those whose class the options state.

    Without any path they come from standard input.  After a single class option, files among
    the sources have its class, unless they state one: `--spam cur/*` gives the option the first
    file, and the sources the others.  Raises InputError and UsageError.
    """
    if click.get_current_context().params.get("preset") == "mail":
        reading = reading._replace(is_mail=True)
    parts = [read_items([path], label=name, options=reading) for name, path in labels.paths]
    names = list(dict.fromkeys(name for name, _ in labels.paths))
    if names:
        parts[:0] = [_items_beside(path, reading, names) for path in sources]
    elif sources or not parts:
        parts.insert(0, read_items(or_standard_input(sources), options=reading))
    paths = [*sources, *(path for _, path in labels.paths)] or ["-"]
    return counted(chain.from_iterable(parts), "messages", paths)


def _items_beside(path: str, reading: SourceOptions, names: list[str]) -> Iterator[Item]:
    """Return the items of a source; a file that states no class has the only class of `names`."""
    items = read_items([path], options=reading)
    if path != "-" and holds_many(path):
        return items
    if len(names) == 1:
        return (item if item.label else item._replace(label=names[0]) for item in items)
    first = next(items)
    if first.label is None and not first.is_text:
        raise UsageError(
            f"{path}: states no class, and the options state {', '.join(names)};"
            " give its own option, or the files of each class in a folder"
        )
    return chain([first], items)


def told_at(model_path: str) -> dict[int, str]:
    """Return the labels that a person has told a model, by digest; raises NbspamError.

    There are none without a model, unless the command line names one.
    """
    from click.core import ParameterSource

    source = click.get_current_context().get_parameter_source("model_path")
    if source is not ParameterSource.COMMANDLINE and not os.path.exists(model_path):
        return {}
    from nbspam.store import model

    return model.told_at(model_path)


def items_for_tokens(
    sources: Iterable[str], reading: SourceOptions, choices: Choices
) -> tuple[Settings, Iterator[Item]]:
    """Return the settings by which items are cut into tokens, and the items."""
    is_text, items = first_is_text(items_of(sources, reading))
    return chosen(choices, is_text), items


def items_for_em(
    sources: Iterable[str],
    reading: SourceOptions,
    choices: Choices,
    labels: Labels = _NO_LABELS,
) -> tuple[Settings, Iterator[Item]]:
    """Return the settings of a model trained by EM, and the items."""
    from nbspam.classifier.unlabelled import em_chosen

    is_text, items = first_is_text(items_of(sources, reading, labels))
    settings = em_chosen(choices, is_text)
    return replace(settings, columns=reading.listener.columns), items


def starts_of(path: str | None) -> "list[Start]":
    """Return the components in the file of --start, if there is one."""
    from nbspam.classifier.clusters import read_starts
    from nbspam.sources.files import read_json

    return [] if path is None else read_starts(read_json(path), f"--start {path}")


# --- tables ----------------------------------------------------------------------------------


def table_settings_of(training: Choices, columns: TableChoices) -> "TableSettings":
    """Return the settings of a table's model; raises UsageError."""
    from nbspam.tables.choices import table_settings

    return table_settings(training, columns)


def table_of(
    sources: Iterable[str],
    reading: SourceOptions,
    labels: Labels,
    settings: "TableSettings",
    strict: bool = False,
    is_quiet: bool = False,
) -> "TableData":
    """Return the labelled rows of tables; say on standard error what is wrong with them."""
    from nbspam.tables.training import read_table

    data = read_table(records_of(sources, reading, labels), settings)
    if is_quiet:
        return data
    for note in data.notes:
        warn(note)
    report_skipped(data.skipped, strict)
    return data


def rows_of(
    model: "StoredTable",
    sources: Iterable[str],
    reading: SourceOptions,
    labels: Labels = _NO_LABELS,
) -> "list[Record]":
    """Return the rows that a model of a table is to learn or to un-learn."""
    _refuse_options_of_texts(reading, labels)
    from nbspam.sources.records import read_records

    return list(read_records(or_standard_input(sources), reading, model.schema.names))


def records_of(
    sources: Iterable[str],
    reading: SourceOptions,
    labels: Labels = _NO_LABELS,
    schema: "Schema | None" = None,
) -> "Iterator[Record]":
    """Yield the rows of tables; with a schema, warn of categories that it does not have."""
    from nbspam.sources.records import read_records

    _refuse_options_of_texts(reading, labels)
    names = () if schema is None else schema.names
    paths = or_standard_input(sources)
    records = counted(read_records(paths, reading, names), "rows", paths)
    return records if schema is None else _warning(records, schema)


def _refuse_options_of_texts(reading: SourceOptions, labels: Labels) -> None:
    """Raise UsageError for options that do not go with a table of columns."""
    options = {
        "text_column": reading.text_columns,
        "label_column": reading.label_column,
        "spam": labels.spam,
        "ham": labels.ham,
        "label": labels.named,
    }
    for name, value in options.items():
        if value:
            raise UsageError(
                f"{option_name(name)}: for mail and text; the class of a table is its --target"
            )


def _warning(records: "Iterator[Record]", schema: "Schema") -> "Iterator[Record]":
    """Yield the records; say on standard error which categories training has not seen."""
    from nbspam.tables.schema import categories, unseen_cells

    n_unseen, known = 0, categories(schema)
    for record in records:
        for cell in unseen_cells(record, known):
            n_unseen += 1
            if n_unseen <= _MAX_UNSEEN:
                warn(
                    f"{cell.name}: {cell.column} is {cell.cell[:40]!r}, which training has not"
                    " seen; taken for missing"
                )
        yield record
    if n_unseen > _MAX_UNSEEN:
        warn(f"{n_unseen - _MAX_UNSEEN} more categories that training has not seen")


def schema_of(classifier: "AnyClassifier") -> "Schema | None":
    """Return the columns that a model of a table knows; None for models of mail and text."""
    schema: Schema | None = getattr(classifier, "schema", None)
    return schema


# --- models ----------------------------------------------------------------------------------


def loaded(model_path: str) -> "AnyClassifier":
    """Return the classifier in a model file, whatever its kind; raises ModelFileError."""
    from nbspam.store.open import load

    return load(model_path)


def loaded_whole(model_path: str) -> "AnyClassifier":
    """Return the classifier in a model file, with the messages it remembers; ModelFileError."""
    from nbspam.store.open import load_whole

    return load_whole(model_path)


def loaded_tokens(model_path: str) -> "Classifier":
    """Return the classifier in a model file of mail or text; raises ModelFileError, UsageError."""
    from nbspam.store.open import load_tokens

    return load_tokens(model_path)


def network_of(path: str) -> "NamedNetwork":
    """Return the Bayesian network in a model file or in a JSON file."""
    from nbspam.store.open import load_network

    return load_network(path)


class Asked(NamedTuple):
    """A classifier, how its probabilities become labels, and what it is asked about."""

    classifier: "AnyClassifier"
    rule: "Rule"
    inputs: "Iterable[Item | Record]"
    costs: "Rule | None"  # the rule, if its costs were stated


def asked(
    model_path: str,
    sources: Iterable[str],
    reading: SourceOptions,
    decision: Decision,
    prior: Shares | str | None = None,
    jobs: int = 1,
) -> Asked:
    """Return what a model is to be asked, under the prior and the costs that are stated."""
    classifier = loaded(model_path)
    report_lack(classifier)
    question = asked_of(classifier, sources, reading, decision)
    return under_prior(question, prior, jobs)


def under_prior(question: Asked, prior: Shares | str | None, jobs: int) -> Asked:
    """Return what a model is to be asked under the prior that is stated or to be estimated."""
    if prior is None:
        return question
    from nbspam.decision import stated_prior, with_estimated_prior, with_prior

    classifier = question.classifier
    if isinstance(prior, str):
        assert prior == ESTIMATED
        inputs = list(question.inputs)  # which are read twice
        estimated = with_estimated_prior(classifier, inputs, jobs)
        return question._replace(classifier=estimated, inputs=inputs)
    shares = stated_prior(prior, classifier.classes, classifier.prior)
    return question._replace(classifier=with_prior(classifier, shares))


def asked_of(
    classifier: "AnyClassifier",
    sources: Iterable[str],
    reading: SourceOptions,
    decision: Decision,
) -> Asked:
    """Return what a classifier is to be asked, under the costs that are stated."""
    rule = rule_of(decision, classifier)
    inputs = inputs_of(classifier, sources, reading)
    return Asked(classifier, rule, inputs, None if decision == Decision() else rule)


def inputs_of(
    classifier: "AnyClassifier",
    sources: Iterable[str],
    reading: SourceOptions,
    labels: Labels = _NO_LABELS,
) -> "Iterator[Item | Record]":
    """Return what a classifier can judge: rows for the model of a table, else items."""
    schema = schema_of(classifier)
    if schema is None:
        return items_of(sources, knowing(reading, classifier), labels)
    return records_of(sources, reading, labels, schema)


def knowing(reading: SourceOptions, model: Any) -> SourceOptions:
    """Return how sources are read for a model of mail or text: it remembers its columns."""
    return as_learned(reading, model.settings)
