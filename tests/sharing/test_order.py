"""Hosts that share a log have the same model, to the byte, whatever came in which order."""

import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from nbspam.classifier import training
from nbspam.counts import ledger
from nbspam.counts.ledger import NOT_FILED, FiledMessage
from nbspam.errors import SharedLogError
from nbspam.settings import PRESETS
from nbspam.sharing.logs import ForeignRecordError, decode_lesson, encode_lesson
from nbspam.sharing.outbox import Outbox
from nbspam.sources.items import Item
from nbspam.store.journal import encode_record
from nbspam.store.model import StoredModel
from nbspam.store.open import save_classifier
from shared_logs import (
    STEPS,
    Host,
    KilledError,
    MemoryLog,
    exports_are_equal,
    killed,
    message,
    quiet,
)
from support import examples


def teach(host, n=0, *, copy=0, label="ham", day=0, told=False):
    return host, ("teach", n, copy, label, day, told)


SENT, READ = ("send",), ("receive",)
CASES = {
    "two lessons wait when another copy arrives": [
        *(teach(1, label="spam"), teach(0, copy=1, label="spam"), teach(1))
    ],
    "a clock is behind": [teach(0, 1, label="spam", day=2), teach(0, 2)],
    "another copy is first in the log": [teach(2, copy=1), teach(1), (1, SENT), (2, READ)],
    "another copy arrives, an older one, while a lesson waits": [
        *(teach(0, label="spam"), (0, SENT), teach(1, copy=1, label="spam", day=-1), (1, READ))
    ],
    "a lesson about another copy waits": [
        *(teach(0, n, copy=n % 2, told=True) for n in (7, 13, 61)),
        *(teach(0, 1, told=True), teach(1, 1, copy=1, label="spam", told=True)),
        *((0, SENT), (1, READ)),
    ],
    "a person has told it elsewhere": [teach(1, told=True), teach(0), (1, SENT), (0, READ)],
    "a person has told it elsewhere, and it is moved here": [
        *(teach(0, told=True), (0, SENT), teach(2, label="spam"), (2, READ))
    ],
    "two copies of one host follow another message": [
        *(teach(0, 4, day=-1), teach(1, 1), teach(0, 1, copy=1))
    ],
    "it is moved here and taken back elsewhere, where others share its words": [
        *(teach(0, n, told=True) for n in (1, 7, 13, 61)),
        *((0, SENT), (1, READ), teach(1, 1, label="spam", day=1, told=True)),
        *(teach(0, 1, label=None, day=1, told=True), (0, SENT), (1, READ)),
    ],
    "another copy waits, which has a word of the log": [
        *(teach(0, 2, copy=1, told=True), (0, SENT), (0, READ), teach(0, 1, day=3, told=True)),
        *(teach(1, 1, copy=1, day=3, told=True), (0, SENT)),
    ],
    "it was taken back before it was sent": [
        *(teach(0), (0, SENT), teach(0, 1), teach(2, day=1), teach(2, label=None))
    ],
}


@pytest.mark.parametrize("acts", CASES.values(), ids=CASES)
def test_exports_are_equal_when(tmp_path, acts):
    exports_are_equal(tmp_path, acts)


@pytest.mark.parametrize(
    ("labels", "is_told"),
    [(["ham", "ham"], True), (["ham", "spam"], False), (["spam", "ham", "ham"], True)],
)
def test_what_a_person_has_told_stays_told_until_it_is_moved(tmp_path, labels, is_told):
    log = MemoryLog()
    hosts = [Host(tmp_path / f"host{k}", "model", log) for k in range(len(labels))]
    hosts[-2].teach(message(1), labels[-2], told=True)
    for host, label in zip(hosts, labels, strict=True):  # nobody has read of another's lesson
        if host is not hosts[-2]:
            host.teach(message(1), label, told=False)
    for host in hosts:
        host.sharer.send()
    quiet(hosts)
    filed = {host.opened("").filed(message(1)) for host in hosts}
    assert filed == {FiledMessage(labels[-1], is_told)}


def test_only_lessons_of_another_host_that_change_something_are_written(host, monkeypatch):
    monkeypatch.setattr(training, "REFIT_SHARE", 1e9)  # changes go to the journal
    host.teach(message(1), "ham")
    size = host.opened("").size()
    host.sharer.exchange()  # the lesson comes back as it was learned
    lesson = decode_lesson(host.log.records[0])

    def share(origin, change):
        host.log.append([encode_lesson((origin, *lesson[1:5]), encode_record(change))])
        host.sharer.exchange()

    share("another", lesson.change)
    assert host.sharer.outbox.place().n_read == 2
    assert host.opened("").size() == size
    share("a third", lesson.change._replace(after=None, told=True))
    assert host.opened("").filed(message(1)) == NOT_FILED


def test_a_lesson_of_a_host_that_was_killed_before_it_learned_it_is_learned(hosts, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(StoredModel, "_keep", killed)
        with pytest.raises(KilledError):
            hosts[0].teach(message(1), "ham")
    hosts[0].start()
    assert hosts[0].model.filed(message(1)).label is None
    quiet(hosts)
    assert {host.opened("").filed(message(1)).label for host in hosts} == {"ham"}


def test_a_lesson_that_a_crash_of_the_machine_took_from_the_journal_is_learned(
    host, tmp_path, monkeypatch
):
    monkeypatch.setattr(training, "REFIT_SHARE", 1e9)  # changes go to the journal
    journal = tmp_path / "host" / "model.journal"
    for n in range(2):  # the first one makes the model, the second one its journal
        host.teach(message(n), "ham")
    before = journal.read_bytes()
    host.teach(message(2), "ham")
    journal.write_bytes(before)
    host.start()
    assert host.sharer.outbox._base.execute("PRAGMA fullfsync").fetchone() == (1,)  # for a Mac
    assert host.model.filed(message(2)) == NOT_FILED
    host.sharer.exchange()
    assert host.opened("").filed(message(2)) == FiledMessage("ham", True)

    # A lesson leaves the outbox when the journal is on disk.
    calls, note_read = [], Outbox.note_read
    monkeypatch.setattr(os, "fsync", lambda file: calls.append(os.fstat(file).st_ino))
    monkeypatch.setattr(
        Outbox, "note_read", lambda *values: (calls.append("note_read"), note_read(*values))
    )
    host.teach(message(3), "ham")  # it waits for the disk in the outbox only
    assert calls == []
    host.sharer.exchange()
    assert calls == [journal.stat().st_ino, "note_read"]


def test_a_record_that_no_host_writes_is_refused_and_passed_over(host):
    host.teach(message(1), "ham")
    host.sharer.exchange()
    lesson = decode_lesson(host.log.records[0])
    change, new = lesson.change, lesson.change.new.packed()
    document = change.document

    def decoded(change):
        return decode_lesson(encode_lesson(lesson[:5], encode_record(change)))

    def with_last_token_of(size):
        added = size - int(new.offsets[-1] - new.offsets[-2])
        blob, offsets = np.append(new.blob, np.full(added, 120, np.uint8)), new.offsets.copy()
        offsets[-1] += added
        return {"new": replace(new, blob=blob, offsets=offsets)}

    long_token = with_last_token_of(1 << 16)
    assert len(decoded(change._replace(**long_token)).change.new) == len(new)
    assert decoded(change._replace(before="a\x1bb")).change.before == "a\x1bb"  # as of a folder
    counts = np.array([0] + [1] * (len(new) - 1))
    for wrong, words in (
        ({"after": ""}, "a class has no name"),
        ({"after": "x" * 256}, "a class has no name"),
        ({"new": new.take(np.arange(len(new) - 1))}, "a token has no text"),
        ({"document": document._replace(tokens=document.tokens[::-1])}, "out of order"),
        ({"new": replace(new, groups=new.groups ^ 1)}, "a token is of another group"),
        (with_last_token_of((1 << 16) + 1), "a token is too long, or never occurs"),
        ({"document": document._replace(counts=counts)}, "a token is too long, or never occurs"),
    ):
        with pytest.raises(ForeignRecordError, match=words):
            decoded(change._replace(**wrong))

    # Nor does one that the outbox could not note keep a host from reading on.
    head = lesson[:5]
    body = host.log.records[0].partition(b"\n")[2][:-4]
    strange = ("strange", 1 << 63, ""), ("\ud800", 9, ""), ("strange", 9, "\ud800")
    for n, (origin, number, user) in enumerate(strange):
        host.log.append([encode_lesson((origin, number, head[2], user, head[4]), body)])
        host.teach(message(2 + n), "ham")
        host.sharer.exchange()
        place = host.sharer.outbox.place()
        assert (place.skipped, place.n_read) == (n + 1, 2 * n + 3)


def test_a_class_whose_name_no_host_takes_is_refused_before_it_is_learned(tmp_path):
    names = ["x" * 255, "x" * 256]
    known = [Item("-", name, message(n)) for n, name in enumerate(names)]
    (tmp_path / "one").mkdir()
    model = training.learn_items(known, PRESETS["mail"]).classifier
    save_classifier(str(tmp_path / "one" / "a"), model)
    host = Host(tmp_path / "one", "a", MemoryLog())
    host.teach(message(2), names[0])
    with pytest.raises(SharedLogError, match=r"^x{40}…: no host takes so long a class; give 255"):
        host.teach(message(3), names[1])
    assert host.model.filed(message(3)) == NOT_FILED
    host.sharer.exchange()
    assert host.opened("").filed(message(2)).label == names[0]


def test_messages_whose_tokens_are_not_at_hand_are_moved(hosts, monkeypatch):
    monkeypatch.setattr(ledger, "MAX_SAMPLE", 2)
    for n in range(20):
        hosts[0].teach(message(n), "ham", told=n % 2 == 0)
    quiet(hosts)
    for host in hosts:
        host.model.compact()
    for n in range(20):
        hosts[0].teach(message(n), "spam", told=n % 3 == 0)
        if n % 4:
            hosts[1].teach(message(n), None if n % 5 == 0 else "spam", told=False)
    hosts[0].sharer.send()
    hosts[1].sharer.receive()
    quiet(hosts)
    (export,) = {host.export() for host in hosts}
    (words,) = (line for line in export.splitlines() if b'"header:subject"' in line)
    assert b'"count": {"spam": 17}, "documents": 17' in words  # 5, 10 and 15 were un-learned


@pytest.mark.parametrize("fitted", [[], [0], [0, 1]])
@pytest.mark.parametrize("copy", [0, 1])
def test_a_forgotten_message_is_moved_alike_whoever_was_fitted(hosts, monkeypatch, copy, fitted):
    monkeypatch.setattr(ledger, "MAX_SAMPLE", 2)
    monkeypatch.setattr(training, "REFIT_SHARE", 1e9)  # no other fits than these
    for n in range(20):
        hosts[0].teach(message(n), "ham")
    quiet(hosts)
    for k in fitted:
        hosts[k].model.compact()
    hosts[0].teach(message(3, copy), "spam")
    quiet(hosts)
    assert len({host.export() for host in hosts}) == 1


def test_a_model_that_was_shared_forgets_by_its_size_again(host, monkeypatch):
    monkeypatch.setattr(ledger, "MAX_SAMPLE", 2)
    for n in range(8):
        host.teach(message(n), "ham")
    sample = host.opened("").whole().memory.sample
    assert (sample.bits, len(sample.digests)) == (0, 8)  # the log has none of these messages
    host.sharer.exchange()
    assert len(host.opened("").whole().memory.sample.digests) <= 2
    host.model.outlet = None
    for n in range(8, 30):
        host.teach(message(n), "spam")
    host.model.compact()

    assert len(host.opened("").whole().memory.sample.digests) <= 2


@pytest.mark.parametrize("share", [training.REFIT_SHARE, 1e9])  # at which a new file is due
@settings(
    examples(40), derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(acts=STEPS)
def test_after_quiet_all_exports_are_equal(tmp_path, share, acts):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "REFIT_SHARE", share)
        exports_are_equal(tmp_path, acts)
