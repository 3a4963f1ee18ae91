"""nbspam lazy: classify by a labelled corpus that is counted when the question comes."""

from typing import TYPE_CHECKING

import click

from nbspam.cli.arguments import asked_of, table_of, table_settings_of
from nbspam.cli.command import Command
from nbspam.cli.learning import learn
from nbspam.cli.options import (
    Decision,
    Labels,
    decision_options,
    jobs_option,
    json_option,
    reading_options,
    sources_argument,
)
from nbspam.cli.output import Successes, echo_verdicts
from nbspam.cli.training_options import table_options, training_options
from nbspam.settings import Choices, TableChoices, is_for_table
from nbspam.sources.items import SourceOptions

if TYPE_CHECKING:
    from nbspam.answering import AnyClassifier


@click.command("lazy", cls=Command)
@click.argument("corpus")
@sources_argument
@decision_options
@reading_options
@training_options
@table_options
@jobs_option
@json_option
def command(
    corpus: str,
    sources: tuple[str, ...],
    decision: Decision,
    reading: SourceOptions,
    training: Choices,
    columns: TableChoices,
    jobs: int,
    as_json: bool,
) -> int:
    """Classify by a labelled CORPUS, without a model file.

    This is lazy learning: every call counts the corpus anew, so messages that were added or
    removed since need no training.  The answers are, bit by bit, those of `nbspam train
    CORPUS` and `nbspam classify`.

    \b
    nbspam lazy mails/ message.eml
    nbspam lazy iris.csv new.csv --target species
    """
    classifier = _trained(corpus, reading, training, columns, jobs)
    question = asked_of(classifier, sources, reading, decision)
    successes = Successes()
    verdicts = classifier.classify(question.inputs, jobs, question.rule)
    echo_verdicts(successes.of(verdicts), as_json, question.costs)
    return successes.status


def _trained(
    corpus: str, reading: SourceOptions, training: Choices, columns: TableChoices, jobs: int
) -> "AnyClassifier":
    """Return the classifier that `nbspam train` makes of a corpus."""
    if is_for_table(training, columns):
        from nbspam.tables.training import train_table

        settings = table_settings_of(training, columns)
        table = table_of([corpus], reading, Labels(), settings).table
        return train_table(table, settings)
    return learn([corpus], reading, Labels(), training, jobs).classifier
