"""From labelled mail and text to a classifier: what `train` writes and `lazy` asks.

Secret: how the command line's words become items and settings, and who watches the count.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from nbspam.cli.arguments import are_many, peek, read_sources, settings_for, today
from nbspam.cli.output import report_skipped


def learn(
    sources: tuple[str, ...], options: dict[str, Any], jobs: int, strict: bool = False
) -> Any:
    """Return what was learned of labelled sources, having said what was skipped."""
    # By itself first: Python 3.11 asks for stack space piece by piece, and from as deep as
    # our own imports nest it asks and gives back at a thousand calls of numpy's (E-015).
    import_module("numpy")
    from nbspam.classifier import training as learning

    is_text, items = peek(read_sources(sources, options))
    many, items = are_many(items)
    settings = settings_for(is_text, options, many)
    with _progress() as progress:
        learned = learning.learn(items, settings, jobs, progress, today())
    report_skipped(learned.skipped, strict)
    return learned


@contextmanager
def _progress() -> Iterator[Callable[[int], None] | None]:
    """Yield a function that shows a running count, if somebody is there to see it."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status("reading") as status:
        yield lambda n: status.update(f"{n:,} messages read")
