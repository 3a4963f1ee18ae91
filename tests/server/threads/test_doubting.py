"""Processes that look for doubtful messages: what they find, what fails, and that they end."""

import sys
import time

import pytest

from nbspam.server.metrics import Log
from nbspam.server.page import doubtful
from nbspam.server.page.doubtful import Doubting
from nbspam.server.page.mailbox import ReviewMailbox
from nbspam.server.page.memory import Database
from nbspam.settings import SettingsChoices, chosen_settings
from nbspam.sources.items import read_items
from nbspam.store.model import StoredModel
from serving import PATIENCE
from support import write_misfiled


@pytest.fixture
def doubting():
    found = Doubting(Log("none", 2))
    yield found
    found.end()


@pytest.fixture
def box(tmp_path):
    """A mailbox with a message that the model was taught in the wrong class."""
    folder = write_misfiled(tmp_path / "box")
    model = StoredModel(str(tmp_path / "m"), new=chosen_settings(SettingsChoices(), is_text=False))
    model.learn(read_items([str(folder)]), day=1, classes=["ham", "spam"])
    return str(folder)


def state(box, database):
    return doubtful.state(database, ReviewMailbox(box).newest(), database.model, time.time())


def at_rest(box, database):
    """Return what is known when nobody looks any more."""
    end = time.monotonic() + PATIENCE
    while (found := state(box, database)).is_running:
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


def test_a_process_finds_what_is_filed_wrongly(tmp_path, box, doubting):
    database = Database(str(tmp_path / "m"))
    doubting.begin(box, database)
    assert state(box, database).is_running
    doubting.begin(box, database)  # while it looks: nothing happens

    found = at_rest(box, database)
    assert [(row.key, row.filed) for row in found.found.rows] == [("ham/misfiled.eml", "ham")]
    assert not found.is_due


def test_one_mailbox_is_looked_through_at_a_time(tmp_path, box, doubting):
    first, second = (Database(str(tmp_path / name)) for name in ("m", "other"))
    doubting.begin(box, first)
    doubting.begin(box, second)
    assert not state(box, second).is_running

    at_rest(box, first)
    end = time.monotonic() + PATIENCE
    while not state(box, second).is_running and time.monotonic() < end:
        doubting.begin(box, second)
    assert state(box, second).is_running


def test_a_failure_is_told_and_others_may_look_again(tmp_path, capfd, doubting):
    (tmp_path / "m").write_bytes(b"no model")
    (tmp_path / "box").mkdir()
    database = Database(str(tmp_path / "m"))
    doubting.begin(str(tmp_path / "box"), database)

    found = at_rest(str(tmp_path / "box"), database)
    assert (found.found, found.is_due) == (None, True)
    assert "not a model" in found.problem
    assert capfd.readouterr().err.count("doubtful messages were not looked for: ") == 1


def test_no_process_is_no_reason_to_wait(tmp_path, box, doubting, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    database = Database(str(tmp_path / "m"))
    with pytest.raises(FileNotFoundError):
        doubting.begin(box, database)

    found = state(box, database)
    assert (found.is_running, found.problem) == (
        False, "no process could be started: No such file or directory",
    )  # fmt: skip


def test_at_the_end_processes_end_and_nobody_complains(tmp_path, box, doubting, capfd):
    database = Database(str(tmp_path / "m"))
    doubting.begin(box, database)
    doubting.end()

    found = state(box, database)
    assert (found.found, found.problem, found.is_running) == (None, None, False)
    doubting.begin(box, database)  # too late
    assert not state(box, database).is_running
    assert capfd.readouterr().err == ""
