"""Laws of online evaluation; that it answers as `update` does is in store/test_learning_on.py."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.classifier.training import train_classifier
from nbspam.counts.corpus import read_corpus
from nbspam.decision import POLICIES
from nbspam.evaluation.online import judge_online, online_trial
from nbspam.evaluation.witness import Witness
from nbspam.settings import MANY, PRESETS
from nbspam.sources.arrival import date_of
from nbspam.sources.items import Item
from support import examples, write_files

MAIL = PRESETS["mail"]

WORDS = ["lunch", "pills", "meeting", "cheap", "friday", "offer"]
MESSAGES = st.lists(
    st.tuples(st.lists(st.sampled_from(WORDS), max_size=4), st.sampled_from(["ham", "spam"])),
    min_size=2,
    max_size=30,
)


def items_of(messages, head=""):
    return [
        Item(
            f"{n}.eml",
            label,
            f"{head.format(n=n)}Subject: {(t := ' '.join(words))}\n\n{t}\n".encode(),
        )
        for n, (words, label) in enumerate(messages)
    ]


def judged(messages, policy="everything", chosen=MAIL):
    data, _ = read_corpus(items_of(messages), chosen)
    return data, online_trial(data, chosen, policy)


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
def test_no_answer_depends_on_the_future_or_on_its_own_truth(past, future, policy):
    past = BOTH + past
    words, label = past[-1]
    other = [*past[:-1], (words, "ham" if label == "spam" else "spam")]
    _, alone = judged(past, policy)
    _, followed = judged(past + future, policy)

    assert followed.joint[: len(past)].tolist() == alone.joint.tolist()
    assert followed.learned[: len(past)].tolist() == alone.learned.tolist()
    assert judged(other, policy)[1].joint.tolist() == alone.joint.tolist()


@pytest.mark.parametrize("policy", POLICIES)
def test_nothing_is_known_until_both_classes_were_learned(policy):
    for first, second in (("ham", "spam"), ("spam", "ham")):
        others = [(["lunch", f"w{n}"], first) for n in range(3)]
        _, learned = judged([*others, *[(["pills"], second)] * 2], policy)
        assert learned.joint[:4].tolist() == [[0, 0]] * 4
        assert learned.learned[:4].all()
        assert learned.score[4] != 0


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "everything"])
@pytest.mark.parametrize(
    "chosen", [replace(MAIL, tokens=MAIL.tokens._replace(pairs=True)), MANY["mail"]]
)
def test_an_answer_is_that_of_a_model_that_learned_the_same_messages(policy, chosen):
    """All that was not learned leaves no trace, and the truth of the last is not yet known."""
    messages = stream(150)
    _, learned = judged(messages, policy, chosen)
    before = np.flatnonzero(learned.learned[:-1])
    rest = np.append(before, len(messages) - 1)
    _, alone = judged([messages[row] for row in rest.tolist()], chosen=chosen)

    assert alone.learned.all()
    assert len(rest) < len(messages)
    np.testing.assert_allclose(learned.joint[rest], alone.joint, rtol=0, atol=1e-9)
    assert learned.joint.tolist() != judged(messages, policy)[1].joint.tolist()


def test_where_a_fit_was_just_due_the_answer_is_that_of_training_at_once():
    """A class that grows from nine to ten messages is fitted again."""
    messages = [([WORDS[n % 6], WORDS[n % 5]], ("ham", "spam")[n % 2]) for n in range(19)]
    data, learned = judged([*messages, (["lunch"], "spam"), (["lunch", "pills"], "ham")])
    classifier = train_classifier(data.training(np.arange(20), MAIL.weighting), MAIL)
    joint = classifier.joint_of(classifier.table.in_columns(data.over_keys(np.array([20]))))
    np.testing.assert_allclose(learned.joint[20:], joint, rtol=0, atol=1e-12)


def test_a_class_that_was_not_heard_of_is_the_least_likely():
    messages = [*stream(30), (["zebra"], "zoo"), (["zebra", "lunch"], "zoo")]
    data, learned = judged(messages, chosen=MANY["mail"])
    witness = Witness()
    online_trial(data, MANY["mail"], "everything", witness)

    zoo = data.classes.index("zoo")
    heard = [k for k in range(3) if k != zoo]
    known = learned.joint[:31].any(axis=1)
    assert known.sum() >= 25
    joint = learned.joint[:31][known]
    assert (joint[:, zoo] < joint[:, heard].min(axis=1) - 49).all()
    assert witness.reasons[30].against == zoo
    assert witness.reasons[30].evidence == ()
    assert learned.joint[31].argmax() == zoo


def test_policies_learn_errors_then_near_misses_then_everything_and_answers_become_right():
    data, errors = judged(stream(300), "error")
    _, near = judged(stream(300), "near")
    _, everything = judged(stream(300))

    known = errors.joint.any(axis=1)
    assert (errors.learned == (errors.is_wrong | ~known)).all()
    assert errors.learned.sum() < near.learned.sum() < everything.learned.sum() == len(data.y)
    for learned in (errors, near, everything):
        right = (learned.score > 0) == (data.y == 1)
        assert right[200:].mean() > 0.9


def test_by_date_is_as_sorted_by_hand_and_what_cannot_be_read_is_skipped(tmp_path):
    dated = [
        item._replace(data=b"Date: %d Mar 2020 10:00 +0000\n" % (28 - n % 28) + item.data)
        for n, item in enumerate(items_of(stream(40)))
    ]
    by_hand = sorted(dated, key=lambda item: date_of(item.data))

    def joint(items, order):
        return judge_online(items, MAIL, "everything", order).joint.tolist()

    assert joint(dated, "date") == joint(by_hand, "given") != joint(dated, "given")
    unreadable = Item(str(tmp_path / "none.eml"), "ham")
    for order in ("given", "name", "date"):
        trial = judge_online([*items_of(BOTH * 2), unreadable], MAIL, "everything", order)
        assert len(trial.y) == 4
        assert [each.name for each in trial.skipped] == [unreadable.name]


# --- the command ---------------------------------------------------------------------------


@pytest.mark.slow
def test_eval_online_says_which_order_it_took(nbspam, tmp_path, few_resamples):
    names = [
        f"mails/{label}/{n}.eml" for label, k in (("ham", 40), ("spam", 20)) for n in range(k)
    ]
    write_files(tmp_path, {name: f"Subject: {name}\n\n{name}\n".encode() for name in names})
    index = tmp_path / "index"
    index.write_text("".join(f"{name.split('/')[1]} {name}\n" for name in names))

    for arguments, words, order in (
        ([tmp_path / "mails"], "in a random order", "shuffled"),
        ([tmp_path / "mails", "--order", "name"], "in the order of the numbers", "name"),
        ([index], "in the order of the source", "given"),
    ):
        online = ["eval", "--online", *arguments]
        assert nbspam(*online)[1].startswith(f"judged and then learned {words}")
        assert nbspam.json(*online)["order"] == order
    drawn = [nbspam(*("eval", "--online", tmp_path / "mails"), "--seed", n)[1] for n in (0, 0, 3)]
    assert drawn[0] == drawn[1] != drawn[2]
    against = ["compare", "--online", tmp_path / "mails", "--against", "--pairs"]
    assert "10 stretches, in a random order" in nbspam(*against)[1]
    assert nbspam.json(*against)["order"] == "shuffled"


def test_a_policy_of_update_judges_folders_in_the_same_order(nbspam, trained, tmp_path):
    for label, words, n_docs in (("ham", "lunch on friday", 20), ("spam", "cheap pills", 9)):
        files = {f"{n}.eml": f"Subject: {words}\n\n{n}\n".encode() for n in range(n_docs)}
        write_files(tmp_path / "more" / label, files)
    _, _, said = nbspam("update", "--policy", "error", tmp_path / "more")
    assert said == "nbspam: policy error: judged in a random order\n"
    assert nbspam("update", "--policy", "error", "--ham", tmp_path / "more" / "ham")[2] == ""
