"""Lessons that arrive together are put on disk together, and each is as if it came alone."""

import asyncio
import os
import time
from threading import Event, Thread
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

import nbspam
from nbspam.classifier import training
from nbspam.errors import InputError, ModelFileError, SharedLogError, UsageError
from nbspam.server.judge import open_served
from nbspam.server.lessons import TaughtModels, Teacher
from nbspam.server.supervisor import fit_model
from nbspam.sharing import outbox
from nbspam.sharing.outbox import Outbox, PendingLesson
from nbspam.sources.items import Item
from nbspam.store import model as stored
from nbspam.store.model import StoredModel
from scripted import outcome_word
from serving import PATIENCE
from shared_logs import message
from support import HAM, SPAM, in_child, raising

N = 40


class Held:
    """Models that are opened only once they may be, so that lessons wait."""

    def __init__(self, *where):
        self.models, self.gate = TaughtModels(*where), Event()

    def __call__(self, user):
        assert self.gate.wait(PATIENCE)
        return self.models(user)


async def taught(teacher, models, *lessons):
    """Return what became of lessons that wait for one that is under way."""
    first = teacher.teach(HAM, "ham", "ann")
    waiting = [teacher.teach(*lesson) for lesson in lessons]
    assert teacher.n_waiting == 1 + len(waiting)
    models.gate.set()
    await first
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert teacher.n_waiting == 0
    teacher.end()
    return found


async def test_lessons_that_wait_for_one_model_take_one_write(own_model, monkeypatch):
    syncs, real = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (syncs.append(file), real(file)))
    open_served(str(own_model)).compact()
    models = Held(str(own_model), None)
    teacher, before = Teacher(models), len(syncs)
    found = await taught(teacher, models, *((message(n), "spam") for n in range(N)))

    assert [each.learned for each in found] == [1] * N
    assert len(syncs) - before < 12  # of two writes; some of them are of a fit
    again = StoredModel(str(own_model))
    assert {again.filed(message(n)).label for n in range(N)} == {"spam"}


async def test_a_group_is_as_one_lesson_after_another(own_model):
    lessons = [  # without users, all teach the site's model
        *[(message(1), "spam", "ann"), (message(1), "ham", "bob"), (message(2), None)],
        *[(message(1), "spam", "", "spam"), (message(1), "spam", "", None, False)],
        *[(message(1), "ham"), (message(1), None), (message(1), None)],
    ]
    models = Held(str(own_model), None)
    found = await taught(Teacher(models), models, *lessons)

    assert list(map(outcome_word, found)) == [
        *["learned", "moved", "unknown", "already_known", "already_known"],
        *["already_known", "unlearned", "unknown"],
    ]


async def test_a_lesson_that_cannot_be_learned_does_not_keep_others_from_it(tmp_path, mails):
    nbspam.train(mails, ledger=False).save(tmp_path / "m")
    models = Held(str(tmp_path / "m"), None)
    lessons = (SPAM, "spam"), (SPAM, None), (b"\xff\xd8\xff", "ham"), (message(1), "ham")
    spam, forgotten, picture, ham = await taught(Teacher(models), models, *lessons)

    assert (spam.learned, ham.learned) == (1, 1)
    assert isinstance(forgotten, UsageError)
    assert "has no ledger" in str(forgotten)
    assert isinstance(picture, InputError)
    assert "looks like a JPEG picture, not like mail or text; teach" in str(picture)


async def test_a_disk_that_fails_fails_each_lesson_of_the_group_once(own_model, monkeypatch):
    models, full = Held(str(own_model), None), Mock(side_effect=ModelFileError("m: no room"))
    monkeypatch.setattr(StoredModel, "learn_each", full)
    teacher = Teacher(models)
    waiting = [teacher.teach(message(n), "spam") for n in range(N)]
    models.gate.set()
    found = await asyncio.gather(*waiting, return_exceptions=True)
    teacher.end()

    assert {str(each) for each in found} == {"m: no room"}
    assert full.call_count <= 2


@pytest.mark.parametrize("n_threads", [1, 8])
async def test_lessons_of_several_users_are_learned_in_their_order(
    own_model, tmp_path, monkeypatch, n_threads
):
    users = str(tmp_path / "users")
    models = Held(str(own_model), users)
    labels = ["spam", "ham", None, "spam", "ham"]
    lessons = [(message(1), label, f"user{k}") for label in labels for k in range(12)]
    teacher = Teacher(models, True)
    if n_threads == 1:  # it has begun, and the system allows no other
        monkeypatch.setattr(Thread, "start", raising(RuntimeError("can't start new thread")))
    found = await taught(teacher, models, *lessons)

    assert [each.learned + each.moved + each.unlearned for each in found] == [1] * len(lessons)
    opened = TaughtModels(str(own_model), users)
    assert {opened(f"user{k}").filed(message(1)).label for k in range(12)} == {"ham"}


def lessons_for_the_log(n):
    return [PendingLesson(0, "", "settings", n, b"lesson", None)]


def test_what_threads_put_into_an_outbox_at_one_time_is_written_at_once_and_none_reads_then(
    tmp_path, monkeypatch
):
    found, numbers, going = Outbox(str(tmp_path / "m")), [], Event()
    real, calls = found._put, []

    def put(rows):
        calls.append(len(rows))
        assert going.wait(PATIENCE)
        return real(rows)

    monkeypatch.setattr(found, "_put", put)
    threads = [
        Thread(target=lambda n=n: numbers.append(found.put(lessons_for_the_log(n))))
        for n in range(N)
    ]
    for each in threads:
        each.start()
    while len(found._gathered) < N - 1:
        time.sleep(0.001)
    reads = Thread(target=found.size)
    reads.start()
    reads.join(0.1)
    assert reads.is_alive()
    going.set()
    for each in (reads, *threads):
        each.join()

    assert calls == [1, N - 1]
    assert sorted(numbers) == [1, *[N] * (N - 1)]
    assert found.last == N
    assert sorted(each.digest for each in found.unsent(N)) == list(range(N))
    monkeypatch.setattr(outbox, "MOST_LESSONS", N)
    with pytest.raises(SharedLogError, match="lessons wait for the log"):
        found.put(lessons_for_the_log(1))
    found.close()


async def test_a_fit_of_a_large_model_is_left_to_another_process(own_model, monkeypatch):
    monkeypatch.setattr(training, "REFIT_SHARE", 0.01)  # each lesson makes one due
    monkeypatch.setattr(stored, "_APART", 0)
    monkeypatch.setattr(os, "nice", raising(PermissionError))
    models, before = TaughtModels(str(own_model), None), own_model.read_bytes()
    assert not models.is_fit_due(lambda work: work())
    teacher = Teacher(models)
    for n in range(1, 6):
        await teacher.teach(message(n), "spam")
    teacher.end()
    model, taken_in = models(""), []
    score = model.classifier().table.n_docs

    assert own_model.read_bytes() == before
    assert models.is_fit_due(taken_in.append)
    choices = SimpleNamespace(model_path=str(own_model))
    assert in_child(lambda: fit_model(SimpleNamespace(listeners=(), choices=choices))) == 0
    assert own_model.read_bytes() != before
    assert not models.is_fit_due(raising(RuntimeError("can't start new thread")))
    assert not models.is_fit_due(taken_in.append)
    assert model.is_due  # as far as it knows
    (take_in,) = taken_in
    take_in()
    assert not model.is_due
    assert not models.is_fit_due(taken_in.append)
    assert score == model.classifier().table.n_docs
    assert StoredModel(str(own_model)).whole().table.n_docs == score


def test_a_command_without_a_server_makes_the_fits_that_are_due(own_model, monkeypatch):
    monkeypatch.setattr(training, "REFIT_SHARE", 0.01)
    monkeypatch.setattr(stored, "_APART", 0)
    before, model = own_model.read_bytes(), TaughtModels(str(own_model), None, is_server=False)("")
    model.learn([Item("-", "spam", message(1))], day=1, classes=["spam"])

    assert not model.is_due
    assert own_model.read_bytes() != before
    assert not list(own_model.parent.glob("*.served*"))


def test_models_that_are_served_in_one_process_have_the_same_arrays(own_model):
    first, second = open_served(str(own_model)), open_served(str(own_model))
    assert first.base is second.base
    first.compact()
    second.classifier()
    assert first.base is second.base
    own_model.write_bytes(own_model.read_bytes())
    os.utime(own_model, (1, 1))
    second.classifier()
    assert first.base is not second.base
    first.classifier()
    assert first.base is second.base
    assert StoredModel(str(own_model)).base is not first.base
