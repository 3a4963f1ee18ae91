from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_selection import mutual_info_classif

from nbspam.counts.table import (
    GRAIN,
    TableSum,
    add_tables,
    entry_weights,
    mutual_information,
    prune,
    subtract_table,
)
from nbspam.counts.tally import Tally
from nbspam.mail.message import Field, Message
from nbspam.settings import COUNTS, LOG_LENGTH, PRESENCE, UNIT_LENGTH, WEIGHTINGS, TokenSettings
from nbspam.tokens.tokenizer import tokenize
from support import count_batch

TEXT = st.text("abcd   ", max_size=20)
DOCUMENTS = st.lists(st.tuples(TEXT, st.sampled_from(["ham", "spam", "work"])), max_size=12)


def table(documents, weighting=PRESENCE):
    return count_batch(*batch_of(documents), weighting)


def summed(tables):
    total = TableSum()
    for each in tables:
        total.add(each)
    return total.total()


def tallied(documents, edges, weighting):
    """Return the table of documents that are counted in batches, between these edges."""
    tally = Tally(weighting)
    for turn, (start, end) in enumerate(pairwise(edges)):
        tally.add(*batch_of(documents[start:end]), turn)
    return tally.table()


def batch_of(documents):
    messages = [Message((Field("body", text.encode()),), ()) for text, _ in documents]
    return tokenize(messages, TokenSettings()), [label for _, label in documents]


def plain(counted):
    """Return a table as plain values, to compare to the bit."""
    names = [counted.vocabulary.text(j) for j in range(len(counted.vocabulary))]
    rows = {
        name: (dict(zip(counted.classes, row, strict=True)), df)
        for name, row, df in zip(
            names,
            counted.feature_count.tolist(),
            counted.document_frequency.tolist(),
            strict=True,
        )
    }
    return dict(zip(counted.classes, counted.class_count.tolist(), strict=True)), rows


def test_log_length_worked_by_hand():
    # "a a b": 1 + ln 2 and 1, over the root of the sum of their squares.
    counted = table([("a a b", "ham")], LOG_LENGTH)

    log = 1 + np.log(2)
    expected = np.array([log, 1]) / np.sqrt(log**2 + 1)
    names = [counted.vocabulary.text(j) for j in range(2)]
    found = dict(zip(names, counted.feature_count[:, 0], strict=True))
    assert [found["a"], found["b"]] == pytest.approx(expected, abs=2**-13)


@given(st.lists(st.tuples(st.integers(1, 99), st.integers(0, 2)), min_size=1, max_size=30))
def test_weights_do_not_depend_on_the_order_of_a_document(entries):
    """To the bit: so what was counted in one order can be taken out in another."""
    counts, groups = np.array(entries).T
    documents = np.zeros(len(entries), np.int64)
    for weighting in WEIGHTINGS:
        weights = entry_weights(counts, documents, groups, weighting)
        turned = entry_weights(counts[::-1], documents, groups[::-1], weighting)
        assert (weights == turned[::-1]).all()
        assert (weights % GRAIN[weighting] == 0).all()


def test_every_group_of_a_document_has_unit_length():
    fields = (Field("subject", b"a"), Field("body", b"b c d e"), Field("from", b"f g"))
    counted = count_batch(tokenize([Message(fields, ())], TokenSettings()), ["ham"], LOG_LENGTH)

    squares = np.bincount(counted.vocabulary.groups, counted.feature_count[:, 0] ** 2)
    assert squares[squares > 0] == pytest.approx([1, 1, 1], abs=1e-3)


def test_a_table_worked_by_hand():
    counted = table([("a a b", "ham"), ("b", "spam"), ("b c", "spam")], COUNTS)

    assert counted.classes == ("ham", "spam")
    assert plain(counted)[0] == {"ham": 1, "spam": 2}
    assert plain(counted)[1] == {
        "a": ({"ham": 2, "spam": 0}, 1),
        "b": ({"ham": 1, "spam": 2}, 3),
        "c": ({"ham": 0, "spam": 1}, 1),
    }


def test_presence_counts_a_document_once():
    assert plain(table([("a a a", "ham")]))[1] == {"a": ({"ham": 1}, 1)}


def test_unit_length_divides_by_the_euclidean_norm():
    counted = table([("a a a b b b b", "ham")], UNIT_LENGTH)

    assert sorted(counted.feature_count.ravel()) == pytest.approx([3 / 5, 4 / 5], abs=2**-30)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@given(documents=DOCUMENTS, cuts=st.lists(st.integers(0, 12), max_size=4))
def test_parts_add_up_to_the_whole_to_the_bit(weighting, documents, cuts):
    edges = sorted({0, len(documents), *(min(cut, len(documents)) for cut in cuts)})
    parts = [table(documents[a:b], weighting) for a, b in pairwise(edges)]

    whole = plain(table(documents, weighting))
    assert plain(summed(parts)) == whole
    assert plain(tallied(documents, edges, weighting)) == whole
    assert plain(add_tables(parts[::-1])) == whole


def test_more_tables_than_one_level_holds_are_summed():
    parts = [table([("a b"[: i % 3 + 1], "ham")]) for i in range(40)]

    assert plain(summed(parts)) == plain(add_tables(parts))


def test_of_texts_with_one_key_that_of_the_first_turn_stands():
    batch, _ = batch_of([("free", "ham")])
    tables = []
    for turn, text in ((7, b"late"), (3, b"soon"), (5, b"next")):
        tally = Tally(PRESENCE)
        tally.add(batch._replace(layout=batch.layout._replace(buffer=b"\0" + text)), ["ham"], turn)
        tables.append(tally.table())
    merged = add_tables(tables)

    assert merged.vocabulary.text(0) == "soon"
    assert merged.vocabulary.keys.tolist() == [batch.keys[0] + 3]
    assert merged.vocabulary.with_riders(0).keys.tolist() == batch.keys.tolist()


@given(DOCUMENTS.filter(lambda documents: len(documents) > 1))
def test_subtracting_a_part_leaves_the_rest(documents):
    whole, part = table(documents), table(documents[:1])
    aligned = subtract_table(add_tables([whole, part]), whole)

    assert aligned.feature_count.sum() == part.feature_count.sum()
    assert aligned.class_count.sum() == 1


def test_pruning_keeps_frequent_and_informative_tokens():
    documents = [("a b", "ham"), ("a b", "ham"), ("a c", "spam"), ("a c d", "spam")]
    counted = table(documents)

    assert set(plain(prune(counted, min_df=2))[1]) == {"a", "b", "c"}
    assert set(plain(prune(counted, max_features=2))[1]) == {"b", "c"}
    assert prune(counted) is counted


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@given(DOCUMENTS.filter(lambda documents: len({label for _, label in documents}) > 1))
def test_mutual_information_agrees_with_scikit_learn(documents):
    counted = table(documents)
    if not len(counted.vocabulary):
        return
    words = [counted.vocabulary.text(j) for j in range(len(counted.vocabulary))]
    X = np.array([[word in text.split() for word in words] for text, _ in documents])
    labels = [label for _, label in documents]

    theirs = mutual_info_classif(X, labels, discrete_features=True)
    assert mutual_information(counted) == pytest.approx(theirs, abs=1e-12)
