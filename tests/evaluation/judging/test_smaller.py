"""Smaller models are those that parts of the training alone would make."""

import numpy as np
import pytest

from nbspam.classifier.training import learn_items
from nbspam.counts import ledger
from nbspam.evaluation.evaluation import evaluation_of
from nbspam.evaluation.figures import views_of
from nbspam.evaluation.judging import (
    SHARES,
    judge_classifier,
    judge_split,
    judge_table_split,
    smaller_models,
    some_of,
)
from nbspam.mail.digest import digest_of
from nbspam.settings import MANY, PRESETS, SettingsChoices, chosen_settings
from nbspam.sources.items import read_items
from nbspam.sources.records import read_records
from nbspam.store.model import StoredModel
from nbspam.store.open import load_classifier, save_classifier
from nbspam.tables.schema import in_intervals
from nbspam.tables.training import TableSettings, read_table, table_rows, train_table
from support import MELONS

MAIL = PRESETS["mail"]


@pytest.fixture(scope="module")
def halves(mails):
    """Every other message to learn, and the others to judge."""
    items = [item._replace(data=item.read()) for item in read_items([str(mails)])]
    return items[::2], items[1::2]


def joint_of(classifier, items):
    return np.stack([answer.joint for answer in classifier.answers(items)])


def test_a_share_has_the_mixture_of_all_and_contains_every_smaller_one():
    rows, y = np.arange(100, 400), np.arange(400) % 3 // 2
    before = set()
    for share in SHARES:
        part = some_of(rows, y, share)
        assert np.bincount(y[part]).tolist() == [int(share * 200), int(share * 100)]
        assert before <= set(part.tolist())
        before = set(part.tolist())


@pytest.mark.parametrize(
    "settings", [MAIL, chosen_settings(SettingsChoices(min_df=2), False), MANY["mail"]]
)
def test_a_smaller_model_is_that_of_its_messages_alone(halves, settings):
    items, others = halves
    if settings == MANY["mail"]:
        items = [item._replace(label=f"{n % 3}") for n, item in enumerate(items)]
    items = [item._replace(told=n % 2 == 0) for n, item in enumerate(items)]
    whole = learn_items(items, settings).classifier
    models = smaller_models(whole)
    assert len(models) == len(SHARES)
    for n_learned, classifier in models:
        learned = set(classifier.memory.ledger.digests.tolist())
        part = [item for item in items if digest_of(item.data) in learned]
        assert len(part) == n_learned
        alone = learn_items(part, settings).classifier
        np.testing.assert_allclose(joint_of(classifier, others), joint_of(alone, others))

    # A prior that is assumed for the whole model is assumed for the smaller ones, too.
    shift = np.arange(len(whole.classes), dtype=float)
    for (_, own), (_, moved) in zip(models, smaller_models(whole.shifted(shift)), strict=True):
        np.testing.assert_allclose(joint_of(moved, others), joint_of(own, others) + shift)


def test_of_many_messages_the_sample_is_the_largest_part(halves, monkeypatch):
    monkeypatch.setattr(ledger, "MAX_SAMPLE", 50)
    classifier = learn_items(halves[0], MAIL).classifier
    remembered = classifier.memory.sample.digests
    assert 10 < len(remembered) <= 50
    largest = smaller_models(classifier)[-1]
    assert largest.n_learned == len(remembered)
    assert largest.classifier.memory.ledger.digests.tolist() == remembered.tolist()


def test_nothing_is_made_of_what_does_not_remember(halves, mail_classifier):
    aode = chosen_settings(SettingsChoices(model="aode", max_features=10), False)
    assert smaller_models(learn_items(halves[0], aode).classifier) == ()
    assert smaller_models(mail_classifier.__class__(MAIL, mail_classifier.table, None)) == ()
    few = [item for item in halves[0] if item.label == "ham"][:5]
    spam = next(item for item in halves[0] if item.label == "spam")
    classifier = learn_items([*few, spam], MAIL).classifier
    digests = classifier.memory.sample.digests
    of_ham = classifier.memory.sample_labels == 0
    kept = classifier.memory.sample._replace(
        digests=digests[of_ham], documents=classifier.memory.sample.documents.take(of_ham)
    )
    memory = classifier.memory._replace(sample=kept)
    assert smaller_models(type(classifier)(MAIL, classifier.table, classifier.fit, memory)) == ()


def test_a_split_has_a_learning_curve_and_the_same_answers(halves):
    plain = judge_split(*halves, MAIL)
    trial = judge_split(*halves, MAIL, jobs=2, with_smaller=True)
    assert (trial.joint == plain.joint).all()
    assert plain.smaller == ()
    learning = views_of(trial).learning
    assert learning.n_learned[-1] == len(halves[0])
    assert learning.wrong[-1] == evaluation_of(trial).errors / len(halves[1])
    assert learning.wrong[0] > learning.wrong[-1]
    for (n_learned, joint), (number, classifier) in zip(
        trial.smaller, smaller_models(learn_items(halves[0], MAIL).classifier), strict=True
    ):
        assert n_learned == number
        np.testing.assert_allclose(joint, joint_of(classifier, halves[1]))

    # Inputs that cannot be judged are left out of the curve, too.
    items, others = halves
    odd = [others[0]._replace(name="gone", data=None), others[0]._replace(label="strange")]
    again = judge_split(items, [odd[0], *others, odd[1]], MAIL, with_smaller=True)
    for (_, found), (_, joint) in zip(again.smaller, trial.smaller, strict=True):
        np.testing.assert_allclose(found, joint)
    assert [each.name for each in again.skipped] == ["gone", others[0].name]


def test_rows_of_a_split_have_a_learning_curve():
    settings = TableSettings("好瓜")
    table = read_table(read_records([str(MELONS)]), settings).table
    trial = judge_table_split(
        table, settings, lambda _: read_records([str(MELONS)]), with_smaller=True
    )
    assert views_of(trial).learning.n_learned.tolist() == [2, 4, 8, 17]
    part = train_table(table_rows(table, some_of(np.arange(17), table.y, 1 / 2)), settings)
    expected = part.model.joint_log_proba_or_prior(in_intervals(table.X, part.schema))
    assert trial.smaller[-1].joint.tolist() == expected.tolist()


def test_lessons_of_the_journal_are_remembered(halves, tmp_path):
    path = str(tmp_path / "m.nbspam")
    items, others = halves
    save_classifier(path, learn_items(items, MAIL).classifier)
    StoredModel(path).learn(others[:2], day=1)
    classifier = load_classifier(path)
    assert classifier.memory is None  # what the journal holds is laid over the file
    whole = load_classifier(path, whole=True)
    assert smaller_models(whole)[-1].n_learned > 0
    assert len(whole.memory.ledger.digests) == len(items) + 2

    trial = judge_classifier(classifier, others, remembering=whole)
    assert (trial.joint == judge_classifier(classifier, others).joint).all()
    assert views_of(trial).learning.n_learned[-1] == len(items) + 2
    assert len(trial.smaller) == len(SHARES)
