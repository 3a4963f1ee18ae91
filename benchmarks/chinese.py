"""Compare the time of nbspam with other programs on Chinese mail, as benchmarks/speed.py does.

usage: python benchmarks/chinese.py REVIEWS [--mails 6000] [--charset gbk] [--rounds 5]

REVIEWS is a table of Chinese texts with the columns label and text, separated by a tab; of two
labels the first is ham.  Mails are made of its first rows: declared, half of them in 8bit and
half in base64, with the names and the subject as encoded words.
"""

import argparse
import os
import tempfile
from itertools import islice
from pathlib import Path

from scripts import NAME, SUBJECT, Mail, as_bytes
from speed import jobs, measure, table


def write_mails(reviews: Path, folder: Path, n_mails: int, charset: str) -> int:
    """Write mails to ham/ and spam/ of a folder; return how many."""
    with reviews.open(encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t", 1) for line in islice(lines, 1, 1 + n_mails)]
    labels = list(dict.fromkeys(label for label, _ in rows))
    for name in ("ham", "spam"):
        (folder / name).mkdir(parents=True)
    for number, (label, text) in enumerate(rows):
        mail = Mail(number, text[: SUBJECT // 2], text[-NAME // 4 :], text)
        data = as_bytes(mail, charset, ("8bit", "base64")[number % 2])
        name = "ham" if label == labels[0] else "spam"
        (folder / name / f"{number}.eml").write_bytes(data)
    return len(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("reviews", type=Path)
    parser.add_argument("--mails", type=int, default=6000)
    parser.add_argument("--charset", default="gbk")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        corpus, work = Path(name, "mails"), Path(name, "work")
        n_mails = write_mails(options.reviews, corpus, options.mails, options.charset)
        work.mkdir()
        measured = jobs(corpus, work)
        measure(measured, options.rounds)
    print(
        f"{n_mails} mails in {options.charset}, {os.cpu_count()} cores, {options.rounds} rounds\n"
    )
    print(table(measured))


if __name__ == "__main__":
    main()
