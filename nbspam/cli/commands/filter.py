"""nbspam filter: one message from standard input to standard output, with a verdict added."""

import sys
from functools import partial
from typing import Any, BinaryIO

import click

from nbspam.cli.arguments import today
from nbspam.cli.command import Command
from nbspam.cli.decisions import rule_of
from nbspam.cli.options import Decision, decision_options, filling, model_option
from nbspam.cli.output import warn
from nbspam.errors import InputError
from nbspam.store.filtering import Additions


def _streams() -> tuple[BinaryIO, BinaryIO]:
    # `main` gives other commands a place for what they print to a closed stream.
    if sys.stdin is None or sys.__stdout__ is None:
        raise InputError("-: standard input or output is closed; pipe a message through")
    return sys.stdin.buffer, sys.stdout.buffer


class PassThrough(Command):
    """A command that copies the message unchanged if its options are wrong."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Return the context of a call, or copy the message and fail."""
        try:
            return super().make_context(*args, **kwargs)
        except click.ClickException:
            from nbspam.mail.head import copy_message

            copy_message(*_streams(), lambda data, whole: [data])
            raise


addition_options = filling(
    Additions,
    "additions",
    click.option("--bogosity", is_flag=True, help="Add the header of bogofilter, X-Bogosity."),
    click.option(
        "--spam-status",
        is_flag=True,
        help="Add the headers of SpamAssassin, X-Spam-Status and X-Spam-Flag.",
    ),
    click.option("--subject-tag", metavar="TEXT", help="Put TEXT before the subject of spam."),
    click.option(
        "--explain",
        is_flag=True,
        help="Add the header X-Nbspam-Explanation with the strongest tokens.",
    ),
)


@click.command("filter", cls=PassThrough)
@model_option
@decision_options
@addition_options
@click.option(
    "--learn",
    type=click.Choice(["none", "confident"]),
    default="none",
    show_default=True,
    help="Learn nothing, or the messages that the model is confident about.",
)
@click.option(
    "--sure",
    type=click.FloatRange(0.5, 1, min_open=True),
    default=0.99,
    show_default=True,
    metavar="P",
    help="Least probability of a message that --learn confident learns.",
)
@click.option(
    "--tempfail", is_flag=True, help="Exit 75 on failure, so that mail systems try again later."
)
def command(
    model_path: str,
    decision: Decision,
    additions: Additions,
    learn: str,
    sure: float,
    tempfail: bool,  # which `main` heeds
) -> None:
    """Copy one message from standard input to standard output, and add a verdict.

    The head gets the header X-Nbspam: label, probability (of the label, or of spam if the
    label is unsure) and version.  Headers of that name which came with the message are
    removed; no other byte changes.  The exit status is 0, whatever the verdict.

    If anything fails, the message passes unchanged, standard error says why, and the exit
    status is 1 (2 for wrong options), or 75 with --tempfail.  Learning comes last: if only
    that fails, standard error says so and the exit status is 0.

    \b
    nbspam filter < message.eml
    nbspam filter --bogosity --subject-tag '***SPAM*** ' < message.eml
    """
    from nbspam.store.filtering import filter_message

    confidence = sure if learn == "confident" else None
    rule = partial(rule_of, decision)
    for note in filter_message(*_streams(), model_path, rule, additions, confidence, today()):
        warn(note)
