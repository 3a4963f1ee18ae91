import os
import time
from threading import Event

import pytest

from nbspam.later import Later
from nbspam.parallel import ordered_map


def test_the_caller_goes_on_meanwhile():
    may_end = Event()
    later = Later(lambda: may_end.wait(60) and "done")

    may_end.set()  # which a function called at once would have waited for in vain
    assert later.result() == "done"
    assert later.result() == "done"


def test_an_error_is_raised_where_the_result_is_asked_for():
    later = Later(lambda: 1 // 0)

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            later.result()


def test_a_forked_process_has_the_result_too():
    parent = os.getpid()
    later = Later(lambda: time.sleep(0.3 * (os.getpid() == parent)) or 7)

    assert list(ordered_map(lambda _: later.result(), range(4), 2)) == [7] * 4
    assert later.result() == 7
