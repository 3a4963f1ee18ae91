"""The witness keeps the reasons of what is most surely wrong, and no more."""

import numpy as np
import pytest

from nbspam.evaluation.judging.held_out import (
    fold_trial,
    judge_folds,
    judge_online,
)
from nbspam.evaluation.judging.single import judge_classifier, judge_split
from nbspam.evaluation.labels import labelled
from nbspam.evaluation.trial import under_prior
from nbspam.evaluation.witness import KEPT_BYTES, N_KEPT, Witness
from nbspam.settings import PRESETS, Choices, chosen
from nbspam.sources.items import Item, read_items
from nbspam.verdicts import Evidence, Verdict
from support import texts, write_mails


def said(nats):
    return lambda place, towards, against: ((Evidence(f"{place}", nats, "text", (1.0, 1.0)),), 0.5)


def joint_of(score):
    score = np.asarray(score, np.float64)
    return np.stack([-np.logaddexp(0, score), -np.logaddexp(0, -score)], axis=1)


def test_the_worst_of_each_class_are_kept_whatever_their_order():
    rng = np.random.default_rng(0)
    score, y = rng.normal(0, 3, 500), rng.integers(0, 2, 500)
    witness = Witness()
    for rows in np.array_split(rng.permutation(500), 9):
        witness.hear(rows, y[rows], joint_of(score[rows]), said(1.0))

    lead = np.where(y == 1, -score, score)
    expected = set()
    for truth in (0, 1):
        of = np.flatnonzero(y == truth)
        expected |= set(of[np.argsort(-lead[of])[:N_KEPT]].tolist())
    assert witness.reasons.keys() == expected
    assert {(r.towards, r.against) for r in witness.reasons.values()} == {(1, 0)}


def test_witnesses_of_parts_join_to_one_of_the_whole():
    rng = np.random.default_rng(1)
    score, y = rng.normal(0, 3, 300), rng.integers(0, 2, 300)
    whole, joined = Witness(), Witness()
    whole.hear(np.arange(300), y, joint_of(score), said(1.0))
    for rows in np.array_split(np.arange(300), 4):
        part = Witness()
        part.hear(rows, y[rows], joint_of(score[rows]), said(1.0))
        joined.join(part)
    assert joined.reasons.keys() == whole.reasons.keys()
    assert (joined.words, joined.settings) == ({}, None)


def test_folds_in_other_processes_are_heard_alike(mails):
    found = []
    for jobs in (1, 2):
        witness = Witness()
        items = witness.watched(read_items([str(mails)]))
        judge_folds(items, PRESETS["mail"], 3, 0, jobs, witness=witness)
        found.append((witness.reasons, witness.words, witness.settings))
    assert found[0] == found[1]


def test_of_many_classes_the_answer_is_explained_against_the_truth():
    witness = Witness()
    joint = np.log([[0.2, 0.7, 0.1], [0.6, 0.1, 0.3]])
    witness.hear(np.array([4, 7]), np.array([0, 0]), joint, said(1.0))
    assert {row: reason[:2] for row, reason in witness.reasons.items()} == {4: (1, 0), 7: (2, 0)}


def test_a_single_class_has_nothing_to_explain():
    witness = Witness()
    witness.hear(np.array([0]), np.array([0]), np.zeros((1, 1)), said(1.0))
    assert witness.reasons == {}


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
def test_every_way_of_judging_is_witnessed(way, mails, mail_classifier):
    witness, settings = Witness(), PRESETS["mail"]
    items = read_items([str(mails)])
    if way == "folds":
        trial = judge_folds(witness.watched(items), settings, 3, 0, witness=witness)
    elif way == "online":
        trial = judge_online(witness.watched(items), settings, "everything", witness=witness)
    elif way == "split":
        half = [*items][::2]
        test = witness.watched(read_items([str(mails)]))
        trial = judge_split(half, test, settings, witness=witness)
    else:
        trial = judge_classifier(mail_classifier, witness.watched(items), witness=witness)
    assert adds_up(witness, trial)
    assert set(trial.wrong_rows()[:N_KEPT].tolist()) <= witness.reasons.keys()
    assert all(witness.item(name) is not None for name in trial.names)
    assert witness.words.keys() == {"ham", "spam"}
    assert witness.settings == settings


def test_reasons_are_those_of_explain(mails, mail_classifier):
    witness = Witness()
    trial = judge_classifier(
        mail_classifier, witness.watched(read_items([str(mails)])), witness=witness
    )
    for row, (_, _, evidence) in witness.reasons.items():
        assert evidence == mail_classifier.explain(witness.item(trial.names[row])).evidence


def test_the_answers_are_the_same_with_and_without_a_witness(mails):
    data, _ = labelled(read_items([str(mails)]), PRESETS["mail"], 1)
    plain = fold_trial(data, PRESETS["mail"], 3, 0)
    seen = fold_trial(data, PRESETS["mail"], 3, 0, witness=Witness())
    np.testing.assert_array_equal(plain.joint, seen.joint)


def test_another_prior_moves_the_constant_only():
    witness, items = Witness(), texts(20, 0)
    settings = chosen(Choices(model="multinomial"), True, False)
    trial = judge_folds(witness.watched(items), settings, 4, 0, witness=witness)
    moved = under_prior(trial, np.array([0.9, 0.1]))
    row = next(iter(witness.reasons))
    verdict = Verdict("", "sea", {})
    before, after = (witness.explanation(each, row, verdict) for each in (trial, moved))
    assert before.evidence == after.evidence
    assert after.constant - before.constant == pytest.approx(after.score - before.score)
    assert after.score != before.score


def test_dependent_tokens_and_rows_are_explained(mails):
    witness = Witness()
    settings = chosen(Choices(model="aode", max_features=10), False, False)
    trial = judge_folds(witness.watched(read_items([str(mails)])), settings, 3, 0, witness=witness)
    assert adds_up(witness, trial)


def test_words_are_no_runs_of_characters():
    witness = Witness()
    settings = PRESETS["text"]
    judge_folds(witness.watched(texts(20, 0)), settings, 3, 0, witness=witness)
    words = [each.token for tokens in witness.words.values() for each in tokens]
    assert words
    assert not [word for word in words if word.startswith("char:")]


def test_of_what_is_in_no_file_only_the_beginning_is_kept():
    witness = Witness()
    big = Item("box#1", "ham", b"x" * (10 * KEPT_BYTES))
    assert [*witness.watched([big])] == [big]
    assert witness.item("box#1").data == b"x" * KEPT_BYTES
    assert witness.item("other") is None


def test_a_model_that_is_met_tells_its_strongest_words(mail_classifier):
    witness = Witness()
    witness.meet(mail_classifier)
    assert {len(tokens) for tokens in witness.words.values()} == {12}
    for tokens in witness.words.values():
        weights = [each.weight for each in tokens]
        assert weights == sorted(weights, reverse=True)


class Counting(Witness):
    """A witness that notes what was asked for, by row."""

    def hear_one(self, row, truth, joint, reasons, at_once=True):
        def noted(*pair):
            self.asked.append(row)
            return reasons(*pair)

        super().hear_one(row, truth, joint, noted, at_once)


def test_a_single_model_is_asked_only_for_what_is_shown_and_once(mails, mail_classifier):
    witness = Counting()
    witness.asked = []
    trial = judge_classifier(mail_classifier, read_items([str(mails)]), witness=witness)
    assert witness.asked == []
    verdict = Verdict("m", "ham", {"ham": 1.0})
    row = max(range(len(trial.y)), key=lambda row: -trial.joint[row, trial.y[row]])
    for _ in range(2):
        assert witness.explanation(trial, row, verdict).verdict == verdict
    assert witness.asked == [row]
    assert len(witness.reasons) == len(witness.asked) == 2 * N_KEPT


def test_a_message_that_is_gone_when_it_is_explained_has_no_reasons(tmp_path, mail_classifier):
    write_mails(tmp_path / "mails")
    witness = Witness()
    items = witness.watched(read_items([str(tmp_path / "mails")]))
    trial = judge_classifier(mail_classifier, items, witness=witness)
    (tmp_path / "mails" / "ham" / "1.eml").unlink()
    row = next(n for n, name in enumerate(trial.names) if name.endswith("ham/1.eml"))
    assert witness.explanation(trial, row, Verdict("m", "spam", {"spam": 1.0})) is None
    assert witness.reasons.keys() == {*range(4)} - {row}
