import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from nbspam.errors import InputError, NbspamError
from nbspam.workers import available_cores, ordered_map


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_results_come_in_order_and_every_process_calls_last_once_after_its_chunks(jobs):
    assert list(ordered_map(lambda n: n * n, range(20), jobs)) == [n * n for n in range(20)]
    sums = [0]

    def add(n):
        sums[0] += n

    results = list(ordered_map(add, range(20), jobs, lambda: sums[0]))
    assert results[:20] == [None] * 20
    assert len(results) == 20 + jobs
    assert sum(results[20:]) == sum(range(20))


def test_only_several_chunks_are_worked_on_in_other_processes():
    assert available_cores() >= 1
    assert list(ordered_map(lambda _: os.getpid(), [0], 4)) == [os.getpid()]
    assert os.getpid() not in list(ordered_map(lambda _: os.getpid(), range(4), 2))


def test_an_error_in_a_worker_reaches_the_caller():
    def fail(*_):
        raise InputError("x: broken")

    for work in ((fail, range(4), 2), (lambda n: n, range(4), 2, fail)):
        with pytest.raises(InputError, match="x: broken"):
            list(ordered_map(*work))
    with pytest.raises(ZeroDivisionError) as caught:
        list(ordered_map(lambda n: 1 // n, range(4), 2))
    assert "1 // n" in caught.value.__notes__[0]


def test_a_worker_that_is_killed_is_a_clear_error():
    with pytest.raises(NbspamError, match=r"ended from outside.*--jobs 1"):
        list(ordered_map(lambda _: os.kill(os.getpid(), signal.SIGKILL), range(4), 2))


def test_one_slow_chunk_does_not_let_the_others_run_away():
    drawn = []

    def slow_at_first(n):
        time.sleep(0.5 * (n == 0))
        return n

    results = ordered_map(slow_at_first, (drawn.append(n) or n for n in range(1000)), 2)
    next(results)
    assert len(drawn) < 20
    results.close()


def test_a_slow_first_chunk_ends_neither_the_stream_nor_the_order():
    def slow_at_first(n):
        time.sleep(0.3 * (n == 0))
        return n

    assert list(ordered_map(slow_at_first, range(100), 3)) == list(range(100))


def test_a_result_that_cannot_be_sent_is_an_error_in_the_caller():
    with pytest.raises(Exception, match="lambda"):
        list(ordered_map(lambda _: lambda: 0, range(4), 2))


def test_no_worker_outlives_the_work():
    pids = set(ordered_map(lambda _: os.getpid(), range(8), 2))
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_worker_without_a_parent_ends_by_itself():
    child = subprocess.Popen([sys.executable, "-c", ORPHANS], stdout=subprocess.PIPE, text=True)
    pid = int(child.stdout.readline())
    child.kill()
    child.communicate()
    for _ in range(100):
        if not is_running(pid):
            break
        time.sleep(0.1)
    assert not is_running(pid)


ORPHANS = """
import os, time
from nbspam.workers import ordered_map
results = ordered_map(lambda _: os.getpid(), range(1000), 2)
print(next(results), flush=True)
time.sleep(60)
"""


def is_running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"  # ended, but not yet reaped


@pytest.mark.parametrize("length", [1, 60_000, 300_000, 600_000, 3_000_000])
def test_chunks_of_any_length_go_to_workers_and_back(length):
    chunks = [bytes([n]) * length for n in range(12)]
    assert list(ordered_map(lambda data: data * 2, chunks, 2)) == [data * 2 for data in chunks]


def test_arrays_large_and_small_arrive_whole():
    arrays = [np.arange(n) for n in (0, 5, 100_000)] + [np.zeros((300, 200))[:, ::2]]
    for got in ordered_map(lambda _: arrays, range(3), 2):
        assert all(map(np.array_equal, got, arrays))
        got[2][0] = 1  # they are the caller's own
