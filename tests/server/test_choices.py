"""Where a server listens: how addresses are spelt, and sockets that systemd hands over."""

import grp
import os
import pwd
import socket
import struct
from contextlib import suppress
from types import SimpleNamespace

import pytest

from nbspam.errors import InputError, UsageError
from nbspam.server import choices
from nbspam.server.choices import Address, SocketRights, address_of, listen, listening
from support import raising


def test_an_address_is_a_port_a_host_with_one_or_a_path():
    for text, address, is_local in (
        ("783", Address("127.0.0.1", 783), True),
        ("localhost:783", Address("localhost", 783), True),
        ("[::1]:783", Address("::1", 783), True),
        ("0.0.0.0:783", Address("0.0.0.0", 783), False),
        (":783", Address("", 783), False),
        ("mail.example:783", Address("mail.example", 783), False),
        ("/run/nbspam.sock", Address(path="/run/nbspam.sock"), True),
        ("./spamd", Address(path="./spamd"), True),
    ):
        found = address_of("--spamd", text)

        assert found == address
        assert found.is_local == is_local
        assert address_of("--spamd", str(found)) == found
    for text in ("", "spamd", "a:", "a:http", "a:70000", "a:-1", "9" * 5000, "unix:/spamd"):
        with pytest.raises(UsageError, match="not an address; write HOST:PORT, or a path with a"):
            address_of("--spamd", text)


def test_a_vanished_peer_is_noticed_and_a_socket_without_a_listener_replaced(tmp_path):
    with (
        listening("--http", Address("127.0.0.1", 0)) as found,
        socket.create_connection(found.getsockname()),
        found.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)

    path = str(tmp_path / "spamd")
    listening("--spamd", Address(path=path)).close()
    assert os.path.exists(path)

    again = listening("--spamd", Address(path=path))
    assert os.stat(path).st_mode & 0o777 == 0o666  # all users of the machine, as with a port
    with again, pytest.raises(InputError, match="Address already in use"):
        listening("--spamd", Address(path=path))
    diary = tmp_path / "diary"
    diary.write_text("of mine")
    with pytest.raises(InputError, match="there is a file or folder that is no socket; give"):
        listening("--spamd", Address(path=str(diary)))
    assert diary.read_text() == "of mine"


def test_addresses_that_stay_keep_their_socket_and_others_are_closed(tmp_path):
    names = "stays", "goes", "comes", "removed"
    stays, goes, comes, removed = (str(tmp_path / name) for name in names)
    before = listen({"spamd": [stays, goes, removed], "http": ["0", "127.0.0.1:0"]})
    os.unlink(removed)
    after = listen({"spamd": [stays, comes, removed], "http": ["127.0.0.1:0"]}, before=before)
    before.close(after)
    for key in (("spamd", stays), ("http", "127.0.0.1:0")):
        assert after.opened[key] is before.opened[key]
    for path, is_there in ((stays, True), (comes, True), (removed, True), (goes, False)):
        with socket.socket(socket.AF_UNIX) as client:
            assert (client.connect_ex(path) == 0) == is_there
    with pytest.raises(InputError, match="/none; make it"):
        listen({"spamd": [stays, str(tmp_path / "none" / "x")]}, before=after)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(stays)  # as before
    after.close()


def test_a_socket_at_a_path_has_the_mode_and_the_group_that_are_asked_for(tmp_path, monkeypatch):
    path = str(tmp_path / "spamd")
    group = grp.getgrgid(os.getgid()).gr_name
    with listening("--spamd", Address(path=path), SocketRights(0o660, group)):
        found = os.stat(path)
        assert (found.st_mode & 0o777, found.st_gid) == (0o660, os.getgid())
    why = "no group {} that has this user; give another by --socket-group"
    with pytest.raises(InputError, match=why.format("nobody-has-it")):
        listening("--spamd", Address(path=path), SocketRights(0o660, "nobody-has-it"))
    monkeypatch.setattr(os, "chown", raising(PermissionError))
    with pytest.raises(InputError, match=why.format(group)):
        listening("--spamd", Address(path=path), SocketRights(0o660, group))


def test_a_link_in_place_of_a_new_socket_is_not_followed(tmp_path, monkeypatch):
    path, theirs = tmp_path / "spamd", tmp_path / "theirs"
    theirs.write_bytes(b"")
    theirs.chmod(0o600)
    group = grp.getgrall()[-1]  # only root can give it
    before = theirs.stat()

    class Exchanged(socket.socket):
        def bind(self, address):
            super().bind(address)
            path.unlink()
            path.symlink_to(theirs)

    monkeypatch.setattr(socket, "socket", Exchanged)
    with suppress(InputError):
        listening("--spamd", Address(path=str(path)), SocketRights(0o666, group.gr_name)).close()
    assert path.is_symlink()
    after = theirs.stat()
    assert (after.st_mode, after.st_gid) == (before.st_mode, before.st_gid)


@pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="this system does not say")
def test_the_user_at_the_other_end_of_a_socket_is_known_but_root_names_others():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        uid = os.getuid()
        assert choices.connected_user(ours) == (pwd.getpwuid(uid).pw_name if uid else None)
        told = struct.pack("3i", 1, 65_534, 65_534)
        client = SimpleNamespace(family=socket.AF_UNIX, getsockopt=lambda *_: told)
        assert choices.connected_user(client) == pwd.getpwuid(65_534).pw_name
        client.getsockopt = lambda *_: struct.pack("3I", 1, 3_999_999_999, 1)
        assert choices.connected_user(client) == "3999999999"
    with socket.socket() as tcp:
        assert choices.connected_user(tcp) is None


def test_a_socket_of_systemd_has_the_protocol_of_its_name(monkeypatch):
    def handed(passed, name):
        """Listen where systemd hands over a copy of a socket by a name."""
        monkeypatch.setattr(choices, "_FIRST_PASSED", os.dup(passed.fileno()))
        for key, value in {"PID": os.getpid(), "FDS": 1, "FDNAMES": name}.items():
            monkeypatch.setenv(f"LISTEN_{key}", str(value))
        return listen({"spamd": [], "http": []})

    with socket.create_server(("127.0.0.1", 0)) as passed, socket.socket() as connection:
        found = handed(passed, "spamd")
        ((name, each),) = found.sockets
        assert (name, each.getsockname()) == ("spamd", passed.getsockname())
        found.close()
        with pytest.raises(UsageError, match=r"a connection named spamd; write Accept=no$"):
            handed(connection, "spamd")
        why = r"a socket named nbspam.socket; FileDescriptorName= says its protocol: spamd, http$"
        with pytest.raises(UsageError, match=why):
            handed(passed, "nbspam.socket")
