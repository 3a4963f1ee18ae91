"""Judging models that are trained for it: answers to documents that they have not learned.

The answers come from cross-validation or from a stream of messages, and become a `Trial`.

Secret: documents are tokenised once, however many models are trained on them; models are trained
and give answers by the same functions as in `nbspam train` and `nbspam classify`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np

from nbspam.answering import HeldOut, Weighed
from nbspam.arrays import Floats, Integers
from nbspam.classifier.features import held_out as features_held_out
from nbspam.classifier.training import train
from nbspam.counts.corpus import Corpus
from nbspam.counts.folds import stratified_folds
from nbspam.decision import default_rule
from nbspam.errors import UsageError
from nbspam.evaluation.judging.online import online_trial, prior_of
from nbspam.evaluation.judging.smaller import (
    SHARES,
    some_of,
)
from nbspam.evaluation.labels import labelled
from nbspam.evaluation.trial import Smaller, Trial
from nbspam.evaluation.witness import Witness
from nbspam.parallel import Workers, ordered_map
from nbspam.progress import tracked
from nbspam.settings import FEATURES, Settings
from nbspam.sources.items import Item
from nbspam.sources.order import arranged
from nbspam.tables.schema import Table
from nbspam.tables.training import TableSettings, train_table
from nbspam.tables.training import held_out as rows_held_out
from nbspam.verdicts import Skipped

# Trains on the first rows and returns its answers to the second.
Answering = Callable[[Integers, Integers], HeldOut]
LEAVE_ONE_OUT = "loo"  # as the number of folds: one for each document
_PARTS = 64  # that folds are given to workers in, at most


def answers_by_fold(
    held_out: Answering,
    y: Integers,
    n_classes: int,
    fold: Integers,
    share: float = 1.0,
    jobs: Workers = 1,
    witness: Witness | None = None,
) -> Floats:
    """Return held-out joint log-probabilities, nats, shape (n_docs, n_classes).

    fold: (n_docs,), from 0.  share: the part of the other folds' documents that models learn.
    """
    joint = np.empty((len(y), n_classes))
    k = int(fold.max()) + 1
    # Some folds together, because an engine may get the documents anew for each part.
    parts = np.array_split(np.arange(k), min(k, _PARTS))
    work = partial(_answers_to, held_out, y, fold, share, witness is not None)
    found = chain.from_iterable(ordered_map(work, parts, jobs))
    for number, (of_fold, heard) in enumerate(tracked(found, "folds", k)):
        joint[fold == number] = of_fold
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
    """Return the answers to some folds, and who heard them; this runs in a worker."""
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


def folds(y: Integers, k: int | str, seed: int) -> Integers:
    """Return the fold of each document in k stratified folds, shape (n_docs,).

    k: a number, or LEAVE_ONE_OUT for as many folds as there are documents, which cannot be
    stratified.  Raises UsageError if a class has fewer than k documents, or is left out whole.
    """
    n_docs, smallest = len(y), int(np.bincount(y).min()) if len(y) else 0
    if k in (LEAVE_ONE_OUT, n_docs):
        if smallest < 2:
            raise UsageError(
                f"--cv {k}: a class has only {smallest} document, and without it no model knows"
                " the class; give two or more of each"
            )
        return np.arange(n_docs)
    if not isinstance(k, int) or k > n_docs:
        raise UsageError(f"--cv {k}: there are {n_docs} documents; give up to that, or loo")
    if not 2 <= k <= smallest:
        raise UsageError(
            f"--cv {k}: the smallest class has {smallest} documents; give a number of folds"
            " from 2 to that, or loo to leave out one document at a time"
        )
    return stratified_folds(y, k, np.random.RandomState(seed))


def answers_held_out(data: Corpus, settings: Settings) -> Answering:
    """Return the function that answers some documents of a corpus by a model of others."""
    return partial(features_held_out if settings.model in FEATURES else _held_out, data, settings)


def _held_out(data: Corpus, settings: Settings, rest: Integers, of: Integers) -> HeldOut:
    classifier = train(data.training(rest, settings.weighting), settings)
    documents = classifier.table.known(data.over_keys(of))

    def reasons(place: int, towards: int, against: int) -> Weighed:
        return classifier.reasons(documents.one(place), towards, against)

    return HeldOut(classifier, classifier.joint_of(documents), reasons)


def judge_folds(
    items: Iterable[Item],
    settings: Settings,
    k: int | str,
    seed: int,
    jobs: Workers = 1,
    with_smaller: bool = False,
    witness: Witness | None = None,
) -> Trial:
    """Return the answers to each of k folds of a model that is trained on the others.

    with_smaller: also the answers of models trained on the SHARES of those folds.
    """
    data, skipped = labelled(items, settings, jobs)
    trial = fold_trial(data, settings, k, seed, with_smaller, jobs, witness)
    return replace(trial, skipped=skipped)


def judge_online(
    items: Iterable[Item],
    settings: Settings,
    policy: str,
    order: str | None = None,
    seed: int = 0,
    jobs: Workers = 1,
    witness: Witness | None = None,
) -> Trial:
    """Return the answers of a model that learns each message after it has answered it.

    policy: which messages it learns, one of decision.POLICIES.  order: of the messages, see
    `sources.order.arranged`.
    """
    stream = arranged(items, order, seed)
    data, skipped = labelled(stream.items, settings, jobs)
    trial = online_trial(data, settings, policy, witness)
    return replace(trial, skipped=skipped, order=stream.order)


def judge_several(
    items: Iterable[Item],
    several: Sequence[Settings],
    k: int | str | None,
    seed: int,
    jobs: Workers = 1,
) -> list[Trial]:
    """Return the answers of models with several settings to the same documents.

    k: number of folds, the same folds for all; None for a stream (see `judge_online`).  Settings
    with the same tokens share one reading of the documents.
    """
    order = None
    if k is None:
        items, order = arranged(items, seed=seed)
    items = list(items)
    trials: list[Trial] = []
    read: dict[tuple[object, ...], tuple[Corpus, tuple[Skipped, ...]]] = {}
    for settings in several:
        how = settings.reading, settings.strip, settings.tokens
        if how not in read:
            read[how] = labelled(items, settings, jobs)
        data, skipped = read[how]
        if k is None:
            trial = online_trial(data, settings, "everything")
        else:
            trial = fold_trial(data, settings, k, seed, jobs=jobs)
        trials.append(replace(trial, skipped=skipped, order=order))
    return trials


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
    fold = folds(data.y, k, seed)
    rule = default_rule(data.classes, settings.is_mail_combined)
    # Everything except the answers, which `_answered` adds.
    prior = prior_of(data, settings)
    of = data.names, settings.noun
    blank = Trial(data.classes, data.y, np.empty((0, 0)), rule, fold, prior, *of)
    return _answered(blank, answers_held_out(data, settings), with_smaller, jobs, witness)


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
    fold = folds(table.y, k, seed)
    held_out = partial(rows_held_out, table, settings)
    of = fold, classifier.prior, table.names, classifier.noun
    blank = Trial(classifier.classes, table.y, np.empty((0, 0)), classifier.rule, *of)
    return _answered(blank, held_out, with_smaller, jobs, witness)


def _answered(
    trial: Trial, held_out: Answering, with_smaller: bool, jobs: Workers, witness: Witness | None
) -> Trial:
    """Return the trial with answers, by models of the other folds and of SHARES of them."""
    y, fold, n_classes = trial.y, trial.fold, len(trial.classes)
    joint = answers_by_fold(held_out, y, n_classes, fold, jobs=jobs, witness=witness)
    others = len(y) * fold.max() / (fold.max() + 1)
    smaller = [
        Smaller(round(share * others), answers_by_fold(held_out, y, n_classes, fold, share, jobs))
        for share in SHARES
        if with_smaller
    ]
    return replace(trial, joint=joint, n_learned=round(others), smaller=tuple(smaller))
