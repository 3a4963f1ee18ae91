"""Multinomial and complement naive Bayes over the columns of a table, which may lack cells.

Secret: a cell that is missing counts as 0, which leaves its factor out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nbspam.models.complement import ComplementNB
from nbspam.models.distributions import ANY_COLUMN, Distribution
from nbspam.models.linear import LinearModel
from nbspam.models.multinomial import MultinomialNB

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbspam.models.inputs import Array


class Counted(LinearModel):
    """A linear model whose X is an array, NaN where missing."""

    _missing = True
    _sparse = False

    def _events(self, X: Any) -> Array:
        return np.where(np.isnan(X), 0.0, X)


class CountedMultinomialNB(Counted, MultinomialNB):
    """MultinomialNB of a table's columns."""

    def distributions(self, whole: bool = True) -> Iterator[Distribution]:
        """Yield P(class), and P(column given class) of all that was counted."""
        yield from super().distributions(whole)
        given, probability = (self.n_features_in_,), np.exp(self.feature_log_prob_)
        yield Distribution((ANY_COLUMN,), given, self.feature_count_, probability)


class CountedComplementNB(Counted, ComplementNB):
    """ComplementNB of a table's columns."""

    def distributions(self, whole: bool = True) -> Iterator[Distribution]:
        """Yield P(class), and P(column given the other classes) of all that was counted."""
        yield from super().distributions(whole)
        given, probability = (self.n_features_in_,), np.exp(-self._weight(self.alpha_))
        count = self._complement_count()
        yield Distribution((ANY_COLUMN,), given, count, probability, of_others=True)
