"""The estimates of a table's model, with the names of columns, values and classes.

Every number that the model computes answers from is here: P(class), the tables of categories,
the means and variances, and which columns depend on which.

Secret: how variables are named.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Floats
from nbspam.models.distributions import ANY_COLUMN, Distribution
from nbspam.tables.classifier import TableClassifier
from nbspam.tables.schema import schema_to_dict

COLUMN = "column"  # the variable that tells which column a count was made in


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
    probability: Floats | None
    mean: Floats | None
    variance: Floats | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """One probability, or one normal distribution, and the count that it comes from."""

    distribution: str
    of: dict[str, str | None]  # variables and values; no value if it is a number's density
    given: dict[str, str]
    count: float
    probability: float | None = None
    mean: float | None = None
    variance: float | None = None
    standard_deviation: float | None = None


def estimated(classifier: TableClassifier, whole: bool = True) -> Iterator[Estimated]:
    """Yield the distributions of a table's model; whole: see `Model.distributions`."""
    names = dict(enumerate(classifier.schema.names)) | {ANY_COLUMN: COLUMN}
    columns = classifier.schema.columns
    values: dict[int, tuple[str, ...]] = {
        j: tuple(map(column.value, map(float, range(column.n_values))))
        for j, column in enumerate(columns)
    }
    values[len(columns)] = classifier.classes
    values[ANY_COLUMN] = classifier.schema.names[:-1]
    for each in classifier.model.distributions(whole):
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


def _title(each: Distribution, names: dict[int, str]) -> str:
    """Return the distribution as it is written: P(column | class)."""
    of, given = (", ".join(names[v] for v in variables) for variables in (each.of, each.given))
    letter = "N" if each.probability is None else "P"
    negation = "not " if each.of_others else ""
    return f"{letter}({of} | {negation}{given})" if given else f"{letter}({of})"


def rows_of(each: Estimated) -> Iterator[Estimate]:
    """Yield the numbers of a distribution, one by one."""
    for place in np.ndindex(each.counts.shape):
        named = [values[k] for values, k in zip(each.values, place, strict=True)]
        given = dict(zip(each.given, named, strict=False))
        count = _short(float(each.counts[place]))
        if each.probability is not None:
            of: dict[str, str | None] = dict(zip(each.of, named[len(given) :], strict=True))
            yield Estimate(each.title, of, given, count, float(each.probability[place]))
        elif each.mean is not None and each.variance is not None:
            variance = float(each.variance[place])
            mean = float(each.mean[place])
            of = dict.fromkeys(each.of)
            yield Estimate(each.title, of, given, count, None, mean, variance, sqrt(variance))


class Matrix(NamedTuple):
    """A distribution with a row for each combination of values and a column for each class.

    If the class is not among the variables, or is the only one, there is a single column.
    """

    classes: tuple[str, ...]
    labels: tuple[str, ...]  # of the rows: "value | given value"
    counts: list[list[float]]
    probability: list[list[float]] | None
    mean: list[float]  # of a normal distribution, by class
    deviation: list[float]


def matrix_of(each: Estimated, target: str) -> Matrix:
    """Return a distribution as a matrix, for people to look at."""
    is_density = each.probability is None
    variables = each.given if is_density else (*each.given, *each.of)
    classes: tuple[str, ...] = ("",)
    axis = len(variables)
    if target in variables and (is_density or variables != (target,)):
        axis = variables.index(target)
        classes = each.values[axis]

    def by_class(array: Floats | None) -> list[list[float]]:
        if array is None:
            return [[]]
        whole = array[..., None] if axis == array.ndim else array
        cells: list[list[float]] = np.moveaxis(whole, axis, -1).reshape(-1, len(classes)).tolist()
        return cells

    return Matrix(
        classes,
        tuple(_labels(each, axis)),
        by_class(each.counts),
        None if is_density else by_class(each.probability),
        by_class(each.mean)[0],
        by_class(None if each.variance is None else np.sqrt(each.variance))[0],
    )


def _labels(each: Estimated, axis: int) -> Iterator[str]:
    """Yield "value | given value" for all combinations of values but those of one axis."""
    n_given = sum(k < len(each.given) for k in range(len(each.values)) if k != axis)
    for names in product(*(values for k, values in enumerate(each.values) if k != axis)):
        of, given = ", ".join(names[n_given:]), ", ".join(names[:n_given])
        yield " | ".join(part for part in (of, given) if part)


def estimate_to_dict(row: Estimate) -> dict[str, Any]:
    """Return an estimate as plain values."""
    return {name: getattr(row, name) for name in ("distribution", "of", "given", *NUMBERS)}


NUMBERS = ("count", "probability", "mean", "variance", "standard_deviation")
FIELDS = (
    "distribution",
    "column",
    "value",
    "class",
    "others",
    *NUMBERS,
)


def estimate_to_cells(row: Estimate, target: str) -> list[object]:
    """Return the cells of an estimate in a table with the columns FIELDS.

    The class has a cell of its own; `others` are the variables beside it and the last one.
    """
    variables = {**row.given, **row.of}
    column = list(row.of)[-1]
    others = [
        f"{name}={value}" for name, value in variables.items() if name not in (column, target)
    ]
    cells = (row.distribution, column, row.of[column], variables.get(target), "; ".join(others))
    numbers = (getattr(row, name) for name in NUMBERS)
    return ["" if cell is None else cell for cell in (*cells, *numbers)]


def description(classifier: TableClassifier) -> dict[str, Any]:
    """Return what a model was made of, beside its estimates, as plain values."""
    schema, model = classifier.schema, classifier.model
    settings = {
        name: np.asarray(value).tolist() if isinstance(value, np.ndarray) else value
        for name, value in model.get_params().items()
        if name != "levels" and value is not None
    }
    return {
        "kind": classifier.name,
        "target": schema.target,
        "read": dict(zip(schema.classes, map(round, model.class_count_.tolist()), strict=True)),
        "columns": schema_to_dict(schema)["columns"],
        "settings": settings,
        "structure": model.dependences(schema.names),
    }


def _short(count: float) -> float:
    """Return a number as an int if it is whole."""
    return int(count) if count == int(count) else count
