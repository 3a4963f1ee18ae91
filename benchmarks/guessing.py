"""How often undeclared text is read in its charset, and how long a guess takes.

usage: python benchmarks/guessing.py [--texts 200]

Texts of 20, 40, 100 and 1,000 characters, of the sentences of `script_texts.py`, are read without
a charset.  Printed is the share that is read without a wrong character, for each language, charset
and length; and the mean microseconds of reading one.
"""

import argparse
import time
from collections.abc import Callable

from script_texts import SCRIPTS, Script, encoded, sentences
from scripts import written_mails

from nbspam.mail.charsets import to_utf8

LENGTHS = (20, 40, 100, 1000)
OTHERS = (
    Script("pl", "Polish", "a-ząćęłńóśźż", ("windows-1250", "iso-8859-2")),
    Script("cs", "Czech", "a-záčďéěíňóřšťúůýž", ("windows-1250", "iso-8859-2")),
    Script("hu", "Hungarian", "a-záéíóöőúüű", ("windows-1250",)),
    Script("tr", "Turkish", "a-zçğıöşü", ("windows-1254",)),
    Script("lt", "Lithuanian", "a-ząčęėįšųūž", ("windows-1257",)),
    Script("fr", "French", "a-zàâçèéêëîïôùûœ", ("windows-1252",)),
    Script("es", "Spanish", "a-záéíñóúü", ("windows-1252",)),
    Script("pt", "Portuguese", "a-zàáâãçéêíóôõú", ("windows-1252",)),
    Script("sv", "Swedish", "a-zåäö", ("windows-1252",)),
    Script("uk", "Ukrainian", "а-яєіїґ", ("windows-1251", "koi8-u")),
    Script("bg", "Bulgarian", "а-я", ("windows-1251",)),
)


def share_and_time(texts: list[bytes], read: Callable[[bytes], str]) -> tuple[float, float]:
    """Return the share of undeclared texts that are read rightly, and the mean seconds of one."""
    start = time.process_time()
    found = [to_utf8(text, None)[0] for text in texts]
    seconds = time.process_time() - start
    n_right = sum(read(text) == utf8.decode() for text, utf8 in zip(texts, found, strict=True))
    return n_right / len(texts), seconds / len(texts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=200)
    options = parser.parse_args()
    to_utf8(b"caf\xe9", None)  # the first guess makes tables
    print(f"{'':27}" + "".join(f"{n:>7,}{'us':>6}" for n in LENGTHS))
    for script in (*SCRIPTS, *OTHERS):
        mails = written_mails(sentences(script)[0], options.texts, max(LENGTHS))
        for charset in script.charsets:
            codec = charset.replace("windows-", "cp")
            codec = {"iso-8859-1": "cp1252", "gb2312": "gb18030"}.get(codec, codec)

            def read(data: bytes, codec: str = codec) -> str:
                return data.decode(codec, "replace")

            line = f"{script.name:12}{charset:15}"
            for length in LENGTHS:
                cut = [encoded(mail.text[:length], charset) for mail in mails]
                undeclared = [text for text in cut if not text.isascii() or b"\x1b" in text]
                right, seconds = share_and_time(undeclared, read)
                line += f"{right:7.0%}{seconds * 1e6:6.0f}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
