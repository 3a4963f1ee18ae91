"""Pages of users by a server that runs: whoever teaches moves their own verdicts, and no other."""

import re
import sys
from pathlib import Path

import pytest

from maildirs import key_of, put
from markup import Page
from nbspam.classifier.training import learn_items
from nbspam.settings import SettingsChoices, chosen_settings
from nbspam.sources.items import Item, read_items
from nbspam.store.model import told_at
from nbspam.store.open import save_classifier
from serving import Browser, free_port, serving
from support import first_mails

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="serve forks")
NEWS = b"From: news@club.example\nSubject: zanzibar news %d\n\nmeeting of the kayak club %d\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The path of a model that calls the news of the club ham."""
    path = str(tmp_path_factory.mktemp("site") / "model")
    items = [*read_items([str(first_mails())])]
    items += [Item("-", "ham", NEWS % (n, n)) for n in range(20)]
    save_classifier(
        path, learn_items(items, chosen_settings(SettingsChoices(), is_text=False)).classifier
    )
    return path


def verdicts(browser):
    """Return the verdict of each message in the list, by its subject's number."""
    status, _, text = browser.ask("GET", "/")
    assert status == 200
    found = re.findall(r"<li.*?</li>", text, re.DOTALL)
    words = [Page(item).text for item in found]
    return {re.search(r"news (\d+)", each)[1]: re.search(r"ham|spam|unsure", each[40:])[0]
            for each in words}  # fmt: skip


def test_the_lessons_of_one_move_their_verdicts_and_nobody_elses(site, tmp_path):
    users, boxes = tmp_path / "users", tmp_path / "boxes"
    for user in ("ann", "bob"):
        for n in range(30, 37):
            put(boxes / user, n, NEWS % (n, n))
    before = Path(site).read_bytes()
    port = free_port()
    options = ("--web", str(port), "--users", users, "--review", boxes, "--jobs", "2")
    with serving(site, tmp_path, *options) as server:
        looker, ann, bob = Browser(port), Browser(port), Browser(port)
        looker.log_in(server)
        page = looker.ask("GET", "/")[2]
        links = re.findall(r'href="(/\?token=[^"]+)"><bdi>(\w+)', page)
        assert [name for _, name in links] == ["ann", "bob"]
        for browser, (link, _) in zip((ann, bob), links, strict=True):
            assert browser.ask("GET", link) == (303, "/", "")
            assert set(verdicts(browser).values()) == {"ham"}

        for n in range(30, 36):
            assert ann.tell(spam=key_of(n)) == 303
        assert ann.tell(form=bob.token(), ham=key_of(36)) == 403
        for _ in range(4):  # whichever worker answers
            assert verdicts(ann)["36"] == "spam"
            assert set(verdicts(bob).values()) == {"ham"}
        asked = b"CHECK SPAMC/1.5\r\n%s\r\n" + NEWS % (36, 36)
        for user, answer in ((b"User: Ann\r\n", b"True"), (b"User: bob\r\n", b"False"),
                             (b"", b"False")):  # fmt: skip
            assert b"Spam: %s" % answer in server.ask(asked % user)

        told = told_at(str(users / "ann" / "model"))
        assert list(told.values()) == ["spam"] * 6
        number = ann.lesson()
        assert bob.tell(undo=number) == 404
        assert told_at(str(users / "ann" / "model")) == told
        assert ann.tell(undo=number) == 303
        assert len(told_at(str(users / "ann" / "model"))) == 5
    assert Path(site).read_bytes() == before
    assert not list(Path(site).parent.glob("*.journal"))
    assert {path.name for path in (users / "bob").iterdir()} <= {
        "model.lock", "model.review", "model.review-wal", "model.review-shm", "model.review.lock",
    }  # fmt: skip
    assert "user=ann taught=spam outcome=learned" in server.errors.read_text()
    assert "token=" not in server.errors.read_text().partition("\n")[2]


def test_mail_moves_in_the_mailbox_of_its_user_if_that_is_a_maildir(site, tmp_path):
    users, boxes, port = tmp_path / "users", tmp_path / "boxes", free_port()
    path = put(boxes / "ann", 1, NEWS % (1, 1))
    (boxes / "bob").write_bytes(b"From x Thu Jan  1 00:00:00 1970\n" + NEWS % (2, 2))
    before = (boxes / "bob").read_bytes()
    options = ("--web", str(port), "--users", users, "--review", boxes, "--jobs", "1", "--move")
    with serving(site, tmp_path, *options) as server:
        looker = Browser(port)
        looker.log_in(server)
        page = looker.ask("GET", "/")[2]
        for link, name in re.findall(r'href="(/\?token=[^"]+)"><bdi>(\w+)', page):
            browser = Browser(port)
            browser.ask("GET", link)
            key = re.search(r'name="spam" value="([^"]+)"', browser.ask("GET", "/")[2])[1]
            assert browser.tell(spam=key) == 303
            assert list(told_at(str(users / name / "model")).values()) == ["spam"]
    assert not path.exists()
    assert (boxes / "ann/.Spam/new" / path.name).read_bytes() == NEWS % (1, 1)
    assert sorted(p.name for p in boxes.iterdir()) == ["ann", "bob"]
    assert (boxes / "bob").read_bytes() == before
