"""A sample of the training messages, kept to fit how evidence adds up.

The fit needs held-out messages, and leaving a message out of the counts needs the message itself.
So that training holds a bounded number of them, the digest of a message decides whether it is
kept: the sample does not depend on the order of messages or the number of processes.  A model
stores its sample, so that learning on gives the same model as learning everything at once.

Secret: which messages are kept.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Integers, Keys, Strings
from nbspam.settings import PRESENCE
from nbspam.tokens.documents import Documents, no_documents, stacked
from nbspam.tokens.vocabulary import Vocabulary

# Blending many classes fits only a few numbers, for which 8,000 messages suffice.
_ENOUGH = 8_000
# With two classes every message can correct tokens, so more messages help: E-014.  Above _ENOUGH,
# messages are kept only while their tokens take at most 40 MB of the model.
MAX_SAMPLE, MAX_ENTRIES = 32_000, 10_000_000


class Messages(NamedTuple):
    """Messages with their tokens, classes and digests."""

    labels: Strings  # (n_docs,)
    digests: Keys  # (n_docs,)
    documents: Documents  # over the keys of their tokens

    def take(self, chosen: Booleans) -> "Messages":
        """Return some of the messages; chosen: (n_docs,) a mask."""
        if chosen.all():
            return self
        documents = self.documents.take(chosen).without_unused()
        return Messages(self.labels[chosen], self.digests[chosen], documents)

    def without_counts(self) -> "Messages":
        """Return the same messages with only the presence of tokens."""
        return self._replace(documents=self.documents._replace(counts=None))


class Sample(NamedTuple):
    """The messages that a model stores, in the order of their digests."""

    bits: int  # number of zero bits at the end of each digest
    digests: Keys  # (n_docs,) ascending
    documents: Documents  # over all columns of the model's vocabulary


class Sampling:
    """Keeps the messages whose digest ends in a certain number of zero bits.

    messages: the messages kept so far.  bits: the number of zero bits; it grows by one whenever
    the sample is too large, which drops about half of the messages.

    A sample is too large if it has more than `limit` messages, or if it has more than `enough`
    messages and these have more than `max_entries` tokens together.  limit: unless given,
    MAX_SAMPLE if the weighting is presence, else `enough`.
    """

    def __init__(
        self,
        weighting: str,
        bits: int = 0,
        *,
        limit: int | None = None,
        enough: int = _ENOUGH,
        max_entries: int = MAX_ENTRIES,
    ) -> None:
        of_weighting = MAX_SAMPLE if weighting == PRESENCE else enough
        self._limit = of_weighting if limit is None else limit
        self._enough, self._max_entries = enough, max_entries
        self._begin(bits)

    def _begin(self, bits: int) -> None:
        self.bits = bits
        self.messages: list[Messages] = []
        self._n_docs = self._n_entries = 0

    def add(self, parts: Iterable[Messages]) -> None:
        """Add messages, and keep those that belong to the sample."""
        for part in parts:
            self._append(part)
            while self._is_too_large(self._n_docs, self._n_entries):
                self._grow()

    def wanted(self, digests: Keys, n_tokens: Integers) -> Booleans:
        """Return which of some messages to add, (n_docs,); the others would not stay.

        n_tokens: (n_docs,) the number of tokens of each message.
        """
        chosen = self.wants(digests)
        while self._is_too_large(int(chosen.sum()), int(n_tokens[chosen].sum())):
            self._grow()
            chosen = self.wants(digests)
        return chosen

    def _grow(self) -> None:
        before = self.messages
        self._begin(self.bits + 1)
        for each in before:
            self._append(each)

    def wants(self, digests: Keys) -> Booleans:
        """Return which messages of some digests would be kept now, shape (n_docs,)."""
        return np.asarray((digests & np.uint64((1 << self.bits) - 1)) == 0)

    def _append(self, part: Messages) -> None:
        kept = part.take(self.wants(part.digests))
        if len(kept.labels):
            self.messages.append(kept)
        self._n_docs += len(kept.labels)
        self._n_entries += len(kept.documents.columns)

    def _is_too_large(self, n_docs: int, n_entries: int) -> bool:
        # Adding messages to a sample that is too large leaves it too large.  So the final number
        # of bits, and with it the sample, does not depend on the order of messages.
        if n_docs <= min(self._limit, self._enough):
            return False
        return n_docs > self._limit or n_entries > self._max_entries


def keep(
    parts: Sequence[Messages], bits: int, vocabulary: Vocabulary, with_counts: bool
) -> Sample:
    """Return the sample that a model stores of these messages; drops unknown tokens."""
    digests = np.concatenate([np.empty(0, np.uint64), *(part.digests for part in parts)])
    order: Integers = np.argsort(digests)
    documents = over_columns(parts, vocabulary, with_counts)
    return Sample(bits, digests[order], documents.take(order))


def over_columns(
    parts: Sequence[Messages], vocabulary: Vocabulary, with_counts: bool
) -> Documents:
    """Return the documents of all messages in turn, over all columns; drops unknown tokens."""
    columns = np.arange(len(vocabulary))
    if not parts:
        return no_documents(columns, with_counts)
    # One look-up for all tokens, because a look-up of many keys takes a third of the time.
    found = vocabulary.columns(np.concatenate([part.documents.tokens for part in parts]))
    ends = np.cumsum([len(part.documents.tokens) for part in parts]).tolist()
    documents = [
        part.documents.on(found[start:end]).over(columns)
        for part, (start, end) in zip(parts, pairwise([0, *ends]), strict=True)
    ]
    if with_counts:
        documents = [part._replace(counts=part.times()) for part in documents]
    else:
        documents = [part._replace(counts=None) for part in documents]
    return stacked(documents)


def messages_of(sample: Sample, labels: Strings, vocabulary: Vocabulary) -> Messages:
    """Return the messages of a sample, over the keys of its tokens; labels: (n_docs,)."""
    return Messages(labels, sample.digests, sample.documents._replace(tokens=vocabulary.keys))
