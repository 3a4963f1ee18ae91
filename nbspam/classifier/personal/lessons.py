"""Lessons: what judging needs of the messages that one user has taught.

Secret: how a user's tokens are corrected: by the user's own messages that would be judged wrongly,
or nearly, without them.
"""

import numpy as np

from nbspam.arrays import Floats32, Integers
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.layer import MOST, PASSES, RATE, correction_step
from nbspam.classifier.personal.evidence import Own, corrected, entries_of, known_of, weighed
from nbspam.counts.table import CountTable, compact
from nbspam.tokens.documents import Documents

MAX_LESSONS = 500  # of a user, the least certain ones, from which corrections are learned


def own_of(shared: Classifier, table: CountTable, documents: Documents, y: Integers) -> Own:
    """Return what a user has taught, for judging on top of a shared model.

    shared: fitted by `combining.fit`.  table: the counts of the user's messages, of ham and spam.
    documents: these messages, or a sample of them, over keys.  y: (n_docs,) 0 or 1.
    """
    order = np.argsort(table.vocabulary.keys, kind="stable")
    order = order[table.document_frequency[order] > 0]
    counts = np.asarray(table.feature_count)[order]
    own = Own(
        np.asarray(table.vocabulary.keys)[order],
        compact(counts),
        np.array(table.class_count, np.float64),
        np.zeros(len(order), np.float32),
    )
    return own._replace(correction=_corrections(shared, own, documents, y))


def _corrections(shared: Classifier, own: Own, documents: Documents, y: Integers) -> Floats32:
    """Return the corrections of a user's tokens, nats, shape (n_tokens,).

    Each message is scored by the counts of all others.
    """
    known, others = known_of(shared, documents.tokens), entries_of(documents, [own] * len(y))
    for counts, of_class in ((others.counts, y.take(documents.rows())), (others.class_count, y)):
        counts[np.arange(len(counts)), of_class] -= 1
        np.maximum(counts, 0, out=counts)
    score = known.combination.scores(weighed(known, documents, others))
    entry, row, value = corrected(known, documents, others)
    column = own.columns(documents.tokens.take(documents.columns.take(entry)))
    kept = column >= 0  # a model that was pruned has forgotten tokens of its messages
    row, value, column = row[kept], value[kept], column[kept]
    bounds = np.searchsorted(row, np.arange(len(y) + 1)).tolist()
    least = np.argsort(np.where(y == 1, score, -score), kind="stable")[:MAX_LESSONS]
    lessons = []
    for number in np.sort(least).tolist():
        some = slice(bounds[number], bounds[number + 1])
        lessons.append((column[some], value[some], float(score[number]), int(y[number])))
    correction = np.zeros(len(own.keys))
    before = correction
    for number in range(PASSES):
        before = correction.copy()
        for columns, values, plain, truth in lessons if number % 2 == 0 else lessons[::-1]:
            now = correction[columns]
            step = correction_step(plain + max(-MOST, min(float(values @ now), MOST)), truth, 1.0)
            if step:
                correction[columns] = now + RATE * step * values
    return np.asarray((correction + before) / 2, np.float32)
