"""Models of users on top of a shared one, against loops over tokens and numbers worked by hand."""

from dataclasses import replace
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nbspam.arrays import find
from nbspam.classifier import personal
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.combine import DAMPING, MOST_NATS, STRONGEST, Combination
from nbspam.classifier.fitting import RATE, correction_step
from nbspam.classifier.training import learn_items
from nbspam.decision import UNDECIDED, cutoffs
from nbspam.settings import PRESENCE, SettingsChoices, TokenSettings, chosen_settings
from nbspam.sources.items import Item, read_items
from nbspam.store.assembly import empty_model
from nbspam.tokens.definition import GROUPS
from nbspam.tokens.people import learned_sent_mail
from nbspam.tokens.tokenizer import tokenize
from support import HAM, SPAM, count_batch, examples, first_mails, message

TEXT, SUBJECT, PAIRS = map(GROUPS.index, ("text", "subject", "pairs"))
CLASSES = ("ham", "spam")
SETTINGS = chosen_settings(SettingsChoices(), is_text=False)
WORDS = st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=7).map(" ".join)
LABELLED = st.lists(st.tuples(WORDS, st.sampled_from(CLASSES)), min_size=1, max_size=9)


def tokenized(texts):
    found = [message(subject=text[::2], body=text) for text in texts]
    return tokenize(found, TokenSettings(pairs=True))


def site_of(labelled, seed=0):
    """Return a shared model with counts of these texts, and any fit."""
    labels = [*(label for _, label in labelled), *CLASSES]
    table = count_batch(tokenized([*(t for t, _ in labelled), "", ""]), labels, PRESENCE)
    rng = np.random.default_rng(seed)
    correction = rng.normal(size=len(table.vocabulary)).astype(np.float32)
    fit = Combination(rng.uniform(0, 2, len(GROUPS) + 1), correction)
    return Classifier(SETTINGS, table, fit)


def taught(site, labelled):
    """Return the counts of a user who has taught these texts."""
    batch, labels = tokenized([t for t, _ in labelled]), [label for _, label in labelled]
    table = count_batch(batch, labels, PRESENCE, CLASSES)
    y = np.searchsorted(CLASSES, labels)
    return personal.own_of(site, table, batch.documents, y)


def scores(site, texts, owners):
    joint = personal.joint_of(site, tokenized(texts).documents, owners)
    return joint[:, 1] - joint[:, 0]


@given(LABELLED, LABELLED, st.lists(st.tuples(WORDS, st.booleans()), min_size=1, max_size=6))
@examples(40)
def test_whose_mail_is_judged_beside_it_changes_no_message(everybodys, mine, asked):
    site = site_of(everybodys)
    own = taught(site, mine)
    texts, owners = [t for t, _ in asked], [own if is_mine else None for _, is_mine in asked]

    alone = [scores(site, [text], [o])[0] for text, o in zip(texts, owners, strict=True)]
    assert scores(site, texts, owners) == pytest.approx(alone, abs=1e-9)
    # A user who has taught nothing gets the answer of the shared model.
    documents = tokenized(texts).documents
    plain = site.joint_of(site.table.in_columns(documents))
    assert np.array_equal(personal.joint_of(site, documents, [None] * len(texts)), plain)


@given(LABELLED, LABELLED, WORDS, st.sampled_from([personal.SHARED, 2.0]))
@example([("a b", "ham")] * 6, [("c", "spam")], "c", 2.0)  # one message of theirs counts as four
@examples(60)
def test_a_score_is_a_sum_over_tokens_of_both(everybodys, mine, text, shared):
    """All messages of the shared model count as at most so many of the user's."""
    site, batch = site_of(everybodys), tokenized([text])
    own, table, fit = taught(site, mine), site.table, site.fit
    n = table.class_count.sum()
    weight = max(1.0, n / shared)
    total = table.class_count + weight * own.class_count
    by_group = [[] for _ in GROUPS]
    plain, values, steps = [], [], []
    for key, group in zip(batch.keys, batch.groups.tolist(), strict=True):
        (column,), (place,) = table.vocabulary.columns(key[None]), find(own.keys, key[None])
        shared_count = table.feature_count[column] if column >= 0 else np.zeros(2)
        ham, spam = shared_count + (weight * own.values[place, :2] if place >= 0 else 0)
        alpha, band = (0.1, 1.5) if group in (TEXT, SUBJECT) else (0.03, 2)
        present = [
            (x + alpha) / (n_c + 2 * alpha) for x, n_c in ((ham, total[0]), (spam, total[1]))
        ]
        odds = log(present[1]) - log(present[0])
        if ham + spam and abs(odds) >= band:
            by_group[TEXT if group == SUBJECT else group].append(odds)
        if group != PAIRS and column >= 0:
            plain.append(fit.correction[column])
        if group != PAIRS and ham + spam:
            values.append(max(1 - log(shared_count.sum() + 1) / log(n + 1), 0))
            steps.append(own.values[place, 2] if place >= 0 else 0.0)
    found = fit.worth[-1]
    for worth, odds in zip(fit.worth, by_group, strict=False):
        strong = sorted(x for x in odds if x < 0)[: STRONGEST[0]]
        strong += sorted(x for x in odds if x > 0)[-STRONGEST[1] :]
        found += worth * sum(strong) / (len(strong) + DAMPING)
    length = sqrt(sum(value**2 for value in values)) or 1.0
    more = sum(value * step for value, step in zip(values, steps, strict=True)) / length
    for each in (sum(plain) / sqrt(max(len(plain), 1)), more):
        found += max(-MOST_NATS, min(each, MOST_NATS))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(personal, "SHARED", shared)
        answer = scores(site, [text], [own])[0]
    assert answer == pytest.approx(found, abs=1e-5)  # corrections are numbers of 32 bits


@given(LABELLED, LABELLED, WORDS, st.sampled_from([1, 99]))
@example([("a", "ham")], [("b", "spam")], "b", 99)
@examples(40)
def test_shares_and_constant_add_up_to_the_score(everybodys, mine, text, strength):
    site = replace(site_of(everybodys), shift=np.array([0.5, 0.0]))
    own = taught(site, mine)
    own = own._replace(values=own.values * np.float32([1, 1, strength]))  # beyond the bound, too
    data = f"Subject: {text[::2]}\n\n{text}\n".encode()
    explanation = personal.explain(site, Item("-", None, data), own, cutoffs())

    total = sum(each.contribution for each in explanation.evidence)
    assert total + explanation.constant == pytest.approx(explanation.score, abs=1e-9)
    (verdict,) = personal.classify(site, [Item("-", None, data)], [own], cutoffs())
    assert verdict.posterior == pytest.approx(explanation.verdict.posterior)
    assert verdict.label == explanation.verdict.label


@given(LABELLED, LABELLED)
@example([("a b", "ham")], [("a", "spam"), ("a b", "ham"), ("a", "ham")])
@examples(20)
def test_corrections_are_made_by_passes_over_messages_that_are_left_out(everybodys, mine):
    site = site_of(everybodys)
    own, lessons = taught(site, mine), []
    for text, label in mine:
        truth = CLASSES.index(label)
        places = find(own.keys, tokenized([text]).documents.tokens)
        values, class_count = own.values * np.float32([1, 1, 0]), own.class_count.copy()
        values[places, truth] -= 1
        class_count[truth] -= 1
        left_out = own._replace(values=values, class_count=class_count)
        others = [left_out._replace(values=values.copy()) for _ in places]
        for each, place in zip(others, places, strict=True):
            each.values[place, 2] = 1  # so that the score grows by what a token is worth
        score, *more = scores(site, [text] * (1 + len(others)), [left_out, *others])
        lessons.append((places, np.array(more) - score, score, truth))

    steps, correction = [], np.zeros(len(own.keys))
    for number in range(personal.PASSES):
        for places, worth, score, truth in lessons[:: (-1) ** number]:
            total = np.clip(worth @ correction[places], -MOST_NATS, MOST_NATS)
            correction[places] += RATE * worth * correction_step(score + total, truth, 1.0)
        steps.append(correction.copy())
    assert own.values[:, 2] == pytest.approx((steps[-1] + steps[-2]) / 2, abs=1e-4)


@pytest.fixture(scope="module")
def site():
    return learn_items(read_items([str(first_mails())]), SETTINGS).classifier


def mails(label, start=0, end=None):
    found = [item.read() for item in read_items([str(first_mails())]) if item.label == label]
    return [(data, label) for data in found[start:end]]


def items_of(pairs):
    return [Item("-", label, data) for data, label in pairs]


def model_of(site, pairs, settings=SETTINGS):
    """Return the counts of a user who has taught these messages."""
    learned = learn_items(items_of(pairs), settings).classifier
    memory, table = learned.memory, learned.table
    documents = memory.sample.documents
    documents = documents._replace(tokens=table.vocabulary.keys[documents.tokens])
    return personal.own_of(site, table, documents, memory.sample_labels)


LETTER = b"From: shop%d@bulbs.example\nSubject: tulips of week %d\nList-Id: <bulbs.example>\n\n"
LETTER += b"Dear gardener, our tulips and crocus bulbs are here, order %d today.\n"


@pytest.mark.parametrize(("label", "other"), [("ham", "spam"), ("spam", "ham")])
def test_ten_messages_overrule_the_shared_model_where_they_differ(label, other):
    letters = [LETTER % (n, n, n) for n in range(40)]
    everybodys = [(data, other) for data in letters[:20]] + mails("ham") + mails("spam")
    site = learn_items(items_of(everybodys), SETTINGS).classifier
    mine = [(data, label) for data in letters[20:25]]
    own = model_of(site, mine + mails(other, 0, 3) + mails(label, 0, 2))

    later = [Item("-", None, data) for data in letters[30:]]
    assert {v.label for v in site.classify(later)} == {other}
    assert {v.label for v in personal.classify(site, later, [own] * 10, site.rule)} == {label}
    # Other mail of the same class stays what it was.
    rest = items_of(mails(other, 40))
    wrong = [
        v for v in personal.classify(site, rest, [own] * len(rest), site.rule) if v.label != other
    ]
    assert len(wrong) <= len(rest) // 20


def test_a_shared_model_that_knows_nothing_leaves_it_to_the_user():
    nothing, taught = empty_model(SETTINGS), mails("ham", 0, 30) + mails("spam", 0, 30)
    own, items = model_of(nothing, taught), items_of(mails("ham", 30, 60) + mails("spam", 30, 60))

    assert personal.lack_of_own(nothing, own) is None
    assert personal.rule_for(nothing, own, nothing.rule) == cutoffs()
    assert personal.rule_for(nothing, own, UNDECIDED) == cutoffs()
    alone = learn_items(items_of(taught), SETTINGS).classifier
    found, right = (
        sum(verdict.label == item.label for verdict, item in zip(verdicts, items, strict=True))
        for verdicts in (
            personal.classify(nothing, items, [own] * 60, nothing.rule),
            alone.classify(items),
        )
    )
    assert found >= right - 6


def test_whoever_knows_one_class_only_is_unsure():
    nothing = empty_model(SETTINGS)
    keys = np.array([1], np.uint64)
    own = personal.OwnCounts(keys, np.array([[0, 1, 0]], np.float32), np.array([0.0, 1.0]))

    assert "teach it ham" in personal.lack_of_own(nothing, own)
    assert personal.rule_for(nothing, own, cutoffs()) == UNDECIDED
    mine, another = personal.classify(
        nothing, [Item("-", None, SPAM)] * 2, [own, None], nothing.rule
    )
    assert (mine.label, another.label) == ("unsure", "unsure")


def test_a_message_without_any_token_is_a_lesson_too():
    site = site_of([("a b", "ham"), ("c d", "spam")])
    own = taught(site, [("", "spam")])
    assert own.class_count.tolist() == [0, 1]
    assert np.isfinite(scores(site, ["", "a b"], [own, own])).all()


@examples(20)
@given(st.permutations(range(8)))
def test_the_order_of_lessons_changes_nothing(site, order):
    pairs = mails("ham", 0, 4) + mails("spam", 0, 4)
    before, after = (model_of(site, p) for p in (pairs, [pairs[k] for k in order]))
    assert np.array_equal(before.values, after.values)


def test_mail_is_read_for_its_owner_beside_that_of_others(site):
    sent = learned_sent_mail([Item("sent", None, b"To: ann@example.org\nMessage-ID: <1@x>\n\nhi")])
    taught = [(HAM, "ham"), (SPAM, "spam")]
    knows_ann = model_of(site, taught, replace(SETTINGS, sent_mail=sent))._replace(sent_mail=sent)
    owners = [model_of(site, taught), knows_ann, None, knows_ann]

    together = personal.classify(site, [Item("-", None, HAM)] * 4, owners, site.rule)
    alone = [personal.classify(site, [Item("-", None, HAM)], [o], site.rule)[0] for o in owners]
    assert [v.posterior for v in together] == [v.posterior for v in alone]
    assert together[0].posterior != together[1].posterior
    assert together[1] == together[3]


def test_unreadable_items_keep_their_places(site, tmp_path):
    (tmp_path / "a.eml").write_bytes(SPAM)
    (unread,) = read_items([str(tmp_path)])
    own = model_of(site, [(HAM, "ham"), (SPAM, "spam")])
    (tmp_path / "a.eml").unlink()
    asked = [Item("first", None, SPAM), unread, Item("last", None, HAM)]

    first, gone, last = personal.classify(site, asked, [own, own, None], site.rule)
    assert (first.name, last.name) == ("first", "last")
    assert "a.eml" in gone.name
    assert gone.reason
