"""The protocol of spamd, without a network: every client's version, every error."""

import asyncio
import zlib

from nbspam.server.spamd import SpamdConnection
from scripted import Client, answer_to, desk, full, talk
from serving import check
from support import HAM, SPAM

UNSURE = b"Subject: perhaps\n\nperhaps\n"


def answer(*pieces, **more):
    return answer_to(SpamdConnection, *pieces, **more)


def tell(label, data=SPAM, *lines):
    named = [f"Message-class: {label}"] * bool(label)
    return check(data, "TELL", "1.5", *named, *lines)


# By the history of the protocol: which headers each version's clients can read.
SPAM_LINE = b"Spam: True ; 7.2 / 5.0\r\n"  # log(.9 / .1) = 2.2 above the cutoff


def test_each_version_gets_the_headers_that_it_can_read():
    for command, version, has_length, has_spam in (
        *(("CHECK", version, False, True) for version in ("1.2", "1.3", "1.5")),
        ("SYMBOLS", "1.2", False, True),
        *(("SYMBOLS", version, True, True) for version in ("1.3", "1.5")),
        ("REPORT", "1.2", False, True),
        ("REPORT", "1.3", True, True),
        ("REPORT_IFSPAM", "1.2", False, True),
        ("REPORT_IFSPAM", "1.5", True, True),
        ("PROCESS", "1.1", False, False),
        ("PROCESS", "1.2", True, False),
        *(("PROCESS", version, True, True) for version in ("1.3", "1.5")),
        ("HEADERS", "1.2", True, False),
        ("HEADERS", "1.3", True, True),
    ):
        head, _, body = answer(check(SPAM, command, version)).partition(b"\r\n\r\n")
        status, *lines = head.split(b"\r\n")

        assert status == b"SPAMD/1.1 0 EX_OK"
        assert [line.split(b":")[0] for line in lines] == (
            [b"Content-length"] * has_length + [b"Spam"] * has_spam
        )
        if has_spam:
            assert lines[-1] + b"\r\n" == SPAM_LINE
        if has_length:
            assert lines[0] == b"Content-length: %d" % len(body)
        assert (body == b"") == (command == "CHECK")


def test_spam_is_true_in_all_commands_and_unsure_is_false():
    # libspamc does not count spamd's own Yes of REPORT_IFSPAM.
    for command in ("CHECK", "SYMBOLS", "REPORT", "REPORT_IFSPAM", "PROCESS", "HEADERS"):
        assert b"\r\nSpam: True ; " in answer(check(SPAM, command))
        assert b"\r\nSpam: False ; " in answer(check(HAM, command))
        assert b"\r\nSpam: False ; " in answer(check(UNSURE, command))


def test_rules_and_reports_have_what_their_version_reads_and_no_control_characters():
    # Names of rules end with a line before version 1.3.
    assert answer(check(SPAM, "SYMBOLS", "1.2")).endswith(b"\r\n\r\nBAYES_80,NBSPAM_SPAM\r\n")
    assert answer(check(SPAM, "SYMBOLS", "1.3")).endswith(b"\r\n\r\nBAYES_80,NBSPAM_SPAM")
    found = answer(check(SPAM, "REPORT"))
    assert b"spam, probability of spam 0.900000\r\n7.2 points, 5.0 required\r\n" in found
    assert b"\r\n  +2.5  pi" in found
    assert b"\x1b" not in found
    assert answer(check(HAM, "REPORT_IFSPAM")).endswith(b" / 5.0\r\n\r\n")
    assert b"Content-length: 0\r\n" in answer(check(HAM, "REPORT_IFSPAM"))


def test_process_returns_the_message_with_our_headers_and_without_forged_ones():
    forged = b"X-Spam-Status: No, I swear\nX-Nbspam: ham\n" + SPAM
    body = answer(check(forged, "PROCESS")).partition(b"\r\n\r\n")[2]

    assert body.startswith(b"X-Nbspam: spam, probability=0.900000")
    assert b"\nX-Spam-Flag: YES\nX-Spam-Status: Yes, score=7.2 required=5.0" in body
    assert body.endswith(SPAM)
    assert b"swear" not in body
    head = answer(check(forged, "HEADERS")).partition(b"\r\n\r\n")[2]
    assert head.endswith(b"\n\n")
    assert body == head + SPAM.partition(b"\n\n")[2]


def test_exim_with_rspamd_gets_its_own_answer():
    head = b"CHECK RSPAMC/1.3\r\nContent-length: %d\r\nQueue-Id: 1abc-2\r\n" % len(SPAM)
    head += b"From: <a@b.example>\r\nRecipient-Number: 1\r\nRcpt: <c@d.example>\r\n\r\n"

    client = talk(SpamdConnection, head + SPAM)  # and no end
    assert client.answer == (
        b"RSPAMD/1.3 0 EX_OK\r\nMetric: default; True; 7.20 / 5.00 / 5.00\r\n"
        b"Action: add header\r\nSymbol: BAYES_80(7.20)\r\n\r\n"
    )
    assert client.is_over
    ham = answer(b"CHECK RSPAMC/1.3\r\nContent-length: %d\r\n\r\n" % len(HAM) + HAM)
    assert b"default; False; " in ham
    assert b"\r\nAction: no action\r\n" in ham


def test_ping_is_answered_with_or_without_an_empty_line_and_skip_is_not():
    for request in (b"PING SPAMC/1.2\r\n", b"PING SPAMC/1.5\r\n\r\n", b"PING SPAMC/1.5\nA: b\n\n"):
        assert answer(request) == b"SPAMD/1.5 0 PONG\r\n"
    assert answer(b"SKIP SPAMC/1.5\r\n\r\n") == b""


def test_a_body_without_length_ends_where_the_client_stops_writing():
    assert b"Spam: True" in answer(b"CHECK SPAMC/1.2\r\n\r\n", SPAM)
    assert b"Spam: False" in answer(b"CHECK SPAMC/1.2\r\n\r\n")


def test_what_follows_the_length_is_no_part_of_the_message():
    client = talk(SpamdConnection, check(HAM) + b"pills", b"pills")

    assert client.desk.judge.seen == [HAM]


def test_a_wrong_request_is_told_what_is_wrong_with_it():
    for request_bytes, line in (
        (b"GET / HTTP/1.1\r\n\r\n", b"76 EX_PROTOCOL: the first line is not COMMAND"),
        (b"CHECK SPAMC/1.5\r\nContent-length: -1\r\n\r\n", b"76 EX_PROTOCOL: Content-length"),
        (b"CHECK SPAMC/1.5\r\nContent-length: 99\r\n\r\nabc", b"76 EX_PROTOCOL: the request ends"),
        (b"CHECK SPAMC/1.5\r\nUser: ann", b"76 EX_PROTOCOL: the request ends too early"),
        (b"CHECK SPAMC/1.5\r\nCompress: zlib\r\n\r\n", b"76 EX_PROTOCOL: Compress needs"),
        (b"CHECK SPAMC/1.5\r\nCompress: br\r\n\r\n", b"76 EX_PROTOCOL: Compress: only zlib"),
        (check(HAM, "CHECK", "1.5", "Compress: zlib"), b"65 EX_DATAERR: the body is not comp"),
        (check(zlib.compress(HAM)[:-8], "CHECK", "1.5", "Compress: zlib"),
         b"65 EX_DATAERR: the body that zlib compressed ends too early"),
        (b"CHECK SPAMC/1.5\r\nContent-length: " + b"9" * 16 + b"\r\n\r\n",
         b"76 EX_PROTOCOL: Content-length is not a number"),
        (b"A" * 70_000, b"76 EX_PROTOCOL: too many header lines"),
        (b"CHECK SPAMC/1.5\r\n" + b"A: b\r\n" * 257, b"76 EX_PROTOCOL: too many header lines"),
        (b"CHECK SPAMC\r\n\r\n", b"76 EX_PROTOCOL: the first line is not COMMAND SPAMC/VERSION"),
        (b"check SPAMC/1.5\r\n\r\n", b"76 EX_PROTOCOL: the first line is not COMMAND"),
        (b"CHECK SPAMC/1.5 \r\n\r\n", b"76 EX_PROTOCOL: the first line is not COMMAND"),
        (b"EXPLODE SPAMC/1.5\r\n\r\n", b"76 EX_PROTOCOL: unknown command EXPLODE"),
        (b"CHECK SPAMC/1.5\r\nno colon\r\n\r\n", b"76 EX_PROTOCOL: a header line is not NAME"),
        (b"CHECK SPAMC/1.5\r\nUser: a\rb\r\n\r\n", b"76 EX_PROTOCOL: a header line is not NAME"),
        (tell("spam", SPAM, "Set: local", "Remove: local"), b"76 EX_PROTOCOL: Set and Remove"),
        (tell("eggs", SPAM, "Set: local"), b"76 EX_PROTOCOL: Message-class is neither"),
        (tell("spam", b"failure", "Set: local"), b"70 EX_SOFTWARE: [Errno 28] No space left"),
    ):  # fmt: skip
        assert answer(request_bytes).startswith(b"SPAMD/1.0 " + line)
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"  # of TLS, and no end
    assert answer(hello, ends=False).startswith(b"SPAMD/1.0 76 EX_PROTOCOL: the first line")
    lines = b"A: b\r\n" * 254 + b"Content-length: 0\r\n"  # 256 with the first and the last
    assert answer(b"CHECK SPAMC/1.5\r\n" + lines + b"\r\n").startswith(b"SPAMD/1.1 0 EX_OK")


# ---- zlib ----


def test_a_compressed_message_is_judged_as_what_it_is():
    packed = zlib.compress(SPAM * 50)

    assert b"Spam: True" in answer(check(packed, "CHECK", "1.5", "Compress: zlib"))
    body = answer(check(packed, "PROCESS", "1.5", "Compress: zlib")).partition(b"\r\n\r\n")[2]
    assert body.endswith(SPAM * 50)


def test_what_a_compressed_message_expands_to_is_bounded_and_counted():
    packed = zlib.compress(SPAM + bytes(1 << 22))

    request = check(packed, "CHECK", "1.5", "Compress: zlib")
    client = talk(SpamdConnection, request, limits={"message_bytes": 1 << 20})
    assert b"Spam: True" in client.answer
    assert len(client.desk.judge.seen[0]) == 1 << 20
    assert client.desk.tally.total("oversized") == 1
    assert client.desk.held >= 1 << 20

    limits = {"message_bytes": 1 << 20, "bytes_held": 1 << 20}
    client = talk(SpamdConnection, request, limits=limits)
    assert client.answer.startswith(b"SPAMD/1.0 75 EX_TEMPFAIL: too many messages; try again")
    assert client.desk.judge.seen == []


# ---- sizes ----


def test_a_message_over_the_limit_is_not_learned_by_its_beginning():
    for order in ("Set: local", "Remove: local"):
        for compress in (True, False):
            data = SPAM + bytes(1 << 21)
            lines = ["Message-class: spam", order, *["Compress: zlib"] * compress]
            request = check(zlib.compress(data) if compress else data, "TELL", "1.5", *lines)
            client = talk(SpamdConnection, request, limits={"message_bytes": 1 << 20})
            why = b"65 EX_DATAERR: the message is too large to be learned"
            assert client.answer.startswith(b"SPAMD/1.0 " + why)
            assert b"teach it by the command line" in client.answer
            assert client.desk.teacher.users == []
            assert client.desk.tally.total("trouble large") == 1


def test_a_message_over_the_limit_is_judged_by_its_beginning_and_counted():
    data = (SPAM + b"x" * 1000)[:1001]

    def asked(command):
        request = check(data, command)
        return talk(SpamdConnection, request, limits={"message_bytes": 1000})

    client = asked("CHECK")
    assert b"Spam: True" in client.answer
    assert client.desk.judge.seen == [data[:1000]]
    assert client.desk.tally.total("oversized") == 1
    # Its end is not there, so it cannot be sent back: a permanent error, upon which spamc
    # lets the message pass as it is.
    why = b"65 EX_DATAERR: the message is too large to be sent back"
    assert asked("PROCESS").answer.startswith(b"SPAMD/1.0 " + why)
    assert b"\r\n\r\nX-Nbspam: spam" in asked("HEADERS").answer


# ---- lessons ----


def test_a_lesson_is_told_once_and_taken_back():
    lessons = (
        (tell("spam", SPAM, "Set: local"), b"DidSet: local\r\n"),
        (tell("spam", SPAM, "Set: local"), b""),
        (tell("ham", SPAM, "Set: local, remote", "Remove: spam"), b"DidSet: local\r\n"),
        (tell("", SPAM, "Remove: local"), b"DidRemove: local\r\n"),
        (tell("", SPAM, "Remove: local"), b""),
        (tell("spam", SPAM, "Set: remote"), b""),
        (tell("ham", SPAM, "Set: local", "Remove: remote"), b"DidSet: local\r\n"),
    )

    async def converse():
        at = desk()
        for request, done in lessons:
            client = await Client(SpamdConnection, at).send(request)
            assert client.answer == b"SPAMD/1.1 0 EX_OK\r\n%bContent-length: 0\r\n\r\n" % done
        return at.tally

    tally = asyncio.run(converse())
    kinds = ("learned", "known", "moved", "unlearned")
    assert [tally.total(f"lesson {kind}") for kind in kinds] == [2, 2, 1, 1]


def test_lessons_are_refused_and_counted_unless_they_are_allowed():
    client = talk(SpamdConnection, tell("spam", SPAM, "Set: local"), allows_tell=False)
    why = b"69 EX_UNAVAILABLE: TELL is not allowed; start the server"
    assert client.answer.startswith(b"SPAMD/1.0 " + why)
    assert client.desk.tally.total("trouble forbidden") == 1


# ---- trouble ----


def test_a_message_that_cannot_be_judged_says_why_but_not_its_words(tmp_path):
    with open(tmp_path / "log", "wb") as log:
        to = {"log": "text", "descriptor": log.fileno()}
        found = [answer(check(data), **to) for data in (b"failure", b"our bug")]

    assert found[0] == b"SPAMD/1.0 70 EX_SOFTWARE: -: cannot be read; give another\r\n"
    assert found[1] == b"SPAMD/1.0 70 EX_SOFTWARE: internal error\r\n"
    foreseen, bug = (tmp_path / "log").read_text().splitlines()
    what = "nbspam: a message was not judged or learned: "
    assert foreseen == f"{what}-: cannot be read; give another"
    assert bug == f"{what}ZeroDivisionError"


def busy(request, **choices):
    """Return the answer to a request when as many messages wait as may."""
    client = talk(SpamdConnection, request, prepare=full, **choices)
    assert client.desk.tally.total("trouble busy") == 1
    return client.answer


def test_when_busy_mail_passes_as_no_spam_if_that_is_wanted():
    later = b"SPAMD/1.0 75 EX_TEMPFAIL: too many messages; try again\r\n"
    for command in ("CHECK", "SYMBOLS", "REPORT", "REPORT_IFSPAM"):
        assert busy(check(SPAM, command)) == later
        found = busy(check(SPAM, command), passes=True)
        assert found.startswith(b"SPAMD/1.1 0 EX_OK\r\n")
        assert b"Spam: False ; 0.0 / 5.0\r\n" in found
    for command in ("PROCESS", "HEADERS"):  # spamc itself passes a message that it wants back
        assert busy(check(SPAM, command), passes=True) == later
    exim = b"CHECK RSPAMC/1.3\r\nContent-length: 0\r\n\r\n"
    assert busy(exim, passes=True) == (
        b"RSPAMD/1.3 0 EX_OK\r\nMetric: default; False; 0.00 / 5.00 / 5.00\r\n"
        b"Action: no action\r\n\r\n"
    )
