"""Count the wrong lessons of autolearning on a stream, and the mistakes with and without it.

usage: python benchmarks/autolearn.py CORPUS [--first N]

CORPUS has ham/ and spam/, judged in the order of their dates.  A person tells the first N, and
their senders become lists: allowed if all their mail was ham, denied if all was spam.  From then
on nobody tells anything.  "list and verdict" learns as `nbspam serve --autolearn` does, with every
listed sender taken for genuine, which is the worst case; "verdict alone" learns whatever is surer
than .999; "told" learns the truth.
"""

import argparse
from collections import Counter

import nbspam
from nbspam.mail.address_lists import AddressLists, autolearned, sender_of
from nbspam.sources.arrival import arranged
from nbspam.sources.items import read_items

BATCH = 50  # messages judged between two lessons
WAYS = ("nothing", "list and verdict", "verdict alone", "told")


def main() -> None:
    """Print a row for each way to learn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus")
    parser.add_argument("--first", type=int, default=500)
    options = parser.parse_args()
    mail = [(i.read(), str(i.label)) for i in arranged(read_items([options.corpus])).items]
    first, rest = mail[: options.first], mail[options.first :]
    senders: dict[str, set[str]] = {}
    for data, label in first:
        senders.setdefault(str(sender_of(data)), set()).add(label)
    verbs = {
        key: "deny" if labels == {"spam"} else "allow"
        for key, labels in senders.items()
        if len(labels) == 1
    }
    lists = AddressLists(verbs, "all")
    print(f"{len(first)} told, {len(verbs)} senders listed, {len(rest)} judged")
    print("learned               lessons  wrong  ham lost  spam passed")
    for way in WAYS:
        model, counts = nbspam.train(first), Counter[str]()
        for start in range(0, len(rest), BATCH):
            lessons = []
            for data, label in rest[start : start + BATCH]:
                verdict = model.classify(data)
                counts[f"{label} as {verdict.label}"] += 1
                spam = verdict.posterior["spam"]
                match = lists.match(data)
                listed = match and autolearned(match._replace(is_true=True), spam)
                sure = "spam" if spam > 0.999 else "ham" if spam < 0.001 else None
                learned = dict(zip(WAYS, (None, listed, sure, label), strict=True))[way]
                if learned is not None:
                    lessons.append((data, learned))
                    counts["wrong"] += learned != label
            counts["lessons"] += len(lessons)
            model.update(lessons)
        lost = counts["ham as spam"] / sum(n for k, n in counts.items() if k.startswith("ham"))
        passed = 1 - counts["spam as spam"] / sum(
            n for k, n in counts.items() if k.startswith("spam")
        )
        print(
            f"{way:20} {counts['lessons']:8} {counts['wrong']:6} {lost:8.2%} {passed:11.2%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
