import re

import numpy as np
import pytest

from nbspam import __version__
from nbspam.decision import HAM_AND_SPAM, Cutoffs, LossMatrix, Rule, cutoffs
from nbspam.errors import UsageError
from nbspam.mail.head import without_headers
from nbspam.mail.verdict_headers import HeaderChoices, check_wanted, sure_label, with_verdict
from nbspam.verdicts import Evidence, Explanation, Verdict
from support import HAM, SPAM

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


@pytest.mark.parametrize(
    ("spam", "rule", "bogosity", "status"),
    [
        (UNLIKELY, RULE, "Ham, ", "No, score=0.4 "),
        (LIKELY, UNSURE, "Unsure, ", "No, score=4.9 "),
        (UNLIKELY, UNSURE, "Unsure, ", "No, score=1.1 "),
        (0.9, Cutoffs(0.9, 0.9), "Spam, ", "Yes, score=5.0 required=5.0"),
        # log(1e9) nats at most, less those of the cutoff 2/3, and 5
        (1.0, RULE, "Spam, ", "Yes, score=25.0 "),
    ],
)
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
    assert without_headers(b"".join(pieces), ALL.names) == HAM


@pytest.mark.parametrize(("sure", "learned"), [(None, "no"), (0.97, "spam"), (0.99, "no")])
def test_the_status_says_as_what_a_message_is_learned(sure, learned):
    pieces = written(SPAM, LIKELY, HeaderChoices(spam_status=True, sure=sure))
    assert f" autolearn={learned} " in dict(headers(pieces))["X-Spam-Status"]
    verdict = verdict_of(0.25, RULE)
    assert (sure_label(verdict, 0.75), sure_label(verdict, 0.76)) == ("ham", None)


@pytest.mark.parametrize("how", [{"bogosity": True}, {"spam_status": True}, {"subject_tag": "x"}])
def test_headers_of_other_filters_need_the_labels_ham_spam_and_unsure(how):
    check_wanted(HeaderChoices(**how), (*HAM_AND_SPAM, "unsure"))
    option = f"--{next(iter(how)).replace('_', '-')}"
    with pytest.raises(UsageError, match=f"^{option}: it is for ham, spam and unsure"):
        check_wanted(HeaderChoices(**how), (*HAM_AND_SPAM, "work"))
    with pytest.raises(UsageError, match="not printable ASCII"):
        check_wanted(HeaderChoices(subject_tag="a\nb"), HAM_AND_SPAM)
