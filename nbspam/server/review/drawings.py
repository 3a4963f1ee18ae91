"""Drawings of how the model is doing.

Secret: what is drawn of each day, and in which colours.
"""

from typing import NamedTuple

import numpy as np

from nbspam.evaluation.metrics import ReliabilityBins
from nbspam.evaluation.pages.figures import days_figure, reliability_figure
from nbspam.server.review.history import Course

_KINDS = "first", "third", "second"  # in the style: of ham or right, of unsure, of spam or wrong


class Drawings(NamedTuple):
    """Pictures of a course, as markup; None where there is nothing to draw."""

    verdicts: str | None
    said: str | None
    calibration: str | None


def drawings(course: Course) -> Drawings:
    """Return the pictures of a course."""
    days = course.days
    verdicts = [(day.ham, day.unsure, day.spam) for day in days]
    said = [(day.confirmed, day.settled, day.corrected) for day in days]
    return Drawings(
        _of_days(course, verdicts, "Verdicts a day: ham, unsure and spam"),
        _of_days(course, said, "What you said a day: confirmed, decided and corrected"),
        _calibration(course),
    )


def _of_days(course: Course, rows: list[tuple[int, int, int]], label: str) -> str | None:
    counts = np.array(rows)
    if not counts.any():
        return None
    names = [f"{day.date.day} {day.date:%b}" for day in course.days]
    return days_figure(names, counts, _KINDS, label)


def _calibration(course: Course) -> str | None:
    if not course.ranges:
        return None
    n, mean, share = (
        np.array([getattr(each, name) for each in course.ranges])
        for name in ("n", "mean", "share")
    )
    return reliability_figure(ReliabilityBins(n, mean, share), "spam")
