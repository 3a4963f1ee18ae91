"""The outcome of learning: what was done with each message.

Secret: what becomes of a message that is known already.
"""

from dataclasses import dataclass, fields

from nbspam.counts.ledger import NOT_FILED, Filed
from nbspam.verdicts import Skipped


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done with the messages: how many were learned, moved, and so on."""

    learned: int = 0
    already_known: int = 0  # learned before, in the same class: nothing changed
    confirmed: int = 0  # learned before, in the same class, which a person has told now
    moved: int = 0  # learned before, in another class
    unlearned: int = 0
    unknown: int = 0  # to be un-learned, but never learned
    passed: int = 0  # not learned, because the policy did not need them
    skipped: tuple[Skipped, ...] = ()  # unreadable or without a label
    notes: tuple[str, ...] = ()  # for the model's owner

    def __add__(self, other: "Outcome") -> "Outcome":
        names = [field.name for field in fields(self)]
        return Outcome(**{name: getattr(self, name) + getattr(other, name) for name in names})


def outcome_of(before: Filed, after: Filed) -> Outcome:
    """Return what is done with a message that is in one place and is to be in another."""
    if after == NOT_FILED:
        return Outcome(unknown=1) if before == NOT_FILED else Outcome(unlearned=1)
    if before.label == after.label:
        is_new = after.told and not before.told
        return Outcome(confirmed=1) if is_new else Outcome(already_known=1)
    return Outcome(learned=1) if before == NOT_FILED else Outcome(moved=1)
