"""Count the ham that is lost, and the spam that passes, when lessons are poisoned.

usage: python benchmarks/poison.py CORPUS [--targets 20] [--peers]

CORPUS is a folder with ham/ and spam/.  Every other message is learned, and what an attacker or a
careless person adds; the rest is judged.  "told": a person has told these lessons one at a time,
which a model believes more.  --peers: the same files by bogofilter, cut at .5.

dictionary: spam with 50,000 words of the corpus's mail, in another order each, taught as spam.
focused: a ham's text below heads of spam, taught as spam; how many of these hams are then lost?
flipped: that share of the lessons has the wrong label; `nbspam doubts` is asked to list them.
own: a user teaches so many messages the wrong way round; the user's other mail is judged by the
user's counts on top of the site's, whose verdicts for others stay as they are.
"""

import argparse
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from accuracy import CLASSES, Messages, bogofilter, every_other
from attack_mail import lines, read_mail, text_part

from nbspam.arrays import Booleans, Floats, Integers
from nbspam.classifier import personal
from nbspam.classifier.combine import probability
from nbspam.counts.corpus import Corpus, read_corpus
from nbspam.evaluation.doubts import find_doubts
from nbspam.evaluation.judging import answers_of, trained_on
from nbspam.settings import PRESETS
from nbspam.sources.items import Item, read_items

SETTINGS = PRESETS["mail"]
CUTOFF = 2 / 3  # of the default costs
N_WORDS = 50_000
SHARES, COPIES, TAUGHT = (0.01, 0.05, 0.1), (1, 10, 100), (10, 50, 200)
# Returns whether each of some messages is called spam after a program has learned honest lessons
# and added ones: data, messages, honest, added, classes, judged.
Program = Callable[[Corpus, Messages, Integers, Integers, Integers, Integers], Booleans]


def common_words(items: Iterable[Item]) -> list[str]:
    """Return the words that most messages have."""
    found: Counter[str] = Counter()
    for item in items:
        text = item.read().decode("latin-1").lower().split()
        found.update({word for word in text if word.isalpha() and 2 < len(word) < 16})
    return [word for word, _ in found.most_common(N_WORDS)]


def written(made: Iterable[bytes], folder: Path) -> list[Item]:
    """Return spams as files of a new folder."""
    folder.mkdir()
    for number, data in enumerate(made):
        (folder / f"{number:05}").write_bytes(data)
    return list(read_items(sorted(map(str, folder.iterdir())), label="spam"))


def by_nbspam(
    data: Corpus,
    _: Messages,
    honest: Integers,
    added: Integers,
    y: Integers,
    judged: Integers,
    *,
    is_told: bool = False,
) -> Booleans:
    told = data.digests[added] if is_told else None
    classifier = trained_on(replace(data, y=y), SETTINGS, np.concatenate([honest, added]), told)
    return called_spam(answers_of(classifier, data, judged).joint)


def called_spam(joint: Floats) -> Booleans:
    return np.asarray(probability(joint[:, 1] - joint[:, 0]) > CUTOFF)


def by_bogofilter(
    _: Corpus, mail: Messages, honest: Integers, added: Integers, y: Integers, judged: Integers
) -> Booleans:
    score = bogofilter(mail._replace(y=y), np.concatenate([honest, added]), judged)[1]
    return np.asarray(score > 0.5)


class Bench:
    """The corpus, and messages that an attacker adds, read once."""

    def __init__(self, folder: str, scratch: Path, n_targets: int) -> None:
        items = list(read_items([folder]))
        self.n_honest = len(items)
        y = np.array([CLASSES.index(str(item.label)) for item in items])
        self.learned, self.judged = every_other(y)
        rng = np.random.default_rng(0)
        mails = [read_mail(items[i].read()) for i in self.judged]
        spams = [m for m, is_spam in zip(mails, y[self.judged], strict=True) if is_spam and m]
        words = common_words(items)

        def spam(text: str) -> bytes:
            mail = spams[rng.integers(len(spams))]
            return mail.message(text_part(text))

        # Hams of the middle of the folder, with some text.
        of_ham = [
            (i, mail.text)
            for i, mail in zip(self.judged.tolist(), mails, strict=True)
            if mail and not y[i] and 300 < len(mail.text) < 20_000
        ]
        chosen = rng.permutation(len(of_ham))[:n_targets].tolist()
        self.targets = [of_ham[i][0] for i in chosen]
        dictionaries = (
            spam(lines(tuple(words[i] for i in rng.permutation(len(words)))))
            for _ in range(self.share(SHARES[-1]))
        )
        focused = (spam(f"{of_ham[i][1]}\n{n}\n") for i in chosen for n in range(COPIES[-1]))
        for number, made in enumerate((dictionaries, focused)):
            items += written(made, scratch / str(number))
        self.data, _ = read_corpus(items, SETTINGS, 2)
        self.y = np.concatenate([y, np.ones(len(items) - len(y), np.int64)])
        self.mail = Messages(items, self.y)
        self.rng = rng

    def share(self, share: float) -> int:
        """Return the number of messages that are this share of all lessons."""
        return round(len(self.learned) * share / (1 - share))

    def judge(self, program: Program, added: Integers) -> str:
        """Return the errors after honest lessons and added ones."""
        return self.errors(program, self.learned, added, self.y)

    def errors(self, program: Program, honest: Integers, added: Integers, y: Integers) -> str:
        spam = program(self.data, self.mail, honest, added, y, self.judged)
        return shares(spam, self.y[self.judged])

    def focused(self, program: Program, copies: int) -> str:
        """Return how many targets are lost, each after its own attack."""
        lost = 0
        for number, target in enumerate(self.targets):
            first = self.n_honest + self.share(SHARES[-1]) + number * COPIES[-1]
            added, judged = np.arange(first, first + copies), np.array([target])
            lost += program(self.data, self.mail, self.learned, added, self.y, judged)[0]
        return f"{lost} of {len(self.targets)} hams lost"

    def flipped(self, share: float) -> Integers:
        n = round(len(self.learned) * share)
        return np.random.default_rng(1).permutation(self.learned)[:n]

    def own(self, n: int) -> str:
        """Return the errors in the mail of a user who has taught n messages the wrong way."""
        site = trained_on(self.data, SETTINGS, self.learned)
        order = np.random.default_rng(2).permutation(self.judged)
        taught, judged = order[:n], order[n:]
        documents, y = self.data.over_keys(taught), 1 - self.y[taught]
        table = replace(self.data, y=1 - self.y).table(taught, SETTINGS.weighting)
        own = personal.own_of(site, table, documents, y)
        joint = personal.joint_of(site, self.data.over_keys(judged), [own] * len(judged))
        return shares(called_spam(joint), self.y[judged])


def shares(spam: Booleans, y: Integers) -> str:
    lost, passes = 100 * spam[y == 0].mean(), 100 * (~spam[y == 1]).mean()
    return f"{lost:5.1f} % of ham lost, {passes:5.1f} % of spam passes"


def doubted(bench: Bench, wrong: Integers) -> str:
    """Return how many wrong labels among the lessons `nbspam doubts` lists."""
    y = bench.y.copy()
    y[wrong] = 1 - y[wrong]
    items = [bench.mail.items[i]._replace(label=CLASSES[y[i]]) for i in bench.learned]
    listed = {each.name for each in find_doubts(items, SETTINGS, {}).found}
    right = sum(bench.mail.items[i].name in listed for i in wrong)
    return f"{right} of {len(wrong)} listed, {len(listed) - right} others"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", help="folder with ham/ and spam/")
    parser.add_argument("--targets", type=int, default=20, help="of focused  [default: 20]")
    parser.add_argument("--peers", action="store_true", help="compare with bogofilter")
    options = parser.parse_args()
    programs: dict[str, Program] = {"filed": by_nbspam, "told": partial(by_nbspam, is_told=True)}
    if options.peers and shutil.which("bogofilter"):
        programs["bogofilter"] = by_bogofilter
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(options.corpus, Path(scratch), options.targets)
        for name, program in programs.items():
            for share in (0.0, *SHARES):
                added = np.arange(bench.n_honest, bench.n_honest + bench.share(share))
                print(f"dictionary {share:.0%}, {name}: {bench.judge(program, added)}", flush=True)
            for copies in COPIES:
                print(f"focused {copies}, {name}: {bench.focused(program, copies)}", flush=True)
            for share in SHARES:
                wrong, y = bench.flipped(share), bench.y.copy()
                y[wrong] = 1 - y[wrong]
                errors = bench.errors(program, np.setdiff1d(bench.learned, wrong), wrong, y)
                print(f"flipped {share:.0%}, {name}: {errors}", flush=True)
        for share in SHARES:
            print(f"flipped {share:.0%}, doubts: {doubted(bench, bench.flipped(share))}")
        for n in TAUGHT:
            print(f"own {n}: {bench.own(n)}")


if __name__ == "__main__":
    main()
