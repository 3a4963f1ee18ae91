"""Where a model has messages, and the changes that lessons make.

The tokens of a message are remembered if its digest ends in enough zero bits.  How many are
enough depends only on the lessons and their order, not on when the model was fitted last.  A
lesson about a message whose tokens are forgotten moves the tokens that it comes with.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from nbspam.arrays import differences, find
from nbspam.classifier.classifier import Classifier
from nbspam.counts.counting import Outcome, TokenizedLesson, outcome_of
from nbspam.counts.ledger import (
    NO_BITS,
    NOT_FILED,
    FiledMessage,
    LabelChange,
    LogProgress,
    is_remembered,
)
from nbspam.mail.digest import Copies
from nbspam.store.assembly import memory_of
from nbspam.tokens.sparse import Documents, empty_vocabulary, no_documents

_ANY = 1 << 62  # more tokens than there are
NOWHERE = ""  # the class of messages that are to be un-learned; no class has this name


class MessageFiling(NamedTuple):
    """The messages of a model file, and the later changes of them."""

    base: Classifier
    known: Mapping[int, LabelChange]  # the last change of each message, by digest
    progress: LogProgress

    @property
    def bits(self) -> int:
        """How many zero bits end the digest of each message whose tokens are remembered."""
        own = memory_of(self.base).sample.bits
        return own if self.progress.bits == NO_BITS else max(own, self.progress.bits)

    def at(self, digest: int) -> FiledMessage:
        """Return where the model has a message."""
        if digest in self.known:
            return self.known[digest].filed
        ledger = memory_of(self.base).ledger
        (k,) = ledger.find(np.array([digest], np.uint64)).tolist()
        if k < 0:
            return NOT_FILED
        return FiledMessage(self.base.classes[int(ledger.labels[k])], bool(ledger.told[k]))

    def last_change(self, digest: int) -> LabelChange:
        """Return a change whose `after`, `told` and `day` say where the model has a message.

        Its document has no tokens if they are forgotten.
        """
        if digest in self.known:
            return self.known[digest]
        tokens = no_documents(np.empty(0, np.uint64), False)
        change = LabelChange(digest, None, None, 0, tokens, empty_vocabulary())
        filed, ledger = self.at(digest), memory_of(self.base).ledger
        if filed == NOT_FILED:
            return change
        (place,) = ledger.find(np.array([digest], np.uint64))
        change = self._sampled(digest) or change
        return change._replace(after=filed.label, told=filed.told, day=int(ledger.days[place]))

    def _sampled(self, digest: int) -> LabelChange | None:
        """Return a message of the sample, as a change without classes; None if not there."""
        sample = memory_of(self.base).sample
        (place,) = find(sample.digests, np.array([digest], np.uint64)).tolist()
        if place < 0:
            return None
        document = sample.documents.one(place)
        keys = self.base.table.vocabulary.keys[document.tokens]
        document = Documents(keys, *document[1:])
        return LabelChange(digest, None, None, 0, document, empty_vocabulary())

    def sizes(self, is_enough: Callable[[int, int], bool]) -> dict[int, int] | None:
        """Return the number of tokens of each message that it remembers, by digest.

        Returns None if is_enough is false of upper bounds of the numbers of messages and tokens.
        """
        sample, changed = memory_of(self.base).sample, self.known.values()
        if not is_enough(len(sample.digests) + len(changed), _ANY):
            return None  # before all changes are looked at
        n_tokens = len(sample.documents.columns)
        n_tokens += sum(len(change.document.tokens) for change in changed)
        if not is_enough(len(sample.digests) + len(changed), n_tokens):
            return None
        lengths = differences(sample.documents.offsets).tolist()
        found = dict(zip(sample.digests.tolist(), lengths, strict=True))
        for change in changed:
            found.pop(change.digest, None)
            if change.after is not None:
                found[change.digest] = len(change.document.tokens)
        return {digest: n for digest, n in found.items() if is_remembered(digest, self.bits)}

    def decided(
        self,
        lessons: Sequence[TokenizedLesson],
        copies: Copies,
        day: int,
        is_wanted: Callable[[int, FiledMessage], bool],
    ) -> tuple[list[LabelChange], list[Outcome]]:
        """Return the changes that lessons make, and the outcome for each message."""
        changes: list[LabelChange] = []
        outcomes: list[Outcome] = []
        now: dict[int, LabelChange] = {}
        bits = self.bits
        for lesson in lessons:
            labels = lesson.messages.labels.tolist()
            digests = map(copies.numbered, lesson.messages.digests.tolist())
            for row, digest in enumerate(digests):
                before = now[digest].filed if digest in now else self.at(digest)
                if not is_wanted(len(outcomes), before):
                    outcomes.append(Outcome(already_known=1))
                    continue
                after = FiledMessage(labels[row], lesson.told[row])
                after = NOT_FILED if labels[row] == NOWHERE else after
                outcomes.append(outcome_of(before, after))
                if after == before or after == before._replace(told=False):
                    continue
                change = None
                if before != NOT_FILED and is_remembered(digest, bits):
                    # As it was learned: each delivery adds its own headers, so that the tokens
                    # may differ from those of the copy that is to be moved or un-learned.
                    change = now.get(digest) or self.known.get(digest)
                    change = change or self._sampled(digest)
                if change is None:
                    known = self.base.table.vocabulary
                    change = lesson.change(row, digest, known, self.base.settings.weighting)
                now[digest] = change._replace(
                    before=before.label, after=after.label, day=day, told=after.told
                )
                changes.append(now[digest])
        return changes, outcomes


class LessonOutlet(Protocol):
    """Keeps the changes of a model for other hosts, on disk."""

    def lost(self, filing: MessageFiling) -> tuple[list[LabelChange], LogProgress]:
        """Return changes that were kept, but not made before a kill, and the new progress."""

    def keep(self, filing: MessageFiling, changes: Sequence[LabelChange]) -> LogProgress:
        """Keep changes before they are made; return the model's progress with them."""
