"""What people read as the same word is the same word."""

import numpy as np
import pytest

from nbspam.tokens.normalize import remove_disguises, without_disguise


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        (b"v1agra", b"viagra"),
        (b"m0rtg4ge", b"mortgage"),
        (b"re5t", b"rest"),
        (b"c-h-e-a-p", b"cheap"),
        (b"f_r_e_e", b"free"),
    ],
)
def test_a_disguised_word_is_the_word(word, meant):
    assert without_disguise(word) == meant


@pytest.mark.parametrize(
    "word",
    [
        b"mp3",
        b"4you",
        b"w2k",
        b"win32api",
        b"a-b-c",
        b"e-mail",
        b"f-r_e-e",
        b"ab-c-d-e",
        b"x86_64",
    ],
)
def test_other_words_with_digits_and_signs_stay(word):
    assert without_disguise(word) == word


def test_only_fields_of_text_change():
    words = b"\0v1agra f-r-e-e\0v1agra f-r-e-e\0".replace(b" ", b"\0")
    start = np.array([1, 16, 31])

    found = remove_disguises(words, start, np.array([False, True]))

    assert found.replace(b"\0\0\0\0", b"\0") == b"\0v1agra\0f-r-e-e\0viagra\0free\0"
    assert len(found) == len(words)


def test_a_long_word_of_single_letters_is_joined():
    words = b"\0" + b"a-" * 400_000 + b"a\0"  # quadratic time would be minutes

    found = remove_disguises(words, np.array([1, len(words)]), np.array([True]))

    assert found.rstrip(b"\0") == b"\0" + b"a" * 400_001
