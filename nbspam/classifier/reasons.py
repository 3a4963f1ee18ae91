"""Reasons that a person can read: evidence of runs of characters, told by the words around them.

Runs overlap: `char:pri`, `char:riz` and `char:prize` are the same evidence as the word they stand
in.  The share of a run is divided among the places where a message has it, and there among the
characters that it covers; each word has the sum of its characters beside its own share.  So all
shares still add up to the score.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from nbspam.mail.headers import Field
from nbspam.mail.message import Message, by_header
from nbspam.settings import TokenSettings
from nbspam.tokens import definition
from nbspam.tokens.normalize import SPACELESS
from nbspam.verdicts import Evidence

_RUNS = definition.GROUPS[definition.group_of(definition.CHARACTERS)]
_SPACELESS = re.compile(f"{SPACELESS}{{3,}}")


def by_words(
    message: Message, settings: TokenSettings, evidence: tuple[Evidence, ...]
) -> tuple[Evidence, ...]:
    """Return the evidence of a message without runs of characters, the strongest first.

    A word that is no token of the model, and a stretch of several words without a blank, have no
    counts.  A run that is not found in the message keeps its own row.
    """
    shares = {each.token: each.contribution for each in evidence if each.group == _RUNS}
    if not shares:
        return evidence
    lines = [
        (field.origin, definition.folded_line(field.text).decode())
        for field in by_header(definition.normalized_fields(message, settings))
        if definition.has_characters(field.origin)
    ]
    n_places = Counter(run for _, line in lines for run, _, _ in _runs(line) if run in shares)
    rows = {each.token: each for each in evidence if each.token not in n_places}
    for origin, line in lines:
        nats = [0.0] * len(line)
        for run, start, end in _runs(line):
            if run in n_places:
                covered = _covered(line, start, end)
                for place in covered:
                    nats[place] += shares[run] / n_places[run] / len(covered)
        for token, start, end in _stretches(origin, line, nats, settings):
            if any(nats[start:end]):
                row = rows.get(token, Evidence(token, 0.0, _RUNS, ()))
                total = row.contribution + sum(nats[start:end])
                rows[token] = row._replace(contribution=total)
    return tuple(sorted(rows.values(), key=lambda each: -abs(each.contribution)))


def _runs(line: str) -> Iterator[tuple[str, int, int]]:
    """Yield the runs of a line as tokens, and where they are; see `definition.reference_runs`."""
    for start in range(len(line)):
        for end in range(start + 1, min(start + definition.MAX_RUN, len(line)) + 1):
            yield f"{definition.CHARACTERS}:{line[start:end]}", start, end


def _covered(line: str, start: int, end: int) -> list[int]:
    """Return the places of a run's characters other than blanks; of a blank, those beside it."""
    if line[start:end] == " ":
        start, end = max(start - 1, 0), end + 1
    return [place for place in range(start, min(end, len(line))) if line[place] != " "] or [start]


def _stretches(
    origin: str, line: str, nats: list[float], settings: TokenSettings
) -> Iterator[tuple[str, int, int]]:
    """Yield the words of a line, or other text between blanks, and where they are.

    Scripts without spaces are cut where the evidence changes its sign.
    """
    single = settings._replace(pairs=False, characters=False)
    for word in re.finditer(r"[^ ]+", line):
        start, end = word.span()
        if _SPACELESS.search(line, start, end):
            for _, alike in groupby(range(start, end), lambda place: nats[place] > 0):
                places = list(alike)
                text = line[places[0] : places[-1] + 1]
                yield str(definition.Token(origin, text.encode())), places[0], places[-1] + 1
            continue
        field = Field(origin, word[0].encode("utf-8", "replace"))
        found = [
            t for t in definition.reference_tokens(Message((field,)), single) if t.origin == origin
        ]
        token = found[0] if len(found) == 1 else definition.Token(*field)
        yield str(token), start, end
