"""How fast an account is read: time, round trips and memory, beside the same mail in files.

    python benchmarks/imap.py [--messages 10000] [--round-trip 0.02] [--no-files] [--setup]

A private Dovecot of this machine holds made mail of 5 KB, half of it spam, written straight into
its Maildir.  A proxy counts the commands of the client and waits for a round trip before each.
"""

import os
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import bench_parser
from speed import commands

from fake_imap import PASSWORD  # type: ignore[import-not-found]
from mail_servers import Proxy, mail_server  # type: ignore[import-not-found]

_BYTES = 5000  # of a message
_WORDS = 20_000


def message(number: int, is_spam: bool) -> bytes:
    """Return made mail; each class has words of its own among common ones."""
    rng = random.Random(number)
    first = _WORDS // 2 if is_spam else 0
    words, size = [], 0
    while size < _BYTES - 200:
        half = rng.random() < 0.2
        word = f"w{(first if half else 0) + int(rng.paretovariate(0.7)) % (_WORDS // 2):x}"
        words.append(word)
        size += len(word) + 1
    lines = [" ".join(words[n : n + 12]) for n in range(0, len(words), 12)]
    head = f"Message-ID: <{number}@x.example>\nFrom: a{number % 500}@x.example\n"
    return f"{head}Subject: {' '.join(words[:5])}\n\n".encode() + "\n".join(lines).encode() + b"\n"


def fill(server: Any, files: Path, n_messages: int) -> None:
    """Write the messages into files and into the Maildir of ann."""
    box = server.place / "box" / "ann" / "Maildir"
    for number in range(n_messages):
        is_spam = bool(number % 2)
        data = message(number, is_spam)
        place = (box / ".Junk" if is_spam else box) / "cur"
        own = files / ("spam" if is_spam else "ham")
        for folder, name in ((place, f"{number}.x:2,S"), (own, f"{number}.eml")):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
    for path in (server.place / "box").rglob("*"):
        if server.rights:
            os.chown(path, server.rights["user"], server.rights["group"])
    with server.client("ann") as client:  # Dovecot makes its index once
        for name in ("INBOX", "Junk"):
            client.select(name)


def row(source: str, *words: str) -> str:
    """Run a command; return seconds, processor seconds and MB of it as a line."""
    cost = commands([sys.executable, "-m", "nbspam", *words, "-q", "--no-config"])()
    return f"{source:11} {cost.seconds:9.2f} {cost.processor:10.2f} {cost.peak / 2**20:5.0f}"


def main() -> None:
    parser = bench_parser(__doc__)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--round-trip", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--no-files", action="store_true")
    parser.add_argument("--setup", action="store_true", help="run `nbspam setup`, too")
    given = parser.parse_args()
    os.environ["SECRET"] = PASSWORD
    with mail_server() as server, tempfile.TemporaryDirectory() as place:
        files, model = Path(place) / "files", str(Path(place) / "m.nbspam")
        fill(server, files, given.messages)
        print("from          seconds  processor    MB  round trips")
        if not given.no_files:
            print(row("files", "train", "-m", model, str(files)))
        proxy = Proxy(server.port)
        proxy.delay = given.round_trip
        account = server.url("ann", port=proxy.port)
        secret = ("--password-command", "printf %s $SECRET")
        folders = ("--spam", f"{account}Junk", "--ham", f"{account}INBOX")
        found = row("account", "train", "-m", model, *folders, *secret)
        per_100 = 100 * proxy.n_trips / given.messages
        print(f"{found}  {proxy.n_trips} ({per_100:.2f} per 100 messages)")
        if given.setup:
            print(row("setup", "setup", "-m", model, account, *secret))
        proxy.close()


if __name__ == "__main__":
    main()
