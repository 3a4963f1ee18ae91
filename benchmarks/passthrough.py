"""Check that filtering changes only a message's headers, on every file below some folders.

usage: python benchmarks/passthrough.py FOLDER...

All messages are marked by the library in this process; 50 of them, evenly spaced, go through
`nbspam filter` too.  Exits 1 if a message changed otherwise.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from nbspam.classifier.classifier import mark
from nbspam.mail.head import without_headers
from nbspam.mail.verdict_headers import Wanted
from nbspam.store.open import load_tokens

MAILS = Path(__file__).parent.parent / "corpora" / "mail"
SAMPLE = 50  # messages that go through `nbspam filter`
WAYS = {
    "own header": Wanted(),
    "all headers": Wanted(bogosity=True, spam_status=True, explain=True),
}


def nbspam(*arguments: str, stdin: bytes = b"") -> bytes:
    command = [sys.executable, "-m", "nbspam", *arguments]
    return subprocess.run(command, input=stdin, stdout=subprocess.PIPE, check=True).stdout


def main(folders: list[str]) -> int:
    paths = [p for folder in folders for p in sorted(Path(folder).rglob("*")) if p.is_file()]
    n_wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        model = os.path.join(scratch, "m.nbspam")
        nbspam("train", str(MAILS), "-m", model)
        classifier = load_tokens(model)
        for name, wanted in WAYS.items():
            equal = bare = 0
            for path in paths:
                data = path.read_bytes()
                _, pieces = mark(classifier, classifier.rule, wanted, data)
                left = without_headers(b"".join(pieces), wanted.names)
                equal += left == data
                # Mail that came with such headers loses them.
                bare += left == without_headers(data, wanted.names)
            n_wrong += len(paths) - bare
            print(
                f"{name}: {len(paths)} messages, {equal} come back byte for byte,"
                f" {bare - equal} without headers that they came with, {len(paths) - bare} wrong"
            )
        sample = paths[:: max(1, len(paths) // SAMPLE)]
        same = 0
        for path in sample:
            data = path.read_bytes()
            out = nbspam("filter", "-m", model, stdin=data)
            same += out != data and without_headers(out, Wanted().names) == data
        n_wrong += len(sample) - same
        print(f"nbspam filter: {len(sample)} messages, {same} come back byte for byte")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
