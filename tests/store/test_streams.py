"""Sorted streams of tokens: their sum is that of dictionaries, and takes memory for one block."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nbspam.classifier import training
from nbspam.counts.table import CountTable, Loss, add_tables, most_frequent
from nbspam.settings import PRESETS
from nbspam.store import assembly
from nbspam.store.assembly import SortedTokens, blocks, loaded_table, merged_runs, spooled
from nbspam.tokens.sparse import Vocabulary
from nbspam.tokens.tokenizer import groups_of
from support import examples

# Keys, the number in each class, the rank of the text, the day.
TOKENS = st.dictionaries(
    st.integers(0, 40), st.tuples(*map(st.integers, (-1, 0, 0, 0), (3, 3, 9, 9))), max_size=30
)
RUNS = st.lists(TOKENS, min_size=1, max_size=9)


def run(tokens, number=0, lost=None):
    """Return a run; the text of each token says its key, the run's number and the rank."""
    rows = sorted(tokens.items())
    keys = np.array([key << 40 for key, _ in rows], np.uint64)
    texts = [b"%d of %d, %d" % (key, number, row[2]) for key, row in rows]
    offsets = np.cumsum([0, *map(len, texts)])
    blob = np.frombuffer(b"".join(texts), np.uint8)
    counts = np.array([row[:2] for _, row in rows], np.float64).reshape(-1, 2)
    loss = None if lost is None else Loss(np.full(len(rows), lost // 2), lost)
    table = CountTable(
        ("a", "b"),
        counts.sum(axis=0) + 20,
        Vocabulary(keys, blob, offsets, groups_of(keys)),
        counts,
        counts.sum(axis=1).astype(np.int64),
        loss,
    )
    # No two texts of a token have the same rank.
    ranks = np.array([10 * row[2] + number for _, row in rows], np.int64)
    return SortedTokens(table, ranks, np.array([row[3] for _, row in rows], np.uint16))


def plain(whole):
    words = whole.table.vocabulary
    texts = [words.text(j) for j in range(len(words))]
    rows = zip(texts, whole.table.feature_count.tolist(), whole.last_seen.tolist(), strict=True)
    return dict(zip((words.keys >> np.uint64(40)).tolist(), rows, strict=True))


@examples(200)
@given(RUNS, st.integers(1, 12), st.integers(2, 4))
@example([{1: (1, 0, rank, 0)} for rank in (0, 9, 5)], 12, 2)  # two are added first
def test_a_sum_of_runs_is_that_of_dictionaries(runs, block, at_once):
    expected = {}
    together = defaultdict(list)
    for number, tokens in enumerate(runs):
        for key, (a, b, rank, day) in tokens.items():
            together[key].append((10 * rank + number, f"{key} of {number}, {rank}", a, b, day))
    for key, rows in together.items():
        a, b = sum(row[2] for row in rows), sum(row[3] for row in rows)
        if a + b > 0:
            counts = [max(a, 0), max(b, 0)]
            expected[key] = (min(rows)[1], counts, max(row[4] for row in rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assembly, "BLOCK", block)
        patch.setattr(assembly, "AT_ONCE", at_once)
        whole = merged_runs([run(tokens, number) for number, tokens in enumerate(runs)])

    assert plain(whole) == expected
    assert whole.is_mapped
    keys = whole.table.vocabulary.keys
    assert (keys[1:] > keys[:-1]).all()
    class_count = sum(run(tokens).table.class_count for tokens in runs)
    assert whole.table.class_count.tolist() == class_count.tolist()


@examples(100)
@given(RUNS, st.integers(1, 12))
def test_no_block_has_more_rows_than_it_may_have(runs, size):
    given = [run(tokens, number) for number, tokens in enumerate(runs)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assembly, "BLOCK", size)
        cuts = assembly._cuts(given)
        parts = list(blocks(given))

    ends = [np.searchsorted(each.table.vocabulary.keys, cuts) for each in given]
    total = np.sum(ends, axis=0)
    bounds = [0, *total.tolist(), sum(len(each.ranks) for each in given)]
    assert max(np.diff(bounds)) <= max(size, 2 * len(given))
    assert len(parts) == len(cuts) + 1


@examples(100)
@given(RUNS, st.lists(st.none() | st.integers(1, 9), min_size=9, max_size=9), st.integers(1, 9))
def test_what_runs_have_forgotten_adds_up_as_in_memory(runs, lost, block):
    runs = [{k: (abs(r[0]) + 1, *r[1:]) for k, r in tokens.items()} for tokens in runs]
    given = [run(tokens, n, lost[n]) for n, tokens in enumerate(runs)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assembly, "BLOCK", block)
        patch.setattr(assembly, "AT_ONCE", 3)
        found = merged_runs(given).table

    assert equal_losses(found, add_tables([each.table for each in given]))


def equal_losses(found, expected):
    """Return whether two tables have forgotten the same."""
    if found.loss is None or expected.loss is None:
        return found.loss is expected.loss
    same = found.loss.of_each.tolist() == expected.loss.of_each.tolist()
    return same and found.loss.of_others == expected.loss.of_others


@examples(100)
@given(TOKENS, st.integers(1, 30), st.none() | st.integers(1, 5), st.integers(1, 9))
@example(dict.fromkeys(range(4), (1, 1, 0, 0)), 3, None, 9)  # one too many
def test_what_a_model_has_room_for_is_what_derive_keeps(tokens, room, lost, block):
    tokens = {key: (abs(row[0]) + 1, *row[1:]) for key, row in tokens.items()}
    settings, n_bytes = PRESETS["mail"], 35 + 2 * 12
    whole = run(tokens, 0, lost)
    columns = np.flatnonzero(whole.table.document_frequency > 1)
    expected = whole.table
    if len(columns) < len(expected.vocabulary):
        expected = expected.forgetting(columns)
    if len(columns) > room:
        seen = whole.last_seen[columns]
        expected = expected.forgetting(most_frequent(expected.document_frequency, room, seen))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assembly, "BLOCK", block)
        patch.setattr(training, "MAX_BYTES", room * n_bytes)
        table, last_seen = loaded_table(spooled([whole]), settings, columns)

    kept = np.isin(whole.table.vocabulary.keys, expected.vocabulary.keys)
    assert plain(SortedTokens(table, last_seen, last_seen)) == plain(
        SortedTokens(expected, whole.ranks[kept], whole.last_seen[kept])
    )
    assert equal_losses(table, expected)
