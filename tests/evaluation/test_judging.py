"""Ways of judging: folds by the seed, and labelled inputs that a model can be judged by."""

import numpy as np
import pytest

from nbspam.errors import InputError, UsageError
from nbspam.evaluation.judging import folds, judge_classifier, judge_folds, table_trial
from nbspam.settings import PRESETS
from nbspam.sources.items import read_items
from nbspam.sources.records import Record, read_records
from nbspam.tables.training import TableSettings, read_table, train_table
from support import ROOT

MELONS = ROOT / "corpora" / "watermelon-3.0.csv"
Y = np.arange(60) % 3 // 2


@pytest.fixture(scope="module")
def table():
    return read_table(read_records([str(MELONS)]), TableSettings("好瓜")).table


def test_two_seeds_give_two_foldings_and_one_seed_gives_one():
    first, again, other = (folds(Y, 5, seed) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_the_seed_reaches_the_folds_of_tables_and_mail(table, mails):
    settings = TableSettings("好瓜")
    items = list(read_items([str(mails)]))[::4]
    for judge in (
        lambda seed: table_trial(table, settings, 4, seed),
        lambda seed: judge_folds(items, PRESETS["tutorial"], 4, seed),
    ):
        first, again, other = judge(1), judge(1), judge(2)
        assert (first.fold == again.fold).all()
        assert (first.joint == again.joint).all()
        assert (first.fold != other.fold).any()


@pytest.mark.parametrize("k", [1, 21])
def test_no_fold_goes_without_a_class(k):
    with pytest.raises(UsageError, match="the smallest class has 20 documents; give"):
        folds(Y, k, 0)


def test_inputs_a_model_cannot_be_judged_by_are_named(table):
    classifier = train_table(table, TableSettings("好瓜"))
    row, *_ = read_records([str(MELONS)])
    unlabelled = Record("a", {**row.cells, "好瓜": ""})
    strange = Record("b", {**row.cells, "好瓜": "maybe"})
    trial = judge_classifier(classifier, [unlabelled, row, strange])
    assert trial.y.tolist() == [1]
    assert [skipped.name for skipped in trial.skipped] == ["a", "b"]
    assert "class maybe is not one of the model's" in trial.skipped[1].reason
    with pytest.raises(InputError, match="no message with a class the model knows"):
        judge_classifier(classifier, [unlabelled, strange])
