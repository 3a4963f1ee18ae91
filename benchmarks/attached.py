"""What attached files are worth as evidence, by kind of file, on made mail.

usage: python benchmarks/attached.py [--mails 400] [--folds 10] [--seed 1]

The texts of ham and spam are drawn from the same sentences, so that only the files differ: what
they are, or what they say.  Each kind of file is a corpus of its own, judged by folds three times:
without files, with facts, and with the text of documents.  The figures are wrong answers.
"""

import argparse
import io
import zipfile
import zlib
from base64 import encodebytes
from collections.abc import Callable
from random import Random

import zxingcpp
from PIL import Image, ImageDraw

from nbspam.evaluation.judging import judge_several
from nbspam.settings import SettingsChoices, chosen_settings
from nbspam.sources.items import Item

SMALL_TALK = "as_agreed see_attached find_it_below for_your_files hello_again more_soon best"
HAM = "minutes agenda budget harvest choir rehearsal invoice delivery timetable draft tyres"
SPAM = "pills winner casino lottery refund wallet unlocked bonus inheritance replica crypto"
BOTH = "the and with your from this order number date page"
File = tuple[str, str, bytes]  # type, name, data


def words(random: Random, is_spam: bool) -> str:
    """Return what a document says: half of its words are in documents of both classes."""
    own = random.choices((SPAM if is_spam else HAM).split(), k=12)
    both = random.choices(BOTH.split(), k=12)
    return " ".join(random.sample(own + both, 24))


def pdf(text: str, picture: Image.Image | None = None) -> bytes:
    """Return a PDF of one page with a text, or with a picture."""
    if picture is not None:
        file = io.BytesIO()
        picture.save(file, "PDF")
        return file.getvalue()
    stream = zlib.compress(f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET".encode())
    objects = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 5 0 R"
        b"/Resources<</Font<</F1 4 0 R>>>>>>",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</Filter/FlateDecode/Length %d>>stream\n%b\nendstream" % (len(stream), stream),
    )
    body = b"".join(b"%d 0 obj\n%b\nendobj\n" % each for each in enumerate(objects, 1))
    return b"%PDF-1.4\n" + body + b"trailer<</Size 6/Root 1 0 R>>\n%%EOF"


def zipped(names: dict[str, bytes]) -> bytes:
    """Return a ZIP archive of these files."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in names.items():
            archive.writestr(name, data)
    return file.getvalue()


def docx(random: Random, is_spam: bool) -> File:
    """Return a document that says something."""
    parts = {"word/document.xml": f"<w:p>{words(random, is_spam)}</w:p>".encode()}
    return "application/octet-stream", f"file{random.randrange(99)}.docx", zipped(parts)


def macros(random: Random, is_spam: bool) -> File:
    """Return a document of the same words; the one of a spam has macros."""
    parts = {"word/document.xml": f"<w:p>{words(random, False)}</w:p>".encode()}
    parts |= {"word/vbaProject.bin": random.randbytes(500)} if is_spam else {}
    return "application/octet-stream", f"file{random.randrange(99)}.docx", zipped(parts)


def program(random: Random, is_spam: bool) -> File:
    """Return an archive; the one of a spam has a program in it."""
    name = f"scan{random.randrange(999)}." + random.choice(
        ("exe", "scr") if is_spam else ("pdf", "csv")
    )
    return "application/zip", "scan.zip", zipped({name: random.randbytes(900)})


def disguised(random: Random, is_spam: bool) -> File:
    """Return a picture, or a program that claims to be one."""
    data = b"MZ" + random.randbytes(4000) if is_spam else picture(random, 64)[2]
    return "image/png", "photo.png", data


def picture(random: Random, side: int, number: int | None = None) -> File:
    """Return a picture of rectangles; number: of one that is always the same."""
    draw = random if number is None else Random(number)
    image = Image.new("RGB", (side, side), draw.choice(("white", "grey", "beige")))
    for _ in range(6):
        corner = draw.randrange(side // 2), draw.randrange(side // 2)
        size = tuple(place + draw.randrange(5, side // 2) for place in corner)
        ImageDraw.Draw(image).rectangle(
            (*corner, *size), fill=draw.choice(("red", "blue", "green"))
        )
    file = io.BytesIO()
    image.save(file, "PNG")
    return "image/png", "image.png", file.getvalue()


def repeated(random: Random, is_spam: bool) -> File:
    """Return a picture; a spam has one of ten that come again."""
    return picture(random, 200, random.randrange(10) if is_spam else None)


def code(random: Random, is_spam: bool, *, in_pdf: bool = False) -> File:
    """Return a QR code, which leads to one of ten hosts of its class."""
    host = f"{'win' if is_spam else 'shop'}{random.randrange(10)}.example"
    made = zxingcpp.create_barcode(
        f"https://{host}/{random.randrange(10**6)}", zxingcpp.BarcodeFormat.QRCode
    )
    image = Image.fromarray(made.to_image(scale=5)).convert("L")
    if in_pdf:
        page = Image.new("L", (1240, 1754), 255)
        page.paste(image.resize((300, 300)), (200, 300))
        return "application/pdf", "pay.pdf", pdf("", page)
    file = io.BytesIO()
    image.save(file, "PNG")
    return "image/png", "code.png", file.getvalue()


KINDS: dict[str, Callable[[Random, bool], File]] = {
    "PDF, text": lambda random, spam: ("application/pdf", "a.pdf", pdf(words(random, spam))),
    "DOCX, text": docx,
    "DOCX with macros": macros,
    "program in a ZIP": program,
    "program named .png": disguised,
    "picture that comes again": repeated,
    "QR code": code,
    "QR code in a PDF": lambda random, spam: code(random, spam, in_pdf=True),
}


def mail(random: Random, number: int, file: File | None) -> bytes:
    """Return a message of small talk with a file."""
    text = ", ".join(random.sample(SMALL_TALK.split(), 3))
    head = f"From: a{random.randrange(50)}@b.example\n"
    head += f"Subject: {random.choice(SMALL_TALK.split())}\n"
    head += f"Message-ID: <{number}@b.example>\nContent-Type: multipart/mixed; boundary=b\n\n"
    parts = f"--b\nContent-Type: text/plain\n\n{text}\n".encode()
    if file is not None:
        kind, name, data = file
        parts += f"--b\nContent-Type: {kind}\n".encode()
        parts += f'Content-Disposition: attachment; filename="{name}"\n'.encode()
        parts += b"Content-Transfer-Encoding: base64\n\n" + encodebytes(data)
    return head.encode() + parts + b"--b--\n"


def wrong(items: list[Item], folds: int, seed: int, texts: bool) -> int:
    """Return how many messages are judged wrongly by folds."""
    settings = chosen_settings(SettingsChoices(attachments=texts or None), is_text=False)
    (trial,) = judge_several(items, [settings], folds, seed)
    return int((trial.joint.argmax(axis=1) != trial.y).sum())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mails", type=int, default=400)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"{'wrong of ' + str(options.mails):26}{'no file':>9}{'facts':>9}{'texts':>9}")
    for name, make in KINDS.items():
        random = Random(options.seed)
        spams = [n % 2 == 1 for n in range(options.mails)]
        files = [make(random, is_spam) for is_spam in spams]
        corpora = [
            [
                Item(f"#{n}", "spam" if is_spam else "ham", mail(Random(n), n, file))
                for n, (is_spam, file) in enumerate(zip(spams, attached, strict=True))
            ]
            for attached in ([None] * len(files), files, files)
        ]
        cells = [
            wrong(items, options.folds, options.seed, texts)
            for items, texts in zip(corpora, (False, False, True), strict=True)
        ]
        print(f"{name:26}" + "".join(f"{cell:9}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
