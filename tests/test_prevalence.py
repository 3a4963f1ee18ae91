"""Other shares of the classes: by Bayes' rule, by EM, and through the commands."""

import json
from dataclasses import replace

import numpy as np
import pytest
from nbspam.classifier.logtables import assumed_prior

from nbspam.classifier.explanation import explain
from nbspam.classifier.training import count_items, train
from nbspam.decision import (
    estimate_prior,
    prior_shift,
    shares_of,
    stated_prior,
    update_prior,
    with_prior,
)
from nbspam.errors import UsageError
from nbspam.mail.message import parse_message
from nbspam.settings import MANY, PLAIN, PRESETS
from nbspam.sources.items import read_items
from nbspam.store.open import load_tokens as load
from nbspam.verdicts import posterior

NEW = np.array([0.1, 0.9])


@pytest.fixture(scope="module")
def items(mails):
    return list(read_items([str(mails)]))


@pytest.mark.parametrize("model", ["combined", "bernoulli", "multinomial", "complement"])
def test_all_that_a_classifier_says_follows_the_prior(items, model):
    settings = PRESETS["mail"]
    if model != "combined":
        settings = replace(settings, model=model, combine=False)
    classifier = train(count_items(items[::2], settings), settings)
    moved = with_prior(classifier, NEW)
    old = assumed_prior(classifier.table.class_count, settings)
    for item in items[1::40]:
        message = parse_message(item.read())
        before, after = explain(classifier, message, ""), explain(moved, message, "")
        joint = classifier.joint_of([message])
        expected = update_prior(posterior(joint), old, NEW)[0]
        assert list(after.verdict.posterior.values()) == pytest.approx(expected, abs=1e-12)
        total = after.constant + sum(row.contribution for row in after.evidence)
        assert total == pytest.approx(after.score, abs=1e-9)
        if model == "combined":
            shift = prior_shift(old, NEW)
            assert after.verdict.score == pytest.approx(after.score)
            assert after.score - before.score == pytest.approx(shift[1] - shift[0])
            assert after.evidence == before.evidence


def test_a_blend_follows_the_prior_by_bayes_rule_too(items):
    settings, new = MANY["mail"], np.array([0.7, 0.1, 0.15, 0.05])
    four = [item._replace(label=f"{item.label}{n % 4 // 2}") for n, item in enumerate(items)]
    classifier = train(count_items(four[::2], settings), settings)
    moved = with_prior(classifier, new)
    old = assumed_prior(classifier.table.class_count, settings)
    for item in items[1::40]:
        message = parse_message(item.read())
        after = explain(moved, message, "")
        expected = update_prior(posterior(classifier.joint_of([message])), old, new)[0]
        assert list(after.verdict.posterior.values()) == pytest.approx(expected, abs=1e-12)
        total = after.constant + sum(row.contribution for row in after.evidence)
        assert total == pytest.approx(after.score, abs=1e-9)


def test_the_old_prior_changes_nothing(items):
    settings = PRESETS["mail"]
    classifier = train(count_items(items[::4], settings), settings)
    same = with_prior(classifier, assumed_prior(classifier.table.class_count, settings))
    message = parse_message(items[1].read())
    assert (same.joint_of([message]) == classifier.joint_of([message])).all()


def test_what_a_model_assumes_is_what_its_settings_say():
    count, plain = np.array([1.0, 3.0, 4.0]), PLAIN["text"]
    assert assumed_prior(count, plain).tolist() == [1 / 8, 3 / 8, 1 / 2]
    assert assumed_prior(count, replace(plain, class_prior="uniform")).tolist() == [1 / 3] * 3
    stated = replace(plain, class_prior=(0.2, 0.3, 0.5))
    assert assumed_prior(count, stated).tolist() == [0.2, 0.3, 0.5]
    # What is combined knows of its messages alone.
    combined = replace(PRESETS["mail"], class_prior="uniform")
    assert assumed_prior(count[:2], combined).tolist() == [1 / 4, 3 / 4]


def test_em_finds_the_shares_of_unlabelled_documents():
    # Two normal classes a distance of 3 apart, trained half and half, met 1 to 9.
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.9).astype(int)
    x = rng.normal(3.0 * y)
    p_spam = 1 / (1 + np.exp(-(3 * x - 4.5)))  # the log ratio of the two densities
    old = np.array([0.5, 0.5])
    found = estimate_prior(np.column_stack([1 - p_spam, p_spam]), old)
    assert found.sum() == pytest.approx(1)
    assert found[1] == pytest.approx(y.mean(), abs=0.01)
    shares = shares_of(np.column_stack([1 - p_spam, p_spam]), y, old)
    assert shares.observed[1] == y.mean()
    assert shares.estimated.tolist() == found.tolist()


def test_em_is_a_fixed_point_of_its_own_step():
    p = np.random.default_rng(1).dirichlet([0.3, 0.5, 0.4], 200)
    old = np.array([0.2, 0.3, 0.5])
    found = estimate_prior(p, old)
    np.testing.assert_allclose(update_prior(p, old, found).mean(axis=0), found, atol=1e-6)


def test_em_survives_certainty():
    sure = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(estimate_prior(sure, np.array([0.5, 0.5])), [2 / 3, 1 / 3])
    none = estimate_prior(sure[:2], np.array([1.0, 0.0]))
    np.testing.assert_allclose(none, [1, 0], atol=1e-8)


def test_classes_not_stated_share_what_is_left():
    old = np.array([0.1, 0.5, 0.4])
    assert stated_prior({"a": 0.2, "b": 0.5, "c": 0.3}, tuple("abc"), old).tolist() == [
        0.2,
        0.5,
        0.3,
    ]
    assert stated_prior({"b": 0.5}, tuple("abc"), old) == pytest.approx([0.1, 0.5, 0.4])


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"d": 0.5}, "--prior d: not a class of the model; there are a, b"),
        ({"a": 0.0}, "--prior: not shares"),
        ({"a": 1.0}, "--prior: not shares"),
        ({"a": 0.5, "b": 0.6}, "--prior: not shares"),
        ({"a": -0.5}, "--prior: not shares"),
        ({"a": float("nan")}, "--prior: not shares"),
    ],
)
def test_shares_that_cannot_be_are_refused(stated, said):
    with pytest.raises(UsageError, match=said):
        stated_prior(stated, ("a", "b"), np.array([0.5, 0.5]))


def test_a_class_never_seen_has_no_share_to_change():
    with pytest.raises(UsageError, match="--prior: not shares"):
        stated_prior({"a": 0.5}, ("a", "b"), np.array([1.0, 0.0]))


# --- the commands -------------------------------------------------------------------------


def test_classify_and_explain_follow_the_prior(nbspam, trained, folder):
    path = folder / "spam" / "1.eml"

    def said(command, *options):
        return json.loads(nbspam(command, path, "--json", *options)[1])

    plain, moved = said("classify"), said("classify", "--prior", "spam=0.01")
    assert moved["score"] == pytest.approx(plain["score"] + np.log(1 / 99))
    explained = said("explain", "--prior", "spam=0.01")
    assert explained["posterior"] == moved["posterior"]
    assert explained["score"] == pytest.approx(moved["score"])
    assert load(str(trained)).combination is not None  # the file is as it was
    assert said("classify") == plain


def test_classify_estimates_the_prior_from_the_mail_itself(nbspam, mails, model, tmp_path):
    assert nbspam("train", mails)[0] == 0
    spam = mails / "spam"

    def said(*options):
        lines = nbspam("classify", spam, "--json", *options)[1].splitlines()
        return [json.loads(line)["score"] for line in lines]

    plain, moved = said(), said("--prior", "estimated")
    shifts = np.subtract(moved, plain)
    assert shifts.min() == pytest.approx(shifts.max())
    # All of it is spam, so that much more than half is estimated to be.
    assert shifts[0] > 1
    status, out, _ = nbspam("eval", mails, "--prior", "estimated", "--json")
    assert status == 0
    shares = json.loads(out)["shares"]
    assert shares["estimated"]["spam"] == pytest.approx(shares["assumed"]["spam"], abs=1e-5)
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "1.eml").symlink_to(tmp_path / "nowhere")
    assert nbspam("classify", tmp_path / "gone", "--prior", "estimated")[:2] == (1, "")


def test_eval_follows_the_prior_and_tells_the_shares(nbspam, trained, folder):
    for how in ((), ("--cv", 2), ("--online",), ("--test", folder)):
        status, out, _ = nbspam("eval", folder, "--json", "--prior", "spam=0.2", *how)
        assert status == 0
        assert json.loads(out)["shares"]["assumed"] == {"ham": 0.8, "spam": 0.2}
        assert json.loads(out)["shares"]["observed"] == {"ham": 0.5, "spam": 0.5}


@pytest.mark.parametrize("stated", ["spam", "spam=x", "estimated=1", "=0.3", "eggs=0.3", "spam=2"])
def test_a_prior_that_cannot_be_read_is_one_line(nbspam, trained, folder, stated):
    status, out, err = nbspam("classify", folder, "--prior", stated)

    assert (status, out) == (2, "")
    assert err.startswith("nbspam: --prior")
    assert err.count("\n") == 1
