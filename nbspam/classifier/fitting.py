"""Fitting a combination: the worth of groups of tokens, and corrections of single tokens.

Worth is a ridge logistic regression on the means of groups, each message by the counts of all
others.  A message whose score is wrong or nearly wrong then corrects the numbers of its tokens, a
little and a few times: steps of logistic regression, one message after the other.

People file some messages wrongly.  Corrections would learn each of them by heart, so a label that
all other messages contradict is doubted (see `trust`): such a message corrects less, or nothing.
A label that a person gave to a single message is never doubted.
"""

from collections.abc import Sequence
from math import tanh
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Floats, Floats32, Indices, Integers, Keys, Octets, differences
from nbspam.classifier import combine
from nbspam.counts.table import CountTable
from nbspam.decision import HAM_AND_SPAM
from nbspam.printing import tracked
from nbspam.tokens.definition import GROUPS, HASH_SHIFT, IS_STRUCTURE
from nbspam.tokens.sparse import Documents

DOCS_AT_ONCE = 1 << 8  # documents whose entries fit into the processor's caches
RIDGE = 10.0  # strength of the prior on the worth of groups: E-149
FEW = 100  # learned messages; with fewer the text counts more, and tokens are not halved
# Prior worth of each group's mean, and of the text's if they are fewer than FEW: E-314.
PRIOR_WORTH, PRIOR_OF_TEXT = 0.5, 0.75
# Not fitted: at home, words say the same better; of other people's mail nothing is known.  E-363
WORTH_OF_SIGNS = 0.3
# Quantile of the share unknown among the learned messages, and the fewest that have one: E-314.
USUAL, FEWEST_USUAL = 0.995, 20
USUAL_LEANING = 0.99  # quantile of the mean leaning of ham: E-318
RATE, BIAS_RATE = 8.0, 0.2  # step sizes of the corrections, and of the constant
# A message is nearly wrong, and corrects the layer, if the probability of its true class is below
# 1 - NEAR, so even at 0.99.
NEAR = 0.005
# Stages of learning: the part of a score that is corrected, the tokens that are seen one after the
# other (halves, see `in_half`, or all: None), and the passes over each.  The first of these passes
# selects the messages that are nearly wrong.
STAGES = (1.0, (None,), 2), (1.0, (None,), 3)
# Of ham and spam; with fewer than FEW messages the first stage is left out.  E-295 chose the part,
# E-311 the halves.
EASED_STAGES = (0.5, (0, 1), 1), (0.5, (None,), 2), (1.0, (None,), 3)
# Factor of the step of a ham message that is taken for spam: 1 without messages, and more with
# each that is learned from, up to the greatest.  With few messages it would bias scores: E-133.
HAM_STEP, HAM_STEP_GROWTH = 1.5, 1 / 400
# The most that the steps of one message add up to, with ham and spam in each stage: E-149, E-311
MOST_OF_ONE = 1.0
# Chosen by E-131.  A label is doubted if its probability is below 8 times the share of wrong
# labels (at most 0.5), and not believed at all below twice that share (at most 0.4).
BELIEVED = (2.0, 0.4), (8.0, 0.5)
_RIGHT = 50  # right labels that are added to the observed ones
CERTAINTY = 400.0  # strength of the prior that scores are as certain as they look: E-132
_LEAST = 0.05  # certainty


def fit_combination(
    table: CountTable, documents: Documents, y: Integers, told: Booleans | None = None
) -> combine.Combination:
    """Return the combination that predicts messages best, leaving one out at a time.

    table: counts of two classes, including these messages.  documents: over columns of the table;
    corrections are learned in their order, which must be unrelated to their classes.  y: (n_docs,)
    0 or 1.  told: (n_docs,) whether a person has told this class; None: none of them.
    """
    means = means_left_out(table, documents, y)
    worth = fit_worth(means, y, combine.limits_of(table))
    score = combine.score_of_means(means, worth)
    layer = documents.only(combine.IN_LAYER[table.vocabulary.groups[documents.tokens]])
    layer = layer._replace(tokens=table.vocabulary.keys[documents.tokens])
    correction = np.zeros(len(table.vocabulary), np.float32)
    learned = corrections(layer, y, score, table.classes, told)
    correction[documents.tokens] = learned.correction * np.float32(learned.certainty)
    worth[-1] += learned.constant
    usual = usual_share(table, documents), usual_leaning(table, documents, y)
    return combine.Combination(worth * learned.certainty, correction, *usual)


def means_left_out(table: CountTable, documents: Documents, y: Integers) -> Floats:
    """Return each message's group means by the counts of all others, shape (n_docs, n_groups)."""
    count, groups = table.feature_count[documents.tokens], table.vocabulary.groups
    groups = groups[documents.tokens]
    odds = _odds_left_out(count, table.class_count, groups)
    limits = combine.limits_for(combine.limits_of(table), documents, groups, table.vocabulary.keys)
    # Four of five entries have tokens whose log-odds are 0 for both classes.
    is_telling: Any = odds.any(axis=0)
    means = np.empty((len(y), len(GROUPS)))
    for start in range(0, len(y), DOCS_AT_ONCE):
        end = min(start + DOCS_AT_ONCE, len(y))
        part = documents.part(start, end).only(is_telling)
        own = y[start:end].take(part.rows())
        own *= odds.shape[1]
        own += part.columns
        own_limits = limits if limits is None or limits.ndim == 2 else limits[start:end]
        means[start:end] = combine.group_means(part, groups, odds.ravel().take(own), own_limits)
    means[:, combine.SIGNS] = 0.0  # so that they keep their prior worth
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
        odds[label, known] = combine.log_odds(*of_known, left_out=label)
    return odds


def prior_worth(n_docs: int) -> Floats:
    """Return the prior worth of the groups' means, and the prior constant, (n_groups + 1,).

    n_docs: messages that are learned.  With few messages, the words are more
    informative than the route.  Facts about people and of signs are summed.
    """
    worth = np.append(np.full(len(GROUPS), PRIOR_WORTH), 0.0)
    if n_docs < FEW:
        worth[GROUPS.index("text")] = PRIOR_OF_TEXT
    worth[combine.PEOPLE] = 1.0
    worth[combine.SIGNS] = WORTH_OF_SIGNS
    return worth


def fit_worth(means: Floats, y: Integers, limits: Integers | None) -> Floats:
    """Fit a ridge logistic regression by Newton steps; shape (n_groups + 1,).

    means: (n_docs, n_groups), from `means_left_out`.  y: (n_docs,) 0 or 1.  With limits, hidden
    tokens are never worth less than nothing.
    """
    worth = _fit_worth(means, y)
    if limits is not None and worth[combine.HIDDEN] < 0:
        others = np.where(np.arange(len(GROUPS)) == combine.HIDDEN, 0.0, means)
        worth = _fit_worth(others, y)
        worth[combine.HIDDEN] = 0.0
    return worth


def _fit_worth(means: Floats, y: Integers) -> Floats:
    # Sums by einsum: those of `@` start threads, and their last digits depend on how many.
    design = np.column_stack([means, np.ones(len(y))])
    prior = prior_worth(len(y))

    def loss(worth: Floats) -> float:
        z = np.einsum("nj,j->n", design, worth)
        penalty = 0.5 * RIDGE * ((worth - prior) ** 2).sum()
        return float(np.logaddexp(0, z).sum() - (y * z).sum() + penalty)

    worth = prior.copy()
    best = loss(worth)
    for _ in range(25):
        p = combine.probability(np.einsum("nj,j->n", design, worth))
        weighted = design * (p * (1 - p))[:, None]
        hessian = np.einsum("nj,nk->jk", weighted, design) + RIDGE * np.eye(len(prior))
        slope = np.einsum("nj,n->j", design, p - y) + RIDGE * (worth - prior)
        step = np.linalg.solve(hessian, slope)
        while (new := loss(worth - step)) > best and np.abs(step).max() > 1e-9:
            step /= 2
        if new >= best - 1e-9:
            break
        worth, best = worth - step, new
    return worth


def usual_share(table: CountTable, documents: Documents) -> float:
    """Return the share unknown that messages hardly ever exceed, 0 to 1, leaving one out.

    documents: learned messages, over columns of the table.  It is 1, so that nothing is drawn, for
    classes other than ham and spam, for very few messages, and for a model that has forgotten
    tokens: it cannot know how much of a message is new.  Bishop (1994), "Novelty detection and
    neural network validation".
    """
    if not _shows_usual(table, documents.n_docs):
        return 1.0
    is_structure = IS_STRUCTURE.take(table.vocabulary.groups.take(documents.tokens))
    is_own = is_structure & (table.document_frequency.take(documents.tokens) < 2)
    own, whole = documents.lengths(is_own), documents.lengths(is_structure)
    shares = np.sort(combine.share_unknown(own, whole))
    return float(shares[int(USUAL * (len(shares) - 1))])


def usual_leaning(table: CountTable, documents: Documents, y: Integers) -> float:
    """Return the mean leaning that words of ham hardly ever exceed, 0 to 1, leaving one out.

    documents: learned messages, over columns of the table.  y: (n_docs,) 0 or 1.  It is 1, so that
    words raise no score, where `usual_share` is 1.
    """
    is_ham = y == 0
    if not _shows_usual(table, int(np.count_nonzero(is_ham))):
        return 1.0
    columns = documents.tokens
    count, groups = table.feature_count[columns], table.vocabulary.groups[columns]
    leaning = combine.leanings(count, table.class_count, groups, left_out=0)
    starts = range(0, documents.n_docs, DOCS_AT_ONCE)
    parts = (documents.part(start, start + DOCS_AT_ONCE) for start in starts)
    means = [combine.mean_leaning(part, leaning.take(part.columns)) for part in parts]
    of_ham = np.sort(np.concatenate(means)[is_ham])
    return max(float(of_ham[int(USUAL_LEANING * (len(of_ham) - 1))]), 0.0)


def _shows_usual(table: CountTable, n_docs: int) -> bool:
    """Return whether so many learned messages are enough to show what is usual in mail."""
    is_whole = table.classes == HAM_AND_SPAM and table.loss is None
    return is_whole and n_docs >= FEWEST_USUAL


# --- corrections ----------------------------------------------------------------------------


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

    layer: documents over the keys of tokens in the layer only.  y: (n_docs,) 0 or 1.  score:
    (n_docs,) log-odds without corrections, each from the counts of all other messages.  told:
    (n_docs,) whether a person has told the class; None: none of them.

    Scores of training mail leave little to correct, so corrections would not generalise.  With
    ham and spam, therefore, the first passes correct a part of each score, and tokens learn
    their own worth; the last ones correct the remaining errors of the whole score.  The very
    first see half of the tokens each, so that none relies on others that other people's mail
    lacks.  Wager, Wang & Liang (2013), "Dropout training as adaptive regularization".

    Corrections by the last messages of a pass have more effect, because no others follow.
    Therefore every second pass takes the messages in the opposite order, and the result is the
    mean of the corrections after the last pass and after the one before it: E-019.
    """
    scale, trusted = combine.layer_scale(differences(layer.offsets)), trust(score, y, told)
    of_ham, is_eased = ham_step(classes, len(y)), classes == HAM_AND_SPAM
    correction, constant = np.zeros(len(layer.tokens), np.float32), 0.0
    number, moved = 0, [0.0] * len(y)
    stages = EASED_STAGES[len(y) < FEW :] if is_eased else STAGES
    for part, halves, passes in tracked(stages, "stages"):
        if is_eased:
            moved = [0.0] * len(y)
        for half in halves:
            z = part * score + constant
            if half is None:  # the tokens of a half are not corrected yet
                z += combine.bounded(scale * _sums(correction, layer.columns, layer.offsets))
            seen = layer if half is None else layer.only(in_half(layer.tokens, half))
            rows = np.flatnonzero((np.abs(y - combine.probability(z)) > NEAR) & (trusted > 0))
            near = _messages(seen, rows, scale, part * score, y, trusted)
            for _ in range(passes):
                before_last = correction, constant
                turn = near if number % 2 == 0 else near[::-1]
                own = correction.copy()
                correction, constant, steps = _pass(turn, own, constant, of_ham, moved)
                if number == 0:
                    first = steps[::-1]
                elif number == 1:
                    certainty = _certainty(turn, first, steps, classes)
                number += 1
    mean = (correction + before_last[0]) / np.float32(2)
    return Layer(np.asarray(mean), (constant + before_last[1]) / 2, certainty)


def in_half(keys: Keys, half: int) -> Booleans:
    """Return which tokens are in half 0 or 1, (n_tokens,); a bit of the hash decides."""
    return np.asarray(keys >> np.uint64(HASH_SHIFT) & np.uint64(1) == half)


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
        own = combine.probability(np.where(y == 1, score, -score)[filed])
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
    return float((own[decided] < 0).sum() / (decided.sum() + _RIGHT))


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

    The score of each message is that before its own step.  moved: (n_docs,) the sum of each
    message's steps, at most MOST_OF_ONE either way; updated in place.
    """
    steps, total_of, most = [], np.add.reduce, combine.MOST_NATS
    for row, columns, scale, score, truth, trusted in messages:
        now = correction[columns]
        z = score + constant + max(-most, min(scale * float(total_of(now)), most))
        step = trusted * correction_step(z, truth, of_ham)
        step = max(-MOST_OF_ONE - moved[row], min(step, MOST_OF_ONE - moved[row]))
        if step:
            moved[row] += step
            now += RATE * scale * step
            correction[columns] = now
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
        p = combine.probability(-factor * margin)
        slope = CERTAINTY * (factor - 1) - (margin * p).sum()
        factor -= slope / (CERTAINTY + (margin**2 * p * (1 - p)).sum())
        factor = float(np.clip(factor, _LEAST, 1.0))
    return factor


def _sums(values: Floats32, columns: Indices, bounds: Integers) -> Floats:
    """Return the sums of values[columns] between successive bounds, shape (n_docs,)."""
    total = np.zeros(len(bounds) - 1)
    for first in range(0, len(total), DOCS_AT_ONCE):
        starts = bounds[first : first + DOCS_AT_ONCE + 1]
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
