"""Folders at URLs, of which the file system lists the names.

Secret: what listings look like, and how many requests they cost.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from nbspam.sources.columns import SILENT, Listener
from nbspam.sources.places.folders import (
    SEQUENCES,
    Folder,
    Tree,
    file_kind,
    folder_of,
    is_hidden,
)
from nbspam.sources.places.urls import asked, file_system

MANY = 10_000  # files of one message each, beyond which the user gets advice


class UrlTree(Tree):
    """Folders at URLs."""

    separator = "/"

    def __init__(self, listener: Listener = SILENT) -> None:
        self._listener = listener
        self._n_single: int | None = 0  # files of one message each; None: it was said
        self._last: tuple[str, Folder] | None = None

    def scan(self, path: str) -> Folder:
        """Return the files and folders in a folder; raises NbspamError."""
        place = self.identity(path)
        if self._last is None or self._last[0] != place:
            folder = asked(path, partial(_folder_at, path))
            self._last = place, folder
            self._advise(folder)
        return self._last[1]

    def _advise(self, folder: Folder) -> None:
        """Say once what to do about many files of one message each."""
        if self._n_single is None:
            return
        self._n_single += sum(file_kind(name) == "eml" for name in folder.files)
        if self._n_single > MANY:
            self._n_single = None
            self._listener.notice(
                f"more than {MANY:,} files of one message each; every one is a request of its own,"
                " a million take hours; pack them into mbox, tar or parquet files"
            )

    def identity(self, path: str) -> str:
        """Return the URL, because object stores have no links."""
        return path.rstrip("/")

    def has_folder(self, path: str) -> bool:
        """Return whether there is a folder at a URL."""
        above, _, name = path.rstrip("/").rpartition("/")
        return name in self.scan(above).folders


def _folder_at(url: str) -> Folder:
    system, path = file_system(url)
    files: list[str] = []
    folders: list[str] = []
    has_sequences = False
    for name, is_folder in _entries(system, path):
        if is_hidden(name):
            has_sequences |= name == SEQUENCES
        else:
            (folders if is_folder else files).append(name)
    return folder_of(files, folders, has_sequences)


def _entries(system: Any, path: str) -> Iterator[tuple[str, bool]]:
    """Yield the name of everything in a folder, and whether it is a folder."""
    own = path.rstrip("/")
    for entry in system.ls(path, detail=True):
        full = entry["name"].rstrip("/")
        if full != own:  # some stores have an empty object for each folder
            yield full.rpartition("/")[2], entry["type"] == "directory"
