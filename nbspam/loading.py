"""Model files of every kind to classifiers.

Secret: how a file says what kind of model it holds.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from nbspam.classifier import TOKENS, classifier_of, with_changes
from nbspam.errors import ModelFileError
from nbspam.journal import read_model
from nbspam.modelfile import State

if TYPE_CHECKING:
    from nbspam.classifier import Classifier
    from nbspam.featureclassifier import FeatureClassifier
    from nbspam.tableclassifier import TableClassifier

    AnyClassifier = Classifier | FeatureClassifier | TableClassifier

# Models of tokens alone learn on, and have a journal.
_KINDS = {
    "table": "nbspam.tableclassifier",
    "features": "nbspam.featureclassifier",
}


def load(path: str) -> "AnyClassifier":
    """Return the classifier a model file and its journal hold, whatever its kind.

    Raises ModelFileError.
    """
    snapshot, journal = read_model(path)
    if snapshot.state.get("kind", TOKENS) == TOKENS:
        return with_changes(classifier_of(path, snapshot.state), journal.changes)
    return other_classifier_of(path, snapshot.state)


def other_classifier_of(path: str, state: State) -> "FeatureClassifier | TableClassifier":
    """Return the classifier that a file's state means, where it is not one of tokens."""
    kind = state["kind"]
    if kind not in _KINDS:
        raise ModelFileError(f"{path}: a model of kind {kind!r}; upgrade nbspam")
    classifier: FeatureClassifier | TableClassifier = import_module(_KINDS[kind]).from_state(
        path, state
    )
    return classifier
