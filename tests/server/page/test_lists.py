"""The page's forms that allow and deny the sender of a message."""

import pytest

from maildirs import key_of, put
from nbspam.mail.addresses import AddressLists, read_lists

HEAD = "/message?key="


def buttons(page, number):
    found = page.shown(HEAD + key_of(number)).within("button")
    return [each for each in found if each not in ("Log out", "Spam", "Ham")]


def test_a_click_allows_or_denies_the_sender_and_the_page_says_how_to_take_it_back(
    page, box, tmp_path
):
    def lists():
        return (read_lists(str(tmp_path / "m")) or AddressLists({})).verbs

    put(box, 1)
    key = key_of(1)
    assert buttons(page, 1) == ["Allow this sender", "Deny this sender"]

    answer = page.list(deny=key, page=key)
    assert (answer.status_code, answer.headers["location"]) == (303, HEAD + key)
    assert lists() == {"1@a.example": "deny"}
    text = page.shown(HEAD + key).text
    assert "1@a.example is denied from now on. “Take off the list” takes it back." in text
    assert "The list says: deny 1@a.example" in text
    assert buttons(page, 1) == ["Allow this sender", "Take off the list"]

    page.list(allow=key, page=key)
    assert lists() == {"1@a.example": "allow"}
    assert "1@a.example is allowed from now on: certain if" in page.shown(HEAD + key).text
    assert buttons(page, 1) == ["Deny this sender", "Take off the list"]

    page.list(unlist=key, page=key)
    assert lists() == {}
    assert "1@a.example is on no list any more." in page.shown(HEAD + key).text
    (tmp_path / "m.lists").write_text("trust mx.example\nallow list:dev.example\n")
    page.list(deny=key)
    kept = {"list:dev.example": "allow", "1@a.example": "deny"}
    assert read_lists(str(tmp_path / "m")) == AddressLists(kept, "mx.example")


NO_SENDERS = ["", "a@b.example, c@d.example", "com#x@b.example", "nobody", "<\u202e>", "<<b>x@b>"]


@pytest.mark.parametrize(
    ("sender", "text", "status", "words"),
    [
        *((each, "", 404, "Or no list can hold its sender.") for each in NO_SENDERS),
        ("1@a.example", "nonsense\n", 500, "m.lists:1: neither allow nor deny ADDRESS"),
    ],
)
def test_a_sender_that_no_line_can_hold_or_a_list_that_cannot_be_read_has_no_buttons(
    page, box, tmp_path, sender, text, status, words
):
    put(box, 1, f"From: {sender}\nSubject: s\n\nx\n".encode())
    (tmp_path / "m.lists").write_text(text)
    assert buttons(page, 1) == []
    answer = page.list(deny=key_of(1))
    assert (answer.status_code, words in answer.text) == (status, True)
    assert (tmp_path / "m.lists").read_text() == text


def test_each_user_has_lists_of_their_own(house):
    assert house.bob.list(deny=key_of(7), page=key_of(7)).status_code == 303
    users = house.folder / "users"
    assert (users / "bob" / "model.lists").read_text() == "deny 7@a.example\n"
    assert house.ann.list(deny=key_of(7)).status_code == 404  # not a message of ann's
    assert house.site.list(deny=key_of(7)).status_code == 403
    assert not (users / "ann").exists()
    assert "Deny this sender" in house.ann.shown(HEAD + key_of(1)).within("button")
