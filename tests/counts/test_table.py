"""Count tables: they add up to the bit, and what they forget is bounded."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_selection import mutual_info_classif

from nbspam import settings
from nbspam.classifier import training as library
from nbspam.classifier.training import learn_items
from nbspam.counts import counting
from nbspam.counts.counting import CountTally, Numbering, count_items
from nbspam.counts.ledger import overlaid
from nbspam.counts.table import (
    GRAIN,
    CountTable,
    Loss,
    TableSum,
    add_tables,
    entry_weights,
    loss_of_sum,
    loss_without,
    most_frequent,
    mutual_information,
    negative,
    pruned_table,
    without_empty,
)
from nbspam.settings import LOG_LENGTH, PRESENCE, PRESETS, WEIGHTINGS, TokenSettings
from nbspam.tokens.sparse import RIDER_BITS, Documents, Vocabulary
from nbspam.tokens.tokenizer import tokenize
from support import check_bound, count_batch, examples, message, plain, words_of
from support import items_of_words as items

TEXT = st.text("abcd   ", max_size=20)
DOCUMENTS = st.lists(st.tuples(TEXT, st.sampled_from(["ham", "spam", "work"])), max_size=12)


def table(documents, weighting=PRESENCE):
    return count_batch(*batch_of(documents), weighting)


def batch_of(documents):
    messages = [message(body=text) for text, _ in documents]
    return tokenize(messages, TokenSettings()), [label for _, label in documents]


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


LOG = 1 + np.log(2)


@pytest.mark.parametrize(("weighting", "text", "a", "b"), [
    (settings.COUNTS, "a a b", 2, 1), (PRESENCE, "a a b", 1, 1),
    (settings.UNIT_LENGTH, "a a a a b b b", 0.8, 0.6),
    # 1 + ln 2 and 1, over the root of the sum of their squares.
    (LOG_LENGTH, "a a b", LOG / np.hypot(LOG, 1), 1 / np.hypot(LOG, 1)),
])  # fmt: skip
def test_a_table_worked_by_hand(weighting, text, a, b):
    n_docs, rows = plain(table([(text, "ham"), ("b", "spam"), ("c", "spam")], weighting))

    grain = 2**-13 if weighting == LOG_LENGTH else 2**-30
    assert n_docs == {"ham": 1, "spam": 2}
    assert rows["a"] == ({"ham": pytest.approx(a, abs=grain), "spam": 0}, 1)
    assert rows["b"] == ({"ham": pytest.approx(b, abs=grain), "spam": 1}, 2)
    assert rows["c"] == ({"ham": 0, "spam": 1}, 1)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@given(documents=DOCUMENTS, cuts=st.lists(st.integers(0, 12), max_size=4))
@examples(40)
def test_parts_add_up_to_the_whole_to_the_bit(weighting, documents, cuts):
    edges = sorted({0, len(documents), *(min(cut, len(documents)) for cut in cuts)})
    parts, total, tally = [], TableSum(), CountTally(weighting)
    for turn, (start, end) in enumerate(pairwise(edges)):
        parts.append(table(documents[start:end], weighting))
        total.add(parts[-1])
        tally.add(*batch_of(documents[start:end]), turn)

    whole = plain(table(documents, weighting))
    for found in (total.total(), tally.table(), add_tables(parts[::-1])):
        assert plain(found) == whole


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


@given(DOCUMENTS, DOCUMENTS, st.sets(st.integers(0, 5)))
@examples(40)
def test_known_tokens_are_those_that_a_message_is_counted_for(counted, asked, forgotten):
    known = table(counted)
    known.document_frequency[[j for j in forgotten if j < len(known.vocabulary)]] = 0
    keys = zip(known.vocabulary.keys.tolist(), known.document_frequency, strict=True)
    met = {key: column for column, (key, n) in enumerate(keys) if n > 0}
    documents = batch_of(asked)[0].documents
    given = known.in_columns(documents)

    assert given.n_docs == documents.n_docs
    for row in range(documents.n_docs):
        mine, theirs = (
            zip(one.tokens.tolist(), one.times().tolist(), strict=True)
            for one in (given.one(row), documents.one(row))
        )
        assert [*mine] == [(met[key], n) for key, n in theirs if key in met]
    # Documents over columns, some of which may be those that no message is counted for.
    columns = known.without_unlearned(known.vocabulary.in_columns(documents))
    assert columns.tokens.tolist() == given.tokens.tolist()
    assert columns.columns.tolist() == given.columns.tolist()


@given(DOCUMENTS, DOCUMENTS)
@examples(40)
def test_subtracting_a_part_leaves_the_rest(documents, more):
    rest, part = table(documents), table(more)

    left = overlaid(add_tables([rest, part]), negative(part))
    assert plain(without_empty(left)) == plain(rest)
    most = rest._replace(feature_count=np.full_like(rest.feature_count, 2**32 - 1, np.uint32))
    assert (overlaid(most, rest).feature_count >= 2**32 - 1).all()


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
    X = np.array([[word in text.split() for word in words_of(counted)] for text, _ in documents])
    labels = [label for _, label in documents]

    theirs = mutual_info_classif(X, labels, discrete_features=True)
    assert mutual_information(counted) == pytest.approx(theirs, abs=1e-12)


# Hashes spread anywhere, and some side by side, which real ones never are.
HASHES = st.integers(0, 2**44 - 1) | st.integers(2**30, 2**30 + 40)
BATCHES = st.lists(st.sets(HASHES.map(lambda n: n << RIDER_BITS), max_size=60), max_size=8)


@given(BATCHES, st.booleans())
@examples(100)
def test_keys_are_numbered_in_the_order_they_are_met(batches, is_crowded):
    numbering = Numbering(first_bits=3)
    if is_crowded:
        numbering._secret = np.uint64(1)  # neighbours stay neighbours, and share slots
    expected = {}
    for keys in map(sorted, batches):
        numbers = numbering.numbers(np.array(keys, np.uint64))
        for key in keys:
            expected.setdefault(key, len(expected))
        assert numbers.tolist() == [expected[key] for key in keys]
        assert len(numbering) == len(expected) <= len(numbering._slots) / 2


def test_two_tables_put_the_same_keys_in_different_slots():
    keys = np.arange(100, dtype=np.uint64) << np.uint64(RIDER_BITS)
    one, two = Numbering(first_bits=3), Numbering(first_bits=3)

    assert one.numbers(keys).tolist() == two.numbers(keys).tolist()
    assert not np.array_equal(one._slots, two._slots)


def test_a_tally_is_full_once_it_has_more_tokens_than_its_limit(monkeypatch):
    monkeypatch.setattr(counting, "MAX_TOKENS", 3)
    tally = CountTally(PRESENCE)
    for n, (text, is_full) in enumerate([("a b", False), ("b c", False), ("d", True)]):
        tally.add(tokenize([message(body=text)], TokenSettings()), ["ham"], n)
        assert tally.is_full == is_full


MAIL = PRESETS["mail"]
BOTH = ("ham", "spam")
# Streams of tables: of each, how many ham and spam messages have each of a few tokens.
OF_BOTH = st.tuples(st.integers(0, 3), st.integers(0, 3))
TABLES = st.lists(st.dictionaries(st.integers(1, 12), OF_BOTH, max_size=9), max_size=30)


def table_of(counts):
    keys = sorted(key for key, had in counts.items() if any(had))
    vocabulary = Vocabulary(
        np.array(keys, np.uint64) << np.uint64(23),
        np.empty(0, np.uint8),
        np.zeros(len(keys) + 1, np.int64),
        np.zeros(len(keys), np.uint8),
    )
    rows = np.array([counts[key] for key in keys], np.float64).reshape(-1, 2)
    return CountTable(BOTH, np.full(2, 9.0), vocabulary, rows, rows.sum(axis=1).astype(np.int64))


@given(TABLES, TABLES, st.integers(1, 14))
@examples(60)
def test_no_token_lacks_more_than_the_bound_of_a_sum_or_a_merge(first, second, limit):
    parts, exact = [], TableSum()
    for stream in (first, second):
        bounded, whole, alone = TableSum(limit), TableSum(100), TableSum()
        for table in map(table_of, stream):
            for each in (bounded, whole, alone, exact):
                each.add(table)
            held = [table for parts in bounded._levels for table in parts]
            assert sum(len(table.vocabulary) for table in held) <= 2 * limit
        parts.append(bounded.total())
        assert len(parts[-1].vocabulary) <= limit
        check_bound(parts[-1], alone.total())
        # A limit that is never reached changes nothing.
        assert whole.total().loss is None
        assert str(whole.total()) == str(alone.total())

    check_bound(add_tables(parts), exact.total())


def test_what_tokens_lack_worked_by_hand():
    once = table_of({1: (5, 0), 2: (0, 2), 3: (1, 0)}).forgetting(np.array([0]))
    again = add_tables([once, table_of({2: (0, 1), 4: (1, 0)})])

    assert once.loss.of_others == 2
    assert (again.vocabulary.keys >> np.uint64(23)).tolist() == [1, 2, 4]
    assert again.document_frequency.tolist() == [5, 1, 1]
    assert again.loss.of_each.tolist() == [0, 2, 2]  # token 2 really lacks 2, token 4 nothing
    assert again.loss.n_exact == 1

    one, two = Loss(np.array([0, 2]), 3), Loss(np.array([1]), 4)
    total = loss_of_sum([(2, one), (1, two), (1, None)], np.array([0, 1, 1, 2]), 3)
    # Token 0 was only in the first table, 1 in both, and 2 only in the one that is exact.
    assert total.of_each.tolist() == [0 + 4, 2 + 1, 3 + 4]
    assert total.of_others == 7

    # A forgotten token may have had what it lacked, too.
    loss, frequency, left = Loss(np.array([0, 3, 1]), 3), np.array([9, 2, 9]), np.array([0, 2])
    assert loss_without(loss, frequency, left).of_others == 5
    assert loss_without(None, np.array([9, 0, 9]), left) is None


def test_the_most_frequent_stay_then_the_newest_then_the_largest_keys():
    frequency = np.array([3, 1, 1, 1, 1, 7])

    assert most_frequent(frequency, 2).tolist() == [0, 5]
    assert most_frequent(frequency, 4).tolist() == [0, 3, 4, 5]
    days = np.array([0, 8, 9, 8, 8, 0], np.uint16)
    assert most_frequent(frequency, 4, days).tolist() == [0, 2, 4, 5]


@pytest.mark.parametrize("jobs", [1, 2])
def test_training_with_a_limit_keeps_its_bound(jobs, monkeypatch):
    monkeypatch.setattr(counting, "MAX_TOKENS", 50)
    few, given = settings.Bounds(max_tokens=60), items(range(300))
    exact = count_items(given, MAIL, jobs)
    bounded = count_items([*given, *given[:40]], MAIL, jobs, few)
    assert len(exact.table.vocabulary) > 100
    assert len(bounded.table.vocabulary) <= 60
    assert bounded.table.loss.of_others > 0
    check_bound(bounded.table, exact.table)

    # A message that is moved to another class does not break it.
    moved = [*given, *items(range(40), "ham")]
    exact, bounded = count_items(moved, MAIL), count_items(moved, MAIL, jobs, few)
    assert bounded.table.class_count.tolist() == exact.table.class_count.tolist()
    check_bound(bounded.table, exact.table)


def test_a_model_that_drops_its_rarest_tokens_says_so(monkeypatch):
    monkeypatch.setattr(library, "MAX_MODEL_BYTES", 59 * 40)
    classifier = learn_items(items(range(300)), MAIL).classifier

    assert len(classifier.table.vocabulary) == 40
    assert classifier.table.loss.of_others > 0
    assert classifier.table.loss.n_exact == 40  # they were there all the time
