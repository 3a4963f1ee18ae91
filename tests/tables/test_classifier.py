"""A classifier of rows: answers by position, another prior, and its state."""

from pathlib import Path

import numpy as np
import pytest

from nbspam.sources.records import Record, read_records
from nbspam.tables.classifier import TableClassifier, factors, value_counts
from nbspam.tables.training import TableSettings, read_table, train_table
from nbspam.verdicts import Skipped
from support import ROOT

MELONS = ROOT / "corpora" / "watermelon-3.0.csv"
TARGET = "好瓜"


def melons(path: Path = MELONS) -> list[Record]:
    return list(read_records([str(path)]))


@pytest.fixture(scope="module")
def classifier():
    # Mixed: density is a number, so that a cell can be damaged.
    settings = TableSettings(TARGET, model="mixed", parameters={"alpha": 1.0})
    return train_table(read_table(melons(), settings).table, settings)


def twins():
    """Return three rows of one name, of different values; the second cannot be read."""
    first, second, third = melons()[0], melons()[8], melons()[16]
    damaged = Record("twin", {**second.cells, "密度": "heavy"})
    return [Record("twin", first.cells), damaged, Record("twin", third.cells)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_two_rows_of_one_name_get_their_own_answers(classifier, jobs):
    first, second, third = classifier.answers(twins(), jobs)
    expected = [next(classifier.answers([melons()[i]])) for i in (0, 16)]
    assert [first.joint.tolist(), third.joint.tolist()] == [e.joint.tolist() for e in expected]
    assert (first.joint != third.joint).all()
    assert (first.truth, third.truth) == ("是", "否")
    assert isinstance(second, Skipped)
    assert "密度 is 'heavy', not a number" in second.reason

    verdicts = list(classifier.classify(twins()))
    assert [v.label for v in verdicts[::2]] == ["是", "否"]
    for explained in (classifier.explanations(twins()), factors(classifier, twins())):
        first, second, third = explained
        assert [first.verdict, second, third.verdict] == verdicts


def test_a_shift_is_added_to_every_answer_and_explanation(classifier):
    shift, row = np.array([0.5, -1.0]), melons()[3]
    shifted = classifier.shifted(shift).shifted(shift)
    before, after = (next(c.answers([row])) for c in (classifier, shifted))
    np.testing.assert_allclose(after.joint, before.joint + 2 * shift, rtol=1e-12)
    plain, moved = (c.explain(row) for c in (classifier, shifted))
    sign = 1 if plain.towards == classifier.classes[0] else -1
    assert moved.towards == plain.towards
    assert moved.constant == pytest.approx(plain.constant + sign * 3.0)
    assert moved.score == pytest.approx(plain.score + sign * 3.0)


def test_shares_add_up_to_the_score_and_factors_multiply_to_the_joint_probability(classifier):
    for row in melons():
        explained = classifier.explain(row)
        shares = [e.contribution for e in explained.evidence]
        assert explained.constant + sum(shares) == pytest.approx(explained.score)
        assert [*map(abs, shares)] == sorted(map(abs, shares), reverse=True)

        found, (answer,) = next(factors(classifier, [row])), classifier.answers([row])
        joint = found.log_prior + found.log_factors.sum(axis=0)
        np.testing.assert_allclose(joint, answer.joint)
        assert len(found.values) == len(found.log_factors)


def test_a_column_of_numbers_counts_its_known_cells():
    rows = [*melons(), Record("x", {**melons()[0].cells, "密度": "?"})]
    table = read_table(rows, TableSettings(TARGET)).table
    counts = value_counts(table)
    assert counts.shape == (2, np.maximum(table.schema.levels, 1).sum())
    position = [column.name for column in table.schema.columns].index("密度")
    first = np.maximum(table.schema.levels, 1)[:position].sum()
    assert counts[:, first].tolist() == [9, 8]


def test_the_state_gives_the_same_answers(classifier):
    state = classifier.to_state()
    assert state["kind"] == "table"
    before, after = (
        [answer.joint.tolist() for answer in each.answers(melons())]
        for each in (classifier, TableClassifier.from_state(state))
    )
    assert before == after
