"""Browsers as connections: bounds, what reads requests otherwise, and answers nobody waits for."""

import asyncio
import os
import shutil
from functools import partial

import pytest

from http_requests import parsed
from mailboxes import boxes, key_of, put, written
from nbspam.server.page.app import WebConnection
from nbspam.server.page.mailbox import Mailboxes
from nbspam.server.rspamd import RspamdConnection
from scripted import ACCESS, Client, desk, settled
from scripted import talk as converse_with
from serving import PATIENCE
from visitors import COOKIE, HOST, OURS, Visitor

SESSION = Visitor(desk(), "").session
talk = partial(converse_with, WebConnection)


def asked(method, path, *lines, host=HOST, form=b""):
    """Return a request of a browser that is logged in."""
    head = [f"{method} {path} HTTP/1.1", f"Host: {host}", f"Cookie: {COOKIE}={SESSION}", *lines]
    return "\r\n".join([*head, f"Content-Length: {len(form)}", "", ""]).encode() + form


async def answered(client):
    """Wait for an answer, and return the last one as (status, headers, body)."""
    async with asyncio.timeout(PATIENCE):
        while not client.answer:
            await asyncio.sleep(0.005)
    return parsed(client.answer)[-1]


def answer_to(*pieces):
    async def converse():
        client = Client(WebConnection, desk())
        await client.send(*pieces)
        return await answered(client)

    return asyncio.run(converse())


# ---- what reads requests otherwise ----


@pytest.mark.parametrize("hosts", [("evil.example", HOST), (HOST, "evil.example"), (HOST, HOST)])
def test_a_request_of_two_hosts_is_none_of_http(hosts):
    status, _, body = answer_to(asked("GET", "/", f"Host: {hosts[0]}", host=hosts[1]))

    assert (status, body) == (400, b"not HTTP\n")


@pytest.mark.parametrize(
    ("url", "host", "status"),
    [
        ("http://evil.example/", HOST, 403),
        (f"http://{HOST}@evil.example/", HOST, 403),
        (f"http://evil.example@{HOST}/", HOST, 403),
        ("http://[evil/", HOST, 404),
        (f"{OURS}/", "evil.example", 200),
        ("//evil.example/", HOST, 404),
    ],
)
def test_the_host_in_an_address_counts_instead_of_the_header(url, host, status):
    assert answer_to(asked("GET", url, host=host))[0] == status


def test_an_answer_to_what_is_no_request_forbids_the_browser_everything():
    status, headers, _ = answer_to(b"\x16\x03\x01\x02\x00\r\n\r\n")  # TLS

    assert status == 400
    assert headers["content-security-policy"].startswith("default-src 'none'")


def test_head_is_refused_and_the_connection_ends():
    async def is_over(method):
        client = await Client(WebConnection, desk()).send(asked(method, "/"))
        await answered(client)
        return client.is_over

    assert asyncio.run(is_over("HEAD"))
    assert not asyncio.run(is_over("GET"))


def test_names_that_are_not_latin_go_through():
    assert answer_to(asked("GET", "/%e4%b8%ad", "X-Name: \u4e2d"))[0] == 404


# ---- room ----


def test_visitors_of_the_page_take_no_place_of_mails():
    async def converse():
        at = desk(limits={"connections": 1, "visitors": 2})
        pages = [Client(WebConnection, at) for _ in range(5)]
        crowded = [each.connection.crowded for each in pages]
        refused = await answered(await pages[2].send(asked("GET", "/")))
        mail = [Client(RspamdConnection, at).connection.crowded for _ in range(2)]
        for each in pages:
            each.connection.connection_lost(None)
        again = await Client(WebConnection, at).send(asked("GET", "/"))
        return crowded, refused[0], pages, mail, (await answered(again))[0]

    crowded, refused, pages, mail, again = asyncio.run(converse())
    assert crowded == [False, False, True, True, True]
    assert (refused, pages[2].is_over, pages[4].wire.is_aborted) == (503, True, True)
    assert mail == [False, True]
    assert again == 200


def test_what_is_larger_than_a_form_takes_no_room_from_mail():
    async def converse():
        at = desk(limits={"bytes_held": 20_000})
        head = asked("POST", "/login", f"Origin: {OURS}").replace(b": 0\r\n", b": 1000000\r\n")
        client = await Client(WebConnection, at).send(head, *[b"a" * 1000] * 900)
        held = at.held
        await client.send(b"a" * 100_000)
        status, _, _ = await answered(client)
        return held, at.held, status

    assert asyncio.run(converse()) == (10_001, 0, 413)


# ---- browsers that go ----


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


def test_a_lesson_whose_browser_has_gone_is_learned_and_noted(tmp_path):
    put(tmp_path / "box", 1)
    form = Visitor(desk(), None)
    form.cookies.set(COOKIE, SESSION)
    lesson = f"form={form.form}&spam={key_of(1)}".encode()

    async def converse():
        at = desk(mailboxes=boxes(tmp_path))
        client = Client(WebConnection, at)
        await client.send(asked("POST", "/tell", f"Origin: {OURS}", form=lesson))
        client.connection.connection_lost(None)
        async with asyncio.timeout(PATIENCE):
            while (await at.reviewer.run(boxes(tmp_path).box("").database.last_told)) is None:
                await asyncio.sleep(0.005)
            while not at.tally.total("lesson learned"):
                await asyncio.sleep(0.005)
        at.reviewer.end()
        return at.teacher.known, client.answer

    assert asyncio.run(converse()) == ({written(1): "spam"}, b"")


def test_a_page_that_takes_too_long_is_told(tmp_path):
    put(tmp_path / "box", 1)

    async def converse():
        at = desk(mailboxes=boxes(tmp_path), limits={"answer_seconds": 0.0})
        at.judge.held_back = []
        client = await Client(WebConnection, at).send(asked("GET", "/"))
        at.sweep(asyncio.get_running_loop().time() + 1)
        at.reviewer.end()
        return (await answered(client))[0], at.tally.total("trouble late")

    assert asyncio.run(converse()) == (504, 1)


def test_our_own_mistakes_are_told_without_words_of_mail(monkeypatch):
    def mistaken(*_):
        raise ZeroDivisionError("words of mail")

    monkeypatch.setattr("nbspam.server.page.pages.counts_page", mistaken)
    status, _, body = answer_to(asked("GET", "/"))

    assert (status, body) == (500, b"internal error\n")


# ---- connections that several browsers share ----


def test_a_connection_belongs_to_whoever_each_request_says():
    # A proxy, or ssh -L, may send what several browsers ask over one connection.
    async def converse():
        client = Client(WebConnection, desk())
        for path in ("/", f"/?token={ACCESS.token_of('')}", "/"):
            request = asked("GET", path)
            await client.send(request if path == "/" else request.replace(COOKIE.encode(), b"x"))
            await settled()
        await client.send(asked("GET", "/").replace(COOKIE.encode(), b"x"))
        await settled()
        return [status for status, _, _ in parsed(client.answer)]

    assert asyncio.run(converse()) == [200, 303, 200, 403]


# ---- names that are no text ----


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
    assert "box\n\\udcff: no such mailbox; give a Maildir, mbox or folder" in answer.text
