"""Compared runs stand side by side, with the numbers of each."""

import pytest

from markup import Page, rows_of
from nbspam.evaluation.choosing import compare_items
from nbspam.evaluation.evaluation import evaluation_of
from nbspam.evaluation.metrics import hm_rate, sm_rate
from nbspam.evaluation.pages.quality import compared_page
from nbspam.evaluation.pages.rendering import rate
from nbspam.evaluation.report import short
from nbspam.settings import SettingsChoices
from nbspam.sources.items import read_items
from support import texts


def own_rule(trial):
    return trial.rule


@pytest.fixture(scope="module")
def compared(mails):
    choices = SettingsChoices(), SettingsChoices(model="multinomial"), SettingsChoices(pairs=True)
    return compare_items(read_items([str(mails)]), choices, 3, 0, own_rule)


@pytest.fixture(scope="module")
def html(compared):
    names = ["the defaults", "--model multinomial", "--pairs"]
    return compared_page(compared, names, "mails", per_week=200)


def test_every_run_has_a_column(compared, html):
    head, *rows = rows_of(html, "Side by side")
    found = {row[0]: row[1:] for row in rows}
    confusions = [evaluation_of(trial).confusion for trial in compared.trials]
    assert head == ["", "A", "B", "C"]
    for cell, confusion in zip(found["spams caught, of 100"], confusions, strict=True):
        assert cell.startswith(f"{rate(100 * (1 - sm_rate(confusion)))}(")
    for cell, confusion in zip(found["hams lost, of 1,000"], confusions, strict=True):
        assert cell.startswith(f"{rate(1000 * hm_rate(confusion))}(")
    weekly = found["of 200 messages a week: ham lost"]
    assert weekly == [rate(200 * c[0, 1] / c.sum()) for c in confusions]


def test_differences_are_those_of_the_text(compared, html):
    for letter, comparison in zip("BC", compared.comparisons, strict=True):
        _, *rows = rows_of(html, f"{letter} against A")
        expected = [
            [d.name, short(d.first), short(d.second), *map(str, (d.won, d.tied, d.lost))]
            for d in comparison.differences
        ]
        assert rows == expected


def test_documents_that_only_some_get_right_are_listed(compared, html):
    right = [trial.answers()[0] == trial.y for trial in compared.trials]
    rows = rows_of(html, "Where they differ")[1:]
    names = [
        name for name, *r in zip(compared.trials[0].names, *right, strict=True) if len(set(r)) > 1
    ]
    assert [row[-1] for row in rows] == names[:100]


def test_a_difference_is_called_real_only_if_chance_seldom_makes_it(html, compared):
    text = Page(html).text
    for comparison in compared.comparisons:
        assert f"Only A is right about {comparison.only_first_right} messages" in text
    is_real = [each.p_value < 0.05 for each in compared.comparisons]
    assert text.count("the difference is real") == sum(is_real)
    assert text.count("do not show which is better") == len(is_real) - sum(is_real)


def test_texts_of_other_classes_compare_too():
    choices = [SettingsChoices(), SettingsChoices(alpha=1.0)]
    compared = compare_items(texts(20, 0), choices, 4, 0, own_rule)
    page = Page(compared_page(compared, ["the defaults", "--alpha 1"]))
    assert "sky recognised, of 100" in page.text
    assert "sea called sky" in page.text
    assert page.tags.count("svg") == 5
