"""Tokens of a batch are those of the definition, and their keys withstand whoever forges them."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nbspam.classifier.training import learn_items
from nbspam.mail.headers import HEADS, ORIGINS, Field, origins_of
from nbspam.mail.message import Message
from nbspam.settings import PRESETS, TokenSettings
from nbspam.sources.items import Item
from nbspam.tokens import definition, tokenizer
from nbspam.tokens.definition import (
    CHARACTERS,
    KIND_BITS,
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
from nbspam.tokens.normalize import normalize
from nbspam.tokens.sparse import RIDER_MASK
from nbspam.tokens.tokenizer import batch_vocabulary, batches, named_vocabulary, tokenize
from strategies import MESSAGES, TOKEN_SETTINGS


def spelt(batch):
    """Return the batch as {(document, key, text): count}."""
    vocabulary, documents = batch_vocabulary(batch), batch.documents
    texts = [bytes(vocabulary.blob[a:b]) for a, b in pairwise(vocabulary.offsets)]
    found = Counter()
    entries = documents.rows(), documents.columns, documents.times()
    for document, j, n in zip(*(each.tolist() for each in entries), strict=True):
        found[document, int(batch.keys[j]), texts[j]] += n
    return found


def expected(messages, settings):
    """Return the same from the readable definition."""
    found = Counter()
    for document, message in enumerate(messages):
        for token in definition.reference_tokens(message, settings):
            prefix = b"" if token.origin == "body" else token.origin.encode() + b":"
            found[document, definition.reference_key(token), prefix + token.text] += 1
    return found


@given(st.lists(MESSAGES, max_size=5), TOKEN_SETTINGS)
def test_the_pass_over_a_batch_agrees_with_the_definition(messages, settings):
    assert spelt(tokenize(messages, settings)) == expected(messages, settings)


# Runs of characters are taken from heads and bodies alike.
BODY_THEN_HEAD = [Message((Field("body", b"a a"),)), Message((Field("head", b"\nSubject: a"),))]


@given(st.lists(MESSAGES, max_size=5), TOKEN_SETTINGS, st.sampled_from([0, 1, 2, 3, 40]))
@example(BODY_THEN_HEAD, TokenSettings(characters=True), 40)  # as many as a key has
def test_keys_and_columns_ascend_however_many_tokens_collide(messages, settings, bits):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokenizer, "HASH_MASK", np.uint64((1 << 64) - (1 << 64 - bits)))
        batch = tokenize(messages, settings)
    documents = batch.documents

    assert len(batch.keys) <= N_KINDS << bits
    assert (np.diff(batch.keys.astype(object)) > 0).all()
    assert not (batch.keys & RIDER_MASK).any()
    assert set(documents.columns.tolist()) == set(range(len(batch.keys)))
    assert documents.n_docs == len(messages)
    for start, end in pairwise(documents.offsets):
        assert (np.diff(documents.columns[start:end].astype(int)) > 0).all()
    counted = Counter(np.repeat(documents.rows(), documents.times()).tolist())
    assert counted == Counter(
        n for n, each in enumerate(messages) for _ in reference_tokens(each, settings)
    )


@pytest.mark.parametrize(("text", "tokens", "settings"), [
    ("FREE $99 Don't e-mail; now!", "free $99 don't e-mail now!", {}),
    ("ä ab 中国", "ab 中国", {"min_length": 2}),
    ("免费发票", "免费 费发 发票", {}),
    (f"{'x' * 41} {'თ' * 40} {'თ' * 41}", "თ" * 40, {}),
])  # fmt: skip
def test_text_is_cut_into_words_of_lower_case_that_are_not_too_long(text, tokens, settings):
    message = Message((Field("body", text.encode()),))
    found = definition.reference_tokens(message, TokenSettings(**settings))
    assert [str(token) for token in found] == tokens.split()


def test_tokens_are_tagged_by_where_they_stand():
    fields = (Field("subject", b"Free"), Field("body", b"Free"))
    tagged, plain = definition.reference_tokens(Message(fields), TokenSettings())
    assert (str(tagged), str(plain)) == ("subject:free", "free")
    assert definition.reference_key(tagged) != definition.reference_key(plain)
    runs = definition.Token("char", b"a: b:")  # read as it is spelt, though it has colons
    assert definition.token_of(str(runs).encode()) == runs


def test_pairs_do_not_cross_fields_and_skip_words_that_are_too_long():
    fields = (Field("subject", b"buy now"), Field("body", b"cheap " + b"x" * 50 + b" pills"))
    tokens = definition.reference_tokens(Message(fields), TokenSettings(pairs=True))
    pairs = [str(token) for token in tokens if token.origin.startswith("2g")]
    assert pairs == ["2g:subject:buy now", "2g:cheap pills"]


def test_hidden_words_and_their_pairs_have_a_group_of_their_own():
    fields = Field("hidden", b"win cash"), Field("body", b"good day")
    batch = tokenize([Message(fields)], TokenSettings(pairs=True))
    vocabulary = batch_vocabulary(batch)

    groups = {
        vocabulary.text(j): definition.GROUPS[vocabulary.groups[j]] for j in range(len(vocabulary))
    }
    hidden = dict.fromkeys(("hidden:win", "hidden:cash", "2g:hidden:win cash"), "hidden")
    assert groups == {**hidden, "good": "text", "day": "text", "2g:good day": "pairs"}


@pytest.mark.parametrize(("origin", "text", "key"), [
    ("body", b"viagra", 0xB448C2B327080000), ("subject", b"viagra", 0x7A4884A8B4280000),
    ("2g", b"free money", 0x636B5C6D85000000), ("char", b"e m", 0x8D5DC78B5E680000),
])  # fmt: skip
def test_keys_are_the_same_in_every_release(origin, text, key):
    # Models hold keys: these numbers may never change.
    assert definition.reference_key(definition.Token(origin, text)) == key


def test_runs_of_characters_are_of_written_text_alone_and_end_at_zero_bytes():
    fields = (Field("subject", b"A b"), Field("url", b"xy"))
    tokens = definition.reference_tokens(Message(fields), TokenSettings(characters=True))
    runs = [token.text for token in tokens if token.origin == "char"]
    assert runs == [b"a", b" ", b"b", b"a ", b" b", b"a b"]
    messages = [Message((Field("body", b"s\0s"),)) for _ in range(3)]
    batch = tokenize(messages, TokenSettings(characters=True))
    assert (np.bincount(batch.documents.columns) == 3).all()


def test_words_beyond_those_that_a_batch_can_number_are_dropped():
    text = b"a " * (1 << 20)
    batch = tokenize([Message((Field("body", text),))], TokenSettings(pairs=True))
    assert sorted(batch.documents.times().tolist()) == [(1 << 19) - 1, 1 << 19]


@pytest.mark.parametrize(("words", "counted"), [
    ((300_000, 10, 400_000), (262_139, 10, 262_139)),
    ((5, 200_000, 7, 600_000), (5, 200_000, 7, 324_276)),
    ((600_000, 0, 3), (524_285, 0, 3)),
])  # fmt: skip
def test_the_longest_messages_of_a_batch_lose_words_and_the_others_none(words, counted):
    messages = [Message((Field("body", b"a " * n),)) for n in words]
    documents = tokenize(messages, TokenSettings()).documents
    number = np.bincount(documents.rows(), documents.times(), documents.n_docs)
    assert number.tolist() == list(counted)


def test_a_message_whose_normal_form_has_many_words_takes_none_of_its_neighbours():
    flood = Message((Field("body", "\u3316".encode() * 120_000),))
    small = Message((Field("body", b"lunch on thursday at twelve"),))
    settings = TokenSettings()
    alone = tokenize([small], settings).keys
    batch = tokenize([flood, small], settings)
    assert batch.documents.one(1).tokens.tolist() == alone.tolist()


@pytest.mark.parametrize(("sizes", "most", "with_runs", "batched"), [
    ((10, 10, 50, 10), 25, False, [2, 1, 1]), ((99,) * 12, 600, False, [6, 6]),
    ((99,) * 12, 600, True, [1] * 12),
])  # fmt: skip
def test_batches_hold_whole_messages_up_to_a_size(sizes, most, with_runs, batched, monkeypatch):
    monkeypatch.setattr(tokenizer, "_BATCH_BYTES", most)
    messages = [Message((Field("body", b"x" * n),)) for n in sizes]
    found = batches(messages, TokenSettings(characters=with_runs))
    assert [len(group) for group in found] == batched


def test_text_is_folded_to_one_line_of_lower_case_of_bounded_length():
    assert definition.folded_line(b" Win\t CASH\r\n now\0!") == b"win cash now !"
    assert (
        len(definition.folded_line(b"x" * 2 * definition.MAX_RUN_BYTES))
        == definition.MAX_RUN_BYTES
    )


@pytest.mark.parametrize(("written", "cut"), [
    ("房间很好", "房间很好"), ("房间很好,好!", "房间很好 , 好 !"), ("好 好", "好 好"),
    ("好好好", "好好好"), ("ห้องดี ok", "ห้องดี ok"),
    ("很好" * definition.MAX_RUN_BYTES, "很好" * (definition.MAX_RUN_BYTES // 6) + "很"),
])  # fmt: skip
def test_scripts_without_spaces_are_cut_as_they_are_written(written, cut):
    assert definition.folded_line(normalize(written.encode())[0]).decode() == cut


@given(st.text(max_size=40))
@example("aé中")
def test_a_text_has_a_run_of_every_length_at_every_character(text):
    text = text.encode("utf-8", "replace").decode()
    runs = [
        text[i : i + n] for n in range(1, definition.MAX_RUN + 1) for i in range(len(text) - n + 1)
    ]
    assert [run.decode() for run in definition.reference_runs(text.encode())] == runs


# The last eight bytes of each were solved for, so that the word has the hash of another token.
POSES_AS_LOCALHOST = "yujlzvsmx3sogsfc"  # the first 44 bits of `received:localhost`
SHARES_ALL_BITS = b"piqvclcu^*T[![Xj"  # all 64 bits of the header name `Received`


def test_the_rest_of_a_text_has_tokens_of_the_body_and_marks_those_it_alone_has():
    how = TokenSettings(pairs=True)
    fields = Field("body", b"cheap pills"), Field("rest", b"meeting on monday pills cheap pills")
    documents = tokenize([Message(fields[:1]), Message(fields)], how).documents
    whole = Message((Field("body", b"cheap pills"), Field("body", fields[1].text)))

    assert documents.one(1).tokens.tolist() == tokenize([whole], how).keys.tolist()
    alone = {"meeting", "on", "monday"}
    pairs = {"2g:meeting on", "2g:on monday", "2g:monday pills", "2g:pills cheap"}
    names = named_vocabulary(alone | pairs).keys.tolist()
    of_rest = documents.tokens[documents.columns][documents.are_in_rest()]
    assert set(of_rest.tolist()) == set(names)
    assert tokenize([whole], how).documents.in_rest is None


def test_a_kind_is_in_one_part_of_the_buffer_has_one_group_and_tells_pairs_from_words():
    # Heads, other fields and runs are apart, and within each of them documents are in order.
    names = [(kind, name) for kind, of in HEADS.items() for name in (*of[0], b"x-mine")]
    heads = {origin for each in names for origin in origins_of(*each) if origin is not None}
    others = set(ORIGINS) - heads
    parts = [
        {kind_of(each) for origin in part for each in (origin, pair_origin(origin))}
        for part in (heads, others)
    ]

    assert heads > {"received", "subject", "nested", "header"}
    facts = {"html", "filename", "defect", "people", "auth", "file", "signs"}
    assert others == {"body", "rest", "hidden", "alt", "url", "attached", *facts}
    assert not parts[0] & parts[1]
    assert kind_of(CHARACTERS) not in parts[0] | parts[1]
    for origin in (*ORIGINS, CHARACTERS, *map(pair_origin, ORIGINS)):
        kind = kind_of(origin)
        assert 0 <= kind < N_KINDS <= 1 << KIND_BITS
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
    classifier = learn_items([ham, spam], how).classifier
    forged = Item("c", None, b"Subject: hi\n\n" + word.text + b"\n")
    found = [evidence.token for evidence in classifier.explain(forged).evidence]
    assert "received:localhost" not in found


def test_header_names_are_remembered_up_to_a_number_and_a_length(monkeypatch):
    names = type(tokenizer._NAMES)()
    monkeypatch.setattr(tokenizer, "_NAMES", names)

    def kept(*lines):
        head = b"".join(b"\n" + line for line in lines)
        tokenize([Message((Field("head", head),))], TokenSettings())
        return len(names._known[0])

    before = kept(b"A: b")
    assert kept(b"X-One-Of-Them: a", b"X-Other-One: b", b"A: c") == before + 2
    assert kept(b"X-One-Of-Them: other", b"X-Other-One: words") == before + 2
    assert kept(b"X" * 33 + b": a", b"X" * 50 + b": b") == before + 2
    monkeypatch.setattr(tokenizer, "_MAX_NAMES", before + 3)
    assert kept(b"X-Third: a") == before + 3
    assert kept(b"X-Fourth: a", b"X-Fifth: a") == before + 3
    monkeypatch.setattr(tokenizer, "_look_up", None)
    assert kept(b"X-Third: x", b"X-One-Of-Them: y", b"A: z") == before + 3


# Another name in the same kind of head or in another, for which a hash with a secret salt is the
# same: for all salts, or for every second one.
@pytest.mark.parametrize(("head", "name", "hidden", "token"), [
    ("head", SHARES_ALL_BITS, b"Received", "received:localhost"),
    ("head", b"Received\0", b"Received", "received:localhost"),
    ("part-head", b"Peceived", b"Received", "received:localhost"),
    ("head", b"ContentmTra.sfe2-Encoding", b"Content-Transfer-Encoding", "mime:localhost"),
    ("head", b"x" * 40, b"x" * 32, "header:" + "x" * 32),
])  # fmt: skip
def test_a_forged_header_name_cannot_hide_another_header(head, name, hidden, token, monkeypatch):
    honest = Message((Field("head", b"\n" + hidden + b": localhost"),))
    forged = Message((Field(head, b"\n" + name + b": x"),))
    for collide in (0, 1):  # as all names do if they are multiplied by 0
        monkeypatch.setattr(
            tokenizer, "_MULTIPLIERS", tokenizer._MULTIPLIERS * np.uint64(1 - collide)
        )
        monkeypatch.setattr(tokenizer, "_NAMES", type(tokenizer._NAMES)())
        tokenize([forged], TokenSettings())
        for _ in range(2):  # looked up, and remembered
            spelt = batch_vocabulary(tokenize([honest], TokenSettings()))
            assert token in {spelt.text(j) for j in range(len(spelt))}
