"""How a rule decides the answers of a trial, and the measures computed from them."""

import numpy as np
import pytest

from nbspam.decision import Cutoffs, LossMatrix, update_prior
from nbspam.evaluation.trial import Smaller, evaluation_of, under_prior
from support import random_trial, trial_of

HOUSE = LossMatrix(("inbox", "junk", "ask"), np.array([[0, 20, 0.2], [1, 0, 0.2]]))
# Log-odds -4, 0, 4 are probabilities .018, .5, .982.
Y, SCORE = [0, 1, 0, 1], [-4, 0, 4, 4]


def test_answers_are_numbered_like_the_classes_followed_by_other_actions():
    assert trial_of(Y, SCORE).answers()[0].tolist() == [0, 0, 1, 1]
    unsure = trial_of(Y, SCORE, rule=Cutoffs(0.9, 0.1, fp_cost=2, unsure_cost=0.5))
    answers, names = unsure.answers()
    assert names == ("ham", "spam", "unsure")
    assert answers.tolist() == [0, 2, 1, 1]
    assert unsure.cost.tolist() == [0, 0.5, 2, 0]
    turned = LossMatrix(("unsure", "spam", "ham"), np.array([[0.5, 2, 0], [0.5, 0, 1.0]]))
    assert trial_of(Y, SCORE, rule=turned).answers()[0].tolist() == [0, 2, 1, 1]


def test_with_actions_that_are_no_classes_the_answer_is_the_most_probable_class():
    trial = trial_of(Y, SCORE, rule=HOUSE)
    assert trial.answers()[0].tolist() == [0, 0, 1, 1]
    # -4: .018 in the inbox; 0 and 4: asking is cheaper than .018 * 20.
    assert trial.actions.tolist() == [0, 2, 2, 2]
    assert evaluation_of(trial).cost == pytest.approx((0 + 0.2 * 3) / 4)


def test_an_evaluation_has_the_numbers_of_the_trial(few_resamples):
    evaluation = evaluation_of(trial_of(Y, SCORE))
    assert evaluation.confusion.tolist() == [[1, 1], [1, 1]]
    assert evaluation.cost == (2 + 1) / 4
    assert evaluation.auc == (1 + 0.5 + 0 + 1) / 4
    assert evaluation.intervals == {}
    assert evaluation_of(trial_of(Y, SCORE), np.random.default_rng(0)).intervals


def test_another_prior_moves_all_answers_as_bayes_says():
    trial = random_trial(0)
    new = np.array([0.2, 0.8])
    moved = under_prior(trial, new)
    expected = update_prior(trial.probability, trial.prior, new)
    np.testing.assert_allclose(moved.probability, expected, rtol=1e-12)
    assert moved.prior.tolist() == [0.2, 0.8]
    assert evaluation_of(moved).auc == evaluation_of(trial).auc


def test_another_prior_moves_smaller_models_too():
    trial = trial_of(Y, SCORE, smaller=(Smaller(2, np.zeros((4, 2))),))
    (smaller,) = under_prior(trial, np.array([0.2, 0.8])).smaller
    assert smaller.n_learned == 2
    np.testing.assert_allclose(smaller.joint[:, 1] - smaller.joint[:, 0], np.log(4))


def test_mistakes_are_wrong_answers_and_the_surest_come_first():
    # Both 40 and 50 are a probability of 1 to the last bit; 5 is undecided, and 1 is right.
    unsure = Cutoffs(0.999, 0.001, fp_cost=2, unsure_cost=0.5)
    y, score = [0, 1, 0, 0, 0, 1], [40, -8, 5, 50, -40, -30]
    trial = trial_of(y, score, rule=unsure, names=tuple("abcdef"))

    found = trial.mistakes()

    assert [mistake.name for mistake in found] == ["d", "a", "f", "b"]
    assert found[3].row() == ("ham", "spam", "0.999665", "b")
    assert (found[0].answer, found[0].truth, found[0].probability) == ("spam", "ham", 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_as_many_mistakes_as_errors(seed):
    trial = random_trial(seed)
    named = trial_of(
        trial.y, trial.joint[:, 1] - trial.joint[:, 0], names=tuple(map(str, range(400)))
    )

    found = named.mistakes()

    assert len(found) == evaluation_of(named).errors > 0
    assert [m.probability for m in found] == sorted((m.probability for m in found), reverse=True)
