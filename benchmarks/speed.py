"""Compare the time and memory of nbspam with other programs, in one run.

usage: python benchmarks/speed.py [CORPUS] [--rounds 15]

CORPUS is a folder with ham/ and spam/, one message per file.  In every round each program does
the same jobs with the same files.  Printed are the shortest seconds of all rounds, and the ratio
to nbspam: the median of the ratios within each round, because a machine's speed varies; first of
the time that passes, then of processor time.  Programs that are not installed are left out.
Memory is the peak of a program's largest process.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from operator import truediv
from pathlib import Path
from statistics import median

PYTHON = sys.executable
NBSPAM = [str(Path(PYTHON).with_name("nbspam"))]  # the script that users run
# Compiled modules are kept, as in any installation.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
SKLEARN = [PYTHON, str(Path(__file__).with_name("peer_sklearn.py"))]


class Run:
    """One or more commands with their input; records their time and peak memory."""

    def __init__(self, name: str, *commands: list[str], stdin: list[bytes | str] | None = None):
        self.name, self.commands = name, commands
        self.stdin = stdin or [b""] * len(commands)
        self.times: list[float] = []
        self.cpu: list[float] = []
        self.peak = 0

    def measure(self) -> None:
        """Run the commands in turn, once."""
        start = time.perf_counter()
        cpu = 0.0
        for command, data in zip(self.commands, self.stdin, strict=True):
            peak, seconds = run(command, data)
            self.peak = max(self.peak, peak)
            cpu += seconds
        self.cpu.append(cpu)
        self.times.append(time.perf_counter() - start)


def run(command: list[str], stdin: bytes | str) -> tuple[int, float]:
    """Run a command; return its peak memory in bytes, and its processor seconds."""
    with tempfile.TemporaryFile() as source:
        source.write(stdin.encode() if isinstance(stdin, str) else stdin)
        source.seek(0)
        child = subprocess.Popen(command, stdin=source, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1, 2):
        sys.exit(f"{' '.join(command)}: exit {child.returncode}")
    return usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime


def jobs(corpus: Path, work: Path) -> dict[str, list[Run]]:
    """Return the programs that do each job, by name of the job; nbspam comes first."""
    files = {name: sorted(map(str, (corpus / name).iterdir())) for name in ("ham", "spam")}
    lists = {name: "\n".join(paths) + "\n" for name, paths in files.items()}
    everything = lists["ham"] + lists["spam"]
    message = Path(files["spam"][len(files["spam"]) // 2]).read_bytes()
    model, sk_model, bogo = str(work / "m.nbspam"), str(work / "sk.joblib"), str(work / "bogo")
    os.mkdir(bogo)
    training = [
        Run("nbspam train", [*NBSPAM, "train", "-m", model, str(corpus)]),
        Run("scikit-learn", [*SKLEARN, "train", sk_model, str(corpus)]),
    ]
    bulk = [
        Run("nbspam classify", [*NBSPAM, "classify", "-m", model, str(corpus)]),
        Run("scikit-learn", [*SKLEARN, "classify", sk_model, str(corpus)]),
    ]
    single = [
        Run("nbspam classify", [*NBSPAM, "classify", "-m", model], stdin=[message]),
        Run("python -c 'import click, numpy'", [PYTHON, "-c", "import click, numpy"]),
    ]
    if shutil.which("bogofilter"):
        learn = [["bogofilter", "-d", bogo, flag, "-b"] for flag in ("-n", "-s")]
        fresh = [["sh", "-c", f"rm -f {bogo}/*"]]
        training.append(
            Run("bogofilter", *fresh, *learn, stdin=[b"", lists["ham"], lists["spam"]])
        )
        bulk.append(Run("bogofilter", ["bogofilter", "-d", bogo, "-T", "-b"], stdin=[everything]))
        single.append(Run("bogofilter", ["bogofilter", "-d", bogo, "-T"], stdin=[message]))
    return {"train": training, "classify all": bulk, "one message": single}


def measure(measured: dict[str, list[Run]], rounds: int) -> None:
    """Let all programs do all jobs in turn, so many times."""
    for _ in range(rounds):
        for runs in measured.values():
            for each in runs:
                each.measure()


def table(measured: dict[str, list[Run]]) -> str:
    """Return a line for each program and job: seconds, ratios to nbspam, memory."""
    lines = [f"{'':14}{'':34}{'seconds':>9}{'ratio':>8}{'cpu':>8}{'ratio':>8}{'peak MB':>9}"]
    for job, runs in measured.items():
        for each in runs:
            ratio = median(map(truediv, each.times, runs[0].times))
            cpu = median(map(truediv, each.cpu, runs[0].cpu))
            lines.append(
                f"{job:14}{each.name:34}{min(each.times):9.3f}{ratio:8.2f}"
                f"{min(each.cpu):8.3f}{cpu:8.2f}{each.peak / 1e6:9.0f}"
            )
    return "\n".join(lines)


def corpus_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser whose one argument is the corpus to measure on."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "corpus",
        type=Path,
        nargs="?",
        default=Path("corpora/mail"),
        help="folder with ham/ and spam/  [default: corpora/mail]",
    )
    return parser


def main() -> None:
    parser = corpus_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="number of rounds  [default: 15]")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        measured = jobs(options.corpus, Path(work))
        measure(measured, options.rounds)
    n = sum(len(list((options.corpus / name).iterdir())) for name in ("ham", "spam"))
    print(f"{options.corpus}: {n} messages, {os.cpu_count()} cores, {options.rounds} rounds\n")
    print(table(measured))


if __name__ == "__main__":
    main()
