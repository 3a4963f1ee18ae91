"""Where evidence stands: the origin that the words of every header get.

A head is kept as one field of lines, `name: value`, each begun by a line feed; a line
that begins with a blank goes on with the one before.

Secret: which headers count, and as what.
"""

from typing import NamedTuple

# Headers that a filter, a mailbox or an archive adds afterwards say how the message was
# treated, not what it is: they never count, neither value nor name.
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
# All origins, those that no header gives first.
ORIGINS = (
    *("body", "hidden", "alt", "url", "html", "filename", "defect", "header"),
    *dict.fromkeys((*_OF_MESSAGE.values(), *_OF_NESTED.values())),
)
_MAX_KNOWN = 4096  # names that one process remembers


class Origins(NamedTuple):
    """The origins of a header's name and of its value; None where they do not count."""

    name: str | None
    value: str | None


class HeadTable(dict[bytes, Origins]):
    """The origins of every header of one kind of head, by its name as it is spelt."""

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
# Of a message the names of its headers are evidence too.
HEADS = {
    HEAD: HeadTable(_OF_MESSAGE, "header"),
    PART_HEAD: HeadTable(_OF_PART, None),
    NESTED_HEAD: HeadTable(_OF_NESTED, None),
}
