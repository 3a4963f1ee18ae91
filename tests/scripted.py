"""Connections without a network: one end of a wire, and a judge and a teacher with a script."""

import asyncio

from nbspam.counts.lessons import Outcome
from nbspam.decision import Cutoffs
from nbspam.errors import InputError, ModelFileError
from nbspam.server.choices import Access, ServerChoices, ServerLimits, Service
from nbspam.server.connection import Desk
from nbspam.server.judge import Judgement
from nbspam.server.metrics import Log, ServerTally
from nbspam.server.page.reviewer import Reviewer
from nbspam.settings import PRESETS
from nbspam.verdicts import Evidence, Explanation, Verdict
from serving import PATIENCE

RULE = Cutoffs(0.5, 0.5)
PASSWORD = b"open sesame"
UNSURE = b"Subject: perhaps\n\nperhaps\n"
ACCESS = Access("1" * 64)


def verdict_of(data):
    """Return a verdict that tells messages apart: by the words pills and perhaps, and size."""
    spam = 0.9 if b"pills" in data else 0.1 + len(data) % 97 / 1000
    label = "unsure" if b"perhaps" in data else "spam" if spam > 0.5 else "ham"
    return Verdict("-", label, {"ham": 1 - spam, "spam": spam})


class ScriptedJudge:
    """Judges at once, or when it is told to; fails on messages with the word failure."""

    def __init__(self):
        self.n_waiting = 0
        self.model_time = 1000.0
        self.settings = PRESETS["mail"]
        self.seconds_busy = 0.0
        self.seen = []
        self.users = []  # of the messages seen
        self.held_back = None  # a list of what waits, if the judge is to wait
        self.lesson = None  # what lists and verdicts teach

    def judge(self, data, explain=False, user=""):
        self.seen.append(data)
        self.users.append(user)
        done = asyncio.get_running_loop().create_future()
        if self.held_back is None:
            self._settle(done, data, explain)
        else:
            self.held_back.append((done, data, explain))
        return done

    def go_on(self):
        for waiting in self.held_back:
            if not waiting[0].done():
                self._settle(*waiting)
        self.held_back = None

    def _settle(self, done, data, explain):
        if b"failure" in data:
            done.set_exception(ModelFileError("m\udce9: cannot be read; give another"))
        elif b"our bug" in data:
            done.set_exception(ZeroDivisionError("words of mail"))
        elif b"no memory" in data:
            done.set_exception(MemoryError())
        else:
            verdict = verdict_of(data)
            rows = (Evidence("pi\x1bll", 2.5, "text", (0.0, 9.0)),)
            explanation = Explanation(verdict, "spam", "ham", 2.0, -0.5, rows)
            is_known = b"learned before" in data
            why = explanation if explain else None
            done.set_result(Judgement(verdict, RULE, why, is_known=is_known, lesson=self.lesson))


class ScriptedTeacher:
    """Learns every message once."""

    def __init__(self):
        self.n_waiting = 0
        self.known = {}
        self.users = []  # who taught
        self.told = []  # whether a person did

    def teach(self, data, label, user="", instead_of=None, told=True):
        self.users.append(user)
        self.told.append(told)
        done = asyncio.get_running_loop().create_future()
        before = self.known.get(data)
        if b"failure" in data:
            done.set_exception(OSError(28, "No space left on device"))
        elif b"GIF89a" in data:
            done.set_exception(InputError("the message looks like a GIF picture"))
        elif instead_of not in (None, before):
            done.set_result(Outcome(already_known=1))
        elif label is None:
            done.set_result(Outcome(unlearned=int(self.known.pop(data, None) is not None)))
        else:
            self.known[data] = label
            known, moved = before == label, before not in (None, label)
            done.set_result(
                Outcome(learned=int(before is None), already_known=int(known), moved=int(moved))
            )
        return done


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self):
        super().__init__({"sockname": ("127.0.0.1", 8025)})
        self.written = bytearray()
        self.is_ended = self.is_closed = self.is_aborted = self.is_paused = False

    def write(self, data):
        assert not self.is_ended
        assert not self.is_closed
        self.written += data

    def writelines(self, pieces):
        self.write(b"".join(pieces))

    def get_write_buffer_size(self):
        return len(self.written)  # nobody reads it

    def can_write_eof(self):
        return True

    def write_eof(self):
        assert not self.is_closed
        self.is_ended = True

    def close(self):
        self.is_closed = True

    def abort(self):
        self.is_closed = self.is_aborted = True

    def is_closing(self):
        return self.is_closed

    def pause_reading(self):
        assert not self.is_closed
        self.is_paused = True

    def resume_reading(self):
        self.is_paused = False


def desk(limits=None, log="none", mailboxes=None, waits=False, **choices):
    """Return a desk with a judge and a teacher that are scripted; call it in a running loop.

    mailboxes: those on the page, if any are.  waits: whether the judge waits until `go_on`.
    """
    chosen = ServerChoices(
        **{"model_path": "", "allows_tell": True, "password": PASSWORD, **choices}
    )
    judge, teacher, log = ScriptedJudge(), ScriptedTeacher(), Log(log)
    judge.held_back = [] if waits else None
    bounds = ServerLimits(**(limits or {}))
    service = Service(chosen, None, 1, (), bounds, log, ServerTally(2), ACCESS)
    reviewer = None
    if mailboxes is not None:
        reviewer = Reviewer(mailboxes, judge, teacher, bounds, log, chosen.moves)
    return Desk(service, judge, teacher, reviewer)


class Client:
    """One end of a connection of a kind; the other end is the desk."""

    def __init__(self, kind, at):
        self.desk = at
        self.wire = Wire()
        self.connection = kind(at)
        self.connection.connection_made(self.wire)

    async def send(self, *pieces):
        """Send pieces as a transport gives them: none while reading is paused."""
        for piece in pieces:
            for _ in range(99):
                if not self.wire.is_paused:
                    break
                await settled()
            else:
                raise AssertionError("the connection is not read any more")
            if self.wire.is_closed:
                break
            self.put(piece)
        await settled()
        return self

    def put(self, piece):
        """Let the connection read a piece, as a loop does: through its buffer."""
        while piece:
            buffer = self.connection.get_buffer(-1)
            size = min(len(piece), len(buffer))
            buffer[:size] = piece[:size]
            self.connection.buffer_updated(size)
            piece = piece[size:]

    async def end(self):
        """Shut our writing side."""
        if not (self.wire.is_closed or self.connection.eof_received()):
            self.wire.close()
        await settled()
        return self

    @property
    def answer(self):
        return bytes(self.wire.written)

    @property
    def is_over(self):
        return self.wire.is_ended or self.wire.is_closed


async def go_on(at):
    """Let the judge of a desk judge what waits, and its clients be answered."""
    at.judge.go_on()
    await settled()
    await settled()


async def until(true):
    async with asyncio.timeout(PATIENCE):
        while not (found := true()):
            await asyncio.sleep(0.005)
    return found


async def settled():
    """Let everything happen that can happen at once."""
    for _ in range(4):
        await asyncio.sleep(0)


def outcome_word(lesson):
    kinds = ("learned", "moved", "already_known", "unlearned", "unknown")
    return " ".join(kind for kind in kinds if getattr(lesson, kind))


def talk(kind, *pieces, prepare=None, ends=False, **choices):
    """Return the client after a conversation.

    prepare: called with the desk before it.  ends: whether the client then shuts its side.
    """

    async def converse():
        at = desk(**choices)
        if prepare is not None:
            prepare(at)
        client = await Client(kind, at).send(*pieces)
        return await client.end() if ends else client

    return asyncio.run(converse())


def full(at):
    """Let as many messages and lessons wait as may."""
    at.judge.n_waiting = at.teacher.n_waiting = at.limits.waiting
