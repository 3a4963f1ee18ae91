import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.tokens.definition import MAX_BYTES, MAX_RUN, folded_line, reference_runs
from nbspam.tokens.normalize import normalize


def test_runs_of_a_word():
    assert list(reference_runs("aé中".encode())) == [
        part.encode() for part in ("a", "é", "中", "aé", "é中", "aé中")
    ]


def test_text_is_folded_to_one_line_of_lower_case_of_bounded_length():
    assert folded_line(b" Win\t CASH\r\n now\0!") == b"win cash now !"
    assert len(folded_line(b"x" * 2 * MAX_BYTES)) == MAX_BYTES


@pytest.mark.parametrize(
    ("written", "cut"),
    [
        ("房间很好", "房间很好"),
        ("房间很好,好!", "房间很好 , 好 !"),
        ("好 好", "好 好"),
        ("好好好", "好好好"),
        ("ห้องดี ok", "ห้องดี ok"),
        ("很好" * MAX_BYTES, "很好" * (MAX_BYTES // 6) + "很"),
    ],
)
def test_scripts_without_spaces_are_cut_as_they_are_written(written, cut):
    assert folded_line(normalize(written.encode())[0]).decode("utf-8", "ignore") == cut


@given(st.text(max_size=40))
def test_a_text_has_a_run_of_every_length_at_every_character(text):
    runs = list(reference_runs(text.encode("utf-8", "replace")))

    assert len(runs) == sum(max(len(text) - n + 1, 0) for n in range(1, MAX_RUN + 1))
    assert "".join(run.decode() for run in runs[: len(text)]) == text.encode(
        "utf-8", "replace"
    ).decode("utf-8")
