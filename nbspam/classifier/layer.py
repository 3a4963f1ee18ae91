"""The layer of corrections: one number per token, learned from messages that are nearly wrong.

Secret: from which messages corrections are learned, in which order, and by which steps.
"""

from collections.abc import Sequence
from math import tanh
from typing import Any

import numpy as np

from nbspam.arrays import Floats, Floats32, Indices, Integers
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
HAM_STEP = 1.5  # factor of the step of a ham message that is taken for spam
MOST = 12.0  # nats by which all corrections together move a score at most: E-119
_DOCS_AT_ONCE = 1 << 8  # documents whose entries fit into the processor's caches


def layer_scale(layer: Documents) -> Floats:
    """Return 1 / sqrt(number of tokens) for each document, shape (n_docs,)."""
    return np.asarray(1 / np.sqrt(np.maximum(np.diff(layer.offsets), 1)))


def bounded(total: Any) -> Any:
    """Return a sum of corrections, nats, cut off where it exceeds MOST."""
    return np.clip(total, -MOST, MOST)


def corrections(
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
            far = np.abs(y - probability(score + constant + bounded(scale * summed)))
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
        total = scale * float(np.add.reduce(now))
        z = score + constant + max(-MOST, min(total, MOST))
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
    return error * HAM_STEP if error < 0 and classes == HAM_AND_SPAM else error


def probability(log_odds: Any) -> Any:
    """Return the probability for log-odds: the logistic function, never exactly 0 or 1."""
    return 1 / (1 + np.exp(-np.clip(log_odds, -500, 500)))
