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
    "origins": 0,
    "normalize": 0,
    "digests": 0,
    "ledger": 1,
    "journal": 3,
    "headers": 1,
    "mailboxes": 1,
    "tables": 1,
    "message": 2,
    "filtering": 3,
    "modelreader": 0,
    "modelwriter": 1,
    "modelfile": 2,
    "stripping": 0,
    "runs": 1,
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
    "blending": 7,
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
    "records": 3,
    "schema": 4,
    "discretise": 1,
    "estimators": 10,
    "tableclassifier": 11,
    "featureclassifier": 11,
    "tabletraining": 12,
    "tableexplanation": 12,
    "learning": 12,
    "loading": 12,
    "progressive": 7,
    "training": 10,
    "explanation": 10,
    "verdictheaders": 11,
    "interchange": 11,
    "maildir": 3,
    "sorting": 13,
    "bogoutil": 12,
    "textmodel": 13,
    "validation": 13,
    "report": 11,
    "semisupervised": 13,
    "clustering": 14,
    "jsonfile": 1,
    "networks": 13,
    "network.graphs": 1,
    "network.structure": 2,
    "network.network": 3,
    "network.search": 3,
    "network.inference": 4,
    "network.sampling": 4,
    "commands.shared": 14,
    "commands.tables": 15,
    "commands.unlabelled": 15,
    "commands.learning": 15,
    "commands.train": 16,
    "commands.update": 16,
    "commands.unlearn": 16,
    "commands.relabel": 16,
    "commands.merge": 16,
    "commands.prune": 16,
    "commands.doctor": 16,
    "commands.classify": 16,
    "commands.predict": 16,
    "commands.explain": 16,
    "commands.eval": 16,
    "commands.tokens": 16,
    "commands.words": 16,
    "commands.info": 16,
    "prevalence": 10,
    "trial": 10,
    "comparison": 11,
    "views": 11,
    "tuning": 11,
    "pictures": 12,
    "sketch": 12,
    "commands.compare": 16,
    "commands.tune": 16,
    "commands.dump": 16,
    "commands.load": 16,
    "commands.filter": 16,
    "commands.sort": 16,
    "commands.cluster": 16,
    "commands.lazy": 16,
    "commands.query": 16,
    "cli": 17,
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
