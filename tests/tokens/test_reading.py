import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import _twenty_newsgroups as reference

from nbspam.settings import PRESETS, STRIPPABLE
from nbspam.sources.items import Item
from nbspam.tokens.items_to_messages import chunks_of, strip, whole_message

THEIRS = {
    "headers": reference.strip_newsgroup_header,
    "footers": reference.strip_newsgroup_footer,
    "quotes": reference.strip_newsgroup_quoting,
}
LINES = st.one_of(
    st.sampled_from(["", "-", "--", "- -", "  ", " --- ", "hello", "Subject: x"]),
    st.sampled_from(["> so it is", "|x", "In article <1>", "he wrote:", "Quoted from x"]),
    st.sampled_from(["she writes in a paper", "a > b", "dear > In article"]),
)
TEXTS = st.lists(LINES, max_size=9).map("\n".join)


@pytest.mark.parametrize("part", STRIPPABLE)
@given(text=TEXTS)
def test_each_part_is_cut_off_as_scikit_learn_does(part, text):
    assert strip(text.encode(), (part,)).decode() == THEIRS[part](text)


@given(TEXTS)
def test_parts_are_cut_off_in_one_order_however_they_are_named(text):
    expected = THEIRS["quotes"](THEIRS["footers"](THEIRS["headers"](text)))
    assert strip(text.encode(), ("quotes", "headers", "footers")).decode() == expected


def test_lines_may_end_as_in_mail_and_stay_so_without_parts():
    assert strip(b"a: b\r\n\r\n> c", ()) == b"a: b\r\n\r\n> c"
    assert strip(b"a: b\r\n\r\nc\r\n> d\r\n", ("headers", "quotes")) == b"c\n"


def test_of_a_long_text_a_sample_is_read_in_latin_1_too():
    item = Item("long", None, b"a\xe9.\n" * 1_000_000)
    (field,) = whole_message(item, PRESETS["tutorial"]).fields
    assert field.text.startswith("aé  aé".encode())
    assert len(field.text) < 1 << 20


def test_the_trained_model_strips_what_it_reads_too(nbspam, folder, model):
    assert nbspam("train", folder, "--strip", "headers,quotes")[0] == 0

    tokens = nbspam("words", "-n", "50")[1]
    assert "from:" not in tokens
    assert "friday" in tokens
    headed = nbspam("classify", stdin=b"X: buy cheap pills\n\nlunch on friday?")[1]
    bare = nbspam("classify", stdin=b"\n\nlunch on friday?")[1]
    assert headed == bare


@pytest.mark.parametrize(("jobs", "sizes"), [(1, [256, 256, 88]), (2, [256, 128, 128, 88])])
def test_the_last_chunks_are_small_where_several_processes_share_them(jobs, sizes):
    items = [Item(str(number), None, b"", is_text=True) for number in range(600)]
    assert list(map(len, chunks_of(items, jobs))) == sizes
