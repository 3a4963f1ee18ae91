"""What people read as the same word is the same word."""

import numpy as np
import pytest

from nbspam.tokens.normalize import remove_disguises, without_disguise


@pytest.mark.parametrize(
    "case", ["v1agra:viagra", "m0rtg4ge:mortgage", "re5t:rest", "c-h-e-a-p:cheap", "f_r_e_e:free"]
)
def test_a_disguised_word_is_the_word(case):
    word, meant = case.encode().split(b":")
    assert without_disguise(word) == meant


@pytest.mark.parametrize(
    "word", ["mp3", "4you", "w2k", "win32api", "a-b-c", "e-mail", "f-r_e-e", "ab-c-d-e", "x86_64"]
)
def test_other_words_with_digits_and_signs_stay(word):
    assert without_disguise(word.encode()) == word.encode()


def test_only_fields_of_text_change():
    words = b"\0v1agra\0f-r-e-e\0v1agra\0f-r-e-e\0"
    found = remove_disguises(words, np.array([1, 16, 31]), np.array([False, True]))
    assert found.replace(b"\0\0\0\0", b"\0") == b"\0v1agra\0f-r-e-e\0viagra\0free\0"
    assert len(found) == len(words)


def test_a_long_word_of_single_letters_is_joined():
    words = b"\0" + b"a-" * 400_000 + b"a\0"  # quadratic time would be minutes

    found = remove_disguises(words, np.array([1, len(words)]), np.array([True]))

    assert found.rstrip(b"\0") == b"\0" + b"a" * 400_001
