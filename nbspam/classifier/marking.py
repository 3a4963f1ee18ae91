"""Marking a message: its verdict, and the message with the verdict in its head."""

from nbspam.classifier.classifier import Classifier
from nbspam.decision import Rule
from nbspam.mail.verdict_headers import Wanted, check_wanted, with_verdict
from nbspam.sources.items import Item
from nbspam.tokens.reading import read_message
from nbspam.verdicts import Answer, Verdict

_NAME = "-"  # of the message in its verdict and in errors: filters read standard input


def mark(
    classifier: Classifier, rule: Rule, wanted: Wanted, data: bytes, whole: bool = True
) -> tuple[Verdict, list[bytes]]:
    """Return the verdict on a message, and the pieces of the message with it in the head.

    whole: data is all of the message, not only its beginning.  Raises UsageError if headers of
    other spam filters are wanted and the labels are not theirs.
    """
    check_wanted(wanted, (*classifier.classes, *rule.actions))
    message = read_message(Item(_NAME, None, data), classifier.settings)
    (document,) = classifier.documents([message])
    (joint,) = classifier.joint_of(document) + classifier.shift
    verdict = next(classifier.verdicts([Answer(_NAME, None, joint)], rule))
    explanation = None
    if wanted.explain:
        explanation = classifier.explain_message(message, _NAME, rule)
    return verdict, with_verdict(data, verdict, rule, wanted, explanation, whole)
