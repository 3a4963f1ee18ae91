"""`classify --csv`: the table comes back, valid and in order, with label and probability."""

import csv
import io
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support import complains

TABLE = "label,text\n" + "ham,see you at lunch\nspam,win money now\n" * 3


@pytest.fixture
def texts(nbspam, tmp_path, model):
    (tmp_path / "t.csv").write_text(TABLE)
    assert nbspam("train", tmp_path / "t.csv")[0] == 0
    return tmp_path


def rows(out):
    return list(csv.reader(io.StringIO(out, newline="")))


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl"])
def test_a_table_comes_back_with_label_and_probability(nbspam, texts, form):
    cells = {"id": "7", "text": 'win "money", now', "note": "a; b"}
    table = {
        "csv": 'id,text,note\n7,"win ""money"", now",a; b\n',
        "tsv": 'id\ttext\tnote\n7\twin "money", now\ta; b\n',
        "jsonl": json.dumps({**cells, "id": 7}) + "\n",
    }[form]
    status, out, err = nbspam("classify", "--csv", "--format", form, "-", stdin=table.encode())

    assert (status, err) == (0, "")
    names, row = rows(out)
    assert names == ["id", "text", "note", "label", "probability"]
    assert row[:4] == [*cells.values(), "spam"]
    alone = nbspam("classify", "--format", form, "-", stdin=table.encode())[1]
    assert alone == f"{row[3]}\t{row[4]}\t-#1\n"


def test_names_that_are_taken_are_not_used_twice(nbspam, texts):
    names, *answers = rows(nbspam("classify", "--csv", texts / "t.csv")[1])
    assert names == ["label", "text", "predicted_label", "probability"]
    assert all(row[0] == row[2] for row in answers)
    moved = rows(nbspam("classify", "--csv", texts / "t.csv", "--prior", "estimated")[1])
    assert [row[:3] for row in moved[1:]] == [row[:3] for row in answers]
    (texts / "two.csv").write_text("label,text,predicted_label,probability\nham,x,y,z\n")
    names, row = rows(nbspam("classify", "--csv", texts / "two.csv")[1])
    assert names[4:] == ["predicted_predicted_label", "predicted_probability"]
    assert row[:4] == ["ham", "x", "y", "z"]


def test_rows_of_any_width_with_and_without_names_come_back(nbspam, texts):
    def back(table, form="csv"):
        return rows(nbspam("classify", "--csv", "--format", form, stdin=table)[1])

    names, *answers = back(b"id,text\n1,win money\n2\n3,see you, at lunch,ok\n")
    assert {len(names), *map(len, answers)} == {4}
    expected = [["1", "win money"], ["2", ""], ["3", "see you, at lunch,ok"]]
    assert [row[:2] for row in answers] == expected
    found = [row[:2] for row in back(b"win money\nsee you\n")]
    assert found == [["win money", "spam"], ["see you", "ham"]]
    # A cell of JSON with a carriage return is quoted.
    table = json.dumps({"text": "win\rmoney", "tags": ["a", 1]}).encode()
    assert back(table, "jsonl")[1][:2] == ["win\rmoney", '["a", 1]']


def test_rows_that_cannot_be_read_come_back_too(table, tmp_path, model):
    rows_of = "x,y\n" + "".join(f"{i + 0.5},{'ab'[i > 9]}\n" for i in range(20))
    (tmp_path / "t.csv").write_text(rows_of)
    assert table("train", tmp_path / "t.csv", "--target", "y")[0] == 0
    status, out, err = table("classify", "--csv", stdin=b"x,why\n1.5,p\nmany,q\n18,\n")

    assert status == 1
    assert err.count("\n") == 1
    assert "skipped -#2: x is 'many', not a number" in err
    assert [row[:3] for row in rows(out)] == [
        ["x", "why", "label"], ["1.5", "p", "a"], ["many", "q", ""], ["18", "", "b"],
    ]  # fmt: skip
    # Without names the cells stand in the order of training.
    assert rows(table("classify", "--csv", stdin=b"1.5\n")[1])[0][:2] == ["1.5", "a"]


cells = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=5))
def test_every_cell_comes_back_as_it_was(nbspam, texts, table):
    out = io.StringIO()
    csv.writer(out).writerows([("note", "text"), *table])
    stdin = out.getvalue().encode()
    status, out, err = nbspam("classify", "--csv", "--format", "csv", "--jobs", 1, stdin=stdin)

    assert (status, err) == (0, "")
    assert [tuple(row[:2]) for row in rows(out)[1:]] == table


def test_several_tables_need_the_same_columns_and_mail_is_no_table(nbspam, texts, folder):
    a, b, c = (texts / f"{name}.csv" for name in "abc")
    a.write_text("text,n\nwin money,1\n")
    b.write_text("text,n\nsee you,2\n")
    c.write_text("n,text\n3,see you\n")
    assert [row[:3] for row in rows(nbspam("classify", "--csv", a, b)[1])] == [
        ["text", "n", "label"], ["win money", "1", "spam"], ["see you", "2", "ham"],
    ]  # fmt: skip
    said = "c.csv: its columns are not those of the table before it (text, n)"
    assert complains(nbspam("classify", "--csv", a, c), 1, said)
    said = "is no row of a table; give CSV, TSV or JSON"
    assert complains(nbspam("classify", "--csv", folder), 2, "--csv:", said)
    assert complains(nbspam("classify", "--csv", folder, a), 2, said)


def test_a_terminal_gets_no_control_characters(nbspam, texts, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    out = nbspam("classify", "--csv", "--format", "csv", stdin=b"text\nred\x1b[31m money\n")[1]
    assert "\\x1b[31m" in out
    assert "\x1b" not in out


def test_a_table_on_standard_input_is_noticed(nbspam, texts):
    status, out, err = nbspam("classify", "-", stdin=TABLE.encode())
    said = "-: looks like a table, judged as one text; --format csv judges its rows"
    assert (status, out.count("\n"), err) == (0, 1, f"nbspam: {said}\n")
    status, out, err = nbspam("classify", "-", "--format", "csv", stdin=TABLE.encode())
    assert (status, out.count("\n"), err) == (0, 6, "")
