"""Blending against the plain models, numbers worked by hand and models trained again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from nbspam.classifier.blend import (
    _HIGHEST,
    _LOWEST,
    _RIDGE,
    PRIOR_TAIL,
    Blend,
    GroupSums,
    _fit_worth,
    _left_out,
    believed,
    fit_blend,
    group_sums,
    judgements,
    log_posterior,
)
from nbspam.classifier.training import learn_items
from nbspam.counts.table import entry_weights
from nbspam.settings import LOG_LENGTH, MANY, TokenSettings
from nbspam.tokens.definition import GROUPS
from nbspam.tokens.tokenizer import tokenize
from nbspam.verdicts import posterior
from support import THREE_TOPICS, count_batch, examples, message, texts

TEXT = GROUPS.index("text")
WORDS = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6).map(" ".join)
DOCUMENTS = st.lists(st.tuples(WORDS, st.sampled_from("xyz")), min_size=2, max_size=25)


def counted(documents):
    """Return table, documents and y of (text, label) pairs, one of every class x, y, z added."""
    texts = [text for text, _ in documents] + ["a", "b", "c"]
    labels = [label for _, label in documents] + ["x", "y", "z"]
    batch = tokenize([message(body=text) for text in texts], TokenSettings())
    table = count_batch(batch, labels, LOG_LENGTH)
    return table, table.in_columns(batch.documents), np.searchsorted(table.classes, labels)


def blend_of(table, worth_of_text, prior=0.0, tail=5.0):
    """Return a blend in which the text alone is worth something."""
    worth = np.zeros((len(GROUPS), 2))
    worth[TEXT] = worth_of_text
    return Blend(worth, prior, tail, group_sums(table))


def trained(items):
    return learn_items(items, MANY["text"]).classifier


def test_the_two_judgements_worked_by_hand_have_an_alpha_each():
    # Two tokens; the first weighs 3 in class 0 and 1 in class 1, the second 0 and 4.
    count, groups = np.array([[3.0, 1.0], [0.0, 4.0]]), np.array([TEXT, TEXT], np.uint8)
    sums = GroupSums(np.zeros((len(GROUPS), 2)), np.zeros(len(GROUPS)))
    sums.total[TEXT], sums.size[TEXT] = (3.0, 5.0), 2
    (complement, multinomial), (_, rare) = judgements(count, groups, sums)

    # By complement, a class gets what the other one does not say: the alpha is 0.03.
    others = np.log([(1 + 0.03) / (5 + 2 * 0.03), (3 + 0.03) / (3 + 2 * 0.03)])
    assert complement == pytest.approx(others.mean() - others)
    own = np.log([(3 + 0.003) / (3 + 2 * 0.003), (1 + 0.003) / (5 + 2 * 0.003)])
    assert multinomial == pytest.approx(own - own.mean())
    # A token that a class never had shows the alphas most.
    own = np.log([0.003 / (3 + 2 * 0.003), (4 + 0.003) / (5 + 2 * 0.003)])
    assert rare == pytest.approx(own - own.mean())


def test_weights_are_the_judgements_times_their_worth(monkeypatch):
    table, documents, _ = counted([("a b b", "x"), ("b c", "y"), ("c d d e", "z"), ("a", "z")])
    blend = blend_of(table, (3.0, 0.5), prior=2.0)

    judged = judgements(table.feature_count, table.vocabulary.groups, group_sums(table))
    weight = 3.0 * judged[:, 0] + 0.5 * judged[:, 1]
    assert blend.token_weights(table) == pytest.approx(weight, rel=1e-12)
    monkeypatch.setattr("nbspam.classifier.blend._ROWS", 3)
    assert blend.token_weights(table) == pytest.approx(weight, rel=1e-12)
    # x has 2 messages, y 2 and z 3.
    log = np.log([2, 2, 3])
    value = entry_weights(documents, table.vocabulary.groups, LOG_LENGTH)
    for row, found in enumerate(blend.joint(table, documents, LOG_LENGTH)):
        some = documents.rows() == row
        score = value[some] @ weight[documents.columns[some]] + 2.0 * (log - log.mean())
        assert found == pytest.approx(log_posterior(score[None], 5.0)[0])


@given(
    st.lists(st.lists(st.floats(-50, 50), min_size=3, max_size=3), min_size=1, max_size=5),
    st.floats(0.5, 100),
)
def test_a_posterior_is_proper_and_keeps_the_order(scores, tail):
    score = np.array(scores)
    log = log_posterior(score, tail)
    assert np.exp(log).sum(axis=1) == pytest.approx(1)
    for k in range(3):
        best = log[np.arange(len(log)), score.argmax(axis=1)]
        assert (log[:, k] <= best + 1e-12).all()


@pytest.mark.parametrize(
    ("tail", "expected"),
    [(1e9, posterior(np.array([[4.0, 1.0, 0.0]]))[0]), (1.0, np.array([20, 5, 4]) / 29)],
)
def test_a_long_tail_is_a_softmax_and_a_short_one_believes_less(tail, expected):
    # (1 + 3 / 1)^-1 and (1 + 4 / 1)^-1 against 1.
    assert np.exp(log_posterior(np.array([[4.0, 1.0, 0.0]]), tail))[0] == pytest.approx(expected)


@pytest.mark.parametrize("gap", [0.0, 1e-12, 0.5, 30.0])
def test_what_is_believed_of_a_gap_is_left_of_the_log_odds(gap):
    log = log_posterior(np.array([[gap, 0.0, -50.0]]), 4.0)[0]
    assert believed(gap, 4.0) * gap == pytest.approx(log[0] - log[1], abs=1e-9)
    assert 0 < believed(gap, 4.0) <= 1


def prior_and_loss(judged, y):
    """Return the logarithms of worth and tail that are assumed, and their penalised log loss."""
    prior = np.log([*[1.0] * judged.shape[1], PRIOR_TAIL])

    def loss(theta):
        score = np.einsum("njk,j->nk", judged, np.exp(theta[:-1]))
        log = log_posterior(score, float(np.exp(theta[-1])))
        return _RIDGE / 2 * ((theta - prior) ** 2).sum() - log[np.arange(len(y)), y].sum()

    return prior, loss


@pytest.mark.parametrize("seed", range(4))
def test_no_other_worth_explains_better(seed):
    rng = np.random.default_rng(seed)
    judged = rng.normal(size=(200, 3, 4)) * np.array([2.0, 1.0, 0.5])[:, None]
    score = np.einsum("njk,j->nk", judged, [1.5, 0.4, 0.1])
    y = np.array([rng.choice(4, p=np.exp(row)) for row in log_posterior(score, 3.0)])
    prior, loss = prior_and_loss(judged, y)
    ours = np.log(_fit_worth(judged, y))
    theirs = minimize(loss, ours, method="BFGS")
    assert loss(ours) < minimize(loss, prior, method="BFGS").fun + 1e-3 < loss(prior) - 1
    assert loss(ours) < theirs.fun + 1e-3
    assert ours == pytest.approx(theirs.x, abs=0.02)


@pytest.mark.parametrize("seed", range(1, 4))
def test_whole_steps_that_explain_worse_are_halved(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 60)
    judged = 3 * rng.normal(size=(60, 5, 3))
    judged[np.arange(60), :, y] += 1.5 * rng.normal(size=5)
    prior, loss = prior_and_loss(judged, y)
    bounds = [(np.log(_LOWEST), np.log(_HIGHEST))] * len(prior)
    best = minimize(loss, prior, method="L-BFGS-B", bounds=bounds).fun
    assert loss(np.log(_fit_worth(judged, y))) < best + 0.05


@examples(25)
@given(DOCUMENTS)
def test_any_documents_give_a_finite_blend(documents):
    table, known, y = counted(documents)
    blend = fit_blend(table, known, y, LOG_LENGTH)
    assert (blend.worth > 0).all()
    assert blend.tail > 0
    assert np.isfinite(blend.token_weights(table)).all()
    assert np.isfinite(blend.joint(table, known, LOG_LENGTH)).all()


def test_messages_left_out_are_judged_as_if_never_counted():
    texts = ["a b b", "b c", "c d d a", "a d", "b c c c", "a c d", "b d"]
    documents = [(text, "xyz"[n % 3]) for n, text in enumerate(texts)]
    table, known, y = counted(documents)
    out = known.part(0, 2).without_unused()
    judged = _left_out(table, group_sums(table), out, y[:2], LOG_LENGTH)

    others, _, _ = counted(documents[2:])  # which have all four words
    batch = tokenize([message(body=text) for text in texts[:2]], TokenSettings())
    ours = judged[:, 2 * TEXT] * 1.0 + judged[:, 2 * TEXT + 1] * 2.0
    asked = others.in_columns(batch.documents)
    theirs = blend_of(others, (1.0, 2.0)).joint(others, asked, LOG_LENGTH)
    assert log_posterior(ours, 5.0) == pytest.approx(theirs, abs=1e-9)
    assert np.ptp(ours, axis=1).min() > 0.1


def test_a_blend_is_fitted_to_every_message_as_judged_without_its_fifth():
    texts = ["a b c", "b d", "c e f", "a d g", "h a", "b c d e"] * 4
    table, documents, y = counted([(text, "xyz"[n % 3]) for n, text in enumerate(texts)])
    n_docs, sums = documents.n_docs, group_sums(table)
    judged = np.empty((n_docs, 2 * len(GROUPS) + 1, 3))
    log = np.log(table.class_count)
    judged[:, -1] = log - log.mean()
    for first in range(5):
        fifth = np.arange(first, n_docs, 5)
        part = documents.take(fifth).without_unused()
        judged[fifth, :-1] = _left_out(table, sums, part, y[fifth], LOG_LENGTH)
    blend = fit_blend(table, documents, y, LOG_LENGTH)

    found = [*blend.worth.ravel(), blend.prior, blend.tail]
    assert found == pytest.approx(_fit_worth(judged, y), rel=1e-6)


def test_words_of_one_message_alone_change_no_worth():
    table, known, y = counted([(f"only{i}", "xyz"[i % 3]) for i in range(60)])
    blend = fit_blend(table, known, y, LOG_LENGTH)
    assert blend.worth[TEXT] == pytest.approx([1, 1])


def test_the_work_is_bounded_by_looking_at_fewer_messages(monkeypatch):
    table, known, y = counted([("a b", "x"), ("b c", "y"), ("c d", "z")] * 40)
    whole = fit_blend(table, known, y, LOG_LENGTH)
    # 123 messages of 3 classes: every fourth is looked at.
    some = np.arange(len(y)) % 4 == 0
    same = fit_blend(table, known.take(some), y[some], LOG_LENGTH)
    monkeypatch.setattr("nbspam.classifier.blend._MAX_CELLS", 100)
    part = fit_blend(table, known, y, LOG_LENGTH)

    assert part.tail != whole.tail
    assert part.worth[TEXT, 0] == pytest.approx(whole.worth[TEXT, 0], rel=0.7)
    assert (part.worth == same.worth).all()


def test_many_classes_are_blended_unasked(nbspam, model, tmp_path):
    found = texts(30, 8, topics=THREE_TOPICS)
    rows = [f"{item.label}\t{item.data.decode()}\n" for item in found]
    (tmp_path / "topics.tsv").write_text("".join(rows))
    assert nbspam("train", tmp_path / "topics.tsv")[0] == 0

    facts = nbspam.json("info")["settings"]
    assert (facts["weighting"], facts["combine"]) == ("log-length", True)
    values = nbspam.json("explain", stdin=b"tulip and seed, a wave")
    assert values["label"] == "soil"
    shares = sum(row["contribution"] for row in values["tokens"])
    assert shares + values["constant"] == pytest.approx(values["score"])
    assert nbspam("words", "-n", "3")[0] == 0
