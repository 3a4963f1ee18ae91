"""Ways to put words into HTML that its reader does not see, for benchmarks/attacks.py.

The words stand in place of {}.  Where a mail program ignores what hides them (scripts do not run
in mail, so <noscript> is shown), a way is not in the tables.
"""

import re
from collections.abc import Callable

from attack_mail import Mail

N_WORDS = 150
_BODIES = {
    "": "",
    "white": 'bgcolor="#ffffff" text="#000000"',
    "black": 'bgcolor="#000000" text="#eeeeee"',
}
# Styles of an element <div>.
_STYLES = r"""display:none | color:red; DISPLAY : none !important | display:/* block */none
d\69splay:no\6e e | display&#58;n&#111;ne | visibility:hidden | visibility:collapse
mso-hide:all;max-height:0;overflow:hidden | font-size:0 | font-size:1px;line-height:1px
font-size:.6pt | font-size:0.05em | font-size:2% | font:italic 1px/1px Arial, sans-serif
color:rgba(10,20,30,0) | color:transparent | position:absolute;left:-9999px;top:0
position:fixed;top:-200em | text-indent:-5000px;white-space:nowrap;overflow:hidden
margin-left:-8000px;width:300px | height:0;overflow:hidden
display:inline-block; width:0px; height:0px; overflow:hidden | max-height:0;overflow:hidden
display:block;max-height:1px;max-width:1px;overflow:hidden | opacity:0.0 | opacity:.02
filter:opacity(0%) | position:absolute;clip:rect(0 0 0 0);width:1px;height:1px
position:absolute;clip-path:inset(50%) | transform:scale(0) | content-visibility:hidden
display:none;display:bogus | -webkit-text-fill-color:transparent | color:#fff0
color:color-mix(in srgb, white, #fefefe) | color:oklch(99% 0 0) | color:hwb(0 99% 0%)
font-size:calc(1px - 1px) | font-size:min(0px, 2em) | font-size:clamp(0px, 1px, 1px)
--a:none;display:var(--a) | --s:0;font-size:calc(var(--s) * 1px) | scale:0 | translate:-9999px
transform:translateX(-300vw) | transform:rotateY(90deg) | transform:matrix(0,0,0,0,0,0)
clip-path:circle(0) | clip-path:polygon(0 0,0 0,0 0)
position:absolute;inset:0 auto auto -9999px | float:left;margin-left:-200vw
line-height:0;height:0;overflow:clip | opacity:1% | opacity:calc(0 * 1) | zoom:0.01
filter:opacity(1%) blur(9px)
-webkit-mask:linear-gradient(transparent,transparent);mask:linear-gradient(transparent,transparent)
letter-spacing:-2em;font-size:1px | all:unset;display:none | DISPLAY:\6eone"""
# One a line, or in lines that are indented: a name, an element, rules of a style sheet, and the
# colour of the page.
_ELEMENTS = r"""attribute hidden ~ <div hidden>{}</div>
parent hidden ~ <div
    style="display:none"><p>so<table><tr><td><b>{}</b></td></tr></table></p></div>
template ~ <template>{}</template>
datalist ~ <datalist><option>{}</option></datalist>
noframes ~ <noframes>{}</noframes>
inside iframe ~ <iframe width="0" height="0">{}</iframe>
comment ~ <!-- {} -->
comment in <style> ~  ~ /* x */ p { margin:0 } /* \n {} \n */
font size in parents ~ <div style="font-size:10%"><span style="font-size:10%">{}</span></div>
font color ~ <font color="#ffffff">{}</font> ~  ~ white
font color, near ~ <font color="#FDFEFC">{}</font> ~  ~ white
font color, on black ~ <font color="#010203">{}</font> ~  ~ black
color in a style ~ <span style="color:white">{}</span> ~  ~ white
color:rgb() ~ <p style="color: rgb(254, 255, 253)">{}</p> ~  ~ white
color:hsl() ~ <p style="color:hsl(200, 50%, 99%)">{}</p> ~  ~ white
color of a cell ~ <table bgcolor="#224466"><tr><td><font
    color="#224468">{}</font></td></tr></table>
color of a td style ~ <table><tr><td
    style="background-color:navy;color:#000082">{}</td></tr></table>
color of a parent ~ <div style="background:#fafafa;color:#f9f9f9"><p>,<b><i>{}</i></b></p></div>
cell of no size ~ <table width="0" height="0" style="overflow:hidden"><tr><td width="0"
    height="0" style="font-size:0;overflow:hidden">{}</td></tr></table>
z-index, covered ~ <div style="position:relative;height:40px"><div
    style="position:absolute;z-index:-1">{}</div><div
    style="position:absolute;z-index:5;background:#fff;width:100%;height:40px"></div></div>
rule by element ~ <s>{}</s> ~ s { display: none }
rule by class ~ <div class="a k2">{}</div> ~ .k2{font-size:0px}
rule by id ~ <div id="pre">{}</div> ~ #pre { visibility:hidden; }
rule by a list ~ <p class="q">{}</p> ~ h6, .q , #none { color:#fff; background:#fff }
rule by descendant ~ <div class="x"><p><span>{}</span></p></div> ~ div.x span { opacity: 0 }
rule by child ~ <div class="x"><em>{}</em></div> ~ body .x > em{position:absolute;top:-999em}
rule by attribute ~ <p lang="zz">{}</p> ~ p[lang="zz"]{display:none}
rule in @media ~ <div class="m">{}</div> ~ @media screen, print { .m { display:none!important } }
rule, comment and escape ~ <div class="kk">{}</div> ~ /* .kk{} */ .k\6b/**/{ d\69 splay/*
    */:none }
alt of an image ~ <img src="cid:1" width="1" height="1" alt="{}">
title ~ <span title="{}">.</span>
input type=hidden ~ <form><input type="hidden" name="a" value="{}"></form>
meta, data- ~ <meta name="keywords" content="{}"><i data-w="{}"></i>
title of SVG ~ <svg width="1" height="1"><title>{}</title></svg>
script of data ~ <script type="application/ld+json">{}</script>
list of an input ~ <input list="a" type="hidden"><select hidden><option>{}</select>
comment of mso ~ <!--[if gte mso 9]><p>{}</p><![endif]-->
not a comment ~ <!{}>
processing instruction ~ <?xml {} ?>
class without quotes ~ <p class=zz>{}</p> ~ P.zz{display:none}
rule by :not() ~ <u>{}</u> ~ u:not(.k){display:none}
rule by :is() ~ <u>{}</u> ~ :is(u,s):first-child, u{opacity:0}
rule by :has() ~ <div><u></u>{}</div> ~ div:has(> u){display:none}
rule by :nth-child() ~ <div><b></b><u class="">{}</u></div> ~ div > :nth-child(2n){display:none}
rule by neighbour ~ <i></i><u>{}</u> ~ i + u{font-size:0}
rule by part of a value ~ <u id="k77">{}</u> ~ [id^="k7" i]{display:none}
rule in a rule ~ <div class="n"><u>{}</u></div> ~ .n { color: red; & u { display: none } }
rule in @supports ~ <u class="s">{}</u> ~ @supports (color: red) { .s { display: none } }
rule in @layer ~ <u class="l">{}</u> ~ @layer a { .l { display: none } }
rule, variable ~ <u class="v">{}</u> ~ :root{--none:none} .v{display:var(--x, var(--none))}"""


def _hide(element: str, style: str = "", body: str = "") -> Callable[[Mail], bytes]:
    """Return the form with good words in an element; style: rules of a sheet."""

    def form(mail: Mail) -> bytes:
        words = mail.words(N_WORDS)
        return mail.page(element.replace("{}", words), style.replace("{}", words), _BODIES[body])

    return form


HIDDEN = {
    **{s[:28]: _hide(f'<div style="{s}">{{}}</div>') for s in re.split(r" \| |\n", _STYLES)},
    **{
        name: _hide(*more)
        for name, *more in (
            row.replace("\\n", "\n").split(" ~ ")
            for row in _ELEMENTS.replace("\n    ", " ").split("\n")
        )
    },
}
