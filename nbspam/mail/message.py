"""Parsing messages: from bytes to fields, the texts of a message by their origin.

Mail may be well-formed, broken, or broken on purpose; all of it is parsed, and nothing
raises.  Errors in a message are noted in a field of defects, which are evidence, too.
"""

import re
from binascii import unhexlify
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from nbspam.charsets import CharsetGuess, to_utf8
from nbspam.mail import headers
from nbspam.mail.headers import LIMITS, NESTED_HEAD, Field, OpenedMessage, ReadingLimits
from nbspam.mail.parts import (
    NO_RANK,
    SHOWN_BY_SOME,
    FoundText,
    Parts,
    granted_shares,
    sampled,
    shared,
    spread_indices,
)

if TYPE_CHECKING:
    from nbspam.mail.html import Html

# Uuencoded data must have full lines, of 45 bytes in 60 characters: shorter ones could be words.
# Such a line is searched first, because single bytes are found quickly and M is rare.  For
# `|(?!)` see `headers`.
_FULL_LINE = re.compile(rb"M(?<=\nM)[ -`]{60,61}\n")
_UUENCODED = re.compile(
    rb"^begin [0-7]{3,4} (.{1,200})\n"
    rb"(?:M[ -`]{60,61}\n|(?!))++(?:[ -`]{1,61}\n|(?!)){0,2}+(?:end\n)?",
    re.MULTILINE,
)
# No browser lets a page declare UTF-7, in which markup is hidden, or UTF-16 in letters of ASCII.
_META_CHARSET = re.compile(
    rb"<meta[^<>]{1,200}?charset=[\"']?(?![\w-]*(?:utf-?7|utf-?16|ucs-?2|unicode))([\w-]{1,40})",
    re.IGNORECASE,
)
_META_REACH = 1024  # bytes in which HTML must declare its charset
_MAX_PICTURES = 50  # of a message, in pages: asking for many small ones takes seconds
_PICTURE = re.compile(rb"(?i:base64),\s*+((?:iVBOR|/9j/|R0lGOD|Qk|UklGR)[A-Za-z0-9+/=\s]{99,})")
# Bytes of the beginning of a writer's own text.  A message in which its writer says less than a
# few bytes says what it quotes: E-321.
_BEGINNING, _FEW_BYTES = 2000, 20
# Words in lines that introduce another message, such as "On 3 September 2002, Sam wrote:", or the
# address there, in mail programs of many languages.
_INTRODUCTION = re.compile(
    r"wrote|writes|[Ff]orwarded message|schrieb|écrit|escribió|scritto|写道"
    r"|<[^\s<>@]++@[^\s<>]++>".encode()
)
_LINE_ENDS = [re.compile(f"{colon}[ \t]*+\n".encode()) for colon in ":："]  # of such lines
# Lines in which Outlook repeats the head of a message above its text.
_REPEATED_HEAD = re.compile(
    "\n[ \t*]*+(?:From|Von|D[ea]|发件人)(?: |\xa0)?(?::|：).*\n(?:.*\n){1,12}?"
    "[ \t*]*+(?:Subject|Betreff|Objet|Asunto|Oggetto|主题)(?: |\xa0)?(?::|：)".encode()
)
_TITLED_RULE = re.compile(rb"^[^\n\S]*+-----[- ]*+[^- \n].*-----[^\n\S]*$", re.MULTILINE)
_BLANK = re.compile(rb"[ \n]")
# The first of quoted lines begins with >, the rarest byte there.  Mailboxes put it before "From ".
_QUOTED_LINES = re.compile(rb">(?<![^\n]>)(?!>*+From )[^\n]*+\n?+(?:[ \t]*+>[^\n]*+\n?+)*+")


class Message(NamedTuple):
    """The fields of a message."""

    fields: tuple[Field, ...]


def by_header(fields: Iterable[Field]) -> Iterator[Field]:
    """Yield the fields, with heads split into the names and values that count."""
    for item in fields:
        if item.origin not in headers.HEADS:
            yield item
            continue
        for name, value in headers.header_lines(item.text):
            of_name, of_value = headers.origins_of(item.origin, name)
            if of_name is not None:
                yield Field(of_name, name)
            if of_value is not None:
                yield Field(of_value, value)


def parse_message(data: bytes, limits: ReadingLimits = LIMITS) -> Message:
    """Return the fields of a message; never raises."""
    return parse_opened(headers.open_message(data), limits)


def parse_opened(message: OpenedMessage, limits: ReadingLimits) -> Message:
    """Return the fields of a message whose head was walked already; never raises."""
    return _MessageReader(message, limits).message()


def plain_text(data: bytes) -> Message:
    """Return a text that is not mail, such as a table's cell, as a message of one field."""
    text = sampled(to_utf8(data, None)[0], LIMITS.text)
    return Message((Field("body", text),))


class _MessageReader:
    """The reader of one message: its parts, its texts in UTF-8, and its defects."""

    def __init__(self, message: OpenedMessage, limits: ReadingLimits) -> None:
        self.limits = limits
        self.parts = Parts(message, limits)
        self.defects = self.parts.defects
        self.files: dict[int, list[Field]] = {}  # names of uuencoded files in each text
        self.guess = CharsetGuess(self.parts.undeclared_texts)
        self.texts = [self.decoded(i, text) for i, text in enumerate(self.parts.texts)]
        if self.parts.encoded:
            self.parts.decode_fields(CharsetGuess(self.parts.undeclared))
        self.are_html = [text.is_html for text in self.parts.texts]
        if sum([len(text) for text in self.texts]) > limits.source:
            self.defects.add("truncated")
            self.texts = shared(self.texts, self.are_html, limits.source)

    def decoded(self, index: int, text: FoundText) -> bytes:
        """Return a text in UTF-8, without uuencoded files."""
        data, charset = headers.decode_transfer(text.data, text.encoding), text.charset
        if text.is_html and not charset and (meta := _META_CHARSET.search(data[:_META_REACH])):
            charset = meta[1].decode("latin-1")
        data, defect = to_utf8(data, charset, self.guess)
        data = headers.with_line_feeds(data)  # those of encoded text are still CRLF
        if defect is not None:
            self.defects.add(defect)
        if text.is_html and self.limits.documents and data.find(b"64,") >= 0:
            room = max(_MAX_PICTURES - len(self.parts.documents), 0)
            held = map(headers.decode_base64, _PICTURE.findall(data)[:room])
            self.parts.documents += [("png", picture) for picture in held]  # or of another kind
        if not text.is_html and _FULL_LINE.search(data):
            self.files[index] = [Field("filename", each[1]) for each in _UUENCODED.finditer(data)]
            data = _UUENCODED.sub(b"\n", data)
        return data if text.is_html or 0 not in data else data.replace(b"\0", b"")  # not shown

    def message(self) -> Message:
        """Return the message."""
        parts, texts = self.parts, self.texts
        parsed = self.parsed()
        visible = [parsed[i].visible if i in parsed else text for i, text in enumerate(texts)]
        if sum([len(text) for text in visible]) > self.limits.text:
            self.defects.add("truncated")
            visible = shared(visible, [False] * len(visible), self.limits.text)
        unseen: Collection[int] = ()
        if parts.choices:
            unseen = unseen_texts(parts.texts, parts.choices, visible)
        if unseen:
            self.defects.add("alternatives-differ")
        fields: list[Field] = []
        urls: list[bytes] = []
        facts: set[str] = set()
        done = 0
        for i, text in enumerate(visible):
            fields += parts.fields[done : parts.texts[i].field]
            done = parts.texts[i].field
            if i in self.files:
                fields += self.files[i]
            if i in parsed:
                html = parsed[i]
                more = (
                    Field("hidden", sampled(html.hidden, self.limits.text)),
                    Field("alt", html.alt),
                )
                fields += [item for item in more if item.text.strip()]
                urls += () if i in unseen else html.urls
                facts.update(html.facts)
            if i in unseen:
                fields.append(Field("hidden", text))
            else:
                fields.append(Field("body", text))
                urls += links_of(text)
        fields += parts.fields[done:]
        if self.limits.documents:
            parts.documents += self.drawn(parsed)
        if parts.documents:
            fields += self.documents(urls)
        if urls:
            if len(urls) > self.limits.urls:
                urls = [urls[i] for i in spread_indices(urls, self.limits.urls)]
            fields.append(Field("url", _decoded_links(urls)))
        fields = self.bounded(fields)
        for origin, words in (("html", facts), ("defect", self.defects)):
            if words:
                fields.append(Field(origin, " ".join(sorted(words)).encode()))
        return Message(tuple(fields))

    def bounded(self, fields: list[Field]) -> list[Field]:
        """Return the fields, shortened if a subject, heads or names of files are endless."""
        sizes = [len(text) for _, text in fields]
        if sum(sizes) <= self.limits.source:
            return fields
        self.defects.add("truncated")
        shares = granted_shares(sizes, self.limits.source)
        pairs = zip(fields, shares, strict=True)
        return [Field(origin, sampled(text, share)) for (origin, text), share in pairs]

    def parsed(self) -> dict[int, "Html"]:
        """Return the texts in HTML, read, by their numbers."""
        if True not in self.are_html:
            return {}
        # Imported late: a message without HTML need not wait for it.
        from nbspam.mail.html import read_html

        places = [i for i, is_html in enumerate(self.are_html) if is_html]
        attached = [n for n, i in enumerate(places) if self.parts.texts[i].rank == NO_RANK]
        read = read_html([self.texts[i] for i in places], attached, self.limits.documents > 0)
        return dict(zip(places, read, strict=True))

    def drawn(self, parsed: Mapping[int, "Html"]) -> list[tuple[str, bytes]]:
        """Return rows of block characters that may be codes, of texts and of drawings in HTML."""
        from nbspam.mail.rendered import may_draw_code  # late: most models do not read codes

        rows = [parsed[i].drawn if i in parsed else text for i, text in enumerate(self.texts)]
        return [("drawn", each) for each in rows if may_draw_code(each)]

    def documents(self, urls: list[bytes]) -> list[Field]:
        """Return the fields of attached documents, and add their links to `urls`."""
        # Imported late: most mail has no documents, and most models do not read them.
        from nbspam.mail.documents import READER

        read = READER.read(self.parts.documents, self.limits.documents / 1000)
        urls += [link.encode() for document in read for link in document.links]
        shown = [document.text.encode() for document in read]
        hidden = [document.hidden.encode() for document in read]
        for text in shown:
            urls += links_of(text)
        fields = []
        for origin, texts in (("attached", shown), ("hidden", hidden)):
            texts = shared(texts, [False] * len(texts), self.limits.text)
            fields += [Field(origin, text) for text in texts if text]
        facts = {fact for document in read for fact in document.facts}
        return [*fields, Field("file", " ".join(sorted(facts)).encode())]


# --- which texts are shown --------------------------------------------------------------------

# Of alternative parts mail programs show HTML if there is any, some the first one and some the
# last.  Text that none of them shows counts only where it differs from the shown text, and then
# as hidden.  Of related parts many show all.

# Two patterns that begin with a literal are five times as fast as one that does not.
_LINK = re.compile(rb"://[^\s<>\"'()\[\]{}]{1,2000}")
_BARE_LINK = re.compile(rb"www\.[^\s<>\"'()\[\]{}]{1,2000}")
_DATA_LINK = re.compile(rb"^(data:[^,\n]*+),.*", re.MULTILINE)
_CODED_BYTE = re.compile(rb"%([0-9A-Fa-f]{2})")
# Signs behind which Chinese and Japanese text goes on without a blank, such as 。 and ，.
_WIDE_SIGN = re.compile(rb"\xe3\x80[\x80-\x9f]|\xef\xbc[\x81-\x8f\x9a-\xa0]")
# Words that are compared between alternatives: of scripts that have words, and the characters of
# those that write without blanks.
_WORD = re.compile(rb"(?:[a-z]|[\xc3-\xdf][\x80-\xbf])++|[\xe0-\xef][\x80-\xbf]{2}")
# For bytes.translate: lower case, and a space for everything but letters.
_LETTERS = bytes(range(256)).lower()
_LETTERS = bytes(c if c > 127 or bytes([c]).isalpha() else ord(" ") for c in _LETTERS)
_MIN_LETTERS = 3  # of a word that is compared
# Alternatives may differ by this many words, such as "your mail program cannot show HTML".
_FEW_WORDS = 10


def unseen_texts(texts: Sequence[FoundText], n_choices: int, visible: Sequence[bytes]) -> set[int]:
    """Return the numbers of the texts that are not shown and differ from the shown ones.

    visible: the visible part of each text in UTF-8.
    """
    branches: list[dict[int, list[int]]] = [{} for _ in range(n_choices)]
    for i, text in enumerate(texts):
        for number, branch in text.branches:
            branches[number].setdefault(branch, []).append(i)
    left_out: set[int] = set()
    differing: dict[int, set[bytes]] = {}
    # Inner choices come first: text that they hide is not shown by outer ones either.
    for own in reversed(branches):
        if len(own) < 2:  # one text is no choice
            continue
        rank = {branch: max(texts[i].rank for i in numbers) for branch, numbers in own.items()}
        best = max((each for each in rank.values() if each != SHOWN_BY_SOME), default=NO_RANK)
        shown = {branch for branch in rank if rank[branch] >= best}
        kept = [i for branch in shown for i in own[branch]]
        seen = set().union(*(_words(visible[i]) for i in kept if i not in left_out))
        for branch in own.keys() - shown:
            left_out.update(own[branch])
            for i in own[branch]:
                differing[i] = _words(visible[i]) - seen
    # All together, because an attacker can write many alternatives that differ a little.
    words = set().union(*differing.values())
    if sum(len(word) >= _MIN_LETTERS for word in words) <= _FEW_WORDS:
        return set()
    return {i for i, words in differing.items() if words}


def _words(text: bytes) -> set[bytes]:
    """Return the different words of a text, without its links."""
    text = _BARE_LINK.sub(b" ", _LINK.sub(b" ", text)).translate(_LETTERS)
    words = set(text.split())
    if not text.isascii():
        # Few different words are beyond ASCII, so only they are searched by a pattern.
        beyond = [word for word in words if not word.isascii()]
        words.difference_update(beyond)
        words.update(_WORD.findall(b" ".join(beyond)))
    return words


def links_of(text: bytes) -> list[bytes]:
    """Return the links in a text; those that begin with www. only if there are no others."""
    links = _LINK.findall(text) or _BARE_LINK.findall(text)
    return [each if each.isascii() else _WIDE_SIGN.split(each, 1)[0] for each in links]


def _decoded_links(urls: Iterable[bytes]) -> bytes:
    """Return links, a line each, as browsers read them: %41 is the letter A."""
    joined = b"\n".join(urls)
    if joined.find(b"data:") >= 0:  # of data in a link only their type counts
        joined = _DATA_LINK.sub(rb"\1", joined)
    if joined.find(b"%") < 0:
        return joined
    decoded = _CODED_BYTE.sub(lambda byte: unhexlify(byte[1]), joined)
    return decoded.decode("utf-8", "replace").encode()


# --- signs ------------------------------------------------------------------------------------

# How often a text has some signs tells ham from spam in other people's mail, too: E-363.
_SIGNS = {"exclamation": "!", "percent": "%", "dollar": "$", "parenthesis": "("}
_TO_WIDE, _FIRST_OF_WIDE = ord("！") - ord("!"), "！".encode()[0]  # signs of Chinese and Japanese
_LEVELS = ("none", *range(11))
_SHORT = 300  # bytes by which a text is taken to be longer
# The bytes of each sign, those of its wide form, and its facts by level.
_COUNTED = [
    (sign.encode(), chr(ord(sign) + _TO_WIDE).encode(), [f"{name}-{level}" for level in _LEVELS])
    for name, sign in _SIGNS.items()
]


def with_signs(message: Message) -> Message:
    """Return a message with a field that tells how often its text has each of _SIGNS.

    A level is the number of signs for each 1,000 bytes, as a power of two.
    """
    text = b"".join([text for origin, text in message.fields if origin == "body"])
    has_wide = _FIRST_OF_WIDE in text
    facts = []
    for sign, wide, of_levels in _COUNTED:
        # Faster than bytes.count, which compares one byte at a time.
        number = len(text) - len(text.replace(sign, b""))
        if has_wide:
            number += text.count(wide)
        level = (1000 * number // (len(text) + _SHORT)).bit_length() + 1 if number else 0
        facts.append(of_levels[level])
    return Message((*message.fields, Field("signs", " ".join(facts).encode())))


# --- the beginning of a writer's own text -----------------------------------------------------

# A spammer may add any ham text: quoted below a reply, forwarded, or just appended.  People judge
# such a message by its beginning, and so does the classifier: see `combine.beginnings`.  Nothing
# depends on who really wrote what, because the whole text is judged, too.


def with_beginning(message: Message) -> Message:
    """Return a message with the rest of its texts, behind its beginning, in a field of its own."""
    fields = message.fields
    places = [place for place, (origin, _) in enumerate(fields) if origin == "body"]
    if places[:1] == [1]:
        del places[0]  # the subject, which follows the head
    n_own = len(places)
    if n_own > 1:
        heads = (place for place, field in enumerate(fields) if field.origin == NESTED_HEAD)
        n_own = bisect_left(places, next(heads, len(fields)))
    texts = [fields[place].text for place in places]
    if len(texts) == 1 and len(texts[0]) <= _BEGINNING and texts[0].find(b"\n", 0, -1) < 0:
        return message  # a single line is all that its writer says
    beginnings, rest = own_beginnings(texts[:n_own], texts[n_own:])
    if not rest:
        return message
    apart = list(fields)
    for place, text in zip(places, beginnings, strict=True):
        apart[place] = Field("body", text)
    return Message((*apart, Field("rest", rest)))


def own_beginnings(
    texts: Sequence[bytes], attached: Sequence[bytes] = ()
) -> tuple[list[bytes], bytes]:
    """Return the beginning of each of a message's texts, and the rest of all of them.

    The beginnings have about _BEGINNING bytes together, and nothing that seems to be quoted.
    attached: the texts of attached messages, which follow.
    """
    apart = [_without_quotes(text) for text in texts] + [(b"", (text,)) for text in attached]
    if sum([len(own.strip()) for own, _ in apart]) < _FEW_BYTES:
        apart = [(text, ()) for text in (*texts, *attached)]
    beginnings: list[bytes] = []
    rest: list[bytes] = []
    room = _BEGINNING
    for own, quoted in apart:
        blank = _BLANK.search(own, room) if len(own) > room else None
        end = blank.start() if blank else len(own)
        beginnings.append(own[:end])
        rest += [part for part in (own[end:], *quoted) if part]
        room = max(room - end, 0)
    return beginnings, b"\n".join(rest)


def _without_quotes(text: bytes) -> tuple[bytes, Sequence[bytes]]:
    """Return the part of a text that its writer seems to have written, and the other parts."""
    own, quoted = _without_quoted_lines(text) if text.find(b">") >= 0 else (text, b"")
    end = min(_introduction(own), _titled_rule(own))
    if head := _REPEATED_HEAD.search(own, 0, _BEGINNING):
        end = min(end, head.start() + 1)
    return own[:end], (own[end:], quoted)


def _without_quoted_lines(text: bytes) -> tuple[bytes, bytes]:
    """Return the lines of a text that are not quoted, and the quoted ones."""
    own: list[bytes] = []
    quoted: list[bytes] = []
    done = 0
    for lines in _QUOTED_LINES.finditer(text):
        start, end = lines.span()
        if text[done:start].rstrip().endswith(b":"):  # an introduction
            start = max(text.rfind(b"\n", done, start - 1) + 1, done)
        own.append(text[done:start])
        quoted.append(text[start:end])
        done = end
    own.append(text[done:])
    return b"".join(own), b"".join(quoted)


def _introduction(text: bytes) -> int:
    """Return where the first line starts that introduces another message; else the end.

    Only lines near the beginning are looked at.
    """
    first = len(text)
    for pattern in _LINE_ENDS[:1] if text.isascii() else _LINE_ENDS:
        for match in pattern.finditer(text, 0, min(first, _BEGINNING)):
            start = text.rfind(b"\n", 0, match.start()) + 1
            if _INTRODUCTION.search(text, start, match.start()):
                first = start
                break
    return first


def _titled_rule(text: bytes) -> int:
    """Return where the first line like "-----Original Message-----" starts; else the end."""
    has_rule = text.find(b"-----", 0, _BEGINNING) >= 0
    title = _TITLED_RULE.search(text, 0, _BEGINNING) if has_rule else None
    return title.start() if title else len(text)
