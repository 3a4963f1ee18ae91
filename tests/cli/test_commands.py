"""Commands are thin: each calls one function of the library and prints its result.

The syntax trees of the modules show it.  Functions that read what options name stand in
`cli/arguments.py`; those that only turn a result into text are listed here.
"""

import ast
from pathlib import Path

import pytest

import nbspam.cli.commands
from nbspam.cli.main import COMMANDS

FOLDER = Path(nbspam.cli.commands.__file__).parent
CLI = FOLDER.parent
MODULES = {path.stem: path for path in sorted(FOLDER.glob("[a-z]*.py"))}
# These only show results, or pick settings from options.
SHOWING = {
    *("nbspam.errors", "nbspam.printing", "nbspam.settings", "nbspam.verdicts"),
    *("nbspam.evaluation.report", "nbspam.evaluation.pictures.curves"),
    *("nbspam.evaluation.pictures.files", "nbspam.evaluation.pictures.terminal"),
    *("nbspam.evaluation.pages.quality", "nbspam.evaluation.pages.compared"),
    *("nbspam.models.network.graphs", "nbspam.models.network.network.to_json"),
    *("nbspam.classifier.clusters.typical_tokens", "nbspam.models.registry"),
}
TRAINING = "nbspam.cli.learning.learn"  # `train` and `lazy` share this one


def tree_of(path):
    return ast.parse(path.read_text())


def runtime_imports(tree):
    """Yield local name and full name of every import that runs: none for type checkers."""
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.asname or alias.name, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def working_names(tree):
    """Return local names of functions and modules of the rooms that do a command's work."""
    names = {}
    for local, full in runtime_imports(tree):
        if full != TRAINING and full.startswith(("nbspam.cli.", "nbspam.__")):
            continue
        is_shown = full in SHOWING or full.rpartition(".")[0] in SHOWING
        if full.startswith("nbspam.") and not is_shown and local[0].islower():
            names[local] = full
    return names


class Calls:
    """Counts the calls of some names on the longest path through a function."""

    def __init__(self, tree, names):
        self.names = names
        self.functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}

    def longest(self, body):
        """Return the number of calls in statements; of branches the longer one counts."""
        total = 0
        for node in body:
            if isinstance(node, ast.If):
                branches = self.longest(node.body), self.longest(node.orelse)
                ends = isinstance(node.body[-1], ast.Return | ast.Raise)
                total += self.calls(node.test)
                if ends:  # what follows is the other branch
                    rest = self.longest(body[body.index(node) + 1 :])
                    return total + max(branches[0], branches[1] + rest)
                total += max(branches)
            elif isinstance(node, ast.FunctionDef | ast.For | ast.With | ast.Try):
                total += self.longest(node.body)
            else:
                total += self.calls(node)
        return total

    def calls(self, node):
        total = 0
        for each in ast.walk(node):
            if not isinstance(each, ast.Call):
                continue
            word = each.func
            while isinstance(word, ast.Attribute):
                word = word.value
            name = word.id if isinstance(word, ast.Name) else ""
            if name in self.functions:
                total += self.longest(self.functions[name].body)
            total += name in self.names
        return total


@pytest.mark.parametrize("name", sorted(set(MODULES) - {"__init__"}))
def test_a_command_calls_one_function_of_the_library(name):
    tree = tree_of(MODULES[name])
    names = working_names(tree)
    calls = Calls(tree, names)

    assert calls.longest(calls.functions["command"].body) <= 1, names


@pytest.mark.parametrize(
    ("lines", "n"),
    [
        ("a()\nb()", 2),
        ("if x:\n    a()\nelse:\n    b()", 1),
        ("if x:\n    a()\n    return\nb()", 1),
        ("if x:\n    a()\nb()", 2),
        ("helper()\na()", 2),
        ("b.c(a())", 2),
        ("x()\ny.z()", 0),
    ],
)
def test_calls_are_counted_on_the_longest_path(lines, n):
    body = "\n".join(f"    {line}" for line in lines.splitlines())
    tree = ast.parse(f"def helper():\n    b()\ndef command():\n{body}\n")
    calls = Calls(tree, {"a": "nbspam.room.a", "b": "nbspam.room.b"})

    assert calls.longest(calls.functions["command"].body) == n


@pytest.mark.parametrize("name", sorted(set(MODULES) - {"__init__"}))
def test_a_command_shares_nothing_but_its_command(name):
    public = {
        node.name
        for node in tree_of(MODULES[name]).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }
    assert public == {"command"}


@pytest.mark.parametrize("path", sorted(CLI.rglob("*.py")), ids=lambda path: path.stem)
def test_the_command_line_knows_no_numpy(path):
    assert not [full for _, full in runtime_imports(tree_of(path)) if full.startswith("numpy")]


@pytest.mark.parametrize("path", sorted(CLI.rglob("*.py")), ids=lambda path: path.stem)
def test_no_command_passes_options_in_a_dictionary(path):
    assert "**options" not in path.read_text()


def test_every_module_is_a_command():
    assert {name.rstrip("_") for name in MODULES if name != "__init__"} == set(COMMANDS)
