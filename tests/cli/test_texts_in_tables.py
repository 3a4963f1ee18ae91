"""Tables of texts on the command line: encodings, columns that a model remembers, names."""

import json

import pytest

import nbspam as library
from nbspam.store.open import load_classifier
from support import ROOT, complains

REVIEWS = ROOT / "corpora" / "reviews.tsv"
TICKETS = (
    "nr,queue,title,body\n"
    "1,sales,price,what does it cost\n"
    "2,help,broken,it does not start\n"
    "3,sales,offer,the price for ten\n"
    "4,help,noise,it stops after the start\n"
)


@pytest.fixture
def tickets(nbspam, tmp_path, model):
    """A model of tickets, told once in which columns they are."""
    path = tmp_path / "tickets.csv"
    path.write_text(TICKETS)
    columns = ("--text-column", "title", "--text-column", "body", "--label-column", "queue")
    assert nbspam("train", path, *columns)[0] == 0
    return path


@pytest.mark.parametrize(
    ("encoding", "name"),
    [("gbk", "GB18030"), ("utf-16", "UTF-16"), ("utf-8", None), ("gb18030", "GB18030")],
)
def test_a_table_in_any_encoding_makes_the_same_model(nbspam, tmp_path, encoding, name):
    rows = [row for row in REVIEWS.read_text("utf-8").splitlines() if row[:3] in ("lan", "chi")]
    (tmp_path / "a.tsv").write_bytes("\n".join(rows).encode(encoding))
    (tmp_path / "b.tsv").write_text("\n".join(rows), "utf-8")
    for table in ("a", "b"):
        status, _, err = nbspam("train", tmp_path / f"{table}.tsv", "-m", tmp_path / table)
        assert status == 0
        said = f"nbspam: {tmp_path / 'a.tsv'}: read as {name}; --encoding NAME overrides\n"
        assert err == (said if table == "a" and name else "")

    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_an_encoding_that_does_not_fit_is_an_error_with_the_line(nbspam, tmp_path, model):
    path = tmp_path / "a.csv"
    path.write_bytes(b"label,text\nham,x\nspam,\xff\n")
    answer = nbspam("train", path, "--encoding", "utf-8")
    assert complains(answer, 1, "a.csv: line 3: not utf-8; give another --encoding")
    for command in (["train"], ["table", "train", "--target", "label"]):
        answer = nbspam(*command, path, "--encoding", "utf-9")
        assert complains(answer, 2, "--encoding utf-9: unknown")


def test_train_and_info_say_which_columns_they_took(nbspam, tickets, tmp_path):
    assert "text_columns\ttitle, body\nlabel_column\tqueue\n" in nbspam("info")[1]
    train = ("train", tickets, "--label-column", "queue", "--text-column", "body")
    assert nbspam(*train)[1].splitlines()[1] == "  text in 'body'; class in 'queue'"
    told = nbspam.json(*train)
    assert (told["text_columns"], told["label_column"]) == (["body"], "queue")
    (tmp_path / "x.csv").write_text("text\nx\n")
    out = nbspam("train", "--spam", tmp_path / "x.csv", "--ham", tickets, "-m", tmp_path / "m")[1]
    assert out.splitlines()[1] == "  text in 'text'"
    # A model of dependent tokens remembers them too.
    columns = ("--text-column", "title", "--label-column", "queue", "--model", "aode")
    assert "text in 'title'" in nbspam("train", tickets, *columns)[1]
    assert "title" in nbspam("info")[1]
    assert nbspam("classify", tickets)[1].count("\n") == 4


def test_columns_survive_export_and_merge(nbspam, tickets, model, tmp_path):
    text = nbspam("export")[1]
    assert nbspam("import", "-", "-m", tmp_path / "copy", stdin=text.encode())[0] == 0
    assert (tmp_path / "copy").read_bytes() == model.read_bytes()
    assert nbspam("merge", model, tmp_path / "copy", "-o", tmp_path / "both")[0] == 0
    assert load_classifier(str(tmp_path / "both")).settings.columns == (("title", "body"), "queue")
    wrong = text.replace('"text": ["title", "body"]', '"text": [1]').encode()
    assert complains(nbspam("import", "-", stdin=wrong), 1, "line 1: settings: columns")


def test_every_command_remembers_the_columns(nbspam, tickets, tmp_path):
    assert load_classifier(str(tmp_path / "data" / "m.nbspam")).settings.columns == (
        ("title", "body"), "queue",
    )  # fmt: skip
    (tmp_path / "new.csv").write_text("body,title\nwhat does it cost,price\n")
    whole = nbspam("classify", tmp_path / "new.csv")[1]
    assert whole.startswith("sales\t")
    assert whole == nbspam("classify", tickets)[1].splitlines()[0].replace("tickets", "new") + "\n"
    assert "title" not in nbspam("explain", tmp_path / "new.csv")[1]
    assert nbspam("eval", tickets)[1].startswith("4 of 4 right")
    assert nbspam("update", tickets)[1] == "already known 4\n"
    (tmp_path / "one.csv").write_text("body,title\nit does not start,broken\n")
    assert nbspam("unlearn", tmp_path / "one.csv")[1] == "un-learned 1\n"
    assert (
        nbspam("relabel", "--to", "sales", tmp_path / "one.csv")[1]
        == "learned 1 that the model did not know\n"
    )
    assert nbspam("update", tickets)[1] == "already known 3, moved 1\n"


def test_a_table_without_a_known_column_of_classes_is_refused_with_its_columns(nbspam, tickets):
    answer = nbspam("train", tickets, "--text-column", "body")
    said = "train: no column that is known to hold classes; name one by --label-column, of: nr,"
    assert complains(answer, 1, said)
    labels = nbspam("train", "--spam", tickets, "--text-column", "body", "-m", "other")
    assert "--label-column" not in labels[2]


def test_options_override_the_remembered_columns_and_rows_are_named_by_a_column(nbspam, tickets):
    whole = nbspam("classify", tickets)[1]
    body = nbspam("classify", tickets, "--text-column", "body")[1]
    assert [line.split("\t")[0] for line in body.splitlines()] == ["sales", "help"] * 2
    assert body != whole
    answer = nbspam("classify", tickets, "--text-column", "boddy")
    assert complains(answer, 1, "no column 'boddy'; did you mean 'body'? there are: nr, queue,")

    out = nbspam("classify", tickets, "--id-column", "nr")[1]
    assert [line.split("\t")[2] for line in out.splitlines()] == ["1", "2", "3", "4"]
    out = nbspam("explain", tickets, "--id-column", "nr", "--json")[1]
    assert json.loads(out.splitlines()[2])["name"] == "3"


def test_unlabelled_tables_need_no_column_of_classes(nbspam, tickets, tmp_path, model):
    (tmp_path / "more.csv").write_text("title,body\nprice,the cost of it\nbroken,it stops\n")
    columns = ("--text-column", "title", "--text-column", "body", "--label-column", "queue")
    more = ("--unlabelled", tmp_path / "more.csv", "--unlabelled-weight", "0.5", "--min-df", "1")
    model.unlink()
    out = nbspam.out("train", tickets, *columns, *more)
    assert "read 4 labelled, 2 unlabelled\n  text in 'title', 'body'; class in 'queue'\n" in out


def test_the_library_remembers_columns_too(tmp_path):

    (tmp_path / "a.csv").write_text(TICKETS.replace("queue,title", "label,title"))
    (tmp_path / "b.csv").write_text("x,body\nbroken,what does it cost\n")
    model = library.train(tmp_path / "a.csv")
    (verdict,) = model.classify_many(tmp_path / "b.csv")
    assert verdict.label == "sales"
    assert model.update(tmp_path / "a.csv").already_known == 4
    assert model.unlearn(tmp_path / "b.csv").unlearned == 1
