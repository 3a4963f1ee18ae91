"""A made-up mailbox of one person, with her sent mail, for benchmarks/people.py.

Three years of mail in the order of time: colleagues and friends who write and answer, lists with
many strangers, first contacts, newsletters, and spam, some of which forges replies or bears the
names or addresses of people she knows.  Heads are made up; texts are those of a corpus.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import NamedTuple, TypeVar
from zlib import crc32

T = TypeVar("T")
SERVER = "mx.berg.example"
BROKEN = 3  # per cent of messages whose signatures a forwarder breaks
OWN = "Anna Berg <anna@berg.example>"
BEGIN, YEARS = datetime(2021, 1, 4, 8, tzinfo=UTC), 3
_FIRST = [
    "Ada",
    "Ben",
    "Carla",
    "David",
    "Eva",
    "Felix",
    "Greta",
    "Hugo",
    "Ines",
    "Jan",
    "Karin",
    "Leo",
    "Maria",
    "Nils",
    "Olga",
    "Paul",
]
_LAST = [
    "Adler",
    "Brandt",
    "Costa",
    "Dahl",
    "Engel",
    "Fuchs",
    "Graf",
    "Holm",
    "Ivanov",
    "Jung",
    "Keller",
    "Lang",
    "Moser",
    "Novak",
]
_ENDS = [
    "",
    "a",
    "e",
    "er",
    "ert",
    "in",
    "ing",
    "le",
    "mann",
    "o",
    "ova",
    "s",
    "sen",
    "son",
    "ström",
    "us",
    "y",
]
_MAILERS = "Mozilla Thunderbird", "Apple Mail (2.3608)", "Microsoft Outlook 16.0", "Mutt/2.2"
# Kinds of mail, and their shares of the mailbox in per cent.
SHARES = {
    "list": 26, "reply": 13, "known": 9, "first contact": 4, "newsletter": 8,
    "spam": 33, "forged reply": 3, "thief": 2.5, "forged address": 1.5,
}  # fmt: skip
SPAM = ("spam", "forged reply", "thief", "forged address")


class Person(NamedTuple):
    """Somebody who writes mail."""

    name: str
    address: str
    mailer: str

    def __str__(self) -> str:
        return f"{self.name} <{self.address}>"


class Letter(NamedTuple):
    """A message of the mailbox."""

    kind: str  # one of SHARES, or "sent"
    when: datetime
    data: bytes

    @property
    def label(self) -> str:
        """Its class."""
        return "spam" if self.kind in SPAM else "ham"


Texts = dict[str, list[tuple[str, str]]]  # subjects and bodies of ham and spam


def checked(host: str, author: str, *, is_lost: bool = False) -> str:
    """Return what her server notes of a message from a host, with an author's domain.

    is_lost: it was forwarded by somebody who broke its signature.
    """
    # 8 of 10 domains publish all that is asked for, one has SPF alone, and one nothing.
    kinds = {each: crc32(each.encode()) % 10 for each in (host, author)}
    is_spf, is_dkim = kinds[host] < 9, kinds[host] < 8 and host != "lists.example"
    spf = "none" if not is_spf else "fail" if is_lost else "pass"
    dkim = "none" if not is_dkim else "fail" if is_lost else "pass"
    is_aligned = host == author and not is_lost
    dmarc = "none" if kinds[author] >= 8 else "pass" if is_aligned else "fail"
    return (
        f"Authentication-Results: {SERVER}; spf={spf} smtp.mailfrom={host};"
        f" dkim={dkim} header.d={host}; dmarc={dmarc} header.from={author}\n"
    )


class _Thread(NamedTuple):
    subject: str
    ids: tuple[str, ...]
    people: tuple[Person, ...]


class Mailbox:
    """The state of the made-up world while its mail is written."""

    def __init__(self, texts: Texts, seed: int) -> None:
        self.random = random.Random(seed)
        self.texts = texts
        self.used: Counter[str] = Counter()
        self.known = [self._stranger() for _ in range(25)]
        self.lists = [
            (f"{name}@lists.example", [self._stranger() for _ in range(60)])
            for name in ("gardeners", "python", "neighbours")
        ]
        self.newsletters = [self._stranger() for _ in range(12)]
        self.waiting: list[_Thread] = []  # her messages that nobody has answered yet
        self.on_lists: list[list[_Thread]] = [[] for _ in self.lists]
        self.published: list[str] = []  # the ids of her messages to lists

    def _stranger(self) -> Person:
        """Return somebody new."""
        first, last = self._one(_FIRST), self._one(_LAST) + self._one(_ENDS)
        host = f"{self._one(_LAST)}{self.random.randrange(900)}.example"
        if self.random.random() < 0.4:
            host = "freemail.example"
        address = f"{first}.{last}{self.random.randrange(99)}@{host}".lower()
        return Person(f"{first} {last}", address, self._one(_MAILERS))

    def _one(self, of: Sequence[T]) -> T:
        return self.random.choice(of)

    def _text(self, of: str) -> tuple[str, str]:
        """Return the next subject and body of a class."""
        texts = self.texts[of]
        self.used[of] += 1
        return texts[(self.used[of] - 1) % len(texts)]

    def letters(self, n: int) -> Iterator[Letter]:
        """Yield n messages that she gets, and those that she sends, in the order of time."""
        kinds = self.random.choices(list(SHARES), list(SHARES.values()), k=n)
        step = timedelta(days=365.25 * YEARS) / n
        for number, kind in enumerate(kinds):
            when = BEGIN + step * (number + self.random.random() * 0.3)
            if not self.waiting or self.random.random() < 0.1:
                yield self._sent(
                    when - step * 0.2, _Thread(self._text("ham")[0], (), (self._one(self.known),))
                )
            yield from getattr(self, f"_{kind.replace(' ', '_')}_mail")(
                kind, when, when + step * 0.5
            )

    # --- kinds of mail ------------------------------------------------------------------------

    def _reply_mail(self, kind: str, when: datetime, later: datetime) -> Iterator[Letter]:
        thread = self.waiting.pop(self.random.randrange(len(self.waiting)))
        letter, thread = self._written(kind, when, thread.people[0], self._text("ham")[1], thread)
        yield letter
        if self.random.random() < 0.5:
            yield self._sent(later, thread)

    def _known_mail(self, kind: str, when: datetime, later: datetime) -> Iterator[Letter]:
        subject, body = self._text("ham")
        person = self._one(self.known)
        letter, thread = self._written(kind, when, person, body, _Thread(subject, (), (person,)))
        yield letter
        if self.random.random() < 0.7:
            yield self._sent(later, thread)

    def _first_contact_mail(self, kind: str, when: datetime, later: datetime) -> Iterator[Letter]:
        subject, body = self._text("ham")
        person = self._stranger()
        letter, thread = self._written(kind, when, person, body, _Thread(subject, (), (person,)))
        yield letter
        if self.random.random() < 0.7:
            self.known.append(person)
            yield self._sent(later, thread)

    def _newsletter_mail(self, kind: str, when: datetime, later: datetime) -> Iterator[Letter]:
        subject, body = self._text("ham")
        more = "List-Unsubscribe: <https://news.example/out>\nPrecedence: bulk\n"
        yield self._written(
            kind, when, self._one(self.newsletters), body, _Thread(subject, (), ()), more
        )[0]

    def _list_mail(self, kind: str, when: datetime, later: datetime) -> Iterator[Letter]:
        number = self.random.randrange(len(self.lists))
        (address, people), threads = self.lists[number], self.on_lists[number]
        subject, body = self._text("ham")
        is_reply = threads and self.random.random() < 0.65
        thread = self._one(threads[-20:]) if is_reply else _Thread(subject, (), ())
        name = address.partition("@")[0]
        more = (
            f"List-Id: <{name}.lists.example>\nList-Post: <mailto:{address}>\nPrecedence: list\n"
        )
        if thread.ids and thread.ids[-1] in self.published and self.random.random() < 0.3:
            more, address = "", OWN  # somebody answers her alone
        letter, thread = self._written(kind, when, self._one(people), body, thread, more, address)
        threads.append(thread)
        yield letter
        if self.random.random() < 0.08:
            answer = self._sent(later, thread._replace(people=(Person(name, address, ""),)), False)
            self.published.append(self.last_id)
            threads.append(_Thread(thread.subject, (*thread.ids, self.last_id), ()))
            yield answer

    def _spam_mail(self, kind: str, when: datetime, later: datetime) -> Iterator[Letter]:
        yield self._junk(kind, when, self._stranger())

    def _forged_reply_mail(self, kind: str, when: datetime, later: datetime) -> Iterator[Letter]:
        subject, body = self._text("spam")
        ids = (
            (self._one(self.published),)
            if self.published and self.random.random() < 0.3
            else (self._new_id("mail"),)
        )
        yield self._written(kind, when, self._stranger(), body, _Thread(subject, ids, ()))[0]

    def _thief_mail(self, kind: str, when: datetime, later: datetime) -> Iterator[Letter]:
        name = self._one(self.known).name
        address = f"{name.lower().replace(' ', '')}{self.random.randrange(99)}@freemail.example"
        yield self._junk(kind, when, Person(name, address, self._one(_MAILERS)))

    def _forged_address_mail(self, kind: str, when: datetime, later: datetime) -> Iterator[Letter]:
        yield self._junk(kind, when, self._one(self.known))

    # --- writing ------------------------------------------------------------------------------

    def _junk(self, kind: str, when: datetime, sender: Person) -> Letter:
        subject, body = self._text("spam")
        return self._written(kind, when, sender, body, _Thread(subject, (), ()))[0]

    def _new_id(self, host: str) -> str:
        return f"<{self.random.getrandbits(64):016x}@{host}.example>"

    def _written(
        self, kind: str, when: datetime, sender: Person, body: str, thread: _Thread,
        more: str = "", to: str = OWN,
    ) -> tuple[Letter, _Thread]:  # fmt: skip
        """Return a message in a thread, and the thread with it."""
        own = self._new_id(sender.address.partition("@")[2].partition(".")[0])
        by = self._stranger() if kind == "forged address" else sender
        host, author = (who.address.partition("@")[2] for who in (by, sender))
        if kind == "list":
            host = "lists.example"
        route = f"Received: from mail.{host} by {SERVER}; {format_datetime(when)}\n"
        route = checked(host, author, is_lost=crc32(own.encode()) % 100 < BROKEN) + route
        letter = Letter(
            kind,
            when,
            _message(
                route,
                when,
                str(sender),
                to,
                own,
                thread,
                more + f"X-Mailer: {sender.mailer}\n",
                body,
            ),
        )
        return letter, thread._replace(ids=(*thread.ids, own))

    def _sent(self, when: datetime, thread: _Thread, may_be_answered: bool = True) -> Letter:
        """Return a message that she sends in a thread."""
        self.last_id = self._new_id("berg")
        to = ", ".join(map(str, thread.people))
        data = _message("", when, OWN, to, self.last_id, thread, "", self._text("ham")[1])
        if may_be_answered:
            self.waiting.append(thread._replace(ids=(*thread.ids, self.last_id)))
        return Letter("sent", when, data)


def _message(
    route: str,
    when: datetime,
    sender: str,
    to: str,
    own: str,
    thread: _Thread,
    more: str,
    body: str,
) -> bytes:
    subject = thread.subject
    if thread.ids:
        more += f"In-Reply-To: {thread.ids[-1]}\nReferences: {' '.join(thread.ids[-8:])}\n"
        subject = f"Re: {subject.removeprefix('Re: ')}"
    head = f"{route}From: {sender}\nTo: {to}\nSubject: {subject}\nDate: {format_datetime(when)}\n"
    kind = "MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n"
    return f"{head}Message-ID: {own}\n{more}{kind}\n{body}".encode("utf-8", "replace")
