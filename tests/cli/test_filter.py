"""The filter as mail systems call it: a process between two pipes."""

import os
import subprocess
import sys

import pytest

from nbspam.mail.head import without_headers
from support import SPAM

FAILURES = [
    (["-m", "/nonexistent/m.nbspam"], 1),
    (["-m", "/"], 1),
    (["-m", sys.executable], 1),
    (["--no-such-option"], 2),
    (["--fp-cost", "dear"], 2),
    (["--subject-tag", "a\nb"], 2),
    (["--loss", "/nonexistent"], 2),
    (["message.eml"], 2),
]
MESSAGES = [b"", SPAM.replace(b"\n", b"\r\n"), bytes(range(256))]


def run(*arguments, stdin=b"", **options):
    command = [sys.executable, "-m", "nbspam", "filter", *map(str, arguments)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run(command, input=stdin, check=False, **streams)


@pytest.mark.parametrize("data", MESSAGES)
def test_a_message_comes_through_with_a_verdict(trained, data):
    done = run(stdin=data)

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"X-Nbspam: ")
    assert without_headers(done.stdout, ["X-Nbspam"]) == data


def test_on_any_failure_the_message_passes_unchanged(nbspam, trained):
    for arguments, status in FAILURES:
        text = SPAM.decode()

        found, out, err = nbspam("filter", *arguments, stdin=SPAM)
        assert (found, out) == (status, text)
        assert err
        assert nbspam("filter", *arguments, "--tempfail", stdin=SPAM)[:2] == (75, text)
    assert err == (
        "nbspam: message.eml: the message comes by standard input; write: nbspam filter <"
        " message.eml\n"
    )


def test_a_broken_installation_or_a_damaged_model_lets_mail_pass(trained):
    script = (
        "import sys\nsys.modules['numpy'] = None\n"
        "from nbspam.cli.main import exit_status\n"
        "sys.exit(exit_status(['filter', '--tempfail']))\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, input=SPAM, capture_output=True, check=False)

    assert (done.returncode, done.stdout) == (75, SPAM)
    assert b"numpy" in done.stderr
    assert done.stderr.count(b"\n") == 1

    data = bytearray(trained.read_bytes())
    data[len(data) // 2] ^= 1
    trained.write_bytes(data)

    done = run(stdin=SPAM)
    assert (done.returncode, done.stdout) == (1, SPAM)
    assert b"damaged" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are Linux's")
@pytest.mark.parametrize("megabytes", [130, 150])
def test_lack_of_memory_is_never_reported_as_success(trained, megabytes):
    import resource

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

    data = SPAM + b"word another \n" * 1_000_000
    done = run("--tempfail", stdin=data, preexec_fn=limit)

    # If a library inside numpy runs out of memory it ends the process, before any output.
    assert done.stdout.endswith(data) if done.returncode == 0 else done.stdout in (data, b"")


def test_a_reader_that_is_gone_and_a_full_disk_are_failures(trained):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as sink:
        done = run("--tempfail", stdin=SPAM, stdout=sink)
    assert done.returncode == 75
    assert done.stderr == b"nbspam: -: nobody reads standard output; the message was not written\n"

    if os.path.exists("/dev/full"):
        with open("/dev/full", "wb") as sink:
            done = run("--tempfail", stdin=SPAM, stdout=sink)
        assert done.returncode == 75
        assert b"No space left" in done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_closed_streams_are_a_failure_in_one_line(trained, closed):
    command = f"exec {sys.executable} -m nbspam filter {closed}"
    done = subprocess.run(["sh", "-c", command], input=SPAM, capture_output=True, check=False)

    assert done.returncode == 1
    assert done.stderr == (
        b"nbspam: -: standard input or output is closed; pipe a message through\n"
    )


def test_confident_verdicts_are_learned(nbspam, trained):
    message = SPAM + b"more\n"
    learn = ("filter", "--learn", "confident", "--spam-status", "--subject-tag", "[SPAM] ")

    out = nbspam(*learn, "--sure", "1", stdin=message)[1]
    assert "autolearn=no" in out
    assert nbspam("update", "--spam", "-", stdin=message)[1] == "learned 1\n"
    nbspam("unlearn", "-", stdin=message)

    out = nbspam.out(*learn, "--sure", ".6", stdin=message)
    assert "autolearn=spam" in out
    # The delivered message, with header and tag, counts as the same message.
    assert nbspam("update", "--spam", "-", stdin=out.encode())[1] == "confirmed 1\n"


def test_of_a_message_too_large_to_be_read_whole_nothing_is_learned(nbspam, trained, monkeypatch):
    monkeypatch.setattr("nbspam.mail.head.MAX_BYTES", 1000)
    message = SPAM + b"cheap pills " * 1000
    _, out, _ = nbspam(
        *("filter", "--learn", "confident", "--sure", ".6", "--spam-status"), stdin=message
    )
    assert out.endswith(message.decode())
    assert "autolearn=no" in out
    assert nbspam("unlearn", stdin=message)[1] == "not known 1\n"


def test_a_failure_to_learn_does_not_undo_the_delivery(nbspam, trained, monkeypatch):
    from nbspam.errors import ModelFileError
    from nbspam.store import model as living

    def refuse(*arguments, **options):
        raise ModelFileError("m: full")

    monkeypatch.setattr(living.StoredModel, "learn", refuse)
    status, out, err = nbspam("filter", "--learn", "confident", "--sure", ".6", stdin=SPAM)

    assert (status, err) == (0, "nbspam: the message is through, and was not learned: m: full\n")
    assert out.endswith(SPAM.decode())
