"""Ways of judging: answers from folds, from other mail or of a model file.

Each way ends in a `Trial`.  Documents are tokenised once, however many models are trained on
them, and models are trained and give answers by the same functions as in `nbspam train` and
`nbspam classify`.  For a learning curve, smaller models answer the same documents.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Floats, Integers, Keys, checked_seed
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.features import features_held_out
from nbspam.classifier.sum import assumed_prior
from nbspam.classifier.training import learn_items, train_classifier
from nbspam.counts.corpus import Corpus, read_corpus, remembered, stratified_folds
from nbspam.decision import default_rule
from nbspam.errors import InputError, UsageError, check_number
from nbspam.evaluation.evaluation import SmallerModelResult, Trial
from nbspam.evaluation.witness import Witness
from nbspam.mail.digest import digest_of
from nbspam.printing import amount_text, tracked
from nbspam.settings import FEATURES, Settings
from nbspam.sources.items import Item
from nbspam.sources.records import Record
from nbspam.tables.schema import Schema, Table
from nbspam.tables.training import TableSettings, rows_held_out, table_rows, train_table
from nbspam.verdicts import NO_LABEL, AnyClassifier, HeldOut, Skipped
from nbspam.workers import Workers, ordered_map

# Trains on the first rows and returns its answers to the second.
Answering = Callable[[Integers, Integers], HeldOut]
LEAVE_ONE_OUT = "loo"  # as the number of folds: one for each document
SHARES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)  # of the training documents, for smaller models
_PARTS = 64  # of the folds, of which a worker gets one at a time; at most


# --- folds -------------------------------------------------------------------------------


def judge_folds(
    items: Iterable[Item],
    settings: Settings,
    k: int | str,
    seed: int,
    jobs: Workers = 1,
    with_smaller: bool = False,
    witness: Witness | None = None,
) -> Trial:
    """Return the answers to items by cross-validation; raises InputError, UsageError.

    with_smaller: see `with_answers`.
    """
    data, skipped = labelled_corpus(items, settings, jobs)
    trial = fold_trial(data, settings, k, seed, with_smaller, jobs, witness)
    return replace(trial, skipped=skipped)


def fold_trial(
    data: Corpus,
    settings: Settings,
    k: int | str,
    seed: int,
    with_smaller: bool = False,
    jobs: Workers = 1,
    witness: Witness | None = None,
) -> Trial:
    """Return a corpus's answers by cross-validation; raises UsageError."""
    # All copies of a message are in one fold: a model that has learned one knows the others.
    _, first, copy = np.unique(data.digests, return_index=True, return_inverse=True)
    distinct = np.sort(first)
    of_distinct = folds(data.y[distinct], data.classes, k, seed, f"different {settings.noun}")
    fold = of_distinct[np.searchsorted(distinct, first)][copy]
    trial = unanswered(data, settings, fold)
    held_out = features_held_out if settings.model in FEATURES else _held_out
    return with_answers(trial, partial(held_out, data, settings), with_smaller, jobs, witness)


def table_trial(
    table: Table,
    settings: TableSettings,
    k: int | str,
    seed: int,
    with_smaller: bool = False,
    jobs: Workers = 1,
    witness: Witness | None = None,
) -> Trial:
    """Return the answers to a table's rows by cross-validation; raises UsageError.

    The intervals of numeric columns are computed for each fold without its rows.
    """
    classifier = train_table(table, settings)
    trial = Trial(
        classifier.classes,
        table.y,
        np.empty((0, 0)),  # `with_answers` finds them
        classifier.rule,
        folds(table.y, classifier.classes, k, seed, classifier.noun),
        classifier.prior,
        table.names,
        classifier.noun,
    )
    held_out = partial(rows_held_out, table, settings)
    return with_answers(trial, held_out, with_smaller, jobs, witness)


def unanswered(data: Corpus, settings: Settings, fold: Integers) -> Trial:
    """Return the trial of a corpus, whose answers are still to be found."""
    # Models of dependent tokens learn copies of mail, too.
    learned = data.y if settings.model in FEATURES else data.unique(np.arange(len(data.y)))[1]
    class_count = np.bincount(learned, minlength=len(data.classes)).astype(np.float64)
    return Trial(
        data.classes,
        data.y,
        np.empty((0, 0)),
        default_rule(data.classes, settings.is_mail_combined),
        fold,
        assumed_prior(class_count, settings),
        data.names,
        settings.noun,
        digests=data.digests,
    )


def folds(y: Integers, classes: Sequence[str], k: int | str, seed: int, noun: str) -> Integers:
    """Return the fold of each document in k stratified folds, shape (n_docs,).

    y: (n_docs,) index into classes, of which some may not occur.  k: a number, or LEAVE_ONE_OUT
    for as many folds as there are documents, which cannot be stratified.  noun: what they are, in
    the plural.  Raises UsageError if a class that occurs has fewer than k, or is left out whole.
    """
    n_docs, count = len(y), np.bincount(y, minlength=len(classes))
    rarest = int(np.where(count, count, n_docs + 1).argmin())
    smallest, name = int(count[rarest]), classes[rarest]
    if smallest < 2:
        raise UsageError(
            f"--cv {k}: class {name} has fewer than two {noun}, and without them no model knows"
            " it; give two or more of each class"
        )
    if k in (LEAVE_ONE_OUT, n_docs):
        return np.arange(n_docs)
    check_number("--cv", k, 2, whole=True)
    k = int(k)
    if k > smallest:
        raise UsageError(
            f"--cv {k}: the smallest class, {name}, has {smallest} {noun}; give a number of folds"
            " from 2 to that, or loo to leave out one at a time"
        )
    return stratified_folds(y, k, np.random.RandomState(checked_seed(seed)))


def with_answers(
    trial: Trial,
    held_out: Answering,
    with_smaller: bool = False,
    jobs: Workers = 1,
    witness: Witness | None = None,
) -> Trial:
    """Return the trial with its answers: a model of all other folds answers each fold.

    with_smaller: so do models of SHARES of these other folds.
    """
    n_learned = round(len(trial.y) * trial.fold.max() / (trial.fold.max() + 1))  # k - 1 of k folds
    joint = answers_by_fold(trial, held_out, jobs=jobs, witness=witness)
    # Each class keeps a document at least, so the smallest shares may be the same documents.
    rest = np.flatnonzero(trial.fold)
    share_of = {len(some_of(rest, trial.y, share)): share for share in SHARES if with_smaller}
    smaller = tuple(
        SmallerModelResult(n, answers_by_fold(trial, held_out, share, jobs))
        for n, share in share_of.items()
    )
    return replace(trial, joint=joint, n_learned=n_learned, smaller=smaller)


def answers_by_fold(
    trial: Trial,
    held_out: Answering,
    share: float = 1.0,
    jobs: Workers = 1,
    witness: Witness | None = None,
) -> Floats:
    """Return held-out joint log-probabilities, nats, shape (n_docs, n_classes).

    share: the part of the other folds' documents that models learn.
    """
    joint = np.empty((len(trial.y), len(trial.classes)))
    k = int(trial.fold.max()) + 1
    # Some folds together, because an engine may get the documents again for each part.
    parts = np.array_split(np.arange(k), min(k, _PARTS))
    work = partial(_answers_to, held_out, trial.y, trial.fold, share, witness is not None)
    found = chain.from_iterable(ordered_map(work, parts, jobs))
    for number, (of_fold, heard) in enumerate(tracked(found, "folds", k)):
        joint[trial.fold == number] = of_fold
        if witness is not None and heard is not None:
            witness.join(heard)
    return joint


def _answers_to(
    held_out: Answering,
    y: Integers,
    fold: Integers,
    share: float,
    is_witnessed: bool,
    numbers: Integers,
) -> list[tuple[Floats, Witness | None]]:
    """Return the answers to some folds, and the witness of each; this runs in a worker."""
    answers = []
    for number in numbers.tolist():
        of, rest = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        answered = held_out(rest if share == 1 else some_of(rest, y, share), of)
        heard = Witness() if is_witnessed else None
        if heard is not None:
            heard.hear(of, y[of], answered.joint, answered.reasons)
            if number == fold.max():
                heard.meet(answered.classifier)
        answers.append((answered.joint, heard))
    return answers


def _held_out(data: Corpus, settings: Settings, rest: Integers, of: Integers) -> HeldOut:
    return answers_of(trained_on(data, settings, rest), data, of)


def trained_on(
    data: Corpus, settings: Settings, rows: Integers, told: Keys | None = None
) -> Classifier:
    """Return the model of some rows; told: digests of messages whose label a person has told.

    Raises UsageError if a class has lost all of its messages to later copies in other classes.
    """
    training = data.training(rows, settings.weighting)
    if told is not None:
        training = training._replace(told=np.isin(training.digests, told))
    lost = np.flatnonzero(training.table.class_count == 0)
    # Of two classes, a small model of a learning curve may lose one, and is then unsure.
    if len(lost) and len(training.table.classes) > 2:
        raise UsageError(
            f"{training.table.classes[lost[0]]}: its messages are filed in other classes, too,"
            " and a fold without them has none of it; leave each message in one class"
        )
    return train_classifier(training, settings)


def answers_of(classifier: Classifier, data: Corpus, of: Integers) -> HeldOut:
    """Return a model's answers to some rows, and its reasons."""
    documents = classifier.table.in_columns(data.over_keys(of))
    return HeldOut(classifier, classifier.joint_of(documents), documents.one)


# --- smaller models ------------------------------------------------------------------------
# Each learns a part of the whole model's documents, in a random order: every larger part begins
# with the smaller ones.  For a model of messages, these are the messages that it remembers.


class SmallerModel(NamedTuple):
    """A model that has learned fewer documents than the one that is judged."""

    n_learned: int
    classifier: AnyClassifier


def some_of(rows: Integers, y: Integers, share: float) -> Integers:
    """Return the same share of the rows of each class; it contains every smaller share."""
    shuffled = np.random.default_rng(0).permutation(rows)
    of_class = [shuffled[y[shuffled] == label] for label in np.unique(y)]
    return np.sort(np.concatenate([of[: max(1, int(share * len(of)))] for of in of_class]))


def n_learned_by(classifier: AnyClassifier) -> int:
    """Return how many messages a model has learned; 0 for one of which that is not known."""
    if not isinstance(classifier, Classifier):
        return 0
    # The counts are smaller if old ones have faded; a ledger may have only a sample's messages.
    memory = classifier.memory
    return max(classifier.table.n_docs, 0 if memory is None else len(memory.ledger.digests))


def smaller_models(classifier: AnyClassifier) -> tuple[SmallerModel, ...]:
    """Return models of parts of the messages that a model remembers.

    It remembers all, or a sample of many: then the largest part is the sample.  Empty for a model
    that remembers no message of some class.
    """
    if not isinstance(classifier, Classifier) or classifier.memory is None:
        return ()
    table, memory = classifier.table, classifier.memory
    data = remembered(table, memory)
    if len(table.classes) < 2 or len(np.unique(data.y)) < len(table.classes):
        return ()
    is_whole = not memory.sample.bits
    told = memory.sample.digests[memory.sample_told]

    shares = [share if is_whole else 2 * share for share in SHARES]
    models = []
    for rows in _subsets(data.y, shares):
        model = trained_on(data, classifier.settings, rows, told)
        models.append(SmallerModel(len(rows), replace(model, shift=classifier.shift)))
    return tuple(models)


def _subsets(y: Integers, shares: Sequence[float]) -> Iterable[Integers]:
    """Return these shares of documents, as row numbers; parts of the same size only once.

    y: (n_docs,) classes.
    """
    parts = (some_of(np.arange(len(y)), y, share) for share in shares)
    return {len(rows): rows for rows in parts}.values()


# --- other mail, and a model file ------------------------------------------------------------


# Name and class of an input, the answer (n_classes,) and those of smaller models (n_smaller,
# n_classes), and whether the model had learned it.
_JudgedInput = tuple[str, int, Floats, Floats, bool]


def knowing(has: Callable[[int], bool], settings: Settings) -> Callable[[Item], bool]:
    """Return a function that tells whether an item was learned; has: tells it of a digest."""
    is_text = settings.reading != "mail"

    def knows(item: Item) -> bool:
        with suppress(InputError):  # it may have gone since it was judged
            return has(digest_of(item.read(), item.is_text or is_text))
        return False

    return knows


def judge_classifier(
    classifier: AnyClassifier,
    inputs: Iterable[Any],
    jobs: Workers = 1,
    smaller: Sequence[SmallerModel] = (),
    witness: Witness | None = None,
    knows: Callable[[Any], bool] | None = None,
) -> Trial:
    """Return a classifier's answers to labelled inputs of its kind; raises InputError.

    smaller: models that answer, too, for a learning curve.  knows: tells whether the model has
    learned an input.
    """
    number = {name: k for k, name in enumerate(classifier.classes)}
    found: list[_JudgedInput] = []
    skipped: list[Skipped] = []
    unknown: set[str] = set()  # classes that the model does not have
    others = [each.classifier for each in smaller]
    for given, answer, of_others in classifier.answered(inputs, jobs, others):
        if isinstance(answer, Skipped):
            skipped.append(answer)
        elif answer.truth is None:
            skipped.append(Skipped(answer.name, NO_LABEL))
        elif answer.truth not in number:
            unknown.add(answer.truth)
            skipped.append(Skipped(answer.name, f"class {answer.truth} is not one of the model's"))
        else:
            truth, is_known = number[answer.truth], knows is not None and knows(given)
            if witness is not None:
                reasons = partial(classifier.reasons_for, given)
                witness.hear_one(len(found), truth, answer.joint, reasons)
            found.append((answer.name, truth, answer.joint, of_others, is_known))
    if not found:
        raise nothing_judged(skipped, classifier.noun, unknown, classifier.classes)
    if witness is not None:
        witness.meet(classifier)
    trial = _trial_of(classifier, found, [each.n_learned for each in smaller])
    return replace(trial, skipped=tuple(skipped), is_known=trial.is_known if knows else None)


def _trial_of(
    classifier: AnyClassifier, found: Sequence[_JudgedInput], n_learned: Sequence[int]
) -> Trial:
    """Return the trial of some answers; n_learned: by each of the smaller models."""
    names, y, joint, beside, known = zip(*found, strict=True)
    return Trial(
        classifier.classes,
        np.array(y),
        np.stack(joint),
        classifier.rule,
        np.zeros(len(y), np.int64),
        classifier.prior,
        names,
        classifier.noun,
        n_learned=n_learned_by(classifier),
        smaller=tuple(map(SmallerModelResult, n_learned, np.stack(beside, axis=1))),
        is_known=np.array(known),
    )


def judge_split(
    items: Iterable[Item],
    test_items: Iterable[Item],
    settings: Settings,
    jobs: Workers = 1,
    with_smaller: bool = False,
    witness: Witness | None = None,
) -> Trial:
    """Return the answers to test items of a model that is trained on other items.

    with_smaller: also the answers of models of parts of the items, see `smaller_models`.
    """
    learned = learn_items(items, settings, jobs)
    smaller = smaller_models(learned.classifier) if with_smaller else ()
    memory = getattr(learned.classifier, "memory", None)
    digests = set(memory.ledger.digests.tolist()) if memory else set()
    knows = knowing(digests.__contains__, settings) if memory else None
    trial = judge_classifier(learned.classifier, test_items, jobs, smaller, witness, knows)
    return replace(trial, skipped=learned.skipped + trial.skipped)


def judge_table_split(
    table: Table,
    settings: TableSettings,
    test_records: Callable[[Schema], Iterable[Record]],
    with_smaller: bool = False,
    witness: Witness | None = None,
) -> Trial:
    """Return the answers to the rows of a test table of a model that is trained on another.

    test_records: returns the rows of the test table for a schema, which says how to read cells.
    """
    classifier = train_table(table, settings)
    parts = _subsets(table.y, SHARES) if with_smaller else ()
    smaller = [SmallerModel(len(p), train_table(table_rows(table, p), settings)) for p in parts]
    records = test_records(classifier.schema)
    trial = judge_classifier(classifier, records, smaller=smaller, witness=witness)
    return replace(trial, n_learned=len(table.y))


# --- labels ---------------------------------------------------------------------------------


def labelled_corpus(
    items: Iterable[Item], settings: Settings, jobs: Workers
) -> tuple[Corpus, tuple[Skipped, ...]]:
    """Return labelled items as a corpus, and the skipped ones; raises InputError."""
    data, skipped = read_corpus(items, settings, jobs)
    if not data.names:
        raise nothing_judged(skipped, settings.noun)
    return data, skipped


def nothing_judged(
    skipped: Sequence[Skipped], noun: str, heard: Iterable[str] = (), classes: Iterable[str] = ()
) -> InputError:
    """Return the error for inputs of which none could be judged.

    heard: classes of labelled inputs that the model does not know.  classes: of the model.
    """
    if heard:
        return InputError(
            f"labels: the classes are {', '.join(sorted(heard))}, and the model knows"
            f" {', '.join(classes)}; give {noun} of these, or a model of those"
        )
    if not skipped:
        return InputError(f"sources: no {noun} to judge; give some")
    first = skipped[0]
    if first.reason != NO_LABEL:
        return InputError(f"{first.name}: {first.why}; nothing can be judged")
    how = "a table with the column that --target names"
    if noun != "rows":
        how = "class folders, a table with a column of classes, or --spam PATH --ham PATH"
    names = f"{first.name}, …" if len(skipped) > 1 else first.name
    return InputError(
        f"labels: {amount_text(len(skipped), noun)} ({names}), and none has a label to compare"
        f" answers with; give {how}"
    )
