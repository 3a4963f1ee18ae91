"""The password or access token of an account: from where its owner keeps it, for one connection.

A secret is never an option, and never in a model, log, list of processes or error.  The first of
these that there is gives it: --token-command, --password-command, the file USER@HOST in systemd's
$CREDENTIALS_DIRECTORY, the keyring of the desktop (`keyring set HOST USER`), a prompt.
"""

import os
import subprocess
import sys
from getpass import getpass
from typing import NamedTuple

from nbspam.errors import InputError, UsageError
from nbspam.imap.urls import ImapUrl

_PATIENCE = 300.0  # seconds for a command, which may ask its user for a passphrase
_MOST = 1 << 16  # characters of a secret


class AccountSecret(NamedTuple):
    """A password or a token."""

    text: str
    is_token: bool = False  # of OAuth2, which expires

    def __repr__(self) -> str:
        return "AccountSecret(…)"


class AccountAccess(NamedTuple):
    """How an account's secret is found, and what its owner says of its server."""

    password_command: str | None = None
    token_command: str | None = None
    tls_ca: str | None = None  # a file of certificates; None: those of the system
    spam_folder: str | None = None  # on the page; None: by its use, or its usual name


class AccessBook:
    """The ways to all accounts of one call; what was typed at a prompt is asked once.

    general: for accounts that have no way of their own.  own: by USER@HOST.  before: a book that
    knows what was typed already.
    """

    def __init__(
        self,
        general: AccountAccess | None = None,
        own: dict[str, AccountAccess] | None = None,
        before: "AccessBook | None" = None,
    ) -> None:
        self._general, self._own = general or AccountAccess(), own or {}
        self._typed: dict[str, AccountSecret] = {} if before is None else before._typed

    def access_to(self, url: ImapUrl) -> AccountAccess:
        """Return the way to an account; what is stated on the command line comes first."""
        own = self._own.get(url.account, self._general)
        return AccountAccess(*(mine or its for mine, its in zip(self._general, own, strict=True)))

    def secret_of(self, url: ImapUrl) -> AccountSecret:
        """Return the secret of an account; raises InputError and UsageError."""
        access = self.access_to(url)
        if access.token_command:
            return AccountSecret(
                printed_secret("--token-command", access.token_command, url.account), is_token=True
            )
        if access.password_command:
            return AccountSecret(
                printed_secret("--password-command", access.password_command, url.account)
            )
        found = _credential(url) or _in_keyring(url)
        if found:
            return AccountSecret(found)
        if url.account not in self._typed:
            self._typed[url.account] = AccountSecret(_typed(url))
        return self._typed[url.account]


def printed_secret(option: str, command: str, account: str) -> str:
    """Return the first line that a command prints; the command knows NBSPAM_ACCOUNT."""
    try:
        done = subprocess.run(
            command,
            shell=True,  # as with msmtp, mbsync and aerc
            stdout=subprocess.PIPE,
            timeout=_PATIENCE,
            env={**os.environ, "NBSPAM_ACCOUNT": account},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InputError(
            f"{option}: no answer in {_PATIENCE:.0f} seconds; run it yourself to see why"
        ) from None
    if done.returncode:
        raise InputError(f"{option}: exit status {done.returncode}; run it yourself to see why")
    secret = done.stdout[:_MOST].decode("utf-8", "replace").partition("\n")[0].rstrip("\r")
    if not secret:
        raise InputError(f"{option}: printed nothing in its first line; it must print the secret")
    return secret


def _credential(url: ImapUrl) -> str:
    """Return the secret that systemd has put into a file; "" if there is none."""
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if not folder or "/" in url.account:
        return ""
    path = os.path.join(folder, url.account)
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read(_MOST).partition("\n")[0].rstrip("\r")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; check its rights") from error


def _in_keyring(url: ImapUrl) -> str:
    try:
        import keyring
    except ImportError:
        return ""
    try:
        return keyring.get_password(url.host, url.user) or ""
    except Exception:  # each desktop's keyring has exceptions of its own, and none is needed
        return ""


def _typed(url: ImapUrl) -> str:
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            f"{url.account}: no password; give --password-command 'pass show mail', or"
            " --token-command for OAuth2"
        )
    return getpass(f"Password of {url.account}: ")
