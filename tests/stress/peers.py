"""Random tables, learned by nbspam's library and command line, and by scikit-learn."""

import io
import json
from contextlib import redirect_stdout

import numpy as np
import pytest
from sklearn import naive_bayes as peers

from nbspam import models
from nbspam.cli.main import exit_status

# Models, peers with the same parameters, and the options that say these.
GAUSSIAN = models.GaussianNB(estimate="mle", var_smoothing=0), peers.GaussianNB(var_smoothing=0)
PAIRS = {
    "bernoulli": (models.BernoulliNB(), peers.BernoulliNB()),
    "multinomial": (models.MultinomialNB(), peers.MultinomialNB()),
    "complement": (
        *(models.ComplementNB(class_prior="uniform"), peers.ComplementNB()),
        "--class-prior=uniform",
    ),
    "categorical": (
        *(models.CategoricalNB(class_prior="estimated"), peers.CategoricalNB()),
        "--class-prior=estimated",
    ),
    "gaussian": (*GAUSSIAN, "--estimate=mle"),
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


def write_table(path, X, y=None):
    rows = [[f"c{j}" for j in range(X.shape[1])], *X.tolist()]
    labels = [] if y is None else ["y", *(f"class {label}" for label in y)]
    for row, label in zip(rows, labels, strict=False):
        row.append(label)
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    return str(path)


def by_command_line(name, options, X, y, folder):
    """Return the posteriors that the command line answers to the rows it has learned."""
    learned, asked = write_table(folder / "rows.csv", X, y), write_table(folder / "asked.csv", X)
    model = ("-m", str(folder / "model"))
    with redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")) as out:
        learn = ["table", "train", learned, "--target", "y", "--model", name, *options, *model]
        assert exit_status(learn) == 0
        assert exit_status(["table", "classify", asked, "--json", *model]) == 0
        out.flush()
        lines = out.buffer.getvalue().decode().splitlines()[-len(X) :]
    return np.array([list(json.loads(line)["posterior"].values()) for line in lines])


def differences(name, n_sets, folder, seed=0):
    """Return the largest differences by library and by command line over random tables."""
    rng, (ours, theirs, *options) = np.random.default_rng(seed), PAIRS[name]
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
