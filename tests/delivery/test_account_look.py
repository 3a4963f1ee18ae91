"""What a message of an account needs when a look ended while its user marked it.

All other cases of `need_of` are those of tests/imap/test_sort.py.
"""

import pytest

from nbspam.delivery.account_look import LeftMessage, Need, PlacedMessage, need_of
from nbspam.delivery.maildir import MOVING


@pytest.mark.parametrize(("left", "need"), [("", Need.HAM), ("ham", Need.VERDICT)])
def test_a_message_that_was_being_moved_is_a_lesson_if_its_user_has_marked_it_since(left, need):
    message = PlacedMessage("folder", 1, 1, 1, "ham", "ham", is_read=True)
    assert need_of(message, LeftMessage(MOVING, left), {"ham"}, has_gone=True) is need
