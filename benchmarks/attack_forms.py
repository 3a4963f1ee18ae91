"""All forms of attack, by class, for benchmarks/attacks.py.

A form is a function of a spam, whose sender knows some ham, and returns a message.
"""

import inspect
import re
from collections.abc import Callable
from functools import cache, partial
from hashlib import sha256
from operator import methodcaller
from string import ascii_lowercase, ascii_uppercase

from attack_hidden import HIDDEN
from attack_mail import NOT_TEXT, Mail, as_html, lines, multipart, part, text_part

Form = Callable[[Mail], bytes]

# --- place: the spam stands where a bounded reader does not look -----------------------------

_PIXEL = bytes.fromhex("47494638396101000100800000ffffff00000021f90401000000002c0000000001000100")


@cache
def _much(texts: tuple[str, ...], size: int) -> str:
    """Return `size` characters of ham."""
    text = "\n\n".join(texts)
    return (text * (1 + size // len(text)))[:size]


def _behind(mail: Mail, kb: int, after: int = 0) -> bytes:
    """Put ham text before the spam, and after it, in one part."""
    before, behind = (_much(mail.good.texts, size << 10) for size in (kb, after))
    if mail.is_html:
        return mail.written(as_html(before) + mail.text + as_html(behind))
    return mail.written(f"{before}\n{mail.text}\n{behind}")


def _short(mail: Mail, turn: int) -> bytes:
    return text_part(mail.ham(turn)[:300] + "\n")


def _after_parts(n: int) -> Form:
    return lambda mail: mail.mixed(*(_short(mail, i) for i in range(n)), mail.part())


def _nested(mail: Mail, depth: int) -> bytes:
    """Put the spam behind ham in parts within parts."""
    inner = mail.part()
    for i in range(depth):
        inner = multipart(_short(mail, i), inner)
    return mail.message(inner)


def _attached(kind: str, name: str, encoding: str = "base64") -> Form:
    """Return the form with the spam as a file that is attached to a ham text."""
    named = f'attachment; filename="{name}"'

    def form(mail: Mail) -> bytes:
        spam = part(kind, mail.text.encode(), encoding, disposition=named)
        return mail.mixed(text_part(mail.ham() + "\n"), spam)

    return form


def _event(mail: Mail, more: str = "") -> bytes:
    said = re.sub(r"\s+", " ", mail.text).replace(",", "\\,")
    event = f"BEGIN:VCALENDAR\nBEGIN:VEVENT\nDESCRIPTION:{said}\n{more}END:VEVENT\nEND:VCALENDAR\n"
    kind = 'text/calendar; method=REQUEST; charset="utf-8"'
    return part(kind, event.encode(), disposition="attachment" if not more else "inline")


def _event_with_ham(mail: Mail) -> bytes:
    """Return an invitation with ham in a property that nobody is shown."""
    ham = re.sub(r"\s+", " ", mail.ham()).replace(",", "\\,")
    return mail.message(_event(mail, f"X-NOTE:{ham}\n"))


def _attached_message(mail: Mail, depth: int) -> bytes:
    message = mail.message(mail.part())
    for i in range(depth):
        forwarded = part("message/rfc822", message, disposition="attachment")
        message = mail.message(multipart(text_part(mail.ham(i) + "\n"), forwarded))
    return message


def _beside_html(mail: Mail, said: str) -> bytes:
    """Put a text beside the spam that programs which show HTML do not show."""
    return mail.mixed(text_part(said), text_part(mail.html, "html"), kind="alternative")


def _behind_ham(kind: str) -> Form:
    return lambda mail: mail.behind_ham(text_part(mail.html, "html"), kind=kind)


def _amp(html: str, amp: str) -> Form:
    """Return the form with one text for programs that know AMP, and another as HTML.

    html, amp: the type of the part with the spam, and of the one with ham.
    """
    return lambda mail: mail.behind_ham(
        text_part(mail.html, amp), text_part(mail.ham(), html), kind="alternative"
    )


def _picture(disposition: str, size: int = 1, **more: str) -> bytes:
    return part("image/gif", _PIXEL * size, "base64", **more, disposition=disposition)


def _related(mail: Mail) -> bytes:
    images = [_picture("inline", 400, id=f"<{i}@x>") for i in range(6)]
    return mail.behind_ham(*images, text_part(mail.html, "html"), kind="related")


def _typed(kind: str) -> Form:
    return lambda mail: mail.behind_ham(part(kind, mail.text.encode()))


def _long_head(mail: Mail) -> bytes:
    """Put more headers before the body than a bounded reader reads."""
    value = mail.words(400).replace("\n", "\n ")
    return mail.message(mail.part(), "".join(f"X-Note-{i}: {value}\n" for i in range(40)))


def _junk_base64(mail: Mail) -> bytes:
    """Encode the spam with characters in its base64 that a reader must skip."""
    head, body = mail.part("base64").split(b"\n\n", 1)
    return mail.message(head + b"\n\n" + body.replace(b"A", b"A*!").replace(b"\n", b" ~\n"))


def _preamble(mail: Mail) -> bytes:
    """Put a part of ham before the first boundary, where no mail program shows it."""
    head, body = multipart(mail.part()).split(b"\n\n", 1)
    return mail.message(head + b"\n\n--x\n" + text_part(mail.ham()) + b"\n" + body)


def _in_charset(mail: Mail, name: str, declared: str = "") -> bytes:
    """Write the spam in an odd charset, or in one that is not declared."""
    data = mail.text.encode(name, "xmlcharrefreplace")
    return mail.message(part(f"{mail.type}; charset={declared or name}", data, "base64"))


def _flowed(mail: Mail) -> bytes:
    """Break words at soft ends of lines, which a mail program joins without a blank."""
    broken = re.sub(r"(?<=\w\w)(?=\w\w)", " \n", mail.plain).encode()
    return mail.message(part("text/plain; charset=utf-8; format=flowed; delsp=yes", broken))


def _quoted_printable(mail: Mail) -> bytes:
    """Write every byte of the spam as =XX, in lines that end within words."""
    data = enumerate(mail.text.encode())
    coded = "".join(f"={byte:02X}" + "=\n" * (i % 3 == 0) for i, byte in data)
    return mail.message(part(f"{mail.type}; charset=utf-8", coded.encode(), "quoted-printable"))


PLACE: dict[str, Form] = {
    **{
        f"in {name}": partial(_in_charset, name=name)
        for name in ("utf-7", "utf-16", "utf-16le", "utf-32", "cp037", "cp500")
    },
    **{
        f"declared as {declared}": partial(_in_charset, name="utf-8", declared=declared)
        for declared in ("unknown-8bit", "iso-2022-jp", '"utf-8')
    },
    "flowed words": _flowed,
    "all bytes quoted": _quoted_printable,
    **{
        f"behind ham in multipart/{kind}": _behind_ham(kind)
        for kind in ("report", "signed", "parallel", "digest", "x-mixed-replace")
    },
    "behind 512 KB": partial(_behind, kb=512),
    "behind 2 MB": partial(_behind, kb=2048),
    "between 400 and 600 KB": partial(_behind, kb=400, after=600),
    "between 700 and 700 KB": partial(_behind, kb=700, after=700),
    "after 100 parts": _after_parts(100),
    "after 600 parts": _after_parts(600),
    "after 12 parts of 64 KB": lambda mail: mail.mixed(
        *[text_part(_much(mail.good.texts, 64 << 10))] * 12, mail.part()
    ),
    "in 10 nested parts": partial(_nested, depth=10),
    "in 40 nested parts": partial(_nested, depth=40),
    "attached as text/html": _attached("text/html", "offer.html"),
    "attached octets, .html": _attached("application/octet-stream", "offer.html"),
    "attached as xhtml": _attached("application/xhtml+xml", "offer.xhtml", "8bit"),
    "attached as text/x-card": _attached("text/x-card", "a.card"),
    "in an invitation": lambda mail: mail.behind_ham(_event(mail)),
    "an invitation with ham in X-NOTE": _event_with_ham,
    "attached message": partial(_attached_message, depth=1),
    "attached message, two deep": partial(_attached_message, depth=2),
    "ham alternative": _behind_ham("alternative"),
    "ham alternative, ten": lambda mail: _beside_html(mail, mail.hams(10)),
    "alternative of words": lambda mail: _beside_html(mail, mail.words(300)),
    "AMP beside ham": _amp("html", "x-amp-html"),
    "ham AMP beside it": _amp("x-amp-html", "html"),
    "by some: enriched beside ham": _amp("html", "enriched"),
    "by some: first of two pages": _amp("html", "html"),
    "by some: related beside ham": lambda mail: mail.mixed(
        text_part(mail.ham(), "html"), text_part(mail.html, "html"), kind="related"
    ),
    "by some: attached alternative": lambda mail: mail.behind_ham(
        part("text/html", mail.html.encode(), disposition="attachment"), kind="alternative"
    ),
    "by some: beside attached ham": lambda mail: mail.mixed(
        text_part(mail.html, "html"),
        part("message/rfc822", mail.message(text_part(mail.ham(), "html"))),
        kind="alternative",
    ),
    "ham part first": _behind_ham("mixed"),
    "related, after images": _related,
    "inline, wrong type": _typed("application/x-note"),
    "inline, no type": _typed(""),
    "inline, odd type": _typed("txt; x"),
    "behind 160 KB of headers": _long_head,
    "base64 with junk": _junk_base64,
    "ham in the preamble": _preamble,
}

# --- spelling: the words of the spam look the same and are written otherwise -----------------

_WORD = re.compile(r"[^\W\d_]{4,}")


def _letters(first_small: int, first_capital: int) -> dict[int, int]:
    """Return a table of the alphabets that begin at two code points."""
    return {
        ord(letter) + i: first + i
        for letter, first in (("a", first_small), ("A", first_capital))
        for i in range(26)
    }


_UNSEEN = (
    *(0x34F, 0x61C, 0x115F, 0x17B4, 0x180E, 0x200E, 0x2062, 0x2800, 0x3164),
    *(0xFE0F, 0xFEFF, 0xFFA0, 0xFFF9, 0x1BCA0, 0x1D173, 0xE0061, 0xE0100),
)
_BLANKS = (0xB7, 0x2009, 0x2010, 0x2027, 0x2044, 0x30FB)

# Letters for letters, which look the same or can be read.
TRANSLATED: dict[str, dict[int, int]] = {
    "Cyrillic letters": str.maketrans("aceopxyijsABCEHKMOPTX", "асеорхуіјѕАВСЕНКМОРТХ"),
    "Greek letters": str.maketrans("aeiknopuvxABEHIKMNOPTXYZ", "αεικηορυνχΑΒΕΗΙΚΜΝΟΡΤΧΥΖ"),
    "full width": _letters(0xFF41, 0xFF21),
    "mathematical bold": _letters(0x1D41A, 0x1D400),
    "mathematical sans": _letters(0x1D5BA, 0x1D5A0),
    "circled letters": _letters(0x24D0, 0x24B6),
    "small capitals": str.maketrans("abcdefghijklmnoprtuvwz", "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀᴛᴜᴠᴡᴢ"),
    "accents": str.maketrans("aeiouyncAEIOU", "áëîöûÿñçÀÉÏÔÚ"),
    "digits for letters": str.maketrans("aeiosAEIOS", "4310543105"),
    "signs for letters": str.maketrans("ailsAILS", "@!|$@!|$"),
    "fraktur": _letters(0x1D586, 0x1D56C),
    "script": _letters(0x1D4EA, 0x1D4D0),
    "double-struck": _letters(0x1D552, 0x1D552),
    "typewriter": _letters(0x1D68A, 0x1D670),
    "in parentheses": _letters(0x249C, 0x249C),
    "squared letters": _letters(0x1F130, 0x1F130),
    "Armenian letters": str.maketrans("houqnSOULg", "հօսզոՏՕՍԼց"),
    "Cherokee letters": str.maketrans(
        ascii_lowercase + ascii_uppercase, 2 * "ᎪᏴᏟᎠᎬFᏀᎻᏆᎫᏦᏞᎷNOᏢQᎡᏚᎢUᏙᎳXᎩᏃ"
    ),
    "numerals for letters": str.maketrans("ivxlcdm", "ⅰⅴⅹⅼⅽⅾⅿ"),
    "raised letters": str.maketrans("abcdefghijklmnoprstuvwxyz", "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ"),
}
# Marks between all letters, or one in the middle of each word.
_BETWEEN = {
    "marks on letters": "\u0323",
    "strokes through letters": "\u0336",
    "zero width space": "\u200b",
    "word joiner": "\u2060",
    "l a p a r t": " ",
    "d.o.t.s": ".",
    "h-y-p-h-e-n-s": "-",
    "underlines": "_",
    "accents that stand alone": "\u0301\u0300",
    **{f"U+{code:04X} in words": chr(code) for code in _UNSEEN},
}
_ONCE = {
    "zero width joiner, once": "\u200d",
    "soft hyphen, once": "\u00ad",
    "as*terisk": "*",
    "two parts": " ",
    **{f"U+{code:04X} for blanks": chr(code) for code in _BLANKS},
}
_ONCE_IN_HTML = {
    "tags in words": "<b></b>",
    "<wbr>": "<wbr>",
    "comments in words": "<!-- k -->",
    "false tags in words": "<kx7>",
    "hidden letters": '<span style="display:none">xq</span>',
    "tiny letters": '<font style="font-size:1px">zw</font>',
    "white letters": '<font color="#ffffff">q</font>',
    "tiny spaces": '<span style="font-size:0"> </span>',
    "&zwnj;, once": "&zwnj;",
}


def respelt(mail: Mail, spell: Callable[[str], str], needs_html: bool = False) -> bytes:
    """Return the mail with every word of four letters or more spelt otherwise.

    The subject, too, unless it would need HTML.
    """
    pieces = NOT_TEXT.split(mail.html if needs_html else mail.text)
    pieces[::2] = [_WORD.sub(lambda m: spell(m[0]), piece) for piece in pieces[::2]]
    if not needs_html:
        mail = mail.with_subject(lambda said: _WORD.sub(lambda m: spell(m[0]), said))
    return mail._replace(is_html=needs_html or mail.is_html).written("".join(pieces))


def _once(word: str, mark: str) -> str:
    return word[: len(word) // 2] + mark + word[len(word) // 2 :]


def _one_letter(word: str, name: str, letters: str) -> str:
    return re.sub(f"[{letters}]", lambda m: m[0].translate(TRANSLATED[name]), word, count=1)


def _references(word: str) -> str:
    return "".join(f"&#{ord(c)};" if i % 2 else f"&#x{ord(c):x};" for i, c in enumerate(word))


def _swapped(word: str) -> str:
    """Swap two letters in the middle: misspelt words are read as quickly."""
    i = len(word) // 2
    return word[: i - 1] + word[i] + word[i - 1] + word[i + 1 :]


UNICODE: dict[str, Callable[[str], str]] = {
    **{name: methodcaller("translate", table) for name, table in TRANSLATED.items()},
    **{name: mark.join for name, mark in _BETWEEN.items()},
    **{name: partial(_once, mark=mark) for name, mark in _ONCE.items()},
    "one Cyrillic letter": partial(_one_letter, name="Cyrillic letters", letters="aeo"),
    "one digit for a letter": partial(
        _one_letter, name="digits for letters", letters="aeiosAEIOS"
    ),
    "swapped letters": _swapped,
    "doubled letters": lambda word: _once(word, word[len(word) // 2]),
    "no vowel in the middle": lambda word: word[0] + re.sub("[aeiou]", "", word[1:-1]) + word[-1],
    "right to left": lambda word: f"\u202e{word[::-1]}\u202c",
    "isolated, reversed": lambda word: f"\u2067\u202e{word[::-1]}\u202c\u2069",
}
MARKED_UP: dict[str, Callable[[str], str]] = {
    **{name: partial(_once, mark=mark) for name, mark in _ONCE_IN_HTML.items()},
    "tags around letters": lambda word: "".join(f"<span>{letter}</span>" for letter in word),
    "references": _references,
    "&shy;": "&shy;".join,
    "bdo": lambda word: f'<bdo dir="rtl">{word[::-1]}</bdo>',
    "rtl by style": lambda word: (
        f'<span style="unicode-bidi:bidi-override;direction:rtl">{word[::-1]}</span>'
    ),
}
SPELLING: dict[str, Form] = {
    **{name: partial(respelt, spell=spell) for name, spell in UNICODE.items()},
    **{name: partial(respelt, spell=spell, needs_html=True) for name, spell in MARKED_UP.items()},
}

# --- plain: good words in sight ----------------------------------------------------------------


def _stuffed(mail: Mail, text: str, at_the_top: bool = False) -> bytes:
    """Put text below or above the spam, of the spam's type."""
    if mail.is_html:
        end = re.search(r"</body\b|$(?![\s\S])", mail.text, re.IGNORECASE)
        at = end.start() if end else len(mail.text)
        begin = re.search(r"<body\b[^>]*>", mail.text, re.IGNORECASE)
        at = (begin.end() if begin else 0) if at_the_top else at
        return mail.written(f"{mail.text[:at]}\n<p>{as_html(text)}</p>\n{mail.text[at:]}")
    return mail.written("\n\n".join((text, mail.text) if at_the_top else (mail.text, text)))


def _below(text: Callable[[Mail], str]) -> Form:
    return lambda mail: _stuffed(mail, text(mail))


def _above(text: Callable[[Mail], str]) -> Form:
    return lambda mail: _stuffed(mail, text(mail), at_the_top=True)


def _quoted(mail: Mail) -> bytes:
    quoted = "\n".join(f"> {line}" for line in mail.ham().splitlines())
    return _stuffed(mail, f"On Tue, 3 Sep 2002, Sam wrote:\n{quoted}")


def _quotes_of_quotes(mail: Mail) -> str:
    return "\n".join(f"{'>' * (i % 6)} {row}" for i, row in enumerate(mail.ham().splitlines()))


def _digest(mail: Mail) -> str:
    hams = (mail.ham(i)[:400] for i in range(8))
    return "\n".join(f"Message: {i}\n\n{ham}\n{'-' * 30}" for i, ham in enumerate(hams))


def _forwarded(mail: Mail) -> bytes:
    """Put one line of the spam, with its address if it has one, above a ham that is forwarded."""
    said = max(mail.plain.splitlines(), key=lambda line: ("://" in line, len(line)))[:300]
    return mail.message(
        text_part(f"{said}\n\n---------- Forwarded message ----------\n{mail.ham()}\n")
    )


def _in_headers(mail: Mail) -> bytes:
    words = mail.good.words
    named = {"Organization": words[:10], "X-Note": words[10:60], "Comments": words[60:110]}
    more = "".join(f"{name}: {' '.join(said)}\n" for name, said in named.items())
    return mail.message(mail.part(), more + f"Keywords: {', '.join(words[110:150])}\n")


def _in_subject(mail: Mail) -> bytes:
    longer = mail.with_subject(lambda said: f"{said} {' '.join(mail.good.words[:12])}")
    return longer.message(mail.part())


def _sentences(mail: Mail) -> bytes:
    """Put good words between the lines of the spam."""
    rows = re.split(r"(?i)(?<=<br>|</p>)", mail.text) if mail.is_html else mail.text.splitlines()
    step = max(1, 200 // max(len(rows), 1))
    said = (" ".join(mail.good.words[i * step % 200 :][:step]) for i in range(len(rows)))
    pairs = zip(rows, said, strict=True)
    return mail.written("".join(f"{row}\n{words}\n" for row, words in pairs))


def _alternating(mail: Mail) -> bytes:
    """Put a good word behind every word of the spam."""
    words = mail.good.words[:300]
    mixed = (f"{word} {words[i % len(words)]}" for i, word in enumerate(mail.plain.split()))
    return mail.message(text_part("\n".join(mixed)))


def _heads(line: str) -> Form:
    """Return the form that adds a line to the head for each of sixty good words."""
    return lambda mail: mail.message(
        mail.part(), "".join(line.format(word) + "\n" for word in mail.good.words[:60])
    )


def _page(element: str, around: str = "{}") -> Form:
    """Return the form with an element of HTML for each of 150 good words, in sight."""
    return lambda mail: mail.page(
        around.format(" ".join(map(element.format, mail.good.words[:150])))
    )


def _beside(name: str = "") -> Form:
    """Return the form with a part of ham behind the spam; name: of the file, if it is one."""
    more = {"disposition": f'attachment; filename="{name}"'} if name else {}
    return lambda mail: mail.mixed(mail.part(), text_part(f"{mail.ham()}\n", **more))


def _unknown_heads(form: Form) -> Form:
    """Return a form whose spam has 400 fields in its head that no model knows."""

    def attack(mail: Mail) -> bytes:
        names = [sha256(f"{mail.number} {n}".encode()).hexdigest()[:12] for n in range(400)]
        head = "".join(f"X-{name}: {name[::-1]}\n" for name in names)
        return form(mail._replace(head=mail.head + head.encode()))

    return attack


PLAIN: dict[str, Form] = {
    "fields that nobody knows": _unknown_heads(lambda mail: mail.message(mail.part())),
    "such fields, 50 words below": _unknown_heads(_below(methodcaller("words", 50))),
    "such fields, 150 words below": _unknown_heads(_below(methodcaller("words", 150))),
    "words between words": _alternating,
    "digest of a list above": _above(_digest),
    "quotes of quotes below": _below(_quotes_of_quotes),
    "words as fields of the head": _heads("X-{}: yes"),
    "words as hosts on the way": _heads("Received: from {0} (mail.{0}.example) by mx.example"),
    "words as ids of a thread": _heads("References: <{0}@{0}.example>"),
    "words as hosts of a list": _heads("List-Archive: <http://{}.example/>"),
    "words as links": _page('<a href="http://example.org/">{}</a>'),
    "words as hosts of links": _page('<a href="http://{}.example/">x</a>'),
    "words in a table": _page("<td>{}</td>", "<table><tr>{}</tr></table>"),
    "words as names of pictures": _page('<img src="http://example.org/{}.png">'),
    "words in a quotation": _page("{}", "<blockquote>{}</blockquote>"),
    "ham as a second part": _beside(),
    "ham as an attached text": _beside("notes.txt"),
    **{f"{n} words below": _below(methodcaller("words", n)) for n in (50, 150, 500)},
    **{f"{n} words above": _above(methodcaller("words", n)) for n in (50, 150, 500)},
    "one word, 300 times": _below(lambda mail: lines((mail.good.words[mail.number % 20],) * 300)),
    "words between lines": _sentences,
    "in the subject": _in_subject,
    "in headers": _in_headers,
    "ham text below": _below(Mail.ham),
    "ham text above": _above(Mail.ham),
    "quoted ham below": _quoted,
    "60 KB of ham first": partial(_behind, kb=60),
    "forwarded ham, a line of spam": _forwarded,
    "three hams below": _below(methodcaller("hams", 3)),
    "first lines of twenty hams": _above(
        lambda mail: "\n".join(mail.ham(i)[:80] for i in range(20))
    ),
    "footer of a list": _below(lambda mail: f"{'_' * 47}\n{mail.ham()[-200:]}"),
    "code below": _below(lambda _: inspect.getsource(re.sub) * 9),
    "words as names of sender": lambda mail: mail.message(
        mail.part(),
        f"Reply-To: {' '.join(mail.good.words[:20])} <{mail.good.words[0]}@example.org>\n",
    ),
    "words as names of files": lambda mail: mail.mixed(
        mail.part(),
        *(_picture(f'attachment; filename="{word}.gif"') for word in mail.good.words[:30]),
    ),
    "words in addresses": _below(
        lambda mail: "\n".join(f"http://www.kvqx.example/{w}.html" for w in mail.good.words[:60])
    ),
}

# --- thread: the spam poses as an answer -------------------------------------------------------

THREAD: dict[str, Form] = {
    "headers of a ham thread": lambda mail: mail.in_thread().message(mail.part()),
    "reply above a quoted ham thread": lambda mail: _quoted(mail.in_thread()),
    "all heads of a ham": lambda mail: mail.in_thread(whole=True).message(mail.part()),
    "all heads of a ham, quoted ham": lambda mail: _quoted(mail.in_thread(whole=True)),
}

FORMS: dict[str, dict[str, Form]] = {
    "hidden": HIDDEN,
    "place": PLACE,
    "spelling": SPELLING,
    "plain": PLAIN,
    "thread": THREAD,
}
# With the model in hand these are stuffed with other words.
STUFFED = frozenset(("hidden", "plain"))
