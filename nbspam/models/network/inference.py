"""Exact inference: P(targets given evidence) by variable elimination.

Factors are multiplied and summed over one variable at a time, so that the joint table of all
variables is never built (Zhang & Poole 1994).

Secret: the order of elimination, and that factors are scaled against underflow.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from nbspam.arrays import Floats
from nbspam.errors import UsageError
from nbspam.models.network.graphs import ancestors
from nbspam.models.network.network import Network

MAX_CELLS = 1 << 25  # of the largest table during elimination; 8 bytes each


@dataclass(frozen=True, eq=False)
class Factor:
    """A table times exp(log_scale), with one axis for each of some variables."""

    nodes: tuple[int, ...]
    table: Floats
    log_scale: float = 0.0


@dataclass(frozen=True, eq=False)
class Answer:
    """P(targets given evidence), one axis per target, and log P(evidence) in nats."""

    probability: Floats
    log_evidence: float


def query(network: Network, targets: Sequence[int], evidence: Mapping[int, int]) -> Answer:
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
    return Answer(left.table / total, left.log_scale + float(np.log(total)))


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
