"""A session with an account: logged in, folders, UIDs, messages by batches, moves, waiting.

`messages_at` reads the messages at URLs in a stream, over as many connections as that takes;
memory grows only with the list of a folder's UIDs.
"""

import ipaddress
import select
import socket
import ssl
import time
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, suppress
from datetime import datetime
from difflib import get_close_matches
from functools import cached_property
from itertools import groupby, islice
from operator import lt
from typing import TYPE_CHECKING, Any, NamedTuple

from nbspam import __version__
from nbspam.errors import InputError, LostError, library_error
from nbspam.imap.accounts import IMAP_NUMBERS, AccessBook, AccountSecret, ImapUrl, imap_url
from nbspam.imap.troubles import AccountRefusedError, BrokenError, asking

if TYPE_CHECKING:
    from nbspam.imap.wire import WireClient

# Of one FETCH of messages, at most.  The first one of a connection is small, and each next one
# twice as large, so that a connection is of use even if its server closes it after some bytes.
FETCHED_MESSAGES, _FIRST_BYTES, _FETCHED_BYTES = 256, 1 << 14, 8 << 20
_HEADS = 500  # messages of one FETCH of sizes, flags or a few headers; its line has 5,500 bytes
# Messages of one SEARCH: its answer is a line of at most 110,000 bytes, and 20 times as many in
# objects of Python.
_WINDOW = 10_000
_MOST_FOLDERS = 10_000
_MOST_NAMES = 8  # that are repeated when a folder is not there
# The usual ends of folders' names by use, likelier ones first; Outlook writes them in the language
# of its user.
_USUAL_NAMES = {
    "junk": (
        *("junk", "spam", "junk e-mail", "junk email", "bulk mail", "junk mail", "junk-e-mail"),
        *("courrier indésirable", "correo no deseado", "posta indesiderata", "ongewenste e-mail"),
        *("lixo eletrônico", "wiadomości-śmieci", "нежелательная почта", "спам", "skräppost"),
        *("垃圾邮件", "垃圾郵件", "迷惑メール", "정크 메일"),
    ),
    "trash": (
        *("trash", "deleted items", "deleted messages", "bin", "deleted", "gelöschte elemente"),
        *("papierkorb", "éléments supprimés", "corbeille", "elementos eliminados", "papelera"),
        *("posta eliminata", "cestino", "verwijderde items", "prullenbak", "itens excluídos"),
        *("lixeira", "elementy usunięte", "kosz", "удаленные", "корзина", "borttaget"),
        *("已删除邮件", "已删除", "刪除的郵件", "削除済みアイテム", "ごみ箱", "지운 편지함"),
    ),
    "sent": ("sent", "sent items", "sent messages", "sent mail"),
    "archive": ("archive", "archives"),
    "drafts": ("drafts", "draft"),
    "all": ("all mail",),
}
_MOST_REFUSED = 100  # messages that a server may refuse before it counts as refusing all
_MOST_BROKEN = 20  # connections that a server may close one after another without a message
_CHANGES = {b"EXISTS", b"EXPUNGE", b"FETCH", b"VANISHED"}  # other answers are signs of life
_PARTING_SECONDS = 2.0  # that a server may be silent when the connection is to end
PAUSES = (1.0, 3.0, 9.0)  # seconds between attempts of a reader to connect again


class AccountFolder(NamedTuple):
    """A folder of an account."""

    name: str  # as people see it
    use: str = ""  # a key of _USUAL_NAMES or ""


class OpenFolder(NamedTuple):
    """A folder that is selected."""

    name: str = ""  # "": none is open
    validity: int = 0  # UIDVALIDITY; 0: the server states none, and UIDs mean nothing later
    n_messages: int = 0
    following: int = 0  # UIDNEXT; 0 if the server does not state it
    keywords: frozenset[str] = frozenset()  # that its messages may have, in small letters
    settable: frozenset[str] = frozenset()  # flags and keywords; \\* is any new keyword
    writes: bool = False  # its messages may be changed


class MessageHead(NamedTuple):
    """A message without its body."""

    uid: int
    size: int  # bytes, as the server says
    flags: frozenset[str]  # in small letters: \\seen, $junk
    fields: bytes  # the lines of some headers; b"" if they were not asked for
    arrived: float = 0.0  # seconds since 1970, as the server says; 0 if not asked for, or not said


class FetchedBatch(NamedTuple):
    """Messages that one answer held."""

    uids: list[int]  # that were asked for
    data: dict[int, bytes]  # by UID; missing messages are left out
    is_cut: bool  # a single message, of which only the beginning was read


class AccountSession(AbstractContextManager["AccountSession"]):
    """A connection to an account; a context that begins and ends it.

    Without the context, its first use begins it, as does the next one after `close`.  Every method
    raises AccountRefusedError, LostError and, for faults that the user must fix, InputError and
    UsageError.  timeout: seconds that the server may be silent; None: a minute.
    """

    def __init__(self, url: ImapUrl, book: AccessBook, timeout: float | None = None) -> None:
        self.url, self._book, self._timeout = url, book, timeout
        self.folder = OpenFolder()
        self._listed: OpenFolder | None = None  # as it was when all of its messages were listed
        self.refused: dict[ImapUrl, str] = {}  # messages that the server does not show, and why
        self._breaking: dict[ImapUrl, str] = {}  # those that broke a connection
        self._n_broken = 0  # connections in which no message has come

    def __enter__(self) -> "AccountSession":
        self._client  # noqa: B018  which connects
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection, as politely as it can be done at once."""
        self.folder = OpenFolder()
        own = [self.__dict__.pop(name, None) for name in ("_client", "abilities", "_prefixes")]
        if own[0] is not None:
            _part_from(own[0])

    # ---- beginning ----

    @cached_property
    def _client(self) -> "WireClient":
        """The connection, with its user logged in."""
        url, access = self.url, self._book.access_to(self.url)
        try:
            from nbspam.imap import wire
        except ImportError as error:
            raise library_error(str(url), error.name, "imap") from None
        secret = self._book.secret_of(url)
        # Made only where it is needed: reading the system's certificates takes a while.
        context = access.tls_context() if url.is_tls or access.tls_ca else None
        with asking(self.url, "connect", is_first=True):
            tls = context if url.is_tls else None
            client = wire.connected(url.host, url.port, tls, self._timeout)
        try:
            if tls is None:
                self._secure(client, context)
            self._log_in(client, secret)
            with suppress(AccountRefusedError), asking(url, "ID"):
                if client.has_capability("ID"):  # without a name 163.com opens no folder
                    name = f'("name" "nbspam" "version" "{__version__}")'
                    client.wire._simple_command("ID", name)
        except BaseException:
            _part_from(client)
            raise
        self._at_once = _FIRST_BYTES  # of several messages that are fetched together
        return client

    @cached_property
    def abilities(self) -> frozenset[str]:
        """The server's capabilities; many servers name all of them only after the login."""
        with asking(self.url, "CAPABILITY"):
            return frozenset(_text(each).upper() for each in self._client.capabilities())

    def _secure(self, client: "WireClient", context: ssl.SSLContext | None) -> None:
        """Begin TLS, unless the server is this very machine."""
        with asking(self.url, "connect"):
            peer = client.socket().getpeername()[0]
        if ipaddress.ip_address(peer.partition("%")[0]).is_loopback and context is None:
            return
        with asking(self.url, "STARTTLS"):
            offered = client.has_capability("STARTTLS")
        if not offered:
            raise InputError(
                f"{self.url.host}: offers no TLS on port {self.url.port}; write imaps://, as"
                " passwords never go over a network without it"
            )
        with asking(self.url, "STARTTLS", is_first=True):
            client.starttls(context or self._book.access_to(self.url).tls_context())

    def _log_in(self, client: "WireClient", secret: AccountSecret) -> None:
        with asking(self.url, "log in"):
            if client.wire.state == "AUTH":  # the server knows its user already
                return
            offers = {_text(each).upper() for each in client.capabilities()}
        if secret.is_token:
            if "AUTH=OAUTHBEARER" in offers:
                log_in = client.oauthbearer_login
            elif "AUTH=XOAUTH2" in offers:
                log_in = client.oauth2_login
            else:
                raise InputError(
                    f"{self.url.host}: takes no tokens of OAuth2; give --password-command"
                )
        elif "AUTH=PLAIN" in offers:  # which takes passwords in any alphabet
            log_in = client.plain_login
        else:
            log_in = client.login
        with asking(self.url, "log in by token" if secret.is_token else "log in"):
            log_in(self.url.user, secret.text)

    # ---- folders ----

    def folders(self) -> list[AccountFolder]:
        """Return the folders that hold messages, the likeliest one of each use before others."""
        with asking(self.url, "LIST"):
            has_uses = {"SPECIAL-USE", "LIST-EXTENDED"} <= self.abilities
            pattern = "* RETURN (SPECIAL-USE)" if has_uses else "*"
            said, lines = self._client.wire.list('""', pattern)
            self._client._checkok("LIST", said, lines)
            found = []
            for flags, delimiter, name in self._client._proc_folder_list(lines):
                end = str(name).lower().rpartition(_text(delimiter or b"\0"))[2]
                found.append(({_text(flag).lower() for flag in flags}, end, str(name)))
        if len(found) > _MOST_FOLDERS:
            raise InputError(
                f"{self.url.account}: more than {_MOST_FOLDERS:,} folders; check the server"
            )
        # Servers list them in any order, another one each time.
        found.sort(key=lambda each: (not self._is_own(each[2]), each[2]))
        held = [each for each in found if not each[0] & {"\\noselect", "\\nonexistent"}]
        own = [each for each in held if self._is_own(each[2])]
        uses = {name: use for use in _USUAL_NAMES for flags, _, name in own if f"\\{use}" in flags}
        for use, words in _USUAL_NAMES.items():
            for word in words:
                uses |= {name: use for _, end, name in own if end == word and name not in uses}
        uses |= {name: "" for *_, name in held if name not in uses}
        return [AccountFolder(*each) for each in uses.items()]

    def junk_folder(self, folders: Collection[AccountFolder], named: str | None) -> str | None:
        """Return the folder for spam among all, by its user's name for it or its use, or None."""
        if named:
            return self.name_of(named, [each.name for each in folders])
        return next((each.name for each in folders if each.use == "junk"), None)

    @cached_property
    def _prefixes(self) -> list[list[str]]:
        """The prefixes of folders: the account's own, those of other users, and shared ones."""
        with asking(self.url, "NAMESPACE"):
            return self._client.namespace() if "NAMESPACE" in self.abilities else [[]]

    def _is_own(self, folder: str) -> bool:
        """Return whether a folder is the account's own: others may read the rest."""
        lengths = [
            max((len(each) for each in prefixes if folder.startswith(each)), default=-1)
            for prefixes in self._prefixes
        ]
        return lengths[0] == max(lengths)

    def name_of(self, folder: str, there: Collection[str]) -> str:
        """Return the server's name of a folder by its user's name, such as INBOX.Junk.

        there: the names of all folders.
        """
        prefix = (self._prefixes[0] or [""])[0]
        return folder if folder in there or folder.startswith(prefix) else prefix + folder

    def numbers(self, folders: Collection[str]) -> dict[str, tuple[int, int]]:
        """Return UIDVALIDITY and UIDNEXT of folders; missing folders are left out."""
        found: dict[str, tuple[int, int]] = {}
        for folder in folders:
            with suppress(AccountRefusedError), asking(self.url, "STATUS", folder):
                said = self._client.folder_status(folder, ("UIDVALIDITY", "UIDNEXT"))
                validity, following = said.get(b"UIDVALIDITY", 0), said.get(b"UIDNEXT", 0)
                found[folder] = int(validity) % IMAP_NUMBERS, int(following) % IMAP_NUMBERS
        return found

    def make_folder(self, folder: str) -> None:
        """Make a folder, and have mail programs show it."""
        with asking(self.url, "CREATE", folder):
            self._client.create_folder(folder)
        with suppress(AccountRefusedError), asking(self.url, "SUBSCRIBE", folder):
            self._client.subscribe_folder(folder)

    def open(self, folder: str, writes: bool = False) -> OpenFolder:
        """Select a folder.  writes: flags may be set and messages moved."""
        self.folder = OpenFolder()  # as it is after a refusal
        try:
            with asking(self.url, "SELECT" if writes else "EXAMINE", folder):
                found = self._client.select_folder(folder, readonly=not writes)
                permanent = _flags(found.get(b"PERMANENTFLAGS", (b"\\*",)))  # RFC 3501, 7.1
                flags = _flags(found.get(b"FLAGS"))
                self.folder = OpenFolder(
                    folder,
                    int(found.get(b"UIDVALIDITY", 0)) % IMAP_NUMBERS,
                    int(found.get(b"EXISTS", 0)),
                    int(found.get(b"UIDNEXT", 0)) % IMAP_NUMBERS,
                    frozenset(flag for flag in flags | permanent if not flag.startswith("\\")),
                    permanent,
                    writes,
                )
            return self.folder
        except AccountRefusedError as error:
            if error.code != "NONEXISTENT":
                raise
            names = sorted(each.name for each in self.folders())
            if folder in names:
                raise
            like = get_close_matches(self.name_of(folder, names), names, 1) or names[:_MOST_NAMES]
            raise AccountRefusedError(
                f"{self.url.account}: {folder}: no such folder; there is {', '.join(like)}",
                error.code,
            ) from None

    # ---- messages ----

    def uids(self, *criteria: str, deleted: bool = False) -> "array[int]":
        """Return the UIDs of messages in the open folder that fit, in the order of arrival.

        Messages that are marked as deleted count as gone; with `deleted`, only they are found.
        """
        if not criteria and not deleted:
            self._listed = self.folder
        found = array("L")
        # From the last window to the first: if others expunge messages in between, numbers fall,
        # so that a message may be in two windows, and none is missed.
        for first in range((self.folder.n_messages - 1) // _WINDOW * _WINDOW + 1, 0, -_WINDOW):
            last = "*" if first + _WINDOW > self.folder.n_messages else first + _WINDOW - 1
            with asking(self.url, "SEARCH"):
                mark = "DELETED" if deleted else "UNDELETED"
                uids = self._client.search([f"{first}:{last}", mark, *criteria])
                found = array("L", (uid for uid in map(int, uids) if 0 < uid < 1 << 32)) + found
        is_ordered = all(map(lt, found, islice(found, 1, None)))
        return found if is_ordered else array("L", sorted(set(found)))

    def heads(self, uids: Sequence[int], fields: Sequence[str] = ()) -> Iterator[MessageHead]:
        """Yield size, flags and some headers of messages; missing messages are left out.

        With headers comes the time of arrival.
        """
        wanted = ["RFC822.SIZE", "FLAGS"]
        if fields:
            wanted += ["INTERNALDATE", f"BODY.PEEK[HEADER.FIELDS ({' '.join(fields)})]"]
        for begin in range(0, len(uids), _HEADS):
            for uid, found in self._fetch(uids[begin : begin + _HEADS], wanted):
                size, date = found.get(b"RFC822.SIZE"), found.get(b"INTERNALDATE")
                lines = [value for key, value in found.items() if key.startswith(b"BODY[HEADER")]
                yield MessageHead(
                    uid,
                    size if isinstance(size, int) else 0,
                    _flags(found.get(b"FLAGS")),
                    lines[0] if lines and isinstance(lines[0], bytes) else b"",
                    date.timestamp() if isinstance(date, datetime) and date.tzinfo else 0.0,
                )

    def messages(self, uids: Sequence[int], most: int) -> Iterator[FetchedBatch]:
        """Yield messages by batches of bounded size, in the order of the UIDs.

        most: bytes of a message that are read.  Messages that are gone have a batch, and no bytes.
        """
        for begin in range(0, len(uids), _HEADS):
            asked = uids[begin : begin + _HEADS]
            sizes = {head.uid: head.size for head in self.heads(asked)}
            for some, is_large in self._batches([(uid, sizes.get(uid, 0)) for uid in asked], most):
                wanted = [f"BODY.PEEK[]<0.{most}>" if is_large else "BODY.PEEK[]"]
                found = {
                    uid: parts.get(b"BODY[]", parts.get(b"BODY[]<0>"))
                    for uid, parts in self._fetch([uid for uid in some if uid in sizes], wanted)
                }
                data = {uid: each[:most] for uid, each in found.items() if isinstance(each, bytes)}
                yield FetchedBatch(some, data, is_large)

    def _batches(
        self, sizes: Iterable[tuple[int, int]], most: int
    ) -> Iterator[tuple[list[int], bool]]:
        """Yield UIDs that are fetched together, and whether only a message's beginning is read."""
        batch: list[int] = []
        n_bytes = 0
        for uid, size in sizes:
            is_full = len(batch) >= FETCHED_MESSAGES or n_bytes + size > min(self._at_once, most)
            if batch and is_full:
                yield batch, False
                self._at_once = min(2 * self._at_once, _FETCHED_BYTES)
                batch, n_bytes = [], 0
            if size > most:
                yield [uid], True
                continue
            batch.append(uid)
            n_bytes += size
        if batch:
            yield batch, False

    def _fetch(
        self, uids: Sequence[int], wanted: list[str], is_again: bool = False
    ) -> list[tuple[int, dict[bytes, Any]]]:
        """Return parts of messages; a message that the server refuses keeps no other one back.

        Nor does a message at which the connection is lost twice, the second time alone.
        is_again: a connection was lost while they were asked for, alone or with others.
        """
        if self._breaking:
            known = {url: self._breaking.get(url) for url in map(self._url_of, uids)}
            self.refused |= {url: why for url, why in known.items() if why}
            uids = [url.uid or 0 for url, why in known.items() if not why]
        try:
            with asking(self.url, "FETCH"):
                found = self._client.fetch(list(uids), wanted)
                self._n_broken = 0
                return [(uid, found[uid]) for uid in uids if uid in found]
        except (AccountRefusedError, BrokenError) as error:
            if len(self.refused) >= _MOST_REFUSED:
                raise
            if is_broken := isinstance(error, BrokenError):
                self._connect_again(uids[0], error)
            else:
                self._n_broken = 0
            if half := len(uids) // 2:
                parts = uids[:half], uids[half:]
                return [one for part in parts for one in self._fetch(part, wanted, is_broken)]
            if is_broken and not (is_again and self._n_broken > 1):
                return self._fetch(uids, wanted, is_again=True)
            url, why = self._url_of(uids[0]), str(error)
            if is_broken:
                why = f"{why.partition(';')[0]}, twice; look at the message in a mail program"
                self._breaking[url] = why
            self.refused[url] = why
            return []

    def _url_of(self, uid: int) -> ImapUrl:
        return self.url.of_folder(self.folder.name).of_message(self.folder.validity, uid)

    def _connect_again(self, uid: int, error: BrokenError) -> None:
        """Open the folder over another connection; raises LostError if no FETCH is answered."""
        self._n_broken += 1
        if self._n_broken > _MOST_BROKEN:
            raise error
        was = self.folder
        self.close()
        if not was.validity or self.open(was.name, was.writes).validity != was.validity:
            raise LostError(f"{self.url.account}: {was.name}: has other UIDs; try again")
        with asking(self.url, "FETCH"):
            self._client.fetch([uid], ["FLAGS"])

    # ---- changing ----

    @property
    def can_move(self) -> bool:
        """Whether a message can be moved alone, while others are marked as deleted."""
        return "MOVE" in self.abilities or "UIDPLUS" in self.abilities

    def move(self, uids: Sequence[int], folder: str) -> dict[int, tuple[int, int]]:
        """Move messages to a folder, by a server that can; see `can_move`.

        Returns UIDVALIDITY and new UID by old UID, as far as the server says them.
        """
        how = "MOVE" if "MOVE" in self.abilities else "COPY"
        with asking(self.url, how, folder):
            self._client.wire.placed()  # forget an earlier one
            (self._client.move if how == "MOVE" else self._client.copy)(list(uids), folder)
            placed = self._client.wire.placed()
        if how == "COPY":
            self.remove(uids)
        return placed

    def remove(self, uids: Sequence[int]) -> None:
        """Remove messages, and no others that are marked as deleted."""
        with asking(self.url, "STORE"):
            self._client.add_flags(list(uids), [b"\\Deleted"], silent=True)
        if "UIDPLUS" in self.abilities:
            with asking(self.url, "EXPUNGE"):
                self._client.uid_expunge(list(uids))

    def mark(self, uids: Sequence[int], keyword: str, without: str) -> None:
        """Set a keyword on messages, and take another one from them."""
        with asking(self.url, "STORE"):
            self._client.remove_flags(list(uids), [without], silent=True)
            self._client.add_flags(list(uids), [keyword], silent=True)

    # ---- waiting ----

    def wait(self, seconds: float, wake: socket.socket) -> None:
        """Wait until the open folder changes, time is over, or `wake` asks to end.

        If mail has come since the folder was listed, return at once.
        """
        if "IDLE" not in self.abilities:
            select.select([wake], [], [], seconds)
            return
        client, wire = self._client, self._client.wire
        with asking(self.url, "IDLE"):
            client.idle()
            # SELECT says once how many messages there are; a second time means new mail.
            is_old = len(wire.untagged_responses.get("EXISTS", ())) > 1
            changed = is_old or self.folder != self._listed
            end = time.monotonic() + seconds
            poller = select.poll()
            poller.register(client.socket(), select.POLLIN)
            poller.register(wake, select.POLLIN)
            # Bytes that came with the last answer wake no poll.
            while not (changed or wire.has_unread) and (left := end - time.monotonic()) > 0:
                ready = [descriptor for descriptor, _ in poller.poll(left * 1000)]
                if wake.fileno() in ready:
                    client.socket().settimeout(_PARTING_SECONDS)
                if wake.fileno() in ready or not ready:
                    break
                wire.begin_answer()
                if not (answers := client.idle_check(0)):  # TLS has a part of one, or an end
                    break
                changed = any(isinstance(e, tuple) and _CHANGES & {*e[:2]} for e in answers)
            client.idle_done()


def _part_from(client: "WireClient") -> None:
    with suppress(Exception):
        client.socket().settimeout(_PARTING_SECONDS)
        client.logout()
    with suppress(Exception):
        client.shutdown()


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _flags(said: object) -> frozenset[str]:
    """Return flags and keywords in small letters; none of what is no list of them."""
    words = said if isinstance(said, tuple) else ()
    return frozenset(_text(each).lower() for each in words if isinstance(each, bytes))


# ---- the messages at URLs ----


class FetchedMessage(NamedTuple):
    """A message of an account."""

    url: ImapUrl  # of the message, with UIDVALIDITY and UID
    data: bytes
    problem: str | None = None  # why it could not be fetched
    is_cut: bool = False  # only its beginning was read
    series: str | None = None  # the folder that it came in; None: it was asked for by itself


def messages_at(paths: Iterable[str], book: AccessBook, most: int) -> Iterator[FetchedMessage]:
    """Yield the messages at URLs of one account, by one connection; raises NbspamError.

    most: bytes of a message that are read.  A URL of a message that has gone is a message with a
    problem.
    """
    urls = list(map(imap_url, paths))
    with closing(AccountSession(urls[0].of_folder(""), book)) as session:
        for (url, is_named), group in groupby(
            urls, lambda url: (url._replace(uid=None), url.uid is not None)
        ):
            if not url.folder:
                raise InputError(f"{url}: names no folder; add one, such as {url}INBOX")
            named = [each.uid or 0 for each in group]
            yield from _fetched(session, url, named if is_named else None, most)


def _fetched(
    session: AccountSession, url: ImapUrl, rest: Sequence[int] | None, most: int
) -> Iterator[FetchedMessage]:
    """Yield messages of a folder; rest: UIDs of named messages, None for all."""
    series = str(url.of_folder(url.folder)) if rest is None else None
    gone = "not there any more; list the folder again" if rest else None
    n_lost = 0  # connections without a batch of messages in between
    while rest is None or rest:
        try:
            folder = session.folder
            if folder.name != url.folder:
                folder = session.open(url.folder)
            if url.validity not in (None, folder.validity):  # also since a connection was lost
                raise InputError(
                    f"{url}: the folder has other numbers now (UIDVALIDITY {folder.validity});"
                    " look for the message again"
                )
            url = url._replace(validity=folder.validity)
            if rest is None:
                rest = session.uids()
            for batch in session.messages(rest, most):
                n_lost = 0
                for uid in batch.uids:
                    message = url.of_message(folder.validity, uid)
                    if uid in batch.data:
                        yield FetchedMessage(message, batch.data[uid], None, batch.is_cut, series)
                    elif why := session.refused.get(message, gone):
                        yield FetchedMessage(message, b"", f"{message}: {why}", series=series)
                rest = rest[len(batch.uids) :]
        except LostError:
            session.close()
            if n_lost == len(PAUSES):
                raise
            time.sleep(PAUSES[n_lost])
            n_lost += 1
