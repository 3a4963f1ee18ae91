"""rspamd's protocol over HTTP, without a network: verdicts, lessons, figures, bounds."""

import json
from functools import partial

import scripted
from nbspam.server.rspamd import RspamdConnection
from protocols import get, parsed, post
from scripted import PASSWORD, UNSURE, Client, desk, go_on
from support import HAM, SPAM

UPGRADE = "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"
NO_HTTP = "not HTTP; Exim and clients of spamd ask at --spamd"
CHUNKED = b"POST /checkv2 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
talk = partial(scripted.talk, RspamdConnection)


def values(*pieces, **more):
    """Return the status and the JSON of the only answer."""
    [(status, _, body)] = parsed(talk(*pieces, ends=True, **more).answer)
    return status, json.loads(body)


def lesson(path, data=SPAM, *lines, password=PASSWORD):
    return post(path, data, f"Password: {password.decode()}", *lines)


# ---- verdicts ----


def test_a_verdict_in_the_words_of_rspamd():
    for path in ("/checkv2", "/symbols", "/check", "/checkV2", "/checkv2?all=1"):
        # As rspamd's proxy sends it: with its own Host, too; and the file may be named besides.
        status, found = values(post(path, SPAM, "Host: proxy:11332", "File: spam.eml"))

        assert (status, found["is_skipped"], found["action"]) == (200, False, "add header")
        assert (found["score"], found["required_score"]) == (7.197, 5.0)
        assert found["thresholds"] == {"add header": 5.0}
        older = found.get("default", {})  # as rspamd 3.4 answers, but to /checkv2
        assert len(older) == 7 * ("v2" not in path.lower())
        assert older.items() <= {**found, **found["symbols"], "is_spam": True}.items()
        assert set(found["symbols"]) == {"BAYES_80", "NBSPAM_SPAM"}
        facts = {"name", "score", "metric_score", "description", "options"}
        assert set(found["symbols"]["NBSPAM_SPAM"]) == facts
        added = found["milter"]["add_headers"]["X-Nbspam"]["value"]
        assert added.startswith("spam, probability=0.9")
        assert "X-Nbspam" in found["milter"]["remove_headers"]
    for data in (HAM, UNSURE):
        assert values(post("/checkv2", data))[1]["action"] == "no action"


def test_the_answer_names_the_message_as_it_names_itself():
    for head, identifier in (
        (b"Message-ID: <a.b@c.example>\nSubject: x\n\n", "a.b@c.example"),
        (b"From x\r\nmessage-id:\r\n <a@b>  \r\n\r\n", "a@b"),
        (b"Subject: x\n\nMessage-ID: <of@the.body>\n", "undef"),
        (b"Message-ID: <>\n\n", "undef"),
        (b"\n", "undef"),
        (b'Message-ID: <a\x1b[31m\x00\xff"\\@b>\n\n', 'a\\x1b[31m\\x00\ufffd"\\@b'),
        (b"Message-ID: <" + b"x" * 10_000 + b">\n\n", "x" * 998),
        (b"X: " + b"y" * 70_000 + b"\nMessage-ID: <a@b>\n\n", "undef"),
    ):
        assert values(post("/checkv2", head + b"perhaps"))[1]["message-id"] == identifier


def test_without_a_body_nothing_is_judged():
    # As rspamd 3.4 answers.
    expected = {"is_skipped": False, "score": 0.0, "action": "no action", "symbols": {}}
    empty = [post(path, b"") for path in ("/checkv2", "/symbols", "/check?all=1")]
    for request in (*empty, get("/checkv2")):
        client = talk(request)
        [(status, _, body)] = parsed(client.answer)
        found = json.loads(body)

        assert (status, client.desk.judge.seen) == (200, [])
        assert found.items() >= expected.items()
        assert "X-Nbspam" in found["milter"]["remove_headers"]
    assert talk(post("/checkv2", b"\r\n")).desk.judge.seen == [b"\r\n"]

    status, found = values(post("/explain"))  # with its strongest tokens
    assert (status, found["label"], found["probability"]) == (200, "spam", 0.9)
    assert (found["is_spam"], found["score"], found["constant"]) == (True, 2.0, -0.5)
    assert found["evidence"] == [{"token": "pi\x1bll", "contribution": 2.5, "group": "text"}]


# ---- lessons ----


def test_lessons_are_learned_moved_taken_back_and_known():
    requests = [
        lesson("/learnspam"), lesson("/learnspam"), lesson("/learnham"),
        lesson("/relabel", SPAM, "Class: spam \t"), lesson("/forget"), lesson("/forget"),
    ]  # fmt: skip
    found = [(status, json.loads(body)) for status, _, body in parsed(talk(*requests).answer)]
    outcomes = ["learned", "known", "moved", "moved", "unlearned", "known"]
    assert found == [(200, {"success": True, "outcome": name}) for name in outcomes]


def test_who_does_not_know_the_password_or_sends_too_much_teaches_nothing_and_is_counted():
    wrong = "the header Password is missing or wrong"
    for path in ("/learnspam", "/learnham", "/forget", "/relabel"):
        for request, choices, status, why, kind in (
            (lesson(path, password=b"guess"), {}, 401, wrong, "forbidden"),
            (post(path), {}, 401, wrong, "forbidden"),
            (lesson(path), {"password": None}, 403, "this server learns nothing;", "forbidden"),
            (lesson(path, SPAM, "Class: ham"), {"limits": {"message_bytes": 9}}, 413,
             "the message is too large to be learned here; teach it by the command line", "large"),
        ):  # fmt: skip
            client = talk(request, **choices)
            [(code, _, body)] = parsed(client.answer)
            assert code == status
            assert json.loads(body)["error"].startswith(why)
            assert client.desk.tally.total(f"trouble {kind}") == 1
            assert client.desk.teacher.users == []


def test_figures_are_what_rspamc_prints_and_of_the_type_of_open_metrics(monkeypatch):
    monkeypatch.setattr("nbspam.server.rspamd.time", lambda: 1012.5)
    requests = post("/checkv2"), post("/checkv2", HAM), lesson("/learnspam"), lesson("/learnham")
    client = talk(*requests, get("/stat"), get("/metrics"))
    *_, (_, _, stat), (status, headers, metrics) = parsed(client.answer)

    expected = {"scanned": 2, "learned": 2, "spam_count": 1, "ham_count": 1}
    expected["actions"] = {"add header": 1, "no action": 1}
    assert json.loads(stat).items() >= expected.items()
    assert status == 200
    assert headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert b'nbspam_messages_total{verdict="spam"} 1.0\n' in metrics
    assert metrics.endswith(b"# EOF\n")
    assert b"\nnbspam_model_age_seconds 12.5\n" in metrics
    monkeypatch.setattr("nbspam.server.rspamd.time", lambda: 999.0)  # the clock was set back
    assert b"\nnbspam_model_age_seconds 0.0\n" in talk(get("/metrics")).answer


# ---- HTTP ----


def test_a_request_that_fails_or_is_wrong_is_told_why():
    teaching = ["/learnspam"], ["/learnham"], ["/forget"], ["/relabel", "Class: ham"]
    for request, status, error in (
        (post("/explain", b""), 400, "/explain: no body; POST the message"),
        # As by rspamd 3.4.
        *((lesson(path, b"", *lines), 400, f"{path}: no body; POST the message")
          for path, *lines in teaching),
        (post("/checkv2", b"failure"), 503, "m\udce9: cannot be read; give another"),
        (post("/checkv2", b"our bug"), 503, "internal error"),
        (lesson("/relabel", SPAM, "Class: eggs"), 400, "header Class: neither ham nor spam"),
        (lesson("/learnspam", b"GIF89a"), 400, "the message looks like a GIF picture"),
        (lesson("/learnspam", b"failure"), 503, "[Errno 28] No space left on device"),
        (get("/explain"), 405, "/explain: POST the message"),
        (get("/secrets"), 404, "/secrets: not known here"),
        (get(f"/?token={scripted.ACCESS.token_of('')}"), 404, "/: not known here"),  # of --web
        (post("/check", b"", "Shm: /rhm.ddb3144ff"), 400, "/check: no body; POST the message"),
        (post("/checkv2", SPAM, "Compression: zstd"), 415,
         "Compression is not known here; send the message as it is"),
        (lesson("/learnspam", b"\x1f\x8b", "Content-Encoding: gzip"), 415,
         "Compression is not known here; send the message as it is"),
        (b"CHECK RSPAMC/1.3\r\n\r\n", 400, NO_HTTP),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, NO_HTTP),
        (get("/ping", *(f"A{i}: b" for i in range(256))), 400, "too many headers"),
        (get("/ping", "A: " + "b" * 70_000), 400, "the head is too large"),
        (get("/" + "a" * 70_000), 400, "the head is too large"),
        (CHUNKED + b"zz\r\n", 400, NO_HTTP),
        (CHUNKED.replace(b": chunked", b": gzip, chunked") + b"2\r\n\x1f\x8b\r\n0\r\n\r\n", 400,
         "Transfer-Encoding: only chunked is known"),
        # As `curl --http2` and Java ask; without its body, the message would pass as harmless.
        (post("/checkv2", SPAM, *UPGRADE), 400,
         "Upgrade: not with a body; send the request without it"),
    ):  # fmt: skip
        assert values(request) == (status, {"error": error})


def test_when_busy_mail_passes_or_is_to_be_sent_again():
    def busy(path, **choices):
        return values(post(path), prepare=scripted.full, **choices)

    refused = 503, {"error": "too many messages; try again"}
    assert busy("/explain", passes=True) == refused
    status, found = busy("/checkV2", passes=True)
    assert (status, found["action"], found["is_skipped"]) == (200, "no action", True)
    assert "X-Nbspam" in found["milter"]["remove_headers"]  # a forged one does not pass


async def test_a_message_that_gives_way_while_it_comes_has_one_answer_which_is_the_last():
    for passes in (True, False):
        client = await Client(RspamdConnection, desk(passes=passes)).send(post("/checkv2")[:-9])
        client.connection.give_way()
        await client.send(post("/checkv2")[-9:])
        [(_, headers, _)] = parsed(client.answer)
        assert (headers["connection"], client.desk.judge.seen) == ("close", [])


def test_1_1_keeps_the_connection_and_an_answer_to_head_has_no_body_that_would_begin_the_next():
    assert not talk(get("/ping")).is_over
    assert talk(get("/ping", "Connection: close")).is_over
    assert talk(get("/ping", version="1.0")).is_over
    assert not talk(get("/ping", "Connection: keep-alive", version="1.0")).is_over
    client = talk(get("/ping").replace(b"GET", b"HEAD"), get("/ping"))
    first, second = client.answer.split(b"HTTP/1.1 200 OK")[1:]
    assert b"\r\nContent-Length: 6\r\n" in first
    assert (first[-4:], second[-10:]) == (b"\r\n\r\n", b"\r\n\r\npong\r\n")


async def test_who_is_to_be_closed_is_still_read_so_that_its_end_is_noticed():
    at = desk(waits=True)
    request = post("/checkv2", SPAM, "Connection: close")
    client = await Client(RspamdConnection, at).send(request, b"more")
    assert client.wire.is_paused
    await go_on(at)
    assert (client.wire.is_ended, client.wire.is_paused) == (True, False)
    await client.end()
    assert client.wire.is_closed


def test_requests_in_one_piece_are_answered_up_to_the_first_and_an_upgrade_is_not_taken():
    # The connection closes, and the client sends the others again (RFC 9112, 9.3.2).
    client = talk(get("/ping") + get("/ping") + get("/ping"))
    assert [body for _, _, body in parsed(client.answer)] == [b"pong\r\n"]
    assert client.is_over

    [(_, _, body)] = parsed(talk(get("/ping", *UPGRADE)).answer)
    assert body == b"pong\r\n"


async def test_expect_continue_is_answered_before_the_body():
    client = Client(RspamdConnection, desk())
    request = post("/checkv2", SPAM, "Expect: 100-continue")
    await client.send(request[: -len(SPAM)])
    first = client.answer
    assert first == b"HTTP/1.1 100 Continue\r\n\r\n"
    await client.send(SPAM)
    assert parsed(client.answer[len(first) :])[0][0] == 200


# ---- bounds ----


def test_a_head_or_trailer_that_does_not_end_is_refused_before_it_fills_memory():
    ping = b"GET /ping HTTP/1.1\r\n"
    for start in (ping + b"A: ", b"GET /", ping + b"A", CHUNKED + b"1\r\na\r\n0\r\nA: "):
        client = talk(start, *[b"a" * 10_000] * 15)

        assert client.answer.startswith(b"HTTP/1.1 400 ")
        assert client.is_over


def test_a_message_for_which_there_is_no_room_is_refused_while_or_before_it_comes():
    client = talk(CHUNKED + b"1388\r\n" + bytes(3000), limits={"bytes_held": 1000})
    assert client.answer.startswith(b"HTTP/1.1 503 ")
    assert (client.wire.is_ended, client.wire.is_closed) == (True, False)
    assert client.desk.tally.total("trouble busy") == 1

    head = f"POST /checkv2 HTTP/1.1\r\nContent-Length: {1 << 40}\r\nExpect: 100-continue\r\n\r\n"
    for more in b"", b"Subject: a\n\nb":
        client = talk(head.encode() + more)

        [(status, _, body)] = parsed(client.answer)
        error = "a message of 1099511627776 bytes; send its beginning"
        assert (status, json.loads(body)) == (413, {"error": error})
        assert (client.wire.is_ended, client.desk.judge.seen) == (True, [])
        assert client.desk.tally.total("trouble large") == 1
