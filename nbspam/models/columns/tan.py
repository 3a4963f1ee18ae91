"""TAN (tree-augmented naive Bayes): each column depends on at most one other, in a tree.

Secret: how the tree is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nbspam.models.columns.onedependence import Tree
from nbspam.models.columns.pairs import PairModel

if TYPE_CHECKING:
    from nbspam.models.columns.levels import Levels
    from nbspam.models.distributions import Distribution
    from nbspam.models.inputs import Array, Codes


class TAN(PairModel):
    """P(class) times P(root given class) times P(column given class, its parent in the tree).

    Friedman, Geiger & Goldszmidt (1997); Zhou Zhihua, Machine Learning, eq. 7.22: the tree
    maximises the sum, over its edges, of the mutual information of both columns given the
    class.  The root is the column with the highest mutual information with the class.  A
    missing value is left out; its children are treated as if they had no parent.

    >>> from nbspam.models import TAN
    >>> xor = TAN().fit([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0])
    >>> xor.predict([[0, 1], [1, 1]]).tolist()
    [1, 0]
    """

    @property
    def parents_(self) -> Codes:
        """Return the parent of each column, -1 for the root, shape (n_columns,)."""
        tree: Tree = self.tables()[0]
        return tree.parents

    def distributions(self, whole: bool = True) -> Iterator[Distribution]:
        """Yield P(class), P(root given class), and P(column given class, parent) of the rest."""
        yield from super().distributions(whole)
        tables, counts = list(self.value_tables()), list(self.value_counts())
        for column, parent in enumerate(self.parents_.tolist()):
            if parent < 0:
                yield self.of_column(column, tables)
            else:
                yield self.of_pair(column, parent, tables, counts)

    def dependences(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the root, and each edge of the tree with its information, nats.

        Columns with a single value, which take no part, are left out.
        """
        parents = self.parents_.tolist()
        information = conditional_information(self.value_counts(), self.encoding.levels)
        edges = [
            {
                "parent": names[parent],
                "column": names[column],
                "information": float(information[parent, column]),
            }
            for column, parent in enumerate(parents)
            if parent >= 0 and self.levels_[column] > 1
        ]
        return {"root": names[parents.index(-1)], "edges": edges}

    def _derive(self) -> Any:
        levels = self.encoding.levels
        root = int(class_information(self.own_counts(), levels).argmax())
        information = conditional_information(self.value_counts(), levels)
        tree = Tree(spanning_tree(information, root), levels)
        return tree, [(each.parent[-1], tree.table(each.given)) for each in self.value_tables()]

    def _joint_log_proba(self, X: Any) -> Array:
        tree, tables = self.tables()
        joint = np.empty((X.shape[0], len(tables)))
        for rows, cells, _ in self.encoding.blocks(X, 3 * X.shape[1], type(self).__name__):
            places = tree.places(cells)
            for k, (prior, given) in enumerate(tables):
                joint[rows, k] = prior + given.ravel().take(places).sum(axis=1)
        return joint


def conditional_information(counts: Iterable[Array], levels: Levels) -> Array:
    """Return I(column i; column j given class) in nats, (n_columns, n_columns).

    The sum of P(a, b, class) log [P(a, b given class) / (P(a given class) P(b given class))],
    Zhou Zhihua, Machine Learning, section 7.5.1, over rows in which both are known.
    counts: (D, D) for each class, the number of rows with each pair of values.
    """
    total = np.zeros((len(levels.n), len(levels.n)))
    n_pairs = np.zeros_like(total)
    for pairs in counts:
        in_column = levels.sums(pairs)  # (D, D): rows with a in which b's column is known
        both = levels.sums(in_column.T).T  # rows in which both columns are known
        expected = in_column * in_column.T
        ratio = np.divide(pairs * both, expected, where=pairs > 0, out=np.ones_like(pairs))
        total += _by_column(pairs * np.log(ratio), levels)
        n_pairs += _by_column(pairs, levels)
    return np.divide(total, n_pairs, where=n_pairs > 0, out=total)


def class_information(own: Array, levels: Levels) -> Array:
    """Return I(column; class) in nats, shape (n_columns,), over rows in which it is known.

    own: (n_classes, D), the number of rows with each value.
    """
    known = levels.sums(own)
    expected = own.sum(axis=0) * known
    ratio = np.divide(own * known.sum(axis=0), expected, where=own > 0, out=np.ones_like(own))
    share = np.divide(own, known.sum(axis=0), where=own > 0, out=np.zeros_like(own))
    return np.asarray(np.add.reduceat((share * np.log(ratio)).sum(axis=0), levels.start))


def _by_column(values: Array, levels: Levels) -> Array:
    """Return the sums of (D, D) values over pairs of columns, (n_columns, n_columns)."""
    rows = np.add.reduceat(values, levels.start, axis=0)
    return np.asarray(np.add.reduceat(rows, levels.start, axis=1))


def spanning_tree(weight: Array, root: int) -> Codes:
    """Return each node's parent, -1 for the root, in the maximum spanning tree.

    Prim (1957): add the heaviest edge that leaves the tree until all nodes are in it; of
    equals, the first.  weight: (n, n), symmetric.
    """
    parents = np.full(len(weight), -1)
    nearest = np.full(len(weight), root)
    heaviest = np.array(weight[root], dtype=np.float64)
    heaviest[root] = -np.inf
    for _ in range(len(weight) - 1):
        node = int(heaviest.argmax())
        parents[node] = nearest[node]
        heaviest[node] = -np.inf
        closer = (weight[node] > heaviest) & np.isfinite(heaviest)
        heaviest[closer], nearest[closer] = weight[node][closer], node
    return parents
