"""The fast tier of tests: `make test` leaves out the functions that slow.txt lists.

`make tier` runs all tests, takes their times and rewrites that list.  A function is slow if its
cases take more than LIMIT times as long as the median test of the same run, so that no machine's
speed is in the list; one that is listed stays until it takes half of that.  A function that is
not listed is fast until it has been measured.  A mark `slow` in the source of a test keeps it,
or one of its cases, out of `make test` without being measured.
"""

from collections import defaultdict
from itertools import chain
from pathlib import Path
from statistics import mean, median
from time import perf_counter

import pytest

LIST = Path(__file__).with_name("slow.txt")
LIMIT = 12  # median tests, which is about 30 ms


def function_of(test):
    return test.partition("[")[0]


def mark_slow(items):
    slow = set(LIST.read_text("utf-8").split())
    for item in items:
        if function_of(item.nodeid) in slow:
            item.add_marker("slow")


class Measurement:
    """Takes the time of every test, and rewrites the list when all have run.

    The seconds in which a fixture of a module or session is set up are shared out evenly among
    the tests that use it.  With pytest-xdist, workers send what they measured with their reports.
    """

    def __init__(self):
        self.set_up = []  # fixtures of several tests: where they hold, name, seconds
        self.shared = defaultdict(float)  # the same, by where and name
        self.seconds = defaultdict(float)  # of a test's own, by test
        self.fixtures = {}  # the names of those that a test uses
        self.skipped = set()
        self.marked = set()  # in their source

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef, request):
        start = perf_counter()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                name = fixturedef.argname
                self.set_up.append((request.node.nodeid, name, perf_counter() - start))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item):
        report = yield
        report.set_up, self.set_up = self.set_up, []
        report.fixtures = list(getattr(item, "fixturenames", ()))
        return report

    def pytest_runtest_logreport(self, report):
        self.fixtures[report.nodeid] = report.fixtures
        self.seconds[report.nodeid] += report.duration - sum(part[2] for part in report.set_up)
        for where, name, seconds in report.set_up:
            self.shared[where, name] += seconds
        if report.skipped:
            self.skipped.add(report.nodeid)
        if "slow" in report.keywords:
            self.marked.add(report.nodeid)

    def pytest_sessionfinish(self, session, exitstatus):
        if not hasattr(session.config, "workerinput") and exitstatus in (0, 1):
            LIST.write_text("\n".join([*sorted(self.slow()), ""]), "utf-8")

    def slow(self):
        """Return the names of the slow functions; tests that were skipped stay as they are."""
        for (where, name), seconds in self.shared.items():
            users = [
                test
                for test, names in self.fixtures.items()
                if name in names and test.startswith(where)
            ]
            for test in users:
                self.seconds[test] += seconds / len(users)
        cases = defaultdict(list)
        for test in self.seconds.keys() - self.skipped - self.marked:
            cases[function_of(test)].append(self.seconds[test])
        limit = LIMIT * median(chain.from_iterable(cases.values()))
        listed = set(LIST.read_text("utf-8").split())
        slow = {
            name
            for name, times in cases.items()
            if mean(times) > (limit / 2 if name in listed else limit)
        }
        return slow | {name for name in map(function_of, self.skipped) if name in listed}
