"""The normal forms of many texts at once are those of the definition, in all of Unicode."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.tokens import forms as engine
from nbspam.tokens.forms import normal_forms
from nbspam.tokens.normalize import SEEN_AS_LATIN, normalize
from support import examples

# Chinese characters and Korean syllables, which are alike.
ALIKE = [range(0x3400, 0x9FFF), range(0xAC00, 0xD7A3), range(0x20000, 0x32000)]
MARKS = "\u0301\u0323\u0338\u0345\u0653\u05b0\u0e38\u0e48\u093c\u094d\u3099\u09be\u1161\u11a8"
SOME = "aеК9é中か가ᄀ น้ำक ड़ß\u200b\u202e\u202cＡﷺ㌀…“”—💰İ´ᴀşΐ=-.\n\0 " + MARKS
CLASSES = ["Ll", "Lu", "Lo", "Mn", "Mc", "Nd", "Po", "So", "Cf", "Zs", "Lm"]
CHARACTERS = st.one_of(
    st.sampled_from(SOME), st.characters(categories=CLASSES), st.characters(codec="utf-8")
)
FORMS = st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"])


def assert_equal_to_the_definition(texts):
    forms, facts = normal_forms(texts)
    for n, (text, form) in enumerate(zip(texts, forms, strict=True)):
        expected, oddities = normalize(text)
        assert form.lower() == expected.lower()
        assert facts.get(n, ()) == oddities
    assert all(facts.values())


def special(character):
    """Return whether a text with this character may be left to the definition whole."""
    folded = unicodedata.normalize("NFKC", character).casefold()
    return character == "\u202e" or not SEEN_AS_LATIN.isdisjoint(folded)


def assert_equal_in_context(codes, context, monkeypatch):
    """Compare all characters in one text, of which nothing may be left to the definition whole."""
    # Half of a pair in UTF-16 is no character.
    characters = (chr(code) for code in codes if not 0xD800 <= code < 0xE000)
    lines = [context.replace("{}", c) for c in characters if not special(c)]
    text = "\n".join(lines).encode()
    expected, oddities = normalize(text)
    monkeypatch.setattr(engine, "normalize", None)

    (form,), facts = normal_forms([text])
    form, expected = form.lower(), expected.lower()
    if form != expected:
        pairs = zip(form.split(b"\n"), expected.split(b"\n"), strict=True)
        assert [pair for pair in pairs if pair[0] != pair[1]] == []
    assert facts.get(0, ()) == oddities


def test_all_kinds_of_characters_have_the_forms_that_the_definition_gives_them(monkeypatch):
    def is_one_of_many(code):
        return unicodedata.category(chr(code)) in ("Cn", "Co") or any(code in r for r in ALIKE)

    kinds = (code for code in range(0xF0000) if code % 61 == 0 or not is_one_of_many(code))
    assert_equal_in_context(kinds, "{} a{}e 中{}中 é\u0323{}{}a", monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 0x110000, 0x22000))
def test_every_code_point_has_the_form_that_the_definition_gives_it(start, monkeypatch):
    context = "{}\na{}e\n中{}中\né\u0323{}{}a"
    assert_equal_in_context(range(start, start + 0x22000), context, monkeypatch)


@pytest.mark.parametrize("context", ["{}", "a{}e", "中{}中", "vi{}gra"])
def test_characters_that_whole_texts_depend_on_have_their_forms(context):
    characters = (chr(code) for code in range(0x20000) if not 0xD800 <= code < 0xE000)
    assert_equal_to_the_definition([context.format(c).encode() for c in characters if special(c)])


@examples(400)
@given(st.lists(st.text(CHARACTERS, max_size=20), min_size=1, max_size=4), FORMS)
def test_any_texts_have_the_forms_of_the_definition(texts, form):
    texts = [unicodedata.normalize(form, text).encode() for text in texts]
    assert_equal_to_the_definition(texts)


SCRAPS = st.sampled_from(["é", "中", "V\u200bi", "Free\n", "viаgra", "x" * 300, "\nY" * 300])
LINES = st.lists(SCRAPS, max_size=12).map(lambda parts: "".join(parts).encode())


@given(st.lists(LINES, max_size=4), st.lists(st.binary(max_size=30), min_size=1, max_size=4))
def test_lines_of_ascii_between_others_and_any_bytes_have_the_forms_of_the_definition(lines, data):
    assert_equal_to_the_definition(lines)  # up to case
    assert_equal_to_the_definition(data)
