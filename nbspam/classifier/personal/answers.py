"""Answers to the mail of several users, each by the shared model and what the user has taught.

Secret: what can be said where the shared model, or the user, knows only one class.
"""

from collections.abc import Iterator, Sequence

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
    counts = shared.table.class_count
    if counts.all():
        return None
    if own is not None:
        counts = counts + own.class_count
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
    joint = np.concatenate(parts)
    for rule_of_some, rows in _by_rule(shared, [owners[k] for k in places], rule):
        some = [(places[row], joint[row]) for row in rows]
        said = [Answer(items[k].name, items[k].label, j, found.notes.get(k)) for k, j in some]
        verdicts = AnyClassifier.verdicts(shared, said, rule_of_some)
        results |= zip((k for k, _ in some), verdicts, strict=True)
    return [results[k] for k in range(len(items))]


def _by_rule(
    shared: Classifier, owners: Sequence[Own | None], rule: Rule
) -> Iterator[tuple[Rule, list[int]]]:
    """Yield rules and the owners whose mail each is for, by number."""
    rules = [rule_for(shared, own, rule) for own in owners]
    undecided = [row for row, each in enumerate(rules) if each is UNDECIDED]
    others = [row for row, each in enumerate(rules) if each is not UNDECIDED]
    if undecided:
        yield UNDECIDED, undecided
    if others:
        yield rules[others[0]], others


def explain(shared: Classifier, item: Item, owner: Own | None, rule: Rule) -> Explanation:
    """Return why an item gets its verdict; raises InputError.

    Its tokens are spelt as in the message itself: no words of other messages are looked at.
    """
    batch = tokenize([read_message(item, shared.settings)], shared.settings.tokens)
    documents = batch.documents
    known, own = known_of(shared, documents.tokens), entries_of(documents, [owner])
    shares = known.combination.parts(weighed(known, documents, own))
    entry, _, value = corrected(known, documents, own)
    more = own.values[entry, 2] * value
    if abs(total := float(more.sum())) > MOST:
        more *= MOST / abs(total)
    shares[entry] += more
    (joint,) = joint_of(shared, documents, [owner])
    answer, shift = Answer(item.name, None, joint), np.broadcast_to(shared.shift, joint.shape)
    spelt = batch_vocabulary(batch)
    met = np.flatnonzero(own.is_met | known.is_met.take(documents.columns))
    met = met[np.argsort(-np.abs(shares[met]), kind="stable")]
    column = documents.columns.take(met)
    counts = known.counts[column] + own.values[met, :2]
    return Explanation(
        next(AnyClassifier.verdicts(shared, [answer], rule_for(shared, owner, rule))),
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
