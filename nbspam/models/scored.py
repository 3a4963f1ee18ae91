"""What scikit-learn's tools expect of every classifier: parameters by name, and a score.

Secret: names are read off `__init__`, because importing `inspect` takes longer than
classifying a message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from nbspam.models.inputs import DataError, checked_labels, checked_weight

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Scored:
    """A classifier with parameters: the arguments of its `__init__`, kept under their names."""

    __slots__ = ()

    @classmethod
    def _parameters(cls) -> list[str]:
        code = cls.__init__.__code__
        return sorted(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep` has no effect: none of them is an estimator."""
        return {name: getattr(self, name) for name in self._parameters()}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters; they also apply to documents learnt before."""
        for name, value in parameters.items():
            if name not in self._parameters():
                raise DataError(
                    f"{type(self).__name__}.set_params: {name!r} is no parameter; choose from "
                    f"{', '.join(self._parameters())}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({given})"

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy on these documents, 0 to 1."""
        import numpy as np

        where = f"{type(self).__name__}.score"
        right = self.predict(X) == checked_labels(y, np.shape(X)[0], where)
        return float(np.average(right, weights=checked_weight(sample_weight, len(right), where)))

    def predict(self, X: Any) -> Any:
        """Return the label of each document."""
        raise NotImplementedError
