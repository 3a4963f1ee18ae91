"""A page of one mailbox, in memory, and pages of users."""

import pytest

from maildirs import boxes
from nbspam.server.page.database import Database
from scripted import desk
from visitors import Visitor, furnished


@pytest.fixture
def box(tmp_path):
    """The mailbox, which a first message makes."""
    return tmp_path / "box"


@pytest.fixture
def at(tmp_path):
    """The desk of a page that shows it."""
    found = desk(mailboxes=boxes(tmp_path))
    yield found
    found.reviewer.end()


@pytest.fixture
def reviewer(at):
    return at.reviewer


@pytest.fixture
def database(tmp_path):
    return Database(str(tmp_path / "m"))


@pytest.fixture
def page(at):
    return Visitor(at)


@pytest.fixture
def house(tmp_path):
    with furnished(tmp_path) as found:
        yield found
