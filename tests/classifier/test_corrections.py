"""The steps of corrections against numbers worked by hand."""

from math import e

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nbspam.classifier.combine import (
    BIAS_RATE,
    MOST,
    MOST_OF_ONE,
    NEAR,
    RATE,
    bounded,
    correction_step,
    corrections,
    ham_step,
    layer_scale,
    probability,
    trust,
)
from nbspam.tokens.documents import Documents

HAM_OR_SPAM, A_OR_B = ("ham", "spam"), ("a", "b")


def test_steps_worked_by_hand():
    # Log-odds of 1 are a probability of e / (1 + e).
    p = e / (1 + e)

    assert correction_step(0.0, 1, 1.5) == 0.5
    assert correction_step(0.0, 0, 1.5) == -0.75
    assert correction_step(1.0, 1, 1.5) == pytest.approx(1 - p)
    assert correction_step(1.0, 0, 1.5) == pytest.approx(-1.5 * p)


def test_the_step_of_ham_grows_with_the_number_of_messages_to_one_and_a_half():
    assert [ham_step(HAM_OR_SPAM, n) for n in (0, 100, 200, 5000)] == [1, 1.25, 1.5, 1.5]
    assert ham_step(A_OR_B, 5000) == 1


@given(st.floats(-20, 20), st.sampled_from([0, 1]))
def test_only_a_message_that_is_not_certain_and_right_makes_a_step(score, truth):
    error = abs(truth - float(probability(score)))
    assume(abs(error - NEAR) > 1e-12)
    assert (correction_step(score, truth, 1.5) != 0) == (error > NEAR)


def test_what_exceeds_the_bound_does_not_help_while_corrections_are_learned():
    # Three spams have the same token, and scores without corrections that say ham by more than
    # these may move; they are believed because the others are more decided.
    layer = Documents(np.arange(5), np.arange(8), np.array([0, 0, 0, 1, 2, 3, 4]), None)
    score = np.array([-MOST - 20] * 3 + [2 * MOST + 50] * 4)

    found, constant, _ = corrections(layer, np.ones(7, np.int64), score, HAM_OR_SPAM)
    assert found[0] > MOST
    z = float(score[0] + constant + bounded(found[0]))
    assert correction_step(z, 1, 1.5) > 0.99


@pytest.mark.parametrize(("truth", "sign"), [(1, 1), (0, -1)])
def test_all_steps_of_one_message_together_are_at_most_one(truth, sign):
    # Nothing else contradicts the first message, so five passes could take five steps.
    layer = Documents(np.arange(3), np.arange(4), np.arange(3), None)
    score = np.array([-20.0, 60.0, 60.0]) * sign

    found, constant, _ = corrections(layer, np.full(3, truth), score, HAM_OR_SPAM)
    assert found.tolist() == pytest.approx([sign * RATE * MOST_OF_ONE, 0, 0])
    assert constant == pytest.approx(sign * BIAS_RATE * MOST_OF_ONE)


def test_labels_that_no_decided_score_contradicts_are_all_believed():
    # The last two are contradicted, but by scores that are undecided.
    score = np.array([5.0, -5.0, 5.0, -5.0, 0.1, -0.1])

    assert trust(score, np.array([1, 0, 1, 0, 0, 1])).tolist() == [1] * 6
    assert trust(np.zeros(3), np.array([0, 1, 1])).tolist() == [1] * 3
    assert trust(np.zeros(0), np.zeros(0, int)).tolist() == []


def test_trust_worked_by_hand():
    # 50 decided messages, of which 5 are contradicted, beside 50 that are assumed: .05 are wrong.
    # So labels below .1 are not believed, labels from .4 on are, and .25 is half way between.
    own = np.array([0.99] * 45 + [0.01] * 5 + [0.1, 0.25, 0.4, 0.5] + [0.6] * 46)
    score = np.log(own / (1 - own))

    found = trust(score, np.ones(100, int))
    assert found[:50].tolist() == [1] * 45 + [0] * 5
    assert found[50:] == pytest.approx([0, 0.5, 1, 1] + [1] * 46)


def test_what_was_told_is_believed_and_does_not_make_others_doubted():
    # Two of five contradicted labels were told, and two others: of 48 decided labels 3 are wrong,
    # beside 50 that are assumed.
    own = np.array([0.99] * 45 + [0.01] * 5 + [0.1, 0.15, 0.4, 0.5] + [0.6] * 46)
    score, told = np.log(own / (1 - own)), np.zeros(100, bool)
    told[[45, 46, 50, 99]] = True
    wrong = 3 / (48 + 50)

    found = trust(score, np.ones(100, int), told)
    expected = [1] * 47 + [0] * 3 + [1, (0.15 - 2 * wrong) / (6 * wrong)] + [1] * 48
    assert found == pytest.approx(expected)
    assert trust(score, np.ones(100, int), told | True).tolist() == [1] * 100


@given(st.lists(st.tuples(st.floats(-30, 30), st.sampled_from([0, 1])), min_size=1, max_size=50))
def test_the_likelier_a_label_the_more_it_is_believed(messages):
    score, y = np.array([score for score, _ in messages]), np.array([y for _, y in messages])

    of_own = trust(score, y)[np.argsort(np.where(y == 1, score, -score))]
    assert ((of_own >= 0) & (of_own <= 1)).all()
    assert (np.diff(of_own) >= 0).all()
    assert trust(-score, 1 - y) == pytest.approx(trust(score, y))


def test_a_message_that_is_not_believed_leaves_no_trace():
    y = np.array([*[0, 1] * 20, 0])
    score = np.array([*[-4.0, 4.0] * 20, 4.0])  # the others take the last one for class 1

    found, others = (
        corrections(Documents(np.arange(n), np.arange(n + 1), np.arange(n), None), *each)
        for n, each in ((41, (y, score, A_OR_B)), (40, (y[:40], score[:40], A_OR_B)))
    )
    assert found.correction.tolist() == [*others.correction.tolist(), 0.0]
    assert found.constant == others.constant


def texts(n, share, seed):
    """Return n texts of 20 of 200 tokens, and classes that follow them with some probability."""
    rng = np.random.default_rng(seed)
    present = rng.random((n, 200)).argsort(axis=1)[:, :20]
    says = np.where((present < 100).mean(axis=1) > 0.5, 1, 0)
    layer = Documents(np.arange(200), np.arange(n + 1) * 20, np.sort(present).ravel(), None)
    return layer, np.where(rng.random(n) < share, says, 1 - says)


def log_loss(layer, y, learned):
    moved = learned.correction[layer.columns].reshape(-1, 20).sum(axis=1) * layer_scale(layer)
    z = learned.certainty * (learned.constant + bounded(moved))
    return np.logaddexp(0, np.where(y == 1, -z, z)).mean()


def test_texts_whose_classes_overlap_are_judged_less_certainly_and_that_is_right():
    learned, clear, mail = (
        corrections(*texts(600, share, 0), np.zeros(600), classes)
        for share, classes in ((0.7, A_OR_B), (1.0, A_OR_B), (0.7, HAM_OR_SPAM))
    )
    assert 0 < 2 * learned.certainty < min(1, clear.certainty)
    others = texts(2000, 0.7, 1)
    assert log_loss(*others, learned) < 0.6 * log_loss(*others, learned._replace(certainty=1.0))
    assert clear.certainty <= mail.certainty == 1  # mail is as certain as it looks


def test_nothing_overflows_and_corrections_move_a_score_by_a_bounded_amount():
    assert probability(np.array([-1e9, 0, 1e9])) == pytest.approx([0, 0.5, 1])
    assert bounded(np.array([-MOST - 1, -3.0, 0.0, MOST + 1])).tolist() == [-MOST, -3, 0, MOST]
