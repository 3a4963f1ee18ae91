"""The rooms of the house, enforced.

Imports cross walls downwards only, no room has a cycle, no room has too many modules to see at a
glance, and each third-party library is imported in one place.  Run as a program, this file
prints the room graph.
"""

import ast
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

import nbspam

PACKAGE = Path(nbspam.__file__).parent

# From the bottom up.  Rooms on one line do not know of each other.  The lobby is the modules
# that stand in no room; `settings` is one of them that names models, and so stands higher.
ROOMS = (
    {"lobby"},
    {"sources", "models"},
    {"settings"},
    {"mail", "tables"},
    {"tokens"},
    {"counts"},
    {"classifier"},
    {"store", "evaluation"},
    {"server"},
    {"cli"},
)
RANK = {room: rank for rank, rooms in enumerate(ROOMS) for room in rooms}
MAX_LOBBY, MAX_ROOM, MAX_LINES = 14, 12, 350
ONLY_IN = {
    "click": {"cli"},
    "rich": {"cli"},
    "regex": {"tokens"},
    "scipy": {"counts", "classifier"},
    "sklearn": {"models", "classifier"},
    "matplotlib": {"evaluation"},
    "jinja2": {"evaluation"},
    "markupsafe": {"evaluation"},
    "email": {"sources"},
    "fsspec": {"sources"},
    "pyarrow": {"sources"},
    "joblib": set(),
    "asyncio": {"server"},
    "httptools": {"server"},
    "prometheus_client": {"server"},
}


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {
    module_name(path): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path != PACKAGE / "__init__.py" and path.stem != "__main__"
}
FOLDERS = sorted({path.parent for path in MODULES.values()})


def room_of(name: str) -> str:
    head, dot, _ = name.partition(".")
    return head if dot or (PACKAGE / head).is_dir() or head == "settings" else "lobby"


@cache
def imports(path: Path) -> frozenset[str]:
    """Return the modules that a file imports, in functions and for type checkers too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write `from nbspam.room.module import name`"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                is_module = full.removeprefix("nbspam.") in MODULES
                found.add(full if is_module else str(node.module))
    return frozenset(found)


def ours(name: str) -> set[str]:
    """Return the modules of nbspam that a module imports, without the face itself."""
    found = imports(MODULES[name])
    return {t.removeprefix("nbspam.") for t in found if t.startswith("nbspam.")}


def arrows() -> set[tuple[str, str]]:
    """Return the room graph: which room imports from which."""
    pairs = {(room_of(name), room_of(target)) for name in MODULES for target in ours(name)}
    return {(room, other) for room, other in pairs if room != other}


def test_every_room_has_a_rank():
    assert {room_of(name) for name in MODULES} == set(RANK)


def test_imports_cross_walls_downwards_only():
    for name in MODULES:
        for target in ours(name):
            room, other = room_of(name), room_of(target)
            assert room == other or RANK[other] < RANK[room], f"{name} imports {target}"


def test_no_imports_form_a_cycle():
    # Leaves are taken off again and again; what is left when there are none is a cycle.
    left = {name: ours(name) for name in MODULES}
    while leaves := [name for name, targets in left.items() if not targets & left.keys()]:
        for name in leaves:
            del left[name]

    assert not left


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: module_name(path / "__init__.py"))
def test_a_room_has_few_modules(folder):
    if folder != PACKAGE / "cli" / "commands":  # one for each command
        modules = [path for path in folder.glob("*.py") if not path.stem.startswith("__")]
        assert len(modules) <= (MAX_LOBBY if folder == PACKAGE else MAX_ROOM)


@pytest.mark.parametrize("folder", [f for f in FOLDERS if f != PACKAGE], ids=lambda f: f.name)
def test_a_room_tells_its_secret_and_imports_nothing(folder):
    tree = ast.parse((folder / "__init__.py").read_text())

    assert ast.get_docstring(tree)
    if folder.name != "models":  # which is lazy
        assert len(tree.body) == 1


def test_a_module_is_short_enough_to_read():
    lengths = {name: len(path.read_text().splitlines()) for name, path in MODULES.items()}

    assert {name: n for name, n in lengths.items() if n > MAX_LINES} == {}


def test_each_library_has_its_place():
    for name, path in MODULES.items():
        for target in imports(path):
            allowed = ONLY_IN.get(target.split(".")[0])
            assert allowed is None or room_of(name) in allowed, f"{name} imports {target}"


if __name__ == "__main__":
    graph = arrows()
    for room in reversed(list(chain.from_iterable(map(sorted, ROOMS)))):
        below = sorted((o for r, o in graph if r == room), key=lambda o: (-RANK[o], o))
        print(f"{room:11} -> {', '.join(below) or '(nothing)'}")
