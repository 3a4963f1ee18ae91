"""Single messages in a page: a verdict, the sums of its evidence, its text, and a guess at why.

Secret: how much of a message is shown, and how sums are rounded so that they add up.
"""

from math import isfinite
from typing import NamedTuple

from nbspam.evaluation.pages.guesses import answered, guesses
from nbspam.evaluation.pages.marks import Marked, marked
from nbspam.settings import FEATURES, Settings
from nbspam.sources.items import Item
from nbspam.verdicts import Explanation

N_ROWS = 8  # of evidence with a line each
N_GUESSES = 2
_KINDS = {
    "text": "words of the text",
    "subject": "words of the subject",
    "route": "sender, route and head",
    "web": "links and markup",
    "pairs": "pairs of words",
    "characters": "runs of characters",
    "hidden": "hidden words",
    "category": "categories",
    "number": "numbers",
}


class Row(NamedTuple):
    """A line of a sum: what it is, what it adds, and its kind of evidence."""

    name: str
    nats: float
    kind: str = ""


class Case(NamedTuple):
    """A message, its verdict and the reasons."""

    name: str
    answer: str
    probability: float
    truth: str | None  # None: not known
    towards: str  # marks and positive numbers speak for this class ...
    against: str  # ... and negative ones for this
    score: float
    rows: tuple[Row, ...]  # with the last one they add up to the score, as they are rounded
    kinds: tuple[Row, ...]  # the same sum, by kinds of evidence
    text: Marked | None
    guesses: tuple[str, ...]


def case_of(
    explanation: Explanation,
    item: Item | None,
    settings: Settings | None,
    truth: str | None = None,
    misfiled: float = 0.0,
    confused: tuple[int, int] | None = None,
) -> Case:
    """Return one message as a page shows it.

    item, settings: None for the row of a table.  misfiled, confused: see `Answered`.
    """
    text = None
    if item is not None and settings is not None:
        text = marked(item, settings, explanation.evidence)
    verdict = explanation.verdict
    said: tuple[str, ...] = ()
    if truth is not None and verdict.label in verdict.posterior and truth != verdict.label:
        knows_words = settings is not None and settings.model not in FEATURES
        found = answered(explanation, truth)._replace(
            text=text if knows_words else None,
            is_mail=settings is not None and settings.reading == "mail",
            misfiled=misfiled,
            confused=confused,
        )
        said = tuple(guess.text for guess in guesses(found)[:N_GUESSES])
    return Case(
        verdict.name,
        verdict.label,
        verdict.probability,
        truth,
        explanation.towards,
        explanation.against,
        explanation.score,
        _rows(explanation),
        _kinds(explanation),
        text,
        said,
    )


def unexplained(
    name: str,
    answer: str,
    probability: float,
    truth: str,
    item: Item | None,
    settings: Settings | None,
) -> Case:
    """Return a message of which no evidence was kept."""
    text = None if item is None or settings is None else marked(item, settings, ())
    return Case(name, answer, probability, truth, answer, truth, 0.0, (), (), text, ())


def _rows(explanation: Explanation) -> tuple[Row, ...]:
    """Return the strongest evidence, the rest and the constant."""
    strongest = explanation.strongest(N_ROWS)
    rest = explanation.evidence[len(strongest) :]
    rows = [Row(e.token, e.contribution, _KINDS[e.group]) for e in strongest]
    rows.append(Row("the constant, before any evidence", explanation.constant))
    if rest:
        what = f"{len(rest):,} more"
        rows.append(Row(what, sum(each.contribution for each in rest)))
    return _exact(rows, explanation.score)


def _kinds(explanation: Explanation) -> tuple[Row, ...]:
    """Return the sums of the kinds of evidence, the strongest first, and the constant."""
    sums: dict[str, list[float]] = {}
    for each in explanation.evidence:
        sums.setdefault(each.group, []).append(each.contribution)
    totals = [Row(_KINDS[group], sum(values)) for group, values in sums.items()]
    totals.sort(key=lambda row: -abs(row.nats))
    return _exact([*totals, Row("the constant", explanation.constant)], explanation.score)


def _exact(rows: list[Row], score: float) -> tuple[Row, ...]:
    """Return rows that add up to the score, all of them rounded to two digits.

    The last row takes what rounding leaves.
    """
    values = [row.nats for row in rows]
    if not all(map(isfinite, [*values, score])) or max(map(abs, values)) > 1e6:
        return tuple(rows)
    rounded = [round(value, 2) for value in values]
    rounded[-1] = round(round(score, 2) - sum(rounded[:-1]), 2)
    return tuple(row._replace(nats=value) for row, value in zip(rows, rounded, strict=True))
