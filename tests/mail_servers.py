"""Real IMAP servers for tests: Dovecot and Cyrus on loopback, run as this user or as nobody.

Debian's package cyrus-imapd excludes Dovecot's.  It can be unpacked into a folder: CYRUS names it.
Tests are skipped where a server is missing.
"""

import contextlib
import grp
import imaplib
import os
import pwd
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest
from imapclient.imap_utf7 import decode, encode

from fake_imap import PASSWORD
from serving import PATIENCE, free_port, is_refused, until

# The settings of one instance of Dovecot.
DOVECOT = """
base_dir = {place}/run
state_dir = {place}/run
log_path = {place}/log
protocols = imap
listen = 127.0.0.1
ssl = {ssl}
{tls}
disable_plaintext_auth = no
auth_mechanisms = {mechanisms}
auth_cache_negative_ttl = 0
auth_failure_delay = 0
default_internal_user = {user}
default_internal_group = {group}
default_login_user = {user}
first_valid_uid = 1
mail_location = maildir:~/Maildir
mail_max_userip_connections = 100
mail_plugins = quota
service anvil {{
  chroot =
}}
service stats {{
  chroot =
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = {tls_port}
  }}
}}
passdb {{
  {passdb}
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={place}/box/%u allow_all_users=yes
}}
protocol imap {{
  mail_plugins = quota imap_quota
  {capability}
}}
plugin {{
  quota = maildir:User quota
  quota_rule = *:messages={most}
}}
namespace inbox {{
  inbox = yes
  mailbox Junk {{
    auto = create
    special_use = \\Junk
  }}
  mailbox Trash {{
    auto = create
    special_use = \\Trash
  }}
}}
"""
# What Dovecot announces after a login; a test hides some of it.
_ANNOUNCED = """
    IMAP4rev1 SASL-IR LOGIN-REFERRALS ID ENABLE IDLE NAMESPACE LITERAL+ UIDPLUS LIST-EXTENDED
    CHILDREN MOVE SPECIAL-USE UNSELECT
"""
_CYRUS = """
configdirectory: {place}/run
partition-default: {place}/box
defaultpartition: default
cyrus_user: {user}
admins: nobody
allowplaintext: yes
altnamespace: no
unixhierarchysep: no
autocreate_quota: 0
autocreate_quota_messages: {most}
autocreate_inbox_folders: Junk|Trash
xlist-junk: Junk
xlist-trash: Trash
failedloginpause: 0
expunge_mode: immediate
delete_mode: immediate
sasl_mech_list: PLAIN
sasl_pwcheck_method: saslauthd
sasl_saslauthd_path: {place}/run/asked
suppress_capabilities: NOTHING {hides}
{tls}
"""
_SERVICES = """
START {{
  recover cmd="{bin}/ctl_cyrusdb -C {place}/imapd.conf -r"
}}
SERVICES {{
  imap cmd="{bin}/imapd -C {place}/imapd.conf" listen="127.0.0.1:{port}" prefork=1
  {tls}
}}
{idle}
"""
_IDLED = """
DAEMON {{
  idled cmd="{bin}/idled -C {place}/imapd.conf"
}}
"""
CYRUS = Path(os.environ.get("CYRUS", "/")).absolute()  # the folder in which it is unpacked


class MailServer:
    """A server of this machine alone; root runs it as nobody.

    place: an empty folder of its own.  hides: capabilities that it does not announce.  most:
    messages that an account may have.
    """

    prefix = ""  # of the server's names of all folders but INBOX

    def __init__(self, place):
        self.user = "ann"  # whose account is meant
        is_root = os.getuid() == 0
        self.owner = pwd.getpwnam("nobody") if is_root else pwd.getpwuid(os.getuid())
        self.place, self.port, self.tls_port = place, free_port(), free_port()
        self.rights = (
            {"user": self.owner.pw_uid, "group": self.owner.pw_gid, "extra_groups": []}
            if is_root
            else {}
        )
        for name in ("run", "box"):
            (place / name).mkdir(parents=True, exist_ok=True)
        self.idle = {}  # connections of users

    def own(self):
        """Hand all files to the user as whom the server runs."""
        for path in (self.place, *self.place.rglob("*")):
            os.chown(path, self.owner.pw_uid, self.owner.pw_gid, follow_symlinks=False)

    def leave(self):
        while self.idle:
            self.idle.popitem()[1].shutdown()

    def stop(self):
        self.leave()
        os.killpg(self.process.pid, signal.SIGTERM)  # as systemd does: connections end at once
        self.process.wait(PATIENCE)

    def restart(self):
        self.stop()
        self.start()

    def named(self, folder):
        return folder if folder == "INBOX" else self.prefix + folder

    def quoted(self, folder):
        name = encode(self.named(folder)).decode()
        return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'

    def url(self, user=None, folder="", port=None):
        folder = self.named(folder) if folder else ""
        return f"imap://{user or self.user}@127.0.0.1:{port or self.port}/{folder}"

    @contextlib.contextmanager
    def client(self, user=None, folder=None):
        """Yield another client of an account, that of its user.

        Most of the time would be logging in, so a connection is used again.
        """
        user = user or self.user
        client = self.idle.pop(user, None) or self.logged_in(user)
        try:
            if folder is not None:
                assert client.select(self.quoted(folder))[0] == "OK"
            yield client
            if client.state == "SELECTED":
                client.unselect()
        except BaseException:
            client.shutdown()
            raise
        self.idle[user] = client

    def logged_in(self, user):
        client = imaplib.IMAP4("127.0.0.1", self.port, timeout=PATIENCE)
        client.authenticate("PLAIN", lambda _: f"\0{user}\0{PASSWORD}".encode())
        return client

    def put(self, folder, *messages, user=None, flags=""):
        with self.client(user) as client:
            client.create(self.quoted(folder))
            for data in messages:
                answer = client.append(self.quoted(folder), f"({flags})", None, crlf(data))
                assert answer[0] == "OK", answer

    def contents(self, folder, user=None):
        """Return (data with plain line ends, flags) of the messages in a folder."""
        with self.client(user) as client:
            if client.select(self.quoted(folder), readonly=True)[0] != "OK":
                return []
            if not int(client.response("EXISTS")[1][-1]):
                return []
            answer = client.fetch("1:*", "(FLAGS BODY.PEEK[])")[1]
        parts = [part for part in answer if isinstance(part, tuple)]
        return [
            (
                data.replace(b"\r\n", b"\n"),
                {f.decode() for f in imaplib.ParseFlags(head)} - {"\\Recent"},
            )
            for head, data in parts
        ]

    def bodies(self, folder, user=None):
        return [data for data, _ in self.contents(folder, user)]

    @property
    def folders(self):
        with self.client() as client:
            lines = [line for line in client.list()[1] if line and b"\\Noselect" not in line]
        names = [re.fullmatch(rb'.*? "."? (?:"(.*)"|(.*))', line).groups() for line in lines]
        found = [decode((quotes or bare).replace(b"\\", b"")) for quotes, bare in names]
        return [name.removeprefix(self.prefix) for name in found]

    def delete(self, data, folder, user=None):
        with self.client(user, folder) as client:
            client.uid("STORE", self.uid_of(client, data), "+FLAGS", "(\\Deleted)")
            client.expunge()

    def move(self, data, source, target, user=None):
        with self.client(user, source) as client:
            found = self.uid_of(client, data)
            assert client.uid("MOVE", found, self.quoted(target))[0] == "OK"

    def flag(self, data, folder, flags, user=None, change="+FLAGS"):
        with self.client(user, folder) as client:
            assert client.uid("STORE", self.uid_of(client, data), change, f"({flags})")[0] == "OK"

    def uid_of(self, client, data):
        for uid in client.uid("SEARCH", "ALL")[1][0].split():
            answer = client.uid("FETCH", uid.decode(), "(BODY.PEEK[])")[1]
            if isinstance(answer[0], tuple) and answer[0][1].replace(b"\r\n", b"\n") == data:
                return uid.decode()
        raise AssertionError(f"{data!r} is not there")


class Dovecot(MailServer):
    def __init__(
        self,
        place,
        hides=(),
        most=1_000_000,
        tls=None,
        passdb=None,
        mechanisms="plain login",
        more="",
    ):
        super().__init__(place)
        shown = set(_ANNOUNCED.split()).difference(hides)
        text = DOVECOT.format(
            place=place,
            ssl="yes" if tls else "no",
            tls=f"ssl_cert = <{tls[0]}\nssl_key = <{tls[1]}" if tls else "",
            mechanisms=mechanisms,
            user=self.owner.pw_name,
            group=grp.getgrgid(self.owner.pw_gid).gr_name,
            port=self.port,
            tls_port=self.tls_port if tls else 0,
            passdb=passdb or f"driver = static\n  args = password={PASSWORD}",
            uid=self.owner.pw_uid,
            gid=self.owner.pw_gid,
            capability=f"imap_capability = {' '.join(sorted(shown))}" if hides else "",
            most=most,
        )
        (place / "dovecot.conf").write_text(text + more)
        self.own()
        self.start()

    def start(self):
        n_starts = self.log().count("starting up")
        command = ["dovecot", "-F", "-c", self.place / "dovecot.conf"]
        self.process = subprocess.Popen(command, start_new_session=True, **self.rights)
        until(lambda: self.log().count("starting up") > n_starts)

    def log(self):
        path = self.place / "log"
        return path.read_text() if path.exists() else ""

    def renumber(self):
        """Give all folders of an account another UIDVALIDITY."""
        self.leave()
        for path in (self.place / "box" / self.user / "Maildir").rglob("dovecot*"):
            path.unlink()


class Cyrus(MailServer):
    """Its folders have the old kind of names, INBOX.Junk, which many servers still give."""

    prefix = "INBOX."

    def __init__(self, place, hides=(), most=1_000_000, tls=None):
        super().__init__(place)
        programs = CYRUS / "usr/lib/cyrus/bin"
        for name in ("socket", "db"):
            (place / "run" / name).mkdir()
        names = {
            "place": place, "bin": programs, "user": self.owner.pw_name, "port": self.port,
            "most": most, "hides": " ".join(hides),
            "idle": "" if "IDLE" in hides else _IDLED.format(bin=programs, place=place),
        }  # fmt: skip
        files = "tls_server_cert: {}\ntls_server_key: {}" if tls else ""
        listens = f'listen="127.0.0.1:{self.tls_port}"'
        imaps = f'imaps cmd="{programs}/imapd -s -C {place}/imapd.conf" {listens}' if tls else ""
        (place / "imapd.conf").write_text(_CYRUS.format(**names, tls=files.format(*tls or ())))
        (place / "cyrus.conf").write_text(_SERVICES.format(**names, tls=imaps))
        self.own()
        self._answer_passwords(place / "run" / "asked")
        libraries = CYRUS / f"usr/lib/{os.uname().machine}-linux-gnu"
        self.env = {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
        self.start()

    def start(self):
        place, master = self.place, CYRUS / "usr/lib/cyrus/bin/master"
        words = ["-C", place / "imapd.conf", "-M", place / "cyrus.conf", "-p", place / "run/pid"]
        self.process = subprocess.Popen(
            [master, *words, "-D"],
            start_new_session=True,  # when it ends, it sends a signal to all of its group
            env=self.env,
            **self.rights,
        )
        until(lambda: not is_refused(self.port))

    def stop(self):
        super().stop()
        self._asked.close()

    def restart(self):
        super().stop()
        self.start()

    def renumber(self):
        self.leave()
        for path in (self.place / "box").rglob("cyrus.index"):
            path.unlink()
        words = ["-C", self.place / "imapd.conf", "-r", f"user.{self.user}"]
        program = CYRUS / "usr/lib/cyrus/bin/reconstruct"
        subprocess.run([program, *words], check=True, stdout=-3, env=self.env, **self.rights)

    def _answer_passwords(self, path):
        """Answer as saslauthd does: four strings with their lengths come, and OK or NO goes."""
        self._asked = socket.socket(socket.AF_UNIX)
        self._asked.bind(str(path))
        path.chmod(0o777)
        self._asked.listen(100)

        def answer():
            with contextlib.suppress(OSError):
                while True:
                    with self._asked.accept()[0] as asker, asker.makefile("rb") as stream:
                        words = [
                            stream.read(struct.unpack(">H", stream.read(2))[0]) for _ in range(4)
                        ]
                        said = b"OK" if words[1] == PASSWORD.encode() else b"NO"
                        asker.sendall(struct.pack(">H", len(said)) + said)

        threading.Thread(target=answer, daemon=True).start()


def crlf(data):
    return data.replace(b"\n", b"\r\n")


is_there = {
    Dovecot: shutil.which("dovecot") is not None,
    Cyrus: (CYRUS / "usr/lib/cyrus/bin/imapd").exists(),
}
needs = {
    kind: pytest.mark.skipif(not there, reason=f"needs {kind.__name__}")
    for kind, there in is_there.items()
}


@contextlib.contextmanager
def mail_server(kind=Dovecot, **options):
    with tempfile.TemporaryDirectory(prefix="mail") as name:
        Path(name).chmod(0o755)  # everybody may enter, unlike pytest's folders
        server = kind(Path(name), **options)
        try:
            yield server
        finally:
            server.stop()
