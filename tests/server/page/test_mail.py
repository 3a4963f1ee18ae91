"""The page's mail: addresses, lists, messages, lessons, and forms that are none of ours."""

import re
from html import unescape
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maildirs import key_of, put, written
from markup import Page
from nbspam.server.page import pages
from nbspam.server.page.database import MessageFilter
from nbspam.server.page.pages import ROW_ID, View, row_id, view_of

HOSTILE = '"><script>document.title = 1</script><img src=x onerror=alert(1)>\u202e'


# ---- addresses ----

TEXTS = st.text(max_size=300)


def read(query):
    return view_of(dict(parse_qsl(query, keep_blank_values=True)))


def test_an_address_says_only_what_is_not_usual():
    for view, address in (
        (View(), "/"),
        (View(start=5), "/?start=5"),
        (View(start=500).at(500 - 1000), "/"),  # none begins before the first message
        (View(MessageFilter("a&b 山", "spam")), "/?words=a%26b+%E5%B1%B1&verdict=spam"),
        (View(MessageFilter(order="unsure"), 2000), "/?order=unsure&start=2000"),
    ):
        assert view.address == address
        assert read(view.query) == view
    for start in ("-1", "1e3", "\N{ARABIC-INDIC DIGIT ONE}", "9" * 20, " 1"):
        assert view_of({"start": start}).start == 0


@given(st.dictionaries(st.sampled_from(["words", "verdict", "order", "start", "x"]), TEXTS), TEXTS)
def test_any_fields_become_a_view_whose_addresses_say_the_same(fields, key):
    view = view_of(fields)
    path, _, query = view.of(key).partition("?")

    assert read(view.query) == read(query) == view
    assert view.query.isascii()
    assert view.query.isprintable()
    assert 0 <= view.start < 10**9
    assert (path, dict(parse_qsl(query, keep_blank_values=True))["key"]) == ("/message", key)


@given(TEXTS, TEXTS)
def test_places_of_messages_are_told_apart_and_known_again(key, other):
    assert ROW_ID.fullmatch(row_id(key))
    assert (row_id(key) == row_id(other)) == (key == other)
    for text in ("", "m", "m123", "n97b8bdb906c4", "m97B8bdb906c4", "m97b8bdb906c\n"):
        assert not ROW_ID.fullmatch(text)


# ---- what is shown ----


def test_the_list_shows_the_newest_first_with_verdict_reasons_and_buttons_or_is_searched(
    page, box
):
    put(box, 1)
    put(box, 2, written(2, "cheap pills"))
    put(box, 3, written(3, "perhaps"))
    verdicts = {3: "unsure (14.5 % spam)", 2: "spam (90 % spam)", 1: "ham (15.3 % spam)"}
    assert page.rows() == [
        f"number {n} {n}@a.example in INBOX 1970-01-01 00:16 {verdict} pi\\x1bll +2.5 Spam Ham"
        for n, verdict in verdicts.items()
    ]
    assert page.shown().within("h1") == ["Mail"]
    assert "3 of 3 messages." in page.shown().text
    for query, numbers in (
        ("order=unsure", [3, 1, 2]), ("verdict=spam", [2]), ("words=NUMBER+2", [2]),
        ("words=3%40a", [3]), ("verdict=ham&words=2", []),
        ("start=x&order=%00&verdict=%3Cb%3E", [3, 2, 1]),
    ):  # fmt: skip
        found = page.shown(f"/?{query}")

        links = [text for text in found.within("a") if text.startswith("number")]
        assert links == [f"number {number}" for number in numbers]
        assert numbers or "No message matches." in found.text


def test_one_message_is_counted_in_the_singular_and_has_no_time_in_an_mbox(page, box):
    box.write_bytes(b"From a@a.example Thu Jan  1 00:00:00 2026\n" + written(1))
    assert "1 of 1 message." in page.shown().text
    assert page.rows()[0].startswith("number 1 1@a.example ham (15.3 % spam)")


@pytest.mark.parametrize(
    ("n_new", "query", "words"),
    [
        (1, "", "One message has no verdict yet; it is being judged."),
        (2, "", "2 messages have no verdict yet; they are being judged."),
        (1, "?words=number", "Not everything is searched yet: one message has no verdict yet;"),
        (2, "?verdict=ham", "Not everything is searched yet: 2 messages have no verdict yet;"),
        (2, "?words=none", "Nothing matches so far."),
    ],
)  # fmt: skip
def test_the_list_says_how_many_messages_wait(page, box, monkeypatch, n_new, query, words):
    monkeypatch.setattr("nbspam.server.page.reviewer._AT_ONCE", 3)
    for number in range(3 + n_new):
        put(box, number)
    assert words in page.shown(f"/{query}").text


def test_without_mail_the_list_says_so_and_counts_which_verdicts_they_are_of(page, box):
    put(box, 1).unlink()
    text = page.shown("/server").text
    assert "No mail has come in yet." in page.shown().text
    assert "Messages judged for mail programs" in text
    assert "Messages judged for the page alone are counted under Over time, not here." in text


def test_long_lists_have_pages(page, box, monkeypatch):
    monkeypatch.setattr("nbspam.server.page.routes.PAGE_SIZE", 2)
    monkeypatch.setitem(pages._templates().globals, "size", 2)
    for number in range(5):
        put(box, number)
    first, middle, last = (page.get(f"/?words=number&start={start}").text for start in (0, 2, 4))

    assert "5 of 5 messages, here 3 to 4." in Page(middle).text
    ways = [re.findall('rel="([a-z]+)" href="([^"]+)"', text) for text in (first, middle, last)]
    back, on = ("prev", "/?words=number"), ("next", "/?words=number&amp;start=4")
    assert ways == [
        [("next", "/?words=number&amp;start=2")], [back, on],
        [("prev", "/?words=number&amp;start=2")],
    ]  # fmt: skip
    beyond = page.get("/?words=number&start=6")
    assert (beyond.status_code, beyond.headers["location"]) == (303, "/?words=number")


def test_one_message_is_shown_with_its_evidence_and_hostile_mail_as_text_only(page, box):
    put(box, 2, written(2, "<script>document.title = 1</script> pills \u202e"))
    text = page.get(f"/message?key={key_of(2)}").text
    found = Page(text)
    assert found.within("h1") == ["number 2"]
    assert "spam (90 % spam)" in found.text
    assert "the constant, before any evidence−0.50" in found.text
    assert "<script>document.title" not in text
    assert "\u202e" not in text

    put(box, 1, f"From: {HOSTILE}\nSubject: {HOSTILE}\n\npills\n".encode())
    for path in ("/", f"/message?key={key_of(1)}"):
        assert "<img" not in page.get(path).text
    page.tell(spam=key_of(1))
    page.tell(undo="1")
    text = page.get("/").text
    assert "<img" not in text
    assert "Taken back: &#34;&gt;&lt;script&gt;" in text
    assert text.count("<script") == 1  # that of the keys
    assert "\u202e" not in text


def test_a_message_that_could_not_be_judged_is_shown_and_one_that_has_gone_leads_back(page, box):
    put(box, 1, written(1, "failure"))
    text = page.shown(f"/message?key={key_of(1)}").text
    assert "number 1 1@a.example" in text
    assert "It could not be judged." in text
    answer = page.get("/message?key=gone&words=a")
    assert answer.status_code == 404
    assert 'href="/?words=a">Back' in answer.text
    assert "This message is not there any more" in Page(answer.text).text
    assert "Back to the mail" in Page(answer.text).within("a")


def test_a_lesson_is_news_for_an_hour_and_a_missing_subject_is_named_so(page, box, database):
    put(box, 1, b"From: a@a.example\n\npills\n")
    page.get("/")
    page.tell(spam=key_of(1))
    assert "Learned as spam: (no subject) just now" in page.shown().text
    database.run("UPDATE told SET at = at - 3600")
    assert "Learned" not in page.shown().text
    page.tell(undo="1")
    assert "Taken back: (no subject)" in page.shown().text


def test_a_text_from_right_to_left_turns_nothing_around_it(page, box):
    put(box, 1, "From: أحمد <a@a.example>\nSubject: اجتماع 3\n\nغدا\n".encode())
    for address in ("/", f"/message?key={key_of(1)}"):
        text = page.get(address).text
        assert "<bdi>اجتماع 3</bdi>" in text
        assert "<bdi>أحمد &lt;a@a.example&gt;</bdi>" in text
    assert '<p dir="auto"><b dir="ltr">Text:</b> غدا' in text  # our title does not decide


# ---- lessons ----


def test_a_click_teaches_and_undo_takes_it_back_and_says_so(page, box):
    put(box, 1)
    before = page.get("/").text
    told = page.tell(spam=key_of(1))
    between = page.get("/").text
    undone = page.tell(undo="1")
    after, later = page.shown().text, page.shown().text
    again = page.tell(undo="1", back="doubtful=1")

    place = told.headers["location"].partition("#")[2]
    assert (told.status_code, told.headers["location"]) == (303, f"/#{place}")
    assert f'<li id="{place}"' in before
    assert Page(between).text.count("number 1 1@a.example") == 1
    assert "you said spam Undo Ham" in Page(between).text
    assert "Learned as spam: number 1 just now Undo" in Page(between).text
    assert "Learned as spam: number 1 — nbspam: mail" in Page(between).within("title")
    assert (undone.status_code, undone.headers["location"]) == (303, f"/#{place}")
    assert "Taken back: number 1" in after
    assert not any(words in later for words in ("Taken back", "you said", "Learned"))
    assert again.status_code == 404
    assert "There is nothing to take back: that was done before" in Page(again.text).text
    assert "Back to the doubtful messages" in Page(again.text).within("a")
    assert page.desk.teacher.known == {}
    assert page.desk.tally.total("lesson learned") == 1
    assert page.desk.tally.total("lesson unlearned") == 1


@pytest.mark.parametrize(
    ("form", "leads"),
    [
        ({"back": "order=unsure&words=a+b"}, "/?words=a+b&order=unsure#"),
        ({"back": "x=\r\nSet-Cookie: a=b"}, "/#"),
        ({"back": "words=%0d%0aSet-Cookie:+a"}, "/?words=Set-Cookie%3A+a#"),
        ({"next": "m0123456789ab"}, "/#m0123456789ab"), ({"next": "\r\nSet-Cookie: a=b"}, "/#"),
        ({"next": "//evil.example"}, "/#"), ({"page": "1.M1.host"}, "/message?key=1.M1.host"),
        ({"page": "\r\n//evil.example"}, "/message?key=%0D%0A%2F%2Fevil.example"),
    ],
)  # fmt: skip
def test_a_lesson_leads_to_a_page_of_ours_and_nowhere_else(page, box, form, leads):
    put(box, 1)
    answer = page.tell(ham=key_of(1), **form)

    assert answer.status_code == 303
    assert answer.headers["location"].startswith(leads)
    assert "set-cookie" not in answer.headers
    page.cookies.clear()  # the session has ended
    late = page.post("/tell", data={"ham": key_of(1), **form})
    (wanted,) = re.findall('name="next" value="([^"]*)"', late.text)
    assert unescape(wanted) == leads.partition("#")[0]


def test_a_message_that_is_none_of_the_newest_shows_what_was_said(page, box, monkeypatch):
    monkeypatch.setattr("nbspam.server.page.mailbox.MOST_SHOWN", 1)
    put(box, 1)
    put(box, 2)
    answer = page.tell(spam=key_of(1), page=key_of(1))
    assert "you said spam" in page.shown(answer.headers["location"]).text


def test_a_lesson_that_cannot_be_learned_or_not_be_moved_is_told(page, box, database):
    put(box, 2, written(2, "failure"))
    answer = page.tell(spam=key_of(2))
    assert answer.status_code == 500
    assert Page(answer.text).within("h1") == ["That did not work"]
    assert "This failed: [Errno 28] No space left on device" in Page(answer.text).text
    assert page.desk.tally.total("trouble failed") == 1
    assert database.last_told() is None

    put(box, 1)
    page.desk.reviewer._moves = True
    (box / ".Spam").symlink_to(box.parent)
    answer = page.tell(spam=key_of(1))

    assert (answer.status_code, page.desk.teacher.known) == (503, {written(1): "spam"})
    text = Page(answer.text).text
    assert "The message was learned as spam, but not moved: " in text
    assert ".Spam: not moved there, as it is elsewhere by a link; remove it" in text
