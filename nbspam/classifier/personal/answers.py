"""Answers to the mail of several users, each by the shared model and what the user has taught.

Secret: what can be said where the shared model, or the user, knows only one class.
"""

from collections.abc import Sequence

import numpy as np

from nbspam.answering import AnyClassifier
from nbspam.classifier.classifier import Classifier, lack_of
from nbspam.classifier.layer import MOST
from nbspam.classifier.personal.evidence import (
    Own,
    corrected,
    entries_of,
    joint_of,
    known_of,
    weighed,
)
from nbspam.decision import UNDECIDED, Rule, default_rule
from nbspam.sources.items import Item
from nbspam.tokens.definition import GROUPS
from nbspam.tokens.reading import read, read_message
from nbspam.tokens.tokenizer import batches, tokenize
from nbspam.tokens.vocabulary import batch_vocabulary
from nbspam.verdicts import Answer, Evidence, Explanation, Skipped, Verdict


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
    known, own = known_of(shared, documents.tokens), entries_of(documents, [owner])
    shares = known.combination.parts(weighed(known, documents, own))
    entry, _, value = corrected(known, documents, own)
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
