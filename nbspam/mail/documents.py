"""The texts of attached documents, read by libraries in a process that may be killed.

PDF, Office, RTF and pictures: a document may make a library hang, crash, or take memory without
end.  So `DocumentReader` calls the libraries in a process of its own, which runs
`answer_requests`.  The system ends that process if a document takes more processor time or memory
than it may, and the reader gives it up if it does not answer.
XML is never given to a parser: its tags are cut out, so no entity is expanded and nothing fetched.
"""

import atexit
import ctypes
import html
import io
import os
import re
import signal
import struct
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, groupby, islice
from math import hypot, inf
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from nbspam.charsets import to_utf8
from nbspam.mail.attachments import DOCUMENTS, IMAGES, look_at_file
from nbspam.mail.headers import LIMITS, decode_transfer, open_message
from nbspam.mail.office import LEAST_SIZE, split_office, with_usual_prefixes
from nbspam.mail.ole import EncryptedError, ole_texts
from nbspam.mail.parts import Parts
from nbspam.mail.wrappings import LIGHT, rtf_texts

if TYPE_CHECKING:
    from PIL.Image import Image

_PATIENCE = 10.0  # seconds of the clock after which the process is given up
_REQUEST = struct.Struct("<8sdI")  # kind, seconds of processor time that are left, bytes of data
_ANSWER = struct.Struct("<dI")  # seconds that were used, bytes of texts, each ended by a zero
_MAX_ANSWER = 4 << 20  # bytes
_FACT = re.compile(r"[a-z0-9-]{1,30}")
_LINK = re.compile(r"\S+", re.ASCII)
_PROGRAM = "from nbspam.mail.documents import answer_requests; answer_requests()"
_MEMORY = 1 << 30  # bytes of address space
_MAX_TEXT = 256 << 10  # bytes of text of one document
_MAX_LINKS = 200


class Document(NamedTuple):
    """The text of a document, the links behind it, facts, and text that is not shown."""

    text: str
    links: list[str]
    facts: tuple[str, ...] = ()
    hidden: str = ""


_SLOW = Document("", [], ("attached-slow",))


class DocumentReader:
    """The process that reads documents: started at the first one, and again after each loss."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.process: subprocess.Popen[bytes] | None = None

    def read(self, files: Sequence[tuple[str, bytes]], seconds: float) -> list[Document]:
        """Read the documents of a message; never raises.

        files: the kind, one of DOCUMENTS, and the data of each.  seconds: of processor time for
        all of them.  Documents that need more are not read, which is a fact.
        """
        documents = []
        with self.lock:
            for kind, data in files:
                used, document = self.ask(kind, data, seconds) if seconds > 0 else (0.0, _SLOW)
                seconds -= used
                documents.append(document)
                if document is _SLOW:
                    break
        return documents

    def ask(self, kind: str, data: bytes, seconds: float) -> tuple[float, Document]:
        """Return the seconds that were used, and a document: _SLOW if the process is lost."""
        try:
            if self.process is None:
                self.process = subprocess.Popen(
                    [sys.executable, "-P", "-c", _PROGRAM],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
            assert self.process.stdin is not None
            assert self.process.stdout is not None
            patience = Timer(_PATIENCE, self.process.kill)
            patience.start()
            try:
                self.process.stdin.write(_REQUEST.pack(kind.encode(), seconds, len(data)) + data)
                self.process.stdin.flush()
                used, size = _ANSWER.unpack(self.process.stdout.read(_ANSWER.size))
                answer = self.process.stdout.read(min(size, _MAX_ANSWER)).decode("utf-8", "ignore")
            finally:
                patience.cancel()
            text, hidden, links, facts, _ = answer.split("\0")  # the end is missing if it ended
            return used, Document(text, _LINK.findall(links), tuple(_FACT.findall(facts)), hidden)
        except (OSError, RuntimeError, ValueError, struct.error):  # RuntimeError: no thread
            self.stop()
            return 0.0, _SLOW

    def stop(self) -> None:
        """End the process, if there is one."""
        if self.process is not None:
            with suppress(OSError), self.process as process:  # the rest of a request is lost
                process.kill()
            self.process = None


READER = DocumentReader()
atexit.register(READER.stop)
if hasattr(os, "register_at_fork"):  # a process of its own for each process
    os.register_at_fork(after_in_child=READER.__init__)  # type: ignore[misc]


# --- the process -----------------------------------------------------------------------------


def facts_of_hidden(text: str) -> tuple[str, ...]:
    """Return the fact that a document hides text, if there is a letter or a digit in it."""
    return ("attached-hidden",) if any(map(str.isalnum, text)) else ()


def answer_requests() -> None:
    """Answer requests from standard input on standard output."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    with suppress(ImportError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))  # last: macOS refuses it
    while len(head := requests.read(_REQUEST.size)) == _REQUEST.size:
        name, seconds, size = _REQUEST.unpack(head)
        _answer(answers, name.rstrip(b"\0").decode(), requests.read(size), seconds)


def _answer(answers: BinaryIO, kind: str, data: bytes, seconds: float) -> None:
    if kind != "rtf":  # the time in which libraries are loaded is nobody's
        import olefile  # noqa: F401
        import PIL.Image
        import pypdfium2  # noqa: F401
        import zxingcpp  # noqa: F401

        PIL.Image.preinit()
    start = time.process_time()
    _set_timer(seconds)
    try:
        document = read_document(kind, data)
    except Exception:  # whatever a library raises
        document = Document("", [], ("attached-unreadable",))
    _set_timer(0)
    links = "\n".join(document.links[:_MAX_LINKS])
    said = (document.text, document.hidden, links, " ".join(document.facts))
    texts = [each.replace("\0", "").encode("utf-8", "replace")[:_MAX_TEXT] for each in said]
    answer = b"\0".join([*texts, b""])
    answers.write(_ANSWER.pack(time.process_time() - start, len(answer)) + answer)
    answers.flush()


def _set_timer(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)  # which ends the process


def read_document(kind: str, data: bytes) -> Document:
    """Return the text of a document; raises any error of its library."""
    if kind == "pdf":
        return _read_pdf(data)
    if kind in IMAGES:
        return _read_image(data)
    if kind == "drawn":
        return _read_drawn(data)
    if kind == "rtf":
        shown, hidden = (text.decode("utf-8", "replace") for text in rtf_texts(data))
        return Document(shown, [], facts_of_hidden(hidden), hidden)
    if kind == "ole":
        return _read_ole(data)
    return _read_office(data)


def _read_ole(data: bytes) -> Document:
    """Return the text of an OLE file, and of the documents attached to a saved message."""
    try:
        text, unseen, files = ole_texts(data)
    except EncryptedError:
        return Document("", [], ("encrypted",))
    read = [Document(text, [], facts_of_hidden(unseen), unseen)]
    for file in files:
        kind = look_at_file(b"", b"", file, len(file)).kind
        if kind in DOCUMENTS:
            with suppress(Exception):  # whatever a library raises
                read.append(read_document(kind, file))
    return _joined(read)


def _joined(read: Iterable[Document]) -> Document:
    texts, links, facts, hidden = zip(*read, strict=True)
    every_link, every_fact = list(chain.from_iterable(links)), {*chain.from_iterable(facts)}
    text, unseen = ("\n".join(filter(None, each)) for each in (texts, hidden))
    return Document(text, every_link, tuple(every_fact), unseen)


# --- Office and OpenDocument -----------------------------------------------------------------

_PARTS = re.compile(
    r"(?:word|xl)/(?!calcChain)\w+\.xml|xl/(?:worksheets|drawings)/\w+\.xml"
    r"|ppt/(?:slides|notesSlides)/\w+\.xml|(?:word|xl|ppt)/(?:charts/chart|diagrams/data)\w*\.xml"
    r"|(?:word|xl|ppt)/(?:\w+/)?(?:\w*[cC]omment\w*\.xml|_rels/[\w.]+\.rels)"
    r"|(?:docProps/core|META-INF/manifest|(?:Object \d+/)?content|styles)\.xml"
)
_LOOKS = re.compile(r"ppt/(?:presentation|(?:slideLayouts|slideMasters|theme)/\w+)\.xml")
_MANIFEST = "META-INF/manifest.xml"
_TITLES = "docProps/core.xml"  # which no program shows beside the text
_PICTURES = re.compile(r"(?:(?:word|xl|ppt)/media|Pictures)/\w+\.(?:png|jpe?g|gif|bmp)")
_PAGES = re.compile(r"(?:\w+/)*[\w-]+\.(?:html?|mht(?:ml)?)")  # which Word takes into its text
_MAX_PICTURE = 256 << 10  # bytes: codes are small, and photographs take time
_MAX_XML = 4 << 20  # bytes of all parts, unpacked, without their empty paragraphs
_MAX_UNPACKED = 16 << 20  # bytes of all parts with them
_PIECE = 1 << 20  # bytes that are unpacked at once
_MAX_PARTS = 100
# Paragraphs without text, which would take the place and the time of text behind them.
_EMPTY_PARAGRAPH = re.compile(
    rb"<(w|a|text):p(?=[\s/>])[^<>]*+"
    rb"(?:(?<=/)>|>\s*+(?:</?\1:(?![pa][\s/>])[^<>]*+>\s*+){0,50}</\1:p>)"
)
# Comments and instructions, which may look like namespaces, and data, which are text.
_NO_MARKUP = re.compile(
    rb"<(?:\?.*?(?:\?>|\Z)|!--.*?(?:-->|\Z)|!\[CDATA\[(.*?)(?:\]\]>|\Z))", re.DOTALL
)
_SINGLE_QUOTES = re.compile(rb"(?<==)'([^'\"<>]*+)'")  # around the value of an attribute
# Where words end, although no blank stands there.
_ENDS = re.compile(
    rb"(?=</?(?:w:(?:p|tc|p?tab|sym|br|cr|rt|instrText)|a:(?:p|br)"
    rb"|text:(?:p|h|s|tab|line-break|note|ruby-text)|office:annotation|svg:(?:title|desc)|dc:\w+|cp:\w+"
    rb"|(?:odd|even|first)\w+|si|is|text|(?:c:)?[fv])[\s/>])"
)
_TAG = re.compile(rb"<[^<>]*+>?")
# Numbers, formulas without texts, the places of pictures, and that of a header or footer.
_NO_TEXT = re.compile(
    rb"<(?:c:)?(?:v>[\d.E+-]*+</(?:c:)?v>|f(?:ormula[12]?)?\b[^<>]*+>[^<\"&]*+</(?:c:)?f\w*+>)"
    rb"|<(?:odd|even|first)\w+>&amp;[LCR]|<cp:revision>\d*+</cp:revision>"
    rb"|<(?:wp\w*|xdr|dcterms|c:formatCode|a:tableStyleId|(?:col|row)(?:Off)?)\b[^<>]*+>[^<]++</[^<>]*+>"
)
# Codes of fields, and formulas with texts, whose results are shown; how text is pronounced.
_CODE = re.compile(
    rb"<(?:w:instrText\b[^<>]*+>(?!\s*+(?:EQ|MACROBUTTON|GOTOBUTTON)\b)|rPh\b[^<>]*+>\s*+<t\b[^<>]*+>"
    rb"|formula[12]?\b[^<>]*+>(?=[^<\"&]*+[\"&])"
    rb"|f\b[^<>]*+>(?=[^<\"&]*+[\"&][^<]*+</f>\s*+<v>[^<]))([^<]++)"
)
_LINK_IN_CODE = re.compile(r"(?:[a-zA-Z]{3,9}://|mailto:|www\.)[^\s\"]{3,2000}")
# Of the header before a file (APPNOTE 6.3.9): method and size, and the lengths before the data.
_ZIP_FILE = re.compile(b"PK\3\4.{4}(..).{8}(.{4}).{4}(..)(..)", re.DOTALL)
_TARGET = re.compile(rb'(?:Target|xlink:href)="([a-zA-Z]{3,9}:[^"]{1,2000})"')


def _read_office(data: bytes) -> Document:
    with _opened(data) as file:
        parts, facts = _xml_of_parts(file)
        if b"encryption-data" in parts.pop(_MANIFEST, b""):
            return Document("", [], ("encrypted",))
        targets = b"\n".join(chain.from_iterable(map(_TARGET.findall, parts.values())))
        links = html.unescape(targets.decode("utf-8", "replace")).split()
        said = b"\n".join(chain.from_iterable(map(_CODE.findall, parts.values())))
        codes = html.unescape(said.decode("utf-8", "replace"))
        links += _LINK_IN_CODE.findall(codes)
        titles = _text_of_xml(parts.pop(_TITLES, b""))
        split = list(split_office(parts))
        texts = "\n".join(_text_of_xml(shown) for shown, _ in split)
        hidden = "\n".join(_text_of_xml(xml) for _, xml in split)
        facts.update(facts_of_hidden(hidden))
        read = [Document(texts, links, tuple(facts), f"{hidden}\n{titles}\n{codes}")]
        for names, most, read_file in (
            (_PICTURES, _MAX_PICTURE, _read_image),
            (_PAGES, _PIECE, _read_page),
        ):
            small = [each for each in file.infolist() if each.file_size <= most]
            chosen = [each for each in small if names.fullmatch(each.filename)]
            for each in chosen[:_PAGES_WITH_PICTURES]:
                with suppress(Exception):  # whatever a library raises
                    read.append(read_file(file.read(each)))
    return _joined(read)


def _opened(data: bytes) -> zipfile.ZipFile:
    """Return an archive; one without its directory is put together again, as Office does."""
    try:
        return zipfile.ZipFile(io.BytesIO(data))
    except zipfile.BadZipFile:
        file = zipfile.ZipFile(io.BytesIO(), "w")
        # By the headers before the files, because the directory may be cut off.
        for found in _ZIP_FILE.finditer(data):
            method, size, length, more = (int.from_bytes(n, "little") for n in found.groups())
            name = data[found.end() : found.end() + length]
            start = found.end() + length + more
            content = b"" if method else data[start : start + size]
            if method == zipfile.ZIP_DEFLATED:
                with suppress(zlib.error):
                    content = zlib.decompressobj(-15).decompress(data[start:], _MAX_XML)
            file.writestr(name.decode("utf-8", "replace"), content)
        return file


def _xml_of_parts(file: zipfile.ZipFile) -> tuple[dict[str, bytes], set[str]]:
    """Return the XML of each part by its name, in UTF-8, and the facts that some is not read."""
    parts = {}
    facts = set()
    left, unread = _MAX_XML, _MAX_UNPACKED
    names = file.namelist()
    chosen = [*filter(_PARTS.fullmatch, names), *filter(_LOOKS.fullmatch, names)]
    for name in chosen[:_MAX_PARTS]:
        xml = b""
        try:
            with file.open(name) as part:
                while len(xml) < left and unread > 0 and (piece := part.read(_PIECE)):
                    unread -= len(piece)
                    xml += _EMPTY_PARAGRAPH.sub(b"\n", piece)
        except Exception:  # a damaged part hides no other
            facts.add("attached-unreadable")
        xml = xml[:left]
        left -= len(xml)
        if xml.startswith((b"\xff\xfe", b"\xfe\xff")):
            xml = xml.decode("utf-16", "replace").encode()
        xml = _NO_MARKUP.sub(lambda found: (found[1] or b"").replace(b"<", b"&lt;"), xml)
        xml = _SINGLE_QUOTES.sub(rb'"\1"', xml).replace(b" />", b"/>")
        parts[name] = with_usual_prefixes(xml)
    if len(chosen) > _MAX_PARTS or left <= 0 or unread <= 0:
        facts.add("attached-long")
    return parts, facts


def _read_page(data: bytes) -> Document:
    """Return the text of a page, or of a saved page (MHTML), which is a message."""
    from nbspam.mail.html import read_html

    texts = [text for text in Parts(open_message(data), LIMITS).texts if text.is_html]
    pages = [(decode_transfer(text.data, text.encoding), text.charset) for text in texts]
    read = read_html([to_utf8(*page)[0] for page in pages or [(data, "")]])
    shown = b"\n".join([page.visible for page in read]).decode("utf-8", "replace")
    hidden = b"\n".join([page.hidden for page in read]).decode("utf-8", "replace")
    links = [url.decode("utf-8", "replace") for page in read for url in page.urls]
    return Document(shown, links, facts_of_hidden(hidden), hidden)


def _text_of_xml(xml: bytes) -> str:
    xml = xml.replace(b"<w:noBreakHyphen/>", b"-")
    text = _TAG.sub(b"", _ENDS.sub(b"\n", _NO_TEXT.sub(b"", _CODE.sub(b"", xml))))
    return html.unescape(text.decode("utf-8", "replace"))


# --- PDF -------------------------------------------------------------------------------------

_MAX_PAGES = 20
_PAGES_WITH_PICTURES = 2
_SCALE = 1.5  # pixels of a point: a code is found if it is at least an inch wide
_MAX_SIDE = 2000  # pixels
_MAX_WORDS = 2000  # of a page, that are looked for in its picture
_LEAST_CONTRAST = 25  # of 255 shades of grey
_BEHIND_LATIN = 0x250
_BLANK = 0.15  # of the height of letters
_WORD = re.compile(r"\w\S*")
_LEFTWARD = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]++")  # such as Arabic and Hebrew
# Of a line that may be written piece by piece.
_SCATTERED = re.compile(r"(?<!\S)(?:[a-zA-Z\u00c0-\u052f\u1e00-\u1fff] ){3}.*")
# At the end of a line; for a minus there pdfium has other signs.
_HYPHEN = re.compile("(?:[\x02\ufffe]|\u2010\r?\n)(?=(\\w))")


def _read_pdf(data: bytes) -> Document:
    import pypdfium2
    from pypdfium2 import raw

    start = time.process_time()
    file = pypdfium2.PdfDocument(data)
    file.init_forms()
    n_pages = min(len(file), _MAX_PAGES)
    read = [Document("", [], (f"pages-{n_pages}",))]
    for number in range(n_pages):
        with suppress(pypdfium2.PdfiumError):  # a damaged page hides no other from viewers
            page = file[number]
            read.append(Document("", [*_links_of_page(file.raw, page.raw)]))
            # Fields of forms, and notes that lie on the page, become text of it, in the box of
            # the page itself.
            page.set_mediabox(*page.get_bbox())
            if raw.FPDFPage_Flatten(page.raw, raw.FLAT_NORMALDISPLAY) == raw.FLATTEN_SUCCESS:
                page.close()
                page = file[number]
            text_page = page.get_textpage()
            # One that takes as long to draw as all before it would lose the text of all.
            is_late = 0 < signal.getitimer(signal.ITIMER_PROF)[0] < time.process_time() - start
            if number >= _PAGES_WITH_PICTURES or is_late:
                text = text_page.get_text_range()
                is_odd = _LEFTWARD.search(text) or _SCATTERED.search(text)
                read.append(Document(_whole_words(_letters(text_page)[0] if is_odd else text), []))
            else:
                scale = min(_SCALE, _MAX_SIDE / max(*page.get_size(), 1))
                picture = page.render(scale=scale, grayscale=True).to_pil()
                read += [_split_by_picture(page, text_page, picture), _codes(picture)]
            text_page.close()
            page.close()
    return _joined(read)


def _split_by_picture(page: Any, text_page: Any, picture: "Image") -> Document:
    """Return the words of a page that its picture shows, and the others as hidden.

    White, covered and transparent text is not in the picture, and small text too small.  The
    text behind a scanned page is transparent, too, but the scan shows letters in its place.
    """
    from pypdfium2 import raw

    x, y, matrix = ctypes.c_int(), ctypes.c_int(), raw.FS_MATRIX()
    colour = [ctypes.c_uint() for _ in "rgba"]

    def may_lack_its_font(letter: int) -> bool:
        # pdfium has fonts for Latin letters, and draws others only if the file or the system has.
        written = raw.FPDFText_GetTextObject(text_page.raw, letter)
        raw.FPDFText_GetFillColor(text_page.raw, letter, *colour)
        *shades, opacity = (each.value for each in colour)
        return (
            raw.FPDFText_GetUnicode(text_page.raw, letter) >= _BEHIND_LATIN
            and opacity > 0
            and min(shades) < LIGHT
            and raw.FPDFTextObj_GetTextRenderMode(written) != raw.FPDF_TEXTRENDERMODE_INVISIBLE
            and not raw.FPDFFont_GetIsEmbedded(raw.FPDFTextObj_GetFont(written))
        )

    def is_shown(first: int, last: int) -> bool:
        raw.FPDFText_GetMatrix(text_page.raw, first, matrix)
        size = raw.FPDFText_GetFontSize(text_page.raw, first) * hypot(matrix.c, matrix.d)
        (x0, y0, x1, y1), (x2, y2, x3, y3) = map(text_page.get_charbox, (first, last))
        across, down = [], []  # of two corners around the first letter and the last, in pixels
        for corner in ((min(x0, x2), min(y0, y2)), (max(x1, x3), max(y1, y3))):
            raw.FPDF_PageToDevice(page.raw, 0, 0, *picture.size, 0, *corner, x, y)
            across.append(x.value)
            down.append(y.value)
        left, top = max(min(across), 0), max(min(down), 0)
        right, bottom = min(max(across) + 1, picture.width), min(max(down) + 1, picture.height)
        if size < LEAST_SIZE or left >= right or top >= bottom:  # too small, or off the page
            return False
        shades = picture.crop((left, top, right, bottom)).getextrema()
        dark, light = cast("tuple[int, int]", shades)
        return light - dark >= _LEAST_CONTRAST or may_lack_its_font(first)

    text, places = _letters(text_page)
    spans = [word.span() for word in islice(_WORD.finditer(text), _MAX_WORDS)]
    hidden = [span for span in spans if not is_shown(places[span[0]], places[span[1] - 1])]
    ends = [0, *chain.from_iterable(hidden), len(text)]
    shown = " ".join(text[start:end] for start, end in zip(ends[::2], ends[1::2], strict=True))
    unseen = _whole_words(" ".join(text[start:end] for start, end in hidden))
    return Document(_whole_words(shown), [], facts_of_hidden(unseen), unseen)


def _letters(text_page: Any) -> tuple[str, list[int]]:
    """Return the text of a page as one reads it, and the number of each letter in pdfium's order.

    Lines whose letters are written piece by piece are put together by their places.
    """
    from pypdfium2 import raw

    box, places = text_page.get_charbox, list(range(text_page.count_chars()))
    letters = "".join(chr(raw.FPDFText_GetUnicode(text_page.raw, i)) for i in places)
    for found in reversed([*_SCATTERED.finditer(letters)]):
        line = slice(letters.rfind("\n", 0, found.start()) + 1, found.end())
        placed = sorted((box(i, loose=True), i) for i in places[line] if not letters[i].isspace())
        if max(low for (_, low, _, _), _ in placed) < min(high for (_, _, _, high), _ in placed):
            in_order, end = [], inf
            for (left, low, right, high), i in placed:
                in_order += [-1, i] if left - end > (high - low) * _BLANK else [i]
                end = right
            places[line] = [*in_order, -1]

    def rightward(word: re.Match[str]) -> str:
        # Letters in one box are a ligature, which pdfium turns round with the word.
        glyphs = [[*same] for _, same in groupby(places[slice(*word.span())], box)]
        is_turned = box(glyphs[0][0]) < box(glyphs[-1][0])
        order = chain.from_iterable(glyphs[::-1] if is_turned else map(reversed, glyphs))
        return "".join(letters[i] for i in order)

    text = "".join(" " if i < 0 else letters[i] for i in places)
    return _LEFTWARD.sub(rightward, text), places


def _whole_words(text: str) -> str:
    """Return the text of a page without the hyphens that cut words at the ends of lines."""
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _HYPHEN.sub(lambda found: "" if found[1].islower() else "-", text)


def _links_of_page(file: Any, page: Any) -> Iterator[str]:
    """Yield the addresses that the links of a page lead to."""
    from pypdfium2 import raw

    place, link = ctypes.c_int(0), raw.FPDF_LINK()
    for _ in range(_MAX_LINKS):
        if not raw.FPDFLink_Enumerate(page, ctypes.byref(place), ctypes.byref(link)):
            break
        action = raw.FPDFLink_GetAction(link)
        buffer = ctypes.create_string_buffer(2048)
        size = raw.FPDFAction_GetURIPath(file, action, buffer, len(buffer)) if action else 0
        if 1 < size <= len(buffer):
            yield buffer.value.decode("utf-8", "replace")


# --- pictures --------------------------------------------------------------------------------

_MAX_PIXELS = 40_000_000
_FORMATS = [kind.upper() for kind in IMAGES]  # Pillow would run other programs for some others
_LEAST_SIDE = 21  # pixels; no code is smaller


def _read_image(data: bytes) -> Document:
    import PIL.Image
    import PIL.ImageFile

    PIL.ImageFile.LOAD_TRUNCATED_IMAGES = True  # as mail programs do
    image: Image = PIL.Image.open(io.BytesIO(data), formats=_FORMATS)
    width, height = image.size
    if width * height > _MAX_PIXELS:
        return Document("", [], ("attached-long",))
    if min(width, height) < _LEAST_SIDE:
        return Document("", [])
    image.draft("L", (_MAX_SIDE, _MAX_SIDE))  # a JPEG is decoded smaller
    image = image.convert("RGBA" if image.has_transparency_data else "L")
    image.thumbnail((_MAX_SIDE, _MAX_SIDE))
    if image.mode == "RGBA":  # mail programs show it on white
        image = PIL.Image.alpha_composite(PIL.Image.new("RGBA", image.size, "white"), image)
    return _codes(image.convert("L"))


# Block characters that are dark above and below: an upper half, a lower half, and a full block.
_DARK = ("\u2580\u2588", "\u2584\u2588")
_MAX_DRAWN = 500  # rows of them, and characters of a row


def _read_drawn(data: bytes) -> Document:
    """Return the texts of the codes that rows of block characters draw."""
    import PIL.Image
    import PIL.ImageOps

    lines = data.decode("utf-8", "replace").split("\n")
    found = [row[:_MAX_DRAWN] for row in lines if any(each in row for each in "".join(_DARK))]
    rows = [*found[:_MAX_DRAWN], " "]
    width = max(map(len, rows))
    halves = [(row.ljust(width), dark) for row in rows for dark in _DARK]
    shades = bytes([0 if each in dark else 255 for row, dark in halves for each in row])
    image = PIL.Image.frombytes("L", (width, len(halves)), shades)
    return _codes(PIL.ImageOps.expand(PIL.ImageOps.scale(image, 3), 24, fill=255))


def _codes(image: "Image") -> Document:
    """Return the texts of the codes in a picture."""
    import zxingcpp

    said = [code.text for code in zxingcpp.read_barcodes(image)]
    return Document("\n".join(said), [], ("code",) if said else ())
