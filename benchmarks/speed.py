"""Compare the time and memory of nbspam with another checkout of it, or with other programs.

CORPUS is a folder with ham/ and spam/, one message per file.  The jobs: train on it, classify all
of it, classify one message, and answer for all of it as a server.  CHECKOUT is a folder with
another version of nbspam (`git worktree add`); without it bogofilter and scikit-learn do the same
jobs, if installed.

In every round each program does each job once, in turn.  Printed are the shortest seconds of all
rounds, and the ratio to nbspam: the median of the ratios within each round, because a machine's
speed varies; first of the time that passes, then of processor time.  Memory is the peak of a
program's largest process, the least of all rounds.
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
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import serving_client as client
from common import HERE, corpus_parser, files_of, messages_of, ratio

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


def environment(checkout: Path) -> dict[str, str]:
    """Return the environment in which Python imports a checkout, caches code, and buffers."""
    found = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    return {**found, "PYTHONPATH": str(checkout), "PYTHONSAFEPATH": "1"}  # not the current folder


def command(*line: str, stdin: bytes = b"", checkout: Path = HERE) -> Callable[[], Cost]:
    """Return a function that runs a command line with its input."""

    def work() -> Cost:
        start = time.perf_counter()
        with tempfile.TemporaryFile() as source:
            source.write(stdin)
            source.seek(0)
            child = subprocess.Popen(
                line, stdin=source, stdout=subprocess.DEVNULL, env=environment(checkout)
            )
            _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in (0, 1, 2):
            sys.exit(f"{' '.join(line)}: exit {child.returncode}")
        seconds, processor = time.perf_counter() - start, usage.ru_utime + usage.ru_stime
        return Cost(seconds, processor, usage.ru_maxrss * 1024)

    return work


# --- programs -----------------------------------------------------------------------------


def nbspam(name: str, checkout: Path, corpus: Path, work: Path) -> dict[str, Contender]:
    """Return a checkout of nbspam at each job, but for the server."""
    line, model = [sys.executable, "-m", "nbspam"], str(work / f"{name}.nbspam")
    spam = files_of(corpus)["spam"]
    message = Path(spam[len(spam) // 2]).read_bytes()
    jobs = {
        "train": (["train", "-m", model, str(corpus)], b""),
        "classify": (["classify", "-m", model, str(corpus)], b""),
        "message": (["classify", "-m", model], message),
    }
    return {
        job: Contender(name, command(*line, *words, stdin=data, checkout=checkout))
        for job, (words, data) in jobs.items()
    }


def served(name: str, checkout: Path, corpus: Path, work: Path, stack: ExitStack) -> Contender:
    """Return a checkout's server, which is started when it is first asked about all messages."""
    path, model = str(work / f"{name}.sock"), work / f"{name}.nbspam"

    @cache
    def begun() -> tuple[Any, list[client.Call]]:
        import serving_servers as servers  # late: a program's peak is at least that of its starter

        place, env = work / f"{name}-server", environment(checkout)
        started = servers.nbspam(place, model, 2, "--spamd", path, env=env)
        return stack.enter_context(started), client.verdicts(
            messages_of(corpus), path, client.spamd
        )

    def ask() -> Cost:
        server, calls = begun()
        start, before = time.perf_counter(), server.processor_seconds()
        client.load(calls, 64)
        return Cost(time.perf_counter() - start, server.processor_seconds() - before, 0)

    return Contender(f"{name} serve", ask)


def peers(corpus: Path, work: Path) -> dict[str, list[Contender]]:
    """Return other programs by job, and what a start of Python with two imports takes."""
    python, model = [sys.executable, "-c"], str(work / "sk.joblib")
    found = {
        verb: [Contender("scikit-learn", command(*python, SKLEARN, verb, model, str(corpus)))]
        for verb in ("train", "classify")
    }
    start = "import click, numpy"
    found["message"] = [Contender(f"python -c '{start}'", command(*python, start))]
    if shutil.which("bogofilter"):
        bogo, paths = str(work / "bogo"), files_of(corpus)
        os.mkdir(bogo)
        for name, names in paths.items():
            (work / name).write_text("\n".join(names) + "\n")
        learn = f"rm -f {bogo}/* && bogofilter -d {bogo} -n -b < {work}/ham"
        learn += f" && bogofilter -d {bogo} -s -b < {work}/spam"
        lists = "\n".join([*paths["ham"], *paths["spam"]]).encode()
        judge = ["bogofilter", "-d", bogo, "-T"]
        message = Path(paths["spam"][len(paths["spam"]) // 2]).read_bytes()
        found["train"].append(Contender("bogofilter", command("sh", "-c", learn)))
        found["classify"].append(Contender("bogofilter", command(*judge, "-b", stdin=lists)))
        found["message"].append(Contender("bogofilter", command(*judge, stdin=message)))
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
        first = list(zip(*programs[0].costs, strict=True))
        for each in programs:
            seconds, processor, peaks = zip(*each.costs, strict=True)
            peak = f"{min(peaks) / 1e6:.0f}" if any(peaks) else "-"
            lines.append(
                f"{job:19}{each.name:32}{min(seconds):9.3f}{ratio(seconds, first[0]):8.2f}"
                f"{min(processor):8.3f}{ratio(processor, first[1]):8.2f}{peak:>9}"
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
