"""The origins of evidence: which origin the words of each header get.

A head is kept as one field of lines `name: value`, each preceded by a line feed; a line that
begins with a blank continues the one before.

Secret: which headers are evidence, and which are ignored.
"""

from typing import NamedTuple

# Headers that filters, mailboxes and archives add say how a message was treated, not what it
# is: both their names and their values are ignored.
_ADDED_LATER = frozenset(
    b"status x-status x-keywords content-length lines delivered-to x-original-to xref path".split()
)
_ADDED_BEGINNINGS = tuple(
    b"x-spam x-bogosity x-nbspam x-dspam x-crm114 x-rspamd x-virus x-amavis x-mailscanner x-pstn"
    b" x-barracuda x-ham x-junk x-bayes x-mozilla x-uid x-imap x-gmail x-gmane x-evolution nntp-"
    b" x-folder x-label".split()
)
_OF_PART = {
    b"content-type": "mime",
    b"content-transfer-encoding": "mime",
    b"content-disposition": "mime",
}
_OF_NESTED = {b"subject": "nested", b"from": "nested", **_OF_PART}
_OF_MESSAGE = {
    b"subject": "subject",
    b"from": "from",
    b"sender": "from",
    b"to": "to",
    b"cc": "to",
    b"reply-to": "reply-to",
    b"return-path": "return-path",
    b"received": "received",
    b"message-id": "message-id",
    b"date": "date",
    b"x-mailer": "mailer",
    b"user-agent": "mailer",
    b"list-id": "list",
    b"list-post": "list",
    b"mailing-list": "list",
    b"precedence": "list",
    **_OF_PART,
}
# All origins; first those that do not come from headers.
ORIGINS = (
    *("body", "hidden", "alt", "url", "html", "filename", "defect", "header"),
    *dict.fromkeys((*_OF_MESSAGE.values(), *_OF_NESTED.values())),
)
_MAX_KNOWN = 4096  # header names that a table caches


class Field(NamedTuple):
    """A text of a message and its origin; a whole head is one field, of a key of HEADS."""

    origin: str  # one of ORIGINS, or a key of HEADS
    text: bytes  # UTF-8, not normalised


class Origins(NamedTuple):
    """The origins of a header's name and of its value; None for one that is ignored."""

    name: str | None
    value: str | None


class HeadTable(dict[bytes, Origins]):
    """A cache of the origins of headers in one kind of head, by name as it is written.

    values: the origins of values, by lower-case name; others are ignored.  names: the origin of
    all names, None to ignore them.
    """

    def __init__(self, values: dict[bytes, str], names: str | None) -> None:
        super().__init__()
        self._values, self._names = values, names

    def __missing__(self, raw: bytes) -> Origins:
        name = raw.rstrip(b" \t").lower()
        if name in _ADDED_LATER or name.startswith(_ADDED_BEGINNINGS):
            found = Origins(None, None)
        else:
            found = Origins(self._names, self._values.get(name))
        if len(self) < _MAX_KNOWN:
            self[raw] = found
        return found


HEAD, PART_HEAD, NESTED_HEAD = "head", "part-head", "nested-head"
# Only in the head of a message are the names of headers evidence, too.
HEADS = {
    HEAD: HeadTable(_OF_MESSAGE, "header"),
    PART_HEAD: HeadTable(_OF_PART, None),
    NESTED_HEAD: HeadTable(_OF_NESTED, None),
}
