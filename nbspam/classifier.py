"""The front door: train on items, classify items, save and load.

Secret: how the stages (read, parse, tokenise, count, look up, sum) are put together;
each of them knows nothing of the others.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from nbspam import __version__
from nbspam.counts import (
    CountTable,
    Floats,
    add_tables,
    count_batch,
    entry_weights,
    prune,
    sum_tables,
)
from nbspam.errors import InputError, ModelFileError, NotTrainedError, UsageError
from nbspam.message import Field, Message, parse_message, plain_text
from nbspam.modelfile import State, load_state, save_state
from nbspam.parallel import ordered_map
from nbspam.settings import Settings, settings_from_dict
from nbspam.sources import Item, Skipped, chunks
from nbspam.tokenizer import TokenBatch, batches, reference_tokens, tokenize
from nbspam.vocabulary import Vocabulary

# A chunk is what one process works on between two messages to its parent.
CHUNK_ITEMS = 512
CHUNK_BYTES = 8 << 20
_NOT_WORD = re.compile(r"[^\w]")


def read_message(item: Item, settings: Settings) -> Message:
    """Return an item's fields, read as the settings say; raises InputError."""
    data = item.read()
    if settings.reading == "latin1":
        # Lower case before cutting: the token table folds ASCII only.
        text = _NOT_WORD.sub(" ", data.decode("latin-1").lower())
        return Message((Field("body", text.encode()),), ())
    if item.is_text or settings.reading == "text":
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


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model makes of one item: joint log-probabilities, nats, by class."""

    name: str
    truth: str | None  # the item's own label, if it has one
    joint: Floats  # (n_classes,)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the classifier says of one item."""

    name: str
    label: str  # the most probable class
    posterior: dict[str, float]  # 0 to 1, of every class


@dataclass(frozen=True, slots=True)
class Classifier:
    """A trained model: settings, counts, and the log-probability tables they give.

    The joint log-probability of a document and every class, in nats, is
    intercept + x @ weight; all models here are linear in their tokens.
    """

    settings: Settings
    table: CountTable
    intercept: Floats  # (n_classes,)
    weight: Floats  # (n_features, n_classes)

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names, sorted."""
        return self.table.classes

    def joint_log_proba(self, batch: TokenBatch) -> Floats:
        """Return log P(class, document) in nats, shape (n_docs, n_classes)."""
        column = self.table.vocabulary.columns(batch.keys)
        known = column >= 0
        entries = np.repeat(known, np.diff(batch.indptr))
        documents = batch.documents[entries]
        value = entry_weights(batch.counts[entries], documents, self.settings.weighting)
        row = np.repeat(np.arange(known.sum()), np.diff(batch.indptr)[known])
        weight = self.weight[column[known]]
        joint = np.empty((batch.n_docs, len(self.classes)))
        for k, constant in enumerate(self.intercept):
            terms = weight[row, k] * value
            joint[:, k] = constant + np.bincount(documents, terms, batch.n_docs)
        # Maximum likelihood may call a document impossible in every class: then the prior
        # is all that is known of it.
        joint[np.isneginf(joint).all(axis=1)] = self.intercept
        return joint

    def joint_of(self, messages: Sequence[Message]) -> Floats:
        """Return log P(class, message) in nats, shape (n_messages, n_classes)."""
        rows = [
            self.joint_log_proba(tokenize(group, self.settings.tokens))
            for group in batches(messages)
        ]
        return np.concatenate([np.zeros((0, len(self.classes))), *rows])

    def answers(self, items: Iterable[Item], jobs: int = 1) -> Iterator["Answer | Skipped"]:
        """Yield an answer for every item in order, or why it could not be read."""
        work = partial(_answer_chunk, self)
        for results in ordered_map(work, chunks(items, CHUNK_ITEMS, CHUNK_BYTES), jobs):
            yield from results

    def classify(self, items: Iterable[Item], jobs: int = 1) -> Iterator["Verdict | Skipped"]:
        """Yield a verdict for every item in order, or why it could not be read."""
        for answer in self.answers(items, jobs):
            yield answer if isinstance(answer, Skipped) else self.verdict(answer)

    def verdict(self, answer: "Answer") -> "Verdict":
        """Return the most probable class, and how probable each is."""
        probability = posterior(answer.joint[None, :])[0].tolist()
        label = self.classes[int(answer.joint.argmax())]
        return Verdict(answer.name, label, dict(zip(self.classes, probability, strict=True)))

    def save(self, path: str) -> None:
        """Write the model file; raises ModelFileError."""
        table, vocabulary = self.table, self.table.vocabulary
        save_state(
            path,
            {
                "program": f"nbspam {__version__}",
                "settings": self.settings.to_dict(),
                "classes": list(table.classes),
                "class_count": table.class_count,
                "keys": vocabulary.keys,
                "text": vocabulary.blob,
                "text_offsets": _compact(vocabulary.offsets),
                "feature_count": _compact(table.feature_count),
                "document_frequency": _compact(table.document_frequency),
                "intercept": self.intercept,
                "weight": self.weight,
            },
        )


def posterior(joint: Floats) -> Floats:
    """Return P(class given document) from joint log-probabilities, row by row."""
    shifted = np.exp(joint - joint.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def _compact(array: Any) -> Any:
    """Return the array as 32-bit whole numbers where that loses nothing."""
    small = array.astype(np.uint32)
    return small if np.array_equal(small, array) else array


def load(path: str) -> Classifier:
    """Return the classifier a model file holds; raises ModelFileError."""
    state = load_state(path)
    try:
        return _from_state(state)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(
            f"{path}: not a classifier's model ({error}); train it anew"
        ) from error


def _from_state(state: State) -> Classifier:
    vocabulary = Vocabulary(state["keys"], state["text"], state["text_offsets"])
    table = CountTable(
        tuple(state["classes"]),
        state["class_count"],
        vocabulary,
        state["feature_count"],
        state["document_frequency"],
    )
    shape = len(vocabulary), len(table.classes)
    if not (
        state["feature_count"].shape == state["weight"].shape == shape
        and state["intercept"].shape == state["class_count"].shape == shape[1:]
        and state["document_frequency"].shape == shape[:1]
        and len(vocabulary.offsets) == shape[0] + 1
    ):
        raise ValueError("its tables differ in length")
    return Classifier(
        settings_from_dict(state["settings"]), table, state["intercept"], state["weight"]
    )


# --- training -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Training:
    """What one training run read, and what it could not read."""

    table: CountTable
    n_bytes: int
    skipped: tuple[Skipped, ...]


def count_items(
    items: Iterable[Item],
    settings: Settings,
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Training:
    """Return the counts of labelled items; progress is told how many were read so far."""
    n_bytes, n_items = 0, 0
    skipped: list[Skipped] = []

    def tables() -> Iterator[CountTable]:
        nonlocal n_bytes, n_items
        work = partial(_count_chunk, settings)
        for part in ordered_map(work, chunks(items, CHUNK_ITEMS, CHUNK_BYTES), jobs):
            n_bytes += part.n_bytes
            n_items += part.table.n_docs
            skipped.extend(part.skipped)
            if progress is not None:
                progress(n_items)
            yield part.table

    table = sum_tables(tables())
    return Training(table, n_bytes, tuple(skipped))


def _count_chunk(settings: Settings, items: list[Item]) -> Training:
    """Return the counts of one chunk of items: what a worker process does."""
    labelled = [item for item in items if item.label is not None]
    skipped = [Skipped(item.name, "no label") for item in items if item.label is None]
    read, messages, unread = read_messages(labelled, settings)
    labels = iter([str(item.label) for item in read])
    tables = []
    for group in batches(messages):
        batch = tokenize(group, settings.tokens)
        tables.append(count_batch(batch, [next(labels) for _ in group], settings.weighting))
    n_bytes = sum(len(text) for message in messages for _, text in message.fields)
    return Training(add_tables(tables), n_bytes, (*skipped, *unread))


def _answer_chunk(classifier: Classifier, items: list[Item]) -> list[Answer | Skipped]:
    """Return answers to one chunk of items: what a worker process does."""
    read, messages, skipped = read_messages(items, classifier.settings)
    results: dict[str, Answer | Skipped] = {failure.name: failure for failure in skipped}
    for item, joint in zip(read, classifier.joint_of(messages), strict=True):
        results[item.name] = Answer(item.name, item.label, joint)
    return [results[item.name] for item in items]


def train(table: CountTable, settings: Settings) -> Classifier:
    """Return the classifier that counts and settings make; raises NotTrainedError."""
    if len(table.classes) < 2:
        found = f"only one class ({table.classes[0]})" if table.classes else "no labelled mail"
        raise NotTrainedError(
            f"train: {found}; a classifier needs two or more: give a folder with one"
            " sub-folder a class, or --spam PATH --ham PATH"
        )
    table = prune(table, settings.min_df, settings.max_features)
    module = import_module(f"nbspam.models.{settings.model}")
    model_class = getattr(module, f"{settings.model.capitalize()}NB")
    prior = settings.class_prior
    model = model_class.from_counts(
        table.class_count,
        table.feature_count.T,
        np.array(table.classes),
        alpha=settings.alpha,
        class_prior=prior if isinstance(prior, str) else np.array(prior),
    )
    tables = model.tables()
    if np.isposinf(tables.weight).any():
        raise UsageError(
            "--alpha 0: a token stands in every message of a class, which makes a message"
            " without it impossible; give a small number, such as 1e-6"
        )
    return Classifier(settings, table, tables.intercept, tables.weight)


# --- looking inside ---------------------------------------------------------------------


def token_counts(items: Iterable[Item], settings: Settings) -> Iterator[tuple[str, int]]:
    """Yield every token of every item, spelt out, and how often it stands there."""
    for item in items:
        message = read_message(item, settings)
        counts = Counter(map(str, reference_tokens(message, settings.tokens)))
        yield from counts.items()


class StrongToken(NamedTuple):
    """A token that speaks for a class."""

    token: str
    weight: float  # log-odds against the mean of the other classes, nats
    counts: tuple[float, ...]  # by class


def strongest_tokens(classifier: Classifier, n: int) -> dict[str, list[StrongToken]]:
    """Return for each class the n tokens that speak most for it, strongest first."""
    table, weight = classifier.table, np.asarray(classifier.weight)
    others = (weight.sum(axis=1, keepdims=True) - weight) / (weight.shape[1] - 1)
    strongest = {}
    for k, name in enumerate(classifier.classes):
        odds = weight[:, k] - others[:, k]
        columns = np.argsort(-odds, kind="stable")[:n]
        strongest[name] = [
            StrongToken(
                table.vocabulary.text(j),
                float(odds[j]),
                tuple(float(count) for count in table.feature_count[j]),
            )
            for j in columns.tolist()
        ]
    return strongest
