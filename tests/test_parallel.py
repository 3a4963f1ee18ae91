import os
import signal

import pytest

from nbspam.errors import InputError, NbspamError
from nbspam.parallel import available_cores, ordered_map


def test_results_come_in_order_whatever_the_number_of_jobs():
    for jobs in (1, 2, 3):
        assert list(ordered_map(lambda n: n * n, range(20), jobs)) == [n * n for n in range(20)]


def test_a_single_chunk_starts_no_process():
    assert list(ordered_map(lambda _: os.getpid(), [0], 4)) == [os.getpid()]


def test_several_chunks_are_worked_on_in_other_processes():
    assert os.getpid() not in list(ordered_map(lambda _: os.getpid(), range(4), 2))


def test_chunks_are_drawn_only_as_they_are_needed():
    drawn = []
    results = ordered_map(lambda n: n, (drawn.append(n) or n for n in range(1000)), 2)

    next(results)
    assert len(drawn) < 20
    results.close()


def test_an_error_in_a_worker_reaches_the_caller():
    def fail(_):
        raise InputError("x: broken")

    with pytest.raises(InputError, match="x: broken"):
        list(ordered_map(fail, range(4), 2))


def test_a_worker_that_is_killed_is_a_clear_error():
    with pytest.raises(NbspamError, match=r"ended from outside.*--jobs 1"):
        list(ordered_map(lambda _: os.kill(os.getpid(), signal.SIGKILL), range(4), 2))


def test_there_is_at_least_one_core():
    assert available_cores() >= 1
