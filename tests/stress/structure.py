"""Mail servers against our reader: which texts does a broken message have?

Many mail programs show the parts that their server lists.  Messages are made from a seed, and most
of them are broken in heads, boundaries or headers on content.  Each text has a word, most in a
transfer encoding.  A word of a text that the server lists has to be found by our reader, too.
"""

import base64
import contextlib
import quopri
import random
import re

import pytest
from imapclient import IMAPClient

from fake_imap import PASSWORD
from mail_servers import Cyrus, Dovecot, crlf, mail_server, needs
from nbspam.mail.message import parse_message

N_MESSAGES, SEED = 1000, 1
MOST_MISSED = 0.5  # words of a hundred; see E-371
HEAD = "Subject: x\nFrom: a@b.example\nMIME-Version: 1.0\n"
# Where several forms are listed, the first one is right and stands for most.
NAMES = ["{}: ", "{}:", "{} : ", "{}:\n ", "{}:  \n\t"]
VALUES = ["{}", "(c) {}", "{} (c)", "(c){} (a;b)", '"{}"', " {}", "{};", "{} "]
ENCODINGS = ["{}", "{} x", "{}.", "{}\n\tx", "{}; x=y", "{}\n x", "{} 8bit", "(c){}"]
SEPARATORS = ["; ", ";", ";\n ", " ; ", " ", ", ", "; ;", ";(c) "]
PARAMETERS = [
    '{0}="{1}"', "{0}={1}", "{0} = {1}", "{0}=(c){1}", "{0}={1} (c)", "{0}*=us-ascii''{1}",
    "{0}='{1}'", '{0}="{1}', '{0}="{1} "', "{0}=zz; {0}={1}", "{0}={1}; {0}=zz", "{0}=\n {1}",
    "{0}==?utf-8?q?{1}?=", '{0}*0*="{1}"',
]  # fmt: skip
LINES = ["--{}", "--{} ", "--{}x", "--{}\v", "---{}", "--{}--", "--{} x", "-{}", '--"{}"', "--{}-"]
STRAY = ["no header", "x y: z", " ", "\tx", ": x", "é: x", "From x y", ">From x", "--"]
AGAIN = ["Content-Type: text/plain", "Content-Type: a/b", "Content-Transfer-Encoding: 8bit"]


class Broken:
    """A message of a seed; `words` are those of its texts."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.words = []
        self.data = (HEAD + self.part(self.random.randint(0, 3))).encode("latin-1")

    def one(self, forms, *values):
        form = forms[0] if self.random.random() < 0.85 else self.random.choice(forms)
        return form.format(*values)

    def part(self, depth):
        """Return a part that has so many levels of parts in it at most."""
        kind, body, encoding = self.many(depth) if depth else self.text()
        heads = [self.one(NAMES, "Content-Type") + kind]
        if encoding:
            name = self.one(NAMES, "Content-Transfer-Encoding")
            heads.append(name + self.one(ENCODINGS, encoding))
        heads += self.random.sample(AGAIN, self.random.random() < 0.1)
        self.random.shuffle(heads)
        for _ in range(self.random.choice((0, 0, 0, 0, 0, 1))):
            heads.insert(self.random.randint(0, len(heads)), self.random.choice(STRAY))
        return "\n".join(heads) + self.one(["\n\n", "\n"]) + body

    def text(self):
        self.words.append("".join(self.random.choices("bdghkmnrsvwxz", k=9)))
        data = f"hello {self.words[-1]} there"
        encoding = self.random.choice(["base64", "quoted-printable", ""])
        if encoding == "base64":
            data = base64.b64encode(data.encode()).decode()
        elif encoding:
            data = "".join(f"={ord(letter):02X}" for letter in data)
        kind = self.one(VALUES, self.random.choice(["text/plain", "text/html"]))
        return kind, data + "\n", encoding

    def many(self, depth):
        boundary = self.random.choice(["b", "bb", "x y", "=_b", "b."]) + str(len(self.words))
        kinds = ["multipart/mixed", "multipart/related", "multipart/x"]
        kind = self.one(VALUES, self.random.choice(kinds)) + self.one(SEPARATORS)
        kind += self.one(PARAMETERS, "boundary", boundary)
        pieces = [self.random.choice(["", "", "before\n"])]
        for _ in range(self.random.randint(1, 3)):
            pieces += (
                self.one(LINES, boundary),
                "\n",
                self.part(depth - self.random.randint(1, depth)),
            )
        pieces += self.one(LINES, f"{boundary}--"), "\n"
        if self.random.random() < 0.1:
            pieces += self.one(LINES, boundary), "\n", self.part(0)
        return kind, "".join(pieces), self.random.choice(["", "", "", "base64", "8bit"])


def listed(body, section=""):
    """Yield the section and the transfer encoding of each text that a server lists."""
    if body.is_multipart:
        for i, part in enumerate(body[0], 1):
            yield from listed(part, f"{section}.{i}" if section else str(i))
    elif (body[0] or b"").lower() == b"text":
        yield section or "1", (body[5] or b"").lower()


def decoded(data, encoding):
    if encoding == b"base64":
        letters = re.sub(rb"[^A-Za-z0-9+/]", b"", data.partition(b"=")[0])
        return base64.b64decode(letters[: len(letters) - (len(letters) % 4 == 1)] + b"==")
    return quopri.decodestring(data) if encoding == b"quoted-printable" else data


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=needs[kind]) for kind in (Dovecot, Cyrus)]
)
def test_a_text_that_a_mail_server_lists_is_read(kind):
    broken = [Broken(f"{SEED} {number}") for number in range(N_MESSAGES)]
    messages, n_listed, missed = [], 0, []
    with mail_server(kind) as server, IMAPClient("127.0.0.1", server.port, ssl=False) as client:
        client.plain_login(server.user, PASSWORD)
        for message in broken:
            with contextlib.suppress(client.Error):  # Cyrus refuses some
                client.append("INBOX", crlf(message.data))
                messages.append(message)
        client.select_folder("INBOX")
        for number, answer in client.fetch(client.search(), ["BODYSTRUCTURE"]).items():
            message = messages[number - 1]
            texts = dict(listed(answer[b"BODYSTRUCTURE"]))
            if not texts:
                continue
            answer = client.fetch(number, [f"BODY.PEEK[{section}]" for section in texts])[number]
            data = [decoded(answer[f"BODY[{s}]".encode()] or b"", e) for s, e in texts.items()]
            ours = b" ".join(
                text for place, text in parse_message(message.data).fields if place == "body"
            )
            for word in map(str.encode, message.words):
                if any(word in each for each in data):
                    n_listed += 1
                    if word not in ours:
                        missed.append((number, word))
    print(f"{n_listed} words listed, {len(missed)} missed: {missed}")
    assert 100 * len(missed) / n_listed <= MOST_MISSED
