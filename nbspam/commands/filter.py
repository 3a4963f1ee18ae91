"""nbspam filter: a message through, with a verdict in its head."""

import sys
from collections.abc import Iterable
from typing import Any

import click

from nbspam.commands.shared import decision_options, decision_rule, model_option
from nbspam.errors import InputError


def _streams() -> tuple[Any, Any]:
    if sys.stdin is None or sys.stdout is None:
        raise InputError("-: standard input or output is closed; pipe a message through")
    return sys.stdin.buffer, sys.stdout.buffer


class PassThrough(click.Command):
    """A command that lets the message through even if nobody understands its options."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Return the context of a call, or let the message through and fail."""
        try:
            return super().make_context(*args, **kwargs)
        except click.ClickException:
            from nbspam.filtering import copy_message

            copy_message(*_streams(), lambda data, whole: [data])
            raise


@click.command("filter", cls=PassThrough)
@model_option
@decision_options
@click.option("--bogosity", is_flag=True, help="Add bogofilter's header, X-Bogosity.")
@click.option("--spam-status", is_flag=True, help="Add SpamAssassin's, X-Spam-Status and -Flag.")
@click.option("--subject-tag", metavar="TEXT", help="Begin the subject of spam with this.")
@click.option("--explain", is_flag=True, help="Add X-Nbspam-Explanation: the strongest tokens.")
@click.option("--tempfail", is_flag=True, help="Exit 75 on failure: try again later.")
def command(model_path: str, tempfail: bool, **options: Any) -> None:
    """Copy one message from standard input to standard output, a verdict added.

    The head gets X-Nbspam: label, probability=0 to 1 (of the label; of spam, if it is
    unsure), version=...; headers of that name that came with the message are taken
    out, and no other byte changes.  Exits 0, whatever the verdict.

    If anything fails the message passes unchanged, standard error says why, and the
    exit status is 1 (2 for wrong usage), or 75 with --tempfail.

    \b
    nbspam filter < message.eml
    nbspam filter --bogosity --subject-tag '***SPAM*** ' < message.eml
    """
    from nbspam.filtering import copy_message

    def rewrite(data: bytes, whole: bool) -> Iterable[bytes]:
        from nbspam.classifier import load
        from nbspam.verdictheaders import Wanted, judged

        classifier = load(model_path)
        rule = decision_rule(classifier, options)
        _, pieces = judged(classifier, rule, Wanted(**options), data, whole)
        return pieces

    copy_message(*_streams(), rewrite)
