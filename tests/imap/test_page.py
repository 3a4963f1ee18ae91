"""An account on the server's page: what it shows, what a click teaches and moves, and faults."""

from contextlib import closing

import pytest

from accounts import Box, H, S, book_of, letter
from fake_imap import AFTER, PASSWORD, FakeFolder, fake_server
from mail_servers import Dovecot, mail_server, needs
from maildirs import ham
from markup import Page
from nbspam.delivery.account_look import AccountMemory
from nbspam.errors import InputError, LostError, UsageError
from nbspam.imap import accounts
from nbspam.imap.accounts import AccessBook, imap_url
from nbspam.server.page import account_mailbox as module
from nbspam.server.page.account_mailbox import review_mailbox
from nbspam.server.page.doubtful import look_for_doubtful
from nbspam.server.page.mailbox import Mailboxes
from scripted import desk
from serving import Browser, free_port, serving, until
from support import complains
from visitors import Visitor


@pytest.fixture
def account(server, trained):
    return Box(server, trained)


def opened(url, model):
    return review_mailbox(url, str(model), book_of())


@pytest.fixture
def mailbox(account):
    with closing(opened(account.url(), account.model)) as found:
        yield found


def keys(mailbox):
    found = mailbox.read([letter.key for letter in mailbox.newest()])
    return {data.replace(b"\r\n", b"\n"): key for key, data in found}


def asked(server, words):
    return [each for each in server.asked if words in each]


# ---- looking ----


def test_both_folders_are_shown_and_nothing_is_marked_as_read(account, mailbox):
    account.put("INBOX", H[0], ham(7))  # the second has no Message-ID
    account.put("Junk", S[0])
    account.put("Trash", S[1])

    assert keys(mailbox).keys() == {H[0], ham(7), S[0]}
    assert all(key.isalnum() and key.isascii() for key in keys(mailbox).values())
    assert [letter.arrived for letter in mailbox.newest()] == [1_767_225_600] * 3
    assert all(not flags for name in account.where() for _, flags in account.server.contents(name))
    assert not asked(account.server, "BODY[")

    # Another look asks for new messages only, and a message is read once.
    found = keys(mailbox)
    account.put("INBOX", H[2])
    account.server.asked.clear()
    mailbox.newest()
    assert len(asked(account.server, "UID FETCH")) == 1
    assert asked(account.server, "UID FETCH 3 ")
    account.server.asked.clear()
    account.server.cut_before = {0}  # as after half an hour without a request
    mailbox.newest()
    assert account.server.n_logins == 2
    assert not asked(account.server, "UID FETCH")
    account.server.asked.clear()
    assert mailbox.message(found[H[0]]).replace(b"\r\n", b"\n") == H[0]
    assert account.server.asked == []


def test_the_newest_are_shown_and_few_bytes_are_kept(account, mailbox, monkeypatch):
    monkeypatch.setattr(module, "_MOST_IN_FOLDER", 2)
    monkeypatch.setattr(module, "_KEPT_BYTES", len(H[3]) + 50)
    account.put("INBOX", *H[:4])
    found = keys(mailbox)
    assert found.keys() == {H[2], H[3]}
    assert [letter.key for letter in mailbox.newest()] == [found[H[3]], found[H[2]]]
    assert len(mailbox._kept) == 1
    monkeypatch.setattr(module, "HELD_BYTES", 1)  # of a batch that is read at once
    mailbox._kept.clear()
    account.server.asked.clear()
    assert keys(mailbox) == found
    assert len(asked(account.server, "BODY.PEEK[])")) == 2


def test_a_message_is_found_where_others_have_put_it(account, mailbox):
    account.put("INBOX", H[0], H[1])
    found = keys(mailbox)
    mailbox._kept.clear()
    account.move(H[0], "INBOX", "Junk")
    account.server.renumber("INBOX")
    mailbox._session.folder = mailbox._session.folder._replace(name="")

    assert mailbox.message(found[H[0]]) is not None
    assert mailbox.message(found[H[1]]) is not None
    account.server.delete(H[0], "Junk")
    mailbox._kept.clear()
    assert mailbox.message(found[H[0]]) is None
    assert mailbox.message("none") is None


def test_a_connection_that_was_lost_is_made_again(account, mailbox):
    account.put("INBOX", H[0])
    found = keys(mailbox)
    for command in range(4):
        mailbox._kept.clear()
        account.server.cut_before = {len(account.server.asked) + command}
        assert keys(mailbox) == found
    assert account.server.n_logins > 1
    account.server.cut_before = set(range(10**4))
    with pytest.raises(LostError, match="connection lost"):
        mailbox.newest()
    account.server.cut_before = set()
    assert keys(mailbox) == found
    account.server.refused, account.server.breaks = {1: "BODY.PEEK[]"}, True
    mailbox._kept.clear()
    assert mailbox.message(found[H[0]]) is None
    account.server.refused = {}
    mailbox.close()
    assert keys(mailbox) == found


def test_a_server_that_refused_to_list_folders_is_asked_again_and_a_silent_one_for_seconds_only(
    account, mailbox, monkeypatch
):
    account.put("Junk", S[0])
    account.server.after = "IMAP4rev1 MOVE UIDPLUS"
    account.server.answers["LIST"] = b"TAG NO not now\r\n"
    with pytest.raises(InputError, match="not now"):
        mailbox.newest()
    account.server.answers.clear()
    assert keys(mailbox).keys() == {S[0]}
    mailbox.close()
    monkeypatch.setattr(module, "_SILENCE", 0.1)
    account.server.answers["EXAMINE"] = b"* OK wait\r\n"
    with pytest.raises(LostError, match="nothing is said"):
        mailbox.newest()


# ---- moving ----


@pytest.mark.parametrize("able", [AFTER, AFTER.replace("MOVE ", "")])
@pytest.mark.parametrize(("data", "label"), [(H[0], "spam"), (S[0], "ham")])
@pytest.mark.parametrize("knows", [True, False])
def test_a_click_moves_and_sort_learns_nothing_of_it(account, mailbox, able, data, label, knows):
    account.server.after = able
    account.put("INBOX", H[0], H[1])
    account.put("Junk", S[0])
    if knows:
        account.sort()
    source, target = ("INBOX", "Junk") if label == "spam" else ("Junk", "INBOX")
    key = keys(mailbox)[data]
    account.teach(data, label)
    before = account.learned()

    assert mailbox.leaves(key, label) == source
    assert mailbox.file(key, label) == source
    assert data in account.where()[target]
    assert data not in account.where()[source]
    assert mailbox.leaves(key, label) is mailbox.file(key, label) is None
    for _ in range(2):
        report = account.sort()
        assert (report.learned, account.learned()) == ([], before)
    assert data in account.where()[target]
    assert mailbox.put_back(key, source)
    assert not mailbox.put_back(key, "Elsewhere")
    assert account.sort().learned == []
    assert data in account.where()[source]
    # What its user moves after that is a lesson.
    account.move(data, source, target)
    assert account.sort().learned == [label]


def test_whatever_ends_the_connection_a_message_is_moved_once(account, mailbox):
    for able in (AFTER, AFTER.replace("MOVE ", "")):
        for cut in ("cut_before", "cut_after"):
            for command in range(14):
                account.server.after = able
                data = letter(ham, 1000 + len(account.server.asked))
                account.put("INBOX", data)
                key = keys(mailbox)[data]
                account.teach(data, "spam")
                getattr(account.server, cut).add(len(account.server.asked) + command)
                mailbox.file(key, "spam")
                getattr(account.server, cut).clear()
                assert account.sort().learned == []
                account.sort()
                assert account.where()["Junk"].count(data) == 1
                assert data not in account.where()["INBOX"]


def test_a_refused_move_is_a_line_and_the_notes_stay_true(account, mailbox):
    account.put("INBOX", H[0])
    key = keys(mailbox)[H[0]]
    account.server.most = 1
    with pytest.raises(InputError, match="the account is full"):
        mailbox.file(key, "spam")
    account.server.most = None

    memory = AccountMemory(str(account.model), f"ann@127.0.0.1:{account.server.port}")
    assert memory.moving() == set()
    assert memory.left({int(key, 16)})[int(key, 16)].place == "ham"
    memory.close()

    # Of two messages of one head both stay.
    account.put("Junk", H[0])
    assert keys(mailbox)[H[0]] == key
    assert len(mailbox.newest()) == 1
    assert mailbox.folder_of(key) == "INBOX, Junk"
    assert mailbox.leaves(key, "spam") is None
    with pytest.raises(InputError, match=r"2 messages \(INBOX, Junk\) have its headers, perhaps"):
        mailbox.file(key, "spam")
    assert mailbox.put_back(key, "INBOX") is False
    account.move(H[0], "INBOX", "Junk")
    assert mailbox.file(key, "spam") is mailbox.file("none", "spam") is None


def test_without_the_means_to_move_a_line_says_so(account, mailbox):
    account.server.after = "IMAP4rev1"
    account.put("INBOX", H[0])
    key = keys(mailbox)[H[0]]
    for attempt in (lambda: mailbox.check(moves=True), lambda: mailbox.file(key, "spam")):
        with pytest.raises(UsageError, match="cannot move a message alone"):
            attempt()
    mailbox.close()
    account.server.after = AFTER
    account.server.folders["Junk"] = FakeFolder(12)
    account.server.rename("Junk", "Other")
    with pytest.raises(UsageError, match="no junk folder"):
        mailbox.check(moves=True)
    mailbox.check(moves=False)
    assert mailbox.file(key, "spam") is None


# ---- the page ----


def test_the_page_shows_teaches_moves_and_takes_back(account):
    account.put("INBOX", H[0])
    mailboxes = Mailboxes(account.url(), str(account.model), None, opened)
    at = desk(mailboxes=mailboxes, moves=True)

    try:
        page = Visitor(at)
        (row,) = page.rows()
        assert "lunch" in row
        assert "in INBOX" in row
        key = keys(at.reviewer._boxes[account.url()])[H[0]]
        page.tell(spam=key)
        assert account.where()["Junk"] == [H[0]]
        assert "in Junk" in page.rows()[0]
        account.move(H[0], "Junk", "INBOX")
        assert "in INBOX" in page.shown(f"/message?key={key}").text
        account.move(H[0], "INBOX", "Junk")
        page.tell(undo="1")
        assert account.where()["INBOX"] == [H[0]]
        box = at.reviewer._boxes[account.url()]
        look_for_doubtful(account.url(), str(account.model), lambda: 1.0, box.book)
        ((found,),) = box.database.run("SELECT found FROM doubts")
        assert found.startswith("[1, ")
        account.server.cut_before = set(range(10**4))
        assert "connection lost" in page.get("/").text
    finally:
        at.reviewer.end()


def test_what_is_wrong_with_an_account_is_a_line_at_the_start(account, nbspam, monkeypatch):
    serve = ["serve", "-m", account.model, "--web", "0", "--review"]
    monkeypatch.setenv("NBSPAM_SERVE_PASSWORD_COMMAND", "echo wrong")
    complains(nbspam(*serve, account.url()), 1, "user or password is refused")
    complains(nbspam(*serve, "imap://127.0.0.1/"), 2, "names no user")


def test_a_password_is_typed_once_though_options_are_read_again(monkeypatch):
    typed = ["first", "second"]
    monkeypatch.setattr(accounts, "_typed", lambda url: typed.pop(0))
    url = imap_url("imaps://ann@mail.example.org/")
    book = AccessBook()
    handed_on = AccessBook(before=book)
    assert [each.secret_of(url).text for each in (book, handed_on)] == ["first"] * 2


@pytest.mark.slow
@pytest.mark.parametrize("real", [False, pytest.param(True, marks=needs[Dovecot])])
def test_a_click_on_the_page_of_a_named_account_teaches_and_moves_once(
    real, trained, tmp_path, config
):
    browser = Browser(free_port())
    with mail_server() if real else fake_server() as server:
        account = Box(server, trained)
        account.put("INBOX", H[0], H[1])
        account.put("Junk", S[0])
        account.sort()
        with closing(opened(account.url(), account.model)) as mailbox:
            key = keys(mailbox)[H[0]]
        config.write_text(
            f'[account.home]\nurl = "{account.url()}"\npassword-command = "echo {PASSWORD}"\n'
            f'model-file = "{trained}"\nspam-folder = "Junk"\n'
        )
        options = ("--jobs", "2", "--web", str(browser.port), "--review", "home", "--move")
        with serving(str(tmp_path / "other"), tmp_path, *options) as served:
            browser.log_in(served)
            text = Page(browser.ask("GET", "/")[2]).text
            assert "lunch" in text
            assert "in Junk" in text
            assert browser.tell(spam=key) == 303
            assert (server.bodies("INBOX"), account.label_of(H[0])) == ([H[1]], "spam")
            assert account.sort().learned == []
            assert sorted(server.bodies("Junk")) == sorted([S[0], H[0]])
            served.reread()
            assert browser.tell(undo=browser.lesson()) == 303
            assert (account.sort().learned, account.label_of(H[0])) == ([], None)
            assert sorted(server.bodies("INBOX")) == [H[0], H[1]]
            until(lambda: "3 messages" in browser.ask("GET", "/doubtful")[2])
        flags = [f for name in ("INBOX", "Junk") for _, f in server.contents(name)]
        assert not any("\\Seen" in each for each in flags)
    assert not (tmp_path / "other").exists()
    assert PASSWORD not in served.errors.read_text()
