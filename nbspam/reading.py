"""Items to messages, read as a model's settings say.

Secret: that not everything to be classified is mail, and how many items go at a time.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from nbspam.errors import InputError
from nbspam.message import Field, Message, parse_message, plain_text
from nbspam.parallel import ordered_map
from nbspam.settings import Settings
from nbspam.sources import Item, Skipped, chunks
from nbspam.stripping import strip

# A chunk is what one process works on between two messages to its parent.
_CHUNK_ITEMS = 256
_CHUNK_BYTES = 8 << 20
_NOT_WORD = re.compile(r"[^\w]")
Result = TypeVar("Result")


def chunk_by_chunk(
    work: Callable[[list[Item]], Result], items: Iterable[Item], jobs: int
) -> Iterator[Result]:
    """Yield what the work makes of every chunk of items, in order, in `jobs` processes."""
    return ordered_map(work, chunks(items, _CHUNK_ITEMS, _CHUNK_BYTES), jobs)


def read_message(item: Item, settings: Settings) -> Message:
    """Return an item's fields; raises InputError."""
    return _message_of(item.read(), item.is_text, settings)


def _message_of(data: bytes, is_text: bool, settings: Settings) -> Message:
    data = strip(data, settings.strip)
    if settings.reading == "latin1":
        # Lower case before cutting: the token table folds ASCII only.
        text = _NOT_WORD.sub(" ", data.decode("latin-1").lower())
        return Message((Field("body", text.encode()),), ())
    if is_text or settings.reading == "text":
        return plain_text(data)
    return parse_message(data)


def read_messages(
    items: Iterable[Item], settings: Settings
) -> tuple[list[Item], list[Message], list[Skipped]]:
    """Return items that could be read, their messages, and those that could not."""
    read, messages, skipped = [], [], []
    for item in items:
        try:
            messages.append(read_message(item, settings))
        except InputError as error:
            skipped.append(Skipped(item.name, str(error)))
        else:
            read.append(item)
    return read, messages, skipped


def read_labelled(
    items: Iterable[Item], settings: Settings
) -> tuple[list[Item], list[Message], list[Skipped]]:
    """Return the same for items with a label; those without are skipped."""
    items = list(items)
    unlabelled = [Skipped(item.name, "no label") for item in items if item.label is None]
    labelled = (item for item in items if item.label is not None)
    read, messages, unread = read_messages(labelled, settings)
    return read, messages, unlabelled + unread


def read_to_learn(
    items: Iterable[Item], settings: Settings
) -> tuple[list[Item], list[Message], list[int], list[Skipped]]:
    """Return the same and the messages' digests, read once."""
    from nbspam.digests import digest_of

    read, messages, digests, skipped = [], [], [], []
    for item in items:
        if item.label is None:
            skipped.append(Skipped(item.name, "no label"))
            continue
        try:
            data = item.read()
        except InputError as error:
            skipped.append(Skipped(item.name, str(error)))
            continue
        read.append(item)
        messages.append(_message_of(data, item.is_text, settings))
        digests.append(digest_of(data, item.is_text or settings.reading != "mail"))
    return read, messages, digests, skipped
