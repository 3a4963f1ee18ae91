"""Files of our own: locked by one, replaced at once, and never written through a link."""

import errno
import os
import shutil
import signal
import stat
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from nbspam import disk
from nbspam.disk import locked, open_own, read_own, remove_leftovers, replacing, resolved
from nbspam.errors import InputError, ModelFileError, ModelWarning
from nbspam.printing import watched
from nbspam.store.open import keep_old_model
from nbspam.workers import ordered_map
from support import HAM, ROOT, SPAM, complains, in_child, raising


@pytest.fixture
def target(tmp_path):
    path = tmp_path / "m"
    path.write_bytes(b"")
    return path


def hold(inside, path):
    """Take the lock again and again; fails if there is another holder."""
    for _ in range(30):
        with locked(path):
            os.close(os.open(inside, os.O_CREAT | os.O_EXCL))
            time.sleep(0.001)
            os.unlink(inside)


def test_of_processes_and_threads_only_one_holds_the_lock(target, tmp_path):
    (tmp_path / "link").symlink_to(target.name)
    paths = [str(target), str(target), resolved(str(tmp_path / "link"))]
    work = partial(hold, tmp_path / "inside")
    assert list(ordered_map(work, paths, 3)) == [None] * 3
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(work, paths)) == [None] * 3


def test_a_lock_dies_with_its_process(tmp_path):
    path = str(tmp_path / "new" / "m")

    def killed():
        with locked(path):
            os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(killed) == -signal.SIGKILL
    with locked(path, patience=1):
        pass


def test_whoever_waits_for_a_lock_may_give_up(target):
    with locked(str(target)):
        first, begun = os.stat(f"{target}.lock").st_ino, time.monotonic()
        with pytest.raises(ModelFileError, match=r"m: locked by another process for 0.1 seconds"):
            locked(str(target), patience=0.1).__enter__()
        assert time.monotonic() - begun >= 0.1
    with locked(str(target), patience=0.1):  # the file stays: all writers lock the same one
        assert os.stat(f"{target}.lock").st_ino == first


def test_a_person_who_waits_for_a_lock_is_told_why(target, monkeypatch):
    monkeypatch.setattr(disk, "_SILENCE", 0.1)
    with ThreadPoolExecutor(1) as pool, watched(lambda things, *_: iter(things)):
        with locked(str(target)):
            waits = pool.submit(locked(str(target)).__enter__)
            with pytest.warns(ModelWarning, match="m: locked by another process; waiting for it"):
                time.sleep(0.5)
        waits.result(5)


def test_a_lock_that_cannot_be_made_is_an_error_of_ours_and_others_stay_what_they_are(target):
    with pytest.raises(ModelFileError, match="cannot be written: Not a directory; "):
        locked(str(target / "m")).__enter__()
    with pytest.raises(FileNotFoundError), locked(str(target)):
        raise FileNotFoundError
    with locked(str(target)):
        pass


def test_a_new_file_is_on_disk_before_it_has_its_name_and_its_folder_after(tmp_path, monkeypatch):
    done, replace = [], os.replace

    def fsync(descriptor):
        found = os.fstat(descriptor)
        done.append("folder" if stat.S_ISDIR(found.st_mode) else f"{found.st_size} bytes")

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "fchown", raising(OSError(errno.EINVAL, "no such owner here")))
    monkeypatch.setattr(os, "replace", lambda *paths: done.append("name") or replace(*paths))
    with replacing(str(tmp_path / "m")) as file:
        file.write(b"new")

    assert (tmp_path / "m").read_bytes() == b"new"
    assert done == ["3 bytes", "name", "folder"]


@pytest.mark.parametrize(("error", "rest"), [(None, []), (OSError(errno.ENOTTY, "none"), [7])])
def test_on_a_mac_a_file_is_forced_past_the_cache_of_the_drive(error, rest, monkeypatch):
    calls, synced = [], []

    def fcntl(*call):
        calls.append(call)
        if error:
            raise error

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setitem(sys.modules, "fcntl", SimpleNamespace(F_FULLFSYNC=51, fcntl=fcntl))
    monkeypatch.setattr(os, "fsync", synced.append)
    disk.sync_file(7)
    assert (calls, synced) == ([(7, 51)], rest)


OURS = [".journal", ".lock"]
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
STRANGER, OWNER = 54_321, 12_345


@pytest.fixture
def secret(tmp_path):
    """A file of somebody else, for example of root."""
    path = tmp_path / "secret"
    path.write_bytes(b"secret")
    path.chmod(0o600)
    return path


@contextmanager
def soon():
    """Fail if the block takes a minute: it waits for somebody."""

    before = signal.signal(signal.SIGALRM, raising(AssertionError("it hangs")))
    signal.alarm(60)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


WAYS = {  # how something is put in the place of our file, and what is said of it
    "link": (lambda path, secret: path.symlink_to(secret), "a symbolic link"),
    "fifo": (lambda path, secret: os.mkfifo(path), "not a regular file"),
    "folder": (lambda path, secret: path.mkdir(), "a folder"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("ending", OURS)
def test_what_is_no_file_of_ours_is_refused_at_once(nbspam, trained, secret, ending, way):
    place = Path(f"{trained}{ending}")
    place.unlink(missing_ok=True)
    put, what = WAYS[way]
    put(place, secret)
    with soon():
        for line in (["update", "--spam", "-"], ["train", ROOT / "corpora" / "mail"], ["prune"]):
            assert complains(nbspam(*line, stdin=SPAM), 1, place.name, what, "remove it")
        if ending == ".journal":
            assert complains(nbspam("classify", stdin=HAM), 1, place.name, what)
            assert nbspam("doctor")[1].startswith("bad\tfile\t")
            assert nbspam("filter", stdin=HAM)[:2] == (1, HAM.decode())  # mail still passes
    assert secret.read_bytes() == b"secret"
    assert secret.stat().st_mode & 0o777 == 0o600


def test_a_link_to_a_missing_file_makes_none(nbspam, trained, tmp_path):
    Path(f"{trained}.lock").unlink(missing_ok=True)
    Path(f"{trained}.lock").symlink_to(tmp_path / "new")

    assert complains(nbspam("update", "--spam", "-", stdin=SPAM), 1, "a symbolic link")
    assert not (tmp_path / "new").exists()


def test_a_path_stays_as_it_is_if_the_current_folder_was_removed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    assert resolved("m") == "m"


def test_a_link_to_a_model_is_followed_once(nbspam, trained, tmp_path, folder):
    link = tmp_path / "link.nbspam"
    link.symlink_to(trained)
    assert resolved(str(link)) == str(trained)
    assert resolved("relative") == "relative"
    pipe = f"/dev/fd/{os.pipe()[0]}"
    assert resolved(pipe) == pipe  # and not /proc/42/fd/pipe:[7], which no folder has
    for _ in range(3):
        assert nbspam("update", "-m", link, "--spam", "-", stdin=SPAM + b"x")[0] == 0
    nbspam("train", folder, "-m", link)

    assert link.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "link.nbspam", "mails"]
    with pytest.raises(ModelFileError, match="a symbolic link"), locked(str(link)):
        pass


def test_a_file_in_place_of_a_link_replaces_the_link_only_and_a_link_that_comes_late_is_refused(
    tmp_path, secret, monkeypatch
):
    (tmp_path / "note").symlink_to(secret)
    with replacing(str(tmp_path / "note")) as file:
        file.write(b"ours")

    assert not (tmp_path / "note").is_symlink()
    assert (secret.read_bytes(), (tmp_path / "note").read_bytes()) == (b"secret", b"ours")

    name = tmp_path / "file"
    name.write_bytes(b"ours")
    real = os.open

    def exchanged(path, *arguments):
        name.unlink()
        name.symlink_to(secret)
        return real(path, *arguments)

    with monkeypatch.context() as patch:  # undone before pytest removes the folder
        patch.setattr(os, "open", exchanged)
        with pytest.raises(ModelFileError, match="not a regular file"):
            open_own(str(name), str(tmp_path))


# ---- owners ----


@root_only
@pytest.mark.parametrize("ending", OURS)
def test_a_file_of_a_third_user_is_refused(nbspam, trained, ending):
    os.chown(trained, OWNER, OWNER)
    place = Path(f"{trained}{ending}")
    place.write_bytes(b"")
    os.chown(place, STRANGER, STRANGER)

    result = nbspam("update", "--spam", "-", stdin=SPAM)
    assert complains(result, 1, place.name, "belongs to user 54321", "does not own m.nbspam")


@root_only
def test_root_hands_nothing_over_to_the_owner_of_a_model(nbspam, trained, secret):
    """What was in the place of our files keeps its owner and mode, link or not."""
    nbspam("train", ROOT / "corpora" / "mail")
    os.chown(trained, OWNER, OWNER)
    trained.chmod(0o666)
    Path(f"{trained}.lock").unlink(missing_ok=True)
    os.link(secret, f"{trained}.lock")
    nbspam("update", "--spam", "-", stdin=SPAM)

    assert (secret.stat().st_uid, secret.stat().st_mode & 0o777) == (0, 0o600)
    assert secret.read_bytes() == b"secret"
    assert Path(f"{trained}.journal").stat().st_uid == OWNER


@root_only
@pytest.mark.parametrize("source", ["of the test", "of all embedded mail"])
def test_the_owner_goes_on_where_root_has_written(nbspam, trained, source):
    """With a small model each step writes a file, with the other a journal."""
    if source != "of the test":
        nbspam("train", ROOT / "corpora" / "mail")
    with tempfile.TemporaryDirectory() as folder:  # pytest's is closed to others
        os.chown(folder, OWNER, OWNER)
        path = shutil.copy(trained, folder)
        os.chown(path, OWNER, OWNER)
        check_that_both_learn(path)
        assert {each.stat().st_uid for each in Path(folder).iterdir()} == {OWNER}


@root_only
def test_root_makes_a_model_again_that_its_owner_has_removed(target):
    target.unlink()
    os.chown(target.parent, OWNER, OWNER)
    for _ in range(2):  # the second finds the lock of the first
        with locked(target):
            pass
    os.chown(f"{target}.lock", STRANGER, STRANGER)
    with pytest.raises(ModelFileError, match="belongs to user 54321"), locked(target):
        pass


def become(user, group):
    os.setgroups([])
    os.setgid(group)
    os.setuid(user)


def check_that_both_learn(path):
    def learn(n):
        from nbspam.sources.items import Item
        from nbspam.store.model import StoredModel

        item = Item("x", "spam", SPAM + b"%d" % n)
        assert StoredModel(path).learn([item], day=1).learned == 1

    def as_owner():
        become(OWNER, OWNER)
        learn(12)

    learn(11)
    assert in_child(as_owner) == 0
    learn(13)


@root_only
def test_members_of_a_group_share_a_model(tmp_path):
    model, journal = tmp_path / "m", tmp_path / "m.journal"
    for path, owner in ((model, OWNER), (journal, STRANGER)):
        path.write_bytes(b"x")
        os.chown(path, owner, 777)
        path.chmod(0o660)
    assert read_own(str(journal), str(model)) == b"x"

    model.chmod(0o644)  # the group may not write the model
    with pytest.raises(ModelFileError, match="belongs to user"):
        read_own(str(journal), str(model))


@root_only
@pytest.mark.parametrize("is_locked_before", [False, True])
def test_a_reader_of_a_model_in_an_open_folder_takes_it_from_nobody(is_locked_before):
    """Files that it made would be refused, and nobody else could use the model."""

    def learn():
        become(STRANGER, STRANGER)
        said = f"{name}: cannot be written: Permission denied; let this user"
        with pytest.raises(ModelFileError, match=said):
            locked(str(model)).__enter__()

    with tempfile.TemporaryDirectory() as folder:  # pytest's is closed to others
        Path(folder).chmod(0o777)
        name = model = Path(folder, "m")
        model.write_bytes(b"")
        model.chmod(0o644)
        if is_locked_before:  # then only the lock has the wrong rights, and is named
            with locked(str(model)):
                model.chmod(0o666)
            name = Path(folder, "m.lock")
        assert in_child(learn) == 0
        assert sorted(os.listdir(folder)) == ["m", "m.lock"][: 1 + is_locked_before]


@root_only
def test_a_result_replaces_no_file_that_may_only_be_read():
    def write():
        become(OWNER, OWNER)
        with pytest.raises(InputError, match="html: Permission denied"):
            disk.result_file(str(page), "--report").__enter__()

    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        page.write_bytes(b"old")
        page.chmod(0o444)
        for path in (folder, page):
            os.chown(path, OWNER, OWNER)
        assert in_child(write) == 0
        assert page.read_bytes() == b"old"


@root_only
def test_each_member_of_a_group_can_replace_the_shared_model(trained):
    def replace(user):
        become(user, 777)
        keep_old_model(path)

    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, OWNER, 777)
        Path(folder).chmod(0o770)
        path = shutil.copy(trained, folder)
        os.chown(path, OWNER, 777)
        Path(path).chmod(0o660)
        for user in OWNER, STRANGER, OWNER:
            assert in_child(partial(replace, user)) == 0


def test_what_is_no_file_gets_no_lock(target):
    target.unlink()
    os.mkfifo(target)
    with pytest.raises(ModelFileError, match="cannot be written: not a regular file; give"):
        locked(str(target)).__enter__()
    with pytest.raises(ModelFileError, match="m: not a regular file; remove it, or move it away"):
        locked(str(target), like=str(target.parent)).__enter__()  # a file beside another
    assert os.listdir(target.parent) == ["m"]


def test_a_backup_of_hard_links_keeps_what_it_has(nbspam, trained, tmp_path):
    nbspam("train", ROOT / "corpora" / "mail")
    nbspam("update", "--spam", "-", stdin=SPAM + b"one")
    (tmp_path / "backup").mkdir()
    for ending in ("", ".journal", ".lock"):
        os.link(f"{trained}{ending}", tmp_path / "backup" / f"m.nbspam{ending}")
    before = (tmp_path / "backup" / "m.nbspam.journal").read_bytes()
    assert nbspam("update", "--spam", "-", stdin=SPAM + b"two")[:2] == (0, "learned 1\n")

    assert (tmp_path / "backup" / "m.nbspam.journal").read_bytes() == before
    assert "2 changes" in nbspam("doctor")[1]
    assert "1 change, " in nbspam("doctor", "-m", tmp_path / "backup" / "m.nbspam")[1]


# ---- temporary files ----


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    target = str(tmp_path / "m")

    def killed():
        with replacing(target):
            os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(killed) == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 1

    with replacing(target) as file:  # what is being written is no leftover
        with replacing(str(tmp_path / "other")) as other:
            other.write(b"2")
        file.write(b"whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "other"]
    assert (tmp_path / "m").read_bytes() == b"whole"


def test_a_file_system_without_locks_keeps_no_leftover(tmp_path, monkeypatch):
    monkeypatch.setattr("fcntl.flock", raising(OSError(errno.ENOLCK, "No locks available")))
    with pytest.raises(OSError, match="No locks"), replacing(str(tmp_path / "m")):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("fstat", lambda _: os.stat_result([0] * 10)),  # it counts no links
        ("fchmod", raising(OSError(errno.ENOSYS, "it has no modes"))),
    ],
)
def test_a_file_system_in_user_space_can_be_written_to(target, monkeypatch, name, call):
    monkeypatch.setattr(os, name, call)
    with soon(), replacing(str(target)) as file:
        file.write(b"new")
    assert target.read_bytes() == b"new"


def test_only_our_own_temporary_files_are_removed(tmp_path, secret):
    hexes = "0123456789abcdef"
    keep = [tmp_path / name for name in (".nbspam-notes", f".nbspam-{hexes}0", f"nbspam-{hexes}")]
    for path in keep:
        path.write_bytes(b"x")
    (tmp_path / f".nbspam-{hexes}").symlink_to(secret)
    os.mkfifo(tmp_path / f".nbspam-{hexes[::-1]}")
    (tmp_path / ".nbspam-0000000000000000").write_bytes(b"left")
    with soon():
        remove_leftovers(str(tmp_path), str(tmp_path))

    assert not (tmp_path / ".nbspam-0000000000000000").exists()
    assert all(path.exists() for path in keep)
    assert (tmp_path / f".nbspam-{hexes}").is_symlink()
    assert secret.exists()


def write_often(path):
    for n in range(150):
        with replacing(path) as file:
            file.write(b"%d" % n)


def test_writers_that_tidy_up_do_not_take_each_others_files(tmp_path):
    """Each removes what the others seem to have left, and none of what they are writing."""
    paths = [str(tmp_path / f"m{n}") for n in range(3)]
    assert list(ordered_map(write_often, paths, 3)) == [None] * 3
    assert sorted(map(str, tmp_path.iterdir())) == paths
