"""One line for each answer: text or JSON, in one piece, without control characters."""

import json
import os

import pytest

from nbspam.server.logs import Log


def written(kind, *calls):
    """Return what a log of a kind writes; calls: functions of the log."""
    read, write = os.pipe()
    try:
        log = Log(kind, write)
        for call in calls:
            call(log)
        os.close(write)
        write = None
        return os.read(read, 1 << 16).decode()
    finally:
        os.close(read)
        if write is not None:
            os.close(write)


def answered(**facts):
    return lambda log: log.answered(**facts)


def test_a_line_has_what_is_known():
    facts = {"user": "ann", "queue": None, "asked": "", "verdict": "spam", "ms": 1.5}

    assert written("text", answered(**facts)) == "user=ann verdict=spam ms=1.5\n"
    assert json.loads(written("json", answered(**facts))) == {
        "user": "ann", "verdict": "spam", "ms": 1.5,
    }  # fmt: skip
    assert written("none", answered(**facts)) == ""


@pytest.mark.parametrize("kind", ["text", "json", "none"])
def test_notes_to_the_owner_are_always_written(kind):
    line = written(kind, lambda log: log.told("a worker ends"))

    assert "a worker ends" in line
    assert line.count("\n") == 1


@pytest.mark.parametrize("kind", ["text", "json"])
def test_what_strangers_send_stays_on_its_line_and_short(kind):
    line = written(kind, answered(user="ann\nverdict=ham \x1b[31m" + "x" * 5000, verdict="spam"))

    assert line.count("\n") == 1
    assert "\x1b" not in line
    assert len(line) < 500


def test_mail_goes_on_if_the_log_cannot_be_written():
    read, write = os.pipe()
    os.close(read)
    Log("text", write).answered(verdict="spam")
    os.close(write)
    Log("text", write).told("nobody reads this")
