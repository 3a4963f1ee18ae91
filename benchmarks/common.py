"""The common part of the benchmarks: arguments, a corpus of ham/ and spam/, a model of it."""

import argparse
import subprocess
import sys
from collections.abc import Iterable
from operator import truediv
from pathlib import Path
from statistics import median

HERE = Path(__file__).parents[1]
CLASSES = ("ham", "spam")
sys.path.append(str(HERE / "tests"))  # whose helpers start servers


def corpus_parser(description: str | None, nargs: str = "?") -> argparse.ArgumentParser:
    """Return a parser whose help is a script's docstring, and whose argument is the corpus."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, formatter_class=raw)
    told = "folder with ham/ and spam/, one message a file"
    told += "  [default: corpora/mail]" if nargs == "?" else ""
    default = HERE / "corpora" / "mail"
    parser.add_argument("corpus", type=Path, nargs=nargs, default=default, help=told)
    return parser


def files_of(corpus: Path) -> dict[str, list[str]]:
    """Return the sorted paths of a corpus by class."""
    return {name: sorted(map(str, (corpus / name).iterdir())) for name in CLASSES}


def messages_of(corpus: Path) -> list[bytes]:
    """Return all messages of a corpus, ham first."""
    return [Path(path).read_bytes() for paths in files_of(corpus).values() for path in paths]


def ratio(ours: Iterable[float], others: Iterable[float]) -> float:
    """Return the median of the ratios within each round."""
    return float(median(map(truediv, ours, others)))


def train(corpus: Path, model: Path) -> None:
    """Write a model of a corpus with the defaults."""
    command = [sys.executable, "-m", "nbspam", "train", "-m", str(model), str(corpus)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
