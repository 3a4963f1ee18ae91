"""Choices by held-out answers: between ways of training, and between cutoffs.

Two models are compared on the same documents in the same folds.  An average does not show whether
a gain comes from a single lucky fold, so every measure is also compared fold by fold (won, tied,
lost), and errors are compared document by document.  If probabilities were perfect, the costs
alone would determine the cutoffs; tuned ones are used only if they are cheaper on held-out mail.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, lgamma, log
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Floats, Integers
from nbspam.classifier.combine import probability as probability_of
from nbspam.counts.corpus import Corpus
from nbspam.decision import HAM_AND_SPAM, Cutoffs, Rule
from nbspam.errors import UsageError
from nbspam.evaluation.evaluation import Trial
from nbspam.evaluation.judging import fold_trial, labelled_corpus
from nbspam.evaluation.metrics import auc, brier_losses, compare_folds, log_losses
from nbspam.evaluation.online import online_trial
from nbspam.settings import Settings, SettingsChoices, chosen_settings, look_at_items
from nbspam.sources.arrival import arranged
from nbspam.sources.items import Item
from nbspam.verdicts import Skipped
from nbspam.workers import Workers


class Difference(NamedTuple):
    """One measure of both trials, and in how many folds the second is better."""

    name: str  # a key of the JSON output
    first: float  # over all documents
    second: float
    won: int  # folds in which the second is better
    tied: int
    lost: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """The second of two trials against the first."""

    n_docs: int
    n_folds: int
    differences: tuple[Difference, ...]  # of measures of which less is better
    only_first_right: int  # documents; copies of a message, which agree, count once
    only_second_right: int
    p_value: float  # of these two counts, by the two-sided `sign_test`


def compare(first: Trial, second: Trial) -> Comparison:
    """Return how two trials of the same documents and folds differ; raises UsageError."""
    same = np.array_equal(first.y, second.y) and np.array_equal(first.fold, second.fold)
    if first.classes != second.classes or not same:
        raise UsageError(
            "compare: not the same documents; compare trials of one corpus, and if it has copies"
            " of mail, which as texts are none, with one --preset"
        )
    folds = [np.flatnonzero(first.fold == number) for number in np.unique(first.fold)]
    first_right, second_right = (trial.answers()[0] == trial.y for trial in (first, second))
    differing = first_right & ~second_right, second_right & ~first_right
    digests = np.arange(len(first.y)) if first.digests is None else first.digests
    only_first, only_second = (len(np.unique(digests[rows])) for rows in differing)
    return Comparison(
        len(first.y),
        len(folds),
        tuple(_differences(first, second, folds)),
        only_first,
        only_second,
        sign_test(only_first, only_second),
    )


class Compared(NamedTuple):
    """Several ways of training against the first one."""

    comparisons: tuple[Comparison, ...]
    trials: tuple[Trial, ...]  # the first one, and the others as they are compared


def compare_items(
    items: Iterable[Item],
    several: Sequence[SettingsChoices],
    k: int | str | None,
    seed: int,
    rule_of: Callable[[Trial], Rule],
    jobs: Workers = 1,
) -> Compared:
    """Return how models of several choices differ from the first, on labelled items.

    They are judged in the same k folds, or online without k.  rule_of: gives the rule by
    which all of them decide.  Raises UsageError.
    """
    is_text, many, items = look_at_items(items)
    settings = [chosen_settings(choices, is_text, many) for choices in several]
    return against_first(judge_several(items, settings, k, seed, jobs), rule_of)


def judge_several(
    items: Iterable[Item],
    several: Sequence[Settings],
    k: int | str | None,
    seed: int,
    jobs: Workers = 1,
) -> list[Trial]:
    """Return the answers of models with several settings to the same documents.

    k: number of folds, the same folds for all; None for a stream, see `online.judge_online`.
    Settings with the same tokens share one reading of the documents.
    """
    order = None
    if k is None:
        items, order = arranged(items, seed=seed)
    items = list(items)
    trials: list[Trial] = []
    read: dict[tuple[object, ...], tuple[Corpus, tuple[Skipped, ...]]] = {}
    for settings in several:
        parts = settings.reading, settings.strip, settings.attachments, settings.is_mail_combined
        how = *parts, settings.tokens, settings.authserv_id
        if how not in read:
            read[how] = labelled_corpus(items, settings, jobs)
        data, skipped = read[how]
        if k is None:
            trial = online_trial(data, settings, "everything")
        else:
            trial = fold_trial(data, settings, k, seed, jobs=jobs)
        trials.append(replace(trial, skipped=skipped, order=order))
    return trials


def against_first(trials: Sequence[Trial], rule_of: Callable[[Trial], Rule]) -> Compared:
    """Return how trials differ from the first, under the rule that `rule_of` gives for that."""
    rule = rule_of(trials[0])  # the same costs for all
    first, *others = judged = tuple(replace(trial, rule=rule) for trial in trials)
    return Compared(tuple(compare(first, other) for other in others), judged)


def _differences(first: Trial, second: Trial, folds: list[Integers]) -> Iterator[Difference]:
    """Yield the difference of every measure that both trials have."""
    parts = [*folds, np.arange(len(first.y))]
    of_first, of_second = (_measures(trial, parts) for trial in (first, second))
    for name, a in of_first.items():
        b = of_second[name]
        yield Difference(name, float(a[-1]), float(b[-1]), *compare_folds(b[:-1], a[:-1]))


def sign_test(n: int, m: int) -> float:
    """Return the probability that n + m fair coins split at least as unevenly as n to m.

    Two-sided.  If n and m count the documents that only one of two classifiers gets right, this is
    McNemar's test (Dietterich 1998) by the binomial distribution.
    """
    few, total = min(n, m), n + m
    log_ways = lgamma(total + 1) - lgamma(n + 1) - lgamma(m + 1)
    term, tail = exp(log_ways - total * log(2)), 0.0
    while term > 1e-17 * tail:
        tail += term
        term *= few / (total - few + 1)
        few -= 1
    return min(1.0, 2 * tail)


def _measures(trial: Trial, folds: list[Integers]) -> dict[str, Floats]:
    """Return the measures that are compared, (n_folds,) each; less is better in all of them."""
    answers, names = trial.answers()
    n_classes, y, probability, score = len(trial.classes), trial.y, trial.probability, trial.score
    counted = {"errors": trial.is_wrong}
    if n_classes == 2:
        counted["false_positives"] = (answers == 1) & (y == 0)
        counted["false_negatives"] = (answers == 0) & (y == 1)
    if len(names) > n_classes:
        counted["undecided"] = answers >= n_classes
    numbers = {name: _of_folds(np.sum, each, folds) for name, each in counted.items()}
    numbers["cost"] = _of_folds(np.sum, trial.cost, folds)
    if score is not None:
        numbers["auc_loss"] = np.array([100 * (1 - auc(y[of], score[of])) for of in folds])
    numbers["log_loss"] = _of_folds(np.mean, log_losses(y, probability), folds)
    numbers["brier"] = _of_folds(np.mean, brier_losses(y, probability), folds)
    return numbers


def _of_folds(function: Callable[..., Any], each: Any, folds: list[Integers]) -> Floats:
    return np.array([function(each[of]) for of in folds], np.float64)


# --- cutoffs tuned on a user's own mail ----------------------------------------------------

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


def check_tunable(classes: tuple[str, ...]) -> None:
    """Raise UsageError unless cutoffs can tell these classes apart."""
    if classes != HAM_AND_SPAM:
        names = ", ".join(classes)
        raise UsageError(f"tune: the classes are {names}; cutoffs are for ham and spam")


def tune(trial: Trial, derived: Cutoffs) -> Tuning:
    """Return the cheapest cutoffs for a trial's answers, and others; raises UsageError.

    derived: the costs, and the cutoffs that follow from them.
    """
    check_tunable(trial.classes)
    score, y = trial.joint[:, 1] - trial.joint[:, 0], trial.y
    held_out = 0.0
    for number in np.unique(trial.fold):
        own = trial.fold == number
        of_rest = cheapest_cutoffs(score[~own], y[~own], derived)
        held_out += trade_off(score[own], y[own], of_rest).cost
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
    probability = min(probability, 1 - 2.0**-53)  # high costs round it to 1
    return float(np.log(probability) - np.log1p(-probability))
