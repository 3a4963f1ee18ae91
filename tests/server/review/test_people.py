"""People: who has a page, by what lies in the folders of mailboxes and models."""

import pytest

from nbspam.errors import InputError
from nbspam.server.review.people import (
    NoMailError,
    People,
    Person,
    RemovedError,
    check_mailboxes,
)
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
    return People(str(folders / "users"), str(folders / "boxes"))


def test_who_has_a_mailbox_or_a_model_has_a_page(folders):
    assert people(folders).all() == [
        Person("ann", has_mail=False, has_taught=True),
        Person("bob", has_mail=True, has_taught=False),
        Person(SPANISH, has_mail=True, has_taught=False),
    ]


def test_mail_and_model_of_everyone_are_in_places_of_their_own(folders):
    found = people(folders)

    assert found.mailbox(SPANISH) == str(folders / "boxes" / "jos%C3%A9")
    assert found.model(SPANISH) == str(folders / "users" / "jos%C3%A9" / "model")
    with pytest.raises(NoMailError, match="no mailbox has your name"):
        found.mailbox("ann")


@pytest.mark.parametrize(
    "name",
    [
        "eve",
        "zoe",
        "kim",
        "..",
        ".",
        "/",
        "boxes",
        ".Spam",
        "bob/cur",
        "ann/../bob",
        "a\0",
        "../users/ann",
    ],
)
def test_who_is_not_there_has_no_mail(folders, name):
    with pytest.raises(RemovedError, match="nothing here has your name any more"):
        people(folders).mailbox(name)
    with pytest.raises(UserError, match="no user is named"):
        people(folders).mailbox("")


def test_who_is_removed_is_there_no_more(folders):
    found = people(folders)
    assert found.mailbox("bob") == str(folders / "boxes" / "bob")
    (folders / "boxes" / "bob" / "cur").rmdir()
    (folders / "boxes" / "bob").rmdir()

    assert [each.name for each in found.all()] == ["ann", SPANISH]
    with pytest.raises(RemovedError):
        found.mailbox("bob")


def test_without_mailboxes_there_are_models_only(folders):
    found = People(str(folders / "users"), None)

    assert [each.name for each in found.all()] == ["ann"]
    for name, error in (("ann", NoMailError), ("bob", RemovedError)):
        with pytest.raises(error):
            found.mailbox(name)
    assert People(str(folders / "none"), None).all() == []


def test_a_mailbox_in_the_place_of_their_folder_is_refused(folders):
    check_mailboxes(str(folders / "boxes"))
    for path, why in (
        ("boxes/jos%C3%A9", "not a folder"),
        ("none", "No such file"),
        ("\0", "null"),
    ):
        with pytest.raises(InputError, match=f"{why}.*; with --users, give the folder of mailbox"):
            check_mailboxes(str(folders / path))
