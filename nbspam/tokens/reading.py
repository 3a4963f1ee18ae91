"""Items to messages, read as a model's settings say.

Secret: that not everything to be classified is mail, and how work is cut for processes.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby, repeat, starmap
from typing import TypeVar

from nbspam.errors import InputError
from nbspam.mail.message import Field, Message, parse_messages, plain_text
from nbspam.parallel import ordered_map
from nbspam.settings import Settings
from nbspam.sources.items import Chunk, Item, chunks
from nbspam.tokens.stripping import strip
from nbspam.verdicts import Skipped

_LAST_CHUNKS = 2  # are cut smaller ...
_LAST_ITEMS = 64  # ... to so many items
_NOT_WORD = re.compile(r"[^\w]")
Result = TypeVar("Result")


def chunks_of(items: Iterable[Item]) -> Iterator[Chunk]:
    """Yield what one process works on between two messages to its parent.

    The last are small, so that no process works long after the others are done.
    """
    last: deque[Chunk] = deque()
    for chunk in chunks(items):
        last.append(chunk)
        if len(last) > _LAST_CHUNKS:
            yield last.popleft()
    for chunk in last:
        yield from chunks(chunk, _LAST_ITEMS)


def chunk_by_chunk(
    work: Callable[[list[Item]], Result], items: Iterable[Item], jobs: int
) -> Iterator[Result]:
    """Yield what the work makes of every chunk of items, in order, in `jobs` processes."""
    return ordered_map(work, chunks_of(items), jobs)


def read_message(item: Item, settings: Settings) -> Message:
    """Return an item's fields; raises InputError."""
    return _messages_of([item.read()], item.is_text, settings)[0]


def _messages_of(data: Iterable[bytes], is_text: bool, settings: Settings) -> list[Message]:
    """Return the messages that data of one kind are, read one after the other."""
    # No generator: it would hold what it read last while it reads on.
    stripped = map(strip, data, repeat(settings.strip))
    if settings.reading == "latin1":
        return list(map(_latin1_text, stripped))
    if is_text or settings.reading == "text":
        return list(map(plain_text, stripped))
    return parse_messages(stripped)


def _latin1_text(data: bytes) -> Message:
    # Lower case before cutting: the token table folds ASCII only.
    text = _NOT_WORD.sub(" ", data.decode("latin-1").lower())
    return Message((Field("body", text.encode()),), ())


def _read(
    items: Iterable[Item], settings: Settings, note: Callable[[Item, bytes], None]
) -> tuple[list[Message], dict[int, Skipped]]:
    """Return the readable items' messages, and the failures by position.

    note: called with every readable item and its bytes.
    """
    messages: list[Message] = []
    failures: dict[int, Skipped] = {}

    def data_of(place: int, item: Item) -> Iterator[bytes]:
        try:
            data = item.read()
        except InputError as error:
            failures[place] = Skipped(item.name, str(error))
        else:
            note(item, data)
            yield data

    for is_text, alike in groupby(enumerate(items), lambda pair: pair[1].is_text):
        data = chain.from_iterable(starmap(data_of, alike))
        messages += _messages_of(data, is_text, settings)
    return messages, failures


def messages_of(
    items: Iterable[Item], settings: Settings
) -> tuple[list[Message], dict[int, Skipped]]:
    """Return the readable items' messages, and the failures by position."""
    return _read(items, settings, lambda item, data: None)


def read_messages(
    items: Iterable[Item], settings: Settings
) -> tuple[list[Item], list[Message], list[Skipped]]:
    """Return items that could be read, their messages, and those that could not."""
    read: list[Item] = []
    messages, failures = _read(items, settings, lambda item, _: read.append(item))
    return read, messages, list(failures.values())


def read_labelled(
    items: Iterable[Item], settings: Settings
) -> tuple[list[Item], list[Message], list[Skipped]]:
    """Return the same for items with a label; those without are skipped."""
    labelled, unlabelled = _labelled(items)
    read, messages, unread = read_messages(labelled, settings)
    return read, messages, unlabelled + unread


def _labelled(items: Iterable[Item]) -> tuple[list[Item], list[Skipped]]:
    """Return the items with a label, and the others as skipped."""
    items = list(items)
    unlabelled = [Skipped(item.name, "no label") for item in items if item.label is None]
    return [item for item in items if item.label is not None], unlabelled


def read_to_learn(
    items: Iterable[Item], settings: Settings
) -> tuple[list[Item], list[Message], list[int], list[Skipped]]:
    """Return the same and the messages' digests, read once."""
    from nbspam.mail.digest import digest_of

    read: list[Item] = []
    digests: list[int] = []

    def note(item: Item, data: bytes) -> None:
        read.append(item)
        digests.append(digest_of(data, item.is_text or settings.reading != "mail"))

    labelled, unlabelled = _labelled(items)
    messages, failures = _read(labelled, settings, note)
    return read, messages, digests, unlabelled + list(failures.values())
