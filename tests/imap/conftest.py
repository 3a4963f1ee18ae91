"""Shared by tests of accounts: a small server in memory, and a password that is known."""

import shutil

import pytest

from accounts import DAY, letter
from fake_imap import PASSWORD, fake_server
from maildirs import ham, spam
from nbspam.imap import session
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel

COMMANDS = "TRAIN UPDATE UNLEARN CLASSIFY PREDICT EVAL EXPLAIN RELABEL DOUBTS SORT SETUP"


@pytest.fixture
def server():
    with fake_server() as found:
        yield found


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(session, "PAUSES", (0.0, 0.0, 0.0))


@pytest.fixture
def nbspam(nbspam, monkeypatch, tmp_path):
    """Run a command line whose accounts have the password of the tests."""
    (tmp_path / "secret").write_text(PASSWORD + "\n")
    for command in COMMANDS.split():
        monkeypatch.setenv(f"NBSPAM_{command}_PASSWORD_COMMAND", f"cat {tmp_path}/secret")
    return nbspam


@pytest.fixture(scope="session")
def trained_well(trained_once, tmp_path_factory):
    """Where a model lies that knows enough: four lessons do not change its mind."""
    place = tmp_path_factory.mktemp("well") / "data"
    shutil.copytree(trained_once, place)
    known = [
        Item("-", make.__name__, letter(make, n), told=True)
        for n in range(100, 160)
        for make in (spam, ham)
    ]
    model = StoredModel(str(place / "m.nbspam"))
    model.learn(known, day=DAY, classes=["ham", "spam"])
    model.compact()
    return place
