"""The library's face: train, load and use a model of any kind.

A model of tokens that knows its messages, and a model of a table, learn on: one from disk does so
on disk.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from nbspam.classifier.classifier import Classifier
from nbspam.counts.counting import Outcome
from nbspam.disk import resolved
from nbspam.errors import InputError, UsageError
from nbspam.settings import (
    Bounds,
    Settings,
    SettingsChoices,
    TableChoices,
    as_learned,
    check_unbounded,
    is_for_table,
    settings_for,
)
from nbspam.sources.items import SourceOptions, item_of, items_given, only_paths, path_of
from nbspam.sources.rows import Rememberer
from nbspam.store.journal import read_journal
from nbspam.store.model import StoredModel
from nbspam.store.open import load_classifier, save_classifier
from nbspam.store.tables import LivingTable
from nbspam.tables.classifier import TableClassifier
from nbspam.tokens.people import knowing_sent_mail, learned_sent_mail
from nbspam.verdicts import AnyClassifier, Explanation, Skipped, Verdict

_EPOCH = date(1970, 1, 1).toordinal()


class Model:
    """A trained model of mail, of text, of dependent tokens, or of a table's columns.

    Not for two threads at once.  skipped: what could not be read when it was trained.
    """

    def __init__(
        self,
        classifier: AnyClassifier,
        living: StoredModel | LivingTable | None = None,
        skipped: tuple[Skipped, ...] = (),
    ) -> None:
        self._classifier = classifier
        self._living = living
        self.skipped = skipped

    @property
    def classifier(self) -> AnyClassifier:
        """The classifier as it is now; of a model on disk, with what others have taught it."""
        return self._classifier if self._living is None else self._living.classifier()

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names, sorted."""
        return self.classifier.classes

    def classify(self, data: Any) -> Verdict:
        """Return the verdict on one message or text; raises InputError.

        data: the bytes of a message, a string of text, a path, an Item; for a model of a table
        a mapping from columns to cells.
        """
        (result,) = self.classifier.classify([self._input(data)])
        if isinstance(result, Skipped):
            raise InputError(result.reason)
        return result

    def classify_many(self, given: Any, jobs: int = 1) -> Iterator[Verdict | Skipped]:
        """Yield a verdict for every message or row in order, or why it could not be read.

        given: a path, or an iterable of what `classify` takes.
        """
        yield from self.classifier.classify(self._inputs(given), jobs)

    def explain(self, data: Any) -> Explanation:
        """Return why one message, text or row gets its verdict; raises InputError."""
        return self.classifier.explain(self._input(data))

    def update(
        self,
        given: Any,
        policy: str = "everything",
        jobs: int = 1,
        day: int | None = None,
        new_class: bool = False,
    ) -> Outcome:
        """Learn labelled messages; of a model from disk, they are on disk on return.

        given: a path, or an iterable of (data, label) pairs or Items; for a model of a table, of
        rows with their class.  policy: everything, error (only what it gets wrong) or near (also
        near misses); the rows of a table all count.  day: on which they are learned, counted
        from 1970-01-01; today unless given.  new_class: labels that the model does not have are
        new classes, and no UsageError.  Raises NbspamError.
        """
        if isinstance(self._living, LivingTable):
            return self._living.learn(self._inputs(given), new_class)
        items = items_given(given, self._reading)
        return self._learning().learn(
            items, day=_day(day), policy=policy, jobs=jobs, new_class=new_class
        )

    def learn_sent_mail(self, given: Any) -> bool:
        """Learn from mail that the user has sent which senders are known; whether it was new.

        given: a path, or an iterable of the bytes of messages or Items.  Raises NbspamError.
        """
        found = learned_sent_mail(items_given(given, self._reading))
        return found is not None and self._learning().learn_sent_mail(found)

    def relabel(
        self,
        given: Any,
        to: str,
        jobs: int = 1,
        day: int | None = None,
        new_class: bool = False,
    ) -> Outcome:
        """Move messages to a class; messages that were never learned are learned as that."""
        return self._learning().relabel(
            items_given(given, self._reading), to, day=_day(day), jobs=jobs, new_class=new_class
        )

    def unlearn(self, given: Any, jobs: int = 1, day: int | None = None) -> Outcome:
        """Take messages out of the model, whatever class they were learned as.

        The rows of a table must be given with the class that they were learned as.
        """
        if isinstance(self._living, LivingTable):
            return self._living.unlearn(self._inputs(given))
        return self._learning().unlearn(
            items_given(given, self._reading), day=_day(day), jobs=jobs
        )

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Write the model to a file; raises ModelFileError.

        A model from disk that is saved to its own path takes its journal in, with what others
        have taught it since; saved elsewhere, it is copied.
        """
        target = os.fsdecode(path)
        living = self._living
        if (
            isinstance(living, StoredModel)
            and living.is_on_disk
            and os.path.realpath(living.path) == os.path.realpath(target)
        ):
            living.compact()
        else:
            save_classifier(target, self._classifier if living is None else living.whole())

    def _learning(self) -> StoredModel:
        if isinstance(self._living, LivingTable):
            raise UsageError("model: rows of a table are not remembered; unlearn and update them")
        if self._living is None:
            raise UsageError("model: this kind does not learn on; train it again")
        return self._living

    @property
    def _reading(self) -> SourceOptions:
        """How sources are read: a model of text remembers its columns of a table."""
        settings: Settings = self._classifier.settings  # type: ignore[attr-defined]
        return as_learned(SourceOptions(), settings)

    def _input(self, data: Any) -> Any:
        if isinstance(self._classifier, TableClassifier):
            return _record(data, "row")
        return item_of(data)

    def _inputs(self, given: Any) -> Iterator[Any]:
        if not isinstance(self._classifier, TableClassifier):
            yield from items_given(given, self._reading)
        elif isinstance(given, os.PathLike):
            from nbspam.sources.records import read_records

            yield from read_records(only_paths(given), names=self._classifier.schema.names)
        else:
            for number, row in enumerate(given):
                yield _record(row, f"#{number}")


def train(
    given: Any,
    *,
    jobs: int = 1,
    engine: Any = None,
    day: int | None = None,
    target: str | None = None,
    sent: "Sequence[str | os.PathLike[str]]" = (),
    **choices: Any,
) -> Model:
    """Return the model that labelled mail, texts or the rows of a table make.

    given: a path, or an iterable of paths, (data, label) pairs or Items.  engine: other workers
    than `jobs` forked processes, such as "dask", a Dask Client or an Executor; see
    `workers.workers_of`.  target: the column of a table that holds the class.  sent: paths of
    mail that the user has sent; unless given, Maildirs beside a path (`folders.sent_folders`).
    choices: the options of `nbspam train` as keywords, such as model="multinomial" or alpha=0.1.
    The model is the one that `nbspam train` makes.  Raises NbspamError.
    """
    columns = TableChoices(
        target, **{name: choices.pop(name) for name in TableChoices._fields if name in choices}
    )
    bounds = Bounds(**{name: choices.pop(name) for name in Bounds._fields if name in choices})
    chosen = SettingsChoices(**choices)
    if is_for_table(chosen, columns):
        if engine is not None:
            raise UsageError("engine: for mail and texts; a table is counted here, leave it out")
        check_unbounded(bounds, "a table of columns")
        from nbspam.sources.records import read_records
        from nbspam.tables.training import read_table, table_settings, train_table

        settings = table_settings(chosen, columns)
        data = read_table(read_records(only_paths(given)), settings)
        of_table = train_table(data.table, settings)
        return Model(of_table, LivingTable(of_table), data.skipped)
    from nbspam.classifier.training import learn_items
    from nbspam.workers import workers_of

    tables = Rememberer()
    reading = SourceOptions(listener=tables, is_mail=chosen.preset == "mail")
    how, items = settings_for(items_given(given, reading), chosen, tables)
    beside = [path_of(given)] if isinstance(given, os.PathLike) else ()
    how = knowing_sent_mail(how, [os.fsdecode(path) for path in sent], beside)
    with workers_of(engine, jobs) as workers:
        learned = learn_items(items, how, workers, _day(day), bounds)
    classifier = learned.classifier
    living = StoredModel.in_memory(classifier) if isinstance(classifier, Classifier) else None
    return Model(classifier, living, learned.skipped)


def load(path: "str | os.PathLike[str]") -> Model:
    """Return the model in a file, with what is in its journal; raises ModelFileError.

    What it learns from now on is written to that file and its journal.
    """
    where = os.fsdecode(path)
    classifier = load_classifier(where)
    if isinstance(classifier, TableClassifier):
        return Model(classifier, LivingTable(classifier, where))
    # Only a model of tokens that knows its messages has a journal, and can learn on.
    if isinstance(classifier, Classifier) and (
        classifier.memory or read_journal(resolved(where)).changes
    ):
        return Model(classifier, StoredModel(where))
    return Model(classifier)


def _record(row: Any, name: str) -> Any:
    """Return one row of a table; row: a mapping from columns to cells."""
    from nbspam.sources.records import Record

    if not isinstance(row, Mapping):
        raise UsageError(
            f"{type(row).__name__}: not a row of a table; give a dict from columns to cells"
        )
    return Record(name, {str(column): str(cell) for column, cell in row.items()})


def _day(day: int | None) -> int:
    return date.today().toordinal() - _EPOCH if day is None else day
