"""Estimators by scikit-learn's conventions: they learn counts and predict probabilities.

    from nbspam.models import AODE, BayesianNetwork, MultinomialNB

ESTIMATORS is the one list of models.  A class is imported when it is first asked for, so that
importing this package needs neither numpy nor any estimator, and the command line can read the
names at no cost.

Secret: how counts become probabilities, and which counts each model keeps.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from nbspam.errors import UsageError

# The module of a model in nbspam.models, and its class.
ESTIMATORS = {
    "bernoulli": ("tokens", "BernoulliNB"),
    "multinomial": ("tokens", "MultinomialNB"),
    "complement": ("tokens", "ComplementNB"),
    "categorical": ("columns", "CategoricalNB"),
    "gaussian": ("gaussian", "GaussianNB"),
    "mixed": ("gaussian", "MixedNB"),
    "spode": ("dependent", "SPODE"),
    "tan": ("dependent", "TAN"),
    "aode": ("dependent", "AODE"),
    "a2de": ("dependent", "A2DE"),
    "akde": ("dependent", "AKDE"),
    "network": ("network", "BayesianNetwork"),
}
# Models of all tokens of messages.  The columns of all others are a table's, or chosen tokens.
TOKEN_MODELS = ("bernoulli", "multinomial", "complement")
COLUMN_MODELS = tuple(name for name in ESTIMATORS if name not in TOKEN_MODELS)
# On a table of counts, models of tokens are these classes, which know missing cells; Bernoulli's
# columns have two values, absent and present.
COUNTED = {
    "bernoulli": ("columns", "CategoricalNB"),
    "multinomial": ("columns", "CountedMultinomialNB"),
    "complement": ("columns", "CountedComplementNB"),
}
# Models that take numbers without cutting them into intervals, and models that do so if asked:
# numbers are then normal, given class and category.
NUMERIC_MODELS = ("gaussian", "mixed")
NUMBERS_GIVEN = ("spode", "tan", "aode")
EM_MODELS = ("bernoulli", "multinomial")  # can be trained on unlabelled documents
# Models of the presence of chosen tokens, and the number of tokens each uses by default.
FEATURES = {"spode": 1000, "tan": 1000, "aode": 1000, "a2de": 50, "network": 100}
# Models that see whether a token is in a document, not how often.
PRESENCE_MODELS = ("bernoulli", *FEATURES)

# The errors raised when a damaged model file is restored.
DAMAGE = (
    *(KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, MemoryError),
    UsageError,
)


def estimator_class(name: str) -> Any:
    """Return the class of an estimator; name: one of ESTIMATORS."""
    return _imported(*ESTIMATORS[name])


def column_class(name: str) -> Any:
    """Return the class of a model of columns; name: one of COLUMN_MODELS or COUNTED."""
    return _imported(*COUNTED[name]) if name in COUNTED else estimator_class(name)


def _imported(module: str, class_name: str) -> Any:
    return getattr(import_module(f"nbspam.models.{module}"), class_name)


def new_column_model(name: str, parameters: Mapping[str, Any]) -> Any:
    """Return an untrained model of columns, see `column_class`.  Raises UsageError."""
    make = column_class(name)
    for parameter in parameters.keys() - make().get_params().keys():
        option = parameter.replace("_", "-")
        raise UsageError(f"--{option}: --model {name} has no such setting; leave it out")
    return make(**parameters)


def model_state(model: Any) -> dict[str, Any]:
    """Return the parameters of an estimator and what it has learnt, as plain values."""
    import numpy as np

    parameters = {
        name: np.asarray(value).tolist() if isinstance(value, np.ndarray | tuple) else value
        for name, value in model.get_params().items()
    }
    learnt = {k: v for k, v in vars(model).items() if k.endswith("_") and k != "classes_"}
    return {"parameters": parameters, "learnt": learnt}


def restored(name: str, state: Mapping[str, Any], classes: Sequence[str], nothing: Any) -> Any:
    """Return the estimator that `model_state` described; raises one of DAMAGE.

    name: one of COLUMN_MODELS or COUNTED; nothing: (1, n_columns), a row without information.
    It is classified once, which fails if the parts of a damaged state do not fit together.
    """
    import numpy as np

    if name not in COLUMN_MODELS and name not in COUNTED:
        raise ValueError(f"it has no model of columns, but {name!r}")
    model = new_column_model(name, state["parameters"])
    vars(model).update(state["learnt"])
    model.classes_ = np.array(classes, object)
    if model.predict_joint_log_proba(nothing).shape != (1, len(classes)):
        raise ValueError("its classes and sums differ in number")
    return model


# --- the classes, each imported when it is first asked for -----------------------------------

if TYPE_CHECKING:  # For type checkers, which cannot read the table; a test compares the two.
    from nbspam.models.columns import CategoricalNB as CategoricalNB
    from nbspam.models.dependent import A2DE as A2DE
    from nbspam.models.dependent import AKDE as AKDE
    from nbspam.models.dependent import AODE as AODE
    from nbspam.models.dependent import SPODE as SPODE
    from nbspam.models.dependent import TAN as TAN
    from nbspam.models.gaussian import GaussianNB as GaussianNB
    from nbspam.models.gaussian import MixedNB as MixedNB
    from nbspam.models.network import BayesianNetwork as BayesianNetwork
    from nbspam.models.tokens import BernoulliNB as BernoulliNB
    from nbspam.models.tokens import ComplementNB as ComplementNB
    from nbspam.models.tokens import MultinomialNB as MultinomialNB
else:

    def __getattr__(name: str) -> Any:
        """Return an estimator's class, imported now."""
        if name not in _NAMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return estimator_class(_NAMES[name])


_NAMES = {class_name: name for name, (_, class_name) in ESTIMATORS.items()}
__all__ = sorted(_NAMES)


def __dir__() -> list[str]:
    """Return the estimators and the names that are loaded already."""
    return sorted({*globals(), *__all__})
