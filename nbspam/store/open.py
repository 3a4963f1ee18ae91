"""Opening and saving models of all kinds.

Secret: how a file states its kind of model, and how text formats are told apart.
"""

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO

from nbspam import __version__
from nbspam.answering import AnyClassifier
from nbspam.classifier.classifier import TOKENS, Classifier
from nbspam.disk import locked, resolved
from nbspam.errors import InputError, ModelFileError, UsageError
from nbspam.models.registry import DAMAGE
from nbspam.store.contents.tokens import check, check_memory
from nbspam.store.format.journal import Journal, read_model, write_model
from nbspam.store.format.modelfile import State
from nbspam.tokens.vocabulary import have_kinds

if TYPE_CHECKING:
    from nbspam.models.network.questions import NamedNetwork

# Only models of tokens learn on, and have a journal.
_KINDS = {
    TOKENS: ("nbspam.classifier.classifier", "Classifier"),
    "features": ("nbspam.classifier.features", "FeatureClassifier"),
    "table": ("nbspam.tables.classifier", "TableClassifier"),
}
PART = "part"  # the kind of a part of a training (store/merging/parts.py)
_MAX_LINE = 64 << 20  # bytes; lines of messages in the sample are far shorter


def load(path: str) -> AnyClassifier:
    """Return the classifier that a model file and its journal hold; raises ModelFileError.

    Warns of changes that cannot be used (ModelWarning).
    """
    classifier, journal = _read(path)
    if isinstance(classifier, Classifier) and journal.changes:
        from nbspam.store.assembly import in_step, with_changes

        return with_changes(classifier, in_step(classifier, journal.changes))
    return classifier


def load_whole(path: str) -> AnyClassifier:
    """Return the classifier that a model file without a journal would hold; see `load`.

    It remembers all messages that it has learned, and is fitted to all of them.
    """
    classifier, journal = _read(path)
    if isinstance(classifier, Classifier) and journal.changes:
        from nbspam.store.assembly import compacted, in_step

        return compacted(classifier, in_step(classifier, journal.changes))
    return classifier


def _read(path: str) -> tuple[AnyClassifier, Journal]:
    """Return the classifier in a model file, and the journal beside it."""
    path = resolved(path)
    snapshot, journal = read_model(path)
    return classifier_of(path, snapshot.state), journal


def load_tokens(path: str) -> Classifier:
    """Return the classifier in a model file that must be one of tokens.

    Raises ModelFileError, or UsageError for other kinds.
    """
    return of_tokens(path, load(path))


def of_tokens(path: str, classifier: AnyClassifier) -> Classifier:
    """Return the classifier if it is a model of tokens; raises UsageError for other kinds."""
    if not isinstance(classifier, Classifier):
        kind = "table" if type(classifier).__name__ == "TableClassifier" else "features"
        raise UsageError(
            f"{path}: a model of kind {kind}, which this command does not know; use train,"
            " classify, predict, explain, eval, info or doctor"
        )
    return classifier


def classifier_of(path: str, state: State) -> AnyClassifier:
    """Return the classifier in a model file's state; raises ModelFileError."""
    kind = state.get("kind", TOKENS)
    if kind == PART:
        raise ModelFileError(
            f"{path}: a part of a training, and not a model yet; add it to all other parts with:"
            " nbspam merge PART... -o FILE"
        )
    if type(kind) is not str or kind not in _KINDS:
        raise ModelFileError(f"{path}: a model of kind {kind!r}; upgrade nbspam")
    module, name = _KINDS[kind]
    try:
        check(state)
        restored = getattr(import_module(module), name).from_state
        if "keys" not in state or have_kinds(state["keys"]):
            classifier: AnyClassifier = restored(state)
        else:
            from nbspam.store.oldkeys import joined, with_new_keys

            classifier = joined(restored(with_new_keys(state)))
    except DAMAGE as error:
        raise _unfit(path, error) from error
    return classifier


def base_of(path: str, state: State) -> Classifier:
    """Return the model of tokens in a state, which must be able to learn on.

    Raises ModelFileError, or UsageError for other kinds.
    """
    classifier = of_tokens(path, classifier_of(path, state))
    if classifier.memory is None:
        raise ModelFileError(
            f"{path}: knows none of its messages, as it comes from --unlabelled or"
            " an older version; train it anew"
        )
    try:
        check_memory(state)
    except DAMAGE as error:
        raise _unfit(path, error) from error
    return classifier


def _unfit(path: str, error: Exception) -> ModelFileError:
    return ModelFileError(f"{path}: its contents do not fit ({error}); train it anew")


def save(path: str, classifier: AnyClassifier) -> None:
    """Write a model file, replacing an existing one; raises ModelFileError."""
    path = resolved(path)
    with locked(path):
        write(path, classifier)


def write(path: str, classifier: AnyClassifier, journal: Journal | None = None) -> None:
    """Write a model file and remove the old one's journal; the caller holds the lock.

    path: from `resolved`.  journal: that of the old one, if it was just read.
    """
    state = {"program": f"nbspam {__version__}", **classifier.to_state()}
    write_model(path, state, journal)


def read_text_model(path: str) -> Classifier:
    """Return the model in a text file, or in standard input (-); raises NbspamError.

    The text is the output of `nbspam export` or of `bogoutil -d`.
    """
    from nbspam.store.text import bogofilter, foreign, interchange

    try:
        with nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb") as stream:
            lines = _lines(stream)
            first = next(lines, b"")
            foreign.check_ours(first, path)
            is_json = first.lstrip()[:1] in (b"{", b"")
            load_lines = interchange.load_lines if is_json else bogofilter.load_lines
            return load_lines(chain([first] if first else [], lines), path)
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise InputError(f"{path}: {reason}; give a file that nbspam export wrote") from error


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    while line := stream.readline(_MAX_LINE):
        yield line


def load_network(path: str) -> "NamedNetwork":
    """Return the Bayesian network in a JSON file or a model file.

    Raises InputError, ModelFileError or UsageError.
    """
    from nbspam.models.network.network import from_json
    from nbspam.models.network.questions import NamedNetwork, network_of_tokens
    from nbspam.sources.files import read_json
    from nbspam.tables.classifier import TableClassifier

    if path.lower().endswith(".json"):
        return NamedNetwork(from_json(read_json(path), path))
    classifier: Any = load(path)
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
