"""Multinomial and complement naive Bayes over the columns of a table, which may lack cells.

Secret: a cell that is missing counts as 0, which leaves its factor out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nbspam.models.complement import ComplementNB
from nbspam.models.linear import LinearModel
from nbspam.models.multinomial import MultinomialNB

if TYPE_CHECKING:
    from nbspam.models.inputs import Array


class Counted(LinearModel):
    """A linear model whose X is an array, NaN where missing."""

    _missing = True
    _sparse = False

    def _events(self, X: Any) -> Array:
        return np.where(np.isnan(X), 0.0, X)


class CountedMultinomialNB(Counted, MultinomialNB):
    """MultinomialNB of a table's columns."""


class CountedComplementNB(Counted, ComplementNB):
    """ComplementNB of a table's columns."""
