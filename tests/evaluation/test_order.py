"""The order of messages: by name or date, whatever the names and dates are."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.evaluation.order import arrival, date_of

NAMES = ["ham/2.txt", "ham/10.txt", "ham/notes", "spam/0001.1999-12-14.x", "spam/0003.txt"]


def test_names_are_ordered_by_the_first_number_of_the_file():
    assert arrival("name", NAMES, np.zeros(5)).tolist() == [3, 0, 4, 1, 2]


def test_messages_without_a_date_follow_the_one_before():
    dates = [None, 9.0, None, 1.0, None]

    assert arrival("date", NAMES, np.zeros(5), dates).tolist() == [0, 3, 4, 1, 2]


def test_the_given_order_is_kept_unless_messages_are_sorted_by_class():
    mixed, sorted_by_class = np.array([0, 1, 0, 1, 1]), np.array([0, 0, 0, 1, 1])

    assert arrival(None, NAMES, mixed).tolist() == [0, 1, 2, 3, 4]
    assert arrival("given", NAMES, sorted_by_class).tolist() == [0, 1, 2, 3, 4]
    assert arrival(None, NAMES, sorted_by_class).tolist() == [3, 0, 4, 1, 2]


@pytest.mark.parametrize(
    ("date", "seconds"),
    [
        ("Thu, 01 Jan 1970 00:00:00 +0000", 0),
        ("1 Jan 1970 01:00 +0100", 0),
        ("Thu,  1 Jan 70 00:00:09 -0001", 69),
        ("Thu, 1 Jan 1970 00:00:60", 59),
        ("Thu, 1 Jan 1970 00:00:07 -0000", 7),
        ("Thu, 1 Jan 1970 00:00:00 EST", 5 * 3600),
        ("\r\n Thu, 1 Jan 1970\r\n\t00:00:01 GMT (a comment)", 1),
        ("Sat, 1 Jan 00 00:00:00 GMT", 946684800),
        ("Fri, 31 Dec 9999 23:59:59 +0000", 253402300799),
        ("Sat, 1 Jan 10000 00:00:00 +0000", None),
        (f"Sat, 1 Jan {'9' * 100} 00:00:00 +0000", None),
        ("Thu, 32 Jan 1970 00:00:00 +0000", None),
        ("Thu, 1 Jan 1970 24:00:00 +0000", None),
        ("Thu, 1 Foo 1970 00:00:00 +0000", None),
        ("yesterday", None),
        ("", None),
        (" " * 60000, None),
    ],
)
def test_a_date_is_seconds_or_none(date, seconds):
    assert date_of(f"Subject: x\r\ndate: {date}\r\n\r\nbody".encode()) == seconds


def test_a_date_in_the_body_does_not_count():
    assert date_of(b"Subject: x\n\nDate: Thu, 01 Jan 1970 00:00:00 +0000\n") is None


PIECES = st.sampled_from(
    [
        *(
            "Thu",
            ",",
            "Jan",
            "1",
            "32",
            "1970",
            "99999",
            "9" * 50,
            ":",
            "00:00:00",
            "12.30.5",
            "am",
        ),
        *(
            "+0100",
            "-9999999",
            "+" + "9" * 100,
            "GMT",
            "(",
            ")",
            "-",
            "\n ",
            "\0",
            "\xe9",
            "٣",
            "²",
        ),
    ]
)


@given(st.lists(st.tuples(PIECES, st.sampled_from(["", " "])), max_size=12))
def test_no_arrangement_of_the_pieces_of_dates_raises(pieces):
    text = "".join(piece + space for piece, space in pieces)

    assert isinstance(date_of(b"Date: " + text.encode("utf-8")), float | None)


@given(st.binary())
def test_no_bytes_raise(junk):
    date_of(b"Date: 1 Jan " + junk)
    date_of(junk)


@pytest.mark.parametrize(
    "piece", [b"(", b" ", b"-", b"1", b"Date: ", b"\n ", b":", b"a,", b"\r\n"]
)
def test_no_long_date_takes_long(piece):
    start = time.perf_counter()
    date_of(b"Date: " + piece * 1_000_000)
    assert time.perf_counter() - start < 1
