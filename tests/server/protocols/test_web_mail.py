"""The page's mail without a network: lists, messages, lessons, answers to attacks."""

import asyncio
import re

import pytest

from http_requests import parsed
from mailboxes import boxes, key_of, put, written
from markup import Page
from nbspam.server.page.app import WebConnection
from page_requests import FORM, asked, items, shown, talk, tell
from scripted import Client, desk

# ---- what is shown ----


def test_the_list_shows_the_newest_first_with_verdict_reasons_and_buttons(tmp_path):
    put(tmp_path / "box", 1)
    put(tmp_path / "box", 2, written(2, "cheap pills"))
    put(tmp_path / "box", 3, written(3, "perhaps"))
    _, [(_, _, text)] = talk(tmp_path, asked("GET", "/"))

    assert items(text) == [
        "number 3 3@a.example 1970-01-01 00:16 unsure (14.5 % spam) pi\\x1bll +2.5 Spam Ham",
        "number 2 2@a.example 1970-01-01 00:16 spam (90 % spam) pi\\x1bll +2.5 Spam Ham",
        "number 1 1@a.example 1970-01-01 00:16 ham (15.3 % spam) pi\\x1bll +2.5 Spam Ham",
    ]
    assert Page(text).within("h1") == ["Mail"]
    assert "3 of 3 messages." in Page(text).text


def test_the_list_is_searched_and_ordered(tmp_path):
    for query, subjects in (
        ("order=unsure", ["number 3", "number 1", "number 2"]),
        ("verdict=spam", ["number 2"]),
        ("words=NUMBER+2", ["number 2"]),
        ("words=3%40a", ["number 3"]),
        ("verdict=ham&words=2", []),
        ("start=2", ["number 1"]),
        ("start=x&order=%00&verdict=%3Cb%3E", ["number 3", "number 2", "number 1"]),
    ):
        put(tmp_path / "box", 1)
        put(tmp_path / "box", 2, written(2, "pills"))
        put(tmp_path / "box", 3, written(3, "perhaps"))
        page = shown(tmp_path, f"/?{query}")

        links = [text for text in page.within("a") if text.startswith("number")]
        assert links == subjects
        assert subjects or "No message matches." in page.text


def test_a_mailbox_without_mail_says_so(tmp_path):
    put(tmp_path / "box", 1).unlink()

    assert "No mail has come in yet." in shown(tmp_path, "/").text


@pytest.mark.parametrize(
    ("n_new", "words"),
    [(1, "One message has no verdict yet; it is judged"), (2, "2 messages have no verdict yet;")],
)
def test_the_list_says_how_many_messages_wait_for_a_verdict(tmp_path, monkeypatch, n_new, words):
    monkeypatch.setattr("nbspam.server.page.reviewer._AT_ONCE", 3)
    for number in range(3 + n_new):
        put(tmp_path / "box", number)
    assert words in shown(tmp_path, "/").text


def test_the_servers_page_says_which_verdicts_it_counts(tmp_path):
    put(tmp_path / "box", 1)
    text = shown(tmp_path, "/server").text
    assert "Messages judged for mail programs" in text
    assert "Messages judged for the page alone are counted under Over time, not here." in text


def test_long_lists_have_pages(tmp_path, monkeypatch):
    monkeypatch.setattr("nbspam.server.page.app.PAGE_SIZE", 2)
    for number in range(5):
        put(tmp_path / "box", number)
    _, [(_, _, first), (_, _, middle), (_, _, last)] = talk(
        tmp_path, *[asked("GET", f"/?words=number&start={start}") for start in (0, 2, 4)]
    )

    assert "5 of 5 messages, here 3 to 4." in Page(middle).text
    ways = [re.findall('rel="([a-z]+)"', text) for text in (first, middle, last)]
    assert ways == [["next"], ["prev", "next"], ["prev"]]


def test_one_message_is_shown_with_its_evidence_and_as_text_only(tmp_path):
    put(tmp_path / "box", 1, written(1, "<script>document.title = 1</script> pills \u202e"))
    _, [(status, _, text)] = talk(tmp_path, asked("GET", f"/message?key={key_of(1)}"))

    page = Page(text)
    assert status == 200
    assert page.within("h1") == ["number 1"]
    assert "spam (90 % spam)" in page.text
    assert "the constant, before any evidence−0.50" in page.text
    assert "<script>document.title" not in text
    assert "\u202e" not in text


def test_a_message_that_is_not_there_is_not_found(tmp_path):
    for key in ("", "gone", "../m", "%2e%2e%2fm", "%ff%00", "#x", "a" * 5000):
        put(tmp_path / "box", 1)
        _, [(status, _, text)] = talk(tmp_path, asked("GET", f"/message?key={key}"))

        assert (status, text) == (404, "not there any more; go back, and open the list again\n")


def test_hostile_heads_are_text(tmp_path):
    hostile = '"><script>document.title = 1</script><img src=x onerror=alert(1)>\u202e'
    head = f"From: {hostile}\nSubject: {hostile}\n\npills\n"
    put(tmp_path / "box", 1, head.encode())
    _, [(_, _, text)] = talk(tmp_path, asked("GET", "/"))

    assert text.count("<script") == 1  # that of the keys
    assert "<img" not in text
    assert "\u202e" not in text
    assert "&lt;script&gt;" in text


# ---- lessons ----


def test_a_click_teaches_and_undo_takes_it_back(tmp_path):
    put(tmp_path / "box", 1)
    at, answers = talk(
        tmp_path,
        asked("GET", "/"),
        tell(spam=key_of(1)),
        asked("GET", "/"),
        tell(undo="1"),
        asked("GET", "/"),
    )

    before, told, between, undone, after = answers
    place = told[1]["location"].partition("#")[2]
    assert (told[0], told[1]["location"]) == (303, f"/#{place}")
    assert f'<li id="{place}"' in before[2]
    assert items(between[2])[0].endswith("you said spam Undo Ham")
    assert "Learned as spam: number 1 just now Undo" in Page(between[2]).text
    assert "Learned as spam: number 1 — nbspam: mail" in Page(between[2]).within("title")
    assert (undone[0], undone[1]["location"]) == (303, f"/#{place}")
    assert "you said" not in after[2]
    assert "Learned" not in after[2]
    assert at.teacher.known == {}
    assert at.tally.total("lesson learned") == 1
    assert at.tally.total("lesson unlearned") == 1


def test_a_lesson_leads_to_a_page_of_ours_and_nowhere_else(tmp_path):
    for form, leads in (
        ({"back": "order=unsure&words=a+b"}, "/?words=a+b&order=unsure#"),
        ({"back": "x=\r\nSet-Cookie: a=b"}, "/#"),
        ({"back": "words=%0d%0aSet-Cookie:+a"}, "/?words=Set-Cookie%3A+a#"),
        ({"next": "m0123456789ab"}, "/#m0123456789ab"),
        ({"next": "\r\nSet-Cookie: a=b"}, "/#"),
        ({"next": "//evil.example"}, "/#"),
        ({"page": "1.M1.host"}, "/message?key=1.M1.host"),
        ({"page": "\r\n//evil.example"}, "/message?key=%0D%0A%2F%2Fevil.example"),
    ):
        put(tmp_path / "box", 1)
        _, [(status, headers, _)] = talk(tmp_path, tell(ham=key_of(1), **form))

        assert status == 303
        assert headers["location"].startswith(leads.lower())
        assert "set-cookie" not in headers


def test_forms_that_we_did_not_make_teach_nothing(tmp_path):
    for form, status in (
        ({"spam": "gone"}, 404),
        ({"ham": "../m"}, 404),
        ({"undo": "7"}, 404),
        ({"undo": "-1"}, 400),
        ({"undo": "9" * 30}, 400),
        ({"undo": "\N{SUPERSCRIPT TWO}"}, 400),
        ({}, 400),
        ({"unsure": "1.M1.host"}, 400),
    ):
        put(tmp_path / "box", 1)
        at, [(found, _, text)] = talk(tmp_path, tell(**form))

        assert found == status
        assert text.count("\n") == 1
        assert at.teacher.known == {}


def test_nobody_else_can_teach_with_our_session(tmp_path):
    for form, lines in (
        ({"form": "x", "spam": "1.M1.host"}, ()),
        ({"spam": "1.M1.host"}, ()),
        ({"form": FORM, "spam": "1.M1.host"}, ("Origin: http://evil.example",)),
        ({"form": FORM, "spam": "1.M1.host"}, ("Sec-Fetch-Site: cross-site",)),
    ):
        put(tmp_path / "box", 1)
        at, [(status, _, _)] = talk(tmp_path, asked("POST", "/tell", form, *lines))

        assert status == 403
        assert at.teacher.known == {}
        assert at.tally.total("trouble forbidden") == 1


def test_a_lesson_that_cannot_be_learned_is_told(tmp_path):
    put(tmp_path / "box", 1, written(1, "failure"))
    at, [(status, _, text)] = talk(tmp_path, tell(spam=key_of(1)))

    assert (status, text) == (500, "[Errno 28] No space left on device\n")
    assert at.tally.total("trouble failed") == 1


def test_a_lesson_whose_browser_has_gone_is_learned_and_noted(tmp_path):
    put(tmp_path / "box", 1)

    async def converse():
        at = desk(mailboxes=boxes(tmp_path))
        client = await Client(WebConnection, at).send(tell(spam=key_of(1)))
        client.connection.connection_lost(None)
        async with asyncio.timeout(60):
            while (await at.reviewer.run(boxes(tmp_path).box("").database.last_told)) is None:
                await asyncio.sleep(0.005)
        at.reviewer.end()
        return at.teacher.known, client.answer

    assert asyncio.run(converse()) == ({written(1): "spam"}, b"")


def test_without_a_mailbox_there_is_no_mail(tmp_path):
    async def converse():
        client = Client(WebConnection, desk())
        await client.send(asked("GET", "/message?key=1"), tell(spam="1"), asked("GET", "/"))
        return parsed(client.answer)

    message, lesson, page = asyncio.run(converse())
    assert (message[0], lesson[0], page[0]) == (404, 404, 200)
    assert "--review MAILBOX" in Page(page[2].decode()).text


def test_a_message_that_is_learned_and_cannot_be_moved_is_told(tmp_path):
    put(tmp_path / "box", 1)
    (tmp_path / "box" / ".Spam").symlink_to(tmp_path)
    at, [(status, _, text)] = talk(tmp_path, tell(spam=key_of(1)), moves=True)

    assert (status, at.teacher.known) == (503, {written(1): "spam"})
    assert text.startswith("learned as spam, but not moved: ")
    assert text.endswith(".Spam: not moved there, as it is elsewhere by a link; remove it\n")
