"""The result of a cross-validation has its measures, and makes a page."""

from pathlib import Path

import pytest

import nbspam
from markup import Page
from nbspam.evaluation.evaluation import evaluation_of
from nbspam.evaluation.judging import judge_folds
from nbspam.settings import PRESETS
from nbspam.sources.items import read_items


@pytest.fixture(scope="module")
def few(mails):
    """Every fifth message of the embedded mail."""
    return [item._replace(data=item.read()) for item in read_items([str(mails)])][::5]


def test_it_has_all_measures_of_the_trial_and_makes_a_page(few):
    result = nbspam.cross_validate(few, cv=3)
    expected = evaluation_of(judge_folds(few, PRESETS["mail"], 3, 0))
    assert result.scores == expected.scores
    assert result.accuracy == expected.accuracy
    assert result.auc == expected.auc
    assert result.n_docs == expected.n_docs
    page = Page(result.report(per_week=70))
    assert "Of 70 messages a week" in page.text
    assert f"{result.errors} of {result.n_docs}, most surely wrong first" in page.text
    assert "In a thousand messages" in result.report()
    assert "which cross_validate(…, curve=True) does" in page.text


def test_its_page_has_a_learning_curve_if_one_was_asked_for(mails):
    curve = nbspam.cross_validate(Path(mails), cv=2, curve=True)
    assert "The share of wrong answers by how many messages were learned" in curve.report()


def test_texts_in_memory_are_shown():
    pairs = [("what does it cost", "sales"), ("it does not start", "help")] * 5
    pairs += [("it does not start, either", "sales")]
    html = nbspam.cross_validate(pairs, cv=2).report()
    assert "either" in Page(html).text
