"""Evidence of held-out answers: why those were given that are most surely wrong.

In cross-validation and in a stream the model that gave an answer is soon gone, so a witness asks
for its reasons at once, before anybody knows which costs will be stated and how wrong the other
answers are.  A single model stays, and is asked for what a page shows only.

Secret: which answers are explained, and how much of their texts is kept.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from nbspam.answering import AnyClassifier, Weighed
from nbspam.arrays import Floats, Integers
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.features import FeatureClassifier
from nbspam.classifier.inspection import StrongToken, strongest_tokens
from nbspam.errors import InputError
from nbspam.evaluation.trial import Trial
from nbspam.settings import Settings
from nbspam.sources.items import Item
from nbspam.tables.classifier import TableClassifier
from nbspam.tokens.definition import CHARACTERS
from nbspam.verdicts import Evidence, Explanation, Verdict, posterior

N_KEPT = 20  # answers of each true class that are explained
N_WORDS = 12  # of each class
_AMONG = 500  # strongest tokens, which may be runs of characters that say the same as a word
KEPT_BYTES = 1 << 16  # of a message that is in no file of its own


class Reasons(NamedTuple):
    """What was said for one class and against another, as indices into the trial's classes."""

    towards: int
    against: int
    evidence: tuple[Evidence, ...]  # the strongest first


class Witness:
    """Looks on while documents are judged, and keeps what a report shows of them.

    Afterwards `words` has the strongest tokens of each class, of the model that was met last.
    """

    def __init__(self) -> None:
        self.words: dict[str, list[StrongToken]] = {}
        self.settings: Settings | None = None  # of the models; None for those of tables
        self._reasons: dict[int, Reasons] = {}
        self._waiting: dict[int, Callable[[], Reasons]] = {}  # they are asked for when needed
        self._items: dict[str, Item] = {}
        self._worst: dict[int, list[tuple[float, float, int]]] = {}

    def watched(self, inputs: Iterable[Any]) -> Iterator[Any]:
        """Let inputs pass, and keep items; of those in no file of their own only KEPT_BYTES."""
        for given in inputs:
            if isinstance(given, Item):
                data = None if given.data is None else given.data[:KEPT_BYTES]
                self._items.setdefault(given.name, given._replace(data=data))
            yield given

    def item(self, name: str) -> Item | None:
        """Return the item of this name, None if none passed."""
        return self._items.get(name)

    def meet(self, classifier: AnyClassifier) -> None:
        """Note the strongest tokens of a model."""
        if isinstance(classifier, Classifier | FeatureClassifier):
            self.settings = classifier.settings
            if len(classifier.classes) > 1:
                self.words = strongest_words(classifier, N_WORDS)
        elif isinstance(classifier, TableClassifier):
            self.words = strongest_values(classifier, N_WORDS)

    def hear(
        self,
        rows: Integers,
        y: Integers,
        joint: Floats,
        reasons: Callable[[int, int, int], Weighed],
        at_once: bool = True,
    ) -> None:
        """Keep the reasons of those answers that are among the most surely wrong so far.

        rows: of the trial, (n,).  y: (n,) true classes.  joint: (n, n_classes), nats.  reasons:
        see `HeldOut`.  at_once: they are asked for now, and not when they are needed.
        """
        n_classes = joint.shape[1]
        if n_classes < 2:
            return
        others, places = joint.copy(), np.arange(len(y))
        others[places, y] = -np.inf
        answer = others.argmax(axis=1)
        probability = posterior(joint)[places, answer]
        lead = joint[places, answer] - joint[places, y]
        for truth in np.unique(y).tolist():
            of = np.flatnonzero(y == truth)
            first = of[np.lexsort((-lead[of], -probability[of]))][:N_KEPT].tolist()
            place = {int(rows[k]): k for k in first}
            new = [(float(probability[k]), float(lead[k]), row) for row, k in place.items()]
            for row in self._kept(truth, new) & place.keys():
                towards, against = (1, 0) if n_classes == 2 else (int(answer[place[row]]), truth)
                ask = partial(_asked, partial(reasons, place[row]), towards, against)
                self._waiting[row] = ask
                if at_once:
                    self._ask(row)

    def hear_one(
        self,
        row: int,
        truth: int,
        joint: Floats,
        reasons: Callable[[int, int], Weighed],
        at_once: bool = True,
    ) -> None:
        """Keep the reasons of a single answer, see `hear`; joint: (n_classes,), nats."""
        of = np.array([row]), np.array([truth]), joint[None]
        self.hear(*of, lambda _, *pair: reasons(*pair), at_once)

    @property
    def reasons(self) -> dict[int, Reasons]:
        """The evidence of some answers, by row of the trial."""
        for row in list(self._waiting):
            self._ask(row)
        return self._reasons

    def _ask(self, row: int) -> None:
        """Ask for the reasons of an answer if they wait; an input may be gone meanwhile."""
        if row in self._waiting:
            with suppress(InputError):
                self._reasons[row] = self._waiting.pop(row)()

    def join(self, other: "Witness") -> None:
        """Add what another witness has heard of other rows, and what it has met."""
        for truth, worst in other._worst.items():
            for row in self._kept(truth, worst) & other.reasons.keys():
                self._reasons[row] = other.reasons[row]
        if other.words:
            self.words = other.words
        self.settings = other.settings or self.settings

    def _kept(self, truth: int, new: list[tuple[float, float, int]]) -> set[int]:
        """Return the rows of a class that are kept now; forget the reasons of the others.

        new: probability and lead of the wrong class, and row, of new answers.
        """
        before = self._worst.get(truth, [])
        ranked = sorted(before + new, key=lambda each: (-each[0], -each[1]))
        self._worst[truth] = ranked[:N_KEPT]
        for *_, row in ranked[N_KEPT:]:
            self._reasons.pop(row, None)
            self._waiting.pop(row, None)
        return {row for *_, row in ranked[:N_KEPT]}

    def explanation(self, trial: Trial, row: int, verdict: Verdict) -> Explanation | None:
        """Return why one answer was given, under the trial's prior; None if it was not kept."""
        self._ask(row)
        if row not in self._reasons:
            return None
        towards, against, evidence = self._reasons[row]
        score = float(trial.joint[row, towards] - trial.joint[row, against])
        constant = score - sum(each.contribution for each in evidence)
        names = trial.classes[towards], trial.classes[against]
        return Explanation(verdict, *names, score, constant, evidence)


def _asked(reasons: Callable[[int, int], Weighed], towards: int, against: int) -> Reasons:
    return Reasons(towards, against, reasons(towards, against)[0])


def strongest_words(
    classifier: Classifier | FeatureClassifier, n: int
) -> dict[str, list[StrongToken]]:
    """Return for each class the n strongest tokens, without runs of characters."""
    found = strongest_tokens(classifier, _AMONG)
    start = f"{CHARACTERS}:"
    words = {
        name: [each for each in tokens if not each.token.startswith(start)]
        for name, tokens in found.items()
    }
    return {name: (words[name] or tokens)[:n] for name, tokens in found.items()}


def strongest_values(classifier: TableClassifier, n: int) -> dict[str, list[StrongToken]]:
    """Return for each class the n values that are the strongest evidence for it, best first.

    Of columns of categories; the log-odds are of shares of rows, by Laplace's rule, whatever the
    classifier's own model is.
    """
    levels = classifier.schema.levels
    first = np.cumsum(np.maximum(levels, 1)) - np.maximum(levels, 1)
    names: list[str] = []
    counts: list[Floats] = []
    shares: list[Floats] = []
    for column, n_values, start in zip(
        classifier.schema.columns, levels.tolist(), first.tolist(), strict=True
    ):
        seen = classifier.counts[:, start : start + n_values]
        names += [f"{column.name}={column.value(value)}" for value in range(n_values)]
        counts += list(seen.T)
        shares += list(np.log((seen + 1) / (seen.sum(axis=1, keepdims=True) + n_values)).T)
    if not names or len(classifier.classes) < 2:
        return {}
    weight = np.stack(shares)
    odds = weight - (weight.sum(axis=1, keepdims=True) - weight) / (weight.shape[1] - 1)
    return {
        name: [
            StrongToken(names[j], float(odds[j, k]), tuple(counts[j].tolist()))
            for j in np.argsort(-odds[:, k], kind="stable")[:n].tolist()
        ]
        for k, name in enumerate(classifier.classes)
    }
