"""Progressive judging: message by message, each classified first, then learned from.

So a filter lives: it starts knowing nothing, and whoever reads the mail tells it the truth
after each answer.  Answers are combined as everywhere (combining.py), from the past alone.

Secret: what is learned when.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nbspam.arrays import Booleans, Floats, Integers
from nbspam.classifier.combining import (
    Combination,
    Entries,
    correct,
    fit_worth,
    group_means,
    layer_of,
    layer_scale,
    log_odds,
    prior_worth,
    scores_of_means,
)
from nbspam.counts.corpus import Corpus, weigh
from nbspam.decision import is_worth_learning
from nbspam.errors import UsageError
from nbspam.settings import Settings
from nbspam.tokens.definition import GROUPS
from nbspam.verdicts import joint_of_log_odds, posterior

MIN_CLASS = 3  # messages of each class before the groups' worth is learned ...
GROWTH = 1.1  # ... and again whenever the past has grown by this factor
HISTORY = 4000  # messages it is learned from, the latest ones


@dataclass(frozen=True, slots=True)
class Progress:
    """What was answered on the way, and what was learned by its end."""

    score: Floats  # (n_docs,) log-odds of class 1, nats, before the truth was told
    learned: Booleans  # (n_docs,)
    class_count: Floats  # (2,)
    feature_count: Floats  # (n_features, 2)


def progress(data: Corpus, settings: Settings, policy: str = "everything") -> Progress:
    """Return the answers to messages in the order of their rows; raises UsageError.

    policy: learn every message; or those answered wrongly; or those and the near misses.
    Until a message of each class was learned nothing is known: the score is 0.
    """
    _check(data, settings)
    n_docs = len(data.y)
    learner = _Learner(data)
    score, learned = np.zeros(n_docs), np.zeros(n_docs, np.bool_)
    past = _Past(np.zeros((n_docs, len(GROUPS))), data.y)
    for row, (entries, weights) in enumerate(_messages(data, settings.weighting)):
        truth = int(data.y[row])
        knows = learner.class_count.all()
        if knows:
            score[row], past.means[row] = learner.answer(entries)
        # A learner that knows nothing must learn, or it would stay so.
        learned[row] = not knows or is_worth_learning(
            policy, posterior(joint_of_log_odds(score[row : row + 1]))[0], truth
        )
        if learned[row]:
            learner.learn(entries, weights, float(score[row]), truth)
        if not knows:
            past.start = row + 1
        elif learner.class_count.min() >= MIN_CLASS and past.is_due(row + 1):
            learner.worth = past.fit(row + 1)
    return Progress(score, learned, learner.class_count, learner.feature_count)


def _check(data: Corpus, settings: Settings) -> None:
    if len(data.classes) != 2:
        found = ", ".join(data.classes) or "no labelled mail"
        raise UsageError(
            f"--online: {len(data.classes)} classes ({found}), and it judges two;"
            " give mail of two, say with --spam PATH --ham PATH"
        )
    if not settings.combine:
        raise UsageError("--online: only for evidence that is combined; add --preset mail")
    if settings.min_df > 1 or settings.max_features is not None:
        raise UsageError(
            "--online: which tokens are rare is known in the end only;"
            " leave out --min-df and --max-features"
        )


def _messages(data: Corpus, weighting: str) -> Iterator[tuple[Entries, Floats]]:
    """Yield every row's entries and what they weigh."""
    weights = weigh(data.X, data.vocabulary.groups, weighting).data
    columns = data.X.indices.astype(np.int64)
    groups = data.vocabulary.groups[columns]
    bounds = data.X.indptr.tolist()
    documents = np.zeros(int(np.diff(data.X.indptr).max(initial=0)), np.int64)
    for start, end in pairwise(bounds):
        of = slice(start, end)
        entries = Entries(1, documents[: end - start], columns[of], groups[of], data.X.data[of])
        yield entries, weights[of]


class _Learner:
    """What is known so far: counts, what groups are worth, corrections."""

    def __init__(self, data: Corpus) -> None:
        n_features = len(data.vocabulary)
        self.classes = data.classes
        self.class_count = np.zeros(2)
        self.feature_count = np.zeros((n_features, 2))
        self.worth = prior_worth()
        self.correction = np.zeros(n_features, np.float32)
        self.constant = 0.0

    def answer(self, entries: Entries) -> tuple[float, Floats]:
        """Return a message's log-odds, and its group means, shape (n_groups,)."""
        odds = log_odds(self.feature_count[entries.columns], self.class_count)
        combination = Combination(self.worth, self.correction)
        means = group_means(entries, odds)
        score = scores_of_means(combination, entries, means)[0] + self.constant
        return float(score), means[0]

    def learn(self, entries: Entries, weights: Floats, score: float, truth: int) -> None:
        """Count a message whose score and truth are known, and correct what it showed."""
        self.class_count[truth] += 1
        self.feature_count[entries.columns, truth] += weights
        own = layer_of(entries)[1]
        scale = float(layer_scale(entries)[0])
        now = self.correction[own]
        self.constant += correct(self.correction, own, now, scale, score, truth, self.classes)


@dataclass(slots=True)
class _Past:
    """The group means of past answers, from which the groups' worth is learned."""

    means: Floats  # (n_docs, n_groups)
    y: Integers  # (n_docs,)
    start: int = 0  # the first message that was answered
    due: float = 0.0  # how long a past the next fit waits for

    def is_due(self, now: int) -> bool:
        """Return whether the past has grown enough to be worth another fit."""
        return now - self.start >= self.due

    def fit(self, now: int) -> Floats:
        """Return the worth that the messages before `now` tell of."""
        self.due = (now - self.start) * GROWTH
        latest = slice(max(self.start, now - HISTORY), now)
        return fit_worth(self.means[latest], self.y[latest])
