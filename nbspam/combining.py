"""Combining evidence: from tokens' log-odds to one honest log-odds a message.

Naive Bayes sums all log-odds as if tokens were independent, and so becomes certain of
everything.  Here tokens of one kind (a group: text, route, web, pairs) are averaged,
weak ones ignored, and a small logistic regression learns from left-out messages what each
group's mean is worth; its answer is a probability.  A layer of corrections learns from the few
messages that are still nearly wrong.  All of it stays a sum over tokens.

Secret: how correlated evidence is kept from counting again and again.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nbspam.counts import CountTable, Floats
from nbspam.tokenizer import GROUPS, Integers

# E-002 chose these constants, the same for all corpora.
ALPHA = 0.03  # Lidstone's addend to the presence of a token in a class
BAND = 2.0  # nats: tokens that say less are ignored
DAMPING = 5.0  # tokens a group's mean is divided by more than it has
RIDGE = 30.0  # strength of the prior that every group's mean is worth ...
PRIOR_WORTH = 0.5  # ... this much
RATE, BIAS_RATE = 8.0, 0.2  # step sizes of the layer of corrections
NEAR = 0.005  # a message whose probability is this far from the truth corrects the layer
PASSES = 5
HAM_STEP = 1.5  # ham called spam moves the layer this much further
_LAYER_GROUPS = tuple(GROUPS.index(name) for name in ("text", "route", "web"))


@dataclass(frozen=True, slots=True)
class Combination:
    """What the groups are worth, and the corrections of single tokens."""

    worth: Floats  # (n_groups + 1,): of each group's mean, and the constant, nats
    correction: NDArray[np.float32]  # (n_features,) nats, of tokens in the layer


@dataclass(frozen=True, slots=True)
class Entries:
    """Which known tokens stand in which messages: one entry for each pair, no repeats."""

    n_docs: int
    documents: Integers  # (nnz,)
    columns: Integers  # (nnz,)
    groups: NDArray[np.uint8]  # (nnz,)


def log_odds(feature_count: Floats, class_count: Floats, left_out: int | None = None) -> Floats:
    """Return log P(token | class 1) / P(token | class 0), shape (n_features,), nats.

    feature_count: (n_features, 2) documents.  left_out: the class of one document that
    has every token asked about and is not to count.  Weak evidence is 0: see BAND.
    """
    n = np.asarray(class_count, np.float64).copy()
    count = np.asarray(feature_count, np.float64)
    if left_out is not None:
        n[left_out] -= 1
        count = count.copy()
        count[:, left_out] = np.maximum(count[:, left_out] - 1, 0)
    likelihood = np.log(count + ALPHA) - np.log(n + 2 * ALPHA)
    odds = likelihood[:, 1] - likelihood[:, 0]
    odds[(np.abs(odds) < BAND) | ~count.any(axis=1)] = 0.0
    return np.asarray(odds)


def group_means(entries: Entries, odds: Floats) -> Floats:
    """Return damped means of the entries' log-odds, shape (n_docs, n_groups).

    odds: (nnz,); zeros do not count.
    """
    cell = entries.documents * len(GROUPS) + entries.groups
    size = entries.n_docs * len(GROUPS)
    total = np.bincount(cell, odds, size)
    number = np.bincount(cell, odds != 0, size)
    return np.asarray((total / (number + DAMPING)).reshape(entries.n_docs, len(GROUPS)))


def layer_scale(entries: Entries) -> Floats:
    """Return one over the root of each message's number of tokens in the layer."""
    member = np.isin(entries.groups, _LAYER_GROUPS)
    return np.asarray(1 / np.sqrt(np.bincount(entries.documents, member, entries.n_docs) + 1e-9))


def scores(combination: Combination, entries: Entries, odds: Floats) -> Floats:
    """Return the log-odds of class 1 for every message, shape (n_docs,), nats.

    odds: (nnz,), the log-odds of the entries' tokens.
    """
    means = group_means(entries, odds)
    correction = combination.correction[entries.columns]
    corrected = np.bincount(entries.documents, correction, entries.n_docs)
    return np.asarray(
        means @ combination.worth[:-1]
        + combination.worth[-1]
        + corrected * np.minimum(layer_scale(entries), 1.0)
    )


def fit(table: CountTable, entries: Entries, y: Integers) -> Combination:
    """Return the combination that explains messages best, each left out in its turn.

    table: counts of two classes, those of the messages among them.  y: (n_docs,) 0 or 1.
    """
    touched, place = np.unique(entries.columns, return_inverse=True)
    count = table.feature_count[touched]
    by_class = np.stack([log_odds(count, table.class_count, label) for label in (0, 1)])
    means = group_means(entries, by_class[y[entries.documents], place])
    worth = _worth(means, y)
    score = means @ worth[:-1] + worth[-1]
    correction, constant = _corrections(entries, y, score, len(table.vocabulary), table.classes)
    worth[-1] += constant
    return Combination(worth, correction)


def _worth(means: Floats, y: Integers) -> Floats:
    """Fit ridge logistic regression by Newton steps; shape (n_groups + 1,)."""
    design = np.column_stack([means, np.ones(len(y))])
    prior = np.append(np.full(means.shape[1], PRIOR_WORTH), 0.0)

    def loss(worth: Floats) -> float:
        z = design @ worth
        penalty = 0.5 * RIDGE * ((worth - prior) ** 2).sum()
        return float(np.logaddexp(0, z).sum() - y @ z + penalty)

    worth = prior.copy()
    best = loss(worth)
    for _ in range(25):
        p = probability(design @ worth)
        hessian = (design * (p * (1 - p))[:, None]).T @ design + RIDGE * np.eye(len(prior))
        step = np.linalg.solve(hessian, design.T @ (p - y) + RIDGE * (worth - prior))
        while (new := loss(worth - step)) > best and np.abs(step).max() > 1e-9:
            step /= 2
        if new >= best - 1e-9:
            break
        worth, best = worth - step, new
    return worth


def _corrections(
    entries: Entries, y: Integers, score: Floats, n_features: int, classes: tuple[str, ...]
) -> tuple[NDArray[np.float32], float]:
    """Return corrections of tokens, and of the constant, from messages nearly wrong."""
    member = np.isin(entries.groups, _LAYER_GROUPS)
    order = np.flatnonzero(member)
    order = order[np.argsort(entries.documents[order], kind="stable")]
    bounds = np.searchsorted(entries.documents[order], np.arange(entries.n_docs + 1))
    columns = entries.columns[order]
    scale = layer_scale(entries)
    correction = np.zeros(n_features, np.float32)
    constant = 0.0
    ham_step = HAM_STEP if classes == ("ham", "spam") else 1.0
    shuffled = np.random.default_rng(1).permutation(len(y))
    summed = np.zeros(entries.n_docs)
    for _ in range(PASSES):
        if len(columns):
            summed = np.add.reduceat(np.append(correction[columns], 0), bounds[:-1])
            summed[bounds[:-1] == bounds[1:]] = 0
        z = score + constant + scale * summed
        near = np.abs(y - probability(z)) > NEAR
        for i in shuffled[near[shuffled]].tolist():
            own = columns[bounds[i] : bounds[i + 1]]
            z_i = score[i] + constant + scale[i] * correction[own].sum()
            error = float(y[i] - probability(z_i))
            if abs(error) > NEAR:
                error *= ham_step if error < 0 else 1.0
                correction[own] += RATE * scale[i] * error
                constant += BIAS_RATE * error
    return correction, constant


def probability(log_odds: Any) -> Any:
    """Return the probability that log-odds mean: the logistic function, never 0 or 1."""
    return 1 / (1 + np.exp(-np.clip(log_odds, -500, 500)))
