"""What is read of long messages: every part's share, samples of texts, and what takes no room."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.mail.parts import _shares, ends, sampled, shared, spread_indices
from support import examples

WORDS = b" ".join(b"word%06d" % i for i in range(100_000))  # 1.1 MB


def test_the_end_is_kept_from_the_start_of_a_line():
    data = b"a" * 70 + b"\n" + b"b" * 40 + b"\n" + b"c" * 9
    assert ends(data, 80) == b"a" * 60 + b"c" * 9
    assert ends(b"a" * 90 + b"b" * 10, 80) == b"a" * 70 + b"b" * 10  # one line


@examples(200)
@given(st.lists(st.integers(0, 50), max_size=20), st.integers(0, 300))
def test_small_sizes_are_granted_and_the_others_share_the_rest(sizes, budget):
    granted = _shares(sizes, budget)
    both = list(zip(granted, sizes, strict=True))
    cut = [own for own, size in both if own < size]

    assert sum(granted) <= budget
    assert all(own <= size for own, size in both)
    if cut:  # no part gets more than those that are cut, but for rounding; nothing is left over
        assert max(cut) - min(cut) <= 1
        assert max(granted) <= max(cut) + 1
        assert sum(granted) == budget


def test_shares_do_not_depend_on_the_order_of_the_parts():
    texts = [b"small one", WORDS, b"small two", WORDS[::-1]]
    in_order = shared(texts, [False] * 4, 10_000)
    assert shared(texts[::-1], [False] * 4, 10_000) == in_order[::-1]
    assert in_order[::2] == texts[::2]


@examples(100)
@given(st.lists(st.binary(max_size=9), max_size=40), st.integers(1, 20))
def test_the_first_and_the_last_pieces_are_chosen_and_never_too_many(pieces, most):
    found = spread_indices(pieces, most)
    assert found == sorted(set(found))
    assert len(found) <= most
    assert not pieces or found[0] == 0
    assert most < 4 or not pieces or found[-1] == len(pieces) - 1


def test_a_large_piece_is_chosen_wherever_it_stands():
    for place in range(200):
        pieces = [b"x"] * 200
        pieces[place] = b"spam " * 100
        assert place in spread_indices(pieces, 20)


@pytest.mark.parametrize("place", [0, 77_777, 99_999])
def test_no_stretch_of_a_text_is_left_out(place):
    words = WORDS.split()
    words[place : place + 5_000] = [b"spam"] * len(words[place : place + 5_000])
    assert b"spam" in sampled(b" ".join(words), 100_000)


def test_a_sample_has_whole_words_of_the_beginning_the_middle_and_the_end():
    sample = sampled(WORDS, 100_000)
    found = sample.split()
    numbers = [int(word[4:]) for word in found]

    assert 95_000 < len(sample) <= 100_200
    assert set(found) <= set(WORDS.split())
    assert numbers == sorted(numbers)
    assert numbers[:2000] == list(range(2000))
    assert numbers[-2000:] == list(range(98_000, 100_000))
    assert {number // 10_000 for number in numbers} == set(range(10))
    in_lines = sampled(WORDS.replace(b" ", b"\n"), 100_000).split()
    assert set(in_lines) <= set(WORDS.split())
    # Its places depend on the text.
    assert len(set(sampled(WORDS + b".", 100_000).split()) - set(found)) > 1000
    one, other = ([b"%03d" % (n + k) for n in range(200)] for k in (0, 1))
    assert spread_indices(one, 20) != spread_indices(other, 20)


@examples(60)
@given(st.text(max_size=300), st.integers(0, 100), st.booleans())
def test_samples_of_any_text_are_utf8(text, most, is_html):
    sampled((text * 3).encode(), most, is_html).decode()


SPAM = b" ".join(b"spam%04d" % i for i in range(5000))


@pytest.mark.parametrize(
    ("filler", "is_html"),
    [
        (b" \n\t" * 300_000, False),
        (b"<!-- " + WORDS + b" -->", True),
        (b"<script>" + WORDS + b"</script>", True),
        (b"<p>&nbsp;</p>&nbsp;" + b"&nbsp; " * 100_000, True),
        (b'<img src="data:image/png;base64,' + b"iVBORw0KGgo" * 90_000 + b'">', True),
    ],
)
def test_what_takes_no_room_is_dropped_before_a_text_is_sampled(filler, is_html):
    assert SPAM in shared([filler + SPAM + filler], [is_html], 100_000)[0]


def test_a_long_style_sheet_is_shortened_but_stays():
    sheet = b"<style>p{display:none}" + b"a{color:red}\n" * 20_000 + b"</style>"
    text = shared([sheet + SPAM], [True], 120_000)[0]
    assert text.startswith(b"<style>p{display:none}")
    assert SPAM in text
