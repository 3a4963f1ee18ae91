"""The mails and sentences of benchmarks/scripts.py are what they are said to be."""

import gettext
import io
import struct
from collections import Counter
from email import message_from_bytes, policy

import pytest
import script_texts
from script_texts import SCRIPTS, encoded, made, sentences
from scripts import WAYS, as_bytes, written_mails

DECLARED = [
    (script, charset)
    for script in SCRIPTS
    for charset in ("utf-8", *script.charsets)
    if charset != "windows-874"  # which Python's own parser does not know
]


@pytest.mark.parametrize("way", [way for way in WAYS if way != "undeclared"])
@pytest.mark.parametrize(("script", "charset"), DECLARED)
def test_the_standard_library_reads_the_mail_that_was_written(script, charset, way):
    mail = written_mails(made(script), 1, 300)[0]
    parsed = message_from_bytes(as_bytes(mail, charset, way), policy=policy.default)
    python = {"windows-1258": "cp1258"}.get(charset, charset)
    said = {
        name: encoded(getattr(mail, name), charset).decode(python) for name in mail._fields[1:]
    }

    assert parsed.get_content().rstrip("\n") == said["text"]
    assert str(parsed["Subject"]) == said["subject"]
    assert parsed["From"].startswith((said["name"], f'"{said["name"]}'))
    assert parsed["To"].endswith("<someone@mail.example>")


@pytest.mark.parametrize("script", SCRIPTS)
def test_mails_have_equally_many_characters(script):
    mails = written_mails(made(script), 3, 500)
    assert {len(mail.text.replace("\n", "")) for mail in mails} == {500}


@pytest.mark.parametrize("script", SCRIPTS)
def test_made_words_are_of_the_script_and_few_of_them_are_frequent(script):
    words = Counter(word for text in made(script) for word in text.strip(".").split())
    if script.blank:
        assert words.most_common(100)[-1][1] > 10 * words.most_common()[-1][1]
    for charset in script.charsets:
        rare = [word for word in words if len(encoded(word, charset)) < len(word)]
        assert not rare


def test_sentences_come_from_catalogues_if_there_are_enough(tmp_path, monkeypatch):
    greek = next(script for script in SCRIPTS if script.code == "el")
    texts = {f"Sentence {i}": f"Το αρχείο {i} δεν βρέθηκε στον κατάλογο" for i in range(1000)}
    folder = tmp_path / "el" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    (folder / "a.mo").write_bytes(
        catalogue({"": "Content-Type: text/plain; charset=UTF-8\n", **texts})
    )
    monkeypatch.setattr(script_texts, "CATALOGUES", tmp_path)

    assert sentences(greek) == (sorted(texts.values()), True)
    monkeypatch.setattr(script_texts, "_ENOUGH", 10**9)
    assert sentences(greek) == (made(greek), False)


def catalogue(texts: dict[str, str]) -> bytes:
    """Return a catalogue, checked by Python's own reader."""
    pairs = sorted((key.encode(), value.encode()) for key, value in texts.items())
    tables, strings, at = b"", b"", 28 + 16 * len(pairs)
    for place in (0, 1):
        for pair in pairs:
            tables += struct.pack("<2I", len(pair[place]), at + len(strings))
            strings += pair[place] + b"\0"
    head = struct.pack("<7I", 0x950412DE, 0, len(pairs), 28, 28 + 8 * len(pairs), 0, 0)
    data = head + tables + strings
    read = gettext.GNUTranslations(io.BytesIO(data))
    assert all(read.gettext(key) == value for key, value in texts.items())
    return data
