"""nbspam compare: several ways of training, judged on the same folds."""

import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from nbspam.cli.arguments import items_of, table_of, table_settings_of
from nbspam.cli.command import Command, titled
from nbspam.cli.decisions import rule_of
from nbspam.cli.frame.pages import Page, check_page, page_options, write_page
from nbspam.cli.options import (
    JUDGING,
    Decision,
    Labels,
    decision_options,
    engine_option,
    folds_option,
    jobs_option,
    json_option,
    label_options,
    reading_options,
    seed_option,
    sources_argument,
    strict_option,
)
from nbspam.cli.output import echo_json, report_skipped
from nbspam.cli.training_options import table_options, training_options
from nbspam.cli.values import reason
from nbspam.errors import UsageError
from nbspam.settings import Choices, TableChoices, is_for_table
from nbspam.sources.items import SourceOptions

if TYPE_CHECKING:
    from nbspam.evaluation.comparison import Compared, Comparison
    from nbspam.parallel import Workers


@click.command("compare", cls=Command)
@sources_argument
@titled(
    JUDGING,
    click.option(
        "--against",
        "others",
        multiple=True,
        required=True,
        metavar="'OPTIONS'",
        help="Other options of `nbspam train`, in quotes; may be given several times.",
    ),
    folds_option,
    click.option(
        "--online",
        is_flag=True,
        help="Instead of folds, start with models that know nothing, judge each message before"
        " it is learned, and compare ten parts of the stream.",
    ),
    seed_option("folds and orders"),
)
@page_options("the ways of training side by side")
@decision_options
@label_options
@reading_options
@training_options
@table_options
@jobs_option
@engine_option
@strict_option
@json_option
def command(
    sources: tuple[str, ...],
    others: tuple[str, ...],
    cv: int | str,
    online: bool,
    seed: int,
    page: Page,
    decision: Decision,
    labels: Labels,
    reading: SourceOptions,
    training: Choices,
    columns: TableChoices,
    jobs: "Workers",
    strict: bool,
    as_json: bool,
) -> None:
    """Compare ways of training on labelled mail: folds won, tied and lost.

    A is trained by the options of `nbspam train` that are given here, and B by those in
    --against.  Both judge the same documents in the same folds, and in every line less is
    better.  p is the probability that chance alone splits as unevenly the documents that
    only one of them gets right.

    \b
    nbspam compare mails/ --against '--pairs'
    nbspam compare mails/ --against '--model multinomial --alpha 0.01'
    nbspam compare texts.csv --model complement --against '--alpha 1' --cv 5
    nbspam compare iris.csv --target species --against '--model aode'
    """
    from nbspam.evaluation.comparison import compare_items, compare_tables
    from nbspam.sources.order import ORDERS

    source = click.get_current_context().get_parameter_source("cv")
    if online and source is click.core.ParameterSource.COMMANDLINE:
        raise UsageError("--cv and --online: two ways to judge; give one of them")
    check_page(*page)
    several = [(training, columns), *map(_parsed, others)]
    rule = partial(rule_of, decision)
    if columns.target is None:
        for each in several:
            is_for_table(*each)  # refuses options of tables
        items = items_of(sources, reading, labels)
        choices = [choices for choices, _ in several]
        compared = compare_items(items, choices, None if online else cv, seed, rule, jobs)
    elif online:
        raise UsageError("--online: for mail and text; compare on a table by --cv K")
    else:
        tables = []
        for number, (each_training, each_columns) in enumerate(several):
            each_columns = each_columns._replace(target=columns.target)
            settings = table_settings_of(each_training, each_columns)
            is_quiet = number > 0  # the same rows are read again; warn of them only once
            data = table_of(sources, reading, labels, settings, strict, is_quiet)
            tables.append((data.table, settings))
        compared = compare_tables(tables, cv, seed, rule, jobs)
    report_skipped(compared.skipped, strict)
    first = _spelt(training, columns) or "the defaults"
    if page.report is not None:
        from nbspam.evaluation.pages.compared import compared_page

        what = " ".join(sources)
        write_page(page.report, compared_page(compared, [first, *others], what, page.per_week))
    if as_json:
        for pair in zip(others, compared.comparisons, strict=True):
            echo_json({**_values(*pair), "order": compared.order})
        return
    pieces = f"stretches, {ORDERS[compared.order]}" if compared.order else "folds"
    for other, comparison in zip(others, compared.comparisons, strict=True):
        judged = f"{comparison.n_docs:,} {compared.noun}, {comparison.n_folds} {pieces}"
        click.echo(_text([f"A  {first}", f"B  {other}", judged], comparison, compared))


@click.command("training", add_help_option=False)
@training_options
@table_options
def _training(training: Choices, columns: TableChoices) -> tuple[Choices, TableChoices]:
    """Return the options of training; only `_parsed` runs this command."""
    return training, columns


def _parsed(text: str) -> tuple[Choices, TableChoices]:
    """Return the choices that a string of options states; raises UsageError."""
    try:
        context = _training.make_context("--against", shlex.split(text))
    except (ValueError, click.UsageError) as error:
        wrong = reason(error) if isinstance(error, click.UsageError) else str(error)
        raise UsageError(
            f"--against '{text}': {wrong.rstrip('.')}; give options of `nbspam train`, in quotes"
        ) from None
    training, columns = _training.invoke(context)
    if columns.target is not None:
        raise UsageError("--against: --target is for all alike; give it outside the quotes")
    return training, columns


def _spelt(training: Choices, columns: TableChoices) -> str:
    """Return the options of training that are given, as on a command line."""
    given = {**training.given, **columns.given}
    words: list[str] = []
    for parameter in _training.params:
        if parameter.name in given:
            words += _words(parameter, given[parameter.name])
    return " ".join(words)


def _words(parameter: click.Parameter, value: object) -> Iterator[str]:
    if isinstance(value, bool):
        yield parameter.opts[0] if value else parameter.secondary_opts[0]
        return
    values: Sequence[object] = (
        value if parameter.multiple and isinstance(value, tuple) else [value]
    )
    for each in values:
        parts = each if isinstance(each, tuple) else (each,)
        text = ",".join(f"{p:g}" if isinstance(p, float) else str(p) for p in parts)
        yield f"{parameter.opts[0]} {text}"


def _text(head: list[str], comparison: "Comparison", compared: "Compared") -> str:
    """Return a comparison as text; head: its first lines."""
    from nbspam.evaluation.report import error_names, short
    from nbspam.printing import display_width, left

    names = error_names(compared.classes, compared.noun)
    width = max([18, *map(display_width, names.values())])
    lines = [
        *head,
        "",
        f"{'':{width}}{'A':>12}{'B':>12}{'B - A':>12}{'B won':>9}{'tied':>6}{'lost':>6}",
    ]
    for name, a, b, won, tied, lost in comparison.differences:
        values = "".join(f"{short(value):>12}" for value in (a, b))
        values += f"{short(b - a, '+'):>12}"
        lines.append(f"{left(names.get(name, name), width)}{values}{won:>9}{tied:>6}{lost:>6}")
    lines += [
        "",
        f"only A right {comparison.only_first_right}, only B right"
        f" {comparison.only_second_right}: p = {comparison.p_value:.3g}",
        "",
    ]
    return "\n".join(lines)


def _values(other: str, comparison: "Comparison") -> dict[str, object]:
    """Return a comparison for JSON."""
    return {
        "against": other,
        "n_docs": comparison.n_docs,
        "n_folds": comparison.n_folds,
        "differences": [each._asdict() for each in comparison.differences],
        "only_first_right": comparison.only_first_right,
        "only_second_right": comparison.only_second_right,
        "p_value": comparison.p_value,
    }
