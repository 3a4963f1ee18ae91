"""What the page remembers: verdicts, what people said, several workers, a damaged file."""

import os
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from nbspam.errors import ModelFileError
from nbspam.server.page import database as stored
from nbspam.server.page.database import Database, MessageFilter, SeenMessage
from support import ROOT, raising


def seen(key, arrived=0.0, label="ham", **more):
    spam = {"ham": 0.1, "unsure": 0.5, "spam": 0.9}[label]
    row = SeenMessage(key, arrived, 0, f"{key}@a.example", f"about {key}", label, spam, (), 100.0)
    return row._replace(**more)


def keys(database, start=0, number=99, **wanted):
    return [row.key for row in database.listed(MessageFilter(**wanted), start, number)]


# ---- messages ----


def test_what_is_noted_is_listed_as_it_was_and_a_newer_verdict_replaces_the_old_one(database):
    row = seen("a", 7.5, "spam", reasons=(("pi\x1bll \u202e", 2.25), ("tea", -0.5)), place=3)
    row = row._replace(learned=12.0, is_known=True)
    database.note([row])

    assert database.listed(MessageFilter(), 0, 9) == [row]
    newer = row._replace(label="ham", judged=101.0)
    database.note([newer])
    assert database.listed(MessageFilter(), 0, 9) == [newer]


def test_the_newest_come_first_or_the_most_unsure(database):
    old, new = seen("old", 1.0, "unsure"), seen("new", 3.0, "spam")
    later, sooner = (seen(key, 2.0, place=n) for n, key in ((2, "later"), (1, "sooner")))
    database.note([old, new, later, sooner._replace(probability=0.3)])

    assert keys(database) == ["new", "later", "sooner", "old"]
    assert keys(database, order="unsure") == ["old", "sooner", "new", "later"]
    assert keys(database, start=1, number=2) == ["later", "sooner"]


def test_a_search_is_for_all_words_in_any_case_and_for_a_verdict(database):
    # As a Mac writes Ä, and with a wide %.
    a = seen("a", 3.0, "spam", sender="A\u0308RZTE <x@b.example>", subject="100\uff05_sure")
    b = seen("b", 2.0, "ham", sender="Ann", subject="It's 'quoted' -- OR 1=1")
    database.note([a, b])

    for words, label, found in (
        ("ärzte 100%_", None, ["a"]), ("b.example sure", "ham", []),
        ("' OR 1=1 --", None, ["b"]), ("%", None, ["a"]), ("", "ham", ["b"]),
        ("  ", None, ["a", "b"]),
    ):  # fmt: skip
        assert keys(database, words=words, label=label) == found
    assert database.count(MessageFilter("ann")) == 1


def test_the_verdict_before_a_person_spoke_stays_until_that_is_undone(database):
    database.note([seen("a", judged=10.0), seen("b", judged=10.0)])
    database.tell("a", "spam", None, 11.0)

    assert database.judged_since(20.0, 0.0, {"a", "b"}) == {"a"}
    assert keys(database, order="unsure") == ["b", "a"]
    database.undo(1, 12.0)
    assert database.judged_since(20.0, 0.0, {"a", "b"}) == set()


def test_no_verdict_holds_after_much_was_learned_or_the_clock_was_set_back(database):
    database.note([seen("few", learned=10.0), seen("many", learned=1000.0)])
    found = [database.judged_since(0.0, now, {"few", "many"}) for now in (11.0, 12.0, 1050.0)]
    assert found == [{"few"}, set(), {"many"}]

    database.note([seen("now", judged=time.time()), seen("later", judged=time.time() + 3600)])
    assert database.judged_since(100.0, 0.0, {"now", "later"}) == {"now"}


def test_messages_that_have_left_the_mailbox_are_not_listed_until_they_are_back(database):
    database.note([seen("a", judged=10.0), seen("b", judged=20.0)])

    assert database.judged_since(10.0, 0.0, {"b", "c"}) == {"b"}
    assert keys(database) == ["b"]
    assert database.judged_since(15.0, 0.0, {"a", "b", "c"}) == {"b"}
    assert sorted(keys(database)) == ["a", "b"]
    database.tell("a", "spam", None, 21.0)
    database.note([seen("c", judged=21.0 + 90 * 86_400)])  # long after
    assert database.judged_since(0.0, 0.0, {"c"}) == {"c"}
    assert keys(database) == ["c"]
    assert [database.find(key) is not None for key in "abc"] == [True, False, True]


def test_what_was_said_last_counts_and_undo_goes_back_step_by_step(database):
    database.note([seen("a"), seen("b")])
    database.tell("a", "spam", None, 1.0, ".Unsure")
    database.tell("b", "ham", None, 2.0)
    database.tell("a", "ham", "spam", 3.0)

    assert database.told(3) == database.last_told()
    assert database.told(1) is database.told(99) is None  # something was said later
    steps = []
    while told := database.last_told():
        shown = {row.key: row.told for row in database.listed(MessageFilter(), 0, 9)}
        steps.append((told.key, told.label, told.before, shown["a"], shown["b"]))
        assert database.told(told.number) == told
        database.undo(told.number, 4.0)

    assert steps == [
        ("a", "ham", "spam", "ham", "ham"),
        ("b", "ham", None, "spam", "ham"),
        ("a", "spam", None, "spam", None),
    ]
    assert {row[-2:] for row in database.listed(MessageFilter(), 0, 9)} == {(None, None)}
    assert database.told(1) is None


# ---- the file ----


def test_several_threads_and_databases_write_at_the_same_time_and_only_the_owner_reads(tmp_path):
    (tmp_path / "m").write_bytes(b"")
    (tmp_path / "m").chmod(0o644)

    def write(number):
        own = Database(str(tmp_path / "m"))
        own.note([seen(f"{number}.{i}") for i in range(20)])
        own.tell(f"{number}.0", "spam", None, float(number))
        return own.last_told(f"{number}.0").number

    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(write, range(16)))

    assert sorted(numbers) == list(range(1, 17))
    assert Database(str(tmp_path / "m")).count(MessageFilter()) == 320
    modes = {path.stat().st_mode & 0o777 for path in tmp_path.glob("m.review*")}
    assert modes == {0o600}


def test_what_was_told_is_there_after_a_crash(tmp_path):
    program = (
        "import os, sys\n"
        "from nbspam.server.page.database import Database\n"
        "Database(sys.argv[1]).tell('a', 'spam', None, 1.0)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program, str(tmp_path / "m")]

    assert subprocess.run(command, env=environment, check=False).returncode == -9
    assert Database(str(tmp_path / "m")).last_told()[2:] == ("a", "spam", None, None)


def damages(path):
    """Yield what there may be in the place of the file."""
    yield b"not SQLite at all" * 1000
    with sqlite3.connect(path.with_name("other")) as other:
        other.execute("CREATE TABLE recipes (name TEXT)")
    other.close()
    yield path.with_name("other").read_bytes()
    Database(str(path.with_name("o"))).note([seen("old")])
    whole = path.with_name("o.review").read_bytes()
    yield whole[:4096] + bytes(8192)
    yield whole.replace(b"CREATE ", b"CREAT\xff ")  # SQLite's error repeats it


def test_a_damaged_file_is_put_aside_and_a_new_one_begun(tmp_path, database):
    path = tmp_path / "m.review"
    for data in damages(path):
        path.write_bytes(data)
        database.note([seen("a")])
        assert keys(database) == ["a"]
        assert (tmp_path / "m.review.damaged").read_bytes() == data


def test_a_damaged_text_a_full_disk_and_a_link_are_told(tmp_path, database, monkeypatch):
    database.note([seen("a")])
    database.run("UPDATE seen SET reasons = '?'")
    with pytest.raises(ModelFileError, match=r"m\.review: .*; --web keeps its notes there; free"):
        database.find("a")
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
    with monkeypatch.context() as patch:
        patch.setattr(stored, "_connection", raising(error))
        with pytest.raises(
            ModelFileError, match=r"m.review: the disk is full, or it fails; --web"
        ):
            database.last_told()

    for path in tmp_path.glob("m.review*"):
        path.unlink()
    (tmp_path / "theirs").write_bytes(b"")
    (tmp_path / "m.review").symlink_to(tmp_path / "theirs")
    with pytest.raises(ModelFileError, match=r"m.review: a symbolic link"):
        database.note([seen("a")])
    assert (tmp_path / "theirs").read_bytes() == b""


def test_a_file_that_another_program_holds_is_told_and_kept(tmp_path, database, monkeypatch):
    monkeypatch.setattr("nbspam.server.page.database._WAIT", 0.1)
    database.note([seen("a")])
    holder = sqlite3.connect(tmp_path / "m.review", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")

    with pytest.raises(ModelFileError, match="is locked; --web keeps its notes there; free it"):
        database.note([seen("b")])
    holder.execute("ROLLBACK")
    holder.close()
    assert keys(database) == ["a"]
    # Another worker may have made it just now.
    held = sqlite3.OperationalError("database is locked")
    held.sqlite_errorcode = sqlite3.SQLITE_BUSY
    errors = iter((FileNotFoundError(), held))
    monkeypatch.setattr(stored, "_connection", lambda _: raising(next(errors))())
    with pytest.raises(ModelFileError, match="is locked"):
        database.last_told()
    assert not (tmp_path / "m.review.damaged").exists()
