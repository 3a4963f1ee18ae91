"""Measure what a bounded vocabulary costs in accuracy, on a real corpus.

usage: python benchmarks/bounded.py SOURCE [--limits 50000,20000] [--cv 10]

In each of ten folds, the other nine are counted as a stream: tables of AT_ONCE messages in the
order of their digests, or with --by-class all ham before all spam, added up with a limit on
tokens.  Printed for each limit are, over all folds: the tokens kept, those whose counts are
exact by the bound, the largest bound of a fold, the largest loss really found, and the errors of
held-out messages.
"""

import argparse
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nbspam.classifier.training import train
from nbspam.counts.corpus import Corpus, read_corpus
from nbspam.counts.folds import stratified_folds
from nbspam.counts.table import CountTable, TableSum
from nbspam.evaluation.metrics import auc
from nbspam.settings import PRESETS
from nbspam.sources.items import read_items

AT_ONCE = 100  # messages of a table
MAIL = PRESETS["mail"]


class Result(NamedTuple):
    """One fold: what was kept and lost, and the scores of its messages."""

    tokens: int
    exact: int
    bound: int
    lost: int
    score: np.ndarray
    actions: np.ndarray


def summed(data: Corpus, rows: np.ndarray, limit: int | None) -> CountTable:
    """Return the counts of documents, added up table by table."""
    total = TableSum(limit)
    for start in range(0, len(rows), AT_ONCE):
        table = data.table(rows[start : start + AT_ONCE], MAIL.weighting)
        total.add(table.take(np.flatnonzero(table.document_frequency)))
    return total.total()


def fold(data: Corpus, learned: np.ndarray, held: np.ndarray, limit: int | None) -> Result:
    """Return what a model of some documents says of others."""
    training = data.training(learned, MAIL.weighting)
    exact, table = training.table, summed(data, learned, limit)
    column = exact.vocabulary.columns(table.vocabulary.keys)
    lost = exact.document_frequency[column] - table.document_frequency
    lacks, bound = np.zeros(len(column), np.int64), 0
    if table.loss is not None:
        lacks, bound = table.loss.of_each, table.loss.of_others
        gone = np.delete(exact.document_frequency, column)
        assert gone.max() <= bound
    assert (lost >= 0).all()
    assert (lost <= lacks).all()
    classifier = train(training._replace(table=table), MAIL)
    joint = classifier.joint_of(classifier.table.known(data.over_keys(held)))
    probability = 1 / (1 + np.exp(joint[:, 0] - joint[:, 1]))
    labels = classifier.rule.labels(np.column_stack([1 - probability, probability]))
    return Result(
        len(column),
        int((lacks == 0).sum()),
        bound,
        int(lost.max()),
        joint[:, 1] - joint[:, 0],
        np.array(labels) == "spam",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("--limits", default="100000,50000,20000,10000,5000")
    parser.add_argument("--cv", type=int, default=10)
    parser.add_argument("--by-class", action="store_true")
    options = parser.parse_args()
    data, _ = read_corpus(read_items([options.source]), MAIL, 2)
    once, y, digests = data.unique(np.arange(len(data.y)))  # in the order of digests
    documents = data.documents.take(once)
    data = replace(data, names=(), y=y, digests=digests, documents=documents)
    folds = stratified_folds(y, options.cv, np.random.default_rng(0))
    order = np.argsort(y, kind="stable") if options.by_class else np.arange(len(y))
    print(f"{len(y):,} messages, {len(data.vocabulary):,} tokens")
    print("limit\ttokens\texact\tbound\tlost\tfp\tfn\t1-AUC")
    for limit in (None, *map(int, options.limits.split(","))):
        results, score, is_spam = [], np.empty(len(y)), np.empty(len(y), np.bool_)
        for k in range(options.cv):
            held = np.flatnonzero(folds == k)
            results.append(fold(data, order[folds[order] != k], held, limit))
            score[held], is_spam[held] = results[-1].score, results[-1].actions
        print(
            f"{limit or 'none'}\t{np.mean([r.tokens for r in results]):,.0f}"
            f"\t{np.mean([r.exact for r in results]):,.0f}"
            f"\t{max(r.bound for r in results)}\t{max(r.lost for r in results)}"
            f"\t{(is_spam & (y == 0)).sum()}\t{(~is_spam & (y == 1)).sum()}"
            f"\t{1 - auc(y, score):.6f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
