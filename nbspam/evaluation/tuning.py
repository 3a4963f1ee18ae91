"""Cutoffs tuned on a user's own mail, compared with those that follow from the costs.

If probabilities were perfect, the costs alone would determine the cutoffs.  Tuned cutoffs are
used only if they are cheaper on held-out mail.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Floats, Integers
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.combine import probability as probability_of
from nbspam.decision import FP_COST, HAM_AND_SPAM, Cutoffs, cutoffs
from nbspam.errors import UsageError
from nbspam.evaluation.evaluation import Trial
from nbspam.evaluation.judging import judge_folds
from nbspam.sources.items import Item
from nbspam.verdicts import Skipped
from nbspam.workers import Workers

# Log-odds of the cutoffs tried: fine enough for any costs, coarse enough not to separate
# single messages.
_TRIED = np.arange(-140, 141) / 10
# Spam cutoffs shown in the table besides the derived and the tuned one.
_SHOWN = (0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)


class TradeOff(NamedTuple):
    """The mistakes that cutoffs lead to, in messages."""

    cutoffs: Cutoffs
    false_positives: int
    false_negatives: int
    unsure: int
    cost: float  # of all messages


@dataclass(frozen=True, slots=True)
class Tuning:
    """The cutoffs derived from costs, the tuned ones, and a table of others."""

    n_docs: int
    derived: TradeOff
    found: TradeOff  # the tuned cutoffs, on the messages they were tuned on
    held_out_cost: float  # sum over folds of the cost of cutoffs tuned on the other folds
    table: tuple[TradeOff, ...]  # by spam cutoff; the ham cutoff is the chosen one

    @property
    def chosen(self) -> TradeOff:
        """The cutoffs to use: the tuned ones if tuning was cheaper on held-out mail."""
        return self.found if self.held_out_cost < self.derived.cost else self.derived


class Tuned(NamedTuple):
    """A tuning, and the items that could not be read for it."""

    tuning: Tuning
    skipped: tuple[Skipped, ...]


def tune_classifier(
    classifier: Classifier,
    items: Iterable[Item],
    fp_cost: float | None = None,
    unsure_cost: float | None = None,
    k: int | str = 10,
    seed: int = 0,
    jobs: Workers = 1,
) -> Tuned:
    """Return the best cutoffs of a classifier for some costs on labelled items.

    The items are judged by cross-validation in k folds, with the classifier's settings.
    fp_cost, unsure_cost: see `cutoffs`.  Raises UsageError.
    """
    derived = cutoffs(FP_COST if fp_cost is None else fp_cost, unsure_cost)
    trial = judge_folds(items, classifier.settings, k, seed, jobs)
    tuning = tune(trial, derived)
    return Tuned(tuning, trial.skipped)


def tune(trial: Trial, derived: Cutoffs) -> Tuning:
    """Return the cheapest cutoffs for a trial's answers, and others; raises UsageError.

    derived: the costs, and the cutoffs that follow from them.
    """
    if trial.classes != HAM_AND_SPAM:
        raise UsageError(
            f"tune: the classes are {', '.join(trial.classes)}; cutoffs are for ham and spam"
        )
    score, y = trial.joint[:, 1] - trial.joint[:, 0], trial.y
    held_out = 0.0
    for number in np.unique(trial.fold):
        own = trial.fold == number
        cutoffs = cheapest_cutoffs(score[~own], y[~own], derived)
        held_out += trade_off(score[own], y[own], cutoffs).cost
    by_costs = trade_off(score, y, derived)
    found = trade_off(score, y, cheapest_cutoffs(score, y, derived))
    ham = (found if held_out < by_costs.cost else by_costs).cutoffs.ham
    rows = trade_offs(trial, derived, ham, {derived.spam, found.cutoffs.spam})
    return Tuning(len(y), by_costs, found, held_out, rows)


def trade_offs(
    trial: Trial, derived: Cutoffs, ham: float, more: Iterable[float] = ()
) -> tuple[TradeOff, ...]:
    """Return the mistakes that cutoffs between 0.1 and 0.999 lead to, by spam cutoff.

    derived: the costs.  ham: the other cutoff, if unsure is an answer.  more: spam cutoffs.
    """
    score = trial.joint[:, 1] - trial.joint[:, 0]
    shown = sorted({*_SHOWN, *more})
    return tuple(trade_off(score, trial.y, _moved(derived, spam, ham)) for spam in shown)


def _moved(cutoffs: Cutoffs, spam: float, ham: float) -> Cutoffs:
    """Return cutoffs for the same costs; without unsure, `ham` is not used."""
    is_sure = cutoffs.unsure_cost is None
    return Cutoffs(spam, spam if is_sure else min(ham, spam), cutoffs.fp_cost, cutoffs.unsure_cost)


def trade_off(score: Floats, y: Integers, cutoffs: Cutoffs) -> TradeOff:
    """Return the mistakes that cutoffs lead to.

    score: log-odds of spam, nats, (n_docs,).  y: (n_docs,), 1 for spam.
    """
    spam = probability_of(score)
    labels = cutoffs.labels(np.column_stack([1 - spam, spam]))
    action = np.array([cutoffs.actions.index(label) for label in labels], np.int64)
    count = np.bincount(3 * y + action, minlength=6)
    cost = float(cutoffs.loss[y, action].sum())
    return TradeOff(cutoffs, int(count[1]), int(count[3]), int(count[2] + count[5]), cost)


def cheapest_cutoffs(score: Floats, y: Integers, derived: Cutoffs) -> Cutoffs:
    """Return the cheapest cutoffs for these messages.

    Ties go to the cutoffs nearest to `derived` in log-odds.  score: log-odds of spam,
    nats, (n_docs,).
    """
    ham, spam = np.sort(score[y == 0]), np.sort(score[y == 1])
    # How many ham and spam a cutoff for spam catches, and how many a cutoff for ham does.
    ham_caught = len(ham) - np.searchsorted(ham, _TRIED)
    spam_caught = len(spam) - np.searchsorted(spam, _TRIED)
    ham_below = np.searchsorted(ham, _TRIED, side="right")
    spam_below = np.searchsorted(spam, _TRIED, side="right")
    if derived.unsure_cost is None:
        cost = derived.fp_cost * ham_caught + len(spam) - spam_caught
        at = _nearest(cost, np.abs(_TRIED - _log_odds(derived.spam)))
        return _moved(derived, float(probability_of(_TRIED[at])), 0.0)
    called = (ham_caught + spam_caught)[None, :] + (ham_below + spam_below)[:, None]
    cost = derived.fp_cost * ham_caught[None, :] + spam_below[:, None]
    cost = cost + derived.unsure_cost * (len(score) - called)
    cost[_TRIED[:, None] > _TRIED[None, :]] = np.inf
    distance = np.abs(_TRIED - _log_odds(derived.spam))[None, :]
    distance = distance + np.abs(_TRIED - _log_odds(derived.ham))[:, None]
    low, high = divmod(_nearest(cost, distance), len(_TRIED))
    return _moved(derived, float(probability_of(_TRIED[high])), float(probability_of(_TRIED[low])))


def _nearest(cost: Any, distance: Any) -> int:
    """Return the flat index of the least cost; of equal costs, of the least distance."""
    best = cost <= cost.min() + 1e-9
    return int(np.where(best, distance, np.inf).argmin())


def _log_odds(probability: float) -> float:
    return float(np.log(probability) - np.log1p(-probability))
