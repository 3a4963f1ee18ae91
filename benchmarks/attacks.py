"""Count the spams that get through when their sender attacks the filter.

usage: python benchmarks/attacks.py CORPUS [--mails 200] [--only TEXT] [--peers]

CORPUS is a folder with ham/ and spam/.  Every other message is learned.  Of the other spams,
some that the model calls spam are attacked in every form (see attack_hidden.py and
attack_forms.py) and judged again.  An attack passes if the message is no longer called spam,
because then it reaches the inbox or a folder of doubtful mail; the share that is called ham is
printed, too.  All figures are per cent of the attacked spams.

The attacker has ham texts that the model has not learned, and knows words: those that are
commonest in ham and (nearly) absent from spam ("passes"), or those that are the model's own best
evidence for ham ("in hand"; only forms that are stuffed with words differ).

With --peers the same messages go to bogofilter, trained on the same half (it passes what it
calls ham or unsure; at .5 it is forced to decide).
"""

import tempfile
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from statistics import mean

import numpy as np
from accuracy import ask_bogofilter, teach_bogofilter
from attack_forms import FORMS, STUFFED, Form
from attack_mail import Good, Mail, as_text, read_mail, thread_head
from common import CLASSES, corpus_parser, files_of

from nbspam.classifier.classifier import Classifier
from nbspam.classifier.training import train_classifier
from nbspam.counts.counting import count_items
from nbspam.mail.headers import Field
from nbspam.mail.message import Message
from nbspam.settings import PRESETS
from nbspam.sources.items import Item, read_items
from nbspam.verdicts import Evidence, Verdict

N_WORDS = 500  # that the attacker knows
AT_ONCE = 150
SEED = 0
TITLES = ("passes", "ham", "in hand", "ham", "bogofilter", "at .5")
Shares = list[float | None]  # per cent, in the order of TITLES; None: not measured


# --- what the attacker knows ------------------------------------------------------------------


def common_ham_words(classifier: Classifier) -> tuple[str, ...]:
    """Return the words of bodies that are commonest in ham and (nearly) absent from spam."""
    table = classifier.table
    ham, spam = np.asarray(table.feature_count, float).T
    n_ham, n_spam = table.class_count
    good = np.flatnonzero(50 * spam / n_spam <= ham / n_ham)
    best = good[np.argsort(-ham[good], kind="stable")]
    texts = (table.vocabulary.text(j) for j in best.tolist())
    return tuple(islice(plain_words(texts), N_WORDS))


def best_ham_words(classifier: Classifier) -> tuple[str, ...]:
    """Return the words of bodies that the model takes for the strongest evidence for ham.

    They are measured among as many as a form adds, because the model takes means.
    """
    vocabulary = classifier.table.vocabulary
    words = list(plain_words(map(vocabulary.text, range(len(vocabulary)))))
    evidence: list[Evidence] = []
    for i in range(0, len(words), AT_ONCE):
        text = " ".join(words[i : i + AT_ONCE]).encode()
        explanation = classifier.explain_message(Message((Field("body", text),)), "words")
        evidence += explanation.evidence
    best = sorted(evidence, key=lambda each: each.contribution)
    return tuple(islice(plain_words(each.token for each in best), N_WORDS))


def plain_words(texts: Iterable[str]) -> Iterator[str]:
    """Yield the tokens that are plain words of a body."""
    return (text for text in texts if text.isalpha() and text.isascii() and len(text) > 2)


def ham_texts(paths: list[str]) -> tuple[str, ...]:
    """Return the texts of some ham of fair length."""
    mails = (read_mail(Path(path).read_bytes()) for path in paths)
    texts = (as_text(m.text) if m.is_html else m.text for m in mails if m is not None)
    return tuple(text.strip() for text in texts if 600 < len(text) < 20_000)


# --- the programs -----------------------------------------------------------------------------


def labels_of(classifier: Classifier, messages: Iterable[bytes]) -> list[str]:
    """Return the labels of messages."""
    items = (Item(str(number), None, data) for number, data in enumerate(messages))
    return [v.label for v in classifier.classify(items) if isinstance(v, Verdict)]


def shares(labels: list[str]) -> tuple[float, float]:
    """Return the percentages that are not called spam, and that are called ham."""
    n = len(labels)
    return 100 * (1 - labels.count("spam") / n), 100 * labels.count("ham") / n


def by_bogofilter(messages: Iterable[bytes], folder: str) -> Shares:
    """Return the shares that bogofilter does not call spam, and lets pass if it must decide."""
    paths = []
    for number, data in enumerate(messages):
        paths.append(f"{folder}/{number}")
        Path(paths[-1]).write_bytes(data)
    label, score = ask_bogofilter(folder, paths)
    passed = label != CLASSES.index("spam"), score <= 0
    return [100 * float(np.mean(each)) for each in passed]


# --- the run ----------------------------------------------------------------------------------


def attackable(classifier: Classifier, paths: list[str], n: int) -> list[Mail]:
    """Return n spams that are called spam, both as they are and rebuilt."""
    order = np.random.default_rng(SEED).permutation(len(paths)).tolist()
    data = [Path(paths[i]).read_bytes() for i in order]
    labels = labels_of(classifier, data)
    called = (each for each, label in zip(data, labels, strict=True) if label == "spam")
    mails = [mail for i, each in enumerate(called) if (mail := read_mail(each, i)) is not None]
    rebuilt = labels_of(classifier, (mail.message(mail.part()) for mail in mails))
    as_pages = labels_of(classifier, (mail.page() for mail in mails))
    said = zip(mails, rebuilt, as_pages, strict=True)
    return [mail for mail, *both in said if set(both) == {"spam"}][:n]


def judged(classifier: Classifier, form: Form, mails: list[Mail], goods: list[Good]) -> Shares:
    """Return the shares of a form that get through with each attacker's words."""
    found: list[float] = []
    for good in goods:
        found += shares(labels_of(classifier, (form(mail._replace(good=good)) for mail in mails)))
    return [*found, *[None] * (4 - len(found))]


def show(name: str, figures: Shares) -> None:
    cells = "".join(f"{'-' if x is None else f'{x:.1f}':>11}" for x in figures)
    print(f"{name:30}{cells}", flush=True)


def main() -> None:
    parser = corpus_parser(__doc__)
    parser.add_argument("--mails", type=int, default=200, help="number of spams  [default: 200]")
    parser.add_argument("--only", default="", metavar="TEXT", help="a class, or part of a form")
    parser.add_argument("--peers", action="store_true", help="compare with bogofilter")
    options = parser.parse_args()
    start = time.perf_counter()
    paths = files_of(options.corpus)
    half = {label: paths[label][::2] for label in CLASSES}
    items = (item for label in CLASSES for item in read_items(half[label], label=label))
    classifier = train_classifier(count_items(items, PRESETS["mail"]), PRESETS["mail"])
    texts = ham_texts(paths["ham"][1::2])
    threads = (thread_head(Path(path).read_bytes()) for path in paths["ham"][1::2])
    heads = tuple(head for head in threads if head)
    words = common_ham_words(classifier), best_ham_words(classifier)
    goods = [Good(each, texts, heads) for each in words]
    mails = attackable(classifier, paths["spam"][1::2], options.mails)
    print(f"{options.corpus}: {len(mails)} spams that are called spam; {len(texts)} ham texts")
    print(f"common ham words: {' '.join(words[0][:8])} ... {' '.join(words[0][-3:])}")
    print(f"in hand: {' '.join(words[1][:8])} ... {' '.join(words[1][-3:])}\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        if options.peers:
            for is_spam, label in enumerate(CLASSES):
                teach_bogofilter(folder, half[label], is_spam)
        print(" " * 30 + "".join(f"{title:>11}" for title in TITLES))
        for kind, forms in FORMS.items():
            found: list[Shares] = []
            for name, form in forms.items():
                if options.only not in (kind, "") and options.only not in name:
                    continue
                known = goods if kind in STUFFED else goods[:1]
                row = judged(classifier, form, mails, known)
                messages = (form(mail._replace(good=goods[0])) for mail in mails)
                row += by_bogofilter(messages, folder) if options.peers else [None] * 2
                found.append(row)
                show(name, row)
            if found:
                columns = [[x for x in row if x is not None] for row in zip(*found, strict=True)]
                show(f"{kind}: mean of {len(found)}", [mean(c) if c else None for c in columns])
                print()
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
