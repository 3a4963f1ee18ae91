import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nbspam.tokens.definition import MAX_BYTES, MAX_RUN, folded_line, reference_runs
from nbspam.tokens.normalize import normalize


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
@example("aé中")
def test_a_text_has_a_run_of_every_length_at_every_character(text):
    text = text.encode("utf-8", "replace").decode()
    runs = [text[i : i + n] for n in range(1, MAX_RUN + 1) for i in range(len(text) - n + 1)]
    assert [run.decode() for run in reference_runs(text.encode())] == runs
