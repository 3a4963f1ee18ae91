"""A new host starts from a snapshot, with users' models."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError

import pytest

from nbspam.errors import ModelFileError, SharedLogError, UsageError
from nbspam.server.lessons import TaughtModels
from nbspam.sharing.outbox import Outbox, share_findings
from nbspam.sharing.sharer import SharedOutlet, Sharer, join_log, snapshot
from nbspam.sources.items import Item
from nbspam.store.upkeep import BAD
from shared_logs import DAY, Host, MemoryLog, message


def test_a_snapshot_has_models_of_users_and_the_position(tmp_path):
    log, path, users = MemoryLog(), str(tmp_path / "model"), str(tmp_path / "users")
    opened = TaughtModels(path, users)
    sharer = Sharer(path, log, "mx1", opened)
    outlet = SharedOutlet(path)
    for user, label in (("", "ham"), ("ann", "spam")):
        model = outlet.attach(opened(user), user)
        model.learn([Item("-", label, message(1))], day=DAY, classes=[label])
    folder, to, theirs = (str(tmp_path / name) for name in ("start", "new/model", "new/users"))
    (tmp_path / "users" / "bob" / "model").mkdir(parents=True)
    with pytest.raises(ModelFileError, match="bob/model: a folder; give a model"):
        snapshot(sharer, folder, ["ann", "bob"])
    place = snapshot(sharer, folder, ["ann"])  # nothing of the other is left
    with pytest.raises(UsageError, match="has models of users; say with --users where they go"):
        join_log(folder, to, None)
    owner = os.geteuid() or 12345  # root joins for the owner of the folder
    os.chown(tmp_path, owner, -1)
    joined = join_log(folder, to, theirs)
    assert {path.stat().st_uid for path in (tmp_path / "new").rglob("*")} == {owner}
    new = TaughtModels(to, theirs)

    assert place.n_read == joined.n_read == 2
    assert new("").filed(message(1)).label == "ham"
    assert new("ann").filed(message(1)).label == "spam"
    assert share_findings(to)[0].text == "2 records of the log read, 0 lessons in the outbox"
    for name, why in (("a" * 300, "name is too long"), ("Ann", "not the name of a user")):
        with pytest.raises(UsageError, match=why):
            TaughtModels(to, theirs)(name)
    assert os.stat(f"{to}.share").st_mode & 0o077 == 0
    sharer.outbox.close()
    outlet.outbox.close()


def test_lessons_of_users_are_shared_and_not_passed_over_without_a_folder_of_users(tmp_path):
    log, path = MemoryLog(), str(tmp_path / "two" / "model")
    host = Host(tmp_path / "one", "model", log)
    host.teach(message(1), "ham")
    anns = host.outlet.attach(host.opened("ann"), "ann")
    anns.learn([Item("-", "spam", message(2))], day=DAY, classes=["spam"])
    host.sharer.exchange()
    for users in (None, str(tmp_path / "users")):
        opened = TaughtModels(path, users)
        sharer = Sharer(path, log, "two", opened)
        if users is None:
            with pytest.raises(SharedLogError, match="of user 'ann'; serve with --users DIR, lik"):
                sharer.exchange()
        else:
            sharer.exchange()
            assert opened("ann").filed(message(2)).label == "spam"
        assert [opened("").filed(message(n)).label for n in (1, 2)] == ["ham", None]
        sharer.outbox.close()


def test_a_snapshot_needs_a_moment_without_lessons(host, tmp_path, monkeypatch):
    host.teach(message(1), "ham")
    monkeypatch.setattr(host.sharer, "exchange", lambda: None)
    monkeypatch.setattr("nbspam.sharing.sharer._TRIES", 2)

    with pytest.raises(SharedLogError, match="new lessons keep arriving; try again when fewer"):
        snapshot(host.sharer, str(tmp_path / "start"), [])


def test_what_cannot_be_joined_or_used_is_one_line(tmp_path):
    path, start = str(tmp_path / "model"), tmp_path / "start"
    (start / "users").mkdir(parents=True)
    Outbox(str(start / "model")).close()
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "link.share").symlink_to(tmp_path / "theirs")
    with pytest.raises(ModelFileError, match="new: Not a directory; make room, and join again"):
        join_log(str(start), str(tmp_path / "new"), str(tmp_path / "file" / "users"))
    with pytest.raises(ModelFileError, match="share: Not a directory; make its folder writable"):
        Outbox(str(tmp_path / "file" / "model"))
    with pytest.raises(ModelFileError, match=r"link\.share: a symbolic link"):
        Outbox(str(tmp_path / "link"))
    assert not (tmp_path / "theirs").exists()

    for damaged in (start / "model.share", tmp_path / "model.share"):
        damaged.write_bytes(bytes(5000))
    with pytest.raises(ModelFileError, match=r"start/model\.share: file is not a database; make"):
        join_log(str(start), str(tmp_path / "new"), str(tmp_path / "users"))
    (finding,) = share_findings(path)
    assert finding.state == BAD
    assert "model.share: file is not a database; make room or restore it" in finding.text
    (tmp_path / "model.share").unlink()
    Outbox(path).close()
    whole = (tmp_path / "model.share").read_bytes()
    (tmp_path / "model.share").write_bytes(whole.replace(b"CREATE ", b"CREAT\xff "))
    (finding,) = share_findings(path)
    assert (finding.state, "make room or restore it" in finding.text) == (BAD, True)


def test_what_opens_an_outbox_again_leaves_it_to_its_first_user(tmp_path, monkeypatch):
    path = str(tmp_path / "model")
    first, again = Outbox(path), Outbox(path)
    other = f"from nbspam.sharing.outbox import Outbox; Outbox({path!r}).close()"
    subprocess.run([sys.executable, "-c", other], check=True)
    assert (tmp_path / "model.share-wal").exists()  # else later lessons go into a removed file
    first.close()
    again.close()

    # Two first lessons at once open one.
    outlet, both = SharedOutlet(path), Barrier(2)

    class SlowOutbox(Outbox):
        def __init__(self, path):
            with suppress(BrokenBarrierError):
                both.wait(0.2)  # for a thread that opens another one
            super().__init__(path)

    monkeypatch.setattr("nbspam.sharing.sharer.Outbox", SlowOutbox)
    with ThreadPoolExecutor() as threads:
        first, second = threads.map(lambda _: outlet.outbox, range(2))
    assert first is second
    first.close()
