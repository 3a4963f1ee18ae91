"""A model trained on a table: classify its rows, explain, save and load.

Its verbs are those of `Classifier`, which knows mail and text.

Secret: that rows become numbers by a schema and not by a tokenizer.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from nbspam import __version__
from nbspam.arrays import Floats
from nbspam.decision import Rule, default_rule
from nbspam.disk import locked
from nbspam.errors import InputError, ModelFileError
from nbspam.models.columns.categorical import count_cells
from nbspam.models.columns.levels import Levels
from nbspam.models.registry import DAMAGE, joint_log_proba, model_state, restored, verdicts
from nbspam.parallel import ordered_map
from nbspam.sources.records import Record
from nbspam.store.format.journal import write_model
from nbspam.store.format.modelfile import State
from nbspam.tables.schema import Schema, Table, coded, schema_from_dict, schema_to_dict
from nbspam.verdicts import Answer, Skipped, Verdict

_CHUNK = 1024  # rows


@dataclass(frozen=True, slots=True)
class TableClassifier:
    """A trained model and the columns it was trained on."""

    schema: Schema
    name: str  # one of registry.COLUMN_MODELS
    model: Any
    counts: Floats  # (n_classes, values of all columns): rows; see `value_counts`
    shift: Floats | float = 0.0  # (n_classes,), nats: what another prior adds

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names, sorted."""
        return self.schema.classes

    @property
    def prior(self) -> Floats:
        """The shares of the classes that training found or was told, shape (n_classes,)."""
        return np.asarray(np.exp(self.model.class_log_prior_))

    def shifted(self, shift: Floats) -> "TableClassifier":
        """Return the classifier that says so much more for each class, nats, (n_classes,)."""
        return replace(self, shift=self.shift + shift)

    @property
    def rule(self) -> Rule:
        """How probabilities become labels, unless told otherwise."""
        return default_rule(self.classes, calibrated=False)

    def joint_log_proba(self, X: Floats) -> Floats:
        """Return log P(class, row) in nats, shape (n_rows, n_classes)."""
        return joint_log_proba(self.model, X) + self.shift

    def answers(self, records: Iterable[Record], jobs: int = 1) -> Iterator[Answer | Skipped]:
        """Yield an answer for every row in order, or why it could not be read."""
        for results in ordered_map(partial(_answer_chunk, self), _chunks(records), jobs):
            yield from results

    def classify(
        self, records: Iterable[Record], jobs: int = 1, rule: Rule | None = None
    ) -> Iterator[Verdict | Skipped]:
        """Yield a verdict for every row in order, or why it could not be read."""
        for results in ordered_map(partial(_verdict_chunk, self, rule), _chunks(records), jobs):
            yield from results

    def verdicts(self, answers: Sequence[Answer], rule: Rule | None = None) -> Iterator[Verdict]:
        """Yield what the rule (or the model's own) decides of each answer."""
        return verdicts(self.classes, answers, rule or self.rule)

    def save(self, path: str) -> None:
        """Write the model file, in the place of one that is there; raises ModelFileError."""
        state = {
            "kind": "table",
            "program": f"nbspam {__version__}",
            **schema_to_dict(self.schema),
            "model": self.name,
            **model_state(self.model),
            "counts": self.counts,
        }
        with locked(path):
            write_model(path, state)


def from_state(path: str, state: State) -> TableClassifier:
    """Return the classifier a model file's state makes; raises ModelFileError."""
    try:
        schema = schema_from_dict(state)
        nothing = np.full((1, len(schema.columns)), np.nan)
        model = restored(state["model"], state, schema.classes, nothing)
        n_values = int(np.maximum(schema.levels, 1).sum())
        if state["counts"].shape != (len(schema.classes), n_values):
            raise ValueError("its columns and counts differ in number")
    except DAMAGE as error:
        raise ModelFileError(f"{path}: not a table's model ({error}); train it anew") from error
    return TableClassifier(schema, state["model"], model, state["counts"])


def value_counts(table: Table) -> Floats:
    """Return how many rows of each class have each value, shape (n_classes, all values).

    A column of numbers has one place, for all of them.
    """
    levels = Levels(np.maximum(table.schema.levels, 1))
    X = np.where(np.isnan(table.X) | (table.schema.levels > 0), table.X, 0.0)
    cells = levels.cells(X, "value_counts")
    return count_cells(cells, levels.total, table.y, None, len(table.schema.classes))


def _chunks(records: Iterable[Record]) -> Iterator[list[Record]]:
    stream = iter(records)
    while chunk := list(islice(stream, _CHUNK)):
        yield chunk


def _coded_rows(
    classifier: TableClassifier, records: list[Record]
) -> tuple[list[Record], Floats, list[Skipped]]:
    """Return the rows that can be judged, in numbers, and those that cannot."""
    try:
        return records, coded(records, classifier.schema).X, []
    except InputError:
        pass
    # Some row is damaged: which, and what is wrong with it, each row says by itself.
    read, rows, skipped = [], [np.empty((0, len(classifier.schema.columns)))], []
    for record in records:
        try:
            rows.append(coded([record], classifier.schema).X)
        except InputError as error:
            skipped.append(Skipped(record.name, str(error)))
        else:
            read.append(record)
    return read, np.concatenate(rows), skipped


def _answer_chunk(classifier: TableClassifier, records: list[Record]) -> list[Answer | Skipped]:
    """Return answers to one chunk of rows: what a worker process does."""
    read, X, skipped = _coded_rows(classifier, records)
    results: dict[str, Answer | Skipped] = {failure.name: failure for failure in skipped}
    target = classifier.schema.target
    for record, joint in zip(read, classifier.joint_log_proba(X), strict=True):
        truth = record.cells.get(target, "") or None
        results[record.name] = Answer(record.name, truth, joint)
    return [results[record.name] for record in records]


def _verdict_chunk(
    classifier: TableClassifier, rule: Rule | None, records: list[Record]
) -> list[Verdict | Skipped]:
    """Return verdicts on one chunk of rows: what a worker process does."""
    answers = _answer_chunk(classifier, records)
    decided = classifier.verdicts([a for a in answers if isinstance(a, Answer)], rule)
    return [next(decided) if isinstance(answer, Answer) else answer for answer in answers]
