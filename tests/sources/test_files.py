"""JSON files are read, or refused with one line."""

import pytest

from nbspam.errors import InputError
from nbspam.sources.files import read_json


def test_values_come_back(tmp_path):
    (tmp_path / "a.json").write_text('{"a": [1, 2.5, null]}')

    assert read_json(str(tmp_path / "a.json")) == {"a": [1, 2.5, None]}


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "\x00"])
def test_what_is_not_json_is_refused(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputError, match="not JSON"):
        read_json(str(tmp_path / "a.json"))


def test_too_large_a_file_is_refused(tmp_path):
    (tmp_path / "a.json").write_text("12345")
    assert read_json(str(tmp_path / "a.json"), most=5) == 12345
    with pytest.raises(InputError, match="more than 3 bytes"):
        read_json(str(tmp_path / "a.json"), most=3)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none.json: No such file"):
        read_json(str(tmp_path / "none.json"))
