"""Reading: items become messages, by a model's settings."""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from typing import NamedTuple

from nbspam.errors import InputError
from nbspam.mail.headers import LIMITS, Field, OpenedMessage, open_message
from nbspam.mail.message import Message, parse_opened, plain_text, with_beginning, with_signs
from nbspam.mail.parts import sampled
from nbspam.settings import Settings, TokenSettings
from nbspam.sources.files import is_url
from nbspam.sources.items import Chunk, Item, begins_like_mail, chunks
from nbspam.tokens.tokenizer import batches
from nbspam.verdicts import NO_LABEL, Skipped
from nbspam.workers import Engine, Workers

_LAST_CHUNKS = 2  # chunks at the end that are cut into smaller ones
_LAST_ITEMS = 128  # items in these: E-325
# Modules that are imported late, because a single message may not need them.
_FOR_HTML = [f"nbspam.mail.{name}" for name in ("html", "sheets", "attachments", "wrappings")]
_LOOK_AT = 8  # one in so many messages tells whether mail has HTML
_NOT_WORD = re.compile(r"[^\w]")
# A line that is quoted, or introduces a quotation.
_QUOTED = re.compile(rb"^(?:In article|Quoted from|\||>)|writes in|(?:writes|wrote|says|said):")
# Characters.  An array of labels gives each the room of the longest, and drops a NUL at its end.
_LONGEST_LABEL = 1_000
OpenedItem = OpenedMessage | bytes  # mail, or a text


class MessagesToJudge(NamedTuple):
    """The messages read from some items."""

    messages: list[Message]  # one for each readable item, in order
    failures: dict[int, Skipped]  # the unreadable items, by position among the items given
    notes: dict[int, str]  # oddities of readable items, by position


class MessagesToLearn(NamedTuple):
    """The messages read from labelled items, with their digests; see `MessagesToJudge`."""

    items: list[Item]  # the readable ones, in order
    messages: list[Message]
    digests: list[int]
    failures: dict[int, Skipped]

    @property
    def labels(self) -> list[str]:
        """The classes of the readable items."""
        return [str(item.label) for item in self.items]

    @property
    def told(self) -> list[bool]:
        """Whether a person has told the class of each readable item."""
        return [item.told for item in self.items]

    def parts(self, settings: TokenSettings) -> Iterator["MessagesToLearn"]:
        """Yield the messages in groups that are tokenized together, see `batches`."""
        done = 0
        for group in batches(self.messages, settings):
            own = slice(done, done + len(group))
            yield MessagesToLearn(self.items[own], group, self.digests[own], {})
            done = own.stop


def chunks_of(items: Iterable[Item], jobs: Workers = 1) -> Iterator[Chunk]:
    """Yield items in chunks, each of which one process works on at a time.

    The last chunks are small, so that all processes finish at about the same time.  Engines get
    the bytes of files, which may not be on their machines.
    """
    if jobs == 1:
        yield from chunks(items)
        return
    if isinstance(jobs, Engine):
        items = map(with_data, items)
    last: deque[Chunk] = deque()
    for number, chunk in enumerate(chunks(items)):
        if number == 1 and not chunk[0].is_text:
            # Processes are forked for the second chunk: what mail needs is imported once.  For
            # HTML that takes 15 ms, and mail without any need not wait.
            import_module("nbspam.tokens.forms")
            for name in _FOR_HTML if _has_html(last[0]) else ():
                import_module(name)
        last.append(chunk)
        if len(last) > _LAST_CHUNKS:
            yield last.popleft()
    for chunk in last:
        yield from chunks(chunk, _LAST_ITEMS)


def _has_html(chunk: Chunk) -> bool:
    """Return whether some of a chunk's messages have HTML, or are far away."""
    for item in chunk[::_LOOK_AT]:
        if is_url(item.name):
            return True
        with suppress(InputError):
            if item.read().lower().find(b"html") >= 0:
                return True
    return False


def with_data(item: Item) -> Item:
    """Return the item with its bytes, or with the reason why it cannot be read."""
    if item.data is not None or item.problem is not None:
        return item
    try:
        return item._replace(data=item.read())
    except InputError as error:
        return item._replace(problem=str(error))


def message_of_item(item: Item, settings: Settings) -> Message:
    """Return the message that an item holds, to be judged; raises InputError."""
    message = whole_message(item, settings)
    return with_beginning(message) if settings.has_beginnings else message


def whole_message(item: Item, settings: Settings) -> Message:
    """Return the message that an item holds, without a separate `rest`; raises InputError."""
    return _message(_opened(item, item.read(), settings), settings)


def read_to_judge(items: Iterable[Item], settings: Settings) -> MessagesToJudge:
    """Return the messages that items hold, to be judged, and why some could not be read."""
    found = MessagesToJudge([], {}, {})
    for place, item, data, opened in _readable(enumerate(items), settings, found.failures):
        if not item.is_text and not begins_like_mail(data):
            # Imported late: nearly all items are mail.
            from nbspam.sources.foreign import oddity

            if (odd := oddity(data, settings.columns)) is not None:
                found.notes[place] = odd
        found.messages.append(_message(opened, settings))
    if not settings.has_beginnings:
        return found
    # Faster in a pass of their own: the processor's caches hold less code at a time.
    return found._replace(messages=list(map(with_beginning, found.messages)))


def read_to_learn(items: Iterable[Item], settings: Settings) -> MessagesToLearn:
    """Return the messages and digests of labelled items.

    Items without a label that can name a class, or neither mail nor text, are failures.
    """
    from nbspam.mail.digest import digest_of, mail_digest

    found = MessagesToLearn([], [], [], {})
    labelled: list[tuple[int, Item]] = []
    for place, item in enumerate(items):
        if item.label is None:
            found.failures[place] = Skipped(item.name, NO_LABEL)
        elif len(item.label) > _LONGEST_LABEL or item.label.endswith("\0"):
            found.failures[place] = Skipped(item.name, "its label is no name of a class")
        else:
            labelled.append((place, item))
    for place, item, data, opened in _readable(labelled, settings, found.failures):
        if not item.is_text and not begins_like_mail(data):
            from nbspam.sources.foreign import strangeness  # late, as above

            if (strange := strangeness(data)) is not None:
                found.failures[place] = Skipped(item.name, strange)
                continue
        found.items.append(item)
        if isinstance(opened, OpenedMessage):
            found.digests.append(mail_digest(opened))
        else:
            found.digests.append(digest_of(data, is_text=True))
        found.messages.append(_message(opened, settings))
    return found


def _readable(
    items: Iterable[tuple[int, Item]], settings: Settings, failures: dict[int, Skipped]
) -> Iterator[tuple[int, Item, bytes, OpenedItem]]:
    """Yield position, item, data and opened data of each readable item; note other failures.

    items: with their positions.
    """
    for place, item in items:
        try:
            data = item.read()
        except InputError as error:
            failures[place] = Skipped(item.name, str(error))
        else:
            yield place, item, data, _opened(item, data, settings)


def _opened(item: Item, data: bytes, settings: Settings) -> OpenedItem:
    return data if item.is_text or settings.reading != "mail" else open_message(data)


def _message(opened: OpenedItem, settings: Settings) -> Message:
    if not isinstance(opened, OpenedMessage):
        if settings.reading != "latin1":
            return plain_text(strip(opened, settings.strip))
        data = strip(sampled(opened, LIMITS.text), settings.strip)
        # Lower case before it is cut, because the tokenizer's table folds only ASCII.
        text = _NOT_WORD.sub(" ", data.decode("latin-1").lower())
        return Message((Field("body", text.encode()),))
    if settings.strip:
        opened = open_message(strip(opened.data[1:], settings.strip))
    limits = LIMITS
    if settings.attachments:
        from nbspam.mail.attachments import limits_with_documents

        limits = limits_with_documents()
    message = parse_opened(opened, limits)
    if settings.is_mail_combined:
        message = with_signs(message)
    if settings.sent_mail is None and settings.authserv_id is None:
        return message
    from nbspam.tokens.people import with_facts

    return with_facts(message, opened, settings)


# --- headers, footers and quotes, which can reveal a newsgroup without its text ------------


def strip(data: bytes, parts: tuple[str, ...]) -> bytes:
    """Return a text without some parts; parts: names out of settings.STRIPPABLE.

    The rules are those of scikit-learn's 20 newsgroups data set, so that figures can be compared.
    They do not parse mail: headers end at the first empty line.
    """
    if not parts:
        return data
    data = data.replace(b"\r\n", b"\n")
    if "headers" in parts:
        data = data.partition(b"\n\n")[2]
    if "footers" in parts:
        data = _without_footer(data)
    if "quotes" in parts:
        data = b"\n".join(line for line in data.split(b"\n") if not _QUOTED.search(line))
    return data


def _without_footer(data: bytes) -> bytes:
    """Return the text above the last line that is empty or consists of dashes."""
    lines = data.strip().split(b"\n")
    for number in range(len(lines) - 1, 0, -1):
        if not lines[number].strip().strip(b"-"):
            return b"\n".join(lines[:number])
    return data
