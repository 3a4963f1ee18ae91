"""SPODE: naive Bayes in which all columns also depend on one of them, the super-parent.

Secret: how leave-one-out cross-validation of all parents needs no retraining.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from nbspam.models.base import logsumexp
from nbspam.models.columns.onedependence import ParentScores, Tree
from nbspam.models.columns.pairs import PairModel
from nbspam.models.inputs import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike

    from nbspam.models.columns.levels import Dirichlet
    from nbspam.models.distributions import Distribution
    from nbspam.models.inputs import Array, Codes

_IMPOSSIBLE = 1e6  # log loss of a document whose class got probability 0, nats
_DIGITS = 9  # decimals of log-probabilities that are free of rounding errors


class SPODE(PairModel):
    """P(class, parent) times the product of P(column given class, parent) over other columns.

    Zhou Zhihua, Machine Learning, eq. 7.21 with the super-parent as pa; probabilities by
    eq. 7.24 and 7.25.  A row whose parent is missing is classified by naive Bayes.
    parent: index of the super-parent's column.  Unless given, the first documents choose
    the column with the fewest errors in leave-one-out cross-validation, and among equals
    the one with the lowest log loss; a column with a single value only if all have one.
    parent_errors_, parent_loss_: of a chosen parent, the errors with each column as parent,
    and the mean log loss in nats, shape (n_columns,).

    >>> from nbspam.models import SPODE
    >>> xor = SPODE(parent=0).fit([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0])
    >>> xor.predict([[0, 1], [1, 1]]).tolist()
    [1, 0]
    """

    parent_: int
    parent_errors_: Array
    parent_loss_: Array

    def __init__(
        self,
        *,
        parent: int | None = None,
        levels: ArrayLike | None = None,
        estimate: str = "mean",
        alpha: float = 1.0,
        class_prior: str | ArrayLike = "smoothed",
        dirichlet: Dirichlet = None,
    ) -> None:
        super().__init__(
            levels=levels,
            estimate=estimate,
            alpha=alpha,
            class_prior=class_prior,
            dirichlet=dirichlet,
        )
        self.parent = parent

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn these documents and forget all earlier ones."""
        for name in ("parent_", "parent_errors_", "parent_loss_"):
            vars(self).pop(name, None)
        super().fit(X, y, sample_weight)
        return self._choose(X, y)

    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn these documents in addition to earlier ones; the parent is not chosen again."""
        super().partial_fit(X, y, classes, sample_weight)
        return self._choose(X, y)

    def _choose(self, X: Any, y: ArrayLike) -> Self:
        """Set the parent: the one given, or the best one on these documents."""
        if "parent_" not in vars(self):
            if self.parent is None:
                X = self._matrix(X, "fit")
                code = np.searchsorted(self.classes_, np.asarray(y))
                self.parent_errors_, self.parent_loss_ = self._cross_validated(X, code)
                self.parent_ = self._best_parent()
            else:
                self.parent_ = self.parent
        if not 0 <= self.parent_ < self.n_features_in_:
            raise DataError(
                f"parent: {self.parent} is none of the columns 0 to {self.n_features_in_ - 1};"
                " give one of them"
            )
        return self

    def _best_parent(self) -> int:
        """Return the best column with more than one value; if there is none, the first one."""
        single = self.levels_ < 2
        return int(np.lexsort((self.parent_loss_, self.parent_errors_, single))[0])

    def _cross_validated(self, X: Any, code: Codes) -> tuple[Array, Array]:
        """Return errors and mean log loss of each parent, left-one-out, (n_columns,).

        code: the class indices.
        """
        encoding = self.encoding
        with_all, without = (
            [ParentScores.of(table, encoding) for table in self.value_tables(left_out)]
            for left_out in (0, 1)
        )
        errors, loss = np.zeros(X.shape[1]), np.zeros(X.shape[1])
        width = (len(with_all) + 1) * (encoding.levels.total + 1)
        for rows, cells, events in encoding.blocks(X, width, type(self).__name__):
            truth = code[rows]
            # (n_classes, n_docs, n_columns): the scores with each column as the parent.
            joint = np.stack([scores.by_parent(events, cells) for scores in with_all])
            for k, scores in enumerate(without):
                own = truth == k
                joint[k, own] = scores.by_parent(events[own], cells[own])
            of_truth = np.take_along_axis(joint, truth[None, :, None], axis=0)[0]
            # Rounded, so that how columns are stored (dense, sparse) does not break ties.
            best = joint.round(_DIGITS).argmax(axis=0)
            errors += (best != truth[:, None]).sum(axis=0)
            flat = joint.reshape(len(joint), -1).T
            total = logsumexp(flat).reshape(of_truth.shape)
            surprise = total - np.where(np.isneginf(of_truth), 0.0, of_truth)
            loss += np.where(np.isneginf(of_truth), _IMPOSSIBLE, surprise).sum(axis=0)
        return errors, (loss / max(len(code), 1)).round(_DIGITS)

    def distributions(self, whole: bool = True) -> Iterator[Distribution]:
        """Yield P(class), P(class, parent), and P(column given class, parent)."""
        yield from super().distributions(whole)
        tables, counts = list(self.value_tables()), list(self.value_counts())
        yield self.joint_with_class(self.parent_, tables)
        for column in range(self.n_features_in_):
            if column != self.parent_:
                yield self.of_pair(column, self.parent_, tables, counts)

    def dependences(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the parent, and of each column how it did in cross-validation, if it was."""
        was_chosen = "parent_errors_" in vars(self)
        candidates = [
            {
                "column": names[column],
                "errors": int(self.parent_errors_[column]),
                "log_loss": float(self.parent_loss_[column]),
            }
            for column in (np.flatnonzero(self.levels_ > 1).tolist() if was_chosen else ())
        ]
        return {"parent": names[self.parent_], "candidates": candidates}

    def _derive(self) -> Any:
        tree = Tree(np.full(self.n_features_in_, self.parent_), self.encoding.levels)
        return tree, [(each.parent, tree.table(each.given)) for each in self.value_tables()]

    def _joint_log_proba(self, X: Any) -> Array:
        tree, tables = self.tables()
        joint = np.empty((X.shape[0], len(tables)))
        for rows, cells, _ in self.encoding.blocks(X, 3 * X.shape[1], type(self).__name__):
            places = tree.places(cells)
            for k, (parent, given) in enumerate(tables):
                of_parent = parent[cells[:, self.parent_]]
                joint[rows, k] = of_parent + given.ravel().take(places).sum(axis=1)
        return joint
