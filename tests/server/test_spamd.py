"""The protocol of spamd, without a network: every client's version, every error."""

import random
import re
import time
import zlib
from functools import partial

import pytest

import scripted
from nbspam.server.connection import report
from nbspam.server.judge import Judgement
from nbspam.server.spamd import SpamdConnection, parse_head
from protocols import check, tell
from scripted import RULE, UNSURE, Client, desk, full, verdict_of
from support import HAM, SPAM

LATER = b"SPAMD/1.0 75 EX_TEMPFAIL: too many messages; try again\r\n"
TOO_LARGE = b"SPAMD/1.0 65 EX_DATAERR: the message is too large to be "
talk = partial(scripted.talk, SpamdConnection)


def answer(*pieces, ends=True, **more):
    return talk(*pieces, ends=ends, **more).answer


def body_of(*request):
    return answer(check(*request)).partition(b"\r\n\r\n")[2]


def packed(data, command="CHECK", *lines):
    return check(zlib.compress(data), command, "1.5", *lines, "Compress: zlib")


# ---- verdicts ----


def test_each_version_gets_the_headers_that_it_can_read():
    # By the history of the protocol: which headers each version's clients can read.
    for command, version, headers in (
        *(("CHECK", version, "Spam") for version in ("1.2", "1.3", "1.5")),
        ("SYMBOLS", "1.2", "Spam"), ("SYMBOLS", "1.3", "Content-length Spam"),
        ("REPORT", "1.2", "Spam"), ("REPORT", "1.3", "Content-length Spam"),
        ("REPORT_IFSPAM", "1.2", "Spam"), ("REPORT_IFSPAM", "1.5", "Content-length Spam"),
        ("PROCESS", "1.1", ""), ("PROCESS", "1.2", "Content-length"),
        *(("PROCESS", version, "Content-length Spam") for version in ("1.3", "1.5")),
        ("HEADERS", "1.2", "Content-length"), ("HEADERS", "1.3", "Content-length Spam"),
    ):  # fmt: skip
        end = b"\r\n\r\n" if headers else b"\r\n"  # before 1.2 the message follows the first line
        head, _, body = answer(check(SPAM, command, version)).partition(end)
        values = {
            "Content-length": b"Content-length: %d" % len(body),
            "Spam": b"Spam: True ; 7.2 / 5.0",  # log(.9 / .1) = 2.2 above the cutoff
        }
        assert head.split(b"\r\n") == [b"SPAMD/1.1 0 EX_OK", *map(values.get, headers.split())]
        assert (body[:2] in (b"", b"\r\n")) == (command == "CHECK")

    # Spam is True in all: libspamc does not count spamd's own Yes of REPORT_IFSPAM.
    for command in ("CHECK", "SYMBOLS", "REPORT", "REPORT_IFSPAM", "PROCESS", "HEADERS"):
        for data, word in ((SPAM, b"True"), (HAM, b"False"), (UNSURE, b"False")):
            assert b"\r\nSpam: %s ; " % word in answer(check(data, command))


def test_rules_and_reports_have_what_their_version_reads_and_no_control_characters():
    # Names of rules end with a line before version 1.3.
    assert body_of(SPAM, "SYMBOLS", "1.2") == b"BAYES_80,NBSPAM_SPAM\r\n"
    assert body_of(SPAM, "SYMBOLS", "1.3") == b"BAYES_80,NBSPAM_SPAM"
    assert body_of(SPAM, "REPORT") == body_of(SPAM, "REPORT_IFSPAM") == (
        b"spam, probability of spam 0.900000\n\n  nats  token\n  +2.5  pi\\x1bll\n\n"
        b"Content analysis details:   (7.2 points, 5.0 required)\n\n"
        b" pts rule name              description\n"
        b"---- ---------------------- --------------------------------------------------\n"
        b" 0.0 BAYES_80               BODY: Range of the probability of spam\n"
        b" 7.2 NBSPAM_SPAM            BODY: Verdict of nbspam\n"
    )  # fmt: skip
    assert body_of(HAM, "REPORT_IFSPAM") == b""
    told = report(Judgement(verdict_of(HAM), RULE, listed="allow a@b.example", lack="no spam"))
    assert "\nallow a@b.example\nno spam\n" in told


def test_process_returns_the_message_with_our_headers_and_without_forged_ones():
    body = body_of(b"X-Spam-Status: No, I swear\nX-Nbspam: ham\n" + SPAM, "PROCESS")

    ours = rb"X-Nbspam: spam, probability=0.900000.*\n"
    ours += rb"X-Spam-Flag: YES\nX-Spam-Level: [*]{7}\nX-Spam-Status: Yes, "
    assert re.match(ours + rb"score=7.2 required=5.0", body)
    assert body.endswith(SPAM)
    assert b"swear" not in body


def test_what_spamc_appends_to_the_headers_makes_the_message_that_process_returns():
    for start in (b"X-Nbspam: ham\n", b"", b"\r", b"\n", b"no header\n", b"Subject: x\n\r\n"):
        # spamc takes the first of these two for the end of the head, be it one or not.
        for end in (b"\n\n", b"\r\n\r\n"):
            data = start + b"A: b" + end + SPAM
            assert body_of(data, "PROCESS") == body_of(data, "HEADERS") + SPAM


def test_exim_with_rspamd_gets_its_own_answer():
    head = b"CHECK RSPAMC/1.3\r\nContent-length: %d\r\nQueue-Id: 1abc-2\r\n"
    head += b"From: <a@b.example>\r\nRecipient-Number: 999\r\n"
    head += b"Rcpt: <c@d.example>\r\n" * 9999 + b"\r\n"
    data = head % len(SPAM) + SPAM
    client = talk(*[data[at : at + 1000] for at in range(0, len(data), 1000)])  # and no end

    assert client.answer == (
        b"RSPAMD/1.3 0 EX_OK\r\nMetric: default; True; 7.20 / 5.00 / 5.00\r\n"
        b"Action: add header\r\nSymbol: BAYES_80(0.00)\r\nSymbol: NBSPAM_SPAM(7.20)\r\n\r\n"
    )
    assert client.is_over
    ham = answer(head % len(HAM) + HAM)
    assert b"default; False; " in ham
    assert b"\r\nAction: no action\r\n" in ham


# ---- requests ----


def test_ping_is_answered_with_or_without_an_empty_line_and_skip_is_not():
    for request in (b"PING SPAMC/1.2\r\n", b"PING SPAMC/1.5\r\n\r\n", b"PING SPAMC/1.5\nA: b\n\n"):
        assert answer(request, ends=False) == b"SPAMD/1.5 0 PONG\r\n"
    assert answer(b"PING SPAMC", b"/1.5", b"\r\n") == b"SPAMD/1.5 0 PONG\r\n"
    assert answer(b"SKIP SPAMC/1.5\r\n\r\n") == b""


def test_a_body_ends_with_its_length_or_where_the_client_stops_writing():
    assert b"Spam: True" in answer(b"CHECK SPAMC/1.2 \r\n\r\n", SPAM)  # a blank, as to spamd
    assert b"Spam: False" in answer(b"CHECK SPAMC/1.2\r\n\r\n")
    assert talk(check(HAM) + b"pills", b"pills").desk.judge.seen == [HAM]


HEAD = b"CHECK SPAMC/1.5\r\n"
NO_REQUEST = b"76 EX_PROTOCOL: the first line is not COMMAND SPAMC/VERSION"
TOO_LONG = b"76 EX_PROTOCOL: the head is too large"
NO_LINE = b"76 EX_PROTOCOL: a header line is not NAME"
NO_NUMBER = b"76 EX_PROTOCOL: Content-length is not"
TOO_EARLY = b"76 EX_PROTOCOL: the request ends"
NO_ZLIB = b"65 EX_DATAERR: the body "


def test_a_wrong_request_is_told_what_is_wrong_with_it():
    for request, why in (
        (b"GET / HTTP/1.1\r\n\r\n", NO_REQUEST),
        (b"CHECK SPAMC\r\n\r\n", NO_REQUEST),
        (b"check SPAMC/1.5\r\n\r\n", NO_REQUEST),
        (b"EXPLODE SPAMC/1.5\r\n\r\n", b"76 EX_PROTOCOL: unknown command EXPLODE"),
        (HEAD + b"Content-length: -1\r\n\r\n", NO_NUMBER),
        (HEAD + b"Content-length: " + b"9" * 16 + b"\r\n\r\n", NO_NUMBER),
        (HEAD + b"Content-length: 99\r\n\r\nabc", TOO_EARLY),
        (HEAD + b"User: ann", TOO_EARLY),
        (HEAD + b"no colon\r\n\r\n", NO_LINE),
        (HEAD + b"User: a\rb\r\n\r\n", NO_LINE),
        (b"A" * 70_000, TOO_LONG),
        (HEAD + b"A: b\r\n" * 12_000, TOO_LONG),
        (HEAD + b"Compress: zlib\r\n\r\n", b"76 EX_PROTOCOL: Compress needs"),
        (HEAD + b"Compress: br\r\n\r\n", b"76 EX_PROTOCOL: Compress: only zlib"),
        (check(HAM, "CHECK", "1.5", "Compress: zlib"), NO_ZLIB + b"is not compressed"),
        (check(zlib.compress(HAM)[:-8], "CHECK", "1.5", "Compress: zlib"),
         NO_ZLIB + b"that zlib compressed ends too early"),
        (tell("spam", SPAM, "Set: local", "Remove: local"), b"76 EX_PROTOCOL: Set and Remove"),
        (tell("spam", b""), b"65 EX_DATAERR: no message; send it behind the head"),
        (tell("eggs"), b"76 EX_PROTOCOL: Message-class is neither"),
        (tell("spam", b"GIF89a"), b"65 EX_DATAERR: the message looks like a GIF picture"),
        (tell("spam", b"failure"), b"75 EX_TEMPFAIL: [Errno 28] No space left"),
    ):  # fmt: skip
        assert answer(request).startswith(b"SPAMD/1.0 " + why), request[:60]
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"  # of TLS, and no end
    assert answer(hello, ends=False).startswith(b"SPAMD/1.0 " + NO_REQUEST)


def test_a_header_of_many_blanks_is_read_in_no_time():
    head = b"CHECK SPAMC/1.5\nUser: \t a" + b" " * 60_000 + b"b \t\r"
    start = time.process_time()
    assert parse_head(head).headers == {"user": "a" + " " * 60_000 + "b"}
    assert time.process_time() - start < 0.5


def test_a_compressed_message_is_judged_as_what_it_is_and_what_it_expands_to_is_bounded():
    assert b"Spam: True" in answer(packed(SPAM * 50))
    lists = {"autolearns": True, "prepare": lambda at: setattr(at.judge, "lesson", "spam")}
    for options, learned in (({}, b"no"), (lists, b"spam")):
        found = answer(packed(SPAM * 50, "PROCESS"), **options)
        assert found.endswith(b"\n" + SPAM * 50)
        assert b" autolearn=%b " % learned in found

    bomb = packed(SPAM + bytes(1 << 22))
    client = talk(bomb, limits={"message_bytes": 1 << 20}, **lists)
    assert b"Spam: True" in client.answer
    assert [len(data) for data in client.desk.judge.seen] == [1 << 20]
    assert client.desk.tally.total("oversized") == 1
    assert client.desk.teacher.known == {}
    assert client.desk.held == len(client.answer)  # the message is released with the answer
    client = talk(bomb, limits={"message_bytes": 1 << 20, "bytes_held": 1 << 20})
    assert (client.answer, client.desk.judge.seen) == (LATER, [])


def test_a_message_over_the_limit_is_neither_sent_back_nor_learned():
    data, limits = (SPAM + b"x" * 1000)[:1001], {"message_bytes": 1000}
    # Its end is not there, so it cannot be sent back: a permanent error, upon which spamc
    # lets the message pass as it is.
    client = talk(check(data, "PROCESS"), limits=limits)
    assert client.answer.startswith(TOO_LARGE + b"sent back")
    assert client.desk.judge.seen == []  # or it would count as a message and as a trouble
    assert client.desk.tally.total("trouble large") == 1
    assert b"\r\n\r\nX-Nbspam: spam" in answer(check(data, "HEADERS"), limits=limits)

    noise = SPAM + random.Random(1).randbytes(2000)  # larger than the limit when compressed, too
    client = talk(packed(noise), limits=limits)
    assert b"Spam: True" in client.answer
    assert client.desk.tally.total("oversized") == 1

    for order in ("Set: local", "Remove: local"):
        for request in (
            tell("spam", data, order),
            packed(data, "TELL", "Message-class: spam", order),
            packed(noise, "TELL", "Message-class: spam", order),
        ):
            client = talk(request, limits=limits)
            why = b"learned here; teach it by the command line\r\n"
            assert client.answer == TOO_LARGE + why
            assert client.desk.teacher.users == []
            assert client.desk.tally.total("trouble large") == 1
            assert client.desk.tally.total("oversized") == 0  # it is not judged


@pytest.mark.parametrize("reports_teach", [False, True])
async def test_a_lesson_is_told_once_and_taken_back_and_reports_teach_if_wanted(reports_teach):
    at = desk(reports_teach=reports_teach)
    taken = b"DidSet: local\r\nDidRemove: remote\r\n"
    for request, done in (
        (tell("spam"), b"DidSet: local\r\n"),
        (tell("spam"), b""),
        (tell("ham", SPAM, "Set: local", "Remove: spam"), b"DidSet: local\r\n"),
        (tell("", SPAM, "Remove: local"), b"DidRemove: local\r\n"),
        (tell("", SPAM, "Remove: local"), b""),
        (tell("spam", SPAM, "Set: remote"), b""),
        # What spamc -C report and revoke send.
        (tell("spam", SPAM, "Set: local, remote"), b"DidSet: local,remote\r\n" * reports_teach),
        (tell("ham", SPAM, "Set: local", "Remove: remote"), taken * reports_teach),
    ):
        client = await Client(SpamdConnection, at).send(request)
        assert client.answer == b"SPAMD/1.1 0 EX_OK\r\n%bContent-length: 0\r\n\r\n" % done

    kinds = ("learned", "known", "moved", "unlearned")
    taught = [2, 2, 2, 1] if reports_teach else [1, 2, 1, 1]
    assert [at.tally.total(f"lesson {kind}") for kind in kinds] == taught
    assert at.tally.total("trouble forbidden") == (1 if reports_teach else 3)  # and logged


# ---- trouble ----


def test_a_message_that_cannot_be_judged_says_why_but_not_its_words(capfd):
    found = [answer(check(data), log="text") for data in (b"failure", b"our bug")]

    error = r"m\udce9: cannot be read; give another"
    assert found[0] == b"SPAMD/1.0 75 EX_TEMPFAIL: %s\r\n" % error.encode()
    assert found[1] == b"SPAMD/1.0 75 EX_TEMPFAIL: internal error\r\n"
    what = "nbspam: a message was not judged or learned: "
    message = "(asked=CHECK bytes=7)"
    lines = f"{what}{error} {message}\n{what}ZeroDivisionError {message}\n"
    assert capfd.readouterr().err == lines


def test_when_busy_mail_passes_as_no_spam_if_that_is_wanted():
    def busy(request, **choices):
        client = talk(request, prepare=full, **choices)
        assert client.desk.tally.total("trouble busy") == 1
        return client.answer

    for command in ("CHECK", "SYMBOLS", "REPORT", "REPORT_IFSPAM"):
        assert busy(check(SPAM, command)) == LATER
        found = busy(check(SPAM, command), passes=True)
        assert found.startswith(b"SPAMD/1.1 0 EX_OK\r\n")
        assert b"Spam: False ; 0.0 / 5.0\r\n" in found
    for command in ("PROCESS", "HEADERS"):  # spamc itself passes a message that it wants back
        assert busy(check(SPAM, command), passes=True) == LATER
    assert busy(tell("spam")) == LATER
    assert busy(b"CHECK RSPAMC/1.3\r\nContent-length: 0\r\n\r\n", passes=True) == (
        b"RSPAMD/1.3 0 EX_OK\r\nMetric: default; False; 0.00 / 5.00 / 5.00\r\n"
        b"Action: no action\r\n\r\n"
    )
