import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.decision import (
    UNSURE,
    Cutoffs,
    LossMatrix,
    bayes_actions,
    conditional_risk,
    cutoffs,
    cutoffs_from_dict,
    default_rule,
    loss_matrix,
    posterior_after,
    prior_shift,
    update_prior,
    zero_one_loss,
)
from nbspam.errors import UsageError
from support import ROOT

COST = st.integers(-8, 8).map(lambda n: n / 4)
WEIGHT = st.integers(1, 64)


@st.composite
def problems(draw, n_classes=None, n_actions=None):
    """Probabilities (n_docs, K) and a loss matrix (K, A)."""
    k = n_classes or draw(st.integers(1, 4))
    a = n_actions or draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(WEIGHT, min_size=k, max_size=k), min_size=1, max_size=4))
    loss = draw(
        st.lists(st.lists(COST, min_size=a, max_size=a), min_size=k, max_size=k).map(np.array)
    )
    weight = np.array(rows, float)
    return weight / weight.sum(axis=1, keepdims=True), loss


@given(problems())
def test_no_other_action_has_a_smaller_expected_loss(problem):
    probability, loss = problem
    for row, chosen in zip(probability, bayes_actions(probability, loss), strict=True):
        risks = [sum(p * cost for p, cost in zip(row, column, strict=True)) for column in loss.T]
        assert risks[chosen] == pytest.approx(min(risks), abs=1e-12)


@given(problems(n_classes=2, n_actions=2), st.integers(0, 2**32 - 1))
def test_no_other_rule_loses_less_on_drawn_documents(problem, seed):
    # Over all documents and truths, weighed by their probability, whatever the rule.
    probability, loss = problem
    n = len(probability)
    other = np.random.default_rng(seed).integers(0, 2, n)

    def expected(actions):
        return sum(probability[i] @ loss[:, actions[i]] for i in range(n))

    assert expected(bayes_actions(probability, loss)) <= expected(other) + 1e-12


@given(problems())
def test_the_most_probable_class_makes_the_fewest_mistakes(problem):
    probability, _ = problem
    k = probability.shape[1]
    chosen = bayes_actions(probability, zero_one_loss(k))
    assert probability[np.arange(len(chosen)), chosen] == pytest.approx(probability.max(axis=1))


@given(problems(), st.integers(1, 8))
def test_the_scale_of_costs_does_not_matter(problem, scale):
    probability, loss = problem
    risk = conditional_risk(probability, loss)
    assert conditional_risk(probability, loss * scale) == pytest.approx(risk * scale)


def test_ties_go_to_the_first_action():
    assert bayes_actions([[0.5, 0.5]], zero_one_loss(2)).tolist() == [0]
    assert bayes_actions([[0.5, 0.5]], [[1, 0, 0], [1, 0, 0]]).tolist() == [1]


@given(
    st.floats(0, 1),
    st.floats(0.01, 1000),
    st.floats(0.01, 0.99) | st.none(),
)
def test_cutoffs_are_bayes_rule_for_their_costs(p, fp_cost, share):
    even = fp_cost / (fp_cost + 1)
    unsure_cost = None if share is None else share * even
    rule = cutoffs(fp_cost, unsure_cost)
    actions, loss = ["spam", "ham"], [[fp_cost, 0], [0, 1]]
    if unsure_cost is not None:
        actions, loss = [*actions, UNSURE], [[fp_cost, 0, unsure_cost], [0, 1, unsure_cost]]
    probability = np.array([[1 - p, p]])

    (label,) = rule.labels(probability)
    risk = conditional_risk(probability, loss)[0]
    assert label in rule.actions
    assert risk[actions.index(label)] <= risk.min() + 1e-9


def test_cutoffs_in_numbers():
    p = np.array([0.2, 0.21, 0.6, 0.97, 0.98])
    labels = cutoffs(10, 0.2).labels(np.column_stack([1 - p, p]))

    assert labels == ["ham", "unsure", "unsure", "unsure", "spam"]
    assert cutoffs(10, 0.2) == Cutoffs(0.98, 0.2, fp_cost=10, unsure_cost=0.2)
    assert cutoffs(1).labels(np.array([[0.5, 0.5], [0.51, 0.49]])) == ["spam", "ham"]


def test_costs_that_make_no_sense_are_refused():
    for arguments in ((0,), (-1,), (float("nan"),), (float("inf"),), (2, 0), (2, 2 / 3), (2, 9)):
        with pytest.raises(UsageError):
            cutoffs(*arguments)


def test_ham_called_spam_costs_two_misses_unless_told_otherwise():
    assert default_rule(("ham", "spam"), calibrated=True) == Cutoffs(2 / 3, 2 / 3)
    p = np.array([[0.4, 0.6]])
    assert default_rule(("ham", "spam"), calibrated=True).labels(p) == ["ham"]
    assert default_rule(("ham", "spam"), calibrated=False).labels(p) == ["spam"]
    assert default_rule(("a", "b"), calibrated=True).labels(p) == ["b"]


def test_the_loss_matrix_of_the_documents_decides():
    (block,) = re.findall(r"```json\n(.*?)```", (ROOT / "docs/explanation/decisions.md").read_text(), re.DOTALL)
    rule = loss_matrix(json.loads(block), ("ham", "spam"))

    assert isinstance(rule, LossMatrix)
    p = np.array([0.01, 0.5, 0.999])
    assert rule.labels(np.column_stack([1 - p, p])) == ["inbox", "ask", "junk"]


ROWS = {"ham": [0, 1], "spam": [1, 0]}


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        (None, "not an object"),
        ([], "not an object"),
        ({"actions": ["a", "b"]}, "not an object"),
        ({"actions": ["a", "b"], "loss": ROWS, "prior": 1}, "not an object"),
        ({"actions": [], "loss": ROWS}, "different names"),
        ({"actions": ["a", "a"], "loss": ROWS}, "different names"),
        ({"actions": ["a", 2], "loss": ROWS}, "different names"),
        ({"actions": ["a", ""], "loss": ROWS}, "different names"),
        ({"actions": "ab", "loss": ROWS}, "different names"),
        ({"actions": ["a", "b"], "loss": [[0, 1], [1, 0]]}, "exactly the classes ham, spam"),
        ({"actions": ["a", "b"], "loss": {"ham": [0, 1]}}, "exactly the classes"),
        ({"actions": ["a", "b"], "loss": {**ROWS, "eggs": [1, 1]}}, "exactly the classes"),
        ({"actions": ["a"], "loss": ROWS}, '"loss" of ham is not a list of 1 numbers'),
        ({"actions": ["a", "b"], "loss": {**ROWS, "spam": "01"}}, "of spam is not a list"),
        ({"actions": ["a", "b"], "loss": {**ROWS, "spam": [0, "1"]}}, "of spam is not"),
        ({"actions": ["a", "b"], "loss": {**ROWS, "spam": [0, True]}}, "of spam is not"),
        ({"actions": ["a", "b"], "loss": {**ROWS, "spam": [0, float("nan")]}}, "of spam is"),
        ({"actions": ["a", "b"], "loss": {**ROWS, "spam": [0, 10**400]}}, "of spam is not"),
    ],
)
def test_loss_matrices_that_make_no_sense_are_refused(values, complaint):
    with pytest.raises(UsageError, match=re.escape(complaint)):
        loss_matrix(values, ("ham", "spam"))


def test_the_textbook_test_that_is_repeated():
    positive = [0.99, 0.01]
    posterior = [posterior_after([0.005, 0.995], [positive] * n)[0] for n in (1, 2, 3)]

    assert posterior == pytest.approx([0.332215, 0.9801, 0.99979], abs=5e-6)
    assert posterior_after([0.005, 0.995], []).tolist() == [0.005, 0.995]


@given(st.lists(st.tuples(WEIGHT, WEIGHT), max_size=4), st.randoms())
def test_the_order_of_observations_does_not_matter(weights, random):
    shuffled = weights[:]
    random.shuffle(shuffled)
    assert posterior_after([0.3, 0.7], weights) == pytest.approx(
        posterior_after([0.3, 0.7], shuffled)
    )


@given(st.tuples(WEIGHT, WEIGHT, WEIGHT), st.tuples(WEIGHT, WEIGHT, WEIGHT))
def test_a_new_prior_is_as_if_it_had_been_there_from_the_start(first, second):
    old, new = (np.array(prior) / sum(prior) for prior in (first, second))
    likelihood = [[0.2, 0.3, 0.9]]

    updated = update_prior(posterior_after(old, likelihood)[None, :], old, new)[0]
    assert updated == pytest.approx(posterior_after(new, likelihood))
    assert update_prior(updated[None, :], new, old)[0] == pytest.approx(
        posterior_after(old, likelihood)
    )


@pytest.mark.parametrize("costs", [(2,), (10, 0.2)])
def test_cutoffs_come_back_from_their_values(costs):
    made = cutoffs(*costs)
    assert cutoffs_from_dict(made._asdict()) == made


@pytest.mark.parametrize(
    "values",
    [
        {"spam": 0.5},
        {"spam": 0.5, "ham": 0.5, "more": 1},
        {"spam": "0.5", "ham": 0.5},
        {"spam": 0.4, "ham": 0.5},
        {"spam": 1.4, "ham": 0.5},
        {"spam": float("nan"), "ham": 0.5},
        {"spam": 0.5, "ham": 0.5, "fp_cost": 0},
        {"spam": 0.5, "ham": 0.5, "fp_cost": 1, "unsure_cost": -1},
        {"spam": 0.5, "ham": 0.5, "fp_cost": [], "unsure_cost": 1},
    ],
)
def test_values_that_are_no_cutoffs_are_refused(values):
    with pytest.raises((TypeError, ValueError)):
        cutoffs_from_dict(values)


def test_the_losses_of_cutoffs_are_their_costs():
    assert cutoffs(10, 0.2).loss.tolist() == [[0, 10, 0.2], [1, 0, 0.2]]
    assert cutoffs(3).loss.tolist() == [[0, 3], [1, 0]]
    assert cutoffs(3).loss.shape == (2, len(cutoffs(3).actions))


@given(st.floats(0.01, 100), st.floats(0.01, 0.99), st.floats(0, 1))
def test_cutoffs_decide_as_their_losses_do(fp_cost, share, p):
    rule = cutoffs(fp_cost, share * fp_cost / (fp_cost + 1))
    probability = np.array([[1 - p, p]])
    (label,) = rule.labels(probability)
    risk = conditional_risk(probability, rule.loss)[0]
    assert risk[rule.actions.index(label)] <= risk.min() + 1e-9


def test_a_class_never_met_gains_nothing():
    assert prior_shift([0.0, 1.0], [0.5, 0.5]).tolist() == [0.0, np.log(0.5)]


def test_a_prior_shift_is_the_update_of_the_prior_in_logarithms():
    old, new = [0.2, 0.3, 0.5], [0.6, 0.3, 0.1]
    p = np.random.default_rng(0).dirichlet([1, 1, 1], 20)
    moved = np.exp(np.log(p) + prior_shift(old, new))
    np.testing.assert_allclose(moved / moved.sum(axis=1, keepdims=True), update_prior(p, old, new))
