"""Adding headers to a message and removing them; all other bytes stay as they are.

Headers are added at the top, where every mail reader finds them.  Headers of the same names
that the sender wrote are removed first.  Mail readers disagree on line ends (LF only, or CR
too), so the head is parsed both ways, and a header found in either way is removed.
"""

import re
import shutil
from collections.abc import Callable, Iterable
from typing import BinaryIO

from nbspam.errors import NbspamError, UsageError
from nbspam.mail.headers import MAX_BYTES, looks_like_header
from nbspam.printing import printable

# Marks a message that had no head: the empty line after this one was added, too.
NO_HEAD = "X-Nbspam-Head"
_NO_HEAD_LINE = b"X-Nbspam-Head: none; this line and the next are added"

Header = tuple[str, str]  # name and value

_EOL = rb"(?:\r\n|\n|\r)"
_ENVELOPE = re.compile(rb"(?:>?From [^\r\n]*+" + _EOL + rb"){0,100}")
# The end of the last line of the head, if CR ends lines too, and if only LF does.
_LAST_LINE = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?=[\r\n])")
_LAST_LF_LINE = re.compile(rb"\n(?=\r?\n)")
_SUBJECT = re.compile(rb"(?:\A|(?<=[\r\n]))subject[ \t]*+:[ \t]*+", re.IGNORECASE)
_READ_BYTES = 1 << 16


def copy_message(
    source: BinaryIO, sink: BinaryIO, rewrite: Callable[[bytes, bool], Iterable[bytes]]
) -> None:
    """Copy a message with its beginning rewritten; unchanged if that fails.

    rewrite: takes the first bytes, MAX_BYTES or a little more, and whether they are the whole
    message; returns the pieces to write instead.  If it fails, the message is copied first,
    and then NbspamErrors and OSErrors are raised again; others become NbspamErrors.
    """
    beginning: list[bytes] = []
    failure: Exception | None = None
    size = 0
    try:
        # Read all of it before writing: the program at both ends may write before it reads.
        while size < MAX_BYTES and (chunk := source.read(_READ_BYTES)):
            beginning.append(chunk)
            size += len(chunk)
        written = list(rewrite(b"".join(beginning), size < MAX_BYTES))
    except Exception as error:  # even bugs and MemoryError must not keep mail from passing
        # The frames of the traceback would keep a second copy of the message in memory.
        written, failure = beginning, error.with_traceback(None)
    try:
        sink.writelines(written)
        shutil.copyfileobj(source, sink)
        sink.flush()
    except BrokenPipeError:
        raise NbspamError("-: nobody reads standard output; the message was not written") from None
    except MemoryError:
        raise NbspamError("-: no memory left; only part of the message was written") from None
    if isinstance(failure, NbspamError | OSError):
        raise failure
    if failure is not None:
        raise NbspamError(f"-: {failure!r}; the message passed unchanged") from failure


def with_headers(
    data: bytes,
    headers: Iterable[Header],
    names: Iterable[str],
    tag: bytes = b"",
    whole: bool = True,
) -> list[bytes]:
    """Return the pieces of a message with headers added on top.

    names: headers of these names in the message are removed.  tag: put before the subject,
    unless it is there already.  whole: data is all of the message.
    """
    envelope, rest = _split_envelope(data)
    eol = _line_end(data)
    added = list(headers)
    has_head = _has_head(rest)
    # If no end of the head is in sight, an empty line is added before it: then no reader takes
    # any line of it for a header.
    if has_head and (whole or _LAST_LF_LINE.search(rest)):
        rest = _cleaned(rest, names)
        has_head = _has_head(rest)
        subject = _SUBJECT.search(rest, 0, _head_ends(rest)[0])
        if tag and subject and not rest.startswith(tag, subject.end()):
            rest = rest[: subject.end()] + tag + rest[subject.end() :]
        elif tag and not subject:
            added.append(("Subject", tag.decode("ascii")))
    else:
        has_head = False
    head = b"".join(_spelt(name, value) + eol for name, value in added)
    return [envelope, head if has_head else head + _NO_HEAD_LINE + eol + eol, rest]


def without_headers(data: bytes, names: Iterable[str]) -> bytes:
    """Return a message without headers of these names, and without a head that was added.

    The inverse of `with_headers` for a message that had no headers of these names.
    """
    envelope, rest = _split_envelope(data)
    pattern = _pattern(names)
    at = 0
    while ours := pattern.match(rest, at):
        at = ours.end()
        if ours.group().startswith(_NO_HEAD_LINE + ours[1]):
            return envelope + rest[at:].removeprefix(ours[1])
    return envelope + _cleaned(rest, names)


def checked_tag(text: str) -> bytes:
    """Return a subject tag as bytes; raises UsageError unless it is printable ASCII."""
    if not (text.isascii() and text.isprintable() and text.strip()):
        raise UsageError(f"--subject-tag {text!r}: not printable ASCII; write it as '[SPAM] '")
    return text.encode("ascii")


def _split_envelope(data: bytes) -> tuple[bytes, bytes]:
    """Return the From_ lines before a message, and the message."""
    match = _ENVELOPE.match(data)
    end = match.end() if match else 0
    return data[:end], data[end:]


def _has_head(data: bytes) -> bool:
    """Return whether data begin with a header or with the empty line that ends the head."""
    return data.startswith((b"\n", b"\r\n")) or looks_like_header(data)


def _line_end(data: bytes) -> bytes:
    """Return the line end of a message; CR only if there is no LF."""
    at = data.find(b"\n")
    if at < 0:
        return b"\r" if b"\r" in data else b"\n"
    return b"\r\n" if data[at - 1 : at] == b"\r" else b"\n"


def _spelt(name: str, value: str) -> bytes:
    return f"{name}: {printable(value)}".encode("ascii", "backslashreplace")


def _pattern(names: Iterable[str], only_lf: bool = False) -> re.Pattern[bytes]:
    """Return the pattern of a header of these names with its folds; group 1 is its line end.

    only_lf: only LF ends lines, and CR is an ordinary character; then the pattern does not
    match at the start of the data.
    """
    any_of = "|".join(map(re.escape, sorted({*names, NO_HEAD}))).encode()
    before, eol, inside = rb"(?:\A|(?<=[\r\n]))", _EOL, rb"[^\r\n]*+"
    if only_lf:
        before, eol, inside = rb"(?<=\n)", rb"\n", rb"[^\n]*+"
    folds = rb"(?:" + eol + rb"[ \t]" + inside + rb")*+"
    header = rb"(?:" + any_of + rb")[ \t]*+:" + inside + folds
    return re.compile(before + header + rb"(" + eol + rb"|\Z)", re.IGNORECASE)


def _head_ends(data: bytes) -> tuple[int, int]:
    """Return where the head ends if CR ends lines too, and where if only LF does."""
    if data.startswith((b"\r", b"\n")):
        return 0, 0
    ends = (pattern.search(data) for pattern in (_LAST_LINE, _LAST_LF_LINE))
    nearer, farther = (len(data) if end is None else end.end() for end in ends)
    return nearer, farther


def _cleaned(data: bytes, names: Iterable[str]) -> bytes:
    """Return a message (without From_ lines) without headers of these names."""
    if not looks_like_header(data):
        return data
    nearer, farther = _head_ends(data)
    names = list(names)

    def replacement(match: re.Match[bytes]) -> bytes:
        # If the line before ends in CR and this one in LF, the LF stays: joining the lines
        # around could make a header of them, or remove an empty line.
        joins = data[match.start() - 1 : match.start()] == b"\r"
        return b"\n" if joins and match[1].endswith(b"\n") else b""

    head = _pattern(names).sub(replacement, data[:nearer])
    # Beyond `nearer`, the head goes on only for readers to whom CR is an ordinary character.
    more = _pattern(names, only_lf=True).sub(b"", data[nearer:farther])
    return head + more + data[farther:]
