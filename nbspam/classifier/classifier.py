"""A trained model: classify items, save and load.

Secret: how the stages (read, parse, tokenise, count, look up, sum) are put together;
each of them knows nothing of the others.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nbspam import __version__
from nbspam.arrays import Floats, Floats32, Integers
from nbspam.background import Later
from nbspam.classifier.combining import Combination, Entries, log_odds, scores, with_groups
from nbspam.classifier.logtables import assumed_prior, log_tables
from nbspam.counts.changes import Change
from nbspam.counts.memory import Memory, memory_from_dict, memory_to_dict
from nbspam.counts.table import CountTable, compact, entry_weights
from nbspam.decision import Cutoffs, Rule, cutoffs_from_dict, default_rule
from nbspam.disk import locked
from nbspam.errors import ModelFileError, UsageError
from nbspam.mail.message import Message
from nbspam.settings import Settings, settings_from_dict
from nbspam.sources.items import Item
from nbspam.store.format.journal import read_model, write_model
from nbspam.store.format.modelfile import State
from nbspam.tokens.reading import chunk_by_chunk, read_messages
from nbspam.tokens.tokenizer import TokenBatch, batches, tokenize
from nbspam.tokens.vocabulary import Vocabulary
from nbspam.verdicts import Answer, Skipped, Verdict, joint_of_log_odds, posterior

if TYPE_CHECKING:
    from nbspam.classifier.blending import Blend

TOKENS = "tokens"  # the kind of these models; files without a kind are of it


class Known(NamedTuple):
    """The tokens of a batch that the model knows, and where they stand."""

    columns: Integers  # (n_known,) of the model's tables
    rows: Integers  # (nnz,) index into columns
    documents: Integers  # (nnz,)
    counts: Integers  # (nnz,)


@dataclass(frozen=True, slots=True)
class Classifier:
    """A trained model: settings, counts, and the log-probability tables they give.

    The joint log-probability of a document and every class, in nats, is
    intercept + x @ weight; all models here are linear in their tokens.
    """

    settings: Settings
    table: CountTable
    intercept: Floats  # (n_classes,)
    weight: Floats | Floats32  # (n_features, n_classes); empty where evidence is combined
    # How evidence combines, where it is not summed; it may still be being learned.
    learned: Combination | Later[Combination] | None = None
    memory: Memory | None = None  # what learning on needs; None if it cannot
    cutoffs: Cutoffs | None = None  # found on the user's own mail (tuning.py)
    blend: "Blend | None" = None  # how it was weighed and is believed, where it is blended

    @property
    def combination(self) -> Combination | None:
        """How evidence combines, where it is not summed."""
        return self.learned.result() if isinstance(self.learned, Later) else self.learned

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names, sorted."""
        return self.table.classes

    @property
    def prior(self) -> Floats:
        """The shares of the classes that training found or was told, shape (n_classes,)."""
        return assumed_prior(self.table.class_count, self.settings)

    @property
    def alone(self) -> Floats | Floats32:
        """What each token says alone, where evidence is summed: nats, (n_features, n_classes)."""
        if self.combination is None:
            return self.weight
        return log_tables(self.table, self.settings)[1]

    def shifted(self, shift: Floats) -> "Classifier":
        """Return the classifier that says so much more for each class, nats, (n_classes,)."""
        combination, blend = self.combination, self.blend
        if blend is not None:
            return replace(self, blend=blend._replace(shift=blend.shift + shift))
        if combination is not None:
            worth = combination.worth.copy()
            worth[-1] += shift[1] - shift[0]
            combination = combination._replace(worth=worth)
        return replace(self, intercept=self.intercept + shift, learned=combination)

    def joint_log_proba(self, batch: TokenBatch) -> Floats:
        """Return log P(class, document) in nats, shape (n_docs, n_classes).

        Where evidence is combined or blended, it is log P(class given document) instead.
        """
        known = self.known(batch)
        if self.blend is not None:
            return self.blend.answers(self._summed(batch.n_docs, known))
        if self.combination is None:
            return self._summed(batch.n_docs, known)
        entries, odds = self.evidence(batch.n_docs, known)
        return joint_of_log_odds(scores(self.combination, entries, odds))

    def known(self, batch: TokenBatch) -> Known:
        """Return the tokens of a batch that the model knows."""
        column = self.table.vocabulary.columns(batch.keys)
        known = column >= 0
        times = np.diff(batch.indptr)
        entry = np.repeat(known, times)
        rows = np.repeat(np.arange(np.count_nonzero(known)), times[known])
        return Known(column[known], rows, batch.documents[entry], batch.counts[entry])

    def evidence(self, n_docs: int, known: Known) -> tuple[Entries, Floats]:
        """Return what is combined: entries, and the log-odds of their tokens (nnz,), nats."""
        columns, rows, documents, counts = known
        groups = self.table.vocabulary.groups[columns]
        odds = log_odds(self.table.feature_count[columns], self.table.class_count)
        return Entries(n_docs, documents, columns[rows], groups[rows], counts), odds[rows]

    def values(self, known: Known) -> Floats:
        """Return what known tokens weigh in their documents, shape (nnz,)."""
        groups = self.table.vocabulary.groups[known.columns][known.rows]
        return entry_weights(known.counts, known.documents, groups, self.settings.weighting)

    def _summed(self, n_docs: int, known: Known) -> Floats:
        columns, rows, documents, _ = known
        value = self.values(known)
        weight = self.weight[columns]
        joint = np.empty((n_docs, len(self.classes)))
        for k, constant in enumerate(self.intercept):
            joint[:, k] = constant + np.bincount(documents, weight[rows, k] * value, n_docs)
        # Maximum likelihood may call a document impossible in every class: then the prior
        # is all that is known of it.
        joint[np.isneginf(joint).all(axis=1)] = self.intercept
        return joint

    def joint_of(self, messages: Sequence[Message]) -> Floats:
        """Return log P(class, message) in nats, shape (n_messages, n_classes)."""
        rows = [
            self.joint_log_proba(tokenize(group, self.settings.tokens))
            for group in batches(messages, self.settings.tokens)
        ]
        return np.concatenate([np.zeros((0, len(self.classes))), *rows])

    def answers(self, items: Iterable[Item], jobs: int = 1) -> Iterator[Answer | Skipped]:
        """Yield an answer for every item in order, or why it could not be read."""
        work = partial(_answer_chunk, self)
        for results in chunk_by_chunk(work, items, jobs):
            yield from results

    def classify(
        self, items: Iterable[Item], jobs: int = 1, rule: Rule | None = None
    ) -> Iterator[Verdict | Skipped]:
        """Yield a verdict for every item in order, or why it could not be read."""
        work = partial(_verdict_chunk, self, rule)
        for results in chunk_by_chunk(work, items, jobs):
            yield from results

    @property
    def rule(self) -> Rule:
        """How probabilities become labels, unless told otherwise."""
        return self.cutoffs or default_rule(self.classes, self.settings.is_mail_combined)

    def verdicts(self, answers: Sequence[Answer], rule: Rule | None = None) -> Iterator[Verdict]:
        """Yield what the rule (or the model's own) decides of each answer."""
        if not answers:
            return
        joint = np.stack([answer.joint for answer in answers])
        probability = posterior(joint)
        labels = (rule or self.rule).labels(probability)
        scores: list[float | None] = [None] * len(answers)
        if self.settings.combine and len(self.classes) == 2:
            scores = (joint[:, 1] - joint[:, 0]).tolist()
        for answer, label, row, score in zip(
            answers, labels, probability.tolist(), scores, strict=True
        ):
            yield Verdict(answer.name, label, dict(zip(self.classes, row, strict=True)), score)

    def save(self, path: str) -> None:
        """Write the model file, in the place of one that is there; raises ModelFileError."""
        with locked(path):
            write(path, self)


def write(path: str, classifier: Classifier) -> None:
    """Write a model file and take the journal of the old one away: for who has its lock."""
    table, memory = classifier.table, classifier.memory
    vocabulary = table.vocabulary.packed()
    state = {
        "program": f"nbspam {__version__}",
        "settings": classifier.settings.to_dict(),
        "classes": list(table.classes),
        "class_count": table.class_count,
        "keys": vocabulary.keys,
        "text": vocabulary.blob,
        "text_offsets": compact(vocabulary.offsets),
        "group": vocabulary.groups,
        "feature_count": compact(table.feature_count),
        "document_frequency": compact(table.document_frequency),
        "intercept": classifier.intercept,
        "weight": classifier.weight,
        "blend": None,
        "memory": None if memory is None else memory_to_dict(memory),
        "cutoffs": None if classifier.cutoffs is None else classifier.cutoffs._asdict(),
    }
    if classifier.blend is not None:
        from nbspam.classifier.blending import blend_to_array

        state["blend"] = blend_to_array(classifier.blend)
    if isinstance(classifier.learned, Later):
        write_model(path, state, partial(_learned, classifier))
    else:
        write_model(path, state | _learned(classifier))


def _learned(classifier: Classifier) -> State:
    """Return how evidence combines, which is known last and stands last."""
    combination = classifier.combination
    return {
        "worth": None if combination is None else combination.worth,
        "correction": None if combination is None else combination.correction,
    }


def load(path: str) -> Classifier:
    """Return the classifier of tokens that a model file and its journal hold.

    Raises NbspamError; `loading.load` knows models of every kind.
    """
    snapshot, journal = read_model(path)
    return with_changes(classifier_of(path, snapshot.state), journal.changes)


def classifier_of(path: str, state: State) -> Classifier:
    """Return the classifier of tokens that a model file's state means; raises NbspamError."""
    if (kind := state.get("kind", TOKENS)) != TOKENS:
        raise UsageError(
            f"{path}: a model of kind {kind}, which this command does not know; use train,"
            " classify, predict, explain, eval, info or doctor"
        )
    try:
        return _from_state(state)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(
            f"{path}: not a classifier's model ({error}); train it anew"
        ) from error


def with_changes(classifier: Classifier, changes: Sequence[Change]) -> Classifier:
    """Return the classifier that knows these messages too.

    Counts are what they would be had all been learned at once.  How evidence combines, and
    what its judgements are worth, is learned again when the model's file is written anew.
    """
    if not changes:
        return classifier
    from nbspam.classifier.blending import linear_tables, untaught_blend
    from nbspam.counts.changes import overlaid, signed_table

    settings, combination, blend = classifier.settings, classifier.combination, classifier.blend
    base = classifier.table
    table = overlaid(base, signed_table(changes, base.vocabulary, settings.weighting))
    if table.classes != classifier.classes:
        # Seldom seen: a model is written anew at once when it has learned another class.
        classifier = replace(classifier, cutoffs=None)
        combination, blend = None, untaught_blend() if settings.combine else None
    if combination is None:
        intercept, weight = (
            log_tables(table, settings) if blend is None else linear_tables(table, blend)
        )
        return Classifier(
            settings, table, intercept, weight, cutoffs=classifier.cutoffs, blend=blend
        )
    more = np.zeros(len(table.vocabulary) - len(combination.correction), np.float32)
    combination = combination._replace(correction=np.append(combination.correction, more))
    return replace(classifier, table=table, learned=combination, memory=None)


def _from_state(state: State) -> Classifier:
    vocabulary = Vocabulary(state["keys"], state["text"], state["text_offsets"], state["group"])
    table = CountTable(
        tuple(state["classes"]),
        state["class_count"],
        vocabulary,
        state["feature_count"],
        state["document_frequency"],
    )
    shape = len(vocabulary), len(table.classes)
    is_combined = state["worth"] is not None
    weights = {shape, (0, shape[1])} if is_combined else {shape}
    if not (
        state["feature_count"].shape == shape
        and state["weight"].shape in weights
        and state["intercept"].shape == state["class_count"].shape == shape[1:]
        and state["document_frequency"].shape == shape[:1]
        and len(vocabulary.offsets) == shape[0] + 1
    ):
        raise ValueError("its tables differ in length")
    combination = None
    if is_combined:
        combination = Combination(with_groups(state["worth"]), state["correction"])
        if combination.correction.shape != shape[:1] or shape[1] != 2:
            raise ValueError("its corrections do not fit its tables")
    blend = None
    if (array := state.get("blend")) is not None:  # older files have none
        from nbspam.classifier.blending import blend_from_array

        blend = blend_from_array(array, shape[1])
    memory = memory_from_dict(state["memory"], len(vocabulary)) if state.get("memory") else None
    settings = settings_from_dict(state["settings"])
    cutoffs = cutoffs_from_dict(state["cutoffs"]) if state.get("cutoffs") else None
    tables = state["intercept"], state["weight"]
    return Classifier(settings, table, *tables, combination, memory, cutoffs, blend)


def _verdict_chunk(
    classifier: Classifier, rule: Rule | None, items: list[Item]
) -> list[Verdict | Skipped]:
    """Return verdicts on one chunk of items: what a worker process does."""
    answers = _answer_chunk(classifier, items)
    verdicts = classifier.verdicts([a for a in answers if isinstance(a, Answer)], rule)
    return [next(verdicts) if isinstance(answer, Answer) else answer for answer in answers]


def _answer_chunk(classifier: Classifier, items: list[Item]) -> list[Answer | Skipped]:
    """Return answers to one chunk of items: what a worker process does."""
    read, messages, skipped = read_messages(items, classifier.settings)
    results: dict[str, Answer | Skipped] = {failure.name: failure for failure in skipped}
    for item, joint in zip(read, classifier.joint_of(messages), strict=True):
        results[item.name] = Answer(item.name, item.label, joint)
    return [results[item.name] for item in items]
