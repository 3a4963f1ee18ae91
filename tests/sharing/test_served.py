"""Servers that share lessons: taught by clients, killed, and without their log."""

import json
import os
import signal
from unittest.mock import Mock

import pytest

from nbspam.errors import SharedLogError
from nbspam.server import lessons
from nbspam.server.choices import ShareChoices
from nbspam.server.lessons import Courier, TaughtModels
from protocols import tell
from serving import free_port, is_refused, serving, until
from shared_logs import Host, MemoryLog, message

pytestmark = pytest.mark.slow
pytest.importorskip("prometheus_client")


def teach(server, data, label):
    answer = server.ask(tell(label, data))
    assert answer.startswith(b"SPAMD/1.1 0 EX_OK"), answer


@pytest.fixture
def run(nbspam):
    return lambda *arguments: "".join(nbspam(*arguments)[1:])


def metric(server, name):
    return server.metrics().get(f"nbspam_share_{name}")


def folders(tmp_path, n):
    found = [tmp_path / f"host{k}" for k in range(n)]
    for folder in found:
        folder.mkdir()
    return found, [str(folder / "model") for folder in found]


def test_what_one_server_is_taught_all_know(tmp_path, server, run):
    (one, two), models = folders(tmp_path, 2)
    options = ["--share", server.url, "--allow-tell", "-j", "1"]
    with serving(models[0], one, *options) as first:
        with serving(models[1], two, *options, "--share-sync") as second:
            teach(first, message(1), "ham")
            teach(second, message(2), "spam")
            until(lambda: metric(first, "read") == metric(second, "read") == 2)
            server.stop()
            teach(first, message(3), "spam")  # acknowledged without the log
            until(lambda: metric(first, "outbox") == 1)
            until(lambda: metric(first, "connected") == 0)
            server.start()
            until(lambda: metric(second, "read") == 3)
            os.kill(second.process.pid, signal.SIGKILL)
        until(lambda: is_refused(str(two / "spamd")))  # its workers end by themselves
        teach(first, message(4), "ham")
        with serving(models[1], two, *options) as second:
            until(lambda: metric(second, "read") == 4)
            status = run("share", "status", "-m", models[0], "--share", server.url)
    exports = [run("export", "-m", model) for model in models]

    assert exports[0] == exports[1]
    assert exports[0].count('"message"') == 4
    assert len(status.splitlines()) == 4, status  # a title, two hosts, and what is true of all


def test_a_new_host_starts_from_a_snapshot(tmp_path, server, run):
    _, models = folders(tmp_path, 3)
    share = ["--share", server.url]
    for n, label in ((1, "--ham"), (2, "--spam")):
        (tmp_path / f"{n}.eml").write_bytes(message(n))
        run("update", "-m", models[0], label, str(tmp_path / f"{n}.eml"), *share)
    snapshot = str(tmp_path / "snapshot")

    said = run("share", "snapshot", snapshot, "-m", models[0], *share)
    joined = run("share", "join", snapshot, "-m", models[1])
    again = run("share", "join", snapshot, "-m", models[2], "--json")
    run("unlearn", "-m", models[0], str(tmp_path / "1.eml"), *share)
    run("relabel", "-m", models[1], "--to", "ham", str(tmp_path / "2.eml"), *share)
    run("update", "-m", models[0], "--ham", str(tmp_path / "2.eml"), *share)
    exports = [run("export", "-m", model) for model in models[:2]]

    assert said.startswith(f"{snapshot}: the models as of record 2 of the log"), said
    assert joined.startswith("joined at record 2; model in "), joined
    assert json.loads(again) == {"version": 1, "model": models[2], "records": 2}
    assert exports[0] == exports[1]
    assert exports[0].count('"message"') == 1
    assert "exists already; " in run("share", "join", snapshot, "-m", models[1])
    assert "exists already; " in run("share", "snapshot", snapshot, "-m", models[0], *share)
    assert "not a snapshot" in run("share", "join", str(tmp_path), "-m", f"{models[1]}3")


def test_a_server_with_a_damaged_outbox_judges_and_refuses_lessons(tmp_path):
    (folder,), (model,) = folders(tmp_path, 1)
    (folder / "model.share").write_bytes(bytes(5000))
    url = f"redis://127.0.0.1:{free_port()}/lessons"
    with serving(model, folder, "--share", url, "--allow-tell", "-j", "1") as server:
        assert server.ask(b"CHECK SPAMC/1.2\r\n\r\nlunch").startswith(b"SPAMD/1.1 0 EX_OK")
        answer = server.ask(b"TELL SPAMC/1.5\r\nMessage-class: ham\r\nSet: local\r\n\r\nlunch")
    assert b"model.share: file is not a database; make room or restore it" in answer


def test_a_command_keeps_lessons_while_the_log_is_away(tmp_path, server, run):
    _, (model,) = folders(tmp_path, 1)
    mail = tmp_path / "1.eml"
    mail.write_bytes(message(1))
    server.stop()
    update = ["update", "-m", model, "--ham", str(mail), "--share", server.url]

    told = run(*update)
    assert "lessons wait until it is back" in told
    assert ".;" not in told
    assert "refused" in run(*update, "--share-sync")
    server.start()
    run(*update)
    status = run("share", "status", "-m", model, "--share", server.url)
    assert status.splitlines()[1].split("\t")[1:4] == ["0", "0", "0"]  # lag, outbox, skipped
    assert "share status: no log; give --share URL" in run("share", "status", "-m", model)
    assert "share join: no FOLDER; name one" in run("share", "join", "-m", model)
    assert "no log; give --share URL, too" in run(*update[:-2], "--share-sync")
    assert "needs no folder; leave x out" in run("share", "status", "x", "-m", model)


def reader_of(model):
    """Return the process of a server that reads the log."""
    inode = os.stat(f"{model}.share.courier.lock").st_ino
    with open("/proc/locks") as locks:
        held = [line.split() for line in locks if "->" not in line]
    (pid,) = {int(words[4]) for words in held if words[5].endswith(f":{inode}")}
    return pid


@pytest.mark.skipif(not os.path.exists("/proc/locks"), reason="it is not told who holds a lock")
def test_another_worker_reads_the_log_when_the_one_that_did_is_killed(tmp_path, server, run):
    (one, two), models = folders(tmp_path, 2)
    options = ["--share", server.url, "--allow-tell"]
    readers = []
    with (
        serving(models[0], one, *options, "-j", "2") as first,
        serving(models[1], two, *options, "-j", "1") as second,
    ):
        for n in range(0, 6, 2):
            teach(first, message(n), "ham")
            teach(second, message(n + 1), "spam")
            until(lambda n=n: metric(first, "read") == metric(second, "read") == n + 2)
            readers.append(reader_of(models[0]))
            os.kill(readers[-1], signal.SIGKILL)
    exports = [run("export", "-m", model) for model in models]

    assert len(set(readers)) == 3
    assert exports[0] == exports[1]
    assert exports[0].count('"message"') == 6


def test_failures_are_logged_once_and_their_end_when_lessons_can_be_sent(tmp_path, monkeypatch):
    log, said = MemoryLog(), []
    append = log.append
    host = Host(tmp_path / "host", "model", log)
    host.teach(message(1), "ham")
    monkeypatch.setattr(lessons, "open_log", lambda *_: log)
    monkeypatch.setattr(lessons, "_PAUSE", 0.01)
    monkeypatch.setattr(log, "append", appends := Mock(side_effect=SharedLogError("disk full")))
    monkeypatch.setattr(log, "report", reports := Mock(side_effect=SharedLogError("read only")))
    service = Mock(choices=Mock(model_path=host.path, users=None))
    service.log.failed, service.log.noted = lambda _, error: said.append(str(error)), said.append
    (lock := tmp_path / "host" / "model.share.courier.lock").mkdir()
    courier = Courier(service, ShareChoices("", None, False), TaughtModels(host.path, None))
    until(lambda: said)
    assert "model.share.courier.lock: " in said.pop()
    lock.rmdir()
    until(lambda: min(appends.call_count, reports.call_count) > 4)
    reports.side_effect = None
    until(lambda before=reports.call_count: reports.call_count > before + 2)
    assert sorted(said) == ["disk full", "read only"]
    appends.side_effect = append
    until(lambda: said[2:] == ["lessons are shared again"])
    monkeypatch.setattr(lessons, "_QUIET", 0.01)
    monkeypatch.setattr(log, "close", closes := Mock())
    other = Courier(service, ShareChoices("", None, False), TaughtModels(host.path, None))
    other.taught.set()
    until(lambda: closes.called)  # of the worker that does not read
    other.end()
    courier.end()
