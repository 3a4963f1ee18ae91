"""Compare the speed of models of columns with scikit-learn's, and time models of pairs of tokens.

usage: python benchmarks/columns.py [CORPUS] [--rounds 5]

Categorical and Gaussian naive Bayes learn and classify the same tables as scikit-learn's; printed
is the shortest processor time of all rounds.  With CORPUS, a folder of ham/ and spam/, AODE and
TAN over its 1,000 most informative tokens are timed as well.
"""

import argparse
import os
import resource
import time
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import sklearn.naive_bayes as theirs

from nbspam.counts.corpus import read_corpus
from nbspam.counts.table import prune
from nbspam.models.columns.aode import AODE
from nbspam.models.columns.categorical import CategoricalNB
from nbspam.models.columns.gaussian import GaussianNB
from nbspam.models.columns.tan import TAN
from nbspam.settings import PRESENCE, PRESETS
from nbspam.sources.items import read_items

SHAPES = ((1_000, 10), (50_000, 50))


def best(function: Callable[[], object], rounds: int) -> float:
    """Return the shortest processor time of some calls, in seconds."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def beside_sklearn(rounds: int) -> None:
    rng = np.random.default_rng(0)
    print(f"{'':36}{'nbspam':>10}{'sklearn':>10}{'ratio':>8}")
    for n_rows, n_columns in SHAPES:
        y = rng.integers(0, 3, n_rows)
        numbers = rng.normal(size=(n_rows, n_columns))
        categories: Any = rng.integers(0, 5, (n_rows, n_columns))
        for name, ours, peer, X in (
            ("categorical", CategoricalNB(), theirs.CategoricalNB(), categories),
            ("gaussian", GaussianNB(), theirs.GaussianNB(), numbers),
        ):
            for verb, args in (("fit", (X, y)), ("predict_proba", (X,))):
                one, two = (best(partial(getattr(m, verb), *args), rounds) for m in (ours, peer))
                what = f"{name} {verb} {n_rows:,} x {n_columns}"
                print(f"{what:36}{one * 1e3:8.2f}ms{two * 1e3:8.2f}ms{two / one:8.2f}")


def fit_tables(model: AODE | TAN, X: Any, y: np.ndarray) -> None:
    model.fit(X, y).tables()


def pairs_of_tokens(corpus: str, rounds: int) -> None:
    data, _ = read_corpus(read_items([corpus]), PRESETS["mail"])
    table = prune(data.table(np.arange(len(data.y)), PRESENCE), max_features=1000)
    X = data.X[:, data.vocabulary.columns(table.vocabulary.keys)]
    for model in (AODE(), TAN()):
        counting = best(partial(model.fit, X, data.y), rounds)
        tables = best(partial(fit_tables, model, X, data.y), rounds) - counting
        model.tables()
        judging = best(partial(model.predict_proba, X), rounds)
        print(
            f"{type(model).__name__} of {X.shape[1]:,} tokens, {X.shape[0]:,} messages: counting"
            f" {counting:.2f} s, tables {tables:.2f} s, {X.shape[0] / judging:,.0f} messages/s"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of this process: {peak:,.0f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", nargs="?", help="folder with ham/ and spam/")
    parser.add_argument("--rounds", type=int, default=5, help="number of rounds  [default: 5]")
    arguments = parser.parse_args()
    beside_sklearn(arguments.rounds)
    if arguments.corpus:
        pairs_of_tokens(arguments.corpus, arguments.rounds)
