"""Correspondence: the people, subject and threads that a head names, and the checks it reports.

The values are read raw, as mail programs read addresses: an encoded word is never an address.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from nbspam.charsets import CharsetGuess
from nbspam.mail import headers
from nbspam.printing import printable

_WANTED = frozenset(
    b"from to cc bcc message-id in-reply-to references date received"
    b" authentication-results list-id subject".split()
)
_MAX_SHOWN = 200  # characters of a sender or subject
_MAX_IDS = 200  # that a message answers
MAX_HOST = 253  # bytes of a domain
_ID = re.compile(rb"<([^<>\s]{1,998})>")
# A quoted string, an address in angle brackets, a comment, a separator, or a word.
_PIECE = re.compile(
    rb'"((?:[^"\\]|\\.)*+)"?|<([^<>]*+)>?|\(([^()]*+)\)?|([,;])|([^\s"<>(),;]++)', re.DOTALL
)
# Within Authentication-Results: a quoted string, an escaped character, a parenthesis, other text.
_RESULT_PIECE = re.compile(rb'"((?:[^"\\]|\\.)*+)"|\\.|([()])|([^"()\\]++)', re.DOTALL)
_RESULT = re.compile(rb"\s*+([\w-]++)\s*+(?:/\s*+\d++\s*+)?=\s*+([\w-]++)")
# The domain that signed, or that the envelope or the sender named: behind the last @, because a
# stranger writes what stands before it.
_CHECKED = re.compile(
    rb"\s(?:header\.d|header\.from|smtp\.mailfrom)\s*+=\s*+(?:[^\s@]*+@)*+([\w.-]++)(?![\x80-\xff])"
)
_METHODS = frozenset((b"spf", b"dkim", b"dmarc", b"arc"))
_RESULTS = frozenset(b"none pass fail softfail policy neutral temperror permerror".split())
_IN_QUOTES = bytes.maketrans(b";= \t\r\n\v\f", b"________")


class Mailbox(NamedTuple):
    """A person as a head names them."""

    name: bytes  # UTF-8; empty if there is none
    address: bytes  # lower case


class Check(NamedTuple):
    """A server's check of where a message is from."""

    method: str
    result: str
    domain: str  # that it is about; empty if the server does not say


class Correspondence(NamedTuple):
    """The headers on people and threads; of several of one name, all count, topmost first."""

    values: dict[bytes, list[bytes]]  # by lower-case name; raw, unfolded

    def mailboxes(self, *names: bytes) -> list[Mailbox]:
        """Return the people in headers of some names."""
        values = (value for name in names for value in self.values.get(name, ()))
        return [mailbox for value in values for mailbox in _mailboxes(value)]

    @property
    def own_id(self) -> bytes | None:
        """The Message-ID of the message."""
        found = _ID.search(b" ".join(self.values.get(b"message-id", ())))
        return found[1] if found else None

    @property
    def answered(self) -> list[bytes]:
        """The ids of the messages that this one says it answers, the nearest first."""
        values = (v for name in (b"references", b"in-reply-to") for v in self.values.get(name, ()))
        return _ID.findall(b" ".join(values))[: -_MAX_IDS - 1 : -1]

    @property
    def times(self) -> list[bytes]:
        """The values that tell when the message arrived, the most trustworthy first."""
        received = [value.rpartition(b";")[2] for value in self.values.get(b"received", ())[:1]]
        return received + self.values.get(b"date", [])[:1]

    def checks(self, authserv_id: str) -> list[Check] | None:
        """Return the topmost Authentication-Results of a server; None if it wrote none.

        RFC 8601.  The server must remove headers that others forge in its name (section 5).
        """
        for value in self.values.get(b"authentication-results", ()):
            server, _, results = _without_comments(value).partition(b";")
            words = server.split()
            if words and words[0].lower() == authserv_id.lower().encode("utf-8", "replace"):
                return list(dict.fromkeys(_known_checks(results)))
        return None


def read_correspondence(message: headers.OpenedMessage) -> Correspondence:
    """Return the people and threads that the head of a message names; never raises."""
    values: dict[bytes, list[bytes]] = {}
    for raw, value in headers.header_lines(message.head[: headers.LIMITS.headers]):
        name = raw.rstrip(b" \t").lower()
        if name in _WANTED:
            values.setdefault(name, []).append(headers.unfold(value))
    return Correspondence(values)


class Heading(NamedTuple):
    """Sender and subject of a message; printable, whatever strangers have written."""

    sender: str
    subject: str


def heading(data: bytes) -> Heading:
    """Return the sender and the subject of a message, each "" if it has none."""
    message = headers.open_message(data[: headers.LIMITS.headers])
    values = read_correspondence(message).values
    both = [values.get(name, [b""])[0] for name in (b"from", b"subject")]
    _, declared = headers.content_value(message.telling.get(b"content-type", b""))
    charset, guess = declared.get("charset", b"").decode("latin-1"), CharsetGuess(lambda: both)
    texts = [headers.decode_value(raw, charset, guess).decode("utf-8", "replace") for raw in both]
    return Heading(
        *(printable(" ".join(text[: 2 * _MAX_SHOWN].split()))[:_MAX_SHOWN] for text in texts)
    )


def _mailboxes(value: bytes) -> Iterator[Mailbox]:
    """Yield the mailboxes of a header; one with several addresses is several."""
    words: list[bytes] = []
    comment = b""
    addresses: list[bytes] = []
    for quoted, angle, said, separator, word in (m.groups(b"") for m in _PIECE.finditer(value)):
        if separator:
            yield from _people(words, addresses, comment)
            words, addresses, comment = [], [], b""
        elif angle:
            addresses.append(angle)
        elif said:
            comment = comment or said
        elif word.endswith(b":"):  # the name of a group
            words = []
        elif quoted or word:
            words.append(quoted or word)
    yield from _people(words, addresses, comment)


def _people(words: list[bytes], addresses: list[bytes], comment: bytes) -> Iterator[Mailbox]:
    if not addresses:  # no angle brackets: the words are addresses, and a comment is the name
        addresses = [word for word in words if b"@" in word]
        words = [comment]
    name = headers.decode_value(headers.QUOTED_PAIR.sub(rb"\1", b" ".join(words))).strip()
    for address in addresses:
        if b"@" in address:
            yield Mailbox(name, address.strip().lower())


def _without_comments(value: bytes) -> bytes:
    """Return a value without comments and quotation marks; separators in quotes do not count."""
    depth, pieces = 0, []
    for quoted, parenthesis, text in (m.groups(b"") for m in _RESULT_PIECE.finditer(value)):
        if parenthesis:
            depth = max(depth + (1 if parenthesis == b"(" else -1), 0)
        elif not depth:
            pieces.append(quoted.translate(_IN_QUOTES) or text)
    return b"".join(pieces)


def _known_checks(text: bytes) -> Iterator[Check]:
    for part in text.lower().split(b";"):
        found = _RESULT.match(part)
        if found and found[1] in _METHODS and found[2] in _RESULTS:
            domain = _CHECKED.search(part)
            yield Check(found[1].decode(), found[2].decode(), domain[1].decode() if domain else "")


def listed_form(address: str) -> str:
    """Return an address in lower case, its domain as DNS has it, `xn--…` with other letters."""
    address = address.lower()
    start = max(address.rfind("@"), address.find(":")) + 1
    name, host = address[:start], address[start:]
    if not host.isascii() and len(host) <= MAX_HOST:
        with suppress(UnicodeError):  # no domain
            host = host.encode("idna").decode()
    return name + host


def are_genuine(senders: list[Mailbox], checks: list[Check]) -> bool:
    """Return whether checks show that a message is from the address that it names.

    DMARC tells it.  Without it, DKIM or SPF must.  Their domain must be the address's or one above
    it, as in the relaxed alignment of RFC 7489, section 3.1.
    """
    if len(senders) != 1:
        return False
    host = "." + listed_form(senders[0].address.decode("utf-8", "replace")).rpartition("@")[2]
    dmarc = [check for check in checks if check.method == "dmarc" and check.result != "none"]
    others = [check for check in checks if check.method in ("dkim", "spf") and check.domain]
    # The server may read another sender in a head than we do, and need not say which one.
    agree = [
        check.result == "pass" and (not check.domain or host.endswith(f".{check.domain}"))
        for check in dmarc or others
    ]
    return all(agree) if dmarc else any(agree)
