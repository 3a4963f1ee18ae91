"""The upkeep of a model: it is checked, its journal repaired, and old tokens are forgotten.

The checks look at the files, at who can read and change them, and at whether counts, ledger,
sample and journal fit together.  A repair saves the good changes of a damaged journal in a new one
and keeps the rest; a damaged model file cannot be repaired, as its counts are sums.
"""

import os
import stat
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans
from nbspam.classifier.classifier import Classifier
from nbspam.counts.ledger import Memory, signed_table
from nbspam.counts.table import CountTable, rounded, without_empty
from nbspam.disk import is_absent, parent_folder, resolved, writing
from nbspam.errors import ModelFileError, ModelWarning, NbspamError, check_number
from nbspam.models import DAMAGE
from nbspam.printing import amount_text
from nbspam.settings import PRESENCE
from nbspam.store import assembly
from nbspam.store import journal as journals
from nbspam.store.fields import check_memory
from nbspam.store.merging import is_part, read_part
from nbspam.store.model import StoredModel
from nbspam.store.modelfile import Identity
from nbspam.store.open import classifier_of, keep_old_model, with_lists

# ---- checks ----

GOOD, NOTE, BAD = "good", "note", "bad"


class Finding(NamedTuple):
    """The result of one check."""

    state: str  # good; note (worth knowing, nothing is lost); bad
    what: str  # file, rights, contents, model, counts, ledger, sample, journal or repair
    text: str


def findings(path: str) -> Iterator[Finding]:
    """Yield the results of all checks of a model; damage is a finding, not an exception."""
    path = resolved(path)
    try:
        snapshot, journal = journals.snapshot_and_journal(path)
        part = read_part(path, snapshot) if is_part(snapshot.state) else None
        classifier = None if part else with_lists(classifier_of(path, snapshot.state), path)
    except NbspamError as error:
        yield Finding(BAD, "file", str(error))
        return
    yield Finding(GOOD, "file", f"{snapshot.identity.length:,} bytes, checksum correct")
    yield from _rights(path)
    if part is not None:
        shard = part.counted.shard
        yield Finding(NOTE, "model", f"none, but part {shard} of a training; nbspam merge adds it")
        return
    if not isinstance(classifier, Classifier):
        kind = snapshot.state["kind"]
        yield Finding(GOOD, "model", f"of kind {kind}: its parts fit together; no journal")
        return
    try:
        check_memory(snapshot.state)
    except DAMAGE as error:
        yield Finding(BAD, "contents", f"they do not fit ({error}); train it again")
        return
    yield _counts(classifier)
    if classifier.memory is None:
        yield Finding(
            NOTE, "ledger", "none, as after --unlabelled or --vocabulary; it cannot learn on"
        )
    else:
        yield _ledger(classifier.memory, classifier)
        sampled = amount_text(len(classifier.memory.sample.digests), classifier.noun)
        yield Finding(GOOD, "sample", f"{sampled} kept for fitting")
    yield _journal(path, snapshot.identity, journal, classifier)


def _rights(path: str) -> Iterator[Finding]:
    changed_by, read_by = (allowed(path, right) for right in (stat.S_IWOTH, stat.S_IROTH))
    for who, what in changed_by.items():
        text = f"{who} can change {', '.join(what)}; take the right to write away"
        yield Finding(BAD if who == EVERYONE else NOTE, "rights", text)
    for who, what in read_by.items() if not changed_by else ():
        text = f"{who} can read the words of your mail in {', '.join(what)}"
        yield Finding(NOTE, "rights", f"{text}; to stop it: chmod 600")
    if not (changed_by or read_by):
        yield Finding(GOOD, "rights", "only its owner can read the words in it")


def _counts(classifier: Classifier) -> Finding:
    table, noun = classifier.table, classifier.noun
    n_tokens = amount_text(len(table.vocabulary), "tokens")
    text = f"{amount_text(table.n_docs, noun)}, {n_tokens}"
    if classifier.settings.weighting == PRESENCE and (
        (np.asarray(table.feature_count, np.float64) > table.class_count).any()
    ):
        return Finding(BAD, "counts", f"{text}; a token is in more {noun} than there are")
    return Finding(GOOD, "counts", text)


def _ledger(memory: Memory, classifier: Classifier) -> Finding:
    if not memory.has_ledger:
        text = "none, by --no-ledger: a message that comes again counts again"
        return Finding(NOTE, "ledger", text)
    n_told = int(memory.ledger.told.sum())
    told = f", {n_told:,} of them told one at a time" if n_told else ""
    text = f"{amount_text(len(memory.ledger.digests), classifier.noun)}{told}"
    of_class = np.bincount(memory.ledger.labels, minlength=len(classifier.classes))
    if (of_class != classifier.table.class_count).any():
        note = "the counts differ from it, as after fading or importing counts"
        return Finding(NOTE, "ledger", f"{text}; {note}")
    return Finding(GOOD, "ledger", text)


def _journal(
    path: str, owner: Identity, journal: journals.Journal, classifier: Classifier
) -> Finding:
    name = journals.journal_path(path)
    if journal.owner is None:
        return Finding(GOOD, "journal", "none")
    problem = journals.problem_of(path, owner, journal)
    if journal.owner != owner:
        text = problem or f"{name} is one that this model has taken in; the next update removes it"
        if journal.changes:
            text += f"; it holds {amount_text(len(journal.changes), 'changes')}"
        if problem:
            text += "; move it away with: nbspam doctor --repair"
        return Finding(BAD if journal.owner == journals.NOBODY else NOTE, "journal", text)
    if problem:
        return Finding(BAD, "journal", f"{problem}; save them with: nbspam doctor --repair")
    text = f"{amount_text(len(journal.changes), 'changes')}, {journal.size:,} bytes"
    if journal.changes:
        change = signed_table(
            journal.changes, classifier.table.vocabulary, classifier.settings.weighting
        )
        grown = int(change.class_count.sum())
        text += f", {amount_text(abs(grown), 'messages')} {'fewer' if grown < 0 else 'more'}"
    if journal.condition == journals.Condition.UNFINISHED:
        text += "; the bytes after them are of an unfinished write, never acknowledged"
        return Finding(NOTE, "journal", text)
    return Finding(GOOD, "journal", text)


# ---- rights: who can read or change a model, which holds words of private mail ----

EVERYONE = "everyone on this machine"
_WORDS = ("~", ".journal", ".share")  # endings of the other files with words of mail


def allowed(path: str, right: int) -> dict[str, list[str]]:
    """Return the groups that have a right to files of a model, each with the names of these.

    The folder is named too if others may write in it and it is not sticky, because they can
    replace the files.
    """
    folder = parent_folder(os.path.abspath(path))
    places, status = [*_files(path)], os.stat(folder)
    if right == stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        places.append((folder, status))
    folders = (Path(folder), *Path(folder).parents)
    found: dict[str, list[str]] = {}
    for place, status in places:
        who = _others_with(right, status)
        may_enter = (_others_with(stat.S_IXOTH, each.stat()) for each in folders)
        if who and {*may_enter} <= {EVERYONE, who}:
            found.setdefault(who, []).append(place)
    return found


def _files(path: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the model, its journal, kept copies of both, and its lessons for other hosts."""
    folder, name = os.path.split(path)
    try:
        names = sorted(os.listdir(folder or os.curdir))
    except PermissionError:  # a folder that one may enter but not list
        names = [name, journals.journal_path(name)]
    for found in names:
        file = os.path.join(folder, found)
        is_own = found == name or found.startswith(tuple(f"{name}{end}" for end in _WORDS))
        if not is_own or found.endswith(".lock"):
            continue
        try:
            status = os.lstat(file)
        except FileNotFoundError:  # such as a journal that another process has just taken in
            continue
        if stat.S_ISREG(status.st_mode):
            yield file, status


def _others_with(right: int, status: os.stat_result) -> str:
    """Return the name of the group that has a right besides the owner, empty if there is none.

    right: the bit of everyone's right, such as stat.S_IROTH.
    """
    if status.st_mode & right:
        return EVERYONE
    if not status.st_mode & right << 3:  # the bit of the group's right
        return ""
    import grp

    try:
        return f"group {grp.getgrgid(status.st_gid).gr_name}"
    except KeyError:
        return f"group {status.st_gid}"


# ---- repair ----


def repair(path: str) -> Finding:
    """Repair a model's journal, and return the findings; raises ModelFileError.

    The file in its place is kept under another name.
    """
    path = resolved(path)
    if is_absent(path):
        raise ModelFileError(f"{path}: no such model; give a model file")
    with journals.locked_model(path), writing(path):
        return _repair(path)


def _repair(path: str) -> Finding:
    try:
        snapshot, journal = journals.snapshot_and_journal(path)
        classifier = classifier_of(path, snapshot.state)
    except ModelFileError as error:
        kept = f"{path}~"
        hint = f"; the model that was there before is {kept}" if os.path.exists(kept) else ""
        return Finding(BAD, "repair", f"{error}{hint}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # the finding says it
        aside = journals.set_aside(path, journal, snapshot.identity)
    if aside is None:
        return Finding(GOOD, "repair", "there was nothing to repair")
    if journal.owner != snapshot.identity or not isinstance(classifier, Classifier):
        return Finding(NOTE, "repair", f"what was in the journal's place is now {aside}")
    journals.write_journal(path, snapshot.identity, journal.changes, journal.progress)
    lost = f"{journal.lost:,} lost" if journal.lost else "none known to be lost"
    return Finding(
        NOTE,
        "repair",
        f"{amount_text(len(journal.changes), 'changes')} saved in a new journal, {lost};"
        f" the damaged one is kept as {aside}",
    )


# ---- pruning: drops tokens that are both rare and old, and fades old counts ----


class Size(NamedTuple):
    """The size of a model."""

    tokens: int
    bytes: int  # of the file and its journal


@dataclass(frozen=True, slots=True)
class PruningRule:
    """The tokens to forget, which are both rare and old, and the half-life of counts."""

    min_df: int | None = None  # rare: in fewer messages than this; None: any number
    older_than: int | None = None  # old: last learned more days ago than this; None: any day
    half_life: float | None = None  # days; None: counts do not fade

    def __post_init__(self) -> None:
        if self.min_df is not None:
            check_number("min_df", self.min_df, 1, whole=True)
        if self.older_than is not None:
            check_number("older_than", self.older_than, 0, whole=True)
        if self.half_life is not None:
            check_number("half_life", self.half_life, 0, above=True)


_GOLDEN = 0.6180339887498949  # 1 divided by the golden ratio: multiples fill 0 to 1 evenly
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio

# Tokens seen in a single message, more than a year ago.
DEFAULT = PruningRule(min_df=2, older_than=365)


def prune_model(path: str, rule: PruningRule, day: int) -> tuple[Size, Size, str | None]:
    """Prune a model file; return its sizes before and after.

    The last value is where the model of before is kept, if it loses more than half of its
    tokens.  day: today, in days since 1970-01-01.  Raises NbspamError; then the file is unchanged.
    """
    path = resolved(path)
    StoredModel(path)  # fails if there is no model; locking first would create its folder
    with journals.locked_model(path):
        stored = StoredModel(path)
        whole = stored.whole()
        before = Size(len(whole.table.vocabulary), stored.size())
        pruned = forgetful(whole, rule, day)
        n_left = len(pruned.table.vocabulary)
        kept = keep_old_model(path) if n_left < before.tokens / 2 else None
        journals.write_model(path, pruned.to_state(), stored.stamp)
        return before, Size(n_left, os.path.getsize(path)), kept


def forgetful(classifier: Classifier, rule: PruningRule, day: int) -> Classifier:
    """Return the classifier after forgetting by the rule; day: today, since 1970-01-01."""
    memory = assembly.memory_of(classifier)
    table, part = classifier.table, assembly.messages_of_model(classifier)
    if rule.half_life is not None:
        factor = _share_left(memory, rule.half_life, day)
        table = faded(table, factor, classifier.settings.weighting, day)
        part = part._replace(decayed=max(memory.decayed, day))  # a clock may be set back
    if rule.min_df is not None or rule.older_than is not None:
        table = table.forgetting(np.flatnonzero(~_rare_and_old(table, part, rule, day)))
    sampling = assembly.sampled_parts([part], classifier.settings, memory.progress)
    owed = assembly.owed_table(classifier)
    return assembly.reassembled(classifier, table, [part], sampling, owed, memory.progress)


def _share_left(memory: Memory, half_life: float, day: int) -> float:
    """Return the share of counts that a half-life leaves: the mean over the known messages.

    Each fades from the day on which it was learned or counts last faded, so that one with a
    false clock does not decide.  Without any, counts fade from the day they last faded, or today.
    """
    days = np.maximum(memory.ledger.days, memory.decayed).astype(np.int64)
    if not len(days):
        days = np.array([memory.decayed or day])
    return float((0.5 ** (np.maximum(day - days, 0) / half_life)).mean())


def _rare_and_old(
    table: CountTable, part: assembly.ModelMessages, rule: PruningRule, day: int
) -> Booleans:
    """Return which tokens of the table the rule drops, shape (n_features,)."""
    gone: Booleans = np.ones(len(table.vocabulary), np.bool_)
    if rule.min_df is not None:
        gone &= table.document_frequency < rule.min_df
    if rule.older_than is not None:
        column = np.searchsorted(part.keys, table.vocabulary.keys)
        gone &= day - part.last_seen[column].astype(np.int64) > rule.older_than
    return gone


def faded(table: CountTable, factor: float, weighting: str, day: int) -> CountTable:
    """Return the table with all counts multiplied by a factor, in the weighting's grain.

    Counts are rounded up or down by chance, so that they fade as fast in many small steps as in a
    large one; rounded to the nearest number, a count of 1 would never fade in steps that each take
    less than half of it.  The chance is a hash of the token and the day, or of the day.  Tokens
    whose document frequency becomes 0 are dropped.  A class with messages keeps one.
    """
    mixed = (table.vocabulary.keys ^ np.uint64(day)) * _ODD  # keys are hashes already
    mixed = (mixed ^ (mixed >> np.uint64(32))) * _ODD
    chance = (mixed >> np.uint64(11)) * 2.0**-53  # 0 to below 1
    old = table.document_frequency
    frequency = np.floor(old * factor + chance).astype(np.int64)
    class_count = np.floor(table.class_count * factor + day * _GOLDEN % 1)
    class_count = np.maximum(class_count, np.minimum(table.class_count, 1))
    if weighting == PRESENCE:
        feature_count = np.floor(table.feature_count * factor + chance[:, None])
        # No token is in more messages than there are.
        np.minimum(feature_count, class_count, out=feature_count)
    else:
        share = (frequency / np.maximum(old, 1))[:, None]
        feature_count = rounded(table.feature_count * share, weighting)
    faint = table._replace(
        class_count=class_count,
        feature_count=feature_count,
        document_frequency=frequency,
        loss=None if table.loss is None else table.loss.faded(factor),
    )
    return without_empty(faint)
