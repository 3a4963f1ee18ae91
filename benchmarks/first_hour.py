"""The first hour of a mailbox of 20,000 messages and ten years, taught on the page alone.

usage: python benchmarks/first_hour.py FOLDER...

Each FOLDER has ham/ and spam/.  Their messages, in the order of their dates or else of their
names, are spread evenly over ten years and put into a Maildir, which `nbspam serve --web
--review` shows, without a model at first.  A person teaches the first message of the list that is
not marked yet, again and again: newest first, or unsure first.  Printed are the seconds until the
page is there, until it judges, and for a click; and after some lessons, what the model makes of
all mail that it was not taught, per cent.
"""

import os
import re
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median
from urllib.parse import quote

from common import bench_parser

import nbspam
import serving as tests_serving  # type: ignore[import-not-found]
from nbspam.sources.arrival import date_of
from serving import Browser, free_port, serving

YEARS, MOST, CHECKED = 10, 20_000, (10, 50, 200)
_TOO_LITTLE = "too little to judge"
_FORM = re.compile(r'name="form" value="([^"]+)"')
_KEY = re.compile(r'<button name="spam" value="([^"]+)"[^>]*>Spam</button> <button name="ham"')


def fill(folders: list[str], box: Path) -> dict[str, tuple[str, bytes]]:
    """Write a Maildir; return class and bytes of each message by its key on the page."""
    placed = []
    for folder in folders:
        for label in ("ham", "spam"):
            files = sorted(Path(folder, label).iterdir())
            files.sort(key=lambda path: date_of(path.read_bytes()) or 0.0)
            placed += [((n + 0.5) / len(files), label, path) for n, path in enumerate(files)]
    placed.sort(key=lambda each: each[0])
    step = max(len(placed) / MOST, 1.0)
    chosen = [placed[int(n * step)] for n in range(min(MOST, len(placed)))]
    for name in ("cur", "new", "tmp"):
        (box / name).mkdir(parents=True)
    found, start = {}, time.time() - YEARS * 365.25 * 86_400
    for number, (age, label, path) in enumerate(chosen):
        data, file = path.read_bytes(), box / "cur" / f"{number}.x:2,S"
        file.write_bytes(data)
        when = start + age * YEARS * 365.25 * 86_400
        os.utime(file, (when, when))
        found[f"{number}.x"] = label, data
    return found


def judged(model: Path, mail: dict[str, tuple[str, bytes]], told: set[str]) -> str:
    """Return shares of mail that was not taught: ham lost, spam passed, and unsure, per cent."""
    rest = [each for key, each in mail.items() if key not in told]
    verdicts = nbspam.load(model).classify_many(data for _, data in rest)
    counts = Counter(
        (label, verdict.label)
        for (label, _), verdict in zip(rest, verdicts, strict=True)
        if isinstance(verdict, nbspam.Verdict)
    )
    n_ham, n_spam = (sum(n for k, n in counts.items() if k[0] == c) for c in ("ham", "spam"))
    lost, passed = counts["ham", "spam"] / n_ham, counts["spam", "ham"] / n_spam
    unsure = (counts["ham", "unsure"] + counts["spam", "unsure"]) / len(rest)
    return f"ham lost {lost:.2%}, spam passed {passed:.2%}, unsure {unsure:.2%}"


def teach(mail: dict[str, tuple[str, bytes]], folder: Path, order: str) -> None:
    """Teach by the page in one order, and print what happens."""
    own, began, port = folder / order, time.monotonic(), free_port()
    own.mkdir()
    model = own / "m.nbspam"
    choices = ["--web", f"127.0.0.1:{port}", "--review", str(folder / "box")]
    with serving(str(model), own, *choices, spamd=False) as server:
        page = Browser(port)
        page.log_in(server)
        path, told, clicks, first = f"/?order={quote(order)}", set[str](), list[float](), True
        shown = page.ask("GET", path)[2]
        print(f"{order} first: the page is there after {time.monotonic() - began:.1f} s")
        while len(told) < CHECKED[-1]:
            key = next(k for k in _KEY.findall(shown) if k not in told)
            clicked = time.monotonic()
            page.ask("POST", "/tell", {"form": _FORM.findall(shown)[0], mail[key][0]: key})
            told.add(key)
            start = len(told) // 100 * 100 if order == "newest" else 0  # 100 on a page
            shown = page.ask("GET", f"{path}&start={start}")[2]
            clicks.append(time.monotonic() - clicked)
            if first and _TOO_LITTLE not in shown:
                first = False
                print(f"  it judges after {len(told)} lessons, {time.monotonic() - began:.1f} s")
            if len(told) in CHECKED:
                kinds = Counter(mail[each][0] for each in told)
                taught = f"{len(told)} lessons ({kinds['ham']} ham, {kinds['spam']} spam)"
                print(f"  {taught}: {judged(model, mail, told)}", flush=True)
        print(f"  a click takes {median(clicks):.2f} s, at most {max(clicks):.2f}")


def main() -> None:
    """Fill a mailbox, and teach by the page in both orders."""
    tests_serving.PATIENCE = 600  # seconds, until the page is there
    parser = bench_parser(__doc__)
    parser.add_argument("folders", nargs="+")
    with tempfile.TemporaryDirectory() as scratch:
        mail = fill(parser.parse_args().folders, Path(scratch) / "box")
        kinds = Counter(label for label, _ in mail.values())
        print(f"{len(mail)} messages, {kinds['ham']} ham, {kinds['spam']} spam")
        for order in ("newest", "unsure"):
            teach(mail, Path(scratch), order)


if __name__ == "__main__":
    main()
