"""Verdicts as headers: our own, and those that mail users' rules already look for.

Secret: how other filters spell a verdict.
"""

from bisect import bisect_right
from dataclasses import dataclass
from math import log

from nbspam import __version__
from nbspam.classifier.classifier import Classifier
from nbspam.decision import HAM_AND_SPAM, UNSURE, Cutoffs, Rule
from nbspam.errors import UsageError
from nbspam.mail.head import Header, checked_tag, with_headers
from nbspam.mail.message import Message
from nbspam.sources.items import Item
from nbspam.tokens.reading import read_message
from nbspam.verdicts import Answer, Verdict

VERDICT, EXPLANATION = "X-Nbspam", "X-Nbspam-Explanation"
BOGOSITY = "X-Bogosity"
SPAM_FLAG, SPAM_STATUS = "X-Spam-Flag", "X-Spam-Status"

# SpamAssassin calls spam what scores this; our log-odds, in nats, are shifted to fit.
_REQUIRED = 5.0
_EXPLAINED = 10  # tokens, if so many fit
_SURE = 1e-9  # probabilities nearer to 0 or 1 say no more
# The rules SpamAssassin has for a Bayesian probability, and where each begins.
_BAYES = ("00", "05", "20", "40", "50", "60", "80", "95", "99")
_BAYES_FROM = (0.01, 0.05, 0.20, 0.40, 0.60, 0.80, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a message gets beside our own header."""

    bogosity: bool = False
    spam_status: bool = False
    subject_tag: str | None = None
    explain: bool = False
    sure: float | None = None  # learned too, if a class is so probable

    @property
    def names(self) -> list[str]:
        """The headers that nobody but us may have written."""
        names = [VERDICT, EXPLANATION]
        names += [BOGOSITY] * self.bogosity
        return names + [SPAM_FLAG, SPAM_STATUS] * self.spam_status


def judged(
    classifier: Classifier, rule: Rule, wanted: Wanted, data: bytes, whole: bool = True
) -> tuple[Verdict, list[bytes]]:
    """Return the verdict on a message, and the pieces of the message with it in the head.

    whole: data is all of the message.  Raises UsageError where headers of spam filters
    are wanted, and the labels are others.
    """
    tag = b"" if wanted.subject_tag is None else checked_tag(wanted.subject_tag)
    for option, is_given in (
        ("--bogosity", wanted.bogosity),
        ("--spam-status", wanted.spam_status),
        ("--subject-tag", tag),
    ):
        if is_given:
            check_labels(option, (*classifier.classes, *rule.actions))
    message = read_message(Item("-", None, data), classifier.settings)
    verdict = _verdict(classifier, rule, message)
    headers = [_verdict_header(verdict)]
    if wanted.explain:
        headers.append(_explanation_header(classifier, rule, message))
    if wanted.bogosity:
        headers.append(_bogosity_header(verdict))
    if wanted.spam_status:
        learned = None if wanted.sure is None else sure_label(verdict, wanted.sure)
        headers += _spam_headers(verdict, rule, learned or "no")
    tag = tag if verdict.label == "spam" else b""
    return verdict, with_headers(data, headers, wanted.names, tag, whole)


def _verdict(classifier: Classifier, rule: Rule, message: Message) -> Verdict:
    (document,) = classifier.documents([message])
    (joint,) = classifier.joint_of(document)
    return next(classifier.verdicts([Answer("-", None, joint)], rule))


def _explanation_header(classifier: Classifier, rule: Rule, message: Message) -> Header:
    # Only who asks pays for it: a filter starts once a message.
    from nbspam.classifier.explanation import explain

    return EXPLANATION, explain(classifier, message, "-", rule).brief(_EXPLAINED)


def _verdict_header(verdict: Verdict) -> Header:
    """Return our own header: the label, how probable it is, and who says so."""
    return (
        VERDICT,
        f"{verdict.label}, probability={verdict.probability:.6f}, version={__version__}",
    )


def _bogosity_header(verdict: Verdict) -> Header:
    """Return the header that bogofilter 1.2 writes."""
    spamicity = verdict.posterior["spam"]
    return BOGOSITY, (
        f"{verdict.label.capitalize()}, tests=bogofilter, spamicity={spamicity:.6f},"
        f" version={__version__}"
    )


def sure_label(verdict: Verdict, sure: float) -> str | None:
    """Return the class that is at least so probable, if there is one."""
    label, probability = max(verdict.posterior.items(), key=lambda pair: pair[1])
    return label if probability >= sure else None


def _spam_headers(verdict: Verdict, rule: Rule, learned: str) -> list[Header]:
    """Return the headers that SpamAssassin writes; unsure is no spam."""
    is_spam = verdict.label == "spam"
    spam = verdict.posterior["spam"]
    bayes = _BAYES[bisect_right(_BAYES_FROM, spam)]
    status = (
        f"{'Yes' if is_spam else 'No'}, score={_score(spam, is_spam, rule):.1f}"
        f" required={_REQUIRED:.1f} tests=BAYES_{bayes} autolearn={learned} version={__version__}"
    )
    return [(SPAM_FLAG, "YES")] * is_spam + [(SPAM_STATUS, status)]


def _score(spam: float, is_spam: bool, rule: Rule) -> float:
    """Return the log-odds of spam shifted so that spam begins at SpamAssassin's mark."""
    cutoff = rule.spam if isinstance(rule, Cutoffs) else 0.5
    score = _REQUIRED + _log_odds(spam) - _log_odds(cutoff)
    # Rounding to a tenth, or a rule without a cutoff, must not contradict the verdict.
    return max(score, _REQUIRED) if is_spam else min(score, _REQUIRED - 0.1)


def _log_odds(probability: float) -> float:
    clipped = min(max(probability, _SURE), 1 - _SURE)
    return log(clipped / (1 - clipped))


def check_labels(option: str, labels: tuple[str, ...]) -> None:
    """Raise UsageError unless all labels are ham, spam and unsure."""
    if not set(labels) <= {*HAM_AND_SPAM, UNSURE}:
        raise UsageError(
            f"{option}: the labels are {', '.join(labels)}; it is for ham, spam and unsure"
        )
