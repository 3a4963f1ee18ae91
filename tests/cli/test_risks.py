"""The conditional risk of every answer, and the Bayes risk, where costs are stated."""

import json
from collections import Counter
from fractions import Fraction
from itertools import product

import pytest

from support import LIHANG, SPAM, json_lines

COSTS = {"actions": ["buy", "leave", "ask"], "loss": {"1": [0, 4, 1], "-1": [6, 0, 1]}}
QUESTIONS = list(product("123", "SML"))


def posteriors():
    """Return P(class given row) of every question by Laplace's rule, in fractions."""
    rows = [tuple(line.split(",")) for line in LIHANG.read_text().split()[1:]]
    n, found = Counter(row[2] for row in rows), {}
    for x1, x2 in QUESTIONS:
        joint = {
            y: Fraction(n[y] + 1, len(rows) + 2)
            * Fraction(sum(row[::2] == (x1, y) for row in rows) + 1, n[y] + 3)
            * Fraction(sum(row[1:] == (x2, y) for row in rows) + 1, n[y] + 3)
            for y in ("-1", "1")
        }
        found[x1, x2] = {y: p / sum(joint.values()) for y, p in joint.items()}
    return found


def expected_costs(posterior):
    """Return the conditional risk of each action: the sum of cost times probability."""
    return {
        action: sum(posterior[y] * COSTS["loss"][y][k] for y in posterior)
        for k, action in enumerate(COSTS["actions"])
    }


@pytest.fixture
def loss(table, model, tmp_path):
    """Train the model of the table; return the options of the costs."""
    table("train", LIHANG, "--target", "Y")
    (tmp_path / "loss.json").write_text(json.dumps(COSTS))
    return "--loss", tmp_path / "loss.json"


def test_every_answer_has_its_risk_and_the_label_the_least(table, loss):
    stdin = "\n".join(["X1,X2", *map(",".join, QUESTIONS)]).encode()
    verdicts = json_lines(table("classify", "--json", *loss, stdin=stdin)[1])
    labels = set()
    for verdict, posterior in zip(verdicts, posteriors().values(), strict=True):
        risk = expected_costs(posterior)
        assert verdict["risk"] == pytest.approx({name: float(r) for name, r in risk.items()})
        assert risk[verdict["label"]] == min(risk.values())
        labels.add(verdict["label"])
    assert len(labels) > 1  # the rule is no constant


def test_the_bayes_risk_is_the_mean_of_the_least_risks(table, loss):
    likely = posteriors()
    rows = [tuple(line.split(",")[:2]) for line in LIHANG.read_text().split()[1:]]
    least = [min(expected_costs(likely[row]).values()) for row in rows]
    status, out, err = table("eval", LIHANG, *loss, "--json")
    assert (status, err) == (0, "")
    expected = float(sum(least) / len(least))
    assert json.loads(out)["bayes_risk"] == pytest.approx(expected)
    assert f"Bayes risk{expected:>22.5f}\n" in table("eval", LIHANG, *loss)[1]
    # No other way to choose an action for each of the questions has a lower expected cost.
    weights = Counter(rows)
    for action in product(COSTS["actions"], repeat=2):
        mixed = sum(
            n * expected_costs(likely[row])[action[row[1] == "S"]] for row, n in weights.items()
        )
        assert mixed / len(rows) >= expected - 1e-12


def test_costs_of_mail_make_risks_too(nbspam, trained, folder):
    how = ("--fp-cost", "9", "--unsure-cost", "0.2")
    (verdict,) = json_lines(nbspam("classify", "--json", *how, stdin=SPAM)[1])
    ham, spam = verdict["posterior"].values()
    assert verdict["risk"] == pytest.approx({"ham": spam, "spam": 9 * ham, "unsure": 0.2})
    assert verdict["risk"][verdict["label"]] == min(verdict["risk"].values())
    answer = json.loads(nbspam("eval", folder, "--json", *how)[1])
    verdicts = json_lines(nbspam("classify", folder, "--json", *how)[1])
    least = [min(each["risk"].values()) for each in verdicts]
    assert answer["bayes_risk"] == pytest.approx(sum(least) / len(least))


def test_without_costs_there_is_no_risk(nbspam, trained, folder):
    (verdict,) = json_lines(nbspam("classify", "--json", stdin=SPAM)[1])
    assert verdict["risk"] is None
    assert json.loads(nbspam("eval", folder, "--json")[1])["bayes_risk"] is None
    assert "Bayes risk" not in nbspam("eval", folder)[1]
    assert "expected cost" not in nbspam("explain", stdin=SPAM)[1]
