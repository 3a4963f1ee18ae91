"""Combining: how evidence for two classes adds up to calibrated log-odds.

Naive Bayes adds the log-odds of all tokens as if tokens were independent, so its probabilities
are too extreme.  Here the log-odds of each group of tokens (text, route, web, pairs, ...) are
averaged, and a small logistic regression, fitted to held-out messages, weights the means of the
groups; it gives a probability.  A layer of corrections, one number per token, is learned from the
few messages that are wrong or nearly wrong.  The score remains a sum over tokens.

A spammer may add any number of words of ham.  Of ham and spam, therefore, only the strongest
tokens of each group count, fewer of those for ham.  Words that the reader does not see can only
speak for spam.

People file some messages wrongly.  The layer would learn each of them by heart, so it doubts a
label that all other messages contradict (see `trust`): such a message corrects less, or nothing.
A label that a person gave to a single message is never doubted.
"""

from collections.abc import Sequence
from math import tanh
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import (
    Booleans,
    Floats,
    Floats32,
    Indices,
    Integers,
    Keys,
    Octets,
    differences,
    positions_of,
)
from nbspam.classifier.familiarity import share_dropped, tempered, usual_share
from nbspam.counts.table import CountTable
from nbspam.decision import HAM_AND_SPAM
from nbspam.printing import tracked
from nbspam.settings import Settings
from nbspam.tokens.definition import GROUPS, UNVOUCHED, Token, reference_key
from nbspam.tokens.sparse import Documents
from nbspam.verdicts import joint_of_log_odds

# E-002 chose the constants of groups and corrections, the same for all corpora; E-119 STRONGEST.
# Words are what other people's mail has in common with one's own, and the common ones move less
# than the rare ones: so of words rare ones are believed less, and weak ones more (E-260).
_IS_WORD = np.isin(GROUPS, ["text", "subject"])
# Lidstone's addend to the presence of a token in a class, (n_groups,)
ALPHA = np.where(_IS_WORD, 0.1, 0.03)
BAND = np.where(_IS_WORD, 1.5, 2.0)  # nats, (n_groups,); tokens with weaker log-odds are ignored
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
PEOPLE = GROUPS.index("people")
_UNVOUCHED = np.array(
    [reference_key(Token("people", word.encode())) for word in UNVOUCHED], np.uint64
)
MOST_UNVOUCHED = 1  # tokens of a group that count for ham at most, beside one of UNVOUCHED
_DOCS_AT_ONCE = 1 << 8  # documents whose entries fit into the processor's caches
# The groups whose tokens are corrected, (n_groups,).
IN_LAYER = ~np.isin(np.arange(len(GROUPS)), [GROUPS.index("pairs"), HIDDEN])

# Of the layer of corrections.
RATE, BIAS_RATE = 8.0, 0.2  # step sizes of the corrections, and of the constant
# A message is nearly wrong, and corrects the layer, if the probability of its true class is below
# 1 - NEAR, so even at 0.99.
NEAR = 0.005
PASSES = 5  # passes over the messages
LOOKS = (0, 2)  # the passes that select, among all messages, those that are nearly wrong
EASED = 0.5  # of ham and spam, the part of a score that is corrected until the second look: E-295
# Factor of the step of a ham message that is taken for spam: 1 without messages, and more with
# each that is learned from, up to the greatest.  With few messages it would bias scores: E-133.
HAM_STEP, HAM_STEP_GROWTH = 1.5, 1 / 400
# Most of one message's steps while a part of its score is corrected, and again after: E-149, E-295
MOST_OF_ONE = 1.0
MOST = 12.0  # nats by which all corrections together move a score at most: E-119
# Chosen by E-131.  A label is doubted if its probability is below 8 times the share of wrong
# labels (at most 0.5), and not believed at all below twice that share (at most 0.4).
BELIEVED = (2.0, 0.4), (8.0, 0.5)
RIGHT = 50  # right labels that are assumed beside those that are seen
CERTAIN = 400.0  # strength of the prior that scores are as certain as they look: E-132
_LEAST = 0.05  # certainty


class EvidenceCounting(NamedTuple):
    """The entries of documents that count, in any order."""

    entry: Integers  # (n,) their numbers
    cell: Integers  # (n,) document * n_groups + group with which the token is averaged
    odds: Floats | Floats32  # (n,) log-odds, nats


class WeighedEvidence(NamedTuple):
    """Documents, and what counts say of their tokens."""

    documents: Documents
    groups: Octets  # (n_tokens,)
    odds: Floats  # (nnz,) log-odds of each entry's token, nats
    in_layer: Booleans  # (n_tokens,) whether the token is corrected
    correction: Floats32  # (n_tokens,) nats
    limits: Integers | None  # from `limits_for`
    unfamiliar: Floats  # (n_docs,) share of the structure that is unknown, from `familiarity`


class Combination(NamedTuple):
    """The fitted weights of groups, and the corrections of single tokens."""

    worth: Floats  # (n_groups + 1,) weight of each group's mean, and the constant in nats
    correction: Floats32  # (n_features,) nats; 0 for tokens outside the layer
    usual: float = 1.0  # share of a message's structure that is unknown and raises no doubt

    def joint(self, table: CountTable, documents: Documents, weighting: str) -> Floats:
        """Return log P(class given document), nats, shape (n_docs, 2).

        documents: over columns of the table.
        """
        return joint_of_log_odds(self.scores(self.weighed(table, documents)))

    def shares(
        self, table: CountTable, documents: Documents, weighting: str, towards: int, against: int
    ) -> tuple[Floats, float]:
        """Return each token's share (nnz,) of the log-odds of two classes, and the constant, nats.

        documents: one document, over columns of the table.  They add up to its score.
        """
        sign, weighed = 1 if towards == 1 else -1, self.weighed(table, documents)
        return sign * self.parts(weighed), sign * float(self.worth[-1]) * self.kept(weighed)

    def weighed(self, table: CountTable, documents: Documents) -> "WeighedEvidence":
        """Return documents over columns of the table with what its counts say of them."""
        groups = table.vocabulary.groups.take(documents.tokens)
        counts = table.feature_count.take(documents.tokens, axis=0)
        odds = log_odds(counts, table.class_count, groups)
        return WeighedEvidence(
            documents,
            groups,
            odds.take(documents.columns),
            IN_LAYER.take(groups),
            self.correction.take(documents.tokens),
            limits_for(limits_of(table), documents, groups, table.vocabulary.keys),
            share_dropped(documents, groups),
        )

    def scores(self, weighed: "WeighedEvidence") -> Floats:
        """Return the log-odds of class 1 for each document, nats, shape (n_docs,)."""
        documents, groups, odds, in_layer, correction, limits, unfamiliar = weighed
        means = group_means(documents, groups, odds, limits)
        layer = documents.only(in_layer)
        values = correction.take(layer.columns)
        corrected = np.bincount(layer.rows(), values, layer.n_docs) * layer_scale(layer)
        score = means @ self.worth[:-1] + self.worth[-1] + bounded(corrected)
        return tempered(score, unfamiliar, self.usual)

    def kept(self, weighed: "WeighedEvidence") -> float:
        """Return the part of one document's evidence that counts: 1 unless it is unfamiliar."""
        whole = float(self._replace(usual=1.0).scores(weighed)[0])
        return float(self.scores(weighed)[0]) / whole if whole else 1.0

    def parts(self, weighed: "WeighedEvidence") -> Floats:
        """Return each entry's share of the log-odds of class 1 of one document, nats, (nnz,)."""
        documents, groups, odds, in_layer, correction, limits, _ = weighed
        scale = layer_scale(documents.only(in_layer))[0]
        shares = (np.where(in_layer, correction, 0.0) * scale).take(documents.columns)
        if abs(total := float(shares.sum())) > MOST:
            shares *= MOST / abs(total)
        entry, cell, values = strongest(documents, groups, odds, limits)
        by = divisors(np.bincount(cell, minlength=len(GROUPS)), limits).take(cell)
        shares[entry] += self.worth[cell] * values / by
        return np.asarray(shares * self.kept(weighed))

    def recounted(self, table: CountTable, settings: Settings) -> "Combination":
        """Return the combination for a table with more columns, which get no corrections."""
        more = np.zeros(len(table.vocabulary) - len(self.correction), np.float32)
        return self._replace(correction=np.append(self.correction, more))

    def counted(self, groups: Octets, weights: Floats, appeared: Integers) -> "Combination":
        """Return the combination unchanged: it holds no sums of counts (see `Blend.counted`)."""
        return self


def log_odds(
    feature_count: Floats, class_count: Floats, groups: Octets, left_out: int | None = None
) -> Floats:
    """Return log P(token | class 1) / P(token | class 0), nats, shape (n_features,).

    feature_count: (n_features, 2) documents.  class_count: (2,), or (n_features, 2) where each
    token is of another table.  groups: (n_features,).  left_out: 0 or 1, to leave a counted
    document of this class out: each token gets the log-odds that it has without one document of
    the class that has the token.  Log-odds weaker than the BAND of their group are 0.
    """
    n = np.array(class_count, np.float64).T.reshape(2, -1)
    count = np.array(feature_count.T, np.float64, order="C")  # contiguous for each class
    if left_out is not None:
        n[left_out] -= 1
        count[left_out] -= 1
        np.maximum(count[left_out], 0, out=count[left_out])
    known = count.any(axis=0)
    alpha = ALPHA.take(groups)
    likelihood = np.log(count + alpha) - np.log(n + 2 * alpha)
    odds = likelihood[1] - likelihood[0]
    odds[(np.abs(odds) < BAND.take(groups)) | ~known] = 0.0
    return np.asarray(odds)


def limits_of(table: CountTable) -> Integers | None:
    """Return the most tokens of each group that count for ham and for spam, (n_groups, 2).

    None: all count, because the classes are others, which nobody wants to be taken for.
    """
    return _LIMITS if table.classes == HAM_AND_SPAM else None


def limits_for(
    limits: Integers | None, documents: Documents, groups: Octets, keys: Keys | None = None
) -> Integers | None:
    """Return the limits of each document, (n_docs, n_groups, 2), or of all, from `limits_of`.

    Of a stranger's message that poses as an answer only a few tokens count for ham, as it can
    have the others from the thread: see `definition.UNVOUCHED`.  groups: (n_tokens,).  keys: of
    the vocabulary, if the documents are over its columns.
    """
    place = positions_of(groups == PEOPLE)
    if limits is None or not len(place):
        return limits
    tokens = documents.tokens.take(place)
    unvouched = place[np.isin(tokens if keys is None else keys[tokens], _UNVOUCHED)]
    rows = documents.rows()[np.isin(documents.columns, unvouched)]
    of_each = np.tile(limits, (documents.n_docs, 1, 1))
    of_each[rows, :, 0] = np.minimum(limits[:, 0], MOST_UNVOUCHED)
    return of_each


def strongest(
    documents: Documents, groups: Octets, odds: Floats | Floats32, limits: Integers | None
) -> EvidenceCounting:
    """Return the entries that count.

    groups: (n_tokens,); odds: (nnz,) log-odds of each entry's token; zeros do not count.  Of each
    group's tokens for a class those with the strongest log-odds count, and of equally strong ones
    those whose entries come first.  limits: their number, from `limits_for`.
    """
    entry = positions_of(odds)
    cell = documents.rows().take(entry).astype(np.int64)
    cell *= len(GROUPS)
    cell += _WITH.take(groups.take(documents.columns.take(entry)))
    odds = odds.take(entry)
    if limits is None:
        return EvidenceCounting(entry, cell, odds)
    place = 2 * cell + (odds > 0)
    # Equally strong ones add up to the same in any order; those of one document may be shown.
    kind: Any = "stable" if documents.n_docs == 1 else None
    order = (_ABOVE_ALL * place - np.abs(odds)).argsort(kind=kind)
    number = np.bincount(place)
    rank = np.arange(len(order)) - (number.cumsum() - number).repeat(number)
    counts = order[rank < limits.ravel().take(place.take(order) % limits.size)]
    return EvidenceCounting(entry[counts], cell[counts], odds[counts])


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
    """Return the divisors of sums of log-odds; number: (..., n_groups) of their tokens.

    The number of hidden tokens does not matter, so that no further one lowers the score.  Facts
    about people are few and not repeated in other words: they are summed.
    """
    by = number + DAMPING
    by[..., PEOPLE] = 1
    if limits is not None:
        by[..., HIDDEN] = STRONGEST[1] + DAMPING
    return np.asarray(by)


def fit_combination(
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
    return Combination(worth * learned.certainty, correction, usual_share(table, documents))


def without_evidence(n_features: int) -> Combination:
    """Return the combination in which no token tells anything: log-odds are always 0."""
    return Combination(np.zeros(len(GROUPS) + 1), np.zeros(n_features, np.float32))


def means_left_out(table: CountTable, documents: Documents, y: Integers) -> Floats:
    """Return each message's group means by the counts of all others, shape (n_docs, n_groups)."""
    count, groups = table.feature_count[documents.tokens], table.vocabulary.groups
    groups = groups[documents.tokens]
    odds = _odds_left_out(count, table.class_count, groups)
    limits = limits_for(limits_of(table), documents, groups, table.vocabulary.keys)
    # Four of five entries have tokens whose log-odds are 0 for both classes.
    is_telling: Any = odds.any(axis=0)
    means = np.empty((len(y), len(GROUPS)))
    for start in range(0, len(y), _DOCS_AT_ONCE):
        end = min(start + _DOCS_AT_ONCE, len(y))
        part = documents.part(start, end).only(is_telling)
        own = y[start:end].take(part.rows())
        own *= odds.shape[1]
        own += part.columns
        own_limits = limits if limits is None or limits.ndim == 2 else limits[start:end]
        means[start:end] = group_means(part, groups, odds.ravel().take(own), own_limits)
    return means


def _odds_left_out(count: Floats, class_count: Floats, groups: Octets) -> Floats32:
    """Return each token's log-odds without one message of class 0, or of class 1, that has it.

    count: (n_features, 2).  Shape (2, n_features), nats.
    """
    # Most tokens occur in a single message; without it they are unknown.
    first, second = count.T
    known = np.flatnonzero((first + second > 1) | ((first > 0) & (second > 0)))
    odds = np.zeros((2, len(count)), np.float32)
    for label in (0, 1):
        of_known = count.take(known, axis=0), class_count, groups.take(known)
        odds[label, known] = log_odds(*of_known, left_out=label)
    return odds


def prior_worth() -> Floats:
    """Return the prior worth of the groups' means, and the prior constant, (n_groups + 1,)."""
    worth = np.append(np.full(len(GROUPS), PRIOR_WORTH), 0.0)
    worth[PEOPLE] = 1.0  # of a sum
    return worth


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


# --- corrections ----------------------------------------------------------------------------


def layer_scale(layer: Documents) -> Floats:
    """Return 1 / sqrt(number of tokens) for each document, shape (n_docs,)."""
    return np.asarray(1 / np.sqrt(np.maximum(differences(layer.offsets), 1)))


def bounded(total: Any) -> Any:
    """Return a sum of corrections, nats, cut off where it exceeds MOST."""
    return np.minimum(np.maximum(total, -MOST), MOST)


class Layer(NamedTuple):
    """The corrections learned from messages that are nearly wrong."""

    correction: Floats32  # (n_tokens,) nats
    constant: float  # nats
    certainty: float  # at most 1; factor of the corrected log-odds that calibrates them


def corrections(
    layer: Documents,
    y: Integers,
    score: Floats,
    classes: tuple[str, ...],
    told: Booleans | None = None,
) -> Layer:
    """Learn from nearly wrong messages.

    layer: documents over tokens in the layer only.  y: (n_docs,) 0 or 1.  score: (n_docs,)
    log-odds without corrections, each from the counts of all other messages.  told: (n_docs,)
    whether a person has told the class; None: none of them.

    Scores at home leave little to correct, so the corrections would know only home.  Of ham and
    spam, therefore, the first passes correct a part of each score, and tokens learn what they
    tell without the others; the last ones correct what is still wrong with the whole score.

    Corrections by the last messages of a pass have more effect, because no others follow.
    Therefore every second pass takes the messages in the opposite order, and the result is the
    mean of the corrections after the last pass and after the one before it: E-019.
    """
    scale, trusted = layer_scale(layer), trust(score, y, told)
    of_ham = ham_step(classes, len(y))
    correction, constant = np.zeros(len(layer.tokens), np.float32), 0.0
    moved, is_eased = [0.0] * len(y), classes == HAM_AND_SPAM
    start = EASED * score if is_eased else score
    for number in tracked(range(PASSES), "passes"):
        if number in LOOKS:
            if number and is_eased:
                start, moved = score, [0.0] * len(y)
            summed = _sums(correction, layer.columns, layer.offsets) if number else 0.0
            far = np.abs(y - probability(start + constant + bounded(scale * summed)))
            is_near = (far > NEAR) & (trusted > 0)
            near = _messages(layer, np.flatnonzero(is_near), scale, start, y, trusted)
        before_last = correction, constant
        turn = near if number % 2 == 0 else near[::-1]
        correction, constant, steps = _pass(turn, correction.copy(), constant, of_ham, moved)
        if number == 0:
            first = steps[::-1]
        elif number == 1:
            certainty = _certainty(turn, first, steps, classes)
    mean = (correction + before_last[0]) / np.float32(2)
    return Layer(np.asarray(mean), (constant + before_last[1]) / 2, certainty)


def trust(score: Floats, y: Integers, told: Booleans | None = None) -> Floats:
    """Return the degree to which each message's label is believed, 0 to 1, shape (n_docs,).

    score: (n_docs,) log-odds from the counts of all other messages, nats.  These contradict a
    label if it is the less probable one.  The share of wrong labels is estimated as the share of
    contradicted ones among the more decided half of the messages, because decided scores are
    hardly ever mistaken.  If there are none, all labels are believed.  told: (n_docs,) labels that
    are believed in any case, and are left out of the share; None: none of them.
    """
    filed = np.arange(len(y)) if told is None else np.flatnonzero(~told)
    trusted = np.ones(len(y))
    wrong = share_wrong(score[filed], y[filed])
    if wrong:
        low, high = (min(times * wrong, most) for times, most in BELIEVED)
        own = probability(np.where(y == 1, score, -score)[filed])
        trusted[filed] = np.clip((own - low) / (high - low), 0.0, 1.0)
    return trusted


def share_wrong(score: Floats, y: Integers) -> float:
    """Return the estimated share of wrong labels, 0 to 1; arguments: see `trust`."""
    if not len(y):
        return 0.0
    own = np.where(y == 1, score, -score)
    strength = np.sort(np.abs(score))
    # The median.  Before its first one numpy imports masked arrays, for 30 ms.
    median = (strength[(len(strength) - 1) // 2] + strength[len(strength) // 2]) / 2
    decided = np.abs(score) >= median
    return float((own[decided] < 0).sum() / (decided.sum() + RIGHT))


# A message's number, its columns, the scale of its corrections, its score without them, its class,
# and how far its class is believed.
_Message = tuple[int, Integers, float, float, int, float]


def _messages(
    layer: Documents, rows: Integers, scale: Floats, score: Floats, y: Integers, trusted: Floats
) -> list[_Message]:
    """Return some messages, converted once for all passes to indices and Python's numbers."""
    starts, ends = layer.offsets[rows].tolist(), layer.offsets[rows + 1].tolist()
    columns = [layer.columns[i:j].astype(np.intp) for i, j in zip(starts, ends, strict=True)]
    numbers = (of[rows].tolist() for of in (scale, score, y, trusted))
    return list(zip(rows.tolist(), columns, *numbers, strict=True))


def _pass(
    messages: Sequence[_Message],
    correction: Floats32,
    constant: float,
    of_ham: float,
    moved: list[float],
) -> tuple[Floats32, float, list[tuple[float, float]]]:
    """Correct for one message after the other, in place; return both, and scores and steps.

    The score of each message is that before its own step.  moved: (n_docs,) what the steps of
    each message add up to, at most MOST_OF_ONE either way; updated in place.
    """
    steps = []
    for row, columns, scale, score, truth, trusted in messages:
        now = correction.take(columns)
        total = scale * float(np.add.reduce(now))
        z = score + constant + max(-MOST, min(total, MOST))
        step = trusted * correction_step(z, truth, of_ham)
        step = max(-MOST_OF_ONE - moved[row], min(step, MOST_OF_ONE - moved[row]))
        if step:
            moved[row] += step
            correction[columns] = now + RATE * scale * step
            constant += BIAS_RATE * step
        steps.append((z, step))
    return correction, constant, steps


def _certainty(
    messages: Sequence[_Message],
    first: Sequence[tuple[float, float]],
    second: Sequence[tuple[float, float]],
    classes: tuple[str, ...],
) -> float:
    """Return the factor, at most 1, that calibrates log-odds of messages that were not learned.

    first, second: scores and steps of two passes over the messages.  A message's step in the
    first pass added (RATE + BIAS_RATE) * step to its score in the second; that is subtracted
    again, as if the message had not been learned.  The factor has the least log loss.  Mail needs
    none: E-132.
    """
    if not messages or classes == HAM_AND_SPAM:
        return 1.0
    truth = np.array([message[4] for message in messages])
    (_, step), (z, _) = np.transpose(first), np.transpose(second)
    margin = (2 * truth - 1) * (z - (RATE + BIAS_RATE) * step)
    factor = 1.0
    for _ in range(20):  # Newton steps towards the least log loss
        p = probability(-factor * margin)
        slope = CERTAIN * (factor - 1) - (margin * p).sum()
        factor -= slope / (CERTAIN + (margin**2 * p * (1 - p)).sum())
        factor = float(np.clip(factor, _LEAST, 1.0))
    return factor


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


def ham_step(classes: tuple[str, ...], n_docs: int) -> float:
    """Return the factor of the steps of class 0; 1 unless the classes are ham and spam.

    n_docs: the number of messages from which corrections are learned.
    """
    return min(HAM_STEP, 1 + HAM_STEP_GROWTH * n_docs) if classes == HAM_AND_SPAM else 1.0


def correction_step(score: float, truth: int, of_ham: float) -> float:
    """Return the step by which a message moves the layer; 0 unless it is nearly wrong.

    Positive steps, at most 1, move towards class 1.  Negative ones are -of_ham at least.  score:
    the log-odds of class 1 that the message has with the corrections so far, nats.  truth: its
    class, 0 or 1.  of_ham: the factor of steps of class 0, from `ham_step`.
    """
    error = truth - 0.5 * (1 + tanh(score / 2))  # the logistic function of a single number
    if abs(error) <= NEAR:
        return 0.0
    return error * of_ham if error < 0 else error


def probability(log_odds: Any) -> Any:
    """Return the probability for log-odds: the logistic function, never exactly 0 or 1."""
    return 1 / (1 + np.exp(-np.clip(log_odds, -500, 500)))
