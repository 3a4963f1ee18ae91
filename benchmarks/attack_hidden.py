"""Ways to put words into HTML that its reader does not see, for benchmarks/attacks.py.

One line for each: the words stand in place of {}.  Where a mail program ignores what hides them
(scripts do not run in mail, so <noscript> is shown), a way is not in the table.
"""

from typing import NamedTuple

from attack_mail import Good, Mail, lines

N_WORDS = 150


class Hiding(NamedTuple):
    """A way to hide words: an element, rules in a style sheet, attributes of the body's tag."""

    element: str
    style: str = ""
    body: str = ""

    def attack(self, mail: Mail, good: Good) -> bytes:
        """Return the mail with hidden good words."""
        words = lines(good.words[:N_WORDS])
        element, style = (text.replace("{}", words) for text in (self.element, self.style))
        return mail.page(element, style, self.body)


_WHITE, _BLACK = 'bgcolor="#ffffff" text="#000000"', 'bgcolor="#000000" text="#eeeeee"'

# Styles of an element <div>, one a line.
_STYLES = r"""display:none
color:red; DISPLAY : none !important
display:/* block */none
d\69splay:no\6e e
display&#58;n&#111;ne
visibility:hidden
visibility:collapse
mso-hide:all;max-height:0;overflow:hidden
font-size:0
font-size:1px;line-height:1px
font-size:.6pt
font-size:0.05em
font-size:2%
font:italic 1px/1px Arial, sans-serif
color:rgba(10,20,30,0)
color:transparent
position:absolute;left:-9999px;top:0
position:fixed;top:-200em
text-indent:-5000px;white-space:nowrap;overflow:hidden
margin-left:-8000px;width:300px
height:0;overflow:hidden
display:inline-block; width:0px; height:0px; overflow:hidden
max-height:0;overflow:hidden
display:block;max-height:1px;max-width:1px;overflow:hidden
opacity:0.0
opacity:.02
filter:opacity(0%)
position:absolute;clip:rect(0 0 0 0);width:1px;height:1px
position:absolute;clip-path:inset(50%)
transform:scale(0)
content-visibility:hidden
display:none;display:bogus
-webkit-text-fill-color:transparent
color:#fff0
color:color-mix(in srgb, white, #fefefe)
color:oklch(99% 0 0)
color:hwb(0 99% 0%)
font-size:calc(1px - 1px)
font-size:min(0px, 2em)
font-size:clamp(0px, 1px, 1px)
--a:none;display:var(--a)
--s:0;font-size:calc(var(--s) * 1px)
scale:0
translate:-9999px
transform:translateX(-300vw)
transform:rotateY(90deg)
transform:matrix(0,0,0,0,0,0)
clip-path:circle(0)
clip-path:polygon(0 0,0 0,0 0)
position:absolute;inset:0 auto auto -9999px
float:left;margin-left:-200vw
line-height:0;height:0;overflow:clip
opacity:1%
opacity:calc(0 * 1)
zoom:0.01
filter:opacity(1%) blur(9px)
-webkit-mask:linear-gradient(transparent,transparent);mask:linear-gradient(transparent,transparent)
letter-spacing:-2em;font-size:1px
all:unset;display:none
DISPLAY:\6eone"""

_ELEMENTS = {
    "attribute hidden": Hiding("<div hidden>{}</div>"),
    "parent hidden": Hiding(
        '<div style="display:none"><p>so<table><tr><td><b>{}</b></td></tr></table></p></div>'
    ),
    "template": Hiding("<template>{}</template>"),
    "datalist": Hiding("<datalist><option>{}</option></datalist>"),
    "noframes": Hiding("<noframes>{}</noframes>"),
    "inside iframe": Hiding('<iframe width="0" height="0">{}</iframe>'),
    "comment": Hiding("<!-- {} -->"),
    "comment in <style>": Hiding("", style="/* x */ p { margin:0 } /* \n {} \n */"),
    "font size in parents": Hiding(
        '<div style="font-size:10%"><span style="font-size:10%">{}</span></div>'
    ),
    "font color": Hiding('<font color="#ffffff">{}</font>', body=_WHITE),
    "font color, near": Hiding('<font color="#FDFEFC">{}</font>', body=_WHITE),
    "font color, on black": Hiding('<font color="#010203">{}</font>', body=_BLACK),
    "color in a style": Hiding('<span style="color:white">{}</span>', body=_WHITE),
    "color:rgb()": Hiding('<p style="color: rgb(254, 255, 253)">{}</p>', body=_WHITE),
    "color:hsl()": Hiding('<p style="color:hsl(200, 50%, 99%)">{}</p>', body=_WHITE),
    "color of a cell": Hiding(
        '<table bgcolor="#224466"><tr><td><font color="#224468">{}</font></td></tr></table>'
    ),
    "color of a td style": Hiding(
        '<table><tr><td style="background-color:navy;color:#000082">{}</td></tr></table>'
    ),
    "color of a parent": Hiding(
        '<div style="background:#fafafa;color:#f9f9f9"><p>,<b><i>{}</i></b></p></div>'
    ),
    "cell of no size": Hiding(
        '<table width="0" height="0" style="overflow:hidden"><tr>'
        '<td width="0" height="0" style="font-size:0;overflow:hidden">{}</td></tr></table>'
    ),
    "z-index, covered": Hiding(
        '<div style="position:relative;height:40px"><div style="position:absolute;z-index:-1">{}'
        '</div><div style="position:absolute;z-index:5;background:#fff;width:100%;height:40px">'
        "</div></div>",
    ),
    # rules in style sheets
    "rule by element": Hiding("<s>{}</s>", style="s { display: none }"),
    "rule by class": Hiding('<div class="a k2">{}</div>', style=".k2{font-size:0px}"),
    "rule by id": Hiding('<div id="pre">{}</div>', style="#pre { visibility:hidden; }"),
    "rule by a list": Hiding(
        '<p class="q">{}</p>', style="h6, .q , #none { color:#fff; background:#fff }"
    ),
    "rule by descendant": Hiding(
        '<div class="x"><p><span>{}</span></p></div>', style="div.x span { opacity: 0 }"
    ),
    "rule by child": Hiding(
        '<div class="x"><em>{}</em></div>', style="body .x > em{position:absolute;top:-999em}"
    ),
    "rule by attribute": Hiding('<p lang="zz">{}</p>', style='p[lang="zz"]{display:none}'),
    "rule in @media": Hiding(
        '<div class="m">{}</div>', style="@media screen, print { .m { display:none!important } }"
    ),
    "rule, comment and escape": Hiding(
        '<div class="kk">{}</div>', style=r"/* .kk{} */ .k\6b/**/{ d\69 splay/* */:none }"
    ),
    # values of attributes
    "alt of an image": Hiding('<img src="cid:1" width="1" height="1" alt="{}">'),
    "title": Hiding('<span title="{}">.</span>'),
    "input type=hidden": Hiding('<form><input type="hidden" name="a" value="{}"></form>'),
    "meta, data-": Hiding('<meta name="keywords" content="{}"><i data-w="{}"></i>'),
    "title of SVG": Hiding('<svg width="1" height="1"><title>{}</title></svg>'),
    "script of data": Hiding('<script type="application/ld+json">{}</script>'),
    "list of an input": Hiding('<input list="a" type="hidden"><select hidden><option>{}</select>'),
    "comment of mso": Hiding("<!--[if gte mso 9]><p>{}</p><![endif]-->"),
    "not a comment": Hiding("<!{}>"),
    "processing instruction": Hiding("<?xml {} ?>"),
    "class without quotes": Hiding("<p class=zz>{}</p>", style="P.zz{display:none}"),
    "rule by :not()": Hiding("<u>{}</u>", style="u:not(.k){display:none}"),
    "rule by :is()": Hiding("<u>{}</u>", style=":is(u,s):first-child, u{opacity:0}"),
    "rule by :has()": Hiding("<div><u></u>{}</div>", style="div:has(> u){display:none}"),
    "rule by :nth-child()": Hiding(
        '<div><b></b><u class="">{}</u></div>', style="div > :nth-child(2n){display:none}"
    ),
    "rule by neighbour": Hiding("<i></i><u>{}</u>", style="i + u{font-size:0}"),
    "rule by part of a value": Hiding('<u id="k77">{}</u>', style='[id^="k7" i]{display:none}'),
    "rule in a rule": Hiding(
        '<div class="n"><u>{}</u></div>', style=".n { color: red; & u { display: none } }"
    ),
    "rule in @supports": Hiding(
        '<u class="s">{}</u>', style="@supports (color: red) { .s { display: none } }"
    ),
    "rule in @layer": Hiding('<u class="l">{}</u>', style="@layer a { .l { display: none } }"),
    "rule, variable": Hiding(
        '<u class="v">{}</u>', style=":root{--none:none} .v{display:var(--x, var(--none))}"
    ),
}
HIDDEN = {
    **{style[:28]: Hiding(f'<div style="{style}">{{}}</div>') for style in _STYLES.split("\n")},
    **_ELEMENTS,
}
