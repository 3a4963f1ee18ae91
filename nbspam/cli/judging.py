"""nbspam classify, predict and explain: the answers of a model of mail or text, and why."""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from io import StringIO
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from nbspam.cli import inputs, options, output
from nbspam.cli.frame import subcommand
from nbspam.errors import UsageError
from nbspam.printing import clipped, display_width, finite, left, printable, readable_number, right
from nbspam.sources.files import TextColumns, listed

if TYPE_CHECKING:
    from nbspam.verdicts import AnyClassifier, Explanation, Skipped, Verdict

# bogofilter's exit statuses; `main` gives 3, for every failure.
EXIT_CODES = {"spam": 0, "ham": 1, "unsure": 2}
_WIDTH = 80  # columns of the terminal
_LONG = 1e9  # nats; larger numbers are shown with an exponent


# --- verdicts -------------------------------------------------------------------------------


class VerdictForm(NamedTuple):
    """The form in which verdicts are printed."""

    strict: bool
    as_json: bool
    null: bool
    as_csv: bool
    exit_code: bool


verdict_options = options.filling(
    VerdictForm,
    "form",
    options.strict_option,
    options.json_option,
    options.null_option,
    click.option(
        "--csv",
        "as_csv",
        is_flag=True,
        help="Print the tables among SOURCE as CSV, with the columns label and probability added.",
    ),
    click.option(
        "--exit-code",
        is_flag=True,
        help="Report one verdict by the exit status, and print nothing: 0 spam, 1 ham, 2 unsure,"
        " 3 failure.",
    ),
)


@subcommand("classify", "--model-file", "--json", "--fp-cost", "--unsure-cost")
@inputs.question_options(inputs.reading_options, options.prior_or_estimated_option)
@options.jobs_option
@verdict_options
def classify_command(question: inputs.Question, jobs: int, form: VerdictForm) -> int:
    """Print one line per message: label, probability, name.

    SOURCE is anything that `nbspam train` reads; labels are not needed.  Without SOURCE, or
    with -, the message comes from standard input.

    The label is the answer with the least expected cost.  A model of mail says spam from a
    probability of 2/3 (--fp-cost 2); other models say the most probable class.  With
    --unsure-cost the label may be unsure, and the probability is then that of spam.

    JSON also has the posterior probability of every class and, for models that combine
    evidence, as those of mail do, the score: the log-odds of the last class (spam) in nats.
    With --loss, --fp-cost or --unsure-cost it has the risk (expected cost) of every
    answer; the label is the answer with the least.

    \b
    nbspam classify message.eml
    nbspam classify ~/Maildir/new
    nbspam classify --fp-cost 20 --unsure-cost 0.2 ~/Maildir/new
    nbspam classify --exit-code < message.eml && echo spam
    nbspam classify --csv tickets.csv > answered.csv
    """
    return print_verdicts(question, jobs, form)


def print_verdicts(question: inputs.Question, jobs: int, form: VerdictForm) -> int:
    """Print verdicts in the form that was asked for; return the exit status."""
    strict, as_json, null, as_csv, exit_code = form
    output.refuse_two({"--json": as_json, "-0": null, "--csv": as_csv, "--exit-code": exit_code})
    if as_csv:
        rows = WaitingRows()
        reading = question.reading._replace(listener=rows)
        asked = inputs.asked_model(question._replace(reading=reading), jobs, rows.checked)
        results = asked.classifier.classify(asked.inputs, jobs, asked.rule)
        successes = output.Successes(strict)
        output.echo_lines(rows.lines(successes.all_of(results)))
        return successes.status
    asked = inputs.asked_model(question, jobs)
    if exit_code:
        return _exit_code(asked, jobs, strict)
    return print_answers(asked, jobs, as_json, strict, null)


def print_answers(
    asked: inputs.AskedModel, jobs: int, as_json: bool, strict: bool = False, null: bool = False
) -> int:
    """Print a line for each verdict; return the exit status.

    null: see `output.echo_named`.
    """
    successes = output.Successes(strict)
    verdicts = successes.of(asked.classifier.classify(asked.inputs, jobs, asked.rule))
    if as_json:
        output.echo_each_as_json(output.verdict_json(each, asked.costs) for each in verdicts)
    else:
        output.echo_named(((v.label, f"{v.probability:.6f}", v.name) for v in verdicts), null)
    return successes.status


def _exit_code(asked: inputs.AskedModel, jobs: int, strict: bool) -> int:
    """Return the exit status that stands for the label of the only message."""
    classifier, rule = asked.classifier, asked.rule
    given = {"the model's classes": classifier.classes, "the labels of --loss": rule.actions}
    for what, names in given.items():
        if not set(names) <= set(EXIT_CODES):
            raise UsageError(
                f"--exit-code: {what} are {', '.join(names)}; it is for ham, spam and unsure"
            )
    verdicts = output.Successes(strict).of(classifier.classify(asked.inputs, jobs, rule))
    labels = [verdict.label for verdict in verdicts]
    if len(labels) != 1:
        raise UsageError(f"--exit-code: {len(labels)} messages; give one message")
    return EXIT_CODES[labels[0]]


@subcommand("predict", "--model-file", "--json", "--fp-cost", "--prior")
@inputs.question_options(inputs.reading_options, options.prior_option)
@options.jobs_option
@options.json_option
def predict_command(question: inputs.Question, jobs: int, as_json: bool) -> int:
    """Print the label of every message, one per line, and nothing else.

    The labels are those of `nbspam classify`.  Line N is always the label of message N: for a
    message that cannot be read it is empty (in JSON, null), and the exit status is 1.

    \b
    nbspam predict message.eml
    nbspam predict tickets.csv | sort | uniq -c
    """
    return print_labels(question, jobs, as_json)


def print_labels(question: inputs.Question, jobs: int, as_json: bool) -> int:
    """Print a label for each input, or an empty line; return the exit status."""
    from nbspam.verdicts import Skipped

    reading = question.reading._replace(keeps_missing=True)
    asked = inputs.asked_model(question._replace(reading=reading))
    successes = output.Successes()
    results = successes.all_of(asked.classifier.classify(asked.inputs, jobs, asked.rule))
    labels = ((each.name, None if isinstance(each, Skipped) else each.label) for each in results)
    if as_json:
        output.echo_each_as_json({"name": name, "label": label} for name, label in labels)
    else:
        output.echo_rows((label or "",) for _, label in labels)
    return successes.status


# --- explanations ----------------------------------------------------------------------------


class ExplanationForm(NamedTuple):
    """The form in which explanations are printed, and the file of their page."""

    number: int  # of reasons
    brief: bool
    report: str | None
    strict: bool
    as_json: bool


explanation_options = options.filling(
    ExplanationForm,
    "form",
    options.number_option(20, "reasons per message or row"),
    click.option("--brief", is_flag=True, help="Print one short line per message or row."),
    options.report_option(
        "the reasons for each verdict, in the colour of the class they speak for"
    ),
    options.strict_option,
    options.json_option,
)


@subcommand("explain", "--model-file", "--number", "--brief", "--report")
@inputs.question_options(inputs.reading_options, options.prior_option)
@explanation_options
@options.tokens_option
def explain_command(question: inputs.Question, form: ExplanationForm, tokens: bool) -> int:
    """Show how much each reason adds to the score of a message, strongest first.

    The columns are the nats it adds (above 0 for the class that the score is for), the
    number of messages of each class that have it (or the sum of its weights in them), its
    kind, and the token.  Runs of characters are summed in the word or stretch of text where
    they stand.  All rows and the constant add up to the score, which is the log-odds of that
    class.  Where costs are stated, the expected cost of every answer follows.

    \b
    nbspam explain message.eml
    nbspam explain --brief < message.eml
    """
    return print_explanations(question, form, tokens)


def print_explanations(
    question: inputs.Question, form: ExplanationForm, tokens: bool = False
) -> int:
    """Print the evidence for each answer, and write the page; return the exit status.

    tokens: print single tokens instead of words.
    """
    output.check_page(form.report)
    output.refuse_two({"--brief": form.brief, "--json": form.as_json})
    asked = inputs.asked_model(question)
    successes = output.Successes(form.strict)
    page, given = None, asked.inputs
    if form.report is not None:
        from nbspam.evaluation.pages import Explained

        page = Explained(asked.classifier)
        given = page.watched(given)
    explained = successes.of(asked.classifier.explanations(given, asked.rule))
    if tokens:
        explained = (replace(e, evidence=e.tokens or e.evidence) for e in explained)
    if page is not None:
        explained = page.passing(explained)
    lines = _shown(explained, asked, form)
    if page is None or form.report is None:
        output.echo_lines(lines)
    else:
        with suppress(BrokenPipeError):
            output.echo_lines(lines)
        deque(lines, maxlen=0)  # the page shows them all, even if nobody reads on
        output.write_text([page.page()], "--report", form.report)
    return successes.status


def _shown(
    explained: "Iterable[Explanation]", asked: inputs.AskedModel, form: ExplanationForm
) -> Iterator[str]:
    if form.as_json:
        return explained_as_json(explained, asked, partial(explanation_json, number=form.number))
    if form.brief:
        return (each.brief(form.number) for each in explained)
    lines = partial(explanation_lines, number=form.number, classifier=asked.classifier)
    return explained_as_text(explained, asked, lines)


def explained_as_json(
    explained: Iterable[Any], asked: inputs.AskedModel, details: Callable[[Any], dict[str, object]]
) -> Iterator[str]:
    """Yield a line of JSON for each verdict, with details of it."""
    for each in explained:
        yield output.json_line({**output.verdict_json(each.verdict, asked.costs), **details(each)})


def explained_as_text(
    explained: Iterable[Any], asked: inputs.AskedModel, lines: Callable[[Any], Iterable[str]]
) -> Iterator[str]:
    """Yield the lines of each explanation, and of the risks if costs were stated."""
    for place, each in enumerate(explained):
        if place > 0:
            yield ""
        yield from lines(each)
        if asked.costs is not None:
            from nbspam.decision import risks

            costs = risks(each.verdict.posterior, asked.costs).items()
            for action, risk in sorted(costs, key=lambda item: item[1]):
                yield f"{risk:.6g}  expected cost of the answer {printable(action)}"


def explanation_lines(
    explanation: "Explanation", number: int, classifier: "AnyClassifier"
) -> Iterator[str]:
    """Yield the lines of an explanation, laid out for 80 columns."""
    from nbspam.decision import UNSURE
    from nbspam.sent_mail import fact_in_words

    verdict, classes = explanation.verdict, classifier.classes
    yield printable(
        f"{verdict.label}  probability {verdict.probability:.4f}"
        f"  score {_nats(explanation.score, 2)} for {explanation.towards}  {verdict.name}"
    )
    if explanation.score > 0 and verdict.label in {*classes, UNSURE} - {explanation.towards}:
        yield printable(f"{explanation.towards} is likelier, but not likely enough for that label")
    if explanation.kept < 1:
        yield (
            "unlike the mail that was learned (headers, links, markup):"
            f" evidence counts {100 * explanation.kept:.0f} %"
        )
    if explanation.by_beginning:
        yield "judged by its beginning: quoted words, or words far below, would lower its score"
    pair = sorted(map(classes.index, (explanation.towards, explanation.against)))
    column = "value" if classifier.noun == "rows" else "token"
    rows = [("nats", *(clipped(printable(classes[k]), 12) for k in pair), "kind", column)]
    strongest = explanation.strongest(number)
    for token, nats, group, counts in strongest:
        words = fact_in_words(token)
        said = printable(token) if words is None else f"{printable(token)} ({words})"
        n_docs = (readable_number(counts[k]) if counts else "" for k in pair)
        rows.append((_nats(nats), *n_docs, group, said))
    # The other tokens share a line, so that the rows add up to the score.
    if others := explanation.evidence[len(strongest) :]:
        rest = sum(row.contribution for row in others)
        rows.append((_nats(rest), "", "", "", f"({len(others)} more)"))
    rows.append((_nats(explanation.constant), "", "", "", "(constant)"))
    width = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    for *numbers, kind, token in rows:
        cells = [*map(right, numbers, width), left(kind, width[3]), ""]
        start = "  ".join(cells)
        room = _WIDTH - display_width(start)  # not for a fact, whose meaning is said in whole
        yield start + (token if kind == "people" else clipped(token, room, keeps_end=False))


def _nats(value: float, digits: int = 3) -> str:
    """Return a sum of evidence; densities far from every mean have hundreds of digits."""
    return f"{value:+.{digits}f}" if abs(value) < _LONG else f"{value:+.{digits}e}"


def explanation_json(explanation: "Explanation", number: int) -> dict[str, object]:
    """Return an explanation for JSON, which has no infinity: null replaces it."""
    classes = list(explanation.verdict.posterior)
    tokens = [
        {**output.evidence_json(row, classes), "contribution": finite(row.contribution)}
        for row in explanation.strongest(number)
    ]
    return {
        "towards": explanation.towards,
        "against": explanation.against,
        "score": finite(explanation.score),
        "constant": finite(explanation.constant),
        "kept": explanation.kept,
        "by_beginning": explanation.by_beginning,
        "tokens": tokens,
    }


# --- tables written back ---------------------------------------------------------------------


class WaitingRows(inputs.TableListener):
    """Keeps the rows of tables until their verdicts are there."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: deque[list[str]] = deque()
        self._n_heard = 0
        self._first: tuple[str, ...] | None = None

    def table(self, names: Sequence[str] | None, columns: TextColumns) -> None:
        """Check that all tables have the same columns; raises ValueError."""
        super().table(names, columns)
        if self._first is None:
            self._first = self.names
        elif self._first != self.names:
            raise ValueError(
                f"its columns are not those of the table before it ({listed(self._first)});"
                " classify it by itself"
            )

    def row(self, cells: Iterable[str]) -> None:
        """Keep a row."""
        self._rows.append([*cells])
        self._n_heard += 1

    def checked(self, given: Iterable[Any]) -> Iterator[Any]:
        """Yield the inputs; raise UsageError for one that is not a row of a table."""
        for number, each in enumerate(given, 1):
            if self._n_heard != number:  # its reader has told no listener of this one
                raise UsageError(f"--csv: {each.name} is no row of CSV, TSV or JSON; say --format")
            yield each

    def lines(self, results: "Iterable[Verdict | Skipped]") -> Iterator[str]:
        """Yield the lines of a CSV table: all rows, each with its label and probability.

        A row that could not be read has neither.  All rows have as many cells as the first: the
        last cell of a longer row holds the rest.
        """
        from nbspam.verdicts import Skipped

        width = 0
        for result in results:
            cells = self._rows.popleft()
            if not width:
                width = len(self._first or cells)
                if self._first:
                    yield csv_line([*self._first, *_new_names(self._first)])
            if len(cells) > width:
                cells[width - 1 :] = [",".join(cells[width - 1 :])]
            cells += [""] * (width - len(cells))
            if isinstance(result, Skipped):
                yield csv_line([*cells, "", ""])
            else:
                yield csv_line([*cells, result.label, f"{result.probability:.6f}"])


def _new_names(names: Sequence[str]) -> Iterator[str]:
    """Yield the names of the added columns, different from existing names."""
    for name in ("label", "probability"):
        while name in names:
            name = f"predicted_{name}"
        yield name


def csv_line(cells: Iterable[str]) -> str:
    """Return a row as CSV; for a terminal, control characters are replaced."""
    import csv

    out = StringIO()
    # Cells with a character of the line's end are quoted.
    csv.writer(out, lineterminator="\r\n").writerow(cells)
    line = out.getvalue()[:-2]
    return printable(line) if sys.stdout.isatty() else line
