"""Browsers as connections: bounds, what reads requests otherwise, and answers nobody waits for."""

import asyncio
import os
import shutil
import time

from maildirs import boxes, key_of, put, written
from nbspam.server.page.mailbox import Mailboxes
from nbspam.server.page.routes import WebConnection
from nbspam.server.rspamd import RspamdConnection
from protocols import parsed
from scripted import ACCESS, Client, desk, settled, until
from support import raising
from visitors import COOKIE, HOST, OURS, Visitor

SESSION = Visitor(desk(), "").session


def asked(method, path, *lines, form=b""):
    """Return a request of a browser that is logged in."""
    head = [f"{method} {path} HTTP/1.1", f"Host: {HOST}", f"Cookie: {COOKIE}={SESSION}", *lines]
    return "\r\n".join([*head, f"Content-Length: {len(form)}", "", ""]).encode() + form


async def sent(at, *pieces):
    return await Client(WebConnection, at).send(*pieces)


async def answer_of(client):
    """Wait for an answer, and return the last one as (status, headers, body)."""
    return parsed(await until(lambda: client.answer))[-1]


# ---- requests; see also test_attacks ----


async def test_head_has_no_body_and_a_cookie_of_backslashes_takes_no_time():
    client = await sent(desk(), asked("HEAD", "/"))
    status, _, _ = await answer_of(client)
    assert (status, client.answer.partition(b"\r\n\r\n")[2]) == (405, b"")
    assert not client.is_over
    start, request = time.process_time(), asked("GET", "/", f'Cookie: a="{60_000 * chr(92)}"')
    assert (await answer_of(await sent(desk(), request)))[0] == 403
    assert time.process_time() - start < 1


async def test_a_connection_belongs_to_whoever_each_request_says():
    # A proxy, or ssh -L, may send what several browsers ask over one connection.
    client = Client(WebConnection, desk())
    nobody = asked("GET", "/").replace(COOKIE.encode(), b"x")
    login = asked("GET", f"/?token={ACCESS.token_of('')}").replace(COOKIE.encode(), b"x")
    for request in (asked("GET", "/"), login, asked("GET", "/"), nobody):
        await client.send(request)
        await settled()

    assert [status for status, _, _ in parsed(client.answer)] == [200, 303, 200, 403]


# ---- room ----


async def test_visitors_of_the_page_take_no_place_of_mails():
    at = desk(limits={"connections": 1, "visitors": 2})
    pages = [Client(WebConnection, at) for _ in range(5)]
    assert [each.connection.crowded for each in pages] == [False] * 2 + [True] * 3
    refused, _, _ = await answer_of(await pages[2].send(asked("GET", "/")))
    assert (refused, pages[2].is_over, pages[4].wire.is_aborted) == (503, True, True)
    gauges = "open_connections", "visitors"  # by which other workers know whether there is room
    assert [at.tally.total(name) for name in gauges] == [4, 4]
    mail = [Client(RspamdConnection, at).connection.crowded for _ in range(2)]
    assert mail == [False, True]
    for each in pages:
        each.connection.connection_lost(None)
    assert [at.tally.total(name) for name in gauges] == [2, 0]
    assert (await answer_of(await sent(at, asked("GET", "/"))))[0] == 200


async def test_what_is_larger_than_a_form_takes_no_room_from_mail():
    at = desk(limits={"bytes_held": 2_000_000})
    head = asked("POST", "/login", f"Origin: {OURS}").replace(b": 0\r\n", b": 1000000\r\n")
    client = await sent(at, head, *[b"a" * 1000] * 900)
    assert at.held == 10_001
    await client.send(b"a" * 100_000)
    assert ((await answer_of(client))[0], at.held) == (413, 0)


# ---- browsers that go, or wait too long ----


async def test_a_list_for_a_browser_that_has_gone_is_not_made_but_its_lesson_is_learned(
    at, box, database
):
    put(box, 1)
    at.judge.held_back = []
    client = await sent(at, asked("GET", "/"))
    await until(lambda: at.judge.held_back)
    client.connection.connection_lost(None)
    await settled()
    assert at.judge.held_back[0][0].cancelled()

    at.judge.held_back = None
    form = Visitor(desk(), None)
    form.cookies.set(COOKIE, SESSION)
    lesson = f"form={form.form}&spam={key_of(1)}".encode()
    client = await sent(at, asked("POST", "/tell", f"Origin: {OURS}", form=lesson))
    client.connection.connection_lost(None)
    await until(lambda: at.tally.total("lesson learned"))
    assert database.last_told().key == key_of(1)
    assert (at.teacher.known, client.answer) == ({written(1): "spam"}, b"")


async def test_a_page_that_takes_too_long_is_told(tmp_path, box):
    put(box, 1)
    at = desk(mailboxes=boxes(tmp_path), limits={"answer_seconds": 0.0}, waits=True)
    client = await sent(at, asked("GET", "/"))
    at.sweep(asyncio.get_running_loop().time() + 1)
    at.reviewer.end()
    assert (await answer_of(client))[::2] == (504, b"no answer in time; try again\n")
    assert at.tally.total("trouble late") == 1


async def test_our_own_mistakes_are_told_without_words_of_mail(monkeypatch):
    monkeypatch.setattr(
        "nbspam.server.page.pages.counts_page", raising(ZeroDivisionError("words of mail"))
    )
    status, _, body = await answer_of(await sent(desk(), asked("GET", "/")))
    assert (status, body) == (503, b"internal error\n")


def test_what_went_wrong_with_a_mailbox_is_told_whatever_its_name(tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path / "box\n") + b"\xff")
    os.mkdir(path)
    (tmp_path / "m").touch()
    at = desk(mailboxes=Mailboxes(path, str(tmp_path / "m")))
    visitor = Visitor(at)
    assert visitor.get("/").status_code == 200
    shutil.rmtree(os.fsencode(path))
    answer = visitor.get("/")
    at.reviewer.end()

    assert answer.status_code == 500
    assert "box\n\\udcff: no such mailbox; give a Maildir, mbox, folder or account" in answer.text
