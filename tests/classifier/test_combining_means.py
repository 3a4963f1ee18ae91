"""What the tokens of each group say, against numbers worked by hand and sorted lists."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.classifier.combining import (
    ALPHA,
    BAND,
    DAMPING,
    HIDDEN,
    STRONGEST,
    group_means,
    limits_of,
    log_odds,
)
from nbspam.counts.table import CountTable
from nbspam.tokens.definition import GROUPS
from nbspam.tokens.documents import Documents

TEXT, SUBJECT = GROUPS.index("text"), GROUPS.index("subject")
HAM_OR_SPAM = ("ham", "spam")


# --- tokens and groups --------------------------------------------------------------------


def test_log_odds_worked_by_hand():
    # 10 ham and 20 spam; one token in 0 ham and 4 spam, one in 5 and 10, one in none.
    odds = log_odds(np.array([[0, 4], [5, 10], [0, 0]]), np.array([10, 20]))

    strong = np.log((4 + ALPHA) / (20 + 2 * ALPHA) / (ALPHA / (10 + 2 * ALPHA)))
    assert strong > BAND
    assert odds == pytest.approx([strong, 0, 0])


@pytest.mark.parametrize("label", [0, 1])
def test_leaving_a_document_out_is_counting_without_it(label):
    # Tokens of either class alone, of mostly one, and of that document alone.
    count, n = np.array([[1, 19], [9, 1], [1, 1]]), np.array([10, 20])
    own = np.eye(2, dtype=int)[label]
    without = log_odds(count - own, n - own)

    assert (np.abs(without[:2]) > BAND).all()
    assert (log_odds(count, n, left_out=label) == without).all()
    assert (without != log_odds(count, n)).all()
    assert count.tolist() == [[1, 19], [9, 1], [1, 1]]


def test_group_means_are_damped_and_ignore_zeros():
    documents = Documents(np.arange(3), np.array([0, 3, 3]), np.arange(3), None)
    odds = np.array([3.0, 4.0, 0.0])
    means = group_means(documents, np.full(3, TEXT, np.uint8), odds, None)

    assert means[0, TEXT] == pytest.approx(7 / (2 + DAMPING))
    assert means.sum() == means[0, TEXT]


# --- the strongest of each side -----------------------------------------------------------


ODDS = st.lists(
    st.one_of(st.just(0.0), st.floats(2, 12), st.floats(-12, -2), st.integers(-5, 5)), max_size=60
)
IN_GROUPS = st.lists(st.integers(0, len(GROUPS) - 1), min_size=60, max_size=60)
# Of ham, of spam.
BOUNDED = limits_of(CountTable(HAM_OR_SPAM, *[None] * 4))


def one_document(n):
    """Return a document of n tokens."""
    return Documents(np.arange(n), np.array([0, n]), np.arange(n), None)


def bounded_means(odds, groups):
    """Return a document's means by sorted lists."""
    means = []
    for group in range(len(GROUPS)):
        with_group = [TEXT if g == SUBJECT else g for g in groups]
        own = [x for x, g in zip(odds, with_group, strict=False) if g == group]
        ham = [x for x in sorted(own) if x < 0][: STRONGEST[0]]
        spam = sorted((x for x in own if x > 0), reverse=True)[: STRONGEST[1]]
        if group == HIDDEN:
            means.append(sum(spam) / (STRONGEST[1] + DAMPING))
        else:
            means.append(sum(ham + spam) / (len(ham + spam) + DAMPING))
    return means


@given(st.lists(st.tuples(ODDS, IN_GROUPS), min_size=1, max_size=4))
def test_means_are_those_of_sorted_lists(messages):
    lengths = [len(odds) for odds, _ in messages]
    documents = Documents(
        np.arange(sum(lengths)), np.cumsum([0, *lengths]), np.arange(sum(lengths)), None
    )
    odds = np.array([x for own, _ in messages for x in own], float)
    groups = np.array([g for own, kinds in messages for g in kinds[: len(own)]], np.uint8)

    found = group_means(documents, groups, odds, BOUNDED)
    assert found == pytest.approx(np.array([bounded_means(*each) for each in messages]))


@given(ODDS, st.sampled_from([-1, 1]), st.integers(1, 200))
def test_further_tokens_that_are_weaker_change_nothing(odds, sign, n):
    strongest = [sign * 13.0] * max(STRONGEST)
    full = np.array([*odds, *strongest])
    more = np.append(full, np.full(n, sign * 12.5))
    groups = np.zeros(len(more), np.uint8)

    before = group_means(one_document(len(full)), groups, full, BOUNDED)
    after = group_means(one_document(len(more)), groups, more, BOUNDED)
    assert after == pytest.approx(before)


@given(ODDS, IN_GROUPS, st.integers(0, 59), st.floats(0, 5))
def test_stronger_evidence_for_spam_never_lowers_a_mean(odds, groups, which, more):
    """And weaker evidence for ham, which stays evidence for ham."""
    before = np.array(odds, float)
    after = before.copy()
    if which < len(after) and after[which]:
        after[which] += more if after[which] > 0 else min(more, -after[which] / 2)
    groups, document = np.array(groups, np.uint8)[: len(after)], one_document(len(after))

    first, second = (group_means(document, groups, x, BOUNDED) for x in (before, after))
    assert (second >= first - 1e-12).all()


def test_neither_of_two_classes_that_are_not_ham_and_spam_is_bounded():
    odds = np.array([-3.0] * 50 + [4.0] * 50)
    table = CountTable(("a", "b"), *[None] * 4)
    means = group_means(one_document(100), np.zeros(100, np.uint8), odds, limits_of(table))

    assert means[0, TEXT] == pytest.approx(50 / (100 + DAMPING))
