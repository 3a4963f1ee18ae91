"""Data that are neither mail nor text are told by what they begin with."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.sources.files import NO_COLUMNS, TextColumns
from nbspam.sources.items import oddity
from support import HAM, ROOT, SPAM, packed


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (Path(sys.executable).read_bytes()[:5000], "a program"),
        (b"MZ\x90\0\x03\0\0\0", "a program"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a PNG picture"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "a JPEG picture"),
        (b"GIF89a\1\0\1\0", "a GIF picture"),
        (b"%PDF-1.7\n", "a PDF document"),
        (packed({"a": b""}, "zip"), "a ZIP archive or office document"),
        (b"\x1f\x8b\x08\0", "data compressed by gzip"),
        (np.random.default_rng(2).bytes(3000), "binary data"),
        (b"a\0\0\0b\0\0\0", "binary data"),
    ],
)
def test_binary_data_are_named(data, what):
    assert oddity(data, NO_COLUMNS) == f"looks like {what}, not like mail or text"


def test_a_table_is_named_with_the_format_to_give():
    said = "looks like a table, judged as one text; --format {} judges its rows"
    assert oddity(b"label,text\nham,x\n", NO_COLUMNS) == said.format("csv")
    assert oddity(b'{"text": "x"}\n{"text": "y"}\n', NO_COLUMNS) == said.format("jsonl")
    table = b"nr,headline\n7,x\n"
    assert oddity(table, NO_COLUMNS) is None
    assert oddity(table, TextColumns(("headline",))) == said.format("csv")


HELLO = "こんにちは、お元気ですか。" * 20


@pytest.mark.parametrize(
    "data",
    [HAM, SPAM, b"", b"\n", b"hello", b"MZ is a country code"]
    + [HELLO.encode(name) for name in ("utf-8", "utf-16", "iso2022_jp", "shift_jis", "euc_jp")],
)
def test_mail_and_text_are_not_odd(data):
    assert oddity(data, NO_COLUMNS) is None


def test_embedded_mail_is_not_odd():
    for path in sorted((ROOT / "corpora" / "mail").glob("*/*")):
        assert oddity(path.read_bytes(), NO_COLUMNS) is None


@given(st.binary(max_size=100), st.sampled_from([b"", b"{", b"label,text\n", b"\xff\xfe"]))
def test_any_bytes_are_looked_at(data, start):
    assert isinstance(oddity(start + data, TextColumns(("a",))), str | None)
