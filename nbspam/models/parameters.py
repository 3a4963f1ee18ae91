"""Parameters of estimators, as scikit-learn's tools expect them.

Secret: names are read off `__init__`, because importing `inspect` takes longer than
classifying a message.
"""

from __future__ import annotations

from typing import Any, Self

from nbspam.models.inputs import DataError


class Parametrised:
    """An object whose parameters are the arguments of its `__init__`, kept under their names."""

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
