"""nbspam filter and sort: what delivers mail runs, for one message or for a Maildir."""

import shlex
import signal
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from nbspam.arrays import today
from nbspam.cli import options, output
from nbspam.cli.frame import Command, diagnose, subcommand
from nbspam.delivery.filter import copy_message, filter_message
from nbspam.errors import InputError, NbspamError, UsageError
from nbspam.mail.headers import HeaderChoices
from nbspam.printing import printable
from nbspam.sources.files import file_around, standard_input

if TYPE_CHECKING:
    from nbspam.delivery.maildir import SortedMessage, SortingReport


def _streams() -> tuple[BinaryIO, BinaryIO]:
    # Other commands fail when they print; this one before it reads a message that it would lose.
    if sys.stdin is None or sys.__stdout__ is None:
        raise InputError("-: standard input or output is closed; pipe a message through")
    return standard_input(), sys.stdout.buffer


class PassThrough(Command):
    """A command that copies the message unchanged if its options are wrong."""

    allow_extra_args = True  # to explain their error

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Return the context of a call, or copy the message and fail."""
        try:
            context = super().make_context(*args, **kwargs)
            for name in context.args:
                path = "FILE" if file_around(name) else shlex.quote(name)
                raise click.UsageError(
                    f"{name}: the message comes by standard input; write: nbspam filter < {path}"
                )
            if context.params["learn"] == "none" and output.is_named("sure", context):
                raise click.UsageError("--sure: for --learn confident; give it, too")
            return context
        except click.ClickException:
            if not output.at_terminal():  # a person who must type again is to know at once
                copy_message(*_streams(), lambda data, whole: [data])
            raise


addition_options = options.filling(
    HeaderChoices,
    "wanted",
    click.option("--bogosity", is_flag=True, help="Add the header of bogofilter, X-Bogosity."),
    click.option(
        "--spam-status",
        is_flag=True,
        help="Add SpamAssassin's headers X-Spam-Flag, X-Spam-Level and X-Spam-Status.",
    ),
    click.option("--subject-tag", metavar="TEXT", help="Put TEXT before the subject of spam."),
    click.option(
        "--explain",
        is_flag=True,
        help="Add the header X-Nbspam-Explanation with the strongest tokens.",
    ),
)


@subcommand(
    "filter", "--model-file", "--spam-status", "--subject-tag", "--learn", kind=PassThrough
)
@options.model_option
@options.decision_options
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
    type=options.FiniteRange(0.5, 1, min_open=True),
    default=0.99,
    show_default=True,
    metavar="P",
    help="Least probability of a message that --learn confident learns.",
)
@click.option(
    "--tempfail", is_flag=True, help="Exit 75 on failure, so that mail systems try again later."
)
def filter_command(
    model_path: str,
    decision: options.Decision,
    wanted: HeaderChoices,
    learn: str,
    sure: float,
    tempfail: bool,  # which `main` heeds
) -> None:
    """Copy one message from standard input to standard output, and add a verdict.

    The message gets the header X-Nbspam: label, probability (of the label, or of spam if the
    label is unsure) and version.  Headers of that name which came with the message are
    removed; no other byte changes.  The exit status is 0, whatever the verdict.

    If anything fails, the message passes unchanged, standard error says why, and the exit
    status is 1 (2 for wrong options), or 75 with --tempfail.  Learning comes last: if only
    that fails, standard error says so and the exit status is 0.

    \b
    nbspam filter < message.eml
    nbspam filter --bogosity --subject-tag '***SPAM*** ' < message.eml
    """
    output.tell_waiting(["-"])
    confidence = sure if learn == "confident" else None
    rule = partial(options.rule_of, decision)
    for note in filter_message(*_streams(), model_path, rule, wanted, confidence, today()):
        output.warn(note)


@subcommand("sort", "--model-file", "--dry-run", "--watch", "--spam-folder")
@click.argument("mailboxes", nargs=-1, metavar="[MAILDIR|ACCOUNT]...")
@options.model_option
@click.option(
    "--spam-folder",
    metavar="NAME",
    help="Folder for spam.  [default: found by its use or usual name]  In a Maildir, .Spam, or"
    " else .Junk or the like if it exists, in small letters too, or ../Junk beside a Maildir"
    " INBOX; in an account, the folder that its server or its name calls junk.",
)
@click.option(
    "--unsure-folder",
    metavar="NAME",
    help="Folder for mail that the model is unsure of.  [default: .Unsure in a Maildir, or"
    " ../Unsure]  In an account such mail stays where it is by default.",
)
@click.option(
    "--flag",
    metavar="LETTER",
    type=options.LETTER,
    help="Set this flag on spam in a Maildir instead of moving it.  Mail that has it already, such"
    " as a star (F), is learned as spam.",
)
@click.option(
    "--tag", is_flag=True, help="Set the keyword $Junk on spam in an account instead of moving it."
)
@click.option(
    "--learn",
    type=click.Choice(["folders", "none"]),
    default="folders",
    show_default=True,
    help="Learn from the messages that the user moved, or learn nothing.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be done, and do nothing.")
@click.option(
    "--watch",
    is_flag=True,
    help="Stay connected to accounts, and sort whenever something changes, until a signal.",
)
@options.log_option("Format of --watch's log lines on standard error.")
@click.option(
    "--metrics",
    metavar="ADDRESS",
    help="HOST:PORT on which --watch answers with its counts, in OpenMetrics' format.",
)
@options.access_options
@options.decision_options
@options.json_option
def sort_command(mailboxes: tuple[str, ...], **values: Any) -> int:
    """Sort new mail, and learn from the messages that its user moved.

    A mailbox is a Maildir, an account (imaps://USER@HOST/, or the NAME of a table [account.NAME]
    in the configuration file), or, without any, all accounts in that file.  A message is new if
    no earlier run saw it and nobody has read it.  Spam goes to a folder of its own (or gets a
    flag or keyword), and so does mail that the model is unsure of.  A user teaches the model by
    moving a message into the spam folder or back, by the flag, or in an account by the
    keywords that mail programs set.  MAILDIR/nbspam-sorted, or MODEL.accounts, keeps the place
    of every message.

    \b
    nbspam sort ~/Maildir
    nbspam sort --dry-run --unsure-cost 0.2 ~/Maildir
    nbspam sort --watch imaps://ann@mail.example.org/
    """
    from nbspam.cli.accounts import accounts_of, is_account_name, watch_accounts
    from nbspam.delivery.maildir import SortingChoices, sort_maildir

    own = {name: values[name] for name in ("spam_folder", "unsure_folder", "flag", "dry_run")}
    choices = SortingChoices(**own, tags=values["tag"], learns=values["learn"] == "folders")
    rule = partial(options.rule_of, values["decision"])
    names = [name for name in mailboxes if is_account_name(name)]
    are_accounts = names == list(mailboxes)
    if names and not are_accounts:
        raise UsageError("sort: a Maildir and an account; sort each in a call of its own")
    _refuse_idle(are_accounts, values)
    if are_accounts:
        accounts = accounts_of(names, choices, rule, values["model_path"], values["access"])
        if values["watch"]:
            watch_accounts(accounts, values["log"], values["metrics"])
            return 0
        sorters = [(str(each.url), partial(each.sort, today())) for each in accounts]
    else:
        how = values["model_path"], choices, today(), rule
        sorters = [(each, partial(sort_maildir, each, *how)) for each in mailboxes]
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # to note what was moved
    try:
        return _sort_all(sorters, values["dry_run"], values["as_json"])
    finally:
        signal.signal(signal.SIGTERM, before)


def _refuse_idle(are_accounts: bool, values: dict[str, Any]) -> None:
    """Raise UsageError for an option of `sort` that would do nothing."""
    named, watch = output.is_named, values["watch"]
    for is_idle, why in (
        (are_accounts and named("flag"), "--flag: for Maildirs; an account has --tag"),
        (named("tag") and not are_accounts, "--tag: for accounts; a Maildir has --flag"),
        (watch and not are_accounts, "--watch: for accounts; leave it out, and repeat it by cron"),
        (watch and values["dry_run"], "--watch: stays connected and sorts; leave --dry-run out"),
        (watch and named("as_json"), "--json: for the report of one run; --watch has --log json"),
        (named("log") and not watch, "--log: for --watch; give it, too"),
        (named("metrics") and not watch, "--metrics: for --watch; give it, too"),
    ):
        if is_idle:
            raise UsageError(why)
    for option in ("spam-folder", "unsure-folder"):
        if values["flag"] is not None and named(option.replace("-", "_")):
            raise UsageError(f"--{option}: no mail moves with --flag; leave one of them out")


def _sort_all(
    sorters: Sequence[tuple[str, "Callable[..., SortingReport]"]], is_dry: bool, as_json: bool
) -> int:
    """Sort each mailbox, and print its report; return the exit status."""
    from nbspam.delivery.maildir import SortingReport

    status, failed = 0, list[NbspamError]()
    for mailbox, sort in sorters:
        shown = f"{mailbox}: " if len(sorters) > 1 else ""
        report = SortingReport()
        try:
            sort(report=report)
        except NbspamError as error:  # the next one may still be sorted
            failed.append(error)
            if not (report.judged or report.learned):
                continue
        status |= _print_report(mailbox, shown, report, is_dry, as_json)
    for each in failed[:-1]:
        diagnose(str(each))
    if failed:
        raise failed[-1]
    return status


def _print_report(
    mailbox: str, shown: str, report: "SortingReport", is_dry: bool, as_json: bool
) -> int:
    """Print a report on a mailbox, with `shown` before its summary; return the exit status."""
    output.report_skipped(report.skipped)
    for note in report.notes:
        if note != report.lack:
            output.warn(note)
    if report.lack is not None:
        output.warn(f"{report.lack}; new mail stays where it is")
    if as_json:
        values = {**asdict(report), "skipped": output.skipped_json(report.skipped)}
        output.echo_json({"maildir": mailbox, "dry_run": is_dry, **values})
    else:
        if is_dry:
            output.echo_rows(map(_row, (*report.learned, *report.judged)))
        output.echo_summary(printable(shown + _summary(report, is_dry)))
    return 1 if report.skipped else 0


def _row(one: "SortedMessage") -> tuple[str, ...]:
    if one.probability is None:
        return "learn", one.label, one.name
    return "move" if one.moved_to else "leave", one.label, one.name, one.moved_to or ""


def _summary(report: "SortingReport", is_dry: bool) -> str:
    """Return one line on the moves and lessons, done or to be done."""
    judged, learned = (
        output.counts_text(Counter(sorted(one.label for one in done))) or "nothing"
        for done in (report.judged, report.learned)
    )
    verb = "would be " if is_dry else ""
    return f"new: {judged}; {verb}learned from moves: {learned}"
