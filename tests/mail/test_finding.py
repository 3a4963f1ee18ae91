"""Which parts of a message are read, wherever they stand, and which a reader is shown."""

import base64
import re
from binascii import b2a_uu
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.mail.headers import LIMITS, ReadingLimits, open_message
from nbspam.mail.message import parse_message
from nbspam.mail.parts import Parts, ends, granted_shares, sampled, shared, spread_indices
from support import examples

HEAD = b"Subject: x\nMIME-Version: 1.0\n"
HAM = " ".join(f"agenda{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(40)).encode()
SPAM = b"cheap pills without prescription"


def part(data: bytes, kind: bytes = b"text/plain", more: bytes = b"") -> bytes:
    return b"Content-Type: " + kind + b"\n" + more + b"\n" + data + b"\n"


def multipart(*parts: bytes, kind: bytes = b"mixed", boundary: bytes = b"b") -> bytes:
    head = b"Content-Type: multipart/%b; boundary=%b\n\n" % (kind, boundary)
    return (
        head + b"".join(b"--%b\n%b" % (boundary, each) for each in parts) + b"--%b--\n" % boundary
    )


def read(data: bytes, limits: ReadingLimits = LIMITS) -> dict[str, bytes]:
    """Return the text of a message by its origin, without its subject, and its defects."""
    found: dict[str, bytes] = defaultdict(bytes)
    for origin, text in parse_message(HEAD + data, limits).fields:
        found[origin] += b" " + text
    return found


FEW = ReadingLimits(parts=40)
JUNK = [part(b"junk %d" % i) for i in range(300)]


PLAIN, BASE64 = (SPAM * 3, b"8bit"), (base64.encodebytes(SPAM * 3), b"base64")


@pytest.mark.parametrize("place", [0, 150, 300])
@pytest.mark.parametrize(("data", "encoding"), [PLAIN, BASE64])
def test_a_part_among_too_many_is_read_wherever_it_stands(place, data, encoding):
    spam = part(data, more=b"Content-Transfer-Encoding: " + encoding + b"\n")
    found = read(multipart(*JUNK[:place], spam, *JUNK[place:]), FEW)
    assert SPAM in found["body"]
    assert b"too-many-parts" in found["defect"]


def test_one_multipart_does_not_take_the_parts_of_another():
    inner = multipart(*JUNK, boundary=b"c")
    spam = multipart(part(SPAM), part(b"<p>more", b"text/html"), boundary=b"d")
    body = read(multipart(inner, inner, spam), FEW)["body"]
    assert SPAM in body
    assert b"<p>" not in body


@pytest.mark.parametrize(("data", "encoding"), [PLAIN, BASE64])
def test_what_is_nested_too_deep_is_read_as_text(data, encoding):
    inner = part(data, more=b"Content-Transfer-Encoding: " + encoding + b"\n")
    for i in range(40):
        inner = multipart(part(b"junk"), inner, boundary=b"b%d-" % i)
    found = read(inner)
    assert SPAM in found["body"]
    assert b"too-deep" in found["defect"]


def test_pictures_beyond_a_limit_are_not_taken_for_text():
    picture = base64.encodebytes(bytes(range(256)) * 8)
    pictures = [part(picture, b"image/png", b"Content-Transfer-Encoding: base64\n")] * 100
    body = read(multipart(*pictures), FEW)["body"]
    assert picture[:70] not in body
    assert b"\0" not in body


@pytest.mark.parametrize(
    ("before", "after"), [(0, 0), (30_000, 0), (0, 600_000), (600_000, 600_000), (3_000_000, 0)]
)
def test_a_part_beside_long_texts_is_read_whole(before, after):
    long = HAM + b"\n"
    data = multipart(
        part(long * (before // len(long))), part(SPAM), part(long * (after // len(long)))
    )
    found = read(data)
    assert SPAM in found["body"]
    assert len(found["body"]) < 600_000
    assert (b"truncated" in found.get("defect", b"")) == (before + after > 524_288)


def test_hidden_text_does_not_push_out_what_is_shown():
    hidden = b'<div style="display:none">' + (HAM + b" ") * 2_000 + b"</div>"
    found = read(part(hidden + b"<p>" + SPAM + b"</p>" + hidden, b"text/html"))
    assert SPAM in found["body"]
    assert HAM not in found["body"]
    assert 400_000 < len(found["hidden"]) < 530_000


def test_content_is_decoded_though_its_headers_stand_behind_many_others():
    more = b"".join(b"X-%d: %b\n" % (i, HAM) for i in range(600))
    coded = b"Content-Transfer-Encoding:" + b"\n " * 5000 + b"(" + b"a\n " * 3000 + b")base64\n"
    encoded = part(base64.encodebytes(SPAM), more=coded)
    found = read(more + b"List-Id: last\n" + encoded)
    assert SPAM in found["body"]
    assert b"headers-truncated" in found["defect"]
    assert b"\nX-0:" in found["head"]
    assert b"List-Id: last" in found["head"]
    assert len(found["head"]) < 70_000


NAMED = b'Content-Disposition: attachment; filename="%b"\n'
PAGE = b"<html><p>" + SPAM
MAIL = b"Subject: y\nContent-Transfer-Encoding: base64\n\n" + base64.encodebytes(SPAM)


BINARY = b"application/octet-stream"


@pytest.mark.parametrize(("kind", "name", "data", "is_read"), [
    (b"text/csv", b"a.csv", SPAM, True),
    (b"text/x-card", b"a", SPAM, True),
    (b"application/xhtml+xml", b"a", PAGE, True),
    (BINARY, b"a.txt", SPAM, True),
    (b"image/svg+xml", b"a", b"<svg><text>" + SPAM, True),
    (BINARY, b"a.svg", b"<svg><text>" + SPAM, True),
    (b"image/x", b"a.SVG", b"<svg><text>" + SPAM, True),
    (BINARY, b"a.html", b"\n" * 2000 + PAGE, True),
    (BINARY, b"a.html", b"\0" + PAGE, True),
    (BINARY, b"=?utf-8?q?a=2Exht?=", b"\0" + PAGE, True),
    (BINARY, b"a.bin", PAGE, True),
    (BINARY, b"a", SPAM, True),
    (b"odd/kind", b"a", SPAM, True),
    (b"image/png", b"a.txt", SPAM, True),
    (b"message/global", b"a", MAIL, True),
    (BINARY, b"a.eml", MAIL, True),
    (BINARY, b"a", b"MIME-Version: 1.0\n" + MAIL, True),
    (BINARY, b"a.htm", PAGE.decode().encode("utf-16"), True),
    (b"text/rtf", b"a.rtf", b"{\\rtf1 {\\*\\x <}" + SPAM, True),
    (b"text/rtf", b"a.rtf", SPAM, True),
    (BINARY, b"a.mht", b"Snapshot-Content-Location: a\n" + MAIL, True),
    (b"image/png", b"a.png", SPAM, False),
    (b"application/zip", b"a.zip", b"PK\3\4" + SPAM, False),
    (BINARY, b"a.txt", SPAM + b"\0\1", False),
    (b"application/pdf", b"a.pdf", b"%PDF-1.4 " + SPAM, False),
    (b"application/rtf", b"a.rtf", b"{\\rtf1 " + SPAM, False),
    (b"application/pgp-signature", b"a.asc", b"-----BEGIN PGP SIGNATURE-----" + SPAM, False),
    (BINARY, b"a", b"", False),
])  # fmt: skip
def test_an_attachment_is_read_if_it_is_text(kind, name, data, is_read):
    for encoding, encode in ((b"8bit", bytes), (b"base64", base64.encodebytes)):
        more = NAMED % name + b"Content-Transfer-Encoding: " + encoding + b"\n"
        body = read(multipart(part(HAM), part(encode(data), kind, more)))["body"]
        assert (SPAM in body) == is_read
        assert b"<" not in body


@pytest.mark.parametrize("kind", [b"message/rfc822", BINARY])
@pytest.mark.parametrize("stored", [b"", b"From a@b Mon Jan  1 10:00:00 2024\n", b">From a\n" * 2])
def test_an_attached_message_is_read_whatever_its_line_ends_and_first_lines(kind, stored):
    mail = b"Return-Path: a\nSubject: y\n  z\n\n" + SPAM
    expected = read(multipart(part(mail, b"message/rfc822")))
    more = NAMED % b"a.eml" + b"Content-Transfer-Encoding: base64\n"
    data = base64.encodebytes((stored + mail).replace(b"\n", b"\r\n"))
    found = read(multipart(part(data, kind, more)))
    for origin in ("nested-head", "body", "defect"):
        assert found[origin] == expected[origin]
    assert read(multipart(part(stored + SPAM, b"message/rfc822")))["body"].endswith(stored + SPAM)


HTML = part(b"<p>" + SPAM, b"text/html")


def alternatives(*parts: bytes) -> dict[str, bytes]:
    return read(multipart(*parts, kind=b"alternative"))


LINKED = part(HAM + b" http://ham.example/")  # a link that is not shown does not count
OTHER = part(HAM, b"text/html")


@pytest.mark.parametrize(("parts", "kind"), [
    ((LINKED, HTML), b"alternative"),
    ((HTML, LINKED), b"alternative"),
    ((part(HAM), multipart(HTML, kind=b"related", boundary=b"c")), b"alternative"),
])  # fmt: skip
def test_a_part_that_is_not_shown_and_says_something_else_is_hidden(parts, kind):
    found = read(multipart(*parts, kind=kind))
    assert SPAM in found["body"]
    assert HAM not in found["body"]
    assert HAM in found["hidden"]
    assert b"alternatives-differ" in found["defect"]
    assert "url" not in found


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("kind", [b"x-amp-html", b"watch-html", b"enriched", b"html"])
def test_what_only_some_programs_show_is_shown_beside_html(kind, order):
    one = part(b"<p>" + SPAM, b"text/" + kind)
    others = [part(HAM), part(b"<p>honest words", b"text/html"), one]
    found = alternatives(*others[::order])
    assert SPAM in found["body"]
    assert b"honest words" in found["body"]
    assert HAM in found["hidden"]


def test_a_picture_is_shown_instead_of_its_alternatives():
    picture = part(b"GIF89a", b"image/gif")
    assert HAM in alternatives(part(HAM), picture)["hidden"]
    related = multipart(part(b"<p>" + HAM, b"text/html"), picture, kind=b"related", boundary=b"c")
    assert HAM in alternatives(part(HAM), related)["body"]


# --- headers that programs understand differently --------------------------------------------

CODED = base64.encodebytes(SPAM)
CODED_PART = b"\nContent-Transfer-Encoding: base64\n\n" + CODED
MIXED = b"Content-Type: multipart/mixed; boundary=b"


@pytest.mark.parametrize(("head", "data"), [
    (b"Content-Type: text/plain\nContent-Type: text/html\n", b"cheap <i></i>" + SPAM[6:]),
    (b"Content-Transfer-Encoding: 8bit\nContent-Transfer-Encoding: base64\n", CODED),
    (b"Content-Transfer-Encoding: base64\nContent-Transfer-Encoding: 8bit\n", CODED),
    (b"Content-Transfer-Encoding: base-64\n", CODED),
    (b"Content-Transfer-Encoding: (x) base64\n", CODED),
    (b'Content-Transfer-Encoding: "base64"\n', CODED),
    (b"Content-Transfer-Encoding: quoted\n", SPAM.replace(b"a", b"=61")),
    (b"Content-Transfer-Encoding: quoted-printable\n", SPAM.replace(b"p", b"= \t\np")),
    (b"Content-Transfer-Encoding: x-uuencode\n", b"begin 644 x\n@" + b2a_uu(SPAM)[1:] + b"`\nend"),
    (b"Content-Transfer-Encoding: uue\n", b"a\n%b\n%b" % (b2a_uu(SPAM[:9]), b2a_uu(SPAM[9:]))),
    (
        b"Content-Transfer-Encoding: base64\n" + MIXED + b"\n",
        base64.encodebytes(b"--b\r\nContent-Type: text/html\r\n\r\n<p>" + SPAM),
    ),
    (b"Content-Transfer-Encoding: base64\n\tx\n", SPAM),
    # A stray line: for some programs it ends a head, and others skip it.
    (b"Content-Transfer-Encoding: base64\nno head\n", CODED),
    (MIXED + b"\n", b"--b\nno header" + CODED_PART),
    (MIXED + b"\n", b"--b\nContent-Type: text/plain\nx y: z" + CODED_PART),
    # Lines that only some programs take for boundaries.
    (MIXED + b"; boundary=c\n", b"--c" + CODED_PART),
    (MIXED + b"; boundary=c\n", b"--c" + CODED_PART + b"--b\n\nfirst\n--b--"),
    (MIXED + b" c\n", b"--b c" + CODED_PART),
    (MIXED + b"\n", b"--b\n\nfirst\n--bc" + CODED_PART),
    (MIXED + b"\n", b"--b\n\nfirst\n--b--\n--bc" + CODED_PART),
    (MIXED + b"\n", b"--b\0" + CODED_PART),
    (MIXED[:-1] + b"(x)b\n", b"--b" + CODED_PART),
    (MIXED[:-1] + b'""\n', b"--" + CODED_PART),
])  # fmt: skip
def test_a_body_is_read_in_every_way_that_programs_read_it(head, data):
    assert SPAM in b" ".join(read(head + b"\n" + data)["body"].split())


@pytest.mark.parametrize(("size", "times"), [(1, 117), (2 << 20, 36)])
def test_parts_that_are_doubled_again_and_again_are_read_a_bounded_number_of_times(size, times):
    inner = part(SPAM.ljust(size))
    for i in range(18):
        inner = multipart(inner, boundary=b"b%d-" % i)
        inner = b"Content-Type: text/plain\n" + inner
    assert len(Parts(open_message(inner), LIMITS).texts) == times


def test_alternatives_that_say_the_same_are_both_read():
    text = HAM.replace(b" ", b"\n") + b"\nhttp://a.example/unsubscribe/once/and/for/all"
    html = b"<p>" + HAM.upper().replace(b" ", b"</p><p>") + b"<a href=http://a.example/>Bye</a>"
    found = alternatives(part(text), part(html, b"text/html"))
    assert found["body"].lower().count(HAM.split()[0]) == 2
    assert "hidden" not in found
    assert "defect" not in found


@pytest.mark.parametrize(("text", "html"), [
    ("Grüße aus Österreich " * 4, "<p>gr&uuml;&szlig;e aus &Ouml;sterreich"),
    ("免费发票，\n优惠多\n多，欢迎来\n电", "<p>免费发票，优惠多多，欢迎来电"),
])  # fmt: skip
def test_the_same_words_in_any_script_do_not_differ(text, html):
    kinds = (b"text/plain; charset=utf-8", b"text/html; charset=utf-8")
    assert "defect" not in alternatives(*map(part, (text.encode(), html.encode()), kinds))


def test_other_chinese_text_differs():
    texts = ("会议纪要：下周三上午讨论项目进度安排", "<p>免费发票，优惠多多，欢迎来电")
    kinds = (b"text/plain; charset=utf-8", b"text/html; charset=utf-8")
    found = alternatives(*map(part, map(str.encode, texts), kinds))
    assert texts[0].encode() in found["hidden"]


NOTE = b"Your mail reader cannot show HTML. Please see our site."


@pytest.mark.parametrize(("message", "shown"), [
    (multipart(part(NOTE), HTML, kind=b"alternative"), NOTE),
    # An invitation stands beside its alternatives.
    (multipart(part(SPAM), HTML, part(HAM, b"text/calendar"), kind=b"alternative"), HAM),
    (multipart(part(HAM), HTML, kind=b"related"), HAM),
    # Many programs show related parts like any others, and list files and messages.
    (multipart(OTHER, HTML, kind=b"related; start=b"), HAM),
    (multipart(HTML, part(HAM, b"text/html", NAMED % b"a"), kind=b"alternative"), HAM),
    (multipart(HTML, part(HAM, b"text/csv"), kind=b"alternative"), HAM),
    (multipart(HTML, part(OTHER, b"message/rfc822"), kind=b"alternative"), HAM),
])  # fmt: skip
def test_parts_that_are_no_alternatives_are_shown(message, shown):
    found = read(message)
    assert SPAM in found["body"]
    assert shown in found["body"]
    assert "hidden" not in found
    assert "defect" not in found


def test_many_alternatives_that_differ_a_little_are_hidden_together():
    words = HAM.split()
    pairs = [
        multipart(part(b" ".join(two)), HTML, kind=b"alternative", boundary=b"c" + two[0])
        for two in zip(words[:20:2], words[1:20:2], strict=True)
    ]
    found = read(multipart(*pairs))
    assert b"agenda" not in found["body"]
    assert words[0] in found["hidden"]


WORDS = b" ".join(b"word%06d" % i for i in range(100_000))  # 1.1 MB


def test_the_end_is_kept_from_the_start_of_a_line():
    data = b"a" * 70 + b"\n" + b"b" * 40 + b"\n" + b"c" * 9
    assert ends(data, 80) == b"a" * 60 + b"c" * 9
    assert ends(b"a" * 90 + b"b" * 10, 80) == b"a" * 70 + b"b" * 10  # one line


@examples(200)
@given(st.lists(st.integers(0, 50), max_size=20), st.integers(0, 300))
def test_small_sizes_are_granted_and_the_others_share_the_rest(sizes, budget):
    granted = granted_shares(sizes, budget)
    both = list(zip(granted, sizes, strict=True))
    cut = [own for own, size in both if own < size]

    assert sum(granted) <= budget
    assert all(own <= size for own, size in both)
    if cut:  # no part gets more than those that are cut, but for rounding; nothing is left over
        assert max(cut) - min(cut) <= 1
        assert max(granted) <= max(cut) + 1
        assert sum(granted) == budget


def test_shares_do_not_depend_on_the_order_of_the_parts():
    texts = [b"small one", WORDS, b"small two", WORDS[::-1]]
    in_order = shared(texts, [False] * 4, 10_000)
    assert shared(texts[::-1], [False] * 4, 10_000) == in_order[::-1]
    assert in_order[::2] == texts[::2]


@examples(100)
@given(st.lists(st.binary(max_size=9), max_size=40), st.integers(1, 20))
def test_the_first_and_the_last_pieces_are_chosen_and_never_too_many(pieces, most):
    found = spread_indices(pieces, most)
    assert found == sorted(set(found))
    assert len(found) <= most
    assert not pieces or found[0] == 0
    assert most < 4 or not pieces or found[-1] == len(pieces) - 1


def test_a_large_piece_is_chosen_wherever_it_stands():
    for place in range(200):
        pieces = [b"x"] * 200
        pieces[place] = b"spam " * 100
        assert place in spread_indices(pieces, 20)


@pytest.mark.parametrize("place", [0, 77_777, 99_999])
def test_no_stretch_of_a_text_is_left_out(place):
    words = WORDS.split()
    words[place : place + 5_000] = [b"spam"] * len(words[place : place + 5_000])
    assert b"spam" in sampled(b" ".join(words), 100_000)


def test_a_sample_has_whole_words_of_the_beginning_the_middle_and_the_end():
    sample = sampled(WORDS, 100_000)
    found = sample.split()
    numbers = [int(word[4:]) for word in found]

    assert 95_000 < len(sample) <= 100_200
    assert set(found) <= set(WORDS.split())
    assert numbers == sorted(numbers)
    assert numbers[:2000] == list(range(2000))
    tags = "".join(f"<i id={n:070}>{'日本語' * 30}" for n in range(3_000)).encode()
    assert set(re.sub(r"<[^<>\n]*", "", sampled(tags, 100_000, True).decode())) == set("\n>日本語")
    assert numbers[-2000:] == list(range(98_000, 100_000))
    assert {number // 10_000 for number in numbers} == set(range(10))
    in_lines = sampled(WORDS.replace(b" ", b"\n"), 100_000).split()
    assert set(in_lines) <= set(WORDS.split())
    # Its places depend on the text.
    assert len(set(sampled(WORDS + b".", 100_000).split()) - set(found)) > 1000
    one, other = ([b"%03d" % (n + k) for n in range(200)] for k in (0, 1))
    assert spread_indices(one, 20) != spread_indices(other, 20)


@examples(60)
@given(st.text(max_size=300), st.integers(0, 100), st.booleans())
def test_samples_of_any_text_are_utf8(text, most, is_html):
    sampled((text * 3).encode(), most, is_html).decode()


WORDS_OF_SPAM = b" ".join(b"spam%04d" % i for i in range(5000))


@pytest.mark.parametrize(("filler", "is_html"), [
    (b" \n\t" * 300_000, False),
    (b"<!-- " + WORDS + b" -->", True),
    (b"<script>" + WORDS + b"</script>", True),
    (b"<p>&nbsp;</p>&nbsp;" + b"&nbsp; " * 100_000, True),
    (b'<img src="data:image/png;base64,' + b"iVBORw0KGgo" * 90_000 + b'">', True),
])  # fmt: skip
def test_what_takes_no_room_is_dropped_before_a_text_is_sampled(filler, is_html):
    assert WORDS_OF_SPAM in shared([filler + WORDS_OF_SPAM + filler], [is_html], 100_000)[0]


def test_a_long_style_sheet_is_shortened_but_stays():
    sheet = b"<style>p{display:none}" + b"a{color:red}\n" * 20_000 + b"</style>"
    text = shared([sheet + WORDS_OF_SPAM], [True], 120_000)[0]
    assert text.startswith(b"<style>p{display:none}")
    assert WORDS_OF_SPAM in text
