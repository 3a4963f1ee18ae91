from collections import Counter
from itertools import pairwise

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from nbspam.mail.headers import Field
from nbspam.mail.message import Message
from nbspam.settings import TokenSettings
from nbspam.tokens.definition import GROUPS, Token, reference_key, reference_tokens, token_of
from nbspam.tokens.documents import RIDER_MASK
from nbspam.tokens.tokenizer import batch_vocabulary, batches, tokenize
from strategies import MESSAGES, TOKEN_SETTINGS


def spelt(batch):
    """Return the batch as {(document, key, text): count}."""
    blob, offsets = batch.texts()
    documents, keys = batch.documents, batch.keys.tolist()
    found = Counter()
    for document, j, n in zip(
        documents.rows().tolist(),
        documents.columns.tolist(),
        documents.times().tolist(),
        strict=True,
    ):
        found[document, keys[j], bytes(blob[offsets[j] : offsets[j + 1]])] += n
    return found


def expected(messages, settings):
    """Return the same from the readable definition."""
    found = Counter()
    for document, message in enumerate(messages):
        for token in reference_tokens(message, settings):
            prefix = b"" if token.origin == "body" else token.origin.encode() + b":"
            found[document, reference_key(token), prefix + token.text] += 1
    return found


@given(st.lists(MESSAGES, max_size=5), TOKEN_SETTINGS)
def test_the_pass_over_a_batch_agrees_with_the_definition(messages, settings):
    assert spelt(tokenize(messages, settings)) == expected(messages, settings)


@given(st.lists(MESSAGES, min_size=1, max_size=5), TOKEN_SETTINGS)
def test_a_message_has_the_same_tokens_alone_and_in_a_batch(messages, settings):
    together = spelt(tokenize(messages, settings))
    for document, message in enumerate(messages):
        alone = {key[1:]: n for key, n in spelt(tokenize([message], settings)).items()}
        assert alone == {key[1:]: n for key, n in together.items() if key[0] == document}


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


def body(text, **settings):
    message = Message((Field("body", text.encode()),), ())
    return [str(token) for token in reference_tokens(message, TokenSettings(**settings))]


def test_case_is_folded_and_punctuation_inside_words_kept():
    assert body("FREE $99 Don't e-mail; now!") == ["free", "$99", "don't", "e-mail", "now!"]


def test_tokens_are_tagged_by_where_they_stand():
    fields = (Field("subject", b"Free"), Field("body", b"Free"))
    tokens = list(reference_tokens(Message(fields, ()), TokenSettings()))

    assert [str(token) for token in tokens] == ["subject:free", "free"]
    assert reference_key(tokens[0]) != reference_key(tokens[1])


def test_pairs_do_not_cross_fields_and_skip_words_that_are_too_long():
    fields = (Field("subject", b"buy now"), Field("body", b"cheap " + b"x" * 50 + b" pills"))
    tokens = reference_tokens(Message(fields, ()), TokenSettings(pairs=True))

    pairs = [str(token) for token in tokens if token.origin.startswith("2g")]
    assert pairs == ["2g:subject:buy now", "2g:cheap pills"]


def test_hidden_words_and_their_pairs_have_a_group_of_their_own():
    fields = Field("hidden", b"win cash"), Field("body", b"good day")
    batch = tokenize([Message(fields, ())], TokenSettings(pairs=True))
    vocabulary = batch_vocabulary(batch)

    groups = {vocabulary.text(j): GROUPS[vocabulary.groups[j]] for j in range(len(vocabulary))}
    hidden = dict.fromkeys(("hidden:win", "hidden:cash", "2g:hidden:win cash"), "hidden")
    assert groups == {**hidden, "good": "text", "day": "text", "2g:good day": "pairs"}


def test_length_is_counted_in_characters():
    assert body("ä ab 中国", min_length=2) == ["ab", "中国"]


def test_chinese_is_cut_into_pairs_of_characters():
    assert body("免费发票") == ["免费", "费发", "发票"]


def test_keys_are_the_same_in_every_release():
    # Models hold keys: these numbers may never change.
    assert reference_key(Token("body", b"viagra")) == KEYS["viagra"]
    assert reference_key(Token("subject", b"viagra")) == KEYS["subject:viagra"]
    assert reference_key(Token("2g", b"free money")) == KEYS["2g:free money"]
    assert reference_key(Token("char", b"e m")) == KEYS["char:e m"]


KEYS = {
    "viagra": 0xB448C2B327080000,
    "subject:viagra": 0x7A4884A8B4A80000,
    "2g:free money": 0x636B5C6D85000000,
    "char:e m": 0x8D5DC78B5EE80000,
}


def test_runs_of_characters_are_taken_from_written_text_alone():
    fields = (Field("subject", b"A b"), Field("url", b"xy"))
    tokens = reference_tokens(Message(fields, ()), TokenSettings(characters=True))

    runs = [token.text for token in tokens if token.origin == "char"]
    assert runs == [b"a", b" ", b"b", b"a ", b" b", b"a b"]


def test_runs_with_colons_are_read_as_they_are_spelt():
    token = Token("char", b"a: b:")

    assert token_of(str(token).encode()) == token


def test_zero_bytes_end_a_run_and_are_no_part_of_it():
    messages = [Message((Field("body", b"s\0s"),), ()) for _ in range(3)]
    batch = tokenize(messages, TokenSettings(characters=True))

    assert (np.bincount(batch.documents.columns) == 3).all()


def test_batches_are_smaller_where_runs_of_characters_are_taken():
    messages = [Message((Field("body", b"x" * 99),), ())] * 12

    few = list(batches(messages, TokenSettings(), 600))
    many = list(batches(messages, TokenSettings(characters=True), 600))
    assert len(few) == 2
    assert len(many) == 12


def test_words_beyond_those_that_a_batch_can_number_are_dropped():
    text = b"a " * (1 << 20)
    batch = tokenize([Message((Field("body", text),), ())], TokenSettings(pairs=True))

    assert sorted(batch.documents.times().tolist()) == [(1 << 19) - 1, 1 << 19]


def test_batches_hold_whole_messages_up_to_a_size():
    messages = [Message((Field("body", b"x" * n),), ()) for n in (10, 10, 50, 10)]

    assert [len(group) for group in batches(messages, TokenSettings(), 25)] == [2, 1, 1]


def test_no_messages_and_empty_messages_make_an_empty_batch():
    assert len(tokenize([], TokenSettings()).keys) == 0
    assert len(tokenize([Message((), ())], TokenSettings(pairs=True)).keys) == 0
