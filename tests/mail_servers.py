"""Real IMAP servers for tests: private Dovecots on loopback, as this user or as nobody."""

import contextlib
import grp
import imaplib
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

from serving import PATIENCE, free_port, until

PASSWORD = "s3cret-pässword"
_CONFIG = """
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
mail_location = {location}
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


class MailServer:
    """A private Dovecot; root runs it as nobody.

    hides: capabilities that it does not announce.  most: messages that an account may have.
    """

    def __init__(
        self,
        place,
        hides=(),
        most=1_000_000,
        location="maildir:~/Maildir",
        tls=None,
        passdb=None,
        mechanisms="plain login",
        sets="",
    ):
        is_root = os.getuid() == 0
        owner = pwd.getpwnam("nobody") if is_root else pwd.getpwuid(os.getuid())
        self.place, self.port, self.tls_port = place, free_port(), free_port()
        self.rights = (
            {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []} if is_root else {}
        )
        for name in ("run", "box"):
            (place / name).mkdir(parents=True, exist_ok=True)
        shown = set(_ANNOUNCED.split()).difference(hides)
        text = _CONFIG.format(
            place=place,
            ssl="yes" if tls else "no",
            tls=f"ssl_cert = <{tls[0]}\nssl_key = <{tls[1]}" if tls else "",
            mechanisms=mechanisms,
            user=owner.pw_name,
            group=grp.getgrgid(owner.pw_gid).gr_name,
            location=location,
            port=self.port,
            tls_port=self.tls_port if tls else 0,
            passdb=passdb or f"driver = static\n  args = password={PASSWORD}",
            uid=owner.pw_uid,
            gid=owner.pw_gid,
            capability=f"imap_capability = {' '.join(sorted(shown))}" if hides else "",
            most=most,
        )
        (place / "dovecot.conf").write_text(text + sets)
        for path in (place, *place.rglob("*")):
            os.chown(path, owner.pw_uid, owner.pw_gid, follow_symlinks=False)
        command = ["dovecot", "-F", "-c", place / "dovecot.conf"]
        self.process = subprocess.Popen(command, **self.rights)
        until(lambda: "starting up" in self.log())

    def log(self):
        path = self.place / "log"
        return path.read_text() if path.exists() else ""

    def url(self, user="ann", folder=""):
        return f"imap://{user}@127.0.0.1:{self.port}/{folder}"

    @contextlib.contextmanager
    def client(self, user="ann", folder=None):
        """Yield another client of an account, that of its user."""
        client = imaplib.IMAP4("127.0.0.1", self.port, timeout=PATIENCE)
        client.authenticate("PLAIN", lambda _: f"\0{user}\0{PASSWORD}".encode())
        if folder is not None:
            assert client.select(f'"{folder}"')[0] == "OK"
        try:
            yield client
        finally:
            client.logout()

    def put(self, folder, *messages, user="ann", flags=""):
        """Append messages to a folder, which is made if there is none."""
        with self.client(user) as client:
            client.create(f'"{folder}"')
            for data in messages:
                answer = client.append(f'"{folder}"', f"({flags})", None, crlf(data))
                assert answer[0] == "OK", answer

    def contents(self, folder, user="ann"):
        """Return (data with plain line ends, flags) of the messages in a folder."""
        with self.client(user) as client:
            if client.select(f'"{folder}"', readonly=True)[0] != "OK":
                return []
            answer = client.fetch("1:*", "(FLAGS BODY.PEEK[])")[1]
        parts = [part for part in answer if isinstance(part, tuple)]
        return [
            (data.replace(b"\r\n", b"\n"), set(imaplib.ParseFlags(head)) - {b"\\Recent"})
            for head, data in parts
        ]

    def bodies(self, folder, user="ann"):
        return [data for data, _ in self.contents(folder, user)]

    def move(self, data, source, target, user="ann"):
        """Move a message as its user does."""
        with self.client(user, source) as client:
            found = self.uid_of(client, data)
            assert client.uid("MOVE", found, f'"{target}"')[0] == "OK"

    def flag(self, data, folder, flags, user="ann", change="+FLAGS"):
        with self.client(user, folder) as client:
            assert client.uid("STORE", self.uid_of(client, data), change, f"({flags})")[0] == "OK"

    def uid_of(self, client, data):
        for uid in client.uid("SEARCH", "ALL")[1][0].split():
            answer = client.uid("FETCH", uid.decode(), "(BODY.PEEK[])")[1]
            if answer[0][1].replace(b"\r\n", b"\n") == data:
                return uid.decode()
        raise AssertionError(f"{data!r} is not there")

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE)


# What Dovecot announces after a login; a test hides some of it.
_ANNOUNCED = """
    IMAP4rev1 SASL-IR LOGIN-REFERRALS ID ENABLE IDLE NAMESPACE LITERAL+ UIDPLUS LIST-EXTENDED
    CHILDREN MOVE SPECIAL-USE UNSELECT LIST-STATUS
"""


def crlf(data):
    return data.replace(b"\n", b"\r\n")


def is_there():
    return shutil.which("dovecot") is not None


@contextlib.contextmanager
def mail_server(**options):
    """Run a Dovecot until the block ends."""
    with tempfile.TemporaryDirectory(prefix="dovecot") as name:
        Path(name).chmod(0o755)  # everybody may enter, unlike pytest's folders
        server = MailServer(Path(name), **options)
        try:
            yield server
        finally:
            server.stop()
