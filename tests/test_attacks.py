"""Every form of attack in benchmarks/attacks.py is a mail that shows what the spam said."""

import re
import unicodedata
from email import message_from_bytes, policy
from email.header import decode_header, make_header
from html import unescape

import pytest
from attack_forms import FORMS, SPELLING, TRANSLATED
from attack_mail import Good, read_mail

HEAD = b"""From: "Offers" <a@example.org>
Subject: Great offers
 for you
Message-ID: <1@example.org>
"""
TEXT = "Cheap watches shipped today. Order yours before midnight ends"
PLAIN = HEAD + b"Content-Type: text/plain\n\n" + TEXT.encode() + b"\n"
PAGE = (
    HEAD
    + b"MIME-Version: 1.0\nContent-Type: text/html; charset=us-ascii\n\n<html><BODY bgcolor=white>"
    + b"<p>Cheap <i>watches</i> shipped today. Order yours before midnight ends</p></body></html>"
)
GOOD = Good(
    tuple(f"{a}{b}ish" for a in "bcdfghjklmnpqrstvwxz" for b in "abcdefghijklmnopqrstuvwxy"),
    ("Dear all,\n\nthe meeting is on Monday.\n" * 20, "Thank you for the patch.\n" * 30),
    (b"From: s@lists.example.org\nIn-Reply-To: <7@example.org>\n",),
)
OFFERS = '"Offers" <a@example.org>'
MISSPELT = ("swapped letters", "doubled letters", "no vowel in the middle")


def texts_of(message):
    """Return the text of all leaves of a message, attachments included, tags removed."""
    leaves = [part for part in message.walk() if not part.is_multipart()]
    leaves = [part for part in leaves if part.get_content_maintype() != "image"]
    return " ".join(shown(text_of(part)) for part in leaves)


def text_of(part):
    charset = part.get_content_charset("utf-8")
    charset = "utf-8" if charset in ("unknown-8bit", "iso-2022-jp") else charset
    text = part.get_payload(decode=True).decode(charset)
    return text.replace(" \n", "") if part.get_param("delsp") else text


def shown(text):
    """Return text without comments, hidden letters and tags; reversed text reversed."""
    text = re.sub(r"<!--.*?-->|<style.*?</style>", "", text, flags=re.S | re.I)
    text = re.sub(r"<(span|font) [^>]*(?:none|1px|size:0|#ffffff)[^>]*>[^<]*</\1>", "", text)
    text = re.sub(r"<(bdo|span) [^>]*rtl[^>]*>([^<]*)</\1>", lambda m: m[2][::-1], text)
    text = unescape(re.sub(r"<[^>]*>", "", text))
    return re.sub("\u202e(.*?)\u202c", lambda m: m[1][::-1], text)


def read_back(text):
    """Return the letters that a reader sees, in lower case."""
    for table in TRANSLATED.values():
        text = text.translate({v: k for k, v in table.items() if v not in range(0x61, 0x7B)})
    plain = unicodedata.normalize("NFKD", text).casefold()
    return re.sub("[^a-z]", "", plain)


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize("spam", [PLAIN, PAGE], ids=["plain", "html"])
def test_every_attack_is_a_mail_that_still_says_what_the_spam_said(kind, spam):
    for name in FORMS[kind]:
        says_what_the_spam_said(kind, name, read_mail(spam))


def says_what_the_spam_said(kind, name, mail):
    made = FORMS[kind][name](mail._replace(good=GOOD))
    message = message_from_bytes(made, policy=policy.compat32)

    assert message["From"] == ("s@lists.example.org" if "all heads" in name else OFFERS)
    assert not [d for part in message.walk() for d in part.defects]
    subject = str(make_header(decode_header(message["Subject"].replace("\n", ""))))
    text = re.sub(r"\s+", " ", texts_of(message))
    if kind != "spelling":
        assert subject.startswith("Great offers for you")
        pieces = TEXT.split() if name.startswith("words between") else [TEXT]
        assert all(piece in text.replace("\\,", ",") for piece in pieces)
    elif name in MISSPELT:
        assert {c for c in text if c not in "aeiou"} == {c for c in TEXT if c not in "aeiou"}
    else:
        assert read_back(text) == read_back(TEXT)
        assert read_back(shown(subject)) == "greatoffersforyou"


def test_every_hidden_form_holds_the_good_words_and_every_spelling_differs():
    for form in FORMS["hidden"].values():
        made = form(read_mail(PLAIN)._replace(good=GOOD))

        assert all(word.encode() in made for word in GOOD.words[:150])
    for form in SPELLING.values():
        assert b"before midnight ends" not in form(read_mail(PLAIN)._replace(good=GOOD))
