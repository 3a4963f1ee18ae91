"""The bounds that hold for each client, whatever its protocol."""

import asyncio

import pytest

from nbspam.server.milter import MilterConnection
from nbspam.server.rspamd import RspamdConnection
from nbspam.server.spamd import SpamdConnection
from scripted import Client, Wire, desk, full, talk
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


def test_a_client_that_asks_nothing_is_let_go_after_30_seconds():
    for kind in FIRST:
        assert not late(kind, 29).is_over
        client = late(kind, 31)
        assert client.is_over
        assert client.answer == b""


def test_a_request_that_is_never_whole_ends_after_its_time():
    for kind in FIRST:
        pieces = FIRST[kind][0]
        assert not late(kind, 299, pieces).is_over
        client = late(kind, 301, pieces)
        assert client.is_over
        assert client.desk.tally.total("trouble idle") == 1


def test_who_was_too_slow_is_told_so():
    assert late(SpamdConnection, 301, check(SPAM)[:-5]).answer.startswith(b"SPAMD/1.0 79 EX_TIME")
    assert late(RspamdConnection, 301, POST[:-5]).answer.startswith(b"HTTP/1.1 408 ")


def test_bytes_that_come_slowly_do_not_give_more_time():
    async def converse():
        at = desk()
        client = Client(SpamdConnection, at)
        await client.send(b"CHECK SPAMC/1.5\r\nContent-length: 999\r\n\r\n")
        due = client.connection.due
        for _ in range(50):
            await client.send(b"x")
        assert client.connection.due == due
        client = Client(SpamdConnection, at)
        due = client.connection.due
        for _ in range(50):
            await client.send(b"C")
        assert client.connection.due == due

    asyncio.run(converse())


def test_a_milter_may_rest_as_long_as_libmilter_lets_it_but_no_packet_may():
    assert not late(MilterConnection, 7000, OFFER).is_over
    assert late(MilterConnection, 7300, OFFER).is_over
    assert late(MilterConnection, 301, OFFER, b"\0\0\0\x09B").is_over


def test_a_message_that_is_not_judged_in_time_is_answered_so():
    for kind in FIRST:
        for passes in (False, True):

            async def converse(kind=kind, passes=passes):
                at = desk(passes=passes)
                at.judge.held_back = []
                client = await Client(kind, at).send(*FIRST[kind])
                before = client.answer
                at.sweep(now() + 61)
                at.judge.go_on()  # too late, and no second answer
                for _ in range(9):
                    await asyncio.sleep(0)
                return client.answer[len(before) :], at.tally.total("trouble late")

            answer, count = asyncio.run(converse())
            expected = {
                SpamdConnection: (b"SPAMD/1.0 79 EX_TIMEOUT", b"SPAMD/1.1 0 EX_OK\r\nSpam: False"),
                RspamdConnection: (b"HTTP/1.1 504 ", b"HTTP/1.1 200 "),
                MilterConnection: (b"\0\0\0\x01t", b"\0\0\0\x01a"),
            }[kind][passes]
            assert answer.startswith(expected)
            assert answer.count(expected) == 1
            assert count == 1


def test_a_client_that_goes_leaves_nothing_behind():
    for kind in FIRST:

        async def converse(*pieces, kind=kind):
            at = desk()
            at.judge.held_back = []
            client = await Client(kind, at).send(*pieces)
            client.connection.connection_lost(None)
            at.judge.go_on()
            await asyncio.sleep(0)
            return at

        for pieces in (FIRST[kind][:1], FIRST[kind]):
            at = asyncio.run(converse(*pieces))
            assert at.held == 0
            assert at.connections == set()


def test_too_many_connections_are_counted_and_end_at_twice_the_limit():
    for kind in FIRST:

        async def converse(kind=kind):
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
        return client.wire

    assert asyncio.run(converse()).is_closed


def test_who_has_said_all_is_closed_at_once():
    async def converse():
        at = desk()
        at.judge.held_back = []
        client = await Client(SpamdConnection, at).send(check(SPAM))
        await client.end()
        assert not client.is_over
        at.judge.go_on()
        for _ in range(9):
            await asyncio.sleep(0)
        return client.wire

    wire = asyncio.run(converse())
    assert wire.is_closed
    assert not wire.is_ended


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


def test_of_a_message_in_pieces_no_more_is_kept_than_of_one_in_a_piece():
    data = SPAM + b"x" * 500
    for pieces in ([check(data)], [check(data)[at : at + 60] for at in range(0, 800, 60)]):
        client = talk(SpamdConnection, *pieces, limits={"message_bytes": 100})

        assert client.desk.judge.seen == [data[:100]]
        assert client.desk.tally.total("oversized") == 1


def test_all_messages_together_are_bounded():
    async def converse():
        at = desk(limits={"bytes_held": 2 * len(SPAM) + 5})
        at.judge.held_back = []
        clients = [await Client(SpamdConnection, at).send(check(SPAM)) for _ in range(3)]
        assert [client.answer[:12] for client in clients] == [b"", b"", b"SPAMD/1.0 75"]
        assert at.held <= at.limits.bytes_held
        return at.tally.total("trouble busy")

    assert asyncio.run(converse()) == 1


def test_lessons_that_wait_are_bounded():
    request = check(SPAM, "TELL", "1.5", "Message-class: spam", "Set: local")
    client = talk(SpamdConnection, request, prepare=full)
    assert client.answer.startswith(b"SPAMD/1.0 75 EX_TEMPFAIL")


def test_how_things_are_is_told_with_every_look():
    async def converse():
        at = desk()
        at.judge.held_back = []
        at.judge.n_waiting = 7
        await Client(SpamdConnection, at).send(check(SPAM))
        at.sweep(now())
        return [at.tally.total(name) for name in ("open", "waiting", "held")]

    assert asyncio.run(converse()) == [1, 7, len(SPAM)]


def test_at_the_end_those_who_rest_are_closed_and_others_are_answered():
    async def converse():
        at = desk()
        at.judge.held_back = []
        rests = Client(RspamdConnection, at)
        asks = await Client(RspamdConnection, at).send(POST)
        slow = await Client(SpamdConnection, at).send(check(HAM)[:-3])
        at.end()
        assert rests.is_over
        assert not asks.is_over
        assert not slow.is_over
        at.judge.go_on()
        await slow.send(check(HAM)[-3:])
        for _ in range(9):
            await asyncio.sleep(0)
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


def test_a_transport_that_cannot_close_one_side_is_closed():
    async def converse():
        client = Client(SpamdConnection, desk())
        client.wire.can_write_eof = lambda: False
        await client.send(b"NONSENSE\r\n\r\n")
        return client.wire

    wire = asyncio.run(converse())
    assert isinstance(wire, Wire)
    assert wire.is_closed
