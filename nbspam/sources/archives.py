"""Messages in archives, read in the archive's order and never unpacked to disk.

The rules are those of a folder with the archive's contents.  They need the names of all
folders before the first message, so an archive is read twice: for its names, which also shows
whether it is complete, and for its messages.
"""

import io
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, BinaryIO, NamedTuple, Self, cast

from nbspam.charsets import is_utf8
from nbspam.sources import mailboxes
from nbspam.sources.files import IMPLAUSIBLE, PACKED, is_implausible, kind_by_name

_NESTED = "an archive in an archive; unpack the outer one"
_LINK = "a link; unpack it to read its target"
_CUT_OFF = "cut off, its end is missing; copy it again from its source"
_HOLES = "has a file with holes (sparse); unpack it"
# Tar's headers that say more about the next member, or about all: long names, attributes.
_EXTENSIONS = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.XGLTYPE,
)
_LONGEST = 1 << 15  # bytes of such a header; tarfile searches it in quadratic time
_MOST_FIELDS = 1000  # of headers about all members, which tarfile copies for each
_ENCRYPTED, _IN_UTF8 = 1, 1 << 11  # flags of a member of a ZIP archive
# Windows' charsets of names in a ZIP archive without the second flag; macOS writes UTF-8 there.
_OF_WINDOWS = ("gb18030", "big5hkscs", "cp932", "cp949", "cp866", "cp874")
_NAMES = 1 << 13  # bytes of names, from which it is guessed
_FILE_TYPE, _FILE, _SYMLINK = 0o170000, 0o100000, 0o120000  # bits of a Unix file's mode
_MOST_FOLDERS, _DEEPEST = 100_000, 100
_NOISE = "__MACOSX"  # folder of what macOS adds to a ZIP archive
# The errors, besides OSError, that the two libraries raise on damaged archives.
_DAMAGES = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    RuntimeError,  # NotImplementedError and RecursionError too
    EOFError,
    zlib.error,
    lzma.LZMAError,
    OverflowError,
    ValueError,
    IndexError,
)


class Member(NamedTuple):
    """A file or folder in an archive.  Its data can be read until the next member is asked for."""

    name: str
    is_folder: bool = False
    problem: str | None = None  # why it cannot be read
    open: Callable[[], BinaryIO] = io.BytesIO


class _ArchiveError(ValueError):
    """Describes a fault of an archive in our words."""


@contextmanager
def _damage_in_words() -> Iterator[None]:
    try:
        yield
    except _ArchiveError:
        raise
    except _DAMAGES as error:
        reason = f"damaged ({error}); copy it again from its source"
        if isinstance(error, NotImplementedError):  # of a way to compress or encrypt
            reason = f"{error}; unpack it"
        elif "unexpected end of data" in str(error):
            reason = _CUT_OFF
        raise _ArchiveError(reason) from error


class _TarHeader(tarfile.TarInfo):
    """A checked header.

    tarfile takes a damaged or missing header for the end of the archive, and reads headers of
    any length.
    """

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str, **more: bool) -> Self:
        if len(buf) < tarfile.BLOCKSIZE:
            raise _ArchiveError(_CUT_OFF)
        parse = getattr(super(), "_frombuf", super().frombuf)
        try:
            header: Self = parse(buf, encoding, errors, **more)
        except tarfile.HeaderError as error:
            if not any(buf):  # the mark at the end
                raise
            raise ValueError(str(error)) from error
        if header.type in _EXTENSIONS and header.size > _LONGEST:
            raise ValueError(f"a header of {header.size:,} bytes")
        if header.type == tarfile.GNUTYPE_SPARSE:
            raise _ArchiveError(_HOLES)
        return header

    _frombuf = frombuf  # newer versions of tarfile (Python 3.14.4) call this one


def _tar_members(stream: BinaryIO) -> Iterator[Member]:
    with (
        _damage_in_words(),
        tarfile.open(fileobj=stream, mode="r|", tarinfo=_TarHeader, encoding="utf-8") as archive,
    ):
        while (info := archive.next()) is not None:
            vars(archive)["members"].clear()  # tarfile would keep them all
            if (n_fields := len(archive.pax_headers)) > _MOST_FIELDS:
                raise ValueError(f"{n_fields:,} fields for every member")
            if info.size < 0:
                raise ValueError("a negative size")
            if any(key.startswith("GNU.sparse.") for key in info.pax_headers):
                raise _ArchiveError(_HOLES)
            if info.islnk() or info.issym():
                yield Member(info.name, problem=_LINK)
            elif info.isdir():
                yield Member(info.name, is_folder=True)
            elif info.isreg():
                yield Member(info.name, open=partial(_opened, archive.extractfile, info))


def _zip_members(stream: BinaryIO) -> Iterator[Member]:
    size = stream.seek(0, os.SEEK_END)
    with _damage_in_words():
        archive = zipfile.ZipFile(stream)
    n_read, charset = 0, _charset_of_names(archive)
    for info in archive.infolist():
        if info.flag_bits & _ENCRYPTED:
            raise ValueError("encrypted; unpack it with its password")
        # As stored, because Python 3.13 may take `filename` from a field in UTF-8 instead.
        name = info.orig_filename.partition("\0")[0]
        if not info.flag_bits & _IN_UTF8:
            name = name.encode("cp437", "replace").decode(charset, "replace")
        name = name.replace("\\", "/")
        file_type = info.external_attr >> 16 & _FILE_TYPE
        if name.endswith("/"):
            yield Member(name, is_folder=True)
        elif file_type == _SYMLINK:
            yield Member(name, problem=_LINK)
        elif file_type in (0, _FILE):
            n_read += info.file_size
            if is_implausible(n_read, size):
                raise ValueError(IMPLAUSIBLE)
            yield Member(name, open=partial(_opened, archive.open, info))


# They yield files, folders and links, and raise ValueError if an archive is damaged or encrypted;
# that or InputError if it is implausible.
MEMBERS = {"tar": _tar_members, "zip": _zip_members}


def _charset_of_names(archive: zipfile.ZipFile) -> str:
    """Return the charset of the names that no flag declares as UTF-8; zipfile reads cp437."""
    names = (info.orig_filename for info in archive.infolist() if not info.flag_bits & _IN_UTF8)
    stored = "\n".join(names).encode("cp437", "replace")
    if is_utf8(stored):
        return "utf-8"
    from nbspam.alphabets import from_beyond_ascii, likely_charset

    charset = likely_charset(from_beyond_ascii(stored, _NAMES))
    return charset if charset in _OF_WINDOWS else "cp437"


@_damage_in_words()
def _opened(open_member: Callable[[Any], Any], info: Any) -> BinaryIO:
    return cast("BinaryIO", _MemberData(open_member(info)))


class _MemberData(io.RawIOBase):
    """The data of a member.  Any fault in them is a ValueError."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__()
        self._stream = stream

    def readable(self) -> bool:  # pyarrow asks
        return True

    @_damage_in_words()
    def read(self, size: int = -1, /) -> bytes:
        return self._stream.read(size)

    def tell(self) -> int:
        return self._stream.tell()


def files_in(
    opened: Callable[[], BinaryIO], kind: str, label: str | None
) -> Iterator[tuple[Member, str | None, str]]:
    """Yield each file that holds messages, its class, and "eml", "mbox" or "unsure".

    opened: opens the archive's stream.  kind: tar or zip.  label: the class of all of them.
    Raises ValueError, InputError, OSError.
    """
    with opened() as stream:
        tree = _ArchiveTree(MEMBERS[kind](stream))
    where = {place.below: place for place in mailboxes.places(tree.top(), label, None, tree)}
    with opened() as stream:
        for member in MEMBERS[kind](stream):
            folder, name = _split(member.name)
            place = where.get(tree.below(folder))
            if member.is_folder or place is None or mailboxes.is_hidden(name):
                continue
            found = place.kind_of(name)
            if found is None:
                continue
            if kind_by_name(name) in PACKED:
                member = member._replace(problem=_NESTED)
            content = "unsure" if found == "mail" else found
            yield member._replace(name=place.below + name), place.label_of(name), content


def _split(name: str) -> tuple[str, str]:
    """Return the folder and the name of a member, whose path can only lead downwards."""
    *folders, name = [part for part in name.split("/") if part not in ("", ".", "..")] or [""]
    return "/".join(folders), name


class _ArchiveTree(mailboxes.FolderTree):
    """The folders in an archive.  Of each it keeps enough files to tell the folder's kind."""

    separator = "/"

    def __init__(self, found: Iterable[Member]) -> None:
        self._folders: dict[str, mailboxes.Folder] = {"": mailboxes.Folder([], [], False)}
        seen: set[tuple[str, bool, str | None]] = set()
        for member in found:
            path, name = _split(member.name)
            if member.is_folder:
                self._add_folder(self.below(path) + name)
            elif self._add_folder(path):
                folder = self._folders[path]
                if name == mailboxes.SEQUENCES:
                    self._folders[path] = folder._replace(has_sequences=True)
                elif not mailboxes.is_hidden(name):
                    alike = path, mailboxes.is_number(name), mailboxes.class_prefix(name)
                    if alike not in seen:
                        seen.add(alike)
                        folder.files.append(name)

    def _add_folder(self, path: str) -> bool:
        """Add a folder and its parents; return whether it can hold messages."""
        if path in self._folders:
            return True
        above, _, name = path.rpartition("/")
        if path.count("/") > _DEEPEST:
            raise ValueError(
                f"folders nested more than {_DEEPEST} deep, as mail is not; unpack it"
            )
        if mailboxes.is_hidden(name) or name == _NOISE or not self._add_folder(above):
            return False
        if len(self._folders) >= _MOST_FOLDERS:
            raise ValueError(f"more than {_MOST_FOLDERS:,} folders, as mail has not; unpack it")
        self._folders[above].folders.append(name)
        self._folders[path] = mailboxes.Folder([], [], False)
        return True

    def top(self) -> str:
        """Return the folder that the archive stands for.

        It is the only folder at the top if that holds folders, as tar writes a corpus.  But a
        folder that is named ham or spam states a class, and Gmail's Takeout is read as a whole.
        """
        path = ""
        while True:
            folder = self._folders[path]
            if folder.kind(True) != "classes" or len(folder.folders) != 1:
                return path
            (name,) = folder.folders
            below = self.below(path) + name
            inner = self._folders[below]
            is_mailbox = inner.kind(True) in ("maildir", "mh")
            is_tree = inner.folders or mailboxes.name_classes(inner.files)
            if name.lower() in mailboxes.CLASS_FOLDERS or is_mailbox or not is_tree:
                return path
            path = below

    def scan(self, path: str) -> mailboxes.Folder:
        """Return the folder at a path."""
        folder = self._folders[path]
        return folder._replace(folders=mailboxes.without_attachments(folder.folders))

    def identity(self, path: str) -> object:
        """Return the path: there are no links."""
        return path

    def has_folder(self, path: str) -> bool:
        """Return whether there is such a folder."""
        return path in self._folders
