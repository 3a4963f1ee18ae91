"""Why a verdict: what each known token adds to the score, in nats.

All models here are linear in their tokens, so that the contributions and one constant
add up to the score; nothing is approximated.

Secret: how a score falls into its tokens' shares, for every kind of model.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from nbspam.arrays import Floats
from nbspam.classifier.blending import believed
from nbspam.classifier.classifier import Classifier, Known
from nbspam.classifier.combining import contributions
from nbspam.decision import Rule
from nbspam.errors import InputError
from nbspam.mail.message import Message
from nbspam.sources.items import Item
from nbspam.tokens.definition import GROUPS
from nbspam.tokens.reading import read_message
from nbspam.tokens.tokenizer import tokenize
from nbspam.verdicts import Answer, Evidence, Explanation, Skipped


def explain(
    classifier: Classifier, message: Message, name: str, rule: Rule | None = None
) -> Explanation:
    """Return what makes the score of one message.

    Where evidence is combined, the score is the log-odds of the last class of two; else
    of the most probable class against the next.
    """
    batch = tokenize([message], classifier.settings.tokens)
    joint = classifier.joint_log_proba(batch)[0]
    known = classifier.known(batch)
    if classifier.combination is None:
        towards, against = np.argsort(-joint, kind="stable")[:2].tolist()
        shares, constant = _shares(classifier, known, towards, against)
        if classifier.blend is not None:
            # What is believed of the sum is believed of every share of it; shares of the
            # classes other than in training are part of the constant.
            shares = shares * believed(abs(float(shares.sum()) + constant), classifier.blend.tail)
            constant = float(joint[towards] - joint[against] - shares.sum())
    else:
        towards, against = 1, 0
        shares = contributions(classifier.combination, *classifier.evidence(1, known))
        constant = float(classifier.combination.worth[-1])
    return Explanation(
        next(classifier.verdicts([Answer(name, None, joint)], rule)),
        classifier.classes[towards],
        classifier.classes[against],
        float(joint[towards] - joint[against]),
        constant,
        _evidence(classifier, known, shares),
    )


def explanations(
    classifier: Classifier, items: Iterable[Item], rule: Rule | None = None
) -> Iterator[Explanation | Skipped]:
    """Yield an explanation of every item in order, or why it could not be read."""
    for item in items:
        try:
            message = read_message(item, classifier.settings)
        except InputError as error:
            yield Skipped(item.name, str(error))
        else:
            yield explain(classifier, message, item.name, rule)


def _shares(
    classifier: Classifier, known: Known, towards: int, against: int
) -> tuple[Floats, float]:
    """Return the contributions and the constant of a model that sums its evidence."""
    value = classifier.values(known)
    weight = classifier.weight[known.columns].astype(np.float64)
    both = np.isneginf(weight[:, towards]) & np.isneginf(weight[:, against])
    # Impossible in either class: such a token tells nothing of the two.
    weight = np.where(both[:, None], 0.0, weight)
    intercept = classifier.intercept
    difference = weight[:, towards] - weight[:, against]
    return difference * value, float(intercept[towards] - intercept[against])


def _evidence(classifier: Classifier, known: Known, shares: Floats) -> tuple[Evidence, ...]:
    vocabulary, count = classifier.table.vocabulary, classifier.table.feature_count
    order = np.argsort(-np.abs(shares), kind="stable")
    return tuple(
        Evidence(
            vocabulary.text(column),
            share,
            GROUPS[vocabulary.groups[column]],
            tuple(count[column].tolist()),
        )
        for column, share in zip(
            known.columns[known.rows[order]].tolist(), shares[order].tolist(), strict=True
        )
    )
