"""The page of a server that runs: logging in, what a click leaves on disk, a restart, users."""

import re
from contextlib import contextmanager

import pytest

from maildirs import key_of, news, put
from markup import Page
from nbspam.delivery.maildir import SortingChoices, sort_maildir
from nbspam.store.model import StoredModel
from protocols import check
from serving import Browser, free_port, serving
from support import SPAM

ZEBRA = b"From: a@b.example\nSubject: zebra\n\nzebras graze in the meadow\n"
LINK = r'href="(/\?token=[^"]+)"><bdi>(\w+)'  # that logs a user in


@contextmanager
def visited(model, folder, *options):
    """Run a server with a page until the block ends; yield it, and a browser, logged in."""
    browser = Browser(free_port())
    with serving(model, folder, "--web", str(browser.port), *options) as server:
        browser.log_in(server)
        yield server, browser


def labels(model):
    return list(StoredModel(str(model)).told().values())


# ---- the site ----


@pytest.mark.parametrize("log", ["text", "none"])
def test_the_first_line_is_the_address_that_logs_in_and_who_is_logged_in_stays_so(
    own_model, tmp_path, log
):
    with visited(own_model, tmp_path, "--jobs", "2", "--log", log) as (server, browser):
        first, *others = server.errors.read_text().splitlines()
        port = browser.port
        path = re.fullmatch(rf"http://127\.0\.0\.1:{port}(/\?token=[\w.-]{{20,}})", first)[1]
        assert Browser(port).ask("GET", "/")[0] == 403
        assert Browser(port).ask("GET", path) == (303, "/", "")

        server.ask(check(SPAM))
        for _ in range(5):  # by whichever worker
            status, _, text = browser.ask("GET", "/")
            assert status == 200
            assert "spam 1 " in Page(text).text
        stays = Browser(port)
        stays.log_in(server)
        assert browser.ask("POST", "/logout", {"form": browser.token()})[:2] == (303, "/")
        assert browser.ask("GET", "/")[0] == 403
        assert path[8:] not in server.errors.read_text().partition("\n")[2]
        server.reread()
        assert stays.ask("GET", "/")[0] == 200
    assert any("web on 127.0.0.1" in line for line in others)
    server.errors.unlink()
    with serving(own_model, tmp_path, "--web", str(port), "--jobs", "1") as server:
        assert server.errors.read_text().splitlines()[0] == first
        assert stays.ask("GET", "/")[0] == 200


def test_what_a_click_teaches_is_in_the_model_and_moves_and_is_no_lesson_for_sort(
    own_model, tmp_path
):
    box = tmp_path / "box"
    path = put(box, 1, ZEBRA)
    moved = box / ".Spam/new" / path.name

    def sort_leaves_all():
        report = sort_maildir(str(box), str(own_model), SortingChoices(), 20_000)
        return (report.learned, report.judged) == ([], [])

    options = ("--jobs", "2", "--review", str(box), "--move")
    with visited(own_model, tmp_path, *options) as (server, browser):
        server.reread()
        assert browser.tell(spam=key_of(1)) == 303
        assert labels(own_model) == ["spam"]
        assert (path.exists(), moved.read_bytes()) == (False, ZEBRA)
        assert sort_leaves_all()
        assert browser.tell(undo=browser.lesson()) == 303
        assert (path.read_bytes(), moved.exists(), labels(own_model)) == (ZEBRA, False, [])
        assert sort_leaves_all()
        assert path.exists()
        assert browser.tell(spam="../../m.nbspam") == 404
        assert server.metrics()['nbspam_lessons_total{outcome="unlearned"}'] == 1
    assert "taught=spam outcome=learned" in server.errors.read_text()


def test_who_begins_without_a_model_teaches_one_by_clicks(tmp_path):
    model = tmp_path / "new" / "m.nbspam"
    model.parent.mkdir()
    words = {1: "cheap pills now", 2: "lunch on friday", 3: "pills, cheap", 4: "friday lunch?"}
    for number, text in words.items():
        put(tmp_path / "box", number, f"Subject: {text}\n\n{text}\n".encode())
    options = ("--jobs", "1", "--review", str(tmp_path / "box"))
    with visited(model, tmp_path, *options) as (_, browser):
        before = browser.ask("GET", "/")[2]
        for label, number in (("spam", 1), ("ham", 2)):
            assert browser.tell(**{label: key_of(number)}) == 303
        after = browser.ask("GET", "/?words=cheap")[2], browser.ask("GET", "/?words=lunch")[2]

    assert "too little to judge" in Page(before).text
    assert "too little to judge" not in Page(after[0]).text
    likelier = [re.findall(r"\(([\d.]+) % spam\)", text)[0] for text in after]
    assert float(likelier[0]) > 50 > float(likelier[1])


@contextmanager
def people(site, folder, *options):
    """Run a server with pages of users; yield it, and the browsers of ann and bob."""
    options = ("--users", folder / "users", "--review", folder / "boxes", *options)
    with visited(site, folder, *options) as (server, looker):
        links = re.findall(LINK, looker.ask("GET", "/")[2])
        assert [name for _, name in links] == ["ann", "bob"]
        ann, bob = Browser(looker.port), Browser(looker.port)
        for browser, (link, _) in zip((ann, bob), links, strict=True):
            assert browser.ask("GET", link) == (303, "/", "")
        yield server, ann, bob


def verdicts(browser):
    status, _, text = browser.ask("GET", "/")
    assert status == 200
    rows = [Page(row).text for row in re.findall(r"<li.*?</li>", text, re.DOTALL)]
    return {
        re.search(r"news (\d+)", each)[1]: re.search(r"ham|spam|unsure", each[40:])[0]
        for each in rows
    }


def test_the_lessons_of_one_move_their_verdicts_and_nobody_elses(site, tmp_path):
    users = tmp_path / "users"
    for user in ("ann", "bob"):
        for n in range(30, 37):
            put(tmp_path / "boxes" / user, n, news(n))
    before = site.read_bytes()
    with people(site, tmp_path, "--jobs", "2") as (server, ann, bob):
        for browser in (ann, bob):
            assert set(verdicts(browser).values()) == {"ham"}
        for n in range(30, 36):
            assert ann.tell(spam=key_of(n)) == 303
        assert ann.tell(form=bob.token(), ham=key_of(36)) == 403
        for _ in range(4):  # whichever worker answers
            assert verdicts(ann)["36"] == "spam"
            assert set(verdicts(bob).values()) == {"ham"}
        for user, answer in (("User: Ann", b"True"), ("User: bob", b"False"), ("A: b", b"False")):
            asked = check(news(36), "CHECK", "1.5", user)
            assert b"Spam: %s" % answer in server.ask(asked)

        assert labels(users / "ann" / "model") == ["spam"] * 6
        number = ann.lesson()
        assert bob.tell(undo=number) == 404
        assert labels(users / "ann" / "model") == ["spam"] * 6
        assert ann.tell(undo=number) == 303
        assert labels(users / "ann" / "model") == ["spam"] * 5
    assert site.read_bytes() == before
    assert not list(site.parent.glob("*.journal"))
    notes = {
        f"model.{end}" for end in ("lock", "review", "review-wal", "review-shm", "review.lock")
    }
    assert {path.name for path in (users / "bob").iterdir()} <= notes
    assert "user=ann taught=spam outcome=learned" in server.errors.read_text()
    assert "token=" not in server.errors.read_text().partition("\n")[2]
