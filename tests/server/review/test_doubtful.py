"""Doubtful messages: which are found, which labels are believed, and when it is looked again."""

import shutil
import subprocess
import time
from types import SimpleNamespace

import pytest

from nbspam.errors import InputError
from nbspam.server.page import doubtful
from nbspam.server.page.mailbox import ReviewMailbox
from nbspam.server.page.memory import Database
from nbspam.settings import SettingsChoices, chosen_settings
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from support import write_mails

N_OF_CLASS, N_WRONG = 40, 2
NOW = 1_000_000.0


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A mailbox, the path of a model that was told all of it, and the keys of wrong labels."""
    folder = tmp_path_factory.mktemp("learned")
    write_mails(folder / "mails", N_OF_CLASS)
    (folder / "box").mkdir()
    wrong, items = set(), []
    for label, other in (("ham", "spam"), ("spam", "ham")):
        for n in range(1, N_OF_CLASS + 1):
            copy = shutil.copy(
                folder / "mails" / label / f"{n}.eml", folder / "box" / f"{label}{n}"
            )
            is_wrong = n <= N_WRONG
            wrong |= {copy.name} if is_wrong else set()
            items.append(
                Item(str(copy), other if is_wrong else label, copy.read_bytes(), told=True)
            )
    path = str(folder / "m.nbspam")
    StoredModel(path, new=chosen_settings(SettingsChoices(), is_text=False)).learn(
        items, day=1, classes=["ham", "spam"]
    )
    return folder / "box", path, wrong


@pytest.fixture
def own(learned, tmp_path):
    """The same, of which a test may change everything."""
    box, path, wrong = learned
    shutil.copytree(box, tmp_path / "box")
    for part in ("", ".journal"):
        if (box.parent / f"m.nbspam{part}").exists():
            shutil.copy(f"{path}{part}", tmp_path / f"m.nbspam{part}")
    return tmp_path / "box", str(tmp_path / "m.nbspam"), wrong


def found_in(box, path, settled=None):
    return doubtful.doubtful_messages(ReviewMailbox(str(box)), StoredModel(path), settled or {})


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


def letters(box):
    return ReviewMailbox(str(box)).newest()


def looked(box, path, now=NOW):
    """Return what is known of a mailbox, with nothing done."""
    return doubtful.state(Database(path), letters(box), path, now)


def clock(*times):
    return iter(times).__next__


# ---- what is found ----


def test_wrong_labels_are_found_although_a_person_told_them(learned):
    box, path, wrong = learned
    found = found_in(box, path)
    keys = [row.key for row in found.rows]

    assert (found.n_messages, found.n_ham, found.n_spam) == (2 * N_OF_CLASS,) + 2 * (N_OF_CLASS,)
    assert sorted(keys) == sorted(wrong)
    for row in found.rows:
        assert {row.filed, row.label} == {"ham", "spam"}
        assert row.wrong > 0.5
        sign = 1 if row.label == "spam" else -1
        assert [nats * sign > 0 for _, nats in row.reasons] == [True] * 3
        assert row.subject.encode() in (box / row.key).read_bytes()


def test_a_label_that_was_confirmed_is_believed_and_another_one_is_not(learned):
    box, path, wrong = learned
    filed = {row.key: row.filed for row in found_in(box, path).rows}
    first, second = sorted(wrong & set(filed))[:2]
    settled = {first: filed[first], second: "ham" if filed[second] == "spam" else "spam"}

    keys = {row.key for row in found_in(box, path, settled).rows}
    assert first not in keys
    assert second in keys


def test_messages_that_the_model_has_not_learned_are_left_out(own):
    box, path, _ = own
    (box / "new.eml").write_bytes(b"From: a@b.example\nSubject: cheap pills\n\nbuy pills\n")
    found = found_in(box, path)

    assert (found.n_messages, found.n_ham + found.n_spam) == (2 * N_OF_CLASS + 1, 2 * N_OF_CLASS)
    assert "new.eml" not in {row.key for row in found.rows}


def test_a_lesson_in_the_journal_counts(own):
    box, path, _ = own
    row = found_in(box, path).rows[0]
    data = (box / row.key).read_bytes()
    StoredModel(path).relabel([Item("-", None, data)], row.label, day=2)

    assert row.key not in {each.key for each in found_in(box, path).rows}


@pytest.mark.parametrize("n", [0, 1])
def test_of_too_few_messages_nothing_is_doubtful(tmp_path, n):
    path = str(tmp_path / "m.nbspam")
    (tmp_path / "box").mkdir()
    model = StoredModel(path, new=chosen_settings(SettingsChoices(), is_text=False))
    for k in range(n):
        data = b"From: a@b.example\nSubject: %d\n\nlunch\n" % k
        (tmp_path / "box" / f"{k}.eml").write_bytes(data)
        model.learn([Item("-", "ham", data)], day=1, classes=["ham"])
    doubtful.look_for_doubtful(str(tmp_path / "box"), path, clock(NOW, NOW + 1))

    found = looked(tmp_path / "box", path).found
    assert found == doubtful.DoubtfulMessages(n, n, 0, ())
    assert not found.is_enough


# ---- what is kept ----


def test_what_was_found_is_kept_as_it_was(own):
    box, path, _ = own
    before = looked(box, path)
    doubtful.look_for_doubtful(str(box), path, clock(NOW, NOW + 1))
    after = looked(box, path, NOW + 1e6)

    assert (before.found, before.is_due) == (None, True)
    assert rounded(after.found) == rounded(found_in(box, path))
    assert (after.begun, after.problem) == (NOW, None)
    assert (after.is_due, after.is_running) == (False, False)


def test_it_is_looked_again_when_mail_or_lessons_have_come_and_it_has_rested(own):
    box, path, _ = own
    doubtful.look_for_doubtful(str(box), path, clock(NOW, NOW + 2))
    (box / "new.eml").write_bytes(b"From: a@b.example\nSubject: new\n\nnew\n")
    assert not looked(box, path, NOW + 2 + 19).is_due
    assert looked(box, path, NOW + 2 + 21).is_due

    doubtful.look_for_doubtful(str(box), path, clock(NOW, NOW + 2))
    assert not looked(box, path, NOW + 100).is_due
    data = (box / "new.eml").read_bytes()
    StoredModel(path).learn([Item("-", "ham", data)], day=1, classes=["ham"])
    assert looked(box, path, NOW + 100).is_due


def test_messages_of_which_a_person_has_spoken_since_or_that_are_gone_are_not_shown(own):
    box, path, _ = own
    doubtful.look_for_doubtful(str(box), path, clock(NOW, NOW + 1))
    database = Database(path)
    told, settled, gone, left, *rest = [row.key for row in looked(box, path).found.rows]
    database.tell(left, "ham", "spam", NOW - 1)
    number = database.tell(told, "ham", "spam", NOW + 1)
    doubtful.settle(database, settled, "ham", NOW + 2)
    (box / gone).unlink()

    assert [row.key for row in looked(box, path).found.rows] == [left, *rest]
    database.undo(number, NOW + 3)
    assert [row.key for row in looked(box, path).found.rows] == [told, left, *rest]


def test_one_looks_at_a_time_and_who_died_is_not_waited_for_for_ever(tmp_path):
    database = Database(str(tmp_path / "m"))
    assert doubtful.claim(database, NOW)
    assert not doubtful.claim(database, NOW + 1)
    doubtful.release(database, NOW + 1, None)  # not theirs
    assert not doubtful.claim(database, NOW + 2)
    doubtful.release(database, NOW, None)
    assert doubtful.claim(database, NOW + 3)
    assert doubtful.claim(database, NOW + 1000)


def test_a_clock_that_was_set_back_keeps_nobody_from_looking(own):
    box, path, _ = own
    doubtful.look_for_doubtful(str(box), path, clock(NOW, NOW + 2))
    (box / "new.eml").write_bytes(b"From: a@b.example\nSubject: new\n\nnew\n")
    database = Database(path)
    assert doubtful.claim(database, NOW)  # by one that died

    found = looked(box, path, NOW - 86_400)
    assert (found.is_due, found.is_running) == (True, False)
    assert doubtful.claim(database, NOW - 86_400)


# ---- the process ----


def test_the_process_looks_and_tells_errors_in_one_line(own):
    box, path, _ = own
    done = subprocess.run(
        doubtful.command(str(box), path), stdin=subprocess.PIPE, capture_output=True, check=False
    )
    # `run` closes the input at once, as a parent does that has gone.
    assert (done.returncode, looked(box, path).found) == (1, None)

    for mailbox, said in ((str(box), ""), (str(box / "none"), "no such mailbox")):
        with subprocess.Popen(
            doubtful.command(mailbox, path), stdin=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            lines = process.stderr.read().decode().splitlines()
        assert process.returncode == len(lines) == bool(said)
        assert said in "".join(lines)
    assert rounded(looked(box, path, time.time()).found) == rounded(found_in(box, path))


def test_an_error_that_nobody_foresaw_quotes_no_mail(own, monkeypatch, capsys):
    def fails(*_, **__):
        raise ValueError("words of mail")

    monkeypatch.setattr(doubtful, "find_doubts", fails)
    monkeypatch.setattr(doubtful.sys, "argv", ["", str(own[0]), own[1]])
    monkeypatch.setattr(doubtful, "Thread", lambda **_: SimpleNamespace(start=lambda: None))
    monkeypatch.setattr(doubtful.os, "nice", lambda _: None)
    with pytest.raises(SystemExit, match=r"^internal error: ValueError$"):
        doubtful.main()


def test_a_mailbox_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(InputError, match="no such mailbox"):
        doubtful.look_for_doubtful(str(tmp_path / "none"), str(tmp_path / "m"), clock(NOW, NOW))
