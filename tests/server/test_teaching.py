"""The teacher: what it acknowledges is on disk."""

import asyncio

import pytest

from nbspam.server.service import opened
from nbspam.server.teaching import Teacher
from nbspam.store.model import StoredModel
from support import HAM, SPAM


def lessons(path, *pairs):
    """Return the outcome of each lesson (message, label), taught at once by one teacher."""

    async def main():
        teacher = Teacher(lambda: opened(str(path)))
        try:
            waiting = [teacher.teach(data, label) for data, label in pairs]
            assert teacher.n_waiting == len(pairs)
            found = await asyncio.gather(*waiting)
            assert teacher.n_waiting == 0
            return found
        finally:
            teacher.end()

    return asyncio.run(main())


@pytest.mark.usefixtures("quick_disk")
def test_lessons_are_done_in_their_order_and_on_disk(tmp_path):
    path = tmp_path / "m.nbspam"
    found = lessons(
        path, (HAM, "ham"), (SPAM, "ham"), (SPAM, "spam"), (SPAM, "spam"), (HAM, None), (HAM, None)
    )

    names = ("learned", "moved", "already_known", "unlearned", "unknown")
    assert [tuple(getattr(each, name) for name in names) for each in found] == [
        (1, 0, 0, 0, 0),
        (1, 0, 0, 0, 0),
        (0, 1, 0, 0, 0),
        (0, 0, 1, 0, 0),
        (0, 0, 0, 1, 0),
        (0, 0, 0, 0, 1),
    ]
    again = StoredModel(str(path)).classifier()
    assert again.table.class_count.tolist() == [0, 1]
