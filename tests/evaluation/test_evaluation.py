"""How a rule decides the answers of a trial, and all measures that are computed from them."""

from dataclasses import replace

import numpy as np
import pytest

from nbspam.decision import Cutoffs, LossMatrix
from nbspam.evaluation import metrics
from nbspam.evaluation.evaluation import (
    SmallerModelResult,
    evaluate,
    evaluation_of,
    trial_under_prior,
)
from support import random_trial, trial_of, trial_of_classes

TWO_CLASS = ["hm_rate", "sm_rate", "lam", "auc", "sm_at_hm"]
OPTIONAL = ["calibration_error", "log_loss", "brier", "cost"]


def run(rng=None, **options):
    """Return (y_true, probability) of two classes, some rows certain, and their evaluation."""
    draws = np.random.default_rng(1)
    p = draws.dirichlet([0.4, 0.4], 80)
    p[:6] = np.eye(2)[draws.integers(0, 2, 6)]
    y = np.append([0, 1], draws.integers(0, 2, 78))
    return y, p, evaluate(y, p.argmax(axis=1), ["ham", "spam"], probability=p, rng=rng, **options)


def test_evaluation_gathers_what_the_functions_say():
    truth, p, _ = run()
    y, p, evaluation = run(cost=np.array([[0, 10], [1, 0]])[truth, p.argmax(axis=1)])
    confusion = metrics.confusion_matrix(y, p.argmax(axis=1), 2, 2)
    assert evaluation.confusion.tolist() == confusion.tolist()
    assert evaluation.scores == metrics.classification_report(confusion, ["ham", "spam"])
    assert (evaluation.n_docs, evaluation.errors) == (80, confusion[0, 1] + confusion[1, 0])
    assert evaluation.accuracy == evaluation.scores.accuracy
    assert evaluation.macro_f1 == evaluation.scores.macro.f1
    assert (evaluation.hm_rate, evaluation.sm_rate) == metrics.error_rates(confusion)
    assert (evaluation.mcc, evaluation.lam) == (metrics.mcc(confusion), metrics.lam(confusion))
    assert evaluation.auc == metrics.auc(y, p[:, 1])
    ham, spam, _ = metrics.roc_counts(y, p[:, 1])
    assert evaluation.sm_at_hm == metrics.least_missed(ham, spam, metrics.HM)
    assert evaluation.log_loss == metrics.log_losses(y, p).mean()
    assert evaluation.brier == metrics.brier_losses(y, p).mean()
    assert evaluation.calibration_error == metrics.expected_calibration_error(y, p)
    assert evaluation.cost == (10 * confusion[0, 1] + confusion[1, 0]) / 80
    assert evaluation.intervals == {}
    # Where there is a score, documents are ranked by it; inputs stay as they are.
    score = np.arange(80)
    y, p, evaluation = run(score=score)
    assert evaluation.auc == metrics.auc(y, score)
    assert (y.tolist(), p.tolist(), score.tolist()) == (
        *(a.tolist() for a in run()[:2]),
        [*range(80)],
    )


def test_numbers_that_do_not_apply_are_none(few_resamples):
    evaluation = evaluate([0, 1, 2, 2], [0, 2, 2, 1], ["a", "b", "c"])
    for name in [*TWO_CLASS, *OPTIONAL]:
        assert getattr(evaluation, name) is None
    no_ham = evaluate([1, 1], [1, 0], ["ham", "spam"], score=[1, 0], rng=np.random.default_rng(0))
    assert no_ham.hm_rate is no_ham.lam is no_ham.auc is None
    assert no_ham.sm_rate == 0.5
    assert not {"auc", "hm_rate"} & {*no_ham.intervals}
    assert no_ham.intervals["macro_f1"] == (0, 0.5)  # F1 of ham is 0 in any resample


def test_intervals_surround_their_numbers(few_resamples):
    _, _, evaluation = run(rng=np.random.default_rng(0), cost=np.arange(80))
    # The calibration error has none, because the bootstrap misses a true error near 0.
    assert [*evaluation.intervals] == ["accuracy", "macro_f1", "mcc", *TWO_CLASS, *OPTIONAL[1:]]
    for name, (low, high) in evaluation.intervals.items():
        assert low <= getattr(evaluation, name) <= high
    for name, row in zip(["ham", "spam"], evaluation.scores.rows, strict=True):
        for value, (low, high) in zip(row[:3], evaluation.class_intervals[name], strict=True):
            assert low <= value <= high
    (_, lost), (missed, caught) = evaluation.confusion.tolist()
    shares = [metrics.share_interval(caught, caught + n) for n in (lost, missed)]
    assert evaluation.class_intervals["spam"][:2] == shares
    # Resamples of nine right documents have no wrong one, and say nothing of a class they lack.
    rare = evaluate(range(9), range(9), "abcdefghi", rng=np.random.default_rng(0))
    assert rare.intervals == {"accuracy": pytest.approx((0.7008, 1), abs=1e-4)}
    assert rare.class_intervals["a"][2] == pytest.approx((0.3423, 1), abs=1e-4)


def test_an_answer_that_is_no_class_is_neither_right_nor_an_error():
    y, answers = [0, 0, 1, 1, 1], [0, 2, 1, 2, 0]
    evaluation = evaluate(y, answers, ["ham", "spam"], other_answers=["unsure"])
    assert evaluation.confusion.tolist() == [[1, 0, 1], [1, 1, 1]]
    assert evaluation.answers == ("ham", "spam", "unsure")
    assert (evaluation.n_docs, evaluation.errors, evaluation.undecided) == (5, 1, 2)
    assert evaluation.accuracy == 2 / 5
    assert evaluation.sm_rate == 1 / 3
    assert evaluation.scores.rows[1][:2] == (1, 1 / 3)
    sklearn = pytest.importorskip("sklearn.metrics")  # where it is a class that is never true
    assert evaluation.mcc == pytest.approx(sklearn.matthews_corrcoef(y, answers))


# --- a trial ---------------------------------------------------------------------------

HOUSE = LossMatrix(("inbox", "junk", "ask"), np.array([[0, 20, 0.2], [1, 0, 0.2]]))
# Log-odds -4, 0, 4 are probabilities .018, .5, .982.  Two are equal but for their last digit.
Y, SCORE = [0, 1, 0, 1], [-4, 0, 4, 4 - 1e-15]


def test_answers_are_numbered_like_the_classes_followed_by_other_actions(few_resamples):
    plain = trial_of(Y, SCORE)
    assert plain.answers()[0].tolist() == [0, 0, 1, 1]
    evaluation = evaluation_of(plain)
    assert (evaluation.cost, evaluation.intervals) == ((2 + 1) / 4, {})
    assert evaluation.auc == (1 + 0.5 + 0 + 1) / 4
    assert evaluation_of(plain, 0).intervals
    unsure = trial_of(Y, SCORE, rule=Cutoffs(0.9, 0.1, fp_cost=2, unsure_cost=0.5))
    answers, names = unsure.answers()
    assert names == ("ham", "spam", "unsure")
    assert answers.tolist() == [0, 2, 1, 1]
    assert unsure.cost.tolist() == [0, 0.5, 2, 0]
    turned = LossMatrix(("unsure", "spam", "ham"), np.array([[0.5, 2, 0], [0.5, 0, 1.0]]))
    assert trial_of(Y, SCORE, rule=turned).answers()[0].tolist() == [0, 2, 1, 1]

    trial = trial_of(Y, SCORE, rule=HOUSE)
    assert trial.answers()[0].tolist() == [0, 0, 1, 1]
    # -4: .018 in the inbox; 0 and 4: asking is cheaper than .018 * 20.
    assert trial.actions.tolist() == [0, 2, 2, 2]
    assert evaluation_of(trial).cost == pytest.approx((0 + 0.2 * 3) / 4)


def test_another_prior_moves_all_answers_as_bayes_says():
    trial = replace(random_trial(0), smaller=(SmallerModelResult(2, np.zeros((400, 2))),))
    new = np.array([0.2, 0.8])
    moved = trial_under_prior(trial, new)
    expected = trial.probability * new / trial.prior
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(moved.probability, expected, rtol=1e-12)
    assert moved.prior.tolist() == [0.2, 0.8]
    assert evaluation_of(moved).auc == evaluation_of(trial).auc
    (smaller,) = moved.smaller
    assert smaller.n_learned == 2
    np.testing.assert_allclose(smaller.joint[:, 1] - smaller.joint[:, 0], np.log(4))


def test_mistakes_are_wrong_answers_and_the_surest_come_first():
    # Both 40 and 50 are a probability of 1 to the last bit; 5 is undecided, and 1 is right.
    unsure = Cutoffs(0.999, 0.001, fp_cost=2, unsure_cost=0.5)
    y, score = [0, 1, 0, 0, 0, 1], [40, -8, 5, 50, -40, -30]
    trial = trial_of(y, score, rule=unsure, names=tuple("abcdef"))

    found = trial.mistakes()

    assert [name for *_, name in found] == ["d", "a", "f", "b"]
    assert found[3] == ("ham", "spam", "0.999665", "b")
    assert found[0] == ("spam", "ham", "1.000000", "d")
    assert len(found) == evaluation_of(trial).errors

    # Costs prefer an impossible answer, and the truth is impossible, too.
    joint = np.array([[-np.inf, -np.inf, 0.0]])
    rule = LossMatrix((*"abc",), np.array([[0.0, 1, 1]] * 3))
    assert len(replace(trial_of_classes("abc", [1], joint), rule=rule).mistakes()) == 1
