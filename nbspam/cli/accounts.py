"""Mail accounts on the command line: the tables [account.NAME] of the configuration file; setup.

An account is named by such a table, or by its URL.
"""

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from nbspam.arrays import today
from nbspam.cli import frame, options, output
from nbspam.errors import NbspamError, UsageError
from nbspam.printing import amount_text, printable
from nbspam.sources.files import is_account

if TYPE_CHECKING:
    from nbspam.decision import Rule
    from nbspam.delivery.account import AccountToSort
    from nbspam.delivery.account_setup import FirstDay, SurveyedFolder
    from nbspam.delivery.maildir import SortingChoices
    from nbspam.imap.accounts import AccessBook
    from nbspam.verdicts import AnyClassifier

_ACCESS_KEYS = ("password-command", "token-command", "tls-ca", "spam-folder")
_KEYS = ("url", "model-file", *_ACCESS_KEYS, "unsure-folder")  # of a table [account.NAME]


def configured_accounts() -> dict[str, dict[str, str]]:
    """Return the mail accounts in the configuration file, by name; raises click.UsageError."""
    context = click.get_current_context(silent=True)
    if context is None or context.default_map is None:  # with --no-config
        return {}
    path = frame.config_path()
    found = frame.configured_tables(path).get(frame.ACCOUNT_TABLE, {})
    if not isinstance(found, dict):
        raise click.UsageError(f"{path}: {frame.ACCOUNT_TABLE}: in no table; write [account.NAME]")
    for name, table in found.items():
        where = f"{path}: [{frame.ACCOUNT_TABLE}.{name}]"
        if not isinstance(table, dict) or not isinstance(table.get("url"), str):
            raise click.UsageError(f'{where}: no account; give it url = "imaps://USER@HOST/"')
        for key, value in table.items():
            if key not in _KEYS:
                raise click.UsageError(f"{where} {key}: {frame.near('no such key', key, _KEYS)}")
            if not isinstance(value, str) or "\0" in value:
                raise click.UsageError(f"{where} {key}: not a string, or NUL; {frame.ADVICE}")
    return {
        name: {key: os.path.expanduser(value) for key, value in table.items()}
        for name, table in found.items()
    }


def access_book(access: options.StatedAccess, before: "AccessBook | None" = None) -> "AccessBook":
    """Return the access to all mail accounts, by options and the configuration file.

    before: a book with secrets typed earlier.
    """
    from nbspam.imap.accounts import AccessBook, AccountAccess, imap_url

    tables: dict[str, dict[str, str]] = {}
    for each in configured_accounts().values():
        account = imap_url(each["url"]).account
        # Several tables may name folders of one account; for each key the first one speaks.
        tables[account] = {**each, **tables.get(account, {})}
    own = {name: AccountAccess(*map(each.get, _ACCESS_KEYS)) for name, each in tables.items()}
    return AccessBook(AccountAccess(*access), own, before)


def is_account_name(name: str) -> bool:
    """Return whether a word names an account: a URL, or a name in the configuration file.

    ./NAME is a folder of that name.  Raises click.UsageError for a misspelt name.
    """
    known = configured_accounts()
    if is_account(name) or name in known:
        return True
    if frame.most_similar(name, known) and not os.path.exists(name):
        wrong = f"{name}: neither a mailbox nor an account"
        raise click.UsageError(frame.near(wrong, name, known))
    return False


def with_account_url(values: dict[str, Any]) -> dict[str, Any]:
    """Return the options of `serve` with the URL and the model of an account in --review.

    Raises click.UsageError.
    """
    review = values["review"]
    if review is None or values["users"] is not None or not is_account_name(review):
        return values
    table = configured_accounts().get(review, {"url": review})
    model = table.get("model-file", values["model_path"])
    return {**values, "review": table["url"], "model_path": model}


def accounts_of(
    names: Sequence[str],
    choices: "SortingChoices",
    rule: "Callable[[AnyClassifier], Rule]",
    model_path: str,
    access: options.StatedAccess,
) -> "list[AccountToSort]":
    """Return the accounts that are named, or all in the configuration file; raises UsageError.

    The table of an account outranks the general options.
    """
    from nbspam.delivery.account import AccountToSort
    from nbspam.imap.accounts import imap_url

    book, known = access_book(access), configured_accounts()
    if not names and not known:
        raise UsageError(
            "no mailbox; give a Maildir or imaps://USER@HOST/, or write [account.NAME] into"
            f" {frame.config_path()}"
        )
    found = []
    for name in names or known:
        table = known.get(name, {"url": name})
        own = replace(
            choices,
            spam_folder=table.get("spam-folder", choices.spam_folder),
            unsure_folder=table.get("unsure-folder", choices.unsure_folder),
        )
        url, model = imap_url(table["url"]), table.get("model-file", model_path)
        found.append(AccountToSort(url, book, model, own, rule))
    return found


def watch_accounts(accounts: "list[AccountToSort]", log: str, metrics: str | None) -> None:
    """Watch accounts until a signal; raises NbspamError."""
    from nbspam.server.choices import address_of, listening
    from nbspam.server.metrics import Log
    from nbspam.server.watch import watch

    where = None if metrics is None else address_of("--metrics", metrics)
    with nullcontext() if where is None else closing(listening("--metrics", where)) as listener:
        for each in accounts:
            access = each.book.access_to(each.url)
            if not (access.password_command or access.token_command):
                # Threads that ask at once would mix passwords up, show one, and heed no interrupt.
                with suppress(NbspamError):  # the account's thread tells it, and others go on
                    each.book.secret_of(each.url)
        watch(accounts, Log(log), listener)


# --- setup: an account from nothing to a model, and what to type next ---------------------------

_REASONS = 3  # tokens that are shown of a verdict


@frame.subcommand("setup", "--model-file", "--password-command", "--spam-folder")
@click.argument("account", metavar="ACCOUNT")
@options.model_option
@click.option(
    "--spam-folder",
    metavar="NAME",
    help="Folder for spam.  [default: found by its use or usual name]",
)
@options.access_options
def setup_command(
    account: str, model_path: str, spam_folder: str | None, access: options.StatedAccess
) -> None:
    """Look at a mail account, learn from it, and show what sorting it would do.

    ACCOUNT is imaps://USER@HOST/, or the NAME of a table [account.NAME] in the configuration
    file.  The junk folder is learned as spam, inbox and archive as ham; if they are large, a
    sample by date.  The newest mail of the inbox is judged.  Nothing in the account changes.

    \b
    nbspam setup imaps://ann@mail.example.org/
    nbspam setup --password-command 'pass mail' imaps://ann@mail.example.org/
    """
    from nbspam.delivery.account_setup import first_day, surveyed
    from nbspam.imap.accounts import imap_url
    from nbspam.imap.session import AccountSession

    if not is_account_name(account):
        raise click.UsageError(
            f"{account}: not an account; write imaps://USER@HOST/, or [account.NAME] into"
            f" {frame.config_path()}"
        )
    table = configured_accounts().get(account, {"url": account})
    url = imap_url(table["url"])
    model_path = table.get("model-file", model_path)
    with AccountSession(url, access_book(access)) as session:
        survey = surveyed(session, table.get("spam-folder", spam_folder))
        output.echo_rows((use, f"{of.n_messages:,}", of.name) for use, of in survey.items())
        found = first_day(session, survey, today())
    output.report_skipped(found.skipped)
    _show_learned(found, survey)
    _show_quality(found)
    output.save_model(found.classifier, model_path)
    click.echo(f"model in {model_path}; nothing in the account was changed\nNext:")
    source = click.get_current_context().get_parameter_source("model_path")
    words = [] if source is click.core.ParameterSource.DEFAULT else ["-m", model_path]
    for name, value in {"spam_folder": spam_folder, **access._asdict()}.items():
        if output.is_named(name):
            words += [f"--{name.replace('_', '-')}", value]
    named = shlex.join([*words, account if account in configured_accounts() else str(url)])
    click.echo(f"  nbspam sort --dry-run {named}    what sorting new mail would do")
    click.echo(f"  nbspam sort --watch {named}      sort, and stay connected")


def _show_learned(found: "FirstDay", survey: Mapping[str, "SurveyedFolder"]) -> None:
    """Print how many messages of each class were learned, and how many nobody has opened."""
    from nbspam.delivery.account_setup import MOST_OF_CLASS

    for label, uses in (("spam", ["junk"]), ("ham", ["inbox", "archive"])):
        there = [survey[use].name for use in uses if use in survey and survey[use].n_messages]
        places = " and ".join(map(printable, there))
        how = ", evenly by date" if found.n_there[label] > MOST_OF_CLASS else ""
        of = f"{found.n_learned[label]:,} of {amount_text(found.n_there[label], 'messages')}"
        click.echo(f"learned {of} in {places} as {label}{how}")
    if (junk := survey["junk"]).n_unread:
        click.echo(
            f"{junk.n_unread:,} of {junk.n_messages:,} in {printable(junk.name)} were never"
            " opened: they count as spam only because they lie there"
        )


def _show_quality(found: "FirstDay") -> None:
    """Print the model's errors in ten folds, and the newest mail that it would move."""
    from nbspam.delivery.account_setup import SETUP_FOLDS
    from nbspam.evaluation.evaluation import evaluation_of

    (n_kept, n_false), (n_missed, n_caught) = evaluation_of(found.trial).confusion.tolist()
    click.echo(
        f"in {SETUP_FOLDS} folds: {n_false:,} of {n_kept + n_false:,} ham called spam,"
        f" {n_missed:,} of {n_missed + n_caught:,} spam missed"
    )
    if n_left_out := n_kept + n_false - found.n_learned["ham"]:
        left_out = amount_text(n_left_out, "unread messages")
        click.echo(f"not learned: {left_out} in the inbox, probably spam")
    moved = [(each, of) for each, of in found.verdicts if each.verdict.label == "spam"]
    click.echo(f"of the newest {len(found.verdicts):,} in the inbox it would move {len(moved):,}")
    for each, of in moved:
        sender, subject = of.sender or "(no sender)", of.subject or "(no subject)"
        click.echo(f"  {sender}: {subject}\n    {each.brief(_REASONS)}")
