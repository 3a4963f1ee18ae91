"""Laws of learning on: how messages are cut into calls, readers, failures, evaluation."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from nbspam.classifier.combining import Combination
from nbspam.classifier.learner import MAX_CHANGES, Growth
from nbspam.classifier.training import train
from nbspam.counts.corpus import read_corpus
from nbspam.counts.counting import count_items
from nbspam.decision import Cutoffs
from nbspam.errors import ModelFileError
from nbspam.evaluation.online import progress
from nbspam.settings import MANY, PLAIN, PRESETS
from nbspam.sources.items import Item
from nbspam.store import model as store_model
from nbspam.store import open as store_open
from nbspam.store.check import GOOD, findings
from nbspam.store.format import journal as journal_format
from nbspam.store.format.journal import journal_path, read_journal
from nbspam.store.model import LivingModel, StoredModel, keep_cutoffs
from nbspam.store.open import load, save
from support import examples, write_mails

pytestmark = pytest.mark.usefixtures("quick_disk")
DAY = 20_000
SETTINGS = {"mail": PRESETS["mail"], "plain": PLAIN["mail"], "many": MANY["mail"]}
NAMES = {"mail": ["ham", "spam"], "plain": ["ham", "spam"], "many": ["ham", "spam", "work"]}
COMMON = b"the and of to in is it that on with".split()
OWN = {
    "ham": b"lunch friday meeting garden report aunt".split(),
    "spam": b"pills cheap offer casino winner loan".split(),
    "work": b"invoice deadline server release budget minutes".split(),
    "zoo": b"giraffe zebra lion cage keeper ticket".split(),
}
few = hypothesis_settings(
    examples(12),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=set(Phase) - {Phase.shrink, Phase.explain},
)


def item(n, label, delivery=0, astray=0.1):
    """Return message n: words of its class, some of another's, and one of its own.

    Its copy by another delivery has another word, and is the same message.  The first fifty
    share words that no other message has.
    """
    rng = np.random.default_rng(n)
    names = list(OWN)
    pool = [
        OWN[names[rng.integers(4)] if rng.random() < astray else label][rng.integers(6)]
        for _ in range(5)
    ]
    words = b" ".join([*pool, *(COMMON[k] for k in rng.integers(10, size=6)), b"own%d" % n])
    words += b" new%d" % (n % 4) if n < 50 else b""
    head = b"Received: by host%d\nMessage-ID: <%d@x>\nSubject: %s" % (delivery, n, pool[0])
    return Item(f"m{n}", label, head + b"\n\n" + words + b"\n")


def items_of(names, numbers):
    return [item(n, names[n % len(names)]) for n in numbers]


def train_on(items, path, kind="mail"):
    settings = SETTINGS[kind]
    save(str(path), train(count_items(items, settings), settings, DAY))


def joint_of(classifier, items):
    return np.array([answer.joint for answer in classifier.answers(items)])


def on_disk(path):
    """Return the bytes of a model's file, and of its journal if there is one."""
    journal = Path(journal_path(str(path)))
    return Path(path).read_bytes(), journal.read_bytes() if journal.exists() else b""


# ---- calls ----

DO = st.sampled_from(["learn", "learn", "learn", "relabel", "unlearn"])
STEPS = st.lists(st.tuples(DO, st.integers(0, 30), st.integers(0, 2)), min_size=1, max_size=12)


def runs_of(steps, cuts):
    """Return the calls that steps make, one for each run of the same kind, cut further."""
    runs = []
    for number, (do, n, k) in enumerate(steps):
        if not runs or runs[-1][0] != do or number in cuts:
            runs.append((do, []))
        runs[-1][1].append((n, k))
    return runs


def call(model, do, run, names, jobs=1):
    """Call a model's method for one run of steps; a relabelling run needs one class."""
    if do == "unlearn":
        return model.unlearn([item(n, names[0]) for n, _ in run], day=DAY, jobs=jobs)
    items = [item(n, names[k % len(names)], delivery=k) for n, k in run]
    if do == "relabel":
        return model.relabel(items, names[0], day=DAY, jobs=jobs)
    return model.learn(items, day=DAY, jobs=jobs)


@pytest.mark.parametrize("kind", SETTINGS)
@given(steps=STEPS, cuts=st.sets(st.integers(1, 12)), start=st.sampled_from([12, 60]))
@few
def test_however_changes_are_cut_into_calls_the_disk_holds_the_same(
    tmp_path, kind, steps, cuts, start
):
    """Messages 0 to 30 are changed, of which the model knows every third before."""
    names = NAMES[kind]
    paths = [tmp_path / name for name in ("all", "cut", "single")]
    known = [*items_of(names, range(0, 30, 3)), *items_of(names, range(100, 100 + start))]
    for path, where in zip(paths, (set(), cuts, set(range(99))), strict=True):
        train_on(known, path, kind)
        for do, run in runs_of(steps, where):
            call(StoredModel(str(path)), do, run, names)

    assert on_disk(paths[0]) == on_disk(paths[1]) == on_disk(paths[2])


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_hundred_messages_in_one_call_are_a_hundred_calls(tmp_path, kind):
    """Fits are due among them, and what is learned behind the last one stands in the journal."""
    names = NAMES[kind]
    items = [item(n, names[n % len(names)], astray=0.3) for n in range(101)]
    paths = [tmp_path / name for name in ("all", "parallel", "tens", "single")]
    for path in paths:
        train_on(items_of(names, range(200, 300)), path, kind)
    StoredModel(str(paths[0])).learn(items, day=DAY)
    StoredModel(str(paths[1])).learn(iter(items), day=DAY, jobs=2)
    for start in range(0, 101, 10):
        StoredModel(str(paths[2])).learn(items[start : start + 10], day=DAY)
    held = StoredModel(str(paths[3]))
    for each in items:
        held.learn([each], day=DAY)

    changes = read_journal(str(paths[0])).changes
    assert changes
    assert kind != "mail" or any(change.step for change in changes)
    assert len({on_disk(path) for path in paths}) == 1
