"""The sample of training messages: which are kept, and what of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.counts import memory
from nbspam.counts.memory import Sampling, kept_sample, messages_of_sample
from nbspam.mail.digest import digest_of
from nbspam.settings import LOG_LENGTH, PRESENCE, TokenSettings
from nbspam.tokens.tokenizer import batch_vocabulary, tokenize
from support import examples, message, of_keys


def mail(n, n_words=1, digests=None):
    """Return n messages, each of words of its own."""
    texts = [" ".join(f"word{i}-{k}" for k in range(n_words)) for i in range(n)]
    if digests is None:
        digests = [digest_of(b"%d of %d" % (i, n)) for i in range(n)]
    batch = tokenize([message(body=text) for text in texts], TokenSettings())
    return of_keys(batch, [f"c{i % 2}" for i in range(n)], digests)


def sampled(parts, weighting=PRESENCE, **limits):
    sampling = Sampling(weighting, **limits)
    sampling.add(parts)
    return sampling


def digests_of(sampling):
    nothing = np.empty(0, np.uint64)
    kept = np.concatenate([nothing, *(part.digests for part in sampling.messages)])
    return sorted(kept.tolist())


@given(st.permutations(range(6)))
@examples(30)
def test_the_messages_that_are_kept_do_not_depend_on_the_order(order):
    parts = [mail(10 * (i + 1)) for i in range(6)]
    kept, expected = sampled((parts[i] for i in order), limit=60), sampled(parts, limit=60)

    assert digests_of(kept) == digests_of(expected)
    assert 0 < len(digests_of(kept)) <= 60
    assert kept.bits == expected.bits


@given(
    st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 60), unique=True, max_size=60),
    st.integers(1, 30),
    st.integers(1, 20),
    st.integers(0, 3),
)
@examples(30)
def test_kept_digests_end_in_as_many_zero_bits_as_needed_and_no_more(digests, size, limit, bits):
    parts = [digests[i : i + size] for i in range(0, len(digests), size)]
    kept = sampled([mail(len(part), digests=part) for part in parts], limit=limit, bits=bits)

    def ending(zeros):
        return sorted(digest for digest in digests if digest % 2**zeros == 0)

    assert digests_of(kept) == ending(kept.bits)
    assert len(ending(kept.bits)) <= limit
    assert kept.bits == bits or len(ending(kept.bits - 1)) > limit


def test_of_long_messages_fewer_are_kept():
    limits = {"limit": 1000, "enough": 10}
    short, long = (mail(100, n_words) for n_words in (1, 9))

    assert len(digests_of(sampled([short], max_entries=400, **limits))) == 100
    assert 10 < len(digests_of(sampled([long], max_entries=400, **limits))) <= 400 // 9
    # No message is too long for the number that is enough.
    assert 0 < len(digests_of(sampled([long], max_entries=0, **limits))) <= 10


def test_where_more_than_presence_counts_no_more_messages_are_kept_than_are_enough():
    assert 0 < len(digests_of(sampled([mail(50)], LOG_LENGTH, enough=10))) <= 10
    assert len(digests_of(sampled([mail(50)], PRESENCE, enough=10))) == 50


@pytest.mark.parametrize(("weighting", "limit"), [(PRESENCE, 32_000), (LOG_LENGTH, 8_000)])
def test_the_limits_are_those_that_were_measured(weighting, limit):
    digests = np.arange(1, limit + 2)
    part = mail(1)._replace(labels=np.full(limit + 1, "c0"), digests=digests.astype(np.uint64))
    empty = part.documents._replace(
        offsets=np.zeros(limit + 2, np.int64), columns=np.empty(0, int)
    )
    part = part._replace(documents=empty._replace(counts=None))

    assert sampled([part.take(digests <= limit)], weighting).bits == 0
    assert sampled([part], weighting).bits == 1
    assert memory.MAX_ENTRIES == 10_000_000


def test_a_thinned_sample_keeps_its_messages_words():
    whole = mail(50)
    (part,) = sampled([whole], limit=20).messages
    words = {d: whole.documents.one(i).tokens.tolist() for i, d in enumerate(whole.digests)}

    assert 0 < len(part.labels) <= 20
    for row, digest in enumerate(part.digests):
        assert part.documents.one(row).tokens.tolist() == words[digest]
    labels = dict(zip(whole.digests.tolist(), whole.labels.tolist(), strict=True))
    assert part.labels.tolist() == [labels[digest] for digest in part.digests.tolist()]


@pytest.mark.parametrize("with_counts", [True, False])
def test_a_model_stores_messages_in_the_order_of_their_digests(with_counts):
    texts = ["b b c", "a d", "e", "a a a c"]
    batch = tokenize([message(body=text) for text in texts], TokenSettings())
    vocabulary = batch_vocabulary(batch, np.array([t != "e" for t in spelt(batch)]))
    parts = [
        of_keys(tokenize([message(body=text)], TokenSettings()), [f"c{n}"], [digest])
        for n, (text, digest) in enumerate(zip(texts, [7, 3, 9, 5], strict=True))
    ]
    stored = kept_sample(parts, 0, vocabulary, with_counts)

    assert stored.digests.tolist() == [3, 5, 7, 9]
    assert stored.documents.tokens.tolist() == [0, 1, 2, 3]
    once = [
        {vocabulary.text(int(j)): int(n) for j, n in zip(one.tokens, one.times(), strict=True)}
        for one in map(stored.documents.one, range(4))
    ]
    counts = [{"a": 1, "d": 1}, {"a": 3, "c": 1}, {"b": 2, "c": 1}, {}]
    assert once == (counts if with_counts else [dict.fromkeys(each, 1) for each in counts])
    labels = np.array(["c1", "c3", "c0", "c2"])
    assert messages_of_sample(stored, labels, vocabulary).documents.tokens is vocabulary.keys


def spelt(batch):
    words = batch_vocabulary(batch)
    return [words.text(j) for j in range(len(words))]
