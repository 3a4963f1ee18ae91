"""A corpus in memory against training that streams; its folds against scikit-learn's."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.classifier.training import train_classifier
from nbspam.counts.corpus import read_corpus, stratified_folds
from nbspam.counts.counting import count_items
from nbspam.errors import UsageError
from nbspam.settings import LOG_LENGTH, MANY, PRESENCE, PRESETS
from nbspam.sources.items import Item
from support import examples, plain

# Of every message and every text there are two copies.  Those of a message differ on the way it
# came, so that it counts which of them is counted; the second of a text is a text of its own.
WORDS = ["cheap pills now now", "lunch on friday", "cheap lunch lunch lunch", "pills and a train"]
MAILS = [
    b"Message-ID: <%d@x>\nReceived: from host%d\nSubject: %s\n\n%s\n" % (n, copy, text, text)
    for n, text in enumerate(words.encode() for words in WORDS)
    for copy in range(2)
]
TEXTS = [text.encode() for text in WORDS for _ in range(2)]
CLASSES = {PRESENCE: ["ham", "spam"], LOG_LENGTH: ["ham", "news", "spam"]}
# Each is (which of the messages or texts, which class); the last of every class is never learned
# in another one.
CHOSEN = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2)), max_size=14)


def items_of(chosen, kind, classes):
    """Return items of these messages or texts, and one of every class that has no copy."""
    bodies = MAILS if kind == "mail" else TEXTS
    named = [(bodies[n], classes[k % len(classes)]) for n, k in chosen]
    only = b"Message-ID: <of %d>\n\nonly\n" if kind == "mail" else b"only%d"
    named += [(only % k, name) for k, name in enumerate(classes)]
    return [
        Item(f"{number}", label, data, is_text=kind == "text")
        for number, (data, label) in enumerate(named)
    ]


def flat(state):
    """Return the state of a model file with bytes, kind and shape of each array."""
    if isinstance(state, dict):
        return {key: flat(value) for key, value in state.items()}
    return (state.tobytes(), str(state.dtype), state.shape) if hasattr(state, "tobytes") else state


@pytest.mark.parametrize("kind", ["mail", "text"])
@pytest.mark.parametrize("presets", [PRESETS, MANY])
@examples(25)
@given(chosen=CHOSEN, left_out=st.sets(st.integers(0, 13)))
def test_cross_validation_trains_what_training_trains(presets, kind, chosen, left_out):
    settings = presets[kind]
    items = items_of(chosen, kind, CLASSES[settings.weighting])
    data, _ = read_corpus(items, settings)
    rows = [row for row in range(len(items)) if row not in left_out or row >= len(chosen)]
    ours = data.training(np.array(rows), settings.weighting)
    theirs = count_items([items[row] for row in rows], settings)

    assert plain(ours.table) == plain(theirs.table)
    labelled, expected = (
        dict(zip(each.digests.tolist(), each.labels.tolist(), strict=True))
        for each in (ours, theirs)
    )
    assert labelled == expected
    assert (ours.bits, ours.repeated) == (theirs.bits, theirs.repeated)
    one, other = (train_classifier(each, settings).to_state() for each in (ours, theirs))
    assert pickle.dumps(flat(one)) == pickle.dumps(flat(other))


def test_a_message_counts_once_as_the_class_it_came_with_last_and_equal_texts_all_count():
    named = [("spam", MAILS[0]), ("ham", MAILS[1]), ("ham", MAILS[2]), ("spam", MAILS[4])]
    training = trained([Item("", *each) for each in named], "mail")
    n_docs, rows = plain(training.table)
    assert n_docs == {"ham": 2, "spam": 1}
    assert training.repeated == 1
    # Of the two copies the first is counted.
    assert rows["received:host0"] == ({"ham": 2, "spam": 1}, 3)
    assert "received:host1" not in rows

    texts = [Item("", name, b"ok", is_text=True) for name in ("ham", "ham", "spam")]
    n_docs, rows = plain(trained(texts, "text").table)
    assert n_docs == {"ham": 2, "spam": 1}
    assert rows["ok"] == ({"ham": 2, "spam": 1}, 3)


def trained(items, kind):
    return read_corpus(items, PRESETS[kind])[0].training(np.arange(len(items)), PRESENCE)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_corpus_holds_every_item_in_order(jobs):
    items = items_of([(n % 8, n % 2) for n in range(200)], "text", ["ham", "spam"])
    data, skipped = read_corpus(
        [*items, Item("none", None, b"x", is_text=True)], PRESETS["text"], jobs
    )

    assert data.names == tuple(item.name for item in items)
    assert [data.classes[k] for k in data.y] == [item.label for item in items]
    assert [each.name for each in skipped] == ["none"]
    for row, item in enumerate(items):
        one = data.documents.one(row)
        words = {data.vocabulary.text(int(j)) for j in one.tokens}
        assert {word for word in words if ":" not in word} == set(item.data.decode().split())


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.filterwarnings("ignore:The least populated class")
def test_folds_equal_scikit_learn(seed):
    selection = pytest.importorskip("sklearn.model_selection")
    rng = np.random.default_rng(seed)
    y = rng.choice(["spam", "ham", "unsure"], rng.integers(30, 200), p=[0.3, 0.6, 0.1])
    k = int(rng.integers(2, 6))
    folds = stratified_folds(y, k, np.random.RandomState(seed))
    splits = selection.StratifiedKFold(k, shuffle=True, random_state=seed).split(y, y)
    for fold, (_, test) in enumerate(splits):
        assert np.flatnonzero(folds == fold).tolist() == test.tolist()


@given(st.lists(st.integers(0, 3), min_size=2, max_size=60), st.data())
def test_folds_are_balanced_within_one_document(y, data):
    k = data.draw(st.integers(2, len(y)))
    folds = stratified_folds(y, k, np.random.default_rng(0))
    for members in [folds, *(folds[np.array(y) == c] for c in set(y))]:
        sizes = np.bincount(members, minlength=k)
        assert len(sizes) == k
        assert np.ptp(sizes) <= 1


@pytest.mark.parametrize("k", [-1, 0, 1, 4])
def test_impossible_numbers_of_folds_are_refused(k):
    with pytest.raises(UsageError, match="folds of 3 documents; give 2 to 3"):
        stratified_folds([0, 1, 1], k, np.random.default_rng(0))
