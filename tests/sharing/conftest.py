"""No test of shared lessons waits for the disk, except where it says so itself."""

import pytest

from nbspam.sharing import outbox
from shared_logs import Host


@pytest.fixture(autouse=True)
def _quick_disk(quick_disk, monkeypatch):
    monkeypatch.setattr(outbox, "SYNCHRONOUS", "OFF")


@pytest.fixture(autouse=True)
def _stopped_hosts():
    yield
    while Host.all:
        Host.all.pop().stop()
