"""Learning on: message by message, after a model was fitted.

Counts take in every message at once and exactly.  How evidence adds up is fitted again when a
class has changed by a tenth; between two fits a message that was nearly wrong corrects its own
tokens, as it does within a fit.  So a model depends on the sequence of its messages alone:
`nbspam update`, the library and `nbspam eval --online` all learn here.

Secret: what one message changes, and when evidence is fitted again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nbspam.arrays import Floats
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.combining import Combination, correction_step, layer_columns
from nbspam.counts.changes import Change, overlaid, signed_table
from nbspam.counts.table import CountTable, counts_of
from nbspam.settings import Settings
from nbspam.tokens.documents import Documents
from nbspam.tokens.vocabulary import join, with_added

if TYPE_CHECKING:
    from nbspam.classifier.blending import Blend

    LearningFit = Combination | Blend  # what plain tables say follows from all counts at once

# A fit is due when a class has changed by this share of what it had at the last one, or after
# this many changes: E-016.
SHARE = 0.1
MAX_CHANGES = 1_000


class Growth:
    """Counts the changes of classes since the last fit, and says when the next one is due."""

    def __init__(self, class_count: Mapping[str, float]) -> None:
        self.class_count = Counter(dict(class_count))
        self._begin()

    def _begin(self) -> None:
        self._fitted = dict(self.class_count)
        self._changed: Counter[str] = Counter()
        self._n_changes = 0

    def copy(self) -> "Growth":
        """Return the same, to be counted on by itself."""
        other = Growth(self.class_count)
        other._fitted, other._changed = dict(self._fitted), Counter(self._changed)
        other._n_changes = self._n_changes
        return other

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes that have messages, sorted."""
        return tuple(sorted(name for name, n in self.class_count.items() if n > 0))

    def add(self, before: str | None, after: str | None) -> bool:
        """Note a message that moves from class to class; return whether a fit is due now.

        before, after: None where it had no class, or has none any more.
        """
        self._n_changes += 1
        for name, n in ((before, -1), (after, 1)):
            if name is not None:
                self.class_count[name] += n
                self._changed[name] += 1
        is_due = self._n_changes >= MAX_CHANGES or any(
            n >= SHARE * self._fitted.get(name, 0.0) for name, n in self._changed.items()
        )
        if is_due:
            self._begin()
        return is_due

    def last_due(self, changes: Iterable[Change]) -> int:
        """Note changes; return how many were noted when the last fit was due, 0 if none was."""
        last = 0
        for number, change in enumerate(changes, 1):
            if self.add(change.before, change.after):
                last = number
        return last


class Learner:
    """A classifier that learns on; its counts are its own, and change in place."""

    def __init__(self, table: CountTable, fit: "LearningFit", settings: Settings) -> None:
        self._settings = settings
        self.table = table._replace(
            class_count=np.array(table.class_count, np.float64),
            feature_count=np.array(table.feature_count, np.float64),
            document_frequency=np.array(table.document_frequency, np.int64),
        )
        self.refit(fit)

    def refit(self, fit: "LearningFit") -> None:
        """Continue with another fit."""
        if isinstance(fit, Combination):
            fit = fit._replace(correction=fit.correction.copy())
        self._fit = fit

    def answer(self, document: Documents) -> Floats:
        """Return log P(class, document), nats, shape (n_classes,).

        document: one, over columns of the table.
        """
        known = self.table.met(document)
        joint: Floats = self._fit.joint(self.table, known, self._settings.weighting)[0]
        return joint

    def learn(
        self, document: Documents, before: int | None, after: int | None, joint: Floats
    ) -> float:
        """Count a document; return by how far it corrected what its tokens say.

        before, after: index of the class that it leaves, and of that which it gets, if any.
        joint: what was answered to it.
        """
        if before is not None:
            self._count(document, before, -1)
        if after is None:
            return 0.0
        self._count(document, after, 1)
        if not isinstance(self._fit, Combination):
            return 0.0
        step = correction_step(float(joint[1] - joint[0]), after, self.table.classes)
        if step:
            self._fit = _corrected(self._fit, self.table, document, step)
        return step

    def _count(self, document: Documents, y: int, sign: int) -> None:
        table, columns = self.table, document.tokens
        groups = table.vocabulary.groups[columns]
        weighting = self._settings.weighting
        counts = counts_of(document, np.array([y]), len(table.classes), groups, weighting)
        had = table.document_frequency[columns] > 0
        table.class_count[y] += sign
        table.feature_count[columns] += sign * counts.feature_count
        table.document_frequency[columns] += sign * counts.document_frequency
        appeared = (table.document_frequency[columns] > 0).astype(np.int64) - had
        self._fit = self._fit.counted(groups, sign * counts.feature_count, appeared)


def _corrected(
    fit: Combination, table: CountTable, document: Documents, step: float
) -> Combination:
    groups = table.vocabulary.groups[document.tokens]
    return fit.learn(layer_columns(document, groups), step)


def overlay(classifier: Classifier, changes: Sequence[Change]) -> Classifier:
    """Return the classifier that knows these messages too, with the corrections they made.

    No fit may be due among the changes.
    """
    if not changes:
        return classifier
    settings, base = classifier.settings, classifier.table
    table = overlaid(base, signed_table(changes, base.vocabulary, settings.weighting))
    fit = classifier.fit.recounted(table, settings)
    if isinstance(fit, Combination):
        for change in changes:
            if change.step:
                document = table.vocabulary.known(change.document)
                fit = _corrected(fit, table, document, change.step)
    return replace(classifier, table=table, fit=fit, memory=None)


def with_steps(classifier: Classifier, changes: Sequence[Change]) -> list[Change]:
    """Return changes with their corrections, as learned one after the other.

    No fit may be due among the changes.
    """
    if not changes or not isinstance(classifier.fit, Combination):
        return list(changes)
    table = classifier.table
    unknown = [
        change.new.take(np.flatnonzero(table.vocabulary.columns(change.new.keys) < 0))
        for change in changes
    ]
    more, _ = join(unknown)
    n_more = len(more)
    table = table._replace(
        vocabulary=with_added(table.vocabulary, more),
        feature_count=np.concatenate([table.feature_count, np.zeros((n_more, 2))]),
        document_frequency=np.append(table.document_frequency, np.zeros(n_more, np.int64)),
    )
    learner = Learner(
        table, classifier.fit.recounted(table, classifier.settings), classifier.settings
    )
    index: dict[str | None, int | None] = {None: None}
    index.update((name, k) for k, name in enumerate(table.classes))
    learned = []
    for change in changes:
        document = table.vocabulary.known(change.document)
        joint = learner.answer(document)
        step = learner.learn(document, index[change.before], index[change.after], joint)
        learned.append(change._replace(step=step))
    return learned
