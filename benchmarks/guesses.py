"""Guesses at why an answer is wrong: how often each is made, and whether its sign tells anything.

usage: python benchmarks/guesses.py [--test SOURCE] [--flip SHARE] CORPUS...

The CORPUS is cross-validated in ten folds, or with --test learned and SOURCE judged.  For each
sign two shares of the mistakes are printed: those that have it, and those that a report shows it
for (at most two a mistake).  Then, for right and wrong answers together, the share of errors among
those that have it and those that have not: of all answers, and of those with a probability of .9
or more.  A sign that is no more frequent in errors tells nothing.

--flip changes that share of the labels, as people misfile, and prints how often "Filed wrongly?"
was said of mistakes whose label was changed, beside what chance would say.
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from nbspam.evaluation import witness as witnesses
from nbspam.evaluation.doubts import leads, noise_of, wrong_probability
from nbspam.evaluation.judging.held_out import judge_folds
from nbspam.evaluation.judging.single import judge_split
from nbspam.evaluation.metrics import confusion_matrix
from nbspam.evaluation.pages.cases import N_GUESSES
from nbspam.evaluation.pages.guesses import answered, guesses
from nbspam.evaluation.pages.marks import marked
from nbspam.evaluation.pages.quality import often_confused
from nbspam.evaluation.trial import Trial
from nbspam.evaluation.witness import Witness
from nbspam.settings import Choices, settings_for
from nbspam.sources.items import Item, read_items
from nbspam.verdicts import Verdict

N_RIGHT = 3000  # right answers that are looked at, for the rest


def main() -> None:
    """Print the figures of the command line's corpus."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", nargs="+")
    parser.add_argument("--test")
    parser.add_argument("--flip", type=float, default=0.0)
    options = parser.parse_args()
    witnesses.N_KEPT = 1_000_000  # the reasons of all answers
    witness = Witness()
    changed: set[str] = set()
    settings, items = settings_for(read_items(options.corpus), Choices())
    if options.test:
        test = witness.watched(read_items([options.test]))
        trial = judge_split(items, test, settings, 2, witness=witness)
    else:
        seen = flipped(witness.watched(items), options.flip, changed)
        trial = judge_folds(seen, settings, 10, 0, 2, witness=witness)
    answers, _ = trial.answers()
    is_wrong = answers != trial.y
    rng = np.random.default_rng(0)
    right = np.flatnonzero(~is_wrong)
    rows = np.concatenate(
        [trial.wrong_rows(), rng.choice(right, min(N_RIGHT, len(right)), replace=False)]
    )
    said = list(signs(trial, witness, rows))
    wrong = is_wrong[rows]
    weight = np.where(wrong, 1.0, len(right) / (~wrong).sum())
    probability = trial.probability[rows, answers[rows]]
    print(
        f"{len(trial.y):,} answers, {wrong.sum()} wrong, {(wrong & (probability >= 0.9)).sum()}"
        " of them with .9 or more"
    )
    show(said, wrong, weight, probability)
    if changed:
        show_flips(said[: wrong.sum()], [trial.names[row] in changed for row in rows[wrong]])


def flipped(items: Iterable[Item], share: float, changed: set[str]) -> Iterator[Item]:
    """Yield the items; that share of them with another label, and their names in `changed`."""
    items = list(items)
    classes = sorted({str(item.label) for item in items})
    rng = np.random.default_rng(1)
    for item in items:
        if rng.random() < share:
            changed.add(item.name)
            others = [name for name in classes if name != item.label]
            item = item._replace(label=others[rng.integers(len(others))])
        yield item


def signs(trial: Trial, witness: Witness, rows: np.ndarray) -> Iterator[list[str]]:
    """Yield the signs of each answer, as if it were wrong: right ones against the next class."""
    answers, names = trial.answers()
    confusion = confusion_matrix(trial.y, answers, len(trial.classes), len(names))
    noise = noise_of(trial.joint, trial.y)
    lead = leads(noise.scale * trial.joint, trial.y)
    misfiled = wrong_probability(lead, noise.share, len(trial.classes) - 1)
    for row in rows.tolist():
        answer, y = int(answers[row]), int(trial.y[row])
        towards, against, _ = witness.reasons[row]
        other = y if answer != y else (towards if towards != answer else against)
        name = trial.names[row]
        shares = dict(zip(trial.classes, trial.probability[row].tolist(), strict=True))
        explanation = witness.explanation(trial, row, Verdict(name, names[answer], shares))
        item, settings = witness.item(name), witness.settings
        assert explanation is not None
        assert item is not None
        assert settings is not None
        found = answered(explanation, trial.classes[other])._replace(
            text=marked(item, settings, explanation.evidence),
            is_mail=settings.reading == "mail",
            misfiled=float(misfiled[row]),
            confused=often_confused(confusion, other, answer),
        )
        yield [guess.sign for guess in guesses(found)]


def show(
    said: list[list[str]], wrong: np.ndarray, weight: np.ndarray, probability: np.ndarray
) -> None:
    """Print a line for each sign."""
    n_wrong = wrong.sum()
    has = Counter(sign for each in said[:n_wrong] for sign in each)
    shown = Counter(sign for each in said[:n_wrong] for sign in each[:N_GUESSES])
    print("sign       of mistakes  shown  errors with  without    at .9: with  without")
    for sign, n in has.most_common():
        line = f"{sign:<10}{n / n_wrong:12.3f}{shown[sign] / n_wrong:7.3f}"
        own = np.array([sign in each for each in said])
        for among in (np.ones(len(own), np.bool_), probability >= 0.9):
            for these in (among & own, among & ~own):
                total = weight[these].sum()
                share = weight[these & wrong].sum() / total if total else np.nan
                line += f"{share:12.4f}"
        print(line)


def show_flips(said: list[list[str]], is_changed: list[bool]) -> None:
    """Print how often a label that was changed was called so."""
    true, called = np.array(is_changed), np.array(["misfiled" in each for each in said])
    print(
        f"changed labels: {true.mean():.3f} of the mistakes; called so {called.sum()} mistakes,"
        f" rightly {true[called].mean():.3f}, of those changed {called[true].mean():.3f}"
    )


if __name__ == "__main__":
    main()
