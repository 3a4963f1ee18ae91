"""Random tables, learned by nbspam's library and command line, and by scikit-learn.

`python tests/stress/peers.py` prints, for each model, the largest difference of any posterior.
"""

import csv
import io
import json
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from sklearn import naive_bayes as peers

from nbspam import models
from nbspam.cli.main import exit_status


class Pair(NamedTuple):
    """A model, its peer with the same parameters, and the options that say these."""

    ours: object
    theirs: object
    options: tuple[str, ...] = ()


PAIRS = {
    "bernoulli": Pair(models.BernoulliNB(), peers.BernoulliNB()),
    "multinomial": Pair(models.MultinomialNB(), peers.MultinomialNB()),
    "complement": Pair(
        models.ComplementNB(class_prior="uniform"),
        peers.ComplementNB(),
        ("--class-prior", "uniform"),
    ),
    "categorical": Pair(
        models.CategoricalNB(class_prior="estimated"),
        peers.CategoricalNB(),
        ("--class-prior", "estimated"),
    ),
    "gaussian": Pair(
        models.GaussianNB(estimate="mle", var_smoothing=0),
        peers.GaussianNB(var_smoothing=0),
        ("--estimate", "mle"),
    ),
}


def drawn(name, rng):
    """Return rows and labels; every class has rows, and every category occurs."""
    n, n_columns, n_classes = rng.integers(12, 60), rng.integers(1, 7), rng.integers(2, 5)
    y = rng.permutation(np.arange(n) % n_classes)
    if name == "gaussian":
        return rng.normal(y[:, None], 1 + rng.random(n_columns), (n, n_columns)), y
    if name == "categorical":
        X = rng.integers(0, rng.integers(2, 5, n_columns), (n, n_columns))
        X[:4] = np.minimum(np.arange(4)[:, None], X.max(axis=0))
        return X, y
    X = rng.poisson(0.6 * rng.random((n_classes, n_columns))[y])
    X[0] = 1  # no column is always 0
    return X, y


def table(X, y=None):
    """Return a table in CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*(f"c{j}" for j in range(X.shape[1])), *([] if y is None else ["y"])])
    for i, row in enumerate(X.tolist()):
        writer.writerow([*map(repr, row), *([] if y is None else [f"class {y[i]}"])])
    return text.getvalue()


def by_command_line(name, options, X, y, folder):
    """Return the posteriors that the command line answers to the rows it has learned."""
    (folder / "rows.csv").write_text(table(X, y))
    (folder / "asked.csv").write_text(table(X))
    model = ("-m", str(folder / "model"))
    learn = ("--target", "y", "--model", name, *options, *model)
    kept, sys.stdout = sys.stdout, io.TextIOWrapper(io.BytesIO(), "utf-8")
    try:
        assert exit_status(["table", "train", str(folder / "rows.csv"), *learn]) == 0
        sys.stdout = out = io.TextIOWrapper(io.BytesIO(), "utf-8")
        assert exit_status(["table", "classify", str(folder / "asked.csv"), "--json", *model]) == 0
        out.flush()
        lines = out.buffer.getvalue().decode().splitlines()
    finally:
        sys.stdout = kept
    return np.array([list(json.loads(line)["posterior"].values()) for line in lines])


def differences(name, n_sets, folder, seed=0):
    """Return the largest differences by library and by command line over random tables."""
    rng, (ours, theirs, options) = np.random.default_rng(seed), PAIRS[name]
    by_library, by_line = 0.0, 0.0
    for _ in range(n_sets):
        X, y = drawn(name, rng)
        expected = theirs.fit(X, y).predict_proba(X)
        by_library = max(by_library, np.abs(ours.fit(X, y).predict_proba(X) - expected).max())
        answered = by_command_line(name, options, X, y, folder)
        by_line = max(by_line, np.abs(answered - expected).max())
    return float(by_library), float(by_line)


@pytest.mark.parametrize("name", PAIRS)
def test_three_hundred_tables_are_judged_as_by_scikit_learn(name, tmp_path):
    assert max(differences(name, 300, tmp_path)) < 1e-12


if __name__ == "__main__":
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        for name in PAIRS:
            found = differences(name, 300, Path(folder))
            print(f"{name:12} 300 tables  library {found[0]:.1e}  command line {found[1]:.1e}")
