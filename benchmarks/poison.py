"""Count the ham that is lost, and the spam that passes, when lessons are poisoned.

usage: python benchmarks/poison.py CORPUS [--peers]

CORPUS has ham/ and spam/.  Every other message is learned, with added lessons; the rest is judged.
"told": a person has told these one at a time.  --peers: the same by bogofilter, cut at .5.
dictionary: spam of 50,000 words of the corpus, in another order each.  focused: a ham's text below
heads of spam; is it lost?  flipped: wrong labels.  own: a user teaches messages the wrong way
round, and the user's other mail is judged.
"""

import argparse
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
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
from nbspam.sources.items import read_items

SETTINGS = PRESETS["mail"]
CUTOFF = 2 / 3  # of the default costs
WORD, N_WORDS, N_TARGETS = re.compile(rb"[a-z]{3,15}"), 50_000, 20
LARGE = 5000  # tokens: of mail 99 in 100 messages have fewer
SHARES, COPIES, TAUGHT = (0.01, 0.05, 0.1), (1, 10, 100), (10, 50, 200)


class Bench:
    """The corpus and the messages of attackers, read once."""

    def __init__(self, folder: str, scratch: Path) -> None:
        items = list(read_items([folder]))
        y = np.array([CLASSES.index(str(item.label)) for item in items])
        self.learned, self.judged = every_other(y)
        mails = [read_mail(items[i].read()) for i in self.judged]
        texts = {i: m.text for i, m in zip(self.judged.tolist(), mails, strict=True) if m}
        heads = [m for i, m in zip(self.judged.tolist(), mails, strict=True) if m and y[i]]
        hams = [i for i, text in texts.items() if not y[i] and 300 < len(text) < 20_000]
        found = Counter(word for item in items for word in set(WORD.findall(item.read())))
        words = [word.decode() for word, _ in found.most_common(N_WORDS)]
        rng = np.random.default_rng(0)
        self.targets = rng.choice(hams, N_TARGETS, replace=False)
        self.dictionaries = np.arange(self.part(SHARES[-1])) + len(items)
        self.copies = np.arange(N_TARGETS * COPIES[-1]).reshape(N_TARGETS, -1)
        self.copies += self.dictionaries[-1] + 1
        said = [lines(tuple(rng.permutation(words).tolist())) for _ in self.dictionaries]
        said += [f"{texts[i]}\n{n}\n" for i in self.targets for n in range(COPIES[-1])]
        for number, text in enumerate(said):
            head = heads[rng.integers(len(heads))]
            (scratch / f"{number:05}").write_bytes(head.message(text_part(text)))
        items += read_items(sorted(map(str, scratch.iterdir())), label="spam")
        self.data: Corpus = read_corpus(items, SETTINGS, 2)[0]
        self.y = np.concatenate([y, np.ones(len(said), y.dtype)])
        self.mail = Messages(items, self.y)

    def part(self, share: float) -> int:
        """Return the number of added lessons that make up this share of all."""
        return round(len(self.learned) * share / (1 - share))

    def flipped(self, share: float) -> tuple[Integers, Integers]:
        """Return the lessons whose label is wrong, and all labels."""
        rng, n = np.random.default_rng(1), round(len(self.learned) * share)
        wrong, y = rng.choice(self.learned, n, replace=False), self.y.copy()
        y[wrong] = 1 - y[wrong]
        return wrong, y

    def doubted(self, wrong: Integers, y: Integers) -> str:
        """Return how many wrong labels `nbspam doubts` lists."""
        items = [self.mail.items[i]._replace(label=CLASSES[y[i]]) for i in self.learned]
        listed = {each.name for each in find_doubts(items, SETTINGS, {}).found}
        right = sum(self.mail.items[i].name in listed for i in wrong)
        return f"{right} of {len(wrong)} listed, {len(listed) - right} others"

    def own(self, n: int) -> str:
        """Return the errors in the mail of a user who has taught n messages the wrong way."""
        site = trained_on(self.data, SETTINGS, self.learned)
        order = np.random.default_rng(2).permutation(self.judged)
        wrong = replace(self.data, y=1 - self.y)
        table, mine = wrong.table(order[:n], SETTINGS.weighting), wrong.over_keys(order[:n])
        own = personal.own_of(site, table, mine, wrong.y[order[:n]])
        joint = personal.joint_of(site, self.data.over_keys(order[n:]), [own] * len(order[n:]))
        return errors(is_spam(joint), self.y[order[n:]])

    def held_back(self) -> Iterator[str]:
        """Yield the lessons that a rule would hold back: the poisoned ones, and of clean mail."""
        model, size = trained_on(self.data, SETTINGS, self.learned), np.diff(self.data.X.indptr)
        wrong, y = self.flipped(0.05)
        rows = {
            "clean": self.judged,
            "focused": self.copies[:, 0],
            "dictionary": self.dictionaries,
            "flipped": wrong,
        }
        for name, some in rows.items():
            joint = answers_of(model, self.data, some).joint
            stated = (1 - 2 * y[some]) * (joint[:, 0] - joint[:, 1])
            shares = [f"{(stated < -nats).mean():.1%} at {nats} nats" for nats in (2, 4, 7)]
            large = (size[some] > LARGE).mean()
            yield f"held back, {name}: {', '.join(shares)}; {large:.1%} over {LARGE} tokens"


# Returns which messages are called spam: bench, added lessons, labels, messages.
Program = Callable[[Bench, Integers, Integers, Integers], Booleans]


def by_nbspam(
    bench: Bench, added: Integers, y: Integers, judged: Integers, *, is_told: bool = False
) -> Booleans:
    told = bench.data.digests[added] if is_told else None
    rows = np.union1d(bench.learned, added)
    model = trained_on(replace(bench.data, y=y), SETTINGS, rows, told)
    return is_spam(answers_of(model, bench.data, judged).joint)


def by_bogofilter(bench: Bench, added: Integers, y: Integers, judged: Integers) -> Booleans:
    rows = np.union1d(bench.learned, added)
    return np.asarray(bogofilter(bench.mail._replace(y=y), rows, judged)[1] > 0.5)


def is_spam(joint: Floats) -> Booleans:
    return np.asarray(probability(joint[:, 1] - joint[:, 0]) > CUTOFF)


def errors(spam: Booleans, y: Integers) -> str:
    lost, passes = 100 * spam[y == 0].mean(), 100 * (~spam[y == 1]).mean()
    return f"{lost:5.1f} % of ham lost, {passes:5.1f} % of spam passes"


def attacked(bench: Bench, name: str, program: Program) -> None:
    y, judged = bench.y, bench.judged
    for share in (0.0, *SHARES):
        ways = (bench.dictionaries[: bench.part(share)], y), bench.flipped(share)
        for way, lessons in zip(("dictionary", "flipped"), ways, strict=True):
            spam = program(bench, *lessons, judged)
            print(f"{way} {share:.0%}, {name}: {errors(spam, y[judged])}", flush=True)
    for n in COPIES:
        pairs = zip(bench.targets, bench.copies, strict=True)
        lost = sum(int(program(bench, of[:n], y, np.array([i]))[0]) for i, of in pairs)
        print(f"focused {n}, {name}: {lost} of {N_TARGETS} hams lost", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("corpus", help="folder with ham/ and spam/")
    parser.add_argument("--peers", action="store_true", help="compare with bogofilter")
    options = parser.parse_args()
    programs: dict[str, Program] = {"filed": by_nbspam, "told": partial(by_nbspam, is_told=True)}
    programs |= {"bogofilter": by_bogofilter} if options.peers else {}
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(options.corpus, Path(scratch))
        print(*bench.held_back(), sep="\n")
        for name, program in programs.items():
            attacked(bench, name, program)
        for share, n in zip(SHARES, TAUGHT, strict=True):
            print(f"flipped {share:.0%}, doubts: {bench.doubted(*bench.flipped(share))}")
            print(f"own {n}: {bench.own(n)}")


if __name__ == "__main__":
    main()
