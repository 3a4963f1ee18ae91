"""The witness keeps the reasons of what is most surely wrong, and no more."""

import numpy as np
import pytest

from nbspam.errors import InputError
from nbspam.evaluation import judging
from nbspam.evaluation.evaluation import trial_under_prior
from nbspam.evaluation.online import judge_online
from nbspam.evaluation.witness import KEPT_BYTES, N_KEPT, N_OF_MANY, Witness, strongest_values
from nbspam.settings import PRESETS, SettingsChoices, chosen_settings
from nbspam.sources.items import Item, read_items
from nbspam.sources.records import rows_given
from nbspam.tables.training import TableSettings, read_table, train_table
from nbspam.verdicts import Evidence, Verdict, joint_of_log_odds
from support import texts


@pytest.fixture(scope="module")
def few(mails):
    return [item._replace(data=item.read()) for item in read_items([str(mails)])][::3]


def said(nats):
    return lambda place, towards, against: ((Evidence(f"{place}", nats, "text", (1.0, 1.0)),), 0.5)


def test_the_worst_of_each_class_are_kept_whatever_their_order_and_by_how_many_they_are_heard():
    rng = np.random.default_rng(0)
    score, y = rng.normal(0, 3, 500), rng.integers(0, 2, 500)
    witness, joined = Witness(), Witness()
    for rows in np.array_split(rng.permutation(500), 9):
        part = Witness()
        for each in (witness, part):
            each.hear(rows, y[rows], joint_of_log_odds(score[rows]), said(1.0))
        joined.join(part)

    lead = np.where(y == 1, -score, score)
    expected = set()
    for truth in (0, 1):
        of = np.flatnonzero(y == truth)
        expected |= set(of[np.argsort(-lead[of])[:N_KEPT]].tolist())
    assert witness.reasons.keys() == joined.reasons.keys() == expected
    assert {(r.towards, r.against) for r in witness.reasons.values()} == {(1, 0)}
    assert (joined.words, joined.settings) == ({}, None)


def test_of_many_classes_the_worst_answers_of_all_are_kept():
    rng = np.random.default_rng(1)
    p, y = rng.dirichlet(np.full(30, 0.1), 500), rng.integers(0, 30, 500)
    witness = Witness()
    for rows in np.array_split(rng.permutation(500), 9):
        witness.hear(rows, y[rows], np.log(p[rows]), said(1.0))
    wrong = np.flatnonzero(p.argmax(axis=1) != y)
    assert witness.reasons.keys() == {*wrong[np.argsort(-p.max(axis=1)[wrong])[:N_OF_MANY]]}


def test_folds_in_other_processes_are_heard_alike_and_answer_as_if_nobody_heard(few):
    data, _ = judging.labelled_corpus(few, PRESETS["mail"], 1)
    found = []
    for jobs in (1, 2):
        witness = Witness()
        trial = judging.fold_trial(data, PRESETS["mail"], 3, 0, jobs=jobs, witness=witness)
        found.append((witness.reasons, witness.words, witness.settings, trial.joint.tolist()))
    assert found[0] == found[1]
    assert found[0][3] == judging.fold_trial(data, PRESETS["mail"], 3, 0).joint.tolist()


def test_numbers_that_are_in_no_interval_are_no_values():
    settings = TableSettings("y")
    rows = rows_given([{"x": n + 0.5, "y": "ab"[n % 2]} for n in range(9)])
    classifier = train_table(read_table(rows, settings).table, settings)
    assert strongest_values(classifier, 3) == {}


def test_single_answers_and_messages_that_are_gone_have_no_reasons():
    witness = Witness()
    joint = np.log([[0.2, 0.7, 0.1], [0.6, 0.1, 0.3]])
    witness.hear(np.array([4, 7]), np.array([0, 0]), joint, said(1.0))
    assert {row: reason[:2] for row, reason in witness.reasons.items()} == {4: (1, 0), 7: (2, 0)}
    single = Witness()
    single.hear(np.array([0]), np.array([0]), np.zeros((1, 1)), said(1.0))
    assert single.reasons == {}

    def reasons(place, towards, against):
        if place == 0:
            raise InputError("gone")
        return said(1.0)(place, towards, against)

    witness = Witness()
    witness.hear(np.arange(4), np.zeros(4, np.int64), joint_of_log_odds(np.zeros(4)), reasons)
    assert witness.reasons.keys() == {1, 2, 3}


def test_answers_that_are_right_beyond_doubt_take_no_place_of_wrong_ones():
    joint = np.tile([0.0, -np.inf, -np.inf], (N_KEPT + 1, 1))  # of maximum likelihood
    joint[-1] = np.log([0.4, 0.5, 0.1])
    witness = Witness()
    witness.hear(np.arange(N_KEPT + 1), np.zeros(N_KEPT + 1, np.int64), joint, said(1.0))
    assert witness.reasons[N_KEPT][:2] == (1, 0)
    assert {reason[1] for reason in witness.reasons.values()} == {0}


def adds_up(witness, trial):
    """Assert that evidence and a constant that is the same for a model add up to the scores."""
    assert witness.reasons
    for row, (towards, against, evidence) in witness.reasons.items():
        name = trial.names[row]
        found = witness.explanation(trial, row, Verdict(name, "ham", {"ham": 1.0}))
        assert found.score == trial.joint[row, towards] - trial.joint[row, against]
        total = found.constant + sum(each.contribution for each in evidence)
        assert total == pytest.approx(found.score)
    assert witness.explanation(trial, -1, Verdict("", "", {})) is None
    return True


@pytest.mark.parametrize("way", ["folds", "online", "split", "model"])
def test_every_way_of_judging_is_witnessed(way, few, mail_classifier):
    witness, settings = Witness(), PRESETS["mail"]
    items = witness.watched(few)
    if way == "folds":
        trial = judging.judge_folds(items, settings, 3, 0, witness=witness)
    elif way == "online":
        trial = judge_online(items, settings, "everything", witness=witness)
    elif way == "split":
        trial = judging.judge_split(few[::2], items, settings, witness=witness)
    else:
        trial = judging.judge_classifier(mail_classifier, items, witness=witness)
        for row, (_, _, evidence) in witness.reasons.items():
            told = mail_classifier.explain(witness.item(trial.names[row])).evidence
            assert evidence == tuple(each._replace(counts=each.counts[:1]) for each in told)
    assert adds_up(witness, trial)
    worst = trial.wrong_rows()[:N_KEPT]
    told = worst[trial.joint[worst, 0] != trial.joint[worst, 1]]  # the first of a stream are not
    assert set(told.tolist()) <= witness.reasons.keys()
    assert all(witness.item(name) is not None for name in trial.names)
    assert witness.settings == settings
    assert witness.words.keys() == {"ham", "spam"}
    for tokens in witness.words.values():
        weights = [each.weight for each in tokens]
        assert weights == sorted(weights, reverse=True)
        assert len(weights) == 12


def test_another_prior_moves_the_constant_only():
    witness, items = Witness(), texts(20, 0)
    settings = chosen_settings(SettingsChoices(model="multinomial"), True, False)
    trial = judging.judge_folds(witness.watched(items), settings, 4, 0, witness=witness)
    moved = trial_under_prior(trial, np.array([0.9, 0.1]))
    row = next(iter(witness.reasons))
    verdict = Verdict("", "sea", {})
    before, after = (witness.explanation(each, row, verdict) for each in (trial, moved))
    assert before.evidence == after.evidence
    assert after.constant - before.constant == pytest.approx(after.score - before.score)
    assert after.score != before.score


def test_dependent_tokens_are_explained_and_words_are_no_runs_of_characters(few):
    witness = Witness()
    settings = chosen_settings(SettingsChoices(model="aode", max_features=10), False, False)
    assert adds_up(
        witness, judging.judge_folds(witness.watched(few), settings, 3, 0, witness=witness)
    )

    witness = Witness()
    judging.judge_folds(witness.watched(texts(20, 0)), PRESETS["text"], 3, 0, witness=witness)
    words = [each.token for tokens in witness.words.values() for each in tokens]
    assert words
    assert not [word for word in words if word.startswith("char:")]


def test_items_are_kept_by_names_of_their_own_and_in_part_if_in_no_file():
    witness = Witness()
    big = Item("box#1", "ham", b"x" * (10 * KEPT_BYTES))
    assert [*witness.watched([big])] == [big]
    assert witness.item("box#1").data == b"x" * KEPT_BYTES
    assert witness.item("other") is None
    twice = Item("ann", "a", b"one"), Item("ann", "b", b"two"), Item("ann", "a", b"one")
    same = [Item("path", "a")] * 2
    witness = Witness()
    assert [*witness.watched([*twice, *same])] == [*twice, *same]
    assert (witness.item("ann"), witness.item("path")) == (None, same[0])


def test_of_many_answers_only_those_among_the_worst_so_far_are_explained():
    """The twenty best of n so far are asked for: about 20 (1 + ln(n / 20)) of each class."""
    rng = np.random.default_rng(2)
    score, y = rng.normal(0, 3, 2000), np.zeros(2000, np.int64)
    witness, asked = Witness(), []

    def reasons(place, towards, against):
        asked.append(row)
        return said(1.0)(place, towards, against)

    for row in range(2000):
        witness.hear(np.array([row]), y[[row]], joint_of_log_odds(score[[row]]), reasons)
    assert N_KEPT < len(asked) < 200
    assert witness.reasons.keys() == set(np.argsort(-score)[:N_KEPT].tolist())
    assert len(asked) == len(set(asked))


def test_of_equally_bad_answers_the_first_are_kept():
    witness, joint = Witness(), joint_of_log_odds(np.ones(60))
    for rows in np.array_split(np.random.default_rng(0).permutation(60), 7):
        witness.hear(rows, np.zeros(len(rows), np.int64), joint[rows], said(1.0))
    assert witness.reasons.keys() == {*range(N_KEPT)}
