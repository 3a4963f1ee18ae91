import re

import numpy as np
import pytest

from nbspam import __version__
from nbspam.decision import Cutoffs, LossMatrix, cutoffs
from nbspam.errors import UsageError
from nbspam.mail.head import without_headers
from nbspam.mail.verdict_headers import Wanted, judged
from nbspam.store.open import load_tokens as load
from support import HAM, SPAM

ALL = Wanted(bogosity=True, spam_status=True, subject_tag="***SPAM*** ", explain=True)


@pytest.fixture
def classifier(trained):
    return load(str(trained))


def headers(pieces):
    lines = pieces[1].decode().splitlines()
    return [tuple(line.split(": ", 1)) for line in lines]


def test_our_header_has_label_probability_and_version(classifier):
    verdict, pieces = judged(classifier, classifier.rule, Wanted(), SPAM)

    assert headers(pieces) == [
        ("X-Nbspam", f"spam, probability={verdict.probability:.6f}, version={__version__}")
    ]
    assert 0.5 < verdict.probability < 1


def test_headers_of_other_filters_have_their_exact_forms(classifier):
    _, pieces = judged(classifier, classifier.rule, ALL, SPAM)

    found = dict(headers(pieces))
    assert list(found) == [
        "X-Nbspam",
        "X-Nbspam-Explanation",
        "X-Bogosity",
        "X-Spam-Flag",
        "X-Spam-Status",
    ]
    version = re.escape(__version__)
    assert re.fullmatch(
        rf"Spam, tests=bogofilter, spamicity=0\.\d{{6}}, version={version}", found["X-Bogosity"]
    )
    assert found["X-Spam-Flag"] == "YES"
    assert re.fullmatch(
        rf"Yes, score=\d+\.\d required=5\.0 tests=BAYES_\d\d autolearn=no version={version}",
        found["X-Spam-Status"],
    )
    assert found["X-Nbspam-Explanation"].startswith("spam 0.")
    assert b"\nSubject: ***SPAM*** cheap pills\n" in pieces[2]


def test_ham_has_no_flag_and_no_tag(classifier):
    _, pieces = judged(classifier, classifier.rule, ALL, HAM)

    found = dict(headers(pieces))
    assert "X-Spam-Flag" not in found
    assert found["X-Spam-Status"].startswith("No, score=")
    assert found["X-Bogosity"].startswith("Ham, ")
    assert pieces[2] == HAM


@pytest.mark.parametrize("message", [HAM, SPAM])
@pytest.mark.parametrize("fp_cost", [1e-6, 0.5, 1, 2, 1e6])
@pytest.mark.parametrize("unsure_cost", [None, 1e-7])
def test_the_score_never_contradicts_the_verdict(classifier, message, fp_cost, unsure_cost):
    rule = cutoffs(fp_cost, unsure_cost)

    verdict, pieces = judged(classifier, rule, Wanted(spam_status=True), message)

    status = dict(headers(pieces))["X-Spam-Status"]
    score = float(re.search(r"score=(\S+)", status)[1])
    assert (score >= 5) == (verdict.label == "spam") == status.startswith("Yes")


def test_a_probability_at_the_cutoff_scores_what_is_required(classifier):
    verdict, _ = judged(classifier, classifier.rule, Wanted(), SPAM)
    spam = verdict.posterior["spam"]

    _, pieces = judged(classifier, Cutoffs(spam, spam), Wanted(spam_status=True), SPAM)

    assert "Yes, score=5.0 required=5.0" in dict(headers(pieces))["X-Spam-Status"]


def test_unsure_is_said_by_bogosity_and_is_no_spam(classifier):
    rule = LossMatrix(("unsure",), np.zeros((2, 1)))

    _, pieces = judged(classifier, rule, ALL, SPAM)

    found = dict(headers(pieces))
    assert found["X-Bogosity"].startswith("Unsure, ")
    assert found["X-Spam-Status"].startswith("No, score=4.")


def test_forged_headers_go_if_they_are_ours_to_write(classifier):
    forged = b"X-Spam-Flag: YES\nX-Nbspam: ham\nX-Bogosity: Ham\n" + HAM

    _, pieces = judged(classifier, classifier.rule, Wanted(), forged)
    assert pieces[2] == b"X-Spam-Flag: YES\nX-Bogosity: Ham\n" + HAM

    _, pieces = judged(classifier, classifier.rule, ALL, forged)
    assert pieces[2] == HAM
    assert without_headers(b"".join(pieces), ALL.names) == HAM


def test_tokens_in_an_explanation_are_ascii(classifier):
    _, pieces = judged(classifier, classifier.rule, Wanted(explain=True), SPAM * 2)

    assert pieces[1].isascii()
    assert all(re.fullmatch(r"[\w-]+", name) for name, _ in headers(pieces))


def test_other_classes_than_ham_and_spam_have_our_header_alone(nbspam, tmp_path, folder):
    (folder / "ham").rename(folder / "wörk, later")
    nbspam("train", "-m", tmp_path / "m.nbspam", folder)
    classifier = load(str(tmp_path / "m.nbspam"))

    _, pieces = judged(classifier, classifier.rule, Wanted(), HAM)
    assert dict(headers(pieces))["X-Nbspam"].startswith(r"w\xf6rk, later, probability=0.")

    for wanted in (Wanted(bogosity=True), Wanted(spam_status=True), Wanted(subject_tag="x")):
        with pytest.raises(UsageError, match="it is for ham, spam and unsure"):
            judged(classifier, classifier.rule, wanted, HAM)
