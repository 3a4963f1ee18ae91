"""rspamd's protocol over HTTP, for rspamc, Haraka, OpenSMTPD and others, and our additions.

    POST /checkv2                  a verdict, in rspamd's words
    POST /explain                  a verdict with its strongest tokens
    POST /learnspam, /learnham     a lesson; /relabel (header Class: ham or spam) and /forget, too
    GET  /ping /stat /metrics      is it there, what has it done

Lessons need the password, in the header Password, and are refused if the server has none.
`HttpConnection` reads HTTP requests one after another, within the bounds of every connection; the
page uses it, too.
"""

from functools import partial
from hmac import compare_digest
from http import HTTPStatus
from time import gmtime, strftime, time
from typing import Any
from urllib.parse import urlsplit

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser, parse_url

from nbspam.counts.lessons import Outcome
from nbspam.mail.headers import HeaderChoices, message_id
from nbspam.mail.verdict_headers import REQUIRED, headers_of, names_of
from nbspam.printing import printable, readable_json
from nbspam.server import connection
from nbspam.server.judge import Judgement, known_as, user_of
from nbspam.server.metrics import METRICS_TYPE, open_metrics, outcome_word

_STATUS = {
    "busy": HTTPStatus.SERVICE_UNAVAILABLE,
    "late": HTTPStatus.GATEWAY_TIMEOUT,
    "idle": HTTPStatus.REQUEST_TIMEOUT,
    "malformed": HTTPStatus.BAD_REQUEST,
    "failed": HTTPStatus.SERVICE_UNAVAILABLE,
    "large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "user": HTTPStatus.BAD_REQUEST,
}


class HttpConnection(connection.Connection):
    """A client that speaks HTTP/1.0 or 1.1, one request after another.

    A protocol over it defines `handle` and `fail`.
    """

    def __init__(self, desk: connection.Desk) -> None:
        super().__init__(desk)
        self.parser = HttpRequestParser(self)
        self.url = b""
        self.query = b""  # what follows the question mark
        self.headers: dict[str, str] = {}
        self.head_size = 0
        self.aside = 0  # bytes since the last header or piece of a body; the parser keeps them
        self.whole = False  # the request is whole, and not answered yet
        self.stays = True  # the connection stays open after the answer
        self.more: list[bytes] = []  # received while a request is answered

    def received(self, data: bytes) -> None:
        """Take in a piece of a request."""
        if self.whole:
            # The next request waits, and its sender, too, if it sends much ahead.
            self.more.append(data)
            self.transport.pause_reading()
            return
        self.aside += len(data)
        try:
            self.parser.feed_data(data)
            if self.aside > 2 * self.desk.limits.head_bytes and not self.whole:
                raise connection.TroubleError("malformed", "the head or trailer is too large")
        except (HttpParserError, HttpParserUpgrade, connection.TroubleError) as error:
            self.stays = False
            if not self.whole:
                cause = error.__context__ or error
                if isinstance(cause, connection.TroubleError):
                    self.trouble(cause.kind, str(cause))
                elif isinstance(cause, MemoryError):
                    self.trouble("busy")
                else:
                    self.trouble("malformed", "not HTTP; Exim and clients of spamd ask at --spamd")
        if self.whole and not self.closes:
            self.answer()

    def received_all(self) -> None:
        """Answer a whole request, and close."""
        self.stays = False
        if not self.whole:
            self.cut_short()

    # ---- what the parser calls ----

    def on_message_begin(self) -> None:
        """Begin a request.

        A request in the same piece as the one before is not answered: the connection closes after
        the first answer, and clients then send the others again.
        """
        if self.whole:
            raise connection.TroubleError("malformed", "a request before the last answer")
        self.rests = False
        self.url, self.headers, self.head_size = b"", {}, 0
        self.expect(self.desk.limits.head_seconds)

    def on_url(self, url: bytes) -> None:
        """Take in a piece of the URL."""
        self.url += url
        self._grow(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take in a header."""
        self.aside = 0
        field = name.decode("latin-1").lower()
        text = value.rstrip(b" \t").decode("utf-8", "replace")  # the parser leaves blanks there
        # Each recipient has a header of its own.  rspamd's proxy adds a second Host; the page
        # knows its own hosts, and refuses two that are joined.
        if field in ("rcpt", "host") and field in self.headers:
            text = f"{self.headers[field]},{text}"
        if field == "rcpt":  # of thousands, two are kept: no user decides for others
            text = ",".join(sorted(set(map(known_as, text.split(","))) - {""})[:2])
        else:
            self._grow(len(name) + len(value))
        if len(self.headers) >= self.desk.limits.head_lines:
            raise connection.TroubleError("malformed", "too many headers")
        self.headers[field] = text

    def _grow(self, size: int) -> None:
        self.head_size += size
        if self.head_size > self.desk.limits.head_bytes:
            raise connection.TroubleError("malformed", "the head is too large")

    def on_headers_complete(self) -> None:
        """Wait for the body, unless it is longer than any mail or cannot be read."""
        length = int(self.headers.get("content-length", 0))
        self.check_length(length)
        coding = self.headers.get("transfer-encoding", "")
        if coding.lower() not in ("", "chunked"):
            raise connection.TroubleError("malformed", "Transfer-Encoding: only chunked is known")
        if self.parser.should_upgrade() and (length or coding):  # the parser would skip the body
            why = "Upgrade: not with a body; send the request without it"
            raise connection.TroubleError("malformed", why)
        self.expect(self.desk.limits.body_seconds)
        if self.headers.get("expect", "").lower() == "100-continue":
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """Keep a piece of the message."""
        self.aside = 0
        self.keep(body)

    def on_message_complete(self) -> None:
        """Have the request answered."""
        self.whole = True
        self.aside = 0
        self.stays = self.stays and self.parser.should_keep_alive() and not self.crowded

    # ---- answering ----

    def answer(self) -> None:
        """Answer a whole request."""
        path = b""
        try:
            url = parse_url(self.url)
            path, self.query = url.path or b"", url.query or b""
            if url.schema:  # RFC 9112, 3.2.2: the host in the address counts
                self.headers["host"] = urlsplit(self.url.decode("latin-1")).netloc
        except (HttpParserError, ValueError):
            self.query = b""
        self.handle(self.parser.get_method().decode(), path.decode("latin-1"))

    def handle(self, method: str, path: str) -> None:
        """Answer a whole request by its method and path."""
        raise NotImplementedError

    def fail(self, status: HTTPStatus, why: str) -> None:
        """Answer with an error."""
        raise NotImplementedError

    def refuse(self, kind: str, why: str) -> None:
        """Answer with a status."""
        self.fail(_STATUS[kind], why)

    def send(self, status: HTTPStatus, body: bytes, kind: str, *more: str, why: str = "") -> None:
        """Answer, and go on or close; more: further headers; why: the status line's reason."""
        # After the answer to a part of a request, its rest would be taken for another one.
        stays = self.stays and self.whole and not self.desk.ends
        lines = (
            f"HTTP/1.1 {status.value} {printable(why) or status.phrase}",
            "Server: nbspam",
            f"Date: {strftime('%a, %d %b %Y %H:%M:%S GMT', gmtime())}",
            f"Content-Type: {kind}",
            f"Content-Length: {len(body)}",
            f"Connection: {'keep-alive' if stays else 'close'}",
            *more,
        )
        shown = b"" if self.parser.get_method() == b"HEAD" else body
        self.transport.write("\r\n".join((*lines, "", "")).encode("latin-1", "replace") + shown)
        self.whole = False
        if not stays:
            self.close()
            return
        self.rests = True
        self.let_go()
        self.expect(self.desk.limits.idle_seconds)
        if self.more:
            waiting, self.more = b"".join(self.more), []
            self.read_on()
            self.received(waiting)


_JSON = "application/json"
_LESSONS: dict[str, str | None] = {"/learnspam": "spam", "/learnham": "ham", "/forget": None}
_CHECKED = {"/checkv2", "/symbols", "/check"}
_POSTED = {"/explain", "/relabel", *_LESSONS}
_ENCODINGS = {"compression", "content-encoding"}  # headers: rspamd's, and HTTP's
_ELSEWHERE = {"shm", "file"}  # headers that say where the message is, instead of a body
_WANTED = HeaderChoices()
_ACTION = {"spam": "add header", "ham": "no action", "unsure": "no action"}
# The answer where there is no message, as rspamd gives it, or where one passes unjudged; a
# verdict states in its place what is known.
_UNJUDGED: dict[str, Any] = {
    "is_skipped": False,
    "score": 0.0,
    "required_score": REQUIRED,
    "action": "no action",
    "symbols": {},
    "messages": {},
    "milter": {"remove_headers": dict.fromkeys(names_of(_WANTED), 0)},
}


class RspamdConnection(HttpConnection):
    """A client that speaks rspamd's protocol."""

    @property
    def user(self) -> str | None:
        """The recipient of the message, if there is only one; of outgoing mail, its sender."""
        named = self.headers.get("deliver-to") or self.headers.get("user")
        return named or user_of(self.headers.get("rcpt", "").split(",")) or None

    def handle(self, method: str, path: str) -> None:
        """Answer a whole request by its method and path."""
        path = path.lower()  # as rspamd reads it: Apache James asks /checkV2
        if path in _POSTED and method != "POST":
            self.reject(HTTPStatus.METHOD_NOT_ALLOWED, f"{path}: POST the message")
        elif path in _POSTED | _CHECKED and _ENCODINGS & self.headers.keys():
            error = "Compression is not known here; send the message as it is"
            self.reject(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, error)
        elif path in _CHECKED and not self.size and not _ELSEWHERE & self.headers.keys():
            self.say_verdict(_UNJUDGED)
        elif path in _POSTED | _CHECKED and not self.size:
            self.reject(HTTPStatus.BAD_REQUEST, f"{path}: no body; POST the message")
        elif path in _CHECKED or path == "/explain":
            data, explains = self.message(), path == "/explain"
            answer = self.explained if explains else partial(self.checked, message_id(data))
            queue = self.headers.get("queue-id")
            self.ask(data, explains, answer, self.user, queue=queue, asked=path)
        elif path in _POSTED:
            self.learn(path)
        elif path == "/ping":
            self.send(HTTPStatus.OK, b"pong\r\n", "text/plain")
        elif path == "/stat":
            self.say(self.stat())
        elif path == "/metrics":
            # The facts are the metrics that are no counts.
            facts = {"model_age_seconds": max(0.0, time() - self.desk.judge.model_time)}
            self.send(HTTPStatus.OK, open_metrics(self.desk.tally, facts), METRICS_TYPE)
        else:
            self.reject(HTTPStatus.NOT_FOUND, f"{path[:100]}: not known here")

    def checked(self, identifier: str | None, judgement: Judgement) -> None:
        """Answer with a verdict in rspamd's words; identifier: the message's own."""
        symbols = {
            symbol.name: {
                "name": symbol.name,
                "score": round(symbol.points, 3),
                "metric_score": round(symbol.points, 3),
                "description": symbol.description,
                "options": [f"{judgement.verdict.posterior['spam']:.4%}"],
            }
            for symbol in connection.symbols_of(judgement)
        }
        headers = {
            name: {"value": value, "order": 0}
            for name, value in headers_of(judgement.verdict, judgement.rule, _WANTED)
        }
        self.say_verdict(
            {
                **_UNJUDGED,
                "score": sum(symbol["score"] for symbol in symbols.values()),
                "action": _ACTION[judgement.verdict.label],
                "thresholds": {"add header": REQUIRED},
                "symbols": symbols,
                "message-id": identifier or "undef",
                "milter": {"add_headers": headers, **_UNJUDGED["milter"]},
            }
        )

    def explained(self, judgement: Judgement) -> None:
        """Answer with a verdict and its strongest tokens."""
        verdict, explanation = judgement.verdict, judgement.explanation
        assert explanation is not None
        self.say(
            {
                "label": verdict.label,
                "probability": verdict.posterior["spam"],
                "is_spam": verdict.label == "spam",
                "score": explanation.score,
                "constant": explanation.constant,
                "evidence": [
                    {"token": each.token, "contribution": each.contribution, "group": each.group}
                    for each in explanation.strongest(connection.MOST_REPORTED)
                ],
                "lack": judgement.lack,
            }
        )

    def learn(self, path: str) -> None:
        """Learn the message, if the client may teach."""
        if self.desk.choices.password is None:
            why = "this server learns nothing; start it with --password-file"
            self.reject(HTTPStatus.FORBIDDEN, why, "forbidden")
            return
        given = self.headers.get("password", "").encode()
        if not compare_digest(given, self.desk.choices.password):
            why = "the header Password is missing or wrong"
            self.reject(HTTPStatus.UNAUTHORIZED, why, "forbidden")
            return
        label = _LESSONS[path] if path in _LESSONS else self.headers.get("class", "").lower()
        if label not in {"ham", "spam", None}:
            self.reject(HTTPStatus.BAD_REQUEST, "header Class: neither ham nor spam")
            return

        def answer(outcome: Outcome) -> None:
            self.say({"success": True, "outcome": outcome_word(outcome)})

        self.teach(self.message(), label, answer, self.user)

    def reject(self, status: HTTPStatus, why: str, kind: str = "malformed") -> None:
        """Refuse a request, and note why; kind: one of metrics.TROUBLES."""
        self.note_trouble(kind, why)
        self.fail(status, why)

    def stat(self) -> dict[str, Any]:
        """Return the numbers that `rspamc stat` prints."""
        count = self.desk.tally.count
        spam, ham = count("spam"), count("ham") + count("unsure")
        learned = count("lesson learned") + count("lesson moved")
        return {
            "scanned": spam + ham,
            "learned": learned,
            "total_learns": learned,
            "spam_count": spam,
            "ham_count": ham,
            "actions": {_ACTION["spam"]: spam, _ACTION["ham"]: ham},
            "connections": count("open_connections"),
            "control_connections": 0,
            "statfiles": [],
        }

    def refuse(self, kind: str, why: str) -> None:
        """Answer with a status, or let the message pass."""
        asks = self.url.lower().startswith((b"/check", b"/symbols"))
        if kind in {"busy", "late"} and self.desk.choices.passes and asks:
            self.say_verdict({**_UNJUDGED, "is_skipped": True})
            return
        super().refuse(kind, why)

    def fail(self, status: HTTPStatus, why: str) -> None:
        """Answer with an error in JSON, and in the status line: rspamc shows nothing else."""
        self.send(status, readable_json({"error": why}).encode(), _JSON, why=why)

    def say_verdict(self, verdict: dict[str, Any]) -> None:
        """Answer with a verdict; to /check (ZoneMTA's) and /symbols in the older form, too."""
        if b"/checkv2" not in self.url.lower():
            names = ("is_skipped", "score", "required_score", "action")
            older = {"is_spam": verdict["action"] == _ACTION["spam"], **verdict["symbols"]}
            verdict = {"default": {name: verdict[name] for name in names} | older, **verdict}
        self.say(verdict)

    def say(self, values: dict[str, Any]) -> None:
        """Answer with JSON."""
        self.send(HTTPStatus.OK, readable_json(values).encode(), _JSON)
