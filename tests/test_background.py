import os
import time
from threading import Event

import pytest

from nbspam.background import Later
from nbspam.parallel import ordered_map


def test_the_function_runs_while_the_caller_goes_on():
    may_end = Event()
    later = Later(lambda: may_end.wait(60) and "done")

    may_end.set()  # a function called in this thread would have waited in vain
    assert later.result() == "done"
    assert later.result() == "done"


def test_an_error_is_raised_where_the_result_is_asked_for():
    later = Later(lambda: 1 // 0)

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            later.result()


def test_a_forked_process_finds_the_result():
    calls = []
    later = Later(lambda: time.sleep(0.3) or calls.append(os.getpid()))

    assert (
        list(ordered_map(lambda _: (later.result(), len(calls)), range(4), 2)) == [(None, 1)] * 4
    )
    assert calls == [os.getpid()]


def test_the_function_may_fork():
    def fork():
        pid = os.fork()
        if pid == 0:
            os._exit(7)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    assert Later(fork).result() == 7
