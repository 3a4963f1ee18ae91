"""Combining against numbers worked by hand, loops over tokens and models trained anew."""

from math import e

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize

from nbspam.classifier.combining import (
    ALPHA,
    BAND,
    DAMPING,
    NEAR,
    PRIOR_WORTH,
    RATE,
    RIDGE,
    Combination,
    correction_step,
    fit,
    fit_worth,
    group_means,
    layer_scale,
    log_odds,
    means_left_out,
    prior_worth,
    probability,
    with_groups,
)
from nbspam.settings import PRESENCE, TokenSettings
from nbspam.tokens.definition import GROUPS
from nbspam.tokens.documents import Documents
from nbspam.tokens.tokenizer import tokenize
from support import count_batch, examples, message

TEXT, SUBJECT, PAIRS = (GROUPS.index(name) for name in ("text", "subject", "pairs"))
HAM_OR_SPAM = ("ham", "spam")
WORDS = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6).map(" ".join)
DOCUMENTS = st.lists(
    st.tuples(WORDS, WORDS, st.sampled_from(HAM_OR_SPAM)), min_size=2, max_size=25
)


def counted(documents):
    """Return table, documents and y of (subject, sender, label) triples.

    An empty message of each class is added, behind the others.
    """
    messages = [
        message(**{"subject": subject, "from": sender}) for subject, sender, _ in documents
    ]
    labels = [label for *_, label in documents] + list(HAM_OR_SPAM)
    batch = tokenize([*messages, message(), message()], TokenSettings(pairs=True))
    table = count_batch(batch, labels, PRESENCE)
    return table, table.known(batch.documents), np.searchsorted(table.classes, labels)


def log_odds_of(combination, table, documents):
    """Return the log-odds of spam that a combination answers with."""
    joint = combination.joint(table, documents, PRESENCE)
    return joint[:, 1] - joint[:, 0]


# --- tokens and groups --------------------------------------------------------------------


def test_log_odds_worked_by_hand():
    # 10 ham and 20 spam; one token in 0 ham and 4 spam, one in 5 and 10, one in none.
    odds = log_odds(np.array([[0, 4], [5, 10], [0, 0]]), np.array([10, 20]))

    strong = np.log((4 + ALPHA) / (20 + 2 * ALPHA) / (ALPHA / (10 + 2 * ALPHA)))
    assert strong > BAND
    assert odds == pytest.approx([strong, 0, 0])


@pytest.mark.parametrize("label", [0, 1])
def test_leaving_a_document_out_is_counting_without_it(label):
    # Tokens of either class alone, of mostly one, and of that document alone.
    count, n = np.array([[1, 19], [9, 1], [1, 1]]), np.array([10, 20])
    own = np.eye(2, dtype=int)[label]
    without = log_odds(count - own, n - own)

    assert (np.abs(without[:2]) > BAND).all()
    assert (log_odds(count, n, left_out=label) == without).all()
    assert (without != log_odds(count, n)).all()
    assert count.tolist() == [[1, 19], [9, 1], [1, 1]]


def test_group_means_are_damped_and_ignore_zeros():
    documents = Documents(np.arange(3), np.array([0, 3, 3]), np.arange(3), None)
    means = group_means(documents, np.full(3, TEXT, np.uint8), np.array([3.0, 4.0, 0.0]))

    assert means[0, TEXT] == pytest.approx(7 / (2 + DAMPING))
    assert means.sum() == means[0, TEXT]


@given(DOCUMENTS)
def test_a_score_is_a_sum_over_tokens(documents):
    table, documents, _ = counted(documents)
    rng = np.random.default_rng(documents.n_docs)
    correction = rng.normal(size=len(table.vocabulary)).astype(np.float32)
    combination = Combination(rng.normal(size=len(GROUPS) + 1), correction)
    odds = log_odds(table.feature_count, table.class_count)
    groups = np.where(table.vocabulary.groups == SUBJECT, TEXT, table.vocabulary.groups)

    found = log_odds_of(combination, table, documents)
    for row in range(documents.n_docs):
        own = documents.one(row).tokens
        in_layer = own[table.vocabulary.groups[own] != PAIRS]
        total = combination.worth[-1]
        for j in own:
            telling = (groups[own] == groups[j]) & (odds[own] != 0)
            total += combination.worth[groups[j]] * odds[j] / (telling.sum() + DAMPING)
        total += sum(correction[in_layer].tolist()) / np.sqrt(max(len(in_layer), 1))
        assert found[row] == pytest.approx(total, abs=1e-6)


# --- left out -----------------------------------------------------------------------------


def means_of_others(documents, row):
    """Return a message's means by a table that was counted without it."""
    rest, own = documents[:row] + documents[row + 1 :], documents[row]
    table, *_ = counted(rest)
    batch = tokenize([message(**{"subject": own[0], "from": own[1]})], TokenSettings(pairs=True))
    known = table.known(batch.documents)
    odds = log_odds(table.feature_count[known.tokens], table.class_count)
    groups = table.vocabulary.groups[known.tokens]
    return group_means(known, groups, odds.take(known.columns))[0]


UNEQUAL = [
    *[("cheap pills now", "joe", "spam")] * 14,
    *[("lunch on friday", "ann", "ham")] * 5,
    ("cheap lunch", "ann", "ham"),
    ("pills on friday", "joe", "spam"),
    ("nobody else", "writes this", "spam"),
]


def test_means_left_out_are_those_of_a_model_trained_without_the_message():
    table, known, y = counted(UNEQUAL)
    means = means_left_out(table, known, y)

    n_strong = {0: 0, 1: 0}
    for row in range(len(UNEQUAL)):
        expected = means_of_others(UNEQUAL, row)
        assert means[row] == pytest.approx(expected, abs=1e-6)
        n_strong[int(y[row])] += int(np.abs(expected).max() > 0)
    # Zeros are not compared with zeros alone: nearly all messages have strong evidence.
    assert n_strong == {0: 6, 1: 15}
    # And by counts that include the message itself, they would be other numbers.
    odds = log_odds(table.feature_count, table.class_count)
    groups = table.vocabulary.groups
    resubstituted = group_means(known, groups, odds[known.columns])
    assert (np.abs(means - resubstituted).max(axis=1)[:20] > 1e-3).all()


@examples(30)
@given(DOCUMENTS)
def test_any_message_left_out_is_judged_by_the_others(documents):
    table, known, y = counted(documents)
    means = means_left_out(table, known, y)

    for row in range(len(documents)):
        assert means[row] == pytest.approx(means_of_others(documents, row), abs=1e-6)


def test_every_message_is_judged_by_the_others():
    # A word that stands in one message only says nothing of that message itself.
    documents = [(f"only{i} common", "x", "ham" if i % 2 else "spam") for i in range(40)]
    table, known, y = counted(documents)
    combination = fit(table, known, y)

    resubstituted = probability(log_odds_of(combination, table, known))[:40]
    assert np.abs(combination.worth[TEXT]) < 1
    assert ((resubstituted > 0.5) == (y[:40] == 1)).mean() > 0.9


# --- what groups are worth ----------------------------------------------------------------


def evidence(seed, n=300):
    """Return means of groups and classes that agree with them, mostly."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(n, len(GROUPS))) * rng.uniform(0.2, 3, len(GROUPS))
    worth = rng.normal(0.5, 0.5, len(GROUPS))
    return means, (rng.random(n) < probability(means @ worth - 1.0)).astype(np.int64)


def penalised_loss(worth, means, y):
    """Return the log loss of a logistic regression, added up one by one, and its penalty."""
    total = 0.0
    for row, truth in zip(means, y, strict=True):
        z = float(row @ worth[:-1] + worth[-1])
        total += np.logaddexp(0.0, -z if truth else z)
    for each in worth[:-1]:
        total += RIDGE / 2 * (each - PRIOR_WORTH) ** 2
    return total + RIDGE / 2 * worth[-1] ** 2


@pytest.mark.parametrize("seed", range(4))
def test_at_the_worth_that_is_fitted_the_gradient_is_zero(seed):
    means, y = evidence(seed)
    worth = fit_worth(means, y)

    error = probability(means @ worth[:-1] + worth[-1]) - y
    gradient = np.append(means.T @ error, error.sum()) + RIDGE * (worth - prior_worth())
    assert gradient == pytest.approx(0, abs=1e-3)
    assert np.abs(worth - prior_worth()).max() > 0.1


@pytest.mark.parametrize("seed", range(2))
def test_the_worth_is_that_of_an_independent_logistic_regression(seed):
    means, y = evidence(seed)
    theirs = minimize(penalised_loss, np.zeros(len(GROUPS) + 1), (means, y), "BFGS")

    assert fit_worth(means, y) == pytest.approx(theirs.x, abs=1e-4)


def test_without_messages_groups_are_worth_what_is_assumed():
    worth = fit_worth(np.zeros((0, len(GROUPS))), np.zeros(0, np.int64))

    assert worth.tolist() == [0.5] * len(GROUPS) + [0.0]


@given(DOCUMENTS)
def test_the_worth_of_groups_hardly_depends_on_the_order_of_documents(documents):
    (table, known, y), (other, others, z) = counted(documents), counted(documents[::-1])

    ours, theirs = fit(table, known, y).worth[:-1], fit(other, others, z).worth[:-1]
    assert ours == pytest.approx(theirs, abs=1e-6)


def test_evidence_that_separates_is_found():
    documents = [("cheap pills now", "joe", "spam"), ("lunch on friday", "ann", "ham")] * 30
    table, known, y = counted(documents)

    p = probability(log_odds_of(fit(table, known, y), table, known))[:-2]
    assert (p[y[:-2] == 1] > 0.95).all()
    assert (p[y[:-2] == 0] < 0.05).all()


# --- corrections --------------------------------------------------------------------------


def test_steps_worked_by_hand():
    # Log-odds of 1 are a probability of e / (1 + e).
    p = e / (1 + e)

    assert correction_step(0.0, 1, HAM_OR_SPAM) == 0.5
    assert correction_step(0.0, 0, HAM_OR_SPAM) == -0.75
    assert correction_step(1.0, 1, HAM_OR_SPAM) == pytest.approx(1 - p)
    assert correction_step(1.0, 0, HAM_OR_SPAM) == pytest.approx(-1.5 * p)


@given(st.floats(-20, 20))
def test_the_step_of_ham_is_one_and_a_half_times_that_of_spam(score):
    # What is as wrong of ham as the other is of spam.
    of_spam = correction_step(score, 1, HAM_OR_SPAM)
    of_ham = correction_step(-score, 0, HAM_OR_SPAM)

    assert of_ham == pytest.approx(-1.5 * of_spam)


@given(st.floats(-20, 20))
def test_classes_other_than_ham_and_spam_have_equal_steps(score):
    assert correction_step(-score, 0, ("a", "b")) == pytest.approx(
        -correction_step(score, 1, ("a", "b"))
    )


@given(st.floats(-20, 20), st.sampled_from([0, 1]))
def test_only_a_message_that_is_not_certain_and_right_makes_a_step(score, truth):
    error = abs(truth - float(probability(score)))
    assume(abs(error - NEAR) > 1e-12)

    assert (correction_step(score, truth, HAM_OR_SPAM) != 0) == (error > NEAR)


def test_layer_scale_is_one_over_the_root_of_the_number_of_tokens():
    layer = Documents(np.arange(4), np.array([0, 4, 4, 5]), np.array([0, 1, 2, 3, 0]), None)

    assert layer_scale(layer).tolist() == [0.5, 1.0, 1.0]


@examples(25)
@given(DOCUMENTS)
def test_corrections_are_those_of_the_plain_loop(documents):
    """Passes go to and fro; the result is the mean of where the last two end."""
    table, known, y = counted(documents)
    found = fit(table, known, y)

    means = means_left_out(table, known, y)
    worth = fit_worth(means, y)
    correction, ends = np.zeros(len(table.vocabulary)), []
    of = [known.one(row).tokens for row in range(known.n_docs)]
    layer = [own[table.vocabulary.groups[own] != PAIRS] for own in of]
    near = range(known.n_docs)
    for number in range(5):
        if number in (0, 2):
            near = [
                row
                for row in range(known.n_docs)
                if abs(y[row] - probability(score_of(means[row], worth, correction, layer[row])))
                > NEAR
            ]
        for row in near if number % 2 == 0 else near[::-1]:
            z = score_of(means[row], worth, correction, layer[row])
            step = correction_step(float(z), int(y[row]), table.classes)
            correction[layer[row]] += RATE * step / np.sqrt(max(len(layer[row]), 1))
            worth[-1] += 0.2 * step
        ends.append((worth.copy(), correction.copy()))
    worth, correction = (sum(two) / 2 for two in zip(*ends[-2:], strict=True))
    assert found.worth == pytest.approx(worth, abs=1e-3)
    assert found.correction == pytest.approx(correction, abs=1e-3)


def score_of(means, worth, correction, own):
    return means @ worth[:-1] + worth[-1] + correction[own].sum() / np.sqrt(max(len(own), 1))


# --- numbers ------------------------------------------------------------------------------


def test_probability_never_overflows():
    assert probability(np.array([-1e9, 0, 1e9])) == pytest.approx([0, 0.5, 1])


def test_the_worth_of_fewer_groups_is_completed_by_what_is_assumed():
    worth = with_groups(np.array([1.0, 2.0, 3.0, 4.0, -0.5]))

    assert worth.tolist() == [1, 2, 3, 4, *prior_worth()[4:-1], -0.5]
    assert (with_groups(worth) == worth).all()


@pytest.mark.parametrize("n", [0, 1, len(GROUPS) + 2])
def test_the_worth_of_other_groups_is_refused(n):
    with pytest.raises(ValueError, match="groups"):
        with_groups(np.ones(n))
