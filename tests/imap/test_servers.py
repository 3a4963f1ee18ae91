"""Dovecot and Cyrus: reading, sorting, faults, other clients, full accounts, OAuth2, TLS."""

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from accounts import DAY, Box, H, S, assert_sorted, fill, letter
from fake_imap import PASSWORD
from mail_servers import Cyrus, Dovecot, mail_server, needs
from maildirs import ham, spam
from nbspam.delivery.maildir import SortingReport
from nbspam.errors import LostError
from nbspam.imap import wire
from nbspam.imap.session import AccountSession
from serving import PATIENCE, Proxy, ask, certificate, free_port, until
from support import ROOT, complains, write_files

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
CHINESE = "垃圾 & Spam"
KINDS = [pytest.param(kind, id=kind.__name__, marks=needs[kind]) for kind in (Dovecot, Cyrus)]


@pytest.fixture(scope="module", params=KINDS)
def server(request):
    with mail_server(request.param) as found:
        yield found


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def user(server, request):
    """An account of its own for each test."""
    server.user = f"user{abs(hash(request.node.nodeid)) % 10**9}"
    return server


@pytest.fixture
def new_box(trained_well, tmp_path):
    """Make an account of its own at a server, with a model that knows enough."""

    def made(server):
        server.user = f"u{random.randrange(10**9)}"
        return Box(server, shutil.copytree(trained_well, tmp_path / server.user) / "m.nbspam")

    return made


def test_an_account_is_read_like_files_and_nothing_is_marked(user, nbspam, exported, tmp_path):
    user.put("INBOX", *map(ham, range(5)))
    user.put("Junk", *map(spam, range(5)))
    folders = ["--spam", user.url(folder="Junk"), "--ham", user.url(folder="INBOX")]
    files = {f"{make.__name__}/{n}.eml": make(n) for n in range(5) for make in (ham, spam)}
    assert exported(*folders) == exported(write_files(tmp_path / "mails", files))

    third = nbspam("classify", folders[1])[1].splitlines()[2].split("\t")[2]
    assert nbspam("explain", "--brief", third)[1].startswith("spam ")
    assert all(flags == set() for name in ("INBOX", "Junk") for _, flags in user.contents(name))


@pytest.mark.parametrize("hides", [(), ("MOVE",), ("SPECIAL-USE", "LIST-EXTENDED")])
def test_lessons_are_learned_once_and_mail_is_moved_once(kind, hides, new_box):
    with mail_server(kind, hides=hides) as server:
        box = new_box(server)
        fill(box)
        before = sum(box.learned())
        assert_sorted(box, box.sort().learned, before)


def test_without_move_and_uidplus_spam_gets_a_keyword(kind, new_box):
    with mail_server(kind, hides=("MOVE", "UIDPLUS")) as server:
        box = new_box(server)
        box.put("INBOX", S[0], H[0])
        box.put("INBOX", H[1], flags="\\Deleted")
        report = box.sort()
        assert "gets the keyword $Junk" in report.notes[0]
        assert dict(server.contents("INBOX")) == {
            S[0]: {"$Junk"},
            H[0]: set(),
            H[1]: {"\\Deleted"},
        }
        assert (box.sort().learned, box.sort().judged) == ([], [])


def test_another_uidvalidity_and_other_names_of_folders(user, new_box):
    box = new_box(user)
    box.put("INBOX", S[0], H[0])
    box.sort()
    user.renumber()
    assert (box.sort().learned, box.sort().judged) == ([], [])
    with user.client(user.user) as client:
        client.rename(user.quoted("Junk"), user.quoted("Junk2"))
    box.put("INBOX", S[1])
    report = box.sort(spam_folder=CHINESE)
    assert report.judged == [("spam", user.named(CHINESE))]
    assert (box.sort(spam_folder=CHINESE).learned, report.learned) == ([], [])


def test_a_folder_has_the_name_that_its_user_gives_it_or_the_servers(user, trained, nbspam):
    user.put("INBOX", S[0])
    names = (user.named("Junk"), "Junk") if user.prefix else ("Junk",)
    for n, name in enumerate(names, 1):
        user.put("INBOX", S[n])
        nbspam("sort", "--spam-folder", name, user.url())
        assert user.bodies("Junk") == S[: n + 1]
    result = nbspam("classify", user.url(folder="Jnk"))
    assert complains(result, 1, f"no such folder; there is {user.named('Junk')}")


# ---- faults on the way ----


class ByProxy(Box):
    """An account that is sorted through a proxy; its user is not."""

    def __init__(self, server, model, proxy):
        super().__init__(server, model)
        self.proxy = proxy

    def url(self):
        return self.server.url(port=self.proxy.port)


@pytest.mark.parametrize("where", ["cut_line", "cut_byte"])
def test_wherever_the_connection_is_cut_nothing_is_lost_or_done_twice(where, server, new_box):
    proxy = Proxy(server.port)
    for number in range(0, 40, 2) if where == "cut_line" else range(20, 9000, 431):
        box = ByProxy(server, new_box(server).model, proxy)
        fill(box)
        before = sum(box.learned())
        proxy.n_lines = proxy.n_bytes = 0
        setattr(proxy, where, number)
        learned = box.sort_on()
        setattr(proxy, where, None)
        assert_sorted(box, learned, before)
    proxy.close()


def long_letter(make, n):
    return letter(make, n) + 100 * make(n).partition(b"\n\n")[2]


def lessons_of_looks(account):
    """Sort until no connection is lost; return the lessons."""
    reports = []
    while len(reports) < 100:
        reports.append(SortingReport())
        with contextlib.suppress(LostError), AccountSession(account.url, account.book) as session:
            account.sort_once(session, DAY, reports[-1])
            return [one.label for each in reports for one in each.learned]
    raise AssertionError("lost again and again")


def test_a_server_that_closes_after_some_bytes_takes_only_more_connections(
    server, new_box, monkeypatch
):
    proxy, results, n_bytes, n_connections = Proxy(server.port), [], 0, 0
    connect = wire.connected

    def connected(*words):
        nonlocal n_connections
        proxy.n_bytes, proxy.cut_byte = 0, cut
        n_connections += 1
        return connect(*words)

    monkeypatch.setattr(wire, "connected", connected)
    for cut in (None, 100_000):
        box = ByProxy(server, new_box(server).model, proxy)
        box.put("INBOX", *S[:3], *H[:3])
        box.sort()
        box.move(H[0], "INBOX", "Junk")
        box.put("Junk", H[1])  # a copy, which is no lesson
        box.put("INBOX", *(long_letter(make, n) for n in range(200, 350) for make in (spam, ham)))
        box.put("INBOX", *(long_letter(ham, n) for n in range(400, 500)), flags="\\Seen")
        box.put("INBOX", *(b"X-" + long_letter(ham, n) for n in range(500, 550)))
        box.put("Junk", *(long_letter(ham, n) for n in range(600, 650)))
        n_connections = 0
        lessons = lessons_of_looks(box.account())
        n_bytes = n_bytes or proxy.n_bytes
        proxy.cut_byte = None
        where = {name: sorted(bodies) for name, bodies in box.where().items()}
        results.append((lessons, where, box.learned()))
        assert 2 * (cut is not None) < n_connections < max(2, 3 * n_bytes / 100_000)
        assert (box.sort().learned, box.sort().judged) == ([], [])
    proxy.close()
    assert results[0] == results[1]
    assert results[0][0] == 51 * ["spam"]


@pytest.mark.parametrize(
    "garbled",
    [(b"FETCH (", b"FETCH ))"), (b"UID ", b"UID x"), (b"SEARCH ", b"SEARCH -"), (b"OK ", b"KO ")],
)
def test_garbled_answers_change_nothing(garbled, server, new_box, nbspam):
    proxy = Proxy(server.port)
    box = new_box(server)
    fill(box)
    before = sum(box.learned())
    proxy.garbled = garbled
    found = nbspam("sort", "-m", box.model, server.url(port=proxy.port))
    assert complains(found, 1, "127.0.0.1")
    proxy.close()
    assert_sorted(box, box.sort().learned, before)


def command(box, *words):
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "XDG_CONFIG_HOME": "/nonexistent",
        "SECRET": PASSWORD,
    }
    line = [sys.executable, "-m", "nbspam", *words, "-m", str(box.model)]
    return [*line, "--password-command", "printf %s $SECRET"], env


def test_a_process_that_is_killed_at_any_moment_loses_and_doubles_nothing(server, new_box):
    proxy = Proxy(server.port)
    n_killed = 0
    for number in range(16):
        box = ByProxy(server, new_box(server).model, proxy)
        fill(box)
        before = sum(box.learned())
        words, env = command(box, "sort", box.url())
        proxy.n_lines = 0
        process = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        # From the first command on: starting takes longer than all of the work.
        while process.poll() is None and not proxy.n_lines:
            time.sleep(0.002)
        time.sleep(0.02 * number)
        process.kill()
        n_killed += process.wait(PATIENCE) == -signal.SIGKILL
        process.communicate()
        box.sort()
        assert_sorted(box, [], before)
    proxy.close()
    assert n_killed > 2


def test_another_client_moves_and_deletes_while_mail_is_sorted(server, new_box):
    box = new_box(server)
    spams = [letter(spam, n) for n in range(200, 240)]
    box.put("INBOX", *spams, *H)
    box.put("Other")

    def disturb():
        for n in range(0, 40, 4):
            with contextlib.suppress(AssertionError):  # sorted already
                server.move(spams[n], "INBOX", "Other")
            with contextlib.suppress(AssertionError):
                server.delete(spams[n + 1], "INBOX")

    thread = threading.Thread(target=disturb)
    thread.start()
    for _ in range(6):
        assert box.sort().learned == []
    thread.join()
    box.sort()
    where = box.where()
    everything = [data for bodies in where.values() for data in bodies]
    # Of two clients that move a message at the same moment, a server may let both copy it.
    twice = set(where["Other"]) & set(where["Junk"])
    assert twice <= set(spams[::4])
    assert len(everything) == len(set(everything)) + len(twice)
    assert {*H, *(data for n, data in enumerate(spams) if n % 4 != 1)} <= set(everything)
    assert set(where["INBOX"]) == set(H)


def test_a_full_account_is_one_line(kind, new_box, nbspam):
    with mail_server(kind, most=3, hides=("MOVE",)) as server:
        box = new_box(server)
        box.put("INBOX", S[0], H[0], H[1])
        result = nbspam("sort", "-m", box.model, server.url())
        assert complains((result[0], "", result[2]), 1, "the account is full; delete some mail")
        assert result[1] == "new: 2 ham; learned from moves: nothing\n"
        assert sorted(box.where()["INBOX"]) == sorted([S[0], H[0], H[1]])
        server.delete(H[1], "INBOX")
        assert box.sort().judged == [("spam", server.named("Junk"))]


@needs[Dovecot]
def test_mail_beside_messages_that_the_server_cannot_read_is_sorted(new_box):
    with mail_server(Dovecot) as server:
        box = new_box(server)
        box.put("INBOX", S[0], *H[:4], S[1])
        server.leave()
        place = server.place / "box" / server.user / "Maildir"
        files = {file.read_bytes(): file for file in place.glob("*/*S=*")}
        files[H[1]].write_bytes(H[1][:40])  # at whose headers Dovecot closes the connection
        larger = re.sub(r"S=\d+,W=\d+", "S=999,W=999", files[H[2]].name)
        files[H[2]].rename(place / "cur" / larger)  # at whose end it does
        report = box.sort()
        assert report.judged == [("spam", "Junk"), ("spam", "Junk"), ("ham", None), ("ham", None)]
        assert ["twice; look at the message" in one.reason for one in report.skipped] == [True] * 2


# ---- OAuth2, TLS ----


class Introspection(BaseHTTPRequestHandler):
    """Answers as an authorization server does (RFC 7662)."""

    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"])).decode()
        active = "good" in data
        said = json.dumps({"active": active, "username": "ann", "email": "ann"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_):
        pass


@needs[Dovecot]
@pytest.mark.parametrize("mechanism", ["xoauth2", "oauthbearer"])
def test_a_token_of_oauth2_logs_in(mechanism, nbspam, trained):
    authority = HTTPServer(("127.0.0.1", 0), Introspection)
    threading.Thread(target=authority.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # the server may enter, unlike pytest's folders
        oauth = Path(folder, "oauth2.conf.ext")
        oauth.write_text(
            f"introspection_mode = post\n"
            f"introspection_url = http://127.0.0.1:{authority.server_port}/\n"
            "username_attribute = username\nactive_attribute = active\nactive_value = true\n"
        )
        passdb = f"driver = oauth2\n  mechanisms = {mechanism}\n  args = {oauth}"
        passdb += f"\n}}\npassdb {{\n  driver = static\n  args = password={PASSWORD}\n"
        with mail_server(passdb=passdb, mechanisms=f"plain {mechanism}") as server:
            server.put("INBOX", S[0])
            url = server.url(folder="INBOX")
            assert nbspam("classify", "--token-command", "echo good", url)[1].startswith("spam")
            result = nbspam("classify", "--token-command", "echo old", url)
            assert complains(result, 1, "the access token is refused or has expired")
    authority.shutdown()
    authority.server_close()


def test_tls_is_verified(kind, nbspam, trained, tmp_path):
    certificate(tmp_path)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # the server may enter, unlike pytest's folders
        files = [shutil.copy(tmp_path / name, folder) for name in ("cert", "key")]
        os.chmod(files[1], 0o644)
        with mail_server(kind, tls=files) as server:
            server.put("INBOX", S[0])
            plain = server.url(folder="INBOX")
            secure = server.url(folder="INBOX", port=server.tls_port).replace("imap:", "imaps:")
            found = nbspam("classify", secure)
            assert complains(found, 1, "is not to be trusted", "--tls-ca FILE")
            trusting = "classify", "--tls-ca", files[0]
            for url in (secure, plain):  # by STARTTLS
                assert nbspam(*trusting, url)[1].startswith("spam")
            other = secure.replace("127.0.0.1", "localhost")
            assert complains(nbspam(*trusting, other), 1, "check the name")


# ---- watching ----


@contextlib.contextmanager
def watching(box, *words):
    """Run `nbspam sort --watch` until the block ends; yields the process and its errors."""
    line, env = command(box, "sort", "--watch", box.server.url(), *words)
    path = box.model.parent / "errors"
    with open(path, "wb") as errors:
        process = subprocess.Popen(line, env=env, stderr=errors)
    try:
        yield process, path
    finally:
        process.terminate()
        assert process.wait(PATIENCE) == 0, path.read_text()


@pytest.mark.parametrize("hides", [(), ("IDLE",)])
def test_new_mail_is_sorted_while_the_account_is_watched(kind, hides, new_box):
    with mail_server(kind, hides=hides) as server:
        box = new_box(server)
        port = free_port()
        box.put("INBOX", S[0], H[0])
        with watching(box, "--metrics", str(port)) as (process, errors):
            until(lambda: "verdict=ham" in errors.read_text())
            assert server.bodies("Junk") == [S[0]]
            line = next(x for x in errors.read_text().splitlines() if "verdict=spam" in x)
            name = f"account={server.user}@127.0.0.1:{server.port} verdict=spam probability=0.9"
            assert line.startswith(name)
            assert f" moved={server.named('Junk')} ms=" in line
            if not hides:
                time.sleep(0.5)
                box.put("INBOX", S[1])
                until(lambda: server.bodies("Junk") == [S[0], S[1]])
                box.move(H[0], "INBOX", "Junk")
                until(lambda: "taught=spam" in errors.read_text())
                metrics = ask(port, b"GET /metrics HTTP/1.0\r\n\r\n").decode()
                assert 'nbspam_messages_total{verdict="spam"} 2.0' in metrics
                assert 'nbspam_lessons_total{outcome="learned"} 1.0' in metrics
                server.restart()  # after which it comes back
                until(lambda: "connection lost" in errors.read_text())
                name = f"{server.user}@127.0.0.1:{server.port}"
                lost = rf"nbspam: {name}: connection lost .* \(account={name}\)\n"
                assert re.search(lost, errors.read_text())
                box.put("INBOX", S[2])
                until(lambda: S[2] in server.bodies("Junk"))
            assert process.poll() is None


@pytest.mark.parametrize("hides", [(), ("MOVE",)])
def test_two_devices_that_watch_an_account_move_each_message_once(
    kind, hides, trained_well, tmp_path
):
    with mail_server(kind, hides=hides) as server:
        devices = [
            Box(server, shutil.copytree(trained_well, tmp_path / n) / "m.nbspam") for n in "12"
        ]
        with watching(devices[0]) as (_, one), watching(devices[1]) as (_, other):
            server.put("INBOX", H[0])
            until(lambda: all("verdict=ham" in each.read_text() for each in (one, other)))
            for data in S:
                server.put("INBOX", data)
                time.sleep(0.2)
            until(lambda: server.bodies("INBOX") == [H[0]])
        assert sorted(server.bodies("Junk")) == sorted(S)
