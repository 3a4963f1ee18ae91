"""Hostile input for fuzz.py: mail, mailboxes and tables, made from a seed and a number.

Inputs are real messages with mutations, two messages spliced, messages by a grammar that breaks
every rule of MIME, HTML and charsets, scraps, tables, and one scrap repeated thousands of
times.  The same seed and number make the same input, on any machine.
"""

import base64
import binascii
import quopri
import random
from collections.abc import Callable, Sequence

LONG = 1 << 20  # bytes of the longest input
SHORT = 4 << 10  # bytes of most inputs
MEDIUM = 64 << 10


def _words(words: bytes, *others: bytes) -> list[bytes]:
    return [*words.split(), *others]


# ---- words and characters ----

_ODD = (
    "viagra", "V1AGRA", "v i a g r a", "v\u00adi\u200ba\u2060g\ufeffra", "\u202egarva\u202c",
    "ｖｉａｇｒａ", "\U0001d42f\U0001d422\U0001d41a", "vі\u0430gr\u0430", "e\u0301\u0327\u0323",
    "a" + "\u0300" * 40, "\ufdfa" * 3, "ﬁﬂﬃ", "ßẞſİıŉǰΐ", "\u1e9e\u0345", "中文发票免费",
    "こんにちは", "ｶﾞｷﾞ", "한국어", "\u1112\u1161\u11ab", "привет", "שלום\u200f", "مرحبا", "ไทย",
    "हिन्दी", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea",
    "\ufffe\uffff", "\U0010ffff", "\u2028\u2029\x85", "\x00", "\x1b[31m", "\x7f\x80\x9f",
    "\u3000\u00a0\u180e", "½²①Ⅷ", "٣४", "’“”…", "\ue000", "\u034f", "\U000e0041\U000e0042",
)  # fmt: skip
WORDS = (
    *b"free money lunch friday meeting cheap pills buy now click here unsubscribe".split(),
    *b"$99.99 1,000,000 !!! a--b it's _x_ -- 2g:free subject:free url:x defect: char:ab".split(),
    *b"http://p.example/x?y=1&z=2 www.q.example ://x https://[::1]:99/ HTTP://A@B.C".split(),
    *(word.encode() for word in _ODD),
    b"a" * 39, b"b" * 40, b"c" * 41, b"d" * 5000, b"9" * 400, b"-" * 300, b"." * 80,
    # Not UTF-8: overlong, surrogates, cut characters, other charsets, shifts of stateful ones.
    b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe4\xb8", b"\xff\xfe", b"\xfe\xff",
    b"\xef\xbb\xbf", b"\xe9t\xe9", b"\x80\x93", b"\xc7\xd1\xb1\xdb", b"\x81\x30\x81\x30",
    b"\x1b$B$3$s\x1b(B", b"\x1b$B", b"\x1b(J\x7e", b"\x0e\x21\x21\x0f", b"~{<:Ky~}", b"+AGE-",
    b"\0\0\xfe\xff\0\0\0A", b"A\0B\0", b"\x1b$)C\x0e", b"+/v8-", b"+2AA-", b"\\ud800\\N{x}",
)  # fmt: skip
ENDS = (b"\n", b"\n", b"\n", b"\n", b"\r\n", b"\r", b"\n\n", b"\n\r", b"\r\r\n", b"\0\n", b"\x0b")
CHARSETS = _words(
    b"utf-8 us-ascii iso-8859-1 windows-1252 koi8-r gb18030 gbk gb2312 big5 shift_jis euc-jp"
    b" euc-kr iso-2022-jp iso-2022-kr hz utf-7 utf-16 utf-16le utf-16be utf-32 utf_8_sig idna"
    b" punycode rot13 base64 hex zlib bz2 uu unicode_escape raw_unicode_escape undefined mbcs oem"
    b" cp037 cp65001 cp424 mac_roman ansi_x3.110-1983 unknown-8bit x-user-defined klingon none"
    b" utf8mb4 \xff utf-8\0 \"utf-8 ../../etc 8bit %s {0} utf-8' UTF--8 UTF_8 utf\xc2\xad8",
    b"", b"a" * 300, b" utf-8 ", b"utf 8", b"'utf-8'", b"=?utf-8?q?utf-8?=",
)  # fmt: skip
TYPES = _words(
    b"text/plain text/html text/enriched text/calendar text/x-vcard text/csv text text/ /html"
    b" multipart/mixed multipart/alternative multipart/digest multipart/related multipart/report"
    b" multipart/signed multipart/ message/rfc822 message/partial message/delivery-status"
    b" message/external-body application/octet-stream application/pdf application/ms-tnef"
    b" image/gif image/svg+xml TEXT/HTML text/html\0 */* x x/y/z",
    b"", b'"text/html"', b"text / html", b"text/html text/plain", b"(c)text/(c)html",
)  # fmt: skip
ENCODINGS = _words(
    b"7bit 8bit binary base64 quoted-printable x-uuencode uuencode BASE64 Quoted-Printable"
    b" base32 x-gzip64 yenc base64,8bit", b"", b" base64 (comment)", b'"base64"',
    b"quoted printable", b"\0",
)  # fmt: skip
HEADERS = _words(
    b"Subject From To Cc Date Message-ID Message-Id MESSAGE-ID Reply-To Received X-Mailer"
    b" Return-Path Sender List-Id In-Reply-To References X-Spam-Status X-Nbspam X-Bogosity"
    b" X-Nbspam-Head X-Nbspam-Explanation X-Spam-Flag Status Delivered-To Content-Length Subject"
    b" Content-Disposition Content-ID Content-Description Content-Transfer-Encoding Content-Type"
    b" MIME-Version X-\xe9 S\xc3\xbcbject", b"", b" ", b"A B", b"X" * 900, b"Subject ",
    b"subject\t", b"X-Nbspam ", b"\0", b"=?utf-8?q?Subject?=", b"=?utf-8?q?Content-Type?=",
)  # fmt: skip
VALUES = (
    b"<1@example.org>", b"ann@example.org", b'"=?utf-8?q?J=C3=B6rg?=" <j@e.org>', b"<" * 50,
    b"Thu, 22 Aug 2002 12:36:23 +0000", b"Thu, 99 Foo 99999999999 99:99:99 +9999", b"1.0", b"\0",
    b"from a.example (b.example [1.2.3.4]) by c.example with SMTP; Thu, 22 Aug 2002 12:36:23",
    b"[SPAM] [SPAM] x", b"***SPAM*** x", b"{Spam?} {", b"[[[[[[[[[[spam", b"Re: Fwd: AW: x",
    b"Yes, score=9\n required=5", b"a;b;c;=;=;=", b"(((((", b")))))", b'"""""', b"\\\\\\\\\"",
    b"attachment; filename=a.exe", b"inline", b"none; this line and the next are added", b"",
    b"1" * 500, b"\xff\xfe", b"=?", b"=??=", b"?=", b"a\rb", b"a\r\n b\r\n\tc", b"\n ",
    b"\n\t\n x",
)  # fmt: skip
FILENAMES = (
    b"a.txt", b"invoice.pdf.exe", b"", b"../../../etc/passwd", b"\xe4.doc", b"a" * 300,
    b"\0.gif", b"=?utf-8?b?5Lit5paH?=", b"=?gb2312?b?1tA=?=", b"a;b", b'a"b', b"a\\\"b",
    b"%00%ff", b"con",
)  # fmt: skip
ENVELOPES = (
    b"From a@b.example Thu Aug 22 12:36:23 2002", b"From - Thu Aug 22 12:36:23 2002", b"From ",
    b">From x@y Thu Aug 22 12:36:23 2002", b">>From x", b"From MAILER-DAEMON x", b"From x\0y",
    b"From \xff Mon Jan  1 1:1", b"from x@y Thu Aug 22 12:36:23 2002",
)  # fmt: skip

# ---- HTML ----

NAMES = _words(
    b"a b p br div span table tr td th font center img input form style script title head body"
    b" html meta link base template noscript iframe object svg math textarea pre blockquote h1 ul"
    b" li marquee o:p v:shape custom-element DIV Span STYLE a1 ! !-- !doctype ? / % \xe4",
    b"", b"x" * 300, b"div\0", b"p/", b"![CDATA[", b"!--[if mso]>", b"style/", b"<div",
)  # fmt: skip
PROPERTIES = _words(
    b"display visibility opacity color background background-color font-size line-height height"
    b" width max-height max-width min-height position left top right text-indent clip clip-path"
    b" overflow mso-hide transform z-index margin-left font float content filter COLOR -x-y --v",
    b"", b"color ", b" display", b"co\\lor", b"d/**/isplay",
)  # fmt: skip
COLOURS = _words(
    b"#fff #ffffff #FFF #000 #000000 #fefefe #ffffff00 #fff8 #ff #fffffffffff # #ggg white black"
    b" red transparent currentColor inherit initial rgb(255,255,255) rgb(254,254,254)"
    b" rgba(0,0,0,0) rgb(100%,100%,100%) rgb(255 255 255 / 0) rgb(,,) rgb(1e9,-1e9,nan)"
    b" rgb(999999999999999999999,0,0) rgb(255,255,255 hsl(0,0%,100%) hsl(1e99deg,1%,1%)"
    b" hsl(nan,0,0) color(srgb white) var(--v) LightGoldenRodYellow #FfFfFe !important"
)
SIZES = _words(
    b"0 0px 1px 1pt 0.1em 100% 0% -9999px -1em 1e9px 1e999px 1e-999px 9e99999 .5ex 00000 0.0.0"
    b" +0 -0 --1px 1px; auto inherit small xx-small smaller larger medium 1/0 nan inf infinity"
    b" calc(0px) calc(1px*0) 1vw 0vh 3rem 1 2px!important 12px/0 rect(0,0,0,0) inset(100%)"
    b" absolute fixed relative hidden none block inline collapse scroll 1px,2px"
    b" 0\\px \xef\xbc\x90px", b"9" * 400 + b"px", b"0." + b"0" * 400 + b"1px", b"", b"-" * 90,
    b"1" * 5000,
)  # fmt: skip
SELECTORS = _words(
    b"* p div span .a .b #c #d p.a div#c.a.b .a.a.a a:hover p::before [style] [class=a] p>span"
    b" div,p,span ,.a , @media @import @font-face :root :not(.a) html body td .\\61 .\xe4"
    b" #1 ..a ##c", b"p span", b".a .b .a .b .a .b", b"p ~ div + span > a", b"", b".x" * 60,
    b"," * 60,
)  # fmt: skip
RULE_ODDITIES = (
    b"@media screen{", b"@media print{.a{display:none}}", b"}", b"{", b"/*", b"*/", b"<!--",
    b"-->", b"@import url(x);", b"@charset 'x';", b"'", b'"', b"\\", b"</style", b"</style>",
    b"{{{{", b"}}}}", b";;;", b":::", b"!important", b"@", b"url(", b"\0",
    b"expression(alert(1))", b"@media{@media{",
)  # fmt: skip
ENTITIES = _words(
    b"&amp; &lt; &gt; &quot; &nbsp; &#118; &#x76; &#X76 &#0; &#x0 &#xD800; &#x110000; &#xFFFFFFFF;"
    b" &#99999999999; &#128; &#x80; &#xFFFE; &; &# &#x &#; &#x; &amp;amp; &ampx &notit; &notin;"
    b" &ltgt &zwnj; &shy; &NotEqualTilde; &fjlig; &CounterClockwiseContourIntegral; &AMP &&&&"
    b" &Aacute &aacute; &thetasym; &bne; &#x1F600; &#-1; &#1e9; &#\xef\xbc\x91; &\xe4;",
    b"&#" + b"0" * 300 + b"65;", b"&#" + b"9" * 5000 + b";", b"&" + b"a" * 300 + b";",
)  # fmt: skip
ATTRIBUTES = (
    b"hidden", b"HIDDEN=x", b"align=center", b"bgcolor=#ffffff", b"bgcolor=white", b"color=#fff",
    b"size=0", b"size=-9999999999999999999999", b"size=1", b"width=0 height=0",
    b"aria-hidden=true", b"href=http://p.example/", b"href='", b'href="', b"href=", b"src=cid:1",
    b"SRC=//x.y/", b"alt=x", b"title='a > b'", b'title="&quot;"', b"onclick=x",
    b"background=http://x/", b"class=a", b"class='a b'", b'class="a b a b"', b"class=", b"id=c",
    b"id='d'", b"id=c id=d", b"=x", b"= =", b"style", b"style=", b"style='", b"a" * 300,
    b"x=" + b"y" * 300, b"\0=\0", b"/", b"<", b"`a=b`", b"charset=utf-16",
    b"http-equiv=content-type content='text/html; charset=koi8-r'", b'"', b"'",
)  # fmt: skip


def _some(rng: random.Random, choices: Sequence[bytes], most: int, between: bytes = b" ") -> bytes:
    return between.join(rng.choices(choices, k=rng.randrange(1, most + 1)))


def declarations(rng: random.Random) -> bytes:
    """Return declarations of CSS, as in an attribute `style`."""
    made = [
        rng.choice(PROPERTIES)
        + rng.choice((b":", b":", b":", b" : ", b"", b"::", b"=", b":/**/"))
        + rng.choice(rng.choice((COLOURS, SIZES)))
        for _ in range(rng.randrange(1, 5))
    ]
    return rng.choice((b";", b"; ", b";", b" ", b"\n;", b"}")).join(made)


def sheet(rng: random.Random) -> bytes:
    rules = []
    for _ in range(rng.randrange(1, 9)):
        body = rng.choice((b"{%b}", b"{%b}", b"{%b}", b"{ %b ", b"%b}", b"{%b;};"))
        rules.append(rng.choice(SELECTORS) + body % declarations(rng))
        if rng.random() < 0.2:
            rules.append(rng.choice(RULE_ODDITIES))
    openings = (b"<style>", b"<STYLE type=text/css>", b"<style", b"<style media='print'>")
    return (
        rng.choice(openings)
        + b"\n".join(rules)
        + rng.choice((b"</style>", b"</style>", b"</STYLE >", b""))
    )


def tag(rng: random.Random) -> bytes:
    """Return a start tag or an end tag, closed or not."""
    name = rng.choice(NAMES)
    if rng.random() < 0.35:
        return b"</" + name + rng.choice((b">", b">", b">", b" >", b"", b" x=y>"))
    attributes = []
    for _ in range(rng.choice((0, 0, 1, 1, 2, 6))):
        if rng.random() < 0.4:
            quote = rng.choice((b'"', b"'", b'"', b""))
            attributes.append(b"style=" + quote + declarations(rng) + quote)
        else:
            attributes.append(rng.choice(ATTRIBUTES))
    between = rng.choice((b" ", b" ", b"\n", b"\t", b"/", b"  "))
    end = rng.choice((b">", b">", b">", b"/>", b"", b" >"))
    return b"<" + between.join([name, *attributes]) + end


def html(rng: random.Random) -> bytes:
    starts = (b"<html>", b"<!DOCTYPE html><html><body>", b"", b"<meta charset=utf-7>")
    oddities = (b"<!--", b"-->", b"--!>", b"<!-->", b"<!--x-->", b"<", b">")
    pieces = [rng.choice(starts)]
    for _ in range(rng.choice((3, 10, 30, 60))):
        kind = rng.random()
        if kind < 0.45:
            pieces.append(tag(rng))
        elif kind < 0.75:
            pieces.append(_some(rng, WORDS, 6))
        elif kind < 0.85:
            pieces.append(rng.choice(ENTITIES))
        elif kind < 0.93:
            pieces.append(rng.choice(oddities))
        else:
            pieces.append(sheet(rng))
    return b"".join(pieces)


# ---- mail ----


def uuencoded(rng: random.Random) -> bytes:
    data = rng.randbytes(rng.choice((3, 90, 400)))
    lines = [binascii.b2a_uu(data[at : at + 45]) for at in range(0, len(data), 45)]
    if rng.random() < 0.3:
        lines.insert(rng.randrange(len(lines)), b"M" + b"#" * 70 + b"\n")
    return b"\nbegin 644 " + rng.choice(FILENAMES) + b"\n" + b"".join(lines) + b"`\nend\n"


def text(rng: random.Random) -> bytes:
    """Return lines of words."""
    lines = []
    for _ in range(rng.choice((1, 3, 8, 20))):
        kind = rng.random()
        if kind < 0.85:
            lines.append(_some(rng, WORDS, 12) + rng.choice(ENDS))
        elif kind < 0.9:
            lines.append(uuencoded(rng))
        elif kind < 0.95:
            lines.append(rng.choice(ENVELOPES) + b"\n")
        else:
            lines.append(rng.choice(WORDS).decode("utf-8", "replace").encode("utf-16"))
    return b"".join(lines)


def encoded_word(rng: random.Random) -> bytes:
    """Return an encoded word of RFC 2047, right or wrong."""
    words = _some(rng, WORDS, 3)
    how = rng.choice((b"q", b"b", b"Q", b"B", b"x", b""))
    if how in b"bB":
        words = base64.b64encode(words)[: rng.choice((None, None, -1, 5))]
    else:
        words = quopri.encodestring(words).replace(b" ", b"_").replace(b"\n", b"")
    close = rng.choice((b"?=", b"?=", b"?=", b"?", b"", b"=?="))
    language = rng.choice((b"", b"", b"*en"))
    return b"=?%b%b?%b?%b%b" % (rng.choice(CHARSETS), language, how, words, close)


def parameter(rng: random.Random) -> bytes:
    """Return a parameter, of RFC 2045 or RFC 2231, right or wrong."""
    name = rng.choice(b"charset name filename boundary format  * name*".split(b" "))
    value = rng.choice(rng.choice((CHARSETS, FILENAMES, WORDS)))
    way = rng.random()
    if way < 0.4:
        return name + b"=" + value
    if way < 0.6:
        return name + b'="' + value + rng.choice((b'"', b'"', b""))
    percent = b"".join(b"%%%02x" % c for c in value[:20])
    if way < 0.8:
        return name + b"*=" + rng.choice(CHARSETS) + rng.choice((b"''", b"'en'", b"'")) + percent
    number = rng.choice((b"0", b"1", b"00", b"-1", b"9" * 30, b"x", b""))
    return name + b"*" + number + rng.choice((b"*=", b"=")) + b"utf-8''" + percent


def parameters(rng: random.Random) -> bytes:
    made = [parameter(rng) for _ in range(rng.choice((0, 0, 1, 1, 2, 5)))]
    return b"".join(rng.choice((b"; ", b";", b";\n ", b" ", b"; (c) ")) + each for each in made)


def header(rng: random.Random) -> bytes:
    """Return a header, or what may be taken for one."""
    kind = rng.random()
    if kind < 0.3:
        words = [encoded_word(rng) for _ in range(rng.randrange(1, 4))]
        value = rng.choice((b"", b" ", b"\n ")).join(words)
    elif kind < 0.7:
        value = rng.choice(VALUES)
    elif kind < 0.85:
        value = _some(rng, WORDS, 5)
    else:
        value = rng.choice((*TYPES, *ENCODINGS)) + parameters(rng)
    colon = rng.choice((b": ", b": ", b": ", b":", b" : ", b"\t:", b"", b":\n "))
    return rng.choice(HEADERS) + colon + value + rng.choice(ENDS[:7])


def headers(rng: random.Random) -> bytes:
    """Return the head of a message, mostly of well-formed lines."""
    lines = []
    if rng.random() < 0.7:
        words = _some(rng, (*WORDS, encoded_word(rng)), 4)
        lines.append(b"Subject: %b\n" % words.replace(b"\n", b" "))
    lines += [header(rng) for _ in range(rng.choice((0, 1, 2, 5, 12)))]
    rng.shuffle(lines)
    return b"".join(lines)


def encoded(rng: random.Random, body: bytes) -> tuple[bytes, bytes]:
    """Return the name of a transfer encoding, and a body in it or in another, perhaps damaged."""
    name = rng.choice(ENCODINGS)
    way = rng.choice((name.lower().strip(), b"", b"base64", b"quoted-printable"))
    if way == b"base64":
        body = rng.choice((base64.encodebytes, base64.b64encode))(body)
    elif way == b"quoted-printable":
        body = quopri.encodestring(body)
    elif "uu" in way.decode("latin-1"):
        body = uuencoded(rng)
    if rng.random() < 0.25:
        body = mutated(rng, body, 2)
    return name, body


def part(rng: random.Random, depth: int = 0) -> bytes:
    """Return a MIME part or a whole message: headers, a blank line, and a body of any type."""
    kind = rng.random()
    head = headers(rng) if depth == 0 or rng.random() < 0.3 else b""
    if kind < 0.3 and depth < 6:
        body, content = multipart(rng, depth)
    elif kind < 0.36 and depth < 6:
        body, content = part(rng, depth + 1), b"message/rfc822"
    elif kind < 0.75:
        body, content = html(rng), rng.choice((b"text/html", b"text/html", rng.choice(TYPES)))
        content += b"; charset=" + rng.choice((b"utf-8", rng.choice(CHARSETS))) + parameters(rng)
    else:
        body, content = text(rng), rng.choice((b"text/plain", rng.choice(TYPES)))
        content += rng.choice((b"", b"; charset=" + rng.choice(CHARSETS))) + parameters(rng)
    if kind >= 0.3 and rng.random() < 0.5:
        name, body = encoded(rng, body)
        head += b"Content-Transfer-Encoding: " + name + b"\n"
    if rng.random() < 0.9:
        head += b"Content-Type: " + content + b"\n"
    return head + rng.choice((b"\n", b"\n", b"\n", b"\n", b"\r\n", b"", b" \n", b"\r\r")) + body


def multipart(rng: random.Random, depth: int) -> tuple[bytes, bytes]:
    """Return the body of a multipart with mostly right boundaries, and its content type."""
    boundary = rng.choice(
        (b"b", b"b", b"=_x", b"a b", b"--", b"b--", b"", b"b'()+_,-./:=?", b"\xff" * 9, b"x" * 200)
    )
    line = b"\n--" + boundary
    pieces = [rng.choice((b"", b"preamble", b"--" + boundary))]
    for _ in range(rng.choice((0, 1, 2, 2, 3, 5))):
        altered = (line + b" ", line + b"\t", line + b"x", line[1:], line + b"--", b"\r" + line)
        opening = rng.choice((line, line, line, *altered))
        opening += rng.choice((b"\n", b"\n", b"\n", b"\r\n", b"\r", b""))
        pieces.append(opening + part(rng, depth + 1))
    ends = (line + b"--\n", line + b"--\n", b"", line + b"--epilogue", line + b"-")
    pieces.append(rng.choice(ends))
    quote = rng.choice((b'"', b'"', b"", b"'"))
    kind = rng.choice((b"mixed", b"alternative", b"alternative", b"related", b"digest", b"x", b""))
    name = rng.choice((*[b"boundary="] * 3, b"BOUNDARY =", b"boundary*0=", b"boundary*="))
    return b"".join(pieces), b"multipart/" + kind + b"; " + name + quote + boundary + quote


# ---- tables ----

CELLS = _words(
    b'spam ham label text class 1 -1 1e999 nan inf NA ? ?? \'\' "" " \' "a""b" "a"b "a,b"'
    b' =1+1 1,5 {"text":"x","label":"spam"} {"text":null} {"text":{"a":[1,[2]]}} {"text":1e999}'
    b' {"text":"\\ud800"} {} {"a":1,"a":2} [1] null NaN __label__spam __label__ \\N \\t 00 0x1F',
    *(b"", b" ", b'"a\nb"', b'"', b"\xef\xbb\xbf", b"[" * 2000, b"9" * 5000, b"\0"),
    *WORDS,
)


def table(rng: random.Random) -> bytes:
    """Return a table in CSV, TSV or JSON lines, or in none of them."""
    between = rng.choice((b",", b",", b"\t", b";", b"|", b" "))
    end = rng.choice((b"\n", b"\n", b"\r\n", b"\r", b"\n\n"))
    width = rng.randrange(1, 5)
    rows = [rng.choice((b"text,label", b"label\ttext", b"a,b,a", b"", b"v1,v2", b"text;label"))]
    for _ in range(rng.choice((0, 2, 9, 30))):
        n_cells = width if rng.random() < 0.9 else rng.randrange(9)
        rows.append(between.join(rng.choices(CELLS, k=n_cells)))
    data = end.join(rows) + rng.choice((end, b""))
    if rng.random() < 0.15:
        encoding = rng.choice(("utf-16", "utf-16le", "utf-32", "gb18030"))
        data = data.decode("utf-8", "replace").encode(encoding)
    return rng.choice((b"", b"", b"", b"\xef\xbb\xbf")) + data


# ---- mutations ----


def mutated(rng: random.Random, data: bytes, times: int, others: Sequence[bytes] = ()) -> bytes:
    """Return data with flips, cuts, swaps, repetitions, insertions and edits of boundaries."""
    found = bytearray(data)
    for _ in range(times):
        size = len(found)
        at, way = rng.randrange(size + 1), rng.randrange(9)
        length = rng.choice((1, 2, 8, 64, 512))
        if way == 0 and at < size:
            found[at] ^= 1 << rng.randrange(8)
        elif way == 1:
            del found[at : at + length]
        elif way == 2:
            found[at:at] = found[at : at + length] * rng.choice((1, 1, 2, 20))
        elif way == 3:
            piece = bytes(found[at : at + length])
            del found[at : at + length]
            other = rng.randrange(len(found) + 1)
            found[other:other] = piece
        elif way == 4:
            found[at : at + length] = rng.randbytes(rng.choice((1, 4, length)))
        elif way == 5 and others:
            other_data = rng.choice(others)
            start = rng.randrange(len(other_data) + 1)
            found[at:at] = other_data[start : start + rng.choice((64, 512, 4096))]
        elif way == 6 and (line := found.find(b"\n--", at)) >= 0:
            edit = rng.choice((b"", b"--", b" ", b"\n--", b"x"))
            found[line + 3 : line + 3 + rng.randrange(3)] = edit
        elif way == 7 and (end := found.find(b"\n", at)) >= 0:
            found[end : end + 1] = rng.choice(ENDS)
        else:
            found[at:at] = scrap(rng)
    return bytes(found)


def garbled(
    rng: random.Random, data: bytes, pieces: Sequence[bytes], most: int = 5, within: int = 1 << 30
) -> bytes:
    """Return data with up to `most` places replaced, cut out, doubled, or lost with all behind."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, most))):
        start = rng.randrange(min(len(found), within) + 1)
        end = min(start + rng.choice((0, 1, 3, 12, 99)), len(found))
        way = rng.randrange(5)
        if way == 0:
            found[start:end] = rng.choice(pieces)
        elif way == 1:
            found[start:end] = rng.randbytes(end - start)
        elif way == 2:
            found[start:start] = found[start:end] * rng.choice((1, 2, 50))
        else:
            del found[start : end if way == 3 else None]
    return bytes(found)


def scrap(rng: random.Random) -> bytes:
    way = rng.randrange(10)
    if way < 4:
        return (tag, header, encoded_word, declarations)[way](rng)
    return rng.choice((WORDS, ENDS, ENTITIES, RULE_ODDITIES, ENVELOPES, VALUES)[way - 4])


# ---- patterns, repeated ----

# What is repeated, besides scraps, and what stands before and behind it.
UNITS = _words(
    b"< > </p> <div>x <b>x</b> <script> <style> <!-- --> /* {} .a{ .a, @media p{ & &#1; ( ) [ ] ;"
    b" = ? - . : \" ' \\ a a=b; [SPAM] www.x http://x/ =?utf-8?q?=41?= =76 +AGE- \0 \xff\xc0",
    *(b"a ", b"\n", b" \n", b"\n x", b"\r", b"\r\n\n\r", b"A: b\n", b"word\n", b">From x\n"),
    *(b"--b\n\nx\n", b"--b--\n", b"--bx\n", b"M" + b"#" * 60 + b"\n", b"dmlhZ3JhIA==\n", b"=\n"),
    *(ENVELOPES[0] + b"\n", b"Content-Type: message/rfc822\n\n", b"spam,buy pills\n"),
    *("\u0300".encode(), "a\u200b\u00ad".encode(), "\ufdfa".encode(), "发票".encode()),
)
_HTML = b"Content-Type: text/html; charset=utf-8\n\n"
_MIXED = b"Content-Type: multipart/mixed; boundary=b\n"
_STYLED = _HTML + b"<style>"
AROUND = (
    (b"Subject: x\n\n", b""), (_HTML, b""), (_HTML + b"<a ", b">x"), (_HTML + b"<a href='", b""),
    (_HTML + b"<p style='", b"'>x</p>"), (_HTML + b"<p style='color:", b"'>x</p>"), (_STYLED, b""),
    (_STYLED, b"{color:#fff}</style>" + b"<p class=a>x" * 500), (_HTML + b"&#", b";x"),
    (b"", b"\n\nhello\n"), (b"Subject: ", b"\n\nhello\n"), (b"Subject: =?", b"\n\nhello\n"),
    (b"Content-Type: text/plain", b"\n\nhello\n"), (b"Content-Type: a/b; name=", b"\n\nhello\n"),
    (b'Content-Type: a/b; name="', b"\n\nhello\n"), (_MIXED + b"\n", b""),
    *((b"Content-Transfer-Encoding: " + each + b"\n\n", b"") for each in ENCODINGS[3:5]),
    *((b"Content-Type: text/plain; charset=" + each + b"\n\n", b"") for each in CHARSETS[12:17]),
    (b"Subject: x\n\nbegin 644 x\n", b""), (b"text,label\n", b""), (b'{"text":', b""),
)  # fmt: skip


def repeated(rng: random.Random, size: int) -> bytes:
    """Return one scrap up to a size, somewhere in a message; perhaps each has a number."""
    unit, (before, after) = rng.choice((scrap(rng), rng.choice(UNITS))), rng.choice(AROUND)
    if rng.random() < 0.3:
        return (
            before + b"".join(b"%b%d " % (unit, n) for n in range(size // (len(unit) + 5))) + after
        )
    return before + unit * (size // (len(unit) or 1)) + after


def _numbered(unit: bytes, before: bytes, after: bytes = b"") -> Callable[[int], bytes]:
    """Return a pattern in which every repetition has a number of its own."""
    return lambda size: (
        before
        + b"".join(unit.replace(b"#N", b"%d" % n) for n in range(size // (len(unit) + 3)))
        + after
    )


def _pattern(unit: bytes, before: bytes = _HTML, after: bytes = b"") -> Callable[[int], bytes]:
    return lambda size: before + unit * max(1, size // len(unit)) + after


def _rules_and_elements(size: int) -> bytes:
    """Return as many rules as elements, each of a class of its own."""
    n = range(size // 60)
    rules = b"".join(b".c%d{color:#ff%04x}" % (k, k % 65536) for k in n)
    elements = b"".join(b"<p class=c%d>word%d</p>" % (k, k) for k in n)
    return _STYLED + rules + b"</style>" + elements


def _names(first: int, count: int) -> bytes:
    return b" ".join(b"a%d" % n for n in range(first, first + count))


# Patterns that took long once.
PATTERNS: dict[str, Callable[[int], bytes]] = {
    "tags never closed": _pattern(b"<a "),
    "nested elements with styles": _pattern(b"<div style='color:red;font-size:9px'>x"),
    "elements that close each other wrongly": _pattern(b"<a><b><i></a></b></i>"),
    "styles of many declarations": _pattern(b"<p style='" + b"color:red;" * 40 + b"'>x</p>"),
    "many rules, many elements": _rules_and_elements,
    "rules of one class": _numbered(b".a{color:#N}", _STYLED, b"</style>" + b"<p class=a>x" * 500),
    "one element of many classes": _numbered(
        b"c#N ", _STYLED + b".c1{color:#fff}</style><p class='", b"'>x"
    ),
    "selectors of many elements": _pattern(
        b"p ", _STYLED, b"{color:#fff}</style>" + b"<p>x" * 500
    ),
    "pseudo-classes of a long block": lambda size: (
        _STYLED + b"a:hover," * (size // 16) + b"i{" + b"color:1;" * (size // 16)
    ),
    "rules in a rule of many selectors": lambda size: (
        _STYLED + b"p," * (size // 4) + b"i{" + b"a{}" * (size // 6)
    ),
    "comments never closed": _pattern(b"<!--"),
    "different attributes": _numbered(b"x#N=y ", _HTML + b"<a ", b">x"),
    "different entities": _numbered(b"&##N;", _HTML),
    "parts of HTML": _pattern(
        b"--b\nContent-Type: text/html\n\n<p style='color:red'>x\n", _MIXED + b"\n"
    ),
    "nested parts": _numbered(b"Content-Type: multipart/mixed; boundary=b#N\n\n--b#N\n", b""),
    "documents of many pages": _pattern(
        b"--b\nContent-Type: text/html\n\n" + b"".join(b"<html a%d>" % n for n in range(2000)),
        _MIXED + b"\n",
    ),
    "documents of pages of many attributes": _pattern(
        b"--b\nContent-Type: text/html\n\n"
        + b"".join(b"<body " + _names(first, 400) + b">" for first in (0, 400, 800)),
        _MIXED + b"\n",
    ),
    "different headers": _numbered(b"X-#N: b\n", b"", b"\nhello\n"),
    "encoded words of another charset": _pattern(b"=?gb2312?b?1tA=?=\n ", b"Subject: "),
    "parameters in parts": _numbered(b"; name*#N*=%41", b"Content-Type: text/plain", b"\n\nx"),
    "comments in a header": _pattern(b"(", b"Content-Type: text/plain"),
    "lines that are joined": _pattern(b"a \n", b"Content-Type: text/plain; delsp=yes\n\n"),
    "soft breaks": _pattern(b"= \n", b"Content-Transfer-Encoding: quoted-printable\n\n"),
    "separators of a mailbox": _pattern(ENVELOPES[0] + b"\n", b"", b"A: b\n\nx"),
    "shifts of a charset": _pattern(
        b"\x1b$B\x1b(B", b"Content-Type: text/plain; charset=iso-2022-jp\n\n"
    ),
    "nested lists of JSON": _pattern(b"[", b'{"text":'),
}


# ---- inputs ----


class Inputs:
    """The inputs of one seed: a function from their numbers to bytes."""

    def __init__(self, seed: int, mails: Sequence[bytes]) -> None:
        self.seed, self.mails = seed, mails

    def rng(self, number: int) -> random.Random:
        return random.Random(self.seed << 48 | number)

    def __call__(self, number: int) -> bytes:
        """Return input number `number`: most have up to 4 KB, some up to 1 MB."""
        rng = self.rng(number)
        drawn = rng.random()
        if drawn < 0.0005:
            data = repeated(rng, int(2 ** rng.uniform(14, 20)))
            return mutated(rng, data, rng.randrange(3), self.mails)[:LONG]
        if drawn < 0.005:
            data = b"".join(self.of_any_kind(rng) for _ in range(rng.randrange(2, 12)))[:MEDIUM]
        else:
            data = self.of_any_kind(rng)[:SHORT]
        way = rng.random()
        if way < 0.08:
            data = rng.choice(ENVELOPES) + rng.choice(ENDS) + data
        elif way < 0.14:
            data = data.replace(b"\n", b"\r\n")
        elif way < 0.16:
            data = data.replace(b"\n", b"\r")
        return data

    def of_any_kind(self, rng: random.Random) -> bytes:
        """Return an input without regard to its length."""
        kind = rng.random()
        if kind < 0.40:
            mail = rng.choice(self.mails)
            return mutated(rng, mail, rng.choice((1, 2, 4, 16)), self.mails)
        if kind < 0.70:
            return part(rng)
        if kind < 0.80:
            return mutated(rng, part(rng), rng.choice((1, 4)), self.mails)
        if kind < 0.86:
            first, second = rng.choices(self.mails, k=2)
            cut, other = rng.randrange(len(first) + 1), rng.randrange(len(second) + 1)
            return first[:cut] + second[other:]
        if kind < 0.91:
            return b"".join(scrap(rng) for _ in range(rng.randrange(40)))
        if kind < 0.97:
            return table(rng)
        if kind < 0.98:
            return rng.randbytes(rng.randrange(600))
        return mutated(rng, repeated(rng, int(2 ** rng.uniform(6, 13))), 3)
