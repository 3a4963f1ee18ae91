"""Find labels that are wrong: precision and recall of `nbspam doubts`, and what it is to be told.

usage: python benchmarks/doubts.py CORPORA [--only NAME...] [--percent 5] [--draws 5] [--no-peers]

CORPORA is a folder with spamassassin/, enron/enron1/ (which have ham/ and spam/), sms.tsv,
chinese-reviews.tsv and 20newsgroups/train/.  In each draw a share of at most 1,000 messages gets a
wrong label.  Printed are means over the draws: how many messages are listed, the share of them
that is wrong (precision), the share of the wrong ones that is listed (recall), and the average
precision of the ranking.

The peers are a linear support vector machine with calibrated probabilities and multinomial naive
Bayes, both on hashed words and judged in five folds.  They list by confident learning: a message
whose probability of a class is above the mean of the messages with that label is of that class
(Northcutt, Jiang & Chuang, 2021, section 3.1).  They rank by the probability of the own label.

`told` is another question: 20 messages get a label that they do not look like, beside 20 % of
wrong labels.  Printed is how many a model then answers with the label it was given, if it did not
learn them, learned them as filed, or was told.
"""

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from nbspam.classifier.training import train
from nbspam.counts.corpus import read_corpus
from nbspam.counts.counting import count_items
from nbspam.evaluation.doubts import Filing, leads, noise_of, wrong_probability
from nbspam.settings import Choices, Settings, settings_for
from nbspam.sources.items import Item, read_items
from nbspam.verdicts import Verdict

CORPORA = {
    "spamassassin": "spamassassin",
    "enron1": "enron/enron1",
    "sms": "sms.tsv",
    "chinese": "chinese-reviews.tsv",
    "newsgroups": "20newsgroups/train",
}
GROUPS = ("comp.graphics", "rec.autos", "sci.med", "sci.space", "talk.religion.misc")
MOST = 1_000  # messages of a corpus
BITS = 18  # of the hashed words
TOLD, ASTRAY = 20, 0.2


class Listed(NamedTuple):
    """The messages that a program doubts, and how it ranks all that it ranks."""

    rows: np.ndarray  # (n_listed,) numbers of messages
    doubt: np.ndarray  # (n_docs,) higher: more probably wrong


def messages(path: Path) -> tuple[Settings, list[Item]]:
    """Return at most MOST messages of a corpus, drawn once, with their data."""
    settings, items = settings_for(read_items([str(path)]), Choices())
    kept = [item for item in items if path.name != "train" or item.label in GROUPS]
    chosen = np.random.default_rng(99).permutation(len(kept))[:MOST]
    return settings, [kept[row]._replace(data=kept[row].read()) for row in np.sort(chosen)]


def flipped(items: list[Item], share: float, seed: int) -> tuple[list[Item], np.ndarray]:
    """Return the messages, a share of them with wrong labels, and which these are."""
    rng = np.random.default_rng(seed)
    classes = sorted({str(item.label) for item in items})
    is_wrong = np.zeros(len(items), np.bool_)
    is_wrong[rng.choice(len(items), int(share * len(items)), replace=False)] = True
    steps = rng.integers(1, len(classes), len(items))
    labels = [
        classes[(classes.index(str(item.label)) + step * wrong) % len(classes)]
        for item, step, wrong in zip(items, steps.tolist(), is_wrong.tolist(), strict=True)
    ]
    pairs = enumerate(zip(items, labels, strict=True))
    return [item._replace(name=str(n), label=label) for n, (item, label) in pairs], is_wrong


def by_nbspam(settings: Settings, items: list[Item], _: Any) -> Listed:
    data, _ = read_corpus(items, settings)
    joint, _ = Filing(data, settings, np.zeros(len(items), np.bool_)).judged()
    noise = noise_of(joint, data.y)
    lead = leads(noise.scale * joint, data.y)
    wrong = wrong_probability(lead, noise.share, len(data.classes) - 1)
    return Listed(np.flatnonzero((wrong > 0.5) & (joint.argmax(axis=1) != data.y)), lead)


def by_peer(model: Any) -> Any:
    """Return the function that lists by a model's probabilities."""

    def listed(_: Settings, items: list[Item], words: Any) -> Listed:
        labels = np.array([item.label for item in items])
        classes, y = np.unique(labels, return_inverse=True)
        p = cross_val_predict(model, words, y, cv=5, method="predict_proba")
        own = p[np.arange(len(y)), y]
        threshold = [own[y == k].mean() for k in range(len(classes))]
        confident = np.where(p >= threshold, p, -1.0)
        seen = confident.max(axis=1) >= 0
        rows = np.flatnonzero(seen & (confident.argmax(axis=1) != y))
        return Listed(rows, -own)

    return listed


PEERS = {
    "SVM": make_pipeline(TfidfTransformer(sublinear_tf=True), CalibratedClassifierCV(LinearSVC())),
    "naive Bayes": make_pipeline(TfidfTransformer(sublinear_tf=True), MultinomialNB(alpha=0.1)),
}


def measures(found: Listed, is_wrong: np.ndarray) -> tuple[float, ...]:
    """Return the number listed, precision, recall and average precision."""
    right = is_wrong[found.rows].sum()
    ranked = is_wrong[np.argsort(-found.doubt, kind="stable")]
    precision = np.cumsum(ranked) / np.arange(1, len(ranked) + 1)
    n_listed, n_wrong = len(found.rows), is_wrong.sum()
    average = precision[ranked].sum() / n_wrong if n_wrong else np.nan
    return n_listed, right / max(n_listed, 1), right / max(n_wrong, 1), average


def show_doubts(name: str, path: Path, share: float, draws: int, with_peers: bool) -> None:
    settings, items = messages(path)
    encoding = "latin-1" if settings.reading == "mail" else "utf-8"
    hashing = HashingVectorizer(n_features=1 << BITS, alternate_sign=False, norm=None)
    words = hashing.transform(item.read().decode(encoding, "replace") for item in items)
    print(f"{name}: {len(items):,} messages, {share:.0%} of labels wrong")
    programs = {"nbspam": by_nbspam}
    if with_peers:
        programs |= {title: by_peer(model) for title, model in PEERS.items()}
    for title, judge in programs.items():
        start, rows = time.process_time(), []
        for seed in range(draws):
            filed, is_wrong = flipped(items, share, seed)
            rows.append(measures(judge(settings, filed, words), is_wrong))
        seconds = (time.process_time() - start) / draws
        listed, *rates = np.mean(rows, axis=0)
        shown = "".join(f"{rate:>11.3f}" for rate in rates)
        print(f"  {title:14}{listed:>8.1f}{shown}{seconds:>9.1f}", flush=True)


def show_told(name: str, path: Path, draws: int) -> None:
    """Print how many messages are answered with labels that they do not look like."""
    settings, items = messages(path)
    found = []
    for seed in range(draws):
        order = np.random.default_rng(seed).permutation(len(items))
        shuffled = [items[row] for row in order[:600].tolist()]
        taste = flipped(shuffled[:TOLD], 1.0, seed)[0]
        rest = flipped(shuffled[TOLD:], ASTRAY, seed)[0]
        told = [item._replace(told=True) for item in taste]
        found.append([_as_given(settings, rest, more, taste) for more in ([], taste, told)])
    means = np.mean(found, axis=0)
    words = "not learned {:.1f}, filed {:.1f}, told {:.1f}".format(*means)
    print(f"{name}: of {TOLD} messages, {words} are answered as given")


def _as_given(settings: Settings, rest: list[Item], more: list[Item], asked: list[Item]) -> int:
    classifier = train(count_items([*rest, *more], settings), settings)
    verdicts = classifier.classify(asked)
    return sum(
        isinstance(v, Verdict) and v.label == item.label
        for v, item in zip(verdicts, asked, strict=True)
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", type=Path, help="folder with the corpora")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="names of corpora")
    parser.add_argument("--percent", type=float, default=5, help="wrong labels  [default: 5]")
    parser.add_argument("--draws", type=int, default=5, help="draws  [default: 5]")
    parser.add_argument("--no-peers", action="store_true", help="run nbspam alone")
    options = parser.parse_args()
    if unknown := set(options.only) - {*CORPORA, "told"}:
        parser.error(f"--only {min(unknown)}: choose from {', '.join([*CORPORA, 'told'])}")
    titles = f"{'listed':>8}{'precision':>11}{'recall':>11}{'average':>11}{'s':>9}"
    print(f"{'':16}{titles}")
    for name, path in CORPORA.items():
        if not options.only or name in options.only:
            share = options.percent / 100
            show_doubts(name, options.corpora / path, share, options.draws, not options.no_peers)
    if not options.only or "told" in options.only:
        for name in ("spamassassin", "enron1"):
            show_told(name, options.corpora / CORPORA[name], options.draws)


if __name__ == "__main__":
    main()
