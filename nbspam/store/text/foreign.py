"""Texts that other filters write of their counts, and that cannot become a model here.

Secret: how to tell them by their first line, and what they do not hold.
"""

import re

from nbspam.errors import InputError

_HASHES = "which has hashes in place of words"
_OCCURRENCES = "which does not say in how many messages a word is"
_OTHERS = (
    (rb"v\t\d+\tdb_version", f"a backup of sa-learn, {_HASHES}"),
    (rb"[\d.]+ +\d+ +\d+ +\d+  non-token data", f"a dump of sa-learn, {_HASHES}"),
    (rb'\d+,\d+,\d+,"', f"an export of spamprobe, {_OCCURRENCES}"),
    (rb"[\d.]+ +\d+ +\d+  0x", f"a dump of spamprobe, {_OCCURRENCES}"),
)


def check_ours(first: bytes, name: str) -> None:
    """Raise InputError if a text's first line is that of another filter; name: the text."""
    for pattern, what in _OTHERS:
        if re.match(pattern, first):
            raise InputError(
                f"{name}: {what}; train from the mail: nbspam train --spam PATH --ham PATH"
            )
