"""Questions to a Bayesian network in words: P(targets given evidence), and independence.

Secret: how words such as `colour=green` or `sugar=0.3` become variables and values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from nbspam.arrays import Floats
from nbspam.errors import UsageError
from nbspam.models.network.graphs import separated
from nbspam.models.network.inference import query
from nbspam.models.network.network import Network
from nbspam.models.network.sampling import Sampled, gibbs

if TYPE_CHECKING:
    from nbspam.models.network.estimator import BayesianNetwork

_ABSENT, _PRESENT = "absent", "present"
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


@dataclass(frozen=True, slots=True)
class Belief:
    """P(targets given evidence); probability: one axis per target."""

    targets: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]  # every combination, in the order of probability.ravel()
    probability: Floats
    log_evidence: float | None = None  # nats, if inference was exact
    sampled: Sampled | None = None


def network_of_tokens(
    model: BayesianNetwork, tokens: Sequence[str], classes: Sequence[str]
) -> NamedNetwork:
    """Return the network of a model of the presence of tokens; the class is called `class`."""
    states = [(_ABSENT, _PRESENT)] * len(tokens)
    return NamedNetwork(model.network([*_distinct(tokens), _CLASS], [*states, tuple(classes)]))


def _distinct(names: Sequence[str]) -> list[str]:
    """Return the names with a number appended to repetitions and to the name of the class."""
    seen = {_CLASS: 1}
    distinct = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        distinct.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return distinct


def evidence_of(named: NamedNetwork, words: Iterable[str]) -> dict[int, int]:
    """Return the variables and values that words such as A=x name; raises UsageError."""
    evidence: dict[int, int] = {}
    for word in words:
        name, equals, value = word.partition("=")
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
        answer = query(network, nodes, evidence)
        probability = answer.probability[kept]
        return Belief(names, tuple(product(*states)), probability, answer.log_evidence)
    sampled = gibbs(network, nodes, evidence, n_samples, np.random.default_rng(seed))
    sampled = replace(sampled, standard_error=sampled.standard_error[kept])
    return Belief(names, tuple(product(*states)), sampled.probability[kept], sampled=sampled)


def _asked(named: NamedNetwork, word: str) -> tuple[int, slice]:
    """Return the variable of a word such as A or A=x, and which of its values are asked for."""
    name, equals, value = word.partition("=")
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
    known = {network.index(word.partition("=")[0], "evidence") for word in given}
    if a == b or {a, b} & known:
        raise UsageError(
            f"--independent {one} {other}: name two variables, neither among the evidence"
        )
    return separated(network.parents, [a], [b], known)
