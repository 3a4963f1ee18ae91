"""Answers to the mail of several users, each by the shared model and the user's lessons.

A user's messages are added to the counts of the shared model, with a weight: together, all
messages of the shared model count as SHARED of the user's.  A dozen messages thus change
much for rare tokens, and little for common ones.  The distinctive tokens of a user's mail
may still be outweighed by the rest of a message, so the user's tokens are also corrected
(see `own_of`), rare tokens of the shared model more than common ones.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Floats, Floats32, Integers, Integers32, Keys, find
from nbspam.classifier import combine
from nbspam.classifier.classifier import Classifier, lack_of
from nbspam.classifier.combine import Combination, DocumentEvidence
from nbspam.classifier.fitting import RATE, correction_step, prior_worth
from nbspam.classifier.reasons import by_words
from nbspam.counts.table import CountTable
from nbspam.decision import UNDECIDED, Cutoffs, Rule, default_rule
from nbspam.sent_mail import SentMail
from nbspam.settings import Settings
from nbspam.sources.items import Item
from nbspam.tokens.definition import GROUPS, IS_STRUCTURE
from nbspam.tokens.items_to_messages import MessagesToJudge, message_of_item, read_to_judge
from nbspam.tokens.sparse import Documents
from nbspam.tokens.tokenizer import batch_vocabulary, batches, groups_of, tokenize
from nbspam.verdicts import (
    Answer,
    AnyClassifier,
    Evidence,
    Explanation,
    Skipped,
    Verdict,
    joint_of_log_odds,
)

SHARED = 100.0  # messages of a user, as which all of the shared model's count: E-158
PASSES = 5  # over the messages of a user
_LEAST = 1e-9  # length of values by which they are divided


class OwnCounts(NamedTuple):
    """The counts and corrections from a user's lessons: no texts, and 20 bytes a token."""

    keys: Keys  # (n_tokens,) ascending
    values: Floats32  # (n_tokens, 3) messages of ham, and of spam, that have it; correction, nats
    class_count: Floats  # (2,)
    sent_mail: SentMail | None = None  # the user's own; None: the shared model's counts
    cutoffs: Cutoffs | None = None  # the user's own; None: the rule for everybody's mail

    @property
    def n_bytes(self) -> int:
        """The memory of its arrays."""
        sent = () if self.sent_mail is None else self.sent_mail.arrays
        return sum(int(each.nbytes) for each in (self.keys, self.values, *sent))


def n_learned(shared: Classifier, own: OwnCounts) -> float:
    """Return the number of messages behind a user's verdicts: the user's, and at most SHARED."""
    return min(float(shared.table.n_docs), SHARED) + float(own.class_count.sum())


class TokenEntries(NamedTuple):
    """The users' own counts of the tokens of documents, entry by entry."""

    is_own: Booleans  # (n_docs,) whether the document's user has taught anything
    class_count: Floats  # (n_docs, 2) messages
    is_met: Booleans  # (nnz,) whether the user has taught the token
    values: Floats  # (nnz, 3) as in `OwnCounts`


class KnownTokens(NamedTuple):
    """The counts and corrections of the shared model, for the tokens of documents over keys."""

    combination: Combination
    class_count: Floats  # (2,)
    is_met: Booleans  # (n_tokens,)
    counts: Floats  # (n_tokens, 2)
    correction: Floats32  # (n_tokens,)
    rarity: Floats  # (n_tokens,) 0 if all of its messages have the token, 1 if none has
    limits: Integers | None


def known_of(classifier: Classifier, keys: Keys) -> KnownTokens:
    """Return the counts and corrections of tokens in a classifier with a `Combination`."""
    table, fit = classifier.table, classifier.fit
    assert isinstance(fit, Combination)
    if not table.class_count.all():  # it is fitted to nothing yet
        fit = fit._replace(worth=prior_worth(0))
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
    limits = combine.limits_of(table)
    return KnownTokens(fit, table.class_count, is_met, count, correction, rarity, limits)


def entries_of(documents: Documents, owners: Sequence[OwnCounts | None]) -> TokenEntries:
    """Return each document's tokens in its owner's counts; None: an owner without lessons."""
    n_entries, n_docs = len(documents.columns), documents.n_docs
    found = TokenEntries(
        np.array([own is not None for own in owners]),
        np.zeros((n_docs, 2)),
        np.zeros(n_entries, np.bool_),
        np.zeros((n_entries, 3)),
    )
    offsets, keys = documents.offsets.tolist(), documents.tokens.take(documents.columns)
    for row, own in enumerate(owners):
        if own is not None:
            found.class_count[row] = own.class_count
            entries = slice(offsets[row], offsets[row + 1])
            column = find(own.keys, keys[entries])
            found.is_met[entries] = is_met = column >= 0
            found.values[entries][is_met] = own.values[column[is_met]]
    return found


def document_evidence(
    shared: KnownTokens, documents: Documents, own: TokenEntries
) -> DocumentEvidence:
    """Return documents over keys with their log-odds by the shared and the users' counts."""
    if documents.in_rest is not None:  # see `Combination.evidence`
        learned = shared.class_count.sum() + own.class_count.sum(axis=1)
        is_judged_twice = (learned >= combine.FEWEST_WITH_BEGINNING).take(documents.rows())
        documents = documents._replace(in_rest=documents.in_rest & is_judged_twice)
    groups = groups_of(documents.tokens)
    columns, rows = documents.columns, documents.rows()
    of_all = shared.counts, shared.class_count, groups
    odds = combine.log_odds(*of_all).take(columns)
    leaning = combine.leanings(*of_all).take(columns)
    mine = np.flatnonzero(own.is_own.take(rows))
    if len(mine):
        weight = max(1.0, float(shared.class_count.sum()) / SHARED)
        count = shared.counts.take(columns.take(mine), axis=0)
        count += weight * own.values.take(mine, axis=0)[:, :2]
        total = shared.class_count + weight * own.class_count
        of_mine = count, total.take(rows.take(mine), axis=0), groups.take(columns.take(mine))
        odds[mine], leaning[mine] = combine.log_odds(*of_mine), combine.leanings(*of_mine)
    in_layer = combine.IN_LAYER[groups] & shared.is_met
    limits = combine.limits_for(shared.limits, documents, groups)
    is_structure = IS_STRUCTURE.take(groups)
    is_new = is_structure.take(columns) & ~(own.is_met | shared.is_met.take(columns))
    unknown = np.bincount(rows, is_new, documents.n_docs)
    share = combine.share_unknown(unknown, documents.lengths(is_structure))
    correction = shared.correction * in_layer
    return DocumentEvidence(documents, groups, odds, in_layer, correction, limits, share, leaning)


def corrected(
    shared: KnownTokens, documents: Documents, own: TokenEntries
) -> tuple[Integers, Integers32, Floats]:
    """Return the entries that users' corrections are about, (n,) each: number, document, value.

    The values of a document have the sum of squares 1.
    """
    columns, rows = documents.columns, documents.rows()
    wanted = own.is_met | shared.is_met.take(columns)
    wanted &= own.is_own.take(rows)
    wanted &= combine.IN_LAYER[groups_of(documents.tokens)].take(columns)
    wanted &= ~documents.are_in_rest()
    entry = np.flatnonzero(wanted)
    row, value = rows.take(entry), shared.rarity.take(columns.take(entry))
    length = np.sqrt(np.bincount(row, value**2, documents.n_docs))
    return entry, row, value / np.maximum(length, _LEAST).take(row)


def joint_of(
    shared: Classifier, documents: Documents, owners: Sequence[OwnCounts | None]
) -> Floats:
    """Return log P(class given document), nats, shape (n_docs, 2).

    documents: over keys.  owners: (n_docs,) what each document's user has taught; None: nothing.
    """
    known, own = known_of(shared, documents.tokens), entries_of(documents, owners)
    evidence = document_evidence(known, documents, own)
    score = known.combination.scores(evidence)
    if own.is_own.any():
        entry, row, value = corrected(known, evidence.documents, own)
        score += combine.bounded(np.bincount(row, own.values[entry, 2] * value, len(score)))
    return joint_of_log_odds(score) + shared.shift


def lack_of_own(shared: Classifier, own: OwnCounts | None) -> str | None:
    """Return a sentence on what a model lacks to judge any mail; None if nothing."""
    counts = shared.table.class_count
    if counts.all():
        return None
    if own is not None:
        counts = counts + own.class_count
    known = [name for name, n in zip(shared.classes, counts.tolist(), strict=True) if n]
    return lack_of(known, shared.classes)


def rule_for(shared: Classifier, own: OwnCounts | None, rule: Rule) -> Rule:
    """Return the rule for one user's mail; rule: the one for everybody's.

    A user's lessons may supply what the shared model lacks, and the user may have own cutoffs.
    """
    if lack_of_own(shared, own) is not None:
        return UNDECIDED
    if own is not None and own.cutoffs is not None:
        return own.cutoffs
    if rule is not UNDECIDED:
        return rule
    return shared.cutoffs or default_rule(shared.classes, shared.settings.is_mail_combined)


def classify(
    shared: Classifier, items: Sequence[Item], owners: Sequence[OwnCounts | None], rule: Rule
) -> list[Verdict | Skipped]:
    """Return the verdict on each item, by the shared model and its user's lessons.

    owners: of each item; None: a user without lessons.
    """
    read = MessagesToJudge([], {}, {})
    for k, (item, owner) in enumerate(zip(items, owners, strict=True)):
        found = read_to_judge([item], _settings_for(shared, owner))
        read.messages.extend(found.messages)
        read.failures.update((k, why) for why in found.failures.values())
        read.notes.update((k, note) for note in found.notes.values())
    places = [k for k in range(len(items)) if k not in read.failures]
    parts = [np.zeros((0, 2))]
    for group in batches(read.messages, shared.settings.tokens):
        start = sum(map(len, parts))
        own = [owners[k] for k in places[start : start + len(group)]]
        parts.append(joint_of(shared, tokenize(group, shared.settings.tokens).documents, own))
    results: dict[int, Verdict | Skipped] = dict(read.failures)
    for k, joint in zip(places, np.concatenate(parts), strict=True):
        answer = Answer(items[k].name, items[k].label, joint, read.notes.get(k))
        own_rule = rule_for(shared, owners[k], rule)
        results[k] = next(AnyClassifier.verdicts(shared, [answer], own_rule))
    return [results[k] for k in range(len(items))]


def _settings_for(shared: Classifier, own: OwnCounts | None) -> Settings:
    """Return the settings by which a user's mail is read: senders are known from own sent mail."""
    if own is None or own.sent_mail is None:
        return shared.settings
    return replace(shared.settings, sent_mail=own.sent_mail)


def explain(shared: Classifier, item: Item, owner: OwnCounts | None, rule: Rule) -> Explanation:
    """Return why an item gets its verdict; raises InputError.

    Its tokens are spelt as in the message itself: no words of other messages are looked at.
    """
    settings = shared.settings.tokens
    message = message_of_item(item, _settings_for(shared, owner))
    batch = tokenize([message], settings)
    documents = batch.documents
    known, own = known_of(shared, documents.tokens), entries_of(documents, [owner])
    evidence = document_evidence(known, documents, own)
    parts = known.combination.parts(evidence)
    entry, _, value = corrected(known, evidence.documents, own)
    more = own.values[entry, 2] * value
    if abs(total := float(more.sum())) > combine.MOST_NATS:
        more *= combine.MOST_NATS / abs(total)
    shares = parts.shares
    shares[entry] += more
    (joint,) = joint_of(shared, documents, [owner])
    answer, shift = Answer(item.name, None, joint), np.broadcast_to(shared.shift, joint.shape)
    spelt = batch_vocabulary(batch)
    met = np.flatnonzero(own.is_met | known.is_met.take(documents.columns))
    met = met[np.argsort(-np.abs(shares[met]), kind="stable")]
    column = documents.columns.take(met)
    counts = known.counts[column] + own.values[met, :2]
    tokens = tuple(
        Evidence(spelt.text(k), share, GROUPS[batch.groups[k]], tuple(each))
        for k, share, each in zip(
            column.tolist(), shares[met].tolist(), counts.tolist(), strict=True
        )
    )
    return Explanation(
        next(AnyClassifier.verdicts(shared, [answer], rule_for(shared, owner, rule))),
        shared.classes[1],
        shared.classes[0],
        float(joint[1] - joint[0]),
        parts.constant + float(shift[1] - shift[0]),
        by_words(message, settings, tokens),
        tokens,
        parts.kept,
        parts.by_beginning,
    )


# --- what judging needs of the messages that one user has taught -----------------------------

MAX_LESSONS = 500  # of a user, the least certain ones, from which corrections are learned
# A message's columns, their values, its score without corrections, and its class.
_Lesson = tuple[Integers, Floats, float, int]


def own_of(shared: Classifier, table: CountTable, documents: Documents, y: Integers) -> OwnCounts:
    """Return the counts and corrections of one user, for judging on top of a shared model.

    shared: its evidence is combined.  table: the counts of the user's messages, of ham and spam.
    documents: these messages, or a sample of them, over keys.  y: (n_docs,) 0 or 1.  Tokens are
    corrected by those messages that would be judged wrongly, or nearly, without that.
    """
    order = np.argsort(table.vocabulary.keys, kind="stable")
    order = order[table.document_frequency[order] > 0]
    values = np.zeros((len(order), 3), np.float32)
    values[:, :2] = table.feature_count[order]
    keys = np.asarray(table.vocabulary.keys)[order]
    own = OwnCounts(keys, values, np.array(table.class_count, np.float64))
    values[:, 2] = _corrections(shared, own, documents, y)
    return own


def _corrections(
    shared: Classifier, own: OwnCounts, documents: Documents, y: Integers
) -> Floats32:
    """Return the corrections of a user's tokens, nats, shape (n_tokens,).

    Each message is scored by the counts of all others.
    """
    if not len(own.keys):
        return np.zeros(0, np.float32)
    known = known_of(shared, documents.tokens)
    column = find(own.keys, documents.tokens).take(documents.columns)
    met = column >= 0  # a model that was pruned has forgotten tokens of its messages
    values = np.where(met[:, None], own.values[column], 0.0)
    class_count = np.tile(own.class_count, (len(y), 1))
    others = TokenEntries(np.ones(len(y), np.bool_), class_count, met, values)
    for counts, of_class in ((others.values, y.take(documents.rows())), (others.class_count, y)):
        counts[np.arange(len(counts)), of_class] -= 1
        np.maximum(counts, 0, out=counts)
    evidence = document_evidence(known, documents, others)
    score = known.combination.scores(evidence)
    entry, row, value = corrected(known, evidence.documents, others)
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
    """Return the corrections that passes over messages, forth and back, make: (n_tokens,) nats.

    They are the mean of those after the last two passes (see `fitting.corrections`).
    """
    correction = np.zeros(n_tokens)
    before = correction
    for number in range(PASSES):
        before = correction.copy()
        for columns, values, score, truth in lessons if number % 2 == 0 else lessons[::-1]:
            now = correction[columns]
            total = max(-combine.MOST_NATS, min(float(values @ now), combine.MOST_NATS))
            if step := correction_step(score + total, truth, 1.0):
                correction[columns] = now + RATE * step * values
    return np.asarray((correction + before) / 2, np.float32)
