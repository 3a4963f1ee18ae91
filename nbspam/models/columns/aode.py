"""AODE: the average of the SPODEs of all columns, which need no choosing.

Secret: how a row's SPODEs are averaged, all parents and documents at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nbspam.models.base import logsumexp
from nbspam.models.columns.onedependence import ParentScores
from nbspam.models.columns.pairs import PairModel
from nbspam.models.inputs import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from nbspam.models.inputs import Array, Codes


class AODE(PairModel):
    """The mean over all columns i of P(class, x_i) times P(x_j given class, x_i), all j.

    Webb, Boughton & Wang (2005); Zhou Zhihua, Machine Learning, eq. 7.23 to 7.25.  Only
    values that min_support documents have are parents; a row without any such value is
    judged by naive Bayes.  It is counts alone, so that it learns on, unlearns and merges.

    >>> from nbspam.models.columns.aode import AODE
    >>> xor = AODE().fit([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0])
    >>> xor.predict([[0, 1], [1, 1]]).tolist()
    [1, 0]
    """

    def __init__(
        self,
        *,
        min_support: float = 1.0,
        levels: ArrayLike | None = None,
        estimate: str = "mean",
        alpha: float = 1.0,
        class_prior: str | ArrayLike = "smoothed",
    ) -> None:
        super().__init__(levels=levels, estimate=estimate, alpha=alpha, class_prior=class_prior)
        self.min_support = min_support

    def _become(self, learnt: Any, n_features: int) -> Any:
        if not 0 < self.min_support < np.inf:
            raise DataError(f"min_support: {self.min_support!r} is not a number above 0")
        return super()._become(learnt, n_features)

    def _derive(self) -> tuple[list[ParentScores], Array]:
        support = self.own_counts().sum(axis=0)
        # What is missing is no parent.
        is_parent = np.append(support >= self.min_support, False)
        encoding = self.encoding
        return [ParentScores.of(table, encoding) for table in self.value_tables()], is_parent

    def _joint_log_proba(self, X: Any) -> Array:
        tables = self.tables()
        encoding = self.encoding
        joint = np.empty((X.shape[0], len(tables[0])))
        width = 2 * encoding.levels.total
        for rows, cells, events in encoding.blocks(X, width, type(self).__name__):
            joint[rows] = averaged(tables, events, cells)
        return joint


def averaged(tables: tuple[list[ParentScores], Array], events: Array, cells: Codes) -> Array:
    """Return the log of the mean over each row's SPODEs, nats, (n_docs, n_classes).

    tables: the scores of each class, and (D + 1,) which values are parents.
    """
    classes, is_parent = tables
    chosen = is_parent[cells]
    n_parents = chosen.sum(axis=1)
    joint = np.empty((len(cells), len(classes)))
    for k, of_class in enumerate(classes):
        scores = of_class.scores(events)
        of_parents = np.where(chosen, np.take_along_axis(scores, cells, axis=1), -np.inf)
        mean = logsumexp(of_parents)[:, 0] - np.log(np.maximum(n_parents, 1))
        joint[:, k] = np.where(n_parents > 0, mean, scores[:, -1])
    return joint
