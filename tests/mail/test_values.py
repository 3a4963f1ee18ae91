"""Colours, lengths and contrast."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.mail import css


@pytest.mark.parametrize(
    ("value", "colour"),
    [
        ("#f008", (255, 0, 0, 0x88 / 255)),
        ("#0102fe00", (1, 2, 254, 0)),
        ("transparent", (0, 0, 0, 0)),
        ("rgb(1 2 3 / .5)", (1, 2, 3, 0.5)),
        ("rgba(1,2,3,50%)", (1, 2, 3, 0.5)),
        ("rgb(300,-5,0)", (255, 0, 0, 1)),
        ("hsl(.5turn 100% 50%)", (0, 255, 255, 1)),
        ("hsl(0 100% 50%)", (255, 0, 0, 1)),
        ("hsla(240deg,100%,50%,.5)", (0, 0, 255, 0.5)),
        *((value, None) for value in ("", "nonsense", "#fffff", "rgb(1,2)", "rgb(", "12px")),
    ],
)
def test_colours_are_read(value, colour):
    assert css.read_colour(value.encode()) == (colour and pytest.approx(colour))


@pytest.mark.parametrize(
    ("value", "colour"),
    [
        ("ff0000", (255, 0, 0)),
        ("chucknorris", (192, 0, 0)),
        (" red ", (255, 0, 0)),
        ("x", (0, 0, 0)),
    ],
)
def test_any_attribute_is_a_colour(value, colour):
    assert css.read_legacy_colour(value.encode())[:3] == colour
    assert css.read_legacy_colour(b" ") is None


@pytest.mark.parametrize(
    ("value", "length"),
    [
        ("12", (12, False)),
        ("12pt", (16, False)),
        ("80%", (0.8, True)),
        ("2rem", (32, False)),
        ("-1e999em", (-1e6, True)),
        *((value, None) for value in ("", "px", "12furlongs", "auto", "nan", "inf")),
    ],
)
def test_lengths_are_read(value, length):
    assert css.read_length(value.encode()) == (length and pytest.approx(length))


@pytest.mark.parametrize(
    ("colour", "ground", "is_hidden"),
    [
        ("#fefefe", "#ffffff", True),
        ("#dddddd", "#ffffff", True),  # contrast 1.36
        ("#cccccc", "#ffffff", False),  # contrast 1.61
        ("#ffffcc", "#ffffff", True),
        ("#ffff00", "#ffffff", False),  # contrast 1.07, but yellow
        ("#111111", "#000000", True),
        ("#ff0000", "#ff0505", True),
    ],
)
def test_colours_near_the_ground_hide_text(colour, ground, is_hidden):
    text, behind = css.read_legacy_colour(colour.encode()), css.read_legacy_colour(ground.encode())
    assert text is not None
    assert behind is not None
    assert css.is_near(text, behind) is is_hidden


COLOURS = st.tuples(*[st.integers(0, 255)] * 3).map(lambda c: css.Colour(*c))


def contrast(*colours: css.Colour) -> Fraction:
    """WCAG 2.2, written independently: linear channels, luminance, and ratio."""
    luminance = []
    for colour in colours:
        shares = [channel / 255 for channel in colour[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]
        weighted = zip((2126, 7152, 722), map(Fraction, linear), strict=True)
        luminance.append(sum(weight * part for weight, part in weighted) / 10_000)
    return (max(luminance) + Fraction(1, 20)) / (min(luminance) + Fraction(1, 20))


@given(COLOURS, COLOURS)
def test_only_colours_of_little_contrast_are_near(a, b):
    assert css.is_near(a, b) == css.is_near(b, a)
    if css.is_near(a, b):
        assert contrast(a, b) < Fraction(14, 10)
    elif max(abs(x - y) for x, y in zip(a, b, strict=True)) <= 110:
        assert contrast(a, b) > Fraction(139, 100)


@given(COLOURS, COLOURS, st.floats(0, 1))
def test_a_colour_laid_over_a_ground_lies_between_them(colour, ground, share):
    seen = css.laid_over(colour, ground, share)
    for s, c, g in zip(seen[:3], colour[:3], ground[:3], strict=True):
        assert min(c, g) - 1e-6 <= s <= max(c, g) + 1e-6
    assert not css.is_near(css.WHITE, css.UNKNOWN)
    assert css.laid_over(css.BLACK, css.UNKNOWN) == css.UNKNOWN
