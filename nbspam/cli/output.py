"""What commands print: rows, JSON, diagnoses, and what became of the items.

Secret: that strangers' text reaches the terminal only when it is safe to print.
"""

import sys
from collections.abc import Iterable
from typing import Any

import click

from nbspam.errors import InputError


def echo_rows(rows: Iterable[Iterable[str]]) -> None:
    """Print rows of fields with tabs between; strangers' control characters spelt out."""
    from nbspam.printing import printable, write_lines

    write_lines(("\t".join(map(printable, row)) for row in rows), sys.stdout)


def echo_json(values: Any, indent: int | None = None) -> None:
    """Print one JSON document."""
    import json

    click.echo(json.dumps(values, indent=indent))


def json_line(value: Any) -> str:
    """Return a value as JSON on one line."""
    import json

    return json.dumps(value)


def verdict_json(verdict: Any) -> dict[str, Any]:
    """Return a verdict's values for JSON."""
    values = {"name": verdict.name, "label": verdict.label, "posterior": verdict.posterior}
    if verdict.score is not None:
        last = list(verdict.posterior.values())[-1]
        values |= {"probability": last, "score": verdict.score}
    return values


def warn(line: str) -> None:
    """Print one line of diagnosis on standard error."""
    from nbspam.printing import printable

    click.echo(f"nbspam: {printable(line)}", err=True)


def report_skipped(skipped: Iterable[Any], strict: bool = False, most: int = 5) -> None:
    """Say on standard error what was not read, the first few by name."""
    failures = list(skipped)
    if failures and strict:
        raise InputError(f"{failures[0].name}: {_reason(failures[0])} (--strict)")
    for failure in failures[:most]:
        warn(f"skipped {failure.name}: {_reason(failure)}")
    if len(failures) > most:
        warn(f"skipped {len(failures) - most} more")


def _reason(failure: Any) -> str:
    return str(failure.reason).removeprefix(f"{failure.name}: ")


def report_outcome(outcome: Any, model_path: str, as_json: bool) -> int:
    """Print what became of messages that were to be learned; return the exit status."""
    report_skipped(outcome.skipped)
    for note in outcome.notes:
        warn(note)
    counts = {
        "learned": outcome.learned,
        "already known": outcome.already_known,
        "moved": outcome.moved,
        "un-learned": outcome.unlearned,
        "not known": outcome.unknown,
        "right already": outcome.passed,
        "skipped": len(outcome.skipped),
    }
    if as_json:
        skipped = [{"name": s.name, "reason": s.reason} for s in outcome.skipped]
        names = {name.replace(" ", "_").replace("-", ""): n for name, n in counts.items()}
        echo_json({"model": model_path, **names, "skipped": skipped, "notes": outcome.notes})
    else:
        said = ", ".join(f"{name} {n:,}" for name, n in counts.items() if n)
        echo_rows([(said or "nothing to do",)])
    return 1 if outcome.skipped else 0
