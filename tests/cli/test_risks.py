"""The expected cost of each answer, where costs are stated; docs/family.md works out a table's."""

import json

import pytest

from support import SPAM, json_lines


def test_stated_costs_make_risks_of_which_the_label_has_the_least(nbspam, trained, folder):
    how = ("--fp-cost", "9", "--unsure-cost", "0.2")
    (verdict,) = json_lines(nbspam("classify", "--json", *how, stdin=SPAM)[1])
    ham, spam = verdict["posterior"].values()
    assert verdict["risk"] == pytest.approx({"ham": spam, "spam": 9 * ham, "unsure": 0.2})
    assert verdict["risk"][verdict["label"]] == min(verdict["risk"].values())
    shown = nbspam("explain", *how, stdin=SPAM)[1].splitlines()[-3:]
    assert shown == [
        f"{cost:.6g}  expected cost of the answer {name}"
        for name, cost in sorted(verdict["risk"].items(), key=lambda each: each[1])
    ]
    answer = json.loads(nbspam("eval", folder, "--json", *how)[1])
    verdicts = json_lines(nbspam("classify", folder, "--json", *how)[1])
    least = [min(each["risk"].values()) for each in verdicts]
    assert answer["bayes_risk"] == pytest.approx(sum(least) / len(least))
    assert f"Bayes risk{answer['bayes_risk']:>22.5f}\n" in nbspam("eval", folder, *how)[1]


def test_without_costs_there_is_no_risk(nbspam, trained, folder):
    (verdict,) = json_lines(nbspam("classify", "--json", stdin=SPAM)[1])
    assert verdict["risk"] is None
    assert json.loads(nbspam("eval", folder, "--json")[1])["bayes_risk"] is None
    assert "Bayes risk" not in nbspam("eval", folder)[1]
    assert "expected cost" not in nbspam("explain", stdin=SPAM)[1]
