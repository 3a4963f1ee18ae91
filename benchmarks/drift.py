"""Compare models that forget with models that do not, on mail that changes with time.

usage: python benchmarks/drift.py SOURCE... [--order ORDER] [--stretches 8]

The messages of all SOURCES are one stream, cut into equal stretches.  Each stretch after the first
two is judged by models of earlier stretches.  One model learns the first two and nothing
afterwards.  The others learn stretch after stretch, as `nbspam update` does; before each, counts
fade as by `nbspam prune --half-life`.  Half-lives are in stretches.  "last 1" and "last 2" are new
models of the last stretches alone.

ORDER is one of nbspam's orders of a stream, or `class`: by the number in the file name within each
class, so that all classes have the same share of each stretch.  A message that came before is left
out.
"""

import argparse
from collections.abc import Iterator

import numpy as np

from nbspam.classifier.classifier import Classifier
from nbspam.classifier.training import train
from nbspam.counts.corpus import Corpus, read_corpus
from nbspam.counts.table import add_tables
from nbspam.evaluation.evaluation import Evaluation, evaluate
from nbspam.settings import Choices, Settings, settings_for
from nbspam.sources.items import Item, read_items
from nbspam.sources.order import BY_NAME, ORDERS, arranged
from nbspam.store.assembly import part_of, reassembled
from nbspam.store.prune import Rule, forgetful
from nbspam.verdicts import posterior

DAYS = 1000  # in a stretch; only their ratio to the half-life matters
BEGIN = 2  # stretches that are learned before the first is judged
HALF_LIVES = (0.5, 1, 2, 4, 8)  # stretches
WINDOWS = (1, 2)  # stretches
BY_CLASS = "class"


def by_class(items: list[Item]) -> list[Item]:
    """Return the items by their numbers within each class, the classes mixed evenly."""
    of: dict[str, list[Item]] = {}
    for item in arranged(items, BY_NAME).items:
        of.setdefault(str(item.label), []).append(item)
    placed = [((i + 0.5) / len(own), item) for own in of.values() for i, item in enumerate(own)]
    return [item for _, item in sorted(placed, key=lambda pair: pair[0])]


class Stream:
    """A labelled stream, cut into stretches."""

    def __init__(self, data: Corpus, settings: Settings, stretches: int) -> None:
        self.data, self.settings = data, settings
        _, first = np.unique(data.digests, return_index=True)
        self.stretches = np.array_split(np.sort(first), stretches)

    def learned(self, first: int, end: int) -> Classifier:
        """Return a new model of some stretches, learned on the day of the last one."""
        rows = np.concatenate(self.stretches[first:end])
        training = self.data.training(rows, self.settings.weighting)
        return train(training, self.settings, DAYS * end)

    def never(self) -> Iterator[Classifier]:
        """Yield for each judged stretch the model of the first ones."""
        model = self.learned(0, BEGIN)
        yield from (model for _ in self.stretches[BEGIN:])

    def window(self, size: int) -> Iterator[Classifier]:
        """Yield for each judged stretch a model of those just before it."""
        for end in range(BEGIN, len(self.stretches)):
            yield self.learned(end - size, end)

    def living(self, half_life: float | None) -> Iterator[Classifier]:
        """Yield for each judged stretch the model that has learned all before it."""
        model = self.learned(0, 1)
        for number in range(1, len(self.stretches)):
            if number >= BEGIN:
                yield model
            if half_life is not None:
                model = forgetful(model, Rule(half_life=half_life * DAYS), DAYS * (number + 1))
            more = self.learned(number, number + 1)
            table = add_tables([model.table, more.table])
            model = reassembled(model, table, [part_of(model), part_of(more)])

    def judged(self, models: Iterator[Classifier]) -> tuple[Evaluation, list[int]]:
        """Return the measures over all judged stretches, and the wrong messages of each."""
        joint, label, wrong = [], [], []
        for rows, model in zip(self.stretches[BEGIN:], models, strict=True):
            answer = model.joint_of(model.table.known(self.data.over_keys(rows)))
            names = model.rule.labels(posterior(answer))
            joint.append(answer)
            label.append([self.data.classes.index(name) for name in names])
            wrong.append(int((np.array(label[-1]) != self.data.y[rows]).sum()))
        truth = self.data.y[np.concatenate(self.stretches[BEGIN:])]
        probability = posterior(np.concatenate(joint))
        found = evaluate(truth, np.concatenate(label), self.data.classes, probability=probability)
        return found, wrong


def row(title: str, found: Evaluation, wrong: list[int]) -> str:
    """Return a model's line."""
    area = "-" if found.auc is None else f"{100 * (1 - found.auc):.3f}"
    numbers = " ".join(f"{n:>5}" for n in wrong)
    return (
        f"{title:16}{100 * (found.accuracy or 0):>10.2f}{area:>11}{found.log_loss or 0:>10.4f}"
        f"{found.calibration_error or 0:>8.3f}   {numbers}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sources", nargs="+", metavar="SOURCE")
    parser.add_argument("--order", choices=(*ORDERS, BY_CLASS))
    parser.add_argument("--stretches", type=int, default=8, help="[default: 8]")
    options = parser.parse_args()
    settings, labelled = settings_for(read_items(options.sources), Choices())
    items = list(labelled)
    is_by_class = options.order == BY_CLASS
    items = by_class(items) if is_by_class else arranged(items, options.order).items
    stream = Stream(read_corpus(items, settings)[0], settings, options.stretches)
    titles = f"{'accuracy %':>10}{'(1-AUC) %':>11}{'log loss':>10}{'ECE':>8}"
    print(f"{len(items):,} messages\n{'':16}{titles}   wrong in each stretch")
    print(row("never updated", *stream.judged(stream.never())), flush=True)
    print(row("all", *stream.judged(stream.living(None))), flush=True)
    for half_life in reversed(HALF_LIVES):
        found = stream.judged(stream.living(half_life))
        print(row(f"half-life {half_life:g}", *found), flush=True)
    for size in WINDOWS:
        print(row(f"last {size}", *stream.judged(stream.window(size))), flush=True)


if __name__ == "__main__":
    main()
