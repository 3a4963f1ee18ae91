"""nbspam: spam and text classification with naive Bayes and its family.

    from pathlib import Path

    import nbspam

    model = nbspam.train(Path("mails"))
    verdict = model.classify(b"Subject: ...")

The names below are the library's face; `nbspam.models` has the estimators alone.  Each is
imported when it is first used, so that `import nbspam` takes no time.
"""

from os import uname

# Type checkers know the name, and Jedi, which completes names, looks behind what may be true.
TYPE_CHECKING = not __name__  # importing `typing` takes most of the time
if TYPE_CHECKING:
    from typing import Any

    from nbspam import models as models
    from nbspam.classifier.estimator import TextClassifier as TextClassifier
    from nbspam.errors import NbspamError as NbspamError
    from nbspam.evaluation.result import cross_validate as cross_validate
    from nbspam.sources.items import Item as Item
    from nbspam.store.library import Model as Model
    from nbspam.store.library import cluster as cluster
    from nbspam.store.library import load as load
    from nbspam.store.library import query as query
    from nbspam.store.library import train as train
    from nbspam.store.library import vectorize as vectorize
    from nbspam.verdicts import Explanation as Explanation
    from nbspam.verdicts import Skipped as Skipped
    from nbspam.verdicts import Verdict as Verdict

# There a product of matrices sets the flags of errors that never were, which numpy reports:
# https://github.com/numpy/numpy/issues/28687
if uname().machine in ("aarch64", "arm64"):
    from warnings import filterwarnings

    filterwarnings("ignore", r".* encountered in matmul\Z", RuntimeWarning, __name__)

__version__ = "0.1.0"

_LIBRARY = ("train", "load", "Model", "vectorize", "cluster", "query")
_HOME = {
    **dict.fromkeys(_LIBRARY, "nbspam.store.library"),
    "models": "nbspam.models",
    "cross_validate": "nbspam.evaluation.result",
    "TextClassifier": "nbspam.classifier.estimator",
    "Item": "nbspam.sources.items",
    **dict.fromkeys(("Verdict", "Explanation", "Skipped"), "nbspam.verdicts"),
    "NbspamError": "nbspam.errors",
}
__all__ = [*_HOME]


def __getattr__(name: str) -> "Any":
    if name not in _HOME:
        raise AttributeError(f"module 'nbspam' has no attribute {name!r}")
    from importlib import import_module

    module = import_module(_HOME[name])
    return module if name == "models" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
