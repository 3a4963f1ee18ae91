"""What the state of a model of dependent columns must be: of a table, or of chosen tokens.

Secret: which arrays an estimator has learnt, and how they must fit each other.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from nbspam.arrays import Integers
from nbspam.models.registry import COLUMN_MODELS, ESTIMATORS
from nbspam.store.contents.values import (
    MOST,
    array,
    entries,
    is_number,
    is_prior,
    is_whole,
    names_of,
    require,
)
from nbspam.store.format.modelfile import State

_ESTIMATES = ("mle", "map", "mean")
_CRITERIA = ("bic", "aic", "mdl", "likelihood")
_STARTS = ("tree", "naive", "empty")
_FAR = 1e150  # of means: their squares must not overflow


def check_table(state: State) -> None:
    """Raise ValueError unless a state can be that of a model of a table."""
    classes = names_of(state["classes"], "classes")
    require(type(state["target"]) is str, "target")
    require(type(state["columns"]) is list and len(state["columns"]) > 0, "columns")
    n_values = np.array([_checked_column(column) for column in state["columns"]], np.int64)
    names_of([column["name"] for column in state["columns"]], "columns: name")
    name = state["model"]
    require(type(name) is str and name in ESTIMATORS, "model")
    total = int(np.maximum(n_values, 1).sum())
    array(state["counts"], "counts", (len(classes), total), "f", 8)
    check_model(name, state, n_values, len(classes))


def _checked_column(column: Any) -> int:
    """Return the number of values of a column, 0 for numbers; raises ValueError."""
    require(type(column) is dict and type(column["name"]) is str, "columns")
    levels, cuts = column["levels"], column["cuts"]
    require(type(column.get("is_count", False)) is bool, "columns: is_count")
    if levels is not None:
        require(cuts is None, "columns: both levels and cuts")
        return len(names_of(levels, "columns: levels"))
    if cuts is None:
        return 0
    numbers = type(cuts) is list and all(is_number(cut, -1e308, 1e308) for cut in cuts)
    require(numbers and all(a < b for a, b in pairwise(cuts)), "columns: cuts")
    return len(cuts) + 1


def check_model(name: str, state: State, n_values: Integers, n_classes: int) -> None:
    """Raise ValueError unless an estimator can have these parameters and have learnt this.

    n_values: (n_columns,) the number of values of each column, 0 for numbers.
    """
    parameters = entries(state["parameters"], "parameters")
    for key, value in parameters.items():
        require(key in _PARAMETERS and _PARAMETERS[key](value), f"parameters: {key}")
    n_columns = len(n_values)
    prior, levels = parameters.get("class_prior"), parameters.get("levels")
    require(type(prior) is not list or len(prior) == n_classes, "parameters: class_prior")
    require(levels is None or levels == n_values.tolist(), "parameters: levels")
    parent = parameters.get("parent")
    require(parent is None or parent < n_columns, "parameters: parent")
    dirichlet = parameters.get("dirichlet")
    if dirichlet is not None:
        sizes = [*n_values.tolist(), n_classes]
        fits = len(dirichlet) == len(sizes) and all(
            own is None or len(own) == n for own, n in zip(dirichlet, sizes, strict=True)
        )
        require(fits, "parameters: dirichlet")
    is_binary = levels is None and name in COLUMN_MODELS and name not in {"gaussian", "mixed"}
    learnt = entries(state["learnt"], "learnt")
    _check_learnt(learnt, n_values, n_classes, is_binary)
    if "rows_" in learnt:
        _check_rows(learnt, [*n_values.tolist(), n_classes])
        _check_arrows(learnt["arrows_"], n_columns + 1, parameters.get("structure"))


def _is_dirichlet(value: Any) -> bool:
    return value is None or (
        type(value) is list
        and all(own is None or (type(own) is list and all(map(is_number, own))) for own in value)
    )


def _is_flag(value: Any) -> bool:
    return type(value) is bool


_PARAMETERS: Mapping[str, Callable[[Any], bool]] = {
    "alpha": lambda value: value == "auto" or is_number(value),
    "class_prior": is_prior,
    "climb": _is_flag,
    "criterion": lambda value: value in _CRITERIA,
    "ddof": lambda value: value is None or is_whole(value, 0, 1 << 31),
    "dirichlet": _is_dirichlet,
    "estimate": lambda value: value in _ESTIMATES,
    "levels": lambda value: (
        value is None or (type(value) is list and all(is_whole(n, 0, 1 << 31) for n in value))
    ),
    "max_parents": lambda value: value is None or is_whole(value, 1, 1 << 31),
    "min_support": is_number,
    "norm": _is_flag,
    "parent": lambda value: value is None or is_whole(value, 0, 1 << 31),
    "start": lambda value: value in _STARTS,
    "structure": lambda value: (
        value is None or (type(value) is list and all(type(nodes) is list for nodes in value))
    ),
    "var_smoothing": is_number,
}


def _check_learnt(
    learnt: Mapping[str, Any], n_values: Integers, n_classes: int, is_binary: bool
) -> None:
    """Check the arrays that an estimator has learnt."""
    n_columns, total = len(n_values), int(n_values.sum())
    n_events = n_columns if is_binary else total
    n_numbers = int((n_values == 0).sum())
    shapes: dict[str, tuple[int | None, ...]] = {
        "class_count_": (n_classes,),
        "feature_count_": (n_classes, n_columns),
        "level_count_": (n_classes, total),
        "pair_count_": (n_classes, n_events, n_events),
        "triple_count_": (n_classes, total, total, total),
        "value_count_": (n_classes, n_numbers),
        "deviation_": (n_classes, n_numbers),
        "row_count_": (None,),
        "parent_errors_": (n_columns,),
        "parent_loss_": (n_columns,),
    }
    for name, value in learnt.items():
        if name in shapes:
            most = _FAR**2 if name == "deviation_" else MOST
            array(value, name, shapes[name], "f", 8, most=most)
        elif name == "mean_":
            array(value, name, (n_classes, n_numbers), "f", 8, most=_FAR, least=-_FAR)
        elif name == "n_features_in_":
            require(is_whole(value, n_columns, n_columns), name)
        elif name == "levels_":
            array(value, name, (n_columns,), "i", 8)
            require(bool((value == n_values).all()), name)
        elif name == "parent_":
            require(is_whole(value, 0, n_columns - 1), name)
        else:
            require(name in {"rows_", "arrows_"}, f"learnt: {name}")
    require(bool((learnt["class_count_"] > 0).any()), "class_count_")
    judged = "parent_errors_" in learnt
    require(judged == ("parent_loss_" in learnt), "parent_errors_ or parent_loss_")
    if "deviation_" in learnt:
        unseen = learnt["value_count_"] == 0
        require(not learnt["deviation_"][unseen].any(), "deviation_: of no values")
    if is_binary and "pair_count_" in learnt:
        _check_pairs(learnt["pair_count_"], learnt["class_count_"])


def _check_rows(learnt: Mapping[str, Any], n_values: list[int]) -> None:
    """Check the distinct rows that a network has learnt."""
    rows = learnt["rows_"]
    array(rows, "rows_", (len(learnt["row_count_"]), len(n_values)), "i", least=-1)
    fits = bool((rows < np.array(n_values)).all() and (rows[:, -1] >= 0).all())
    require(fits, "rows_: out of range")


def _check_arrows(arrows: Any, n: int, structure: Any) -> None:
    """Check that a graph has no cycle, and is the given one; else the class has no parents."""
    array(arrows, "arrows_", (n, n), "u", 1, most=1)
    parents = [np.flatnonzero(column).tolist() for column in arrows.T]
    if structure is None:
        require(not parents[-1], "arrows_: the class has parents")
    else:
        require([sorted(nodes) for nodes in structure] == parents, "structure: not the arrows_")
    left = np.ones(n, np.bool_)
    while left.any():
        free = left & ~arrows[left].any(axis=0)
        require(bool(free.any()), "arrows_: a cycle")
        left &= ~free


def _check_pairs(pairs: Any, class_count: Any) -> None:
    """Check the numbers of documents that have both of two events."""
    alone = np.diagonal(pairs, axis1=1, axis2=2)
    either = alone[:, :, None] + alone[:, None, :] - pairs
    fits = (pairs <= alone[:, :, None]).all() and (pairs <= alone[:, None, :]).all()
    require(bool(fits and (either <= class_count[:, None, None]).all()), "pair_count_: impossible")
