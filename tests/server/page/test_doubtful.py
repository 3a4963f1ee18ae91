"""Doubtful messages: which are found, when it is looked again, the process, and the page."""

import json
import shutil
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from maildirs import key_of, put, written
from markup import Page
from nbspam.errors import InputError
from nbspam.server.metrics import Log
from nbspam.server.page import doubtful
from nbspam.server.page.database import Database
from nbspam.server.page.doubtful import Doubtful, DoubtfulMessages, Doubting
from nbspam.server.page.mailbox import ReviewMailbox
from nbspam.server.page.pages import PAGE_SIZE
from nbspam.settings import PRESETS
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from serving import until
from support import HAM, SPAM, raising

N_OF_CLASS, N_WRONG = 40, 2
NOW = 1_000_000.0
NEW = b"From: a@b.example\nSubject: cheap pills\n\nbuy pills\n"


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A mailbox, the path of a model that was told all of it, and the keys of wrong labels."""
    folder = tmp_path_factory.mktemp("learned")
    (folder / "box").mkdir()
    wrong, items = set(), []
    for label, other, data in (("ham", "spam", HAM), ("spam", "ham", SPAM)):
        for n in range(1, N_OF_CLASS + 1):
            path = folder / "box" / f"{label}{n}"
            path.write_bytes(data + b"%d\n" % n)
            is_wrong = n <= N_WRONG
            wrong |= {path.name} if is_wrong else set()
            told = other if is_wrong else label
            items.append(Item(str(path), told, path.read_bytes(), told=True))
    model = StoredModel(str(folder / "m"), new=PRESETS["mail"])
    model.learn(items, day=1, classes=["ham", "spam"])
    return folder / "box", str(folder / "m"), wrong


@pytest.fixture
def own(learned, tmp_path):
    """The same, of which a test may change everything."""
    for path in learned[0].parent.iterdir():
        copy = shutil.copytree if path.is_dir() else shutil.copy
        copy(path, tmp_path / path.name)
    return tmp_path / "box", str(tmp_path / "m"), learned[2]


def found_in(box, path, settled=None):
    mailbox = ReviewMailbox(str(box), path)
    return doubtful.doubtful_messages(mailbox, StoredModel(path), settled or {})


def keys_of(found):
    return [row.key for row in found.rows]


def rounded(found):
    """Return what was found without its last digits: sums depend on where arrays lie in memory."""
    rows = [
        row._replace(
            wrong=round(row.wrong, 6),
            reasons=tuple((token, round(nats, 6)) for token, nats in row.reasons),
        )
        for row in found.rows
    ]
    return found._replace(rows=tuple(rows))


def state(box, path, now=NOW):
    """Return what is known of a mailbox, with nothing done."""
    return doubtful.last_search(ReviewMailbox(str(box), path), now)


def look(box, path, seconds=1):
    doubtful.look_for_doubtful(str(box), path, iter((NOW, NOW + seconds)).__next__, None)


# ---- what is found ----


def test_wrong_labels_are_found_although_a_person_told_them_but_not_if_confirmed(learned):
    box, path, wrong = learned
    found = found_in(box, path)

    assert (found.n_messages, found.n_ham, found.n_spam) == (2 * N_OF_CLASS,) + 2 * (N_OF_CLASS,)
    assert sorted(keys_of(found)) == sorted(wrong)
    for row in found.rows:
        assert {row.filed, row.label} == {"ham", "spam"}
        assert row.wrong > 0.5
        sign = 1 if row.label == "spam" else -1
        assert [nats * sign > 0 for _, nats in row.reasons] == [True] * 3
        assert row.subject.encode() in (box / row.key).read_bytes()

    filed = {row.key: row.filed for row in found.rows}
    first, _, second, _ = sorted(wrong & set(filed))  # copies of the first are believed, too
    settled = {first: filed[first], second: "ham" if filed[second] == "spam" else "spam"}

    keys = keys_of(found_in(box, path, settled))
    assert first not in keys
    assert second in keys


def test_messages_that_the_model_has_not_learned_are_left_out_and_its_journal_counts(own):
    box, path, _ = own
    (box / "new.eml").write_bytes(NEW)
    found = found_in(box, path)
    assert (found.n_messages, found.n_ham + found.n_spam) == (2 * N_OF_CLASS + 1, 2 * N_OF_CLASS)
    assert "new.eml" not in keys_of(found)

    row = found.rows[0]
    data = (box / row.key).read_bytes()
    StoredModel(path).relabel([Item("-", None, data)], row.label, day=2)
    assert row.key not in keys_of(found_in(box, path))


@pytest.mark.parametrize("n", [0, 1])
def test_of_too_few_messages_nothing_is_doubtful(tmp_path, n):
    path = str(tmp_path / "m")
    (tmp_path / "box").mkdir()
    for k in range(n):
        (tmp_path / "box" / f"{k}.eml").write_bytes(HAM)
        model = StoredModel(path, new=PRESETS["mail"])
        model.learn([Item("-", "ham", HAM)], day=1, classes=["ham"])
    look(tmp_path / "box", path)

    found = state(tmp_path / "box", path).found
    assert found == DoubtfulMessages(n, n, 0, ())
    assert not found.is_enough


# ---- what is kept ----


def test_what_was_found_is_kept_until_mail_or_lessons_have_come_and_it_has_rested(own):
    box, path, _ = own
    before = state(box, path)
    look(box, path)
    after = state(box, path, NOW + 1e6)

    assert (before.found, before.is_due) == (None, True)
    assert rounded(after.found) == rounded(found_in(box, path))
    assert (after.begun, after.problem) == (NOW, None)
    assert (after.is_due, after.is_running) == (False, False)

    look(box, path, 2)
    (box / "new.eml").write_bytes(NEW)
    assert [state(box, path, NOW + 2 + rest).is_due for rest in (19, 21)] == [False, True]

    look(box, path, 2)
    assert not state(box, path, NOW + 100).is_due
    StoredModel(path).learn([Item("-", "ham", NEW)], day=1, classes=["ham"])
    assert state(box, path, NOW + 100).is_due

    # One looks at a time, and who died is not waited for for ever.
    database = Database(path)
    assert doubtful.claim(database, NOW)
    assert not doubtful.claim(database, NOW + 1)
    for claimed in (NOW - 1, NOW + 1):  # not theirs
        doubtful.release(database, claimed, None)
    assert not doubtful.claim(database, NOW + 2)
    doubtful.release(database, NOW, None)
    assert doubtful.claim(database, NOW + 3)
    assert doubtful.claim(database, NOW + 1000)

    # A clock that was set back keeps nobody from looking.
    look(box, path, 2)
    (box / "newer.eml").write_bytes(NEW + b"newer\n")
    found = state(box, path, NOW - 86_400)
    assert (found.is_due, found.is_running) == (True, False)
    assert doubtful.claim(database, NOW - 86_400)


def test_messages_of_which_a_person_has_spoken_since_or_that_are_gone_are_not_shown(own):
    box, path, _ = own
    look(box, path)
    database = Database(path)
    told, settled, gone, left, *rest = keys_of(state(box, path).found)
    database.tell(left, "ham", "spam", NOW - 1)
    database.tell(told, "ham", "spam", NOW + 1)
    doubtful.note_settled(database, settled, "ham", NOW + 2)
    (box / gone).unlink()

    assert keys_of(state(box, path).found) == [left, *rest]
    database.undo(2, NOW + 3)
    assert keys_of(state(box, path).found) == [told, left, *rest]


# ---- the process ----


def test_the_process_looks_and_tells_errors_in_one_line(own):
    box, path, _ = own
    done = subprocess.run(
        doubtful.command(str(box), path), stdin=subprocess.PIPE, capture_output=True, check=False
    )
    # `run` closes the input at once, as a parent does that has gone.
    assert (done.returncode, state(box, path).found) == (1, None)

    for mailbox, said in ((str(box), ""), (str(box / "none"), "no such mailbox")):
        with subprocess.Popen(
            doubtful.command(mailbox, path), stdin=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            lines = process.stderr.read().decode().splitlines()
        assert process.returncode == len(lines) == bool(said)
        assert said in "".join(lines)
    assert rounded(state(box, path, time.time()).found) == rounded(found_in(box, path))


def test_an_error_that_nobody_foresaw_quotes_no_mail(own, monkeypatch):
    monkeypatch.setattr(doubtful, "find_doubts", raising(ValueError("words of mail")))
    monkeypatch.setattr(doubtful.sys, "argv", ["", str(own[0]), own[1]])
    monkeypatch.setattr(doubtful, "Thread", lambda **_: SimpleNamespace(start=lambda: None))
    monkeypatch.setattr(doubtful.os, "nice", lambda _: None)
    with pytest.raises(SystemExit, match=r"^internal error: ValueError$"):
        doubtful.main()
    with pytest.raises(InputError, match="no such mailbox"):
        look(own[0] / "none", own[1])


@pytest.fixture
def doubting():
    found = Doubting(Log("none", 2))
    yield found
    found.end()


def now_in(mailbox):
    return doubtful.last_search(mailbox, time.time())


def at_rest(mailbox):
    until(lambda: not now_in(mailbox).is_running)
    return now_in(mailbox)


def test_a_process_finds_what_is_filed_wrongly_in_one_mailbox_at_a_time(own, tmp_path, doubting):
    box, path, wrong = own
    first, second = (ReviewMailbox(str(box), each) for each in (path, str(tmp_path / "other")))
    doubting.begin(first)
    assert now_in(first).is_running
    for mailbox in (first, second):  # while it looks: nothing happens
        doubting.begin(mailbox)
    assert not now_in(second).is_running

    found = at_rest(first)
    assert set(keys_of(found.found)) == wrong
    assert not found.is_due
    until(lambda: doubting.begin(second) or now_in(second).is_running)


def test_a_failure_is_told_and_others_may_look_again(tmp_path, capfd, doubting, monkeypatch):
    (tmp_path / "m").write_bytes(b"no model")
    (tmp_path / "box").mkdir()
    mailbox = ReviewMailbox(str(tmp_path / "box"), str(tmp_path / "m"))
    doubting.begin(mailbox)
    found = at_rest(mailbox)
    assert (found.found, found.is_due) == (None, True)
    assert "not a model" in found.problem
    assert capfd.readouterr().err.count("doubtful messages were not looked for: ") == 1

    until(lambda: doubting._process is None)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError):
        doubting.begin(mailbox)
    found = now_in(mailbox)
    why = "no process could be started: No such file or directory"
    assert (found.is_running, found.problem) == (False, why)


def test_a_process_that_no_thread_can_wait_for_or_that_is_not_over_at_the_end_is_ended(
    own, doubting, monkeypatch, capfd
):
    mailbox = ReviewMailbox(str(own[0]), own[1])
    with monkeypatch.context() as patch:
        patch.setattr(doubtful.Thread, "start", raising(RuntimeError("can't start new thread")))
        with pytest.raises(OSError, match="can't start new thread"):
            doubting.begin(mailbox)
    assert not now_in(mailbox).is_running
    doubting.begin(mailbox)
    assert now_in(mailbox).is_running
    doubting.end()
    found = now_in(mailbox)
    assert (found.found, found.problem, found.is_running) == (None, None, False)
    doubting.begin(mailbox)  # too late
    assert not now_in(mailbox).is_running
    assert capfd.readouterr().err == ""


# ---- the page ----


@pytest.fixture
def found(box, database, monkeypatch):
    """Return the function that notes that messages were found; nobody looks for others.

    It returns the searches that were begun.
    """
    begun = []
    monkeypatch.setattr(Doubting, "begin", lambda *some: begun.append(some))
    put(box, 1)

    def keep(*rows, n_ham=7, n_spam=5):
        text = json.dumps(DoubtfulMessages(n_ham + n_spam, n_ham, n_spam, rows))
        now, of = time.time(), doubtful._fingerprint([], "")
        database.run(
            "UPDATE doubts SET of = ?, begun = ?, ended = ?, found = ?", of, now - 9, now, text
        )
        return begun

    return keep


def row(number, filed="spam", label="ham"):
    """Return a doubtful message with hostile words, which are shown as text."""
    shown, reasons = (f"{number}@a\u202e", f"number {number} <b>"), (("pi\x1bll <b>", -2.5),)
    return Doubtful(key_of(number), *shown, filed, label, 0.97, reasons)


def test_the_first_visit_begins_to_look_and_later_ones_show_doubts_none_or_trouble(
    page, box, found, database
):
    assert "Your mail is being searched; this takes" in page.shown("/doubtful").text
    ((_, mailbox),) = found()

    assert (mailbox.path, mailbox.database.path) == (str(box), database.path)

    put(box, 2)
    found(row(2, "ham", "spam"), row(1))

    assert page.rows("/doubtful") == [
        "number 2 <b> 2@a\\u202e filed as ham, and without it the model says spam (97 % sure that"
        " it is filed wrongly) pi\\x1bll <b> \N{MINUS SIGN}2.5 Spam Ham, as filed",
        "number 1 <b> 1@a\\u202e filed as spam, and without it the model says ham (97 % sure that"
        " it is filed wrongly) pi\\x1bll <b> \N{MINUS SIGN}2.5 Spam, as filed Ham",
    ]
    text = page.shown("/doubtful").text
    assert "12 messages, of which the model has learned 7 as ham and 5 as spam." in text

    for number in range(PAGE_SIZE + 1):
        put(box, number)
    found(*map(row, range(PAGE_SIZE + 1)))
    assert len(page.rows("/doubtful")) == PAGE_SIZE
    assert "These are the 100 most doubtful of 101." in page.shown("/doubtful").text

    for n_ham, words in (
        (2, "No message seems filed wrongly."),
        (1, "only from 2 of ham and 2 of spam on"),
    ):
        found(n_ham=n_ham)
        assert words in page.shown("/doubtful").text
    found(n_ham=1, n_spam=0)
    assert ": 1 message, of which the model has learned 1 as ham" in page.shown("/doubtful").text
    database.run("UPDATE doubts SET problem = ?", "m: not a model <b>")
    assert "Your mail could not be searched: m: not a model <b>" in page.shown("/doubtful").text


@pytest.mark.parametrize("label", ["ham", "spam"])
@pytest.mark.parametrize("where", ["list", "message"])
def test_a_click_teaches_and_settles_and_leads_back(page, box, found, database, label, where):
    put(box, 2)
    found(row(1), row(2), row(9))
    elsewhere, gone = {label: key_of(2)}, {label: key_of(9), "back": "doubtful=1"}
    for form, status in ((elsewhere, 303), (gone, 404)):
        assert page.tell(**form).status_code == status
    assert database.run("SELECT * FROM settled") == []
    page.tell(undo="1")
    page.get("/")
    address = "/doubtful" if where == "list" else f"/message?key={key_of(1)}&doubtful=1"
    fields = [field for _, field in page.shown(address).attributes if "hidden" in field.values()]
    form = {field["name"]: field["value"] for field in fields}
    answer = page.tell(**form | {label: key_of(1)})

    assert answer.headers["location"].partition("#")[0] == address
    text = page.shown(address).text
    assert f"Learned as {label}: number 1" in text
    assert where == "list" or "Back to the doubtful messages" in text
    assert where == "list" or "Undo Spam Ham" in text  # also the same label again
    assert page.desk.teacher.known == {written(1): label}
    assert database.run("SELECT key, label FROM settled") == [(key_of(1), label)]
    assert [each.partition(" 2@")[0] for each in page.rows("/doubtful")] == ["number 2 <b>"]
    page.tell(undo=str(database.last_told().number))
    assert len(page.rows("/doubtful")) == 2
    assert database.run("SELECT * FROM settled") == []


@pytest.mark.parametrize("path", ["/course", "/doubtful", "/"])
def test_notes_that_cannot_be_read_are_told(page, box, tmp_path, path):
    put(box, 1)
    (tmp_path / "m.review").mkdir()
    answer = page.get(path)

    assert answer.status_code == 500
    assert "This failed: " in Page(answer.text).text
    assert "m.review" in answer.text
    assert page.desk.tally.total("trouble failed") == 1
