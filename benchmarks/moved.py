"""Count the errors on mail of other people and later years, and after few messages.

usage: python benchmarks/moved.py FOLDER... [--few 6 20 60] [--later] [--peers] [--draws 20]

Each FOLDER has ham/ and spam/, one message per file.  Of mail with heads a copy without them is
judged too ("-": subject, type and body are left).  A model of each collection judges all others;
collections that are the same mail are skipped.  Printed are (1-AUC), the share of pairs of a ham
and a spam that are ranked wrongly, the errors at the default cutoff and the calibration error.

--few: models of so many messages, half of each class, judge 400 others of the same collection.
--later: the first half of a dated collection is learned, and messages of the next month and
those of a year later are judged.  --peers: the same by bogofilter (cut at .5) and by a
support vector machine of words, in the same run.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import numpy as np
from accuracy import Messages, Peer, bogofilter, support_vectors
from common import CLASSES, corpus_parser

from nbspam.classifier.combine import probability
from nbspam.counts.corpus import Corpus, read_corpus
from nbspam.evaluation.judging import answers_of, trained_on
from nbspam.evaluation.metrics import auc, expected_calibration_error
from nbspam.settings import PRESETS
from nbspam.sources.arrival import date_of
from nbspam.sources.items import Item, read_items

SETTINGS = PRESETS["mail"]
CUTOFF = 2 / 3  # of the default costs
JUDGED = 400  # messages that a model of few messages judges
KEPT = (b"subject:", b"content-type:", b"content-transfer-encoding:", b"mime-version:")
DAY = 86400  # seconds


class Collection(NamedTuple):
    """Mail of one origin."""

    name: str
    mail: Messages
    corpus: Corpus


class Errors(NamedTuple):
    """The errors of one model on other mail."""

    ranking: float  # (1-AUC), per cent
    wrong: float  # per cent, at the default cutoff
    calibration: float  # expected calibration error; NaN where there are no probabilities


Judge = Callable[[Collection, np.ndarray, Collection, np.ndarray], Errors]


# --- the mail ---------------------------------------------------------------------------------


def without_head(data: bytes) -> bytes:
    """Return a message whose head has only its subject and what its body is."""
    head, blank, body = data.replace(b"\r\n", b"\n").partition(b"\n\n")
    kept, lines = False, []
    for line in head.split(b"\n"):
        if not line.startswith((b" ", b"\t")):
            kept = line.lower().startswith(KEPT)
        if kept:
            lines.append(line)
    return b"\n".join(lines) + blank + body


def collection(name: str, items: list[Item]) -> Collection:
    corpus, _ = read_corpus(items, SETTINGS, 2)
    return Collection(name, Messages(items, corpus.y), corpus)


def collections(folders: list[Path], scratch: Path) -> Iterator[Collection]:
    """Yield each folder's mail, and a copy without heads if it has heads."""
    for folder in folders:
        items = list(read_items([str(folder)]))
        yield collection(folder.name, items)
        if sum(date_of(item.read()) is not None for item in items) < len(items) / 2:
            continue
        for number, item in enumerate(items):
            copy = scratch / f"{folder.name}-" / str(item.label) / str(number)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(without_head(item.read()))
        yield collection(f"{folder.name}-", list(read_items([str(scratch / f"{folder.name}-")])))


# --- the programs -----------------------------------------------------------------------------


def by_nbspam(
    of: Collection, learned: np.ndarray, other: Collection, judged: np.ndarray
) -> Errors:
    joint = answers_of(trained_on(of.corpus, SETTINGS, learned), other.corpus, judged).joint
    score, y = joint[:, 1] - joint[:, 0], other.corpus.y[judged]
    p = probability(score)
    wrong = 100 * float(np.mean((p > CUTOFF) != y))
    return Errors(100 * (1 - auc(y, score)), wrong, expected_calibration_error(y, p))


def by_peer(peer: Peer) -> Judge:
    """Return the judge that asks another program."""

    def judge(
        of: Collection, learned: np.ndarray, other: Collection, judged: np.ndarray
    ) -> Errors:
        items = [of.mail.items[i] for i in learned] + [other.mail.items[i] for i in judged]
        y = np.concatenate([of.corpus.y[learned], other.corpus.y[judged]])
        n = len(learned)
        _, score = peer(Messages(items, y), np.arange(n), np.arange(n, len(items)))
        wrong = 100 * float(np.mean((score > 0) != y[n:]))
        return Errors(100 * (1 - auc(y[n:], score)), wrong, float("nan"))

    return judge


# --- the runs ---------------------------------------------------------------------------------


def all_of(mail: Collection) -> np.ndarray:
    return np.arange(len(mail.corpus.y))


def show(name: str, found: list[Errors]) -> None:
    ranking, wrong, calibration = map(mean, zip(*found, strict=True))
    print(f"{name:36}{ranking:>9.2f}{wrong:>9.2f}{calibration:>9.3f}", flush=True)


def moved(mails: list[Collection], judges: dict[str, Judge]) -> None:
    """Print the errors of each collection's model on all others, and their means."""
    pairs = [
        (of, other)
        for of, other in product(mails, mails)
        if of.name.rstrip("-") != other.name.rstrip("-")
    ]
    total: dict[str, list[Errors]] = {name: [] for name in judges}
    for of, other in pairs:
        for name, judge in judges.items():
            errors = judge(of, all_of(of), other, all_of(other))
            total[name].append(errors)
            show(f"{of.name} judges {other.name}, {name}", [errors])
    for name, errors_of_all in total.items():
        show(f"mean of {len(pairs)} pairs, {name}", errors_of_all)


def few(mails: list[Collection], judges: dict[str, Judge], sizes: list[int], draws: int) -> None:
    """Print the errors of models of few messages on others of the same collection."""
    for mail, size in product(mails, sizes):
        y, rng = mail.corpus.y, np.random.default_rng(0)
        found: dict[str, list[Errors]] = {name: [] for name in judges}
        for _ in range(draws):
            of_class = [rng.permutation(np.flatnonzero(y == label)) for label in (0, 1)]
            learned = np.concatenate([numbers[: size // 2] for numbers in of_class])
            rest = np.setdiff1d(all_of(mail), learned)
            judged = rng.choice(rest, min(JUDGED, len(rest)), replace=False)
            for name, judge in judges.items():
                found[name].append(judge(mail, learned, mail, judged))
        for name, errors in found.items():
            show(f"{size} of {mail.name}, {name}", errors)


def later(mails: list[Collection], judges: dict[str, Judge]) -> None:
    """Print the errors of the first half by date on the next month and on a year later."""
    for mail in mails:
        dates = [date_of(item.read()) for item in mail.mail.items]
        sent = np.array([np.nan if date is None else date for date in dates])
        if np.isfinite(sent).mean() < 0.5:
            continue
        last = np.nanmedian(sent)
        spans = {"next month": (0, 30 * DAY), "a year later": (365 * DAY, np.inf)}
        for span, (start, end) in spans.items():
            judged = np.flatnonzero((sent > last + start) & (sent <= last + end))
            if len(set(mail.corpus.y[judged].tolist())) < len(CLASSES):
                print(f"{mail.name}, {span}: not both classes among {len(judged)} messages")
                continue
            for name, judge in judges.items():
                errors = judge(mail, np.flatnonzero(sent <= last), mail, judged)
                show(f"{mail.name}, {span} ({len(judged)}), {name}", [errors])


def main() -> None:
    parser = corpus_parser(__doc__, "+")
    parser.add_argument("--few", nargs="+", type=int, metavar="N", help="models of N messages")
    parser.add_argument("--draws", type=int, default=20, help="of --few  [default: 20]")
    parser.add_argument("--later", action="store_true", help="a month and a year later")
    parser.add_argument("--peers", action="store_true", help="compare with other programs")
    options = parser.parse_args()
    judges: dict[str, Judge] = {"nbspam": by_nbspam}
    if options.peers:
        judges["SVM"] = by_peer(support_vectors)
        if shutil.which("bogofilter"):
            judges["bogofilter"] = by_peer(bogofilter)
    with tempfile.TemporaryDirectory() as scratch:
        mails = list(collections(options.corpus, Path(scratch)))
        print(f"{'':36}{'1-AUC %':>9}{'wrong %':>9}{'ECE':>9}")
        if options.few:
            whole = [mail for mail in mails if mail.name[-1] != "-"]
            few(whole, judges, options.few, options.draws)
        if options.later:
            later(mails, judges)
        if not options.few and not options.later:
            moved(mails, judges)


if __name__ == "__main__":
    main()
