"""Judging one model on labelled documents that it has not learned.

Smaller models, for a learning curve, answer the same documents, each of which is read once.

Secret: which inputs cannot be judged.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nbspam.answering import AnyClassifier
from nbspam.arrays import Floats
from nbspam.classifier.training import learn
from nbspam.evaluation.judging.smaller import (
    SmallerModel,
    n_learned_by,
    smaller_models,
    smaller_of_table,
)
from nbspam.evaluation.labels import nothing_judged
from nbspam.evaluation.trial import Smaller, Trial
from nbspam.evaluation.witness import Witness
from nbspam.parallel import Workers
from nbspam.settings import Settings
from nbspam.sources.items import Item
from nbspam.sources.records import Record
from nbspam.tables.schema import Schema, Table
from nbspam.tables.training import TableSettings, train_table
from nbspam.verdicts import Answer, Skipped


class _Told:
    """The answers to inputs that have one of a model's classes."""

    def __init__(self, classes: Sequence[str]) -> None:
        self._index = {name: k for k, name in enumerate(classes)}
        self.names: list[str] = []
        self.y: list[int] = []  # index into the classes
        self.joint: list[Floats] = []
        self.beside: list[Floats] = []  # the answers of smaller models
        self.skipped: list[Skipped] = []
        self.heard: set[str] = set()  # classes that the model does not have

    def takes(self, answer: Answer | Skipped, beside: Floats) -> bool:
        """Add an answer, or note why there is nothing to compare it with; return which."""
        if isinstance(answer, Skipped):
            self.skipped.append(answer)
        elif answer.truth is None:
            self.skipped.append(Skipped(answer.name, "no label"))
        elif answer.truth not in self._index:
            self.heard.add(answer.truth)
            reason = f"class {answer.truth} is not one of the model's"
            self.skipped.append(Skipped(answer.name, reason))
        else:
            self.names.append(answer.name)
            self.y.append(self._index[answer.truth])
            self.joint.append(answer.joint)
            self.beside.append(beside)
            return True
        return False


def judge_classifier(
    classifier: AnyClassifier,
    items: Iterable[Any],
    jobs: Workers = 1,
    remembering: AnyClassifier | None = None,
    witness: Witness | None = None,
) -> Trial:
    """Return a classifier's answers to labelled inputs of its kind; raises InputError.

    remembering: the same model with the messages that it remembers, so that smaller models can
    learn parts of them (see `smaller_models`); None: the trial has no learning curve.
    """
    smaller = () if remembering is None else smaller_models(remembering)
    return _judged(classifier, items, jobs, smaller, witness)


def _judged(
    classifier: AnyClassifier,
    items: Iterable[Any],
    jobs: Workers,
    smaller: Sequence[SmallerModel],
    witness: Witness | None,
) -> Trial:
    if witness is not None:
        witness.meet(classifier)
    told = _Told(classifier.classes)
    others = [each.classifier for each in smaller]
    for given, answer, beside in classifier.answered(items, jobs, others):
        if told.takes(answer, beside) and witness is not None:
            witness.hear_one(
                len(told.y) - 1,
                told.y[-1],
                told.joint[-1],
                lambda *pair, given=given: classifier.reasons_for(given, *pair),
                at_once=False,
            )
    if not told.y:
        raise nothing_judged(told.skipped, classifier.noun, told.heard, classifier.classes)
    stages = zip(smaller, np.stack(told.beside, axis=1), strict=True)
    return Trial(
        classifier.classes,
        np.array(told.y),
        np.stack(told.joint),
        classifier.rule,
        np.zeros(len(told.y), np.int64),
        classifier.prior,
        tuple(told.names),
        classifier.noun,
        n_learned=n_learned_by(classifier),
        smaller=tuple(Smaller(model.n_learned, joint) for model, joint in stages),
        skipped=tuple(told.skipped),
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

    with_smaller: also those of models that are trained on parts of these, see `smaller_models`.
    """
    learned = learn(items, settings, jobs)
    remembering = learned.classifier if with_smaller else None
    trial = judge_classifier(learned.classifier, test_items, jobs, remembering, witness)
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
    smaller = smaller_of_table(table, settings) if with_smaller else ()
    trial = _judged(classifier, test_records(classifier.schema), 1, smaller, witness)
    return replace(trial, n_learned=len(table.y))
