"""nbspam eval: how good a model, or a kind of model, is on labelled mail."""

from collections.abc import Callable
from typing import Any

import click

from nbspam.cli import tables
from nbspam.cli.arguments import (
    ESTIMATED,
    are_many,
    cores,
    decision_rule,
    peek,
    prior_for,
    read_sources,
    settings_for,
)
from nbspam.cli.options import (
    decision_options,
    format_options,
    jobs_option,
    json_option,
    label_options,
    model_option,
    prior_option,
    sources_argument,
    strict_option,
    training_options,
)
from nbspam.cli.output import echo_json, report_skipped
from nbspam.errors import UsageError


@click.command("eval")
@sources_argument
@model_option
@click.option("--cv", type=int, metavar="K", help="Cross-validate in K stratified folds.")
@click.option("--test", "test_source", metavar="SOURCE", help="Train on SOURCE, test on this one.")
@click.option("--online", is_flag=True, help="Classify each message, then learn from it.")
@click.option(
    "--policy",
    type=click.Choice(["everything", "error", "near"]),
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
    metavar="N",
    default=0,
    show_default=True,
    help="Of folds and intervals.",
)
@click.option(
    "--plot",
    metavar="FILE",
    help="Draw errors, calibration, scores and learning: .png or .svg; - for this terminal.",
)
@decision_options
@prior_option
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
    intervals: bool,
    seed: int,
    plot: str | None,
    stated: tuple[str, ...],
    jobs: int | None,
    strict: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure accuracy, with a classification report, on labelled mail.

    Without --cv, --test or --online the model file is judged.  With one of them a new
    model is trained, no model file is read or written, and the options of `nbspam
    train` apply.  Mail is decided on as by `nbspam classify`; its options of
    costs and --prior mean the same.

    \b
    nbspam eval mails/
    nbspam eval mails/ --cv 10 --intervals
    nbspam eval mails/train --test mails/test --plot picture.png
    nbspam eval trec/index --online --plot -
    nbspam eval iris.csv --target species --cv 10
    """
    from dataclasses import replace

    import numpy as np

    from nbspam.decision import estimate_prior, shares_of
    from nbspam.evaluation.report import evaluation_json, evaluation_text, shares_json, shares_text
    from nbspam.evaluation.trial import evaluation_of, under_prior

    if plot == "-" and as_json:
        raise UsageError("--plot -: not beside --json; give a file's name")
    drawing = None if plot is None else _drawing(plot)
    costs = {name: options.pop(name) for name in ("fp_cost", "unsure_cost", "loss_path")}
    trial = _trial(sources, model_path, options, seed, cores(jobs), strict, plot is not None)
    if stated == ESTIMATED:
        trial = under_prior(trial, estimate_prior(trial.probability, trial.prior))
    elif stated:
        trial = under_prior(trial, prior_for(stated, trial.classes, trial.prior))
    trial = replace(trial, rule=decision_rule(trial, costs))
    report_skipped(trial.skipped, strict)
    evaluation = evaluation_of(trial, np.random.default_rng(seed) if intervals else None)
    shares = shares_of(trial.probability, trial.y, trial.prior)
    if as_json:
        values = evaluation_json(evaluation)
        echo_json({**values, "shares": shares_json(shares, trial.classes)}, indent=2)
    else:
        click.echo(evaluation_text(evaluation))
        # Each text ends with a blank line, before a sketch or not.
        if text := shares_text(shares, trial.classes):
            click.echo(text)
    if drawing is not None:
        drawing(trial)


def _trial(
    sources: tuple[str, ...],
    model_path: str,
    options: dict[str, Any],
    seed: int,
    jobs: int,
    strict: bool,
    with_smaller: bool,
) -> Any:
    """Return the answers that are to be judged; takes out of `options` what says which."""
    from nbspam.evaluation import judging as validation
    from nbspam.store.open import load

    cv, test_source, online, policy, order = (
        options.pop(name) for name in ("cv", "test_source", "online", "policy", "order")
    )
    trained = _is_trained(cv, test_source, online)
    if not online and (policy or order):
        raise UsageError(f"{'--policy' if policy else '--order'}: only online; add --online")
    form = {name: options[name] for name in ("format_", "text_column", "label_column")}
    if not trained:
        classifier = load(model_path)
        questions = tables.read_questions(classifier, sources, options)
        given = ", ".join(
            f"--{name.replace('_', '-')}"
            for name, value in options.items()
            if value not in (None, ())
        )
        if given:
            raise UsageError(f"{given}: only for training; add --cv K, --test SOURCE or --online")
        return validation.judge_classifier(classifier, questions, jobs)
    if tables.is_table(options):
        if online:
            raise UsageError("--online: for mail and text; judge a table by --cv K")
        return tables.trial(sources, options, strict, cv, test_source, seed, with_smaller)
    tables.without_table_options(options)
    is_text, items = peek(read_sources(sources, options))
    many, items = are_many(items)
    settings = settings_for(is_text, options, many)
    if online:
        return validation.judge_online(items, settings, policy or "everything", order, jobs)
    if cv is not None:
        return validation.judge_folds(items, settings, cv, seed, jobs, with_smaller)
    test_items = read_sources([str(test_source)], form)
    return validation.judge_split(items, test_items, settings, jobs)


def _drawing(path: str) -> Callable[[Any], None]:
    """Return what draws a trial where it is wanted; raises UsageError before any work."""
    from nbspam.evaluation.pictures.curves import views_of

    if path == "-":
        from nbspam.evaluation.pictures.terminal import sketch

        return lambda trial: click.echo(sketch(views_of(trial)))
    from nbspam.evaluation.pictures.files import check, draw

    check(path)
    return lambda trial: draw(views_of(trial), path)


def _is_trained(cv: int | None, test_source: str | None, online: bool) -> bool:
    """Return whether a new model is judged, in one of three ways; raises UsageError."""
    ways = {"--cv": cv is not None, "--test": test_source is not None, "--online": online}
    chosen = [name for name, is_given in ways.items() if is_given]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(chosen)}: one judges without the other; give one of them")
    return bool(chosen)
