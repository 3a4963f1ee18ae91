"""Combining evidence: from tokens' log-odds to one honest log-odds a message.

Naive Bayes sums all log-odds as if tokens were independent, and so becomes certain of
everything.  Here tokens of one kind (a group: text, route, web, pairs) are averaged,
weak ones ignored, and a small logistic regression learns from left-out messages what each
group's mean is worth; its answer is a probability.  A layer of corrections learns from the few
messages that are still nearly wrong.  All of it stays a sum over tokens.

Secret: how correlated evidence is kept from counting again and again.
"""

from math import tanh
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Floats, Floats32, Indices, Integers, Octets
from nbspam.counts.table import CountTable
from nbspam.tokens.definition import GROUPS

# E-002 chose these constants, the same for all corpora.
ALPHA = 0.03  # Lidstone's addend to the presence of a token in a class
BAND = 2.0  # nats: tokens that say less are ignored
DAMPING = 5.0  # tokens a group's mean is divided by more than it has
RIDGE = 30.0  # strength of the prior that every group's mean is worth ...
PRIOR_WORTH = 0.5  # ... this much
RATE, BIAS_RATE = 8.0, 0.2  # step sizes of the layer of corrections
NEAR = 0.005  # a message whose probability is this far from the truth corrects the layer
PASSES = 5
LOOKS = (0, 2)  # the passes that look at all messages anew, not only at those near before
HAM_STEP = 1.5  # ham called spam moves the layer this much further
_AT_ONCE = 1 << 16  # places that are looked up together
_DOCS_AT_ONCE = 1 << 8  # documents whose entries stay in the processor's caches
# The group that tokens of a group are averaged with: subjects are few words, they are text.
_WITH = np.arange(len(GROUPS))
_WITH[GROUPS.index("subject")] = GROUPS.index("text")
_IN_LAYER = np.arange(len(GROUPS)) != GROUPS.index("pairs")  # whose tokens are corrected


class Combination(NamedTuple):
    """What the groups are worth, and the corrections of single tokens."""

    worth: Floats  # (n_groups + 1,): of each group's mean, and the constant, nats
    correction: Floats32  # (n_features,) nats, of tokens in the layer


class Entries(NamedTuple):
    """Which known tokens stand in which messages: one entry for each pair, no repeats."""

    n_docs: int
    documents: Indices  # (nnz,)
    columns: Indices  # (nnz,)
    groups: Octets  # (nnz,)
    counts: Indices  # (nnz,) how often

    def take(self, chosen: Integers | Booleans) -> "Entries":
        """Return some entries of all documents; chosen: which, or (nnz,) whether."""
        return Entries(
            self.n_docs,
            self.documents[chosen],
            self.columns[chosen],
            self.groups[chosen],
            self.counts[chosen],
        )


class Rows(NamedTuple):
    """Which known tokens stand in which messages, message by message, no repeats."""

    offsets: Integers  # (n_docs + 1,)
    columns: Indices  # (nnz,)
    counts: Indices  # (nnz,) how often

    def part(self, start: int, end: int) -> "Rows":
        """Return the messages from one to before another."""
        offsets = self.offsets[start : end + 1]
        some = slice(int(offsets[0]), int(offsets[-1]))
        return Rows(offsets - offsets[0], self.columns[some], self.counts[some])

    def of(self, wanted: Booleans) -> "Rows":
        """Return the same with some tokens alone; wanted: (n_features,)."""
        if wanted.all():
            return self
        kept = np.flatnonzero(gather(wanted, self.columns))
        offsets = np.searchsorted(kept, self.offsets)
        return Rows(offsets, self.columns.take(kept), self.counts.take(kept))

    def entries(self, groups: Octets) -> Entries:
        """Return one entry after the other; groups: (n_features,)."""
        n_docs = len(self.offsets) - 1
        documents = np.repeat(np.arange(n_docs, dtype=np.int32), np.diff(self.offsets))
        return Entries(n_docs, documents, self.columns, gather(groups, self.columns), self.counts)


def gather(values: Any, places: Indices) -> Any:
    """Return values[places], shape (n_places,).

    Some at a time: numpy makes 64 bits of all places first, and memory that is touched for
    the first time takes longer than the work itself.
    """
    gathered = np.empty(len(places), values.dtype)
    for start in range(0, len(places), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        gathered[some] = values.take(places[some])
    return gathered


def log_odds(feature_count: Floats, class_count: Floats, left_out: int | None = None) -> Floats:
    """Return log P(token | class 1) / P(token | class 0), shape (n_features,), nats.

    feature_count: (n_features, 2) documents.  left_out: the class of one document that
    has every token asked about and is not to count.  Weak evidence is 0: see BAND.
    """
    n = np.array(class_count, np.float64)
    count = np.array(feature_count.T, np.float64, order="C")  # a class is one run of numbers
    if left_out is not None:
        n[left_out] -= 1
        count[left_out] -= 1
        np.maximum(count[left_out], 0, out=count[left_out])
    known = count.any(axis=0)
    likelihood = np.log(count + ALPHA) - np.log(n + 2 * ALPHA)[:, None]
    odds = likelihood[1] - likelihood[0]
    odds[(np.abs(odds) < BAND) | ~known] = 0.0
    return np.asarray(odds)


def group_means(entries: Entries, odds: Floats | Floats32) -> Floats:
    """Return damped means of the entries' log-odds, shape (n_docs, n_groups).

    odds: (nnz,); zeros do not count.
    """
    telling = np.flatnonzero(odds)
    cell = entries.documents.take(telling).astype(np.int64)
    cell *= len(GROUPS)
    cell += _WITH.take(entries.groups.take(telling))
    n_cells = entries.n_docs * len(GROUPS)
    total = np.bincount(cell, odds.take(telling), n_cells)
    number = np.bincount(cell, minlength=n_cells)
    return np.asarray((total / (number + DAMPING)).reshape(-1, len(GROUPS)))


def layer_scale(entries: Entries) -> Floats:
    """Return one over the root of each message's number of tokens in the layer."""
    return _scale(np.bincount(layer_of(entries)[0], minlength=entries.n_docs))


def _scale(number: Integers) -> Floats:
    return np.asarray(1 / np.sqrt(np.maximum(number, 1)))


def layer_of(entries: Entries) -> tuple[Indices, Indices]:
    """Return documents and columns of the entries that the layer of corrections holds."""
    member = _IN_LAYER.take(entries.groups)
    if member.all():  # as it is without pairs: nothing to copy
        return entries.documents, entries.columns
    return entries.documents[member], entries.columns[member]


def scores(combination: Combination, entries: Entries, odds: Floats) -> Floats:
    """Return the log-odds of class 1 for every message, shape (n_docs,), nats.

    odds: (nnz,), the log-odds of the entries' tokens.
    """
    return scores_of_means(combination, entries, group_means(entries, odds))


def scores_of_means(combination: Combination, entries: Entries, means: Floats) -> Floats:
    """Return the same from the groups' means, shape (n_docs, n_groups)."""
    correction = gather(combination.correction, entries.columns)
    corrected = np.bincount(entries.documents, correction, entries.n_docs)
    return np.asarray(
        means @ combination.worth[:-1] + combination.worth[-1] + corrected * layer_scale(entries)
    )


def contributions(combination: Combination, entries: Entries, odds: Floats) -> Floats:
    """Return what every entry adds to its message's score, shape (nnz,), nats.

    The same sum as in `scores`, term by term; that one adds whole messages and is faster.
    """
    groups = _WITH[entries.groups]
    cell = entries.documents * len(GROUPS) + groups
    number = np.bincount(cell, odds != 0)
    averaged = combination.worth[groups] * odds / (number[cell] + DAMPING)
    scale = layer_scale(entries)[entries.documents]
    return np.asarray(averaged + combination.correction[entries.columns] * scale)


def fit(table: CountTable, rows: Rows, y: Integers) -> Combination:
    """Return the combination that explains messages best, each left out in its turn.

    table: counts of two classes, those of the messages among them.  rows: in an order that
    has nothing to do with their classes: corrections are learned in it.  y: (n_docs,) 0 or 1.
    """
    means = _means_left_out(table, rows, y)
    worth = fit_worth(means, y)
    score = means @ worth[:-1] + worth[-1]
    layer = rows.of(_IN_LAYER.take(table.vocabulary.groups))
    correction, constant = _corrections(layer, y, score, len(table.vocabulary), table.classes)
    worth[-1] += constant
    return Combination(worth, correction)


def _means_left_out(table: CountTable, rows: Rows, y: Integers) -> Floats:
    """Return every message's means by the counts of the others, shape (n_docs, n_groups)."""
    odds = _left_out(table)
    # Four of five entries are of tokens that never say anything.
    is_telling: Any = odds.any(axis=0)
    means = np.empty((len(y), len(GROUPS)))
    for start in range(0, len(y), _DOCS_AT_ONCE):
        end = min(start + _DOCS_AT_ONCE, len(y))
        entries = rows.part(start, end).of(is_telling).entries(table.vocabulary.groups)
        own = y[start:end].take(entries.documents)
        own *= len(table.vocabulary)
        own += entries.columns
        means[start:end] = group_means(entries, odds.ravel().take(own))
    return means


def _left_out(table: CountTable) -> Floats32:
    """Return every token's log-odds for a message of class 0 or 1 that has it, left out.

    shape: (2, n_features).
    """
    count = table.feature_count
    # Most tokens stand in one message alone; without it nothing is known of them.
    first, second = count.T
    known = np.flatnonzero((first + second > 1) | ((first > 0) & (second > 0)))
    odds = np.zeros((2, len(count)), np.float32)
    for label in (0, 1):
        odds[label, known] = log_odds(count.take(known, axis=0), table.class_count, label)
    return odds


def prior_worth() -> Floats:
    """Return what groups' means are taken to be worth before anything is known."""
    return np.append(np.full(len(GROUPS), PRIOR_WORTH), 0.0)


def with_groups(worth: Floats) -> Floats:
    """Return a model's worth for all of GROUPS, of which older ones knew the first few.

    Raises ValueError.
    """
    old = len(worth) - 1
    if not 0 < old <= len(GROUPS):
        raise ValueError("its groups are not ours")
    return np.concatenate([worth[:old], prior_worth()[old:-1], worth[old:]])


def fit_worth(means: Floats, y: Integers) -> Floats:
    """Fit ridge logistic regression by Newton steps; shape (n_groups + 1,).

    means: (n_docs, n_groups) of messages that do not count in them.  y: (n_docs,) 0 or 1.
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
    layer: Rows, y: Integers, score: Floats, n_features: int, classes: tuple[str, ...]
) -> tuple[Floats32, float]:
    """Return corrections of tokens, and of the constant, from messages nearly wrong."""
    bounds, columns = layer.offsets, layer.columns
    scale = _scale(np.diff(bounds))
    correction = np.zeros(n_features, np.float32)
    constant = 0.0
    for number in range(PASSES):
        if number in LOOKS:
            summed = _sums(correction, columns, bounds) if number else 0.0
            far = np.abs(y - probability(score + constant + scale * summed))
            rows = np.flatnonzero(far > NEAR)
            places = zip(bounds[rows].tolist(), bounds[rows + 1].tolist(), strict=True)
            # What numpy would make of the columns, and Python of the numbers, at every use.
            own = [columns[start:end].astype(np.intp) for start, end in places]
            given = list(
                zip(scale[rows].tolist(), score[rows].tolist(), y[rows].tolist(), strict=True)
            )
        for place, (by, before, truth) in zip(own, given, strict=True):
            now = correction[place]
            z = before + constant + by * float(np.add.reduce(now))
            constant += correct(correction, place, now, by, z, truth, classes)
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


def correct(
    correction: Floats32,
    own: Indices,
    now: Floats32,
    scale: float,
    score: float,
    truth: int,
    classes: tuple[str, ...],
) -> float:
    """Correct one message's tokens in place; return the correction of the constant.

    own: the message's columns in the layer; now: their corrections so far.  Nothing moves
    unless it is nearly wrong.
    """
    error = truth - 0.5 * (1 + tanh(score / 2))  # the logistic function of one number
    if abs(error) <= NEAR:
        return 0.0
    if error < 0 and classes == ("ham", "spam"):
        error *= HAM_STEP
    correction[own] = now + RATE * scale * error
    return BIAS_RATE * error


def probability(log_odds: Any) -> Any:
    """Return the probability that log-odds mean: the logistic function, never 0 or 1."""
    return 1 / (1 + np.exp(-np.clip(log_odds, -500, 500)))
