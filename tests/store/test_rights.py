"""Doctor says who else can read or change a model."""

import os
import sys

import pytest

from nbspam.store.doctor import BAD, EVERYONE, GOOD, NOTE, findings, readers, writers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="rights of POSIX")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder that everyone can enter, as far as the test can tell."""
    real = os.stat

    def stat(path, **options):
        status = real(path, **options)
        if str(tmp_path).startswith(f"{path}/"):
            return os.stat_result((0o040755, *status[1:]))
        return status

    monkeypatch.setattr(os, "stat", stat)
    tmp_path.chmod(0o755)
    return tmp_path


def made(place, name="m", mode=0o600):
    path = place / name
    path.write_bytes(b"x")
    path.chmod(mode)
    return str(path)


def test_a_model_of_its_owner_alone(place):
    path = made(place)
    assert readers(path) == writers(path) == {}


def test_whoever_may_read_a_file_of_the_model_is_named(place):
    path = made(place)
    journal = made(place, "m.journal", 0o644)
    older = made(place, "m~", 0o640)
    made(place, "m.lock", 0o644)
    made(place, "mail", 0o644)

    found = readers(path)
    assert found.pop(EVERYONE) == [journal]
    assert list(found.values()) == [[older]]
    assert next(iter(found)).startswith("group ")


def test_a_closed_folder_keeps_everyone_out(place):
    path = made(place, mode=0o644)
    assert readers(path) == {EVERYONE: [path]}
    place.chmod(0o700)
    assert readers(path) == {}


def test_a_group_needs_a_way_through_the_folders(place):
    path = made(place, mode=0o640)
    place.chmod(0o710)
    assert len(readers(path)) == 1
    place.chmod(0o700)
    assert readers(path) == {}


def test_whoever_may_replace_a_model_can_change_it(place):
    path = made(place)
    place.chmod(0o777)
    assert writers(path) == {EVERYONE: [str(place)]}
    place.chmod(0o1777)  # as /tmp: nobody can replace another's file
    assert writers(path) == {}
    os.chmod(path, 0o602)
    assert writers(path) == {EVERYONE: [path]}


def test_doctor_says_so(trained, place):
    def said():
        return next(finding for finding in findings(str(trained)) if finding.what == "rights")

    trained.parent.chmod(0o755)
    trained.chmod(0o600)
    assert said().state == GOOD
    trained.chmod(0o644)
    assert said().state == NOTE
    assert f"everyone on this machine can read the words of your mail in {trained}" in said().text
    trained.chmod(0o666)
    assert said().state == BAD
    assert "can change" in said().text
