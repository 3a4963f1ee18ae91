"""Repeated messages: each message counts once, in the class that it had last.

Workers and shares count everything that they read, so that they do not need to know of each
other.  When their counts are added, the messages are looked at in the order of the corpus, and
copies of earlier ones are subtracted.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from nbspam.arrays import Booleans, Keys, Strings
from nbspam.counts.memory import Messages, Sampling
from nbspam.counts.table import CountTable, TableSum, negative, token_counts_of
from nbspam.mail.digest import Copies
from nbspam.tokens.documents import Vocabulary
from nbspam.tokens.tokenizer import groups_of

Read = tuple[Messages, list[bool]]  # messages, and whether each was told (see Item)


class Unique:
    """Makes each message count once, in the class that it had last.

    A message that has another class when it comes again moves to that class.  It is told if any
    copy with this class was, since it moved there.
    """

    def __init__(self, weighting: str) -> None:
        self._weighting = weighting
        self.n_read = 0
        self.label: dict[int, str] = {}  # by digest
        self.told: set[int] = set()  # the digests of the messages whose classes were told
        self._copies = Copies()
        self._repeated = TableSum()  # the counts of repeated messages
        self._moves: list[tuple[Messages, str]] = []  # each message with the class that it leaves

    @property
    def digests(self) -> Keys:
        """The digests of the messages, shape (n_docs,); those of copies of a text differ."""
        return np.fromiter(self.label, np.uint64, len(self.label))

    @property
    def n_repeated(self) -> int:
        """How many messages came again."""
        return self.n_read - len(self.label)

    def new_of(self, parts: Iterable[Read]) -> list[Messages]:
        """Return the messages that did not come before, with digests of their own."""
        new = []
        for part, told in parts:
            self.n_read += len(part.labels)
            digests = np.array(
                [self._copies.numbered(digest) for digest in part.digests.tolist()], np.uint64
            )
            part = part._replace(digests=digests)
            is_new = np.array(
                [
                    self._is_new(part, row, *each)
                    for row, each in enumerate(
                        zip(digests.tolist(), part.labels.tolist(), told, strict=True)
                    )
                ],
                np.bool_,
            )
            if not is_new.all():
                self._repeated.add(table_of_messages(part.take(~is_new), self._weighting))
            new.append(part.take(is_new))
        return new

    def _is_new(self, part: Messages, row: int, digest: int, name: str, told: bool) -> bool:
        before = self.label.get(digest)
        self.label[digest] = name
        if before is not None and before != name:
            self._moves.append((_message(part, row), before))
            self.told.discard(digest)
        if told:
            self.told.add(digest)
        return before is None

    def corrections(self, sample: Sequence[Messages]) -> CountTable:
        """Return the corrections that repeated messages make to the counts of everything read.

        The copy that was counted is moved if it is in the sample, else the copy that came again.
        The texts of tokens are left empty.
        """
        total = TableSum()
        total.add(negative(self._repeated.total()))
        if self._moves:
            counted = {
                digest: (part, row)
                for part in sample
                for row, digest in enumerate(part.digests.tolist())
            }
        for copy, before in self._moves:
            at_hand = counted.get(int(copy.digests[0]))
            message = copy if at_hand is None else _message(*at_hand)
            moved = table_of_messages(message._replace(labels=copy.labels), self._weighting)
            total.add(moved)
            total.add(negative(moved._replace(classes=(before,))))
        return total.total()

    def relabelled(self, parts: Iterable[Messages]) -> Iterable[Messages]:
        """Return messages that this object knows, with the classes that they had last."""
        if not self._moves:
            return parts
        return (
            part._replace(
                labels=np.array(
                    [
                        self.label.get(digest, name)
                        for digest, name in zip(
                            part.digests.tolist(), part.labels.tolist(), strict=True
                        )
                    ],
                    np.str_,
                )
            )
            for part in parts
        )


def repeated(digests: Keys) -> Keys:
    """Return the digests that come several times, each once, ascending."""
    ascending = np.sort(digests)
    return np.unique(ascending[1:][ascending[1:] == ascending[:-1]])


def _message(part: Messages, row: int) -> Messages:
    return part.take(np.arange(len(part.labels)) == row)


def table_of_messages(part: Messages, weighting: str) -> CountTable:
    """Return the counts of messages; the texts of tokens are left empty."""
    classes, y = np.unique(part.labels, return_inverse=True)
    keys = part.documents.tokens
    groups = groups_of(keys)
    counts = token_counts_of(part.documents, y, len(classes), groups, weighting)
    no_texts = np.empty(0, np.uint8), np.zeros(len(keys) + 1, np.int64)
    names = tuple(classes.tolist())
    vocabulary = Vocabulary(keys, *no_texts, groups)
    return CountTable(names, counts[0], vocabulary, counts[1], counts[2])


# ---- without a ledger only the messages of the sample are remembered ----


class SampledMessages:
    """The messages that the sample may take, chosen as they arrive."""

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        self._told: dict[int, bool] = {}  # by digest, of all messages that ever were in the sample

    def new_of(self, parts: Iterable[Read]) -> list[Messages]:
        """Return the messages to add to the sample: wanted, and not added before."""
        new = []
        for part, told in parts:
            chosen = self._sampling.wants(part.digests)
            for row in np.flatnonzero(chosen).tolist():
                digest = int(part.digests[row])
                chosen[row] = digest not in self._told
                self._told.setdefault(digest, told[row])
            new.append(part.take(chosen))
        return new

    def known(self, sample: Sequence[Messages]) -> tuple[Keys, Strings, Booleans]:
        """Return the digests and classes of the sample's messages, and whether each was told."""
        digests = np.concatenate([np.empty(0, np.uint64), *(part.digests for part in sample)])
        labels = np.concatenate([np.empty(0, np.str_), *(part.labels for part in sample)])
        return digests, labels, np.array([self._told[d] for d in digests.tolist()], np.bool_)
