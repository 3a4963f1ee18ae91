"""nbspam compare: two ways of training, fold by fold on the same folds."""

import shlex
from typing import Any

import click

from nbspam.cli import tables
from nbspam.cli.arguments import (
    are_many,
    cores,
    decision_rule,
    peek,
    read_sources,
    settings_for,
)
from nbspam.cli.options import (
    decision_options,
    format_options,
    jobs_option,
    json_option,
    label_options,
    sources_argument,
    strict_option,
    training_options,
)
from nbspam.cli.output import echo_json, report_skipped
from nbspam.errors import UsageError


@click.command("compare")
@sources_argument
@click.option(
    "--against",
    "others",
    multiple=True,
    required=True,
    metavar="'OPTIONS'",
    help="Other options of `nbspam train`, in quotes; may be given several times.",
)
@click.option("--cv", type=int, default=10, show_default=True, metavar="K", help="In K folds.")
@click.option("--online", is_flag=True, help="As `nbspam eval --online`, in ten stretches.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="N",
    default=0,
    show_default=True,
    help="Of folds.",
)
@decision_options
@label_options
@format_options
@training_options
@tables.table_options
@jobs_option
@strict_option
@json_option
def command(
    sources: tuple[str, ...],
    others: tuple[str, ...],
    cv: int,
    online: bool,
    seed: int,
    jobs: int | None,
    strict: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Compare ways of training on labelled mail: won, tied and lost, fold by fold.

    A is what the options of `nbspam train` given here mean, the defaults without any;
    B is the same for those in --against.  Both judge the same documents in the same
    folds, and less is better in every line.  p is how likely chance alone would part
    as unevenly the documents that only one of them gets right.

    \b
    nbspam compare mails/ --against '--pairs'
    nbspam compare mails/ --against '--model multinomial --alpha 0.01'
    nbspam compare texts.csv --model complement --against '--alpha 1' --cv 5
    nbspam compare iris.csv --target species --against '--model aode'
    """
    from dataclasses import replace

    from nbspam.evaluation.comparison import compare

    costs = {name: options.pop(name) for name in ("fp_cost", "unsure_cost", "loss_path")}
    first_options = _spelt(options)
    chosen = [options, *map(_choices, others)]
    if not tables.is_table(options):
        trials = _trials(sources, chosen, None if online else cv, seed, cores(jobs))
    elif online:
        raise UsageError("--online: for mail and text; compare on a table by --cv K")
    else:
        trials = tables.trials(sources, chosen, strict, cv, seed)
    report_skipped(trials[0].skipped, strict)
    rule = decision_rule(trials[0], costs)  # the same prices for all
    first, *rest = (replace(each, rule=rule) for each in trials)
    comparisons = [compare(first, each) for each in rest]
    if as_json:
        echo_json([_values(*pair) for pair in zip(others, comparisons, strict=True)], indent=2)
    else:
        for other, comparison in zip(others, comparisons, strict=True):
            pieces = "stretches" if online else "folds"
            click.echo(_text(first_options or "the defaults", other, comparison, pieces))


def _trials(
    sources: tuple[str, ...], chosen: list[dict[str, Any]], cv: int | None, seed: int, jobs: int
) -> Any:
    """Return the answers to the same mail or text of several ways of training."""
    from nbspam.evaluation.judging import judge_several

    is_text, items = peek(read_sources(sources, chosen[0]))
    many, items = are_many(items)
    settings = []
    for choices in chosen:
        if tables.is_table(choices):
            raise UsageError("--against: --target is for all alike; give it outside the quotes")
        tables.without_table_options(choices)
        settings.append(settings_for(is_text, choices, many))
    return judge_several(items, settings, cv, seed, jobs)


def _spelt(options: dict[str, Any]) -> str:
    """Return those of training's options that are given, as one would write them."""
    words = []
    for parameter in _training.params:
        name, value = str(parameter.name), options[str(parameter.name)]
        option = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{'' if value else 'no-'}{option}")
        elif value is not None:
            values = value if isinstance(value, tuple) else (value,)
            words += [f"--{option} {each}" for each in values]
    return " ".join(words)


def _choices(text: str) -> dict[str, Any]:
    """Return the training options that a string of options holds; raises UsageError."""
    try:
        words = shlex.split(text)
        return _training.make_context("--against", words).params
    except (ValueError, click.UsageError) as error:
        reason = error.format_message() if isinstance(error, click.UsageError) else str(error)
        raise UsageError(
            f"--against '{text}': {reason.rstrip('.')}; give options of `nbspam train`, in quotes"
        ) from None


@click.command("training", add_help_option=False)
@training_options
@tables.table_options
def _training(**_: Any) -> None:
    """Hold the training options; never run."""


def _text(first: str, second: str, comparison: Any, pieces: str) -> str:
    """Return a comparison for people."""
    lines = [
        f"A  {first}",
        f"B  {second}",
        f"{comparison.n_docs:,} documents, {comparison.n_folds} {pieces}",
        "",
        f"{'':18}{'A':>12}{'B':>12}{'B - A':>12}{'B won':>9}{'tied':>6}{'lost':>6}",
    ]
    for name, a, b, won, tied, lost in comparison.differences:
        values = "".join(f"{_short(value):>12}" for value in (a, b))
        lines.append(f"{name:18}{values}{_short(b - a, '+'):>12}{won:>9}{tied:>6}{lost:>6}")
    lines += [
        "",
        f"only A right {comparison.only_first_right}, only B right"
        f" {comparison.only_second_right}: p = {comparison.p_value:.3g}",
        "",
    ]
    return "\n".join(lines)


def _short(value: float, sign: str = "") -> str:
    return f"{value:{sign},.0f}" if float(value).is_integer() else f"{value:{sign}.5f}"


def _values(other: str, comparison: Any) -> dict[str, Any]:
    return {
        "against": other,
        "n_docs": comparison.n_docs,
        "n_folds": comparison.n_folds,
        "differences": [each._asdict() for each in comparison.differences],
        "only_first_right": comparison.only_first_right,
        "only_second_right": comparison.only_second_right,
        "p_value": comparison.p_value,
    }
