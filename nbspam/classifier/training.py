"""Training: counts and a sample of messages become a classifier, and learn on message by message.

Everything that makes a `Classifier` from counted messages (training, learning on, merging,
pruning, importing, cross-validation) calls `derive`, or `fitted_evidence` if only evidence is
fitted again.  There are two exceptions: EM (`unlabelled`) always sums evidence, and calls
`log_tables`; models of dependent tokens (`features`) come from documents instead of counts.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Floats, Integers
from nbspam.classifier import combine, fitting
from nbspam.classifier.classifier import Classifier, Fit
from nbspam.counts import ledger
from nbspam.counts.counting import Training, count_items
from nbspam.counts.table import (
    CountTable,
    add_tables,
    counted,
    most_frequent,
    no_counts,
    possible_counts,
    pruned_table,
    token_counts_of,
    without_empty,
)
from nbspam.errors import NotTrainedError, UsageError
from nbspam.models import TOKEN_MODELS
from nbspam.settings import FEATURES, PRESENCE, UNBOUNDED, Bounds, Settings, check_unbounded
from nbspam.sources.items import Item
from nbspam.tokens.definition import GROUPS
from nbspam.tokens.sparse import ChangedRows, Documents
from nbspam.tokens.tokenizer import named_vocabulary
from nbspam.verdicts import NO_LABEL, LogOddsParts, Skipped
from nbspam.workers import Workers

if TYPE_CHECKING:
    from nbspam.classifier.blend import Blend
    from nbspam.classifier.features import FeatureClassifier

    # Not LogTables: plain tables follow from all counts, and so change with every message.
    LearningFit = combine.Combination | Blend

# Bytes of a model's tokens at most, so that a model of a million messages stays below 200 MB.
MAX_MODEL_BYTES = 160_000_000
# Bytes of a token: fixed (with its text), for each class, and for each class of a blended model.
_TOKEN_BYTES, _CLASS_BYTES, _BLENDED_BYTES = 35, 12, 8


class TrainingResult(NamedTuple):
    """A trained classifier, and what happened to the items."""

    classifier: "Classifier | FeatureClassifier"
    repeated: int  # messages that came again and were not counted again
    skipped: tuple[Skipped, ...]


def learn_items(
    items: Iterable[Item],
    settings: Settings,
    jobs: Workers = 1,
    day: int = 0,
    bounds: Bounds = UNBOUNDED,
) -> TrainingResult:
    """Return a classifier trained on items; raises NotTrainedError.

    day: today, in days since 1970-01-01.  bounds: not for models of dependent tokens, which look
    at all messages several times; raises UsageError.
    """
    if bounds.vocabulary is not None:
        return learn_vocabulary(items, settings, jobs, bounds)
    if settings.model not in FEATURES:
        training = count_items(items, settings, jobs, bounds=bounds)
        return TrainingResult(
            train_classifier(training, settings, day), training.repeated, training.skipped
        )
    check_unbounded(bounds, f"--model {settings.model}")
    from nbspam.classifier.features import train_features
    from nbspam.counts.corpus import read_corpus

    # Dependence between tokens shows only in documents, not in counts.
    data, skipped = read_corpus(items, settings, jobs)
    return TrainingResult(train_features(data, settings), 0, skipped)


def learn_vocabulary(
    items: Iterable[Item], settings: Settings, jobs: Workers, bounds: Bounds
) -> TrainingResult:
    """Return a plain classifier over exactly these tokens, which does not learn on.

    bounds: with a vocabulary.  Raises NotTrainedError, and UsageError for settings that do not
    go with it.
    """
    from nbspam.classifier.sum import log_tables
    from nbspam.counts.corpus import read_corpus

    assert bounds.vocabulary is not None
    check_unbounded(bounds._replace(vocabulary=None), "a model with --vocabulary")
    if settings.combine or settings.model in FEATURES:
        raise UsageError(f"--vocabulary: for {', '.join(TOKEN_MODELS)}; say --model NAME too")
    if settings.min_df > 1 or settings.max_features is not None:
        raise UsageError(
            "--min-df, --max-features: --vocabulary names the tokens; leave out one of them"
        )
    vocabulary = named_vocabulary(bounds.vocabulary)
    data, skipped = read_corpus(items, settings, jobs)
    once, y, _ = data.unique(np.arange(len(data.y)))
    documents = vocabulary.in_columns(data.over_keys(once)).over_all(np.arange(len(vocabulary)))
    table = counted(data.classes, vocabulary, documents, y, settings.weighting)
    check_classes(table)
    classifier = Classifier(settings, table, log_tables(table, settings))
    return TrainingResult(classifier, len(data.y) - len(once), skipped)


def train_classifier(training: Training, settings: Settings, day: int = 0) -> Classifier:
    """Return a classifier trained on counts and a sample; raises NotTrainedError.

    day: today, in days since 1970-01-01.
    """
    check_classes(training.table, training.skipped)
    table = pruned_table(training.table, settings.min_df, settings.max_features)
    days = np.full(len(training.digests), day, np.uint16)
    with_counts = settings.weighting != PRESENCE
    memory = ledger.Memory(
        ledger.ledger_of(training.digests, training.labels, days, table.classes, training.told),
        ledger.kept_sample(training.messages, training.bits, table.vocabulary, with_counts),
        np.full(len(table.vocabulary), day, np.uint16),
        has_ledger=training.has_ledger,
    )
    return derive(table, memory, settings)


def derive(table: CountTable, memory: ledger.Memory, settings: Settings) -> Classifier:
    """Return the classifier that follows from counts and memory; raises NotTrainedError.

    If there are more tokens than MAX_MODEL_BYTES allows, the rarest are dropped; of equally rare
    ones the least recently seen.
    """
    check_classes(table)
    limit = most_tokens(table, settings)
    if len(table.vocabulary) > limit:
        columns = most_frequent(table.document_frequency, limit, memory.last_seen)
        table, memory = table.forgetting(columns), memory.only(columns)
    sample, told = memory.sample.documents, memory.sample_told
    fit = fitted_evidence(table, sample, memory.sample_labels, settings, told)
    return Classifier(settings, table, fit, memory)


def most_tokens(table: CountTable, settings: Settings) -> int:
    """Return the number of tokens that a model of these classes has room for."""
    is_blended = settings.combine and not is_combined(table, settings)
    of_a_class = _BLENDED_BYTES if is_blended else _CLASS_BYTES
    return MAX_MODEL_BYTES // (_TOKEN_BYTES + of_a_class * len(table.classes))


def fitted_evidence(
    table: CountTable,
    documents: Documents,
    y: Integers,
    settings: Settings,
    told: Booleans | None = None,
) -> Fit:
    """Return the way in which evidence adds up, fitted to a sample of the counted messages.

    documents: over columns of the table, in the order of their digests.  y: (n_docs,) class of
    each document.  told: (n_docs,) whether a person has told it; None: none of them.  Before a
    message of both classes is there, nothing is evidence.  Raises NotTrainedError if one of more
    than two classes has no message.
    """
    if not table.class_count.all():
        if len(table.classes) > 2:
            empty = table.classes[int(table.class_count.argmin())]
            raise NotTrainedError(f"no message of class {empty}; learn some, or leave it out")
        nothing = np.zeros(len(table.vocabulary), np.float32)  # no token is evidence
        return combine.Combination(np.zeros(len(GROUPS) + 1), nothing)
    if not settings.combine:
        from nbspam.classifier.sum import log_tables

        return log_tables(table, settings)
    if is_combined(table, settings):
        return fitting.fit_combination(table, documents, y, told)
    from nbspam.classifier import blend

    return blend.fit_blend(table, documents, y, settings.weighting)


def is_combined(table: CountTable, settings: Settings) -> bool:
    """Return whether evidence is combined: two classes, and presence of tokens; else blended."""
    return len(table.classes) == 2 and settings.weighting == PRESENCE


def check_classes(table: CountTable, skipped: Sequence[Skipped] = ()) -> None:
    """Raise NotTrainedError if there are fewer than two classes; say what could not be read."""
    if len(table.classes) < 2:
        found = f"only one class ({table.classes[0]})" if table.classes else "no labels"
        if unread := [item for item in skipped if item.reason != NO_LABEL]:
            last = unread[-1]
            found += f", and {len(unread)} not readable, such as {last.name}: {last.why}"
        raise NotTrainedError(
            f"train: {found}; a classifier needs two classes or more: give a folder with one"
            " sub-folder per class, a table with a column of classes, or --spam PATH --ham PATH"
            " (or each to nbspam update; --format csv reads a table from standard input)"
        )


# --- learning on -----------------------------------------------------------------------------

# Each message is added to the counts at once.  How evidence adds up is fitted again when a class
# has changed by a twentieth, and stays as it is between two fits.  Whether a fit is due depends
# on the sequence of messages alone, and so does the model: not on calls, bytes or processes.
#
# `ModelGrowth` says when a fit is due, for `nbspam update`, the library and `nbspam eval
# --online`.  The first two add changes to a model by `overlay`; the last one judges thousands of
# messages in a row and counts in place, by `Learner`.  Tests hold that both answer alike.

# A fit is due when a class has changed by this share of its size at the last fit, or after this
# many changes.  The fitted weights suit the counts for about that long: with a twentieth less than
# 1 % of labels differ from those of a model trained at once (E-016).
REFIT_SHARE = 0.05
MAX_CHANGES = 2_000


class ModelGrowth:
    """Counts the changes of classes since the last fit, and tells when the next fit is due."""

    def __init__(self, class_count: Mapping[str, float]) -> None:
        self.class_count = Counter(dict(class_count))
        self._begin()

    def _begin(self) -> None:
        self._fitted = dict(self.class_count)
        self._changed: Counter[str] = Counter()
        self._n_changes = 0

    @classmethod
    def of(cls, classifier: Classifier) -> "ModelGrowth":
        """Return the growth of a classifier that was fitted with all of its messages."""
        counts = classifier.table.class_count.tolist()
        return cls(dict(zip(classifier.classes, counts, strict=True)))

    def copy(self) -> "ModelGrowth":
        """Return an independent copy."""
        return deepcopy(self)

    @property
    def classes(self) -> tuple[str, ...]:
        """The sorted names of the classes that have messages."""
        return tuple(sorted(name for name, n in self.class_count.items() if n > 0))

    def note(self, before: str | None, after: str | None) -> bool:
        """Note that a message changes its class; return whether a fit is due now.

        before: its old class, None if it had none; after: its new class, None if it is un-learned.
        """
        self._n_changes += 1
        for name, n in ((before, -1), (after, 1)):
            if name is not None:
                self.class_count[name] += n
                self._changed[name] += 1
        is_due = self._n_changes >= MAX_CHANGES or any(
            n >= REFIT_SHARE * self._fitted.get(name, 0.0) for name, n in self._changed.items()
        )
        if is_due:
            self._begin()
        return is_due

    def note_all(self, changes: Iterable[ledger.LabelChange]) -> int:
        """Note changes; return the number of those up to the last fit that became due, or 0."""
        last = 0
        for number, change in enumerate(changes, 1):
            if self.note(change.before, change.after):
                last = number
        return last


class Learner:
    """A classifier that learns on; it copies the counts and changes its copy in place."""

    def __init__(self, table: CountTable, fit: "LearningFit", settings: Settings) -> None:
        self._settings = settings
        self.table = table._replace(
            class_count=np.array(table.class_count, np.float64),
            feature_count=np.array(table.feature_count, np.float64),
            document_frequency=np.array(table.document_frequency, np.int64),
        )
        self.fit = fit  # may be replaced by another one of the same counts

    def answer(self, document: Documents) -> Floats:
        """Return log P(class, document), nats, shape (n_classes,).

        document: a single document, over columns of the table.
        """
        return np.asarray(self.classifier.joint_of(self.table.without_unlearned(document))[0])

    def reasons(self, document: Documents, towards: int, against: int) -> LogOddsParts:
        """Return the share of each token in the log-odds of two classes, and the constant."""
        return self.classifier.reasons(self.table.without_unlearned(document), towards, against)

    @property
    def classifier(self) -> Classifier:
        """The classifier so far; it changes with the next message."""
        return Classifier(self._settings, self.table, self.fit)

    def learn(self, document: Documents, before: int | None, after: int | None) -> None:
        """Learn a document; before, after: index of its old and new class, None for no class."""
        table, columns, weighting = self.table, document.tokens, self._settings.weighting
        groups, n_classes = table.vocabulary.groups[columns], len(table.classes)
        for y, sign in ((before, -1), (after, 1)):
            if y is None:
                continue
            counts = token_counts_of(document, np.array([y]), n_classes, groups, weighting)
            had = table.document_frequency[columns] > 0
            table.class_count[y] += sign
            table.feature_count[columns] += sign * counts.feature_count
            table.document_frequency[columns] += sign * counts.document_frequency
            appeared = (table.document_frequency[columns] > 0).astype(np.int64) - had
            self.fit = self.fit.counted(groups, sign * counts.feature_count, appeared)


def overlay(classifier: Classifier, changes: Sequence[ledger.LabelChange]) -> Classifier:
    """Return the classifier with changes added to its counts, and the fit it has.

    No fit may be due among the changes (see `store.assembly.with_changes`).
    """
    if not changes:
        return classifier
    settings, base = classifier.settings, classifier.table
    signed = ledger.signed_table(changes, base.vocabulary, settings.weighting)
    if settings.combine:
        table = ledger.overlaid(base, signed)
    else:  # sums depend on the number of tokens, so tokens without messages are dropped
        total = possible_counts(add_tables([base, signed]), settings.weighting)
        table = add_tables([without_empty(total), no_counts(base.classes)])
    fit = classifier.fit.recounted(table, settings)
    return replace(classifier, table=table, fit=fit, memory=None)


def uncopied_overlay(classifier: Classifier, changes: Sequence[ledger.LabelChange]) -> Classifier:
    """Return the same as `overlay`, only for judging and explaining; nothing is copied."""
    settings, base, fit = classifier.settings, classifier.table, classifier.fit
    if not (changes and isinstance(fit, combine.Combination)):
        return overlay(classifier, changes)
    table = ledger.uncopied_sum(
        base, ledger.signed_table(changes, base.vocabulary, settings.weighting)
    )
    no_more = np.zeros(len(table.vocabulary) - len(fit.correction), np.float32)
    correction: Any = ChangedRows(fit.correction, no_more)
    fit = fit._replace(correction=correction)
    return replace(classifier, table=table, fit=fit, memory=None)
