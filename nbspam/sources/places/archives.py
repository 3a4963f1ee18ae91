"""Messages in archives: read from the archive's stream, in its order, never unpacked to disk.

The rules are those of a folder that holds what the archive holds.  They need the names of all
folders before the first message is read, so the archive is read twice: first the names, which
also shows whether it is whole, then the messages.

Secret: which folders an archive has, and how much of them is kept in memory.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, NamedTuple

from nbspam.sources.mailboxes import packed_kind
from nbspam.sources.places.folders import (
    HAM_AND_SPAM,
    SEQUENCES,
    Folder,
    Tree,
    is_hidden,
    places,
)
from nbspam.sources.places.members import Member

_MOST_FOLDERS, _DEEPEST = 100_000, 100
_NOISE = "__MACOSX"  # folder of what macOS adds to a ZIP archive


class Found(NamedTuple):
    """A file in an archive that holds messages."""

    name: str
    label: str | None
    kind: str  # "eml", "mbox" or "unsure"
    problem: str | None  # why it cannot be read
    open: Callable[[], BinaryIO]


def files_in(opened: Callable[[], BinaryIO], kind: str, label: str | None) -> Iterator[Found]:
    """Yield the files of an archive that hold messages; raises ValueError, InputError, OSError.

    opened: opens the archive's stream.  kind: tar or zip.  label: the class of all of them.
    """
    with opened() as stream:
        tree = _Shelves(members(stream, kind))
    where = {place.below: place for place in places(tree.top(), label, None, tree)}
    with opened() as stream:
        for member in members(stream, kind):
            folder, name = _split(member.name)
            place = where.get(tree.below(folder))
            if member.is_folder or place is None or is_hidden(name):
                continue
            found, problem = place.kind_of(name), member.problem
            if found is not None and packed_kind(name):
                problem = "an archive in an archive; unpack the outer one"
            if found is not None:
                path = place.below + name
                yield Found(path, place.label, found, problem, member.open)


def members(stream: BinaryIO, kind: str) -> Iterator[Member]:
    """Yield the members of an archive; kind: tar or zip."""
    if kind == "tar":
        from nbspam.sources.places.tars import tar_members

        return tar_members(stream)
    from nbspam.sources.places.zips import zip_members

    return zip_members(stream)


def _split(name: str) -> tuple[str, str]:
    """Return the folder and the name of a member, whose path can only lead downwards."""
    *folders, name = [part for part in name.split("/") if part not in ("", ".", "..")] or [""]
    return "/".join(folders), name


class _Shelves(Tree):
    """The folders in an archive.  Of the files in each only as much is kept as tells its kind."""

    separator = "/"

    def __init__(self, found: Iterable[Member]) -> None:
        self._folders: dict[str, Folder] = {"": Folder([], [], False)}
        for member in found:
            folder, name = _split(member.name)
            if member.is_folder:
                self._add_folder(self.below(folder) + name)
            elif self._add_folder(folder):
                self._add_file(folder, name)

    def _add_file(self, path: str, name: str) -> None:
        folder = self._folders[path]
        is_number = name.isascii() and name.isdigit()
        if name == SEQUENCES:
            self._folders[path] = folder._replace(has_sequences=True)
        elif not is_hidden(name) and (not folder.files or (is_number and not folder.numbered())):
            folder.files.append(name)

    def _add_folder(self, path: str) -> bool:
        """Add a folder and those that it is in; return whether it can hold messages."""
        if path in self._folders:
            return True
        above, _, name = path.rpartition("/")
        if path.count("/") > _DEEPEST:
            raise ValueError(
                f"folders nested more than {_DEEPEST} deep, as mail is not; unpack it"
            )
        if is_hidden(name) or name == _NOISE or not self._add_folder(above):
            return False
        if len(self._folders) >= _MOST_FOLDERS:
            raise ValueError(f"more than {_MOST_FOLDERS:,} folders, as mail has not; unpack it")
        self._folders[above].folders.append(name)
        self._folders[path] = Folder([], [], False)
        return True

    def top(self) -> str:
        """Return the folder that the archive stands for.

        It is the only one at the top if it only holds folders, as tar writes a corpus; but a
        folder that is named ham or spam states a class.
        """
        path = ""
        while True:
            folder = self._folders[path]
            if folder.files or len(folder.folders) != 1:
                return path
            (name,) = folder.folders
            below = self.below(path) + name
            if name.lower() in HAM_AND_SPAM or self._folders[below].kind(True) != "classes":
                return path
            path = below

    def scan(self, path: str) -> Folder:
        """Return the folder at a path."""
        return self._folders[path]

    def identity(self, path: str) -> object:
        """Return the path: there are no links."""
        return path

    def has_folder(self, path: str) -> bool:
        """Return whether there is such a folder."""
        return path in self._folders
