"""nbspam compare, of mail and of tables: several ways of training, judged on the same folds."""

import shlex
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from nbspam.cli import inputs, options, output
from nbspam.cli.frame import at_home, subcommand, titled
from nbspam.cli.training_options import columns_options, table_training_options, training_options
from nbspam.errors import UsageError
from nbspam.printing import amount_text, display_width, left
from nbspam.settings import SettingsChoices, TableChoices, decisions_made, first_is_text

if TYPE_CHECKING:
    from nbspam.evaluation.choosing import Compared, Comparison
    from nbspam.evaluation.evaluation import Trial
    from nbspam.workers import Workers


class ComparisonForm(NamedTuple):
    """The ways that are compared, the page and the form of the answer."""

    others: tuple[str, ...]
    report: str | None
    per_week: int | None
    strict: bool
    as_json: bool


form_options = options.filling(
    ComparisonForm,
    "form",
    options.JUDGING,
    click.option(
        "--against",
        "others",
        multiple=True,
        metavar="'OPTIONS'",
        help="Other options of training, in quotes; may be given several times.",
    ),
    *options.report_options("the ways of training side by side"),
    options.strict_option,
    options.json_option,
)


@subcommand("compare", "--against", "--cv", "--report", "--json")
@inputs.corpus_options
@titled(
    options.JUDGING,
    options.folds_option,
    click.option(
        "--online",
        is_flag=True,
        help="Judge each message before it is learned, by models that begin with nothing.  Ten"
        " parts of the stream are compared, instead of folds.",
    ),
    options.seed_option("folds and orders"),
)
@options.decision_options
@training_options
@options.workers_options
@form_options
def compare_command(
    corpus: inputs.LabelledSources,
    form: ComparisonForm,
    cv: int | str,
    online: bool,
    seed: int,
    decision: options.Decision,
    training: SettingsChoices,
    jobs: "Workers",
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
    """
    from nbspam.evaluation.choosing import compare_items

    if online and output.is_named("cv"):
        raise UsageError("--cv and --online: two ways to judge; give one of them")
    _check_against(form, decisions_made(training), "multinomial", "bernoulli")
    output.check_page(form.report)
    several = [training, *(_parsed(_training, text) for text in form.others)]
    _, items = first_is_text(corpus.items())
    if corpus.reading.listener.has_heard and len({way.preset == "mail" for way in several}) > 1:
        raise UsageError("--against: --preset mail says how tables are read; give it to all ways")
    rule = partial(options.rule_of, decision)
    compared = compare_items(items, several, None if online else cv, seed, rule, jobs)
    _show(compared, _spelt(_training, decisions_made(training)), corpus.sources, form)


@subcommand("table compare", "--target", "--against", "--cv", "--report")
@inputs.rows_options
@titled(options.JUDGING, options.folds_option, options.seed_option("folds"))
@options.decision_options
@columns_options(is_required=True)
@table_training_options
@options.workers_options
@form_options
def table_compare_command(
    rows: inputs.Rows,
    form: ComparisonForm,
    cv: int | str,
    seed: int,
    decision: options.Decision,
    columns: TableChoices,
    training: SettingsChoices,
    jobs: "Workers",
) -> None:
    """Compare ways of training on a table: folds won, tied and lost.

    A is trained by the options of `nbspam table train` that are given here, and B by those in
    --against.  Both judge the same rows in the same folds, and in every line less is better.
    p is the probability that chance alone splits as unevenly the rows that only one of them
    gets right.

    \b
    nbspam table compare iris.csv --target species --against '--model aode'
    """
    from nbspam.evaluation.choosing import against_first
    from nbspam.evaluation.judging import table_trial
    from nbspam.tables.training import read_table, table_settings

    _check_against(form, decisions_made(training), "aode", "tan")
    output.check_page(form.report)
    others = [_parsed(_table_training, text) for text in form.others]
    if any(given.target is not None for _, given in others):
        raise UsageError("--against: --target is for all alike; give it outside the quotes")
    several = [
        table_settings(each, given._replace(target=columns.target))
        for each, given in [(training, columns), *others]
    ]
    records = list(inputs.records_of(*rows))
    read = [read_table(records, settings) for settings in several]
    output.warn_of(read[0].notes)
    output.report_skipped(read[0].skipped, form.strict)
    trials = [
        table_trial(each.table, settings, cv, seed, jobs=jobs)
        for each, settings in zip(read, several, strict=True)
    ]
    compared = against_first(trials, partial(options.rule_of, decision))
    first = _spelt(_table_training, decisions_made(training) | decisions_made(columns))
    _show(compared, first, rows.sources, form)


def _check_against(form: ComparisonForm, given: dict[str, Any], *models: str) -> None:
    """Raise UsageError if there is nothing to compare with; propose one of two models."""
    if not form.others:
        other = models[given.get("model") == models[0]]
        raise UsageError(
            f"compare: one way of training; add another, such as: --against '--model {other}'"
        )


def _show(
    compared: "Compared", first: str, sources: tuple[str, ...], form: ComparisonForm
) -> None:
    """Print each comparison and write the page; first: the options of the first way."""
    from nbspam.sources.arrival import ORDERS

    names = [way.strip() or "the defaults" for way in (first, *form.others)]
    judged = compared.trials[0]  # what was read is the same for all
    output.report_skipped(judged.skipped, form.strict)
    if form.report is not None:
        from nbspam.evaluation.pages import compared_page

        page = compared_page(compared, names, " ".join(sources), form.per_week)
        output.write_text([page], "--report", form.report)
    if form.as_json:
        for other, each in zip(form.others, compared.comparisons, strict=True):
            facts = {**asdict(each), "differences": [one._asdict() for one in each.differences]}
            output.echo_json({"against": other, **facts, "order": judged.order})
        return
    pieces = f"stretches, {ORDERS[judged.order]}" if judged.order else "folds"
    texts = []
    for other, comparison in zip(names[1:], compared.comparisons, strict=True):
        size = f"{amount_text(comparison.n_docs, judged.noun)}, {comparison.n_folds} {pieces}"
        texts.append(_comparison_text([f"A  {names[0]}", f"B  {other}", size], comparison, judged))
    click.echo("\n\n".join(texts))


# --- the options in quotes -------------------------------------------------------------------


@click.command("train", add_help_option=False)
@training_options
def _training(training: SettingsChoices) -> SettingsChoices:
    return training


@click.command("table train", add_help_option=False)
@columns_options(is_required=False)
@table_training_options
def _table_training(
    training: SettingsChoices, columns: TableChoices
) -> tuple[SettingsChoices, TableChoices]:
    return training, columns


def _parsed(command: click.Command, text: str) -> Any:
    """Return the result of a command for a string of its options; raises UsageError."""
    try:
        context = command.make_context("--against", [*map(at_home, shlex.split(text))])
    except (ValueError, click.UsageError) as error:
        wrong = options.reason(error) if isinstance(error, click.UsageError) else str(error)
        raise UsageError(
            f"--against '{text}': {wrong.rstrip('.')}; give options of `nbspam {command.name}`,"
            " in quotes"
        ) from None
    return command.invoke(context)


def _spelt(command: click.Command, given: dict[str, Any]) -> str:
    """Return options that are given, as on the command line of a command."""
    words: list[str] = []
    for option in command.params:
        value = given.get(str(option.name))
        if isinstance(value, bool):
            words += option.opts[:1] if value else option.secondary_opts
        elif value is not None:
            values = value if option.multiple else [value]
            words += [f"{option.opts[0]} {_word(each)}" for each in values]
    return " ".join(words)


def _word(value: object) -> str:
    """Return a value of an option as it is written there."""
    match value:
        case float():
            return repr(value).removesuffix(".0")
        case (None, tuple(values)):
            return _word(values)
        case (name, tuple(values)):
            return f"{name}={_word(values)}"
        case tuple(values):
            return ",".join(map(_word, values))
    return str(value)


def _comparison_text(head: list[str], comparison: "Comparison", judged: "Trial") -> str:
    """Return a comparison as text; head: its first lines; judged: one of both trials."""
    from nbspam.evaluation.report import compared_names, short

    names = compared_names(judged.classes, judged.noun)
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
    ]
    return "\n".join(lines)
