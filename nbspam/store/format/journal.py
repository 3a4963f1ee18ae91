"""The journal of a model: the changes since the model file was written.

MODEL.journal begins with the identity of its model; then follows one record for every change,
with its length and checksum.  A change is on disk before it is reported as done.  A crash may
leave an incomplete record at the end: readers ignore it, and the next writer overwrites it.
A journal that belongs to another model is ignored.

Secret: the bytes of the journal, and how to read a model and its journal at one moment.
"""

import contextlib
import os
import struct
import zlib
from typing import NamedTuple

import numpy as np

from nbspam.counts.changes import Change
from nbspam.disk import adopt, stamp_of, sync_folder
from nbspam.errors import ModelFileError
from nbspam.store.format.modelfile import Identity, Snapshot, State, read_snapshot, save_state
from nbspam.tokens.documents import Documents, offsets_of
from nbspam.tokens.vocabulary import Vocabulary

MAGIC = b"nbspam journal\0\0"
FORMAT = 1
_HEADER = struct.Struct("<16sIQII")  # magic, format, length and checksum of the model, CRC-32
# One 32-bit number.  The length of a record precedes the record, and its CRC-32 follows it.
_WORD = struct.Struct("<I")
# Digest, day, lengths of two class names in bytes; the number of tokens, of counts (0: all
# counts are 1) and of new tokens.
_CHANGE = struct.Struct("<QHiiIII")
_NO_NAME = -1  # as the length of a class name: there is no class
_OPEN_FLAGS = os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0)


class Journal(NamedTuple):
    """The contents of a journal."""

    changes: list[Change]
    end: int  # length in bytes of header and complete records; an incomplete one may follow
    size: int  # of the file in bytes
    owner: Identity | None  # the model it belongs to; None: no file, or an incomplete header
    mark: bytes = b""  # the checksum of the last change


NO_JOURNAL = Journal([], 0, 0, None)
NOBODY = Identity(0, 0)  # the owner of a file that is not a journal


def journal_path(path: str) -> str:
    """Return the path of a model's journal."""
    return f"{os.path.realpath(path)}.journal"


# ---- bytes ----


def _header(owner: Identity) -> bytes:
    head = _HEADER.pack(MAGIC, FORMAT, *owner, 0)[: -_WORD.size]
    return head + _WORD.pack(zlib.crc32(head))


def _encode(change: Change) -> bytes:
    """Return a change as a record."""
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
    body = b"".join(
        (
            _CHANGE.pack(
                change.digest,
                change.day,
                _NO_NAME if change.before is None else len(before),
                _NO_NAME if change.after is None else len(after),
                len(keys),
                len(counts),
                len(new),
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
    return _WORD.pack(len(body)) + body + _WORD.pack(zlib.crc32(body))


def _decode(body: bytes) -> Change:
    """Return the change in a record whose checksum is right; raises ValueError, struct.error."""
    digest, day, *names, n_keys, n_counts, n_new = _CHANGE.unpack_from(body)
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
    new = Vocabulary(keys[n_keys - n_new :], blob, offsets_of(lengths), groups)
    order = np.argsort(keys)
    document = Documents(
        keys[order],
        np.array([0, n_keys]),
        np.arange(n_keys),
        counts[order] if n_counts else np.ones(n_keys, np.uint8),
    )
    return Change(digest, classes[0], classes[1], day, document, new)


def owner_of(head: bytes) -> Identity | None:
    """Return the model that a journal's first bytes name, or None if the header is cut off.

    NOBODY if they are not the header of a journal.
    """
    if len(head) < _HEADER.size:
        return None
    magic, version, length, checksum, _ = _HEADER.unpack_from(head)
    owner = Identity(length, checksum)
    is_whole = head[: _HEADER.size] == _header(owner)
    is_ours = magic == MAGIC and version == FORMAT and is_whole
    return owner if is_ours else NOBODY


def parse(data: bytes) -> tuple[list[Change], int]:
    """Return the changes in complete records after the header, and where the last one ends."""
    changes = []
    end = 0
    while end + _WORD.size <= len(data):
        start = end + _WORD.size
        stop = start + _WORD.unpack_from(data, end)[0]
        body = data[start:stop]
        if data[stop : stop + _WORD.size] != _WORD.pack(zlib.crc32(body)):
            break
        try:
            changes.append(_decode(body))
        except (struct.error, ValueError):
            break
        end = stop + _WORD.size
    return changes, end


# ---- files ----


def read_journal(path: str, start: int = 0, mark: bytes = b"") -> Journal:
    """Return the journal beside a model from byte `start` on, even if it is another model's.

    mark: the bytes expected before `start`; if others are there, the journal has been replaced,
    and NO_JOURNAL is returned.  Raises ModelFileError.
    """
    try:
        with open(journal_path(path), "rb") as file:
            owner = owner_of(file.read(_HEADER.size))
            if owner is None or owner == NOBODY:
                return NO_JOURNAL._replace(size=os.fstat(file.fileno()).st_size, owner=owner)
            start = max(start, _HEADER.size)
            file.seek(start - len(mark))
            data = file.read()
    except FileNotFoundError:
        return NO_JOURNAL
    except OSError as error:
        raise ModelFileError(
            f"{journal_path(path)}: cannot read the model's journal: {error.strerror};"
            " make it readable, or move it away to do without its changes"
        ) from error
    if not data.startswith(mark):
        return NO_JOURNAL
    new = data[len(mark) :]
    changes, end = parse(new)
    mark = new[end - _WORD.size : end] if changes else mark
    return Journal(changes, start + end, start + len(new), owner, mark)


def read_model(path: str) -> tuple[Snapshot, Journal]:
    """Return model and journal as they were at one moment; never waits for a writer.

    If a writer replaces the model and removes its journal between the two reads, both are read
    again.  A journal of another model is returned without its changes.  Raises ModelFileError.
    """
    while True:
        snapshot = read_snapshot(path)
        journal = read_journal(path)
        if stamp_of(path) == snapshot.stamp:
            if journal.owner != snapshot.identity:
                journal = journal._replace(changes=[], end=0, mark=b"")
            return snapshot, journal


def append(path: str, owner: Identity, changes: list[Change], end: int) -> Journal:
    """Write changes at byte `end` of a journal and force them to disk; return the new journal.

    The returned journal has only these changes.  The caller holds the model's lock.  On OSError
    nothing was added.
    """
    name = journal_path(path)
    data = b"".join(map(_encode, changes))
    if not end:
        data = _header(owner) + data
    descriptor = os.open(name, _OPEN_FLAGS, 0o600)
    try:
        if not end:
            adopt(descriptor, os.path.realpath(path))
        os.ftruncate(descriptor, end)
        try:
            _write_at(descriptor, data, end)
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, end)
            raise
    finally:
        os.close(descriptor)
    if not end:
        sync_folder(os.path.dirname(name))
    end += len(data)
    return Journal(changes, end, end, owner, data[-_WORD.size :])


def _write_at(descriptor: int, data: bytes, at: int) -> None:
    os.lseek(descriptor, at, os.SEEK_SET)
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def write_model(path: str, state: State) -> None:
    """Write a model file and remove the journal of the old one; the caller holds its lock.

    Raises ModelFileError.
    """
    save_state(path, state)
    remove_journal(path)


def remove_journal(path: str) -> None:
    """Remove the journal beside a model that contains its changes, or has replaced its model."""
    with contextlib.suppress(OSError):  # if it stays, it is ignored as another model's
        os.unlink(journal_path(path))
        sync_folder(os.path.dirname(journal_path(path)))


def set_journal_aside(path: str, owner: Identity) -> str:
    """Rename the journal of another model, so that nothing is lost; return the new name."""
    name = f"{journal_path(path)}.{owner.length:x}-{owner.checksum:08x}"
    os.replace(journal_path(path), name)
    return name
