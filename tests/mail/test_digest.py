import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.mail.digest import Copies, digest_of

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
