"""Time structure learning (hill climbing on a table of categories) and inference.

usage: python benchmarks/network.py [COLUMNS [ROWS]]       (default: 30 columns, 5,000 rows)

The table is drawn from a random network with two to four values per column and up to three
parents.  Times are wall-clock seconds of one process.
"""

import sys
import time

import numpy as np

from nbspam.models.network.graphs import Parents
from nbspam.models.network.inference import query
from nbspam.models.network.network import Network
from nbspam.models.network.sampling import gibbs
from nbspam.models.network.search import empty_start, hill_climb, tree_start
from nbspam.models.network.structure import SCORES, FamilyScores


def random_table(
    columns: int, rows: int, rng: np.random.Generator
) -> tuple[np.ndarray, list[int]]:
    """Return codes (rows, columns) sampled from a random network, and the number of values.

    Each column is drawn after its parents.
    """
    values = rng.integers(2, 5, columns)
    codes = np.zeros((rows, columns), np.int64)
    for child in range(columns):
        parents = rng.choice(child, min(child, int(rng.integers(0, 4))), replace=False)
        row = np.zeros(rows, np.int64)
        for parent in parents:
            row = row * values[parent] + codes[:, parent]
        table = rng.dirichlet(np.full(values[child], 0.5), int(row.max()) + 1)
        codes[:, child] = (table[row].cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1)
    return np.minimum(codes, values - 1), values.tolist()


def main(columns: int = 30, rows: int = 5000) -> None:
    codes, values = random_table(columns, rows, np.random.default_rng(0))
    print(f"{columns} columns, {rows:,} rows; score, start, seconds, cost in nats, arrows")
    for score in SCORES:
        for name in ("empty", "tree"):
            start = time.perf_counter()
            scores = FamilyScores(codes, values, score)
            first = empty_start(columns) if name == "empty" else tree_start(scores)
            found = hill_climb(scores, first)
            seconds = time.perf_counter() - start
            arrows = sum(map(len, found))
            print(
                f"{score:10s}  {name:5s}  {seconds:6.2f}  {scores.total(found):10.0f}  {arrows:3d}"
            )
    network = random_tables(found, values)
    evidence = dict.fromkeys(range(3, columns, 3), 0)
    start = time.perf_counter()
    exact = query(network, [0], evidence).probability
    middle = time.perf_counter()
    sampled = gibbs(network, [0], evidence, 10_000, np.random.default_rng(0))
    end = time.perf_counter()
    print(
        f"exact inference {middle - start:.3f} s; Gibbs, 10,000 samples, {end - middle:.2f} s,",
        end=" ",
    )
    print(f"off by {np.abs(sampled.probability - exact).max():.4f}, R-hat {sampled.r_hat:.3f}")


def random_tables(parents: Parents, values: list[int]) -> Network:
    """Return a network of this structure with random tables."""
    rng = np.random.default_rng(1)
    shapes = [(int(np.prod([values[p] for p in of])), values[i]) for i, of in enumerate(parents)]
    return Network(
        tuple(f"x{i}" for i in range(len(values))),
        tuple(tuple(map(str, range(n))) for n in values),
        parents,
        tuple(rng.dirichlet(np.ones(n), rows) for rows, n in shapes),
    )


if __name__ == "__main__":
    if any(argument.startswith("-") for argument in sys.argv[1:]):
        sys.exit(__doc__)
    main(*map(int, sys.argv[1:]))
