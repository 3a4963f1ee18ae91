"""Directed acyclic graphs: order, ancestors, moral graph, d-separation, and DOT.

A graph is given by its parents: parents[i] is the ascending tuple of the nodes with an arrow
to node i.

Secret: d-separation is tested as connectivity in the moral graph of the ancestors
(Lauritzen, Dawid, Larsen & Leimer 1990, proposition 3).
"""

from collections.abc import Iterable, Sequence

from nbspam.errors import UsageError

Parents = tuple[tuple[int, ...], ...]


def topological_order(parents: Parents) -> list[int]:
    """Return the nodes, parents before their children; raises UsageError on a cycle."""
    order: list[int] = []
    placed: set[int] = set()
    waiting = list(range(len(parents)))
    while waiting:
        ready = [i for i in waiting if placed.issuperset(parents[i])]
        if not ready:
            raise UsageError(f"network: nodes {waiting} are in a cycle; remove an arrow")
        order += ready
        placed.update(ready)
        waiting = [i for i in waiting if i not in placed]
    return order


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


def children(parents: Parents) -> list[list[int]]:
    """Return the children of each node."""
    to: list[list[int]] = [[] for _ in parents]
    for child, its_parents in enumerate(parents):
        for parent in its_parents:
            to[parent].append(child)
    return to


def moral_graph(parents: Parents, nodes: Iterable[int] | None = None) -> set[tuple[int, int]]:
    """Return the edges (low, high) of the moral graph.

    The parents of each child are joined by an edge, and arrows become edges.
    nodes: restrict the graph to these; all unless given.
    """
    kept = set(range(len(parents))) if nodes is None else set(nodes)
    edges = set()
    for child in kept:
        family = sorted(kept.intersection([child, *parents[child]]))
        edges |= {(a, b) for n, a in enumerate(family) for b in family[n + 1 :]}
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
    quoted = [_quoted(name) for name in names]
    if moral:
        lines = [f"  {quoted[a]} -- {quoted[b]};" for a, b in sorted(moral_graph(parents))]
        kind = "graph"
    else:
        arrows = sorted((p, child) for child, nodes in enumerate(parents) for p in nodes)
        lines = [f"  {quoted[a]} -> {quoted[b]};" for a, b in arrows]
        kind = "digraph"
    nodes = [f"  {name};" for name in quoted]
    return "\n".join([f"{kind} network {{", *nodes, *lines, "}"])


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
