"""Rows of tables: which cells are text, class and name, and which files are no tables."""

import csv
import io
import json
import unicodedata
from contextlib import suppress
from itertools import chain, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.errors import InputError, UsageError
from nbspam.sources.files import Listener, NamedColumns, Rememberer, TextColumns
from nbspam.sources.items import SourceOptions, read_items
from nbspam.sources.records import Record, read_cells, read_records
from nbspam.sources.rows import lines_of, read_rows, sniff, sniff_table, split_rows
from support import standard_input

TABLE = "id,title,body,label\n7,Lunch?,at noon,ham\n8,Win,money now,spam\n"
LEARNED = TextColumns(("title", "body"), "label")


def rows(table, kind="csv", **wanted):
    """Return class, text and name of each row of a table."""
    data = table.encode() if isinstance(table, str) else table
    found = read_rows(io.BytesIO(data), kind, NamedColumns(**wanted))
    return [
        (row.label, None if row.data is None else row.data.decode(), row.name) for row in found
    ]


JSON = """{"id": "7", "title": "Lunch?", "body": "at noon", "label": "ham"}
{"id": "8", "title": "Win", "body": "money now", "label": "spam"}"""


@pytest.mark.parametrize(
    ("kind", "table"), [("csv", TABLE), ("tsv", TABLE.replace(",", "\t")), ("jsonl", JSON)]
)
def test_several_columns_are_one_text_in_the_order_given(kind, table):
    found = rows(table, kind, text=("body", "Title"), id="ID")
    assert found == [("ham", "at noon\nLunch?", "7"), ("spam", "money now\nWin", "8")]


def test_of_names_that_differ_in_case_only_the_one_spelt_alike_is_meant():
    for name, text in (("Body", "first"), ("body", "second")):
        assert rows("Body,body\nfirst,second\n", text=(name,)) == [(None, text, None)]
    # As windows-1258 and a Mac have letters, with marks apart.
    apart = unicodedata.normalize("NFD", "Nội,Lớp\nA,việc\n")
    assert rows(apart, text=("nội",), label="lớp") == [("việc", "A", None)]
    assert cells(apart) == [{"Nội": "A", "Lớp": "việc"}]


def test_a_model_finds_its_columns_in_tables_of_any_order():
    table = "label,body,note,TITLE\nham,at noon,x,Lunch?\n"
    assert rows(table, learned=LEARNED) == [("ham", "Lunch?\nat noon", None)]
    # Those that the user names come first; without classes a table is read too.
    assert rows(table, text=("note",), learned=LEARNED) == [("ham", "x", None)]
    assert rows("title,body\na,b\n", learned=LEARNED) == [(None, "a\nb", None)]
    # Nor are those that usually hold texts taken for them if they hold classes.
    assert rows("note,review\nfine,good\n", label="review") == [("good", "fine", None)]


def test_a_table_without_the_columns_of_the_model_is_read_as_if_it_had_none():
    assert rows("message,class\na,ham\n", learned=LEARNED) == [("ham", "a", None)]
    assert rows("the price\nwhat time\n", learned=LEARNED) == [
        (None, "the price", None), (None, "what time", None),
    ]  # fmt: skip
    # A name of a column that is also a class would be data, if the model did not know it.
    assert rows("spam,note\nspam,x\n", learned=TextColumns(("note",), "spam")) == [
        ("spam", "x", None)
    ]


LEARNT = "no column 'body', which the model has learned from; there are: title, text"


@pytest.mark.parametrize(("table", "wanted", "message"), [
    ("title,text\na,b\n", {"learned": LEARNED}, LEARNT),
    (TABLE, {"text": ("titel",)}, "no column 'titel'; did you mean 'title'? there are: id,"),
    (TABLE, {"label": "Lable"}, "no column 'Lable'; did you mean 'label'?"),
    ("a,a,A,b\n", {"text": ("a",)}, "two columns are called 'a'; rename one"),
    (TABLE, {"text": ("title",), "label": "title"}, "column 'title' is named for classes"),
    ("a,b,c\n1,2,3\n", {"label": "a"}, "no known text column; name one by --text-column"),
    ("a b\n1 2\n", {"label": "b"}, "no column 'b'; there are: a b .cells are separated by"),
    (",".join(f"c{n}" for n in range(30)), {"text": ("x",)}, "c19 and 10 more"),
])  # fmt: skip
def test_a_missing_column_is_an_error_that_lists_the_others(table, wanted, message):
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        rows(table, **wanted)


def test_the_columns_of_the_first_table_are_remembered(tmp_path):
    (tmp_path / "a.csv").write_text(TABLE)
    (tmp_path / "b.csv").write_text("message,class\na,ham\n")
    tables = Rememberer()
    options = SourceOptions(text_columns=("title",), listener=tables)
    next(read_items([str(tmp_path / "a.csv")], options=options))
    list(read_items([str(tmp_path / "b.csv")], options=SourceOptions(listener=tables)))

    assert tables.columns == (("title",), "label")


def test_rows_of_columns_can_be_named_by_a_column():
    def records(column):
        with standard_input(TABLE.encode()):
            return list(read_records(["-"], SourceOptions(id_column=column)))

    assert [record.name for record in records("id")] == ["7", "8"]
    assert "id" not in records("id")[0].cells
    with pytest.raises(InputError, match="-: no column 'nr'; there are: id, title"):
        records("nr")
    # A row without a name is numbered.
    for table in (b"text,id\nx,A\ny\n", b'{"text": "x", "id": "A"}\n{"text": "y"}\n'):
        with standard_input(table):
            found = read_records(["-"], SourceOptions(id_column="id"))
            assert [record.name for record in found] == ["A", "-#2"]
    with standard_input(b"id,text\n,x\nB,y\n"):
        items = read_items(["-"], options=SourceOptions("csv", id_column="id"))
        assert [item.name for item in items] == ["-#1", "B"]


NONE = TextColumns()


@pytest.mark.parametrize(("head", "learned", "kind"), [
    (b'"text";"label"\r\nx;ham\r\n', NONE, "csv"),
    ("label\ttext\nham\tx\n".encode("utf-16"), NONE, "tsv"),
    # Classes that recur, or a mark, tell a table without a row of names.
    (b"ham\tGo until jurong\nspam\tFree entry\nham\tOk lar\n", NONE, "tsv"),
    (b"ham\tx\nspam\ty", NONE, "tsv"),
    (b"\xef\xbb\xbfham\tx\nspam\ty\nham\tz\nspa", NONE, "tsv"),
    ("亝\tx\n度\ty\n亝\tz\n".encode("gbk"), NONE, "tsv"),  # Latin-1 has spaces there
    ("好评\tx\n差评\ty\n好评\tz\n".encode("utf-16"), NONE, "tsv"),
    (b"__label__spam buy\n", NONE, "fasttext"), (b"ham\tx\n", NONE, None),
    (b"Subject:\tx\nFrom:\ty\n", NONE, None), (b"a\tx\nb\ty\nc\tz\nd\tz\n", NONE, None),
    (b"ham\tx\nno tab\nspam\ty\n", NONE, None), (b"\0\1\2\n\3\n", NONE, None),
    (b'{"text": "x"}\n{"text": "y"}\n', NONE, "jsonl"),
    (b'{"a": 1}\n{"a": 2}\n', NONE, None), (b"{text}\nlabel\n", NONE, None),
    (b"label,text\n", NONE, None),  # a single line is a text
    (b"Subject: text,label\n\nx\n", NONE, None), (b"text,text\nx\n", NONE, None),
])  # fmt: skip
def test_the_beginning_of_a_table_is_told_from_a_text(head, learned, kind):
    assert sniff_table(head, learned) == kind
    assert sniff(head) == (kind if kind in ("tsv", "fasttext") else None)


# --- rows of cells -----------------------------------------------------------------------------


def cells(text, *wanted):
    return list(read_cells(io.BytesIO(text.encode()), *wanted))


def test_all_formats_of_a_table_give_the_same_cells():
    expected = [{"a": "1", "b": "x y"}, {"a": "", "b": "z"}]
    assert cells('a,b\n1,"x y"\n,z\n', "csv") == cells('a,b\n1,"x y"\n,z\n') == expected
    assert cells("a\tb\n1\tx y\n\tz\n", "tsv") == cells("a;b\n1;x y\n;z\n") == expected
    lines = '{"a": 1, "b": "x y"}\n\n{"a": null, "b": "z"}\n'
    assert cells(lines, "jsonl") == cells(lines) == expected
    # Columns without names are numbered.
    assert cells("0.5,1\n1.5,2\n") == [{"1": "0.5", "2": "1"}, {"1": "1.5", "2": "2"}]


def test_expected_names_replace_a_missing_row_of_names():
    names = ["a", "b", "y"]
    for text in ("1,2\n", "a,b\n1,2\n", "b,a\n2,1\n"):
        assert cells(text, None, names) == [{"a": "1", "b": "2"}]
    assert cells("1,2,z\n", None, names) == [{"a": "1", "b": "2", "y": "z"}]
    assert cells("B,A\n2,1\n", None, names) == [{"a": "1", "b": "2"}]  # whatever their case
    assert cells("A,a\n2,1\n", None, ["a", "A"]) == [{"a": "1", "A": "2"}]
    # A row of numbers holds column names only if it holds exactly the expected ones.
    for names in (["0", "1"], ["0", "1", "y"]):
        assert cells("0,1\n3,1\n", None, names) == [{"0": "3", "1": "1"}]
    assert len(cells("2,1\n3,1\n", None, ["0", "1", "2"])) == 2
    # Columns that had no names are counted, also those that the model does not look at.
    for names in (["1", "2", "3"], ["2", "3", "1"], ["2", "3"]):
        for text in ("1,2,3\n", "2,?,1\n"):
            assert cells(text, None, names) == [
                dict(zip("123", text.strip().split(","), strict=True))
            ]
    assert cells("5,6\n", None, ["2", "3"]) == [{"1": "5", "2": "6"}]
    assert cells("5,6\n", None, ["2", "3", "1"]) == [{"2": "5", "3": "6"}]


@pytest.mark.parametrize(("text", "names", "words"), [
    (b"a,a\n1,2\n", [], "called 'a'; rename one, or begin the table with a row of names"),
    (b"a,,,b\n1,,,2\n", [], "two columns are called ''"),
    (b"PK\3\4\x14\0\0\0a\n1\n", [], "binary data, such as a workbook"),
    (b"a,b\n1,2,3\n", [], r"row 1: more cells \(3\) than columns \(2: a, b\)"),
    (b'[{"a": 1}, {"a": 2}]', [], "line 1: not a JSON object; write one object"),
    (b'[\n  {"a": 1}\n]', [], "line 1: not a JSON object; write one object"),
    (b"1,2,3,4\n", ["a", "b"], "the first row has 4 cells, and none names a column"),
    (b"1\n", ["a", "b", "y"], "the first row has 1 cell, and none names a column"),
    (b'{"a": 1}\n[2]\n', [], "line 2: not a JSON object"),
    (b'{"a": 1, " a": 2}\n', [], "two columns are called 'a'"),
    (b'{"a": [1]}\n', [], "line 1: a is a list or object"),
])  # fmt: skip
def test_damage_is_an_input_error_with_its_place(text, names, words):
    with standard_input(text), pytest.raises(InputError, match=words):
        list(read_records(["-"], names=names))


def test_cells_at_the_end_that_are_empty_and_a_line_that_names_the_separator_are_left_out():
    text = "a,b,,\n1,2,,\n3\n4,5,, ,,\n"
    assert cells(text) == [{"a": "1", "b": "2"}, {"a": "3"}, {"a": "4", "b": "5"}]
    for first in ("sep=;", '"sep=;"', "SEP=;\r"):
        assert cells(f"{first}\na;b\n1;x,y\n") == [{"a": "1", "b": "x,y"}]
    assert pairs_of("sep=;\nlabel;text\nham;lunch\n", "csv") == [("ham", "lunch")]


def test_other_inputs_are_refused(tmp_path):
    with pytest.raises(InputError, match="a folder; give a table"):
        list(read_records([str(tmp_path)]))
    with pytest.raises(UsageError, match="choose from csv"):
        list(read_records(["-"], SourceOptions("mbox")))
    for text in (b"", b"a,b\n"):
        with standard_input(text), pytest.raises(InputError, match="no rows"):
            list(read_records(["-"]))


@given(st.binary(max_size=200))
def test_any_bytes_are_rows_or_an_error(data):
    with standard_input(data), suppress(InputError):
        assert all(isinstance(row, Record) for row in read_records(["-"]))


def pairs_of(table, kind="csv", **wanted):
    return [row[:2] for row in rows(table, kind, **wanted)]


AB = [("ham", "hello, you"), ("spam", "buy; now")]


@pytest.mark.parametrize(
    "text",
    [
        'Text;id; Label \n"hello, you";1;ham\n"buy; now";2;spam\n',
        "category\tmessage\nham\thello, you\nspam\tbuy; now\n",
        "v1|v2||\nham|hello, you||\nspam|buy; now||\n",
        '标签,正文\nham,"hello, you"\nspam,buy; now\n',
        "subject,spam\n\"hello, you\",ham\nbuy; now,spam\n",
    ],
)  # fmt: skip
def test_delimiter_and_columns_are_found(text):
    assert pairs_of(text) == AB
    assert pairs_of(text.replace("\n", "\r\n")) == AB
    assert pairs_of(text.replace("\n", "\r")) == AB
    assert pairs_of(text.rstrip("\n")) == AB
    assert pairs_of("\n" + text.replace("\n", "\n\n")) == AB


words = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=30)


@given(st.lists(st.tuples(st.sampled_from(["ham", "spam"]), words), max_size=8))
def test_rows_written_as_csv_and_json_are_read_back(table):
    out = io.StringIO()
    csv.writer(out).writerows([("label", "text"), *table])
    assert pairs_of(out.getvalue()) == table
    lines = [json.dumps({"id": 1, "label": label, "text": text}) for label, text in table]
    assert pairs_of("\n".join(lines), "jsonl") == table


LONG = ("x" * 9999 + "\n") * 50  # larger than the sample from which columns are found
WIDE = f"text;label;{';'.join(map(str, range(60_000)))}\nx y;ham\n"
HOLES = "text,label\n,ham\nx,\ny\n"
QUOTES = 'ham\t"hello\nham\tsay "x"\nspam\tbuy"\n'


@pytest.mark.parametrize(("table", "kind", "wanted", "found"), [
    ("hello\nyou\n", "csv", {}, [(None, "hello"), (None, "you")]),  # one column is text
    # The delimiter is the sign that is in every row.
    (
        "so; well; now,ham\nx y,spam\nz,ham\n",
        "csv",
        {},
        [("ham", "so; well; now"), ("spam", "x y"), ("ham", "z")],
    ),
    ("label,Kommentar\nham,x y\n", "csv", {}, [("ham", "x y")]),
    (f'"{LONG}",ham\nx y,spam\n', "csv", {}, [("ham", LONG), ("spam", "x y")]),
    ('ham,"a; b; c"\nspam,"; d;"\n', "csv", {}, [("ham", "a; b; c"), ("spam", "; d;")]),
    (WIDE, "csv", {}, [("ham", "x y")]),
    # A column called as a class is a column beside another known name.
    ('{"what": "x", "spam": "spam"}', "jsonl", {}, [("spam", "x")]),
    ("label,x\nham,y\n", "csv", {"text": ("label",)}, [(None, "ham")]),
    (HOLES, "csv", {}, [("ham", ""), (None, "x"), (None, "y")]),
    (HOLES.replace(",", "\t"), "tsv", {}, [("ham", ""), (None, "x"), (None, "y")]),
    ('{"text": "x", "label": null}\n', "jsonl", {}, [(None, "x")]),
    (
        '{"text": 2.5, "spam": true}\n{"spam": 1.0}\n{"spam": NaN, "text": "x"}\n',
        "jsonl",
        {},
        [("true", "2.5"), ("1", None), (None, "x")],
    ),
    (QUOTES, "tsv", {}, [("ham", '"hello'), ("ham", 'say "x"'), ("spam", 'buy"')]),
    ('ham\t"a\n\nb"\nspam\t"say ""x"""\n', "tsv", {}, [("ham", "a\n\nb"), ("spam", 'say "x"')]),
    ('"label"\t"text"\n"ham"\t"a\tb"\n', "tsv", {}, [("ham", "a\tb")]),
])  # fmt: skip
def test_text_and_class_are_found(table, kind, wanted, found):
    assert pairs_of(table, kind, **wanted) == found


def test_without_names_the_column_of_few_values_is_the_class():
    texts = [f"text number {number}" for number in range(9)]
    assert pairs_of("".join(f"ham,{t}\n" for t in texts)) == [("ham", t) for t in texts]
    assert pairs_of("".join(f"{t},ham\n" for t in texts)) == [("ham", t) for t in texts]


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_a_class_with_the_name_of_a_column_is_not_a_header(kind):
    mark = "," if kind == "csv" else "\t"
    assert pairs_of(f"spam{mark}x y\nham{mark}z w\n", kind) == [("spam", "x y"), ("ham", "z w")]
    table = f"email{mark}x y\nsms{mark}z w\nemail{mark}u v\n"
    assert pairs_of(table, kind) == [("email", "x y"), ("sms", "z w"), ("email", "u v")]


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "fasttext"])
def test_an_empty_table_has_no_rows(kind):
    assert pairs_of("", kind) == pairs_of("\n\n", kind) == []


def test_the_first_row_of_another_number_of_cells_than_columns_is_told(tmp_path):
    told = []
    listener = Listener()
    listener.notice = told.append
    path = tmp_path / "texts.csv"
    path.write_text("label,text\nham,a,,\nham,lunch, at noon\nspam,b,c,d\n")
    items = read_items([str(path)], options=SourceOptions(listener=listener))
    assert [item.data for item in items] == [b"a", b"lunch", b"b"]
    assert [line.removeprefix(str(path)) for line in told] == [
        ": row 2: more cells (3) than columns (2); the rest is not read: quote texts that hold a"
        " separator (in TSV, also give --format csv)"
    ]
    path, told[:] = tmp_path / "rows.tsv", []
    path.write_text("a\tb\n" + "1\t2\n" * 300 + '"3\n4"\t5\n')
    assert len([*read_records([str(path)], SourceOptions(listener=listener))]) == 302
    assert told == [
        f"{path}: row 301: fewer cells (1) than columns (2), so that the last ones are missing;"
        " --format csv reads quotes"
    ]


def test_a_byte_that_no_encoding_has_spoils_only_itself():
    damaged = b"text\n\xc3\xa9\na\x81b\n"
    assert pairs_of(damaged) == [(None, "é"), (None, "a\N{REPLACEMENT CHARACTER}b")]


def test_fasttext_takes_the_first_label_in_linear_time():
    table = "__label__a __label__b some text\nno label\n__label__c\n__label__ x\n"
    labels, texts = zip(*pairs_of(table, "fasttext"), strict=True)
    assert labels == ("a", None, "c", None)
    assert texts == ("some text", "no label", "", "x")
    tabs = "__label__n\u0301\tred oak\n__label__b\t__label__c  elm\n"
    assert pairs_of(tabs, "fasttext") == [("ń", "red oak"), ("b", "elm")]
    assert pairs_of("__label__a " * 500_000 + "elm", "fasttext") == [("a", "elm")]


def test_rows_come_before_the_table_is_read_to_its_end():
    stream = io.BytesIO(b"label,text\n" + b"ham,hello world\n" * 100_000)
    assert next(read_rows(stream, "csv")) == ("ham", b"hello world", None, True)
    assert stream.tell() < 100_000


@pytest.mark.parametrize(("text", "kind", "columns", "message"), [
    ('{"a": 1}', "jsonl", {}, "by --text-column, of: a; rows of values are for nbspam table"),
    ('{"text": 1}\n{"text": \n', "jsonl", {}, "line 2: not JSON"),
    ('{"text": ' + "[" * 100_000, "jsonl", {}, "line 1: not JSON"),
    ('{"text": ' + "1" * 10_000 + "}", "jsonl", {}, "line 1: not JSON"),
    ('{"text": "x"}\n{"text": ["x"]}\n', "jsonl", {}, "line 2: text is a list or object"),
])  # fmt: skip
def test_damage_is_named(text, kind, columns, message):
    with pytest.raises(ValueError, match=message):
        pairs_of(text, kind, **columns)


def test_an_endless_line_is_refused(monkeypatch):
    with pytest.raises(ValueError, match="1,000,001 columns; give at most 1,000,000"):
        pairs_of("," * 1_000_000)
    monkeypatch.setattr("nbspam.sources.rows._MAX_LINE", 200_000)
    stream = io.BytesIO(b"label,text\nham," + b"x" * 300_000)
    with pytest.raises(ValueError, match="line 2: over 200,000 bytes"):
        list(lines_of(stream))


WRITTEN = st.text(st.characters(codec="ascii", exclude_characters='\r\0"'), max_size=8)


@given(st.lists(st.tuples(WRITTEN, WRITTEN), min_size=1, max_size=6), st.data())
def test_any_open_quote_is_found_in_any_table(table, data):
    at = data.draw(st.integers(0, len(table) - 1))
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows(table[:at])
    line = out.getvalue().count("\n") + 1
    first, last = table[at]
    text = out.getvalue() + f'"{first}","{last}\n' + "x,y\n" * (len(table) - at)
    lines = lines_of(io.BytesIO(text.encode()))
    where = line + first.count(chr(10))
    with pytest.raises(ValueError, match=rf"^line {where}: not CSV, a quote that opens here"):
        list(split_rows(lines, "csv")[0])


@pytest.mark.parametrize("line", ["xxxxxxxxx\n", "x" * 9999 + "\n"])
def test_an_open_quote_in_an_endless_table_needs_no_more_memory_than_a_cell(line, monkeypatch):
    monkeypatch.setattr("nbspam.sources.rows._MAX_LINE", 200_000)
    n_taken = 0

    def lines():
        nonlocal n_taken
        for each in chain(["label,text\n", "ham,x\n", 'ham,"'], repeat(line)):
            n_taken += 1
            yield each

    csv.field_size_limit(131_072)  # the default; the limit is only ever raised
    with pytest.raises(ValueError, match="line 3: not CSV, a quote that opens here"):
        list(split_rows(lines(), "csv")[0])
    assert n_taken * len(line) < 600_000


@given(st.binary(max_size=300), st.sampled_from(["csv", "tsv", "jsonl", "fasttext"]))
def test_any_bytes_are_rows_or_a_value_error(data, kind):
    found = []
    with suppress(ValueError):
        found = pairs_of(data, kind)
    assert all(label != "" for label, _ in found)
