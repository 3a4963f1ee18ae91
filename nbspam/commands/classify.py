"""nbspam classify: a verdict a message."""

from collections.abc import Iterator
from typing import Any

import click

from nbspam.commands.shared import (
    cores,
    echo_rows,
    format_options,
    jobs_option,
    json_line,
    json_option,
    model_option,
    read_sources,
    report_skipped,
    sources_argument,
    strict_option,
)
from nbspam.errors import UsageError

# bogofilter's contract; 3, for every failure, is the command line's to give.
EXIT_CODES = {"spam": 0, "ham": 1}


@click.command("classify")
@sources_argument
@model_option
@format_options
@jobs_option
@strict_option
@json_option
@click.option("--exit-code", is_flag=True, help="One message: exit 0 spam, 1 ham, 3 failure.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing, but with --exit-code exit.")
def command(
    sources: tuple[str, ...],
    model_path: str,
    jobs: int | None,
    strict: bool,
    as_json: bool,
    exit_code: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Print class, posterior probability and name, message by message.

    SOURCE is anything `nbspam train` reads, labels not needed; without one, or as -,
    a message on standard input.

    \b
    nbspam classify message.eml
    nbspam classify ~/Maildir/new
    nbspam classify --exit-code -q < message.eml && echo spam
    """
    from nbspam.classifier import Verdict, load
    from nbspam.sources import Skipped

    classifier = load(model_path)
    if exit_code and not set(EXIT_CODES) >= set(classifier.classes):
        raise UsageError(
            f"--exit-code: the model's classes are {', '.join(classifier.classes)};"
            " it is for a model of ham and spam"
        )
    verdicts: list[Verdict] = []
    n_skipped = 0

    def rows() -> Iterator[tuple[str, ...]]:
        nonlocal n_skipped
        for verdict in classifier.classify(read_sources(sources, options), cores(jobs)):
            if isinstance(verdict, Skipped):
                n_skipped += 1
                report_skipped([verdict], strict)
                continue
            if exit_code:
                verdicts.append(verdict)
            if not quiet:
                yield (json_line(_plain(verdict)),) if as_json else _row(verdict)

    echo_rows(rows())
    if exit_code:
        return _exit_code(verdicts)
    return 1 if n_skipped else 0


def _row(verdict: Any) -> tuple[str, ...]:
    return verdict.label, f"{verdict.posterior[verdict.label]:.6f}", verdict.name


def _plain(verdict: Any) -> dict[str, Any]:
    return {"name": verdict.name, "label": verdict.label, "posterior": verdict.posterior}


def _exit_code(verdicts: list[Any]) -> int:
    if len(verdicts) != 1:
        raise UsageError(f"--exit-code: {len(verdicts)} messages; it is for one message")
    return EXIT_CODES[verdicts[0].label]
