"""Attacks on the page of `nbspam serve --web --review`: each gets the answer it should get.

The mailbox is made of hostile messages.  The last attack is a crowd: while it asks for the page,
mail is judged as before.
"""

import asyncio
import re
import socket
from base64 import b64encode
from collections import Counter
from http.client import HTTPConnection
from urllib.parse import quote, urlencode

import pytest

from nbspam.store.open import save_classifier
from protocols import check
from serving import free_port, serving
from stress.server import ask
from support import HAM

HOSTILE = (
    "{{ 7*7 }}{% raw %}</title><script>document.title = 1</script><img src=x onerror=alert(1)>"
    "<svg/onload=alert(1)>'\"><style>*{display:none}</style>\u202eexe.\u200btxt\u2066"
)
NEVER = ("\u202e", "\u200b", "\u2066", "<img", "<svg/", ">49<", "\0")  # in a page
WORDS = " ".join(f"w{number}" for number in range(100_000))
NESTED = "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(5000))


def mail(subject, body, name=HOSTILE):
    """Return a message."""
    return f"From: {name}\nSubject: {subject}\n{body}".encode()


MAIL = {
    "markup": mail(HOSTILE, f"\n{HOSTILE}"),
    "a subject of 1 MB": mail("s" * 1_000_000, "\nx"),
    "100,000 tokens": mail("many", f"\n{WORDS}"),
    "10 MB": mail("large", "\n" + "line of words\n" * 750_000),
    "5,000 parts in each other": mail("nested", NESTED),
    "NUL and no UTF-8": b"From: \xff\0\xfe\nSubject: =?utf-8?b?/w==?= \0\n\n\0\xff" * 1000,
}


class Page:
    """Somebody who may know the token, and sends requests byte for byte."""

    def __init__(self, address):
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", address)
        assert found
        self.port, self.token = int(found[1]), found[2]
        self.own = f"127.0.0.1:{self.port}"
        head = self.raw(f"GET /?token={self.token} HTTP/1.1\r\nHost: {self.own}\r\n\r\n")
        found = re.search(r"(?i)set-cookie: ([^;]+)", head)
        assert found
        self.cookie = found[1]
        found = re.search(r'name="form" value="([^"]+)"', self.asked()[1])
        assert found
        self.form = found[1]

    def raw(self, text):
        """Return all that bytes, given as Latin-1, are answered."""
        with socket.create_connection(("127.0.0.1", self.port), 120) as wire:
            wire.sendall(text.encode("latin-1"))
            wire.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: wire.recv(1 << 16), b"")).decode("latin-1")

    def asked(self, method="GET", path="/", body=b"", head=None):
        """Return the status and the text for a request; see `request`."""
        found, text = self.request(method, path, body, head)
        return found.status, text

    def request(self, method="GET", path="/", body=b"", head=None):
        """Return the answer and its text for a request with our session.

        head: further lines, or others in the place of ours; None: no such line.
        """
        wire = HTTPConnection("127.0.0.1", self.port, timeout=300)
        wire.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        lines = {"Host": self.own, "Cookie": self.cookie, "Content-Length": str(len(body))}
        for name, value in {**lines, **(head or {})}.items():
            if value is not None:
                wire.putheader(name, value)
        wire.endheaders(body)
        found = wire.getresponse()
        text = found.read().decode()
        wire.close()
        return found, text

    def posted(self, fields):
        """Return the status and the text for a form of ours."""
        body = urlencode({"form": self.form, **fields}).encode()
        return self.asked("POST", "/tell", body, {"Origin": f"http://{self.own}"})


def other_sites(page, key="0.M1.host"):
    """Send what pages of other sites can make a browser send, session included."""
    form = urlencode({"form": page.form, "spam": key}).encode()
    parts = b'--b\r\nContent-Disposition: form-data; name="spam"\r\n\r\nx\r\n--b--'
    ours = f"http://{page.own}"
    for what, head in (
        ("of another site", {"Origin": "http://evil.example"}),
        ("of a sandboxed frame", {"Origin": "null"}),
        ("of another port", {"Origin": "http://127.0.0.1:1"}),
        ("of https", {"Origin": f"https://{page.own}"}),
        ("without Origin", {}),
        ("same-site", {"Sec-Fetch-Site": "same-site"}),
        ("as text/plain", {"Origin": "http://evil.example", "Content-Type": "text/plain"}),
    ):
        yield f"a form {what}", 403, *page.asked("POST", "/tell", form, head)
    kind = {"Origin": ours, "Content-Type": "multipart/form-data; boundary=b"}
    yield "a form as multipart", 403, *page.asked("POST", "/tell", parts, kind)
    other = b"form=x&spam=" + key.encode()
    yield "another session's form", 403, *page.asked("POST", "/tell", other, {"Origin": ours})
    for method, status in (("GET", 405), ("PUT", 405), ("DELETE", 405), ("OPTIONS", 405)):
        yield f"teaching by {method}", status, *page.asked(method, "/tell", form)
    for dest, mode in (("script", "no-cors"), ("iframe", "navigate"), ("empty", "cors")):
        fetch = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Dest": dest, "Sec-Fetch-Mode": mode}
        yield f"embedded as {dest}", 403, *page.asked(head=fetch)


def other_names(page):
    """Rebind names of other sites to this machine."""
    port = page.port
    for host in (
        f"evil.example:{port}", "127.0.0.1", f"127.0.0.1.:{port}", f"localhost.:{port}",
        f"user@127.0.0.1:{port}", f"2130706433:{port}", f"0x7f.1:{port}", f"127.1:{port}",
        f"[::1]:{port}", f"[::ffff:127.0.0.1]:{port}", f"127.0.0.1:{port} ,x", "", None,
    ):  # fmt: skip
        name = "is left out" if host is None else host.replace(str(port), "PORT")
        yield f"Host {name}", 403, *page.asked(head={"Host": host})
    yield "Host LOCALHOST:PORT (ours)", 200, *page.asked(head={"Host": f"LOCALHOST:{port}"})


def wires(page):
    """Send what other programs could read otherwise."""
    own, cookie = f"Host: {page.own}\r\n", f"Cookie: {page.cookie}\r\n"
    post = f"POST /tell HTTP/1.1\r\n{own}{cookie}Origin: http://{page.own}\r\n"
    get = f"GET / HTTP/1.1\r\n{own}{cookie}"
    for name, status, text in (
        ("two Host lines", 400, f"GET / HTTP/1.1\r\nHost: evil.example\r\n{own}{cookie}\r\n"),
        ("two Host lines, ours first", 400, f"{get}Host: evil.example\r\n\r\n"),
        ("another site in the address", 403,
         get.replace(" /", " http://evil.example/", 1) + "\r\n"),
        ("Content-Length and chunked", 400,
         f"{post}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        ("two Content-Lengths", 400, f"{post}Content-Length: 0\r\nContent-Length: 9\r\n\r\n"),
        ("chunked, a length of letters", 400, f"{post}Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
        ("chunked and identity", 400,
         f"{post}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
        ("a bare LF after each line", 400, get.replace("\r\n", "\n") + "\n"),
        ("a folded line", 400, f"{get}X: a\r\n b\r\n\r\n"),
        ("a space before the colon", 400, f"{get}X : a\r\n\r\n"),
        ("NUL in a line", 400, f"{get}X: \0\r\n\r\n"),
        ("two requests in a piece", 200, f"{get}\r\n{get}\r\n"),
        ("300 lines", 400, get + "".join(f"X{n}: y\r\n" for n in range(300)) + "\r\n"),
        ("a head of 70 KB", 400, get + f"X: {'y' * 70_000}\r\n\r\n"),
        ("a form of 1 MB", 413, f"{post}Content-Length: 1000000\r\n\r\n{'a' * 1_000_000}"),
        ("TLS", 400, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"),
        ("CONNECT", 405, f"CONNECT evil.example:80 HTTP/1.1\r\n{own}\r\n"),
        ("a web socket", 200, f"{get}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
    ):  # fmt: skip
        answer = page.raw(text)
        head, _, body = answer.partition("\r\n\r\n")
        n_answers = len(re.findall("^HTTP/1.1 ", answer, re.MULTILINE))
        yield name, status, int(head.split()[1]) if n_answers == 1 else 0, body


def guesses(page):
    """Guess sessions, tokens and keys."""
    name, _, session = page.cookie.partition("=")
    data, moment, mac = session.split(".")
    user = b64encode(b'{"user": "x", "form": "x"}').decode()
    for what, value in (
        ("altered", session[:-2] + ("A" if session[-2] != "A" else "B") + session[-1]),
        ("of another time", f"{data}.zzzzzz.{mac}"),
        ("of another user", f"{user}.{moment}.{mac}"),
        ("without a signature", user),
        ("that is the token", page.token),
        ("with a token's signature", f"{data}.{page.token.partition('.')[2]}"),
    ):
        yield f"a session {what}", 403, *page.asked(head={"Cookie": f"{name}={value}"})
    tossed = {"Cookie": f"{name}=x; {page.cookie}"}
    yield "a tossed cookie beside ours", 200, *page.asked(head=tossed)
    for what, token in (
        ("cut", page.token[:-1]), ("longer", page.token + "A"), ("in small", page.token.lower()),
        ("of NUL", "%00"), ("of 50 KB", "a" * 50_000),
        ("of a user", f"IngI.{page.token.partition('.')[2]}"), ("that is a session", session),
    ):  # fmt: skip
        found = page.asked(path=f"/?token={token}", head={"Cookie": None})
        yield f"a token {what}", 403, *found
    for key in (
        "../../m.nbspam", "/etc/passwd", "..%2f..%2fm.nbspam", "%00", "new/0.M1.host", "%ff",
        "{{7*7}}", "'OR'1'='1", "a" * 9000,
    ):  # fmt: skip
        address = "/message?key=" + quote(key, safe="%")
        yield f"the message {key[:18]}", 404, *page.asked(path=address)
        yield f"teaching {key[:18]}", 404, *page.posted({"spam": key})
    for number in ("-1", "1e3", "9" * 12, "'OR'1'='1"):
        yield f"undo {number}", 400, *page.posted({"undo": number})
    for field in ("next", "back", "page"):
        split = "\r\nSet-Cookie: a=b\r\n\r\n<script>"
        yield f"line ends in {field}", 404, *page.posted({"undo": "0", field: split})


def leads(page):
    """Have the login lead to other sites."""
    for address in (
        "//evil.example/", "/\\evil.example/", "/\t/evil.example/", "http:/", "http://evil.example/",
        "javascript:alert(1)", "///evil.example/message", "/\r\nSet-Cookie: a=b", "//?",
    ):  # fmt: skip
        form = urlencode({"token": page.token, "next": address}).encode()
        head = {"Cookie": None, "Origin": f"http://{page.own}"}
        found, _ = page.request("POST", "/login", form, head)
        home = found.status == 303 and found.getheader("Location") == "/"
        yield f"login that leads to {address!r}", True, home, ""


def shows(page):
    """Look at hostile messages; nothing of them may be more than text."""
    pages = {
        "the list": "/",
        "a search for markup": "/?words=" + quote(HOSTILE),
        "a search for SQL": "/?words=" + quote("' OR 1=1 -- %_"),
        "the course": "/course",
        "the doubtful": "/doubtful",
        **{f"read: {name}": f"/message?key={n}.M1.host" for n, name in enumerate(MAIL)},
    }
    for name, path in pages.items():
        status, text = page.asked(path=path)
        found = [each for each in NEVER if each in text]
        runs = text.count("<script") > 1 or text.count("<style") > 1
        yield name, 200, 0 if found or runs else status, text


@pytest.fixture(scope="module")
def served(tmp_path_factory, mail_classifier):
    """A server whose page shows a mailbox of hostile messages."""
    folder = tmp_path_factory.mktemp("attacked")
    save_classifier(str(folder / "m.nbspam"), mail_classifier)
    for part in ("cur", "new", "tmp"):
        (folder / "box" / part).mkdir(parents=True)
    for number, data in enumerate(MAIL.values()):
        (folder / "box" / "new" / f"{number}.M1.host").write_bytes(data)
    web = "--web", f"127.0.0.1:{free_port()}", "--review", str(folder / "box"), "--move"
    with serving(folder / "m.nbspam", folder, "--log", "none", *web) as found:
        yield found


@pytest.fixture(scope="module")
def page(served):
    return Page(next(w for w in served.errors.read_text().split() if "?token=" in w))


@pytest.mark.parametrize("attacks", [other_sites, other_names, wires, guesses, leads, shows])
def test_every_attack_gets_the_answer_it_should_get(served, page, attacks):
    told = served.errors.read_text()
    answers = [(what, should, status) for what, should, status, _ in attacks(page)]

    assert [answer for answer in answers if answer[1] != answer[2]] == []
    assert served.errors.read_text() == told


def test_mail_is_judged_while_ten_thousand_visitors_ask_for_the_page(served, page):
    get = (
        f"GET / HTTP/1.1\r\nHost: {page.own}\r\nCookie: {page.cookie}\r\nConnection: close\r\n\r\n"
    )
    room = asyncio.Semaphore(1000)  # files that this process may open
    statuses = Counter()

    async def visit():
        async with room:
            statuses[(await ask(page.port, get.encode()))[9:12]] += 1

    async def crowd():
        visits, wrong = asyncio.gather(*[visit() for _ in range(10_000)]), 0
        while not visits.done():
            answer = await ask(served.spamd, check(HAM))
            wrong += not answer.startswith(b"SPAMD/1.1 0 EX_OK")
            await asyncio.sleep(0.02)
        return wrong

    assert asyncio.run(crowd()) == 0
    assert statuses[b"200"] > 0
    assert set(statuses) <= {b"200", b"503", b""}
