from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.counts.corpus import read_corpus
from nbspam.errors import UsageError
from nbspam.evaluation.judging import judge_online
from nbspam.evaluation.online import progress
from nbspam.evaluation.order import date_of
from nbspam.settings import PRESETS
from nbspam.sources.items import Item
from support import examples

MAIL = PRESETS["mail"]
POLICIES = ("everything", "errors", "near")
WORDS = ["lunch", "pills", "meeting", "cheap", "friday", "offer"]
MESSAGES = st.lists(
    st.tuples(st.lists(st.sampled_from(WORDS), max_size=4), st.sampled_from(["ham", "spam"])),
    min_size=2,
    max_size=30,
)


def items_of(messages):
    return [
        Item(f"{n}.eml", label, f"Subject: {' '.join(words)}\n\n{' '.join(words)}\n".encode())
        for n, (words, label) in enumerate(messages)
    ]


def progress_of(messages, policy="everything", chosen=MAIL):
    data, _ = read_corpus(items_of(messages), chosen)
    return data, progress(data, chosen, policy)


def stream(n, seed=0):
    """Ham and spam of different words, in random order, one word in thirty astray."""
    rng = np.random.default_rng(seed)
    messages = []
    for _ in range(n):
        spam = bool(rng.integers(2))
        words = [WORDS[2 * rng.integers(3) + (spam != (rng.random() < 1 / 30))] for _ in range(5)]
        messages.append((words, "spam" if spam else "ham"))
    return messages


BOTH = [(["lunch"], "ham"), (["pills"], "spam")]


@examples(50)
@given(MESSAGES, MESSAGES, st.sampled_from(POLICIES))
def test_no_answer_depends_on_the_future(past, future, policy):
    past = BOTH + past
    _, alone = progress_of(past, policy)
    _, followed = progress_of(past + future, policy)

    assert followed.score[: len(past)].tolist() == alone.score.tolist()
    assert followed.learned[: len(past)].tolist() == alone.learned.tolist()


@pytest.mark.parametrize("policy", POLICIES)
def test_an_answer_comes_before_its_truth(policy):
    messages = stream(60)
    words, label = messages[-1]
    other = [*messages[:-1], (words, "ham" if label == "spam" else "spam")]

    scores = [progress_of(each, policy)[1].score for each in (messages, other)]
    assert scores[0].tolist() == scores[1].tolist()


@examples(50)
@given(MESSAGES)
def test_everything_learned_is_the_batch_count_table(messages):
    data, learned = progress_of(BOTH + messages)
    table = data.table(np.arange(len(data.y)), MAIL.weighting)

    assert learned.learned.all()
    assert learned.feature_count.tolist() == table.feature_count.tolist()
    assert learned.class_count.tolist() == table.class_count.tolist()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("first", ["ham", "spam"])
def test_nothing_is_known_until_both_classes_were_learned(policy, first):
    second = "spam" if first == "ham" else "ham"
    _, learned = progress_of([(["lunch"], first)] * 3 + [(["pills"], second)] * 2, policy)

    assert learned.score[:4].tolist() == [0] * 4
    assert learned.learned[:4].all()
    assert learned.score[4] != 0


@pytest.mark.parametrize("policy", POLICIES)
def test_counts_are_those_of_the_learned_messages(policy):
    data, learned = progress_of(stream(150), policy)
    table = data.table(np.flatnonzero(learned.learned), MAIL.weighting)

    assert learned.feature_count.tolist() == table.feature_count.tolist()
    assert learned.class_count.tolist() == table.class_count.tolist()


def test_policies_learn_errors_then_near_misses_then_everything():
    data, errors = progress_of(stream(150), "errors")
    _, near = progress_of(stream(150), "near")

    known = np.abs(errors.score) > 0
    wrong = (errors.score > 0) != (data.y == 1)
    assert (errors.learned == (wrong | ~known)).all()
    assert errors.learned.sum() < near.learned.sum() < len(data.y)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_answers_become_right(policy):
    data, learned = progress_of(stream(300), policy)

    right = (learned.score > 0) == (data.y == 1)
    assert right[200:].mean() > 0.9


def test_pairs_count_online_too():
    pairs = replace(MAIL, tokens=MAIL.tokens._replace(pairs=True))
    without, with_pairs = (progress_of(stream(60), chosen=each)[1] for each in (MAIL, pairs))

    assert len(with_pairs.feature_count) > len(without.feature_count)
    assert with_pairs.score.tolist() != without.score.tolist()


def test_by_date_is_as_sorted_by_hand():
    messages = stream(40)
    items = [
        Item(item.name, item.label, b"Date: %d Mar 2020 10:00 +0000\n" % (28 - n % 28) + item.data)
        for n, item in enumerate(items_of(messages))
    ]
    by_hand = sorted(items, key=lambda item: date_of(item.data))

    ours = judge_online(items, MAIL, "everything", "date").joint.tolist()
    assert ours == judge_online(by_hand, MAIL, "everything", "given").joint.tolist()
    assert ours != judge_online(items, MAIL, "everything", "given").joint.tolist()


def test_what_cannot_be_read_is_skipped_in_every_order(tmp_path):
    items = [*items_of(BOTH * 2), Item(str(tmp_path / "none.eml"), "ham")]
    for order in ("given", "name", "date"):
        trial = judge_online(items, MAIL, "everything", order)
        assert len(trial.y) == 4
        assert [each.name for each in trial.skipped] == [items[-1].name]


# --- refusals -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("messages", "chosen", "said"),
    [
        ([(["a"], "x"), (["b"], "y"), (["c"], "z")], MAIL, "3 classes (x, y, z)"),
        ([(["a"], "x")], MAIL, "1 classes (x)"),
        ([], MAIL, "0 classes (no labelled mail)"),
        (BOTH, replace(MAIL, combine=False), "--preset mail"),
        (BOTH, replace(MAIL, min_df=2), "--min-df"),
        (BOTH, replace(MAIL, max_features=9), "--max-features"),
    ],
)
def test_what_cannot_be_judged_online_is_refused(messages, chosen, said):
    with pytest.raises(UsageError) as caught:
        judge_online(items_of(messages), chosen, "everything")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--online", "--cv", "2"), "--cv and --online"),
        (("--online", "--test", "x"), "--test and --online"),
        (("--online", "--cv", "2", "--test", "x"), "--cv and --test and --online"),
        (("--policy", "error"), "--policy: only online"),
        (("--cv", "2", "--order", "name"), "--order: only online"),
        (("--online", "--min-df", "2"), "--min-df"),
        (("--online", "--model", "bernoulli"), "--preset mail"),
    ],
)
def test_options_that_exclude_each_other_are_one_error(nbspam, folder, options, said):
    status, out, err = nbspam("eval", folder, *options)

    assert (status, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


def test_eval_online_prints_the_numbers(nbspam, folder):
    status, out, _ = nbspam("eval", folder, "--online", "--policy", "near", "--order", "name")

    assert status == 0
    assert "of 4 right" in out
    assert "lam %" in out
    assert "interval" not in out


@pytest.mark.parametrize("how", [("--online",), ("--cv", "2"), ()])
def test_intervals_are_the_seeds(nbspam, trained, folder, few_resamples, how):
    first, again = (nbspam("eval", folder, "--intervals", "--seed", 1, *how) for _ in range(2))

    assert first == again
    assert "95 % interval" in first[1]
