import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.mail.digest import Copies, digest_of, essence, framed
from nbspam.mail.message import parse_message

MAIL = (
    b"Received: from a by b\nMessage-ID: <1@example.org>\nDate: Mon, 5 Jan 2026 10:00:00 +0000\n"
    b"From: Ann <ann@example.org>\nTo: bob@example.org\nSubject: lunch on friday\n\n"
    b"shall we?\n\nFrom here on,\nAnn\n"
)
WITHOUT_ID = MAIL.replace(b"Message-ID: <1@example.org>\n", b"")


def test_what_delivery_and_filters_add_does_not_count():
    added = (
        b"Return-Path: <ann@example.org>\nX-Spam-Status: No\n X-Folded: yes\n"
        b"X-Nbspam: ham, probability=0.1\nDelivered-To: bob@example.org\nStatus: RO\n"
    )
    assert digest_of(added + MAIL) == digest_of(MAIL)
    assert digest_of(MAIL.replace(b"\n\n", b"\nX-Bogosity: Ham\n\n", 1)) == digest_of(MAIL)


@pytest.mark.parametrize("tag", [b"[SPAM]", b"***SPAM***", b"???UNSURE???", b"{Spam?} [Junk]"])
def test_a_tag_that_a_filter_puts_before_the_subject_does_not_count(tag):
    for mail in (MAIL, WITHOUT_ID):
        tagged = mail.replace(b"Subject: ", b"Subject: " + tag + b" ")
        assert digest_of(tagged) == digest_of(mail)


def test_other_brackets_before_the_subject_count():
    other = WITHOUT_ID.replace(b"Subject: ", b"Subject: [choir] ")
    assert digest_of(other) != digest_of(WITHOUT_ID)


@pytest.mark.parametrize(
    "again",
    [
        MAIL.replace(b"\n", b"\r\n"),
        MAIL + b"\n\n",
        MAIL.rstrip(b"\n"),
        MAIL.replace(b"\nFrom here", b"\n>From here"),
        MAIL.replace(b"\nFrom here", b"\n>>From here"),
        b"From ann@example.org Mon Jan  5 10:00:00 2026\n" + MAIL,
        MAIL.replace(b"lunch on", b"lunch\n on"),
        MAIL.replace(b"Message-ID: ", b"Message-Id:\t"),
        MAIL.replace(b"Subject", b"SUBJECT").replace(b"From: ", b"from : "),
    ],
)
def test_the_same_message_in_any_store_has_the_same_digest(again):
    assert digest_of(again) == digest_of(MAIL)


@pytest.mark.parametrize(
    "start", [b"\n\n\xff\xfe", b"\nContent-Type: text/plain; charset=utf-16\n\n"]
)
def test_a_blank_line_before_utf16_counts_because_it_changes_the_text(start):
    one = MAIL.replace(b"\n\nshall", start + "shall".encode("utf-16le"), 1)
    moved = one.replace(b"s\0h", b"\ns\0h").replace(b"\xff\xfe\n", b"\n\xff\xfe")

    assert parse_message(one).fields[-1] != parse_message(moved).fields[-1]
    assert digest_of(one) != digest_of(moved)


@pytest.mark.parametrize(
    "other",
    [
        MAIL.replace(b"<1@", b"<2@"),
        MAIL.replace(b"shall we?", b"shall we not?"),
        MAIL.replace(b"shall we?", b"shall  we?"),
        WITHOUT_ID,
        WITHOUT_ID.replace(b"10:00:00", b"10:00:01"),
        WITHOUT_ID.replace(b"Ann <ann", b"Eve <eve"),
        WITHOUT_ID.replace(b"friday", b"monday"),
    ],
)
def test_another_message_has_another_digest(other):
    assert digest_of(other) not in {digest_of(MAIL), digest_of(WITHOUT_ID)} - {
        digest_of(WITHOUT_ID) if other == WITHOUT_ID else None
    }


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b"", b"x"),
        (b"no header at all", b"no header, as well"),
        (b"X-A: 1\n\nbody", b"X-A: 2\n\nbody"),  # no header of an author: all of it counts
        (b"Subject: a", b"Subject: b"),
        (b"Subject: a\nbody without a blank line", b"Subject: a\nanother body"),
        (b"Subject: a\nhttp : / / b", b"Subject: a\nhttp : / / c"),  # not two headers
        (b"\n\n\n", b"\n\nx"),
    ],
)
def test_data_that_are_hardly_mail_have_different_digests(one, other):
    assert digest_of(one) != digest_of(other)


@given(st.binary(max_size=300))
def test_any_bytes_have_a_digest_of_64_bits_whatever_their_line_ends(data):
    for is_text in (False, True):
        digest = digest_of(data, is_text)
        assert 0 <= digest < 1 << 64
        assert digest_of(data.replace(b"\r", b"").replace(b"\n", b"\r\n"), is_text) == digest_of(
            data.replace(b"\r", b""), is_text
        )


def test_a_header_that_never_ends_costs_no_memory():
    folded = b"Subject: x" + b"\n a" * 100_000 + b"\n\nbody"

    assert digest_of(folded) == digest_of(folded + b"\n")


def test_texts_and_mail_never_share_a_digest():
    assert digest_of(MAIL) != digest_of(MAIL, is_text=True)
    assert digest_of(b"ok\r\n", is_text=True) == digest_of(b"ok", is_text=True)


def test_copies_of_a_text_get_different_digests_and_copies_of_mail_the_same():
    first, second = Copies(), Copies()
    text, mail = digest_of(b"ok", is_text=True), digest_of(MAIL)

    numbers = [first.numbered(text) for _ in range(3)]
    assert numbers[0] == text
    assert len(set(numbers)) == 3
    assert [second.numbered(text) for _ in range(3)] == numbers
    assert {first.numbered(mail) for _ in range(3)} == {mail}


# ---- different mails are never one message ----

PLAIN = b"Message-ID: <2@example.org>\nSubject: hi\n%s\nsome =C3=A4 words\n"
PARTS = (
    b"Message-ID: <3@example.org>\nContent-Type: multipart/mixed; boundary=%s\n\n"
    b"--one\n\nfirst\n--two\n\nsecond\n--one--\n--two--\n"
)


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Type: text/html\n",
        b"Content-Type: text/plain; charset=utf-8\n",
        b"Content-Type: application/octet-stream\n",
        b"Content-Transfer-Encoding: quoted-printable\n",
        b"Content-Transfer-Encoding: base64\n",
        b"Content-Transfer-Encoding: 8bit\n",
    ],
)
def test_how_the_content_is_to_be_read_counts(header):
    digests = [digest_of(PLAIN % each) for each in (b"", header, header[:-1] + b"-other\n")]
    assert len(set(digests)) == 3


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Type: text/plain\n",
        b"content-type :\n\tTEXT/PLAIN; charset=US-ASCII; format=flowed; name=x\n",
        b'Content-Type: Text/Plain (a comment); charset="us-ascii"\n',
        b"Content-Transfer-Encoding: 7BIT\nMIME-Version: 1.0\n",
        b"Content-Type: text/plain\nContent-Type: text/html\n",  # the first one counts
    ],
)
def test_what_a_reader_assumes_without_a_header_is_the_same_with_it(header):
    assert digest_of(PLAIN % header) == digest_of(PLAIN % b"")


def test_a_charset_that_changes_what_is_read_counts():
    header = b"Content-Type: text/plain; charset=us-ascii\n"
    for text in (b"\xff\xfeb\0u\0y\0", b'\x1b$B$"\x1b(B'):
        mail = [(PLAIN % each).replace(b"some", text) for each in (b"", header)]
        assert digest_of(mail[0]) != digest_of(mail[1])


def test_a_body_that_is_read_as_html_for_want_of_headers_is_not_plain_text():
    html = PLAIN.replace(b"some", b"<html>some")
    without, plain, declared = (
        digest_of(html % each)
        for each in (b"", b"Content-Type: text/plain\n", b"Content-Type: text/html\n")
    )
    assert without == declared != plain


def test_the_same_body_cut_into_other_parts_is_another_message():
    whole = [digest_of(PARTS % name) for name in (b"one", b"two", b"three")]
    assert len(set(whole)) == 3


def test_the_boundary_between_the_same_parts_does_not_count():
    other = (PARTS % b"one").replace(b"--one", b"--new").replace(b"=one", b'="new"')
    assert digest_of(other) == digest_of(PARTS % b"one")
    assert digest_of(other.replace(b"--new--", b"--new\n")) != digest_of(other)


def test_which_of_related_parts_is_shown_counts():
    related = (PARTS % b"one").replace(b"/mixed", b"/related")
    other = related.replace(b"=one", b"=one; start=two")
    assert digest_of(other) != digest_of(related) != digest_of(PARTS % b"one")


def test_no_value_continues_in_the_next_one():
    # Values with separators between them would be "a\n\0b\n\0\n\0c" for both.
    mails = b"Message-ID: a\n\nb\n\0\n\0c", b"Date: a\nFrom: b\n\nc"
    assert digest_of(mails[0]) != digest_of(mails[1])


def test_a_header_that_is_absent_is_not_an_empty_one():
    mails = [b"Date: x\n%s\nbody" % header for header in (b"", b"From:\n", b"Subject:\n")]
    assert len({digest_of(mail) for mail in mails}) == 3


def test_of_two_message_ids_the_first_counts_however_it_is_written():
    ids = b"message-id : <1@a>\n", b"Message-ID: <2@a>\n"
    both, first, second = b"".join(ids), *ids
    same, one, other = (digest_of(each + b"\nhello") for each in (both, first, second))
    assert same == one != other


def test_a_line_that_ends_the_headers_for_the_reader_begins_the_body():
    mail = b"Message-ID: <1@a>\n%s\nX: y\n\nthe end\n"
    assert digest_of(mail % b"buy now") != digest_of(mail % b"see you")
    assert digest_of(mail % b"X-A: buy now") == digest_of(mail % b"X-A: see you")


def test_a_long_value_counts_to_its_end():
    mail = b"Message-ID: <" + b"a" * 5000 + b"%s@a>\n\nhello"
    assert digest_of(mail % b"1") != digest_of(mail % b"2")


# ---- what is hashed is unambiguous ----

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
    head = {}
    for line in lines:
        name, _, value = line.partition(b": ")
        head.setdefault(name.lower(), value)
    author = tuple(head.get(name) for name in HEADS)
    if not any(author):
        return tuple(lines), tuple(text)
    if author[0]:
        author = author[:1]
    kind, _, boundary = head.get(b"content-type", b"text/plain").partition(b";")
    marks = (b"--b", b"--b--") if boundary else ()
    body = tuple((line in marks, line) for line in text)
    return author, kind, head.get(b"content-transfer-encoding"), body


@given(MAILS, MAILS)
def test_mails_share_what_is_hashed_only_if_all_that_counts_is_equal(one, other):
    hashed = [b"".join(essence(b"\n".join([*lines, b"", *text]))) for lines, text in (one, other)]
    assert (hashed[0] == hashed[1]) == (meaning(one) == meaning(other))
