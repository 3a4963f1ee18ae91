"""Trials made up for tests."""

import numpy as np

from nbspam.decision import default_rule
from nbspam.trial import Trial


def trial_of(y, score, fold=None, rule=None, **options):
    """Return a trial of ham and spam with these log-odds of spam."""
    score = np.asarray(score, np.float64)
    joint = np.stack([-np.logaddexp(0, score), -np.logaddexp(0, -score)], axis=1)
    options.setdefault("prior", np.array([0.5, 0.5]))
    return Trial(
        ("ham", "spam"),
        np.asarray(y),
        joint,
        default_rule(("ham", "spam"), calibrated=True) if rule is None else rule,
        np.zeros(len(score), np.int64) if fold is None else np.asarray(fold),
        **options,
    )


def random_trial(seed, n_docs=400, n_folds=4, bias=0.0):
    """Return a calibrated trial, but for a bias of its log-odds."""
    rng = np.random.default_rng(seed)
    score = rng.normal(0, 3, n_docs)
    y = (rng.random(n_docs) < 1 / (1 + np.exp(-score))).astype(np.int64)
    y[:2] = 0, 1
    return trial_of(y, score + bias, rng.permutation(n_docs) % n_folds)
