"""What the state of a part of a training must be.

Secret: what putting parts together relies on.
"""

import numpy as np

from nbspam.store.contents.tokens import check_counts, check_settings
from nbspam.store.contents.values import MOST, are_names, array, is_whole, require
from nbspam.store.format.modelfile import State

_ANY = 1 << 64  # above all numbers of 64 bits
_MOST_ITEMS = 1 << 40


def check_part(state: State) -> None:
    """Raise ValueError unless a state can be that of a part of a training."""
    classes = state["classes"]
    require(classes == [] or (are_names(classes) and classes == sorted(classes)), "classes")
    prior = state["settings"]["class_prior"]
    check_settings(state["settings"], 0 if type(prior) is str else len(prior))
    check_counts(state, len(classes))
    keys, offsets = state["keys"], state["text_offsets"]
    require(bool((keys[1:] > keys[:-1]).all()), "keys: not ascending")
    require(bool((offsets[1:] >= offsets[:-1]).all()), "text_offsets: not ascending")
    number, of, n_items = state["number"], state["of"], state["items"]
    require(is_whole(n_items, 0, _MOST_ITEMS), "items")
    require(is_whole(of, 1, _MOST_ITEMS) and is_whole(number, 1, of), "number")
    require(is_whole(state["checksum"], 0, (1 << 32) - 1), "checksum")
    array(state["first"], "first", (len(keys),), "u", most=max(n_items - 1, 0))
    digest, position = state["digest"], state["position"]
    array(digest, "digest", (None,), "u", 8, most=_ANY)
    array(position, "position", (len(digest),), "u", most=n_items - 1)
    require(bool((position[1:] > position[:-1]).all()), "position: not ascending")
    require(bool((position % of == number - 1).all()), "position: not of this part")
    array(state["label"], "label", (len(digest),), "u", most=len(classes) - 1)
    array(state["told"], "told", (len(digest),), "u", 1, most=1)
    column, ends = state["column"], state["document_offsets"]
    array(column, "column", (None,), "u", most=len(keys) - 1)
    array(ends, "document_offsets", (len(digest) + 1,), "u", most=len(column))
    rising = bool((ends[1:] >= ends[:-1]).all())
    require(rising and int(ends[0]) == 0 and int(ends[-1]) == len(column), "document_offsets")
    if state["times"] is not None:
        array(state["times"], "times", column.shape, "u", most=MOST)
    held = np.bincount(column, minlength=len(keys))
    require(bool((held == state["document_frequency"]).all()), "document_frequency")
