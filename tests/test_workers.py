"""Workers, forked or an engine's: they give the same models, lose nothing, count nothing twice."""

import multiprocessing
import os
import pickle
import resource
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from nbspam import train
from nbspam.errors import InputError, NbspamError
from nbspam.sources.items import Item, read_items
from nbspam.store.text import model_lines
from nbspam.tokens.items_to_messages import with_data
from nbspam.workers import (
    _VERSIONS,
    PROTOCOL,
    answer_chunk,
    available_cores,
    ordered_map,
    workers_of,
)
from serving import until
from support import ROOT, complains


def square(n):
    return n * n


def fail(n=3):
    raise InputError(f"x: broken {n}") if n == 3 else ZeroDivisionError("nobody expected it")


def kill(n):
    os.kill(os.getpid(), signal.SIGKILL)


def killed_once(marker, n):
    """Return n; the first call with 5 kills its process."""
    if n == 5 and not marker.exists():
        marker.touch()
        kill(n)
    return n


def slow_at_first(n):
    time.sleep(0.5 * (n == 0))
    return n


class Sum:
    """Adds up; each worker has one of its own."""

    def __init__(self):
        self.total = 0

    def add(self, n):
        self.total += n

    def last(self):
        return self.total


@pytest.fixture
def client():
    """A Dask client of two worker processes on this machine, for one test: some kill them."""
    reason = "dask.distributed is not installed (nbspam[cluster])"
    distributed = pytest.importorskip("distributed", reason=reason)
    how = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(2, **how) as cluster,
        distributed.Client(cluster, set_as_default=False) as made,
    ):
        yield made


@pytest.fixture
def workers(request):
    """Workers of a kind: a number of forked processes, or those of an engine."""
    kind = request.param
    if isinstance(kind, int):
        yield kind
    elif kind == "dask":
        with workers_of(request.getfixturevalue("client"), 1) as found:
            yield found
    else:
        # A fork of a process with threads, as pools have, would be warned of.
        spawned = {"mp_context": multiprocessing.get_context("spawn")}
        made = ThreadPoolExecutor(3) if kind == "threads" else ProcessPoolExecutor(2, **spawned)
        with made as pool, workers_of(pool, 1) as found:
            yield found


DASK = pytest.param("dask", marks=pytest.mark.slow)


@pytest.mark.parametrize("workers", [2, 3, "processes", DASK], indirect=True)
def test_results_come_in_order_and_errors_as_they_are(workers):
    assert list(ordered_map(square, range(50), workers)) == [n * n for n in range(50)]
    with pytest.raises(InputError, match="x: broken 3"):
        list(ordered_map(fail, [3, 3], workers))
    with pytest.raises(ZeroDivisionError) as caught:
        list(ordered_map(fail, range(2), workers))
    assert "nobody expected it" in caught.value.__notes__[0]
    with pytest.raises(InputError, match="x: broken"):
        list(ordered_map(square, range(4), workers, fail))


@pytest.mark.parametrize(
    ("workers", "said"),
    [
        (2, r"ended from outside.*--jobs 1"),
        (
            "processes",
            r"^--engine ProcessPool.*: a worker.* ended .*\); try again, or without --engine$",
        ),
    ],
    indirect=["workers"],
)
def test_a_worker_that_is_killed_is_one_clear_line(workers, said):
    with pytest.raises(NbspamError, match=said):
        list(ordered_map(kill, range(4), workers))


@pytest.mark.parametrize("workers", [2, 3, "threads"], indirect=True)
def test_one_slow_chunk_lets_the_others_not_run_away_and_ends_neither_stream_nor_order(workers):
    drawn = []
    results = ordered_map(slow_at_first, (drawn.append(n) or n for n in range(1000)), workers)
    next(results)
    assert len(drawn) < 20
    results.close()
    assert list(ordered_map(slow_at_first, range(100), workers)) == [*range(100)]


@pytest.mark.parametrize(("jobs", "n"), [(1, 20), (2, 20), (3, 20), (50, 3)])
def test_every_process_calls_last_once_after_its_chunks(jobs, n):
    counter = Sum()
    results = list(ordered_map(counter.add, range(n), jobs, counter.last))
    assert results[:n] == [None] * n
    assert len(results) == n + min(jobs, n)
    assert sum(results[n:]) == sum(range(n))


@pytest.mark.parametrize("workers", ["threads"], indirect=True)
def test_every_chunk_of_an_engine_begins_with_a_fresh_copy_even_in_threads(workers):
    counter = Sum()
    results = list(ordered_map(counter.add, range(5), workers, counter.last))
    assert results == [None, 0, None, 1, None, 2, None, 3, None, 4]
    assert counter.total == 0


# ---- forked processes ----


def test_a_container_has_the_cores_of_its_share(monkeypatch, tmp_path):
    monkeypatch.setattr("nbspam.workers._SHARE", tmp_path / "cpu.max")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(99), raising=False)
    for share, cores in [("", 99), ("max 100000", 99), ("150000 100000", 2), ("5000 100000", 1)]:
        (tmp_path / "cpu.max").write_text(share)
        assert available_cores() == cores


def test_only_several_chunks_are_worked_on_in_other_processes():
    assert list(ordered_map(lambda _: os.getpid(), [0], 4)) == [os.getpid()]
    assert os.getpid() not in list(ordered_map(lambda _: os.getpid(), range(4), 2))


class UnsendableError(Exception):
    """Holds what cannot be sent, or cannot be made again."""

    def __init__(self, n, why):
        super().__init__(f"{why} {n}")
        if n == 3:
            self.why = lambda: why


def fail_unsent(n):
    raise UnsendableError(n, "lost its number")


@pytest.mark.parametrize("workers", [2, "processes"], indirect=True)
@pytest.mark.parametrize("n", [3, 4])
def test_an_error_that_cannot_be_sent_is_still_told(workers, n):
    # A RuntimeError with its traceback; or itself, where Dask has taught pickle how.
    with pytest.raises(Exception, match=f"lost its number {n}"):
        list(ordered_map(fail_unsent, [n, n], workers))


def test_a_result_that_cannot_be_sent_is_an_error_in_the_caller():
    with pytest.raises(Exception, match="lambda"):
        list(ordered_map(lambda _: lambda: 0, range(4), 2))


def is_running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"  # ended, but not yet reaped


@pytest.mark.parametrize("handler", [signal.SIG_DFL, signal.SIG_IGN])  # as some daemons hand on
def test_no_worker_outlives_the_work(handler):
    before = signal.signal(signal.SIGCHLD, handler)
    try:
        pids = set(ordered_map(lambda _: os.getpid(), range(8), 2))
        assert not any(map(is_running, pids))
        with pytest.raises(NbspamError, match="ended from outside"):
            list(ordered_map(kill, range(4), 2))
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_processes_may_have_any_descriptors():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(2048, before[1]), before[1]))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1024)]  # more than select can take
    try:
        assert list(ordered_map(square, range(8), 2)) == [n * n for n in range(8)]
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


ORPHANS = """
import os, time
from nbspam.workers import ordered_map
results = ordered_map(lambda _: os.getpid(), range(1000), 2)
print(next(results), flush=True)
time.sleep(60)
"""


def test_a_worker_without_a_parent_ends_by_itself():
    child = subprocess.Popen([sys.executable, "-c", ORPHANS], stdout=subprocess.PIPE, text=True)
    pid = int(child.stdout.readline())
    child.kill()
    child.communicate()
    until(lambda: not is_running(pid))


def test_chunks_of_any_length_and_arrays_go_to_workers_and_back():
    for length in (1, 60_000, 300_000, 600_000, 3_000_000):
        chunks = [bytes([n]) * length for n in range(12)]
        assert list(ordered_map(lambda data: data * 2, chunks, 2)) == [data * 2 for data in chunks]
    arrays = [np.arange(n) for n in (0, 5, 100_000)] + [np.zeros((300, 200))[:, ::2]]
    for got in ordered_map(lambda _: arrays, range(3), 2):
        assert all(map(np.array_equal, got, arrays))
        got[2][0] = 1  # they are the caller's own


# ---- engines ----

MAILS = ROOT / "corpora" / "mail"
DAY = 20_000


def exported(model):
    return list(model_lines(model.classifier))


@pytest.fixture(scope="module")
def messages():
    """Several thousand labelled messages; some come again, and some in another class."""
    mails = [item._replace(data=item.read()) for item in read_items([str(MAILS)])]
    varied = [
        mail._replace(name=f"{mail.name}#{n}", data=mail.data + b"\nword%d again\n" % (n % 7))
        for n in range(8)
        for mail in mails
    ]
    return [*varied, *(mail._replace(label="ham") for mail in varied[200:300])]


@pytest.fixture(scope="module")
def alone(messages):
    return exported(train(messages, day=DAY))


def test_a_worker_of_another_version_is_refused():
    there = ("nbspam 9 with Python 2.7", b"not even a pickle")
    error, _ = pickle.loads(answer_chunk(pickle.dumps(there, PROTOCOL), b""))
    assert str(error) == (
        f"--engine: a worker has {_VERSIONS}, and messages must be read by nbspam 9 with Python"
        " 2.7; install the same on all machines"
    )


@pytest.mark.parametrize(
    ("engine", "module", "package"),
    [("dask", "distributed", "nbspam[cluster]"), ("ray", "ray", "ray")],
)
def test_a_missing_package_is_named(engine, module, package, nbspam, folder, model, monkeypatch):
    if engine == "dask":
        pytest.importorskip("dask", reason="dask is not installed (nbspam[cluster])")
    monkeypatch.setitem(sys.modules, module, None)
    said = f"--engine {engine}: needs {module}; install it with: pip install '{package}'"
    assert complains(nbspam("train", folder, "--engine", engine), 2, said)


def test_files_that_cannot_be_read_are_skipped_with_the_same_words(tmp_path):
    item = Item(str(tmp_path / "gone.eml"), "ham")
    with pytest.raises(InputError) as here:
        item.read()
    with pytest.raises(InputError) as there:
        with_data(item).read()
    assert str(there.value) == str(here.value)


@pytest.mark.slow
def test_loky_makes_the_same_model(messages, alone):
    assert exported(train(messages, jobs=2, engine="loky", day=DAY)) == alone


@pytest.mark.slow
def test_chunks_of_a_worker_that_is_killed_are_counted_once(messages, alone, client):
    first, second = client.run(os.getpid).values()

    def killing():
        for number, message in enumerate(messages):
            if number in (1500, 3000):
                os.kill(first if number == 1500 else second, signal.SIGKILL)
            yield message

    assert exported(train(killing(), engine=client, day=DAY)) == alone


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["dask"], indirect=True)
def test_a_chunk_that_took_its_worker_down_is_worked_on_again(workers, tmp_path):
    work_on = partial(killed_once, tmp_path / "marker")
    assert list(ordered_map(work_on, range(20), workers)) == list(range(20))
    assert (tmp_path / "marker").exists()


@pytest.mark.slow
def test_a_scheduler_that_does_not_answer_is_one_line(nbspam, folder, model):
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    engine = "dask:tcp://127.0.0.1:9"
    said = "no scheduler answers there (OSError); start it by `dask scheduler`, or correct the"
    result = nbspam("train", folder, "--engine", engine)
    assert complains(result, 1, f"--engine {engine}: {said} address")


ENDLESS = """
import itertools, sys
from nbspam.workers import workers_of
from nbspam.workers import ordered_map
if __name__ == "__main__":
    try:
        with workers_of(sys.argv[1], 2) as workers:
            for n in ordered_map(abs, itertools.count(), workers):
                print(n, flush=True)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
"""


def interrupted(program, engine):
    """Return what a program says on standard error after Ctrl-C; None if it does not end."""
    child = subprocess.Popen(
        [sys.executable, program, engine],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    with child:
        child.stdout.readline()
        os.killpg(child.pid, signal.SIGINT)
        try:
            return child.communicate(timeout=60)[1]  # the pipes are closed: nobody is left
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            return None


def test_ctrl_c_in_the_moment_of_a_fork_is_heard_by_the_parent_alone(tmp_path):
    pressed = "os.fork = lambda: [fork(), signal.raise_signal(signal.SIGINT)][0]"
    (tmp_path / "pressed.py").write_text(f"import os, signal\nfork = os.fork\n{pressed}{ENDLESS}")
    assert interrupted(tmp_path / "pressed.py", "fork") == "interrupted\n"


class Pressing:
    """A future in whose end somebody presses Ctrl-C."""

    def __init__(self, future):
        self.result, self.cancel = future.result, future.cancel

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("moment", ["handed over", "dropped"])
def test_ctrl_c_is_heard_after_a_chunk_is_handed_over_or_dropped(moment):
    class Pressed(ThreadPoolExecutor):
        def submit(self, *call):
            if moment == "handed over":
                signal.raise_signal(signal.SIGINT)
            submitted.append(super().submit(*call))
            return submitted[-1] if moment == "handed over" else Pressing(submitted[-1])

    submitted = []
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a background
    try:
        with (
            Pressed(1) as executor,
            workers_of(executor, 1) as workers,
            pytest.raises(KeyboardInterrupt),
        ):
            list(ordered_map(square, [1], workers))
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(submitted) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "module"), [("dask", "distributed"), ("loky", "joblib")])
def test_ctrl_c_ends_all_processes_without_a_traceback(engine, module, tmp_path):
    pytest.importorskip(module, reason=f"{module} is not installed")
    (tmp_path / "endless.py").write_text(ENDLESS)
    # Python's own queues and futures can be left locked by a Ctrl-C in the moment in which they
    # take their lock; this is rare, so it does not happen three times.
    said = (interrupted(tmp_path / "endless.py", engine) for _ in range(3))
    err = next(filter(None, said), "it did not end, three times")
    assert err == "interrupted\n"


WAYS = [("dask", "--cv"), ("loky", "--test"), ("ray", "--cv")]


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "way"), WAYS)
def test_a_report_by_an_engine_is_the_same_page(engine, way, request, mails, nbspam, tmp_path):
    if engine == "dask":
        engine = f"dask:{request.getfixturevalue('client').scheduler.address}"
    else:
        pytest.importorskip({"loky": "joblib"}.get(engine, engine), reason=f"no {engine} here")
    words = ["eval", mails, way, {"--cv": 3, "--test": MAILS}[way], "--report"]
    status, _, warnings = nbspam(*words, tmp_path / "here.html")
    there = nbspam(*words, tmp_path / "there.html", "--engine", engine, "--jobs", 2)
    assert (status, warnings) == (there[0], there[2])
    assert (status, "of these 536 messages" in warnings) == (0, way == "--test")
    page = (tmp_path / "here.html").read_bytes()
    assert b"The share of wrong answers by the number of messages learned" in page
    assert page.count(b'aria-label="Evidence"') > 10
    assert (tmp_path / "there.html").read_bytes() == page


@pytest.mark.parametrize("command", [("train",), ("eval", "--cv", "2"), ("tune", "--cv", "2")])
def test_nothing_of_engines_is_imported_before_one_is_named(command, folder, tmp_path, nbspam):
    model = tmp_path / "model.nbspam"
    assert nbspam("train", folder, "-m", model)[0] == 0
    name, *options = [*command, "-m", str(model)]
    code = (
        "import sys\nfrom nbspam.cli.main import exit_status\n"
        f"status = exit_status({[name, str(folder), *options]!r})\n"
        "found = {'dask', 'distributed', 'joblib', 'ray'} & set(sys.modules)\n"
        "sys.exit(status or str(found).replace('set()', '') or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
