"""No test of shared lessons waits for the disk, except where it says so itself."""

import pytest

from nbspam.sharing import outbox
from shared_logs import SERVERS, Host, MemoryLog, real_log


@pytest.fixture(autouse=True)
def _quick_outbox(monkeypatch):
    monkeypatch.setattr(outbox, "SYNCHRONOUS", "OFF")


@pytest.fixture(autouse=True)
def _stopped_hosts():
    yield
    while Host.all:
        Host.all.pop().stop()


@pytest.fixture(params=SERVERS)
def server(request, tmp_path):
    with real_log(request.param, tmp_path / "server") as running:
        yield running


@pytest.fixture
def host(tmp_path):
    """A host that shares its lessons in a log in memory."""
    return Host(tmp_path / "host", "model", MemoryLog())


@pytest.fixture
def hosts(tmp_path):
    """Two hosts that share one."""
    log = MemoryLog()
    return [Host(tmp_path / f"host{k}", "model", log) for k in range(2)]
