"""Tables: which cell is the text, which the class, and which files are not tables."""

import csv
import io
import json
from contextlib import suppress
from itertools import chain, repeat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.sources.rows import NamedColumns, lines_of, read_rows, sniff, split_rows


def rows(table: str | bytes, kind: str = "csv", **wanted: Any) -> list[tuple[str | None, str]]:
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


def test_a_quoted_cell_keeps_its_line_breaks_and_quotes():
    assert rows('label,text\nham,"one\r\n""two""\n\nthree"\n') == [("ham", 'one\n"two"\n\nthree')]


words = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=30)


@given(st.lists(st.tuples(st.sampled_from(["ham", "spam"]), words), max_size=8))
def test_rows_written_as_csv_are_read_back(table):
    out = io.StringIO()
    csv.writer(out).writerows([("label", "text"), *table])

    assert rows(out.getvalue()) == table


@given(st.lists(st.tuples(st.sampled_from(["ham", "spam"]), words), max_size=8))
def test_rows_written_as_json_are_read_back(table):
    lines = [json.dumps({"id": 1, "label": label, "text": text}) for label, text in table]

    assert rows("\n".join(lines), "jsonl") == table


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


def test_one_column_is_text_without_classes():
    assert rows("hello\nyou\n") == [(None, "hello"), (None, "you")]


def test_the_second_of_two_columns_is_the_text_when_the_first_is_the_class():
    assert rows("label,Kommentar\nham,x y\n") == [("ham", "x y")]


def test_columns_can_be_named_in_any_case():
    table = "id,Kommentar,Klasse,text\n1,x y,ham,no\n"
    assert rows(table, text=("kommentar",), label="KLASSE") == [("ham", "x y")]
    assert rows(table, text=("Klasse",)) == [(None, "ham")]
    assert rows("label,x\nham,y\n", text=("label",)) == [(None, "ham")]


def test_a_first_row_larger_than_the_sample_is_a_row():
    text = ("x" * 9999 + "\n") * 50
    assert rows(f'"{text}",ham\nx y,spam\n') == [("ham", text), ("spam", "x y")]


def test_a_column_named_like_a_class_is_a_header_beside_another_known_name():
    assert rows("text,spam\nx y,spam\nz w,ham\n") == [("spam", "x y"), ("ham", "z w")]
    assert rows('{"what": "x", "spam": "spam"}', "jsonl") == [("spam", "x")]


def test_empty_and_missing_cells_are_empty_text_or_no_class():
    table = "text,label\n,ham\nx,\ny\n"
    assert rows(table) == [("ham", ""), (None, "x"), (None, "y")]
    assert rows(table.replace(",", "\t"), "tsv") == [("ham", ""), (None, "x"), (None, "y")]
    lines = '{"text": "x", "label": null}\n{"label": "ham"}\n'
    assert rows(lines, "jsonl") == [(None, "x"), ("ham", "")]


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "fasttext"])
def test_an_empty_table_has_no_rows(kind):
    assert rows("", kind) == rows("\n\n", kind) == []


def test_quotes_in_tsv_are_text():
    table = 'ham\t"hello\nham\tsay "x"\nspam\tbuy"\n'
    assert rows(table, "tsv") == [("ham", '"hello'), ("ham", 'say "x"'), ("spam", 'buy"')]


def test_text_is_utf8_or_cp1252_without_a_byte_order_mark():
    assert rows(b"\xef\xbb\xbflabel,text\nham,\xc3\xa9\nspam,\x80\xe9\n") == [
        ("ham", "é"), ("spam", "€é"),
    ]  # fmt: skip
    damaged = b"text\n\xc3\xa9\na\x81b\n"
    assert rows(damaged) == [(None, "é"), (None, "a\N{REPLACEMENT CHARACTER}b")]


def test_json_numbers_and_truth_values_are_classes():
    lines = '{"text": "x", "spam": 1}\n{"text": 2.5, "spam": true}\n\n'
    assert rows(lines, "jsonl") == [("1", "x"), ("true", "2.5")]


def test_fasttext_takes_the_first_label():
    table = "__label__a __label__b some text\nno label\n__label__c\n__label__ x\n"
    labels, texts = zip(*rows(table, "fasttext"), strict=True)
    assert labels == ("a", None, "c", None)
    assert texts == ("some text", "no label", "", "x")


def test_rows_come_before_the_table_is_read_to_its_end():
    stream = io.BytesIO(b"label,text\n" + b"ham,hello world\n" * 100_000)

    assert next(read_rows(stream, "csv")) == ("ham", "hello world", None)
    assert stream.tell() < 100_000


@pytest.mark.parametrize(
    ("text", "kind", "columns", "message"),
    [
        (
            "a,b,c\n1,2,3\n",
            "csv",
            {},
            "no known text column; name one by --text-column, of: a, b, c",
        ),
        (
            "a\tb\tc\n1\t2\t3\n",
            "tsv",
            {},
            "no known text column; name one by --text-column, of: a, b, c",
        ),
        ("a,b\n", "csv", {"text": ("c",)}, "no column 'c'; there are: a, b"),
        ("text,b\n", "csv", {"label": "c"}, "no column 'c'; there are: text, b"),
        ('{"a": 1}', "jsonl", {}, "no known text column; name one by --text-column, of: a"),
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


@pytest.mark.parametrize("line", ["xxxxxxxxx\n", "x" * 9999 + "\n"])
def test_an_endless_cell_is_refused(line):
    csv.field_size_limit(131_072)  # the default; the limit is only ever raised
    lines = chain(["label,text\n", 'ham,"'], repeat(line, 500_000 // len(line)))
    with pytest.raises(ValueError, match="line 2: not CSV, a quote that opens here"):
        list(split_rows(lines, "csv", 200_000)[0])


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
