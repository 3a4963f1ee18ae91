"""What the state of a model of tokens must be, and that of any model to begin with.

Secret: which checks are cheap enough for every start (`check`), and which only learning needs,
because nothing but learning reads what they look at (`check_memory`).
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nbspam.decision import HAM_AND_SPAM
from nbspam.mail.digest import OLDEST, are_versions
from nbspam.settings import MODELS, READINGS, STRIPPABLE, WEIGHTINGS
from nbspam.store.contents.values import (
    MOST,
    are_names,
    array,
    is_number,
    is_prior,
    is_whole,
    require,
)
from nbspam.store.format.modelfile import State
from nbspam.tokens.definition import GROUPS

_ANY = 1 << 64  # above all numbers of 64 bits
_LARGEST_DAY = 65_535
_Checks = Mapping[str, Callable[[Any], bool]]


def check(state: State) -> None:
    """Raise ValueError unless a state can be one that this program wrote.

    The contents of `memory` are left to `check_memory`.
    """
    kind = state.get("kind", "tokens")
    classes = state["classes"]
    require(are_names(classes) and classes == sorted(classes), "classes")
    if kind == "table":
        from nbspam.store.contents.columns import check_table

        check_table(state)
        return
    check_settings(state["settings"], len(classes))
    check_counts(state, len(classes))
    if kind == "features":
        from nbspam.store.contents.columns import check_model

        require(len(classes) > 1, "classes")
        levels = np.full(len(state["keys"]), 2)
        check_model(state["settings"]["model"], state, levels, len(classes))
    else:
        _check_fit(state, len(classes))
        if state.get("memory"):
            array(state["memory"]["label"], "memory: label", (None,), "u", most=len(classes) - 1)
        _check_cutoffs(state.get("cutoffs"))


def check_memory(state: State) -> None:
    """Raise ValueError unless a model of tokens can learn on from what it remembers.

    A model that remembers nothing must have its tokens in order.
    """
    keys, offsets = state["keys"], state["text_offsets"]
    require(bool((keys[1:] > keys[:-1]).all()), "keys: not ascending")
    require(bool((offsets[1:] >= offsets[:-1]).all()), "text_offsets: not ascending")
    if state.get("memory"):
        _check_memory(state["memory"], len(keys))


def _check_memory(memory: Mapping[str, Any], n_features: int) -> None:
    digest, sampled = memory["digest"], memory["sample_digest"]
    for name, numbers in ("digest", digest), ("sample_digest", sampled):
        array(numbers, f"memory: {name}", (None,), "u", 8, most=_ANY)
        require(bool((numbers[1:] > numbers[:-1]).all()), f"memory: {name}: not ascending")
    require(are_versions(memory.get("digest_versions", [OLDEST])), "memory: digest_versions")
    require("ledger" not in memory or memory["ledger"] is False, "memory: ledger")
    array(memory["label"], "memory: label", (len(digest),), "u")
    array(memory["day"], "memory: day", (len(digest),), "u", most=_LARGEST_DAY)
    told = memory.get("told", digest[:0])  # older files have none
    array(told, "memory: told", (None,), "u", most=len(digest) - 1)
    require(bool((told[1:] > told[:-1]).all()), "memory: told: not ascending")
    array(memory["last_seen"], "memory: last_seen", (n_features,), "u", most=_LARGEST_DAY)
    require(is_whole(memory["decayed"], 0, _LARGEST_DAY), "memory: decayed")
    require(is_whole(memory["sample_bits"], 0, 63), "memory: sample_bits")
    place = np.searchsorted(digest, sampled)
    known = np.append(digest, np.uint64(0))[place] == sampled
    require(bool(known.all() and (place < len(digest)).all()), "memory: sample_digest: unknown")
    offsets, columns = memory["sample_offsets"], memory["sample_column"]
    array(columns, "memory: sample_column", (None,), "u", most=n_features - 1)
    array(offsets, "memory: sample_offsets", (len(sampled) + 1,), "u", most=len(columns))
    require(
        bool((offsets[1:] >= offsets[:-1]).all())
        and int(offsets[0]) == 0
        and int(offsets[-1]) == len(columns),
        "memory: sample_offsets: not ascending",
    )
    if memory["sample_count"] is not None:
        array(memory["sample_count"], "memory: sample_count", columns.shape, "u", most=MOST)


# ---- settings ----


def check_settings(settings: Any, n_classes: int) -> None:
    """Raise ValueError unless these are settings that a model can be made with."""
    require(type(settings) is dict, "settings")
    for name, value in settings.items():
        require(name in _SETTINGS and _SETTINGS[name](value), f"settings: {name}")
    prior = settings["class_prior"]
    require(type(prior) is str or len(prior) == n_classes, "settings: class_prior")


def _is_tokens(value: Any) -> bool:
    return type(value) is dict and all(_TOKENS[name](own) for name, own in value.items())


def _is_flag(value: Any) -> bool:
    return type(value) is bool


def _is_length(value: Any) -> bool:
    return is_whole(value, 1, 1 << 30)


_TOKENS: _Checks = {
    "punctuation": lambda value: type(value) is str and value.isascii(),
    "min_length": _is_length,
    "max_length": _is_length,
    "pairs": _is_flag,
    "raw": _is_flag,
    "characters": _is_flag,
}
_SETTINGS: _Checks = {
    "tokens": _is_tokens,
    "reading": lambda value: value in READINGS,
    "weighting": lambda value: value in WEIGHTINGS,
    "model": lambda value: value in MODELS,
    "alpha": lambda value: value == "auto" or is_number(value),
    "class_prior": is_prior,
    "min_df": lambda value: is_whole(value, 1, 1 << 62),
    "max_features": lambda value: value is None or is_whole(value, 1, 1 << 62),
    "combine": _is_flag,
    "strip": lambda value: type(value) is list and all(part in STRIPPABLE for part in value),
    "parameters": lambda value: type(value) is dict,
    "columns": lambda value: (
        type(value) is dict
        and set(value) == {"text", "label"}
        and type(value["text"]) is list
        and all(type(name) is str for name in [*value["text"], value["label"] or ""])
    ),
}


# ---- counts, and how evidence adds up ----


def check_counts(state: State, n_classes: int) -> None:
    """Raise ValueError unless a state has tokens and their counts in each class."""
    keys, text, offsets = state["keys"], state["text"], state["text_offsets"]
    array(keys, "keys", (None,), "u", 8, most=_ANY)
    n_features = len(keys)
    array(text, "text", (None,), "u", 1, most=255)
    array(offsets, "text_offsets", (n_features + 1,), "iu", most=len(text))
    require(int(offsets[-1]) == len(text), "text_offsets: not as long as the text")
    array(state["group"], "group", (n_features,), "u", 1, most=len(GROUPS) - 1)
    array(state["class_count"], "class_count", (n_classes,), "f", 8)
    # Only a model that has just begun waits for its first ham or spam: `Classifier.lack`.
    has_all = bool((state["class_count"] > 0).all())
    require(has_all or state["classes"] == list(HAM_AND_SPAM), "class_count: an empty class")
    array(state["feature_count"], "feature_count", (n_features, n_classes), "uf")
    array(state["document_frequency"], "document_frequency", (n_features,), "iu")
    if "lacks" in state:  # only the model that has forgotten tokens has it
        require(is_whole(state["others_had"], 0, 1 << 62), "others_had")
        array(state["lacks"], "lacks", (n_features,), "iu", most=state["others_had"])


def _check_fit(state: State, n_classes: int) -> None:
    """Check how evidence adds up: combined, blended or summed."""
    n_features = len(state["keys"])
    if state["worth"] is not None:
        require(n_classes == 2, "worth: not two classes")
        array(state["worth"], "worth", (None,), "f", 8, least=-MOST)
        array(state["correction"], "correction", (n_features,), "f", 4, least=-MOST)
        return
    if state.get("blend") is not None:
        array(state["blend"], "blend", (None,), "f", 8)
        if "group_total" in state:
            array(state["group_total"], "group_total", (None, n_classes), "f", 8)
            array(state["group_size"], "group_size", (None,), "f", 8)
        return
    # The logarithm of 0 is -inf.
    array(state["intercept"], "intercept", (n_classes,), "f", least=-np.inf)
    array(state["weight"], "weight", (n_features, n_classes), "f", least=-np.inf)


def _check_cutoffs(cutoffs: Any) -> None:
    if cutoffs is None:
        return
    require(type(cutoffs) is dict and set(cutoffs) == set(_CUTOFFS), "cutoffs")
    for name, holds in _CUTOFFS.items():
        require(holds(cutoffs[name]), f"cutoffs: {name}")
    require(cutoffs["ham"] <= cutoffs["spam"], "cutoffs: ham above spam")


_CUTOFFS: _Checks = {
    "spam": lambda value: is_number(value, 0, 1),
    "ham": lambda value: is_number(value, 0, 1),
    "fp_cost": is_number,
    "unsure_cost": lambda value: value is None or is_number(value),
}
