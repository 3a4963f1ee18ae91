"""nbspam filter: a message through, with a verdict in its head."""

import sys
from collections.abc import Iterable
from typing import Any

import click

from nbspam.cli.arguments import decision_rule, today
from nbspam.cli.options import decision_options, model_option
from nbspam.cli.output import warn
from nbspam.errors import InputError, NbspamError


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
            from nbspam.mail.head import copy_message

            copy_message(*_streams(), lambda data, whole: [data])
            raise


@click.command("filter", cls=PassThrough)
@model_option
@decision_options
@click.option("--bogosity", is_flag=True, help="Add bogofilter's header, X-Bogosity.")
@click.option("--spam-status", is_flag=True, help="Add SpamAssassin's, X-Spam-Status and -Flag.")
@click.option("--subject-tag", metavar="TEXT", help="Begin the subject of spam with this.")
@click.option("--explain", is_flag=True, help="Add X-Nbspam-Explanation: the strongest tokens.")
@click.option(
    "--learn",
    type=click.Choice(["none", "confident"]),
    default="none",
    show_default=True,
    help="Learn nothing, or what is surer than --sure.",
)
@click.option(
    "--sure",
    type=click.FloatRange(0.5, 1, min_open=True),
    default=0.99,
    show_default=True,
    metavar="P",
    help="The probability that --learn confident asks for.",
)
@click.option("--tempfail", is_flag=True, help="Exit 75 on failure: try again later.")
def command(model_path: str, learn: str, sure: float, **options: Any) -> None:
    """Copy one message from standard input to standard output, a verdict added.

    The head gets X-Nbspam: label, probability=0 to 1 (of the label; of spam, if it is
    unsure), version=...; headers of that name that came with the message are taken
    out, and no other byte changes.  Exits 0, whatever the verdict.

    If anything fails the message passes unchanged, standard error says why, and the
    exit status is 1 (2 for wrong usage), or 75 with --tempfail.  Learning comes last:
    if that fails, standard error says so, and that is all.

    \b
    nbspam filter < message.eml
    nbspam filter --bogosity --subject-tag '***SPAM*** ' < message.eml
    """
    from nbspam.mail.head import copy_message

    del options["tempfail"]  # the command line's to see to
    lessons: list[tuple[str, bytes]] = []

    def rewrite(data: bytes, whole: bool) -> Iterable[bytes]:
        from nbspam.classifier.marking import mark
        from nbspam.mail.verdict_headers import Wanted, sure_label
        from nbspam.store.open import load_tokens as load

        classifier = load(model_path)
        rule = decision_rule(classifier, options)
        learns = learn == "confident" and whole
        wanted = Wanted(**options, sure=sure if learns else None)
        verdict, pieces = mark(classifier, rule, wanted, data, whole)
        if learns and (label := sure_label(verdict, sure)):
            lessons.append((label, data))
        return pieces

    copy_message(*_streams(), rewrite)
    for label, data in lessons:
        _learn(model_path, label, data)


def _learn(model_path: str, label: str, data: bytes) -> None:
    """Learn a message that is through already: no failure may take it back."""
    from nbspam.sources.items import Item
    from nbspam.store.model import StoredModel

    try:
        StoredModel(model_path).learn([Item("-", label, data)], day=today())
    except (NbspamError, OSError) as error:
        warn(f"the message is through, and was not learned: {error}")
