"""Chromium against our reader: which words of a document are shown?

Small documents are made from a seed: elements in elements, with attributes, styles and sheets that
may hide text.  Each word of one is replaced by another of the same width.  If that changes what
Chromium paints, by a contrast that can be read, the word is shown.
"""

import io
import random
import string

from browser import launched
from nbspam.mail.html import read_html

N_DOCUMENTS, N_WORDS, SEED = 200, 3, 1
WIDTH, HEIGHT = 1000, 800  # pixels
MIN_PIXELS, MIN_ROWS = 4, 6  # that differ, of a word that is shown
MIN_CONTRAST, MIN_DIFFERENCE = 1.4, 110
# Words of a hundred on which the two differ; see docs/explanation/visibility.md.
MOST_DIFFERENT = 1.0


def words(text):
    return text.split()


STYLES = """
display:none; display:block; display:inline-block; display:inline; display:contents
visibility:hidden; visibility:visible; visibility:collapse; content-visibility:hidden
font-size:0; font-size:1px; font-size:120%; font-size:14px; font-size:calc(1px + 1px)
font:0/0 a; font:bold 16px monospace; font-size:max(1px,16px); zoom:.05
color:white; color:#fefefe; color:rgb(250,250,250); color:black; color:red; color:transparent
color:rgba(0,0,0,.01); color:hsl(0,0%,99%); color:hsl(120 100% 25%); color:#0000
background:black; background:#fff; background-color:navy; background:url(x.gif); background:white
opacity:0; opacity:.02; opacity:.6; filter:opacity(0); filter:opacity(80%)
height:0;overflow:hidden; max-height:0;overflow:hidden; width:0;overflow:hidden; height:0
height:0;overflow:clip; max-height:100px;overflow:hidden; max-width:0;overflow:hidden
position:absolute;left:-9999px; position:absolute;top:-9999px; position:relative;left:-9999px
position:absolute;inset:-9999px auto auto 0; position:absolute;left:40px; left:-9999px
position:fixed;top:-2000px; position:absolute;clip:rect(0,0,0,0); clip:rect(0,0,0,0)
position:absolute;inset:10px auto auto 20px; clip-path:inset(50%); clip-path:circle(0)
clip-path:polygon(0 0,0 0,0 0); clip-path:inset(0); clip-path:inset(100%)
transform:scale(0); transform:scale(1); transform:translateX(-9999px); transform:rotate(1deg)
transform:scaleY(0); transform:matrix(0,0,0,0,0,0); translate:-9999px; translate:5px; scale:0
scale:1 1; text-indent:-9999px; text-indent:1em; margin-left:-9999px; margin-left:10px
margin-top:-9999px; letter-spacing:1px; line-height:0; line-height:1.2
mask:linear-gradient(transparent,transparent); mask:linear-gradient(black,black)
-webkit-text-fill-color:transparent; -webkit-text-fill-color:black; text-decoration:underline
color:var(--light); color:var(--dark); display:var(--gone); --light:#fff; --dark:#000; --gone:none
color:var(--none,white); color:var(--none,black); white-space:nowrap; float:left; float:right
""".replace("\n", "; ").split("; ")
ATTRIBUTES = """hidden|align=center|color=white|bgcolor=black|aria-hidden=true|title=x|dir=rtl
class=a|class=b|class="a b"|id=i|id=j|class=c title=x""".replace("\n", "|").split("|")
ELEMENTS = words("""
div p span b i font td center h1 ul li blockquote section a em details dialog summary table
small big template noscript object iframe svg option title pre address x
""")
NOT_ALONE = {
    "td": "<table><tr><td{}>{}</td></tr></table>",
    "table": "<table{}><tr><td>{}</td></tr></table>",
    "svg": "<svg{}><text y=20>{}</text></svg>",
    "option": "<datalist><option{}>{}</datalist>",
    "title": "<svg><title{}>{}</title></svg>",
    "li": "<ul><li{}>{}</li></ul>",
    "summary": "<details><summary{}>{}</summary></details>",
    "template": "<template><p{}>{}</p></template>",
}
SELECTORS = words("""
p div span b .a .b #i .a.b td li font *:not(.b) p.a div>b .a>b .a~b .a+b div+p p:nth-child(2)
b:first-child :last-child p~p .c[title] [title] :not(.a):not(body):not(html) .b:nth-child(2n+1)
div:only-child h1:first-of-type :is(.a,.b) .a~.b div~p+p :root body a:link b:hover p:empty
.a:is(p) div.a>*>b
""")
MEDIA = """@media screen|@media print|@media (max-width:480px)|@media (min-width:480px)
@media (prefers-color-scheme:dark)|@media only screen and (min-width:600px)|@media not screen
@supports (display:block)|@media all and (orientation:portrait)""".replace("\n", "|").split("|")


class Document:
    """A document of a seed; `words` are those in it."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.words = []
        pieces = [self.block(self.random.randint(1, 3)) for _ in range(N_WORDS)]
        rules = "".join(self.rule() for _ in range(self.random.choice((0, 0, 1, 2, 3))))
        # Blocks stand apart, so that none covers another.
        body = "\n".join(f"<div>{piece}</div><hr>" for piece in pieces)
        sheet = f"<style>{rules}</style>" if rules else ""
        self.html = f"<!doctype html><html><head>{sheet}</head><body>\n{body}\n</body></html>"

    def word(self):
        """Return a new word in letters that are neither in tags nor in styles."""
        self.words.append("Q" + "".join(self.random.choices("BDGHKMNRSVWXZ", k=6)))
        return self.words[-1]

    def declarations(self):
        """Return a few, of which about a half hides."""
        return ";".join(self.random.choices(STYLES, k=self.random.choice((1, 1, 2))))

    def attributes(self):
        """Return attributes, with a blank before each."""
        own = self.random.sample(ATTRIBUTES, self.random.choice((0, 0, 1)))
        if self.random.random() < 0.45:
            own.append(f'style="{self.declarations()}"')
        return "".join(f" {each}" for each in own)

    def block(self, depth):
        """Return an element with a word in its innermost element, and perhaps others."""
        name = self.random.choice(ELEMENTS)
        inner = self.word() if depth == 1 else self.block(depth - 1)
        if self.random.random() < 0.2:
            inner += f" <b class=b>{self.word()}</b>"
        form = NOT_ALONE.get(name, f"<{name}{{}}>{{}}</{name}>")
        return form.format(self.attributes(), inner)

    def rule(self):
        """Return a rule of a sheet."""
        selector = ", ".join(self.random.sample(SELECTORS, self.random.choice((1, 1, 2))))
        declarations = self.declarations()
        if self.random.random() < 0.2:
            where = self.random.choice(("::before", "::after", ":before"))
            selector = f"{self.random.choice(SELECTORS)}{where}"
            declarations = f"content:'{self.word()}';{self.declarations()}"
        if self.random.random() < 0.1:
            declarations += "!important"
        found = f"{selector} {{{declarations}}}"
        return f"{self.random.choice(MEDIA)} {{{found}}}" if self.random.random() < 0.2 else found


def others(word):
    """Return a word of the same width that shares no letter with it at any place."""
    return "".join(string.ascii_lowercase[ord(letter) - ord("A")] for letter in word)


class Painter:
    """A page of Chromium that shows documents, with no script and one font."""

    def __init__(self, browser):
        context = browser.new_context(
            viewport={"width": WIDTH, "height": HEIGHT}, offline=True, java_script_enabled=False
        )
        self.page = context.new_page()

    def painted(self, html):
        """Return the pixels of a document, (height, width, 3)."""
        import numpy as np
        from PIL import Image

        # `sheet` weighs less than any rule of the document.
        sheet = "<style>*{font-family:monospace}</style>"
        self.page.set_content(html.replace("<head>", f"<head>{sheet}", 1))
        picture = Image.open(io.BytesIO(self.page.screenshot(full_page=False)))
        return np.asarray(picture.convert("RGB")).astype(float)


def luminance(pixels):
    """Return the relative luminance of pixels (n, 3), as WCAG 2.2 defines it."""
    import numpy as np

    share = pixels / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def differs(before, after):
    """Return whether two pictures differ so much that a word can be read."""
    import numpy as np

    changed = (before != after).any(axis=2)
    one, other = before[changed], after[changed]
    light, dark = (f(luminance(one), luminance(other)) for f in (np.maximum, np.minimum))
    readable = (light + 0.05) / (dark + 0.05) >= MIN_CONTRAST
    readable |= abs(one - other).max(axis=1, initial=0) > MIN_DIFFERENCE
    rows = np.unique(changed.nonzero()[0][readable])
    return int(readable.sum()) >= MIN_PIXELS and len(rows) >= MIN_ROWS


def differences(painter, document):
    """Return the words on which the two differ: word, whether Chromium shows it."""
    before = painter.painted(document.html)
    shown = read_html([document.html.encode()])[0].visible.decode()
    found = []
    for word in document.words:
        for _ in range(2):  # Chromium may be late with a picture
            after = painter.painted(document.html.replace(word, others(word)))
            is_painted = differs(before, after)
            if is_painted == (word in shown):
                break
            before = painter.painted(document.html)
        else:
            found.append((word, is_painted))
    return found


def test_chromium_and_the_reader_agree_on_what_is_shown():
    with launched() as browser:
        painter = Painter(browser)
        wrong = []
        n_words = 0
        for number in range(N_DOCUMENTS):
            document = Document(f"{SEED} {number}")
            n_words += len(document.words)
            wrong += [(number, *each) for each in differences(painter, document)]
    print(f"{n_words} words, {len(wrong)} judged otherwise: {wrong}")
    assert 100 * len(wrong) / n_words <= MOST_DIFFERENT
