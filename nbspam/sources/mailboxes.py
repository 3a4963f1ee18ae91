"""Reading mbox streams, walking folders of messages, and reading TREC indexes.

Damage is a ValueError without the file's name, which the caller adds.

Secret: where one message ends and the next begins, and the order of files.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import BinaryIO, NamedTuple

# Longer messages are truncated: mail servers refuse them, and memory must stay bounded.
MAX_MESSAGE = 64 << 20
# Large enough to make the calls cheap, small enough to stay in the processor's cache.
_CHUNK = 1 << 18
_LOOKAHEAD = 1024  # bytes that hold a From_ line and the start of the next line
# A separator has a date ("Thu Aug 22 12:36") or a header right below it; a sentence that
# begins with "From " after a blank line has neither.
_FROM_LINE = re.compile(
    rb"From (?:[^\n]*[A-Z][a-z]{2} +[A-Z][a-z]{2} +\d\d? +\d\d?:\d\d|[^\n]*\n[!-9;-~]+:)"
)
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
_DIGITS = re.compile(r"(\d+)")
_MBOX_NAMES = tuple(mbox + end for mbox in (".mbox", ".mbx") for end in ("", ".gz", ".bz2", ".xz"))
_INDEX_LINE_BYTES = 1 << 16
_HAM_AND_SPAM = frozenset(("ham", "spam"))


def begins_with_from_line(head: bytes) -> bool:
    """Return whether bytes begin with the From_ line of an mbox."""
    return _FROM_LINE.match(head, 0, _LOOKAHEAD) is not None


def read_chunks(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the stream in pieces of a size that suits `mbox_messages`."""
    while chunk := stream.read(_CHUNK):
        yield chunk


def mbox_messages(chunks: Iterable[bytes], limit: int = MAX_MESSAGE) -> Iterator[bytes]:
    """Yield each message of an mbox unchanged, its From_ line included.

    Text before the first From_ line is a message too, unless it is blank.
    A message of more than `limit` bytes is truncated.
    """
    buffer = bytearray()
    searched = 0
    for chunk in chain(chunks, (b"",)):
        buffer += chunk
        # A candidate close to the end waits until the two lines that decide are there.
        horizon = len(buffer) - _LOOKAHEAD if chunk else len(buffer)
        start = 0
        while (found := _find_separator(buffer, searched, horizon)) >= 0:
            message = bytes(buffer[start : min(found, start + limit)])
            if not message.isspace():
                yield message
            start, searched = found, found + 1
        searched = max(searched, horizon - 6) - start
        del buffer[:start]
        if len(buffer) > limit + _LOOKAHEAD + 8:
            # Keep the tail and two bytes of context: a separator may begin in it.
            del buffer[limit : -_LOOKAHEAD - 8]
            searched = limit + 2
    if buffer and not buffer.isspace():
        yield bytes(buffer[:limit])


def _find_separator(buffer: bytearray, start: int, end: int) -> int:
    """Return where the next From_ line after a blank line begins, or -1."""
    at = buffer.find(b"\nFrom ", start, max(end, 0))
    while at >= 0:
        blank_before = at == 0 or buffer.endswith((b"\n", b"\n\r"), max(at - 2, 0), at)
        if blank_before and _FROM_LINE.match(buffer, at + 1, at + _LOOKAHEAD):
            return at + 1
        at = buffer.find(b"\nFrom ", at + 1, end)
    return -1


def unwrap(raw: bytes) -> bytes:
    """Return a message of an mbox as it was sent.

    Removes the From_ line, the blank line at the end, and one ">" of every line quoted the
    mboxrd way (">From ", ">>From ").
    """
    message = raw.partition(b"\n")[2] if raw.startswith(b"From ") else raw
    for blank in (b"\r\n", b"\n"):
        if message == blank or message.endswith(b"\n" + blank):
            message = message[: -len(blank)]
            break
    if b">From " in message:
        message = _QUOTED_FROM.sub(rb"\1", message)
    return message


class Folder(NamedTuple):
    """The names in a folder, in natural order, without hidden files and editors' backups."""

    files: list[str]
    folders: list[str]
    has_sequences: bool

    def kind(self, may_be_classes: bool) -> str:
        """Return "maildir", "mh", "classes" or "tree".

        may_be_classes: sub-folders may be classes.
        """
        if "cur" in self.folders and "new" in self.folders:
            return "maildir"
        if self.has_sequences and self.numbered():
            return "mh"
        names = {name.lower() for name in self.folders}
        if may_be_classes and names and (not self.files or names >= _HAM_AND_SPAM):
            return "classes"
        return "tree"

    def numbered(self) -> list[str]:
        """Return the files whose names are numbers."""
        return [name for name in self.files if name.isascii() and name.isdigit()]


def walk(path: str, label: str | None, kind: str | None) -> Iterator[tuple[str, str | None, str]]:
    """Yield (path, label, kind) of the files of mail below a folder.

    The kind yielded is "eml", "mbox", or "unsure" where only the content can tell.
    kind: that of the folder, or of each file in it; None: found out.

    The classes are its sub-folders or, if some of these are parts of a corpus, the folders in
    the parts; files elsewhere then have no class.
    """
    # Folders already read, by device and inode: links may form circles.
    seen: set[tuple[int, int]] = set()
    # A list instead of recursion, so that folders may be nested to any depth.
    waiting = [(path, label, kind, label is None)]
    while waiting:
        path, label, kind, may_be_classes = waiting.pop()
        status = os.stat(path)
        if (status.st_dev, status.st_ino) in seen:
            continue
        try:
            folder = _scan(path)
        except OSError:
            if not seen:
                raise
            yield path, label, "eml"  # reading it will say why it cannot be read
            continue
        found = kind or folder.kind(may_be_classes)
        below = os.path.join(path, "")
        parts = set() if seen or kind or not may_be_classes else _parts(below, folder.folders)
        seen.add((status.st_dev, status.st_ino))
        if found == "maildir":
            yield from ((name, label, "eml") for name in _maildir_files(below, folder))
            continue
        if found == "mh":
            yield from ((below + name, label, "eml") for name in folder.numbered())
            continue
        if found == "classes":
            kind = None
        else:
            yield from ((below + name, label, _file_kind(name, found)) for name in folder.files)
        for name in reversed(folder.folders):
            is_class = found == "classes" and label is None and not parts
            waiting.append((below + name, name if is_class else label, kind, name in parts))


def _parts(below: str, names: Sequence[str]) -> set[str]:
    """Return the sub-folders that are parts of a corpus, and not classes.

    Those are all that hold ham/ and spam/ or, if there are none, those called train and test
    (or ...train, ...test) that hold the same folders.
    """
    if _HAM_AND_SPAM & {name.lower() for name in names}:
        return set()
    if of_mail := {name for name in names if _holds_ham_and_spam(below + name)}:
        return of_mail
    halves = {name for name in names if name.lower().endswith(("train", "test"))}
    classes = {tuple(_scan(below + name).folders) for name in halves}
    return halves if len(halves) > 1 and len(classes) == 1 and any(classes) else set()


def _holds_ham_and_spam(path: str) -> bool:
    """Return whether a folder has both sub-folders, however they are capitalised."""
    return all(
        any(os.path.isdir(os.path.join(path, n)) for n in (name, name.title(), name.upper()))
        for name in _HAM_AND_SPAM
    )


def _maildir_files(below: str, folder: Folder) -> Iterator[str]:
    parts = [name for name in ("cur", "new") if name in folder.folders]
    if not parts:
        raise ValueError("not a Maildir (no cur/ or new/); give the folder above them")
    for part in parts:
        for name in _scan(below + part).files:
            yield os.path.join(below, part, name)


def _file_kind(name: str, folder_kind: str) -> str:
    """Return the kind of a file in a tree, "unsure" if its name does not tell."""
    if folder_kind != "tree":
        return folder_kind
    if name.lower().endswith(_MBOX_NAMES):
        return "mbox"
    return "eml" if "." in name or _DIGITS.search(name) else "unsure"


def _scan(path: str) -> Folder:
    """Return the files and folders in a folder, without devices, sockets and FIFOs.

    Links that lead nowhere count as files, so that reading them reports what is missing.
    """
    files: list[str] = []
    folders: list[str] = []
    has_sequences = False
    with os.scandir(path) as entries:
        for entry in entries:
            name = entry.name
            if name.startswith(".") or name.endswith(("~", "#")):
                has_sequences |= name == ".mh_sequences"
            elif _is(entry.is_dir):
                folders.append(name)
            elif _is(entry.is_file) or _is_dead_or_barred(entry):
                files.append(name)
    return Folder(_natural_order(files), _natural_order(folders), has_sequences)


def _is(question: Callable[[], bool]) -> bool:
    """Return the answer of DirEntry.is_dir or is_file; False where it fails."""
    try:
        return question()
    except OSError:  # a link to itself, or through a folder without permission
        return False


def _is_dead_or_barred(entry: "os.DirEntry[str]") -> bool:
    """Return whether a link is dead, leads to itself, or to where there are no rights."""
    try:
        entry.stat()
    except OSError:
        return True
    return False


def _natural_order(names: Iterable[str]) -> list[str]:
    """Return names sorted so that the first two numbers in each compare by value: 2 before 10."""
    # Only two numbers: names of message files are full of digits (times, hashes).
    return sorted(sorted(names), key=_natural_key)


def _natural_key(name: str) -> list[str | int]:
    parts: list[str | int] = list(_DIGITS.split(name, 2))
    parts[1::2] = map(int, parts[1::2])
    return parts


def parse_index_line(line: bytes) -> tuple[str, str] | None:
    """Return (label, path) of a line like "spam ../data/inmail.1"; None if it has no path."""
    words = line.split(None, 1)
    if len(words) < 2:
        return None
    return words[0].decode("utf-8", "replace"), os.fsdecode(words[1].rstrip())


def index_entries(stream: BinaryIO) -> Iterator[tuple[str, str]]:
    """Yield (label, path) for each line of a TREC index, skipping blank lines."""
    number = 0
    while line := stream.readline(_INDEX_LINE_BYTES):
        number += 1
        if not line.strip():
            continue
        entry = parse_index_line(line)
        if entry is None:
            raise ValueError(f"line {number}: not `class path`; correct the index")
        yield entry
