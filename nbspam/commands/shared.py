"""What commands share: options, labelled sources, the model's place, safe printing.

Secret: how the command line's words become the library's values.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from itertools import chain
from typing import Any

import click

from nbspam.errors import InputError, UsageError

Command = Callable[..., Any]


def default_model_path() -> str:
    """Return where the model lives unless told otherwise: the user's data folder."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Application Support")
    else:
        base = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.join(base, "nbspam", "model.nbspam")


model_option = click.option(
    "-m",
    "--model-file",
    "model_path",
    envvar="NBSPAM_MODEL",
    default=default_model_path,
    metavar="FILE",
    show_default="in the user's data folder",
    help="The model; also $NBSPAM_MODEL.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
strict_option = click.option(
    "--strict", is_flag=True, help="Fail at the first item that cannot be read."
)
jobs_option = click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    default=None,
    metavar="N",
    help="Processes at work  [default: one a core]",
)
sources_argument = click.argument("sources", nargs=-1, metavar="[SOURCE]...")


def _options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return a decorator that adds several options, shown in this order."""
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


format_options = _options(
    click.option("--format", "format_", metavar="NAME", help="What SOURCE is: eml, mbox, csv, …"),
    click.option("--text-column", metavar="NAME", help="A table's column of texts."),
    click.option("--label-column", metavar="NAME", help="A table's column of classes."),
)
label_options = _options(
    click.option("--spam", multiple=True, metavar="PATH", help="All of PATH is spam."),
    click.option("--ham", multiple=True, metavar="PATH", help="All of PATH is ham."),
    click.option("--label", multiple=True, metavar="NAME=PATH", help="All of PATH is NAME."),
)
training_options = _options(
    click.option(
        "--preset",
        type=click.Choice(["mail", "text", "tutorial"]),
        help="Settings as a whole  [default: mail, or text for tables]",
    ),
    click.option(
        "--model",
        type=click.Choice(["bernoulli", "multinomial", "complement"]),
        help="How tokens make probabilities.",
    ),
    click.option("--alpha", metavar="NUMBER|auto", help="Lidstone smoothing; 1 is Laplace's."),
    click.option(
        "--class-prior",
        metavar="estimated|uniform|P,P,…",
        help="Prior probabilities, in the order of the class names.",
    ),
    click.option(
        "--weighting",
        type=click.Choice(["presence", "counts", "unit-length"]),
        help="What a repeated token counts.",
    ),
    click.option("--pairs/--no-pairs", default=None, help="Pairs of neighbouring words too."),
    click.option(
        "--min-df",
        type=click.IntRange(min=1),
        metavar="N",
        help="Drop tokens in fewer than N documents.",
    ),
    click.option(
        "--max-features",
        type=click.IntRange(min=1),
        metavar="N",
        help="Keep the N tokens that tell most about the class.",
    ),
)


def cores(jobs: int | None) -> int:
    """Return the number of processes asked for, or one a core."""
    from nbspam.parallel import available_cores

    return jobs or available_cores()


_SOURCE_OPTIONS = ("format_", "text_column", "label_column")


def read_sources(sources: Iterable[str], options: dict[str, Any]) -> Iterator[Any]:
    """Yield the Items of all sources, labelled by the options or by themselves.

    Takes out of `options` what says how to read: formats, columns and classes.
    """
    from nbspam.sources import SourceOptions, read_items

    how = SourceOptions(*(options.pop(name) for name in _SOURCE_OPTIONS))
    named = [(name, path) for name in ("spam", "ham") for path in options.pop(name, ())]
    for pair in options.pop("label", ()):
        name, equals, path = pair.partition("=")
        if not (name and equals and path):
            raise UsageError(f"--label {pair}: not NAME=PATH; write it as --label work=mail/work")
        named.append((name, path))
    parts = [read_items([path], label=name, options=how) for name, path in named]
    if sources or not named:
        parts.insert(0, read_items(sources or ["-"], options=how))
    return chain.from_iterable(parts)


def settings_for(first_is_text: bool, choices: dict[str, Any]) -> Any:
    """Return the preset that fits, with the choices made on the command line."""
    from dataclasses import replace

    from nbspam.settings import PRESETS

    given = {name: value for name, value in choices.items() if value is not None}
    settings = PRESETS[given.pop("preset", "text" if first_is_text else "mail")]
    if "pairs" in given:
        settings = replace(settings, tokens=replace(settings.tokens, pairs=given.pop("pairs")))
    if "alpha" in given:
        given["alpha"] = _alpha(given["alpha"])
    if "class_prior" in given:
        given["class_prior"] = _prior(given["class_prior"])
    return replace(settings, **given)


def _alpha(text: str) -> float | str:
    if text == "auto":
        return text
    try:
        alpha = float(text)
    except ValueError:
        alpha = -1.0
    if not 0 <= alpha < float("inf"):
        raise UsageError(f"--alpha {text}: not a number from 0 up; give one, or auto")
    return alpha


def _prior(text: str) -> str | tuple[float, ...]:
    if text in ("estimated", "uniform"):
        return text
    try:
        prior = tuple(float(part) for part in text.split(","))
    except ValueError:
        prior = ()
    if not prior or min(prior) <= 0 or abs(sum(prior) - 1) > 1e-9:
        raise UsageError(
            f"--class-prior {text}: not probabilities that sum to 1; write them as 0.3,0.7"
        )
    return prior


def peek(items: Iterator[Any]) -> tuple[bool, Iterator[Any]]:
    """Return whether the first item is a table's text, and the items again."""
    first = next(items, None)
    if first is None:
        raise InputError("sources: nothing to read; name a folder, a file or a table of mail")
    return first.is_text, chain([first], items)


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
