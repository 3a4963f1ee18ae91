"""The first hour of a mailbox of 20,000 messages and ten years, taught on the page alone.

usage: python benchmarks/first_hour.py FOLDER...

Each FOLDER has ham/ and spam/.  Their messages, in the order of their dates or else of their
names, are spread evenly over ten years and put into a Maildir, which `nbspam serve --web
--review` shows, without a model at first.  A person teaches the first message of the list that is
not marked yet, again and again: newest first, or unsure first.  Printed are the seconds until the
page is there, until it judges, and for a click; and after some lessons, what the model makes of
all mail that it was not taught, per cent.
"""

import argparse
import http.client
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median
from urllib.parse import quote, urlencode, urlsplit

import nbspam
from nbspam.sources.arrival import date_of

YEARS, MOST, CHECKED = 10, 20_000, (10, 50, 200)
_TOO_LITTLE = "too little to judge"
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


class Page:
    """The page as a browser sees it."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self.origin, self.cookie = f"http://{parts.netloc}", ""
        self.http = http.client.HTTPConnection(parts.netloc, timeout=600)
        self.cookie = self.ask("GET", f"/?{parts.query}")[1].partition(";")[0]

    def ask(self, method: str, path: str, **form: str) -> tuple[str, str]:
        """Return the text of an answer, and its cookie."""
        headers = {"Origin": self.origin, "Cookie": self.cookie}
        if form:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        self.http.request(method, path, urlencode(form) if form else None, headers)
        answer = self.http.getresponse()
        return answer.read().decode(), answer.getheader("Set-Cookie", "")

    def tell(self, shown: str, label: str, key: str) -> None:
        """Teach a message of a list that is shown."""
        token = re.search(r'name="form" value="([^"]+)"', shown)
        assert token is not None
        self.ask("POST", "/tell", form=token[1], **{label: key})


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
    model, began = folder / f"{order}.nbspam", time.monotonic()
    command = [str(Path(sys.executable).with_name("nbspam")), "serve", "-m", str(model)]
    command += ["--web", "127.0.0.1:0", "--review", str(folder / "box")]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        page = Page(next(line for line in server.stderr if line.startswith("http")).strip())
        path, told, clicks, first = f"/?order={quote(order)}", set[str](), list[float](), True
        shown = page.ask("GET", path)[0]
        print(f"{order} first: the page is there after {time.monotonic() - began:.1f} s")
        while len(told) < CHECKED[-1]:
            key = next(k for k in _KEY.findall(shown) if k not in told)
            clicked = time.monotonic()
            page.tell(shown, mail[key][0], key)
            told.add(key)
            start = len(told) // 100 * 100 if order == "newest" else 0  # 100 on a page
            shown = page.ask("GET", f"{path}&start={start}")[0]
            clicks.append(time.monotonic() - clicked)
            if first and _TOO_LITTLE not in shown:
                first = False
                print(f"  it judges after {len(told)} lessons, {time.monotonic() - began:.1f} s")
            if len(told) in CHECKED:
                kinds = Counter(mail[each][0] for each in told)
                taught = f"{len(told)} lessons ({kinds['ham']} ham, {kinds['spam']} spam)"
                print(f"  {taught}: {judged(model, mail, told)}", flush=True)
        print(f"  a click takes {median(clicks):.2f} s, at most {max(clicks):.2f}")
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate()


def main() -> None:
    """Fill a mailbox, and teach by the page in both orders."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+")
    with tempfile.TemporaryDirectory() as scratch:
        mail = fill(parser.parse_args().folders, Path(scratch) / "box")
        kinds = Counter(label for label, _ in mail.values())
        print(f"{len(mail)} messages, {kinds['ham']} ham, {kinds['spam']} spam")
        for order in ("newest", "unsure"):
            teach(mail, Path(scratch), order)


if __name__ == "__main__":
    main()
