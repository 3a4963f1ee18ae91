"""A message as it came, with a verdict in its head: no other byte changes.

Headers are added on top, where every reader finds them; what a stranger wrote into the
same headers is taken out first.  Readers disagree on what ends a line (some say LF only,
some CR too), so the head is read both ways and whatever either finds is taken out.

Secret: where the head of a message begins and ends, and what passes for a header there.
"""

import re
import shutil
from collections.abc import Callable, Iterable
from typing import BinaryIO

from nbspam.errors import NbspamError, UsageError
from nbspam.mail.headers import MAX_BYTES, looks_like_header
from nbspam.printing import printable

# Says that the message had no head, so that the empty line behind this one is added too.
NO_HEAD = "X-Nbspam-Head"
_NO_HEAD_LINE = b"X-Nbspam-Head: none; this line and the next are added"

Header = tuple[str, str]  # name and value

_EOL = rb"(?:\r\n|\n|\r)"
_ENVELOPE = re.compile(rb"(?:>?From [^\r\n]*+" + _EOL + rb"){0,100}")
_LAST_LINE = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?=[\r\n])")  # its end, if CR ends lines too
_LAST_LF_LINE = re.compile(rb"\n(?=\r?\n)")
_SUBJECT = re.compile(rb"(?:\A|(?<=[\r\n]))subject[ \t]*+:[ \t]*+", re.IGNORECASE)
_READ_BYTES = 1 << 16


def copy_message(
    source: BinaryIO, sink: BinaryIO, rewrite: Callable[[bytes, bool], Iterable[bytes]]
) -> None:
    """Copy a message with its beginning rewritten; unchanged if that fails.

    rewrite: given the first MAX_BYTES or so, and whether they are all, returns what is
    written instead.  Whatever it raises is raised here when the message is through.
    """
    beginning: list[bytes] = []
    failure: Exception | None = None
    size = 0
    try:
        # All of it before the first byte goes out: a caller may write first and read later.
        while size < MAX_BYTES and (chunk := source.read(_READ_BYTES)):
            beginning.append(chunk)
            size += len(chunk)
        written = list(rewrite(b"".join(beginning), size < MAX_BYTES))
    except Exception as error:  # bugs and a lack of memory too: mail goes first
        # Without its traceback, whose frames would hold the message a second time.
        written, failure = beginning, error.with_traceback(None)
    try:
        sink.writelines(written)
        shutil.copyfileobj(source, sink)
        sink.flush()
    except BrokenPipeError:
        raise NbspamError("-: nobody reads standard output; the message went nowhere") from None
    except MemoryError:
        raise NbspamError("-: no memory left; the message went through in part") from None
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
    """Return the pieces of a message with headers on top, and no others of these names.

    tag: put before the subject, once.  whole: data is all of the message.
    """
    envelope, rest = _split_envelope(data)
    eol = _line_end(data)
    added = list(headers)
    has_head = _has_head(rest)
    # What has no end within reach is not worth its head: behind an empty line of ours
    # nobody takes any of it for a header.
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
    """Return a message without headers of these names, or the head that was added for them.

    The inverse of `with_headers` for a message that came with none of them.
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
    """Return a tag for subjects as bytes; raises UsageError if it cannot stand there."""
    if not (text.isascii() and text.isprintable() and text.strip()):
        raise UsageError(f"--subject-tag {text!r}: not printable ASCII; write it as '[SPAM] '")
    return text.encode("ascii")


def _split_envelope(data: bytes) -> tuple[bytes, bytes]:
    """Return the From_ lines in front of a message, and the message."""
    match = _ENVELOPE.match(data)
    end = match.end() if match else 0
    return data[:end], data[end:]


def _has_head(data: bytes) -> bool:
    """Tell whether headers may stand on top: before a header, or before the empty line."""
    return data.startswith((b"\n", b"\r\n")) or looks_like_header(data)


def _line_end(data: bytes) -> bytes:
    """Return what ends lines in a message; CR alone only where there is nothing else."""
    at = data.find(b"\n")
    if at < 0:
        return b"\r" if b"\r" in data else b"\n"
    return b"\r\n" if data[at - 1 : at] == b"\r" else b"\n"


def _spelt(name: str, value: str) -> bytes:
    return f"{name}: {printable(value)}".encode("ascii", "backslashreplace")


def _pattern(names: Iterable[str], only_lf: bool = False) -> re.Pattern[bytes]:
    """Return the pattern of a header of these names with its folds; group 1 is its end.

    only_lf: LF ends lines, and CR is a letter; such a pattern does not match at the start.
    """
    any_of = "|".join(map(re.escape, sorted({*names, NO_HEAD}))).encode()
    before, eol, inside = rb"(?:\A|(?<=[\r\n]))", _EOL, rb"[^\r\n]*+"
    if only_lf:
        before, eol, inside = rb"(?<=\n)", rb"\n", rb"[^\n]*+"
    folds = rb"(?:" + eol + rb"[ \t]" + inside + rb")*+"
    header = rb"(?:" + any_of + rb")[ \t]*+:" + inside + folds
    return re.compile(before + header + rb"(" + eol + rb"|\Z)", re.IGNORECASE)


def _head_ends(data: bytes) -> tuple[int, int]:
    """Return where the head ends if CR ends lines too, and if only LF does."""
    if data.startswith((b"\r", b"\n")):
        return 0, 0
    ends = (pattern.search(data) for pattern in (_LAST_LINE, _LAST_LF_LINE))
    nearer, farther = (len(data) if end is None else end.end() for end in ends)
    return nearer, farther


def _cleaned(data: bytes, names: Iterable[str]) -> bytes:
    """Return a message, From_ lines apart, without headers of these names."""
    if not looks_like_header(data):
        return data
    nearer, farther = _head_ends(data)
    names = list(names)

    def replacement(match: re.Match[bytes]) -> bytes:
        # Without an LF of its own the line before must not join the one behind: that
        # could make a header of it, or take an empty line away.
        joins = data[match.start() - 1 : match.start()] == b"\r"
        return b"\n" if joins and match[1].endswith(b"\n") else b""

    head = _pattern(names).sub(replacement, data[:nearer])
    # Here the head goes on only for those to whom CR is nothing special.
    more = _pattern(names, only_lf=True).sub(b"", data[nearer:farther])
    return head + more + data[farther:]
