"""A stream of messages: each is answered first and learned afterwards.

This simulates the use of a filter: it starts untrained and learns the truth after each answer.
The model is the same as after a `nbspam update` for each message, but documents are tokenised
once, and counted in place.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import numpy as np

from nbspam.arrays import Booleans, Floats
from nbspam.classifier.sum import LogTables
from nbspam.classifier.training import Learner, ModelGrowth, fitted_evidence
from nbspam.counts.corpus import Corpus
from nbspam.counts.ledger import Messages, Sampling
from nbspam.counts.table import counted
from nbspam.decision import default_rule, is_worth_learning
from nbspam.errors import UsageError
from nbspam.evaluation.evaluation import Trial
from nbspam.evaluation.judging import labelled_corpus, unanswered
from nbspam.evaluation.witness import Witness
from nbspam.mail.digest import Copies
from nbspam.printing import tracked
from nbspam.settings import FEATURES, Settings
from nbspam.sources.arrival import arranged
from nbspam.sources.items import Item
from nbspam.verdicts import LogOddsParts, posterior
from nbspam.workers import Workers

N_STRETCHES = 10  # parts of a stream, which stand in for folds in comparisons
_UNHEARD = 50.0  # nats by which a class without messages is less likely than any other


def online_trial(
    data: Corpus, settings: Settings, policy: str, witness: Witness | None = None
) -> Trial:
    """Return the answers to a corpus's documents as a stream, in the order of its rows.

    The folds of the trial are N_STRETCHES successive parts of the stream.  Raises UsageError.
    """
    if settings.model in FEATURES:
        raise UsageError(f"--online: not for --model {settings.model}; judge it by --cv K")
    stretch = np.arange(len(data.y)) * N_STRETCHES // max(len(data.y), 1)
    joint, learned = progress(data, settings, policy, witness)
    return replace(unanswered(data, settings, stretch), joint=joint, learned=learned)


def judge_online(
    items: Iterable[Item],
    settings: Settings,
    policy: str,
    order: str | None = None,
    seed: int = 0,
    jobs: Workers = 1,
    witness: Witness | None = None,
) -> Trial:
    """Return the answers of a model that learns each message after it has answered it.

    policy: which messages it learns, one of decision.POLICIES.  order: of the messages, see
    `sources.arrival.arranged`.
    """
    stream, found = arranged(items, order, seed)
    data, skipped = labelled_corpus(stream, settings, jobs)
    trial = online_trial(data, settings, policy, witness)
    return replace(trial, skipped=skipped, order=found)


def progress(
    data: Corpus, settings: Settings, policy: str = "everything", witness: Witness | None = None
) -> tuple[Floats, Booleans]:
    """Return the answers to a stream of messages, and which of them were learned.

    The answers are log P(class, document), nats, (n_docs, n_classes), each from before its message
    was learned; what was learned has shape (n_docs,).  The stream is in the order of the rows.
    policy: one of decision.POLICIES.  Until messages of two classes are learned, all classes are
    equally likely, and every message is learned.  Raises UsageError.
    """
    _check(data, settings)
    n_docs, rule = len(data.y), default_rule(data.classes, settings.is_mail_combined)
    joint, learned = np.zeros((n_docs, len(data.classes))), np.zeros(n_docs, np.bool_)
    model = _StreamModel(data, settings)
    copies = Copies()
    stream = zip(data.digests.tolist(), data.y.tolist(), strict=True)
    for row, (digest, truth) in enumerate(tracked(stream, "messages", n_docs)):
        if model.learner is not None:
            joint[row] = model.answer(row)
            if witness is not None:
                witness.hear_one(row, truth, joint[row], partial(model.reasons, row))
            probability = posterior(joint[row : row + 1])
            is_right = rule.labels(probability) == [data.classes[truth]]
            if not is_worth_learning(policy, is_right, probability[0, truth]):
                continue
        learned[row] = True
        model.learn(row, copies.numbered(digest), truth)
    if witness is not None and model.learner is not None:
        witness.meet(model.learner.classifier)
    return joint, learned


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


class _StreamModel:
    """A model that learns a corpus message by message.

    It shares the corpus's columns, so no token needs to be looked up.
    """

    def __init__(self, data: Corpus, settings: Settings) -> None:
        self._data, self._settings = data, settings
        self._growth = ModelGrowth({})
        self._row: dict[int, int] = {}  # row of the message's first copy, by digest
        self._label: dict[int, int] = {}  # class of the message, by digest
        self._classes: tuple[str, ...] = ()  # the classes that the learner knows
        self.learner: Learner | None = None  # None before any fit

    def answer(self, row: int) -> Floats:
        """Return log P(class, document), nats, for all classes of the corpus, (n_classes,)."""
        assert self.learner is not None
        known = self.learner.answer(self._data.documents.one(row))
        joint = np.full(len(self._data.classes), known.min() - _UNHEARD)
        joint[self._places()] = known
        return joint

    def reasons(self, row: int, towards: int, against: int) -> LogOddsParts:
        """Return the evidence for one class against another, see `verdicts.HeldOut`."""
        places = self._places()
        if self.learner is None or not {towards, against} <= set(places):
            return (), 0.0  # a class without messages
        pair = places.index(towards), places.index(against)
        return self.learner.reasons(self._data.documents.one(row), *pair)

    def learn(self, row: int, digest: int, truth: int) -> None:
        """Learn a message; one that is known in this class changes nothing."""
        before = self._label.get(digest)
        if before == truth:
            return
        row = self._row.setdefault(digest, row)
        self._label[digest] = truth
        names = self._data.classes
        is_due = self._growth.note(None if before is None else names[before], names[truth])
        if self.learner is not None and self._growth.classes == self._classes:
            leaves = None if before is None else self._classes.index(names[before])
            gets = self._classes.index(names[truth])
            self.learner.learn(self._data.documents.one(row), leaves, gets)
        if len(self._growth.classes) < 2:  # of one class nothing is known
            self.learner, self._classes = None, ()
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
        learner = self.learner if self._classes == old else None
        if learner is None:
            table = counted(self._classes, data.vocabulary, documents, y, settings.weighting)
        else:
            table = learner.table
        labels = np.array(self._classes, np.str_)[y]
        sampling = Sampling(settings.weighting)
        sampling.add([Messages(labels, digests, documents._replace(tokens=data.vocabulary.keys))])
        (sample,) = sampling.messages
        columns = data.vocabulary.columns(sample.documents.tokens)
        known = np.searchsorted(np.array(self._classes, np.str_), sample.labels)
        fit = fitted_evidence(table, sample.documents._replace(tokens=columns), known, settings)
        assert not isinstance(fit, LogTables)  # see `_check`
        if learner is None:
            self.learner = Learner(table, fit, settings)
        else:
            learner.fit = fit

    def _places(self) -> list[int]:
        return [self._data.classes.index(name) for name in self._classes]
