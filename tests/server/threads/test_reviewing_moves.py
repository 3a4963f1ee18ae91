"""The reviewer moves mail (`--move`): when, in which order, and what if it cannot."""

import asyncio
import os

import pytest

from mailboxes import boxes, key_of, put, written
from nbspam.errors import InputError
from nbspam.server.page.mailbox import ReviewMailbox
from nbspam.server.page.memory import MessageFilter
from scripted import desk


def reviewed(tmp_path, conversation, moves=True):
    """Return what a conversation with a desk whose reviewer has the mailbox returns."""

    async def converse():
        at = desk(mailboxes=boxes(tmp_path), moves=moves)
        try:
            return await conversation(at.reviewer, at)
        finally:
            at.reviewer.end()

    return asyncio.run(converse())


async def rows(reviewer):
    listing = await reviewer.listing("", MessageFilter(), 0, 100)
    return listing.rows


def places(tmp_path):
    """Return where the messages of the mailbox are."""
    root = tmp_path / "box"
    return sorted(str(path.relative_to(root)) for path in root.rglob("*.M1.host*"))


def test_what_is_told_moves_after_it_is_learned_and_noted(tmp_path, monkeypatch):
    put(tmp_path / "box", 1)
    steps = []
    for name in ("file", "put_back"):
        found = getattr(ReviewMailbox, name)

        def moving(self, key, where, found=found):
            steps.append((dict(at[0].teacher.known), database[0].last_told()))
            return found(self, key, where)

        monkeypatch.setattr(ReviewMailbox, name, moving)
    at, database = [], [boxes(tmp_path).box("").database]

    async def converse(reviewer, desk):
        at.append(desk)
        await rows(reviewer)
        seen = []
        for label in ("spam", "spam", "ham"):
            await reviewer.tell("", key_of(1), label)
            seen.append(places(tmp_path))
        while (last := (await reviewer.listing("", MessageFilter(), 0, 1)).last) is not None:
            await reviewer.undo("", last.number)
            seen.append(places(tmp_path))
        return seen

    spam, inbox = [".Spam/new/1.M1.host"], ["new/1.M1.host"]
    assert reviewed(tmp_path, converse) == [spam, spam, inbox, spam, inbox]
    known = [(list(known.values()), told.label, told.folder) for known, told in steps]
    assert known == [
        (["spam"], "spam", ""),
        (["spam"], "spam", ""),
        (["ham"], "ham", ".Spam"),
        (
            ["ham"],
            "ham",
            ".Spam",
        ),  # moved back before it is un-learned: an undoing can be repeated
        (["spam"], "spam", ""),
    ]


def test_nothing_moves_if_it_is_not_wanted_or_the_mailbox_is_no_maildir(tmp_path):
    async def converse(reviewer, at):
        await reviewer.tell("", next(iter(await rows(reviewer))).key, "spam")
        return (await reviewer.listing("", MessageFilter(), 0, 1)).last.folder

    put(tmp_path / "box", 1)
    assert reviewed(tmp_path, converse, moves=False) is None
    assert places(tmp_path) == ["new/1.M1.host"]
    (tmp_path / "other" / "box").mkdir(parents=True)
    os.rename(tmp_path / "box/new/1.M1.host", tmp_path / "other/box/1.M1.host")
    assert reviewed(tmp_path / "other", converse) is None
    assert places(tmp_path / "other") == ["1.M1.host"]


def test_a_lesson_counts_if_its_message_cannot_be_moved_and_a_second_click_moves_it(
    tmp_path, monkeypatch, capfd
):
    put(tmp_path / "box", 1)

    def refused(*values):
        raise OSError(28, "No space left on device", "x")

    async def converse(reviewer, at):
        await rows(reviewer)
        with monkeypatch.context() as patch:
            patch.setattr("nbspam.server.page.mailbox.write_note", refused)
            lesson = await reviewer.tell("", key_of(1), "spam")
        between = (dict(at.teacher.known), places(tmp_path))
        again = await reviewer.tell("", key_of(1), "spam")
        number = (await reviewer.listing("", MessageFilter(), 0, 1)).last.number
        moved = places(tmp_path)
        await reviewer.undo("", number)
        return lesson.unmoved, between, again.unmoved, moved, places(tmp_path), at.teacher.known

    why, between, again, moved, back, known = reviewed(tmp_path, converse)
    assert why == "x: No space left on device; nothing is lost, try again"
    assert between == ({written(1): "spam"}, ["new/1.M1.host"])
    assert (again, moved, back, known) == (None, [".Spam/new/1.M1.host"], ["new/1.M1.host"], {})
    assert "a message was learned, but not moved: x: No space left" in capfd.readouterr().err


def test_an_undoing_that_cannot_move_the_message_takes_nothing_back(tmp_path, monkeypatch):
    put(tmp_path / "box", 1)

    def refused(*values):
        raise OSError(28, "No space left on device", "x")

    async def converse(reviewer, at):
        await reviewer.tell("", key_of(1), "spam")
        number = (await reviewer.listing("", MessageFilter(), 0, 1)).last.number
        monkeypatch.setattr("nbspam.server.page.mailbox.write_note", refused)
        with pytest.raises(InputError, match="nothing is lost"):
            await reviewer.undo("", number)
        return (
            await reviewer.listing("", MessageFilter(), 0, 1)
        ).last.number == number, at.teacher.known

    assert reviewed(tmp_path, converse) == (True, {written(1): "spam"})
