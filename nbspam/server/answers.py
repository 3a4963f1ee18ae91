"""From judgements to what mail systems read: a score with a threshold, names of rules, a report.

Secret: how a verdict is told to those who know SpamAssassin's or rspamd's words only.
"""

from nbspam.mail.verdict_headers import REQUIRED, bayes_rule, score_of
from nbspam.printing import printable
from nbspam.server.threads.judging import Judgement

STRONGEST = 20  # tokens in a report, at most
# Why there is no verdict or lesson, by the kind of trouble, where nothing more is known.
REASONS = {
    "busy": "too many messages; try again",
    "late": "not judged in time",
    "idle": "the request is not whole in time",
    "malformed": "the request is not one of this protocol",
    "failed": "the request failed",
    "large": "the message is too large to be learned here; teach it by the command line",
}


def is_spam(judgement: Judgement) -> bool:
    """Return whether a message is called spam; unsure is not."""
    return judgement.verdict.label == "spam"


def score(judgement: Judgement) -> float:
    """Return the score as `nbspam filter` writes it; spam from REQUIRED on."""
    return score_of(judgement.verdict, judgement.rule)


def rules(judgement: Judgement) -> list[str]:
    """Return the names of rules that other filters would have found true."""
    label = judgement.verdict.label
    return [bayes_rule(judgement.verdict), f"NBSPAM_{label.upper()}"]


def report(judgement: Judgement) -> str:
    """Return lines for people: the verdict, and the strongest tokens if they were asked for."""
    verdict = judgement.verdict
    lines = [
        f"{verdict.label}, probability of spam {verdict.posterior['spam']:.6f}",
        f"{score(judgement):.1f} points, {REQUIRED:.1f} required",
    ]
    if judgement.lack is not None:
        lines.append(judgement.lack)
    if judgement.explanation is not None:
        found = judgement.explanation.strongest(STRONGEST)
        lines += ["", "  nats  token"] * bool(found)
        lines += [f"{each.contribution:+6.1f}  {printable(each.token)}" for each in found]
    return "\r\n".join(lines) + "\r\n"
