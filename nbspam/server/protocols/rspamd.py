"""The protocol of rspamd over HTTP, which rspamc, Haraka, OpenSMTPD and others speak; and ours.

    POST /checkv2                  a verdict, in rspamd's words
    POST /explain                  a verdict with its strongest tokens
    POST /learnspam, /learnham     a lesson; /relabel (header Class: ham or spam) and /forget, too
    GET  /ping /stat /metrics      is it there, what has it done

Lessons need the password, in the header Password, and are refused if the server has none.

Secret: what rspamd calls things.
"""

import json
from functools import partial
from hmac import compare_digest
from http import HTTPStatus
from time import time
from typing import Any

from nbspam.counts.outcome import Outcome
from nbspam.mail.headers import message_id
from nbspam.mail.verdict_headers import REQUIRED, Wanted, headers_of
from nbspam.server.answers import STRONGEST, is_spam, rules, score
from nbspam.server.connection import what_became
from nbspam.server.protocols.http import HttpConnection
from nbspam.server.tally import VERDICTS, open_metrics
from nbspam.server.threads.judging import Judgement

_JSON = "application/json"
_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_LESSONS: dict[str, str | None] = {"/learnspam": "spam", "/learnham": "ham", "/forget": None}
_POSTED = {"/checkv2", "/symbols", "/check", "/explain", "/relabel", *_LESSONS}
_WANTED = Wanted()
_ACTION = {"spam": "add header", "ham": "no action", "unsure": "no action"}


class RspamdConnection(HttpConnection):
    """A client that speaks rspamd's protocol."""

    @property
    def user(self) -> str | None:
        """Who the message is for or, of mail that is sent, by."""
        return self.headers.get("deliver-to") or self.headers.get("user")

    def handle(self, method: str, path: str) -> None:
        """Do what a whole request asks for."""
        if path in _POSTED and method != "POST":
            self.fail(HTTPStatus.METHOD_NOT_ALLOWED, f"{path}: POST the message")
        elif path in _POSTED and "compression" in self.headers:
            error = "Compression is not known here; send the message as it is"
            self.fail(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, error)
        elif path in _LESSONS or path == "/relabel":
            self.learn(path)
        elif path in _POSTED:
            data, explains = self.message(), path == "/explain"
            answer = self.explained if explains else partial(self.checked, message_id(data))
            queue = self.headers.get("queue-id")
            self.ask(data, explains, answer, self.user, queue=queue, asked=path)
        elif path == "/ping":
            self.send(HTTPStatus.OK, b"pong\r\n", "text/plain")
        elif path == "/stat":
            self.say(HTTPStatus.OK, self.stat())
        elif path == "/metrics":
            self.send(HTTPStatus.OK, open_metrics(self.desk.tally, self.facts()), _METRICS)
        else:
            self.fail(HTTPStatus.NOT_FOUND, f"{path[:100]}: not known here")

    def checked(self, identifier: str | None, judgement: Judgement) -> None:
        """Answer with a verdict in rspamd's words; identifier: the message's own."""
        points = round(score(judgement), 3)
        bayes, own = rules(judgement)
        spam = judgement.verdict.posterior["spam"]
        symbols = {
            own: _symbol(own, points, "Verdict of nbspam", f"{spam:.4%}"),
            bayes: _symbol(bayes, 0.0, "Range of the probability of spam", f"{spam:.4%}"),
        }
        self.say(
            HTTPStatus.OK,
            {
                "is_skipped": False,
                "score": points,
                "required_score": REQUIRED,
                "action": _ACTION[judgement.verdict.label],
                "thresholds": {"add header": REQUIRED},
                "symbols": symbols,
                "messages": {},
                "message-id": identifier or "undef",
                "milter": {
                    "add_headers": {
                        name: {"value": value, "order": 0}
                        for name, value in headers_of(judgement.verdict, judgement.rule, _WANTED)
                    },
                    "remove_headers": dict.fromkeys(_WANTED.names, 0),
                },
            },
        )

    def explained(self, judgement: Judgement) -> None:
        """Answer with a verdict and its strongest tokens."""
        verdict, explanation = judgement.verdict, judgement.explanation
        assert explanation is not None
        self.say(
            HTTPStatus.OK,
            {
                "label": verdict.label,
                "probability": verdict.posterior["spam"],
                "is_spam": is_spam(judgement),
                "score": explanation.score,
                "constant": explanation.constant,
                "evidence": [
                    {"token": each.token, "contribution": each.contribution, "group": each.group}
                    for each in explanation.strongest(STRONGEST)
                ],
                "lack": judgement.lack,
            },
        )

    def learn(self, path: str) -> None:
        """Learn the message, if the client may teach."""
        if self.desk.policy.password is None:
            why = "this server learns nothing; start it with --password-file"
            self.forbid(HTTPStatus.FORBIDDEN, why)
            return
        given = self.headers.get("password", "").encode()
        if not compare_digest(given, self.desk.policy.password):
            self.forbid(HTTPStatus.UNAUTHORIZED, "the header Password is missing or wrong")
            return
        label = _LESSONS.get(path) if path in _LESSONS else self.headers.get("class", "").lower()
        if label not in {"ham", "spam", None}:
            self.fail(HTTPStatus.BAD_REQUEST, "header Class: neither ham nor spam")
            return

        def answer(outcome: Outcome) -> None:
            self.say(HTTPStatus.OK, {"success": True, "outcome": what_became(outcome)})

        self.teach(self.message(), self.is_whole, label, answer, self.user)

    def forbid(self, status: HTTPStatus, why: str) -> None:
        """Refuse a lesson of somebody who may not teach."""
        self.desk.tally.add("trouble forbidden")
        self.say(status, {"error": why})

    def facts(self) -> dict[str, float]:
        """Return values that are no counts, by name."""
        return {"model_age_seconds": time() - self.desk.judge.model_time}

    def stat(self) -> dict[str, Any]:
        """Return what `rspamc stat` prints."""

        def total(name: str) -> int:
            return int(self.desk.tally.total(name))

        actions = dict.fromkeys(_ACTION.values(), 0)
        for label in VERDICTS:
            actions[_ACTION[label]] += total(label)
        learned = total("lesson learned") + total("lesson moved")
        return {
            "scanned": sum(map(total, VERDICTS)),
            "learned": learned,
            "spam_count": total("spam"),
            "ham_count": total("ham") + total("unsure"),
            "actions": actions,
            "connections": total("open"),
            "control_connections": 0,
            "statfiles": [],
        }

    def refuse(self, kind: str, why: str) -> None:
        """Answer with a status, or let the message pass."""
        asks = self.url.startswith((b"/check", b"/symbols"))
        if kind in {"busy", "late"} and self.desk.policy.passes and asks:
            passed = {"is_skipped": True, "score": 0.0, "required_score": REQUIRED}
            self.say(HTTPStatus.OK, {**passed, "action": "no action", "symbols": {}})
            return
        super().refuse(kind, why)

    def fail(self, status: HTTPStatus, why: str) -> None:
        """Answer with an error in JSON."""
        self.say(status, {"error": why})

    def say(self, status: HTTPStatus, values: dict[str, Any]) -> None:
        """Answer with JSON."""
        self.send(status, json.dumps(values).encode(), _JSON)


def _symbol(name: str, points: float, description: str, option: str) -> dict[str, Any]:
    return {
        "name": name,
        "score": points,
        "metric_score": points,
        "description": description,
        "options": [option],
    }
