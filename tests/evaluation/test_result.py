"""The result of a cross-validation has its measures, and makes a page."""

from pathlib import Path

import nbspam
from markup import Page
from nbspam.evaluation.judging.held_out import judge_folds
from nbspam.evaluation.trial import evaluation_of
from nbspam.settings import PRESETS
from nbspam.sources.items import read_items


def test_it_has_all_measures_of_the_trial(mails):
    result = nbspam.cross_validate(mails, cv=3)
    expected = evaluation_of(judge_folds(read_items([str(mails)]), PRESETS["mail"], 3, 0))
    assert result.scores == expected.scores
    assert result.accuracy == expected.accuracy
    assert result.auc == expected.auc
    assert result.n_docs == expected.n_docs


def test_it_makes_a_page(mails):
    result = nbspam.cross_validate(Path(mails), cv=2)
    page = Page(result.report(per_week=70))
    assert "Of 70 messages a week" in page.text
    assert f"{result.errors} of {result.n_docs}, most surely wrong first" in page.text
    assert "In a thousand messages" in result.report()


def test_its_page_has_a_learning_curve_if_one_was_asked_for(mails):
    curve, plain = (nbspam.cross_validate(mails, cv=2, curve=each) for each in (True, False))
    assert curve.scores == plain.scores
    assert "The share of wrong answers by how many messages were learned" in curve.report()
    assert "which cross_validate(…, curve=True) does" in Page(plain.report()).text


def test_texts_in_memory_are_shown():
    pairs = [("what does it cost", "sales"), ("it does not start", "help")] * 5
    pairs += [("it does not start, either", "sales")]
    html = nbspam.cross_validate(pairs, cv=2).report()
    assert "either" in Page(html).text
