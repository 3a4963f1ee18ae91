"""Single messages in a page: a verdict, its evidence, its text, and a guess at why it is wrong.

Evidence is laid over the text that a reader sees: the definition of a token finds the words
again, field by field.  Evidence without a word there, such as the route of a message, is only in
the sums, which are rounded so that they add up.  Guesses come from signs in the evidence.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import groupby
from math import isfinite
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Floats
from nbspam.errors import InputError
from nbspam.evaluation.witness import KEPT_BYTES
from nbspam.mail.headers import Field
from nbspam.mail.message import Message, by_header
from nbspam.printing import amount_text
from nbspam.settings import FEATURES, Settings, TokenSettings
from nbspam.sources.items import Item
from nbspam.tokens.definition import BODY, Token, pair_origin, reference_tokens
from nbspam.tokens.items_to_messages import whole_message
from nbspam.verdicts import Evidence, Explanation

# --- words of a text, marked by the class that they spoke for -----------------------------

N_CHARACTERS = 2_000  # of a message that are shown, of its text and its head together
# The titles of the fields that are shown, in this order, by origin.
_SHOWN = {
    "subject": "Subject",
    "from": "From",
    "reply-to": "Reply to",
    "to": "To",
    "date": "Date",
    "body": "Text",
    "hidden": "Not visible to readers",
    "alt": "In place of pictures",
    "nested": "In an attached message",
    "filename": "Files",
    "attached": "In attached files",
}
_SHORT = 200  # characters of a field that is not text
_LEVELS = (0.12, 0.3, 0.6)  # parts of the strongest word's evidence
_BLANKS = re.compile(r"[^\S\n]+")
_EMPTY_LINES = re.compile(r"\n\s*\n\s*")
_RUN = re.compile(r"\S{1,400}")
# Mail programs show none of these within a line, and none changes how other text is shown.
_UNSEEN = dict.fromkeys(map(ord, "\u00ad\u200b\ufeff"))


class Piece(NamedTuple):
    """A piece of text; level: above 0 it spoke for the first class of two, below 0 against."""

    text: str
    level: int  # -3 to 3
    nats: float | None = None  # its share of the score, where a strong word occurs first


class Passage(NamedTuple):
    """A field of a message, in pieces."""

    title: str
    pieces: tuple[Piece, ...]


class Marked(NamedTuple):
    """A message whose words are marked, and how much is left out."""

    subject: str
    passages: tuple[Passage, ...]
    n_left_out: int  # characters
    is_cut: bool  # only its beginning was kept
    n_tokens: int  # different ones in the text and the subject
    n_known: int  # different ones that the model knows
    problem: str = ""  # why it cannot be shown


def marked(item: Item, settings: Settings, evidence: tuple[Evidence, ...]) -> Marked:
    """Return the visible text of an item, with marks; never raises."""
    try:
        data = item.read()
    except InputError as error:
        return Marked("", (), 0, False, 0, 0, str(error).removeprefix(f"{item.name}: "))
    is_cut = len(data) >= KEPT_BYTES
    message = whole_message(item._replace(data=data[:KEPT_BYTES]), settings)
    nats = {each.token: each.contribution for each in evidence}
    strongest = max(map(abs, nats.values()), default=0.0) or 1.0
    mark = partial(_passage, settings=settings.tokens, nats=nats, strongest=strongest)
    passages: list[Passage] = []
    left_out, room, subject = 0, N_CHARACTERS, ""
    for origin, text in _fields(message):
        subject = subject or (text if origin == "subject" else "")
        limit = min(room, N_CHARACTERS if origin == "body" else _SHORT)
        passages.append(mark(origin, text[:limit]))
        left_out += max(len(text) - limit, 0)
        room -= min(len(text), limit)
    of_text = tuple(
        each for each in by_header(message.fields) if each.origin in ("body", "subject")
    )
    single = settings.tokens._replace(pairs=False, characters=False)
    words = set(map(str, reference_tokens(Message(of_text), single)))
    known = len(words & {each.token for each in evidence if each.counts})
    shown = tuple(passage for passage in passages if passage.pieces)
    return Marked(subject, shown, left_out, is_cut, len(words), known)


def _fields(message: Message) -> Iterator[tuple[str, str]]:
    """Yield the origins and texts of the fields that a reader is shown, in the order shown.

    Words of the subject count as words of the text, too, but are shown once.
    """
    found: dict[str, list[str]] = {origin: [] for origin in _SHOWN}
    for origin, data in by_header(message.fields):
        if origin in found:
            text = _BLANKS.sub(" ", data.decode("utf-8", "replace"))
            text = _EMPTY_LINES.sub("\n\n", text).strip()
            if text and not (origin == BODY and text in found["subject"] and not found[BODY]):
                found[origin].append(text)
    for origin, several in found.items():
        if several:
            yield origin, "\n".join(several)


def _passage(
    origin: str, text: str, settings: TokenSettings, nats: Mapping[str, float], strongest: float
) -> Passage:
    """Return a text with its words marked."""
    levels = np.zeros(len(text), np.int64)
    with np.errstate(invalid="ignore"):
        # Infinite evidence for both classes, NaN, speaks for neither.
        sums = np.nan_to_num(_weights(origin, text, settings, nats), posinf=np.inf, neginf=-np.inf)
    for level in _LEVELS:
        levels += np.abs(sums) >= level * strongest
    levels *= np.sign(sums).astype(np.int64)
    pieces = []
    start, met = 0, set()
    for level, alike in groupby(levels.tolist()):
        end = start + len(list(alike))
        piece = text[start:end]
        is_first = abs(level) == len(_LEVELS) and piece.lower() not in met
        met.add(piece.lower())
        first = float(sums[start]) if is_first else None
        pieces.append(Piece(piece.translate(_UNSEEN), level, first))
        start = end
    return Passage(_SHOWN[origin], tuple(pieces))


def _weights(origin: str, text: str, settings: TokenSettings, nats: Mapping[str, float]) -> Floats:
    """Return the evidence of the words at each character of a text, nats, (n_characters,)."""
    weights = np.zeros(len(text))
    single = settings._replace(pairs=False, characters=False)
    before: tuple[str, int, int] | None = None
    for run in _RUN.finditer(text):
        for word, start, end in _words_in(run, origin, single):
            for place in {origin, BODY if origin == "subject" else origin}:
                weights[start:end] += nats.get(str(Token(place, word.encode())), 0.0)
            if settings.pairs and before is not None:
                pair = str(Token(pair_origin(origin), f"{before[0]} {word}".encode()))
                weights[before[1] : end] += nats.get(pair, 0.0) / 2
            before = word, start, end
    return weights


def _words_in(
    run: re.Match[str], origin: str, settings: TokenSettings
) -> Iterator[tuple[str, int, int]]:
    """Yield the words in a run without blanks, and where they are.

    A word that is spelt otherwise than it is read, such as one in disguise, is the whole run.
    """
    field = Field(origin, run[0].encode("utf-8", "replace"))
    lower = run[0].lower()
    at = 0
    for token in reference_tokens(Message((field,)), settings):
        if token.origin != origin:  # an oddity of the spelling
            continue
        word = token.text.decode("utf-8", "replace")
        place = lower.find(word, at) if len(lower) == len(run[0]) else -1
        if place < 0:
            yield word, run.start(), run.end()
        else:
            yield word, run.start() + place, run.start() + place + len(word)
            at = place + 1


# --- guesses at why an answer is wrong ----------------------------------------------------
# Signs are more frequent in wrong answers (E-182).  A sign looks at the answer and its evidence
# alone, so that it can be measured on right answers too; only the first guess knows what the
# answers to all other messages say of the label.

_FEW_WORDS = 12  # in a message that is too short
_UNKNOWN = 0.5  # share of words that are many to be new
_CLOSE = 0.9  # probability below which an answer was a close call
_MIXED = 2 / 3  # evidence against the answer, as a share of the evidence for it
_DECIDING = 3  # pieces of evidence at most that are few


class Answered(NamedTuple):
    """An answer for one class, against another that may be the right one."""

    answer: str
    other: str
    probability: float  # of the answer
    score: float  # log-odds of the answer against the other class, nats
    evidence: tuple[Evidence, ...]  # positive numbers speak for the answer
    text: Marked | None = None
    is_mail: bool = True  # not a text, which is often short
    misfiled: float = 0.0  # how probably its label is wrong
    confused: tuple[int, int] | None = None  # how many of the other class got this answer, of all

    def sum_of(self, *groups: str) -> float:
        """Return the sum of these kinds of evidence for the answer."""
        return sum(each.contribution for each in self.evidence if each.group in groups)


def answered(explanation: Explanation, other: str) -> Answered:
    """Return an explained answer; other: the class it is held against.

    An explanation of two other classes says nothing of this answer.
    """
    verdict = explanation.verdict
    pair = verdict.label, other
    towards, against = explanation.towards, explanation.against
    sign = {(towards, against): 1, (against, towards): -1}.get(pair, 0)
    evidence = tuple(
        each._replace(contribution=sign * each.contribution) for each in explanation.evidence
    )
    score = sign * explanation.score
    return Answered(*pair, verdict.probability, score, evidence if sign else ())


def guesses(found: Answered) -> list[str]:
    """Return guesses at why an answer is wrong, the likeliest first."""
    certain = [*_of_label(found), *_of_text(found), *_of_evidence(found)]
    if certain:
        return certain
    if found.probability < _CLOSE:
        return [f"A close call: the answer had a probability of only {found.probability:.2f}."]
    whole = sum(abs(each.contribution) for each in found.evidence)
    if not isfinite(whole) or not whole:
        return ["Nothing stands out."]
    own = sum(100 * max(each.contribution, 0.0) for each in found.evidence)
    return [f"Nothing stands out: {own / whole:.0f} % of its evidence speaks for {found.answer}."]


def _of_label(found: Answered) -> Iterator[str]:
    """Yield guesses from the answers to other messages."""
    if found.misfiled > 0.5:
        said = f"All the others contradict its label ({100 * found.misfiled:.0f} % sure)."
        yield f"Filed wrongly? {said}"
    if found.confused is not None:
        part, whole = found.confused
        said = f"{part:,} of {whole:,} {found.other} were called {found.answer}."
        yield f"Two classes that are often confused: {said}"


def _of_text(found: Answered) -> Iterator[str]:
    """Yield guesses from the text: it is short, or most words are new."""
    text = found.text
    if text is None or text.problem:
        return
    unknown = text.n_tokens - text.n_known
    if found.is_mail and text.n_tokens < _FEW_WORDS:
        yield f"Too short: it has only {amount_text(text.n_tokens, 'different words')}."
    elif unknown > _UNKNOWN * text.n_tokens and not text.is_cut:
        yield f"Words never seen before: {unknown:,} of its {text.n_tokens:,} different words."


def _of_evidence(found: Answered) -> Iterator[str]:
    """Yield guesses from the evidence: some part of it decided for the wrong class."""
    if not found.evidence:
        return
    other = found.other
    likelier = f"{other} would have been likelier than {found.answer}"
    if found.score < 0:
        said = f"{other} was likelier than {found.answer}, but not by as much as the costs demand."
        yield f"The cutoff decided: {said}"
        return
    if found.score < found.sum_of("hidden"):
        yield f"Hidden words: without what readers do not see, {likelier}."
    if found.score < found.sum_of("route"):
        yield f"A forged or an unusual head? Without sender and route, {likelier}."
    own = sum(max(each.contribution, 0.0) for each in found.evidence)
    opposed = own - sum(each.contribution for each in found.evidence)
    if opposed > _MIXED * own:
        said = f"{own:.1f} nats for {found.answer}, {opposed:.1f} for {other}"
        decided = "; the constant decided" if opposed >= own else ""
        yield f"Mixed evidence: {said}{decided}."
    few = _deciding(found)
    if few:
        named = few[0] if len(few) == 1 else f"{', '.join(few[:-1])} and {few[-1]}"
        yield f"It hangs on little: without {named}, {likelier}."


def _deciding(found: Answered) -> list[str]:
    """Return the fewest tokens that turn the answer when they are left out; none if too many."""
    left = found.score
    names = []
    for each in sorted(found.evidence, key=lambda each: -each.contribution)[:_DECIDING]:
        left -= each.contribution
        names.append(each.token)
        if left < 0:
            return names
    return []


# --- a message as a page shows it ---------------------------------------------------------

N_ROWS = 8  # of evidence with a line each
N_GUESSES = 2
_GROUP_NAMES = {
    "text": "words of the text",
    "subject": "words of the subject",
    "route": "sender, route and head",
    "web": "links and markup",
    "pairs": "pairs of words",
    "characters": "runs of characters",
    "hidden": "hidden words",
    "people": "what is known of the sender",
    "attached": "attached files",
    "signs": "signs such as !",
    "category": "categories",
    "number": "numbers",
}


class EvidenceRow(NamedTuple):
    """A line of a sum: its name, its share of the score, and its kind of evidence."""

    name: str
    nats: float
    kind: str = ""


class ExplainedCase(NamedTuple):
    """A message, its verdict and the reasons."""

    name: str
    answer: str
    probability: float
    truth: str | None  # None: not known
    towards: str  # marks and positive numbers speak for this class ...
    against: str  # ... and negative ones for this
    score: float
    rows: tuple[EvidenceRow, ...]  # as they are rounded, they add up to the score
    kinds: tuple[EvidenceRow, ...]  # the same sum, by kinds of evidence
    text: Marked | None
    guesses: tuple[str, ...]


def case_of(
    explanation: Explanation,
    item: Item | None,
    settings: Settings | None,
    truth: str | None = None,
    misfiled: float = 0.0,
    confused: tuple[int, int] | None = None,
) -> ExplainedCase:
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
        said = tuple(guesses(found)[:N_GUESSES])
    return ExplainedCase(
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
) -> ExplainedCase:
    """Return a message of which no evidence was kept."""
    text = None if item is None or settings is None else marked(item, settings, ())
    return ExplainedCase(name, answer, probability, truth, answer, truth, 0.0, (), (), text, ())


def _rows(explanation: Explanation) -> tuple[EvidenceRow, ...]:
    """Return the strongest evidence, the rest and the constant."""
    strongest = explanation.strongest(N_ROWS)
    rest = explanation.evidence[len(strongest) :]
    rows = [EvidenceRow(e.token, e.contribution, _GROUP_NAMES[e.group]) for e in strongest]
    if rest:
        rows.append(EvidenceRow(f"{len(rest):,} more", sum(e.contribution for e in rest)))
    rows.append(EvidenceRow("the constant, before any evidence", explanation.constant))
    return _exact(rows, explanation.score)


def _kinds(explanation: Explanation) -> tuple[EvidenceRow, ...]:
    """Return the sums of the kinds of evidence, the strongest first, and the constant."""
    sums: dict[str, list[float]] = {}
    for each in explanation.tokens or explanation.evidence:
        sums.setdefault(each.group, []).append(each.contribution)
    totals = [EvidenceRow(_GROUP_NAMES[group], sum(values)) for group, values in sums.items()]
    totals.sort(key=lambda row: -abs(row.nats))
    return _exact([*totals, EvidenceRow("the constant", explanation.constant)], explanation.score)


def _exact(rows: list[EvidenceRow], score: float) -> tuple[EvidenceRow, ...]:
    """Return rows that add up to the score, all of them rounded to two digits.

    The row before the constant, which is last, takes the remainder of rounding.
    """
    values = [row.nats for row in rows]
    if not all(map(isfinite, [*values, score])) or max(map(abs, values)) > 1e6:
        return tuple(rows)
    rounded = [round(value, 2) for value in values]
    place = max(len(rows) - 2, 0)
    rounded[place] = round(rounded[place] + round(score, 2) - sum(rounded), 2)
    return tuple(row._replace(nats=value) for row, value in zip(rows, rounded, strict=True))
