"""From the options of `nbspam serve` to what the server is to do, and again while it runs.

Secret: how options are read a second time.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from nbspam.cli.decisions import rule_of
from nbspam.cli.options import Decision
from nbspam.cli.output import warn
from nbspam.cli.values import complaint
from nbspam.errors import NbspamError, UsageError

if TYPE_CHECKING:
    from nbspam.server.addresses import Listeners
    from nbspam.server.desk import Policy
    from nbspam.server.service import Options

PASS, TEMPFAIL = "pass", "tempfail"


def values_again(ctx: click.Context) -> dict[str, Any]:
    """Return the options as the configuration file says them now; raises UsageError.

    ctx: of the call of `nbspam serve`, which keeps its arguments in `obj`.
    """
    try:
        values = ctx.command.make_context("serve", list(ctx.obj), parent=ctx.parent).params
    except click.ClickException as error:
        raise UsageError(complaint(error)) from error
    return {**values, "decision": Decision(*(values[name] for name in Decision._fields))}


def service_options(
    model_path: str,
    allow_tell: bool,
    password_file: str | None,
    reject_above: float | None,
    quarantine_above: float | None,
    when_busy: str,
    log: str,
    users: str | None,
    web: str | None,
    review: str | None,
    move: bool,
    decision: Decision,
    **_: Any,
) -> "Options":
    """Return what the service is to do; raises UsageError and InputError."""
    from nbspam.server.desk import Policy
    from nbspam.server.service import Options, password_in

    _check_page(web, review, move, users)
    password = None if password_file is None else password_in(password_file)
    policy = Policy(
        allow_tell,
        password,
        when_busy == PASS,
        reject_above,
        quarantine_above,
        review=review,
        moves=move,
    )
    return Options(model_path, partial(rule_of, decision), policy, log, users)


def _check_page(web: str | None, review: str | None, move: bool, users: str | None) -> None:
    """Raise UsageError or InputError unless the page can show what it is to show."""
    from nbspam.server.review.filing import Filing
    from nbspam.server.review.mailbag import Mailbag
    from nbspam.server.review.people import check_mailboxes

    if review is None:
        if move:
            raise UsageError("--move: moves the mail that --review shows; give --review MAILDIR")
    elif web is None:
        raise UsageError(f"--review {review}: shown on a page; give --web 127.0.0.1:PORT, too")
    elif users is not None:
        check_mailboxes(review)  # whose mailbox is no Maildir moves nothing
    else:
        mailbag = Mailbag(review)
        if move:
            Filing(mailbag)


def listeners_of(values: dict[str, Any], policy: "Policy") -> "Listeners":
    """Listen on the addresses that options name, and warn of those where others may teach.

    The first line that is printed is the address of the page, if there is to be one.  Raises
    NbspamError.
    """
    from nbspam.server.addresses import listen
    from nbspam.server.review.access import page_of
    from nbspam.server.worker import PROTOCOLS

    listeners = listen({name: values[name] for name in PROTOCOLS})
    if "web" in listeners.sockets:
        try:
            click.echo(page_of(listeners.sockets["web"], values["model_path"]), err=True)
        except NbspamError:
            listeners.close()
            raise
    teaching = {"spamd": policy.allows_tell, "http": policy.password is not None}
    for name, address in listeners.open_to_others.items():
        if teaching.get(name):
            warn(f"--{name} {address}: whoever reaches it from other machines can teach the model")
    return listeners
