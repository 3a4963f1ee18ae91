"""The text format of bogoutil: a model's counts for bogofilter, and its word list as a model.

A line has a token, the numbers of spam and of ham messages with it, and a day:
"subj:free 10 3 20261121".  The line .MSG_COUNT has the numbers of messages.  bogofilter also tags
tokens by header, but with other names, and it splits words in other places.

Secret: which of our tokens correspond to a token of bogofilter.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date

import numpy as np

from nbspam.classifier.classifier import Classifier
from nbspam.classifier.training import derive
from nbspam.counts.ledger import Memory, ledger_of
from nbspam.counts.sample import Sample
from nbspam.counts.table import CountTable
from nbspam.decision import HAM_AND_SPAM
from nbspam.errors import InputError, UsageError
from nbspam.mail.charsets import to_utf8
from nbspam.settings import PRESETS
from nbspam.store.text.interchange import vocabulary_of
from nbspam.tokens.definition import (
    BODY,
    GROUPS,
    PAIR,
    Token,
    group_of,
    pair_origin,
    reference_key,
    token_of,
    word_table,
)
from nbspam.tokens.documents import no_documents
from nbspam.tokens.spelling.normalize import normalize, with_pairs

_TOTAL = b".MSG_COUNT"
_THEIRS = {"subject": "subj", "return-path": "rtrn", "received": "rcvd"}
_CONTENT = (BODY, "url", "nested", "hidden", "alt", "html", "filename", "defect")
_HEADERS = ("from", "to", "mime", "header", "mailer", "list", "date", "message-id", "reply-to")
# bogofilter has the tag "head" for all other headers.  It becomes all of our origins that can hold
# such words, except dates, whose numbers bogofilter does not keep: E-050.
_HEAD = ("header", "mailer", "list", "message-id", "reply-to", "mime")
_OURS: dict[str, tuple[str, ...]] = {
    **{theirs: (ours,) for ours, theirs in _THEIRS.items()},
    **{origin: (origin,) for origin in (*_CONTENT, *_HEADERS)},
    "head": _HEAD,
}
_TOKENS = PRESETS["mail"].tokens
_CUT = word_table(_TOKENS.punctuation)
_MAX_COUNT = 1 << 32
_EPOCH = date(1970, 1, 1).toordinal()

Counts = list[int]  # numbers of messages: ham, spam


def dump_lines(classifier: Classifier) -> Iterator[bytes]:
    """Yield the lines of a model of ham and spam; raises UsageError for any other."""
    table, memory = classifier.table, classifier.memory
    if classifier.classes != HAM_AND_SPAM:
        raise UsageError(
            f"--format bogoutil: the classes are {', '.join(classifier.classes)},"
            " not ham and spam; leave the option out"
        )
    whole = np.asarray(table.feature_count) == np.rint(table.feature_count)
    if not whole.all():
        raise UsageError(
            "--format bogoutil: counts are weights, not numbers of messages; leave the option out"
        )
    assert memory is not None
    ham, spam = table.class_count.tolist()
    last = int(memory.last_seen.max(initial=0))
    yield b"%s %d %d %d\n" % (_TOTAL, spam, ham, _date_number(last))
    vocabulary = table.vocabulary.packed()
    blob, offsets = vocabulary.blob.tobytes(), vocabulary.offsets.tolist()
    for j, ((ham, spam), day) in enumerate(
        zip(table.feature_count.tolist(), memory.last_seen.tolist(), strict=True)
    ):
        token = token_of(blob[offsets[j] : offsets[j + 1]])
        yield b"%s %d %d %d\n" % (_spelt(token), spam, ham, _date_number(day))


def _spelt(token: Token) -> bytes:
    """Return a token as bogofilter spells it: with its tags, and an asterisk in pairs."""
    origin = token.origin
    if origin == PAIR or origin.startswith(f"{PAIR}:"):
        origin = origin.removeprefix(PAIR).removeprefix(":") or BODY
    tag = _THEIRS.get(origin, origin)
    text = token.text.replace(b" ", b"*")
    return text if origin == BODY else tag.encode() + b":" + text


def _date_number(day: int) -> int:
    """Return a day as a number yyyymmdd; day 0 means unknown, and gives 0."""
    if not day:
        return 0
    found = date.fromordinal(_EPOCH + day)
    return found.year * 10_000 + found.month * 100 + found.day


def load_lines(lines: Iterable[bytes], name: str) -> Classifier:
    """Return the model of a word list; raises InputError.  name: the file, for errors."""
    total: Counts | None = None
    found: dict[Token, tuple[Counts, int]] = {}
    for number, line in enumerate(lines, 1):
        try:
            text, counts, day = _parsed(line)
        except ValueError:
            raise InputError(
                f"{name}: line {number}: not `token spam ham yyyymmdd`;"
                " give a file that bogoutil -d or nbspam export wrote"
            ) from None
        if text == _TOTAL:
            total = counts
        elif not text.startswith(b"."):  # other lines with a dot hold bogofilter's own notes
            for token in _tokens_of(text):
                old, old_day = found.get(token, ([0, 0], 0))
                found[token] = [old[0] + counts[0], old[1] + counts[1]], max(old_day, day)
    if total is None or not found:
        what = "token" if total else _TOTAL.decode()
        raise InputError(f"{name}: no line of {what}; give the whole word list")
    if not any(total):
        raise InputError(f"{name}: no messages; give a word list that has learned some")
    return _classifier(total, found)


def _parsed(line: bytes) -> tuple[bytes, Counts, int]:
    """Return the token, counts and day of a line; raises ValueError."""
    text, *numbers = line.rstrip().rsplit(b" ", 3)
    spam, ham, day = map(int, numbers)
    if not (text and 0 <= spam <= _MAX_COUNT and 0 <= ham <= _MAX_COUNT):
        raise ValueError
    return text, [ham, spam], _day(day)


def _day(number: int) -> int:
    try:
        found = date(number // 10_000, number // 100 % 100, number % 100)
    except (ValueError, OverflowError):
        return 0  # word lists need not keep days
    return min(max(found.toordinal() - _EPOCH, 0), (1 << 16) - 1)


def _tokens_of(spelling: bytes) -> list[Token]:
    """Return our tokens that correspond to a token of bogofilter."""
    tag, colon, text = spelling.partition(b":")
    origins = _OURS.get(tag.decode("latin-1")) if colon else None
    if origins is None:
        origins, text = (BODY,), spelling
    text = with_pairs(normalize(to_utf8(text, None)[0])[0])
    parts = [part.translate(_CUT).split(b"\0") for part in text.split(b"*")]
    words = [word for part in parts for word in part if 0 < len(word) <= _TOKENS.max_length]
    if len(parts) == len(words) == 2:
        return [Token(pair_origin(origin), b" ".join(words)) for origin in origins]
    return [Token(origin, word) for origin in origins for word in dict.fromkeys(words)]


def _classifier(total: Counts, found: dict[Token, tuple[Counts, int]]) -> Classifier:
    """Return the model of these counts; its ledger is empty, so all messages are new to it."""
    keys = np.array([reference_key(token) for token in found], np.uint64)
    keys, order = np.unique(keys, return_index=True)
    everything = list(found.items())
    tokens, rows = zip(*(everything[i] for i in order.tolist()), strict=True)
    # Several of bogofilter's tokens can be one of ours, and one message can have all of them.
    count = np.minimum(np.array([n for n, _ in rows], np.float64).reshape(-1, 2), total)
    texts = [b"" if t.origin == BODY else t.origin.encode() + b":" for t in tokens]
    texts = [tag + token.text for tag, token in zip(texts, tokens, strict=True)]
    groups = np.array([group_of(token.origin) for token in tokens], np.uint8)
    vocabulary = vocabulary_of(keys, texts, groups, np.arange(len(keys)))
    table = CountTable(
        HAM_AND_SPAM,
        np.array(total, np.float64),
        vocabulary,
        count,
        count.sum(axis=1).astype(np.int64),
    )
    nothing = np.empty(0, np.uint64)
    memory = Memory(
        ledger_of(nothing, np.empty(0, np.str_), np.empty(0, np.uint16), HAM_AND_SPAM),
        Sample(0, nothing, no_documents(np.arange(len(table.vocabulary)), with_counts=False)),
        np.array([day for _, day in rows], np.uint16),
    )
    has_pairs = GROUPS.index("pairs") in groups
    settings = replace(PRESETS["mail"], tokens=_TOKENS._replace(pairs=has_pairs))
    return derive(table, memory, settings)
