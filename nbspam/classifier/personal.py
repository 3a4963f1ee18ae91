"""Personal models: what one user has taught, on top of a model that many users share.

A user's messages are added to the counts of the shared model, with a weight: together, all
messages of the shared model count as SHARED of the user's.  A dozen messages thus tell much about
tokens that few know, and little about those that everybody uses.  What tells a user's kind of
mail apart may still be drowned by the rest of a message, so tokens are corrected as well, as those
of the shared model are (see `layer`): from the user's own messages that would be judged wrongly
without them, and the more the rarer a token is in the shared model.

Secret: how much a user's messages count, and how the messages of several users are judged in one
pass.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nbspam.answering import AnyClassifier
from nbspam.arrays import Booleans, Floats, Floats32, Indices, Integers, Integers32, Keys
from nbspam.classifier.classifier import Classifier, lack_of
from nbspam.classifier.combining import (
    IN_LAYER,
    Combination,
    Weighed,
    limits_of,
    log_odds,
    prior_worth,
)
from nbspam.classifier.layer import MOST, PASSES, RATE, bounded, correction_step
from nbspam.counts.table import CountTable, compact
from nbspam.decision import UNDECIDED, Rule, default_rule
from nbspam.sources.items import Item
from nbspam.tokens.definition import GROUPS
from nbspam.tokens.documents import Documents
from nbspam.tokens.reading import read, read_message
from nbspam.tokens.tokenizer import batches, groups_of, tokenize
from nbspam.tokens.vocabulary import batch_vocabulary
from nbspam.verdicts import (
    Answer,
    Evidence,
    Explanation,
    Skipped,
    Verdict,
    joint_of_log_odds,
)

SHARED = 100.0  # messages of a user, as which all of the shared model's count: E-158
_LEAST = 1e-9  # length of a document's values by which they are divided
MAX_LESSONS = 500  # of a user, the least certain ones, from which corrections are learned


class Own(NamedTuple):
    """What a user has taught, as judging needs it: no texts, and about 16 bytes a token."""

    keys: Keys  # (n_tokens,) ascending
    counts: Indices  # (n_tokens, 2) messages of ham and of spam that have the token
    class_count: Floats  # (2,)
    correction: Floats32  # (n_tokens,) nats

    def columns(self, keys: Keys) -> Integers:
        """Return the place of each key, -1 for unknown keys; same shape as keys."""
        if not len(self.keys):
            return np.full(len(keys), -1)
        place = np.searchsorted(self.keys, keys)
        place[self.keys.take(place, mode="clip") != keys] = -1
        return place

    @property
    def n_bytes(self) -> int:
        """The memory of its arrays."""
        return int(self.keys.nbytes + self.counts.nbytes + self.correction.nbytes)


class _Entries(NamedTuple):
    """What the users of documents have taught about each entry's token."""

    is_own: Booleans  # (n_docs,) whether the document's user has taught anything
    class_count: Floats  # (n_docs, 2) messages
    is_met: Booleans  # (nnz,) whether the user has taught the token
    counts: Floats  # (nnz, 2) messages
    correction: Floats  # (nnz,) nats


class _Shared(NamedTuple):
    """What the shared model knows of the tokens of documents over keys."""

    combination: Combination
    class_count: Floats  # (2,)
    is_met: Booleans  # (n_tokens,)
    counts: Floats  # (n_tokens, 2)
    correction: Floats32  # (n_tokens,)
    rarity: Floats  # (n_tokens,) 0 if all of its messages have the token, 1 if none has
    limits: Integers | None


class _Corrected(NamedTuple):
    """The entries of documents that users' corrections are about."""

    entry: Integers  # (n,)
    row: Integers32  # (n,) its document
    value: Floats  # (n,) those of a document have the sum of squares 1


def _shared(classifier: Classifier, keys: Keys) -> _Shared:
    """Return what a classifier with a `Combination` knows of tokens."""
    table, fit = classifier.table, classifier.fit
    assert isinstance(fit, Combination)
    if not table.class_count.all():  # it is fitted to nothing yet
        fit = fit._replace(worth=prior_worth())
    column = table.vocabulary.columns(keys)
    known = np.flatnonzero(column >= 0)
    known = known[table.document_frequency[column[known]] > 0]
    is_met = np.zeros(len(keys), np.bool_)
    count, correction = np.zeros((len(keys), 2)), np.zeros(len(keys), np.float32)
    is_met[known] = True
    count[known] = table.feature_count[column[known]]
    correction[known] = fit.correction[column[known]]
    most = np.log(max(float(table.class_count.sum()), 1) + 1)
    rarity = np.maximum(1 - np.log(count.sum(axis=1) + 1) / most, 0.0)
    return _Shared(fit, table.class_count, is_met, count, correction, rarity, limits_of(table))


def _entries(documents: Documents, owners: Sequence[Own | None]) -> _Entries:
    """Return what each document's user has taught; None: nothing."""
    n_entries, n_docs = len(documents.columns), documents.n_docs
    found = _Entries(
        np.array([own is not None for own in owners]),
        np.zeros((n_docs, 2)),
        np.zeros(n_entries, np.bool_),
        np.zeros((n_entries, 2)),
        np.zeros(n_entries),
    )
    offsets = documents.offsets.tolist()
    for row, own in enumerate(owners):
        if own is None:
            continue
        found.class_count[row] = own.class_count
        start, end = offsets[row], offsets[row + 1]
        column = own.columns(documents.tokens.take(documents.columns[start:end]))
        met = np.flatnonzero(column >= 0)
        column = column.take(met)
        met += start
        found.is_met[met] = True
        found.counts[met] = own.counts.take(column, axis=0)
        found.correction[met] = own.correction.take(column)
    return found


def _weighed(shared: _Shared, documents: Documents, own: _Entries) -> Weighed:
    """Return documents over keys with what the counts of all, and of their users, say."""
    groups = groups_of(documents.tokens)
    columns, rows = documents.columns, documents.rows()
    odds = log_odds(shared.counts, shared.class_count).take(columns)
    mine = np.flatnonzero(own.is_own.take(rows))
    if len(mine):
        weight = max(1.0, float(shared.class_count.sum()) / SHARED)
        count = shared.counts.take(columns.take(mine), axis=0)
        count += weight * own.counts.take(mine, axis=0)
        total = shared.class_count + weight * own.class_count
        odds[mine] = log_odds(count, total.take(rows.take(mine), axis=0))
    in_layer = IN_LAYER[groups] & shared.is_met
    return Weighed(documents, groups, odds, in_layer, shared.correction, shared.limits)


def _corrected(shared: _Shared, documents: Documents, own: _Entries) -> _Corrected:
    columns, rows = documents.columns, documents.rows()
    wanted = own.is_met | shared.is_met.take(columns)
    wanted &= own.is_own.take(rows)
    wanted &= IN_LAYER[groups_of(documents.tokens)].take(columns)
    entry = np.flatnonzero(wanted)
    row, value = rows.take(entry), shared.rarity.take(columns.take(entry))
    length = np.sqrt(np.bincount(row, value**2, documents.n_docs))
    return _Corrected(entry, row, value / np.maximum(length, _LEAST).take(row))


def joint_of(shared: Classifier, documents: Documents, owners: Sequence[Own | None]) -> Floats:
    """Return log P(class given document), nats, shape (n_docs, 2).

    documents: over keys.  owners: (n_docs,) what each document's user has taught; None: nothing.
    """
    known, own = _shared(shared, documents.tokens), _entries(documents, owners)
    score = known.combination.scores(_weighed(known, documents, own))
    if own.is_own.any():
        entry, row, value = _corrected(known, documents, own)
        score += bounded(np.bincount(row, own.correction.take(entry) * value, len(score)))
    return joint_of_log_odds(score) + shared.shift


# ---- learning ----


def own_of(shared: Classifier, table: CountTable, documents: Documents, y: Integers) -> Own:
    """Return what a user has taught, for judging on top of a shared model.

    shared: fitted by `combining.fit`.  table: the counts of the user's messages, of ham and spam.
    documents: these messages, or a sample of them, over keys.  y: (n_docs,) 0 or 1.
    """
    order = np.argsort(table.vocabulary.keys, kind="stable")
    order = order[table.document_frequency[order] > 0]
    counts = np.asarray(table.feature_count)[order]
    small = counts.astype(np.uint16)
    own = Own(
        np.asarray(table.vocabulary.keys)[order],
        small if np.array_equal(small, counts) else compact(counts),
        np.array(table.class_count, np.float64),
        np.zeros(len(order), np.float32),
    )
    return own._replace(correction=_corrections(shared, own, documents, y))


def _corrections(shared: Classifier, own: Own, documents: Documents, y: Integers) -> Floats32:
    """Return the corrections of a user's tokens, nats, shape (n_tokens,).

    Each message is scored by the counts of all others.
    """
    known, others = _shared(shared, documents.tokens), _entries(documents, [own] * len(y))
    for counts, of_class in ((others.counts, y.take(documents.rows())), (others.class_count, y)):
        counts[np.arange(len(counts)), of_class] -= 1
        np.maximum(counts, 0, out=counts)
    score = known.combination.scores(_weighed(known, documents, others))
    entry, row, value = _corrected(known, documents, others)
    column = own.columns(documents.tokens.take(documents.columns.take(entry)))
    value[column < 0] = 0.0  # a pruned model has forgotten the token
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


# ---- answering ----


def lack(shared: Classifier, own: Own | None) -> str | None:
    """Return what is needed before mail can be judged at all; None if nothing is."""
    counts = shared.table.class_count + (0 if own is None else own.class_count)
    known = [name for name, n in zip(shared.classes, counts.tolist(), strict=True) if n]
    return lack_of(known, shared.classes)


def rule_for(shared: Classifier, own: Own | None, rule: Rule) -> Rule:
    """Return the rule for one user's mail; rule: the one for everybody's.

    A user can have taught what the shared model lacks.
    """
    if lack(shared, own) is not None:
        return UNDECIDED
    if rule is not UNDECIDED:
        return rule
    return shared.cutoffs or default_rule(shared.classes, shared.settings.is_mail_combined)


def classify(
    shared: Classifier, items: Sequence[Item], owners: Sequence[Own | None], rule: Rule
) -> list[Verdict | Skipped]:
    """Return the verdict on each item, by the shared model and what its user has taught.

    owners: of each item; None: somebody who has taught nothing.
    """
    found = read(items, shared.settings)
    places = [k for k in range(len(items)) if k not in found.failures]
    parts = [np.zeros((0, 2))]
    for group in batches(found.messages, shared.settings.tokens):
        start = sum(map(len, parts))
        own = [owners[k] for k in places[start : start + len(group)]]
        parts.append(joint_of(shared, tokenize(group, shared.settings.tokens).documents, own))
    results: dict[int, Verdict | Skipped] = dict(found.failures)
    for k, row in zip(places, np.concatenate(parts), strict=True):
        answer = Answer(items[k].name, items[k].label, row, found.notes.get(k))
        results[k] = _verdict(shared, answer, owners[k], rule)
    return [results[k] for k in range(len(items))]


def _verdict(shared: Classifier, answer: Answer, own: Own | None, rule: Rule) -> Verdict:
    rule = rule_for(shared, own, rule)
    return next(
        AnyClassifier.verdicts(shared, [answer], rule)
    )  # the shared model may lack a class


def explain(shared: Classifier, item: Item, owner: Own | None, rule: Rule) -> Explanation:
    """Return why an item gets its verdict; raises InputError.

    Its tokens are spelt as in the message itself: no words of other messages are looked at.
    """
    batch = tokenize([read_message(item, shared.settings)], shared.settings.tokens)
    documents = batch.documents
    known, own = _shared(shared, documents.tokens), _entries(documents, [owner])
    shares = known.combination.parts(_weighed(known, documents, own))
    entry, _, value = _corrected(known, documents, own)
    more = own.correction.take(entry) * value
    if abs(total := float(more.sum())) > MOST:
        more *= MOST / abs(total)
    shares[entry] += more
    (joint,) = joint_of(shared, documents, [owner])
    shift = np.broadcast_to(shared.shift, joint.shape)
    spelt = batch_vocabulary(batch)
    met = np.flatnonzero(own.is_met | known.is_met.take(documents.columns))
    met = met[np.argsort(-np.abs(shares[met]), kind="stable")]
    column = documents.columns.take(met)
    counts = known.counts[column] + own.counts[met]
    return Explanation(
        _verdict(shared, Answer(item.name, None, joint), owner, rule),
        shared.classes[1],
        shared.classes[0],
        float(joint[1] - joint[0]),
        float(known.combination.worth[-1] + shift[1] - shift[0]),
        tuple(
            Evidence(spelt.text(k), share, GROUPS[batch.groups[k]], tuple(each))
            for k, share, each in zip(
                column.tolist(), shares[met].tolist(), counts.tolist(), strict=True
            )
        ),
    )
