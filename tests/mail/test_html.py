"""HTML: visible and hidden text, links and facts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.mail.html import Html, read_html
from support import examples

CUTS = [
    b"<b>", b"</b>", b"<div style=display:none>", b"<div>", b"</div>", b"<!--", b"-->", b"<br>",
    b"<script>", b"</script>", b"<a href='", b'"', b">", b"<", b"&", b"&#x41;", b"img src=", b"x",
    b"<style", b" alt=", b" onclick=", b"<p", b"color:#fff", b";", b"\n", b"\xc3\xa9", b"word ",
]  # fmt: skip


def read(html: bytes) -> Html:
    return read_html([html])[0]


@pytest.mark.parametrize(("html", "text"), [
    ("V<span style='color:red'>i</span>agra", "Viagra"),
    ("<table><td>one</td><td>two</td></table>", "one two"),
    ("<BR/>one<HR width=3>two", "one two"),
    ("one<br>two<p>three</p>four", "one two three four"),
    ("fr&eacute;e &amp; &#99;heap &lt;b&gt;", "frée & cheap <b>"), ("a<!-- no", "a"),
    ("a<script>if (1 <!-- 2) no</script>b", "ab"), ("a<!doctype html>b<?xml no?>c", "abc"),
    ("a<b", "a"),  # as browsers do at the end of a document
    ("a<xmp><b>&amp;</xmp>b", "a <b>&amp; b"), ("V<!-- pills -->iagra", "Viagra"),
    ("<p title=' style=' style=' display:none'>a</p>b", "b"),
    ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
    ("one<select><option>two<option>three</select>", "one"),
])  # fmt: skip
def test_visible_text_is_what_a_reader_sees(html, text):
    assert read(html.encode()).visible.decode().split() == text.split()


@pytest.mark.parametrize(
    "tag", ["<a<b>", "<p <i>", "<x<style>", "<p x<!--y>", "<p<title>", "<b/<script x>", "</p<xmp>"]
)
def test_a_bracket_in_the_name_of_a_tag_or_attribute_moves_no_text(tag):
    html = read(f"one{tag} two <!-- > --><b>three</b><a href='x<y>'> four".encode())

    assert html.visible.split() == [b"one", b"two", b"three", b"four"]
    assert html.urls == [b"x<y>"]


def test_links_and_titles_are_kept_apart_whatever_is_in_them():
    tags = (f"<a href='{link}' title='{title}'>" for link, title in zip("aBc", "Def", strict=True))
    html = read(b"".join(tag.encode() for tag in tags) + b"<img src='G&amp;amp;\0\nh' alt='I\0'>")

    assert html.urls == [b"a", b"b", b"c", b"g&amp;\xef\xbf\xbdh"]
    assert html.alt.split() == [b"d", b"e", b"f", b"i\xef\xbf\xbd"]


def test_hidden_text_is_kept_apart_and_told_unless_it_is_a_title_or_an_option():
    html = read(b"see <span style=display:none>secret</span>this <font size=1>now</font>")
    assert html.visible == b"see this now"
    assert html.hidden.split() == [b"secret"]
    assert {"hidden-text", "hidden-by-style"} <= html.facts
    html = read(b"<title>a</title><select><option>b</select>c")
    assert (html.visible.split(), html.hidden.split()) == ([b"c"], [b"a", b"b"])
    assert html.facts == {"tag-select"}


@pytest.mark.parametrize(("html", "urls"), [
    (
        "<a\nhref = 'x'><img src=cid:1><form action=y><body background=z>",
        [b"z", b"x", b"cid:1", b"y"],  # all attributes of <body> are those of its start
    ),
    ("<a href='x'>1</a><a href='x'>2</a>", [b"x"]),
    ("<meta http-equiv=Refresh content='0; URL=\"http://a.example/\"'>", [b"http://a.example/"]),
    ("<meta http-equiv=refresh content='0 URL=//a.example'>", [b"//a.example"]),
    ("<meta http-equiv=refresh content=5><meta name=x content='0;url=y'>", []),
    (
        "<script src=x>open('https://a.example/?B', go(\"http:\\/\\/c.example\")</script>",
        [b"x", b"https://a.example/?b\nhttp:\\/\\/c.example"],
    ),
    ("<script>open(atob('aHR0cDovL2EuZXhhbXBsZS8='))</script>", [b"http://a.example/"]),
    ("<script>open('\\x68ttp:\\u002f\\x2Fa.example/')</script>", [b"http://a.example/"]),
    ("<script>open('http://\\xff.example/')</script>", ["http://\ufffd.example/".encode()]),
    ("<img src=x srcset='y 2x'>", [b"x", b"y 2x"]),
    ("<object data=x></object><video poster=y></video>", [b"x", b"y"]),
    ("<p style='background:URL( \"Y\" ) top, url(z)'>", [b' "y" \nz']),
    ("<table background=a style='background:url(b)'>", [b"a\nb"]),
    ("<svg><a xlink:href=x><text>1</text></a></svg><button formaction=y>", [b"x", b"y"]),
    ("<a href='a&Tab;b\n c'></a><form class='a\nb' action='d&#10;\te'>", [b"ab c", b"de"]),
])  # fmt: skip
def test_links_come_in_order_and_once(html, urls):
    assert read(html.encode()).urls == urls


def test_alternative_texts_and_titles_are_kept_apart():
    html = read(b"<img src=x alt='buy &amp; save'><a title=now href=y aria-label=here>z</a>")
    assert html.alt == b"buy & save\nnow\nhere"
    assert html.visible == b"z"
    form = read(
        b"<input placeholder=Name value=x><input value='Log in' type=Submit><input type=reset>"
    )
    assert (form.alt, form.visible.strip()) == (b"name\nlog in", b"")
    alike = read(b"<img src=x alt=a width=1><img src=x title=b width=1><img src=y alt=c width=1>")
    assert (alike.alt, alike.urls) == (b"a\nb\nc", [b"x", b"x", b"y"])


@pytest.mark.parametrize(("html", "fact", "is_noted"), [
    ("<img src=x> a b c", "image-only", True),
    ("<img src=x>" + "word " * 5, "image-only", False),
    ("V<!-- x -->iagra", "comment-in-word", True),
    ("one <!-- x --> two", "comment-in-word", False),
    ("a<!-- x", "comment-open", True),
    ("one <!-- x --> two", "comment-open", False),
    ("<a onclick='x()'>", "attr-event", True),
    ("<p title=' onclick='>x", "attr-event", False),
    ("<font color=#FFFFFF>x", "text-white", True),
    ("<font color='white'>x", "text-white", True),
    ("<p style='color: #fff'>x", "text-white", True),
    ("<p style='color: rgb(255,255,255)'>x", "text-white", False),  # as it is written
    ("<p style='background-color:#fff'>x", "text-white", False),
    ("a<font color=white>&nbsp; \n</font>b", "hidden-text", False),  # blanks
])  # fmt: skip
def test_facts_are_noted_and_ordinary_markup_gives_none(html, fact, is_noted):
    assert (fact in read(html.encode()).facts) == is_noted


@given(st.text("abc \n", max_size=50))
def test_text_without_markup_is_itself(text):
    assert read(text.encode()).visible.split() == text.encode().split()


@examples(200)
@given(st.lists(st.lists(st.sampled_from(CUTS), max_size=15).map(b"".join), max_size=5))
def test_a_document_is_read_alike_beside_any_others(documents):
    found = read_html(documents)
    assert found == [read(html) for html in documents]
    for each in found:
        b"".join((each.visible, each.hidden, each.alt)).decode()  # does not raise
