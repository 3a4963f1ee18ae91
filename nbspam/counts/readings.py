"""Messages one by one, as a living model learns them: class, digest and tokens.

Secret: how a batch of messages, which goes token by token, comes apart again.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Integers, Keys, Octets
from nbspam.settings import Settings
from nbspam.sources.items import Item
from nbspam.tokens.reading import read_to_learn
from nbspam.tokens.tokenizer import batches, gather_slices, tokenize
from nbspam.verdicts import Skipped


class Reading(NamedTuple):
    """What is learned of a message."""

    label: str
    digest: int
    keys: Keys  # (n_keys,) of its tokens, ascending
    counts: Integers  # (n_keys,) how often it has them
    groups: Octets  # (n_keys,)
    blob: Octets  # their texts, one behind the other
    lengths: Integers  # (n_keys,) of these, bytes


def read_chunk(settings: Settings, items: list[Item]) -> tuple[list[Reading], list[Skipped]]:
    """Return what is learned of one chunk of items: what a worker process does."""
    read, messages, digests, skipped = read_to_learn(items, settings)
    told = zip([str(item.label) for item in read], digests, strict=True)
    readings = []
    for group in batches(messages, settings.tokens):
        batch = tokenize(group, settings.tokens)
        blob, offsets = batch.texts()
        lengths = np.diff(offsets)
        # A batch goes token by token; here it is taken message by message.
        order = np.argsort(batch.documents, kind="stable")
        columns, counts = batch.columns[order], batch.counts[order]
        bounds = np.searchsorted(batch.documents[order], np.arange(batch.n_docs + 1)).tolist()
        for (start, end), (label, digest) in zip(pairwise(bounds), told, strict=False):
            of = columns[start:end]
            text = gather_slices(blob, offsets[:-1][of], lengths[of])
            tokens = batch.keys[of], counts[start:end], batch.groups[of], text, lengths[of]
            readings.append(Reading(label, digest, *tokens))
    return readings, skipped
