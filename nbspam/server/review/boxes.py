"""Boxes: whose mail the page shows, with which notes and by which model.

Secret: where a mailbox and its notes lie, with users and without.
"""

import os
from typing import NamedTuple

from nbspam.disk import stamp_of
from nbspam.errors import NbspamError
from nbspam.server.review.database import Database
from nbspam.server.review.filing import Filing
from nbspam.server.review.mailbag import Mailbag
from nbspam.server.review.people import People
from nbspam.store.model import StoredModel


class Box(NamedTuple):
    """A mailbox, what the page remembers of it, and whose it is."""

    mailbag: Mailbag
    database: Database
    user: str = ""  # from `users.known_as`; "" without users
    model: str | None = None  # the user's own; None without users

    @property
    def model_time(self) -> float:
        """When the user's own model was written, seconds since 1970; 0 if there is none."""
        stamp = None if self.model is None else stamp_of(self.model)
        return 0.0 if stamp is None else stamp[3] / 1e9

    def own_model(self) -> StoredModel | None:
        """Return the user's own model; None if there is none, or it cannot be read."""
        if self.model is None or not os.path.exists(self.model):
            return None
        try:
            return StoredModel(self.model)
        except NbspamError:  # of which the judge tells
            return None

    def written(self, now: float, site: float) -> float:
        """Return when the models by which messages are judged were written last; 0 if never.

        site: when the site's was, seconds since 1970.  A time that is not before now says nothing:
        there is no model yet, or the clock was set back; all verdicts would be old for ever.
        """
        return max((each for each in (site, self.model_time) if each < now), default=0.0)

    def filing(self) -> Filing | None:
        """Return what moves messages; None if the mailbox is no Maildir."""
        return Filing(self.mailbag) if self.mailbag.is_maildir else None


def box_of(review: str, model: str, user: str) -> Box:
    """Return a mailbox and its notes; raises InputError.

    review: the path of the mailbox.  model: the path of the model that it teaches.
    """
    return Box(Mailbag(review), Database(model), user)


def own_box_of(people: People, user: str) -> Box:
    """Return the mailbox of a user and its notes, which are beside the user's model.

    Raises UserError, RemovedError, NoMailError and InputError.
    """
    mailbag, model = Mailbag(people.mailbox(user)), people.model(user)
    return Box(mailbag, Database(model), user, model)
