"""Categorical naive Bayes: a distribution over the values of each column, per class.

Secret: how values are counted and looked up without a loop over columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nbspam.models.columns.levels import ColumnModel, Levels
from nbspam.models.distributions import Distribution

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbspam.models.inputs import Array, Codes, Sums

_BLOCK = 1 << 16  # values looked up at a time, so that they stay in the processor's cache


def count_cells(
    cells: Codes, total: int, code: Codes, weight: Array | None, n_classes: int
) -> Array:
    """Return how often each value occurs in each class, shape (n_classes, total).

    cells: (n_docs, n_columns) from `Levels.cells`; total: the number of values of all
    columns; code: (n_docs,) the class index of each row.
    """
    cell = (cells + (code * (total + 1))[:, None]).ravel()
    weights = None if weight is None else np.repeat(weight, cells.shape[1])
    counts = np.bincount(cell, weights, n_classes * (total + 1)).reshape(n_classes, total + 1)
    return np.asarray(counts[:, :total], dtype=np.float64)


def sum_cells(cells: Codes, log_prob: Array) -> Array:
    """Return the sum of log_prob over the values of each row, shape (n_docs, n_classes).

    cells: (n_docs, n_columns) from `Levels.cells`; log_prob: (n_classes, total).  A missing
    value adds nothing.
    """
    table = np.concatenate([log_prob, np.zeros((len(log_prob), 1))], axis=1)
    n_docs, n_columns = cells.shape
    joint = np.empty((n_docs, len(table)))
    rows = max(1, _BLOCK // max(1, n_columns))
    for start in range(0, n_docs, rows):
        block = cells[start : start + rows]
        for k, of_class in enumerate(table):
            joint[start : start + rows, k] = of_class.take(block).sum(axis=1)
    return joint


def shares_of_values(n_values: Codes, count: Array, log_prob: Array) -> Iterator[Distribution]:
    """Yield P(value given class) of each column of categories.

    n_values: of each column, 0 for a column of numbers; count, log_prob: (n_classes, values).
    """
    columns = np.flatnonzero(n_values).tolist()
    for column, values in zip(columns, Levels(n_values[columns]).slices, strict=True):
        probability = np.exp(log_prob[:, values])
        yield Distribution((column,), (len(n_values),), count[:, values], probability)


class CategoricalNB(ColumnModel):
    """A distribution per class and column: P(value of the column given class).

    Li Hang, Statistical Learning Methods, eq. 4.8 to 4.11: (count + lambda) / (n + v lambda)
    with v values in the column, and (n_class + lambda) / (N + K lambda) for the prior.
    X holds codes.  levels: number of values of each column; unless given, taken from the
    first documents.

    >>> from nbspam.models import CategoricalNB
    >>> model = CategoricalNB().fit([[0, 1], [1, 0], [1, 2]], ["no", "yes", "yes"])
    >>> model.predict([[1, 1], [0, float("nan")]]).tolist()
    ['yes', 'no']
    """

    _sums = ("class_count_", "level_count_")
    _over_values: tuple[tuple[str, int], ...] = (("level_count_", 1),)
    level_count_: Array

    @property
    def level_log_prob_(self) -> Array:
        """Return log P(value given class) in nats, shape (n_classes, values of all columns)."""
        self._learnt()
        return Levels(self.levels_).log_shares(self.level_count_, self.added_)

    def distributions(self, whole: bool = True) -> Iterator[Distribution]:
        """Yield P(class), and P(value given class) of each column."""
        yield from super().distributions(whole)
        yield from shares_of_values(self.levels_, self.level_count_, self.level_log_prob_)

    def _count(self, X: Any, code: Codes, weight: Array | None, n_classes: int) -> Sums:
        levels = Levels(self.levels_)
        cells = levels.cells(X, type(self).__name__)
        return {"level_count_": count_cells(cells, levels.total, code, weight, n_classes)}

    def _derive(self) -> Array:
        return self.level_log_prob_

    def _joint_log_proba(self, X: Any) -> Array:
        cells = Levels(self.levels_).cells(X, type(self).__name__)
        return self.class_log_prior_ + sum_cells(cells, self.tables())

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's description of the model; only scikit-learn calls this."""
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags
