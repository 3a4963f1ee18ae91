"""Models and journals with keys of before they had kinds."""

import shutil
import struct
from dataclasses import replace

import numpy as np
import pytest

from nbspam.counts.changes import Change
from nbspam.errors import ModelFileError
from nbspam.sources.items import Item
from nbspam.store.format.journal import journal_path, read_journal
from nbspam.store.format.modelfile import FORMAT, load_state, save_state
from nbspam.store.format.records import FORMAT as JOURNAL_FORMAT
from nbspam.store.format.records import HEADER
from nbspam.store.model import StoredModel
from nbspam.store.oldkeys import with_new_keys_in
from nbspam.store.open import classifier_of, load
from nbspam.tokens.definition import RIDER_BITS, Token, kind_of, reference_key, token_of
from nbspam.tokens.documents import Documents
from nbspam.tokens.vocabulary import Vocabulary, empty_vocabulary, have_kinds
from support import ROOT

pytestmark = pytest.mark.usefixtures("quick_disk")
MODELS = ROOT / "tests" / "evidence" / "models"
NEIGHBOUR = np.uint64(1 << 20)  # of an old key: in a bit that is not a part of the hash any more


@pytest.fixture
def old(tmp_path):
    """Copy a model of format 2 with its journal; return its path."""
    path = str(tmp_path / "model.nbspam")
    for name in ("model.nbspam", "model.nbspam.journal"):
        shutil.copy(MODELS / "format-2" / name, tmp_path / name)
    return path


def formats(path):
    """Return the formats of a model file and of its journal."""
    with open(path, "rb") as model, open(journal_path(path), "rb") as journal:
        return struct.unpack_from("<I", model.read(), 23)[0], HEADER.unpack(
            journal.read(HEADER.size)
        )[1]


def spelt(vocabulary):
    return [vocabulary.text(j).encode() for j in range(len(vocabulary))]


def test_the_keys_of_a_model_of_format_2_are_those_of_its_texts(old):
    assert formats(old) == (2, 2)
    assert not have_kinds(load_state(old)["keys"])
    vocabulary = load(old).table.vocabulary
    keys = [reference_key(token_of(text)) for text in spelt(vocabulary)]

    assert vocabulary.keys.tolist() == keys
    assert len({key >> RIDER_BITS & 15 for key in keys}) > 8


def test_the_next_change_beside_a_model_of_format_2_makes_a_journal_of_today(old, monkeypatch):
    monkeypatch.setattr("nbspam.classifier.learner.Growth.note_all", lambda *_: 0)
    before = StoredModel(old)
    assert before.learn([Item("x", "ham", b"Subject: zebra\n\nzebra\n")], day=20_100).learned == 1

    assert formats(old) == (2, JOURNAL_FORMAT)
    changes = read_journal(old).changes
    assert len(changes) == 5
    assert all(have_kinds(change.document.tokens) for change in changes)
    again = StoredModel(old)
    assert again.whole().table.feature_count.tolist() == (
        before.whole().table.feature_count.tolist()
    )
    assert before.learn([Item("y", "ham", b"Subject: gnu\n\ngnu\n")], day=20_101).learned == 1
    assert len(read_journal(old).changes) == 6


def test_the_next_model_file_is_of_today(old):
    whole = StoredModel(old).whole()
    StoredModel(old).compact()

    assert have_kinds(load_state(old)["keys"])
    with open(old, "rb") as file:
        assert struct.unpack_from("<I", file.read(), 23)[0] == FORMAT
    assert load(old).table.feature_count.tolist() == whole.table.feature_count.tolist()


# ---- two tokens that get one key ----


def before_it():
    """Return the same model without the collision, and without its journal."""
    path = str(MODELS / "format-2" / "model.nbspam")
    return classifier_of(path, load_state(path))


def colliding(path):
    """Write an old model in which two words of the body, j and j + 1, get one key; return j."""
    state = load_state(str(MODELS / "format-2" / "model.nbspam"))
    keys = np.array(state["keys"])
    kind = classifier_of(path, state).table.vocabulary.keys >> np.uint64(RIDER_BITS) & np.uint64(
        15
    )
    # The next key will not be that of its text, so that its token counts as a word of the body.
    fits = (kind[:-1] == kind_of("body")) & (kind[1:] % 2 == 1) & (keys[:-1] & NEIGHBOUR == 0)
    j = int(np.flatnonzero(fits)[0])
    keys[j + 1] = keys[j] | NEIGHBOUR
    save_state(path, {**state, "keys": keys})
    return j


def test_two_tokens_that_get_one_key_add_their_counts_up(tmp_path):
    path = str(tmp_path / "m")
    j = colliding(path)
    before, after = before_it(), load(path)
    one, two, rest = before.table.feature_count[j], before.table.feature_count[j + 1], j + 2

    assert (np.diff(after.table.vocabulary.keys.astype(object)) > 0).all()
    assert len(after.table.vocabulary) == len(before.table.vocabulary) - 1
    assert after.table.vocabulary.text(j) == before.table.vocabulary.text(j)
    both = np.minimum(one + two, before.table.class_count)
    assert after.table.feature_count[j].tolist() == both.tolist()
    frequency = before.table.document_frequency
    assert after.table.document_frequency[j] == frequency[j] + frequency[j + 1]
    assert (
        after.table.feature_count[j + 1 :].tolist() == before.table.feature_count[rest:].tolist()
    )
    commoner = j + int(frequency[j + 1] >= frequency[j])
    assert after.fit.correction[j] == before.fit.correction[commoner]
    assert after.fit.correction[j + 1 :].tolist() == before.fit.correction[rest:].tolist()


def test_messages_of_the_sample_keep_their_tokens_when_two_get_one_key(tmp_path):
    path = str(tmp_path / "m")
    j = colliding(path)
    before, after = before_it(), load(path)

    def tokens(model):
        vocabulary = model.table.vocabulary
        documents = model.memory.sample.documents
        return [
            [vocabulary.text(column) for column in documents.one(row).tokens.tolist()]
            for row in range(documents.n_docs)
        ]

    kept, gone = (before.table.vocabulary.text(column) for column in (j, j + 1))
    for were, are in zip(tokens(before), tokens(after), strict=True):
        assert len(set(are)) == len(are)
        assert set(are) == {kept if text == gone else text for text in were}
    assert StoredModel(path).learn([Item("x", "ham", b"zebra")], day=20_100).learned == 1


def test_a_model_of_dependent_tokens_with_one_key_for_two_is_refused(tmp_path):
    path = str(tmp_path / "m")
    state = load_state(str(MODELS / "features-aode" / "model.nbspam"))
    keys = np.array(state["keys"])
    keys[1] = keys[0] ^ NEIGHBOUR
    blob = np.array(state["text"])
    blob[:] = ord("x")  # no texts of these keys
    save_state(path, {**state, "keys": keys, "text": blob})

    with pytest.raises(ModelFileError, match=r"two of its tokens have the same key now.*anew"):
        load(path)


def test_a_change_whose_tokens_get_one_key_counts_it_once_and_adds_the_counts_up():
    known, new = reference_key(Token("body", b"hello")), Token("subject", b"zebra")
    key = np.array([reference_key(new) >> 23 << 23], np.uint64)
    base = np.array([known >> 23 << 23], np.uint64)
    vocabulary = replace(empty_vocabulary(), keys=np.array([known], np.uint64))
    tokens = np.sort(np.concatenate([base, base | NEIGHBOUR, key]))
    text = str(new).encode()
    change = Change(
        *(7, None, "ham", 1),
        Documents(tokens, np.array([0, 3]), np.arange(3), np.array([1, 2, 5])),
        Vocabulary(
            key,
            np.frombuffer(text, np.uint8),
            np.array([0, len(text)]),
            np.array([5], np.uint8),
        ),
    )
    today = with_new_keys_in(change, vocabulary)

    counts = dict(
        zip(today.document.tokens.tolist(), today.document.times().tolist(), strict=True)
    )
    of_old = dict(zip(tokens.tolist(), [1, 2, 5], strict=True))
    assert counts == {
        known: of_old[int(base[0])] + of_old[int(base[0] | NEIGHBOUR)],
        reference_key(new): of_old[int(key[0])],
    }
    assert today.new.keys.tolist() == [reference_key(new)]
    assert with_new_keys_in(today, vocabulary) is today
