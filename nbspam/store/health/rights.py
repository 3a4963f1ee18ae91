"""Who besides the owner can read or change a model: it holds words of private mail.

Secret: what the rights of a file and of the folders above it allow.
"""

import os
import stat
import sys
from collections.abc import Iterator

from nbspam.disk import folder_of

EVERYONE = "everyone on this machine"


def readers(path: str) -> dict[str, list[str]]:
    """Return who can read words of a model: for each, the names of the files."""
    return _allowed(path, stat.S_IRGRP, stat.S_IROTH)


def writers(path: str) -> dict[str, list[str]]:
    """Return who can change a model: for each, the names of the files, or of the folder."""
    found = _allowed(path, stat.S_IWGRP, stat.S_IWOTH)
    if sys.platform == "win32":
        return found
    folder = folder_of(os.path.abspath(path))
    for who in _classes(os.stat(folder), stat.S_IWGRP, stat.S_IWOTH):
        if not os.stat(folder).st_mode & stat.S_ISVTX and _can_enter(folder, who):
            found.setdefault(_name(who), []).append(folder)
    return found


def _allowed(path: str, group_bit: int, others_bit: int) -> dict[str, list[str]]:
    """Return the files of a model that others than the owner have a right to."""
    found: dict[str, list[str]] = {}
    if sys.platform == "win32":
        return found
    for file in _files(path):
        for who in _classes(os.lstat(file), group_bit, others_bit):
            if _can_enter(folder_of(os.path.abspath(file)), who):
                found.setdefault(_name(who), []).append(file)
    return found


def _files(path: str) -> Iterator[str]:
    """Yield the model, its journal, and what was kept of both under other names."""
    folder, name = os.path.split(path)
    for found in sorted(os.listdir(folder or os.curdir)):
        file = os.path.join(folder, found)
        is_part = found == name or found.startswith((f"{name}~", f"{name}.journal"))
        if is_part and not found.endswith(".lock") and stat.S_ISREG(os.lstat(file).st_mode):
            yield file


def _classes(status: os.stat_result, group_bit: int, others_bit: int) -> list[int | None]:
    """Return who has a right: None for everyone, or else the number of a group."""
    if status.st_mode & others_bit:
        return [None]
    return [status.st_gid] if status.st_mode & group_bit else []


def _can_enter(folder: str, group: int | None) -> bool:
    """Return whether a group, or everyone, can get to the files in a folder."""
    return all(_lets_in(os.stat(each), group) for each in (folder, *_parents(folder)))


def _parents(folder: str) -> Iterator[str]:
    while (parent := os.path.dirname(folder)) != folder:
        folder = parent
        yield folder


def _lets_in(status: os.stat_result, group: int | None) -> bool:
    if status.st_mode & stat.S_IXOTH:
        return True
    return group == status.st_gid and bool(status.st_mode & stat.S_IXGRP)


def _name(group: int | None) -> str:
    if group is None:
        return EVERYONE
    import grp

    try:
        return f"group {grp.getgrgid(group).gr_name}"
    except KeyError:
        return f"group {group}"
