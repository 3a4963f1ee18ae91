"""Folders of messages, on this machine, at URLs or in archives; mbox files, and TREC indexes.

Decides which folders are classes, which files are messages, and the order of files.  Damage in an
mbox or index is a ValueError without the file's name, which the caller adds.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, BinaryIO, NamedTuple
from unicodedata import normalize

from nbspam.charsets import substituted
from nbspam.sources import files

SEQUENCES = ".mh_sequences"
_MANY = 10_000  # files at URLs of one message each, beyond which the user gets advice
_DIGITS = re.compile(r"(\d+)")
CLASS_FOLDERS = frozenset(("ham", "spam"))
# Halves of a class (spam-train, spam-test), numbered parts of a corpus (part1, fold-2), and file
# names that tell the class; spmsg is Ling-Spam's word for spam, whose other files are ham.
# These expressions are strings, which `re` compiles once, where they are first needed: most
# commands judge one message and need none, and compiling takes 1 % of such a command.
_HALF = r"(?i)(.+)[-_.](?:train|test)(?:ing)?"
_NUMBERED_PART = r"(?i)(?:part|fold)[-_]?\d+"
_SPAM_FILES = ("spam", "spmsg")
_HAM_FILES = ("ham", "legit", "nonspam")
# Hidden files, editors' backups, and files that Thunderbird, Apple Mail, Cyrus, Dovecot, Courier,
# Proton and SpamAssassin's public corpus (cmds) keep beside mail.
_NO_MAIL_STARTS = (
    *(".", "msgFilterRules.dat", "popstate.dat", "filterlog.html", "labels.json"),
    *("table_of_contents", "cmds"),
    *("cyrus.annotations", "cyrus.cache", "cyrus.expunge", "cyrus.header", "cyrus.index"),
    *("cyrus.squat", "courierimap", "dovecot-keywords", "dovecot-uid", "dovecot.index"),
    *("dovecot.list.index", "dovecot.map.index", "dovecot.mailbox.log"),
)
_NO_MAIL_ENDS = ("~", "#", ".msf", ".plist", ".metadata.json")
# A message of an mbox that is marked as deleted, by Thunderbird (a bit of its status, below two
# headers if it came by POP) or by mutt and Pine; and the first, with Pine's and IMAP servers' data
# of the folder.  Before each slow expression a mark that few have.  For `|(?!)` see `headers`.
_STATUS = b"\nX-Mozilla-Status: "
_DELETED = _STATUS, rb"From .*(?:\nX-Account-Key:.*)?(?:\nX-UIDL:.*)?%b\w{3}[89A-Fa-f]" % _STATUS
_LINES_UNTIL = rb"(?:(?!%b)[^\r\n]++\r?\n|(?!))*+%b"
_MARKED = b"\nX-Status: ", _LINES_UNTIL % (2 * (rb"X-Status: [A-Z]*D",))
_FOLDER_DATA = b" FOLDER INTERNAL DATA", _LINES_UNTIL % (2 * (b"Subject: DON'T DELETE THIS",))
# The labels that Google's export of Gmail ("Takeout") writes before a message, in the language of
# the account: those of spam, and those of mail that is neither spam nor mail that somebody kept.
_GMAIL = rb"From [^\n]*\n(?:X-GM-THRID:[^\n]*\n)?X-Gmail-Labels:([^\n]*(?:\n[ \t][^\n]*)*)"
_GMAIL_LABEL = r'"[^"]*"|[^,]+'
_GMAIL_BYTES = 1 << 13  # of labels that are read; `email` takes quadratic time
_GMAIL_SPAM = {
    *("Spam", "Skräppost", "Søppelpost", "Roskaposti", "Спам"),
    *("垃圾邮件", "垃圾郵件", "迷惑メール", "스팸함"),
}
_GMAIL_OTHERS = {
    *("Trash", "Bin", "Sent", "Drafts", "Draft", "Chat"),
    *("Papierkorb", "Gesendet", "Entwürfe", "Prullenbak", "Verzonden", "Concepten"),
    *("Corbeille", "Envoyé", "Messages envoyés", "Brouillons", "Cestino", "Inviati", "Bozze"),
    *("Papelera", "Enviados", "Borradores", "Lixeira", "Rascunhos", "Kosz", "Wysłane"),
    *("Posta inviata", "Verzonden berichten", "E-mails enviados", "Wersje robocze"),
    *("Papperskorgen", "Skickat", "Utkast", "Корзина", "Отправленные", "Черновики"),
    *("已删除邮件", "已发邮件", "草稿", "垃圾桶", "寄件備份"),
    *("ゴミ箱", "送信済みメール", "送信済み", "下書き", "휴지통", "보낸편지함", "임시보관함"),
}
_FEW = 300  # files in a folder, whose contents then tell whether they hold many messages


class Folder(NamedTuple):
    """The names in a folder, in natural order, without hidden files and editors' backups."""

    files: list[str]
    folders: list[str]
    has_sequences: bool

    def kind(self, may_be_classes: bool) -> str:
        """Return "maildir", "mh", "classes" or "tree".

        may_be_classes: sub-folders may be classes.
        """
        if "cur" in self.folders and "new" in self.folders:
            return "maildir"
        if self.has_sequences and any(map(is_number, self.files)):
            return "mh"
        names = {name.lower() for name in self.folders}
        if names in ({"takeout"}, {"mail"}):
            return "tree"  # Gmail's export, where labels of messages state the classes
        if may_be_classes and names and (not self.files or names >= CLASS_FOLDERS):
            return "classes"
        return "tree"


def is_number(name: str) -> bool:
    """Return whether a file's name is a number, as of a message in a folder of MH."""
    return name.isascii() and name.isdigit()


class FolderTree:
    """Folders of this machine.  Subclasses have folders that are elsewhere.

    A path is that of a folder; scanning one that cannot be read raises OSError.  follows_links:
    those in folders, which can lead anywhere; otherwise they are left out.
    """

    separator = os.sep

    def __init__(self, follows_links: bool = True) -> None:
        self.follows_links = follows_links

    def below(self, path: str) -> str:
        """Return the prefix of the paths in a folder."""
        return path if not path or path.endswith(self.separator) else path + self.separator

    def scan(self, path: str) -> Folder:
        """Return the files and folders in a folder."""
        with os.scandir(path) as entries:
            return _visible((each.name, _is_folder(each, self.follows_links)) for each in entries)

    def identity(self, path: str) -> object:
        """Return the identity of a folder, the same by every path: links may form circles."""
        status = os.stat(path)
        return status.st_dev, status.st_ino

    def has_folder(self, path: str) -> bool:
        """Return whether there is a folder at a path."""
        return os.path.isdir(path)


class Place(NamedTuple):
    """A folder some of whose files hold messages."""

    below: str  # the prefix of its files' paths
    label: str | None
    kind: str  # "mh", "tree", or the kind of every file
    folder: Folder
    names_tell: bool = False  # the names of the files tell their classes

    def kind_of(self, name: str) -> str | None:
        """Return the kind of a file: eml, mbox or one of PACKED; None: no message.

        "unsure": only the content can tell; "mail": it tells whether it is an eml or an mbox.
        """
        if self.kind == "mh":
            return "eml" if is_number(name) else None
        if self.kind != "tree":
            return self.kind
        kind = file_kind(name)
        is_cheap = len(self.folder.files) <= _FEW and not files.is_url(self.below)
        return "mail" if is_cheap and kind == "eml" != files.kind_by_name(name) else kind

    def label_of(self, name: str) -> str | None:
        """Return the class of a file."""
        if not self.names_tell:
            return self.label
        return "spam" if class_prefix(name) in _SPAM_FILES else "ham"

    def files(self) -> Iterator[tuple[str, str | None, str]]:
        """Yield path, class and kind of every file that holds messages, class by class."""
        names = self.folder.files
        if self.names_tell:
            names = sorted(names, key=lambda name: str(self.label_of(name)))
        for name in names:
            kind = self.kind_of(name)
            if kind is not None:
                yield self.below + name, self.label_of(name), kind


def places(path: str, label: str | None, kind: str | None, tree: FolderTree) -> Iterator[Place]:
    """Yield the folders, from this one down, whose files hold messages.

    kind: that of the folder, or of each file in it; None: found out.

    The classes are its sub-folders or, if some of these are parts of a corpus, the folders in
    the parts; files elsewhere then have no class.
    """
    seen: set[object] = set()
    # A list instead of recursion, so that folders may be nested to any depth.
    waiting = [(path, label, kind, label is None)]
    while waiting:
        path, label, kind, may_be_classes = waiting.pop()
        identity = tree.identity(path)
        if identity in seen:
            continue
        try:
            folder = tree.scan(path)
        except OSError:
            if not seen:
                raise
            # A file that is the folder itself: reading it will say why it cannot be read.
            yield Place(path, label, "eml", Folder([""], [], False))
            continue
        found = kind or folder.kind(may_be_classes)
        below = tree.below(path)
        is_top = not seen and not kind and may_be_classes
        parts = _parts(below, folder.folders, tree) if is_top else set()
        seen.add(identity)
        if found == "maildir":
            yield from _maildir_places(below, label, folder, tree)
            continue
        if found != "classes":
            names_tell = found == "tree" and label is None and name_classes(folder.files)
            yield Place(below, label, found, folder, names_tell)
        if found == "mh":
            continue
        is_class = found == "classes" and label is None and not parts
        halves = {name: half[1] for name in folder.folders if (half := re.fullmatch(_HALF, name))}
        if kind or len(halves) < len(folder.folders):
            halves = {}  # of some folders only, these names say nothing
        kind = None if found == "classes" else kind
        for name in reversed(folder.folders):
            # A Mac takes letters apart: one class has one name, wherever its folder comes from.
            own = normalize("NFC", halves.get(name, name))
            own = own.lower() if own.lower() in CLASS_FOLDERS else own
            waiting.append((below + name, own if is_class else label, kind, name in parts))


def class_prefix(name: str) -> str | None:
    """Return the beginning of a file's name that tells its class; None if it has none."""
    return next(filter(name.lower().startswith, (*_SPAM_FILES, *_HAM_FILES)), None)


def name_classes(names: Sequence[str]) -> bool:
    """Return whether the names of a folder's files tell their classes, ham and spam."""
    prefixes = set(map(class_prefix, names))
    has_both = not prefixes.isdisjoint(_SPAM_FILES) and not prefixes <= {*_SPAM_FILES}
    return has_both and ("spmsg" in prefixes or None not in prefixes)


def _parts(below: str, names: Sequence[str], tree: FolderTree) -> set[str]:
    """Return the sub-folders that are parts of a corpus, and not classes.

    Those are all that hold ham/ and spam/ or, if there are none, those called train and test
    (or ...train, ...test) that hold the same folders; or all, if they are numbered parts.
    """
    if CLASS_FOLDERS & {name.lower() for name in names}:
        return set()
    if names and all(re.fullmatch(_NUMBERED_PART, name) for name in names):
        return set(names)
    if of_mail := {name for name in names if _holds_ham_and_spam(below + name, tree)}:
        return of_mail
    halves = {name for name in names if name.lower().endswith(("train", "test"))}
    classes = {tuple(tree.scan(below + name).folders) for name in halves}
    return halves if len(halves) > 1 and len(classes) == 1 and any(classes) else set()


def _holds_ham_and_spam(path: str, tree: FolderTree) -> bool:
    """Return whether a folder has both sub-folders, however they are capitalised."""
    below = tree.below(path)
    return all(
        any(tree.has_folder(below + n) for n in (name, name.title(), name.upper()))
        for name in CLASS_FOLDERS
    )


def _maildir_places(
    below: str, label: str | None, folder: Folder, tree: FolderTree
) -> Iterator[Place]:
    # Both are listed first: a message that its owner reads moves from new to cur.
    parts = [(name, tree.scan(below + name)) for name in ("cur", "new") if name in folder.folders]
    if not parts:
        raise ValueError("not a Maildir (no cur/ or new/); give the folder above them")
    for name, found in parts:
        yield Place(tree.below(below + name), label, "eml", found)


SENT_FOLDERS = ".Sent", "Sent"  # Maildirs of what somebody has sent


def sent_folders(paths: Iterable[str]) -> list[str]:
    """Return the Maildirs of sent mail in some folders or, if these are Maildirs, beside them."""
    found: dict[str, str] = {}
    for path in paths:
        above, name = os.path.split(os.path.abspath(path))
        path = above if name in ("cur", "new") else path
        # A folder called Sent among folders of classes is a class.
        is_mailbox = is_maildir(path)
        parent = os.path.dirname(os.path.abspath(path))
        for place in (path, parent) if is_mailbox else (path,):
            for own in SENT_FOLDERS if is_mailbox else SENT_FOLDERS[:1]:
                folder = os.path.join(place, own)
                if is_maildir(folder):
                    found.setdefault(os.path.realpath(folder), folder)
    return list(found.values())


def is_maildir(path: str) -> bool:
    """Return whether a folder is a Maildir now."""
    return all(os.path.isdir(os.path.join(path, part)) for part in ("cur", "new"))


def file_kind(name: str) -> str:
    """Return the kind of a file in a tree, "unsure" if its name does not tell."""
    kind = files.kind_by_name(name)
    if kind == "mbox" or kind in files.PACKED:
        return kind
    return "eml" if "." in name or _DIGITS.search(name) else "unsure"


def is_hidden(name: str) -> bool:
    """Return whether a name tells that a file or folder holds no mail."""
    flags = files.maildir_name(name)[1]
    is_deleted = "T" in flags and flags.isalpha()
    return is_deleted or name.startswith(_NO_MAIL_STARTS) or name.endswith(_NO_MAIL_ENDS)


def _visible(entries: Iterable[tuple[str, bool | None]]) -> Folder:
    """Return a folder of the names that are not hidden.

    entries: each name, and whether it is a folder; None: neither a folder nor a file.

    Beside parquet files a name that begins with "_" is one of their programs' marks (_SUCCESS).
    Beside its Messages, Apple Mail keeps the files that were attached to them.
    """
    kept: list[str] = []
    folders: list[str] = []
    has_sequences = False
    for name, is_folder in entries:
        if is_hidden(name):
            has_sequences |= name == SEQUENCES
        elif is_folder is not None:
            (folders if is_folder else kept).append(name)
    if any(name.endswith(".parquet") for name in kept):
        kept = [name for name in kept if not name.startswith("_")]
    folders = without_attachments(folders)
    return Folder(_natural_order(kept), _natural_order(folders), has_sequences)


def without_attachments(folders: list[str]) -> list[str]:
    """Return the folders in a folder without the one of files that were attached to mail."""
    return [name for name in folders if name != "Attachments" or "Messages" not in folders]


def _is_folder(entry: "os.DirEntry[str]", follows_links: bool) -> bool | None:
    """Return whether a name is a folder; None for devices, sockets, FIFOs, and unwanted links.

    A link counts as a file, so that reading it says what is wrong, if it is dead, leads to itself,
    or to a folder without permission.
    """
    if not follows_links and entry.is_symlink():
        return None
    try:
        if entry.is_file():
            return False
        if entry.is_dir():
            return True
        entry.stat()
    except OSError:
        return False
    return None


def _natural_order(names: Iterable[str]) -> list[str]:
    """Return names sorted so that the first two numbers in each compare by value: 2 before 10."""
    # Only two numbers: names of message files are full of digits (times, hashes).
    return sorted(sorted(names), key=_natural_key)


def _natural_key(name: str) -> list[str | int]:
    parts: list[str | int] = list(_DIGITS.split(name, 2))
    parts[1::2] = map(int, parts[1::2])
    return parts


# --- folders at URLs ------------------------------------------------------------------------


class UrlTree(FolderTree):
    """Folders at URLs."""

    separator = "/"

    def __init__(self, listener: files.Listener = files.SILENT) -> None:
        self._listener = listener
        self._n_single = 0  # files of one message each
        self._last: tuple[str, Folder] | None = None

    def scan(self, path: str) -> Folder:
        """Return the files and folders in a folder; raises NbspamError."""
        from nbspam.sources.remote import asked_again, file_system

        place = self.identity(path)
        if self._last is None or self._last[0] != place:
            folder = asked_again(path, lambda: _visible(_entries(*file_system(path))))
            self._last = place, folder
            self._n_single += sum(file_kind(name) == "eml" for name in folder.files)
            if self._n_single > _MANY:
                self._listener.notice(
                    f"more than {_MANY:,} files of one message each; every one is a request of its"
                    " own, a million take hours; pack them into mbox, tar or parquet files"
                )
        return self._last[1]

    def identity(self, path: str) -> str:
        """Return the URL, because object stores have no links."""
        return path.rstrip("/")

    def has_folder(self, path: str) -> bool:
        """Return whether there is a folder at a URL."""
        above, _, name = path.rstrip("/").rpartition("/")
        return name in self.scan(above).folders


def _entries(system: Any, path: str) -> Iterator[tuple[str, bool]]:
    """Yield the names of the files, links and folders in a folder, and whether it is a folder."""
    own = path.rstrip("/")
    for entry in system.ls(path, detail=True):
        full = entry["name"].rstrip("/")
        is_device = entry["type"] == "other" and not entry.get("islink")  # or a FIFO
        if full != own and not is_device:  # some stores have an empty object for each folder
            yield full.rpartition("/")[2], entry["type"] == "directory"


# ---- the messages of an mbox, and the lines of a TREC index ----


_LENGTH, _HEAD_BYTES = b"\nContent-Length: ", 1 << 14  # bytes in which it is looked for
_QUOTED_FROM = rb"(?m)^>(?=>*From )"
_INDEX_LINE_BYTES = 1 << 16


def mbox_messages(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield each message of an mbox unchanged, its From_ line included.

    Text before the first From_ line is a message too, unless it is blank.
    A message of more than MAX_MESSAGE bytes is truncated.  Where its Content-Length leads exactly
    to a From_ line or the end, others in it are not quoted, and no blank line need be before it.
    """
    buffer = bytearray()
    searched = 0
    for chunk in chain(chunks, (b"",)):
        buffer += chunk
        # A candidate close to the end waits until the two lines that decide are there.
        horizon = len(buffer) - files.LOOKAHEAD if chunk else len(buffer)
        start, stated = 0, _stated_end(buffer, 0)
        while (found := _find_separator(buffer, searched, horizon, stated)) >= 0:
            if found < stated <= start + files.MAX_MESSAGE:
                is_last = not chunk and len(buffer) - 2 <= stated <= len(buffer)
                if is_last or (chunk and stated > horizon):
                    horizon = found  # the next chunk, or the end, decides
                    break
                found = max(found, _find_separator(buffer, stated - 1, stated + 7, stated))
            message = bytes(buffer[start : min(found, start + files.MAX_MESSAGE)])
            if not message.isspace():
                yield message
            start, searched, stated = found, found + 1, _stated_end(buffer, found)
        searched = max(searched, horizon - 6) - start
        del buffer[:start]
        if len(buffer) > files.MAX_MESSAGE + files.LOOKAHEAD + 8:
            # Keep the tail and two bytes of context: a separator may begin in it.
            del buffer[files.MAX_MESSAGE : -files.LOOKAHEAD - 8]
            searched = files.MAX_MESSAGE + 2
    if buffer and not buffer.isspace():
        yield bytes(buffer[: files.MAX_MESSAGE])


def _find_separator(buffer: bytearray, start: int, end: int, stated: int) -> int:
    """Return where the next From_ line begins, after a blank line or where it is stated; or -1."""
    at = buffer.find(b"\nFrom ", start, max(end, 0))
    while at >= 0:
        is_end = at in (0, stated) or buffer.endswith((b"\n", b"\n\r"), max(at - 2, 0), at)
        if is_end and files.FROM_LINE.match(buffer, at + 1, at + files.LOOKAHEAD):
            return at + 1
        at = buffer.find(b"\nFrom ", at + 1, end)
    return -1


def _stated_end(buffer: bytearray, start: int) -> int:
    """Return where a message that begins at `start` ends by its Content-Length, or -1."""
    head = buffer.find(b"\n\n", start, start + _HEAD_BYTES)
    at = buffer.find(_LENGTH, start, max(head, 0))
    length = buffer[at + len(_LENGTH) : buffer.find(b"\n", at + 1)] if at >= 0 else b""
    return head + 2 + int(length) if length.isdigit() and len(length) < 9 else -1


def is_gone(raw: bytes, number: int) -> bool:
    """Return whether a message of an mbox, From_ line included, is none for its owner.

    number: its place in the mbox; 0: no other follows, so that all but what stands before its own
    headers may have come with it.
    """
    signs = [_DELETED, *[_MARKED] * (number > 0), *[_FOLDER_DATA] * (number == 1)]
    return any(mark in raw and re.match(expression, raw) for mark, expression in signs)


def gmail_class(raw: bytes) -> str | None:
    """Return ham or spam for a message of an mbox that has Gmail's labels; else None."""
    found = re.match(_GMAIL, raw)
    if found is None:
        return None
    from email import errors, header

    text = found[1][:_GMAIL_BYTES].decode("ascii", "replace").strip()
    with suppress(ValueError, LookupError, errors.MessageError):
        text = str(header.make_header(header.decode_header(text)))
    labels = {label.strip('" \r\n\t') for label in re.findall(_GMAIL_LABEL, text)}
    return "spam" if labels & _GMAIL_SPAM else None if labels & _GMAIL_OTHERS else "ham"


def unwrap(raw: bytes) -> bytes:
    """Return a message of an mbox as it was sent.

    Removes the From_ line, the blank line at the end, and one ">" of every line quoted the
    mboxrd way (">From ", ">>From ").
    """
    message = raw.partition(b"\n")[2] if raw.startswith(b"From ") else raw
    for blank in (b"\r\n", b"\n"):
        if message == blank or message.endswith(b"\n" + blank):
            message = message[: -len(blank)]
            break
    if b">From " in message:
        message = substituted(re.compile(_QUOTED_FROM), b"", message)
    return message


def parse_index_line(line: bytes) -> tuple[str, str] | None:
    """Return (label, path) of a line like "spam ../data/inmail.1"; None if it has no path."""
    words = line.split(None, 1)
    if len(words) < 2:
        return None
    return words[0].decode("utf-8", "replace"), os.fsdecode(words[1].rstrip())


def is_index(index: str, head: bytes) -> bool:
    """Return whether all lines are a class and a path, and the first path is a file.

    index: its path, from which the paths in it lead.
    """
    lines = head.splitlines()
    whole = lines if len(head) < files.HEAD_BYTES else lines[:-1]  # the last one may be cut
    entries = [parse_index_line(line) for line in whole if line.strip()]
    if not entries or not entries[0] or not all(entries):
        return False
    label, name = entries[0]
    # A word with a colon is a header, as in "Subject: .", and not a class.
    return ":" not in label and os.path.isfile(files.beside(index, name))


def index_entries(stream: BinaryIO) -> Iterator[tuple[str, str]]:
    """Yield (label, path) for each line of a TREC index, skipping blank lines."""
    lines = iter(partial(stream.readline, _INDEX_LINE_BYTES), b"")
    for number, line in enumerate(lines, 1):
        if (entry := parse_index_line(line)) is not None:
            yield entry
        elif line.strip():
            raise ValueError(f"line {number}: not `class path`; correct the index")
