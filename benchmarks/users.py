"""Measure models of users on top of one that they share: `nbspam serve --users`.

usage: python benchmarks/users.py accuracy PERSON... [--draws 5]
       python benchmarks/users.py differ MAIL [--draws 5]
       python benchmarks/users.py speed MAIL

accuracy: each PERSON is a folder with one person's ham/ and spam/.  The shared model has learned
the mail of all others; the person teaches 10, 30 or 100 messages, half of them ham, drawn anew in
each draw, and 1,000 others are judged.  Printed are means over persons and draws.

differ: MAIL is a folder with ham/ and spam/.  The shared model has learned half of it.  Of a kind
of mail (one List-Id, or one domain in From) of which there is much, the user says that it
is of the other class, by 5 or 10 messages, and teaches as many or twice as many others rightly.

speed: what users cost, in time and memory; MAIL is a folder with ham/ and spam/.
"""

import argparse
import collections
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Floats, Integers
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.personal import answers, evidence
from nbspam.classifier.personal.evidence import joint_of
from nbspam.classifier.personal.lessons import own_of
from nbspam.classifier.training import train
from nbspam.counts.corpus import Corpus, read_corpus
from nbspam.counts.table import CountTable, counts_of
from nbspam.decision import HAM_AND_SPAM, cutoffs
from nbspam.evaluation.metrics import auc
from nbspam.server.users import Users
from nbspam.settings import PRESENCE, Choices, Settings, chosen
from nbspam.sources.items import Item, read_items
from nbspam.store.model import StoredModel
from nbspam.store.open import save
from nbspam.tokens.documents import Documents

SETTINGS: Settings = chosen(Choices(), is_text=False)
SIZES = (10, 30, 100)
SHARED = (300.0, 100.0, 30.0)  # messages as which all of the shared model's count
SUMMED = (0.25, 0.5, 1.0)  # factors of the log-odds of the user's own model
N_TESTED = 1_000


class Task(NamedTuple):
    """A user: what is shared, what the user teaches, and what is judged then."""

    data: Corpus
    shared: Classifier
    lessons: Integers  # rows
    labels: Integers  # of the lessons, as the user says
    tested: Integers  # rows


def over_keys(data: Corpus, rows: Integers) -> Documents:
    """Return documents over only their own keys."""
    return data.over_keys(rows).without_unused()


def table_of(task: Task) -> CountTable:
    """Return the counts of what the user teaches."""
    documents = over_keys(task.data, task.lessons)
    columns = task.data.vocabulary.columns(documents.tokens)
    vocabulary = task.data.vocabulary.take(columns)
    counts = counts_of(documents, task.labels, 2, vocabulary.groups, PRESENCE)
    return CountTable(HAM_AND_SPAM, counts[0], vocabulary, counts[1], counts[2])


def by_both(task: Task) -> Iterator[tuple[str, Floats]]:
    """Yield names and log-odds of spam by counts of both, without and with corrections."""
    table, lessons = table_of(task), over_keys(task.data, task.lessons)
    tested = over_keys(task.data, task.tested)
    for shared in SHARED:
        evidence.SHARED = shared
        own = own_of(task.shared, table, lessons, task.labels)
        plain = own._replace(values=own.values * np.array([1, 1, 0], np.float32))
        for name, each in (("counts", plain), ("and corrections", own)):
            joint = joint_of(task.shared, tested, [each] * len(task.tested))
            yield f"{name}, all as {shared:,.0f}", joint[:, 1] - joint[:, 0]


def by_one(classifier: Classifier, task: Task) -> Floats:
    """Return the log-odds of spam by one model only."""
    joint = classifier.joint_of(classifier.table.known(task.data.over_keys(task.tested)))
    return np.asarray(joint[:, 1] - joint[:, 0])


def ways(task: Task) -> Iterator[tuple[str, Floats]]:
    """Yield the name and the answers of each way to judge."""
    yield "shared only", (of_shared := by_one(task.shared, task))
    if len(np.unique(task.labels)) == 2:
        y = task.data.y.copy()
        y[task.lessons] = task.labels
        alone = train(replace(task.data, y=y).training(task.lessons, PRESENCE), SETTINGS)
        yield "own only", (of_own := by_one(alone, task))
        for factor in SUMMED:
            yield f"log-odds, own times {factor:g}", of_shared + factor * of_own
    yield from by_both(task)


def is_called_spam(log_odds: Floats) -> Booleans:
    """Return the decision at the default costs."""
    return np.asarray(log_odds >= np.log(cutoffs().spam / (1 - cutoffs().spam)))


# ---- accuracy ----


def persons(folders: list[str]) -> tuple[Corpus, Integers]:
    """Return the mail of all persons, and whose each message is."""
    items, who = [], []
    for number, folder in enumerate(folders):
        own = list(read_items([folder]))
        items += own
        who += [number] * len(own)
    return read_corpus(items, SETTINGS, 2)[0], np.array(who)


def tasks_of(data: Corpus, who: Integers, draws: int) -> Iterator[tuple[int, Task]]:
    """Yield the number of lessons and the task, for each person, draw and number."""
    for person in np.unique(who).tolist():
        others = np.flatnonzero(who != person)
        shared = train(data.training(others, PRESENCE), SETTINGS)
        for draw in range(draws):
            rng = np.random.default_rng(1000 * person + draw)
            rows = rng.permutation(np.flatnonzero(who == person))
            ham, spam = (rows[data.y[rows] == label] for label in (0, 1))
            half = max(SIZES) // 2
            rest = rng.permutation(np.concatenate([ham[half:], spam[half:]]))
            taught = data.digests[np.concatenate([ham[:half], spam[:half]])]
            rest = rest[~np.isin(data.digests[rest], taught)][:N_TESTED]
            for n in SIZES:
                lessons = np.concatenate([ham[: n // 2], spam[: n // 2]])
                yield n, Task(data, shared, lessons, data.y[lessons], rest)


def accuracy(folders: list[str], draws: int) -> None:
    """Print the table of accuracy."""
    data, who = persons(folders)
    found = collections.defaultdict(list)
    for n, task in tasks_of(data, who, draws):
        y = data.y[task.tested]
        for name, z in ways(task):
            spam = is_called_spam(z)
            right, area = np.mean(spam == y), 1 - auc(y, z)
            found[n, name].append([right, area, spam[y == 0].mean(), (~spam[y == 1]).mean()])
    print(f"{'lessons, way':38} {'right':>8} {'(1-AUC)':>8} {'ham lost':>8} {'missed':>8}   %")
    for (n, name), rows in sorted(found.items(), key=lambda each: each[0][0]):
        means = 100 * np.mean(rows, axis=0)
        print(f"{n:4}  {name:32} {means[0]:8.2f} {means[1]:8.3f} {means[2]:8.2f} {means[3]:8.2f}")


# ---- differ ----


def kind_of(item: Item) -> str:
    """Return what a message's kind is told by: its List-Id, or the domain in From."""
    head = re.split(rb"\r?\n\r?\n", item.read()[:50_000])[0]
    for pattern in (rb"^List-Id:[^<]*<([^>]*)>", rb"^From:.*?@([\w.-]+)"):
        if found := re.search(pattern, head, re.MULTILINE | re.IGNORECASE):
            return found[1].decode("latin-1").lower()
    return ""


def differing(folder: str, draws: int) -> Iterator[tuple[str, int, Task]]:
    """Yield what the user teaches, how many tested messages are of the kind, and the task."""
    items = list(read_items([folder]))
    kinds = np.array([kind_of(item) for item in items])
    data, _ = read_corpus(items, SETTINGS, 2)
    numbers = collections.Counter(zip(kinds.tolist(), data.y.tolist(), strict=True))
    common = [each for each, n in numbers.items() if each[0] and 26 <= n <= 450]
    for draw in range(draws):
        rows = np.random.default_rng(draw).permutation(len(items))
        learned, pool = np.sort(rows[: len(rows) // 2]), rows[len(rows) // 2 :]
        shared = train(data.training(learned, PRESENCE), SETTINGS)
        for kind, label in common:
            is_kind = (kinds[pool] == kind) & (data.y[pool] == label)
            own, others = pool[is_kind], pool[~is_kind]
            for n, more in ((5, 5), (10, 20)):
                if len(own) < n + 3:
                    continue
                lessons = np.concatenate([own[:n], others[:more]])
                labels = np.concatenate([np.full(n, 1 - label), data.y[others[:more]]])
                later = own[n : n + 60]
                tested = np.concatenate([later, others[more : more + 600]])
                name = f"{n} {HAM_AND_SPAM[label]} called {HAM_AND_SPAM[1 - label]}, {more} others"
                yield name, len(later), Task(data, shared, lessons, labels, tested)


def differ(folder: str, draws: int) -> None:
    """Print how often a user who differs from the shared model is followed."""
    found = collections.defaultdict(list)
    for name, n_kind, task in differing(folder, draws):
        y, taught = task.data.y[task.tested], 1 - task.data.y[task.tested[0]]
        for way, z in ways(task):
            spam = is_called_spam(z)
            followed = np.mean(spam[:n_kind] == taught)
            found[name, way].append([followed, np.mean(spam[n_kind:] == y[n_kind:])])
    print(f"{'':30} {'way':32} {'followed':>9} {'others right':>13}   %")
    for (name, way), rows in sorted(found.items(), key=lambda each: each[0][0]):
        followed, right = 100 * np.mean(rows, axis=0)
        print(f"{name:30} {way:32} {followed:9.1f} {right:13.2f}")


# ---- speed ----


def seconds_of(work: Callable[[], object], times: int) -> float:
    """Return the processor time of the fastest of some calls."""
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def speed(folder: str) -> None:
    """Print what users cost."""
    items = list(read_items([folder]))
    rng = np.random.default_rng(0)
    drawn = [items[row] for row in rng.permutation(len(items)).tolist()]
    ham, spam = ([item for item in drawn if item.label == name] for name in HAM_AND_SPAM)
    asked = [Item("-", None, item.read()) for item in drawn[:64]]
    with tempfile.TemporaryDirectory() as place:
        path = f"{place}/site"
        data, _ = read_corpus(drawn[len(drawn) // 2 :], SETTINGS, 2)
        save(path, train(data.training(np.arange(len(data.y)), PRESENCE), SETTINGS))
        site = StoredModel(path)
        classifier, rule = site.classifier(), site.classifier().rule
        users = Users(f"{place}/users", 1 << 30, lambda error: print(error))
        for n in range(64):
            lessons = [*ham[50 * n % 1000 :][:50], *spam[50 * n % 1000 :][:50]]
            model = users.opened(f"user{n}", site.settings)
            model.learn([Item("-", each.label, each.read()) for each in lessons], day=1)
        alone = seconds_of(lambda: list(classifier.classify(asked, rule=rule)), 30)
        print(f"64 messages by the shared model {1000 * alone / 64:8.3f} ms a message")

        def of_strangers() -> object:
            assert not any(users.own(f"stranger{n}", site) for n in range(64))
            return list(classifier.classify(asked, rule=rule))

        strangers = seconds_of(of_strangers, 30)
        print(f"64, of who has taught nothing   {1000 * strangers / 64:8.3f} ms a message")
        own = [users.own(f"user{n}", site) for n in range(64)]
        users = Users(f"{place}/users", 1 << 30, lambda error: print(error))
        read = seconds_of(lambda: [users.own(f"user{n}", site) for n in range(64)], 1)
        print(f"what a user has taught, read    {1000 * read / 64:8.3f} ms a user")

        def judged() -> object:
            owners = [users.own(f"user{n}", site) for n in range(64)]
            return answers.classify(classifier, asked, owners, rule)

        both = seconds_of(judged, 30)
        print(f"64, of 64 users                 {1000 * both / 64:8.3f} ms a message")
        one = seconds_of(lambda: answers.classify(classifier, asked[:1], own[:1], rule), 30)
        plain = seconds_of(lambda: list(classifier.classify(asked[:1], rule=rule)), 30)
        print(f"one, by the shared model        {1000 * plain:8.3f} ms")
        print(f"one, of a user                  {1000 * one:8.3f} ms")
        print(f"memory                          {users.n_bytes / 64:8,.0f} bytes a user")
        sizes = [StoredModel(users.path(f"user{n}")).size() for n in range(64)]
        print(f"files                           {np.mean(sizes):8,.0f} bytes a user")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["accuracy", "differ", "speed"])
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--draws", type=int, default=5)
    options = parser.parse_args()
    if options.what == "accuracy":
        accuracy(options.folders, options.draws)
    elif options.what == "differ":
        differ(options.folders[0], options.draws)
    else:
        speed(options.folders[0])


if __name__ == "__main__":
    main()
