"""The messages at URLs of an account, in a stream of batches.

Memory does not grow with a folder, except for the list of its UIDs.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import NamedTuple

from nbspam.errors import InputError, LostError
from nbspam.imap.accounts import AccessBook, ImapUrl, imap_url
from nbspam.imap.session import AccountSession

PAUSES = (1.0, 3.0, 9.0)  # seconds between attempts to connect again


class FetchedMessage(NamedTuple):
    """A message of an account."""

    url: ImapUrl  # of the message, with UIDVALIDITY and UID
    data: bytes
    problem: str | None = None  # why it could not be fetched
    is_cut: bool = False  # only its beginning was read
    series: str | None = None  # the folder that it came in; None: it was asked for by itself


class _PatientSession:
    """A session that reconnects when it is lost, in the folder where it was."""

    def __init__(self, url: ImapUrl, book: AccessBook) -> None:
        self.url, self._book = url, book
        self._session: AccountSession | None = None
        self._n_lost = 0  # times in a row

    def close(self) -> None:
        """End the session, if there is one."""
        if self._session is not None:
            self._session.close()
        self._session = None

    def opened(self, url: ImapUrl) -> tuple[AccountSession, int]:
        """Return a session in the folder of a URL, and the folder's UIDVALIDITY."""
        if self._session is None:
            self._session = AccountSession(self.url, self._book)
        folder = self._session.folder
        if folder is None or folder.name != url.folder:
            folder = self._session.open(url.folder)
        if url.validity not in (None, folder.validity):
            raise InputError(
                f"{url}: the folder has other numbers now (UIDVALIDITY {folder.validity}); look"
                " for the message again"
            )
        return self._session, folder.validity

    @contextmanager
    def patient(self) -> Iterator[None]:
        """Return a context that tolerates a lost session, unless it is lost repeatedly."""
        try:
            yield
            self._n_lost = 0
        except LostError:
            self.close()
            if self._n_lost == len(PAUSES):
                raise
            time.sleep(PAUSES[self._n_lost])
            self._n_lost += 1


def messages_at(paths: Iterable[str], book: AccessBook, most: int) -> Iterator[FetchedMessage]:
    """Yield the messages at URLs of one account, by one connection; raises NbspamError.

    most: bytes of a message that are read.  A URL of a message that has gone is a message with a
    problem.
    """
    urls = list(map(imap_url, paths))
    reader = _PatientSession(urls[0].of_folder(""), book)
    try:
        for (url, is_named), group in groupby(
            urls, lambda url: (url._replace(uid=None), url.uid is not None)
        ):
            if not url.folder:
                raise InputError(f"{url}: names no folder; add one, such as {url}INBOX")
            named = [each.uid or 0 for each in group]
            yield from _fetched(reader, url, named if is_named else None, most)
    finally:
        reader.close()


def _fetched(
    reader: _PatientSession, url: ImapUrl, named: list[int] | None, most: int
) -> Iterator[FetchedMessage]:
    """Yield messages of a folder.  named: their UIDs; None: all."""
    rest: Sequence[int] | None = named
    series = str(url.of_folder(url.folder)) if named is None else None
    while rest is None or rest:
        with reader.patient():
            session, validity = reader.opened(url)
            # After a connection was lost, UIDs are the same, or `opened` says that they are not.
            url = url._replace(validity=validity)
            if rest is None:
                rest = session.uids()
            for batch in session.messages(rest, most):
                n_asked = rest.index(batch.last) + 1
                for uid in rest[:n_asked]:
                    message = url.of_message(validity, uid)
                    if uid in batch.data:
                        data = batch.data[uid]
                        yield FetchedMessage(message, data, is_cut=batch.is_cut, series=series)
                    elif named is not None:
                        yield _gone(message)
                rest = rest[n_asked:]
            for uid in rest if named is not None else ():
                yield _gone(url.of_message(validity, uid))
            rest = ()


def _gone(url: ImapUrl) -> FetchedMessage:
    return FetchedMessage(url, b"", f"{url}: not there any more; list the folder again")
