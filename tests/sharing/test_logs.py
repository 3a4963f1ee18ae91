"""Hosts that share a real log: Redis and PostgreSQL, killed, restarted, and full of rubbish."""

import os
import shutil
import signal
import socket
import tempfile
import time
from contextlib import closing, suppress
from math import inf

import pytest

from nbspam.errors import ModelFileError, SharedLogError, UsageError
from nbspam.sharing.logs import open_log
from shared_logs import Host, MemoryLog, message
from stress.shared_faults import faults
from support import raising


def test_records_come_back_in_order_with_growing_positions(server):
    log = open_log(server.url)
    start = log.end()
    log.append([b"one", b"two"])
    log.append([b"three"])
    found = log.read(0, 10)

    assert [record for _, record in found] == [b"one", b"two", b"three"]
    assert [position for position, _ in found] == sorted({position for position, _ in found})
    assert log.read(found[0][0], 1) == found[1:2]
    log.trim(found[1][0])
    assert log.read(0, 10) == found[2:]
    assert log.end()[:3] == (start.identity, 3, 2)
    assert abs(start.seconds - time.time()) < 60
    log.wait(found[1][0], 60)  # a record is there: no wait
    for host, lag in (("mx1", {"lag": 0}), ("mx2", {"lag": 1}), ("mx2", {}), ("x", {"lag": inf})):
        log.report(host, lag)
    assert log.hosts() == {"mx1": {"lag": 0}}
    log.close()


@pytest.mark.parametrize("server", ["redis"], indirect=True)
def test_a_user_of_redis_may_have_any_name_and_leaves_a_server_that_became_a_replica(server):
    with server.direct() as other:
        other.acl_setuser(
            "ann@x", enabled=True, passwords=["+secret"], keys=["*"], categories=["+@all"]
        )
    log = open_log(f"redis://ann%40x@127.0.0.1:{server.port}/lessons", "secret")
    log.append([b"one"])
    assert log.end().n_records == 1
    with server.direct() as other:
        other.replicaof("127.0.0.1", 1)
        for call in (lambda: log.append([b"two"]), open_log(f"{server.url}2").end):
            with pytest.raises(SharedLogError, match=r"lessons2?: You can't write against"):
                call()
        assert len(other.client_list()) == 1
    log.close()


@pytest.mark.parametrize("server", ["postgresql"], indirect=True)
def test_a_host_of_postgresql_may_come_last_lack_an_encoding_stand_still_and_lose_a_row(
    server, monkeypatch
):
    with server.direct() as other:
        other.execute("CREATE DATABASE plain TEMPLATE template0 ENCODING SQL_ASCII LOCALE 'C'")
    log = open_log(server.url.replace("/postgres/", "/plain/"))
    log.report("mx1", {"lag": 0})
    assert isinstance(log.end().identity, str)
    assert log.hosts() == {"mx1": {"lag": 0}}
    log.close()

    for table in ("user", "lessons"):  # a keyword of SQL, and none
        address = f"postgresql:///postgres/{table}?host=127.0.0.1&port={server.port}&user=log"
        log = open_log(address)
        log.append([b"one"])
        log.wait(0, 60)
        assert (log.name, log.end().n_records) == (f"postgresql:///postgres/{table}", 1)
        log.trim(0)
        log.close()

    monkeypatch.setattr("nbspam.sharing.logs._PATIENCE", 0.1)
    log = open_log(server.url)
    log.end()
    (process,) = log._open.execute("SELECT pg_backend_pid()").fetchone()
    os.kill(process, signal.SIGSTOP)
    with pytest.raises(SharedLogError, match="lessons wait until it is back"):
        log.end()
    os.kill(process, signal.SIGCONT)
    monkeypatch.undo()
    assert log.end().n_records == 1
    with server.direct() as other:
        other.execute("DELETE FROM lessons_log")
    for call in (log.end, lambda: log.append([b"two"])):
        with pytest.raises(SharedLogError, match=r"lessons_log is empty; lessons wait until"):
            call()
    assert [record for _, record in log.read(0, 10)] == [b"one"]
    log.close()


@pytest.mark.parametrize("ahead", [-200, 100])  # seconds, of the clock that the standby replaces
@pytest.mark.parametrize("server", ["postgresql"], indirect=True)
def test_a_standby_that_lacks_the_last_record_is_read_on(server, tmp_path, ahead):
    one, two = (Host(tmp_path / f"host{k}", "model", open_log(server.url)) for k in range(2))
    for host, n in ((one, 0), (one, 1), (two, 2), (two, 3)):
        host.teach(message(n), "ham")
        host.sharer.send()
        if n == 1:
            with server.direct() as other:
                moved = f"position + ({ahead} + 50 * (position & 3) << 31)"
                other.execute(f"UPDATE lessons SET position = {moved}")
                one.sharer.receive()
                other.execute("DELETE FROM lessons WHERE position & 1 = 0")
                other.execute("UPDATE lessons_log SET last = (SELECT position FROM lessons)")
    one.sharer.exchange()

    assert (len(one.opened("").told()), *one.log.end()[1:3]) == (4, 3, 0)


@pytest.mark.parametrize("name", ["lessons", "lessons_hosts"])
def test_a_table_or_stream_that_was_dropped_is_made_again(server, tmp_path, name):
    hosts = [Host(tmp_path / f"host{k}", "model", open_log(server.url)) for k in range(2)]
    for n, host in enumerate(hosts):
        host.teach(message(n), "ham")
        host.sharer.send()
    hosts[0].sharer.exchange()
    with server.direct() as other:
        if server.library == "redis":
            other.delete(name.replace("_", ":"))
        else:
            other.execute(f"DROP TABLE {name}")
    if server.library == "psycopg":
        for host in hosts:
            with pytest.raises(SharedLogError, match=f'relation "{name}" does not exist'):
                (host.sharer.receive if name == "lessons" else host.sharer.report)()
    hosts[0].teach(message(2), "spam")
    hosts[0].sharer.exchange()  # it had read everything
    if name == "lessons":
        with pytest.raises(SharedLogError, match="has not read 2 records that the log has rem"):
            hosts[1].sharer.receive()
        hosts[1].sharer.send()  # what nobody may have read
        hosts[0].sharer.exchange()
        assert hosts[0].opened("").filed(message(1)).label == "ham"
    else:
        hosts[1].sharer.exchange()
        assert hosts[0].export() == hosts[1].export()


def test_lessons_survive_a_killed_log_killed_hosts_and_rubbish(server, tmp_path):
    faults(server, tmp_path, n_lessons=160, n_hosts=3)


def test_a_log_that_was_replaced_is_not_read_on(tmp_path):
    log = MemoryLog()
    host = Host(tmp_path / "host", "model", log)
    host.teach(message(1), "ham")
    host.sharer.exchange()
    host.teach(message(2), "ham")
    host.sharer.send()
    log.identity, log.records = "two", []

    for _ in range(3):
        with pytest.raises(SharedLogError, match="of which this host has read 1 record; take"):
            host.sharer.receive()
        host.sharer.send()
    assert len(log.records) == 1  # sent again, once


def test_a_host_that_missed_trimmed_records_is_told_to_join(hosts, monkeypatch):
    hosts[1].sharer.report()
    monkeypatch.setattr(time, "time", lambda: 9e9)  # the clock of the other host is wrong
    hosts[0].teach(message(1), "ham")
    hosts[0].sharer.exchange()
    log = hosts[0].log
    for days, n_trimmed in ((0, 0), (31, 1)):
        log.seconds += days * 86_400
        log.report("a stranger", {"time": log.seconds, "position": "9" * 5000})
        hosts[0].sharer.report()
        hosts[0].sharer.trim()
        assert log.first == n_trimmed

    with pytest.raises(SharedLogError, match="has not read 1 record that the log has removed"):
        hosts[1].sharer.receive()


def test_a_log_that_does_not_answer_is_asked_once(monkeypatch):
    pytest.importorskip("redis")
    monkeypatch.setattr("nbspam.sharing.logs._PATIENCE", 0.1)
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        log = open_log(f"redis://127.0.0.1:{server.getsockname()[1]}/lessons")
        with pytest.raises(SharedLogError, match="Timeout reading from socket; lessons wait"):
            log.end()
        server.setblocking(False)
        server.accept()[0].close()
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize(
    ("name", "other", "why"),
    [
        ("logs._FORMAT", 2, "shares lessons in format 2, and this nbspam reads 1; let all hosts"),
        ("sharer.fingerprint", lambda _: "x", "other settings; give all hosts the same model,"),
    ],
)
def test_another_format_or_model_is_refused_in_one_line_and_not_passed_over(
    hosts, monkeypatch, name, other, why
):
    monkeypatch.setattr(f"nbspam.sharing.{name}", other)
    hosts[0].teach(message(1), "ham")
    hosts[0].sharer.send()
    monkeypatch.undo()
    with pytest.raises(SharedLogError, match=why):
        hosts[1].sharer.receive()
    monkeypatch.setattr(hosts[1].sharer, "model_of", raising(UsageError("of texts")))
    with pytest.raises(UsageError):
        hosts[1].sharer.receive()
    assert hosts[1].sharer.outbox.place().n_read == 0


def test_an_outbox_that_is_full_or_for_which_the_disk_has_no_room_refuses_lessons(
    host, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.setattr("nbspam.sharing.outbox.MOST_LESSONS", 1)
        host.teach(message(1), "ham")
        with pytest.raises(SharedLogError, match="1 lessons wait for the log; learn on when it i"):
            host.teach(message(2), "ham")
    host.model.catch_up()
    assert host.model.filed(message(2)).label is None
    base = host.outlet.outbox._base
    long = message(1) + b" ".join(b"word%d" % n for n in range(9999))
    ((n_pages,),) = base.execute("PRAGMA page_count")
    base.execute(f"PRAGMA max_page_count={n_pages}")
    with pytest.raises(ModelFileError, match=r"model\.share: database or disk is full; make room"):
        host.teach(long, "ham")
    base.execute(f"PRAGMA max_page_count={1000 * n_pages}")
    host.teach(long, "ham")
    assert host.model.filed(long).label == "ham"


def test_a_lesson_that_the_log_does_not_have_is_said_with_share_sync(host, monkeypatch):
    host.teach(message(1), "ham")
    with pytest.raises(SharedLogError, match="--share-sync: learned here, but not in the log"):
        host.outlet.wait_for_log(0)
    host.sharer.send()
    host.outlet.wait_for_log(0)
    monkeypatch.setattr(tempfile, "tempdir", os.devnull)  # a report needs no temporary files
    host.sharer.exchange()
    assert host.sharer.report()["model"] == host.sharer.digest()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://x/y", "not the address of a log"), ("redis://127.0.0.1", "no host or key"),
        ("redis://h/k?ssl_ca_certs=secret", "or an option behind it; give redis://HOST:PORT/KEY"),
        ("postgresql://u@h/db/t?password=secret", "give --share-password-command"),
        ("postgresql://h/table", "no database, or a table of other characters"),
        ("postgresql://h/db/Drop;", "no database, or a table of other characters"),
        ("http://u:secret@h/k", "give --share-password-command"),
        ("redis://u#x:secret@h/k", "with %23"), ("redis://h:99999/k", "not the address of a log"),
        ("redis://u:secret/@h/k", "not the address of a log"),
        ("redis://u:secret@[::1/k", "not the address of a log"),
    ],
)  # fmt: skip
def test_addresses_that_are_none_are_refused_without_their_passwords(url, why):
    with pytest.raises(UsageError, match=why) as refused:
        open_log(url)
    assert "secret" not in str(refused.value)


def test_a_lesson_that_a_standby_lacks_is_sent_again_and_the_same_one_twice_is_one(hosts):
    hosts[0].teach(message(0), "spam")
    for _ in range(3):
        hosts[0].sharer.send()
        hosts[0].log.records.clear()  # nobody has read it
    hosts[0].teach(message(2), "spam")
    for host in 2 * hosts:
        host.sharer.exchange()
    assert (len(hosts[1].opened("").told()), hosts[0].sharer.outbox.size()) == (2, 0)

    hosts[0].teach(message(1), "spam")
    hosts[0].sharer.send()
    hosts[0].sharer.outbox.send_again("lost log", "one")  # killed before it noted it
    hosts[1].sharer.exchange()
    hosts[1].teach(message(1), "ham")
    hosts[1].sharer.send()
    hosts[0].sharer.send()
    for host in hosts:
        host.sharer.exchange()

    assert [host.opened("").filed(message(1)).label for host in hosts] == ["ham", "ham"]


@pytest.mark.parametrize("is_read_first", [False, True])
def test_lessons_of_a_copied_or_restored_host_are_sent_under_another_name(tmp_path, is_read_first):
    log = MemoryLog()
    host, other = (Host(tmp_path / name, "model", log) for name in ("host", "other"))
    host.teach(message(0), "ham")
    host.stop()
    shutil.copytree(tmp_path / "host", tmp_path / "copy")
    hosts = [host, other, Host(tmp_path / "copy", "model", log)]
    hosts[-1].name = "copy"
    for each in hosts:
        each.start()
        each.sharer.report()
    for n in range(1, 4):
        host.teach(message(n), "spam")
    host.sharer.exchange()
    if is_read_first:
        with pytest.raises(SharedLogError, match="a copy, or an old one; its lessons are"):
            hosts[-1].sharer.exchange()
    for n in range(4, 7):
        hosts[-1].teach(message(n), "ham")
    for each in 3 * hosts:
        with suppress(SharedLogError):
            each.sharer.exchange()
        each.sharer.report()

    assert len(log.hosts()) == 3  # none by a former name
    assert len({each.export() for each in hosts}) == 1
    assert sorted(other.opened("").told().values()) == 4 * ["ham"] + 3 * ["spam"]
