"""What each message of an account needs: one row a case of `need_of`."""

import pytest

from nbspam.delivery.account_look import LeftMessage, Need, PlacedMessage, need_of
from nbspam.delivery.maildir import MOVING


def placed(place, keyword="", is_read=False, **more):
    return PlacedMessage("folder", 1, 1, 1, place, keyword, is_read or bool(keyword), **more)


READ_COPY = placed("ham", is_read=True, is_delivered=True)


@pytest.mark.parametrize(
    ("message", "before", "places", "need"),
    [
        # no look has seen it
        (placed("ham"), None, {"ham"}, Need.VERDICT),
        (placed("ham", is_read=True), None, {"ham"}, Need.NOTHING),
        (placed("unsure"), None, {"unsure"}, Need.NOTHING),
        (placed("spam"), None, {"spam"}, Need.CHECK),
        (placed("spam", is_lesson=True), None, {"spam"}, Need.SPAM),
        (placed("ham", "spam"), None, {"ham"}, Need.SPAM),
        (placed("spam", "ham"), None, {"spam"}, Need.HAM),
        # a look that ended early was moving it
        (placed("ham"), LeftMessage(MOVING), {"ham"}, Need.VERDICT),
        (placed("ham"), LeftMessage(MOVING), {"ham", "spam"}, Need.REMOVAL),
        (placed("spam"), LeftMessage(MOVING), {"spam"}, Need.NOTHING),
        (placed("ham", "spam"), LeftMessage(MOVING), {"ham"}, Need.NOTHING),
        (placed("ham", "ham"), LeftMessage(MOVING), {"ham"}, Need.HAM),
        (placed("ham", "ham"), LeftMessage(MOVING, "ham"), {"ham"}, Need.VERDICT),
        # its user marked it, or took a mark away
        (placed("ham", "spam"), LeftMessage("ham"), {"ham"}, Need.SPAM),
        (placed("ham", "spam"), LeftMessage("ham", "spam"), {"ham"}, Need.NOTHING),
        (placed("ham", is_known=True), LeftMessage("ham", "spam"), {"ham"}, Need.HAM),
        # it came with the headers of a known one
        (placed("ham", is_delivered=True), LeftMessage("ham"), {"ham"}, Need.VERDICT),
        (READ_COPY, LeftMessage("ham"), {"ham"}, Need.NOTHING),
        # its user moved it, or copied it
        (placed("ham"), LeftMessage("ham"), {"ham"}, Need.NOTHING),
        (placed("spam"), LeftMessage("ham"), {"spam"}, Need.SPAM),
        (placed("ham"), LeftMessage("spam"), {"ham"}, Need.HAM),
        (placed("unsure"), LeftMessage("ham"), {"unsure"}, Need.NOTHING),
        (placed("spam"), LeftMessage("ham"), {"ham", "spam"}, Need.COMPARISON),
    ],
)
def test_each_message_of_an_account_has_one_need(message, before, places, need):
    assert need_of(message, before, places, has_gone=not message.is_known) is need


def test_a_mark_that_went_with_a_copy_was_not_taken_away():
    other = placed("ham", is_known=True)
    assert need_of(other, LeftMessage("ham", "spam"), {"ham"}, has_gone=True) is Need.NOTHING
