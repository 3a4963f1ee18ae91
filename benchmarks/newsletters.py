"""Write HTML newsletters and phishing mail of today, and compare how fast checkouts read mail.

usage: python benchmarks/newsletters.py write FOLDER [--mails 2000] [--seed 0]
       python benchmarks/newsletters.py time CORPUS... [--other CHECKOUT] [--rounds 7]

`write` makes FOLDER/ham (newsletters, each sender with one layout) and FOLDER/spam (phishing, each
with a layout of its own): messages of 20 to 80 KB with tables in tables, a style attribute in
nearly every tag, sheets with @media, conditional comments, preheaders, tracking pixels and long
links.  `time` parses all messages of each corpus, a folder with ham/ and spam/.  In every round
each checkout does so in a process of its own, in turn.  Printed are the least processor time of
all rounds, in milliseconds a message, and the median of the ratios within each round.
"""

import argparse
import base64
import quopri
import subprocess
import sys
from pathlib import Path
from random import Random
from statistics import median

from speed import HERE, LABELS, environment

SENDERS = 100  # of newsletters
PARSE = """
import gc, sys, time
from pathlib import Path
from nbspam.mail.message import parse_message
mails = [path.read_bytes() for path in sorted(Path(sys.argv[1]).glob("*/*"))]
parse_message(b"Content-Type: text/html\\n\\n<p>x")
gc.disable()
start = time.process_time()
for mail in mails:
    parse_message(mail)
print(time.process_time() - start, len(mails))
"""
SYLLABLE_LIST = "ba ren ti mo la ser con ven da per lo in ta re mi ster al no ca vi den su or pe"
WORD_LIST = (
    "the a of to and in your for with is our this on now new free order account today we you offer"
    " sale update more from get this week read only save all best team view best shop days until"
)
SYLLABLES, WORDS = SYLLABLE_LIST.split(), WORD_LIST.split()
FONTS = ("Arial, Helvetica, sans-serif", "'Helvetica Neue', Helvetica, Arial", "Georgia, serif")
THREATS = ("Unusual sign-in", "Your mailbox is full", "Payment declined", "Parcel on hold")
CELL = "mso-table-lspace: 0pt; mso-table-rspace: 0pt; -ms-text-size-adjust: 100%;"
TABLE = (
    '<table align="center" border="0" cellpadding="0" cellspacing="0" role="presentation"'
    ' width="{width}" style="border-collapse: collapse; {cell} {extra}">\n<tbody>\n{rows}\n'
    "</tbody>\n</table>"
)
HEAD = """<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN"
 "http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:o="urn:schemas-microsoft-com:office:office">
<head><meta http-equiv="Content-Type" content="text/html; charset=utf-8" />
<meta name="viewport" content="width=device-width, initial-scale=1.0" /><title>{title}</title>
<!--[if gte mso 9]><xml><o:OfficeDocumentSettings><o:AllowPNG/><o:PixelsPerInch>96\
</o:PixelsPerInch></o:OfficeDocumentSettings></xml><![endif]-->
<style type="text/css">{sheet}</style>
<!--[if mso]><style>body, table, td {{font-family: Arial !important;}}</style><![endif]--></head>
"""


class Layout:
    """The look of one sender's mail: colours, sizes, the sheet, and how blocks are built."""

    def __init__(self, random: Random) -> None:
        self.font = random.choice(FONTS)
        self.ink, self.accent = (
            f"#{random.randrange(0x80):02x}{random.randrange(0x60):02x}4f" for _ in range(2)
        )
        self.ground = random.choice(("#f4f4f4", "#fafafa", "#ffffff", "#e9eef3"))
        self.width = random.choice((560, 600, 640, 700))
        self.size = random.choice((14, 15, 16))
        self.prefix = random.choice(("mcn", "es-", "mj-", "sl_", "u_", "x"))
        self.host = "".join(random.choices(SYLLABLES, k=3)) + ".example"
        self.encoding = random.choice(("quoted-printable", "quoted-printable", "base64", "8bit"))
        self.sheet = self._sheet(random)

    def _sheet(self, random: Random) -> str:
        """Return a sheet: resets, classes, and rules for telephones."""
        classes = [f"{self.prefix}{random.choice(SYLLABLES)}{i}" for i in range(40)]
        base = (
            "body, table, td, a {-webkit-text-size-adjust: 100%; -ms-text-size-adjust: 100%}\n"
            "img {border: 0; height: auto; line-height: 100%; outline: none}\n"
            "#outlook a {padding: 0} .ExternalClass, .ExternalClass p {line-height: 100%}\n"
            "a[x-apple-data-detectors] {color: inherit !important}\n"
        )
        rules = [
            f".{name} {{padding: {random.randrange(40)}px; color: {self.ink};"
            f" font-size: {random.randrange(11, 30)}px; line-height: 150%}}\n"
            for name in classes
        ]
        small = [f".{name} {{width: 100% !important; padding: 9px}}\n" for name in classes[:20]]
        hide = ".mobile-hide, .desktop {display: none !important}\n"
        self.classes = classes
        return (
            f"{base}{''.join(rules)}@media only screen and (max-width: 480px) {{\n"
            f"{''.join(small)}{hide}}}\n@media (prefers-color-scheme: dark) {{\n"
            f"body {{background: #111 !important; color: #eee !important}} }}\n"
        )


def text(random: Random, words: int) -> str:
    """Return a text of about so many words."""
    return " ".join(
        random.choice(WORDS) if random.random() < 0.6 else "".join(random.choices(SYLLABLES, k=3))
        for _ in range(words)
    ).capitalize()


def link(random: Random, layout: Layout) -> str:
    """Return the address of a link that is followed."""
    token = base64.urlsafe_b64encode(random.randbytes(random.randrange(60, 180))).decode()
    return f"https://click.{layout.host}/ls/click?upn={token}&amp;utm_source=mail&amp;c=1"


def block(random: Random, layout: Layout, depth: int = 0) -> str:
    """Return a row of a layout: an article, a picture, a button, or rows in columns."""
    style = f"font-family: {layout.font}; font-size: {layout.size}px; color: {layout.ink};"
    kind = random.choice(("article", "picture", "button", "columns", "list"))
    if kind == "columns" and depth < 3:
        cells = "".join(
            f'<td valign="top" width="50%" class="{random.choice(layout.classes)}" style="{CELL}">'
            f"{table(layout, block(random, layout, depth + 1), '100%')}</td>\n"
            for _ in range(2)
        )
        return f"<tr>{cells}</tr>"
    if kind == "picture":
        inner = (
            f'<a href="{link(random, layout)}" target="_blank"><img src="https://img.{layout.host}'
            f'/{random.randrange(10**9)}.png" alt="{text(random, 4)}" width="{layout.width}"'
            ' style="display: block; border: 0; max-width: 100%; height: auto;"></a>'
        )
    elif kind == "button":
        inner = table(
            layout,
            (
                f'<tr><td align="center" bgcolor="{layout.accent}" style="border-radius: 4px;">'
                f'<a href="{link(random, layout)}" style="{style} color: #ffffff; display:'
                f' inline-block; padding: 12px 24px; text-decoration: none;">{text(random, 3)}</a>'
                "</td></tr>"
            ),
            "auto",
        )
    elif kind == "list":
        inner = "".join(
            f'<p style="margin: 0 0 10px; {style} line-height: 22px;"><span style="font-weight:'
            f' bold; color: {layout.accent};">{text(random, 2)}</span>&nbsp;{text(random, 12)}</p>'
            for _ in range(random.randrange(2, 6))
        )
    else:
        inner = (
            f'<h2 style="margin: 0; {style} font-size: 22px; font-weight: 700;">{text(random, 6)}'
            f'</h2>\n<p style="margin: 10px 0; {style} line-height: 150%;">{text(random, 45)}'
            f' <a href="{link(random, layout)}" style="color: {layout.accent};">Read on</a></p>'
        )
    return (
        f'<tr><td class="{random.choice(layout.classes)}" align="left" style="padding: 10px'
        f' 20px; {CELL}">\n{inner}\n</td></tr>'
    )


def table(layout: Layout, rows: str, width: str, extra: str = "") -> str:
    return TABLE.format(width=width, cell=CELL, extra=extra, rows=rows)


def page(random: Random, layout: Layout, title: str) -> str:
    """Return a document of 15 to 60 KB."""
    preheader = (
        '<div style="display: none; max-height: 0; overflow: hidden; mso-hide: all;">'
        f"{text(random, 9)}{'&nbsp;&zwnj;' * random.randrange(20, 90)}</div>"
    )
    wanted, rows = random.randrange(13_000, 50_000), ""
    while len(rows) < wanted:
        rows += block(random, layout) + "\n"
        if random.random() < 0.1:
            rows += (
                '<!--[if mso]></td><td><![endif]--><tr><td style="font-size: 0; line-height:'
                ' 20px; height: 20px;">&nbsp;</td></tr>\n'
            )
    ground = f"background-color: {layout.ground};"
    around = f'<tr><td align="center">{table(layout, rows, str(layout.width), ground)}</td></tr>'
    return (
        HEAD.format(title=title, sheet=layout.sheet)
        + f'<body bgcolor="{layout.ground}" style="margin: 0; padding: 0; {ground}">{preheader}\n'
        + table(layout, around, "100%")
        + f'<img src="https://t.{layout.host}/o.gif?{random.randrange(10**12)}" width="1"'
        ' height="1" alt="" style="display: none;">\n</body></html>\n'
    )


def message(random: Random, layout: Layout, title: str) -> bytes:
    """Return a message of one document, in the transfer encoding of its sender."""
    body = page(random, layout, title).encode()
    if layout.encoding == "base64":
        body = base64.encodebytes(body)
    elif layout.encoding == "quoted-printable":
        body = quopri.encodestring(body)
    return (
        f"From: {text(random, 2)} <news@{layout.host}>\nSubject: {title}\n"
        f"Message-ID: <{random.randrange(10**15)}@{layout.host}>\nMIME-Version: 1.0\n"
        f"Content-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: {layout.encoding}\n\n"
    ).encode() + body


def write(folder: Path, mails: int, seed: int) -> None:
    """Write mails to ham/ and spam/ of a folder, half of them to each."""
    random = Random(seed)
    senders = [Layout(random) for _ in range(SENDERS)]
    for name in LABELS:
        (folder / name).mkdir(parents=True)
    for number in range(mails):
        is_spam = number % 2
        layout = Layout(random) if is_spam else random.choice(senders)
        title = random.choice(THREATS) if is_spam else text(random, 6)
        path = folder / LABELS[is_spam] / f"{number}.eml"
        path.write_bytes(message(random, layout, title))


def seconds(checkout: Path, corpus: Path) -> tuple[float, int]:
    """Return the processor time in which a checkout parses a corpus, and its messages."""
    line = [sys.executable, "-c", PARSE, str(corpus)]
    printed = subprocess.check_output(line, env=environment(checkout), text=True).split()
    return float(printed[0]), int(printed[1])


def compare(corpus: Path, other: Path | None, rounds: int) -> None:
    """Print what reading a corpus costs in this and in another checkout."""
    checkouts = [HERE, *([other] if other else [])]
    taken = [[seconds(checkout, corpus) for checkout in checkouts] for _ in range(rounds)]
    mails = taken[0][0][1]
    each = "  ".join(
        f"{min(run[i][0] for run in taken) / mails * 1000:.3f} ms" for i in range(len(checkouts))
    )
    ratio = f"  ratio {median(run[0][0] / run[1][0] for run in taken):.2f}" if other else ""
    print(f"{corpus}: {mails} messages  {each}{ratio}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    writing, timing = verbs.add_parser("write"), verbs.add_parser("time")
    writing.add_argument("folder", type=Path)
    writing.add_argument("--mails", type=int, default=2000)
    writing.add_argument("--seed", type=int, default=0)
    timing.add_argument("corpora", type=Path, nargs="+")
    timing.add_argument("--other", type=Path, metavar="CHECKOUT")
    timing.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    if options.verb == "write":
        write(options.folder, options.mails, options.seed)
    else:
        for corpus in options.corpora:
            compare(corpus, options.other, options.rounds)


if __name__ == "__main__":
    main()
