"""Learning on is learning at once: calls, readers, failures, evaluation."""

import os
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.counts.corpus import read_corpus
from nbspam.decision import Cutoffs
from nbspam.evaluation.online import progress
from nbspam.settings import MANY, PLAIN, PRESETS
from nbspam.sources.items import Item
from nbspam.store import model as store_model
from nbspam.store.journal import journal_path, read_journal
from nbspam.store.model import StoredModel
from nbspam.store.open import keep_cutoffs, load_classifier, save_classifier
from stored import DAY, bytes_of, few, no_room, train_on
from support import words_of

SETTINGS = {"mail": PRESETS["mail"], "plain": PLAIN["mail"], "many": MANY["mail"]}
BOTH = ["ham", "spam"]
NAMES = {"mail": BOTH, "plain": BOTH, "many": [*BOTH, "work"]}
COMMON = b"the and of to in is it that on with".split()
OWN = {
    "ham": b"lunch friday meeting garden report aunt".split(),
    "spam": b"pills cheap offer casino winner loan".split(),
    "work": b"invoice deadline server release budget minutes".split(),
    "zoo": b"giraffe zebra lion cage keeper ticket".split(),
}


def item(n, label, topic=None, delivery=0, astray=0.1):
    """Return message n: words of its topic, its class's, some of another, and one of its own.

    Its copy by another delivery has another subject, and is the same message.  The first fifty
    share words that no other message has.
    """
    rng = np.random.default_rng(n)
    names = list(OWN)
    pool = [
        OWN[names[rng.integers(4)] if rng.random() < astray else topic or label][rng.integers(6)]
        for _ in range(5)
    ]
    words = b" ".join([*pool, *(COMMON[k] for k in rng.integers(10, size=6)), b"own%d" % n])
    words += b" new%d" % (n % 4) if n < 50 else b""
    subject = b" ".join(OWN[names[delivery % 4]][:4]) if delivery else pool[0]
    head = b"Received: by host%d\nMessage-ID: <%d@x>\nSubject: %s" % (delivery, n, subject)
    return Item(f"m{n}", label, head + b"\n\n" + words + b"\n")


def items_of(names, numbers, **how):
    return [item(n, names[n % len(names)], **how) for n in numbers]


@pytest.fixture(scope="module")
def known_bytes(tmp_path_factory):
    """Return the bytes of a model of every third of the messages 0 to 30 and of others.

    It is trained once.  kind: of SETTINGS; n: the number of other messages.
    """
    path = tmp_path_factory.mktemp("known") / "m.nbspam"
    numbers = cache(lambda n: [*range(0, 30, 3), *range(100, 100 + n)])
    return cache(lambda kind, n: train_on(items_of(NAMES[kind], numbers(n)), path, SETTINGS[kind]))


@pytest.fixture
def started(tmp_path, known_bytes):
    """Write such a model without a journal: (kind, n) -> path."""

    def call(kind, n):
        path = tmp_path / "m.nbspam"
        Path(journal_path(str(path))).unlink(missing_ok=True)  # of the example before
        path.write_bytes(known_bytes(kind, n))
        return str(path)

    return call


def learn(path, items):
    return StoredModel(str(path)).learn(items, day=DAY, new_class=True)


def joint_of(classifier, items):
    return np.array([answer.joint for answer in classifier.answers(items)])


def on_disk(path):
    """Return the bytes of a model's file, and of its journal if there is one."""
    journal = Path(journal_path(str(path)))
    return Path(path).read_bytes(), journal.read_bytes() if journal.exists() else b""


# ---- calls and readers ----

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


def call(model, do, run, names):
    """Call a model's method for one run of steps; a relabelling run needs one class."""
    if do == "unlearn":
        items = [item(n, None, names[n % len(names)]) for n, _ in run]
        return model.unlearn(items, day=DAY)
    items = [item(n, names[k % len(names)], names[n % len(names)], delivery=k) for n, k in run]
    if do == "relabel":
        return model.relabel(items, names[0], day=DAY)
    return model.learn(items, day=DAY, new_class=True)


@pytest.mark.parametrize("kind", SETTINGS)
@given(steps=STEPS, cuts=st.sets(st.integers(1, 12)), start=st.sampled_from([12, 120, 240]))
@few
def test_however_changes_are_cut_into_calls_disk_and_readers_have_what_memory_has(
    started, kind, steps, cuts, start
):
    """Messages 0 to 30 are changed, of which the model knows every third before."""
    found, names, probe = [], NAMES[kind], items_of(NAMES[kind], range(40))
    for where in (set(), cuts, set(range(99))):
        path = started(kind, start)
        in_memory, held = StoredModel.in_memory(load_classifier(path)), StoredModel(path)
        for do, run in runs_of(steps, where):
            call(in_memory, do, run, names)
            call(StoredModel(path), do, run, names)
            if where == cuts:
                expected = joint_of(in_memory.classifier(), probe)
                for each in (load_classifier(path), held.classifier()):
                    assert (joint_of(each, probe) == expected).all()
        found.append(on_disk(path))

    assert found[0] == found[1] == found[2]


def test_a_token_that_vanishes_and_comes_back_keeps_its_text(tmp_path, monkeypatch):
    """The model's file knows it, so that the journal does not spell it out."""
    path = tmp_path / "m.nbspam"
    train_on([item(1, "ham"), *items_of(BOTH, range(100, 110))], path)
    monkeypatch.setattr(store_model.journals, "write_model", no_room)
    StoredModel(str(path)).unlearn([item(1, "ham")], day=DAY)
    for n in range(150, 160):
        learn(path, [item(n, "spam")])
    again = item(9, "spam")  # has new1, as item 1 has
    learn(path, [again._replace(data=again.data + b" own1")])

    texts = words_of(load_classifier(str(path)).table)
    assert texts.count("own1") == texts.count("new1") == 1
    assert "" not in texts


# ---- learning on and training at once ----


def test_three_of_each_and_a_hundred_more_answer_as_all_trained_at_once(tmp_path):
    paths = tmp_path / "on.nbspam", tmp_path / "once.nbspam"
    few_of_each = items_of(BOTH, range(6))
    more = [item(n, "spam") for n in range(1000, 1100)]
    train_on(few_of_each, paths[0])
    held = StoredModel(str(paths[0]))
    for each in more:
        held.learn([each], day=DAY, new_class=True)
    train_on([*few_of_each, *more], paths[1])
    probe = items_of(BOTH, range(2000, 2600))
    on, once = ([v.label for v in load_classifier(str(path)).classify(probe)] for path in paths)

    assert os.path.exists(journal_path(str(paths[0])))
    assert sum(a != b for a, b in zip(on, once, strict=True)) <= 6


def stream_of(kind, n):
    """Return messages of one class at first, then of all; some come again as another class."""
    rng = np.random.default_rng(1)
    names, topics, items = NAMES[kind], [], []
    for number in range(n):
        again = number > 20 and rng.random() < 0.2
        which = int(rng.integers(number)) if again else number
        label = names[0] if number < 3 else names[rng.integers(len(names))]
        if kind == "many" and number < n // 2 and label == names[2]:
            label = names[1]
        topics.append(topics[which] if again else label)
        delivery = 1 + number % 2 if again else 0
        items.append(item(which, label, topics[which], delivery, astray=0.3))
    return items


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mail", "many"])
def test_online_evaluation_answers_as_a_stored_model_does(tmp_path, kind):
    """Of the second kind a third class appears on the way."""
    path = tmp_path / "m.nbspam"
    items = stream_of(kind, 100)
    data, _ = read_corpus(items, SETTINGS[kind])
    judged, _ = progress(data, SETTINGS[kind])
    n_first = next(n for n, each in enumerate(items, 1) if each.label != items[0].label)
    assert (judged[:n_first] == 0).all()
    train_on(items[:n_first], path, SETTINGS[kind])
    held, had_journal = StoredModel(str(path)), []
    for number, each in enumerate(items[n_first:], n_first):
        had_journal.append(os.path.exists(journal_path(str(path))))
        classifier = held.classifier()
        places = [data.classes.index(name) for name in classifier.classes]
        ours, theirs = judged[number, places], joint_of(classifier, [each])[0]
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9, err_msg=str(number))
        held.learn([each], day=DAY, new_class=True)
    # Both models that were just fitted and models that learned on since were compared.
    assert 10 < sum(had_journal) < len(had_journal) - 20


def test_a_stream_whose_only_ham_becomes_spam_starts_from_nothing():
    labels = ["ham", "spam", "spam", "ham", "spam"]
    items = [item(n, label, "ham") for n, label in zip([0, 1, 0, 2, 3], labels, strict=True)]
    data, _ = read_corpus(items, SETTINGS["mail"])
    fresh, _ = read_corpus([items[2], items[1], *items[3:]], SETTINGS["mail"])
    joint, _ = progress(data, SETTINGS["mail"])

    assert (joint[3] == 0).all()
    assert (joint[4] == progress(fresh, SETTINGS["mail"])[0][3]).all()


# ---- failures ----


@pytest.mark.parametrize("kind", SETTINGS)
@pytest.mark.parametrize("new_class", [False, True])
def test_a_disk_that_takes_no_model_loses_nothing_and_readers_fit_where_it_was_due(
    tmp_path, monkeypatch, kind, new_class
):
    names = [*NAMES[kind], "zoo"] if new_class else NAMES[kind]
    full, free = str(tmp_path / "full"), str(tmp_path / "free")
    for path in (full, free):
        before = train_on(items_of(NAMES[kind], range(100, 190)), path, SETTINGS[kind])
    calls = [items_of(names, some) for some in (range(5), range(5, 33), range(33, 35))]
    notes = []
    for path in (full, free):
        with monkeypatch.context() as patched:
            if path == full:
                patched.setattr(store_model.journals, "write_model", no_room)
            for items in calls:
                outcome = learn(path, items)
                assert outcome.learned == len(items)
                notes.append(outcome.notes)

    assert any("the journal is kept as it is" in note for each in notes[:3] for note in each)
    assert Path(full).read_bytes() == before
    assert len(read_journal(full).changes) == 35
    probe = items_of(names, range(60))
    ours, theirs = (joint_of(load_classifier(path), probe) for path in (full, free))
    assert (ours == theirs).all()

    for path in (full, free):
        learn(path, items_of(names, range(35, 60)))
    assert on_disk(full) == on_disk(free)


@pytest.fixture
def with_journal(tmp_path):
    """The path of a model of 180 messages, and of five more in its journal."""
    path = str(tmp_path / "m.nbspam")
    train_on(items_of(BOTH, range(100, 280)), path)
    learn(path, items_of(BOTH, range(5)))
    assert os.path.exists(journal_path(path))
    return path


def test_keeping_cutoffs_keeps_what_was_learned_and_that_more_can_be(tmp_path, with_journal):
    path, chosen = with_journal, Cutoffs(0.9, 0.1, 9.0, 0.2)
    whole = StoredModel(path).whole()
    keep_cutoffs(path, chosen)

    assert not os.path.exists(journal_path(path))
    expected = bytes_of(replace(whole, cutoffs=chosen), tmp_path / "expected")
    assert on_disk(path)[0] == expected
    held = StoredModel(path)
    assert held.learn(items_of(BOTH, range(5)), day=DAY).already_known == 5
    assert held.learn(items_of(BOTH, range(5, 40)), day=DAY).learned == 35
    assert load_classifier(path).rule == chosen

    save_classifier(path, replace(whole, memory=None))  # as after --vocabulary
    keep_cutoffs(path, chosen)
    assert load_classifier(path).rule == chosen
