"""Ways of judging: folds, labelled inputs, and smaller models that parts of the training make."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from nbspam.classifier.training import learn_items
from nbspam.counts import ledger
from nbspam.errors import InputError, UsageError
from nbspam.evaluation import judging
from nbspam.evaluation.evaluation import evaluation_of
from nbspam.evaluation.figures import views_of
from nbspam.evaluation.judging import folds, judge_classifier, judge_folds, smaller_models
from nbspam.mail.digest import digest_of
from nbspam.settings import MANY, PRESETS, SettingsChoices, chosen_settings
from nbspam.sources.items import read_items
from nbspam.sources.records import Record, read_records
from nbspam.store.model import StoredModel
from nbspam.store.open import load_classifier, save_classifier
from nbspam.tables.schema import in_intervals
from nbspam.tables.training import TableSettings, read_table, table_rows, train_table
from support import MELONS, complains, write_files

Y = np.arange(60) % 3 // 2
DEPENDENT = chosen_settings(SettingsChoices(model="aode", max_features=10), False, False)


@pytest.fixture(scope="module")
def table():
    return read_table(read_records([str(MELONS)]), TableSettings("好瓜")).table


def test_the_seed_reaches_the_folds_of_tables_and_mail(table, mails):
    settings = TableSettings("好瓜")
    items = list(read_items([str(mails)]))[::4]
    for judge in (
        lambda seed: judging.table_trial(table, settings, 4, seed),
        lambda seed: judge_folds(items, PRESETS["tutorial"], 4, seed),
    ):
        first, again, other = judge(1), judge(1), judge(2)
        assert (first.fold == again.fold).all()
        assert (first.joint == again.joint).all()
        assert (first.fold != other.fold).any()


@pytest.mark.parametrize("preset", ["mail", "text"])
def test_copies_are_in_one_fold(preset, mails):
    items = list(read_items([str(mails)]))[::16]
    if preset == "text":
        items = [item._replace(data=item.read(), is_text=True) for item in items]
    for k in (4, "loo"):
        alone, both = (judge_folds(each, PRESETS[preset], k, 0) for each in (items, 2 * items))
        assert both.fold.tolist() == 2 * alone.fold.tolist()
        # Mail is learned as if it were read once; of texts, each copy counts.
        assert (both.joint[: len(items)] == alone.joint).all() == (preset == "mail")
    items += [item for item in items if item.label == "ham"]
    prior = SettingsChoices(model="tan", max_features=9, dirichlet=((None, (5, 1)),))
    stated = chosen_settings(prior, preset == "text")
    for settings in (PRESETS[preset], replace(DEPENDENT, reading=preset), stated):
        prior = learn_items(items, settings).classifier.prior
        assert judge_folds(items, settings, 4, 0).prior == pytest.approx(prior, rel=1e-12)


def test_leaving_one_out_holds_every_document_out_once(table, mails):
    settings = TableSettings("好瓜")
    by_name, by_number = (judging.table_trial(table, settings, k, 0) for k in ("loo", 17))
    assert by_name.fold.tolist() == list(range(17))
    assert (by_name.joint == by_number.joint).all()
    for row in range(17):
        rest = np.delete(np.arange(17), row)
        alone = train_table(table_rows(table, rest), settings)
        (answer,) = alone.model.joint_log_proba_or_prior(
            in_intervals(table.X[[row]], alone.schema)
        )
        assert by_name.joint[row].tolist() == answer.tolist()

    items = list(read_items([str(mails)]))[::8]
    trial = judge_folds(items, PRESETS["tutorial"], "loo", 0)
    assert trial.fold.tolist() == list(range(len(items)))
    last = learn_items(items[:-1], PRESETS["tutorial"]).classifier
    (answer,) = last.answers(items[-1:])
    assert trial.joint[-1] == pytest.approx(answer.joint)


@pytest.mark.parametrize(("y", "k", "words"), [
    (Y, 1, "--cv: 1 is not a whole number from 2 up; give one"),
    (Y, "5", "--cv: '5' is not a whole number from 2 up; give one"),
    (Y, 21, "the smallest class, b, has 20 rows; give"),
    (Y, 61, "the smallest class, b, has 20 rows; give"),
    ([0, 0, 1], "loo", "--cv loo: class b has fewer than two rows, and without them"),
    ([0, 0, 1], 3, "--cv 3: class b has fewer than two rows"),
])  # fmt: skip
def test_folds_that_cannot_be_are_refused(y, k, words):
    with pytest.raises(UsageError, match=words):
        folds(np.array(y), ("a", "b", "c"), k, 0, "rows")


def test_the_number_of_folds_may_come_from_numpy_and_a_class_without_rows_needs_none():
    own, theirs = (folds(Y, ("a", "b"), k, 0, "rows").tolist() for k in (5, np.int64(5)))
    assert own == theirs
    places = [folds(np.array([0, 1, 0, 1]) + gap, "abc", 2, 0, "rows").tolist() for gap in (0, 1)]
    assert places[0] == places[1]


def test_inputs_a_model_cannot_be_judged_by_are_named(table):
    classifier = train_table(table, TableSettings("好瓜"))
    row, *_ = read_records([str(MELONS)])
    unlabelled = Record("a", {**row.cells, "好瓜": ""})
    strange = Record("b", {**row.cells, "好瓜": "maybe"})
    trial = judge_classifier(classifier, [unlabelled, row, strange])
    assert trial.y.tolist() == [1]
    assert [skipped.name for skipped in trial.skipped] == ["a", "b"]
    assert "class maybe is not one of the model's" in trial.skipped[1].reason
    with pytest.raises(InputError, match="classes are maybe, and the model knows 否, 是"):
        judge_classifier(classifier, [unlabelled, strange])


def test_a_message_that_is_gone_again_counts_as_not_learned(mail_classifier, folder):
    items = list(read_items([str(folder)]))

    def has(digest):
        shutil.rmtree(folder, ignore_errors=True)  # as a mail program moves what was read
        return True

    knows = judging.knowing(has, mail_classifier.settings)
    trial = judge_classifier(mail_classifier, items, knows=knows)
    assert (len(trial.y), trial.n_known) == (4, 1)


# --- inputs without labels -------------------------------------------------------------------

TABLE = "label,text\nham,lunch on friday\nspam,cheap pills\n"
ROWS = "colour,size,good\n" + "red,1,yes\nblue,2,no\n" * 4


@pytest.fixture
def tree(folder, tmp_path, monkeypatch):
    """A folder of messages without labels, beside mail, a table of texts and one of rows."""
    monkeypatch.chdir(tmp_path)
    mail = {f"tree/{n}.eml": b"Subject: %d\n\nx\n" % n for n in range(3)}
    tables = {
        "texts.csv": TABLE,
        "new.csv": "text\nlunch\npills\n",
        "rows.csv": ROWS,
        "unlabelled.csv": "colour,size\nred,1\nblue,2\n",
        "yes.csv": TABLE.replace("ham,", "no,").replace("spam,", "yes,"),
    }
    write_files(tmp_path, mail | {name: text.encode() for name, text in tables.items()})


@pytest.mark.parametrize("command", [
    "eval tree", "eval tree --cv 3", "eval tree --online", "eval mails --test tree",
    "compare tree --against --pairs", "compare tree --online --against --pairs", "tune tree",
])  # fmt: skip
def test_mail_without_labels_cannot_be_judged(nbspam, trained, tree, command):
    said = ["labels: 3 messages (tree/0.eml, …), and none has a label", "--spam PATH --ham PATH"]
    assert complains(nbspam(*command.split()), 1, *said)
    assert complains(nbspam("eval", "tree/0.eml"), 1, "labels: 1 message (tree/0.eml), and none")


def test_texts_and_rows_are_called_so_and_unknown_classes_are_named(nbspam, model, tree):
    assert nbspam("train", "texts.csv")[0] == 0
    for way in ([], ["--cv", "2"]):
        assert complains(nbspam("eval", "new.csv", *way), 1, "labels: 2 texts (new.csv#1, …)")
    said = "labels: the classes are no, yes, and the model knows ham, spam; give texts of these"
    assert complains(nbspam("eval", "yes.csv"), 1, said)
    rows = "-m", "rows.nbspam"
    assert nbspam("table", "train", "rows.csv", "--target", "good", *rows)[0] == 0
    said = "labels: 2 rows (unlabelled.csv#1, …)", "--target names"
    assert complains(nbspam("table", "eval", "unlabelled.csv", *rows), 1, *said)


def test_what_cannot_be_read_is_not_called_unlabelled(nbspam, trained, tree, tmp_path):
    for label in ("ham", "spam"):
        (tmp_path / "damaged" / label).mkdir(parents=True)
        (tmp_path / "damaged" / label / "1.eml.gz").write_bytes(b"no gzip")
    for way in ([], ["--cv", "2"]):
        said = ["damaged/ham/1.eml.gz", "Not a gzipped file", "nothing can be judged"]
        assert complains(nbspam("eval", "damaged", *way), 1, *said)


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
    for share in judging.SHARES:
        part = judging.some_of(rows, y, share)
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
    assert len(models) == len(judging.SHARES)
    for n_learned, classifier in models:
        learned = set(classifier.memory.ledger.digests.tolist())
        part = [item for item in items if digest_of(item.data) in learned]
        assert len(part) == n_learned
        alone = learn_items(part, settings).classifier
        np.testing.assert_allclose(joint_of(classifier, others), joint_of(alone, others))

    # A prior that is assumed for the whole model is assumed for the smaller ones, too.
    shift = np.arange(len(whole.classes), dtype=float)
    shifted = smaller_models(replace(whole, shift=shift))
    for (_, own), (_, moved) in zip(models, shifted, strict=True):
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
    plain = judging.judge_split(*halves, MAIL)
    trial = judging.judge_split(*halves, MAIL, jobs=2, with_smaller=True)
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
    again = judging.judge_split(items, [odd[0], *others, odd[1]], MAIL, with_smaller=True)
    for (_, found), (_, joint) in zip(again.smaller, trial.smaller, strict=True):
        np.testing.assert_allclose(found, joint)
    assert [each.name for each in again.skipped] == ["gone", others[0].name]


def test_rows_of_a_split_and_of_folds_have_a_learning_curve(table):
    settings = TableSettings("好瓜")
    trial = judging.judge_table_split(
        table, settings, lambda _: read_records([str(MELONS)]), with_smaller=True
    )
    assert views_of(trial).learning.n_learned.tolist() == [2, 4, 8, 17]
    part = train_table(table_rows(table, judging.some_of(np.arange(17), table.y, 1 / 2)), settings)
    expected = part.model.joint_log_proba_or_prior(in_intervals(table.X, part.schema))
    assert trial.smaller[-1].joint.tolist() == expected.tolist()
    folds = judging.table_trial(table, settings, 2, 0, with_smaller=True)
    assert [n for n, _ in folds.smaller] == [2, 4]


def test_lessons_of_the_journal_are_remembered(halves, tmp_path):
    path = str(tmp_path / "m.nbspam")
    items, others = halves
    save_classifier(path, learn_items(items, MAIL).classifier)
    StoredModel(path).learn(others[:2], day=1)
    classifier = load_classifier(path)
    assert classifier.memory is None  # what the journal holds is laid over the file
    whole = StoredModel(path).whole()
    assert smaller_models(whole)[-1].n_learned > 0
    assert len(whole.memory.ledger.digests) == len(items) + 2

    trial = judge_classifier(classifier, others, smaller=smaller_models(whole))
    assert (trial.joint == judge_classifier(classifier, others).joint).all()
    assert views_of(trial).learning.n_learned[-1] == len(items) + 2
    assert len(trial.smaller) == len(judging.SHARES)
