"""Every switch of SpamAssassin's spamc, over TCP and a socket at a path, and its statuses."""

import re
import shutil
import socket
import subprocess

import pytest

from serving import PATIENCE, free_port, serving
from support import HAM, LESSON, ROOT, SPAM, needs

pytestmark = [pytest.mark.slow, needs("spamc")]

PAGE = (ROOT / "docs" / "howto" / "spamc.md").read_text()
SPAM_SCORE = rb"\d+\.\d/5\.0\n"
HAM_SCORE = rb"(-\d+|[0-4])\.\d/5\.0\n"
MARKED = (
    rb"X-Nbspam: spam, .*\nX-Spam-Flag: YES\nX-Spam-Level: \*+\nX-Spam-Status: Yes, (?s:.*)"
    + re.escape(SPAM)
)
BY_HAND = rb"X-Nbspam: ham, .*\nX-Spam-Status: No, (?s:.*)" + re.escape(HAM)
REPORT = rb"(?s)\d+\.\d/5\.0\nspam, probability of spam 0\.9.*\n  \+\d\.\d  \S[^\n]*\n.*"
ENVELOPE = b"MAIL FROM:<a@b.example>\nRCPT TO:<c@d.example>\nDATA\n%s.\nQUIT\n"
VERSION = rb"(?s)SpamAssassin Client version 4.*"

# Switches that change nothing in an answer.
NO_MATTER = """-u ann; --username ann; -t 30 -n 30; --timeout 30 --connect-timeout 30; -x -X; -l
--filter-retries 2 --filter-retry-sleep 1; --connect-retries 2 --retry-sleep 1; --log-to-stderr
--no-safe-fallback --unavailable-tempfail; -f""".replace("\n", "; ").split("; ")
# Switches, what is sent, status, what is printed.
ANSWERS = [
    ("", SPAM, 0, MARKED),
    ("", HAM, 0, BY_HAND),
    ("-B", ENVELOPE % SPAM, 0, rb"MAIL FROM:(?s:.*)DATA\n" + MARKED + rb"\.\nQUIT\n"),
    ("--bsmtp -c", ENVELOPE % SPAM, 1, SPAM_SCORE),
    ("-c", SPAM, 1, SPAM_SCORE),
    ("--check", HAM, 0, HAM_SCORE),
    ("-E", SPAM, 1, MARKED),
    ("--exitcode", HAM, 0, BY_HAND),
    ("-y", SPAM, 0, rb"BAYES_9\d,NBSPAM_SPAM"),
    ("--tests", HAM, 0, rb"BAYES_0\d,NBSPAM_HAM"),
    ("-r", SPAM, 0, REPORT),
    ("--full-spam", HAM, 0, rb""),
    ("-R", SPAM, 0, REPORT),
    ("--full", HAM, 0, rb"(?s)" + HAM_SCORE + rb"ham, probability of spam 0\.0.*"),
    ("--headers", SPAM, 0, MARKED),
    ("-K", b"", 0, rb"SPAMD/1\.5 0\n"),
    *((f"{switches} -c", SPAM, 1, SPAM_SCORE) for switches in NO_MATTER),
    ("-s 100 -c", SPAM * 9, 0, rb"0/0\n"),
    ("--max-size 100", SPAM * 9, 0, re.escape(SPAM * 9)),
    ("-s 100 -L spam", SPAM * 9, 98, rb""),
    ("-e /usr/bin/tail -n 2", SPAM, 0, rb"(?s).*" + re.escape(SPAM.splitlines(True)[-1])),
    ("-E --pipe-to /bin/cat", SPAM, 0, MARKED),  # the status is that of the program
    ("-e /no/such/program", SPAM, 71, rb""),
    ("-L spam", LESSON, 0, rb"Message successfully un/learned\n"),
    ("--learntype spam", LESSON, 0, rb"Message was already un/learned\n"),
    ("-L ham", LESSON, 0, rb"Message successfully un/learned\n"),
    ("-L forget", LESSON, 0, rb"Message successfully un/learned\n"),
    ("-L forget", LESSON, 0, rb"Message was already un/learned\n"),
    ("-L nonsense", LESSON, 64, rb""),
    ("-C report", SPAM, 0, rb"Unable to report/revoke message\n"),
    ("--reporttype revoke", SPAM, 0, rb"Unable to report/revoke message\n"),
    # TLS is not spoken; Debian's spamc has no zlib.
    ("-S -c", SPAM, 0, rb"0/0\n"),
    ("--ssl -x -c", SPAM, 69, rb"0/0\n"),
    ("--ssl-cert /no --ssl-key /no --ssl-ca-path /no -S -c", SPAM, 0, rb"0/0\n"),
    ("--ssl-ca-file /no -S -x -c", SPAM, 71, rb"0/0\n"),
    ("-z -c", SPAM, 64, rb""),
    *((switch, b"", 0, VERSION) for switch in ("-V", "--version", "-h", "--help")),
]


@pytest.fixture(scope="module")
def spamd(request, tmp_path_factory, served_model):
    """Start a server at a port, or at a path; return the switches that lead to it."""
    folder = tmp_path_factory.mktemp("spamc")
    model = shutil.copy(served_model, folder / "m.nbspam")
    port = free_port() if request.param == "tcp" else None
    options = ("--allow-tell", "--jobs", "1")
    with serving(model, folder, *options, spamd=port) as served:
        to = ["-d", "127.0.0.1", "-p", str(port)] if port else ["-U", served.spamd]
        yield to, served


def spamc(*switches, data=SPAM):
    command = ["spamc", *map(str, switches)]
    done = subprocess.run(command, input=data, capture_output=True, check=False, timeout=PATIENCE)
    return done.returncode, done.stdout


@pytest.mark.parametrize("spamd", ["tcp", "unix"], indirect=True)
def test_every_switch_does_what_it_should(spamd):
    to, _ = spamd
    for switches, data, status, printed in ANSWERS:
        found = spamc(*to, *switches.split(), data=data)
        assert found[0] == status, (switches, found)
        assert re.fullmatch(printed, found[1]), (switches, found)


def test_every_switch_is_tried_and_in_the_manual():
    listed = subprocess.run(["spamc", "-h"], capture_output=True, check=True).stdout.decode()
    options = re.findall(r"^  (-\w)(?: ?, (--[\w-]+))?|^  (--[\w-]+)", listed, re.M)
    names = {name for names in options for name in names if name}
    assert len(names) > 50
    tried = {word for row in ANSWERS for word in row[0].split()}
    code = (ROOT / "tests" / "server" / "test_spamc.py").read_text()
    others = {name for name in names - tried if f'"{name}"' in code}
    assert names - tried == others
    assert names - set(re.findall(r"`(--?[\w-]+)", PAGE)) == set()


@pytest.mark.parametrize("spamd", ["tcp"], indirect=True)
def test_names_of_hosts_files_of_switches_and_several_hosts(spamd, tmp_path):
    (_, host, _, port), _ = spamd
    (tmp_path / "conf").write_text(f"# where it is\n-d {host}\n-p {port}\n")
    nobody = "127.0.0.3"  # nobody listens there
    for switches in [
        ("-F", tmp_path / "conf"),
        ("-p", port),  # localhost
        ("--dest", "localhost", "--port", port),
        ("-4", "-d", "localhost", "-p", port),
        ("-d", f"{nobody},{host}", "-p", port),
        ("-H", "-d", f"{nobody},{host}", "-p", port),
        ("--randomize", "-d", f"{nobody},{host}", "-p", port),
        ("-x", "-d", f"{host},{nobody}", "-p", port),
    ]:
        assert spamc(*switches, "-c")[0] == 1, switches
    # spamc asks no second host with -x.
    to = ("-d", f"{nobody},{host}", "-p", port, "--connect-retries", "1")
    assert spamc(*to, "-x", "-c") == (69, b"0/0\n")
    assert spamc("-F", tmp_path / "none", "-c")[0] == 78
    # spamc itself does not do what its manual says of --config: the file is not read.
    (tmp_path / "check").write_text("-c\n")
    to = ("-d", host, "-p", port)
    assert spamc(*to, "-F", tmp_path / "check")[0] == 1
    assert spamc(*to, "--config", tmp_path / "check")[0] == 0


def test_ipv6(own_model, tmp_path):
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6) as probe:
            port = probe.getsockname()[1]
    except OSError:
        pytest.skip("there is no IPv6 here")
    with serving(own_model, tmp_path, "--jobs", "1", spamd=f"[::1]:{port}"):
        assert spamc("-d", "::1", "-p", port, "-c")[0] == 1
        assert spamc("-6", "-d", "::1", "-p", port, "-c")[0] == 1
        assert spamc("-4", "-d", "::1", "-p", port, "-x", "-c")[0] == 71


@pytest.mark.parametrize("spamd", ["unix"], indirect=True)
def test_the_log_says_who_asked_and_who_taught(spamd):
    (_, path), served = spamd
    spamc("--socket", path, "-u", "ann", "-c")
    spamc("-U", path, "-u", "bob", "-L", "ham", data=LESSON)
    spamc("-U", path, "-u", "bob", "-L", "forget", data=LESSON)
    log = served.errors.read_text()
    assert "user=ann asked=CHECK verdict=spam" in log
    assert "user=bob taught=ham outcome=learned" in log
    assert "user=bob taught=forget outcome=unlearned" in log
    assert not all(ms.endswith(".0") for ms in re.findall(r" ms=(\S+)", log))


def statuses(*to):
    """Return what spamc does if it gets no verdict: by switches."""
    to = (*to, "--connect-retries", "1")
    return {
        switches: spamc(*to, *switches.split())
        for switches in ("-c", "-y", "-R", "", "--headers", "-x -c", "-x", "-x -X -c", "-K")
    }


FAIL_OPEN = {"-c": (0, b"0/0\n"), "-y": (0, b"\n"), "-R": (0, b"0/0\n")}
FAIL_OPEN |= {"": (0, SPAM), "--headers": (0, SPAM)}


def test_mail_passes_if_nobody_listens_or_answers_unless_told():
    assert statuses("-d", "127.0.0.1", "-p", free_port()) == FAIL_OPEN | {
        "-x -c": (69, b"0/0\n"),
        "-x": (69, b""),
        "-x -X -c": (75, b"0/0\n"),
        "-K": (69, b""),
    }

    with socket.create_server(("127.0.0.1", 0)) as silent:
        to = ("-d", "127.0.0.1", "-p", silent.getsockname()[1], "-t", "1")
        assert spamc(*to, "-c") == (0, b"0/0\n")
        assert spamc(*to) == (0, SPAM)
        assert spamc(*to, "-x", "-c") == (74, b"0/0\n")
    # What waits in a full queue is not accepted, nor refused.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        port = full.getsockname()[1]
        waiting = [socket.socket() for _ in range(3)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
        to = ("-d", "127.0.0.1", "-p", port, "-n", "1", "--connect-retries", "1")
        assert spamc(*to, "-c") == (0, b"0/0\n")
        assert spamc(*to, "-x", "-c") == (70, b"0/0\n")
        for each in waiting:
            each.close()


def test_mail_passes_if_the_server_is_busy_unless_told(own_model, tmp_path):
    with serving(own_model, tmp_path, "--jobs", "1", limits={"waiting": 0}) as served:
        found = statuses("-U", served.spamd)
        assert found == FAIL_OPEN | {
            # spamc does not read the number of a status, which is 75 here.
            "-x -c": (74, b"0/0\n"),
            "-x": (74, b""),
            "-x -X -c": (74, b"0/0\n"),
            "-K": (0, b"SPAMD/1.5 0\n"),
        }
        # And it teaches nobody without --allow-tell.
        assert spamc("-U", served.spamd, "-L", "spam") == (74, b"")
        assert spamc("-U", served.spamd, "-C", "report") == (0, SPAM)


def test_a_report_does_not_move_the_score_unless_reports_teach(tmp_path, own_model):
    for options, is_taught in (((), False), (("--report-teaches",), True)):
        with serving(own_model, tmp_path, "--allow-tell", "--jobs", "1", *options) as served:
            to = ["-U", served.spamd]
            before = spamc(*to, "-c", data=LESSON)[1]
            said = spamc(*to, "-C", "report", data=LESSON)[1]
            assert said.startswith(b"Message success" if is_taught else b"Unable to report")
            assert (spamc(*to, "-c", data=LESSON)[1] != before) == is_taught
            said = spamc(*to, "-C", "revoke", data=LESSON)[1]
            assert said.startswith(b"Message success" if is_taught else b"Unable to report")
            assert bool(served.metrics()['nbspam_lessons_total{outcome="moved"}']) == is_taught
