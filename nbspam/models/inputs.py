"""The inputs of an estimator, which are documents, labels and weights, and checks of them.

Errors are in scikit-learn's words.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from nbspam.errors import NotTrainedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.intp]
    Labels = NDArray[Any]
    Sums = Mapping[str, Array]


class DataError(UsageError, ValueError, TypeError):
    """A UsageError that code written for scikit-learn can catch as a ValueError or TypeError."""


class UnfittedError(NotTrainedError, ValueError, AttributeError):
    """A NotTrainedError that `hasattr` and code written for scikit-learn recognise."""


def is_sparse(X: Any) -> bool:
    """Return whether X is a scipy sparse matrix of any format, without importing scipy."""
    return hasattr(X, "tocsr")


def checked_matrix(X: Any, where: str, positive: bool, missing: bool = False) -> Any:
    """Return X as CSR or array of finite numbers, uncopied if it is one; raises DataError.

    positive: refuse values below 0; missing: allow NaN, which stands for a missing value.
    """
    try:
        frame, X = X, X.tocsr() if is_sparse(X) else np.asarray(X)
    except ValueError:
        raise DataError(f"{where}: rows of different lengths; give all the same") from None
    if X.ndim != 2:
        raise DataError(
            f"{where}: Expected 2D array, got {X.ndim}D array instead; give one row per document. "
            "Reshape your data with reshape(1, -1) if it is a single one"
        )
    if X.dtype.kind == "c":
        raise DataError(f"{where}: Complex data not supported; give counts")
    if X.dtype.kind in "Mm":
        raise DataError(f"{where}: dates are not numbers; give days or years, or drop the column")
    if X.dtype.kind == "O" and hasattr(frame, "isna"):
        X = np.where(frame.isna(), np.nan, X)  # the missing value of pandas is no number
    if hasattr(type(frame), "filled"):  # a masked array; naming its class would import it
        X = np.where(frame.mask, np.nan, X)
    if X.dtype.kind not in "biuf" or X.dtype.char in "eg":  # half and extended precision
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"{where}: {error}; give numbers, or codes of categories") from error
    values = X.data if is_sparse(X) else X
    if values.size:
        # minimum and maximum return NaN if any value is NaN; fmin and fmax ignore NaN.
        least, most = (np.fmin, np.fmax) if missing else (np.minimum, np.maximum)
        low, high = least.reduce(values, axis=None), most.reduce(values, axis=None)
        if np.isinf([low, high]).any() or not (missing or np.isfinite(low)):
            raise DataError(f"{where}: Input X contains NaN or infinity; give finite numbers")
        if positive and low < 0:
            raise DataError(f"{where}: Negative values in data passed to it; give counts")
    return X


def checked_labels(y: Any, n_docs: int, where: str) -> Labels:
    """Return y as an array of shape (n_docs,); raises DataError."""
    if y is None:
        raise DataError(f"{where}: requires y to be passed, but the target y is None")
    each = np.asarray(y, object).ravel().tolist()  # beside text, numpy writes numbers as text
    if len({isinstance(label, str) for label in each}) > 1:
        kinds = ", ".join(sorted({type(label).__name__ for label in each}))
        raise DataError(
            f"{where}: some labels are text and some are not ({kinds}); give every class a name"
        )
    try:
        labels: Labels = np.asarray(y)
        # In pandas a missing value compares with nothing.
        has_gaps = y.isna().any() if hasattr(y, "isna") else None in each
        if not has_gaps:
            min(each, default=None)
    except (TypeError, ValueError):
        raise DataError(f"{where}: labels without an order; give names or numbers") from None
    if labels.shape != (n_docs,):
        raise DataError(
            f"{where}: y should be a 1d array of one label for each of {n_docs} documents, "
            f"got an array of shape {labels.shape} instead"
        )
    is_float = labels.dtype.kind == "f"
    if has_gaps or (~np.isfinite(labels) if is_float else labels != labels).any():
        raise DataError(f"{where}: Input y contains NaN or infinity; give every class a name")
    if is_float and (labels != np.floor(labels)).any():
        raise DataError(
            f"{where}: Unknown label type: continuous; classes are names or whole numbers"
        )
    return labels


def union_of_labels(*labels: Labels) -> Labels:
    """Return the different labels, sorted; raises DataError if some are text and some are not."""
    if len({isinstance(each[0], str) for each in labels}) > 1:
        raise DataError("y: some labels are numbers and some are text; use one kind")
    return np.unique(np.concatenate(labels))


def checked_weight(sample_weight: Any, n_docs: int, where: str) -> Array | None:
    """Return the weights as float64 (n_docs,), or None if none are given; raises DataError."""
    if sample_weight is None:
        return None
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        weight = np.full(n_docs, np.nan)
    if weight.shape != (n_docs,) or not (np.isfinite(weight) & (weight >= 0)).all():
        raise DataError(
            f"{where}: sample_weight must be one finite number, 0 or more, for each of "
            f"{n_docs} documents"
        )
    return weight


def blocks_of_rows(n_docs: int, width: int, size: int) -> Iterator[slice]:
    """Yield slices of rows, of about `size` numbers each; width: numbers per row."""
    step = max(1, size // max(1, width))
    for start in range(0, n_docs, step):
        yield slice(start, min(start + step, n_docs))


_FEWER = "take fewer features, or fewer values"


def refuse_large(
    where: str, what: str, shape: Iterable[int], most: int = 1 << 27, advice: str = _FEWER
) -> None:
    """Raise DataError if `what`, an array of this shape, would have more than `most` numbers."""
    n = prod(map(float, shape))  # infinite if it is beyond all floats
    if n > most:
        raise DataError(
            f"{where}: {what} need {n / 2**27:,.1f} GiB, more than the {most / 2**27:g} GiB"
            f" allowed; {advice}"
        )


def column_names(X: Any) -> list[str]:
    """Return the names of the columns of a data frame; none unless all of them are strings."""
    # In Arrow `columns` are arrays; in pandas a column may be called "column_names".
    kind = "column_names" if hasattr(type(X), "column_names") else "columns"
    names = list(getattr(X, kind, ()))
    return names if all(isinstance(name, str) for name in names) else []
