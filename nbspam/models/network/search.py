"""Structure search: hill climbing by adding, removing and reversing arrows.

The best single change is made as long as it improves the score.  After that the least bad
change to a structure not visited lately is made (tabu search, Glover 1989), until many
changes in a row have brought no improvement.  The best structure visited is returned.

Secret: which changes keep the graph acyclic, and what each change would gain.
"""

from collections import deque
from collections.abc import Collection
from math import prod
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Floats
from nbspam.models.network.graphs import Parents
from nbspam.models.network.structure import MAX_CELLS, FamilyScores, check_max_parents

_TABU = 100  # recent structures that are not visited again
_PATIENCE = 20  # changes without improvement before the search ends
MAX_PARENTS = 3  # of a node, unless the caller gives a limit
_MANY_CELLS = 1 << 20  # limit of one table, unless the caller asks for many parents
_LEAST_GAIN = 1e-9  # nats; a smaller gain is a rounding error
_SIMPLER = 1e-6  # nats; the cost of any arrow, so that useless ones are removed


class Change(NamedTuple):
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
    """The current structure, and the gain of every change of one arrow."""

    def __init__(
        self, scores: FamilyScores, start: Parents, max_parents: int | None, roots: Collection[int]
    ) -> None:
        self.scores = scores
        most = MAX_PARENTS if max_parents is None else max_parents
        self.most = [0 if node in roots else most for node in range(len(start))]
        self.most_cells = _MANY_CELLS if max_parents is None else MAX_CELLS
        n = len(start)
        self.arrows: Booleans = np.zeros((n, n), bool)  # [parent, child]
        for child, its_parents in enumerate(start):
            self.arrows[list(its_parents), child] = True
        # [parent, child]: the gain of adding the arrow, or removing it if it exists, nats.
        self._toggle: Floats = np.zeros((n, n))
        for child in range(n):
            self._update_gains(child)

    def parents(self) -> Parents:
        """Return the current structure."""
        return tuple(tuple(np.flatnonzero(column).tolist()) for column in self.arrows.T)

    def _update_gains(self, child: int) -> None:
        """Compute the gain of adding or removing each arrow to this child."""
        its_parents = tuple(np.flatnonzero(self.arrows[:, child]).tolist())
        now = self.scores.family(child, its_parents)
        for node in range(len(self.arrows)):
            if node == child:
                gain = -np.inf
            elif node in its_parents:
                without = tuple(p for p in its_parents if p != node)
                gain = now - self.scores.family(child, without) + _SIMPLER
            elif len(its_parents) < self.most[child] and self._fits(node, child, its_parents):
                more = tuple(sorted((*its_parents, node)))
                gain = now - self.scores.family(child, more) - _SIMPLER
            else:
                gain = -np.inf
            self._toggle[node, child] = gain

    def _fits(self, node: int, child: int, its_parents: tuple[int, ...]) -> bool:
        family = (node, child, *its_parents)
        return prod(self.scores.cardinality[n] for n in family) <= self.most_cells

    def best_change(self, tabu: set[bytes]) -> Change | None:
        """Return the allowed change with the highest gain, even below 0; None if none is.

        tabu: structures, as bytes of their arrows, that must not be visited.
        """
        reach = _reach(self.arrows)
        arrows, toggle = self.arrows, self._toggle
        # An arrow may be added unless a path leads from the child to the parent.
        add = np.where(arrows | reach.T, -np.inf, toggle)
        remove = np.where(arrows, toggle, -np.inf)
        # It may be reversed unless another path leads from the parent to the child, that
        # is, a path whose first step goes to another child of the parent.
        detour = (arrows.astype(np.float32) @ reach.astype(np.float32)) > arrows
        reverse = np.where(arrows & ~detour, toggle + toggle.T, -np.inf)
        gains = np.stack([add, remove, reverse])
        # Among this many changes, one leads to a structure that is not tabu.
        most = min(len(tabu) + 1, gains.size)
        some = np.sort(np.argpartition(-gains, most - 1, axis=None)[:most])
        for flat in some[np.argsort(-gains.ravel()[some], kind="stable")].tolist():
            kind, parent, child = np.unravel_index(flat, gains.shape)
            gain = float(gains[kind, parent, child])
            if gain == -np.inf:
                return None
            change = Change(gain, ("add", "remove", "reverse")[kind], int(parent), int(child))
            if self._after(change).tobytes() not in tabu:
                return change
        return None

    def _after(self, change: Change) -> Booleans:
        arrows = self.arrows.copy()
        arrows[change.parent, change.child] = change.what == "add"
        if change.what == "reverse":
            arrows[change.child, change.parent] = True
        return arrows

    def make(self, change: Change) -> None:
        """Apply a change."""
        self.arrows = self._after(change)
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


def empty_start(n_nodes: int) -> Parents:
    """Return the graph without arrows."""
    return ((),) * n_nodes


def naive_start(n_nodes: int, target: int) -> Parents:
    """Return naive Bayes as a graph: the target is the only parent of every other node."""
    return tuple(() if i == target else (target,) for i in range(n_nodes))


def tree_start(scores: FamilyScores, target: int | None = None) -> Parents:
    """Return the most likely tree; if a target is given, it is also a parent of all others.

    Chow & Liu (1968); with a target, TAN: Friedman, Geiger & Goldszmidt (1997).  Edges are
    weighted by (conditional) mutual information, computed as gain of log-likelihood.
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
    # Prim's algorithm; the first node is the root.
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
