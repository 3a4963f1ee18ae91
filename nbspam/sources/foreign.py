"""Data that are neither mail nor text, such as pictures, and the indexes of mail programs.

They get a verdict like any message, with a note; but no model learns from them.
"""

import re

from nbspam.sources.files import COMPRESSIONS, MARKS_OF_UTF_16, TextColumns

# Beginnings of files, and their formats.
_MAGIC = {
    **dict.fromkeys((b"\x7fELF", b"\xca\xfe\xba\xbe", b"\xcf\xfa\xed\xfe"), "a program"),
    b"\x89PNG\r\n": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    **dict.fromkeys((b"GIF87a", b"GIF89a"), "a GIF picture"),
    b"%PDF-": "a PDF document",
    b"PK\x03\x04": "a ZIP archive or office document",
    b"\xd0\xcf\x11\xe0": "an office document",
    **{how.beginning: f"data compressed by {how.name}" for how in COMPRESSIONS.values()},
    b"7z\xbc\xaf": "a 7z archive",
    b"Rar!\x1a": "a RAR archive",
    b"SQLite format 3\0": "a database",
    b"// <!-- <mdb:mork": "an index of Thunderbird",
    **dict.fromkeys((b"// Mozilla User ", b"# Mozilla User "), "settings of Thunderbird"),
    b"V8\nT": "a queue file of Sendmail",
    b"!BDN": "a PST file of Outlook",
    b"2 M1e C": "a dbox file of Dovecot",
    b"\1\1\1\1\n": "a mailbox in the format MMDF",
    b"BABYL OPTIONS:": "a mailbox in the format Babyl",
    b"*mbx*\r\n": "a mailbox in the format MBX",
    b"Dovecot-LZ4": "data compressed by LZ4",
    **dict.fromkeys((b"@relation", b"@RELATION"), "a table of Weka"),
}
# Exim's files begin with their own names: the identity of a message, in two lengths, -H and -D.
_OF_EXIM = rb"\w{6}-(?:\w{6}-\w\w|\w{11}-\w{4})-[HD]\n"
# Absolute paths, as `find` and `notmuch search --output=files` list them, also with -print0.
_NAMES = rb"(?:/[^/\s\0]+){2,}(?:[\n\0]/|\n?\Z)"
_HEAD = 2048  # bytes
_MARKS_OF_TABLES = (b",", b";", b"\t", b"|", b"{", b"__label__")
# Control characters that texts do not have: all but white space, backspace, bell, and those that
# change the charset.
_CONTROLS = bytes({*range(32), 127} - {*b"\t\n\r\f\v\b\a\x0e\x0f\x1b"})
_MANY = 20  # binary data have at least one control character in so many bytes


def oddity(data: bytes, learned: TextColumns) -> str | None:
    """Return the reason why data that do not begin like mail look like no text, else None.

    learned: the columns of a table that the model has learned from.
    """
    if (strange := strangeness(data)) is not None:
        return strange
    if re.match(rb'\s*\[\s*\{\s*"', data):
        return "looks like a JSON list, judged as one text; write each of its objects on a line"
    # A table has more than one line, and its first line has a delimiter.
    first, newline, _ = data[:_HEAD].partition(b"\n")
    if not newline or not any(mark in first for mark in _MARKS_OF_TABLES):
        return None
    from nbspam.sources.rows import sniff_table

    kind = sniff_table(data[:_HEAD], learned)
    return kind and f"looks like a table, judged as one text; --format {kind} judges its rows"


def strangeness(data: bytes) -> str | None:
    """Return the reason why data that do not begin like mail are no text, None if they may be."""
    if not data.strip():
        return "empty, neither mail nor text"
    what = _binary_kind(data[:_HEAD])
    return what and f"looks like {what}, not like mail or text"


def _binary_kind(head: bytes) -> str | None:
    if head.startswith(tuple(_MAGIC)):
        return next(what for start, what in _MAGIC.items() if head.startswith(start))
    if re.match(_OF_EXIM, head):
        return "a queue file of Exim"
    if re.match(_NAMES, head):
        return "names of files (pass them by xargs)"
    if head.startswith(MARKS_OF_UTF_16):
        return None
    if head.startswith(b"MZ") and b"\0" in head:
        return "a program"
    n_controls = len(head) - len(head.translate(None, _CONTROLS))
    return "binary data" if n_controls * _MANY > len(head) else None
