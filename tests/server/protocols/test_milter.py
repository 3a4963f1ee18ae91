"""The milter protocol, without a network: packets and what becomes of mail."""

import asyncio
import struct
from functools import partial

import scripted
from nbspam.server.milter import MilterConnection, packet
from scripted import Client, answer_to, desk, go_on

ALL = 0x1FF  # actions that Postfix offers
STEPS = 0x1FFFFF  # of the protocol, that it can leave out


def offer(version=6, actions=ALL, protocol=STEPS):
    return packet(b"O", struct.pack(">III", version, actions, protocol))


def header(name, value):
    return packet(b"L", name + b"\0 " + value + b"\0")


def mail(subject=b"cheap pills", *more, queue=b"4XyZ"):
    """Return the packets of a message up to its end."""
    return [
        packet(b"D", b"Mi\0" + queue + b"\0{mail_addr}\0a@b.example\0"),
        packet(b"M", b"<a@b.example>\0"),
        packet(b"R", b"<c@d.example>\0"),
        header(b"Subject", subject),
        *more,
        packet(b"N"),
        packet(b"B", b"buy now\r\n"),
        packet(b"E"),
    ]


def packets(answer):
    """Return the commands and data in an answer."""
    found = []
    while answer:
        (length,) = struct.unpack_from(">I", answer)
        found.append((answer[4:5], answer[5 : 4 + length]))
        answer = answer[4 + length :]
    return found


talk = partial(scripted.talk, MilterConnection)


def answered(*pieces, **more):
    """Return the packets after the answer to an offer."""
    found = packets(talk(offer(), *pieces, **more).answer)
    assert found[0][0] == b"O"
    return found[1:]


def test_a_mail_system_is_asked_for_what_is_offered_and_needed_only():
    for asked, agreed in (
        # No HELO, DATA, unknown commands; no answers but at the end; values with their space.
        (offer(), (6, 0x31, 0x1CD382)),
        (offer(2, 0x01, 0), (2, 0x01, 0)),
    ):
        [(command, data)] = packets(talk(asked).answer)
        assert (command, struct.unpack(">III", data)) == (b"O", agreed)


def test_a_mail_system_that_wants_answers_gets_them():
    steps = [packet(b"C", b"host\0"), packet(b"H", b"helo\0"), packet(b"T"), *mail()]
    client = talk(offer(protocol=0), *steps)
    found = packets(client.answer)[1:]

    # Connect, HELO, DATA, MAIL, RCPT, header, end of head, body; none for the macros.
    assert [command for command, _ in found[:8]] == [b"c"] * 8
    assert found[-1][0] == b"c"
    # Without the flag for spaces values come, and go, without the space.
    assert found[8][1].startswith(struct.pack(">I", 0) + b"X-Nbspam\0spam")


def test_spam_gets_headers_at_the_top():
    found = answered(*mail())

    assert [command for command, _ in found] == [b"i", b"i", b"i", b"c"]
    names = [data[4:].split(b"\0")[0] for _, data in found[:-1]]
    places = [struct.unpack_from(">I", data)[0] for _, data in found[:-1]]
    assert names == [b"X-Nbspam", b"X-Spam-Flag", b"X-Spam-Status"]
    assert places == [0, 1, 2]
    assert found[0][1][4:].startswith(b"X-Nbspam\0 spam, probability=0.900000")
    # A mail system that lets nothing be changed is only told to go on.
    assert packets(talk(offer(actions=0), *mail()).answer)[1:] == [(b"c", b"")]


def test_headers_of_our_names_are_removed_from_the_last_one_on():
    forged = [(b"x-NBSPAM", b"ham"), (b"X-Spam-Status", b"No"), (b"X-Nbspam", b"ham")]
    found = answered(*mail(b"lunch", *(header(*each) for each in forged)))

    removed = [data for command, data in found if command == b"m"]
    ours = [struct.pack(">I", n) + b"X-Nbspam\0\0" for n in (2, 1)]
    assert [data for data in removed if b"X-Nbspam" in data] == ours
    assert sorted(removed) == sorted([*ours, struct.pack(">I", 1) + b"X-Spam-Status\0\0"])


def test_spam_above_a_probability_is_rejected_or_held():
    # The scripted judge says .9.
    assert answered(*mail(), reject_above=0.89) == [(b"y", b"550 5.7.1 The message is spam\0")]
    assert answered(*mail(), reject_above=0.9)[-1] == (b"c", b"")
    held = answered(*mail(), quarantine_above=0.89)
    assert (b"q", b"nbspam: spam, probability 0.9000\0") in held
    assert held[-1] == (b"c", b"")
    for subject, above in ((b"lunch", 0.89), (b"cheap pills", 0.9)):
        found = answered(*mail(subject), quarantine_above=above)
        assert b"q" not in [command for command, _ in found]
    unable = packets(talk(offer(actions=0x11), *mail(), quarantine_above=0.89).answer)
    assert b"q" not in [command for command, _ in unable]


def test_a_connection_carries_message_after_message():
    client = talk(offer(), *mail(), *mail(b"lunch"), packet(b"A"), *mail(b"tea"), packet(b"Q"))
    found = packets(client.answer)

    assert [command for command, _ in found].count(b"c") == 3
    assert client.is_over
    expected = [
        b"Subject: %b\n\nbuy now\r\n" % name for name in (b"cheap pills", b"lunch", b"tea")
    ]
    assert client.desk.judge.seen == expected


def test_an_aborted_message_leaves_nothing_behind():
    steps = mail(b"pills", header(b"X-Nbspam", b"ham"))[:-1]
    client = talk(offer(), *steps, packet(b"A"))

    assert client.desk.held == 0
    found = packets(talk(offer(), *steps, packet(b"A"), *mail(b"lunch")).answer)
    assert b"m" not in [command for command, _ in found]


def test_what_follows_an_end_waits_for_its_answer():
    async def converse():
        at = desk(waits=True)
        client = await Client(MilterConnection, at).send(offer(), *mail())
        assert client.wire.is_paused
        client.connection.data_received(b"".join(mail(b"lunch")))
        await asyncio.sleep(0)
        assert len(at.judge.seen) == 1
        await go_on(at)
        return client

    client = asyncio.run(converse())
    assert [command for command, _ in packets(client.answer)].count(b"c") == 2
    assert not client.wire.is_paused


def test_the_queue_and_verdict_are_logged_but_no_words(tmp_path):
    with open(tmp_path / "log", "wb") as log:
        talk(offer(), *mail(), log="json", descriptor=log.fileno())
    line = (tmp_path / "log").read_text()

    assert '"queue": "4XyZ"' in line
    assert '"verdict": "spam"' in line
    assert "pills" not in line


def test_what_is_no_milter_is_closed_and_counted():
    for pieces in (
        [b"\0\0\0\0"],  # no command
        [b"\xff\xff\xff\xffO"],
        [b"GET / HTTP/1.0\r\n\r\n"],
        [packet(b"O", b"\0\0")],
        [offer(1)],
        [offer(), packet(b"?")],
    ):
        client = talk(*pieces)

        assert client.is_over
        assert client.desk.tally.total("trouble malformed") == 1


def test_macros_that_are_cut_are_read_as_far_as_they_go():
    for data in (b"", b"M", b"Mi", b"Mi\0", b"M\0\0i\0x", b"Mi\0x\0y"):
        assert not talk(offer(), packet(b"D", data), *mail()).is_over


# ---- bounds ----


def test_a_message_that_is_not_judged_passes_or_is_to_be_sent_again():
    assert answered(*mail(), prepare=scripted.full) == [(b"t", b"")]
    assert answered(*mail(), prepare=scripted.full, passes=True) == [(b"a", b"")]
    assert answered(*mail(b"failure")) == [(b"t", b"")]


def test_a_message_for_which_there_is_no_room_is_told_so_at_its_end():
    # Before it the mail system reads nothing, and would lose the answer.
    bodies = [packet(b"B", bytes(600))] * 3
    steps = [*mail()[:-1], *bodies]
    client = talk(offer(), *steps, limits={"bytes_held": 1000})
    assert [command for command, _ in packets(client.answer)] == [b"O"]
    assert client.desk.held == 0

    found = talk(offer(), *steps, packet(b"E"), *mail(), limits={"bytes_held": 1000})
    commands = [command for command, _ in packets(found.answer)]
    assert commands == [b"O", b"t", b"i", b"i", b"i", b"c"]
    assert found.desk.tally.total("trouble busy") == 1


def test_a_message_over_the_limit_is_judged_by_its_beginning_and_counted():
    pieces = (offer(), *mail()[:-1], packet(b"B", bytes(5000)), packet(b"E"))
    client = talk(*pieces, limits={"message_bytes": 1000})

    assert len(client.desk.judge.seen[0]) == 1000
    assert client.desk.tally.total("oversized") == 1
    assert packets(client.answer)[-1] == (b"c", b"")


def test_a_connection_beyond_the_limit_is_answered_at_the_message_s_end():
    async def converse():
        at = desk(limits={"connections": 1})
        first = Client(MilterConnection, at)
        second = await Client(MilterConnection, at).send(offer(), *mail())
        return first, second

    _, second = asyncio.run(converse())
    assert [command for command, _ in packets(second.answer)] == [b"O", b"t"]
    assert second.is_over


def test_a_mail_system_that_goes_without_a_word_is_let_go():
    assert packets(answer_to(MilterConnection, offer(), *mail()))[-1] == (b"c", b"")
