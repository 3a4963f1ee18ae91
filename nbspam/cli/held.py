"""nbspam held: review of the mail that Postfix holds."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from nbspam.cli import inputs, options, output
from nbspam.cli.frame import Command
from nbspam.cli.learning import living_model, sharing_options
from nbspam.cli.sharing import with_sharing
from nbspam.errors import UsageError
from nbspam.sources.items import Item

if TYPE_CHECKING:
    from nbspam.maildir.postfix import HeldMessage
    from nbspam.server.choices import ShareChoices


@click.command("held", cls=Command, first=("--ham", "--spam", "--model-file", "--json"))
@click.argument("identifiers", nargs=-1, metavar="[ID]...")
@options.model_option
@click.option("--ham", "label", flag_value="ham", help="Teach these as ham, and deliver them.")
@click.option("--spam", "label", flag_value="spam", help="Teach these as spam, and delete them.")
@sharing_options
@options.json_option
def held_command(
    identifiers: tuple[str, ...],
    model_path: str,
    label: str | None,
    sharing: "ShareChoices | None",
    as_json: bool,
) -> int:
    """Review the mail that Postfix holds.

    nbspam serve --quarantine-above lets Postfix hold probable spam.  This command prints a line
    for each held message: the label and its probability by the model of now, the ID in the queue,
    sender and first recipient of the envelope, and the subject.  With --ham or --spam, the
    messages of these IDs are learned, and then delivered or deleted.

    Postfix's programs serve root alone.  Files that root writes belong to the model's owner.

    \b
    sudo nbspam held -m /var/lib/nbspam/model.nbspam
    sudo nbspam held -m /var/lib/nbspam/model.nbspam --ham 2D4E7A0F31
    """
    from nbspam.maildir.postfix import held_messages

    if label is None:
        _print_held(held_messages(identifiers), model_path, as_json)
        return 0
    if not identifiers:
        raise UsageError(f"--{label}: no ID; name messages as nbspam held prints them")
    messages = held_messages(identifiers)
    model = living_model(model_path)
    items = (Item(each.identifier, label, each.read(), told=True) for each in messages)
    learn = partial(model.learn, items, classes=[label], day=options.today())
    outcome = with_sharing(sharing, model, learn)
    for each in messages:
        if label == "ham":
            each.release()
        else:
            each.delete()
    done = f"{'delivered' if label == 'ham' else 'deleted'} {len(messages):,}"
    return output.report_outcome(outcome, model_path, as_json, besides=done)


def _print_held(messages: "Sequence[HeldMessage]", model_path: str, as_json: bool) -> None:
    """Print a line for each message; it is read when its turn has come to be judged."""
    from nbspam.mail.correspondence import heading

    judged: dict[str, tuple[HeldMessage, str]] = {}  # with subjects, until the verdict is there

    def items() -> Iterator[Item]:
        for each in messages:
            data = each.read()
            judged[each.identifier] = each, heading(data).subject
            yield Item(each.identifier, None, data)

    verdicts = inputs.loaded_model(model_path).classify(items())
    for verdict in output.Successes().of(verdicts):
        message, subject = judged.pop(verdict.name)
        if as_json:
            facts = {"sender": message.sender, "recipients": message.recipients}
            output.echo_json({**output.verdict_json(verdict, None), **facts, "subject": subject})
        else:
            row = verdict.label, f"{verdict.probability:.6f}", verdict.name, message.sender
            output.echo_rows([(*row, next(iter(message.recipients), ""), subject)])
