"""Files and folders at URLs are read as those of this machine; every failure has its line."""

import gzip
import http.server
import io
import os
import re
import sys
import threading
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import ClassVar

import pytest

import nbspam as library
from nbspam.errors import InputError, LostError
from nbspam.sources import mailboxes, remote
from nbspam.sources.files import kind_by_name
from nbspam.sources.items import SourceOptions, read_items
from nbspam.sources.remote import open_url
from support import FROM, HAM, SPAM, complains, packed, write_files

fsspec = pytest.importorskip("fsspec")
from fsspec.implementations.memory import MemoryFileSystem  # noqa: E402

TREE = {
    "mails/ham/1.eml": HAM,
    "mails/ham/2.eml": HAM + b"2\n",
    "mails/spam/1.eml": SPAM,
    "mails/spam/old.mbox": FROM + SPAM + b"2\n\n" + FROM + SPAM + b"3\n\n",
    "mails/spam/.hidden": b"x",
}


class Flaky(MemoryFileSystem):
    """Files in memory, behind a connection that fails as often as a test says."""

    protocol = "flaky"
    store: ClassVar = {}
    pseudo_dirs: ClassVar = [""]
    errors: ClassVar = []  # raised one after the other by reads of a file
    n_opened = 0

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.replace("flaky://", "memory://"))

    def _open(self, path, mode="rb", **options):
        file = super()._open(path, mode, **options)
        type(self).n_opened += mode == "rb"
        return Broken(file) if mode == "rb" else file


class Broken:
    def __init__(self, file):
        self._file, self.size = file, file.size
        file.seek(0)

    def __getattr__(self, name):
        return getattr(self._file, name)

    def read(self, size):
        if Flaky.errors and (error := Flaky.errors.pop(0)) is not None:
            raise error
        return self._file.read(min(size, 1000))

    def close(self):
        pass


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(remote, "RETRY_PAUSES", (0.0, 0.0))
    fsspec.register_implementation("flaky", Flaky, clobber=True)
    Flaky.errors, Flaky.n_opened = [], 0
    yield
    for system in (MemoryFileSystem, Flaky):
        system.store.clear()
        system.pseudo_dirs[:] = [""]


def put(url, data):
    with fsspec.open(url, "wb") as file:
        file.write(data)
    return url


def uploaded(tree, base="memory://"):
    for name, data in tree.items():
        put(base + name, data)
    return base


def found(base, path, **options):
    items = read_items([base + path], options=SourceOptions(**options))
    return [(item.name.removeprefix(base), item.label, item.read()) for item in items]


KEPT = {"k/1.dovecot": gzip.compress(HAM), "k/2.emlx": b"%d\n%s<?xml" % (len(SPAM), SPAM)}
TABLE = b"label,text\nham,hello you\nspam,buy now\n"
TREES = {
    "classes": (TREE, "mails"),
    "a folder with a slash": (TREE, "mails/"),
    "message": (TREE, "mails/ham/1.eml"),
    "messages as Dovecot and Apple Mail keep them": (KEPT, "k"),
    "mbox": (TREE, "mails/spam/old.mbox"),
    "table": ({"t/texts.csv": TABLE}, "t/texts.csv"),
    "lines without an ending": ({"t/texts": b"ham\thello\nspam\tbuy\nham\tx\n"}, "t/texts"),
    "Maildir": ({"m/cur/1:2,S": HAM, "m/new/2": SPAM, "m/tmp/3": SPAM}, "m"),
    "MH": ({"m/.mh_sequences": b"", "m/1": HAM, "m/2": SPAM, "m/x": b""}, "m"),
    "parts": ({f"c/{p}/{k}/1": HAM for p in "ab" for k in ("ham", "spam")}, "c"),
}


@pytest.mark.parametrize(("tree", "path"), TREES.values(), ids=TREES)
def test_a_url_is_read_as_the_same_path_of_this_machine(tree, path, tmp_path):
    here = found(f"{write_files(tmp_path, tree)}/", path)
    assert here
    assert found(uploaded(tree), path) == here


def test_a_fifo_in_a_folder_at_a_url_is_skipped(tmp_path):
    folder = write_files(tmp_path / "box", {"1.eml": HAM})
    os.mkfifo(folder / "2.eml")
    (folder / "3.eml").symlink_to("1.eml")
    assert [item.read() for item in read_items([folder.as_uri()])] == [HAM, HAM]


def test_an_index_leads_from_its_own_place():
    tree = {"full/index": b"spam ../data/1\nham ../data/2\n", "data/1": SPAM, "data/2": HAM}
    there = found(uploaded(tree), "full/index", format="trec")
    assert there == [("data/1", "spam", SPAM), ("data/2", "ham", HAM)]


@pytest.mark.parametrize("kind", ["tar", "zip", "parquet"])
def test_packed_files_are_read_at_urls(kind):
    file = io.BytesIO()
    if kind == "parquet":
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        rows = [SPAM, SPAM + b"2\n", SPAM + b"3\n", HAM, HAM + b"2\n"]
        labels = ["spam"] * 3 + ["ham"] * 2
        parquet.write_table(pa.table({"message": rows, "label": labels}), file)
    data = file.getvalue() or packed(TREE, kind)

    items = read_items([put(f"memory://packed/mail.{kind}", data)])
    assert sorted((item.label, item.read()) for item in items) == [
        ("ham", HAM), ("ham", HAM + b"2\n"),
        ("spam", SPAM), ("spam", SPAM + b"2\n"), ("spam", SPAM + b"3\n"),
    ]  # fmt: skip


def test_a_url_begins_with_its_scheme_and_a_query_is_no_part_of_the_name(tmp_path):
    assert kind_by_name("https://x.example/mail.tar.gz?signature=a.eml") == "tar"
    assert kind_by_name("https://x.example/mail.csv?a=/b") == "csv"
    assert kind_by_name("/here/what?.eml") == "eml"
    write_files(tmp_path, {"http:/x": HAM})
    assert found(f"{tmp_path}/", "http://x") == [("http://x", None, HAM)]


def test_commands_take_urls_wherever_they_take_paths(nbspam, model, tmp_path):
    base = uploaded(TREE)
    assert "read 5 messages (2 ham, 3 spam)" in nbspam("train", f"{base}mails")[1]
    output = nbspam("classify", f"{base}mails/spam")[1]
    assert [line.split("\t")[2] for line in output.splitlines()] == [
        "memory://mails/spam/1.eml",
        "memory://mails/spam/old.mbox#1",
        "memory://mails/spam/old.mbox#2",
    ]
    more = put("memory://new/9.eml", SPAM + b"nine\n")
    assert "learned 1" in nbspam("update", "--spam", more)[1]
    assert "moved 1" in nbspam("relabel", "--to", "ham", more)[1]
    assert nbspam("unlearn", more)[0] == 0
    assert nbspam("eval", f"{base}mails", "--cv", "2")[0] == 0
    assert nbspam("explain", more)[0] == 0
    names = tmp_path / "names"
    names.write_bytes(b"memory://new/9.eml\0")
    assert nbspam("classify", "--files0-from", names)[1].count("\n") == 1

    rows = b"colour,shape,good\n" + b"red,round,yes\ngreen,flat,no\n" * 5
    url = put("memory://t/fruit.csv", rows)
    fruit = ("-m", tmp_path / "fruit.nbspam")
    assert nbspam("table", "train", "--target", "good", url, *fruit)[0] == 0
    assert nbspam("table", "classify", url, *fruit)[1].count("\n") == 10


def test_the_library_takes_urls_as_paths():
    base = uploaded(TREE)
    model = library.train(Path(f"{base}mails"))
    name = "memory://mails/ham/1.eml"
    assert model.classify(Path(name)).name == name
    assert [verdict.name for verdict in model.classify_many([Path(name)])] == [name]


def test_many_small_files_bring_advice_once_and_mailboxes_none(monkeypatch, nbspam, trained):
    monkeypatch.setattr(mailboxes, "_MANY", 3)
    uploaded({f"many/{part}/{n}.eml": HAM for part in "ab" for n in range(4)})
    uploaded({f"few/{n}.mbox": FROM + HAM for n in range(9)})

    _, output, errors = nbspam("classify", "memory://many")
    assert output.count("\n") == 8
    assert errors.count("more than 3 files of one message each; every one is a request") == 1
    assert "pack them into mbox, tar or parquet files" in errors
    assert nbspam("classify", "memory://few")[2] == ""


# ---- failures ----


@pytest.mark.parametrize("path", ["none", "mails/none.eml", "mails/none/"])
def test_what_is_not_there_is_named(path, nbspam, trained):
    url = uploaded(TREE) + path
    said = f"{url}: no such file or folder; check the URL"
    assert complains(nbspam("classify", url), 1, said)
    if not path.endswith("/"):  # the URL of a file, for which `predict` prints a line
        assert nbspam("predict", url, url)[:2] == (1, "\n\n")


def test_unknown_schemes_and_missing_packages_are_named(monkeypatch, nbspam, trained):
    said = "nosuch://b/x: cannot be read (Protocol not known: nosuch); check the URL"
    assert complains(nbspam("classify", "nosuch://b/x"), 1, said)
    said = "Install nopack to read it"
    fsspec.register_implementation("nopack", "no_such_package.X", clobber=True, errtxt=said)
    said = "nopack://b/x: needs another package (Install nopack to read it); install it by pip"
    assert complains(nbspam("classify", "nopack://b/x"), 2, said)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    said = "s3://bucket/1.eml: needs fsspec; install it with: pip install 'nbspam[remote]'"
    assert complains(nbspam("classify", "s3://bucket/1.eml"), 2, said)


NoCredentialsError = type("NoCredentialsError", (Exception,), {})  # as S3's library has it
OtherError = type("OtherError", (Exception,), {})  # an error that no standard class stands for


@pytest.mark.parametrize(
    "error", [PermissionError("Forbidden"), NoCredentialsError("Unable to locate credentials")]
)
def test_missing_credentials_are_said_once_and_not_tried_again(error, nbspam, trained):
    put("flaky://mail.mbox", FROM + HAM)
    Flaky.errors = [error]
    found = nbspam("classify", "flaky://mail.mbox")
    said = f"flaky://mail.mbox: refused, or no credentials ({error}); give them as its library"
    assert complains(found, 2, said, "see docs/howto/remote.md")
    assert Flaky.n_opened == 1


LOST = [ConnectionResetError(104, "Connection reset"), TimeoutError(), OtherError("x\ny")]


@pytest.mark.parametrize("error", LOST, ids=repr)
def test_a_lost_connection_is_made_again_twice(error):
    data = os.urandom(50_000)
    put("flaky://data", data)
    Flaky.errors = [None, None, error, None, error, error, None]
    with open_url("flaky://data") as stream:
        assert stream.read() == data
    assert not Flaky.errors
    assert Flaky.n_opened == 4

    Flaky.errors = [error] * 3
    reason = re.escape((str(error).splitlines() or [type(error).__name__])[0])
    told = rf"flaky://data: failed \({reason}\), and again in 2 more attempts; nothing"
    with open_url("flaky://data") as stream, pytest.raises(LostError, match=told):
        stream.read()
    Flaky.errors = [TypeError("a bug"), None]  # a mistake of a file system is not retried
    with open_url("flaky://data") as stream, pytest.raises(InputError, match="cannot be read"):
        stream.read()


@pytest.mark.parametrize("source", ["mails", "mails/spam/old.mbox"])
def test_of_mail_behind_a_lost_connection_nothing_is_learned(source, nbspam, untouched):
    uploaded(TREE, "flaky://")
    for command in (["train"], ["update"], ["update", "--spam"]):
        Flaky.errors = [None] * 2 + [ConnectionResetError(104, "Connection reset")] * 3
        found = nbspam(*command, f"flaky://{source}", *(["-j", "1"]))
        assert complains(found, 1, "failed ([Errno 104] Connection reset), and again")


def test_a_worker_that_loses_the_connection_ends_the_command(nbspam, trained):
    uploaded({f"many/ham/{n}.eml": HAM for n in range(600)}, "flaky://")
    Flaky.errors = [ConnectionResetError(104, "Connection reset")] * 3
    found = nbspam("classify", "flaky://many", "-j", "2")
    assert complains(found, 1, "failed")


def test_a_file_shorter_than_it_is_said_to_be_is_lost(monkeypatch):
    put("flaky://data", b"x" * 5000)
    monkeypatch.setattr(Broken, "read", lambda self, size: self._file.read(size)[:3])
    with open_url("flaky://data") as stream:
        monkeypatch.setattr(Broken, "read", lambda self, size: b"")
        with pytest.raises(LostError, match="ended at byte 0 of 5,000"):
            stream.read()


def test_nothing_of_fsspec_is_imported_for_paths_of_this_machine(folder, tmp_path):
    import subprocess

    code = (
        "import sys; from nbspam.cli.main import exit_status;"
        f"exit_status(['train', {str(folder)!r}, '-m', {str(tmp_path / 'm')!r}]);"
        "print([n for n in ('fsspec', 'pyarrow', 'tarfile', 'zipfile',"
        " 'nbspam.sources.remote', 'nbspam.sources.archives') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


# ---- http ----


pytest.importorskip("aiohttp")


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
def site(kind, folder):
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
        ("ham/1.eml", [None]), ("ham/1.eml?signature=x", [None]), ("box.mbox", [None, None]),
        ("texts.csv", ["ham", "spam"]), ("lines", ["ham", "spam", "ham"]),
        ("mail.tar.gz", ["ham", "ham", "spam", "spam"]), ("ham/", [None, None]),
    ],
)  # fmt: skip
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


def test_a_whole_file_that_comes_again_goes_on_where_it_was_or_is_lost_if_shorter(folder):
    data = os.urandom(300_000)
    (folder / "data").write_bytes(data)
    with serving(folder, Server) as base, remote.open_url(f"{base}data") as stream:
        head = stream.read(1000)
        stream.raw.disconnect()
        assert head + stream.read() == data
        stream.seek(10)
        assert stream.read(5) == data[10:15]
    with serving(folder, Server) as base, remote.open_url(f"{base}endless/data") as stream:
        stream.seek(5000)
        with pytest.raises(LostError, match="ended before byte 5,000"):
            stream.read()


@pytest.mark.parametrize(("status", "code", "said"), [
    (404, 1, "no such file or folder; check the URL"),
    (403, 2, "refused, or no credentials (403, message='Forbidden'"),
    (401, 2, "refused, or no credentials (401"), (410, 1, "cannot be read (410"),
    *((status, 1, f"failed ({status}") for status in (408, 429, 500)),
    (503, 1, "failed (503"),
])  # fmt: skip
def test_what_a_server_answers_is_said_in_one_line(status, code, said, site, nbspam, trained):
    url = f"{site}status/{status}?a.eml"
    assert complains(nbspam("classify", url, "--strict"), code, url, said)


def test_a_server_that_refuses_the_connection_is_not_called_lost(nbspam, trained):
    said = "http://127.0.0.1:1/a.eml: failed (Cannot connect to host 127.0.0.1:1"
    assert complains(nbspam("classify", "http://127.0.0.1:1/a.eml"), 1, said, "; check the URL")


def test_of_a_file_that_is_cut_off_nothing_is_learned(site, nbspam, untouched):
    for path in ("cut/mail.mbox", "cut/mail.eml"):
        found = nbspam("update", "--spam", site + path)
        assert complains(found, 1, f"{site}{path}: failed (")
