"""An account as a source: the same mail as in files, nothing marked, and errors of one line."""

import logging
import socket
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from accounts import book_of
from fake_imap import AFTER, FakeFolder, ImapHandler, fake_server, refused_port
from maildirs import ham, spam
from nbspam.errors import LostError, UsageError
from nbspam.imap import accounts, session, wire
from nbspam.imap.accounts import AccessBook, AccountAccess, ImapUrl, imap_url
from nbspam.imap.session import AccountSession
from nbspam.imap.troubles import AccountRefusedError
from nbspam.sources import files
from nbspam.sources import items as source_items
from support import complains, json_lines, memory_of, write_files

CHINESE = '垃圾 & "Spam"'


@pytest.fixture
def filled(server, tmp_path):
    """A server with three messages of each class, which are in files, too."""
    server.put("INBOX", *map(ham, range(3)))
    server.put("Junk", *map(spam, range(3)))
    files = {f"{make.__name__}/{n}.eml": make(n) for n in range(3) for make in (ham, spam)}
    write_files(tmp_path / "files", files)
    return server


def test_a_model_of_an_account_is_that_of_the_same_mail_in_files(filled, exported, tmp_path):
    folders = ["--spam", filled.url(folder="Junk"), "--ham", filled.url(folder="INBOX")]
    assert exported(*folders) == exported(tmp_path / "files")
    assert all(not flags for name in ("INBOX", "Junk") for _, flags in filled.contents(name))
    assert not any(asked.startswith(("SELECT", "UID STORE")) for asked in filled.asked)


def test_names_of_messages_can_be_handed_back(filled, nbspam, trained):
    junk = filled.url(folder="Junk")
    out = nbspam("classify", junk)[1]
    names = [line.split("\t")[2] for line in out.splitlines()]
    assert names == [f"{junk};UIDVALIDITY=12/;UID={uid}" for uid in (1, 2, 3)]
    assert [each["name"] for each in json_lines(nbspam("classify", "--json", junk)[1])] == names

    n_logins = filled.n_logins
    assert nbspam("classify", *names)[1] == out
    assert filled.n_logins == n_logins + 1
    assert nbspam("explain", "--brief", names[1])[1].startswith("spam ")
    assert "learned 1" in nbspam("relabel", "--to", "ham", names[1])[1]
    assert "1" in nbspam("unlearn", names[1])[1]
    assert complains(nbspam("classify", f"{junk};UIDVALIDITY=12/;UID=9"), 1, "not there any more")
    other = names[0].replace("=12/", "=13/")
    assert complains(nbspam("classify", other), 1, "other numbers", "look for the message again")
    filled.put(CHINESE, spam(4))  # folders may have any name
    assert nbspam("classify", imap_url(filled.url()).of_folder(CHINESE))[1].startswith("spam")


def test_every_command_with_sources_reads_accounts(filled, nbspam, trained):
    junk, inbox = (filled.url(folder=name) for name in ("Junk", "INBOX"))
    for command in (
        f"predict {junk} --json",
        f"eval --cv 2 --spam {junk} --ham {inbox}",
        f"doubts --spam {junk} --ham {inbox}",
        f"update --spam {junk}",
    ):
        status, _, err = nbspam(*command.split())
        assert (status, err.removeprefix("nbspam: no label is probably wrong\n")) == (0, "")


def data_of(server):
    url, options = server.url(folder="INBOX"), source_items.SourceOptions(accounts=book_of)
    return [item.data for item in source_items.read_items([url], options=options)]


def test_messages_come_in_batches_by_few_commands(server, monkeypatch):
    monkeypatch.setattr(session, "_WINDOW", 200)
    server.put("INBOX", *map(ham, range(730)))
    assert data_of(server) == [ham(n).replace(b"\n", b"\r\n") for n in range(730)]
    assert sum("UID FETCH" in asked for asked in server.asked) == 6  # 2 of sizes, 4 of messages
    asked = [each.split()[2] for each in server.asked if each.startswith("UID SEARCH")]
    assert asked == ["601:*", "401:600", "201:400", "1:200"]  # each is answered in two lines

    # Batches double up to a bound.
    server.folders["INBOX"] = FakeFolder(11)
    server.asked.clear()
    one = len(ham(10).replace(b"\n", b"\r\n"))
    monkeypatch.setattr(session, "_FIRST_BYTES", one)
    monkeypatch.setattr(session, "_FETCHED_BYTES", 4 * one)
    server.put("INBOX", *map(ham, range(10, 26)))
    data_of(server)
    fetched = [each.split()[2] for each in server.asked if "BODY.PEEK[]" in each]
    assert [each.count(",") + 1 for each in fetched] == [1, 2, 4, 4, 4, 1]

    # A message is read up to a limit.
    server.folders["INBOX"] = FakeFolder(11)
    monkeypatch.setattr(files, "MAX_MESSAGE", 40)
    server.put("INBOX", ham(1), b"a: b\n\nshort\n", ham(2))
    assert [len(data) for data in data_of(server)] == [40, 15, 40]
    assert sum("BODY.PEEK[]<0.40>" in asked for asked in server.asked) == 2


def test_what_is_said_of_a_message_by_its_number_alone_is_of_no_uid(server, monkeypatch):
    server.put("INBOX", *map(ham, range(3)))
    server.delete(ham(0), "INBOX")  # now UIDs 2 and 3 have the numbers 1 and 2
    real, told = ImapHandler.do_uid_fetch, b"* 2 FETCH (FLAGS ($Junk))\r\n"  # by another client
    monkeypatch.setattr(ImapHandler, "do_uid_fetch", lambda self, words: real(self, words) + told)
    with AccountSession(imap_url(server.url()), book_of()) as found:
        found.open("INBOX")
        assert [(head.uid, *head.flags) for head in found.heads([2, 3])] == [(2,), (3,)]
        assert list(found.heads([9])) == []


@pytest.mark.parametrize("place", ["cut_before", "cut_after"])
def test_a_lost_connection_is_made_again_and_no_message_is_lost_or_doubled(
    place, server, monkeypatch
):
    monkeypatch.setattr(session, "FETCHED_MESSAGES", 2)
    server.put("INBOX", *map(ham, range(5)))
    wanted = [ham(n).replace(b"\n", b"\r\n") for n in range(5)]
    for number in range(10):
        server.asked.clear()
        setattr(server, place, {number})
        assert data_of(server) == wanted, number
    for n_bytes in range(0, 1200, 13):  # of the answers, in the midst of lines and literals
        server.cut_before = server.cut_after = set()
        server.cut_bytes = n_bytes
        assert data_of(server) == wanted, n_bytes


def test_a_server_that_closes_connections_after_some_bytes_only_takes_more(server, monkeypatch):
    server.put("INBOX", *map(ham, range(600)))
    connect = wire.connected

    def connected(*words):
        server.cut_bytes = 50_000
        return connect(*words)

    monkeypatch.setattr(wire, "connected", connected)
    assert data_of(server) == [ham(n).replace(b"\n", b"\r\n") for n in range(600)]
    assert server.n_logins < 9


def test_a_connection_is_lost_at_a_message_once_and_seldom_if_no_message_comes(server):
    server.put("INBOX", *map(ham, range(40)))
    server.refused, server.breaks = {2: "BODY.PEEK[]"}, True
    with opened(server) as found:
        found.open("INBOX")
        for _ in range(2):  # looks over one session
            found.refused.clear()
            batches = list(found.messages([1, 2, 3], 1000))
            assert [uid for batch in batches for uid in batch.data] == [1, 3]
            assert [url.uid for url in found.refused] == [2]
            assert server.n_logins == 1 + 3  # all three, the last two, it alone
    server.asked.clear()
    for _ in range(2):  # the second time, the next message's connection is lost once
        with opened(server) as found:
            found.open("INBOX")
            assert [batch.uids for batch in found.messages([2, 3], 40) if batch.data] == [[3]]
        fetched = server.asked.index("UID FETCH 3 (BODY.PEEK[]<0.40>)")
        server.cut_before = {len(server.asked) + fetched}
    server.cut_before = set()
    server.refused, n_logins = dict.fromkeys(range(1, 41), "BODY.PEEK[]"), server.n_logins
    with opened(server) as found:
        found.open("INBOX")
        with pytest.raises(LostError, match="closed by the server"):
            list(found.messages(range(1, 41), 1000))
    assert server.n_logins == n_logins + 1 + session._MOST_BROKEN


def test_a_message_that_the_server_does_not_show_is_skipped(filled, nbspam, trained, monkeypatch):
    filled.refused = {2: "BODY"}
    junk = filled.url(folder="Junk")
    status, out, err = nbspam("classify", junk)
    assert (status, len(out.splitlines())) == (1, 2)
    assert f"{junk};UIDVALIDITY=12/;UID=2: " in err
    assert "the server refuses FETCH (fetch failed: [SERVERBUG] broken); check" in err
    assert complains(nbspam("classify", f"{junk};UIDVALIDITY=12/;UID=2"), 1, "refuses FETCH")
    monkeypatch.setattr(session, "_MOST_REFUSED", 2)
    filled.answers["UID FETCH"] = b"TAG NO never\r\n"
    assert complains(nbspam("classify", junk), 1, "refuses FETCH (fetch failed: never);")


# ---- secrets ----


def test_the_first_of_five_ways_gives_the_secret(tmp_path, monkeypatch):
    url = imap_url("imaps://ann@mail.example.org/")
    module = type(sys)("keyring")
    module.get_password = lambda service, user: f"{service} {user}"
    ways = AccountAccess("echo $NBSPAM_ACCOUNT; echo more", "printf token", None)

    assert AccessBook(ways).secret_of(url) == ("token", True)
    ways = ways._replace(token_command=None)
    others = AccountAccess("printf another's", "printf another's", "theirs.pem")
    for each in (url, url._replace(port=1993)):  # two servers of one host
        book = AccessBook(others, {each.account: ways})
        assert book.secret_of(each)[0] == each.account
        assert book.access_to(each).tls_ca == "theirs.pem"
    monkeypatch.setitem(sys.modules, "keyring", module)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert AccessBook().secret_of(url)[0] == "mail.example.org ann"
    (tmp_path / url.account).write_text("kept\n")
    assert AccessBook().secret_of(url)[0] == "kept"
    (tmp_path / url.account).unlink()
    module.get_password = lambda service, user: 1 / 0
    monkeypatch.setattr(sys, "stdin", type("Terminal", (), {"isatty": lambda self: True})())
    monkeypatch.setattr(accounts, "getpass", lambda prompt: prompts.append(prompt) or "typed")
    prompts, book = [], AccessBook()
    assert [book.secret_of(url)[0] for _ in range(2)] == ["typed", "typed"]
    assert prompts == ["Password of ann@mail.example.org: "]
    assert "typed" not in repr(book.secret_of(url))


def test_the_configuration_file_knows_the_secrets_of_accounts_or_it_is_said_how_to_give_them(
    filled, nbspam, trained, config, tmp_path, monkeypatch
):
    monkeypatch.delenv("NBSPAM_CLASSIFY_PASSWORD_COMMAND")
    secret = f'password-command = "cat {tmp_path}/secret"\n'
    lists = f'[account.lists]\nurl = "{filled.url(folder="Lists")}"\n'  # of the same account
    config.write_text(f'[account.home]\nurl = "{filled.url()}"\n{secret}{lists}')

    assert nbspam("classify", filled.url(folder="Junk"))[0] == 0
    without = ("classify", "--no-config", filled.url(folder="Junk"))
    assert complains(nbspam(*without), 2, "no password; give --password-command")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    (tmp_path / "ann@127.0.0.1").mkdir()
    assert complains(nbspam(*without), 1, "Is a directory; check its rights")


def test_a_wrong_account_in_the_file_is_one_line(filled, nbspam, trained, config):
    table = '[account.a]\nurl = "imaps://a@b"\n'
    for text, words in (
        ("account = 1", "account: in no table; write [account.NAME]"),
        ("[account.a]", '[account.a]: no account; give it url = "imaps://USER@HOST/"'),
        (f'{table}urls = ""', "urls: no such key; did you mean url?"),
        (f"{table}tls-ca = 1", "[account.a] tls-ca: not a string"),
        (f'{table}tls-ca = "\\u0000"', "[account.a] tls-ca: not a"),
    ):
        config.write_text(text)
        assert complains(nbspam("classify", filled.url(folder="Junk")), 2, words), text


# ---- errors, each in one line ----


def asked_with(nbspam, server, *options, folder="INBOX"):
    return nbspam("classify", *options, server.url(folder=folder))


def test_wrong_secrets_are_one_line(server, nbspam, trained, monkeypatch):
    for option, command, words in (
        ("--password-command", "exit 3", "--password-command: exit status 3; run it yourself"),
        ("--password-command", "true", "--password-command: printed nothing in its first line"),
        ("--password-command", "sleep 9", "--password-command: no answer in 0 seconds"),
        ("--tls-ca", "/none/x", "--tls-ca /none/x: No such file or directory; give a"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(accounts, "_PATIENCE", 0.01 if "sleep" in command else 60.0)
            assert complains(asked_with(nbspam, server, option, command), 1, words)


def test_a_token_or_a_password_logs_in(nbspam, trained):
    tokens = ("--token-command", "echo good-token"), ("--token-command", "echo x")
    for before, right, wrong, words in (
        ("AUTH=XOAUTH2", *tokens, "expired"),
        ("AUTH=OAUTHBEARER", *tokens, "expired"),
        # A password in any alphabet, where there is only the oldest way.
        ("", (), ("--password-command", "echo wröng"), "password is refused; check both"),
    ):
        with fake_server(before=f"IMAP4rev1 {before}") as server:
            server.put("INBOX", ham(1))
            assert asked_with(nbspam, server, *right)[0] == 0, before
            assert complains(asked_with(nbspam, server, *wrong), 1, words)


BUSY = b"TAG BAD User is authenticated but not connected\r\n"
LONG = b"* 1 FETCH " + b"x" * 9000 + b"\r\n"


@pytest.mark.parametrize(
    ("changes", "folder", "words"),
    [
        ({"greeting": b"220 it's SMTP\r\n"}, "INBOX", "(unexpected response: 220 it's SMTP)"),
        ({"greeting": b"* BYE full\r\n"}, "INBOX", "* BYE full); try again later"),
        ({"CAPABILITY": b"* BYE full\r\n"}, "INBOX", "lets nobody in now (command: CAPABILITY"),
        ({"EXAMINE": "TAG NO Größe\r\n".encode()}, "INBOX", "EXAMINE (select failed: Gre);"),
        ({"greeting": b""}, "INBOX", "nothing is said there; check the port (993 is imaps://"),
        ({"before": "IMAP4rev1"}, "INBOX", "takes no tokens of OAuth2; give --password-command"),
        ({}, "Nope", "Nope: no such folder; there is INBOX, Junk, Trash"),
        ({}, "Jnk", "Jnk: no such folder; there is Junk"),
        ({}, "", "names no folder; add one, such as"),
        ({}, "Trash", "no messages found; name another folder"),
        ({"UID SEARCH": b"TAG BAD it's no\r\n"}, "INBOX", "the server refuses SEARCH (it's no);"),
        ({"EXAMINE": b"TAG NO [LIMIT] x\r\n"}, "INBOX", "is busy (LIMIT); try again"),
        ({"UID SEARCH": b"* SEARCH x\r\nTAG OK done\r\n"}, "INBOX", "that is no IMAP"),
        ({"UID FETCH": b"TAG BAD no\r\n"}, "INBOX", "FETCH command error: BAD no); check"),
        ({"UID FETCH": BUSY}, "INBOX", "is busy (too many connections)"),
        ({"UID FETCH": b"* BYE %bx\r\n" % (b'b"' * 50_000)}, "INBOX", "connection lost"),
        ({"UID FETCH": b"* 1 FETCH (X {4000000000}\r\n"}, "INBOX", "a literal of 4,0"),
        ({"UID FETCH": b"* 1 FETCH " + b"(" * 9999 + b"\r\nTAG OK\r\n"}, "INBOX", ""),
        ({"UID FETCH": b"* 1 " + b"x" * (2 << 20)}, "INBOX", "a line of more than"),
        ({"UID FETCH": b"* 1 RECENT\r\n" * 9999}, "INBOX", "more than 1,000 lines"),
        ({"UID FETCH": LONG * 900}, "INBOX", "bytes"),
    ],
)
def test_what_a_server_does_wrong_is_one_line(
    changes, folder, words, server, nbspam, trained, monkeypatch
):
    monkeypatch.setattr(wire, "MOST_LINES", 1000)
    monkeypatch.setattr(wire, "MOST_BYTES", 6 << 20)
    monkeypatch.setattr(wire, "SILENCE_SECONDS", 0.5)
    monkeypatch.setattr(session, "PAUSES", ())  # one attempt
    monkeypatch.setattr(logging.getLogger("imapclient"), "propagate", False)  # to pytest
    server.put("INBOX", ham(1))
    for name, value in changes.items():
        if name.isupper():
            server.answers[name] = value
        else:
            setattr(server, name, value)
    token = ["--token-command", "echo good-token"] if "before" in changes else []
    start = time.process_time()
    assert complains(asked_with(nbspam, server, *token, folder=folder), 1, words)
    assert time.process_time() - start < 5


def test_a_range_of_uids_may_begin_with_its_end_and_is_not_expanded_without_bound():
    def placed(said):
        return wire.Wire.placed(SimpleNamespace(untagged_responses={"COPYUID": [said]}))

    assert placed(b"17 3:2,9 10:11,20") == {2: (17, 10), 3: (17, 11), 9: (17, 20)}
    assert max(placed(b"9%b 1 9%b" % (b"9" * 20, b"9" * 20))[1]) < 1 << 63  # as SQLite can keep
    _, most = memory_of(placed, b"17 " + b"1:999," * 20_000 + b"1 1")
    assert most < 4_000_000  # bytes, not 400 million


def test_a_server_that_is_not_there_or_never_ends_an_answer_is_one_line(
    server, nbspam, trained, monkeypatch
):
    url = f"imap://ann@127.0.0.1:{refused_port()}/INBOX"
    assert complains(nbspam("classify", url), 1, "cannot be reached", "check host and port")
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def cut_handshakes():
            for _ in range(1 + len(session.PAUSES)):
                with listener.accept()[0] as client:
                    client.recv(1 << 16)

        threading.Thread(target=cut_handshakes, daemon=True).start()
        cut = nbspam("classify", f"imaps://ann@127.0.0.1:{listener.getsockname()[1]}/INBOX")
    assert complains(cut, 1, "cannot be reached (", "or try again later")
    unknown = nbspam("classify", "imaps://ann@mail.invalid/INBOX")
    assert complains(unknown, 1, "mail.invalid: no such host; check the name")
    monkeypatch.setattr(wire, "ANSWER_SECONDS", -1.0)
    assert complains(asked_with(nbspam, server), 1, "an answer of more than -1 seconds")


def test_tls_is_asked_for_and_verified(server, nbspam, trained, monkeypatch):
    secure = server.url(folder="INBOX").replace("imap://", "imaps://")
    monkeypatch.setattr(wire, "SILENCE_SECONDS", 0.5)
    assert complains(nbspam("classify", secure), 1, "speaks no TLS", "write imap://")
    # As if it were another machine.
    monkeypatch.setattr(
        session.ipaddress, "ip_address", lambda text: session.ipaddress.IPv4Address("192.0.2.1")
    )
    assert complains(asked_with(nbspam, server), 1, "offers no TLS on port", "write imaps://")

    # Bytes that come before TLS are refused.
    def again(_, sock, **more):
        return socket.socket(fileno=sock.detach())

    monkeypatch.setattr(wire.imaplib.ssl.SSLContext, "wrap_socket", again)
    server.before += " STARTTLS"
    server.answers["STARTTLS"] = b"TAG OK begin\r\n* OK [CAPABILITY X] injected\r\n"

    assert complains(asked_with(nbspam, server), 1, "answers that came before TLS began")


def test_folders_are_found_by_their_use_or_usual_names(server):
    names = ("INBOX/Archive", "Sent Items", "A/Spam", "x", "Gelöschte Elemente")
    server.folders |= {name: FakeFolder(30 + n) for n, name in enumerate(names)}
    with opened(server) as found:
        uses = {each.name: each.use for each in found.folders() if each.use}
    assert uses == {
        "Junk": "junk", "Trash": "trash", "Sent Items": "sent", "INBOX/Archive": "archive",
        "A/Spam": "junk", "Gelöschte Elemente": "trash",
    }  # fmt: skip
    server.after = AFTER.replace("SPECIAL-USE", "")
    server.folders["Junk"].use = ""
    with opened(server) as found:
        assert found.junk_folder(found.folders(), None) == "Junk"
    server.folders |= {"Junk": FakeFolder(12, "\\Junk"), "A spam": FakeFolder(40, "\\Junk")}
    for _ in range(2):  # of two that are marked, the first by name
        with opened(server) as found:
            assert found.junk_folder(found.folders(), None) == "A spam"
        server.folders["Junk"] = server.folders.pop("Junk")


@pytest.mark.skipif(not hasattr(socket, "TCP_KEEPIDLE"), reason="another system's option")
def test_a_connection_that_ends_silently_is_noticed_within_five_minutes(server):
    with opened(server) as found:
        line = found._client.socket()
        assert line.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        names = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        idle, step, n_steps = (line.getsockopt(socket.IPPROTO_TCP, name) for name in names)
    assert idle + step * n_steps <= 300


def test_the_junk_folder_of_others_is_not_taken(server):
    theirs = '(("" "/")) (("Other/" "/")) (("Public/" "/"))'
    for namespaces, name, junk, new in (
        (theirs, "Spam", "Spam", "New"),
        (theirs.replace(' "/")', ' "/" "X-PARAM" ("A" "B"))'), "x", None, "New"),  # RFC 2342, 5
        ('(("INBOX." ".")) (("Other/" "/")) (("" "/"))', "INBOX.Junk", "INBOX.Junk", "INBOX.New"),
        *((none, "x", "Public/Junk", "New") for none in ("", "NIL NIL NIL")),
    ):
        server.after, server.namespaces = f"{AFTER} NAMESPACE", namespaces
        server.folders = {
            "Public/Junk": FakeFolder(1, "\\Junk"),
            "Other/ben/Junk": FakeFolder(2),
            name: FakeFolder(3, "\\Junk" if name == "INBOX.Junk" else ""),
        }
        with opened(server) as found:
            assert found.junk_folder(found.folders(), None) == junk
            assert found.name_of("New", [name]) == new


def test_what_a_server_says_while_we_wait_is_no_refusal_and_no_end(server, monkeypatch):
    ours, theirs = socket.socketpair()
    with ours, theirs, AccountSession(imap_url(server.url()), book_of()) as found:
        found.open("INBOX")
        found.uids()
        with monkeypatch.context() as patch:  # a part of a TLS record
            patch.setattr(wire.WireClient, "idle_check", lambda *_: [])
            threading.Timer(0.1, server.put, ("INBOX", ham(0))).start()
            found.wait(60.0, ours)
        assert found.open("INBOX").n_messages == 1
        said = b"* OK hm\r\n* 1 EXISTS\r\n+ idling\r\n"
        monkeypatch.setattr(ImapHandler, "do_idle", lambda *_: said)
        found.uids()
        found.wait(60.0, ours)  # not a second: there is new mail
        server.answers["IDLE"] = [b"TAG NO [LIMIT] no\r\n", b"TAG BAD no\r\n", b"* BYE bye\r\n"]
        for error, words in (
            (LostError, "the server is busy"),
            (AccountRefusedError, "the server refuses IDLE"),
            (LostError, "connection lost"),
        ):
            with pytest.raises(error, match=words):
                found.wait(60.0, ours)


def test_a_folder_whose_name_is_no_utf7_is_left_out_and_too_many_are_refused(server, monkeypatch):
    lines = (
        b'* LIST () "/" %b\r\n' % name
        for name in (b'"R&D"', b"&2D0-", b"2026", b'"A&-B"', b"Inbox", b"NIL")
    )
    server.answers["LIST"] = b"".join([*lines, b"TAG OK done\r\n"])
    with opened(server) as found:
        assert [each.name for each in found.folders()] == ["2026", "A&B", "INBOX", "NIL"]
    server.answers.clear()
    monkeypatch.setattr(session, "_MOST_FOLDERS", 2)
    with opened(server) as found, pytest.raises(session.InputError, match="more than 2 folders"):
        found.folders()


def opened(server):
    return AccountSession(imap_url(server.url()), book_of())


def test_without_the_library_the_command_says_how_to_install_it(server, nbspam, trained):
    script = (
        "import sys; sys.modules['imapclient'] = None; from nbspam.cli import main; main.main()"
    )
    command = [sys.executable, "-c", script, "classify", "--password-command", "echo x"]
    done = subprocess.run([*command, server.url(folder="INBOX")], capture_output=True, check=False)
    assert done.returncode == 2
    assert b"pip install 'nbspam[imap]'" in done.stderr


@pytest.mark.parametrize("host", ["mail.example.org", "[::1]"])
def test_a_url_says_account_folder_and_message(host):
    ann, strange = (True, "ann", host.strip("[]"), 993), (True, "a@b", host.strip("[]"), 993)
    starttls = (False, "ann", host.strip("[]"), 1143)
    for text, said, again in (
        ("imaps://ann@{}", ann, "imaps://ann@{}/"),
        ("IMAPS://ann@{}/", ann, "imaps://ann@{}/"),
        ("imaps://ann@{}/inbox", (*ann, "INBOX"), "imaps://ann@{}/INBOX"),
        ("imaps://a%40b@{}/INBOX", (*strange, "INBOX"), "imaps://a%40b@{}/INBOX"),
        ("imaps://a@b@{}/INBOX", (*strange, "INBOX"), "imaps://a%40b@{}/INBOX"),
        ("imap://ann;AUTH=*@{}:1143/x", (*starttls, "x"), "imap://ann@{}:1143/x"),
        ("imap://ann@{}:1143/b%20c;UIDVALIDITY=7/;UID=3", (*starttls, "b c", 7, 3), None),
        ("imaps://ann@{}/[Gmail]/x", (*ann, "[Gmail]/x"), "imaps://ann@{}/%5BGmail%5D/x"),
        # No other server gets the password.
        ("imaps://ann@{}/b/c@evil.com", (*ann, "b/c@evil.com"), "imaps://ann@{}/b/c%40evil.com"),
        ("imaps://ann@{}/%E5%9E%83&\"'", (*ann, "垃&\"'"), "imaps://ann@{}/%E5%9E%83%26%22'"),
    ):
        url = ImapUrl(*said)
        assert imap_url(text.format(host.upper())) == url
        assert str(url) == (again or text).format(host)
        assert imap_url(str(url)) == url


def test_other_urls_are_usage_errors_which_repeat_no_password():
    for text, words in (
        ("mail.example.org/INBOX", "names no user"),
        ("ann@", "no URL of a mail account"),
        ("ann@mail.example.org:99999/", "no URL of a mail account"),
        ("ann@mail.example.org/a%0d%0aDELETE", "no URL of a mail account"),
        ("ann@mail.example.org/Entw\udcfcrfe", "no URL of a mail account"),
        ("ann@mail..example.org/", "no URL of a mail account"),
        *(
            (f"ann:{password}@mail.example.org/", "--password-command")
            for password in ("s3cret", "s3cret/@", "12/s3cret")
        ),
    ):
        with pytest.raises(UsageError, match=words) as caught:
            imap_url(f"imaps://{text}")
        assert "s3cret" not in str(caught.value)
