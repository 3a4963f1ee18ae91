"""Opening and saving model files of every kind.

Secret: how a file says what kind of model it holds.
"""

from typing import TYPE_CHECKING

from nbspam import __version__
from nbspam.classifier.classifier import TOKENS, Classifier, classifier_of, with_changes
from nbspam.disk import locked
from nbspam.errors import ModelFileError
from nbspam.store.format.journal import read_model, write_model
from nbspam.store.format.modelfile import State

if TYPE_CHECKING:
    from nbspam.classifier.features import FeatureClassifier
    from nbspam.tables.classifier import TableClassifier

    AnyClassifier = Classifier | FeatureClassifier | TableClassifier

# Models of other kinds have no journal: only models of tokens can learn on.
_KINDS = {"table": "a table's model", "features": "a model of features"}


def load(path: str) -> "AnyClassifier":
    """Return the classifier that a model file and its journal hold; raises ModelFileError."""
    snapshot, journal = read_model(path)
    classifier = any_classifier_of(path, snapshot.state)
    if isinstance(classifier, Classifier):
        return with_changes(classifier, journal.changes)
    return classifier


def any_classifier_of(path: str, state: State) -> "AnyClassifier":
    """Return the classifier that a model file's state describes; raises ModelFileError."""
    kind = state.get("kind", TOKENS)
    if kind == TOKENS:
        return classifier_of(path, state)
    if kind not in _KINDS:
        raise ModelFileError(f"{path}: a model of kind {kind!r}; upgrade nbspam")
    from nbspam.models.registry import DAMAGE

    try:
        return _class_of(kind).from_state(state)
    except DAMAGE as error:
        raise ModelFileError(f"{path}: not {_KINDS[kind]} ({error}); train it anew") from error


def _class_of(kind: str) -> "type[FeatureClassifier | TableClassifier]":
    """Return the class of models of a kind, one of _KINDS."""
    if kind == "table":
        from nbspam.tables.classifier import TableClassifier

        return TableClassifier
    from nbspam.classifier.features import FeatureClassifier

    return FeatureClassifier


def save(path: str, classifier: "AnyClassifier") -> None:
    """Write a model file in place of any other and its journal; raises ModelFileError."""
    if isinstance(classifier, Classifier):
        classifier.save(path)
        return
    state = {"program": f"nbspam {__version__}", **classifier.to_state()}
    with locked(path):
        write_model(path, state)
