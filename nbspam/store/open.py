"""Model files of every kind to classifiers.

Secret: how a file says what kind of model it holds.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from nbspam.classifier.classifier import TOKENS, Classifier, classifier_of, with_changes
from nbspam.errors import ModelFileError
from nbspam.store.format.journal import read_model
from nbspam.store.format.modelfile import State

if TYPE_CHECKING:
    from nbspam.classifier.features import FeatureClassifier
    from nbspam.tables.classifier import TableClassifier

    AnyClassifier = Classifier | FeatureClassifier | TableClassifier

# Models of tokens alone learn on, and have a journal.
_KINDS = {
    "table": "nbspam.tables.classifier",
    "features": "nbspam.classifier.features",
}


def load(path: str) -> "AnyClassifier":
    """Return the classifier a model file and its journal hold; raises ModelFileError."""
    snapshot, journal = read_model(path)
    classifier = any_classifier_of(path, snapshot.state)
    if isinstance(classifier, Classifier):
        return with_changes(classifier, journal.changes)
    return classifier


def any_classifier_of(path: str, state: State) -> "AnyClassifier":
    """Return the classifier that a model file's state means; raises ModelFileError."""
    kind = state.get("kind", TOKENS)
    if kind == TOKENS:
        return classifier_of(path, state)
    if kind not in _KINDS:
        raise ModelFileError(f"{path}: a model of kind {kind!r}; upgrade nbspam")
    classifier: FeatureClassifier | TableClassifier = import_module(_KINDS[kind]).from_state(
        path, state
    )
    return classifier
