"""The choices of a server's owner: addresses, access to the page, and bounds.

A server listens at HOST:PORT, at the path of a socket, or on a socket that systemd hands over.

A token logs in to the page: the site's is in the address that the server prints when it starts,
and with --users each user has one, which names the user.  A browser that has logged in has a
session in a signed cookie.  The secret beside the model is enough to check tokens and sessions,
so every worker can, and so can a restarted server.  A new secret invalidates all of them.
"""

import contextlib
import grp
import os
import pwd
import re
import secrets
import socket
import stat
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from nbspam.classifier.classifier import Classifier
from nbspam.decision import Rule
from nbspam.disk import locked, open_own, parent_folder, replacing, resolved
from nbspam.errors import InputError, ModelFileError, NbspamError, UsageError
from nbspam.imap.accounts import AccessBook
from nbspam.mail.headers import HeaderChoices
from nbspam.server.metrics import Log, ServerTally
from nbspam.store.model import StoredModel

_BACKLOG = 1024  # connections that the system holds until a worker takes them
_SILENT = 120  # seconds after which the system asks whether the other side is still there
_FIRST_PASSED = 3  # descriptor of the first socket that systemd hands over
_PASSED = "socket of systemd"

Sockets = Sequence[tuple[str, socket.socket]]  # listening ones, with the protocol of each


class SocketRights(NamedTuple):
    """The rights to connect to a socket at a path."""

    mode: int  # of its file
    group: str | None = None  # that the file gets


ALL_USERS = SocketRights(0o666)  # like spamd's: the folder decides who may connect


class Address(NamedTuple):
    """Where to listen: a host and a port, or a path."""

    host: str = ""
    port: int = 0
    path: str = ""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.path or f"{host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Whether only this machine can connect."""
        return bool(self.path) or self.host in {"localhost", "::1"} or self.host.startswith("127.")


def listened(listener: socket.socket) -> Address:
    """Return the address that a socket listens on."""
    name = listener.getsockname()
    if isinstance(name, tuple):
        return Address(name[0], name[1])
    return Address(path=os.fsdecode(name))


def address_of(option: str, text: str) -> Address:
    """Return the address that an option names; raises UsageError.

    HOST:PORT, [HOST]:PORT for IPv6, PORT alone for 127.0.0.1, or a path with a slash.
    """
    if "/" in text and not re.match(r"\w+:", text):  # as Postfix writes them: unix:PATH
        return Address(path=text)
    host, colon, port = text.rpartition(":")
    if re.fullmatch("[0-9]{1,5}", port) and int(port) < 1 << 16:
        return Address(host.strip("[]") if colon else "127.0.0.1", int(port))
    raise UsageError(f"{option} {text}: not an address; write HOST:PORT, or a path with a slash")


def listening(option: str, address: Address, rights: SocketRights = ALL_USERS) -> socket.socket:
    """Return a socket that listens; raises InputError.

    A socket's file that nobody listens on any more is replaced.
    """
    try:
        if address.path:
            return _at_path(address.path, rights)
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        found = socket.create_server((address.host, address.port), family=family, backlog=_BACKLOG)
        # The system ends connections whose peer has vanished, accepted ones too.
        found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _SILENT)
        return found
    except LookupError as error:
        why = f"no group {rights.group} that has this user; give another by --socket-group"
        raise InputError(f"{option} {address}: {why}") from error
    except FileNotFoundError as error:
        why = f"no folder {parent_folder(address.path)}; make it"
        raise InputError(f"{option} {address}: {why}") from error
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (while ")[0]
        raise InputError(f"{option} {address}: {reason}; give another address") from error


def _at_path(path: str, rights: SocketRights) -> socket.socket:
    found = socket.socket(socket.AF_UNIX)
    try:
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISSOCK(os.lstat(path).st_mode):
                raise OSError("there is a file or folder that is no socket")
            try:
                with socket.socket(socket.AF_UNIX) as probe:
                    probe.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)
        before = os.umask(0o777 & ~rights.mode)
        try:
            found.bind(path)
        finally:
            os.umask(before)
        if rights.group is not None:
            try:  # whoever owns the folder may have put a link in its place
                os.chown(path, -1, grp.getgrnam(rights.group).gr_gid, follow_symlinks=False)
            except PermissionError as error:
                raise LookupError from error
        found.listen(_BACKLOG)  # nobody connects before the file has its rights
    except BaseException:
        found.close()
        raise
    return found


def handed_over() -> dict[tuple[str, str], socket.socket]:
    """Return the sockets that systemd hands over, by name (FileDescriptorName=) and number."""
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return {}
    number = int(os.environ.get("LISTEN_FDS", "0"))
    names = os.environ.get("LISTEN_FDNAMES", "").split(":")
    return {
        (name, f"{_PASSED} {place + 1}"): socket.socket(fileno=_FIRST_PASSED + place)
        for place, name in enumerate(names[:number])
    }


def connected_user(client: socket.socket) -> str | None:
    """Return the name of the user at the other end of a socket at a path, None for root.

    None, too, for a port; root and mail systems name others' users.
    """
    if client.family != socket.AF_UNIX:
        return None
    # Process, user and group.
    _, uid, _ = struct.unpack("3I", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    if uid == 0:
        return None
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


class Listeners(NamedTuple):
    """Listening sockets, by protocol and by the address as `Address` writes it."""

    opened: dict[tuple[str, str], socket.socket]

    @property
    def sockets(self) -> Sockets:
        """All sockets with their protocols."""
        return [(name, each) for (name, _), each in self.opened.items()]

    def close(self, besides: "Listeners | None" = None) -> None:
        """Close all sockets except those that `besides` has, too."""
        kept = besides.opened.values() if besides is not None else ()
        for each in {*self.opened.values()} - {*kept}:
            each.close()


def listen(
    texts: Mapping[str, Sequence[str]],
    rights: SocketRights = ALL_USERS,
    before: Listeners | None = None,
) -> Listeners:
    """Listen on the addresses of each protocol; raises UsageError and InputError.

    texts: by protocol.  Sockets that systemd hands over by a protocol's name are taken instead.
    rights: of sockets at paths.  before: sockets of the same addresses stay open, unless
    somebody has removed their files.
    """
    old = before.opened if before is not None else {}
    passed = {
        key: each for key, each in old.items() if key[1].startswith(_PASSED)
    } or handed_over()
    found = Listeners(dict(passed))
    try:
        for (name, _), each in passed.items():
            if not each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                raise UsageError(f"systemd hands over a connection named {name}; write Accept=no")
            if name not in texts:
                raise UsageError(
                    f"systemd hands over a socket named {name}; FileDescriptorName= says its"
                    f" protocol: {', '.join(texts)}"
                )
        taken = {name for name, _ in passed}
        for name in (name for name in texts if name not in taken):
            for address in dict.fromkeys(address_of(f"--{name}", text) for text in texts[name]):
                key = name, str(address)
                kept = old.get(key) if os.path.exists(address.path or "/") else None
                found.opened[key] = kept or listening(f"--{name}", address, rights)
    except NbspamError:
        found.close(before)
        raise
    if not found.opened:
        names = " or ".join(f"--{name} ADDRESS" for name in texts)
        raise UsageError(f"no address to listen on; give {names}")
    return found


# ---- who may enter the page ----


_SECRET_BYTES = 32
_EMBEDDED = {"cross-site", "same-site"}  # Sec-Fetch-Site of another site's request


class Access:
    """Makes login tokens, and names their users.

    secret: a text that nobody else knows; it signs sessions, too.  Users are named as by
    `judge.known_as`; "" is the site.
    """

    def __init__(self, secret: str) -> None:
        from itsdangerous import URLSafeSerializer  # of the extra `web`

        self.secret = secret
        # A user's name need not be UTF-8, and as ASCII any is.
        self._tokens = URLSafeSerializer(
            secret, salt="token", serializer_kwargs={"ensure_ascii": True}
        )

    def token_of(self, user: str) -> str:
        """Return the token that logs a user in, always the same one."""
        return str(self._tokens.dumps(user))

    def user_of(self, token: str) -> str | None:
        """Return the user of a token, None if it is not ours."""
        from itsdangerous import BadData

        try:
            return str(self._tokens.loads(token))
        except BadData:
            return None


def access_beside(model: str) -> Access:
    """Return the access by the secret in MODEL.secret, which is made if there is none.

    Raises ModelFileError.
    """
    target = resolved(model)
    name = f"{target}.secret"
    with contextlib.nullcontext() if os.path.lexists(name) else locked(target):
        try:
            if not os.path.lexists(name):
                text = secrets.token_hex(_SECRET_BYTES).encode() + b"\n"
                # Like its folder: like the model, others could read it.
                with replacing(name, like=parent_folder(name)) as file:
                    file.write(text)
            return Access(_read(name, target))
        except OSError as error:
            reason = error.strerror or str(error)
            raise ModelFileError(f"{name}: {reason}; --web keeps a secret there") from error


def _read(name: str, model: str) -> str:
    with open(open_own(name, model), "rb") as file:
        if os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ModelFileError(f"{name}: others than its owner can read it; remove it")
        text = file.read(1000).strip().decode("latin-1")
    if not re.fullmatch(f"[0-9a-f]{{{2 * _SECRET_BYTES}}}", text):
        raise ModelFileError(f"{name}: not a secret; remove it, and a new one is made")
    return text


# ---- the address of the page, and where a request comes from ----


def page_of(listener: socket.socket, model: str) -> str:
    """Return the address that logs in to the page, by the secret beside the model.

    Raises UsageError where others than this machine can reach it, and ModelFileError.
    """
    address = listened(listener)
    if address.path:
        raise UsageError(f"--web {address}: no browser opens it; give 127.0.0.1:PORT")
    if not address.is_local:
        raise UsageError(
            f"--web {address}: other machines can reach it, and it is not encrypted; give"
            " 127.0.0.1:PORT, and come from other machines by ssh -L"
        )
    return f"http://{address}/?token={access_beside(model).token_of('')}"


def hosts_of(address: Address) -> set[str]:
    """Return the values of Host that a browser writes; no name that others resolve is one."""
    hosts = {str(address), f"localhost:{address.port}"}
    if address.port == 80:  # which browsers leave out
        hosts |= {host.removesuffix(":80") for host in hosts}
    return hosts


def stranger(method: str, headers: Mapping[str, str], address: Address) -> str | None:
    """Return the reason to refuse a request that may come from another site, if any.

    headers: by name in lower case.
    """
    host = headers.get("host", "").lower()
    if host not in hosts_of(address):
        return f"Host is not {address}: a name of another site leads here"
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if origin is not None and origin.lower() != f"http://{host}":
        return "Origin is another site"
    # Browsers in a terminal send neither Origin nor Sec-Fetch-Site.
    referer = headers.get("referer", "").lower() if site is None else ""
    is_ours = site == "same-origin" or referer.startswith(f"http://{host}/")
    if method == "POST" and origin is None and not is_ours:
        return "no Origin, Sec-Fetch-Site or Referer says that the request comes from this page"
    mode, target = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
    follows_link = (method, mode, target) == ("GET", "navigate", "document")
    if site in _EMBEDDED and not follows_link:
        return "another site asks for a part of this page"
    return None


# ---- the owner's choices ----


class ServerLimits(NamedTuple):
    """Bounds of one worker process: what one client, or all of them, can make it hold or wait."""

    connections: int = 1000  # open at the same time; as many again are open until refused
    visitors: int = 100  # of the page, beside the other connections
    waiting: int = 1000  # messages that wait for their verdict
    bytes_held: int = 256 << 20  # of all messages that are received, or wait
    small_bytes: int = 512 << 10  # a message up to this size may use the last eighth of them
    message_bytes: int = 8 << 20  # of one message; the rest is received and dropped
    users_bytes: int = 64 << 20  # of users' lessons, kept for the users judged last
    head_bytes: int = 64 << 10  # of a request's own head
    head_lines: int = 256  # of different names, over HTTP
    head_seconds: float = 30.0  # in which a request's head must be there
    body_seconds: float = 300.0  # in which the whole request must be there
    answer_seconds: float = 60.0  # in which a message is judged
    idle_seconds: float = 300.0  # of a connection between two messages, or to read an answer
    silent_seconds: float = 7210.0  # of a mail system's own connection, as libmilter waits
    drain_seconds: float = 60.0  # in which an ending worker answers accepted requests
    parting_seconds: float = 2.0  # in which clients read their answer when the server ends


SERVER_LIMITS = ServerLimits()


class ShareChoices(NamedTuple):
    """How lessons are shared with other servers."""

    url: str  # of the log
    password: str | None = None
    is_sync: bool = False  # a lesson is acknowledged when the log has it, too


class ServerChoices(NamedTuple):
    """The owner's choices, which can change while the server runs."""

    model_path: str
    rule_of: Callable[[Classifier], Rule] = lambda classifier: classifier.rule
    log: str = "text"  # text, json or none
    peer_users: bool = False  # the user is the one that connects to a socket at a path
    users: str | None = None  # the folder of users' own models; None: all share one model
    allows_tell: bool = False  # clients of spamd may teach
    reports_teach: bool = False  # so does a report to a network, like that of spamc -C
    autolearns: bool = False  # learn if a verified line of a list and a sure verdict agree
    password: bytes | None = None  # with which clients of HTTP may teach; None: none may
    passes: bool = False  # mail passes unjudged when there is no room; else: try again
    headers: HeaderChoices = HeaderChoices(spam_status=True)  # written into mail
    reject_above: float | None = None  # probability of spam
    quarantine_above: float | None = None
    review: str | None = None  # the mailbox on the page; with users, the folder of all mailboxes
    moves: bool = False  # a lesson on the page moves its message between a Maildir's folders
    share: ShareChoices | None = None
    book: AccessBook | None = None  # the ways to a mail account on the page


class Service(NamedTuple):
    """The inputs of all workers."""

    choices: ServerChoices
    model: StoredModel  # opened before workers are forked
    n_workers: int
    listeners: Sockets
    limits: ServerLimits
    log: Log
    tally: ServerTally
    access: Access | None = None  # to the page; None: there is none

    @property
    def has_mail(self) -> bool:
        """Whether the page shows mail, and learns."""
        shown = self.choices.review is not None or self.choices.users is not None
        return shown and "web" in dict(self.listeners)

    @property
    def may_teach(self) -> bool:
        """Whether anything may be learned."""
        choices = self.choices
        return (
            choices.allows_tell
            or choices.autolearns
            or choices.password is not None
            or self.has_mail
        )
