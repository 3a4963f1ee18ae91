"""The page of a server that runs: the first line, logging in, what it shows, a start anew."""

import re
import shutil
import signal

import pytest

from maildirs import key_of, put
from markup import Page
from nbspam.maildir.sort import SortingChoices, sort_maildir
from nbspam.store.model import told_at
from protocols import check
from serving import Browser, free_port, serving, until
from support import SPAM


@pytest.fixture
def folder(tmp_path, served_model):
    shutil.copy(served_model, tmp_path / "m.nbspam")
    return tmp_path


@pytest.mark.parametrize("log", ["text", "none"])
def test_the_first_line_is_the_address_that_logs_in(folder, log):
    port = free_port()
    options = ("--web", str(port), "--jobs", "2", "--log", log)
    with serving(folder / "m.nbspam", folder, *options) as server:
        first, *others = server.errors.read_text().splitlines()
        path = re.fullmatch(rf"http://127\.0\.0\.1:{port}(/\?token=[\w.-]{{20,}})", first)[1]
        browser = Browser(port)
        assert browser.ask("GET", "/")[0] == 403
        assert browser.ask("GET", path) == (303, "/", "")

        server.ask(check(SPAM))
        for _ in range(5):  # by whichever worker
            status, _, text = browser.ask("GET", "/")
            assert status == 200
            assert "spam 1 " in Page(text).text
        assert browser.ask("POST", "/logout", {"form": browser.token()})[:2] == (303, "/")
        assert browser.ask("GET", "/")[0] == 403
        assert path[8:] not in server.errors.read_text().partition("\n")[2]
    assert any("web on 127.0.0.1" in line for line in others)


def test_who_is_logged_in_stays_so_when_the_server_reads_its_options_or_starts_anew(folder):
    port = free_port()
    browser = Browser(port)
    with serving(folder / "m.nbspam", folder, "--web", str(port), "--jobs", "1") as server:
        first = server.errors.read_text().splitlines()[0]
        browser.log_in(server)
        assert browser.ask("GET", "/")[0] == 200
        before = server.pids
        server.process.send_signal(signal.SIGHUP)
        until(lambda: set(server.pids).isdisjoint(before) and server.pids)
        assert browser.ask("GET", "/")[0] == 200
    server.errors.unlink()
    with serving(folder / "m.nbspam", folder, "--web", str(port), "--jobs", "1") as server:
        assert server.errors.read_text().splitlines()[0] == first
        assert browser.ask("GET", "/")[0] == 200


def test_what_a_click_teaches_is_in_the_model_on_disk(folder):
    port, model = free_port(), folder / "m.nbspam"
    data = b"From: a@b.example\nSubject: zebra\n\nzebras graze in the meadow\n"
    put(folder / "box", 1, data)
    options = ("--web", str(port), "--jobs", "2", "--review", str(folder / "box"))
    with serving(model, folder, *options) as server:
        browser = Browser(port)
        browser.log_in(server)
        assert browser.tell(spam=key_of(1)) == 303
        assert list(told_at(str(model)).values()) == ["spam"]
        assert browser.tell(undo=browser.lesson()) == 303
        assert told_at(str(model)) == {}
        assert server.metrics()['nbspam_lessons_total{outcome="unlearned"}'] == 1
    assert "taught=spam outcome=learned" in server.errors.read_text()


def test_what_a_click_moves_is_no_lesson_for_sort_and_undoing_moves_it_back(folder):
    port, model, box = free_port(), folder / "m.nbspam", folder / "box"
    data = b"From: a@b.example\nSubject: zebra\n\nzebras graze in the meadow\n"
    path = put(box, 1, data)
    moved = box / ".Spam/new" / path.name

    def sort():
        report = sort_maildir(str(box), str(model), SortingChoices(), 20_000)
        return report.learned, report.judged

    options = ("--web", str(port), "--jobs", "1", "--review", str(box), "--move")
    with serving(model, folder, *options) as server:
        browser = Browser(port)
        browser.log_in(server)
        before = server.pids
        server.process.send_signal(signal.SIGHUP)
        until(lambda: set(server.pids).isdisjoint(before) and server.pids)

        assert browser.tell(spam=key_of(1)) == 303
        assert list(told_at(str(model)).values()) == ["spam"]
        assert (path.exists(), moved.read_bytes()) == (False, data)
        assert sort() == ([], [])
        assert browser.tell(undo=browser.lesson()) == 303
        assert (path.read_bytes(), moved.exists(), told_at(str(model))) == (data, False, {})
        assert sort() == ([], [])
        assert path.exists()
        assert browser.tell(spam="../../m.nbspam") == 404


def test_who_begins_without_a_model_teaches_one_by_clicks(tmp_path):
    port, model = free_port(), tmp_path / "new" / "m.nbspam"
    model.parent.mkdir()
    words = {1: "cheap pills now", 2: "lunch on friday", 3: "pills, cheap", 4: "friday lunch?"}
    for number, text in words.items():
        put(tmp_path / "box", number, f"Subject: {text}\n\n{text}\n".encode())
    options = ("--web", str(port), "--jobs", "1", "--review", str(tmp_path / "box"))
    with serving(model, tmp_path, *options) as server:
        browser = Browser(port)
        browser.log_in(server)
        before = browser.ask("GET", "/")[2]
        for label, number in (("spam", 1), ("ham", 2)):
            assert browser.tell(**{label: key_of(number)}) == 303
        after = browser.ask("GET", "/?words=cheap")[2], browser.ask("GET", "/?words=lunch")[2]

    assert "too little to judge" in Page(before).text
    assert "too little to judge" not in Page(after[0]).text
    likelier = [re.findall(r"\(([\d.]+) % spam\)", text)[0] for text in after]
    assert float(likelier[0]) > 50 > float(likelier[1])
