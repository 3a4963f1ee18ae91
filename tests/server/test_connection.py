"""Laws and bounds that hold for each client, whatever its protocol."""

import asyncio
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.server.metrics import _PLACE
from nbspam.server.milter import MilterConnection
from nbspam.server.page.routes import WebConnection
from nbspam.server.rspamd import HttpConnection, RspamdConnection
from nbspam.server.spamd import SpamdConnection
from protocols import OFFER, check, get, milter_mail, packet, post, tell
from scripted import ACCESS, Client, desk, full, go_on, settled, talk
from support import HAM, SPAM, examples, raising
from visitors import Visitor


def requests(data):
    return {
        SpamdConnection: check(data),
        RspamdConnection: post("/checkv2", data),
        MilterConnection: OFFER + milter_mail(data),
    }


WHOLE = requests(SPAM)
HUGE = b"TELL SPAMC/1.5\r\nContent-length: 999999999\r\n\r\n"
KINDS = pytest.mark.parametrize("kind", WHOLE, ids=lambda kind: kind.__name__)
EACH_KIND = pytest.mark.parametrize(
    "kind", [*WHOLE, WebConnection], ids=lambda kind: kind.__name__
)


def now():
    return asyncio.get_running_loop().time()


WORDS = {
    SpamdConnection: [
        *(f"{name} SPAMC/1.{n}\r\n".encode() for name in ("CHECK", "PING") for n in (2, 5)),
        b"TELL SPAMC/1.5\n", b"Content-length: 9\r\n", b"Content-length:", b"Set: local\r\n",
        b"Message-class: spam\r\n", b"Compress: zlib\r\n", b"\r\n", b"\n", b"\r", b": ", SPAM,
        check(SPAM), check(HAM, "PROCESS"), check(SPAM, "REPORT", "1.2"), b"\0", b"\xff",
    ],
    RspamdConnection: [
        b"POST /checkv2 HTTP/1.1\r\n", b"GET /ping HTTP/1.1\r\n\r\n", b"Content-Length: 9\r\n",
        b"Transfer-Encoding: chunked\r\n", b"5\r\npills\r\n", b"0\r\n\r\n", b"Upgrade: h2c\r\n",
        b"Connection: Upgrade\r\n", b"Connection: close\r\n", b"Expect: 100-continue\r\n",
        b"\r\n", b"\n", b"CONNECT a:1 HTTP/1.1\r\n\r\n", b"GET //[ HTTP/1.0\r\n\r\n", SPAM,
        b"POST /learnspam HTTP/1.1\r\nPassword: open sesame\r\n", b"\0", b"\xff", b" ", b"a",
    ],
    MilterConnection: [
        OFFER, milter_mail(SPAM), milter_mail(HAM), packet(b"E"), packet(b"A"), packet(b"M"),
        packet(b"D", b"Mi\0q"), packet(b"L", b"a"), packet(b"L", b"X-Nbspam\0b\0"), packet(b"B"),
        packet(b"O"), packet(b"Q"), packet(b"?"), b"\0\0\0\x01", b"\0\0\0", b"E", b"\xff",
    ],
    WebConnection: [
        b"GET / HTTP/1.1\r\n", b"POST /login HTTP/1.1\r\n", b"HEAD /?token= HTTP/1.1\r\n",
        f"GET /?token={ACCESS.token_of('')} HTTP/1.1\r\n".encode(), b"Host: 127.0.0.1:8025\r\n",
        b"Origin: http://127.0.0.1:8025\r\n", b"Cookie: nbspam-8025=.; =;\xff\r\n", b"\r\n",
        b"Content-Length: 9\r\n", b"token=%ff", b"POST /logout HTTP/1.1\r\n", b"\0", b"\xff",
        f"Cookie: nbspam-8025={Visitor(desk()).session}\r\n".encode(),
        b"GET //[ HTTP/1.0\r\n",
    ],
}  # fmt: skip


async def converse(kind, pieces, ends):
    client = await Client(kind, desk(limits={"message_bytes": 200})).send(*pieces)
    if ends:
        await client.end()
    await settled()
    await settled()
    client.connection.connection_lost(None)
    assert client.desk.held == 0
    # Dates are not compared, nor how long it took.
    return re.sub(rb"\r\nDate: [^\r]*", b"", client.answer), client.desk.judge.seen


@EACH_KIND
@given(data=st.data())
@examples(300)
def test_no_bytes_raise_and_any_cuts_give_the_same_answer(kind, data):
    nearly_a_conversation = st.lists(st.sampled_from(WORDS[kind]), max_size=8).map(b"".join)
    stream = data.draw(nearly_a_conversation | st.binary())
    places = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    ends = data.draw(st.booleans())
    cuts = zip([0, *places], [*places, len(stream)], strict=True)
    pieces = [stream[start:end] for start, end in cuts if start < end]
    with asyncio.Runner() as runner:
        cut = runner.run(converse(kind, pieces, ends))
        at_once = runner.run(converse(kind, [stream] * bool(stream), ends))
        if not issubclass(kind, HttpConnection):
            assert cut == at_once
        else:
            # Requests that come in one piece are answered up to the first, as HTTP allows.
            assert cut[1][: len(at_once[1])] == at_once[1]


# ---- time ----


async def late(kind, seconds, *pieces, **more):
    """Return a client that sent pieces, after the desk has looked so many seconds later."""
    client = await Client(kind, desk(**more)).send(*pieces)
    client.desk.sweep(now() + seconds)
    return client


async def test_who_is_silent_or_slow_is_let_go_though_bytes_come_and_who_was_answered_may_rest():
    told = {SpamdConnection: b"SPAMD/1.0 79 EX_TIME", RspamdConnection: b"HTTP/1.1 408 "}
    for kind, request in WHOLE.items():
        assert not (await late(kind, 29)).is_over
        client = await late(kind, 31)
        assert (client.wire.is_aborted, client.answer) == (True, b"")  # its place is free
        assert not (await late(kind, 299, request[:-3])).is_over
        client = await late(kind, 301, request[:-3])
        assert client.is_over
        assert client.desk.tally.total("trouble idle") == 1
        assert client.answer.startswith(told.get(kind, b""))

    head = b"CHECK SPAMC/1.5\r\nContent-length: 999\r\n\r\n"
    for first, later in ((head, b"x"), (b"", b"C")):
        client = await Client(SpamdConnection, desk()).send(first)
        due = client.connection.due
        await client.send(*[later] * 50)
        assert client.connection.due == due

    begun = b"\0\0\0\x09B"
    for said in (OFFER, WHOLE[MilterConnection]):
        assert not (await late(MilterConnection, 7000, said)).is_over
        assert (await late(MilterConnection, 7300, said)).is_over
        for pieces in ((said, begun), (said + begun,)):
            assert (await late(MilterConnection, 301, *pieces)).is_over
    for seconds, is_over in ((9, False), (11, True)):
        rests = await late(RspamdConnection, seconds, get("/ping"), limits={"idle_seconds": 10})
        assert rests.is_over == is_over


@pytest.mark.parametrize(("kind", "late", "busy", "passed"), [
    (SpamdConnection, b"SPAMD/1.0 79 ", b"SPAMD/1.0 75 ", b"SPAMD/1.1 0 EX_OK\r\nSpam: False"),
    (RspamdConnection, b"HTTP/1.1 504 ", b"HTTP/1.1 503 ", b"HTTP/1.1 200 "),
    (MilterConnection, b"\0\0\0\x01t", b"\0\0\0\x01t", b"\0\0\0\x01a"),
])  # fmt: skip
async def test_a_message_that_is_not_judged_in_time_or_for_which_is_no_room_is_answered_so(
    capfd, kind, late, busy, passed
):
    for trouble, refusal in (("late", late), ("busy", busy)):
        for passes, expected in ((False, refusal), (True, passed)):
            at = desk(waits=True, passes=passes, log="text")
            if trouble == "busy":
                full(at)
            client = await Client(kind, at).send(WHOLE[kind])
            at.sweep(now() + 61)
            await go_on(at)  # too late, and no second answer
            assert client.answer.count(expected) == 1
            assert at.tally.total(f"trouble {trouble}") == 1
    lines = capfd.readouterr().err.splitlines()
    assert [f" bytes={len(SPAM)} " in line for line in lines] == 4 * [True]


@KINDS
async def test_a_message_over_the_limit_is_judged_by_its_beginning_and_only_a_whole_one_teaches(
    kind,
):
    client = await Client(kind, desk(limits={"message_bytes": 50})).send(WHOLE[kind])
    [judged] = client.desk.judge.seen
    assert len(judged) == 50
    assert client.desk.tally.total("oversized") == 1
    assert b"pam" in client.answer  # a verdict

    for autolearns, limit, n in ((True, 1000, 1), (False, 1000, 0), (True, 50, 0)):
        at = desk(autolearns=autolearns, limits={"message_bytes": limit})
        at.judge.lesson = "spam"
        client = await Client(kind, at).send(WHOLE[kind])
        await settled()
        assert b"pam" in client.answer
        assert (b" autolearn=spam" in client.answer) == (n == 1 and kind is MilterConnection)
        assert list(at.teacher.known.values()) == ["spam"] * n
        assert at.teacher.told == [False] * n
        assert at.tally.total("lesson learned") == n


async def test_what_lists_teach_does_not_pile_up_and_failures_are_logged(capfd):
    at = desk(autolearns=True, log="text")
    at.teacher.n_waiting = 10
    assert not at.autolearn(SPAM, "spam", None)
    at.teacher.n_waiting = 9
    at.autolearn(b"a failure", "spam", None)
    for _ in range(2):  # it is learned once
        at.autolearn(SPAM, "spam", "Ann@Example.org")
    await settled()
    err = capfd.readouterr().err
    assert "nbspam: a message was not learned by its list: [Errno 28] No space left" in err
    assert err.count("user=Ann@Example.org taught=spam outcome=learned") == 1
    assert "known" not in err
    assert "by=list" in err
    assert f"bytes={len(SPAM)}\n" in err


async def test_a_request_that_is_refused_has_a_line_in_the_log(capfd):
    for kind, request_, line in (
        (SpamdConnection, b"PROXY TCP4 ::1 ::1 1 2\r\n\r\n", "malformed why=the first line is"),
        (SpamdConnection, tell("spam"), "forbidden why=TELL is not allowed; start the server"),
        (RspamdConnection, b"PROXY TCP4 ::1 ::1 1 2\r\n", "malformed why=not HTTP"),
        (RspamdConnection, post("/check", b"x", "Compression: zstd"), "malformed why=Compression"),
        (RspamdConnection, post("/learnspam"), "forbidden why=this server learns nothing; start"),
        (SpamdConnection, HUGE, "large why=a message of 999999999 bytes; send its beginning"),
        (MilterConnection, b"PROXY TCP4 ::1 ::1 1 2\r\n", "malformed why=a packet of 1347571544"),
    ):
        at = desk(log="text", allows_tell=False, password=None)
        client = await Client(kind, at).send(request_)
        err = capfd.readouterr().err
        assert err.startswith(f"refused={line}")
        assert err.count("\n") == 1
        trouble, _, why = line.partition(" why=")
        client.connection.connection_lost(BrokenPipeError())
        assert [at.tally.total(f"trouble {each}") for each in (trouble, "gone")] == [1, 0]
        # A milter has no words for it.
        assert why.encode() in client.answer or kind is MilterConnection


# ---- number and room ----


@KINDS
async def test_a_client_that_goes_or_ends_while_it_waits_leaves_nothing_behind(kind):
    cut = WHOLE[kind][:-3]
    for piece, ends, n_gone in ((b"", 0, 0), (cut, 0, 1), (cut, 1, 1), (WHOLE[kind], 0, 1)):
        at = desk(waits=True)
        client = await Client(kind, at).send(piece)
        if ends:
            await client.end()
        client.connection.connection_lost(None)
        await go_on(at)
        assert (at.held, at.connections) == (0, set())
        assert at.tally.total("trouble gone") == n_gone

    at = desk(waits=True)
    client = await Client(kind, at).send(WHOLE[kind])
    await client.end()
    assert not client.is_over
    await go_on(at)
    assert b"pam" in client.answer  # a verdict
    assert (client.wire.is_closed, client.wire.is_ended) == (True, False)


@KINDS
async def test_too_many_connections_are_told_so_and_end_at_twice_the_limit(kind, capfd):
    at = desk(log="text", limits={"connections": 2})
    clients = [Client(kind, at) for _ in range(6)]
    assert [client.wire.is_aborted for client in clients] == [False] * 4 + [True] * 2
    assert [client.connection.crowded for client in clients[:4]] == [False, False, True, True]
    assert at.tally.total("trouble busy") == 2
    assert len(at.connections) == 4
    for client in (clients[2], clients[0]):
        await client.send(WHOLE[kind])
    busy = {SpamdConnection: b"/1.0 75 ", RspamdConnection: b" 503 ", MilterConnection: b"\x01t"}
    assert [busy[kind] in client.answer for client in clients[:3:2]] == [False, True]
    assert clients[2].is_over
    assert "why=too many connections; try again\n" in capfd.readouterr().err


async def test_all_messages_together_are_bounded_and_so_are_lessons_that_wait():
    at = desk(waits=True, limits={"bytes_held": 2 * len(SPAM) + 5})
    at.judge.n_waiting = 7
    clients = [await Client(SpamdConnection, at).send(check(SPAM)) for _ in range(3)]
    assert [client.answer[:12] for client in clients] == [b"", b"", b"SPAMD/1.0 75"]
    told = len(clients[2].answer)  # which it has not read yet
    at.sweep(now())  # which tells how things are
    names = ("trouble busy", "open_connections", "queue", "held_bytes")
    assert [at.tally.total(name) for name in names] == [1, 3, 7, 2 * len(SPAM) + told]

    at = desk()
    full(at)
    lesson = await Client(SpamdConnection, at).send(tell("spam"))
    assert lesson.answer.startswith(b"SPAMD/1.0 75 EX_TEMPFAIL")


@pytest.mark.parametrize("piece", [b"", b"ab"])
@pytest.mark.parametrize("kind", [RspamdConnection, MilterConnection])
async def test_tiny_pieces_of_a_message_take_the_memory_of_large_ones(kind, piece):
    client = Client(kind, desk())
    if kind is MilterConnection:
        await client.send(OFFER + packet(b"B", piece) * 100_000)
    else:
        head = b"POST /checkv2 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        await client.send(head + (b"2\r\n%b\r\n" % piece if piece else b"") * 100_000)
    assert sum(map(len, client.connection.kept)) == 100_000 * len(piece)
    assert len(client.connection.kept) < 200


@KINDS
async def test_of_too_many_large_messages_the_newest_are_refused_and_small_ones_pass(kind):
    # 80,000 bytes may be held, 70,000 of them by messages of more than 500: seven of ten.
    at = desk(waits=True, limits={"bytes_held": 80_000, "small_bytes": 500})
    sent = requests(b"Subject: long\n\n" + 9_800 * b"a")[kind]
    clients = [Client(kind, at) for _ in range(10)]
    for start in range(0, len(sent), 1000):  # all at the same time
        for client in clients:
            await client.send(sent[start : start + 1000])
    small = [await Client(kind, at).send(requests(HAM[:400])[kind]) for _ in range(15)]
    await go_on(at)

    good = {SpamdConnection: b"EX_OK", RspamdConnection: b" 200 OK", MilterConnection: b"X-Nbspam"}
    judged = [good[kind] in client.answer for client in clients]
    assert judged == [True] * 7 + [False] * 3
    assert all(good[kind] in client.answer for client in small)
    assert at.tally.total("trouble busy") == 3
    unread = sum(len(client.answer) for client in (*clients, *small))
    assert at.held <= unread  # of those that were refused nothing is held, though they still write


async def test_a_full_worker_leaves_connections_to_others_until_all_are_full():
    at = desk(limits={"connections": 2})
    clients = [Client(SpamdConnection, at) for _ in range(2)]
    assert not at.leaves_to_others(0)  # nobody else is there

    def beside(name, value):  # in another worker
        at.tally._counts[1, _PLACE[name]] = value

    for name, value, leaves in (
        ("beat", 1.0, True),
        ("open_connections", 2, False),  # both are full: clients are told so
        ("visitors", 1, True),  # of the page, which has its own limit
    ):
        beside(name, value)
        assert at.leaves_to_others(0) == leaves
    clients[0].connection.connection_lost(None)
    assert [at.leaves_to_others(n) for n in (0, 1)] == [False, True]


@pytest.mark.parametrize(("messages", "is_given_up"), [
    ([b"our bug"] * 9, False),
    ([b"our bug"] * 9 + [SPAM, b"our bug"], False),
    ([b"failure"] * 20, False),  # which is foreseen, as a full disk is
    ([b"our bug"] * 10, True),
])  # fmt: skip
async def test_a_worker_that_fails_ten_messages_in_a_row_is_given_up(messages, is_given_up):
    at, given_up = desk(), []
    at.give_up = lambda: given_up.append(1)
    for data in messages:
        await Client(SpamdConnection, at).send(check(data))
    assert bool(given_up) == at.is_failing == is_given_up


class NoMemory:
    __getitem__ = raising(MemoryError)


async def test_a_message_for_which_connection_or_judge_has_no_memory_is_to_be_sent_again():
    for place in ("keep", "message"):
        client = Client(SpamdConnection, desk())
        setattr(client.connection, place, raising(MemoryError))
        await client.send(check(SPAM))
        assert client.answer.startswith(b"SPAMD/1.0 75 EX_TEMPFAIL")
    for kind, answer in ((SpamdConnection, b"75"), (RspamdConnection, b"503")):
        client = await Client(kind, at := desk()).send(requests(b"no memory")[kind])
        assert client.answer.split()[1] == answer
        assert (at.failures, at.tally.total("trouble busy")) == (1, 1)


async def test_what_is_read_without_memory_for_it_is_refused_once():
    at = desk()
    client = Client(SpamdConnection, at)
    client.connection.get_buffer(-1)[:4] = b"PING"
    room, at.read_buffer = at.read_buffer, NoMemory()
    client.connection.buffer_updated(4)
    client.connection.buffer_updated(4)  # which nobody reads any more
    assert client.answer.startswith(b"SPAMD/1.0 75 EX_TEMPFAIL")
    assert at.tally.total("trouble busy") == 1

    async def larger_than_memory(kind, *pieces):
        """Return a client, without whose message there would be memory."""
        at.read_buffer = room
        large = await Client(kind, at).send(*pieces)
        give_way = large.connection.give_way
        large.connection.give_way = lambda: (give_way(), setattr(at, "read_buffer", room))
        at.read_buffer = NoMemory()
        return large

    # The large messages that are still received make room.
    long = SPAM + bytes(at.limits.small_bytes)
    large = await larger_than_memory(MilterConnection, OFFER, milter_mail(long, end=False))
    small = Client(MilterConnection, at)
    room[: len(OFFER)] = OFFER
    small.connection.buffer_updated(len(OFFER))
    assert small.answer[4:5] == b"O"
    await large.send(packet(b"E"))
    assert large.answer.endswith(packet(b"t"))

    # So does one that reads, and no more of it is kept.
    before = at.held
    large = await larger_than_memory(RspamdConnection, post("/checkv2", long)[:-4])
    large.connection.buffer_updated(4)
    assert b" 503 " in large.answer
    assert at.held == before + len(large.answer)


# ---- ends ----


def test_who_still_writes_can_read_the_answer_before_the_connection_closes():
    # If a socket is closed with bytes unread, the system throws away what the client has not read.
    for ends in (False, True):
        client = talk(SpamdConnection, b"NONSENSE\r\n\r\n", b"more", b"and more", ends=ends)
        assert client.answer.startswith(b"SPAMD/1.0 76 ")
        assert (client.wire.is_ended, client.wire.is_closed) == (True, ends)


async def test_who_cannot_be_half_closed_is_closed_at_once():
    client = Client(SpamdConnection, desk())
    client.wire.can_write_eof = lambda: False
    await client.send(b"NONSENSE\r\n\r\n")
    assert client.wire.is_closed


@pytest.mark.parametrize(("ends", "limit"), [(False, 300), (True, 2)])
async def test_who_does_not_read_its_answer_ends_in_time_and_its_bytes_count_until_then(
    ends, limit
):
    at = desk()
    client = await Client(SpamdConnection, at).send(check(SPAM, "PROCESS"))
    assert (client.is_over, at.held) == (True, len(client.answer))
    assert client.connection.kept == []
    if ends:
        at.end()
    for seconds, is_aborted in ((limit - 1, False), (limit + 1, True)):
        at.sweep(now() + seconds)
        assert client.wire.is_aborted == is_aborted
    client.connection.connection_lost(None)
    assert at.held == 0


@pytest.mark.parametrize("kind", [RspamdConnection, MilterConnection])
async def test_what_follows_a_request_waits_for_the_answer_and_for_who_takes_none(kind):
    at = desk(waits=True)
    client = await Client(kind, at).send(WHOLE[kind])
    client.put(WHOLE[kind])
    await settled()
    assert (client.wire.is_paused, len(at.judge.seen), b"pam" in client.answer) == (True, 1, False)
    client.connection.pause_writing()  # as a transport says that much waits to be sent
    await go_on(at)
    assert (client.wire.is_paused, len(at.judge.seen), b"pam" in client.answer) == (True, 2, True)
    client.connection.resume_writing()
    assert not client.wire.is_paused


async def test_at_the_end_those_who_rest_are_closed_and_others_are_answered():
    at = desk(waits=True)
    rests = Client(RspamdConnection, at)
    asks = await Client(RspamdConnection, at).send(post("/checkv2"))
    slow = await Client(SpamdConnection, at).send(check(HAM)[:-3])
    at.end()
    assert [client.is_over for client in (rests, asks, slow)] == [True, False, False]
    await go_on(at)
    await slow.send(check(HAM)[-3:])
    assert b"\r\nConnection: close\r\n" in asks.answer
    assert asks.is_over
    assert b"Spam: False" in slow.answer
