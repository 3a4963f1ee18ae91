"""Visibility: which words of a document a mail program shows, and which it hides.

"no" stands where a reader sees nothing, "yes" or a single letter where there is something to see.
"""

import re
import time
from base64 import b64encode
from fractions import Fraction
from itertools import count

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nbspam.mail import css, lengths, sheets, visibility
from nbspam.mail import html as reader
from nbspam.mail.html import read_html
from support import examples, memory_of


def shown_and_hidden(html: str) -> tuple[str, str]:
    found = read_html([html.encode()], pages=[0])[0]
    return " ".join(found.visible.decode().split()), " ".join(found.hidden.decode().split())


def coded(text: str) -> str:
    return b64encode(text.encode()).decode()


HIDING = [
    # Taken away.
    r"d\69splay:none", "/* */display/* */:/* */none", "visibility:collapse",
    # Small.
    "font-size:5.9px", "font:900 .5px a", "font:italic bold 0/0 a", "font-size:0;font:nonsense",
    # Like the ground.
    "color:#FEFEFE", "color:rgb(98% 98% 98%)", "color:rgba(0,0,0,.05)",
    "background-color:#123;color:#112233", "background:rgba(0,0,0,.9);color:#222", "opacity:.05",
    "-webkit-filter:blur(0) opacity(5%)",
    # Clipped, or out of sight.
    "max-height:1px;overflow-y:hidden", "position:absolute;clip:rect(1px 1px 1px 1px)",
    "clip-path:inset(0 60% 0 40%)", "transform:rotate(3deg) scaleY(.01)",
    "transform:rotateY(-90deg)", "transform:rotateX(.25turn)", "transform:rotateX(100grad)",
    "transform:rotateX(1.57rad)", "transform:translateX(-100%)", "position:absolute;left:-9999px",
    "margin-left:-9999px", "margin:0 0 0 -9999px", "margin:0 -9999px 0", "margin:-9999px 0",
    "height:0;overflow:clip", "position:absolute;left:-100%", "position:absolute;left:1000px",
    "font-size:10px;zoom:.5", "transform:matrix(1,0,0,.001,0,0)", "letter-spacing:-8px",
    "text-indent:-999em", "clip-path:ellipse(50% 0)", "clip-path:circle(closest-side at 0 0)",
    "clip-path:inset(0 0 100% 0 round 9px)", "clip-path:polygon(0 0,100% 0,0 0)", "scale:1 0",
    # Each of two properties decides by itself.
    "transform:scale(0);scale:1", "scale:0;transform:none",
    "height:0;overflow-x:hidden;overflow-y:visible", "position:absolute;inset:-9999px auto auto 0",
    "margin-left:-9999px;margin:0 nonsense", "text-indent:-9999px;text-indent:auto",
    "height:0;height:none;min-height:9px;min-height:auto;overflow:hidden", "translate:0 -9999px",
    "mask:linear-gradient(transparent, rgba(0,0,0,0))", "font-size:calc(2px + 1px * 2)",
    "font-size:min(.1rem, 20px)", "display:table-column",
    "position:absolute;clip:rect(auto,0,auto,0)", "position:absolute;bottom:9999px",
    "position:absolute;inset-inline-start:-9999px", "margin-block-start:-9999px",
    "margin-left:1000px", "padding-inline-start:1000px", "translate:9999px",
    "transform:matrix(1,0,0,1,-9999,0)", "height:0;overflow:visible hidden",
    "height:0;color:white;background:black",  # which is not behind its text
    "background:currentcolor", "color:canvas",
    # What is invalid cancels nothing.
    "transform:scale(0);transform:x;translate:x;scale:x", "clip-path:inset(50%);clip-path:x",
    "mask:linear-gradient(#0000,#0000);mask:x", "height:0;overflow:hidden;overflow:x",
    "position:absolute;clip:rect(0,0,0,0);clip:x",
    "content:\"/*\";display:none",
    *(f"color:white;color:{each}"
      for each in ("rgb(0,0 0)", "rgb(0 0 0 1)", "rgb(0%,0,0)", "hsl(0,0,0)", "rgb(0 0 0,1)")),
    "color:hsl(none 0% 100%)", "color:ButtonFace", "filter:opacity(.3) opacity(.3)",
    "display:none;display:run-in;display:block x;display:contents block", "padding:0 0 0 1000px",
    "height:0;overflow:hidden;padding-bottom:-999px", "margin-inline:-9999px",
    "margin-block:-9999px", "position:absolute;inset-inline:-9999px auto",
    "position:absolute;inset-inline-end:9999px", "position:fixed;top:1000px", "display:none;all:x",
]  # fmt: skip


@pytest.mark.parametrize("attributes", [
    'STYLE="color:red; DISPLAY : None ;"', "style=display:none!important",
    "style='dis&#112;lay:none'", "class=x style='display:block;display:none;display:nonsense'",
    "hidden",
    *(f"style='{style}'" for style in HIDING),
])  # fmt: skip
def test_a_block_can_be_hidden(attributes):
    assert shown_and_hidden(f"a <div {attributes}>no</div> b") == ("a b", "no")


SHOWING = [
    "display:none;display:block", "mso-hide:all",
    "dis/* */play:none;display:no/* */ne",  # a comment ends a word
    "display:inline!important;display:none", "font-size:6pt", "font-size:0;font:inherit",
    "font-size:xx-small;font-size:calc(0px + x)", "transform:rotate(3deg);width:calc(1px)",
    "font-size:1e999px",
    "color:yellow",  # of little contrast, but of another colour
    "color:#fff;background:#000", "color:white;background:url(sky.jpg)", "color:#nonsense",
    "opacity:.19",
    "opacity:.3;filter:alpha(opacity=30)",  # of a browser of the past
    "filter:opacity(0);filter:none", "font-size:4px;zoom:2",
    "clip:rect(0,0,0,0)",  # of a box that is not taken out of its place
    "height:0;left:-9999px;margin:-10px", "position:absolute;left:-50%", "margin-left:-50%",
    "width:0;min-width:100%;overflow:hidden", "max-height:0;min-block-size:1em;overflow:hidden",
    "height:0;overflow:hidden;overflow:visible", "margin:0 0 0 -9999px 0",
    "margin-left:-9999px;margin:unset",
    "height:0;height:auto;max-height:0;max-height:none;overflow:hidden",
    "position:absolute;left:-9999px;left:auto;top:-9999px;inset:auto",
    "transform:matrix(1,0,0,1,0,0)", "font-size:6px;height:0;overflow:visible",
    "position:absolute;inset:0;clip:auto;clip-path:none;scale:none",
    "translate:-50% -50%;clip-path:circle(50%);scale:.5", "clip-path:circle(farthest-side at 0 0)",
    "clip-path:inset(0 round 50%)", "transform:rotateX(90)",
    "position:absolute;top:50%;left:50%;transform:translate(-50%,-50%)",
    "background:linear-gradient(red,blue);background-clip:text;color:transparent",
    "mask:linear-gradient(black, transparent)",
    "font-size:smaller;clip-path:polygon(0 0,100% 0,50% 99%)", "font-size:calc(1em + 2px)",
    "font-size:clamp(1rem, calc(1vw * 2), 24px)", "font-size:clamp(1em, calc(100em / 2), 2em)",
    "display:none none", "display:none!ie;font-size:0\\9", "opacity:.0 1;font-size:1px 1px",
    "background:black;color:white;background-color:currentcolor!ie",
    "position:absolute;clip:rect(0,auto,auto,0)",
    *(f"display:none;all:{each}" for each in ("initial", "unset", "revert")),
    *(f"display:none;display:{each}"
      for each in ("-webkit-box", "-webkit-flex", "math", "inline flow-root")),
    *(f"height:0;overflow:hidden;{each}"
      for each in ("overflow:initial", "height:fit-content", "padding:9px", "display:table")),
    "width:0;overflow:hidden;padding-right:99px",
    *(f"font:{each}" for each in ("1px", "1px 2px a", "caption")), "font-size:1.px",
    "display:none\xa0", "display:\vnone", "\vdisplay:none",
    *(f"color:white;color:{each}" for each in ("currentcolor", "var(--x)", "rgb(0,0,0")),
    *(f"background:#000;background:{each};color:#fff" for each in ("", "x", "red blue x")),
    "background:black;background-clip:text;color:transparent",
    "background:black text;color:transparent", "-webkit-text-fill-color:black;color:white",
    "-webkit-text-fill-color:white;-webkit-text-fill-color:initial", "display:contents;opacity:0",
]  # fmt: skip


@pytest.mark.parametrize("attributes", [
    "title='style=display:none'",
    "color=white",  # an attribute of <font> only
    "x\vstyle=display:none",  # a name: to HTML, a vertical tab is no blank
    *(f"style='{style}'" for style in SHOWING),
])  # fmt: skip
def test_a_block_is_shown(attributes):
    assert shown_and_hidden(f"a <div {attributes}>yes</div> b") == ("a yes b", "")


@pytest.mark.parametrize(("html", "shown", "hidden"), [
    # Attributes.
    ("a <font\ncolor = FFFFFE>no</font> b", "a b", "no"),
    ("<body bgcolor=black text=white>yes <font color=#010101>no</font>", "yes", "no"),
    ("<body background=sky.gif><font color=white>yes</font>", "yes", ""),
    ("<body link=white><a href=x>no</a> <a name=x>yes</a>", "yes", "no"),
    # Words that are split.
    ("vi<div style=display:none>no<br>no</div>agra", "viagra", "no no"),
    ("one<div style=font-size:0>no</div>two", "one two", "no"),
    ("one<b style=font-size:0>no<br>no</b>two", "one two", "no no"),
    ("one<b style=font-size:0> </b>two<b style=display:none> </b>three", "one twothree", ""),
    # Inheritance.
    ("<div style=visibility:hidden>no <b style=visibility:visible>b</b></div>", "b", "no"),
    ("<small><small><small><small><small><small>no", "", "no"),
    ("<div style=opacity:.2><b style=opacity:.2>no", "", "no"),
    ("<div style=color:white>no <b style=color:initial>b</b></div>", "b", "no"),
    ("<div style=font-size:0>no <b style=font:initial>b</b></div>", "b", "no"),
    ("<div style=visibility:hidden>no <b style=all:initial>b</b></div>", "b", "no"),
    ("<p style=-webkit-text-fill-color:#fff>no <b style=color:red>no</b>", "", "no no"),
    ("<p style=-webkit-text-fill-color:red>a<svg fill=#fff><text>no", "a", "no"),
    ("<p style=-webkit-text-fill-color:#fff><svg><text>a", "a", ""),
    ("<svg hidden style=-webkit-text-fill-color:#fff><text>a", "a", ""),
    # Values that together hide text, or show it.
    ("<p style=font-size:99px;zoom:.07>a<p style=font-size:9px;zoom:.5>no", "a", "no"),
    ("<p style=color:#777>a <b style=opacity:.25>no", "a", "no"),
    # Inline text has no box.
    ("<b style='float:right;height:0;overflow:hidden'>no</b>", "", "no"),
    ("<table><td style='margin-left:-999px'>a</table>", "a", ""),
    ("<b style='margin-top:-999px'>a</b><p style='margin-top:-999px'>no", "a", "no"),
    ("<body style='content-visibility:hidden'>no", "", "no"),
    ("<p style='display:inline;height:0;overflow:hidden'>a</p>", "a", ""),
    ("<p style='display:contents;margin-left:-999px'>a</p>", "a", ""),
    ("<b style='content-visibility:hidden'>a</b>", "a", ""),
    ("<p style='content-visibility:hidden'>no", "", "no"),
    ("<p style='display:contents;background:black;color:white'>no", "", "no"),
    ("<table><td style='display:block;height:0;overflow:hidden'>no</table>", "", "no"),
    ("<table style='display:block;height:0;overflow:hidden'><td>no</table>", "", "no"),
    ("<p style='display:table-cell;height:0;overflow:hidden'>a", "a", ""),
    # Elements that have colours and sizes of their own.
    ("<p style=color:white>no<mark>a</mark><mark style=color:#ff0>no", "a", "no no"),
    ("<p style=color:white;font-size:0>no<button>a</button>", "a", "no"),
    ("<p style=font-size:0>no<textarea>a</textarea>", "a", "no"),
    ("<p style=color:#fff;background:#000>a<button>b</button><textarea>c", "ab c", ""),
    # Elements that are not shown.
    ("<template style=display:block>no</template>a", "a", "no"),
    ("<xmp hidden>no</xmp><div popover>no</div>a", "a", "no no"),
    ("<div hidden=until-found>no</div><b hidden=until-found>a</b>", "a", "no"),
    ("<math><annotation>no</annotation></math>a", "a", "no"),
    ("<svg><g display=none><text>no</text></g><text opacity=0>no", "", "no no"),
    ("<datalist>no<option>no</datalist>a", "a", "no no"),
    ("<dialog>no</dialog><dialog open>a</dialog>", "a", "no"),
    ("<details>no<summary>a</summary></details>", "a", "no"),
    ("<details open>a</details>", "a", ""),
    ("<details><summary>a<details>no<summary>b</summary></details></details>", "ab", "no"),
    ("<math><mphantom>no</mphantom></math>a", "a", "no"),
    # Drawings show their texts.
    ("<svg><mask><text>no</text></mask><clipPath><text>no</svg>a", "a", "no no"),
    ("<svg><title>no</title>no<text>a</text><g>no</g></svg>b", "ab", "no no no"),
    ("<svg><text y=1>a</text><text x=2>b<tspan dy='1em'>c</tspan><tspan>d", "a b cd", ""),
    ("<svg><defs><text>no</text></defs><foreignObject>a</foreignObject></svg>", "a", "no"),
    ("<svg color=white><text>a<tspan fill=white>no</tspan></text></svg>", "a", "no"),
    ("<svg fill=white><text style=color:black>no<tspan fill=red>a", "a", "no"),
    ("<text>a<defs>b</defs></text>", "ab", ""),
    ("<noscript>a</noscript><object>b</object>", "ab", ""),
    # Pages that write themselves.
    (f"<script>write(atob('{coded('<p>a</p><b>b')}'))</script>c", "c a b", ""),
    (f"<iframe src='data:text/html;base64,{coded('<p>a</p><b>b')}'></iframe>c", "c a b", ""),
    ('<iframe src="data:text/html,%3Cp%3Ea%3C/p%3E%3Cb%3Eb"></iframe>c', "c a b", ""),
    ("<script>s=`%3Cp hidden%3Eno%3C/p%3Ea`; write(unescape(s))</script>", "a", "no"),
    (f"<script>x('%3Cp%3Ea', '{coded('<p>a<p>a<p>a')}')</script>", "", ""),
    # Text that holds end tags of its own element.
    ("<script><!--<script></script>no--></script>a", "a", ""),
    ("a<plaintext style=display:none></plaintext>no", "a", ">no"),
    ("<script><!--<script></scr</scriptipt></script>no--></script>a", "a", ""),
    # Elements end where a mail program ends them.
    ("<img style=display:none>a", "a", ""),
    # What is not closed ends with the element around it.
    ("<ul><li style=display:none>no<li>a</ul>", "a", "no"),
    # Formatting goes on in the next blocks, other inline elements do not.
    ("<p><font color=white>no<p>no</font>a", "a", "no no"),
    # An end tag without a start closes nothing.
    ("<div style=display:none>no</span></p></td>no</div>a", "a", "no no"),
])  # fmt: skip
def test_what_is_shown_and_what_is_hidden(html, shown, hidden):
    assert shown_and_hidden(html) == (shown, hidden)


# --- style sheets --------------------------------------------------------------------------


@pytest.mark.parametrize(("sheet", "html", "shown", "hidden"), [
    # Which elements a rule selects.
    ("P {display:none}", "<p>no</p>a", "a", "no"),
    ("p.x.y, i#z {display:none}", "<p class='y x'>no</p><p class=y>a<i id=z>no", "a", "no no"),
    (".x p {display:none}", "<b class=x><i><p>no</p></i></b><p>a", "a", "no"),
    ("p.x/**/.y, p/**/#z {display:none}", "<p class='x y'>no<p id=z>no", "", "no no"),
    *((f"{each} {{display:none}}", "<p>a", "a", "") for each in ("> p", "p >", "div >> p")),
    (":scope p:defined {display:none}", "<p>no", "", "no"),
    (".x > p {display:none}", "<b class=x><p>no</p><i><p>a</p></i></b>", "a", "no"),
    (".x + p {display:none}", "<b class=x></b><p>no</p><p>a", "a", "no"),
    (".x ~ p {display:none}", "<p>a<b class=x></b><p>b<hr class=x><p>no<p>no", "a b", "no no"),
    ("p:is(.x, .y), i:not(.x, #y) {display:none}", "<p class=y>no<p>a<i>no</i>", "a", "no no"),
    ("p:not(.y) {display:none}", "<p class=y>a<p>no", "a", "no"),
    (".x p:first-child {display:none}", "<b class=x><p>no<p>a</b>", "a", "no"),
    ("P[data-x] {display:none}", "<p DATA-X>no</p><p data-y>a", "a", "no"),
    (r"/* i */ .\78 {display:none}", "<p class='y\nx'>no<p class='x\vy'>a", "a", "no"),
    ("p:not(:hover, [title]) {display:none}", "<p>no<p title=x>a", "a", "no"),
    ("p {display:none} :checked + p {display:block}", "<p>no</p><input checked type=radio><p>a",
     "a", "no"),
    # Brackets in strings and in escapes close nothing.
    ("i{content:'{'} p{content:'\\'}'; display:none}", "<p>no", "", "no"),
    ("i{background:url(it's)} p{display:none}", "<p>no", "", "no"),
    ("i\\{x{} .a\\,i{display:none} p{display:none}", "<p>no</p><i>a", "a", "no"),
    (":root {color:#fff} html {color:red}", "no", "", "no"),
    # A selector that no browser knows spoils the others of its rule.
    *(
        (f"p, {each} {{display:none}}", "<p>a", "a", "")
        for each in (":x", "", "b%", "b:-ms-x")
    ),
    ("p:is(:x), i::-webkit-x, i:hover, p {display:none}", "<p>no", "", "no"),
    ("p, :-webkit-x {display:none}", "<p>a", "a", ""),
    ("p, :-webkit-drag, i::-WebKit-x {display:none}", "<p>no", "", "no"),
    *(
        (f"{each}, p {{display:none}}", "<p>no", "", "no")
        for each in ("[title]", "[title=']']", "i:not([title='(,)'])", "i::highlight(a)")
    ),
    # Media are those of a wide screen.
    ("@media print{p{display:none}}", "<p>a", "a", ""),
    ("@media not print {p{display:none}}", "<p>no", "", "no"),
    ("@media not screen {p{display:none}}", "<p>a", "a", ""),
    ("@media (min-width:1px) and (max-width:9999px) {p{display:none}}", "<p>no", "", "no"),
    ("@media (prefers-color-scheme:light) {p{display:none}}", "<p>no", "", "no"),
    ("@media not all and (max-width:9px) {p{display:none}}", "<p>no", "", "no"),
    ("@media (width > 99px) and (width <= 1000px) {p{display:none}}", "<p>no", "", "no"),
    ("@media (color) and (hover) and (min-height:1px) {p{display:none}}", "<p>no", "", "no"),
    ("@media (print) or (scripting:none) {p{display:none}}", "<p>no", "", "no"),
    ("@media (1px <= width < 9999px) and (9px<height) {p{display:none}}", "<p>no", "", "no"),
    ("@media (9999px < width), (9px >= width), (grid) {p{display:none}}", "<p>a", "a", ""),
    ("@media (monochrome:0) and (update:fast) {p{display:none}}", "<p>no", "", "no"),
    *(
        (f"@media ({each}) {{p{{display:none}}}}", "<p>a", "a", "")
        for each in ("prefers-reduced-motion", "x", "x:none")
    ),
    ("@media (width:9px), (pointer:coarse), (tv) {p{display:none}}", "<p>a", "a", ""),
    ("@media (-webkit-min-device-pixel-ratio:2) {p{display:none}}", "<p>a", "a", ""),
    ("@media screen and (orientation: landscape) {p{display:none}}", "<p>no", "", "no"),
    # All features are supported but those of other browsers.
    ("@supports not (display:grid) {p{display:none}}", "<p>a", "a", ""),
    ("@supports (-ms-ime-align:auto) {p{display:none}}", "<p>a", "a", ""),
    ("@supports not (-moz-appearance:none) {p{display:none}}", "<p>no", "", "no"),
    ("@supports selector(:not(p)) {p{display:none}}", "<p>no", "", "no"),
    ("@container (min-width:1px) {p{display:none}}", "<p>a", "a", ""),
    ("@layer x {p{display:none}}", "<p>no", "", "no"),
    # Open blocks end with the sheet, and a bracket that closes nothing spoils the next rule.
    ("p{display:none", "<p>no</p>a", "a", "no"),
    ("i{}} p{display:none} b{display:none}", "<p>a<b>no", "a", "no"),
    ("@layer x; @import 'y'; p{display:none}", "<p>no</p>a", "a", "no"),
    # Rules in rules.
    ("b{&.x{display:none}}", "<b class=x>no</b><i class=x>a", "a", "no"),
    ("b{display:none;i{}}", "<b>no</b><i>a", "a", "no"),
    ("b,u{> .x,i{display:none}}", "<u><s class=x>no</s><i>no</u><i>a", "a", "no no"),
    ("div{@media screen{p{i{display:none}}}}", "<div><p>a<i>no</div><i>b", "a b", "no"),
    ("p{{display:none}}", "<p>a", "a", ""),
    ("@font-face{x:y} @keyframes x{p{display:none}} i{display:none}", "<p>a<i>no", "a", "no"),
    # Variables.
    (":root {--n:none} p {display:var(--d, var(--n))}", "<p>no", "", "no"),
    ("p {--c:#fff}", "<p style='color:var(--c)'>no", "", "no"),
    ("p {color:var(--c)}", "<p style='--c:#fff'>no", "", "no"),
    ("", "<p style='--c:#fff'>a<b style='color:var(--c)'>no", "a", "no"),
    (":root {--c:red} .x {--c:#fff} p {color:var(--c)}", "<p class=x>no<p>a", "a", "no"),
    (".x {--c:#fff} :root {--c:red} p {color:var(--c)}", "<ul class=x><p>no</ul><p>a", "a", "no"),
    # Generated text.
    ("p::before {content:'b ' attr(title)}", "<p title=c>a", "b ca", ""),
    ("p::after, br::after, script::after {content:'b'}", "<br><p>a", "ab", ""),
    ("p.x:after {content:'b'}", "<p>a<p class=x>a<b>c</b>", "a acb", ""),
    ("p::before {content:'b'; display:none} i::before {content:none}", "<p>a<i>", "a", ""),
    ("p::first-line {content:'b'} p:x::before {content:'b'}", "<p>a", "a", ""),
    (".x > p + p::after {content:'b'}", "<div class=x><p>a<p>a</div><p>a", "a ab a", ""),
    ("hr ~ p::before {content:'b'}", "<p>a<hr><p>a<br><p>a", "a ba ba", ""),
    ("i p > b::before {content:'b'}", "<p><i><b>a</b></i></p>", "a", ""),
    ("p.x::before {content:'b'} p::before {content:'c'}", "<p class=x>a<p>a", "ba ca", ""),
    ("p:nth-child(2)::after {content:'<&amp;'}", "<p>a<p>a", "a a<&amp;", ""),
    # Which declaration wins.
    ("p {display:block !important} p {display:none}", "<p>a", "a", ""),
    ("p.x {display:block} .x {display:none}", "<p class=x>a", "a", ""),
    ("p {display:none}", "<p style=display:block>a", "a", ""),
    ("p {display:none !important}", "<p style=display:block>no", "", "no"),
    ("font {color:black}", "<font color=white>a", "a", ""),
    (".a {display:block} .c {display:none} .a {zoom:2}", "<p class='a c'>no<p>a", "a", "no"),
    (".a {zoom:2} " * 99 + ".a {display:none} .a {zoom:2}", "<p class=a>no<p>a", "a", "no"),
    # Several sheets are one.
    ("p {color:white}", "<p>no</p><style>p {color:red}</style><p>a", "no a", ""),
    ("", "<style media=print>p {display:none}</style><p>a", "a", ""),
    *(
        (each, "<style>p {display:none}</style><p>no", "", "no")
        for each in ("x", "x{", "/*", "@media print {", "}", "x{content:'")
    ),
    ("", "<style type=x>p {display:none}</style><p>a", "a", ""),
    ("", "<template><style>p {display:none}</style></template><p>a", "a", ""),
    ("", "<svg><template><style>p {display:none}</style></svg><p>no", "", "no"),
])  # fmt: skip
def test_sheets_hide_what_they_select(sheet, html, shown, hidden):
    assert shown_and_hidden(f"<style>{sheet}</style>{html}") == (shown, hidden)


# --- bounds --------------------------------------------------------------------------------


@pytest.mark.parametrize("padding", ["<br>", "<p title='<b>'>", "<!--<b><b>-->", "<b></b>"])
def test_a_long_document_is_followed_across_its_cuts(padding):
    hidden = f"<div style=display:none><table><tr><td>{padding * 9000}no</table>no</div>"
    assert shown_and_hidden(f"{hidden}{padding * 5000}a") == ("a", "no no")


def test_a_cut_in_a_script_or_a_quoted_value_is_put_off():
    script = "<script>" + "<b>" * 5000 + "</script>"
    value = f"<p title='{'<b>' * 5000}'>"
    assert shown_and_hidden(f"a{script}b{value}c") == ("ab c", "")


def test_text_behind_more_tags_than_mail_has_counts_as_hidden():
    assert shown_and_hidden(f"a{'<b>' * 200_001}no") == ("a", "no")
    found = read_html([b"a" + b"<b>" * 200_001, b"no<i>no"])
    assert (found[1].visible, found[1].hidden.split()) == (b"no", [b"no"])


@pytest.mark.parametrize(("depth", "shown"), [(3, "a"), (4, "")])
def test_a_script_in_a_script_is_read_up_to_a_depth(depth, shown):
    html = "<p>a<br><br>"
    for _ in range(depth):
        html = f"<script>write(atob('{coded(html)}'))</script>"
    assert shown_and_hidden(html) == (shown, "")


def test_a_text_of_a_script_that_nothing_closes_is_read_in_linear_time():
    assert shown_and_hidden(f"<script>unescape('{'%3C ' * 250_000}</script>a") == ("a", "")


def test_a_tag_of_more_attributes_than_mail_has_is_no_tag():
    attributes = " ".join(f"a{i}" for i in range(1001))
    assert shown_and_hidden(f"a<p {attributes} style=display:none>b<i>c") == ("abc", "")
    quoted = " ".join(f"a{i}='>'" for i in range(1001))
    assert shown_and_hidden(f"<p {quoted} style=display:none>b") == ("b", "")


def test_formatting_left_open_is_not_repeated_in_every_paragraph():
    formatting = "".join(f"<font a{i}>" for i in range(1000))
    assert shown_and_hidden(f"{formatting}{'<p>a' * 1000}")[0].split() == ["a"] * 1000
    few = "".join(f"<b a{i}='>' b='{'x' * 3000}'>" for i in range(9))
    assert memory_of(shown_and_hidden, f"<p>{few}{'<p>a' * 1500}")[1] < 10 << 20


def test_only_few_colours_are_compared_with_each_other(monkeypatch):
    monkeypatch.setattr(visibility, "_are_near", None)
    texts = "".join(
        f"<font color=#ff{255 - i:02x}ff>no </font><b style=background:#00{i:02x}00></b>"
        for i in range(40)
    )
    assert shown_and_hidden(texts)[1].startswith("no no ")
    with pytest.raises(TypeError):
        shown_and_hidden("<font color=#0f0>a")


@pytest.mark.slow
@pytest.mark.parametrize(
    "html", ["<%s>", "<p class='%s'>", "<p style='x:%s'>", "<p style='position:%s'>",
             "<font color='%s'>", "<p style='color:%s'>", "<style>%s{color:red}</style>",
             "<style>p{color:red}</style><p style='x:%s'>"],
)  # fmt: skip
def test_what_is_long_is_not_kept(html):
    def read(pieces):
        for piece in pieces:
            read_html([(html % (each * 20_000)).encode() for each in (piece, f"{piece} ")])

    read(["a"])
    kept, _ = memory_of(read, [f"a{i}" for i in range(20)])
    assert kept < 200_000  # bytes, of two million


RULES = "".join(f".b{i // 100} {{opacity:.{i}}}" for i in range(10_000))
MANY = " ".join(f"b{i}" for i in range(100))
MARKS = "".join(f"p{'[a]' * (3000 + i)} {{display:none}}" for i in range(30))

NAMES = "a%d " * 100
VARIABLES = "var(--x)" * 20
LONG = "color:red;" * 50_000
KEYS = "".join(f"<p class=b{i}>a" for i in range(20_000))
HIDDEN = "<p style='display:none'>a</p>"


@pytest.mark.parametrize(
    ("html", "piece"),
    [
        ("<p style='--a:b; %s'>a", "-"),
        ("<style>p {--a:b; color:var(--a); %s}</style><p>a", "-"),
        ("<p style='--a:b; %s'>a", "--a"),
        ("<p style='--a:b; %s'>a", "var(--a,"),
        (f"<p style='--x:{'x' * 1_000_000}; %s'>a", [f"--a{i}:{VARIABLES};" for i in range(900)]),
        (
            f"<style>p {{--x:{'00 ' * 60}}}</style>{HIDDEN}<p>%s",
            [f"<i id={i} style='margin:{VARIABLES * 50}'>a" for i in range(180)],
        ),
        (
            f"<style>p {{--a:var(--c);{LONG}}} p {{--c:d;{LONG}}}</style>{HIDDEN}%s",
            [f"<p id={i}>a" for i in range(40_000)],
        ),
        (f"<style>%si {{{LONG}}}</style>{KEYS}", [f".b{i}," for i in range(20_000)]),
        (f"<style>%si {{{LONG}}}</style><p><i>a", "p i,"),
        (f"<style>%si {{{LONG}}}</style>a", ["a:hover,"] * 50_000),
        (f"<style>%si {{content:'a';{LONG}}}</style><p>a", "p::before,"),
        (f"<style>{'p,' * 300_000}i {{%s}}</style>a", ["a{}"] * 100_000),
        ("<style>p::before {content:%s}</style>" + "<p title=a>a" * 900, ["attr(title)"] * 50_000),
        ("%s", f"<p style='width:calc({' ' * 980})'>a"),
        ("<style>@media (width:%sx {p {color:red}}</style><p>a", " "),
        (f"<style>{MARKS}</style>%s", "<p a>"),
        (f"<style>{RULES}</style>%s", [f"<p class='{MANY} x{i}'>" for i in range(1000)]),
        ("%s", [f"<body a{i}=x>" for i in range(50_000)]),
        ("%s", [f"<b {NAMES % tuple(range(100 * i, 100 * i + 100))}>" for i in range(900)]),
        ("%s", "<a b='>' "),
    ],
)  # fmt: skip
def test_no_hostile_style_takes_long(html, piece):
    start = time.process_time()
    pieces = [piece] * (50_000 // len(piece)) if isinstance(piece, str) else piece
    read_html([(html % "".join(pieces)).encode()])
    assert time.process_time() - start < 2


def test_a_number_of_tags_is_kept_and_of_styles_for_a_sheet(monkeypatch):
    monkeypatch.setattr("nbspam.mail.html._MAX_KNOWN", 100)
    monkeypatch.setattr("nbspam.mail.visibility._MAX_TAGS", 100)
    read_html(["".join(f"<p class=x{i}>" for i in range(1000)).encode()])
    assert len(reader._KNOWN) <= 100
    assert len(visibility._START_TAGS) <= 100
    monkeypatch.setattr("nbspam.mail.sheets._MAX_STEPS", 100)
    for i in range(3):
        tags = "".join(f"<p class=y{i}-{j}>" for j in range(200))
        read_html([f"<style>p{{color:red}}</style>{tags}".encode()])
    assert 0 < len(sheets._sheet_text(b"p{color:red}").sheet._steps) <= 100


# --- laws ----------------------------------------------------------------------------------

CSS = st.sampled_from([
    "p", ".x", "#y", "*", " ", ",", "{", "}", ";", ":", "(", ")", "'", '"', "/*", "*/",
    "\\", "@media ", "print", "and", "(min-width:", "color", "#fff", "display", "none",
    "!important", "font-size", "1e999", "-1e-999", "px", "%", "rgb(", "hsl(", "1,",
    "opacity", "clip", "rect(", "transform", "scale(", "matrix(", "left", "position",
    "absolute", "font", "/", "background", "\\110000", "\\64 ", "é", "nan", "inf", "+", "-",
    ".", "9" * 400, "margin", "zoom", "calc(", "max(", "--x:", "var(--x", "mask:gradient(",
    "::before", "content:", "attr(id)",
])  # fmt: skip
PARTS = st.sampled_from([
    "<div style=display:none>", "<font color=white>", "<p>", "</p>", "<table>", "<td>",
    "</td>", "</table>", "<li>", "</li>", "</font>", "</div>", "<span style='color:#fff'>",
    "</span>", "<a href=x>", "</a>", "<tr bgcolor=black>", "<b>", "</b>",
    "<body text=white>", "</body>", "<td style='font-size:0", "'>",
    "<style>p {color: white}</style>", "<td bgcolor=black>", "<font color=black>", "<a>",
    "<span style='background:#000'>", "<i style='color:red'>", "<body bgcolor=blue>",
    "word ", "<option>",
])  # fmt: skip


NUMBERS = count()
RULES = ".a{color:red} .a{color:white} p.b{display:none} div .a{color:blue} i:first-child{zoom:.1}"
TAGS = st.sampled_from(
    ["<p class=a>", "<p class=b>", "<div>", "</div>", "</p>", "<i>", "<i class=a>", "</i>", "x "]
)


@examples(300)
@given(st.lists(st.lists(TAGS, max_size=12).map("".join), min_size=2, max_size=4))
def test_documents_of_one_sheet_are_read_as_if_each_had_its_own(documents):
    for html in documents:
        found = read_html([f"<style>{RULES}</style>{html}".encode()])
        own = f"<style>/*{next(NUMBERS)}*/{RULES}</style>{html}"  # another text, so another sheet
        assert read_html([own.encode()]) == found


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


@examples(300)
@given(st.lists(PARTS, max_size=40).map("".join))
def test_every_word_is_either_shown_or_hidden(html):
    found = read_html([html.encode()])[0]
    words = html.count("word ")
    assert found.visible.count(b"word") + found.hidden.count(b"word") <= words
    if "'" not in html:
        assert found.visible.count(b"word") + found.hidden.count(b"word") == words


@examples(300)
@given(st.lists(PARTS, max_size=40).map("".join))
def test_without_styles_nothing_is_hidden(html):
    for styling in ("style", "color", "text", "option"):
        html = html.replace(styling, "x")
    assert shown_and_hidden(html)[1] == ""


def words_of(html):
    """Return the shown and the hidden words; marks alone are hidden or left out."""
    return [re.findall(r"\w+", text) for text in shown_and_hidden(html)]


@examples(500)
@given(st.lists(PARTS, max_size=30).map("".join))
@example("<div style=display:none>'><font color=black>word ")
def test_following_only_what_could_hide_changes_nothing(html):
    html = html.replace("<option>", "")  # ends with the next tag unless elements are followed
    quick = words_of(html)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nbspam.mail.visibility.could_hide", lambda _: True)
        assert words_of(html) == quick


ATTRIBUTES = st.sampled_from([
    "href=a", "href=b", "src=a", "alt=x", "alt=y", "width=1", "role=none", "class=c", "#fff",
    "style='color:red;color:'", "style=color:red",
    "style='color:#fff'", "style='COLOR: white;margin:0'", "style='color:rgb(255,255,255)'",
    "style='font:a'", "style='background:url(u)'", "style='--a:none;display:var(--a)'",
    "title=' style='", "style=' display:none'", "style='display : none;x:y'",
])  # fmt: skip
WRITTEN = st.builds(
    lambda name, attributes: f"<{name} {' '.join(attributes)}>word ",
    st.sampled_from(("a", "img", "p", "td")),
    st.lists(ATTRIBUTES, max_size=4),
)


@examples(300)
@given(st.lists(WRITTEN, max_size=8).map("".join))
def test_tags_that_were_read_before_change_nothing(html):
    found = read_html([html.encode()])
    reader._KNOWN.clear()
    reader._STYLES.clear()
    reader._same_style.cache_clear()
    assert read_html([html.encode()]) == found


COLOURS = st.builds(css.Colour, *[st.integers(0, 255)] * 3, st.sampled_from((0.0, 0.5, 1.0)))


def test_many_different_values_hide_text_like_few():
    html = "".join(f"<b style='opacity:0;x:{i}'>no</b> " for i in range(100))
    html += "".join(f"<b style='color:#fff;x:{i}'>no</b> " for i in range(100))
    assert shown_and_hidden(html + "a") == ("a", " ".join(200 * ["no"]))


READ = {
    css.read_colour: {
        "#f008": (255, 0, 0, 0x88 / 255), "#0102fe00": (1, 2, 254, 0), "transparent": (0, 0, 0, 0),
        "rgb(1 2 3 / .5)": (1, 2, 3, 0.5), "rgba(1,2,3,50%)": (1, 2, 3, 0.5),
        "rgb(300,-5,0)": (255, 0, 0, 1), "hsl(.5turn 100% 50%)": (0, 255, 255, 1),
        "hsl(0 100% 50%)": (255, 0, 0, 1), "hsla(240deg,100%,50%,.5)": (0, 0, 255, 0.5),
        **dict.fromkeys(("", "nonsense", "#fffff", "rgb(1,2)", "rgb(", "12px")),
    },
    css.read_legacy_colour: {  # in any attribute
        "ff0000": (255, 0, 0, 1), "#fff": (255, 255, 255, 1),
        "fff": (15, 15, 15, 1),  # nearly black
        "#abcd": (171, 205, 0, 1), "chucknorris": (192, 0, 0, 1), " red ": (255, 0, 0, 1),
        "x": (0, 0, 0, 1), " ": None,
    },
    lengths.read_length: {
        "12": (12, False), "12pt": (16, False), "80%": (0.8, True), "2rem": (32, False),
        "1.5lh": (1.8, True), "3dvh": (21, False), "-1e999em": (-1e6, True),
        **dict.fromkeys(("", "px", "12furlongs", "auto", "nan", "inf")),
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("read", "value"), [(read, value) for read, found in READ.items() for value in found]
)
def test_colours_and_lengths_are_read(read, value):
    expected = READ[read][value]
    assert read(value.encode()) == (expected and pytest.approx(expected))


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
def test_only_colours_of_little_contrast_are_near_and_usual_ones_are_apart(a, b):
    assert css.is_near(a, b) == css.is_near(b, a)
    if css.is_dark(a) and css.is_light(b):
        assert (a.alpha, css.is_near(a, b)) == (1, False)
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
