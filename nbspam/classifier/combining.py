"""Combining: how evidence for two classes adds up to calibrated log-odds.

Naive Bayes adds the log-odds of all tokens as if tokens were independent, so its probabilities
are too extreme.  Here the log-odds of each group of tokens (text, route, web, pairs) are averaged,
ignoring weak ones, and a small logistic regression, fitted to held-out messages, weights the means
of the groups; it gives a probability.  A layer of corrections, one number per token, is learned
from the few messages that are wrong or nearly wrong: those whose true class has a probability
below 0.995 (1 - NEAR).  The score remains a sum over tokens.

Secret: how correlated evidence is kept from being counted several times.
"""

from collections.abc import Sequence
from math import tanh
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Floats, Floats32, Indices, Integers, Octets
from nbspam.counts.table import CountTable
from nbspam.progress import tracked
from nbspam.settings import Settings
from nbspam.tokens.definition import GROUPS
from nbspam.tokens.documents import Documents
from nbspam.verdicts import joint_of_log_odds

# E-002 chose these constants, the same for all corpora.
ALPHA = 0.03  # Lidstone's addend to the presence of a token in a class
BAND = 2.0  # nats; tokens with weaker log-odds are ignored
DAMPING = 5.0  # added to the number of tokens by which a group's sum is divided
RIDGE = 30.0  # strength of the prior on the worth of groups
PRIOR_WORTH = 0.5  # prior worth of each group's mean
RATE, BIAS_RATE = 8.0, 0.2  # step sizes of the layer of corrections, and of the constant
# A message is nearly wrong, and corrects the layer, if the probability of its true class is below
# 1 - NEAR, so even at 0.99.
NEAR = 0.005
PASSES = 5  # passes over the messages
LOOKS = (0, 2)  # the passes that select, among all messages, those that are nearly wrong
HAM_STEP = 1.5  # factor of the step of a ham message that is taken for spam
_DOCS_AT_ONCE = 1 << 8  # documents whose entries fit into the processor's caches
# The group with which each group's tokens are averaged: subjects are short, and count as text.
_WITH = np.arange(len(GROUPS))
_WITH[GROUPS.index("subject")] = GROUPS.index("text")
_IN_LAYER = np.arange(len(GROUPS)) != GROUPS.index("pairs")  # groups whose tokens are corrected


class Combination(NamedTuple):
    """The fitted weights of groups, and the corrections of single tokens."""

    worth: Floats  # (n_groups + 1,) weight of each group's mean, and the constant in nats
    correction: Floats32  # (n_features,) nats; 0 for tokens outside the layer

    def joint(self, table: CountTable, documents: Documents, weighting: str) -> Floats:
        """Return log P(class given document), nats, shape (n_docs, 2).

        documents: over columns of the table.
        """
        return joint_of_log_odds(self.scores(table, documents))

    def scores(self, table: CountTable, documents: Documents) -> Floats:
        """Return the log-odds of class 1 for each document, nats, shape (n_docs,)."""
        groups = table.vocabulary.groups[documents.tokens]
        odds = log_odds(table.feature_count[documents.tokens], table.class_count)
        means = group_means(documents, groups, odds.take(documents.columns))
        layer = documents.only(_IN_LAYER[groups])
        values = self.correction[documents.tokens].take(layer.columns)
        corrected = np.bincount(layer.rows(), values, layer.n_docs)
        score = means @ self.worth[:-1] + self.worth[-1] + corrected * layer_scale(layer)
        return np.asarray(score)

    def shares(
        self, table: CountTable, documents: Documents, weighting: str, towards: int, against: int
    ) -> tuple[Floats, float]:
        """Return each token's share (nnz,) of the log-odds of two classes, and the constant, nats.

        documents: one document, over columns of the table.  Shares and constant add up to the
        score of `scores`.
        """
        groups = table.vocabulary.groups[documents.tokens]
        odds = log_odds(table.feature_count[documents.tokens], table.class_count)
        with_group = _WITH[groups]
        number = np.bincount(with_group[odds != 0], minlength=len(GROUPS))
        averaged = self.worth[with_group] * odds / (number[with_group] + DAMPING)
        layer = documents.only(_IN_LAYER[groups])
        correction = np.where(_IN_LAYER[groups], self.correction[documents.tokens], 0.0)
        terms = averaged + correction * layer_scale(layer)[0]
        sign = 1 if towards == 1 else -1
        return sign * terms[documents.columns], sign * float(self.worth[-1])

    def recounted(self, table: CountTable, settings: Settings) -> "Combination":
        """Return the combination for a table with more columns, which get no corrections."""
        more = np.zeros(len(table.vocabulary) - len(self.correction), np.float32)
        return self._replace(correction=np.append(self.correction, more))

    def counted(self, groups: Octets, weights: Floats, appeared: Integers) -> "Combination":
        """Return the combination unchanged: it holds no sums of counts (see `Blend.counted`)."""
        return self


def log_odds(feature_count: Floats, class_count: Floats, left_out: int | None = None) -> Floats:
    """Return log P(token | class 1) / P(token | class 0), nats, shape (n_features,).

    feature_count: (n_features, 2) documents.  left_out: 0 or 1, to leave a counted document of
    this class out: each token gets the log-odds that it has without one document of the class
    that has the token.  Log-odds weaker than BAND are 0.
    """
    n = np.array(class_count, np.float64)
    count = np.array(feature_count.T, np.float64, order="C")  # contiguous for each class
    if left_out is not None:
        n[left_out] -= 1
        count[left_out] -= 1
        np.maximum(count[left_out], 0, out=count[left_out])
    known = count.any(axis=0)
    likelihood = np.log(count + ALPHA) - np.log(n + 2 * ALPHA)[:, None]
    odds = likelihood[1] - likelihood[0]
    odds[(np.abs(odds) < BAND) | ~known] = 0.0
    return np.asarray(odds)


def group_means(documents: Documents, groups: Octets, odds: Floats | Floats32) -> Floats:
    """Return damped means of log-odds by document and group, nats, shape (n_docs, n_groups).

    groups: (n_tokens,); odds: (nnz,) log-odds of each entry's token; zeros are not counted.
    """
    telling = np.flatnonzero(odds)
    cell = documents.rows().take(telling).astype(np.int64)
    cell *= len(GROUPS)
    cell += _WITH[groups].take(documents.columns.take(telling))
    n_cells = documents.n_docs * len(GROUPS)
    total = np.bincount(cell, odds.take(telling), n_cells)
    number = np.bincount(cell, minlength=n_cells)
    return np.asarray((total / (number + DAMPING)).reshape(-1, len(GROUPS)))


def layer_scale(layer: Documents) -> Floats:
    """Return 1 / sqrt(number of tokens) for each document, shape (n_docs,)."""
    return np.asarray(1 / np.sqrt(np.maximum(np.diff(layer.offsets), 1)))


def fit(table: CountTable, documents: Documents, y: Integers) -> Combination:
    """Return the combination that predicts messages best, leaving one out at a time.

    table: counts of two classes, including these messages.  documents: over columns of the table;
    corrections are learned in their order, which must be unrelated to their classes.  y: (n_docs,)
    0 or 1.
    """
    means = means_left_out(table, documents, y)
    worth = fit_worth(means, y)
    score = means @ worth[:-1] + worth[-1]
    layer = documents.only(_IN_LAYER[table.vocabulary.groups[documents.tokens]])
    correction = np.zeros(len(table.vocabulary), np.float32)
    correction[documents.tokens], constant = _corrections(layer, y, score, table.classes)
    worth[-1] += constant
    return Combination(worth, correction)


def without_evidence(n_features: int) -> Combination:
    """Return the combination in which no token tells anything: log-odds are always 0."""
    return Combination(np.zeros(len(GROUPS) + 1), np.zeros(n_features, np.float32))


def means_left_out(table: CountTable, documents: Documents, y: Integers) -> Floats:
    """Return each message's group means by the counts of all others, shape (n_docs, n_groups)."""
    count, groups = table.feature_count[documents.tokens], table.vocabulary.groups
    groups = groups[documents.tokens]
    odds = _odds_left_out(count, table.class_count)
    # Four of five entries have tokens whose log-odds are 0 for both classes.
    is_telling: Any = odds.any(axis=0)
    means = np.empty((len(y), len(GROUPS)))
    for start in range(0, len(y), _DOCS_AT_ONCE):
        end = min(start + _DOCS_AT_ONCE, len(y))
        part = documents.part(start, end).only(is_telling)
        own = y[start:end].take(part.rows())
        own *= odds.shape[1]
        own += part.columns
        means[start:end] = group_means(part, groups, odds.ravel().take(own))
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


def fit_worth(means: Floats, y: Integers) -> Floats:
    """Fit a ridge logistic regression by Newton steps; shape (n_groups + 1,).

    means: (n_docs, n_groups), from `means_left_out`.  y: (n_docs,) 0 or 1.
    """
    design = np.column_stack([means, np.ones(len(y))])
    prior = prior_worth()

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
    layer: Documents, y: Integers, score: Floats, classes: tuple[str, ...]
) -> tuple[Floats32, float]:
    """Learn from nearly wrong messages: return corrections (n_tokens,), and of the constant, nats.

    layer: documents over tokens in the layer only.  score: (n_docs,) log-odds without corrections.
    Corrections by the last messages of a pass have more effect, because no others follow.
    Therefore every second pass takes the messages in the opposite order, and the result is the
    mean of the corrections after the last pass and after the one before it: E-019.
    """
    scale = layer_scale(layer)
    correction, constant = np.zeros(len(layer.tokens), np.float32), 0.0
    for number in tracked(range(PASSES), "passes"):
        if number in LOOKS:
            summed = _sums(correction, layer.columns, layer.offsets) if number else 0.0
            far = np.abs(y - probability(score + constant + scale * summed))
            near = _messages(layer, np.flatnonzero(far > NEAR), scale, score, y)
        before_last = correction, constant
        turn = near if number % 2 == 0 else near[::-1]
        correction, constant = _pass(turn, correction.copy(), constant, classes)
    mean = (correction + before_last[0]) / np.float32(2)
    return np.asarray(mean), (constant + before_last[1]) / 2


# A message's columns, the scale of its corrections, its score without them, and its class.
_Message = tuple[Integers, float, float, int]


def _messages(
    layer: Documents, rows: Integers, scale: Floats, score: Floats, y: Integers
) -> list[_Message]:
    """Return some messages, converted once for all passes to indices and Python's numbers."""
    starts, ends = layer.offsets[rows].tolist(), layer.offsets[rows + 1].tolist()
    columns = [layer.columns[i:j].astype(np.intp) for i, j in zip(starts, ends, strict=True)]
    numbers = scale[rows].tolist(), score[rows].tolist(), y[rows].tolist()
    return list(zip(columns, *numbers, strict=True))


def _pass(
    messages: Sequence[_Message], correction: Floats32, constant: float, classes: tuple[str, ...]
) -> tuple[Floats32, float]:
    """Correct for one message after the other, in place; return both."""
    for columns, scale, score, truth in messages:
        now = correction[columns]
        z = score + constant + scale * float(np.add.reduce(now))
        if step := correction_step(z, truth, classes):
            correction[columns] = now + RATE * scale * step
            constant += BIAS_RATE * step
    return correction, constant


def _sums(values: Floats32, columns: Indices, bounds: Integers) -> Floats:
    """Return the sums of values[columns] between successive bounds, shape (n_docs,)."""
    total = np.zeros(len(bounds) - 1)
    for first in range(0, len(total), _DOCS_AT_ONCE):
        starts = bounds[first : first + _DOCS_AT_ONCE + 1]
        own = values.take(columns[starts[0] : starts[-1]])
        filled = np.flatnonzero(starts[1:] > starts[:-1])
        # Empty rows are skipped, because reduceat would give them the first value of the next.
        total[first + filled] = np.add.reduceat(own, starts[filled] - starts[0])
    return total


def correction_step(score: float, truth: int, classes: tuple[str, ...]) -> float:
    """Return how far a message moves the layer; 0 unless it is nearly wrong (see NEAR).

    Positive steps, at most 1, move towards class 1.  Negative ones are -1 at least, or -HAM_STEP
    if the classes are ham and spam.  score: the log-odds of class 1 that the message has with the
    corrections so far, nats.  truth: its class, 0 or 1.
    """
    error = truth - 0.5 * (1 + tanh(score / 2))  # the logistic function of a single number
    if abs(error) <= NEAR:
        return 0.0
    return error * HAM_STEP if error < 0 and classes == ("ham", "spam") else error


def probability(log_odds: Any) -> Any:
    """Return the probability for log-odds: the logistic function, never exactly 0 or 1."""
    return 1 / (1 + np.exp(-np.clip(log_odds, -500, 500)))
