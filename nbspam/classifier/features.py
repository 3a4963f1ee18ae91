"""A model of tokens that depend on each other: on those that tell most about the class.

Its verbs are those of `Classifier`.  A message is which of the chosen tokens it has.

Secret: how tokens are chosen, and how a row of few of them is made and explained.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from nbspam import __version__
from nbspam.arrays import Booleans, Floats, Integers
from nbspam.classifier.explanation import shares_by_chain
from nbspam.counts.corpus import Corpus
from nbspam.counts.table import CountTable, prune
from nbspam.decision import Rule, default_rule
from nbspam.disk import locked
from nbspam.errors import InputError, ModelFileError, NotTrainedError
from nbspam.mail.message import Message
from nbspam.models.bernoulli import BernoulliNB
from nbspam.models.registry import (
    DAMAGE,
    joint_log_proba,
    model_state,
    new_model,
    restored,
    verdicts,
)
from nbspam.settings import PRESENCE, Settings, settings_from_dict
from nbspam.sources.items import Item
from nbspam.store.format.journal import write_model
from nbspam.store.format.modelfile import State
from nbspam.tokens.definition import GROUPS
from nbspam.tokens.reading import chunk_by_chunk, read, read_message
from nbspam.tokens.tokenizer import batches, tokenize
from nbspam.tokens.vocabulary import Vocabulary
from nbspam.verdicts import Answer, Evidence, Explanation, Skipped, Verdict


@dataclass(frozen=True, slots=True)
class FeatureClassifier:
    """A trained model of dependent tokens, and the tokens it looks at."""

    settings: Settings
    table: CountTable  # of the chosen tokens
    model: Any
    shift: Floats | float = 0.0  # (n_classes,), nats: what another prior adds

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names, sorted."""
        return self.table.classes

    @property
    def rule(self) -> Rule:
        """How probabilities become labels, unless told otherwise."""
        return default_rule(self.classes, calibrated=False)

    @property
    def prior(self) -> Floats:
        """The shares of the classes that training found or was told, shape (n_classes,)."""
        return np.asarray(np.exp(self.model.class_log_prior_))

    @property
    def alone(self) -> Floats:
        """What each token says alone, by naive Bayes: nats, (n_features, n_classes)."""
        table = self.table
        plain = BernoulliNB.from_counts(table.class_count, table.feature_count.T, table.classes)
        return plain.tables().weight

    def shifted(self, shift: Floats) -> "FeatureClassifier":
        """Return the classifier that says so much more for each class, nats, (n_classes,)."""
        return replace(self, shift=self.shift + shift)

    def joint_log_proba(self, present: Booleans) -> Floats:
        """Return log P(class, message) in nats, shape (n_messages, n_classes)."""
        return joint_log_proba(self.model, present) + self.shift

    def presence(self, messages: Sequence[Message]) -> Booleans:
        """Return which of the tokens each message has, shape (n_messages, n_features)."""
        present = np.zeros((len(messages), len(self.table.vocabulary)), np.bool_)
        start = 0
        for group in batches(messages, self.settings.tokens):
            batch = tokenize(group, self.settings.tokens)
            known = self.table.vocabulary.known(batch.documents)
            present[start + known.rows(), known.tokens[known.columns]] = True
            start += known.n_docs
        return present

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

    def verdicts(self, answers: Sequence[Answer], rule: Rule | None = None) -> Iterator[Verdict]:
        """Yield what the rule (or the model's own) decides of each answer."""
        return verdicts(self.classes, answers, rule or self.rule)

    def save(self, path: str) -> None:
        """Write the model file, in the place of one that is there; raises ModelFileError."""
        table, vocabulary = self.table, self.table.vocabulary.packed()
        state = {
            "kind": "features",
            "program": f"nbspam {__version__}",
            "settings": self.settings.to_dict(),
            "classes": list(table.classes),
            "class_count": table.class_count,
            "keys": vocabulary.keys,
            "text": vocabulary.blob,
            "text_offsets": vocabulary.offsets,
            "group": vocabulary.groups,
            "feature_count": table.feature_count,
            "document_frequency": table.document_frequency,
            **model_state(self.model),
        }
        with locked(path):
            write_model(path, state)


def from_state(path: str, state: State) -> FeatureClassifier:
    """Return the classifier a model file's state makes; raises ModelFileError."""
    try:
        settings = settings_from_dict(state["settings"])
        keys = state["keys"], state["text"], state["text_offsets"], state["group"]
        counts = state["feature_count"], state["document_frequency"]
        classes = tuple(state["classes"])
        table = CountTable(classes, state["class_count"], Vocabulary(*keys), *counts)
        shape = len(keys[0]), len(classes)
        if counts[0].shape != shape or state["class_count"].shape != shape[1:]:
            raise ValueError("its tables differ in length")
        nothing = np.zeros((1, shape[0]))
        model = restored(settings.model, state, table.classes, nothing)
    except DAMAGE as error:
        raise ModelFileError(
            f"{path}: not a model of features ({error}); train it anew"
        ) from error
    return FeatureClassifier(settings, table, model)


def train_features(
    data: Corpus, settings: Settings, rows: Integers | None = None
) -> FeatureClassifier:
    """Return the classifier of the tokens of documents, or of some rows of them."""
    chosen = np.arange(len(data.y)) if rows is None else rows
    y = data.y[chosen]
    table = data.table(chosen, PRESENCE)
    seen = np.flatnonzero(table.document_frequency >= settings.min_df)
    table = prune(table.take(seen), max_features=settings.max_features)
    if len(np.unique(y)) < 2:
        raise NotTrainedError("train: fewer than two classes of labelled mail; give two or more")
    if not len(table.vocabulary):
        raise NotTrainedError("train: no token is in enough messages; lower --min-df")
    prior = {"alpha": settings.alpha, "class_prior": settings.class_prior}
    model = new_model(settings.model, {**prior, **settings.parameters})
    labels = np.array(data.classes)
    X = data.X[chosen][:, data.vocabulary.columns(table.vocabulary.keys)]
    model.partial_fit(X, labels[y], classes=labels)
    return FeatureClassifier(settings, table, model)


def held_out(data: Corpus, settings: Settings, rest: Integers, of: Integers) -> Floats:
    """Return joint log-probabilities of some rows by a model of the others, nats."""
    classifier = train_features(data, settings, rest)
    columns = data.vocabulary.columns(classifier.table.vocabulary.keys)
    return joint_log_proba(classifier.model, data.X[of][:, columns])


def _answer_chunk(classifier: FeatureClassifier, items: list[Item]) -> list[Answer | Skipped]:
    """Return answers to one chunk of items: what a worker process does."""
    found = read(items, classifier.settings)
    results: dict[str, Answer | Skipped] = {f.name: f for f in found.failures.values()}
    joint = classifier.joint_log_proba(classifier.presence(found.messages))
    for item, row in zip(found.items, joint, strict=True):
        results[item.name] = Answer(item.name, item.label, row)
    return [results[item.name] for item in items]


def _verdict_chunk(
    classifier: FeatureClassifier, rule: Rule | None, items: list[Item]
) -> list[Verdict | Skipped]:
    """Return verdicts on one chunk of items: what a worker process does."""
    answers = _answer_chunk(classifier, items)
    decided = classifier.verdicts([a for a in answers if isinstance(a, Answer)], rule)
    return [next(decided) if isinstance(answer, Answer) else answer for answer in answers]


def explanations(
    classifier: FeatureClassifier, items: Iterable[Item], rule: Rule | None = None
) -> Iterator[Explanation | Skipped]:
    """Yield an explanation of every item in order, or why it could not be read.

    A token's share is what it adds to those before it, beginning with an empty message;
    those that say most alone come first.
    """
    weight = classifier.alone
    for item in items:
        try:
            message = read_message(item, classifier.settings)
        except InputError as error:
            yield Skipped(item.name, str(error))
        else:
            yield _explanation(classifier, weight, message, item.name, rule)


def _explanation(
    classifier: FeatureClassifier, weight: Floats, message: Message, name: str, rule: Rule | None
) -> Explanation:
    present = classifier.presence([message])
    joint = classifier.joint_log_proba(present)[0]
    towards, against = np.argsort(-joint, kind="stable")[:2].tolist()
    columns = np.flatnonzero(present[0])
    alone = np.abs(weight[columns, towards] - weight[columns, against])
    columns = columns[np.argsort(-alone, kind="stable")]
    nested = np.zeros((len(columns) + 1, present.shape[1]), np.bool_)
    for step, column in enumerate(columns.tolist(), 1):
        nested[step:, column] = True
    shares, constant = shares_by_chain(classifier.joint_log_proba(nested), towards, against)
    vocabulary, count = classifier.table.vocabulary, classifier.table.feature_count
    return Explanation(
        next(classifier.verdicts([Answer(name, None, joint)], rule)),
        classifier.classes[towards],
        classifier.classes[against],
        float(joint[towards] - joint[against]),
        constant,
        tuple(
            Evidence(
                vocabulary.text(columns[i]),
                float(shares[i]),
                GROUPS[vocabulary.groups[columns[i]]],
                tuple(count[columns[i]].tolist()),
            )
            for i in np.argsort(-np.abs(shares), kind="stable").tolist()
        ),
    )
