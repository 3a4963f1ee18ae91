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


def styled(style: str, tag: str = "div") -> Hiding:
    """Return the way to hide words by the style of an element."""
    return Hiding(f'<{tag} style="{style}">{{}}</{tag}>')


_WHITE, _BLACK = 'bgcolor="#ffffff" text="#000000"', 'bgcolor="#000000" text="#eeeeee"'

HIDDEN: dict[str, Hiding] = {
    # not displayed
    "display:none": styled("display:none"),
    "display : NONE !important": styled("color:red; DISPLAY : none !important"),
    "display, comment in the style": styled("display:/* block */none"),
    "display, escape in the style": styled(r"d\69splay:no\6e e"),
    "display, entity in the style": styled("display&#58;n&#111;ne", "span"),
    "visibility:hidden": styled("visibility:hidden", "p"),
    "visibility:collapse": styled("visibility:collapse", "span"),
    "mso-hide, max-height": styled("mso-hide:all;max-height:0;overflow:hidden"),
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
    # small
    "font-size:0": styled("font-size:0"),
    "font-size:1px": styled("font-size:1px;line-height:1px"),
    "font-size:.6pt": styled("font-size:.6pt", "span"),
    "font-size:0.05em": styled("font-size:0.05em", "span"),
    "font-size:2%": styled("font-size:2%", "p"),
    "font shorthand": styled("font:italic 1px/1px Arial, sans-serif"),
    "font size in parents": Hiding(
        '<div style="font-size:10%"><span style="font-size:10%">{}</span></div>'
    ),
    # colours
    "font color": Hiding('<font color="#ffffff">{}</font>', body=_WHITE),
    "font color, near": Hiding('<font color="#FDFEFC">{}</font>', body=_WHITE),
    "font color, on black": Hiding('<font color="#010203">{}</font>', body=_BLACK),
    "color in a style": Hiding('<span style="color:white">{}</span>', body=_WHITE),
    "color:rgb()": Hiding('<p style="color: rgb(254, 255, 253)">{}</p>', body=_WHITE),
    "color:hsl()": Hiding('<p style="color:hsl(200, 50%, 99%)">{}</p>', body=_WHITE),
    "color:rgba(,,,0)": styled("color:rgba(10,20,30,0)"),
    "color:transparent": styled("color:transparent", "span"),
    "color of a cell": Hiding(
        '<table bgcolor="#224466"><tr><td><font color="#224468">{}</font></td></tr></table>'
    ),
    "color of a td style": Hiding(
        '<table><tr><td style="background-color:navy;color:#000082">{}</td></tr></table>'
    ),
    "color of a parent": Hiding(
        '<div style="background:#fafafa;color:#f9f9f9"><p>,<b><i>{}</i></b></p></div>'
    ),
    # out of sight
    "left:-9999px": styled("position:absolute;left:-9999px;top:0"),
    "position:fixed;top": styled("position:fixed;top:-200em", "span"),
    "text-indent": styled("text-indent:-5000px;white-space:nowrap;overflow:hidden", "p"),
    "margin-left": styled("margin-left:-8000px;width:300px"),
    "height:0": styled("height:0;overflow:hidden"),
    "width:0": styled("display:inline-block; width:0px; height:0px; overflow:hidden", "span"),
    "max-height:0": styled("max-height:0;overflow:hidden"),
    "max-height:1px": styled("display:block;max-height:1px;max-width:1px;overflow:hidden"),
    "cell of no size": Hiding(
        '<table width="0" height="0" style="overflow:hidden"><tr>'
        '<td width="0" height="0" style="font-size:0;overflow:hidden">{}</td></tr></table>'
    ),
    "opacity:0": styled("opacity:0.0"),
    "opacity:.02": styled("opacity:.02"),
    "filter:opacity()": styled("filter:opacity(0%)"),
    "clip": styled("position:absolute;clip:rect(0 0 0 0);width:1px;height:1px"),
    "clip-path": styled("position:absolute;clip-path:inset(50%)"),
    "transform:scale(0)": styled("transform:scale(0)"),
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
}
