"""Directed acyclic graphs: what follows from one, how well it fits data, and the search for one.

A graph is given by its parents: parents[i] is the ascending tuple of the nodes with an arrow
to node i.  d-separation is tested as connectivity in the moral graph of the ancestors
(Lauritzen, Dawid, Larsen & Leimer 1990, proposition 3).
"""

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import combinations
from math import comb, log, prod
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Floats, Integers
from nbspam.errors import UsageError
from nbspam.models.inputs import refuse_large
from nbspam.printing import Extent, printable, tracked

Parents = tuple[tuple[int, ...], ...]


def arrows_of(parents: Parents) -> Booleans:
    """Return the graph as a matrix: whether there is an arrow, at [parent, child]."""
    arrows = np.zeros((len(parents), len(parents)), np.bool_)
    for child, its_parents in enumerate(parents):
        arrows[list(its_parents), child] = True
    return arrows


def parents_of(arrows: Booleans) -> Parents:
    """Return the graph of such a matrix."""
    return tuple(tuple(np.flatnonzero(column).tolist()) for column in arrows.T)


def topological_order(parents: Parents, where: str = "network") -> list[int]:
    """Return the nodes, parents before their children; raises UsageError on a cycle.

    where: what the error calls the graph.
    """
    try:
        return [*TopologicalSorter(dict(enumerate(parents))).static_order()]
    except CycleError:
        raise UsageError(f"{where}: its arrows lead round in a circle; remove one") from None


def ancestors(parents: Parents, nodes: Iterable[int]) -> set[int]:
    """Return the nodes and all their ancestors."""
    found: set[int] = set()
    ahead = list(nodes)
    while ahead:
        node = ahead.pop()
        if node not in found:
            found.add(node)
            ahead += parents[node]
    return found


def moral_graph(parents: Parents, nodes: Iterable[int] | None = None) -> set[tuple[int, int]]:
    """Return the edges (low, high) of the moral graph.

    The parents of each child are joined by an edge, and arrows become edges.
    nodes: restrict the graph to these; all unless given.
    """
    kept = set(range(len(parents))) if nodes is None else set(nodes)
    edges = set()
    for child in kept:
        edges |= {*combinations(sorted(kept.intersection([child, *parents[child]])), 2)}
    return edges


def separated(
    parents: Parents, one: Iterable[int], other: Iterable[int], given: Iterable[int] = ()
) -> bool:
    """Return whether the given nodes d-separate two sets of nodes: they are independent."""
    one, other, given = set(one), set(other), set(given)
    edges = moral_graph(parents, ancestors(parents, one | other | given))
    reached = one - given
    while True:
        near = {b for a, b in edges if a in reached} | {a for a, b in edges if b in reached}
        new = near - reached - given
        if not new:
            return not reached & other
        reached |= new


def to_dot(parents: Parents, names: Sequence[str], moral: bool = False) -> str:
    """Return the graph, or its moral graph, in DOT, the language of Graphviz."""
    escaped = (printable(name).replace("\\", "\\\\").replace('"', '\\"') for name in names)
    quoted = [f'"{name}"' for name in escaped]
    if moral:
        lines = [f"  {quoted[a]} -- {quoted[b]};" for a, b in sorted(moral_graph(parents))]
        kind = "graph"
    else:
        arrows = sorted((p, child) for child, nodes in enumerate(parents) for p in nodes)
        lines = [f"  {quoted[a]} -> {quoted[b]};" for a, b in arrows]
        kind = "digraph"
    nodes = [f"  {name};" for name in quoted]
    return "\n".join([f"{kind} network {{", *nodes, *lines, "}"])


# --- scores: how well a graph fits data, as a sum over families ------------------------------

# A family is a node and its parents.  Scores are costs in nats, lower is better: a penalty for
# each parameter minus the log-likelihood (Zhou, eq. 7.28 to 7.31).

AIC, BIC, MDL, LIKELIHOOD = "aic", "bic", "mdl", "likelihood"
SCORES = (AIC, BIC, MDL, LIKELIHOOD)
MAX_CELLS = 1 << 26  # of the largest table of one family


def family_counts(
    codes: Integers,
    cardinality: Sequence[int],
    child: int,
    parents: tuple[int, ...],
    weight: Floats | None = None,
) -> Floats:
    """Return the counts of the child's values by combinations of its parents' values.

    codes: (n_rows, n_columns) from 0, below 0 where missing; a row in which a member of the
    family is missing is not counted.  weight: (n_rows,), 1 unless given.  Returns one row
    for each combination of the parents' values (the last parent's changes fastest), one
    column for each value of the child.  Raises UsageError beyond MAX_CELLS.
    """
    rows, values = check_family(cardinality, child, parents)
    cell = np.zeros(len(codes), np.int64)
    missing = np.zeros(len(codes), bool)
    for node in (*parents, child):
        column = codes[:, node]
        missing |= column < 0
        cell *= cardinality[node]
        cell += column
    cell[missing] = rows * values
    counts = np.bincount(cell, weight, rows * values + 1)[:-1]
    return np.asarray(counts.reshape(rows, values), dtype=np.float64)


def check_family(
    cardinality: Sequence[int], child: int, parents: tuple[int, ...]
) -> tuple[int, int]:
    """Return the shape of a family's table; raises UsageError beyond MAX_CELLS."""
    sizes = [cardinality[node] for node in (*parents, child)]
    what = f"tables of {len(parents)} parents"
    advice = "take fewer, by --max-parents or in --structure"
    refuse_large("network", what, sizes, MAX_CELLS, advice)
    return prod(sizes[:-1]), sizes[-1]


class FamilyScores:
    """The costs of families on given data, computed when first asked for.

    codes, weight: see `family_counts`; score: one of SCORES, or UsageError.
    """

    def __init__(
        self,
        codes: Integers,
        cardinality: Sequence[int],
        score: str = BIC,
        weight: Floats | None = None,
    ) -> None:
        if score not in SCORES:
            raise UsageError(f"criterion: {score!r} is unknown; choose from {', '.join(SCORES)}")
        # Column by column in memory, because a family reads few columns and all rows.
        self._codes = np.asfortranarray(codes)
        self.cardinality = tuple(cardinality)
        self.score = score
        self._weight = weight
        # The number of rows, or the sum of their weights.
        self.n_rows = float(len(codes) if weight is None else weight.sum())
        self._kept: dict[tuple[int, tuple[int, ...]], float] = {}
        gaps = (self._codes < 0).any()
        self._alone = [self.log_likelihood(i, ()) for i in range(len(cardinality))] if gaps else []

    def log_likelihood(self, child: int, parents: tuple[int, ...]) -> float:
        """Return the maximum log-likelihood of a column given its parents, nats.

        A row in which a parent is missing counts as if the column had none.  Parents gain by
        known rows alone; scaled up to all rows, what is chance in a few would make arrows: E-360.
        """
        counts = family_counts(self._codes, self.cardinality, child, parents, self._weight)
        likelihood = _log_likelihood(counts)
        if parents and self._alone:
            likelihood += self._alone[child] - _log_likelihood(counts.sum(axis=0, keepdims=True))
        return likelihood

    def gain(self, child: int, given: tuple[int, ...], parent: int) -> float:
        """Return the gain in log-likelihood by one more parent, of rows that lack none, nats."""
        parents = tuple(sorted((*given, parent)))
        counts = family_counts(self._codes, self.cardinality, child, parents, self._weight)
        table = counts.reshape([self.cardinality[node] for node in (*parents, child)])
        without = table.sum(axis=parents.index(parent)).reshape(-1, self.cardinality[child])
        return _log_likelihood(counts) - _log_likelihood(without)

    def family(self, child: int, parents: tuple[int, ...]) -> float:
        """Return the cost of a node with these parents, nats; parents: ascending."""
        key = child, parents
        if key not in self._kept:
            penalty = self._penalty(child, parents)
            self._kept[key] = penalty - self.log_likelihood(child, parents)
        return self._kept[key]

    def total(self, parents: Parents) -> float:
        """Return the cost of a whole structure, nats: the sum over its families."""
        return sum(self.family(child, nodes) for child, nodes in enumerate(parents))

    def n_parameters(self, child: int, parents: tuple[int, ...]) -> int:
        """Return how many probabilities of a family are free."""
        return prod(self.cardinality[p] for p in parents) * (self.cardinality[child] - 1)

    def _penalty(self, child: int, parents: tuple[int, ...]) -> float:
        if self.score == LIKELIHOOD:
            return 0.0
        size = self.n_parameters(child, parents)
        if self.score == AIC:
            return float(size)
        cost = 0.5 * log(max(self.n_rows, 1.0)) * size
        if self.score == MDL:
            # MDL also encodes the arrows: how many parents, and which ones (Friedman &
            # Goldszmidt 1996, section 2).
            n = len(self.cardinality)
            cost += log(n) + log(comb(n - 1, len(parents)))
        return cost


def _log_likelihood(counts: Floats) -> float:
    seen, total = (n[n > 0] for n in (counts, counts.sum(axis=1)))
    return float(seen @ np.log(seen)) - float(total @ np.log(total))


# --- search: hill climbing by adding, removing and reversing arrows --------------------------

# The best single change is made as long as it improves the score.  After that the least bad
# change to a structure not visited lately is made (tabu search, Glover 1989), until many changes
# in a row have brought no improvement.  The best structure visited is returned.

_TABU = 100  # recent structures that are not visited again
_PATIENCE = 20  # changes without improvement before the search ends
MAX_PARENTS = 3  # of a node, unless the caller gives a limit
_MANY_CELLS = 1 << 20  # limit of one table, unless the caller asks for many parents
_LEAST_GAIN = 1e-9  # nats; a smaller gain is a rounding error, as is 1e-14 of the whole cost
_SIMPLER = 1e-6  # nats; the cost of any arrow, so that useless ones are removed


class ArrowChange(NamedTuple):
    """A change of one arrow."""

    gain: float  # nats
    what: str  # add, remove or reverse
    parent: int
    child: int


def hill_climb(
    scores: FamilyScores,
    start: Parents,
    max_parents: int | None = None,
    roots: Collection[int] = (),
) -> Parents:
    """Return the best structure found from a start; raises UsageError.

    max_parents: of a node; unless given, three, or fewer if the table would have more cells
    than data could fill.  If a table of max_parents could not be kept in memory, UsageError
    is raised.  roots: nodes that must not get parents.
    """
    if max_parents is not None:
        child, *others = np.argsort(scores.cardinality, kind="stable")[::-1].tolist()
        check_family(scores.cardinality, child, tuple(others[:max_parents]))
    climber = _Climber(scores, start, max_parents, roots)
    best, best_cost, cost = start, 0.0, 0.0
    least_gain = max(_LEAST_GAIN, 1e-14 * abs(scores.total(start)))
    seen: deque[bytes] = deque([climber.arrows.tobytes()], _TABU)
    without_gain = 0
    while without_gain < _PATIENCE:
        change = climber.best_change(set(seen))
        if change is None:
            break
        climber.make(change)
        seen.append(climber.arrows.tobytes())
        cost -= change.gain
        without_gain += 1
        if cost < best_cost - least_gain:
            best, best_cost, without_gain = parents_of(climber.arrows), cost, 0
    return best


class _Climber:
    """The current structure, and the gain of every change of one arrow."""

    def __init__(
        self, scores: FamilyScores, start: Parents, max_parents: int | None, roots: Collection[int]
    ) -> None:
        self.scores = scores
        most = MAX_PARENTS if max_parents is None else max_parents
        self.most = [0 if node in roots else most for node in range(len(start))]
        self.most_cells = _MANY_CELLS if max_parents is None else MAX_CELLS
        self.arrows = arrows_of(start)
        self._reach = _reach(self.arrows)
        # [parent, child]: the gain of adding the arrow, or removing it if it exists, nats.
        self._toggle: Floats = np.zeros(self.arrows.shape)
        for child in tracked(range(len(start)), "columns"):
            self._update_gains(child)

    def _update_gains(self, child: int) -> None:
        """Compute the gain of adding or removing each arrow to this child."""
        its_parents = tuple(np.flatnonzero(self.arrows[:, child]).tolist())
        now, sizes = self.scores.family(child, its_parents), self.scores.cardinality
        n_cells = prod(sizes[node] for node in (child, *its_parents))
        may_have_more = len(its_parents) < self.most[child]
        self._toggle[:, child] = -np.inf
        for node in range(len(self.arrows)):
            if node in its_parents:
                without = tuple(p for p in its_parents if p != node)
                cost = self.scores.family(child, without)
                self._toggle[node, child] = now - cost + _SIMPLER
            elif node != child and may_have_more and n_cells * sizes[node] <= self.most_cells:
                cost = self.scores.family(child, tuple(sorted((*its_parents, node))))
                self._toggle[node, child] = now - cost - _SIMPLER

    def best_change(self, tabu: set[bytes]) -> ArrowChange | None:
        """Return the allowed change with the highest gain, even below 0; None if none is.

        tabu: structures, as bytes of their arrows, that must not be visited.
        """
        arrows, reach, toggle = self.arrows, self._reach, self._toggle
        # An arrow may be added unless a path leads from the child to the parent.
        add = np.where(arrows | reach.T, -np.inf, toggle)
        remove = np.where(arrows, toggle, -np.inf)
        # It may be reversed unless another path leads from the parent to the child, that
        # is, a path whose first step goes to another child of the parent.
        parents, children = np.nonzero(arrows)
        is_only = (arrows[parents] & reach.T[children]).sum(axis=1) == 1
        reverse = np.full(arrows.shape, -np.inf)
        reverse[arrows] = np.where(is_only, (toggle + toggle.T)[arrows], -np.inf)
        gains = np.stack([add, remove, reverse])
        # Among this many changes, one leads to a structure that is not tabu.
        most = min(len(tabu) + 1, gains.size)
        some = np.sort(np.argpartition(-gains, most - 1, axis=None)[:most])
        for flat in some[np.argsort(-gains.ravel()[some], kind="stable")].tolist():
            kind, parent, child = np.unravel_index(flat, gains.shape)
            gain = float(gains[kind, parent, child])
            if gain == -np.inf:
                break
            change = ArrowChange(gain, ("add", "remove", "reverse")[kind], int(parent), int(child))
            if self._after(change).tobytes() not in tabu:
                return change
        return None

    def _after(self, change: ArrowChange) -> Booleans:
        arrows = self.arrows.copy()
        arrows[change.parent, change.child] = change.what == "add"
        if change.what == "reverse":
            arrows[change.child, change.parent] = True
        return arrows

    def make(self, change: ArrowChange) -> None:
        """Apply a change."""
        self.arrows = self._after(change)
        if change.what == "add":  # from what reaches the parent to what the child reaches
            self._reach |= self._reach[:, [change.parent]] & self._reach[change.child]
        else:
            self._reach = _reach(self.arrows)
        self._update_gains(change.child)
        if change.what == "reverse":
            self._update_gains(change.parent)


def _reach(arrows: Booleans) -> Booleans:
    """Return, at [a, b], whether a path leads from a to b; every node reaches itself."""
    reach = (arrows | np.eye(len(arrows), dtype=bool)).astype(np.float32)
    while True:
        further = np.minimum(reach @ reach, 1.0)
        if (further == reach).all():
            return reach > 0
        reach = further


# --- starts ------------------------------------------------------------------------------


def tree_start(scores: FamilyScores, target: int | None = None) -> Parents:
    """Return the most likely tree; if a target is given, it is also a parent of all others.

    Chow & Liu (1968); with a target, TAN: Friedman, Geiger & Goldszmidt (1997).  Edges are
    weighted by (conditional) mutual information, computed as gain of log-likelihood: of two
    columns at a time, while `TAN` has the counts of all pairs of values, which may be too many.
    """
    given = () if target is None else (target,)
    n_nodes = len(scores.cardinality)
    nodes = [i for i in range(n_nodes) if i != target]
    parents = [() if i == target else given for i in range(n_nodes)]
    if not nodes:
        return tuple(parents)
    weight = np.zeros((len(nodes), len(nodes)))
    n_pairs = len(nodes) * (len(nodes) - 1) // 2
    for b in tracked(range(len(nodes)), "columns", Extent(lambda: n_pairs, lambda b: b)):
        for a in range(b):
            weight[a, b] = weight[b, a] = scores.gain(nodes[b], given, nodes[a])
    for node, parent in zip(nodes[1:], spanning_tree(weight)[1:].tolist(), strict=True):
        parents[node] = tuple(sorted((*given, nodes[parent])))
    return tuple(parents)


def spanning_tree(weight: Floats, root: int = 0) -> Integers:
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
