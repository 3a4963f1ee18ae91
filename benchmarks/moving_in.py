"""Compare nbspam with a bogofilter word list, nbspam trained anew, and bogofilter itself.

usage: python benchmarks/moving_in.py CORPUS

CORPUS is a folder with ham/ and spam/; bogofilter must be installed.  Every other message is
learned, and the rest classified: by bogofilter, by nbspam with bogofilter's word list loaded, and
by nbspam trained on the same mail.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from nbspam.classifier.classifier import Classifier
from nbspam.classifier.training import train
from nbspam.counts.counting import count_items
from nbspam.evaluation.metrics import auc
from nbspam.settings import PRESETS
from nbspam.sources.items import read_items
from nbspam.store.open import read_text_model
from nbspam.verdicts import Verdict

LABELS = ("ham", "spam")
OPTIONS = {"ham": "-n", "spam": "-s"}


def run(*command: str, paths: list[str]) -> str:
    done = subprocess.run(command, input="\n".join(paths), stdout=subprocess.PIPE, text=True)
    return done.stdout


def say(name: str, score: list[float], is_spam: list[bool], called: list[bool]) -> None:
    truth, verdict = np.array(is_spam), np.array(called)
    fp, fn = (verdict & ~truth).sum(), (truth & ~verdict).sum()
    area = 100 * (1 - auc(truth.astype(int), score))
    print(f"{name:22} (1-AUC) {area:.4f} %  fp/fn {fp}/{fn} of {len(truth)}")


def say_beside_trained(name: str, loaded: Classifier, paths: dict[str, list[str]]) -> None:
    """Judge one half of the mail by a model, and by one that nbspam trained on the other half."""
    is_spam = [label == "spam" for label in LABELS for _ in paths[label][1::2]]
    items = (i for label in LABELS for i in read_items(paths[label][::2], label=label))
    trained = train(count_items(items, PRESETS["mail"]), PRESETS["mail"])
    for each, classifier in ((name, loaded), ("nbspam, trained", trained)):
        held_out = read_items([path for label in LABELS for path in paths[label][1::2]])
        verdicts = [v for v in classifier.classify(held_out) if isinstance(v, Verdict)]
        scores = [v.score or 0.0 for v in verdicts]
        say(each, scores, is_spam, [v.label == "spam" for v in verdicts])


def main(corpus: Path) -> None:
    paths = {label: sorted(map(str, (corpus / label).iterdir())) for label in LABELS}
    is_spam = [label == "spam" for label in LABELS for _ in paths[label][1::2]]
    with tempfile.TemporaryDirectory() as scratch:
        for label in LABELS:
            run("bogofilter", "-C", "-d", scratch, OPTIONS[label], "-b", paths=paths[label][::2])
        lines = [
            line.rsplit(" ", 2)
            for label in LABELS
            for line in run(
                "bogofilter", "-C", "-d", scratch, "-T", "-b", paths=paths[label][1::2]
            ).splitlines()
        ]
        scores = [float(score) for _, _, score in lines]
        say("bogofilter, S", scores, is_spam, [verdict == "S" for _, verdict, _ in lines])
        say("bogofilter, .5", scores, is_spam, [score > 0.5 for score in scores])
        word_list = Path(scratch) / "list"
        word_list.write_bytes(
            subprocess.run(
                ["bogoutil", "-d", f"{scratch}/wordlist.db"], stdout=subprocess.PIPE, check=True
            ).stdout
        )
        loaded = read_text_model(str(word_list))
    say_beside_trained("its word list, loaded", loaded, paths)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
