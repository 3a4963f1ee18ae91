"""The bounds that hold for each client, whatever its protocol."""

import asyncio

import pytest

from nbspam.server.milter import MilterConnection
from nbspam.server.rspamd import RspamdConnection
from nbspam.server.spamd import SpamdConnection
from scripted import Client, desk, full, go_on, talk
from serving import OFFER, check, milter_mail
from support import HAM, SPAM

POST = b"POST /checkv2 HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(SPAM) + SPAM
FIRST = {  # a request without its end, and its end
    SpamdConnection: (check(SPAM)[:-5], check(SPAM)[-5:]),
    RspamdConnection: (POST[:-5], POST[-5:]),
    MilterConnection: (OFFER + milter_mail(SPAM)[:-3], milter_mail(SPAM)[-3:]),
}
KINDS = pytest.mark.parametrize("kind", FIRST, ids=lambda kind: kind.__name__)


def now():
    return asyncio.get_running_loop().time()


def late(kind, seconds, *pieces, **more):
    """Return a client that sent pieces, after the desk has looked so many seconds later."""

    async def converse():
        at = desk(**more)
        client = await Client(kind, at).send(*pieces)
        at.sweep(now() + seconds)
        return client

    return asyncio.run(converse())


def test_a_client_that_is_silent_or_too_slow_is_let_go_and_told_so():
    told = {SpamdConnection: b"SPAMD/1.0 79 EX_TIME", RspamdConnection: b"HTTP/1.1 408 "}
    for kind in FIRST:
        assert not late(kind, 29).is_over
        client = late(kind, 31)
        assert client.is_over
        assert client.answer == b""
        begun = FIRST[kind][0]
        assert not late(kind, 299, begun).is_over
        client = late(kind, 301, begun)
        assert client.is_over
        assert client.desk.tally.total("trouble idle") == 1
        assert client.answer.startswith(told.get(kind, b""))


def test_bytes_that_come_slowly_do_not_give_more_time():
    async def converse():
        for first, later in (
            (b"CHECK SPAMC/1.5\r\nContent-length: 999\r\n\r\n", b"x"),
            (b"", b"C"),
        ):
            client = await Client(SpamdConnection, desk()).send(first)
            due = client.connection.due
            for _ in range(50):
                await client.send(later)
            assert client.connection.due == due

    asyncio.run(converse())


def test_a_milter_may_rest_as_long_as_libmilter_lets_it_but_no_packet_may():
    assert not late(MilterConnection, 7000, OFFER).is_over
    assert late(MilterConnection, 7300, OFFER).is_over
    assert late(MilterConnection, 301, OFFER, b"\0\0\0\x09B").is_over


def test_a_message_that_is_not_judged_in_time_is_answered_so():
    async def converse(kind, passes, expected):
        at = desk(waits=True, passes=passes)
        client = await Client(kind, at).send(*FIRST[kind])
        before = client.answer
        at.sweep(now() + 61)
        await go_on(at)  # too late, and no second answer
        answer = client.answer[len(before) :]
        assert answer.startswith(expected)
        assert answer.count(expected) == 1
        assert at.tally.total("trouble late") == 1

    for kind, refusal, passed in (
        (SpamdConnection, b"SPAMD/1.0 79 EX_TIMEOUT", b"SPAMD/1.1 0 EX_OK\r\nSpam: False"),
        (RspamdConnection, b"HTTP/1.1 504 ", b"HTTP/1.1 200 "),
        (MilterConnection, b"\0\0\0\x01t", b"\0\0\0\x01a"),
    ):
        asyncio.run(converse(kind, False, refusal))
        asyncio.run(converse(kind, True, passed))


@KINDS
def test_a_client_that_goes_leaves_nothing_behind(kind):
    async def converse(*pieces):
        at = desk(waits=True)
        client = await Client(kind, at).send(*pieces)
        client.connection.connection_lost(None)
        await go_on(at)
        assert at.held == 0
        assert at.connections == set()

    asyncio.run(converse(FIRST[kind][0]))
    asyncio.run(converse(*FIRST[kind]))


@KINDS
def test_too_many_connections_are_counted_and_end_at_twice_the_limit(kind):
    async def converse():
        at = desk(limits={"connections": 2})
        return at, [Client(kind, at) for _ in range(6)]

    at, clients = asyncio.run(converse())
    assert [client.wire.is_aborted for client in clients] == [False] * 4 + [True] * 2
    assert [client.connection.crowded for client in clients[:4]] == [False, False, True, True]
    assert at.tally.total("trouble busy") == 2
    assert len(at.connections) == 4


def test_who_still_writes_can_read_the_answer_before_the_connection_closes():
    # If a socket is closed with bytes unread, the system throws away what the client has not read.
    async def converse():
        client = Client(SpamdConnection, desk(allows_tell=False))
        await client.send(b"NONSENSE\r\n\r\n", b"more", b"and more")
        assert client.answer.startswith(b"SPAMD/1.0 76 ")
        assert client.wire.is_ended
        assert not client.wire.is_closed
        await client.end()
        assert client.wire.is_closed

        client = Client(SpamdConnection, desk())
        client.wire.can_write_eof = lambda: False  # a transport that cannot close one side
        await client.send(b"NONSENSE\r\n\r\n")
        assert client.wire.is_closed

        at = desk(waits=True)
        client = await Client(SpamdConnection, at).send(check(SPAM))
        await client.end()  # who has said all is closed at once
        assert not client.is_over
        await go_on(at)
        assert client.wire.is_closed
        assert not client.wire.is_ended

    asyncio.run(converse())


def test_who_does_not_read_its_answer_ends_after_its_time_and_its_bytes_count_until_then():
    async def converse():
        at = desk()
        client = await Client(SpamdConnection, at).send(check(SPAM, "PROCESS"))
        assert client.is_over
        assert at.held == len(SPAM)
        at.sweep(now() + 299)
        assert not client.wire.is_aborted
        at.sweep(now() + 301)
        assert client.wire.is_aborted
        client.connection.connection_lost(None)
        assert at.held == 0

    asyncio.run(converse())


def test_all_messages_together_are_bounded():
    async def converse():
        at = desk(waits=True, limits={"bytes_held": 2 * len(SPAM) + 5})
        at.judge.n_waiting = 7
        clients = [await Client(SpamdConnection, at).send(check(SPAM)) for _ in range(3)]
        assert [client.answer[:12] for client in clients] == [b"", b"", b"SPAMD/1.0 75"]
        assert at.held <= at.limits.bytes_held
        at.sweep(now())  # which tells how things are
        names = ("trouble busy", "open", "waiting", "held")
        assert [at.tally.total(name) for name in names] == [1, 3, 7, 2 * len(SPAM)]

    asyncio.run(converse())


def test_lessons_that_wait_are_bounded():
    request = check(SPAM, "TELL", "1.5", "Message-class: spam", "Set: local")
    client = talk(SpamdConnection, request, prepare=full)
    assert client.answer.startswith(b"SPAMD/1.0 75 EX_TEMPFAIL")


def test_at_the_end_those_who_rest_are_closed_and_others_are_answered():
    async def converse():
        at = desk(waits=True)
        rests = Client(RspamdConnection, at)
        asks = await Client(RspamdConnection, at).send(POST)
        slow = await Client(SpamdConnection, at).send(check(HAM)[:-3])
        at.end()
        assert rests.is_over
        assert not asks.is_over
        assert not slow.is_over
        await go_on(at)
        await slow.send(check(HAM)[-3:])
        return asks, slow

    asks, slow = asyncio.run(converse())
    assert b"\r\nConnection: close\r\n" in asks.answer
    assert asks.is_over
    assert b"Spam: False" in slow.answer


def test_at_the_end_who_does_not_close_gets_two_seconds():
    async def converse():
        at = desk()
        client = await Client(SpamdConnection, at).send(check(SPAM))
        at.end()
        at.sweep(now() + 1)
        assert not client.wire.is_aborted
        at.sweep(now() + 3)
        return client.wire.is_aborted

    assert asyncio.run(converse())
