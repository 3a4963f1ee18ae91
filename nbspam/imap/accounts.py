"""A mail account: its URL, and where its password or token is kept.

URLs of accounts, folders and messages follow RFC 5092:

    imaps://ann@mail.example.org/                                  an account
    imaps://ann@mail.example.org/INBOX                             a folder
    imaps://ann@mail.example.org/INBOX;UIDVALIDITY=17/;UID=4       a message

`imap://` is the port on which TLS begins by STARTTLS.  User and folder are
percent-encoded UTF-8; a folder need not be encoded if the shell lets it pass.

A secret is for one connection.  It is never an option, and never in a model, log, list of
processes or error.  It comes from the first of these that exists: --token-command,
--password-command, the file USER@HOST in systemd's $CREDENTIALS_DIRECTORY, the keyring of the
desktop (`keyring set HOST USER`), a prompt.
"""

import os
import re
import ssl
import subprocess
import sys
from getpass import getpass
from typing import NamedTuple
from urllib.parse import quote, unquote

from nbspam.errors import InputError, UsageError

_URL = re.compile(
    r"(?P<scheme>imaps?)://(?:(?P<user>[^/]*)@)?(?P<host>\[[0-9a-f:.]+\]|[^\s:/@\[\]]+)"
    r"(?::(?P<port>[0-9]{1,5}))?(?:/(?P<path>.*))?",
    re.IGNORECASE | re.DOTALL,
)
_PATH = re.compile(
    r"(?P<folder>.*?)/?(?:;UIDVALIDITY=(?P<validity>[0-9]{1,10}))?(?:/?;UID=(?P<uid>[0-9]{1,10}))?/?",
    re.IGNORECASE | re.DOTALL,
)
_HOW = "write imaps://USER@HOST/FOLDER"
_PORTS = {"imaps": 993, "imap": 143}
_SAFE = "/.,=!*'()$+ "  # in folders, beside letters, digits and _-~; a space is encoded below
_PATIENCE = 300.0  # seconds for a command, which may ask its user for a passphrase
_MOST = 1 << 16  # characters of a secret
INBOX = "INBOX"
IMAP_NUMBERS = 1 << 63  # that a database can keep; no honest server states a greater one


class ImapUrl(NamedTuple):
    """An account, or a folder or message of it."""

    is_tls: bool  # from the first byte on, as imaps:// says
    user: str
    host: str
    port: int
    folder: str = ""  # as people see it, not in UTF-7; "": the whole account
    validity: int | None = None  # UIDVALIDITY, under which the UID has a meaning; None: any
    uid: int | None = None  # None: the whole folder

    @property
    def account(self) -> str:
        """The account in messages, notes and commands: USER@HOST, and an unusual port."""
        return f"{self.user}@{self._server}"

    @property
    def _server(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        is_usual = self.port == _PORTS["imaps" if self.is_tls else "imap"]
        return host if is_usual else f"{host}:{self.port}"

    def of_folder(self, folder: str) -> "ImapUrl":
        """Return the URL of a folder of the account."""
        return self._replace(folder=folder, validity=None, uid=None)

    def of_message(self, validity: int, uid: int) -> "ImapUrl":
        """Return the URL of a message of this folder."""
        return self._replace(validity=validity, uid=uid)

    def __str__(self) -> str:
        scheme = "imaps" if self.is_tls else "imap"
        text = f"{scheme}://{quote(self.user, safe='')}@{self._server}/"
        text += quote(self.folder, safe=_SAFE).replace(" ", "%20")
        if self.uid is None:
            return text
        return f"{text};UIDVALIDITY={self.validity or 0}/;UID={self.uid}"


def imap_url(path: str) -> ImapUrl:
    """Return the parts of a URL; raises UsageError, which repeats no password."""
    found = _URL.fullmatch(path)
    user = (found["user"] if found else None) or ""
    user = re.sub(r";AUTH=[^;]*$", "", user, flags=re.IGNORECASE)  # servers state their mechanisms
    # A password may have a slash, behind which the pattern finds a path.
    if ":" in (user or path.partition("//")[2].rpartition("@")[0]):
        raise UsageError(
            "imaps://: a password in a URL is seen by others; leave it out, and give"
            " --password-command or type it when asked"
        )
    if found is None:
        raise UsageError(f"{path}: no URL of a mail account; {_HOW}")
    if not user:
        raise UsageError(f"{path}: names no user; {_HOW}")
    scheme = found["scheme"].lower()
    port = int(found["port"]) if found["port"] else _PORTS[scheme]
    inside = _PATH.fullmatch(found["path"] or "")
    assert inside is not None  # it fits whatever there is
    url = ImapUrl(
        scheme == "imaps",
        unquote(user),
        found["host"].strip("[]").lower(),
        port,
        folder_name(unquote(inside["folder"])),
        int(inside["validity"]) if inside["validity"] else None,
        int(inside["uid"]) if inside["uid"] else None,
    )
    try:
        sent = (url.user + url.folder).encode() + url.host.encode("idna")
    except UnicodeError:  # bytes that are no UTF-8, or a host with an empty label
        sent = None
    if sent is None or re.search(rb"[\0\r\n]", sent) or not 0 < port < 1 << 16:
        raise UsageError(f"{path}: no URL of a mail account; {_HOW}")
    return url


def folder_name(name: str) -> str:
    """Return the one name of a folder: only the inbox has the same in any case (RFC 3501)."""
    return INBOX if name.lower() == "inbox" else name


# --- secrets ------------------------------------------------------------------------------


class AccountSecret(NamedTuple):
    """A password or a token."""

    text: str
    is_token: bool = False  # of OAuth2, which expires

    def __repr__(self) -> str:
        return "AccountSecret(…)"


class AccountAccess(NamedTuple):
    """The commands that print an account's secret, and its owner's choices."""

    password_command: str | None = None
    token_command: str | None = None
    tls_ca: str | None = None  # a file of certificates; None: those of the system
    spam_folder: str | None = None  # on the page; None: by its use, or its usual name

    def tls_context(self) -> ssl.SSLContext:
        """Return the context in which certificates are verified; raises InputError."""
        try:
            return ssl.create_default_context(cafile=self.tls_ca)
        except (OSError, ssl.SSLError) as error:
            raise InputError(
                f"--tls-ca {self.tls_ca}: {getattr(error, 'strerror', None) or error}; give a file"
                " of certificates (PEM)"
            ) from None


class AccessBook:
    """The access to all accounts of one call; each secret is typed once.

    general: the access to accounts that have none of their own.  own: by their names.  before: a
    book whose typed secrets are used again.
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
        """Return the access to an account; a general secret is for those without their own."""
        general, own = self._general, self._own.get(url.account, AccountAccess())
        if own.password_command or own.token_command:
            general = general._replace(password_command=None, token_command=None)
        return AccountAccess(*(its or other for its, other in zip(own, general, strict=True)))

    def secret_of(self, url: ImapUrl) -> AccountSecret:
        """Return the secret of an account; raises InputError and UsageError."""
        access = self.access_to(url)
        if command := access.token_command:
            secret = printed_secret("--token-command", command, url.account)
            return AccountSecret(secret, is_token=True)
        if command := access.password_command:
            return AccountSecret(printed_secret("--password-command", command, url.account))
        if found := _credential(url) or _in_keyring(url):
            return AccountSecret(found)
        if url.account not in self._typed:
            self._typed[url.account] = AccountSecret(_typed(url))
        return self._typed[url.account]


def printed_secret(option: str, command: str, account: str) -> str:
    """Return the first line that a command prints; its environment has NBSPAM_ACCOUNT."""
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
    """Return the secret in systemd's file of credentials; "" if there is none."""
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if not folder or "/" in url.account:
        return ""
    path = os.path.join(folder, f"{url.user}@{url.host}")  # systemd takes no colon
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
