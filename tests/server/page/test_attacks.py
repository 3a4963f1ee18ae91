"""Attacks on the page: requests byte for byte, and the answer that each should get.

Here they meet a page in memory; stress/page.py sends the same to a server that runs.
"""

import re
from base64 import b64encode
from typing import NamedTuple
from urllib.parse import quote, urlencode

import pytest
from itsdangerous import TimestampSigner

from maildirs import key_of, put
from nbspam.server.choices import Access
from nbspam.server.page.pages import guards
from nbspam.server.page.routes import WebConnection
from scripted import ACCESS, Client, until
from visitors import COOKIE, Visitor

EVIL = "http://evil.example"
ENDED, EARLIER = "You are not logged in any more", "This form is from an earlier session"
NO_HOST, NO_ORIGIN = "a name of another site leads here", "Origin is another site"


class Attack(NamedTuple):
    """A request as Latin-1, and what its only answer has."""

    what: str
    request: str
    status: int
    words: str = ""  # in the answer, headers included


class Known(NamedTuple):
    """All that could be known of a page, and of a session with it."""

    port: int
    token: str
    cookie: str  # name=value
    form: str

    @property
    def host(self):
        return f"127.0.0.1:{self.port}"

    def request(self, method="GET", path="/", body="", **head):
        """Return a request with our session; head: lines more or instead, None: no such line."""
        lines = {"Host": self.host, "Cookie": self.cookie, "Content-Length": str(len(body))}
        lines |= {name.replace("_", "-"): value for name, value in head.items()}
        text = "".join(
            f"{name}: {value}\r\n" for name, value in lines.items() if value is not None
        )
        return f"{method} {path} HTTP/1.1\r\n{text}\r\n{body}"

    def posted(self, path="/tell", **fields):
        """Return a form of ours, with other fields or more."""
        body = urlencode({"form": self.form, **fields})
        return self.request("POST", path, body, Origin=f"http://{self.host}")


def other_sites(it):
    """Yield what pages of other sites can make a browser send, session included."""
    fields = {"form": it.form, "token": it.token, "spam": key_of(0), "deny": key_of(0)}
    form = urlencode(fields)
    for origin in (
        EVIL, "null", "", "http://127.0.0.1:1", "http://127.0.0.1", f"https://{it.host}",
        f"http://{it.host}.evil.example", f"http://{it.host}/", f"http://x@{it.host}",
        f"http://localhost:{it.port}",
    ):  # fmt: skip
        yield Attack(f"a GET of {origin}", it.request(Origin=origin), 403, NO_ORIGIN)
        for path in ("/tell", "/list", "/logout", "/login", "/none"):
            for kind in ("application/x-www-form-urlencoded", "text/plain"):
                request = it.request("POST", path, form, Origin=origin, Content_Type=kind)
                yield Attack(f"a form of {origin} to {path}", request, 403, NO_ORIGIN)
    for head in (
        {}, {"Referer": f"http://{it.host}.evil.example/"}, {"Referer": "http://127.0.0.1:1/"},
        {"Sec_Fetch_Site": "none"}, {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "cross-site", "Referer": f"http://{it.host}/"},
    ):  # fmt: skip
        request = it.request("POST", "/tell", form, **head)
        yield Attack(f"a form without Origin {head}", request, 403, "no Origin, Sec-Fetch-Site or")
    for site in ("same-site", "cross-site"):
        for dest, mode in (("script", "no-cors"), ("iframe", "navigate"), ("empty", "cors")):
            fetch = {"Sec_Fetch_Site": site, "Sec_Fetch_Dest": dest, "Sec_Fetch_Mode": mode}
            words = "another site asks for a part"
            yield Attack(f"embedded as {dest}", it.request(**fetch), 403, words)
        link = {"Sec_Fetch_Site": site, "Sec_Fetch_Dest": "document", "Sec_Fetch_Mode": "navigate"}
        yield Attack("a link (ours)", it.request(**link), 200)
        request = it.request("POST", "/tell", form, Origin=f"http://{it.host}", **link)
        yield Attack("a form that says so", request, 403)
    for head in ({"Sec_Fetch_Site": "same-origin"}, {"Referer": f"http://{it.host}/?start=100"}):
        request = it.request("POST", "/logout", form, **head)
        yield Attack("a form without Origin (ours)", request, 303)


def other_forms(it):
    """Yield forms that are not of this session, and what is no form at all."""
    ours = {"Origin": f"http://{it.host}"}
    part = f'Content-Disposition: form-data; name="form"\r\n\r\n{it.form}\r\n--b--'
    for kind in ("multipart/form-data; boundary=b", "application/json"):
        request = it.request("POST", "/tell", f"--b\r\n{part}", Content_Type=kind, **ours)
        yield Attack(f"a form as {kind}", request, 403, EARLIER)
    for form in ("", "x", it.token, it.form[:-1], it.form + "A"):
        for path in ("/tell", "/list", "/logout"):
            request = it.posted(path, form=form, spam=key_of(0), deny=key_of(0))
            yield Attack(f"the form {form}", request, 403, EARLIER)
    body = urlencode({"form": it.form, "spam": key_of(0), "deny": key_of(0)})
    for method in ("GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "HEAD"):
        yield Attack(f"teaching by {method}", it.request(method, "/tell", body), 405)
        yield Attack(f"listing by {method}", it.request(method, "/list", body), 405)
    for fields in ({}, {"unsure": key_of(0)}, {"undo": "\N{SUPERSCRIPT TWO}"}):
        yield Attack(f"teaching {fields}", it.posted(**fields), 400)
    for fields in ({}, {"spam": key_of(0)}, {"trust": "evil.example"}):
        yield Attack(f"listing {fields}", it.posted("/list", **fields), 400)
    for number in ("-1", "1e3", "9" * 12, "'OR'1'='1"):
        yield Attack(f"undo {number}", it.posted(undo=number), 400)
    for field in ("next", "back", "page"):
        split = "\r\nSet-Cookie: a=b\r\n\r\n<script>"
        yield Attack(f"line ends in {field}", it.posted(undo="0", **{field: split}), 404)


def other_names(it):
    """Yield requests by other names that lead here: DNS rebinding."""
    port = it.port
    for host in (
        "evil.example", f"evil.example:{port}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.1.:{port}",
        f"{it.host}.evil.example", f"evil.example#{it.host}", f"localhost.:{port}",
        f"user@{it.host}", f"2130706433:{port}", f"0x7f.1:{port}", f"127.1:{port}",
        f"0.0.0.0:{port}", f"[::1]:{port}", f"[::ffff:127.0.0.1]:{port}", f"{it.host} ,x",
        f"{it.host}/", f"{it.host}, {it.host}", "[", "[evil]", "", None,
    ):  # fmt: skip
        head = {"Host": host, "Origin": f"http://{host}"}
        login = urlencode({"token": it.token})
        for request in (
            it.request(Host=host),
            it.request(path=f"/?token={it.token}", **head),
            it.request("POST", "/login", login, **head),
        ):
            yield Attack(f"Host {host}", request, 403, NO_HOST)
    ours = it.request(Host=f"LOCALHOST:{port}", Origin=f"http://localhost:{port}")
    yield Attack("Host LOCALHOST (ours)", ours, 200)


def wires(it):
    """Yield what other programs could read otherwise."""
    host, cookie = f"Host: {it.host}\r\n", f"Cookie: {it.cookie}\r\n"
    post = f"POST /tell HTTP/1.1\r\n{host}{cookie}Origin: http://{it.host}\r\n"
    get = f"GET / HTTP/1.1\r\n{host}{cookie}"
    chunked = "Transfer-Encoding: chunked"
    for what, status, request in (
        ("two Host lines", 403, f"GET / HTTP/1.1\r\nHost: evil.example\r\n{host}{cookie}\r\n"),
        ("two Host lines, ours first", 403, f"{get}Host: evil.example\r\n\r\n"),
        ("our Host twice", 403, f"{get}{host}\r\n"),
        ("another site in the address", 403, get.replace(" /", f" {EVIL}/", 1) + "\r\n"),
        ("a user in the address", 403, get.replace(" /", f" {EVIL}@{it.host}/", 1) + "\r\n"),
        ("ours as a user", 403, get.replace(" /", f" http://{it.host}@evil.example/", 1) + "\r\n"),
        ("ours in the address", 200,
         f"GET http://{it.host}/ HTTP/1.1\r\nHost: evil.example\r\n{cookie}\r\n"),
        ("letters beyond ASCII", 404,
         get.replace(" /", " /%e4%b8%ad", 1) + "X-Name: \xe4\xb8\xad\r\n\r\n"),
        ("no address", 404, get.replace(" /", " http://[evil/", 1) + "\r\n"),
        ("an address without a scheme", 404, get.replace(" /", " //evil.example/", 1) + "\r\n"),
        ("Content-Length and chunked", 400,
         f"{post}Content-Length: 4\r\n{chunked}\r\n\r\n0\r\n\r\n"),
        ("two Content-Lengths", 400, f"{post}Content-Length: 0\r\nContent-Length: 9\r\n\r\n"),
        ("chunked, a length of letters", 400, f"{post}{chunked}\r\n\r\nzz\r\n"),
        ("chunked and identity", 400, f"{post}{chunked}, identity\r\n\r\n0\r\n\r\n"),
        ("a bare LF after each line", 400, get.replace("\r\n", "\n") + "\n"),
        ("a folded line", 400, f"{get}X: a\r\n b\r\n\r\n"),
        ("a space before the colon", 400, f"{get}X : a\r\n\r\n"),
        ("NUL in a line", 400, f"{get}X: \0\r\n\r\n"),
        ("two requests in a piece", 200, f"{get}\r\n{get}\r\n"),
        ("300 lines", 400, get + "".join(f"X{n}: y\r\n" for n in range(300)) + "\r\n"),
        ("a head of 70 KB", 400, get + f"X: {'y' * 70_000}\r\n\r\n"),
        ("a form of 1 MB", 413, f"{post}Content-Length: 1000000\r\n\r\n{'a' * 1_000_000}"),
        ("TLS", 400, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"),
        ("CONNECT", 405, f"CONNECT evil.example:80 HTTP/1.1\r\n{host}\r\n"),
        ("a web socket", 200, f"{get}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
    ):  # fmt: skip
        yield Attack(what, request, status)


def guesses(it):
    """Yield guesses of sessions, tokens and keys."""
    name, _, session = it.cookie.partition("=")
    data, moment, mac = session.split(".")
    user = b64encode(b'{"user": "x", "form": "x"}').decode()
    stranger = TimestampSigner("2" * 64).sign(user).decode()
    token_mac = it.token.partition(".")[2]
    for what, value in (
        ("altered", session[:-2] + ("A" if session[-2] != "A" else "B") + session[-1]),
        ("of another time", f"{data}.zzzzzz.{mac}"),
        ("of another user", f"{user}.{moment}.{mac}"),
        ("of another secret", stranger),
        ("without a signature", user),
        ("that is the token", it.token),
        ("with a token's signature", f"{data}.{token_mac}"),
        ("of nothing", ""), ("of dots", ".."),
    ):  # fmt: skip
        cookie = {"Cookie": f"{name}={value}"}
        yield Attack(f"a session {what}", it.request(**cookie), 403, "Token")
        body, origin = urlencode({"form": "x", "deny": key_of(0)}), f"http://{it.host}"
        for path in ("/tell", "/list", "/logout"):
            request = it.request("POST", path, body, Origin=origin, **cookie)
            yield Attack(f"a form of a session {what}", request, 403, ENDED)
    tossed = it.request(Cookie=f"{name}=x; {it.cookie}")
    yield Attack("a tossed cookie beside ours", tossed, 200)
    other = name.replace(str(it.port), str(it.port + 1))
    yield Attack("of another server", it.request(Cookie=f"{other}={session}"), 403, "Token")
    for token in (
        "", it.token[:-1], it.token + "A", it.token.lower(), "%00", "%ff%00%3Cscript%3E",
        "%41" * 9000, "a" * 50_000, f"IngI.{token_mac}", session, Access("2" * 64).token_of(""),
    ):  # fmt: skip
        told, head = "not the token", {"Cookie": None, "Origin": f"http://{it.host}"}
        request = it.request(path=f"/?token={token}", **head)
        yield Attack(f"the token {token[:20]}", request, 403, told)
        request = it.request("POST", "/login", f"token={token[:9000]}", **head)
        yield Attack(f"the token {token[:20]} in a form", request, 403, told)
    request = it.request("POST", "/login", "&".join(["a=b"] * 100), Origin=f"http://{it.host}")
    yield Attack("a login of 100 fields", request, 403, "not the token")
    for key in (
        "../../m.nbspam", "/etc/passwd", "..%2f..%2fm.nbspam", "%00", "new/0.M1.host", "%ff",
        "", "gone", "#x", "{{7*7}}", "'OR'1'='1", "a" * 9000,
    ):  # fmt: skip
        address = "/message?key=" + quote(key, safe="%")
        gone = "This message is not there any more"
        yield Attack(f"the message {key[:18]}", it.request(path=address), 404, gone)
        yield Attack(f"teaching {key[:18]}", it.posted(spam=key), 404, gone)
        yield Attack(f"listing {key[:18]}", it.posted("/list", deny=key), 404, gone)


def leads(it):
    """Yield logins that lead to other sites."""
    for address in (
        "//evil.example/", "/\\evil.example/", "/\t/evil.example/", "http:/", f"{EVIL}/", "///",
        "javascript:alert(1)", "///evil.example/message", "/\r\nSet-Cookie: a=b", "//?", "",
        "/login", "/message/../..", f"/?token={it.token}#x\n",
    ):  # fmt: skip
        form = urlencode({"token": it.token, "next": address})
        request = it.request("POST", "/login", form, Cookie=None, Origin=f"http://{it.host}")
        yield Attack(f"a login that leads to {address!r}", request, 303, "\nlocation: /\r\n")


TABLES = pytest.mark.parametrize(
    "table", [other_sites, other_forms, other_names, wires, guesses, leads]
)


def mistakes(attack, answer):
    """Return an answer, if it is not the one that an attack should get, in a list."""
    status = int(answer.split()[1]) if len(re.findall("^HTTP/1.1 ", answer, re.M)) == 1 else 0
    head, _, body = answer.partition("\r\n\r\n")
    for name, value in guards().items():
        if f"\r\n{name}: {value}\r\n".lower() not in f"{head}\r\n".lower():
            return [(attack.what, name)]
    runs = body.count("<script") > 1 or "\u202e" in body
    if status != attack.status or attack.words not in answer or runs:
        return [(attack.what, attack.status, answer)]
    return []


@TABLES
async def test_every_attack_gets_the_answer_it_should_get(at, box, table, tmp_path):
    put(box, 0)
    visitor = Visitor(at)
    token = ACCESS.token_of("")
    known = Known(8025, token, f"{COOKIE}={visitor.session}", visitor.form)
    wrong, n_refused = [], 0
    for attack in table(known):
        client = await Client(WebConnection, at).send(attack.request.encode("latin-1"))
        await client.end()
        await until(lambda client=client: client.is_over)
        wrong += mistakes(attack, client.answer.decode("latin-1"))
        client.connection.connection_lost(None)
        n_refused += attack.status == 403 and attack.words != "Token"

    assert wrong == []
    assert at.teacher.known == {}
    assert not (tmp_path / "m.lists").exists()
    assert at.tally.total("trouble forbidden") == n_refused
    assert at.held == 0
