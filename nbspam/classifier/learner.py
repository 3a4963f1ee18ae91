"""Learning on: learning message by message, after a model was fitted.

Each message is added to the counts at once.  How evidence adds up is fitted again when a class
has changed by a twentieth, and stays as it is between two fits.  Whether a fit is due depends on
the sequence of messages alone, and so does the model: not on calls, bytes or processes.

`Growth` says when a fit is due, for `nbspam update`, the library and `nbspam eval --online`.  The
first two add changes to a model by `overlay`; the last one judges thousands of messages in a row
and counts in place, by `Learner`.  Tests hold that both answer alike.

Secret: what one message changes, and when evidence is fitted again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nbspam.answering import Weighed
from nbspam.arrays import Floats
from nbspam.classifier.classifier import Classifier
from nbspam.counts.changes import Change, overlaid, signed_table
from nbspam.counts.table import CountTable, counts_of
from nbspam.settings import Settings
from nbspam.tokens.documents import Documents

if TYPE_CHECKING:
    from nbspam.classifier.blending import Blend
    from nbspam.classifier.combining import Combination

    # Not LogTables: plain tables follow from all counts, and are made anew for every message.
    LearningFit = Combination | Blend

# A fit is due when a class has changed by this share of its size at the last fit, or after this
# many changes.  How evidence was weighed then fits the counts for about that long: with a
# twentieth less than 1 % of labels differ from those of a model trained at once (E-016).
SHARE = 0.05
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

    @classmethod
    def of(cls, classifier: Classifier) -> "Growth":
        """Return the growth of a classifier that was fitted with all of its messages."""
        counts = classifier.table.class_count.tolist()
        return cls(dict(zip(classifier.classes, counts, strict=True)))

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

    def note(self, before: str | None, after: str | None) -> bool:
        """Note that a message changes its class; return whether a fit is due now.

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

    def note_all(self, changes: Iterable[Change]) -> int:
        """Note changes; return the number of those up to the last fit that became due, or 0."""
        last = 0
        for number, change in enumerate(changes, 1):
            if self.note(change.before, change.after):
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
        self._fit = fit

    def answer(self, document: Documents) -> Floats:
        """Return log P(class, document), nats, shape (n_classes,).

        document: a single document, over columns of the table.
        """
        known = self.table.met(document)
        joint: Floats = self._fit.joint(self.table, known, self._settings.weighting)[0]
        return joint

    def reasons(self, document: Documents, towards: int, against: int) -> Weighed:
        """Return what each token adds to the log-odds of two classes, and the constant, nats."""
        return self.classifier.reasons(self.table.met(document), towards, against)

    @property
    def classifier(self) -> Classifier:
        """What it has learned so far; it changes with the next message."""
        return Classifier(self._settings, self.table, self._fit)

    def learn(self, document: Documents, before: int | None, after: int | None) -> None:
        """Learn a document; before, after: index of its old and new class, None for no class."""
        for y, sign in ((before, -1), (after, 1)):
            if y is not None:
                self._count(document, y, sign)

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


def overlay(classifier: Classifier, changes: Sequence[Change]) -> Classifier:
    """Return the classifier with changes added to its counts, and the fit it has.

    No fit may be due among the changes (see `store.assembly.with_changes`).
    """
    if not changes:
        return classifier
    settings, base = classifier.settings, classifier.table
    table = overlaid(base, signed_table(changes, base.vocabulary, settings.weighting))
    fit = classifier.fit.recounted(table, settings)
    return replace(classifier, table=table, fit=fit, memory=None)
