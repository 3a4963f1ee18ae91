"""Mailboxes on the page: their owners, their messages, and moves in a Maildir.

A mailbox is anything that `sources` reads as mail: a Maildir with the folders that `nbspam sort`
uses, an mbox, MH, a folder of messages.  Nothing outside its folder is ever read: links in it are
ignored, even links made between two looks.
"""

import heapq
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from time import time
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from nbspam.delivery.maildir import (
    MAILDIR_INBOX,
    MAILDIR_PARTS,
    MOVING,
    NOTE_FILE,
    UNSURE_FOLDER,
    MaildirEntry,
    MaildirNote,
    check_shown,
    entry_digest,
    maildir_entries,
    move,
    read_note,
    spam_folder,
    unsorted,
    write_note,
)
from nbspam.disk import Stamp, locked, stamp_of
from nbspam.errors import EmptyError, InputError, NbspamError, UsageError
from nbspam.imap.accounts import AccessBook
from nbspam.mail.addresses import change_lists, read_lists, sender_of
from nbspam.mail.digest import digest_of
from nbspam.server.judge import model_in, user_folder_name, users_in
from nbspam.server.page.database import Database
from nbspam.sources import files
from nbspam.sources.items import Item, SourceOptions, read_items, unpacked_message
from nbspam.sources.mailboxes import SENT_FOLDERS, is_maildir
from nbspam.store.model import StoredModel

MOST_SHOWN = 10_000  # messages of a mailbox that are shown
PATIENCE = 5.0  # seconds for a `nbspam sort` that is at work
_TICK = 2.0  # seconds in which two changes of a file may have the same time, on any file system
HELD_BYTES, HELD = 4 << 20, 16  # of messages that are held at a time
_SAFE = "/,=:@"  # in keys, beside letters, digits and _.-~
_PLAIN = re.compile(f"[A-Za-z0-9_.~{_SAFE}-]*")


class MailboxLetter(NamedTuple):
    """A message in the mailbox."""

    key: str  # the same as long as the message is there; printable ASCII
    arrived: float  # when its file was written, seconds since 1970
    place: int  # among messages of one time, later ones are newer


# A message that is in the mailbox now: its key, the path of the file that it is in, and its data;
# None: the file has nothing else.
_FoundMessage = tuple[str, str, bytes | None]


def key_of(name: str) -> str:
    """Return the key of a message by the name of its file, which may have any bytes."""
    return name if _PLAIN.fullmatch(name) else quote(os.fsencode(name), safe=_SAFE)


def is_linked(maildir: str, folder: str) -> bool:
    """Return whether a folder of a Maildir is elsewhere, by a link."""
    path = os.path.join(maildir, folder)
    places = (path, *(os.path.join(path, part) for part in MAILDIR_PARTS))
    return any(map(os.path.islink, places))


class ReviewMailbox:
    """The messages of a mailbox, which is searched for each list, and the page's memory of them.

    path: raises InputError if nothing is there.  model: the path of the model that the messages
    teach; the memory lies beside it.  user: whose own model it is, from `judge.known_as`; "" for
    the site's.
    """

    book: AccessBook | None = None  # the access to a mail account; None: it is none

    def __init__(self, path: str, model: str, user: str = "") -> None:
        self.path = path
        self.database = Database(model)
        self.model = self.database.model  # where a link leads
        self.user = user
        self._check_exists()
        self._below = os.path.join(path, "")  # the prefix of all paths in it
        self._paths: dict[str, str] = {}  # where the newest were, by key
        # The stamps of the mailbox, and its newest messages, at the last look.
        self._last: tuple[tuple[Stamp | None, ...], list[MailboxLetter]] = ((), [])

    def _check_exists(self) -> None:
        if files.is_url(self.path) or not os.path.exists(self.path):
            raise InputError(
                f"--review {self.path}: no such mailbox; give a Maildir, mbox, folder or account"
            )

    def check(self, moves: bool) -> None:
        """Raise UsageError if messages are to move and cannot."""
        if moves:
            if not is_maildir(self.path):
                raise UsageError(
                    f"--move: --review {self.path} is no Maildir, and only in one can messages be"
                    " moved; give a Maildir, or leave --move out"
                )
            check_shown(self.path, spam_folder(self.path))

    def close(self) -> None:
        """Do nothing: files are closed when they have been read."""

    @property
    def folders(self) -> list[str]:
        """The folders of a Maildir whose messages are looked at."""
        chosen = [MAILDIR_INBOX, spam_folder(self.path), UNSURE_FOLDER]
        return [folder for folder in chosen if not is_linked(self.path, folder)]

    def newest(self) -> list[MailboxLetter]:
        """Return the newest messages, newest first; raises InputError."""
        stamps = self._stamps()
        if not stamps or stamps != self._last[0]:
            # Stamped before the look: messages written during it show at the next one.
            self._last = stamps, self._look()
        return self._last[1]

    def _stamps(self) -> tuple[Stamp | None, ...]:
        """Return stamps that change with the mailbox; none if another change might not show."""
        paths = [self.path] if os.path.isfile(self.path) else []
        if is_maildir(self.path):
            below = [os.path.join(self.path, folder) for folder in self.folders]
            paths = [os.path.join(folder, part) for folder in below for part in MAILDIR_PARTS]
        stamps = tuple(map(stamp_of, paths))
        last = max((stamp[3] for stamp in stamps if stamp is not None), default=0)
        return stamps if last / 1e9 < time() - _TICK else ()

    def _look(self) -> list[MailboxLetter]:
        newest = heapq.nlargest(MOST_SHOWN, self._dated())
        letters: dict[str, MailboxLetter] = {}
        self._paths = {}
        for arrived, place, key, path in newest:
            if key not in letters:
                letters[key] = MailboxLetter(key, arrived, place)
                if path is not None:
                    self._paths[key] = path
        return list(letters.values())

    def _dated(self) -> Iterator[tuple[float, int, str, str | None]]:
        """Yield when each message arrived, its place, its key, and its file if alone there."""
        for place, (key, file, data) in enumerate(self._found()):
            with suppress(OSError):  # not there any more
                status = os.stat(file, follow_symlinks=file == self.path)
                if stat.S_ISREG(status.st_mode):
                    yield status.st_mtime, place, key, file if data is None else None

    def folder_of(self, key: str) -> str:
        """Return the folder where a message was at the last look, "" if it was in none."""
        if key not in self._paths or not is_maildir(self.path):
            return ""
        part = os.path.dirname(self._paths[key].removeprefix(self._below))
        return os.path.dirname(part) or "INBOX"

    def read(self, keys: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the messages that are still there and can be read; raises InputError.

        Messages in files of their own come in the order of the keys, messages of an mbox in its
        order.  The mailbox is searched once at most, however many keys there are and however long
        the caller takes between two messages.
        """
        missing = dict.fromkeys(keys)
        for key in list(missing):
            if key in self._paths and (data := self._contents(self._paths[key])) is not None:
                del missing[key]
                yield key, data
        if missing:
            yield from self._search(missing)

    def message(self, key: str) -> bytes | None:
        """Return a message, None if it is not there any more; raises InputError."""
        return next((data for _, data in self.read({key})), None)

    def _search(self, missing: dict[str, None]) -> Iterator[tuple[str, bytes]]:
        """Yield messages that are not where they were at the last look."""
        for key, file, data in self._found():
            if key in missing:
                data = self._contents(file) if data is None else data
                if data is not None:
                    del missing[key]
                    yield key, data
                if not missing:
                    return

    def _contents(self, file: str) -> bytes | None:
        """Return the message that is alone in a file; None if it cannot be read any more."""
        below = file.removeprefix(self._below)
        with suppress(InputError), files.Blaming(file), files.open_inside(self.path, below) as f:
            return unpacked_message(files.read_raw_message(f))
        return None

    def _found(self) -> Iterator[_FoundMessage]:
        """Yield all messages that are mail."""
        self._check_exists()
        with files.Blaming(self.path):
            if is_maildir(self.path):
                for folder in self.folders:
                    below = {
                        part: os.path.join(self._below, folder, part, "") for part in MAILDIR_PARTS
                    }
                    for entry in maildir_entries(self.path, folder):
                        yield key_of(entry.base), below[entry.part] + entry.file, None
                return
        try:
            for item in read_items([self.path], options=self._options()):
                if item.is_text:
                    raise InputError(f"--review {self.path}: texts, and no mail; give a mailbox")
                if item.problem is None:
                    yield self._known(item)
        except EmptyError:
            return  # a mailbox into which nothing has come yet

    def _options(self) -> SourceOptions:
        """Return how to read it if it is no Maildir; an mbox may have one message."""
        if os.path.isfile(self.path):
            with files.Blaming(self.path), files.open_file(self.path) as stream:
                head = stream.read(files.HEAD_BYTES)
            if not head.strip() or files.begins_with_from_line(head):
                return SourceOptions(format="mbox")
        return SourceOptions(follows_links=False)

    def _known(self, item: Item) -> _FoundMessage:
        """Return a message with its key.

        A message in a file of its own is known by the file's name; a message among others as the
        model knows it: its number changes when another is deleted, its Status when it is read.
        """
        if item.data is None and item.name != self.path:
            return key_of(item.name.removeprefix(self._below)), item.name, None
        data = item.read()
        return f"#{digest_of(data):016x}", item.series or self.path, data

    # ---- the models that judge its messages, and the lists beside them ----

    def own_model(self) -> StoredModel | None:
        """Return the user's own model; None if there is none, or it cannot be read."""
        with suppress(NbspamError):  # of which the judge tells
            if self.user and os.path.exists(self.model):
                return StoredModel(self.model)
        return None

    def written(self, now: float, site: float) -> float:
        """Return when the models that judge its messages were written last; 0 if never.

        site: time of the site's model, seconds since 1970.  A time that is not before now is
        ignored (no model yet, or the clock was set back): it would make all verdicts old for
        ever.
        """
        stamp = stamp_of(self.model) if self.user else None
        own = 0.0 if stamp is None else stamp[3] / 1e9
        return max((each for each in (site, own) if each < now), default=0.0)

    def sender_of(self, data: bytes) -> tuple[str | None, str | None]:
        """Return a message's sender and its entry in the lists; None for a missing one."""
        sender = sender_of(data)
        try:
            lists = read_lists(self.model)
        except InputError:  # of which the judge tells
            return None, None
        return sender, lists.verbs.get(sender or "") if lists is not None else None

    def list_sender(self, key: str, verb: str | None) -> str | None:
        """Put the sender of a message on a list, or off; return the sender, None without one.

        verb: "allow" or "deny"; None takes it off.  Raises NbspamError.
        """
        data = self.message(key)
        sender = None if data is None else sender_of(data)
        if sender is not None:
            change_lists(self.model, [sender], verb, patience=PATIENCE)
        return sender

    # ---- moving ----
    #
    # It is done beside `nbspam sort`, under the same lock, and the note of `sort` is kept true: it
    # says `moving` of a message before the move, and the new place after it.  So `sort` takes
    # neither our moves, nor one that a crash has interrupted, for a lesson of the user.

    def leaves(self, key: str, label: str) -> str | None:
        """Return the folder from which `file` would move a message; None: it would not."""
        with files.Blaming(self.path):
            entry = self._find(key)
        target = self._folder_for(label)
        return None if entry is None or target in (None, entry.folder) else entry.folder

    def file(self, key: str, label: str) -> str | None:
        """Move a message to the folder of its label; return the folder where it was.

        Returns None if it was not moved: it is there already, or has gone, or another file has its
        name there.  Raises NbspamError if it cannot be moved.
        """
        target = self._folder_for(label)
        return None if target is None else self._move(key, target)

    def put_back(self, key: str, folder: str) -> bool:
        """Move a message to a folder in which it was; return whether it was moved.

        Raises NbspamError.
        """
        return folder in self._places() and self._move(key, folder) is not None

    def _folder_for(self, label: str) -> str | None:
        return next((folder for folder, name in self._places().items() if name == label), None)

    def _places(self) -> dict[str, str]:
        """Return the folders, and the names of `sort` for them; none if it is no Maildir."""
        if not is_maildir(self.path):
            return {}
        return {MAILDIR_INBOX: "ham", spam_folder(self.path): "spam", UNSURE_FOLDER: "unsure"}

    def _move(self, key: str, folder: str) -> str | None:
        """Move a message to a folder; return the folder where it was, None if it was not moved."""
        if is_linked(self.path, folder):
            path = os.path.join(self.path, folder)
            raise InputError(f"{path}: not moved there, as it is elsewhere by a link; remove it")
        try:
            with locked(os.path.join(self.path, NOTE_FILE), like=self.path, patience=PATIENCE):
                entry = self._find(key)
                return None if entry is None else self._carry(entry, folder)
        except OSError as error:
            raise unsorted(self.path, error) from error

    def _find(self, key: str) -> MaildirEntry | None:
        """Return where a message is; None if it has gone, or if two have its name."""
        base = os.fsdecode(unquote_to_bytes(key)) if key.isascii() else ""
        if key_of(base) != key:
            return None
        folders = self.folders
        found = [e for f in folders for e in maildir_entries(self.path, f) if e.base == base]
        return found[0] if len(found) == 1 else None

    def _carry(self, entry: MaildirEntry, folder: str) -> str | None:
        """Move a message, and keep the note true at any moment; return where it was, if moved.

        A message that is there already, and that `sort` does not know, is noted as well, so that
        `sort` does not judge a message that a person has marked.
        """
        note, is_there = read_note(self.path), entry.folder == folder
        if entry.base in note:
            digest = note[entry.base].digest
            if is_there:
                return None
        elif (data := self.message(key_of(entry.base))) is not None:
            digest = entry_digest(data)
        else:
            return None
        if not is_there:
            write_note(self.path, {**note, entry.base: MaildirNote(MOVING, digest)})
            if not move(self.path, entry, entry.moved_to(folder)):
                write_note(self.path, note)
                return None
        write_note(self.path, {**note, entry.base: MaildirNote(self._places()[folder], digest)})
        return None if is_there else entry.folder


class RemovedError(NbspamError):
    """A user who has neither a mailbox nor a model any more."""


class NoMailError(NbspamError):
    """A user who has a model, and no mailbox."""


class Person(NamedTuple):
    """A user with a page."""

    name: str
    has_mail: bool
    has_taught: bool


def check_mailboxes(folder: str) -> None:
    """Raise InputError if there is no folder of mailboxes at a path."""
    try:
        if stat.S_ISDIR(os.stat(folder).st_mode):
            return
        reason = "not a folder"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    raise InputError(f"--review {folder}: {reason}; with --users, give the folder of mailboxes")


class Mailboxes:
    """The mailboxes of all users with a page; users are named as by `judge.known_as`.

    A user with a mailbox or a model has a page.  A user who has lost both has none, even with a
    valid token or session, so all methods look at the disk.

    review: the mailbox; with users, the folder of their mailboxes, each named as the folder with
    its user's model; None: there is none.  model: the path of the model that the mailbox teaches.
    users: the folder of users' models; None: all share the model and the mailbox.  opened: makes
    the site's mailbox of its path and model.
    """

    def __init__(
        self,
        review: str | None,
        model: str,
        users: str | None = None,
        opened: Callable[[str, str], ReviewMailbox] = ReviewMailbox,
    ) -> None:
        self._opened = opened
        self._review = os.devnull if review is None else review  # in which there is nothing
        self._model = model
        self._users = users

    @property
    def has_users(self) -> bool:
        """Whether each user has a page of their own."""
        return self._users is not None

    def people(self) -> list[Person]:
        """Return all users who have a page, in the order of their names."""
        assert self._users is not None
        names = {*users_in(self._users), *users_in(self._review)}
        each = (Person(name, *map(os.path.exists, self._paths_of(name))) for name in sorted(names))
        return [person for person in each if person.has_mail or person.has_taught]

    def box(self, user: str) -> ReviewMailbox:
        """Return the mailbox of a user.

        Raises UserError, RemovedError, NoMailError and InputError.
        """
        if self._users is None:
            return self._opened(self._review, self._model)
        mailbox, model = self._paths_of(user)
        if os.path.exists(mailbox):
            return ReviewMailbox(mailbox, model, user)
        if os.path.exists(model):
            raise NoMailError("no mailbox has your name")
        raise RemovedError("nothing here has your name any more")

    def newly_sent(self, user: str, since: float) -> Iterator[Item]:
        """Yield the mail that came into Sent or .Sent of a user's Maildir since a time.

        since: seconds since 1970.  Raises UserError.  Only the newest MOST_SHOWN count, and
        unreadable mail is skipped.
        """
        maildir, _ = self._paths_of(user)
        for folder in SENT_FOLDERS:
            if is_linked(maildir, folder):
                continue
            found = []
            with suppress(OSError):
                for entry in maildir_entries(maildir, folder):
                    with suppress(FileNotFoundError):  # a mail program has just moved it
                        changed = os.lstat(os.path.join(maildir, entry.path)).st_ctime
                        # The clock of a file system may be some milliseconds late.
                        if changed >= since - 1:
                            found.append((changed, entry.path))
            for _, path in heapq.nlargest(MOST_SHOWN, found):
                with suppress(InputError, OSError), files.open_inside(maildir, path) as stream:
                    yield Item(path, None, unpacked_message(files.read_raw_message(stream)))

    def _paths_of(self, name: str) -> tuple[str, str]:
        """Return where a user's mailbox and model are, or would be; raises UserError."""
        assert self._users is not None
        folder = os.path.join(self._review, user_folder_name(name))
        return folder, model_in(self._users, name)
