"""Mail, texts and rows without labels: one line says what was found and what to do."""

import pytest

from support import complains

TABLE = "label,text\nham,lunch on friday\nspam,cheap pills\n"
ROWS = "colour,size,good\n" + "red,1,yes\nblue,2,no\n" * 4


@pytest.fixture
def tree(folder, tmp_path, monkeypatch):
    """A folder of messages without labels, beside mail, a table of texts and one of rows."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tree").mkdir()
    for n in range(3):
        (tmp_path / "tree" / f"{n}.eml").write_text(f"Subject: {n}\n\nx\n")
    (tmp_path / "texts.csv").write_text(TABLE)
    (tmp_path / "new.csv").write_text("text\nlunch\npills\n")
    (tmp_path / "rows.csv").write_text(ROWS)
    (tmp_path / "unlabelled.csv").write_text("colour,size\nred,1\nblue,2\n")
    (tmp_path / "yes.csv").write_text(TABLE.replace("ham,", "no,").replace("spam,", "yes,"))


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


@pytest.mark.parametrize("way", [[], ["--cv", "2"]])
def test_texts_and_rows_are_called_so(nbspam, model, tree, way):
    assert nbspam("train", "texts.csv")[0] == 0
    assert complains(nbspam("eval", "new.csv", *way), 1, "labels: 2 texts (new.csv#1, …)")
    if not way:
        assert (
            nbspam("table", "train", "rows.csv", "--target", "good", "-m", "rows.nbspam")[0] == 0
        )
        unlabelled = nbspam("table", "eval", "unlabelled.csv", "-m", "rows.nbspam")
        assert complains(unlabelled, 1, "labels: 2 rows (unlabelled.csv#1, …)", "--target names")


def test_classes_that_the_model_does_not_have_are_named(nbspam, model, tree):
    assert nbspam("train", "texts.csv")[0] == 0
    said = "labels: the classes are no, yes, and the model knows ham, spam; give texts of these"

    assert complains(nbspam("eval", "yes.csv"), 1, said)


def test_what_cannot_be_read_is_not_called_unlabelled(nbspam, trained, tree, tmp_path):
    for label in ("ham", "spam"):
        (tmp_path / "damaged" / label).mkdir(parents=True)
        (tmp_path / "damaged" / label / "1.eml.gz").write_bytes(b"no gzip")

    for way in ([], ["--cv", "2"]):
        said = ["damaged/ham/1.eml.gz", "Not a gzipped file", "nothing can be judged"]
        assert complains(nbspam("eval", "damaged", *way), 1, *said)
