"""Estimators by scikit-learn's conventions: they learn counts and predict probabilities.

    from nbspam.models import AODE, BayesianNetwork, MultinomialNB

A class is imported when it is first asked for, so that importing this package needs no numpy.

Secret: how counts become probabilities, and which counts each model keeps.
"""

from typing import TYPE_CHECKING, Any

from nbspam.models.registry import ESTIMATORS, estimator_class

if TYPE_CHECKING:  # For type checkers, which cannot read the registry; a test compares the two.
    from nbspam.models.bernoulli import BernoulliNB as BernoulliNB
    from nbspam.models.columns.aode import A2DE as A2DE
    from nbspam.models.columns.aode import AODE as AODE
    from nbspam.models.columns.categorical import CategoricalNB as CategoricalNB
    from nbspam.models.columns.gaussian import GaussianNB as GaussianNB
    from nbspam.models.columns.mixed import MixedNB as MixedNB
    from nbspam.models.columns.spode import SPODE as SPODE
    from nbspam.models.columns.tan import TAN as TAN
    from nbspam.models.complement import ComplementNB as ComplementNB
    from nbspam.models.multinomial import MultinomialNB as MultinomialNB
    from nbspam.models.network.estimator import BayesianNetwork as BayesianNetwork
else:

    def __getattr__(name: str) -> Any:
        """Return an estimator's class, imported now."""
        if name not in _NAMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return estimator_class(_NAMES[name])


_NAMES = {estimator.class_name: name for name, estimator in ESTIMATORS.items()}
__all__ = sorted(_NAMES)


def __dir__() -> list[str]:
    """Return the estimators and the names that are loaded already."""
    return sorted({*globals(), *__all__})
