"""Mail whose structure is unlike that learned: numbers by hand, laws, and what users see."""

from dataclasses import replace
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.classifier import combine
from nbspam.classifier.combine import Combination, leanings, mean_leaning, tempered
from nbspam.classifier.fitting import usual_leaning, usual_share
from nbspam.classifier.training import learn_items
from nbspam.settings import PRESENCE, PRESETS, TokenSettings
from nbspam.sources.items import Item, read_items
from nbspam.tokens.definition import GROUPS
from nbspam.tokens.sparse import Documents
from nbspam.tokens.tokenizer import tokenize
from support import SPAM, count_batch, examples, json_lines, message, write_mails

SCORES = st.lists(st.floats(-50, 50), min_size=1, max_size=5).map(np.array)
# A head that no model knows, as long as a spammer likes.
UNKNOWN = "".join(f"X-Kq{n}z: v{n}jx\n" for n in range(300)).encode()


@pytest.fixture(scope="module")
def spamlike():
    """Return the counts of twenty hams and ten spams, the documents, and their classes."""
    hams = [message(body=f"offer own{n}") for n in range(20)]
    batch = tokenize([*hams, *(message(body="offer pills") for _ in range(10))], TokenSettings())
    table = count_batch(batch, 20 * ["ham"] + 10 * ["spam"], PRESENCE)
    return table, table.in_columns(batch.documents), np.repeat([0, 1], [20, 10])


def test_a_share_and_a_drawn_score_worked_by_hand():
    # 3 of 5 tokens are unknown; 5 more are taken as known.
    assert combine.share_unknown(np.array([3]), np.array([5])).tolist() == [3 / 10]

    # .1 above the usual share: the divisor is 1 + 40 * .1 = 5.  From log 2, the default cutoff, a
    # score is drawn to log 2; below even odds to 0; between them it stays.
    score = np.array([log(2) + 4, -5.0, 0.3])
    assert tempered(score, np.full(3, 0.2), 0.1) == pytest.approx([log(2) + 4 / 5, -1, 0.3])
    assert tempered(score, np.full(3, 0.1), 0.1).tolist() == score.tolist()
    assert tempered(score, np.ones(3), 0.1) == pytest.approx([log(2) + 0.2, -0.25, 0.3])


@examples(100)
@given(SCORES, st.floats(0, 1), st.floats(0, 1))
def test_no_score_passes_a_cutoff_and_none_changes_its_order(score, share, usual):
    drawn = tempered(score, np.full(len(score), share), usual)

    for cutoff in (0.0, log(2)):
        assert ((drawn > cutoff) <= (score > cutoff)).all()
        assert ((drawn < cutoff) <= (score < cutoff)).all()
    assert (np.abs(drawn) <= np.abs(score) + 1e-12).all()
    away = np.abs(score - np.clip(score, 0, log(2)))
    assert (
        np.abs(drawn - score) <= away * combine.MOST_DOUBT / (1 + combine.MOST_DOUBT) + 1e-12
    ).all()
    order = np.argsort(score, kind="stable")
    assert (np.diff(drawn[order]) >= -1e-12).all()


def test_the_usual_share_is_that_of_messages_left_out():
    # Of each message header:from, header:subject and from:example.org are known to the others, and
    # its own sender, a to t, is not: 1 / (1 + n_known + 5).
    names = "abcdefghijklmnopqrst"
    messages = [message(**{"from": f"{name}{name}@example.org"}) for name in names]
    batch = tokenize(messages, TokenSettings())
    table = count_batch(batch, 10 * ["ham"] + 10 * ["spam"], PRESENCE)
    documents = table.in_columns(batch.documents)
    (n_tokens,) = set(documents.structure.tolist())
    assert np.diff(documents.offsets).tolist() == [n_tokens] * len(names)

    assert usual_share(table, documents) == 1 / (n_tokens + 5)
    assert usual_share(table._replace(classes=("bill", "work")), documents) == 1.0
    assert usual_share(table.forgetting(np.arange(3)), documents) == 1.0
    assert usual_share(table, documents.part(0, 19)) == 1.0  # of nineteen none is usual


def test_leanings_worked_by_hand():
    # Robinson (2003): p = (b / nbad) / (b / nbad + g / ngood), f = (s x + n p) / (s + n), with
    # x = 1/2 and s = 20.  Of 10 ham and 20 spam, 4 and 2: p = .1 / .5, f = (10 + 6 * .2) / 26.
    # No ham and 20 spam: p = 1, f = 30 / 40.  A token that is no word says nothing.
    count, groups = np.array([[4.0, 2], [0, 20], [0, 0], [0, 20]]), np.array([0, 5, 0, 1])
    found = leanings(count, np.array([10.0, 20]), groups)
    assert found == pytest.approx([2 * 11.2 / 26 - 1, 0.5, 0, 0])
    one_less = leanings(count - [[1, 0], [0, 0], [0, 0], [0, 0]], np.array([9.0, 20]), groups)
    assert leanings(count, np.array([10.0, 20]), groups, left_out=0) == pytest.approx(one_less)

    # Two known words, .5 and -.1, an unknown one, and 5 more that lean to neither class.
    documents = Documents(np.arange(3), np.array([0, 3]), np.arange(3), None)
    assert mean_leaning(documents, np.array([0.5, -0.1, 0])) == pytest.approx([0.4 / 7])


def test_the_usual_leaning_is_that_of_ham_left_out(spamlike):
    table, documents, y = spamlike
    # Each ham has `offer`, which 10 spams and 19 of the other hams have, and a word of its own.
    of_offer = leanings(np.array([[19.0, 10]]), np.array([19.0, 10]), np.array([0]))
    assert of_offer == 0
    assert usual_leaning(table, documents, y) == 0
    assert usual_leaning(table._replace(classes=("bill", "work")), documents, y) == 1.0
    assert usual_leaning(table.forgetting(np.arange(3)), documents, y) == 1.0
    a_few = y.copy()
    a_few[np.flatnonzero(y == 0)[19:]] = 1
    assert usual_leaning(table, documents, a_few) == 1.0  # of nineteen hams none is usual


def test_words_raise_scores_of_unlike_mail_only(spamlike):
    table, documents, _ = spamlike
    correction = np.zeros(len(table.vocabulary), np.float32)
    silent = Combination(np.zeros(len(GROUPS) + 1), correction)
    raising = silent._replace(leaning=0.0)
    unlike = documents._replace(structure=documents.structure + 95)

    def scores(fit, of):
        return fit.scores(fit.evidence(table, of))

    mean = mean_leaning(documents, raising.evidence(table, documents).leaning)
    share = raising.evidence(table, unlike).unfamiliar
    assert (mean[:20] <= 0).all()
    assert (mean[20:] > 0).all()
    assert scores(silent, unlike).tolist() == [0] * 30
    assert scores(raising, documents).tolist() == [0] * 30  # all of their structure is known
    assert scores(raising, unlike) == pytest.approx(combine.RAISE * share * np.maximum(mean, 0))
    shares, constant = raising.shares(table, unlike.one(29), PRESENCE, 1, 0)
    assert constant + shares.sum() == pytest.approx(scores(raising, unlike)[29])
    assert (shares >= 0).all()


def test_signs_are_added_to_scores_of_unlike_mail_undivided_unless_spam_would_become_ham():
    loud, quiet = (message(body="x", signs=f"exclamation-{level}") for level in (4, "none"))
    batch = tokenize(20 * [loud, quiet], TokenSettings())
    table = count_batch(batch, 20 * ["spam", "ham"], PRESENCE)
    worth = np.zeros(len(GROUPS) + 1)
    worth[[GROUPS.index("signs"), -1]] = 0.25, 3.0
    fit = Combination(worth, np.zeros(len(table.vocabulary), np.float32), usual=0.1)
    documents = table.in_columns(tokenize([loud, quiet], TokenSettings()).documents)
    unlike = documents._replace(structure=np.array([95, 95]))
    share = fit.evidence(table, unlike).unfamiliar
    by_signs = 0.25 * log(21 / 22 / (1 / 22))  # Laplace's, 20 of 20 and none of 20
    drawn, of_spam = tempered(np.array([3.0, 3.0 - by_signs]), share, 0.1)
    for of, constant, less in ((documents, 3.0, by_signs), (unlike, drawn, drawn - of_spam)):
        score = constant + by_signs, constant - less
        assert fit.scores(fit.evidence(table, of)) == pytest.approx(score)
        for row in (0, 1):
            shares, own = fit.shares(table, of.one(row), PRESENCE, 1, 0)
            assert (own, own + shares.sum()) == pytest.approx((constant, score[row]))


@examples(50)
@given(st.lists(st.sampled_from(["pills", "offer", "own0", "own7", "zq"]), max_size=30))
def test_no_words_lower_a_score_below_that_without_them_alone(spamlike, words):
    """Whatever is added, the score is never below that of a model whose words raise nothing."""
    table, _, _ = spamlike
    rng = np.random.default_rng(0)
    correction = rng.normal(size=len(table.vocabulary)).astype(np.float32)
    fit = Combination(rng.uniform(0, 2, len(GROUPS) + 1), correction, 0.1, 0.05)
    given = message(body="pills offer " + " ".join(words), **{"from": "zz@example.net"})
    documents = table.in_columns(tokenize([given], TokenSettings()).documents)
    silent = fit._replace(leaning=1.0)
    assert (
        fit.joint(table, documents, PRESENCE)[0, 1]
        >= (silent.joint(table, documents, PRESENCE)[0, 1])
    )


def test_tokens_that_were_dropped_are_counted_by_message():
    batch = tokenize([message(**{"from": "aa@example.org"}), message()], TokenSettings())
    table = count_batch(batch, ["ham", "spam"], PRESENCE)
    others = [message(**{"from": "bb@example.net"}, body="new words"), message()]
    known = table.in_columns(tokenize(others, TokenSettings()).documents)

    def dropped(documents):
        return (documents.structure - np.diff(documents.offsets)).tolist()

    # bb and net; words of the body are no structure.
    assert dropped(known) == [2, 0]
    assert dropped(known.one(0)) == [2]
    assert dropped(known.part(1, 2)) == [0]
    assert dropped(known.take(np.array([1, 0]))) == [0, 2]
    assert dropped(table.without_unlearned(known)) == [2, 0]
    unlearned = table._replace(document_frequency=table.document_frequency * 0)
    assert dropped(unlearned.without_unlearned(known)) == known.structure.tolist()


def test_headers_that_nobody_knows_make_no_spam_ham_and_say_nothing_to_a_model_that_forgot(
    mail_classifier, mails
):
    spams = [item.read() for item in read_items([str(mails / "spam")])]
    plain = list(mail_classifier.classify([Item("", None, data) for data in spams]))
    odd = list(mail_classifier.classify([Item("", None, UNKNOWN + data) for data in spams]))

    assert [verdict.label for verdict in odd] == [verdict.label for verdict in plain]
    sure = [(a, b) for a, b in zip(plain, odd, strict=True) if a.posterior["spam"] > 0.9]
    assert len(sure) > 50
    assert all(b.posterior["spam"] < a.posterior["spam"] for a, b in sure)
    settings = replace(PRESETS["mail"], min_df=2)
    pruned = learn_items(read_items([str(mails)]), settings).classifier
    assert 0 < mail_classifier.fit.usual < 1
    assert pruned.fit.usual == 1.0


def test_json_says_how_much_of_unlike_mail_counts_and_adds_up(nbspam, model, tmp_path):
    nbspam("train", write_mails(tmp_path / "mails", 10))
    known, unlike = (
        json_lines(nbspam("explain", "--json", "-n", "1000", stdin=data)[1])[0]
        for data in (SPAM, UNKNOWN + SPAM)
    )
    for values in (known, unlike):
        added = sum(token["contribution"] for token in values["tokens"])
        assert values["constant"] + added == pytest.approx(values["score"], abs=1e-9)
        assert values["posterior"]["spam"] == pytest.approx(1 / (1 + exp(-values["score"])))
    assert 0 < unlike["kept"] < known["kept"] == 1
