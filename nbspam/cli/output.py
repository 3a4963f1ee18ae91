"""Output of commands: rows, JSON, verdicts, diagnoses, reports and model files.

Text from strangers is escaped before it reaches the terminal.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeVar

import click

from nbspam.cli.frame import diagnose, is_quiet
from nbspam.errors import InputError, UsageError
from nbspam.printing import amount_text, first_few, printable, raw_name, readable_json

if TYPE_CHECKING:
    from xml.etree import ElementTree

    from nbspam.counts.lessons import Outcome
    from nbspam.counts.table import Loss
    from nbspam.decision import Rule
    from nbspam.sources.files import TextColumns
    from nbspam.tables.schema import Schema
    from nbspam.verdicts import AnyClassifier, Evidence, Skipped, Verdict

_MAX_COLUMNS = 20  # of a table, that are listed
_MAX_CLASSES = 20  # that are counted by name
JSON_VERSION = 1  # another one if a key changes its name, type or meaning
_MAX_ODD = 5  # items that are named on standard error
T = TypeVar("T")


# --- lines -----------------------------------------------------------------------------------


def echo_lines(lines: Iterable[str]) -> None:
    """Print lines; see `main.exit_status` for characters that the encoding lacks."""
    sys.stdout.writelines(f"{line}\n" for line in lines)


def echo_rows(rows: Iterable[Iterable[str]]) -> None:
    """Print rows of fields, as `row_lines` returns them."""
    echo_lines(row_lines(rows))


def row_lines(rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Return rows of fields as lines, separated by tabs, with control characters escaped."""
    return ("\t".join(map(printable, row)) for row in rows)


def write_text(pieces: Iterable[str], option: str, path: str) -> None:
    """Write text in pieces to the file of an option; raises InputError."""
    from nbspam.disk import result_file

    with result_file(path, option) as stream:
        stream.writelines(piece.encode("utf-8", "backslashreplace") for piece in pieces)


def check_place(option: str, path: str) -> None:
    """Raise UsageError, before any work is done, if an option's file cannot be made there.

    It may not be the file of another parameter, either: a source would be overwritten.
    """
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise UsageError(f"{option} {path}: a folder; give a file's name")
    if not os.path.isdir(folder):
        raise UsageError(f"{option} {path}: there is no folder {folder}; create it")
    place = path if os.path.exists(path) else folder
    if path != "-" and not os.access(place, os.W_OK):
        raise UsageError(f"{option} {path}: cannot be written; give another name")
    given = click.get_current_context().params.values()
    words = chain.from_iterable(each if isinstance(each, tuple) else (each,) for each in given)
    names = (each[-1] if isinstance(each, tuple) else each for each in words)  # of NAME=PATH
    places = [os.path.realpath(each) for each in names if isinstance(each, str)]
    if path != "-" and places.count(os.path.realpath(path)) > 1:
        raise UsageError(f"{option} {path}: the same file twice; give another name")


def echo_json(values: Mapping[str, object]) -> None:
    """Print one result as a line of JSON, which readers of a pipe get at once."""
    click.echo(json_line(values))


def echo_each_as_json(results: Iterable[Mapping[str, object]]) -> None:
    """Print each result as a line of JSON."""
    echo_lines(map(json_line, results))


def json_line(values: Mapping[str, object]) -> str:
    """Return one result as a line of JSON: an object that names the version of its keys."""
    return readable_json({"version": JSON_VERSION, **values}, sys.stdout.encoding)


def echo_summary(*lines: str) -> None:
    """Print lines on the command's work, unless -q forbids it."""
    if not is_quiet():
        echo_rows((line,) for line in lines)


def echo_result(as_json: bool, facts: Mapping[str, object], *lines: str) -> None:
    """Print the facts of a command's work as JSON, or lines on it."""
    if as_json:
        echo_json(facts)
    else:
        echo_summary(*lines)


def warn(line: str) -> None:
    """Print one line of diagnosis on standard error, unless -q forbids it."""
    if not is_quiet():
        diagnose(line)


def warn_of(lines: Sequence[str], of_more: str = "warned of") -> None:
    """Print the first of these lines on standard error, and the number of the others."""
    for line in first_few(lines, of_more):
        warn(line)


def at_terminal() -> bool:
    """Return whether a person can answer a question."""
    return sys.stdin is not None and sys.stdin.isatty()


def or_standard_input(sources: Iterable[str]) -> list[str]:
    """Return the sources, or standard input if there are none; see `tell_waiting`."""
    # `inputs.CompleteSources` are true even if there are none.
    return tell_waiting(sources) if sources else tell_waiting(["-"], "no SOURCE")


def tell_waiting(paths: Iterable[str], why: str = "-") -> list[str]:
    """Return paths; say so if one is standard input, and a person is to type that."""
    paths = list(paths)
    if "-" in paths and at_terminal():
        warn(f"{why}: reading from this terminal; end with Ctrl-D")
    return paths


# --- verdicts --------------------------------------------------------------------------------


def verdict_json(verdict: "Verdict", costs: "Rule | None") -> dict[str, object]:
    """Return the values of a verdict for JSON, with the risks if costs were stated."""
    from nbspam.decision import risks

    return {
        "name": verdict.name,
        "label": verdict.label,
        "probability": verdict.probability,
        "posterior": verdict.posterior,
        "score": verdict.score,
        "risk": costs and risks(verdict.posterior, costs),
    }


def evidence_json(evidence: "Evidence", classes: Sequence[str]) -> dict[str, object]:
    """Return evidence for JSON; text that is not a token of the model has null as counts."""
    counts = dict(zip(classes, evidence.counts, strict=True)) if evidence.counts else None
    return {**evidence._asdict(), "counts": counts}


def echo_named(rows: Iterable[Sequence[str]], null: bool) -> None:
    """Print rows whose last field is a name; with `null` raw, and ended by NUL, in a pipe."""
    if not null or sys.stdout.isatty():
        echo_rows(rows)
        return
    sys.stdout.flush()
    for *fields, name in rows:
        start = "".join(f"{printable(field)}\t" for field in fields)
        sys.stdout.buffer.write(start.encode() + raw_name(name) + b"\0")
    sys.stdout.buffer.flush()


def refuse_two(options: Mapping[str, bool]) -> None:
    """Raise UsageError if more than one of the ways to answer is chosen."""
    given = [name for name, is_given in options.items() if is_given]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)}: two forms of answer; leave out one")


def report_lack(classifier: "AnyClassifier") -> None:
    """Say on standard error what a model without ham and spam still needs."""
    if classifier.lack is not None:
        warn(classifier.lack)


# --- items that could not be read ------------------------------------------------------------


def report_skipped(skipped: "Iterable[Skipped]", strict: bool = False) -> None:
    """Say on standard error which items were not read; with --strict raise InputError."""
    failures = list(skipped)
    if failures and strict:
        raise InputError(f"{failures[0].name}: {failures[0].why} (--strict)")
    warn_of([f"skipped {failure.name}: {failure.why}" for failure in failures], "skipped")


def skipped_json(skipped: "Iterable[Skipped]") -> list[dict[str, str]]:
    """Return the items that were not read, for JSON."""
    return [{"name": each.name, "reason": each.why} for each in skipped]


class Successes:
    """Passes results on; reports skipped and odd items on standard error."""

    def __init__(self, strict: bool = False) -> None:
        self._strict = strict
        self._n_skipped = self._n_odd = 0

    def of(self, results: "Iterable[T | Skipped]") -> Iterator[T]:
        """Return the results of what could be read."""
        from nbspam.verdicts import Skipped

        return (each for each in self.all_of(results) if not isinstance(each, Skipped))

    def all_of(self, results: "Iterable[T | Skipped]") -> "Iterator[T | Skipped]":
        """Yield all results, also for unreadable items."""
        from nbspam.verdicts import Skipped, Verdict

        for result in results:
            if isinstance(result, Skipped):
                self._n_skipped += 1
                report_skipped([result], self._strict)
            elif isinstance(result, Verdict) and result.note is not None:
                self._n_odd += 1
                if self._n_odd <= _MAX_ODD:
                    warn(f"{result.name}: {result.note}")
            yield result
        if self._n_odd > _MAX_ODD:
            warn(f"{self._n_odd - _MAX_ODD:,} more like these")

    @property
    def status(self) -> int:
        """The exit status: 1 if anything was skipped."""
        return int(self._n_skipped > 0)


# --- models ----------------------------------------------------------------------------------


def save_model(classifier: "AnyClassifier", model_path: str) -> str | None:
    """Write a model file; say, and return, where the file it replaces is kept, if it is."""
    from nbspam.store.open import save_keeping

    return report_kept(save_keeping(model_path, classifier))


def report_kept(kept: str | None) -> str | None:
    """Say, and return, where the file that a model or part replaced is kept, if it is."""
    if kept is not None:
        warn(f"the file that was there is kept as {kept}")
    return kept


def is_named(option: str, context: click.Context | None = None) -> bool:
    """Return whether the command line itself gives an option; context: the running command's."""
    source = (context or click.get_current_context()).get_parameter_source(option)
    return source is click.core.ParameterSource.COMMANDLINE


def counts_text(n_docs: dict[str, int]) -> str:
    """Return how many documents each class has, as in `2 ham, 3 spam`, of 20 classes at most."""
    shown = ", ".join(f"{n:,} {name}" for name, n in islice(n_docs.items(), _MAX_CLASSES))
    more = len(n_docs) - _MAX_CLASSES
    return f"{shown} and {amount_text(more, 'more classes')}" if more > 0 else shown


def total_text(n_docs: dict[str, int], noun: str) -> str:
    """Return how many documents there are, in all and in each class: `3 rows (2 ham, 1 spam)`."""
    return f"{amount_text(sum(n_docs.values()), noun)} ({counts_text(n_docs)})"


def class_counts_of(classes: Sequence[str], class_count: Iterable[float]) -> dict[str, int]:
    """Return how many documents or rows of each class a model has learned."""
    return {name: round(n) for name, n in zip(classes, class_count, strict=True)}


def columns_text(schema: "Schema") -> list[str]:
    """Return a line on each column of a table; a wide table has only its first columns."""
    lines = [str(column) for column in schema.columns[:_MAX_COLUMNS]]
    more = len(schema.columns) - len(lines)
    return [*lines, f"… and {amount_text(more, 'more columns')}"] if more else lines


def columns_read_lines(columns: "TextColumns") -> list[str]:
    """Return the line, if any, that says which columns a model of text has learned from."""
    if not columns.text:
        return []
    text = f"  text in {', '.join(map(repr, columns.text))}"
    return [text if columns.label is None else f"{text}; class in {columns.label!r}"]


def columns_read_json(columns: "TextColumns") -> dict[str, object]:
    """Return which columns a model of text has learned from, for JSON."""
    return {"text_columns": columns.text, "label_column": columns.label}


def report_outcome(
    outcome: "Outcome", model_path: str, as_json: bool, of_learned: str = "", besides: str = ""
) -> int:
    """Print how many messages an update learned, moved and so on; return the exit status.

    of_learned: what text says of the learned ones besides.  besides: what changed before, in a
    line of its own.
    """
    report_skipped(outcome.skipped)
    warn_of(outcome.notes)
    counts = {
        "learned": outcome.learned,
        "already known": outcome.already_known,
        "confirmed": outcome.confirmed,
        "moved": outcome.moved,
        "un-learned": outcome.unlearned,
        "not known": outcome.unknown,
        "right already": outcome.passed,
        "skipped": len(outcome.skipped),
    }
    facts = {name.replace(" ", "_").replace("-", ""): n for name, n in counts.items()}
    more = {"skipped": skipped_json(outcome.skipped), "notes": outcome.notes}
    remarks = {"learned": of_learned}
    said = ", ".join(f"{name} {n:,}{remarks.get(name, '')}" for name, n in counts.items() if n)
    lines = [line for line in (besides, said) if line] or ["nothing to do"]
    echo_result(as_json, {"model": model_path, **facts, **more}, *lines)
    return 1 if outcome.skipped else 0


def loss_text(loss: "Loss", noun: str) -> str:
    """Return in words which tokens a model has forgotten; noun: its documents, in the plural."""
    most = int(loss.of_each.max(initial=0))
    lacks = f", each of the others lacks up to {most:,}" if most else ""
    known = f"of those kept {loss.n_exact:,} are exact{lacks}"
    return f"tokens of up to {amount_text(loss.of_others, noun)} each; {known}"


def loss_json(loss: "Loss | None") -> dict[str, int] | None:
    """Return for JSON the forgotten tokens of a model; None: there are none."""
    if loss is None:
        return None
    most = int(loss.of_each.max(initial=0))
    return {"messages": loss.of_others, "exact": loss.n_exact, "lack": most}


# --- reports ---------------------------------------------------------------------------------


def check_page(path: str | None) -> None:
    """Raise UsageError, before any work is done, if no report can be written there."""
    if path is None:
        if is_named("per_week"):
            raise UsageError("--per-week: for the report; add --report FILE.html")
        return
    if not path.lower().endswith((".html", ".htm")):
        raise UsageError(f"--report {path}: not a name of HTML; give one that ends in .html")
    check_place("--report", path)


def check_picture(path: str) -> None:
    """Raise UsageError, before any work is done, if no picture can be drawn there."""
    from nbspam.evaluation.pictures import check_picture_path

    check_place("--plot", path)
    check_picture_path(path)


def write_picture(picture: "ElementTree.Element", path: str) -> None:
    """Write a picture into a file; raises InputError."""
    from nbspam.evaluation.pictures import write

    if note := write(picture, path):
        warn(note)
