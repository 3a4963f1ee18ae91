"""Evidence of held-out answers: why the answers that are most surely wrong were given.

In cross-validation and in a stream the model that gave an answer is soon gone.  So a `Witness`
asks for its reasons at once, before costs are stated and the other answers are known, and keeps
those of the N_KEPT worst answers to each of two classes, or the N_OF_MANY worst of more classes.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from heapq import heappush, heappushpop
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Floats, Integers
from nbspam.classifier.classifier import Classifier, StrongToken, strongest_tokens
from nbspam.classifier.features import FeatureClassifier
from nbspam.classifier.reasons import by_words
from nbspam.errors import InputError
from nbspam.evaluation.evaluation import Trial
from nbspam.settings import Settings
from nbspam.sources.items import Item
from nbspam.tables.classifier import TableClassifier
from nbspam.tokens.items_to_messages import message_of_item
from nbspam.verdicts import AnyClassifier, Evidence, Explanation, LogOddsParts, Verdict, posterior

# Another prior can make all wrong answers to one of two classes right, so each has its own.
N_KEPT = 20  # answers to each of two classes
N_OF_MANY = 60  # answers to more than two classes, in all
N_WORDS = 12  # of each class
KEPT_BYTES = 1 << 16  # of a message without a file of its own


class Reasons(NamedTuple):
    """The evidence for one class and against another, as indices into the trial's classes."""

    towards: int
    against: int
    evidence: tuple[Evidence, ...]  # the strongest first


# Probability and lead of the wrong class, and minus the row: the greatest is the worst answer, of
# equally bad ones the first.  Reasons are None where the input could not be read again.
_WrongAnswer = tuple[float, float, int, Reasons | None]


class Witness:
    """Watches while documents are judged, and keeps the details for a report.

    Afterwards `words` has the strongest tokens of each class, of the model that was met last.
    """

    def __init__(self) -> None:
        self.words: dict[str, list[StrongToken]] = {}
        self.settings: Settings | None = None  # of the models; None for those of tables
        self._items: dict[str, Item | None] = {}  # None: several have this name
        # A heap for each of two classes, or under None one for more classes.
        self._worst: dict[int | None, list[_WrongAnswer]] = {}

    def watched(self, inputs: Iterable[Any]) -> Iterator[Any]:
        """Let inputs pass, and keep items: KEPT_BYTES of an item without a file of its own."""
        for given in inputs:
            if isinstance(given, Item):
                kept = given._replace(data=given.data and given.data[:KEPT_BYTES])
                is_same = self._items.setdefault(given.name, kept) == kept
                self._items[given.name] = kept if is_same else None
            yield given

    def item(self, name: str) -> Item | None:
        """Return the item of this name; None if none passed, or several that differ."""
        return self._items.get(name)

    def meet(self, classifier: AnyClassifier) -> None:
        """Note the strongest tokens of a model."""
        if isinstance(classifier, Classifier | FeatureClassifier):
            self.settings = classifier.settings
            if len(classifier.classes) > 1:
                self.words = strongest_tokens(classifier, N_WORDS)
        elif isinstance(classifier, TableClassifier):
            self.words = strongest_values(classifier, N_WORDS)

    def hear(
        self,
        rows: Integers,
        y: Integers,
        joint: Floats,
        reasons: Callable[[int, int, int], LogOddsParts],
    ) -> None:
        """Keep the reasons of the answers that are the most surely wrong so far.

        rows: of the trial, (n,).  y: (n,) true classes.  joint: (n, n_classes), nats.  reasons:
        see `verdicts.HeldOut`; they are asked for at once.
        """
        n_classes = joint.shape[1]
        if n_classes < 2:
            return
        # An impossible class, -inf, still comes before the true one.
        others, places = np.maximum(joint, np.finfo(joint.dtype).min), np.arange(len(y))
        others[places, y] = -np.inf
        answer = others.argmax(axis=1)
        probability = posterior(joint)[places, answer]
        lead = joint[places, answer] - joint[places, y]
        for place in np.lexsort((rows, -lead, -probability)).tolist():
            truth = int(y[place])
            rank = float(probability[place]), float(lead[place]), -int(rows[place])
            of, pair = (truth, (1, 0)) if n_classes == 2 else (None, (int(answer[place]), truth))
            worst = self._worst.get(of, [])
            if len(worst) == _n_kept(of) and rank < worst[0][:3]:
                continue
            said = None
            with suppress(InputError):
                evidence = reasons(place, *pair)[0]
                # The counts of many classes would fill the memory; that there are some is enough.
                said = Reasons(*pair, tuple(e._replace(counts=e.counts[:1]) for e in evidence))
            self._keep(of, (*rank, said))

    def hear_one(
        self, row: int, truth: int, joint: Floats, reasons: Callable[[int, int], LogOddsParts]
    ) -> None:
        """Hear one answer, as in `hear`; reasons: for one class against another."""
        rows, y = np.array([row]), np.array([truth])
        self.hear(rows, y, joint[None], lambda _, *pair: reasons(*pair))

    def join(self, other: "Witness") -> None:
        """Add the wrong answers and words of another witness, which heard other rows."""
        for of, worst in other._worst.items():
            for wrong in worst:
                self._keep(of, wrong)
        self.words = other.words or self.words
        self.settings = other.settings or self.settings

    def _keep(self, of: int | None, wrong: _WrongAnswer) -> None:
        worst = self._worst.setdefault(of, [])
        if len(worst) < _n_kept(of):
            heappush(worst, wrong)
        else:
            heappushpop(worst, wrong)

    @property
    def reasons(self) -> dict[int, Reasons]:
        """The evidence of some answers, by row of the trial."""
        kept = (wrong for worst in self._worst.values() for wrong in worst)
        return {-row: said for *_, row, said in kept if said is not None}

    def explanation(self, trial: Trial, row: int, verdict: Verdict) -> Explanation | None:
        """Return why one answer was given, under the trial's prior; None if it was not kept."""
        said = self.reasons.get(row)
        if said is None:
            return None
        towards, against, evidence = said
        score = float(trial.joint[row, towards] - trial.joint[row, against])
        constant = score - sum(each.contribution for each in evidence)
        names = trial.classes[towards], trial.classes[against]
        readable = self.readable(verdict.name, evidence)
        return Explanation(verdict, *names, score, constant, readable, evidence)

    def readable(self, name: str, evidence: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
        """Return the evidence of an input by words, if its text is there to be read again."""
        item = self.item(name)
        if item is not None and self.settings is not None:
            with suppress(InputError):
                message = message_of_item(item, self.settings)
                return by_words(message, self.settings.tokens, evidence)
        return evidence


def _n_kept(of: int | None) -> int:
    return N_OF_MANY if of is None else N_KEPT


def strongest_values(classifier: TableClassifier, n: int) -> dict[str, list[StrongToken]]:
    """Return for each class at most n values, the strongest evidence for it, best first.

    Values are categories or intervals; the log-odds are of shares of rows, by Laplace's rule,
    whatever the classifier's own model is.
    """
    schema, levels = classifier.schema, classifier.schema.entries
    names = [f"{c.name}={c.value(value)}" for c in schema.columns for value in range(c.n_values)]
    if not names or len(schema.classes) < 2:
        return {}
    is_value = (schema.n_values > 0)[levels.column]  # and not the known numbers of a column
    shares = (classifier.counts + 1) / (levels.sums(classifier.counts) + levels.n[levels.column])
    weight, counts = np.log(shares).T[is_value], classifier.counts.T[is_value]
    odds = weight - (weight.sum(axis=1, keepdims=True) - weight) / (weight.shape[1] - 1)
    return {
        name: [
            StrongToken(names[j], float(odds[j, k]), tuple(counts[j].tolist()))
            for j in np.argsort(-odds[:, k], kind="stable")[:n].tolist()
            if odds[j, k] >= 0
        ]
        for k, name in enumerate(schema.classes)
    }
