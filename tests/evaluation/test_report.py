"""The report against scikit-learn's; text that stays in line and is safe to print."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nbspam.decision import Shares
from nbspam.evaluation import report
from nbspam.evaluation.evaluation import Evaluation, evaluate
from nbspam.evaluation.metrics import classification_report, confusion_matrix, mcc
from nbspam.evaluation.report import classification_report_text, evaluation_json, evaluation_text
from nbspam.printing import clipped, printable
from support import columns, memory_of, trial_of_classes

NAMES = ["ham", "spam", "a", "talk.religion.misc", "très long " * 3, "ß", "no news", ""]

# Ham: 3 right, 1 called spam.  Spam: 2 right, none missed.
Y_TRUE, Y_PRED = [0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1]
P_SPAM = [0.1, 0.2, 0.0, 0.6, 0.9, 1.0]


def case(seed):
    """Return random (y_true, y_pred, class names), often with a class missing."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, len(NAMES)))
    n_docs = int(rng.choice([1, 7, 40, 3000]))
    y_true, y_pred = (rng.choice(k, n_docs, p=share) for share in rng.dirichlet([0.5] * k, 2))
    return y_true, y_pred, rng.permutation(NAMES)[:k].tolist()


def filter_run(**options):
    return evaluate(Y_TRUE, Y_PRED, ["ham", "spam"], probability=P_SPAM, **options)


def text_of(confusion, names):
    report = classification_report(confusion, names)
    return evaluation_text(Evaluation(confusion, tuple(names), report, 0.5))


# The classification report


@pytest.mark.parametrize("seed", range(10))
def test_confusion_mcc_and_report_are_scikit_learns_to_the_letter_and_in_json(seed):
    metrics = pytest.importorskip("sklearn.metrics")
    y_true, y_pred, names = case(seed)
    how = {"labels": range(len(names)), "target_names": names, "zero_division": 0.0}
    confusion = confusion_matrix(y_true, y_pred, len(names), len(names))
    theirs = metrics.confusion_matrix(y_true, y_pred, labels=range(len(names)))
    np.testing.assert_array_equal(confusion, theirs)
    expected = metrics.matthews_corrcoef(y_true, y_pred)
    assert mcc(confusion) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    report = classification_report(confusion, names)
    expected = metrics.classification_report(y_true, y_pred, **how)
    if not np.any(y_true == y_pred):
        # scikit-learn prints the support as 3.0 when no prediction is right; ours never does.
        expected = re.sub(r" {2}( *\d+)\.0$", r"    \1", expected, flags=re.MULTILINE)
    assert classification_report_text(report) == expected
    ours = evaluation_json(evaluate(y_true, y_pred, names))["report"]
    expected = metrics.classification_report(y_true, y_pred, output_dict=True, **how)
    assert list(ours) == list(expected)
    for key, row in expected.items():
        assert ours[key] == pytest.approx(row, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    "names",
    [("ham", "spam"), ("好瓜", "s" * 70), ("ぷ" * 30, "ßé"), ("a\x1b[2J", "b\nspam  1.00")],
)
def test_a_report_keeps_its_numbers_in_line_whatever_the_names(names):
    confusion = np.array([[12345, 3], [0, 1]])
    lines = classification_report_text(classification_report(confusion, names)).splitlines()
    rows = [line for line in lines if line]
    assert len({columns(line) for line in rows}) == 1
    for name, row in zip(names, rows[1:3], strict=True):
        shown = clipped(printable(name), 39)
        numbers = row.removeprefix(row[: row.index(shown) + len(shown)])
        assert len(numbers) == 1 + 4 * 10
        assert len(numbers.split()) == 4


def test_all_of_an_evaluation_stays_in_line_when_names_are_wide(few_resamples):
    names = ["垃圾邮件" * 9, "w" * 30]
    run = evaluate(Y_TRUE, Y_PRED, names, probability=P_SPAM, rng=np.random.default_rng(0))
    intervals, confusion = evaluation_text(run).split("\n\n")[4:6]
    shares = report.shares_text(
        Shares(*np.array([[0.5, 0.5], [0.9, 0.1], [0.88, 0.12]])), tuple(names)
    )
    for block in (intervals, confusion, shares):
        lines = block.splitlines()
        assert len(lines) == 3
        assert len({columns(line) for line in lines}) == 1


# JSON


def test_json_counts_errors_for_two_classes_only_and_turns_what_is_not_finite_into_null():
    answer = evaluation_json(filter_run())
    assert (answer["errors"], answer["false_positives"], answer["false_negatives"]) == (1, 1, 0)
    assert answer["confusion"] == [[3, 1], [0, 2]]
    three = evaluation_json(evaluate([0, 1, 2], [0, 1, 1], ["a", "b", "c"]))
    assert three["false_positives"] is three["false_negatives"] is None
    assert three["auc"] is three["log_loss"] is three["cost"] is None

    run = filter_run()
    odd = replace(run, auc=float("nan"), intervals={"auc": (0.5, float("inf"))})
    assert evaluation_json(odd)["auc"] is None
    assert evaluation_json(odd)["intervals"] == {"auc": [0.5, None]}


def test_json_is_strict_and_comes_back_the_same(few_resamples):
    for y_true, cost in ((Y_TRUE, None), ([0] * 6, None), ([1] * 6, [0, 10, 1, 0, 0, 0])):
        rng, names = np.random.default_rng(0), ["ham", "sp\udc80am"]
        run = evaluate(y_true, Y_PRED, names, probability=P_SPAM, cost=cost, rng=rng)
        answer = evaluation_json(run)
        assert json.loads(json.dumps(answer, allow_nan=False)) == answer


# Text


def test_text_shows_only_what_applies():
    text = evaluation_text(evaluate([0, 1, 2], [0, 1, 1], ["a", "b", "c"]))
    assert "accuracy" in text
    for absent in ("false positives", "AUC", "lam", "calibration", "Brier", "cost", "interval"):
        assert absent not in text

    run = evaluate([0, 0, 1, 1], [0, 2, 2, 0], ["ham", "spam"], other_answers=["unsure"])
    text = evaluation_text(run)
    assert text.startswith("1 of 4 right (25.00 %), 1 wrong, 2 unsure\n")
    two = "\n1 false positives (ham called spam), 0 false negatives (spam called ham)\n"
    assert two in evaluation_text(filter_run())
    assert "ham                   1     0       1\nspam                  1     0       1\n" in text
    assert evaluation_json(run)["undecided"] == 2


def test_text_shows_intervals_low_first_also_where_the_scale_turns(few_resamples):
    text = evaluation_text(replace(filter_run(), auc=0.9, intervals={"auc": (0.8, 1)}))
    assert "AUC                      0.90000   95 % interval 0.80000 to 1.00000\n" in text
    assert "(1-AUC) %               10.00000   95 % interval 0.00000 to 20.00000\n" in text

    run = filter_run(rng=np.random.default_rng(0))
    low, high = run.class_intervals["spam"][1]
    assert f"{low:.4f} to {high:.4f}" in evaluation_text(run)
    assert max(map(len, evaluation_text(run).splitlines())) <= 80


def test_text_of_many_classes_names_the_most_frequent_confusions_instead():
    names = [f"group.number.{i}" for i in range(20)]
    wrong = [(3, 4, 12), (0, 19, 5), *((i, i + 1, 1) for i in range(5, 15))]
    confusion = np.eye(20, dtype=np.int64)
    for truth, prediction, count in wrong:
        confusion[truth, prediction] = count
    text = text_of(confusion, names)
    lines = [line.split() for line in text.splitlines() if " called " in line]
    assert lines[0] == ["12", "group.number.3", "called", "group.number.4"]
    assert lines[1] == ["5", "group.number.0", "called", "group.number.19"]
    assert len(lines) == 10
    assert not [line for line in lines if line[1] == line[3]]
    answers = [*range(19), 20]
    unsure = evaluate(range(20), answers, names, other_answers=["unsure"])
    assert "\n21 unsure\n" in evaluation_text(unsure)  # a column, and no class with a row


def test_a_matrix_in_per_cent_fits_or_is_left_out():
    names = [f"新闻组.numbers.{i}" for i in range(20)]
    confusion = np.diag(np.full(20, 200))
    confusion[3, 4], confusion[5, 6], confusion[7, 7], confusion[7, 0] = 50, 1, 0, 3
    text = text_of(confusion, names)
    head, *rows = text.split("\n\n")[4].splitlines()

    assert head.split()[-20:] == [str(n) for n in range(1, 21)]
    assert len({columns(line) for line in (head, *rows)}) == 1
    assert columns(head) <= 80
    cells = [[row[-60:][3 * k : 3 * k + 3].strip() for k in range(20)] for row in rows]
    # Of class 3 (row 4) 200 of 250 are right; 1 of 201 rounds to 0, and is none; 200 to 99.
    assert cells[3][3:5] == ["80", "20"]
    assert cells[5][5:7] == ["99", "0"]
    assert rows[7].split()[-20:] == ["100", *["."] * 19]
    assert "\n\n\n" not in text_of(np.diag(np.full(20, 200)), names)
    assert [row.split()[0] for row in rows] == [str(n) for n in range(1, 21)]


@pytest.mark.parametrize(("n", "shown"), [(22, True), (23, False)])
def test_the_matrix_in_per_cent_leaves_room_for_names_or_is_left_out(n, shown):
    text = text_of(np.full((n, n), 10_000), [f"a long name {i}" for i in range(n)])
    assert ("class, %" in text) == shown
    assert max(map(columns, text.splitlines())) <= 80


def test_a_matrix_that_is_not_shown_takes_no_memory():
    confusion = np.eye(1000, dtype=np.int64)
    _, most = memory_of(text_of, confusion, [f"{n}" for n in range(1000)])
    assert most < 4 * confusion.nbytes


def test_two_classes_that_are_not_ham_and_spam_are_named(few_resamples):
    names = ["否" * 9, "a" * 20]
    run = evaluate([0, 0, 1, 1], [0, 1, 1, 0], names, rng=np.random.default_rng(0))
    text = evaluation_text(run)
    assert "否否…否否 called aaaaa…aaaa, %  50.00000   95 % interval" in text
    assert not any(word in text for word in ("(hm)", "lam %", "positives"))
    assert max(map(columns, text.splitlines())) <= 80


@given(st.lists(st.text(max_size=40), min_size=2, max_size=12))
# Both are drawn at another letter; the one is wide, the other of combining class 0.
@example(["\N{IDEOGRAPHIC LEVEL TONE MARK}", "\N{MARCHEN SUBJOINED LETTER KA}"])
def test_confusions_fit_eighty_columns_and_line_up_whatever_the_names(names):
    confusion = np.full((len(names), len(names)), 12345)
    text = text_of(confusion, names)
    block = text.split("\n\n")[4].splitlines()
    widths = {columns(line) for line in block}
    assert max(widths) <= 80
    if block[0].startswith("truth"):
        assert len(widths) == 1


def test_shares_are_shown_for_few_classes(monkeypatch):
    shares = Shares(*np.array([[0.5, 0.5], [0.9, 0.1], [0.88, 0.12]]))
    assert report.shares_text(shares, ("ham", "spam")).splitlines()[1:] == [
        "ham                       50.00     90.00      88.00",
        "spam                      50.00     10.00      12.00",
    ]
    # Their estimation takes longer than all else where there are many classes.
    monkeypatch.setattr(report, "shares_of", None)
    report.trial_text(trial_of_classes(tuple("abcdefghijk"), np.arange(11), np.eye(11)))
