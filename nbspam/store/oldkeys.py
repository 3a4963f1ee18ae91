"""Models and journals of before keys had kinds become those of today when they are read.

The next write stores the new form.

Secret: what becomes of two tokens that get one key.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from nbspam.answering import AnyClassifier
from nbspam.arrays import Integers
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.combining import Combination
from nbspam.counts.changes import Change
from nbspam.counts.ledger import Memory
from nbspam.counts.table import CountTable
from nbspam.settings import PRESENCE
from nbspam.store.format.modelfile import State
from nbspam.tokens.documents import Documents, offsets_of
from nbspam.tokens.oldkeys import with_kinds
from nbspam.tokens.tokenizer import HASH_MASK, groups_of
from nbspam.tokens.vocabulary import Vocabulary, have_kinds, join


def with_new_keys(state: State) -> State:
    """Return the state with today's keys, which need not ascend any more, and groups."""
    names = "keys", "text", "text_offsets", "group"
    keys = with_kinds(Vocabulary(*(state[name] for name in names)))
    return {**state, "keys": keys, "group": groups_of(keys)}


def joined(classifier: Any) -> AnyClassifier:
    """Return the classifier with its keys in order, and one column for each of them.

    classifier: one of tokens or of dependent tokens.

    Tokens with one key add their counts up.  Raises ValueError for a model of dependent tokens
    that has such tokens: it would have to be trained anew.
    """
    keys = classifier.table.vocabulary.keys
    if (keys[1:] > keys[:-1]).all():
        ordered: AnyClassifier = classifier
        return ordered
    if not isinstance(classifier, Classifier):
        raise ValueError("two of its tokens have the same key now")
    table, memory = classifier.table, classifier.memory
    vocabulary, column = join([table.vocabulary])
    new = _added_up(table, vocabulary, column, classifier.settings.weighting == PRESENCE)
    fit = classifier.fit
    if isinstance(fit, Combination):
        correction = np.zeros(len(vocabulary), np.float32)
        order = np.argsort(table.document_frequency, kind="stable")
        correction[column[order]] = fit.correction[order]  # the commoner token's is the last
        fit = fit._replace(correction=correction)
    fit = fit.recounted(new, classifier.settings)
    memory = None if memory is None else _moved(memory, len(vocabulary), column)
    return replace(classifier, table=new, fit=fit, memory=memory)


def _added_up(
    table: CountTable, vocabulary: Vocabulary, column: Integers, is_presence: bool
) -> CountTable:
    feature_count = np.zeros((len(vocabulary), len(table.classes)))
    np.add.at(feature_count, column, table.feature_count)
    if is_presence:  # messages can have had both tokens
        feature_count = np.minimum(feature_count, table.class_count)
    frequency = np.zeros(len(vocabulary), np.int64)
    np.add.at(frequency, column, table.document_frequency)
    return CountTable(table.classes, table.class_count, vocabulary, feature_count, frequency)


def _moved(memory: Memory, n_features: int, column: Integers) -> Memory:
    """Return the memory of a model whose tokens got other columns."""
    last_seen = np.zeros(n_features, memory.last_seen.dtype)
    np.maximum.at(last_seen, column, memory.last_seen)
    documents = memory.sample.documents
    place = documents.rows() * np.int64(n_features) + column.take(documents.columns)
    entry, own = np.unique(place, return_inverse=True)
    counts = documents.counts
    moved = Documents(
        np.arange(n_features),
        offsets_of(np.bincount(entry // n_features, minlength=documents.n_docs)),
        (entry % n_features).astype(np.uint32),
        None if counts is None else np.bincount(own, counts).astype(np.uint32),
    )
    return memory._replace(last_seen=last_seen, sample=memory.sample._replace(documents=moved))


def with_new_keys_in(change: Change, known: Vocabulary) -> Change:
    """Return a change of a journal with today's keys; known: the model file's vocabulary."""
    old = change.document.tokens
    if have_kinds(old):
        return change
    # A token is known to the model file, or new and spelt out.
    place = np.searchsorted(known.keys, old & HASH_MASK)
    keys = np.append(known.keys, np.uint64(0)).take(place)
    is_there = (keys ^ old) & HASH_MASK == 0
    new_keys = with_kinds(change.new)
    spelt = replace(change.new, keys=new_keys, groups=groups_of(new_keys))
    place = np.searchsorted(old, change.new.keys)
    keys[place], is_there[place] = spelt.keys, True
    tokens, own = np.unique(keys[is_there], return_inverse=True)
    counts = np.bincount(own, change.document.times()[is_there], len(tokens))
    n_tokens = len(tokens)
    document = Documents(
        tokens, np.array([0, n_tokens]), np.arange(n_tokens), counts.astype(np.uint32)
    )
    spelt, _ = join([spelt])
    new = spelt.take(np.flatnonzero(known.columns(spelt.keys) < 0)).packed()
    return change._replace(document=document, new=new)
