"""The way in to merging: what the files that are named hold.

Secret: which files beside models are not models.
"""

import re
from collections.abc import Sequence

from nbspam.disk import resolved
from nbspam.errors import UsageError
from nbspam.store.format.modelfile import read_snapshot
from nbspam.store.merging.models import merge_models
from nbspam.store.merging.outcome import Merged
from nbspam.store.merging.parts import Part, is_part, merge_parts, part_of
from nbspam.store.tables import StoredTable, living, merge_tables

# The endings of what nbspam keeps beside a model: the model that it replaced, locks, journals, and
# what the page of `nbspam serve` keeps.
_BESIDE = re.compile(
    r"(?:~|\.lock|\.journal(?:\.[0-9a-f]{8})?|\.secret|\.review(?:-wal|-shm|\.damaged)?)+$"
)


def merge(paths: Sequence[str], day: int) -> Merged:
    """Return the model of all messages that several models, or parts, know; raises NbspamError.

    paths: the files; what nbspam keeps beside one of them is left out, so that `part.*` names
    the parts.  The first file decides whether they are parts of one training, models of mail
    or text, or models of tables.  day: on which parts are learned, counted from 1970-01-01;
    models know the days of their messages.
    """
    paths = _without_beside(paths)
    if is_part(read_snapshot(resolved(paths[0])).state):
        return merge_parts([_part_at(path) for path in paths], day)
    if len(paths) < 2:
        raise UsageError("merge: only one model; name two or more")
    if isinstance(living(paths[0]), StoredTable):
        return Merged(merge_tables(paths), len(paths))
    return merge_models(paths)


def _without_beside(paths: Sequence[str]) -> list[str]:
    """Return the paths without those of files that belong to others among them."""
    named = set(paths)
    return [path for path in paths if _BESIDE.sub("", path) not in named - {path}]


def _part_at(path: str) -> Part:
    snapshot = read_snapshot(resolved(path))
    if not is_part(snapshot.state):
        raise UsageError(
            f"{path}: a model, named with parts of a training; merge the parts by themselves,"
            " and their model with this one then"
        )
    return part_of(path, snapshot)
