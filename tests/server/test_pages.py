"""The pages about the server are true: sessions, recipes, units, tables."""

import re
import shutil
import subprocess
import sys

import pytest

from cli.test_filter import Home
from nbspam.server.choices import SERVER_LIMITS
from nbspam.server.metrics import LESSONS, TROUBLES, VERDICTS, ServerTally, open_metrics
from nbspam.server.supervisor import _FILES
from serving import serving
from support import HAM, ROOT, SPAM, blocks_of, install_program, needs
from test_documents import assert_prints

PAGES = [
    ROOT / "docs" / "howto" / f"{name}.md" for name in ("serve", "spamc", "dovecot", "running")
]
HOWTO = "".join(path.read_text() for path in PAGES)
WITH_SESSIONS = [path for path in PAGES if "```console-served\n" in path.read_text()]
REFERENCE = (ROOT / "docs" / "reference" / "serving.md").read_text()
SOCKET, HTTP, MILTER = "/run/nbspam/spamd", "127.0.0.1:11333", "127.0.0.1:8895"
PLACE, MAIL = "/var/lib/nbspam", "/srv/mail"
OPTIONS = {"running": ("--users", "users")}  # more than other pages' servers have


def table(heading):
    """Return the rows of the first table under a heading of the reference, as lists of cells."""
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", REFERENCE, re.S | re.M)
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:1] == "|"]
    return rows[2:]


@pytest.mark.slow
@needs("spamc", "rspamc", "curl")
@pytest.mark.parametrize("page", WITH_SESSIONS, ids=lambda path: path.stem)
def test_sessions_with_clients_print_what_the_page_shows(page, tmp_path, nbspam, monkeypatch):
    install_program(tmp_path / "bin", monkeypatch)
    (tmp_path / "password").write_text("open sesame\n")
    mail = ROOT / "corpora" / "mail"
    shutil.copy(mail / "spam" / "001-pills-plain.eml", tmp_path / "spam.eml")
    shutil.copy(next(mail.glob("ham/001*")), tmp_path / "ham.eml")
    model = tmp_path / "model.nbspam"
    assert nbspam("train", "-m", model, mail)[0] == 0
    (tmp_path / "users").mkdir()
    options = ("--allow-tell", "--password-file", "password", *OPTIONS.get(page.stem, ()))
    with serving(model, tmp_path, *options) as served:
        real = {SOCKET: served.spamd, HTTP: f"127.0.0.1:{served.http}", MAIL: str(mail)}
        real[PLACE] = str(tmp_path)
        assert_prints(blocks_of(page.read_text(), "console-served"), tmp_path, real)


@pytest.mark.slow
def test_the_program_with_aiospamc_prints_what_the_page_shows(tmp_path, nbspam):
    pytest.importorskip("aiospamc", reason="aiospamc is not installed")
    mail = ROOT / "corpora" / "mail"
    shutil.copy(mail / "spam" / "001-pills-plain.eml", tmp_path / "spam.eml")
    model = tmp_path / "m.nbspam"
    assert nbspam("train", "-m", model, mail)[0] == 0
    (program,) = blocks_of(HOWTO, "python-served")
    (shown,) = re.findall(r"^It prints:\n\n```text\n(.*?)^```", HOWTO, re.DOTALL | re.MULTILINE)
    with serving(model, tmp_path, "--allow-tell") as served:
        code = program.replace(SOCKET, served.spamd)
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.stdout.decode() == shown, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("program", ["procmail", "maildrop"])
def test_recipes_put_spam_where_it_belongs(tmp_path, own_model, program):
    if not (shutil.which(program) and shutil.which("spamc")):
        pytest.skip(f"needs spamc and {program}")
    home = Home(tmp_path / "home", own_model)
    with serving(own_model, tmp_path) as served:
        (text,) = blocks_of(HOWTO, program)
        text = text.replace(SOCKET, served.spamd)
        for message in (HAM, SPAM):
            assert home.deliver(program, text, message).returncode == 0
        (ham,), (spam,) = home.mail(), home.mail(".Spam")
        assert b"X-Nbspam: ham" in ham
        assert b"X-Nbspam: spam" in spam
        shutil.rmtree(home.path / "Maildir" / ".Spam")  # not all users have one
        assert home.deliver(program, text, SPAM).returncode == 0


def test_configurations_are_those_that_the_tests_run():
    tested = (ROOT / "tests" / "server" / "test_mail_systems.py").read_text()
    for line in blocks_of(HOWTO, "postfix")[0].replace(MILTER, "127.0.0.1:{milter}").splitlines():
        assert line in tested
    for line in blocks_of(HOWTO, "exim")[0].replace(SOCKET, "{spamd}").splitlines():
        assert line in tested
    assert blocks_of(HOWTO, "exim-acl")[0] in tested
    for line in blocks_of(HOWTO, "haraka")[0].replace(SOCKET, "{served.spamd}").splitlines():
        assert f"{line}\\n" in tested


def test_the_table_of_limits_is_that_of_the_program():
    rows = table("Limits")
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row[0])]
    assert sorted(names) == sorted(SERVER_LIMITS._fields)
    for row in rows:
        numbers = [float(number) for number in re.findall(r"\d+", row[1])]
        values = [getattr(SERVER_LIMITS, name) for name in re.findall(r"`(\w+)`", row[0])]
        assert numbers[: len(values)] == values, row


def test_the_table_of_metrics_is_that_of_the_program():
    tally = ServerTally(1)
    tally.set_gauge("shares", 1)
    text = open_metrics(tally, {"model_age_seconds": 0.0}).decode()
    families = {
        f"{name}_total" if kind == "counter" else name
        for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M)
    }
    rows = table("Metrics")
    named = {name for row in rows for name in re.findall(r"`(nbspam_\w+)", row[0])}
    assert named == families
    values = {word for row in rows[:3] for word in re.findall(r"`(\w+)`", row[1])}
    assert values == {*VERDICTS, *LESSONS, *TROUBLES}


@needs("systemd-analyze")
def test_units_are_what_systemd_understands(tmp_path):
    kinds = (".service", ".socket", ".timer")
    units = [path for path in (ROOT / "contrib").iterdir() if path.suffix in kinds]
    assert len(units) == 7
    for name, text in ((path.name, path.read_text()) for path in units):
        # The program and its manual need not be installed here.
        text = re.sub("^ExecStart=[^ ]*", "ExecStart=/bin/true", text, flags=re.M)
        text = re.sub("^Documentation=.*\n", "", text, flags=re.M)
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", *(tmp_path / path.name for path in units)],
        capture_output=True,
        check=False,
        env={"SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
    )
    assert done.returncode == 0, done.stderr
    assert str(tmp_path).encode() not in done.stderr, done.stderr


def test_alerts_ask_for_metrics_that_there_are():
    text = (ROOT / "contrib" / "nbspam.rules.yml").read_text()
    asked = set(re.findall(r"\bnbspam_\w+", text))
    known = set(re.findall(r"`(nbspam_\w+)", REFERENCE)) | {"nbspam_answer_seconds_bucket"}
    assert len(asked) > 5
    assert asked <= known
    kinds = re.search(r'kind=~"([\w|]+)"', text)[1].split("|")
    assert {*kinds, "model"} <= set(TROUBLES)


def test_the_unit_gives_the_server_the_time_and_the_files_it_takes():
    text = (ROOT / "contrib" / "nbspam.service").read_text()
    number = {name: int(text) for name, text in re.findall(r"^(\w+)=(\d+)$", text, re.M)}
    assert number["TimeoutStopSec"] > SERVER_LIMITS.drain_seconds + 5
    assert 5 * number["RestartSec"] > 10  # systemd gives up after five starts in ten seconds
    files = 2 * (SERVER_LIMITS.connections + SERVER_LIMITS.visitors) + _FILES
    assert number["LimitNOFILE"] >= files
    assert f"a hard limit of {files:,}" in (ROOT / "docs" / "howto" / "running.md").read_text()
    assert "FileDescriptorName=spamd\n" in (ROOT / "contrib" / "nbspam.socket").read_text()
