"""Models of tables that learn on: in memory, or on disk while other processes use them.

A model of a table is small, and is replaced as a whole: each call reads the file, adds its rows
and writes a new file, under the lock.  So a crash leaves the model as it was or as it will be,
and nothing of what two processes teach it is lost.

Secret: that there is no journal.
"""

from collections.abc import Callable, Iterable, Sequence

from nbspam.answering import AnyClassifier
from nbspam.counts.outcome import Outcome
from nbspam.disk import Stamp, locked, resolved, stamp_of
from nbspam.errors import UsageError
from nbspam.sources.records import Record
from nbspam.store.format.journal import read_model
from nbspam.store.learning import check_known
from nbspam.store.model import StoredModel
from nbspam.store.open import classifier_of, load, write
from nbspam.tables.classifier import TableClassifier
from nbspam.tables.learning import Lesson, learn_rows, merged, unlearn_rows
from nbspam.tables.schema import Schema

Change = Callable[[TableClassifier, Sequence[Record]], Lesson]


class LivingTable:
    """A model of a table in memory that learns on."""

    def __init__(self, classifier: TableClassifier) -> None:
        self._classifier = classifier

    def classifier(self) -> TableClassifier:
        """Return the classifier with everything that was learned so far."""
        return self._classifier

    @property
    def schema(self) -> Schema:
        """The columns that the model has learned from, as far as this object knows."""
        return self._classifier.schema

    def whole(self) -> TableClassifier:
        """Return the classifier that a model file written now would hold."""
        return self.classifier()

    def learn(self, records: Iterable[Record], new_class: bool = False) -> Outcome:
        """Learn rows with their classes; each counts.  Raises NbspamError.

        new_class: the model may get new classes; otherwise they raise UsageError.
        """

        def change(classifier: TableClassifier, records: Sequence[Record]) -> Lesson:
            lesson = learn_rows(classifier, records)
            if not new_class:
                check_known(lesson.classifier.classes, classifier.classes)
            return lesson

        lesson = self._change(change, list(records))
        return Outcome(learned=lesson.n_rows, skipped=lesson.skipped, notes=lesson.notes)

    def unlearn(self, records: Iterable[Record]) -> Outcome:
        """Un-learn rows, given as they were learned; all of them or none.  Raises NbspamError."""
        lesson = self._change(unlearn_rows, list(records))
        return Outcome(unlearned=lesson.n_rows, skipped=lesson.skipped, notes=lesson.notes)

    def _change(self, change: Change, records: Sequence[Record]) -> Lesson:
        lesson = change(able(self._classifier, "model"), records)
        self._classifier = lesson.classifier
        return lesson


class StoredTable(LivingTable):
    """A model of a table on disk.  When a method returns, its changes are on disk."""

    def __init__(self, path: str, classifier: TableClassifier, stamp: Stamp | None = None) -> None:
        """Open a model; stamp: of the file that the classifier was read from."""
        super().__init__(classifier)
        self.path, self._stamp = resolved(path), stamp

    def classifier(self) -> TableClassifier:
        """Return the classifier that the file holds now."""
        stamp = stamp_of(self.path)
        if stamp != self._stamp:
            self._classifier, self._stamp = table_at(self.path), stamp
        return self._classifier

    def _change(self, change: Change, records: Sequence[Record]) -> Lesson:
        with locked(self.path):
            lesson = change(able(self.classifier(), self.path), records)
            if lesson.n_rows:
                write(self.path, lesson.classifier)
        return lesson


def table_at(path: str) -> TableClassifier:
    """Return the model of a table in a file; raises ModelFileError, or UsageError for others."""
    return _of_table(path, load(path))


def _of_table(path: str, classifier: AnyClassifier) -> TableClassifier:
    if not isinstance(classifier, TableClassifier):
        raise UsageError(f"{path}: not a model of a table; name models of one kind")
    return classifier


def living(path: str) -> StoredModel | StoredTable:
    """Return the model in a file, ready to learn on; raises NbspamError.

    Raises UsageError, with the reason, if the model cannot learn on.
    """
    path = resolved(path)
    snapshot, journal = read_model(path)
    kind = snapshot.state.get("kind")
    if kind == "table":
        return StoredTable(
            path, _of_table(path, classifier_of(path, snapshot.state)), snapshot.stamp
        )
    if kind == "features":
        raise UsageError(
            f"{path}: a model of kind features, which cannot learn on, because its tokens were"
            " chosen by all of its mail; train it anew with the new mail, too"
        )
    return StoredModel(path, (snapshot, journal))


def able(classifier: TableClassifier, name: str) -> TableClassifier:
    """Return a classifier that can learn on; raises UsageError, which names it, for others."""
    if classifier.by_em:
        raise UsageError(
            f"{name}: trained by EM, so that its counts depend on all of its rows at once, and it"
            " cannot learn on; train it anew with the new rows, too"
        )
    return classifier


def merge_tables(paths: Sequence[str]) -> TableClassifier:
    """Return the model of all rows that several models have learned; raises NbspamError."""
    total = able(table_at(paths[0]), paths[0])
    for path in paths[1:]:
        total = merged(total, able(table_at(path), path), path)
    return total
