"""Hostile IMAP servers: 100,000 answers, each wrong somewhere; every one ends in our errors.

Answers of a good server are cut, garbled, repeated and exchanged, at random and by seed.  What is
read must be bounded, and no other exception may come out.
"""

import random
import tracemalloc

import pytest

from accounts import H, S
from fake_imap import PASSWORD, FakeServer, fake_server
from nbspam.errors import NbspamError
from nbspam.imap import session, wire
from nbspam.imap.accounts import AccessBook, AccountSecret, imap_url
from nbspam.imap.session import AccountSession
from stress.hostile import garbled

ANSWERS = 100_000  # in all
PIECES = [
    *(b"(", b")", b"{", b"}", b'"', b"\\", b"[", b"]", b"*", b"+", b" ", b"\r\n", b"\n", b"\0"),
    *(b"NIL", b"OK", b"NO", b"BAD", b"BYE", b"FETCH", b"EXISTS", b"UID", b"BODY[]", b"FLAGS"),
    *(b"{4294967295}\r\n", b"{-1}\r\n", b"{99999999999999999999}\r\n", b"{3+}\r\n", b"~{3}\r\n"),
    *(b"4294967296", b"-1", b"0", b"1e9", b"\xff\xfe", b"&Jjo-", b"&", b"9" * 5000, b"(" * 3000),
]


class Hostile(FakeServer):
    """A server whose answers are garbled once a client has come so far."""

    rng = random.Random(0)
    n_answers = n_left = 0

    def process_request(self, request, client_address):
        self.n_left = self.rng.randrange(12)
        super().process_request(request, client_address)

    def handle_error(self, request, client_address):
        pass  # a client that understood nothing answers nonsense, too


@pytest.mark.parametrize("seed", range(8))
def test_no_answer_raises_anything_but_our_errors_or_takes_memory(seed, monkeypatch):
    import fake_imap

    server_send = fake_imap.ImapHandler.send

    def send(self, data):
        server = self.server
        server.n_answers += 1
        server.n_left -= 1
        server_send(self, garbled(server.rng, data, PIECES) if server.n_left < 0 else data)

    monkeypatch.setattr(fake_imap, "FakeServer", Hostile)
    monkeypatch.setattr(fake_imap.ImapHandler, "send", send)
    monkeypatch.setattr(wire, "SILENCE_SECONDS", 0.05)
    monkeypatch.setattr(session, "PAUSES", ())
    monkeypatch.setattr(session, "FETCHED_MESSAGES", 2)
    with fake_server() as server:
        server.rng = random.Random(seed)
        server.put("INBOX", *H)
        server.put("Junk", *S)
        url = imap_url(server.url())
        outcomes = {}
        tracemalloc.start()
        while server.n_answers < ANSWERS // 8:
            book = AccessBook()
            book.secret_of = lambda url: AccountSecret(PASSWORD)
            said, kind = "", "none"
            try:
                visit(url, book)
            except NbspamError as error:
                said, kind = str(error), type(error).__name__
            assert PASSWORD not in said
            assert "\n" not in said
            outcomes[kind] = outcomes.get(kind, 0) + 1
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(seed, server.n_answers, outcomes, f"{peak:,} bytes")
        assert peak < 64 << 20


def visit(url, book):
    """Ask everything that is ever asked."""
    with AccountSession(url, book) as found:
        found.folders()
        found.numbers(["INBOX", "Junk"])
        folder = found.open("INBOX", writes=True)
        uids = found.uids()
        list(found.heads(uids, ("MESSAGE-ID",)))
        for batch in found.messages(uids, 1 << 20):
            assert all(len(data) <= 1 << 20 for data in batch.data.values())
        assert folder.validity < 1 << 70
        found.mark(uids[:1], "$Junk", "$NotJunk")
        found.move(uids[:1], "INBOX")
