"""Two trials compared: by hand, against scipy, and through the command."""

import json

import numpy as np
import pytest

from nbspam.decision import Cutoffs
from nbspam.errors import UsageError
from nbspam.evaluation.choosing import compare, sign_test
from nbspam.evaluation.judging import judge_folds, judge_several
from nbspam.settings import PRESETS
from nbspam.sources.items import read_items
from support import json_lines, random_trial, trial_of

FOLD = [0, 0, 1, 1, 2, 2]
Y = [0, 1, 0, 1, 0, 1]


def by_name(comparison):
    return {each.name: each for each in comparison.differences}


def test_a_comparison_by_hand():
    # First: a false positive in fold 0 and a miss in fold 1.  Second: a miss in fold 0.
    first = trial_of(Y, [4, 4, -4, -4, -4, 4], FOLD)
    second = trial_of(Y, [-4, -4, -4, 4, -4, 4], FOLD)
    comparison = compare(first, second)
    differences = by_name(comparison)

    assert (comparison.n_docs, comparison.n_folds) == (6, 3)
    assert differences["errors"][1:] == (2, 1, 1, 2, 0)
    assert differences["false positives"][1:] == (1, 0, 1, 2, 0)
    assert differences["false negatives"][1:] == (1, 1, 1, 1, 1)
    assert differences["cost"][1:] == (3, 1, 2, 1, 0)
    assert (comparison.only_first_right, comparison.only_second_right) == (1, 2)
    assert comparison.p_value == 1.0


def test_unsure_answers_are_counted_apart():
    rule = Cutoffs(0.99, 0.01, fp_cost=2, unsure_cost=0.5)
    first = trial_of(Y, [9, 9, -9, 9, -9, 9], FOLD, rule)
    differences = by_name(compare(first, trial_of(Y, [0, 9, -9, 9, -9, 9], FOLD, rule)))
    assert differences["errors"][1:] == (1, 0, 1, 2, 0)
    assert differences["undecided"][1:] == (0, 1, 0, 2, 1)
    assert differences["cost"][1:] == (2, 0.5, 1, 2, 0)


def test_to_swap_the_two_swaps_won_and_lost_and_the_same_trial_ties_everywhere():
    first, second = random_trial(1), random_trial(1, bias=1.0)
    there, back = compare(first, second), compare(second, first)
    for a, b in zip(there.differences, back.differences, strict=True):
        assert a == (b.name, b.second, b.first, b.lost, b.tied, b.won)
    assert there.p_value == back.p_value
    assert by_name(there)["log loss"].lost > 0

    trial = random_trial(2)
    comparison = compare(trial, trial)
    assert all((d.won, d.tied, d.lost) == (0, 4, 0) for d in comparison.differences)
    assert comparison.p_value == 1.0


@pytest.mark.parametrize(("n", "m"), [(0, 0), (3, 3), (1, 9), (40, 20), (700, 900)])
def test_sign_test_equals_scipy(n, m):
    stats = pytest.importorskip("scipy.stats")
    expected = stats.binomtest(n, n + m).pvalue if n + m else 1.0
    assert sign_test(n, m) == pytest.approx(expected, rel=1e-9)


def test_trials_of_other_documents_are_refused():
    trial = trial_of(Y, np.zeros(6), FOLD)
    for other in (trial_of(Y[::-1], np.zeros(6), FOLD), trial_of(Y, np.zeros(6), FOLD[::-1])):
        with pytest.raises(UsageError, match=r"^compare: not the same documents; "):
            compare(trial, other)


def test_several_settings_are_judged_as_each_alone(mails):
    items = list(read_items([str(mails)]))[::4]
    several = [PRESETS["mail"], PRESETS["tutorial"]]
    for settings, trial in zip(several, judge_several(items, several, 3, 0), strict=True):
        alone = judge_folds(items, settings, 3, 0)
        np.testing.assert_array_equal(trial.joint, alone.joint)
        np.testing.assert_array_equal(trial.fold, alone.fold)


# --- the command --------------------------------------------------------------------------


def test_compare_knows_several_and_json_and_streams(nbspam, folder):
    arguments = ("--against", "--pairs", "--against", "--preset mail", "--json", "--online")
    status, out, _ = nbspam("compare", folder, *arguments)

    assert status == 0
    first, second = json_lines(out)
    assert (first["against"], second["against"]) == ("--pairs", "--preset mail")
    errors = second["differences"][0]
    same = {"name": "errors", "first": errors["second"], "won": 0, "tied": 4, "lost": 0}
    assert errors == {**same, "second": errors["second"]}


def test_compare_prices_both_alike_and_says_what_they_are(nbspam, folder):
    ways = ("--no-pairs", "--min-df", 2, "--cv", 2, "--against", "--model multinomial")
    costs = ("--fp-cost", 9, "--unsure-cost", ".5")
    status, out, _ = nbspam("compare", folder, *ways, *costs, "--json")
    assert status == 0
    assert "undecided" in [each["name"] for each in json.loads(out)["differences"]]
    said = "A  --no-pairs --min-df 2\nB  --model multinomial\n4 messages, 2 folds\n"
    out = nbspam("compare", folder, *ways)[1]
    assert out.startswith(said)
    assert "B won  tied  lost" in out
    assert max(map(len, out.splitlines())) <= 80
    assert nbspam("compare", folder, *ways[3:])[1].startswith("A  the defaults\nB  --model m")
