"""nbspam share, and the options by which other commands share their lessons."""

import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import click

from nbspam.cli import options
from nbspam.cli.frame import Command, titled
from nbspam.cli.output import echo_json, echo_rows, echo_summary
from nbspam.errors import UsageError
from nbspam.printing import amount_text

if TYPE_CHECKING:
    from nbspam.server.choices import ShareChoices
    from nbspam.sharing.sharer import Sharer
    from nbspam.store.model import StoredModel

SHARE_OPTIONS = ("share", "share_password_command", "share_sync")
SHARING = "Sharing lessons with other servers"

share_option = titled(
    SHARING,
    click.option(
        "--share",
        metavar="URL",
        help="Share lessons through the log at redis://[USER@]HOST[:PORT]/KEY (rediss:// with"
        " TLS) or postgresql://[USER@]HOST[:PORT]/DATABASE/TABLE.",
    ),
    click.option(
        "--share-password-command",
        metavar="COMMAND",
        help="Take the password of the log from the output of COMMAND.",
    ),
)
share_options = titled(
    SHARING,
    share_option,
    click.option(
        "--share-sync",
        is_flag=True,
        help="Acknowledge a lesson when the log has it, too, and not only this machine's disk.",
    ),
)


def share_choices(
    share: str | None, share_password_command: str | None, share_sync: bool | None = False
) -> "ShareChoices | None":
    """Return how lessons are shared, None if they are not; raises UsageError and InputError."""
    if share is None:
        if share_sync or share_password_command:
            raise UsageError("--share-sync, --share-password-command: give --share URL, too")
        return None
    from nbspam.imap.accounts import printed_secret
    from nbspam.server.choices import ShareChoices
    from nbspam.sharing.logs import open_log

    password = None
    if share_password_command:
        password = printed_secret("--share-password-command", share_password_command, share)
    open_log(share, password).close()  # a wrong address is said now
    return ShareChoices(share, password, bool(share_sync))


sharing_options = options.filling(share_choices, "sharing", share_options)


def with_sharing(
    choices: "ShareChoices | None",
    model: "StoredModel",
    learn: Callable[[], Any],
    of_users: "Mapping[str, StoredModel] | None" = None,
) -> Any:
    """Return the outcome of learning, with the lessons shared; raises NbspamError.

    of_users: as in `shared_lessons`.

    Lessons that the log does not take now stay in the outbox, of which a warning tells; with
    --share-sync, that is an error.
    """
    from nbspam.cli.output import warn
    from nbspam.errors import SharedLogError
    from nbspam.sharing.sharer import shared_lessons

    with shared_lessons(model, choices is not None, of_users):
        if choices is None:
            return learn()
        with closing(opened_sharer(choices, model.path)) as sharer:
            with suppress(SharedLogError):  # said afterwards, if it is still away
                sharer.exchange()
            outcome = learn()
            try:
                sharer.exchange()
                sharer.report()
            except SharedLogError as error:
                if choices.is_sync:
                    raise
                warn(str(error))
    return outcome


def opened_sharer(choices: "ShareChoices", model_path: str) -> "Sharer":
    """Return the sharer of a model, with the users' models that a server has named."""
    from nbspam.disk import resolved
    from nbspam.server.lessons import sharer_for
    from nbspam.sharing.outbox import Outbox

    with closing(Outbox(resolved(model_path))) as outbox:
        users = outbox.users_folder()
    return sharer_for(choices, model_path, users)


@click.command("share", cls=Command, first=("--share", "--model-file", "--users", "--json"))
@click.argument("action", type=click.Choice(["status", "snapshot", "join"]))
@click.argument("folder", required=False)
@options.model_option
@share_option
@click.option(
    "--users", metavar="DIR", help="With join: where the models of users go, if there are any."
)
@options.json_option
def share_command(
    action: str,
    folder: str | None,
    model_path: str,
    share: str | None,
    share_password_command: str | None,
    users: str | None,
    as_json: bool,
) -> None:
    """Show servers that share their lessons, or add one.

    status prints each host: how many records of the log it has not learned yet (lag), how many of
    its lessons wait for the log (outbox), and a digest of its model; equal digests mean equal
    models.  snapshot writes the models of this host into a new FOLDER, and join starts another
    host from a copy of that folder.

    \b
    nbspam share status --share redis://log.example.org/nbspam
    nbspam share snapshot FOLDER --share redis://log.example.org/nbspam
    nbspam share join FOLDER -m new.nbspam
    """
    if (folder is None) != (action == "status"):
        raise UsageError(f"share {action}: {'needs a FOLDER' if folder is None else 'no FOLDER'}")
    if action == "join":
        from nbspam.sharing.sharer import join_log

        assert folder is not None
        place = join_log(folder, model_path, users)
        echo_summary(f"joined at record {place.n_read:,}; model in {model_path}")
        return
    choices = share_choices(share, share_password_command)
    if choices is None:
        raise UsageError(f"share {action}: of which log? give --share URL")
    with closing(opened_sharer(choices, model_path)) as sharer:
        if action == "status":
            _print_status(sharer, as_json)
        else:
            _write_snapshot(sharer, str(folder))


def _write_snapshot(sharer: "Sharer", folder: str) -> None:
    from nbspam.server.judge import users_in
    from nbspam.sharing.sharer import snapshot

    users = sharer.outbox.users_folder()
    place = snapshot(sharer, folder, users_in(users) if users else [])
    echo_summary(f"{folder}: the models as of record {place.n_read:,} of the log")


def _print_status(sharer: "Sharer", as_json: bool) -> None:
    end, hosts = sharer.log.end(), sharer.log.hosts()
    if as_json:
        echo_json({"log": sharer.log.name, "records": end.n_records, "hosts": hosts})
        return
    rows = [("host", "lag", "outbox", "skipped", "model", "heard")]
    for name, facts in sorted(hosts.items()):
        read, told = facts.get("read"), facts.get("time")
        lag = max(end.n_records - read, 0) if isinstance(read, int) else "?"
        ago = max(int(time.time()) - told, 0) if isinstance(told, int) else "?"
        heard = f"{ago} s ago"
        shown = (facts.get("outbox", "?"), facts.get("skipped", "?"), facts.get("model", "-"))
        outbox, skipped, model = (str(value)[:20] for value in shown)
        rows.append((name, str(lag), outbox, skipped, model, heard))
    echo_rows(rows)
    models = {facts.get("model") for facts in hosts.values()}  # None: lessons to read or send
    if len(models - {None}) > 1:
        equal = "not equal now"
    else:
        equal = "equal" if models and None not in models else "not compared yet"
    echo_summary(f"{sharer.log.name}: {amount_text(end.n_records, 'records')}; models {equal}")
