"""Lists of senders, domains, mailing lists and recipients whose mail is allowed or denied.

A file of lines beside a model, MODEL.lists:

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
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from nbspam import disk
from nbspam.decision import HAM_AND_SPAM, Rule
from nbspam.errors import InputError, ModelFileError
from nbspam.mail.correspondence import (
    MAX_HOST,
    Mailbox,
    are_genuine,
    listed_form,
    read_correspondence,
)
from nbspam.mail.headers import open_message
from nbspam.verdicts import Evidence, Explanation, Verdict

CERTAIN = 40.0  # nats: more than any evidence of a message's words
_UNSURE = 0.001  # P(spam) nearer to 0 or 1 teaches, if a true line says the same
HINT = 1.0  # nats, of an allowed sender without verification: E-261
_VERBS = ("allow", "deny", "trust")
_ADDRESS = re.compile(r"(?:(?:list|to):)?[^\s@:#<>]*@?[^\s@:#<>]+\Z")  # "#" begins a comment
_SENDER = re.compile(r"[^\s@:#\ufffd]+@[^\s@:#\ufffd]+\Z")
_SERVER = re.compile(r"[^\s#;]+\Z")
_LEAST = 1e-15  # probabilities are kept this far from 0 and 1
_LIST_ID = re.compile(rb"<\s*+([^<>\s]++)\s*+>|(?<![^<>\s])([^<>\s]++)\s*+\Z")


class ListMatch(NamedTuple):
    """The line of a list that a message fits."""

    line: str  # as "allow ann@example.org"
    shift: float  # nats for spam
    why: str  # it counts so much
    is_true: bool = False  # verified: by the trusted server, or as a named recipient


class AddressLists(NamedTuple):
    """The lines of a file: the action for each address, and the trusted server."""

    verbs: dict[str, str]  # "allow" or "deny", by address
    trusted: str | None = None  # an authserv-id of RFC 8601

    def match(
        self, data: bytes, recipient: str = "", trusted: str | None = None
    ) -> ListMatch | None:
        """Return the most specific line that a message fits, None if there is none.

        recipient: as the mail system names it, from `judge.known_as`.  trusted: the server that
        the model trusts, if the lists name none.
        """
        head = read_correspondence(open_message(data))
        senders = head.mailboxes(b"from")
        found = map(_LIST_ID.search, head.values.get(b"list-id", ()))
        list_ids = [_text(each[1] or each[2]).lower() if each else "" for each in found]
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
        server = self.trusted or trusted
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
        text = disk.read_own(path, disk.parent_folder(path)).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    except ModelFileError as error:
        raise InputError(str(error)) from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; make it readable") from error
    verbs, trusted = {}, None
    for number, line in enumerate(text.split("\n"), start=1):
        verb, _, key = line.partition("#")[0].strip().partition(" ")
        key = listed_form(key.strip())
        if verb == "trust" and key:
            trusted = key
        elif verb in _VERBS and _ADDRESS.match(key):
            verbs[key] = verb
        elif verb:
            what = "neither allow nor deny ADDRESS, nor trust SERVER; correct the line"
            raise InputError(f"{path}:{number}: {what}")
    return AddressLists(verbs, trusted)


def checked_address(text: str) -> str:
    """Return an address as lists have it; raises InputError."""
    key = re.sub(r"^(list:|to:|)<(.*)>$", r"\1\2", text.strip())  # as headers have it
    key = listed_form(re.sub(r"^\*?[@.](?=[^@]+$)", "", key))  # *@example.org, of other filters
    # Nobody's mail would fit a word without a domain, or a domain with a wildcard.
    is_vain = not any(sign in key for sign in ".@:") or "*" in key.rpartition("@")[2]
    if is_vain or not _ADDRESS.match(key) or not key.isprintable():
        raise InputError(
            f"{text}: no address; write ann@example.org, example.org, list:ID or to:ADDRESS"
        )
    return key


def checked_server(text: str) -> str:
    """Return the name of a server as lists have it; raises InputError."""
    name = text.strip().lower()
    if not _SERVER.match(name) or not name.isprintable():
        raise InputError(
            f"--trust {text}: no name of a server; give the first word of its"
            " Authentication-Results, such as mx.example.org"
        )
    return name


def sender_of(data: bytes) -> str | None:
    """Return the address of a message's only sender, as lists have it; None without one.

    Strangers write it, so an address that does not fit into a line counts as none.
    """
    senders = read_correspondence(open_message(data)).mailboxes(b"from")
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
    keys = set(addresses)
    with disk.locked(disk.resolved(model), patience=patience):
        before = read_lists(model) or AddressLists({})
        verbs = {key: each for key, each in before.verbs.items() if key not in keys}
        verbs |= {} if verb is None else dict.fromkeys(keys, verb)
        lists = AddressLists(verbs, before.trusted if trust is None else checked_server(trust))
        try:
            write_lists(model, lists)
        except OSError as error:
            raise disk.unwritable(lists_path(model), error, "lists") from error
    return lists


def write_lists(model: str, lists: AddressLists) -> None:
    """Write the lists beside a model; raises OSError.  The caller holds the model's lock."""
    path = lists_path(model)
    lines = [f"trust {lists.trusted}"] if lists.trusted else []
    lines += [f"{verb} {key}" for key, verb in sorted(lists.verbs.items())]
    data = "".join(f"{line}\n" for line in lines).encode()
    with disk.replacing(path, like=disk.parent_folder(path)) as file:
        file.write(data)


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


class ListsBeside(NamedTuple):
    """The lists beside a classifier, which change its verdicts and explanations."""

    lists: AddressLists
    trusted: str | None  # the server that the model trusts

    def verdict(self, item: Any, verdict: Verdict, rule: Rule) -> Verdict:
        """Return the verdict on a message by model and lists."""
        match = self.lists.match(item.read(), trusted=self.trusted)
        return verdict if match is None else listed_verdict(verdict, match, rule)

    def explanation(self, item: Any, found: Explanation, rule: Rule) -> Explanation:
        """Return the explanation of a message by model and lists."""
        match = self.lists.match(item.read(), trusted=self.trusted)
        return found if match is None else listed_explanation(found, match, rule)
