"""Requests of users who are logged in to pages of their own, and answers, without a network."""

from time import time
from urllib.parse import urlencode

from mailboxes import put, written
from nbspam.server.page.mailbox import Mailboxes
from page_requests import conversation
from scripted import ACCESS, desk

OWN = ("Host: 127.0.0.1:8025", "Origin: http://127.0.0.1:8025")
SITE = ""
USERS = ("ann", "bob", SITE)
SESSIONS = {user: ACCESS.new_session(time(), user) for user in USERS}
FORMS = {user: ACCESS.form_token(SESSIONS[user]) for user in USERS}


def asked(user, method, path, form=None, session=None):
    """Return a request of somebody who is logged in."""
    data = urlencode(form or {}).encode()
    head = [f"{method} {path} HTTP/1.1", *OWN]
    head += [f"Cookie: nbspam-8025={session or SESSIONS[user]}", f"Content-Length: {len(data)}"]
    return "\r\n".join([*head, "", ""]).encode() + data


def tell(user, /, **form):
    return asked(user, "POST", "/tell", {"form": FORMS[user], **form})


def furnished(folder):
    """Return a folder of three users: ann has two messages, bob one, and eve a model only."""
    put(folder / "boxes" / "ann", 1)
    put(folder / "boxes" / "ann", 2, written(2, "pills"))
    put(folder / "boxes" / "bob", 7, written(7, "bobs own"))
    (folder / "users" / "eve").mkdir(parents=True)
    (folder / "users" / "eve" / "model").touch()
    return folder


def talk(house, *requests, review="boxes"):
    """Return the desk, and (status, headers, text) of each answer, asked one after the other."""

    def make():
        folder = review and str(house / review)
        return desk(mailboxes=Mailboxes(folder, "", str(house / "users")))

    return conversation(make, requests)
