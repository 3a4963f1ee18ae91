"""A sample of the training messages, kept to learn how evidence combines.

Counts forget messages; leaving a message out of the counts needs it again.  So that training
never holds more than a bounded number of them, messages are kept by their digests: the same in
whatever order and by however many processes they are read.  A model stores the sample, so that
what it learns later is combined as if everything had been learned at once.

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

# How judgements of many classes are blended is a few numbers; 8,000 messages suffice.
_ENOUGH = 8_000
# Every message of two classes may correct tokens, the more the better: E-014.  Above _ENOUGH,
# messages are kept only as long as their tokens take no more than 40 MB of the model.
MAX_SAMPLE, MAX_ENTRIES = 32_000, 10_000_000


class Messages(NamedTuple):
    """Messages that are at hand, each with its class and digest."""

    labels: Strings  # (n_docs,)
    digests: Keys  # (n_docs,)
    documents: Documents  # over the keys of their tokens

    def take(self, chosen: Booleans) -> "Messages":
        """Return some of the messages; chosen: (n_docs,)."""
        if chosen.all():
            return self
        documents = self.documents.take(chosen).without_unused()
        return Messages(self.labels[chosen], self.digests[chosen], documents)

    def without_counts(self) -> "Messages":
        """Return the same where only the presence of tokens is counted."""
        return self._replace(documents=self.documents._replace(counts=None))


class Sample(NamedTuple):
    """The messages that a model stores, in the order of their digests."""

    bits: int  # number of zero bits at the end of every digest in it
    digests: Keys  # (n_docs,) ascending
    documents: Documents  # over all columns of the model's vocabulary


class Sampling:
    """Keeps those of the messages it is given whose digest ends in enough zero bits.

    messages: what is kept; bits: the number of zero bits, the smallest that keeps few enough.
    """

    def __init__(self, weighting: str, bits: int = 0) -> None:
        self._limit = MAX_SAMPLE if weighting == PRESENCE else _ENOUGH
        self._begin(bits)

    def _begin(self, bits: int) -> None:
        self.bits = bits
        self.messages: list[Messages] = []
        self._n_docs = self._n_entries = 0

    def add(self, parts: Iterable[Messages]) -> None:
        """Keep the messages of these parts that are to be kept."""
        for part in parts:
            self._append(part)
            while self._is_too_large():
                before = self.messages
                self._begin(self.bits + 1)
                for each in before:
                    self._append(each)

    def _append(self, part: Messages) -> None:
        kept = _with_zero_bits(part, self.bits)
        if len(kept.labels):
            self.messages.append(kept)
        self._n_docs += len(kept.labels)
        self._n_entries += len(kept.documents.columns)

    def _is_too_large(self) -> bool:
        # Once too large, always too large: the order in which messages come does not matter.
        if self._n_docs <= min(self._limit, _ENOUGH):
            return False
        return self._n_docs > self._limit or self._n_entries > MAX_ENTRIES


def _with_zero_bits(part: Messages, bits: int) -> Messages:
    return part.take((part.digests & np.uint64((1 << bits) - 1)) == 0) if bits else part


def keep(
    parts: Sequence[Messages], bits: int, vocabulary: Vocabulary, with_counts: bool
) -> Sample:
    """Return what a model stores of these messages; unknown tokens are left out."""
    columns = np.arange(len(vocabulary))
    digests = np.concatenate([np.empty(0, np.uint64), *(part.digests for part in parts)])
    if not len(digests):
        return Sample(bits, digests, no_documents(columns, with_counts))
    # One look-up for all tokens: of many keys at once it takes a third of the time.
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
    order: Integers = np.argsort(digests)
    return Sample(bits, digests[order], stacked(documents).take(order))


def messages_of(sample: Sample, labels: Strings, vocabulary: Vocabulary) -> Messages:
    """Return the messages that a model stores over the keys of its tokens; labels: (n_docs,)."""
    return Messages(labels, sample.digests, sample.documents._replace(tokens=vocabulary.keys))
