"""Moves by the page: where mail goes, what `nbspam sort` makes of it, and crashes at any step."""

import os
import subprocess
import sys
import time
from functools import partial

import pytest

from maildirs import DAY, Maildir, ham, spam
from nbspam.errors import InputError, ModelFileError, UsageError
from nbspam.mail.maildir import INBOX, Left, read_note
from nbspam.server.review import filing as module
from nbspam.server.review.filing import Filing
from nbspam.server.review.mailbag import Mailbag
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from nbspam.store.open import load_tokens
from support import ROOT


@pytest.fixture
def maildir(tmp_path, trained):
    return Maildir(tmp_path / "Maildir", trained)


def filing_of(maildir):
    return Filing(Mailbag(str(maildir.root)))


def teach(maildir, data, label):
    """Teach the model as the page does; None un-learns."""
    model = StoredModel(str(maildir.model))
    if label is None:
        return model.unlearn([Item("-", None, data)], day=DAY)
    return model.learn([Item("-", label, data, told=True)], day=DAY, classes=[label])


def classes(maildir):
    """Return how many messages of ham and of spam the model has learned."""
    return load_tokens(str(maildir.model)).table.class_count.tolist()


def places(maildir):
    return {base: left.place for base, left in read_note(str(maildir.root)).items()}


# ---- where mail goes ----


def test_spam_goes_to_the_folder_of_spam_and_ham_to_the_inbox(maildir):
    maildir.put("new/1.h", ham(1))
    maildir.put("cur/2.h,S=9:2,FS", ham(2))
    maildir.put(".Spam/cur/3.h:2,S", spam(3))
    maildir.put(".Unsure/new/4.h", ham(4))
    maildir.put(".Unsure/new/5.h", spam(5))
    filing = filing_of(maildir)
    told = [("1.h", "spam"), ("2.h,S=9", "spam"), ("3.h", "ham"), ("4.h", "ham"), ("5.h", "spam")]

    before = [filing.leaves(key, label) for key, label in told]
    assert [filing.file(key, label) for key, label in told] == before
    assert before == [INBOX, INBOX, ".Spam", ".Unsure", ".Unsure"]
    assert maildir.files == {
        ".Spam/new/1.h": ham(1),
        ".Spam/cur/2.h,S=9:2,FS": ham(2),
        "cur/3.h:2,S": spam(3),
        "new/4.h": ham(4),
        ".Spam/new/5.h": spam(5),
    }
    assert [filing.leaves(key, label) for key, label in told] == [None] * 5
    assert [filing.file(key, label) for key, label in told] == [None] * 5


def test_what_is_put_back_is_where_it_was(maildir):
    files = {"new/1.h": ham(1), ".Spam/cur/2.h:2,S": spam(2), ".Unsure/new/3.h": ham(3)}
    for path, data in files.items():
        maildir.put(path, data)
    filing = filing_of(maildir)
    told = {"1.h": "spam", "2.h": "ham", "3.h": "spam"}
    folders = {key: filing.file(key, label) for key, label in told.items()}

    assert [filing.put_back(key, folder) for key, folder in folders.items()] == [True] * 3
    assert maildir.files == files
    assert [filing.put_back(key, folder) for key, folder in folders.items()] == [False] * 3


def test_junk_is_the_folder_of_spam_if_it_is_there(maildir):
    for part in ("cur", "new"):
        (maildir.root / ".Junk" / part).mkdir(parents=True)
    maildir.put("new/1.h", spam(1))
    filing = filing_of(maildir)

    assert filing.file("1.h", "spam") == INBOX
    assert set(maildir.files) == {".Junk/new/1.h"}
    assert filing.put_back("1.h", INBOX)


def test_what_is_not_there_or_has_no_place_stays(maildir):
    maildir.put("new/1.h", ham(1))
    maildir.put(".Sent/new/2.h", ham(2))
    filing = filing_of(maildir)
    files = maildir.files

    assert filing.file("1.h", "travel") is None
    for key in ("2.h", "gone", "", "../new/1.h", "%31.h", "\udc80", "1.h:2,", "\0"):
        assert filing.leaves(key, "spam") is None
        assert filing.file(key, "spam") is None
    for folder in (".Sent", "../x", "tmp", ".Junk"):
        assert not filing.put_back("1.h", folder)
    assert maildir.files == files
    assert not (maildir.root / "nbspam-sorted").exists()


def test_nothing_is_overwritten(maildir):
    maildir.put("new/1.h", ham(1))
    maildir.put(".Spam/cur/1.h:2,S", b"another of this name")
    files = maildir.files

    assert filing_of(maildir).file("1.h", "spam") is None
    assert maildir.files == files


def test_any_name_can_be_moved(maildir):
    name = os.fsdecode(b"1.caf\xe9 %41,S=9")
    maildir.put(f"new/{name}", ham(1))
    mailbag = Mailbag(str(maildir.root))
    (letter,) = mailbag.newest()

    assert Filing(mailbag).file(letter.key, "spam") == INBOX
    assert maildir.files == {f".Spam/new/{name}": ham(1)}
    assert maildir.sort().learned == []
    assert dict(mailbag.read([letter.key])) == {letter.key: ham(1)}


def test_what_vanishes_just_before_it_is_moved_is_left_alone(maildir, monkeypatch):
    maildir.put("new/1.h", ham(1))
    maildir.sort()
    found = module.entries

    def late(root, folder):
        yield from found(root, folder)
        if folder == ".Unsure":
            maildir.rename("new/1.h", "cur/1.h:2,S")

    monkeypatch.setattr(module, "entries", late)
    before = places(maildir)
    assert filing_of(maildir).file("1.h", "spam") is None
    assert list(maildir.files) == ["cur/1.h:2,S"]
    assert places(maildir) == before


# ---- what sort makes of it ----


@pytest.mark.parametrize("sorted_before", [True, False], ids=["sorted", "unknown"])
@pytest.mark.parametrize("sorted_between", [True, False], ids=["between", "after"])
@pytest.mark.parametrize(
    ("path", "data", "label", "moved"),
    [
        ("new/1.h", ham(1), "spam", ".Spam/new/1.h"),
        (".Spam/new/1.h", spam(1), "ham", "new/1.h"),
        (".Spam/cur/1.h:2,S", spam(1), "ham", "cur/1.h:2,S"),
        (".Unsure/new/1.h", ham(1), "spam", ".Spam/new/1.h"),
    ],
    ids=["to spam", "to ham", "read ham", "from unsure"],
)
def test_sort_takes_neither_a_move_nor_its_undoing_for_the_users_own(
    maildir, sorted_before, sorted_between, path, data, label, moved
):
    maildir.put(path, data)
    if sorted_before:
        maildir.sort()
        assert set(maildir.files) == {path}
    counts = classes(maildir)
    filing = filing_of(maildir)

    teach(maildir, data, label)
    folder = filing.file("1.h", label)
    taught = classes(maildir)
    if sorted_between:
        report = maildir.sort()
        assert (report.learned, report.judged) == ([], [])
    assert (set(maildir.files), classes(maildir)) == ({moved}, taught)

    assert filing.put_back("1.h", folder)
    teach(maildir, data, None)
    for _ in range(2):
        report = maildir.sort()
        assert (report.learned, report.judged) == ([], [])
    assert (maildir.files, classes(maildir)) == ({path: data}, counts)


def test_what_a_user_moves_after_us_still_teaches(maildir):
    maildir.put("new/1.h", ham(1))
    maildir.sort()
    filing = filing_of(maildir)
    filing.file("1.h", "spam")
    maildir.rename(".Spam/new/1.h", "cur/1.h:2,S")
    assert [(one.name, one.label) for one in maildir.sort().learned] == [("cur/1.h:2,S", "ham")]

    filing.file("1.h", "spam")
    filing.put_back("1.h", INBOX)
    maildir.rename("cur/1.h:2,S", ".Spam/cur/1.h:2,S")
    assert [one.label for one in maildir.sort().learned] == ["spam"]


def test_what_sort_knows_of_other_messages_stays(maildir):
    for n in range(4):
        maildir.put(f"new/{n}.h", spam(n) if n % 2 else ham(n))
    maildir.sort()
    filing = filing_of(maildir)
    before = places(maildir)

    filing.file("0.h", "spam")
    assert places(maildir) == {**before, "0.h": "spam"}
    filing.put_back("0.h", INBOX)
    assert places(maildir) == before


# ---- crashes ----


@pytest.mark.parametrize("sorted_before", [True, False], ids=["sorted", "unknown"])
@pytest.mark.parametrize("undone", [False, True], ids=["tell", "undo"])
@pytest.mark.parametrize("path", ["new/1.h", ".Spam/new/1.h", ".Unsure/new/1.h"])
@pytest.mark.parametrize("step", range(6))
def test_a_crash_at_any_step_loses_no_mail_and_no_lesson(
    maildir, monkeypatch, sorted_before, undone, path, step
):
    data, label = (spam(1), "ham") if "Spam" in path else (ham(1), "spam")
    maildir.put(path, data)
    if sorted_before:
        maildir.sort()
    filing = filing_of(maildir)
    teach(maildir, data, label)
    if undone:
        assert filing.file("1.h", label) is not None
        act, goal = partial(filing.put_back, "1.h", path.removesuffix("new/1.h").rstrip("/")), path
    else:
        act, goal = partial(filing.file, "1.h", label), "new/1.h"
        goal = goal if label == "ham" else f".Spam/{goal}"
    taught = classes(maildir)
    steps = iter(range(step + 1))

    def crashing(function):
        """Let a function be killed before it is called, or after."""

        def call(*arguments):
            if next(steps, None) == step:
                raise KeyboardInterrupt
            found = function(*arguments)
            if next(steps, None) == step:
                raise KeyboardInterrupt
            return found

        return call

    with monkeypatch.context() as patch:
        for name in ("move", "write_note"):
            patch.setattr(module, name, crashing(getattr(module, name)))
        with pytest.raises(KeyboardInterrupt):
            act()

    assert list(maildir.files.values()) == [data]
    report = maildir.sort()
    assert report.learned == []
    assert (list(maildir.files.values()), classes(maildir)) == ([data], taught)
    act()
    assert list(maildir.files) == [goal]
    assert maildir.sort().learned == []


def test_a_move_that_was_broken_off_is_taken_as_it_is(maildir):
    for place in ("new/1.h", ".Spam/new/2.h"):
        maildir.put(place, ham(1) if "1" in place else spam(2))
    note = b"moving 0123456789abcdef 1.h\nmoving 0123456789abcdef 2.h\n"
    (maildir.root / "nbspam-sorted").write_bytes(note)

    report = maildir.sort()

    assert (report.learned, report.judged) == ([], [])
    digest = "0123456789abcdef"
    assert read_note(str(maildir.root)) == {
        "1.h": Left("ham", digest),
        "2.h": Left("spam", digest),
    }


def test_sorters_and_the_page_at_once_lose_nothing(maildir):
    messages = {f"{n}.h": ham(n) for n in range(12)}
    for name, data in messages.items():
        maildir.put(f"new/{name}", data)
    maildir.sort()
    program = "import sys\nfrom nbspam.cli.main import main\nmain()\n"
    command = [sys.executable, "-c", program, "sort", "-q", "-m", maildir.model, maildir.root]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    sorters = [subprocess.Popen(command, env=environment) for _ in range(2)]
    filing = filing_of(maildir)
    for name in messages:
        assert filing.file(name, "spam") == INBOX
    for name in list(messages)[::2]:
        assert filing.put_back(name, INBOX)

    assert [sorter.wait(60) for sorter in sorters] == [0, 0]
    assert maildir.sort().learned == []
    assert maildir.files == {
        (".Spam/" if n % 2 else "") + f"new/{n}.h": messages[f"{n}.h"] for n in range(12)
    }
    assert maildir.n_learned() == 4


# ---- what cannot be moved ----


def test_a_sorter_that_takes_long_is_not_waited_for(maildir, monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE", 0.1)
    maildir.put("new/1.h", ham(1))
    program = (
        "import sys, time\nfrom nbspam.disk import locked\n"
        "with locked(sys.argv[1]): print('held', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", program, maildir.root / "nbspam-sorted"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as holder:
        holder.stdout.readline()
        begun = time.monotonic()
        with pytest.raises(ModelFileError, match=r"nbspam-sorted: locked by another process for"):
            filing_of(maildir).file("1.h", "spam")
        holder.kill()
    assert time.monotonic() - begun < 30
    assert list(maildir.files) == ["new/1.h"]
    assert filing_of(maildir).file("1.h", "spam") == INBOX


def test_a_folder_that_is_a_link_is_no_place_for_mail(maildir, tmp_path):
    for part in ("cur", "new"):
        (tmp_path / "theirs" / part).mkdir(parents=True)
    (tmp_path / "theirs/new/9.h").write_bytes(spam(9))
    (maildir.root / ".Spam").symlink_to(tmp_path / "theirs")
    maildir.put("new/1.h", ham(1))
    filing = filing_of(maildir)

    with pytest.raises(InputError, match=r"\.Spam: not moved there, as it is elsewhere by a link"):
        filing.file("1.h", "spam")
    assert filing.file("9.h", "ham") is None
    assert list(maildir.files) == ["new/1.h"]


def test_a_disk_that_refuses_is_an_error_in_one_line(maildir, monkeypatch):
    maildir.put("new/1.h", ham(1))

    def full(*arguments):
        raise OSError(28, "No space left on device", "x")

    monkeypatch.setattr(module, "write_note", full)
    with pytest.raises(InputError, match="x: No space left on device; nothing is lost"):
        filing_of(maildir).file("1.h", "spam")
    assert list(maildir.files) == ["new/1.h"]


def test_only_a_maildir_can_be_moved_in(tmp_path):
    (tmp_path / "1.eml").write_bytes(ham(1))

    with pytest.raises(
        UsageError, match=r"no Maildir, and only in one can messages be moved; give"
    ):
        Filing(Mailbag(str(tmp_path)))
