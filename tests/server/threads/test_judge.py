"""The judge, who judges all that waits in one batch, and the teacher, who writes first."""

import asyncio
import sys
import time
from threading import Event

import pytest

import nbspam
from nbspam.counts.memory import NOT_FILED
from nbspam.errors import ModelFileError, NbspamError, UsageError
from nbspam.server.choices import LIMITS
from nbspam.server.judge import BATCH, Judge, Teacher
from nbspam.server.metrics import ServerTally
from nbspam.server.worker import open_served
from nbspam.settings import SettingsChoices, chosen_settings
from nbspam.sources.items import Item, read_items
from nbspam.store.model import StoredModel
from nbspam.verdicts import Skipped
from scripted import RULE
from serving import PATIENCE
from support import HAM, SPAM


class Model:
    """A stored model whose classifier can be replaced, or be unreadable."""

    def __init__(self, classifier):
        self.now = classifier
        self.error = None
        self.stamp = None

    def classifier(self):
        if self.error is not None:
            raise self.error
        return self.now

    def filed(self, data):
        return NOT_FILED


class Gated:
    """A classifier that waits with each batch until it may go on, and keeps their sizes."""

    lack = None

    def __init__(self, classifier, is_open=True):
        self.classifier = classifier
        self.table = classifier.table
        self.gate = Event()
        self.has_begun = Event()
        self.sizes = []
        if is_open:
            self.gate.set()

    def classify(self, items, rule):
        self.sizes.append(len(items))
        self.has_begun.set()
        assert self.gate.wait(PATIENCE)
        if any(b"our bug" in item.data for item in items):
            raise ZeroDivisionError
        for item in items:
            if b"unreadable" in item.data:
                yield Skipped(item.name, "it is unreadable")
            else:
                yield from self.classifier.classify([item], rule=rule)


@pytest.fixture
def judged(mail_classifier):
    """Run a coroutine function with a judge of a model and the model."""

    def run(work, classifier=mail_classifier):
        async def main():
            model = Model(classifier)
            told = []
            tally = ServerTally(1)
            judge = Judge(model, lambda _: RULE, told.append, tally)
            try:
                return await work(judge, model, told), tally
            finally:
                judge.end()

        return asyncio.run(main())

    return run


def test_what_arrives_meanwhile_is_the_next_batch(judged, mail_classifier):
    gated = Gated(mail_classifier, is_open=False)

    async def work(judge, *_):
        waiting = [judge.judge(HAM)]
        assert gated.has_begun.wait(PATIENCE)
        assert judge.seconds_busy > 0
        waiting += [judge.judge(SPAM) for _ in range(BATCH + 5)]
        assert judge.n_waiting == BATCH + 5
        gated.gate.set()
        await asyncio.gather(*waiting)
        while judge.seconds_busy:
            await asyncio.sleep(0.01)

    _, tally = judged(work, gated)
    assert gated.sizes == [1, BATCH, 5]
    assert (tally.total("batches"), tally.total("batched")) == (3, BATCH + 6)


def test_each_message_gets_its_own_verdict_whatever_waits(judged, mail_classifier):
    messages = [b"Subject: n%d\n\n" % n + (SPAM if n % 3 else HAM) for n in range(299)] + [b""]

    async def work(judge, *_):
        asked = enumerate(messages)
        return await asyncio.gather(*(judge.judge(data, explain=n % 50 == 0) for n, data in asked))

    found, _ = judged(work)
    alone = mail_classifier.classify([Item("-", None, data) for data in messages], rule=RULE)
    assert [each.verdict for each in found] == list(alone)
    assert [n for n, each in enumerate(found) if each.explanation] == list(range(0, 300, 50))


def test_one_message_that_fails_does_not_fail_the_others(judged, mail_classifier):
    async def work(judge, *_):
        waiting = [judge.judge(data) for data in (HAM, b"our bug", SPAM, b"unreadable")]
        return await asyncio.gather(*waiting, return_exceptions=True)

    found, _ = judged(work, Gated(mail_classifier))
    assert found[0].verdict.label == "ham"
    assert isinstance(found[1], ZeroDivisionError)
    assert found[2].verdict.label == "spam"
    assert isinstance(found[3], NbspamError)
    assert str(found[3]) == "it is unreadable"


def test_a_model_that_cannot_be_read_again_goes_on_as_it_was(judged):
    async def work(judge, model, told):
        model.error = ModelFileError("m: cannot be read; train it again")
        found = await judge.judge(SPAM)
        return found.verdict.label, told

    (label, told), _ = judged(work)
    assert label == "spam"
    assert [str(error) for error in told] == ["m: cannot be read; train it again"]


def test_who_has_gone_is_not_judged_and_leaves_no_message_behind(judged, mail_classifier):
    gated, data = Gated(mail_classifier, is_open=False), bytes(bytearray(SPAM))

    async def work(judge, *_):
        first = judge.judge(HAM)
        assert gated.has_begun.wait(PATIENCE)
        before = sys.getrefcount(data)
        gone = [judge.judge(data) for _ in range(3)]
        assert sys.getrefcount(data) == before + 3
        for each in gone:
            each.cancel()
        await asyncio.sleep(0)
        assert sys.getrefcount(data) == before
        assert judge.n_waiting == 3  # their places in the queue are bounded
        last = judge.judge(SPAM)
        gated.gate.set()
        await asyncio.gather(first, last)

    judged(work, gated)
    assert gated.sizes == [1, 1]


def test_without_a_model_file_the_model_is_as_old_as_now(judged):
    async def work(judge, model, _):
        young = judge.model_time
        model.stamp = (1, 2, 3, 5_000_000_000)
        return young, judge.model_time

    (young, old), _ = judged(work)
    assert abs(young - time.time()) < 60
    assert old == 5


def test_an_explanation_says_whether_the_model_had_learned_the_message(tmp_path):
    model = StoredModel(str(tmp_path / "m"), new=chosen_settings(SettingsChoices(), is_text=False))
    model.learn([Item("-", "spam", SPAM), Item("-", "ham", HAM)], day=1, classes=["ham", "spam"])

    async def main():
        judge = Judge(model, lambda _: RULE, print, ServerTally(1))
        try:
            asked = [(SPAM, True), (SPAM + b"more", True), (HAM, False)]
            return await asyncio.gather(*(judge.judge(*each) for each in asked))
        finally:
            judge.end()

    assert [each.is_known for each in asyncio.run(main())] == [True, False, False]


# ---- teaching ----


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
