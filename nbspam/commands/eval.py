"""nbspam eval: how good a model, or a kind of model, is on labelled mail."""

from typing import Any

import click

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
@click.option("--seed", type=int, default=0, show_default=True, help="Of the folds.")
@label_options
@format_options
@training_options
@jobs_option
@strict_option
@json_option
def command(
    sources: tuple[str, ...],
    model_path: str,
    cv: int | None,
    test_source: str | None,
    seed: int,
    jobs: int | None,
    strict: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure accuracy, with a classification report, on labelled mail.

    Without --cv or --test the model file is judged.  With them a new model is trained,
    and no file is read or written; the options of `nbspam train` apply.

    \b
    nbspam eval mails/
    nbspam eval mails/ --cv 10
    nbspam eval mails/train --test mails/test
    """
    from nbspam import validation
    from nbspam.report import evaluation_json, evaluation_text

    if cv is not None and test_source is not None:
        raise UsageError("--cv and --test: one judges without the other; give one of them")
    form = {name: options[name] for name in ("format_", "text_column", "label_column")}
    items = read_sources(sources, options)
    if cv is None and test_source is None:
        given = ", ".join(name for name, value in options.items() if value is not None)
        if given:
            raise UsageError(f"{given}: only for training; add --cv K or --test SOURCE")
        outcome = validation.judge_model(model_path, items, cores(jobs))
    else:
        is_text, items = peek(items)
        settings = settings_for(is_text, options)
        if cv is not None:
            outcome = validation.judge_folds(items, settings, cv, seed, cores(jobs))
        else:
            test_items = read_sources([str(test_source)], form)
            outcome = validation.judge_split(items, test_items, settings, cores(jobs))
    report_skipped(outcome.skipped, strict)
    if as_json:
        echo_json(evaluation_json(outcome.evaluation), indent=2)
    else:
        click.echo(evaluation_text(outcome.evaluation))
