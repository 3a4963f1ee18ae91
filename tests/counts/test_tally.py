import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.counts import numbering
from nbspam.counts.tally import Numbering
from nbspam.tokens.definition import RIDER_BITS

# Hashes spread anywhere, and some side by side, as nobody could have chosen them.
HASHES = st.integers(0, 2**44 - 1) | st.integers(2**30, 2**30 + 40)
BATCHES = st.lists(st.sets(HASHES.map(lambda n: n << RIDER_BITS), max_size=60), max_size=8)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(numbering, "_FIRST_BITS", 3)
    monkeypatch.setattr(numbering, "_GROWTH_BITS", 1)


def check(numbering, batches):
    """Keys get the numbers that a dict would give them, one by one."""
    expected = {}
    for keys in map(sorted, batches):
        numbers = numbering.numbers(np.array(keys, np.uint64))
        for key in keys:
            expected.setdefault(key, len(expected))
        assert numbers.tolist() == [expected[key] for key in keys]
        assert len(numbering) == len(expected)


@given(BATCHES)
def test_keys_are_numbered_in_the_order_they_are_met(batches):
    check(Numbering(), batches)


@given(BATCHES)
def test_keys_that_want_the_same_slots_get_others(batches):
    crowded = Numbering()
    crowded._secret = np.uint64(1)  # neighbours stay neighbours, and share slots
    check(crowded, batches)


def test_the_same_keys_are_not_in_the_same_slots_twice():
    keys = np.arange(100, dtype=np.uint64) << np.uint64(RIDER_BITS)
    one, two = Numbering(), Numbering()

    assert one.numbers(keys).tolist() == two.numbers(keys).tolist()
    assert not np.array_equal(one._slots, two._slots)
