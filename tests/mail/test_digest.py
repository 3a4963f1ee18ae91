import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nbspam.mail.digest import digest_of, essence, framed
from nbspam.mail.headers import open_message
from nbspam.mail.message import parse_message
from nbspam.sources.mailboxes import is_gone, unwrap
from support import memory_of

MAIL = (
    b"Received: from a by b\nMessage-ID: <1@example.org>\nDate: Mon, 5 Jan 2026 10:00:00 +0000\n"
    b"From: Ann <ann@example.org>\nTo: bob@example.org\nSubject: lunch on friday\n\n"
    b"shall we?\n\nFrom here on,\nAnn\n"
)
WITHOUT_ID = MAIL.replace(b"Message-ID: <1@example.org>\n", b"")


PLAIN = b"Message-ID: <2@example.org>\nSubject: hi\n%s\nsome =C3=A4 words\n"
HTML = PLAIN.replace(b"some", b"<html>some")
PARTS = (
    b"Message-ID: <3@example.org>\nContent-Type: multipart/mixed; boundary=%s\n\n"
    b"--one\n\nfirst\n--two\n\nsecond\n--one--\n--two--\n"
)
TAGS = b"[SPAM]", b"***SPAM***", b"???UNSURE???", b"{Spam?} [Junk]"
DELIVERED = (
    b"Return-Path: <ann@example.org>\nX-Spam-Status: No\n X-Folded: yes\n"
    b"X-Nbspam: ham, probability=0.1\nDelivered-To: bob@example.org\nStatus: RO\n"
)
# What a reader assumes without these headers is the same with them, and with two equal ones.
ASSUMED = [
    b"content-type :\n\tTEXT/PLAIN; charset=US-ASCII; format=flowed; name=x\n",
    b'Content-Type: Text/Plain (a comment); charset="us-ascii"\n',
    b"Content-Transfer-Encoding: 7BIT\nMIME-Version: 1.0\n",
    b"Content-Type: text/plain\nContent-Type: text/plain\n",
]
TWO_IDS = b"message-id : <1@a>\n%s\nhello"


@pytest.mark.parametrize(("again", "mail"), [
    (DELIVERED + MAIL, MAIL),
    (MAIL.replace(b"\n\n", b"\nX-Bogosity: Ham\n\n", 1), MAIL),
    *((MAIL.replace(b"Subject: ", b"Subject: " + tag + b" "), MAIL) for tag in TAGS),
    *((WITHOUT_ID.replace(b"t: ", b"t: " + tag + b" "), WITHOUT_ID) for tag in TAGS),
    (MAIL.replace(b"\n", b"\r\n"), MAIL),
    (MAIL.rstrip(b"\n"), MAIL),
    (MAIL.partition(b"shall")[0].rstrip(), MAIL.partition(b"shall")[0]),  # without a body
    (MAIL.replace(b"\nFrom here", b"\n>>From here"), MAIL),
    (b"From ann@example.org Mon Jan  5 10:00:00 2026\n" + MAIL, MAIL),
    (MAIL.replace(b"lunch on", b"lunch\n on"), MAIL),
    (MAIL.replace(b"Message-ID: ", b"Message-Id:\t"), MAIL),
    (MAIL.replace(b"Subject", b"SUBJECT").replace(b"From: ", b"from : "), MAIL),
    *((PLAIN % header, PLAIN % b"") for header in ASSUMED),
    # A body that looks like HTML is read as such for want of headers.
    (HTML % b"Content-Type: text/html\n", HTML % b""),
    ((PARTS % b'"new"').replace(b"--one", b"--new"), PARTS % b"one"),
    (TWO_IDS % b"", TWO_IDS % b"Message-ID: <2@a>\n"),
    (b"Message-ID: <1@a>\nX-A: buy now\nX: y\n\nend", b"Message-ID: <1@a>\nX: z\n\nend"),
])  # fmt: skip
def test_the_same_message_in_any_store_has_the_same_digest(again, mail):
    assert digest_of(again) == digest_of(mail)


def kinds(mail, start):
    """Return a mail with UTF-16 at its start, once with a blank line before it."""
    one = mail.replace(b"\n\nshall", start + "shall".encode("utf-16le"), 1)
    return one, one.replace(b"s\0h", b"\ns\0h").replace(b"\xff\xfe\n", b"\n\xff\xfe")


RELATED = (PARTS % b"one").replace(b"/mixed", b"/related")
HEADERS = [
    b"Content-Type: text/html\n", b"Content-Type: text/plain; charset=utf-8\n",
    b"Content-Type: application/octet-stream\n", b"Content-Transfer-Encoding: quoted-printable\n",
    b"Content-Transfer-Encoding: base64\n", b"Content-Transfer-Encoding: 8bit\n",
    b"Content-Transfer-Encoding: (a comment) base64\n", b"Content-Type: text/plain; delsp=yes\n",
    b"Content-Type: text/plain\nContent-Type: text/html\n",  # some readers take the last
]  # fmt: skip
ASCII = b"Content-Type: text/plain; charset=us-ascii\n"
ATTACHED = b"Message-ID: <1@a>\nContent-Type: message/rfc822\n\n%sX-Note: buy\n\nthe end\n"
NO_SPACE = b"Message-ID: <1@a>\n%s\nX: y\n\nthe end\n"


@pytest.mark.parametrize("mails", [
    (MAIL, WITHOUT_ID, MAIL.replace(b"<1@", b"<2@")),
    (MAIL, MAIL.replace(b"we?", b"we not?"), MAIL.replace(b"shall we", b"shall  we")),
    (WITHOUT_ID, WITHOUT_ID.replace(b"Subject: ", b"Subject: [choir] ")),
    # A blank line before UTF-16 changes the text.
    kinds(MAIL, b"\n\n\xff\xfe"),
    kinds(MAIL, b"\nContent-Type: text/plain; charset=utf-16\n\n"),
    # Behind a blank line the head of an attached message is text.
    [ATTACHED % blank for blank in (b"", b"\n")],
    # Data that are hardly mail: without a header of an author all of it counts.
    (b"", b"x"),
    (b"Subject: a", b"Subject: b", b"Subject: a\nbody without a blank line"),
    (b"Subject: a\nhttp : / / b", b"Subject: a\nhttp : / / c"),  # not two headers
    *((PLAIN % b"", PLAIN % header, PLAIN % (header[:-1] + b"-x\n")) for header in HEADERS),
    # A charset that changes what is read counts.
    [(PLAIN % each).replace(b"some", b"\xff\xfeb\0u\0y\0") for each in (b"", ASCII)],
    [(PLAIN % each).replace(b"some", b'\x1b$B$"\x1b(B') for each in (b"", ASCII)],
    (HTML % b"", HTML % b"Content-Type: text/plain\n"),
    # The same body cut into other parts, and other related parts shown.
    (PARTS % b"one", PARTS % b"two", PARTS % b"three", RELATED,
     RELATED.replace(b"=one", b"=one; start=two")),
    (PARTS % b"one", (PARTS % b"one").replace(b"--one--", b"--one\n")),
    # No value continues in the next one: with separators both would be "a\n\0b\n\0\n\0c".
    (b"Message-ID: a\n\nb\n\0\n\0c", b"Date: a\nFrom: b\n\nc"),
    # A header that is absent is not an empty one.
    [b"Date: x\n%s\nbody" % header for header in (b"", b"From:\n", b"Subject:\n")],
    # A line that ends the headers for the reader begins the body.
    (NO_SPACE % b"buy now", NO_SPACE % b"see you"),
    # A long value counts to its end.
    [b"Message-ID: <" + b"a" * 5000 + b"%d@a>\n\nhello" % n for n in (1, 2)],
])  # fmt: skip
def test_another_message_has_another_digest(mails):
    assert len({digest_of(mail) for mail in mails}) == len(mails)


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_have_a_digest_of_64_bits_whatever_their_line_ends(data, is_text):
    unix = data.replace(b"\r", b"")
    assert 0 <= digest_of(data, is_text) < 1 << 64
    assert digest_of(unix.replace(b"\n", b"\r\n"), is_text) == digest_of(unix, is_text)


def test_texts_and_mail_never_share_a_digest():
    assert digest_of(MAIL) != digest_of(MAIL, is_text=True)
    assert digest_of(b"ok\r\n", is_text=True) == digest_of(b"ok", is_text=True)
    assert len({digest_of(b"%d" % n, is_text=True) for n in range(99)}) == 99


SOME = st.sampled_from(
    [b"", b"a", b"\n", b"\0", b"\n\0", b"\xff" * 8, b"-1", b"--b\n", b"\n--b--"]
)
VALUES = st.lists(st.none() | st.lists(SOME, max_size=3).map(b"".join), min_size=8, max_size=8)
BODIES = st.lists(st.lists(SOME, max_size=3).map(b"".join), min_size=1, max_size=3)
ESSENCES = st.tuples(VALUES, BODIES, st.lists(st.sampled_from([1, 2]), min_size=2, max_size=2))


def unframed(hashed: bytes):
    """Return the values, kinds of lines and texts that were hashed: the inverse of `framed`."""
    n_texts, *lengths = struct.unpack_from("<9q", hashed)
    more = struct.unpack_from(f"<{2 * n_texts - 1}q", hashed, 72)
    at = 72 + 8 * len(more)
    found = []
    for length in (*lengths, *more[::2]):
        found.append(None if length < 0 else hashed[at : at + length])
        at += max(length, 0)
    assert at == len(hashed)
    return found[:8], list(more[1::2]), found[8:]


@given(ESSENCES)
def test_values_and_texts_can_be_told_from_what_is_hashed(given_):
    values, texts, kinds = given_
    kinds = kinds[: len(texts) - 1]
    pieces = framed(tuple(values[:4]), tuple(values[4:]), kinds, texts)
    assert unframed(b"".join(pieces)) == (values, kinds, texts)


LINES = st.sampled_from(
    [
        b"Message-ID: <1@a>", b"Message-ID: a", b"Date: a", b"From: b", b"Subject: c",
        b"Content-Type: text/html", b"Content-Type: multipart/mixed; boundary=b",
        b"Content-Transfer-Encoding: base64", b"X-Other: d",
    ]
)  # fmt: skip
TEXTS = st.lists(st.sampled_from([b"b", b"--b", b"--b--", b"\0", b"c"]), min_size=1, max_size=4)
MAILS = st.tuples(st.lists(LINES, min_size=1, max_size=3, unique=True), TEXTS)
HEADS = (b"message-id", b"date", b"from", b"subject")


def meaning(mail):
    """Return what must count of a mail, by plain means: its author's headers, content and body."""
    lines, text = mail
    head, last = {}, {}
    for line in lines:
        name, _, value = line.partition(b": ")
        if head.setdefault(name.lower(), value) != value and name.lower().startswith(b"content-"):
            last[name.lower()] = value  # some readers take it
    author = tuple(head.get(name) for name in HEADS)
    if not any(author):
        return tuple(lines), tuple(text)
    if author[0]:
        author = author[:1]
    kind, _, boundary = head.get(b"content-type", b"text/plain").partition(b";")
    marks = (b"--b", b"--b--") if boundary else ()
    body = tuple((line in marks, line) for line in text)
    return author, kind, head.get(b"content-transfer-encoding"), last, body


@given(MAILS, MAILS)
@example(
    ([b"Subject: s", b"Content-Type: text/html"], [b"b"]),
    (
        [b"Subject: s", b"Content-Type: text/html", b"Content-Type: multipart/mixed; boundary=b"],
        [b"b"],
    ),
)
def test_mails_share_what_is_hashed_only_if_all_that_counts_is_equal(one, other):
    hashed = [
        b"".join(essence(open_message(b"\n".join([*lines, b"", *text]))))
        for lines, text in (one, other)
    ]
    assert (hashed[0] == hashed[1]) == (meaning(one) == meaning(other))


@pytest.mark.parametrize(("read", "before", "piece"), [
    (digest_of, b"Date: ", b"1 "),
    (digest_of, b"Subject: ", b"[SPAM] "),
    (digest_of, b"Content-Type: text/plain; a=", b'"'),
    (digest_of, b"Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n", b"--b\n"),
    (lambda data: is_gone(data, 1), b"From a@b Thu Aug 22 12:36:23 2002\n", b"A\n"),
    (unwrap, b"From a@b\n\n", b">From \n"),
    (parse_message, b"\n", b"x \n"),
    (parse_message, b"Content-Type: text/plain; delsp=yes\n\n", b"x \n"),
    (parse_message, b"Content-Transfer-Encoding: quoted-printable\n\n", b"x= \n"),
    (parse_message, b"Content-Type: multipart/mixed; boundary=b\n\n", b"--bx\n"),
    (parse_message, b"Content-Type: multipart/mixed; boundary=b\n\n", b"--b\n"),
])  # fmt: skip
def test_a_long_head_and_many_boundaries_or_runs_take_little_memory(read, before, piece):
    data = before + piece * ((4 << 20) // len(piece)) + b"\nX-Status: A\n\nx"
    assert memory_of(read, data)[1] < 20 * len(data)
