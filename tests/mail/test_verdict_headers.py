"""Headers with a verdict: what they say, and where they stand in a head of any shape."""

import re
from itertools import takewhile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam import __version__
from nbspam.decision import HAM_AND_SPAM, Cutoffs, LossMatrix, Rule, cutoffs
from nbspam.errors import UsageError
from nbspam.mail import verdict_headers
from nbspam.mail.verdict_headers import HeaderChoices, check_wanted, sure_label, with_verdict
from nbspam.verdicts import Evidence, Explanation, Verdict
from support import HAM, SPAM

NAMES = ["X-Nbspam", "X-Bogosity"]
OURS = [("X-Nbspam", "ham, ours")]
HEADER = b"X-Nbspam: ham, ours"


def added(data, names=NAMES, tag=b"", whole=True):
    return b"".join(verdict_headers.with_headers(data, OURS, names, tag, whole))


def others(data):
    """Return the bytes beside the headers that are added."""
    envelope, _, rest = verdict_headers.with_headers(data, OURS, NAMES)
    return envelope + rest


@pytest.mark.parametrize(("data", "expected"), [
    (b"A: b\r\rbody", HEADER + b"\rA: b\r\rbody"),
    (b"A: b", HEADER + b"\nA: b"),
    (b">From x\r\nA: b\r\n", b">From x\r\n" + HEADER + b"\r\nA: b\r\n"),
    (b"\nbo\rdy", HEADER + b"\n\nbo\rdy"),
    (b"\r\nbody", HEADER + b"\r\n\r\nbody"),
])  # fmt: skip
def test_headers_are_added_at_the_top_with_the_messages_line_ends(data, expected):
    assert added(data) == expected
    assert others(data) == data


LONGER = b"X-Nbspam2: a\nX-Nbspammer: b\nNot-X-Nbspam: c\nA: X-Nbspam: d\n\n"


@pytest.mark.parametrize(("forged", "clean"), [
    (b"X-NBSPAM : spam,\n folded\n\ttwice\nC: d\n\n", b"C: d\n\n"),
    (b"A: b\rx-nbspam: spam\rC: d\r\rX-Nbspam: quoted\r", b"A: b\rC: d\r\rX-Nbspam: quoted\r"),
    (b"A: b\rX-Nbspam: spam\nC: d\n\n", b"A: b\r\nC: d\n\n"),
    (b"A: b\r\r\nX-Nbspam: spam\nC: d\n\n", b"A: b\r\r\nC: d\n\n"),
    (b"From x\nX-Nbspam: spam\nA: b", b"From x\nA: b"),
    # "\r" and "\n" around it would become one line end, and the body part of the head.
    (b"A: b\rX-Nbspam: x\n\nX-Nbspam: q\n\n", b"A: b\r\n\nX-Nbspam: q\n\n"),
    (LONGER, LONGER),
])  # fmt: skip
def test_forged_headers_are_removed_from_the_head_only(forged, clean):
    assert others(forged) == clean


LINES = (b"X-Nbspam: forged", b"x-nbspam : forged", b"X-Bogosity: forged", b"A: b", b"Subject: s")
MARK = b"X-Nbspam-Head: none; this line and the next are added"
PIECES = st.sampled_from([*LINES, MARK, b"\n", b"\n", b"\r", b"\r\n", b" c", b"junk", b"From x"])
MESSAGES = st.lists(PIECES, max_size=12).map(b"".join)


@given(MESSAGES)
def test_no_reader_finds_a_forged_header_and_adding_keeps_the_rest_and_can_be_repeated(data):
    out = added(data)
    for line_end in (rb"\n", rb"\r\n|\n|\r"):
        lines = [*takewhile(lambda line: line.strip(b"\r"), re.split(line_end, out))]
        assert not any(re.match(rb"(?i)x-(nbspam|bogosity) ?: forged", line) for line in lines)
    assert lines.count(HEADER) == 1
    assert MARK in out or added(out) == out
    if b"nbspam" not in data.lower() and b"bogosity" not in data.lower():
        assert others(data) == data


def test_a_head_without_end_in_sight_is_not_a_head():
    out = added(b"A: b\nX-Nbspam: forged\n", whole=False)
    assert out.startswith(HEADER + b"\nX-Nbspam-Head: none; this line and the next are added\n\n")
    assert out.endswith(b"A: b\nX-Nbspam: forged\n")


@pytest.mark.parametrize(("data", "expected"), [
    (b"SUBJECT: hi\n\nSubject: no\n", b"SUBJECT: [x] hi\n\nSubject: no\n"),
    (b"A: b\r\nSubject:\r\n =?utf-8?q?hi?=\r\n\r\n", b"Subject:[x] \r\n =?utf-8?q?hi?=\r\n"),
    (b"Subject: [x] hi\nSubject: to\n\n", b"Subject: [x] hi\nSubject: [x] to\n\n"),
    (b"A: b\rSubject: hi\nSubject: to\n\n", b"Subject: [x] hi\nSubject: [x] to\n\n"),
    (b"A: b\n\nSubject: no\n", b"\nSubject: [x] \nA: b\n\nSubject: no\n"),
    (b"\nSubject: no\n\n", b"\nSubject: [x] \n\nSubject: no\n\n"),
])  # fmt: skip
def test_each_subject_is_tagged_once(data, expected):
    out = added(data, tag=b"[x] ")
    assert expected in out
    assert out.count(b"[x] ") == expected.count(b"[x] ")


@pytest.mark.parametrize("tag", ["", " ", "a\nb", "späm", "\x1b[1m"])
def test_a_tag_that_cannot_stand_in_a_subject_is_wrong_usage(tag):
    with pytest.raises(UsageError, match="not printable ASCII"):
        verdict_headers.checked_tag(tag)


ALL = HeaderChoices(bogosity=True, spam_status=True, subject_tag="***SPAM*** ", explain=True)
RULE = cutoffs()
LIKELY, UNLIKELY = 0.98, 0.02  # probabilities of spam


def verdict_of(spam: float, rule: Rule) -> Verdict:
    probability = np.array([[1 - spam, spam]])
    (label,) = rule.labels(probability)
    return Verdict("-", label, {"ham": 1 - spam, "spam": spam})


def written(data, spam, wanted, rule=RULE):
    """Return the pieces of a message with the verdict for this probability of spam."""
    verdict = verdict_of(spam, rule)
    explanation = None
    if wanted.explain:
        evidence = (Evidence("subject:b\xfcy now", 2.5, "header", (0.0, 1.0)),)
        explanation = Explanation(verdict, "spam", "ham", 2.5, 0.0, evidence)
    return with_verdict(data, verdict, rule, wanted, explanation)


def headers(pieces):
    lines = pieces[1].decode().splitlines()
    return [tuple(line.split(": ", 1)) for line in lines]


def test_headers_have_their_exact_forms():
    pieces = written(SPAM, LIKELY, ALL)
    ours = ("X-Nbspam", f"spam, probability=0.980000, version={__version__}")

    assert headers(written(SPAM, LIKELY, HeaderChoices())) == [ours]
    assert headers(pieces) == [
        ours,
        ("X-Nbspam-Explanation", r"spam 0.9800: subject:b\xfcy now +2.5"),
        ("X-Bogosity", f"Spam, tests=bogofilter, spamicity=0.980000, version={__version__}"),
        ("X-Spam-Flag", "YES"),
        ("X-Spam-Level", "********"),
        (
            "X-Spam-Status",
            # log(.98/.02) nats, less those of the cutoff 2/3, and 5
            f"Yes, score=8.2 required=5.0 tests=BAYES_95 autolearn=no version={__version__}",
        ),
    ]
    assert b"\nSubject: ***SPAM*** cheap pills\n" in pieces[2]


def test_an_explanation_has_the_ten_first_tokens():
    evidence = tuple(Evidence(f"word{n}", 1.0, "text", (0.0, 1.0)) for n in range(12))
    explained = Explanation(verdict_of(LIKELY, RULE), "spam", "ham", 12.0, 0.0, evidence)
    wanted = HeaderChoices(explain=True)
    pieces = with_verdict(SPAM, explained.verdict, RULE, wanted, explained)
    assert re.findall(r"word(\d+)", dict(headers(pieces))["X-Nbspam-Explanation"]) == [
        str(n) for n in range(10)
    ]


UNSURE = LossMatrix(("unsure",), np.zeros((2, 1)))


@pytest.mark.parametrize(("spam", "rule", "bogosity", "status"), [
    (UNLIKELY, RULE, "Ham, ", "No, score=0.4 "),
    (LIKELY, UNSURE, "Unsure, ", "No, score=4.9 "),
    (UNLIKELY, UNSURE, "Unsure, ", "No, score=1.1 "),
    (0.9, Cutoffs(0.9, 0.9), "Spam, ", "Yes, score=5.0 required=5.0"),
    # log(1e9) nats at most, less those of the cutoff 2/3, and 5
    (1.0, RULE, "Spam, ", "Yes, score=25.0 "),
])  # fmt: skip
def test_only_spam_has_a_flag_and_a_tag(spam, rule, bogosity, status):
    pieces = written(HAM, spam, ALL, rule)
    found, is_spam = dict(headers(pieces)), status.startswith("Yes")
    assert ("X-Spam-Flag" in found) == is_spam
    assert found["X-Spam-Status"].startswith(status)
    assert found["X-Bogosity"].startswith(bogosity)
    assert (pieces[2] == HAM) == (not is_spam)


@pytest.mark.parametrize("fp_cost", [1e-6, 0.5, 1, 2, 1e6])
@pytest.mark.parametrize("unsure_cost", [None, 1e-7])
def test_the_score_never_contradicts_the_label(fp_cost, unsure_cost):
    rule = cutoffs(fp_cost, unsure_cost)
    for spam in (0, 1e-9, 0.3, 0.5, 0.9, 1):
        pieces = written(SPAM, spam, HeaderChoices(spam_status=True), rule)
        status = dict(headers(pieces))["X-Spam-Status"]

        score = float(re.search(r"score=(\S+)", status)[1])
        is_spam = verdict_of(spam, rule).label == "spam"
        assert (score >= 5) == is_spam == status.startswith("Yes")


def test_headers_found_in_a_message_are_removed_if_they_are_among_those_written():
    forged = b"X-Spam-Flag: YES\nX-Nbspam: ham\nX-Bogosity: Ham\n" + HAM
    pieces = written(forged, UNLIKELY, HeaderChoices())
    assert pieces[2] == b"X-Spam-Flag: YES\nX-Bogosity: Ham\n" + HAM
    pieces = written(forged, UNLIKELY, ALL)
    assert pieces[2] == HAM


def test_the_status_says_as_what_a_message_is_learned():
    own = verdict_of(0.25, RULE)
    for learned, said in ((None, "no"), ("ham", "ham")):
        pieces = written(HAM, 0.25, HeaderChoices(spam_status=True, learned=learned))
        assert f" autolearn={said} " in dict(headers(pieces))["X-Spam-Status"]
    assert (sure_label(own, own, 0.75), sure_label(own, own, 0.76)) == ("ham", None)
    assert sure_label(own, verdict_of(0.9, RULE), 0.6) is None  # a line of the lists alone


@pytest.mark.parametrize("how", [{"bogosity": True}, {"spam_status": True}, {"subject_tag": "x"}])
def test_headers_of_other_filters_need_the_labels_ham_spam_and_unsure(how):
    check_wanted(HeaderChoices(**how), (*HAM_AND_SPAM, "unsure"))
    option = f"--{next(iter(how)).replace('_', '-')}"
    said = (
        f"^{option}: it is for ham, spam and unsure, but the labels are ham, work; leave it out$"
    )
    with pytest.raises(UsageError, match=said):
        check_wanted(HeaderChoices(**how), ("ham", "work", "ham", "work"))
    with pytest.raises(UsageError, match="not printable ASCII"):
        check_wanted(HeaderChoices(subject_tag="a\nb"), HAM_AND_SPAM)
