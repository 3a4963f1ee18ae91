"""The reviewer: when messages get verdicts, how lessons are learned, noted, moved and undone.

Several workers may teach at once.
"""

import asyncio
import os
import time
from unittest.mock import Mock

import pytest

from maildirs import boxes, key_of, put, written
from nbspam.errors import InputError
from nbspam.server.page import reviewer as module
from nbspam.server.page.database import Database, MessageFilter
from nbspam.server.page.mailbox import ReviewMailbox
from nbspam.server.page.reviewer import Reviewer
from scripted import desk, until
from support import raising


async def look(reviewer, user=""):
    return await reviewer.listing(user, MessageFilter(), 0, 100)


async def passed(reviewer):
    await until(lambda: not reviewer._passes)


def judged_by(at):
    """Return the messages that were judged, without the empty ones of each look."""
    return [data for data in at.judge.seen if data != b"\n"]


async def tell(reviewer, label):
    return await reviewer.tell("", key_of(1), label)


async def undo_last(reviewer):
    """Take the last lesson back, which is returned; None if there is none."""
    last = (await look(reviewer)).last
    return None if last is None else await reviewer.undo("", last.number)


refused = raising(OSError(28, "No space left on device", "x"))


# ---- verdicts ----


async def test_the_newest_are_judged_before_the_list_and_the_others_after_it_once(
    at, reviewer, box, monkeypatch
):
    monkeypatch.setattr(module, "_AT_ONCE", 3)
    monkeypatch.setattr("nbspam.server.page.reviewer.HELD", 2)
    for number in range(10):
        put(box, number)
    first, _ = await asyncio.gather(look(reviewer), look(reviewer))  # by two visitors
    assert len(reviewer._passes) == 1
    await look(reviewer)  # while the others are judged
    await passed(reviewer)
    last = await look(reviewer)

    assert [row.arrived for row in first.rows[:3]] == [1009, 1008, 1007]
    assert (first.n_here, first.n_waiting) == (10, 7)
    assert (len(last.rows), last.n_waiting) == (10, 0)
    judged = judged_by(at)
    assert len(judged) == 10 + 3
    assert list(dict.fromkeys(judged)) == [written(number) for number in range(9, -1, -1)]


async def test_a_newer_model_judges_again_once_but_not_what_a_person_has_told(
    at, reviewer, box, tmp_path
):
    put(box, 1)
    put(box, 2)
    await look(reviewer)
    await tell(reviewer, "spam")
    # Of tomorrow, if the clock was set back.
    for number, at.judge.model_time in ((2, time.time()), (3, time.time() + 86_400)):
        put(box, number)
        at.judge.seen.clear()
        await look(reviewer)
        await look(reviewer)
        assert judged_by(at) == [written(number)]
    found = boxes(tmp_path).box("")
    assert found.written(1e9, 1e9) == 0.0  # as the judge says if there is none
    assert found.written(1e9, 9e8) == 9e8
    found = ReviewMailbox(str(box), str(tmp_path / "m"), "ann")  # whose own model is newer
    assert found.written(1e10, 9e8) == os.stat(tmp_path / "m").st_mtime_ns / 1e9


async def test_a_large_message_is_judged_by_its_beginning_and_one_that_fails_not_again(
    at, reviewer, box, capfd
):
    put(box, 1, written(1, "lunch " * 1000))
    put(box, 2, written(2, "our bug"))
    put(box, 3, written(3, "failure"))
    reviewer._limits = at.limits._replace(message_bytes=100)
    await look(reviewer)
    assert [row.label for row in (await look(reviewer)).rows] == ["unjudged", "unjudged", "ham"]
    assert (await reviewer.reading("", key_of(3))).explanation is None
    await reviewer.reading("", key_of(1))
    await tell(reviewer, "ham")
    lengths = [len(data) for data in judged_by(at) if b"number 1" in data]
    assert (lengths, len(judged_by(at))) == ([100, 100], 5)
    assert [*at.teacher.known] == [written(1, "lunch " * 1000)]
    assert "a message of the page was not judged: ZeroDivisionError" in capfd.readouterr().err


async def test_trouble_in_a_pass_is_told_and_the_next_look_tries_again(
    reviewer, box, monkeypatch, capfd
):
    monkeypatch.setattr(module, "_AT_ONCE", 1)
    put(box, 1)
    put(box, 2)
    note, calls = Database.note, []

    def failing(database, noted):
        calls.append(noted)
        if len(calls) == 2:
            raise RuntimeError("words of mail")
        note(database, noted)

    monkeypatch.setattr(Database, "note", failing)
    await look(reviewer)
    await passed(reviewer)
    await look(reviewer)
    assert len((await look(reviewer)).rows) == 2
    told = capfd.readouterr().err
    assert "messages of the page wait for their verdicts: RuntimeError" in told
    assert "words" not in told


async def test_only_so_many_mailboxes_are_held(reviewer, tmp_path, monkeypatch):
    def box(user):
        return ReviewMailbox(str(tmp_path / user), str(tmp_path / "m"), user)

    monkeypatch.setattr(module, "_MAILBOXES", 2)
    monkeypatch.setattr(reviewer, "mailboxes", Mock(box=box))
    held = []
    for user in "abacba":
        put(tmp_path / user, 1)
        await look(reviewer, user)
        held.append("".join(sorted(path[-1] for path in reviewer._boxes)))
    assert held == ["a", "ab", "ab", "ac", "bc", "ab"]


# ---- lessons ----


@pytest.mark.parametrize(("before", "n_lessons"), [("ham", 2), ("spam", 1)])
async def test_undoing_restores_what_another_way_taught(at, reviewer, box, before, n_lessons):
    put(box, 1)
    at.teacher.known[written(1)] = before
    await tell(reviewer, "spam")
    await undo_last(reviewer)
    assert at.teacher.known == {written(1): before}
    assert len(at.teacher.users) == n_lessons  # undoing what changed nothing teaches nothing


async def test_what_has_gone_teaches_nothing(at, reviewer, box):
    path = put(box, 1)
    await tell(reviewer, "spam")
    assert await reviewer.undo("", 2) is None
    os.unlink(path)
    assert [
        await tell(reviewer, "ham"),
        await reviewer.undo("", 1),
        await reviewer.reading("", key_of(1)),
        await reviewer.reading("", "../../../etc/passwd"),
    ] == [None] * 4
    assert at.teacher.known == {written(1): "spam"}


# ---- moves (`--move`) ----

SPAM, INBOX = [".Spam/new/1.M1.host"], ["new/1.M1.host"]


@pytest.fixture
def moving(tmp_path, box):
    """A desk whose lessons move mail; the mailbox has a message."""
    put(box, 1)
    found = desk(mailboxes=boxes(tmp_path), moves=True)
    yield found
    found.reviewer.end()


def places(box):
    return sorted(str(path.relative_to(box)) for path in box.rglob("*.M1.host*"))


async def test_mail_moves_after_it_is_learned_and_noted(moving, box, database, monkeypatch):
    steps, carry = [], ReviewMailbox._move

    def carrying(self, key, folder):
        told = database.last_told()
        steps.append((moving.teacher.known[written(1)], told.label, told.folder))
        return carry(self, key, folder)

    monkeypatch.setattr(ReviewMailbox, "_move", carrying)
    await look(moving.reviewer)
    for label, where in (("spam", SPAM), ("spam", SPAM), ("ham", INBOX)):
        await tell(moving.reviewer, label)
        assert places(box) == where
    for label, where in (("spam", SPAM), (None, INBOX)):
        assert (await undo_last(moving.reviewer)).label == label
        assert places(box) == where

    assert steps == [
        ("spam", "spam", ""), ("spam", "spam", ""), ("ham", "ham", ".Spam"),
        # Moved back before it is un-learned: an undoing can be repeated.
        ("ham", "ham", ".Spam"), ("spam", "spam", ""),
    ]  # fmt: skip


async def test_nothing_moves_unless_wanted_and_in_a_maildir(at, moving, box, tmp_path):
    await tell(at.reviewer, "spam")
    assert (await look(at.reviewer)).last.folder is None
    assert places(box) == INBOX

    os.rename(box / INBOX[0], tmp_path / "1.eml")
    for part in ("cur", "new", "tmp"):
        (box / part).rmdir()
    os.rename(tmp_path / "1.eml", box / "1.M1.host")
    await tell(moving.reviewer, "ham")
    assert (await look(moving.reviewer)).last.folder is None
    assert places(box) == ["1.M1.host"]


async def test_a_second_click_moves_what_could_not_be_moved(moving, box, monkeypatch, capfd):
    reviewer, known = moving.reviewer, moving.teacher.known
    await look(reviewer)
    with monkeypatch.context() as patch:
        patch.setattr("nbspam.server.page.mailbox.write_note", refused)
        lesson = await tell(reviewer, "spam")
    why = "x: No space left on device; nothing is lost, free some space, then try again"
    assert lesson.unmoved == why
    assert (known, places(box)) == ({written(1): "spam"}, INBOX)
    assert (await tell(reviewer, "spam")).unmoved is None
    assert places(box) == SPAM
    with monkeypatch.context() as patch:
        patch.setattr("nbspam.server.page.mailbox.write_note", refused)
        with pytest.raises(InputError, match="nothing is lost"):
            await undo_last(reviewer)  # which takes nothing back
    assert (await look(reviewer)).last.number == 1
    assert (known, places(box)) == ({written(1): "spam"}, SPAM)
    await undo_last(reviewer)
    assert (known, places(box)) == ({}, INBOX)
    assert "a message was learned, but not moved: x: No space left" in capfd.readouterr().err


# ---- two workers that teach one model ----


@pytest.fixture
def other(at, box, tmp_path):
    """The reviewer of another worker; the mailbox has a message."""
    put(box, 1)
    found = Reviewer(boxes(tmp_path), at.judge, at.teacher, at.limits, at.log)
    yield found
    found.end()


def said(database):
    """Return what is noted of the message, the first first: label, and what was before."""
    return database.run("SELECT label, before FROM told WHERE undone IS NULL ORDER BY id")


@pytest.mark.parametrize(
    ("label", "notes"), [("ham", [("spam", None), ("ham", "spam")]), ("spam", [("spam", None)])]
)
async def test_notes_of_two_workers_are_in_the_order_of_their_lessons_and_the_same_is_noted_once(
    at, reviewer, other, database, monkeypatch, label, notes
):
    noted = Database.tell

    def slowly(self, key, said, *rest):
        time.sleep(0.3 * (said == "spam"))
        return noted(self, key, said, *rest)

    await look(reviewer)
    monkeypatch.setattr(Database, "tell", slowly)
    first = asyncio.ensure_future(tell(reviewer, "spam"))
    await until(lambda: at.teacher.known.get(written(1)) == "spam")
    await tell(other, label)
    await first
    assert at.teacher.known == {written(1): label}
    assert said(database) == notes
    for number in range(len(notes), 0, -1):
        await other.undo("", number)
    assert (at.teacher.known, said(database)) == ({}, [])


async def test_an_undoing_takes_nothing_else_back_if_it_comes_twice_or_late(
    at, reviewer, other, database
):
    await tell(reviewer, "spam")
    found = await asyncio.gather(reviewer.undo("", 1), other.undo("", 1))
    assert sorted(lesson is None for lesson in found) == [False, True]
    assert (len(at.teacher.users), at.teacher.known) == (2, {})
    await tell(reviewer, "spam")
    at.teacher.known[written(1)] = "ham"  # by the command line
    assert (await reviewer.undo("", 2)).outcome.already_known == 1
    assert (at.teacher.known, said(database)) == ({written(1): "ham"}, [])
