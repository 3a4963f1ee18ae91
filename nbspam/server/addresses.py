"""Where a server listens: HOST:PORT, the path of a socket, or a socket that systemd hands over."""

import contextlib
import os
import socket
import stat
from collections.abc import Mapping
from typing import NamedTuple

from nbspam.errors import InputError, NbspamError, UsageError

_BACKLOG = 1024  # connections that the system holds until a worker takes them
_SILENT = 120  # seconds after which the system asks whether the other side is still there
_FIRST_PASSED = 3  # descriptor of the first socket that systemd hands over


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


def listening(option: str, address: Address) -> socket.socket:
    """Return a socket that listens; raises InputError.

    A socket's file that nobody listens on any more is replaced.
    """
    try:
        if address.path:
            return _at_path(address.path)
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        found = socket.create_server((address.host, address.port), family=family, backlog=_BACKLOG)
        _watch_peers(found)
        return found
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{option} {address}: {reason}; give another address") from error


def _watch_peers(listener: socket.socket) -> None:
    """Let the system end connections whose other side has vanished; accepted ones do so, too."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _SILENT)


def _at_path(path: str) -> socket.socket:
    found = socket.socket(socket.AF_UNIX)
    try:
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISSOCK(os.lstat(path).st_mode) and not _is_answered(path):
                os.unlink(path)
        found.bind(path)
        os.chmod(path, 0o666)  # as spamd's: who may connect is said by the folder
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


def handed_over() -> dict[str, socket.socket]:
    """Return the sockets that systemd hands over, by name (FileDescriptorName=)."""
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return {}
    number = int(os.environ.get("LISTEN_FDS", "0"))
    names = os.environ.get("LISTEN_FDNAMES", "").split(":")
    return {
        name: socket.socket(fileno=_FIRST_PASSED + place)
        for place, name in enumerate(names[:number])
    }


class Listeners(NamedTuple):
    """Listening sockets by protocol, and the addresses that other machines reach."""

    sockets: dict[str, socket.socket]
    open_to_others: dict[str, Address]

    def close(self) -> None:
        """Listen no more."""
        for each in self.sockets.values():
            each.close()


def listen(texts: Mapping[str, str | None]) -> Listeners:
    """Listen on the address of each protocol that has one; raises UsageError and InputError.

    texts: by protocol.  Sockets that systemd hands over by a protocol's name are taken instead.
    """
    found = Listeners({}, {})
    passed = handed_over()
    for name in passed.keys() - texts.keys():
        raise UsageError(
            f"systemd hands over a socket named {name}; FileDescriptorName= says its protocol:"
            f" {', '.join(texts)}"
        )
    try:
        for name, text in texts.items():
            if name in passed:
                found.sockets[name] = passed[name]
            elif text is not None:
                address = address_of(f"--{name}", text)
                found.sockets[name] = listening(f"--{name}", address)
                if not address.is_local:
                    found.open_to_others[name] = address
    except NbspamError:
        found.close()
        raise
    if not found.sockets:
        names = " or ".join(f"--{name} ADDRESS" for name in texts)
        raise UsageError(f"no address to listen on; give {names}")
    return found
