"""Sorting a Maildir: moves new mail by its verdict, and learns from mail that the user moved.

A user who moves a message to another folder states its class.  A note says where each message was
left.  After a crash, the next run finishes the work, and does not take our own moves for the
user's.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field

from nbspam.classifier.classifier import Classifier
from nbspam.decision import Rule
from nbspam.disk import locked
from nbspam.errors import InputError
from nbspam.mail.verdict_headers import check_labels
from nbspam.maildir.maildir import (
    INBOX,
    MOVING,
    NOTE,
    UNSURE,
    MaildirEntry,
    MaildirNote,
    check_maildir,
    check_writable,
    entry_digest,
    maildir_entries,
    maildir_folder_name,
    move,
    read_note,
    spam_folder,
    write_note,
)
from nbspam.settings import PRESETS
from nbspam.sources.items import Item
from nbspam.store.assembly import begun, check_ledger
from nbspam.store.model import StoredModel
from nbspam.store.open import load_tokens, with_lists
from nbspam.verdicts import Skipped, Verdict

_SEEN = "S"  # the Maildir flag of a message that was read


@dataclass(frozen=True, slots=True)
class SortingChoices:
    """How to sort a Maildir."""

    spam_folder: str | None = None  # None: see maildir.spam_folder
    unsure_folder: str = UNSURE
    flag: str | None = None  # spam is not moved but gets this flag
    learns: bool = True
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Sorted:
    """The fate of a message, or its fate without a dry run."""

    name: str  # its path within the Maildir before
    label: str
    probability: float | None  # None: the label is the user's
    moved_to: str | None  # its path afterwards; None: it was not moved


@dataclass(slots=True)
class SortingReport:
    """The result of sorting a Maildir."""

    judged: list[Sorted] = field(default_factory=list)
    learned: list[Sorted] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lack: str | None = None  # what the model needs before it can judge; no mail was moved


def sort_maildir(
    root: str,
    model_path: str,
    choices: SortingChoices,
    day: int,
    rule_of: Callable[[Classifier], Rule] = lambda classifier: classifier.rule,
) -> SortingReport:
    """Learn the messages that the user moved, then judge and move new ones; raises NbspamError.

    day: today, in days since 1970-01-01.  rule_of: returns the rule by which a classifier's
    probabilities become labels.
    """
    check_maildir(root)
    if not choices.dry_run:
        check_writable(root)
    lock: AbstractContextManager[None] = nullcontext()
    if not choices.dry_run:
        lock = locked(os.path.join(root, NOTE), like=root)
    with lock:
        sorter = _Sorter(root, model_path, choices, rule_of)
        try:
            sorter.look()
            sorter.learn(day)
            sorter.judge()
            sorter.note()
        except OSError as error:
            raise InputError(
                f"{error.filename or root}: {error.strerror or error}; nothing is lost, try again"
            ) from error
        return sorter.report


class _Sorter:
    """One run over one Maildir."""

    def __init__(
        self,
        root: str,
        model_path: str,
        choices: SortingChoices,
        rule_of: Callable[[Classifier], Rule],
    ) -> None:
        self.root, self.model_path, self.choices, self.rule_of = root, model_path, choices, rule_of
        self.unsure = maildir_folder_name(choices.unsure_folder)
        spam = choices.spam_folder
        self.spam = spam_folder(root) if spam is None else maildir_folder_name(spam)
        self.report = SortingReport()
        self.before = read_note(root)
        self.left: dict[str, MaildirNote] = {}
        self.new: list[MaildirEntry] = []
        self.corrected: list[MaildirEntry] = []
        self.put_there: list[MaildirEntry] = []  # unknown messages in the spam folder
        self.digests: dict[str, str] = {}
        self.twins: dict[str, MaildirNote] = {}  # of names that are in two folders at once

    def place(self, entry: MaildirEntry) -> str:
        """Return the label that a message's folder, or its flag, stands for."""
        if self.choices.flag is not None:
            return "spam" if self.choices.flag in entry.flags else "ham"
        return {INBOX: "ham", self.spam: "spam", self.unsure: "unsure"}[entry.folder]

    # ---- looking at the Maildir ----

    def look(self) -> None:
        """Find new messages, and messages that the user moved since the last run."""
        folders = [INBOX] if self.choices.flag is not None else [INBOX, self.spam, self.unsure]
        found = [entry for folder in folders for entry in maildir_entries(self.root, folder)]
        present = Counter(entry.base for entry in found)
        bases = sorted(base for base, number in present.items() if number > 1)
        self.twins = dict.fromkeys(bases, MaildirNote(MOVING, "-"))
        known = {base for base, left in self.before.items() if left.place == MOVING}
        if new := [base for base in bases if base not in known]:
            more = f", as {len(new) - 1:,} more names are" if len(new) > 1 else ""
            self.report.notes.append(
                f"{self.root}: {new[0]} is in two folders at once{more}; nothing is learned from"
                " their moves, give such messages different names"
            )
        # Moving can rename a message.  So a file with an unknown name is taken for a noted message
        # whose name is gone if both have the same digest.
        gone = {left.digest: left for base, left in self.before.items() if base not in present}
        for entry in found:
            left = self.before.get(entry.base)
            if left is None:
                digest = self._digest(entry)
                if digest is None:
                    continue
                left = gone.get(digest)
                self.digests[entry.base] = digest
            else:
                left = self.twins.get(entry.base, left)
                self.digests[entry.base] = left.digest
            self._consider(entry, left)

    def _digest(self, entry: MaildirEntry) -> str | None:
        try:
            data = Item(os.path.join(self.root, entry.path), None).read()
        except InputError as error:
            self._skip(entry, str(error))
            return None
        return entry_digest(data)

    def _skip(self, entry: MaildirEntry, reason: str) -> None:
        """Report an unreadable message, unless somebody has just moved it."""
        path = os.path.join(self.root, entry.path)
        if os.path.lexists(path):
            self.report.skipped.append(Skipped(path, reason))

    def _consider(self, entry: MaildirEntry, left: MaildirNote | None) -> None:
        place = self.place(entry)
        if left is not None and left.place not in (place, MOVING) and place != "unsure":
            self.corrected.append(entry)
        elif left is None and place == "spam":
            self.put_there.append(entry)
        elif left is None and place == "ham" and _SEEN not in entry.flags:
            self.new.append(entry)
        else:
            self._leave(entry)

    def _leave(self, entry: MaildirEntry) -> None:
        self.left[entry.base] = MaildirNote(self.place(entry), self.digests[entry.base])

    # ---- learning, judging, noting ----

    def learn(self, day: int) -> None:
        """Learn moved messages, and unknown ones in the spam folder that are not judged spam.

        A label that a person gave an unknown message, on the server's page or by `relabel`, counts
        more than its folder.
        """
        lessons = list(self.corrected)
        if self.choices.learns and self.put_there:
            wrong = [e for e, v in self._verdicts(self.put_there) if v.label != "spam"]
            lessons += self._untold(wrong)
        if self.choices.learns and lessons:
            self.report.learned = [Sorted(e.path, self.place(e), None, None) for e in lessons]
            if not self.choices.dry_run:
                self._teach(lessons, day)
        for entry in (*self.corrected, *self.put_there):
            self._leave(entry)

    def _untold(self, found: list[MaildirEntry]) -> list[MaildirEntry]:
        """Return the messages whose class no person has told the model."""
        if not found:
            return []
        model, untold = self._model(), []
        for entry in found:
            with suppress(InputError):  # somebody has just moved it
                data = Item(os.path.join(self.root, entry.path), None).read()
                if not model.filed(data).told:
                    untold.append(entry)
        return untold

    def _model(self) -> StoredModel:
        model = StoredModel(self.model_path, new=PRESETS["mail"])
        check_ledger(model.base, self.model_path)
        return model

    def _teach(self, lessons: Iterable[MaildirEntry], day: int) -> None:
        items = (Item(os.path.join(self.root, e.path), self.place(e), told=True) for e in lessons)
        outcome = self._model().learn(list(items), day=day)
        self.report.skipped += (s for s in outcome.skipped if os.path.lexists(s.name))
        self.report.notes += outcome.notes

    def judge(self) -> None:
        """Move or flag new mail by the verdicts of the model, which has learned the lessons."""
        for entry, verdict in self._verdicts(self.new):
            target = self._target(entry, verdict.label)
            is_there = True
            if target != entry and not self.choices.dry_run:
                is_there = move(self.root, entry, target)
            if is_there:
                moved_to = None if target == entry else target.path
                self.report.judged.append(
                    Sorted(entry.path, verdict.label, verdict.probability, moved_to)
                )
                self.digests[target.base] = self.digests[entry.base]
                self._leave(target)

    def _target(self, entry: MaildirEntry, label: str) -> MaildirEntry:
        if self.report.lack is not None:
            return entry
        if self.choices.flag is not None:
            return entry.flagged(self.choices.flag) if label == "spam" else entry
        folder = {"spam": self.spam, "unsure": self.unsure}.get(label, INBOX)
        return MaildirEntry(folder, entry.part, entry.file)

    def _verdicts(self, chosen: list[MaildirEntry]) -> Iterator[tuple[MaildirEntry, Verdict]]:
        """Yield messages with their verdicts; reports or ignores unreadable ones."""
        if not chosen:
            return
        if os.path.exists(self.model_path):
            classifier = with_lists(load_tokens(self.model_path), self.model_path)
        else:  # a model that knows nothing
            classifier = begun(PRESETS["mail"])
        self.report.lack = classifier.lack
        rule = self.rule_of(classifier)
        check_labels("nbspam sort", (*classifier.classes, *rule.actions))
        items = [Item(os.path.join(self.root, entry.path), None) for entry in chosen]
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
