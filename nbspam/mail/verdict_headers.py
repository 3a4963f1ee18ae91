"""Verdicts as mail headers: our own, bogofilter's and SpamAssassin's; and how they are added.

Headers are added at the top of a message, where every mail reader finds them.  Headers of the same
names that the sender wrote are removed first; all other bytes stay as they are.  Mail readers
disagree on line ends (LF only, or CR too), so the head is parsed both ways, and a header found in
either way is removed.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable
from math import log

from nbspam import __version__
from nbspam.decision import HAM_AND_SPAM, UNSURE, Cutoffs, Rule
from nbspam.errors import UsageError
from nbspam.mail.headers import HeaderChoices, looks_like_header
from nbspam.printing import printable
from nbspam.verdicts import Explanation, Verdict

Header = tuple[str, str]  # name and value

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


def names_of(wanted: HeaderChoices) -> list[str]:
    """Return the names of the headers we write; those found in the message are removed."""
    names = [VERDICT, EXPLANATION]
    if wanted.bogosity:
        names.append(BOGOSITY)
    if wanted.spam_status:
        names += [SPAM_FLAG, SPAM_LEVEL, SPAM_STATUS]
    return names


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
    return with_headers(data, headers, names_of(wanted), tag, whole)


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
        headers += _spam_headers(verdict, rule, wanted.learned or "no")
    return headers


def sure_label(own: Verdict, listed: Verdict, sure: float) -> str | None:
    """Return the class that is at least as probable as `sure`, above .5, in both verdicts.

    own: of the model alone.  listed: with the lists of senders, whom anybody can forge.
    """
    both = (name for name, p in own.posterior.items() if min(p, listed.posterior[name]) >= sure)
    return next(both, None)


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
    headers = [(SPAM_FLAG, "YES")] if is_spam else []
    if score >= 1:
        headers.append((SPAM_LEVEL, "*" * int(score)))
    return [*headers, (SPAM_STATUS, status)]


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


def check_labels(what: str, labels: tuple[str, ...], advice: str = "leave it out") -> None:
    """Raise UsageError unless all labels are ham, spam and unsure."""
    if not set(labels) <= {*HAM_AND_SPAM, UNSURE}:
        found = ", ".join(dict.fromkeys(labels))
        raise UsageError(
            f"{what}: it is for ham, spam and unsure, but the labels are {found}; {advice}"
        )


# --- in a message -----------------------------------------------------------------------------

# Marks a message that had no head: the empty line after this one was added, too.
_NO_HEAD = "X-Nbspam-Head"
_NO_HEAD_LINE = b"X-Nbspam-Head: none; this line and the next are added"

_EOL = rb"(?:\r\n|\n|\r)"
_ENVELOPE = re.compile(rb"(?:>?From [^\r\n]*+" + _EOL + rb"){0,100}")
# The end of the last line of the head, if CR ends lines too, and if only LF does.
_LAST_LINE = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?=[\r\n])")
_LAST_LF_LINE = re.compile(rb"\n(?=\r?\n)")
_SUBJECT = rb"(?:\A|(?<=[\r\n]))(?i:subject)[ \t]*+:[ \t]*+"  # followed by its words


def with_headers(
    data: bytes,
    headers: Iterable[Header],
    names: Collection[str],
    tag: bytes = b"",
    whole: bool = True,
) -> list[bytes]:
    """Return the pieces of a message with headers added on top.

    names: headers of these names in the message are removed.  tag: put before each subject,
    of which readers show different ones, unless it is there.  whole: data is all of the message.
    """
    end = _ENVELOPE.match(data).end()  # type: ignore[union-attr]  # it matches nothing, too
    envelope, rest = data[:end], data[end:]
    line_end = re.search(rb"\r?\n", data)
    eol = line_end[0] if line_end else b"\r" if b"\r" in data else b"\n"
    added = list(headers)
    # If no end of the head is in sight, an empty line is added before it: then no reader takes
    # any line of it for a header.
    has_head = _has_head(rest) and (whole or _LAST_LF_LINE.search(rest) is not None)
    if has_head:
        rest = _cleaned(rest, names)
        has_head = _has_head(rest)
        end = _head_ends(rest)[0] if tag else 0
        untagged = _SUBJECT + b"(?!%b)" % re.escape(tag)
        head = re.sub(untagged, lambda subject: subject[0] + tag, rest[:end])
        rest = head + rest[end:]
        if tag and not re.search(_SUBJECT, head):
            added.append(("Subject", tag.decode("ascii")))
    lines = (f"{name}: {printable(value)}" for name, value in added)
    head = b"".join(line.encode("ascii", "backslashreplace") + eol for line in lines)
    return [envelope, head if has_head else head + _NO_HEAD_LINE + eol + eol, rest]


def checked_tag(text: str) -> bytes:
    """Return a subject tag as bytes; raises UsageError unless it is printable ASCII."""
    if not (text.isascii() and text.isprintable() and text.strip()):
        raise UsageError(f"--subject-tag {text!r}: not printable ASCII; write it as '[SPAM] '")
    return text.encode("ascii")


def _has_head(data: bytes) -> bool:
    """Return whether data begin with a header or with the empty line that ends the head."""
    return data.startswith((b"\n", b"\r\n")) or looks_like_header(data)


def _pattern(names: Collection[str], only_lf: bool = False) -> re.Pattern[bytes]:
    """Return the pattern of a header of these names with its folds; group 1 is its line end.

    only_lf: only LF ends lines, and CR is an ordinary character; then the pattern does not
    match at the start of the data.
    """
    any_of = "|".join(map(re.escape, sorted({*names, _NO_HEAD}))).encode()
    before, eol, inside = rb"(?:\A|(?<=[\r\n]))", _EOL, rb"[^\r\n]*+"
    if only_lf:
        before, eol, inside = rb"(?<=\n)", rb"\n", rb"[^\n]*+"
    folds = rb"(?:" + eol + rb"[ \t]" + inside + rb")*+"
    header = rb"(?:" + any_of + rb")[ \t]*+:" + inside + folds
    return re.compile(before + header + rb"(" + eol + rb"|\Z)", re.IGNORECASE)


def _head_ends(data: bytes) -> tuple[int, int]:
    """Return where the head ends if CR ends lines too, and where if only LF does."""
    if data.startswith((b"\r", b"\n")):
        return 0, 0
    ends = (pattern.search(data) for pattern in (_LAST_LINE, _LAST_LF_LINE))
    nearer, farther = (len(data) if end is None else end.end() for end in ends)
    return nearer, farther


def _cleaned(data: bytes, names: Collection[str]) -> bytes:
    """Return a message (without From_ lines) without headers of these names."""
    nearer, farther = _head_ends(data)

    def replacement(match: re.Match[bytes]) -> bytes:
        # If the line before ends in CR and this one in LF, the LF stays: joining the lines
        # around could make a header of them, or remove an empty line.
        joins = data[match.start() - 1 : match.start()] == b"\r"
        return b"\n" if joins and match[1].endswith(b"\n") else b""

    head = _pattern(names).sub(replacement, data[:nearer])
    # Beyond `nearer`, the head goes on only for readers to whom CR is an ordinary character.
    more = _pattern(names, only_lf=True).sub(b"", data[nearer:farther])
    return head + more + data[farther:]
