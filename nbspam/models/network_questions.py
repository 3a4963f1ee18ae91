"""Questions to a Bayesian network: P(targets given evidence), exact or sampled, and independence.

Gibbs sampling comes first; then words such as `colour=green` or `sugar=0.3`, which become
variables and values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from nbspam.arrays import LARGEST_COUNT, Booleans, Floats, Integers, checked_seed
from nbspam.errors import UsageError, check_number
from nbspam.models import graphs
from nbspam.models.network import Network, infer
from nbspam.printing import tracked

if TYPE_CHECKING:
    from nbspam.models.network import BayesianNetwork

# --- Gibbs sampling --------------------------------------------------------------------------

# Zhou, *Machine Learning*, figure 7.5: start from values that agree with the evidence, draw each
# other variable in turn given all the rest, and count.  If tables hold 0 or 1, a chain may be
# unable to reach all values, and the estimate is worthless.  R-hat shows that only if chains stay
# in different places; so where the states are few, `caution` tries out whether all can be reached.
# All chains take each step together, as rows of one array.

CHAINS = 20
MAX_STATES = 1 << 20  # more are not tried out for being connected
_BURN_IN = 0.5  # share of each chain's steps before counting begins


@dataclass(frozen=True, eq=False)
class GibbsEstimate:
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
) -> GibbsEstimate:
    """Return the estimate from at least n_samples samples, spread over the chains.

    targets: distinct variables; evidence: the value of each known variable.  Raises
    UsageError if there are too few samples, or the chains found no possible state.
    """
    check_number("--gibbs", n_samples, 2 * CHAINS, LARGEST_COUNT, whole=True)
    steps = -(-n_samples // CHAINS)
    burn_in = int(np.ceil(steps * _BURN_IN / (1 - _BURN_IN)))
    state = _Chains(network, targets, evidence, rng)
    shape = tuple(len(network.states[t]) for t in targets)
    # The halves of each chain are counted separately: if a chain still drifts, they differ.
    counts = np.zeros((2, CHAINS, prod(shape)))
    for step in tracked(range(burn_in + steps), "steps"):
        state.step(rng)
        if step == burn_in and not state.are_possible():
            raise UsageError(
                "--gibbs: tables with 0 or 1 kept it from any state that agrees with the"
                " evidence; ask without --gibbs"
            )
        if step >= burn_in:
            value = np.zeros(CHAINS, np.int64)
            for target, n in zip(targets, shape, strict=True):
                value = value * n + state.values[:, target]
            counts[2 * (step - burn_in) // steps, np.arange(CHAINS), value] += 1
    by_chain = counts.sum(axis=0) / steps
    error = by_chain.std(axis=0, ddof=1) / np.sqrt(CHAINS)
    return GibbsEstimate(
        by_chain.mean(axis=0).reshape(shape),
        error.reshape(shape),
        _r_hat(counts),
        CHAINS * steps,
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
        rng: np.random.Generator,
    ) -> None:
        self.network = network
        self.children = graphs.parents_of(graphs.arrows_of(network.parents).T)
        self.relevant = graphs.ancestors(network.parents, {*targets, *evidence})
        self.evidence, unknown = evidence, self.relevant - evidence.keys()
        self.free = [i for i in graphs.topological_order(network.parents) if i in unknown]
        self.values: Integers = np.zeros((CHAINS, len(network.names)), np.int64)
        for node, value in evidence.items():
            self.values[:, node] = value
        # Start values are drawn parents first, so that each is possible given its parents.
        for node in self.free:
            self.values[:, node] = _draw(self._given_parents(node), rng)

    def step(self, rng: np.random.Generator) -> None:
        """Draw every free variable once, given all others."""
        for node in self.free:
            # Logarithms, because the product over hundreds of children would underflow.
            with np.errstate(divide="ignore"):
                log = np.log(self._given_parents(node))
                for child in self.children[node]:
                    if child in self.relevant:
                        log = log + np.log(self._of_child(node, child))
            top = np.maximum(log.max(axis=1, keepdims=True), np.finfo(float).min)
            self.values[:, node] = _draw(np.exp(log - top), rng)

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
        factors = [self.network.factor_given(node, self.evidence) for node in self.relevant]
        if all((factor.table > 0).all() for factor in factors):
            return ""
        # A variable of one value needs no axis, and so MAX_STATES limits their number.
        lengths = self.network.cardinality
        axes = [node for node in sorted(self.free) if lengths[node] > 1]
        if prod(lengths[node] for node in axes) > MAX_STATES:
            return "the tables hold 0 or 1, and some values may never be reached"
        possible = np.ones([lengths[node] for node in axes], bool)
        for factor in factors:
            shape = [lengths[n] if n in factor.nodes else 1 for n in axes]
            possible &= (factor.table > 0).reshape(shape)
        if _are_connected(possible):
            return ""
        return (
            "the tables hold 0 or 1, which keep a walk from reaching every possible state,"
            " so this estimate is worthless"
        )

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


# --- questions in words ----------------------------------------------------------------------

_CLASS = "class"


@dataclass(frozen=True, slots=True)
class NamedNetwork:
    """A network, and the cut points of variables whose values are intervals of numbers."""

    network: Network
    cuts: Mapping[int, Sequence[float]] = field(default_factory=dict)  # by variable, ascending

    def value(self, node: int, text: str, what: str = "evidence") -> int:
        """Return the value that a text names, or whose interval holds its number.

        what: names the text in the error.  Raises UsageError.
        """
        if node in self.cuts and text not in self.network.states[node]:
            try:
                number = float(text)
            except ValueError:
                number = np.nan
            if np.isfinite(number):
                return int(np.searchsorted(np.array(self.cuts[node]), number))
        return self.network.state(node, text, what)

    def parted(self, word: str) -> tuple[str, str, str]:
        """Return the variable that a word such as A=x names, "=", and the value.

        A name may contain "=", too: of those that fit, it is the longest that leaves a value.
        """
        fitting = [name for name in self.network.names if f"{word}=".startswith(f"{name}=")]
        first = word.partition("=")[0]
        name = max(fitting, key=lambda each: (each != word, len(each)), default=first)
        rest = word.removeprefix(name)
        return name, rest[:1], rest[1:]


@dataclass(frozen=True, slots=True)
class Belief:
    """P(targets given evidence); probability: one axis per target."""

    targets: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]  # every combination, in the order of probability.ravel()
    probability: Floats
    log_evidence: float | None = None  # nats, if inference was exact
    sampled: GibbsEstimate | None = None


def network_of_tokens(
    model: BayesianNetwork, tokens: Sequence[str], classes: Sequence[str]
) -> NamedNetwork:
    """Return the network of a model of the presence of tokens; the class is called `class`."""
    states = [("absent", "present")] * len(tokens)
    return NamedNetwork(model.network([*_distinct(tokens), _CLASS], [*states, tuple(classes)]))


def _distinct(names: Sequence[str]) -> list[str]:
    """Return the names with a number appended to repetitions and to the name of the class."""
    given, taken, distinct = set(names), {_CLASS}, []
    for name in names:
        own, n = name, 1
        while own in taken or (n > 1 and own in given):
            n += 1
            own = f"{name}#{n}"
        taken.add(own)
        distinct.append(own)
    return distinct


def evidence_of(named: NamedNetwork, words: Iterable[str]) -> dict[int, int]:
    """Return the variables and values that words such as A=x name; raises UsageError."""
    evidence: dict[int, int] = {}
    for word in words:
        name, equals, value = named.parted(word)
        if not equals:
            raise UsageError(f"--evidence {word}: not NAME=VALUE; write it as --evidence A=x")
        node = named.network.index(name, "evidence")
        if node in evidence:
            raise UsageError(f"--evidence {word}: {name} has a value already; give one")
        evidence[node] = named.value(node, value)
    return evidence


def believe(
    named: NamedNetwork,
    targets: Sequence[str],
    words: Iterable[str],
    n_samples: int | None = None,
    seed: int = 0,
) -> Belief:
    """Return P(targets given evidence), exact or sampled; raises UsageError.

    targets: names, or words such as A=x, which ask for that value only.  words: evidence such
    as A=x; n_samples: of Gibbs sampling, None for exact inference.
    """
    network = named.network
    asked = [_asked(named, word) for word in targets]
    nodes = [node for node, _ in asked]
    if len(set(nodes)) < len(nodes):
        raise UsageError(f"--target: {', '.join(targets)}; name each once")
    evidence = evidence_of(named, words)
    names = tuple(network.names[node] for node in nodes)
    states = [network.states[node][value] for node, value in asked]
    kept = tuple(value for _, value in asked)
    if n_samples is None:
        probability, log_evidence = infer(network, nodes, evidence)
        return Belief(names, tuple(product(*states)), probability[kept], log_evidence)
    sampled = gibbs(network, nodes, evidence, n_samples, np.random.default_rng(checked_seed(seed)))
    sampled = replace(sampled, standard_error=sampled.standard_error[kept])
    return Belief(names, tuple(product(*states)), sampled.probability[kept], sampled=sampled)


def _asked(named: NamedNetwork, word: str) -> tuple[int, slice]:
    """Return the variable of a word such as A or A=x, and which of its values are asked for."""
    name, equals, value = named.parted(word)
    node = named.network.index(name, "target")
    if not equals:
        return node, slice(None)
    place = named.value(node, value, "target")
    return node, slice(place, place + 1)


def independent(named: NamedNetwork, one: str, other: str, given: Iterable[str]) -> bool:
    """Return whether the graph makes two variables independent given others.

    given: names, or words such as A=x, whose values are ignored.  Raises UsageError.
    """
    network = named.network
    a, b = network.index(one), network.index(other)
    known = {network.index(named.parted(word)[0], "evidence") for word in given}
    if a == b or {a, b} & known:
        raise UsageError(
            f"--independent {one} {other}: not two variables without evidence; name two others"
        )
    return graphs.separated(network.parents, [a], [b], known)
