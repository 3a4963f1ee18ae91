"""How often the encoding of a small table is found, and how long that takes (E-093).

python benchmarks/table_encodings.py [ROWS ...]

Draws tables of so many rows from corpora/reviews.tsv, 20 for each encoding that programs write
each language in, and counts those that are read back without a single wrong character.
"""

import io
import random
import sys
import time
from collections import Counter
from pathlib import Path

from nbspam.sources.encodings import decoded_lines

REVIEWS = Path(__file__).parent.parent / "corpora" / "reviews.tsv"
WRITTEN = {
    "chinese": ["gb18030", "gbk"], "taiwanese": ["big5"], "japanese": ["cp932", "euc_jp"],
    "korean": ["cp949", "euc_kr"], "russian": ["cp1251", "koi8_r", "cp866"],
    "ukrainian": ["cp1251", "koi8_u"], "greek": ["cp1253", "iso8859_7"], "hebrew": ["cp1255"],
    "arabic": ["cp1256"], "thai": ["cp874"], "polish": ["cp1250", "iso8859_2"],
    "czech": ["cp1250", "iso8859_2"], "turkish": ["cp1254"], "german": ["cp1252"],
    "french": ["cp1252"], "spanish": ["cp1252"], "english": ["cp1252"],
}  # fmt: skip
ANYWHERE = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"]


def main() -> None:
    """Print a line for each size of table."""
    reviews: dict[str, list[str]] = {language: [] for language in WRITTEN}
    for line in REVIEWS.read_text("utf-8").splitlines()[1:]:
        language, row = line.split("\t", 1)
        reviews[language].append(row)
    list(decoded_lines(io.BytesIO("слово".encode("koi8_r")), None, lambda _: None, 1 << 20))
    for n_rows in [int(word) for word in sys.argv[1:]] or [1, 2, 5, 20, 1000]:
        n_right = n_tables = 0
        seconds = 0.0
        wrong: Counter[str] = Counter()
        for language, encodings in WRITTEN.items():
            for encoding in encodings + ANYWHERE:
                for seed in range(20):
                    rows = random.Random(seed).choices(reviews[language], k=n_rows)
                    text = "".join(f"{row}\n" for row in ["label\ttext", *rows])
                    stream, said = io.BytesIO(text.encode(encoding)), [""]
                    start = time.perf_counter()
                    found = "".join(decoded_lines(stream, None, said.append, 1 << 20))
                    seconds += time.perf_counter() - start
                    n_tables += 1
                    n_right += found == text
                    if found != text:
                        wrong[f"{language} in {encoding}: {said[-1].partition(';')[0]}"] += 1
        print(
            f"{n_rows:5} rows: {n_right} of {n_tables} tables right,"
            f" {seconds / n_tables * 1e3:.1f} ms each; wrong: {dict(wrong)}"
        )


if __name__ == "__main__":
    main()
