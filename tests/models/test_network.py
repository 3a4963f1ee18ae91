"""Bayesian networks agree with brute force over all joint values and the textbook's figures."""

from contextlib import suppress
from functools import cache
from itertools import compress, product
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.errors import UsageError
from nbspam.models import BayesianNetwork
from nbspam.models.network import structure
from nbspam.models.network.network import Network, from_json, infer, to_json
from nbspam.models.network.questions import gibbs, network_of_tokens
from support import examples

some = examples(25)
seeds = st.integers(0, 2**32 - 1)
# Zhou, figure 7.2: good melon, sweetness; sound, colour, root.  The book's x1 to x5.
MELON = ((), (), (0,), (0, 1), (1,))


def random_parents(rng, n, most=3):
    """Return a random acyclic graph."""
    order = rng.permutation(n)
    parents = [()] * n
    for place, node in enumerate(order):
        k = rng.integers(0, min(most, place) + 1)
        parents[node] = tuple(sorted(rng.choice(order[:place], k, replace=False).tolist()))
    return tuple(parents)


def random_network(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    parents = random_parents(rng, n)
    states = tuple(tuple("abc"[: rng.integers(2, 4)]) for _ in range(n))
    tables = tuple(
        rng.dirichlet(np.ones(len(states[i])), int(np.prod([len(states[p]) for p in parents[i]])))
        for i in range(n)
    )
    return Network(tuple(f"x{i}" for i in range(n)), states, parents, tables)


def variable(name, values, parents, *table):
    return {"name": name, "values": [*values], "parents": [*parents], "table": [*table]}


def uniform(names, parents):
    """Return the network of uniform tables: {name: values}, {name: parents}."""
    rows = []
    for name, values in names.items():
        of = parents.get(name, ())
        n_rows = int(np.prod([len(names[parent]) for parent in of]))
        rows.append(variable(name, values, of, *n_rows * [len(values) * [1 / len(values)]]))
    return from_json({"variables": rows})


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
        assert structure.separated(MELON, [a], [b], [c])
    assert structure.ancestors(MELON, [3]) == {0, 1, 3}
    assert structure.children(MELON) == [[2, 3], [3, 4], [], [], []]
    assert structure.topological_order(((1,), (2,), ())) == [2, 1, 0]
    with pytest.raises(UsageError, match=r"\[0, 1\] are in a cycle"):
        structure.topological_order(((1,), (0,), ()))
    assert structure.separated(MELON, [0], [1])  # eq. 7.27
    assert not structure.separated(MELON, [0], [1], [3])
    assert not structure.separated(MELON, [2], [4], [3])
    assert (0, 1) in structure.moral_graph(MELON)
    assert len(structure.moral_graph(MELON)) == 5


def test_dot_has_every_arrow_and_moral_edge():
    names = ["good", 'swe"et', "sound", "colour", "root"]
    dot = structure.to_dot(MELON, names)
    moral = structure.to_dot(MELON, names, moral=True)

    assert dot.startswith("digraph network {")
    assert dot.count("->") == 4
    assert '  "swe\\"et" -> "colour";' in dot
    assert moral.count("--") == 5
    assert '  "good" -- "swe\\"et";' in moral


# --- scores ------------------------------------------------------------------------------


def test_a_weight_of_two_is_the_row_twice_and_incomplete_families_are_not_counted():
    codes = np.array([[0, 1], [1, 1], [-1, 0], [1, -1]])
    twice = structure.FamilyScores(np.repeat(codes[:2], 2, axis=0), (2, 2))
    weighted = structure.FamilyScores(codes[:2], (2, 2), weight=np.array([2.0, 2.0]))

    assert twice.total(((1,), ())) == weighted.total(((1,), ()))
    counts = structure.family_counts(codes, (2, 2), 1, (0,))
    assert counts.tolist() == [[0, 1], [0, 1]]


# --- search ------------------------------------------------------------------------------


@cache
def all_graphs(n):
    """Return every acyclic graph of n nodes."""
    places, graphs = [(a, b) for a in range(n) for b in range(n) if a != b], []
    for chosen in product([False, True], repeat=len(places)):
        arrows = list(compress(places, chosen))
        graph = tuple(tuple(a for a, b in arrows if b == node) for node in range(n))
        with suppress(UsageError):
            structure.topological_order(graph)
            graphs.append(graph)
    return graphs


@given(seeds)
@examples(10)
def test_hill_climbing_finds_the_best_of_all_graphs_of_three_nodes(seed):
    rng = np.random.default_rng(seed)
    scores = structure.FamilyScores(dependent_codes(rng, 60, 3), [3] * 3, "aic")

    best = min(map(scores.total, all_graphs(3)))
    for start in (
        structure.empty_start(3),
        structure.naive_start(3, 0),
        structure.tree_start(scores),
    ):
        assert scores.total(structure.hill_climb(scores, start)) == pytest.approx(best)


@given(seeds)
@some
def test_climbing_never_worsens_its_start_nor_makes_a_cycle(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    scores = structure.FamilyScores(dependent_codes(rng, 50, n), [3] * n)
    start = random_parents(rng, n, most=2)
    end = structure.hill_climb(scores, start, max_parents=2)

    assert scores.total(end) <= scores.total(start) + 1e-9
    assert len(structure.topological_order(end)) == n
    assert max(map(len, end)) <= 2


def test_huge_tables_are_avoided_unless_max_parents_asks_for_them():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 200, (300, 5))
    codes[:, 1] = codes[:, 0]
    scores = structure.FamilyScores(codes, [200] * 5, "likelihood")

    found = structure.hill_climb(scores, structure.empty_start(5))
    assert max(map(len, found)) == 1
    with pytest.raises(UsageError, match=r"a table of 3 parents would need 11.9 GiB"):
        structure.hill_climb(scores, structure.empty_start(5), max_parents=3)


@given(seeds)
@some
def test_the_tree_start_is_the_most_likely_tree(seed):
    codes = np.random.default_rng(seed).integers(0, 3, (30, 4))
    scores = structure.FamilyScores(codes, [3] * 4, "likelihood")
    trees = [graph for graph in all_graphs(4) if sorted(map(len, graph)) == [0, 1, 1, 1]]
    best = min(map(scores.total, trees))
    assert scores.total(structure.tree_start(scores)) == pytest.approx(best)

    # Under the target, which is the parent of all: a tree of the three others.
    under = structure.tree_start(scores, target=2)
    assert under[2] == ()
    assert sorted(map(len, under)) == [0, 1, 2, 2]
    graphs = [
        tuple(() if i == 2 else tuple(sorted({2, *of})) for i, of in enumerate(graph))
        for graph in all_graphs(4)
        if graph[2] == ()
    ]
    best = min(scores.total(g) for g in graphs if sorted(map(len, g)) == [0, 1, 2, 2])
    assert scores.total(under) == pytest.approx(best)
    assert structure.tree_start(structure.FamilyScores(np.zeros((2, 1), int), (2,)), target=0) == (
        (),
    )


# --- inference ---------------------------------------------------------------------------


def test_two_thousand_pieces_of_evidence_do_not_underflow():
    names = {"c": "01"} | {f"x{i}": "01" for i in range(2000)}
    network = uniform(names, {f"x{i}": ["c"] for i in range(2000)})
    answer = infer(network, [0], dict.fromkeys(range(1, 2001), 0))

    assert answer.probability.tolist() == [0.5, 0.5]
    assert answer.log_evidence == pytest.approx(-2000 * log(2))


def test_queries_without_an_answer_are_refused():
    rain, wet = variable("rain", "ny", "", [1, 0]), variable("wet", "ny", ["rain"], [1, 0], [0, 1])
    sure = from_json({"variables": [rain, wet]})
    with pytest.raises(UsageError, match="evidence: impossible"):
        infer(sure, [0], {1: 1})
    with pytest.raises(UsageError, match="target 'wet': it is among the evidence"):
        infer(sure, [1], {1: 0})
    independent = uniform({f"x{i}": "01" for i in range(26)}, {})
    with pytest.raises(UsageError, match=r"a table of 0.5 GiB; sample instead, with --gibbs N"):
        infer(independent, range(26), {})


# --- sampling ----------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "n_targets"), [(0, 1), (1, 1), (2, 1), (3, 2)])
def test_gibbs_agrees_with_elimination_within_its_standard_error(seed, n_targets):
    rng = np.random.default_rng(seed)
    network = random_network(seed + 100)
    # Away from 0 and 1, where chains mix slowly.
    tables = tuple(0.8 * table + 0.2 / table.shape[1] for table in network.tables)
    network = Network(network.names, network.states, network.parents, tables)
    known, *targets = rng.choice(len(network.names), n_targets + 1, replace=False).tolist()
    exact = infer(network, targets, {known: 1}).probability
    sampled = gibbs(network, targets, {known: 1}, 8000, rng)

    assert sampled.probability.sum() == pytest.approx(1)
    assert (np.abs(sampled.probability - exact) < 5 * sampled.standard_error + 1e-12).all()
    assert sampled.standard_error.max() < 0.02
    assert sampled.r_hat < 1.1
    assert sampled.n_samples == 8000


def test_r_hat_shows_chains_that_cannot_leave_their_start():
    copied = [variable("a", "01", "", [0.5, 0.5]), variable("b", "01", "a", [1, 0], [0, 1])]
    stuck = from_json({"variables": copied})
    assert gibbs(stuck, [1], {}, 2000, np.random.default_rng(0)).r_hat > 1.1


def test_the_same_seed_gives_the_same_samples_unless_they_are_too_few():
    one, two, other = (
        gibbs(random_network(7), [0], {}, 400, np.random.default_rng(seed)) for seed in (5, 5, 6)
    )
    assert (one.probability == two.probability).all()
    assert (one.probability != other.probability).any()
    assert gibbs(random_network(1), [0], {}, 40, np.random.default_rng(0)).n_samples == 40
    with pytest.raises(UsageError, match="--gibbs 39: too few for 20 chains; give 40 or more"):
        gibbs(random_network(1), [0], {}, 39, np.random.default_rng(0))


# --- the network as a value --------------------------------------------------------------


@given(seeds)
@some
def test_json_restores_the_network_also_with_parents_in_another_order(seed):
    network = random_network(seed)
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


ROW = variable("a", "01", "", [0.5, 0.5])


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"name": "a"}], "not a network"),
        ([ROW, ROW], "variables: a name is missing or there twice"),
        ([], "variables: a name is missing or there twice"),
        ([{**ROW, "values": ["0", "0"]}], "a: a name is missing or there twice"),
        ([{**ROW, "parents": ["b"]}], "parents of a: b"),
        ([{**ROW, "table": [[0.5, 0.6]]}], "table of a is not 1 rows of 2 probabilities"),
        ([{**ROW, "table": [0.5, 0.5]}], "table of a is not"),
        ([{**ROW, "table": [["x", "y"]]}], "not a network"),
        ([{**ROW, "parents": ["a"]}], "cycle"),
    ],
)
def test_an_invalid_document_is_refused_with_the_reason(rows, words):
    with pytest.raises(UsageError, match=words):
        from_json({"variables": rows})


def test_counts_beyond_the_limit_of_memory_are_refused_with_their_size():
    with pytest.raises(UsageError, match=r"a table of 2 parents would need 4\.47 GiB"):
        structure.family_counts(np.zeros((1, 3), int), (20, 10_000, 3_000), 0, (1, 2))
    model = BayesianNetwork(levels=[500] * 4, start="empty", max_parents=3)
    with pytest.raises(UsageError, match="3 parents would need 466 GiB, more than 512 MiB"):
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


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"start": "best"}, "start: 'best' is unknown; choose from tree, naive, empty"),
        ({"criterion": "r2"}, "criterion: 'r2' is unknown"),
        ({"max_parents": 0}, "max_parents: 0 is not a number from 1 up"),
        ({"levels": [2, 2]}, "column 1 has a code above 1"),
    ],
)
def test_invalid_parameters_are_refused(how, words):
    with pytest.raises(UsageError, match=words):
        BayesianNetwork(**how).fit([[0, 1], [1, 2]], [0, 1])


def test_equal_tokens_and_a_token_called_class_get_distinct_names():
    model = BayesianNetwork(climb=False).fit([[0, 1, 1], [1, 0, 1]], ["ham", "spam"])
    network = network_of_tokens(model, ["class", "free", "free"], ["ham", "spam"]).network

    assert network.names == ("class#2", "free", "free#2", "class")
    assert network.states == (("absent", "present"),) * 3 + (("ham", "spam"),)
