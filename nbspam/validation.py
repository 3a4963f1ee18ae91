"""Judging: how good a model, or a kind of model, is on somebody's own mail.

Secret: documents are tokenised once and every fold's counts are taken once; what a fold
trains on is the sum of the others, so ten folds cost little more than one training.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from nbspam.arrays import Floats, Integers, Octets
from nbspam.classifier import joint_of_log_odds, posterior
from nbspam.combining import Entries, log_odds, scores
from nbspam.counts import CountTable, add_tables, subtract_table
from nbspam.decision import Rule, default_rule
from nbspam.errors import InputError, UsageError
from nbspam.evaluation import Evaluation, evaluate
from nbspam.featureclassifier import held_out, train_features
from nbspam.parallel import ordered_map
from nbspam.progressive import arrival, date_of, progress
from nbspam.reading import CHUNK_BYTES, CHUNK_ITEMS, read_labelled
from nbspam.resampling import stratified_folds
from nbspam.settings import FEATURES, Settings
from nbspam.sources import Item, Skipped, chunks
from nbspam.tokenizer import batches, tokenize
from nbspam.training import combined, count_items, sum_of_evidence, train
from nbspam.vectorizer import Corpus, CorpusPart, corpus, corpus_part, weigh


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
    token_batches = [tokenize(group, settings.tokens) for group in batches(messages)]
    names, labels = [item.name for item in read], [str(item.label) for item in read]
    return corpus_part(token_batches, names, labels), skipped


def cross_validate(data: Corpus, settings: Settings, k: int, seed: int) -> Floats:
    """Return held-out joint log-probabilities from k stratified folds; raises UsageError.

    Shape (n_docs, n_classes), nats.
    """
    smallest = int(np.bincount(data.y).min()) if len(data.y) else 0
    if not 2 <= k <= smallest:
        raise UsageError(
            f"--cv {k}: the smallest class has {smallest} documents;"
            " give a number of folds from 2 to that"
        )
    fold = stratified_folds(data.y, k, np.random.RandomState(seed))
    rows = [np.flatnonzero(fold == number) for number in range(k)]
    parts = [data.table(of, settings.weighting) for of in rows]
    total = add_tables(parts)
    joint = np.empty((len(data.y), len(data.classes)))
    for of, part in zip(rows, parts, strict=True):
        seen = subtract_table(total, part)
        known = np.flatnonzero(seen.document_frequency)
        rest = np.flatnonzero(~np.isin(np.arange(len(data.y)), of))
        if settings.model in FEATURES:
            joint[of] = held_out(data, settings, rest, of)
            continue
        joint[of] = _held_out(data, seen.take(known), settings, rest, of)
    return joint


def _held_out(
    data: Corpus, table: CountTable, settings: Settings, rest: Integers, of: Integers
) -> Floats:
    """Return answers to some rows by a model of the others, whose counts are given."""
    model = sum_of_evidence(table, settings)
    used = data.vocabulary.columns(model.table.vocabulary.keys)
    held_out = data.X[of][:, used]
    if not (settings.combine and len(data.classes) == 2):
        weights = weigh(held_out, settings.weighting)
        return np.asarray(model.intercept + weights @ model.weight)
    groups = model.table.vocabulary.groups
    model = combined(model, entries_of_rows(data.X[rest][:, used], groups), data.y[rest])
    assert model.combination is not None
    entries = entries_of_rows(held_out, groups)
    odds = log_odds(model.table.feature_count, model.table.class_count)
    return joint_of_log_odds(scores(model.combination, entries, odds[entries.columns]))


def entries_of_rows(X: Any, groups: Octets) -> Entries:
    """Return the entries of a CSR matrix of counts; groups: (n_features,)."""
    documents = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    columns = X.indices.astype(np.int64)
    return Entries(X.shape[0], documents, columns, groups[columns])


@dataclass(frozen=True, slots=True)
class Outcome:
    """An evaluation, and what could not be read for it."""

    evaluation: Evaluation
    skipped: tuple[Skipped, ...]


def judge_split(
    items: Iterable[Item],
    test_items: Iterable[Item],
    settings: Settings,
    jobs: int = 1,
    rng: np.random.Generator | None = None,
) -> Outcome:
    """Return how well a model trained on some items does on others."""
    if settings.model in FEATURES:
        data, skipped = read_corpus(items, settings, jobs)
        outcome = judge_classifier(train_features(data, settings), test_items, jobs, rng)
        return Outcome(outcome.evaluation, skipped + outcome.skipped)
    training = count_items(items, settings, jobs)
    outcome = judge_classifier(train(training, settings), test_items, jobs, rng)
    return Outcome(outcome.evaluation, training.skipped + outcome.skipped)


def judge_folds(
    items: Iterable[Item],
    settings: Settings,
    k: int,
    seed: int,
    jobs: int = 1,
    rng: np.random.Generator | None = None,
) -> Outcome:
    """Return how well models trained on k - 1 folds do on the one left out."""
    data, skipped = read_corpus(items, settings, jobs)
    joint = cross_validate(data, settings, k, seed)
    rule = default_rule(data.classes, settings.combine)
    return Outcome(evaluation_of(data.y, joint, data.classes, rule, rng), skipped)


def judge_online(
    items: Iterable[Item],
    settings: Settings,
    policy: str,
    order: str | None = None,
    jobs: int = 1,
    rng: np.random.Generator | None = None,
) -> Outcome:
    """Return how well a model does that learns from messages after answering each.

    policy, order: see progressive.py.
    """
    if settings.model in FEATURES:
        raise UsageError(f"--online: not for --model {settings.model}; judge it by --cv K")
    dates: dict[str, float | None] = {}
    items = _noting_dates(items, dates) if order == "date" else items
    data, skipped = read_corpus(items, settings, jobs)
    rows = arrival(order, data.names, data.y, [dates.get(name) for name in data.names])
    names = tuple(data.names[row] for row in rows.tolist())
    data = replace(data, names=names, y=data.y[rows], X=data.X[rows])
    joint = joint_of_log_odds(progress(data, settings, policy).score)
    rule = default_rule(data.classes, calibrated=True)
    return Outcome(evaluation_of(data.y, joint, data.classes, rule, rng), skipped)


def _noting_dates(items: Iterable[Item], dates: dict[str, float | None]) -> Iterator[Item]:
    """Yield the items as they are, after writing down when each was sent."""
    for item in items:
        with suppress(InputError):  # whoever reads it next reports it
            dates[item.name] = date_of(item.read())
        yield item


def judge_classifier(
    classifier: Any, items: Iterable[Any], jobs: int, rng: np.random.Generator | None
) -> Outcome:
    """Return how well a classifier does on labelled items of the kind it answers."""
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
    evaluation = evaluation_of(
        np.array(truth), np.stack(joint), classifier.classes, classifier.rule, rng
    )
    return Outcome(evaluation, tuple(skipped))


def evaluation_of(
    truth: Integers,
    joint: Floats,
    classes: tuple[str, ...],
    rule: Rule,
    rng: np.random.Generator | None,
) -> Evaluation:
    """Return all numbers of answers: joint log-probabilities, nats, (n_docs, n_classes)."""
    probability = posterior(joint)
    labels = np.searchsorted(np.array(classes), rule.labels(probability))
    # The difference of logarithms ranks where probabilities have long become 0 and 1.
    score = joint[:, 1] - joint[:, 0] if len(classes) == 2 else None
    return evaluate(truth, labels, classes, score=score, probability=probability, rng=rng)
