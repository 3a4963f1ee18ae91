"""Tables: which cell is the text, which the class, and which files are not tables."""

import csv
import io
import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.sources.files import NamedColumns
from nbspam.sources.rows import lines_of, read_rows, sniff


def rows(table, kind="csv", **wanted):
    data = table.encode() if isinstance(table, str) else table
    return [row[:2] for row in read_rows(io.BytesIO(data), kind, NamedColumns(**wanted))]


AB = [("ham", "hello, you"), ("spam", "buy; now")]


@pytest.mark.parametrize(
    "text",
    [
        'label,text\nham,"hello, you"\nspam,buy; now\n',
        'Text;id; Label \n"hello, you";1;ham\n"buy; now";2;spam\n',
        "category\tmessage\nham\thello, you\nspam\tbuy; now\n",
        "v1|v2||\nham|hello, you||\nspam|buy; now||\n",
        'ham,"hello, you"\nspam,buy; now\n',
        "subject,spam\n\"hello, you\",ham\nbuy; now,spam\n",
    ],
)  # fmt: skip
def test_delimiter_and_columns_are_found(text):
    assert rows(text) == AB
    assert rows(text.replace("\n", "\r\n")) == AB
    assert rows(text.rstrip("\n")) == AB
    assert rows("\n" + text.replace("\n", "\n\n")) == AB


words = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=30)


@given(st.lists(st.tuples(st.sampled_from(["ham", "spam"]), words), max_size=8))
def test_rows_written_as_csv_and_json_are_read_back(table):
    out = io.StringIO()
    csv.writer(out).writerows([("label", "text"), *table])
    assert rows(out.getvalue()) == table
    lines = [json.dumps({"id": 1, "label": label, "text": text}) for label, text in table]
    assert rows("\n".join(lines), "jsonl") == table


LONG = ("x" * 9999 + "\n") * 50  # larger than the sample from which columns are found
NAMED = "id,Kommentar,Klasse,text\n1,x y,ham,no\n"
HOLES = "text,label\n,ham\nx,\ny\n"
QUOTES = 'ham\t"hello\nham\tsay "x"\nspam\tbuy"\n'


@pytest.mark.parametrize(
    ("table", "kind", "wanted", "found"),
    [
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
        # A column called as a class is a column beside another known name.
        ("text,spam\nx y,spam\nz w,ham\n", "csv", {}, [("spam", "x y"), ("ham", "z w")]),
        ('{"what": "x", "spam": "spam"}', "jsonl", {}, [("spam", "x")]),
        (NAMED, "csv", {"text": ("kommentar",), "label": "KLASSE"}, [("ham", "x y")]),
        (NAMED, "csv", {"text": ("Klasse",)}, [(None, "ham")]),
        ("label,x\nham,y\n", "csv", {"text": ("label",)}, [(None, "ham")]),
        (HOLES, "csv", {}, [("ham", ""), (None, "x"), (None, "y")]),
        (HOLES.replace(",", "\t"), "tsv", {}, [("ham", ""), (None, "x"), (None, "y")]),
        ('{"text": "x", "label": null}\n', "jsonl", {}, [(None, "x")]),
        (
            '{"text": 2.5, "spam": true}\n{"spam": 1}\n',
            "jsonl",
            {},
            [("true", "2.5"), ("1", None)],
        ),
        ('label,text\nham,"a\r\n""b""\n\nc"\n', "csv", {}, [("ham", 'a\n"b"\n\nc')]),
        (QUOTES, "tsv", {}, [("ham", '"hello'), ("ham", 'say "x"'), ("spam", 'buy"')]),
    ],
)
def test_text_and_class_are_found(table, kind, wanted, found):
    assert rows(table, kind, **wanted) == found


def test_without_names_the_column_of_few_values_is_the_class():
    texts = [f"text number {number}" for number in range(9)]
    assert rows("".join(f"ham,{t}\n" for t in texts)) == [("ham", t) for t in texts]
    assert rows("".join(f"{t},ham\n" for t in texts)) == [("ham", t) for t in texts]


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_a_class_with_the_name_of_a_column_is_not_a_header(kind):
    mark = "," if kind == "csv" else "\t"
    assert rows(f"spam{mark}x y\nham{mark}z w\n", kind) == [("spam", "x y"), ("ham", "z w")]
    table = f"email{mark}x y\nsms{mark}z w\nemail{mark}u v\n"
    assert rows(table, kind) == [("email", "x y"), ("sms", "z w"), ("email", "u v")]


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "fasttext"])
def test_an_empty_table_has_no_rows(kind):
    assert rows("", kind) == rows("\n\n", kind) == []


def test_text_is_utf8_or_cp1252_without_a_byte_order_mark():
    assert rows(b"\xef\xbb\xbflabel,text\nham,\xc3\xa9\nspam,\x80\xe9\n") == [
        ("ham", "é"), ("spam", "€é"),
    ]  # fmt: skip
    damaged = b"text\n\xc3\xa9\na\x81b\n"
    assert rows(damaged) == [(None, "é"), (None, "a\N{REPLACEMENT CHARACTER}b")]


def test_fasttext_takes_the_first_label():
    table = "__label__a __label__b some text\nno label\n__label__c\n__label__ x\n"
    labels, texts = zip(*rows(table, "fasttext"), strict=True)
    assert labels == ("a", None, "c", None)
    assert texts == ("some text", "no label", "", "x")


def test_rows_come_before_the_table_is_read_to_its_end():
    stream = io.BytesIO(b"label,text\n" + b"ham,hello world\n" * 100_000)
    assert next(read_rows(stream, "csv")) == ("ham", "hello world", None)
    assert stream.tell() < 100_000


NO_TEXT = "no known text column; name one by --text-column, of: a"


@pytest.mark.parametrize(
    ("text", "kind", "columns", "message"),
    [
        ("a\tb\tc\n1\t2\t3\n", "tsv", {}, f"{NO_TEXT}, b, c"),
        ("a,b\n", "csv", {"text": ("c",)}, "no column 'c'; there are: a, b"),
        ("text,b\n", "csv", {"label": "c"}, "no column 'c'; there are: text, b"),
        ('{"a": 1}', "jsonl", {}, NO_TEXT),
        ('{"a": 1}', "jsonl", {"text": ("b",)}, "no column 'b'; there are: a"),
        ('{"text": 1}\n{"text": \n', "jsonl", {}, "line 2: not JSON"),
        ('{"text": ' + "[" * 100_000, "jsonl", {}, "line 1: not JSON"),
        ('{"text": ' + "1" * 10_000 + "}", "jsonl", {}, "line 1: not JSON"),
        ("[1]\n", "jsonl", {}, "line 1: not a JSON object"),
        ('{"text": "x"}\n{"text": ["x"]}\n', "jsonl", {}, "line 2: a list or object instead"),
    ],
)
def test_damage_is_named(text, kind, columns, message):
    with pytest.raises(ValueError, match=message):
        rows(text, kind, **columns)


def test_an_endless_line_is_refused():
    stream = io.BytesIO(b"label,text\nham," + b"x" * 300_000)
    with pytest.raises(ValueError, match="line 2: over 200,000 bytes"):
        list(lines_of(stream, most=200_000))


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"ham\tGo until jurong\nspam\tFree entry\nham\tOk lar\n", "tsv"),
        (b"ham\tx\nspam\ty", "tsv"),
        (b"\xef\xbb\xbfham\tx\nspam\ty\nham\tz\nspa", "tsv"),
        (b"__label__spam buy\n", "fasttext"),
        ("好评\tx\n差评\ty\n好评\tz\n".encode("gbk"), "tsv"),
        ("亝\tx\n度\ty\n亝\tz\n".encode("gbk"), "tsv"),  # bytes that Latin-1 has for spaces
        ("好评\tx\n差评\ty\n好评\tz\n".encode("utf-16"), "tsv"),
        (b"ham\tx\n", None),
        (b"Subject:\tx\nFrom:\ty\n", None),
        (b"a\tx\nb\ty\nc\tz\nd\tz\n", None),
        (b"ham\tx\nno tab\nspam\ty\n", None),
        (b"", None),
        (b"\0\1\2\n\3\n", None),
    ],
)
def test_a_table_is_recognised_by_its_content(head, kind):
    assert sniff(head) == kind


@given(st.binary(max_size=300), st.sampled_from(["csv", "tsv", "jsonl", "fasttext"]))
def test_any_bytes_are_rows_or_a_value_error(data, kind):
    found = []
    with suppress(ValueError):
        found = rows(data, kind)
    assert all(label != "" for label, _ in found)
