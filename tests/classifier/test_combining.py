import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.classifier.combining import (
    ALPHA,
    BAND,
    DAMPING,
    Combination,
    Entries,
    fit,
    group_means,
    layer_scale,
    log_odds,
    prior_worth,
    probability,
    scores,
    with_groups,
)
from nbspam.counts.sample import keep, rows_of, sample_batch
from nbspam.mail.message import Field, Message
from nbspam.settings import TokenSettings
from nbspam.tokens.definition import GROUPS
from nbspam.tokens.tokenizer import tokenize
from support import count_batch

TEXT = GROUPS.index("text")
WORDS = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6).map(" ".join)
DOCUMENTS = st.lists(
    st.tuples(WORDS, WORDS, st.sampled_from(["ham", "spam"])), min_size=2, max_size=25
)


def counted(documents):
    """Return table, rows, entries and y of (subject, sender, label) triples."""
    messages = [
        Message((Field("subject", subject.encode()), Field("from", sender.encode())), ())
        for subject, sender, _ in documents
    ]
    labels = [label for *_, label in documents] + ["ham", "spam"]
    batch = tokenize([*messages, Message((), ()), Message((), ())], TokenSettings())
    table = count_batch(batch, labels, "presence")
    sample = sample_batch(batch, labels, range(len(labels)), "presence")
    y = np.searchsorted(np.array(table.classes), labels)
    rows = rows_of(keep([sample], 0, table.vocabulary, False))
    return table, rows, rows.entries(table.vocabulary.groups), y


def test_log_odds_worked_by_hand():
    # 10 ham and 20 spam; one token in 0 ham and 4 spam, one in 5 and 10, one in none.
    odds = log_odds(np.array([[0, 4], [5, 10], [0, 0]]), np.array([10, 20]))

    strong = np.log((4 + ALPHA) / (20 + 2 * ALPHA) / (ALPHA / (10 + 2 * ALPHA)))
    assert strong > BAND
    assert odds == pytest.approx([strong, 0, 0])


def test_leaving_a_document_out_is_counting_without_it():
    count, n = np.array([[3, 9], [0, 1]]), np.array([10, 20])
    without = log_odds(count - [0, 1], n - [0, 1])

    assert (log_odds(count, n, left_out=1) == without).all()
    assert count.tolist() == [[3, 9], [0, 1]]


def test_group_means_are_damped_and_ignore_zeros():
    entries = Entries(
        2, np.array([0, 0, 0]), np.arange(3), np.full(3, TEXT, np.uint8), np.ones(3, np.int64)
    )
    means = group_means(entries, np.array([3.0, 4.0, 0.0]))

    assert means[0, TEXT] == pytest.approx(7 / (2 + DAMPING))
    assert means.sum() == means[0, TEXT]


@given(DOCUMENTS)
def test_a_score_is_a_sum_over_tokens(documents):
    table, _, entries, _ = counted(documents)
    rng = np.random.default_rng(len(documents))
    correction = rng.normal(size=len(table.vocabulary)).astype(np.float32)
    combination = Combination(rng.normal(size=len(GROUPS) + 1), correction)
    odds = log_odds(table.feature_count, table.class_count)[entries.columns]

    total = np.full(entries.n_docs, combination.worth[-1])
    scale = layer_scale(entries)
    groups = np.where(entries.groups == GROUPS.index("subject"), TEXT, entries.groups)
    for d, j, g, w in zip(entries.documents, entries.columns, groups, odds, strict=True):
        mine = (entries.documents == d) & (groups == g) & (odds != 0)
        total[d] += combination.worth[g] * w / (mine.sum() + DAMPING) + scale[d] * correction[j]
    assert scores(combination, entries, odds) == pytest.approx(total, abs=1e-9)


@given(DOCUMENTS)
def test_the_order_of_documents_is_nearly_nothing_to_the_worth_of_groups(documents):
    (table, rows, _, y), (other, others, _, z) = counted(documents), counted(documents[::-1])

    ours, theirs = fit(table, rows, y).worth[:-1], fit(other, others, z).worth[:-1]
    assert ours == pytest.approx(theirs, abs=1e-6)


def test_every_message_is_judged_by_the_others():
    # A word that stands in one message only says nothing of that message itself.
    documents = [(f"only{i} common", "x", "ham" if i % 2 else "spam") for i in range(40)]
    table, rows, entries, y = counted(documents)
    combination = fit(table, rows, y)

    odds = log_odds(table.feature_count, table.class_count)[entries.columns]
    resubstituted = probability(scores(combination, entries, odds))[:40]
    assert np.abs(combination.worth[TEXT]) < 1
    assert ((resubstituted > 0.5) == (y[:40] == 1)).mean() > 0.9


def test_evidence_that_separates_is_found():
    documents = [("cheap pills now", "joe", "spam"), ("lunch on friday", "ann", "ham")] * 30
    table, rows, entries, y = counted(documents)
    odds = log_odds(table.feature_count, table.class_count)[entries.columns]

    p = probability(scores(fit(table, rows, y), entries, odds))[:-2]
    assert (p[y[:-2] == 1] > 0.95).all()
    assert (p[y[:-2] == 0] < 0.05).all()


def test_probability_never_overflows():
    assert probability(np.array([-1e9, 0, 1e9])) == pytest.approx([0, 0.5, 1])


def test_the_worth_of_fewer_groups_is_completed_by_what_is_believed_beforehand():
    worth = with_groups(np.array([1.0, 2.0, 3.0, 4.0, -0.5]))

    assert worth.tolist() == [1, 2, 3, 4, *prior_worth()[4:-1], -0.5]
    assert (with_groups(worth) == worth).all()


@pytest.mark.parametrize("n", [0, 1, len(GROUPS) + 2])
def test_the_worth_of_other_groups_is_refused(n):
    with pytest.raises(ValueError, match="groups"):
        with_groups(np.ones(n))
