"""Judging: how good a model, or a kind of model, is on somebody's own mail.

Secret: documents are tokenised once and every fold's counts are taken once; what a fold
trains on is the sum of the others, so ten folds cost little more than one training.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from nbspam.arrays import Floats, Integers, Octets
from nbspam.classifier import Classifier, joint_of_log_odds, load
from nbspam.combining import Entries, log_odds, scores
from nbspam.counts import CountTable, add_tables, subtract_table
from nbspam.decision import default_rule
from nbspam.errors import InputError, UsageError
from nbspam.parallel import ordered_map
from nbspam.prevalence import assumed_prior
from nbspam.progressive import arrival, date_of, progress
from nbspam.reading import CHUNK_BYTES, CHUNK_ITEMS, read_labelled
from nbspam.resampling import stratified_folds
from nbspam.settings import Settings
from nbspam.sources import Item, Skipped, chunks
from nbspam.tokenizer import batches, tokenize
from nbspam.training import chosen_tokens, combined, count_items, sum_of_evidence, train
from nbspam.trial import Smaller, Trial
from nbspam.vectorizer import Corpus, CorpusPart, corpus, corpus_part, weigh

SHARES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)  # of the documents, along a learning curve
N_STRETCHES = 10  # into which a stream is cut where something is compared piece by piece


def read_corpus(
    items: Iterable[Item], settings: Settings, jobs: int = 1
) -> tuple[Corpus, tuple[Skipped, ...]]:
    """Return all labelled items as rows of one sparse matrix, and what was skipped."""
    parts: list[CorpusPart] = []
    skipped: list[Skipped] = []
    work = partial(_vectorize_chunk, settings)
    for part, failures in ordered_map(work, chunks(items, CHUNK_ITEMS, CHUNK_BYTES), jobs):
        parts.append(part)
        skipped.extend(failures)
    return corpus(parts), tuple(skipped)


def _vectorize_chunk(settings: Settings, items: list[Item]) -> tuple[CorpusPart, list[Skipped]]:
    read, messages, skipped = read_labelled(items, settings)
    groups = batches(messages, settings.tokens)
    token_batches = [tokenize(group, settings.tokens) for group in groups]
    names, labels = [item.name for item in read], [str(item.label) for item in read]
    return corpus_part(token_batches, names, labels), skipped


def cross_validate(data: Corpus, settings: Settings, fold: Integers, share: float = 1.0) -> Floats:
    """Return held-out joint log-probabilities, nats, shape (n_docs, n_classes).

    fold: (n_docs,), from 0.  share: of the other folds' documents that each model learns.
    """
    rows = [np.flatnonzero(fold == number) for number in range(fold.max() + 1)]
    parts = [data.table(of, settings.weighting) for of in rows] if share == 1 else []
    total = add_tables(parts)
    joint = np.empty((len(data.y), len(data.classes)))
    for number, of in enumerate(rows):
        rest = np.flatnonzero(fold != number)
        if parts:
            seen = subtract_table(total, parts[number])
        else:
            rest = _some_of(rest, data.y, share)
            seen = data.table(rest, settings.weighting)
        known = np.flatnonzero(seen.document_frequency)
        joint[of] = _held_out(data, seen.take(known), settings, rest, of)
    return joint


def folds(y: Integers, k: int, seed: int) -> Integers:
    """Return k stratified folds, shape (n_docs,); raises UsageError."""
    smallest = int(np.bincount(y).min()) if len(y) else 0
    if not 2 <= k <= smallest:
        raise UsageError(
            f"--cv {k}: the smallest class has {smallest} documents;"
            " give a number of folds from 2 to that"
        )
    return stratified_folds(y, k, np.random.RandomState(seed))


def _some_of(rows: Integers, y: Integers, share: float) -> Integers:
    """Return a share of the rows, of every class alike; a smaller share is part of it."""
    shuffled = np.random.default_rng(0).permutation(rows)
    of_class = [shuffled[y[shuffled] == label] for label in np.unique(y)]
    return np.sort(np.concatenate([of[: max(1, int(share * len(of)))] for of in of_class]))


def _held_out(
    data: Corpus, table: CountTable, settings: Settings, rest: Integers, of: Integers
) -> Floats:
    """Return answers to some rows by a model of the others, whose counts are given."""
    table = chosen_tokens(table, settings)
    used, groups = data.vocabulary.columns(table.vocabulary.keys), table.vocabulary.groups
    held_out = data.X[of][:, used]
    if settings.combine:
        entries = entries_of_rows(data.X[rest][:, used], groups)
        model = combined(table, settings, entries, data.y[rest])
    else:
        model = sum_of_evidence(table, settings)
    if model.combination is None:
        joint = model.intercept + weigh(held_out, groups, settings.weighting) @ model.weight
        return joint if model.blend is None else model.blend.answers(joint)
    entries = entries_of_rows(held_out, groups)
    odds = log_odds(model.table.feature_count, model.table.class_count)
    return joint_of_log_odds(scores(model.combination, entries, odds[entries.columns]))


def entries_of_rows(X: Any, groups: Octets) -> Entries:
    """Return the entries of a CSR matrix of counts; groups: (n_features,)."""
    documents = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    columns = X.indices.astype(np.int64)
    return Entries(X.shape[0], documents, columns, groups[columns], X.data)


def judge_model(path: str, items: Iterable[Item], jobs: int = 1) -> Trial:
    """Return what the model in a file answers to labelled items."""
    return _judge(load(path), items, jobs)


def judge_split(
    items: Iterable[Item], test_items: Iterable[Item], settings: Settings, jobs: int = 1
) -> Trial:
    """Return what a model trained on some items answers to others."""
    training = count_items(items, settings, jobs)
    trial = _judge(train(training, settings), test_items, jobs)
    return replace(trial, skipped=training.skipped + trial.skipped)


def judge_folds(
    items: Iterable[Item],
    settings: Settings,
    k: int,
    seed: int,
    jobs: int = 1,
    with_smaller: bool = False,
) -> Trial:
    """Return what models trained on k - 1 folds answer to the one left out.

    with_smaller: and what models answer that were trained on less and less of these folds.
    """
    data, skipped = read_corpus(items, settings, jobs)
    trial = fold_trial(data, settings, k, seed)
    smaller: tuple[Smaller, ...] = ()
    if with_smaller:
        smaller = tuple(
            Smaller(
                round(share * len(data.y) * (k - 1) / k),
                cross_validate(data, settings, trial.fold, share),
            )
            for share in SHARES
        )
    return replace(trial, smaller=smaller, skipped=skipped)


def judge_online(
    items: Iterable[Item],
    settings: Settings,
    policy: str,
    order: str | None = None,
    jobs: int = 1,
) -> Trial:
    """Return what a model answers that learns from messages after answering each.

    policy, order: see progressive.py.
    """
    dates: dict[str, float | None] = {}
    items = _noting_dates(items, dates) if order == "date" else items
    data, skipped = read_corpus(items, settings, jobs)
    data = _arranged(data, order, [dates.get(name) for name in data.names])
    return replace(online_trial(data, settings, policy), skipped=skipped)


def judge_several(
    items: Iterable[Item], several: Sequence[Settings], k: int | None, seed: int, jobs: int = 1
) -> list[Trial]:
    """Return what models of several settings answer to the same documents.

    In the same k folds or, without k, online.  What is cut into tokens alike is read once.
    """
    items = list(items)
    trials: list[Trial] = []
    read: dict[tuple[object, ...], tuple[Corpus, tuple[Skipped, ...]]] = {}
    for settings in several:
        how = settings.reading, settings.strip, settings.tokens
        if how not in read:
            read[how] = read_corpus(items, settings, jobs)
        data, skipped = read[how]
        if k is None:
            trial = online_trial(_arranged(data, None), settings, "everything")
        else:
            trial = fold_trial(data, settings, k, seed)
        trials.append(replace(trial, skipped=skipped))
    return trials


def _arranged(data: Corpus, order: str | None, dates: Sequence[float | None] = ()) -> Corpus:
    """Return the corpus in the order in which its messages came."""
    rows = arrival(order, data.names, data.y, dates)
    names = tuple(data.names[row] for row in rows.tolist())
    return replace(data, names=names, y=data.y[rows], X=data.X[rows])


def fold_trial(data: Corpus, settings: Settings, k: int, seed: int) -> Trial:
    """Return a corpus's answers by cross-validation; raises UsageError."""
    fold = folds(data.y, k, seed)
    joint = cross_validate(data, settings, fold)
    rule = default_rule(data.classes, settings.is_mail_combined)
    return Trial(data.classes, data.y, joint, rule, fold, _prior(data, settings))


def online_trial(data: Corpus, settings: Settings, policy: str) -> Trial:
    """Return a corpus's answers in the order of its rows; its folds are stretches of it."""
    joint = joint_of_log_odds(progress(data, settings, policy).score)
    stretch = np.arange(len(data.y)) * N_STRETCHES // max(len(data.y), 1)
    rule = default_rule(data.classes, settings.is_mail_combined)
    prior = _prior(data, settings)
    return Trial(data.classes, data.y, joint, rule, stretch, prior, is_stream=True)


def _prior(data: Corpus, settings: Settings) -> Floats:
    class_count = np.bincount(data.y, minlength=len(data.classes)).astype(np.float64)
    return assumed_prior(class_count, settings)


def _noting_dates(items: Iterable[Item], dates: dict[str, float | None]) -> Iterator[Item]:
    """Yield the items as they are, after writing down when each was sent."""
    for item in items:
        with suppress(InputError):  # whoever reads it next reports it
            dates[item.name] = date_of(item.read())
        yield item


def _judge(classifier: Classifier, items: Iterable[Item], jobs: int) -> Trial:
    index = {name: k for k, name in enumerate(classifier.classes)}
    truth: list[int] = []
    joint: list[Floats] = []
    skipped: list[Skipped] = []
    for answer in classifier.answers(items, jobs):
        if isinstance(answer, Skipped):
            skipped.append(answer)
        elif answer.truth is None:
            skipped.append(Skipped(answer.name, "no label"))
        elif answer.truth not in index:
            skipped.append(Skipped(answer.name, f"class {answer.truth} is not one of the model's"))
        else:
            truth.append(index[answer.truth])
            joint.append(answer.joint)
    if not truth:
        raise InputError(
            "eval: no message with a class the model knows"
            f" ({', '.join(classifier.classes)}); give labelled mail"
        )
    y = np.array(truth)
    return Trial(
        classifier.classes,
        y,
        np.stack(joint),
        classifier.rule,
        np.zeros(len(y), np.int64),
        assumed_prior(classifier.table.class_count, classifier.settings),
        skipped=tuple(skipped),
    )
