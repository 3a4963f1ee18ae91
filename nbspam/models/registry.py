"""All estimators by name: what a program must know of each, and how one is saved and restored.

This is the only place where the names of models are spelt.  It imports neither numpy nor any
estimator, so that the command line can read the names at no cost.

Secret: which attributes of an estimator a model file has to keep.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from nbspam.arrays import Floats
from nbspam.errors import UsageError

TOKENS, COLUMNS = "tokens", "columns"


class Estimator(NamedTuple):
    """What a program must know of an estimator before it imports its class."""

    module: str  # in nbspam.models
    class_name: str
    learns_from: str  # TOKENS: all tokens of messages; COLUMNS: a table, or chosen tokens
    takes_numbers: bool = False  # columns of numbers need not be cut into intervals
    n_features: int | None = None  # tokens chosen by default; None: not for tokens of messages
    fits_unlabelled: bool = False  # EM can train it on unlabelled documents
    sees_presence: bool = False  # only whether a token is in a document, not how often


ESTIMATORS = {
    "bernoulli": Estimator(
        "bernoulli", "BernoulliNB", TOKENS, fits_unlabelled=True, sees_presence=True
    ),
    "multinomial": Estimator("multinomial", "MultinomialNB", TOKENS, fits_unlabelled=True),
    "complement": Estimator("complement", "ComplementNB", TOKENS),
    "categorical": Estimator("columns.categorical", "CategoricalNB", COLUMNS),
    "gaussian": Estimator("columns.gaussian", "GaussianNB", COLUMNS, takes_numbers=True),
    "mixed": Estimator("columns.mixed", "MixedNB", COLUMNS, takes_numbers=True),
    "spode": Estimator("columns.spode", "SPODE", COLUMNS, n_features=1000),
    "tan": Estimator("columns.tan", "TAN", COLUMNS, n_features=1000),
    "aode": Estimator("columns.aode", "AODE", COLUMNS, n_features=1000),
    "a2de": Estimator("columns.aode", "A2DE", COLUMNS, n_features=50),
    "network": Estimator("network.estimator", "BayesianNetwork", COLUMNS, n_features=100),
}
TOKEN_MODELS = tuple(k for k, e in ESTIMATORS.items() if e.learns_from == TOKENS)
COLUMN_MODELS = tuple(k for k, e in ESTIMATORS.items() if e.learns_from == COLUMNS)
# On a table of counts, models of tokens are these classes, which know missing cells; Bernoulli's
# columns have two values, absent and present.
COUNTED = {
    "bernoulli": ("columns.categorical", "CategoricalNB"),
    "multinomial": ("columns.counted", "CountedMultinomialNB"),
    "complement": ("columns.counted", "CountedComplementNB"),
}
NUMERIC_MODELS = tuple(k for k, e in ESTIMATORS.items() if e.takes_numbers)
EM_MODELS = tuple(k for k, e in ESTIMATORS.items() if e.fits_unlabelled)
# Models of the presence of chosen tokens, and the number of tokens each uses by default.
FEATURES = {k: e.n_features for k, e in ESTIMATORS.items() if e.n_features is not None}
PRESENCE_MODELS = (*(k for k, e in ESTIMATORS.items() if e.sees_presence), *FEATURES)

# The errors raised when a damaged model file is restored.
DAMAGE = (
    *(KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, MemoryError),
    UsageError,
)


def estimator_class(name: str) -> Any:
    """Return the class of an estimator; name: one of ESTIMATORS."""
    estimator = ESTIMATORS[name]
    return _imported(estimator.module, estimator.class_name)


def column_class(name: str) -> Any:
    """Return the class of a model of columns; name: one of COLUMN_MODELS or COUNTED."""
    return _imported(*COUNTED[name]) if name in COUNTED else estimator_class(name)


def _imported(module: str, class_name: str) -> Any:
    return getattr(import_module(f"nbspam.models.{module}"), class_name)


def new_model(name: str, parameters: Mapping[str, Any]) -> Any:
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
    model = new_model(name, state["parameters"])
    learnt = state["learnt"]
    levels = np.asarray(learnt.get("levels_", 0))
    if (levels < 0).any() or levels.sum() > 4 * sum(np.size(value) for value in learnt.values()):
        raise ValueError("it has more values than counts")
    vars(model).update(learnt)
    model.classes_ = np.array(classes)
    if model.predict_joint_log_proba(nothing).shape != (1, len(classes)):
        raise ValueError("its classes and sums differ in number")
    return model


def joint_log_proba(model: Any, X: Any) -> Floats:
    """Return log P(class, row) in nats, (n_rows, n_classes); the prior of impossible rows."""
    joint: Floats = model.joint_log_proba_or_prior(X)
    return joint
