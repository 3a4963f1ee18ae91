"""Find what a backup of sa-learn would be worth if the words behind its hashes were known.

usage: python benchmarks/hashed_words.py CORPUS

CORPUS is a folder with ham/ and spam/; sa-learn must be installed.  Every other message is
learned by sa-learn, whose backup has the last five bytes of the SHA-1 of each token.  The words of
the other messages are hashed in the same way, and those that the backup has get its counts: the
best case, as every word that is judged has been guessed.  Then these messages are judged.
"""

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

from moving_in import LABELS, say_beside_trained

from nbspam.settings import PRESETS
from nbspam.sources.items import read_items
from nbspam.store.text.bogofilter import load_lines
from nbspam.tokens.definition import BODY, reference_tokens
from nbspam.tokens.reading import read_message

Counts = dict[str, tuple[int, int]]  # of a hash: numbers of spam and of ham


def backup_of(paths: dict[str, list[str]]) -> tuple[Counts, int, int]:
    """Return the tokens of sa-learn's backup, and how many spam and ham it has learned."""
    with tempfile.TemporaryDirectory() as scratch:
        database = f"--dbpath={scratch}/bayes"
        for label, names in paths.items():
            learned = Path(scratch) / "list"
            learned.write_text("\n".join(names))
            command = ["sa-learn", database, "--max-size=0", "--no-sync", f"--{label}"]
            subprocess.run([*command, "-f", learned], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["sa-learn", database, "--sync"], check=True, stdout=subprocess.DEVNULL)
        done = subprocess.run(["sa-learn", database, "--backup"], check=True, capture_output=True)
    rows = [line.split("\t") for line in done.stdout.decode().splitlines()]
    total = {row[2]: int(row[1]) for row in rows if row[0] == "v"}
    counts = {row[4]: (int(row[1]), int(row[2])) for row in rows if row[0] == "t"}
    return counts, total["num_spam"], total["num_nonspam"]


def main(corpus: Path) -> None:
    paths = {label: sorted(map(str, (corpus / label).iterdir())) for label in LABELS}
    counts, n_spam, n_ham = backup_of({label: names[::2] for label, names in paths.items()})
    held_out = [path for label in LABELS for path in paths[label][1::2]]
    words = {
        token.text
        for item in read_items(held_out)
        for token in reference_tokens(read_message(item, PRESETS["mail"]), PRESETS["mail"].tokens)
        if token.origin == BODY
    }
    hashes = {word: hashlib.sha1(word).hexdigest()[-10:] for word in sorted(words)}
    lines = [f".MSG_COUNT {n_spam} {n_ham} 0".encode()]
    lines += [b"%s %d %d 0" % (w, *counts[each]) for w, each in hashes.items() if each in counts]
    print(
        f"{len(counts):,} tokens in the backup, {len(lines) - 1:,} of them words that were guessed"
    )
    say_beside_trained("its guessed words", load_lines(lines, "backup"), paths)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
