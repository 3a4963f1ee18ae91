"""Models of tables that learn on: in memory, or on disk while other processes use them.

A model of a table is small, and is replaced as a whole: each call reads the file, adds its rows
and writes a new file, under the lock.  So a crash leaves the model as it was or as it will be,
and nothing of what two processes teach it is lost.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext

from nbspam.classifier.classifier import TOKENS_KIND
from nbspam.counts.lessons import Outcome
from nbspam.disk import Stamp, locked, resolved, stamp_of
from nbspam.errors import UsageError
from nbspam.sources.records import Record
from nbspam.store.assembly import check_known
from nbspam.store.journal import read_model, write_model
from nbspam.store.model import StoredModel
from nbspam.store.open import classifier_of, load_classifier, readable_state
from nbspam.tables.classifier import TableClassifier
from nbspam.tables.training import RowsLearned, learn_rows, merged_tables, unlearn_rows

Change = Callable[[TableClassifier, Sequence[Record]], RowsLearned]


class StoredTable:
    """A model of a table that learns on: at a path, or in memory.

    At a path, its changes are on disk when a method returns.
    """

    def __init__(
        self, classifier: TableClassifier, path: str | None = None, stamp: Stamp | None = None
    ) -> None:
        """Begin with a classifier; stamp: of the file that it was read from."""
        self._classifier, self._stamp = classifier, stamp
        self.path = None if path is None else resolved(path)

    def classifier(self) -> TableClassifier:
        """Return the classifier with everything that was learned so far."""
        if self.path is not None and (stamp := stamp_of(self.path)) != self._stamp:
            self._classifier, self._stamp = table_at(self.path), stamp
        return self._classifier

    whole = compact = classifier  # the file has everything that was learned

    def learn(self, records: Iterable[Record], new_class: bool = False) -> Outcome:
        """Learn rows with their classes; each counts.  Raises NbspamError.

        new_class: the model may get new classes; otherwise they raise UsageError.
        """

        def change(classifier: TableClassifier, records: Sequence[Record]) -> RowsLearned:
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

    def _change(self, change: Change, records: Sequence[Record]) -> RowsLearned:
        with nullcontext() if self.path is None else locked(self.path):
            lesson = change(check_can_learn(self.classifier(), self.path or "model"), records)
            if self.path is None:
                self._classifier = lesson.classifier
            elif lesson.n_rows:
                write_model(self.path, readable_state(self.path, lesson.classifier), self._stamp)
        return lesson


def table_at(path: str) -> TableClassifier:
    """Return the model of a table in a file; raises ModelFileError, or UsageError for others."""
    classifier = load_classifier(path)
    if not isinstance(classifier, TableClassifier):
        raise UsageError(f"{path}: not a model of a table; name models of one kind")
    return classifier


def open_stored(path: str) -> StoredModel | StoredTable:
    """Return the model in a file, ready to learn on; raises NbspamError.

    Raises UsageError, with the reason, if the model cannot learn on.
    """
    path = resolved(path)
    snapshot, journal = read_model(path)
    kind = snapshot.state.get("kind")
    if kind == "table":
        classifier = classifier_of(path, snapshot.state)
        assert isinstance(classifier, TableClassifier)
        return StoredTable(classifier, path, snapshot.stamp)
    if kind == "features":
        raise UsageError(
            f"{path}: a model of kind features, which cannot learn on, because its tokens were"
            " chosen by all of its mail; train it again with the new mail, too"
        )
    return StoredModel(path, (snapshot, journal))


def model_with_messages(path: str) -> StoredModel | None:
    """Return the model of tokens in a file; None for other kinds, or if it knows no messages.

    Raises ModelFileError.
    """
    path = resolved(path)
    snapshot, journal = read_model(path)
    if snapshot.state.get("kind") != TOKENS_KIND or not snapshot.state.get("memory"):
        return None
    return StoredModel(path, (snapshot, journal))


def check_can_learn(classifier: TableClassifier, name: str) -> TableClassifier:
    """Return a classifier that can learn on; raises UsageError, which names it, for others."""
    if classifier.by_em:
        raise UsageError(
            f"{name}: trained by EM, so that its counts depend on all of its rows at once, and it"
            " cannot learn on; train it again with the new rows, too"
        )
    return classifier


def merge_tables(paths: Sequence[str]) -> TableClassifier:
    """Return the model of all rows that several models have learned; raises NbspamError."""
    total = check_can_learn(table_at(paths[0]), paths[0])
    for path in paths[1:]:
        total = merged_tables(total, check_can_learn(table_at(path), path), path)
    return total
