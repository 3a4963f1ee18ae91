"""People: who has a page, by what lies in the folders of mailboxes and models."""

import pytest

from nbspam.errors import InputError
from nbspam.server.page import mailbox
from nbspam.server.page.mailbox import Mailboxes, NoMailError, Person, RemovedError
from nbspam.server.users import UserError

SPANISH = "jos\u00e9"


@pytest.fixture
def folders(tmp_path):
    for path in ("users/ann", "users/.nbspam-1", "boxes/bob/cur", "boxes/Eve", "boxes/.Spam"):
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / "users" / "ann" / "model").touch()
    (tmp_path / "users" / "zoe").mkdir()  # who has looked, but taught nothing
    (tmp_path / "boxes" / "kim").symlink_to("nowhere")
    (tmp_path / "boxes" / "jos%C3%A9").write_bytes(b"From x\n\n")
    return tmp_path


def people(folders):
    return Mailboxes(str(folders / "boxes"), "", str(folders / "users"))


def test_who_has_a_mailbox_or_a_model_has_a_page(folders):
    assert people(folders).people() == [
        Person("ann", has_mail=False, has_taught=True),
        Person("bob", has_mail=True, has_taught=False),
        Person(SPANISH, has_mail=True, has_taught=False),
    ]


def test_mail_and_model_of_everyone_are_in_places_of_their_own(folders):
    found = people(folders)

    box = found.box(SPANISH)
    assert box.mailbag.path == str(folders / "boxes" / "jos%C3%A9")
    assert box.model == box.database.model == str(folders / "users" / "jos%C3%A9" / "model")
    with pytest.raises(NoMailError, match="no mailbox has your name"):
        found.box("ann")


def test_who_is_not_there_has_no_mail(folders):
    names = "eve", "zoe", "kim", "..", ".", "/", "boxes", ".Spam", "bob/cur", "ann/../bob", "a\0"
    for name in (*names, "../users/ann"):
        with pytest.raises(RemovedError, match="nothing here has your name any more"):
            people(folders).box(name)
        with pytest.raises(UserError, match="no user is named"):
            people(folders).box("")


def test_who_is_removed_is_there_no_more(folders):
    found = people(folders)
    found.box("bob")
    (folders / "boxes" / "bob" / "cur").rmdir()
    (folders / "boxes" / "bob").rmdir()

    assert [each.name for each in found.people()] == ["ann", SPANISH]
    with pytest.raises(RemovedError):
        found.box("bob")


def test_without_mailboxes_there_are_models_only(folders):
    found = Mailboxes(None, "", str(folders / "users"))

    assert [each.name for each in found.people()] == ["ann"]
    for name, error in (("ann", NoMailError), ("bob", RemovedError)):
        with pytest.raises(error):
            found.box(name)
    assert Mailboxes(None, "", str(folders / "none")).people() == []


def test_a_mailbox_in_the_place_of_their_folder_is_refused(folders):
    mailbox.check_mailboxes(str(folders / "boxes"))
    found = {"boxes/jos%C3%A9": "not a folder", "none": "No such file", "\0": "null"}
    for path, why in found.items():
        with pytest.raises(InputError, match=f"{why}.*; with --users, give the folder of mailbox"):
            mailbox.check_mailboxes(str(folders / path))
