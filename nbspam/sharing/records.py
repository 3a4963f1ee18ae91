"""Lessons as records of a shared log: a line of JSON, the body of a journal's record, a checksum.

Strangers may write to a log: a record is checked as data, and nothing in it is executed.
"""

import hashlib
import json
import struct
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nbspam import __version__
from nbspam.arrays import differences
from nbspam.counts.ledger import LabelChange, respelt
from nbspam.errors import SharedLogError
from nbspam.settings import Settings
from nbspam.store.fields import MAX_TOKEN
from nbspam.store.journal import decode_record
from nbspam.tokens.sparse import RIDER_MASK, Vocabulary, empty_vocabulary
from nbspam.tokens.tokenizer import groups_of

_MAGIC = b"nbspam lesson "
_CRC = struct.Struct("<I")
_MAX_HEAD = 2_000  # bytes
MAX_CLASS = 255  # characters: folders may have names of so many
_MAX_RECORD = 16 << 20  # bytes


class SharedLesson(NamedTuple):
    """A lesson of one host, with everything that another host needs to learn it."""

    origin: str  # of the host's outbox
    number: int  # in that outbox, ascending
    host: str
    user: str  # whose model learns; "": the site's
    settings: str  # `fingerprint` of the settings that its tokens were found with
    change: LabelChange  # with the texts of all of its tokens
    record: int = 0  # its number in the log, from 1


class ForeignRecordError(Exception):
    """A record is not a lesson, or is damaged; it is skipped."""


def fingerprint(settings: Settings) -> str:
    """Return a digest of the settings of a model, without its user's sent mail."""
    text = json.dumps(settings.to_dict(), sort_keys=True, default=list)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def spelt_out(changes: Sequence[LabelChange], known: Vocabulary) -> list[LabelChange]:
    """Return changes with the texts of all of their tokens; drops tokens without a text.

    known: the vocabulary of the model file, which has the texts that the changes have not.
    """
    found = []
    for change in respelt(changes, known, empty_vocabulary()):
        keys, spelt = change.document.tokens, change
        if len(change.new) < len(keys):
            has_text = np.isin(keys, change.new.keys)
            document = change.document.on(np.where(has_text, np.cumsum(has_text) - 1, -1))
            spelt = change._replace(document=document._replace(tokens=keys[has_text]))
        found.append(spelt)
    return found


def encode_lesson(head: tuple[str, int, str, str, str], body: bytes) -> bytes:
    """Return a lesson as a record.

    head: the fields of a SharedLesson before its change.  body: the change, as in a journal.
    """
    values = {"version": __version__, **dict(zip(SharedLesson._fields, head, strict=False))}
    data = _MAGIC + json.dumps(values).encode() + b"\n" + body
    return data + _CRC.pack(zlib.crc32(data))


def decode_lesson(record: bytes) -> SharedLesson:
    """Return the lesson in a record; raises ForeignRecordError.

    Raises SharedLogError for a lesson of another version of the program.
    """
    head, line_end, rest = record[:_MAX_HEAD].partition(b"\n")
    if not (record.startswith(_MAGIC) and line_end) or len(record) > _MAX_RECORD:
        raise ForeignRecordError("no lesson")
    (crc,) = _CRC.unpack(record[-_CRC.size :]) if len(rest) >= _CRC.size else (None,)
    if zlib.crc32(record[: -_CRC.size]) != crc:
        raise ForeignRecordError("its checksum is wrong")
    try:
        values: dict[str, Any] = json.loads(head[len(_MAGIC) :])
        version, number = values["version"], values["number"]
        origin, host, user, settings = (values[n] for n in ("origin", "host", "user", "settings"))
        texts = (version, origin, host, user, settings)
        if type(number) is not int or not all(isinstance(text, str) for text in texts):
            raise ValueError("values of another kind")
        if number >= 1 << 63 or not origin.isascii():
            raise ValueError("an origin or a number that no host has")
        if version != __version__:
            raise SharedLogError(
                f"host {host[:100]!r} shares lessons of nbspam {version[:20]}, and this is"
                f" {__version__}; let all hosts run one version"
            )
        change = decode_record(record[len(head) + 1 : -_CRC.size])
        _check(change)
    except (ValueError, LookupError, TypeError, RecursionError, struct.error) as error:
        raise ForeignRecordError(str(error)) from error
    return SharedLesson(origin, number, host, user, settings, change)


def _check(change: LabelChange) -> None:
    """Raise ValueError for a change that no host writes."""
    keys, new = change.document.tokens, change.new
    for name in (change.before, change.after):
        if name is not None and not 0 < len(name) <= MAX_CLASS:
            raise ValueError("a class has no name")
    if len(new) != len(keys):
        raise ValueError("a token has no text")
    if (keys[1:] <= keys[:-1]).any() or (keys & RIDER_MASK).any():
        raise ValueError("its keys are out of order, or not keys")
    if (groups_of(new.keys) != new.groups).any():
        raise ValueError("a token is of another group")
    if differences(new.offsets).max(initial=0) > MAX_TOKEN or (change.document.times() == 0).any():
        raise ValueError("a token is too long, or never occurs")
