"""Compare how fast mail in fourteen scripts is read and cut into tokens.

usage: python benchmarks/scripts.py [--only CODE...] [--messages 300] [--characters 1000]

For each language, which stands for its script, mails with as many characters of text are written
in UTF-8 and in the language's legacy charsets; sentences are drawn at random from those of
`script_texts.py`.  Each is written in four ways: declared and sent as 8bit, quoted-printable or
base64, with the names and the subject as encoded words; and undeclared, all of it in raw bytes.

Printed for one process are messages, tokens (repetitions count) and bytes of UTF-8 (head and
text) a second, the last two as ratios to English written in the same way, and the microseconds
that reading takes a message.  Times are processor seconds, the shortest of some rounds.  At the
end come the rows that miss the aims (half of English's tokens a second, a third of its bytes):
then the exit status is 1.
"""

import argparse
import sys
import time
from base64 import b64encode, encodebytes
from collections.abc import Callable
from itertools import product
from quopri import encodestring
from typing import NamedTuple

import numpy as np
from script_texts import SCRIPTS, Script, encoded, sentences

from nbspam.mail.message import parse_messages
from nbspam.settings import PRESETS
from nbspam.tokens.tokenizer import batches, tokenize

TOKENS_AIM, BYTES_AIM = 1 / 2, 1 / 3
HEAD = """\
Return-Path: <list-{n}@lists.example>
Received: from mx{n}.example (mx{n}.example [192.0.2.{d}])
\tby mail.example (Postfix) with ESMTP id 4F8A{n:05}B
\tfor <someone@mail.example>; Mon, 3 Feb 2003 10:{d:02}:11 +0100 (CET)
Received: from desk{d} (desk{d}.example [198.51.100.{d}]) by mx{n}.example; Mon, 3 Feb 2003 10:09
Message-ID: <20030203.{n}.desk{d}@lists.example>
Date: Mon, 3 Feb 2003 10:08:{d:02} +0100
From: {name} <writer{d}@lists.example>
To: {to} <someone@mail.example>
Subject: {subject}
MIME-Version: 1.0
"""
SUBJECT, NAME = 40, 12  # characters
WORD = 45  # bytes of an encoded word before it is encoded
WAYS = ("8bit", "quoted-printable", "base64", "undeclared")


class Mail(NamedTuple):
    """The words of a mail."""

    number: int
    subject: str
    name: str
    text: str


class Speed(NamedTuple):
    """How fast mails are read and tokenised, in one way of writing them."""

    messages: float  # a second
    tokens: float
    octets: float  # of UTF-8
    reading: float  # seconds a message, of the time


def written_mails(texts: list[str], n_mails: int, n_characters: int) -> list[Mail]:
    """Return mails whose text has `n_characters`, of sentences drawn at random."""
    rng = np.random.default_rng(0)
    mails = []
    for number in range(n_mails):
        drawn = [texts[i] for i in rng.integers(len(texts), size=n_characters // 20 + 3)]
        text = " ".join(drawn[2:])[:n_characters]
        lines = "\n".join(text[i : i + 70] for i in range(0, len(text), 70))
        mails.append(Mail(number, drawn[0][:SUBJECT], drawn[1][:NAME].strip(), lines))
    return mails


def as_bytes(mail: Mail, charset: str, way: str) -> bytes:
    """Return a mail in a charset, written in one of WAYS."""
    word: Callable[[str], bytes] = lambda text: encoded(text, charset)  # noqa: E731
    body = encoded(mail.text, charset)
    content = b""
    if way != "undeclared":
        word = lambda text: encoded_words(text, charset)  # noqa: E731
        content = f"Content-Type: text/plain; charset={charset}\n".encode()
        content += f"Content-Transfer-Encoding: {way}\n".encode()
    if way == "quoted-printable":
        body = encodestring(body)
    elif way == "base64":
        body = encodebytes(body)
    marks = HEAD.format(
        n=mail.number, d=mail.number % 60, name="\0n", to="\0t", subject="\0s"
    ).encode()
    head = marks.replace(b"\0n", word(mail.name)).replace(b"\0s", word(mail.subject))
    return head.replace(b"\0t", word(mail.name[:5])) + content + b"\n" + body + b"\n"


def encoded_words(text: str, charset: str) -> bytes:
    """Return text as encoded words of RFC 2047, if it needs them, in base64."""
    if text.isascii():
        return text.encode()
    words: list[bytes] = []
    start, end = 0, 1
    while start < len(text):
        while end < len(text) and len(encoded(text[start : end + 1], charset)) <= WORD:
            end += 1
        coded = b64encode(encoded(text[start:end], charset)).decode()
        words.append(f"=?{charset}?B?{coded}?=".encode())
        start, end = end, end + 1
    return b"\n ".join(words)


def measured(mails: list[bytes], n_octets: int, rounds: int) -> Speed:
    """Return how fast mails are read and tokenised; n_octets: of all of them in UTF-8."""
    settings = PRESETS["mail"].tokens
    n_tokens, reading, both = 0, float("inf"), float("inf")
    for _ in range(rounds):
        start = time.process_time()
        messages = parse_messages(mails)
        middle = time.process_time()
        found = [tokenize(group, settings).documents for group in batches(messages, settings)]
        both = min(both, time.process_time() - start)
        reading = min(reading, middle - start)
        n_tokens = sum(int(documents.times().sum(dtype=np.int64)) for documents in found)
    return Speed(len(mails) / both, n_tokens / both, n_octets / both, reading / len(mails))


def row(script: Script, charset: str, way: str, speed: Speed, to: Speed) -> str:
    """Return a line on the speed of one way of writing; to: the speed of English."""
    return (
        f"{script.name:18}{charset:14}{way:17}{speed.messages:10,.0f}{speed.tokens:11,.0f}"
        f"{speed.octets / 1e6:7.1f}{speed.tokens / to.tokens:8.2f}{speed.octets / to.octets:7.2f}"
        f"{speed.reading * 1e6:9.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    codes = [script.code for script in SCRIPTS]
    parser.add_argument("--only", nargs="+", choices=codes, default=codes, help="beside English")
    parser.add_argument("--messages", type=int, default=300, help="in each row")
    parser.add_argument("--characters", type=int, default=1000, help="of a message's text")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    english: dict[str, Speed] = {}
    slow: list[str] = []
    print(
        f"{options.messages} messages of {options.characters} characters, {options.rounds} rounds;"
        " tokens and bytes a second as ratios to English\n\n"
        f"{'':49}{'messages/s':>10}{'tokens/s':>11}{'MB/s':>7}{'tokens':>8}{'bytes':>7}"
        f"{'read us':>9}"
    )
    for script in SCRIPTS:
        if script.code not in ("en", *options.only):
            continue
        mails = written_mails(sentences(script), options.messages, options.characters)
        n_octets = sum(len(as_bytes(mail, "utf-8", "undeclared")) for mail in mails)
        for charset, way in product(("utf-8", *script.charsets), WAYS):
            data = [as_bytes(mail, charset, way) for mail in mails]
            speed = measured(data, n_octets, options.rounds)
            to = english.setdefault(way, speed)
            line = row(script, charset, way, speed, to)
            print(line, flush=True)
            if speed.tokens < TOKENS_AIM * to.tokens or speed.octets < BYTES_AIM * to.octets:
                slow.append(line)
    if slow:
        below = "below half of English's tokens or a third of its bytes a second"
        sys.exit("\n".join([f"\n{len(slow)} {below}:", *slow]))
    print("\nno row is below half of English's tokens or a third of its bytes a second")


if __name__ == "__main__":
    main()
