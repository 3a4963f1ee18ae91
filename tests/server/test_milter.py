"""The milter protocol, without a network: packets and what becomes of mail."""

import json
import struct
import time
from functools import partial

import pytest

import scripted
from nbspam.mail.headers import HeaderChoices
from nbspam.server.milter import MilterConnection
from protocols import OFFER, milter_mail, offer, packet, packets
from scripted import Client, desk, full
from support import memory_of

LUNCH = b"Subject: lunch\n\nbuy now\r\n"
PILLS = b"Subject: cheap pills\n\nbuy now\r\n"  # the scripted judge says .9
FORGED = [(b"x-NBSPAM", b"ham"), (b"X-Spam-Status", b"No"), (b"X-Nbspam", b"ham")]
talk = partial(scripted.talk, MilterConnection)


def answered(*pieces, to=OFFER, **more):
    """Return the packets after the answer to an offer."""
    first, *found = packets(talk(to, *pieces, **more).answer)
    assert first[0] == b"O"
    return found


def commands(found):
    return b"".join(command for command, _ in found)


def test_a_mail_system_is_asked_for_what_is_needed_and_gets_the_answers_that_it_wants():
    for asked, agreed in (
        # No HELO, DATA, unknown commands; no answers but at the end; values with their space.
        (OFFER, (6, 0x31, 0x1CD382)),
        (offer(2, 0x01, 0), (2, 0x01, 0)),
    ):
        assert packets(talk(asked).answer) == [(b"O", struct.pack(">III", *agreed))]
    steps = [packet(b"C", b"host\0"), packet(b"H", b"helo\0"), packet(b"T"), milter_mail(PILLS)]
    found = answered(*steps, to=offer(steps=0))

    # Connect, HELO, DATA, MAIL, RCPT, header, end of head, body; none for the macros.
    assert commands(found) == b"c" * 8 + b"iiiic"
    # Without the flag for spaces values come, and go, without the space.
    assert found[8][1].startswith(struct.pack(">I", 0) + b"X-Nbspam\0spam")


def test_spam_gets_headers_at_the_top_and_forged_ones_are_removed_from_the_last_one_on():
    found = answered(milter_mail(PILLS))

    assert commands(found) == b"iiiic"
    names = b"X-Nbspam\0 spam, probability=0.9", b"X-Spam-Flag", b"X-Spam-Level", b"X-Spam-Stat"
    for place, (_, data) in enumerate(found[:-1]):
        assert data.startswith(struct.pack(">I", place) + names[place])
    # A mail system that lets nothing be changed is only told to go on.
    assert answered(milter_mail(PILLS, *FORGED), to=offer(actions=0)) == [(b"c", b"")]

    found = answered(milter_mail(LUNCH, *FORGED))

    removed = [data for command, data in found if command == b"m"]
    ours = [struct.pack(">I", n) + b"X-Nbspam\0\0" for n in (2, 1)]
    assert [data for data in removed if b"X-Nbspam" in data] == ours
    assert sorted(removed) == sorted([*ours, struct.pack(">I", 1) + b"X-Spam-Status\0\0"])

    forged = (b"X-Spam-Level", b"*"), (b"x-spam-score", b"-9"), (b"X-Spammy", b"stays")
    removed = [
        struct.pack(">I", 1) + name + b"\0\0" for name in (b"X-Spam-Level", b"X-Spam-Score")
    ]
    for more in ({}, {"prepare": scripted.full, "passes": True}):
        found = answered(milter_mail(LUNCH, *forged), **more)
        assert [data for command, data in found if command == b"m"] == removed
    assert commands(found) == b"mma"


async def test_thousands_of_forged_headers_take_no_time_and_little_memory():
    client = await Client(MilterConnection, desk()).send(OFFER)
    forged = [packet(b"L", b"X-Spam-%d\0\0" % number) for number in range(20_000)]
    n_bytes, _ = memory_of(lambda: [client.put(header) for header in forged])
    assert n_bytes < 1_000_000
    start = time.process_time()
    await client.send(packet(b"N") + packet(b"E"))
    assert commands(packets(client.answer)).count(b"m") == 20_000
    assert time.process_time() - start < 2
    client = await Client(MilterConnection, desk(limits={"small_bytes": 1000})).send(*forged)
    assert len(client.connection.ours) < 1020


def test_spam_above_a_probability_is_rejected_or_held():
    rejected = [(b"y", b"550 5.7.1 The message is spam\0")]
    assert answered(milter_mail(PILLS), reject_above=0.89) == rejected
    assert commands(answered(milter_mail(PILLS), reject_above=0.9)) == b"iiiic"
    held = answered(milter_mail(PILLS), quarantine_above=0.89)
    assert held[-2:] == [(b"q", b"nbspam: spam, probability 0.9000\0"), (b"c", b"")]
    for data, to, above in (
        (LUNCH, OFFER, 0.89),
        (PILLS, OFFER, 0.9),
        (PILLS, offer(actions=0x11), 0.89),  # it cannot hold mail
    ):
        assert b"q" not in commands(answered(milter_mail(data), to=to, quarantine_above=above))


def test_the_subject_of_spam_gets_a_tag_and_the_log_says_so(capfd):
    for data, to, subject in (
        (PILLS, OFFER, b"\0\0\0\x01Subject\0 [SPAM] cheap pills\0"),
        (b"From: x@y.example\n\ncheap pills\n", OFFER, b"\0\0\0\x01Subject\0 [SPAM] \0"),
        (b"Subject: [SPAM] cheap pills\n\n", OFFER, None),  # not twice
        # Readers show different ones of several.
        (b"Subject: [SPAM] a\nsubject: pills\n\n", OFFER, b"\0\0\0\x02Subject\0 [SPAM] pills\0"),
        (b"Subject:\nSubject: [SPAM] pills\n\n", OFFER, b"\0\0\0\x01Subject\0 [SPAM] \0"),
        (LUNCH, OFFER, None),
        (PILLS, offer(actions=0x01), None),  # it may not change headers
    ):
        wanted = HeaderChoices(spam_status=True, subject_tag="[SPAM] ")
        found = answered(milter_mail(data), to=to, headers=wanted, log="json")
        assert [each for command, each in found if command == b"m"] == [subject] * bool(subject)
        action = json.loads(capfd.readouterr().err).get("action")
        assert action == ("tagged" if subject else None)


def test_the_log_says_what_becomes_of_a_message_and_how_it_is_known(capfd):
    for data, choices, verdict, action in (
        (PILLS, {"reject_above": 0.8, "quarantine_above": 0.8}, "spam", "rejected"),
        (PILLS, {"quarantine_above": 0.8}, "spam", "held"),
        (PILLS, {"quarantine_above": 0.95}, "spam", None),
        (LUNCH, {"quarantine_above": 0.8}, "ham", None),
    ):
        data = b"Message-ID: <m1@x.example>\n" + data
        answered(milter_mail(data), log="json", **choices)
        text = capfd.readouterr().err
        line = json.loads(text)
        assert "now" not in text  # a word of the mail
        assert (line["verdict"], line.get("action")) == (verdict, action)
        assert line["probability"] > 0.7  # of the verdict
        assert (line["queue"], line["id"]) == ("4XyZ", "m1@x.example")
        assert abs(line["bytes"] - len(data)) < 10  # a space less after each colon


def test_a_connection_carries_message_after_message_and_an_aborted_one_leaves_nothing_behind():
    tea = PILLS.replace(b"cheap pills", b"tea")
    pieces = milter_mail(PILLS), milter_mail(LUNCH), packet(b"A"), milter_mail(tea), packet(b"Q")
    client = talk(OFFER, *pieces)

    assert commands(packets(client.answer)).count(b"c") == 3
    assert client.is_over
    asked = [data.replace(b"Subject: ", b"Subject:") for data in client.desk.judge.seen]
    assert asked == [data.replace(b"Subject: ", b"Subject:") for data in (PILLS, LUNCH, tea)]

    begun, abort = milter_mail(PILLS, *FORGED, end=False), packet(b"A")

    assert talk(OFFER, begun, abort).desk.held == 0
    for pieces in ((begun, abort), (begun,)):
        assert b"m" not in commands(answered(*pieces, milter_mail(LUNCH)))


def test_what_is_no_milter_is_closed_and_counted_and_macros_may_be_cut():
    for pieces in (
        [b"\0\0\0\0"],  # no command
        [b"\xff\xff\xff\xffO"], [b"GET / HTTP/1.0\r\n\r\n"], [packet(b"O", b"\0\0")], [offer(1)],
        [OFFER, packet(b"?")],
    ):  # fmt: skip
        client = talk(*pieces)
        assert client.is_over
        assert client.desk.tally.total("trouble malformed") == 1
    for data in (b"", b"M", b"Mi", b"Mi\0", b"M\0\0i\0x", b"Mi\0x\0y"):
        assert not talk(OFFER, packet(b"D", data), milter_mail()).is_over


# ---- bounds ----


def test_a_message_that_cannot_be_judged_is_to_be_sent_again():
    for passes in (False, True):  # which is for mail beyond the limits
        assert answered(milter_mail(b"Subject: failure\n\n"), passes=passes) == [(b"t", b"")]


async def test_thousands_of_messages_in_a_piece_are_refused_one_by_one():
    full(at := desk())
    client = await Client(MilterConnection, at).send(OFFER + packet(b"E") * 5000)
    assert client.answer.count(packet(b"t")) == 5000


def test_a_message_for_which_there_is_no_room_is_told_so_at_its_end(capfd):
    # Before it the mail system reads nothing, and would lose the answer.
    pieces = [milter_mail(PILLS, end=False), *[packet(b"B", bytes(600))] * 3]
    limits = {"bytes_held": 1000}
    client = talk(OFFER, *pieces, limits=limits)
    assert (commands(packets(client.answer)), client.desk.held) == (b"O", 0)

    client = talk(OFFER, *pieces, packet(b"E"), milter_mail(PILLS), limits=limits, log="text")
    assert commands(packets(client.answer)) == b"Otiiiic"
    assert "asked=milter why=too many messages" in capfd.readouterr().err.splitlines()[0]
    assert client.desk.tally.total("trouble busy") == 1


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("place", ["message", "keep"])
async def test_a_message_without_memory_is_to_be_sent_again_and_the_next_is_judged(place, times):
    client = await Client(MilterConnection, desk()).send(OFFER)
    works, calls = getattr(client.connection, place), []

    def fails(*data):
        calls.append(place)
        if len(calls) <= times:
            raise MemoryError
        return works(*data)

    setattr(client.connection, place, fails)
    await client.send(milter_mail(), milter_mail())
    assert commands(packets(client.answer)) == b"Ot" + (b"t" if times == 2 else b"iiiic")


async def test_a_packet_without_memory_ends_the_connection_with_a_refusal():
    client = Client(MilterConnection, at := desk())
    calls = []
    client.connection.obey = lambda: calls.append(bytes(1 << 62))
    await client.send(milter_mail())
    assert packets(client.answer) == [(b"t", b"")]
    assert (at.tally.total("trouble busy"), client.is_over) == (1, True)
