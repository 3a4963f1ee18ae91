"""What addresses of lists say, and that nothing else gets into one."""

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.server.page.memory import MessageFilter
from nbspam.server.page.pages import View, is_row_id, row_id, view_of

TEXTS = st.text(max_size=300)


def read(query):
    return view_of(dict(parse_qsl(query, keep_blank_values=True)))


@pytest.mark.parametrize(
    ("view", "address"),
    [
        (View(), "/"),
        (View(start=5), "/?start=5"),
        (View(start=500).at(500 - 1000), "/"),  # none begins before the first message
        (View(MessageFilter("a&b 山", "spam")), "/?words=a%26b+%E5%B1%B1&verdict=spam"),
        (View(MessageFilter(order="unsure"), 2000), "/?order=unsure&start=2000"),
    ],
)
def test_an_address_says_only_what_is_not_usual(view, address):
    assert view.address == address
    assert read(view.query) == view


@given(st.dictionaries(st.sampled_from(["words", "verdict", "order", "start", "x"]), TEXTS), TEXTS)
def test_any_fields_become_a_view_whose_addresses_say_the_same(fields, key):
    view = view_of(fields)
    path, _, query = view.of(key).partition("?")

    assert read(view.query) == read(query) == view
    assert view.query.isascii()
    assert view.query.isprintable()
    assert 0 <= view.start < 10**9
    assert (path, dict(parse_qsl(query, keep_blank_values=True))["key"]) == ("/message", key)


@pytest.mark.parametrize("start", ["-1", "1e3", "\N{ARABIC-INDIC DIGIT ONE}", "9" * 20, " 1"])
def test_what_is_no_number_begins_at_the_first_message(start):
    assert view_of({"start": start}).start == 0


@given(TEXTS, TEXTS)
def test_places_of_messages_are_told_apart_and_known_again(key, other):
    assert is_row_id(row_id(key))
    assert (row_id(key) == row_id(other)) == (key == other)
    for text in ("", "m", "m123", "n97b8bdb906c4", "m97B8bdb906c4", "m97b8bdb906c\n"):
        assert not is_row_id(text)
