"""The sample of training messages: which are kept, and what of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.counts import ledger
from nbspam.counts.ledger import Sampling, kept_sample
from nbspam.mail.digest import digest_of
from nbspam.settings import LOG_LENGTH, PRESENCE, TokenSettings
from nbspam.tokens.sparse import join
from nbspam.tokens.tokenizer import batch_vocabulary, tokenize
from support import examples, message, of_keys


def mail(n, n_words=1, digests=None):
    """Return n messages, each of words of its own."""
    texts = [" ".join(f"word{i}-{k}" for k in range(n_words)) for i in range(n)]
    if digests is None:
        digests = [digest_of(b"%d of %d" % (i, n)) for i in range(n)]
    batch = tokenize([message(body=text) for text in texts], TokenSettings())
    return of_keys(batch, [f"c{i % 2}" for i in range(n)], digests)


def sampled(parts, weighting=PRESENCE, bits=0, **limits):
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in limits.items():
            patch.setattr(ledger, name, limit)
        sampling = Sampling(weighting, bits)
        sampling.add(parts)
    return sampling


def by_digest(parts):
    """Return the classes and keys of messages."""
    return {
        digest: (str(part.labels[row]), part.documents.one(row).tokens.tolist())
        for part in parts
        for row, digest in enumerate(part.digests.tolist())
    }


@given(
    st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 60), unique=True, max_size=60),
    st.integers(1, 30),
    st.integers(1, 20),
    st.integers(0, 3),
)
@examples(30)
def test_kept_digests_end_in_as_many_zero_bits_as_needed_and_no_more(digests, size, limit, bits):
    parts = [digests[i : i + size] for i in range(0, len(digests), size)]
    parts = [mail(len(part), digests=part) for part in parts]
    kept, whole = sampled(parts, bits=bits, MAX_SAMPLE=limit), by_digest(parts)

    def ending(zeros):
        return {digest: whole[digest] for digest in digests if digest % 2**zeros == 0}

    assert by_digest(kept.messages) == ending(kept.bits)
    assert len(ending(kept.bits)) <= limit
    assert kept.bits == bits or len(ending(kept.bits - 1)) > limit


def test_of_long_messages_and_where_more_than_presence_counts_fewer_are_kept():
    def n_kept(n, n_words, weighting=PRESENCE, **limits):
        kept = sampled([mail(n, n_words)], weighting, ENOUGH=10, **limits)
        return len(by_digest(kept.messages))

    assert n_kept(100, 1, MAX_ENTRIES=400) == 100
    assert 10 < n_kept(100, 9, MAX_ENTRIES=400) <= 400 // 9
    # No message is too long for the number that is enough.
    assert 0 < n_kept(100, 9, MAX_ENTRIES=0) <= 10
    assert n_kept(10, 9, MAX_ENTRIES=0) == 10
    assert 0 < n_kept(50, 1, LOG_LENGTH) <= 10
    assert n_kept(50, 1) == 50


@pytest.mark.parametrize(("weighting", "limit"), [(PRESENCE, 32_000), (LOG_LENGTH, 8_000)])
def test_the_limits_are_those_that_were_measured(weighting, limit):
    one, n = mail(1), limit + 1
    nothing = one.documents._replace(
        offsets=np.zeros(n + 1, np.int64), columns=np.empty(0, int), counts=None
    )
    digests = np.arange(1, n + 1).astype(np.uint64)
    part = one._replace(labels=np.full(n, "c0"), digests=digests, documents=nothing)

    assert sampled([part.take(digests <= limit)], weighting).bits == 0
    assert sampled([part], weighting).bits == 1
    assert ledger.MAX_ENTRIES == 10_000_000


@pytest.mark.parametrize("with_counts", [True, False])
def test_a_model_stores_messages_in_the_order_of_their_digests(with_counts):
    texts = ["b b c", "a d", "e", "a a a c"]
    batches = [tokenize([message(body=text)], TokenSettings()) for text in texts]
    vocabulary, _ = join([batch_vocabulary(batches[n]) for n in (0, 1, 3)])  # without e
    given = zip(batches, ["c0", "c1", "c2", "c3"], [7, 3, 9, 5], strict=True)
    parts = [of_keys(batch, [label], [digest]) for batch, label, digest in given]
    stored = kept_sample(parts, 0, vocabulary, with_counts)

    assert stored.digests.tolist() == [3, 5, 7, 9]
    assert stored.documents.tokens.tolist() == [0, 1, 2, 3]
    found = [
        {vocabulary.text(int(j)): int(n) for j, n in zip(one.tokens, one.times(), strict=True)}
        for one in map(stored.documents.one, range(4))
    ]
    counts = [{"a": 1, "d": 1}, {"a": 3, "c": 1}, {"b": 2, "c": 1}, {}]
    assert found == (counts if with_counts else [dict.fromkeys(each, 1) for each in counts])
