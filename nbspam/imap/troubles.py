"""Errors of an account's server, each in one line that says what to do.

Errors of libraries and servers end here: a refusal becomes an AccountRefusedError; a lost
connection or a busy server becomes a LostError, after which the caller may reconnect.
"""

import imaplib
import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from nbspam.errors import InputError, LostError, UsageError
from nbspam.imap.accounts import ImapUrl

_MOST_WORDS = 160  # characters of a server's answer that an error repeats
# Temporary refusals: RFC 5530, and Gmail's and Outlook's words for too much.
_PASSING = ("UNAVAILABLE", "INUSE", "LIMIT", "THROTTLED", "OVERLOADED", "SERVERBUG")
_NOT_CONNECTED = "authenticated but not connected"  # Outlook, of one connection too many
# Texts of errors: imaplib has one class for everything that ends a connection.
CLOSED, NOTHING_SAID = "closed by the server", "nothing is said"

_REFUSED_LOGINS = {  # without the server's words, which could repeat the secret
    "log in": "user or password is refused; check both (Gmail: an app password; Outlook: a token)",
    "log in by token": "the access token is refused or has expired; run --token-command, log in"
    " there again",
}


class AccountRefusedError(InputError):
    """A server that says no.  code: its reason in a word, such as OVERQUOTA; "" if it has none."""

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.code = code


class BrokenError(LostError):
    """A connection that has ended, is silent, or makes no sense any more, within an answer."""


@contextmanager
def asking(url: ImapUrl, what: str, folder: str = "", is_first: bool = False) -> Iterator[None]:
    """Return a context that turns a library's exceptions into our errors.

    what: the command.  is_first: the server has not answered yet, and may be the wrong one.
    """
    try:
        yield
    except (InputError, LostError, UsageError):
        raise
    except Exception as error:  # also of a library that does not understand an answer
        first = _first_trouble(url, error) if is_first else None
        raise (first or _trouble(url, what, folder, error)) from None


def _first_trouble(url: ImapUrl, error: Exception) -> InputError | LostError | None:
    """Return the error if this may be the wrong server, None if nothing suggests so."""
    host, said = f"{url.host}:{url.port}", _first_line(error)
    match error:
        case ssl.SSLCertVerificationError() | socket.gaierror():
            return None
        case ssl.SSLError() if not isinstance(error, ssl.SSLEOFError):
            return InputError(
                f"{host}: speaks no TLS ({said}); write imap:// for a port on which it begins by"
                " STARTTLS"
            )
        case OSError():
            return LostError(
                f"{host}: cannot be reached ({said}); check host and port, or try again later"
            )
        case imaplib.IMAP4.abort() if NOTHING_SAID in said:
            return LostError(
                f"{host}: {NOTHING_SAID} there; check the port (993 is imaps://, 143 is imap://),"
                " or try again later"
            )
        case imaplib.IMAP4.error() if "* BYE" in said:
            return LostError(f"{host}: lets nobody in now ({said}); try again later")
        case imaplib.IMAP4.error() if CLOSED not in said:
            return InputError(f"{host}: speaks no IMAP ({said}); check host and port")
    return None


def _trouble(url: ImapUrl, what: str, folder: str, error: Exception) -> InputError | LostError:
    from imapclient.exceptions import ProtocolError

    match error:
        case ProtocolError():
            pass  # neither refused nor lost
        case ssl.SSLCertVerificationError():
            return InputError(
                f"{url.host}:{url.port}: its certificate is not to be trusted"
                f" ({error.verify_message}); check the name, and for a server of your own give"
                " --tls-ca FILE"
            )
        case socket.gaierror():
            return InputError(f"{url.host}: no such host; check the name")
        case imaplib.IMAP4.readonly():  # for imaplib a kind of lost connection
            return AccountRefusedError(
                f"{url.account}: {folder or 'the folder'}: may only be read; ask for the right to"
                " change it, or give --dry-run",
                "READ-ONLY",
            )
        case imaplib.IMAP4.error() if not (
            isinstance(error, imaplib.IMAP4.abort)
            or isinstance(error.__context__, imaplib.IMAP4.abort)  # within a login
        ):
            return _refusal(url, what, folder, error)
        case OSError() | imaplib.IMAP4.error():
            return BrokenError(
                f"{url.account}: connection lost ({_first_line(error)}); nothing is lost, try"
                " again later"
            )
    return BrokenError(
        f"{url.account}: an answer to {what} that is no IMAP ({type(error).__name__}); try again"
        " later"
    )


def _first_line(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    text = str(text)[: 10 * _MOST_WORDS].partition("\n")[0]  # IMAPClient adds advice below
    # imaplib repeats a line as Python writes bytes; of a long one the end does not matter.
    text = re.sub(r"\[?\bb(['\"])(.*)\1\]?$", r"\2", text)
    return " ".join(text.split())[:_MOST_WORDS]


def _refusal(url: ImapUrl, what: str, folder: str, error: Exception) -> InputError | LostError:
    # The word in brackets, such as OVERQUOTA.
    found = re.search(r"\[([A-Z0-9-]{1,40})[] ]", str(error).upper())
    code = found[1] if found else ""
    where = f"{url.account}: {folder}" if folder else url.account
    grows = what in ("COPY", "MOVE", "CREATE")
    if grows and not code and re.search("over ?quota", str(error), re.IGNORECASE):  # Cyrus
        code = "OVERQUOTA"
    is_much = code == "OVERQUOTA" and not grows  # Gmail, of too much traffic
    # A bug of one message or folder may stay; without login and inbox nothing goes on.
    stays = code == "SERVERBUG" and not what.startswith(("log in", "SELECT"))
    is_passing = code in _PASSING and not stays
    if is_passing or is_much or _NOT_CONNECTED in str(error):
        return LostError(
            f"{where}: the server is busy ({code or 'too many connections'}); try again later"
        )
    if wrong := _REFUSED_LOGINS.get(what):
        said = f" ({code})" if code else ""
        return AccountRefusedError(f"{where}: {wrong}{said}", code)
    if code == "OVERQUOTA":
        return AccountRefusedError(
            f"{where}: the account is full; delete some mail, or empty the trash", code
        )
    if code == "TRYCREATE" or (what in ("SELECT", "EXAMINE") and not code):
        code = "NONEXISTENT"  # if it is not listed
    said = _first_line(error)
    return AccountRefusedError(
        f"{where}: the server refuses {what} ({said}); check the account", code
    )
