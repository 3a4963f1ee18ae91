"""Evidence laid over a text: which words of a message spoke for which class.

The words of what a reader sees are found by the definition of a token, field by field.  Evidence
without a word in the text shown, such as the route of a message, is only in the sums.

Secret: how a token is found again in the text that it came from.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import groupby
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Floats
from nbspam.errors import InputError
from nbspam.evaluation.witness import KEPT_BYTES
from nbspam.mail.message import Message, by_header
from nbspam.mail.origins import Field
from nbspam.settings import Settings, TokenSettings
from nbspam.sources.items import Item
from nbspam.tokens.definition import BODY, Token, pair_origin, reference_tokens
from nbspam.tokens.reading import read_message
from nbspam.verdicts import Evidence

N_CHARACTERS = 2_000  # of a message that are shown, of its text and its head together
# The fields that are shown, in this order, by origin.
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
}
_SHORT = 200  # characters of a field that is not text
_LEVELS = (0.12, 0.3, 0.6)  # parts of the strongest word's evidence
_BLANKS = re.compile(r"[^\S\n]+")
_EMPTY_LINES = re.compile(r"\n\s*\n\s*")
_RUN = re.compile(r"\S{1,400}")


class Piece(NamedTuple):
    """A piece of text; level: above 0 it spoke for the first class of two, below 0 against."""

    text: str
    level: int  # -3 to 3
    nats: float | None = None  # what it adds, where a strong word occurs first


class Passage(NamedTuple):
    """A field of a message, in pieces."""

    title: str
    pieces: tuple[Piece, ...]


class Marked(NamedTuple):
    """A message whose words are marked, and what is left out."""

    subject: str
    passages: tuple[Passage, ...]
    n_left_out: int  # characters
    is_cut: bool  # only its beginning was kept
    n_tokens: int  # different ones in the text and the subject
    n_known: int  # of these, those that the model knows
    problem: str = ""  # why it cannot be shown


def marked(item: Item, settings: Settings, evidence: tuple[Evidence, ...]) -> Marked:
    """Return what a reader sees of an item, with marks; never raises."""
    try:
        data = item.read()
    except InputError as error:
        return Marked("", (), 0, False, 0, 0, str(error).removeprefix(f"{item.name}: "))
    is_cut = len(data) >= KEPT_BYTES
    message = read_message(item._replace(data=data[:KEPT_BYTES]), settings)
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
    words = {str(token) for token in _words(message, settings.tokens)}
    known = sum(word in nats for word in words)
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


def _words(message: Message, settings: TokenSettings) -> Iterator[Token]:
    """Yield the words of what a message's writer wrote."""
    of_text = [each for each in by_header(message.fields) if each.origin in ("body", "subject")]
    single = settings._replace(pairs=False, characters=False)
    yield from reference_tokens(Message(tuple(of_text), ()), single)


def _passage(
    origin: str, text: str, settings: TokenSettings, nats: Mapping[str, float], strongest: float
) -> Passage:
    """Return a text with its words marked."""
    levels = np.zeros(len(text), np.int64)
    sums = _weights(origin, text, settings, nats)
    for level in _LEVELS:
        levels += np.abs(sums) / strongest >= level
    levels *= np.sign(sums).astype(np.int64)
    pieces = []
    start, met = 0, set()
    for level, alike in groupby(levels.tolist()):
        end = start + len(list(alike))
        piece = text[start:end]
        is_first = abs(level) == len(_LEVELS) and piece.lower() not in met
        met.add(piece.lower())
        pieces.append(Piece(piece, level, float(sums[start]) if is_first else None))
        start = end
    return Passage(_SHOWN[origin], tuple(pieces))


def _weights(origin: str, text: str, settings: TokenSettings, nats: Mapping[str, float]) -> Floats:
    """Return what the words at each character of a text say, nats, (n_characters,)."""
    weights = np.zeros(len(text))
    single = settings._replace(pairs=False, characters=False)
    before: tuple[str, int, int] | None = None
    for run in _RUN.finditer(text):
        for word, start, end in _found(origin, run, single):
            for place in {origin, BODY if origin == "subject" else origin}:
                weights[start:end] += nats.get(str(Token(place, word.encode())), 0.0)
            if settings.pairs and before is not None:
                pair = str(Token(pair_origin(origin), f"{before[0]} {word}".encode()))
                weights[before[1] : end] += nats.get(pair, 0.0) / 2
            before = word, start, end
    return weights


def _found(
    origin: str, run: re.Match[str], settings: TokenSettings
) -> Iterator[tuple[str, int, int]]:
    """Yield the words in a run without blanks, and where they are.

    A word that is spelt otherwise than it is read, such as one in disguise, is the whole run.
    """
    field = Field(origin, run[0].encode("utf-8", "replace"))
    lower = run[0].lower()
    at = 0
    for token in reference_tokens(Message((field,), ()), settings):
        if token.origin != origin:  # an oddity of the spelling
            continue
        word = token.text.decode("utf-8", "replace")
        place = lower.find(word, at) if len(lower) == len(run[0]) else -1
        if place < 0:
            yield word, run.start(), run.end()
        else:
            yield word, run.start() + place, run.start() + place + len(word)
            at = place + 1
