"""Networks in files, and questions to them in words.

Secret: that a model of a table, a model of tokens and a JSON file all hold a network.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from nbspam.arrays import Floats
from nbspam.errors import UsageError
from nbspam.models.network.graphs import separated
from nbspam.models.network.inference import query
from nbspam.models.network.network import Network, from_json
from nbspam.models.network.sampling import Sampled, gibbs
from nbspam.sources.files import read_json
from nbspam.store.open import load

_ABSENT, _PRESENT = "absent", "present"


@dataclass(frozen=True, slots=True)
class NamedNetwork:
    """A network, and where numbers were cut into its values, by variable."""

    network: Network
    cuts: Mapping[int, Sequence[float]]

    def value(self, node: int, text: str) -> int:
        """Return the value that a text names, or the interval a number is in."""
        if node in self.cuts and text not in self.network.states[node]:
            try:
                number = float(text)
            except ValueError:
                number = np.nan
            if np.isfinite(number):
                return int(np.searchsorted(np.array(self.cuts[node]), number))
        return self.network.state(node, text)


@dataclass(frozen=True, slots=True)
class Believed:
    """What a network says of its targets; probability: one axis a target."""

    targets: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]  # every combination, in the order of probability.ravel()
    probability: Floats
    log_evidence: float | None = None  # nats, where inference was exact
    sampled: Sampled | None = None


def read_network(path: str) -> NamedNetwork:
    """Return the network in a JSON file or model; raises InputError, UsageError."""
    if path.lower().endswith(".json"):
        return NamedNetwork(from_json(read_json(path), path), {})
    classifier: Any = load(path)
    model = getattr(classifier, "model", None)
    if not hasattr(model, "network"):
        raise UsageError(
            f"{path}: holds another kind of model; train one with: nbspam train --model network"
        )
    assert model is not None
    schema = getattr(classifier, "schema", None)
    if schema is None:
        vocabulary = classifier.table.vocabulary
        names = [vocabulary.text(j) for j in range(len(vocabulary))]
        states = [(_ABSENT, _PRESENT)] * len(names)
        network = model.network([*_unique(names), "class"], [*states, classifier.classes])
        return NamedNetwork(network, {})
    states = [tuple(c.value(k) for k in range(c.n_values)) for c in schema.columns]
    cuts = {j: c.cuts for j, c in enumerate(schema.columns) if c.cuts is not None}
    return NamedNetwork(model.network(schema.names, [*states, schema.classes]), cuts)


def _unique(names: Sequence[str]) -> list[str]:
    """Return the names, with a number behind those that another has before them."""
    seen = {"class": 1}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return unique


def evidence_of(named: NamedNetwork, words: Iterable[str]) -> dict[int, int]:
    """Return the values of variables that words such as A=x name; raises UsageError."""
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
) -> Believed:
    """Return P(targets given evidence), exactly, or from so many samples; raises UsageError."""
    network = named.network
    nodes = [network.index(name, "target") for name in targets]
    if len(set(nodes)) < len(nodes):
        raise UsageError(f"--target: {', '.join(targets)}; name each once")
    evidence = evidence_of(named, words)
    values = tuple(product(*(network.states[node] for node in nodes)))
    if n_samples is None:
        answer = query(network, nodes, evidence)
        return Believed(tuple(targets), values, answer.probability, answer.log_evidence)
    sampled = gibbs(network, nodes, evidence, n_samples, np.random.default_rng(seed))
    return Believed(tuple(targets), values, sampled.probability, sampled=sampled)


def independent(named: NamedNetwork, one: str, other: str, given: Iterable[str]) -> bool:
    """Return whether the graph makes two variables independent, given others.

    given: names, or words such as A=x, of which the value plays no part.
    """
    network = named.network
    a, b = network.index(one), network.index(other)
    known = {network.index(word.partition("=")[0], "evidence") for word in given}
    if a == b or {a, b} & known:
        raise UsageError(f"--independent {one} {other}: name two, neither among the evidence")
    return separated(network.parents, [a], [b], known)
