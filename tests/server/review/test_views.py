"""What addresses of lists say, and that nothing else gets into one."""

from urllib.parse import parse_qsl

from hypothesis import given
from hypothesis import strategies as st

from nbspam.server.page.memory import MessageFilter
from nbspam.server.page.pages import View, is_row_id, row_id, view_of

TEXTS = st.text(max_size=300)


def read(query):
    return view_of(dict(parse_qsl(query, keep_blank_values=True)))


def test_an_address_says_only_what_is_not_usual():
    for view, query in (
        (View(), ""),
        (View(MessageFilter("a&b 山", "spam")), "words=a%26b+%E5%B1%B1&verdict=spam"),
        (View(MessageFilter(order="unsure"), 2000), "order=unsure&start=2000"),
    ):
        assert view.query == query
        assert read(query) == view


@given(st.dictionaries(st.sampled_from(["words", "verdict", "order", "start", "x"]), TEXTS))
def test_any_fields_become_a_view_whose_address_says_the_same(fields):
    view = view_of(fields)

    assert read(view.query) == view
    assert view.query.isascii()
    assert view.query.isprintable()
    assert 0 <= view.start < 10**9


def test_what_is_no_number_begins_at_the_first_message():
    for start in ("-1", "1e3", "\N{ARABIC-INDIC DIGIT ONE}", "9" * 20, " 1"):
        assert view_of({"start": start}).start == 0


def test_no_view_begins_before_the_first_message():
    assert View(start=500).at(500 - 1000).start == 0


@given(TEXTS)
def test_the_address_of_a_message_says_the_view_too(key):
    view = View(MessageFilter("tea", "spam"), 3)
    path, _, query = view.of(key).partition("?")

    assert path == "/message"
    assert dict(parse_qsl(query, keep_blank_values=True))["key"] == key
    assert read(query) == view


def test_a_view_of_everything_is_the_first_page():
    assert View().address == "/"
    assert View(start=5).address == "/?start=5"


@given(TEXTS, TEXTS)
def test_places_of_messages_are_told_apart_and_known_again(key, other):
    assert is_row_id(row_id(key))
    assert (row_id(key) == row_id(other)) == (key == other)


def test_what_is_no_place_is_not_taken_for_one():
    for text in ("", "m", "m123", "n97b8bdb906c4", "m97B8bdb906c4", "m97b8bdb906c\n"):
        assert not is_row_id(text)
