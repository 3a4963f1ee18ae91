"""Checks of documents, labels and weights, and sums of rows by class.

Errors are also ValueErrors in scikit-learn's words, so that its tools recognise them.

Secret: which arrays and sparse matrices are accepted, and how rows are summed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nbspam.errors import NotTrainedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.intp]
    Labels = NDArray[Any]
    Sums = Mapping[str, Array]


class DataError(UsageError, ValueError):
    """A UsageError that code written for scikit-learn can catch as a ValueError."""


class UnfittedError(NotTrainedError, ValueError, AttributeError):
    """A NotTrainedError that `hasattr` and code written for scikit-learn recognise."""


def is_sparse(X: Any) -> bool:
    """Return whether X is a scipy sparse matrix of any format, without importing scipy."""
    return hasattr(X, "tocsr")


def checked_matrix(X: Any, where: str, positive: bool, missing: bool = False) -> Any:
    """Return X as CSR or array of finite numbers, uncopied if it is one; raises DataError.

    positive: refuse values below 0; missing: allow NaN, which stands for a missing value.
    """
    X = X.tocsr() if is_sparse(X) else np.asarray(X)
    if X.ndim != 2:
        raise DataError(
            f"{where}: Expected 2D array, got {X.ndim}D array instead; give one row per document. "
            "Reshape your data with reshape(1, -1) if it is a single one"
        )
    if X.dtype.kind == "c":
        raise DataError(f"{where}: Complex data not supported; give counts")
    if X.dtype.kind not in "biuf":
        X = X.astype(np.float64)
    values = X.data if is_sparse(X) else X
    if values.size:
        # minimum and maximum return NaN if any value is NaN; fmin and fmax ignore NaN.
        least, most = (np.fmin, np.fmax) if missing else (np.minimum, np.maximum)
        low, high = least.reduce(values, axis=None), most.reduce(values, axis=None)
        if np.isinf([low, high]).any() or not (missing or np.isfinite(low)):
            raise DataError(f"{where}: Input X contains NaN or infinity; give finite counts")
        if positive and low < 0:
            raise DataError(f"{where}: Negative values in data passed to it; give counts")
    return X


def checked_labels(y: Any, n_docs: int, where: str) -> Labels:
    """Return y as an array of shape (n_docs,); raises DataError."""
    if y is None:
        raise DataError(f"{where}: requires y to be passed, but the target y is None")
    y = labels = np.asarray(y)
    if y.shape != (n_docs,):
        raise DataError(
            f"{where}: y should be a 1d array of one label for each of {n_docs} documents, "
            f"got an array of shape {y.shape} instead"
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise DataError(f"{where}: Input y contains NaN or infinity; give every class a name")
    if y.dtype.kind == "f" and (y != np.floor(y)).any():
        raise DataError(
            f"{where}: Unknown label type: continuous; classes are names or whole numbers"
        )
    return labels


def checked_weight(sample_weight: Any, n_docs: int, where: str) -> Array | None:
    """Return the weights as float64 (n_docs,), or None if none are given; raises DataError."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_docs,) or not (np.isfinite(weight) & (weight >= 0)).all():
        raise DataError(
            f"{where}: sample_weight must be one finite number, 0 or more, for each of "
            f"{n_docs} documents"
        )
    return weight


def sums_by_class(X: Any, code: Codes, weight: Array | None, n_classes: int) -> Array:
    """Return the weighted sum of the rows of each class, shape (n_classes, n_features).

    X: checked, (n_docs, n_features); code: (n_docs,) the class index of each row.
    """
    n_docs, n_features = X.shape
    if is_sparse(X):
        length = np.diff(X.indptr)
        cell = np.repeat(code * n_features, length) + X.indices
        value = X.data if weight is None else X.data * np.repeat(weight, length)
        total = np.bincount(cell, value, n_classes * n_features)
        return np.asarray(total.reshape(n_classes, n_features), dtype=np.float64)
    member = np.zeros((n_classes, n_docs))
    member[code, np.arange(n_docs)] = 1.0 if weight is None else weight
    return np.asarray(member @ X)
