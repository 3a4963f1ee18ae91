"""Review of held mail, without Postfix; with it: tests/server/test_mail_systems.py."""

import json
from contextlib import closing
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from nbspam.delivery import postfix
from nbspam.sharing.outbox import Outbox
from nbspam.store.model import StoredModel
from support import SPAM, complains


class Held(NamedTuple):
    """A message as `postfix.HeldMessage` has it."""

    identifier: str
    recipients: tuple[str, ...]
    done: list[str]
    sender: str = "x@example.com"

    def read(self):
        self.named_recipients()
        return f"Message-ID: <{self.identifier}@example.com>\n".encode() + SPAM

    def named_recipients(self):
        if not self.recipients:
            raise postfix.MessageGoneError("postcat: the message is gone")
        return list(self.recipients)

    def release(self):
        self.done.append(f"released {self.named_recipients() and self.identifier}")

    def delete(self):
        self.done.append(f"deleted {self.named_recipients() and self.identifier}")


@pytest.fixture
def hold(monkeypatch):
    """Let messages be held, by their recipients; return what becomes of them."""
    done = []

    def start(*recipients):
        found = [Held(str(number), each, done) for number, each in enumerate(recipients)]
        monkeypatch.setattr("nbspam.delivery.postfix.held_messages", lambda _: found)
        return done

    return start


def test_only_a_line_feed_ends_a_line_of_an_envelope(monkeypatch):
    said = "recipient: ann@example.org\u2028original_recipient: bob\nrecipient: carol\n".encode()
    monkeypatch.setattr(postfix, "_run", lambda *_: SimpleNamespace(stdout=said))
    found = postfix.HeldMessage("1", "x@example.com", ()).named_recipients()
    assert found == ["ann@example.org\u2028original_recipient: bob", "carol"]


def test_only_messages_that_postfix_holds_are_listed(monkeypatch):
    row = {"queue_name": "hold", "queue_id": "4C1B", "sender": "a@b.example", "recipients": []}
    rows = row, row | {"queue_name": "active", "queue_id": "4C1C"}, row | {"queue_id": "../x"}
    said = b"".join(json.dumps(each).encode() + b"\n" for each in rows)
    monkeypatch.setattr(postfix, "_run", lambda *_: SimpleNamespace(stdout=said))
    assert [each.identifier for each in postfix.held_messages()] == ["4C1B"]


def test_lessons_teach_the_one_recipient_else_the_site_and_reach_the_outbox_so(
    nbspam, trained, tmp_path, hold
):
    users, n_docs = tmp_path / "users", StoredModel(str(trained)).classifier().table.n_docs
    words = "held", "-m", trained, "--users", users
    done = hold(("<Ann@Example.org>",), ("ann@example.org", "bob@example.org"), ("a" * 300,))
    Outbox(str(trained)).close()  # the model shares its lessons
    assert nbspam(*words, "--ham", 0, 1, 2)[:2] == (0, "delivered 3\nlearned 3\n")
    assert done == ["released 0", "released 1", "released 2"]
    with closing(Outbox(str(trained))) as outbox:
        taught = [lesson.user for lesson in outbox.unsent(9)]
    assert taught == ["ann@example.org", "", ""]  # no folder has that name
    assert [path.name for path in users.iterdir()] == ["ann@example.org"]
    assert StoredModel(str(trained)).classifier().table.n_docs == n_docs + 2

    hold(("ann@example.org",), ("bob@example.org",))  # without users, the site learns
    assert nbspam(*words[:3], "--spam", 0, 1)[:2] == (0, "deleted 2\nlearned 1, moved 1\n")
    assert done[3:] == ["deleted 0", "deleted 1"]
    (users / "ann@example.org" / "model").write_bytes(b"no model")
    status, out, err = nbspam(*words)  # a user's model that cannot be read is told of
    assert (status, len(out.splitlines()), err.count("model: ")) == (0, 2, 1)


@pytest.mark.parametrize("option", [(), ("--users",)])
def test_messages_that_are_gone_are_named_and_the_others_are_done(
    nbspam, trained, hold, tmp_path, option
):
    done = hold((), ("bob@example.org",))  # the first has gone since it was listed
    users = [*option, tmp_path][: 2 * len(option)]
    status, out, err = nbspam("held", "-m", trained, *users, "--ham", 7, 0, 1)
    assert (status, out) == (1, "delivered 1\nlearned 1, skipped 2\n")
    why = "not a message that Postfix holds; nbspam held lists them"
    gone = f"nbspam: skipped 7: {why}\nnbspam: skipped 0: postcat: the message is gone\n"
    assert err.startswith(gone)
    assert done == ["released 1"]


def test_what_is_wrong_is_said_and_nothing_is_delivered(nbspam, trained, hold, tmp_path):
    done = hold(("ann@example.org",))
    words = "held", "-m", trained
    (tmp_path / "file").write_bytes(b"")
    assert complains(nbspam(*words, "--users", tmp_path / "file"), 1, "--users", "not a folder")
    nbspam("train", "-m", tmp_path / "plain", "--model", "multinomial", tmp_path / "mails")
    plain = nbspam("held", "-m", tmp_path / "plain", "--users", tmp_path, "--ham", 0)
    assert complains(plain, 2, "does not combine the evidence of mail")
    assert complains(nbspam("held", "-m", tmp_path / "none", "--ham", 0), 1, "none: no such")
    assert complains(nbspam(*words, "--ham"), 2, "--ham: no ID; name messages as nbspam held")
    assert done == []


def test_without_postfix_held_says_so(nbspam, monkeypatch, trained):
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    said = "postqueue: not found; nbspam held needs Postfix on this"
    assert complains(nbspam("held", "-m", trained), 1, said)


@pytest.mark.parametrize("option", ["ham", "spam"])
def test_an_option_that_is_set_elsewhere_is_read_as_true_or_false(
    nbspam, trained, hold, config, monkeypatch, option
):
    words, done = ("held", "-m", trained, 0), hold(("ann@example.org",))
    config.write_text(f"[held]\n{option} = false\n")
    assert nbspam(*words)[0] == 0
    monkeypatch.setenv(f"NBSPAM_HELD_{option.upper()}", "0")
    assert (nbspam(*words)[0], done) == (0, [])
    monkeypatch.delenv(f"NBSPAM_HELD_{option.upper()}")
    config.write_text(f"[held]\n{option} = true\n")
    both = nbspam(*words, "--ham", "--spam")
    assert complains(both, 2, "--ham and --spam: messages are delivered or deleted")
    assert (nbspam(*words)[0], len(done)) == (0, 1)
    assert StoredModel(str(trained)).classifier().classes == ("ham", "spam")
