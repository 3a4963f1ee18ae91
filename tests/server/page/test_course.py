"""How the model is doing, and doubtful messages, as the page shows them."""

import json
import time

import pytest

from mailboxes import key_of, put, written
from markup import Page, rows_of
from nbspam.server.page import doubtful
from nbspam.server.page.doubtful import Doubtful, DoubtfulMessages
from nbspam.server.page.memory import Database, SeenMessage
from nbspam.server.page.pages import PAGE_SIZE

DAY = 86_400
HOSTILE = '"><script>document.title = "run"</script>\u202e'


@pytest.fixture
def database(tmp_path, box):
    """The notes on a mailbox of one message."""
    put(box, 1)
    return Database(str(tmp_path / "m"))


def note(database, key, days_ago, label="spam", probability=0.95, told=None):
    """Note a verdict, and what a person said of it."""
    arrived = time.time() - days_ago * DAY
    database.note([SeenMessage(key, arrived, 0, "", "", label, probability, (), arrived)])
    if told is not None:
        database.tell(key, told, None, time.time())


# ---- how the model is doing ----


@pytest.mark.usefixtures("database")
def test_before_there_is_mail_the_page_says_what_to_do(page):
    found = page.shown("/course")

    assert found.within("h1") == ["How the model is doing"]
    assert "There is nothing to show yet" in found.text
    assert "svg" not in found.tags


def test_ten_seconds_tell_how_many_how_wrong_and_whether_it_gets_better(page, database):
    for n in range(100):
        note(database, f"old{n}", 20, told="ham" if n < 20 else None)
        note(database, f"new{n}", 2, told="ham" if n < 1 else None)
    note(database, "unsure", 2, "unsure", 0.5)
    text = page.shown("/course").text

    assert "201 on mail of 30 days 200 spam, 1 unsure, 0 ham" in text
    assert "21 of 200, 10.5 %" in text
    assert "Better Wrong in the last 7 days: 1 of 100, 1 %. In the 23 days before: 20 of" in text
    assert "The difference is more than chance" in text
    assert (
        "Of the 200 messages to which it gave 90 to 99 % for spam, 179 were spam; by its"
        " probabilities it should have been 190." in text
    )


def test_few_messages_are_spoken_of_by_their_number(page, database):
    note(database, "a", 1, told="ham")
    assert "The one message to which it gave 90 to 99 % for spam was not spam." in (
        page.shown("/course").text
    )
    note(database, "b", 20)
    note(database, "c", 20)
    text = page.shown("/course").text

    assert "1 of 3 of ham or spam" in text
    assert "7 days: 1 of 1. In the 23 days before: 0 of 2. The difference may be chance." in text
    assert "Of the 3 messages to which it gave 90 to 99 % for spam, 2 were spam; by" in text
    assert "it should have been 2.8." in text  # 3 * .95


def test_every_picture_has_its_words_and_its_numbers(page, database):
    note(database, "a", 1, told="ham")
    note(database, "b", 1, "ham", 0.002)
    html = page.get("/course").text
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
        ["0 to 1 %", "1", "0", "0 (0 to 79.3 %)", "right, as far as one can tell"],
        ["90 to 99 %", "1", "0.95", "0 (0 to 79.3 %)", "too sure of spam"],
    ]
    assert len(rows_of(html, "Messages that you marked")) == 2


def test_who_has_said_nothing_is_not_told_that_all_is_right(page, database):
    note(database, "a", 1)
    text = page.shown("/course").text

    assert "You have not checked any verdict yet." in text
    assert "Too early to say" in text
    assert "You have marked no message in these days." in text


def test_verdicts_that_are_all_unsure_tell_nothing_of_probabilities(page, database):
    note(database, "a", 1, "unsure", 0.5)

    assert "no verdicts of ham or spam in these days to compare" in page.shown("/course").text


def test_the_list_judges_and_the_course_counts(page, box):
    put(box, 1, written(1, "cheap pills")).touch()  # it comes today
    page.shown()
    page.tell(ham=key_of(1))
    text = page.shown("/course").text

    assert "1 on mail of 30 days 1 spam, 0 unsure, 0 ham" in text
    assert "Wrong verdicts 1 of 1 of ham or spam" in text


def test_messages_that_the_model_had_learned_before_are_counted_apart(page, box):
    put(box, 1, written(1, "cheap pills, learned before")).touch()
    page.shown()
    page.tell(ham=key_of(1))
    text = page.shown("/course").text

    assert "1 on mail of 30 days 1 spam" in text
    assert "Verdicts on messages that the model had learned before: 1." in text
    assert "no verdicts of ham or spam in these days to compare" in text
    assert "of 1 of" not in text


# ---- doubtful messages ----


@pytest.fixture
def found(database, monkeypatch):
    """Return the function that notes that messages were found; nobody looks for others."""
    begun = []
    monkeypatch.setattr(
        "nbspam.server.page.doubtful.Doubting.begin", lambda *some: begun.append(some)
    )

    def keep(*rows, n_ham=7, n_spam=5):
        text = json.dumps(DoubtfulMessages(12, n_ham, n_spam, rows))
        now, of = time.time(), doubtful._fingerprint([], "")
        database.run(
            "UPDATE doubts SET of = ?, begun = ?, ended = ?, found = ?", of, now - 9, now, text
        )
        return begun

    return keep


def row(number, filed="spam", label="ham", **more):
    reasons = (("pi\x1bll", -2.5),)
    each = Doubtful(key_of(number), f"{number}@a.example", "", filed, label, 0.97, reasons)
    return each._replace(**{"subject": f"number {number}", **more})


def test_the_first_visit_begins_to_look_and_says_so(page, box, found, database):
    assert "Your mail is being searched; this takes" in page.shown("/doubtful").text
    ((_, mailbox, notes),) = found()

    assert (mailbox, notes.path) == (str(box), database.path)


def test_messages_are_shown_with_reasons_and_a_button_for_each_class(page, box, found):
    put(box, 2)
    found(row(2, "ham", "spam"), row(1))

    assert page.rows("/doubtful") == [
        "number 2 2@a.example filed as ham, and without it the model says spam (97 % sure that"
        " it is filed wrongly) pi\\x1bll \N{MINUS SIGN}2.5 Spam Ham, as filed",
        "number 1 1@a.example filed as spam, and without it the model says ham (97 % sure that"
        " it is filed wrongly) pi\\x1bll \N{MINUS SIGN}2.5 Spam, as filed Ham",
    ]
    text = page.shown("/doubtful").text
    assert "12 messages, of which the model has learned 7 as ham and 5 as spam." in text


def test_of_very_many_messages_the_surest_are_shown(page, box, found):
    for number in range(PAGE_SIZE + 1):
        put(box, number)
    found(*map(row, range(PAGE_SIZE + 1)))

    assert len(page.rows("/doubtful")) == PAGE_SIZE
    assert "These are the 100 most doubtful of 101." in page.shown("/doubtful").text


@pytest.mark.parametrize("label", ["ham", "spam"])
def test_a_click_teaches_and_settles_and_leads_back(page, box, found, database, label):
    put(box, 2)
    found(row(1), row(2))
    answer = page.tell(**{label: key_of(1), "doubtful": ""})

    assert (answer.status_code, answer.headers["location"]) == (303, "/doubtful")
    assert page.desk.teacher.known == {written(1): label}
    assert database.run("SELECT key, label FROM settled") == [(key_of(1), label)]
    assert [each.partition(" 2@")[0] for each in page.rows("/doubtful")] == ["number 2"]


@pytest.mark.parametrize(
    ("form", "status"), [({"spam": key_of(1)}, 303), ({"spam": key_of(9), "doubtful": ""}, 404)]
)
def test_a_click_elsewhere_or_on_a_message_that_has_gone_settles_nothing(
    page, found, database, form, status
):
    found(row(1), row(9))

    assert page.tell(**form).status_code == status
    assert database.run("SELECT * FROM settled") == []


@pytest.mark.parametrize(
    ("n_ham", "words"),
    [(7, "No message seems filed wrongly."), (1, "only from 2 of ham and 2 of spam on")],
)
def test_nothing_doubtful_is_no_empty_page(page, found, n_ham, words):
    found(n_ham=n_ham)

    assert words in page.shown("/doubtful").text


def test_what_kept_the_mailbox_from_being_looked_through_is_shown(page, found, database):
    found()
    database.run("UPDATE doubts SET problem = ?", "m: not a model <b>")

    assert "Your mail could not be searched: m: not a model <b>" in page.shown("/doubtful").text


def test_hostile_words_are_text(page, found):
    found(row(1, subject=HOSTILE, sender=HOSTILE, reasons=((HOSTILE, 1.0),)))
    text = page.shown("/doubtful")

    assert text.tags.count("script") == 1  # that of the keys
    assert text.text.count('"><script>document.title = "run"</script>\\u202e') == 3
    assert "\u202e" not in text.text


@pytest.mark.parametrize("path", ["/course", "/doubtful", "/"])
def test_a_mailbox_that_cannot_be_read_is_told(page, box, tmp_path, path):
    put(box, 1)
    (tmp_path / "m.review").mkdir()
    answer = page.get(path)

    assert answer.status_code == 500
    assert "This failed: " in Page(answer.text).text
    assert "m.review" in answer.text
    assert page.desk.tally.total("trouble failed") == 1
