"""Why a verdict on a row of a table: factor by factor, whatever the model.

By the chain rule P(class, row) is P(class) times, column by column,
P(value given class and the values before): the row's columns become known one after the
other.  For naive Bayes that is P(value given class); other models show what they depend on.

Secret: that all models know what to do with a row of which a part is missing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbspam.arrays import Floats
from nbspam.classifier.explanation import shares_by_chain
from nbspam.decision import Rule
from nbspam.errors import InputError
from nbspam.sources.records import Record
from nbspam.tables.classifier import TableClassifier
from nbspam.tables.schema import coded
from nbspam.verdicts import Answer, Evidence, Explanation, Skipped, Verdict


@dataclass(frozen=True, slots=True)
class Factors:
    """A verdict, and the factors whose product is the joint probability of row and class."""

    verdict: Verdict
    target: str  # the column of the class
    values: tuple[str, ...]  # "column=value", for all that are known
    log_prior: Floats  # (n_classes,), nats
    log_factors: Floats  # (n_values, n_classes), nats; NaN after a zero, where undefined

    @property
    def factor(self) -> Floats:
        """The prior and the factor of each value, shape (n_values + 1, n_classes)."""
        return np.asarray(np.exp(np.concatenate([self.log_prior[None], self.log_factors])))

    @property
    def product(self) -> Floats:
        """The product of the factors up to each row of `factor`; after a zero it is zero."""
        factor = self.factor
        return np.asarray(np.where(np.isnan(factor), 1.0, factor).cumprod(axis=0))


def explanations(
    classifier: TableClassifier, records: Iterable[Record], rule: Rule | None = None
) -> Iterator[Explanation | Skipped]:
    """Yield an explanation of every row in order, or why it could not be read.

    The score is the log-odds of the most probable class against the next.
    """
    for row in _chains(classifier, records, rule):
        yield row if isinstance(row, Skipped) else _explanation(classifier, *row)


def factors(
    classifier: TableClassifier, records: Iterable[Record], rule: Rule | None = None
) -> Iterator[Factors | Skipped]:
    """Yield the factors of every row in order, or why it could not be read."""
    for row in _chains(classifier, records, rule):
        if isinstance(row, Skipped):
            yield row
            continue
        verdict, X, joint = row
        with np.errstate(invalid="ignore"):
            steps = np.diff(joint, axis=0)
        # What is impossible stays so: the factors after a zero are not defined.
        target = classifier.schema.target
        yield Factors(verdict, target, _values(classifier, X), joint[0], steps)


def _chains(
    classifier: TableClassifier, records: Iterable[Record], rule: Rule | None
) -> Iterator[tuple[Verdict, Floats, Floats] | Skipped]:
    """Yield verdict, the row's values, and joint (n_known + 1, n_classes) as they are known."""
    for record in records:
        try:
            X = coded([record], classifier.schema).X[0]
        except InputError as error:
            yield Skipped(record.name, str(error))
            continue
        known = np.flatnonzero(~np.isnan(X))
        nested = np.full((len(known) + 1, len(X)), np.nan)
        for step, column in enumerate(known.tolist(), 1):
            nested[step:, column] = X[column]
        joint = np.asarray(classifier.model.predict_joint_log_proba(nested)) + classifier.shift
        answer = Answer(record.name, None, classifier.joint_log_proba(X[None])[0])
        yield next(classifier.verdicts([answer], rule)), X, joint


def _values(classifier: TableClassifier, X: Floats) -> tuple[str, ...]:
    columns = classifier.schema.columns
    return tuple(
        f"{column.name}={column.value(value)}"
        for column, value in zip(columns, X.tolist(), strict=True)
        if not np.isnan(value)
    )


def _explanation(
    classifier: TableClassifier, verdict: Verdict, X: Floats, joint: Floats
) -> Explanation:
    towards, against = np.argsort(-joint[-1], kind="stable")[:2].tolist()
    shares, constant = shares_by_chain(joint, towards, against)
    order = np.argsort(-np.abs(shares), kind="stable").tolist()
    evidence = _evidence(classifier, X, shares)
    score = shares_by_chain(joint[[-1, -1]], towards, against)[1]
    classes = classifier.classes
    return Explanation(
        verdict,
        classes[towards],
        classes[against],
        score,
        constant,
        tuple(evidence[i] for i in order),
    )


def _evidence(classifier: TableClassifier, X: Floats, shares: Floats) -> list[Evidence]:
    """Return what each known value adds, in the order of the columns."""
    n_values = classifier.schema.levels
    place = np.cumsum(np.maximum(n_values, 1)) - np.maximum(n_values, 1)
    known = np.flatnonzero(~np.isnan(X))
    rows: list[Any] = []
    for column, text, share in zip(
        known.tolist(), _values(classifier, X), shares.tolist(), strict=True
    ):
        kind = "category" if n_values[column] else "number"
        value = int(X[column]) if n_values[column] else 0
        counts = classifier.counts[:, place[column] + value]
        rows.append(Evidence(text, share, kind, tuple(counts.tolist())))
    return rows
