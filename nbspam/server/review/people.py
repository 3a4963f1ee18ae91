"""People: who has a page of their own, and where their mail and their model are.

Whoever has a mailbox or a model has a page; whoever has neither any more has none, whatever their
token and their browser say.

Secret: how a user's mailbox is found.
"""

import os
import stat

from nbspam.errors import InputError
from nbspam.server.users import folder_name, model_in, names_in


class People:
    """Who has a page; all methods look at the disk, and name users as `users.known_as` does.

    users: the folder of their models.  review: the folder of their mailboxes, each by its user's
    name as that of the folder with the model; None: there is none.
    """

    def __init__(self, users: str, review: str | None) -> None:
        self._users = users
        self._review = review

    def names(self) -> list[str]:
        """Return all who have a page, in order."""
        found = {*names_in(self._users)}
        if self._review is not None:
            found.update(names_in(self._review))
        return sorted(found)

    def knows(self, name: str) -> bool:
        """Return whether somebody has a page; name: of one whom `names` returned once."""
        folder = os.path.dirname(self.model(name))
        return os.path.lexists(folder) or self.mailbox(name) is not None

    def model(self, name: str) -> str:
        """Return where somebody's model is, or will be; raises UserError."""
        return model_in(self._users, name)

    def mailbox(self, name: str) -> str | None:
        """Return the path of somebody's mail, None if there is none; raises UserError."""
        if self._review is None:
            return None
        path = os.path.join(self._review, folder_name(name))
        return path if os.path.lexists(path) else None


def check_mailboxes(folder: str) -> None:
    """Raise InputError if there is no folder of mailboxes at a path."""
    try:
        if stat.S_ISDIR(os.stat(folder).st_mode):
            return
        reason = "not a folder"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    raise InputError(f"--review {folder}: {reason}; with --users, give the folder of mailboxes")
