"""Header lines: folding, encoded words, parameters."""

import time
from base64 import b64encode
from email.header import Header

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.mail import headers
from nbspam.mail.digest import digest_of
from nbspam.mail.message import by_header, parse_message
from support import examples, memory_of

SCRAPS = b"=? ?= utf-8 gb18030 ?Q? ?b? =E4 4oKs ? \xff a ; name * 0 *1* = ' \" \\ %e4 \x1b$B"
PARTS_OF_VALUES = st.sampled_from([b" ", b"\n ", *SCRAPS.split(b" ")])
values = st.lists(PARTS_OF_VALUES | st.binary(max_size=3), max_size=12).map(b"".join)


def encoded(charset: str, encoding: str, text: bytes) -> bytes:
    """Return one encoded word of bytes, which need not be whole characters."""
    quoted = b"".join(b"=%02X" % byte for byte in text)
    body = b64encode(text) if encoding == "B" else quoted
    return b"=?" + charset.encode() + b"?" + encoding.encode() + b"?" + body + b"?="


@pytest.mark.parametrize(("block", "lines"), [
    (b"Subject :  hi", [(b"Subject", b"hi")]),
    (b"Subject: hi\n\tthere\n you", [(b"Subject", b"hi\tthere you")]),
    (b"Subject:\n hi", [(b"Subject", b"hi")]),
    (b"Subject:\nTo: a", [(b"Subject", b""), (b"To", b"a")]),
])  # fmt: skip
def test_lines_are_unfolded_and_split(block, lines):
    found = headers.header_lines(b"\n" + block)
    assert [(name.rstrip(), headers.unfold(value)) for name, value in found] == lines


@pytest.mark.parametrize(("data", "is_header"), [
    (b"A:", True), (b"X-Y : z", True), (b"a b: c", False), (b" a: b", False), (b"", False),
])  # fmt: skip
def test_a_header_line_has_a_name_and_a_colon(data, is_header):
    assert headers.looks_like_header(data) == is_header


@pytest.mark.parametrize(("value", "text"), [
    (b"plain", "plain"), (b"=?utf-8?Q?caf=C3=A9?=", "café"),
    (b"=?koi8-r*ru?Q?=D1?=", "я"),  # with a language
    (b"=?utf-8?Q?a?= =?utf-8?Q?b?=", "ab"), (b"=?utf-8?Q?a?= b =?utf-8?Q?c?=", "a b c"),
    (b"=?utf-8?Q?a?=\t =?koi8-r?B?0NLJ18XU?=", "aпривет"), (b"=?utf-8?Q?what??= now", "what? now"),
    (b"=?utf-8?Q?two words?=", "two words"), (b"=?utf-8?Q??=", ""),
    (b"=?utf-8?B?5Lya =?utf-8?B?5Lya?=", "=?utf-8?B?5Lya 会"),  # the first without its end
    (b"=?utf-8?Q?open", "=?utf-8?Q?open"), (b"=?utf-8?X?a?=", "=?utf-8?X?a?="),
    (b"=?nonsense?Q?caf=E9?=", "café"), (b"caf\xe9", "café"), ("café".encode(), "café"),
    (b"=?utf-8 ?Q?a?= =??B?Y2Fm6Q==?=", "acafé"),
    (b"\x1b$B$3$s\x1b(B", "こん"),
    ("免费".encode("gb18030") + b" =?utf-8?Q?=E2=82=AC?=", "免费 €"),
])  # fmt: skip
def test_values_are_decoded(value, text):
    assert headers.decode_value(value).decode() == text


@pytest.mark.parametrize("piece", [b"=?a?q?x", b"=?a?q?", b"=?", b"=?a?q?x?=", b"?="])
def test_no_long_name_of_a_file_takes_long(piece):
    name = piece * 20_000 + b"%0A?="  # line feeds stand in no other value
    start = time.process_time()
    parse_message(b"Content-Disposition: attachment; filename*=utf-8''" + name + b"\n\n")
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    "head", ["X%d<: a", "Content-Type: %d<", "Content-Transfer-Encoding: %d<"]
)
def test_what_long_heads_say_is_not_kept(head):
    def read(numbers):
        for number in numbers:
            data = (head % number).replace("<", " " * 30_000).encode() + b"\n a\n\nbody"
            assert list(by_header(parse_message(data).fields))
            digest_of(data)

    read([0])
    kept, _ = memory_of(read, range(1, 51))
    assert kept < 1_000_000  # bytes, of 1.5 million in one of several caches


@pytest.mark.parametrize("encoding", ["B", "Q"])
def test_a_character_may_be_split_between_encoded_words(encoding):
    data = "你好吗世".encode()
    for cut in range(1, len(data)):
        words = encoded("utf-8", encoding, data[:cut]), encoded("UTF-8", encoding, data[cut:])
        assert headers.decode_value(b" ".join(words)).decode() == "你好吗世"


@pytest.mark.parametrize(("charset", "text"), [
    ("utf-8", "Große Freude: 你好 привет " * 5), ("iso-8859-1", "Große Freude " * 9),
    ("gb18030", "免费发票优惠多多" * 9), ("iso-2022-jp", "こんにちは世界" * 9),
    ("koi8-r", "привет мир " * 9),
])  # fmt: skip
def test_headers_written_by_the_standard_library_are_read(charset, text):
    lines = headers.header_lines(b"\nSubject: " + Header(text, charset).encode().encode())
    assert headers.decode_value(headers.unfold(lines[0][1])).decode().split() == text.split()


@pytest.mark.parametrize(("value", "name", "text"), [
    (b"text/plain; CHARSET = utf-8 (really)", "charset", "utf-8"),
    (b"text/plain;charset=a;charset=b", "charset", "a"),
    (b"text/html charset=utf-8", "charset", "utf-8"),
    (b'a/b; name="a;b=c"; x=y', "name", "a;b=c"),
    (b'a/b; name="say \\"hi\\""', "name", 'say "hi"'),
    (b'a/b; name="open', "name", "open"), (b'a/b; name="\x95\\\x8e\xa6"', "name", "表示"),
    (b"a/b; filename*=utf-8'en'%e2%82%ac%20rates", "filename", "€ rates"),
    (b"a/b; filename=plain; filename*=utf-8''caf%C3%A9", "filename", "café"),
    (b"a/b; filename*1=cd; filename*0=ab", "filename", "abcd"),
    (b"a/b; name*0*=utf-8''%e4%bd; name*1*=%a0; name*2=\"%41\"", "name", "你%41"),
    (b"a/b; filename*0*=utf-8''a%2; filename*1*=0b", "filename", "a%20b"),
    (b"a/b; filename*=no-charset", "filename", "no-charset"),
    (b"a/b; filename*9999999=a; filename*=b", "filename", "b"),
])  # fmt: skip
def test_parameters_are_found_and_decoded(value, name, text):
    assert headers.decode_value(headers.parameters(value)[name]).decode() == text


@examples(200)
@given(values)
def test_any_value_is_decoded_to_utf8(value):
    headers.decode_value(value).decode()
    headers.header_lines(value)
    headers.parameters(value)


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_base64_is_decoded_after_padding_too(first, second):
    assert headers.decode_base64(b64encode(first)) == first
    assert headers.decode_base64(b64encode(first) + b"\n" + b64encode(second)) == first + second


@pytest.mark.parametrize(
    "text", [b"aGVsbG8", b"aGVs\nbG8=", b"aG*Vs bG8==", b"aGVsbG8=\n\n", b"aGVsbG8=x"]
)
def test_broken_base64_is_decoded_as_far_as_possible(text):
    assert headers.decode_base64(text).startswith(b"hello")


def test_of_telling_headers_of_one_name_the_first_counts():
    block = b"message-id : a\nMESSAGE-ID: b\nX-Subject: c\nSubject: d\nContent-Type: e"
    found = {b"message-id": b" a", b"subject": b" d", b"content-type": b" e"}
    assert headers.open_message(block).telling == found
    assert headers.open_part(b"buy now")[1:3] == (0, 1)


@pytest.mark.parametrize("name", [b"=?utf-8?q?Subject?=", b"=?utf-8?q?S?=ubject"])
def test_an_encoded_word_in_the_place_of_a_name_makes_no_subject(name):
    head = name + b": win\nContent-Disposition: attachment; filename=a.b\n\nbody"
    subjects = [field.text for field in parse_message(head).fields if field.origin == "body"]
    assert subjects == [b"", b"body"]
    assert parse_message(b"Subject: hello\n" + head).fields[1] == ("body", b" hello")
    assert parse_message(head).fields[0].text.startswith(b"\n" + name + b": win")


LINES = [
    b"\n", b"\n\n", b"A: b", b"Subject: c", b"c", b":", b" ", b"\t", b"\xc3\xa9", b"message-id:d"
]  # fmt: skip


@examples(300)
@given(st.lists(st.sampled_from(LINES)))
def test_a_head_ends_where_it_ends_for_the_reader(lines):
    data = b"X: y\n" + b"".join(lines)
    _, stop, body, telling, *_ = headers.open_message(data)
    message = parse_message(data)

    texts = [field.text for field in message.fields if field.origin == "body"]
    if (subject := telling.get(b"subject")) is not None:
        assert texts.pop(0).split() == headers.decode_value(subject).split()
    assert texts[-1] == headers.decode_value((b"\n" + data)[body:])
    noted = dict(message.fields).get("defect", b"").split()
    assert (b"no-blank-line" in noted) == (body == stop + 1 <= len(data))
