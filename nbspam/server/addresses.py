"""Where a server listens: HOST:PORT, the path of a socket, or a socket that systemd hands over."""

import contextlib
import os
import pwd
import shutil
import socket
import stat
import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nbspam.errors import InputError, NbspamError, UsageError

_BACKLOG = 1024  # connections that the system holds until a worker takes them
_SILENT = 120  # seconds after which the system asks whether the other side is still there
_FIRST_PASSED = 3  # descriptor of the first socket that systemd hands over
_CREDENTIALS = struct.Struct("3i")  # process, user, group
_PASSED = "socket of systemd"


class SocketRights(NamedTuple):
    """The rights to connect to a socket at a path."""

    mode: int  # of its file
    group: str | None = None  # that the file gets


ALL_USERS = SocketRights(0o666)  # as spamd's: who may connect is said by the folder


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
    if "/" in text:
        return Address(path=text)
    host, colon, port = text.rpartition(":")
    if port.isascii() and port.isdigit() and int(port) < 1 << 16:
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
        _watch_peers(found)
        return found
    except LookupError as error:
        why = f"no group {rights.group}; give another by --socket-group"
        raise InputError(f"{option} {address}: {why}") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{option} {address}: {reason}; give another address") from error


def _watch_peers(listener: socket.socket) -> None:
    """Let the system end connections whose other side has vanished; accepted ones do so, too."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _SILENT)


def _at_path(path: str, rights: SocketRights) -> socket.socket:
    found = socket.socket(socket.AF_UNIX)
    try:
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISSOCK(os.lstat(path).st_mode) and not _is_answered(path):
                os.unlink(path)
        before = os.umask(0o777)  # nobody connects before the file has its rights
        try:
            found.bind(path)
        finally:
            os.umask(before)
        if rights.group is not None:
            shutil.chown(path, group=rights.group)
        os.chmod(path, rights.mode)
        found.listen(_BACKLOG)
    except BaseException:
        found.close()
        raise
    return found


def _is_answered(path: str) -> bool:
    """Return whether somebody listens on a socket's file."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return False
        return True


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

    None, too, where the system does not say; root and mail systems name others' users.
    """
    if client.family != socket.AF_UNIX or not hasattr(socket, "SO_PEERCRED"):
        return None
    _, uid, _ = _CREDENTIALS.unpack(
        client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    )
    if uid == 0:
        return None
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


class Listeners(NamedTuple):
    """Listening sockets, by protocol and by the text that names the address."""

    opened: dict[tuple[str, str], socket.socket]

    @property
    def sockets(self) -> dict[str, list[socket.socket]]:
        """The sockets of each protocol."""
        found: dict[str, list[socket.socket]] = {}
        for (name, _), each in self.opened.items():
            found.setdefault(name, []).append(each)
        return found

    @property
    def open_to_others(self) -> list[tuple[str, Address]]:
        """The protocols and addresses that other machines reach."""
        found = [(name, listened(each)) for (name, _), each in self.opened.items()]
        return [(name, address) for name, address in found if not address.is_local]

    def close(self, besides: "Listeners | None" = None) -> None:
        """Listen no more, but on sockets that others use, too."""
        kept = besides.opened.values() if besides is not None else ()
        for each in self.opened.values():
            if each not in kept:
                each.close()


def listen(
    texts: Mapping[str, Sequence[str]],
    rights: SocketRights = ALL_USERS,
    before: Listeners | None = None,
) -> Listeners:
    """Listen on the addresses of each protocol; raises UsageError and InputError.

    texts: by protocol.  Sockets that systemd hands over by a protocol's name are taken instead.
    rights: of sockets at paths.  before: sockets of the same texts stay open.
    """
    found = Listeners({})
    old = before.opened if before is not None else {}
    passed = {
        key: each for key, each in old.items() if key[1].startswith(_PASSED)
    } or handed_over()
    for name, _ in passed:
        if name not in texts:
            raise UsageError(
                f"systemd hands over a socket named {name}; FileDescriptorName= says its protocol:"
                f" {', '.join(texts)}"
            )
    try:
        found.opened.update(passed)
        taken = {name for name, _ in passed}
        for name in (name for name in texts if name not in taken):
            for text in dict.fromkeys(texts[name]):
                address = address_of(f"--{name}", text)
                found.opened[name, text] = old.get((name, text)) or listening(
                    f"--{name}", address, rights
                )
    except NbspamError:
        found.close(before)
        raise
    if not found.opened:
        names = " or ".join(f"--{name} ADDRESS" for name in texts)
        raise UsageError(f"no address to listen on; give {names}")
    return found
