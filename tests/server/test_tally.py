"""What the server has done: totals over processes, and metrics that a real parser reads."""

import os

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from nbspam.server.metrics import BOUNDS, LESSONS, TROUBLES, VERDICTS, ServerTally, open_metrics
from nbspam.workers import fork


def samples(tally, facts=None):
    """Return every value of the metrics, by its name and labels, as a scraper reads them."""
    text = open_metrics(tally, facts or {}).decode()
    families = list(text_string_to_metric_families(text))
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }


def test_a_total_is_the_sum_over_all_processes_and_outlives_them():
    tally = ServerTally(4)
    tally.add("spam", 5)
    for row in (1, 2, 3):
        pid = fork()
        if pid == 0:
            tally.take_row(row)
            tally.add("spam")
            tally.add("spam")
            tally.put("waiting", 7)
            os._exit(0)
        os.waitpid(pid, 0)

    assert tally.total("spam") == 5 + 3 * 2
    assert tally.row(2, "spam") == 2
    assert tally.total("waiting") == 21
    tally.clear(2)  # its process has ended: nothing waits there, but what it did was done
    assert tally.total("waiting") == 14
    assert tally.total("spam") == 11


def test_metrics_tell_messages_lessons_and_troubles_by_kind():
    tally = ServerTally(1)
    tally.note("spam", 0.0015)
    tally.note("spam", 0.003)
    tally.note("ham", 70.0)
    tally.add("lesson moved")
    tally.add("trouble busy", 4)
    tally.put("held", 1024)
    found = samples(tally, {"model_age_seconds": 12.5})

    assert found["nbspam_messages_total", "spam"] == 2
    assert found["nbspam_messages_total", "unsure"] == 0
    assert found["nbspam_lessons_total", "moved"] == 1
    assert found["nbspam_troubles_total", "busy"] == 4
    assert found["nbspam_held_bytes",] == 1024
    assert found["nbspam_model_age_seconds",] == 12.5
    kinds = {name: {key[-1] for key in found if key[0] == name} for name, *_ in found}
    assert kinds["nbspam_messages_total"] == set(VERDICTS)
    assert kinds["nbspam_lessons_total"] == set(LESSONS)
    assert kinds["nbspam_troubles_total"] == set(TROUBLES)


def test_answering_times_are_a_histogram():
    tally = ServerTally(1)
    for seconds in (0.0005, 0.001, 0.0015, 0.3, 70.0):
        tally.note("ham", seconds)
    found = samples(tally)

    assert found["nbspam_answer_seconds_count",] == 5
    assert found["nbspam_answer_seconds_sum",] == pytest.approx(70.303)
    up_to = {key[1]: value for key, value in found.items() if key[0].endswith("_bucket")}
    assert up_to["0.001"] == 2  # bounds are included
    assert up_to["0.002"] == 3
    assert up_to["0.5"] == 4
    assert up_to["60.0"] == 4
    assert up_to["+Inf"] == 5
    assert len(up_to) == len(BOUNDS) + 1
    assert list(up_to.values()) == sorted(up_to.values())


def test_a_count_that_nobody_knows_is_our_bug():
    with pytest.raises(KeyError):
        ServerTally(1).add("eggs")
