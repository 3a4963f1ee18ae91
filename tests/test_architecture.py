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
    "headers": 1,
    "mailboxes": 1,
    "tables": 1,
    "message": 2,
    "modelreader": 0,
    "modelfile": 1,
    "parallel": 1,
    "models.smoothing": 1,
    "models.inputs": 1,
    "models.estimates": 2,
    "models.base": 2,
    "models.columns": 3,
    "models.categorical": 4,
    "models.gaussian": 3,
    "models.mixed": 5,
    "models.pairs": 4,
    "models.onedependence": 5,
    "models.spode": 6,
    "models.tan": 6,
    "models.aode": 6,
    "models.a2de": 7,
    "models.linear": 3,
    "sources": 2,
    "tokenizer": 3,
    "metrics": 1,
    "resampling": 1,
    "evaluation": 2,
    "models.network": 5,
    "models.em": 4,
    "models.lazy": 4,
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
    "sample": 7,
    "records": 3,
    "schema": 4,
    "discretise": 1,
    "classifier": 8,
    "estimators": 9,
    "tableclassifier": 10,
    "featureclassifier": 10,
    "tabletraining": 11,
    "tableexplanation": 11,
    "loading": 11,
    "progressive": 7,
    "training": 9,
    "explanation": 9,
    "validation": 11,
    "report": 11,
    "semisupervised": 12,
    "clustering": 13,
    "jsonfile": 1,
    "networks": 12,
    "network.graphs": 1,
    "network.structure": 2,
    "network.network": 3,
    "network.search": 3,
    "network.inference": 4,
    "network.sampling": 4,
    "commands.shared": 12,
    "commands.tables": 13,
    "commands.unlabelled": 13,
    "commands.learning": 13,
    "commands.train": 14,
    "commands.classify": 14,
    "commands.predict": 14,
    "commands.explain": 14,
    "commands.eval": 14,
    "commands.tokens": 14,
    "commands.words": 14,
    "commands.info": 14,
    "commands.cluster": 14,
    "commands.lazy": 14,
    "commands.query": 14,
    "cli": 15,
}
ONLY_IN = {
    "click": {name for name in RANK if name == "cli" or name.startswith("commands.")},
    "rich": {"commands.learning"},
    "joblib": {"modelfile"},
    "regex": {"normalize"},
    "multiprocessing": {"parallel"},
    "scipy": {"vectorizer", "semisupervised"},
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
