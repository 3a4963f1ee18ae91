"""The order of messages: kept, found in names, or drawn; dates of any shape."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.sources.arrival import arranged, date_of
from nbspam.sources.items import Item

NAMES = ["ham/7/2.txt", "ham/10.txt", "ham/notes", "spam/0001.1999-12-14.x", "spam/0003.txt"]


def items_of(names, series=None):
    return [Item(name, name.split("/")[0], b"", series=series) for name in names]


def one_numbering(n_ham, n_spam):
    """Return files as Enron has them: one numbering goes through both classes."""
    ham = set(random.Random(0).sample(range(n_ham + n_spam), n_ham))
    spam = set(range(n_ham + n_spam)) - ham
    return items_of(
        [f"ham/{n}.txt" for n in sorted(ham)] + [f"spam/{n}.txt" for n in sorted(spam)]
    )


def own_numberings(n_ham, n_spam):
    """Return files as SpamAssassin has them: each class has a numbering of its own."""
    return items_of([f"ham/{n}" for n in range(n_ham)] + [f"spam/{n}" for n in range(n_spam)])


def test_messages_are_ordered_by_the_first_number_of_the_name_or_by_date():
    found, order = arranged(items_of(NAMES), "name")
    assert [item.name for item in found] == [NAMES[row] for row in (3, 0, 4, 1, 2)]
    assert order == "name"
    dates = ["", "Date: 9 Jan 1970 00:00\n", "", "Date: 1 Jan 1970 00:00\n", ""]
    items = [Item(str(n), "ham", f"{date}\nx".encode()) for n, date in enumerate(dates)]
    assert [item.name for item in arranged(items, "date")[0]] == ["0", "3", "4", "1", "2"]


@pytest.mark.parametrize(("n_ham", "n_spam"), [(300, 300), (300, 60), (40, 40)])
def test_folders_go_by_number_if_that_mixes_the_classes(n_ham, n_spam):
    found, order = arranged(one_numbering(n_ham, n_spam))
    assert order == "name"
    assert [int(item.name[:-4].split("/")[1]) for item in found] == list(range(n_ham + n_spam))


@pytest.mark.parametrize(
    "items",
    [
        own_numberings(300, 100),
        own_numberings(4150, 1896),
        items_of([f"{c}/{n}" for c in ("a", "b", "c") for n in range(ord(c) * 100, ord(c) * 101)]),
        items_of([*(f"ham/{c}" for c in "abcdefgh"), *(f"spam/{c}" for c in "stuvwxyz")]),
    ],
    ids=["own numbers", "SpamAssassin", "three classes", "no numbers"],
)
def test_folders_are_shuffled_by_a_seed_if_numbers_do_not_mix_the_classes(items):
    found, order = arranged(items)
    assert order == "shuffled"
    assert found != items
    assert sorted(found) == sorted(items)
    assert found == arranged(items)[0]
    assert found != arranged(items, seed=1)[0]


@pytest.mark.parametrize("order", ["given", "name", "date", "shuffled"])
def test_an_order_that_is_asked_for_is_taken(order):
    assert arranged(one_numbering(9, 9), order)[1] == order


def test_a_series_of_several_classes_and_messages_of_one_keep_their_order():
    for items in (items_of(NAMES, series="index"), items_of(["ham/9", "ham/1"]), []):
        assert arranged(items) == (items, "given")


def test_series_of_one_class_each_have_no_common_order():
    """As with --ham ham.mbox --spam spam.mbox."""
    boxes = [items_of([f"{c}/{c}.mbox#{n}" for n in range(50)], c) for c in ("ham", "spam")]
    longer = items_of([f"ham/ham.mbox#{n}" for n in range(500)], "ham")
    assert arranged(boxes[0] + boxes[1])[1] == "name"
    assert arranged(longer + boxes[1])[1] == "shuffled"


# --- dates -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("date", "seconds"),
    [
        ("Thu, 01 Jan 1970 00:00:00 +0000", 0), ("1 Jan 1970 01:00 +0100", 0),
        ("Thu,  1 Jan 70 00:00:09 -0001", 69), ("Thu, 1 Jan 1970 00:00:60", 59),
        ("Thu, 1 Jan 1970 00:00:07 -0000", 7), ("Thu, 1 Jan 1970 00:00:00 EST", 5 * 3600),
        ("\r\n Thu, 1 Jan 1970\r\n\t00:00:01 GMT (a comment)", 1),
        ("Sat, 1 Jan 00 00:00:00 GMT", 946684800),
        ("Fri, 31 Dec 9999 23:59:59 +0000", 253402300799),
        ("Sat, 1 Jan 10000 00:00:00 +0000", None),
        (f"Sat, 1 Jan {'9' * 100} 00:00:00 +0000", None),
        ("Thu, 32 Jan 1970 00:00:00 +0000", None), ("Thu, 1 Jan 1970 24:00:00 +0000", None),
        ("Thu, 1 Foo 1970 00:00:00 +0000", None), ("yesterday", None),
        ("\r\n\r\nDate: Thu, 01 Jan 1970 00:00:00 +0000", None),  # in the body
        (" " * 60000, None),
    ],
)  # fmt: skip
def test_a_date_is_seconds_or_none(date, seconds):
    assert date_of(f"Subject: x\r\ndate: {date}\r\n\r\nbody".encode()) == seconds


PIECES = st.sampled_from(
    [
        "Thu", ",", "Jan", "1", "32", "1970", "99999", "9" * 50, ":", "00:00:00", "12.30.5", "am",
        "+0100", "-9999999", "+" + "9" * 100, "GMT", "(", ")", "-", "\n ", "\0", "\xe9", "٣", "²",
    ]
)  # fmt: skip


@given(st.lists(st.tuples(PIECES, st.sampled_from(["", " "])), max_size=12), st.binary())
def test_no_arrangement_of_the_pieces_of_dates_and_no_bytes_raise(pieces, junk):
    text = "".join(piece + space for piece, space in pieces)
    for data in (b"Date: " + text.encode(), b"Date: 1 Jan " + junk, junk):
        assert isinstance(date_of(data), float | None)
