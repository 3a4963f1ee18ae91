"""Visibility: which words of a document a mail program shows, and which it hides."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.mail.html import Html, read_html
from support import examples


def read(html: str) -> Html:
    return read_html([html.encode()])[0]


def shown_and_hidden(html: str) -> tuple[str, str]:
    found = read(html)
    return " ".join(found.visible.decode().split()), " ".join(found.hidden.decode().split())


# An element by its tag or by what stands in its tag; "no" inside of it cannot be read.
HIDING = [
    # Taken away.
    "style='display:none'",
    'STYLE="color:red; DISPLAY : None ;"',
    "style=display:none!important",
    r"style='d\69splay:none'",
    "style='dis/* */play:none'",
    "style='dis&#112;lay:none'",
    "class=x style='display:block;display:none;display:nonsense'",
    "style='visibility:hidden'",
    "style='visibility:collapse'",
    "style='mso-hide:all'",
    "style='content-visibility:hidden'",
    "hidden",
    "hidden=hidden",
    # Small.
    "style='font-size:0'",
    "style='font-size:1px'",
    "style='font-size:5.9px'",
    "style='font-size:4pt'",
    "style='font-size:.1em'",
    "style='font-size:5%'",
    "style='font: 1px/1 Arial'",
    "style='font:italic bold 0/0 a'",
    "style='font-size:1e-999px'",
    # Like the ground.
    "style='color:white'",
    "style='color:#fff'",
    "style='color:#FEFEFE'",
    "style='color:#ffffffff'",
    "style='color:#0000'",
    "style='color:transparent'",
    "style='color:rgb(250,251,252)'",
    "style='color:rgb(98% 98% 98%)'",
    "style='color:rgba(0,0,0,.05)'",
    "style='color:rgb(0 0 0 / 5%)'",
    "style='color:hsl(120, 100%, 99%)'",
    "style='color:#eee'",
    "style='color:#000;background:#000'",
    "style='background-color:#123;color:#112233'",
    "style='-webkit-text-fill-color:white'",
    "style='opacity:0'",
    "style='opacity:.05'",
    "style='opacity:1%'",
    "style='filter:alpha(opacity=0)'",
    "style='filter:opacity(0%)'",
    # Clipped.
    "style='height:0;overflow:hidden'",
    "style='max-height:1px;overflow-y:hidden'",
    "style='width:0px;overflow:hidden'",
    "style='max-width:0;overflow:auto'",
    "style='position:absolute;clip:rect(0,0,0,0)'",
    "style='position:absolute;clip:rect(1px 1px 1px 1px)'",
    "style='clip-path:inset(50%)'",
    "style='clip-path:circle(0)'",
    "style='clip-path:polygon(0 0,0 0)'",
    "style='transform:scale(0)'",
    "style='transform:rotate(3deg) scaleY(.01)'",
    "style='transform:matrix(0,0,0,0,1,1)'",
    # Out of sight.
    "style='position:absolute;left:-9999px'",
    "style='position:fixed;top:-100em'",
    "style='position:absolute;left:5000px'",
    "style='position:relative;left:-100%'",
    "style='margin-left:-9999px'",
    "style='margin:-2000px 0 0'",
    "style='text-indent:-999em'",
    "style='text-indent:100%;overflow:hidden'",
    "style='transform:translateX(-5000px)'",
    "style='letter-spacing:-1em'",
]
SHOWING = [
    "style='display:block'",
    "style='display:none;display:block'",
    "style='display:inline!important;display:none'",
    "style='display:none;display:inherit'",
    "style='visibility:visible'",
    "style='font-size:8px'",
    "style='font-size:6pt'",
    "style='font-size:.7em'",
    "style='font-size:-1px'",
    "style='font-size:1e999px'",
    "style='color:yellow'",  # of little contrast, but of another colour
    "style='color:#999'",
    "style='color:#nonsense'",
    "style='color:#fff;background:#000'",
    "style='color:white;background:url(sky.jpg)'",
    "style='color:white;background-image:linear-gradient(red,blue)'",
    "style='color:oklch(1 0 0)'",
    "style='color:rgba(0,0,0,.9)'",
    "style='opacity:.6'",
    "style='filter:alpha(opacity=80)'",
    "style='height:0'",
    "style='max-height:100px;overflow:hidden'",
    "style='clip:rect(0,0,0,0)'",  # of a box that is not taken out of its place
    "style='clip-path:inset(10%)'",
    "style='transform:scale(.8)'",
    "style='left:-9999px'",
    "style='position:absolute;top:3000px'",
    "style='margin:-10px'",
    "style='letter-spacing:-1px'",
    "style='content:\"display:none\"'",
    "title='style=display:none'",
    "style='width:expression(display:none)'",
    "hidden=until-found",
    "id=hidden",
    "color=white",  # an attribute of <font> only
]


@pytest.mark.parametrize("attributes", HIDING)
def test_a_block_can_be_hidden(attributes):
    assert shown_and_hidden(f"a <div {attributes}>no</div> b") == ("a b", "no")


@pytest.mark.parametrize("attributes", SHOWING)
def test_a_block_is_shown(attributes):
    assert shown_and_hidden(f"a <div {attributes}>yes</div> b") == ("a yes b", "")


@pytest.mark.parametrize(
    ("html", "shown", "hidden"),
    [
        # Attributes.
        ("a <font color=white>no</font> b", "a b", "no"),
        ("a <font color=FFFFFE>no</font> b", "a b", "no"),
        ("a <font color='#fdfdfd'>no</font> b", "a b", "no"),
        ("a <font\ncolor = white>no</font> b", "a b", "no"),
        ("a <font/color=white>no</font> b", "a b", "no"),
        ("a <font size=1 color=white>no</font> b", "a b", "no"),
        ("a <font size=1>yes</font> b", "a yes b", ""),
        ("a <font size=-7>yes</font> b", "a yes b", ""),
        ("<body bgcolor=black>no <font color=white>yes</font>", "yes", "no"),
        ("<body bgcolor=black text=white>yes <font color=#010101>no</font>", "yes", "no"),
        ("<body background=sky.gif><font color=white>yes</font>", "yes", ""),
        ("<table><tr><td bgcolor=navy><font color=white>yes</table>", "yes", ""),
        ("<table bgcolor=navy><tr><td><font color=white>yes</table>", "yes", ""),
        ("<table><tr bgcolor=navy><td><font color=white>yes</table>", "yes", ""),
        ("<table><td bgcolor=navy><font color=#000080>no</table>", "", "no"),
        ("<font color=white><a href=x>yes</a> no</font>", "yes", "no"),
        ("<body link=white><a href=x>no</a> yes", "yes", "no"),
        # Words that are split.
        ("vi<span style=display:none>no</span>agra", "viagra", "no"),
        ("vi<div style=display:none>no</div>agra", "viagra", "no"),
        ("vi<font color=white>no</font>agra", "viagra", "no"),
        ("vi<i style='font-size:0'>no</i>agra", "viagra", "no"),
        ("one<div style=font-size:0>no</div>two", "one two", "no"),
        # Inheritance.
        ("<div style=display:none>no<div style=display:block>no</div></div>b", "b", "no no"),
        ("<div style=visibility:hidden>no <b style=visibility:visible>b</b></div>", "b", "no"),
        ("<div style=color:white>no <b style=color:black>b</b></div>", "b", "no"),
        ("<div style=color:white>no <b style=background:red>b</b></div>", "b", "no"),
        ("<div style=font-size:0>no <b style=font-size:12px>b</b></div>", "b", "no"),
        ("<div style=font-size:0>no <b style=font-size:2em>no</b></div>", "", "no no"),
        ("<small><small><small><small><small><small>no", "", "no"),
        ("<div style=opacity:.2><b style=opacity:.2>no", "", "no"),
        ("<div style=color:white>no<div style=color:inherit>no</div></div>", "", "no no"),
        # Inline text has no box.
        ("<span style='height:0;overflow:hidden'>a</span>", "a", ""),
        ("<span style='display:block;height:0;overflow:hidden'>no</span>", "", "no"),
        ("<table><td style='height:0;overflow:hidden'>a</table>", "a", ""),
        ("<span style='text-indent:-999em'>a</span>", "a", ""),
        # Elements that are not shown.
        ("<template>no</template>a", "a", "no"),
        ("<noframes>no</noframes>a", "a", "no"),
        ("<iframe src=x>no</iframe>a", "a", "no"),
        ("<datalist>no<option>no</datalist>a", "a", "no no"),
        ("<dialog>no</dialog><dialog open>a</dialog>", "a", "no"),
        ("<noscript>a</noscript><object>b</object>", "ab", ""),
        ("<input type=hidden value=no>a", "a", ""),
        ("display:none is what I write", "display:none is what I write", ""),
    ],
)
def test_what_is_shown_and_what_is_hidden(html, shown, hidden):
    assert shown_and_hidden(html) == (shown, hidden)


@pytest.mark.parametrize(
    ("html", "shown", "hidden"),
    [
        ("<div style=display:none>a<div>b</div>c</div>d", "d", "a b c"),
        ("<div style=display:none>a<p>b</div>d", "d", "a b"),
        ("<div style=display:none>a<DIV>b</DIV>c</DIV>d", "d", "a b c"),
        ("<div style=display:none>a", "", "a"),
        ("<img style=display:none>a", "a", ""),
        ("<input style='display:none' />a", "a", ""),
        ("</div style=display:none>a", "a", ""),
        ("<b style=display:none>a</b>b<i style=display:none>c</i>d", "bd", "a c"),
        ("<b style=display:none>a<b style=display:none>b</b>c</b>d", "d", "a b c"),
        # What is not closed ends with the element around it.
        ("<div><span style=display:none>no</div>a", "a", "no"),
        ("<p style=display:none>no<p>a", "a", "no"),
        ("<p style=display:none>no<div>a</div>", "a", "no"),
        ("<ul><li style=display:none>no<li>a</ul>", "a", "no"),
        ("<dl><dt style=display:none>no<dd>a</dl>", "a", "no"),
        ("<table><td style=display:none>no<td>a</table>", "a", "no"),
        ("<table><tr style=display:none><td>no<tr><td>a</table>", "a", "no"),
        ("<table><td><font color=white>no<td>a</table>b", "a b", "no"),
        ("<table><td><table style=display:none><td>no</table>a</table>", "a", "no"),
        ("<table style=display:none><td>no</table>a", "a", "no"),
        ("<body style=color:white>no</body>no", "", "no no"),
        # Formatting goes on in the next blocks, other inline elements do not.
        ("<p><font color=white>no<p>no</font>a", "a", "no no"),
        ("<div><font color=white>no</div>no</font>a", "a", "no no"),
        ("<div><span style=color:white>no</div>a", "a", "no"),
        ("<font color=white><div>no</font>a</div>b", "a b", "no"),
        ("<b><font color=white>no</b>no</font>a", "a", "nono"),
        ("<font color=white>no<font color=black>a</font>no</font>b", "ab", "no no"),
        # An end tag without a start closes nothing.
        ("<div style=display:none>no</span></p></td>no</div>a", "a", "no no"),
        ("<div style=display:none><table><td>no</div>no</table>no</div>a", "a", "no no no"),
        ("<span style=display:none>no<p>no</span>no</p></span>a", "a", "no nono"),
    ],
)
def test_elements_end_where_a_mail_program_ends_them(html, shown, hidden):
    assert shown_and_hidden(html) == (shown, hidden)


@pytest.mark.parametrize(
    "unit",
    [
        "<div style=color:white>",
        "<font color=white>",
        "<font color=white><div></font>",
        "<b style=opacity:0><p></b>",
        "<table><td><span style=color:white></div>",
        "<p style=font-size:1e999em>",
        "</i></div></span>",
    ],
)
def test_time_is_linear_in_the_depth_of_elements(unit):
    html = (unit + "no ") * 20_000
    start = time.process_time()
    read(html)
    assert time.process_time() - start < 20


@pytest.mark.parametrize(
    "unit",
    [
        "<td bgcolor=#00%04x><font color=#ffff%02x>no",
        "<b style='color:#fff;x:%d%d'>no</b>",
        "<b style='left:-999px;x:%d%d'>no</b>",
        "<b style='color:rgb(255,255,255);x:%d%d' bgcolor=#fff>no</b>",
    ],
)
def test_time_is_linear_in_different_colours_and_styles(unit):
    html = "".join(unit % (i, i % 256) for i in range(10_000))
    start = time.process_time()
    read(html)
    assert time.process_time() - start < 20


def test_many_different_values_hide_text_like_few():
    html = "".join(f"<b style='opacity:0;x:{i}'>no</b> " for i in range(100))
    html += "".join(f"<b style='color:#fff;x:{i}'>no</b> " for i in range(100))
    assert shown_and_hidden(html + "a") == ("a", " ".join(200 * ["no"]))


PARTS = st.sampled_from(
    [
        "<div style=display:none>", "<font color=white>", "<p>", "</p>", "<table>", "<td>",
        "</td>", "</table>", "<li>", "</li>", "</font>", "</div>", "<span style='color:#fff'>",
        "</span>", "<a href=x>", "</a>", "<tr bgcolor=black>", "<b>", "</b>",
        "<body text=white>", "</body>", "<td style='font-size:0", "'>",
        "<style>p {color: white}</style>", "<td bgcolor=black>", "<font color=black>", "<a>",
        "<span style='background:#000'>", "<i style='color:red'>", "<body bgcolor=blue>",
        "word ", "<option>",
    ]
)  # fmt: skip


@examples(300)
@given(st.lists(PARTS, max_size=40).map("".join))
def test_every_word_is_either_shown_or_hidden(html):
    found = read(html)
    words = html.count("word ")
    assert found.visible.count(b"word") + found.hidden.count(b"word") <= words
    if "'" not in html:
        assert found.visible.count(b"word") + found.hidden.count(b"word") == words


@examples(300)
@given(st.lists(PARTS, max_size=40).map("".join))
def test_without_styles_nothing_is_hidden(html):
    for styling in ("style", "color", "text", "option"):
        html = html.replace(styling, "x")
    assert read(html).hidden == b""


@examples(500)
@given(st.lists(PARTS, max_size=30).map("".join))
def test_following_only_what_could_hide_changes_nothing(html):
    html = html.replace("<option>", "")  # ends with the next tag unless elements are followed
    quick = shown_and_hidden(html)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nbspam.mail.html.can_hide", lambda *_: True)
        assert shown_and_hidden(html) == quick
