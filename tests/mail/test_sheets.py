"""Style sheets: which rules apply to which elements, and which of them win."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.mail.html import read_html
from nbspam.mail.styles.sheets import is_for_screen
from support import examples


def shown(sheet: str, html: str) -> str:
    found = read_html([f"<style>{sheet}</style>{html}".encode()])[0]
    return " ".join(found.visible.decode().split())


@pytest.mark.parametrize(
    ("selector", "html"),
    [
        ("p", "<p>no</p>a"),
        ("P", "<p>no</p>a"),
        ("*", "<p>no</p>"),
        (".x", "<p class=x>no</p>a"),
        (".x", "<p class='y x z'>no</p>a"),
        (".X", "<p class=x>no</p>a"),
        ("#x", "<p id=x>no</p>a"),
        ("p.x", "<p class=x>no</p><b class=x>a</b>"),
        ("p.x.y", "<p class='y x'>no</p><p class=y>a"),
        ("p#x.y", "<p class=y id=x>no</p>a"),
        ("h1,p , b", "<p>no</p>a"),
        ("div p", "<div><b><p>no</p></b></div><p>a"),
        ("div > p", "<div><p>no</p></div><p>a"),
        (".x .y p", "<div class=x><i class=y><p>no</p></i></div><i class=y><p>a"),
        ("a:link", "<a href=x>no</a>a"),
        (r".\78", "<p class=x>no</p>a"),
        ("/* p */ p/**/", "<p>no</p>a"),
        ("<!-- p", "<p>no</p>a"),
        ("@charset 'x'; p", "<p>no</p>a"),
        ("i{} p", "<p>no</p>a"),
        ("@media screen{p{display:none}} i", "<p>no</p>a"),
        ("@media print{i{color:red}} p", "<p>no</p>a"),
        ("@font-face{x:y} p", "<p>no</p>a"),
    ],
)
def test_a_rule_hides_the_elements_that_it_selects(selector, html):
    assert shown(f"{selector} {{display:none}}", html) in ("a", "")


@pytest.mark.parametrize(
    "rule",
    [
        "q {display:none}",
        ".y {display:none}",
        "#y {display:none}",
        "p.y {display:none}",
        "b.x {display:none}",
        "p p {display:none}",
        ".never .x {display:none}",
        "p:hover {display:none}",
        "p::first-line {display:none}",
        "p[title] {display:none}",  # selectors of attributes and siblings are not used
        "i + p {display:none}",
        "@media print {p {display:none}}",
        "@media only screen and (max-width: 480px) {p {display:none}}",
        "@media (min-width: 3000px) {p {display:none}}",
        "@media (prefers-color-scheme: dark) {p {display:none}}",
        "@font-face {p {display:none}}",
        "p {color:red} /* p {display:none}",
        "p {display:none} p {display:block}",
        "p {display:block !important} p {display:none}",
        ".x {display:block} p {display:none}",
        "#z {display:block} .x {display:none}",
        "p.x {display:block} .x {display:none}",
    ],
)
def test_a_rule_for_something_else_hides_nothing(rule):
    assert shown(rule, "<p class=x id=z>a</p>") == "a"


@pytest.mark.parametrize(
    ("rule", "html", "text"),
    [
        ("p {display:none}", "<p style=display:block>a", "a"),
        ("p {display:none !important}", "<p style=display:block>no", ""),
        ("p {display:none !important}", "<p style='display:block !important'>a", "a"),
        ("font {color:black}", "<font color=white>a", "a"),
        ("body {background:black} font {color:white}", "no<body><font>a", "no a"),
        ("td {background:navy}", "<table><td><font color=white>a</table>", "a"),
        (".x {color:#fff} .y {background:#fff}", "<p class=y>a<b class=x>no</b>", "a"),
        ("@media (max-width:480px) {.x {display:block}}", "<p class=x style=display:none>no", ""),
        ("@media (min-width:1px) and (max-width:9999px) {p {display:none}}", "<p>no", ""),
    ],
)
def test_the_stronger_declaration_wins(rule, html, text):
    assert shown(rule, html) == text


def test_sheets_in_several_places_are_one():
    html = b"<style>p {color:white}</style><p>no</p><style>p {color:red}</style><p>a"
    assert read_html([html])[0].visible.split() == [b"no", b"a"]


def test_a_sheet_for_print_does_not_count():
    assert read_html([b"<style media=print>p {display:none}</style><p>a"])[0].hidden == b""


@pytest.mark.parametrize(
    ("media", "is_true"),
    [
        ("", True),
        ("screen", True),
        ("print, screen", True),
        ("only screen", True),
        ("not print", True),
        ("not screen", False),
        ("print", False),
        ("screen and (min-width:600px)", True),
        ("screen and (max-device-width:600px)", False),
        ("(orientation:landscape)", False),
    ],
)
def test_media_are_those_of_a_wide_screen(media, is_true):
    assert is_for_screen(media.encode()) is is_true


@pytest.mark.parametrize(
    "html",
    [
        "<style>" + "".join(f".c{i}{{color:white}}" for i in range(10_000)) + "</style>"
        + "".join(f"<b class=c{i}>no</b>" for i in range(10_000)),
        "<style>" + "".join(f".x.c{i}{{color:white}}" for i in range(10_000)) + "</style>"
        + "".join(f"<b class='x c{i}'>no</b>" for i in range(10_000)),
        "<style>" + "div .x b{color:white}" * 10_000 + "</style>" + "<b class=x>no" * 10_000,
        "<style>" + "a," * 50_000 + "b{color:white}</style><b>no",
        "<style>p{color:#fff}</style>" + "<p class='" + "c " * 100_000 + "'>no",
        "<style>" + "{" * 100_000 + "}" * 100_000,
        "<style>" + "@media screen{" * 50_000 + "b{color:#fff}</style><b>no",
        "<b style='" + "color:white;" * 50_000 + "'>no",
        "<b style='" + "((\"" * 50_000 + "'>no",
        "<b style='font-size:" + "9" * 100_000 + "px'>no",
        "<b style='clip-path:polygon(" + "0 " * 50_000 + ")'>no",
        "<b style='transform:" + "a" * 100_000 + "'>no",
        "<style>no" * 20_000,
        "<style>" + "".join(f".c{i}.x{j}{{top:0}}" for i in range(10) for j in range(100))
        + ".c3{display:none}</style>"
        + "".join(f"<p id=i{k} class='c0 c1 c2 c3 c4 c5 c6 c7 c8 c9'>no</p>" for k in range(9999)),
    ],
    ids=range(14),
)  # fmt: skip
def test_time_is_linear_in_rules_and_classes(html):
    start = time.process_time()
    read_html([html.encode()])
    assert time.process_time() - start < 10


CSS = st.sampled_from(
    [
        "p", ".x", "#y", "*", " ", ",", "{", "}", ";", ":", "(", ")", "'", '"', "/*", "*/",
        "\\", "@media ", "print", "and", "(min-width:", "color", "#fff", "display", "none",
        "!important", "font-size", "1e999", "-1e-999", "px", "%", "rgb(", "hsl(", "1,",
        "opacity", "clip", "rect(", "transform", "scale(", "matrix(", "left", "position",
        "absolute", "font", "/", "background", "\\110000", "\\64 ", "é", "nan", "inf", "+", "-",
        ".", "9" * 400, "margin", "zoom",
    ]
)  # fmt: skip


@examples(500)
@given(st.lists(CSS, max_size=25).map("".join), st.lists(CSS, max_size=12).map("".join))
def test_any_css_is_read(sheet, style):
    html = f'<style>{sheet}</style><p class=x id=y style="{style}">word</p>'
    found = read_html([html.encode()])[0]
    assert (found.visible + found.hidden).count(b"word") <= 1


@examples(300)
@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=30))
def test_any_bytes_are_read(sheet, style, attribute):
    html = b"<style>%b</style><p style='%b' class='%b'><font color='%b'>a"
    read_html([html % (sheet, style, attribute, attribute)])
