"""The estimates of a table's model, with the names of columns, values and classes.

Every number that the model computes answers from is here: P(class), the tables of categories,
the means and variances, and which columns depend on which.
"""

from collections.abc import Iterator
from itertools import product, zip_longest
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Floats
from nbspam.models.describing import ANY_COLUMN, Distribution, dependences, distributions
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


def estimated(classifier: TableClassifier, whole: bool = True) -> Iterator[Estimated]:
    """Yield the distributions of a table's model; whole: see `distributions`."""
    names = dict(enumerate(classifier.schema.names)) | {ANY_COLUMN: COLUMN}
    columns = classifier.schema.columns
    values: dict[int, tuple[str, ...]] = {
        j: tuple(map(column.value, map(float, range(column.n_values))))
        for j, column in enumerate(columns)
    }
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


def _title(each: Distribution, names: dict[int, str]) -> str:
    """Return the distribution as it is written: P(column | class)."""
    of, given = (", ".join(names[v] for v in variables) for variables in (each.of, each.given))
    letter = "N" if each.probability is None else "P"
    negation = "not " if each.of_others else ""
    return f"{letter}({of} | {negation}{given})" if given else f"{letter}({of})"


def estimate_rows(each: Estimated) -> Iterator[dict[str, Any]]:
    """Yield the numbers of a distribution, one by one, as plain values: see NUMBERS.

    distribution: its title; of, given: variables and values, None for a number's density; count:
    what the number comes from.
    """
    for place in np.ndindex(each.counts.shape):
        named = [values[k] for values, k in zip(each.values, place, strict=True)]
        count = float(each.counts[place])
        row = {
            "distribution": each.title,
            "of": dict(zip_longest(each.of, named[len(each.given) :])),
            "given": dict(zip(each.given, named, strict=False)),
            "count": int(count) if count.is_integer() else count,
            **dict.fromkeys(NUMBERS[1:]),
        }
        if each.probability is not None:
            yield row | {"probability": float(each.probability[place])}
        elif each.mean is not None and each.variance is not None:
            mean, variance = float(each.mean[place]), float(each.variance[place])
            yield row | {"mean": mean, "variance": variance, "standard_deviation": sqrt(variance)}


class Matrix(NamedTuple):
    """A distribution with a row for each combination of values and a column for each class.

    If the class is not among the variables, or is the only one, there is a single column.
    """

    classes: tuple[str, ...]
    labels: tuple[str, ...]  # of the rows: "value | given value"
    counts: list[list[float]]
    probability: list[list[float]] | None
    mean: list[list[float]]  # of a normal distribution, and its standard deviation
    deviation: list[list[float]]


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
        by_class(each.mean),
        by_class(None if each.variance is None else np.sqrt(each.variance)),
    )


def _labels(each: Estimated, axis: int) -> Iterator[str]:
    """Yield "value | given value" for all combinations of values but those of one axis."""
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
        "structure": dependences(model, schema.names),
    }
