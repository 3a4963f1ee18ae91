"""Models of users on top of a shared one, against loops over tokens and numbers worked by hand."""

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.classifier import personal
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.combine import BAND, DAMPING, MOST, STRONGEST, Combination
from nbspam.classifier.personal import (
    SHARED,
    OwnCounts,
    classify,
    explain,
    joint_of,
    lack_of_own,
    own_of,
    rule_for,
)
from nbspam.classifier.training import learn_items
from nbspam.decision import UNDECIDED, cutoffs
from nbspam.settings import PRESENCE, SettingsChoices, TokenSettings, chosen_settings
from nbspam.sources.items import Item, read_items
from nbspam.store.assembly import begun
from nbspam.tokens.definition import GROUPS
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
    """Return what a user has taught who has taught these texts."""
    labels = [label for _, label in labelled]
    batch = tokenized([text for text, _ in labelled])
    table = count_batch(tokenized([*(t for t, _ in labelled)]), labels, PRESENCE)
    if len(table.classes) == 1:  # the other has no messages
        k = CLASSES.index(table.classes[0])
        count = np.zeros((len(table.vocabulary), 2))
        count[:, k] = table.feature_count[:, 0]
        total = np.bincount([k], table.class_count, 2)
        table = table._replace(classes=CLASSES, class_count=total, feature_count=count)
    return own_of(site, table, batch.documents, np.array([CLASSES.index(x) for x in labels]))


def scores(site, texts, owners):
    joint = joint_of(site, tokenized(texts).documents, owners)
    return joint[:, 1] - joint[:, 0]


@given(LABELLED, LABELLED, st.lists(st.tuples(WORDS, st.booleans()), min_size=1, max_size=6))
@examples(40)
def test_whose_mail_is_judged_beside_it_changes_no_message(everybodys, mine, asked):
    site = site_of(everybodys)
    own = taught(site, mine)
    texts = [text for text, _ in asked]
    owners = [own if is_mine else None for _, is_mine in asked]

    together = scores(site, texts, owners)
    for row, (text, owner) in enumerate(zip(texts, owners, strict=True)):
        assert together[row] == pytest.approx(scores(site, [text], [owner])[0], abs=1e-9)


@given(LABELLED, st.lists(WORDS, min_size=1, max_size=6))
@examples(40)
def test_who_has_taught_nothing_gets_the_answer_of_the_shared_model(everybodys, texts):
    site = site_of(everybodys)
    documents = tokenized(texts).documents

    plain = site.joint_of(site.table.known(documents))
    assert np.array_equal(joint_of(site, documents, [None] * len(texts)), plain)


@given(LABELLED, LABELLED, WORDS, st.sampled_from([SHARED, 2.0]))
@examples(60)
def test_a_score_is_a_sum_over_tokens_of_both(everybodys, mine, text, shared):
    """All messages of the shared model count as at most so many of the user's."""
    site, batch = site_of(everybodys), tokenized([text])
    own = taught(site, mine)
    table, fit = site.table, site.fit
    weight = max(1.0, table.class_count.sum() / shared)
    total = table.class_count + weight * own.class_count
    by_group = [[] for _ in GROUPS]
    plain, values, steps = [], [], []
    for key, group in zip(batch.keys.tolist(), batch.groups.tolist(), strict=True):
        column = int(table.vocabulary.columns(np.array([key], np.uint64))[0])
        place = int(own.columns(np.array([key], np.uint64))[0])
        count = np.zeros(2)
        if column >= 0:
            count += table.feature_count[column]
        seen = count.sum()
        if place >= 0:
            count = count + weight * own.values[place, :2]
        odds = log((count[1] + 0.03) / (total[1] + 0.06)) - log(
            (count[0] + 0.03) / (total[0] + 0.06)
        )
        if count.any() and abs(odds) >= BAND:
            by_group[TEXT if group == SUBJECT else group].append(odds)
        if group != PAIRS and column >= 0:
            plain.append(fit.correction[column])
        if group != PAIRS and count.any():
            n = table.class_count.sum()
            values.append(max(1 - log(seen + 1) / log(n + 1), 0))
            steps.append(own.values[place, 2] if place >= 0 else 0.0)
    found = fit.worth[-1]
    for group, odds in enumerate(by_group):
        strong = sorted(x for x in odds if x < 0)[: STRONGEST[0]]
        strong += sorted(x for x in odds if x > 0)[-STRONGEST[1] :]
        found += fit.worth[group] * sum(strong) / (len(strong) + DAMPING)
    found += max(-MOST, min(sum(plain) / sqrt(max(len(plain), 1)), MOST))
    length = sqrt(sum(value**2 for value in values)) or 1.0
    more = sum(value * step for value, step in zip(values, steps, strict=True)) / length
    found += max(-MOST, min(more, MOST))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(personal, "SHARED", shared)
        answer = scores(site, [text], [own])[0]
    assert answer == pytest.approx(found, abs=1e-5)  # corrections are numbers of 32 bits


@given(LABELLED, LABELLED, WORDS)
@examples(40)
def test_shares_and_constant_add_up_to_the_score(everybodys, mine, text):
    site = site_of(everybodys)
    own = taught(site, mine)
    data = f"Subject: {text[::2]}\n\n{text}\n".encode()
    explanation = explain(site, Item("-", None, data), own, cutoffs())

    total = sum(each.contribution for each in explanation.evidence)
    assert total + explanation.constant == pytest.approx(explanation.score, abs=1e-9)
    (verdict,) = classify(site, [Item("-", None, data)], [own], cutoffs())
    assert verdict.posterior == pytest.approx(explanation.verdict.posterior)
    assert verdict.label == explanation.verdict.label


# ---- real mail ----


@pytest.fixture(scope="module")
def site():
    return learn_items(read_items([str(first_mails())]), SETTINGS).classifier


def mails(label):
    return [item.read() for item in read_items([str(first_mails())]) if item.label == label]


def model_of(site, pairs):
    """Return what a user has taught by messages and labels."""
    items = [Item("-", label, data) for data, label in pairs]
    learned = learn_items(items, SETTINGS).classifier
    memory, table = learned.memory, learned.table
    documents = memory.sample.documents
    documents = documents._replace(tokens=table.vocabulary.keys[documents.tokens])
    return own_of(site, table, documents, memory.sample_labels)


LETTER = b"From: shop%d@bulbs.example\nSubject: tulips of week %d\nList-Id: <bulbs.example>\n\n"
LETTER += b"Dear gardener, our tulips and crocus bulbs are here, order %d today.\n"


@pytest.mark.parametrize(("label", "other"), [("ham", "spam"), ("spam", "ham")])
def test_ten_messages_overrule_the_shared_model_where_they_differ(label, other):
    letters = [LETTER % (n, n, n) for n in range(40)]
    everybodys = [*((data, other) for data in letters[:20])]
    everybodys += [(data, name) for name in CLASSES for data in mails(name)]
    site = learn_items([Item("-", name, data) for data, name in everybodys], SETTINGS).classifier
    mine = [*((data, label) for data in letters[20:25])]
    mine += [(data, other) for data in mails(other)[:3]] + [(d, label) for d in mails(label)[:2]]
    own = model_of(site, mine)

    later = [Item("-", None, data) for data in letters[30:]]
    assert {v.label for v in site.classify(later)} == {other}
    assert {v.label for v in classify(site, later, [own] * 10, site.rule)} == {label}
    # Other mail of the same class stays what it was.
    rest = [Item("-", other, data) for data in mails(other)[40:]]
    wrong = [v for v in classify(site, rest, [own] * len(rest), site.rule) if v.label != other]
    assert len(wrong) <= len(rest) // 20


def test_a_shared_model_that_knows_nothing_leaves_it_to_the_user():
    nothing = begun(SETTINGS)
    own = model_of(nothing, [(d, name) for name in CLASSES for d in mails(name)[:30]])
    items = [Item("-", name, data) for name in CLASSES for data in mails(name)[30:60]]
    rule = rule_for(nothing, own, nothing.rule)

    assert lack_of_own(nothing, own) is None
    assert rule == cutoffs()
    found = [v.label for v in classify(nothing, items, [own] * 60, nothing.rule)]
    alone = learn_items(
        [Item("-", n, d) for n in CLASSES for d in mails(n)[:30]], SETTINGS
    ).classifier
    right = sum(
        v.label == item.label for v, item in zip(alone.classify(items), items, strict=True)
    )
    assert sum(a == b.label for a, b in zip(found, items, strict=True)) >= right - 6


def test_whoever_knows_one_class_only_is_unsure():
    nothing = begun(SETTINGS)
    keys = np.array([1], np.uint64)
    own = OwnCounts(keys, np.array([[0, 1, 0]], np.float32), np.array([0.0, 1.0]))

    assert "teach it ham" in lack_of_own(nothing, own)
    assert rule_for(nothing, own, cutoffs()) == UNDECIDED
    mine, another = classify(nothing, [Item("-", None, SPAM)] * 2, [own, None], nothing.rule)
    assert (mine.label, another.label) == ("unsure", "unsure")


def test_a_message_without_any_token_is_a_lesson_too():
    site = site_of([("a b", "ham"), ("c d", "spam")])
    own = taught(site, [("", "spam")])

    assert own.class_count.tolist() == [0, 1]
    assert np.isfinite(scores(site, ["", "a b"], [own, own])).all()


@examples(20)
@given(st.permutations(range(8)))
def test_the_order_of_lessons_changes_nothing_but_rounding(site, order):
    pairs = [(d, name) for name in CLASSES for d in mails(name)[:4]]
    before, after = (model_of(site, p) for p in (pairs, [pairs[k] for k in order]))

    assert np.array_equal(before.values, after.values)


def test_unreadable_items_keep_their_places(site, tmp_path):
    (tmp_path / "a.eml").write_bytes(SPAM)
    items = list(read_items([str(tmp_path)]))
    own = model_of(site, [(HAM, "ham"), (SPAM, "spam")])
    (tmp_path / "a.eml").unlink()
    given_items = [Item("first", None, SPAM), *items, Item("last", None, HAM)]

    first, gone, last = classify(site, given_items, [own, own, None], site.rule)
    assert (first.name, last.name) == ("first", "last")
    assert "a.eml" in gone.name
    assert gone.reason
