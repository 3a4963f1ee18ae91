"""People: who has a page, by what lies in the folders of mailboxes and models."""

import pytest

from nbspam.errors import InputError
from nbspam.server.review.people import People, check_mailboxes

SPANISH = "jos\u00e9"


@pytest.fixture
def folders(tmp_path):
    for path in ("users/ann/cur", "users/.nbspam-1", "boxes/bob/cur", "boxes/Eve", "boxes/.Spam"):
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / "boxes" / "jos%C3%A9").write_bytes(b"From x\n\n")
    return tmp_path


def people(folders):
    return People(str(folders / "users"), str(folders / "boxes"))


def test_who_has_a_mailbox_or_a_model_has_a_page(folders):
    found = people(folders)

    assert found.names() == ["ann", "bob", SPANISH]
    assert all(map(found.knows, found.names()))
    for nobody in ("eve", "..", ".", "/", "boxes", ".Spam", "ann/cur", "ann/../bob", "a\0"):
        assert not found.knows(nobody)


def test_mail_and_model_of_everyone_are_in_places_of_their_own(folders):
    found = people(folders)

    assert found.mailbox("ann") is None
    assert found.mailbox(SPANISH) == str(folders / "boxes" / "jos%C3%A9")
    assert found.model(SPANISH) == str(folders / "users" / "jos%C3%A9" / "model")
    assert found.mailbox("../users/ann") is None


def test_who_is_removed_is_known_no_more(folders):
    found = people(folders)
    (folders / "boxes" / "bob" / "cur").rmdir()
    (folders / "boxes" / "bob").rmdir()

    assert not found.knows("bob")
    assert found.names() == ["ann", SPANISH]


def test_without_mailboxes_there_are_models_only(folders):
    found = People(str(folders / "users"), None)

    assert found.names() == ["ann"]
    assert found.mailbox("bob") is None
    assert not found.knows("bob")
    assert People(str(folders / "none"), None).names() == []


def test_a_mailbox_in_the_place_of_their_folder_is_refused(folders):
    check_mailboxes(str(folders / "boxes"))
    for path, why in (
        ("boxes/jos%C3%A9", "not a folder"),
        ("none", "No such file"),
        ("\0", "null"),
    ):
        with pytest.raises(InputError, match=f"{why}.*; with --users, give the folder of mailbox"):
            check_mailboxes(str(folders / path))
