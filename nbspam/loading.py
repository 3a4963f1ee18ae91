"""Model files of every kind to classifiers.

Secret: how a file says what kind of model it holds.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from nbspam.errors import ModelFileError
from nbspam.modelfile import load_state

if TYPE_CHECKING:
    from nbspam.classifier import Classifier
    from nbspam.featureclassifier import FeatureClassifier
    from nbspam.tableclassifier import TableClassifier

# Files without a kind are of mail and text.
_KINDS = {
    "tokens": "nbspam.classifier",
    "table": "nbspam.tableclassifier",
    "features": "nbspam.featureclassifier",
}


def load(path: str) -> "Classifier | FeatureClassifier | TableClassifier":
    """Return the classifier a model file holds, whatever its kind; raises ModelFileError."""
    state = load_state(path)
    kind = state.get("kind", "tokens")
    if kind not in _KINDS:
        raise ModelFileError(f"{path}: a model of kind {kind!r}; upgrade nbspam")
    classifier: Classifier | FeatureClassifier | TableClassifier = import_module(
        _KINDS[kind]
    ).from_state(path, state)
    return classifier
