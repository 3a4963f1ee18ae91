"""A model as text and back, in any of the formats.

Secret: how the formats are told apart, and how much of a line is read.
"""

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import chain
from typing import BinaryIO

from nbspam.classifier.classifier import Classifier
from nbspam.errors import InputError
from nbspam.store import bogofilter as bogoutil
from nbspam.store import interchange
from nbspam.store.model import Living

_MAX_LINE = 64 << 20  # bytes: a message of the sample is far less


def export_lines(path: str, form: str = "jsonl") -> Iterator[bytes]:
    """Return the lines of a model file and its journal; raises ModelFileError, UsageError.

    form: "jsonl", or "bogoutil" for counts alone.
    """
    classifier = Living(path).whole()
    dump_lines = bogoutil.dump_lines if form == "bogoutil" else interchange.dump_lines
    return dump_lines(classifier)


def load_file(path: str) -> Classifier:
    """Return the model in a file of text, or in standard input (-); raises NbspamError."""
    try:
        with nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb") as stream:
            lines = _lines(stream)
            first = next(lines, b"")
            is_json = first.lstrip()[:1] in (b"{", b"")
            load_lines = interchange.load_lines if is_json else bogoutil.load_lines
            return load_lines(chain([first] if first else [], lines), path)
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise InputError(f"{path}: {reason}; give a file that nbspam export wrote") from error


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    while line := stream.readline(_MAX_LINE):
        yield line
