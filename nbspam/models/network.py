"""Bayesian networks: variables, their values, a graph, conditional tables; and a classifier.

P(x1, …, xd) = product of P(xi given parents of xi); Zhou, *Machine Learning*, eq. 7.26.
Exact inference is by variable elimination.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from nbspam.arrays import Floats
from nbspam.errors import UsageError, check_number
from nbspam.models import graphs
from nbspam.models.columns import RowsModel
from nbspam.models.inputs import DataError, refuse_large
from nbspam.models.smoothing import smoothed_shares

if TYPE_CHECKING:
    from nbspam.models.base import Statistics
    from nbspam.models.inputs import Array


_MOST_NAMED = 20  # in an error


@dataclass(frozen=True, eq=False)
class Factor:
    """A table with one axis for each of some variables; nodes: these, ascending."""

    nodes: tuple[int, ...]
    table: Floats


@dataclass(frozen=True, eq=False)
class Network:
    """A Bayesian network.

    tables[i]: P(value of i given values of its parents), one row for each combination of the
    parents' values (the last parent's changes fastest), one column for each value of i.  A
    row sums to 1.
    """

    names: tuple[str, ...]
    states: tuple[tuple[str, ...], ...]  # the values of each variable
    parents: graphs.Parents
    tables: tuple[Floats, ...]

    @property
    def cardinality(self) -> tuple[int, ...]:
        """The number of values of each variable."""
        return tuple(map(len, self.states))

    def factor(self, node: int) -> Floats:
        """Return P(node given parents), with one axis per parent in order and the node last."""
        family = (*self.parents[node], node)
        return self.tables[node].reshape([len(self.states[n]) for n in family])

    def factor_given(self, node: int, evidence: Mapping[int, int]) -> Factor:
        """Return P(node given parents) over the variables that the evidence leaves open."""
        family = sorted((*self.parents[node], node))
        cube = np.moveaxis(self.factor(node), -1, family.index(node))
        table = cube[tuple(evidence.get(n, slice(None)) for n in family)]
        return Factor(tuple(n for n in family if n not in evidence), table)

    def index(self, name: str, what: str = "variable") -> int:
        """Return the index of a variable; `what` names it in the error.  Raises UsageError."""
        if name not in self.names:
            raise UsageError(
                f"{what} {name!r}: no such variable; choose from: {_some(self.names)}"
            )
        return self.names.index(name)

    def state(self, node: int, value: str, what: str = "evidence") -> int:
        """Return the index of a variable's value; raises UsageError.

        what: the value's name in errors.
        """
        if value not in self.states[node]:
            raise UsageError(
                f"{what} {self.names[node]}={value}: no such value;"
                f" choose from: {_some(self.states[node])}"
            )
        return self.states[node].index(value)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_NAMED]) + (" …" if len(names) > _MOST_NAMED else "")


# --- as JSON -----------------------------------------------------------------------------


def to_json(network: Network) -> dict[str, Any]:
    """Return the network as a JSON document; the inverse of `from_json`."""
    return {
        "variables": [
            {
                "name": name,
                "values": list(network.states[i]),
                "parents": [network.names[p] for p in network.parents[i]],
                "table": network.tables[i].tolist(),
            }
            for i, name in enumerate(network.names)
        ]
    }


def from_json(data: Any, where: str = "network") -> Network:
    """Return the network that a JSON document describes; raises UsageError.

    Parents may be listed in any order; the rows of the table follow that order.
    where: what the errors call the document.
    """
    try:
        rows = data["variables"]
        names = tuple(str(row["name"]) for row in rows)
        states = tuple(tuple(map(str, row["values"])) for row in rows)
        named = [[str(parent) for parent in row["parents"]] for row in rows]
        raw = [np.asarray(row["table"], np.float64) for row in rows]
    except (KeyError, TypeError, ValueError, OverflowError):
        raise UsageError(
            f"{where}: not a network; give variables, each with name, values, parents and table"
        ) from None
    _check_names(where, names, states, named)
    given = [[names.index(parent) for parent in parents] for parents in named]
    parents = tuple(tuple(sorted(nodes)) for nodes in given)
    graphs.topological_order(parents, where)
    cardinality = [len(values) for values in states]
    tables = []
    for i, name in enumerate(names):
        shape = graphs.check_family(cardinality, i, parents[i])
        table = raw[i]
        sums_to_1 = table.shape == shape and np.allclose(table.sum(axis=1), 1)
        if not sums_to_1 or not ((table >= 0) & (table <= 1)).all():
            raise UsageError(
                f"{where}: the table of {name} is not {shape[0]} rows of {shape[1]}"
                " probabilities that sum to 1; correct it"
            )
        tables.append(_in_order(table, [*given[i], i], cardinality))
    return Network(names, states, parents, tuple(tables))


def structure_from_json(data: Any, names: Sequence[str], where: str) -> list[list[int]]:
    """Return the parents of each variable, ascending; raises UsageError.

    data: a network as `to_json` returns it, whose tables are ignored; or the parents of each
    child, {"child": ["parent", …], …}; or the arrows, [["parent", "child"], …].  A variable that
    is not mentioned has no parents.  where: what the errors call the document.
    """
    try:
        rows = data["variables"] if isinstance(data, dict) and "variables" in data else data
        if isinstance(rows, dict):
            arrows = [(str(p), str(c)) for c, parents in rows.items() for p in _listed(parents)]
        elif rows and all(isinstance(row, dict) for row in rows):
            arrows = [(str(p), str(row["name"])) for row in rows for p in _listed(row["parents"])]
        else:
            arrows = [(str(parent), str(child)) for parent, child in map(_listed, _listed(rows))]
    except (KeyError, TypeError, ValueError):
        raise UsageError(
            f'{where}: not a structure; write {{"child": ["parent", …], …}}, or'
            ' [["parent", "child"], …], or give what nbspam table query --json prints'
        ) from None
    for name in (name for arrow in arrows for name in arrow):
        if name not in names:
            raise UsageError(f"{where}: {name!r} is no column; choose from: {_some(names)}")
    parents: list[set[int]] = [set() for _ in names]
    for parent, child in arrows:
        parents[names.index(child)].add(names.index(parent))
    ascending = [sorted(nodes) for nodes in parents]
    graphs.topological_order(tuple(map(tuple, ascending)), where)
    return ascending


def _listed(value: Any) -> list[Any]:
    """Return a list; raises TypeError for anything else, such as a string."""
    if not isinstance(value, list):
        raise TypeError("not a list")
    return value


def _check_names(
    where: str,
    names: Sequence[str],
    states: Sequence[Sequence[str]],
    parents: Sequence[Sequence[str]],
) -> None:
    for what, listed in (("variables", names), *zip(names, states, strict=True)):
        if not listed or len(set(listed)) < len(listed):
            raise UsageError(f"{where}: {what}: a name is missing or there twice; correct it")
    for name, its_parents in zip(names, parents, strict=True):
        unknown = [parent for parent in its_parents if parent not in names]
        if unknown or len(set(its_parents)) < len(its_parents):
            raise UsageError(
                f"{where}: parents of {name}: {_some(its_parents)}; name variables, each once"
            )


def _in_order(table: Floats, axes: Sequence[int], cardinality: Sequence[int]) -> Floats:
    """Return the table with its rows reordered for ascending parents; axes: parents, node."""
    cube = table.reshape([cardinality[i] for i in axes])
    order = [*np.argsort(axes[:-1]).tolist(), len(axes) - 1]
    return cube.transpose(order).reshape(table.shape)


# --- exact inference -------------------------------------------------------------------------

# Factors are multiplied and summed over one variable at a time, so that the joint table of all
# variables is never built (Zhang & Poole 1994); as logarithms, because products of hundreds of
# factors would underflow.

_MAX_CELLS = 1 << 25  # of the largest table during elimination


def infer(
    network: Network, targets: Sequence[int], evidence: Mapping[int, int]
) -> tuple[Floats, float]:
    """Return P(targets given evidence), one axis per target, and log P(evidence) in nats.

    targets: distinct variables; evidence: the value of each known variable.  Raises
    UsageError if the evidence is impossible, or a table would exceed _MAX_CELLS.
    """
    if set(targets) & evidence.keys():
        name = network.names[min(set(targets) & evidence.keys())]
        raise UsageError(f"target {name!r}: it is among the evidence; give another target")
    log = log_marginals(network, targets, evidence)
    top = float(log.max())
    if top == -np.inf:
        raise UsageError("evidence: impossible in this network; change a value")
    share = np.exp(log - top)
    total = float(share.sum())
    return share / total, top + float(np.log(total))


def log_marginals(network: Network, targets: Sequence[int], evidence: Mapping[int, int]) -> Floats:
    """Return log P(targets, evidence) in nats, one axis per target; -inf where impossible.

    Arguments: see `infer`.  Raises UsageError if a table would exceed _MAX_CELLS.
    """
    # A variable without targets and evidence among itself and its descendants sums to 1.
    relevant = graphs.ancestors(network.parents, {*targets, *evidence})
    known = [network.factor_given(node, evidence) for node in sorted(relevant)]
    with np.errstate(divide="ignore"):
        factors = [Factor(factor.nodes, np.log(factor.table)) for factor in known]
    hidden, sizes = relevant - set(targets) - evidence.keys(), network.cardinality
    while hidden:
        node = _cheapest(sizes, factors, hidden)
        hidden.remove(node)
        touched = [factor for factor in factors if node in factor.nodes]
        factors = [factor for factor in factors if node not in factor.nodes]
        met = _product(sizes, touched)
        axis = met.nodes.index(node)
        nodes = met.nodes[:axis] + met.nodes[axis + 1 :]
        factors.append(Factor(nodes, np.asarray(np.logaddexp.reduce(met.table, axis=axis))))
    left = _product(sizes, factors)
    return left.table.transpose([left.nodes.index(target) for target in targets])


def _cheapest(sizes: Sequence[int], factors: Iterable[Factor], hidden: set[int]) -> int:
    """Return the variable whose elimination needs the smallest table; the first of equals."""
    met: dict[int, set[int]] = {node: set() for node in sorted(hidden)}
    for factor in factors:
        for node in hidden.intersection(factor.nodes):
            met[node].update(factor.nodes)
    return min(met, key=lambda node: prod(sizes[n] for n in met[node]))


def _product(sizes: Sequence[int], factors: Sequence[Factor]) -> Factor:
    """Return the product, a sum of logarithms, over the union of the factors' variables."""
    nodes = tuple(sorted({n for factor in factors for n in factor.nodes}))
    shape = [sizes[n] for n in nodes]
    advice = "sample instead, with --gibbs N"
    refuse_large("query", "tables of exact inference", shape, _MAX_CELLS, advice)
    log = np.zeros(shape)
    for factor in factors:
        axes = [sizes[n] if n in factor.nodes else 1 for n in nodes]
        log += factor.table.reshape(axes)
    return Factor(nodes, log)


# --- a network as a classifier: the class is one of its variables ---------------------------
#
# A search over graphs finds which columns depend on which.  Each graph needs different counts,
# so the model keeps the distinct rows.

STARTS = ("tree", "naive", "empty")


@dataclass(kw_only=True, eq=False, repr=False)
class BayesianNetwork(RowsModel):
    """P(class) times the product of P(column given its parents), in a graph that is searched.

    Zhou Zhihua, Machine Learning, section 7.5.  A search makes the class a parent but never a
    child, so that P(class) is the prior, as in all other models, unless class_parents makes the
    class a node like any other.  The graph is searched again whenever rows are learnt or unlearnt.

    criterion: bic, aic, mdl or likelihood.  start: tree (TAN; with class_parents the tree of Chow
    and Liu, over the class too), naive or empty.  climb: improve the start by hill climbing;
    None: unless a structure is given.  max_parents: limit per variable; None: three, and fewer in
    large tables; with 1 the tree is naive Bayes, unless class_parents.  structure: the start: the
    parents of each column and, last, of the class, which may then have parents.  All other
    parameters: see `RowsModel`.  A cycle, an unknown criterion and a table too large for memory
    are a UsageError.

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
    def parents_(self) -> graphs.Parents:
        """Return the parents of each column, and of the class last."""
        self._learnt()
        return graphs.parents_of(self.arrows_)

    def _become(self, learnt: Statistics) -> Self:
        with self._undone_by_errors():
            super()._become(learnt)
            self.arrows_ = graphs.arrows_of(self._search_graph()).astype(np.uint8)
        return self

    @property
    def cardinality(self) -> list[int]:
        """Return the number of values of each column, and of the class last."""
        return [*self.levels_.tolist(), len(self.classes_)]

    def _search_graph(self) -> graphs.Parents:
        if self.start not in STARTS:
            raise DataError(f"start: {self.start!r} is unknown; choose from {', '.join(STARTS)}")
        if self.max_parents is not None:
            check_number("max_parents", self.max_parents, 1, whole=True, error=DataError)
        if self.class_parents:
            self._check_no_prior("class_parents is true")
        n_nodes, target, scores = len(self.cardinality), self.n_features_in_, self.scores()
        climbs = self.structure is None if self.climb is None else self.climb
        if climbs:  # a search keeps the cost of every arrow, which takes as much as 32 numbers
            refuse_large(self._at("fit"), f"arrows of {n_nodes:,} nodes", (n_nodes, n_nodes, 32))
        if self.structure is not None:
            graph = self._given_graph(self.structure)
        elif self.start == "tree" and (self.class_parents or self.max_parents != 1):
            graph = graphs.tree_start(scores, None if self.class_parents else target)
        elif self.start == "empty":
            graph = ((),) * n_nodes
        else:
            graph = ((target,),) * target + ((),)  # naive Bayes
        if not climbs:
            return graph
        roots = () if self.class_parents or graph[-1] else (target,)
        return graphs.hill_climb(scores, graph, self.max_parents, roots)

    def scores(self) -> graphs.FamilyScores:
        """Return the costs of families on the rows learnt."""
        return graphs.FamilyScores(self.rows_, self.cardinality, self.criterion, self.row_count_)

    def _check_no_prior(self, why: str) -> None:
        """Raise DataError if there is a prior of the class, which may have parents."""
        if not self.smooths_classes:
            raise DataError(
                f"class_prior: {self.class_prior}, but {why}, so that it has no prior;"
                " leave it out"
            )

    def _given_graph(self, structure: Sequence[Sequence[int]]) -> graphs.Parents:
        """Return the graph that was given; raises DataError, or UsageError."""
        try:
            graph = tuple(tuple(sorted(nodes)) for nodes in structure)
        except TypeError:
            graph = ()
        n_nodes = self.n_features_in_ + 1
        if len(graph) != n_nodes or not {n for nodes in graph for n in nodes} <= {*range(n_nodes)}:
            raise DataError(
                f"structure: not the parents of {n_nodes - 1} columns and the class; give a list"
                " for each"
            )
        if graph[-1]:
            self._check_no_prior("the structure gives the class parents")
        graphs.topological_order(graph)
        for child, parents in enumerate(graph):
            graphs.check_family(self.cardinality, child, parents)
        return graph

    @property
    def class_log_prior_(self) -> Array:
        """Return log P(class) in nats, shape (n_classes,)."""
        if not self.parents_[-1]:
            return super().class_log_prior_
        return log_marginals(self.network(), [self.n_features_in_], {})

    def family_counts(self, child: int) -> Array:
        """Return the counts of a variable's values, see `graphs.family_counts`."""
        parents = self.parents_[child]
        return graphs.family_counts(self.rows_, self.cardinality, child, parents, self.row_count_)

    def _derive(self) -> Any:
        """Return the conditional table of each column, and of the class last."""
        cardinality, parents = self.cardinality, self.parents_
        counts = [self.family_counts(child) for child in range(len(parents))]
        of_columns = np.split(self.added_, np.cumsum(self.levels_)[:-1])
        added = [*of_columns, self.class_added(cardinality[-1])]
        tables = tuple(
            smoothed_shares(
                count, count.sum(axis=1, keepdims=True), count.shape[1], more, more.sum()
            )
            for count, more in zip(counts, added, strict=True)
        )
        return tables if parents[-1] else (*tables[:-1], np.exp(self.class_log_prior_)[None])

    def network(self, names: Any = None, states: Any = None) -> Network:
        """Return the network with names; the class is the last variable.

        names: of the variables, x0, x1, …, class unless given; states: the names of each
        variable's values, 0, 1, … unless given.
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
