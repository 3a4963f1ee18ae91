"""Shared by tests of accounts: a small server in memory, and a password that is known."""

import pytest

from fake_imap import PASSWORD, fake_server
from nbspam.imap import reading

COMMANDS = """
TRAIN UPDATE UNLEARN CLASSIFY PREDICT EVAL EXPLAIN RELABEL DOUBTS SORT SETUP
"""


@pytest.fixture
def server():
    with fake_server() as found:
        yield found


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(reading, "PAUSES", (0.0, 0.0, 0.0))


@pytest.fixture
def nbspam(nbspam, monkeypatch, tmp_path):
    """Run a command line whose accounts have the password of the tests."""
    (tmp_path / "secret").write_text(PASSWORD + "\n")
    for command in COMMANDS.split():
        monkeypatch.setenv(f"NBSPAM_{command}_PASSWORD_COMMAND", f"cat {tmp_path}/secret")
    return nbspam
