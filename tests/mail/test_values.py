"""Colours, lengths and contrast."""

import colorsys
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.mail.styles.values import (
    BLACK,
    UNKNOWN,
    WHITE,
    Colour,
    is_near,
    laid_over,
    read_colour,
    read_legacy_colour,
    read_length,
    read_pixels,
)


@pytest.mark.parametrize(
    ("value", "colour"),
    [
        ("red", (255, 0, 0, 1)),
        ("#f00", (255, 0, 0, 1)),
        ("#f008", (255, 0, 0, 0x88 / 255)),
        ("#0102fe", (1, 2, 254, 1)),
        ("#0102fe00", (1, 2, 254, 0)),
        ("transparent", (0, 0, 0, 0)),
        ("rgb(1,2,3)", (1, 2, 3, 1)),
        ("rgb(1 2 3 / .5)", (1, 2, 3, 0.5)),
        ("rgba(1,2,3,50%)", (1, 2, 3, 0.5)),
        ("rgb(100%,0%,0%)", (255, 0, 0, 1)),
        ("rgb(300,-5,0)", (255, 0, 0, 1)),
        ("hsl(0,100%,50%)", (255, 0, 0, 1)),
        ("hsl(.5turn 100% 50%)", (0, 255, 255, 1)),
        ("hsla(240deg,100%,50%,.5)", (0, 0, 255, 0.5)),
    ],
)
def test_colours_are_read(value, colour):
    assert read_colour(value.encode()) == pytest.approx(colour)


@pytest.mark.parametrize("value", ["", "nonsense", "#ff", "#fffff", "rgb(1,2)", "rgb(", "12px"])
def test_what_is_no_colour_is_none(value):
    assert read_colour(value.encode()) is None


def test_colours_that_are_not_computed_are_unknown():
    assert read_colour(b"lab(50% 40 59.5)") == read_colour(b"var(--x)") == UNKNOWN


# The examples of the HTML Standard's rules, and the most famous one.
@pytest.mark.parametrize(
    ("value", "colour"),
    [
        ("#fff", (255, 255, 255)),
        ("ff0000", (255, 0, 0)),
        ("#ff0000", (255, 0, 0)),
        ("chucknorris", (0xC0, 0, 0)),
        ("white", (255, 255, 255)),
        ("#ffffffff", (0xFF, 0xFF, 0xFF)),
        (" red ", (255, 0, 0)),
        ("x", (0, 0, 0)),
    ],
)
def test_any_attribute_is_a_colour(value, colour):
    found = read_legacy_colour(value.encode())
    assert found is not None
    assert found[:3] == colour


def test_an_empty_attribute_is_no_colour():
    assert read_legacy_colour(b" ") is None


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_hsl_is_that_of_the_standard_library(hue, lightness, saturation):
    found = read_colour(
        f"hsl({360 * hue:.9f},{100 * saturation:.9f}%,{100 * lightness:.9f}%)".encode()
    )
    assert found is not None
    expected = colorsys.hls_to_rgb(hue, lightness, saturation)
    assert [c / 255 for c in found[:3]] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("value", "length"),
    [
        ("12px", (12, False)),
        ("12", (12, False)),
        ("12pt", (16, False)),
        (".5em", (0.5, True)),
        ("80%", (0.8, True)),
        ("2rem", (32, False)),
        ("1in", (96, False)),
        ("1e999px", (1e6, False)),
        ("-1e999em", (-1e6, True)),
    ],
)
def test_lengths_are_read(value, length):
    assert read_length(value.encode()) == pytest.approx(length)


@pytest.mark.parametrize("value", ["", "px", "12furlongs", "auto", "nan", "inf"])
def test_what_is_no_length_is_none(value):
    assert read_length(value.encode()) is None


def test_percentages_of_a_place_are_of_a_window_of_1000_pixels():
    assert (read_pixels(b"-100%"), read_pixels(b"2em")) == (-1000, 32)


@pytest.mark.parametrize(
    ("colour", "ground", "is_hidden"),
    [
        ("#ffffff", "#ffffff", True),
        ("#fefefe", "#ffffff", True),
        ("#dddddd", "#ffffff", True),  # contrast 1.36
        ("#cccccc", "#ffffff", False),  # contrast 1.61
        ("#ffffcc", "#ffffff", True),
        ("#ffff00", "#ffffff", False),  # contrast 1.07, but yellow
        ("#00ff00", "#ffffff", False),
        ("#000000", "#000000", True),
        ("#111111", "#000000", True),
        ("#333333", "#000000", False),
        ("#0000ff", "#000000", False),
        ("#ff0000", "#ff0505", True),
    ],
)
def test_colours_near_the_ground_hide_text(colour, ground, is_hidden):
    text, behind = read_legacy_colour(colour.encode()), read_legacy_colour(ground.encode())
    assert text is not None
    assert behind is not None
    assert is_near(text, behind) is is_hidden


COLOURS = st.tuples(*[st.integers(0, 255)] * 3).map(lambda c: Colour(*c))


def contrast(a: Colour, b: Colour) -> Fraction:
    """WCAG 2.2, written anew: linear channels, luminance, and ratio."""

    def luminance(colour: Colour) -> Fraction:
        linear = []
        for channel in colour[:3]:
            c = channel / 255
            linear.append(Fraction(c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4))
        weights = Fraction(2126, 10_000), Fraction(7152, 10_000), Fraction(722, 10_000)
        return sum((w * part for w, part in zip(weights, linear, strict=True)), Fraction(0))

    first, second = luminance(a), luminance(b)
    return (max(first, second) + Fraction(1, 20)) / (min(first, second) + Fraction(1, 20))


@given(COLOURS, COLOURS)
def test_only_colours_of_little_contrast_are_near(a, b):
    assert is_near(a, b) == is_near(b, a)
    if is_near(a, b):
        assert contrast(a, b) < Fraction(14, 10)
    elif max(abs(x - y) for x, y in zip(a, b, strict=True)) <= 110:
        assert contrast(a, b) > Fraction(139, 100)


@given(COLOURS, COLOURS, st.floats(0, 1))
def test_a_colour_laid_over_a_ground_lies_between_them(colour, ground, share):
    seen = laid_over(colour, ground, share)
    for s, c, g in zip(seen[:3], colour[:3], ground[:3], strict=True):
        assert min(c, g) - 1e-6 <= s <= max(c, g) + 1e-6


def test_nothing_is_near_what_is_not_known():
    assert not is_near(WHITE, UNKNOWN)
    assert laid_over(BLACK, UNKNOWN) == UNKNOWN
