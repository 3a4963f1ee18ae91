"""Evidence of runs of characters is told by the words that they stand in, and still adds up."""

from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.classifier.reasons import by_words
from nbspam.settings import PRESETS
from nbspam.tokens.definition import MAX_BYTES, folded_line, reference_runs
from nbspam.verdicts import Evidence
from support import examples, message

TEXT = PRESETS["text"].tokens


def told(text, *evidence, **fields):
    """Return the contributions by word; evidence: tokens and their nats."""
    rows = tuple(
        Evidence(token, nats, "characters" if token.startswith("char:") else "text", (1.0, 2.0))
        for token, nats in evidence
    )
    return by_words(message(body=text, **fields), TEXT, rows)


def sums(*arguments, **fields):
    return {each.token: pytest.approx(each.contribution) for each in told(*arguments, **fields)}


def test_a_run_goes_to_its_word_and_is_divided_among_its_places():
    found = told("big prize", ("char:priz", 4.0), ("prize", 1.0), ("char:i", 3.0))
    # `i` stands in both words, half of it in each
    assert [(e.token, e.contribution, e.group) for e in found] == [
        ("prize", 6.5, "text"),
        ("big", 1.5, "characters"),
    ]
    assert [e.counts for e in found] == [(1.0, 2.0), ()]  # the model does not know `big`


def test_a_run_over_a_blank_is_divided_by_characters_and_a_blank_goes_to_both_sides():
    assert sums("win now", ("char:in n", 3.0)) == {"win": 2.0, "now": 1.0}
    assert sums("win now", ("char: ", 3.0)) == {"win": 1.5, "now": 1.5}


def test_what_has_several_words_between_blanks_is_one_stretch():
    found = sums("&lt;#&gt; ok", ("char:t;", 1.0), ("char:ok", 0.5))
    assert found == {"&lt;#&gt;": 1.0, "ok": 0.5}
    assert sums("ok.", ("char:k.", 1.0)) == {"ok": 1.0}
    assert sums("v1agra", ("char:v1", 1.0)) == {"viagra": 1.0}  # as the word is counted


def test_scripts_without_spaces_are_cut_where_the_sign_changes():
    found = sums("质量很好但是太贵", ("char:很好", 2.0), ("char:太贵", -1.0), ("很好", 0.5))
    assert found == {"很好": 2.5, "但是太贵": -1.0}


def test_words_of_the_subject_and_runs_that_are_not_found_keep_their_names():
    assert sums("x", ("char:free", 2.0), subject="free")["subject:free"] == 2.0
    assert sums("x", ("char:elsewhere", 1.0), ("char:x", 1.0)) == {"char:elsewhere": 1, "x": 1}


words = st.text("ab1 .$é好<\u0301\0", max_size=60)


@examples(200)
@given(words, words, st.randoms(use_true_random=False))
def test_the_sum_stays_and_no_run_is_left(body, subject, random):
    lines = [folded_line(text.encode()) for text in (body, subject)]
    runs = sorted(
        {run.decode("utf-8", "replace") for line in lines for run in reference_runs(line)}
    )
    evidence = [(f"char:{run}", random.uniform(-3, 3)) for run in runs]
    found = told(body, *evidence, subject=subject)

    assert fsum(e.contribution for e in found) == pytest.approx(fsum(n for _, n in evidence))
    sizes = [abs(e.contribution) for e in found]
    assert sizes == sorted(sizes, reverse=True)


def test_without_runs_evidence_stays_as_it_is_and_long_fields_are_cut():
    evidence = (Evidence("x", 1.0, "text", ()),)
    assert by_words(message(body="x"), TEXT, evidence) is evidence
    assert sums("a" * MAX_BYTES + "b", ("char:b", 1.0)) == {"char:b": 1.0}
