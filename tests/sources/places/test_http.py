"""Mail on web servers: those that send parts of files, and those that send them only whole."""

import http.server
import os
import threading
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus

import pytest

from nbspam.sources import remote
from nbspam.sources.items import read_items
from support import FROM, HAM, SPAM, complains, packed, write_files

pytest.importorskip("aiohttp")
pytest.importorskip("fsspec")


class Server(http.server.SimpleHTTPRequestHandler):
    """Sends files whole, as Python's own server does, and does as the path says."""

    protocol_version = "HTTP/1.1"
    requests: list[str] = []  # noqa: RUF012 - of all of them

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.requests.append(self.path)
        if self.path.startswith("/status/"):
            self.send_error(int(self.path.split("/")[2].partition("?")[0]))
        elif self.path.startswith("/cut/"):
            self.cut()
        elif self.path.startswith("/endless/"):
            self.send_response(HTTPStatus.OK)  # of unknown length
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(FROM + SPAM)
            self.close_connection = True
        else:
            super().do_HEAD() if self.command == "HEAD" else super().do_GET()

    def do_HEAD(self):
        Server.do_GET(self)

    def cut(self):
        """Say that ten thousand bytes come, and send fewer."""
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Length", "10000")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(FROM + SPAM)
        self.close_connection = True


class Parts(Server):
    """Sends parts of files, as most servers do."""

    def end_headers(self):
        self.send_header("Accept-Ranges", "bytes")
        super().end_headers()

    def do_GET(self):
        asked = self.headers.get("Range")
        path = self.translate_path(self.path)
        if asked is None or not os.path.isfile(path):
            super().do_GET()
            return
        self.requests.append(self.path)
        size = os.path.getsize(path)
        first, last = asked.removeprefix("bytes=").split("-")
        start = int(first) if first else size - int(last)
        end = min(int(last), size - 1) if last and first else size - 1
        with open(path, "rb") as file:
            file.seek(start)
            data = file.read(end + 1 - start)
        self.send_response(HTTPStatus.PARTIAL_CONTENT)
        self.send_header("Content-Range", f"bytes {start}-{end}/{size}")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def serving(folder, handler):
    handler.requests.clear()
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(handler, directory=folder)
    ) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(params=[Server, Parts], ids=["whole files", "parts of files"])
def kind(request):
    return request.param


@pytest.fixture
def site(kind, folder, monkeypatch):
    monkeypatch.setattr(remote, "PAUSES", (0.0, 0.0))
    mail = {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*.eml"))}
    files = {
        "box.mbox": FROM + HAM + b"\n" + FROM + SPAM + b"\n",
        "texts.csv": b"label,text\nham,hello\nspam,buy\n",
        "lines": b"ham\thello\nspam\tbuy\nham\tx\n",
        "mail.tar.gz": packed(mail, "tar.gz"),
        "mail.zip": packed({"ham/1": HAM}, "zip"),
    }
    with serving(write_files(folder, files), kind) as base:
        yield base


@pytest.mark.parametrize(
    ("path", "labels"),
    [
        ("ham/1.eml", [None]),
        ("ham/1.eml?signature=x", [None]),
        ("box.mbox", [None, None]),
        ("texts.csv", ["ham", "spam"]),
        ("lines", ["ham", "spam", "ham"]),
        ("mail.tar.gz", ["ham", "ham", "spam", "spam"]),
        ("ham/", [None, None]),
    ],
)
def test_files_and_listed_folders_are_read(path, labels, site, folder):
    items = list(read_items([site + path]))

    assert [item.label for item in items] == labels
    if path.startswith("ham"):
        assert items[0].read() == (folder / "ham" / "1.eml").read_bytes()


def test_what_is_read_from_its_end_needs_a_server_that_sends_parts(site, kind, nbspam, trained):
    found = nbspam("classify", f"{site}mail.zip")
    if kind is Parts:
        assert found[1].endswith(f"{site}mail.zip#ham/1\n")
    else:
        assert complains(found, 1, "the server sends it only from its beginning; download it")


def test_a_file_of_unknown_length_is_read_if_its_reader_begins_at_the_beginning(
    site, nbspam, trained
):
    assert nbspam("classify", f"{site}endless/1.mbox")[1].count("\n") == 1
    found = nbspam("classify", f"{site}endless/1.zip")
    assert complains(found, 1, "1.zip: the server sends it only from its beginning; download it")


def test_a_whole_file_that_comes_again_goes_on_where_it_was(folder):
    data = os.urandom(300_000)
    (folder / "data").write_bytes(data)
    with serving(folder, Server) as base, remote.open_url(f"{base}data") as stream:
        head = stream.read(1000)
        stream.raw.disconnect()
        assert head + stream.read() == data
        stream.seek(10)
        assert stream.read(5) == data[10:15]


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (404, 1, "no such file or folder; check the URL"),
        (403, 2, "refused, or no credentials (403, message='Forbidden'"),
        (401, 2, "refused, or no credentials (401"),
        (410, 1, "cannot be read (410"),
        (500, 1, "connection lost (500"),
        (503, 1, "connection lost (503"),
    ],
)
def test_what_a_server_answers_is_said_in_one_line(status, code, said, site, nbspam, trained):
    url = f"{site}status/{status}?a.eml"
    assert complains(nbspam("classify", url, "--strict"), code, url, said)


def test_of_a_file_that_is_cut_off_nothing_is_learned(site, nbspam, trained):
    before = trained.read_bytes()
    for path in ("cut/mail.mbox", "cut/mail.eml"):
        found = nbspam("update", "--spam", site + path)
        assert complains(found, 1, f"{site}{path}: connection lost (")
        assert trained.read_bytes() == before
