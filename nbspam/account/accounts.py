"""One account to be sorted: its URL, secrets, model and choices; and one look at it."""

from collections.abc import Callable
from typing import NamedTuple

from nbspam.account.memory import AccountMemory
from nbspam.account.sort import AccountChoices, AccountSorter
from nbspam.classifier.classifier import Classifier
from nbspam.decision import Rule
from nbspam.imap.secrets import AccessBook
from nbspam.imap.session import AccountSession
from nbspam.imap.urls import ImapUrl
from nbspam.maildir.maildir import SortingReport


class SortedAccount(NamedTuple):
    """An account, and how it is sorted."""

    url: ImapUrl  # its folder is where new mail arrives; "": INBOX
    book: AccessBook
    model_path: str
    choices: AccountChoices
    rule_of: Callable[[Classifier], Rule]

    def sort_by(self, session: AccountSession, day: int) -> SortingReport:
        """Look at the account once, by a session; raises NbspamError.

        day: today, in days since 1970-01-01.
        """
        memory = AccountMemory(self.model_path, self.url.account, writes=not self.choices.dry_run)
        try:
            return AccountSorter(
                session, memory, self.model_path, self.choices, day, self.rule_of
            ).sort()
        finally:
            memory.close()


def sort_account(account: SortedAccount, day: int) -> SortingReport:
    """Look at an account once; raises NbspamError."""
    with AccountSession(account.url, account.book) as session:
        return account.sort_by(session, day)
