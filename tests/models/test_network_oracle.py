"""Networks against a second implementation: sums over all joint values, in fractions.

The oracle shares nothing with the package but the JSON form of a network: it knows neither
arrays nor elimination, neither moral graphs nor caches, and follows the definitions.
"""

import math
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.errors import UsageError
from nbspam.models import BayesianNetwork
from nbspam.models.network.network import Network, from_json, infer
from nbspam.models.network.questions import gibbs
from nbspam.models.network.structure import SCORES, FamilyScores, separated
from support import examples

# --- the oracle ------------------------------------------------------------------------------


def joint(network):
    """Return P of every combination of values: {(value, ...): fraction}."""
    variables = network["variables"]
    place = {v["name"]: i for i, v in enumerate(variables)}
    table = {}
    for values in product(*(v["values"] for v in variables)):
        p = Fraction(1)
        for variable, value in zip(variables, values, strict=True):
            row = 0
            for parent in variable["parents"]:
                states = variables[place[parent]]["values"]
                row = row * len(states) + states.index(values[place[parent]])
            p *= variable["table"][row][variable["values"].index(value)]
        table[values] = p
    return table


def marginal(table, known):
    """Return the probability that some variables have these values; known: {index: value}."""
    rows = (p for values, p in table.items() if all(values[i] == v for i, v in known.items()))
    return sum(rows, Fraction(0))


def trails(parents, a, b):
    """Yield every path from a to b that visits no node twice, whatever its arrows' directions."""
    near = {i: set(of) for i, of in enumerate(parents)}
    for i, of in enumerate(parents):
        for p in of:
            near[p].add(i)
    paths = [[a]]
    while paths:
        path = paths.pop()
        if path[-1] == b:
            yield path
            continue
        paths += [[*path, n] for n in near[path[-1]] if n not in path]


def descends(parents, node, ancestor):
    return node == ancestor or any(descends(parents, p, ancestor) for p in parents[node])


def is_open(parents, path, given):
    """Return whether no node of a path blocks it (Pearl's definition of d-separation)."""
    for before, node, after in zip(path, path[1:], path[2:], strict=False):
        if before in parents[node] and after in parents[node]:
            if not any(descends(parents, g, node) for g in given):
                return False
        elif node in given:
            return False
    return True


def counted(rows, child, parents):
    """Return how often a child has each value with each values of its parents."""
    counts = defaultdict(Counter)
    for row in rows:
        counts[tuple(row[p] for p in parents)][row[child]] += 1
    return counts


def score(rows, sizes, parents, name):
    """Return the cost of a structure, Zhou's eq. 7.28 to 7.31, with MDL's cost of the arrows."""
    likelihood = n_parameters = arrows = 0
    for child, of in enumerate(parents):
        for values in counted(rows, child, of).values():
            likelihood += sum(c * math.log(c / values.total()) for c in values.values())
        n_parameters += (sizes[child] - 1) * math.prod(sizes[p] for p in of)
        arrows += math.log(len(sizes)) + math.log(math.comb(len(sizes) - 1, len(of)))
    cost = {"likelihood": 0, "aic": 1}.get(name, math.log(len(rows)) / 2)
    return n_parameters * cost + (arrows if name == "mdl" else 0) - likelihood


@st.composite
def graphs(draw, low=2, high=5):
    """Return the parents of each node of an acyclic graph, at most three each."""
    n = draw(st.integers(low, high))
    order = draw(st.permutations(range(n)))
    parents = [()] * n
    for place, node in enumerate(order):
        of = draw(st.sets(st.sampled_from(order[:place]), max_size=3)) if place else ()
        parents[node] = tuple(sorted(of))
    return tuple(parents)


@st.composite
def networks(draw):
    """Return a network as JSON with tables of fractions, among them 0 and 1."""
    parents = draw(graphs())
    values = [list("abc"[: draw(st.integers(2, 3))]) for _ in parents]
    variables = []
    for child, of in enumerate(parents):
        listed = draw(st.permutations(of))  # JSON may list parents in any order
        table = []
        for _ in range(math.prod(len(values[p]) for p in of)):
            weight = draw(st.lists(st.integers(0, 4), min_size=3, max_size=3).filter(any))
            weight = weight[: len(values[child])] if any(weight[:2]) else [1] * len(values[child])
            table.append([Fraction(w, sum(weight)) for w in weight])
        names = [f"x{p}" for p in listed]
        row = {"name": f"x{child}", "values": values[child], "parents": names, "table": table}
        variables.append(row)
    return {"variables": variables}


@st.composite
def samples(draw, low=2, high=4):
    """Return rows of codes over some columns, the numbers of values, and a graph over them."""
    parents = draw(graphs(low, high))
    sizes = [draw(st.integers(2, 3)) for _ in parents]
    row = st.tuples(*(st.integers(0, size - 1) for size in sizes))
    return draw(st.lists(row, min_size=2, max_size=12)), sizes, parents


def with_floats(network):
    rows = [
        {**v, "table": [[float(p) for p in r] for r in v["table"]]} for v in network["variables"]
    ]
    return from_json({"variables": rows})


@given(networks(), st.data())
@examples(60)
def test_answers_are_sums_over_all_joint_values(network, data):
    table, variables = joint(network), network["variables"]
    assert sum(table.values()) == 1
    nodes = data.draw(st.permutations(range(len(variables))))
    n_targets = data.draw(st.integers(1, 3))
    targets, rest = nodes[:n_targets], nodes[n_targets:]
    known = {i: data.draw(st.sampled_from(variables[i]["values"])) for i in rest[:2]}
    evidence = {i: variables[i]["values"].index(value) for i, value in known.items()}
    of_evidence = marginal(table, known)

    if of_evidence == 0:
        with pytest.raises(UsageError, match="evidence: impossible"):
            infer(with_floats(network), targets, evidence)
        return
    answer = infer(with_floats(network), targets, evidence)
    assert math.exp(answer.log_evidence) == pytest.approx(float(of_evidence))
    for place in np.ndindex(answer.probability.shape):
        asked = {t: variables[t]["values"][k] for t, k in zip(targets, place, strict=True)}
        exact = marginal(table, known | asked) / of_evidence
        assert answer.probability[place] == pytest.approx(float(exact), abs=1e-12)


@given(graphs(2, 6), st.data())
@examples(100)
def test_nodes_are_separated_if_every_trail_between_them_is_blocked(parents, data):
    a, b, *others = data.draw(st.permutations(range(len(parents))))
    given = data.draw(st.sets(st.sampled_from(others))) if others else set()
    blocked = not any(is_open(parents, path, given) for path in trails(parents, a, b))

    assert separated(parents, [a], [b], given) == blocked


@pytest.mark.parametrize("name", SCORES)
@given(samples())
@examples(20)
def test_scores_follow_their_definition(name, sample):
    rows, sizes, parents = sample
    scores = FamilyScores(np.array(rows), sizes, name)
    assert scores.total(parents) == pytest.approx(score(rows, sizes, parents, name))


@given(samples(), st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(2)]), st.data())
@examples(60)
def test_the_tables_and_answers_of_a_given_structure_follow_from_counts(sample, alpha, data):
    """The class is any of the variables: it may have parents, children, both or neither."""
    rows, sizes, parents = sample
    *columns, label = range(len(sizes))
    exact = []
    for child, of in enumerate(parents):
        counts, table = counted(rows, child, of), []
        for key in product(*(range(sizes[p]) for p in of)):
            n = [counts[key][value] + alpha for value in range(sizes[child])]
            table.append([Fraction(c) / sum(n) if sum(n) else Fraction(1, len(n)) for c in n])
        names = [f"x{p}" for p in of]
        values = list(range(sizes[child]))
        exact.append({"name": f"x{child}", "values": values, "parents": names, "table": table})
    X, y = np.array(rows, float)[:, columns], np.array(rows)[:, label]
    how = {"alpha": float(alpha), "structure": list(map(list, parents))}
    model = BayesianNetwork(levels=[sizes[c] for c in columns], **how)
    model.partial_fit(X, y, classes=range(sizes[label]))

    learned = model.network()
    assert learned.parents == parents
    for table, variable in zip(learned.tables, exact, strict=True):
        np.testing.assert_allclose(table, np.array(variable["table"], float), rtol=1e-12)

    probability = joint({"variables": exact})
    known = data.draw(st.sets(st.sampled_from(columns)))
    asked = {c: data.draw(st.integers(0, sizes[c] - 1)) for c in known}
    row = np.array([[asked.get(c, np.nan) for c in columns]])
    for evidence, found in ((asked, model.predict_joint_log_proba(row)[0]),
                            ({}, model.class_log_prior_)):  # fmt: skip
        of = [float(marginal(probability, evidence | {label: k})) for k in range(sizes[label])]
        np.testing.assert_allclose(np.exp(found), of, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(("kept", "caution"), [(0.5, ""), (1.0, "may never be reached")])
def test_gibbs_walks_over_more_variables_than_an_array_has_axes(kept, caution):
    """In a chain of 70 variables, each has the value of the one before with probability `kept`."""
    names = tuple(f"v{i}" for i in range(70))
    parents = ((), *((i,) for i in range(69)))
    table = np.array([[kept, 1 - kept], [1 - kept, kept]])
    tables = (np.array([[0.5, 0.5]]), *[table] * 69)
    network = Network(names, (("0", "1"),) * 70, parents, tables)
    sampled = gibbs(network, [69], {}, 400, np.random.default_rng(0))
    assert sampled.caution.endswith(caution)
    assert bool(sampled.caution) == bool(caution)
