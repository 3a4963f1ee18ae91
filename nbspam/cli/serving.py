"""nbspam serve, and held: verdicts and lessons for mail systems, and the mail that they hold.

The options of `serve` become the server's choices; SIGHUP rereads them while it runs.
"""

import json
import os
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from nbspam.arrays import today
from nbspam.cli import exchanging, options, output
from nbspam.cli.accounts import access_book, with_account_url
from nbspam.cli.frame import Call, echo_beside, is_quiet, subcommand, titled
from nbspam.disk import is_absent
from nbspam.errors import InputError, ModelFileError, NbspamError, UsageError
from nbspam.settings import option_name
from nbspam.sources.files import is_account
from nbspam.sources.items import Item

if TYPE_CHECKING:
    from nbspam.counts.lessons import Outcome
    from nbspam.delivery.postfix import HeldMessage
    from nbspam.imap.accounts import AccessBook
    from nbspam.server.choices import Listeners, ServerChoices, ShareChoices, Sockets
    from nbspam.server.supervisor import Reread
    from nbspam.store.model import StoredModel
    from nbspam.verdicts import Skipped

# Options that do nothing without another one, and that one.
_AT_PATH = "a socket at a PATH"
_WRITING = "--spamd or --milter ADDRESS"
_NEEDS = {
    "socket_mode": _AT_PATH,
    "socket_group": _AT_PATH,
    "peer_users": _AT_PATH,
    "allow_tell": "--spamd ADDRESS",
    "report_teaches": "--allow-tell",
    "password_file": "--http ADDRESS",
    "subject_tag": _WRITING,
    "bogosity": _WRITING,
    "reject_above": "--milter ADDRESS",
    "quarantine_above": "--milter ADDRESS",
}


@subcommand("serve", "--model-file", "--spamd", "--http", "--web")
@options.model_option
@titled(
    "Where it listens: HOST:PORT, a PORT of this machine, or the PATH of a socket",
    click.option(
        "--spamd",
        metavar="ADDRESS",
        multiple=True,
        help="Speak the protocol of SpamAssassin's spamd.",
    ),
    click.option(
        "--http", metavar="ADDRESS", multiple=True, help="Speak rspamd's protocol, over HTTP."
    ),
    click.option(
        "--milter",
        metavar="ADDRESS",
        multiple=True,
        help="Speak the milter protocol of Postfix and Sendmail.",
    ),
    click.option(
        "--web",
        metavar="ADDRESS",
        help="Show a page to users of this machine who have the token that is printed first.",
    ),
    click.option(
        "--socket-mode",
        metavar="MODE",
        type=options.MODE,
        help="Give sockets at paths this mode, which says who may connect.  [default: 666]",
    ),
    click.option("--socket-group", metavar="GROUP", help="Give sockets at paths this group."),
    "What the page shows",
    click.option(
        "--review",
        metavar="MAILBOX",
        help="Show a Maildir, mbox, folder or account (imaps://USER@HOST/ or its NAME): verdicts,"
        " reasons, and lessons by clicks.  With --users, give the folder of all mailboxes.",
    ),
    click.option(
        "--move",
        is_flag=True,
        help="Move messages marked as spam or ham between the folders of a Maildir or account,"
        " like sort.",
    ),
    "Who may teach, and what",
    click.option("--allow-tell", is_flag=True, help="Let clients of --spamd teach the model."),
    click.option(
        "--report-teaches",
        is_flag=True,
        help="With --allow-tell: learn from reports (spamc -C), too.",
    ),
    click.option(
        "--autolearn",
        is_flag=True,
        help="Learn by itself if two signs agree: a verified line of the lists, and a verdict "
        "above .999.",
    ),
    click.option(
        "--password-file",
        metavar="FILE",
        help="Let clients of --http teach the model if they know the password, FILE's first line.",
    ),
    click.option(
        "--peer-users",
        is_flag=True,
        help="On sockets at paths: mail is that of the user who connects, except root.",
    ),
    click.option(
        "--users",
        metavar="DIR",
        help="Let each user teach a model of their own in DIR, which counts on top of -m.",
    ),
    "What becomes of mail",
    click.option("--subject-tag", metavar="TEXT", help="Put TEXT before the subject of spam."),
    click.option(
        "--bogosity", is_flag=True, help="Write bogofilter's header into mail, too: X-Bogosity."
    ),
    click.option(
        "--reject-above",
        type=options.FiniteRange(0, 1),
        metavar="P",
        help="Reject mail through --milter whose probability of spam is above P.",
    ),
    click.option(
        "--quarantine-above",
        type=options.FiniteRange(0, 1),
        metavar="P",
        help="Let Postfix hold mail whose probability of spam is above P.",
    ),
    click.option(
        "--when-busy",
        type=click.Choice(["pass", "tempfail"]),
        default="tempfail",
        show_default=True,
        help="Let mail beyond the limits pass unjudged, or ask its sender to try again.",
    ),
)
@exchanging.share_options
@options.access_options
@options.log_option("Format of the log lines on standard error.")
@options.decision_options
@options.jobs_option
def serve_command(**values: Any) -> None:
    """Answer mail systems that ask for verdicts, until a signal ends it.

    There is one worker process for each core.  Lessons of any process count from the next message
    on.  SIGHUP rereads the configuration file; SIGTERM ends the server once it has answered all
    accepted requests.

    \b
    nbspam serve --spamd 127.0.0.1:1783
    nbspam serve --spamd /run/nbspam/spamd.sock --allow-tell
    """
    # Until the server waits for signals: SIGHUP would end it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    from nbspam.server.supervisor import serve

    context, values = click.get_current_context(), with_account_url(values)
    choices = server_choices(values, _book_of(values))
    model = values["model_path"]
    is_new = output.at_terminal() and not os.path.lexists(model)
    if is_new and not click.confirm(f"{model}: no such model; begin a new one?", err=True):
        raise UsageError(f"{model}: no such model; give the right one by -m")
    used = [listeners_of(values, choices)]

    def again() -> "Reread":
        values, book = values_again(context, choices.book)
        renewed = server_choices(values, book)

        def listening() -> "Sockets":
            used[0] = listeners_of(values, renewed, used[0])
            return used[0].sockets

        return renewed, listening, values["jobs"]

    try:
        serve(choices, used[0].sockets, values["jobs"], again)
    finally:
        used[0].close()


def _note(log: str, text: str) -> None:
    """Warn in a line of the log's format."""
    if log != "json":
        output.warn(text)
    elif not is_quiet():
        echo_beside(json.dumps({"note": text}))


def _book_of(values: dict[str, Any], before: "AccessBook | None" = None) -> "AccessBook | None":
    """Return the access to the account on the page; None: it shows none.

    before: a book whose typed secrets are used again.
    """
    if values["review"] is None or not is_account(values["review"]):
        return None
    return access_book(values["access"], before)


def values_again(
    ctx: click.Context, before: "AccessBook | None"
) -> "tuple[dict[str, Any], AccessBook | None]":
    """Return the options as the configuration file says them now, and the access to accounts.

    ctx: of the call of `nbspam serve`, which keeps its arguments.  before: as in `_book_of`.
    Raises UsageError.
    """
    arguments = list(ctx.ensure_object(Call).arguments)
    try:
        made = ctx.command.make_context("serve", arguments, parent=ctx.parent)
        values = with_account_url(made.params)
        values["jobs"] = options.processes(values["jobs"])
        for name, kind in (("decision", options.Decision), ("access", options.StatedAccess)):
            values[name] = kind(*map(values.get, kind._fields))
        return values, _book_of(values, before)
    except click.ClickException as error:
        raise UsageError(options.complaint(error)) from error


def server_choices(values: dict[str, Any], book: "AccessBook | None") -> "ServerChoices":
    """Return the owner's choices for the server; raises NbspamError.

    values: of the options, by parameter.
    """
    from nbspam.mail.headers import HeaderChoices
    from nbspam.mail.verdict_headers import check_labels, checked_tag
    from nbspam.server.choices import ServerChoices
    from nbspam.server.supervisor import password_in
    from nbspam.settings import PRESETS
    from nbspam.store.assembly import empty_model

    _check_page(values, book)
    if values["peer_users"] and not hasattr(socket, "SO_PEERCRED"):
        raise UsageError("--peer-users: this system does not say who connects; leave it out")
    tag, password_file = values["subject_tag"], values["password_file"]
    if tag is not None:
        checked_tag(tag)
    decision, stated = values["decision"], None
    if decision.loss is not None:  # read now: the file may be gone when mail comes
        stated = options.rule_of(decision, empty_model(PRESETS["mail"]))
        check_labels("--loss", stated.actions)
    return ServerChoices(
        values["model_path"],
        lambda classifier: stated or options.rule_of(decision, classifier),
        values["log"],
        values["peer_users"],
        values["users"],
        values["allow_tell"],
        values["report_teaches"],
        values["autolearn"],
        None if password_file is None else password_in(password_file),
        values["when_busy"] == "pass",
        HeaderChoices(values["bogosity"], spam_status=True, subject_tag=tag),
        values["reject_above"],
        values["quarantine_above"],
        values["review"],
        values["move"],
        exchanging.share_choices(
            values["share"], values["share_password_command"], values["share_sync"]
        ),
        book,
    )


def _check_page(values: dict[str, Any], book: "AccessBook | None") -> None:
    """Raise NbspamError unless the page can show its mailboxes."""
    from nbspam.server.page.account_mailbox import review_mailbox
    from nbspam.server.page.mailbox import check_mailboxes

    review = values["review"]
    if review is None:
        if values["move"]:
            raise UsageError("--move: moves the mail that --review shows; give --review MAILDIR")
    elif values["web"] is None:
        raise UsageError(f"--review {review}: shown on a page; give --web 127.0.0.1:PORT, too")
    elif values["users"] is not None:
        check_mailboxes(review)  # mail moves only for users whose mailbox is a Maildir
    else:
        with closing(review_mailbox(review, values["model_path"], book)) as mailbox:
            mailbox.check(values["move"])


def _check_used(values: dict[str, Any], listeners: "Listeners") -> None:
    """Raise UsageError for an option that no socket uses."""
    from nbspam.server.choices import listened

    protocols = {name for name, _ in listeners.sockets}
    there = {f"--{name} ADDRESS" for name in protocols}
    if values["allow_tell"]:
        there.add("--allow-tell")
    if protocols & {"spamd", "milter"}:
        there.add(_WRITING)
    if any(listened(each).path for _, each in listeners.sockets):
        there.add(_AT_PATH)
    for option, need in _NEEDS.items():
        # 0 is a probability.
        if values[option] is not None and values[option] is not False and need not in there:
            raise UsageError(f"{option_name(option)}: for {need}; give it, too")


def listeners_of(
    values: dict[str, Any], choices: "ServerChoices", before: "Listeners | None" = None
) -> "Listeners":
    """Listen on the addresses that options name; raises NbspamError.

    Prints the address of the page first, and warns if there is no model yet, and of addresses
    where other machines may teach.
    before: sockets that are used already.
    """
    from nbspam.server.choices import ALL_USERS, SocketRights, listen, listened, page_of
    from nbspam.server.worker import PROTOCOLS, protocol

    web, log = values["web"], values["log"]
    texts = {name: values[name] for name in PROTOCOLS} | {"web": [web] if web is not None else []}
    mode = values["socket_mode"]
    rights = SocketRights(ALL_USERS.mode if mode is None else mode, values["socket_group"])
    listeners = listen(texts, rights, before)
    try:
        _check_used(values, listeners)
        for name, _ in listeners.sockets:
            protocol(name)  # imported once, before workers are forked
        for key in [key for key in listeners.opened if key[0] == "web"]:
            try:
                page = page_of(listeners.opened[key], values["model_path"])
                echo_beside(json.dumps({"page": page}) if log == "json" else page)
            except ModelFileError as error:  # of its secret
                if len(listeners.opened) == 1:
                    raise
                _note(log, f"{error}; there is no page until this is mended and SIGHUP sent")
                listeners.opened.pop(key).close()
    except NbspamError:
        listeners.close(before)
        raise
    if is_absent(values["model_path"]):
        why = "there is no model yet; the first lesson begins one"
        _note(log, f"{values['model_path']}: {why}")
    teaching = {"spamd": choices.allows_tell, "http": choices.password is not None}
    for name, each in listeners.sockets:
        address = listened(each)
        if teaching.get(name) and not address.is_local:
            why = "whoever reaches it from other machines can teach the model"
            _note(log, f"--{name} {address}: {why}")
    return listeners


# --- mail that Postfix holds -----------------------------------------------------------------


def taught_label(ham: bool, spam: bool) -> str | None:
    """Return the class that --ham or --spam teaches, None without both; raises UsageError."""
    if ham and spam:
        raise UsageError("--ham and --spam: messages are delivered or deleted; leave out one")
    return "ham" if ham else "spam" if spam else None


@subcommand("held", "--ham", "--spam", "--model-file", "--users")
@click.argument("identifiers", nargs=-1, metavar="[ID]...")
@options.model_option
@options.filling(
    taught_label,
    "label",
    click.option("--ham", is_flag=True, help="Teach these as ham, and deliver them."),
    click.option("--spam", is_flag=True, help="Teach these as spam, and delete them."),
)
@click.option(
    "--users",
    metavar="DIR",
    help="Judge with the models of users in DIR, as nbspam serve does, and teach these.",
)
@exchanging.sharing_options
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
    messages of these IDs are learned, and then delivered or deleted; those that are gone are
    named, and the exit status is 1.

    With --users, a message to one recipient teaches that user's model, and a message to several
    the site's: the model that judged it.

    Only root may use Postfix's programs.  Files that root writes stay the model owner's.

    \b
    sudo nbspam held -m /var/lib/nbspam/model.nbspam
    sudo nbspam held -m /var/lib/nbspam/model.nbspam --ham 2D4E7A0F31
    """
    from nbspam.cli import inputs
    from nbspam.delivery.postfix import held_messages
    from nbspam.verdicts import Skipped

    if label is not None and not identifiers:
        raise UsageError(f"--{label}: no ID; name messages as nbspam held prints them")
    messages = held_messages(identifiers)
    why = "not a message that Postfix holds; nbspam held lists them"
    missing = set(identifiers) - {each.identifier for each in messages}
    gone = tuple(Skipped(name, why) for name in sorted(missing))
    model: StoredModel = inputs.stored_model(model_path)
    if users is not None:
        from nbspam.server.judge import check_folder, check_site

        check_folder(users)
        check_site(model)
    if label is None:
        _print_held(messages, model, users, as_json)
        output.report_skipped(gone)
        return 1 if gone else 0
    outcome = _teach(messages, label, model, users, sharing)
    left = tuple(_let_go(messages, label))
    done = f"{'delivered' if label == 'ham' else 'deleted'} {len(messages) - len(left):,}"
    outcome = replace(outcome, skipped=outcome.skipped + gone + left)
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
    from nbspam.counts.lessons import Outcome
    from nbspam.delivery.postfix import MessageGoneError
    from nbspam.server.lessons import TaughtModels

    mail: dict[str, list[HeldMessage]] = {}
    for each in messages:
        with suppress(MessageGoneError):  # its delivery says so
            mail.setdefault(_user_of(each, users), []).append(each)
    opened = TaughtModels(model.path, users, is_server=False)
    of_users = {user: opened(user) for user in mail if user}

    def items(user: str) -> Iterator[Item]:
        for each in mail[user]:
            with suppress(MessageGoneError):
                yield Item(each.identifier, label, each.read(), told=True)

    def learn() -> Outcome:
        learned, day = {"": model, **of_users}, today()
        taught = (learned[user].learn(items(user), classes=[label], day=day) for user in mail)
        return sum(taught, Outcome())

    outcome: Outcome = exchanging.with_sharing(sharing, model, learn, of_users)
    return outcome


def _let_go(messages: "Sequence[HeldMessage]", label: str) -> "Iterator[Skipped]":
    """Deliver ham and delete spam; yield the messages that somebody else has taken."""
    from nbspam.verdicts import Skipped

    for each in messages:
        let_go = each.release if label == "ham" else each.delete
        try:
            let_go()
        except InputError as error:
            yield Skipped(each.identifier, str(error))


def _print_held(
    messages: "Sequence[HeldMessage]", model: "StoredModel", users: str | None, as_json: bool
) -> None:
    """Print a line for each message, with the verdict that the server would give now."""
    from nbspam.delivery.postfix import MessageGoneError
    from nbspam.mail.addresses import heading
    from nbspam.server.choices import SERVER_LIMITS
    from nbspam.server.judge import UserCounts, judge_each

    def warned(error: Exception) -> None:
        output.warn(str(error))

    read: list[tuple[HeldMessage, str]] = []

    def mail() -> Iterator[tuple[bytes, str]]:
        for each in messages:
            try:
                data, user = each.read(), _user_of(each, users)
            except MessageGoneError:
                continue
            read.append((each, heading(data).subject))
            yield data, user

    own = None if users is None else UserCounts(users, SERVER_LIMITS.users_bytes, warned)
    for judgement in judge_each(model, mail(), own, warned):
        message, subject = read.pop(0)
        verdict = judgement.verdict._replace(name=message.identifier)
        if as_json:
            facts = {"sender": message.sender, "recipients": message.recipients}
            said = output.verdict_json(verdict, None)
            output.echo_json({**said, **facts, "subject": subject})
        else:
            row = verdict.label, f"{verdict.probability:.6f}", verdict.name, message.sender
            output.echo_rows([(*row, next(iter(message.recipients), ""), subject)])
