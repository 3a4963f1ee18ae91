"""Open the pages of users of `nbspam serve --users --review`; print times and sizes.

usage: python benchmarks/people_page.py MAIL MODEL [--users 100 1000 10000] [--rounds 10]

MAIL is a folder with ham/ and spam/, MODEL a model of mail.  Each user has a Maildir of one
message, and the first of them one of 1,000.  Times are medians, in milliseconds, on the machine's
clock, of a client without a browser: of the site's list of users, of the first user's page, and of
a first lesson, which makes a model, of as many users as there are rounds.  At last come megabytes
of memory that the server's processes have for themselves, before anybody looks and afterwards.
"""

import argparse
import re
import socket
import tempfile
from itertools import cycle, islice
from pathlib import Path

from review_page import Visitor, maildir, timed, waiting
from serving_trial import Trial

from nbspam.sources.items import read_items

_MANY = 1000  # messages


def visit(trial: Trial, folder: Path, number: int, rounds: int) -> None:
    """Print what the pages of so many users cost."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    options = ("--users", str(folder / "users"), "--review", str(folder / "boxes"))
    with trial.server("--web", str(port), *options) as server:
        url = (server.folder / "errors").read_text().splitlines()[0]
        site, before = Visitor(url), server.megabytes()
        text = site.get("/")
        costs = [timed(rounds, lambda n: site.get("/")), len(text) / 1024]
        links = re.findall(r'href="/(\?token=[^"]+)"', text)
        assert len(links) == number, len(links)
        users = [Visitor(url.partition("?")[0] + link) for link in links[: rounds + 1]]
        while waiting(users[0].get("/")):
            pass
        costs.append(timed(rounds, lambda n: users[0].get("/")))
        for user in users[1:]:
            user.get("/")
        costs.append(timed(rounds, lambda n: users[n + 1].get("/")))
        costs.append(timed(rounds, lambda n: users[n + 1].tell(spam="0.M1.host")))
        costs += [before, server.megabytes()]
        print(f"{number:>6,}" + "".join(f"{cost:>9.1f}" for cost in costs))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("mail")
    parser.add_argument("model", type=Path)
    parser.add_argument("--users", nargs="+", type=int, default=[100, 1000, 10_000])
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()
    messages = [item.read() for item in read_items([arguments.mail])]
    trial = Trial(messages[:500], arguments.model, 0)
    print(f"{'users':>6}{'list':>9}{'KB':>9}{'1000':>9}{'1':>9}{'lesson':>9}{'MB':>9}{'MB':>9}")
    for number in arguments.users:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            maildir(folder / "boxes" / "u", list(islice(cycle(messages), _MANY)))
            for user in range(1, number):
                maildir(folder / "boxes" / f"u{user:05}", [messages[user % len(messages)]])
            visit(trial, folder, number, arguments.rounds)


if __name__ == "__main__":
    main()
