import re

import pytest

from nbspam import __version__
from nbspam.classifier.classifier import mark_from_group
from nbspam.decision import Cutoffs
from nbspam.errors import UsageError
from nbspam.mail.verdict_headers import HeaderChoices
from nbspam.store.open import load_tokens as load
from support import HAM, SPAM


@pytest.fixture
def classifier(trained):
    return load(str(trained))


def headers(pieces):
    lines = pieces[1].decode().splitlines()
    return [tuple(line.split(": ", 1)) for line in lines]


def test_a_message_gets_the_verdict_that_is_returned(classifier):
    verdict, pieces = mark_from_group(classifier, classifier.rule, HeaderChoices(), SPAM)
    said = f"spam, probability={verdict.probability:.6f}, version={__version__}"
    assert headers(pieces) == [("X-Nbspam", said)]
    assert 0.5 < verdict.probability < 1
    # A probability at the cutoff scores what is required.
    spam = verdict.posterior["spam"]
    wanted = HeaderChoices(spam_status=True)
    _, pieces = mark_from_group(classifier, Cutoffs(spam, spam), wanted, SPAM)
    assert "Yes, score=5.0 required=5.0" in dict(headers(pieces))["X-Spam-Status"]


def test_tokens_in_an_explanation_are_ascii(classifier):
    _, pieces = mark_from_group(classifier, classifier.rule, HeaderChoices(explain=True), SPAM * 2)

    assert pieces[1].isascii()
    assert all(re.fullmatch(r"[\w-]+", name) for name, _ in headers(pieces))


def test_other_classes_than_ham_and_spam_have_our_header_alone(nbspam, tmp_path, folder):
    (folder / "ham").rename(folder / "wörk, later")
    nbspam("train", "-m", tmp_path / "m.nbspam", folder)
    classifier = load(str(tmp_path / "m.nbspam"))

    _, pieces = mark_from_group(classifier, classifier.rule, HeaderChoices(), HAM)
    assert dict(headers(pieces))["X-Nbspam"].startswith(r"w\xf6rk, later, probability=0.")
    with pytest.raises(UsageError, match="it is for ham, spam and unsure"):
        mark_from_group(classifier, classifier.rule, HeaderChoices(bogosity=True), HAM)
