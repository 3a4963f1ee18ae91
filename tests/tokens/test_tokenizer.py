from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nbspam.mail.headers import Field
from nbspam.mail.message import Message
from nbspam.settings import TokenSettings
from nbspam.tokens import definition
from nbspam.tokens.normalize import normalize
from nbspam.tokens.sparse import RIDER_MASK
from nbspam.tokens.tokenizer import batch_vocabulary, batches, tokenize
from strategies import MESSAGES, TOKEN_SETTINGS


def spelt(batch):
    """Return the batch as {(document, key, text): count}."""
    (blob, offsets), documents = batch.texts(), batch.documents
    texts = [bytes(blob[a:b]) for a, b in pairwise(offsets)]
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
BODY_THEN_HEAD = [
    Message((Field("body", b"a a"),), ()),
    Message((Field("head", b"\nSubject: a"),), ()),
]


@given(st.lists(MESSAGES, max_size=5), TOKEN_SETTINGS)
@example(BODY_THEN_HEAD, TokenSettings(characters=True))
def test_keys_ascend_and_columns_ascend_within_a_document(messages, settings):
    batch = tokenize(messages, settings)
    documents = batch.documents

    assert (np.diff(batch.keys.astype(object)) > 0).all()
    assert not (batch.keys & RIDER_MASK).any()
    assert set(documents.columns.tolist()) == set(range(len(batch.keys)))
    assert documents.n_docs == len(messages)
    for start, end in pairwise(documents.offsets):
        assert (np.diff(documents.columns[start:end].astype(int)) > 0).all()


@pytest.mark.parametrize(
    ("text", "tokens", "settings"),
    [
        ("FREE $99 Don't e-mail; now!", "free $99 don't e-mail now!", {}),
        ("ä ab 中国", "ab 中国", {"min_length": 2}),
        ("免费发票", "免费 费发 发票", {}),
    ],
)
def test_case_is_folded_punctuation_inside_words_kept_and_chinese_cut(text, tokens, settings):
    message = Message((Field("body", text.encode()),), ())
    found = definition.reference_tokens(message, TokenSettings(**settings))
    assert [str(token) for token in found] == tokens.split()


def test_tokens_are_tagged_by_where_they_stand():
    fields = (Field("subject", b"Free"), Field("body", b"Free"))
    tagged, plain = definition.reference_tokens(Message(fields, ()), TokenSettings())
    assert (str(tagged), str(plain)) == ("subject:free", "free")
    assert definition.reference_key(tagged) != definition.reference_key(plain)
    runs = definition.Token("char", b"a: b:")  # read as it is spelt, though it has colons
    assert definition.token_of(str(runs).encode()) == runs


def test_pairs_do_not_cross_fields_and_skip_words_that_are_too_long():
    fields = (Field("subject", b"buy now"), Field("body", b"cheap " + b"x" * 50 + b" pills"))
    tokens = definition.reference_tokens(Message(fields, ()), TokenSettings(pairs=True))
    pairs = [str(token) for token in tokens if token.origin.startswith("2g")]
    assert pairs == ["2g:subject:buy now", "2g:cheap pills"]


def test_hidden_words_and_their_pairs_have_a_group_of_their_own():
    fields = Field("hidden", b"win cash"), Field("body", b"good day")
    batch = tokenize([Message(fields, ())], TokenSettings(pairs=True))
    vocabulary = batch_vocabulary(batch)

    groups = {
        vocabulary.text(j): definition.GROUPS[vocabulary.groups[j]] for j in range(len(vocabulary))
    }
    hidden = dict.fromkeys(("hidden:win", "hidden:cash", "2g:hidden:win cash"), "hidden")
    assert groups == {**hidden, "good": "text", "day": "text", "2g:good day": "pairs"}


@pytest.mark.parametrize(
    ("origin", "text", "key"),
    [
        ("body", b"viagra", 0xB448C2B327080000),
        ("subject", b"viagra", 0x7A4884A8B4A80000),
        ("2g", b"free money", 0x636B5C6D85000000),
        ("char", b"e m", 0x8D5DC78B5EE80000),
    ],
)
def test_keys_are_the_same_in_every_release(origin, text, key):
    # Models hold keys: these numbers may never change.
    assert definition.reference_key(definition.Token(origin, text)) == key


def test_runs_of_characters_are_taken_from_written_text_alone():
    fields = (Field("subject", b"A b"), Field("url", b"xy"))
    tokens = definition.reference_tokens(Message(fields, ()), TokenSettings(characters=True))
    runs = [token.text for token in tokens if token.origin == "char"]
    assert runs == [b"a", b" ", b"b", b"a ", b" b", b"a b"]


def test_zero_bytes_end_a_run_and_are_no_part_of_it():
    messages = [Message((Field("body", b"s\0s"),), ()) for _ in range(3)]
    batch = tokenize(messages, TokenSettings(characters=True))
    assert (np.bincount(batch.documents.columns) == 3).all()


def test_words_beyond_those_that_a_batch_can_number_are_dropped():
    text = b"a " * (1 << 20)
    batch = tokenize([Message((Field("body", text),), ())], TokenSettings(pairs=True))
    assert sorted(batch.documents.times().tolist()) == [(1 << 19) - 1, 1 << 19]


@pytest.mark.parametrize(
    ("sizes", "most", "with_runs", "batched"),
    [
        ((10, 10, 50, 10), 25, False, [2, 1, 1]),
        ((99,) * 12, 600, False, [6, 6]),
        ((99,) * 12, 600, True, [1] * 12),
    ],
)
def test_batches_hold_whole_messages_up_to_a_size(sizes, most, with_runs, batched):
    messages = [Message((Field("body", b"x" * n),), ()) for n in sizes]
    found = batches(messages, TokenSettings(characters=with_runs), most)
    assert [len(group) for group in found] == batched


def test_no_messages_and_empty_messages_make_an_empty_batch():
    assert len(tokenize([], TokenSettings()).keys) == 0
    assert len(tokenize([Message((), ())], TokenSettings(pairs=True)).keys) == 0


def test_text_is_folded_to_one_line_of_lower_case_of_bounded_length():
    assert definition.folded_line(b" Win\t CASH\r\n now\0!") == b"win cash now !"
    assert len(definition.folded_line(b"x" * 2 * definition.MAX_BYTES)) == definition.MAX_BYTES


@pytest.mark.parametrize(
    ("written", "cut"),
    [
        ("房间很好", "房间很好"),
        ("房间很好,好!", "房间很好 , 好 !"),
        ("好 好", "好 好"),
        ("好好好", "好好好"),
        ("ห้องดี ok", "ห้องดี ok"),
        ("很好" * definition.MAX_BYTES, "很好" * (definition.MAX_BYTES // 6) + "很"),
    ],
)
def test_scripts_without_spaces_are_cut_as_they_are_written(written, cut):
    assert definition.folded_line(normalize(written.encode())[0]).decode("utf-8", "ignore") == cut


@given(st.text(max_size=40))
@example("aé中")
def test_a_text_has_a_run_of_every_length_at_every_character(text):
    text = text.encode("utf-8", "replace").decode()
    runs = [
        text[i : i + n] for n in range(1, definition.MAX_RUN + 1) for i in range(len(text) - n + 1)
    ]
    assert [run.decode() for run in definition.reference_runs(text.encode())] == runs
