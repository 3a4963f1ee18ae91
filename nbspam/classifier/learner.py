"""Learning on: learning message by message, after a model was fitted.

Each message is added to the counts at once.  Evidence is fitted again when a class has changed by
a tenth; between two fits, a message that was nearly wrong corrects its own tokens, as it does
within a fit.  So a model depends only on the sequence of its messages.  `nbspam update`, the
library and `nbspam eval --online` all learn here.

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

    # Without LogTables, which follow from all counts and cannot be updated for one message.
    LearningFit = Combination | Blend

# A fit is due when a class has changed by this share of its size at the last fit, or after this
# many changes: E-016.
SHARE = 0.1
MAX_CHANGES = 2_000


class Growth:
    """Counts the changes of classes since the last fit, and tells when the next fit is due."""

    def __init__(self, class_count: Mapping[str, float]) -> None:
        self.class_count = Counter(dict(class_count))
        self._begin()

    def _begin(self) -> None:
        self._fitted = dict(self.class_count)
        self._changed: Counter[str] = Counter()
        self._n_changes = 0

    def copy(self) -> "Growth":
        """Return an independent copy."""
        other = Growth(self.class_count)
        other._fitted, other._changed = dict(self._fitted), Counter(self._changed)
        other._n_changes = self._n_changes
        return other

    @property
    def classes(self) -> tuple[str, ...]:
        """The sorted names of the classes that have messages."""
        return tuple(sorted(name for name, n in self.class_count.items() if n > 0))

    def add(self, before: str | None, after: str | None) -> bool:
        """Count a message that changes its class; return whether a fit is due now.

        before: its old class, None if it had none; after: its new class, None if it is un-learned.
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
        """Count changes; return how many were counted when a fit was last due, 0 if none was."""
        last = 0
        for number, change in enumerate(changes, 1):
            if self.add(change.before, change.after):
                last = number
        return last


class Learner:
    """A classifier that learns on; it copies the counts and changes its copy in place."""

    def __init__(self, table: CountTable, fit: "LearningFit", settings: Settings) -> None:
        self._settings = settings
        self.table = table._replace(
            class_count=np.array(table.class_count, np.float64),
            feature_count=np.array(table.feature_count, np.float64),
            document_frequency=np.array(table.document_frequency, np.int64),
        )
        self.refit(fit)

    def refit(self, fit: "LearningFit") -> None:
        """Continue with another fit of the same counts."""
        if isinstance(fit, Combination):
            fit = fit._replace(correction=fit.correction.copy())
        self._fit = fit

    def answer(self, document: Documents) -> Floats:
        """Return log P(class, document), nats, shape (n_classes,).

        document: a single document, over columns of the table.
        """
        known = self.table.met(document)
        joint: Floats = self._fit.joint(self.table, known, self._settings.weighting)[0]
        return joint

    def learn(
        self, document: Documents, before: int | None, after: int | None, joint: Floats
    ) -> float:
        """Learn a document; return the step by which it corrected its tokens, 0 if it did not.

        before, after: index of its old and its new class, None for no class.  joint: the answer
        that `answer` gave to it.
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
    """Return the classifier with changes applied, and with the corrections that they made.

    No fit may be due among the changes.
    """
    if not changes:
        return classifier
    settings, base = classifier.settings, classifier.table
    changed = signed_table(changes, base.vocabulary, settings.weighting)
    table = overlaid(base, changed)
    fit = classifier.fit.recounted(table, settings)
    if isinstance(fit, Combination):
        # Looked up among the tokens of all changes: a token that was learned and un-learned
        # again has no column, but had its share of the step.
        column = table.vocabulary.columns(changed.vocabulary.keys)
        for change in changes:
            if change.step:
                document = changed.vocabulary.known(change.document)
                groups = changed.vocabulary.groups[document.tokens]
                fit = fit.learn(column[layer_columns(document, groups)], change.step)
    return replace(classifier, table=table, fit=fit, memory=None)


def with_steps(classifier: Classifier, changes: Sequence[Change]) -> list[Change]:
    """Return changes with their steps, learning them one after the other.

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
