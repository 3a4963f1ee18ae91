"""Hosts that share a log have the same model, to the byte, whatever came in which order."""

import pytest
from hypothesis import HealthCheck, given, settings

from shared_logs import STEPS, exports_are_equal
from support import examples


def teach(host, n=0, *, copy=0, label="ham", day=0, told=False):
    return host, ("teach", n, copy, label, day, told)


CASES = {
    "two lessons wait when another copy arrives": [
        teach(1, label="spam"),
        teach(0, copy=1, label="spam"),
        teach(1),
    ],
    "a clock is behind": [teach(0, 1, label="spam", day=2), teach(0, 2)],
    "another copy is first in the log": [
        teach(2, copy=1),
        teach(1),
        (1, ("send",)),
        (2, ("receive",)),
    ],
    "another copy arrives, an older one, while a lesson waits": [
        teach(0, label="spam"),
        (0, ("send",)),
        teach(1, copy=1, label="spam", day=-1),
        (1, ("receive",)),
    ],
    "a person has told it elsewhere": [
        teach(1, told=True),
        teach(0),
        (1, ("send",)),
        (0, ("receive",)),
    ],
    "a person has told it elsewhere, and it is moved here": [
        teach(0, told=True),
        (0, ("send",)),
        teach(2, label="spam"),
        (2, ("receive",)),
    ],
    "it was taken back before it was sent": [
        teach(0),
        (0, ("send",)),
        teach(0, 1),
        teach(2, day=1),
        teach(2, label=None),
    ],
}


@pytest.mark.parametrize("acts", CASES.values(), ids=CASES)
def test_exports_are_equal_when(tmp_path, acts):
    exports_are_equal(tmp_path, acts)


@settings(
    examples(40), derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(acts=STEPS)
def test_after_quiet_all_exports_are_equal(tmp_path, acts):
    exports_are_equal(tmp_path, acts)
