"""A classifier of table rows: a model, and the schema of the columns it was trained on.

Every model can judge a row with missing cells, so a row is explained by making its columns known
one after the other.  The last part has the estimates of the model, with the names of columns,
values and classes: every number that it computes answers from.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nbspam import verdicts
from nbspam.arrays import Floats
from nbspam.decision import Rule
from nbspam.errors import InputError, UsageError
from nbspam.models import model_state, restored
from nbspam.models.columns import count_cells
from nbspam.models.inputs import blocks_of_rows
from nbspam.sources.records import Record
from nbspam.tables.schema import Schema, Table, coded, schema_from_dict, schema_to_dict
from nbspam.workers import Workers

if TYPE_CHECKING:
    from nbspam.models.describing import Distribution

_CHUNK, _CHUNK_CELLS = 1024, 1 << 21  # rows, and their cells
COLUMN = "column"  # the variable that tells which column a count was made in
_STEPS = 256  # of an explanation, computed at a time; each is a row as wide as the table


@dataclass(frozen=True, slots=True)
class TableClassifier(verdicts.AnyClassifier):
    """A trained model and the columns it was trained on."""

    schema: Schema
    name: str  # one of `models.ESTIMATORS`
    model: Any
    counts: Floats  # (n_classes, values of all columns) labelled rows; see `value_counts`
    by_em: bool = False  # trained by EM, so that its counts are shares of rows

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names, sorted."""
        return self.schema.classes

    @property
    def noun(self) -> str:
        """The word for its inputs, in the plural."""
        return "rows"

    @property
    def prior(self) -> Floats:
        """The shares of the classes that training estimated or was given, shape (n_classes,)."""
        return np.asarray(np.exp(self.model.class_log_prior_))

    def chunks(self, inputs: Iterable[Record], jobs: Workers = 1) -> Iterator[list[Record]]:
        """Yield the rows in chunks; a process works on one chunk at a time."""
        stream = iter(inputs)
        for first in stream:
            n_rows = min(_CHUNK, _CHUNK_CELLS // max(1, len(first.cells)))
            yield [first, *islice(stream, max(n_rows - 1, 0))]

    def judge(self, inputs: Sequence[Record]) -> verdicts.JudgedChunk:
        """Return the answers to one chunk of rows, without `shift`."""
        failures: dict[int, verdicts.Skipped] = {}
        try:
            X = coded(inputs, self.schema).X
        except InputError:
            # At least one row is damaged: read them one by one to find which, and why.
            rows = [np.empty((0, len(self.schema.columns)))]
            for position, record in enumerate(inputs):
                try:
                    rows.append(coded([record], self.schema).X)
                except InputError as error:
                    failures[position] = verdicts.Skipped(record.name, str(error))
            X = np.concatenate(rows)
        return verdicts.JudgedChunk(self.model.joint_log_proba_or_prior(X), failures)

    def truth(self, given: Record) -> str | None:
        """Return the cell of the target column, None if it has no value."""
        return self.schema.class_of(given.cells.get(self.schema.target, ""))

    def explain(self, given: Record, rule: Rule | None = None) -> verdicts.Explanation:
        """Return why a row gets its verdict; raises InputError for a cell that is no number.

        The score is the log-odds of the most probable class against the next.  Raises
        UsageError if there is a single class.
        """
        if len(self.classes) == 1:
            raise UsageError(
                f"explain: {self.classes[0]} is the model's only class, so that nothing speaks"
                " for or against it; see its probabilities by --factors"
            )
        X = coded([given], self.schema).X[0]
        return self.explained(given.name, X, self.joint_of_row(X), rule)

    def reasons_for(self, given: Record, towards: int, against: int) -> verdicts.LogOddsParts:
        """Return each value's share in the log-odds of two classes; raises InputError."""
        return self.reasons(coded([given], self.schema).X[0], towards, against)

    def reasons(self, document: Floats, towards: int, against: int) -> verdicts.LogOddsParts:
        """Return the share of each value in the log-odds of two classes, and the constant, nats.

        document: (n_columns,), the values of a row.  The strongest come first.
        """
        joint = self.joint_by_steps(document)
        shares, constant = verdicts.shares_by_chain(joint, towards, against)
        n_values, first = self.schema.n_values, self.schema.entries.start
        known = np.flatnonzero(~np.isnan(document)).tolist()
        evidence: list[verdicts.Evidence] = []
        for column, text, share in zip(known, self.values(document), shares.tolist(), strict=True):
            kind = "category" if n_values[column] else "number"
            value = int(document[column]) if n_values[column] else 0
            counts = self.counts[:, first[column] + value]
            evidence.append(verdicts.Evidence(text, share, kind, tuple(counts.tolist())))
        order = np.argsort(-np.abs(shares), kind="stable").tolist()
        return tuple(evidence[i] for i in order), constant

    def joint_of_row(self, X: Floats) -> Floats:
        """Return log P(class, row) of one row of values (n_columns,), nats, with `shift`."""
        return np.asarray(self.model.joint_log_proba_or_prior(X[None])[0] + self.shift)

    def joint_by_steps(self, X: Floats) -> Floats:
        """Return log P(class, known values) as the values become known one by one, nats.

        X: (n_columns,).  Shape (n_known + 1, n_classes), with `shift`; the first row knows
        nothing.  Unlike `joint_of_row`, -inf in all classes stays.
        """
        known = ~np.isnan(X)
        if hasattr(self.model, "log_factors"):  # of naive Bayes, which do not depend on each other
            factors = self.model.log_factors(X)[known]
            joint = np.cumsum([self.model.class_log_prior_, *factors], axis=0)
            return np.asarray(joint + self.shift)
        before = np.cumsum(known) - known  # how many columns become known before each one
        n_steps = int(known.sum()) + 1
        joint = np.empty((n_steps, len(self.classes)))
        for steps in blocks_of_rows(n_steps, 1, _STEPS):
            nested = np.where(before < np.arange(n_steps)[steps, None], X, np.nan)
            joint[steps] = self.model.predict_joint_log_proba(nested)
        return joint + self.shift

    def values(self, X: Floats) -> tuple[str, ...]:
        """Return "column=value" for every known value of a row (n_columns,)."""
        return tuple(
            f"{column.name}={column.value(value)}"
            for column, value in zip(self.schema.columns, X.tolist(), strict=True)
            if not np.isnan(value)
        )

    def to_state(self) -> dict[str, Any]:
        """Return all that a model file keeps; `from_state` is the inverse."""
        return {
            "kind": "table",
            **schema_to_dict(self.schema),
            "model": self.name,
            **model_state(self.model),
            "counts": self.counts,
            "by_em": self.by_em,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "TableClassifier":
        """Return the classifier that `to_state` described; raises an error of `DAMAGE`.

        state: whose fields `store.fields.check_state` has found to fit together.
        """
        schema = schema_from_dict(state)
        nothing = np.full((1, len(schema.columns)), np.nan)
        model = restored(state["model"], state, schema.classes, nothing)
        return cls(schema, state["model"], model, state["counts"], state["by_em"])


def value_counts(table: Table) -> Floats:
    """Return the number of rows of each class with each value, (n_classes, all values).

    A column of numbers has a single entry, which counts its known cells, or of counts those
    above 0.
    """
    entries = table.schema.entries
    X = np.where(np.isnan(table.X) | (table.schema.n_values > 0), table.X, 0.0)
    are_counts = [column.is_count and column.cuts is None for column in table.schema.columns]
    X[(table.X == 0) & are_counts] = np.nan
    cells = entries.cells(X, "value_counts")
    return count_cells(cells, entries.total, table.y, None, len(table.schema.classes))


# --- a row's probability as a product of factors, whatever the model -------------------------

# By the chain rule P(class, row) is P(class) times, column by column, P(value given the class
# and the values before it). For naive Bayes that factor is P(value given class); the factors of
# other models show which columns depend on each other.

_SWALLOWS = 1e12  # nats


@dataclass(frozen=True, slots=True)
class Factors:
    """A verdict, and the factors whose product is the joint probability of row and class."""

    verdict: verdicts.Verdict
    target: str  # the column of the class
    values: tuple[str, ...]  # "column=value" of every known cell
    log_product: Floats  # (n_values + 1, n_classes), nats: of the prior, and of the values so far
    log_factors: Floats  # (n_values, n_classes), nats; NaN after a factor of (nearly) zero

    @property
    def factor(self) -> Floats:
        """The prior and the factor of each value, shape (n_values + 1, n_classes)."""
        return np.asarray(np.exp(np.concatenate([self.log_product[:1], self.log_factors])))

    @property
    def product(self) -> Floats:
        """The product of the factors up to each row of `factor`; after a zero it is zero."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.log_product))


def factors(
    classifier: TableClassifier, records: Iterable[Record], rule: Rule | None = None
) -> Iterator[Factors | verdicts.Skipped]:
    """Yield the factors of every row in order, or why it could not be read."""
    for record in records:
        try:
            X = coded([record], classifier.schema).X[0]
        except InputError as error:
            yield verdicts.Skipped(record.name, str(error))
            continue
        joint = classifier.joint_by_steps(X)
        with np.errstate(invalid="ignore"):
            steps = np.diff(joint, axis=0)
        # After a density as far down as this, a sum has no digits left for another factor.
        steps[np.abs(joint[:-1]) > _SWALLOWS] = np.nan
        verdict = classifier.verdict(record.name, classifier.joint_of_row(X), rule)
        yield Factors(verdict, classifier.schema.target, classifier.values(X), joint, steps)


# --- estimates ----------------------------------------------------------------------------


class Estimated(NamedTuple):
    """One distribution, P(of | given), with names.

    values: of each variable in `given`, then in `of`; of a normal distribution only of the
    former.  Arrays have one axis for each variable with values.
    """

    title: str
    of: tuple[str, ...]
    given: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    counts: Floats
    probability: Floats | None  # None of a normal distribution
    mean: Floats | None
    variance: Floats | None

    @property
    def numbers(self) -> dict[str, Any]:
        """The arrays that it has, by their names in NUMBERS."""
        if self.mean is None or self.variance is None:
            return {"count": self.counts, "probability": self.probability}
        of_density = {"mean": self.mean, "variance": self.variance}
        return {"count": self.counts, **of_density, "standard_deviation": np.sqrt(self.variance)}


def estimated(classifier: TableClassifier, whole: bool = True) -> Iterator[Estimated]:
    """Yield the distributions of a table's model; whole: see `distributions`."""
    from nbspam.models.describing import ANY_COLUMN, distributions

    names = dict(enumerate(classifier.schema.names)) | {ANY_COLUMN: COLUMN}
    columns = classifier.schema.columns
    values = {j: tuple(map(c.value, range(c.n_values))) for j, c in enumerate(columns)}
    values[len(columns)] = classifier.classes
    values[ANY_COLUMN] = classifier.schema.names[:-1]
    for each in distributions(classifier.model, whole):
        variables = each.given if each.probability is None else (*each.given, *each.of)
        yield Estimated(
            _title(each, names),
            tuple(names[v] for v in each.of),
            tuple(names[v] for v in each.given),
            tuple(values[v] for v in variables),
            each.counts,
            each.probability,
            each.mean,
            each.variance,
        )


def _title(each: "Distribution", names: dict[int, str]) -> str:
    """Return the distribution as it is written: P(column | class)."""
    of, given = (", ".join(names[v] for v in variables) for variables in (each.of, each.given))
    letter = "N" if each.probability is None else "P"
    negation = "not " if each.of_others else ""
    return f"{letter}({of} | {negation}{given})" if given else f"{letter}({of})"


def estimate_rows(each: Estimated) -> Iterator[dict[str, Any]]:
    """Yield the numbers of a distribution, one by one, as plain values: see NUMBERS.

    distribution: its title; of, given: variables and values, None for a number's density; count:
    the source of the number.
    """
    arrays = each.numbers.items()
    for place in np.ndindex(each.counts.shape):
        named = [values[k] for values, k in zip(each.values, place, strict=True)]
        numbers = {name: float(array[place]) for name, array in arrays}
        if numbers["count"].is_integer():
            numbers["count"] = int(numbers["count"])
        yield {
            "distribution": each.title,
            "of": dict(zip_longest(each.of, named[len(each.given) :])),
            "given": dict(zip(each.given, named, strict=False)),
            **dict.fromkeys(NUMBERS),
            **numbers,
        }


class Matrix(NamedTuple):
    """A distribution with a row for each combination of values and a column for each class.

    If the class is not among the variables, or is the only one, there is a single column.
    """

    classes: tuple[str, ...]
    labels: tuple[str, ...]  # of the rows: "value | given value"
    numbers: dict[str, list[list[float]]]  # see `Estimated.numbers`


def matrix_of(each: Estimated, target: str) -> Matrix:
    """Return a distribution as a matrix, for people to look at."""
    is_density = each.probability is None
    variables = each.given if is_density else (*each.given, *each.of)
    classes: tuple[str, ...] = ("",)
    axis = len(variables)
    if target in variables and (is_density or variables != (target,)):
        axis = variables.index(target)
        classes = each.values[axis]

    def by_class(array: Floats) -> list[list[float]]:
        whole = array[..., None] if axis == array.ndim else array
        cells: list[list[float]] = np.moveaxis(whole, axis, -1).reshape(-1, len(classes)).tolist()
        return cells

    numbers = {name: by_class(array) for name, array in each.numbers.items()}
    return Matrix(classes, tuple(_labels(each, axis)), numbers)


def _labels(each: Estimated, axis: int) -> Iterator[str]:
    """Yield "value | given value" for all combinations of values, except along one axis."""
    n_given = sum(k < len(each.given) for k in range(len(each.values)) if k != axis)
    for names in product(*(values for k, values in enumerate(each.values) if k != axis)):
        of, given = ", ".join(names[n_given:]), ", ".join(names[:n_given])
        yield " | ".join(part for part in (of, given) if part)


NUMBERS = ("count", "probability", "mean", "variance", "standard_deviation")
FIELDS = ("distribution", "column", "value", "class", "others", *NUMBERS)


def estimate_to_cells(row: dict[str, Any], target: str) -> list[object]:
    """Return the cells of a row of `estimate_rows` in a table with the columns FIELDS.

    The class has a cell of its own; `others` are the variables beside it and the last one.
    """
    variables = {**row["given"], **row["of"]}
    column = list(row["of"])[-1]
    others = [
        f"{name}={value}" for name, value in variables.items() if name not in (column, target)
    ]
    of_row = (row["distribution"], column, row["of"][column], variables.get(target))
    cells = (*of_row, "; ".join(others), *(row[name] for name in NUMBERS))
    return ["" if cell is None else cell for cell in cells]


def description(classifier: TableClassifier) -> dict[str, Any]:
    """Return the rows, columns, settings and structure of a model, as plain values."""
    from nbspam.models.describing import dependences

    schema, model = classifier.schema, classifier.model
    parameters = model_state(model)["parameters"].items()
    settings = {k: v for k, v in parameters if k != "levels" and v is not None}
    return {
        "kind": classifier.name,
        "target": schema.target,
        "read": dict(zip(schema.classes, map(round, model.class_count_.tolist()), strict=True)),
        "columns": schema_to_dict(schema)["columns"],
        "settings": settings,
        "structure": dependences(model, schema.names),
    }
