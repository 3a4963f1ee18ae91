"""A classifier of mail by tokens that depend on each other.

A message is judged by the presence of chosen tokens, the most informative about the class.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nbspam import verdicts
from nbspam.arrays import Booleans, Floats, Integers
from nbspam.classifier.reasons import by_words
from nbspam.counts.corpus import Corpus
from nbspam.counts.table import CountTable, pruned_table, table_from_state, table_to_state
from nbspam.decision import Rule
from nbspam.errors import NotTrainedError
from nbspam.mail.message import Message
from nbspam.models import model_state, new_column_model, restored
from nbspam.models.tokens import BernoulliNB
from nbspam.settings import PRESENCE, Settings, settings_from_state, settings_to_state
from nbspam.sources.items import Item
from nbspam.tokens.items_to_messages import chunks_of, message_of_item, read_to_judge
from nbspam.tokens.tokenizer import batches, tokenize
from nbspam.workers import Workers


@dataclass(frozen=True, slots=True)
class FeatureClassifier(verdicts.AnyClassifier):
    """A trained model of dependent tokens, and the counts of these tokens."""

    settings: Settings
    table: CountTable  # counts of the chosen tokens
    model: Any

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names, sorted."""
        return self.table.classes

    @property
    def noun(self) -> str:
        """The word for its inputs, in the plural."""
        return self.settings.noun

    @property
    def prior(self) -> Floats:
        """The shares of the classes that training estimated or was given, shape (n_classes,)."""
        return np.asarray(np.exp(self.model.class_log_prior_))

    @property
    def alone(self) -> Floats:
        """The evidence of each token alone, by naive Bayes: nats, (n_features, n_classes)."""
        table = self.table
        plain = BernoulliNB.from_counts(table.class_count, table.feature_count.T, table.classes)
        return np.asarray(plain.tables().weight)

    def chunks(self, inputs: Iterable[Item], jobs: Workers = 1) -> Iterator[list[Item]]:
        """Yield the items in chunks; a process works on one chunk at a time."""
        yield from chunks_of(inputs, jobs)

    def judge(self, inputs: Sequence[Item]) -> verdicts.JudgedChunk:
        """Return the model's answers to one chunk of items, without `shift`."""
        found = read_to_judge(inputs, self.settings)
        joint = self.model.joint_log_proba_or_prior(self.presence(found.messages))
        return verdicts.JudgedChunk(joint, found.failures, found.notes)

    def presence(self, messages: Sequence[Message]) -> Booleans:
        """Return the presence of the tokens in each message, shape (n_messages, n_features)."""
        present = np.zeros((len(messages), len(self.table.vocabulary)), np.bool_)
        start = 0
        for group in batches(messages, self.settings.tokens):
            batch = tokenize(group, self.settings.tokens)
            known = self.table.vocabulary.in_columns(batch.documents)
            present[start + known.rows(), known.tokens[known.columns]] = True
            start += known.n_docs
        return present

    def explain(self, given: Item, rule: Rule | None = None) -> verdicts.Explanation:
        """Return why an item gets its verdict; raises InputError.

        The score is the log-odds of the most probable class against the next.
        """
        message = message_of_item(given, self.settings)
        present = self.presence([message])[0]
        joint = self.model.joint_log_proba_or_prior(present[None])[0] + self.shift
        found = self.explained(given.name, present, joint, rule)
        words = by_words(message, self.settings.tokens, found.evidence)
        return replace(found, evidence=words, tokens=found.evidence)

    def reasons_for(self, given: Item, towards: int, against: int) -> verdicts.LogOddsParts:
        """Return each token's share in the log-odds of two classes; raises InputError."""
        present = self.presence([message_of_item(given, self.settings)])[0]
        return self.reasons(present, towards, against)

    def reasons(self, document: Booleans, towards: int, against: int) -> verdicts.LogOddsParts:
        """Return the share of each token in the log-odds of two classes, and the constant, nats.

        document: which of the tokens a message has, (n_features,).  Starting from an empty
        message, tokens are added one by one, the strongest single tokens first; a token's share
        is its addition to the tokens before it.  The strongest come first.
        """
        columns = np.flatnonzero(document)
        weight = self.alone[columns]
        alone = np.abs(weight[:, towards] - weight[:, against])
        columns = columns[np.argsort(-alone, kind="stable")]
        nested = np.zeros((len(columns) + 1, len(document)), np.bool_)
        for step, column in enumerate(columns.tolist(), 1):
            nested[step:, column] = True
        chain = self.model.joint_log_proba_or_prior(nested) + self.shift
        shares, constant = verdicts.shares_by_chain(chain, towards, against)
        order = np.argsort(-np.abs(shares), kind="stable")
        chosen = columns[order].tolist()
        return tuple(map(self.table.evidence, chosen, shares[order].tolist())), constant

    def to_state(self) -> dict[str, Any]:
        """Return all that a model file keeps; `from_state` is the inverse."""
        state = {"kind": "features", **settings_to_state(self.settings)}
        return state | table_to_state(self.table) | model_state(self.model)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "FeatureClassifier":
        """Return the classifier that `to_state` described; raises an error of `DAMAGE`."""
        settings = settings_from_state(state)
        table = table_from_state(state)
        table = table._replace(feature_count=np.asarray(table.feature_count, np.float64))
        like = np.zeros((1, len(table.vocabulary)))
        model = restored(settings.model, state, table.classes, like)
        return cls(settings, table, model)


def train_features(
    data: Corpus, settings: Settings, rows: Integers | None = None
) -> FeatureClassifier:
    """Return the classifier trained on a corpus, or on these rows; raises NotTrainedError."""
    chosen = np.arange(len(data.y)) if rows is None else rows
    y = data.y[chosen]
    table = data.table(chosen, PRESENCE)
    if len(np.unique(y)) < 2:
        raise NotTrainedError("train: fewer than two classes of labelled mail; give two or more")
    table = pruned_table(table, settings.min_df, settings.max_features)._replace(loss=None)
    prior = {"alpha": settings.alpha, "class_prior": settings.class_prior}
    parameters = {**prior, **settings.parameters}
    if "class_dirichlet" in parameters:
        of_tokens = [None] * len(table.vocabulary)
        parameters["dirichlet"] = [*of_tokens, parameters.pop("class_dirichlet")]
    model = new_column_model(settings.model, parameters)
    labels = np.array(data.classes)
    X = data.X[chosen][:, data.vocabulary.columns(table.vocabulary.keys)]
    model.partial_fit(X, labels[y], classes=labels)
    return FeatureClassifier(settings, table, model)


def features_held_out(
    data: Corpus, settings: Settings, rest: Integers, of: Integers
) -> verdicts.HeldOut:
    """Return the answers to some rows of a model trained on the rest; both are row numbers."""
    classifier = train_features(data, settings, rest)
    X = data.X[of][:, data.vocabulary.columns(classifier.table.vocabulary.keys)]
    joint = classifier.model.joint_log_proba_or_prior(X)
    return verdicts.HeldOut(classifier, joint, lambda place: X[[place]].toarray()[0] > 0)
