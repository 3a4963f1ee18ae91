"""The steps of corrections against numbers worked by hand."""

from math import e

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nbspam.classifier.layer import (
    MOST,
    NEAR,
    bounded,
    correction_step,
    corrections,
    layer_scale,
    probability,
)
from nbspam.tokens.documents import Documents

HAM_OR_SPAM = ("ham", "spam")


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


def test_all_corrections_together_move_a_score_by_a_bounded_amount():
    assert bounded(np.array([-MOST - 1, -3.0, 0.0, MOST + 1])).tolist() == [-MOST, -3, 0, MOST]


def test_what_exceeds_the_bound_does_not_help_while_corrections_are_learned():
    # The message is spam, and its score without corrections says ham by more than they may move.
    layer = Documents(np.arange(1), np.array([0, 1]), np.array([0]), None)
    score = np.array([-MOST - 20.0])

    found, constant = corrections(layer, np.array([1]), score, HAM_OR_SPAM)
    assert found[0] > MOST
    z = float(score[0] + constant + bounded(found[0]))
    assert correction_step(z, 1, HAM_OR_SPAM) > 0.99


def test_probability_never_overflows():
    assert probability(np.array([-1e9, 0, 1e9])) == pytest.approx([0, 0.5, 1])
