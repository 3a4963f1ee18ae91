"""Sorting an account from its first day: nothing lost or doubled, whatever fails."""

import errno
import shlex
import shutil
import signal
import socket
import sqlite3
import sys
import threading
import time
from contextlib import closing, suppress
from itertools import count
from types import SimpleNamespace

import pytest

from accounts import Box, H, S, assert_sorted, book_of, fill, letter
from fake_imap import AFTER, PASSWORD, FakeFolder, ImapHandler, fake_server
from maildirs import ham, spam
from nbspam.delivery import account, account_look, account_setup
from nbspam.errors import InputError, LostError
from nbspam.imap import accounts, session, wire
from nbspam.imap.troubles import AccountRefusedError
from nbspam.mail.addresses import change_lists, sender_of
from nbspam.server import watch
from nbspam.store.open import load_tokens
from support import complains, crash_at, json_lines, raising

UNSURE = b"Message-ID: <u@x>\nSubject: zzz\n\nqqq\n"  # with these options
# A second delivery of S[0], and ham with its headers.
AGAIN = S[0].replace(b"\n\n", b"\nX-Route: other\n\n", 1)
FORGED = b"".join(S[0].partition(b"\n\n")[:2]) + 9 * H[1].partition(b"\n\n")[2]
TO_PERHAPS = ("--unsure-cost", "0.05", "--unsure-folder", "Perhaps")


@pytest.fixture
def box(server, trained):
    return Box(server, trained)


def test_spam_is_moved_and_nothing_is_marked_or_learned(box):
    box.put("INBOX", S[0], H[0], S[1])
    before = box.learned()

    assert box.sort().judged == [("spam", "Junk"), ("spam", "Junk"), ("ham", None)]
    assert box.where() == {"INBOX": [H[0]], "Junk": [S[0], S[1]], "Trash": []}
    assert all(not flags for name in box.where() for _, flags in box.server.contents(name))
    again = box.sort()
    assert (again.judged, again.learned, box.learned()) == ([], [], before)

    change_lists(box.model, [sender_of(H[1]) or ""], "deny")  # as in a Maildir
    box.put("INBOX", H[1])
    assert box.sort().judged == [("spam", "Junk")]
    with fake_server(before=AFTER) as server:  # another one of this host is another account
        server.greeting = b"* PREAUTH hello\r\n"  # it knows its user, and asks for no password
        other = Box(server, box.model)
        other.put("INBOX", S[0])
        assert other.sort().judged == [("spam", "Junk")]


def test_read_mail_is_noted_some_messages_at_a_time(box, monkeypatch):
    monkeypatch.setattr(account_look, "_AT_ONCE", 2)
    box.put("INBOX", *H[:5], flags="\\Seen")
    box.put("INBOX", H[5], H[6])
    assert box.sort().judged == [("ham", None)] * 2

    box.server.renumber("INBOX")
    for _ in range(2):
        box.server.asked.clear()
        report = box.sort()
        assert (report.judged, report.learned) == ([], [])
    assert not [each for each in box.server.asked if "FETCH" in each]
    box.move(H[0], "INBOX", "Junk")
    assert box.sort().learned == ["spam"]


@pytest.mark.parametrize(
    ("data", "source", "target", "label"),
    [
        (H[0], "INBOX", "Junk", "spam"), (S[0], "Junk", "INBOX", "ham"),
        (S[0], "Junk", "Archive", "ham"), (S[0], "Junk", "Made now", "ham"),
        (S[0], "Junk", "First", "ham"), (S[0], "Junk", "163", "ham"), (S[0], "Junk", "Spam", None),
        (S[0], "Junk", "Trash", None), (S[0], "Junk", "Junk/old", None),
        (S[0], "Junk", "Kosz", None), (S[0], "Junk", "Roskakori", None),  # a trash, too
        (H[0], "INBOX", "Trash", None), (H[0], "INBOX", "Archive", None),
    ],
)  # fmt: skip
def test_a_move_is_a_lesson_which_is_learned_once(data, source, target, label, box, monkeypatch):
    monkeypatch.setattr(account, "_MOST_OTHERS", 3)  # which are the account's own
    box.server.after, box.server.namespaces = f"{AFTER} NAMESPACE", '(("" "/")) NIL (("All/" "/"))'
    for folder in ("Archive", "All/1", "All/2") if target != "First" else ():
        box.put(folder, H[5], flags="\\Seen")
    if target == "Roskakori":
        del box.server.folders["Trash"]
    if target == "163":  # 163.com asks for the name of a program, and states no UIDNEXT
        box.server.after, box.server.states_next = f"{AFTER} ID", False
    box.put("INBOX", S[0], H[0])
    box.sort()
    words = " ".join(box.server.asked)
    assert ('ID ("name" "nbspam" "' in words, "UID 0:" in words) == (target == "163", False)
    box.move(data, source, target)
    if target == "Trash":
        box.put("virtual/All", data)  # which shows all messages wherever they are
    before = sum(box.learned())

    assert box.sort().learned == [label] * (label is not None)
    assert box.label_of(data) == label
    assert sum(box.learned()) == before + (label is not None)
    box.server.asked.clear()
    assert (box.sort().learned, [e for e in box.server.asked if "STATUS" in e]) == ([], [])


@pytest.mark.parametrize(
    ("word", "data", "folder", "label"),
    [
        ("$Junk", H[0], "INBOX", "spam"), ("Junk", H[0], "INBOX", "spam"),
        ("$NotJunk", S[0], "Junk", "ham"), ("NonJunk", S[0], "Junk", "ham"),
    ],
)  # fmt: skip
def test_keywords_of_mail_programs_are_lessons(word, data, folder, label, box):
    box.put("INBOX", S[0], H[0])
    box.sort()
    box.flag(data, folder, word)

    assert box.sort().learned == [label]
    assert box.sort().learned == []
    assert box.label_of(data) == label
    new = letter(ham, 50) if label == "spam" else letter(spam, 50)
    box.put("INBOX", new, flags=word)
    assert (box.sort().learned, box.label_of(new)) == ([label], label)


def test_spam_that_the_model_did_not_know_is_learned_from_the_junk_folder(box):
    box.put("Junk", S[0], H[0], b"GIF89a\n" + H[2])  # and what is no mail is not
    box.teach(H[1], "ham")
    box.put("Junk", H[1])

    report = box.sort()
    assert (report.learned, box.sort().learned, box.sort().skipped) == (["spam"], [], [])
    assert [box.label_of(each) for each in (S[0], H[0], H[1])] == [None, "spam", "ham"]
    told = "looks like a GIF picture, not like mail or text"
    assert [each.reason for each in report.skipped] == [told]


def test_a_tag_is_set_instead_of_moving_and_taking_it_away_teaches(box):
    box.put("INBOX", S[0], H[0])

    assert box.sort(tags=True).judged == [("spam", "$Junk"), ("ham", None)]
    assert dict(box.server.contents("INBOX")) == {S[0]: {"$Junk"}, H[0]: set()}
    assert box.sort(tags=True).learned == []
    box.flag(S[0], "INBOX", "$Junk", "-FLAGS")
    assert [box.sort(tags=True).learned for _ in range(2)] == [["ham"], []]


@pytest.mark.parametrize("is_first_kept", [True, False])
@pytest.mark.parametrize(("flags", "tagged"), [("", True), ("\\Seen", False)])
def test_spam_with_a_tag_that_is_delivered_again_is_judged(flags, tagged, is_first_kept, box):
    box.put("INBOX", S[0])
    box.sort(tags=True)
    box.put("INBOX", AGAIN, flags=flags)
    if not is_first_kept:
        box.server.delete(S[0], "INBOX")
    found = box.sort(tags=True)
    assert (found.judged, found.learned) == ([("spam", "$Junk")] if tagged else [], [])
    assert ("$Junk" in dict(box.server.contents("INBOX"))[AGAIN]) == tagged

    box.put("INBOX", FORGED)
    looks = [box.sort(tags=True) for _ in range(3)]
    assert [each.judged for each in looks] == [[("ham", None)], [], []]
    assert all(each.learned == [] for each in looks)


@pytest.mark.parametrize(("data", "learned"), [(S[0], []), (H[0], ["spam"])])
def test_of_two_copies_the_one_with_a_keyword_speaks(data, learned, box):
    box.put("INBOX", data)
    box.sort(tags=True)
    box.put("INBOX", data)
    assert [box.sort(tags=True).learned for _ in range(3)] == [[], [], []]
    box.flag(data, "INBOX", "$Junk")
    assert [box.sort(tags=True).learned for _ in range(3)] == [learned, [], []]


@pytest.mark.parametrize("flags", ["", "\\Seen"])
@pytest.mark.parametrize("cut", ["cut_before", "cut_after"])
def test_spam_that_is_delivered_again_is_judged_and_no_lesson(flags, cut, box):
    for number in range(20):
        first = letter(spam, 100 + number)
        again, place = first + b"by another way\n", "INBOX" if flags else "Junk"
        box.put("INBOX", first)
        box.sort()
        box.put("INBOX", again, flags=flags)
        getattr(box.server, cut).add(len(box.server.asked) + number)
        assert box.sort_on() == []
        getattr(box.server, cut).clear()
        assert [box.where()[name].count(again) for name in (place, "Junk")] == [1, not flags]
        box.server.delete(first, "Junk")  # which is no move to the inbox
        assert (box.sort().learned, box.sort().judged) == ([], [])


@pytest.mark.parametrize("flags", ["", "\\Seen"])
def test_mail_with_the_headers_of_spam_that_was_being_moved_stays(flags, box, monkeypatch):
    moved = session.AccountSession.move

    def cut(*words):
        moved(*words)
        raise LostError("lost")

    box.put("INBOX", S[0])
    with monkeypatch.context() as patch, suppress(LostError):
        patch.setattr(session.AccountSession, "move", cut)
        box.sort()
    box.put("INBOX", FORGED, flags=flags)
    assert box.sort().learned == box.sort().learned == []
    assert (box.where()["INBOX"], box.where()["Junk"]) == ([FORGED], [S[0]])


@pytest.mark.parametrize(("flags", "is_kept"), [("", True), ("", False), ("\\Seen", True)])
def test_spam_with_the_headers_of_known_ham_is_judged(flags, is_kept, box):
    names = b"message-id", b"date", b"from", b"subject"
    head = [line for line in H[0].split(b"\n\n")[0].split(b"\n") if line.lower().startswith(names)]
    forged = b"\n".join([*head, b"", S[0].partition(b"\n\n")[2]])
    box.put("INBOX", H[0], H[1])
    assert box.sort().judged == [("ham", None), ("ham", None)]
    if not is_kept:
        box.move(H[0], "INBOX", "Archive")
        box.server.delete(H[1], "INBOX")
        assert (box.sort().judged, box.sort().learned) == ([], [])
    box.put("INBOX", forged, flags=flags)
    assert box.sort().judged == ([] if flags else [("spam", "Junk")])
    assert (box.sort().judged, box.sort().learned) == ([], [])


@pytest.mark.parametrize("flags", ["", "\\Seen"])
def test_a_second_delivery_is_no_lesson_after_the_first_was_removed_or_its_folder_renamed(
    flags, box
):
    box.put("INBOX", S[0])
    box.sort()
    box.server.delete(S[0], "Junk")
    box.sort()
    box.put("INBOX", AGAIN, flags=flags)
    report = box.sort()
    assert (report.learned, report.judged) == ([], [] if flags else [("spam", "Junk")])
    if not flags:
        box.server.rename("Junk", "Spam")
        box.put("INBOX", S[0])
        assert [box.sort().judged for _ in range(3)] == [[], [("spam", "Spam")], []]
        assert box.where()["Spam"] == [AGAIN, S[0]]


def able_to(abilities):
    """Return what the server says it can, with no ways to move but these."""
    return " ".join([*(w for w in AFTER.split() if w not in ("MOVE", "UIDPLUS")), abilities])


def filled_box(server, trained_well, place):
    """Return a box of its own with mail to sort, and how much its model has learned."""
    shutil.copytree(trained_well, place)
    server.empty()
    box = Box(server, place / "m.nbspam")
    fill(box)
    return box, sum(box.learned())


@pytest.mark.parametrize("abilities", ["UIDPLUS", "MOVE", ""])
def test_a_server_moves_as_it_can_and_never_removes_what_others_marked(abilities, box):
    box.server.after = able_to(abilities)
    box.put("INBOX", S[0], H[0])
    box.put("INBOX", H[1], flags="\\Deleted \\Seen")
    report = box.sort()

    if abilities:
        assert box.where()["Junk"] == [S[0]]
        assert report.judged[0] == ("spam", "Junk")
    else:
        assert dict(box.server.contents("INBOX"))[S[0]] == {"$Junk"}
        assert "cannot move a message alone, so spam gets the keyword $Junk" in report.notes[0]
    assert H[1] in box.where()["INBOX"]
    assert box.sort().learned == []


def test_unsure_mail_stays_unless_there_is_a_folder_for_it(box, nbspam):
    for message, options, folder in (
        (UNSURE, TO_PERHAPS[:2], "INBOX"),
        (UNSURE.replace(b"<u@", b"<v@"), TO_PERHAPS, "Perhaps"),
    ):
        box.put("INBOX", message)
        done = nbspam("sort", *options, box.server.url())
        assert done == (0, "new: 1 unsure; learned from moves: nothing\n", "")
        assert box.server.bodies(folder) == [message]


def test_a_dry_run_says_what_would_be_done_and_does_nothing(box, nbspam):
    box.put("INBOX", S[0], H[0])
    box.put("Junk", H[1])
    before = box.learned()
    url = box.server.url(folder="INBOX;UIDVALIDITY=11/;UID=")
    junk = box.server.url(folder="Junk;UIDVALIDITY=12/;UID=1")

    status, out, err = nbspam("sort", "--dry-run", "--unsure-folder", "New", box.server.url())
    assert (status, err.endswith("New: no such folder; it would be made\n")) == (0, True)
    assert out.splitlines() == [
        f"learn\tspam\t{junk}",
        f"move\tspam\t{url}1\tJunk",
        f"leave\tham\t{url}2\t",
        "new: 1 ham, 1 spam; would be learned from moves: 1 spam",
    ]
    status, out, _ = nbspam("sort", "--dry-run", "--json", box.server.url())
    assert (status, len(json_lines(out)[0]["judged"])) == (0, 2)
    assert box.where()["INBOX"] == [S[0], H[0]]
    assert box.learned() == before
    assert not any(asked.startswith(("SELECT", "UID STORE")) for asked in box.server.asked)
    assert not list(box.model.parent.glob("*.accounts"))


def test_messages_are_known_again_when_a_folder_is_numbered_again_or_renamed(box):
    box.put("INBOX", S[0], H[0])
    box.sort()
    box.server.renumber("INBOX")
    box.server.renumber("Junk")
    assert (box.sort().judged, box.sort().learned) == ([], [])
    box.server.rename("Junk", "Müll & Co")
    assert (box.sort().judged, box.sort().learned) == ([], [])
    box.server.renumber("INBOX")
    box.move(S[0], "Müll & Co", "INBOX")
    box.flag(S[0], "INBOX", "\\Seen")
    assert box.sort().learned == ["ham"]
    for validity in (0, 2**63, 2**70, -(2**70)):  # the server states none, or what is none
        box.server.folders["INBOX"].validity = validity
        assert [box.sort().judged for _ in range(2)] == [[], []]


def test_a_folder_that_is_numbered_again_during_a_look_ends_it(box, monkeypatch):
    box.put("INBOX", S[0])
    box.sort()
    box.move(S[0], "Junk", "INBOX")

    def look_elsewhere(sorter):
        box.server.renumber("INBOX")
        sorter.session.open("Junk")

    with monkeypatch.context() as patch:
        patch.setattr(account.AccountSorter, "_look_elsewhere", look_elsewhere)
        with pytest.raises(LostError, match="INBOX: has other UIDs"):
            box.sort()
    assert (box.sort().learned, box.label_of(S[0])) == (["ham"], "ham")


def test_a_move_before_the_junk_folder_is_made_again_is_a_lesson(box):
    box.put("Archive", H[5], flags="\\Seen")
    box.put("INBOX", *S[:2])
    box.sort()
    box.put("Label", S[0])  # Gmail shows a message in several folders
    box.move(S[0], "Junk", "Archive")
    box.server.renumber("Archive")
    box.server.folders["Junk"] = FakeFolder(99, "\\Junk")
    assert box.sort().learned == ["ham"]
    box.server.asked.clear()
    assert (box.sort().learned, [e for e in box.server.asked if "STATUS" in e]) == ([], [])


def test_spam_that_is_marked_and_deleted_makes_no_ham_of_its_second_delivery(box):
    box.put("INBOX", S[0], AGAIN, flags="\\Seen")
    box.sort()
    box.flag(S[0], "INBOX", "$Junk")
    assert box.sort().learned == ["spam"]
    box.move(S[0], "INBOX", "Trash")
    assert [box.sort().learned for _ in range(2)] == [[], []]
    assert box.label_of(S[0]) == "spam"


def test_mail_that_its_user_called_ham_stays_without_the_notes(server, trained_well, tmp_path):
    box = Box(server, shutil.copytree(trained_well, tmp_path / "well") / "m.nbspam")
    box.put("INBOX", S[0])
    box.sort()
    box.move(S[0], "Junk", "INBOX")
    assert box.sort().learned == ["ham"]
    for path in box.model.parent.glob("*.accounts*"):
        path.unlink()
    box.teach(S[1], "spam")
    box.put("INBOX", S[1])
    report = box.sort()
    assert (report.judged, report.learned) == ([("spam", "Junk")], [])
    assert server.bodies("INBOX") == [S[0]]
    server.asked.clear()
    assert box.sort().judged == []
    assert not [each for each in server.asked if "BODY" in each]


def test_messages_without_message_id_are_known_by_their_bytes(box):
    box.put("INBOX", spam(1), ham(1), ham(2), ham(3))
    box.sort()
    box.move(ham(3), "INBOX", "Junk")
    assert [box.sort(learns=False).learned, box.sort().learned] == [[], []]  # as its user says
    box.move(ham(2), "INBOX", "Junk")
    assert box.sort().learned == ["spam"]
    assert [box.label_of(ham(n)) for n in (2, 1)] == ["spam", None]


def test_a_copy_of_a_message_in_two_folders_is_no_lesson(box):
    box.put("INBOX", H[0])
    box.sort()
    box.server.renumber("INBOX")
    box.put("Junk", H[0])
    assert [box.sort().learned for _ in range(2)] == [[], []]
    box.server.delete(H[0], "INBOX")
    assert [box.sort().learned for _ in range(2)] == [["spam"], []]


def test_without_a_model_the_first_lessons_begin_one_and_then_mail_is_judged(box, monkeypatch):
    kept = box.model.read_bytes()
    box.model.unlink()
    box.put("INBOX", S[0], S[1], H[0])
    with monkeypatch.context() as patch:
        patch.setattr(account, "_MOST_AGAIN", 2)  # a look reads only so many
        assert [box.sort().judged for _ in range(2)] == [[("unsure", None)] * 2] * 2
    for _ in range(2):
        report = box.sort()
        assert "the model knows no mail yet" in report.lack
        assert report.judged == [("unsure", None)] * 3
    assert box.where()["INBOX"] == [S[0], S[1], H[0]]
    box.move(S[0], "INBOX", "Junk")
    assert box.sort().learned == ["spam"]
    box.model.write_bytes(kept)
    assert box.sort().judged == [("spam", "Junk"), ("ham", None)]


# ---- faults: lost 0, doubled 0, marked read 0, lessons lost 0, learned twice 0 ----


@pytest.mark.parametrize("abilities", ["MOVE UIDPLUS", "UIDPLUS"])
@pytest.mark.parametrize("place", ["cut_before", "cut_after"])
def test_whatever_command_ends_the_connection_nothing_is_lost_or_done_twice(
    abilities, place, server, trained_well, tmp_path
):
    server.after = able_to(abilities)
    for number in count():
        box, before = filled_box(server, trained_well, tmp_path / str(number))
        server.asked.clear()
        setattr(server, place, {number})
        learned = box.sort_on()
        is_over = number >= len(server.asked)
        server.cut_before, server.cut_after = set(), set()
        assert_sorted(box, learned, before)
        if is_over:
            break
    assert number > 15


@pytest.mark.parametrize(
    ("is_first", "is_killed", "more", "said", "n_left"),
    [
        (True, False, b"", None, 1),
        (False, False, b"", None, 2),  # the second copy is the other device's own
        (True, True, b"", None, 1),
        (True, False, b"another body\n", None, 2),
        (True, False, b"", b"TAG NO [NOPERM] you may not\r\n", 2),
    ],
)
def test_of_two_devices_that_move_a_message_at_once_the_first_copy_stays(
    is_first, is_killed, more, said, n_left, box, monkeypatch
):
    box.server.answers["UID EXPUNGE"] = said
    box.put("INBOX", S[0], S[1])
    real = session.AccountSession.move

    def move(self, uids, folder):
        box.put("Junk", *[S[0] + more] * is_first)
        placed = real(self, uids, folder)
        box.put("Junk", *[S[0] + more] * (not is_first))
        if is_killed:
            raise KeyboardInterrupt
        return placed

    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(session.AccountSession, "move", move)
        assert box.sort().skipped == []
    assert [box.sort().learned for _ in range(2)] == [[], []]
    junk = [data.removesuffix(more) for data in box.where()["Junk"]]
    assert (junk.count(S[0]), junk.count(S[1]), box.where()["INBOX"]) == (n_left, 1, [])


@pytest.mark.parametrize(("change", "learned"), [("+FLAGS", ["spam"]), ("-FLAGS", [])])
def test_a_keyword_that_changes_after_a_lost_connection_is_seen_by_the_next(
    change, learned, box, monkeypatch
):
    box.put("INBOX", H[0], flags="\\Seen" if learned else "\\Seen $Junk")
    with monkeypatch.context() as patch:
        patch.setattr(account.AccountSorter, "_find_needs", raising(LostError("gone")))
        with pytest.raises(LostError):
            box.sort()
    box.flag(H[0], "INBOX", "$Junk", change)
    assert [box.sort().learned for _ in range(2)] == [learned, []]


@pytest.mark.parametrize("at_once", [1, 9])
def test_a_server_that_refuses_to_look_for_doubles_is_asked_no_more_in_the_junk_folder(
    at_once, box, nbspam, monkeypatch
):
    box.put("Junk", S[5], S[6])
    box.sort()
    box.put("INBOX", S[0], UNSURE)  # with the UIDs of the messages in the junk folder

    def refused(sorter, target, _):
        sorter.session.open(target)
        raise AccountRefusedError("expunged by another client", "EXPUNGEISSUED")

    monkeypatch.setattr(account.AccountSorter, "_others_in", refused)
    monkeypatch.setattr(session, "FETCHED_MESSAGES", at_once)
    nbspam("sort", *TO_PERHAPS, box.server.url())
    where = {"INBOX": [], "Junk": [S[5], S[6], S[0]], "Trash": [], "Perhaps": [UNSURE]}
    assert box.where() == where


@pytest.mark.parametrize("name", ["keep_heads", "note", "leave", "keep_following"])
@pytest.mark.parametrize("is_after", [False, True])
def test_wherever_the_process_is_killed_nothing_is_lost_or_done_twice(
    name, is_after, server, trained_well, tmp_path, monkeypatch
):
    ends = 0
    for nth in range(8):
        box, before = filled_box(server, trained_well, tmp_path / str(nth))
        with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
            crash_at(2 * nth + is_after, patch, account_look.AccountMemory, name)
            box.sort()
            ends += 1
        box.sort()
        assert_sorted(box, [], before)
        box.move(S[4], "Junk", "INBOX")
        assert box.sort().learned == ["ham"]
    assert ends < 8


@pytest.mark.parametrize("command", ["UID STORE", "UID EXPUNGE"])
def test_mail_that_may_not_be_removed_is_copied_once_and_the_rest_goes_on(command, box):
    box.server.after = able_to("UIDPLUS")
    box.server.answers[command] = b"TAG NO [SERVERBUG] you may not\r\n"
    for n in range(3):
        box.put("INBOX", S[n], H[n])
        report = box.sort()
        assert (report.judged, len(report.skipped)) == ([("ham", None)], n + 1)
        assert box.where()["Junk"] == S[: n + 1]
    box.server.answers.clear()
    assert (box.sort().skipped, box.where()["INBOX"]) == ([], H[:3])


@pytest.mark.parametrize(("left", "need"), [("", "HAM"), ("ham", "VERDICT")])
def test_a_message_that_was_being_moved_is_a_lesson_if_its_user_has_marked_it_since(left, need):
    message = account_look.PlacedMessage("folder", 1, 1, 1, "ham", "ham", is_read=True)
    was = account_look.LeftMessage(account_look.MOVING, left)
    assert account_look.need_of(message, was, {"ham"}, has_gone=True).name == need


@pytest.mark.parametrize(
    ("part", "breaks", "why"),
    [
        ("RFC822.SIZE", False, "(fetch failed: [SERVERBUG] broken)"),
        ("BODY.PEEK[]", False, "(fetch failed: [SERVERBUG] broken)"),
        ("RFC822.SIZE", True, "closed by the server), twice; look"),
        ("BODY.PEEK[]", True, "closed by the server), twice; look"),
        ("BODY.PEEK[]", "silent", "nothing is said), twice; look"),
    ],
)
def test_a_message_that_is_not_shown_is_named_and_the_rest_goes_on(
    part, breaks, why, box, monkeypatch
):
    box.put("INBOX", S[0], *H[:3], S[1])
    box.server.refused, box.server.breaks = {3: part}, breaks
    monkeypatch.setattr(wire, "SILENCE_SECONDS", 0.5)
    for learned in ([], ["ham"]):
        report = box.sort()
        assert report.learned == learned
        assert [one.name for one in report.skipped] == [
            box.server.url(folder="INBOX;UIDVALIDITY=11/;UID=3")
        ]
        assert why in report.skipped[0].reason
        if not learned:
            assert box.where() == {"INBOX": H[:3], "Junk": S[:2], "Trash": []}
            box.move(S[0], "Junk", "INBOX")
    box.put("INBOX", H[4])

    def cut():  # the next look, once
        box.server.cut_before = box.server.cut_before or {len(box.server.asked) + 4}
        box.put("INBOX", H[5])

    monkeypatch.setattr(watch, "_PAUSES", (0.001, 0.001))
    told, _ = watched(2, box.account(), on_note=cut)
    assert ["skipped" in text for _, text in told] == [True, False]
    box.server.refused.clear()
    assert (box.sort().judged, box.sort().skipped) == ([("ham", None)], [])


@pytest.mark.parametrize("command", ["STATUS", "EXAMINE", "UID FETCH", "UID FETCH 2"])
@pytest.mark.parametrize("others", [["Archive"], ["Archive", "Other"]])
def test_a_folder_that_is_refused_once_loses_no_lesson_and_hinders_no_mail(command, others, box):
    for name in others:
        box.put(name, H[len(name)], flags="\\Seen")
    box.put("INBOX", S[0])
    box.sort()
    box.move(S[0], "Junk", "Archive")
    box.put("INBOX", *[H[0]] * (command == "EXAMINE"))
    n_before = {"STATUS": 1, "EXAMINE": 1, "UID FETCH 2": 2}.get(command, 0)
    box.server.answers[command.removesuffix(" 2")] = [b""] * n_before + [b"TAG NO [SERVERBUG]\r\n"]
    looks = [box.sort() for _ in range(3)]
    assert [each.learned for each in looks] == [[], ["ham"], []]
    assert looks[0].judged == [("ham", None)] * (command == "EXAMINE")


def test_another_client_may_move_and_delete_at_the_same_time(box, monkeypatch):
    box.put("INBOX", *S[:4], *H[:4])
    real = account.AccountSorter._move

    def move(*words):
        box.move(S[0], "INBOX", "Archive")
        box.server.delete(S[1], "INBOX")
        return real(*words)

    with monkeypatch.context() as patch:
        patch.setattr(account.AccountSorter, "_move", move)
        box.sort()
    assert box.where() == {"INBOX": H[:4], "Junk": S[2:4], "Trash": [], "Archive": [S[0]]}
    assert (box.sort().learned, box.sort().judged) == ([], [])


# ---- errors, each in one line ----


def test_what_cannot_be_sorted_is_one_line(box, nbspam, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client.openmetrics.exposition", None)
    url = box.server.url()
    for words, status, *said in [
        (("--watch", "--dry-run", url), 2, "--watch: stays connected and sorts; leave --dry-run"),
        (("--watch", "--json", url), 2, "--json: for the report of one run; --watch has --log"),
        (("--flag", "F", url), 2, "--flag: for Maildirs; an account has --tag"),
        (("--tag", tmp_path), 2, "--tag: for accounts; a Maildir has --flag"),
        (("--watch", tmp_path), 2, "--watch: for accounts; leave it out, and repeat it by cron"),
        ((tmp_path, url), 2, "sort: a Maildir and an account; sort each in a call of its own"),
        (("--spam-folder", "inbox", url), 2, "one folder for two kinds of mail (inbox, inbox);"),
        (("--unsure-folder", "Junk", url), 2, "(inbox, junk, junk); name others by --spam-f"),
        ((), 2, "no mailbox; give a Maildir or imaps://USER@HOST/"),
        ((str(tmp_path / "none"),), 1, "no such folder or account"),
        (("--metrics", "0", "--watch", url), 2, "--metrics: needs", "'nbspam[serve]'"),
    ]:
        assert complains(nbspam("sort", *words), status, *said), words
    box.server.folders["Junk"].use = ""
    box.server.rename("Junk", "J")
    assert complains(nbspam("sort", url), 1, "no junk folder; name one by --spam-folder, or give")
    assert nbspam("update", "--label", "work=-", "--new-class", stdin=H[0])[0] == 0
    assert complains(nbspam("sort", url), 2, "but the labels are ham, spam, work")  # without mail


def test_an_inbox_that_takes_no_keywords_or_may_only_be_read_is_one_line(box, nbspam):
    box.put("INBOX", S[0])
    box.server.permanent = r"* OK [PERMANENTFLAGS (\Seen)] these"
    status, _, err = nbspam("sort", "--tag", box.server.url())
    assert complains((status, "", err), 1, "INBOX takes no keywords; sort without --tag")
    box.server.after = able_to("")
    status, _, err = nbspam("sort", box.server.url())
    assert complains(
        (status, "", err), 1, "takes no keywords, and no message moves alone; sort a Maildir"
    )
    for box.server.permanent in (r"* OK [PERMANENTFLAGS ($Junk)] this one", "* OK not stated"):
        assert box.sort(tags=True).judged == [("spam", "$Junk")]
        box.put("INBOX", S[1])
    box.server.answers["SELECT"] = b"* 0 EXISTS\r\n* OK [READ-ONLY] x\r\nTAG OK [READ-ONLY] y\r\n"
    assert complains(nbspam("sort", box.server.url()), 1, "may only be read; ask for the right")
    assert nbspam("sort", "--dry-run", box.server.url())[0] == 0


def watched(n_messages, *accounts, on_note=lambda: None):
    """Watch accounts until so many messages are judged; return notes and verdicts."""
    told, judged = [], []

    def noted(text, account=None):
        told.append((account, text))
        on_note()

    def answered(**facts):
        judged.append(facts)
        if len(judged) == n_messages:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)

    watch.watch(accounts, SimpleNamespace(noted=noted, answered=answered), None)
    return told, judged


def test_an_account_that_fails_does_not_keep_others_from_being_watched(box, monkeypatch):
    monkeypatch.setattr(watch, "_PAUSES", (0.001, 300.0))
    box.put("INBOX", S[0])
    away = box.account(book_of("wrong"))
    told, judged = watched(1, away, box.account())
    assert ("password is refused" in told[0][1], len(told), len(judged)) == (True, 1, 1)
    with pytest.raises(InputError, match="password is refused"):
        watched(1, away)


def test_passwords_are_typed_before_accounts_are_watched(box, nbspam, monkeypatch):
    """Not by their threads, which would ask at once, and whose prompts no interrupt ends."""
    monkeypatch.delenv("NBSPAM_SORT_PASSWORD_COMMAND")
    asked = []

    def typed(url):
        asked.append((url.user, threading.current_thread() is threading.main_thread()))
        if url.user == "ann":
            raise InputError("no terminal")
        return PASSWORD

    def sorted_once(account, *_):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)

    monkeypatch.setattr(accounts, "_typed", typed)
    monkeypatch.setattr(account.AccountToSort, "sort_once", sorted_once)
    assert nbspam("sort", "--watch", box.server.url(), box.server.url("bob"))[0] == 0
    assert asked[:2] == [("ann", True), ("bob", True)]
    assert ("bob", False) not in asked


def test_mail_that_waits_for_its_model_is_judged_once_while_it_is_watched(box):
    kept = box.model.read_bytes()
    box.model.unlink()
    box.put("INBOX", H[0])

    def begin():
        box.model.write_bytes(kept)
        box.put("INBOX", S[0])

    told, judged = watched(2, box.account(), on_note=begin)
    assert ["the model knows no mail yet" in text for _, text in told] == [True]
    assert sorted(each["verdict"] for each in judged) == ["ham", "spam"]


def test_a_thread_that_cannot_start_or_a_second_interrupt_ends_watching_at_once(box, monkeypatch):
    """As the first interrupt waits for a server that may be silent for a minute."""

    def start(watcher):
        watcher._wake.close()
        watcher._woken.close()
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(watch.AccountWatcher, "start", start)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            watched(1, box.account())
    join = watch.AccountWatcher.join
    monkeypatch.setattr(
        watch.AccountWatcher, "join", lambda self: join(self) or signal.raise_signal(signal.SIGINT)
    )
    box.put("INBOX", S[0])
    with pytest.raises(KeyboardInterrupt):
        watched(1, box.account())


def test_a_silent_server_keeps_watching_from_its_end_for_seconds_only(box, monkeypatch):
    monkeypatch.setattr(ImapHandler, "idle", lambda *_: time.sleep(60))
    monkeypatch.setattr(session, "_PARTING_SECONDS", 0.1)
    box.put("INBOX", S[0])
    start = time.monotonic()
    assert len(watched(1, box.account())[1]) == 1
    assert time.monotonic() - start < 30  # a silent connection counts as lost after a minute


@pytest.mark.parametrize(("step", "n_lost"), [("_learn", 0), ("_act", 0), ("_act", 17)])
def test_mail_that_comes_during_a_look_is_sorted_at_once(step, n_lost, box, monkeypatch):
    """Also over the next connection: one that was of use is soon made again."""
    monkeypatch.setattr(watch, "_PAUSES", (0.001, 300.0))
    box.put("INBOX", S[0], H[0])
    box.sort()
    box.move(H[0], "INBOX", "Junk")
    box.put("INBOX", S[1])
    coming = [letter(spam, n) for n in range(200, 200 + max(n_lost, 1))]
    moved, real = sorted([*S[:2], H[0], *coming]), getattr(account.AccountSorter, step)

    def call(self, *words):
        is_coming = bool(coming)
        box.put("INBOX", *(coming.pop() for _ in coming[:1]))
        real(self, *words)
        if is_coming and n_lost:
            raise LostError("lost")  # what was done is logged

    monkeypatch.setattr(account.AccountSorter, step, call)
    n_judged, start = 1 + len(coming), time.monotonic()
    assert len(watched(n_judged + 1, box.account())[1]) == n_judged + 1  # and a lesson
    assert time.monotonic() - start < 60  # pauses that double take 91 seconds or more
    assert sorted(box.where()["Junk"]) == moved


def test_a_host_without_a_name_is_tried_again_while_an_account_is_watched(box, monkeypatch):
    looked_up, resolve = [], socket.getaddrinfo

    def no_network_at_first(host, *rest, **options):
        looked_up.append(host)
        if len(looked_up) < 3:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return resolve(host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", no_network_at_first)
    monkeypatch.setattr(watch, "_PAUSES", (0.001, 0.001))
    box.put("INBOX", S[0])
    told, judged = watched(1, box.account())
    assert told == [(box.account().url.account, "127.0.0.1: no such host; check the name")] * 2
    assert [each["verdict"] for each in judged] == ["spam"]
    for name, digits in (("probability", 6), ("ms", 2)):  # as in the log of `serve`
        assert judged[0][name] == round(judged[0][name], digits)
    assert judged[0]["id"] == "spam-0@x.example"
    assert box.where()["Junk"] == [S[0]]


def test_damaged_notes_are_one_line_and_not_to_be_removed_for_a_full_disk_or_another_run(
    box, nbspam, monkeypatch
):
    monkeypatch.setattr(account.maildir, "SORTING_PATIENCE", 0.1)
    memory = account_look.AccountMemory(str(box.model), box.account().url.account)
    with closing(memory), memory.alone(1):
        assert complains(nbspam("sort", box.server.url()), 1, "locked by another process for 0.1")

    box.sort()
    path = box.model.with_name(box.model.name + ".accounts")
    why = "sorting keeps its notes there"
    for data in (path.read_bytes().replace(b"CREATE ", b"CREAT\xff "), b"no database" * 1000):
        path.write_bytes(data)
        assert complains(nbspam("sort", box.server.url()), 1, why, "remove")
    for each in path.parent.glob(f"{path.name}*"):
        each.unlink()
    path.symlink_to(path.with_name("theirs"))
    assert complains(nbspam("sort", box.server.url()), 1, "a symbolic link, and none is followed")
    path.unlink()
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version = 9")
    assert complains(nbspam("sort", box.server.url()), 1, "not the notes of an account")

    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    told = f"the disk is full, or it fails; {why}; free some space"
    for name, full in (
        ("sqlite3.connect", error),
        ("nbspam.disk.make_file", OSError(errno.ENOSPC, "No space left")),
    ):
        monkeypatch.setattr(name, raising(full))
        path.unlink(missing_ok=True)
        assert complains(nbspam("sort", box.server.url()), 1, told)


def test_accounts_of_the_configuration_file_are_sorted_by_name_or_all(
    box, nbspam, tmp_path, config, monkeypatch
):
    config.write_text(
        f'[sort]\nflag = "F"\n[account.home]\nurl = "{box.server.url()}"\n'
        f'[account.work]\nurl = "{box.server.url("bob")}"\nmodel-file = "{tmp_path / "other"}"\n'
    )
    box.put("INBOX", S[0])

    wrong = "neither a mailbox nor an account; did you mean home?"
    for words in ("sort hoem", "sort --watch hoem x", "serve --web 0 --review hoem", "setup hoem"):
        assert complains(nbspam(*words.split()), 2, f"hoem: {wrong}")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()  # the account outranks it
    assert nbspam("sort", "home")[1] == "new: 1 spam; learned from moves: nothing\n"
    assert complains(nbspam("sort", "./home"), 1, "./home: not a Maildir", "or an account")
    found = [each["maildir"] for each in json_lines(nbspam("sort", "--json")[1])]
    assert found == [box.server.url(), box.server.url("bob")]
    assert (tmp_path / "other.accounts").exists()


def test_an_account_that_fails_reports_what_was_done_and_the_next_ones_are_sorted(
    box, nbspam, config, monkeypatch
):
    url, away = box.server.url(), "imap://ann@127.0.0.1:1/"
    config.write_text(
        f'[account.away]\nurl = "{away}"\n[account.home]\nurl = "{url}"\n'
        '[account.gone]\nurl = "imap://ann@127.0.0.1:2/"\n'
    )
    box.put("INBOX", S[0], H[0])
    status, out, err = nbspam("sort", "-q")
    assert (status, out) == (1, "")
    assert err.startswith("nbspam: 127.0.0.1:1: cannot be reached")
    assert "\nnbspam: 127.0.0.1:2: cannot be reached" in err
    assert box.where()["Junk"] == [S[0]]
    box.move(H[0], "INBOX", "Junk")
    box.put("INBOX", S[1])
    with monkeypatch.context() as patch:
        patch.setattr(session.AccountSession, "move", raising(LostError("lost")))
        told = "new: nothing; learned from moves: 1 spam\n"
        assert nbspam("sort", "home") == (1, told, "nbspam: lost\n")
    assert nbspam("sort")[1] == f"{url}: new: 1 spam; learned from moves: nothing\n"


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
    filled.put("INBOX", letter(spam, 80), flags="Junk")
    filled.put("Junk", letter(ham, 80), flags="NonJunk")
    before = {name: filled.contents(name) for name in filled.folders}
    out = nbspam.out("setup", "-m", model, filled.url())
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
    more = ("--spam-folder", "Junk", "--password-command", f"echo '{PASSWORD}'")
    words = shlex.split(nbspam.out("setup", "-m", model, *more, filled.url()).splitlines()[13])
    assert words[3:10] == ["-m", str(model), *more, filled.url()]
    assert {name: filled.contents(name) for name in filled.folders} == before
    assert not any(asked.startswith(("SELECT", "UID STORE")) for asked in filled.asked)
    classifier = load_tokens(str(model))
    assert classifier.table.class_count.tolist() == [33, 20]
    assert classifier.settings.sent_mail
    assert ", 1 spam;" in nbspam("sort", "-m", model, filled.url())[1]


def test_mail_that_is_not_learned_on_the_first_day_is_named_or_counted(filled, nbspam, tmp_path):
    filled.put("INBOX", letter(spam, 90), flags="\\Seen")  # unlike the unread one before it
    filled.put("INBOX", *(letter(ham, n) for n in range(61, 75)))
    filled.put("Junk", b"GIF89a\n" + letter(spam, 0))
    filled.refused = {3: "BODY.PEEK[]"}
    _, out, err = nbspam("setup", "-m", tmp_path / "m", filled.url())
    assert "\nlearned 19 of 21 messages in Junk as spam\n" in out
    assert "\nlearned 42 of 45 messages in INBOX and Archive as ham\n" in out
    assert "\nnot learned: 1 unread message in the inbox, probably spam\n" in out
    assert load_tokens(str(tmp_path / "m")).table.class_count.tolist() == [42, 19]
    assert (err.count("looks like a GIF"), err.count("the server refuses FETCH")) == (1, 3)


def test_of_much_mail_a_sample_by_date_is_learned_and_mail_without_sender_is_named_so(
    filled, nbspam, tmp_path, monkeypatch
):
    monkeypatch.setattr(account_setup, "MOST_OF_CLASS", 11)
    out = nbspam("setup", "-m", tmp_path / "m", filled.url())[1]
    assert "learned 11 of 20 messages in Junk as spam, evenly by date\n" in out
    assert "learned 11 of 33 messages in INBOX and Archive as ham, evenly by date\n" in out
    assert account_setup.spread(range(10), 4) == [0, 2, 5, 7]

    filled.put("INBOX", letter(spam, 50).replace(b"From: x@example.com\nSubject: ", b"X-Was: "))
    out = nbspam.out("setup", "-m", tmp_path / "m.nbspam", filled.url())
    assert "\n  (no sender): (no subject)\n    spam 0." in out


def test_an_account_without_enough_mail_is_one_line(filled, nbspam, tmp_path):
    def said(folder=""):
        return nbspam("setup", "-m", tmp_path / "m", filled.url(folder=folder))

    assert complains(said("Junk"), 1, "no junk folder; name one by --spam-folder")
    for message in filled.folders["INBOX"].messages[3:]:
        message.flags.add("\\Deleted")
    assert complains(said(), 1, "INBOX has 3 messages, too few to learn from; begin with: nbspam")
    for message in filled.folders["INBOX"].messages:
        message.flags.clear()
    del filled.folders["INBOX"].messages[10:]
    assert complains(said(), 1, "INBOX has 10 messages, too few to learn from; begin with: nbspam")
    del filled.folders["Junk"].messages[5:]
    assert complains(said(), 1, "Junk has 5 messages, too few to learn from; put 10 or more")
    del filled.folders["Junk"].messages[1:]
    assert complains(said(), 1, "Junk has 1 message, too few to learn from")
    del filled.folders["Junk"]
    assert complains(said(), 1, "no junk folder; name one by --spam-folder")
    assert not (tmp_path / "m").exists()
