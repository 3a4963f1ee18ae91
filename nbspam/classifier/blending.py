"""Blending evidence: from tokens to honest probabilities of many classes.

Every group of a message's tokens (text, subject, route, web, pairs), scaled to unit length, is
judged twice: by complement and by multinomial naive Bayes.  What each judgement is worth, and
how far their sum can be believed, is learned from messages left out of the counts.  The sum
stays one over tokens: what they are worth goes into their weights.

Secret: how judgements that repeat one another are weighed, and made probabilities.
"""

import math
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Floats, Floats32, Integers, Octets
from nbspam.classifier.combining import Entries
from nbspam.counts.table import CountTable, entry_weights
from nbspam.tokens.definition import GROUPS

# E-025 chose these constants, the same for all corpora.
# Lidstone's addend to what a token weighs in all other classes (complement), in the class itself.
ALPHA_OTHERS, ALPHA_OWN = 0.03, 0.003
FOLDS = 5  # parts of the messages, each left out in its turn
RIDGE = 1.0  # strength of the prior, in messages, that every judgement is worth ...
PRIOR_WORTH = 1.0  # ... this much ...
PRIOR_TAIL = 5.0  # ... and that the sum is believed so far
_LOWEST, _HIGHEST = 1e-4, 1e3
_MAX_CELLS = 400_000  # messages times classes that are looked at: bounds time and memory
_ROWS = 1 << 16  # of a table of weights that are made at a time
_STEPS = 30
_NO_GAP = 1e-6  # nats, of which all is believed


class Blend(NamedTuple):
    """What judgements are worth, and how far their sum is believed."""

    worth: Floats  # (n_groups, 2): of each group's complement and multinomial judgement
    prior: float  # what the classes' shares in training are worth
    tail: float  # nats: score differences much above it say less than they seem to
    # (n_classes,) or (1,), nats: what other shares of the classes add (prevalence.py)
    shift: Floats = np.zeros(1)

    def answers(self, score: Floats) -> Floats:
        """Return log P(class given message), nats, but for a constant, of scores."""
        return log_posterior(score, self.tail) + self.shift


class GroupSums(NamedTuple):
    """What the tokens of each group add up to."""

    total: Floats  # (n_groups, n_classes) weights
    size: Floats  # (n_groups,) how many tokens are known, at least 1


def blend_to_array(blend: Blend) -> Floats:
    """Return a blend as one array for the model file: worths, prior, tail, shift."""
    return np.concatenate([blend.worth.ravel(), [blend.prior, blend.tail], blend.shift])


def blend_from_array(array: Floats, n_classes: int) -> Blend:
    """Return the blend that an array holds; raises ValueError."""
    worth, (prior, tail), shift = np.split(array, [2 * len(GROUPS), 2 * len(GROUPS) + 2])
    if not tail > 0 or len(shift) not in (1, n_classes):
        raise ValueError("its blend has no tail, or a shift of other classes")
    return Blend(worth.reshape(len(GROUPS), 2), float(prior), float(tail), shift)


def untaught_blend() -> Blend:
    """Return the blend that is believed before anything is known."""
    return Blend(np.full((len(GROUPS), 2), PRIOR_WORTH), PRIOR_WORTH, PRIOR_TAIL)


def linear_tables(table: CountTable, blend: Blend) -> tuple[Floats, Floats32]:
    """Return intercept (n_classes,) and weight (n_features, n_classes), nats.

    Score = intercept + the sum of the weights of a message's tokens, each times what it
    weighs in the message.
    """
    groups, sums = table.vocabulary.groups, group_sums(table)
    weight = np.empty(table.feature_count.shape, np.float32)
    for start in range(0, len(weight), _ROWS):
        rows = slice(start, start + _ROWS)
        judged = judgements(table.feature_count[rows], groups[rows], sums)
        weight[rows] = np.einsum("njk,nj->nk", judged, blend.worth[groups[rows]])
    return blend.prior * _log_shares(table.class_count), weight


def group_sums(table: CountTable) -> GroupSums:
    """Return the sums over all tokens of each group, whether or not there are any."""
    groups = table.vocabulary.groups
    size = np.maximum(np.bincount(groups, minlength=len(GROUPS)), 1)
    return GroupSums(_totals(table.feature_count, groups), size.astype(np.float64))


def judgements(count: Floats, groups: Octets, sums: GroupSums) -> Floats:
    """Return what tokens say for the classes, shape (n, 2, n_classes), nats.

    First by complement (Rennie et al. 2003, section 3.1), then by multinomial naive Bayes;
    less its mean over the classes, which says nothing.  count: (n, n_classes) weights of
    tokens; groups: (n,).
    """
    count = np.asarray(count, np.float64)  # in a model's file they may be 32 bits
    size, total = sums.size[:, None], sums.total
    others, other_total = (c.sum(axis=1, keepdims=True) - c for c in (count, total))
    both = np.empty((len(count), 2, count.shape[1]))
    both[:, 0] = np.log(other_total + ALPHA_OTHERS * size)[groups]
    both[:, 0] -= np.log(others + ALPHA_OTHERS)
    np.log(count + ALPHA_OWN, out=both[:, 1])
    both[:, 1] -= np.log(total + ALPHA_OWN * size)[groups]
    both -= both.mean(axis=2, keepdims=True)
    return both


def log_posterior(score: Floats, tail: float) -> Floats:
    """Return log P(class given message), nats, of scores; same shape (n_docs, n_classes).

    A class behind the best by a gap g has odds (1 + g / tail) ** -tail against it: exp(-g)
    for small gaps, but polynomial for large ones, as left-out messages show (E-023).
    """
    log = -tail * np.log1p((score.max(axis=1, keepdims=True) - score) / tail)
    return np.asarray(log - np.log(np.exp(log).sum(axis=1, keepdims=True)))


def believed(gap: float, tail: float) -> float:
    """Return which part of a gap between two scores, one the best, is left of their log-odds."""
    return tail * math.log1p(gap / tail) / gap if gap > _NO_GAP else 1.0


def fit(table: CountTable, entries: Entries, y: Integers, weighting: str) -> Blend:
    """Return the blend that explains messages best, left out of the counts fold by fold.

    table: counts of all messages, these among them.  y: (n_docs,) index of their class.
    """
    n_classes = len(table.classes)
    step = -(-entries.n_docs * n_classes // _MAX_CELLS)
    if step > 1:
        some = np.arange(entries.n_docs) % step == 0
        entries, y = _part(entries, some), y[some]
    sums = group_sums(table)
    judged = np.empty((entries.n_docs, 2 * len(GROUPS) + 1, n_classes))
    judged[:, -1] = _log_shares(table.class_count)
    for number in range(FOLDS):
        fold = np.arange(entries.n_docs) % FOLDS == number
        judged[fold, :-1] = _left_out(table, sums, _part(entries, fold), y[fold], weighting)
    worth = _fit_worth(judged, y)
    return Blend(worth[:-2].reshape(-1, 2), float(worth[-2]), float(worth[-1]))


def _part(entries: Entries, documents: Booleans) -> Entries:
    """Return some documents alone; documents: (n_docs,)."""
    part = entries.take(documents[entries.documents])
    place = np.cumsum(documents) - 1
    return part._replace(n_docs=int(np.count_nonzero(documents)), documents=place[part.documents])


def _left_out(
    table: CountTable, sums: GroupSums, entries: Entries, y: Integers, weighting: str
) -> Floats:
    """Return judgements of messages by the counts of all others.

    Shape (n_docs, 2 * n_groups, n_classes), nats.
    """
    n_classes = len(table.classes)
    columns, place = np.unique(entries.columns, return_inverse=True)
    groups = table.vocabulary.groups[columns]
    cell = place * n_classes + y[entries.documents]
    n_cells = len(columns) * n_classes
    own = np.asarray(np.bincount(cell, _values(entries, weighting), n_cells), np.float64)
    own = own.reshape(-1, n_classes)
    rest = GroupSums(np.maximum(sums.total - _totals(own, groups), 0.0), sums.size)
    # What nobody else has said is not known, and has no part in the length.
    known = table.document_frequency[columns] > np.bincount(place, minlength=len(columns))
    count = np.maximum(table.feature_count[columns[known]] - own[known], 0.0)
    judged = judgements(count, groups[known], rest)
    is_known = known[place]
    entries = entries.take(is_known)
    place = (np.cumsum(known) - 1)[place[is_known]]
    return _summed(entries, _values(entries, weighting), judged, place)


def _values(entries: Entries, weighting: str) -> Floats:
    return entry_weights(entries.counts, entries.documents, entries.groups, weighting)


def _summed(entries: Entries, value: Floats, judged: Floats, place: Integers) -> Floats:
    """Return each document's and group's sums of judged tokens times what they weigh."""
    n_cells, n_classes = entries.n_docs * len(GROUPS), judged.shape[2]
    cell = entries.documents * len(GROUPS) + entries.groups
    sums = np.empty((n_cells, 2, n_classes))
    for kind in range(2):
        for k in range(n_classes):
            sums[:, kind, k] = np.bincount(cell, judged[:, kind, k][place] * value, n_cells)
    return sums.reshape(entries.n_docs, 2 * len(GROUPS), n_classes)


def _fit_worth(judged: Floats, y: Integers) -> Floats:
    """Fit what judgements are worth, and the tail, by Newton steps; shape (n_judgements + 1,).

    judged: (n_docs, n_judgements, n_classes), nats.  All are positive: their logarithms are
    what is fitted, by Fisher's information, under a normal prior.
    """
    rows = np.arange(len(y))

    def loss(theta: Floats) -> float:
        score = np.einsum("njk,j->nk", judged, np.exp(theta[:-1]))
        log = log_posterior(score, float(np.exp(theta[-1])))
        return float(0.5 * RIDGE * ((theta - prior) ** 2).sum() - log[rows, y].sum())

    prior = np.log(np.append(np.full(judged.shape[1], PRIOR_WORTH), PRIOR_TAIL))
    theta, best = prior.copy(), loss(prior)
    for _ in range(_STEPS):
        slope, information = _derivatives(judged, y, theta)
        slope += RIDGE * (theta - prior)
        step = np.linalg.solve(information + RIDGE * np.eye(len(theta)), slope)
        step *= min(1.0, 2.0 / max(np.abs(step).max(), 1e-9))
        new = np.clip(theta - step, np.log(_LOWEST), np.log(_HIGHEST))
        while (value := loss(new)) > best and np.abs(step).max() > 1e-6:
            step /= 2
            new = np.clip(theta - step, np.log(_LOWEST), np.log(_HIGHEST))
        if value >= best - 1e-6 * len(y):
            break
        theta, best = new, value
    return np.asarray(np.exp(theta))


def _derivatives(judged: Floats, y: Integers, theta: Floats) -> tuple[Floats, Floats]:
    """Return slope and Fisher's information of the log loss by the logarithms theta."""
    rows = np.arange(len(y))
    worth, tail = np.exp(theta[:-1]), np.exp(theta[-1])
    score = np.einsum("njk,j->nk", judged, worth)
    top = score.argmax(axis=1)
    gap = score[rows, top][:, None] - score
    stretch = 1 + gap / tail
    p = np.exp(log_posterior(score, float(tail)))
    by = np.empty((len(y), len(theta), score.shape[1]))
    by[:, :-1] = judged - judged[rows, :, top][:, :, None]
    by[:, :-1] *= worth[:, None] / stretch[:, None, :]
    by[:, -1] = gap / stretch - tail * np.log(stretch)
    mean = np.einsum("njk,nk->nj", by, p)
    slope = mean.sum(axis=0) - by[rows, :, y].sum(axis=0)
    root = (by * np.sqrt(p)[:, None, :]).transpose(1, 0, 2).reshape(len(theta), -1)
    return slope, root @ root.T - mean.T @ mean


def _totals(count: Floats, groups: Octets) -> Floats:
    """Return the sums of weights by group and class, shape (n_groups, n_classes)."""
    columns = [np.bincount(groups, count[:, k], len(GROUPS)) for k in range(count.shape[1])]
    return np.asarray(np.stack(columns, axis=1))


def _log_shares(class_count: Floats) -> Floats:
    """Return log P(class) less its mean over the classes, shape (n_classes,), nats."""
    log = np.log(class_count)
    return np.asarray(log - log.mean())
