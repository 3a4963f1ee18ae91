import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nbspam.tokens.sparse import (
    RIDER_BITS,
    Vocabulary,
    empty_vocabulary,
    join,
    with_added,
)

TOKENS = st.dictionaries(st.integers(0, 30), st.text(max_size=4), max_size=10)


def spread(tokens):
    """Return the tokens with keys whose last bits, where riders go, are 0."""
    return {key << RIDER_BITS: text for key, text in tokens.items()}


def vocabulary(tokens):
    """Return the vocabulary of {key: text}."""
    texts = [tokens[key].encode() for key in sorted(tokens)]
    return Vocabulary(
        np.array(sorted(tokens), np.uint64),
        np.frombuffer(b"".join(texts), np.uint8),
        np.append(0, np.cumsum([len(text) for text in texts])).astype(np.int64),
        np.zeros(len(texts), np.uint8),
    )


def spelt(words):
    return {int(key): words.text(j) for j, key in enumerate(words.keys)}


@given(TOKENS, st.data())
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


@given(st.lists(TOKENS.map(spread), max_size=4))
def test_a_joined_vocabulary_keeps_the_first_text_of_every_key(parts):
    union, columns = join([vocabulary(part) for part in parts])

    expected = {key: text for part in reversed(parts) for key, text in part.items()}
    assert spelt(union) == expected
    keys = [key for part in parts for key in sorted(part)]
    assert union.keys[columns].tolist() == keys


@given(TOKENS, TOKENS, st.lists(st.integers(0, 40), max_size=20))
def test_added_tokens_stand_behind_the_others_and_are_found(tokens, others, keys):
    others = {key: text for key, text in others.items() if key not in tokens}
    words = with_added(vocabulary(tokens), vocabulary(others))

    order = [*sorted(tokens), *sorted(others)]
    assert words.keys.tolist() == order
    assert spelt(words) == tokens | others
    columns = words.columns(np.array(keys, np.uint64)).tolist()
    assert columns == [order.index(k) if k in order else -1 for k in keys]


def test_an_empty_vocabulary_knows_nothing():
    assert empty_vocabulary().columns(np.array([1, 2], np.uint64)).tolist() == [-1, -1]
    assert len(empty_vocabulary()) == 0
