"""rspamd's protocol over HTTP, without a network: verdicts, lessons, figures."""

import json
from functools import partial

import scripted
from http_requests import get, parsed, post
from nbspam.server.rspamd import RspamdConnection
from scripted import PASSWORD, answer_to
from support import HAM, SPAM

UNSURE = b"Subject: perhaps\n\nperhaps\n"


def answers(*pieces, **more):
    return parsed(answer_to(RspamdConnection, *pieces, **more))


def values(*pieces, **more):
    """Return the status and the JSON of the only answer."""
    [(status, _, body)] = answers(*pieces, **more)
    return status, json.loads(body)


talk = partial(scripted.talk, RspamdConnection)


# ---- verdicts ----


def test_a_verdict_in_the_words_of_rspamd():
    for path in ("/checkv2", "/symbols", "/check", "/checkv2?all=1"):
        status, found = values(post(path))

        assert status == 200
        assert found["is_skipped"] is False
        assert (found["score"], found["required_score"]) == (7.197, 5.0)
        assert found["action"] == "add header"
        assert found["thresholds"] == {"add header": 5.0}
        assert set(found["symbols"]) == {"BAYES_80", "NBSPAM_SPAM"}
        facts = {"name", "score", "metric_score", "description", "options"}
        assert set(found["symbols"]["NBSPAM_SPAM"]) == facts
        added = found["milter"]["add_headers"]["X-Nbspam"]["value"]
        assert added.startswith("spam, probability=0.9")
        assert "X-Nbspam" in found["milter"]["remove_headers"]


def test_ham_and_unsure_are_no_action_and_the_page_is_elsewhere():
    for data in (HAM, UNSURE):
        assert values(post("/checkv2", data))[1]["action"] == "no action"
    assert values(get(f"/?token={scripted.ACCESS.token_of('')}"))[0] == 404


def test_the_answer_names_the_message_as_it_names_itself():
    for head, identifier in (
        (b"Message-ID: <a.b@c.example>\nSubject: x\n\n", "a.b@c.example"),
        (b"From x\r\nmessage-id:\r\n <a@b>  \r\n\r\n", "a@b"),
        (b"Subject: x\n\nMessage-ID: <of@the.body>\n", "undef"),
        (b"Message-ID: <>\n\n", "undef"),
        (b"", "undef"),
        (b'Message-ID: <a\x1b[31m\x00\xff"\\@b>\n\n', 'a\\x1b[31m\\x00\ufffd"\\@b'),
        (b"Message-ID: <" + b"x" * 10_000 + b">\n\n", "x" * 998),
        (b"X: " + b"y" * 70_000 + b"\nMessage-ID: <a@b>\n\n", "undef"),
    ):
        assert values(post("/checkv2", head + b"perhaps"))[1]["message-id"] == identifier


def test_a_message_over_the_limit_is_not_learned_by_its_beginning():
    for path in ("/learnspam", "/learnham", "/forget", "/relabel"):
        request = lesson(path, SPAM + bytes(500), "Class: ham")
        client = talk(request, limits={"message_bytes": 100 + len(SPAM)})

        [(status, _, body)] = parsed(client.answer)
        assert status == 413
        assert "teach it by the command line" in json.loads(body)["error"]
        assert client.desk.teacher.users == []
        assert client.desk.tally.total("trouble large") == 1


def test_a_verdict_with_its_strongest_tokens():
    status, found = values(post("/explain"))

    assert status == 200
    assert (found["label"], found["probability"], found["is_spam"]) == ("spam", 0.9, True)
    assert (found["score"], found["constant"]) == (2.0, -0.5)
    assert found["evidence"] == [{"token": "pi\x1bll", "contribution": 2.5, "group": "text"}]


def test_what_cannot_be_judged_is_an_error_that_says_why():
    for data, why in (
        (b"failure", "-: cannot be read; give another"),
        (b"our bug", "internal error"),
    ):
        assert values(post("/checkv2", data)) == (500, {"error": why})


# ---- lessons ----


def lesson(path, data=SPAM, *lines, password=PASSWORD):
    return post(path, data, f"Password: {password.decode()}", *lines)


def test_lessons_are_learned_moved_taken_back_and_known():
    client = talk(
        lesson("/learnspam"),
        lesson("/learnspam"),
        lesson("/learnham"),
        lesson("/relabel", SPAM, "Class: spam"),
        lesson("/forget"),
        lesson("/forget"),
    )
    found = [(status, json.loads(body)) for status, _, body in parsed(client.answer)]
    outcomes = ["learned", "known", "moved", "moved", "unlearned", "known"]
    assert found == [(200, {"success": True, "outcome": name}) for name in outcomes]


def test_who_does_not_know_the_password_teaches_nothing_and_is_counted():
    for path in ("/learnspam", "/learnham", "/forget", "/relabel"):
        for request, choices, status, why in (
            (lesson(path, password=b"guess"), {}, 401, "the header Password is missing or wrong"),
            (lesson(path, password=b""), {}, 401, "the header Password is missing or wrong"),
            (post(path), {}, 401, "the header Password is missing or wrong"),
            (lesson(path), {"password": None}, 403, "this server learns nothing; start it with"),
        ):
            client = talk(request, **choices)
            [(code, _, body)] = parsed(client.answer)
            assert code == status
            assert json.loads(body)["error"].startswith(why)
            assert client.desk.tally.total("trouble forbidden") == 1


def test_a_wrong_lesson_is_refused_and_a_failed_one_is_no_success():
    refused = values(lesson("/relabel", SPAM, "Class: eggs"))
    assert refused == (400, {"error": "header Class: neither ham nor spam"})
    status, found = values(lesson("/learnspam", b"failure"))
    assert status == 500
    assert "No space left on device" in found["error"]


# ---- figures ----


def test_stat_has_what_rspamc_prints():
    client = talk(post("/checkv2"), post("/checkv2", HAM), lesson("/learnspam"), get("/stat"))
    found = json.loads(parsed(client.answer)[-1][2])

    assert (found["scanned"], found["learned"]) == (2, 1)
    assert (found["spam_count"], found["ham_count"]) == (1, 1)
    assert found["actions"] == {"add header": 1, "no action": 1}


def test_metrics_have_the_type_of_open_metrics():
    client = talk(post("/checkv2"), get("/metrics"))
    status, headers, body = parsed(client.answer)[-1]

    assert status == 200
    assert headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert b'nbspam_messages_total{verdict="spam"} 1.0\n' in body
    assert body.endswith(b"# EOF\n")


# ---- trouble ----


def test_when_busy_mail_passes_or_is_to_be_sent_again():
    def busy(path, **choices):
        return parsed(talk(post(path), prepare=scripted.full, **choices).answer)[0]

    status, _, body = busy("/checkv2")
    assert (status, json.loads(body)) == (503, {"error": "too many messages; try again"})
    status, _, body = busy("/checkv2", passes=True)
    assert (status, json.loads(body)["action"]) == (200, "no action")
    assert json.loads(body)["is_skipped"] is True
    assert busy("/explain", passes=True)[0] == 503
