"""Training on labelled mail, texts and rows, for `train` and `lazy`; learning on, for `update`."""

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from nbspam.bounds import UNBOUNDED, Bounds
from nbspam.cli.arguments import items_of, today
from nbspam.cli.options import Labels
from nbspam.cli.output import report_skipped, warn
from nbspam.cli.tables import check_label_column
from nbspam.errors import NotTrainedError, UsageError
from nbspam.settings import FEATURES, Choices, Settings, settings_for
from nbspam.sources.items import Item, SourceOptions

if TYPE_CHECKING:
    from nbspam.classifier.training import Learned
    from nbspam.counts.shards.shares import Share
    from nbspam.parallel import Workers
    from nbspam.sources.records import Record
    from nbspam.store.model import StoredModel
    from nbspam.tables.em import EmReport
    from nbspam.tables.training import TableSettings
    from nbspam.verdicts import Skipped


class Counted(NamedTuple):
    """What one shard has counted."""

    share: "Share"
    settings: Settings
    skipped: "tuple[Skipped, ...]"


def new_model(
    model_path: str, items: Iterator[Item], reading: SourceOptions
) -> "tuple[StoredModel, Iterator[Item]]":
    """Return a model that the first item makes, with the settings that suit it, and the items."""
    from nbspam.store.model import StoredModel

    settings, items = settings_for(items, Choices(), reading.listener)
    return StoredModel(model_path, new=settings), items


def told_one(items: Iterator[Item], sources: Sequence[str], labels: Labels) -> Iterator[Item]:
    """Return the items; a single one whose class an option states counts as told by a person.

    So learns a mail reader that pipes the message in, or somebody who names its file.  What lies
    in a folder, mailbox or table has been filed, even if it is alone there.
    """
    if len(sources) or len(labels.paths) != 1 or _is_filed(labels.paths[0][1]):
        return items
    first = list(islice(items, 2))
    if len(first) == 1 and first[0].series is None:
        first = [first[0]._replace(told=True)]
    return chain(first, items)


def _is_filed(path: str) -> bool:
    from nbspam.sources.mailboxes import holds_many

    return path != "-" and holds_many(path)


def learn(
    sources: Iterable[str],
    reading: SourceOptions,
    labels: Labels,
    training: Choices,
    jobs: "Workers",
    strict: bool = False,
    bounds: Bounds = UNBOUNDED,
) -> "Learned":
    """Return the classifier of labelled sources; say on standard error what was skipped."""
    # Import numpy from here and not from deep inside our own imports: Python 3.11 extends its
    # stack chunk by chunk, and at that depth a thousand calls of numpy's each allocate and free
    # a chunk (E-015).
    import_module("numpy")
    from nbspam.classifier import training as library

    settings, items = settings_for(items_of(sources, reading, labels), training, reading.listener)
    try:
        learned = library.learn(items, settings, jobs, today(), bounds)
    except NotTrainedError:
        if not labels.paths:
            check_label_column(reading)
        raise
    report_skipped(learned.skipped, strict)
    return learned


def count_part(
    sources: Iterable[str],
    reading: SourceOptions,
    labels: Labels,
    training: Choices,
    shard: tuple[int, int],
    jobs: "Workers",
    strict: bool = False,
) -> "Counted":
    """Return what one shard of labelled sources has counted, and the settings of all shards."""
    import_module("numpy")  # as in `learn`
    from nbspam.counts.shards.shares import Shard, count_share

    settings, items = settings_for(items_of(sources, reading, labels), training, reading.listener)
    if settings.model in FEATURES:
        raise UsageError(
            f"--shard: --model {settings.model} needs all documents at once; train it without"
        )
    share, skipped = count_share(items, settings, Shard(*shard), jobs)
    report_skipped(skipped, strict)
    return Counted(share, settings, skipped)


def learn_rows(
    records: "Iterator[Record]",
    others: "Iterator[Record]",
    settings: "TableSettings",
    weight: float,
    hard: bool,
) -> "EmReport":
    """Return what EM makes of rows with a class and of others, whose classes are not read."""
    from nbspam.tables.em import train_by_em, without_class
    from nbspam.tables.training import read_table

    rows = chain(records, without_class(others, settings.target))
    data = read_table(rows, settings, with_unlabelled=True)
    for note in data.notes:
        warn(note)
    return train_by_em(data.table, settings, weight, hard)
