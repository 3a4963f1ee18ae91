"""The bytes of a journal: the changes of a model, one record each.

A header begins a journal, and an end mark ends it.  A record is a length, a body and a checksum.
Every checksum begins with that of the record before it, and the first one with that of the
header, which names the model: so a missing, misplaced or foreign record is noticed.  The end mark
says how many records there are: so a file that was cut short is noticed.
"""

import contextlib
import struct
import zlib
from enum import Enum
from typing import NamedTuple

import numpy as np

from nbspam.arrays import differences
from nbspam.counts.ledger import NOT_SHARED, LabelChange, LogProgress
from nbspam.store.modelfile import Identity
from nbspam.tokens.definition import GROUPS
from nbspam.tokens.sparse import Documents, Vocabulary, offsets_of

_MAGIC = b"nbspam journal\0\0"
_FORMAT = 1
HEADER = struct.Struct("<16sIQII")  # magic, format, length and checksum of the model, CRC-32
WORD = struct.Struct("<I")
# _NO_LENGTH, number of records, length and checksum of the model file that took them in, the
# progress in a shared log, CRC-32.
_END = struct.Struct("<IIQIIQIQBI")
END_SIZE = _END.size
_NO_LENGTH = (1 << 32) - 1  # no record is as long
# Digest, day, lengths of two class names in bytes; the number of tokens, of counts (0: all
# counts are 1) and of new tokens; whether a person has told the class.
_CHANGE = struct.Struct("<QHiiIIIB")
_NO_NAME = -1  # as the length of a class name: there is no class

NOBODY = Identity(0, 0)  # the owner of a file that is not a journal
NO_MODEL = Identity(0, 0)  # in an end mark: no model file has taken the records in yet


class Condition(Enum):
    """The condition of a journal, which its bytes tell."""

    WHOLE = "whole"
    UNFINISHED = "unfinished"  # a write after the end mark was never acknowledged
    DAMAGED = "damaged"  # or cut short


class Journal(NamedTuple):
    """The contents of a journal."""

    changes: list[LabelChange]
    owner: Identity | None  # the model it belongs to; None: there is no journal
    condition: Condition = Condition.WHOLE
    size: int = 0  # of the file in bytes
    end: int = 0  # where the end mark begins
    n_records: int = 0
    crc: int = 0  # checksum of the last record, or of the header if there is none
    lost: int = 0  # records that are known to be missing
    successor: Identity = NO_MODEL  # the model file that took the records in
    progress: LogProgress = NOT_SHARED  # of the model with these changes

    @property
    def is_whole(self) -> bool:
        """Whether changes can be appended."""
        return self.condition == Condition.WHOLE and self.owner not in {None, NOBODY}

    @property
    def is_damaged(self) -> bool:
        """Whether something that was acknowledged may be missing."""
        return self.condition == Condition.DAMAGED


NO_JOURNAL = Journal([], None)


def header(owner: Identity) -> bytes:
    """Return the first bytes of the journal of a model."""
    return _sealed(HEADER.pack(_MAGIC, _FORMAT, *owner, 0)[: -WORD.size], 0)


def encoded(
    before: Journal, changes: list[LabelChange], progress: LogProgress
) -> tuple[bytes, Journal]:
    """Return the bytes to write where a journal ends, and the journal with only these changes.

    progress: after them.
    """
    assert before.owner is not None
    records, crc = [], before.crc
    for change in changes:
        body = encode_record(change)
        record = _sealed(WORD.pack(len(body)) + body, crc)
        (crc,) = WORD.unpack(record[-WORD.size :])
        records.append(record)
    end = before.end + sum(map(len, records))
    count = before.n_records + len(changes)
    records.append(end_mark(before.owner, count, progress=progress))
    written = Journal(changes, before.owner, end=end, n_records=count, crc=crc)
    return b"".join(records), written._replace(size=end + END_SIZE, progress=progress)


def end_mark(
    owner: Identity, count: int, successor: Identity = NO_MODEL, progress: LogProgress = NOT_SHARED
) -> bytes:
    """Return the mark that ends a journal of `count` records."""
    mark = _END.pack(_NO_LENGTH, count, *successor, *progress, 0)[: -WORD.size]
    return _sealed(mark, owner.checksum)


def _sealed(data: bytes, crc: int) -> bytes:
    return data + WORD.pack(zlib.crc32(data, crc))


def encode_record(change: LabelChange) -> bytes:
    """Return a change as the body of a record."""
    before, after = (
        b"" if name is None else name.encode("utf-8", "surrogatepass")
        for name in (change.before, change.after)
    )
    keys, new = change.document.tokens, change.new.packed()
    counts = change.document.times()
    counts = counts if (counts != 1).any() else counts[:0]
    if 0 < len(new) < len(keys):
        # Tokens that the model file does not know come last.
        is_new = np.zeros(len(keys), np.bool_)
        is_new[keys.searchsorted(new.keys)] = True
        order = is_new.argsort(kind="stable")
        keys, counts = keys[order], counts[order] if len(counts) else counts
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
            keys.astype("<u8", copy=False).tobytes(),
            counts.astype("<u4").tobytes(),
            differences(new.offsets).astype("<u4").tobytes(),
            new.groups.tobytes(),
            new.blob.tobytes(),
        )
    )


def decode_record(body: bytes) -> LabelChange:
    """Return the change in the body of a record; raises ValueError, struct.error."""
    digest, day, *names, n_keys, n_counts, n_new, told = _CHANGE.unpack_from(body)
    at = _CHANGE.size
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
    if 0 < n_new < n_keys:
        order = keys.argsort()
        keys, counts = keys[order], counts[order] if n_counts else counts
    counts = counts if n_counts else np.ones(n_keys, np.uint8)
    document = Documents(keys, np.array([0, n_keys]), np.arange(n_keys), counts)
    return LabelChange(digest, classes[0], classes[1], day, document, new, bool(told))


def parsed(data: bytes) -> Journal:
    """Return the journal of these bytes; the owner is NOBODY if they have no good header."""
    if len(data) >= HEADER.size:
        *_, length, checksum, crc = HEADER.unpack_from(data)
        owner = Identity(length, checksum)
        if data.startswith(header(owner)):
            return records_in(data, HEADER.size, Journal([], owner, crc=crc))
    return Journal([], NOBODY, Condition.DAMAGED, len(data))


def records_in(data: bytes, at: int, before: Journal) -> Journal:
    """Return a journal with the good changes from byte `at` on, and with them only.

    before: the journal up to there.
    """
    owner, crc = before.owner, before.crc
    assert owner is not None
    changes: list[LabelChange] = []
    with contextlib.suppress(struct.error, ValueError):
        while (length := WORD.unpack_from(data, at)[0]) != _NO_LENGTH:
            stop = at + WORD.size + length
            (checksum,) = WORD.unpack_from(data, stop)
            if checksum != zlib.crc32(memoryview(data)[at:stop], crc):
                break
            # ValueError: its checksum is right, but we did not write it.
            changes.append(decode_record(data[at + WORD.size : stop]))
            at, crc = stop + WORD.size, checksum
    n_records = before.n_records + len(changes)
    journal = Journal(changes, owner, Condition.DAMAGED, len(data), at, n_records, crc)
    if (mark := _end_at(data, at, owner)) and mark[0] == n_records:
        is_last = len(data) == at + END_SIZE
        condition = Condition.WHOLE if is_last else Condition.UNFINISHED
        return journal._replace(condition=condition, successor=mark[1], progress=mark[2])
    # If the end is good, it tells how many records are lost.
    mark = _end_at(data, len(data) - END_SIZE, owner)
    return journal._replace(lost=max(mark[0] - n_records, 0)) if mark else journal


def _end_at(data: bytes, at: int, owner: Identity) -> tuple[int, Identity, LogProgress] | None:
    """Return the contents of the end mark that begins at a byte: records, successor, progress."""
    if not 0 <= at <= len(data) - END_SIZE:
        return None
    _, count, length, checksum, *values, _ = _END.unpack_from(data, at)
    mark = count, Identity(length, checksum), LogProgress(*values)
    return mark if data[at : at + END_SIZE] == end_mark(owner, *mark) else None
