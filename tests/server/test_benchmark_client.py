"""The client of benchmarks/serving_speed.py says what mail systems say, and times every answer."""

import socket

import pytest
import serving_client as client

from support import HAM, SPAM

FOLDED = (
    b"Received: from a\n\tby b; Mon, 2 Nov 2026 10:00:00 +0000\nSubject: two\n lines\n\n"
    b"first\n\nthird\n"
)


def packets_of(data):
    """Return commands and data."""
    found = []
    while data:
        length = int.from_bytes(data[:4], "big")
        found.append((data[4:5], data[5 : 4 + length]))
        data = data[4 + length :]
    return found


@pytest.mark.parametrize("message", [HAM, FOLDED, FOLDED.replace(b"\n", b"\r\n")])
def test_the_packets_of_a_milter_hold_the_whole_message(message):
    packets = packets_of(client.milter_request(message))

    assert [command for command, _ in packets if command not in b"L"] == [
        *(b"D", b"C", b"D", b"M", b"R", b"N", b"B", b"E")
    ]
    head = b"".join(
        data.replace(b"\0", b":", 1).rstrip(b"\0") + b"\n"
        for command, data in packets
        if command == b"L"
    )
    body = b"".join(data for command, data in packets if command == b"B")
    assert head + b"\n" + body.replace(b"\r\n", b"\n") == message.replace(b"\r\n", b"\n")


def test_a_long_body_is_several_packets():
    packets = packets_of(client.milter_request(b"Subject: long\n\n" + b"x" * 200_000))

    assert [len(data) for command, data in packets if command == b"B"] == [*[65_535] * 3, 3_395]


def test_every_protocol_gives_the_verdict(server):
    answers = {}

    def kept(talk):
        def talked(sock, request):
            answers[talk, request] = yield from talk(sock, request)

        return talked

    ways = [
        (server.spamd, client.spamd, client.spamd_request, b"Spam: True", b"Spam: False"),
        (server.http, client.http, client.http_request, b'"add header"', b'"no action"'),
        (server.milter, client.milter, client.milter_request, b" spam, prob", b" ham, prob"),
    ]
    for address, talk, request, spam, ham in ways:
        calls = [client.Call(address, kept(talk), request(data)) for data in (SPAM, HAM)] * 20

        took = client.load(calls, 8)

        assert len(took) == 40
        assert all(0 < seconds < 30 for seconds in took)
        assert spam in answers[talk, request(SPAM)]
        assert ham in answers[talk, request(HAM)]


def test_an_answer_that_is_no_verdict_is_told():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        talk = client.spamd(ours, b"CHECK SPAMC/1.5\r\n\r\n")
        next(talk)
        theirs.recv(100)
        theirs.sendall(b"SPAMD/1.0 75 EX_TEMPFAIL\r\n\r\n")
        theirs.close()
        with pytest.raises(AssertionError, match="EX_TEMPFAIL"):
            list(talk)
