"""A model's first day: it begins with nothing, and knows one class before it knows two."""

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.decision import cutoffs
from nbspam.errors import ModelFileError, NotTrainedError
from nbspam.settings import PLAIN, PRESETS
from nbspam.sources.items import Item
from nbspam.store import model as store_model
from nbspam.store import text
from nbspam.store.doctor import BAD, findings
from nbspam.store.merging import merge
from nbspam.store.model import StoredModel
from nbspam.store.open import load_tokens as load
from nbspam.store.open import save_classifier
from nbspam.store.prune import PruningRule, prune_model
from stored import DAY, few, train_on, whole_bytes
from support import HAM, SPAM

pytestmark = pytest.mark.usefixtures("quick_disk")
SETTINGS = {"mail": PRESETS["mail"], "text": PRESETS["text"], "plain": PLAIN["mail"]}


def item(n, label):
    data = {"ham": HAM, "spam": SPAM, None: SPAM}[label]
    return Item(f"m{n}", label, data + b"number %d of %d\n" % (n, n % 3))


def new(path, kind="mail"):
    return StoredModel(str(path), new=SETTINGS[kind])


def trained_bytes(tmp_path, items, kind="mail"):
    return train_on(items, tmp_path / "at once", SETTINGS[kind])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data" / "m.nbspam"


@pytest.mark.parametrize("kind", SETTINGS)
@given(labels=st.lists(st.sampled_from(["ham", "spam"]), min_size=1, max_size=9))
@few
def test_what_begins_with_nothing_becomes_the_model_trained_on_the_same_mail(
    tmp_path, kind, labels
):
    path = tmp_path / "m"
    path.unlink(missing_ok=True)
    items = [item(n, label) for n, label in enumerate(labels)]
    for number, each in enumerate(items, 1):
        assert new(path, kind).learn([each], day=DAY).learned == 1
        classifier = load(str(path))
        assert classifier.classes == ("ham", "spam")
        assert (classifier.lack is None) == (len(set(labels[:number])) == 2)
    if len(set(labels)) == 2:
        assert whole_bytes(path) == trained_bytes(tmp_path, items, kind)


@pytest.mark.parametrize("kind", SETTINGS)
@pytest.mark.parametrize("label", ["ham", "spam"])
def test_a_model_of_one_class_is_unsure_of_everything(path, kind, label):
    living = new(path, kind)
    living.learn([item(n, label) for n in range(70)], day=DAY)
    outcome = living.learn([item(70, label)], day=DAY)  # no fit is due
    assert os.path.exists(f"{path}.journal")
    classifier = load(str(path))
    other = "ham" if label == "spam" else "spam"
    for rule in (None, cutoffs(), cutoffs(99), cutoffs(2, 0.1)):
        for verdict in classifier.classify([item(5, "ham"), item(5, "spam")], rule=rule):
            assert (verdict.label, verdict.probability) == ("unsure", 0.5)
            assert verdict.posterior == {"ham": 0.5, "spam": 0.5}
    assert outcome.notes == (classifier.lack,)
    assert f"knows only {label}" in classifier.lack
    assert f"nbspam update --{other} PATH" in classifier.lack
    assert classifier.prior.tolist() == [0.5, 0.5]
    explanation = classifier.explain(item(5, label))
    assert (explanation.score, explanation.constant) == (0, 0)
    assert not any(row.contribution for row in explanation.evidence)
    assert not [each for each in findings(str(path)) if each.state == BAD]


def test_a_model_can_lose_its_classes_and_get_them_again(path, tmp_path):
    items = [item(n, "ham" if n % 2 else "spam") for n in range(6)]
    new(path).learn(items, day=DAY)
    StoredModel(str(path)).unlearn(items[::2], day=DAY)
    assert "only ham" in load(str(path)).lack
    StoredModel(str(path)).unlearn(items, day=DAY)
    empty = load(str(path))

    assert "no mail yet" in empty.lack
    assert (empty.table.n_docs, len(empty.table.vocabulary)) == (0, 0)
    assert [v.label for v in empty.classify([items[0]])] == ["unsure"]
    StoredModel(str(path)).learn(items, day=DAY)
    assert whole_bytes(path) == trained_bytes(tmp_path, items)


def test_two_who_begin_at_once_lose_nothing(path):
    first, second = new(path), new(path)
    first.learn([item(1, "ham")], day=DAY)
    second.learn([item(2, "spam")], day=DAY)

    assert load(str(path)).table.class_count.tolist() == [1, 1]
    assert first.classifier().lack is None


def test_nothing_learned_makes_no_file(path):
    outcome = new(path).learn([Item("a", None, SPAM)], day=DAY)

    assert len(outcome.skipped) == 1
    assert not new(path).is_there
    assert not path.exists()


def test_a_disk_that_takes_no_first_model_is_an_error(path, monkeypatch):
    def full(path, classifier, journal=None):
        raise ModelFileError(f"{path}: cannot write the model: No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(store_model, "write_model_file", full)
        with pytest.raises(ModelFileError, match="No space left"):
            new(path).learn([item(1, "spam")], day=DAY)

    assert not path.exists()
    assert not os.path.exists(f"{path}.journal")
    assert new(path).learn([item(1, "spam")], day=DAY).learned == 1


def test_one_class_that_is_not_of_mail_makes_no_model(path):
    work = item(1, "spam")._replace(label="work")
    with pytest.raises(NotTrainedError, match="only the class work"):
        new(path).learn([work], day=DAY, new_class=True)
    assert not path.exists()

    new(path).learn([work, item(2, "ham")], day=DAY, new_class=True)
    assert load(str(path)).classes == ("ham", "work")


def test_models_of_one_class_each_merge_to_the_model_of_both(path, tmp_path):
    items = {label: [item(n, label) for n in range(5)] for label in ("ham", "spam")}
    for label, some in items.items():
        new(tmp_path / label).learn(some, day=DAY)
    save_classifier(str(path), merge([str(tmp_path / label) for label in items], DAY).classifier)
    both = trained_bytes(tmp_path, [*items["ham"], *items["spam"]])

    assert path.read_bytes() == both


def test_a_model_of_one_class_is_exported_imported_and_pruned(path):
    new(path).learn([item(n, "spam") for n in range(3)], day=DAY)
    before = path.read_bytes()
    save_classifier(str(path), text.model_of_lines(text.model_lines(load(str(path))), "-"))

    assert path.read_bytes() == before
    lines = list(text.bogofilter_lines(load(str(path))))
    assert lines[0].startswith(b".MSG_COUNT 3 0 ")
    assert "only spam" in text.model_of_bogofilter_lines(lines, "-").lack
    prune_model(str(path), PruningRule(min_df=2, half_life=1.0), DAY + 9)
    assert np.asarray(load(str(path)).table.class_count).tolist() == [0, 1]
