"""Interchange: a model as lines of JSON, which people can read, search, edit and archive.

The first line has settings and classes.  Then comes a line for each token, in the order of keys,
one for each learned message, and one for each token that is owed.  The last line ends the text, so
that a part of one is no model.  Everything else is derived from these again, so a model that is
dumped and loaded gives the same file, to the byte, but for its place in the log that hosts share.

The word list of bogofilter is read and written, too; the dumps of other filters are refused.
"""

import json
import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date
from itertools import chain, pairwise
from typing import Any

import numpy as np

from nbspam.arrays import EPOCH, LAST_DAY, Floats, Integers, Octets, together
from nbspam.charsets import to_utf8
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.sum import token_probabilities
from nbspam.classifier.training import derive
from nbspam.counts.ledger import Ledger, Memory, Owed, Sample, ledger_of, no_messages
from nbspam.counts.table import CountTable, Loss
from nbspam.decision import HAM_AND_SPAM, Cutoffs
from nbspam.errors import InputError, UsageError
from nbspam.mail.headers import ORIGINS
from nbspam.printing import readable_json
from nbspam.sent_mail import SentMessage, sent_mail_of
from nbspam.settings import PRESENCE, PRESETS, Settings, settings_from_dict
from nbspam.store.fields import MAX_TOKEN, check_cutoffs, check_settings, is_number_between
from nbspam.tokens import definition
from nbspam.tokens.normalize import normalize, with_pairs
from nbspam.tokens.sparse import Documents, Vocabulary, offsets_of
from nbspam.tokens.tokenizer import groups_of, vocabulary_of

# ---- dumps of other filters, which cannot become a model here ----

_HASHES = "which has hashes in place of words"
_OCCURRENCES = "which does not say in how many messages a word is"
_OTHERS = (
    (rb"v\t\d+\tdb_version", f"a backup of sa-learn, {_HASHES}"),
    (rb"[\d.]+ +\d+ +\d+ +\d+  (non-token data|[\da-f]{10}$)", f"a dump of sa-learn, {_HASHES}"),
    (rb'\d+,\d+,\d+,"', f"an export of spamprobe, {_OCCURRENCES}"),
    (rb"[\d.]+ +\d+ +\d+  0x", f"a dump of spamprobe, {_OCCURRENCES}"),
)


def check_ours(first: bytes, name: str) -> None:
    """Raise InputError if a text's first line is that of another filter; name: the text."""
    for pattern, what in _OTHERS:
        if re.match(pattern, first):
            raise InputError(
                f"{name}: {what}; train from the mail: nbspam train --spam PATH --ham PATH"
            )


# ---- a model as lines of JSON ----

_FORMAT = 1
_END = {"nbspam": "end"}

# The exceptions that malformed lines can cause.
_WRONG = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
Line = dict[str, Any]


def model_lines(classifier: Classifier) -> Iterator[bytes]:
    """Yield the lines of a model that can learn on."""
    memory = classifier.memory
    assert memory is not None
    names, table = classifier.classes, classifier.table
    header = {
        "nbspam": "model",
        "format": _FORMAT,
        "settings": classifier.settings.to_dict(),
        "classes": dict(zip(names, table.class_count.tolist(), strict=True)),
        "sample_bits": memory.sample.bits,
        "decayed": _shown_day(memory.decayed) if memory.decayed else None,
    }
    if table.loss is not None:
        header["others_had"] = table.loss.of_others
    if not memory.has_ledger:
        header["ledger"] = False
    if classifier.cutoffs is not None:
        header["cutoffs"] = classifier.cutoffs._asdict()
    probability = token_probabilities(table, classifier.settings)
    lines = _token_lines(table, memory, probability), _message_lines(names, memory)
    others = _owed_lines(names, memory.owed), _sent_lines(classifier.settings)
    for line in chain([header], *lines, *others, [_END]):
        yield readable_json(line).encode() + b"\n"


def _token_lines(table: CountTable, memory: Memory, probability: Floats | None) -> Iterator[Line]:
    """Yield a line for each token; its probability is for readers, and follows from the counts."""
    keys, groups = table.vocabulary.keys.tolist(), table.vocabulary.groups
    lacks = None if table.loss is None else table.loss.of_each
    for j, (key, text) in enumerate(zip(keys, _texts(table), strict=True)):
        line: Line = {"token": text.decode("utf-8", "surrogateescape")}
        if definition.reference_key(definition.token_of(text)) != key:
            line["key"] = f"{key:016x}"
        if lacks is not None and lacks[j]:
            line["lacks"] = int(lacks[j])
        if probability is not None:
            shares = probability[j].tolist()
            line["probability"] = dict(zip(table.classes, shares, strict=True))
        yield {
            **line,
            "group": definition.GROUPS[groups[j]],
            "count": {
                name: int(n) if n == int(n) else n
                for name, n in zip(table.classes, table.feature_count[j].tolist(), strict=True)
                if n
            },
            "documents": int(table.document_frequency[j]),
            "seen": _shown_day(int(memory.last_seen[j])),
        }


def _texts(table: CountTable) -> Iterator[bytes]:
    vocabulary = table.vocabulary.packed()
    blob = vocabulary.blob.tobytes()
    for start, end in pairwise(vocabulary.offsets.tolist()):
        yield blob[start:end]


def _message_lines(classes: tuple[str, ...], memory: Memory) -> Iterator[Line]:
    ledger, sample = memory.ledger, memory.sample
    place = {digest: i for i, digest in enumerate(sample.digests.tolist())}
    for digest, label, day, told in zip(*(of.tolist() for of in ledger), strict=True):
        line: Line = {"message": f"{digest:016x}", "class": classes[label], "day": _shown_day(day)}
        if told:
            line["told"] = True
        if (i := place.get(digest)) is not None:
            document = sample.documents.one(i)
            line["tokens"] = document.tokens.tolist()
            if document.counts is not None:
                line["times"] = document.counts.tolist()
        yield line


def _owed_lines(classes: tuple[str, ...], owed: Owed | None) -> Iterator[Line]:
    """Yield a line for each token of which more was taken back than was counted."""
    for key, counts, n in zip(*(of.tolist() for of in owed), strict=True) if owed else ():
        shown = {name: count for name, count in zip(classes, counts, strict=True) if count}
        yield {"owed": f"{key:016x}", "count": shown, "documents": n}


def _sent_lines(settings: Settings) -> Iterator[Line]:
    """Yield a line for each sent message; its facts are hashes, too."""
    for message in settings.sent_mail.by_message() if settings.sent_mail is not None else ():
        facts = [f"{fact:016x}" for fact in message.facts]
        yield {"sent": f"{message.digest:016x}", "when": message.when, "facts": facts}


def model_of_lines(lines: Iterable[bytes], name: str) -> Classifier:
    """Return the model that lines hold; raises InputError.  name: the file, for errors."""
    loader: _Loader | None = None
    has_end = False
    where = name
    try:
        for number, line in enumerate(lines, 1):
            where = f"{name}: line {number}"
            try:
                values = json.loads(line)
            except (RecursionError, ValueError):  # also of numbers with too many digits
                values = None
            if not isinstance(values, dict):
                raise ValueError("not an object in JSON")
            if has_end:
                raise ValueError("a line behind the last")
            if loader is None:
                loader = _Loader(values)
            elif values == _END:
                has_end = True
            elif "token" in values:
                loader.add_token(values)
            elif "sent" in values:
                loader.add_sent(values)
            elif "owed" in values:
                loader.add_owed(values)
            else:
                loader.add_message(values)
        where = name
        if loader is None:
            raise ValueError("empty")
        if not has_end:
            raise ValueError(f"cut off, because the last line is not {json.dumps(_END)}")
        return loader.classifier()
    except (*_WRONG, UsageError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else f"{error!s:.300}"
        raise InputError(f"{where}: {reason}; give a file that nbspam export wrote") from error


class _Loader:
    """Collects lines, and makes a model of them when all are read.

    Lines that are malformed raise one of _WRONG.
    """

    def __init__(self, header: Line) -> None:
        if header.get("nbspam") != "model":
            raise ValueError("not the first line of a model")
        if header["format"] != _FORMAT:
            raise ValueError(f"format {header['format']!r}, but this program reads {_FORMAT}")
        self.classes = tuple(_checked_text(name) for name in header["classes"])
        if list(self.classes) != sorted(self.classes):
            raise ValueError("classes are not sorted")
        check_settings(header["settings"], len(self.classes))
        self.settings = settings_from_dict(header["settings"])
        self.class_count = [_as_number(n) for n in header["classes"].values()]
        if not all(self.class_count) and self.classes != HAM_AND_SPAM:
            raise ValueError("a class without messages")
        self.decayed = 0 if header["decayed"] is None else _as_day(header["decayed"])
        self.bits = _as_whole(header["sample_bits"], 63)
        others = header.get("others_had")
        self.others_had = None if others is None else _as_whole(others, int(_MAX_COUNT))
        self.has_ledger = _as_flag(header.get("ledger", True), "ledger")
        self.cutoffs: Cutoffs | None = None
        if "cutoffs" in header:
            check_cutoffs(header["cutoffs"])
            self.cutoffs = Cutoffs(**header["cutoffs"])
        # Key, text, counts, documents, day when it was last seen, and what it lacks.
        self.tokens: list[tuple[int, bytes, list[float], int, int, int]] = []
        self.messages: list[tuple[int, str, int, bool]] = []  # digest, class, day, told
        self.sent: list[SentMessage] = []
        self.owed: list[tuple[int, list[float], int]] = []  # key, counts, documents
        self.sampled: list[tuple[int, list[int], list[int]]] = []  # digest, columns, times

    def add_token(self, line: Line) -> None:
        text = _checked_text(line["token"]).encode("utf-8", "surrogateescape")
        if len(text) > MAX_TOKEN:
            raise ValueError(f"a token of more than {MAX_TOKEN:,} bytes")
        if "key" in line:
            key = _as_hash(line["key"])
        else:
            key = definition.reference_key(definition.token_of(text))
        if unknown := line["count"].keys() - set(self.classes):
            raise ValueError(f"a count of {unknown.pop()!r}, which the first line does not have")
        if line["group"] not in definition.GROUPS:
            raise ValueError(
                f"group: {line['group']!r:.40} is none of {', '.join(definition.GROUPS)}"
            )
        counts = [_as_number(line["count"].get(name, 0)) for name in self.classes]
        are_possible = all(n <= most for n, most in zip(counts, self.class_count, strict=True))
        if self.settings.weighting == PRESENCE and not are_possible:
            raise ValueError("a token in more messages than there are")
        documents = _as_whole(line["documents"], int(_MAX_COUNT))
        lacks = _as_whole(line.get("lacks", 0), self.others_had or 0)
        self.tokens.append((key, text, counts, documents, _as_day(line["seen"]), lacks))

    def add_message(self, line: Line) -> None:
        digest = _as_hash(line["message"])
        if line["class"] not in self.classes:
            raise ValueError(f"a class {line['class']!r:.40} that the first line does not have")
        told = _as_flag(line.get("told", False), "told")
        self.messages.append((digest, line["class"], _as_day(line["day"]), told))
        if "tokens" in line:
            columns = [_as_whole(column, len(self.tokens) - 1) for column in line["tokens"]]
            times = [_as_whole(n, 2**32 - 1) for n in line.get("times", ())]
            if 0 in times:
                raise ValueError("a token that occurs in a message 0 times")
            self.sampled.append((digest, columns, times))

    def add_owed(self, line: Line) -> None:
        key = _as_hash(line["owed"])
        counts = [_as_number(line["count"].get(name, 0), -_MAX_COUNT) for name in self.classes]
        self.owed.append((key, counts, int(_as_number(line["documents"], -_MAX_COUNT))))

    def add_sent(self, line: Line) -> None:
        digest, *facts = map(_as_hash, (line["sent"], *line["facts"]))
        self.sent.append(SentMessage(digest, _as_whole(line["when"], 2**32 - 1), tuple(facts)))

    def classifier(self) -> Classifier:
        """Return the model; raises NotTrainedError, or an exception of _WRONG."""
        keys = np.array([key for key, *_ in self.tokens], np.uint64)
        order = np.argsort(keys, kind="stable")
        rows = [self.tokens[i] for i in order.tolist()]
        _, texts, counts, documents, seen, lacks = zip(*rows, strict=True) if rows else ((),) * 6
        had = self.others_had
        loss = None if had is None else Loss(np.array(lacks, np.int64), had)
        table = CountTable(
            self.classes,
            np.array(self.class_count, np.float64),
            vocabulary_of(keys[order], texts),
            np.array(counts, np.float64).reshape(-1, len(self.classes)),
            np.array(documents, np.int64),
            loss,
        )
        days = np.array(seen, np.uint16)
        own = self._ledger(), self._sample(order)
        memory = Memory(*own, days, self.decayed, self.has_ledger, self._owed())
        sent = sent_mail_of(self.sent) if self.sent else None
        model = derive(table, memory, replace(self.settings, sent_mail=sent))
        return replace(model, cutoffs=self.cutoffs)

    def _ledger(self) -> Ledger:
        digests = np.array([digest for digest, *_ in self.messages], np.uint64)
        _check_unique(np.sort(digests), "a message")
        names = np.array([name for _, name, _, _ in self.messages], np.str_)
        days = np.array([day for _, _, day, _ in self.messages], np.uint16)
        told = np.array([told for *_, told in self.messages], np.bool_)
        return ledger_of(digests, names, days, self.classes, told)

    def _owed(self) -> Owed | None:
        if not self.owed:
            return None
        keys, counts, documents = zip(*sorted(self.owed), strict=True)
        found = np.array(keys, np.uint64)
        _check_unique(found, "a token that is owed")
        return Owed(found, np.array(counts, np.float64), np.array(documents, np.int64))

    def _sample(self, order: Integers) -> Sample:
        """Return the sample over the final columns; order: (n_tokens,) argsort of the keys."""
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        with_times = self.settings.weighting != PRESENCE
        offsets, columns = [0], []
        counts: list[Any] = []
        self.sampled.sort()
        for _, own, times in self.sampled:
            if with_times and len(times) != len(own):
                raise ValueError("a message with different numbers of times and tokens")
            column = rank[own]
            place = np.argsort(column)
            _check_unique(column[place], "a token of a message")
            columns.append(column[place])
            counts.append(np.array(times, np.int64)[place] if with_times else [])
            offsets.append(offsets[-1] + len(own))
        documents = Documents(
            np.arange(len(order)),
            np.array(offsets),
            together(columns, np.int64).astype(np.uint32),
            together(counts, np.int64).astype(np.uint32) if with_times else None,
        )
        digests = np.array([digest for digest, _, _ in self.sampled], np.uint64)
        return Sample(self.bits, digests, documents)


def _check_unique(ascending: Any, what: str) -> None:
    if (ascending[1:] == ascending[:-1]).any():
        raise ValueError(f"{what} is there twice")


# ---- values in lines of JSON: ValueError or TypeError says what people have edited wrongly ----

_MAX_COUNT = 2.0**53  # floats above it do not represent all whole numbers


def _shown_day(day: int) -> str:
    return date.fromordinal(EPOCH + day).isoformat()


def _checked_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is not text")
    return value


def _as_number(value: Any, least: float = 0.0) -> float:
    """Return a count; least: below 0 for what is owed."""
    if not is_number_between(value, least, _MAX_COUNT):
        raise ValueError(f"{value!r:.40} is not a number from {least:,.0f} up")
    return float(value)


def _as_whole(value: Any, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{value!r:.40} is not a whole number from 0 to {most}")
    return value


def _as_hash(value: Any) -> int:
    if not re.fullmatch("[0-9A-Fa-f]{1,16}", _checked_text(value)):
        raise ValueError(f"{value!r:.40} is not a hash of at most 16 hexadecimal digits")
    return int(value, 16)


def _as_flag(value: Any, name: str) -> bool:
    if type(value) is not bool:
        raise ValueError(f"{name}: {value!r:.40} is neither true nor false")
    return value


def _as_day(value: Any) -> int:
    return _as_whole(date.fromisoformat(_checked_text(value)).toordinal() - EPOCH, LAST_DAY)


# ---- the text format of bogoutil ----
#
# A line has a token, the numbers of spam and of ham messages with it, and a day: "subj:free 10 3
# 20261121". The line .MSG_COUNT has the numbers of messages. bogofilter also tags tokens by
# header, but with other names, and it splits words in other places.

_TOTAL = b".MSG_COUNT"
_THEIRS = {"subject": "subj", "return-path": "rtrn", "received": "rcvd"}
_OURS: dict[str, tuple[str, ...]] = {
    **{origin: (origin,) for origin in ORIGINS if origin != definition.REST},
    **{theirs: (ours,) for ours, theirs in _THEIRS.items()},
    # bogofilter's tag for all other headers becomes all of our origins that can hold such words,
    # except dates, whose numbers bogofilter does not keep: E-050.
    "head": ("header", "mailer", "list", "message-id", "reply-to", "mime"),
}
_TOKENS = PRESETS["mail"].tokens
_CUT = definition.word_table(_TOKENS.punctuation)
_MOST_MESSAGES = 1 << 32

Counts = list[int]  # numbers of messages: ham, spam
# A token in a word list; `length` is of its text.
_FOUND = np.dtype([("key", "<u8"), ("counts", "<f8", 2), ("day", "<u2"), ("length", "<i8")])


def bogofilter_lines(classifier: Classifier) -> Iterator[bytes]:
    """Yield the lines of a model of ham and spam; raises UsageError for any other."""
    table, memory = classifier.table, classifier.memory
    if classifier.classes != HAM_AND_SPAM:
        raise UsageError(
            f"--format bogoutil: the classes are {', '.join(classifier.classes)},"
            " not ham and spam; leave the option out"
        )
    if (np.rint(table.feature_count) != table.feature_count).any():
        raise UsageError(
            "--format bogoutil: counts are weights, not numbers of messages; leave the option out"
        )
    assert memory is not None
    ham, spam = table.class_count.tolist()
    counts, days = table.feature_count.tolist(), memory.last_seen.tolist()
    yield b"%s %d %d %d\n" % (_TOTAL, spam, ham, _date_number(max(days, default=0)))
    for text, (ham, spam), day in zip(_texts(table), counts, days, strict=True):
        token = definition.token_of(text)
        origin = definition.origin_of_words(token.origin)
        tag = "" if origin == definition.BODY else f"{_THEIRS.get(origin, origin)}:"
        spelling = tag.encode() + token.text.replace(b" ", b"*")  # as in their pairs
        yield b"%s %d %d %d\n" % (spelling, spam, ham, _date_number(day))


def _date_number(day: int) -> int:
    """Return a day as a number yyyymmdd; day 0 means unknown, and gives 0."""
    return int(f"{date.fromordinal(EPOCH + day):%Y%m%d}") if day else 0


def model_of_bogofilter_lines(lines: Iterable[bytes], name: str) -> Classifier:
    """Return the model of a word list; raises InputError.  name: the file, for errors."""
    total: Counts | None = None
    found, texts = bytearray(), bytearray()  # a dict takes 500 bytes for each token
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
                written = str(token).encode()
                key = definition.reference_key(token)
                found += struct.pack("<QddHq", key, *counts, day, len(written))
                texts += written
    if total is None or not found:
        what = "token" if total else _TOTAL.decode()
        raise InputError(f"{name}: no line of {what}; give the whole word list")
    if not any(total):
        raise InputError(f"{name}: no messages; give a word list that has learned some")
    return _classifier(total, np.frombuffer(found, _FOUND), np.frombuffer(texts, np.uint8))


def _parsed(line: bytes) -> tuple[bytes, Counts, int]:
    """Return the token, counts and day of a line; raises ValueError."""
    text, *numbers = line.rstrip().rsplit(b" ", 3)
    spam, ham, day = map(int, numbers)
    if not (text and 0 <= spam <= _MOST_MESSAGES and 0 <= ham <= _MOST_MESSAGES):
        raise ValueError
    return text, [ham, spam], _day(day)


def _day(number: int) -> int:
    try:
        found = date(number // 10_000, number // 100 % 100, number % 100)
    except (ValueError, OverflowError):
        return 0  # word lists need not keep days
    return min(max(found.toordinal() - EPOCH, 0), LAST_DAY)


def _tokens_of(spelling: bytes) -> Iterator[definition.Token]:
    """Yield our tokens that correspond to a token of bogofilter."""
    tag, colon, text = spelling.partition(b":")
    origins = _OURS.get(tag.decode("latin-1")) if colon else None
    if origins is None:
        origins, text = (definition.BODY,), spelling
    text = with_pairs(normalize(to_utf8(text, None)[0])[0])
    parts = [part.translate(_CUT).split(b"\0") for part in text.split(b"*")]
    words = [word for part in parts for word in part if 0 < len(word) <= _TOKENS.max_length]
    if len(parts) == len(words) == 2:
        pair = b" ".join(words)
        yield from (definition.Token(definition.pair_origin(origin), pair) for origin in origins)
        return
    for word in dict.fromkeys(words):
        yield from (definition.Token(origin, word) for origin in origins)


def _classifier(total: Counts, found: Any, texts: Octets) -> Classifier:
    """Return the model of these counts; its ledger is empty, so all messages are new to it."""
    keys = found["key"]
    spelt = Vocabulary(keys, texts, offsets_of(found["length"]), groups_of(keys))
    order = keys.argsort(kind="stable")
    _, first = np.unique(keys[order], return_index=True)
    vocabulary = spelt.take(order[first]).packed()
    # Several of bogofilter's tokens can be one of ours, and one message can have all of them.
    count = np.minimum(np.add.reduceat(found["counts"][order], first), total)
    days = np.maximum.reduceat(found["day"][order], first)
    frequency = count.sum(axis=1).astype(np.int64)
    table = CountTable(HAM_AND_SPAM, np.array(total, np.float64), vocabulary, count, frequency)
    memory = no_messages(days, with_counts=False)
    has_pairs = definition.GROUPS.index("pairs") in vocabulary.groups
    settings = replace(PRESETS["mail"], tokens=_TOKENS._replace(pairs=has_pairs))
    return derive(table, memory, settings)
