"""Real mail systems on loopback: Postfix, Exim, Haraka and Dovecot, as the pages set them up.

Debian's package exim4-daemon-heavy excludes Postfix.  It can be unpacked into a folder: EXIM names
the program then, and LD_LIBRARY_PATH the folders of its libraries.  HARAKA names the folder where
`npm install Haraka haraka-plugin-spamassassin` was run.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import pytest

from mail_servers import Dovecot
from nbspam.delivery.postfix import MessageGoneError, held_messages
from nbspam.errors import InputError
from nbspam.store.model import StoredModel
from serving import PATIENCE, free_port, is_refused, serving, swaks, until
from support import HAM, ROOT, SPAM, blocks_of, run_nbspam

pytestmark = pytest.mark.slow


@pytest.fixture
def place():
    """A folder that everybody may enter, as those of pytest's are not."""
    with tempfile.TemporaryDirectory(prefix="mail-system") as name:
        Path(name).chmod(0o755)
        yield Path(name)


# ---- Postfix, by the milter protocol ----

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
virtual_alias_maps = inline:{{ {{info@example.org=ann@example.org,bob@example.org}} }}
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
showq unix n - n - - showq
flush unix n - n 1000? 0 flush
error unix - - n - - error
retry unix - - n - - error
postlog unix-dgram n - n - 1 postlogd
"""

needs_postfix = pytest.mark.skipif(
    os.getuid() != 0 or not (shutil.which("postfix") and shutil.which("swaks")),
    reason="needs root, Postfix and swaks",
)


class Postfix:
    """A private Postfix on loopback."""

    def __init__(self, place, milter):
        self.place, self.smtp, self.milter = place, free_port(), milter
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

    def send(self, data, *words):
        return swaks(self.place, data, "--server", f"127.0.0.1:{self.smtp}", *words)

    def delivered(self, number):
        """Return the messages in the mailbox, when there are so many."""

        def found():
            return sorted(self.place.glob("box/inbox/new/*"))

        until(lambda: len(found()) >= number)
        return [path.read_bytes() for path in found()]

    def held(self):
        return len(list((self.place / "queue" / "hold").rglob("*[0-9A-F]")))

    def review(self, model, *words):
        env = {**os.environ, "MAIL_CONFIG": str(self.place / "etc")}
        env["PATH"] = "/usr/bin"  # a user's, which lacks the folder of Postfix's programs
        return run_nbspam("held", "-m", model, *words, env=env)


@pytest.fixture
def postfix(place):
    """Start a Postfix that asks a milter at a port: (milter) -> Postfix."""
    started = []

    def start(milter):
        started.append(Postfix(place, milter))
        return started[-1]

    yield start
    for each in started:
        each.run("stop")


@needs_postfix
def test_mail_gets_a_header_and_loses_forged_ones(own_model, tmp_path, postfix):
    with serving(own_model, tmp_path) as served:
        mta = postfix(served.milter)
        assert "250 2.0.0 Ok: queued" in mta.send(b"X-Spam-Status: No, forged\n" + SPAM)
        [spam] = mta.delivered(1)
        assert b"\nX-Nbspam: spam, probability=0.9" in spam
        assert b"\nX-Spam-Flag: YES\nX-Spam-Level: *" in spam
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


QUEUED, LATER, BUSY = "250 2.0.0 Ok: queued", "451 4.7.1", {"waiting": 0}


@needs_postfix
@pytest.mark.parametrize(
    ("option", "limits", "of_spam", "of_ham", "n_held"),
    [
        ("--reject-above=0.9", {}, "550 5.7.1 The message is spam", QUEUED, 0),
        ("--quarantine-above=0.9", {}, QUEUED, QUEUED, 1),
        ("--when-busy=tempfail", BUSY, LATER, LATER, 0),
        ("--when-busy=pass", BUSY, QUEUED, QUEUED, 0),
    ],
)
def test_mail_is_rejected_held_or_sent_again_or_passes(
    own_model, tmp_path, postfix, option, limits, of_spam, of_ham, n_held
):
    with serving(own_model, tmp_path, option, limits=limits) as served:
        mta = postfix(served.milter)
        assert of_spam in mta.send(SPAM)
        assert of_ham in mta.send(HAM)
        n_delivered = [of_spam, of_ham].count(QUEUED) - n_held
        assert len(mta.delivered(n_delivered)) == n_delivered
        assert mta.held() == n_held


@needs_postfix
def test_held_mail_is_listed_taught_delivered_and_deleted_or_is_gone(
    own_model, tmp_path, postfix, monkeypatch
):
    owner = 65534
    with serving(own_model, tmp_path, "--quarantine-above", "0.9") as served:
        mta = postfix(served.milter)
        for number in (b"one", b"two", b"three"):
            mta.send(b"Message-ID: <%s@example.com>\n" % number + SPAM)
        until(lambda: mta.held() == 3)
        os.chown(own_model, owner, owner)
        held = partial(mta.review, own_model)
        status, out, err = held()
        assert (status, err) == (0, "")
        rows = [row.split("\t") for row in out.splitlines()]
        names = [row[2] for row in rows]
        shown = ["x@example.com", "ann@example.org", "cheap pills"]
        assert [[row[0], *row[3:]] for row in rows] == [["spam", *shown]] * 3
        [row] = [json.loads(line) for line in held("--json", names[1])[1].splitlines()]
        assert [row["name"], row["recipients"]] == [names[1], ["ann@example.org"]]

        assert held("--spam", names[0])[:2] == (0, "deleted 1\nlearned 1\n")
        assert held("--ham", names[1])[:2] == (0, "delivered 1\nlearned 1\n")
        assert mta.held() == 1
        [delivered] = mta.delivered(1)
        assert b"X-Nbspam: spam" in delivered  # the verdict that it was held for
        assert StoredModel(str(own_model)).filed(delivered).label == "ham"
        # The copy is the server's, which began before the model had this owner.
        beside = {*own_model.parent.glob(f"{own_model.name}*")}
        beside -= {*own_model.parent.glob(f"{own_model.name}.served*")}
        assert {path.stat().st_uid for path in beside} == {owner}  # though root has written

        gone = f"skipped {names[1]}: not a message that Postfix holds; nbspam held lists them\n"
        done = "delivered 1\nlearned 1, skipped 1\n"
        assert held("--ham", names[1], names[2]) == (1, done, f"nbspam: {gone}")
        assert held(names[1])[::2] == (1, f"nbspam: {gone}")

        mta.send(SPAM)
        until(lambda: mta.held() == 1)
        monkeypatch.setenv("MAIL_CONFIG", str(mta.place / "etc"))
        [message] = held_messages()
        message.delete()  # as somebody else may while the list is read
        for work in (message.release, message.delete):
            with pytest.raises(InputError, match=r"^post\w+: .*; run it as root"):
                work()
        with pytest.raises(MessageGoneError):  # which a list passes over
            message.read()


@needs_postfix
def test_a_held_message_is_judged_by_and_teaches_the_model_that_the_milter_asked(
    own_model, tmp_path, postfix
):
    owner, users = 65534, tmp_path / "users"
    users.mkdir()
    os.chown(users, owner, owner)
    models = own_model, users / "ann@example.org" / "model", users / "info@example.org" / "model"
    messages = [b"Message-ID: <%d@example.com>\n" % number + SPAM for number in range(3)]

    def taught():
        known = (StoredModel(str(path)) if path.exists() else None for path in models)
        return [[each and each.filed(data).label for data in messages] for each in known]

    with serving(own_model, tmp_path, "--users", users, "--quarantine-above", "0") as served:
        mta = postfix(served.milter)

        def queued(data, to):
            return re.search("queued as ([0-9A-F]+)", mta.send(data, "--to", to))[1]

        to = '"Ann"@Example.org', "ann@example.org,bob@example.org", "info@example.org"
        names = list(map(queued, messages, to))
        until(lambda: mta.held() == 3)
        held = partial(mta.review, own_model, "--users", users)
        assert held("--ham", names[0])[:2] == (0, "delivered 1\nlearned 1\n")
        assert taught() == [[None] * 3, ["ham", None, None], [None] * 3]
        assert {path.stat().st_uid for path in users.rglob("*")} == {owner}  # not root's

        names.append(queued(SPAM, "ann@example.org"))  # which is judged by what ann has taught
        until(lambda: mta.held() == 3)

        def judged(*words):
            said = mta.review(own_model, *words, "--json", *names[1:])[1]
            return [json.loads(line) for line in said.splitlines()]

        rows = judged("--users", users)
        assert [row["label"] for row in rows] == ["spam", "spam", "ham"]
        assert [row["label"] for row in judged()] == ["spam"] * 3  # by the site's model
        # Of an alias, the milter and its user's model know the name, not whom it reaches.
        assert [len(row["recipients"]) for row in rows] == [2, 2, 1]
        assert held("--spam", *names[1:3])[:2] == (0, "deleted 2\nlearned 2\n")
        assert taught() == [[None, "spam", None], ["ham", None, None], [None, None, "spam"]]


# ---- Exim, by spamd's protocol and by rspamd's ----

EXIM = os.environ.get("EXIM") or shutil.which("exim4")
EXIM_CONFIG = """
primary_hostname = mail.example.org
spool_directory = {place}
log_file_path = {place}/%slog
exim_user = root
exim_group = root
never_users =
keep_environment =
spamd_address = {spamd}{variant}
acl_smtp_rcpt = accept
acl_smtp_data = check_data
begin acl
check_data:
  warn  remove_header = X-Spam-Score : X-Spam-Report
        spam = nobody:true
        add_header = X-Spam-Score: $spam_score ($spam_bar) $spam_action
        add_header = X-Spam-Report: $spam_report
  deny  message = This message is spam ($spam_score)
        spam = nobody
  accept
"""


def scans():
    if not (EXIM and shutil.which("swaks")) or os.getuid() != 0:
        return False
    asked = subprocess.run([EXIM, "-C", "/dev/null", "-bV"], capture_output=True, check=False)
    return b"Content_Scanning" in asked.stdout


@pytest.mark.skipif(
    not scans(), reason="needs root, swaks and an Exim that scans content: EXIM names it"
)
@pytest.mark.parametrize(
    ("variant", "header"),
    [
        ("", b"X-Spam-Report: ham, probability of spam 0."),
        (" variant=rspamd", b"X-Spam-Report: Action: no action\n"),
    ],
)
def test_exim_rejects_spam_and_notes_the_score_of_ham(own_model, tmp_path, variant, header):
    (tmp_path / "exim").mkdir()
    config = tmp_path / "exim.conf"
    to = ("--pipe", shlex.join([EXIM, "-C", str(config), "-odq", "-bs"]))
    with serving(own_model, tmp_path) as served:
        names = {"place": tmp_path / "exim", "spamd": served.spamd, "variant": variant}
        config.write_text(EXIM_CONFIG.format(**names))
        said = swaks(tmp_path, SPAM, *to)
        assert "550 This message is spam (" in said, (said, served.errors.read_text())
        assert "250 OK id=" in swaks(tmp_path, b"X-Spam-Score: -9\n" + HAM, *to)
        [head] = (tmp_path / "exim" / "input").glob("*-H")  # of the message in the queue
        text = head.read_bytes()
    assert header in text
    assert re.search(rb"^\d+\* X-Spam-Score: -9$", text, re.M)  # which is not delivered


# ---- Haraka, whose plugin spamassassin asks spamd's protocol for HEADERS ----

HARAKA = Path(os.environ.get("HARAKA", "/nowhere")) / "node_modules" / ".bin" / "haraka"


@pytest.fixture
def haraka(own_model, tmp_path):
    """Start a Haraka that asks a server; return its port, and the server."""
    place, port = tmp_path / "haraka", free_port()
    subprocess.run([HARAKA, "-i", place], check=True, capture_output=True)
    with serving(own_model, tmp_path, "--jobs", "1") as served:
        for name, text in {
            "plugins": "spamassassin\nrcpt_to.in_host_list\nqueue/test\n",
            "host_list": "example.org\n",
            "smtp.ini": f"listen=127.0.0.1:{port}\nnodes=0\n",
            "spamassassin.ini": f"spamd_socket={served.spamd}\nspamd_user=first-recipient\n"
            "reject_threshold=5\n",
        }.items():
            (place / "config" / name).write_text(text)
        environment = {**os.environ, "TMPDIR": str(tmp_path)}  # where queue/test puts messages
        command = [HARAKA, "-c", place]
        with open(tmp_path / "log", "wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            until(lambda: not is_refused(port))
            yield port, served
        finally:
            process.terminate()
            process.wait(PATIENCE)


@pytest.mark.skipif(
    not (HARAKA.exists() and shutil.which("swaks")),
    reason="needs swaks and a Haraka: HARAKA names the folder where npm installed it",
)
def test_haraka_rejects_spam_and_marks_ham(haraka, tmp_path):
    port, served = haraka
    to = ("--server", f"127.0.0.1:{port}")
    assert "550 spam score exceeded threshold" in swaks(tmp_path, SPAM, *to)
    assert "250 Message Queued" in swaks(tmp_path, HAM, *to)
    [message] = tmp_path.glob("mail_*.eml")
    assert b"X-Spam-Status: No, score=" in message.read_bytes()
    log = served.errors.read_text()
    assert "user=ann@example.org asked=HEADERS verdict=spam" in log
    assert "user=ann@example.org asked=HEADERS verdict=ham" in log


# ---- Dovecot, set up as docs/howto/dovecot.md and mail.md say: moving mail teaches ----
#
# It runs without rights, with all of its parts as one user.

PAGE = (ROOT / "docs" / "howto" / "dovecot.md").read_text()
PROGRAMS = ("dovecot", "sievec", "spamc")
LDA = "/usr/lib/dovecot/dovecot-lda"

needs_dovecot = pytest.mark.skipif(
    not all(map(shutil.which, PROGRAMS)) or not Path(LDA).exists(),
    reason="needs Dovecot with Pigeonhole, and spamc",
)


class DeliveringDovecot(Dovecot):
    """A private Dovecot that delivers mail and judges it by the scripts of a page.

    paths: where those of the page are here.  scripts: the page's own, in order.
    """

    def __init__(self, place, page, paths, scripts):
        def placed(text):
            for shown, real in paths.items():
                text = text.replace(shown, str(real))
            return text

        for script, text in zip(scripts, blocks_of(page, "sieve"), strict=True):
            script.write_text(placed(text))
        (text,) = blocks_of(page, "dovecot")
        # As in Debian, a user has no Junk until mail is filed there.
        bare = "postmaster_address = p@x.org\nnamespace inbox {\nmailbox Junk {\nauto = no\n}\n}\n"
        super().__init__(place, more=bare + placed(text))

    def run(self, program, *words, data=b""):
        command = [program, "-c", self.place / "dovecot.conf", *words]
        done = subprocess.run(
            command, input=data, capture_output=True, check=False, timeout=PATIENCE, **self.rights
        )
        assert done.returncode == 0, (command, done, self.log())

    def deliver(self, user, data):
        self.run(LDA, "-d", user, data=data)

    def move_last(self, user, source, target):
        self.put(target, user=user)
        self.move(self.bodies(source, user)[-1], source, target, user)


@pytest.fixture
def dovecot(own_model, place):
    """Start a server of users, and a Dovecot that asks it."""
    (place / "served" / "users").mkdir(parents=True)
    rights = ("--allow-tell", "--users", str(place / "served" / "users"))
    folder = place / "instance" / "sieve"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "spamc").symlink_to(shutil.which("spamc"))
    scripts = [folder / f"{name}.sieve" for name in ("judge", "learn-spam", "learn-ham")]
    with serving(own_model, place / "served", *rights) as served:
        paths = {"/etc/dovecot/sieve": folder, "/run/nbspam/spamd": served.spamd}
        found = DeliveringDovecot(place / "instance", PAGE, paths, scripts)
        for script in scripts:
            found.run("sievec", script)
        found.served = served
        yield found
        found.stop()


def lessons(dovecot):
    lines = dovecot.served.errors.read_text().splitlines()
    return [line.partition(" ms=")[0] for line in lines if "taught=" in line]


def told(dovecot, user, label, data):
    """Return what spamc prints when it teaches, past Dovecot."""
    command = ["spamc", "-U", dovecot.served.spamd, "-u", user, "-L", label]
    return subprocess.run(command, input=data, capture_output=True, check=True).stdout


def assert_shown(kind, printed):
    """Assert that a log has the lines of a block of the page; `...` stands for any text."""
    (shown,) = blocks_of(PAGE, kind)
    for line in shown.splitlines():
        pattern = ".*".join(map(re.escape, line.split("...")))
        assert re.search(rf"^{pattern}$", printed, re.M), (line, printed)


@needs_dovecot
def test_mail_is_judged_when_it_is_delivered_and_moving_it_teaches_its_users_model(dovecot):
    dovecot.deliver("dan", b"X-Spam-Flag: NO\n" + SPAM)
    dovecot.deliver("dan", HAM)
    [spam], [ham] = dovecot.bodies("Junk", "dan"), dovecot.bodies("INBOX", "dan")
    assert spam.startswith(b"X-Nbspam: spam, probability=0.9")
    assert b"X-Spam-Flag: NO" not in spam
    assert spam.endswith(b"buy cheap pills now http://p.example/\n")
    assert ham.startswith(b"X-Nbspam: ham, probability=0.9")
    assert lessons(dovecot) == []

    dovecot.deliver("ann", HAM)
    dovecot.move_last("ann", "INBOX", "Junk")
    assert lessons(dovecot) == ["user=ann taught=spam outcome=learned"]
    # The same message comes again, to two users.
    dovecot.deliver("ann", HAM)
    dovecot.deliver("bob", HAM)
    assert [len(dovecot.bodies(name)) for name in ("INBOX", "Junk")] == [0, 2]
    assert [len(dovecot.bodies(name, "bob")) for name in ("INBOX", "Junk")] == [1, 0]
    # The headers that it got do not make it another message.
    assert told(dovecot, "ann", "spam", HAM) == b"Message was already un/learned\n"

    dovecot.move_last("ann", "Junk", "INBOX")
    assert lessons(dovecot)[-1] == "user=ann taught=ham outcome=moved"
    number = len(lessons(dovecot))
    dovecot.move_last("ann", "Junk", "Deleted Items")  # as Outlook calls the trash
    assert len(lessons(dovecot)) == number
    assert [len(dovecot.bodies(name)) for name in ("INBOX", "Junk", "Deleted Items")] == [1, 0, 1]
    assert_shown("log", dovecot.served.errors.read_text())

    # Without the server mail is delivered and moved, and Dovecot's log tells.
    dovecot.served.stop()
    dovecot.deliver("eve", SPAM)
    [message] = dovecot.bodies("INBOX", "eve")
    assert b"X-Nbspam" not in message
    dovecot.move_last("eve", "INBOX", "Junk")
    assert len(dovecot.bodies("Junk", "eve")) == 1
    until(lambda: "non-zero exit code 69" in dovecot.log())  # moves are piped in the background
    assert_shown("text", dovecot.log().replace(str(dovecot.place), "/etc/dovecot"))


@needs_dovecot
def test_without_a_server_dovecot_starts_programs_that_judge_and_learn(place):
    folder, home = place / "sieve", place / "box" / "ann"
    folder.mkdir()
    home.mkdir(parents=True)
    learned = folder / "learned"
    for name, command in (
        ("nbspam-filter", "echo X-Nbspam: spam, probability=0.99; exec cat"),
        ("nbspam-learn", f'echo "$1" >> {learned}'),
    ):
        (folder / name).write_text(f"#!/bin/sh\n{command}\n")
        (folder / name).chmod(0o755)
    reports = folder / "report-spam.sieve", folder / "report-ham.sieve"
    scripts = [folder / "labelled.sieve", home / ".dovecot.sieve", *reports]
    page = (ROOT / "docs" / "howto" / "mail.md").read_text()
    dovecot = DeliveringDovecot(place, page, {"/usr/local/lib/dovecot/sieve": folder}, scripts)
    try:
        dovecot.deliver("ann", HAM)
        assert dovecot.bodies("Junk", "ann") == [b"X-Nbspam: spam, probability=0.99\n" + HAM]
        for source, target in (("Junk", "INBOX"), ("INBOX", "Junk"), ("Junk", "Trash")):
            dovecot.move_last("ann", source, target)
        assert until(lambda: learned.exists() and learned.read_text()) == "ham\nspam\n"
    finally:
        dovecot.stop()
