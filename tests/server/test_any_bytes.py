"""Laws of all protocols: cuts change nothing, and no bytes whatever raise."""

import asyncio
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.server.milter import MilterConnection
from nbspam.server.page.app import WebConnection
from nbspam.server.rspamd import HttpConnection, RspamdConnection
from nbspam.server.spamd import SpamdConnection
from scripted import ACCESS, Client, desk
from serving import OFFER, check, milter_mail, packet
from support import HAM, SPAM, examples
from visitors import Visitor

KINDS = [SpamdConnection, RspamdConnection, MilterConnection, WebConnection]
EACH_KIND = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
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


def streams(kind):
    """Bytes that are nearly a conversation, and bytes that are none."""
    return st.lists(st.sampled_from(WORDS[kind]), max_size=8).map(b"".join) | st.binary()


async def converse(kind, pieces, ends):
    client = Client(kind, desk(limits={"message_bytes": 200}))
    await client.send(*pieces)
    if ends:
        await client.end()
    for _ in range(9):
        await asyncio.sleep(0)
    client.connection.connection_lost(None)
    assert client.desk.held == 0
    # Dates are not compared, nor how long it took.
    return re.sub(rb"\r\nDate: [^\r]*", b"", client.answer), client.desk.judge.seen


@EACH_KIND
@given(data=st.data())
@examples(300)
def test_no_bytes_raise_and_any_cuts_give_the_same_answer(kind, data):
    stream = data.draw(streams(kind))
    places = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    ends = data.draw(st.booleans())
    pieces = [
        stream[start:end]
        for start, end in zip([0, *places], [*places, len(stream)], strict=True)
        if start < end
    ]
    with asyncio.Runner() as runner:
        cut = runner.run(converse(kind, pieces, ends))
        at_once = runner.run(converse(kind, [stream] * bool(stream), ends))
        if not issubclass(kind, HttpConnection):
            assert cut == at_once
        else:
            # Requests that come in one piece are answered up to the first, as HTTP allows.
            assert cut[1][: len(at_once[1])] == at_once[1]


def test_a_byte_at_a_time_gives_the_same_answer():
    post = b"POST /checkv2 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\npills\r\n0\r\n\r\n"
    for kind, stream, n_judged in (
        (SpamdConnection, check(SPAM, "PROCESS"), 1),
        (RspamdConnection, post, 1),
        (MilterConnection, OFFER + milter_mail(SPAM) + milter_mail(HAM) + packet(b"Q"), 2),
    ):
        singly = [stream[i : i + 1] for i in range(len(stream))]
        answer, seen = asyncio.run(converse(kind, singly, True))
        assert (answer, seen) == asyncio.run(converse(kind, [stream], True))
        assert len(seen) == n_judged
