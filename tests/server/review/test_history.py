"""How the model is doing: days, corrections, ranges of probability, and what chance would do."""

import time
from datetime import date, datetime, timedelta

import pytest

from nbspam.server.page import memory
from nbspam.server.page.course import DAYS, LATELY, Course, Period, Range, course
from nbspam.server.page.memory import Database, SeenMessage

TODAY = date(2026, 3, 30)


@pytest.fixture(autouse=True)
def berlin(monkeypatch):
    """A clock that was put forward on 29 March 2026, at 2 in the morning."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def database(tmp_path):
    return Database(str(tmp_path / "m"))


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


def test_without_messages_there_is_nothing_to_see(database):
    found = course(database, TODAY)

    assert found.is_empty
    assert [found.days[0].date, found.days[-1].date] == [TODAY - timedelta(DAYS - 1), TODAY]
    assert (found.ranges, found.told, found.trend) == ((), (), 0)


def test_verdicts_count_on_the_day_on_which_messages_arrived(database):
    note(database, "a", at(1, 0, 0), "ham", 0.1)
    note(database, "b", at(1, 23, 59), "spam")  # of a day of 23 hours
    note(database, "c", at(0, 0, 0), "unsure", 0.5)
    note(database, "d", at(0, 23, 59), "spam")
    note(database, "e", at(-3), "spam")  # its clock is wrong
    note(database, "f", at(DAYS - 1, 0, 0), "ham", 0.1)
    note(database, "g", at(DAYS, 23, 59), "ham", 0.1)

    assert days(database) == {
        DAYS - 1: (1, 0, 0, 0, 0, 0),
        1: (1, 0, 1, 0, 0, 0),
        0: (0, 1, 2, 0, 0, 0),
    }


def test_what_was_said_counts_on_the_day_on_which_it_was_said(database):
    note(database, "a", at(40), "spam", told="ham", at=at(2))  # an old message
    note(database, "b", at(5), "ham", 0.1, told="ham", at=at(2))
    note(database, "c", at(5), "unsure", 0.5, told="spam", at=at(1))

    assert days(database) == {
        5: (1, 1, 0, 0, 0, 0),
        2: (0, 0, 0, 1, 0, 1),
        1: (0, 0, 0, 0, 1, 0),
    }


def test_what_was_said_last_and_not_undone_counts_once(database):
    note(database, "a", at(3), "spam", told="ham", at=at(3))
    database.tell("a", "spam", "ham", at(2))
    last = database.tell("a", "ham", "spam", at(1))
    assert days(database) == {3: (0, 0, 1, 0, 0, 0), 1: (0, 0, 0, 0, 0, 1)}

    database.undo(last, at(0))
    assert days(database) == {3: (0, 0, 1, 0, 0, 0), 2: (0, 0, 0, 1, 0, 0)}


def test_messages_that_left_the_mailbox_count_and_those_without_a_verdict_do_not(database):
    note(database, "a", at(1))
    note(database, "b", at(1), "unjudged", 0.5, told="spam")
    database.judged_since(0.0, 0.0, set())

    assert days(database) == {1: (0, 0, 1, 0, 0, 0)}


# ---- ranges ----


def test_a_range_says_how_many_are_spam(database):
    for n, probability in enumerate([0.9, 0.92, 0.96, 0.989999]):
        note(database, f"a{n}", at(1), "spam", probability)
    note(database, "b", at(1), "spam", 0.94, told="ham")
    note(database, "c", at(1), "spam", 1.0)
    note(database, "d", at(1), "ham", 0.0)

    low, nineties, sure = course(database, TODAY).ranges
    assert low == Range(0.0, 0.01, 1, 0.0, 0)
    assert nineties[:3] == (0.9, 0.99, 5)
    assert nineties.mean == pytest.approx((0.9 + 0.92 + 0.96 + 0.989999 + 0.94) / 5)
    assert nineties.spam == 4
    assert sure == Range(0.99, 1.0, 1, 1.0, 1)


def test_whoever_leaves_unsure_verdicts_alone_says_nothing(database):
    note(database, "a", at(1), "unsure", 0.6)
    note(database, "b", at(1), "unsure", 0.6, told="ham")

    (found,) = course(database, TODAY).ranges
    assert (found.n, found.spam) == (1, 0)


def test_the_range_to_tell_of_is_one_of_probable_spam_if_there_is_any(database):
    for n in range(3):
        note(database, f"ham{n}", at(1), "ham", 0.001)
    assert course(database, TODAY).typical.high == 0.01
    note(database, "likely", at(1), "spam", 0.6)
    assert course(database, TODAY).typical.low == 0.5

    for n, probability in enumerate([0.95, 0.95, 0.995]):
        note(database, f"spam{n}", at(1), "spam", probability)
    assert course(database, TODAY).typical.low == 0.9


def test_what_was_told_stands_alone_too(database):
    note(database, "a", at(1), "spam", 0.95)
    note(database, "b", at(1), "spam", 0.95, told="ham")

    assert [each[2:] for each in course(database, TODAY).told] == [(1, 0.95, 0)]


def test_messages_that_the_model_had_learned_before_prove_nothing(database):
    note(database, "a", at(1), "spam", 0.95, told="ham", before="spam")
    known = SeenMessage("b", at(1), 0, "", "", "spam", 0.95, (), at(1), is_known=True)
    database.note([known, known._replace(key="c", arrived=at(DAYS))])

    found = course(database, TODAY)
    assert (found.ranges, found.told, found.both, found.n_known) == ((), (), Period(0, 0), 2)
    assert found.days[-2][1:] == (0, 0, 2, 0, 0, 1)


def test_a_message_that_only_its_user_has_taught_counts_however_often_it_was_told(database):
    note(database, "a", at(1), "spam", 0.95, told="spam")
    database.tell("a", "ham", "spam", at(1))

    found = course(database, TODAY)
    assert ([(each.n, each.spam) for each in found.told], found.n_known) == ([(1, 0)], 0)


def test_the_interval_of_a_range_is_wilsons():
    # By hand, with z² = 3.8416: (.9 + .019208 ± 1.96 sqrt(.0009 + .00009604)) / 1.038416
    low, high = Range(0.5, 0.9, 100, 0.7, 90).interval

    assert (low, high) == (pytest.approx(0.82563, abs=1e-5), pytest.approx(0.94477, abs=1e-5))


def test_a_mean_outside_the_interval_is_no_chance():
    for mean, surplus in ((0.8, 1), (0.83, 0), (0.94, 0), (0.96, -1)):
        assert Range(0.5, 0.99, 100, mean, 90).surplus == surplus


# ---- better or worse ----


def trend(earlier, lately):
    return Course((), (), (), Period(*earlier), Period(*lately)).trend


def test_a_trend_is_told_only_where_it_is_no_chance():
    for earlier, lately, expected in (
        ((1000, 100), (300, 3), -1),
        ((1000, 10), (300, 30), 1),
        ((1000, 10), (300, 3), 0),
        ((20, 1), (5, 1), 0),
        ((0, 0), (300, 30), 0),
        ((300, 30), (0, 0), 0),
    ):
        assert trend(earlier, lately) == expected


def test_the_difference_has_newcombes_interval():
    # His table II, (a): 56 of 70 and 48 of 80 differ by .0524 to .3339, so 0 is outside; with 51
    # of 70 the interval begins below 0.
    assert trend((80, 48), (70, 56)) == 1
    assert trend((70, 56), (80, 48)) == -1
    assert trend((80, 48), (70, 51)) == 0


def test_verdicts_after_the_last_that_was_looked_at_are_not_compared(database):
    note(database, "a", at(LATELY), "spam", told="ham")
    note(database, "b", at(LATELY), "spam")
    note(database, "c", at(LATELY - 1), "spam")
    note(database, "d", at(2), "spam", told="ham", at=at(2))
    note(database, "e", at(2), "unsure", 0.5)
    note(database, "f", at(1), "spam")

    found = course(database, TODAY)
    assert (found.earlier, found.lately) == (Period(2, 1), Period(2, 1))


# ---- work ----


def test_no_row_makes_the_database_look_through_all_others(database, monkeypatch):
    rows = [
        SeenMessage(f"{n}", at(n % 100), 0, "a@b.example", "about", "spam", 0.95, (), 0.0)
        for n in range(10_000)
    ]
    database.note(rows)
    for n in range(0, 10_000, 100):
        database.tell(f"{n}", "ham", None, at(n % 100))
    connected, thousands = memory._connection, []

    def counting(path):
        connection = connected(path)
        connection.set_progress_handler(lambda: thousands.append(1), 1000)
        return connection

    monkeypatch.setattr(memory, "_connection", counting)
    found = course(database, TODAY)

    assert sum(each.n for each in found.ranges) == DAYS * 100
    assert len(thousands) < 2000  # of SQLite's steps; a look for each row takes 100 times as many
