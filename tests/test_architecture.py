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
    "markup": 1,
    "origins": 0,
    "normalize": 0,
    "files": 1,
    "ledger": 1,
    "journal": 3,
    "headers": 1,
    "mailboxes": 1,
    "cells": 0,
    "tables": 1,
    "message": 2,
    "digests": 2,
    "filtering": 3,
    "modelreader": 0,
    "modelwriter": 1,
    "modelfile": 2,
    "stripping": 0,
    "runs": 1,
    "parallel": 1,
    "later": 0,
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
    "hashing": 1,
    "tokens": 3,
    "layout": 4,
    "answers": 1,
    "tokenizer": 5,
    "metrics": 1,
    "resampling": 1,
    "evaluation": 2,
    "models.network": 5,
    "models.em": 4,
    "models.lazy": 4,
    "models.bernoulli": 4,
    "models.multinomial": 4,
    "models.complement": 4,
    "numbering": 1,
    "vocabulary": 6,
    "counts": 7,
    "tally": 8,
    "combining": 8,
    "blending": 9,
    "decision": 9,
    "vectorizer": 8,
    "settings": 8,
    "reading": 9,
    "readings": 10,
    "sample": 9,
    "logtables": 9,
    "changes": 10,
    "memory": 10,
    "compaction": 13,
    "living": 14,
    "merging": 15,
    "forgetting": 15,
    "checking": 15,
    "classifier": 11,
    "inspection": 12,
    "records": 3,
    "schema": 6,
    "discretise": 1,
    "estimators": 12,
    "tableclassifier": 13,
    "featureclassifier": 13,
    "tabletraining": 14,
    "tableexplanation": 14,
    "learning": 14,
    "loading": 14,
    "progressive": 9,
    "training": 12,
    "explanation": 12,
    "verdictheaders": 13,
    "interchange": 13,
    "maildir": 3,
    "sorting": 15,
    "bogoutil": 14,
    "textmodel": 15,
    "validation": 15,
    "report": 13,
    "semisupervised": 15,
    "clustering": 16,
    "jsonfile": 1,
    "networks": 15,
    "network.graphs": 1,
    "network.structure": 2,
    "network.network": 3,
    "network.search": 3,
    "network.inference": 4,
    "network.sampling": 4,
    "commands.options": 16,
    "commands.arguments": 16,
    "commands.output": 16,
    "commands.tables": 17,
    "commands.unlabelled": 17,
    "commands.learning": 17,
    "commands.train": 18,
    "commands.update": 18,
    "commands.unlearn": 18,
    "commands.relabel": 18,
    "commands.merge": 18,
    "commands.prune": 18,
    "commands.doctor": 18,
    "commands.classify": 18,
    "commands.predict": 18,
    "commands.explain": 18,
    "commands.eval": 18,
    "commands.tokens": 18,
    "commands.words": 18,
    "commands.info": 18,
    "prevalence": 12,
    "trial": 12,
    "comparison": 13,
    "views": 13,
    "tuning": 13,
    "pictures": 14,
    "sketch": 14,
    "commands.compare": 18,
    "commands.tune": 18,
    "commands.dump": 18,
    "commands.load": 18,
    "commands.filter": 18,
    "commands.sort": 18,
    "commands.cluster": 18,
    "commands.lazy": 18,
    "commands.query": 18,
    "cli": 19,
}
ONLY_IN = {
    "click": {name for name in RANK if name == "cli" or name.startswith("commands.")},
    "rich": {"commands.learning"},
    "joblib": set(),
    "regex": {"normalize"},
    "multiprocessing": set(),
    "scipy": {"vectorizer", "semisupervised"},
    "sklearn": {"models.base"},
    "matplotlib": {"pictures"},
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
