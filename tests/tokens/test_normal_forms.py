"""The normal forms of many texts at once are those of the definition, in all of Unicode."""

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.tokens import normal_forms as engine
from nbspam.tokens.normal_forms import normal_forms
from nbspam.tokens.normalize import SEEN_AS_LATIN, normalize
from support import examples

# All that Unicode has given a meaning, and some of what it has not.
EVERY = [
    chr(code)
    for code in range(0x110000)
    if unicodedata.category(chr(code)) not in ("Cn", "Co", "Cs")
    or code % 101 == 0 and not 0xD800 <= code < 0xE000
]
# Whole texts with these go to the definition.
SPECIAL = [
    c
    for c in EVERY
    if c == "\u202e"
    or not SEEN_AS_LATIN.isdisjoint(unicodedata.normalize("NFKC", c).casefold())
]
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


def test_every_character_has_the_form_that_the_definition_gives_it(monkeypatch):
    context = "{} a{}e 中{}中 é\u0323{}{}a"
    special = set(SPECIAL)
    text = "\n".join([context.replace("{}", c) for c in EVERY if c not in special]).encode()
    expected, facts = normalize(text)
    # Whole texts must not be left to the definition here.
    monkeypatch.setattr(engine, "normalize", None)

    forms, found = normal_forms([text])
    lines = zip(forms[0].lower().split(b"\n"), expected.lower().split(b"\n"), strict=True)
    assert [pair for pair in lines if pair[0] != pair[1]] == []
    assert found.get(0, ()) == facts


@pytest.mark.parametrize("context", ["{}", "a{}e", "中{}中", "vi{}gra"])
def test_characters_that_whole_texts_depend_on_have_their_forms(context):
    assert_equal_to_the_definition([context.format(c).encode() for c in SPECIAL])


@examples(400)
@given(st.lists(st.text(CHARACTERS, max_size=20), min_size=1, max_size=4), FORMS)
def test_any_texts_have_the_forms_of_the_definition(texts, form):
    texts = [unicodedata.normalize(form, text).encode() for text in texts]
    assert_equal_to_the_definition(texts)


@given(st.lists(st.binary(max_size=30), min_size=1, max_size=4))
def test_any_bytes_have_the_forms_of_the_definition(texts):
    assert_equal_to_the_definition(texts)
