"""nbspam sort: a Maildir's new mail to its folders, learning from what users move."""

from dataclasses import asdict
from typing import Any

import click

from nbspam.cli.arguments import decision_rule, today
from nbspam.cli.options import decision_options, json_option, model_option
from nbspam.cli.output import echo_json, echo_rows, report_skipped, warn


def _letter(ctx: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is not None and not (len(value) == 1 and value.isascii() and value.isalpha()):
        raise click.BadParameter("not one letter, such as F")
    return value


@click.command("sort")
@click.argument("maildir")
@model_option
@click.option("--spam-folder", metavar="NAME", help="[default: .Spam, or .Junk if it is there]")
@click.option("--unsure-folder", metavar="NAME", default=".Unsure", show_default=True)
@click.option("--flag", metavar="LETTER", callback=_letter, help="Flag spam, do not move it.")
@click.option(
    "--learn",
    type=click.Choice(["folders", "none"]),
    default="folders",
    show_default=True,
    help="Learn from what was moved, or not.",
)
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@decision_options
@json_option
def command(
    maildir: str,
    model_path: str,
    learn: str,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Sort the new mail of a Maildir, and learn from what its user moved.

    New is what was not seen by an earlier run and has not been read.  Spam goes to a
    folder of its own (or gets a flag), what the model is unsure of to .Unsure.  Who
    moves a message out of the folder of spam, or into it (or takes the flag away, or
    sets it), teaches the model.  What was left where is noted in MAILDIR/nbspam-sorted.

    \b
    nbspam sort ~/Maildir
    nbspam sort --dry-run --unsure-cost 0.2 ~/Maildir
    """
    from nbspam.store.sorting import Choices, sort_maildir

    costs = {name: options.pop(name) for name in ("fp_cost", "unsure_cost", "loss_path")}
    choices = Choices(learns=learn == "folders", **options)
    report = sort_maildir(
        maildir,
        model_path,
        choices,
        today(),
        lambda classifier: decision_rule(classifier, dict(costs)),
    )
    report_skipped(report.skipped)
    for note in report.notes:
        warn(note)
    if as_json:
        values = {**asdict(report), "skipped": [each._asdict() for each in report.skipped]}
        echo_json({"maildir": maildir, "dry_run": choices.dry_run, **values})
    elif not quiet:
        if choices.dry_run:
            echo_rows(map(_row, (*report.learned, *report.judged)))
        echo_rows([(_summary(report, choices.dry_run),)])
    return 1 if report.skipped else 0


def _row(one: Any) -> tuple[str, ...]:
    if one.probability is None:
        return "learn", one.label, one.name
    return "move" if one.moved_to else "leave", one.label, one.name, one.moved_to or ""


def _summary(report: Any, is_dry: bool) -> str:
    """Return one line on what was done, or would be."""

    def counts(done: list[Any]) -> str:
        labels = [one.label for one in done]
        said = ", ".join(f"{labels.count(name):,} {name}" for name in sorted(set(labels)))
        return said or "nothing"

    verb = "would be " if is_dry else ""
    return f"new: {counts(report.judged)}; {verb}learned from moves: {counts(report.learned)}"
