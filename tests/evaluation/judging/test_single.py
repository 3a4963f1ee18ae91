"""Judging one model: what can be compared with a label, and what is said where nothing can."""

import pytest

from nbspam.errors import InputError
from nbspam.evaluation.judging.single import judge_classifier
from nbspam.sources.records import Record, read_records
from nbspam.tables.training import TableSettings, read_table, train_table
from support import ROOT

MELONS = ROOT / "corpora" / "watermelon-3.0.csv"


@pytest.fixture
def table():
    return read_table(read_records([str(MELONS)]), TableSettings("好瓜")).table


def test_inputs_a_model_cannot_be_judged_by_are_named(table):
    classifier = train_table(table, TableSettings("好瓜"))
    row, *_ = read_records([str(MELONS)])
    unlabelled = Record("a", {**row.cells, "好瓜": ""})
    strange = Record("b", {**row.cells, "好瓜": "maybe"})
    trial = judge_classifier(classifier, [unlabelled, row, strange])
    assert trial.y.tolist() == [1]
    assert [skipped.name for skipped in trial.skipped] == ["a", "b"]
    assert "class maybe is not one of the model's" in trial.skipped[1].reason
    with pytest.raises(InputError, match="classes are maybe, and the model knows 否, 是"):
        judge_classifier(classifier, [unlabelled, strange])
