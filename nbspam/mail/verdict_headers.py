"""Verdicts as mail headers: our own, bogofilter's and SpamAssassin's."""

from bisect import bisect_right
from dataclasses import dataclass
from math import log

from nbspam import __version__
from nbspam.decision import HAM_AND_SPAM, UNSURE, Cutoffs, Rule
from nbspam.errors import UsageError
from nbspam.mail.head import Header, checked_tag, with_headers
from nbspam.verdicts import Explanation, Verdict

VERDICT, EXPLANATION = "X-Nbspam", "X-Nbspam-Explanation"
BOGOSITY = "X-Bogosity"
SPAM_FLAG, SPAM_LEVEL, SPAM_STATUS = "X-Spam-Flag", "X-Spam-Level", "X-Spam-Status"

# SpamAssassin calls a message spam from this score on; our log-odds, in nats, are shifted to it.
REQUIRED = 5.0
_EXPLAINED = 10  # tokens at most
_LEAST = 1e-9  # probabilities are kept this far from 0 and 1
# SpamAssassin's rules BAYES_00 to BAYES_99, and the probability from which on each but the
# first applies.
_BAYES = ("00", "05", "20", "40", "50", "60", "80", "95", "99")
_BAYES_FROM = (0.01, 0.05, 0.20, 0.40, 0.60, 0.80, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class HeaderChoices:
    """The headers to write into a message besides our own."""

    bogosity: bool = False  # bogofilter's header
    spam_status: bool = False  # SpamAssassin's headers
    subject_tag: str | None = None  # put before the subject of spam
    explain: bool = False  # our header that explains the verdict
    sure: float | None = None  # the message is learned if a class is at least so probable

    @property
    def names(self) -> list[str]:
        """The names of the headers we write; those found in the message are removed."""
        names = [VERDICT, EXPLANATION]
        names += [BOGOSITY] * self.bogosity
        return names + [SPAM_FLAG, SPAM_LEVEL, SPAM_STATUS] * self.spam_status


def check_wanted(wanted: HeaderChoices, labels: tuple[str, ...]) -> None:
    """Raise UsageError if the subject tag is unfit, or other filters' headers do not fit labels.

    labels: all classes of the model and all labels that its rule can give.
    """
    if wanted.subject_tag is not None:
        checked_tag(wanted.subject_tag)
    for option, is_given in (
        ("--bogosity", wanted.bogosity),
        ("--spam-status", wanted.spam_status),
        ("--subject-tag", wanted.subject_tag is not None),
    ):
        if is_given:
            check_labels(option, labels)


def with_verdict(
    data: bytes,
    verdict: Verdict,
    rule: Rule,
    wanted: HeaderChoices,
    explanation: Explanation | None = None,
    whole: bool = True,
) -> list[bytes]:
    """Return the pieces of a message with a verdict in its head; raises UsageError.

    data: the message, or its beginning if it is not whole.  rule: that gave the verdict's
    label.  explanation: written if there is one.  See `check_wanted` for what can be wanted.
    """
    headers = headers_of(verdict, rule, wanted, explanation)
    tag = b""
    if wanted.subject_tag is not None and verdict.label == "spam":
        tag = checked_tag(wanted.subject_tag)
    return with_headers(data, headers, wanted.names, tag, whole)


def headers_of(
    verdict: Verdict, rule: Rule, wanted: HeaderChoices, explanation: Explanation | None = None
) -> list[Header]:
    """Return the headers that tell a verdict, from top to bottom."""
    release = f"version={__version__}"
    said = f"{verdict.label}, probability={verdict.probability:.6f}, {release}"
    headers = [(VERDICT, said)]
    if explanation is not None:
        headers.append((EXPLANATION, explanation.brief(_EXPLAINED)))
    if wanted.bogosity:
        said = f"{verdict.label.capitalize()}, tests=bogofilter"  # as bogofilter 1.2 writes it
        said += f", spamicity={verdict.posterior['spam']:.6f}, {release}"
        headers.append((BOGOSITY, said))
    if wanted.spam_status:
        learned = None if wanted.sure is None else sure_label(verdict, wanted.sure)
        headers += _spam_headers(verdict, rule, learned or "no")
    return headers


def sure_label(verdict: Verdict, sure: float) -> str | None:
    """Return the most probable class if its probability is at least `sure`, else None."""
    label, probability = max(verdict.posterior.items(), key=lambda pair: pair[1])
    return label if probability >= sure else None


def _spam_headers(verdict: Verdict, rule: Rule, learned: str) -> list[Header]:
    """Return the headers that SpamAssassin writes, where unsure is not spam.

    learned: the class as which the message is learned, or "no".
    """
    is_spam, score = verdict.label == "spam", score_of(verdict, rule)
    status = (
        f"{'Yes' if is_spam else 'No'}, score={score:.1f}"
        f" required={REQUIRED:.1f} tests={bayes_rule(verdict)} autolearn={learned}"
        f" version={__version__}"
    )
    level = [(SPAM_LEVEL, "*" * int(score))] * (score >= 1)
    return [*[(SPAM_FLAG, "YES")] * is_spam, *level, (SPAM_STATUS, status)]


def bayes_rule(verdict: Verdict) -> str:
    """Return the name of SpamAssassin's rule for a probability of spam, BAYES_00 to BAYES_99."""
    return f"BAYES_{_BAYES[bisect_right(_BAYES_FROM, verdict.posterior['spam'])]}"


def score_of(verdict: Verdict, rule: Rule) -> float:
    """Return the log-odds of spam, nats, shifted so that the rule's cutoff is at REQUIRED.

    It is at least REQUIRED if the verdict is spam, and less if it is not.
    """
    spam, is_spam = verdict.posterior["spam"], verdict.label == "spam"
    cutoff = rule.spam if isinstance(rule, Cutoffs) else 0.5
    score = REQUIRED + _log_odds(spam) - _log_odds(cutoff)
    # Rounding to a tenth, or a rule that is not a cutoff, must not contradict the label.
    return max(score, REQUIRED) if is_spam else min(score, REQUIRED - 0.1)


def _log_odds(probability: float) -> float:
    clipped = min(max(probability, _LEAST), 1 - _LEAST)
    return log(clipped / (1 - clipped))


def check_labels(option: str, labels: tuple[str, ...]) -> None:
    """Raise UsageError unless all labels are ham, spam and unsure."""
    if not set(labels) <= {*HAM_AND_SPAM, UNSURE}:
        raise UsageError(
            f"{option}: it is for ham, spam and unsure, but the labels are {', '.join(labels)};"
            " leave it out"
        )
