"""Two trials compared, and cutoffs tuned: by hand, by exhaustive search, and by the commands."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from nbspam.cli.measuring import _tuning_text
from nbspam.decision import Cutoffs, cutoffs
from nbspam.errors import UsageError
from nbspam.evaluation import choosing
from nbspam.evaluation.choosing import cheapest_cutoffs, compare, trade_off, tune
from nbspam.evaluation.judging import judge_folds
from nbspam.settings import PLAIN, PRESETS
from nbspam.sources.items import read_items
from nbspam.store.open import load_tokens as load
from support import complains, examples, json_lines, random_trial, trial_of, trial_of_classes

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
    assert differences["false_positives"][1:] == (1, 0, 1, 2, 0)
    assert differences["false_negatives"][1:] == (1, 1, 1, 1, 1)
    assert differences["cost"][1:] == (3, 1, 2, 1, 0)
    assert (comparison.only_first_right, comparison.only_second_right) == (1, 2)
    assert comparison.p_value == 1.0
    copied = replace(first, digests=np.array([5, 1, 2, 5, 3, 4]))  # filed as ham, and as spam
    assert compare(copied, second).only_second_right == 1


def test_three_classes_have_neither_false_positives_nor_a_ranking():
    y, joint = np.array([0, 1, 2]), np.log(np.full((3, 3), 0.2) + 0.4 * np.eye(3))
    trials = [trial_of_classes(tuple("abc"), y, each) for each in (joint, joint[:, ::-1])]
    comparison = compare(*trials)
    assert [*by_name(comparison)] == ["errors", "cost", "log_loss", "brier"]
    assert by_name(comparison)["errors"][1:3] == (0, 2)


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
    assert by_name(there)["log_loss"].lost > 0

    trial = random_trial(2)
    comparison = compare(trial, trial)
    assert all((d.won, d.tied, d.lost) == (0, 4, 0) for d in comparison.differences)
    assert comparison.p_value == 1.0


def test_sign_test_equals_scipy():
    assert choosing.sign_test(0, 0) == 1
    # The last would take a minute if the ways of each split were counted.
    for n, m in ((3, 3), (1, 5), (40, 20), (700, 900), (400_000, 401_000)):
        expected = stats.binomtest(n, n + m).pvalue
        assert choosing.sign_test(n, m) == pytest.approx(expected, rel=1e-8)


def test_trials_of_other_documents_are_refused():
    trial = trial_of(Y, np.zeros(6), FOLD)
    for other in (trial_of(Y[::-1], np.zeros(6), FOLD), trial_of(Y, np.zeros(6), FOLD[::-1])):
        with pytest.raises(UsageError, match=r"^compare: not the same documents; "):
            compare(trial, other)


def test_copies_of_mail_are_other_texts_and_an_error_says_so(nbspam, folder):
    copy = (folder / "spam" / "1.eml").read_bytes()
    (folder / "spam" / "copy.eml").write_bytes(b"Received: from b by c\n" + copy)
    result = nbspam("compare", folder, "--cv", "2", "--against", "--preset text")
    assert complains(result, 2, "if it has copies of mail, which as texts are none")


def test_several_settings_are_judged_as_each_alone(mails):
    checked = b"Authentication-Results: mx; spf=pass\n"
    items = [each._replace(data=checked + each.read()) for each in read_items([str(mails)])][::4]
    # Two do not count signs nor judge by beginnings, and only the last trusts the server's checks.
    several = [PLAIN["mail"], PRESETS["mail"]]
    several += [replace(each, tokens=each.tokens._replace(pairs=True)) for each in several]
    several.append(PRESETS["tutorial"])
    several.append(replace(PRESETS["mail"], authserv_id="mx"))
    for settings, trial in zip(several, choosing.judge_several(items, several, 3, 0), strict=True):
        alone = judge_folds(items, settings, 3, 0)
        np.testing.assert_array_equal(trial.joint, alone.joint)
        np.testing.assert_array_equal(trial.fold, alone.fold)


# --- the command --------------------------------------------------------------------------


def test_compare_knows_several_and_json_and_streams(nbspam, folder):
    arguments = ("--against", "--pairs", "--against", "--preset mail", "--json", "--online")
    out = nbspam.out("compare", folder, *arguments)
    first, second = json_lines(out)
    assert (first["against"], second["against"]) == ("--pairs", "--preset mail")
    errors = second["differences"][0]
    same = {"name": "errors", "first": errors["second"], "won": 0, "tied": 4, "lost": 0}
    assert errors == {**same, "second": errors["second"]}


def test_compare_prices_both_alike_and_says_what_they_are(nbspam, folder):
    ways = ("--no-pairs", "--min-df", 2, "--cv", 2, "--against", "--model multinomial")
    costs = ("--fp-cost", 9, "--unsure-cost", ".5")
    out = nbspam.out("compare", folder, *ways, *costs, "--json")
    names = [each["name"] for each in json.loads(out)["differences"]]
    counted = ["errors", "false_positives", "false_negatives", "undecided", "cost"]
    assert names == [*counted, "auc_loss", "log_loss", "brier"]
    said = "A  --no-pairs --min-df 2\nB  --model multinomial\n4 messages, 2 folds\n"
    out = nbspam("compare", folder, *ways)[1]
    assert out.startswith(said)
    assert "B won  tied  lost" in out
    assert max(map(len, out.splitlines())) <= 80
    assert nbspam("compare", folder, *ways[3:-1], "")[1].startswith("A  the defaults\nB  the d")


SCORES = st.lists(st.tuples(st.integers(-5, 5), st.booleans()), min_size=2, max_size=12)
COSTS = st.sampled_from([(1, None), (2, None), (10, None), (10, 0.5), (3, 0.1), (2, 0.6)])


@examples(60)
@given(SCORES, COSTS)
def test_no_other_cutoffs_cost_less(messages, costs):
    # Scores lie between the cutoffs tried here, half a nat from each.
    score = np.array([s for s, _ in messages]) + 0.05
    y = np.array([int(is_spam) for _, is_spam in messages])
    derived = cutoffs(*costs)
    found = cheapest_cutoffs(score, y, derived)
    least = trade_off(score, y, found).cost

    places = 1 / (1 + np.exp(-(np.arange(-6, 7) + 0.55)))
    for spam in places:
        for ham in [spam] if costs[1] is None else places[places <= spam]:
            other = type(found)(spam, ham, *costs)
            assert least <= trade_off(score, y, other).cost + 1e-9
    assert found.ham <= found.spam
    assert (found.fp_cost, found.unsure_cost) == costs


def test_a_trade_off_counts_messages_and_equal_costs_leave_the_cutoff_near_the_derived_one():
    y, score = np.array([0, 0, 0, 1, 1, 1]), np.array([-9, 0, 9, -9, 0, 9])
    row = trade_off(score, y, cutoffs(10, 0.1))
    assert row[1:] == (1, 1, 2, 10 + 1 + 2 * 0.1)
    # One spam is missed, because to be unsure of it and of two hams would cost 1.5.
    y, score = np.array([0, 0, 0, 1, 1]), np.array([-5, -3.9, -3.9, -4, 5])
    found = cheapest_cutoffs(score, y, cutoffs(10, 0.5))
    assert trade_off(score, y, found)[1:] == (0, 1, 0, 1)
    for derived in (cutoffs(9), cutoffs(9, 0.1)):
        found = cheapest_cutoffs(np.array([-8.0, 8.0]), np.array([0, 1]), derived)
        assert (found.spam, found.ham) == pytest.approx((derived.spam, derived.ham), abs=0.01)


@pytest.mark.parametrize("costs", [(10, None), (10, 0.2)])
def test_honest_probabilities_need_no_other_cutoffs_and_biased_ones_are_undone(costs):
    honest, biased = (tune(random_trial(0, 4000, bias=b), cutoffs(*costs)) for b in (0, 3))
    assert honest.found.cost <= honest.derived.cost
    assert honest.held_out_cost >= honest.found.cost
    assert honest.derived.cost <= 1.1 * honest.found.cost
    assert biased.chosen is biased.found
    assert biased.chosen.cost < biased.derived.cost
    for row in biased.table if costs[1] else ():
        assert row.cutoffs.ham == min(biased.chosen.cutoffs.ham, row.cutoffs.spam)
    assert biased.chosen.cost == pytest.approx(honest.found.cost, rel=0.01)


@pytest.mark.parametrize("unsure_cost", [None, 0.2])
def test_a_false_positive_may_cost_so_much_that_its_cutoff_is_one(unsure_cost):
    found = tune(random_trial(0), cutoffs(1e20, unsure_cost)).found
    assert (found.false_positives, found.cutoffs.spam > 0.9) == (0, True)


def test_tuned_cutoffs_are_chosen_only_if_cheaper_on_held_out_folds():
    # Tuned on all messages the cutoff is cheaper, 4 to 5; tuned on one fold and judged on the
    # other it costs 6.
    y = [0, 1, 1, 1] * 2
    trial = trial_of(y, [1.0, -1, 2, 3, 3.5, 3, 2, 1], [0] * 4 + [1] * 4)
    tuning = tune(trial, cutoffs(2))
    assert (tuning.found.cost, tuning.derived.cost, tuning.held_out_cost) == (4, 5, 6)
    assert tuning.chosen is tuning.derived


def test_the_table_holds_both_cutoffs_and_moves_one_way():
    tuning = tune(random_trial(3), cutoffs(5, 0.3))
    shown = [row.cutoffs.spam for row in tuning.table]
    assert shown == sorted(shown)
    assert {tuning.derived.cutoffs.spam, tuning.found.cutoffs.spam} <= set(shown)
    positives = [row.false_positives for row in tuning.table]
    assert positives == sorted(positives, reverse=True)
    # Only a row with both cutoffs is called by their name.
    text = _tuning_text(tune(random_trial(0, bias=3.0), cutoffs(5, 0.3)), "texts")
    assert "by the costs" not in text.split("\n\n")[1]
    assert "0.993940   0.900250       4      17     137        78.1  found\n" in text


# --- the command --------------------------------------------------------------------------


def test_tune_shows_the_trade_off_and_saves_only_if_told(nbspam, trained, folder):
    before = trained.read_bytes()
    arguments = ("tune", folder, "--cv", 2, "--fp-cost", 5)
    out = nbspam.out(*arguments)
    assert "by the costs" in out
    assert " on held-out mail\n" in out
    shown, keeps, _ = out.partition("--save keeps them in the model\n")
    assert (nbspam.out(*arguments, "-q"), bool(keeps)) == (shown, True)
    assert max(map(len, out.splitlines())) <= 80
    assert trained.read_bytes() == before

    assert nbspam(*arguments, "--unsure-cost", ".3", "--save")[0] == 0
    kept = load(str(trained)).rule
    assert (kept.fp_cost, kept.unsure_cost) == (5, 0.3)
    assert "unsure between; kept by `nbspam tune`" in nbspam("info")[1]
    assert nbspam.json("info")["cutoffs"]["fp_cost"] == 5
    values = nbspam.json(*arguments, "--unsure-cost", ".3")
    assert values["chosen"]["cutoffs"] == kept._asdict()


def test_kept_cutoffs_decide_unless_told_otherwise(nbspam, trained, folder):
    assert nbspam("tune", folder, "--cv", 2, "--unsure-cost", ".005", "--save")[0] == 0
    path = folder / "spam" / "1.eml"
    assert nbspam("predict", path)[1] == "unsure\n"
    assert nbspam("classify", path, "--exit-code")[0] == 2
    assert nbspam("classify", path, "--fp-cost", "2")[1].startswith("spam\t")
    assert nbspam.json("eval", folder)["undecided"] > 0


def test_tune_knows_plain_models_and_refuses_what_makes_no_sense(nbspam, model, folder):
    assert nbspam("train", folder, "--model", "multinomial")[0] == 0
    out = nbspam.out("tune", folder, "--cv", 2)
    assert "ham called spam 2\n" in out
    folder.joinpath("spam").rename(folder / "work")
    said = "tune: the classes are ham, work; cutoffs are for ham"
    assert complains(nbspam("tune", folder, "--cv", 2), 2, said)
    assert nbspam("train", folder)[0] == 0
    assert complains(nbspam("tune", "gone", "--save"), 2, said)
