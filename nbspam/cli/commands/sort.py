"""nbspam sort: new mail of a Maildir into its folders, learning from what the user moves."""

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import click

from nbspam.cli.arguments import today
from nbspam.cli.command import Command
from nbspam.cli.decisions import rule_of
from nbspam.cli.options import Decision, decision_options, json_option, model_option
from nbspam.cli.output import (
    echo_json,
    echo_rows,
    echo_summary,
    report_skipped,
    skipped_json,
    warn,
)
from nbspam.cli.values import LETTER

if TYPE_CHECKING:
    from nbspam.store.sorting import Report, Sorted


@click.command("sort", cls=Command)
@click.argument("maildir")
@model_option
@click.option(
    "--spam-folder",
    metavar="NAME",
    help="Folder for spam.  [default: .Spam, or .Junk if it exists]",
)
@click.option(
    "--unsure-folder",
    metavar="NAME",
    default=".Unsure",
    show_default=True,
    help="Folder for mail that the model is unsure of.",
)
@click.option(
    "--flag", metavar="LETTER", type=LETTER, help="Set this flag on spam instead of moving it."
)
@click.option(
    "--learn",
    type=click.Choice(["folders", "none"]),
    default="folders",
    show_default=True,
    help="Learn from the messages that the user moved, or learn nothing.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be done, and do nothing.")
@decision_options
@json_option
def command(
    maildir: str,
    model_path: str,
    spam_folder: str | None,
    unsure_folder: str,
    flag: str | None,
    learn: str,
    dry_run: bool,
    decision: Decision,
    as_json: bool,
) -> int:
    """Sort the new mail of a Maildir, and learn from the messages that its user moved.

    A message is new if no earlier run saw it and nobody has read it.  Spam goes to a folder
    of its own (or gets a flag), and mail that the model is unsure of goes to .Unsure.  A user
    teaches the model by moving a message into the spam folder or out of it (or by setting or
    removing the flag).  MAILDIR/nbspam-sorted keeps the place of every message.

    \b
    nbspam sort ~/Maildir
    nbspam sort --dry-run --unsure-cost 0.2 ~/Maildir
    """
    from nbspam.store.sorting import Choices, sort_maildir

    choices = Choices(spam_folder, unsure_folder, flag, learn == "folders", dry_run)
    report = sort_maildir(maildir, model_path, choices, today(), partial(rule_of, decision))
    report_skipped(report.skipped)
    for note in report.notes:
        if note != report.lack:
            warn(note)
    if report.lack is not None:
        warn(f"{report.lack}; new mail stays where it is")
    if as_json:
        values = {**asdict(report), "skipped": skipped_json(report.skipped)}
        echo_json({"maildir": maildir, "dry_run": dry_run, **values})
    else:
        if dry_run:
            echo_rows(map(_row, (*report.learned, *report.judged)))
        echo_summary([(_summary(report, dry_run),)])
    return 1 if report.skipped else 0


def _row(one: "Sorted") -> tuple[str, ...]:
    if one.probability is None:
        return "learn", one.label, one.name
    return "move" if one.moved_to else "leave", one.label, one.name, one.moved_to or ""


def _summary(report: "Report", is_dry: bool) -> str:
    """Return one line on what was done, or would be done."""

    def counts(done: "list[Sorted]") -> str:
        labels = [one.label for one in done]
        said = ", ".join(f"{labels.count(name):,} {name}" for name in sorted(set(labels)))
        return said or "nothing"

    verb = "would be " if is_dry else ""
    return f"new: {counts(report.judged)}; {verb}learned from moves: {counts(report.learned)}"
