"""Hostile input by the hundred: see benchmarks/fuzz.py, which throws a million of it."""

import re
import signal
import sys

import pytest

from nbspam.mail.message import parse_message
from support import ROOT

pytest.importorskip("resource", reason="fuzz.py measures with what Unix has")
sys.path.insert(0, str(ROOT / "benchmarks"))

import fuzz
import hostile

EMBEDDED = fuzz.embedded_mail()


@pytest.fixture(autouse=True)
def few_mails(monkeypatch):
    """Train on every eighth embedded message, which is quick."""
    mails = EMBEDDED[::8]
    monkeypatch.setattr(fuzz, "embedded_mail", lambda: mails)


@pytest.fixture
def fuzzed(monkeypatch, capsys, tmp_path):
    def call(*options):
        monkeypatch.setattr(sys, "argv", ["fuzz.py", *options, "--keep", str(tmp_path / "kept")])
        with pytest.raises(SystemExit) as end:
            fuzz.main()
        return end.value.code, capsys.readouterr().out

    return call


def test_hundreds_of_hostile_inputs_raise_nothing_and_break_no_law(fuzzed):
    status, out = fuzzed("--inputs", "200", "--seed", "7")

    assert (status, out.count("\n")) == (0, 1), out
    assert re.match(r"200 inputs, .*; 0 exceptions, 0 hangs, 0 laws broken; slowest \d+ ms", out)


def test_an_input_goes_through_every_law_when_it_is_repeated(fuzzed):
    status, out = fuzzed("--inputs", "1", "--seed", "7", "--first", "99")

    assert status == 0, out
    assert f" {len(fuzz.LAWS)} checks of laws; 0 exceptions" in out


def raises_at_nul(self, data):
    if any(b"\0" in each for each in data):
        raise ValueError("planted")


def hangs_at_nul(self, data):
    while any(b"\0" in each for each in data):
        pass


@pytest.mark.parametrize(
    ("judge", "kind"), [(raises_at_nul, "exceptions"), (hangs_at_nul, "hangs")]
)
def test_the_one_input_of_a_batch_that_fails_is_found_and_kept(
    fuzzed, monkeypatch, tmp_path, judge, kind
):
    inputs = fuzz.material(7)
    guilty = next(
        n
        for n in range(99, 999)
        if [b"\0" in inputs(n + k) for k in range(-7, 1)] == [*7 * [False], True]
    )
    monkeypatch.setattr(fuzz.Checker, "judge", judge)
    monkeypatch.setattr(fuzz, "LAWS", {})
    monkeypatch.setattr(fuzz, "SLOWER", 0.1)
    status, out = fuzzed("--inputs", "8", "--seed", "7", "--first", str(guilty - 7))

    assert status == 1
    assert f"input {guilty}: judge: {kind[:-1]}: " in out
    assert f"; {'1 exceptions, 0' if kind == 'exceptions' else '0 exceptions, 1'} hangs, 0" in out
    assert (tmp_path / "kept" / f"7-{guilty}.eml").read_bytes() == inputs(guilty)
    assert signal.getsignal(signal.SIGPROF) == signal.SIG_DFL


def test_a_broken_law_and_a_warning_are_failures(fuzzed, monkeypatch):
    def broken(self, number, data, rng):
        fuzz.require(number % 2, "numbers are odd")

    def warns(*_):
        fuzz.warnings.warn("planted", stacklevel=1)

    monkeypatch.setattr(fuzz.Checker, "judge", lambda *_: None)
    monkeypatch.setattr(fuzz.Checker, "unchanged", warns)
    laws = {"odd": fuzz.Law(broken, 1), "quiet": fuzz.Law(warns, 4)}
    monkeypatch.setattr(fuzz, "LAWS", laws)
    status, out = fuzzed("--inputs", "8")

    assert status == 1
    assert "input 2: odd: law: numbers are odd" in out
    assert "input 4: quiet: exception: UserWarning: 'planted'" in out
    assert "input 0: afterwards: exception: UserWarning: 'planted'" in out
    assert "; 3 exceptions, 0 hangs, 4 laws broken;" in out


def test_the_same_number_makes_the_same_input():
    one, other = (fuzz.material(3) for _ in range(2))

    forwards, backwards = range(50), reversed(range(50))
    assert {n: one(n) for n in forwards} == {n: other(n) for n in backwards}
    assert len({one(n) for n in range(50)}) > 45


@pytest.mark.parametrize("name", hostile.PATTERNS)
def test_patterns_have_the_length_that_is_asked_for(name):
    data = hostile.PATTERNS[name](20_000)

    assert 14_000 < len(data) < 32_000
    parse_message(data)


def test_time_that_is_not_linear_is_a_failure(fuzzed, monkeypatch):
    def quadratic(size):
        return b"x" * (size * size // 20_000)

    patterns = {"words": hostile.PATTERNS["words"], "grows": quadratic}
    monkeypatch.setattr(fuzz, "PATTERNS", patterns)
    status, out = fuzzed("--linear")

    assert status == 1
    assert re.search(r"^words .* [1-7]\.\d$", out, re.MULTILINE)
    assert re.search(
        r"^2 patterns at 100 and 400 KB; worst ratio (9|\d\d)\.\d$", out, re.MULTILINE
    )
