"""Ways of judging: folds by the seed, and labelled inputs that a model can be judged by."""

import numpy as np
import pytest

from nbspam.classifier.training import learn_items
from nbspam.errors import InputError, UsageError
from nbspam.evaluation.judging import folds, judge_classifier, judge_folds, table_trial
from nbspam.settings import PRESETS
from nbspam.sources.items import read_items
from nbspam.sources.records import Record, read_records
from nbspam.tables.schema import in_intervals
from nbspam.tables.training import TableSettings, read_table, table_rows, train_table
from support import MELONS, complains, write_files

Y = np.arange(60) % 3 // 2


@pytest.fixture(scope="module")
def table():
    return read_table(read_records([str(MELONS)]), TableSettings("好瓜")).table


def test_the_seed_reaches_the_folds_of_tables_and_mail(table, mails):
    settings = TableSettings("好瓜")
    items = list(read_items([str(mails)]))[::4]
    for judge in (
        lambda seed: table_trial(table, settings, 4, seed),
        lambda seed: judge_folds(items, PRESETS["tutorial"], 4, seed),
    ):
        first, again, other = judge(1), judge(1), judge(2)
        assert (first.fold == again.fold).all()
        assert (first.joint == again.joint).all()
        assert (first.fold != other.fold).any()


def test_leaving_one_out_holds_every_document_out_once(table, mails):
    settings = TableSettings("好瓜")
    by_name, by_number = (table_trial(table, settings, k, 0) for k in ("loo", 17))
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


@pytest.mark.parametrize(
    ("y", "k", "words"),
    [
        (Y, 1, "the smallest class has 20 documents; give"),
        (Y, 21, "the smallest class has 20 documents; give"),
        (Y, 61, "--cv 61: there are 60 documents; give up to that, or loo"),
        ([0, 0, 1], "loo", "--cv loo: a class has only 1 document, and without it no model"),
        ([0, 0, 1], 3, "--cv 3: a class has only 1 document"),
    ],
)
def test_folds_that_cannot_be_are_refused(y, k, words):
    with pytest.raises(UsageError, match=words):
        folds(np.array(y), k, 0)


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


@pytest.mark.parametrize(
    "command",
    [
        "eval tree",
        "eval tree --cv 3",
        "eval tree --online",
        "eval mails --test tree",
        "compare tree --against --pairs",
        "compare tree --online --against --pairs",
        "tune tree",
    ],
)
def test_mail_without_labels_cannot_be_judged(nbspam, trained, tree, command):
    said = ["labels: 3 messages (tree/0.eml, …), and none has a label", "--spam PATH --ham PATH"]
    assert complains(nbspam(*command.split()), 1, *said)


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
