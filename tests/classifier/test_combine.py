"""Combining against numbers worked by hand, loops over tokens and models trained again."""

import os
import subprocess
import sys
from math import e

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize

from nbspam.classifier import combine, fitting
from nbspam.counts.table import CountTable
from nbspam.settings import PRESENCE, TokenSettings
from nbspam.tokens.definition import GROUPS, UNVOUCHED, Token, reference_key
from nbspam.tokens.sparse import Documents, Vocabulary
from nbspam.tokens.tokenizer import groups_of, tokenize
from support import count_batch, examples, message

TEXT, SUBJECT, PAIRS, HIDDEN, PEOPLE, SIGNS = map(
    GROUPS.index, ("text", "subject", "pairs", "hidden", "people", "signs")
)
HAM_OR_SPAM, A_OR_B = ("ham", "spam"), ("a", "b")
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
    return table, table.in_columns(batch.documents), np.searchsorted(table.classes, labels)


def log_odds_of(combination, table, documents):
    joint = combination.joint(table, documents, PRESENCE)
    return joint[:, 1] - joint[:, 0]


@given(DOCUMENTS)
@examples(40)
def test_a_score_is_a_sum_over_tokens(documents):
    table, documents, _ = counted(documents)
    rng = np.random.default_rng(documents.n_docs)
    correction = rng.normal(size=len(table.vocabulary)).astype(np.float32)
    combination = combine.Combination(rng.normal(size=len(GROUPS) + 1), correction)
    odds = combine.log_odds(table.feature_count, table.class_count, table.vocabulary.groups)

    found = log_odds_of(combination, table, documents)
    for row in range(documents.n_docs):
        own = documents.one(row).tokens
        groups = table.vocabulary.groups[own]
        means = bounded_means(odds[own].tolist(), groups.tolist())
        words = own[groups != PAIRS]
        total = correction[words].sum() / np.sqrt(max(len(words), 1))
        expected = means @ combination.worth[:-1] + combination.worth[-1]
        expected += max(-combine.MOST_NATS, min(total, combine.MOST_NATS))
        assert found[row] == pytest.approx(expected, abs=1e-6)


ODDS = st.lists(st.floats(-9, 9), max_size=40)
BOUNDED = combine.limits_of(CountTable(HAM_OR_SPAM, *[None] * 4))


def one_document(n):
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
    worth = fitting.fit_worth(rng.normal(size=(50, len(GROUPS))), rng.integers(0, 2, 50), BOUNDED)
    combination = combine.Combination(worth, rng.normal(size=n).astype(np.float32))

    scores = [log_odds_of(combination, table, one_document(m))[0] for m in range(n_seen, n + 1)]
    assert (np.diff(scores) >= -1e-12).all()


@given(ODDS, st.lists(st.sampled_from(range(len(GROUPS))), min_size=1), st.integers(0, 99))
def test_shares_and_constant_add_up_to_the_score(odds, groups, seed):
    rng = np.random.default_rng(seed)
    table = counts_like(odds, np.resize(groups, len(odds)))
    correction = (5 * rng.normal(size=len(odds))).astype(np.float32)
    combination = combine.Combination(rng.normal(size=len(GROUPS) + 1), correction)

    document = one_document(len(odds))
    for towards in (0, 1):
        shares, constant = combination.shares(table, document, PRESENCE, towards, 1 - towards)
        score = log_odds_of(combination, table, document)[0] * (1 if towards else -1)
        assert shares.sum() + constant == pytest.approx(score, rel=1e-9, abs=1e-9)


def test_shares_of_corrections_are_bounded_and_of_equally_strong_tokens_the_first_count():
    table = counts_like([0.0] * 4, np.full(4, TEXT))
    combination = combine.Combination(np.zeros(len(GROUPS) + 1), np.float32([-30, -20, 4, 6]))
    shares, _ = combination.shares(table, one_document(4), PRESENCE, 1, 0)
    assert shares == pytest.approx(np.array([-30, -20, 4, 6]) * combine.MOST_NATS / 40)
    n = 3 * combine.STRONGEST[1]
    table = counts_like([5.0] * n, np.full(n, TEXT))
    combination = combine.Combination(np.ones(len(GROUPS) + 1), np.zeros(n, np.float32))
    shares, _ = combination.shares(table, one_document(n), PRESENCE, 1, 0)
    assert np.flatnonzero(shares).tolist() == list(range(combine.STRONGEST[1]))


@pytest.mark.parametrize(
    ("classes", "group"), [(HAM_OR_SPAM, TEXT), (HAM_OR_SPAM, combine.RUNS), (A_OR_B, TEXT)]
)
@pytest.mark.parametrize("number", [1, 109, 110, 121, 400])
def test_of_corrections_only_the_strongest_count(number, classes, group, monkeypatch):
    monkeypatch.setattr(combine, "MOST_FOR_HAM", 100)
    monkeypatch.setattr(combine, "MOST_FOR_SPAM", 120)
    # Of 121, several at the edges are equally strong.
    size = np.arange(number) // 2 + 1
    size = np.random.default_rng(number).permutation(size) / number**2
    groups = np.append(np.full(2 * number, group), combine.RUNS)  # the last counts always
    table = counts_like([0.0] * len(groups), groups)._replace(classes=classes)
    correction = np.append(np.column_stack([-2 * size, size]), 0.5).astype(np.float32)
    combination = combine.Combination(np.zeros(len(GROUPS) + 1), correction)
    ham = spam = np.sort(size)  # corrections for ham are twice as strong
    if (classes, group) == (HAM_OR_SPAM, TEXT) and number > 109:
        ham, spam = ham[-100:], spam[-120:]
    expected = (0.5 + spam.sum() - 2 * ham.sum()) / np.sqrt(len(groups))
    document = one_document(len(groups))
    assert log_odds_of(combination, table, document) == pytest.approx(expected, abs=1e-6)
    shares, _ = combination.shares(table, document, PRESENCE, 1, 0)
    assert [(shares < 0).sum(), (shares > 0).sum()] == [len(ham), len(spam) + 1]
    assert shares.sum() == pytest.approx(expected, abs=1e-6)


def test_corrections_of_a_long_text_do_not_depend_on_its_neighbours(monkeypatch):
    monkeypatch.setattr(combine, "MOST_FOR_HAM", 40)
    monkeypatch.setattr(combine, "MOST_FOR_SPAM", 50)
    table = counts_like([0.0] * 200, np.full(200, TEXT))
    correction = np.random.default_rng(0).normal(0, 0.01, 200).astype(np.float32)
    combination = combine.Combination(np.zeros(len(GROUPS) + 1), correction)
    bounds, columns = np.cumsum([0, 10, 200, 0, 150]), [*range(10), *range(200), *range(150)]
    documents = Documents(np.arange(200), bounds, np.array(columns), None)

    alone = [log_odds_of(combination, table, documents.part(n, n + 1))[0] for n in range(4)]
    assert log_odds_of(combination, table, documents) == pytest.approx(alone, abs=1e-12)


def means_of_others(documents, row):
    """Return a message's means by a table that was counted without it."""
    (subject, sender, _), rest = documents[row], documents[:row] + documents[row + 1 :]
    table, *_ = counted(rest)
    batch = tokenize([message(**{"subject": subject, "from": sender})], TokenSettings(pairs=True))
    known = table.in_columns(batch.documents)
    groups = table.vocabulary.groups[known.tokens]
    odds = combine.log_odds(table.feature_count[known.tokens], table.class_count, groups)
    limits = combine.limits_of(table)
    return combine.group_means(known, groups, odds.take(known.columns), limits)[0]


def test_long_messages_left_out_are_bounded_alike():
    words = [f"{a}{b}" for a in "abcdefgh" for b in "abcdefgh"]
    documents = [
        (" ".join(words[i : i + 20]), "x", "ham" if i < 20 else "spam")
        for i in [*range(3), *range(30, 33)]
        for _ in range(9)
    ]
    table, known, y = counted(documents)
    means = fitting.means_left_out(table, known, y)

    for row in range(0, len(documents), 9):
        assert means[row] == pytest.approx(means_of_others(documents, row), abs=1e-6)
    unbounded = fitting.means_left_out(table._replace(classes=("a", "b")), known, y)
    assert (np.abs(means[:27, TEXT] - unbounded[:27, TEXT]) > 0.1).all()


@examples(30)
@given(DOCUMENTS)
def test_any_message_left_out_is_judged_by_the_others(documents):
    table, known, y = counted(documents)
    means = fitting.means_left_out(table, known, y)
    for row in range(len(documents)):
        assert means[row] == pytest.approx(means_of_others(documents, row), abs=1e-6)


@pytest.mark.parametrize("halved", [0, 100])
@pytest.mark.parametrize("classes", [HAM_OR_SPAM, A_OR_B])
@examples(25)
@given(documents=DOCUMENTS)
def test_corrections_are_those_of_the_plain_loop(classes, halved, documents):
    """Of ham and spam the first four passes correct half of each score, two by half of the tokens.

    Passes alternate in direction; the result is the mean of where the last two end.
    """
    table, known, y = counted(documents)
    means = fitting.means_left_out(table, known, y)
    worth = fitting.fit_worth(means, y, None)
    uncorrected = means @ worth[:-1] + worth[-1]
    layer = known.only(combine.IN_LAYER[table.vocabulary.groups[known.tokens]])
    keys = table.vocabulary.keys[known.tokens]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fitting, "FEW", halved)
        found = fitting.corrections(layer._replace(tokens=keys), y, uncorrected, classes)

    correction, constant, ends = np.zeros(len(layer.tokens)), 0.0, []
    trusted = fitting.trust(uncorrected, y)
    rows, moved = range(known.n_docs), np.zeros(known.n_docs)
    whole = [layer.one(row).tokens for row in rows]

    def score(row, part):
        total = correction[of[row]].sum() / np.sqrt(max(len(whole[row]), 1))
        return float(part * uncorrected[row] + constant + np.clip(total, -12, 12))

    # By 40 bits of a key the token is hashed; the lowest one divides the tokens.
    bits = keys.astype(object) >> 24
    halves = [bits % 2 == 0, bits % 2 == 1]
    everything = np.full(len(keys), True)
    mail = [(0.5, half) for half in halves] + [(0.5, everything)] * 2 + [(1, everything)] * 3
    passes, looks, begins = mail, (0, 1, 2, 4), (0, 2, 4)
    if halved:
        passes, looks, begins = mail[2:], (0, 2), (0, 2)
    if classes == A_OR_B:
        passes, looks, begins = [(1, everything)] * 5, (0, 2), (0,)
    for number, (part, seen) in enumerate(passes):
        of = [columns[seen[columns].astype(bool)] for columns in whole]
        if number in looks:
            errors = [abs(y[row] - combine.probability(score(row, part))) for row in rows]
            near = [row for row in rows if trusted[row] and errors[row] > fitting.NEAR]
        if number in begins:
            moved[:] = 0
        for row in near if number % 2 == 0 else near[::-1]:
            step = trusted[row] * fitting.correction_step(
                score(row, part), int(y[row]), fitting.ham_step(classes, len(y))
            )
            step = np.clip(moved[row] + step, -1, 1) - moved[row]
            moved[row] += step
            correction[of[row]] += fitting.RATE * step / np.sqrt(max(len(whole[row]), 1))
            constant += 0.2 * step
        ends.append((correction.copy(), constant))
    correction, constant = (sum(two) / 2 for two in zip(*ends[-2:], strict=True))
    assert found.correction == pytest.approx(correction, abs=1e-3)
    assert found.constant == pytest.approx(constant, abs=1e-3)


@pytest.mark.parametrize(("group", "alpha", "weak"), [("text", 0.1, 0), ("route", 0.03, 2)])
def test_log_odds_worked_by_hand(group, alpha, weak):
    # 10 ham and 20 spam; tokens in 0 ham and 4 spam, in 5 and 10, in 2 and 19, and in none.
    groups = np.full(4, GROUPS.index(group), np.uint8)
    count, n = np.array([[0, 4], [5, 10], [2, 19], [0, 0]]), np.array([10, 20])
    strong = np.log((4 + alpha) / (20 + 2 * alpha) / (alpha / (10 + 2 * alpha)))
    middle = np.log((19 + alpha) / (20 + 2 * alpha) / ((2 + alpha) / (10 + 2 * alpha)))

    assert strong > 2 > middle > 1.5  # a word may be as weak as 1.5 nats, any other token as 2
    found = combine.log_odds(count, n, groups)
    assert found == pytest.approx([strong, 0, 0 if weak > middle else middle, 0])


ODDS_AND_ZEROS = st.lists(
    st.one_of(st.just(0.0), st.floats(2, 12), st.floats(-12, -2), st.integers(-5, 5)), max_size=60
)
IN_GROUPS = st.lists(st.integers(0, len(GROUPS) - 1), min_size=60, max_size=60)


def bounded_means(odds, groups):
    """Return a document's means by sorted lists."""
    means, of = [], [TEXT if group == SUBJECT else group for group in groups]
    for group in range(len(GROUPS)):
        own = sorted(x for x, g in zip(odds, of, strict=False) if g == group and x)
        ham = [x for x in own if x < 0][: combine.STRONGEST[0]]
        spam = [x for x in own if x > 0][-combine.STRONGEST[1] :]
        if group == HIDDEN:
            means.append(sum(spam) / (combine.STRONGEST[1] + combine.DAMPING))
        elif group in (PEOPLE, SIGNS):
            means.append(sum(ham + spam))
        else:
            means.append(sum(ham + spam) / (len(ham + spam) + combine.DAMPING))
    return np.array(means)


@given(st.lists(st.tuples(ODDS_AND_ZEROS, IN_GROUPS), min_size=1, max_size=4))
@examples(40)
def test_means_are_those_of_sorted_lists(messages):
    offsets = np.cumsum([0, *(len(odds) for odds, _ in messages)])
    documents = Documents(np.arange(offsets[-1]), offsets, np.arange(offsets[-1]), None)
    odds = np.array([x for own, _ in messages for x in own], float)
    groups = np.array([g for own, kinds in messages for g in kinds[: len(own)]], np.uint8)
    found = combine.group_means(documents, groups, odds, BOUNDED)
    assert found == pytest.approx(np.array([bounded_means(*each) for each in messages]))


@given(ODDS_AND_ZEROS, IN_GROUPS, st.integers(0, 59), st.floats(0, 5))
def test_stronger_evidence_for_spam_never_lowers_a_mean(odds, groups, which, more):
    """And weaker evidence for ham, which stays evidence for ham."""
    before = np.array(odds, float)
    after = before.copy()
    if which < len(after) and after[which]:
        after[which] += more if after[which] > 0 else min(more, -after[which] / 2)
    groups, document = np.array(groups, np.uint8)[: len(after)], one_document(len(after))

    first, second = (combine.group_means(document, groups, x, BOUNDED) for x in (before, after))
    assert (second >= first - 1e-12).all()


def test_of_a_stranger_who_poses_as_answering_one_token_counts_for_ham():
    fact = reference_key(Token("people", UNVOUCHED[0].encode()))
    keys = np.array([1, 2, 3, 4, fact], np.uint64)
    groups, odds = groups_of(keys), np.tile([-4.0, -3.0, -5.0, 6.0, 1.0], 2)
    assert groups.tolist() == [PAIRS] * 4 + [PEOPLE]
    both = Documents(keys, np.array([0, 5, 9]), np.array([0, 1, 2, 3, 4, 0, 1, 2, 3]), None)
    limits = combine.limits_for(BOUNDED, both, groups)

    means = combine.group_means(both, groups, odds[:9], limits)
    assert means[:, PEOPLE].tolist() == [1, 0]
    assert means[:, PAIRS] == pytest.approx(
        [(6 - 5) / (2 + combine.DAMPING), (6 - 5 - 4 - 3) / (4 + combine.DAMPING)]
    )
    assert combine.limits_for(BOUNDED, both, groups[:4]) is BOUNDED
    assert combine.limits_for(None, both, groups) is None


def evidence(seed, n=300):
    """Return means of groups and classes that agree with them, mostly."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(n, len(GROUPS))) * rng.uniform(0.2, 3, len(GROUPS))
    worth = rng.normal(0.5, 0.5, len(GROUPS))
    return means, (rng.random(n) < combine.probability(means @ worth - 1.0)).astype(np.int64)


def penalised_loss(worth, means, y):
    """Return the log loss of a logistic regression and its penalty."""
    z = np.where(y == 1, -1, 1) * (means @ worth[:-1] + worth[-1])
    penalty = ((worth - fitting.prior_worth(len(y))) ** 2).sum()
    return np.logaddexp(0.0, z).sum() + fitting.RIDGE / 2 * penalty


@pytest.mark.parametrize(("seed", "n"), [(0, 300), (1, 300), (2, 99)])
def test_the_worth_is_that_of_an_independent_logistic_regression(seed, n):
    means, y = evidence(seed, n)
    theirs = minimize(penalised_loss, np.zeros(len(GROUPS) + 1), (means, y), "BFGS")
    assert fitting.fit_worth(means, y, None) == pytest.approx(theirs.x, abs=1e-4)


FITTED = """
import numpy as np
from nbspam.classifier.blend import _fit_worth
from nbspam.classifier.fitting import fit_worth
from nbspam.tokens.definition import GROUPS

rng = np.random.default_rng(0)
two, many = rng.normal(size=(20_001, len(GROUPS))), rng.normal(size=(5_001, 19, 3))
print(fit_worth(two, rng.integers(0, 2, len(two)), None).tobytes().hex())
print(_fit_worth(many, rng.integers(0, 3, len(many))).tobytes().hex())
"""


def test_the_number_of_threads_of_linear_algebra_changes_no_digit():
    program, found = [sys.executable, "-c", FITTED], set()
    for number in ("1", "2"):
        known = os.environ | {"OPENBLAS_NUM_THREADS": number}
        found.add(subprocess.run(program, check=True, capture_output=True, env=known).stdout)
    assert len(found) == 1


@pytest.mark.parametrize(("n", "of_text"), [(0, 0.75), (98, 0.75), (100, 0.5)])
def test_without_evidence_groups_are_worth_what_is_assumed(n, of_text):
    worth = fitting.fit_worth(np.zeros((n, len(GROUPS))), np.arange(n) % 2, None)
    assumed = {"people": 1.0, "signs": 0.3, "text": of_text}  # the first two are not averaged
    assert worth.tolist() == [*(assumed.get(group, 0.5) for group in GROUPS), 0.0]


def test_hidden_words_that_point_to_ham_are_worth_nothing():
    means, y = evidence(0)
    means[:, HIDDEN] = np.where(y == 0, 5.0, 0.0)
    without = means.copy()
    without[:, HIDDEN] = 0.0

    assert fitting.fit_worth(means, y, None)[HIDDEN] < 0
    bounded = fitting.fit_worth(means, y, BOUNDED)
    assert bounded[HIDDEN] == 0
    others = np.arange(len(bounded)) != HIDDEN
    assert bounded[others] == pytest.approx(fitting.fit_worth(without, y, None)[others])


# ---- corrections ----


def test_steps_worked_by_hand_of_which_that_of_ham_grows_with_the_number_of_messages():
    # Log-odds of 1 are a probability of e / (1 + e).
    p = e / (1 + e)
    assert fitting.correction_step(0.0, 1, 1.5) == 0.5
    assert fitting.correction_step(0.0, 0, 1.5) == -0.75
    assert fitting.correction_step(1.0, 1, 1.5) == pytest.approx(1 - p)
    assert fitting.correction_step(1.0, 0, 1.5) == pytest.approx(-1.5 * p)
    assert [fitting.ham_step(HAM_OR_SPAM, n) for n in (0, 100, 200, 5000)] == [1, 1.25, 1.5, 1.5]
    assert fitting.ham_step(A_OR_B, 5000) == 1
    assert combine.probability(np.array([-1e9, 0, 1e9])) == pytest.approx([0, 0.5, 1])


@given(st.floats(-20, 20), st.sampled_from([0, 1]))
def test_only_a_message_that_is_not_certain_and_right_makes_a_step(score, truth):
    error = abs(truth - float(combine.probability(score)))
    assume(abs(error - fitting.NEAR) > 1e-12)
    assert (fitting.correction_step(score, truth, 1.5) != 0) == (error > fitting.NEAR)


def test_what_exceeds_the_bound_does_not_help_while_corrections_are_learned():
    # Three spams have the same token, and scores without corrections that say ham by more than
    # these may move; they are believed because the others are more decided.
    layer = Documents(
        np.arange(5, dtype=np.uint64), np.arange(8), np.array([0, 0, 0, 1, 2, 3, 4]), None
    )
    score = np.array([-combine.MOST_NATS - 20] * 3 + [2 * combine.MOST_NATS + 50] * 4)
    found, constant, _ = fitting.corrections(layer, np.ones(7, np.int64), score, HAM_OR_SPAM)
    assert found[0] > combine.MOST_NATS
    z = float(score[0] + constant + combine.bounded(found[0]))
    assert fitting.correction_step(z, 1, 1.5) > 0.99


@pytest.mark.parametrize(("classes", "most"), [(HAM_OR_SPAM, 3), (A_OR_B, 1)])
@pytest.mark.parametrize(("truth", "sign"), [(1, 1), (0, -1)])
def test_the_steps_of_one_message_together_are_bounded(truth, sign, classes, most):
    # Nothing else contradicts the first message, so each pass could take a step.
    layer = Documents(np.arange(3, dtype=np.uint64), np.arange(4), np.arange(3), None)
    score = np.array([-60.0, 160.0, 160.0]) * sign
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fitting, "FEW", 3)
        found, constant, _ = fitting.corrections(layer, np.full(3, truth), score, classes)
    assert found.tolist() == pytest.approx([sign * fitting.RATE * most, 0, 0])
    assert constant == pytest.approx(sign * fitting.BIAS_RATE * most)


def test_trust_worked_by_hand_also_of_what_was_told():
    # The last two are contradicted, but by scores that are undecided.
    score = np.array([5.0, -5.0, 5.0, -5.0, 0.1, -0.1])
    assert fitting.trust(score, np.array([1, 0, 1, 0, 0, 1])).tolist() == [1] * 6
    assert fitting.trust(np.zeros(3), np.array([0, 1, 1])).tolist() == [1] * 3
    assert fitting.trust(np.zeros(0), np.zeros(0, int)).tolist() == []
    # 50 decided messages, of which 5 are contradicted, beside 50 that are assumed: .05 are wrong.
    # So labels below .1 are not believed, labels from .4 on are, and .25 is half way between.
    own = np.array([0.99] * 45 + [0.01] * 5 + [0.1, 0.25, 0.4, 0.5] + [0.6] * 46)
    score = np.log(own / (1 - own))
    found = fitting.trust(score, np.ones(100, int))
    assert found[:50].tolist() == [1] * 45 + [0] * 5
    assert found[50:] == pytest.approx([0, 0.5, 1, 1] + [1] * 46)

    # Two of five contradicted labels were told, and two others: of 48 decided labels 3 are wrong,
    # beside 50 that are assumed.
    own = np.array([0.99] * 45 + [0.01] * 5 + [0.1, 0.15, 0.4, 0.5] + [0.6] * 46)
    score, told = np.log(own / (1 - own)), np.zeros(100, bool)
    told[[45, 46, 50, 99]] = True
    wrong = 3 / (48 + 50)

    found = fitting.trust(score, np.ones(100, int), told)
    expected = [1] * 47 + [0] * 3 + [1, (0.15 - 2 * wrong) / (6 * wrong)] + [1] * 48
    assert found == pytest.approx(expected)
    assert fitting.trust(score, np.ones(100, int), told | True).tolist() == [1] * 100


@given(st.lists(st.tuples(st.floats(-30, 30), st.sampled_from([0, 1])), min_size=1, max_size=50))
def test_the_likelier_a_label_the_more_it_is_believed(messages):
    score, y = np.array([score for score, _ in messages]), np.array([y for _, y in messages])
    of_own = fitting.trust(score, y)[np.argsort(np.where(y == 1, score, -score))]
    assert ((of_own >= 0) & (of_own <= 1)).all()
    assert (np.diff(of_own) >= 0).all()
    assert fitting.trust(-score, 1 - y) == pytest.approx(fitting.trust(score, y))


def test_a_message_that_is_not_believed_leaves_no_trace():
    y = np.array([*[0, 1] * 20, 0])
    score = np.array([*[-4.0, 4.0] * 20, 4.0])  # the others take the last one for class 1

    found, others = (
        fitting.corrections(Documents(np.arange(n), np.arange(n + 1), np.arange(n), None), *each)
        for n, each in ((41, (y, score, A_OR_B)), (40, (y[:40], score[:40], A_OR_B)))
    )
    assert found.correction.tolist() == [*others.correction.tolist(), 0.0]
    assert found.constant == others.constant


def texts(n, share, seed):
    """Return n texts of 20 of 200 tokens, and classes that follow them with some probability."""
    rng = np.random.default_rng(seed)
    present = rng.random((n, 200)).argsort(axis=1)[:, :20]
    says = np.where((present < 100).mean(axis=1) > 0.5, 1, 0)
    layer = Documents(
        np.arange(200, dtype=np.uint64), np.arange(n + 1) * 20, np.sort(present).ravel(), None
    )
    return layer, np.where(rng.random(n) < share, says, 1 - says)


def log_loss(layer, y, learned):
    moved = learned.correction[layer.columns].reshape(-1, 20).sum(axis=1) / np.sqrt(20)
    z = learned.certainty * (learned.constant + combine.bounded(moved))
    return np.logaddexp(0, np.where(y == 1, -z, z)).mean()


def test_texts_whose_classes_overlap_are_judged_less_certainly_and_that_is_right():
    learned, clear, mail = (
        fitting.corrections(*texts(600, share, 0), np.zeros(600), classes)
        for share, classes in ((0.7, A_OR_B), (1.0, A_OR_B), (0.7, HAM_OR_SPAM))
    )
    assert 0 < 2 * learned.certainty < min(1, clear.certainty)
    others = texts(2000, 0.7, 1)
    assert log_loss(*others, learned) < 0.6 * log_loss(*others, learned._replace(certainty=1.0))
    assert clear.certainty <= mail.certainty == 1  # mail is as certain as it looks


@pytest.mark.parametrize("seed", range(3))
def test_the_certainty_has_the_least_loss_of_messages_that_were_not_learned(seed):
    rng = np.random.default_rng(seed)
    truth, step = rng.integers(0, 2, 300), rng.uniform(-1, 1, 300)
    z = rng.normal(2 * (2 * truth - 1), 6)
    messages = [(None, None, None, None, label, 1.0) for label in truth.tolist()]
    passes = [list(zip(z, each, strict=True)) for each in (step, 0 * step)]

    def loss(factor):
        unlearned = z - (fitting.RATE + fitting.BIAS_RATE) * step
        losses = np.logaddexp(0, np.where(truth == 1, -1, 1) * factor * unlearned)
        return losses.sum() + fitting.CERTAINTY / 2 * (factor - 1) ** 2

    found = fitting._certainty(messages, *passes, A_OR_B)
    assert 0.1 < found < 0.95
    assert loss(found) < min(map(loss, np.linspace(0.05, 1, 500))) + 1e-6
