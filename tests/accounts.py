"""An account of a server, a small one of the tests or a real Dovecot, that a model sorts."""

from fake_imap import PASSWORD
from maildirs import ham, spam
from nbspam.delivery.account import AccountToSort
from nbspam.delivery.maildir import SortingChoices, SortingReport
from nbspam.errors import LostError
from nbspam.imap.accounts import AccessBook, AccountSecret, imap_url
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from nbspam.store.open import load_tokens

DAY = 20_000


def letter(make, n):
    """Return a message of which the model of `trained` is sure, with a Message-ID."""
    return b"Message-ID: <%s-%d@x.example>\n" % (make.__name__.encode(), n) + make(n)


S, H = [letter(spam, n) for n in range(9)], [letter(ham, n) for n in range(9)]


def book_of(secret=PASSWORD):
    """Return the access to accounts that all have one password."""
    book = AccessBook()
    book.secret_of = lambda url: AccountSecret(secret)
    return book


class Box:
    def __init__(self, server, model):
        self.server, self.model = server, model
        self.put, self.move, self.flag = server.put, server.move, server.flag

    def url(self):
        return self.server.url()

    def account(self, book=None, **choices):
        how = str(self.model), SortingChoices(**choices), lambda classifier: classifier.rule
        return AccountToSort(imap_url(self.url()), book or book_of(), *how)

    def sort(self, **choices):
        report = self.account(**choices).sort(DAY, SortingReport())
        report.judged = [(each.label, each.moved_to) for each in report.judged]
        report.learned = [each.label for each in report.learned]
        return report

    def sort_on(self, **choices):
        """Sort until no connection is lost; return the labels that were learned."""
        for _ in range(5):
            try:
                return self.sort(**choices).learned
            except LostError:
                pass
        raise AssertionError("lost again and again")

    def learned(self):
        return load_tokens(str(self.model)).table.class_count.tolist()

    def teach(self, data, label):
        """Teach the model as a person does who tells a label."""
        item = Item("-", label, data.replace(b"\n", b"\r\n"), told=True)
        StoredModel(str(self.model)).learn([item], day=DAY, classes=[label])

    def where(self):
        return {name: self.server.bodies(name) for name in self.server.folders}

    def label_of(self, data):
        return StoredModel(str(self.model)).filed(data.replace(b"\n", b"\r\n")).label


def fill(box):
    """Put mail there, of which the user says something between two looks."""
    box.put("INBOX", *S[:3], *H[:3])
    box.put("Archive", H[5], flags="\\Seen")
    box.sort()
    box.put("INBOX", S[4], H[4], spam(77))
    box.move(H[0], "INBOX", "Junk")
    box.move(S[0], "Junk", "INBOX")
    box.move(S[1], "Junk", "Archive")
    box.flag(S[2], "Junk", "$NotJunk")


def assert_sorted(box, learned, before):
    found = box.where()
    everything = [data for bodies in found.values() for data in bodies]
    assert sorted(everything) == sorted([*S[:3], *H[:3], S[4], H[4], H[5], spam(77)])
    assert sorted(found["Junk"]) == sorted([H[0], S[2], S[4], spam(77)])
    labels = {data: box.label_of(data) for data in everything}
    told = {H[0]: "spam", S[0]: "ham", S[1]: "ham", S[2]: "ham"}
    assert {data: label for data, label in labels.items() if label is not None} == told
    assert sum(box.learned()) == before + 4
    flags = {data: flags for name in found for data, flags in box.server.contents(name)}
    assert [data for data in everything if "\\Seen" in flags[data]] == [H[5]]
    assert box.sort().learned == box.sort().judged == []
