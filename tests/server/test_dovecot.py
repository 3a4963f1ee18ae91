"""A real Dovecot, set up as docs/howto/dovecot.md says: it judges mail, and moving mail teaches.

It runs without rights, with all of its parts as one user, on loopback.
"""

import grp
import imaplib
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from serving import PATIENCE, free_port, serving, until
from support import HAM, ROOT, SPAM

PAGE = (ROOT / "docs" / "howto" / "dovecot.md").read_text()
# What is this instance's own, and not of nbspam.
CONFIG = """
base_dir = {place}/run
state_dir = {place}/run
log_path = {place}/log
protocols = imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
default_internal_user = {user}
default_internal_group = {group}
default_login_user = {user}
first_valid_uid = 1
mail_location = maildir:~/Maildir
postmaster_address = postmaster@example.org
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
    port = 0
  }}
}}
passdb {{
  driver = static
  args = password=secret
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={place}/box/%u allow_all_users=yes
}}
namespace inbox {{
  inbox = yes
  mailbox Junk {{
    auto = subscribe
    special_use = \\Junk
  }}
  mailbox Trash {{
    auto = subscribe
    special_use = \\Trash
  }}
}}
"""
PROGRAMS = ("dovecot", "sievec", "spamc")
LDA = "/usr/lib/dovecot/dovecot-lda"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(map(shutil.which, PROGRAMS)) or not Path(LDA).exists(),
        reason="needs Dovecot with Pigeonhole, and spamc",
    ),
]


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


class Dovecot:
    """A private Dovecot; root runs it as nobody."""

    def __init__(self, place, spamd):
        is_root = os.getuid() == 0
        owner = pwd.getpwnam("nobody") if is_root else pwd.getpwuid(os.getuid())
        self.place, self.port = place, free_port()
        rights = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        self.rights = rights if is_root else {}
        for name in ("run", "box", "sieve/bin"):
            (place / name).mkdir(parents=True)
        (place / "sieve" / "bin" / "spamc").symlink_to(shutil.which("spamc"))
        config = CONFIG.format(
            place=place,
            port=self.port,
            user=owner.pw_name,
            group=grp.getgrgid(owner.pw_gid).gr_name,
            uid=owner.pw_uid,
            gid=owner.pw_gid,
        )
        paths = {"/etc/dovecot/sieve": str(place / "sieve"), "/run/nbspam/spamd": spamd}
        (text,) = blocks("dovecot")
        self.write("dovecot.conf", config + text, paths)
        scripts = [f"sieve/{name}.sieve" for name in ("judge", "learn-spam", "learn-ham")]
        for name, script in zip(scripts, blocks("sieve"), strict=True):
            self.write(name, script, paths)
        for path in (place, *place.rglob("*")):
            os.chown(path, owner.pw_uid, owner.pw_gid, follow_symlinks=False)
        for name in scripts:
            self.run("sievec", "-c", place / "dovecot.conf", place / name)
        command = ["dovecot", "-F", "-c", place / "dovecot.conf"]
        self.process = subprocess.Popen(command, **self.rights)
        until(lambda: "starting up" in self.log())

    def write(self, name, text, paths):
        for shown, real in paths.items():
            text = text.replace(shown, real)
        (self.place / name).write_text(text)

    def run(self, *command, data=b""):
        done = subprocess.run(
            command, input=data, capture_output=True, check=False, timeout=PATIENCE, **self.rights
        )
        assert done.returncode == 0, (command, done, self.log())

    def log(self):
        path = self.place / "log"
        return path.read_text() if path.exists() else ""

    def deliver(self, user, data):
        self.run(LDA, "-c", self.place / "dovecot.conf", "-d", user, data=data)

    def client(self, user):
        client = imaplib.IMAP4("127.0.0.1", self.port, timeout=PATIENCE)
        client.login(user, "secret")
        return client

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE)


def found_in(client, folder):
    """Return the messages of a folder."""
    client.select(folder)
    uids = client.uid("SEARCH", "ALL")[1][0].split()
    return [client.uid("FETCH", uid.decode(), "(RFC822)")[1][0][1] for uid in uids]


def move(client, source, target):
    """Move the last message of a folder."""
    client.select(source)
    uid = client.uid("SEARCH", "ALL")[1][0].split()[-1].decode()
    return client.uid("MOVE", uid, target)


@pytest.fixture
def place():
    """Return a folder that everybody may enter, as those of pytest's are not."""
    with tempfile.TemporaryDirectory(prefix="dovecot") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def dovecot(own_model, place):
    """Start a server of users, and a Dovecot that asks it."""
    (place / "served" / "users").mkdir(parents=True)
    rights = ("--allow-tell", "--users", str(place / "served" / "users"))
    with serving(own_model, place / "served", *rights) as served:
        found = Dovecot(place / "instance", served.spamd)
        found.served = served
        yield found
        found.stop()


def lessons(dovecot):
    """Return the lines of the server's log about lessons, without their time."""
    lines = dovecot.served.errors.read_text().splitlines()
    return [line.partition(" ms=")[0] for line in lines if "taught=" in line]


def told(dovecot, user, label, data):
    """Return what spamc prints when it teaches, past Dovecot."""
    command = ["spamc", "-U", dovecot.served.spamd, "-u", user, "-L", label]
    return subprocess.run(command, input=data, capture_output=True, check=True).stdout


def assert_shown(kind, printed):
    """Assert that a log has the lines of a block of the page; `...` stands for any text."""
    (shown,) = blocks(kind)
    for line in shown.splitlines():
        pattern = ".*".join(map(re.escape, line.split("...")))
        assert re.search(rf"^{pattern}$", printed, re.M), (line, printed)


def test_mail_is_judged_when_it_is_delivered(dovecot):
    dovecot.deliver("ann", b"X-Spam-Flag: NO\n" + SPAM)
    dovecot.deliver("ann", HAM)
    ann = dovecot.client("ann")
    [spam], [ham] = found_in(ann, "Junk"), found_in(ann, "INBOX")
    assert spam.startswith(b"X-Nbspam: spam, probability=0.9")
    assert b"X-Spam-Flag: NO" not in spam
    assert spam.endswith(b"buy cheap pills now http://p.example/\r\n")
    assert ham.startswith(b"X-Nbspam: ham, probability=0.9")
    assert lessons(dovecot) == []
    ann.logout()


def test_moving_mail_teaches_its_users_model(dovecot):
    dovecot.deliver("ann", HAM)
    ann, bob = dovecot.client("ann"), dovecot.client("bob")
    assert move(ann, "INBOX", "Junk")[0] == "OK"
    assert lessons(dovecot) == ["user=ann taught=spam outcome=learned"]
    # The same message comes again, to two users.
    dovecot.deliver("ann", HAM)
    dovecot.deliver("bob", HAM)
    assert [len(found_in(ann, name)) for name in ("INBOX", "Junk")] == [0, 2]
    assert [len(found_in(bob, name)) for name in ("INBOX", "Junk")] == [1, 0]
    # The headers that it got do not make it another message.
    assert told(dovecot, "ann", "spam", HAM) == b"Message was already un/learned\n"

    assert move(ann, "Junk", "INBOX")[0] == "OK"
    assert lessons(dovecot)[-1] == "user=ann taught=ham outcome=moved"
    number = len(lessons(dovecot))
    assert move(ann, "Junk", "Trash")[0] == "OK"
    assert len(lessons(dovecot)) == number
    assert [len(found_in(ann, name)) for name in ("INBOX", "Junk", "Trash")] == [1, 0, 1]
    for client in (ann, bob):
        client.logout()
    assert_shown("log", dovecot.served.errors.read_text())


def test_without_the_server_mail_is_delivered_and_moved_and_the_log_tells(dovecot):
    dovecot.served.stop()
    dovecot.deliver("ann", SPAM)
    ann = dovecot.client("ann")
    [message] = found_in(ann, "INBOX")
    assert b"X-Nbspam" not in message
    assert move(ann, "INBOX", "Junk")[0] == "OK"
    assert len(found_in(ann, "Junk")) == 1
    ann.logout()
    until(lambda: "non-zero exit code 69" in dovecot.log())  # moves are piped in the background
    assert_shown("text", dovecot.log().replace(str(dovecot.place), "/etc/dovecot"))
