"""How the model is doing, and doubtful messages, on the page without a network."""

import json
import time

import pytest

from mailboxes import key_of, put, written
from markup import Page, rows_of
from nbspam.server.page import doubtful
from nbspam.server.page.doubtful import Doubtful, DoubtfulMessages
from nbspam.server.page.memory import Database, SeenMessage
from nbspam.server.page.pages import PAGE_SIZE
from page_requests import asked, items, shown, talk, tell

DAY = 86_400
HOSTILE = '"><script>document.title = "run"</script>\u202e'


@pytest.fixture
def database(tmp_path):
    return Database(str(tmp_path / "m"))


def note(database, key, days_ago, label="spam", probability=0.95, told=None):
    """Note a verdict, and what a person said of it."""
    arrived = time.time() - days_ago * DAY
    database.note([SeenMessage(key, arrived, 0, "", "", label, probability, (), arrived)])
    if told is not None:
        database.tell(key, told, None, time.time())


# ---- how the model is doing ----


def test_before_there_is_mail_the_page_says_what_to_do(tmp_path):
    put(tmp_path / "box", 1)
    page = shown(tmp_path, "/course")

    assert page.within("h1") == ["How the model is doing"]
    assert "There is nothing to show yet" in page.text
    assert "svg" not in page.tags


def test_ten_seconds_tell_how_many_how_wrong_and_whether_it_gets_better(tmp_path, database):
    put(tmp_path / "box", 1)
    for n in range(100):
        note(database, f"old{n}", 20, told="ham" if n < 20 else None)
        note(database, f"new{n}", 2, told="ham" if n < 1 else None)
    note(database, "unsure", 2, "unsure", 0.5)
    text = shown(tmp_path, "/course").text

    assert "201 on mail of 30 days 200 spam, 1 unsure, 0 ham" in text
    assert "21 of 200, 10.5 %" in text
    assert "Better 1 of 100 were wrong in the last 7 days (1 %), 20 of 100 in the 23" in text
    assert "The difference is more than chance" in text
    assert (
        "Of 100 messages to which it gave 90 to 99 % for spam, 89.5 were spam; by its"
        " probabilities it should have been 95. These were 200 messages." in text
    )


def test_every_picture_has_its_words_and_its_numbers(tmp_path, database):
    put(tmp_path / "box", 1)
    note(database, "a", 1, told="ham")
    note(database, "b", 1, "ham", 0.002)
    _, [(_, _, html)] = talk(tmp_path, asked("GET", "/course"))
    labels = [each.get("aria-label") for tag, each in Page(html).attributes if tag == "svg"]

    assert labels == [
        "Verdicts a day: ham, unsure and spam",
        "Messages you marked a day: confirmed, decided and corrected",
        "Probability of spam, predicted and observed",
    ]
    days = rows_of(html, "Numbers of each day")
    assert (len(days), days[2][1:]) == (31, ["1", "0", "1", "0", "0", "0"])
    assert days[1][1:] == ["0", "0", "0", "1", "0", "0"]
    assert rows_of(html, "All messages of these days")[1:] == [
        ["0 to 1 %", "1", "0.2", "0 (0 to 79.3)", "right, as far as one can tell"],
        ["90 to 99 %", "1", "95", "0 (0 to 79.3)", "too sure of spam"],
    ]
    assert len(rows_of(html, "Messages that you marked")) == 2


def test_who_has_said_nothing_is_not_told_that_all_is_right(tmp_path, database):
    put(tmp_path / "box", 1)
    note(database, "a", 1)
    page = shown(tmp_path, "/course")

    assert "You have not checked any verdict yet." in page.text
    assert "Too early to say" in page.text
    assert "You have marked no message in these days." in page.text


def test_verdicts_that_are_all_unsure_tell_nothing_of_probabilities(tmp_path, database):
    put(tmp_path / "box", 1)
    note(database, "a", 1, "unsure", 0.5)

    assert "no verdicts of ham or spam in these days to compare" in shown(tmp_path, "/course").text


def test_the_list_judges_and_the_course_counts(tmp_path):
    put(tmp_path / "box", 1, written(1, "cheap pills")).touch()  # it comes today
    _, answers = talk(tmp_path, asked("GET", "/"), tell(ham=key_of(1)), asked("GET", "/course"))

    text = Page(answers[2][2]).text
    assert "1 on mail of 30 days 1 spam, 0 unsure, 0 ham" in text
    assert "1 of 1, 100 %" in text


def test_messages_that_the_model_had_learned_before_are_counted_apart(tmp_path):
    put(tmp_path / "box", 1, written(1, "cheap pills, learned before")).touch()
    _, answers = talk(tmp_path, asked("GET", "/"), tell(ham=key_of(1)), asked("GET", "/course"))

    text = Page(answers[2][2]).text
    assert "1 on mail of 30 days 1 spam" in text
    assert "Verdicts on messages that the model had learned before: 1." in text
    assert "no verdicts of ham or spam in these days to compare" in text
    assert "of 1, " not in text


# ---- doubtful messages ----


@pytest.fixture
def found(tmp_path, database, monkeypatch):
    """Return the function that notes that messages were found; nobody looks for others."""
    begun = []
    monkeypatch.setattr(
        "nbspam.server.page.doubtful.Doubting.begin", lambda *some: begun.append(some)
    )

    def keep(*rows, n_ham=7, n_spam=5):
        text = json.dumps(DoubtfulMessages(12, n_ham, n_spam, rows))
        now = time.time()
        of = doubtful._fingerprint([], "")
        database.run(
            "UPDATE doubts SET of = ?, begun = ?, ended = ?, found = ?", of, now - 9, now, text
        )
        return begun

    return keep


def row(number, filed="spam", label="ham", **more):
    reasons = (("pi\x1bll", -2.5),)
    each = Doubtful(key_of(number), f"{number}@a.example", "", filed, label, 0.97, reasons)
    return each._replace(**{"subject": f"number {number}", **more})


def test_the_first_visit_begins_to_look_and_says_so(tmp_path, found, database):
    put(tmp_path / "box", 1)
    text = shown(tmp_path, "/doubtful").text
    assert "Your mail is being searched; this takes" in text

    begun = found()
    assert len(begun) == 1
    assert begun[0][1:] == (str(tmp_path / "box"), begun[0][2])
    assert begun[0][2].path == database.path


def test_messages_are_shown_with_reasons_and_a_button_for_each_class(tmp_path, found):
    put(tmp_path / "box", 1)
    put(tmp_path / "box", 2)
    found(row(2, "ham", "spam"), row(1))
    _, [(_, _, html)] = talk(tmp_path, asked("GET", "/doubtful"))

    assert items(html) == [
        "number 2 2@a.example filed as ham, and without it the model says spam (97 % sure that"
        " it is filed wrongly) pi\\x1bll \N{MINUS SIGN}2.5 Spam Ham, as filed",
        "number 1 1@a.example filed as spam, and without it the model says ham (97 % sure that"
        " it is filed wrongly) pi\\x1bll \N{MINUS SIGN}2.5 Spam, as filed Ham",
    ]
    text = Page(html).text
    assert "12 messages, of which the model has learned 7 as ham and 5 as spam." in text


def test_of_very_many_messages_the_surest_are_shown(tmp_path, found):
    for number in range(PAGE_SIZE + 1):
        put(tmp_path / "box", number)
    found(*map(row, range(PAGE_SIZE + 1)))
    _, [(_, _, html)] = talk(tmp_path, asked("GET", "/doubtful"))

    assert len(items(html)) == PAGE_SIZE
    assert "These are the 1,000 most doubtful of 1,001." in Page(html).text


@pytest.mark.parametrize(("label", "taught"), [("ham", "ham"), ("spam", "spam")])
def test_a_click_teaches_and_settles_and_leads_back(tmp_path, found, database, label, taught):
    put(tmp_path / "box", 1)
    put(tmp_path / "box", 2)
    found(row(1), row(2))
    at, answers = talk(
        tmp_path, tell(**{label: key_of(1), "doubtful": ""}), asked("GET", "/doubtful")
    )

    assert (answers[0][0], answers[0][1]["location"]) == (303, "/doubtful")
    assert at.teacher.known == {written(1): taught}
    assert database.run("SELECT key, label FROM settled") == [(key_of(1), label)]
    assert [each.partition(" 2@")[0] for each in items(answers[1][2])] == ["number 2"]


def test_a_click_in_the_list_settles_nothing(tmp_path, found, database):
    put(tmp_path / "box", 1)
    found(row(1))
    talk(tmp_path, tell(spam=key_of(1)))

    assert database.run("SELECT * FROM settled") == []


def test_a_message_that_has_gone_is_neither_taught_nor_settled(tmp_path, found, database):
    put(tmp_path / "box", 1)
    found(row(9))
    _, [(status, _, _)] = talk(tmp_path, tell(spam=key_of(9), doubtful=""))

    assert status == 404
    assert database.run("SELECT * FROM settled") == []


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"n_ham": 7, "n_spam": 5}, "No message seems filed wrongly."),
        ({"n_ham": 1, "n_spam": 5}, "only from 2 of ham and 2 of spam on"),
    ],
)
def test_nothing_doubtful_is_no_empty_page(tmp_path, found, numbers, words):
    put(tmp_path / "box", 1)
    found(**numbers)

    assert words in shown(tmp_path, "/doubtful").text


def test_what_kept_the_mailbox_from_being_looked_through_is_shown(tmp_path, found, database):
    put(tmp_path / "box", 1)
    found()
    database.run("UPDATE doubts SET problem = ?", "m: not a model <b>")

    assert (
        "Your mail could not be searched: m: not a model <b>" in shown(tmp_path, "/doubtful").text
    )


def test_hostile_words_are_text(tmp_path, found):
    put(tmp_path / "box", 1)
    found(row(1, subject=HOSTILE, sender=HOSTILE, reasons=((HOSTILE, 1.0),)))
    page = shown(tmp_path, "/doubtful")

    assert page.tags.count("script") == 1  # that of the keys
    assert page.text.count('"><script>document.title = "run"</script>\\u202e') == 3
    assert "\u202e" not in page.text


@pytest.mark.parametrize("path", ["/course", "/doubtful"])
def test_a_mailbox_that_cannot_be_read_is_told_in_one_line(tmp_path, path):
    put(tmp_path / "box", 1)
    (tmp_path / "m.review").mkdir()
    _, [(status, _, text)] = talk(tmp_path, asked("GET", path))

    assert status == 500
    assert text.count("\n") == 1
