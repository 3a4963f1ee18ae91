"""Looking for a structure: hill climbing over arrows added, removed and turned.

From the start, the best single change is made as long as there is one that pays; then
the least bad, of those that lead to a structure not seen lately (tabu search, Glover
1989), until many in a row have not paid.  The best structure met is returned.

Secret: which changes keep the graph free of cycles, and what they would gain.
"""

from collections import deque
from collections.abc import Collection
from math import prod
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Floats
from nbspam.models.network.graphs import Parents
from nbspam.models.network.structure import MAX_CELLS, FamilyScores, check_max_parents

# Structures not to come back to, and changes without gain before giving up.
_TABU = 100
_PATIENCE = 20
MAX_PARENTS = 3
_MANY_CELLS = 1 << 20  # of a table that no data fill, when nobody asked for so many parents
_LEAST_GAIN = 1e-9
_SIMPLER = 1e-6  # nats: what an arrow costs by itself, so that idle ones go


class Change(NamedTuple):
    """An arrow and what to do with it."""

    gain: float  # nats
    what: str  # add, remove, turn
    parent: int
    child: int


def hill_climb(
    scores: FamilyScores,
    start: Parents,
    max_parents: int | None = None,
    roots: Collection[int] = (),
) -> Parents:
    """Return the best structure found from a start; raises UsageError beyond memory.

    max_parents: of a node; unless given three, as far as their tables are of a size that
    data could fill.  roots: nodes that are not to get parents.
    """
    if max_parents is not None:
        check_max_parents(scores.cardinality, max_parents)
    climber = _Climber(scores, start, max_parents, roots)
    best, best_cost, cost = climber.parents(), 0.0, 0.0
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
        if cost < best_cost - _LEAST_GAIN:
            best, best_cost, without_gain = climber.parents(), cost, 0
    return best


class _Climber:
    """A structure and the gain of every single change to it."""

    def __init__(
        self, scores: FamilyScores, start: Parents, max_parents: int | None, roots: Collection[int]
    ) -> None:
        self.scores = scores
        most = MAX_PARENTS if max_parents is None else max_parents
        self.most = [0 if node in roots else most for node in range(len(start))]
        self.most_cells = _MANY_CELLS if max_parents is None else MAX_CELLS
        n = len(start)
        self.arrows: Booleans = np.zeros((n, n), bool)  # [parent, child]
        for child, of in enumerate(start):
            self.arrows[list(of), child] = True
        # What adding (or, where it stands, removing) an arrow gains, nats.
        self._toggle: Floats = np.zeros((n, n))
        for child in range(n):
            self._look_at(child)

    def parents(self) -> Parents:
        """Return the structure."""
        return tuple(tuple(np.flatnonzero(column).tolist()) for column in self.arrows.T)

    def _look_at(self, child: int) -> None:
        """Note what each arrow to this child would gain, or its removal."""
        of = tuple(np.flatnonzero(self.arrows[:, child]).tolist())
        now = self.scores.family(child, of)
        for node in range(len(self.arrows)):
            if node == child:
                gain = -np.inf
            elif node in of:
                without = tuple(p for p in of if p != node)
                gain = now - self.scores.family(child, without) + _SIMPLER
            elif len(of) < self.most[child] and self._fits(node, child, of):
                gain = now - self.scores.family(child, tuple(sorted((*of, node)))) - _SIMPLER
            else:
                gain = -np.inf
            self._toggle[node, child] = gain

    def _fits(self, node: int, child: int, of: tuple[int, ...]) -> bool:
        family = (node, child, *of)
        return prod(self.scores.cardinality[n] for n in family) <= self.most_cells

    def best_change(self, tabu: set[bytes]) -> Change | None:
        """Return the allowed change that gains most, or loses least; None if there is none."""
        reach = _reach(self.arrows)
        arrows, toggle = self.arrows, self._toggle
        # An arrow may be added unless its head leads back to its tail.
        add = np.where(arrows | reach.T, -np.inf, toggle)
        remove = np.where(arrows, toggle, -np.inf)
        # It may be turned unless another way leads from tail to head, by a first step to
        # another child of the tail.
        detour = (arrows.astype(np.float32) @ reach.astype(np.float32)) > arrows
        turn = np.where(arrows & ~detour, toggle + toggle.T, -np.inf)
        gains = np.stack([add, remove, turn])
        # Of so many, one leads to a structure that is not tabu.
        most = min(len(tabu) + 1, gains.size)
        some = np.sort(np.argpartition(-gains, most - 1, axis=None)[:most])
        for flat in some[np.argsort(-gains.ravel()[some], kind="stable")].tolist():
            kind, parent, child = np.unravel_index(flat, gains.shape)
            gain = float(gains[kind, parent, child])
            if gain == -np.inf:
                return None
            change = Change(gain, ("add", "remove", "turn")[kind], int(parent), int(child))
            if self._after(change).tobytes() not in tabu:
                return change
        return None

    def _after(self, change: Change) -> Booleans:
        arrows = self.arrows.copy()
        arrows[change.parent, change.child] = change.what == "add"
        if change.what == "turn":
            arrows[change.child, change.parent] = True
        return arrows

    def make(self, change: Change) -> None:
        """Make a change."""
        self.arrows = self._after(change)
        self._look_at(change.child)
        if change.what == "turn":
            self._look_at(change.parent)


def _reach(arrows: Booleans) -> Booleans:
    """Return from where arrows lead to where, each node to itself included."""
    reach = (arrows | np.eye(len(arrows), dtype=bool)).astype(np.float32)
    while True:
        further = np.minimum(reach @ reach, 1.0)
        if (further == reach).all():
            return reach > 0
        reach = further


# --- starts ------------------------------------------------------------------------------


def empty_start(n_nodes: int) -> Parents:
    """Return the graph without arrows."""
    return ((),) * n_nodes


def naive_start(n_nodes: int, target: int) -> Parents:
    """Return naive Bayes as a graph: the target is every other node's one parent."""
    return tuple(() if i == target else (target,) for i in range(n_nodes))


def tree_start(scores: FamilyScores, target: int | None = None) -> Parents:
    """Return the most likely tree, under a target that is a parent of all if given.

    Chow & Liu (1968); with a target, TAN: Friedman, Geiger & Goldszmidt (1997).  Weights
    are (conditional) mutual information, here as gains of log-likelihood.
    """
    given = () if target is None else (target,)
    n_nodes = len(scores.cardinality)
    nodes = [i for i in range(n_nodes) if i != target]
    parents = [() if i == target else given for i in range(n_nodes)]
    if not nodes:
        return tuple(parents)
    alone = {i: scores.log_likelihood(i, given) for i in nodes}
    weight = {
        (i, j): scores.log_likelihood(j, tuple(sorted((*given, i)))) - alone[j]
        for n, i in enumerate(nodes)
        for j in nodes[n + 1 :]
    }
    # Prim's algorithm, from the first node as root.
    outside = nodes[1:]
    link = {j: (weight[nodes[0], j], nodes[0]) for j in outside}
    while outside:
        node = max(outside, key=lambda j: (link[j][0], -j))
        parents[node] = tuple(sorted((*given, link[node][1])))
        outside.remove(node)
        for j in outside:
            w = weight[min(node, j), max(node, j)]
            if w > link[j][0]:
                link[j] = w, node
    return tuple(parents)
