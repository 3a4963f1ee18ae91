"""Checking a model: whether all in its files is whole, and fits together.

Secret: what must hold of a model, whatever has happened to it.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from nbspam.classifier.classifier import Classifier
from nbspam.classifier.combining import Combination
from nbspam.counts.changes import signed_table
from nbspam.errors import NbspamError
from nbspam.settings import PRESENCE
from nbspam.store.format.journal import NOBODY, journal_path, read_journal, read_model
from nbspam.store.format.modelfile import Identity
from nbspam.store.open import classifier_of

GOOD, NOTE, BAD = "good", "note", "bad"


class Finding(NamedTuple):
    """One thing that was looked at."""

    state: str  # good; note (worth knowing, nothing lost); bad
    what: str  # file, counts, ledger, sample or journal
    text: str


def findings(path: str) -> Iterator[Finding]:
    """Yield what is found of a model, one thing after the other; raises nothing of ours."""
    try:
        snapshot, _ = read_model(path)
        classifier = classifier_of(path, snapshot.state)
    except NbspamError as error:
        yield Finding(BAD, "file", str(error))
        return
    yield Finding(GOOD, "file", f"{snapshot.identity.length:,} bytes, checksum right")
    if not isinstance(classifier, Classifier):
        kind = snapshot.state["kind"]
        yield Finding(GOOD, "model", f"of kind {kind}: its parts fit together; no journal")
        return
    yield _counts(classifier)
    if classifier.memory is None:
        yield Finding(
            NOTE, "ledger", "none: of --unlabelled, or an older version; it cannot learn on"
        )
    else:
        yield _ledger(classifier)
        yield _sample(classifier)
    try:
        yield _journal(path, snapshot.identity, classifier)
    except NbspamError as error:
        yield Finding(BAD, "journal", str(error))


def _verdict(what: str, text: str, **claims: bool) -> Finding:
    """Return what a finding is: bad if a claim does not hold."""
    broken = [name.replace("_", " ") for name, holds in claims.items() if not holds]
    return (
        Finding(BAD, what, f"{text}; not so: {', '.join(broken)}")
        if broken
        else Finding(GOOD, what, text)
    )


def _counts(classifier: Classifier) -> Finding:
    table, vocabulary = classifier.table, classifier.table.vocabulary
    rows = np.asarray(table.feature_count, np.float64)
    presence = classifier.settings.weighting == PRESENCE
    return _verdict(
        "counts",
        f"{table.n_docs:,} messages, {len(vocabulary):,} tokens",
        keys_ascend=bool((vocabulary.keys[1:] > vocabulary.keys[:-1]).all()),
        texts_follow_each_other=bool((np.diff(vocabulary.offsets.astype(np.int64)) >= 0).all())
        and int(vocabulary.offsets[-1]) == len(vocabulary.blob),
        counts_are_finite_and_not_negative=bool((np.isfinite(rows) & (rows >= 0)).all()),
        no_token_is_in_more_messages_than_there_are=not presence
        or bool((rows <= table.class_count).all()),
        evidence_is_finite=_is_finite(classifier),
    )


def _is_finite(classifier: Classifier) -> bool:
    """Return whether what was learned of evidence is finite; plain tables may not be."""
    from nbspam.classifier.blending import Blend

    fit = classifier.fit
    learned: tuple[Any, ...] = ()
    if isinstance(fit, Combination):
        learned = fit.worth, fit.correction
    elif isinstance(fit, Blend):
        learned = fit.worth, fit.sums.total, fit.sums.size
    return all(bool(np.isfinite(numbers).all()) for numbers in learned)


def _ledger(classifier: Classifier) -> Finding:
    assert classifier.memory is not None
    ledger, n_classes = classifier.memory.ledger, len(classifier.classes)
    in_range = bool((ledger.labels < n_classes).all())
    counted = np.bincount(ledger.labels, minlength=n_classes)
    finding = _verdict(
        "ledger",
        f"{len(ledger.digests):,} messages",
        digests_ascend=bool((ledger.digests[1:] > ledger.digests[:-1]).all()),
        classes_exist=in_range,
    )
    if finding.state == GOOD and (counted != classifier.table.class_count).any():
        text = "counts differ from it, as they do once they have faded or came from elsewhere"
        return Finding(NOTE, "ledger", f"{finding.text}; {text}")
    return finding


def _sample(classifier: Classifier) -> Finding:
    assert classifier.memory is not None
    ledger, sample = classifier.memory.ledger, classifier.memory.sample
    return _verdict(
        "sample",
        f"{len(sample.digests):,} messages kept to learn from",
        digests_ascend=bool((sample.digests[1:] > sample.digests[:-1]).all()),
        the_ledger_has_them=bool((ledger.find(sample.digests) >= 0).all()),
        messages_follow_each_other=bool((np.diff(sample.documents.offsets) >= 0).all()),
        tokens_exist=bool((sample.documents.columns < len(classifier.table.vocabulary)).all()),
    )


def _journal(path: str, owner: Identity, classifier: Classifier) -> Finding:
    journal = read_journal(path)
    name = journal_path(path)
    if journal.owner is None:
        return Finding(GOOD, "journal", "none" if not journal.size else "a beginning, cut off")
    if journal.owner == NOBODY:
        return Finding(NOTE, "journal", f"{name} is none; the next update moves it out of the way")
    if journal.owner != owner:
        text = f"{name} is of another model, with {len(journal.changes):,} changes; not read"
        return Finding(NOTE, "journal", text)
    text = f"{len(journal.changes):,} changes, {journal.end:,} bytes"
    if journal.changes:
        change = signed_table(
            journal.changes, classifier.table.vocabulary, classifier.settings.weighting
        )
        text += f", {int(change.class_count.sum()):+,} messages"
    if journal.end < journal.size:
        lost = journal.size - journal.end
        text += f"; {lost:,} bytes behind them were cut off in writing, and never acknowledged"
        return Finding(NOTE, "journal", text)
    return Finding(GOOD, "journal", text)
