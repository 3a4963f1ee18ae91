"""Mail from swaks through a real Postfix that asks our milter, into a mailbox."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from serving import free_port, serving, swaks, until
from support import HAM, SPAM

MAIN = """
compatibility_level = 3.6
queue_directory = {place}/queue
data_directory = {place}/data
mail_owner = postfix
command_directory = /usr/sbin
daemon_directory = /usr/lib/postfix/sbin
myhostname = mail.example.org
mydestination =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
virtual_mailbox_domains = example.org
virtual_mailbox_base = {place}/box
virtual_mailbox_maps = static:inbox/
virtual_uid_maps = static:65534
virtual_gid_maps = static:65534
smtpd_milters = inet:127.0.0.1:{milter}
milter_default_action = tempfail
smtpd_recipient_restrictions = reject_unauth_destination
maillog_file = {place}/log
maillog_file_prefixes = /tmp, /var
alias_maps =
alias_database =
"""
MASTER = """
127.0.0.1:{smtp} inet n - n - - smtpd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
proxymap unix - - n - - proxymap
virtual unix - n n - - virtual
anvil unix - - n - 1 anvil
error unix - - n - - error
retry unix - - n - - error
postlog unix-dgram n - n - 1 postlogd
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.getuid() != 0 or not (shutil.which("postfix") and shutil.which("swaks")),
        reason="needs root, Postfix and swaks",
    ),
]


class Postfix:
    """A private Postfix on loopback."""

    def __init__(self, place, milter):
        self.place, self.smtp, self.milter = place, free_port(), milter
        place.chmod(0o755)  # Postfix's own users look for their folders here
        for name in ("etc", "queue", "data", "box/inbox"):
            (place / name).mkdir(parents=True)
        shutil.chown(place / "data", "postfix")
        for path in (place / "box", place / "box" / "inbox"):
            os.chown(path, 65534, 65534)
        names = {"place": place, "milter": milter, "smtp": self.smtp}
        (place / "etc" / "main.cf").write_text(MAIN.format(**names))
        (place / "etc" / "master.cf").write_text(MASTER.format(**names))
        self.run("check")  # makes the folders of the queue
        self.run("start")

    def run(self, word):
        command = ["postfix", "-c", self.place / "etc", word]
        done = subprocess.run(command, check=False, capture_output=True)
        log = self.place / "log"
        assert done.returncode == 0, (done, log.exists() and log.read_text())

    def send(self, data):
        return swaks(self.place, data, "--server", f"127.0.0.1:{self.smtp}")

    def delivered(self, number):
        """Return the messages in the mailbox, when there are so many."""

        def found():
            return sorted(self.place.glob("box/inbox/new/*"))

        until(lambda: len(found()) >= number)
        return [path.read_bytes() for path in found()]

    def held(self):
        return len(list((self.place / "queue" / "hold").rglob("*[0-9A-F]")))


@pytest.fixture
def postfix():
    """Start a Postfix that asks a milter at a port: (milter) -> Postfix."""
    with tempfile.TemporaryDirectory(prefix="postfix") as place:
        started = []

        def start(milter):
            started.append(Postfix(Path(place), milter))
            return started[-1]

        yield start
        for each in started:
            each.run("stop")


def test_mail_gets_a_header_and_loses_forged_ones(own_model, tmp_path, postfix):
    with serving(own_model, tmp_path) as served:
        mta = postfix(served.milter)
        assert "250 2.0.0 Ok: queued" in mta.send(b"X-Spam-Status: No, forged\n" + SPAM)
        [spam] = mta.delivered(1)
        assert b"\nX-Nbspam: spam, probability=0.9" in spam
        assert b"\nX-Spam-Flag: YES\nX-Spam-Status: Yes, score=" in spam
        assert b"forged" not in spam
        assert spam.endswith(b"buy cheap pills now http://p.example/\n\n")
        mta.send(HAM)
        assert sum(b"\nX-Nbspam: ham" in each for each in mta.delivered(2)) == 1
        log = served.errors.read_text()

        # The server stops: mail is to be sent again, and none is lost or passed.
        served.stop()
        assert "451 4.7.1 Service unavailable" in mta.send(SPAM)
    assert "verdict=spam" in log
    assert "queue=" in log


@pytest.mark.parametrize(
    ("option", "answer", "n_held"),
    [
        ("--reject-above", "550 5.7.1 The message is spam", 0),
        ("--quarantine-above", "250 2.0.0 Ok: queued", 1),
    ],
)
def test_spam_is_rejected_or_held(own_model, tmp_path, postfix, option, answer, n_held):
    with serving(own_model, tmp_path, option, "0.9") as served:
        mta = postfix(served.milter)
        assert answer in mta.send(SPAM)
        assert "250 2.0.0 Ok: queued" in mta.send(HAM)
        assert len(mta.delivered(1)) == 1
        assert mta.held() == n_held


@pytest.mark.parametrize(
    ("choice", "answer"), [("tempfail", "451 4.7.1"), ("pass", "250 2.0.0 Ok: queued")]
)
def test_when_busy(own_model, tmp_path, postfix, choice, answer):
    limits = {"waiting": 0}
    with serving(own_model, tmp_path, "--when-busy", choice, limits=limits) as served:
        assert answer in postfix(served.milter).send(SPAM)
