"""The contents of a model file: tables of rules for each value and array, and their checks.

The shape of an array is written with a letter for each axis: T tokens, C classes, D messages that
are remembered, S messages and E entries of a sample or of a part.  A letter stands for the same
number everywhere in a file.  What every start checks is cheap (`check_state`); what only learning
reads is checked before learning (`check_memory`).
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import LAST_DAY, Integers
from nbspam.counts.ledger import POSSIBLE_BITS, LogProgress
from nbspam.decision import HAM_AND_SPAM
from nbspam.models import COLUMN_MODELS, ESTIMATORS, TOKEN_MODELS
from nbspam.settings import MODELS, MOST, READINGS, STRIPPABLE, WEIGHTINGS
from nbspam.store.modelfile import State
from nbspam.tokens.definition import GROUPS

MOST_COUNTED = 1e18  # of counts, and of numbers that are multiplied by counts
_ANY = 1 << 64  # above all numbers of 64 bits
MAX_TOKEN = 1 << 16  # bytes; no real token is nearly as long
_MOST_ITEMS = 1 << 40
_FAR = 1e150  # of means: their squares must not overflow
ASCENDING, RISING, OFFSETS = "ascending", "rising", "offsets"
SHAPES, RANGES, ORDERINGS = 1, 2, 3  # how closely arrays are looked at

Sizes = dict[str, int]  # the numbers that letters stand for
_Check = Callable[[Any], bool]


class ArrayRule(NamedTuple):
    """The rule that an array must keep.  Bounds are numbers, or sizes such as "T-1"."""

    kinds: str  # of numbers (`_TYPES`), or one of numpy's types
    shape: str  # sizes such as "T C" or "T+1"; a letter that is not known yet may be any number
    most: float | str = MOST_COUNTED
    least: float = 0
    order: str = ""  # ASCENDING; RISING: never falling; OFFSETS: so, from 0 to the greatest
    or_none: bool = False


_Rules = Mapping[str, ArrayRule | _Check]


# ---- checks of single values ----


def require(holds: bool, what: str) -> None:
    """Raise ValueError with what does not fit, unless it does."""
    if not holds:
        raise ValueError(what)


def is_number_between(value: Any, least: float = 0.0, most: float = MOST_COUNTED) -> bool:
    """Return whether a value is a number in a range, both ends included."""
    return type(value) in {int, float} and least <= value <= most


def _is_share(value: Any) -> bool:
    return is_number_between(value, 0, 1)


def are_names(values: Any) -> bool:
    """Return whether a value is a list of different texts."""
    are_texts = type(values) is list and len(values) > 0 and all(map(_is_text, values))
    return are_texts and len(set(values)) == len(values)


def _of_type(kind: type) -> _Check:
    return lambda value: type(value) is kind


_is_text, _is_flag, _is_dict = _of_type(str), _of_type(bool), _of_type(dict)


def _is_alpha(value: Any) -> bool:
    return value == "auto" or is_number_between(value)


def _is_prior(value: Any) -> bool:
    if type(value) is str:
        return value in {"estimated", "uniform", "smoothed"}
    are_shares = _list_of(_is_share)(value)
    return are_shares and abs(sum(value) - 1) < 1e-6


def _one_of(*allowed: str) -> _Check:
    return lambda value: type(value) is str and value in allowed


def _whole(least: int, most: int) -> _Check:
    return lambda value: type(value) is int and least <= value <= most


def _or_none(check: _Check) -> _Check:
    return lambda value: value is None or check(value)


def _list_of(check: _Check) -> _Check:
    return lambda value: type(value) is list and all(map(check, value))


# ---- checks of arrays ----

_TYPES = {  # by kinds of numbers
    "i": "i1 i2 i4 i8",
    "u": "u1 u2 u4 u8",
    "iu": "i1 i2 i4 i8 u1 u2 u4",  # u8 and signed numbers would make floats
    "f": "f4 f8",
    "uf": "u1 u2 u4 u8 f4 f8",
}


@cache
def _parsed(size: str) -> tuple[int, str, int]:
    match = re.fullmatch(r"(\d*)([A-Z])([+-]\d+)?", size)
    assert match, size
    return int(match[1] or 1), match[2], int(match[3] or 0)


def _size(size: float | str, sizes: Sizes) -> float:
    """Return the number that a size such as "2G+2" is."""
    if not isinstance(size, str):
        return size
    times, letter, more = _parsed(size)
    return times * sizes[letter] + more


def check_fields(
    values: Mapping[str, Any],
    rules: _Rules,
    sizes: Sizes,
    prefix: str = "",
    depth: int = ORDERINGS,
) -> None:
    """Raise ValueError or KeyError unless values obey rules.

    sizes: gets the letters that are new.  depth: SHAPES reads no numbers of arrays, RANGES no
    order.
    """
    for name, rule in rules.items():
        value, what = values[name], prefix + name
        if not isinstance(rule, ArrayRule):
            require(rule(value), what)
        elif not (rule.or_none and value is None):
            _check_shape(value, what, rule, sizes)
            if depth >= RANGES:
                _check_range(value, what, rule, sizes)
            if depth >= ORDERINGS:
                _check_order(value, what, rule)


def _check_shape(value: Any, what: str, rule: ArrayRule, sizes: Sizes) -> None:
    types = _TYPES.get(rule.kinds, rule.kinds)
    require(type(value) is np.ndarray and value.dtype.str[1:] in types, what)
    axes = rule.shape.split()
    fits = len(value.shape) == len(axes)
    for axis, n in zip(axes, value.shape, strict=False):
        fits = fits and n == _size(axis, {axis: n} | sizes)
    require(fits, f"{what}: of shape {value.shape}")
    sizes.update((axis, n) for axis, n in zip(axes, value.shape, strict=True) if len(axis) == 1)


def _check_range(value: Any, what: str, rule: ArrayRule, sizes: Sizes) -> None:
    most = _size(rule.most, sizes)
    if rule.order == OFFSETS:
        require(int(value[-1]) == most, f"{what}: ends at {value[-1]}, and not at {most}")
    is_natural = value.dtype.kind == "u" and rule.least <= 0
    if not value.size or (is_natural and np.iinfo(value.dtype).max <= most):
        return
    # The least or greatest of numbers with a NaN is NaN, which no comparison holds for.
    fits = is_natural or bool(value.min() >= rule.least)
    require(fits and bool(value.max() <= most), f"{what}: out of range")


def _check_order(value: Any, what: str, rule: ArrayRule) -> None:
    if rule.order == ASCENDING:
        require(bool((value[1:] > value[:-1]).all()), f"{what}: not ascending")
    elif rule.order:
        begins = rule.order == RISING or int(value[0]) == 0
        require(begins and bool((value[1:] >= value[:-1]).all()), f"{what}: not rising")


# ---- the tables: models of tokens, and parts of a training ----

TOKEN_FIELDS: _Rules = {
    "keys": ArrayRule("u8", "T", _ANY, order=ASCENDING),
    "text": ArrayRule("u1", "B"),
    "text_offsets": ArrayRule("iu", "T+1", "B", order=OFFSETS),
    "group": ArrayRule("u1", "T", "G-1"),
    "class_count": ArrayRule("f8", "C"),
    "feature_count": ArrayRule("uf", "T C"),
    "document_frequency": ArrayRule("iu", "T"),
}
FORGOTTEN: _Rules = {  # of a model that has forgotten tokens
    "others_had": _whole(0, 1 << 62),
    "lacks": ArrayRule("iu", "T", "O"),
}
COMBINED: _Rules = {
    "worth": ArrayRule("f8", "G+1", least=-MOST_COUNTED),
    "correction": ArrayRule("f4", "T", least=-MOST_COUNTED),
    "usual": _is_share,
    "leaning": _is_share,
}
BLENDED: _Rules = {
    "blend": ArrayRule("f8", "2G+2"),
    "group_total": ArrayRule("f8", "G C"),
    "group_size": ArrayRule("f8", "G"),
}
SUMMED: _Rules = {  # the logarithm of 0 is -inf
    "log_prior": ArrayRule("f8", "C", 0, least=-np.inf),
    "intercept": ArrayRule("f", "C", least=-np.inf),
    "weight": ArrayRule("f", "T C", np.inf, least=-np.inf),
    "n_required": ArrayRule("f8", "C", "T"),
}
CUTOFFS: Mapping[str, _Check] = {
    "spam": _is_share,
    "ham": _is_share,
    "fp_cost": lambda value: is_number_between(value) and value > 0,
    "unsure_cost": _or_none(is_number_between),
}
MEMORY: dict[str, Any] = {
    "ledger": _is_flag,
    "digest": ArrayRule("u8", "D", _ANY, order=ASCENDING),
    "label": ArrayRule("u", "D", "C-1"),
    "day": ArrayRule("u", "D", LAST_DAY),
    "told": ArrayRule("u", "N", "D-1", order=ASCENDING),
    "last_seen": ArrayRule("u", "T", LAST_DAY),
    "decayed": _whole(0, LAST_DAY),
    "sample_bits": _whole(0, 63),
    "sample_digest": ArrayRule("u8", "S", _ANY, order=ASCENDING),
    "sample_column": ArrayRule("u", "E", "T-1"),
    "sample_offsets": ArrayRule("u", "S+1", "E", order=OFFSETS),
    "sample_count": ArrayRule("u", "E", least=1, or_none=True),
    "owed": _or_none(_is_dict),
    "shared": ArrayRule("u8", "L", _ANY),
}
OWED: _Rules = {
    "keys": ArrayRule("u8", "T", _ANY, order=ASCENDING),
    "feature_count": ArrayRule("f8", "T C", least=-MOST_COUNTED),
    "document_frequency": ArrayRule("i8", "T", least=-MOST_COUNTED),
}
PART_FIELDS: _Rules = {
    "items": _whole(0, _MOST_ITEMS),
    "of": _whole(1, _MOST_ITEMS),
    "number": _whole(1, _MOST_ITEMS),
    "checksum": _whole(0, (1 << 32) - 1),
    "first": ArrayRule("u", "T", "I-1"),
    "digest": ArrayRule("u8", "D", _ANY),
    "position": ArrayRule("u", "D", "I-1", order=ASCENDING),
    "label": ArrayRule("u", "D", "C-1"),
    "told": ArrayRule("u1", "D", 1),
    "column": ArrayRule("u", "E", "T-1"),
    "document_offsets": ArrayRule("u", "D+1", "E", order=OFFSETS),
    "times": ArrayRule("u", "E", least=1, or_none=True),
}
SENT_MAIL: _Rules = {
    "facts": ArrayRule("u8", "P", _ANY, order=RISING),
    "when": ArrayRule("u4", "P", _ANY),
    "sent": ArrayRule("u8", "P", _ANY),
}
SETTINGS: Mapping[str, _Check] = {
    "tokens": _is_dict,
    "reading": _one_of(*READINGS),
    "weighting": _one_of(*WEIGHTINGS),
    "model": _one_of(*MODELS),
    "alpha": _is_alpha,
    "class_prior": _is_prior,
    "min_df": _whole(1, MOST),
    "max_features": _or_none(_whole(1, MOST)),
    "attachments": _is_flag,
    "combine": _is_flag,
    "strip": _list_of(_one_of(*STRIPPABLE)),
    "authserv_id": _is_text,
    "parameters": _is_dict,
    "columns": lambda value: (
        _is_dict(value)
        and set(value) == {"text", "label"}
        and _list_of(_is_text)(value["text"])
        and _or_none(_is_text)(value["label"])
    ),
}
TOKENIZER: Mapping[str, _Check] = {
    "punctuation": lambda value: _is_text(value) and value.isascii(),
    "min_length": _whole(1, MAX_TOKEN),
    "max_length": _whole(1, MAX_TOKEN // 3),
    "pairs": _is_flag,
    "raw": _is_flag,
    "characters": _is_flag,
}


def check_state(state: State) -> None:
    """Raise ValueError unless a state can be one that this program wrote.

    The contents of `memory` are left to `check_memory`.
    """
    classes = state["classes"]
    require(are_names(classes) and classes == sorted(classes), "classes")
    if state["kind"] == "table":
        _check_table(state)
        return
    check_settings(state["settings"], len(classes))
    sizes = _check_counts(state, RANGES)
    if state["kind"] == "features":
        require(len(classes) > 1, "classes")
        levels = np.full(len(state["keys"]), 2)
        _check_model(state["settings"]["model"], state, levels, len(classes))
        return
    require(state["settings"]["model"] in TOKEN_MODELS, "settings: model")
    _check_fit(state, sizes)
    if memory := state["memory"]:
        check_fields(memory, MEMORY, sizes, "memory: ", SHAPES)
        if memory["owed"] is not None:
            _check_all(memory["owed"], OWED, {"C": sizes["C"]}, "memory: owed")
        require(memory["shared"][-1] in POSSIBLE_BITS, "memory: shared")
        for name in "label", "told", "sample_offsets":
            _check_range(memory[name], f"memory: {name}", MEMORY[name], sizes)
    if state["cutoffs"] is not None:
        check_cutoffs(state["cutoffs"])


def check_cutoffs(cutoffs: Any) -> None:
    """Raise ValueError unless these are the fields of cutoffs."""
    _check_all(cutoffs, CUTOFFS, {}, "cutoffs")
    require(cutoffs["ham"] <= cutoffs["spam"], "cutoffs: ham above spam")


def check_settings(settings: Any, n_classes: int) -> None:
    """Raise ValueError unless these are settings that a model can be made with."""
    _check_known(settings, SETTINGS, "settings")
    _check_known(settings["tokens"], TOKENIZER, "settings: tokens")
    prior = settings["class_prior"]
    require(type(prior) is str or len(prior) == n_classes, "settings: class_prior")
    own = (settings.get("parameters") or {}).get("class_dirichlet")
    require(own is None or len(own) == n_classes, "parameters: class_dirichlet")


def _check_all(values: Any, rules: _Rules, sizes: Sizes, what: str) -> None:
    """Raise ValueError unless values are a dict of all the names of rules, and obey them."""
    require(_is_dict(values) and set(values) == set(rules), what)
    check_fields(values, rules, sizes, f"{what}: ")


def _check_known(values: Any, checks: Mapping[str, _Check], what: str) -> None:
    """Raise ValueError unless values are a dict of some of the names that have checks."""
    require(_is_dict(values), what)
    for name, value in values.items():
        is_good = name in checks and checks[name](value)
        require(is_good, f"{what}: {name}: {value!r:.40}")


def _check_counts(state: State, depth: int) -> Sizes:
    """Return the sizes of a state that has tokens and their counts in each class."""
    if "sent_mail" in state:  # every look-up relies on its order
        _check_all(state["sent_mail"], SENT_MAIL, {}, "sent_mail")
    sizes = {"C": len(state["classes"]), "G": len(GROUPS), "L": len(LogProgress._fields)}
    check_fields(state, TOKEN_FIELDS, sizes, depth=depth)
    # Only a model that has just begun waits for its first ham or spam: `Classifier.lack`.
    has_all = bool((state["class_count"] > 0).all())
    require(has_all or state["classes"] == list(HAM_AND_SPAM), "class_count: an empty class")
    if "lacks" in state:
        check_fields(state, FORGOTTEN, sizes | {"O": state["others_had"]})
    return sizes


def _check_fit(state: State, sizes: Sizes) -> None:
    """Check how evidence adds up: combined, blended or summed."""
    if state["worth"] is not None:
        require(sizes["C"] == 2, "worth: not two classes")
        check_fields(state, COMBINED, sizes)
    elif state["blend"] is not None:
        check_fields(state, BLENDED, sizes)
        require(bool(state["blend"][-1] > 0), "blend: no tail")
    else:
        check_fields(state, SUMMED, sizes)


def check_memory(state: State) -> None:
    """Raise ValueError unless the memory of a model of tokens allows it to learn on.

    A model that remembers nothing must have its tokens in order.
    """
    sizes = _check_counts(state, ORDERINGS)
    memory = state["memory"]
    if not memory:
        return
    check_fields(memory, MEMORY, sizes, "memory: ")
    known = np.isin(memory["sample_digest"], memory["digest"])
    require(bool(known.all()), "memory: sample_digest: unknown")


def check_part(state: State) -> None:
    """Raise ValueError unless a state can be that of a part of a training."""
    classes = state["classes"]
    require(classes == [] or (are_names(classes) and classes == sorted(classes)), "classes")
    prior = state["settings"]["class_prior"]
    check_settings(state["settings"], 0 if type(prior) is str else len(prior))
    sizes = _check_counts(state, ORDERINGS)
    check_fields(state, PART_FIELDS, sizes | {"I": state["items"]})
    number, of = state["number"], state["of"]
    require(number <= of, "number")
    position = state["position"].astype(np.int64)
    require(bool((position % of == number - 1).all()), "position: not of this part")
    held = np.bincount(state["column"], minlength=sizes["T"])
    require(bool((held == state["document_frequency"]).all()), "document_frequency")


# ---- models of dependent columns: of a table, or of chosen tokens ----
#
# K columns, L values of all columns together, V events, N columns of numbers, R distinct rows.

LEARNT: _Rules = {
    "n_features_in_": _whole(1, 1 << 31),
    "parent_": _whole(0, 1 << 31),
    "levels_": ArrayRule("i8", "K"),
    "class_count_": ArrayRule("f8", "C"),
    "feature_count_": ArrayRule("f8", "C K"),
    "level_count_": ArrayRule("f8", "C L"),
    "pair_count_": ArrayRule("f8", "C V V"),
    "triple_count_": ArrayRule("f8", "C L L L"),
    "value_count_": ArrayRule("f8", "C N"),
    "mean_": ArrayRule("f8", "C N", _FAR, -_FAR),
    "deviation_": ArrayRule("f8", "C N", _FAR**2),
    "given_count_": ArrayRule("f8", "C L+1 N"),
    "given_mean_": ArrayRule("f8", "C L+1 N", _FAR, -_FAR),
    "given_deviation_": ArrayRule("f8", "C L+1 N", _FAR**2),
    "row_count_": ArrayRule("f8", "R"),
    "rows_": ArrayRule("i", "R K+1", least=-1),
    "arrows_": ArrayRule("u1", "K+1 K+1", 1),
    "parent_errors_": ArrayRule("f8", "K"),
    "parent_loss_": ArrayRule("f8", "K"),
}
_TOGETHER = (
    ("parent_errors_", "parent_loss_"),
    ("rows_", "row_count_"),
    ("given_count_", "given_mean_", "given_deviation_"),
)
PARAMETER_FIELDS: Mapping[str, _Check] = {
    "alpha": _is_alpha,
    "beta": _or_none(_list_of(is_number_between)),
    "class_dirichlet": _or_none(_list_of(is_number_between)),
    "class_prior": _is_prior,
    "class_parents": _is_flag,
    "climb": _or_none(_is_flag),
    "criterion": _one_of("bic", "aic", "mdl", "likelihood"),
    "ddof": _or_none(_whole(0, 1 << 31)),
    "dirichlet": _or_none(_list_of(_or_none(_list_of(is_number_between)))),
    "estimate": _one_of("mle", "map", "mean"),
    "levels": _or_none(_list_of(_whole(0, 1 << 31))),
    "max_parents": _or_none(_whole(1, 1 << 31)),
    "min_support": is_number_between,
    "norm": _is_flag,
    "order": _whole(1, 1 << 31),
    "parent": _or_none(_whole(0, 1 << 31)),
    "root": lambda root: root in (None, "all") or _whole(0, 1 << 31)(root),
    "start": _one_of("tree", "naive", "empty"),
    "structure": _or_none(_list_of(lambda nodes: type(nodes) is list)),
    "var_smoothing": is_number_between,
}
COLUMN_FIELDS: Mapping[str, _Check] = {
    "name": _is_text,
    "levels": _or_none(are_names),
    "cuts": _or_none(
        lambda cuts: (
            _list_of(lambda cut: is_number_between(cut, -1e308, 1e308))(cuts)
            and all(a < b for a, b in pairwise(cuts))
        )
    ),
    "is_count": _is_flag,
    "closed": _is_flag,
}
TABLE: _Rules = {
    "target": _is_text,
    "columns": lambda value: _list_of(_is_dict)(value) and len(value) > 0,
    "closed": _is_flag,
    "by_em": _is_flag,
    "model": _one_of(*ESTIMATORS),
}


def _check_table(state: State) -> None:
    check_fields(state, TABLE, {})
    n_values = np.array([_checked_column(column) for column in state["columns"]], np.int64)
    require(are_names([column["name"] for column in state["columns"]]), "columns: name")
    sizes = {"C": len(state["classes"]), "L": int(np.maximum(n_values, 1).sum())}
    check_fields(state, {"counts": ArrayRule("f8", "C L")}, sizes)
    _check_model(state["model"], state, n_values, sizes["C"])


def _checked_column(column: Mapping[str, Any]) -> int:
    """Return the number of values of a column, 0 for numbers; raises ValueError."""
    check_fields(column, COLUMN_FIELDS, {}, "columns: ")
    levels, cuts = column["levels"], column["cuts"]
    require(levels is None or cuts is None, "columns: both levels and cuts")
    if levels is not None:
        return len(levels)
    return 0 if cuts is None else len(cuts) + 1


def _check_model(name: str, state: State, n_values: Integers, n_classes: int) -> None:
    """Raise ValueError unless an estimator can have these parameters and have learnt this.

    n_values: (n_columns,) the number of values of each column, 0 for numbers.
    """
    parameters, learnt = state["parameters"], state["learnt"]
    _check_known(parameters, PARAMETER_FIELDS, "parameters")
    _check_known(learnt, dict.fromkeys(LEARNT, lambda value: True), "learnt")
    _check_parameters(parameters, n_values, n_classes)
    is_binary = (
        parameters.get("levels") is None
        and name in COLUMN_MODELS
        and name not in {"gaussian", "mixed"}
    )
    n_columns, total = len(n_values), int(n_values.sum())
    sizes = {
        "C": n_classes,
        "K": n_columns,
        "L": total,
        "V": n_columns if is_binary else total,
        "N": int((n_values == 0).sum()),
    }
    check_fields(learnt, {key: LEARNT[key] for key in LEARNT if key in learnt}, sizes)
    for names in _TOGETHER:
        require(len({key in learnt for key in names}) == 1, " or ".join(names))
    require(bool((learnt["class_count_"] > 0).any()), "class_count_")
    require(learnt.get("n_features_in_", n_columns) == n_columns, "n_features_in_")
    require(learnt.get("parent_", 0) < n_columns, "parent_")
    if "levels_" in learnt:
        require(bool((learnt["levels_"] == n_values).all()), "levels_")
    for count, deviation in (("value_count_", "deviation_"), ("given_count_", "given_deviation_")):
        if deviation in learnt:
            unseen = learnt[count] == 0
            require(not learnt[deviation][unseen].any(), f"{deviation}: of no values")
    if is_binary and "pair_count_" in learnt:
        _check_pairs(learnt["pair_count_"], learnt["class_count_"])
    if "rows_" in learnt:
        rows = learnt["rows_"]
        fits = bool((rows < np.append(n_values, n_classes)).all() and (rows[:, -1] >= 0).all())
        require(fits, "rows_: out of range")
    require(("arrows_" in learnt) == (name == "network"), "arrows_")
    if "arrows_" in learnt:
        _check_arrows(learnt["arrows_"], parameters)


def _check_parameters(parameters: Mapping[str, Any], n_values: Integers, n_classes: int) -> None:
    """Check the parameters that depend on the columns."""
    prior, levels = parameters.get("class_prior"), parameters.get("levels")
    require(type(prior) is not list or len(prior) == n_classes, "parameters: class_prior")
    require(levels is None or levels == n_values.tolist(), "parameters: levels")
    dirichlet, of_classes = (parameters.get(n) for n in ("dirichlet", "class_dirichlet"))
    require(of_classes is None or len(of_classes) == n_classes, "parameters: class_dirichlet")
    for name in ("parent", "root"):
        column = parameters.get(name)
        require(column in (None, "all") or column < len(n_values), f"parameters: {name}")
    if dirichlet is not None:
        sizes = [*n_values.tolist(), n_classes]
        fits = len(dirichlet) == len(sizes) and all(
            own is None or len(own) == n for own, n in zip(dirichlet, sizes, strict=True)
        )
        require(fits, "parameters: dirichlet")


def _check_arrows(arrows: Any, parameters: Mapping[str, Any]) -> None:
    """Check that a graph has no cycle, and is the one given; that the class may have parents."""
    parents = [np.flatnonzero(column).tolist() for column in arrows.T]
    structure, may_climb = parameters.get("structure"), parameters.get("climb")
    if structure is None:
        free = not parents[-1] or bool(parameters.get("class_parents"))
        require(free, "arrows_: the class has parents")
    elif not may_climb:
        require([sorted(nodes) for nodes in structure] == parents, "structure: not the arrows_")
    left = np.ones(len(arrows), np.bool_)
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
