"""nbspam setup: an account from nothing to a model, and what to type next."""

from typing import TYPE_CHECKING

import click

from nbspam.cli import options, output
from nbspam.cli.accounts import access_book, accounts
from nbspam.cli.frame import Command
from nbspam.printing import printable

if TYPE_CHECKING:
    from nbspam.account.setup import AccountSurvey, FirstDay

_REASONS = 3  # tokens that are shown of a verdict


@click.command("setup", cls=Command, first=("--model-file", "--password-command", "--spam-folder"))
@click.argument("account", metavar="ACCOUNT")
@options.model_option
@click.option(
    "--spam-folder",
    metavar="NAME",
    help="Folder for spam.  [default: found by its use or usual name]",
)
@options.access_options
def setup_command(
    account: str,
    model_path: str,
    spam_folder: str | None,
    password_command: str | None,
    token_command: str | None,
    tls_ca: str | None,
) -> None:
    """Look at a mail account, learn from it, and show what sorting it would do.

    ACCOUNT is imaps://USER@HOST/, or the NAME of a table [account.NAME] in the configuration
    file.  The junk folder is learned as spam; inbox and archive as ham; of many messages a
    sample by date.  The newest hundred of the inbox are judged.  Nothing in the account changes.

    \b
    nbspam setup imaps://ann@mail.example.org/
    nbspam setup --password-command 'pass show mail' imaps://ann@mail.example.org/
    """
    from nbspam.account.setup import first_day, surveyed
    from nbspam.imap.session import AccountSession
    from nbspam.imap.urls import imap_url

    table = accounts().get(account, {"url": account})
    url = imap_url(table["url"])
    model_path = table.get("model-file", model_path)
    book = access_book(password_command, token_command, tls_ca)
    with AccountSession(url, book) as session:
        survey = surveyed(session, table.get("spam-folder", spam_folder))
        output.echo_rows(
            (each.use, f"{each.n_messages:,}", printable(each.name)) for each in survey.folders
        )
        found = first_day(session, survey, options.today())
    output.report_skipped(found.skipped)
    _show_learned(found, survey)
    _show_quality(found)
    output.save_model(found.classifier, model_path)
    click.echo(f"model in {model_path}; nothing in the account was changed\nNext:")
    named = account if account in accounts() else str(url)
    if model_path != options.default_model_path():
        named = f"-m {model_path} {named}"
    click.echo(f"  nbspam sort --dry-run {named}    what sorting new mail would do")
    click.echo(f"  nbspam sort --watch {named}      sort, and stay connected")


def _show_learned(found: "FirstDay", survey: "AccountSurvey") -> None:
    """Print how many messages of each class were learned, and how many nobody has opened."""
    for sample in found.samples:
        places = " and ".join(map(printable, sample.folders))
        how = "" if sample.n_learned == sample.n_there else ", evenly by date"
        n, of = f"{sample.n_learned:,}", f"{sample.n_there:,}"
        click.echo(f"learned {n} of {of} messages in {places} as {sample.label}{how}")
    junk = survey.of_use("junk")
    if junk is not None and junk.n_unread:
        click.echo(
            f"{junk.n_unread:,} of {junk.n_messages:,} in {printable(junk.name)} were never"
            " opened: they count as spam only because they lie there"
        )


def _show_quality(found: "FirstDay") -> None:
    """Print how good the model is in ten folds, and what it would move of the newest mail."""
    from nbspam.account.setup import FOLDS
    from nbspam.evaluation.evaluation import evaluation_of

    evaluation = evaluation_of(found.trial)
    ham, spam = (found.trial.classes.index(name) for name in ("ham", "spam"))
    confusion = evaluation.confusion
    n_ham, n_spam = int(confusion[ham].sum()), int(confusion[spam].sum())
    click.echo(
        f"in {FOLDS} folds: {int(confusion[ham, spam]):,} of {n_ham:,} ham called spam,"
        f" {n_spam - int(confusion[spam, spam]):,} of {n_spam:,} spam missed"
    )
    moved = [(each, of) for each, of in found.verdicts if each.verdict.label == "spam"]
    click.echo(f"of the newest {len(found.verdicts):,} in the inbox it would move {len(moved):,}")
    for each, of in moved:
        click.echo(f"  {of.sender}: {of.subject}\n    {each.brief(_REASONS)}")
