"""How well the model does: verdicts and corrections per day, and its calibration.

A verdict left unchanged counts as confirmed once a person has marked a message after it came; an
*unsure* left unchanged does not count.  The last week is compared with the weeks before it, and
the shares of spam with the probabilities.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from math import hypot
from typing import NamedTuple

import numpy as np

from nbspam.decision import UNSURE
from nbspam.evaluation.figures import days_figure, reliability_figure
from nbspam.evaluation.metrics import ReliabilityBins, share_interval
from nbspam.server.page.database import Database, RememberedVerdict

DAYS, LATELY = 30, 7  # all that are shown, and those of them that are compared with the others
EDGES = (0.0, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0)  # of ranges of the probability of spam


class Day(NamedTuple):
    """The verdicts and the lessons of a day, by this machine's clock."""

    date: date
    ham: int = 0  # verdicts on messages that arrived
    unsure: int = 0
    spam: int = 0
    confirmed: int = 0  # messages whose verdict a person confirmed
    settled: int = 0  # ... whose verdict was unsure, and that a person decided
    corrected: int = 0  # ... whose verdict a person corrected


class Range(NamedTuple):
    """Messages whose probability of spam is in a range."""

    low: float  # the first probability of the range ...
    high: float  # ... and that of the next one
    n: int
    mean: float  # of their probabilities of spam
    spam: int  # how many are spam

    @property
    def share(self) -> float:
        """The share that is spam."""
        return self.spam / self.n

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share that is spam."""
        return share_interval(self.spam, self.n)

    @property
    def surplus(self) -> int:
        """1 if more are spam than the probabilities say, -1 if fewer; 0 if it may be chance."""
        low, high = self.interval
        return (self.mean < low) - (self.mean > high)


class Period(NamedTuple):
    """Verdicts of ham or spam, up to the last message that a person has marked."""

    n: int
    wrong: int  # that a person has corrected

    @property
    def share(self) -> float:
        """The share that is wrong."""
        return self.wrong / self.n

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share that is wrong."""
        return share_interval(self.wrong, self.n)


class Course(NamedTuple):
    """How well the model did over the last days."""

    days: tuple[Day, ...]  # the oldest first, today last
    ranges: tuple[Range, ...]  # those with messages, by rising probability
    told: tuple[Range, ...]  # the same of messages that a person has marked
    earlier: Period
    lately: Period
    n_known: int = 0  # verdicts on messages that the model had learned, which only `days` count

    @property
    def is_empty(self) -> bool:
        """Whether nothing was judged or marked."""
        return not any(any(day[1:]) for day in self.days)

    @property
    def both(self) -> Period:
        """Both periods together."""
        return Period(self.earlier.n + self.lately.n, self.earlier.wrong + self.lately.wrong)

    @property
    def typical(self) -> Range | None:
        """The range with the most messages, among probable spam if there is any."""
        spam = [each for each in self.ranges if each.low >= 0.5]
        return max(spam or self.ranges, key=lambda each: each.n, default=None)

    def total(self, what: str) -> int:
        """Return the sum of a number of all days."""
        return sum(getattr(day, what) for day in self.days)

    @property
    def trend(self) -> int:
        """1 if more verdicts are wrong than before, -1 if fewer; 0 if it may be chance.

        It is chance if 0 is in the 95 % interval of the difference of both shares (Newcombe,
        1998, method 10).
        """
        if not (self.earlier.n and self.lately.n):
            return 0
        a, b = self.lately.share, self.earlier.share
        (a_low, a_high), (b_low, b_high) = self.lately.interval, self.earlier.interval
        low = a - b - hypot(a - a_low, b_high - b)
        high = a - b + hypot(a_high - a, b - b_low)
        return (low > 0) - (high < 0)


def course(database: Database, today: date) -> Course:
    """Return the model's course up to a day; raises ModelFileError."""
    dates = [today - timedelta(days) for days in range(DAYS - 1, -1, -1)]
    # By the clock of this machine, so that a day with a change of the hour has 23 or 25.
    starts = [datetime.combine(each, time.min).timestamp() for each in dates]
    rows = database.judged(starts[0])
    # A verdict on a message that the model has learned proves nothing.
    new = [row for row in rows if row.arrived >= starts[0] and not row.is_known]
    spoken = max((row.at for row in rows if row.at is not None), default=0.0)
    checked = [row for row in new if row.arrived <= spoken]
    split = starts[-LATELY]
    return Course(
        _days(dates, starts, rows),
        _ranges(checked),
        _ranges([row for row in new if row.told is not None]),
        _period(row for row in checked if row.label != UNSURE and row.arrived < split),
        _period(row for row in checked if row.label != UNSURE and row.arrived >= split),
        sum(row.arrived >= starts[0] and row.is_known for row in rows),
    )


def _days(
    dates: Sequence[date], starts: Sequence[float], rows: Iterable[RememberedVerdict]
) -> tuple[Day, ...]:
    """Return each day's numbers; messages dated in the future count as today's."""
    numbers = [dict.fromkeys(Day._fields[1:], 0) for _ in dates]
    for row in rows:
        if row.arrived >= starts[0]:
            numbers[bisect_right(starts, row.arrived) - 1][row.label] += 1
        if row.at is not None and row.at >= starts[0]:
            what = "settled" if row.label == UNSURE else "corrected"
            what = "confirmed" if row.told == row.label else what
            numbers[bisect_right(starts, row.at) - 1][what] += 1
    return tuple(Day(day, **each) for day, each in zip(dates, numbers, strict=True))


def _ranges(rows: Iterable[RememberedVerdict]) -> tuple[Range, ...]:
    """Return the ranges that have messages."""
    pairs = [(row.probability, row.told or row.label) for row in rows]
    sure = [(p, label == "spam") for p, label in pairs if label != UNSURE]
    probability, is_spam = np.array(sure, np.float64).reshape(-1, 2).T
    place = np.searchsorted(EDGES[1:-1], probability, "right")
    found = []
    for k, (low, high) in enumerate(pairwise(EDGES)):
        here = place == k
        if here.any():
            mean, spam = float(probability[here].mean()), int(is_spam[here].sum())
            found.append(Range(low, high, int(here.sum()), mean, spam))
    return tuple(found)


def _period(rows: Iterable[RememberedVerdict]) -> Period:
    wrong = [row.told not in (None, row.label) for row in rows]
    return Period(len(wrong), sum(wrong))


# ---- drawings ----

# Of ham or right, of unsure, of spam or wrong.
_BAR_STYLES = "first", "third", "second"


def drawings(course: Course) -> dict[str, str | None]:
    """Return the pictures of a course, as markup; None where there is nothing to draw."""
    days = course.days
    verdicts = [(day.ham, day.unsure, day.spam) for day in days]
    said = [(day.confirmed, day.settled, day.corrected) for day in days]
    ranges = [(each.n, each.mean, each.share) for each in course.ranges]
    bins = ReliabilityBins(*map(np.array, zip(*ranges, strict=True))) if ranges else None
    return {
        "verdicts": _of_days(course, verdicts, "Verdicts a day: ham, unsure and spam"),
        "said": _of_days(
            course, said, "Messages you marked a day: confirmed, decided and corrected"
        ),
        "calibration": None if bins is None else reliability_figure(bins, "spam"),
    }


def _of_days(course: Course, rows: list[tuple[int, int, int]], label: str) -> str | None:
    counts = np.array(rows)
    if not counts.any():
        return None
    names = [f"{day.date.day} {day.date:%b}" for day in course.days]
    return days_figure(names, counts, _BAR_STYLES, label)
