"""What a model has estimated, distribution by distribution, for people to look at.

Secret: that all of a model's tables can be described alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from nbspam.models.inputs import Array

ANY_COLUMN = -1  # a variable whose values are the columns: which one a count was made in


class Distribution(NamedTuple):
    """P(of | given): variables are columns by number, and the class is the number after them.

    counts, probability: one axis for each variable in `given`, then in `of`.  A normal
    distribution has no probability, but mean and variance, and no axis for its column.
    """

    of: tuple[int, ...]
    given: tuple[int, ...]
    counts: Array  # rows, or what was counted in them
    probability: Array | None = None
    mean: Array | None = None
    variance: Array | None = None
    of_others: bool = False  # given that the class is not the one named
