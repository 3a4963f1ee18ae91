"""Two models compared on the same documents in the same folds.

An average does not show whether a gain comes from a single lucky fold.  So every measure is
also compared fold by fold (won, tied, lost), and errors are compared document by document.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Floats, Integers
from nbspam.counts.corpus import compare_folds
from nbspam.decision import Rule
from nbspam.errors import UsageError
from nbspam.evaluation.evaluation import Trial
from nbspam.evaluation.judging import judge_several, table_trial
from nbspam.evaluation.metrics import auc, brier_losses, log_losses
from nbspam.settings import SettingsChoices, chosen_settings, look_at_items
from nbspam.sources.items import Item
from nbspam.tables.schema import Table
from nbspam.tables.training import TableSettings
from nbspam.verdicts import Skipped
from nbspam.workers import Workers


class Difference(NamedTuple):
    """One measure of both trials, and in how many folds the second is better."""

    name: str
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
    only_first_right: int  # documents
    only_second_right: int
    p_value: float  # of these two counts, by the two-sided `sign_test`


def compare(first: Trial, second: Trial) -> Comparison:
    """Return how two trials of the same documents and folds differ; raises UsageError."""
    same = np.array_equal(first.y, second.y) and np.array_equal(first.fold, second.fold)
    if first.classes != second.classes or not same:
        raise UsageError("compare: not the same documents; compare trials of one corpus")
    folds = [np.flatnonzero(first.fold == number) for number in np.unique(first.fold)]
    first_right, second_right = (trial.answers()[0] == trial.y for trial in (first, second))
    only_first = int(np.count_nonzero(first_right & ~second_right))
    only_second = int(np.count_nonzero(second_right & ~first_right))
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
    skipped: tuple[Skipped, ...]  # items that could not be read
    classes: tuple[str, ...]
    noun: str  # the documents' name, in the plural
    order: str | None  # of a stream, one of `sources.order.ORDERS`
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
    return _against_first(judge_several(items, settings, k, seed, jobs), rule_of)


def compare_tables(
    several: Sequence[tuple[Table, TableSettings]],
    k: int | str,
    seed: int,
    rule_of: Callable[[Trial], Rule],
    jobs: Workers = 1,
) -> Compared:
    """Return how models of several settings differ from the first, on the same rows."""
    trials = [table_trial(table, settings, k, seed, jobs=jobs) for table, settings in several]
    return _against_first(trials, rule_of)


def _against_first(trials: Sequence[Trial], rule_of: Callable[[Trial], Rule]) -> Compared:
    rule = rule_of(trials[0])  # the same costs for all
    first, *others = judged = tuple(replace(trial, rule=rule) for trial in trials)
    compared = tuple(compare(first, other) for other in others)
    return Compared(compared, first.skipped, first.classes, first.noun, first.order, judged)


def _differences(first: Trial, second: Trial, folds: list[Integers]) -> Iterator[Difference]:
    """Yield the difference of every measure that both trials have."""
    both = first, second
    by_fold = [_measures(trial, folds) for trial in both]
    total = [_measures(trial, [np.arange(len(first.y))]) for trial in both]
    for name in by_fold[0]:
        won, tied, lost = compare_folds(by_fold[1][name], by_fold[0][name])
        first_total, second_total = (float(measures[name][0]) for measures in total)
        yield Difference(name, first_total, second_total, won, tied, lost)


def sign_test(n: int, m: int) -> float:
    """Return the probability that n + m fair coins split at least as unevenly as n to m.

    Two-sided and exact.  If n and m count the documents that only one of two classifiers gets
    right, this is McNemar's test (Dietterich 1998).

    >>> sign_test(1, 5)
    0.21875
    """
    tail = sum(comb(n + m, k) for k in range(min(n, m) + 1))
    return min(1.0, 2 * tail / (1 << n + m))


def _measures(trial: Trial, folds: list[Integers]) -> dict[str, Floats]:
    """Return the measures that are compared, (n_folds,) each; less is better in all of them."""
    answers, names = trial.answers()
    n_classes, y, probability, score = len(trial.classes), trial.y, trial.probability, trial.score
    counted = {"errors": (answers != y) & (answers < n_classes)}
    if n_classes == 2:
        counted["false positives"] = (answers == 1) & (y == 0)
        counted["false negatives"] = (answers == 0) & (y == 1)
    if len(names) > n_classes:
        counted["undecided"] = answers >= n_classes
    numbers = {name: _of_folds(np.sum, each, folds) for name, each in counted.items()}
    numbers["cost"] = _of_folds(np.sum, trial.cost, folds)
    if score is not None:
        numbers["(1-AUC) %"] = np.array([100 * (1 - auc(y[of], score[of])) for of in folds])
    numbers["log loss"] = _of_folds(np.mean, log_losses(y, probability), folds)
    numbers["Brier score"] = _of_folds(np.mean, brier_losses(y, probability), folds)
    return numbers


def _of_folds(function: Callable[..., Any], each: Any, folds: list[Integers]) -> Floats:
    return np.array([function(each[of]) for of in folds], np.float64)
