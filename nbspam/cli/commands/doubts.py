"""nbspam doubts: messages that are probably filed wrongly."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from nbspam.cli.arguments import items_of, told_at
from nbspam.cli.command import Command
from nbspam.cli.options import (
    Labels,
    jobs_option,
    json_option,
    label_options,
    model_option,
    null_option,
    reading_options,
    sources_argument,
    strict_option,
)
from nbspam.cli.output import echo_named, echo_rows, json_line, refuse_two, report_skipped
from nbspam.settings import Choices, settings_for
from nbspam.sources.items import SourceOptions

if TYPE_CHECKING:
    from nbspam.evaluation.doubts import Doubt, Doubts
    from nbspam.verdicts import Evidence

_SHOWN = 3  # tokens in a line
_MOST = 10  # tokens in JSON


@click.command("doubts", cls=Command)
@sources_argument
@model_option
@label_options
@reading_options
@jobs_option
@strict_option
@json_option
@null_option
def command(
    sources: tuple[str, ...],
    model_path: str,
    labels: Labels,
    reading: SourceOptions,
    jobs: int,
    strict: bool,
    as_json: bool,
    null: bool,
) -> None:
    """List the messages that are probably filed wrongly, the surest first.

    SOURCE, --spam, --ham and --label are as for `nbspam train`.  Every message is judged by
    models of other messages, so the list comes before any training, and no model file is
    changed.  A message is listed if its label is more probably wrong than right, given how many
    labels seem to be wrong.

    The columns are the label it has, the label that the evidence gives, the probability that
    its label is wrong, the strongest evidence in nats, and its name.  Look through the list
    before you change anything: what nobody can tell apart is among it, too.

    What a person has told the model, if there is one (see `nbspam update`), is believed, and is
    not listed.  So a message disappears from the list once `nbspam relabel` has moved it or
    confirmed the label it has.

    \b
    nbspam doubts mails/
    nbspam doubts tickets.csv --label-column queue
    nbspam doubts --spam ~/Maildir/.Junk --ham ~/Maildir
    """
    from nbspam.evaluation.doubts import find_doubts

    refuse_two({"--json": as_json, "-0": null})
    items = items_of(sources, reading, labels)
    settings, items = settings_for(items, Choices(), reading.listener)
    found = find_doubts(items, settings, told_at(model_path), jobs)
    report_skipped(found.skipped, strict)
    if as_json:
        echo_rows((json_line(_json(each, found)),) for each in found.found)
    else:
        echo_named(_rows(found), null)


def _rows(found: "Doubts") -> Iterator[tuple[str, ...]]:
    for each in found.found:
        reasons = ", ".join(map(_reason, each.evidence[:_SHOWN]))
        yield each.filed, each.label, f"{each.probability:.6f}", reasons, each.name


def _reason(evidence: "Evidence") -> str:
    return f"{evidence.token} {evidence.contribution:+.1f}"


def _json(doubt: "Doubt", found: "Doubts") -> dict[str, object]:
    """Return the values of a doubt for JSON."""
    tokens = [
        {**row._asdict(), "counts": dict(zip(found.classes, row.counts, strict=True))}
        for row in doubt.evidence[:_MOST]
    ]
    return {
        "name": doubt.name,
        "filed": doubt.filed,
        "label": doubt.label,
        "probability": doubt.probability,
        "tokens": tokens,
    }
