"""Doubts: which messages are probably filed wrongly.

Each message is judged by a model of other messages, in two rounds of folds: the second round does
not learn from the messages whose labels the first has contradicted.  Labels are noisy:
each is wrong with the same probability, and then any other label is as likely.  The share of
wrong labels, and a factor of the models' log-odds, are fitted by maximum likelihood; Bayes' rule
then says how probably each label is wrong (E-147).
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Floats, Integers
from nbspam.classifier.combine import probability
from nbspam.counts.corpus import Corpus, stratified_folds
from nbspam.errors import UsageError
from nbspam.evaluation.judging import answers_of, labelled_corpus, trained_on
from nbspam.evaluation.witness import Witness
from nbspam.mail.digest import Copies
from nbspam.printing import tracked
from nbspam.settings import Settings
from nbspam.sources.items import Item
from nbspam.verdicts import Evidence, Skipped

_FOLDS = 5
SCALES = 2.0 ** np.linspace(-4, 2, 25)  # factors of log-odds that are tried
# Labels that are added to the seen ones: people misfile three in a hundred or more.
N_WRONG, N_RIGHT = 1.5, 48.5
# Share of wrong labels, at most: if more seem wrong, as of empty texts, texts tell none (E-338).
MOST_WRONG = 0.25
SPREAD = 0.5  # octaves by which factors usually differ from 1
_STEPS = 60  # of EM, for each factor


class Doubt(NamedTuple):
    """A message that is probably filed wrongly."""

    name: str
    filed: str  # the label that it has
    label: str  # the likeliest other one
    probability: float  # that the label it has is wrong
    evidence: tuple[Evidence, ...]  # for the other label and against its own, strongest first


class Doubts(NamedTuple):
    """The messages that are probably misfiled, the most probable first."""

    found: tuple[Doubt, ...]
    classes: tuple[str, ...]
    skipped: tuple[Skipped, ...]


class Noise(NamedTuple):
    """How labels and answers to the same messages differ."""

    scale: float  # factor of the answers' log-odds
    share: float  # of wrong labels


def find_doubts(
    items: Iterable[Item], settings: Settings, told: Mapping[int, str], jobs: int = 1
) -> Doubts:
    """Return the messages whose label is more probably wrong than right; raises NbspamError.

    settings: of a model that combines or blends evidence.  told: labels given by a person, by
    digest; they are believed, and their messages are never doubted.
    """
    witness = Witness()
    if settings.tokens.characters:  # else nobody asks for the text again
        witness.settings, items = settings, witness.watched(items)
    data, skipped = labelled_corpus(items, settings, jobs)
    data, is_told = _with_told(data, told)
    joint, evidence = _judged_twice(data, settings, is_told, witness)
    noise = noise_of(joint[~is_told], data.y[~is_told])
    lead = leads(noise.scale * joint, data.y)
    wrong = wrong_probability(lead, noise.share, len(data.classes) - 1)
    wrong[is_told] = 0.0
    best = joint.argmax(axis=1)
    doubted = np.flatnonzero((wrong > 0.5) & (best != data.y))
    order = doubted[np.argsort(-lead[doubted], kind="stable")]
    classes = data.classes
    found = [
        Doubt(data.names[k], classes[data.y[k]], classes[best[k]], float(wrong[k]), evidence[k])
        for k in order.tolist()
    ]
    return Doubts(tuple(found), classes, skipped)


def _with_told(data: Corpus, told: Mapping[int, str]) -> tuple[Corpus, Booleans]:
    """Return the corpus with the labels that were told, and which messages these are, (n_docs,).

    Copies of texts get different digests, as in a model.  A label of another class tells nothing.
    """
    copies = Copies()
    digests = np.array([copies.numbered(d) for d in data.digests.tolist()], np.uint64)
    known = [digest for digest, label in told.items() if label in data.classes]
    is_told = np.isin(digests, np.array(known, np.uint64))
    y = data.y.copy()
    for row in np.flatnonzero(is_told).tolist():
        y[row] = data.classes.index(told[int(digests[row])])
    return replace(data, y=y, digests=digests), is_told


def _judged_twice(
    data: Corpus, settings: Settings, is_told: Booleans, witness: Witness
) -> tuple[Floats, dict[int, tuple[Evidence, ...]]]:
    """Return held-out joint log-probabilities, nats, (n_docs, n_classes), and evidence.

    The evidence is that of the messages whose labels are contradicted, by row.
    """
    last, fold = _filed(data)
    n_classes, n_folds = len(data.classes), int(fold.max()) + 1
    joint = np.empty((len(last), n_classes))
    evidence: dict[int, tuple[Evidence, ...]] = {}
    believed = np.ones(len(last), np.bool_)
    for number in tracked(range(2 * n_folds), "folds"):
        if number == n_folds:
            believed = (joint.argmax(axis=1) == data.y) | is_told
        is_asked = fold == number % n_folds
        of, rest = np.flatnonzero(is_asked), np.flatnonzero(~is_asked)
        kept = rest[believed[rest]]
        # No class may lose all of its messages; a copy that is kept may be of another class.
        if any(len(np.unique(y)) < n_classes for y in (last[kept], data.unique(kept)[1])):
            kept = rest
        answered = answers_of(trained_on(data, settings, kept, data.digests[is_told]), data, of)
        joint[of] = answered.joint
        if number < n_folds:
            continue
        best = answered.joint.argmax(axis=1)
        for place in np.flatnonzero(best != data.y[of]).tolist():
            row = int(of[place])
            shares, _ = answered.reasons(place, int(best[place]), int(data.y[row]))
            readable = witness.readable(data.names[row], shares)
            evidence[row] = tuple(each for each in readable if each.contribution > 0)
    return joint, evidence


def _filed(data: Corpus) -> tuple[Integers, Integers]:
    """Return the class of each message by its last copy, and its fold, (n_docs,) each.

    All copies of a message are in the same fold.  Raises UsageError.
    """
    _, last, copy = np.unique(data.digests[::-1], return_index=True, return_inverse=True)
    y = data.y[::-1][last]
    few = np.flatnonzero(np.bincount(y, minlength=len(data.classes)) < 2)
    if len(data.classes) < 2 or len(few):
        name = data.classes[few[0] if len(few) else 0]
        what = "fewer than two different messages of class" if len(few) else "only the class"
        raise UsageError(
            f"doubts: {what} {name}, so nothing tells whether others are filed wrongly; give"
            " two or more messages of two or more classes"
        )
    fold = stratified_folds(y, min(_FOLDS, len(y)), np.random.RandomState(0))
    return y[copy][::-1], fold[copy][::-1]


def leads(joint: Floats, y: Integers) -> Floats:
    """Return the log-odds of all other labels together against the given one, nats, (n_docs,).

    joint: log P(class, document), nats, (n_docs, n_classes).
    """
    rows = np.arange(len(y))
    others = joint.copy()
    others[rows, y] = -np.inf
    return np.asarray(np.logaddexp.reduce(others, axis=1) - joint[rows, y])


def noise_of(joint: Floats, y: Integers) -> Noise:
    """Return the noise under which the labels are the most likely; arguments: see `leads`.

    For each factor of SCALES, EM finds the share of wrong labels.  N_WRONG wrong and N_RIGHT right
    labels are added to the observed ones as a prior, and so are factors of about 1 (see SPREAD).
    """
    others = joint.shape[1] - 1
    best, found = -np.inf, Noise(1.0, N_WRONG / (N_WRONG + N_RIGHT))
    for scale in SCALES.tolist():
        lead, share = leads(scale * joint, y), 0.05
        for _ in range(_STEPS):
            wrong = wrong_probability(lead, share, others)
            share = min((float(wrong.sum()) + N_WRONG) / (len(y) + N_WRONG + N_RIGHT), MOST_WRONG)
        own = probability(-lead)
        likelihood = (1 - share) * own + share / others * (1 - own)
        total = np.log(likelihood).sum() + N_WRONG * np.log(share) + N_RIGHT * np.log1p(-share)
        total -= (np.log2(scale) / SPREAD) ** 2 / 2
        if total > best:
            best, found = total, Noise(scale, share)
    return found


def wrong_probability(lead: Floats, share: float, others: int) -> Floats:
    """Return how probably each label is wrong, 0 to 1, (n_docs,).

    lead: (n_docs,) true log-odds of the other labels.  share: of wrong labels.  others: the number
    of other labels.  The given label is seen with 1 - share if it is right, with share / others if
    another one is.
    """
    return np.asarray(probability(lead + np.log(share / others) - np.log1p(-share)))
