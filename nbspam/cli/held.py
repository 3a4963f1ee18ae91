"""nbspam held: review of the mail that Postfix holds."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from nbspam.arrays import today
from nbspam.cli import options, output
from nbspam.cli.frame import Command
from nbspam.cli.learning import living_model
from nbspam.cli.sharing import sharing_options, with_sharing
from nbspam.errors import UsageError
from nbspam.sources.items import Item

if TYPE_CHECKING:
    from nbspam.counts.counting import Outcome
    from nbspam.delivery.postfix import HeldMessage
    from nbspam.server.choices import ShareChoices
    from nbspam.store.model import StoredModel


@click.command("held", cls=Command, first=("--ham", "--spam", "--model-file", "--users"))
@click.argument("identifiers", nargs=-1, metavar="[ID]...")
@options.model_option
@click.option("--ham", "label", flag_value="ham", help="Teach these as ham, and deliver them.")
@click.option("--spam", "label", flag_value="spam", help="Teach these as spam, and delete them.")
@click.option(
    "--users",
    metavar="DIR",
    help="Judge with the models of users in DIR, as nbspam serve does, and teach these.",
)
@sharing_options
@options.json_option
def held_command(
    identifiers: tuple[str, ...],
    model_path: str,
    label: str | None,
    users: str | None,
    sharing: "ShareChoices | None",
    as_json: bool,
) -> int:
    """Review the mail that Postfix holds.

    nbspam serve --quarantine-above lets Postfix hold probable spam.  This command prints a line
    for each held message: the label and its probability by the current model, the ID in the queue,
    sender and first recipient of the envelope, and the subject.  With --ham or --spam, the
    messages of these IDs are learned, and then delivered or deleted.

    With --users, a message to one recipient teaches that user's model, and a message to several
    the site's: the model that judged it.

    Only root may use Postfix's programs.  Files that root writes stay the model owner's.

    \b
    sudo nbspam held -m /var/lib/nbspam/model.nbspam
    sudo nbspam held -m /var/lib/nbspam/model.nbspam --ham 2D4E7A0F31
    """
    from nbspam.delivery.postfix import held_messages

    if label is not None and not identifiers:
        raise UsageError(f"--{label}: no ID; name messages as nbspam held prints them")
    messages = held_messages(identifiers)
    model = living_model(model_path)
    if users is not None:
        from nbspam.server.judge import check_folder, check_site

        check_folder(users)
        check_site(model)
    if label is None:
        _print_held(messages, model, users, as_json)
        return 0
    outcome = _teach(messages, label, model, users, sharing)
    for each in messages:
        if label == "ham":
            each.release()
        else:
            each.delete()
    done = f"{'delivered' if label == 'ham' else 'deleted'} {len(messages):,}"
    return output.report_outcome(outcome, model_path, as_json, besides=done)


def _user_of(message: "HeldMessage", users: str | None) -> str:
    """Return the user whose model judged a message, "" for the site's."""
    from nbspam.server.judge import UserError, user_folder_name, user_of

    if users is None:
        return ""
    user = user_of(message.named_recipients())
    try:
        user_folder_name(user)
    except UserError:
        return ""
    return user


def _teach(
    messages: "Sequence[HeldMessage]",
    label: str,
    model: "StoredModel",
    users: str | None,
    sharing: "ShareChoices | None",
) -> "Outcome":
    """Learn the messages, each by the model that judged it; raises NbspamError."""
    from nbspam.counts.counting import Outcome
    from nbspam.server.lessons import TaughtModels

    mail: dict[str, list[HeldMessage]] = {}
    for each in messages:
        mail.setdefault(_user_of(each, users), []).append(each)
    opened = TaughtModels(model.path, users, is_server=False)
    of_users = {user: opened(user) for user in mail if user}

    def items(user: str) -> Iterator[Item]:
        return (Item(each.identifier, label, each.read(), told=True) for each in mail[user])

    def learn() -> Outcome:
        learned, day = {"": model, **of_users}, today()
        taught = (learned[user].learn(items(user), classes=[label], day=day) for user in mail)
        return sum(taught, Outcome())

    outcome: Outcome = with_sharing(sharing, model, learn, of_users)
    return outcome


def _print_held(
    messages: "Sequence[HeldMessage]", model: "StoredModel", users: str | None, as_json: bool
) -> None:
    """Print a line for each message, with the verdict that the server would give now."""
    from nbspam.mail.correspondence import heading
    from nbspam.server.choices import LIMITS
    from nbspam.server.judge import Users, judge_each

    def warn(error: Exception) -> None:
        output.warn(str(error))

    subjects: list[str] = []

    def mail() -> Iterator[tuple[bytes, str]]:
        for each in messages:
            data = each.read()
            subjects.append(heading(data).subject)
            yield data, _user_of(each, users)

    own = None if users is None else Users(users, LIMITS.users_bytes, warn)
    for message, judgement in zip(messages, judge_each(model, mail(), own, warn), strict=True):
        verdict = judgement.verdict._replace(name=message.identifier)
        if as_json:
            facts = {"sender": message.sender, "recipients": message.recipients}
            found = {**output.verdict_json(verdict, None), **facts, "subject": subjects.pop()}
            output.echo_json(found)
        else:
            row = verdict.label, f"{verdict.probability:.6f}", verdict.name, message.sender
            output.echo_rows([(*row, next(iter(message.recipients), ""), subjects.pop())])
