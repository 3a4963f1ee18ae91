"""The classifier of mail or text: a trained model, and the one way in which it answers.

Secret: how the stages (read, parse, tokenise, look up, add up) are connected; no stage knows the
others.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self, Union

import numpy as np

from nbspam.answering import AnyClassifier, Judged, Weighed
from nbspam.arrays import Floats
from nbspam.classifier.combining import Combination, with_groups
from nbspam.counts.ledger import Memory, memory_from_dict, memory_to_dict
from nbspam.counts.loss import Loss
from nbspam.counts.table import CountTable, compact
from nbspam.decision import (
    HAM_AND_SPAM,
    UNDECIDED,
    Cutoffs,
    Rule,
    cutoffs_from_dict,
    default_rule,
)
from nbspam.mail.message import Message
from nbspam.parallel import Workers
from nbspam.settings import Settings, settings_from_dict
from nbspam.sources.items import Item
from nbspam.tokens.documents import Documents
from nbspam.tokens.reading import chunks_of, read, read_message
from nbspam.tokens.tokenizer import batches, tokenize
from nbspam.tokens.vocabulary import Vocabulary
from nbspam.verdicts import Answer, Explanation, Verdict

if TYPE_CHECKING:
    from nbspam.classifier.blending import Blend
    from nbspam.classifier.summing import LogTables
    from nbspam.mail.verdict_headers import Wanted

TOKENS = "tokens"  # the kind of these models; files that state no kind hold one


class HowEvidenceAddsUp(Protocol):
    """The interface of the three fits: `LogTables`, `Combination` and `Blend`."""

    def joint(self, table: CountTable, documents: Documents, weighting: str) -> Floats:
        """Return log P(class, document), nats, shape (n_docs, n_classes)."""

    def shares(
        self, table: CountTable, documents: Documents, weighting: str, towards: int, against: int
    ) -> tuple[Floats, float]:
        """Return each token's share of the log-odds of two classes, and the constant, nats."""

    def recounted(self, table: CountTable, settings: Settings) -> Self:
        """Return the fit for a table that has got more messages, and possibly more columns."""


Fit = Union["LogTables", Combination, "Blend"]


def lack_of(known: Sequence[str], classes: Sequence[str]) -> str | None:
    """Return what a model of ham and spam needs before it can judge, None if nothing.

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
    cutoffs: Cutoffs | None = None  # tuned on the user's own mail (evaluation/tuning.py)

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names, sorted."""
        return self.table.classes

    @property
    def noun(self) -> str:
        """What its inputs are called, in the plural."""
        return self.settings.noun

    @property
    def prior(self) -> Floats:
        """The class prior, estimated in training or given, shape (n_classes,)."""
        from nbspam.classifier.summing import assumed_prior

        if self.lack is not None:
            return np.full(len(self.classes), 1 / len(self.classes))
        return assumed_prior(self.table.class_count, self.settings)

    @property
    def lack(self) -> str | None:
        """What a model that knows only ham, only spam or nothing needs; None for others."""
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
        return map(self.table.known, self._over_keys(messages))

    def _over_keys(self, messages: Sequence[Message]) -> Iterator[Documents]:
        """Yield messages as documents over the keys of all their tokens, batch by batch."""
        for group in batches(messages, self.settings.tokens):
            yield tokenize(group, self.settings.tokens).documents

    def chunks(self, inputs: Iterable[Item], jobs: Workers = 1) -> Iterator[list[Item]]:
        """Yield items in chunks, each of which one process works on at a time."""
        yield from chunks_of(inputs, jobs)

    def judge(self, inputs: Sequence[Item]) -> Judged:
        """Return the model's answers to one chunk of items, without `shift`."""
        return self.judge_beside((), inputs)[0]

    def judge_beside(self, others: Sequence[Self], inputs: Sequence[Item]) -> list[Judged]:
        """Return what this model and others of its settings say of one chunk of items.

        Each item is read and tokenised once.
        """
        found = read(inputs, self.settings)
        models = self, *others
        rows = [[np.zeros((0, len(self.classes)))] for _ in models]
        for documents in self._over_keys(found.messages):
            for own, model in zip(rows, models, strict=True):
                own.append(model.joint_of(model.table.known(documents)))
        return [Judged(np.concatenate(own), found.failures, found.notes) for own in rows]

    def truth(self, given: Item) -> str | None:
        """Return an item's own label, or None."""
        return given.label

    def verdicts(self, answers: Sequence[Answer], rule: Rule | None = None) -> Iterator[Verdict]:
        """Yield the verdict on each answer; all are unsure before both classes are known."""
        return AnyClassifier.verdicts(self, answers, rule if self.lack is None else None)

    def scores(self, joint: Floats) -> list[float | None]:
        """Return the log-odds of the last of two classes, nats; None if sums are not combined."""
        if not (self.settings.combine and len(self.classes) == 2):
            return [None] * len(joint)
        return list((joint[:, 1] - joint[:, 0]).tolist())

    def explain(self, given: Item, rule: Rule | None = None) -> Explanation:
        """Return the explanation of an item's verdict; raises InputError if it is unreadable."""
        return self.explain_message(read_message(given, self.settings), given.name, rule)

    def explain_message(
        self, message: Message, name: str, rule: Rule | None = None
    ) -> Explanation:
        """Return the explanation of one message's score.

        All models here are linear in their tokens, so that the shares of a message's tokens and
        one constant add up to its score.  If evidence is combined, the score is the log-odds of
        the last of two classes; otherwise of the most probable class against the next.
        """
        (document,) = self.documents([message])
        joint = self.joint_of(document)[0] + self.shift
        towards, against = 1, 0
        if not isinstance(self.fit, Combination):
            towards, against = np.argsort(-joint, kind="stable")[:2].tolist()
        evidence, constant = self.reasons(document, towards, against)
        shift = np.broadcast_to(self.shift, joint.shape)
        return Explanation(
            self.verdict(name, joint, rule),
            self.classes[towards],
            self.classes[against],
            float(joint[towards] - joint[against]),
            constant + float(shift[towards] - shift[against]),
            evidence,
        )

    def reasons_for(self, given: Item, towards: int, against: int) -> Weighed:
        """Return what each token of an item adds to the log-odds of two classes; InputError."""
        (document,) = self.documents([read_message(given, self.settings)])
        return self.reasons(document, towards, against)

    def reasons(self, document: Documents, towards: int, against: int) -> Weighed:
        """Return what each token adds to the log-odds of two classes, and the constant, nats.

        document: a single one, over columns of the model's table.  The strongest come first.
        """
        weighting = self.settings.weighting
        shares, constant = self.fit.shares(self.table, document, weighting, towards, against)
        order = np.argsort(-np.abs(shares), kind="stable")
        columns = document.tokens[document.columns[order]]
        return tuple(map(self.table.evidence, columns.tolist(), shares[order].tolist())), constant

    def to_state(self) -> dict[str, Any]:
        """Return the classifier as plain values for the model file."""
        table, memory, fit = self.table, self.memory, self.fit
        vocabulary = table.vocabulary.packed()
        n_classes = len(self.classes)
        state = {
            "settings": self.settings.to_dict(),
            "classes": list(table.classes),
            "class_count": table.class_count,
            "keys": vocabulary.keys,
            "text": vocabulary.blob,
            "text_offsets": compact(vocabulary.offsets),
            "group": vocabulary.groups,
            "feature_count": compact(table.feature_count),
            "document_frequency": compact(table.document_frequency),
            "intercept": np.zeros(n_classes),
            "weight": np.zeros((0, n_classes)),
            "worth": None,
            "correction": None,
            "blend": None,
            "memory": None if memory is None else memory_to_dict(memory),
            "cutoffs": None if self.cutoffs is None else self.cutoffs._asdict(),
        }
        if table.loss is not None:
            state["lacks"] = compact(table.loss.of_each)
            state["others_had"] = table.loss.of_others
        if isinstance(fit, Combination):
            return state | fit._asdict()
        from nbspam.classifier.blending import Blend, blend_to_dict

        return state | (blend_to_dict(fit) if isinstance(fit, Blend) else fit._asdict())

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "Classifier":
        """Return the classifier in a model file, the inverse of `to_state`.

        Raises KeyError, TypeError, ValueError or AttributeError if the values are inconsistent.
        """
        vocabulary = Vocabulary(
            state["keys"], state["text"], state["text_offsets"], state["group"]
        )
        table = CountTable(
            tuple(state["classes"]),
            state["class_count"],
            vocabulary,
            state["feature_count"],
            state["document_frequency"],
            Loss(state["lacks"], state["others_had"]) if "lacks" in state else None,
        )
        shape = len(vocabulary), len(table.classes)
        if not (
            state["feature_count"].shape == shape
            and state["class_count"].shape == shape[1:]
            and state["document_frequency"].shape == shape[:1]
            and len(vocabulary.offsets) == shape[0] + 1
        ):
            raise ValueError("its tables differ in length")
        memory = (
            memory_from_dict(state["memory"], len(vocabulary)) if state.get("memory") else None
        )
        settings = settings_from_dict(state["settings"])
        cutoffs = cutoffs_from_dict(state["cutoffs"]) if state.get("cutoffs") else None
        return cls(settings, table, _fit_of(state, table), memory, cutoffs)


def _fit_of(state: dict[str, Any], table: CountTable) -> Fit:
    """Return the fit in a model file's plain values; raises ValueError."""
    shape = len(table.vocabulary), len(table.classes)
    if state["worth"] is not None:
        combination = Combination(with_groups(state["worth"]), state["correction"])
        if combination.correction.shape != shape[:1] or shape[1] != 2:
            raise ValueError("its corrections do not fit its tables")
        return combination
    if state.get("blend") is not None:  # older files have none
        from nbspam.classifier.blending import blend_from_dict

        return blend_from_dict(state, table)
    from nbspam.classifier.summing import LogTables

    if state["weight"].shape != shape or state["intercept"].shape != shape[1:]:
        raise ValueError("its tables differ in length")
    return LogTables(state["intercept"], state["weight"])


def mark(
    classifier: Classifier, rule: Rule, wanted: "Wanted", data: bytes, whole: bool = True
) -> tuple[Verdict, list[bytes]]:
    """Return the verdict on a message, and the pieces of the message with it in the head.

    whole: data is all of the message, not only its beginning.  Raises UsageError if headers of
    other spam filters are wanted and the labels are not theirs.
    """
    from nbspam.mail.verdict_headers import check_wanted, with_verdict

    check_wanted(wanted, (*classifier.classes, *rule.actions))
    message = read_message(Item("-", None, data), classifier.settings)
    (document,) = classifier.documents([message])
    (joint,) = classifier.joint_of(document) + classifier.shift
    verdict = next(classifier.verdicts([Answer("-", None, joint)], rule))
    explanation = None
    if wanted.explain:
        explanation = classifier.explain_message(message, "-", rule)
    return verdict, with_verdict(data, verdict, rule, wanted, explanation, whole)
