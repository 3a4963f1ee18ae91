"""The journal beside a model file: what was learned since the file was written.

MODEL.journal begins with the identity of its model; behind it stands one record for every
change, each with its length and checksum.  A record is on disk before anybody is told of
it.  What a crash left of a last, half-written record is passed over by readers and cut
off by the next writer.  A journal that belongs to another model is no journal.

Secret: the bytes of the journal, and how a reader gets model and journal of one moment.
"""

import contextlib
import os
import struct
import zlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nbspam.counts.changes import Change
from nbspam.disk import adopt, stamp_of, sync_folder
from nbspam.errors import ModelFileError
from nbspam.store.format.modelfile import Identity, Snapshot, State, read_snapshot, save_state
from nbspam.tokens.documents import Documents, offsets_of
from nbspam.tokens.vocabulary import Vocabulary

MAGIC = b"nbspam journal\0\0"
FORMAT = 2  # 1 had no steps
_HEADER = struct.Struct("<16sIQII")  # magic, format, length and checksum of the model, crc
_WORD = struct.Struct("<I")  # before a record its bytes, behind it its checksum
# Digest, day, bytes of two names, tokens, counts (none: all are 1), new tokens, step.
_CHANGE = struct.Struct("<QHiiIIId")
_CHANGE_1 = struct.Struct("<QHiiIII")
_NO_NAME = -1
_OPEN_FLAGS = os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0)


class Journal(NamedTuple):
    """What a journal holds."""

    changes: list[Change]
    end: int  # bytes of the file that are whole; behind them stands what a crash left
    size: int  # bytes of the file
    owner: Identity | None  # the model it belongs to; None: there is none, or its mere beginning
    mark: bytes = b""  # the checksum of the last change
    version: int = FORMAT


NO_JOURNAL = Journal([], 0, 0, None)
NOBODY = Identity(0, 0)  # owns a file that is no journal


def journal_path(path: str) -> str:
    """Return where a model's journal is."""
    return f"{os.path.realpath(path)}.journal"


# ---- bytes ----


def _header(owner: Identity, version: int = FORMAT) -> bytes:
    head = _HEADER.pack(MAGIC, version, *owner, 0)[: -_WORD.size]
    return head + _WORD.pack(zlib.crc32(head))


def _encode(change: Change) -> bytes:
    """Return a change as a record."""
    before, after = (
        b"" if name is None else name.encode("utf-8", "surrogatepass")
        for name in (change.before, change.after)
    )
    keys, new = change.document.tokens, change.new.packed()
    is_new = np.isin(keys, new.keys)
    # Tokens that the model's file does not know stand behind the others.
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
                change.step,
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


def _decode(body: bytes, version: int) -> Change:
    """Return the change in a record whose checksum was right; raises ValueError."""
    layout = _CHANGE if version > 1 else _CHANGE_1
    digest, day, *names, n_keys, n_counts, n_new = layout.unpack_from(body)[:7]
    step = _CHANGE.unpack_from(body)[7] if version > 1 else 0.0
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
    new = Vocabulary(keys[n_keys - n_new :], blob, offsets_of(lengths), groups)
    order = np.argsort(keys)
    document = Documents(
        keys[order],
        np.array([0, n_keys]),
        np.arange(n_keys),
        counts[order] if n_counts else np.ones(n_keys, np.uint8),
    )
    return Change(digest, classes[0], classes[1], day, document, new, step)


def owner_of(head: bytes) -> tuple[Identity | None, int]:
    """Return the model that a journal's first bytes name, and the journal's format.

    None where a crash cut them off.
    """
    if len(head) < _HEADER.size:
        return None, FORMAT
    magic, version, length, checksum, _ = _HEADER.unpack_from(head)
    owner = Identity(length, checksum)
    is_whole = head[: _HEADER.size] == _header(owner, version)
    is_ours = magic == MAGIC and 1 <= version <= FORMAT and is_whole
    return owner if is_ours else NOBODY, version


def parse(data: bytes, version: int = FORMAT) -> tuple[list[Change], int]:
    """Return the changes that bytes behind the header hold, and where the last whole one ends."""
    changes = []
    end = 0
    while end + _WORD.size <= len(data):
        start = end + _WORD.size
        stop = start + _WORD.unpack_from(data, end)[0]
        body = data[start:stop]
        if data[stop : stop + _WORD.size] != _WORD.pack(zlib.crc32(body)):
            break
        try:
            changes.append(_decode(body, version))
        except (struct.error, ValueError):
            break
        end = stop + _WORD.size
    return changes, end


# ---- files ----


def read_journal(path: str, start: int = 0, mark: bytes = b"") -> Journal:
    """Return what the journal of a model holds from byte `start` on, whosever it is.

    mark: what must stand before that byte, or else the journal is another one.
    """
    try:
        with open(journal_path(path), "rb") as file:
            owner, version = owner_of(file.read(_HEADER.size))
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
            " make it readable, or move it away to go without what it holds"
        ) from error
    if not data.startswith(mark):
        return NO_JOURNAL
    new = data[len(mark) :]
    changes, end = parse(new, version)
    mark = new[end - _WORD.size : end] if changes else mark
    return Journal(changes, start + end, start + len(new), owner, mark, version)


def read_model(path: str) -> tuple[Snapshot, Journal]:
    """Return model and journal as they were at one moment; never waits for a writer.

    A writer may replace the model, and take its journal away, between two looks: then
    they are looked at again.  A journal of another model comes as one without changes.
    """
    while True:
        snapshot = read_snapshot(path)
        journal = read_journal(path)
        if stamp_of(path) == snapshot.stamp:
            if journal.owner != snapshot.identity:
                journal = journal._replace(changes=[], end=0, mark=b"")
            return snapshot, journal


def append(path: str, owner: Identity, changes: list[Change], end: int) -> Journal:
    """Put changes behind byte `end` of a journal, on disk; return them and the new end.

    For the one who holds the model's lock.  If it fails, with OSError, nothing was added.
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


def write_model(path: str, state: State, rest: Callable[[], State] | None = None) -> None:
    """Write a model file and take the journal of the old one away: for who has its lock.

    rest: see `modelfile.save_state`.
    """
    save_state(path, state, rest)
    remove_journal(path)


def remove_journal(path: str) -> None:
    """Take a model's journal away: the model holds all of it, or is another."""
    with contextlib.suppress(OSError):  # then it stays, as one of another model
        os.unlink(journal_path(path))
        sync_folder(os.path.dirname(journal_path(path)))


def set_journal_aside(path: str, owner: Identity) -> str:
    """Give the journal of another model another name, and return that; nothing is lost."""
    name = f"{journal_path(path)}.{owner.length:x}-{owner.checksum:08x}"
    os.replace(journal_path(path), name)
    return name
