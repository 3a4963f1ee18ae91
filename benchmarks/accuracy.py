"""Compare the errors of nbspam and of other programs, on the same folds or the same stream.

usage: python benchmarks/accuracy.py CORPUS [--folds 10 | --online | --halves]

CORPUS is a folder with ham/ and spam/, one message per file.  Every program learns the same files
and classifies the same other files.  With --online each program classifies a message before it
learns it, in the order of `nbspam eval --online`; with --halves it learns every other message of
each class and classifies the rest.  Programs that are not installed are left out.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import CLASSES, corpus_parser

from nbspam.counts.corpus import read_corpus, stratified_folds
from nbspam.evaluation.evaluation import evaluate
from nbspam.evaluation.judging import fold_trial, judge_split, online_trial
from nbspam.settings import PRESETS
from nbspam.sources.arrival import arranged
from nbspam.sources.items import Item, read_items


class Messages(NamedTuple):
    """The mail, in the order in which it is classified."""

    items: list[Item]  # whose names are the paths of files
    y: np.ndarray  # (n_docs,) 1 is spam


class Answers(NamedTuple):
    """A program's answers to all messages."""

    label: np.ndarray  # (n_docs,) 0 ham, 1 spam, 2 unsure
    score: np.ndarray  # (n_docs,) the higher, the likelier spam
    probability: np.ndarray | None  # (n_docs,) of spam; None if a program has none


# Learns some messages and returns labels and scores of others; both are given by number.
Peer = Callable[[Messages, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
Split = tuple[np.ndarray, np.ndarray]  # numbers of the messages that are learned, and judged


# --- nbspam -------------------------------------------------------------------------------


def nbspam(mail: Messages, folds: int | None, halves: Split | None) -> Answers:
    """Return the answers of nbspam with its defaults."""
    settings = PRESETS["mail"]
    if halves is not None:
        learned, judged = ([mail.items[i] for i in half] for half in halves)
        trial = judge_split(learned, judged, settings, 2)
    else:
        data, _ = read_corpus(mail.items, settings, 2)
        if folds is None:
            trial = online_trial(data, settings, "everything")
        else:
            trial = fold_trial(data, settings, folds, 0)
    assert trial.score is not None
    return Answers(trial.answers()[0], trial.score, trial.probability[:, 1])


# --- bogofilter: a folder with a word list ------------------------------------------------


def bogofilter(mail: Messages, learned: np.ndarray, judged: np.ndarray) -> Any:
    """Train a new bogofilter on some messages, and classify others."""
    with tempfile.TemporaryDirectory() as folder:
        for is_spam in range(len(CLASSES)):
            paths = [mail.items[i].name for i in learned if mail.y[i] == is_spam]
            teach_bogofilter(folder, paths, is_spam)
        return ask_bogofilter(folder, [mail.items[i].name for i in judged])


def teach_bogofilter(folder: str, paths: list[str], is_spam: int) -> None:
    call(["bogofilter", "-C", "-d", folder, ("-n", "-s")[is_spam], "-b"], "\n".join(paths))


def ask_bogofilter(folder: str, paths: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and scores of files."""
    lines = call(["bogofilter", "-C", "-d", folder, "-T", "-b"], "\n".join(paths)).splitlines()
    return bogofilter_answers([line.rsplit(" ", 2)[1:] for line in lines])


def bogofilter_answers(verdicts: list[list[str]]) -> tuple[np.ndarray, np.ndarray]:
    label = np.array(["HSU".index(letter) for letter, _ in verdicts])
    return label, np.array([float(score) for _, score in verdicts])


def bogofilter_online(mail: Messages) -> tuple[np.ndarray, np.ndarray]:
    """Classify each message with bogofilter before it learns it."""
    verdicts = []
    with tempfile.TemporaryDirectory() as folder:
        for item, is_spam in zip(mail.items, mail.y.tolist(), strict=True):
            data = item.read()
            known = Path(folder, "wordlist.db").exists()
            said = call(["bogofilter", "-d", folder, "-T"], data) if known else "U 0.5"
            verdicts.append(said.split())
            call(["bogofilter", "-d", folder, "-s" if is_spam else "-n"], data)
    return bogofilter_answers(verdicts)


def call(command: list[str], stdin: str | bytes = b"") -> str:
    """Run a command; return its output."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    if done.returncode > 2:
        sys.exit(f"{' '.join(command[:4])}: exit {done.returncode}: {done.stderr.decode()[:200]}")
    return done.stdout.decode("utf-8", "replace")


# --- scikit-learn: the text of the file, headers and all ----------------------------------


def scikit_learn(make: Callable[[], Any]) -> Peer:
    """Return a peer that fits a new pipeline."""

    def peer(mail: Messages, learned: np.ndarray, judged: np.ndarray) -> Any:
        texts = np.array([item.read().decode("latin-1") for item in mail.items], object)
        pipeline = make().fit(texts[learned], mail.y[learned])
        asked = texts[judged]
        if hasattr(pipeline, "predict_proba"):
            return pipeline.predict(asked), pipeline.predict_proba(asked)[:, 1]
        return pipeline.predict(asked), pipeline.decision_function(asked)

    return peer


def naive_bayes() -> Any:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.pipeline import make_pipeline

    return make_pipeline(CountVectorizer(), MultinomialNB())


def support_vectors() -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    return make_pipeline(TfidfVectorizer(sublinear_tf=True), LinearSVC())


def naive_bayes_online(mail: Messages) -> tuple[np.ndarray, np.ndarray]:
    """Classify each message with naive Bayes over hashed words before it learns it."""
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.naive_bayes import MultinomialNB

    words = HashingVectorizer(n_features=2**17, alternate_sign=False, norm=None)
    X = words.transform(item.read().decode("latin-1") for item in mail.items)
    model, spam = MultinomialNB(), np.full(len(mail.y), 0.5)
    for i in range(len(mail.y)):
        if i:
            spam[i] = model.predict_proba(X[i])[0, 1]
        model.partial_fit(X[i], mail.y[i : i + 1], classes=[0, 1])
    return (spam > 0.5).astype(int), spam


# --- all programs -------------------------------------------------------------------------


def by_folds(peer: Peer, mail: Messages, folds: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a peer's answers to each fold after it has learned the others."""
    fold = stratified_folds(mail.y, folds, np.random.RandomState(0))
    label, score = np.zeros(len(mail.y), int), np.zeros(len(mail.y))
    for number in range(folds):
        judged = np.flatnonzero(fold == number)
        label[judged], score[judged] = peer(mail, np.flatnonzero(fold != number), judged)
    return label, score


def every_other(y: np.ndarray) -> Split:
    """Return the numbers of every other message of each class, and of the rest."""
    of_class = [np.flatnonzero(y == label) for label in range(len(CLASSES))]
    return np.concatenate([n[::2] for n in of_class]), np.concatenate([n[1::2] for n in of_class])


def answers_by(name: str, mail: Messages, folds: int | None, halves: Split | None) -> Answers:
    """Return a program's answers."""
    if name == "nbspam":
        return nbspam(mail, folds, halves)
    if halves is not None:
        label, score = BATCH[name](mail, *halves)
    elif folds is not None:
        label, score = by_folds(BATCH[name], mail, folds)
    else:
        label, score = ONLINE[name](mail)
    return Answers(label, score, None if "SVM" in name else np.clip(score, 0, 1))


BATCH: dict[str, Peer] = {
    "bogofilter": bogofilter,
    "scikit-learn NB": scikit_learn(naive_bayes),
    "scikit-learn SVM": scikit_learn(support_vectors),
}
ONLINE = {"bogofilter": bogofilter_online, "scikit-learn NB": naive_bayes_online}


def row(name: str, y: np.ndarray, answers: Answers, seconds: float) -> str:
    """Return a program's line in the table."""
    evaluation = evaluate(
        y,
        answers.label,
        CLASSES,
        other_answers=("unsure",),
        score=answers.score,
        probability=answers.probability,
    )
    confusion, ece = evaluation.confusion, evaluation.calibration_error
    assert evaluation.auc is not None
    assert evaluation.lam is not None
    return (
        f"{name:24}{100 * (evaluation.accuracy or 0):>10.2f}{confusion[0, 1]:>6}"
        f"{confusion[1, 0]:>6}{evaluation.undecided:>8}{100 * (1 - evaluation.auc):>12.4f}"
        f"{100 * evaluation.lam:>8.2f}{'-' if ece is None else f'{ece:.4f}':>9}{seconds:>8.0f}"
    )


def main() -> None:
    parser = corpus_parser(__doc__)
    parser.add_argument("--folds", type=int, default=10, metavar="N")
    parser.add_argument("--online", action="store_true")
    parser.add_argument("--halves", action="store_true")
    options = parser.parse_args()
    items = list(read_items([str(options.corpus)]))
    if options.online:
        items, _ = arranged(items)
    y = np.array([CLASSES.index(str(item.label)) for item in items])
    mail = Messages(items, y)
    folds = None if options.online or options.halves else options.folds
    halves = every_other(y) if options.halves else None
    y = y if halves is None else y[halves[1]]
    how = "halves" if halves else "online" if folds is None else f"{folds} folds, seed 0"
    print(f"{options.corpus}: {len(y)} messages ({y.sum()} spam) judged, {how}\n")
    print(
        f"{'':24}{'accuracy %':>10}{'fp':>6}{'fn':>6}{'unsure':>8}{'(1-ROCA) %':>12}"
        f"{'lam %':>8}{'ECE':>9}{'s':>8}"
    )
    for name in ["nbspam", *(ONLINE if options.online else BATCH)]:
        if name == "bogofilter" and not shutil.which(name):
            continue
        start = time.perf_counter()
        answers = answers_by(name, mail, folds, halves)
        seconds = time.perf_counter() - start
        print(row(name, y, answers, seconds), flush=True)
        if name == "bogofilter":
            sure = answers._replace(label=(answers.score >= 0.5).astype(int))
            print(row("bogofilter, cut at 0.5", y, sure, seconds), flush=True)


if __name__ == "__main__":
    main()
