"""What the server tells of itself: one line for each answer, and counts that scrapers read."""

import asyncio
import json
import os
import re
import socket
import struct
from types import SimpleNamespace

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from nbspam.errors import InputError
from nbspam.server import metrics
from nbspam.server.choices import ServerChoices, ServerLimits, Service
from nbspam.server.judge import open_served
from nbspam.server.lessons import TaughtModels
from nbspam.server.metrics import LESSONS, TROUBLES, VERDICTS, Log, ServerTally, open_metrics
from nbspam.server.watch import AccountTally, _metrics_served
from nbspam.server.worker import _EventLoopWorker
from nbspam.workers import fork
from serving import ask, connected, rest_of
from support import SPAM, write_files


def written(kind, call):
    """Return what a log of a kind writes when a function is called with it."""
    read, write = os.pipe()
    with os.fdopen(read) as found:
        with os.fdopen(write):
            call(Log(kind, write))
        return found.read()


def answered(**facts):
    return lambda log: log.answered(**facts)


def failed(error):
    return lambda log: log.failed("oh", error)


# ---- the log ----


def test_a_line_has_what_is_known():
    took = metrics.milliseconds(0.0015)
    facts = {"user": "ann", "queue": None, "asked": "", "verdict": "spam", "ms": took}

    assert written("text", answered(**facts)) == "user=ann verdict=spam ms=1.5\n"
    found = json.loads(written("json", answered(**facts)))
    assert found == {"user": "ann", "verdict": "spam", "ms": 1.5}
    assert written("none", answered(**facts)) == ""


def test_who_listens_is_told_to_people_and_to_scripts():
    def tell(log):
        log.listens("spamd", "127.0.0.1:783", 2, "spam.nb")
        log.listens("http", "[::1]:11333", 1, "spam.nb")

    for kind in ("text", "none"):
        assert written(kind, tell) == (
            "nbspam serve: spamd on 127.0.0.1:783, 2 workers, model spam.nb\n"
            "nbspam serve: http on [::1]:11333, 1 worker, model spam.nb\n"
        )
    assert json.loads(written("json", tell).splitlines()[0]) == {
        "listening": "spamd", "address": "127.0.0.1:783", "workers": 2, "model": "spam.nb",
    }  # fmt: skip


def test_errors_are_told_by_kind_and_place_as_their_words_may_be_those_of_mail():
    try:
        int(b"secret words")
    except ValueError as error:
        bug = failed(error)
    for kind in ("text", "none"):  # what the owner must know is always written
        pattern = r"nbspam: oh: ValueError test_metrics\.py:\d+\n"
        assert re.fullmatch(pattern, written(kind, bug))
    assert json.loads(written("json", bug))["note"].startswith("oh: ValueError ")
    limited = "out of memory or processes; allow more (ulimit -v, -u, MemoryMax=, TasksMax=)"
    refusals = MemoryError(), BlockingIOError(11, "x"), RuntimeError("can't start new thread")
    for error, why in (
        (InputError(f"{300 * 'm'}: what to do"), f"{300 * 'm'}: what to do"),
        (OSError(28, "No space left on device"), "[Errno 28] No space left on device"),
        *((each, limited) for each in refusals),
    ):
        assert written("text", failed(error)) == f"nbspam: oh: {why}\n"
        assert json.loads(written("json", failed(error))) == {"note": f"oh: {why}"}


def test_what_fails_in_the_event_loop_is_told_without_words_of_mail():
    async def converse(log):
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_EventLoopWorker(SimpleNamespace(log=log), 0).failed)
        loop.call_soon(int, b"secret words")
        loop.call_exception_handler({"message": "a task was lost"})
        loop.call_exception_handler({"message": "m", "exception": ConnectionResetError()})
        await asyncio.sleep(0)

    lost, bug = written("text", lambda log: asyncio.run(converse(log))).splitlines()
    assert lost == "nbspam: internal error: a task was lost"
    assert re.fullmatch(r"nbspam: internal error: ValueError events\.py:\d+", bug)


async def test_a_model_that_cannot_be_read_or_goes_is_logged_once_an_hour_and_counted(
    own_model, tmp_path, monkeypatch, capfd
):
    users = write_files(tmp_path / "users", {"ann/model": b"rubbish", "bob/model": b"rubbish"})
    choices, tally = ServerChoices(str(own_model), users=str(users)), ServerTally(1)
    model, log = open_served(choices.model_path), Log("text")
    service = Service(choices, model, 1, (), ServerLimits(), log, tally)
    judge = _EventLoopWorker(service, 0).new_desk(TaughtModels(choices.model_path, None)).judge
    for lesson in range(2):
        os.utime(own_model, (lesson, lesson))
        for user in ("ann", "bob"):
            assert (await judge.judge(SPAM, user=user)).verdict.label == "spam"
    assert re.findall("/users/(.*)/model:", capfd.readouterr().err) == ["ann", "bob"]
    own_model.write_bytes(b"")
    for hour in (1, 1, 2):
        clock = SimpleNamespace(monotonic=lambda hour=hour: 3600 * hour)
        monkeypatch.setattr("nbspam.server.worker.time", clock)
        assert (await judge.judge(SPAM)).verdict.label == "spam"
    own_model.unlink()
    own_model.symlink_to(own_model)
    assert (await judge.judge(SPAM)).verdict.label == "spam"
    own_model.unlink()
    assert (await judge.judge(SPAM)).verdict.label == "unsure"
    judge.end()
    first, again, away, gone = capfd.readouterr().err.splitlines()
    assert first == again
    assert "cannot read the model: Too many levels of symbolic links; " in away
    assert first.startswith(f"nbspam: the model as it was goes on judging: {own_model}: empty")
    assert gone == f"nbspam: all are unsure: {own_model}: the model has gone; put it back"
    assert tally.total("trouble model") == 9


@pytest.mark.parametrize("kind", ["text", "json"])
def test_what_strangers_send_stays_on_its_line_and_short(kind):
    user = "ann\nverdict=ham \x1b[31m" + "x" * 5000
    line = written(kind, answered(user=user, verdict="spam"))
    assert line.count("\n") == 1
    assert "\x1b" not in line
    assert "\\nverdict=ham" in line
    assert len(line) < 500
    line = written(kind, answered(user="ann verdict=ham", verdict="spam", why="no room"))
    assert line in (
        "user=ann\\x20verdict=ham verdict=spam why=no room\n",
        '{"user": "ann verdict=ham", "verdict": "spam", "why": "no room"}\n',
    )
    # Nor is it longer than what a pipe takes in one piece.
    facts = dict.fromkeys(("user", "queue", "asked", "verdict"), "\N{GRINNING FACE}" * 5000)
    assert len(written(kind, answered(**facts)).encode()) < 4096


def test_lines_that_nobody_reads_are_dropped_and_counted_and_hold_up_nobody():
    read, write = os.pipe()
    os.close(read)
    Log("text", write).answered(verdict="spam")
    os.close(write)
    Log("text", write).noted("nobody reads this")

    for kind in ("text", "json"):
        for read, write in (os.pipe(), [end.detach() for end in socket.socketpair()]):
            drops = []
            log = Log(kind, write, lambda drops=drops: drops.append(1))
            try:
                for number in range(9_000):  # a pipe takes 64 KB
                    log.answered(user="ann", number=number)
                assert drops
                begun = b""
                while begun.count(b"\n") < 9_000 - len(drops):
                    begun += os.read(read, 1 << 20)
                assert begun.count(b"\n") == 9_000 - len(drops)
                assert begun.endswith(b"\n")
                log.noted("somebody reads again")
                assert os.read(read, 1 << 20).count(b"\n") == 1
            finally:
                os.close(read)
                os.close(write)


# ---- counts ----


def samples(tally, **facts):
    """Return every value of the metrics, by its name and labels, as a scraper reads them."""
    families = text_string_to_metric_families(open_metrics(tally, facts).decode())
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }


def test_a_total_is_the_sum_over_all_processes_and_outlives_them():
    tally = ServerTally(4)
    tally.add("spam", 5)
    for row in (1, 2, 3):
        pid = fork()
        if pid == 0:
            tally.take_row(row)
            tally.add("spam", 2)
            tally.set_gauge("queue", 7)
            tally.set_gauge("shares", row == 2)
            os._exit(0)
        os.waitpid(pid, 0)

    assert tally.total("spam") == 5 + 3 * 2
    assert tally.row(2, "spam") == 2
    assert tally.total("queue") == 21
    tally.clear(2)  # its process has ended: nothing waits there, but what it did was done
    assert (tally.total("queue"), tally.total("shares")) == (14, 0)
    assert tally.total("spam") == 11
    with pytest.raises(KeyError):  # our bug
        tally.add("eggs")


def test_metrics_tell_messages_lessons_and_troubles_by_kind_and_times_as_a_histogram():
    tally = ServerTally(1)
    for label, seconds in zip("sshhh", (0.0005, 0.001, 0.0015, 0.3, 70.0), strict=True):
        tally.note({"s": "spam", "h": "ham"}[label], seconds)
    tally.add("lesson moved")
    tally.add("trouble busy", 4)
    tally.set_gauge("held_bytes", 1024)
    found = samples(tally, model_age_seconds=12.5)

    for name, value in (
        (("messages_total", "spam"), 2), (("messages_total", "unsure"), 0),
        (("lessons_total", "moved"), 1), (("troubles_total", "busy"), 4),
        (("held_bytes",), 1024), (("model_age_seconds",), 12.5),
    ):  # fmt: skip
        assert found[f"nbspam_{name[0]}", *name[1:]] == value
    for name, kinds in (("messages", VERDICTS), ("lessons", LESSONS), ("troubles", TROUBLES)):
        assert {key[-1] for key in found if key[0] == f"nbspam_{name}_total"} == set(kinds)
    assert found["nbspam_answer_seconds_count",] == 5
    assert found["nbspam_answer_seconds_sum",] == pytest.approx(70.303)
    up_to = {key[1]: value for key, value in found.items() if key[0].endswith("_bucket")}
    for bound, number in (("0.001", 2), ("0.002", 3), ("0.5", 4), ("60.0", 4), ("+Inf", 5)):
        assert up_to[bound] == number  # bounds are included
    assert len(up_to) == len(metrics.BOUNDS) + 1
    assert list(up_to.values()) == sorted(up_to.values())


def test_clients_that_are_silent_or_go_hold_up_no_other_and_are_not_logged(capfd):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port, served = listener.getsockname()[1], _metrics_served(listener, AccountTally())
        with connected(port), served, connected(port) as gone, connected(port, 5) as slow:
            gone.send(b"GET ")
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("2i", 1, 0))
            gone.close()  # resets the other side
            assert b"nbspam_messages_total" in ask(port, b"GET / HTTP/1.0\r\n\r\n", timeout=5)
            slow.send(b"G")
            assert b"nbspam_messages_total" in rest_of(slow)
    assert capfd.readouterr().err == ""
