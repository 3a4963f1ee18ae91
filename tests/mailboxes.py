"""Mailboxes for the page, with messages whose times and words are known."""

import os

from nbspam.server.page.mailbox import Mailboxes


def written(number, words="lunch on friday"):
    """Return a message; the scripted judge calls pills spam, and perhaps unsure."""
    head = f"From: {number}@a.example\nSubject: number {number}\n"
    return f"{head}\n{words}\n".encode()


def put(root, number, data=None, part="new"):
    """Put a message into a Maildir, which is made if there is none; return its path."""
    for name in ("cur", "new", "tmp"):
        (root / name).mkdir(parents=True, exist_ok=True)
    path = root / part / f"{number}.M1.host"
    path.write_bytes(written(number) if data is None else data)
    os.utime(path, (1000 + number, 1000 + number))
    return path


def key_of(number):
    """Return by what the page knows a message."""
    return f"{number}.M1.host"


def boxes(folder):
    """Return the mailbox `box` in a folder, with notes beside `m`."""
    (folder / "m").touch()
    return Mailboxes(str(folder / "box"), str(folder / "m"))
