from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_selection import mutual_info_classif

from nbspam.counts.counting import CountTally, Numbering
from nbspam.counts.table import (
    GRAIN,
    TableSum,
    add_tables,
    entry_weights,
    mutual_information,
    negative,
    pruned_table,
    shifted,
    token_counts_of,
    without_empty,
)
from nbspam.settings import COUNTS, LOG_LENGTH, PRESENCE, UNIT_LENGTH, WEIGHTINGS, TokenSettings
from nbspam.tokens.documents import RIDER_BITS, Documents
from nbspam.tokens.tokenizer import tokenize
from support import count_batch, examples, message, plain

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
    tally = CountTally(weighting)
    for turn, (start, end) in enumerate(pairwise(edges)):
        tally.add(*batch_of(documents[start:end]), turn)
    return tally.table()


def batch_of(documents):
    messages = [message(body=text) for text, _ in documents]
    return tokenize(messages, TokenSettings()), [label for _, label in documents]


def test_log_length_worked_by_hand():
    # "a a b": 1 + ln 2 and 1, over the root of the sum of their squares.
    counted = table([("a a b", "ham")], LOG_LENGTH)

    log = 1 + np.log(2)
    expected = np.array([log, 1]) / np.sqrt(log**2 + 1)
    names = [counted.vocabulary.text(j) for j in range(2)]
    found = dict(zip(names, counted.feature_count[:, 0], strict=True))
    assert [found["a"], found["b"]] == pytest.approx(expected, abs=2**-13)


@given(st.lists(st.tuples(st.integers(1, 99), st.integers(0, 2)), min_size=1, max_size=30))
@examples(40)
def test_weights_do_not_depend_on_the_order_of_a_document(entries):
    """To the bit: so what was counted in one order can be taken out in another."""
    counts, groups = np.array(entries).T
    n = len(entries)

    def one(counts):
        return Documents(np.arange(n), np.array([0, n]), np.arange(n), counts)

    for weighting in WEIGHTINGS:
        weights = entry_weights(one(counts), groups, weighting)
        turned = entry_weights(one(counts[::-1]), groups[::-1], weighting)
        assert (weights == turned[::-1]).all()
        assert (weights % GRAIN[weighting] == 0).all()


def test_every_group_of_a_document_has_unit_length():
    three = message(**{"subject": "a", "body": "b c d e", "from": "f g"})
    counted = count_batch(tokenize([three], TokenSettings()), ["ham"], LOG_LENGTH)

    squares = np.bincount(counted.vocabulary.groups, counted.feature_count[:, 0] ** 2)
    assert squares[squares > 0] == pytest.approx([1, 1, 1], abs=1e-3)


@pytest.mark.parametrize(
    ("weighting", "a", "b"), [(COUNTS, 2, 1), (PRESENCE, 1, 1), (UNIT_LENGTH, 0.8, 0.6)]
)
def test_a_table_worked_by_hand(weighting, a, b):
    a_text, b_text = ("a a", "b") if weighting != UNIT_LENGTH else ("a a a a", "b b b")
    documents = [(f"{a_text} {b_text}", "ham"), ("b", "spam"), ("c", "spam")]
    n_docs, rows = plain(table(documents, weighting))

    assert n_docs == {"ham": 1, "spam": 2}
    assert rows["a"] == ({"ham": pytest.approx(a, abs=2**-30), "spam": 0}, 1)
    assert rows["b"] == ({"ham": pytest.approx(b, abs=2**-30), "spam": 1}, 2)
    assert rows["c"] == ({"ham": 0, "spam": 1}, 1)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@given(documents=DOCUMENTS, cuts=st.lists(st.integers(0, 12), max_size=4))
@examples(40)
def test_parts_add_up_to_the_whole_to_the_bit(weighting, documents, cuts):
    edges = sorted({0, len(documents), *(min(cut, len(documents)) for cut in cuts)})
    parts = [table(documents[a:b], weighting) for a, b in pairwise(edges)]

    whole = plain(table(documents, weighting))
    assert plain(summed(parts)) == whole
    assert plain(tallied(documents, edges, weighting)) == whole
    assert plain(add_tables(parts[::-1])) == whole


def test_of_texts_with_one_key_that_of_the_first_turn_is_kept():
    batch, _ = batch_of([("free", "ham")])
    tables = []
    for turn, text in ((7, b"late"), (3, b"soon"), (5, b"next")):
        tally = CountTally(PRESENCE)
        tally.add(batch._replace(layout=batch.layout._replace(buffer=b"\0" + text)), ["ham"], turn)
        tables.append(tally.table())
    merged = add_tables(tables)

    assert merged.vocabulary.text(0) == "soon"
    assert merged.vocabulary.keys.tolist() == [batch.keys[0] + 3]
    assert merged.vocabulary.with_riders(0).keys.tolist() == batch.keys.tolist()


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@given(documents=DOCUMENTS, n_classes=st.integers(1, 3))
@examples(40)
def test_counts_are_those_of_a_loop_over_documents(weighting, documents, n_classes):
    batch, labels = batch_of(documents)
    y = np.array([["ham", "spam", "work"].index(label) % n_classes for label in labels], int)
    counts = token_counts_of(batch.documents, y, n_classes, batch.groups, weighting)

    feature_count = np.zeros((len(batch.keys), n_classes))
    frequency = np.zeros(len(batch.keys), int)
    for row, label in enumerate(y.tolist()):
        one = batch.documents.one(row)
        columns = np.searchsorted(batch.keys, one.tokens)
        feature_count[columns, label] += entry_weights(one, batch.groups[columns], weighting)
        frequency[columns] += 1
    assert counts.class_count.tolist() == np.bincount(y, minlength=n_classes).tolist()
    assert counts.feature_count.tolist() == feature_count.tolist()
    assert counts.document_frequency.tolist() == frequency.tolist()


@given(DOCUMENTS, DOCUMENTS, st.sets(st.integers(0, 5)))
@examples(40)
def test_known_tokens_are_those_that_a_message_is_counted_for(counted, asked, forgotten):
    known = table(counted)
    known.document_frequency[[j for j in forgotten if j < len(known.vocabulary)]] = 0
    keys = zip(known.vocabulary.keys.tolist(), known.document_frequency, strict=True)
    met = {key: column for column, (key, n) in enumerate(keys) if n > 0}
    documents = batch_of(asked)[0].documents
    given = known.known(documents)

    assert given.n_docs == documents.n_docs
    for row in range(documents.n_docs):
        mine, theirs = (
            zip(one.tokens.tolist(), one.times().tolist(), strict=True)
            for one in (given.one(row), documents.one(row))
        )
        assert [*mine] == [(met[key], n) for key, n in theirs if key in met]
    # Documents over columns, some of which may be those that no message is counted for.
    columns = known.met(known.vocabulary.known(documents))
    assert columns.tokens.tolist() == given.tokens.tolist()
    assert columns.columns.tolist() == given.columns.tolist()


@given(DOCUMENTS, DOCUMENTS)
@examples(40)
def test_subtracting_a_part_leaves_the_rest(documents, more):
    rest, part = table(documents), table(more)

    assert plain(without_empty(shifted(add_tables([rest, part]), negative(part)))) == plain(rest)


def test_pruning_keeps_frequent_and_informative_tokens():
    documents = [("a b", "ham"), ("a b", "ham"), ("a c", "spam"), ("a c d", "spam")]
    counted = table(documents)

    assert set(plain(pruned_table(counted, min_df=2))[1]) == {"a", "b", "c"}
    assert set(plain(pruned_table(counted, max_features=2))[1]) == {"b", "c"}
    assert pruned_table(counted) is counted


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@given(DOCUMENTS.filter(lambda documents: len({label for _, label in documents}) > 1))
@examples(25)
def test_mutual_information_agrees_with_scikit_learn(documents):
    counted = table(documents)
    if not len(counted.vocabulary):
        return
    words = [counted.vocabulary.text(j) for j in range(len(counted.vocabulary))]
    X = np.array([[word in text.split() for word in words] for text, _ in documents])
    labels = [label for _, label in documents]

    theirs = mutual_info_classif(X, labels, discrete_features=True)
    assert mutual_information(counted) == pytest.approx(theirs, abs=1e-12)


# Hashes spread anywhere, and some side by side, which real ones never are.
HASHES = st.integers(0, 2**44 - 1) | st.integers(2**30, 2**30 + 40)
BATCHES = st.lists(st.sets(HASHES.map(lambda n: n << RIDER_BITS), max_size=60), max_size=8)


def check(numbering, batches):
    """Assert that keys get the numbers that a dict would give them, one by one."""
    expected = {}
    for keys in map(sorted, batches):
        numbers = numbering.numbers(np.array(keys, np.uint64))
        for key in keys:
            expected.setdefault(key, len(expected))
        assert numbers.tolist() == [expected[key] for key in keys]
        assert len(numbering) == len(expected) <= len(numbering._slots) / 2


@given(BATCHES)
@examples(50)
def test_keys_are_numbered_in_the_order_they_are_met(batches):
    check(Numbering(first_bits=3), batches)


@given(BATCHES)
@examples(50)
def test_keys_that_want_the_same_slots_get_others(batches):
    crowded = Numbering(first_bits=3)
    crowded._secret = np.uint64(1)  # neighbours stay neighbours, and share slots
    check(crowded, batches)


def test_two_tables_put_the_same_keys_in_different_slots():
    keys = np.arange(100, dtype=np.uint64) << np.uint64(RIDER_BITS)
    one, two = Numbering(first_bits=3), Numbering(first_bits=3)

    assert one.numbers(keys).tolist() == two.numbers(keys).tolist()
    assert not np.array_equal(one._slots, two._slots)


def test_a_tally_is_full_once_it_has_more_tokens_than_its_limit():
    tally = CountTally(PRESENCE, max_tokens=3)
    for n, (text, is_full) in enumerate([("a b", False), ("b c", False), ("d", True)]):
        tally.add(tokenize([message(body=text)], TokenSettings()), ["ham"], n)
        assert tally.is_full == is_full
