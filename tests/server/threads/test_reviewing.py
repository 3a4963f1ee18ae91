"""The reviewer: when messages get verdicts, and how lessons are learned, noted and undone."""

import asyncio
import os
from time import time

import pytest

from mailboxes import boxes, key_of, put, written
from nbspam.errors import InputError
from nbspam.server.page import reviewer
from nbspam.server.page.mailbox import ReviewBox, ReviewMailbox
from nbspam.server.page.memory import Database, MessageFilter
from scripted import desk


def reviewed(tmp_path, conversation):
    """Return what a conversation with a desk whose reviewer has the mailbox returns."""

    async def converse():
        at = desk(mailboxes=boxes(tmp_path))
        try:
            return await conversation(at.reviewer, at)
        finally:
            at.reviewer.end()

    return asyncio.run(converse())


async def rows(reviewer, **wanted):
    listing = await reviewer.listing("", MessageFilter(**wanted), 0, 100)
    return listing.rows


def judged_by(at):
    """Return the messages that were judged, without the empty ones of each look."""
    return [data for data in at.judge.seen if data != b"\n"]


async def passed(reviewer):
    """Wait until no messages wait for verdicts."""
    while reviewer._passes:
        await asyncio.sleep(0.01)


# ---- verdicts ----


def test_messages_are_listed_with_verdict_and_reasons(tmp_path):
    put(tmp_path / "box", 1)
    put(tmp_path / "box", 2, written(2, "pills"))

    found = reviewed(tmp_path, lambda reviewer, at: rows(reviewer))

    assert [(row.key, row.label, row.sender) for row in found] == [
        (key_of(2), "spam", "2@a.example"),
        (key_of(1), "ham", "1@a.example"),
    ]
    assert found[0].reasons == (("pi\x1bll", 2.5),)
    assert found[0].probability == 0.9


def test_the_newest_are_judged_before_the_list_and_the_others_after_it(tmp_path, monkeypatch):
    monkeypatch.setattr(reviewer, "_AT_ONCE", 3)
    monkeypatch.setattr(reviewer, "_BATCH", 2)
    for number in range(10):
        put(tmp_path / "box", number)

    async def converse(reviewer, at):
        first = await reviewer.listing("", MessageFilter(), 0, 100)
        await passed(reviewer)
        second = await reviewer.listing("", MessageFilter(), 0, 100)
        return first, second, len(judged_by(at))

    first, second, judged = reviewed(tmp_path, converse)
    assert [row.arrived for row in first.rows[:3]] == [1009, 1008, 1007]
    assert (first.n_here, first.n_waiting) == (10, 7)
    assert (len(second.rows), second.n_waiting, judged) == (10, 0, 10)


def test_what_is_in_a_pass_is_judged_once(tmp_path, monkeypatch):
    monkeypatch.setattr(reviewer, "_AT_ONCE", 1)
    for number in range(20):
        put(tmp_path / "box", number)

    async def converse(reviewer, at):
        looks = [await reviewer.listing("", MessageFilter(), 0, 100) for _ in range(3)]
        await passed(reviewer)
        return looks, len(judged_by(at))

    looks, judged = reviewed(tmp_path, converse)
    assert looks[0].n_waiting == 19
    assert judged == 20


def test_a_newer_model_judges_again_but_not_what_a_person_has_told(tmp_path):
    put(tmp_path / "box", 1)
    put(tmp_path / "box", 2)

    async def converse(reviewer, at):
        await rows(reviewer)
        await reviewer.tell("", key_of(1), "spam")
        at.judge.model_time = time()
        at.judge.seen.clear()
        await rows(reviewer)
        await rows(reviewer)
        return judged_by(at)

    assert reviewed(tmp_path, converse) == [written(2)]


def test_a_model_of_tomorrow_or_none_does_not_judge_again_for_ever(tmp_path):
    put(tmp_path / "box", 1)

    async def converse(reviewer, at):
        at.judge.model_time = time() + 86_400  # the clock was set back
        await rows(reviewer)
        await rows(reviewer)
        return judged_by(at)

    assert reviewed(tmp_path, converse) == [written(1)]
    assert boxes(tmp_path).box("").written(1e9, 1e9) == 0.0  # as the judge says if there is none
    assert boxes(tmp_path).box("").written(1e9, 9e8) == 9e8


def test_a_message_that_cannot_be_judged_is_listed_and_not_tried_again(tmp_path, capfd):
    put(tmp_path / "box", 1, written(1, "failure"))
    put(tmp_path / "box", 2, written(2, "our bug"))

    async def converse(reviewer, at):
        await rows(reviewer)
        found = await rows(reviewer)
        reading = await reviewer.reading("", key_of(1))
        return found, len(judged_by(at)), reading

    found, judged, reading = reviewed(tmp_path, converse)
    assert [row.label for row in found] == ["unjudged", "unjudged"]
    assert (judged, reading.explanation) == (3, None)
    assert "a message of the page was not judged: ZeroDivisionError" in capfd.readouterr().err


def test_only_the_beginning_of_a_large_message_is_judged(tmp_path):
    put(tmp_path / "box", 1, written(1, "lunch " * 1000))

    async def converse(reviewer, at):
        reviewer._limits = at.limits._replace(message_bytes=100)
        await rows(reviewer)
        await reviewer.reading("", key_of(1))
        await reviewer.tell("", key_of(1), "ham")
        return judged_by(at), [len(data) for data in at.teacher.known]

    judged, taught = reviewed(tmp_path, converse)
    assert [len(data) for data in judged] == [100, 100]
    assert taught == [len(written(1, "lunch " * 1000))]


def test_trouble_in_a_pass_is_told_and_the_next_look_tries_again(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(reviewer, "_AT_ONCE", 1)
    put(tmp_path / "box", 1)
    put(tmp_path / "box", 2)

    async def converse(reviewer, at):
        note, calls = Database.note, []

        def failing(database, noted):
            calls.append(noted)
            if len(calls) == 2:
                raise RuntimeError("words of mail")
            note(database, noted)

        monkeypatch.setattr(Database, "note", failing)
        await rows(reviewer)
        await passed(reviewer)
        await rows(reviewer)
        return await rows(reviewer)

    assert len(reviewed(tmp_path, converse)) == 2
    told = capfd.readouterr().err
    assert "messages of the page wait for their verdicts: RuntimeError" in told
    assert "words" not in told


def test_messages_that_wait_are_judged_newest_first(tmp_path, monkeypatch):
    monkeypatch.setattr(reviewer, "_AT_ONCE", 1)
    for number in range(9):
        put(tmp_path / "box", number)

    async def converse(reviewer, at):
        await rows(reviewer)
        await passed(reviewer)
        return [data for data in at.judge.seen if b"Subject" in data]

    assert reviewed(tmp_path, converse) == [written(number) for number in range(8, -1, -1)]


# ---- lessons ----


def test_a_lesson_is_learned_noted_and_undone(tmp_path):
    put(tmp_path / "box", 1)

    async def converse(reviewer, at):
        await rows(reviewer)
        steps = []
        for label in ("spam", "spam", "ham"):
            lesson = await reviewer.tell("", key_of(1), label)
            listing = await reviewer.listing("", MessageFilter(), 0, 1)
            steps.append((lesson.outcome.learned, lesson.outcome.moved, listing.rows[0].told))
        while listing.last is not None:
            lesson = await reviewer.undo("", listing.last.number)
            listing = await reviewer.listing("", MessageFilter(), 0, 1)
            steps.append((lesson.label, listing.rows[0].told, dict(at.teacher.known)))
        return steps

    assert reviewed(tmp_path, converse) == [
        (1, 0, "spam"),
        (0, 0, "spam"),  # a form that was sent twice is one lesson
        (0, 1, "ham"),
        ("spam", "spam", {written(1): "spam"}),
        (None, None, {}),
    ]


def test_undoing_goes_back_to_what_training_had_taught(tmp_path):
    put(tmp_path / "box", 1)

    async def converse(reviewer, at):
        at.teacher.known[written(1)] = "ham"  # by another way than the page
        await reviewer.tell("", key_of(1), "spam")
        last = (await reviewer.listing("", MessageFilter(), 0, 1)).last
        await reviewer.undo("", last.number)
        return at.teacher.known

    assert reviewed(tmp_path, converse) == {written(1): "ham"}


def test_undoing_what_changed_nothing_teaches_nothing(tmp_path):
    put(tmp_path / "box", 1)

    async def converse(reviewer, at):
        at.teacher.known[written(1)] = "spam"
        await reviewer.tell("", key_of(1), "spam")
        last = (await reviewer.listing("", MessageFilter(), 0, 1)).last
        taught = len(at.teacher.users)
        await reviewer.undo("", last.number)
        return at.teacher.known, len(at.teacher.users) - taught

    assert reviewed(tmp_path, converse) == ({written(1): "spam"}, 0)


def test_a_lesson_that_could_not_be_learned_is_not_noted(tmp_path):
    put(tmp_path / "box", 1, written(1, "failure"))

    async def converse(reviewer, at):
        with pytest.raises(OSError, match="No space left"):
            await reviewer.tell("", key_of(1), "spam")
        return (await reviewer.listing("", MessageFilter(), 0, 1)).last

    assert reviewed(tmp_path, converse) is None


def test_what_has_gone_teaches_nothing(tmp_path):
    path = put(tmp_path / "box", 1)

    async def converse(reviewer, at):
        await reviewer.tell("", key_of(1), "spam")
        number = (await reviewer.listing("", MessageFilter(), 0, 1)).last.number
        assert await reviewer.undo("", number + 1) is None
        os.unlink(path)
        found = [
            await reviewer.tell("", key_of(1), "ham"),
            await reviewer.undo("", number),
            await reviewer.reading("", key_of(1)),
            await reviewer.reading("", "../../../etc/passwd"),
        ]
        return found, at.teacher.known

    assert reviewed(tmp_path, converse) == ([None] * 4, {written(1): "spam"})


def test_only_so_many_mailboxes_are_held(tmp_path, monkeypatch):
    monkeypatch.setattr(reviewer, "_MAILBOXES", 2)
    for name in "abc":
        put(tmp_path / name, 1)

    class OneForEach:
        def box(self, user):
            mailbag, notes = ReviewMailbox(str(tmp_path / user)), Database(str(tmp_path / "m"))
            return ReviewBox(mailbag, notes, user)

    async def converse(reviewer, at):
        monkeypatch.setattr(reviewer, "mailboxes", OneForEach())
        held = []
        for user in "abacba":
            await reviewer.listing(user, MessageFilter(), 0, 1)
            held.append("".join(sorted(path[-1] for path in reviewer._mailbags)))
        return held

    assert reviewed(tmp_path, converse) == ["a", "ab", "ab", "ac", "bc", "ab"]


def test_a_mailbox_that_is_not_there_any_more_is_an_error(tmp_path):
    async def converse(reviewer, at):
        with pytest.raises(InputError, match=r"box: no such mailbox"):
            await reviewer.listing("", MessageFilter(), 0, 1)

    reviewed(tmp_path, converse)
