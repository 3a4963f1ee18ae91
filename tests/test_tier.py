"""Which tests are slow: many times slower than the median, with their share of fixtures."""

from types import SimpleNamespace

import pytest

import tier


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Return the functions that are slow, of reports (test, seconds) and those listed before."""
    monkeypatch.setattr(tier, "LIST", tmp_path / "slow.txt")

    def slow(times, listed=(), skipped=(), marked=(), shared=()):
        tier.LIST.write_text("\n".join(listed))
        measurement = tier.Measurement()
        usual = {f"a.py::usual[{n}]": 0.001 for n in range(99)}
        for test, seconds in {**usual, **times}.items():
            report = SimpleNamespace(
                nodeid=test,
                duration=seconds,
                set_up=[each for first, *each in shared if first == test],
                fixtures=["server"] if test.startswith("b.py") else [],
                keywords={"slow": 1} if test in marked else {},
                skipped=test in skipped,
            )
            measurement.pytest_runtest_logreport(report)
        return measurement.slow()

    return slow


def test_a_function_is_slow_by_the_mean_of_its_cases(measured):
    times = {"a.py::one": 0.02, "a.py::two[x]": 0.02, "a.py::two[y]": 0.001, "a.py::three": 0.011}

    assert measured(times) == {"a.py::one"}


def test_one_that_is_listed_stays_until_it_takes_half_of_that(measured):
    times = {"a.py::one": 0.01, "a.py::two": 0.005}

    assert measured(times, listed=[*times, "a.py::gone"]) == {"a.py::one"}


def test_what_is_skipped_stays_as_it_is_and_what_is_marked_is_not_measured(measured):
    times = {"a.py::one": 0.0, "a.py::two": 0.0, "a.py::three": 9.0}
    found = measured(times, listed=["a.py::one"], skipped=[*times][:2], marked=["a.py::three"])

    assert found == {"a.py::one"}


@pytest.mark.parametrize(("users", "slow"), [(10, set()), (2, {"b.py::one", "b.py::two"})])
def test_the_setting_up_of_a_fixture_is_shared_by_its_users(measured, users, slow):
    names = ["one", "two", *(f"more{n}" for n in range(8))][:users]
    times = {f"b.py::{name}": 0.001 for name in names}
    times["b.py::one"] += 0.1

    assert measured(times, shared=[("b.py::one", "b.py", "server", 0.1)]) == slow
