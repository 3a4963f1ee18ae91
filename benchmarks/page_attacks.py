"""Attack the page of `nbspam serve --web --review`, and print what each attack is answered.

usage: python benchmarks/page_attacks.py MODEL [--flood 10000]

MODEL is a model of mail; a copy is served.  The mailbox is made here, of hostile messages.  An
attack whose answer is not the one it should get is marked, and the status is 1 then.
"""

import argparse
import asyncio
import re
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from itertools import chain
from pathlib import Path
from urllib.parse import quote, urlencode

from serving_trial import SPAMD, Server, ask, request

HOSTILE = (
    "{{ 7*7 }}{% raw %}</title><script>document.title = 1</script><img src=x onerror=alert(1)>"
    "<svg/onload=alert(1)>'\"><style>*{display:none}</style>\u202eexe.\u200btxt\u2066"
)
NEVER = ("\u202e", "\u200b", "\u2066", "<img", "<svg/", ">49<", "\0")  # in a page
WORDS = " ".join(f"w{number}" for number in range(100_000))
NESTED = "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(5000))


def mail(subject: str, body: str, name: str = HOSTILE) -> bytes:
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

    def __init__(self, address: str) -> None:
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", address)
        assert found
        self.port, self.token = int(found[1]), found[2]
        self.own = f"127.0.0.1:{self.port}"
        head = self.raw(f"GET /?token={self.token} HTTP/1.1\r\nHost: {self.own}\r\n\r\n")
        found = re.search(r"Set-Cookie: ([^;]+)", head)
        assert found
        self.cookie = found[1]
        found = re.search(r'name="form" value="([^"]+)"', self.asked()[1])
        assert found
        self.form = found[1]

    def raw(self, text: str) -> str:
        """Return all that bytes, given as Latin-1, are answered."""
        with socket.create_connection(("127.0.0.1", self.port), 120) as wire:
            wire.sendall(text.encode("latin-1"))
            wire.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: wire.recv(1 << 16), b"")).decode("latin-1")

    def asked(
        self,
        method: str = "GET",
        path: str = "/",
        body: bytes = b"",
        head: Mapping[str, str | None] = {},
    ) -> tuple[int, str]:
        """Return the status and the text for a request with our session.

        head: further lines, or others in the place of ours; None: no such line.
        """
        wire = HTTPConnection("127.0.0.1", self.port, timeout=300)
        wire.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        lines = {"Host": self.own, "Cookie": self.cookie, "Content-Length": str(len(body))}
        for name, value in {**lines, **head}.items():
            if value is not None:
                wire.putheader(name, value)
        wire.endheaders(body)
        found = wire.getresponse()
        text = found.read().decode()
        wire.close()
        return found.status, text

    def posted(self, fields: Mapping[str, str]) -> tuple[int, str]:
        """Return the status and the text for a form of ours."""
        body = urlencode({"form": self.form, **fields}).encode()
        return self.asked("POST", "/tell", body, {"Origin": f"http://{self.own}"})


Answer = tuple[str, int, int, str]  # the attack, the status it should get, the one it got, a line


def one_line(text: str) -> str:
    """Return the first words of an answer."""
    page = re.search(r"<title>([^<]*)", text)
    return (f"page: {page[1]}" if page else text.partition("\n")[0])[:72]


def other_sites(page: Page, key: str) -> Iterator[Answer]:
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
    for method, status in (("GET", 404), ("PUT", 405), ("DELETE", 405), ("OPTIONS", 405)):
        yield f"teaching by {method}", status, *page.asked(method, "/tell", form)
    for dest, mode in (("script", "no-cors"), ("iframe", "navigate"), ("empty", "cors")):
        fetch = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Dest": dest, "Sec-Fetch-Mode": mode}
        yield f"embedded as {dest}", 403, *page.asked(head=fetch)


def other_names(page: Page) -> Iterator[Answer]:
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


def wires(page: Page) -> Iterator[Answer]:
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


def guesses(page: Page) -> Iterator[Answer]:
    """Guess sessions, tokens and keys."""
    name, _, session = page.cookie.partition("=")
    for what, value in (
        ("altered", session[:-2] + ("A" if session[-2] != "A" else "B") + session[-1]),
        ("of another time", f"9999999999.{session.partition('.')[2]}"),
        ("of another user", session.replace("..", ".eA.")),
        ("that is the token", page.token),
    ):
        yield f"a session {what}", 403, *page.asked(head={"Cookie": f"{name}={value}"})
    tossed = {"Cookie": f"{name}=x; {page.cookie}"}
    yield "a tossed cookie beside ours", 200, *page.asked(head=tossed)
    for what, token in (
        ("cut", page.token[:-1]), ("longer", page.token + "A"), ("in small", page.token.lower()),
        ("of NUL", "%00"), ("of 50 KB", "a" * 50_000), ("of a user", f"eA.{page.token}"),
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


def shows(page: Page) -> Iterator[Answer]:
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
        began = time.perf_counter()
        status, text = page.asked(path=path)
        took = 1000 * (time.perf_counter() - began)
        found = [each for each in NEVER if each in text]
        runs = text.count("<script") > 1 or text.count("<style") > 1
        line = f"{len(text) / 1e3:,.0f} KB, {took:,.0f} ms {found or ''}"
        yield name, 200, 0 if found or runs else status, line


async def flood(server: Server, page: Page, number: int) -> tuple[int, str]:
    """Return how many messages were refused while so many ask for the page, and a line."""
    get = (
        f"GET / HTTP/1.1\r\nHost: {page.own}\r\nCookie: {page.cookie}\r\nConnection: close\r\n\r\n"
    )
    statuses: dict[str, int] = {}
    most, waits, wrong = server.megabytes(), [], 0
    base = most

    async def visit() -> None:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", page.port)
            writer.write(get.encode())
            head = await reader.read(12)
            status = head[9:12].decode() or "closed"
            await reader.read()
            writer.close()
        except OSError as error:
            status = type(error).__name__
        statuses[status] = statuses.get(status, 0) + 1

    visits = asyncio.gather(*[visit() for _ in range(number)])
    while not visits.done():
        began = time.perf_counter()
        answer = await ask(server.paths[SPAMD], request(b"Subject: x\n\nlunch on friday\n"))
        waits.append(time.perf_counter() - began)
        wrong += not answer.startswith(b"SPAMD/1.1 0 EX_OK")
        most = max(most, server.megabytes())
        await asyncio.sleep(0.02)
    found = ", ".join(f"{n:,} {status}" for status, n in sorted(statuses.items()))
    line = (
        f"{found}; {len(waits)} messages judged meanwhile, {wrong} refused, the slowest in"
        f" {max(waits):.2f} s, half in {1000 * statistics.median(waits):.0f} ms;"
        f" {base:.0f} -> {most:.0f} MB"
    )
    return wrong, line


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("--flood", type=int, default=1000)
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, box = folder / "m.nbspam", folder / "box"
        model.write_bytes(options.model.read_bytes())
        for part in ("cur", "new", "tmp"):
            (box / part).mkdir(parents=True)
        for number, data in enumerate(MAIL.values()):
            (box / "new" / f"{number}.M1.host").write_bytes(data)
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        web = ("--web", f"127.0.0.1:{port}", "--review", str(box), "--move")
        server = Server(folder, model, *web)
        try:
            page = Page((folder / "errors").read_text().splitlines()[0])
            sites, names = other_sites(page, "0.M1.host"), other_names(page)
            for attack in chain(sites, names, wires(page), guesses(page), shows(page)):
                what, should, status, text = attack
                wrong += status != should
                mark = "" if status == should else f"  <-- should be {should}"
                print(f"{what:32} {status} {one_line(text)}{mark}", flush=True)
            refused, text = asyncio.run(flood(server, page, options.flood))
            print(f"{options.flood:,} visitors at once: {text}")
        finally:
            server.end()
        errors = (folder / "errors").read_text().splitlines()
        told = [line for line in errors[1:] if " on " not in line]
        print(f"{len(told)} lines on standard error", *told, sep="\n")
    sys.exit(bool(wrong or refused or told))


if __name__ == "__main__":
    main()
