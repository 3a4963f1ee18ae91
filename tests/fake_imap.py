"""A small IMAP server of the tests, in a thread: folders in memory, and any fault one asks for."""

import base64
import contextlib
import re
import select
import socket
import socketserver
import threading
from dataclasses import dataclass, field

from imapclient.imap_utf7 import decode, encode

PASSWORD = "s3cret-pässword"
BEFORE = "IMAP4rev1 SASL-IR AUTH=PLAIN AUTH=OAUTHBEARER AUTH=XOAUTH2"
AFTER = "IMAP4rev1 MOVE UIDPLUS IDLE SPECIAL-USE LIST-EXTENDED"


@dataclass
class FakeMessage:
    uid: int
    data: bytes  # with CRLF
    flags: set = field(default_factory=set)


@dataclass
class FakeFolder:
    validity: int
    use: str = ""
    following: int = 1
    messages: list = field(default_factory=list)

    def add(self, data, flags=()):
        self.messages.append(FakeMessage(self.following, data, set(flags)))
        self.following += 1
        return self.following - 1


class CutError(Exception):
    """The connection ends now."""


class FakeServer(socketserver.ThreadingTCPServer):
    """Accounts with one password; what clients ask is noted in `asked`.

    cut_before, cut_after: a number of a command (of all since the start), before which, or after
    whose effect and before whose answer, the connection ends.  cut_bytes: of answers that are sent
    before the next connection ends.
    answers: by command, what is answered instead of doing it.  refused: parts of messages, by UID,
    that no FETCH gets; breaks: it ends the connection, "silent": which says nothing any more.
    """

    allow_reuse_address = daemon_threads = True

    def __init__(self, after=AFTER, before=BEFORE):
        super().__init__(("127.0.0.1", 0), ImapHandler)
        self.port = self.server_address[1]
        self.after, self.before = after, before
        self.empty()
        self.namespaces = '(("" "/")) NIL NIL'
        self.greeting = b"* OK hello\r\n"
        self.permanent = r"* OK [PERMANENTFLAGS (\Seen \Deleted \*)] ok"
        self.answers, self.refused, self.asked, self.n_logins = {}, {}, [], 0
        self.breaks, self.states_next = False, True
        self.cut_before, self.cut_after, self.cut_bytes = set(), set(), None
        self.tokens = {"good-token"}
        self.most = None  # messages that an account may have
        self.lock = threading.Lock()

    def url(self, user="ann", folder=""):
        return f"imap://{user}@127.0.0.1:{self.port}/{folder}"

    # ---- what its user does ----

    def empty(self):
        trash = FakeFolder(13, "\\Trash")
        self.folders = {"INBOX": FakeFolder(11), "Junk": FakeFolder(12, "\\Junk"), "Trash": trash}

    def put(self, folder, *messages, flags=""):
        with self.lock:
            place = self.folders.setdefault(folder, FakeFolder(20 + len(self.folders)))
            for data in messages:
                place.add(data.replace(b"\n", b"\r\n"), flags.split())

    def contents(self, folder):
        with self.lock:
            place = self.folders.get(folder)
            return [(m.data.replace(b"\r\n", b"\n"), set(m.flags)) for m in place.messages]

    def bodies(self, folder):
        return [data for data, _ in self.contents(folder)]

    def _find(self, folder, data):
        found = self.folders[folder].messages
        return next(m for m in found if m.data.replace(b"\r\n", b"\n") == data)

    def move(self, data, source, target):
        with self.lock:
            message = self._find(source, data)
            self.folders[source].messages.remove(message)
            place = self.folders.setdefault(target, FakeFolder(20 + len(self.folders)))
            place.add(message.data, message.flags)

    def delete(self, data, folder):
        with self.lock:
            self.folders[folder].messages.remove(self._find(folder, data))

    def flag(self, data, folder, flags, change="+FLAGS"):
        with self.lock:
            message = self._find(folder, data)
            given = set(flags.split())
            message.flags = message.flags | given if change[0] == "+" else message.flags - given

    def renumber(self, folder):
        """Give a folder another UIDVALIDITY, and its messages other UIDs."""
        place = self.folders[folder]
        place.validity += 100
        for number, message in enumerate(place.messages, 1):
            message.uid = number
        place.following = len(place.messages) + 1

    def rename(self, folder, name):
        self.folders[name] = self.folders.pop(folder)


class ImapHandler(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self):
        self.selected, self.writes, self.following = None, False, 0
        with contextlib.suppress(CutError, OSError):
            self.send(self.server.greeting)
            while line := self.rfile.readline(1 << 20):
                self.answer(line.decode("utf-8", "surrogateescape").rstrip("\r\n"))

    def send(self, data):
        server = self.server
        if server.cut_bytes is not None:
            part = data[: server.cut_bytes]
            server.cut_bytes -= len(part)
            if len(part) < len(data):
                server.cut_bytes = None
                self.wfile.write(part)
                raise CutError
        self.wfile.write(data)

    def answer(self, line):
        tag, _, rest = line.partition(" ")
        command, _, words = rest.partition(" ")
        command = command.upper()
        if command == "UID":
            command, _, words = words.partition(" ")
            command = f"UID {command.upper()}"
        server = self.server
        number = len(server.asked)
        server.asked.append(f"{command} {words}")
        if number in server.cut_before:
            raise CutError
        said = server.answers.get(command)
        said = said.pop(0) if isinstance(said, list) and said else said
        if said:
            self.send(said.replace(b"TAG", tag.encode()) if isinstance(said, bytes) else b"")
            return
        with server.lock:
            out, last = self.do(command, words)
            if self.selected and self.selected.following > self.following:
                self.following = self.selected.following
                out += f"* {len(self.selected.messages)} EXISTS\r\n".encode()
        if number in server.cut_after:
            raise CutError
        self.send(out)
        if command == "IDLE":
            self.idle(tag)
            return
        self.send(f"{tag} {last}\r\n".encode("utf-8", "surrogateescape"))
        if command == "LOGOUT":
            raise CutError

    def do(self, command, words):
        """Return what is answered before the tagged line, and the tagged line."""
        method = getattr(self, "do_" + command.lower().replace(" ", "_"), None)
        if method is None:
            return b"", "BAD what?"
        found = method(words)
        return found if isinstance(found, tuple) else (found or b"", "OK done")

    # ---- commands ----

    def do_capability(self, _):
        shown = self.server.after if self.selected is not None else self.server.before
        return f"* CAPABILITY {shown}\r\n".encode()

    def do_noop(self, _):
        return b""

    do_subscribe = do_noop

    def do_logout(self, _):
        return b"* BYE bye\r\n"

    def do_login(self, words):
        _, _, size = words.partition(" ")
        self.send(b"+ \r\n")
        password = self.rfile.read(int(size[1:-1])).decode()
        self.rfile.readline()
        return b"", self.entered(password == PASSWORD)

    def do_authenticate(self, words):
        mechanism, _, first = words.partition(" ")
        if not first:
            self.send(b"+ \r\n")
            first = self.rfile.readline().decode().strip()
        said = base64.b64decode(first).decode()
        if mechanism == "PLAIN":
            return b"", self.entered(said.endswith(f"\0{PASSWORD}"))
        token = re.search("auth=Bearer ([^\1]*)", said)[1]
        return b"", self.entered(token in self.server.tokens)

    def entered(self, is_right):
        if not is_right:
            return "NO [AUTHENTICATIONFAILED] no"
        self.selected = ""
        self.server.n_logins += 1
        return f"OK [CAPABILITY {self.server.after}] in"

    def do_list(self, words):
        lines = []
        for name, place in self.server.folders.items():
            quoted = encode(name).decode().replace("\\", "\\\\").replace('"', '\\"')
            lines.append(f'* LIST ({place.use}) "/" "{quoted}"\r\n')
        return "".join(lines).encode()

    def do_namespace(self, _):
        return f"* NAMESPACE {self.server.namespaces}\r\n".encode()

    def place(self, words):
        name = re.search(r'"((?:[^"\\]|\\.)*)"', words)[1]
        return self.server.folders.get(decode(re.sub(r"\\(.)", r"\1", name).encode()))

    def do_status(self, words):
        place = self.place(words)
        if place is None:
            return b"", "NO [NONEXISTENT] none"
        name = words.partition(" (")[0]
        following = f" UIDNEXT {place.following}" * self.server.states_next
        return f"* STATUS {name} (UIDVALIDITY {place.validity}{following})\r\n".encode()

    def do_create(self, words):
        name = re.search(r'"(.*)"', words)[1]
        self.server.folders[name] = FakeFolder(20 + len(self.server.folders))

    def do_select(self, words, mode="READ-WRITE"):
        place = self.place(words)
        if place is None:
            return b"", "NO [NONEXISTENT] none"
        self.selected, self.writes = place, mode == "READ-WRITE"
        self.following = place.following
        keywords = sorted({f for m in place.messages for f in m.flags if f[0] != "\\"})
        flags = " ".join([r"\Seen \Deleted", *keywords])
        lines = [f"* {len(place.messages)} EXISTS", "* 0 RECENT", f"* FLAGS ({flags})"]
        lines.append(self.server.permanent)
        if place.validity:
            lines.append(f"* OK [UIDVALIDITY {place.validity}] ok")
        lines += [f"* OK [UIDNEXT {place.following}] ok"] * self.server.states_next
        return "".join(line + "\r\n" for line in lines).encode(), f"OK [{mode}] done"

    def do_examine(self, words):
        return self.do_select(words, "READ-ONLY")

    def do_uid_search(self, words):
        window, _, rest = words.partition(" ")
        first, _, last = window.partition(":")
        found = self.selected.messages[int(first) - 1 : None if last == "*" else int(last)]
        found = [m for m in found if ("\\Deleted" in m.flags) == (rest.split()[0] == "DELETED")]
        if "UNSEEN" in rest:
            found = [m for m in found if "\\Seen" not in m.flags]
        for is_not in (False, True):
            if words := re.findall(rf" {'un' * is_not}keyword (\S+?)\)?(?= |$)", rest.lower()):
                found = [m for m in found if bool({*words} & {*map(str.lower, m.flags)}) != is_not]
        uids = [str(m.uid) for m in found]
        lines = [" ".join(uids[n : n + 100]) for n in range(0, len(uids) or 1, 100)]  # as mox does
        return "".join(f"* SEARCH {line}\r\n" for line in lines).encode()

    def chosen(self, words):
        uids = {int(uid) for uid in words.partition(" ")[0].split(",")}
        return [(n, m) for n, m in enumerate(self.selected.messages, 1) if m.uid in uids]

    def do_uid_fetch(self, words):
        out = []
        for number, message in self.chosen(words):
            if self.server.refused.get(message.uid, "?") in words:
                if self.server.breaks == "silent":
                    self.rfile.readline()
                if self.server.breaks:
                    raise CutError
                return b"".join(out), "NO [SERVERBUG] broken"
            parts = [f"UID {message.uid}".encode()]
            if "RFC822.SIZE" in words:
                parts.append(f"RFC822.SIZE {len(message.data)}".encode())
            if "FLAGS" in words:
                parts.append(f"FLAGS ({' '.join(sorted(message.flags))})".encode())
            if "INTERNALDATE" in words:
                parts.append(b'INTERNALDATE "01-Jan-2026 00:00:00 +0000"')
            if "HEADER.FIELDS" in words:
                names = re.search(r"FIELDS \(([^)]*)\)", words)[1].split()
                head = message.data.partition(b"\r\n\r\n")[0].split(b"\r\n")
                lines = [s + b"\r\n" for s in head if s.split(b":")[0].decode().upper() in names]
                data = b"".join([*lines, b"\r\n"])
                label = f"BODY[HEADER.FIELDS ({' '.join(names)})] {{{len(data)}}}\r\n"
                parts.append(label.encode() + data)
            elif "BODY.PEEK[]" in words:
                most = re.search(r"\[\]<0\.(\d+)>", words)
                data = message.data[: int(most[1])] if most else message.data
                label = "BODY[]<0>" if most else "BODY[]"
                parts.append(f"{label} {{{len(data)}}}\r\n".encode() + data)
            out.append(f"* {number} FETCH (".encode() + b" ".join(parts) + b")\r\n")
        return b"".join(out)

    def do_uid_store(self, words):
        assert self.writes
        given = set(re.search(r"\((.*)\)", words)[1].split())
        for _, message in self.chosen(words):
            message.flags = message.flags | given if "+FLAGS" in words else message.flags - given

    def do_uid_copy(self, words, moves=False):
        place = self.place(words)
        if place is None:
            return b"", "NO [TRYCREATE] none"
        chosen = [message for _, message in self.chosen(words)]
        total = sum(len(f.messages) for f in self.server.folders.values())
        if self.server.most is not None and total + len(chosen) > self.server.most:
            return b"", "NO [OVERQUOTA] full"
        old = ",".join(str(message.uid) for message in chosen)
        new = ",".join(str(place.add(message.data, message.flags)) for message in chosen)
        said = f"OK [COPYUID {place.validity} {old} {new}] done" if chosen else "OK nothing"
        if not moves:
            return b"", said
        return f"* {said}\r\n".encode() + b"".join(self.expunged(chosen)), "OK moved"

    def do_uid_move(self, words):
        assert self.writes
        return self.do_uid_copy(words, moves=True)

    def expunged(self, chosen):
        for message in chosen:
            number = self.selected.messages.index(message) + 1
            self.selected.messages.remove(message)
            yield f"* {number} EXPUNGE\r\n".encode()

    def do_uid_expunge(self, words):
        gone = [m for _, m in self.chosen(words) if "\\Deleted" in m.flags]
        return b"".join(self.expunged(gone))

    def do_idle(self, _):
        return b"+ idling\r\n"

    def idle(self, tag):
        """Tell of changes until the client has enough."""
        last = None
        while not select.select([self.connection], [], [], 0.01)[0]:
            with self.server.lock:
                now = [(m.uid, frozenset(m.flags)) for m in self.selected.messages]
            if last not in (None, now):
                self.wfile.write(f"* {len(now)} EXISTS\r\n".encode())
            last = now
        if self.rfile.readline().strip().upper() == b"DONE":
            self.send(f"{tag} OK done\r\n".encode())


@contextlib.contextmanager
def fake_server(**options):
    server = FakeServer(**options)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def refused_port():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        return closed.getsockname()[1]
