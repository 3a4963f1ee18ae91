"""The text of Word, Excel, PowerPoint and Outlook files, which are written here by code."""

from importlib.util import find_spec
from struct import pack

import pytest

from nbspam.mail.documents import read_document
from support import memory_of

pytestmark = pytest.mark.skipif(find_spec("olefile") is None, reason="no nbspam[attachments]")
END, FREE, FAT = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD


def compound(streams: dict[str, bytes]) -> bytes:
    """Return an OLE file (MS-CFB) of at most 64 KB; storages may stand before a stream's name."""
    sectors: dict[int, tuple[list[int], bytearray]] = {
        512: ([], bytearray()),
        64: ([], bytearray()),
    }

    def placed(data: bytes, size: int = 512) -> int:
        following, body = sectors[size]
        start, count = len(following), max(-(-len(data) // size), 1)
        following += [*range(start + 1, start + count), END]
        body += data.ljust(count * size, b"\0")
        return start

    def parent(path: str) -> str:
        return path.rpartition("/")[0]

    nodes = sorted({*streams, *map(parent, streams), ""})
    starts = {
        path: placed(data, 64 if len(data) < 4096 else 512) for path, data in streams.items()
    }
    small = bytes(sectors[64][1])
    starts[""] = placed(small)
    directory = b""
    for i, path in enumerate(nodes):
        name = (path.rpartition("/")[2] or "Root Entry").encode("utf-16-le")
        kids = [j for j, other in enumerate(nodes) if other and parent(other) == path]
        rest = [j for j in range(i + 1, len(nodes)) if path and parent(nodes[j]) == parent(path)]
        kind, size = (2, len(streams[path])) if path in streams else (1 if path else 5, 0)
        directory += name.ljust(64, b"\0") + pack(
            "<HBBIII36xIQ", len(name) + 2, kind, 1, FREE, (rest or [FREE])[0], (kids or [FREE])[0],
            starts.get(path, 0), size if path else len(small),
        )  # fmt: skip
    first = placed(directory)
    small_fat = placed(pack(f"<{len(sectors[64][0])}I", *sectors[64][0]).ljust(512, b"\xff"))
    following, body = sectors[512]
    fat = [*following, FAT, *[FREE] * (127 - len(following))]
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + pack("<HHHHH10x", 62, 3, 0xFFFE, 9, 6)
    head += pack("<IIIIIIII", 1, first, 0, 4096, small_fat, 1, END, 0)
    head += pack("<I", len(following)).ljust(436, b"\xff")
    return head + body + pack("<128I", *fat)


def utf_16(text: str) -> bytes:
    return text.encode("utf-16-le")


def word(*pieces: bytes, flags: int = 0x200) -> dict[str, bytes]:
    """Return the streams of a document whose pieces of text are UTF-16, or cp1252 behind `8`."""
    stream = bytes(10) + pack("<H", flags)
    ends, places, body = [0], b"", b""
    for piece in pieces:
        is_narrow, text = piece.startswith(b"8"), piece.removeprefix(b"8")
        start = 1024 + len(body)
        places += pack("<2xI2x", 2 * start | 0x40000000 if is_narrow else start)
        ends.append(ends[-1] + len(text) // (1 if is_narrow else 2))
        body += text
    table = pack(f"<{len(ends)}I", *ends) + places
    table = b"junk\1\2\0xx\2" + pack("<I", len(table)) + table
    stream = stream.ljust(0x1A2, b"\0") + pack("<II", 4, len(table) - 4)
    name = "1Table" if flags & 0x200 else "0Table"
    return {"WordDocument": stream.ljust(1024, b"\0") + body, name: table}


def excel(*records: tuple[int, bytes]) -> dict[str, bytes]:
    return {"Workbook": b"".join(pack("<HH", kind, len(data)) + data for kind, data in records)}


def powerpoint(*records: tuple[int, int, bytes], token: int = 0xE391C05F) -> dict[str, bytes]:
    stream = b"".join(
        pack("<HHI", version, kind, len(data)) + data for version, kind, data in records
    )
    return {"PowerPoint Document": stream, "Current User": bytes(12) + pack("<I", token)}


def outlook(code_page: int = 0, **properties: bytes) -> dict[str, bytes]:
    streams = {f"__substg1.0_{name[1:]}": data for name, data in properties.items()}
    entry = b"\3\0\xfd\x3f" + bytes(4) + pack("<II", code_page, 0)
    return {**streams, "__properties_version1.0": bytes(32) + entry if code_page else bytes(32)}


FILE = "__attach_version1.0_#00000000/__substg1.0_"
# The second of three strings is rich and goes on in the next record, there in wide characters.
SHARED = pack("<8xHB", 2, 0) + b"ab" + pack("<HBHI", 4, 0xC, 1, 2) + b"cd"
WIDE = b"\1" + utf_16("你好") + b"runsxx" + pack("<HB", 2, 1) + utf_16("да")
CHAIN = b"\1\0\0\0\0\0" + utf_16("http://a.example/x\0")
FORMULA = b"\x17\x12\0http://a.example/x\x17\1\0y"


@pytest.mark.parametrize(("streams", "text"), [
    (word(b"8cheap pi", b"8lls\x92\x07", utf_16("по 你好\r")), "cheap pills’\nпо 你好"),
    (word(b"8\x13 HYPERLINK http://x/\x14a\x15b", flags=0), "http://x/ a b"),
    (word(b"8a\x13 QUOTE \x13 EQ b\x15\x14c\x15"), "a EQ b c"),
    (word(b"8e\x1email soft\x1fware\x01"), "e-mail software"),
    (excel((0xFC, SHARED), (0x3C, WIDE)), "ab\ncd你好\nда"),
    (excel((0x204, bytes(6) + pack("<HB", 1, 0) + b"a"), (0x207, b"\1\0\0b")), "a\nb"),
    (excel((0x1B6, b"note"), (0x3C, b"\0hello"), (0x3C, bytes(16))), "hello"),
    (excel((0x1B8, CHAIN), (6, FORMULA)), "http://a.example/x\nhttp://a.example/x"),
    (powerpoint((15, 1000, pack("<HHI", 0, 0xFA0, 4) + utf_16("你好"))), "你好"),
    (powerpoint((0, 0xFA8, b"a\rb"), (0, 1, b"xx"), (0, 0xFBA, utf_16("c"))), "a\nb\nc"),
    (powerpoint((15, 0x3F8, pack("<HHI", 0, 0xFA8, 1) + b"x"), (0, 0xFA8, b"a")), "a"),
    (outlook(p0037001F=utf_16("你好"), p1000001F=utf_16("a"), p10130102=b"b"), "你好\na"),
    (outlook(1251, p0C1A001E="Анна".encode("cp1251")), "Анна"),
    (outlook(p10130102=b"<p>a <a href='http://x/'>b</a>"), "a b\nhttp://x/"),
    (outlook(p10090102=pack("<II4sI", 24, 12, b"MELA", 0) + b"{\\rtf1 pills}"), "pills"),
    ({f"{FILE}3707001F": utf_16("a.doc"), f"{FILE}37010102": b"x"}, "a.doc"),
])  # fmt: skip
def test_the_text_of_ole_files(streams, text):
    found = read_document("ole", compound(streams))
    assert (found.text.split(), found.facts) == (text.split(), ())


@pytest.mark.parametrize("state", [0, 4, 1, 6])
def test_hidden_sheets_of_excel(state):
    """The second sheet may be hidden; one string is in cells of both, and one in no cell."""
    texts = ("both", "secret", "unused")
    strings = bytes(8) + b"".join(pack("<HB", len(text), 0) + text.encode() for text in texts)
    sheets = [[(0xFD, pack("<6xI", 0))], [(0xFD, pack("<6xI", n)) for n in (0, 1)]]
    sheets[1] += [(0x1B6, b"note"), (0x3C, b"\0comment")]
    first = 2 * (4 + 5) + 4 + len(strings)
    second = first + len(excel(*sheets[0])["Workbook"])
    places = [(0x85, pack("<IB", first, 0)), (0x85, pack("<IB", second, state))]
    streams = excel(*places, (0xFC, strings), *sheets[0], *sheets[1])
    found = read_document("ole", compound(streams))
    shown, hidden = (["both"], ["secret", "unused", "comment"])
    if not state & 3:
        shown, hidden = ["both", "secret", "comment"], ["unused"]
    assert (found.text.split(), found.hidden.split()) == (shown, hidden)


def test_hidden_text_of_a_saved_message_and_of_documents_attached_to_it():
    page, rtf = b"<p>a <s hidden>secret</s>", rb"{\rtf1 a {\v secret}}"
    packed = pack("<II4sI", len(rtf) + 12, len(rtf), b"MELA", 0) + rtf
    for streams in (outlook(p10130102=page), outlook(p10090102=packed)):
        found = read_document("ole", compound(streams))
        assert (found.text.strip(), found.hidden.strip()) == ("a", "secret")
        assert found.facts == ("attached-hidden",)
    other = FILE.replace("#00000000", "#00000001")
    files = {f"{FILE}37010102": rb"{\rtf1 pills{\v secret}}", f"{other}37010102": b"%PDF junk"}
    found = read_document("ole", compound({**outlook(p1000001F=utf_16("hello")), **files}))
    assert (found.text.split(), found.hidden.split()) == (["hello", "pills"], ["secret"])
    assert found.facts == ("attached-hidden",)


@pytest.mark.parametrize("streams", [
    word(b"8a", flags=0x100), excel((0x2F, b"key"), (0xFC, SHARED)),
    powerpoint((0, 0xFA8, b"a"), token=0xF3D1C4DF),
])  # fmt: skip
def test_encrypted_ole_files_have_no_text(streams):
    found = read_document("ole", compound(streams))
    assert (found.text, found.facts) == ("", ("encrypted",))


@pytest.mark.parametrize(("streams", "text"), [
    (excel((0xFC, SHARED)), "ab\ncd"),
    (excel((0x207, b"\1\0\0a"), (0x207, b"\1"), (0x207, b"\1\0\0b")), "a"),
    ({"PowerPoint Document": pack("<HHI", 0, 0xFA8, 9) + b"a"}, "a"),
    ({"WordDocument": b"short"}, ""),
    ({"1Table": b"", "Thumbs.db": b"x"}, ""),
])  # fmt: skip
def test_damaged_ole_files_are_read_as_far_as_they_go(streams, text):
    assert read_document("ole", compound(streams)).text == text


def test_sectors_in_a_circle_take_no_memory():
    data = compound({"Workbook": bytes(4096)})  # its first sector is the first of all
    data = data[:-512] + bytes(4) + data[-508:]
    data = data.replace(pack("<IQ", 0, 4096), pack("<IQ", 0, 8 << 20))
    assert memory_of(read_document, "ole", data)[1] < 4 << 20
