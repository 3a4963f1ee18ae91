"""nbspam lazy: answers from a labelled corpus, counted when the question comes."""

from typing import Any

import click

from nbspam.cli import tables
from nbspam.cli.arguments import cores, decision_rule
from nbspam.cli.learning import learn
from nbspam.cli.options import (
    decision_options,
    format_options,
    jobs_option,
    json_option,
    training_options,
)
from nbspam.cli.output import echo_rows, json_line, report_skipped, verdict_json


@click.command("lazy")
@click.argument("corpus")
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@decision_options
@format_options
@training_options
@tables.table_options
@jobs_option
@json_option
def command(
    corpus: str, sources: tuple[str, ...], jobs: int | None, as_json: bool, **options: Any
) -> int:
    """Classify by a labelled CORPUS, without a model file.

    Lazy learning: the corpus is counted anew when the question comes, so that what was
    added or taken away since needs no training.  The answers are, to the bit, those of
    `nbspam train CORPUS` and `nbspam classify`.

    \b
    nbspam lazy mails/ message.eml
    nbspam lazy iris.csv new.csv --target species
    """
    from nbspam.verdicts import Skipped

    reading = {name: options[name] for name in ("format_", "text_column", "label_column")}
    decisions = {name: options.pop(name) for name in ("fp_cost", "unsure_cost", "loss_path")}
    classifier = _counted(corpus, options, cores(jobs))
    rule = decision_rule(classifier, decisions)
    n_skipped = 0
    for verdict in classifier.classify(
        tables.read_questions(classifier, sources, reading), cores(jobs), rule
    ):
        if isinstance(verdict, Skipped):
            n_skipped += 1
            report_skipped([verdict])
        elif as_json:
            click.echo(json_line(verdict_json(verdict)))
        else:
            echo_rows([(verdict.label, f"{verdict.probability:.6f}", verdict.name)])
    return 1 if n_skipped else 0


def _counted(corpus: str, options: dict[str, Any], jobs: int) -> Any:
    """Return the classifier of a corpus, as `nbspam train` makes it."""
    if tables.is_table(options):
        from nbspam.tables.training import train_table

        data, settings = tables.read_training((corpus,), options, strict=False)
        return train_table(data.table, settings)
    tables.without_table_options(options)
    return learn((corpus,), options, jobs).classifier
