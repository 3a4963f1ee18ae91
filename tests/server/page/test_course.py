"""How the model is doing: days, corrections, ranges of probability, chance, and the page of it."""

import time
from datetime import date, datetime, timedelta
from threading import Event

import pytest

from maildirs import key_of, put, written
from markup import Page, rows_of
from nbspam.server.page import database as stored
from nbspam.server.page.course import DAYS, LATELY, Course, Period, Range, course
from nbspam.server.page.database import SeenMessage
from serving import PATIENCE

TODAY = date(2026, 3, 30)


@pytest.fixture
def berlin(monkeypatch):
    """A clock that was put forward on 29 March 2026, at 2 in the morning."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def at(days_ago=0, hour=12, minute=0):
    day = TODAY - timedelta(days_ago)
    return datetime(day.year, day.month, day.day, hour, minute).timestamp()


def note(database, key, arrived, label="spam", probability=0.95, **told):
    """Note a message; told: what was said, when, and what the model had learned before."""
    database.note([SeenMessage(key, arrived, 0, "", "", label, probability, (), arrived)])
    if told:
        database.tell(key, told["told"], told.get("before"), told.get("at", arrived))


def days(database):
    """Return the numbers of the days on which there was something, by days ago."""
    found = course(database, TODAY).days
    return {(TODAY - day.date).days: day[1:] for day in found if any(day[1:])}


# ---- days ----


def test_verdicts_count_on_the_day_on_which_messages_arrived(database, berlin):
    found = course(database, TODAY)
    assert found.is_empty
    assert [found.days[0].date, found.days[-1].date] == [TODAY - timedelta(DAYS - 1), TODAY]
    assert (found.ranges, found.told, found.trend) == ((), (), 0)

    for key, arrived, label in (
        ("a", at(1, 0, 0), "ham"),
        ("b", at(1, 23, 59), "spam"),  # of a day of 23 hours
        ("c", at(0, 0, 0), "unsure"), ("d", at(0, 23, 59), "spam"),
        ("e", at(-3), "spam"),  # its clock is wrong
        ("f", at(DAYS - 1, 0, 0), "ham"), ("g", at(DAYS, 23, 59), "ham"),
    ):  # fmt: skip
        note(database, key, arrived, label)
    note(database, "h", at(1), "unjudged", 0.5, told="spam")
    expected = {DAYS - 1: (1, 0, 0, 0, 0, 0), 1: (1, 0, 1, 0, 0, 0), 0: (0, 1, 2, 0, 0, 0)}
    assert days(database) == expected
    database.judged_since(0.0, 0.0, set())  # all have left the mailbox
    assert days(database) == expected


def test_what_was_said_last_and_not_undone_counts_once_on_the_day_on_which_it_was_said(
    database, berlin
):
    note(database, "a", at(40), "spam", told="ham", at=at(2))  # an old message
    note(database, "b", at(5), "ham", 0.1, told="ham", at=at(2))
    note(database, "c", at(5), "unsure", 0.5, told="spam", at=at(1))
    first = {5: (1, 1, 0, 0, 0, 0), 2: (0, 0, 0, 1, 0, 1), 1: (0, 0, 0, 0, 1, 0)}
    assert days(database) == first

    database.tell("b", "spam", "ham", at(1))
    assert days(database) == {**first, 2: (0, 0, 0, 0, 0, 1), 1: (0, 0, 0, 0, 1, 1)}
    database.undo(database.last_told().number, at(0))
    assert days(database) == first


# ---- ranges ----


def test_a_range_says_how_many_are_spam(database, berlin):
    for n, probability in enumerate([0.9, 0.92, 0.96, 0.989999]):
        note(database, f"a{n}", at(1), "spam", probability)
    note(database, "b", at(1), "spam", 0.94, told="ham")
    note(database, "c", at(1), "spam", 1.0)
    note(database, "d", at(1), "ham", 0.0)
    note(database, "e", at(1), "unsure", 0.6)  # who leaves it alone says nothing
    note(database, "f", at(1), "unsure", 0.6, told="ham")

    found = course(database, TODAY)
    low, middle, nineties, sure = found.ranges
    assert low == Range(0.0, 0.01, 1, 0.0, 0)
    assert (nineties[:3], nineties.spam) == ((0.9, 0.99, 5), 4)
    assert nineties.mean == pytest.approx((0.9 + 0.92 + 0.96 + 0.989999 + 0.94) / 5)
    assert sure == Range(0.99, 1.0, 1, 1.0, 1)
    assert middle == Range(0.5, 0.9, 1, 0.6, 0)
    # What was told stands alone too.
    assert [each[2:] for each in found.told] == [(1, 0.6, 0), (1, 0.94, 0)]


def test_the_range_to_tell_of_is_one_of_probable_spam_if_there_is_any(database, berlin):
    def typical(*probabilities):
        for probability in probabilities:
            key = str(len(database.run("SELECT key FROM seen")))
            note(database, key, at(1), "spam" if probability > 0.5 else "ham", probability)
        return course(database, TODAY).typical[:2]

    note(database, "told", at(1), "ham", 0.001, told="ham")
    assert typical(0.001, 0.001, 0.001) == (0.0, 0.01)
    assert typical(0.6) == (0.5, 0.9)
    assert typical(0.95, 0.95, 0.995) == (0.9, 0.99)


def test_messages_that_the_model_had_learned_before_prove_nothing(database, berlin):
    note(database, "a", at(1), "spam", 0.95, told="ham", before="spam")
    known = SeenMessage("b", at(1), 0, "", "", "spam", 0.95, (), at(1), is_known=True)
    database.note([known, known._replace(key="c", arrived=at(DAYS))])

    found = course(database, TODAY)
    assert (found.ranges, found.told, found.both, found.n_known) == ((), (), Period(0, 0), 2)
    assert found.days[-2][1:] == (0, 0, 2, 0, 0, 1)
    # A message that only its user has taught counts, however often it was told.
    note(database, "d", at(1), "spam", 0.95, told="spam")
    database.tell("d", "ham", "spam", at(1))
    found = course(database, TODAY)
    assert ([(each.n, each.spam) for each in found.told], found.n_known) == ([(1, 0)], 2)


def test_the_interval_of_a_range_is_wilsons_and_a_mean_outside_it_is_no_chance():
    # By hand, with z² = 3.8416: (.9 + .019208 ± 1.96 sqrt(.0009 + .00009604)) / 1.038416
    low, high = Range(0.5, 0.9, 100, 0.7, 90).interval
    assert (low, high) == (pytest.approx(0.82563, abs=1e-5), pytest.approx(0.94477, abs=1e-5))
    for mean, surplus in ((0.8, 1), (0.83, 0), (0.94, 0), (0.96, -1)):
        assert Range(0.5, 0.99, 100, mean, 90).surplus == surplus


# ---- better or worse ----


def test_a_trend_is_told_only_where_it_is_no_chance():
    for earlier, lately, expected in (
        ((1000, 100), (300, 3), -1), ((1000, 10), (300, 30), 1), ((1000, 10), (300, 3), 0),
        ((20, 1), (5, 1), 0), ((0, 0), (300, 30), 0), ((300, 30), (0, 0), 0),
        # Newcombe's table II, (a): 56 of 70 and 48 of 80 differ by .0524 to .3339, so 0 is
        # outside; with 51 of 70 the interval begins below 0.
        ((80, 48), (70, 56), 1), ((70, 56), (80, 48), -1), ((80, 48), (70, 51), 0),
    ):  # fmt: skip
        assert Course((), (), (), Period(*earlier), Period(*lately)).trend == expected


def test_verdicts_after_the_last_that_was_looked_at_are_not_compared(database, berlin):
    note(database, "a", at(LATELY), "spam", told="ham")
    note(database, "b", at(LATELY), "spam")
    note(database, "c", at(LATELY - 1), "spam")
    note(database, "d", at(2), "spam", told="ham", at=at(2))
    note(database, "e", at(2), "unsure", 0.5)
    note(database, "f", at(1), "spam")
    note(database, "b", at(0), "spam")  # judged again, in an mbox into which mail has come

    found = course(database, TODAY)
    assert (found.earlier, found.lately, found.both) == (Period(2, 1), Period(2, 1), Period(4, 2))


def test_no_row_makes_the_database_look_through_all_others(database, monkeypatch):
    rows = [
        SeenMessage(f"{n}", at(n % 100), 0, "a@b.example", "about", "spam", 0.95, (), 0.0)
        for n in range(10_000)
    ]
    database.note(rows)
    for n in range(0, 10_000, 100):
        database.tell(f"{n}", "ham", None, at(n % 100))
    connected, thousands = stored._connection, []

    def counting(path):
        connection = connected(path)
        connection.set_progress_handler(lambda: thousands.append(1), 1000)
        return connection

    monkeypatch.setattr(stored, "_connection", counting)
    found = course(database, TODAY)

    assert sum(each.n for each in found.ranges) == DAYS * 100
    assert len(thousands) < 2000  # of SQLite's steps; a look for each row takes 100 times as many


# ---- the page ----


def seen(database, key, days_ago, *verdict, told=None):
    """Note a message of these days; told: what a person says of it now."""
    more = {"told": told, "at": time.time()} if told else {}
    note(database, key, time.time() - days_ago * 86_400, *verdict, **more)


def shown(page, box):
    """Return the text of the page; the mailbox has a message that is too old to be counted."""
    put(box, 1)
    return page.shown("/course").text


def test_before_there_is_mail_or_while_its_server_is_silent_the_page_says_what_to_do(
    page, reviewer, box
):
    put(box, 1)
    silent = Event()
    waiting = reviewer._thread.submit(silent.wait, PATIENCE)
    found = page.shown("/course")
    assert not waiting.done()
    silent.set()
    assert found.within("h1") == ["How the model is doing"]
    assert "There is nothing to show yet" in found.text
    assert "svg" not in found.tags


def test_ten_seconds_tell_how_many_how_wrong_and_whether_it_gets_better(page, box, database):
    for n in range(100):
        seen(database, f"old{n}", 20, told="ham" if n < 20 else None)
        seen(database, f"new{n}", 2, told="ham" if n < 1 else None)
    seen(database, "unsure", 2, "unsure", 0.5)
    text = shown(page, box)

    for words in (
        "201 on mail of 30 days 200 spam, 1 unsure, 0 ham",
        "21 of 200, 10.5 %",
        "Better Wrong in the last 7 days: 1 of 100, 1 %. In the 23 days before: 20 of",
        "The difference is more than chance",
        "Of the 200 messages to which it gave 90 to 99 % for spam, 179 were spam; by its"
        " probabilities it should have been 190.",
    ):
        assert words in text


def test_few_messages_are_spoken_of_by_their_number(page, box, database):
    seen(database, "a", 1, told="ham")
    one = "The one message to which it gave 90 to 99 % for spam was not spam."
    assert one in shown(page, box)
    seen(database, "b", 20)
    seen(database, "c", 20)
    text = shown(page, box)

    for words in (
        "1 of 3 of ham or spam",
        "7 days: 1 of 1. In the 23 days before: 0 of 2. The difference may be chance.",
        "Of the 3 messages to which it gave 90 to 99 % for spam, 2 were spam; by",
        "it should have been 2.8.",  # 3 * .95
    ):
        assert words in text


def test_who_has_said_nothing_is_not_told_that_all_is_right(page, box, database):
    seen(database, "a", 1, "unsure", 0.5)
    assert "no checked verdicts of ham or spam in these days" in shown(page, box)
    seen(database, "b", 1)
    text = shown(page, box)

    assert "You have not checked any verdict yet." in text
    assert "no checked verdicts of ham or spam in these days" in text
    assert "Too early to say" in text
    assert "You have marked no message in these days." in text


def test_every_picture_has_its_words_and_its_numbers(page, box, database):
    put(box, 1)
    seen(database, "a", 1, told="ham")
    seen(database, "b", 1, "ham", 0.002)
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
    assert rows_of(html, "Messages up to the last one that you marked")[1:] == [
        ["0 to 1 %", "1", "0.002", "0 (0 to 79.3 %)", "seems right"],
        ["90 to 99 %", "1", "0.95", "0 (0 to 79.3 %)", "too sure of spam"],
    ]
    assert len(rows_of(html, "Messages that you marked")) == 2


def test_the_list_judges_and_the_course_counts_apart_what_was_learned_before(page, box):
    put(box, 1, written(1, "cheap pills, learned before")).touch()  # it comes today
    put(box, 2, written(2, "cheap pills")).touch()
    page.shown()
    for number in (1, 2):
        page.tell(ham=key_of(number))
    text = page.shown("/course").text

    assert "2 on mail of 30 days 2 spam, 0 unsure, 0 ham" in text
    assert "Wrong verdicts 1 of 1 of ham or spam" in text
    assert "Verdicts on messages that the model had learned before: 1." in text
