"""Lessons: what judging needs of the messages that one user has taught.

Secret: how a user's tokens are corrected: by the user's own messages that would be judged wrongly,
or nearly, without them.
"""

from collections.abc import Sequence

import numpy as np

from nbspam.arrays import Floats, Floats32, Integers
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.layer import MOST, PASSES, RATE, correction_step
from nbspam.classifier.personal.evidence import Entries, Own, corrected, known_of, weighed
from nbspam.counts.table import CountTable
from nbspam.tokens.documents import Documents

MAX_LESSONS = 500  # of a user, the least certain ones, from which corrections are learned
# A message's columns, their values, its score without corrections, and its class.
_Lesson = tuple[Integers, Floats, float, int]


def own_of(shared: Classifier, table: CountTable, documents: Documents, y: Integers) -> Own:
    """Return what a user has taught, for judging on top of a shared model.

    shared: fitted by `combining.fit`.  table: the counts of the user's messages, of ham and spam.
    documents: these messages, or a sample of them, over keys.  y: (n_docs,) 0 or 1.
    """
    order = np.argsort(table.vocabulary.keys, kind="stable")
    order = order[table.document_frequency[order] > 0]
    values = np.zeros((len(order), 3), np.float32)
    values[:, :2] = table.feature_count[order]
    keys = np.asarray(table.vocabulary.keys)[order]
    own = Own(keys, values, np.array(table.class_count, np.float64))
    values[:, 2] = _corrections(shared, own, documents, y)
    return own


def _corrections(shared: Classifier, own: Own, documents: Documents, y: Integers) -> Floats32:
    """Return the corrections of a user's tokens, nats, shape (n_tokens,).

    Each message is scored by the counts of all others.
    """
    if not len(own.keys):
        return np.zeros(0, np.float32)
    known = known_of(shared, documents.tokens)
    column = own.columns(documents.tokens).take(documents.columns)
    met = column >= 0  # a model that was pruned has forgotten tokens of its messages
    values = np.where(met[:, None], own.values[column], 0.0)
    class_count = np.tile(own.class_count, (len(y), 1))
    others = Entries(np.ones(len(y), np.bool_), class_count, met, values)
    for counts, of_class in ((others.values, y.take(documents.rows())), (others.class_count, y)):
        counts[np.arange(len(counts)), of_class] -= 1
        np.maximum(counts, 0, out=counts)
    score = known.combination.scores(weighed(known, documents, others))
    entry, row, value = corrected(known, documents, others)
    kept = met.take(entry)
    row, value, column = row[kept], value[kept], column.take(entry[kept])
    bounds = np.searchsorted(row, np.arange(len(y) + 1)).tolist()
    least = np.argsort(np.where(y == 1, score, -score), kind="stable")[:MAX_LESSONS]
    lessons = []
    for number in np.sort(least).tolist():
        some = slice(bounds[number], bounds[number + 1])
        lessons.append((column[some], value[some], float(score[number]), int(y[number])))
    return _learned(lessons, len(own.keys))


def _learned(lessons: Sequence[_Lesson], n_tokens: int) -> Floats32:
    """Return the corrections that passes to and fro over messages make, nats, (n_tokens,).

    They are the mean of those after the last pass and after the one before it (see `layer`).
    """
    correction = np.zeros(n_tokens)
    before = correction
    for number in range(PASSES):
        before = correction.copy()
        for columns, values, score, truth in lessons if number % 2 == 0 else lessons[::-1]:
            now = correction[columns]
            total = max(-MOST, min(float(values @ now), MOST))
            if step := correction_step(score + total, truth, 1.0):
                correction[columns] = now + RATE * step * values
    return np.asarray((correction + before) / 2, np.float32)
