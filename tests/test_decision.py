import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.classifier.sum import assumed_prior
from nbspam.classifier.training import learn_items
from nbspam.decision import (
    UNSURE,
    Cutoffs,
    LossMatrix,
    bayes_actions,
    conditional_risk,
    cutoffs,
    default_rule,
    estimate_prior,
    is_worth_learning,
    loss_matrix,
    prior_shift,
    shares_of,
    stated_prior,
    zero_one_loss,
)
from nbspam.errors import UsageError
from nbspam.mail.message import parse_message
from nbspam.settings import MANY, PLAIN, PRESETS
from nbspam.sources.items import read_items
from nbspam.verdicts import posterior, with_prior
from support import ROOT

COST = st.integers(-8, 8).map(lambda n: n / 4)
WEIGHT = st.integers(1, 64)


@st.composite
def problems(draw):
    """Draw probabilities (n_docs, K) and a loss matrix (K, A)."""
    k, a = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(WEIGHT, min_size=k, max_size=k), min_size=1, max_size=4))
    loss = draw(st.lists(st.lists(COST, min_size=a, max_size=a), min_size=k, max_size=k))
    weight = np.array(rows, float)
    return weight / weight.sum(axis=1, keepdims=True), np.array(loss)


@given(problems(), st.integers(0, 2**32 - 1))
def test_no_other_action_or_rule_has_a_smaller_expected_loss(problem, seed):
    probability, loss = problem
    actions = bayes_actions(probability, loss)
    for row, chosen in zip(probability, actions, strict=True):
        risks = [sum(p * cost for p, cost in zip(row, column, strict=True)) for column in loss.T]
        assert risks[chosen] == pytest.approx(min(risks), abs=1e-12)
    # The expected loss of a rule is over all documents and true classes.
    other = np.random.default_rng(seed).integers(0, loss.shape[1], len(probability))
    ours, theirs = ((probability * loss[:, each].T).sum() for each in (actions, other))
    assert ours <= theirs + 1e-12


def test_ties_go_to_the_first_action_and_impossible_costs_are_refused():
    assert zero_one_loss(3).tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    assert bayes_actions([[0.5, 0.5]], zero_one_loss(2)).tolist() == [0]
    assert bayes_actions([[0.5, 0.5]], [[1, 0, 0], [1, 0, 0]]).tolist() == [1]
    # The same factors, multiplied in another order.
    assert bayes_actions([[0.4999999999999999, 0.5000000000000001]], zero_one_loss(2)) == [0]
    assert bayes_actions([[0.1, 0.9]], [[-2, -1], [-1, -2]]).tolist() == [1]
    with pytest.raises(UsageError, match=r"^loss: shape \(3, 2\) with .* \(1, 2\); give a row"):
        conditional_risk([[0.3, 0.7]], [[0, 1], [1, 0], [1, 1]])

    for arguments in ((0,), (-1,), (float("nan"),), (float("inf"),), (2, 0), (2, 2 / 3), (2, 9)):
        with pytest.raises(UsageError, match=r"not a number above 0; give|any answer would be"):
            cutoffs(*arguments)


@given(st.floats(0, 1), st.floats(0.01, 1000), st.floats(0.01, 0.99) | st.none())
def test_cutoffs_are_bayes_rule_for_their_costs(p, fp_cost, share):
    even = fp_cost / (fp_cost + 1)
    unsure_cost = None if share is None else share * even
    rule = cutoffs(fp_cost, unsure_cost)
    actions, loss = ("ham", "spam"), [[0, fp_cost], [1, 0]]
    if unsure_cost is not None:
        actions, loss = (*actions, UNSURE), [[0, fp_cost, unsure_cost], [1, 0, unsure_cost]]
    assert (rule.actions, rule.loss.tolist()) == (actions, loss)
    probability = np.array([[1 - p, p]])

    (label,) = rule.labels(probability)
    risk = conditional_risk(probability, loss)[0]
    assert risk[actions.index(label)] <= risk.min() + 1e-9


def test_cutoffs_in_numbers():
    p = np.array([0.2, 0.21, 0.6, 0.97, 0.98])
    labels = cutoffs(10, 0.2).labels(np.column_stack([1 - p, p]))

    assert labels == ["ham", "unsure", "unsure", "unsure", "spam"]
    assert cutoffs(10, 0.2) == Cutoffs(0.98, 0.2, fp_cost=10, unsure_cost=0.2)
    assert cutoffs(1e5, 1e-6).in_words == "spam from 1.000000, ham up to 0.000001"
    assert cutoffs(1).labels(np.array([[0.5, 0.5], [0.51, 0.49]])) == ["spam", "ham"]


def test_a_false_positive_costs_two_misses_by_default():
    assert default_rule(("ham", "spam"), calibrated=True) == Cutoffs(2 / 3, 2 / 3)
    p = np.array([[0.4, 0.6]])
    assert default_rule(("ham", "spam"), calibrated=True).labels(p) == ["ham"]
    assert default_rule(("ham", "spam"), calibrated=False).labels(p) == ["spam"]
    assert default_rule(("a", "b"), calibrated=True).labels(p) == ["b"]


def test_the_loss_matrix_of_the_documents_decides():
    page = (ROOT / "docs" / "explanation" / "verdicts.md").read_text()
    (block,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    rule = loss_matrix(json.loads(block), ("ham", "spam"))

    assert isinstance(rule, LossMatrix)
    p = np.array([0.01, 0.5, 0.999])
    assert rule.labels(np.column_stack([1 - p, p])) == ["inbox", "ask", "junk"]


ROWS = {"ham": [0, 1], "spam": [1, 0]}


AB = ["a", "b"]


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        (None, "not an object"),
        ({"actions": AB}, "not an object"),
        ({"actions": AB, "loss": ROWS, "prior": 1}, "not an object"),
        ({"actions": [], "loss": ROWS}, "different names"),
        ({"actions": ["a", "a"], "loss": ROWS}, "different names"),
        ({"actions": ["a", 2], "loss": ROWS}, "different names"),
        ({"actions": ["a", ""], "loss": ROWS}, "different names"),
        ({"actions": "ab", "loss": ROWS}, "different names"),
        ({"actions": AB, "loss": [[0, 1], [1, 0]]}, "exactly the classes ham, spam"),
        ({"actions": AB, "loss": {"ham": [0, 1]}}, "exactly the classes"),
        ({"actions": AB, "loss": {**ROWS, "eggs": [1, 1]}}, "exactly the classes"),
        ({"actions": ["a"], "loss": ROWS}, '"loss" of ham is not a list of 1 numbers'),
        *(
            ({"actions": AB, "loss": {**ROWS, "spam": row}}, "of spam is not a list")
            for row in ("01", [0, "1"], [0, True], [0, float("nan")], [0, 10**400])
        ),
    ],
)
def test_malformed_loss_matrices_are_refused(values, complaint):
    with pytest.raises(UsageError, match=re.escape(complaint)):
        loss_matrix(values, ("ham", "spam"))


def under_prior(probability, old, new):
    """Return posteriors under a new prior: Saerens, Latinne & Decaestecker (2002), eq. 4."""
    weight = probability * np.divide(new, old)
    return weight / weight.sum(axis=1, keepdims=True)


def test_a_prior_shift_is_the_update_of_the_prior_in_logarithms():
    old, new = [0.2, 0.3, 0.5], [0.6, 0.3, 0.1]
    p = np.random.default_rng(0).dirichlet([1, 1, 1], 20)
    moved = np.exp(np.log(p) + prior_shift(old, new))
    np.testing.assert_allclose(moved / moved.sum(axis=1, keepdims=True), under_prior(p, old, new))
    # A class that was never seen is not shifted.
    assert prior_shift([0.0, 1.0], [0.5, 0.5]).tolist() == [0.0, np.log(0.5)]


# --- other class priors ----------------------------------------------------------------

NEW = np.array([0.1, 0.9])


@pytest.fixture(scope="module")
def items(mails):
    return list(read_items([str(mails)]))


@pytest.mark.parametrize(
    "model", ["combined", "blended", "bernoulli", "multinomial", "complement"]
)
def test_posterior_score_and_explanation_follow_the_prior(items, model):
    settings, new, learned = PRESETS["mail"], NEW, items
    if model == "blended":
        settings, new = MANY["mail"], np.array([0.7, 0.1, 0.15, 0.05])
        learned = [e._replace(label=f"{e.label}{n % 4 // 2}") for n, e in enumerate(items)]
    elif model != "combined":
        settings = replace(settings, model=model, combine=False)
    classifier = learn_items(learned[::2], settings).classifier
    old = assumed_prior(classifier.table.class_count, settings)
    moved = with_prior(classifier, new)
    same = with_prior(moved, old)
    for item in items[1::40]:
        message = parse_message(item.read())
        (documents,) = classifier.documents([message])
        joint = classifier.joint_of(documents) + classifier.shift
        assert (same.joint_of(documents) + same.shift == joint).all()
        before, after = classifier.explain_message(message, ""), moved.explain_message(message, "")
        expected = under_prior(posterior(joint), old, new)[0]
        assert list(after.verdict.posterior.values()) == pytest.approx(expected, abs=1e-12)
        total = after.constant + sum(row.contribution for row in after.evidence)
        assert total == pytest.approx(after.score, abs=1e-9)
        if model == "combined":
            shift = prior_shift(old, new)
            assert after.verdict.score == pytest.approx(after.score)
            assert after.score - before.score == pytest.approx(shift[1] - shift[0])
            assert after.evidence == before.evidence


def test_the_prior_of_a_model_is_what_its_settings_say():
    count, plain = np.array([1.0, 3.0, 4.0]), PLAIN["text"]
    assert assumed_prior(count, plain).tolist() == [1 / 8, 3 / 8, 1 / 2]
    assert assumed_prior(count, replace(plain, class_prior="uniform")).tolist() == [1 / 3] * 3
    stated = replace(plain, class_prior=(0.2, 0.3, 0.5))
    assert assumed_prior(count, stated).tolist() == [0.2, 0.3, 0.5]
    # Combined evidence knows only the shares of its own messages.
    combined = replace(PRESETS["mail"], class_prior="uniform")
    assert assumed_prior(count[:2], combined).tolist() == [1 / 4, 3 / 4]


def test_em_estimates_the_priors_of_unlabelled_documents():
    # Two normal classes 3 apart; equally frequent in training, 1 to 9 in these documents.
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.9).astype(int)
    x = rng.normal(3.0 * y)
    p_spam = 1 / (1 + np.exp(-(3 * x - 4.5)))  # the log ratio of the two densities
    old = np.array([0.5, 0.5])
    found = estimate_prior(np.column_stack([1 - p_spam, p_spam]), old)
    assert found.sum() == pytest.approx(1)
    assert found[1] == pytest.approx(y.mean(), abs=0.01)
    shares = shares_of(np.column_stack([1 - p_spam, p_spam]), y, old)
    assert shares.observed[1] == y.mean()
    assert shares.estimated.tolist() == found.tolist()


def test_em_is_a_fixed_point_of_its_own_step_and_survives_certainty():
    p = np.random.default_rng(1).dirichlet([0.3, 0.5, 0.4], 200)
    old = np.array([0.2, 0.3, 0.5])
    found = estimate_prior(p, old)
    np.testing.assert_allclose(under_prior(p, old, found).mean(axis=0), found, atol=1e-6)

    sure = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(estimate_prior(sure, np.array([0.5, 0.5])), [2 / 3, 1 / 3])
    none = estimate_prior(sure[:2], np.array([1.0, 0.0]))
    np.testing.assert_allclose(none, [1, 0], atol=1e-8)
    assert estimate_prior(np.empty((0, 3)), old).tolist() == old.tolist()


def test_classes_not_stated_share_the_rest():
    old, whole = np.array([0.1, 0.5, 0.4]), {"a": 0.2, "b": 0.5, "c": 0.3}
    assert stated_prior(whole, tuple("abc"), old).tolist() == [*whole.values()]
    assert stated_prior({"b": 0.5}, tuple("abc"), old) == pytest.approx([0.1, 0.5, 0.4])


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"d": 0.5}, "--prior d: not a class of the model; there are a, b"),
        ({"a": 0.0}, "--prior: not shares"), ({"a": 1.0}, "--prior: not shares"),
        ({"a": 0.5, "b": 0.6}, "--prior: not shares"), ({"a": -0.5}, "--prior: not shares"),
        ({"a": float("nan")}, "--prior: not shares"),
        ({"a": 0.9999999999999999}, "--prior: not shares"),
    ],
)  # fmt: skip
def test_impossible_priors_are_refused(stated, said):
    with pytest.raises(UsageError, match=said):
        stated_prior(stated, ("a", "b"), np.array([0.5, 0.5]))
    with pytest.raises(UsageError, match="--prior: not shares"):  # b was never seen
        stated_prior({"a": 0.5}, ("a", "b"), np.array([1.0, 0.0]))


# --- the commands -------------------------------------------------------------------------


def test_classify_estimates_the_prior_from_the_mail_itself(nbspam, mails, model, tmp_path):
    assert nbspam("train", mails)[0] == 0
    spam = mails / "spam"

    def scores(*options):
        lines = nbspam("classify", spam, "--json", *options)[1].splitlines()
        return [json.loads(line)["score"] for line in lines]

    plain, moved = scores(), scores("--prior", "estimated")
    shifts = np.subtract(moved, plain)
    assert shifts.min() == pytest.approx(shifts.max())
    # All of it is spam, so the estimate is far above one half.
    assert shifts[0] > 1
    shares = nbspam.json("eval", mails, "--prior", "estimated")["shares"]
    assert shares["estimated"]["spam"] == pytest.approx(shares["assumed"]["spam"], abs=1e-5)
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "1.eml.gz").write_bytes(b"not gzip")
    assert nbspam("classify", tmp_path / "gone", "--prior", "estimated")[:2] == (1, "")


def test_eval_follows_the_prior_and_reports_the_shares(nbspam, trained, folder):
    for how in ((), ("--cv", 2), ("--online",), ("--test", folder)):
        shares = nbspam.json("eval", folder, "--prior", "spam=0.2", *how)["shares"]
        assert shares["assumed"] == {"ham": 0.8, "spam": 0.2}
        assert shares["observed"] == {"ham": 0.5, "spam": 0.5}


@pytest.mark.parametrize(
    ("policy", "is_right", "probability", "is_learned"),
    [
        ("everything", True, 1.0, True), ("error", False, 0.6, True),
        ("error", True, 0.4, False), ("near", False, 0.995, True), ("near", True, 0.985, True),
        ("near", True, 0.995, False),
    ],
)  # fmt: skip
def test_a_policy_learns_everything_or_errors_or_near_misses_too(
    policy, is_right, probability, is_learned
):
    assert is_worth_learning(policy, is_right, probability) == is_learned
