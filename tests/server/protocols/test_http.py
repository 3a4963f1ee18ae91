"""HTTP without a network: requests, and the bounds of a connection that speaks rspamd's words."""

import asyncio
import json
from functools import partial

import scripted
from http_requests import get, parsed, post
from nbspam.server.rspamd import RspamdConnection
from scripted import Client, answer_to, desk, go_on
from support import HAM, SPAM


def answers(*pieces, **more):
    return parsed(answer_to(RspamdConnection, *pieces, **more))


def values(*pieces, **more):
    """Return the status and the JSON of the only answer."""
    [(status, _, body)] = answers(*pieces, **more)
    return status, json.loads(body)


talk = partial(scripted.talk, RspamdConnection)


# ---- requests ----


def test_a_body_may_come_in_chunks():
    pieces = b"".join(b"%x;name=value\r\n%s\r\n" % (1, SPAM[i : i + 1]) for i in range(len(SPAM)))
    head = b"POST /checkv2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    client = talk(head + pieces + b"0\r\n\r\n")

    assert client.desk.judge.seen == [SPAM]
    assert not client.is_over


def test_1_1_keeps_the_connection_and_1_0_does_not_unless_asked():
    assert not talk(get("/ping")).is_over
    assert talk(get("/ping", "Connection: close")).is_over
    assert talk(get("/ping", version="1.0")).is_over
    assert not talk(get("/ping", "Connection: keep-alive", version="1.0")).is_over


def test_requests_one_after_the_other_are_answered_in_their_order():
    found = parsed(
        talk(post("/checkv2"), get("/ping"), post("/checkv2", HAM), post("/checkv2", b"")).answer
    )

    assert [status for status, _, _ in found] == [200] * 4
    assert [json.loads(found[i][2])["action"] for i in (0, 2)] == ["add header", "no action"]
    assert found[1][2] == b"pong\r\n"


def test_a_request_that_comes_before_the_answer_waits_for_it():
    async def converse():
        at = desk(waits=True)
        client = await Client(RspamdConnection, at).send(post("/checkv2"))
        client.connection.data_received(get("/ping"))
        assert client.wire.is_paused
        assert client.answer == b""
        await go_on(at)
        assert [body[:5] for _, _, body in parsed(client.answer)] == [b'{"is_', b"pong\r"]
        assert not client.wire.is_paused

    asyncio.run(converse())


def test_who_is_to_be_closed_is_still_read_so_that_its_end_is_noticed():
    async def converse():
        at = desk(waits=True)
        request = post("/checkv2", SPAM, "Connection: close")
        client = await Client(RspamdConnection, at).send(request, b"more")
        assert client.wire.is_paused
        await go_on(at)
        assert client.wire.is_ended
        assert not client.wire.is_paused
        await client.end()
        assert client.wire.is_closed

    asyncio.run(converse())


def test_requests_in_one_piece_are_answered_up_to_the_first_and_an_upgrade_is_not_taken():
    # The connection closes, and the client sends the others again (RFC 9112, 9.3.2).
    client = talk(get("/ping") + get("/ping") + get("/ping"))
    assert [body for _, _, body in parsed(client.answer)] == [b"pong\r\n"]
    assert client.is_over

    lines = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk")
    assert [body for _, _, body in answers(get("/ping", *lines))] == [b"pong\r\n"]


def test_expect_continue_is_answered_before_the_body():
    async def converse():
        client = Client(RspamdConnection, desk())
        request = post("/checkv2", SPAM, "Expect: 100-continue")
        await client.send(request[: -len(SPAM)])
        first = client.answer
        await client.send(SPAM)
        return first, client.answer

    first, all_ = asyncio.run(converse())
    assert first == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert parsed(all_[len(first) :])[0][0] == 200


def test_a_wrong_request_is_told_what_is_wrong_with_it():
    for request_bytes, status, error in (
        (b"HELO mail\r\n\r\n", 400, "not HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "not HTTP"),
        (get("/checkv2"), 405, "/checkv2: POST the message"),
        (get("/learnspam"), 405, "/learnspam: POST the message"),
        (get("/secrets"), 404, "/secrets: not known here"),
        (post("/checkv2", SPAM, "Compression: zstd"), 415, "Compression is not known here"),
        (get("/ping", *(f"A{i}: b" for i in range(300))), 400, "not HTTP"),
        (get("/ping", "A: " + "b" * 70_000), 400, "not HTTP"),
        (get("/" + "a" * 70_000), 400, "not HTTP"),
        (b"POST /check HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400, "not HTTP"),
    ):
        found = values(request_bytes)

        assert found[0] == status
        assert found[1]["error"].startswith(error)


def test_a_head_or_trailer_that_does_not_end_is_refused_before_it_fills_memory():
    chunked = b"POST /checkv2 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"
    ping = b"GET /ping HTTP/1.1\r\n"
    for start in (ping + b"A: ", b"GET /", ping + b"A", chunked + b"A: "):
        client = talk(start, *[b"a" * 10_000] * 15)

        assert client.answer.startswith(b"HTTP/1.1 400 ")
        assert client.is_over


def test_a_message_over_the_limit_is_judged_by_its_beginning_and_counted():
    client = talk(post("/checkv2", SPAM + b"x" * 5000), limits={"message_bytes": 1000})

    assert parsed(client.answer)[0][0] == 200
    assert client.desk.judge.seen == [(SPAM + b"x" * 5000)[:1000]]
    assert client.desk.tally.total("oversized") == 1


# ---- bounds ----


def test_a_message_for_which_there_is_no_room_is_refused_while_it_comes():
    client = talk(post("/checkv2", bytes(5000))[:3000], limits={"bytes_held": 1000})

    assert client.answer.startswith(b"HTTP/1.1 503 ")
    assert client.wire.is_ended
    assert not client.wire.is_closed
    assert client.desk.tally.total("trouble busy") == 1


def test_a_connection_beyond_the_limit_is_answered_and_closed():
    async def converse():
        at = desk(limits={"connections": 1})
        first, second, third = (Client(RspamdConnection, at) for _ in range(3))
        await second.send(post("/checkv2"))
        await first.send(post("/checkv2"))
        return first, second, third

    first, second, third = asyncio.run(converse())

    assert first.answer.startswith(b"HTTP/1.1 200 ")
    assert not first.is_over
    assert second.answer.startswith(b"HTTP/1.1 503 ")
    assert second.is_over
    assert third.wire.is_aborted
