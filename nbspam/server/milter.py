"""The milter protocol, which Postfix and Sendmail speak (version 6).

A packet is its length in 4 bytes, big-endian, a command byte, and data.  A connection can carry
several messages; the server gathers head and body of each, judges it at its end, and adds headers.
"""

import struct
from collections import Counter
from collections.abc import Callable, Iterator

from nbspam.mail.verdict_headers import headers_of, names_of
from nbspam.server.connection import Connection, Desk, TroubleError
from nbspam.server.judge import Judgement, known_as, user_of

_LENGTH = struct.Struct(">I")
_MAX_PACKET = 1 << 18  # bytes; a body comes in pieces of 65,535, a header in one packet
_OPTIONS = struct.Struct(">III")  # version, actions, protocol
_VERSION = 6
_ADD_HEADERS, _CHANGE_HEADERS, _QUARANTINE = 0x01, 0x10, 0x20
_ACTIONS = _ADD_HEADERS | _CHANGE_HEADERS | _QUARANTINE
# Commands that the mail system need not send: HELO, unknown commands, DATA; and commands that need
# no reply: connections, senders, recipients, headers, their end, the body.
_NO_HELO, _NO_UNKNOWN, _NO_DATA = 0x02, 0x100, 0x200
_NO_REPLY = 0x80 | 0x1000 | 0x4000 | 0x8000 | 0x40000 | 0x80000
_SPACE = 0x100000  # header values come with the space before them
_PROTOCOL = _NO_HELO | _NO_UNKNOWN | _NO_DATA | _NO_REPLY | _SPACE
_CONNECT, _HELO, _MAIL, _RCPT, _HEADER, _END_OF_HEAD = b"C", b"H", b"M", b"R", b"L", b"N"
_BODY, _END, _ABORT, _DATA, _UNKNOWN = b"B", b"E", b"A", b"T", b"U"
_MACROS, _NEGOTIATE, _QUIT, _QUIT_NEW = b"D", b"O", b"Q", b"K"
_CONTINUE, _ACCEPT, _TEMPFAIL = b"c", b"a", b"t"
_REPLY, _INSERT, _CHANGE, _HOLD = b"y", b"i", b"m", b"q"
# Commands that a mail system expects an answer to, and the flag by which it agrees to none.
_ANSWERED = {
    _CONNECT: 0x1000,
    _HELO: 0x2000,
    _MAIL: 0x4000,
    _RCPT: 0x8000,
    _DATA: 0x10000,
    _UNKNOWN: 0x20000,
    _END_OF_HEAD: 0x40000,
    _BODY: 0x80000,
    _HEADER: 0x80,
}
_REJECTED = b"550 5.7.1 The message is spam\0"
_FORGED = b"x-spam-"  # the beginning of names that only a filter should write


def packet(command: bytes, data: bytes = b"") -> bytes:
    """Return a packet."""
    return _LENGTH.pack(1 + len(data)) + command + data


class MilterConnection(Connection):
    """A mail system that asks about one message after another."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.buffer = bytearray()
        self.actions = 0
        self.unanswered = 0  # flags of commands to which no answer is expected
        self.filters = {each.lower().encode() for each in names_of(desk.choices.headers)}
        # The names of its headers that only filters write, in lower case, each with NUL behind it:
        # a sender may write a million, and objects would take seven times the memory.
        self.ours = bytearray()
        self.tag = (desk.choices.headers.subject_tag or "").encode()
        self.subjects = bytearray()  # each with NUL behind it
        self.queue = ""
        self.resolved = b""  # the address of the next recipient, if the mail system states it
        self.obeys = False  # packets are taken from the buffer
        self.is_refused = False  # there was no room for the message; the answer at its end says so
        self.recipients: set[str] = set()  # two at most

    def received(self, data: bytes) -> None:
        """Take in packets."""
        if data and not self.buffer:  # a packet begins
            self.expect(self.desk.limits.body_seconds)
        try:
            self.in_spite_of_memory(self.buffer.extend, data)
            self.in_spite_of_memory(self.obey)
        except ValueError as error:
            self.trouble("malformed", str(error))
        except MemoryError:  # a packet is lost, and with it where the next one begins
            self.crowded = True
            self.trouble("busy", "out of memory; try again")
        if self.pending is not None:
            # What follows a message's end waits for the verdict, and its sender, too.
            self.transport.pause_reading()
        elif self.heard_all and not self.closes:
            self.cut_short()

    def in_spite_of_memory(self, work: Callable[..., object], *arguments: bytes) -> None:
        """Do a piece of work; if memory runs out, drop the message and go on.

        Its other packets are still read, and its end is answered.
        """
        try:
            work(*arguments)
        except MemoryError:
            self.desk.make_room()
            self.give_way()
            work(*arguments)

    def obey(self) -> None:
        """Obey the packets that are whole, up to the end of a message."""
        self.obeys = True
        try:
            while self.pending is None and not self.closes and (found := self._next()):
                self.handle(*found)
        finally:
            self.obeys = False

    def received_all(self) -> None:
        """Close: the mail system has gone, or will read the answer and go."""
        if self.pending is None:
            self.cut_short()

    def _next(self) -> tuple[bytes, bytes] | None:
        """Return the next packet's command and data, if it is whole."""
        if len(self.buffer) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self.buffer)
        if not 0 < length <= _MAX_PACKET:
            raise ValueError(f"a packet of {length} bytes")
        end = _LENGTH.size + length
        if len(self.buffer) < end:
            return None
        found = bytes(self.buffer[_LENGTH.size : end])
        del self.buffer[:end]
        self.expect_packet()
        return found[:1], found[1:]

    def expect_packet(self) -> None:
        """Give a packet that has begun its time, or a mail system the time between packets.

        Between packets it waits for its own clients, and gives them up itself.
        """
        limits = self.desk.limits
        self.expect(limits.body_seconds if self.buffer else limits.silent_seconds)

    def handle(self, command: bytes, data: bytes) -> None:
        """Obey a packet."""
        if command == _NEGOTIATE:
            self.negotiate(data)
        elif command == _MACROS:
            self.note_macros(data)
        elif command in (_QUIT, _ABORT, _QUIT_NEW):
            self.forget()
            if command == _QUIT:
                self.close()
        elif command == _END:
            self.gather(_BODY, data)
            try:
                message = b"" if self.is_refused else self.message()
            except MemoryError:
                self.give_way()
            user, facts = user_of(self.recipients), {"queue": self.queue, "asked": "milter"}
            if self.is_refused:
                self.facts = lambda: {"user": user, **facts}
                self.trouble("busy")
            else:
                self.ask(message, False, self.answer, user or None, **facts)
        elif command in _ANSWERED:
            self.gather(command, data)
            if not _ANSWERED[command] & self.unanswered:
                self.transport.write(packet(_CONTINUE))
        else:
            raise ValueError(f"an unknown command {command!r}")

    def negotiate(self, data: bytes) -> None:
        """Agree on the packets that the mail system sends, and on the changes that it allows."""
        if len(data) < _OPTIONS.size:
            raise ValueError("too short an offer")
        version, actions, protocol = _OPTIONS.unpack_from(data)
        if version < 2:
            raise ValueError(f"version {version} of the protocol")
        self.actions, self.unanswered = actions & _ACTIONS, protocol & _PROTOCOL
        agreed = _OPTIONS.pack(min(version, _VERSION), self.actions, self.unanswered)
        self.transport.write(packet(_NEGOTIATE, agreed))

    def note_macros(self, data: bytes) -> None:
        """Keep the queue's identifier, and the address to which a recipient leads."""
        words = data[1:].split(b"\0")
        macros = dict(zip(words[::2], words[1::2], strict=False))
        if b"i" in macros:
            self.queue = macros[b"i"].decode("latin-1")
        self.resolved = macros.get(b"{rcpt_addr}", b"").rstrip(b".")  # as Sendmail ends it

    def gather(self, command: bytes, data: bytes) -> None:
        """Add a piece to the message."""
        if command == _MAIL:
            queue = self.queue  # the macros of a command come before it
            self.forget()
            self.rests, self.queue = False, queue
        elif command == _RCPT:
            if len(self.recipients) < 2:
                # Senders may write <"ann"@x.example>; Sendmail resolves ann@x.example to ann.
                address = self.resolved if b"@" in self.resolved else data.partition(b"\0")[0]
                self.recipients.add(known_as(address.decode("utf-8", "replace")))
            self.resolved = b""
        elif command == _HEADER:
            name, _, value = data.partition(b"\0")
            value = value.removesuffix(b"\0")
            space = b"" if self.unanswered & _SPACE else b" "
            self.add(name + b":" + space + value + b"\n")
            name, room = name.lower(), self.desk.limits.small_bytes
            is_ours = name in self.filters or name.startswith(_FORGED)
            if is_ours and len(self.ours) < room:
                self.ours += name + b"\0"
            if name == b"subject" and self.tag and len(self.subjects) < room:
                self.subjects += value.strip() + b"\0"
        elif command == _END_OF_HEAD:
            self.add(b"\n")
        elif command == _BODY:
            self.add(data)

    def add(self, piece: bytes) -> None:
        """Add bytes to the message, if there is room for it."""
        try:
            if not self.is_refused:
                self.keep(piece)
        except TroubleError:
            self.give_way()

    def give_way(self) -> None:
        """Drop the message; the answer at its end says that there was no room."""
        self.is_refused = True
        self.let_go()

    def forget(self) -> None:
        """Forget the message: it was answered, or will not be sent to its end."""
        self.let_go()
        self.ours, self.subjects, self.queue = bytearray(), bytearray(), ""
        self.recipients.clear()
        self.rests, self.is_refused = True, False

    # ---- answering ----

    def answer(self, judgement: Judgement) -> None:
        """Answer with the fate of the message, and the headers to write into it."""
        self.finish(b"".join(self.orders(judgement)))

    def fate(self, judgement: Judgement) -> str | None:
        """Return whether the message is rejected, held, or its subject tagged."""
        choices, spam = self.desk.choices, judgement.verdict.posterior["spam"]
        if choices.reject_above is not None and spam > choices.reject_above:
            return "rejected"
        above = choices.quarantine_above
        if above is not None and spam > above and self.actions & _QUARANTINE:
            return "held"
        changes = self.actions & _CHANGE_HEADERS and any(self.tags())
        return "tagged" if changes and judgement.verdict.label == "spam" else None

    def orders(self, judgement: Judgement) -> Iterator[bytes]:
        """Yield the packets that answer a message's end."""
        fate = self.fate(judgement)
        if fate == "rejected":
            yield packet(_REPLY, _REJECTED)
            return
        yield from self.removals()
        if fate == "tagged":
            yield from self.tags()
        if self.actions & _ADD_HEADERS:
            wanted = self.desk.choices.headers._replace(learned=judgement.lesson)
            headers = headers_of(judgement.verdict, judgement.rule, wanted)
            for place, (name, value) in enumerate(headers):
                yield self.written(_INSERT, place, name.encode(), value.encode())
        if fate == "held":
            spam = judgement.verdict.posterior["spam"]
            yield packet(_HOLD, f"nbspam: spam, probability {spam:.4f}\0".encode())
        yield packet(_CONTINUE)

    def tags(self) -> Iterator[bytes]:
        """Yield the packets that tag each subject, of which readers show different ones."""
        subjects = bytes(self.subjects).split(b"\0")[:-1] or [b""]
        for number, subject in enumerate(subjects, 1):
            if not subject.startswith(self.tag):
                yield self.written(_CHANGE, number, b"Subject", self.tag + subject)

    def removals(self) -> Iterator[bytes]:
        """Yield the packets that remove headers which the sender has forged."""
        if self.actions & _CHANGE_HEADERS:
            names = Counter(bytes(self.ours).split(b"\0")[:-1])
            for name, times in sorted(names.items()):
                # From the last one on, because the numbers of those behind it change.
                for number in range(times, 0, -1):
                    yield packet(_CHANGE, _LENGTH.pack(number) + name.title() + b"\0\0")

    def written(self, command: bytes, place: int, name: bytes, value: bytes) -> bytes:
        """Return the packet that writes a header."""
        space = b" " if self.unanswered & _SPACE else b""
        return packet(command, _LENGTH.pack(place) + name + b"\0" + space + value + b"\0")

    def finish(self, answer: bytes) -> None:
        """Answer a message's end, and go on with the next one."""
        self.transport.write(answer)
        self.forget()
        if self.desk.ends or self.crowded:
            self.close()
            return
        self.expect_packet()
        self.read_on()
        if not self.obeys:  # else one refusal would nest in the other
            self.received(b"")

    def refuse(self, kind: str, why: str) -> None:
        """Let the message pass, or ask for it to be sent again; an error ends the connection."""
        if kind in {"malformed", "idle"}:
            self.close()
        elif self.desk.choices.passes and kind in {"busy", "late"}:
            self.finish(b"".join(self.removals()) + packet(_ACCEPT))
        else:
            self.finish(packet(_TEMPFAIL))
