"""Compare the errors of nbspam and of other programs, on the same folds or the same stream.

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
from scipy.special import expit, logit
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from nbspam.counts.corpus import stratified_folds
from nbspam.evaluation.evaluation import evaluate
from nbspam.evaluation.judging import judge_split
from nbspam.evaluation.online import judge_online
from nbspam.settings import PRESETS
from nbspam.sources.arrival import arranged
from nbspam.sources.items import Item, read_items


class Messages(NamedTuple):
    """The mail, in the order in which it is classified."""

    items: list[Item]  # whose names are the paths of files
    y: np.ndarray  # (n_docs,) 1 is spam


# Labels (0 ham, 1 spam, 2 unsure) and scores (log-odds of spam, nats) of messages.
Answers = tuple[np.ndarray, np.ndarray]
# Learns some messages and answers others; both are given by number.
Peer = Callable[[Messages, np.ndarray, np.ndarray], Answers]


# --- nbspam -------------------------------------------------------------------------------


def nbspam(mail: Messages, learned: np.ndarray, judged: np.ndarray) -> Any:
    """Train nbspam with its defaults on some messages, and classify others."""
    known, others = ([mail.items[i] for i in numbers] for numbers in (learned, judged))
    trial = judge_split(known, others, PRESETS["mail"], jobs=2)
    return trial.answers()[0], trial.score


def nbspam_online(mail: Messages) -> Any:
    trial = judge_online(mail.items, PRESETS["mail"], "everything", "given", jobs=2)
    return trial.answers()[0], trial.score


# --- bogofilter: a folder with a word list ------------------------------------------------


def bogofilter(mail: Messages, learned: np.ndarray, judged: np.ndarray) -> Any:
    """Train a new bogofilter on some messages, and classify others."""
    with tempfile.TemporaryDirectory() as folder:
        for is_spam in range(len(CLASSES)):
            paths = [mail.items[i].name for i in learned if mail.y[i] == is_spam]
            teach_bogofilter(folder, paths, is_spam)
        return ask_bogofilter(folder, [mail.items[i].name for i in judged])


def teach_bogofilter(folder: str, paths: list[str], is_spam: int) -> None:
    call(folder, ("-n", "-s")[is_spam], "-b", stdin="\n".join(paths).encode())


def ask_bogofilter(folder: str, paths: list[str]) -> Answers:
    """Return labels and scores of files."""
    lines = call(folder, "-T", "-b", stdin="\n".join(paths).encode()).splitlines()
    return bogofilter_answers([line.rsplit(" ", 2)[1:] for line in lines])


def bogofilter_answers(verdicts: list[list[str]]) -> Answers:
    label = np.array(["HSU".index(letter) for letter, _ in verdicts])
    return label, logit([float(spam) for _, spam in verdicts])


def bogofilter_online(mail: Messages) -> Answers:
    """Classify each message with bogofilter before it learns it."""
    verdicts = []
    with tempfile.TemporaryDirectory() as folder:
        for item, is_spam in zip(mail.items, mail.y.tolist(), strict=True):
            data = item.read()
            known = Path(folder, "wordlist.db").exists()
            said = call(folder, "-T", stdin=data) if known else "U 0.5"
            verdicts.append(said.split())
            call(folder, ("-n", "-s")[is_spam], stdin=data)
    return bogofilter_answers(verdicts)


def call(folder: str, *options: str, stdin: bytes) -> str:
    """Run bogofilter; return its output."""
    command = ["bogofilter", "-C", "-d", folder, *options]
    done = subprocess.run(command, input=stdin, capture_output=True, check=False)
    if done.returncode > 2:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.decode()[:200]}")
    return done.stdout.decode("utf-8", "replace")


# --- scikit-learn: the text of the file, headers and all ----------------------------------


def scikit_learn(*steps: Any) -> Peer:
    """Return a peer that fits a pipeline."""
    pipeline = make_pipeline(*steps)

    def peer(mail: Messages, learned: np.ndarray, judged: np.ndarray) -> Any:
        texts = np.array([item.read().decode("latin-1") for item in mail.items], object)
        pipeline.fit(texts[learned], mail.y[learned])
        asked = texts[judged]
        if hasattr(pipeline, "predict_proba"):
            return pipeline.predict(asked), logit(pipeline.predict_proba(asked)[:, 1])
        return pipeline.predict(asked), pipeline.decision_function(asked)

    return peer


support_vectors = scikit_learn(TfidfVectorizer(sublinear_tf=True), LinearSVC())


def naive_bayes_online(mail: Messages) -> Answers:
    """Classify each message with naive Bayes over hashed words before it learns it."""
    words = HashingVectorizer(n_features=2**17, alternate_sign=False, norm=None)
    X = words.transform(item.read().decode("latin-1") for item in mail.items)
    model, spam = MultinomialNB(), np.full(len(mail.y), 0.5)
    for i in range(len(mail.y)):
        if i:
            spam[i] = model.predict_proba(X[i])[0, 1]
        model.partial_fit(X[i], mail.y[i : i + 1], classes=[0, 1])
    return (spam > 0.5).astype(int), logit(spam)


# --- all programs -------------------------------------------------------------------------

BATCH: dict[str, Peer] = {
    "nbspam": nbspam,
    "bogofilter": bogofilter,
    "scikit-learn NB": scikit_learn(CountVectorizer(), MultinomialNB()),
    "scikit-learn SVM": support_vectors,
}
ONLINE: dict[str, Callable[[Messages], Answers]] = {
    "nbspam": nbspam_online,
    "bogofilter": bogofilter_online,
    "scikit-learn NB": naive_bayes_online,
}


def every_other(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of every other message of each class, and of the rest."""
    of_class = [np.flatnonzero(y == label) for label in range(len(CLASSES))]
    return np.concatenate([n[::2] for n in of_class]), np.concatenate([n[1::2] for n in of_class])


def row(name: str, y: np.ndarray, label: np.ndarray, score: np.ndarray, seconds: float) -> str:
    """Return a program's line in the table."""
    probability = None if "SVM" in name else expit(score)
    evaluation = evaluate(
        y, label, CLASSES, other_answers=("unsure",), score=score, probability=probability
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
    mail, splits, how = Messages(items, y), [every_other(y)], "halves"
    if options.online:
        how = "online"
    elif not options.halves:
        fold = stratified_folds(y, options.folds, np.random.RandomState(0))
        splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in set(fold)]
        how = f"{options.folds} folds, seed 0"
    if not options.online:
        y = y[np.concatenate([judged for _, judged in splits])]
    print(f"{options.corpus}: {len(y)} messages ({y.sum()} spam) judged, {how}\n")
    print(
        f"{'':24}{'accuracy %':>10}{'fp':>6}{'fn':>6}{'unsure':>8}{'(1-ROCA) %':>12}"
        f"{'lam %':>8}{'ECE':>9}{'s':>8}"
    )
    for name in ONLINE if options.online else BATCH:
        if name == "bogofilter" and not shutil.which(name):
            continue
        start = time.perf_counter()
        if options.online:
            label, score = ONLINE[name](mail)
        else:
            answers = [BATCH[name](mail, *split) for split in splits]
            label, score = map(np.concatenate, zip(*answers, strict=True))
        seconds = time.perf_counter() - start
        print(row(name, y, label, score, seconds), flush=True)
        if name == "bogofilter":
            print(row("bogofilter, cut at 0.5", y, (score >= 0).astype(int), score, seconds))


if __name__ == "__main__":
    main()
