"""A Maildir: listing and moving its messages, sorting new mail, and learning from moves.

A message keeps its unique name and moves by one rename, so that it is in exactly one place
at any moment.  Nothing is overwritten.  A message that another program has just moved or
deleted is not an error.

A user who moves a message to another folder states its class.  A note says where each message was
left.  After a crash, the next run finishes the work, and does not mistake our own moves for
the user's.
"""

import os
import re
import stat
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

from nbspam.classifier.classifier import Classifier
from nbspam.decision import HAM_AND_SPAM, Rule
from nbspam.disk import REMEDIES, adopt_folder, is_absent, locked, make_file, read_own, replacing
from nbspam.errors import InputError, UsageError
from nbspam.mail.digest import mail_digest
from nbspam.mail.headers import HEAD, LIMITS, header_lines, open_message, origins_of
from nbspam.mail.verdict_headers import check_labels
from nbspam.printing import amount_text
from nbspam.settings import PRESETS
from nbspam.sharing.sharer import shared_lessons
from nbspam.sources.files import maildir_name
from nbspam.sources.items import Item
from nbspam.sources.mailboxes import is_maildir
from nbspam.store.assembly import check_ledger, empty_model
from nbspam.store.model import StoredModel
from nbspam.store.open import load_tokens, with_lists
from nbspam.verdicts import Skipped, Verdict

NOTE_FILE = "nbspam-sorted"  # file beside cur/, new/ and tmp/; other programs ignore it
MAILDIR_INBOX = ""
UNSURE_FOLDER = ".Unsure"
SORTING_PATIENCE = 60.0  # seconds for another run, on the same mail or with the same model
MOVING = "moving"  # the place in a note of a message that was left wherever it is found
# The usual names of folders for spam, in small letters; cPanel makes .spam, Outlook .Junk E-mail.
_SPAM_FOLDERS = (".spam", ".junk", ".junk e-mail", ".junk email", ".bulk mail", ".junk mail")
MAILDIR_PARTS = ("new", "cur")  # the parts of a folder that hold messages
_DELETED = "T"  # the flag of a message that a mail program will remove, perhaps moved as a copy
_NUMBER = re.compile(r",U=\d+")  # the UID, which mbsync and OfflineIMAP write into file names
# A line of a note: place, digest and unique name; spam that was not moved got a flag (-F).
_NOTED = re.compile(rb"^(ham|unsure|moving|spam(?:-[A-Za-z])?) (\S*) (.+)$", re.MULTILINE)


class MaildirEntry(NamedTuple):
    """The place of a message's file in a Maildir."""

    folder: str  # MAILDIR_INBOX, or for example .Spam or ../Junk
    part: str  # new or cur
    file: str

    @property
    def base(self) -> str:
        """The file name without flags and UID: the unique name of the message."""
        return _NUMBER.sub("", maildir_name(self.file)[0])

    @property
    def flags(self) -> str:
        """The letters of the message's flags, such as S (seen)."""
        return maildir_name(self.file)[1]

    @property
    def path(self) -> str:
        """The path relative to the Maildir."""
        return os.path.join(self.folder, self.part, self.file)

    def flagged(self, letter: str) -> "MaildirEntry":
        """Return the message's place in cur/ with one more flag."""
        unique, flags = maildir_name(self.file)
        info = self.file[len(unique) :][:3] or ":2,"
        return MaildirEntry(self.folder, "cur", unique + info + "".join(sorted({*flags, letter})))

    def moved_to(self, folder: str) -> "MaildirEntry":
        """Return the message's place in a folder; in another one, its UID is another message's."""
        if folder == self.folder:
            return self
        return MaildirEntry(folder, self.part, _NUMBER.sub("", self.file))


class MaildirNote(NamedTuple):
    """Where a message was left, and its digest."""

    place: str  # as in _NOTED
    digest: str


def check_maildir(root: str) -> None:
    """Raise InputError unless the folder is a Maildir."""
    if not is_maildir(root):
        why = "not a Maildir (no cur/ and new/); give the folder that holds both, or an account"
        if not os.path.lexists(root):
            why = "no such folder or account; check the spelling"
        elif os.path.isdir(root) and not os.access(root, os.X_OK):
            why = "may not be entered; sort as its owner, or change its rights"
        raise InputError(f"{root}: {why}")


def check_writable(root: str) -> None:
    """Raise InputError unless messages can be moved out of a Maildir's inbox, and noted."""
    for path in (root, *(os.path.join(root, part) for part in MAILDIR_PARTS)):
        if not os.access(path, os.W_OK | os.X_OK):
            if os.statvfs(path).f_flag & os.ST_RDONLY:
                raise InputError(f"{path}: on a read-only file system; mount it to be written")
            status = os.stat(path)
            raise InputError(
                f"{path}: cannot be written to ({stat.filemode(status.st_mode)}, of user"
                f" {status.st_uid}); sort as its owner, or change its rights"
            )


def maildir_folder_name(name: str) -> str:
    """Return the name on disk of a Maildir++ folder, ".Spam" of "Spam"; raises UsageError.

    Other letters than ASCII are written in IMAP's UTF-7 (RFC 3501, 5.1.3), as mail servers do.  A
    name that begins with a dot is one on disk, ../Junk that of a folder beside the Maildir.
    """
    bare = name.removeprefix("../").removeprefix(".")
    if not bare.strip(".") or "/" in bare or not bare.isprintable():
        raise UsageError(f"folder {name!r}: not the name of a Maildir folder; write it as .Spam")
    if name != bare:
        return name
    parts = re.split(r"([^ -~]+|&)", bare)
    for n in range(1, len(parts), 2):
        letters = parts[n].replace("&", "").encode("utf-16-be")
        parts[n] = f"&{b64encode(letters, b'+,').decode().rstrip('=')}-"
    return "." + "".join(parts)


def check_shown(root: str, folder: str) -> None:
    """Raise UsageError if no mail program shows a folder, because its Maildir is one itself."""
    path = os.path.realpath(root)
    is_folder = os.path.basename(path).startswith(".") and is_maildir(os.path.dirname(path))
    if is_folder and not folder.startswith("../"):
        raise UsageError(
            f"{root}: a folder of a Maildir, and mail programs show none in it; give the Maildir,"
            " or to nbspam sort --spam-folder ../.Spam"
        )


def check_apart(mailbox: str, folders: Iterable[str]) -> None:
    """Raise UsageError if two kinds of a mailbox's mail have one folder."""
    own = [each.lower() for each in folders]
    if len(set(own)) < len(own):
        raise UsageError(
            f"{mailbox}: one folder for two kinds of mail ({', '.join(own)});"
            " name others by --spam-folder and --unsure-folder"
        )


def spam_folder(root: str, is_beside: bool = False) -> str:
    """Return the folder for spam: the first usual name that exists in any case, or else .Spam.

    is_beside: whether it may be ../Junk, a Maildir beside one called INBOX.  Of a folder with a
    Maildir for each user, that could be another user's.
    """
    there = {name.lower(): name for name in _folders(root)}  # .Spam before .spam
    if is_beside and os.path.basename(os.path.realpath(root)).lower() == "inbox":
        parent = os.path.join(root, "..")
        beside = [name for name in _folders(parent) if is_maildir(os.path.join(parent, name))]
        there = {f".{name.lower()}": f"../{name}" for name in beside} | there
    return next((there[name] for name in _SPAM_FOLDERS if name in there), ".Spam")


def _folders(path: str) -> list[str]:
    with suppress(OSError), os.scandir(path) as found:
        return sorted((each.name for each in found if each.is_dir()), reverse=True)
    return []


def entry_digest(data: bytes) -> str:
    """Return the digest by which a note knows a renamed message, whatever mail programs added."""
    message = open_message(data)
    hashed = blake2b(b"%d" % mail_digest(message), digest_size=8)
    for name, value in header_lines(message.head[: LIMITS.headers]):
        if any(origins_of(HEAD, name)):  # Received tells deliveries of one message apart
            hashed.update(b"\n%b:%b" % (name, value.translate(None, b" \t\n")))
    return hashed.hexdigest()


def maildir_entries(root: str, folder: str) -> Iterator[MaildirEntry]:
    """Yield the messages of a folder, each once, but none that are marked as deleted.

    Without such a folder there are none.  Raises OSError if it cannot be read.
    """
    seen = set()
    # Mail readers move messages from new to cur, so in this order none is missed.
    for part in MAILDIR_PARTS:
        for file in sorted(_files(os.path.join(root, folder, part))):
            entry = MaildirEntry(folder, part, file)
            base = entry.base
            if base not in seen and _DELETED not in entry.flags:
                seen.add(base)
                yield entry


def _files(folder: str) -> list[str]:
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as found:
        return [
            entry.name
            for entry in found
            if not entry.name.startswith(".")
            and "\n" not in entry.name
            and entry.is_file(follow_symlinks=False)
        ]
    return []


def move(root: str, entry: MaildirEntry, target: MaildirEntry) -> bool:
    """Move a message; return False if it has gone, or if there is a file at the target.

    Makes the target folder if it is missing.  Raises OSError.
    """
    _make_folder(root, target.folder)
    source, destination = (os.path.join(root, one.path) for one in (entry, target))
    if not os.path.lexists(destination):
        with suppress(FileNotFoundError):  # a mail reader has just moved or deleted it
            os.rename(source, destination)
            return True
    return False


def _make_folder(root: str, folder: str) -> None:
    path = os.path.join(root, folder)
    parts = [os.path.join(path, part) for part in ("tmp", *MAILDIR_PARTS)]
    if all(map(os.path.isdir, parts)):
        return
    for part in (path, *parts):
        try:
            os.mkdir(part, 0o700)
            adopt_folder(part, root)
        except FileExistsError:
            if not os.path.isdir(part):  # but a file, or a link that leads nowhere
                raise
    with suppress(FileExistsError):  # the mark of a Maildir++ folder
        make_file(os.path.join(path, "maildirfolder"), like=root)


def read_note(root: str) -> dict[str, MaildirNote]:
    """Return where messages were left, by unique name; damaged lines are skipped."""
    data = b""
    with suppress(FileNotFoundError):
        data = read_own(os.path.join(root, NOTE_FILE), root)
    return {
        os.fsdecode(base): MaildirNote(os.fsdecode(place), os.fsdecode(digest))
        for place, digest, base in _NOTED.findall(data)
    }


def write_note(root: str, left: Mapping[str, MaildirNote]) -> None:
    """Write where messages were left, or keep the old note unchanged and raise OSError."""
    lines = (f"{place} {digest} {base}\n" for base, (place, digest) in sorted(left.items()))
    note = os.path.join(root, NOTE_FILE)
    try:
        with replacing(note, like=root) as file:
            file.writelines(map(os.fsencode, lines))
    except OSError as error:
        error.filename = note  # a full disk names no file, or a temporary one
        raise


def unsorted(root: str, error: OSError) -> InputError:
    """Return the error to raise for a Maildir that the system does not let us change."""
    remedy = REMEDIES.get(error.errno or 0)
    advice = f"{remedy}, then try again" if remedy else "try again"
    place = error.filename2 or error.filename or root  # of a move, where it was to go
    return InputError(f"{place}: {error.strerror or error}; nothing is lost, {advice}")


# ---- sorting: new mail is moved by its verdict, and mail that the user moved is learned ----


_SEEN = "S"  # the Maildir flag of a message that was read
_FEW_HAM = 100  # too few beside ten times as much spam: E-358
RuleOf = Callable[[Classifier], Rule]  # by which a classifier's probabilities become labels
_OTHER_MODEL = "give a model of ham and spam with -m"


@dataclass(frozen=True, slots=True)
class SortingChoices:
    """How to sort a Maildir or an account."""

    spam_folder: str | None = None  # None: the one with a usual name, or of this use
    unsure_folder: str | None = None  # None: .Unsure, or ../Unsure; in an account such mail stays
    flag: str | None = None  # in a Maildir, spam is not moved but gets this flag
    tags: bool = False  # in an account, spam is not moved but gets the keyword $Junk
    learns: bool = True
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class SortedMessage:
    """A message, its label and its move; in a dry run, the move that it would make."""

    name: str  # its path within the Maildir before, or its URL in an account
    label: str
    probability: float | None  # None: the label is the user's
    moved_to: str | None  # its path afterwards, or the folder or keyword; None: not moved
    message_id: str | None = None  # in an account, where a move changes its URL


@dataclass(slots=True)
class SortingReport:
    """The result of sorting a Maildir or an account."""

    judged: list[SortedMessage] = field(default_factory=list)
    learned: list[SortedMessage] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lack: str | None = None  # what the model needs before it can judge; no mail was moved


def sorting_model(path: str) -> StoredModel:
    """Return the model that learns from sorted mail; raises UsageError if it cannot."""
    model = StoredModel(path, new=PRESETS["mail"])
    model.patience = SORTING_PATIENCE
    check_ledger(model.base, path)
    check_labels("sort", model.classes, _OTHER_MODEL)
    return model


def sorting_classifier(path: str, rule_of: RuleOf) -> tuple[Classifier, Rule]:
    """Return the classifier that sorts mail, with the lists beside it, and its rule.

    Without a model, it is one that knows nothing.  Raises NbspamError for a model of another
    kind, and unless its answers are ham, spam and unsure.
    """
    there = not is_absent(path)
    classifier = with_lists(load_tokens(path), path) if there else empty_model(PRESETS["mail"])
    rule = rule_of(classifier)
    check_labels("sort", classifier.classes, _OTHER_MODEL)
    check_labels("--loss", rule.actions)
    return classifier, rule


def sorting_lack(classifier: Classifier) -> str | None:
    """Return the lack that keeps a classifier from moving mail, None without one.

    A model of an old spam folder and a few hams calls nearly all mail spam.
    """
    counts = dict(zip(classifier.classes, classifier.table.class_count.tolist(), strict=True))
    n_ham, n_spam = (counts.get(name, 0) for name in HAM_AND_SPAM)
    if classifier.lack is None and n_ham < _FEW_HAM and n_spam >= 10 * n_ham:
        known = f"{amount_text(int(n_ham), 'hams')} beside {int(n_spam):,} of spam"
        return f"the model knows {known}, and needs {_FEW_HAM}; teach it: nbspam update --ham PATH"
    return classifier.lack


def sort_maildir(
    root: str,
    model_path: str,
    choices: SortingChoices,
    day: int,
    rule_of: RuleOf = lambda classifier: classifier.rule,
    report: SortingReport | None = None,
) -> SortingReport:
    """Learn the messages that the user moved, then judge and move new ones; raises NbspamError.

    day: today, in days since 1970-01-01.  report: takes what is done, also before an error.
    """
    check_maildir(root)
    if not choices.dry_run:
        check_writable(root)
    note = os.path.join(root, NOTE_FILE)
    with nullcontext() if choices.dry_run else locked(note, like=root, patience=SORTING_PATIENCE):
        sorter = _Sorter(root, model_path, choices, rule_of, report or SortingReport())
        try:
            sorter.look()
            sorter.learn(day)
            try:
                sorter.judge()
            finally:  # an error or an interrupt leaves what was moved before it noted
                sorter.note()
        except OSError as error:
            raise unsorted(root, error) from error
        return sorter.report


@dataclass
class _Sorter:
    """One run over one Maildir."""

    root: str
    model_path: str
    choices: SortingChoices
    rule_of: RuleOf
    report: SortingReport

    def __post_init__(self) -> None:
        root, choices = self.root, self.choices
        unsure, spam = choices.unsure_folder, choices.spam_folder
        self.spam = spam_folder(root, True) if spam is None else maildir_folder_name(spam)
        if unsure is None:  # beside that for spam: .Unsure, ../Unsure or ../.Unsure
            unsure = self.spam[: -len(self.spam.lstrip("./"))] + "Unsure"
        self.unsure = maildir_folder_name(unsure)
        check_apart(root, [self.spam, self.unsure])
        if choices.flag is None:
            check_shown(root, self.spam)
        self.as_spam = "spam" if choices.flag is None else f"spam-{choices.flag}"  # in the note
        self.before = read_note(root)
        self.left: dict[str, MaildirNote] = {}
        self.new: list[MaildirEntry] = []
        self.corrected: list[MaildirEntry] = []
        self.put_there: list[MaildirEntry] = []  # unknown messages in the spam folder
        self.digests: dict[str, str] = {}
        self.twins: dict[str, MaildirNote] = {}  # of names that are in two folders at once

    def place(self, entry: MaildirEntry) -> str:
        """Return the label for which a message's folder, or its flag, stands."""
        if self.choices.flag is not None:
            return "spam" if self.choices.flag in entry.flags else "ham"
        return {MAILDIR_INBOX: "ham", self.spam: "spam", self.unsure: "unsure"}[entry.folder]

    # ---- looking at the Maildir ----

    def look(self) -> None:
        """Find new messages, and messages that the user moved since the last run."""
        folders = [MAILDIR_INBOX]
        if self.choices.flag is None:
            folders += [self.spam, self.unsure]
        last: list[MaildirEntry] | None = None
        for _ in range(5):  # a message that moves while folders are listed is in none, or in two
            found = [entry for folder in folders for entry in maildir_entries(self.root, folder)]
            present = Counter(entry.base for entry in found)
            is_whole = self.before.keys() <= present.keys() and len(present) == len(found)
            if is_whole or found == last:
                break
            last = found
        bases = sorted(base for base, number in present.items() if number > 1)
        self.twins = dict.fromkeys(bases, MaildirNote(MOVING, "-"))
        if new := [base for base, twin in self.twins.items() if self.before.get(base) != twin]:
            more = f", as {len(new) - 1:,} more names are" if len(new) > 1 else ""
            self.report.notes.append(
                f"{self.root}: {new[0]} is in two folders at once{more}; nothing is learned from"
                " their moves, give such messages different names"
            )
        # An earlier run may have left spam in a folder that is none of these now.
        missing = {base for base, left in self.before.items() if left.place.startswith("spam")}
        missing -= present.keys()
        others = {spam_folder(self.root, True), *_folders(self.root)}.difference(folders)
        for folder in others if missing else ():
            with suppress(OSError):  # one that may not be read
                there = {entry.base for entry in maildir_entries(self.root, folder)} & missing
                self.left |= {base: self.before[base] for base in there}
        # Moving can rename a message.  So a file with an unknown name is taken for a noted message
        # whose name is gone if both have the same digest.  Several such messages may be equal.
        gone: dict[str, set[str]] = defaultdict(set)
        for base, left in self.before.items():
            if base not in present and base not in self.left:
                gone[left.digest].add(left.place)
        for entry in found:
            if known_as := self.before.get(entry.base):
                left = self.twins.get(entry.base, known_as)
                self._consider(entry, left.digest, {left.place})
            elif digest := self._digest(entry):
                self._consider(entry, digest, gone.get(digest, set()))

    def _digest(self, entry: MaildirEntry) -> str | None:
        try:
            return entry_digest(Item(self._path(entry), None).read())
        except InputError as error:
            self._skip(entry, str(error))
            return None

    def _skip(self, entry: MaildirEntry, reason: str) -> None:
        """Report an unreadable message, unless somebody has just moved it."""
        path = self._path(entry)
        if os.path.lexists(path):
            self.report.skipped.append(Skipped(path, reason))

    def _path(self, entry: MaildirEntry) -> str:
        return os.path.join(self.root, entry.path)

    def _consider(self, entry: MaildirEntry, digest: str, left_at: set[str]) -> None:
        place, self.digests[entry.base] = self.place(entry), digest
        # An earlier run may have sorted by another flag, or by none.
        others = {"ham", "unsure", self.as_spam} - {self._noted(place)}
        is_moved = left_at and left_at <= others and place != "unsure"
        before = min(left_at, default="")
        if is_moved and (not self.choices.learns or self._digest(entry)):
            self.corrected.append(entry)
        elif not left_at and place == "spam":
            self.put_there.append(entry)
        elif not left_at and place == "ham" and _SEEN not in entry.flags:
            self.new.append(entry)
        else:
            self._leave(entry)
            # It is learned when it can be read, or it may still have the other flag.
            if is_moved or (place == "ham" and before.startswith("spam")):
                self.left[entry.base] = MaildirNote(before, digest)

    def _leave(self, entry: MaildirEntry) -> None:
        place = self._noted(self.place(entry))
        self.left[entry.base] = MaildirNote(place, self.digests[entry.base])

    def _noted(self, place: str) -> str:
        return self.as_spam if place == "spam" else place

    # ---- learning, judging, noting ----

    def learn(self, day: int) -> None:
        """Learn moved messages, and unknown ones in the spam folder that are not judged spam.

        A label that a person gave an unknown message, on the page or by `relabel`, outranks its
        folder.
        """
        lessons = list(self.corrected)
        if self.choices.learns and self.put_there:
            wrong = [e for e, v in self._verdicts(self.put_there) if v.label != "spam"]
            self.report.lack = None  # which the lessons may change
            lessons += self._untold(wrong) if wrong else []
        if self.choices.learns and lessons:
            skipped = set() if self.choices.dry_run else self._teach(lessons, day)
            self.report.learned = [
                SortedMessage(e.path, self.place(e), None, None)
                for e in lessons
                if self._path(e) not in skipped
            ]
        for entry in (*self.corrected, *self.put_there):
            self._leave(entry)

    def _untold(self, found: list[MaildirEntry]) -> list[MaildirEntry]:
        """Return the messages whose class no person has given the model."""
        model, untold = sorting_model(self.model_path), []
        for entry in found:
            with suppress(InputError):  # somebody has just moved it
                if not model.filed(Item(self._path(entry), None).read()).told:
                    untold.append(entry)
        return untold

    def _teach(self, lessons: Iterable[MaildirEntry], day: int) -> set[str]:
        """Teach the model messages; return the paths of those that it did not learn."""
        items = [Item(self._path(e), self.place(e), told=True) for e in lessons]
        with shared_lessons(sorting_model(self.model_path)) as model:
            outcome = model.learn(items, day=day)
        self.report.skipped += (s for s in outcome.skipped if os.path.lexists(s.name))
        self.report.notes += outcome.notes
        return {one.name for one in outcome.skipped}

    def judge(self) -> None:
        """Move or flag new mail by the verdicts of the model, which has learned the lessons."""
        for entry, verdict in self._verdicts(self.new):
            target = self._target(entry, verdict.label)
            stays = target == entry or self.choices.dry_run
            if stays or move(self.root, entry, target):
                moved_to = None if target == entry else target.path
                self.report.judged.append(
                    SortedMessage(entry.path, verdict.label, verdict.probability, moved_to)
                )
                if self.report.lack is None:  # else it is judged again, when the model can
                    self._leave(target)

    def _target(self, entry: MaildirEntry, label: str) -> MaildirEntry:
        if self.report.lack is not None:
            return entry
        if self.choices.flag is not None:
            return entry.flagged(self.choices.flag) if label == "spam" else entry
        folder = {"spam": self.spam, "unsure": self.unsure}.get(label, MAILDIR_INBOX)
        return entry.moved_to(folder)

    def _verdicts(self, chosen: list[MaildirEntry]) -> Iterator[tuple[MaildirEntry, Verdict]]:
        """Yield messages with their verdicts; reports or ignores unreadable ones."""
        classifier, rule = sorting_classifier(self.model_path, self.rule_of)
        if not chosen and self.before:  # the first run tells what the model lacks
            return
        self.report.lack = sorting_lack(classifier)
        items = [Item(self._path(entry), None) for entry in chosen]
        for entry, verdict in zip(chosen, classifier.classify(items, rule=rule), strict=True):
            if isinstance(verdict, Skipped):
                self._skip(entry, verdict.reason)
            else:
                yield entry, verdict

    def note(self) -> None:
        """Write down where messages were left, for the next run."""
        self.left |= self.twins
        if self.left != self.before and not self.choices.dry_run:
            write_note(self.root, self.left)
