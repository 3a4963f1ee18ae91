"""Bounds on what training holds in memory, and what a model then cannot know.

They are no settings: they change neither what a token is nor how much it counts.
"""

from typing import NamedTuple

from nbspam.errors import UsageError


class Bounds(NamedTuple):
    """How much of a stream of messages training remembers."""

    max_tokens: int | None = None  # the most frequent ones that are counted; None: all
    ledger: bool = True  # whether all messages are known, or only those of the sample


UNBOUNDED = Bounds()


def check_unbounded(bounds: Bounds, what: str) -> None:
    """Raise UsageError if there are bounds; what: that which has no use for them."""
    if bounds != UNBOUNDED:
        raise UsageError(
            f"--max-tokens, --no-ledger: {what} needs everything at once; leave them out"
        )
