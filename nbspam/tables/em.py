"""EM on tables: rows without a class take part in training, and in a network missing cells do.

Secret: what EM starts from, and what stays as the labelled rows made it: the intervals of
numbers, and the graph of a network.
"""

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nbspam.errors import UsageError
from nbspam.models.columns.incomplete import complete, completions
from nbspam.models.em import Step
from nbspam.sources.records import Record
from nbspam.tables.classifier import TableClassifier
from nbspam.tables.schema import Table, in_intervals
from nbspam.tables.training import TableSettings, chosen_model, rows_of, train_table

EM_MODELS = ("categorical", "bernoulli", "gaussian", "mixed", "network")


@dataclass(frozen=True, slots=True)
class EmReport:
    """The result of training on incomplete rows."""

    classifier: TableClassifier
    steps: tuple[Step, ...]
    n_labelled: int
    n_unlabelled: int


def without_class(records: Iterable[Record], target: str) -> Iterator[Record]:
    """Yield the rows with an empty cell in place of their class."""
    for record in records:
        yield replace(record, cells={**record.cells, target: ""})


def train_by_em(
    table: Table, settings: TableSettings, weight: float = 1.0, hard: bool = False
) -> EmReport:
    """Return the classifier of rows of which some have no class; raises UsageError.

    table: of all rows, see `read_table`.  weight: of a row without a class.  hard: give each of
    these rows to its most probable class.  The class prior is estimated again in every round,
    unless the settings give it.
    """
    name = chosen_model(table.schema, settings)
    if name not in EM_MODELS:
        raise UsageError(f"--model {name}: not possible with EM; give {', '.join(EM_MODELS)}")
    known = table.y >= 0
    start = train_table(rows_of(table, np.flatnonzero(known)), settings)
    X, classes = in_intervals(table.X, start.schema), np.array(start.classes)
    like, first = _parameters(start.model)
    data = completions(
        like,
        X,
        table.y,
        classes,
        np.where(known, 1.0, weight),
        start.schema.levels if name == "network" else None,
        hard,
    )
    fit = complete(first, data)
    classifier = replace(start, model=fit.model, by_em=True)
    n_labelled = int(known.sum())
    return EmReport(classifier, fit.steps, n_labelled, len(known) - n_labelled)


def _parameters(model: Any) -> tuple[Any, Any]:
    """Return an untrained model of EM's parameters, and the model that EM starts from.

    model: of the labelled rows.
    """
    parameters = model.get_params()
    first = copy(model)
    if "structure" in parameters:
        parameters["structure"] = [list(nodes) for nodes in model.parents_]
    if "ddof" in parameters:
        parameters["ddof"] = 0  # maximum likelihood, which the M step has to reach
    if "alpha" in parameters and not model.added_.any():
        # What the labelled rows lack is not impossible, and EM must be able to find it.
        first.set_params(estimate="mean", alpha=1.0)
    return type(model)(**parameters), first
