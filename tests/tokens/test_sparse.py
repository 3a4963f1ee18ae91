"""Documents and vocabularies against plain definitions: dicts of counts, and of texts."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.tokens import sparse

COUNTS = st.dictionaries(st.integers(0, 12), st.integers(1, 300), max_size=6)
DICTS = st.lists(COUNTS, max_size=6)
TOKENS = sorted(range(0, 130, 10))  # the keys of the tokens that COUNTS numbers


def documents_of(dicts, tokens=TOKENS, with_counts=True):
    """Return documents, given as {index of a token: count}."""
    entries = [entry for each in dicts for entry in sorted(each.items())]
    columns, counts = np.array(entries, int).reshape(-1, 2).T
    offsets = sparse.offsets_of([len(each) for each in dicts])
    counts = counts.astype(np.uint16) if with_counts else None
    return sparse.Documents(np.array(tokens, np.uint64), offsets, columns.astype(np.uint8), counts)


def plain(documents):
    """Return documents as {token: count}, after a check that they are well-formed."""
    offsets = documents.offsets.tolist()
    assert offsets[0] == 0
    assert offsets[-1] == len(documents.columns) == len(documents.times())
    assert documents.n_docs == len(offsets) - 1
    found = []
    for start, end in pairwise(offsets):
        columns = documents.columns[start:end]
        assert (np.diff(columns.astype(np.int64)) > 0).all()
        tokens = documents.tokens[columns].tolist()
        found.append(dict(zip(tokens, documents.times()[start:end].tolist(), strict=True)))
    return found


def in_rest(documents):
    """Return the tokens of each document that only the rest of its text has."""
    of_entry = documents.are_in_rest()
    assert len(of_entry) == len(documents.columns)
    bounds = pairwise(documents.offsets.tolist())
    names = documents.tokens[documents.columns]
    return [names[i:j][of_entry[i:j]].tolist() for i, j in bounds]


@given(DICTS, st.data())
def test_tokens_of_the_rest_stay_so_in_documents_made_of_others(dicts, data):
    documents = documents_of(dicts)
    mask = data.draw(
        st.lists(st.booleans(), min_size=len(documents.columns), max_size=len(documents.columns))
    )
    assert in_rest(documents) == [[] for _ in dicts]
    marked = documents._replace(in_rest=np.array(mask, np.bool_))
    rows = in_rest(marked)
    chosen = data.draw(st.lists(st.integers(0, len(dicts) - 1)) if dicts else st.just([]))
    start = data.draw(st.integers(0, len(dicts)))

    assert in_rest(marked.take(np.array(chosen, np.int64))) == [rows[row] for row in chosen]
    assert in_rest(marked.part(start, len(dicts))) == rows[start:]
    assert [in_rest(marked.one(row)) for row in range(len(dicts))] == [[row] for row in rows]
    assert in_rest(marked.without_unused()) == rows
    fewer = marked.only(np.arange(len(TOKENS)) % 2 == 0)
    assert in_rest(fewer) == [[token for token in row if token % 20 == 0] for row in rows]
    assert in_rest(sparse.stacked([documents, marked])) == [*in_rest(documents), *rows]
    assert in_rest(sparse.united([marked, documents])) == [*rows, *in_rest(documents)]


def keyed(dicts):
    return [{TOKENS[column]: n for column, n in each.items()} for each in dicts]


@given(DICTS)
def test_documents_hold_what_they_are_made_of(dicts):
    documents, once = documents_of(dicts), documents_of(dicts, with_counts=False)

    assert plain(documents) == keyed(dicts)
    assert documents.rows().tolist() == [d for d, each in enumerate(dicts) for _ in each]
    assert plain(once) == [dict.fromkeys(each, 1) for each in keyed(dicts)]
    fewer = documents.without_unused()
    assert plain(fewer) == keyed(dicts)
    assert fewer.tokens.tolist() == [TOKENS[column] for column in sorted(set().union(*dicts))]


@given(DICTS, st.booleans(), st.data())
def test_documents_are_taken_by_number_in_any_order_or_by_a_mask(dicts, with_counts, data):
    documents = documents_of(dicts, with_counts=with_counts)
    chosen = data.draw(st.lists(st.integers(0, len(dicts) - 1)) if dicts else st.just([]))
    taken = documents.take(np.array(chosen, np.int64))
    assert plain(taken) == [plain(documents)[row] for row in chosen]
    assert taken.columns.dtype == documents.columns.dtype
    assert (taken.counts is None) == (not with_counts)

    mask = np.array([row in chosen for row in range(len(dicts))], np.bool_)
    assert plain(documents.take(mask)) == [plain(documents)[row] for row in sorted({*chosen})]


@given(DICTS, st.data())
def test_a_part_is_a_slice_and_one_is_a_document_over_its_own_tokens(dicts, data):
    documents = documents_of(dicts)
    start = data.draw(st.integers(0, len(dicts)))
    end = data.draw(st.integers(start, len(dicts)))

    assert plain(documents.part(start, end)) == keyed(dicts)[start:end]
    for row, each in enumerate(keyed(dicts)):
        one = documents.one(row)
        assert plain(one) == [each]
        assert one.tokens.tolist() == sorted(each)


@given(DICTS, st.dictionaries(st.integers(0, 12), st.integers(0, 99)))
def test_on_other_names_tokens_without_one_are_dropped(dicts, names):
    numbers = np.array([names.get(j, -1) for j in range(len(TOKENS))])
    renamed = documents_of(dicts).renumbered(numbers)

    assert renamed.tokens.tolist() == [names[column] for column in sorted(names)]
    # Two tokens may get one name: entries, not names, are counted.
    offsets = renamed.offsets.tolist()
    for row, each in enumerate(dicts):
        own = slice(offsets[row], offsets[row + 1])
        expected = [(names[c], each[c]) for c in sorted(each) if c in names]
        tokens = renamed.tokens[renamed.columns[own]].tolist()
        assert list(zip(tokens, renamed.times()[own].tolist(), strict=True)) == expected


@given(DICTS, st.integers(0, 400))
def test_over_all_columns_the_columns_are_the_tokens(dicts, more):
    places = list(range(0, 2 * len(TOKENS), 2))
    documents = documents_of(dicts, places)
    columns = np.arange(places[-1] + 1 + more)

    whole = documents.over_all(columns)
    assert whole.tokens is columns
    assert plain(whole) == plain(documents)
    assert whole.columns.dtype == np.min_scalar_type(len(columns))


@given(st.lists(DICTS, min_size=1, max_size=4), st.booleans())
def test_stacked_documents_follow_one_another(parts, with_counts):
    given = [documents_of(part, with_counts=with_counts) for part in parts]
    expected = [each for part in given for each in plain(part)]
    assert plain(sparse.stacked(given)) == expected
    none = sparse.no_documents(given[0].tokens, with_counts)
    assert plain(none) == []
    assert plain(sparse.stacked([none, *given, none])) == expected


@given(st.lists(st.tuples(DICTS, st.integers(0, 300)), min_size=1, max_size=4))
def test_united_documents_are_over_the_union_of_tokens_ascending(parts):
    """Every part has other keys, of which some are those of another part too."""
    tokens = [[key + shift for key in TOKENS] for _, shift in parts]
    given = [documents_of(part, own) for (part, _), own in zip(parts, tokens, strict=True)]
    together = sparse.united(given)
    assert together.tokens.tolist() == sorted(set().union(*tokens))
    assert plain(together) == [each for part in given for each in plain(part)]


def test_what_is_gathered_in_pieces_is_what_numpy_gathers():
    values = np.random.default_rng(0).random(1000)
    places = np.random.default_rng(1).integers(0, 1000, (1 << 16) + 7).astype(np.uint16)
    assert (sparse.take_in_slices(values, places) == values[places]).all()


@pytest.mark.parametrize(
    ("highest", "kind"), [(0, np.uint8), (255, np.uint8), (256, np.uint16), (1 << 16, np.uint32)]
)
def test_numbers_are_held_in_as_few_bytes_as_hold_the_highest(highest, kind):
    assert sparse.smallest(np.array([0, highest]), highest).dtype == kind


# --- vocabularies ----------------------------------------------------------------------------


SPELT = st.dictionaries(st.integers(0, 30), st.text(max_size=4), max_size=10)


def spread(tokens):
    """Return the tokens with keys whose last bits, where riders go, are 0."""
    return {key << sparse.RIDER_BITS: text for key, text in tokens.items()}


def vocabulary(tokens):
    """Return the vocabulary of {key: text}."""
    texts = [tokens[key].encode() for key in sorted(tokens)]
    return sparse.Vocabulary(
        np.array(sorted(tokens), np.uint64),
        np.frombuffer(b"".join(texts), np.uint8),
        np.append(0, np.cumsum([len(text) for text in texts])).astype(np.int64),
        np.zeros(len(texts), np.uint8),
    )


def spelt(words):
    return {int(key): words.text(j) for j, key in enumerate(words.keys)}


@given(SPELT, st.data())
def test_texts_are_the_same_whether_or_not_they_are_gathered(tokens, data):
    words, keys = vocabulary(tokens), sorted(tokens)
    for _ in range(2):
        chosen = sorted(data.draw(st.sets(st.sampled_from(range(len(words)))))) if keys else []
        words, keys = words.take(np.array(chosen, np.int64)), [keys[j] for j in chosen]
    assert spelt(words) == spelt(words.packed()) == {key: tokens[key] for key in keys}
    assert len(words.packed().blob) == sum(len(tokens[key].encode()) for key in keys)


SPREAD, CROWDED = st.integers(0, 2**64 - 1), st.integers(2**40, 2**40 + 30)


@given(st.lists(SPREAD | CROWDED, unique=True), st.lists(SPREAD | CROWDED))
def test_few_and_many_keys_are_found_however_they_are_spread(known, strangers):
    order = sorted(known)
    keys = np.array([*strangers, *known, 0, 2**64 - 1, *known], np.uint64)
    expected = [order.index(k) if k in known else -1 for k in keys.tolist()]
    for n in (len(keys), len(known)):
        columns = vocabulary(dict.fromkeys(known, "")).columns(keys[:n])
        assert columns.tolist() == expected[:n]


@given(st.lists(SPELT.map(spread), max_size=4))
def test_a_joined_vocabulary_keeps_the_first_text_of_every_key(parts):
    union, columns = sparse.join([vocabulary(part) for part in parts])
    expected = {key: text for part in reversed(parts) for key, text in part.items()}
    assert spelt(union) == expected
    keys = [key for part in parts for key in sorted(part)]
    assert union.keys[columns].tolist() == keys


@given(SPELT, SPELT, st.lists(st.integers(0, 40), max_size=20))
def test_added_tokens_stand_behind_the_others_and_are_found(tokens, others, keys):
    others = {key: text for key, text in others.items() if key not in tokens}
    words = sparse.with_added(vocabulary(tokens), vocabulary(others))

    order = [*sorted(tokens), *sorted(others)]
    assert words.keys.tolist() == order
    assert spelt(words) == tokens | others
    columns = words.columns(np.array(keys, np.uint64)).tolist()
    assert columns == [order.index(k) if k in order else -1 for k in keys]
