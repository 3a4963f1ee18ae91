"""What people see and other programs read, in files that people can read too.

`make golden` rewrites them and shows what changed.
"""

import glob
import re
import zlib
from itertools import chain

import numpy as np
import pytest

from nbspam.store.library import train
from nbspam.store.modelfile import load_state
from support import ROOT, first_mails

GOLDEN = ROOT / "tests" / "golden"
MAILS = sorted(first_mails().glob("*/*.eml"))
# Mails that differ in kind: plain, charsets declared and stateful, raw bytes in headers, parts and
# attachments, a signature, a calendar, broken encodings, hidden letters, entities, related pages.
KINDS = {"001", "013", "019", "021", "025", "037", "051", "063", "069", "087"}


@pytest.fixture
def golden(request):
    """Compare text with a golden file, or rewrite that file."""

    def check(name, text):
        path = GOLDEN / name
        if request.config.getoption("--rewrite-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return check


@pytest.mark.parametrize(
    "mail", [mail for mail in MAILS[::6] if mail.stem[:3] in KINDS], ids=lambda path: path.stem
)
def test_tokens_of_a_message(nbspam, golden, mail):
    golden(f"tokens-{mail.stem}.txt", nbspam("tokens", mail)[1])


def test_what_a_user_sees(nbspam, golden, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("NBSPAM_MODEL", str(tmp_path / "model.nbspam"))
    shown = []
    for line in (
        "train corpora/mail", "classify corpora/mail/ham/0[0-5]1-*.eml",
        "classify --json corpora/mail/spam/0[0-5]1-*.eml", "eval --cv 5 corpora/mail",
        "eval --cv 5 --json corpora/mail", "words -n 10",
        "explain -n 10 corpora/mail/spam/001-pills-plain.eml",
        "explain --brief corpora/mail/ham/001-lunch-plain.eml", "info", "train corpora/nothing",
        "clasify corpora/mail",
    ):  # fmt: skip
        words = [sorted(glob.glob(word)) if "*" in word else [word] for word in line.split()]
        status, out, err = nbspam(*chain.from_iterable(words))
        shown.append(f"$ nbspam {line}\n{out}{err}exit {status}\n")
    # Processors and libraries differ in the last digits of logarithms.
    text = re.sub(r"\d+\.\d{9,}", lambda number: f"{float(number[0]):.8g}", "\n".join(shown))
    golden("session.txt", text.replace(str(tmp_path), "DATA"))


def described(state, prefix=""):
    """Yield each value of a model file; arrays as type, shape and, of whole numbers, CRC-32."""
    for name, value in state.items():
        if isinstance(value, dict):
            yield from described(value, f"{prefix}{name}.")
        elif isinstance(value, np.ndarray):
            crc = "" if value.dtype.kind == "f" else f" {zlib.crc32(value):08x}"
            yield f"{prefix}{name}: {value.dtype.str} {value.shape}{crc}\n"
        elif name != "program":
            yield f"{prefix}{name}: {value!r}\n"


def test_what_a_model_file_holds(golden, tmp_path):
    path = str(tmp_path / "m")
    train([("ship sail", "a"), ("wing wind", "b")], day=2, preset="text").save(path)
    golden("model-file.txt", "".join(described(load_state(path))))
