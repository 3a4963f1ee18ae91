"""Hostile input by the hundred; `make stress` throws a hundred thousand (tests/stress/fuzz.py)."""

import signal

import pytest

from nbspam.mail.message import parse_message

pytest.importorskip("resource", reason="hangs are broken off by what Unix has")

from stress import attachments, fuzz, hostile


@pytest.fixture(scope="module")
def checker():
    """Laws for models of every eighth embedded message, which are trained quickly."""
    return fuzz.checker_of(7, one_of=8)


def test_hundreds_of_hostile_inputs_raise_nothing_and_break_no_law(checker):
    assert fuzz.failures(checker, range(200)) == []
    assert fuzz.failures(checker, range(99, 100)) == []


def test_hundreds_of_damaged_attachments_raise_nothing():
    files = attachments.seeds()
    for start in range(1, 300, attachments.WITH_DOCUMENTS):  # none of these with documents
        attachments.slowest(range(start, start + attachments.WITH_DOCUMENTS - 1), files)


def raises(*_):
    raise ValueError("planted")


def breaks(*_):
    fuzz.require(False, "planted")


def warns(*_):
    fuzz.warnings.warn("planted", stacklevel=1)


def hangs(*_):
    while True:
        pass


@pytest.mark.parametrize(
    ("planted", "told"),
    [
        (raises, "ValueError: 'planted' ("),
        (breaks, "law: planted"),
        (warns, "UserWarning: 'planted' ("),
        (hangs, "hangs"),
    ],
)
def test_the_one_input_of_a_batch_that_fails_is_found(checker, monkeypatch, planted, told):
    guilty = checker.inputs(5)

    def judge(self, data):
        if guilty in data:
            planted()

    monkeypatch.setattr(fuzz.Checker, "judge", judge)
    monkeypatch.setattr(fuzz.Checker, "unchanged", lambda self: None)
    monkeypatch.setattr(fuzz, "LAWS", {"even": fuzz.Law(planted, 4)})
    monkeypatch.setattr(fuzz, "PATIENCE", 0.02)
    monkeypatch.setattr(fuzz, "PATIENCE_PER_KB", 0)
    found = fuzz.failures(checker, range(1, 7))

    assert [(number, what.partition(told)[0]) for number, what in found] == [
        (5, "judge: "),
        (4, "even: "),
    ]
    assert signal.getsignal(signal.SIGPROF) == signal.SIG_DFL


def test_the_same_number_makes_the_same_input_and_patterns_have_their_length():
    one, other = (hostile.Inputs(3, fuzz.material(3).mails) for _ in range(2))

    forwards, backwards = range(50), reversed(range(50))
    assert {n: one(n) for n in forwards} == {n: other(n) for n in backwards}
    assert len({one(n) for n in range(50)}) > 45

    for name, pattern in hostile.PATTERNS.items():
        assert 14_000 < len(pattern(20_000)) < 32_000, name
        parse_message(pattern(20_000))
