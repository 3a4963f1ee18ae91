"""Which text of Office and OpenDocument files counts as shown."""

import re

import pytest

from nbspam.mail.documents import Document, read_document
from support import packed

WHITE = '<w:color w:val="FFFFFF"/>'
SHADED = '<w:shd w:val="clear" w:fill="204060"/>'
STYLES = (
    '<w:docDefaults><w:rPr><w:sz w:val="4"/></w:rPr></w:docDefaults>'
    '<w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:sz w:val="20"/></w:style>'
    '<w:style w:type="character" w:styleId="Quiet"><w:rPr><w:vanish/></w:rPr></w:style>'
    '<w:style w:type="paragraph" w:styleId="Still"><w:basedOn w:val="Quiet"/></w:style>'
    '<w:style w:styleId="Loud"><w:basedOn w:val="Quiet"/><w:vanish w:val="0"/></w:style>'
    '<w:style w:type="character" w:styleId="A">' + '<w:basedOn w:val="A"/>' * 9 + "</w:style>"
    f'<w:style w:type="table" w:styleId="Plain">{WHITE}</w:style>'
    f'<w:style w:type="table" w:styleId="Grid"><w:tblStylePr>{SHADED}{WHITE}</w:tblStylePr>'
)


def read(kind: str, **parts: str) -> Document:
    """Return what is read of a file; two low lines stand for the slash in the name of a part."""
    named = {f"{name.replace('__', '/')}.xml": xml.encode() for name, xml in parts.items()}
    return read_document(kind, packed(named, "zip"))


def check(found: Document, is_hidden: bool) -> None:
    shown, hidden = ("a b", "secret") if is_hidden else ("a secret b", "")
    assert (" ".join(found.text.split()), found.hidden.strip()) == (shown, hidden)
    assert ("attached-hidden" in found.facts) == is_hidden


@pytest.mark.parametrize(("said", "is_hidden"), [
    ("<w:vanish/>", True), ('<w:vanish w:val="0"/>', False), (WHITE, True),
    ('<w:color w:val="F4F6F4"/>', True), ('<w:color w:val="auto"/>', False),
    (WHITE + SHADED, False),
    ('<w:shd w:val="clear" w:fill="000000"/>', False),  # automatic colours can be read
    (WHITE + '<w:highlight w:val="red"/>', False), ('<w:color w:val="204060"/>' + SHADED, True),
    ('<w:sz w:val="8"/>', True), ('<w:sz w:val="9"/><w:szCs w:val="2"/>', False),
    ('<w:rStyle w:val="Quiet"/>', True), ('<w:rStyle w:val="Quiet"/><w:vanish w:val="0"/>', False),
    ('<w:rStyle w:val="A"/>', False),  # it is based on itself
    ("<w:rPrChange><w:rPr><w:vanish/></w:rPr></w:rPrChange>", False),
])  # fmt: skip
def test_what_a_run_of_word_says(said, is_hidden):
    run = f"<w:p><w:r><w:rPr>{said}</w:rPr><w:t>secret</w:t></w:r></w:p>"
    body = f"<w:p><w:r>a</w:r></w:p>{run}<w:p><w:r>b</w:r></w:p>"
    check(read("docx", word__document=body, word__styles=STYLES), is_hidden)


RUN = f"<w:p><w:r><w:rPr>{WHITE}</w:rPr>secret</w:r></w:p>"


@pytest.mark.parametrize(("xml", "is_hidden"), [
    ('<w:p><w:pPr><w:pStyle w:val="Still"/></w:pPr><w:r>secret</w:r></w:p>', True),
    ('<w:p><w:pPr><w:pStyle w:val="Loud"/></w:pPr><w:r>secret</w:r></w:p>', False),
    ("<w:p><w:rPr><w:del/><w:vanish/></w:rPr><w:r>secret</w:r></w:p>", False),
    ("<w:p><w:del><w:r><w:delText>secret</w:delText></w:r></w:del></w:p>", True),
    ("<w:p><w:moveFrom><w:r>secret</w:r></w:moveFrom></w:p>", True),
    (f"<w:tbl><w:tc>{RUN}</w:tc></w:tbl>", True),
    (f"<w:tbl><w:tc><w:tcPr>{SHADED}</w:tcPr>{RUN}</w:tc></w:tbl>", False),
    (f'<w:tbl><w:tblStyle w:val="Grid"/><w:tc>{RUN}</w:tc></w:tbl>', False),
    (f'<w:tbl><w:tblStyle w:val="Plain"/><w:tc>{RUN}</w:tc></w:tbl>', True),
    (f"<w:p><w:r><w:txbxContent>{RUN}</w:txbxContent></w:r></w:p>", False),
    (f'<wp:anchor behindDoc="1"/>{RUN}', False),
    (f'<w:background w:color="204060"></w:background>{RUN}', False),
])  # fmt: skip
def test_what_stands_around_a_run_of_word(xml, is_hidden):
    body = f"<w:p><w:r>a</w:r></w:p>{xml}<w:p><w:r>b</w:r></w:p>"
    check(read("docx", word__document=body, word__styles=STYLES), is_hidden)


@pytest.mark.parametrize(("size", "is_hidden"), [(100, True), (1200, False)])
def test_sizes_on_slides(size, is_hidden):
    run = f'<a:r><a:rPr sz="{size}"/>secret</a:r>'
    slide = f"<p:sld><a:p>a</a:p><p:sp><a:p>{run}</a:p></p:sp><a:p>b</a:p></p:sld>"
    check(read("pptx", ppt__slides__slide1=slide), is_hidden)


RED = '<a:solidFill><a:srgbClr val="FF0000"/></a:solidFill>'
BLUE = RED.replace("FF0000", "0000FF")
BG1 = '<a:solidFill><a:schemeClr val="bg1"/></a:solidFill>'
LEVELS = {
    "ppt/slides/_rels/slide1.xml.rels": '<R Target="../slideLayouts/slideLayout1.xml"/>',
    "ppt/slideLayouts/slideLayout1.xml": "<p:sldLayout/>",
    "ppt/slideLayouts/_rels/slideLayout1.xml.rels": '<R Target="../slideMasters/m1.xml"/>',
    "ppt/slideMasters/m1.xml": '<p:bg><p:bgRef idx="1001"><a:schemeClr val="bg1"/></p:bgRef>'
    '</p:bg><p:clrMap bg1="lt1" tx1="dk1"/>',
    "ppt/slideMasters/_rels/m1.xml.rels": '<R Target="../theme/theme1.xml"/>',
    "ppt/theme/theme1.xml": '<a:lt1><a:sysClr val="window" lastClr="FF0000"/></a:lt1><a:dk1>'
    '<a:srgbClr val="0000FF"/></a:dk1></a:clrScheme><a:bgFillStyleLst><a:solidFill>'
    '<a:schemeClr val="phClr"/></a:solidFill></a:bgFillStyleLst>',
    "ppt/presentation.xml": '<p:sldSz cx="1000" cy="700"/>',
}


def place(left: int, top: int, width: int, height: int) -> str:
    return f'<a:xfrm><a:off x="{left}" y="{top}"/><a:ext cx="{width}" cy="{height}"/></a:xfrm>'


WIDE = place(0, 0, 10**7, 10**7)
FILLED = f"<p:sp><p:spPr>{WIDE}{RED}</p:spPr></p:sp>"
TITLE = '<p:sp><p:ph type="ctrTitle"/>'
BESIDE = f"<p:sp><p:spPr>{place(10**8, 0, 9, 9)}{RED}</p:spPr></p:sp>"


def check_slide(shape: str, run: str, is_hidden: bool, **parts: str) -> None:
    slide = f"<p:sld>{shape}<a:p><a:r><a:rPr>{run}</a:rPr>secret</a:r></a:p></p:sp></p:sld>"
    first = "<p:sld><a:p><a:r>a</a:r></a:p>"
    slide = slide.replace("<p:sld>", first, 1).replace("</p:sld>", "<a:p>b</a:p></p:sld>")
    named = {f"ppt/{name}.xml": xml for name, xml in parts.items()}
    files = {"ppt/slides/slide1.xml": slide} | LEVELS | named
    packed_file = packed({name: xml.encode() for name, xml in files.items()}, "zip")
    check(read_document("pptx", packed_file), is_hidden)


@pytest.mark.parametrize(("shape", "run", "is_hidden"), [
    ("<p:sp>", RED, True),
    ("<p:sp>", BG1, True),
    ("<p:sp>", '<a:solidFill><a:schemeClr val="tx1"/></a:solidFill>', False),
    ("<p:sp>", "", False),
    ("<p:sp>", RED + '<a:latin typeface="x"/>', True),
    ("<p:sp>", RED + "<a:effectLst/>", True),
    ("<p:sp>", RED + "<a:effectLst><a:glow/></a:effectLst>", False),
    *(("<p:sp>", f"{RED}<a:{tag}/>", False) for tag in ("hlinkClick", "highlight", "uFill")),
    ("<p:sp>", '<a:solidFill><a:prstClr val="red"/></a:solidFill>', True),
    ('<a:overrideClrMapping bg1="dk1"/><p:sp>', BLUE, True),
    ("<p:sp>", f"<a:ln>{BG1}</a:ln>{RED}", False),
    ("<p:sp>", RED.replace("/>", '><a:lumMod val="50"/></a:srgbClr>'), False),
    (f"<p:bg><p:bgPr>{RED}</p:bgPr></p:bg><p:sp>", RED, True),
    ("<p:bg><p:bgPr><a:gradFill/></p:bgPr></p:bg><p:sp>", RED, False),
    ("<p:pic/><p:sp>", RED, False),
    ("<p:graphicFrame/><p:sp>", RED, False),
    ("<p:sp><a:effectLst>", RED, False),
    ("<p:sp><p:spPr><a:noFill/></p:spPr>", RED, True),
    (f"<p:sp><p:spPr>{RED}</p:spPr>", RED, False),  # the letters may leave the shape
    ("<p:sp>", "<a:noFill/>", True),
    ("<p:sp>", "<a:gradFill/>", False),
    ("<p:sp>", RED.replace("/>", '><a:alpha val="0"/></a:srgbClr>'), True),
    ('<p:sp><p:style><a:effectRef idx="2"/></p:style>', RED, False),
    ('<p:sp><p:style><a:fillRef idx="3"/></p:style>', RED, False),
])  # fmt: skip
def test_colours_on_slides(shape, run, is_hidden):
    check_slide(shape, run, is_hidden)


def test_text_of_the_layout_of_a_slide_is_shown():
    layout = "<p:sp><a:t>a</a:t></p:sp><p:sp><p:ph/><a:t>a prompt</a:t></p:sp>"
    files = LEVELS | {"ppt/slides/slide1.xml": "", "ppt/slideLayouts/slideLayout1.xml": layout}
    found = read_document("pptx", packed({k: v.encode() for k, v in files.items()}, "zip"))
    assert (found.text.strip(), found.hidden.strip()) == ("a", "")


@pytest.mark.parametrize("parts", [
    {"slideLayouts/slideLayout1": "<p:pic/>"},
    {"slideMasters/m1": LEVELS["ppt/slideMasters/m1.xml"] + FILLED},
    {"theme/theme1": "<a:bgFillStyleLst><a:gradFill/></a:bgFillStyleLst>"},
    {"slides/_rels/slide1": "", "slideLayouts/slideLayout1": ""},
])  # fmt: skip
def test_grounds_of_slides_that_are_not_known(parts):
    check_slide("<p:sp>", RED, is_hidden=False, **parts)


@pytest.mark.parametrize(("left", "top", "more", "is_hidden"), [
    (0, 0, "", False), (999, 0, "", False), (1000, 0, "", True), (-300, 0, "", True),
    (-299, 0, "", False), (0, 700, "", True),
    (0, -900, "", False),  # its text may flow down
    (1000, 0, '<a:bodyPr wrap="square" anchor="ctr"/>', True),
    (1000, 0, '<a:bodyPr wrap="none"/>', False), (1000, 0, '<a:bodyPr rot="5400000"/>', False),
    (1000, 0, '<a:bodyPr numCol="2"/>', False), (1000, 0, '<a:bodyPr lIns="-9"/>', False),
    (0, 700, '<a:bodyPr anchor="b"/>', False), (1000, 0, '<a:pPr algn="r"/>', True),
    (1000, 0, '<a:pPr marL="1234567"/>', False), (1000, 0, "<a:lnSpc>", False),
])  # fmt: skip
def test_text_off_a_slide(left, top, more, is_hidden):
    check_slide(f"<p:sp>{place(left, top, 300, 100)}{more}", "", is_hidden)


@pytest.mark.parametrize(("shape", "run", "is_hidden", "layout"), [
    (f"<p:sp><p:spPr>{WIDE}{RED}</p:spPr>", RED, True, ""),
    (f"<p:sp><p:spPr>{WIDE}{BLUE}</p:spPr>", RED, False, ""),
    (f"<p:sp><p:spPr>{WIDE}<a:prstGeom/>{BLUE}</p:spPr>", RED, False, ""),
    (f"<p:sp><p:spPr>{WIDE}<a:custGeom></a:custGeom>{BLUE}</p:spPr>", RED, False, ""),
    (f"<p:grpSp><p:grpSpPr>{BLUE}</p:grpSpPr><p:sp>", RED, False, ""),
    (f"{FILLED}<p:sp>{WIDE}", RED, False, ""),
    (f"{BESIDE}<p:sp>{WIDE}", RED, True, ""),
    (BESIDE.replace("xfrm>", 'xfrm rot="9">', 1) + f"<p:sp>{WIDE}", RED, False, ""),
    (f"<p:sp>{WIDE}", RED, False, FILLED),
    (f"<p:sp>{WIDE}", RED, True, FILLED.replace("<p:spPr>", "<p:ph/><p:spPr>")),
    (f"<p:sp>{place(0, -9_000_000, 10**7, 9)}", "", True, ""),
    (f"<p:sp>{place(0, -9_000_000, 10**7, 9)}<a:tbl>", "", False, ""),
    (f"<p:grpSp>{place(0, -9_000_000, 10**7, 9)}<p:sp>", "", False, ""),
    (f"<p:sp>{place(0, -600_000, 10**7, 9)}", "", True, ""),  # it is 593,000 high
    (f"<p:sp>{place(0, -580_000, 10**7, 9)}", "", False, ""),
    (f'<p:sp>{place(0, -580_000, 10**7, 9)}<x sz="900"/><x sz="1800"/>', "", False, ""),
    (f"<p:sp>{place(0, -600_000, 10**7, 9)}<a:br/>", "", False, ""),
    (f"<p:sp>{place(9, -9, 0, 0)}", "", False, ""),
    (f"<p:grpSp>{place(1000, 0, 9, 9)}<p:sp>{place(0, 0, 9, 9)}", "", True, ""),
    (f"<p:grpSp>{place(0, 0, 9, 9)}<p:sp>{place(1000, 0, 9, 9)}", "", False, ""),
    (f"<p:grpSp>{place(1000, 0, 9, 9)}</p:grpSp><p:sp>{WIDE}", "", False, ""),
    ('<p:sp><p:ph idx="3"/>', "", True, f'<p:sp><p:ph idx="3"/>{place(1000, 0, 9, 9)}'),
    (TITLE, "", True, f"{TITLE}{place(1000, 0, 9, 9)}"),
    ('<p:sp><p:ph idx="4"/>', "", False, f'<p:sp><p:ph idx="3"/>{place(1000, 0, 9, 9)}'),
])  # fmt: skip
def test_shapes_around_text_on_slides(shape, run, is_hidden, layout):
    check_slide(shape, run, is_hidden, **{"slideLayouts/slideLayout1": f"<p:sldLayout/>{layout}"})


@pytest.mark.parametrize("tag", ["pic", "cxnSp", "grpSp"])
def test_a_hidden_picture_or_group_hides_no_text_behind_it(tag):
    hidden = f'<p:{tag}><p:cNvPr hidden="1"/></p:{tag}>'
    found = read("pptx", ppt__slides__slide1=f"<p:sld>{hidden}<p:sp>shown</p:sp></p:sld>")
    assert (found.text.split(), found.hidden.split()) == (["shown"], [])


def test_slides_notes_and_titles_are_hidden_and_a_title_alone_is_no_fact():
    found = read(
        "pptx",
        ppt__slides__slide1='<p:sld show="0"><a:p>secret</a:p></p:sld>',
        ppt__slides__slide2="<p:sld><a:p>shown</a:p></p:sld>",
        ppt__notesSlides__notesSlide1="<p:notes>note</p:notes>",
        docProps__core="<dc:title>title</dc:title>",
    )
    assert (found.text.split(), found.hidden.split()) == (["shown"], ["secret", "note", "title"])
    found = read("docx", docProps__core="<dc:title>a</dc:title><cp:revision>1</cp:revision>b")
    assert (found.text.strip(), found.hidden.split(), found.facts) == ("", ["a", "b"], ())


@pytest.mark.parametrize(("style", "is_hidden"), [
    ('<style:text-properties fo:color="#ffffff"/>', True),
    ('<style:text-properties fo:color="#ffffff" fo:background-color="#204060"/>', False),
    ('<style:text-properties fo:font-size="1pt"/>', True),
    ('<style:text-properties text:display="none"/>', True),
    ('<style:text-properties fo:color="#204060"/>', False),
])  # fmt: skip
@pytest.mark.parametrize("xml", [
    '<text:p>a</text:p><text:p><text:span text:style-name="T1">secret</text:span></text:p>b',
    '<text:p>a</text:p><text:p text:style-name="T2">secret</text:p><text:p>b</text:p>',
])  # fmt: skip
def test_hidden_text_of_open_documents(style, xml, is_hidden):
    content = (
        f'<style:style style:name="T1">{style}</style:style><style:style style:name="T2" '
        f'style:parent-style-name="T1"/><office:body>{xml}</office:body>'
    )
    check(read("odf", content=content), is_hidden)


def test_headers_of_texts_are_shown():
    hidden = '<style:header><text:p>a</text:p></style:header><style:footer style:display="false">'
    styles = f"x<office:master-styles>{hidden}<text:p>secret</text:p></style:footer>"
    check(read("odf", styles=styles, content="<office:body><office:text>b"), is_hidden=True)
    assert not read("odf", styles=styles, content="<office:body>").text.strip()


def test_colours_on_slides_of_open_documents_hide_nothing():
    style = '<style:style style:name="W"><style:text-properties fo:color="#ffffff"/></style:style>'
    slides = '<office:presentation><text:p text:style-name="W">a</text:p></office:presentation>'
    found = read("odf", content=f"{style}<office:body>{slides}</office:body>")
    assert (found.text.strip(), found.hidden.strip()) == ("a", "")


CELLS = (
    "<fonts n=''><font><sz val='9'/></font><font><color rgb='FFFFFFFF'/></font><font>"
    "<sz val='1'/></font><font><color theme='0'/></font></fonts><fills n=''><fill/><fill>"
    "<patternFill patternType='solid'><fgColor rgb='FF204060'/></patternFill></fill></fills>"
    "<numFmt numFmtId='164' formatCode=';;;'/><cellXfs n=''><xf/><xf fontId='1'/>"
    "<xf fontId='1' fillId='1'/><xf fontId='2'/><xf numFmtId='164'/><xf fontId='3'/></cellXfs>"
).replace("'", '"')


@pytest.mark.parametrize(("columns", "row", "style", "more", "is_hidden"), [
    ("", "", 0, "", False), ("", "", 1, "", True), ("", "", 2, "", False), ("", "", 3, "", True),
    ("", "", 4, "", True), ("", "", 5, "", True),
    ("", "", 5, "<tableParts/>", False),  # its ground is that of the table
    ("", ' hidden="1"', 0, "", True), ("", ' ht="0"', 0, "", True),
    ('<col min="27" max="27" hidden="1"/>', "", 0, "", True),
    ('<col min="3" max="26" hidden="1"/>', "", 0, "", False),
    ('<col min="2=" max="27" hidden="1"/>', "", 0, "", False),
    (f'<col min="27" max="{"9" * 5000}" hidden="1"/>', "", 0, "", False),
    ('<col min="9" max="99" width="0"/>', "", 0, "", True),
])  # fmt: skip
def test_hidden_cells(columns, row, style, more, is_hidden):
    sheet = (
        f'{columns}<sheetData><row><c r="A1" t="s"><v>0</v></c></row><row{row}><c r="AA2" '
        f's="{style}" t="s"><v>1</v></c></row><row><c r="A3" t="s"><v>2</v></c></row></sheetData>'
    )
    strings = "<si>a</si><si>secret</si><si>b</si>"
    parts = {"xl__worksheets__sheet1": sheet + more, "xl__sharedStrings": strings}
    check(read("xlsx", xl__styles=CELLS, **parts), is_hidden)


OOXML = "http://schemas.openxmlformats.org/{}/2006/{}"


@pytest.mark.parametrize(("state", "has_prefix"), [("hidden", False), ("veryHidden", True)])
def test_hidden_sheets_and_strings_of_no_cell(state, has_prefix):
    relation = '<Relationship Id="{0}" Target="worksheets/{0}.xml"/>'
    relations = "".join(map(relation.format, ("sheet1", "sheet2")))
    parts = {
        "xl/workbook.xml": f'<sheet state="{state}" r:id="sheet1"/><sheet r:id="sheet2"/>',
        "xl/_rels/workbook.xml.rels": relations,
        "xl/worksheets/sheet1.xml": '<row><c t="s"><v>0</v></c><c><is>inline</is></c></row>',
        "xl/worksheets/sheet2.xml": '<col min="2" max="2" hidden="true"/><row>'
        '<c t="s"><v>1</v></c><c><is>a</is></c><c r="B1"><is>cell</is></c></row>'
        '<row hidden="true"><is>row</is>',
        "xl/sharedStrings.xml": "<si>secret</si><si>shown</si><si>unused</si>",
    }
    spaces = {"worksheets/sheet2.xml": OOXML.format("spreadsheetml", "main")}
    spaces["_rels/workbook.xml.rels"] = OOXML.format("package", "relationships")
    for name, space in spaces.items() if has_prefix else ():
        inner = re.sub("(</?)", r"\1x:", parts[f"xl/{name}"]).replace("/>", " />")
        parts[f"xl/{name}"] = f'<x:a xmlns:x="{space}">{inner}'
    found = read_document("xlsx", packed({k: v.encode() for k, v in parts.items()}, "zip"))
    assert found.text.split() == ["a", "shown"]
    assert found.hidden.split() == ["inline", "cell", "row", "secret", "unused"]


def test_long_tags_are_read_in_linear_time():
    assert read("docx", word__document=f"<w:color {'a' * 400_000}/>a").text.strip() == "a"
    row = "<row><c " + 't="s" ' * 120_000 + ">a</c></row>"
    assert read("xlsx", xl__worksheets__sheet1=row).text.strip() == "a"
