"""The reviewer beside others: two workers, two clicks at once, lessons from elsewhere."""

import asyncio
import time

from mailboxes import boxes, key_of, put, written
from nbspam.server.page.memory import Database, MessageFilter
from nbspam.server.page.reviewer import Reviewer
from scripted import desk
from serving import PATIENCE


def reviewed(tmp_path, conversation):
    """Return what a conversation with the reviewers of two workers returns, and what is known.

    Both teach one model.
    """

    async def converse():
        put(tmp_path / "box", 1)
        at = desk(mailboxes=boxes(tmp_path))
        other = Reviewer(boxes(tmp_path), at.judge, at.teacher, at.limits, at.log, False)
        try:
            return await conversation(at.reviewer, other, at.teacher), at.teacher.known
        finally:
            at.reviewer.end()
            other.end()

    return asyncio.run(converse())


def said(tmp_path):
    """Return what is noted of the message, the first first: label, and what was before."""
    database = boxes(tmp_path).box("").database
    return database.run("SELECT label, before FROM told WHERE undone IS NULL ORDER BY id")


async def met(reviewer, teacher, label, monkeypatch):
    """Begin a lesson whose note takes long; return its task when it is learned."""
    tell = Database.tell

    def slowly(self, key, label_, *rest):
        time.sleep(0.3 * (label_ == label))
        return tell(self, key, label_, *rest)

    monkeypatch.setattr(Database, "tell", slowly)
    task = asyncio.ensure_future(reviewer.tell("", key_of(1), label))
    async with asyncio.timeout(PATIENCE):
        while teacher.known.get(written(1)) != label:
            await asyncio.sleep(0.005)
    return task


def test_notes_of_two_workers_are_in_the_order_of_their_lessons(tmp_path, monkeypatch):
    async def converse(one, other, teacher):
        task = await met(one, teacher, "spam", monkeypatch)
        await other.tell("", key_of(1), "ham")
        await task

    _, known = reviewed(tmp_path, converse)
    assert known == {written(1): "ham"}
    assert said(tmp_path) == [("spam", None), ("ham", "spam")]


def test_the_same_said_in_two_workers_at_once_is_noted_once_and_undone_by_one_click(
    tmp_path, monkeypatch
):
    async def converse(one, other, teacher):
        await one.listing("", MessageFilter(), 0, 1)
        task = await met(one, teacher, "spam", monkeypatch)
        await other.tell("", key_of(1), "spam")
        await task
        noted = said(tmp_path)
        await other.undo("", 1)
        return noted

    noted, known = reviewed(tmp_path, converse)
    assert noted == [("spam", None)]
    assert (known, said(tmp_path)) == ({}, [])


def test_an_undoing_that_comes_twice_takes_nothing_else_back(tmp_path):
    async def converse(one, other, teacher):
        await one.tell("", key_of(1), "spam")
        found = await asyncio.gather(one.undo("", 1), other.undo("", 1))
        return [lesson is None for lesson in found], len(teacher.users)

    (gone, n_lessons), known = reviewed(tmp_path, converse)
    assert sorted(gone) == [False, True]
    assert n_lessons == 2
    assert known == {}


def test_what_was_taught_elsewhere_meanwhile_is_not_undone(tmp_path):
    async def converse(one, other, teacher):
        await one.tell("", key_of(1), "spam")
        teacher.known[written(1)] = "ham"  # by the command line
        return await one.undo("", 1)

    lesson, known = reviewed(tmp_path, converse)
    assert lesson.outcome.already_known == 1
    assert known == {written(1): "ham"}
    assert said(tmp_path) == []
