"""Sent mail as a model knows it: the ids of messages, and the addresses and names of people.

Each is a fact of 64 bits, a keyed hash.  The key is the same in every model, so that models can
be merged; it keeps the facts apart from all other hashes.  A secret key would lie in the same file
as the facts, and hide nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Integers, Keys, distinct
from nbspam.printing import amount_text

ID, ADDRESS, NAME, OWN = range(4)  # kinds of facts, in their lowest two bits
_KIND_BITS = np.uint64(3)
_KEY = b"nbspam: sent mail"
_LATEST = (1 << 32) - 1  # seconds


# Facts about the sender of a message, and their meanings.
FACTS = {
    "known-correspondent": "comes from an address that you have written to",
    "known-correspondent-authenticated": "comes from somebody that you have written to: your"
    " server's checks say so",
    "known-address-unauthenticated": "bears an address that you have written to, and no check by"
    " your server says that it comes from there",
    "first-contact": "comes from an address that you had never written to",
    "known-name-from-another-address": "bears the name of somebody you know by another address",
    "reply-to-you": "answers a message that you sent to this address",
    "reply-from-a-stranger": "answers a message of yours, from an address that you do not know",
    "reply-to-nothing-from-a-known-address": "claims to answer you, but you sent no such message;"
    " bears an address that you have written to",
    "reply-to-nothing": "claims to answer you, but you sent no such message",
}


def fact_in_words(token: str) -> str | None:
    """Return the meaning of a token about the sender; None for other tokens."""
    origin, _, word = token.partition(":")
    if origin == "people":
        return FACTS.get(word)
    if origin == "auth":
        method, _, result = word.partition("-")
        return f"your server's check by {method.upper()}: {result}"
    return None


class SentMessage(NamedTuple):
    """A message that the user has sent, and its facts."""

    digest: int  # as in the ledger
    when: int  # seconds since 1970; 0: not known
    facts: tuple[int, ...]


def sent_fact(kind: int, text: bytes) -> int:
    """Return the fact that a text is; kind: ID, ADDRESS or NAME."""
    value = int.from_bytes(blake2b(text, digest_size=8, key=_KEY).digest(), "little")
    return value & ~3 | kind


@dataclass(frozen=True, slots=True, eq=False)
class SentMail:
    """The facts of sent mail, by fact and time: the first of a fact is the earliest."""

    facts: Keys  # (n,)
    when: Integers  # (n,) seconds since 1970, 32 bits
    sent: Keys  # (n,) digest of the message that has the fact

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SentMail) and all(map(np.array_equal, self.arrays, other.arrays))

    def __bool__(self) -> bool:
        return len(self.facts) > 0

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The three arrays."""
        return self.facts, self.when, self.sent

    @property
    def messages(self) -> Keys:
        """The digests of the messages, ascending."""
        return np.asarray(distinct(self.sent))

    @property
    def n_correspondents(self) -> int:
        """The number of addresses."""
        return len(distinct(self.facts[self.facts & _KIND_BITS == ADDRESS]))

    def since(self, kind: int, text: bytes) -> int | None:
        """Return the second in which a fact was first true; 0: not known when; None: never."""
        times = self.when[self._rows(kind, text)]
        return int(times[0]) if len(times) else None

    def was_sent_to(self, message_id: bytes, address: bytes) -> bool:
        """Return whether the message of an id went to an address."""
        rows = self._rows(ID, message_id), self._rows(ADDRESS, address)
        messages, others = (self.sent[each].tolist() for each in rows)
        return not set(messages).isdisjoint(others)

    def _rows(self, kind: int, text: bytes) -> slice:
        fact = np.uint64(sent_fact(kind, text))
        return slice(*(int(self.facts.searchsorted(fact, side)) for side in ("left", "right")))

    @property
    def in_words(self) -> str:
        """How much is known."""
        counts = {"sent messages": len(self.messages), "correspondents": self.n_correspondents}
        return ", ".join(amount_text(n, noun) for noun, n in counts.items())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for the model file; the inverse is `SentMail(**values)`."""
        return {"facts": self.facts, "when": self.when, "sent": self.sent}

    def united(self, other: "SentMail") -> "SentMail":
        """Return the facts of both."""
        return _ordered(*map(np.concatenate, zip(self.arrays, other.arrays, strict=True)))

    def without(self, digests: Iterable[int]) -> "SentMail":
        """Return the facts without some messages."""
        stays = ~np.isin(self.sent, np.fromiter(digests, np.uint64))
        return SentMail(*(array[stays] for array in self.arrays))

    def by_message(self) -> list[SentMessage]:
        """Return the messages in the order of their digests, each with its facts."""
        found: dict[tuple[int, int], list[int]] = {}
        for fact, when, digest in zip(*(each.tolist() for each in self.arrays), strict=True):
            found.setdefault((digest, when), []).append(fact)
        return [SentMessage(*message, tuple(facts)) for message, facts in sorted(found.items())]


def sent_mail_of(messages: Iterable[SentMessage]) -> SentMail:
    """Return the facts of messages."""
    rows = [(f, min(m.when, _LATEST), m.digest) for m in messages for f in m.facts]
    facts, when, sent = zip(*rows, strict=True) if rows else ((), (), ())
    return _ordered(
        np.array(facts, np.uint64), np.array(when, np.uint32), np.array(sent, np.uint64)
    )


def _ordered(facts: Keys, when: Integers, sent: Keys) -> SentMail:
    """Return the facts in order, each of a message once, with the earliest time of its copies."""
    order = np.lexsort((when, sent))
    facts, when, sent = facts[order], when[order], sent[order]
    when = when[np.searchsorted(sent, sent)]
    order = np.lexsort((sent, when, facts))
    facts, when, sent = facts[order], when[order], sent[order]
    is_new = np.ones(len(facts), np.bool_)
    is_new[1:] = (facts[1:] != facts[:-1]) | (sent[1:] != sent[:-1])
    return SentMail(facts[is_new], when[is_new], sent[is_new])
