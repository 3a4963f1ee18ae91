"""The result of a cross-validation has its measures, and makes a page."""

from pathlib import Path

import nbspam
from markup import Page
from nbspam.evaluation.judging import judge_folds
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


def test_texts_in_memory_are_shown():
    pairs = [("what does it cost", "sales"), ("it does not start", "help")] * 5
    pairs += [("it does not start, either", "sales")]
    html = nbspam.cross_validate(pairs, cv=2).report()
    assert "either" in Page(html).text
