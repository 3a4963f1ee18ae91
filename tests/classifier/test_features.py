"""Models of dependent tokens on mail, from training to explaining, and refusals."""

import json
from dataclasses import replace

import numpy as np
import pytest

from nbspam.classifier.features import features_held_out, train_features
from nbspam.counts.corpus import read_corpus
from nbspam.counts.table import pruned_table
from nbspam.models.dependent import AODE
from nbspam.settings import FEATURES, PRESETS
from nbspam.sources.items import Item, read_items
from nbspam.store.open import load_classifier
from support import answered_by_position, first_mails

MAILS = first_mails()


@pytest.fixture(scope="module")
def corpus():
    return read_corpus(read_items([str(MAILS)]), how("aode"))[0]


def how(model, features=60, **more):
    return replace(PRESETS["mail"], combine=False, model=model, max_features=features, **more)


def test_a_fold_chooses_from_its_own_documents_alone(corpus):
    rest, of = np.arange(0, len(corpus.y), 2), np.arange(1, len(corpus.y), 2)
    table = pruned_table(corpus.table(rest, "presence"), max_features=60)
    columns = corpus.vocabulary.columns(table.vocabulary.keys)
    labels = np.array(corpus.classes)[corpus.y]
    settings = how("aode", alpha=1.0)
    model = AODE(class_prior="estimated").fit(corpus.X[rest][:, columns], labels[rest])

    expected = model.predict_joint_log_proba(corpus.X[of][:, columns])
    np.testing.assert_allclose(
        features_held_out(corpus, settings, rest, of).joint, expected, rtol=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", FEATURES)
def test_every_model_goes_the_whole_way(nbspam, model, corpus, name):
    n = 10 if name in ("a2de", "network") else 30
    out = nbspam.out("train", MAILS, "--model", name, "--features", n)
    assert f"learned {n} tokens" in out

    # A model trained directly answers like the model file.
    classifier = load_classifier(str(model))
    direct = train_features(corpus, how(name, n, alpha=1.0))
    columns = corpus.vocabulary.columns(direct.table.vocabulary.keys)
    expected = direct.model.predict_proba(corpus.X[:, columns])
    verdicts = list(classifier.classify(read_items([str(MAILS)])))
    found = [list(verdict.posterior.values()) for verdict in verdicts]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    message = MAILS / "spam" / "001-pills-plain.eml"
    for command in ("classify", "predict", "explain"):
        assert nbspam(command, message)[0] == 0
        assert nbspam(command, stdin=message.read_bytes())[0] == 0
    assert nbspam("words")[0] == nbspam("info")[0] == 0
    assert f"model\t{name}\n" in nbspam("info")[1]


def test_a_model_of_dependent_tokens_is_evaluated_with_its_parameters(nbspam, model):
    flags = ("--model", "aode", "--features", 20, "--min-support", "30", "--estimate", "mle")
    assert nbspam("train", MAILS, *flags)[0] == 0
    assert "min_support\t30.0" in nbspam("info")[1]
    learnt = load_classifier(str(model)).model
    assert (learnt.min_support, learnt.estimate) == (30.0, "mle")

    text = nbspam("eval", MAILS)[1]
    assert nbspam("eval", MAILS, "--test", MAILS, *flags)[1] == text
    assert nbspam("eval", MAILS, "--cv", "3", *flags)[0] == 0
    assert nbspam("compare", MAILS, "--cv", "2", "--against", "--model tan --features 5")[0] == 0


@pytest.mark.parametrize("name", FEATURES)
def test_shares_of_tokens_add_up_to_the_score(corpus, name):
    classifier = train_features(corpus, how(name, 12))
    for item in list(read_items([str(MAILS / "spam")]))[:12]:
        explained = classifier.explain(item)
        shares = [each.contribution for each in explained.evidence]
        assert explained.constant + sum(shares) == pytest.approx(explained.score, abs=1e-9)
        assert [*map(abs, shares)] == sorted(map(abs, shares), reverse=True)


def test_three_classes_are_told_apart_by_every_model(nbspam, model, tmp_path):
    for k, word in enumerate(("apple", "pear", "plum")):
        (tmp_path / word).mkdir()
        for n in range(4):
            text = f"Subject: {word}\n\n{word} tart {n} {'again ' * (k == n)}\n"
            (tmp_path / word / f"{n}.eml").write_text(text)
    for name in FEATURES:
        assert nbspam("train", tmp_path, "--model", name, "--features", 12)[0] == 0
        out = nbspam("classify", "--json", tmp_path / "plum")[1]
        assert [json.loads(line)["label"] for line in out.splitlines()] == ["plum"] * 4


@pytest.fixture(scope="module")
def classifier(corpus):
    return train_features(corpus, how("tan", 30))


@pytest.mark.parametrize("jobs", [1, 2])
def test_two_messages_of_one_name_get_their_own_answers(classifier, jobs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where no file is called twin
    monkeypatch.setattr("nbspam.tokens.tokenizer._BATCH_BYTES", 1)  # a batch for each message
    ham, spam = (sorted((MAILS / label).iterdir())[0].read_bytes() for label in ("ham", "spam"))
    twins = [Item("twin", "ham", ham), Item("twin", None), Item("twin", "spam", spam)]
    assert "twin" in answered_by_position(classifier, twins, ("ham", "spam"), jobs)
