"""The result of a cross-validation has its measures, and makes a page."""

import nbspam
from markup import Page
from nbspam.evaluation.evaluation import evaluation_of
from nbspam.evaluation.judging import judge_folds
from nbspam.settings import PRESETS
from nbspam.sources.items import read_items


def test_it_has_all_measures_of_the_trial_and_makes_a_page(mails):
    few = [item._replace(data=item.read()) for item in read_items([str(mails)])][::5]
    result = nbspam.cross_validate(few, cv=3)
    expected = evaluation_of(judge_folds(few, PRESETS["mail"], 3, 0))
    for name in ("scores", "accuracy", "auc", "n_docs"):
        assert getattr(result, name) == getattr(expected, name)
    page = Page(result.report(per_week=70))
    assert "Of 70 messages a week" in page.text
    assert f"{result.errors} of {result.n_docs}, most surely wrong first" in page.text
    assert "In a thousand messages" in result.report()
    assert "which cross_validate(…, curve=True) does" in page.text

    curve = nbspam.cross_validate(few, cv=2, curve=True)
    assert "The share of wrong answers by how many messages were learned" in curve.report()
    pairs = [("what does it cost", "sales"), ("it does not start", "help")] * 5
    html = nbspam.cross_validate([*pairs, ("it does not start, either", "sales")], cv=2).report()
    assert "either" in Page(html).text
