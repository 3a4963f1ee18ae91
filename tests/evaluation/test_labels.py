"""Mail, texts and rows without labels: one line says what was found and what to do."""

import pytest

from support import complains, write_files

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
