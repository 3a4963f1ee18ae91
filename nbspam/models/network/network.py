"""A Bayesian network as a value: variables, their values, a graph and conditional tables.

P(x1, …, xd) = product of P(xi given parents of xi); Zhou, *Machine Learning*, eq. 7.26.
Exact inference is by variable elimination.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from nbspam.arrays import Floats
from nbspam.errors import UsageError
from nbspam.models.network.structure import Parents, ancestors, check_family, topological_order


@dataclass(frozen=True, eq=False)
class Network:
    """A Bayesian network.

    tables[i]: P(value of i given values of its parents), one row for each combination of the
    parents' values (the last parent's changes fastest), one column for each value of i.  A
    row sums to 1.
    """

    names: tuple[str, ...]
    states: tuple[tuple[str, ...], ...]  # the values of each variable
    parents: Parents
    tables: tuple[Floats, ...]

    @property
    def cardinality(self) -> tuple[int, ...]:
        """The number of values of each variable."""
        return tuple(map(len, self.states))

    def factor(self, node: int) -> Floats:
        """Return P(node given parents), with one axis per parent in order and the node last."""
        shape = [*(len(self.states[p]) for p in self.parents[node]), len(self.states[node])]
        return self.tables[node].reshape(shape)

    def index(self, name: str, what: str = "variable") -> int:
        """Return the index of a variable; `what` names it in the error.  Raises UsageError."""
        if name not in self.names:
            raise UsageError(
                f"{what} {name!r}: no such variable; choose from: {_some(self.names)}"
            )
        return self.names.index(name)

    def state(self, node: int, value: str, what: str = "evidence") -> int:
        """Return the index of a variable's value; raises UsageError.

        what: what the error calls the value.
        """
        if value not in self.states[node]:
            raise UsageError(
                f"{what} {self.names[node]}={value}: no such value;"
                f" choose from: {_some(self.states[node])}"
            )
        return self.states[node].index(value)


def _some(names: Sequence[str], most: int = 20) -> str:
    return ", ".join(names[:most]) + (" …" if len(names) > most else "")


def smoothed_tables(counts: Sequence[Floats], added: Sequence[Floats]) -> tuple[Floats, ...]:
    """Return the conditional tables (n + a) / (N + sum of a) of counts.

    counts: (rows, values) for each variable; added: a, for each variable (values,).  A row
    without counts is uniform if nothing is added.
    """
    tables = []
    for count, more in zip(counts, added, strict=True):
        total = count.sum(axis=1, keepdims=True) + more.sum()
        even = np.full(count.shape, 1.0 / count.shape[1])
        tables.append(np.divide(count + more, total, out=even, where=total > 0))
    return tuple(tables)


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
    except (KeyError, TypeError, ValueError):
        raise UsageError(
            f"{where}: not a network; give variables, each with name, values, parents and table"
        ) from None
    _check_names(where, names, states, named)
    given = [[names.index(parent) for parent in parents] for parents in named]
    parents = tuple(tuple(sorted(nodes)) for nodes in given)
    topological_order(parents)
    cardinality = [len(values) for values in states]
    tables = []
    for i, name in enumerate(names):
        shape = check_family(cardinality, i, parents[i])
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
            arrows = [(str(p), child) for child, parents in rows.items() for p in _listed(parents)]
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
    try:
        topological_order(tuple(map(tuple, ascending)))
    except UsageError:
        raise UsageError(f"{where}: its arrows lead round in a circle; remove one") from None
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
# variables is never built (Zhang & Poole 1994); they are scaled against underflow.

MAX_CELLS = 1 << 25  # of the largest table during elimination; 8 bytes each


@dataclass(frozen=True, eq=False)
class Factor:
    """A table times exp(log_scale), with one axis for each of some variables."""

    nodes: tuple[int, ...]
    table: Floats
    log_scale: float = 0.0


@dataclass(frozen=True, eq=False)
class InferredTable:
    """P(targets given evidence), one axis per target, and log P(evidence) in nats."""

    probability: Floats
    log_evidence: float


def infer(network: Network, targets: Sequence[int], evidence: Mapping[int, int]) -> InferredTable:
    """Return P(targets given evidence) and log P(evidence).

    targets: distinct variables; evidence: the value of each known variable.  Raises
    UsageError if the evidence is impossible, or a table would exceed MAX_CELLS.
    """
    if set(targets) & evidence.keys():
        name = network.names[min(set(targets) & evidence.keys())]
        raise UsageError(f"target {name!r}: it is among the evidence; give another target")
    left = _eliminated(network, targets, evidence)
    total = float(left.table.sum())
    if total <= 0:
        raise UsageError("evidence: impossible in this network; change a value")
    return InferredTable(left.table / total, left.log_scale + float(np.log(total)))


def log_marginals(network: Network, targets: Sequence[int], evidence: Mapping[int, int]) -> Floats:
    """Return log P(targets, evidence) in nats, one axis per target; -inf where impossible."""
    left = _eliminated(network, targets, evidence)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(left.table) + left.log_scale)


def _eliminated(network: Network, targets: Sequence[int], evidence: Mapping[int, int]) -> Factor:
    """Return P(targets, evidence) as a factor with one axis per target, in their order."""
    # A variable without targets and evidence among itself and its descendants sums to 1.
    relevant = ancestors(network.parents, {*targets, *evidence})
    factors = [_reduced(network, node, evidence) for node in sorted(relevant)]
    hidden = relevant - set(targets) - evidence.keys()
    while hidden:
        node = _cheapest(network, factors, hidden)
        hidden.remove(node)
        touched = [factor for factor in factors if node in factor.nodes]
        factors = [factor for factor in factors if node not in factor.nodes]
        factors.append(_summed(_product(network, touched), node))
    left = _product(network, factors)
    table = left.table.transpose([left.nodes.index(target) for target in targets])
    return Factor(tuple(targets), table, left.log_scale)


def _reduced(network: Network, node: int, evidence: Mapping[int, int]) -> Factor:
    """Return a node's factor with the evidence substituted."""
    nodes = (*network.parents[node], node)
    known = tuple(evidence.get(n, slice(None)) for n in nodes)
    return _scaled(
        tuple(n for n in nodes if n not in evidence), np.asarray(network.factor(node)[known]), 0.0
    )


def _scaled(nodes: tuple[int, ...], table: Floats, log_scale: float) -> Factor:
    top = float(table.max())
    if top <= 0:
        return Factor(nodes, table, log_scale)
    return Factor(nodes, table / top, log_scale + float(np.log(top)))


def _cheapest(network: Network, factors: Iterable[Factor], hidden: Iterable[int]) -> int:
    """Return the variable whose elimination needs the smallest table; the first of equals."""

    def size(node: int) -> int:
        met = {n for factor in factors if node in factor.nodes for n in factor.nodes}
        return prod(len(network.states[n]) for n in met)

    return min(sorted(hidden), key=size)


def _product(network: Network, factors: Sequence[Factor]) -> Factor:
    """Return the product of factors over the union of their variables."""
    nodes = tuple(sorted({n for factor in factors for n in factor.nodes}))
    shape = [len(network.states[n]) for n in nodes]
    if prod(shape) > MAX_CELLS:
        raise UsageError(
            f"query: exact inference would need a table of {prod(shape) * 8 / 2**30:.3g} GiB;"
            " sample instead, with --gibbs N"
        )
    table, log_scale = np.ones(shape), 0.0
    for factor in factors:
        order = sorted(range(len(factor.nodes)), key=lambda k: factor.nodes[k])
        axes = [len(network.states[n]) if n in factor.nodes else 1 for n in nodes]
        table = table * factor.table.transpose(order).reshape(axes)
        log_scale += factor.log_scale
    return _scaled(nodes, table, log_scale)


def _summed(factor: Factor, node: int) -> Factor:
    axis = factor.nodes.index(node)
    nodes = tuple(n for n in factor.nodes if n != node)
    return _scaled(nodes, factor.table.sum(axis=axis), factor.log_scale)
