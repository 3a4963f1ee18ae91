"""Combining evidence: from tokens' log-odds to one honest log-odds of a message.

Naive Bayes sums all log-odds as if tokens were independent, and so becomes certain of
everything.  Here the log-odds of one kind of tokens (a group: text, route, web, pairs) are
averaged, weak ones ignored, and a small logistic regression learns from left-out messages what
each group's mean is worth; its answer is a probability.  A layer of corrections learns from
the few messages that are still nearly wrong.  All of it stays a sum over tokens.

Secret: how correlated evidence is kept from counting again and again.
"""

from math import sqrt, tanh
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Floats, Floats32, Indices, Integers, Octets
from nbspam.counts.table import CountTable
from nbspam.settings import Settings
from nbspam.tokens.definition import GROUPS
from nbspam.tokens.documents import Documents
from nbspam.verdicts import joint_of_log_odds

# E-002 chose these constants, the same for all corpora.
ALPHA = 0.03  # Lidstone's addend to the presence of a token in a class
BAND = 2.0  # nats: weaker tokens are ignored
DAMPING = 5.0  # added to the number of tokens that a group's sum is divided by
RIDGE = 30.0  # strength of the prior that every group's mean is worth ...
PRIOR_WORTH = 0.5  # ... this much
RATE, BIAS_RATE = 8.0, 0.2  # step sizes of the layer of corrections, and of the constant
NEAR = 0.005  # a message whose probability is this far from the truth corrects the layer
PASSES = 5
LOOKS = (0, 2)  # the passes that look at all messages, not only at those near before
HAM_STEP = 1.5  # ham called spam moves the layer this many times as far
_DOCS_AT_ONCE = 1 << 8  # documents whose entries stay in the processor's caches
# The group that tokens of a group are averaged with: subjects are few words, and are text.
_WITH = np.arange(len(GROUPS))
_WITH[GROUPS.index("subject")] = GROUPS.index("text")
_IN_LAYER = np.arange(len(GROUPS)) != GROUPS.index("pairs")  # whose tokens are corrected


class Combination(NamedTuple):
    """What the groups are worth, and the corrections of single tokens."""

    worth: Floats  # (n_groups + 1,): of each group's mean, and the constant, nats
    correction: Floats32  # (n_features,) nats, of tokens in the layer

    def joint(self, table: CountTable, documents: Documents, weighting: str) -> Floats:
        """Return log P(class given document), nats, shape (n_docs, 2).

        documents: over columns of the table.
        """
        return joint_of_log_odds(self.scores(table, documents))

    def scores(self, table: CountTable, documents: Documents) -> Floats:
        """Return the log-odds of class 1 for every document, shape (n_docs,), nats."""
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
        """Return what each token of one document adds to the log-odds of two classes.

        With the constant: (nnz,) and a number, nats.  The same sum as in `scores`, term by term.
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
        """Return the combination for a table with more columns, whose corrections are 0."""
        more = np.zeros(len(table.vocabulary) - len(self.correction), np.float32)
        return self._replace(correction=np.append(self.correction, more))

    def counted(self, groups: Octets, weights: Floats, appeared: Integers) -> "Combination":
        """Return the same: it has no sums of counts (see `Blend.counted`)."""
        return self

    def learn(self, columns: Indices, step: float) -> "Combination":
        """Correct one message's tokens in place; return the combination with a new constant.

        columns: of its tokens in the layer, -1 for those without one; step: see
        `correction_step`.
        """
        self.correction[columns[columns >= 0]] += RATE * step / sqrt(max(len(columns), 1))
        worth = self.worth.copy()
        worth[-1] += BIAS_RATE * step
        return self._replace(worth=worth)


def log_odds(feature_count: Floats, class_count: Floats, left_out: int | None = None) -> Floats:
    """Return log P(token | class 1) / P(token | class 0), shape (n_features,), nats.

    feature_count: (n_features, 2) documents.  left_out: the class of one document that has
    every token asked about and is not to count.  Weak evidence is 0: see BAND.
    """
    n = np.array(class_count, np.float64)
    count = np.array(feature_count.T, np.float64, order="C")  # one class after the other
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
    """Return damped means of log-odds by document and group, shape (n_docs, n_groups).

    groups: (n_tokens,); odds: (nnz,) of the entries' tokens; zeros do not count.
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
    """Return one over the root of each document's number of tokens, shape (n_docs,)."""
    return np.asarray(1 / np.sqrt(np.maximum(np.diff(layer.offsets), 1)))


def layer_columns(documents: Documents, groups: Octets) -> Indices:
    """Return the tokens of one document that the layer of corrections holds."""
    columns: Indices = documents.tokens[documents.only(_IN_LAYER[groups]).columns]
    return columns


def fit(table: CountTable, documents: Documents, y: Integers) -> Combination:
    """Return the combination that explains messages best, each left out in its turn.

    table: counts of two classes, those of the messages among them.  documents: over columns of
    the table, in an order that has nothing to do with their classes, because corrections are
    learned in it.  y: (n_docs,) 0 or 1.
    """
    means = means_left_out(table, documents, y)
    worth = fit_worth(means, y)
    score = means @ worth[:-1] + worth[-1]
    layer = documents.only(_IN_LAYER[table.vocabulary.groups[documents.tokens]])
    correction = np.zeros(len(table.vocabulary), np.float32)
    correction[documents.tokens], constant = _corrections(layer, y, score, table.classes)
    worth[-1] += constant
    return Combination(worth, correction)


def means_left_out(table: CountTable, documents: Documents, y: Integers) -> Floats:
    """Return every message's means by the counts of all others, shape (n_docs, n_groups)."""
    count, groups = table.feature_count[documents.tokens], table.vocabulary.groups
    groups = groups[documents.tokens]
    odds = _odds_left_out(count, table.class_count)
    # Four of five entries are of tokens that never say anything.
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
    """Return every token's log-odds for a message of class 0 or 1 that has it, left out.

    count: (n_features, 2); returns shape (2, n_features).
    """
    # Most tokens stand in one message alone; without it nothing is known of them.
    first, second = count.T
    known = np.flatnonzero((first + second > 1) | ((first > 0) & (second > 0)))
    odds = np.zeros((2, len(count)), np.float32)
    for label in (0, 1):
        odds[label, known] = log_odds(count.take(known, axis=0), class_count, label)
    return odds


def prior_worth() -> Floats:
    """Return what the groups' means are assumed to be worth before anything is known."""
    return np.append(np.full(len(GROUPS), PRIOR_WORTH), 0.0)


def with_groups(worth: Floats) -> Floats:
    """Return a model's worth for all of GROUPS; older models knew only the first of them.

    Raises ValueError.
    """
    old = len(worth) - 1
    if not 0 < old <= len(GROUPS):
        raise ValueError("its groups are not ours")
    return np.concatenate([worth[:old], prior_worth()[old:-1], worth[old:]])


def fit_worth(means: Floats, y: Integers) -> Floats:
    """Fit ridge logistic regression by Newton steps; shape (n_groups + 1,).

    means: (n_docs, n_groups), each message's by the counts of the others.  y: (n_docs,) 0 or 1.
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
    """Return corrections of tokens, (n_tokens,), and of the constant, from messages nearly wrong.

    layer: tokens in the layer alone.  score: (n_docs,) log-odds without corrections.
    """
    bounds, columns = layer.offsets, layer.columns
    scale = layer_scale(layer)
    correction = np.zeros(len(layer.tokens), np.float32)
    constant = 0.0
    for number in range(PASSES):
        if number in LOOKS:
            summed = _sums(correction, columns, bounds) if number else 0.0
            far = np.abs(y - probability(score + constant + scale * summed))
            rows = np.flatnonzero(far > NEAR)
            places = zip(bounds[rows].tolist(), bounds[rows + 1].tolist(), strict=True)
            # Converted once: numpy would convert the columns, and Python the numbers, each time.
            own = [columns[start:end].astype(np.intp) for start, end in places]
            given = list(
                zip(scale[rows].tolist(), score[rows].tolist(), y[rows].tolist(), strict=True)
            )
        for place, (by, before, truth) in zip(own, given, strict=True):
            now = correction[place]
            z = before + constant + by * float(np.add.reduce(now))
            if step := correction_step(z, truth, classes):
                correction[place] = now + RATE * by * step
                constant += BIAS_RATE * step
    return correction, constant


def _sums(values: Floats32, columns: Indices, bounds: Integers) -> Floats:
    """Return the sum of values[columns] between each two bounds, shape (n_docs,)."""
    total = np.zeros(len(bounds) - 1)
    for first in range(0, len(total), _DOCS_AT_ONCE):
        starts = bounds[first : first + _DOCS_AT_ONCE + 1]
        own = values.take(columns[starts[0] : starts[-1]])
        filled = np.flatnonzero(starts[1:] > starts[:-1])
        # An empty run has no place: reduceat would give it its successor's first number.
        total[first + filled] = np.add.reduceat(own, starts[filled] - starts[0])
    return total


def correction_step(score: float, truth: int, classes: tuple[str, ...]) -> float:
    """Return how far a message moves the layer, from -1.5 to 1; 0 unless it is nearly wrong.

    score: its log-odds of class 1, nats, before it is learned.  Positive moves are towards
    class 1.
    """
    error = truth - 0.5 * (1 + tanh(score / 2))  # the logistic function of one number
    if abs(error) <= NEAR:
        return 0.0
    return error * HAM_STEP if error < 0 and classes == ("ham", "spam") else error


def probability(log_odds: Any) -> Any:
    """Return the probability that log-odds mean: the logistic function, never 0 or 1."""
    return 1 / (1 + np.exp(-np.clip(log_odds, -500, 500)))
