"""Lessons: labelled items that are read to be learned on, and what became of each."""

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from nbspam.counts.ledger import NOT_FILED, FiledMessage, LabelChange, Messages
from nbspam.mail.message import with_beginning
from nbspam.settings import PRESENCE, Settings
from nbspam.sources.items import Item
from nbspam.tokens.items_to_messages import read_to_learn
from nbspam.tokens.sparse import Vocabulary
from nbspam.tokens.tokenizer import batch_vocabulary, tokenize
from nbspam.verdicts import NO_LABEL, Skipped


class LessonBatch(NamedTuple):
    """A batch of messages to learn, with their names and the texts of their tokens."""

    names: list[str]  # (n_docs,)
    messages: Messages
    vocabulary: Vocabulary  # all tokens of the messages
    told: list[bool]  # (n_docs,) see Item
    copies: list[int | None]  # (n_docs,) see Item

    def change(self, row: int, digest: int, known: Vocabulary, weighting: str) -> LabelChange:
        """Return one message as a change without classes.

        Only tokens that a model does not know have texts in it; known: the tokens that it knows.
        """
        document = self.messages.documents.one(row)
        if weighting == PRESENCE:
            document = document._replace(counts=None)
        column = np.searchsorted(self.vocabulary.keys, document.tokens)
        new = self.vocabulary.take(column[known.columns(document.tokens) < 0])
        return LabelChange(digest, None, None, 0, document, new.packed())


def read_lessons(
    settings: Settings, items: list[Item], to_judge: bool = False
) -> tuple[list[LessonBatch], list[Skipped]]:
    """Return the lessons in one chunk of items, and the items that were skipped.

    to_judge: models judge the messages, too, so beginnings are set apart (`with_beginning`).
    Worker processes of `nbspam update` and of `corpus.read_corpus` run this.
    """
    read = read_to_learn(items, settings)
    if to_judge and settings.has_beginnings:
        read = read._replace(messages=list(map(with_beginning, read.messages)))
    lessons = []
    for part in read.parts(settings.tokens):
        batch = tokenize(part.messages, settings.tokens)
        digests = np.array(part.digests, np.uint64)
        messages = Messages(np.array(part.labels, np.str_), digests, batch.documents)
        names = [item.name for item in part.items]
        copies = [item.copy for item in part.items]
        lessons.append(LessonBatch(names, messages, batch_vocabulary(batch), part.told, copies))
    return lessons, list(read.failures.values())


@dataclass(frozen=True, slots=True)
class Outcome:
    """The numbers of messages that were learned, moved, and so on."""

    learned: int = 0
    already_known: int = 0  # learned before, in the same class: nothing changed
    confirmed: int = 0  # learned before, in the same class, which a person has now given
    moved: int = 0  # learned before, in another class
    unlearned: int = 0
    unknown: int = 0  # to be un-learned, but never learned
    passed: int = 0  # not learned, because the policy did not need them
    skipped: tuple[Skipped, ...] = ()  # unreadable or without a label
    notes: tuple[str, ...] = ()  # for the model's owner

    @property
    def only_lacks_labels(self) -> bool:
        """Whether something was skipped, and all of it for want of a label."""
        return {skipped.reason for skipped in self.skipped} == {NO_LABEL}

    def __add__(self, other: "Outcome") -> "Outcome":
        names = [field.name for field in fields(self)]
        return Outcome(**{name: getattr(self, name) + getattr(other, name) for name in names})


def outcome_of(before: FiledMessage, after: FiledMessage) -> Outcome:
    """Return the outcome of moving a message from one place to another."""
    if after == NOT_FILED:
        return Outcome(unknown=1) if before == NOT_FILED else Outcome(unlearned=1)
    if before.label == after.label:
        is_new = after.told and not before.told
        return Outcome(confirmed=1) if is_new else Outcome(already_known=1)
    return Outcome(learned=1) if before == NOT_FILED else Outcome(moved=1)
