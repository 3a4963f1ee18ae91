"""Lines that are safe to write: names and tokens come from strangers.

Secret: how a string becomes something one can print, whatever is in it.
"""

from collections.abc import Callable, Iterable
from typing import Any, BinaryIO, TextIO


def printable(text: str) -> str:
    r"""Return text with all that could act on a terminal spelt out, as in \x1b or \u202e.

    What `str.isprintable` says no to: control and format characters, bidirectional
    overrides, lone surrogates, line separators, unassigned code points.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def write_lines(lines: Iterable[str], stream: TextIO | BinaryIO) -> None:
    r"""Write lines, spelling what the encoding lacks as \x, \u or \U escapes.

    So names of files that are not text (lone surrogates) never raise.  A stream of
    bytes gets UTF-8.  Control characters pass; `printable` is for those.
    """
    write: Callable[[Any], object] = stream.write
    binary = not hasattr(stream, "encoding")
    encoding = getattr(stream, "encoding", None) or "utf-8"
    for line in lines:
        data = f"{line}\n".encode(encoding, "backslashreplace")
        write(data if binary else data.decode(encoding))
