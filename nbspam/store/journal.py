"""The journal of a model: the changes since the model file was written.

MODEL.journal belongs to one model file.  A change is on disk before it is reported as done.
Every reader reports a fault of a journal and uses the intact changes before it; the next writer
keeps the damaged file under another name.
"""

import contextlib
import os
import struct
import warnings
import zlib
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

import numpy as np

from nbspam import __version__, disk
from nbspam.arrays import differences
from nbspam.counts.ledger import NOT_SHARED, POSSIBLE_BITS, LabelChange, LogProgress
from nbspam.errors import ModelFileError, ModelWarning
from nbspam.printing import amount_text
from nbspam.store.modelfile import (
    Identity,
    Snapshot,
    State,
    identity_at,
    read_snapshot,
    replacing_state,
)
from nbspam.tokens.definition import GROUPS
from nbspam.tokens.sparse import Documents, Vocabulary, offsets_of

# The bytes: a header, a record for each change, and an end mark.  A record is a length, a body
# and a checksum.  Every checksum begins with that of the record before it, and the first one with
# that of the header, which names the model: so a missing, misplaced or foreign record is noticed.
# The end mark says how many records there are: so a file that was cut short is noticed.

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
_AGAIN = 3  # times to read a journal that seems damaged: a writer may have been at work

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


class ReplacedError(ModelFileError):
    """Another model is in the place of the one that was read: mv and cp do not take its lock."""

    def __str__(self) -> str:
        return f"{self.args[0]}: replaced by another model just now; run this again"


def journal_path(path: str) -> str:
    """Return the path of a model's journal; path: from `disk.resolved`."""
    return f"{path}.journal"


def _next_path(path: str) -> str:
    """Return where the journal of a model file is before that file is in its place."""
    return f"{path}.journal.next"


# ---- the bytes ----


def header(owner: Identity) -> bytes:
    """Return the first bytes of the journal of a model."""
    return _sealed(HEADER.pack(_MAGIC, _FORMAT, *owner, 0)[: -WORD.size], 0)


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
    head = _CHANGE.pack(
        change.digest,
        change.day,
        _NO_NAME if change.before is None else len(before),
        _NO_NAME if change.after is None else len(after),
        len(keys),
        len(counts),
        len(new),
        change.told,
    )
    lengths = differences(new.offsets).astype("<u4")
    arrays = keys.astype("<u8", copy=False), counts.astype("<u4"), lengths, new.groups, new.blob
    return b"".join([head, before, after, *(array.tobytes() for array in arrays)])


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
    is_ours = mark[2].bits in POSSIBLE_BITS and data[at : at + END_SIZE] == end_mark(owner, *mark)
    return mark if is_ours else None


# ---- reading ----


def read_journal(path: str, name: str | None = None) -> Journal:
    """Return the journal beside a model, even if it is another model's; raises ModelFileError.

    name: of the file, unless it is in the journal's place.
    """
    before = None
    for _ in range(_AGAIN):
        data = _read(path, name=name)
        if data is None:
            return NO_JOURNAL
        journal = parsed(data)
        if not journal.is_damaged or data == before:
            break
        before = data
    return journal


def _read(path: str, start: int = 0, name: str | None = None) -> bytes | None:
    """Return the bytes of a model's journal from `start` on, None if there is no journal."""
    name = name or journal_path(path)
    try:
        with open(disk.open_own(name, path), "rb") as file:
            file.seek(start)
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ModelFileError(
            f"{name}: cannot read the model's journal: {error.strerror};"
            " make it readable, or move it away to do without its changes"
        ) from error


def read_more(path: str, model: Identity, journal: Journal) -> Journal | None:
    """Return a journal with only those changes that were added since it was read.

    Returns None if the journal has changed otherwise, and must be read again.
    """
    if not (journal.is_whole and journal.owner == model):
        now = read_journal(path)
        if now._replace(changes=[]) == journal._replace(changes=[]):
            return now._replace(changes=[])
        is_first = journal.owner is None and now.owner == model and now.is_whole
        return now if is_first else None
    start = journal.end - WORD.size  # where the last checksum is
    data = _read(path, start)
    if data is None or not data.startswith(WORD.pack(journal.crc)):
        return None
    more = records_in(data, WORD.size, journal)
    if more.is_damaged:
        return None
    return more._replace(size=start + more.size, end=start + more.end)


def snapshot_and_journal(
    path: str, copy: str | None = None, known: Snapshot | None = None
) -> tuple[Snapshot, Journal]:
    """Return model and journal as they were at one moment; never waits for a writer.

    If a writer replaces the model and removes its journal between the two reads, both are read
    again.  The journal may be another model's.  Raises ModelFileError.
    """
    while True:
        snapshot = known
        if snapshot is None or snapshot.stamp != disk.stamp_of(path):
            snapshot = read_snapshot(path, copy)
        # Read before the journal, whose place it may take just now.
        coming = read_journal(path, _next_path(path))
        journal = read_journal(path)
        if journal.owner != snapshot.identity and coming.owner == snapshot.identity:
            journal = coming
        if disk.stamp_of(path) == snapshot.stamp:
            return snapshot, journal


def read_model(
    path: str, copy: str | None = None, known: Snapshot | None = None
) -> tuple[Snapshot, Journal]:
    """Return model and journal as they were at one moment; warns of unused changes.

    A journal of another model is returned without its changes.  path: from `disk.resolved`.
    copy: see `read_snapshot`.  known: returned instead of a file that has not changed since.
    Raises ModelFileError.
    """
    snapshot, journal = snapshot_and_journal(path, copy, known)
    if problem := problem_of(path, snapshot.identity, journal):
        warnings.warn(f"{problem}; see: nbspam doctor", ModelWarning, stacklevel=2)
    if journal.owner != snapshot.identity:
        journal = journal._replace(changes=[], progress=NOT_SHARED)
    return snapshot, journal


def problem_of(path: str, model: Identity, journal: Journal) -> str | None:
    """Return why changes in a journal may be missing or are not used, or None."""
    name = journal_path(path)
    if journal.owner is None or is_taken_in(journal, model):
        return None
    if journal.owner == NOBODY:
        return f"{name}: not a journal, or damaged beyond reading; no changes are used"
    if journal.owner != model:
        return f"{name}: the journal of another model, or of this one at another time; not used"
    if journal.is_damaged:
        used = amount_text(len(journal.changes), "changes")
        lost = f"{journal.lost:,}" if journal.lost else "later ones, if any,"
        return f"{name}: damaged; {used} used, {lost} lost"
    return None


def warn_of_loss(path: str, model: Identity | None, before: Journal, now: Journal) -> None:
    """Warn if changes to a model were lost with a removed or replaced journal.

    before, now: the journal of the same model file.  A replaced one has taken its journal in.
    """
    had = before.n_records if before.owner == model else 0
    if now.n_records < had and not now.is_damaged:
        lost = f"{journal_path(path)}: it has vanished, and {amount_text(had, 'changes')} with it"
        warnings.warn(f"{lost}; put it back", ModelWarning, stacklevel=2)


def is_taken_in(journal: Journal, model: Identity) -> bool:
    """Return whether a model file includes the changes of the journal of its predecessor."""
    return journal.owner not in {None, model} and journal.successor == model


# ---- writing; the caller holds the model's lock ----


@contextlib.contextmanager
def locked_model(path: str, patience: float | None = None) -> Iterator[None]:
    """Hold the write lock of a model, with its journal in its place; see `disk.locked`."""
    with disk.locked(path, patience=patience):
        if os.path.lexists(_next_path(path)):
            _put_in_place(path)
        yield


def _put_in_place(path: str) -> None:
    """Move the next journal to its place, unless its model file never came."""
    name = _next_path(path)
    is_owned = read_journal(path, name).owner == identity_at(path)
    with disk.writing(path):
        if is_owned:
            os.replace(name, journal_path(path))
        else:
            os.unlink(name)
        disk.sync_folder(disk.parent_folder(path))


def append(
    path: str,
    journal: Journal,
    changes: list[LabelChange],
    progress: LogProgress = NOT_SHARED,
    is_kept: bool = False,
) -> Journal | None:
    """Add changes to a whole journal and force them to disk; return the journal with only these.

    progress: after them.  is_kept: they stay on disk elsewhere until `synchronize` is called.
    Returns None if the journal must be written as a new file: a backup made of hard links must
    not change.  Raises OSError, and ModelFileError; then nothing was added.
    """
    assert journal.owner is not None
    data, written = _written(journal, changes, progress)
    with _opened(path) as descriptor:
        status = os.fstat(descriptor)
        if status.st_size != journal.size:
            raise ReplacedError(path)
        if status.st_nlink != 1:
            return None
        committed = False
        try:
            # The old end mark holds until everything behind it is written.  Then the first bytes
            # of the data replace it.  One synchronisation is enough: if a crash keeps only the
            # second write, the record does not fit its checksum, and nothing was reported yet.  A
            # reader that finds no end mark uses the records before, and calls the journal damaged.
            _write_at(descriptor, data[END_SIZE:], journal.end + END_SIZE)
            committed = True
            _write_at(descriptor, data[:END_SIZE], journal.end)
            if not is_kept:
                disk.sync_file(descriptor)
        except OSError:
            if committed:
                mark = end_mark(journal.owner, journal.n_records, progress=journal.progress)
                _write_at(descriptor, mark, journal.end)
            os.ftruncate(descriptor, journal.size)
            raise
    return written


@contextlib.contextmanager
def _opened(path: str) -> Iterator[int]:
    """Yield a descriptor of the journal beside a model, to change it; raises OSError."""
    with open(disk.open_own(journal_path(path), path, os.O_RDWR), "r+b", 0) as file:
        yield file.fileno()


def synchronize(path: str) -> None:
    """Force the journal beside a model to disk, if there is one; raises ModelFileError."""
    with (
        disk.writing(path),
        contextlib.suppress(FileNotFoundError),
        _opened(path) as descriptor,
    ):
        disk.sync_file(descriptor)


def write_journal(
    path: str,
    model: Identity,
    changes: list[LabelChange],
    progress: LogProgress = NOT_SHARED,
    name: str | None = None,
) -> Journal:
    """Write a journal of these changes, replacing any other; raises OSError.

    progress: after them.  name: of the file, unless it is in the journal's place.
    """
    first = header(model)
    data, written = _written(parsed(first), changes, progress)
    name = name or journal_path(path)
    with disk.replacing(name, like=path) as file:
        file.writelines([first, data])
    return written


def _written(
    before: Journal, changes: list[LabelChange], progress: LogProgress
) -> tuple[bytes, Journal]:
    """Return the bytes to write where a journal ends, and the journal with only these changes."""
    assert before.owner is not None
    pieces, end, crc = [], before.end, before.crc
    for change in changes:
        body = encode_record(change)
        record = _sealed(WORD.pack(len(body)) + body, crc)
        (crc,) = WORD.unpack(record[-WORD.size :])
        end += len(record)
        pieces.append(record)
    count = before.n_records + len(changes)
    pieces.append(end_mark(before.owner, count, progress=progress))
    written = Journal(changes, before.owner, size=end + END_SIZE, end=end, n_records=count)
    return b"".join(pieces), written._replace(crc=crc, progress=progress)


def _write_at(descriptor: int, data: bytes, at: int) -> None:
    os.lseek(descriptor, at, os.SEEK_SET)
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def name_successor(path: str, journal: Journal, model: Identity) -> None:
    """Note in a journal which model file is about to take its changes in.

    If the process is killed before it removes the journal, the next one knows that it may.
    """
    if not journal.is_whole or journal.owner is None:
        return
    # If it cannot be noted, the ledger will tell.
    with contextlib.suppress(OSError, ModelFileError), _opened(path) as descriptor:
        if os.fstat(descriptor).st_nlink == 1:
            mark = end_mark(journal.owner, journal.n_records, model, journal.progress)
            _write_at(descriptor, mark, journal.end)


def write_model(path: str, state: State, stamp: disk.Stamp | None) -> None:
    """Write a model file and remove the journal of the old one; the caller holds its lock.

    path: from `disk.resolved`.  stamp: of the file to replace, None if there was none.  A
    journal that the new file cannot have taken in, or not all of it, is kept aside.  Raises
    ModelFileError.
    """
    with replacing_model(path, state) as new:
        hand_over(path, new, stamp, read_journal(path))


@contextlib.contextmanager
def replacing_model(path: str, state: State) -> Iterator[Identity]:
    """Write a model file, and yield its identity; after the block it is in its place.

    The block calls `hand_over` under the model's lock, which holds until the file is there.  A
    crash leaves old file and journal, or new file and next journal.  Raises ModelFileError.
    """
    with replacing_state(path, {"program": f"nbspam {__version__}", **state}) as new:
        yield new
    if os.path.lexists(_next_path(path)):
        _put_in_place(path)
    else:
        remove_journal(path)


def hand_over(
    path: str, new: Identity, stamp: disk.Stamp | None, old: Journal, rest: Journal = NO_JOURNAL
) -> None:
    """Prepare the journals of a model for its new file; see `write_model`.

    old: the journal in place.  rest: the new file's journal, of changes that the file lacks.
    """
    if disk.stamp_of(path) != stamp:
        raise ReplacedError(path)
    set_aside(path, old, identity_at(path))
    if rest is not NO_JOURNAL:
        write_journal(path, new, rest.changes, rest.progress, _next_path(path))
    name_successor(path, old, new)


def remove_journal(path: str) -> None:
    """Remove the journal beside a model that contains its changes, or has replaced its model."""
    with contextlib.suppress(OSError):  # if it stays, it is ignored as another model's
        os.unlink(journal_path(path))
        disk.sync_folder(disk.parent_folder(path))


def set_aside(path: str, journal: Journal, model: Identity | None) -> str | None:
    """Keep a journal aside unless the model, or the next write, has all that is in it.

    A journal of this model that is damaged is copied; any other is moved.  Returns the new name,
    and warns; None if there was nothing to keep.  Raises OSError.
    """
    if journal.owner is None:
        return None
    if model is not None and is_taken_in(journal, model):
        remove_journal(path)
        return None
    name = journal_path(path)
    aside = f"{name}.{os.urandom(4).hex()}"
    if journal.owner == model:
        if journal.condition == Condition.UNFINISHED:
            _warn(f"{name}: an unfinished write at its end, never acknowledged, was cut off")
        if not journal.is_damaged:
            return None
        data = disk.read_own(name, path)
        with disk.replacing(aside, like=path) as file:
            file.write(data)
        _warn(f"{aside}: the damaged journal, kept; its good changes are still used")
    else:
        os.rename(name, aside)
        disk.sync_folder(disk.parent_folder(path))
        _warn(f"{aside}: not the journal of this model, moved out of the way; not learned from")
    return aside


def _warn(text: str) -> None:
    warnings.warn(text, ModelWarning, stacklevel=3)
