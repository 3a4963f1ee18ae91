"""nbspam eval: the quality of a model, or of a way of training, on labelled mail."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import click

from nbspam.cli.arguments import (
    inputs_of,
    items_of,
    loaded,
    loaded_whole,
    records_of,
    table_of,
    table_settings_of,
)
from nbspam.cli.command import Command, titled
from nbspam.cli.decisions import trial_under
from nbspam.cli.frame.pages import Page, check_page, page_options, write_page
from nbspam.cli.options import (
    JUDGING,
    Decision,
    Labels,
    decision_options,
    engine_option,
    filling,
    jobs_option,
    json_option,
    label_options,
    model_option,
    prior_or_estimated_option,
    reading_options,
    seed_option,
    sources_argument,
    strict_option,
)
from nbspam.cli.output import (
    check_place,
    echo_json,
    echo_rows,
    report_lack,
    report_skipped,
    warn,
    write_rows,
)
from nbspam.cli.tables import refuse_engine
from nbspam.cli.training_options import table_options, training_options
from nbspam.cli.values import FOLDS, Shares
from nbspam.errors import UsageError
from nbspam.settings import Choices, TableChoices, is_for_table, option_name, settings_for
from nbspam.sources.items import Item, SourceOptions

if TYPE_CHECKING:
    from nbspam.evaluation.trial import Trial
    from nbspam.evaluation.witness import Witness
    from nbspam.parallel import Workers
    from nbspam.sources.records import Record
    from nbspam.tables.schema import Schema
    from nbspam.tables.training import TableSettings

T = TypeVar("T")


class Way(NamedTuple):
    """How a new model is trained and judged; without any of it a model file is judged."""

    cv: int | str | None = None
    test: str | None = None
    online: bool = False
    policy: str | None = None
    order: str | None = None


class Corpus(NamedTuple):
    """Labelled sources, and how they are read."""

    sources: tuple[str, ...]
    labels: Labels
    reading: SourceOptions


class How(NamedTuple):
    """How documents are judged, and what is kept of it for pictures and pages."""

    way: Way
    seed: int
    with_curve: bool  # of learning
    witness: "Witness | None"  # for a page

    def watched(self, inputs: "Iterable[T]") -> "Iterable[T]":
        """Return inputs, which the witness sees if there is one."""
        return inputs if self.witness is None else self.witness.watched(inputs)


way_options = filling(
    Way,
    "way",
    JUDGING,
    click.option(
        "--cv",
        type=FOLDS,
        metavar="K|loo",
        help="Cross-validate a new model in K stratified folds; loo leaves out one document at"
        " a time.",
    ),
    click.option("--test", metavar="SOURCE", help="Train on the first SOURCE, test on this one."),
    click.option(
        "--online",
        is_flag=True,
        help="Start with a model that knows nothing; classify each message, then learn it.",
    ),
    click.option(
        "--policy",
        type=click.Choice(["everything", "error", "near"]),
        help="With --online: learn every message, those that were classified wrongly, or those"
        " and the near misses.  [default: everything]",
    ),
    click.option(
        "--order",
        type=click.Choice(["given", "name", "date", "shuffled"]),
        help="With --online: the order of messages, as given, by the number in the file name, by"
        " date, or drawn by --seed.  [default: given in an index, a table or a mailbox; of"
        " folders by name if that mixes the classes, else shuffled]",
    ),
)


@click.command("eval", cls=Command)
@sources_argument
@model_option
@way_options
@titled(
    JUDGING,
    click.option("--intervals", is_flag=True, help="Add 95 % bootstrap intervals of all numbers."),
    seed_option("folds, orders and intervals"),
    click.option(
        "--errors",
        metavar="FILE",
        help="Write what was answered wrongly to FILE, or with - below the report: a line with"
        " answer, given class, probability of the answer, and name, the surest mistakes first.",
    ),
    click.option(
        "--plot",
        metavar="FILE",
        help="Draw curves of errors, calibration, scores and learning into a .png or .svg file,"
        " or with - on this terminal.",
    ),
)
@page_options("how many of a hundred spams are caught, what that means a week, and what was wrong")
@decision_options
@prior_or_estimated_option
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
    model_path: str,
    way: Way,
    intervals: bool,
    seed: int,
    errors: str | None,
    plot: str | None,
    page: Page,
    decision: Decision,
    prior: Shares | str | None,
    labels: Labels,
    reading: SourceOptions,
    training: Choices,
    columns: TableChoices,
    jobs: "Workers",
    strict: bool,
    as_json: bool,
) -> None:
    """Measure the accuracy of a model on labelled mail, and print a classification report.

    Without --cv, --test or --online, the model file is judged.  With one of them a new model
    is trained by the options of `nbspam train`, and no model file is read or written.  The
    options of costs and --prior mean the same as for `nbspam classify`.

    \b
    nbspam eval mails/
    nbspam eval mails/ --cv 10 --intervals
    nbspam eval mails/train --test mails/test --plot picture.png
    nbspam eval mails/ --cv 10 --report report.html --per-week 300
    nbspam eval trec/index --online --plot -
    nbspam eval iris.csv --target species --cv 10
    """
    from nbspam.evaluation.report import trial_json, trial_text

    for option, path in (("--plot", plot), ("--errors", errors)):
        if path == "-" and as_json:
            raise UsageError(f"{option} -: not beside --json; give a file's name")
        if path is not None:
            check_place(option, path)
    check_page(*page)
    draw = None if plot is None else _drawing(plot, _described(sources, way))
    how = How(way, seed, bool(plot or page.report), _witness() if page.report else None)
    corpus = Corpus(sources, labels, reading)
    if not _is_new(way):
        _refuse(training, columns)
        trial = _trial_of_model(model_path, corpus, how, jobs)
    elif is_for_table(training, columns):
        settings = table_settings_of(training, columns)
        trial = _trial_of_table(corpus, settings, how, strict, jobs)
    else:
        trial = _trial_of_items(corpus, training, how, jobs)
    trial = trial_under(trial, prior, decision)
    report_skipped(trial.skipped, strict)
    interval_seed = seed if intervals else None
    if as_json:
        echo_json(trial_json(trial, interval_seed))
    else:
        click.echo(trial_text(trial, interval_seed))
    if errors is not None:
        _list_errors(trial, errors)
    if draw is not None:
        draw(trial)
    if page.report is not None and how.witness is not None:
        from nbspam.evaluation.pages.quality import quality_page

        what = _described(sources, way)
        write_page(
            page.report, quality_page(trial, how.witness, what, page.per_week, interval_seed)
        )


def _list_errors(trial: "Trial", path: str) -> None:
    """Write the wrong answers to a file, or to standard output for "-"; raises InputError."""
    rows = (mistake.row() for mistake in trial.mistakes())
    if path == "-":
        echo_rows(rows)
    else:
        write_rows(rows, "--errors", path)


def _is_new(way: Way) -> bool:
    """Return whether a new model is judged, in one of three ways; raises UsageError."""
    ways = {"--cv": way.cv is not None, "--test": way.test is not None, "--online": way.online}
    given = [name for name, is_given in ways.items() if is_given]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)}: two ways to judge; give one of them")
    if not way.online and (way.policy or way.order):
        raise UsageError(f"{'--policy' if way.policy else '--order'}: only online; add --online")
    return bool(given)


def _refuse(training: Choices, columns: TableChoices) -> None:
    """Raise UsageError for options of training, where a model file is judged."""
    given = ", ".join(map(option_name, [*training.given, *columns.given]))
    if given:
        raise UsageError(f"{given}: only for training; add --cv K, --test SOURCE or --online")


def _witness() -> "Witness":
    from nbspam.evaluation.witness import Witness

    return Witness()


def _trial_of_model(model_path: str, corpus: Corpus, how: How, jobs: "Workers") -> "Trial":
    from nbspam.evaluation.judging.single import judge_classifier

    classifier = loaded(model_path)
    report_lack(classifier)
    inputs = inputs_of(classifier, corpus.sources, corpus.reading, corpus.labels)
    remembering = loaded_whole(model_path) if how.with_curve else None
    return judge_classifier(classifier, how.watched(inputs), jobs, remembering, how.witness)


def _trial_of_items(corpus: Corpus, training: Choices, how: How, jobs: "Workers") -> "Trial":
    from nbspam.evaluation.judging import held_out, single

    way, seed, with_curve, witness = how
    items: Iterable[Item] = items_of(corpus.sources, corpus.reading, corpus.labels)
    if way.test is None:
        items = how.watched(items)
    settings, items = settings_for(items, training, corpus.reading.listener)
    if way.online:
        policy = way.policy or "everything"
        return held_out.judge_online(items, settings, policy, way.order, seed, jobs, witness)
    if way.cv is not None:
        return held_out.judge_folds(items, settings, way.cv, seed, jobs, with_curve, witness)
    reading = corpus.reading._replace(learned=settings.columns)
    test_items = how.watched(items_of([str(way.test)], reading))
    return single.judge_split(items, test_items, settings, jobs, with_curve, witness)


def _trial_of_table(
    corpus: Corpus, settings: "TableSettings", how: How, strict: bool, jobs: "Workers"
) -> "Trial":
    from nbspam.evaluation.judging import held_out, single

    way, seed, with_curve, witness = how
    if way.online:
        raise UsageError("--online: for mail and text; judge a table by --cv K")
    data = table_of(corpus.sources, corpus.reading, corpus.labels, settings, strict)
    if way.cv is not None:
        return held_out.table_trial(data.table, settings, way.cv, seed, with_curve, jobs, witness)

    refuse_engine(jobs)

    def test_records(schema: "Schema") -> "Iterator[Record]":
        return records_of([str(way.test)], corpus.reading, schema=schema)

    return single.judge_table_split(data.table, settings, test_records, with_curve, witness)


def _described(sources: tuple[str, ...], way: Way) -> str:
    """Return what is judged, and how, for the title of a picture."""
    ways = {
        f"--cv {way.cv}": way.cv is not None,
        f"--test {way.test}": way.test is not None,
        "--online": way.online,
    }
    return " ".join([*sources, *(name for name, is_given in ways.items() if is_given)])


def _drawing(path: str, what: str) -> "Callable[[Trial], None]":
    """Return a function that draws a trial; raises UsageError before any work is done.

    what: is judged, for the title.
    """
    from nbspam.evaluation.pictures.curves import views_of

    if path == "-":
        from nbspam.evaluation.pictures.terminal import sketch

        return lambda trial: click.echo(sketch(views_of(trial)))
    from nbspam.evaluation.pictures.files import check, draw

    check(path)

    def to_file(trial: "Trial") -> None:
        if note := draw(views_of(trial), path, what):
            warn(note)

    return to_file
