"""Combining: how evidence for two classes adds up to calibrated log-odds.

Naive Bayes adds the log-odds of all tokens as if tokens were independent, so its probabilities
are too extreme.  Here the log-odds of each group of tokens (text, route, web, pairs, hidden) are
averaged, and a small logistic regression, fitted to held-out messages, weights the means of the
groups; it gives a probability.  A layer of corrections (`layer`), one number per token, is learned
from the few messages that are wrong or nearly wrong.  The score remains a sum over tokens.

Whoever writes spam may add as many words of ham as they like.  Of ham and spam, therefore, only
the strongest tokens of each group count, fewer of those for ham.  Words that the reader does not
see can only speak for spam.

Secret: how correlated evidence is kept from being counted several times.
"""

from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Floats, Floats32, Integers, Octets, places_of
from nbspam.classifier.layer import MOST, bounded, corrections, layer_scale, probability
from nbspam.counts.table import CountTable
from nbspam.decision import HAM_AND_SPAM
from nbspam.settings import Settings
from nbspam.tokens.definition import GROUPS
from nbspam.tokens.documents import Documents
from nbspam.verdicts import joint_of_log_odds

# E-002 chose these constants, the same for all corpora, and E-119 the last one.
ALPHA = 0.03  # Lidstone's addend to the presence of a token in a class
BAND = 2.0  # nats; tokens with weaker log-odds are ignored
DAMPING = 5.0  # added to the number of tokens by which a group's sum is divided
RIDGE = 10.0  # strength of the prior on the worth of groups: E-149
PRIOR_WORTH = 0.5  # prior worth of each group's mean
STRONGEST = 15, 30  # the number of a group's tokens for ham, and for spam, that count at most
_ABOVE_ALL = 64.0  # nats; no log-odds of counts are as strong
# The group with which each group's tokens are averaged: subjects are short, and count as text.
_WITH = np.arange(len(GROUPS))
_WITH[GROUPS.index("subject")] = GROUPS.index("text")
HIDDEN = GROUPS.index("hidden")
_LIMITS = np.tile(STRONGEST, (len(GROUPS), 1))
_LIMITS[HIDDEN, 0] = 0  # no hidden token speaks for ham
_DOCS_AT_ONCE = 1 << 8  # documents whose entries fit into the processor's caches
# The groups whose tokens are corrected, (n_groups,).
IN_LAYER = ~np.isin(np.arange(len(GROUPS)), [GROUPS.index("pairs"), HIDDEN])


class Counting(NamedTuple):
    """The entries of documents that count, in any order."""

    entry: Integers  # (n,) their numbers
    cell: Integers  # (n,) document * n_groups + group with which the token is averaged
    odds: Floats | Floats32  # (n,) log-odds, nats


class Weighed(NamedTuple):
    """Documents, and what counts say of their tokens."""

    documents: Documents
    groups: Octets  # (n_tokens,)
    odds: Floats  # (nnz,) log-odds of each entry's token, nats
    in_layer: Booleans  # (n_tokens,) whether the token is corrected
    correction: Floats32  # (n_tokens,) nats
    limits: Integers | None  # from `limits_of`


class Combination(NamedTuple):
    """The fitted weights of groups, and the corrections of single tokens."""

    worth: Floats  # (n_groups + 1,) weight of each group's mean, and the constant in nats
    correction: Floats32  # (n_features,) nats; 0 for tokens outside the layer

    def joint(self, table: CountTable, documents: Documents, weighting: str) -> Floats:
        """Return log P(class given document), nats, shape (n_docs, 2).

        documents: over columns of the table.
        """
        return joint_of_log_odds(self.scores(self.weighed(table, documents)))

    def shares(
        self, table: CountTable, documents: Documents, weighting: str, towards: int, against: int
    ) -> tuple[Floats, float]:
        """Return each token's share (nnz,) of the log-odds of two classes, and the constant, nats.

        documents: one document, over columns of the table.  Shares and constant add up to the
        score of `scores`.
        """
        sign = 1 if towards == 1 else -1
        return sign * self.parts(self.weighed(table, documents)), sign * float(self.worth[-1])

    def weighed(self, table: CountTable, documents: Documents) -> "Weighed":
        """Return documents over columns of the table with what its counts say of them."""
        groups = table.vocabulary.groups[documents.tokens]
        odds = log_odds(table.feature_count[documents.tokens], table.class_count)
        return Weighed(
            documents,
            groups,
            odds.take(documents.columns),
            IN_LAYER[groups],
            self.correction[documents.tokens],
            limits_of(table),
        )

    def scores(self, weighed: "Weighed") -> Floats:
        """Return the log-odds of class 1 for each document, nats, shape (n_docs,)."""
        documents, groups, odds, in_layer, correction, limits = weighed
        means = group_means(documents, groups, odds, limits)
        layer = documents.only(in_layer)
        values = correction.take(layer.columns)
        corrected = np.bincount(layer.rows(), values, layer.n_docs) * layer_scale(layer)
        return np.asarray(means @ self.worth[:-1] + self.worth[-1] + bounded(corrected))

    def parts(self, weighed: "Weighed") -> Floats:
        """Return each entry's share of the log-odds of class 1 of one document, nats, (nnz,)."""
        documents, groups, odds, in_layer, correction, limits = weighed
        scale = layer_scale(documents.only(in_layer))[0]
        shares = (np.where(in_layer, correction, 0.0) * scale).take(documents.columns)
        if abs(total := float(shares.sum())) > MOST:
            shares *= MOST / abs(total)
        entry, cell, values = strongest(documents, groups, odds, limits)
        by = divisors(np.bincount(cell, minlength=len(GROUPS)), limits).take(cell)
        shares[entry] += self.worth[cell] * values / by
        return np.asarray(shares)

    def recounted(self, table: CountTable, settings: Settings) -> "Combination":
        """Return the combination for a table with more columns, which get no corrections."""
        more = np.zeros(len(table.vocabulary) - len(self.correction), np.float32)
        return self._replace(correction=np.append(self.correction, more))

    def counted(self, groups: Octets, weights: Floats, appeared: Integers) -> "Combination":
        """Return the combination unchanged: it holds no sums of counts (see `Blend.counted`)."""
        return self


def log_odds(feature_count: Floats, class_count: Floats, left_out: int | None = None) -> Floats:
    """Return log P(token | class 1) / P(token | class 0), nats, shape (n_features,).

    feature_count: (n_features, 2) documents.  class_count: (2,), or (n_features, 2) where each
    token is of another table.  left_out: 0 or 1, to leave a counted document of
    this class out: each token gets the log-odds that it has without one document of the class
    that has the token.  Log-odds weaker than BAND are 0.
    """
    n = np.array(class_count, np.float64).T.reshape(2, -1)
    count = np.array(feature_count.T, np.float64, order="C")  # contiguous for each class
    if left_out is not None:
        n[left_out] -= 1
        count[left_out] -= 1
        np.maximum(count[left_out], 0, out=count[left_out])
    known = count.any(axis=0)
    likelihood = np.log(count + ALPHA) - np.log(n + 2 * ALPHA)
    odds = likelihood[1] - likelihood[0]
    odds[(np.abs(odds) < BAND) | ~known] = 0.0
    return np.asarray(odds)


def limits_of(table: CountTable) -> Integers | None:
    """Return how many tokens of each group count for ham and for spam, shape (n_groups, 2).

    None: all count, because the classes are others, which nobody wants to be taken for.
    """
    return _LIMITS if table.classes == HAM_AND_SPAM else None


def strongest(
    documents: Documents, groups: Octets, odds: Floats | Floats32, limits: Integers | None
) -> Counting:
    """Return the entries that count.

    groups: (n_tokens,); odds: (nnz,) log-odds of each entry's token; zeros do not count.  Of each
    group's tokens for a class those with the strongest log-odds count, and of equally strong ones
    those whose entries come first.  limits: their number, from `limits_of`.
    """
    entry = places_of(odds)
    cell = documents.rows().take(entry).astype(np.int64)
    cell *= len(GROUPS)
    cell += _WITH.take(groups.take(documents.columns.take(entry)))
    odds = odds.take(entry)
    if limits is None:
        return Counting(entry, cell, odds)
    place = 2 * cell + (odds > 0)
    order = (_ABOVE_ALL * place - np.abs(odds)).argsort(kind="stable")
    number = np.bincount(place)
    rank = np.arange(len(order)) - (number.cumsum() - number).repeat(number)
    counts = order[rank < limits.ravel().take(place.take(order) % limits.size)]
    return Counting(entry[counts], cell[counts], odds[counts])


def group_means(
    documents: Documents, groups: Octets, odds: Floats | Floats32, limits: Integers | None
) -> Floats:
    """Return damped means of log-odds by document and group, nats, shape (n_docs, n_groups).

    groups: (n_tokens,); odds: (nnz,) log-odds of each entry's token.  limits: see `strongest`.
    """
    _, cell, odds = strongest(documents, groups, odds, limits)
    n_cells = documents.n_docs * len(GROUPS)
    total = np.bincount(cell, odds, n_cells).reshape(-1, len(GROUPS))
    number = np.bincount(cell, minlength=n_cells).reshape(-1, len(GROUPS))
    return np.asarray(total / divisors(number, limits))


def divisors(number: Integers, limits: Integers | None) -> Floats:
    """Return what sums of log-odds are divided by; number: (..., n_groups) of their tokens.

    The number of hidden tokens does not matter, so that no further one lowers the score.
    """
    by = number + DAMPING
    if limits is not None:
        by[..., HIDDEN] = STRONGEST[1] + DAMPING
    return np.asarray(by)


def fit(
    table: CountTable, documents: Documents, y: Integers, told: Booleans | None = None
) -> Combination:
    """Return the combination that predicts messages best, leaving one out at a time.

    table: counts of two classes, including these messages.  documents: over columns of the table;
    corrections are learned in their order, which must be unrelated to their classes.  y: (n_docs,)
    0 or 1.  told: (n_docs,) whether a person has told this class; None: none of them.
    """
    means = means_left_out(table, documents, y)
    worth = fit_worth(means, y, limits_of(table))
    score = means @ worth[:-1] + worth[-1]
    layer = documents.only(IN_LAYER[table.vocabulary.groups[documents.tokens]])
    correction = np.zeros(len(table.vocabulary), np.float32)
    learned = corrections(layer, y, score, table.classes, told)
    correction[documents.tokens] = learned.correction * np.float32(learned.certainty)
    worth[-1] += learned.constant
    return Combination(worth * learned.certainty, correction)


def without_evidence(n_features: int) -> Combination:
    """Return the combination in which no token tells anything: log-odds are always 0."""
    return Combination(np.zeros(len(GROUPS) + 1), np.zeros(n_features, np.float32))


def means_left_out(table: CountTable, documents: Documents, y: Integers) -> Floats:
    """Return each message's group means by the counts of all others, shape (n_docs, n_groups)."""
    count, groups = table.feature_count[documents.tokens], table.vocabulary.groups
    groups = groups[documents.tokens]
    odds, limits = _odds_left_out(count, table.class_count), limits_of(table)
    # Four of five entries have tokens whose log-odds are 0 for both classes.
    is_telling: Any = odds.any(axis=0)
    means = np.empty((len(y), len(GROUPS)))
    for start in range(0, len(y), _DOCS_AT_ONCE):
        end = min(start + _DOCS_AT_ONCE, len(y))
        part = documents.part(start, end).only(is_telling)
        own = y[start:end].take(part.rows())
        own *= odds.shape[1]
        own += part.columns
        means[start:end] = group_means(part, groups, odds.ravel().take(own), limits)
    return means


def _odds_left_out(count: Floats, class_count: Floats) -> Floats32:
    """Return each token's log-odds without one message of class 0, or of class 1, that has it.

    count: (n_features, 2).  Shape (2, n_features), nats.
    """
    # Most tokens occur in a single message; without it they are unknown.
    first, second = count.T
    known = np.flatnonzero((first + second > 1) | ((first > 0) & (second > 0)))
    odds = np.zeros((2, len(count)), np.float32)
    for label in (0, 1):
        odds[label, known] = log_odds(count.take(known, axis=0), class_count, label)
    return odds


def prior_worth() -> Floats:
    """Return the prior worth of the groups' means, and the prior constant, (n_groups + 1,)."""
    return np.append(np.full(len(GROUPS), PRIOR_WORTH), 0.0)


def with_groups(worth: Floats) -> Floats:
    """Return a model's worth extended to all GROUPS, since older models had fewer groups.

    Raises ValueError.
    """
    old = len(worth) - 1
    if not 0 < old <= len(GROUPS):
        raise ValueError("its number of groups is wrong")
    return np.concatenate([worth[:old], prior_worth()[old:-1], worth[old:]])


def fit_worth(means: Floats, y: Integers, limits: Integers | None) -> Floats:
    """Fit a ridge logistic regression by Newton steps; shape (n_groups + 1,).

    means: (n_docs, n_groups), from `means_left_out`.  y: (n_docs,) 0 or 1.  With limits, hidden
    tokens are never worth less than nothing.
    """
    worth = _fit_worth(means, y)
    if limits is not None and worth[HIDDEN] < 0:
        others = np.where(np.arange(len(GROUPS)) == HIDDEN, 0.0, means)
        worth = _fit_worth(others, y)
        worth[HIDDEN] = 0.0
    return worth


def _fit_worth(means: Floats, y: Integers) -> Floats:
    design = np.column_stack([means, np.ones(len(y))])
    prior = prior_worth()

    def loss(worth: Floats) -> float:
        z = design @ worth
        penalty = 0.5 * RIDGE * ((worth - prior) ** 2).sum()
        # Not y @ z: of long vectors that starts threads, which wait for cores that are busy.
        return float(np.logaddexp(0, z).sum() - (y * z).sum() + penalty)

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
