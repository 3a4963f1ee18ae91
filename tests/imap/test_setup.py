"""The first day of an account."""

import pytest

from accounts import letter
from maildirs import ham, spam
from nbspam.account import setup
from nbspam.store.open import load_tokens
from support import complains


@pytest.fixture
def filled(server):
    server.put("Junk", *(letter(spam, n) for n in range(10)), flags="\\Seen")
    server.put("Junk", *(letter(spam, n) for n in range(10, 20)))
    server.put("Archive", *(letter(ham, n) for n in range(12)))
    server.put(
        "INBOX", *(letter(ham, n) for n in range(20, 46)), letter(spam, 50), letter(ham, 60)
    )
    server.put("Sent", letter(ham, 70))
    return server


def test_the_first_day_ends_with_a_model_and_what_to_type_next(filled, nbspam, tmp_path):
    model = tmp_path / "new" / "m.nbspam"
    before = {name: filled.contents(name) for name in filled.folders}
    status, out, err = nbspam("setup", "-m", model, filled.url())

    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[:7] == [
        "inbox\t28\tINBOX",
        "junk\t20\tJunk",
        "archive\t12\tArchive",
        "sent\t1\tSent",
        "learned 20 of 20 messages in Junk as spam",
        "learned 33 of 33 messages in INBOX and Archive as ham",
        "10 of 20 in Junk were never opened: they count as spam only because they lie there",
    ]
    assert lines[7] == "in 10 folds: 0 of 33 ham called spam, 0 of 20 spam missed"
    assert lines[8] == "of the newest 7 in the inbox it would move 1"
    assert lines[9] == "  x@example.com: cheap pills"
    assert lines[10].startswith("    spam 0.99")
    assert lines[11] == f"model in {model}; nothing in the account was changed"
    assert lines[13].split()[:6] == ["nbspam", "sort", "--dry-run", "-m", str(model), filled.url()]
    assert {name: filled.contents(name) for name in filled.folders} == before
    assert not any(asked.startswith(("SELECT", "UID STORE")) for asked in filled.asked)
    classifier = load_tokens(str(model))
    assert classifier.table.class_count.tolist() == [33, 20]
    assert classifier.settings.sent_mail
    assert ", 1 spam;" in nbspam("sort", "-m", model, filled.url())[1]


def test_of_much_mail_a_sample_by_date_is_learned(filled, nbspam, tmp_path, monkeypatch):
    monkeypatch.setattr(setup, "MOST_OF_CLASS", 11)
    out = nbspam("setup", "-m", tmp_path / "m", filled.url())[1]
    assert "learned 11 of 20 messages in Junk as spam, evenly by date\n" in out
    assert "learned 11 of 33 messages in INBOX and Archive as ham, evenly by date\n" in out
    assert setup.spread(range(10), 4) == [0, 2, 5, 7]


def test_an_account_without_enough_mail_is_one_line(filled, nbspam, tmp_path):
    def said():
        return nbspam("setup", "-m", tmp_path / "m", filled.url())

    del filled.folders["INBOX"].messages[10:]
    assert complains(said(), 1, "INBOX has 10 messages, too few to learn from; begin with: nbspam")
    del filled.folders["Junk"].messages[5:]
    assert complains(said(), 1, "Junk has 5 messages, too few to learn from; put 10 or more")
    del filled.folders["Junk"]
    assert complains(said(), 1, "no junk folder; name one by --spam-folder")
    assert not (tmp_path / "m").exists()
