"""Online evaluation: each message is answered first and learned afterwards.

This simulates the use of a filter: it starts without knowledge and is told the truth after each
answer.  The model is the same as after a `nbspam update` for each message.

Secret: documents are tokenised once, and counted in place.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nbspam.answering import Weighed
from nbspam.arrays import Booleans, Floats
from nbspam.classifier.learner import Growth, Learner
from nbspam.classifier.summing import LogTables, assumed_prior
from nbspam.classifier.training import fitted
from nbspam.counts.corpus import Corpus
from nbspam.counts.sample import Messages, Sampling
from nbspam.counts.table import CountTable, counts_of
from nbspam.decision import default_rule, is_worth_learning
from nbspam.errors import UsageError
from nbspam.evaluation.trial import Trial
from nbspam.mail.digest import Copies
from nbspam.progress import tracked
from nbspam.settings import FEATURES, Settings
from nbspam.tokens.documents import Documents
from nbspam.verdicts import posterior

if TYPE_CHECKING:
    from nbspam.evaluation.witness import Witness

N_STRETCHES = 10  # parts of a stream, which stand in for folds in comparisons
_UNHEARD = 50.0  # nats by which a class without messages is less likely than any other


@dataclass(frozen=True, slots=True)
class Progress:
    """The answers to a stream of messages, and which of them were learned."""

    joint: Floats  # (n_docs, n_classes) nats, before the message was learned
    learned: Booleans  # (n_docs,)


def online_trial(
    data: Corpus, settings: Settings, policy: str, witness: "Witness | None" = None
) -> Trial:
    """Return the answers to a corpus's documents as a stream, in the order of its rows.

    The folds of the trial are N_STRETCHES successive parts of the stream.  Raises UsageError.
    """
    if settings.model in FEATURES:
        raise UsageError(f"--online: not for --model {settings.model}; judge it by --cv K")
    joint = progress(data, settings, policy, witness).joint
    stretch = np.arange(len(data.y)) * N_STRETCHES // max(len(data.y), 1)
    rule = default_rule(data.classes, settings.is_mail_combined)
    prior = prior_of(data, settings)
    of = data.names, settings.noun
    return Trial(data.classes, data.y, joint, rule, stretch, prior, *of, is_stream=True)


def prior_of(data: Corpus, settings: Settings) -> Floats:
    """Return the class prior that models of a corpus assume, (n_classes,)."""
    class_count = np.bincount(data.y, minlength=len(data.classes)).astype(np.float64)
    return assumed_prior(class_count, settings)


def progress(
    data: Corpus,
    settings: Settings,
    policy: str = "everything",
    witness: "Witness | None" = None,
) -> Progress:
    """Return the answers to messages in the order of their rows; raises UsageError.

    policy: one of decision.POLICIES.  Until messages of two classes are learned, all classes are
    equally likely, and every message is learned.
    """
    _check(data, settings)
    n_docs = len(data.y)
    joint, learned = np.zeros((n_docs, len(data.classes))), np.zeros(n_docs, np.bool_)
    life = _Life(data, settings)
    copies = Copies()
    stream = zip(data.digests.tolist(), data.y.tolist(), strict=True)
    for row, (digest, truth) in enumerate(tracked(stream, "messages", n_docs)):
        answer = life.answer(data.documents.one(row))
        if answer is not None:
            joint[row] = life.over_all_classes(answer)
            if witness is not None:
                life.tell(witness, row, truth, joint[row])
            if not is_worth_learning(policy, posterior(joint[row : row + 1])[0], truth):
                continue
        learned[row] = True
        life.learn(row, copies.numbered(digest), truth)
    if witness is not None:
        life.end(witness)
    return Progress(joint, learned)


def _check(data: Corpus, settings: Settings) -> None:
    if len(data.classes) < 2:
        raise UsageError(
            f"--online: only one class ({data.classes[0]}); give mail of two or more classes,"
            " for example with --spam PATH --ham PATH"
        )
    if not settings.combine:
        raise UsageError("--online: only for models that combine evidence; add --preset mail")
    if settings.min_df > 1 or settings.max_features is not None:
        raise UsageError(
            "--online: rare tokens are known only at the end of the stream;"
            " leave out --min-df and --max-features"
        )


class _Life:
    """A model that learns a corpus message by message.

    Its columns are those of the corpus, so no token needs to be looked up.
    """

    def __init__(self, data: Corpus, settings: Settings) -> None:
        self._data, self._settings = data, settings
        self._growth = Growth({})
        self._row: dict[int, int] = {}  # row of the message's first copy, by digest
        self._label: dict[int, int] = {}  # class of the message, by digest
        self._classes: tuple[str, ...] = ()  # the classes that the learner knows
        self._learner: Learner | None = None

    def answer(self, document: Documents) -> Floats | None:
        """Return joint log-probabilities of the learner's classes, nats; None before any fit."""
        return None if self._learner is None else self._learner.answer(document)

    def over_all_classes(self, answer: Floats) -> Floats:
        """Return an answer extended to all classes of the corpus, nats, shape (n_classes,)."""
        joint = np.full(len(self._data.classes), answer.min() - _UNHEARD)
        joint[self._places()] = answer
        return joint

    def tell(self, witness: "Witness", row: int, truth: int, joint: Floats) -> None:
        """Let a witness hear an answer; joint: (n_classes,), nats, of all classes."""
        learner, places = self._learner, self._places()

        def reasons(towards: int, against: int) -> Weighed:
            if learner is None or not {towards, against} <= set(places):
                return (), 0.0  # a class without messages
            pair = places.index(towards), places.index(against)
            return learner.reasons(self._data.documents.one(row), *pair)

        witness.hear_one(row, truth, joint, reasons)

    def end(self, witness: "Witness") -> None:
        """Let a witness meet what was learned in the end."""
        if self._learner is not None:
            witness.meet(self._learner.classifier)

    def learn(self, row: int, digest: int, truth: int) -> None:
        """Learn a message; one that is known in this class changes nothing."""
        before = self._label.get(digest)
        if before == truth:
            return
        row = self._row.setdefault(digest, row)
        self._label[digest] = truth
        names = self._data.classes
        is_due = self._growth.note(None if before is None else names[before], names[truth])
        if self._learner is not None and self._growth.classes == self._classes:
            leaves = None if before is None else self._classes.index(names[before])
            gets = self._classes.index(names[truth])
            self._learner.learn(self._data.documents.one(row), leaves, gets)
        if len(self._growth.classes) < 2:  # of one class nothing is known
            self._learner, self._classes = None, ()
        elif is_due:
            self._fit()

    def _fit(self) -> None:
        """Fit evidence to the messages learned so far."""
        data, settings = self._data, self._settings
        digests = np.sort(np.fromiter(self._row, np.uint64, len(self._row)))
        rows = np.array([self._row[digest] for digest in digests.tolist()], np.int64)
        y = np.array([self._label[digest] for digest in digests.tolist()], np.int64)
        place = np.full(len(data.classes), -1)
        self._classes, old = self._growth.classes, self._classes
        place[self._places()] = np.arange(len(self._classes))
        documents, y = data.documents.take(rows), place[y]
        learner = self._learner if self._classes == old else None
        if learner is None:
            groups = data.vocabulary.groups
            counts = counts_of(documents, y, len(self._classes), groups, settings.weighting)
            table = CountTable(self._classes, counts[0], data.vocabulary, counts[1], counts[2])
        else:
            table = learner.table
        labels = np.array(self._classes, np.str_)[y]
        sampling = Sampling(settings.weighting)
        sampling.add([Messages(labels, digests, documents._replace(tokens=data.vocabulary.keys))])
        (sample,) = sampling.messages
        columns = data.vocabulary.columns(sample.documents.tokens)
        known = np.searchsorted(np.array(self._classes, np.str_), sample.labels)
        fit = fitted(table, sample.documents._replace(tokens=columns), known, settings)
        assert not isinstance(fit, LogTables)  # see `_check`
        if learner is None:
            self._learner = Learner(table, fit, settings)
        else:
            learner.refit(fit)

    def _places(self) -> list[int]:
        return [self._data.classes.index(name) for name in self._classes]
