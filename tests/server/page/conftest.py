"""A page of one mailbox, and pages of users."""

import pytest

from mailboxes import boxes
from scripted import desk
from visitors import Visitor, furnished


@pytest.fixture
def box(tmp_path):
    """The mailbox, which a first message makes."""
    return tmp_path / "box"


@pytest.fixture
def page(tmp_path):
    """A visitor of the page that shows it."""
    at = desk(mailboxes=boxes(tmp_path))
    yield Visitor(at)
    at.reviewer.end()


@pytest.fixture
def house(tmp_path):
    """Visitors of the pages of users."""
    with furnished(tmp_path) as found:
        yield found
