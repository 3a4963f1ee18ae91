"""Model files of every kind to classifiers.

Secret: how a file says what kind of model it holds.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from nbspam.classifier.classifier import TOKENS, Classifier, classifier_of, with_changes
from nbspam.errors import ModelFileError, UsageError
from nbspam.store.format.journal import read_model
from nbspam.store.format.modelfile import State

if TYPE_CHECKING:
    from nbspam.classifier.features import FeatureClassifier
    from nbspam.models.network.questions import NamedNetwork
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


def load_network(path: str) -> "NamedNetwork":
    """Return the Bayesian network that a JSON file or a model file holds.

    Raises InputError, ModelFileError or UsageError.
    """
    from nbspam.models.network.network import from_json
    from nbspam.models.network.questions import NamedNetwork, network_of_tokens
    from nbspam.sources.jsonfile import read_json
    from nbspam.tables.classifier import TableClassifier

    if path.lower().endswith(".json"):
        return NamedNetwork(from_json(read_json(path), path))
    classifier = load(path)
    if isinstance(classifier, Classifier) or not hasattr(classifier.model, "network"):
        raise UsageError(
            f"{path}: holds another kind of model; train one with: nbspam train --model network"
        )
    if isinstance(classifier, TableClassifier):
        schema = classifier.schema
        states = [tuple(c.value(k) for k in range(c.n_values)) for c in schema.columns]
        cuts = {j: c.cuts for j, c in enumerate(schema.columns) if c.cuts is not None}
        network = classifier.model.network(schema.names, [*states, schema.classes])
        return NamedNetwork(network, cuts)
    vocabulary = classifier.table.vocabulary
    tokens = [vocabulary.text(j) for j in range(len(vocabulary))]
    return network_of_tokens(classifier.model, tokens, classifier.classes)
