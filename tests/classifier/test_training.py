"""Training: the same model however the work is cut, a bounded one, and one that learns on."""

from functools import cache

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nbspam.classifier import training
from nbspam.classifier.training import Learner, ModelGrowth, learn_items, overlay, uncopied_overlay
from nbspam.counts import counting
from nbspam.counts.ledger import LabelChange
from nbspam.counts.table import add_tables, no_counts, without_empty
from nbspam.errors import NotTrainedError
from nbspam.settings import MANY, PRESENCE, PRESETS, TokenSettings
from nbspam.sources.items import Item, read_items
from nbspam.store.open import save_classifier
from nbspam.tokens.sparse import with_added
from nbspam.tokens.tokenizer import batch_vocabulary, tokenize
from stored import EVERY_SETTING
from support import count_batch, examples, message, plain


def model_bytes(tmp_path, items, settings, jobs=1):
    path = tmp_path / "m.nbspam"
    save_classifier(str(path), learn_items(items, settings, jobs).classifier)
    return path.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("settings", EVERY_SETTING.values(), ids=EVERY_SETTING)
def test_a_model_is_the_same_whatever_the_batches(mails, tmp_path, settings, monkeypatch):
    items = [item for n in range(2) for item in read_items([str(mails)])]  # two chunks
    if settings in MANY.values():
        items = [item._replace(label=f"c{n % 3}") for n, item in enumerate(items)]
    one = model_bytes(tmp_path, items, settings)
    monkeypatch.setattr("nbspam.tokens.tokenizer._BATCH_BYTES", 1 << 14)
    monkeypatch.setattr(counting, "MAX_TOKENS", 100)
    assert model_bytes(tmp_path, items, settings, jobs=2) == one


def test_answers_are_the_same_alone_and_in_bulk_and_on_many_cores(mails, mail_classifier):
    classifier = mail_classifier
    items = list(read_items([str(mails)])) * 3
    bulk = [answer.joint for answer in classifier.answers(items)]

    assert np.array_equal(bulk, [answer.joint for answer in classifier.answers(items, 2)])
    # In other chunks, too: words whose log-odds differ in the last digit are added up alike.
    parts = [classifier.judge(items[start : start + 50]).joint for start in range(0, 600, 50)]
    assert np.array_equal(bulk, np.concatenate(parts))
    for item, joint in list(zip(items, bulk, strict=True))[::40]:
        (alone,) = classifier.answers([item])
        assert alone.joint == pytest.approx(joint, abs=1e-9)


TEXTS = ["a b b", "b c", "c d d a", "d", "a d e", "f", "e f f f", "g a b", "c c c", "b g h"]
WORDS = " ".join(sorted(set("".join(TEXTS)) - {" "}))
HOW = {"combined": PRESETS["mail"], "blended": MANY["mail"]}
CLASSES = {"combined": ("ham", "spam"), "blended": ("ham", "news", "spam")}
# Which of the texts moves, and where: to a class by its number, or (3) to none.
MOVES = st.lists(st.tuples(st.integers(0, len(TEXTS) - 1), st.integers(0, 3)), max_size=25)


def base(name):
    """Return a classifier of two messages a class, which no change touches."""
    items = [
        Item(f"{label}{n}", label, f"Subject: s{n}\n\n{text} {label}\n".encode())
        for label in CLASSES[name]
        for n, text in enumerate(("a b c", "a d e"))
    ]
    return learn_items(items, HOW[name]).classifier


BASES = {name: base(name) for name in HOW}


def sequence(name, moves):
    """Yield (number of a text, class before, class after) of those moves that change a thing."""
    state = {}
    for number, k in moves:
        before = state.get(number)
        after = None if k == 3 else CLASSES[name][k % len(CLASSES[name])]
        if before != after:
            state[number] = after
            yield number, before, after


@cache
def batch_of(text):
    return tokenize([message(body=text)], TokenSettings())


def changes_of(name, moves):
    """Return the moves as changes, each with those of its tokens that the base does not know."""
    known = BASES[name].table.vocabulary
    changes = []
    for number, before, after in sequence(name, moves):
        batch = batch_of(TEXTS[number])
        new = batch_vocabulary(batch, known.columns(batch.keys) < 0)
        changes.append(LabelChange(number, before, after, 0, batch.documents, new))
    return changes


def document_of(text, table):
    return table.vocabulary.in_columns(batch_of(text).documents)


@cache
def start_of(name):
    """Return a base's table, with a column for every token of TEXTS, and the fit over it."""
    table = BASES[name].table
    batch = tokenize([message(body=text) for text in TEXTS], TokenSettings())
    more = batch_vocabulary(batch, table.vocabulary.columns(batch.keys) < 0)
    table = table._replace(
        vocabulary=with_added(table.vocabulary, more),
        feature_count=np.append(table.feature_count, np.zeros((len(more), len(table.classes))), 0),
        document_frequency=np.append(table.document_frequency, np.zeros(len(more), np.int64)),
    )
    return table, BASES[name].fit.recounted(table, HOW[name])


def test_before_a_class_has_a_message_two_classes_are_even_and_more_are_refused():
    def of_classes(*class_count):
        n = len(class_count)
        nothing = no_counts(tuple("abc"[:n]))
        return nothing._replace(class_count=np.array(class_count))

    sample = document_of("", of_classes(1, 0))
    fit = training.fitted_evidence(of_classes(1, 0), sample, np.array([0]), PRESETS["mail"])
    joint = fit.joint(of_classes(1, 0), sample, PRESENCE)[0]
    assert np.exp(joint) == pytest.approx([0.5, 0.5])
    with pytest.raises(NotTrainedError, match="no message of class b"):
        training.fitted_evidence(of_classes(1, 0, 1), sample, np.array([0]), PRESETS["mail"])


def learned(name, moves):
    """Return a learner that went on from a base by some moves; it copies what it changes."""
    learner, index = Learner(*start_of(name), BASES[name].settings), [*CLASSES[name]].index
    for number, *labels in sequence(name, moves):
        before, after = (None if label is None else index(label) for label in labels)
        learner.learn(document_of(TEXTS[number], learner.table), before, after)
    return learner


@pytest.mark.parametrize("name", HOW)
@examples(60)
@given(moves=MOVES)
def test_counts_after_any_sequence_are_those_of_counting_at_once(name, moves):
    learner, state = learned(name, moves), {n: after for n, _, after in sequence(name, moves)}
    left = [(TEXTS[number], label) for number, label in state.items() if label is not None]
    batch = tokenize([message(body=text) for text, _ in left], TokenSettings())
    weighting = HOW[name].weighting
    more = count_batch(batch, [label for _, label in left], weighting)
    assert plain(without_empty(learner.table)) == plain(add_tables([BASES[name].table, more]))
    if name == "blended":  # the sums of a blend are those of its counts by then
        fit = BASES[name].fit.recounted(learner.table, HOW[name])
        for text in [*TEXTS, WORDS]:
            document = learner.table.without_unlearned(document_of(text, learner.table))
            expected = fit.joint(learner.table, document, weighting)[0]
            assert learner.answer(document).tolist() == expected.tolist()


@pytest.mark.parametrize("laid_over", [overlay, uncopied_overlay])
@pytest.mark.parametrize("name", HOW)
@examples(60)
@given(moves=MOVES)
@example(moves=[(6, 0), (6, 3)])  # tokens that are learned and un-learned again
@example(moves=[])
def test_changes_laid_over_a_model_answer_as_the_learner_that_made_them(name, laid_over, moves):
    changes, learner = changes_of(name, moves), learned(name, moves)
    model = laid_over(BASES[name], changes)
    assert (model is BASES[name]) == (not changes)
    for text in [*TEXTS, WORDS, "nothing known"]:
        batch = tokenize([message(body=text)], TokenSettings())
        answer = model.joint_of(model.table.in_columns(batch.documents))[0]
        assert answer.tolist() == learner.answer(document_of(text, learner.table)).tolist()


@given(moves=MOVES)
def test_changes_that_are_not_copied_are_explained_as_copied_ones(moves):
    changes = changes_of("combined", moves)
    copied, uncopied = (of(BASES["combined"], changes) for of in (overlay, uncopied_overlay))
    for text in [*TEXTS, WORDS]:
        ours, theirs = (
            each.explain_message(message(body=text), "") for each in (uncopied, copied)
        )
        assert ours == theirs


def due_points(growth, moves):
    """Return the numbers of the changes, from 0, at which a fit was due."""
    return [n for n, (before, after) in enumerate(moves) if growth.note(before, after)]


def changes_between(moves):
    nothing = tokenize([message()], TokenSettings())
    return [
        LabelChange(n, before, after, 0, nothing.documents, batch_vocabulary(nothing))
        for n, (before, after) in enumerate(moves)
    ]


def test_a_fit_is_due_when_a_class_is_new_has_changed_by_a_twentieth_or_two_thousand_times():
    growth = ModelGrowth({"ham": 200, "spam": 40})

    # The tenth change of ham; a message that leaves a class changes it too.
    assert due_points(growth, [(None, "ham")] * 6 + [("ham", None)] * 4) == [9]
    # There are still 40 spam, of which two are a twentieth: a move changes both classes.
    assert due_points(growth, [("spam", "ham"), (None, "ham"), (None, "spam")]) == [2]
    # At that fit there were 204 ham: ten are less than a twentieth.
    assert due_points(growth, [(None, "ham")] * 11) == [10]
    assert growth.class_count == {"ham": 215, "spam": 40}
    growth = ModelGrowth({"ham": 100, "spam": 100})
    assert due_points(growth, [(None, "ham"), (None, "work"), (None, "work")]) == [1, 2]
    assert growth.classes == ("ham", "spam", "work")
    growth.note("work", "spam")
    growth.note("work", "spam")
    assert growth.classes == ("ham", "spam")  # a class without messages is none
    growth = ModelGrowth({"ham": 1e6, "spam": 1e6})
    assert due_points(growth, [(None, "ham"), ("ham", "spam")] * 1100) == [
        training.MAX_CHANGES - 1
    ]
    assert training.MAX_CHANGES == 2000


LABELS = st.sampled_from([None, "ham", "spam", "work"])
STEPS = st.lists(st.tuples(LABELS, LABELS), max_size=80)


@given(STEPS, st.integers(0, 80), st.integers(1, 60))
def test_when_fits_are_due_depends_on_the_sequence_alone(moves, cut, n):
    whole, parts = ModelGrowth({"ham": n, "spam": 2 * n}), ModelGrowth({"ham": n, "spam": 2 * n})
    first = due_points(parts, moves[:cut])
    # What a copy notes does not reach the original.
    due_points(parts.copy(), moves[::-1])
    second = [n + len(moves[:cut]) for n in due_points(parts.copy(), moves[cut:])]
    assert first + second == due_points(whole, moves)


@given(STEPS, st.integers(1, 60))
@examples(40)
def test_after_a_fit_that_was_due_changes_are_counted_from_zero(moves, n):
    class_count = {"ham": n, "spam": 2 * n}
    points = due_points(ModelGrowth(class_count), moves)
    growth = ModelGrowth(class_count)
    last = growth.note_all(changes_between(moves))

    assert last == (points[-1] + 1 if points else 0)
    # Growth that starts from the counts at that fit goes on in the same way.
    at_fit = ModelGrowth(class_count)
    due_points(at_fit, moves[:last])
    later = ModelGrowth(at_fit.class_count)
    assert due_points(later, moves[last:]) == []
    more = [(None, "ham"), ("ham", "spam"), (None, "work")] * 20
    assert due_points(later, more) == due_points(growth, more)
