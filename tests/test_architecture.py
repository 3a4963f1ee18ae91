"""The layers of the design, enforced: imports point down, libraries stay at home."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import nbspam

PACKAGE = Path(nbspam.__file__).parent

RANK = {
    "errors": 0,
    "arrays": 0,
    "printing": 0,
    "charsets": 0,
    "markup": 0,
    "normalize": 0,
    "digests": 0,
    "ledger": 1,
    "journal": 2,
    "headers": 1,
    "mailboxes": 1,
    "tables": 1,
    "message": 2,
    "filtering": 3,
    "modelreader": 0,
    "modelfile": 1,
    "parallel": 1,
    "models.smoothing": 1,
    "models.inputs": 1,
    "models.base": 2,
    "models.linear": 3,
    "sources": 2,
    "tokenizer": 3,
    "metrics": 1,
    "resampling": 1,
    "evaluation": 2,
    "models.bernoulli": 4,
    "models.multinomial": 4,
    "models.complement": 4,
    "vocabulary": 4,
    "counts": 5,
    "combining": 6,
    "decision": 7,
    "vectorizer": 6,
    "settings": 6,
    "reading": 7,
    "readings": 8,
    "sample": 7,
    "logtables": 7,
    "changes": 8,
    "memory": 8,
    "compaction": 11,
    "living": 12,
    "merging": 13,
    "forgetting": 13,
    "checking": 13,
    "classifier": 9,
    "progressive": 7,
    "training": 10,
    "explanation": 10,
    "verdictheaders": 11,
    "interchange": 11,
    "maildir": 2,
    "sorting": 13,
    "bogoutil": 12,
    "textmodel": 13,
    "validation": 11,
    "report": 11,
    "commands.shared": 14,
    "commands.train": 15,
    "commands.update": 15,
    "commands.unlearn": 15,
    "commands.relabel": 15,
    "commands.merge": 15,
    "commands.prune": 15,
    "commands.doctor": 15,
    "commands.classify": 15,
    "commands.predict": 15,
    "commands.explain": 15,
    "commands.eval": 15,
    "commands.tokens": 15,
    "commands.words": 15,
    "commands.info": 15,
    "commands.dump": 15,
    "commands.load": 15,
    "commands.filter": 15,
    "commands.sort": 15,
    "cli": 16,
}
ONLY_IN = {
    "click": {name for name in RANK if name == "cli" or name.startswith("commands.")},
    "rich": {"commands.train"},
    "joblib": {"modelfile"},
    "regex": {"normalize"},
    "multiprocessing": {"parallel"},
    "scipy": {"vectorizer"},
    "sklearn": {"models.base"},
    "email": set(),
}

MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if not path.stem.startswith("__")
}


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write `from nbspam.module import name`"
            names = [alias.name for alias in node.names]
            package = node.module in ("nbspam", "nbspam.models", "nbspam.commands")
            yield from (f"{node.module}.{n}" for n in names) if package else [str(node.module)]


def test_every_module_has_a_rank_and_every_rank_a_module():
    assert set(MODULES) == set(RANK)


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_down(name):
    for target in imports(MODULES[name]):
        if target.startswith("nbspam.") and target != "nbspam.__version__":
            assert RANK[target.removeprefix("nbspam.")] < RANK[name], f"{name} imports {target}"


@pytest.mark.parametrize("name", MODULES)
def test_each_library_has_its_place(name):
    for target in imports(MODULES[name]):
        allowed = ONLY_IN.get(target.split(".")[0])
        assert allowed is None or name in allowed, f"{name} imports {target}"
