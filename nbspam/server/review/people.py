"""People: who has a page of their own, and where their mail and their model are.

Whoever has a mailbox or a model has a page; whoever has neither any more has none, whatever their
token and their browser say.

Secret: how a user's mailbox is found.
"""

import os
import stat
from typing import NamedTuple

from nbspam.errors import InputError, NbspamError
from nbspam.server.users import folder_name, model_in, names_in


class RemovedError(NbspamError):
    """A user who has neither a mailbox nor a model any more."""


class NoMailError(NbspamError):
    """A user who has a model, and no mailbox."""


class Person(NamedTuple):
    """Somebody who has a page."""

    name: str
    has_mail: bool
    has_taught: bool


class People:
    """Who has a page; all methods look at the disk, and name users as `users.known_as` does.

    users: the folder of their models.  review: the folder of their mailboxes, each by its user's
    name as that of the folder with the model; None: there is none.
    """

    def __init__(self, users: str, review: str | None) -> None:
        self._users = users
        self._review = os.devnull if review is None else review  # in which there is nothing

    def all(self) -> list[Person]:
        """Return all who have a page, in the order of their names."""
        names = {*names_in(self._users), *names_in(self._review)}
        each = (Person(name, *map(os.path.exists, self._places(name))) for name in sorted(names))
        return [person for person in each if person.has_mail or person.has_taught]

    def model(self, name: str) -> str:
        """Return where somebody's model is, or will be; raises UserError."""
        return model_in(self._users, name)

    def mailbox(self, name: str) -> str:
        """Return the path of somebody's mail; raises UserError, RemovedError and NoMailError."""
        mailbox, model = self._places(name)
        if os.path.exists(mailbox):
            return mailbox
        if os.path.exists(model):
            raise NoMailError("no mailbox has your name")
        raise RemovedError("nothing here has your name any more")

    def _places(self, name: str) -> tuple[str, str]:
        """Return where somebody's mailbox and model are, or would be; raises UserError."""
        return os.path.join(self._review, folder_name(name)), self.model(name)


def check_mailboxes(folder: str) -> None:
    """Raise InputError if there is no folder of mailboxes at a path."""
    try:
        if stat.S_ISDIR(os.stat(folder).st_mode):
            return
        reason = "not a folder"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    raise InputError(f"--review {folder}: {reason}; with --users, give the folder of mailboxes")
