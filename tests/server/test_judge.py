"""The judge, who judges all that waits in one batch, and the teacher, who writes first."""

import asyncio
import os
import sys
import time
from contextlib import asynccontextmanager
from functools import partial
from threading import Event
from unittest.mock import Mock

import pytest

import nbspam
from nbspam.classifier.classifier import Classifier
from nbspam.counts.ledger import NOT_FILED
from nbspam.errors import ModelFileError, ModelWarning, NbspamError, UsageError
from nbspam.mail import addresses
from nbspam.server.choices import SERVER_LIMITS
from nbspam.server.judge import BATCH, AskedMessage, BatchJudge, Judge, UserCounts, open_served
from nbspam.server.lessons import Teacher
from nbspam.server.metrics import ServerTally
from nbspam.settings import PRESETS
from nbspam.sources.items import Item, read_items
from nbspam.store.model import StoredModel
from nbspam.verdicts import Skipped
from scripted import RULE, outcome_word, until
from serving import PATIENCE
from stored import train_on
from support import HAM, SPAM, raising


def unstored(classifier):
    """Return a model without a file, or lists beside it, which has learned nothing."""
    values = {"classifier.return_value": classifier, "filed.return_value": NOT_FILED}
    return Mock(StoredModel, path="/nonexistent/model", stamp=None, **values)


class Gated:
    """A classifier that waits with each batch until it may go on, and keeps their sizes."""

    lack = None

    def __init__(self, classifier, is_open=True):
        self.classifier = classifier
        self.table, self.settings = classifier.table, classifier.settings
        self.classes = classifier.classes
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


class Living:
    """A judge of a stored model, or of a classifier; use it in a running loop, and end it."""

    def __init__(self, model):
        self.model = model if isinstance(model, StoredModel) else unstored(model)
        self.troubles = []
        self.tally = ServerTally(1)
        self.judge = Judge(
            BatchJudge(self.model, lambda _: RULE, self.troubles.append, self.tally)
        )

    async def __aenter__(self):
        return self.judge

    async def __aexit__(self, *_):
        self.judge.end()


async def leave(ask, data):
    """Let three clients ask, and go; assert that their message goes with them."""
    before = sys.getrefcount(data)
    gone = [ask(data) for _ in range(3)]
    assert sys.getrefcount(data) == before + 3
    for each in gone:
        each.cancel()
    await asyncio.sleep(0)
    assert sys.getrefcount(data) == before


async def test_what_arrives_while_a_batch_is_judged_is_the_next_batch(mail_classifier):
    gated = Gated(mail_classifier, is_open=False)
    living = Living(gated)
    async with living as judge:
        waiting = [judge.judge(HAM)]
        await until(gated.has_begun.is_set)
        assert judge.seconds_busy > 0
        waiting += [judge.judge(SPAM) for _ in range(BATCH + 5)]
        assert judge.n_waiting == BATCH + 5
        gated.gate.set()
        await asyncio.gather(*waiting)
        await until(lambda: not judge.seconds_busy)
        waiting = []
        for _ in range(7):  # in consecutive turns of the event loop
            waiting.append(judge.judge(HAM))
            await asyncio.sleep(0)
        await asyncio.gather(*waiting)

    assert gated.sizes == [1, BATCH, 5, 7]
    assert [living.tally.total(name) for name in ("batches", "batched")] == [4, BATCH + 13]


async def test_trouble_that_cannot_be_told_costs_one_batch(mail_classifier):
    model = unstored(mail_classifier)
    judge = Judge(BatchJudge(model, lambda _: RULE, raising(MemoryError), ServerTally(1)))
    model.classifier.side_effect = ModelFileError("m: cannot be read; train it again")
    waiting = judge.judge(HAM), judge.judge(SPAM)
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert list(map(type, found)) == [MemoryError] * 2
    model.classifier.side_effect = None
    assert (await judge.judge(SPAM)).verdict.label == "spam"
    judge.end()


async def test_each_message_gets_its_own_verdict_and_one_that_fails_does_not_fail_the_others(
    mail_classifier,
):
    messages = [b"Subject: n%d\n\n" % n + (SPAM if n % 3 else HAM) for n in range(299)] + [b""]
    async with Living(mail_classifier) as judge:
        asked = [judge.judge(data, explain=n % 50 == 0) for n, data in enumerate(messages)]
        found = await asyncio.gather(*asked)

    alone = mail_classifier.classify([Item("-", None, data) for data in messages], rule=RULE)
    assert [each.verdict for each in found] == list(alone)
    assert [n for n, each in enumerate(found) if each.explanation] == list(range(0, 300, 50))

    async with Living(Gated(mail_classifier)) as judge:
        waiting = [judge.judge(data) for data in (HAM, b"our bug", SPAM, b"unreadable")]
        ham, bug, spam, unreadable = await asyncio.gather(*waiting, return_exceptions=True)

    assert (ham.verdict.label, spam.verdict.label) == ("ham", "spam")
    assert isinstance(bug, ZeroDivisionError)
    assert isinstance(unreadable, NbspamError)
    assert str(unreadable) == "it is unreadable"


async def test_a_model_that_cannot_be_read_again_goes_on_as_it_was(mail_classifier):
    living = Living(mail_classifier)
    errors = [ModelFileError("m: cannot be read; train it again"), MemoryError()]
    async with living as judge:
        for living.model.classifier.side_effect in errors:
            assert (await judge.judge(SPAM)).verdict.label == "spam"
    assert living.troubles == errors


async def test_who_has_gone_is_not_judged_and_leaves_no_message_behind(mail_classifier):
    gated, data = Gated(mail_classifier, is_open=False), bytes(bytearray(SPAM))
    living = Living(gated)
    async with living as judge:
        first = judge.judge(HAM)
        await until(gated.has_begun.is_set)
        await leave(judge.judge, data)
        assert judge.n_waiting == 3  # their places in the queue are bounded
        last = judge.judge(SPAM)
        first.cancel()  # while it is judged
        gated.gate.set()
        await last
        await leave(judge.judge, data)
        await until(lambda: not judge.n_waiting)  # and nobody is behind them
        await judge.judge(SPAM)

    assert gated.sizes == [1, 1, 1]
    assert living.tally.total("batches") == 3


async def test_a_model_is_as_old_as_its_file_is_now_or_begins_now_without_one(own_model):
    async with Living(StoredModel(str(own_model))) as judge:
        os.utime(own_model, (5, 5))  # and no mail comes
        assert judge.model_time == 5
        own_model.unlink()
        assert abs(judge.model_time - time.time()) < 60


async def test_an_explanation_says_whether_the_model_had_learned_the_message(tmp_path):
    model = StoredModel(str(tmp_path / "m"), new=PRESETS["mail"])
    model.learn([Item("-", "spam", SPAM), Item("-", "ham", HAM)], day=1, classes=["ham", "spam"])
    asked = [(SPAM, True), (SPAM + b"more", True), (HAM, False)]
    async with Living(model) as judge:
        found = await asyncio.gather(*(judge.judge(*each) for each in asked))
    assert [each.is_known for each in found] == [True, False, False]


# ---- teaching ----


@asynccontextmanager
async def teaching(path, opens=open_served):
    """Yield a teacher of the model at a path; opens: opens it."""
    found = Teacher(lambda user: opens(str(path)))
    try:
        yield found
    finally:
        found.end()


async def lessons(path, *told):
    """Return the outcome of each lesson (message, label, user), taught at once by one teacher."""
    async with teaching(path) as teacher:
        waiting = [teacher.teach(*lesson) for lesson in told]
        assert teacher.n_waiting == len(told)
        found = await asyncio.gather(*waiting)
        assert teacher.n_waiting == 0
        return found


@pytest.mark.parametrize("size", [1000, SERVER_LIMITS.message_bytes - len(SPAM)])
async def test_a_message_taught_by_the_server_is_the_one_that_the_command_line_reads(
    tmp_path, size
):
    path, data = tmp_path / "m", SPAM + (b"more words\r\n" * (size // 12 + 1))[:size]
    assert [outcome_word(each) for each in await lessons(path, (data, "spam"))] == ["learned"]
    (tmp_path / "message").write_bytes(data)
    items = read_items([str(tmp_path / "message")])
    assert StoredModel(str(path)).unlearn(items, day=0).unlearned == 1


async def test_a_lesson_of_who_has_gone_is_not_learned_and_leaves_no_message_behind(tmp_path):
    has_begun, gate, data = Event(), Event(), bytes(bytearray(SPAM))

    def held_up(path):
        has_begun.set()
        assert gate.wait(PATIENCE)
        return open_served(path)

    async with teaching(tmp_path / "m", held_up) as teacher:
        first = teacher.teach(HAM, "ham")
        assert has_begun.wait(PATIENCE)
        await leave(partial(teacher.teach, label="spam"), data)
        assert teacher.n_waiting == 4  # their places in the queue are bounded
        gate.set()
        await first
        assert outcome_word(await teacher.teach(SPAM, None)) == "unknown"
        assert teacher.n_waiting == 0


async def test_a_message_that_another_process_has_moved_stays_where_it_is(tmp_path):
    path = tmp_path / "m"
    await lessons(path, (SPAM, "spam"), (HAM, "ham"))
    async with teaching(path) as teacher:
        await teacher.teach(HAM, "ham")
        other = StoredModel(str(path)).learn([Item("-", "ham", SPAM)], day=0, classes=["ham"])
        assert outcome_word(other) == "moved"
        assert outcome_word(await teacher.teach(SPAM, None, "", "spam")) == "already_known"
        assert outcome_word(await teacher.teach(HAM, None, "", "ham")) == "unlearned"
    assert StoredModel(str(path)).filed(SPAM).label == "ham"


# ---- lists of senders ----


async def test_lists_beside_the_models_of_site_and_user_decide_and_are_read_at_once(
    own_model, tmp_path
):
    def write(text, model=own_model):
        path = model.with_name(f"{model.name}.lists")
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)

    model, troubles = open_served(str(own_model)), []
    users = UserCounts(str(tmp_path / "users"), 1 << 20, troubles.append)
    judge = Judge(BatchJudge(model, Classifier.rule.fget, troubles.append, ServerTally(1), users))

    async def label(user=""):
        found = await judge.judge(SPAM, explain=True, user=user)
        return found.verdict.label, found.listed

    sender = "x@example.com"
    assert SPAM.startswith(b"From: " + sender.encode())
    assert await label() == ("spam", None)
    write("allow to:ann@example.org\n")
    assert await label("ann@example.org") == ("ham", "allow to:ann@example.org")
    assert await label("bob") == ("spam", None)
    write(f"deny {sender}\n", tmp_path / "users" / "ann@example.org" / "model")
    assert await label("ann@example.org") == ("spam", f"deny {sender}")
    write("nonsense\n", tmp_path / "users" / "ann@example.org" / "model")
    assert await label("ann@example.org") == ("ham", "allow to:ann@example.org")  # the site's
    write("nonsense\n")
    assert await label("bob") == ("spam", None)
    told = "neither allow nor deny ADDRESS, nor trust SERVER; correct the line; until then, none"
    assert told in str(troubles[0])
    judge.end()


async def test_a_model_of_spam_alone_is_unsure_of_denied_senders_too(tmp_path):
    path = tmp_path / "model"
    StoredModel(str(path), new=PRESETS["mail"]).learn([Item("-", "spam", SPAM)], day=20_000)
    path.with_name("model.lists").write_text("deny example.com\n")
    async with Living(open_served(str(path))) as judge:
        found = await judge.judge(SPAM, explain=True)
    assert found.listed == "deny example.com"
    assert (found.verdict.label, found.explanation.verdict.label) == ("unsure", "unsure")


async def test_true_lines_and_sure_verdicts_make_lessons_that_contradict_nobody(
    own_model, monkeypatch, tmp_path
):
    monkeypatch.setattr(addresses, "_UNSURE", 0.01)  # two dozen messages are not surer
    model = open_served(str(own_model))
    judge = Judge(BatchJudge(model, Classifier.rule.fget, lambda error: None, ServerTally(1)))
    genuine = b"Authentication-Results: mx.example.org; dkim=pass header.d=example.com\n" + SPAM
    assert (await judge.judge(genuine)).verdict.posterior["spam"] > 0.99
    lists = own_model.with_name(f"{own_model.name}.lists")
    for line, data, lesson in (
        ("deny example.com", genuine, "spam"),
        ("deny example.com", SPAM, None),  # nobody vouches for the sender
        ("allow example.com", genuine, None),  # the signs contradict each other
        ("deny other.example", genuine, None),
    ):
        lists.write_text(f"trust mx.example.org\n{line}\n")
        assert (await judge.judge(data)).lesson == lesson
    judge.end()
    lists.write_text("trust mx.example.org\ndeny example.com\n")
    users = UserCounts(str(tmp_path), 1 << 20, lambda error: None)
    batches = BatchJudge(model, Classifier.rule.fget, lambda error: None, ServerTally(1), users)
    anns = StoredModel(str(tmp_path / "ann" / "model"), new=model.settings)
    for lesson in (None, "spam"):  # a user without lessons gets no files
        assert batches.judgements([AskedMessage(genuine, "ann")])[0].lesson == lesson
        anns.learn([Item("-", "spam", SPAM)], day=1)

    async with teaching(own_model) as teacher:
        told = await teacher.teach(genuine, "ham")  # a person says so
        assert outcome_word(told) == "learned"
        assert outcome_word(await teacher.teach(genuine, "spam", told=False)) == "already_known"
        other = await teacher.teach(SPAM, "spam", told=False)
        assert outcome_word(other) in "learned already_known"
    assert StoredModel(str(own_model)).filed(genuine).label == "ham"


# ---- files that change under the server ----


def label_of(model):
    (verdict,) = model.classifier().classify([Item("-", None, SPAM)])
    return verdict.label


async def test_a_model_of_other_classes_that_takes_the_place_of_one_judges_no_mail(own_model):
    async with Living(open_served(str(own_model))) as judge:
        train_on([Item("-", "a", HAM), Item("-", "b", SPAM)], own_model)
        with pytest.raises(UsageError, match="of the classes a, b; serve a model of mail, of ham"):
            await judge.judge(SPAM)


def test_a_model_that_is_overwritten_in_its_place_is_noticed_and_breaks_nothing(own_model):
    model = open_served(str(own_model))
    held = model.classifier()
    data = own_model.read_bytes()
    for written in (b"", data[:5000], bytes(len(data))):  # as cp writes it, after cutting it off
        own_model.write_bytes(written)
        with pytest.raises(ModelFileError):
            model.classifier()
        (verdict,) = held.classify([Item("-", None, SPAM)])  # a map would end the process
        assert verdict.label == "spam"
    own_model.write_bytes(data)
    assert label_of(model) == "spam"


async def test_memory_goes_back_when_a_model_was_read_again_and_once_when_a_judge_waits(
    own_model, mail_classifier, monkeypatch
):
    returned = []
    monkeypatch.setattr(nbspam.server.judge, "return_freed_memory", lambda: returned.append(1))
    async with Living(open_served(str(own_model))) as judge:
        await judge.judge(SPAM)
        assert returned == []
        own_model.write_bytes(own_model.read_bytes())
        os.utime(own_model, (1, 1))
        await judge.judge(SPAM)
        assert returned == [1]
    monkeypatch.setattr(nbspam.server.judge, "IDLE", 0.01)
    async with Living(mail_classifier) as judge:
        for number in (2, 3):
            assert not isinstance(await judge.judge(SPAM), Skipped)
            await until(lambda n=number: len(returned) == n)
            await asyncio.sleep(0.05)
            assert len(returned) == number


def test_a_journal_that_vanishes_is_told_with_the_number_of_its_lessons(own_model):
    model = open_served(str(own_model))
    model.learn([Item("-", "ham", SPAM, told=True)], day=1)
    label_of(model)
    own_model.with_name("m.nbspam.journal").unlink()
    with pytest.warns(ModelWarning, match=r"m\.nbspam\.journal: it has vanished, and 1 change"):
        label_of(model)
    label_of(model)  # it is told once
