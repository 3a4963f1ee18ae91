"""Pages of HTML as tests read them: with the standard library's parser, and no fault in them."""

import re
from html.parser import HTMLParser

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """The elements and texts of a page; raises AssertionError where tags do not match."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes = [], [], []
        self.texts = []  # (path of open elements, text)
        self.feed(text)
        self.close()
        assert self.open == [], self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, tag
        assert self.open.pop() == tag, (tag, self.getpos())

    def handle_data(self, data):
        self.texts.append((tuple(self.open), data))

    @property
    def text(self):
        """All text outside the style, with single blanks."""
        words = "".join(text for path, text in self.texts if "style" not in path)
        return re.sub(r"\s+", " ", words)

    def within(self, tag):
        """Return the texts inside elements of this name, one for each run of text."""
        return [text for path, text in self.texts if tag in path]


def rows_of(html, label):
    """Return the rows of cells of the table in the region with this label."""
    (table,) = re.findall(rf'aria-label="{re.escape(label)}">(.*?)</table>', html, re.S)
    return [
        [Page(cell).text.strip() for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.S)]
        for row in re.findall(r"<tr[^>]*>(.*?)</tr>", table, re.S)
    ]
