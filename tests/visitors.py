"""Browsers that visit the page in memory: Starlette's test client, logged in or not."""

import json
import re
from base64 import b64decode
from contextlib import contextmanager
from types import SimpleNamespace

from starlette.testclient import TestClient

from maildirs import put, written
from markup import Page
from nbspam.server.page.mailbox import Mailboxes
from nbspam.server.page.routes import page_app
from scripted import ACCESS, desk

HOST = "127.0.0.1:8025"
OURS = f"http://{HOST}"
COOKIE = "nbspam-8025"


class Visitor(TestClient):
    """A browser that has logged in, and says where its requests come from.

    user: who has logged in: "" is the site; None: nobody.
    """

    def __init__(self, at, user=""):
        super().__init__(
            page_app(at, 8025), OURS, headers={"Origin": OURS}, follow_redirects=False
        )
        self.desk = at
        if user is not None:
            self.get("/", params={"token": ACCESS.token_of(user)})

    @property
    def session(self):
        return self.cookies.get(COOKIE)

    @property
    def form(self):
        return json.loads(b64decode(self.session.partition(".")[0]))["form"]

    def tell(self, **form):
        return self.post("/tell", data={"form": self.form, **form})

    def list(self, **form):
        return self.post("/list", data={"form": self.form, **form})

    def shown(self, path="/"):
        answer = self.get(path)
        assert answer.status_code == 200
        return Page(answer.text)

    def rows(self, path="/"):
        found = re.findall(r"<li.*?</li>", self.get(path).text, re.DOTALL)
        return [Page(row).text.strip() for row in found]

    def forbidden(self):
        return self.desk.tally.total("trouble forbidden")


@contextmanager
def furnished(folder):
    """Yield visitors of the pages of users: ann has two messages, bob one, eve a model only."""
    put(folder / "boxes" / "ann", 1)
    put(folder / "boxes" / "ann", 2, written(2, "pills"))
    put(folder / "boxes" / "bob", 7, written(7, "bobs own"))
    (folder / "users" / "eve").mkdir(parents=True)
    (folder / "users" / "eve" / "model").touch()
    at = desk(mailboxes=Mailboxes(str(folder / "boxes"), "", str(folder / "users")))
    visitors = {name or "site": Visitor(at, name) for name in ("", "ann", "bob", "eve")}
    yield SimpleNamespace(folder=folder, desk=at, **visitors)
    at.reviewer.end()
