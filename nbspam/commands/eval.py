"""nbspam eval: how good a model, or a kind of model, is on labelled mail."""

from typing import Any

import click

from nbspam.commands import tables
from nbspam.commands.shared import (
    cores,
    echo_json,
    format_options,
    jobs_option,
    json_option,
    label_options,
    model_option,
    peek,
    read_sources,
    report_skipped,
    settings_for,
    sources_argument,
    strict_option,
    training_options,
)
from nbspam.errors import UsageError


@click.command("eval")
@sources_argument
@model_option
@click.option("--cv", type=int, metavar="K", help="Cross-validate in K stratified folds.")
@click.option("--test", "test_source", metavar="SOURCE", help="Train on SOURCE, test on this one.")
@click.option("--online", is_flag=True, help="Classify each message, then learn from it.")
@click.option(
    "--policy",
    type=click.Choice(["everything", "errors", "near"]),
    help="Online: what is learned; near: errors and near misses.  [default: everything]",
)
@click.option(
    "--order",
    type=click.Choice(["given", "name", "date"]),
    help="Online: the order of messages.  [default: given; by the number in the file's"
    " name where one class stands behind the other]",
)
@click.option("--intervals", is_flag=True, help="Bootstrap 95 % intervals of the numbers.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Of folds and intervals.",
)
@label_options
@format_options
@training_options
@tables.table_options
@jobs_option
@strict_option
@json_option
def command(
    sources: tuple[str, ...],
    model_path: str,
    cv: int | None,
    test_source: str | None,
    online: bool,
    policy: str | None,
    order: str | None,
    intervals: bool,
    seed: int,
    jobs: int | None,
    strict: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure accuracy, with a classification report, on labelled mail.

    Without --cv, --test or --online the model file is judged.  With one of them a new
    model is trained, no model file is read or written, and the options of `nbspam
    train` apply.

    \b
    nbspam eval mails/
    nbspam eval mails/ --cv 10
    nbspam eval mails/train --test mails/test
    nbspam eval trec/index --online
    nbspam eval iris.csv --target species --cv 10
    """
    import numpy as np

    from nbspam import validation
    from nbspam.loading import load
    from nbspam.report import evaluation_json, evaluation_text

    trained = _is_trained(cv, test_source, online)
    if not online and (policy or order):
        raise UsageError(f"{'--policy' if policy else '--order'}: only online; add --online")
    rng = np.random.default_rng(seed) if intervals else None
    form = {name: options[name] for name in ("format_", "text_column", "label_column")}
    if not trained:
        classifier = load(model_path)
        questions = tables.read_questions(classifier, sources, options)
        given = ", ".join(name for name, value in options.items() if value not in (None, ()))
        if given:
            raise UsageError(f"{given}: only for training; add --cv K, --test SOURCE or --online")
        outcome = validation.judge_classifier(classifier, questions, cores(jobs), rng)
    elif tables.is_table(options):
        if online:
            raise UsageError("--online: for mail and text; judge a table by --cv K")
        outcome = tables.evaluate(sources, options, strict, cv, test_source, seed, rng)
    else:
        tables.without_table_options(options)
        items = read_sources(sources, options)
        is_text, items = peek(items)
        settings = settings_for(is_text, options)
        if online:
            how = policy or "everything"
            outcome = validation.judge_online(items, settings, how, order, cores(jobs), rng)
        elif cv is not None:
            outcome = validation.judge_folds(items, settings, cv, seed, cores(jobs), rng)
        else:
            test_items = read_sources([str(test_source)], form)
            outcome = validation.judge_split(items, test_items, settings, cores(jobs), rng)
    report_skipped(outcome.skipped, strict)
    if as_json:
        echo_json(evaluation_json(outcome.evaluation), indent=2)
    else:
        click.echo(evaluation_text(outcome.evaluation))


def _is_trained(cv: int | None, test_source: str | None, online: bool) -> bool:
    """Return whether a new model is judged, in one of three ways; raises UsageError."""
    ways = {"--cv": cv is not None, "--test": test_source is not None, "--online": online}
    chosen = [name for name, is_given in ways.items() if is_given]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(chosen)}: one judges without the other; give one of them")
    return bool(chosen)
