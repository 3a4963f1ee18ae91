"""Gibbs sampling: an estimate of P(targets given evidence) from Markov chains.

Zhou, *Machine Learning*, figure 7.5: start from values that agree with the evidence, draw
each other variable in turn given all the rest, and count.  If tables hold 0 or 1, a chain may
be unable to reach all values, and the estimate is worthless.  R-hat shows that only if chains
stay in different places; so it is tried out where the states are few, and suspected elsewhere.

Secret: all chains take each step together, as rows of one array.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from nbspam.arrays import Booleans, Floats, Integers
from nbspam.errors import UsageError
from nbspam.models.network.graphs import ancestors, children, topological_order
from nbspam.models.network.network import Network
from nbspam.progress import tracked

CHAINS = 20
MAX_STATES = 1 << 20  # more are not tried out for being connected
_BURN_IN = 0.5  # share of each chain's steps before counting begins


@dataclass(frozen=True, eq=False)
class Sampled:
    """The estimate of all chains together.

    probability: P(targets given evidence), one axis per target; standard_error: of each
    probability, from the differences between chains; r_hat: 1 if the chains agree, above
    about 1.1 they have not converged (Gelman & Rubin 1992); n_samples: counted, all chains.
    """

    probability: Floats
    standard_error: Floats
    r_hat: float
    n_samples: int
    burn_in: int  # steps of each chain that are not counted
    caution: str = ""  # why the estimate may be worthless


def gibbs(
    network: Network,
    targets: Sequence[int],
    evidence: Mapping[int, int],
    n_samples: int,
    rng: np.random.Generator,
    chains: int = CHAINS,
) -> Sampled:
    """Return the estimate from at least n_samples samples, spread over several chains.

    targets: distinct variables; evidence: the value of each known variable.  Raises
    UsageError if there are too few samples, or the chains found no possible state.
    """
    if chains < 2 or n_samples < 2 * chains:
        raise UsageError(
            f"--gibbs {n_samples}: too few for {chains} chains; give {2 * max(chains, 2)} or more"
        )
    steps = -(-n_samples // chains)
    burn_in = int(np.ceil(steps * _BURN_IN / (1 - _BURN_IN)))
    state = _Chains(network, targets, evidence, chains, rng)
    shape = tuple(len(network.states[t]) for t in targets)
    # The halves of each chain are counted separately: if a chain still drifts, they differ.
    counts = np.zeros((2, chains, int(np.prod(shape))))
    for step in tracked(range(burn_in + steps), "steps"):
        state.step(rng)
        if step == burn_in and not state.are_possible():
            raise UsageError(
                "--gibbs: tables with 0 or 1 kept it from any state that agrees with the"
                " evidence; ask without --gibbs"
            )
        if step >= burn_in:
            value = np.zeros(chains, np.int64)
            for target, n in zip(targets, shape, strict=True):
                value = value * n + state.values[:, target]
            counts[2 * (step - burn_in) // steps, np.arange(chains), value] += 1
    by_chain = counts.sum(axis=0) / steps
    error = by_chain.std(axis=0, ddof=1) / np.sqrt(chains)
    return Sampled(
        by_chain.mean(axis=0).reshape(shape),
        error.reshape(shape),
        _r_hat(counts),
        chains * steps,
        burn_in,
        state.caution(),
    )


def _r_hat(counts: Floats) -> float:
    """Return the largest potential scale reduction of all values, from half chains.

    counts: (2, n_chains, n_values).  In a half chain, the indicator of a value has some
    mean p and the variance p (1 - p).
    """
    n = counts.sum(axis=2, keepdims=True)
    mean = (counts / n).reshape(-1, counts.shape[2])
    length = float(n.min())
    within = (mean * (1 - mean)).mean(axis=0) * length / max(length - 1, 1)
    between = mean.var(axis=0, ddof=1)
    ratio = np.divide(between, within, out=np.zeros_like(within), where=within > 0)
    ratio[(within <= 0) & (between > 0)] = np.inf
    return float(np.sqrt((length - 1) / length + ratio.max()))


class _Chains:
    """The current state of all chains; values: (n_chains, n_variables)."""

    def __init__(
        self,
        network: Network,
        targets: Sequence[int],
        evidence: Mapping[int, int],
        chains: int,
        rng: np.random.Generator,
    ) -> None:
        self.network = network
        self.children = children(network.parents)
        relevant = ancestors(network.parents, {*targets, *evidence})
        self.relevant = relevant
        self.free = [
            i for i in topological_order(network.parents) if i in relevant - evidence.keys()
        ]
        self.values: Integers = np.zeros((chains, len(network.names)), np.int64)
        for node, value in evidence.items():
            self.values[:, node] = value
        # Start values are drawn parents first, so that each is possible given its parents.
        for node in self.free:
            self.values[:, node] = _draw(self._given_parents(node), rng)

    def step(self, rng: np.random.Generator) -> None:
        """Draw every free variable once, given all others."""
        for node in self.free:
            weight = self._given_parents(node)
            for child in self.children[node]:
                if child in self.relevant:
                    weight = weight * self._of_child(node, child)
            self.values[:, node] = _draw(weight, rng)

    def are_possible(self) -> bool:
        """Return whether every chain is in a state of a probability above 0."""
        possible = np.ones(len(self.values), bool)
        for node in self.relevant:
            weight = self._given_parents(node)
            possible &= weight[np.arange(len(weight)), self.values[:, node]] > 0
        return bool(possible.all())

    def caution(self) -> str:
        """Return why a chain may miss possible states, or nothing if it cannot.

        A step changes one variable, so all possible states must be connected by such steps.
        """
        if all((self._known_factor(node) > 0).all() for node in self.relevant):
            return ""
        # A variable of one value needs no axis, and so MAX_STATES limits their number.
        lengths = self.network.cardinality
        axes = [node for node in sorted(self.free) if lengths[node] > 1]
        if prod(lengths[node] for node in axes) > MAX_STATES:
            return "the tables hold 0 or 1, and some values may never be reached"
        possible = np.ones([lengths[node] for node in axes], bool)
        for node in self.relevant:
            family = {*self.network.parents[node], node}
            shape = [lengths[n] if n in family else 1 for n in axes]
            possible &= (self._known_factor(node) > 0).reshape(shape)
        if _are_connected(possible):
            return ""
        return (
            "the tables hold 0 or 1, which keep a walk from reaching every possible state,"
            " so this estimate is worthless"
        )

    def _known_factor(self, node: int) -> Floats:
        """Return a node's factor given the evidence; its axes are the free nodes, ascending."""
        family = sorted((*self.network.parents[node], node))
        # In a network's factor, the axes are the parents, ascending, and then the node.
        factor = np.moveaxis(self.network.factor(node), -1, family.index(node))
        known = tuple(slice(None) if n in self.free else self.values[0, n] for n in family)
        return np.asarray(factor[known])

    def _given_parents(self, node: int) -> Floats:
        """Return P(value given parents) for all values, shape (n_chains, n_values)."""
        where = tuple(self.values[:, p] for p in self.network.parents[node])
        shape = len(self.values), len(self.network.states[node])
        return np.broadcast_to(self.network.factor(node)[where], shape)

    def _of_child(self, node: int, child: int) -> Floats:
        """Return P(the child's value given its parents) for each value of the node."""
        nodes = (*self.network.parents[child], child)
        values = np.arange(len(self.network.states[node]))[None]
        where = tuple(values if n == node else self.values[:, n, None] for n in nodes)
        return self.network.factor(child)[where]


def _are_connected(possible: Booleans) -> bool:
    """Return whether changes of one index lead from every possible state to every other."""
    reached = np.zeros_like(possible)
    reached.flat[possible.argmax()] = True
    n_reached = 0
    while n_reached < reached.sum():
        n_reached = int(reached.sum())
        for axis in range(possible.ndim):
            reached = possible & reached.any(axis=axis, keepdims=True)
    return n_reached == int(possible.sum())


def _draw(weight: Floats, rng: np.random.Generator) -> Integers:
    """Return a value for each row, drawn by weight; uniformly where all weights are 0."""
    total = weight.sum(axis=1, keepdims=True)
    weight = np.where(total > 0, weight, 1.0)
    edges = weight.cumsum(axis=1)
    mark = rng.random(len(weight)) * edges[:, -1]
    drawn: Integers = np.minimum((edges <= mark[:, None]).sum(axis=1), weight.shape[1] - 1)
    return drawn
