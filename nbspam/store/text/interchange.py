"""Interchange: a model as lines of JSON, which people can read, search, edit and archive.

The first line has settings and classes.  Then comes a line for each token, in the order of keys,
and a line for each learned message.  Everything else is derived from these again, so a model that
is dumped and loaded gives the same file, to the byte.

Secret: the format of the lines, and which malformed or hostile lines are refused.
"""

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from nbspam.arrays import Integers, Keys, Octets
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.training import derive
from nbspam.counts.ledger import Ledger, Memory, ledger_of
from nbspam.counts.loss import Loss
from nbspam.counts.sample import Sample
from nbspam.counts.table import CountTable
from nbspam.decision import HAM_AND_SPAM
from nbspam.errors import InputError, UsageError
from nbspam.mail.digest import OLDEST, are_versions
from nbspam.settings import PRESENCE, Settings, TokenSettings, settings_from_dict
from nbspam.store.text.values import MAX_COUNT, as_day, as_number, as_text, as_whole, shown_day
from nbspam.tokens.definition import GROUPS, reference_key, token_of
from nbspam.tokens.documents import Documents, offsets_of
from nbspam.tokens.oldkeys import with_kinds
from nbspam.tokens.tokenizer import groups_of
from nbspam.tokens.vocabulary import Vocabulary, have_kinds

FORMAT = 1
_GROUP_NUMBER = {name: number for number, name in enumerate(GROUPS)}
_MAX_TOKEN = 1 << 16  # bytes; no real token is nearly as long

# The exceptions that malformed lines can cause.
_WRONG = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
# Settings that may have other types than their defaults.
_TYPES: dict[str, tuple[type, ...]] = {
    "alpha": (float, int, str),
    "class_prior": (str, tuple),
    "max_features": (int, type(None)),
}

Line = dict[str, Any]


def dump_lines(classifier: Classifier) -> Iterator[bytes]:
    """Yield the lines of a model that can learn on."""
    memory = classifier.memory
    assert memory is not None
    names, table = classifier.classes, classifier.table
    header = {
        "nbspam": "model",
        "format": FORMAT,
        "settings": classifier.settings.to_dict(),
        "classes": dict(zip(names, table.class_count.tolist(), strict=True)),
        "sample_bits": memory.sample.bits,
        "digest_versions": list(memory.versions),
        "decayed": shown_day(memory.decayed) if memory.decayed else None,
    }
    if table.loss is not None:
        header["others_had"] = table.loss.of_others
    if not memory.has_ledger:
        header["ledger"] = False
    for line in chain([header], _token_lines(table, memory), _message_lines(names, memory)):
        readable = line.get("token", "\n").isprintable()
        yield json.dumps(line, ensure_ascii=not readable).encode("utf-8", "surrogatepass") + b"\n"


def _token_lines(table: CountTable, memory: Memory) -> Iterator[Line]:
    vocabulary = table.vocabulary.packed()
    blob, offsets = vocabulary.blob.tobytes(), vocabulary.offsets.tolist()
    lacks = None if table.loss is None else table.loss.of_each
    for j, key in enumerate(vocabulary.keys.tolist()):
        text = blob[offsets[j] : offsets[j + 1]]
        line: Line = {"token": text.decode("utf-8", "surrogateescape")}
        if reference_key(token_of(text)) != key:
            line["key"] = f"{key:016x}"
        if lacks is not None and lacks[j]:
            line["lacks"] = int(lacks[j])
        yield {
            **line,
            "group": GROUPS[vocabulary.groups[j]],
            "count": {
                name: _short(n)
                for name, n in zip(table.classes, table.feature_count[j].tolist(), strict=True)
                if n
            },
            "documents": int(table.document_frequency[j]),
            "seen": shown_day(int(memory.last_seen[j])),
        }


def _message_lines(classes: tuple[str, ...], memory: Memory) -> Iterator[Line]:
    ledger, sample = memory.ledger, memory.sample
    place = {digest: i for i, digest in enumerate(sample.digests.tolist())}
    for digest, label, day, told in zip(*(of.tolist() for of in ledger), strict=True):
        line: Line = {"message": f"{digest:016x}", "class": classes[label], "day": shown_day(day)}
        if told:
            line["told"] = True
        if (i := place.get(digest)) is not None:
            document = sample.documents.one(i)
            line["tokens"] = document.tokens.tolist()
            if document.counts is not None:
                line["times"] = document.counts.tolist()
        yield line


def _short(n: float) -> float:
    """Return a number as an int if it is whole."""
    return int(n) if n == int(n) else n


def load_lines(lines: Iterable[bytes], name: str) -> Classifier:
    """Return the model that lines hold; raises InputError.  name: the file, for errors."""
    loader: _Loader | None = None
    number = 0
    for number, line in enumerate(lines, 1):
        try:
            values = json.loads(line)
            if loader is None:
                loader = _Loader(values)
            elif "token" in values:
                loader.add_token(values)
            else:
                loader.add_message(values)
        except (*_WRONG, UsageError) as error:
            raise InputError(
                f"{name}: line {number}: {_reason(error)}; give a file that nbspam export wrote"
            ) from error
    if loader is None:
        raise InputError(f"{name}: empty; give a file that nbspam export wrote")
    try:
        return loader.classifier()
    except (*_WRONG, UsageError) as error:
        raise InputError(
            f"{name}: {_reason(error)}; give a file that nbspam export wrote"
        ) from error


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError | RecursionError):
        return "not JSON"
    if isinstance(error, KeyError):
        return f"no {error}"
    return str(error)


class _Loader:
    """Collects lines, and makes a model of them when all are read."""

    def __init__(self, header: Line) -> None:
        if not (isinstance(header, dict) and header.get("nbspam") == "model"):
            raise ValueError("not the first line of a model")
        if header["format"] != FORMAT:
            raise ValueError(f"format {header['format']!r}, but this program reads {FORMAT}")
        self.settings = _settings(header["settings"])
        self.classes = tuple(as_text(name) for name in header["classes"])
        if list(self.classes) != sorted(self.classes):
            raise ValueError("classes are not sorted")
        self.class_count = [as_number(n) for n in header["classes"].values()]
        if not all(self.class_count) and self.classes != HAM_AND_SPAM:
            raise ValueError("a class without messages")
        self.decayed = 0 if header["decayed"] is None else as_day(header["decayed"])
        self.bits = as_whole(header["sample_bits"], 63)
        self.versions = header.get("digest_versions", [OLDEST])
        if not are_versions(self.versions):
            raise ValueError(f"digest_versions: {self.versions!r:.40} are not versions")
        self.others_had: int | None = None
        if "others_had" in header:
            self.others_had = as_whole(header["others_had"], int(MAX_COUNT))
        self.has_ledger = header.get("ledger", True)
        if type(self.has_ledger) is not bool:
            raise ValueError(f"ledger: {self.has_ledger!r:.40} is neither true nor false")
        self.lacks: list[int] = []
        self.texts: list[bytes] = []
        self.keys: list[int] = []
        self.spelt_out: list[int] = []  # the tokens that state their keys
        self.groups: list[int] = []
        self.counts: list[list[float]] = []
        self.documents: list[int] = []
        self.seen: list[int] = []
        self.messages: list[tuple[int, str, int, bool]] = []  # digest, class, day, told
        self.sampled: list[tuple[int, list[int], list[int]]] = []  # digest, columns, times

    def add_token(self, line: Line) -> None:
        """Add the line of a token; raises an exception of _WRONG if it is malformed."""
        text = as_text(line["token"]).encode("utf-8", "surrogateescape")
        if len(text) > _MAX_TOKEN:
            raise ValueError(f"a token of more than {_MAX_TOKEN:,} bytes")
        if "key" in line:
            key = int(as_text(line["key"]), 16)
            self.spelt_out.append(len(self.keys))
        else:
            key = reference_key(token_of(text))
        unknown = line["count"].keys() - set(self.classes)
        if unknown:
            raise ValueError(f"a count of {unknown.pop()!r}, which the first line does not have")
        self.groups.append(_GROUP_NUMBER[line["group"]])
        self.counts.append([as_number(line["count"].get(name, 0)) for name in self.classes])
        self.documents.append(as_whole(line["documents"], int(MAX_COUNT)))
        self.seen.append(as_day(line["seen"]))
        self.lacks.append(as_whole(line.get("lacks", 0), self.others_had or 0))
        self.texts.append(text)
        self.keys.append(as_whole(key, 2**64 - 1))

    def add_message(self, line: Line) -> None:
        """Add the line of a message; raises an exception of _WRONG if it is malformed."""
        digest = as_whole(int(as_text(line["message"]), 16), 2**64 - 1)
        if line["class"] not in self.classes:
            raise ValueError(f"a class {line['class']!r:.40} that the first line does not have")
        told = line.get("told", False)
        if type(told) is not bool:
            raise ValueError(f"told: {told!r:.40} is neither true nor false")
        self.messages.append((digest, line["class"], as_day(line["day"]), told))
        if "tokens" in line:
            columns = [as_whole(column, 2**32 - 1) for column in line["tokens"]]
            times = [as_whole(n, 2**32 - 1) for n in line.get("times", ())]
            if 0 in times:
                raise ValueError("a token that occurs in a message 0 times")
            self.sampled.append((digest, columns, times))

    def classifier(self) -> Classifier:
        """Return the model; raises NotTrainedError, or an exception of _WRONG."""
        keys = self._keys()
        order = np.argsort(keys, kind="stable")
        table = CountTable(
            self.classes,
            np.array(self.class_count, np.float64),
            vocabulary_of(keys, self.texts, groups_of(keys), order),
            np.array(self.counts, np.float64).reshape(-1, len(self.classes))[order],
            np.array(self.documents, np.int64)[order],
            self._loss(order),
        )
        seen = np.array(self.seen, np.uint16)[order]
        memory = Memory(
            self._ledger(),
            self._sample(order),
            seen,
            self.decayed,
            tuple(self.versions),
            self.has_ledger,
        )
        return derive(table, memory, self.settings)

    def _loss(self, order: Integers) -> Loss | None:
        """Return what the model has forgotten; order: (n_tokens,) argsort of the keys."""
        if self.others_had is None:
            return None
        return Loss(np.array(self.lacks, np.int64)[order], self.others_had)

    def _keys(self) -> Keys:
        keys = np.array(self.keys, np.uint64)
        if not have_kinds(old := keys[self.spelt_out]):  # an export of before keys had kinds
            texts = [self.texts[i] for i in self.spelt_out]
            groups = np.array([self.groups[i] for i in self.spelt_out], np.uint8)
            keys[self.spelt_out] = with_kinds(
                vocabulary_of(old, texts, groups, np.arange(len(old)))
            )
        return keys

    def _ledger(self) -> Ledger:
        digests = np.array([digest for digest, *_ in self.messages], np.uint64)
        _check_unique(np.sort(digests), "a message")
        names = np.array([name for _, name, _, _ in self.messages], np.str_)
        days = np.array([day for _, _, day, _ in self.messages], np.uint16)
        told = np.array([told for *_, told in self.messages], np.bool_)
        return ledger_of(digests, names, days, self.classes, told)

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
            _joined(columns),
            _joined(counts) if with_times else None,
        )
        digests = np.array([digest for digest, _, _ in self.sampled], np.uint64)
        return Sample(self.bits, digests, documents)


def _settings(values: Line) -> Settings:
    """Return the settings in plain values; raises ValueError if a type is wrong."""
    settings = settings_from_dict(values)
    for found, default in ((settings, Settings()), (settings.tokens, TokenSettings())):
        for name in type(default).__annotations__:
            types = _TYPES.get(name, (type(getattr(default, name)),))
            if type(getattr(found, name)) not in types:
                raise ValueError(f"{name} is {getattr(found, name)!r:.40}")
    if settings.tokens.max_length > _MAX_TOKEN:
        raise ValueError(f"max_length is above {_MAX_TOKEN}")
    return settings


def _joined(parts: list[Any]) -> Any:
    return np.concatenate([np.empty(0, np.int64), *parts]).astype(np.uint32)


def vocabulary_of(keys: Keys, texts: list[bytes], groups: Octets, order: Integers) -> Vocabulary:
    """Return the vocabulary of tokens in any order; order: (n_tokens,) argsort of the keys.

    Raises ValueError if two keys are equal.
    """
    _check_unique(keys[order], "a token")
    ordered = [texts[i] for i in order.tolist()]
    offsets = offsets_of([len(text) for text in ordered])
    blob = np.frombuffer(b"".join(ordered), np.uint8)
    return Vocabulary(keys[order], blob, offsets, groups[order])


def _check_unique(ascending: Any, what: str) -> None:
    if len(ascending) and not (ascending[1:] != ascending[:-1]).all():
        raise ValueError(f"{what} is there twice")
