import io
import re
from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.errors import InputError, NbspamError, UsageError
from nbspam.mail.head import checked_tag, copy_message, with_headers, without_headers
from nbspam.mail.headers import MAX_BYTES

NAMES = ["X-Nbspam", "X-Bogosity"]
OURS = [("X-Nbspam", "ham, ours")]
HEADER = b"X-Nbspam: ham, ours"


def added(data, names=NAMES, tag=b"", whole=True):
    return b"".join(with_headers(data, OURS, names, tag, whole))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"A: b\n\nbody\n", HEADER + b"\nA: b\n\nbody\n"),
        (b"A: b\r\n\r\nbody", HEADER + b"\r\nA: b\r\n\r\nbody"),
        (b"A: b\r\rbody", HEADER + b"\rA: b\r\rbody"),
        (b"A: b", HEADER + b"\nA: b"),
        (b"From x@y Mon\nA: b\n\n", b"From x@y Mon\n" + HEADER + b"\nA: b\n\n"),
        (b">From x\r\nA: b\r\n", b">From x\r\n" + HEADER + b"\r\nA: b\r\n"),
        (b"\nbody", HEADER + b"\n\nbody"),
        (b"\r\nbody", HEADER + b"\r\n\r\nbody"),
    ],
)
def test_headers_are_added_at_the_top_with_the_messages_line_ends(data, expected):
    assert added(data) == expected
    assert without_headers(expected, NAMES) == data


LONGER = b"X-Nbspam2: a\nX-Nbspammer: b\nNot-X-Nbspam: c\nA: X-Nbspam: d\n\n"


@pytest.mark.parametrize(
    ("forged", "clean"),
    [
        (b"A: b\nX-Nbspam: spam\nC: d\n\nX-Nbspam: quoted\n", b"A: b\nC: d\n\nX-Nbspam: quoted\n"),
        (b"X-NBSPAM : spam,\n folded\n\ttwice\nC: d\n\n", b"C: d\n\n"),
        (b"A: b\rx-nbspam: spam\rC: d\r\rX-Nbspam: quoted\r", b"A: b\rC: d\r\rX-Nbspam: quoted\r"),
        (b"A: b\rX-Nbspam: spam\nC: d\n\n", b"A: b\r\nC: d\n\n"),
        (b"A: b\r\r\nX-Nbspam: spam\nC: d\n\n", b"A: b\r\r\nC: d\n\n"),
        (b"A: b\nno header\nX-Bogosity: Ham\nC: d\n\n", b"A: b\nno header\nC: d\n\n"),
        (b"From x\nX-Nbspam: spam\nA: b", b"From x\nA: b"),
        (b"A: b\nX-Nbspam: spam", b"A: b\n"),
        (b"X-Nbspam: spam\n\nbody", b"\nbody"),
        # "\r" and "\n" around it would become one line end, and the body part of the head.
        (b"A: b\rX-Nbspam: x\n\nX-Nbspam: q\n\n", b"A: b\r\n\nX-Nbspam: q\n\n"),
        (LONGER, LONGER),
    ],
)
def test_forged_headers_are_removed_from_the_head_only(forged, clean):
    assert without_headers(added(forged), NAMES) == clean


LINES = (b"X-Nbspam: forged", b"x-nbspam : forged", b"X-Bogosity: forged", b"A: b", b"Subject: s")
MARK = b"X-Nbspam-Head: none; this line and the next are added"
PIECES = st.sampled_from([*LINES, MARK, b"\n", b"\n", b"\r", b"\r\n", b" c", b"junk", b"From x"])
MESSAGES = st.lists(PIECES, max_size=12).map(b"".join)


def head_lines(data, line_end):
    return list(takewhile(lambda line: line not in (b"", b"\r"), re.split(line_end, data)))


@given(MESSAGES)
def test_no_reader_finds_a_forged_header_and_adding_can_be_undone_and_repeated(data):
    out = added(data)
    for line_end in (rb"\n", rb"\r\n|\n|\r"):
        lines = head_lines(out, line_end)
        assert not any(re.match(rb"(?i)x-(nbspam|bogosity) ?: forged", line) for line in lines)
    assert lines.count(HEADER) == 1
    assert MARK in out or added(out) == out
    if b"nbspam" not in data.lower() and b"bogosity" not in data.lower():
        assert without_headers(out, NAMES) == data


@given(st.binary(max_size=60))
def test_any_bytes_are_kept(data):
    assert without_headers(added(data), NAMES) == data


def test_a_head_without_end_in_sight_is_not_a_head():
    out = added(b"A: b\nX-Nbspam: forged\n", whole=False)
    assert out.startswith(HEADER + b"\nX-Nbspam-Head: none; this line and the next are added\n\n")
    assert out.endswith(b"A: b\nX-Nbspam: forged\n")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"SUBJECT: hi\n\nSubject: no\n", b"SUBJECT: [x] hi\n\nSubject: no\n"),
        (b"A: b\r\nSubject:\r\n =?utf-8?q?hi?=\r\n\r\n", b"Subject:[x] \r\n =?utf-8?q?hi?=\r\n"),
        (b"Subject: [x] hi\n\n", b"Subject: [x] hi\n\n"),
        (b"A: b\n\nSubject: no\n", b"\nSubject: [x] \nA: b\n\nSubject: no\n"),
        (b"\nSubject: no\n\n", b"\nSubject: [x] \n\nSubject: no\n\n"),
    ],
)
def test_the_subject_is_tagged_once(data, expected):
    out = added(data, tag=b"[x] ")
    assert expected in out
    assert out.count(b"[x] ") == 1


@pytest.mark.parametrize("tag", ["", " ", "a\nb", "späm", "\x1b[1m"])
def test_a_tag_that_cannot_stand_in_a_subject_is_wrong_usage(tag):
    with pytest.raises(UsageError, match="not printable ASCII"):
        checked_tag(tag)


class Recorder(io.BytesIO):
    """A stream of bytes that remembers the largest read."""

    largest = 0

    def read(self, size=-1):
        self.largest = max(self.largest, size)
        return super().read(size)


@pytest.mark.parametrize(
    "error", [InputError("x: no"), OSError(5, "no"), MemoryError(), KeyError()]
)
@pytest.mark.parametrize("data", [b"", b"A: b\n\nbody", b"x" * 200_000])
def test_the_message_passes_whatever_fails(error, data):
    def rewrite(data, whole):
        raise error

    sink = io.BytesIO()
    told = r"x: no|\[Errno 5\] no|-: (MemoryError|KeyError)\(\); the message passed unchanged"
    with pytest.raises((NbspamError, OSError), match=f"^({told})$"):
        copy_message(io.BytesIO(data), sink, rewrite)
    assert sink.getvalue() == data


def test_a_large_message_is_never_held_whole():
    source, sink = Recorder(b"A: b\n\n" + b"x" * (2 * MAX_BYTES)), io.BytesIO()
    seen = []

    def rewrite(data, whole):
        seen.append((len(data), whole))
        return with_headers(data, OURS, NAMES, whole=whole)

    copy_message(source, sink, rewrite)

    assert seen == [(MAX_BYTES, False)]
    assert source.largest < MAX_BYTES
    assert sink.getvalue() == HEADER + b"\n" + source.getvalue()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (BrokenPipeError, "nobody reads standard output"),
        (MemoryError, "only part of the message was written"),
    ],
)
def test_a_message_that_cannot_be_written_is_an_error(error, words):
    class Failing(io.BytesIO):
        def writelines(self, lines):
            raise error

    with pytest.raises(NbspamError, match=words):
        copy_message(io.BytesIO(b"A: b\n\n"), Failing(), lambda data, whole: [data])
