import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nbspam.counts.counting import CountTally, Numbering
from nbspam.settings import PRESENCE, TokenSettings
from nbspam.tokens.documents import RIDER_BITS
from nbspam.tokens.tokenizer import tokenize
from support import examples, message

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
