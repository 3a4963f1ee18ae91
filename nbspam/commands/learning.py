"""From labelled mail and text to a classifier: what `train` writes and `lazy` asks.

Secret: which models learn from counts, and which have to see the documents.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from nbspam.commands.shared import peek, read_sources, report_skipped, settings_for


def learn(
    sources: tuple[str, ...], options: dict[str, Any], jobs: int, strict: bool = False
) -> tuple[Any, Any]:
    """Return the classifier of labelled sources, and what was skipped, having said so."""
    from nbspam.featureclassifier import train_features
    from nbspam.settings import FEATURES
    from nbspam.training import count_items, train
    from nbspam.validation import read_corpus

    is_text, items = peek(read_sources(sources, options))
    settings = settings_for(is_text, options)
    if settings.model in FEATURES:
        # Which tokens go together is to be seen in the documents alone, not in counts.
        data, skipped = read_corpus(items, settings, jobs)
        report_skipped(skipped, strict)
        return train_features(data, settings), skipped
    with _progress() as progress:
        training = count_items(items, settings, jobs, progress)
    report_skipped(training.skipped, strict)
    return train(training, settings), training.skipped


@contextmanager
def _progress() -> Iterator[Callable[[int], None] | None]:
    """Yield a function that shows a running count, if somebody is there to see it."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status("reading") as status:
        yield lambda n: status.update(f"{n:,} messages read")
