"""What the means of groups are worth, against an independent logistic regression."""

import numpy as np
import pytest
from scipy.optimize import minimize

from nbspam.classifier.combining import (
    HIDDEN,
    PRIOR_WORTH,
    RIDGE,
    fit_worth,
    limits_of,
    prior_worth,
    with_groups,
)
from nbspam.classifier.layer import probability
from nbspam.counts.table import CountTable
from nbspam.tokens.definition import GROUPS

# Of ham, of spam.
BOUNDED = limits_of(CountTable(("ham", "spam"), *[None] * 4))


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
    worth = fit_worth(means, y, None)

    error = probability(means @ worth[:-1] + worth[-1]) - y
    gradient = np.append(means.T @ error, error.sum()) + RIDGE * (worth - prior_worth())
    assert gradient == pytest.approx(0, abs=1e-3)
    assert np.abs(worth - prior_worth()).max() > 0.1


@pytest.mark.parametrize("seed", range(2))
def test_the_worth_is_that_of_an_independent_logistic_regression(seed):
    means, y = evidence(seed)
    theirs = minimize(penalised_loss, np.zeros(len(GROUPS) + 1), (means, y), "BFGS")

    assert fit_worth(means, y, None) == pytest.approx(theirs.x, abs=1e-4)


def test_without_messages_groups_are_worth_what_is_assumed():
    worth = fit_worth(np.zeros((0, len(GROUPS))), np.zeros(0, np.int64), None)

    assert worth.tolist() == [0.5] * len(GROUPS) + [0.0]


def test_hidden_words_that_point_to_ham_are_worth_nothing():
    means, y = evidence(0)
    means[:, HIDDEN] = np.where(y == 0, 5.0, 0.0)
    without = means.copy()
    without[:, HIDDEN] = 0.0

    assert fit_worth(means, y, None)[HIDDEN] < 0
    bounded = fit_worth(means, y, BOUNDED)
    assert bounded[HIDDEN] == 0
    others = np.arange(len(bounded)) != HIDDEN
    assert bounded[others] == pytest.approx(fit_worth(without, y, None)[others])


# --- older models --------------------------------------------------------------------------


def test_the_worth_of_fewer_groups_is_completed_by_what_is_assumed():
    worth = with_groups(np.array([1.0, 2.0, 3.0, 4.0, -0.5]))

    assert worth.tolist() == [1, 2, 3, 4, *prior_worth()[4:-1], -0.5]
    assert (with_groups(worth) == worth).all()


@pytest.mark.parametrize("n", [0, 1, len(GROUPS) + 2])
def test_the_worth_of_other_groups_is_refused(n):
    with pytest.raises(ValueError, match="groups"):
        with_groups(np.ones(n))
