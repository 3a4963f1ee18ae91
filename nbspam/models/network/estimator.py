"""A Bayesian network as a classifier: the class is one of its variables.

A search over graphs finds which columns depend on which.  Each graph needs different counts,
so the model keeps the distinct rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from nbspam.models.base import DataError
from nbspam.models.network.network import Network, log_marginals, smoothed_tables
from nbspam.models.network.structure import (
    FamilyScores,
    Parents,
    empty_start,
    family_counts,
    hill_climb,
    naive_start,
    topological_order,
    tree_start,
)
from nbspam.models.rows import RowsModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbspam.models.base import Array, Statistics

STARTS = ("tree", "naive", "empty")


@dataclass(kw_only=True, eq=False, repr=False)
class BayesianNetwork(RowsModel):
    """P(class) times the product of P(column given its parents), in a graph that is searched.

    Zhou Zhihua, Machine Learning, section 7.5.  A search makes the class a parent but never a
    child, so that P(class) is the prior, as in all other models, unless class_parents makes the
    class a node like any other.  The graph is searched again whenever rows are learnt or
    unlearnt.

    levels: the number of values of each column; unless given, columns are binary: X above 0
    or not.  criterion: bic, aic, mdl or likelihood.  start: tree (TAN; with class_parents the
    tree of Chow and Liu, over the class too), naive or empty.  climb: improve the start by hill
    climbing; None: unless a structure is given.  max_parents: limit per variable.
    structure: the start: the parents of each column and, last, of the class, which may then
    have parents.

    >>> from nbspam.models import BayesianNetwork
    >>> xor = [[0, 0], [0, 1], [1, 0], [1, 1]] * 20
    >>> BayesianNetwork().fit(xor, [0, 1, 1, 0] * 20).predict([[0, 1], [1, 1]]).tolist()
    [1, 0]
    """

    criterion: str = "bic"
    start: str = "tree"
    climb: bool | None = None
    max_parents: int | None = None
    structure: Sequence[Sequence[int]] | None = None
    class_parents: bool = False
    # (n_columns + 1, n_columns + 1), 1 at [parent, child]; the class is last
    arrows_: Any = field(init=False)

    @property
    def parents_(self) -> Parents:
        """Return the parents of each column, and of the class last."""
        self._learnt()
        return tuple(tuple(np.flatnonzero(column).tolist()) for column in self.arrows_.T)

    def _become(self, learnt: Statistics, n_features: int) -> Self:
        super()._become(learnt, n_features)
        parents = self._search_graph()
        self.arrows_ = np.zeros((n_features + 1, n_features + 1), np.uint8)
        for child, its_parents in enumerate(parents):
            self.arrows_[list(its_parents), child] = 1
        return self

    @property
    def cardinality(self) -> list[int]:
        """Return the number of values of each column, and of the class last."""
        return [*self.levels_.tolist(), len(self.classes_)]

    def _search_graph(self) -> Parents:
        if self.start not in STARTS:
            raise DataError(f"start: {self.start!r} is unknown; choose from {', '.join(STARTS)}")
        if self.max_parents is not None and not self.max_parents >= 1:
            raise DataError(
                f"max_parents: {self.max_parents!r} is not a number from 1 up; give one"
            )
        if self.class_parents:
            self._check_no_prior("class_parents is true")
        n_nodes, target, scores = len(self.cardinality), self.n_features_in_, self.scores()
        if self.structure is not None:
            graph = self._given_graph(self.structure)
        elif self.start == "tree" and self.class_parents:
            graph = tree_start(scores)
        elif self.start == "tree" and self.max_parents != 1:
            graph = tree_start(scores, target)
        elif self.start == "empty":
            graph = empty_start(n_nodes)
        else:
            graph = naive_start(n_nodes, target)
        if self.climb is False or (self.climb is None and self.structure is not None):
            return graph
        roots = () if self.class_parents or graph[-1] else (target,)
        return hill_climb(scores, graph, self.max_parents, roots)

    def scores(self) -> FamilyScores:
        """Return the costs of families on the rows learnt."""
        return FamilyScores(self.rows_, self.cardinality, self.criterion, self.row_count_)

    def _check_no_prior(self, why: str) -> None:
        """Raise DataError if there is a prior of the class, which may have parents."""
        if not (isinstance(self.class_prior, str) and self.class_prior == "smoothed"):
            raise DataError(
                f"class_prior: {self.class_prior}, but {why}, so that it has no prior;"
                " leave it out"
            )

    def _given_graph(self, structure: Sequence[Sequence[int]]) -> Parents:
        """Return the graph that was given; raises DataError, or UsageError for a cycle."""
        graph = tuple(tuple(sorted(nodes)) for nodes in structure)
        n_nodes = self.n_features_in_ + 1
        if len(graph) != n_nodes or not {n for nodes in graph for n in nodes} <= {*range(n_nodes)}:
            raise DataError(
                f"structure: not the parents of {n_nodes - 1} columns and the class; give a list"
                " for each"
            )
        if graph[-1]:
            self._check_no_prior("the structure gives the class parents")
        topological_order(graph)
        return graph

    @property
    def class_log_prior_(self) -> Array:
        """Return log P(class) in nats, shape (n_classes,)."""
        if not self.parents_[-1]:
            return super().class_log_prior_
        return log_marginals(self.network(), [self.n_features_in_], {})

    def family_counts(self, child: int) -> Array:
        """Return the counts of a variable's values by combinations of its parents' values."""
        parents = self.parents_[child]
        return family_counts(self.rows_, self.cardinality, child, parents, self.row_count_)

    def _derive(self) -> Any:
        """Return the conditional table of each column, and of the class last."""
        cardinality, parents = self.cardinality, self.parents_
        counts = [self.family_counts(child) for child in range(len(parents))]
        added = np.split(self.added_, np.cumsum(self.levels_)[:-1])
        tables = smoothed_tables(counts, [*added, self.class_added(cardinality[-1])])
        return tables if parents[-1] else (*tables[:-1], np.exp(self.class_log_prior_)[None])

    def network(self, names: Any = None, states: Any = None) -> Network:
        """Return the network with names; the class is the last variable.

        names: of the variables; states: the names of each variable's values.
        """
        cardinality = self.cardinality
        names = names or [f"x{i}" for i in range(len(cardinality) - 1)] + ["class"]
        states = states or [tuple(map(str, range(n))) for n in cardinality]
        return Network(tuple(names), tuple(states), self.parents_, self.tables())

    def _joint_log_proba(self, X: Any) -> Array:
        tables = self.tables()
        codes = self._codes(X, self._at("predict"))
        joint = np.empty((len(codes), len(self.classes_)))
        whole = (codes >= 0).all(axis=1)
        joint[whole] = self._of_whole(codes[whole], tables)
        if not whole.all():
            network = self.network()
            target = len(tables) - 1
            different, which = np.unique(codes[~whole], axis=0, return_inverse=True)
            known = [{j: c for j, c in enumerate(row) if c >= 0} for row in different.tolist()]
            summed = [log_marginals(network, [target], evidence) for evidence in known]
            joint[~whole] = np.stack(summed)[which.ravel()]
        return joint

    def _of_whole(self, codes: Any, tables: tuple[Array, ...]) -> Array:
        """Return log P(class, row) of rows in which nothing is missing, (n_rows, n_classes)."""
        n_classes, target = len(self.classes_), len(tables) - 1
        cardinality, parents = self.cardinality, self.parents_
        joint = np.zeros((len(codes), n_classes))
        classes = np.arange(n_classes)[None]
        with np.errstate(divide="ignore"):
            logs = [np.log(table) for table in tables]
        for child, its_parents in enumerate(parents):
            # One column if the class is not in this family, else one column per class.
            row: Any = np.zeros((len(codes), 1), np.intp)
            for parent in its_parents:
                value = classes if parent == target else codes[:, parent, None]
                row = row * cardinality[parent] + value
            joint += logs[child][row, classes if child == target else codes[:, child, None]]
        return np.asarray(joint)
