"""Blending: how evidence for many classes adds up to calibrated probabilities.

Each group of a message's tokens (text, subject, route, web, pairs, hidden), scaled to unit length,
gives two judgements: one by complement and one by multinomial naive Bayes.  Their sum is weighted:
the weight (worth) of each judgement, and a parameter that shrinks large score differences (the
tail), are fitted to messages held out of the counts.  The score remains a sum over tokens.
"""

import math
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Floats, Integers, Octets
from nbspam.classifier.sum import weighted_sums
from nbspam.counts.table import CountTable, entry_weights, token_counts_of
from nbspam.printing import tracked
from nbspam.settings import Settings
from nbspam.tokens.definition import GROUPS
from nbspam.tokens.sparse import Documents

# E-025 chose these constants, the same for all corpora.
# Lidstone's addends: to a token's weight in all other classes (complement), and in the class
# itself (multinomial).
ALPHA_OTHERS, ALPHA_OWN = 0.03, 0.003
_FOLDS = 5  # parts of the messages, each held out in turn
_RIDGE = 1.0  # strength of the prior on the logarithms of worth and tail
_PRIOR_WORTH = 1.0  # prior worth of each judgement
PRIOR_TAIL = 5.0  # prior tail, nats
_LOWEST, _HIGHEST = 1e-4, 1e3  # bounds of worth and tail
_MAX_CELLS = 400_000  # messages times classes used for a fit: bounds its time and memory
_STEPS = 30  # Newton steps at most
_ROWS = 1 << 16  # tokens that are judged together, which bounds memory
_NO_GAP = 1e-6  # nats; smaller gaps are not shrunk


class GroupSums(NamedTuple):
    """The sums over all counted tokens of each group."""

    total: Floats  # (n_groups, n_classes) sums of weights
    size: Floats  # (n_groups,) number of tokens


class Blend(NamedTuple):
    """The fitted weights of judgements and of the class prior, and the tail."""

    worth: Floats  # (n_groups, 2) weights of each group's complement and multinomial judgement
    prior: float  # weight of the log shares of the classes
    tail: float  # nats; score differences well above it are shrunk
    sums: GroupSums  # of the counts that scores are computed from

    def joint(self, table: CountTable, documents: Documents, weighting: str) -> Floats:
        """Return log P(class given document), nats up to a constant; see `LogTables.joint`."""
        groups = table.vocabulary.groups[documents.tokens]
        value = entry_weights(documents, groups, weighting)
        score = weighted_sums(documents, self._weight(table, documents.tokens), value)
        return log_posterior(score + self._constant(table), self.tail)

    def _weight(self, table: CountTable, columns: Integers) -> Floats:
        """Return tokens' weighted evidence for each class, nats, shape (n_tokens, n_classes)."""
        groups = table.vocabulary.groups[columns]
        judged = judgements(table.feature_count[columns], groups, self.sums)
        return np.asarray(np.einsum("njk,nj->nk", judged, self.worth[groups]))

    def token_weights(self, table: CountTable) -> Floats:
        """Return the evidence of each token alone, shape (n_features, n_classes), nats."""
        columns = np.arange(len(table.vocabulary))
        starts = range(0, len(columns), _ROWS)
        return np.concatenate([self._weight(table, columns[i : i + _ROWS]) for i in starts])

    def _constant(self, table: CountTable) -> Floats:
        return self.prior * _log_shares(table.class_count)

    def shares(
        self, table: CountTable, documents: Documents, weighting: str, towards: int, against: int
    ) -> tuple[Floats, float]:
        """See `LogTables.shares`."""
        groups = table.vocabulary.groups[documents.tokens]
        value = entry_weights(documents, groups, weighting)
        weight = self._weight(table, documents.tokens)
        constant = self._constant(table)
        difference = (weight[:, towards] - weight[:, against]).take(documents.columns) * value
        gap = float(difference.sum() + constant[towards] - constant[against])
        # The tail shrinks the whole sum; each share is shrunk by the same factor.
        shares = difference * believed(abs(gap), self.tail)
        joint = self.joint(table, documents, weighting)[0]
        return shares, float(joint[towards] - joint[against] - shares.sum())

    def recounted(self, table: CountTable, settings: Settings) -> "Blend":
        """Return the same blend with the sums of a changed table."""
        return self._replace(sums=group_sums(table))

    def counted(self, groups: Octets, weights: Floats, appeared: Integers) -> "Blend":
        """Return the blend after the counts of some tokens have changed.

        groups: (n_tokens,).  weights: (n_tokens, n_classes) the increase of the counts.
        appeared: (n_tokens,) 1 for a new token, -1 for one that no message has any more, else 0.
        """
        size = np.bincount(groups, appeared, len(GROUPS))
        total = _totals(weights, groups)
        return self._replace(sums=GroupSums(self.sums.total + total, self.sums.size + size))


def blend_to_dict(blend: Blend) -> dict[str, Any]:
    """Return the blend as plain values for the model file."""
    return {
        "blend": np.append(blend.worth.ravel(), [blend.prior, blend.tail]),
        "group_total": blend.sums.total,
        "group_size": blend.sums.size,
    }


def blend_from_dict(state: dict[str, Any]) -> Blend:
    """Return the blend that a model file holds."""
    *worth, prior, tail = state["blend"].tolist()
    sums = GroupSums(state["group_total"], state["group_size"])
    return Blend(np.array(worth).reshape(-1, 2), prior, tail, sums)


def group_sums(table: CountTable) -> GroupSums:
    """Return the sums of a table's counts over the tokens of each group."""
    groups = table.vocabulary.groups
    counted = table.document_frequency > 0
    size = np.bincount(groups[counted], minlength=len(GROUPS))
    return GroupSums(_totals(table.feature_count, groups), size.astype(np.float64))


def judgements(count: Floats, groups: Octets, sums: GroupSums) -> Floats:
    """Return the evidence of tokens for classes by both methods, nats, shape (n, 2, n_classes).

    First by complement (Rennie et al. 2003, section 3.1), then by multinomial naive Bayes.  The
    mean over the classes is subtracted from each, which changes no difference between classes.
    count: (n, n_classes) sums of tokens' weights; groups: (n,).
    """
    count = np.asarray(count, np.float64)  # model files may hold them in 32 bits
    size, total = np.maximum(sums.size, 1)[:, None], sums.total
    others, other_total = (c.sum(axis=1, keepdims=True) - c for c in (count, total))
    both = np.empty((len(count), 2, count.shape[1]))
    both[:, 0] = np.log(other_total + ALPHA_OTHERS * size)[groups]
    both[:, 0] -= np.log(others + ALPHA_OTHERS)
    np.log(count + ALPHA_OWN, out=both[:, 1])
    both[:, 1] -= np.log(total + ALPHA_OWN * size)[groups]
    both -= both.mean(axis=2, keepdims=True)
    return both


def log_posterior(score: Floats, tail: float) -> Floats:
    """Return log P(class given message), nats, from scores; same shape (n_docs, n_classes).

    A class whose score is lower than the best by a gap g has odds of (1 + g / tail) ** -tail
    against the best class.  That is about exp(-g) for small gaps but polynomial for large ones,
    as held-out messages show (E-023).
    """
    log = -tail * np.log1p((score.max(axis=1, keepdims=True) - score) / tail)
    return np.asarray(log - np.log(np.exp(log).sum(axis=1, keepdims=True)))


def believed(gap: float, tail: float) -> float:
    """Return the factor, at most 1, by which the tail shrinks a gap between scores.

    gap: the best class's score minus another class's, nats.  Factor times gap is the log-odds of
    the two classes (see `log_posterior`).
    """
    return tail * math.log1p(gap / tail) / gap if gap > _NO_GAP else 1.0


def fit_blend(table: CountTable, documents: Documents, y: Integers, weighting: str) -> Blend:
    """Return the blend that predicts messages best when they are held out, fold by fold.

    table: counts of all messages, including these.  documents: over columns of the table.
    y: (n_docs,) class of each document.
    """
    n_classes = len(table.classes)
    step = -(-documents.n_docs * n_classes // _MAX_CELLS)
    if step > 1:
        some = np.arange(documents.n_docs) % step == 0
        documents, y = documents.take(some), y[some]
    sums = group_sums(table)
    # Texts have tokens of one or two groups; the worth of the others stays as it is assumed.
    found = np.bincount(table.vocabulary.groups[documents.tokens], minlength=len(GROUPS)) > 0
    is_fitted = np.repeat(found, 2)  # of each group's two judgements
    judged = np.empty((documents.n_docs, np.count_nonzero(is_fitted) + 1, n_classes))
    judged[:, -1] = _log_shares(table.class_count)
    for number in tracked(range(_FOLDS), "folds"):
        fold = np.arange(documents.n_docs) % _FOLDS == number
        part = documents.take(fold).without_unused()
        judged[fold, :-1] = _left_out(table, sums, part, y[fold], weighting)[:, is_fitted]
    *fitted, prior, tail = _fit_worth(judged, y).tolist()
    worth = np.full(2 * len(GROUPS), _PRIOR_WORTH)
    worth[is_fitted] = fitted
    return Blend(worth.reshape(-1, 2), prior, tail, sums)


def _left_out(
    table: CountTable, sums: GroupSums, documents: Documents, y: Integers, weighting: str
) -> Floats:
    """Return the weighted sums by group of judgements by the counts of all other messages, nats.

    Shape (n_docs, 2 * n_groups, n_classes).
    """
    columns = documents.tokens
    groups = table.vocabulary.groups[columns]
    own = token_counts_of(documents, y, len(table.classes), groups, weighting)
    total = np.maximum(sums.total - _totals(own.feature_count, groups), 0.0)
    # Tokens that no other message has are unknown, and do not add to the length.
    known = table.document_frequency[columns] > own.document_frequency
    count = np.maximum(table.feature_count[columns] - own.feature_count, 0.0)
    judged = judgements(count[known], groups[known], GroupSums(total, sums.size))
    documents = documents.renumbered(np.where(known, columns, -1))
    value = entry_weights(documents, groups[known], weighting)
    n_cells, n_classes = documents.n_docs * len(GROUPS), judged.shape[2]
    cell = documents.rows().astype(np.int64) * len(GROUPS)
    cell += groups[known].take(documents.columns)
    sums_by_group = np.empty((n_cells, 2, n_classes))
    for kind, k in product(range(2), range(n_classes)):
        each = judged[:, kind, k].take(documents.columns) * value
        sums_by_group[:, kind, k] = np.bincount(cell, each, n_cells)
    return sums_by_group.reshape(documents.n_docs, 2 * len(GROUPS), n_classes)


def _fit_worth(judged: Floats, y: Integers) -> Floats:
    """Fit the worth of judgements and the tail by Newton steps; shape (n_judgements + 1,).

    judged: (n_docs, n_judgements, n_classes), nats.  The parameters are positive, so their
    logarithms are fitted: by Fisher scoring, under a normal prior.
    """
    rows = np.arange(len(y))

    def loss(theta: Floats) -> float:
        score = np.einsum("njk,j->nk", judged, np.exp(theta[:-1]))
        log = log_posterior(score, float(np.exp(theta[-1])))
        return float(0.5 * _RIDGE * ((theta - prior) ** 2).sum() - log[rows, y].sum())

    prior = np.log(np.append(np.full(judged.shape[1], _PRIOR_WORTH), PRIOR_TAIL))
    theta, best = prior.copy(), loss(prior)
    for _ in range(_STEPS):
        slope, information = _derivatives(judged, y, theta)
        slope += _RIDGE * (theta - prior)
        step = np.linalg.solve(information + _RIDGE * np.eye(len(theta)), slope)
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
    """Return the gradient and the Fisher information of the log loss at theta.

    theta: logarithms of the worth of each judgement and of the tail.
    """
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
    # Where there are no tokens, numpy adds weights up as whole numbers.
    return np.stack(columns, axis=1).astype(np.float64)


def _log_shares(class_count: Floats) -> Floats:
    """Return log P(class) minus its mean over the classes, nats, shape (n_classes,)."""
    log = np.log(class_count)
    return np.asarray(log - log.mean())
