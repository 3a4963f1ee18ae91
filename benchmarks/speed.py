"""Compare the time and memory of nbspam with another checkout of it, or with other programs.

usage: python benchmarks/speed.py [CORPUS] [--other CHECKOUT] [--rounds 15] [--only JOB...]

CORPUS is a folder with ham/ and spam/, one message per file.  The jobs: train on it, classify all
of it, classify one message, and answer for all of it as a server.  CHECKOUT is a folder with
another version of nbspam (`git worktree add`); without it bogofilter and scikit-learn do the same
jobs, if installed.

In every round each program does each job once, in turn.  Printed are the shortest seconds of all
rounds, and the ratio to nbspam: the median of the ratios within each round, because a machine's
speed varies; first of the time that passes, then of processor time.  Memory is the peak of a
program's largest process.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from operator import truediv
from pathlib import Path
from statistics import median
from typing import NamedTuple

import serving_client as client
import serving_servers as servers
from common import HERE, corpus_parser, files_of, messages_of

JOBS = ("train", "classify", "message", "server")
SKLEARN = """
import sys
from pathlib import Path
import joblib
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
verb, model, corpus = sys.argv[1:]
paths = [path for name in ("ham", "spam") for path in sorted((Path(corpus) / name).iterdir())]
texts = [path.read_text("latin-1") for path in paths]
if verb == "train":
    pipeline = make_pipeline(CountVectorizer(), MultinomialNB())
    joblib.dump(pipeline.fit(texts, [path.parent.name for path in paths]), model)
else:
    for path, label in zip(paths, joblib.load(model).predict(texts), strict=True):
        print(path, label)
"""


class Cost(NamedTuple):
    """The cost of one run of a job."""

    seconds: float
    processor: float  # seconds
    peak: int  # bytes; 0 where it is not known


class Contender:
    """A program that does a job; records what it took in each round."""

    def __init__(self, name: str, work: Callable[[], Cost]) -> None:
        self.name, self.work = name, work
        self.costs: list[Cost] = []

    def ratio(self, first: "Contender", of: Callable[[Cost], float]) -> float:
        """Return the median of the ratios to the first program within each round."""
        return float(median(map(truediv, map(of, self.costs), map(of, first.costs))))


def environment(checkout: Path) -> dict[str, str]:
    """Return the environment in which Python imports a checkout, and keeps what it compiles."""
    found = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    # Not the folder where it runs, which may be another checkout.
    return {**found, "PYTHONPATH": str(checkout), "PYTHONSAFEPATH": "1"}


def commands(
    *lines: list[str], stdin: tuple[bytes, ...] = (), checkout: Path = HERE
) -> Callable[[], Cost]:
    """Return a function that runs command lines in turn, with their input."""

    def work() -> Cost:
        start, processor, peak = time.perf_counter(), 0.0, 0
        for line, data in zip(lines, stdin or [b""] * len(lines), strict=True):
            with tempfile.TemporaryFile() as source:
                source.write(data)
                source.seek(0)
                child = subprocess.Popen(
                    line, stdin=source, stdout=subprocess.DEVNULL, env=environment(checkout)
                )
                _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            if child.returncode not in (0, 1, 2):
                sys.exit(f"{' '.join(line)}: exit {child.returncode}")
            processor += usage.ru_utime + usage.ru_stime
            peak = max(peak, usage.ru_maxrss * 1024)
        return Cost(time.perf_counter() - start, processor, peak)

    return work


# --- programs -----------------------------------------------------------------------------


def nbspam(name: str, checkout: Path, corpus: Path, work: Path) -> dict[str, Contender]:
    """Return a checkout of nbspam at each job, but for the server."""
    line = [sys.executable, "-m", "nbspam"]
    model = str(work / f"{name}.nbspam")
    spam = files_of(corpus)["spam"]
    message = Path(spam[len(spam) // 2]).read_bytes()
    jobs = {
        "train": (["train", "-m", model, str(corpus)], b""),
        "classify": (["classify", "-m", model, str(corpus)], b""),
        "message": (["classify", "-m", model], message),
    }
    return {
        job: Contender(name, commands([*line, *words], stdin=(data,), checkout=checkout))
        for job, (words, data) in jobs.items()
    }


def served(name: str, checkout: Path, corpus: Path, work: Path, stack: ExitStack) -> Contender:
    """Return a checkout's server, started, which is asked about all messages at once."""
    path, model = str(work / f"{name}.sock"), work / f"{name}.nbspam"
    server = stack.enter_context(
        servers.nbspam(
            work / f"{name}-server", model, 2, "--spamd", path, env=environment(checkout)
        )
    )
    calls = client.verdicts(messages_of(corpus), path, client.spamd)
    client.load(calls[:200], 64)  # what is read once, and filled once

    def ask() -> Cost:
        start, before = time.perf_counter(), server.processor_seconds()
        client.load(calls, 64)
        return Cost(time.perf_counter() - start, server.processor_seconds() - before, 0)

    return Contender(f"{name} serve", ask)


def peers(corpus: Path, work: Path) -> dict[str, list[Contender]]:
    """Return other programs by job, and what a start of Python with two imports takes."""
    lists = {name: ("\n".join(paths) + "\n").encode() for name, paths in files_of(corpus).items()}
    message = Path(files_of(corpus)["spam"][0]).read_bytes()
    python, model = [sys.executable, "-c"], str(work / "sk.joblib")
    found: dict[str, list[Contender]] = {"train": [], "classify": [], "message": []}
    for verb in ("train", "classify"):
        line = [*python, SKLEARN, verb, model, str(corpus)]
        found[verb].append(Contender("scikit-learn", commands(line)))
    start = commands([*python, "import click, numpy"])
    found["message"].append(Contender("python -c 'import click, numpy'", start))
    if shutil.which("bogofilter"):
        bogo = str(work / "bogo")
        os.mkdir(bogo)
        judge = ["bogofilter", "-d", bogo, "-T"]
        learn = [["bogofilter", "-d", bogo, flag, "-b"] for flag in ("-n", "-s")]
        empty = ["sh", "-c", f"rm -f {bogo}/*"]
        training = commands(empty, *learn, stdin=(b"", lists["ham"], lists["spam"]))
        found["train"].append(Contender("bogofilter", training))
        bulk = commands([*judge, "-b"], stdin=(lists["ham"] + lists["spam"],))
        found["classify"].append(Contender("bogofilter", bulk))
        found["message"].append(Contender("bogofilter", commands(judge, stdin=(message,))))
    return found


def contenders(
    options: argparse.Namespace, work: Path, stack: ExitStack
) -> dict[str, list[Contender]]:
    """Return the programs that do each job; nbspam comes first."""
    checkouts = {"nbspam": HERE, **({"other": options.other} if options.other else {})}
    programs = [nbspam(name, path, options.corpus, work) for name, path in checkouts.items()]
    others = {} if options.other else peers(options.corpus, work)
    found = {
        job: [each[job] for each in programs] + others.get(job, [])
        for job in ("train", "classify", "message")
        if job in options.only
    }
    for each in programs:
        each["train"].work()  # the model for jobs that need one
    if "server" in options.only:
        found["server"] = [
            served(name, path, options.corpus, work, stack) for name, path in checkouts.items()
        ]
    return found


def table(measured: dict[str, list[Contender]]) -> str:
    """Return a line for each program and job: seconds, ratios to nbspam, memory."""
    lines = [f"{'':19}{'':32}{'seconds':>9}{'ratio':>8}{'cpu':>8}{'ratio':>8}{'peak MB':>9}"]
    for job, programs in measured.items():
        for each in programs:
            least = Cost(*map(min, zip(*each.costs, strict=True)))
            seconds, processor = (
                each.ratio(programs[0], of) for of in (lambda c: c.seconds, lambda c: c.processor)
            )
            peak = max(cost.peak for cost in each.costs)
            lines.append(
                f"{job:19}{each.name:32}{least.seconds:9.3f}{seconds:8.2f}"
                f"{least.processor:8.3f}{processor:8.2f}{f'{peak / 1e6:.0f}' if peak else '-':>9}"
            )
    return "\n".join(lines)


def main() -> None:
    parser = corpus_parser(__doc__)
    parser.add_argument("--other", type=Path, metavar="CHECKOUT")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", nargs="+", choices=JOBS, default=JOBS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work, ExitStack() as stack:
        measured = contenders(options, Path(work), stack)
        for _ in range(options.rounds):
            for programs in measured.values():
                for each in programs:
                    each.costs.append(each.work())
    n = sum(map(len, files_of(options.corpus).values()))
    print(f"{options.corpus}: {n} messages, {os.cpu_count()} cores, {options.rounds} rounds\n")
    print(table(measured))


if __name__ == "__main__":
    main()
