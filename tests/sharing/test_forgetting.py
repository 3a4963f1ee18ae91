"""What hosts forget is decided by the order of the log alone, so exports stay equal."""

import random

import numpy as np
import pytest

from nbspam.classifier import training
from nbspam.counts import ledger
from nbspam.mail.digest import digest_of
from nbspam.sharing import sharer
from nbspam.sharing.sharer import join_log, snapshot
from nbspam.sources.items import Item
from nbspam.store.merging import merge
from nbspam.store.text import model_lines, model_of_lines
from nbspam.store.upkeep import PruningRule, prune_model
from shared_logs import DAY, Host, MemoryLog, act, message, quiet

N_MESSAGES, N_ACTS = 24, 90


def some_act(rng):
    """Return something that a host may do."""
    what = rng.choice(["teach"] * 8 + ["send", "receive", "receive", "compact", "restart", "kill"])
    if what == "teach":
        n, label = rng.randrange(N_MESSAGES), rng.choice(["ham", "ham", "spam", "spam", None])
        copy = rng.randrange(3) + 3 * rng.randrange(2)
        return what, n, copy, label, rng.randrange(3), rng.random() < 0.3
    if what == "kill":
        what = rng.choice(["killed", "lost"])
        if rng.random() < 0.5:
            return what, rng.randrange(N_MESSAGES), 0, "ham", 1, True
    return (what,)


@pytest.mark.parametrize("seed", [*range(24), 104])
def test_hosts_that_forget_have_equal_exports(tmp_path, monkeypatch, seed):
    rng = random.Random(seed)
    monkeypatch.setattr(ledger, "MAX_SAMPLE", rng.choice([2, 4, 8]))
    monkeypatch.setattr(sharer, "_AT_ONCE", rng.choice([3, 500]))  # lessons in a group
    if rng.random() < 0.5:
        monkeypatch.setattr(training, "REFIT_SHARE", 1e9)  # few fits
    log = MemoryLog()
    hosts = [Host(tmp_path / f"host{k}", "model", log) for k in range(3)]
    for number in range(N_ACTS):
        act(rng.choice(hosts), *some_act(rng))
        if number == N_ACTS // 2:  # a host joins in the middle
            snapshot(hosts[0].sharer, str(tmp_path / "start"), [])
            (tmp_path / "joined").mkdir()
            join_log(str(tmp_path / "start"), str(tmp_path / "joined" / "model"), None)
            hosts.append(Host(tmp_path / "joined", "model", log))
    quiet(hosts)
    hosts.append(Host(tmp_path / "late", "model", log))
    quiet(hosts)
    exports = [host.export() for host in hosts]

    assert not any(host.sharer.outbox.size() for host in hosts)
    assert len(set(exports)) == 1
    assert len({host.sharer.digest() for host in hosts}) == 1


def is_paid(model):
    """Return whether the word of a message learned as ham counts for the moved one's spam."""
    (line,) = (line for line in model_lines(model) if b'"copy1"' in line)
    return b'"count": {"spam": 1}, "documents": 1' in line


def test_a_model_that_owes_is_dumped_loaded_merged_pruned_and_paid(host, monkeypatch, tmp_path):
    monkeypatch.setattr(ledger, "MAX_SAMPLE", 2)
    for n in range(20):
        host.teach(message(n), "ham")
        host.sharer.exchange()
    kept = host.opened("").whole().memory.sample.digests.tolist()
    forgotten = next(n for n in range(20) if digest_of(message(n)) not in kept)
    # It owes: a forgotten message is moved by a copy with the word copy1.
    host.teach(message(forgotten, copy=1), "spam")
    whole = host.opened("").whole()
    lines = list(model_lines(whole))
    assert [-1, 1] in whole.memory.owed.feature_count.tolist()
    assert b'"copy1"' not in b"".join(lines)
    assert list(model_lines(model_of_lines(lines, "dump"))) == lines

    host.model.compact()
    owed = host.opened("").whole().memory.owed
    other = Host(tmp_path / "other", "model", MemoryLog())
    other.teach(message(20, copy=1), "ham")
    assert is_paid(merge([host.path, other.path], DAY).classifier)

    other.model.unlearn([Item("-", None, message(20, copy=1))], day=DAY)
    other.teach(message(21), "ham")
    both = merge([host.path, other.path], DAY).classifier
    assert [-1, 1] in both.memory.owed.feature_count.tolist()

    prune_model(host.path, PruningRule(min_df=2), DAY)
    assert all(map(np.array_equal, owed, host.opened("").whole().memory.owed))
    host.teach(message(20, copy=1), "ham")
    assert is_paid(host.opened("").whole())


def test_a_merged_model_owes_counts_of_a_class_without_messages(tmp_path, monkeypatch):
    monkeypatch.setattr(ledger, "MAX_SAMPLE", 2)
    host, other = (Host(tmp_path / name, "model", MemoryLog()) for name in ("host", "other"))
    for n in range(20):
        host.teach(message(n), "ham")
        host.sharer.exchange()
    host.model.compact()
    bits = host.opened("").whole().memory.sample.bits
    new = next(n for n in range(20, 60) if digest_of(message(n)) & ((1 << bits) - 1))
    host.teach(message(new, copy=1), "spam")
    host.teach(message(new, copy=2), "ham")
    other.teach(message(60), "ham")
    merged = merge([host.path, other.path], DAY).classifier
    host.teach(message(60), "ham")

    assert [0, 1] in merged.memory.owed.feature_count.tolist()
    assert list(model_lines(merged)) == list(model_lines(host.opened("").whole()))
