"""The journal of a model: the changes since the model file was written.

MODEL.journal belongs to one model file.  A change is on disk before it is reported as done.  What
is wrong with a journal is told whenever it is read; the good changes in it are used, and whoever
writes next keeps the file as it was under another name.

Secret: in which order a journal is written, so that a crash at any moment loses no change that
was reported, and how to read a model and its journal at one moment.
"""

import contextlib
import os
import struct
import warnings
from typing import NamedTuple

from nbspam.counts.changes import Change
from nbspam.disk import (
    folder_of,
    open_own,
    read_own,
    replace_file,
    stamp_of,
    sync_folder,
    unwritable,
)
from nbspam.errors import ModelFileError, ModelWarning
from nbspam.store.format.modelfile import (
    Identity,
    Snapshot,
    State,
    identity_at,
    read_snapshot,
    save_state,
)
from nbspam.store.format.records import (
    END_SIZE,
    FORMAT,
    HEADER,
    NOBODY,
    Condition,
    Found,
    decode,
    encoded,
    end_mark,
    found_in,
    header,
    owner_of,
)

_MARK_BYTES = 4  # before the end mark, which tell whether it is still the same journal
_AGAIN = 3  # times to read a journal that seems damaged: a writer may have been at work


class Journal(NamedTuple):
    """The contents of a journal."""

    changes: list[Change]
    owner: Identity | None  # the model it belongs to; None: there is no journal
    found: Found
    size: int = 0  # of the file in bytes
    next: int = 0  # number of the next change
    mark: bytes = b""  # the last bytes before the end mark

    @property
    def is_whole(self) -> bool:
        """Whether changes can be appended."""
        return self.found.condition == Condition.WHOLE and self.found.end > 0

    @property
    def is_damaged(self) -> bool:
        """Whether something that was acknowledged may be missing."""
        return self.found.condition in {Condition.CUT, Condition.DAMAGED}


NO_JOURNAL = Journal([], None, Found([], Condition.WHOLE))


def journal_path(path: str) -> str:
    """Return the path of a model's journal; path: from `disk.resolved`."""
    return f"{path}.journal"


# ---- reading ----


def read_journal(path: str, model: Identity | None = None) -> Journal:
    """Return the journal beside a model, even if it is another model's; raises ModelFileError.

    model: the model that it should belong to.  If its header is damaged, that model's changes
    are looked for in it.
    """
    before = None
    for _ in range(_AGAIN):
        data = _read(path)
        if data is None:
            return NO_JOURNAL
        journal = _parsed(data, model)
        if not journal.is_damaged or data == before:
            break
        before = data
    return journal


def _read(path: str, start: int = 0) -> bytes | None:
    """Return the bytes of a model's journal from `start` on, None if there is no journal."""
    try:
        with open(open_own(journal_path(path), path), "rb") as file:
            file.seek(start)
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ModelFileError(
            f"{journal_path(path)}: cannot read the model's journal: {error.strerror};"
            " make it readable, or move it away to do without its changes"
        ) from error


def _parsed(data: bytes, model: Identity | None) -> Journal:
    owner, version = owner_of(data)
    if owner != NOBODY:
        found = found_in(data, owner, HEADER.size, version=version)
        # A journal of an older format is written anew instead of being appended to.
        end = found.end if version == FORMAT else 0
        return _decoded(found._replace(end=end), owner, data, version=version)
    if model is not None:
        found = found_in(data, model, 0)
        if found.bodies or found.end:
            found = found._replace(condition=Condition.DAMAGED, end=0)
            return _decoded(found, model, data)
    return Journal([], NOBODY, Found([], Condition.DAMAGED), len(data))


def _decoded(
    found: Found, owner: Identity, data: bytes, first: int = 0, version: int = FORMAT
) -> Journal:
    changes = []
    for body in found.bodies:
        try:
            changes.append(decode(body, version))
        except (struct.error, ValueError):  # its checksum is right, but we did not write it
            found = found._replace(condition=Condition.DAMAGED, end=0, lost=found.lost + 1)
    mark = data[found.end - _MARK_BYTES : found.end] if found.end else b""
    count = first + len(found.bodies)
    return Journal(changes, owner, found._replace(bodies=[]), len(data), count, mark)


def read_more(path: str, model: Identity, journal: Journal) -> Journal | None:
    """Return a journal with only those changes that were added since it was read.

    Returns None if the whole journal must be read again, since it is not what it was.
    """
    if not (journal.is_whole and journal.owner == model):
        now = read_journal(path, model)
        if now._replace(changes=[]) == journal._replace(changes=[]):
            return now._replace(changes=[])
        is_first = journal.owner is None and now.owner == model and now.is_whole
        return now if is_first else None
    end, mark = journal.found.end, journal.mark
    data = _read(path, end - len(mark))
    if data is None:
        return None
    found = found_in(data, model, len(mark), journal.next)
    if not data.startswith(mark) or found.condition not in {Condition.WHOLE, Condition.UNFINISHED}:
        return None
    more = _decoded(found, model, data, journal.next)
    if more.is_damaged:
        return None
    shift = end - len(mark)
    shifted = more.found._replace(end=shift + found.end)
    return more._replace(found=shifted, size=shift + more.size)


def snapshot_and_journal(path: str) -> tuple[Snapshot, Journal]:
    """Return model and journal as they were at one moment; never waits for a writer.

    If a writer replaces the model and removes its journal between the two reads, both are read
    again.  The journal may be another model's.  Raises ModelFileError.
    """
    while True:
        snapshot = read_snapshot(path)
        journal = read_journal(path, snapshot.identity)
        if stamp_of(path) == snapshot.stamp:
            return snapshot, journal


def read_model(path: str) -> tuple[Snapshot, Journal]:
    """Return model and journal as they were at one moment; warns of what is not used.

    A journal of another model is returned without its changes.  path: from `disk.resolved`.
    Raises ModelFileError.
    """
    snapshot, journal = snapshot_and_journal(path)
    if problem := problem_of(path, snapshot.identity, journal):
        warnings.warn(f"{problem}; see: nbspam doctor", ModelWarning, stacklevel=2)
    if journal.owner != snapshot.identity:
        journal = journal._replace(changes=[])
    return snapshot, journal


def problem_of(path: str, model: Identity, journal: Journal) -> str | None:
    """Return why changes in a journal may be missing or are not used, or None."""
    name, used = journal_path(path), f"{len(journal.changes):,} changes are used"
    if journal.owner is None or is_taken_in(journal, model):
        return None
    if journal.owner == NOBODY:
        return f"{name}: not a journal, or damaged beyond reading; no changes are used"
    if journal.owner != model:
        return f"{name}: the journal of another model, or of this one at another time; not used"
    if journal.found.condition == Condition.CUT:
        return f"{name}: its end is missing; {used}, and any after them are lost"
    if journal.found.condition == Condition.DAMAGED:
        lost = f"{journal.found.lost:,}" if journal.found.lost else "later ones, if any,"
        return f"{name}: damaged; {used}, {lost} are lost"
    return None


def is_taken_in(journal: Journal, model: Identity) -> bool:
    """Return whether a model file includes the changes of the journal of its predecessor."""
    return journal.owner not in {None, model} and journal.found.successor == model


# ---- writing; the caller holds the model's lock ----


def append(path: str, journal: Journal, changes: list[Change]) -> Journal | None:
    """Add changes to a whole journal and force them to disk; return the journal with only these.

    Returns None if it must be written anew: a backup made of hard links keeps what it has.
    Raises OSError, and ModelFileError; then nothing was added.
    """
    assert journal.owner is not None
    end = journal.found.end
    data = encoded(journal.owner, changes, journal.next)
    descriptor = open_own(journal_path(path), path, os.O_RDWR)
    try:
        status = os.fstat(descriptor)
        if status.st_nlink != 1 or status.st_size != journal.size:
            return None
        committed = False
        try:
            # The end mark holds until everything behind it is there.  Then these bytes replace it.
            _write_at(descriptor, data[END_SIZE:], end + END_SIZE)
            committed = True
            _write_at(descriptor, data[:END_SIZE], end)
            os.fsync(descriptor)
        except OSError:
            if committed:
                _write_at(descriptor, end_mark(journal.owner, journal.next), end)
            os.ftruncate(descriptor, journal.size)
            raise
    finally:
        os.close(descriptor)
    return _written(journal.owner, changes, journal.next, data, end)


def write_journal(path: str, model: Identity, changes: list[Change]) -> Journal:
    """Write a journal of these changes, replacing any other; raises OSError."""
    data = header(model) + encoded(model, changes, 0)
    replace_file(journal_path(path), lambda file: file.writelines([data]), like=path)
    return _written(model, changes, 0, data, 0)


def _written(owner: Identity, changes: list[Change], first: int, data: bytes, at: int) -> Journal:
    """Return the journal with these changes after records were written at a byte."""
    size = at + len(data)
    found = Found([], Condition.WHOLE, size - END_SIZE)
    mark = data[-END_SIZE - _MARK_BYTES : -END_SIZE]
    return Journal(changes, owner, found, size, first + len(changes), mark)


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
    with contextlib.suppress(OSError, ModelFileError):  # then the ledger will tell
        descriptor = open_own(journal_path(path), path, os.O_RDWR)
        try:
            if os.fstat(descriptor).st_nlink == 1:
                mark = end_mark(journal.owner, journal.next, model)
                _write_at(descriptor, mark, journal.found.end)
        finally:
            os.close(descriptor)


def write_model(path: str, state: State, journal: Journal | None = None) -> None:
    """Write a model file and remove the journal of the old one; the caller holds its lock.

    journal: the old model's, if it was just read.  A journal that the new file cannot have taken
    in, or not all of it, is kept aside.  Raises ModelFileError.
    """
    old = identity_at(path)
    journal = read_journal(path, old) if journal is None else journal
    try:
        set_aside(path, journal, old)
    except OSError as error:
        raise unwritable(path, error) from error
    save_state(path, state, lambda new: name_successor(path, journal, new))
    remove_journal(path)


def remove_journal(path: str) -> None:
    """Remove the journal beside a model that contains its changes, or has replaced its model."""
    with contextlib.suppress(OSError):  # if it stays, it is ignored as another model's
        os.unlink(journal_path(path))
        sync_folder(folder_of(path))


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
        if journal.found.condition == Condition.UNFINISHED:
            _warn(f"{name}: an unfinished write at its end, never acknowledged, was cut off")
        if not journal.is_damaged:
            return None
        data = read_own(name, path)
        replace_file(aside, lambda file: file.writelines([data]), like=path)
        _warn(f"{aside}: the damaged journal, kept; its good changes are still used")
    else:
        os.rename(name, aside)
        sync_folder(folder_of(path))
        _warn(f"{aside}: the journal of another model, moved out of the way; not learned from")
    return aside


def _warn(text: str) -> None:
    warnings.warn(text, ModelWarning, stacklevel=3)
