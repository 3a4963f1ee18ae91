"""The rooms of the house, enforced: imports cross walls downwards only, libraries stay at home."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import nbspam

PACKAGE = Path(nbspam.__file__).parent

# From the bottom up.  Rooms on one line do not know of each other.
ROOMS = (
    {"lobby"},
    {"sources", "models"},
    {"settings"},  # a module of the lobby that names the models
    {"mail", "tables"},
    {"tokens"},
    {"counts"},
    {"classifier"},
    {"store", "evaluation"},
    {"cli"},
)
RANK = {room: rank for rank, rooms in enumerate(ROOMS) for room in rooms}
MAX_LOBBY, MAX_ROOM = 14, 12  # modules that one sees at a glance


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {
    module_name(path): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path != PACKAGE / "__init__.py" and path.stem != "__main__"
}


def room_of(name: str) -> str:
    head, dot, _ = name.partition(".")
    return head if dot or (PACKAGE / head).is_dir() or head == "settings" else "lobby"


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write `from nbspam.room.module import name`"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                is_module = full.removeprefix("nbspam.") in MODULES
                yield full if is_module else str(node.module)


def ours(path: Path) -> set[str]:
    found = {t.removeprefix("nbspam.") for t in imports(path) if t.startswith("nbspam.")}
    return found - {"__version__"}


@pytest.mark.parametrize("name", MODULES)
def test_imports_cross_walls_downwards_only(name):
    room = room_of(name)
    for target in ours(MODULES[name]):
        other = room_of(target)
        assert other == room or RANK[other] < RANK[room], f"{name} imports {target}"


if __name__ == "__main__":
    for n in MODULES:
        for t in sorted(ours(MODULES[n])):
            a, b = room_of(n), room_of(t)
            if a != b and RANK[b] >= RANK[a]:
                print(n, "->", t)
