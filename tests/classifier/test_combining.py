"""Combining against numbers worked by hand, loops over tokens and models trained anew."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.classifier.combining import (
    DAMPING,
    STRONGEST,
    Combination,
    fit,
    fit_worth,
    group_means,
    limits_of,
    log_odds,
    means_left_out,
)
from nbspam.classifier.layer import (
    MOST,
    MOST_OF_ONE,
    NEAR,
    RATE,
    correction_step,
    ham_step,
    probability,
    trust,
)
from nbspam.counts.table import CountTable
from nbspam.settings import PRESENCE, TokenSettings
from nbspam.tokens.definition import GROUPS
from nbspam.tokens.documents import Documents
from nbspam.tokens.tokenizer import tokenize
from nbspam.tokens.vocabulary import Vocabulary
from support import count_batch, examples, message

TEXT, SUBJECT, PAIRS, HIDDEN = map(GROUPS.index, ("text", "subject", "pairs", "hidden"))
HAM_OR_SPAM = ("ham", "spam")
WORDS = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6).map(" ".join)
DOCUMENTS = st.lists(
    st.tuples(WORDS, WORDS, st.sampled_from(HAM_OR_SPAM)), min_size=2, max_size=25
)


def counted(documents):
    """Return table, documents and y of (subject, sender, label) triples.

    An empty message of each class is added, behind the others.
    """
    messages = [
        message(**{"subject": subject, "from": sender}) for subject, sender, _ in documents
    ]
    labels = [label for *_, label in documents] + list(HAM_OR_SPAM)
    batch = tokenize([*messages, message(), message()], TokenSettings(pairs=True))
    table = count_batch(batch, labels, PRESENCE)
    return table, table.known(batch.documents), np.searchsorted(table.classes, labels)


def log_odds_of(combination, table, documents):
    """Return the log-odds of spam that a combination answers with."""
    joint = combination.joint(table, documents, PRESENCE)
    return joint[:, 1] - joint[:, 0]


# --- scores ------------------------------------------------------------------------------


@given(DOCUMENTS)
def test_a_score_is_a_sum_over_tokens(documents):
    table, documents, _ = counted(documents)
    rng = np.random.default_rng(documents.n_docs)
    correction = rng.normal(size=len(table.vocabulary)).astype(np.float32)
    combination = Combination(rng.normal(size=len(GROUPS) + 1), correction)
    odds = log_odds(table.feature_count, table.class_count)
    groups = np.where(table.vocabulary.groups == SUBJECT, TEXT, table.vocabulary.groups)

    found = log_odds_of(combination, table, documents)
    for row in range(documents.n_docs):
        own = documents.one(row).tokens
        in_layer = own[table.vocabulary.groups[own] != PAIRS]
        total = combination.worth[-1]
        for group in range(len(GROUPS)):
            of_group = sorted(x for x in odds[own[groups[own] == group]].tolist() if x)
            ham = [x for x in of_group if x < 0][: STRONGEST[0]]
            counts = ham + [x for x in of_group if x > 0][-STRONGEST[1] :]
            total += combination.worth[group] * sum(counts) / (len(counts) + DAMPING)
        corrected = sum(correction[in_layer].tolist()) / np.sqrt(max(len(in_layer), 1))
        total += max(-MOST, min(corrected, MOST))
        assert found[row] == pytest.approx(total, abs=1e-6)


ODDS = st.lists(st.floats(-9, 9), max_size=40)
BOUNDED = limits_of(CountTable(HAM_OR_SPAM, *[None] * 4))


def one_document(n):
    """Return a document of n tokens."""
    return Documents(np.arange(n), np.array([0, n]), np.arange(n), None)


def counts_like(odds, groups):
    """Return a table of tokens with about these log-odds."""
    n = len(odds)
    vocabulary = Vocabulary(np.arange(n), np.zeros(0, np.uint8), np.zeros(n + 1, int), groups)
    count = np.rint(100 * np.exp(np.outer(odds, [-0.5, 0.5]))).clip(0, 1000)
    return CountTable(HAM_OR_SPAM, np.full(2, 1000.0), vocabulary, count, np.ones(n, int))


@given(ODDS, ODDS, st.integers(0, 99))
def test_hidden_words_never_lower_the_score(seen, hidden, seed):
    rng = np.random.default_rng(seed)
    n, n_seen = len(seen) + len(hidden), len(seen)
    table = counts_like([*seen, *hidden], np.repeat([TEXT, HIDDEN], [n_seen, len(hidden)]))
    worth = fit_worth(rng.normal(size=(50, len(GROUPS))), rng.integers(0, 2, 50), BOUNDED)
    combination = Combination(worth, rng.normal(size=n).astype(np.float32))

    scores = [log_odds_of(combination, table, one_document(m))[0] for m in range(n_seen, n + 1)]
    assert (np.diff(scores) >= -1e-12).all()


@given(ODDS, st.lists(st.sampled_from(range(len(GROUPS))), min_size=1), st.integers(0, 99))
def test_shares_and_constant_add_up_to_the_score(odds, groups, seed):
    rng = np.random.default_rng(seed)
    table = counts_like(odds, np.resize(groups, len(odds)))
    correction = (5 * rng.normal(size=len(odds))).astype(np.float32)
    combination = Combination(rng.normal(size=len(GROUPS) + 1), correction)

    document = one_document(len(odds))
    for towards in (0, 1):
        shares, constant = combination.shares(table, document, PRESENCE, towards, 1 - towards)
        score = log_odds_of(combination, table, document)[0] * (1 if towards else -1)
        assert shares.sum() + constant == pytest.approx(score, rel=1e-9, abs=1e-9)


def test_the_share_of_corrections_is_bounded_too():
    table = counts_like([0.0] * 4, np.full(4, TEXT))
    combination = Combination(np.zeros(len(GROUPS) + 1), np.float32([-30, -20, 4, 6]))

    shares, _ = combination.shares(table, one_document(4), PRESENCE, 1, 0)
    assert shares == pytest.approx(np.array([-30, -20, 4, 6]) * MOST / 40)


def test_of_equally_strong_tokens_the_first_count():
    n = 3 * STRONGEST[1]
    table = counts_like([5.0] * n, np.full(n, TEXT))
    combination = Combination(np.ones(len(GROUPS) + 1), np.zeros(n, np.float32))

    shares, _ = combination.shares(table, one_document(n), PRESENCE, 1, 0)
    assert np.flatnonzero(shares).tolist() == list(range(STRONGEST[1]))


# --- left out -----------------------------------------------------------------------------


def means_of_others(documents, row):
    """Return a message's means by a table that was counted without it."""
    rest, own = documents[:row] + documents[row + 1 :], documents[row]
    table, *_ = counted(rest)
    batch = tokenize([message(**{"subject": own[0], "from": own[1]})], TokenSettings(pairs=True))
    known = table.known(batch.documents)
    odds = log_odds(table.feature_count[known.tokens], table.class_count)
    groups = table.vocabulary.groups[known.tokens]
    return group_means(known, groups, odds.take(known.columns), limits_of(table))[0]


UNEQUAL = [
    *[("cheap pills now", "joe", "spam")] * 14,
    *[("lunch on friday", "ann", "ham")] * 5,
    ("cheap lunch", "ann", "ham"),
    ("pills on friday", "joe", "spam"),
    ("nobody else", "writes this", "spam"),
]


def test_means_left_out_are_those_of_a_model_trained_without_the_message():
    table, known, y = counted(UNEQUAL)
    means = means_left_out(table, known, y)

    n_strong = {0: 0, 1: 0}
    for row in range(len(UNEQUAL)):
        expected = means_of_others(UNEQUAL, row)
        assert means[row] == pytest.approx(expected, abs=1e-6)
        n_strong[int(y[row])] += int(np.abs(expected).max() > 0)
    # Zeros are not compared with zeros alone: nearly all messages have strong evidence.
    assert n_strong == {0: 6, 1: 15}
    # And by counts that include the message itself, they would be other numbers.
    odds = log_odds(table.feature_count, table.class_count)
    groups = table.vocabulary.groups
    resubstituted = group_means(known, groups, odds[known.columns], limits_of(table))
    assert (np.abs(means - resubstituted).max(axis=1)[:20] > 1e-3).all()


def test_long_messages_left_out_are_bounded_alike():
    words = [f"{a}{b}" for a in "abcdefgh" for b in "abcdefgh"]
    documents = [
        (" ".join(words[i : i + 20]), "x", "ham" if i < 20 else "spam")
        for i in [*range(3), *range(30, 33)]
        for _ in range(9)
    ]
    table, known, y = counted(documents)
    means = means_left_out(table, known, y)

    for row in range(0, len(documents), 9):
        assert means[row] == pytest.approx(means_of_others(documents, row), abs=1e-6)
    unbounded = means_left_out(table._replace(classes=("a", "b")), known, y)
    assert (np.abs(means[:27, TEXT] - unbounded[:27, TEXT]) > 0.1).all()


@examples(30)
@given(DOCUMENTS)
def test_any_message_left_out_is_judged_by_the_others(documents):
    table, known, y = counted(documents)
    means = means_left_out(table, known, y)

    for row in range(len(documents)):
        assert means[row] == pytest.approx(means_of_others(documents, row), abs=1e-6)


def test_every_message_is_judged_by_the_others():
    # A word that stands in one message only says nothing of that message itself.
    documents = [(f"only{i} common", "x", "ham" if i % 2 else "spam") for i in range(40)]
    table, known, y = counted(documents)
    combination = fit(table, known, y)

    resubstituted = probability(log_odds_of(combination, table, known))[:40]
    assert np.abs(combination.worth[TEXT]) < 1
    assert ((resubstituted > 0.5) == (y[:40] == 1)).mean() > 0.9


# --- what groups are worth ----------------------------------------------------------------


@given(DOCUMENTS)
def test_the_worth_of_groups_hardly_depends_on_the_order_of_documents(documents):
    (table, known, y), (other, others, z) = counted(documents), counted(documents[::-1])

    ours, theirs = fit(table, known, y).worth[:-1], fit(other, others, z).worth[:-1]
    assert ours == pytest.approx(theirs, abs=1e-6)


def test_evidence_that_separates_is_found():
    documents = [("cheap pills now", "joe", "spam"), ("lunch on friday", "ann", "ham")] * 30
    table, known, y = counted(documents)

    p = probability(log_odds_of(fit(table, known, y), table, known))[:-2]
    assert (p[y[:-2] == 1] > 0.95).all()
    assert (p[y[:-2] == 0] < 0.05).all()


# --- corrections --------------------------------------------------------------------------


@examples(25)
@given(DOCUMENTS)
def test_corrections_are_those_of_the_plain_loop(documents):
    """Passes go to and fro; the result is the mean of where the last two end."""
    table, known, y = counted(documents)
    found = fit(table, known, y)

    means = means_left_out(table, known, y)
    worth = fit_worth(means, y, None)
    correction, ends = np.zeros(len(table.vocabulary)), []
    trusted = trust(means @ worth[:-1] + worth[-1], y)
    of = [known.one(row).tokens for row in range(known.n_docs)]
    layer = [own[table.vocabulary.groups[own] != PAIRS] for own in of]
    near, moved = range(known.n_docs), np.zeros(known.n_docs)
    for number in range(5):
        if number in (0, 2):
            near = [
                row
                for row in range(known.n_docs)
                if trusted[row]
                and abs(y[row] - probability(score_of(means[row], worth, correction, layer[row])))
                > NEAR
            ]
        for row in near if number % 2 == 0 else near[::-1]:
            z = score_of(means[row], worth, correction, layer[row])
            step = trusted[row] * correction_step(
                float(z), int(y[row]), ham_step(table.classes, len(y))
            )
            step = np.clip(moved[row] + step, -MOST_OF_ONE, MOST_OF_ONE) - moved[row]
            moved[row] += step
            correction[layer[row]] += RATE * step / np.sqrt(max(len(layer[row]), 1))
            worth[-1] += 0.2 * step
        ends.append((worth.copy(), correction.copy()))
    worth, correction = (sum(two) / 2 for two in zip(*ends[-2:], strict=True))
    assert found.worth == pytest.approx(worth, abs=1e-3)
    assert found.correction == pytest.approx(correction, abs=1e-3)


def score_of(means, worth, correction, own):
    total = correction[own].sum() / np.sqrt(max(len(own), 1))
    return means @ worth[:-1] + worth[-1] + max(-MOST, min(total, MOST))
