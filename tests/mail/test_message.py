"""Messages: agreement with the standard library, metamorphic laws, limits, hostile mail."""

import base64
import email
from email.message import EmailMessage
from email.policy import default
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.mail.headers import Field, open_part, unfold
from nbspam.mail.message import (
    LIMITS,
    Message,
    ReadingLimits,
    by_header,
    own_beginnings,
    parse_message,
    plain_text,
    with_beginning,
    with_signs,
)
from nbspam.mail.parts import Parts
from support import examples

EVIDENCE = Path(__file__).parents[1] / "evidence"
TEXTS = {
    "utf-8": "Grüße 你好 привет 💰\nhttp://a.example/x\n",
    "iso-8859-1": "Grüße, ein Café\nhttp://a.example/x\n",
    "gb18030": "免费发票，优惠多多\nhttp://a.example/x。请看\n",
    "iso-2022-jp": "こんにちは、世界\nhttp://a.example/x\n",
    "koi8-r": "привет, мир\nhttp://a.example/x\n",
}
LATER = [
    b"X-Spam-Status: Yes, score=9\n required=5 tests=PILLS", b"X-Spam-Flag: 1", b"X-From-Line: a",
    b"X-Bogosity: Spam, tests=bogofilter, spamicity=1.000000", b"Status: RO", b"X-Status: A",
    b"Delivered-To: victim@example.org", b"X-Original-To: victim@example.org", b"X-TUID: a1",
    b"X-Mozilla-Status: 0001", b"Content-Length: 12", b"X-UIDL: abc", b"X-Nbspam: spam; 0.99",
    b"X-Account-Key: account1", b"X-GM-THRID: 17", b"X-Envelope-To: a@b.c", b"X-Quarantine-ID: 1",
]  # fmt: skip


def found(message: Message, origin: str) -> str:
    """Return all text of one origin."""
    fields = list(by_header(message.fields))
    texts = [text for place, text in fields if place == origin]
    if origin == "body" and (subjects := [text for place, text in fields if place == "subject"]):
        texts.remove(subjects[0])  # words of the subject count as words of the body, too
    # In these fields line ends matter.
    as_it_is = origin in ("body", "url", "hidden", "alt")
    return "\n".join((text if as_it_is else unfold(text)).decode() for text in texts)


def defects(message: Message) -> tuple[str, ...]:
    return tuple(found(message, "defect").split())


def body(data: bytes) -> str:
    return found(parse_message(data), "body").strip()


# --- agreement with the standard library ---------------------------------------------------


@pytest.mark.parametrize("charset", TEXTS)
def test_text_is_read_as_the_standard_library_reads_it(charset):
    for encoding in ("8bit", "quoted-printable", "base64"):
        message = EmailMessage()
        message["Subject"] = TEXTS[charset].split("\n")[0]
        message["From"] = "Jörg <joerg@example.org>"
        message.set_content(TEXTS[charset], charset=charset, cte=encoding)
        ours = parse_message(bytes(message))
        theirs = email.message_from_bytes(bytes(message), policy=default)

        assert found(ours, "body") == theirs.get_content() == TEXTS[charset]
        assert found(ours, "subject") == theirs["subject"]
        assert found(ours, "from") == theirs["from"]
        assert found(ours, "url") == "://a.example/x"
        assert not defects(ours)


def test_alternative_mixed_and_nested_parts_are_read_in_order():
    inner = EmailMessage()
    inner["Subject"] = "inner"
    inner.set_content("inside")
    message = EmailMessage()
    message["Subject"] = "outer"
    message.set_content("plain")
    message.add_alternative("<p>rich <a href='http://b.example/'>link</a>", subtype="html")
    message.add_attachment("attached", filename="täglich.txt")
    message.add_attachment(
        b"\0\1", maintype="image", subtype="png", filename="免费发票" * 9 + ".png"
    )
    message.add_attachment(inner)
    ours = parse_message(bytes(message))

    assert found(ours, "body").split() == ["plain", "rich", "link", "attached", "inside"]
    assert found(ours, "filename").split("\n")[:2] == ["täglich.txt", "免费发票" * 9 + ".png"]
    assert (found(ours, "subject"), found(ours, "nested")) == ("outer", "inner")
    assert found(ours, "url") == "http://b.example/"
    assert not defects(ours)


honest = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff"), max_size=60
)


@examples(60)
@given(honest, st.sampled_from(["8bit", "quoted-printable", "base64"]))
def test_any_text_is_read_back(text, encoding):
    message = EmailMessage()
    message["Subject"] = "x"
    message.set_content(text + "\n", cte=encoding)
    assert found(parse_message(bytes(message)), "body") == text + "\n"


@examples(60)
@given(honest)
def test_any_subject_is_read_back(text):
    message = EmailMessage()
    message["Subject"] = text
    message.set_content("x")
    theirs = email.message_from_bytes(bytes(message), policy=default)
    assert found(parse_message(bytes(message)), "subject").split() == theirs["subject"].split()


# --- two spellings of the same message ------------------------------------------------------


def test_an_unknown_encoding_is_not_undone_if_the_body_does_not_look_like_it():
    words = "Buy now:\n" + "cheap" * 9
    assert body(b"Content-Transfer-Encoding: x-odd\n\n" + words.encode()) == words


def test_a_footer_in_clear_behind_base64_is_not_decoded():
    head, coded = b"Content-Transfer-Encoding: base64\n\n", base64.encodebytes(b"cheap pills;" * 9)
    footer = b"____\nUnsubscribe\n\nhttp://lists.example/listinfo\n"
    for more in (b"", footer, footer * 9, b"- a\n"):
        assert body(head + coded + more) == "cheap pills;" * 9
    for text in (coded, coded.replace(b"7", b"7\n"), coded.replace(b"c", b"c ")):
        assert body(head + coded + b"!\n" + text + b"!") == "cheap pills;" * 18
    assert body(head + b"\n\nBuy now!") == body(head + b"Buy now!") != ""  # no base64 at all


def test_the_name_of_a_file_is_whole_and_decoded_in_its_head():
    name = b"name*0*=utf-8''%e5%8f%91%e7;\n name*1*=%a5%a8.pdf"
    message = parse_message(MIXED + b"--b\nContent-Type: a/pdf;\n " + name + b"\n\n--b--")
    assert found(message, "mime").split(None, 2)[2] == "a/pdf; name=发票.pdf"
    whole = parse_message(b"Content-Type: a/pdf; " + name + b"\nSubject: x; y*=z\n\n")
    assert found(whole, "mime") == "a/pdf; name=发票.pdf"
    assert found(whole, "subject") == "x; y*=z"


def test_line_ends_change_nothing(mails):
    for path in sorted(mails.rglob("*.eml"))[::4]:
        data = path.read_bytes().replace(b"\r\n", b"\n")
        assert parse_message(data.replace(b"\n", b"\r\n")) == parse_message(data), path


@pytest.mark.parametrize(
    "envelope", [b"From x Thu Aug 22\n", b">From x\n", b"From x\n>From x\n", b"\n", b"\n>From x\n"]
)
def test_from_lines_of_mailboxes_change_nothing(envelope):
    data = b"Subject: x\n\nhi\n"
    assert parse_message(envelope + data) == parse_message(data)


def test_folding_changes_nothing():
    flat = MIXED.replace(b": x", b": buy pills now") + b"--b\n\nx\n--b--\n"
    folded = flat.replace(b": ", b":\n ").replace(b"pills", b"pills\n").replace(b"; b", b";\n\tb")
    ours, other = parse_message(flat), parse_message(folded)
    ours, other = ([text.split() for _, text in by_header(m.fields)] for m in (ours, other))
    assert ours == other


def test_headers_and_tags_of_subjects_that_are_added_later_change_nothing():
    data = b"Subject: x\nFrom: y\n"
    plain = list(by_header(parse_message(data + b"\nhi\n").fields))
    for line in LATER:
        for changed in (data + line + b"\n", line + b"\n" + data):
            assert list(by_header(parse_message(changed + b"\nhi\n").fields)) == plain, line
    for tag in (b"[SPAM] ", b"***SPAM***", b"[SPAM] {Spam?}\n "):
        tagged = data.replace(b"x", tag + b"x")
        assert list(by_header(parse_message(tagged + b"\nhi\n").fields)) == plain, tag
    assert found(parse_message(b"Subject: [Ham radio] x\n\nhi\n"), "subject") == "[Ham radio] x"


def test_a_subject_is_read_as_utf8_whatever_the_body_and_counts_as_words_of_it():
    data = "Subject: Grüße\nContent-Type: text/plain; charset=iso-8859-1\n\nhi".encode()
    assert found(parse_message(data), "subject") == "Grüße"
    message = parse_message(b"Subject: =?utf-8?q?cheap_pills?=\n now\n\nbuy")
    texts = [text.split() for place, text in message.fields if place == "body"]
    assert texts == [[b"cheap", b"pills", b"now"], [b"buy"]]


# --- the shape of mail --------------------------------------------------------------------

MIXED = b"Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n"


@pytest.mark.parametrize(("data", "text", "noted"), [
    (b"", "", ()),
    (b"Subject: x", "", ()),
    (b"\xef\xbb\xbfSubject: x\r\n\r\nhi", "hi", ()),
    (b"<html><b>hi</b>", "hi", ("no-headers",)),
    (b"Subject: x\n\n<!DOCTYPE HTML><b>hi", "hi", ()),
    (b"Subject: x\nContent-Type: text/plain\n\n<html>", "<html>", ()),
    (b"Subject: x\nbuy now\nre: y\n\nhi", "buy now\nre: y\n\nhi", ("no-blank-line",)),
    (b"Subject: x\nContent-Type: text/html charset=utf-8\n\n<b>hi", "hi", ()),
    (b"Subject: x\nContent-Type: ; charset=utf-8\n\nhi", "hi", ()),
    (b"Subject: x\nContent-Type: text / html\n\n<b>hi", "hi", ()),
    (b"Subject: x\nContent-Type: (a) text/(b)html\n\n<b>hi", "hi", ()),
    (b'Subject: x\nContent-Type: "text/html"\n\n<b>hi', "hi", ()),
    (b"Subject: x\nContent-Type: image/png\n\nhi", "", ()),
    (b"Subject: x\nContent-Type: multipart/mixed\n\nhi", "hi", ("no-boundary",)),
    (MIXED + b"nothing", "nothing", ("no-boundary",)),
    (
        MIXED.replace(b" b", b" x" * 9000 + b"; b") + b"no\n--b\nContent-Id: x\n\none\n--b--",
        "one",
        (),
    ),
    (MIXED + b"before\n--b\n\none\n--b\n\ntwo\n--b--\nbehind", "one\ntwo", ()),
    (MIXED + b"--b \n\none\n--b\t\n\ntwo\n--b-- \n", "one\ntwo", ()),
    (MIXED + b"--b\n\none\n--b\n\ntwo", "one\ntwo", ()),
    (MIXED + b"--b\n\none\n--bb\n--b-\ntwo\n--b--", "one\n--bb\n--b-\ntwo", ()),
    (MIXED + b"--b\n\none\n--b--\nno\n--b\n\ntwo\n", "one\ntwo", ("parts-after-end",)),
    (MIXED + b"--b\nContent-Type: text/calendar\n\nBEGIN\n--b--", "BEGIN", ()),
    (MIXED.replace(b"mixed", b"digest") + b"--b\n\nSubject: y\n\nhi\n--b--", "hi", ()),
    (b"Subject: x\n\nb\0u\0y\0", "buy", ()),
    (
        b"Subject: x\nContent-Type: text/plain; DelSp=YES\n\nche \nap \n >pi \nlls\n-- \n>a \n>b",
        "cheap>pills\n-- \n>a \n>b",
        (),
    ),
])  # fmt: skip
def test_broken_mail_is_read_as_people_see_it(data, text, noted):
    message = parse_message(data)
    assert (found(message, "body").strip(), defects(message)) == (text, noted)


RUSSIAN = "привет".encode("koi8-r")


@pytest.mark.parametrize(("content_type", "html", "text"), [
    (b"text/html", b'<meta charset="koi8-r">' + RUSSIAN, "привет"),
    (b"text/html", b"<META x CONTENT='text/html; charset=KOI8-R'>" + RUSSIAN, "привет"),
    (b"text/html; charset=koi8-r", b"<meta charset=utf-8>" + RUSSIAN, "привет"),
    (b"text/html", b"<meta charset='utf-7'>+AGE-", "+AGE-"),
    (b"text/html", b"<meta charset=UTF-16LE>buy pills", "buy pills"),
    (b"text/html", b"<meta charset=unicode>buy  pills", "buy  pills"),
    (b"text/html", b" " * 1024 + b"<meta charset=koi8-r>caf\xe9", "café"),
])  # fmt: skip
def test_html_can_declare_its_charset_near_its_beginning_only(content_type, html, text):
    assert body(b"Subject: x\nContent-Type: %b\n\n%b" % (content_type, html)) == text


@pytest.mark.parametrize(("head", "text"), [(b"", ""), (b"; name=a.htm", "deal")])
def test_scripts_and_frames_of_attached_pages_write_text_and_those_of_mail_do_not(head, text):
    disposition = b"\nContent-Disposition: attachment" if head else b""
    for page in (
        b"<script>write(atob('%b'))</script>" % base64.b64encode(b"<p title=b>deal</p>"),
        b"<iframe srcDoc = '&lt;p>deal&lt;/p>'></iframe><!--",
        b"<iframe srcdoc=&lt;iframe&#32;srcdoc=&quot;&lt;p&gt;deal&quot;&gt;><a b='",
        b"<iframe srcdoc='&#%b60;p>deal&lt;!-- &#%b;'></iframe><!--" % (b"0" * 5000, b"9" * 5000),
    ):
        read = body(b"Content-Type: text/html%b%b\n\n%b" % (head, disposition, page))
        assert read.replace("-->", "").strip() == text


def test_a_uuencoded_file_is_a_file_name_and_not_text():
    lines = (b"M" + b"#" * 60 + b"\n") * 3 + b"#AAAA\n`\nend\n"
    message = parse_message(b"Subject: x\n\nhi\nbegin 644 pills.exe\n" + lines + b"bye")
    assert found(message, "filename") == "pills.exe"
    assert found(message, "body").split() == ["hi", "bye"]
    # Words are none.
    assert body(b"Subject: x\n\nbegin 644 x\nBUY PILLS\nNOW\n") == "begin 644 x\nBUY PILLS\nNOW"


def test_text_that_is_not_mail_is_one_field():
    assert plain_text("Subject: 你好".encode()).fields == (("body", "Subject: 你好".encode()),)


# --- limits -------------------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "most", "data", "defect"), [
    ("data", 20, b"Subject: x\n\n" + b"a" * 9, "truncated"),
    ("text", 8, b"Subject: x\n\n" + b"a" * 9, "truncated"),
    ("headers", 9, b"Subject: x\n\na", "headers-truncated"),
    ("parts", 5, MIXED + b"--b\n\na\n" * 3, "too-many-parts"),
    ("depth", 2, b"Content-Type: message/rfc822\n\n" * 3, "too-deep"),
])  # fmt: skip
def test_every_limit_holds_and_has_its_defect(limit, most, data, defect):
    assert defects(parse_message(data, ReadingLimits(**{limit: most}))) == (defect,)
    assert not defects(parse_message(data, ReadingLimits(**{limit: most + 1})))
    assert defect in defects(parse_message(data, ReadingLimits(**{limit: 1})))


def test_a_subject_that_the_limit_of_heads_leaves_out_is_decoded():
    subject = b"A: 1\nB: 2\nSubject: =?ascii?Q?=66ree?=\nC: 3\nD: 4\n\n"
    assert found(parse_message(subject, ReadingLimits(headers=12)), "body").split() == ["free"]


def test_links_are_counted_up_to_a_limit():
    message = parse_message(b"Subject: x\n\n" + b"http://a.example " * 2000)
    assert LIMITS.urls / 2 < len(found(message, "url").split("\n")) <= LIMITS.urls


@pytest.mark.parametrize("data", [
    b"Subject: " + b"a b " * (1 << 20) + b"\n\nbody",
    b"Content-Type: multipart/mixed; boundary=b\n\n"
    + (b"--b\nX-A: " + b"a b " * 4000 + b"\n\nt\n") * 400,
    b"\n" + (b"begin 644 " + b"a b " * 45 + b"\nM" + b"`" * 60 + b"\n`\nend\n") * 20000,
], ids=["subject", "heads of parts", "names of uuencoded files"])  # fmt: skip
def test_all_fields_together_are_bounded(data):
    message = parse_message(data)
    assert "truncated" in defects(message)
    assert len(data) > 3 << 20
    assert sum(len(field.text) for field in message.fields) <= LIMITS.source + 1000


# --- whatever the bytes are ----------------------------------------------------------------


def check(data: bytes) -> None:
    """Parse a message, and check what holds for every message."""
    message = parse_message(data)
    assert list(defects(message)) == sorted(set(defects(message)))
    for _, text in message.fields:
        text.decode()  # does not raise: all is UTF-8


SCRAPS = [
    b"\n", b"\n\n", b"--b", b"--b--", b"\n--b\n", b" ", b"=?utf-8?q?=e4?=", b"<html>", b"<!--",
    b"\xe4", b"\0", b"Content-Type: multipart/mixed; boundary=b\n",
    b"Content-Type: text/html; charset=utf-16\n", b"Content-Type: message/rfc822\n",
    b"Content-Transfer-Encoding: base64\n", b"Subject: ", b"begin 644 x\n",
    b"Content-Disposition: attachment; filename*0*=gbk''%e4\n", b"5Lg=", b"=E4=\n", b"From ",
    b"\r", b"a" * 70,
]  # fmt: skip


@examples(150)
@given(st.binary(max_size=200) | st.lists(st.sampled_from(SCRAPS), max_size=14).map(b"".join))
def test_any_bytes_and_scraps_of_mail_are_read(data):
    check(data)
    check(b"Subject: x\n\n" + data)


@examples(60)
@given(st.data())
def test_mutated_mail_is_read(mails, data):
    original = data.draw(st.sampled_from(sorted(mails.rglob("*.eml")))).read_bytes()[:4000]
    start = data.draw(st.integers(0, len(original)))
    end = min(len(original), start + data.draw(st.integers(0, 300)))
    check(original[:start] + data.draw(st.sampled_from(SCRAPS)) + original[end:])


def test_all_embedded_mail_has_text(mails):
    for path in mails.rglob("*.eml"):
        check(path.read_bytes())
        origins = {origin for origin, _ in by_header(parse_message(path.read_bytes()).fields)}
        assert "header" in origins, path


# --- hostile mail: defects or facts to find, and words that must or must not be visible ----

HOSTILE: dict[str, tuple[str, str, str]] = {
    "alternatives-without-text.eml": ("", "hello", ""),
    "html-long-number-href.eml": ("", "x", ""),
    "html-long-number-text.eml": ("", "", ""),
    "html-long-number-zeros.eml": ("", "", ""),
    "boundary-prefix.eml": ("", "viagra", ""),
    "boundary-reused.eml": ("no-boundary", "viagra", ""),
    "charset-idna.eml": ("charset-unknown", "viagra", ""),
    "charset-meta-only.eml": ("", "免费发票", ""),
    "charset-none-gbk.eml": ("charset-missing", "免费发票", ""),
    "charset-utf16-bom-in-latin.eml": ("", "viagra", ""),
    "comment-in-word.eml": ("comment-in-word", "viagra", "junk"),
    "comment-never-closed.eml": ("comment-open", "hello", "viagra"),
    "comment-short.eml": ("", "viagra", ""),
    "deep-nesting.eml": ("too-deep", "hello", ""),
    "end-line-lies.eml": ("parts-after-end", "viagra", ""),
    "header-body-without-blank-line.eml": ("no-blank-line", "viagra", ""),
    "hidden-nested.eml": ("hidden-text", "viagra", "innocent"),
    "hidden-void.eml": ("", "viagra", ""),
    "html-without-headers.eml": ("no-headers", "viagra", "html"),
    "html-without-type.eml": ("", "viagra", "html"),
    "nul-bytes.eml": ("", "pills", ""),
    "padding-inside-base64.eml": ("", "viagra", ""),
    "uuencode-shield.eml": ("", "VIAGRA", ""),
    "word-split-in-character.eml": ("", "hello", ""),
}


def test_every_hostile_mail_has_an_expectation():
    assert {path.name for path in EVIDENCE.glob("*.eml")} == set(HOSTILE)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_mail_is_seen_through(name):
    message = parse_message((EVIDENCE / name).read_bytes())
    fact, seen, unseen = HOSTILE[name]
    noted = found(message, "defect").split() + found(message, "html").split()
    assert fact in noted if fact else not defects(message)
    assert seen in found(message, "body")
    assert not unseen or unseen not in found(message, "body")


def split_line_by_line(data: bytes) -> tuple[bytes, bytes, set[str]]:
    """Return headers, body and defects as `open_part` should find them."""
    if data.startswith(b"\n"):
        return b"", data[1:], set()
    kept: list[bytes] = []
    for line in data.splitlines(keepends=True):
        name = line.partition(b":")[0].rstrip(b" \t")
        is_header = b":" in line and name != b"" and not set(name) & set(b" \t\n\xff")
        if not is_header and line[:1] not in (b" ", b"\t"):
            break
        kept.append(line)
    head = b"".join(kept)
    rest = data[len(head) :]
    defects = {"no-blank-line"} if rest and not rest.startswith(b"\n") else set()
    block = b"\n" + head.removesuffix(b"\n") if head else b""
    return block, rest.removeprefix(b"\n"), defects


@examples(300)
@given(st.lists(st.sampled_from([b"\n", b"\n\n", b"A: b", b"c", b":", b" ", b"\t", b"\xff"])))
def test_headers_end_where_reading_line_by_line_ends_them(pieces):
    data = b"".join(pieces)
    opened = open_part(data)
    parts = Parts(opened, LIMITS)
    assert parts.fields[0].text == opened.head
    assert (opened.head, opened.data[opened.body :], parts.defects) == split_line_by_line(data)


def test_the_text_of_html_stands_where_the_html_stood():
    html = b"Content-Type: text/html\n\n<a href=data:c,d title=t>two</a> http://d.ex%61mple\n"
    plain = (b"\none http://b.example\n", b"\nthree http://e.example\n")
    parts = (plain[0], html, plain[1], html.replace(b"two", b"four"))
    message = parse_message(MIXED + b"".join(b"--b\n" + part for part in parts))

    texts = [text.split()[0] for origin, text in message.fields if origin in ("body", "alt")]
    assert texts == [b"x", b"one", b"t", b"two", b"three", b"t", b"four"]
    links = ["://b.example", "data:c", "://d.example", "://e.example", "data:c", "://d.example"]
    assert found(message, "url").split() == links


@pytest.mark.parametrize(("subject", "text", "facts"), [
    (b"", b"", "exclamation-none percent-none dollar-none parenthesis-none"),
    # Of 300 + 14 bytes 1 is 3 of 1,000, and 5 are 15.
    (b" 5% off!", b"$1!!!!", "exclamation-4 percent-2 dollar-2 parenthesis-none"),
    (b"", "买！（100％）".encode(), "exclamation-2 percent-2 dollar-none parenthesis-2"),
    (b"", b"!" + 2000 * b"x", "exclamation-0 percent-none dollar-none parenthesis-none"),
    (b"", 90_000 * b"!", "exclamation-10 percent-none dollar-none parenthesis-none"),
])  # fmt: skip
def test_signs_are_told_by_how_often_a_text_has_them(subject, text, facts):
    fields = Field("body", subject), Field("hidden", b"($!)"), Field("body", text)
    assert with_signs(Message(fields)) == Message((*fields, Field("signs", facts.encode())))


# --- beginnings -------------------------------------------------------------------------------

OFFER = b"Cheap pills, without a prescription: http://a.example/\n"


@pytest.mark.parametrize(("own", "rest"), [
    (b"", b"> Lunch on Monday?\n>> Yes\n"),
    (b"", b"On 3 Sep 2002, Sam wrote:\n> Lunch on Monday?\n"),
    (b"", b"Lunch, for Sam:\n> on Monday?\n  > Yes"),
    (b"", b"Am 3.9.2002 schrieb Sam:\nMittagessen am Montag?\n"),
    (b"", "Le 3 septembre, Sam a écrit :\nDéjeuner lundi ?\n".encode()),
    (b"", "Sam <sam@b.example> 于2002年9月3日周二 12:00写道：\n周一午饭？".encode()),
    (b"", "вт, 3 сент. 2002 г. в 12:00, Sam <sam@b.example>:\nВ понедельник?\n".encode()),
    (b"", b"-----Original Message-----\nFrom: Sam\n\nLunch on Monday?\n"),
    (b"", b"---------- Forwarded message ----------\nLunch on Monday?\n"),
    (b"", b"Begin forwarded message:\n\nLunch on Monday?\n"),
    (b"", b"  On 3 Sep 2002, Sam wrote: \t\n Lunch on Monday?\n"),
    (b"_____\n", b"From: Sam\nSent: 3 Sep 2002\nTo: Ann;\n Bob\nSubject: Lunch\n\nOn Monday?"),
    (b"", "*De :* Sam\n*À :* Ann\n*Objet\xa0:* Déjeuner\n\nLundi ?".encode()),
    # Neither a list's rule, nor a sign within a line or before From begins another message.
    (b"\n-----------\nA list\n", b""),
    (b"He wrote: buy\n----- no title\n", b""),
    (b"From: our shop\nPrice: low\n", b""),
    (b"a > b\n>From now on\n>>From us\n", b""),
])  # fmt: skip
def test_a_writers_own_text_is_apart_from_what_it_quotes(own, rest):
    assert own_beginnings([OFFER + own + rest]) == ([OFFER + own], rest)
    if rest.strip().startswith(b">"):  # quoted lines may stand anywhere
        assert own_beginnings([rest + OFFER]) == ([OFFER], rest)
    # Where nothing else is written, the quoted text is what the message says.
    assert own_beginnings([rest]) == ([rest], b"")
    assert own_beginnings([b"See:\n" + rest]) == ([b"See:\n" + rest], b"")


def test_a_beginning_has_two_thousand_bytes_of_all_texts():
    long = b"lunch " * 400
    (begin,), rest = own_beginnings([long])
    assert (len(begin), begin + rest) == (2003, long)
    beginnings, rest = own_beginnings([OFFER, long, b" more"])
    assert beginnings == [OFFER, long[: len(beginnings[1])], b""]
    assert 2000 <= sum(map(len, beginnings)) < 2000 + len("lunch ")
    assert rest == long[len(beginnings[1]) :] + b"\n more"
    assert own_beginnings([b"x" * 9000]) == ([b"x" * 9000], b"")  # one word

    plain = parse_message(b"Subject: hi\n\n" + OFFER)
    assert with_beginning(plain) is plain
    whole = parse_message(b"Subject: hi\n\n" + OFFER + b"> quoted http://b.example/\n")
    apart = with_beginning(whole)
    head, subject, text, links = whole.fields
    text = Field("body", OFFER)
    rest = Field("rest", b"> quoted http://b.example/\n")
    assert apart == Message((head, subject, text, links, rest))
    coded = base64.encodebytes(OFFER.replace(b"\n", b"\r\n") + b"Sam wrote:\r\nLunch?")
    apart = with_beginning(parse_message(b"Content-Transfer-Encoding: base64\n\n" + coded))
    assert apart.fields[-1] == ("rest", b"Sam wrote:\nLunch?")


@pytest.mark.parametrize("name", ["SUBJECT", "Subject \t", "X: y\n" * 20_000 + "subject"])
@pytest.mark.parametrize("subject", ["x " * 1500, "x\n -----Lunch-----", "=?utf-8?q?a=0A>b?="])
def test_a_subject_stays_in_one_piece_and_takes_no_room_of_the_beginning(name, subject):
    quoted = b"> Lunch on Monday?\n"
    head = f"{name}: {subject}\n {subject}\nA: {'b' * 40_000}\n\n".encode()
    whole = parse_message(head + OFFER + quoted)
    fields = with_beginning(whole).fields
    assert fields[:2] == whole.fields[:2]
    assert fields[2:] == (Field("body", OFFER), *whole.fields[3:], Field("rest", quoted))
    # A text of one line is no subject.
    line = parse_message(b"From: a@b.example\n\n" + b"lunch " * 400)
    assert with_beginning(line).fields[-1].origin == "rest"


def test_an_attached_message_is_the_rest_whose_parts_are_apart():
    attached = b"Content-Type: message/rfc822\n\nSubject: y\n\nLunch on Monday?\n"
    message = with_beginning(parse_message(MIXED + b"--b\n\n" + OFFER + b"--b\n" + attached))
    assert found(message, "body").split() == OFFER.decode().split()
    assert found(message, "rest") == "Lunch on Monday?"
    message = with_beginning(parse_message(MIXED + b"--b\n" + attached))
    assert found(message, "body").split() == ["Lunch", "on", "Monday?"]
    quoted, forwarded = b"Sam asked:\n> Lunch?\n", b"Ann wrote:\nOn Monday"
    assert own_beginnings([quoted + OFFER + forwarded]) == ([OFFER], forwarded + b"\n" + quoted)


PIECES = st.lists(
    st.sampled_from([b"> ", b"\n", b"----", b" title", b"wrote:", b":", b"\r\n", b"word " * 99])
)


@given(st.lists(PIECES.map(b"".join), max_size=4))
def test_no_byte_of_a_text_is_lost(texts):
    beginnings, rest = own_beginnings(texts)
    assert sorted(b"".join([*beginnings, rest]).replace(b"\n", b"")) == sorted(
        b"".join(texts).replace(b"\n", b"")
    )
    for text, own in zip(texts, beginnings, strict=True):
        lines = iter(text.splitlines())
        assert all(any(line.startswith(part) for line in lines) for part in own.splitlines())
