"""Addresses: whom a head names, whether that is genuine, and the lists that allow or deny them.

The values are read raw, as mail programs read addresses: an encoded word is never an address.

The lists are a file of lines beside a model, MODEL.lists:

    trust mail.example.org         the server whose Authentication-Results are believed
    allow ann@example.org          a sender
    deny example.com               all senders of a domain, and of those below it
    allow list:dev.example.org     a mailing list, by its List-Id
    deny to:old@example.org        a recipient, where the mail system names it

Anybody can forge a sender.  So a sender, domain or list is allowed if the trusted server says
that the mail is genuine (an aligned DKIM or SPF result); otherwise the line is only a hint. A
line is evidence of fixed strength: it is added to the score of a message.
"""

import math
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from nbspam import disk
from nbspam.charsets import CharsetGuess
from nbspam.decision import HAM_AND_SPAM, Rule
from nbspam.errors import InputError, ModelFileError, UsageError
from nbspam.mail import headers
from nbspam.printing import printable
from nbspam.verdicts import Evidence, Explanation, Verdict

_WANTED = frozenset(
    b"from to cc bcc message-id in-reply-to references date received"
    b" authentication-results list-id subject".split()
)
# A line of such a name, or of few others: its name, blanks, and its value.
_HEADER = re.compile(
    rb"\n([ABCDFILMRSTabcdfilmrst](?i:rom|o|cc?|essage-id|n-reply-to|eferences|ate|eceived"
    rb"|uthentication-results|ist-id|ubject))([ \t]*+):(.*+(?:\n[ \t].*+)*+)"
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
_RESULT = re.compile(
    rb"\s*+(spf|dkim|dmarc|arc)\s*+(?:/\s*+\d++\s*+)?="
    rb"\s*+(none|pass|fail|softfail|policy|neutral|temperror|permerror)(?![\w-])"
)
# The domain that signed, or that the envelope or the sender named: behind the last @, because a
# stranger writes what stands before it.
_CHECKED = re.compile(
    rb"\s(?:header\.d|header\.from|smtp\.mailfrom)\s*+=\s*+(?:[^\s@]*+@)*+([\w.-]++)(?![\x80-\xff])"
)
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
    room = dict.fromkeys(_WANTED, headers.LIMITS.headers)  # whatever stands before them
    for match in _HEADER.finditer(message.head):
        name = match[1].lower()
        left = room.get(name, 0)
        # Forged checks with a blank before the colon are not removed by each mail server.
        if left > 0 and not (match[2] and name == b"authentication-results"):
            values.setdefault(name, []).append(headers.unfold(match[3][:left]))
            room[name] = left - len(match[0])
    return Correspondence(values)


class Heading(NamedTuple):
    """Sender and subject of a message; printable, whatever strangers have written."""

    sender: str
    subject: str


def heading(data: bytes) -> Heading:
    """Return the sender and the subject of a message, each "" if it has none."""
    message = headers.open_message(data)
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
        if found := _RESULT.match(part):
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
    host = "." + listed_form(_text(senders[0].address)).rpartition("@")[2]
    dmarc = [check for check in checks if check.method == "dmarc" and check.result != "none"]
    others = [check for check in checks if check.method in ("dkim", "spf") and check.domain]
    # The server may read another sender in a head than we do, and need not say which one.
    agree = [
        check.result == "pass" and (not check.domain or host.endswith(f".{check.domain}"))
        for check in dmarc or others
    ]
    return all(agree) if dmarc else any(agree)


# ---- lists ----

CERTAIN = 40.0  # nats: more than any evidence of a message's words
_UNSURE = 0.001  # P(spam) nearer to 0 or 1 teaches, if a true line says the same
HINT = 1.0  # nats, of an allowed sender without verification: E-261
_ADDRESS = re.compile(r"(?:(?:list|to):)?[^\s@:#<>]*@?[^\s@:#<>]+\Z")  # "#" begins a comment
_WILDCARD = re.compile(r"^\*?[@.](?=[^@]+$)")  # *@example.org, of other filters
_SENDER = re.compile(r"[^\s@:#\ufffd]+@[^\s@:#\ufffd]+\Z")
_SERVER = re.compile(r"[^\s#;]+\Z")
_LEAST = 1e-15  # probabilities are kept this far from 0 and 1
_LIST_ID = re.compile(rb"<\s*+([^<>\s]++)\s*+>|(?<![^<>\s])([^<>\s]++)\s*+\Z")


class ListMatch(NamedTuple):
    """The line of a list that a message fits."""

    line: str  # as "allow ann@example.org"
    shift: float  # nats for spam
    why: str  # the reason why it counts so much
    is_true: bool = False  # verified: by the trusted server, or as a named recipient


class AddressLists(NamedTuple):
    """The lines of a file: the action for each address, and the trusted server."""

    verbs: dict[str, str]  # "allow" or "deny", by address
    trusted: str | None = None  # an authserv-id of RFC 8601

    def trusting(self, server: str | None) -> "AddressLists":
        """Return the lists with the server that the model trusts, unless they name one."""
        return self._replace(trusted=self.trusted or server)

    def match(self, data: bytes, recipient: str = "") -> ListMatch | None:
        """Return the most specific line that a message fits, None if there is none.

        recipient: as the mail system names it, from `judge.known_as`.
        """
        head = read_correspondence(headers.open_message(data))
        senders = head.mailboxes(b"from")
        found = map(_LIST_ID.search, head.values.get(b"list-id", ()))
        list_ids = [listed_form(_text(each[1] or each[2])) if each else "" for each in found]
        exact = [listed_form(_text(sender.address)) for sender in senders]
        # No domain is longer: the ones above it would take memory by the square of its length.
        hosts = [address.rpartition("@")[2][-MAX_HOST:] for address in exact]
        keys = [listed_form(f"to:{recipient}"), *exact, *(f"list:{each}" for each in list_ids)]
        # A domain, and those above it, the longest first.
        keys += [host.split(".", n)[n] for host in hosts for n in range(host.count(".") + 1)]
        key = next((key for key in keys if key in self.verbs), None)
        if key is None:
            return None
        line = f"{self.verbs[key]} {key}"
        if key == keys[0]:  # a sender can call itself to:…, too
            is_denied = self.verbs[key] == "deny"
            why = "denied" if is_denied else "the mail system names the recipient"
            return ListMatch(line, CERTAIN if is_denied else -CERTAIN, why, is_denied)
        server = self.trusted
        checks = [] if server is None else head.checks(server) or []
        if key.startswith("list:"):  # DMARC is about the sender, not the list
            senders = [Mailbox(b"", f"list@{key[5:]}".encode())]
            checks = [check for check in checks if check.method != "dmarc"]
        is_genuine = are_genuine(senders, checks)
        if self.verbs[key] == "deny":
            return ListMatch(line, CERTAIN, "denied", is_genuine)
        if server is None:
            return ListMatch(line, -HINT, "a hint: no server is trusted to say who sends")
        if is_genuine:
            return ListMatch(line, -CERTAIN, f"{server} says that it is genuine", True)
        return ListMatch(line, -HINT, f"a hint: {server} does not say that it is genuine")

    def verdict(self, item: Any, verdict: Verdict, rule: Rule) -> Verdict:
        """Return the verdict on a message by model and lists."""
        match = self.match(item.read())
        return verdict if match is None else listed_verdict(verdict, match, rule)

    def explanation(self, item: Any, found: Explanation, rule: Rule) -> Explanation:
        """Return the explanation of a message by model and lists."""
        match = self.match(item.read())
        return found if match is None else listed_explanation(found, match, rule)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


# ---- verdicts ----


def listed_verdict(verdict: Verdict, match: ListMatch, rule: Rule) -> Verdict:
    """Return a verdict of ham and spam with the line of a list as further evidence."""
    spam = min(max(verdict.posterior["spam"], _LEAST), 1 - _LEAST)
    log_odds = math.log(spam / (1 - spam)) + match.shift
    spam = 1 / (1 + math.exp(-log_odds))
    (label,) = rule.labels(np.array([[1 - spam, spam]]))
    score = None if verdict.score is None else verdict.score + match.shift
    posterior = dict(zip(HAM_AND_SPAM, (1 - spam, spam), strict=True))
    return verdict._replace(label=label, posterior=posterior, score=score)


def autolearned(match: ListMatch, spam: float) -> str | None:
    """Return the class that a message may be learned as without a person, None for neither.

    Two independent signs must agree: a verified line, and the model's own probability of
    spam without that line.  E-283 has the errors of each alone.
    """
    if not match.is_true or min(spam, 1 - spam) > _UNSURE:
        return None
    label = "spam" if spam > 0.5 else "ham"
    return label if label == ("spam" if match.shift > 0 else "ham") else None


def listed_explanation(found: Explanation, match: ListMatch, rule: Rule) -> Explanation:
    """Return an explanation of ham and spam with the line of a list as further evidence."""
    shift = match.shift if found.towards == "spam" else -match.shift
    reason = Evidence(f"{match.line} ({match.why})", shift, "people", ())

    def with_reason(rows: Iterable[Evidence]) -> tuple[Evidence, ...]:
        return tuple(sorted([reason, *rows], key=lambda row: -abs(row.contribution)))

    return replace(
        found,
        verdict=listed_verdict(found.verdict, match, rule),
        score=found.score + shift,
        evidence=with_reason(found.evidence),
        tokens=None if found.tokens is None else with_reason(found.tokens),
    )


# ---- the file ----


def lists_path(model: str) -> str:
    """Return the path of the lists beside a model."""
    return f"{disk.resolved(model)}.lists"


def read_lists(model: str) -> AddressLists | None:
    """Return the lists beside a model, None if there are none; raises InputError."""
    path = lists_path(model)
    try:
        text = disk.read_own(path, disk.resolved(model)).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    except ModelFileError as error:
        raise InputError(str(error)) from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; make it readable") from error
    verbs, trusted = {}, None
    for number, line in enumerate(text.split("\n"), start=1):
        verb, _, key = line.partition("#")[0].strip().partition(" ")
        key = listed_form(_WILDCARD.sub("", key.strip()))
        if verb == "trust" and key:
            trusted = key
        elif verb in ("allow", "deny") and _ADDRESS.match(key):
            verbs[key] = verb
        elif verb:
            what = "neither allow nor deny ADDRESS, nor trust SERVER; correct the line"
            raise InputError(f"{path}:{number}: {what}")
    return AddressLists(verbs, trusted)


def checked_address(text: str) -> str:
    """Return an address as lists have it; raises UsageError."""
    key = re.sub(r"^(list:|to:|)<(.*)>$", r"\1\2", text.strip())  # as headers have it
    key = listed_form(_WILDCARD.sub("", key))
    # Nobody's mail would fit a word without a domain, or a domain with a wildcard.
    is_vain = not any(sign in key for sign in ".@:") or "*" in key.rpartition("@")[2]
    if is_vain or not _ADDRESS.match(key) or not key.isprintable():
        raise UsageError(
            f"{text}: no address; write ann@example.org, example.org, list:ID or to:ADDRESS"
        )
    return key


def sender_of(data: bytes) -> str | None:
    """Return the address of a message's only sender, as lists have it; None without one.

    Strangers write it, so an address that does not fit into a line counts as none.
    """
    senders = read_correspondence(headers.open_message(data)).mailboxes(b"from")
    text = listed_form(_text(senders[0].address)) if len(senders) == 1 else ""
    return text if text.isprintable() and _SENDER.match(text) else None


def change_lists(
    model: str,
    addresses: Iterable[str],
    verb: str | None,
    trust: str | None = None,
    patience: float | None = None,
) -> AddressLists:
    """Write addresses into the lists beside a model, and return the lists; raises NbspamError.

    verb: "allow" or "deny"; None takes them off.  trust: the server that is trusted from now on.
    patience: seconds to wait for the model's lock; None: as long as it takes.
    """
    keys, server = set(addresses), None if trust is None else trust.strip().lower()
    if server is not None and not (_SERVER.match(server) and server.isprintable()):
        raise UsageError(
            f"--trust {trust}: no name of a server; give the first word of its"
            " Authentication-Results, such as mx.example.org"
        )
    with disk.locked(disk.resolved(model), patience=patience):
        before = read_lists(model) or AddressLists({})
        verbs = {key: each for key, each in before.verbs.items() if key not in keys}
        verbs |= {} if verb is None else dict.fromkeys(keys, verb)
        lists = AddressLists(verbs, before.trusted if server is None else server)
        lines = [f"trust {lists.trusted}"] if lists.trusted else []
        lines += [f"{each} {key}" for key, each in sorted(verbs.items())]
        path = lists_path(model)
        with disk.writing(path), disk.replacing(path, like=disk.resolved(model)) as file:
            file.write("".join(f"{line}\n" for line in lines).encode())
    return lists


class ListsInUse:
    """The lists beside models, read again when they change; for one thread."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[disk.Stamp | None, AddressLists | None]] = {}

    def beside(self, model: str) -> AddressLists | None:
        """Return the lists beside a model as they are now, if there are any; raises InputError."""
        stamp = disk.stamp_of(lists_path(model))
        if model not in self._held or self._held[model][0] != stamp:
            if len(self._held) > 1000:
                self._held.clear()
            self._held[model] = stamp, None
            self._held[model] = stamp, read_lists(model) if stamp else None
        return self._held[model][1]
