"""The layer of corrections: one number per token, learned from messages that are nearly wrong.

People file some messages wrongly.  The layer would learn each of them by heart, so it doubts a
label that all other messages contradict (see `trust`): such a message corrects less, or nothing.
What a person has told of a single message is never doubted.

Secret: from which messages corrections are learned, in which order, by which steps, and how
certain the corrected scores are.
"""

from collections.abc import Sequence
from math import tanh
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Floats, Floats32, Indices, Integers, differences
from nbspam.decision import HAM_AND_SPAM
from nbspam.progress import tracked
from nbspam.tokens.documents import Documents

# E-002 chose these constants, the same for all corpora.
RATE, BIAS_RATE = 8.0, 0.2  # step sizes of the corrections, and of the constant
# A message is nearly wrong, and corrects the layer, if the probability of its true class is below
# 1 - NEAR, so even at 0.99.
NEAR = 0.005
PASSES = 5  # passes over the messages
LOOKS = (0, 2)  # the passes that select, among all messages, those that are nearly wrong
# Factor of the step of a ham message that is taken for spam: 1 without messages, and more with
# each that is learned from, up to the greatest.  With few messages it would bias scores: E-133.
HAM_STEP, HAM_STEP_GROWTH = 1.5, 1 / 400
MOST_OF_ONE = 1.0  # what all steps of one message add up to at most: E-149
MOST = 12.0  # nats by which all corrections together move a score at most: E-119
# Chosen by E-131.  A label is doubted if its probability is below 8 times the share of wrong
# labels (at most 0.5), and not believed at all below twice that share (at most 0.4).
BELIEVED = (2.0, 0.4), (8.0, 0.5)
RIGHT = 50  # right labels that are assumed beside those that are seen
CERTAIN = 400.0  # strength of the prior that scores are as certain as they look: E-132
_LEAST = 0.05  # certainty
_DOCS_AT_ONCE = 1 << 8  # documents whose entries fit into the processor's caches


def layer_scale(layer: Documents) -> Floats:
    """Return 1 / sqrt(number of tokens) for each document, shape (n_docs,)."""
    return np.asarray(1 / np.sqrt(np.maximum(differences(layer.offsets), 1)))


def bounded(total: Any) -> Any:
    """Return a sum of corrections, nats, cut off where it exceeds MOST."""
    return np.clip(total, -MOST, MOST)


class Layer(NamedTuple):
    """What was learned from messages that are nearly wrong."""

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

    Corrections by the last messages of a pass have more effect, because no others follow.
    Therefore every second pass takes the messages in the opposite order, and the result is the
    mean of the corrections after the last pass and after the one before it: E-019.
    """
    scale, trusted = layer_scale(layer), trust(score, y, told)
    of_ham = ham_step(classes, len(y))
    correction, constant = np.zeros(len(layer.tokens), np.float32), 0.0
    moved = [0.0] * len(y)
    for number in tracked(range(PASSES), "passes"):
        if number in LOOKS:
            summed = _sums(correction, layer.columns, layer.offsets) if number else 0.0
            far = np.abs(y - probability(score + constant + bounded(scale * summed)))
            is_near = (far > NEAR) & (trusted > 0)
            near = _messages(layer, np.flatnonzero(is_near), scale, score, y, trusted)
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
    """Return how far each message's label is believed, 0 to 1, shape (n_docs,).

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

    first, second: scores and steps of two passes over the messages.  From a message's score in the
    second is subtracted what its own step in the first has added, (RATE + BIAS_RATE) * step.  The
    factor has the least log loss.  Mail needs none: E-132.
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
    """Return how far a message moves the layer; 0 unless it is nearly wrong (see NEAR).

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
