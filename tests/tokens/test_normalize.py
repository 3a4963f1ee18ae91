"""One normal form for text beyond ASCII, alone and of many texts at once, and facts about it."""

import re
import unicodedata

import numpy as np
import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from nbspam.tokens import forms as engine
from nbspam.tokens.definition import remove_disguises, without_disguise
from nbspam.tokens.forms import normal_forms
from nbspam.tokens.normalize import (
    INVISIBLE,
    SEEN_AS_LATIN,
    SPACELESS,
    SYMBOLS,
    in_pairs,
    normal_form,
    normalize,
    with_pairs,
    without_pairs,
)
from support import examples


def form(text: str) -> str:
    """Return the normal form without spaces around it."""
    return normalize(text.encode())[0].decode().strip(" ")


def words(text: str) -> list[str]:
    return [part.decode() for word in form(text).split() for part in in_pairs(word.encode())]


def facts(text: str) -> tuple[str, ...]:
    return normalize(text.encode())[1]


@given(st.binary(max_size=60).filter(bytes.isascii))
def test_ascii_comes_back_as_it_is(text):
    assert normalize(text) == (text, ())


@pytest.mark.parametrize(("text", "expected"), [
    ("ＦＲＥＥ ｍｏｎｅｙ", "free money"), ("ﬁne", "fine"), ("x² ½", "x2 1 2"),
    ("STRASSE Straße", "strasse strasse"), ("ПРИВЕТ", "привет"), ("cafe\u0301", "café"),
    ("V\u200bi\u00ada\u2060g\ufeffra", "viagra"), ("v\U000e0100iagra \u2764\ufe0f", "viagra"),
    ("𝐅𝐫𝐞𝐞 𝓶𝓸𝓷𝓮𝔂", "free money"), ("Ⓕⓡⓔⓔ", "free"), ("buy💰now ✓", "buy 💰 now"),
    ("ᴄʜᴇᴀᴘ ꜱᴀʟᴇ", "cheap sale"), ("🅵🆁🅴🅴 🅕⒭⒠🄔", "free free"), ("çhëáp wátçhës", "cheap watches"),
    ("c\u0323h\u0323e\u0323ap w̶i̶n̶s̶", "cheap wins"), ("příští naïveté", "pristi naïveté"),
    ("\u202epaehc\u202c now", "cheap now"),
    ("\u202eeerf\nmoney €", "free money €"),  # an override ends with its line
    ("5 € – “now”… £9", "5 € now ... £9"),
    ("tо xу", "tо xу"),  # two characters are a disguise only beside longer ones
    ("viаgra tо", "viagra to"), ("हिन्दी مُحَمَّد", "हिन्दी مُحَمَّد"), ("مجـــاني", "مجاني"),
    ("İnternet i\u0307nternet I\u0307nternet", "internet internet internet"),
    ("FIRSAT fırsat vıagra", "firsat firsat viagra"), ("می‌خواهم كتاب کتاب", "ميخواهم كتاب كتاب"),
    ("ΠΛΟΪΑ πλοΐα ΟΔΟΣ οδός", "πλοϊα πλοϊα οδοσ οδοσ"), ("it’s пʼять", "it's п'ять"),
    ("déjà naïveté été người أَهْلًا", "déjà naïveté été người أَهْلًا"),
])  # fmt: skip
def test_spellings_of_the_same_word_are_one(text, expected):
    assert words(text) == expected.split()


@pytest.mark.parametrize(("text", "expected"), [
    ("Viаgrа", "viagra"),  # Cyrillic а
    ("раypal", "paypal"),  # Cyrillic ра
    ("ΡayPal", "paypal"),  # Greek Ρ
    ("сіalis", "cialis"), ("vіаgrа50", "viagra50"),
    ("баcd", "бacd"),  # half of it Latin
    ("Бecплaтнo", "бесплатно"),  # Latin letters in a Cyrillic word
    *((word, None) for word in ("vі5agra", "5іv", "ѕ3x", "γ9z", "z9γ")),  # across digits
])  # fmt: skip
def test_look_alikes_are_letters_of_the_words_alphabet(text, expected):
    assert form(text) == expected or expected is None
    assert facts(text) == ("homoglyph",)


@pytest.mark.parametrize(
    "text",
    ["привет мир", "скидка на VIP-клиент", "1С предприятие", "καλημερα", "2мм", "ёлка 3а", "5μm"],
)
def test_words_of_one_alphabet_are_left_alone(text):
    assert "homoglyph" not in facts(text)
    assert form(text) == unicodedata.normalize("NFKC", text).casefold()


@pytest.mark.parametrize(("text", "fact"), [
    ("V\u200biagra", "zero-width"), ("ＦＲＥＥ", "fullwidth"), ("Viаgra", "homoglyph"),
    ("\u202eargaiv", "override"),
])  # fmt: skip
def test_tricks_are_facts(text, fact):
    assert fact in facts(text)


@pytest.mark.parametrize("text", ["привет", "你好", "naïve\u200b", "１", "👩\u200d🔬"])
def test_honest_text_has_no_facts(text):
    assert facts(text) == ()


@pytest.mark.parametrize(("text", "pairs"), [
    ("免费发票", "免费 费发 发票"), ("好", "好"), ("我，你", "我 , 你"),
    ("买iPhone手机壳", "买 iphone 手机 机壳"), ("こんにちは", "こん んに にち ちは"),
    ("ｶﾀｶﾅ", "カタ タカ カナ"), ("𠀀𠀁𠀂", "𠀀𠀁 𠀁𠀂"), ("สวัสดี", "สว วั ัส สด ดี"),  # with marks
])  # fmt: skip
def test_scripts_without_spaces_are_cut_into_pairs(text, pairs):
    assert words(text) == pairs.split()
    assert with_pairs(normalize(text.encode())[0]).decode().split() == pairs.split()


@examples(150)
@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
    | st.text("aа你zо9é\u200b\n-", max_size=40)
    | st.text("aàÀıА\u0300Жѵ9", max_size=14)  # letters of two alphabets, with marks
)
@example("AAAAÀÀ\N{CYRILLIC CAPITAL LETTER A}À")
@example("II\N{CYRILLIC CAPITAL LETTER A}\N{COMBINING GRAVE ACCENT}\N{CYRILLIC CAPITAL LETTER A}")
@example("\N{MODIFIER LETTER SMALL CAPITAL L}")
@example("\N{ARABIC LIGATURE SHADDA WITH FATHA MEDIAL FORM}")
def test_the_normal_form_of_a_normal_form_is_the_same(text):
    once = normalize(text.encode())[0].decode()
    # Pairs would be paired again.
    if all(c < "\u0e00" for c in once if unicodedata.category(c) == "Lo"):
        assert words(once) == once.split()


@examples(100)
@given(st.binary(max_size=60))
def test_any_bytes_have_a_normal_form_of_as_many_lines(text):
    found, _ = normalize(text)
    found.decode()  # does not raise
    assert found.count(b"\n") == text.count(b"\n")


def assigned(categories="LMNPSZC"):
    for code in range(0x80, 0x110000):
        kind = unicodedata.category(chr(code))
        if kind[0] in categories and kind not in ("Cn", "Cs"):
            yield chr(code)


def test_every_invisible_character_is_dropped():
    invisible = regex.compile(r"[\p{Cf}\p{Default_Ignorable_Code_Point}\u0640]")
    text = "".join(chr(code) for code in range(0x80, 0x110000) if not 0xD800 <= code < 0xE000)
    assert not set(re.findall(INVISIBLE, text)) ^ set(invisible.findall(text))


def test_all_letters_of_scripts_without_spaces_are_cut_into_pairs():
    scripts = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Khmer}\p{Lao}\p{Myanmar}\p{Thai}"
    spaceless = regex.compile(rf"[{scripts}ー々\u3099\u309a]")
    text = "".join(c for c in assigned("LMN") if unicodedata.normalize("NFKC", c) == c)
    assert not set(re.findall(SPACELESS, text)) ^ set(spaceless.findall(text))


def test_no_letter_mark_or_digit_is_a_symbol():
    symbols = re.compile(SYMBOLS)
    assert not [c for c in assigned("LMN") if symbols.match(c)]


def test_marks_beyond_thirty_on_a_letter_are_dropped_and_symbols_between_them_too():
    assert form("a" + "\u0316" * 100 + "★b") == "a" + "\u0316" * 30 + " b"
    assert len(form("a" + "\u0301\u0316" * 5000)) <= 31
    assert_equal_to_the_definition([f"中{mark * 31}文".encode() for mark in MARKS])
    long = "a" * 200_000 + "é" + "b" * 200_000 + "é"  # in linear time
    assert form(long) == long


@pytest.mark.parametrize("case", [
    *("v1agra:viagra", "m0rtg4ge:mortgage", "re5t:rest", "c-h-e-a-p:cheap", "f_r_e_e:free"),
    *("mp3", "4you", "w2k", "win32api", "a-b-c", "e-mail", "f-r_e-e", "ab-c-d-e", "x86_64"),
])  # fmt: skip
def test_a_disguised_word_is_the_word_and_others_stay(case):
    word, _, meant = case.encode().partition(b":")
    assert without_disguise(word) == (meant or word)


def test_only_fields_of_text_change_and_long_words_of_single_letters_are_joined():
    words = b"\0v1agra\0f-r-e-e\0v1agra\0f-r-e-e\0"
    found = remove_disguises(words, np.array([1, 16, 31]), np.array([False, True]))
    assert found.replace(b"\0\0\0\0", b"\0") == b"\0v1agra\0f-r-e-e\0viagra\0free\0"
    assert len(found) == len(words)
    # The first letter of all is looked at, too.
    assert remove_disguises(b"\0v1a\0", np.array([1, 5]), np.array([True])) == b"\0via\0"
    words = b"\0" + b"a-" * 400_000 + b"a\0"  # quadratic time would be minutes
    found = remove_disguises(words, np.array([1, len(words)]), np.array([True]))
    assert found.rstrip(b"\0") == b"\0" + b"a" * 400_001


# Chinese characters and Korean syllables, which are alike.
ALIKE = [range(0x3400, 0x9FFF), range(0xAC00, 0xD7A3), range(0x20000, 0x32000)]
MARKS = "\u0301\u0323\u0338\u0345\u0653\u05b0\u0e38\u0e48\u093c\u094d\u3099\u09be\u1161\u11a8"
SOME = "aеК9é\v中国か가ᄀ น้ำक ड़ß\u200b\u202e\u202cＡﷺ㌀…“”—💰İ´ᴀşΐ=-.\n\0 " + MARKS
CLASSES = ["Ll", "Lu", "Lo", "Mn", "Mc", "Nd", "Po", "So", "Cf", "Zs", "Lm"]
CHARACTERS = st.one_of(
    st.sampled_from(SOME), st.characters(categories=CLASSES), st.characters(codec="utf-8")
)
FORMS = st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"])


def assert_equal_to_the_definition(texts):
    forms, facts = normal_forms(texts)
    for n, (text, form) in enumerate(zip(texts, forms, strict=True)):
        expected, oddities = normalize(text)
        assert form.lower() == with_pairs(expected).lower()
        assert without_pairs(form).lower() == expected.lower()
        assert facts.get(n, ()) == oddities
    assert all(facts.values())


def special(character):
    """Return whether a text with this character may be left to the definition whole."""
    return character == "\u202e" or not SEEN_AS_LATIN.isdisjoint(normal_form(character))


def assert_equal_in_context(codes, context, monkeypatch):
    """Compare all characters in one text, of which nothing may be left to the definition whole."""
    # Half of a pair in UTF-16 is no character.
    characters = (chr(code) for code in codes if not 0xD800 <= code < 0xE000)
    lines = [context.replace("{}", c) for c in characters if not special(c)]
    text = "\n".join(lines).encode()
    expected, oddities = normalize(text)
    monkeypatch.setattr(engine.normalize, "normalize", None)

    (form,), facts = normal_forms([text])
    form, expected = form.lower(), with_pairs(expected).lower()
    if form != expected:
        pairs = zip(form.split(b"\n"), expected.split(b"\n"), strict=True)
        assert [pair for pair in pairs if pair[0] != pair[1]] == []
    assert facts.get(0, ()) == oddities


def test_all_kinds_of_characters_have_the_forms_that_the_definition_gives_them(monkeypatch):
    def is_one_of_many(code):
        return unicodedata.category(chr(code)) in ("Cn", "Co") or any(code in r for r in ALIKE)

    kinds = (code for code in range(0xF0000) if code % 61 == 0 or not is_one_of_many(code))
    assert_equal_in_context(kinds, "{} a{}e 中{}中 é\u0323{}{}a", monkeypatch)


@pytest.mark.parametrize("context", ["{}", "9{}", "a{}e", "中{}中", "vi{}gra", "{}\uff9efi"])
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
