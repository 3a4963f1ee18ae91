"""The teacher: what it acknowledges is on disk."""

import asyncio
import sys
from threading import Event

import pytest

import nbspam
from nbspam.errors import UsageError
from nbspam.server.choices import LIMITS
from nbspam.server.judge import Teacher
from nbspam.server.worker import open_served
from nbspam.sources.items import Item, read_items
from nbspam.store.model import StoredModel
from serving import PATIENCE
from support import HAM, SPAM


def lessons(path, *told):
    """Return the outcome of each lesson (message, label, user), taught at once by one teacher."""

    async def main():
        teacher = Teacher(lambda: open_served(str(path)))
        try:
            waiting = [teacher.teach(*lesson) for lesson in told]
            assert teacher.n_waiting == len(told)
            found = await asyncio.gather(*waiting)
            assert teacher.n_waiting == 0
            return found
        finally:
            teacher.end()

    return asyncio.run(main())


@pytest.mark.usefixtures("quick_disk")
def test_lessons_are_done_in_their_order_and_on_disk(tmp_path):
    path = tmp_path / "m.nbspam"
    told = [(HAM, "ham"), (SPAM, "ham", "ann"), (SPAM, "spam", "bob"), (SPAM, "spam")]
    found = lessons(path, *told, (HAM, None), (HAM, None))  # all teach the same model
    kinds = ("learned", "learned", "moved", "already_known", "unlearned", "unknown")
    for outcome, happened in zip(found, kinds, strict=True):
        assert {kind for kind in kinds if getattr(outcome, kind)} == {happened}
    again = StoredModel(str(path)).classifier()
    assert again.table.class_count.tolist() == [0, 1]


@pytest.mark.usefixtures("quick_disk")
@pytest.mark.parametrize("size", [1000, LIMITS.message_bytes - len(SPAM)])
def test_a_message_taught_by_the_server_is_the_one_that_the_command_line_reads(tmp_path, size):
    path, data = tmp_path / "m.nbspam", SPAM + (b"more words\r\n" * (size // 12 + 1))[:size]
    [found] = lessons(path, (data, "spam"))
    assert found.learned == 1
    (tmp_path / "message").write_bytes(data)
    items = read_items([str(tmp_path / "message")])
    assert StoredModel(str(path)).unlearn(items, day=0).unlearned == 1


@pytest.mark.usefixtures("quick_disk")
def test_a_model_without_a_ledger_learns_but_does_not_un_learn(tmp_path, mails):
    path = tmp_path / "m.nbspam"
    nbspam.train(mails, ledger=False).save(path)

    assert lessons(path, (SPAM, "spam"))[0].learned == 1
    with pytest.raises(UsageError, match="has no ledger"):
        lessons(path, (SPAM, None))


def test_who_has_gone_is_not_learned_and_leaves_no_message_behind(tmp_path):
    gate, data = Event(), bytes(bytearray(SPAM))

    def held_up():
        assert gate.wait(PATIENCE)
        return open_served(str(tmp_path / "m.nbspam"))

    async def main():
        teacher = Teacher(held_up)
        before = sys.getrefcount(data)
        first = teacher.teach(HAM, "ham")
        gone = [teacher.teach(data, "spam") for _ in range(3)]
        assert sys.getrefcount(data) == before + 3
        for each in gone:
            each.cancel()
        await asyncio.sleep(0)
        assert sys.getrefcount(data) == before
        assert teacher.n_waiting == 4  # their places in the queue are bounded
        gate.set()
        await first
        last = await teacher.teach(SPAM, None)
        assert teacher.n_waiting == 0
        teacher.end()
        return last

    assert asyncio.run(main()).unknown == 1


@pytest.mark.usefixtures("quick_disk")
def test_a_message_that_another_process_has_moved_stays_where_it_is(tmp_path):
    path = tmp_path / "m.nbspam"
    lessons(path, (SPAM, "spam"), (HAM, "ham"))

    async def main():
        teacher = Teacher(lambda: open_served(str(path)))
        try:
            await teacher.teach(HAM, "ham")
            other = StoredModel(str(path))
            moved = other.learn([Item("-", "ham", SPAM)], day=0, classes=["ham"])
            left = await teacher.teach(SPAM, None, "", "spam")
            taken = await teacher.teach(HAM, None, "", "ham")
            return moved, left, taken
        finally:
            teacher.end()

    moved, left, taken = asyncio.run(main())
    assert (moved.moved, left.already_known, taken.unlearned) == (1, 1, 1)
    assert StoredModel(str(path)).filed(SPAM).label == "ham"
