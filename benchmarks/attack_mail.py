"""A spam taken apart and put together again, for benchmarks/attacks.py.

Attacks edit MIME properly: the headers stay as they are except those on content, and the body
becomes one part or several of declared types.
"""

import html
import re
from base64 import encodebytes
from collections.abc import Callable
from email import message_from_bytes, policy
from email.header import Header, decode_header, make_header
from email.message import Message
from hashlib import md5
from typing import NamedTuple

_HEADER = re.compile(rb"[!-9;-~]+[ \t]*:.*\n(?:[ \t].*\n)*|From .*\n")
_SUBJECT = re.compile(rb"^Subject:[ \t]*(.*(?:\n[ \t].*)*)\n", re.IGNORECASE | re.MULTILINE)
_OF_THREAD = re.compile(
    rb"(?:subject|in-reply-to|references|thread-\w+|list-[\w-]+|mailing-list|precedence|x-beenthere"
    rb"|x-mailman-version|x-mailer|user-agent|sender|errors-to|organization)[ \t]*:",
    re.IGNORECASE,
)
_ANSWERS = re.compile(rb"^(?:in-reply-to|references)[ \t]*:", re.IGNORECASE | re.MULTILINE)
_ON_CONTENT = re.compile(rb"(?:content-|mime-version)", re.IGNORECASE)
_BODY_TAG = re.compile(r"<body\b[^>]*>", re.IGNORECASE)
_BODY_END = re.compile(r"</body\b[^>]*>", re.IGNORECASE)
# What of HTML is not shown text: comments, scripts, styles, tags, references, addresses.
NOT_TEXT = re.compile(
    r"(<!--.*?-->|<(?:script|style)\b.*?</(?:script|style)|<[^>]*>|&[#\w]+;?|\w+://\S+)",
    re.IGNORECASE | re.DOTALL,
)


class Good(NamedTuple):
    """The attacker's knowledge of the receiver's ham."""

    words: tuple[str, ...]  # words that only ham has, best first
    texts: tuple[str, ...]  # of ham
    heads: tuple[bytes, ...] = ()  # all headers of ham that answers other ham, except on content


class Mail(NamedTuple):
    """A spam to attack."""

    number: int  # makes deterministic choices vary from mail to mail
    head: bytes  # the headers, except those on content
    text: str
    is_html: bool
    good: Good = Good((), ())

    @property
    def html(self) -> str:
        """The spam as HTML."""
        return self.text if self.is_html else as_html(self.text)

    @property
    def plain(self) -> str:
        """The spam as plain text, roughly."""
        return as_text(self.text) if self.is_html else self.text

    @property
    def type(self) -> str:
        """The type that the spam had."""
        return "text/html" if self.is_html else "text/plain"

    def part(self, encoding: str = "8bit") -> bytes:
        """Return the spam as one part, of the type that it had."""
        return text_part(self.text, self.type[5:], encoding)

    def written(self, text: str) -> bytes:
        """Return the message with this text, of the type that the spam had."""
        return self.message(text_part(text, self.type[5:]))

    def mixed(self, *parts: bytes, kind: str = "mixed") -> bytes:
        """Return the message whose body holds these parts."""
        return self.message(multipart(*parts, kind=kind))

    def behind_ham(self, *parts: bytes, kind: str = "mixed") -> bytes:
        """Return the message whose body holds a ham text and then these parts."""
        return self.mixed(text_part(self.ham()), *parts, kind=kind)

    def message(self, part: bytes, more: str = "") -> bytes:
        """Return the message whose head is the spam's, and whose body is this part.

        more: lines of headers.
        """
        return self.head + more.encode() + b"MIME-Version: 1.0\n" + part

    def with_subject(self, change: Callable[[str], str]) -> "Mail":
        """Return the spam with another subject, a function of its own."""

        def changed(match: re.Match[bytes]) -> bytes:
            said = str(make_header(decode_header(match[1].decode("latin-1")))).split()
            return b"Subject: " + Header(change(" ".join(said)), "utf-8").encode().encode() + b"\n"

        return self._replace(head=_SUBJECT.sub(changed, self.head))

    def words(self, n: int) -> str:
        """Return the n best good words, in lines."""
        return lines(self.good.words[:n])

    def ham(self, turn: int = 0) -> str:
        """Return the text of a ham; another one for another turn."""
        return self.good.texts[(self.number + 31 * turn) % len(self.good.texts)]

    def hams(self, n: int) -> str:
        """Return the texts of n hams."""
        return "\n\n".join(map(self.ham, range(n)))

    def in_thread(self, *, whole: bool = False) -> "Mail":
        """Return the spam with the headers of a ham thread in place of its own.

        whole: with all of the ham's headers except the subject.
        """
        head = _HEADER.findall(self.good.heads[self.number % len(self.good.heads)])
        if whole:
            thread = b"".join(line for line in head if not _SUBJECT.match(line))
            subject = b"".join(line for line in _HEADER.findall(self.head) if _SUBJECT.match(line))
            return self._replace(head=subject + thread)
        thread = b"".join(line for line in head if _OF_THREAD.match(line))
        names = set(map(_name, _HEADER.findall(thread)))
        own = (line for line in _HEADER.findall(self.head) if _name(line) not in names)
        return self._replace(head=b"".join(own) + thread)

    def page(self, extra: str = "", style: str = "", body: str = "") -> bytes:
        """Return the message as HTML with an extra element at the top or at the end of its body.

        style: rules of a style sheet; body: attributes of the body's tag.
        """
        page = self.html
        if not _BODY_TAG.search(page):
            page = f"<html><head></head><body>{page}</body></html>"
        sheet = f"<style type='text/css'>\n{style}\n</style>\n" if style else ""
        tag = f"<body {body}>" if body else _BODY_TAG.findall(page)[0]
        page = _BODY_TAG.sub(lambda _: sheet + tag, page, count=1)
        if extra:
            # At the top in every other mail.
            end = _BODY_TAG if self.number % 2 else _BODY_END
            place = next(end.finditer(page), None)
            at = len(page) if place is None else place.end() if self.number % 2 else place.start()
            page = f"{page[:at]}\n{extra}\n{page[at:]}"
        return self.message(text_part(page, "html"))


def read_mail(data: bytes, number: int = 0) -> Mail | None:
    """Return a spam to attack; None if it has no text."""
    parsed = message_from_bytes(data, policy=policy.compat32)
    texts = {kind: text for part in parsed.walk() for kind, text in _text_of(part)}
    head = _kept_head(data)
    for kind in ("text/html", "text/plain"):
        if texts.get(kind, "").strip():
            return Mail(number, head, texts[kind], kind == "text/html")
    return None


def thread_head(data: bytes) -> bytes | None:
    """Return a message's headers, except those on content; None if it answers nothing."""
    head = _kept_head(data)
    return head if _ANSWERS.search(head) else None


def _name(line: bytes) -> bytes:
    return line.partition(b":")[0].strip().lower()


def _kept_head(data: bytes) -> bytes:
    """Return the headers, except those on content."""
    head = re.split(rb"\r?\n\r?\n", data, maxsplit=1)[0].replace(b"\r\n", b"\n") + b"\n"
    return b"".join(line for line in _HEADER.findall(head) if not _ON_CONTENT.match(line))


def _text_of(part: Message) -> list[tuple[str, str]]:
    """Return the type and the text of a part, if it is text."""
    data = part.get_payload(decode=True)
    if part.get_content_maintype() != "text" or not isinstance(data, bytes):
        return []
    try:
        text = data.decode(str(part.get_content_charset("utf-8")))
    except (LookupError, UnicodeDecodeError):
        text = data.decode("latin-1")
    return [(part.get_content_type(), text.replace("\r\n", "\n").replace("\0", ""))]


def as_html(text: str) -> str:
    """Return plain text as HTML that shows the same."""
    return html.escape(text, quote=False).replace("\n", "<br>\n")


def as_text(page: str) -> str:
    """Return the text between the tags of HTML, roughly."""
    return html.unescape(NOT_TEXT.sub(lambda m: m[0] if m[0][0] == "&" else " ", page))


def lines(words: tuple[str, ...]) -> str:
    """Return words in lines of twelve."""
    return "\n".join(" ".join(words[i : i + 12]) for i in range(0, len(words), 12))


# --- parts ------------------------------------------------------------------------------------


def text_part(text: str, subtype: str = "plain", encoding: str = "8bit", **settings: str) -> bytes:
    """Return a part of text.

    settings: its further headers, without Content-, such as disposition="attachment".
    """
    return part(f'text/{subtype}; charset="utf-8"', text.encode(), encoding, **settings)


def part(kind: str, data: bytes, encoding: str = "8bit", **settings: str) -> bytes:
    """Return a part with its headers.  kind: its Content-Type; if it is empty, none is stated."""
    named = {"type": kind, "transfer-encoding": encoding, **settings}
    head = "".join(f"Content-{name.title()}: {said}\n" for name, said in named.items() if said)
    return head.encode() + b"\n" + (encodebytes(data) if encoding == "base64" else data)


def multipart(*parts: bytes, kind: str = "mixed") -> bytes:
    """Return a part that holds parts."""
    boundary = f"=_{md5(b''.join(parts)).hexdigest()}"
    line = f"\n--{boundary}".encode()
    body = b"".join(line + b"\n" + each for each in parts) + line + b"--\n"
    return part(f'multipart/{kind}; boundary="{boundary}"', body)
