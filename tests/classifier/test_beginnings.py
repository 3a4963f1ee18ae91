"""The beginning of a message may raise its score: numbers by hand, laws, and what users see."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.classifier import personal
from nbspam.classifier.classifier import Classifier, token_counts
from nbspam.classifier.combine import SURELY_HAM, Combination, beginnings, doubt
from nbspam.classifier.personal import OwnCounts, joint_of, own_of
from nbspam.classifier.training import learn_items
from nbspam.counts.corpus import read_corpus
from nbspam.evaluation.judging import answers_of
from nbspam.settings import PRESENCE, PRESETS
from nbspam.sources.items import Item
from nbspam.tokens.definition import GROUPS
from nbspam.tokens.sparse import united
from nbspam.tokens.tokenizer import tokenize
from support import count_batch, examples, message

MAIL = PRESETS["mail"]
SPAM_TEXT = b"Subject: offer\n\ncheap pills without prescription, order now\n"
HAM_LINES = [b"meeting on monday", b"the report is attached", b"see you at lunch", b"thanks"]
QUOTED = st.lists(st.sampled_from(HAM_LINES), min_size=1, max_size=40).map(
    lambda lines: b"On Monday, Sam wrote:\n" + b"".join(b"> " + line + b"\n" for line in lines)
)


def learned() -> Iterator[Item]:
    for n in range(20):
        ham = b"Subject: lunch %d\n\n%b %b\n" % (n, HAM_LINES[n % 4], HAM_LINES[n % 3])
        yield Item(f"h{n}", "ham", ham)
        yield Item(f"s{n}", "spam", SPAM_TEXT + b"reply %d\n" % n)


@pytest.fixture(scope="module")
def model() -> Classifier:
    return learn_items(learned(), MAIL).classifier


def taught(model: Classifier, ham: bytes, spam: bytes) -> OwnCounts:
    """Return the counts of a user who has taught two messages."""
    items = [Item("a", "ham", ham), Item("b", "spam", spam)]
    corpus, _ = read_corpus(items, MAIL)
    table = learn_items(items, MAIL).classifier.table
    return own_of(model, table, corpus.over_keys(np.arange(2)), corpus.y)


def score(model: Classifier, data: bytes) -> float:
    (verdict,) = model.classify([Item("-", None, data)])
    assert verdict.score is not None
    return verdict.score


def test_a_beginning_counts_where_it_is_more_and_doubt_divides_the_difference():
    # The words of class spam are worth +, those of ham -; only `pills` begins the first message.
    batch = tokenize(
        [message(body="pills", rest="lunch report"), message(body="lunch", rest="pills")],
        MAIL.tokens,
    )
    counted = tokenize(10 * [message(body="pills"), message(body="lunch report")], MAIL.tokens)
    table = count_batch(counted, 10 * ["spam", "ham"], PRESENCE)
    documents = table.in_columns(batch.documents)
    names = [table.vocabulary.text(j) for j in range(len(table.vocabulary))]
    correction = np.array([{"pills": 2, "lunch": -3, "report": -1}.get(n, 0) for n in names])
    fit = Combination(np.zeros(len(GROUPS) + 1), correction.astype(np.float32))

    evidence = fit.evidence(table, documents)
    even = np.zeros(2)
    own = beginnings(evidence, even)
    assert own.rows.tolist() == [0, 1]
    whole, *_ = fit._whole_scores(evidence)
    first, *_ = fit._whole_scores(own.evidence)
    assert first[0] > whole[0]
    assert first[1] < whole[1]
    assert fit.scores(evidence) == pytest.approx([first[0], whole[1]])

    unlike = evidence._replace(unfamiliar=np.array([0.6, 0.6]))
    doubting = fit._replace(usual=0.5)
    assert doubt(unlike.unfamiliar, 0.5) == pytest.approx([5, 5])
    drawn = doubting._drawn_and_raised(unlike)[0]
    of_own = doubting._drawn_and_raised(beginnings(unlike, even).evidence)[0]
    assert doubting.scores(unlike)[0] == pytest.approx(drawn + (of_own - drawn) / 5)
    # Sure ham stays ham; other classes have no attackers.
    assert beginnings(evidence, np.array([SURELY_HAM, 0])).rows.tolist() == [1]
    assert beginnings(evidence._replace(limits=None), even) is None
    assert beginnings(fit.evidence(table, documents._replace(in_rest=None)), even) is None
    few = table._replace(class_count=np.array([10.0, 9]))  # of 19 messages
    assert beginnings(fit.evidence(few, documents), even) is None


def test_users_get_a_beginning_judged_from_20_messages_on():
    few = learn_items(list(learned())[:18], MAIL).classifier
    spam = Item("-", "spam", SPAM_TEXT + b"On Monday, Sam wrote:\n" + b"> lunch, thanks\n" * 9)
    own = taught(few, b"Subject: hi\n\nwhere\n", b"\nwatches\n")

    (verdict,) = personal.classify(few, [spam], [None], few.rule)
    assert verdict.score == pytest.approx(score(few, spam.data))
    explained = [personal.explain(few, spam, owner, few.rule) for owner in (None, own)]
    assert [each.by_beginning for each in explained] == [False, True]


@given(QUOTED)
@examples(30)
def test_quoted_ham_never_lowers_a_score(model, quoted):
    assert score(model, SPAM_TEXT + quoted) >= score(model, SPAM_TEXT) - 1e-9


@given(QUOTED)
@examples(30)
def test_a_reason_is_given_for_every_part_of_a_score(model, quoted):
    for data in (SPAM_TEXT + quoted, quoted, b"Subject: lunch\n\nthanks, see you\n" + quoted):
        explanation = model.explain(Item("-", None, data))
        assert explanation.by_beginning == (data.startswith(SPAM_TEXT))
        total = explanation.constant + sum(each.contribution for each in explanation.evidence)
        assert total == pytest.approx(score(model, data))


def test_tokens_are_listed_in_the_order_of_the_whole_text():
    mail = Item("-", None, b"\n> meeting on monday\ncheap pills without prescription\n")
    names = [name for name, _ in token_counts([mail], MAIL)]
    own = ["cheap", "pills", "without", "prescription"]
    assert [name for name in names if ":" not in name] == ["meeting", "on", "monday", *own]


def test_spam_that_is_quoted_is_spam(model):
    lines = SPAM_TEXT.partition(b"\n\n")[2].splitlines(keepends=True)
    quoted = b"Subject: offer\n\n" + b"".join(b"> " + line for line in lines)
    assert score(model, quoted) == pytest.approx(score(model, SPAM_TEXT))


def test_evaluation_and_a_user_get_the_same_scores(model):
    items = [
        Item("a", "spam", SPAM_TEXT + b"On Monday, Sam wrote:\n" + b"> meeting on monday\n" * 9),
        Item("b", "ham", b"Subject: lunch\n\nsee you at lunch, thanks\n> pills?\n"),
    ]
    expected = [score(model, item.data) for item in items]
    corpus, _ = read_corpus(items, MAIL)
    joint = answers_of(model, corpus, np.arange(2)).joint
    assert joint[:, 1] - joint[:, 0] == pytest.approx(expected)

    documents = corpus.over_keys(np.arange(2))
    joint = joint_of(model, documents, [None, None])
    assert joint[:, 1] - joint[:, 0] == pytest.approx(expected)
    # What a user has taught of quoted words does not lower the score of a beginning either.
    ham = b"Subject: lunch\n\nmeeting on monday\n"
    own = taught(model, ham, b"Subject: watches\n\nwatches for all\n")
    spam = Item("e", "spam", SPAM_TEXT)
    alone = read_corpus([spam], MAIL)[0].over_keys(np.arange(1))
    joint = joint_of(model, united([alone, documents]), [own] * 3)
    of_spam, of_both, _ = (joint[:, 1] - joint[:, 0]).tolist()
    assert of_both >= of_spam - 1e-9
