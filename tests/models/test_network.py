"""Bayesian networks against a second implementation, the textbook's figures, and all graphs.

The oracle sums over all joint values, in fractions.  It shares nothing with the package but the
JSON form of a network: it knows neither arrays nor elimination, neither moral graphs nor caches,
and follows the definitions.
"""

import math
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import product

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.errors import UsageError
from nbspam.models import BayesianNetwork, graphs
from nbspam.models.network import Network, from_json, infer, to_json
from nbspam.models.network_questions import gibbs, network_of_tokens
from nbspam.printing import watched
from support import all_graphs, examples

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
def acyclic(draw, low=2, high=5):
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
    parents = draw(acyclic())
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
    parents = draw(acyclic(low, high))
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
    probability, log_evidence = infer(with_floats(network), targets, evidence)
    assert math.exp(log_evidence) == pytest.approx(float(of_evidence))
    for place in np.ndindex(probability.shape):
        asked = {t: variables[t]["values"][k] for t, k in zip(targets, place, strict=True)}
        exact = marginal(table, known | asked) / of_evidence
        assert probability[place] == pytest.approx(float(exact), abs=1e-12)


@given(acyclic(2, 6), st.data())
@examples(100)
def test_nodes_are_separated_as_networkx_says(parents, data):
    a, b, *others = data.draw(st.permutations(range(len(parents))))
    given = data.draw(st.sets(st.sampled_from(others))) if others else set()
    graph = networkx.DiGraph((parent, child) for child, of in enumerate(parents) for parent in of)
    graph.add_nodes_from(range(len(parents)))
    expected = networkx.is_d_separator(graph, {a}, {b}, given)
    assert graphs.separated(parents, [a], [b], given) == expected


@pytest.mark.parametrize("name", graphs.SCORES)
@given(samples())
@examples(20)
def test_scores_follow_their_definition(name, sample):
    rows, sizes, parents = sample
    scores = graphs.FamilyScores(np.array(rows), sizes, name)
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
    parents = ((), *((i,) for i in range(69)))
    tables = [[0.5, 0.5]], *[[[kept, 1 - kept], [1 - kept, kept]]] * 69
    network = network_of(parents, tables)
    sampled = gibbs(network, [69], {}, 400, np.random.default_rng(0))
    assert sampled.caution.endswith(caution)
    assert bool(sampled.caution) == bool(caution)


# --- networks and data --------------------------------------------------------------


some = examples(25)
seeds = st.integers(0, 2**32 - 1)
# Zhou, figure 7.2: good melon, sweetness; sound, colour, root.  The book's x1 to x5.
MELON = ((), (), (0,), (0, 1), (1,))


def random_network(seed):
    """Return a network over MELON's graph, whose tables are away from 0 and 1."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, len(MELON)).tolist()
    tables = [
        rng.dirichlet(np.full(size, 3.0), math.prod(sizes[p] for p in of))
        for size, of in zip(sizes, MELON, strict=True)
    ]
    return network_of(MELON, tables)


def network_of(parents, tables):
    """Return a network of variables x0, x1, …, whose values are 0, 1, …"""
    names = tuple(f"x{i}" for i in range(len(parents)))
    states = tuple(tuple(map(str, range(np.shape(table)[1]))) for table in tables)
    return Network(names, states, parents, tuple(map(np.array, tables)))


def dependent_codes(rng, n_rows, n_columns):
    """Return random codes 0 to 2; half of each column repeats the one before."""
    codes = rng.integers(0, 3, (n_rows, n_columns))
    for column in range(1, n_columns):
        same = rng.random(n_rows) < 0.5
        codes[same, column] = codes[same, column - 1]
    return codes


# --- graphs ------------------------------------------------------------------------------


def test_the_five_independences_of_figure_7_4_and_the_v_structure():
    for a, b, c in ((2, 3, 0), (3, 4, 1), (2, 1, 0), (2, 4, 0), (2, 4, 1)):
        assert graphs.separated(MELON, [a], [b], [c])
    assert graphs.ancestors(MELON, [3]) == {0, 1, 3}
    assert graphs.parents_of(graphs.arrows_of(MELON).T) == ((2, 3), (3, 4), (), (), ())
    assert graphs.topological_order(((1,), (2,), ())) == [2, 1, 0]
    with pytest.raises(UsageError, match="network: its arrows lead round in a circle"):
        graphs.topological_order(((1,), (0,), ()))
    assert graphs.separated(MELON, [0], [1])  # eq. 7.27
    assert not graphs.separated(MELON, [0], [1], [3])
    assert not graphs.separated(MELON, [2], [4], [3])
    assert (0, 1) in graphs.moral_graph(MELON)
    assert len(graphs.moral_graph(MELON)) == 5


def test_dot_has_every_arrow_and_moral_edge():
    names = ["good", 'swe"et', "sound", "colour", "ro\x1b[2J\not"]
    dot = graphs.to_dot(MELON, names)
    moral = graphs.to_dot(MELON, names, moral=True)

    assert dot.startswith("digraph network {")
    assert dot.count("->") == 4
    assert '  "swe\\"et" -> "colour";' in dot
    assert moral.count("--") == 5
    assert '  "good" -- "swe\\"et";' in moral
    assert '  "ro\\\\x1b[2J\\\\not";' in dot


def test_a_weight_of_two_is_the_row_twice_and_incomplete_families_are_not_counted():
    codes = np.array([[0, 1], [1, 1], [-1, 0], [1, -1]])
    twice = graphs.FamilyScores(np.repeat(codes[:2], 2, axis=0), (2, 2))
    weighted = graphs.FamilyScores(codes[:2], (2, 2), weight=np.array([2.0, 2.0]))
    assert twice.total(((1,), ())) == weighted.total(((1,), ()))
    assert graphs.family_counts(codes, (2, 2), 1, (0,)).tolist() == [[0, 1], [0, 1]]
    scores = graphs.FamilyScores(codes, (2, 2))  # where its parent is known, column 1 is always 1
    assert scores.log_likelihood(1, (0,)) == pytest.approx(2 * math.log(2 / 3) + math.log(1 / 3))


# --- search ------------------------------------------------------------------------------


@given(seeds)
@examples(10)
def test_hill_climbing_finds_the_best_of_all_graphs_of_three_nodes(seed):
    rng = np.random.default_rng(seed)
    scores = graphs.FamilyScores(dependent_codes(rng, 60, 3), [3] * 3, "aic")

    best = min(map(scores.total, all_graphs(3)))
    for start in (((), (), ()), ((), (0,), (0,)), graphs.tree_start(scores)):
        assert scores.total(graphs.hill_climb(scores, start)) == pytest.approx(best)


@given(seeds, acyclic())
@some
def test_climbing_never_worsens_its_start_nor_makes_a_cycle(seed, start):
    n, most = len(start), max(2, *map(len, start))
    codes = dependent_codes(np.random.default_rng(seed), 50, n)
    scores = graphs.FamilyScores(codes, [3] * n)
    end = graphs.hill_climb(scores, start, max_parents=most)

    assert scores.total(end) <= scores.total(start) + 1e-9
    assert len(graphs.topological_order(end)) == n
    assert max(map(len, end)) <= most


def test_huge_tables_are_avoided_unless_max_parents_asks_for_them():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 200, (300, 5))
    codes[:, 1] = codes[:, 0]
    scores = graphs.FamilyScores(codes, [200] * 5, "likelihood")

    found = graphs.hill_climb(scores, ((),) * 5)
    assert max(map(len, found)) == 1
    with pytest.raises(UsageError, match=r"tables of 3 parents need 11.9 GiB"):
        graphs.hill_climb(scores, ((),) * 5, max_parents=3)


def test_the_columns_of_a_wide_table_are_watched():
    watched_loops = []

    def watch(things, what, extent):
        passed = [*things]
        weights = map(extent.weight or (lambda _: 1), passed)
        watched_loops.append((what, sum(weights), extent.total()))
        yield from passed

    scores = graphs.FamilyScores(np.zeros((4, 5), np.int64), [2] * 5, "likelihood")
    with watched(watch):
        graphs.hill_climb(scores, graphs.tree_start(scores))
    assert watched_loops == [("columns", 10, 10), ("columns", 5, 5)]


@given(seeds)
@some
def test_the_tree_start_is_the_most_likely_tree(seed):
    codes = np.random.default_rng(seed).integers(0, 3, (30, 4))
    scores = graphs.FamilyScores(codes, [3] * 4, "likelihood")
    trees = [graph for graph in all_graphs(4) if sorted(map(len, graph)) == [0, 1, 1, 1]]
    best = min(map(scores.total, trees))
    assert scores.total(graphs.tree_start(scores)) == pytest.approx(best)

    # Under the target, which is the parent of all: a tree of the three others.
    under = graphs.tree_start(scores, target=2)
    assert under[2] == ()
    assert sorted(map(len, under)) == [0, 1, 2, 2]
    rooted = [
        tuple(() if i == 2 else tuple(sorted({2, *of})) for i, of in enumerate(graph))
        for graph in all_graphs(4)
        if graph[2] == ()
    ]
    best = min(scores.total(g) for g in rooted if sorted(map(len, g)) == [0, 1, 2, 2])
    assert scores.total(under) == pytest.approx(best)
    alone = graphs.FamilyScores(np.zeros((2, 1), int), (2,))
    assert graphs.tree_start(alone, target=0) == ((),)
    # Rows that lack a column count neither for its edges nor against them.
    rows = np.array([*product([0, 1], repeat=5)])
    a, b, _, y, is_known = rows.T
    weight = 50 * np.abs(1 - b - (0.02 + 0.3 * a + 0.6 * y))
    rows[is_known == 0, 0] = -1
    gaps = graphs.FamilyScores(rows[:, :4], (2,) * 4, weight=weight)
    assert graphs.tree_start(gaps, target=3)[1] == (0, 3)
    # With one parent for each, the class, it is naive.
    models = (BayesianNetwork(climb=False, max_parents=n) for n in (1, 2))
    fitted = [model.fit(codes[:, :3] > 0, codes[:, 3]) for model in models]
    assert [max(map(len, model.parents_)) for model in fitted] == [1, 2]


# --- inference ---------------------------------------------------------------------------


def test_evidence_that_contradicts_itself_does_not_underflow():
    """A thousand values are for one value of their cause, and as many for the other."""
    given_cause = [[0.9, 0.1], [0.1, 0.9]]
    network = network_of(((), *[(0,)] * 2000), [[[0.75, 0.25]], *[given_cause] * 2000])
    evidence = {child: int(child > 1000) for child in range(1, 2001)}
    probability, log_evidence = infer(network, [0], evidence)
    assert probability == pytest.approx([0.75, 0.25])
    assert log_evidence == pytest.approx(1000 * math.log(0.09))
    sampled = gibbs(network, [0], evidence, 400, np.random.default_rng(0))
    assert sampled.probability == pytest.approx(probability, abs=0.1)
    del evidence[1]  # so that the cause is 1 by odds of .25 * .9 to .75 * .1, and is summed out
    assert infer(network, [1], evidence)[0] == pytest.approx([0.3, 0.7])


def test_queries_without_an_answer_are_refused():
    sure = network_of(((), (0,)), [[[1, 0]], [[1, 0], [0, 1]]])
    with pytest.raises(UsageError, match="target 'x1': it is among the evidence"):
        infer(sure, [1], {1: 0})
    for n, size in ((26, "0.5"), (2000, "inf")):  # 2 ** 2000 is beyond all floats
        independent = network_of(((),) * n, [[[0.5, 0.5]]] * n)
        with pytest.raises(UsageError, match=f"{size} GiB, .* allowed; sample instead, with"):
            infer(independent, range(n), {})
        with pytest.raises(UsageError, match=f"tables of {n} parents need .*; take fewer, by"):
            graphs.check_family([2] * (n + 1), n, tuple(range(n)))


# --- sampling ----------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "n_targets"), [(0, 1), (1, 1), (2, 1), (3, 2)])
def test_gibbs_agrees_with_elimination_within_its_standard_error(seed, n_targets):
    rng = np.random.default_rng(seed)
    network = random_network(seed + 100)
    known, *targets = rng.choice(len(network.names), n_targets + 1, replace=False).tolist()
    exact, _ = infer(network, targets, {known: 1})
    sampled = gibbs(network, targets, {known: 1}, 8000, rng)

    assert sampled.probability.sum() == pytest.approx(1)
    assert (np.abs(sampled.probability - exact) < 5 * sampled.standard_error + 1e-12).all()
    assert sampled.standard_error.max() < 0.02
    assert sampled.r_hat < 1.1
    assert sampled.n_samples == 8000


def test_gibbs_may_begin_where_the_evidence_is_impossible():
    causes, neither = [[0.5, 0.5]], [[0, 1], [1, 0], [1, 0], [1, 0]]
    network = network_of(((), (), (0, 1)), [causes, causes, neither])
    sampled = gibbs(network, [0], {2: 1}, 400, np.random.default_rng(0))
    assert sampled.probability.tolist() == [1, 0]


def test_the_same_seed_gives_the_same_samples_and_r_hat_tells_chains_that_are_stuck():
    stuck = network_of(((), (0,)), [[[0.5, 0.5]], [[1, 0], [0, 1]]])
    assert gibbs(stuck, [1], {}, 2000, np.random.default_rng(0)).r_hat > 1.1
    one, two, other = (
        gibbs(random_network(7), [0], {}, 400, np.random.default_rng(seed)) for seed in (5, 5, 6)
    )
    assert (one.probability == two.probability).all()
    assert (one.probability != other.probability).any()
    assert gibbs(random_network(1), [0], {}, 40, np.random.default_rng(0)).n_samples == 40
    with pytest.raises(UsageError, match="--gibbs: 39 is not a whole number from 40 to 1,0"):
        gibbs(random_network(1), [0], {}, 39, np.random.default_rng(0))


# --- the network as a value --------------------------------------------------------------


@given(networks())
@some
def test_json_restores_the_network_also_with_parents_in_another_order(network):
    network = with_floats(network)
    data = to_json(network)
    again = from_json(data)

    assert again.parents == network.parents
    assert all((a == b).all() for a, b in zip(again.tables, network.tables, strict=True))
    for i, row in enumerate(data["variables"]):
        of = row["parents"]
        cube = network.factor(i)
        row["parents"] = of[::-1]
        turned = cube.transpose([*reversed(range(len(of))), len(of)])
        row["table"] = turned.reshape(network.tables[i].shape).tolist()
    turned = from_json(data)
    assert all((a == b).all() for a, b in zip(turned.tables, network.tables, strict=True))


ROW = {"name": "a", "values": ["0", "1"], "parents": [], "table": [[0.5, 0.5]]}


@pytest.mark.parametrize(("rows", "words"), [
    ([{"name": "a"}], "not a network"),
    ([ROW, ROW], "variables: a name is missing or there twice"),
    ([], "variables: a name is missing or there twice"),
    ([{**ROW, "values": ["0", "0"]}], "a: a name is missing or there twice"),
    ([{**ROW, "parents": ["b"]}], "parents of a: b"),
    ([{**ROW, "table": [[0.5, 0.6]]}], "table of a is not 1 rows of 2 probabilities"),
    ([{**ROW, "table": [0.5, 0.5]}], "table of a is not"),
    ([{**ROW, "table": [["x", "y"]]}], "not a network"),
    ([{**ROW, "table": [[10**400, 0]]}], "not a network"),
    ([{**ROW, "parents": ["a"]}], "circle"),
])  # fmt: skip
def test_an_invalid_document_is_refused_with_the_reason(rows, words):
    with pytest.raises(UsageError, match=words):
        from_json({"variables": rows})


def test_counts_beyond_the_limit_of_memory_are_refused_with_their_size():
    most = graphs.MAX_CELLS
    assert graphs.check_family((most,), 0, ()) == (1, most)
    with pytest.raises(UsageError, match=r"need 1.0 GiB, more than the 0.5 GiB allowed; take"):
        graphs.check_family((2 * most,), 0, ())
    with pytest.raises(UsageError, match=r"tables of 2 parents need 4\.5 GiB"):
        graphs.family_counts(np.zeros((1, 3), int), (20, 10_000, 3_000), 0, (1, 2))
    for how in ({"start": "empty", "max_parents": 3}, {"structure": [[1, 2, 3], *[[]] * 4]}):
        model = BayesianNetwork(levels=[500] * 4, **how)
        with pytest.raises(UsageError, match=r"3 parents need 465.7 GiB, more than the 0.5"):
            model.fit([[0, 1, 2, 3], [1, 1, 2, 3]], [0, 1])


def test_the_graph_is_searched_again_whenever_rows_are_learnt_or_unlearnt():
    rng = np.random.default_rng(1)
    first = rng.integers(0, 2, 400)
    X = np.stack([first, first ^ (rng.random(400) < 0.1)], axis=1)
    y = rng.integers(0, 2, 400)
    model = BayesianNetwork(levels=[2, 2], start="empty")
    few = model.partial_fit(X[:1], y[:1], classes=[0, 1]).parents_
    all_of_them = model.partial_fit(X[1:], y[1:]).parents_

    assert few == ((), (), ())
    assert sum(map(len, all_of_them)) == 1
    assert model.unlearn(X[1:], y[1:]).parents_ == few
    rows = [[1, 1, 1], [1, 1, 1], [1, 0, 1]]  # rounding errors of huge weights gain nothing
    BayesianNetwork(class_parents=True).fit(rows, [1, 1, 0], [1e20] * 3)


@pytest.mark.parametrize(("how", "words"), [
    ({"start": "best"}, "start: 'best' is unknown; choose from tree, naive, empty"),
    ({"criterion": "r2"}, "criterion: 'r2' is unknown"),
    ({"max_parents": 0}, "max_parents: 0 is not a whole number from 1 up"),
])  # fmt: skip
def test_invalid_parameters_are_refused(how, words):
    with pytest.raises(UsageError, match=words):
        BayesianNetwork(**how).fit([[0, 1], [1, 2]], [0, 1])
    model = BayesianNetwork().fit([[0, 1], [1, 2]], [0, 1]).set_params(**how)
    with pytest.raises(UsageError, match=words):
        model.partial_fit([[0, 1], [1, 2]], [0, 1])
    assert model.class_count_.tolist() == [1, 1]


def test_equal_tokens_and_a_token_called_class_get_distinct_names():
    model = BayesianNetwork(climb=False).fit([[0, 1, 1], [1, 0, 1]], ["ham", "spam"])
    network = network_of_tokens(model, ["free", "free", "free#2"], ["ham", "spam"]).network
    assert network.names == ("free", "free#3", "free#2", "class")
    network = network_of_tokens(model, ["class", "free", "free"], ["ham", "spam"]).network
    assert network.names == ("class#2", "free", "free#2", "class")
    assert network.states == (("absent", "present"),) * 3 + (("ham", "spam"),)
