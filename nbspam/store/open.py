"""Opening, saving and replacing models of all kinds, and opening them from text."""

import os
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from nbspam.classifier.classifier import TOKENS_KIND, Classifier
from nbspam.decision import HAM_AND_SPAM, Cutoffs
from nbspam.disk import locked, open_own, replacing, resolved, stamp_of, writing
from nbspam.errors import InputError, ModelFileError, NbspamError, UsageError
from nbspam.models import DAMAGE
from nbspam.store import journal as journals
from nbspam.store.fields import check_memory, check_state
from nbspam.store.modelfile import State, check_target, is_model_file, load_state
from nbspam.verdicts import AnyClassifier

if TYPE_CHECKING:
    from nbspam.models.network_questions import NamedNetwork

# Only models of tokens have a journal.
_CLASS_OF_KIND = {
    TOKENS_KIND: ("nbspam.classifier.classifier", "Classifier"),
    "features": ("nbspam.classifier.features", "FeatureClassifier"),
    "table": ("nbspam.tables.classifier", "TableClassifier"),
}
_Classifier = TypeVar("_Classifier", bound=AnyClassifier)
PART_KIND = "part"  # the kind of a part of a training
_MAX_LINE = 64 << 20  # bytes; lines of messages in the sample are far shorter


def load_classifier(path: str) -> AnyClassifier:
    """Return the classifier that a model file and its journal hold; raises ModelFileError.

    Warns of changes that cannot be used (ModelWarning).
    """
    path = resolved(path)
    snapshot, journal = journals.read_model(path)
    classifier = classifier_of(path, snapshot.state)
    if not (isinstance(classifier, Classifier) and journal.changes):
        return classifier
    from nbspam.store.assembly import with_changes

    return with_changes(classifier, journal.changes)


def with_lists(classifier: _Classifier, path: str) -> _Classifier:
    """Return a classifier of mail with the lists beside its model; raises InputError."""
    if not os.path.lexists(f"{resolved(path)}.lists"):  # no start waits for imports
        return classifier
    from nbspam.mail.addresses import read_lists

    if not isinstance(classifier, Classifier) or classifier.settings.reading != "mail":
        return classifier
    if classifier.classes != HAM_AND_SPAM or (lists := read_lists(path)) is None:
        return classifier
    return replace(classifier, lists=lists.trusting(classifier.settings.authserv_id))


def load_tokens(path: str) -> Classifier:
    """Return the classifier in a model file that must be one of tokens.

    Raises ModelFileError, or UsageError for other kinds.
    """
    return of_tokens(path, load_classifier(path))


def of_tokens(path: str, classifier: AnyClassifier) -> Classifier:
    """Return a classifier that is a model of tokens; raises UsageError for other kinds."""
    if not isinstance(classifier, Classifier):
        if type(classifier).__name__ == "TableClassifier":
            raise UsageError(f"{path}: the model of a table; see: nbspam table")
        raise UsageError(
            f"{path}: a model of dependent tokens, only for classify, predict, explain, eval,"
            " words, info, query and doctor; train another without --model tan and the like"
        )
    return classifier


def classifier_of(path: str, state: State) -> AnyClassifier:
    """Return the classifier in a model file's state; raises ModelFileError."""
    if "kind" not in state:
        raise _unfit(path, KeyError("kind"))
    kind = state["kind"]
    if kind == PART_KIND:
        raise ModelFileError(
            f"{path}: a part of a training, and not a model yet; add it to all other parts with:"
            " nbspam merge PART... -o FILE"
        )
    if type(kind) is not str or kind not in _CLASS_OF_KIND:
        raise ModelFileError(f"{path}: a model of kind {kind!r}; upgrade nbspam")
    module, name = _CLASS_OF_KIND[kind]
    try:
        check_state(state)
        classifier: AnyClassifier = getattr(import_module(module), name).from_state(state)
    except DAMAGE as error:
        raise _unfit(path, error) from error
    return classifier


def base_of(path: str, state: State) -> Classifier:
    """Return the model of tokens in a state.

    Raises ModelFileError if it cannot learn on, and UsageError for other kinds.
    """
    classifier = of_tokens(path, classifier_of(path, state))
    if classifier.memory is None:
        raise ModelFileError(
            f"{path}: knows none of its messages, as after --unlabelled or --vocabulary; train it"
            " again with labelled messages"
        )
    try:
        check_memory(state)
    except DAMAGE as error:
        raise _unfit(path, error) from error
    return classifier


def _unfit(path: str, error: Exception) -> ModelFileError:
    return ModelFileError(f"{path}: its contents do not fit ({error}); train it again")


def save_classifier(path: str, classifier: AnyClassifier) -> None:
    """Write a model file, replacing an existing one; raises ModelFileError."""
    path = resolved(path)
    check_target(path)  # before a lock of another file, such as a mailbox, is made
    with journals.locked_model(path):
        journals.write_model(path, readable_state(path, classifier), stamp_of(path))


def readable_state(path: str, classifier: AnyClassifier) -> State:
    """Return a classifier's state for a file; raises ModelFileError if nothing could read it."""
    state = classifier.to_state()
    try:
        check_state(state)
    except DAMAGE as error:
        raise ModelFileError(f"{path}: not written ({error}); use smaller numbers") from error
    return state


def keep_cutoffs(path: str, cutoffs: Cutoffs) -> None:
    """Write cutoffs into a model of tokens; raises NbspamError.

    The new file includes the journal's changes, read under the same lock, so that nothing is lost.
    """
    from nbspam.store.assembly import compacted

    path = resolved(path)
    with journals.locked_model(path):
        snapshot, journal = journals.read_model(path)
        classifier = of_tokens(path, classifier_of(path, snapshot.state))
        if classifier.memory is not None and journal.owner == snapshot.identity:
            classifier = compacted(classifier, journal.changes, journal.progress)
        state = replace(classifier, cutoffs=cutoffs).to_state()
        journals.write_model(path, state, snapshot.stamp)


# ---- replacing a model by another one ----
#
# What the old model knew is kept as MODEL~, a whole model, unless the new one has learned every
# message of the old one in the same class, told if it was, with the same settings.


def save_keeping(path: str, classifier: AnyClassifier) -> str | None:
    """Write a model file, and return where the model that it replaces is kept, if it is.

    Raises ModelFileError; then the old model is there as before.
    """
    path = resolved(path)
    check_target(path)
    state = readable_state(path, classifier)
    with journals.locked_model(path), journals.replacing_model(path, state) as new:
        stamp = stamp_of(path)
        kept = keep_old_model(path) if _would_lose(path, classifier) else None
        journals.hand_over(path, new, stamp, journals.read_journal(path))
    return kept


def _would_lose(path: str, new: AnyClassifier) -> bool:
    """Return whether a model file holds something that a new classifier does not know."""
    try:
        if not is_model_file(path):
            return False
        snapshot, journal = journals.snapshot_and_journal(path)
        old = classifier_of(path, snapshot.state)
        if journal.owner != snapshot.identity:  # another model's journal is always kept aside
            journal = journals.NO_JOURNAL
    except (NbspamError, OSError):
        return True  # another program may be able to read it
    if isinstance(old, Classifier) and isinstance(new, Classifier):
        return not _knows_all(new, old, journal)
    return True


def _knows_all(new: Classifier, old: Classifier, journal: journals.Journal) -> bool:
    """Return whether a classifier has every choice and every message of an old one."""
    if old.memory is None or new.memory is None:
        return False
    ledger, mine = old.memory.ledger, new.memory.ledger
    # Counts of messages that the ledger does not have come from an import or from fading.
    if old.table.n_docs != len(ledger.digests):
        return False
    if (old.settings, old.cutoffs) != (new.settings, new.cutoffs) or journal.is_damaged:
        return False
    from nbspam.store.assembly import messages_after

    parts = messages_after(old, journal.changes)
    place = mine.find(np.concatenate([part.digests for part in parts]))
    names = np.concatenate([part.names for part in parts])
    told = np.concatenate([part.told for part in parts])
    knows = (place >= 0).all() and (names == np.array(new.classes)[mine.labels[place]]).all()
    return bool(knows and (told <= mine.told[place]).all())


def keep_old_model(path: str) -> str:
    """Copy a model and its journal to MODEL~, and return that path; raises ModelFileError.

    The caller holds the model's lock.  The model comes first: a journal of another model is
    ignored, so that a crash in between also leaves a whole model.
    """
    kept = f"{path}~"
    with locked(kept, like=path), writing(path):
        _copy(path, kept)
        try:
            _copy(journals.journal_path(path), journals.journal_path(kept))
        except FileNotFoundError:
            journals.remove_journal(kept)
    return kept


def _copy(source: str, target: str) -> None:
    import shutil

    with open(open_own(source, source), "rb") as stream, replacing(target, like=source) as file:
        shutil.copyfileobj(stream, file)


def check_no_filter(path: str) -> None:
    """Raise ModelFileError if the model in a file is a mail filter's: one of ham and spam."""
    try:
        state = load_state(resolved(path))
        classes = classifier_of(path, state).classes
    except NbspamError:
        return  # no model is there, or none that a filter can use
    if state["kind"] != "table" and set(classes) <= set(HAM_AND_SPAM):
        raise ModelFileError(
            f"{path}: holds the model of a mail filter, and this one is of a table; give it a"
            " file of its own with -m FILE, or name this file with -m to replace it"
        )


# ---- models in text, and networks ----


def read_text_model(path: str) -> Classifier:
    """Return the model in a text file, or in standard input (-); raises NbspamError.

    The text is the output of `nbspam export` or of `bogoutil -d`, compressed if its name says so.
    """
    from nbspam.sources import files
    from nbspam.store import text

    try:
        with (
            nullcontext(files.standard_input()) if path == "-" else open(path, "rb") as source,
            files.Blaming(path),
        ):
            lines = iter(partial(files.expanded(path, source).readline, _MAX_LINE), b"")
            first = next(lines, b"")
            text.check_ours(first, path)
            is_json = first.lstrip()[:1] in (b"{", b"")
            load_lines = text.model_of_lines if is_json else text.model_of_bogofilter_lines
            return load_lines(chain([first] if first else [], lines), path)
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise InputError(f"{path}: {reason}; give a file that nbspam export wrote") from error


def load_network(path: str) -> "NamedNetwork":
    """Return the Bayesian network in a JSON file or a model file.

    Raises InputError, ModelFileError or UsageError.
    """
    from nbspam.models.network import from_json
    from nbspam.models.network_questions import NamedNetwork
    from nbspam.sources.files import read_json

    if path.lower().endswith(".json"):
        return NamedNetwork(from_json(read_json(path), path))
    return network_of_model(path, load_classifier(path))


def network_of_model(path: str, classifier: Any) -> "NamedNetwork":
    """Return the Bayesian network of a model that a file holds; raises UsageError."""
    from nbspam.models.network_questions import NamedNetwork, network_of_tokens
    from nbspam.tables.classifier import TableClassifier

    of_table = "table " if isinstance(classifier, TableClassifier) else ""
    if isinstance(classifier, Classifier) or not hasattr(classifier.model, "network"):
        raise UsageError(
            f"{path}: its model has no network; train one beside it: nbspam {of_table}train SOURCE"
            f"{' --target NAME' if of_table else ''} --model network -m network.nbspam"
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
