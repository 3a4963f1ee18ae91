"""The probability of a table's row as a product of factors, whatever the model.

By the chain rule P(class, row) is P(class) times, column by column,
P(value given the class and the values before it).  For naive Bayes that factor is
P(value given class); the factors of other models show which columns depend on each other.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from nbspam.arrays import Floats
from nbspam.decision import Rule
from nbspam.errors import InputError
from nbspam.sources.records import Record
from nbspam.tables.classifier import TableClassifier
from nbspam.tables.schema import coded
from nbspam.verdicts import Skipped, Verdict

_SWALLOWS = 1e12  # nats


@dataclass(frozen=True, slots=True)
class Factors:
    """A verdict, and the factors whose product is the joint probability of row and class."""

    verdict: Verdict
    target: str  # the column of the class
    values: tuple[str, ...]  # "column=value" of every known cell
    log_prior: Floats  # (n_classes,), nats
    log_factors: Floats  # (n_values, n_classes), nats; NaN after a factor of (nearly) zero

    @property
    def factor(self) -> Floats:
        """The prior and the factor of each value, shape (n_values + 1, n_classes)."""
        return np.asarray(np.exp(np.concatenate([self.log_prior[None], self.log_factors])))

    @property
    def product(self) -> Floats:
        """The product of the factors up to each row of `factor`; after a zero it is zero."""
        factor = self.factor
        with np.errstate(over="ignore"):
            return np.asarray(np.where(np.isnan(factor), 1.0, factor).cumprod(axis=0))


def factors(
    classifier: TableClassifier, records: Iterable[Record], rule: Rule | None = None
) -> Iterator[Factors | Skipped]:
    """Yield the factors of every row in order, or why it could not be read."""
    for record in records:
        try:
            X = coded([record], classifier.schema).X[0]
        except InputError as error:
            yield Skipped(record.name, str(error))
            continue
        joint = classifier.joint_by_steps(X)
        with np.errstate(invalid="ignore"):
            steps = np.diff(joint, axis=0)
        # After a density as far down as this, a sum has no digits left for another factor.
        steps[np.abs(joint[:-1]) > _SWALLOWS] = np.nan
        verdict = classifier.verdict(record.name, classifier.joint_of(X), rule)
        target = classifier.schema.target
        yield Factors(verdict, target, classifier.values(X), joint[0], steps)
