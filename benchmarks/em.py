"""Measure what EM gains from unlabelled documents: accuracy on 20 newsgroups.

usage: python benchmarks/em.py 20NEWSGROUPS [DRAWS [LABELLED ...]]

20NEWSGROUPS has train/ and test/, each with a folder per group.  Each draw takes LABELLED
documents from train/, equally many of each group, and 9,000 of the others as unlabelled ones.
Printed is the accuracy on test/ with and without unlabelled documents, by draw and on average.
"""

import sys
import time
from collections import defaultdict

import numpy as np

from nbspam.classifier.classifier import Classifier
from nbspam.classifier.unlabelled import em_settings, train_with_unlabelled
from nbspam.evaluation.judging.single import judge_classifier
from nbspam.evaluation.trial import evaluation_of
from nbspam.settings import PLAIN
from nbspam.sources.items import Item, read_items

LABELLED = (20, 300, 2000)
UNLABELLED = 9000


def draw(
    by_group: dict[str | None, list[Item]], n: int, rng: np.random.Generator
) -> tuple[list[Item], list[Item]]:
    """Return n labelled items, equally many per group, and UNLABELLED others."""
    labelled: list[Item] = []
    rest: list[Item] = []
    for items in by_group.values():
        order = rng.permutation(len(items))
        cut = n // len(by_group)
        labelled += [items[i] for i in order[:cut]]
        rest += [items[i] for i in order[cut:]]
    return labelled, [rest[i] for i in rng.permutation(len(rest))[:UNLABELLED]]


def accuracy(classifier: Classifier, test: list[Item]) -> float:
    return evaluation_of(judge_classifier(classifier, test, jobs=2)).accuracy or 0.0


def main(corpus: str, draws: str = "5", *sizes: str) -> None:
    by_group: dict[str | None, list[Item]] = defaultdict(list)
    for item in read_items([f"{corpus}/train"]):
        by_group[item.label].append(item)
    test = list(read_items([f"{corpus}/test"]))
    settings = em_settings(PLAIN["text"], {})
    print("labelled  draw  without  with   weight  rounds  seconds")
    for n in map(int, sizes or LABELLED):
        rows = []
        for seed in range(int(draws)):
            labelled, others = draw(by_group, n, np.random.default_rng(seed))
            plain = train_with_unlabelled(labelled, others, settings, weight=0.0, jobs=2)
            start = time.perf_counter()
            em = train_with_unlabelled(labelled, others, settings, jobs=2)
            seconds = time.perf_counter() - start
            row = accuracy(plain.classifier, test), accuracy(em.classifier, test)
            rows.append(row)
            print(
                f"{n:8d}  {seed:4d}  {row[0]:7.2%}  {row[1]:6.2%}  {em.weight:5.1f}"
                f"  {len(em.fit.steps) - 1:6d}  {seconds:7.1f}",
                flush=True,
            )
        without, with_them = np.mean(rows, axis=0)
        print(f"{n:8d}  mean  {without:7.2%}  {with_them:6.2%}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main(*sys.argv[1:])
