"""Blending evidence: from tokens to honest probabilities of many classes.

Every group of a message's tokens (text, subject, route, web, pairs), scaled to unit length, is
judged twice: by complement and by multinomial naive Bayes.  What each judgement is worth, and
how far their sum can be believed, is learned from messages left out of the counts.  The sum
stays one over tokens: what they are worth goes into their weights.

Secret: how judgements that repeat one another are weighed, and made probabilities.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Floats, Integers, Octets
from nbspam.classifier.summing import weighted_sums
from nbspam.counts.table import CountTable, counts_of, entry_weights
from nbspam.settings import Settings
from nbspam.tokens.definition import GROUPS
from nbspam.tokens.documents import Documents

# E-025 chose these constants, the same for all corpora.
# Lidstone's addend to what a token weighs in all other classes (complement), in the class itself.
ALPHA_OTHERS, ALPHA_OWN = 0.03, 0.003
FOLDS = 5  # parts of the messages, each left out in its turn
RIDGE = 1.0  # strength of the prior, in messages, that every judgement is worth ...
PRIOR_WORTH = 1.0  # ... this much ...
PRIOR_TAIL = 5.0  # ... and that the sum is believed so far
_LOWEST, _HIGHEST = 1e-4, 1e3
_MAX_CELLS = 400_000  # messages times classes that are looked at: bounds time and memory
_STEPS = 30
_ROWS = 1 << 16  # tokens that are looked at together
_NO_GAP = 1e-6  # nats, of which all is believed


class GroupSums(NamedTuple):
    """The sums over all counted tokens of each group."""

    total: Floats  # (n_groups, n_classes) weights
    size: Floats  # (n_groups,) number of tokens


class Blend(NamedTuple):
    """What judgements are worth, and how far their sum is believed."""

    worth: Floats  # (n_groups, 2): of each group's complement and multinomial judgement
    prior: float  # what the classes' shares in training are worth
    tail: float  # nats: score differences much above it say less than they seem to
    sums: GroupSums  # of the counts that it is asked with

    def joint(self, table: CountTable, documents: Documents, weighting: str) -> Floats:
        """Return log P(class given document), nats up to a constant, shape (n_docs, n_classes).

        documents: over columns of the table.
        """
        groups = table.vocabulary.groups[documents.tokens]
        value = entry_weights(documents, groups, weighting)
        score = weighted_sums(documents, self._weight(table, documents.tokens), value)
        return log_posterior(score + self._constant(table), self.tail)

    def _weight(self, table: CountTable, columns: Integers) -> Floats:
        """Return what some tokens say for the classes, shape (n_tokens, n_classes), nats."""
        groups = table.vocabulary.groups[columns]
        judged = judgements(table.feature_count[columns], groups, self.sums)
        return np.asarray(np.einsum("njk,nj->nk", judged, self.worth[groups]))

    def token_weights(self, table: CountTable, at_once: int = _ROWS) -> Floats:
        """Return what each token says alone, shape (n_features, n_classes), nats.

        at_once: the number of tokens that are looked at together, which bounds memory.
        """
        columns = np.arange(len(table.vocabulary))
        starts = range(0, len(columns), at_once)
        return np.concatenate([self._weight(table, columns[i : i + at_once]) for i in starts])

    def _constant(self, table: CountTable) -> Floats:
        return self.prior * _log_shares(table.class_count)

    def shares(
        self, table: CountTable, documents: Documents, weighting: str, towards: int, against: int
    ) -> tuple[Floats, float]:
        """Return what each token of one document adds to the log-odds of two classes.

        With the constant: (nnz,) and a number, nats.
        """
        groups = table.vocabulary.groups[documents.tokens]
        value = entry_weights(documents, groups, weighting)
        weight = self._weight(table, documents.tokens)
        constant = self._constant(table)
        difference = (weight[:, towards] - weight[:, against]).take(documents.columns) * value
        gap = float(difference.sum() + constant[towards] - constant[against])
        # The tail shrinks the whole sum, and every share of it alike.
        shares = difference * believed(abs(gap), self.tail)
        joint = self.joint(table, documents, weighting)[0]
        return shares, float(joint[towards] - joint[against] - shares.sum())

    def recounted(self, table: CountTable, settings: Settings) -> "Blend":
        """Return the blend for the counts as they are by now."""
        return self._replace(sums=group_sums(table))

    def counted(self, groups: Octets, weights: Floats, appeared: Integers) -> "Blend":
        """Return the blend after the counts of some tokens have changed.

        groups: (n_tokens,); weights: (n_tokens, n_classes) by which they grew; appeared:
        (n_tokens,) 1 where a token is new, -1 where no message has it any more.
        """
        size = np.bincount(groups, appeared, len(GROUPS))
        total = _totals(weights, groups)
        return self._replace(sums=GroupSums(self.sums.total + total, self.sums.size + size))


def blend_to_dict(blend: Blend) -> dict[str, Any]:
    """Return plain values for the model file."""
    return {
        "blend": np.append(blend.worth.ravel(), [blend.prior, blend.tail]),
        "group_total": blend.sums.total,
        "group_size": blend.sums.size,
    }


def blend_from_dict(state: dict[str, Any], table: CountTable) -> Blend:
    """Return the blend that a model file holds; raises ValueError."""
    n_worth = 2 * len(GROUPS)
    worth, (prior, tail) = state["blend"][:n_worth], state["blend"][n_worth : n_worth + 2]
    if not tail > 0:
        raise ValueError("its blend has no tail")
    if "group_total" in state:
        sums = GroupSums(state["group_total"], state["group_size"])
    else:  # older files have tables of weights instead
        sums = group_sums(table)
    if sums.total.shape != (len(GROUPS), len(table.classes)) or sums.size.shape != (len(GROUPS),):
        raise ValueError("its sums of groups do not fit its classes")
    return Blend(worth.reshape(len(GROUPS), 2), float(prior), float(tail), sums)


def group_sums(table: CountTable) -> GroupSums:
    """Return the sums over all tokens of each group."""
    groups = table.vocabulary.groups
    counted = table.document_frequency > 0
    size = np.bincount(groups[counted], minlength=len(GROUPS))
    return GroupSums(_totals(table.feature_count, groups), size.astype(np.float64))


def judgements(count: Floats, groups: Octets, sums: GroupSums) -> Floats:
    """Return what tokens say for the classes, shape (n, 2, n_classes), nats.

    First by complement (Rennie et al. 2003, section 3.1), then by multinomial naive Bayes;
    less its mean over the classes, which says nothing.  count: (n, n_classes) weights of
    tokens; groups: (n,).
    """
    count = np.asarray(count, np.float64)  # in a model's file they may be 32 bits
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
    """Return log P(class given message), nats, of scores; same shape (n_docs, n_classes).

    A class behind the best by a gap g has odds (1 + g / tail) ** -tail against it: exp(-g)
    for small gaps, but polynomial for large ones, as left-out messages show (E-023).
    """
    log = -tail * np.log1p((score.max(axis=1, keepdims=True) - score) / tail)
    return np.asarray(log - np.log(np.exp(log).sum(axis=1, keepdims=True)))


def believed(gap: float, tail: float) -> float:
    """Return which part of a gap between two scores, one the best, is left of their log-odds."""
    return tail * math.log1p(gap / tail) / gap if gap > _NO_GAP else 1.0


def fit(
    table: CountTable,
    documents: Documents,
    y: Integers,
    weighting: str,
    max_cells: int = _MAX_CELLS,
) -> Blend:
    """Return the blend that explains messages best, left out of the counts fold by fold.

    table: counts of all messages, these among them.  documents: over columns of the table.
    y: (n_docs,) index of their class.  max_cells: messages times classes that are looked at.
    """
    n_classes = len(table.classes)
    step = -(-documents.n_docs * n_classes // max_cells)
    if step > 1:
        some = np.arange(documents.n_docs) % step == 0
        documents, y = documents.take(some), y[some]
    sums = group_sums(table)
    judged = np.empty((documents.n_docs, 2 * len(GROUPS) + 1, n_classes))
    judged[:, -1] = _log_shares(table.class_count)
    for number in range(FOLDS):
        fold = np.arange(documents.n_docs) % FOLDS == number
        part = documents.take(fold).without_unused()
        judged[fold, :-1] = _left_out(table, sums, part, y[fold], weighting)
    worth = _fit_worth(judged, y)
    return Blend(worth[:-2].reshape(-1, 2), float(worth[-2]), float(worth[-1]), sums)


def _left_out(
    table: CountTable, sums: GroupSums, documents: Documents, y: Integers, weighting: str
) -> Floats:
    """Return judgements of messages by the counts of all others.

    Shape (n_docs, 2 * n_groups, n_classes), nats.
    """
    columns = documents.tokens
    groups = table.vocabulary.groups[columns]
    own = counts_of(documents, y, len(table.classes), groups, weighting)
    total = np.maximum(sums.total - _totals(own.feature_count, groups), 0.0)
    # Tokens that no other message has are unknown, and have no part in the length.
    known = table.document_frequency[columns] > own.document_frequency
    count = np.maximum(table.feature_count[columns] - own.feature_count, 0.0)
    judged = judgements(count[known], groups[known], GroupSums(total, sums.size))
    documents = documents.on(np.where(known, columns, -1))
    value = entry_weights(documents, groups[known], weighting)
    return _sums_by_group(documents, groups[known], value, judged)


def _sums_by_group(documents: Documents, groups: Octets, value: Floats, judged: Floats) -> Floats:
    """Return each document's and group's sums of judged tokens times their weights.

    groups: (n_tokens,); value: (nnz,); judged: (n_tokens, 2, n_classes).
    """
    n_cells, n_classes = documents.n_docs * len(GROUPS), judged.shape[2]
    cell = documents.rows().astype(np.int64) * len(GROUPS) + groups.take(documents.columns)
    sums = np.empty((n_cells, 2, n_classes))
    for kind in range(2):
        for k in range(n_classes):
            each = judged[:, kind, k].take(documents.columns) * value
            sums[:, kind, k] = np.bincount(cell, each, n_cells)
    return sums.reshape(documents.n_docs, 2 * len(GROUPS), n_classes)


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
