"""Attacks on the page without a network: what reads requests otherwise, and what takes room."""

import asyncio
import os
import shutil
from time import time

from http_requests import parsed
from mailboxes import boxes, key_of, put
from nbspam.server.page.app import WebConnection
from nbspam.server.page.mailbox import Mailboxes
from nbspam.server.rspamd import RspamdConnection
from page_requests import FORM, SESSION, asked, talk, tell
from scripted import ACCESS, Client, answer_to, desk, settled
from serving import PATIENCE

OURS = "127.0.0.1:8025"


def answered(request):
    """Return the status and the text for one request."""
    [(status, _, body)] = parsed(answer_to(WebConnection, request))
    return status, body.decode()


def lines(*found):
    return "\r\n".join([*found, f"Cookie: nbspam-8025={SESSION}", "", ""]).encode()


# ---- other names ----


def test_a_name_of_ours_may_be_in_capitals():
    assert answered(lines("GET / HTTP/1.1", "Host: LOCALHOST:8025"))[0] == 200


def test_a_request_of_two_hosts_is_none_of_http():
    for names in (("evil.example", OURS), (OURS, "evil.example"), (OURS, OURS)):
        found = answered(lines("GET / HTTP/1.1", *[f"Host: {name}" for name in names]))
        assert found == (400, "not HTTP\n")


def test_the_host_in_an_address_counts_instead_of_the_header():
    for url, host, status in (
        ("http://evil.example/", OURS, 403),
        (f"http://{OURS}@evil.example/", OURS, 403),
        (f"http://evil.example@{OURS}/", OURS, 403),
        ("http://[evil/", OURS, 404),
        (f"http://{OURS}/", "evil.example", 200),
        ("//evil.example/", OURS, 404),
    ):
        assert answered(lines(f"GET {url} HTTP/1.1", f"Host: {host}"))[0] == status


# ---- other forms ----


def test_a_form_of_any_kind_from_another_site_teaches_nothing(tmp_path):
    for kind, body in (
        ("text/plain", f"form={FORM}&spam=1.M1.host"),
        ("application/json", f'{{"form": "{FORM}", "spam": "1.M1.host"}}'),
        ("multipart/form-data; boundary=b",
         f'--b\r\nContent-Disposition: form-data; name="form"\r\n\r\n{FORM}\r\n--b--'),
    ):  # fmt: skip
        put(tmp_path / "box", 1)
        head = (
            "POST /tell HTTP/1.1", f"Host: {OURS}", "Origin: http://evil.example",
            f"Content-Type: {kind}", f"Content-Length: {len(body)}",
        )  # fmt: skip
        at, [(status, _, text)] = talk(tmp_path, lines(*head) + body.encode())

        assert (status, text) == (403, "Origin is another site\n")
        assert at.teacher.known == {}


def test_only_post_teaches(tmp_path):
    for method in ("GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        put(tmp_path / "box", 1)
        request = tell(spam=key_of(1)).replace(b"POST", method.encode(), 1)
        at, [(status, _, _)] = talk(tmp_path, request)

        assert status == (404 if method == "GET" else 405)
        assert at.teacher.known == {}


# ---- room ----


def test_visitors_of_the_page_take_no_place_of_mails():
    async def converse():
        at = desk(limits={"connections": 1, "visitors": 2})
        pages = [Client(WebConnection, at) for _ in range(5)]
        crowded = [each.connection.crowded for each in pages]
        mail = [Client(RspamdConnection, at).connection.crowded for _ in range(2)]
        for each in pages:
            each.connection.connection_lost(None)
        again = await Client(WebConnection, at).send(asked("GET", "/"))
        return crowded, pages[4].wire.is_aborted, mail, again.answer

    crowded, is_aborted, mail, again = asyncio.run(converse())
    assert crowded == [False, False, True, True, True]
    assert is_aborted
    assert mail == [False, True]
    assert parsed(again)[0][0] == 200


def test_what_is_larger_than_a_form_takes_no_room_from_mail():
    async def converse():
        at = desk(limits={"bytes_held": 20_000})
        head = lines("POST /login HTTP/1.1", f"Host: {OURS}", "Content-Length: 1000000")
        client = await Client(WebConnection, at).send(head, *[b"a" * 1000] * 900)
        held = at.held
        await client.send(b"a" * 100_000)
        return held, at.held, client.answer

    held, after, answer = asyncio.run(converse())
    assert (held, after) == (10_000, 0)
    assert answer.startswith(b"HTTP/1.1 403 ")  # without Origin


def test_a_list_for_a_browser_that_has_gone_is_not_made(tmp_path):
    put(tmp_path / "box", 1)

    async def converse():
        at = desk(mailboxes=boxes(tmp_path))
        at.judge.held_back = []
        client = await Client(WebConnection, at).send(asked("GET", "/"))
        async with asyncio.timeout(PATIENCE):
            while not at.judge.held_back:
                await asyncio.sleep(0.005)
        client.connection.connection_lost(None)
        await settled()
        at.reviewer.end()
        return at.judge.held_back[0][0].cancelled()

    assert asyncio.run(converse())


# ---- names that are no text ----


def test_what_went_wrong_with_a_mailbox_is_told_whatever_its_name(tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path / "box\n") + b"\xff")
    os.mkdir(path)
    (tmp_path / "m").touch()

    async def converse():
        at = desk(mailboxes=Mailboxes(path, str(tmp_path / "m")))
        client = await Client(WebConnection, at).send(asked("GET", "/"))
        shutil.rmtree(os.fsencode(path))
        async with asyncio.timeout(PATIENCE):
            while not client.answer:
                await asyncio.sleep(0.005)
            first = len(client.answer)
            await client.send(asked("GET", "/"))
            while len(client.answer) == first:
                await asyncio.sleep(0.005)
        at.reviewer.end()
        return parsed(client.answer)[-1]

    status, _, body = asyncio.run(converse())
    assert status == 500
    assert body.decode().endswith(
        "box\\n\\udcff: no such mailbox; give a Maildir, mbox or folder\n"
    )
    assert body.count(b"\n") == 1


def test_an_old_session_does_not_begin_anew_by_another_time():
    begun, _, rest = ACCESS.new_session(1, "").partition(".")
    found = asked("GET", "/").replace(SESSION.encode(), f"{time():.0f}.{rest}".encode())

    assert begun == "1"
    assert answered(found)[0] == 403
