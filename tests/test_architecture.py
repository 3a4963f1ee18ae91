"""The rooms of the house, enforced.

Imports cross walls downwards only, no module is in a cycle, a name means one thing in the whole
package, modules and functions can be read in one sitting, and each third-party library is
imported in one place.
"""

import ast
import sys
from functools import cache
from pathlib import Path

import nbspam
from support import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import house

PACKAGE = Path(nbspam.__file__).parent

# From the bottom up.  Rooms between semicolons do not know of each other.  The lobby is the
# modules that stand in no room; `settings` is one that names models, and so stands higher.
ROOMS = """lobby; imap; sources models; settings; mail tables; tokens; counts; classifier
store evaluation; sharing; delivery; server; cli""".replace("\n", "; ").split("; ")
RANK = {room: rank for rank, rooms in enumerate(ROOMS) for room in rooms.split()}
MAX_MODULE, MAX_FUNCTION = 600, 50  # lines
ONLY_IN = {  # libraries that no other room imports
    "mail": "PIL pypdfium2 zxingcpp olefile", "tokens": "regex", "counts": "scipy",
    "classifier": "scipy sklearn", "models": "sklearn", "sharing": "redis psycopg",
    "evaluation": "matplotlib jinja2 markupsafe", "sources": "email fsspec pyarrow",
    "imap": "imapclient keyring",
    "server": "asyncio httptools itsdangerous starlette prometheus_client", "cli": "click rich",
    "nowhere": "joblib",
}  # fmt: skip
Function = ast.FunctionDef | ast.AsyncFunctionDef


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {
    module_name(path): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path != PACKAGE / "__init__.py" and path.stem != "__main__"
}
TREES = {name: ast.parse(path.read_text()) for name, path in MODULES.items()}
FOLDERS = sorted({path.parent for path in MODULES.values()} - {PACKAGE})


def room_of(name: str) -> str:
    head, dot, _ = name.partition(".")
    return head if dot or (PACKAGE / head).is_dir() or head == "settings" else "lobby"


@cache
def imports(name: str) -> frozenset[str]:
    """Return the modules that a module imports, in functions and for type checkers too."""
    found: set[str] = set()
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: write `from nbspam.room.module import name`"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                is_module = full.removeprefix("nbspam.") in MODULES
                found.add(full if is_module else str(node.module))
    return frozenset(found)


def ours(name: str) -> set[str]:
    """Return the modules of nbspam that a module imports, without the face itself."""
    return {t.removeprefix("nbspam.") for t in imports(name) if t.startswith("nbspam.")}


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


def test_a_class_public_function_or_public_constant_has_one_meaning():
    assert house.several_meanings(house.modules_of(PACKAGE)) == {}


def test_modules_and_functions_can_be_read_in_one_sitting():
    modules = {name: len(path.read_text().splitlines()) for name, path in MODULES.items()}
    functions = {
        f"{name}.{node.name}": node.end_lineno - node.lineno + 1
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, Function)
    }

    assert {name: n for name, n in modules.items() if n > MAX_MODULE} == {}
    assert {name: n for name, n in functions.items() if n > MAX_FUNCTION} == {}


def test_a_room_tells_its_secret_and_imports_nothing():
    for folder in FOLDERS:
        tree = ast.parse((folder / "__init__.py").read_text())

        assert ast.get_docstring(tree), folder
        assert len(tree.body) == 1 or folder.name == "models", folder  # models is lazy


def test_each_library_has_its_place():
    for name in MODULES:
        for target in imports(name):
            library = target.split(".")[0]
            allowed = [room for room, libraries in ONLY_IN.items() if library in libraries.split()]
            assert not allowed or room_of(name) in allowed, f"{name} imports {target}"
