"""Tables in the encodings of the world are read as written, or refused by their line."""

import codecs
import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.charsets import check_encoding, decoded_lines
from nbspam.errors import UsageError
from nbspam.sources.items import SourceOptions, read_items
from support import reviews

# How spreadsheets and databases of a country write its language.
WRITTEN = {  # the guesses of all languages are in tests/test_alphabets.py
    "chinese": "gbk gb18030 utf-16 utf-16-be",
    "japanese": "cp932 euc_jp utf-16-le",
    "russian": "cp1251 koi8_r utf-16",
    "thai": "cp874",
    "german": "cp1252 latin-1 utf-8-sig utf-32",
}


def read(data, encoding=None, most=1 << 20):
    said = []
    lines = decoded_lines(io.BytesIO(data), encoding, said.append, most)
    text = "".join(lines)
    return text, [line.removesuffix("; --encoding NAME overrides") for line in said]


@pytest.mark.parametrize("language", WRITTEN)
def test_a_table_is_read_in_the_encoding_that_it_was_written_in(language):
    for size in (2, 10, 3000):
        rows = reviews(language) * (size // 10 or 1)
        text = "label\ttext\n" + "".join(f"{row}\n" for row in rows[:size])
        for encoding in WRITTEN[language].split():
            found, said = read(text.encode(encoding))

            assert found == text, (encoding, size)
            assert len(said) == (encoding != "utf-8-sig")


@given(st.text(st.characters(exclude_characters="\0\ufeff", codec="utf-8"), max_size=60))
def test_utf8_is_never_taken_for_anything_else(text):
    assert read(text.encode()) == (text, [])


def test_utf8_with_a_few_wrong_bytes_stays_utf8():
    rows = [row.encode() for row in reviews("chinese")]
    for damage in (b"\xff", "é".encode("latin-1"), "好".encode("gbk")):
        found, said = read(b"\n".join([rows[0] + damage, *rows[1:]]))
        assert found.splitlines()[1:] == reviews("chinese")[1:]
        assert said == []
    # One cut character in one short row; and a table of which half was never converted.
    assert read("label,text\nham,слово".encode()[:-1])[1] == []
    half = "\n".join(reviews("german")).encode() + b"\n" + "Größe\nKäse\n".encode("cp1252")
    assert read(half) == ("\n".join(reviews("german")) + "\nGröße\nKäse\n", [])


def test_what_comes_late_in_a_table_is_found_too():
    start = "label,text\n" + "ham,see you at lunch\n" * 20_000
    text = start + "".join(f"spam,{row}\n" for row in reviews("russian"))
    assert read(text.encode("koi8_r")) == (text, ["read as KOI8-R"])


def test_a_character_that_was_cut_in_half_spoils_only_itself():
    lines = "\n".join(reviews("chinese")).encode("gbk").split(b"\n")
    lines[4] = lines[4][:-1]
    found, said = read(b"\n".join(lines))
    assert said == ["read as GB18030"]
    assert found.split("\n")[5:] == reviews("chinese")[5:]
    assert found.split("\n")[4].startswith(reviews("chinese")[4].split("\t")[0])


@pytest.mark.parametrize("encoding", ["gbk", "utf-16", "utf-16-be", "utf-8", "koi8-r", "cp1252"])
def test_a_stated_encoding_is_believed(encoding):
    text = "label,text\nham,naïve\n" if encoding in ("cp1252", "utf-8") else "ham,слово\nспам,x"
    assert read(text.encode(encoding), encoding) == (text, [])


@pytest.mark.parametrize("encoding", ["gbk", "big5", "shift_jis", "utf-16", "utf-8", "euc_jp"])
@given(number=st.integers(1, 3000))
def test_bytes_that_a_stated_encoding_lacks_are_refused_by_their_line(encoding, number):
    # In UTF-16 half of a surrogate pair, elsewhere a byte that begins no character.
    lines = ["多い文字,x\n".encode(encoding).removeprefix(codecs.BOM_UTF16)] * 3000
    lines[number - 1] = b"\x00\xd8\n\0" if encoding == "utf-16" else b"ab\xff\xff\n"
    lines[0] = (codecs.BOM_UTF16 if encoding == "utf-16" else b"") + lines[0]
    with pytest.raises(ValueError, match=rf"^line {number}: not {encoding}; give another"):
        read(b"".join(lines), encoding)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "gbk"])
def test_an_endless_line_is_refused_in_any_encoding(encoding):
    text = "label,text\n" + "好" * 300_000
    with pytest.raises(ValueError, match="line 2: over 1,000 bytes"):
        read(text.encode(encoding), encoding if encoding == "gbk" else None, most=1000)


@pytest.mark.parametrize("name", ["klingon", "base64", "rot13", "", "utf\x00"])
def test_a_name_that_is_no_encoding_of_text_is_wrong_usage(name):
    with pytest.raises(UsageError, match=r"--encoding .*: unknown; give one such as gb18030"):
        check_encoding(name)
    with pytest.raises(UsageError, match="unknown"):
        read_items(["-"], options=SourceOptions(encoding=name))


@given(st.binary(max_size=300), st.sampled_from(["", "\ufeffa,b\n"]))
def test_any_bytes_are_text_of_some_encoding(data, start):
    found, _ = read(start.encode("utf-16-le") + data)
    assert isinstance(found, str)


def test_the_guesser_is_imported_only_for_other_encodings(monkeypatch):
    monkeypatch.setitem(sys.modules, "nbspam.alphabets", None)  # importing it raises ImportError
    assert read("ham,é\n".encode())[1] == []
    assert read("ham,é\n".encode("utf-16"))[1] == ["read as UTF-16"]
    with pytest.raises(ImportError):
        read("ham,é\n".encode("cp1252"))
