"""What a key tells of its token, and what somebody who searches for collisions can do with it."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.classifier.training import train_classifier
from nbspam.counts.counting import count_items
from nbspam.mail.headers import HEADS, ORIGINS
from nbspam.mail.message import Field, Message
from nbspam.settings import PRESETS, TokenSettings
from nbspam.sources.items import Item
from nbspam.tokens import tokenizer
from nbspam.tokens.definition import (
    CHARACTERS,
    N_KINDS,
    Token,
    group_of,
    group_of_kind,
    kind_of,
    pair_origin,
    reference_hash,
    reference_key,
    reference_tokens,
    salt_of,
)
from nbspam.tokens.tokenizer import batch_vocabulary, tokenize
from strategies import MESSAGES, TOKEN_SETTINGS

# The last eight bytes of each were solved for, so that the word has the hash of another token.
POSES_AS_LOCALHOST = "yujlzvsmx3sogsfc"  # the first 44 bits of `received:localhost`
SHARES_ALL_BITS = b"piqvclcu^*T[![Xj"  # all 64 bits of the header name `Received`

ALL_ORIGINS = (*ORIGINS, CHARACTERS, *map(pair_origin, ORIGINS))


def test_a_kind_is_in_one_part_of_the_buffer():
    # Heads, other fields and runs are apart, and within each of them documents are in order.
    names = [(table, name) for table in HEADS.values() for name in (*table._values, b"x-mine")]
    heads = {origin for table, name in names for origin in table[name] if origin is not None}
    others = set(ORIGINS) - heads
    parts = [
        {kind_of(each) for origin in part for each in (origin, pair_origin(origin))}
        for part in (heads, others)
    ]

    assert heads > {"received", "subject", "nested", "header"}
    web = {"alt", "url", "html", "filename", "defect"}
    assert others == {"body", "hidden", *web, "people", "auth", "file", "attached"}
    assert not parts[0] & parts[1]
    assert kind_of(CHARACTERS) not in parts[0] | parts[1]


def test_a_kind_has_one_group_and_tells_pairs_from_words():
    for origin in ALL_ORIGINS:
        kind = kind_of(origin)
        assert 0 <= kind < N_KINDS <= 16
        assert kind % 2 == (not origin.startswith("2g"))
        assert group_of_kind(kind) == group_of(origin)


def test_a_word_of_the_body_cannot_pose_as_evidence_of_the_route():
    word, target = Token("body", POSES_AS_LOCALHOST.encode()), Token("received", b"localhost")
    hashes = [reference_hash(salt_of(t.origin), t.text) >> 20 for t in (word, target)]
    assert hashes[0] == hashes[1]
    assert reference_key(word) != reference_key(target)

    how = PRESETS["mail"]
    ham = Item("a", "ham", b"Received: from localhost by mx\nSubject: lunch\n\nnoon\n")
    spam = Item("b", "spam", b"Received: from pool by mx\nSubject: pills\n\nbuy\n")
    classifier = train_classifier(count_items([ham, spam], how), how)
    forged = Item("c", None, b"Subject: hi\n\n" + word.text + b"\n")
    found = [evidence.token for evidence in classifier.explain(forged).evidence]
    assert "received:localhost" not in found


# Another name in the same kind of head or in another, for which a hash with a secret salt is the
# same: for all salts, or for every second one.
@pytest.mark.parametrize(
    ("head", "name", "hidden", "token"),
    [
        ("head", SHARES_ALL_BITS, b"Received", "received:localhost"),
        ("head", b"Received\0", b"Received", "received:localhost"),
        ("part-head", b"Peceived", b"Received", "received:localhost"),
        ("head", b"ContentmTra.sfe2-Encoding", b"Content-Transfer-Encoding", "mime:localhost"),
        ("head", b"x" * 40, b"x" * 32, "header:" + "x" * 32),
    ],
)
def test_a_forged_header_name_cannot_hide_a_header_of_other_messages(
    head, name, hidden, token, monkeypatch
):
    honest = Message((Field("head", b"\n" + hidden + b": localhost"),), ())
    forged = Message((Field(head, b"\n" + name + b": x"),), ())
    for _ in range(20):
        monkeypatch.setattr(tokenizer, "_NAMES", type(tokenizer._NAMES)())
        tokenize([forged], TokenSettings())
        for _ in range(2):  # looked up, and remembered
            spelt = batch_vocabulary(tokenize([honest], TokenSettings()))
            assert token in {spelt.text(j) for j in range(len(spelt))}


@given(st.lists(MESSAGES, max_size=5), TOKEN_SETTINGS, st.integers(0, 3))
def test_documents_are_in_order_however_many_tokens_collide(messages, settings, bits):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokenizer, "HASH_MASK", np.uint64((1 << 64) - (1 << 64 - bits)))
        batch = tokenize(messages, settings)
    documents = batch.documents

    assert len(batch.keys) <= N_KINDS << bits
    assert (np.diff(batch.keys.astype(object)) > 0).all()
    for start, end in pairwise(documents.offsets):
        assert (np.diff(documents.columns[start:end].astype(int)) > 0).all()
    counted = Counter(np.repeat(documents.rows(), documents.times()).tolist())
    assert counted == Counter(
        number
        for number, message in enumerate(messages)
        for _ in reference_tokens(message, settings)
    )
