"""Models of columns beside scikit-learn's, and models of pairs of tokens, in one run.

usage: python benchmarks/columns.py [CORPUS] [--rounds 5]

Categorical and Gaussian naive Bayes learn and judge the same table as scikit-learn's, in
turn, round after round; the best processor time of each counts.  With CORPUS, a folder of
ham/ and spam/, AODE and TAN over its 1,000 most telling tokens are timed as well.
"""

import argparse
import os
import resource
import time
from collections.abc import Callable

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
    """Return the least processor time of some calls, seconds."""
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
        for name, ours, peer, X in (
            ("categorical", CategoricalNB(), theirs.CategoricalNB(), None),
            ("gaussian", GaussianNB(), theirs.GaussianNB(), rng.normal(size=(n_rows, n_columns))),
        ):
            X = rng.integers(0, 5, (n_rows, n_columns)) if X is None else X
            for verb, args in (("fit", (X, y)), ("predict_proba", (X,))):
                one, two = (
                    best(lambda m=m, v=verb, a=args: getattr(m, v)(*a), rounds)
                    for m in (ours, peer)
                )
                what = f"{name} {verb} {n_rows:,} x {n_columns}"
                print(f"{what:36}{one * 1e3:8.2f}ms{two * 1e3:8.2f}ms{two / one:8.2f}")


def pairs_of_tokens(corpus: str, rounds: int) -> None:
    data, _ = read_corpus(read_items([corpus]), PRESETS["mail"])
    table = prune(data.table(np.arange(len(data.y)), PRESENCE), max_features=1000)
    X = data.X[:, data.vocabulary.columns(table.vocabulary.keys)]
    for model in (AODE(), TAN()):
        counting = best(lambda m=model: m.fit(X, data.y), rounds)
        tables = best(lambda m=model: m.fit(X, data.y).tables(), rounds) - counting
        model.tables()
        judging = best(lambda m=model: m.predict_proba(X), rounds)
        print(
            f"{type(model).__name__} of {X.shape[1]:,} tokens, {X.shape[0]:,} messages: counting"
            f" {counting:.2f} s, tables {tables:.2f} s, {X.shape[0] / judging:,.0f} messages/s"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of all this, tokenising included: {peak:,.0f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", nargs="?")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    beside_sklearn(arguments.rounds)
    if arguments.corpus:
        pairs_of_tokens(arguments.corpus, arguments.rounds)
