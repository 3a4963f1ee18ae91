"""The classifier of mail or text: a trained model, and the one way in which it answers.

It connects the stages: read, parse, tokenise, look up, add up.
The last part looks inside: the tokens of items, and the strongest tokens of a model.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self, Union

import numpy as np

from nbspam import verdicts
from nbspam.arrays import Floats, Floats32
from nbspam.classifier.combine import Combination
from nbspam.counts.ledger import Memory, memory_from_dict, memory_to_dict
from nbspam.counts.table import CountTable, table_from_state, table_to_state
from nbspam.decision import HAM_AND_SPAM, UNDECIDED, Cutoffs, Rule, default_rule, two_likeliest
from nbspam.errors import InputError
from nbspam.mail.message import Message
from nbspam.settings import Settings, settings_from_state, settings_to_state
from nbspam.sources.items import Item
from nbspam.tokens.definition import CHARACTERS, group_of, reference_tokens
from nbspam.tokens.items_to_messages import (
    chunks_of,
    message_of_item,
    read_to_judge,
    whole_message,
)
from nbspam.tokens.sparse import Documents
from nbspam.tokens.tokenizer import batches, tokenize
from nbspam.verdicts import Answer, AnyClassifier, Explanation, JudgedChunk, LogOddsParts, Verdict
from nbspam.workers import Workers

if TYPE_CHECKING:
    from nbspam.classifier.blend import Blend
    from nbspam.classifier.features import FeatureClassifier
    from nbspam.classifier.sum import LogTables
    from nbspam.mail.headers import HeaderChoices

TOKENS_KIND = "tokens"  # the kind of these models; files that state no kind hold one


# The three ways in which evidence adds up.  Each has `joint`, log P(class, document); `shares`,
# each token's part in the log-odds of two classes; and `recounted`, the fit of a larger table.
Fit = Union["LogTables", Combination, "Blend"]


def lack_of(known: Sequence[str], classes: Sequence[str]) -> str | None:
    """Return a sentence on what a model of ham and spam lacks, None if it can judge.

    known: the classes of which it has learned messages.
    """
    missing = [name for name in HAM_AND_SPAM if name not in known]
    if tuple(classes) != HAM_AND_SPAM or not missing:
        return None
    options = " ".join(f"--{name} PATH" for name in missing)
    return (
        f"the model knows {f'only {known[0]}' if known else 'no mail yet'}, and is unsure of"
        f" everything; teach it {' and '.join(missing)}: nbspam update {options}"
    )


@dataclass(frozen=True, slots=True)
class Classifier(AnyClassifier):
    """A trained model: settings, counts, and how the evidence in them adds up."""

    settings: Settings
    table: CountTable
    fit: Fit
    memory: Memory | None = None  # what learning on needs; None: this model cannot learn on
    cutoffs: Cutoffs | None = None  # tuned on the user's own mail (evaluation/choosing.py)

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
        """The class prior, estimated in training or given, shape (n_classes,)."""
        from nbspam.classifier.sum import assumed_prior

        if self.lack is not None:
            return np.full(len(self.classes), 1 / len(self.classes))
        return assumed_prior(self.table.class_count, self.settings)

    @property
    def lack(self) -> str | None:
        """The lack of a model that knows only ham, only spam or nothing; None for others."""
        counts = zip(self.classes, self.table.class_count.tolist(), strict=True)
        return lack_of([name for name, n in counts if n], self.classes)

    @property
    def rule(self) -> Rule:
        """The rule by which probabilities become labels, unless the caller gives another."""
        if self.lack is not None:
            return UNDECIDED
        return self.cutoffs or default_rule(self.classes, self.settings.is_mail_combined)

    def joint_of(self, documents: Documents) -> Floats:
        """Return log P(class, document), nats, shape (n_docs, n_classes), without `shift`.

        documents: over columns of the model's table.  Combined or blended evidence gives
        log P(class given document) up to a constant instead.
        """
        return self.fit.joint(self.table, documents, self.settings.weighting)

    def documents(self, messages: Sequence[Message]) -> Iterator[Documents]:
        """Yield messages as documents over the model's columns, batch by batch."""
        return map(self._in_columns, self._over_keys(messages))

    def _in_columns(self, documents: Documents) -> Documents:
        """Return documents over the model's columns.

        A plain sum also counts tokens of a given vocabulary that no message had.
        """
        columns = self.table if self.settings.combine else self.table.vocabulary
        return columns.in_columns(documents)

    def _over_keys(self, messages: Sequence[Message]) -> Iterator[Documents]:
        """Yield messages as documents over the keys of all their tokens, batch by batch."""
        for group in batches(messages, self.settings.tokens):
            yield tokenize(group, self.settings.tokens).documents

    def chunks(self, inputs: Iterable[Item], jobs: Workers = 1) -> Iterator[list[Item]]:
        """Yield items in chunks, each of which one process works on at a time."""
        yield from chunks_of(inputs, jobs)

    def judge(self, inputs: Sequence[Item]) -> JudgedChunk:
        """Return the model's answers to one chunk of items, without `shift`."""
        return self.judge_beside((), inputs)[0]

    def judge_beside(self, others: Sequence[Self], inputs: Sequence[Item]) -> list[JudgedChunk]:
        """Return the answers of this model and of others of its settings to one chunk of items.

        Each item is read and tokenised once.
        """
        found = read_to_judge(inputs, self.settings)
        models = self, *others
        rows = [[np.zeros((0, len(self.classes)))] for _ in models]
        for documents in self._over_keys(found.messages):
            for own, model in zip(rows, models, strict=True):
                own.append(model.joint_of(model._in_columns(documents)))
        return [JudgedChunk(np.concatenate(own), found.failures, found.notes) for own in rows]

    def verdicts(self, answers: Sequence[Answer], rule: Rule | None = None) -> Iterator[Verdict]:
        """Yield the verdict on each answer; all are unsure before both classes are known."""
        return AnyClassifier.verdicts(self, answers, rule if self.lack is None else None)

    def scores(self, joint: Floats) -> list[float | None]:
        """Return the log-odds of class 1, nats; None of more classes, or of plain sums."""
        if not (self.settings.combine and len(self.classes) == 2):
            return [None] * len(joint)
        return list((joint[:, 1] - joint[:, 0]).tolist())

    def explain(self, given: Item, rule: Rule | None = None) -> Explanation:
        """Return the explanation of an item's verdict; raises InputError if it is unreadable."""
        return self.explain_message(message_of_item(given, self.settings), given.name, rule)

    def explain_message(
        self, message: Message, name: str, rule: Rule | None = None
    ) -> Explanation:
        """Return the explanation of one message's score.

        All models here are linear in their tokens, so that the shares of a message's tokens and
        one constant add up to its score.  If evidence is combined, the score is the log-odds of
        the last of two classes; otherwise of the most probable class against the next.
        """
        from nbspam.classifier.reasons import by_words

        (document,) = self.documents([message])
        joint = self.joint_of(document)[0] + self.shift
        towards, against, kept, by_beginning = 1, 0, 1.0, False
        if isinstance(self.fit, Combination):
            *_, kept, by_beginning = self.fit.parts(self.fit.evidence(self.table, document))
        else:
            towards, against = two_likeliest(joint)
        tokens, constant = self.reasons(document, towards, against)
        shift = np.broadcast_to(self.shift, joint.shape)
        return Explanation(
            self.verdict(name, joint, rule),
            self.classes[towards],
            self.classes[against],
            float(joint[towards] - joint[against]),
            constant + float(shift[towards] - shift[against]),
            by_words(message, self.settings.tokens, tokens),
            tokens,
            kept,
            by_beginning,
        )

    def reasons_for(self, given: Item, towards: int, against: int) -> LogOddsParts:
        """Return each token's share in the log-odds of two classes; raises InputError."""
        (document,) = self.documents([message_of_item(given, self.settings)])
        return self.reasons(document, towards, against)

    def reasons(self, document: Documents, towards: int, against: int) -> LogOddsParts:
        """Return the share of each token in the log-odds of two classes, and the constant, nats.

        document: a single one, over columns of the model's table.  The strongest come first.
        """
        weighting = self.settings.weighting
        shares, constant = self.fit.shares(self.table, document, weighting, towards, against)
        order = np.argsort(-np.abs(shares), kind="stable")
        columns = document.tokens[document.columns[order]]
        return tuple(map(self.table.evidence, columns.tolist(), shares[order].tolist())), constant

    def to_state(self) -> dict[str, Any]:
        """Return the classifier as plain values for the model file."""
        memory, fit, n_classes = self.memory, self.fit, len(self.classes)
        state = {
            "kind": TOKENS_KIND,
            **settings_to_state(self.settings),
            **table_to_state(self.table),
            "log_prior": np.zeros(n_classes),
            "intercept": np.zeros(n_classes),
            "weight": np.zeros((0, n_classes)),
            "n_required": np.zeros(n_classes),
            "worth": None,
            "correction": None,
            "usual": None,
            "leaning": None,
            "blend": None,
            "memory": None if memory is None else memory_to_dict(memory),
            "cutoffs": None if self.cutoffs is None else self.cutoffs._asdict(),
        }
        if isinstance(fit, Combination):
            return state | fit._asdict()
        from nbspam.classifier.blend import Blend, blend_to_dict

        return state | (blend_to_dict(fit) if isinstance(fit, Blend) else fit._asdict())

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "Classifier":
        """Return the classifier in a model file, the inverse of `to_state`.

        Raises KeyError, TypeError, ValueError or AttributeError if the values are inconsistent.
        """
        table, memory = table_from_state(state), state["memory"]
        memory = memory_from_dict(memory, len(table.vocabulary)) if memory else None
        settings = settings_from_state(state)
        cutoffs = Cutoffs(**state["cutoffs"]) if state["cutoffs"] else None
        return cls(settings, table, _fit_of(state), memory, cutoffs)


def _fit_of(state: dict[str, Any]) -> Fit:
    """Return the fit in a model file's plain values."""
    if state["worth"] is not None:
        return Combination(*(state[name] for name in Combination._fields))
    if state["blend"] is not None:
        from nbspam.classifier.blend import blend_from_dict

        return blend_from_dict(state)
    from nbspam.classifier.sum import LogTables

    return LogTables(*(state[name] for name in LogTables._fields))


def judge_and_mark(
    classifier: Classifier,
    rule: Rule,
    wanted: "HeaderChoices",
    data: bytes,
    whole: bool = True,
    sure: float | None = None,
) -> tuple[Verdict, list[bytes], str | None]:
    """Return the verdict on a message, its pieces with the verdict, and the class to learn.

    whole: data is all of the message, not only its beginning.  sure: the message is to be learned
    if its class is at least so probable; None learns nothing.  Raises UsageError if headers of
    other spam filters are wanted and the labels are not theirs.
    """
    from nbspam.mail.verdict_headers import check_wanted, sure_label, with_verdict

    rule = rule if classifier.lack is None else classifier.rule
    check_wanted(wanted, (*classifier.classes, *rule.actions))
    item = Item("-", None, data)
    message = message_of_item(item, classifier.settings)
    (document,) = classifier.documents([message])
    (joint,) = classifier.joint_of(document) + classifier.shift
    verdict = own = classifier.verdict("-", joint, rule)
    explanation = classifier.explain_message(message, "-", rule) if wanted.explain else None
    if classifier.lists is not None:
        verdict = classifier.lists.verdict(item, verdict, rule)
        if explanation is not None:
            explanation = classifier.lists.explanation(item, explanation, rule)
    learned = None if sure is None else sure_label(own, verdict, sure)
    wanted = wanted._replace(learned=learned)
    return verdict, with_verdict(data, verdict, rule, wanted, explanation, whole), learned


# --- looking inside --------------------------------------------------------------------------


def token_counts(
    items: Iterable[Item], settings: Settings
) -> Iterator[tuple[str, int] | verdicts.Skipped]:
    """Yield each token of each item as a string, and how often it occurs there."""
    for item in items:
        try:
            message = whole_message(item, settings)
        except InputError as error:
            yield verdicts.Skipped(item.name, str(error))
        else:
            yield from Counter(map(str, reference_tokens(message, settings.tokens))).items()


class StrongToken(NamedTuple):
    """A token that is strong evidence for a class."""

    token: str
    weight: float  # log-odds against the mean of the other classes, nats
    counts: tuple[float, ...]  # by class


def token_weights(classifier: "Classifier | FeatureClassifier") -> Floats | Floats32:
    """Return each token's evidence for each class, nats, shape (n_features, n_classes)."""
    if not isinstance(classifier, Classifier):
        return classifier.alone
    from nbspam.classifier.blend import Blend
    from nbspam.classifier.sum import log_tables

    fit, table = classifier.fit, classifier.table
    if isinstance(fit, Blend):
        return fit.token_weights(table)
    if isinstance(fit, Combination):
        return log_tables(table, classifier.settings).weight
    return fit.weight


def strongest_tokens(
    classifier: "Classifier | FeatureClassifier", n: int, with_runs: bool = False
) -> dict[str, list[StrongToken]]:
    """Return for each class at most n tokens, the strongest evidence for it, best first.

    with_runs: also runs of characters, which repeat the evidence of the words they stand in.
    """
    table = classifier.table
    groups = table.vocabulary.groups
    kept = np.flatnonzero(with_runs | (groups != group_of(CHARACTERS)))
    weight = token_weights(classifier)
    # Without smoothing weights can be infinite, which nothing can be compared with.
    weight = np.where(np.isinf(weight).any(axis=1, keepdims=True), 0.0, weight)
    others = (weight.sum(axis=1, keepdims=True) - weight) / (weight.shape[1] - 1)
    strongest = {}
    for k, name in enumerate(classifier.classes):
        odds = weight[:, k] - others[:, k]
        columns = kept[np.argsort(-odds[kept], kind="stable")[:n]]
        strongest[name] = [
            StrongToken(
                table.vocabulary.text(j), float(odds[j]), tuple(map(float, table.feature_count[j]))
            )
            for j in columns.tolist()
            if odds[j] >= 0
        ]
    return strongest
