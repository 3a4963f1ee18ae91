"""The words in which the contents of a file are checked.

Secret: how a large array is looked at quickly.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

MOST = 1e18  # of counts, and of numbers that are multiplied by counts
_PRIORS = ("estimated", "uniform", "smoothed")


def require(holds: bool, what: str) -> None:
    """Raise ValueError with what does not fit, unless it does."""
    if not holds:
        raise ValueError(what)


def is_whole(value: Any, least: int, most: int) -> bool:
    """Return whether a value is a whole number in a range, both ends included."""
    return type(value) is int and least <= value <= most


def is_number(value: Any, least: float = 0.0, most: float = MOST) -> bool:
    """Return whether a value is a number in a range, both ends included."""
    return type(value) in {int, float} and least <= value <= most


def are_names(values: Any) -> bool:
    """Return whether a value is a list of different texts."""
    return (
        type(values) is list
        and len(values) > 0
        and all(type(value) is str for value in values)
        and len(set(values)) == len(values)
    )


def array(
    value: Any,
    what: str,
    shape: Sequence[int | None],
    kinds: str,
    itemsize: int | None = None,
    most: float = MOST,
    least: float = 0,
) -> None:
    """Raise ValueError unless a value is an array of this shape, with numbers in a range.

    shape: None for an axis of any length.  kinds: of numpy's types.
    """
    require(type(value) is np.ndarray and value.dtype.kind in kinds, what)
    require(itemsize is None or value.dtype.itemsize == itemsize, what)
    require(value.dtype.kind != "f" or value.dtype.itemsize > 2, what)
    fits = len(value.shape) == len(shape) and all(
        n is None or n == own for n, own in zip(shape, value.shape, strict=True)
    )
    require(fits, f"{what}: of shape {value.shape}")
    if not value.size or (value.dtype.kind == "u" and np.iinfo(value.dtype).max <= most):
        return
    # The least or greatest of numbers with a NaN is NaN, which no comparison holds for.
    fits = value.dtype.kind == "u" or bool(value.min() >= least)
    require(fits and bool(value.max() <= most), f"{what}: out of range")


def is_prior(value: Any) -> bool:
    """Return whether a value says what the classes' prior probabilities are."""
    if type(value) is str:
        return value in _PRIORS
    return (
        type(value) is list
        and all(is_number(share, 0, 1) for share in value)
        and (abs(sum(value) - 1) < 1e-6)
    )


def names_of(values: Any, what: str) -> list[str]:
    """Return a list of different texts; raises ValueError for anything else."""
    require(are_names(values), what)
    return list(values)


def entries(values: Any, what: str) -> Mapping[str, Any]:
    """Return a dict; raises ValueError for anything else."""
    require(type(values) is dict, what)
    return dict(values)
