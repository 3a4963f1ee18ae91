"""Maildirs: one that tests sort, with mail of which the model of `trained` is sure, and those of
the page, with messages whose times and words are known.
"""

import os

from nbspam.delivery.maildir import SortingChoices, read_note, sort_maildir
from nbspam.server.page.mailbox import Mailboxes
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from nbspam.store.open import load_tokens
from support import HAM, SPAM, make_maildir

DAY = 20_000


class Maildir:
    def __init__(self, root, model):
        self.root, self.model = make_maildir(root), model

    def put(self, path, data):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(data)

    def sort(self, *rule, **choices):
        return sort_maildir(str(self.root), str(self.model), SortingChoices(**choices), DAY, *rule)

    def rename(self, source, target):
        (self.root / target).parent.mkdir(parents=True, exist_ok=True)
        (self.root / source).rename(self.root / target)

    @property
    def files(self):
        found = (p for p in self.root.rglob("*") if p.parent.name in ("cur", "new", "tmp"))
        return {str(p.relative_to(self.root)): p.read_bytes() for p in found}

    def noted(self):
        return {base: left.place for base, left in read_note(str(self.root)).items()}

    def n_learned(self):
        return len(StoredModel(str(self.model)).whole().memory.ledger.digests)

    def learned(self):
        return load_tokens(str(self.model)).table.class_count.tolist()

    def teach(self, data, label):
        """Teach the model as a person does who tells a label; None un-learns."""
        model = StoredModel(str(self.model))
        if label is None:
            return model.unlearn([Item("-", None, data)], day=DAY)
        return model.learn([Item("-", label, data, told=True)], day=DAY, classes=[label])


def spam(n):
    return SPAM + b"spam number %d\n" % n


def ham(n):
    return HAM + b"ham number %d\n" % n


def news(n):
    """Return news of a club, which the model `site` calls ham."""
    head = b"From: news@club.example\nSubject: zanzibar news %d\n" % n
    return head + b"\nmeeting of the kayak club %d\n" % n


# ---- mailboxes of the page ----


def written(number, words="lunch on friday"):
    """Return a message; the scripted judge calls pills spam, and perhaps unsure."""
    head = f"From: {number}@a.example\nSubject: number {number}\n"
    return f"{head}\n{words}\n".encode()


def put(root, number, data=None, part="new"):
    """Put a message into a Maildir, which is made if there is none; return its path."""
    path = make_maildir(root) / part / key_of(number)
    path.write_bytes(written(number) if data is None else data)
    os.utime(path, (1000 + number, 1000 + number))
    return path


def key_of(number):
    return f"{number}.M1.host"


def boxes(folder):
    """Return the mailbox `box` in a folder, with notes beside `m`."""
    (folder / "m").touch()
    return Mailboxes(str(folder / "box"), str(folder / "m"))
