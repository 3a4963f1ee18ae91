"""One line for each answer: text or JSON, in one piece, without control characters."""

import asyncio
import json
import os
import re
import socket
from functools import partial
from types import SimpleNamespace

from nbspam.errors import InputError
from nbspam.server.metrics import Log
from nbspam.server.worker import _EventLoopWorker


def written(kind, call):
    """Return what a log of a kind writes when a function is called with it."""
    read, write = os.pipe()
    with os.fdopen(read) as found:
        with os.fdopen(write):
            call(Log(kind, write))
        return found.read()


def answered(**facts):
    return lambda log: log.answered(**facts)


def test_a_line_has_what_is_known():
    facts = {"user": "ann", "queue": None, "asked": "", "verdict": "spam", "ms": 1.5}

    assert written("text", answered(**facts)) == "user=ann verdict=spam ms=1.5\n"
    assert json.loads(written("json", answered(**facts))) == {
        "user": "ann", "verdict": "spam", "ms": 1.5,
    }  # fmt: skip
    assert written("none", answered(**facts)) == ""


def test_errors_are_told_by_kind_and_place_as_their_words_may_be_those_of_mail():
    def fail(log):
        try:
            int(b"secret words")
        except ValueError as error:
            log.failed("a worker ends", error)

    pattern = r"nbspam: a worker ends: ValueError test_logs\.py:\d+\n"
    for kind in ("text", "none"):  # what the owner must know is always written
        assert re.fullmatch(pattern, written(kind, fail))
    assert json.loads(written("json", fail))["note"].startswith("a worker ends: ValueError ")
    for error, why in (
        (InputError("m.nb: not a model; give one"), "m.nb: not a model; give one"),
        (OSError(28, "No space left on device"), "[Errno 28] No space left on device"),
    ):
        fail = partial(Log.failed, what="oh", error=error)
        assert written("text", fail) == f"nbspam: oh: {why}\n"


def test_what_fails_in_the_event_loop_is_told_without_words_of_mail():
    def fail(log):
        async def converse():
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(_EventLoopWorker(SimpleNamespace(log=log), 0).failed)
            loop.call_soon(int, b"secret words")
            loop.call_exception_handler({"message": "a task was lost"})
            loop.call_exception_handler({"message": "m", "exception": ConnectionResetError()})
            await asyncio.sleep(0)

        asyncio.run(converse())

    lost, bug = written("text", fail).splitlines()
    assert lost == "nbspam: internal error: a task was lost"
    assert re.fullmatch(r"nbspam: internal error: ValueError events\.py:\d+", bug)


def test_what_strangers_send_stays_on_its_line_and_short():
    for kind in ("text", "json"):
        user = "ann\nverdict=ham \x1b[31m" + "x" * 5000
        line = written(kind, answered(user=user, verdict="spam"))

        assert line.count("\n") == 1
        assert "\x1b" not in line
        assert len(line) < 500
        # Nor is it longer than what a pipe takes in one piece.
        facts = dict.fromkeys(("user", "queue", "asked", "verdict"), "\N{GRINNING FACE}" * 5000)
        assert len(written(kind, answered(**facts)).encode()) < 4096


def test_mail_goes_on_if_the_log_cannot_be_written():
    read, write = os.pipe()
    os.close(read)
    Log("text", write).answered(verdict="spam")
    os.close(write)
    Log("text", write).told("nobody reads this")


def test_who_listens_is_told_to_people_and_to_scripts():
    def tell(log):
        log.listens("spamd", "127.0.0.1:783", 2, "spam.nb")
        log.listens("http", "[::1]:11333", 1, "spam.nb")

    shown = "nbspam serve: spamd on 127.0.0.1:783, 2 workers, model spam.nb\n"
    for kind in ("text", "none"):
        found = written(kind, tell)
        assert found.startswith(shown)
        assert found.endswith("nbspam serve: http on [::1]:11333, 1 worker, model spam.nb\n")
    assert json.loads(written("json", tell).splitlines()[0]) == {
        "listening": "spamd", "address": "127.0.0.1:783", "workers": 2, "model": "spam.nb",
    }  # fmt: skip


def test_lines_for_which_a_full_pipe_has_no_room_are_dropped_and_counted():
    for kind in ("text", "json"):
        read, write = os.pipe()
        drops = []
        log = Log(kind, write, partial(drops.append, 1))
        try:
            for number in range(9_000):  # a pipe takes 64 KB
                log.answered(user="ann", number=number)
            assert drops
            begun = os.read(read, 1 << 20).decode()
            assert begun.count("\n") == 9_000 - len(drops)
            assert begun.endswith("\n")
            log.told("somebody reads again")
            assert os.read(read, 1 << 20).count(b"\n") == 1
        finally:
            os.close(read)
            os.close(write)


def test_a_socket_that_nobody_reads_holds_up_nobody():
    ours, theirs = socket.socketpair()
    drops = []
    with ours, theirs:
        log = Log("text", ours.fileno(), lambda: drops.append(1))
        for _ in range(9_000):
            log.answered(verdict="spam")
    assert drops
