"""Compare accuracy where it is hard: wrong labels, few messages, Chinese, short texts.

usage: python benchmarks/hard.py CORPORA [--only CASE...] [--draws 10] [--no-peers]

CORPORA is a folder with spamassassin/ and enron/enron1/ (which have ham/ and spam/), sms.tsv and
chinese-reviews.tsv.
Each case draws messages to learn and others to judge several times; all programs get the same
draws.  Printed are means over the draws, with the standard error of the accuracy at .5.  The label
spam of mail needs a probability of 2/3 by default; "at .5" is the accuracy of the more probable
class, which is what the labels of support vector machines are.
The cases are:

  labels   600 messages of mail, half spam, of whose labels 0, 5 or 20 % are wrong
  few      6, 20, 60 or 200 messages, half spam, of SpamAssassin, Enron 1 and short messages
  sms      30 % of the short messages are learned, the rest is judged
  chinese  reviews, in five folds

Beside nbspam with its defaults run bogofilter, if installed, cut at 0.5 (mail only), and linear
support vector machines on TF-IDF weights of words, and of runs of 1 to 4 characters (not for mail,
where they take minutes).
"""

import argparse
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from accuracy import Messages, bogofilter
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from nbspam.classifier.training import train
from nbspam.counts.corpus import Corpus, read_corpus
from nbspam.counts.folds import stratified_folds
from nbspam.evaluation.evaluation import Evaluation, evaluate
from nbspam.settings import Choices, settings_for
from nbspam.sources.items import Item, read_items
from nbspam.verdicts import posterior

JUDGED = 1000  # messages of mail judged in each draw, half of them spam
DRAWN = 600  # messages learned with wrong labels
WRONG = (0, 5, 20)  # % of labels
FEW = (6, 20, 60, 200)
FOLDS = 5
BITS = 20  # of the hashed words and runs of characters that support vector machines see
CHARACTERS = (1, 4)


class Draw(NamedTuple):
    """Which messages are learned, with which labels, and which are judged."""

    learned: np.ndarray  # (n_learned,) numbers of messages, ascending
    y: np.ndarray  # (n_docs,) the labels as learned; of judged messages the true ones
    judged: np.ndarray  # (n_judged,) numbers of messages, ascending


class Answers(NamedTuple):
    """A program's answers to the judged messages."""

    label: np.ndarray  # (n_judged,) 0 or 1
    probability: np.ndarray | None = None  # (n_judged,) of class 1


class Source:
    """A labelled corpus of two classes, read once by each program that needs it."""

    def __init__(self, path: Path) -> None:
        settings, items = settings_for(read_items([str(path)]), Choices())
        self.settings = settings
        self.items: list[Item] = list(items)
        self.is_mail = settings.reading == "mail"
        self.data: Corpus = read_corpus(self.items, settings)[0]
        self.y = self.data.y

    @cached_property
    def words(self) -> Any:
        """The counts of hashed words, (n_docs, 2 ** BITS)."""
        return self._hashed(analyzer="word")

    @cached_property
    def characters(self) -> Any:
        """The counts of hashed runs of characters, (n_docs, 2 ** BITS)."""
        return self._hashed(analyzer="char", ngram_range=CHARACTERS)

    def _hashed(self, **how: Any) -> Any:
        hashing = HashingVectorizer(n_features=1 << BITS, alternate_sign=False, norm=None, **how)
        encoding = "latin-1" if self.is_mail else "utf-8"
        return hashing.transform(item.read().decode(encoding, "replace") for item in self.items)


# --- the draws ----------------------------------------------------------------------------


def balanced(y: np.ndarray, size: int, percent: int, draws: int) -> Iterator[Draw]:
    """Yield draws in which both classes are equally frequent, and some learned labels wrong."""
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        of_class = [rng.permutation(np.flatnonzero(y == label)) for label in (0, 1)]
        half, end = size // 2, size // 2 + JUDGED // 2
        learned = np.sort(np.concatenate([rows[:half] for rows in of_class]))
        judged = np.sort(np.concatenate([rows[half:end] for rows in of_class]))
        labels = y.copy()
        wrong = rng.choice(learned, size * percent // 100, replace=False)
        labels[wrong] = 1 - labels[wrong]
        yield Draw(learned, labels, judged)


def shares(y: np.ndarray, share: float, draws: int) -> Iterator[Draw]:
    """Yield draws in which a share of all messages is learned, and the rest judged."""
    for seed in range(draws):
        order = np.random.default_rng(seed).permutation(len(y))
        n_learned = int(share * len(y))
        yield Draw(np.sort(order[:n_learned]), y, np.sort(order[n_learned:]))


def folds(y: np.ndarray) -> Iterator[Draw]:
    """Yield each fold as judged messages, and the others as learned ones."""
    fold = stratified_folds(y, FOLDS, np.random.RandomState(0))
    for number in range(FOLDS):
        yield Draw(np.flatnonzero(fold != number), y, np.flatnonzero(fold == number))


def cases(draws: int) -> Iterator[tuple[str, str, str, Callable[[np.ndarray], Iterator[Draw]]]]:
    """Yield for each row its case, its corpus, its title, and what draws messages by labels."""
    mail = "spamassassin"
    for percent in WRONG:
        title = f"{DRAWN} messages, {percent} % of labels wrong"
        yield "labels", mail, title, partial(balanced, size=DRAWN, percent=percent, draws=draws)
    for path in (mail, "enron/enron1", "sms.tsv"):
        for size in FEW:
            drawn = partial(balanced, size=size, percent=0, draws=draws)
            yield "few", path, f"{size} messages of {path}", drawn
    yield "sms", "sms.tsv", "short messages, 30 % learned", partial(shares, share=0.3, draws=draws)
    yield "chinese", "chinese-reviews.tsv", f"Chinese reviews, {FOLDS} folds", folds


# --- the programs -------------------------------------------------------------------------


def by_nbspam(source: Source, draw: Draw) -> Answers:
    data, settings = source.data, source.settings
    labelled = replace(data, y=draw.y)
    classifier = train(labelled.training(draw.learned, settings.weighting), settings)
    joint = classifier.joint_of(classifier.table.known(data.over_keys(draw.judged)))
    probability = posterior(joint)
    label = [data.classes.index(name) for name in classifier.rule.labels(probability)]
    return Answers(np.array(label), probability[:, 1])


def by_bogofilter(source: Source, draw: Draw) -> Answers:
    _, score = bogofilter(Messages(source.items, draw.y), draw.learned, draw.judged)
    return Answers((score >= 0.5).astype(int), score)


def by_words(source: Source, draw: Draw) -> Answers:
    return by_support_vectors(source.words, draw)


def by_characters(source: Source, draw: Draw) -> Answers:
    return by_support_vectors(source.characters, draw)


def by_support_vectors(counts: Any, draw: Draw) -> Answers:
    pipeline = make_pipeline(TfidfTransformer(sublinear_tf=True), LinearSVC())
    pipeline.fit(counts[draw.learned], draw.y[draw.learned])
    return Answers(pipeline.predict(counts[draw.judged]))


def programs(source: Source, with_peers: bool) -> Iterator[tuple[str, Any]]:
    """Yield the name of each program that runs, and its function."""
    yield "nbspam", by_nbspam
    if with_peers:
        if source.is_mail and shutil.which("bogofilter"):
            yield "bogofilter", by_bogofilter
        yield "SVM, words", by_words
        if not source.is_mail:
            yield "SVM, characters", by_characters


# --- the table ----------------------------------------------------------------------------


class Judged(NamedTuple):
    """The measures of a program's answers to one draw."""

    by_label: Evaluation
    at_half: float  # accuracy of the more probable class


def evaluated(source: Source, draw: Draw, answers: Answers) -> Judged:
    """Return the measures of a program's answers to one draw."""
    truth, p = source.y[draw.judged], answers.probability
    probable = answers.label if p is None else p >= 0.5
    by_label = evaluate(truth, answers.label, source.data.classes, probability=p)
    return Judged(by_label, float((probable == truth).mean()))


def row(program: str, judged: list[Judged], seconds: float) -> str:
    """Return a program's line: means over the draws."""
    found = [each.by_label for each in judged]
    accuracy = 100 * np.mean([each.accuracy or 0 for each in found])
    at_half = 100 * np.array([each.at_half for each in judged])
    error = at_half.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else 0.0
    matthews = np.mean([each.mcc for each in found])
    fp, fn = np.mean([[e.confusion[0, 1], e.confusion[1, 0]] for e in found], axis=0)
    known = [each.calibration_error for each in found if each.calibration_error is not None]
    calibration = f"{np.mean(known):.3f}" if known else "-"
    return (
        f"  {program:22}{accuracy:>9.2f}{at_half.mean():>8.2f}{error:>7.2f}{matthews:>9.3f}"
        f"{fp:>8.1f}{fn:>8.1f}{calibration:>8}{seconds / len(found):>9.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", type=Path, help="folder with the corpora")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="CASE", help="labels, few, sms or chinese"
    )
    parser.add_argument("--draws", type=int, default=10, help="draws a row  [default: 10]")
    parser.add_argument("--no-peers", action="store_true", help="run nbspam alone")
    options = parser.parse_args()
    known = {case for case, *_ in cases(options.draws)}
    if unknown := set(options.only) - known:
        parser.error(f"--only {min(unknown)}: choose from {', '.join(sorted(known))}")
    titles = f"{'accuracy %':>11}{'at .5':>8}{'±':>7}{'Matthews':>9}{'fp':>8}{'fn':>8}{'ECE':>8}"
    print(f"{'':22}{titles}{'s a draw':>9}")
    sources: dict[str, Source] = {}
    for case, path, title, draws_of in cases(options.draws):
        if options.only and case not in options.only:
            continue
        if path not in sources:
            sources[path] = Source(options.corpora / path)
        source = sources[path]
        print(title)
        draws = list(draws_of(source.y))
        for name, judge in programs(source, not options.no_peers):
            start = time.perf_counter()
            found = [evaluated(source, draw, judge(source, draw)) for draw in draws]
            print(row(name, found, time.perf_counter() - start), flush=True)


if __name__ == "__main__":
    main()
