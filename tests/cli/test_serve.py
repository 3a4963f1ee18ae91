"""`nbspam serve` refuses what cannot be served, in one line."""

import errno
import re
import socket

import pytest

from nbspam.server import supervisor, worker
from support import complains


@pytest.fixture(autouse=True)
def no_server(monkeypatch):
    """Fail where a test would really serve."""

    def run(_):
        raise AssertionError("it serves")

    monkeypatch.setattr(supervisor.Supervisor, "run", run)


def test_wrong_options_are_refused(nbspam, trained, tmp_path):
    password = tmp_path / "password"
    password.write_text("\nsecret\n")
    no_users = "--review none: No such file or directory; with --users, give the folder of mail"
    no_maildir = "--move: --review . is no Maildir, and only in one can messages be moved; give"
    no_password = f"{password}: its first line is empty; write a password"
    for options, status, words in [
        ("", 2, "no address to listen on; give --spamd ADDRESS or --http ADDRESS or --milter"),
        ("--spamd here", 2, "--spamd here: not an address; write HOST:PORT, or a path"),
        ("--spamd /nonexistent/a/b", 1, "--spamd /nonexistent/a/b: No such file"),
        ("--http 0 --password-file none", 1, "--password-file none: No such file"),
        (f"--http 0 --password-file {password}", 1, no_password),
        ("--milter 0 --reject-above 2", 2, "--reject-above"),
        ("--milter 0 --when-busy wait", 2, "--when-busy"),
        ("--spamd 0 --log xml", 2, "--log"),
        ("--milter 0 --subject-tag spämchen", 2, "--subject-tag 'spämchen': not printable ASCII"),
        ("--spamd 0 --report-teaches", 2, "--report-teaches: no client may teach; give --allow-t"),
        ("--spamd 0 --review box", 2, "--review box: shown on a page; give --web"),
        ("--web 0 --review none", 1, "--review none: no such mailbox; give a Maildir"),
        ("--web 0 --users u --review none", 1, no_users),
        ("--web 0 --move", 2, "--move: moves the mail that --review shows; give --review"),
        ("--web 0 --review . --move", 2, no_maildir),
        ("--web 0.0.0.0:0", 2, "other machines can reach it"),
    ]:
        assert complains(nbspam("serve", *options.split()), status, words)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = nbspam("serve", "-m", trained, "--spamd", port)
    assert complains(found, 1, f"--spamd 127.0.0.1:{port}: Address already in use")


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        ImportError("numpy: libx.so: failed to map segment from shared object"),
    ],
)
def test_a_machine_out_of_memory_is_told_in_one_line(nbspam, trained, monkeypatch, error):
    def run(_):
        raise error

    monkeypatch.setattr(supervisor.Supervisor, "run", run)
    found = nbspam("serve", "-m", trained, "--spamd", "0")
    assert complains(found, 1, "out of memory; allow more (ulimit -v), or give less mail at once")


@pytest.mark.parametrize("rows", ["sea\tship sail\nsky\tcloud wing\n", "ham\ttea\nspam\tpills\n"])
def test_a_model_of_other_classes_or_of_texts_is_refused(nbspam, model, tmp_path, rows):
    (tmp_path / "t.tsv").write_text(rows * 3)
    assert nbspam("train", tmp_path / "t.tsv")[0] == 0
    assert complains(nbspam("serve", "--spamd", "0"), 2, "serve a model of mail, of ham and spam")


def test_a_damaged_secret_stops_the_page_only(nbspam, trained, monkeypatch):
    trained.with_name(f"{trained.name}.secret").write_text("no secret\n")
    trained.with_name(f"{trained.name}.secret").chmod(0o600)
    shown = []
    monkeypatch.setattr(
        supervisor.Supervisor, "run", lambda self: shown.extend(self.service.sockets)
    )
    why = f"{trained}.secret: not a secret; remove it, and a new one is made"
    assert complains(nbspam("serve", "-m", trained, "--web", "0"), 1, why)
    status, _, err = nbspam("serve", "-m", trained, "--web", "0", "--spamd", "0")
    assert (status, shown) == (0, ["spamd"])
    assert f"{why}; until then there is no page" in err


def test_a_protocol_whose_library_is_missing_says_what_to_install(nbspam, trained, monkeypatch):
    for name, extra in (("http", "serve"), ("web", "web")):
        monkeypatch.setitem(worker.PROTOCOLS, name, ("nbspam_missing", "X"))
        found = nbspam("serve", "-m", trained, f"--{name}", "0")

        assert complains(found, 2, f"--{name}: needs nbspam_missing", f"'nbspam[{extra}]'")


@pytest.mark.parametrize(("answer", "status"), [(b"y\n", 0), (b"n\n", 2), (b"\n", 2)])
def test_a_model_that_is_not_there_is_asked_about_at_a_terminal(
    nbspam, tmp_path, monkeypatch, answer, status
):
    monkeypatch.setattr(supervisor.Supervisor, "run", lambda _: None)
    monkeypatch.setattr("nbspam.cli.serving.at_terminal", lambda: True)
    found, _, err = nbspam("serve", "-m", tmp_path / "typo", "--web", "0", stdin=answer)

    assert found == status
    assert err.startswith(f"{tmp_path}/typo: no such model; begin a new one? [y/N]: ")
    assert ("/?token=" in err) == (status == 0)
    assert not (tmp_path / "typo").exists()


def test_without_a_terminal_a_model_that_is_not_there_is_told(nbspam, tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor.Supervisor, "run", lambda _: None)
    status, _, err = nbspam("serve", "-m", tmp_path / "typo", "--web", "0")
    address, told = err.splitlines()

    assert (status, "/?token=" in address) == (0, True)
    assert told == f"nbspam: {tmp_path}/typo: there is no model yet; the first lesson begins one"


def test_who_lets_strangers_teach_is_warned(nbspam, trained, monkeypatch):
    monkeypatch.setattr(supervisor.Supervisor, "run", lambda _: None)
    status, _, err = nbspam("serve", "-m", trained, "--spamd", "0.0.0.0:0", "--allow-tell")

    assert status == 0
    told = r"nbspam: --spamd 0\.0\.0\.0:\d+: whoever reaches it from other machines can teach the "
    assert re.match(told, err)
    assert nbspam("serve", "-m", trained, "--spamd", "0.0.0.0:0")[2] == ""
    assert nbspam("serve", "-m", trained, "--spamd", "0", "--allow-tell")[2] == ""
