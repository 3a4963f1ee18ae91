"""Print how much a newcomer has to hold: modules, lines, functions, classes and names.

    python tools/house.py [PACKAGE]       the figures of a package (default: nbspam)
    python tools/house.py --tree          lines of each folder
    python tools/house.py --prose         sentences that read as translated, docs included

"Used once" counts private functions whose name is read at one place of their package.
"""

import ast
import os
import re
import subprocess
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef

BY_CONTRACT = frozenset({"main"})  # of each module that is run as a program
# Sentences that read as translated: a relative without its noun, and archaic joints.
HEADLESS = re.compile(
    r"(?:(?:Add|Close|Hear|Print|Return|Say|Says|Show|Tell|Yield) )?(?:what|who|whoever|those)\b",
    re.IGNORECASE,
)
ARCHAIC = re.compile(
    r"\b(?:anew|meanwhile|beforehand|to and fro|of its own accord)\b", re.IGNORECASE
)
IMPORTED = """
import sys
from nbspam.cli.main import exit_status
exit_status(["classify", "-m", sys.argv[1], sys.argv[2]])
print(sum(name.split(".")[0] == "nbspam" for name in sys.modules))
"""


def modules_of(package: Path) -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text()) for path in sorted(package.rglob("*.py"))}


def functions_of(tree: ast.Module) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def has_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Module | ast.ClassDef | Function) and bool(ast.get_docstring(node))


def kinds_of_lines(path: Path, tree: ast.Module) -> Counter[str]:
    """Return how many lines are code, docstrings, imports, comments and blank."""
    lines = path.read_text().splitlines()
    kind = ["code" if line.strip() else "blank" for line in lines]
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#"):
                kind[token.start[0] - 1] = "comments"
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            name, first, last = "imports", node.lineno, node.end_lineno
        elif has_docstring(node):
            text = node.body[0]  # type: ignore[attr-defined]
            name, first, last = "docstrings", text.lineno, text.end_lineno
        else:
            continue
        kind[first - 1 : last] = [name] * ((last or first) - first + 1)
    return Counter(kind)


def public_definitions(tree: ast.Module) -> Iterator[str]:
    """Yield a module's classes (private ones too), public functions and public constants."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name.lstrip("_")
        elif isinstance(node, Function) and not node.name.startswith("_"):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            stored = (each for each in ast.walk(node) if isinstance(each, ast.Name))
            names = (each.id for each in stored if isinstance(each.ctx, ast.Store))
            # A type variable has one letter, or is not in capitals.
            yield from (name for name in names if re.fullmatch(r"[A-Z][A-Z0-9_]+", name))


def several_meanings(trees: dict[Path, ast.Module]) -> dict[str, list[Path]]:
    """Return each name that more than one module defines, and those modules."""
    places = defaultdict(list)
    for path, tree in trees.items():
        for name in set(public_definitions(tree)) - BY_CONTRACT:
            places[name].append(path)
    return {name: paths for name, paths in sorted(places.items()) if len(paths) > 1}


def used_once(trees: dict[Path, ast.Module]) -> list[str]:
    """Return the private functions that one place reads, but for methods of several classes."""
    read: Counter[str] = Counter()
    private: Counter[str] = Counter()
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                read[node.id] += 1
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                read[node.attr] += 1
        private.update(f.name for f in functions_of(tree) if re.match(r"_[^_]", f.name))
    return sorted(name for name, n in private.items() if n == read[name] == 1)


def imported_by_classify(package: Path) -> str:
    """Return how many modules of ours `classify` of one message imports."""
    model, message = os.environ.get("NBSPAM_MODEL"), os.environ.get("MESSAGE")
    if not model or not message:
        return "unknown: set NBSPAM_MODEL and MESSAGE"
    command = [sys.executable, "-c", IMPORTED, model, message]
    answer = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=package.resolve().parent
    )
    return answer.stdout.splitlines()[-1]


def figures(package: Path) -> None:
    trees = modules_of(package)
    kinds: Counter[str] = Counter()
    for path, tree in trees.items():
        kinds += kinds_of_lines(path, tree)
    lengths = {path: len(path.read_text().splitlines()) for path in trees}
    functions = [
        (node.end_lineno or 0) - node.lineno + 1
        for tree in trees.values()
        for node in functions_of(tree)
    ]
    classes = sum(
        isinstance(node, ast.ClassDef) for tree in trees.values() for node in ast.walk(tree)
    )
    several = several_meanings(trees)
    print(f"modules             {len(trees)}")
    print(f"  above 600 lines   {sum(n > 600 for n in lengths.values())}")
    print(f"  below 60 lines    {sum(n < 60 for n in lengths.values())}")
    print(f"lines               {sum(lengths.values())}")
    for name, n in sorted(kinds.items()):
        print(f"  {name:17} {n}")
    print(f"functions           {len(functions)}")
    print(f"  above 50 lines    {sum(n > 50 for n in functions)}")
    print(f"  private, once     {len(used_once(trees))}")
    print(f"classes             {classes}")
    print(f"several meanings    {len(several)}  {' '.join(several)}")
    print(f"classify imports    {imported_by_classify(package)}")


def tree(package: Path) -> None:
    for folder in sorted({path.parent for path in package.rglob("*.py")}):
        lengths = {p.stem: len(p.read_text().splitlines()) for p in sorted(folder.glob("*.py"))}
        print(f"{folder}/  {len(lengths)} modules, {sum(lengths.values())} lines")
        print("    " + ", ".join(f"{name} {n}" for name, n in lengths.items() if n > 8))


def unclear_sentences(package: Path) -> list[str]:
    """Return docstrings that begin with a headless relative, and lines with archaic joints."""
    modules = modules_of(package)
    headless = [
        f"{path}: {text.partition(chr(10))[0]}"
        for path, module in modules.items()
        for node in ast.walk(module)
        if isinstance(node, ast.Module | ast.ClassDef | Function)
        and HEADLESS.match(text := ast.get_docstring(node) or "")
    ]
    root = package.resolve().parent
    pages = [*sorted((root / "docs").rglob("*.md")), *sorted(root.glob("*.md"))]
    archaic = [
        f"{path}:{number}: {line.strip()}"
        for path in [*modules, *pages]
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if ARCHAIC.search(line)
    ]
    return headless + archaic


def prose(package: Path) -> None:
    found = unclear_sentences(package)
    print(*found, f"{len(found)} sentences that read as translated", sep="\n")


if __name__ == "__main__":
    arguments = [word for word in sys.argv[1:] if not word.startswith("--")]
    package = Path(arguments[0] if arguments else "nbspam")
    if "--prose" in sys.argv:
        prose(package)
    else:
        (tree if "--tree" in sys.argv else figures)(package)
