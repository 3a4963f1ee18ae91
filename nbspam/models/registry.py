"""Estimators as classifiers hold them: by name, and as plain values.

Secret: what of an estimator a model file has to keep.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from nbspam.arrays import Floats
from nbspam.errors import UsageError

MODELS = {
    "categorical": ("columns.categorical", "CategoricalNB"),
    "gaussian": ("columns.gaussian", "GaussianNB"),
    "mixed": ("columns.mixed", "MixedNB"),
    "spode": ("columns.spode", "SPODE"),
    "tan": ("columns.tan", "TAN"),
    "aode": ("columns.aode", "AODE"),
    "a2de": ("columns.a2de", "A2DE"),
    "network": ("network.estimator", "BayesianNetwork"),
}


# What a model file that does not fit together raises when it is put together.
DAMAGE = (
    *(KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, MemoryError),
    UsageError,
)


def new_model(name: str, parameters: Mapping[str, Any]) -> Any:
    """Return an estimator, one of MODELS, that has learnt nothing; raises UsageError."""
    module, class_name = MODELS[name]
    make = getattr(import_module(f"nbspam.models.{module}"), class_name)
    for parameter in parameters.keys() - make().get_params().keys():
        option = parameter.replace("_", "-")
        raise UsageError(f"--{option}: --model {name} has no such setting; leave it out")
    return make(**parameters)


def model_state(model: Any) -> dict[str, Any]:
    """Return the parameters of an estimator and what it has learnt, as plain values."""
    parameters = {
        name: np.asarray(value).tolist() if isinstance(value, np.ndarray | tuple) else value
        for name, value in model.get_params().items()
    }
    learnt = {k: v for k, v in vars(model).items() if k.endswith("_") and k != "classes_"}
    return {"parameters": parameters, "learnt": learnt}


def restored(name: str, state: Mapping[str, Any], classes: Sequence[str], nothing: Any) -> Any:
    """Return the estimator that `model_state` described; raises ValueError or the like.

    nothing: a row that says nothing.  Whatever does not fit together shows when it is judged.
    """
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
    """Return log P(class, row) in nats, shape (n_rows, n_classes).

    Where a row is impossible in every class, as maximum likelihood may find, it is the
    prior that is left.
    """
    joint: Floats = model.predict_joint_log_proba(X)
    impossible = np.isneginf(joint).all(axis=1, keepdims=True)
    return np.where(impossible, model.class_log_prior_, joint)


def text_model(name: str) -> Any:
    """Return the class of a model of whole messages: bernoulli, multinomial or complement."""
    return getattr(import_module(f"nbspam.models.{name}"), f"{name.capitalize()}NB")
