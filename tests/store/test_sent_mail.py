"""Sent mail in models: learned, un-learned, merged, written and read again, and its commands."""

from dataclasses import replace
from pathlib import Path

import pytest

from nbspam.decision import cutoffs
from nbspam.settings import PRESETS
from nbspam.sources.items import Item
from nbspam.store import library
from nbspam.store.merging import merge
from nbspam.store.model import StoredModel
from nbspam.store.modelfile import load_state
from nbspam.store.open import keep_cutoffs, load_tokens, read_text_model, save_classifier
from nbspam.store.text import model_lines
from nbspam.tokens.people import learned_sent_mail
from stored import DAY, half_spam, numbered, train_on, whole_bytes
from support import SPAM, complains, make_maildir, words_of, write_files


def sent(n):
    """Return a message that the user sent to person n."""
    head = b"From: me@x\nTo: Person No%d <p%d@x>\nMessage-ID: <sent%d@x>\n\nhello %d\n"
    return Item(f"sent{n}", None, head % (n, n, n, n))


def answers(numbers):
    """Return ham that answers sent messages, and spam that pretends to."""
    head = b"From: p%d@x\nTo: me@x\nIn-Reply-To: <%s%d@x>\nMessage-ID: <a%d@x>\n\nword%d\n"
    return [
        Item(f"{label}{n}", label, head % (own, kind, n, own, own))
        for n in numbers
        for label, kind, own in (("ham", b"sent", n), ("spam", b"false", 1000 + n))
    ]


DATE = b"Date: Fri, 02 Aug 2002 12:36:23 +0000\n"
COPIES = [each._replace(data=DATE + each.data) for each in map(sent, range(5))]
KNOWN = learned_sent_mail([*COPIES, *map(sent, range(9))])
SETTINGS = replace(PRESETS["mail"], sent_mail=KNOWN)


def test_the_facts_are_learned_and_decide(tmp_path):
    train_on(answers(range(9)), tmp_path / "m", SETTINGS)
    model = load_tokens(str(tmp_path / "m"))
    counts = dict(zip(words_of(model.table), model.table.feature_count.tolist(), strict=True))
    assert counts["people:reply-to-you"] == counts["people:known-correspondent"] == [9, 0]
    assert counts["people:reply-to-nothing"] == counts["people:first-contact"] == [0, 9]
    unseen = [each._replace(data=each.data.replace(b"word", b"new")) for each in answers([3])]
    assert [verdict.label for verdict in model.classify(unseen)] == ["ham", "spam"]


def test_without_sent_mail_a_file_has_nothing_of_it(tmp_path):
    train_on(answers(range(3)), tmp_path / "m")
    state = load_state(str(tmp_path / "m"))
    assert "sent_mail" not in state
    assert "authserv_id" not in state["settings"]


def test_learning_and_unlearning_sent_mail_are_inverse(tmp_path):
    path = tmp_path / "m"
    train_on(half_spam(range(40)), path, SETTINGS)
    before = whole_bytes(path)
    model, other = StoredModel(str(path)), StoredModel(str(path))
    model.learn([numbered(50)], day=DAY)
    assert model.learn_sent_mail(learned_sent_mail([sent(3), sent(20)]))
    assert not other.learn_sent_mail(learned_sent_mail([sent(20)]))
    assert len(other.settings.sent_mail.messages) == 10
    assert other.learn([numbered(50)], day=DAY).already_known == 1
    assert model.unlearn_sent_mail([sent(20)])
    assert not model.unlearn_sent_mail([sent(20)])
    model.unlearn([numbered(50)], day=DAY)
    assert whole_bytes(path) == before
    assert model.unlearn_sent_mail(map(sent, range(9)))
    assert StoredModel(str(path)).settings == PRESETS["mail"]


def test_merging_unites_sent_mail_and_keeps_the_cutoffs_of_the_first(tmp_path):
    for name, numbers in (("a", (1, 2)), ("b", (2, 3)), ("c", ())):
        known = learned_sent_mail(map(sent, numbers))
        train_on(half_spam(range(8)), tmp_path / name, replace(SETTINGS, sent_mail=known))
    keep_cutoffs(str(tmp_path / "c"), cutoffs(10, 0.2))
    merged = merge([str(tmp_path / name) for name in "cab"], DAY).classifier
    assert merged.cutoffs == cutoffs(10, 0.2)
    assert merged.settings.sent_mail == learned_sent_mail(map(sent, (1, 2, 3)))


def test_text_gives_the_same_model(tmp_path):
    train_on(answers(range(9)), tmp_path / "m", replace(SETTINGS, authserv_id="mx.x"))
    lines = list(model_lines(load_tokens(str(tmp_path / "m"))))
    assert sum(b'"sent"' in line for line in lines) == 9
    assert b"sent3@x" not in b"".join(lines)
    (tmp_path / "text").write_bytes(b"".join(lines))
    save_classifier(str(tmp_path / "again"), read_text_model(str(tmp_path / "text")))
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


@pytest.fixture
def maildir(tmp_path):
    """Make a Maildir with a folder of spam and one of sent mail; return its path."""
    for folder, items in (
        ("", answers(range(6))[::2]),
        (".Junk", answers(range(6))[1::2]),
        (".Sent", map(sent, range(6))),
    ):
        cur = make_maildir(tmp_path / "Maildir" / folder) / "cur"
        write_files(cur, {item.name: item.data for item in items})
    return tmp_path / "Maildir"


def test_commands_find_the_sent_mail_of_a_maildir(nbspam, maildir, model, config):
    told = nbspam("train", "--spam", maildir / ".Junk", "--ham", maildir / "cur")[1]
    assert "learned 6 sent messages, 6 correspondents\n" in told
    assert "6 sent messages, 6 correspondents" in nbspam("info")[1]
    known = nbspam.json("info")["sent_mail"]
    assert known == {"messages": 6, "correspondents": 6}
    said = nbspam("explain", maildir / "cur" / "ham1")[1]
    assert "people:reply-to-you (answers a message that you sent to this address)" in said

    more = maildir.parent / "more.eml"
    more.write_bytes(sent(7).data)
    known = "learned sent mail; 7 sent messages, 7 correspondents in all\n"
    assert nbspam("update", "--sent", more) == (0, known, "")
    assert nbspam("update", "--sent", more, "--spam", "-", stdin=SPAM)[1] == "learned 1\n"
    left = "forgot sent mail; 6 sent messages, 6 correspondents left\n"
    assert nbspam("unlearn", "--sent", more) == (0, left, "")
    assert nbspam("unlearn", "--sent", more) == (0, "nothing to do\n", "")
    config.write_text(f'[common]\nsent = "{maildir}/.Sent"\n')  # for commands that learn it
    assert nbspam("unlearn", more) == (0, "not known 1\n", "")
    assert "6 sent messages" in nbspam("info")[1]
    assert library.load(Path(model)).learn_sent_mail([sent(8)])
    assert "7 sent messages" in nbspam("info")[1]


def test_an_empty_folder_of_sent_mail_is_an_error_only_if_it_is_named(nbspam, maildir, model):
    sources = ("--spam", maildir / ".Junk", "--ham", maildir / "cur")
    for path in (maildir / ".Sent/cur").iterdir():
        path.unlink()

    for command, said in (("train", "read 12"), ("update", "already known 12"), ("eval", "12 of")):
        assert nbspam(command, *sources)[1].startswith(said)
    named = nbspam("train", *sources, "--sent", maildir / ".Sent")
    assert complains(named, 1, "no messages found")


def test_parts_of_a_training_know_it_too(nbspam, maildir, tmp_path):
    sources = "--spam", maildir / ".Junk", "--ham", maildir
    nbspam("train", *sources, "-m", tmp_path / "whole")
    for number in (1, 2):
        nbspam("shard", f"{number}/2", *sources, "-o", tmp_path / f"part.{number}")
    nbspam("merge", tmp_path / "part.1", tmp_path / "part.2", "-o", tmp_path / "sum")
    assert (tmp_path / "sum").read_bytes() == (tmp_path / "whole").read_bytes()


def test_models_are_judged_by_what_was_known_when_a_message_came(nbspam, maildir, tmp_path):
    sources = "--spam", maildir / ".Junk", "--ham", maildir
    own = "--sent", maildir / ".Sent"

    def right(*arguments):
        return nbspam.json("eval", *arguments, "--cv", 3)["accuracy"]

    assert right(*sources) == right(*sources, *own) == 1
    (maildir / ".Sent").rename(tmp_path / "elsewhere")
    assert right(*sources) < 1
    own = "--sent", tmp_path / "elsewhere"
    assert right(*sources, *own) == 1
    nbspam("train", *sources)
    tuned = [
        nbspam.json("tune", *sources, *more, "--cv", 3)["by_costs"]["cost"] for more in ((), own)
    ]
    assert tuned[1] < tuned[0]
    assert nbspam("doubts", *sources, *own)[0] == 0
    complains(nbspam("eval", maildir, *own), 2, "--sent: only for training; add --cv K")
