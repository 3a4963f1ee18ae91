"""What is forgotten while counting, and the bound on it, against exact counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.classifier import training as library
from nbspam.classifier.training import learn_items
from nbspam.counts.counting import CountingLimits, count_items
from nbspam.counts.table import (
    CountTable,
    Loss,
    TableSum,
    add_tables,
    loss_of_sum,
    loss_without,
    most_frequent,
)
from nbspam.errors import UsageError
from nbspam.settings import PRESETS, Bounds, SettingsChoices, settings_for
from nbspam.sources.items import Item
from nbspam.tokens.documents import Vocabulary
from support import examples

MAIL = PRESETS["mail"]
BOTH = ("ham", "spam")
# Streams of tables: of each, how many ham and spam messages have each of a few tokens.
COUNTS = st.tuples(st.integers(0, 3), st.integers(0, 3))
TABLES = st.lists(st.dictionaries(st.integers(1, 12), COUNTS, max_size=9), max_size=30)


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


def check_bound(table, exact):
    """Assert that the counts lack what the loss says at most, and never have too much."""
    had = dict(zip(exact.vocabulary.keys.tolist(), exact.document_frequency.tolist(), strict=True))
    lacks = [0] * len(table.vocabulary) if table.loss is None else table.loss.of_each.tolist()
    for key, n, lack in zip(
        table.vocabulary.keys.tolist(), table.document_frequency.tolist(), lacks, strict=True
    ):
        assert n <= had.pop(key) <= n + lack
    assert max(had.values(), default=0) <= (0 if table.loss is None else table.loss.of_others)


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


def test_a_token_that_comes_again_lacks_what_was_forgotten():
    once = table_of({1: (5, 0), 2: (0, 2), 3: (1, 0)}).limited(1)  # 2 and 3 are forgotten
    again = add_tables([once, table_of({2: (0, 1), 4: (1, 0)})])

    assert once.loss.of_others == 2
    assert (again.vocabulary.keys >> np.uint64(23)).tolist() == [1, 2, 4]
    assert again.document_frequency.tolist() == [5, 1, 1]
    assert again.loss.of_each.tolist() == [0, 2, 2]  # token 2 really lacks 2, token 4 nothing
    assert again.loss.n_exact == 1


def test_losses_add_up_where_two_tables_have_forgotten():
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


def items(n, twice=()):
    words = np.random.default_rng(0).zipf(1.3, (n, 8))
    bodies = [b" ".join(b"w%d" % word for word in own) for own in words]
    mails = [
        (f"m{k}", ("ham", "spam")[k % 2], b"Message-ID: <%d@x>\n\n%s\n" % (k, body))
        for k, body in enumerate(bodies)
    ]
    return [Item(*mail) for mail in [*mails, *(mails[k] for k in twice)]]


@pytest.mark.parametrize("jobs", [1, 2])
def test_training_with_a_limit_keeps_its_bound(jobs):
    limits, few = CountingLimits(tokens=50), Bounds(max_tokens=60)
    exact = count_items(items(300), MAIL, jobs, limits)
    bounded = count_items(items(300, twice=range(40)), MAIL, jobs, limits, few)
    assert len(exact.table.vocabulary) > 100
    assert len(bounded.table.vocabulary) <= 60
    assert bounded.table.loss.of_others > 0
    check_bound(bounded.table, exact.table)

    # A message that is moved to another class does not break it.
    moved = [*items(300), *(item._replace(label="ham") for item in items(300)[:40])]
    exact, bounded = count_items(moved, MAIL), count_items(moved, MAIL, jobs, limits, few)
    assert bounded.table.class_count.tolist() == exact.table.class_count.tolist()
    check_bound(bounded.table, exact.table)


def test_a_model_that_drops_its_rarest_tokens_says_so(monkeypatch):
    monkeypatch.setattr(library, "MAX_BYTES", 59 * 40)
    classifier = learn_items(items(300), MAIL).classifier

    assert len(classifier.table.vocabulary) == 40
    assert classifier.table.loss.of_others > 0
    assert classifier.table.loss.n_exact == 40  # they were there all the time


def test_models_that_need_all_messages_at_once_refuse_bounds():
    settings, given = settings_for(iter(items(10)), SettingsChoices(model="tan"))

    with pytest.raises(UsageError, match="--model tan needs everything at once"):
        learn_items(given, settings, bounds=Bounds(max_tokens=10))
