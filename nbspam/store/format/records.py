"""The bytes of a journal: a header, one record for each change, and an end mark.

Every record begins with a mark, by which it is found again behind damage, and has a number, by
which a missing or misplaced one is noticed.  The end mark says how many records there are, so
that a file that was cut short is noticed too.  Checksums begin with that of the model, so that
the records of another journal are never taken for this one's.

Secret: these bytes, and what can be told from them after any damage.
"""

import struct
import zlib
from enum import Enum
from typing import NamedTuple

import numpy as np

from nbspam.counts.changes import Change
from nbspam.store.format.modelfile import Identity
from nbspam.tokens.definition import GROUPS
from nbspam.tokens.documents import Documents, offsets_of
from nbspam.tokens.vocabulary import Vocabulary

MAGIC = b"nbspam journal\0\0"
# Format 3 did not say what was told; format 2 had keys without kinds; format 1 had neither marks
# nor numbers nor an end mark.
FORMAT = 4
HEADER = struct.Struct("<16sIQII")  # magic, format, length and checksum of the model, CRC-32
_WORD = struct.Struct("<I")
# 0xf3 begins no UTF-8 text that continues like this, so that no text of a token looks like a mark.
_ANY_MARK = b"\xf3nbspam"
_MARK, _END_MARK = _ANY_MARK + b"+", _ANY_MARK + b"."
_RECORD = struct.Struct("<8sII")  # mark, number, length of the body; a CRC-32 follows the body
# Mark, number of records, length and checksum of the model file that took them in, CRC-32.
_END = struct.Struct("<8sIQII")
END_SIZE = _END.size
# Digest, day, lengths of two class names in bytes; the number of tokens, of counts (0: all
# counts are 1) and of new tokens; whether a person has told the class (not in formats below 4).
_CHANGE, _CHANGE_BEFORE_4 = struct.Struct("<QHiiIIIB"), struct.Struct("<QHiiIII")
_NO_NAME = -1  # as the length of a class name: there is no class

NOBODY = Identity(0, 0)  # the owner of a file that is not a journal
NO_MODEL = Identity(0, 0)  # in an end mark: no model file has taken the records in yet


class Condition(Enum):
    """What the bytes of a journal tell of its history."""

    WHOLE = "whole"
    UNFINISHED = "unfinished"  # a write after the end mark was never acknowledged
    CUT = "cut"  # the end mark, and perhaps the end of the last record, are missing
    DAMAGED = "damaged"


class Found(NamedTuple):
    """The good records of a journal."""

    bodies: list[bytes]  # in the order of their numbers
    condition: Condition
    end: int = 0  # where the end mark begins; 0: there is none to write at
    lost: int = 0  # records that are known to be missing
    successor: Identity = NO_MODEL  # the model file that took the records in


# ---- writing ----


def header(owner: Identity, version: int = FORMAT) -> bytes:
    """Return the first bytes of the journal of a model."""
    head = HEADER.pack(MAGIC, version, *owner, 0)[: -_WORD.size]
    return head + _WORD.pack(zlib.crc32(head))


def encoded(owner: Identity, changes: list[Change], first: int) -> bytes:
    """Return the records of changes, numbered from `first` on, and an end mark."""
    pieces = []
    for number, change in enumerate(changes, first):
        body = _encode(change)
        record = _RECORD.pack(_MARK, number, len(body)) + body
        pieces.append(record + _WORD.pack(zlib.crc32(record, owner.checksum)))
    return b"".join(pieces) + end_mark(owner, first + len(changes))


def end_mark(owner: Identity, count: int, successor: Identity = NO_MODEL) -> bytes:
    """Return the mark that ends a journal of `count` records."""
    mark = _END.pack(_END_MARK, count, *successor, 0)[: -_WORD.size]
    return mark + _WORD.pack(zlib.crc32(mark, owner.checksum))


def _encode(change: Change) -> bytes:
    """Return a change as the body of a record."""
    before, after = (
        b"" if name is None else name.encode("utf-8", "surrogatepass")
        for name in (change.before, change.after)
    )
    keys, new = change.document.tokens, change.new.packed()
    is_new = np.isin(keys, new.keys)
    # Tokens that the model file does not know come last.
    order = np.argsort(is_new, kind="stable")
    counts = change.document.times()[order]
    counts = counts if (counts != 1).any() else counts[:0]
    return b"".join(
        (
            _CHANGE.pack(
                change.digest,
                change.day,
                _NO_NAME if change.before is None else len(before),
                _NO_NAME if change.after is None else len(after),
                len(keys),
                len(counts),
                len(new),
                change.told,
            ),
            before,
            after,
            keys[order].astype("<u8").tobytes(),
            counts.astype("<u4").tobytes(),
            np.diff(new.offsets).astype("<u4").tobytes(),
            new.groups.tobytes(),
            new.blob.tobytes(),
        )
    )


# ---- reading ----


def decode(body: bytes, version: int) -> Change:
    """Return the change in the body of a record; raises ValueError, struct.error.

    version: the journal's format.
    """
    layout = _CHANGE if version >= 4 else _CHANGE_BEFORE_4
    digest, day, *names, n_keys, n_counts, n_new = layout.unpack_from(body)[:7]
    told = version >= 4 and body[layout.size - 1]
    at = layout.size
    classes: list[str | None] = []
    for length in names:
        classes.append(None)
        if length != _NO_NAME:
            classes[-1] = body[at : at + length].decode("utf-8", "surrogatepass")
            at += length
    arrays = []
    for kind, n in (("<u8", n_keys), ("<u4", n_counts), ("<u4", n_new), ("u1", n_new)):
        arrays.append(np.frombuffer(body, kind, n, at) if n else np.empty(0, kind))
        at += arrays[-1].nbytes
    keys, counts, lengths, groups = arrays
    blob = np.frombuffer(body, np.uint8)[at:]
    if n_counts not in (0, n_keys) or n_new > n_keys or int(lengths.sum()) != len(blob):
        raise ValueError("its lengths do not agree")
    if groups.max(initial=0) >= len(GROUPS):
        raise ValueError("a token is of no known group")
    new = Vocabulary(keys[n_keys - n_new :], blob, offsets_of(lengths), groups)
    order = np.argsort(keys)
    document = Documents(
        keys[order],
        np.array([0, n_keys]),
        np.arange(n_keys),
        counts[order] if n_counts else np.ones(n_keys, np.uint8),
    )
    return Change(digest, classes[0], classes[1], day, document, new, bool(told))


def owner_of(head: bytes) -> tuple[Identity, int]:
    """Return the model that a journal's first bytes name, and their format.

    NOBODY if they are not the header of a journal.
    """
    if len(head) >= HEADER.size:
        _, version, length, checksum, _ = HEADER.unpack_from(head)
        owner = Identity(length, checksum)
        if 1 <= version <= FORMAT and head[: HEADER.size] == header(owner, version):
            return owner, version
    return NOBODY, 0


def found_in(
    data: bytes, owner: Identity, start: int, first: int = 0, version: int = FORMAT
) -> Found:
    """Return the records of a model's journal from byte `start` on.

    first: the number of the record that should begin there.  version: the journal's format.
    """
    if version == 1:
        return _found_in_format_1(data, start)
    bodies: dict[int, bytes] = {}
    at, damaged, count = start, False, None
    successor, end = NO_MODEL, 0
    expected = first
    while at < len(data):
        if record := _record_at(data, at, owner):
            number, body, at = record
            damaged |= number != expected
            bodies.setdefault(number, body)
            expected = number + 1
        elif mark := _end_at(data, at, owner):
            count, successor = mark
            end, at = at, at + END_SIZE
            if count == expected and not damaged:
                break  # all that was acknowledged is there: the rest never was
            damaged = True
        else:
            following = data.find(_ANY_MARK, at + 1)
            if following < 0:
                break
            at, damaged = following, True
    numbers = sorted(bodies)
    total = max([first, *(number + 1 for number in numbers), count or 0])
    condition = Condition.DAMAGED
    if end and not damaged:
        condition = Condition.WHOLE if at == len(data) else Condition.UNFINISHED
    elif not damaged and _is_begun(data[at:]):
        condition = Condition.CUT
    if condition in {Condition.CUT, Condition.DAMAGED}:
        end = 0
    lost = total - first - len(numbers)
    return Found([bodies[n] for n in numbers], condition, end, lost, successor)


def _record_at(data: bytes, at: int, owner: Identity) -> tuple[int, bytes, int] | None:
    """Return number, body and end of the good record that begins at a byte, or None."""
    if not data.startswith(_MARK, at) or at + _RECORD.size > len(data):
        return None
    _, number, length = _RECORD.unpack_from(data, at)
    stop = at + _RECORD.size + length
    if data[stop : stop + _WORD.size] != _WORD.pack(
        zlib.crc32(memoryview(data)[at:stop], owner.checksum)
    ):
        return None
    return number, data[at + _RECORD.size : stop], stop + _WORD.size


def _end_at(data: bytes, at: int, owner: Identity) -> tuple[int, Identity] | None:
    """Return number of records and successor in the end mark that begins at a byte, or None."""
    if not data.startswith(_END_MARK, at) or at + END_SIZE > len(data):
        return None
    _, count, length, checksum, _ = _END.unpack_from(data, at)
    successor = Identity(length, checksum)
    if data[at : at + END_SIZE] != end_mark(owner, count, successor):
        return None
    return count, successor


def _is_begun(rest: bytes) -> bool:
    """Return whether bytes are the beginning of a record or of an end mark, or nothing."""
    if len(rest) >= _RECORD.size and rest.startswith(_MARK):
        length: int = _RECORD.unpack_from(rest)[2]
        return _RECORD.size + length + _WORD.size > len(rest)
    is_short = len(rest) < (_RECORD.size if rest.startswith(_MARK) else END_SIZE)
    return is_short and any(mark.startswith(rest[: len(mark)]) for mark in (_MARK, _END_MARK))


def _found_in_format_1(data: bytes, start: int) -> Found:
    """Return the records of a journal of format 1: length, body, CRC-32 of the body.

    Behind a damaged one no other can be found.
    """
    bodies: list[bytes] = []
    at = start
    while at + _WORD.size <= len(data):
        begin = at + _WORD.size
        stop = begin + _WORD.unpack_from(data, at)[0]
        body = data[begin:stop]
        if data[stop : stop + _WORD.size] != _WORD.pack(zlib.crc32(body)):
            unfinished = stop + _WORD.size > len(data)
            condition = Condition.UNFINISHED if unfinished else Condition.DAMAGED
            return Found(bodies, condition, lost=int(not unfinished))
        bodies.append(body)
        at = stop + _WORD.size
    return Found(bodies, Condition.WHOLE if at == len(data) else Condition.UNFINISHED)
