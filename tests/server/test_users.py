"""Users: their names, the folder of their models, and how each protocol names them."""

import asyncio
import os
import unicodedata
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from http_requests import post
from nbspam.errors import InputError
from nbspam.server.milter import MilterConnection
from nbspam.server.rspamd import RspamdConnection
from nbspam.server.spamd import SpamdConnection
from nbspam.server.users import (
    UserError,
    check_folder,
    known_as,
    user_folder_name,
    users_in,
)
from scripted import PASSWORD, Client, desk
from serving import OFFER, check, packet
from support import SPAM

# ---- names ----

NAMES = st.text(max_size=40) | st.text("aA./\\%~ \0\né", max_size=12)


@given(NAMES)
def test_a_name_is_never_a_path(text):
    name = known_as(text)
    if name and "\ufffd" not in name and len(name) < 15:
        folder = user_folder_name(name)
        assert unquote(folder, errors="surrogatepass") == name  # so that no two share a folder
        assert os.path.basename(folder) == folder
        assert not folder.startswith(".")
        assert folder.isascii()
        assert folder.isprintable()
        assert len(folder) <= 200


@given(NAMES)
def test_a_name_is_known_whatever_its_case_and_form(text):
    name = known_as(text)

    assert known_as(name) == name
    assert known_as(f" <{unicodedata.normalize('NFD', text)}> ") == name
    assert known_as(text.upper() if text.isascii() else text) == name


def test_recipients_are_known_as_senders_may_spell_them():
    assert known_as("<Alice@Example.ORG>") == known_as("alice@example.org") == "alice@example.org"
    assert known_as("Zoe\u0308") == known_as("ZO\u00cb") == "zo\u00eb"
    assert known_as("groß") != known_as("gross")
    assert known_as(None) == known_as("  ") == known_as("<>") == ""


def test_hostile_names_become_folders_or_are_refused():
    for name, folder in (
        ("alice@example.org", "alice@example.org"),
        ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd"),
        ("..", "%2E."),
        (".nbspam-0123456789abcdef", "%2Enbspam-0123456789abcdef"),
        ("a\0b", "a%00b"),
        ("%2e", "%252e"),
        ("zo\u00eb", "zo%C3%AB"),
        ("model.journal", "model.journal"),
    ):
        assert user_folder_name(name) == folder
    for text, why in (
        ("", "no user is named"), ("<>", "no user is named"), ("a" * 201, "201 bytes"),
        ("\u4e2d" * 23, "207 bytes"), ("a\ufffd", "not UTF-8"),
    ):  # fmt: skip
        with pytest.raises(UserError, match=why):
            user_folder_name(known_as(text))


@given(st.lists(NAMES, max_size=5))
def test_whose_folders_there_are_is_read_from_their_names(texts):
    names = {known_as(text) for text in texts if "\ufffd" not in text and len(text) < 15} - {""}
    with TemporaryDirectory() as folder:
        for name in names:
            Path(folder, user_folder_name(name)).mkdir()
        assert users_in(folder) == sorted(names)


def test_a_folder_that_no_user_has_is_nobodys(tmp_path):
    strange = (".Spam", "Alice", "%61lice", "a%2Fb%2f", "al%FFice", "a b", "%EF%BF%BD", "a" * 201)
    for entry in (*strange, "alice", b"caf\xe9"):
        os.mkdir(os.path.join(os.fsencode(tmp_path), os.fsencode(entry)))

    assert users_in(str(tmp_path)) == ["alice"]
    assert users_in(str(tmp_path / "alice" / "none")) == []


def test_the_folder_of_users_must_be_one(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"")
    for path, why in (
        (file, r"--users .*file: not a folder"),
        (file / "below", r"--users .*give another folder"),
        ("a\0b", r"null (byte|character)"),
    ):
        with pytest.raises(InputError, match=why):
            check_folder(str(path))
    check_folder(str(tmp_path / "new"))


# ---- which user it is, by protocol ----


def users_of(kind, *pieces, **choices):
    """Return the users that a desk's judge and teacher heard of, and the answer."""

    async def converse():
        at = desk(**choices)
        client = await Client(kind, at).send(*pieces)
        await client.end()
        return at.judge.users, at.teacher.users, client.answer

    return asyncio.run(converse())


def test_a_header_says_it_to_spamd_and_over_http_where_deliver_to_goes_before_user():
    request = check(SPAM, "CHECK", "1.5", "User: <Ann@B.example>")
    lesson = ("User: Bob", "Message-class: spam", "Set: local")
    assert users_of(SpamdConnection, request)[0] == ["ann@b.example"]
    assert users_of(SpamdConnection, check(SPAM, "TELL", "1.5", *lesson))[1] == ["bob"]

    password = f"Password: {PASSWORD.decode()}"
    both = ("User: ann", "Deliver-To: <bob@b.example>")
    assert users_of(RspamdConnection, post("/checkv2", SPAM, "User: Ann"))[0] == ["ann"]
    assert users_of(RspamdConnection, post("/explain", SPAM, *both))[0] == ["bob@b.example"]
    taught = users_of(RspamdConnection, post("/learnham", SPAM, password, *both))[1]
    assert taught == ["bob@b.example"]


def test_the_only_recipient_is_the_user_of_a_milter():
    def mail(*recipients):
        return b"".join([
            packet(b"M", b"<a@b.example>\0"),
            *(packet(b"R", address + b"\0NOTIFY=NEVER\0") for address in recipients),
            packet(b"L", b"Subject\0pills\0"), packet(b"N"), packet(b"E"),
        ])  # fmt: skip

    one, two = b"<Ann@B.example>", b"<bob@b.example>"
    stream = OFFER + mail(one) + mail(one, two) + mail(two) + mail(one, one) + mail(two, one, two)
    found = users_of(MilterConnection, stream)[0]
    assert found == ["ann@b.example", "", "bob@b.example", "ann@b.example", ""]
