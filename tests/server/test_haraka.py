"""A real Haraka with its plugin spamassassin, which asks spamd's protocol for HEADERS.

HARAKA names the folder where `npm install Haraka haraka-plugin-spamassassin` was run.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from serving import PATIENCE, free_port, is_refused, serving, swaks, until
from support import HAM, SPAM

PROGRAM = Path(os.environ.get("HARAKA", "/nowhere")) / "node_modules" / ".bin" / "haraka"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (PROGRAM.exists() and shutil.which("swaks")),
        reason="needs swaks and a Haraka: HARAKA names the folder where npm installed it",
    ),
]


@pytest.fixture
def haraka(own_model, tmp_path):
    """Start a Haraka that asks a server; return its port, and the server."""
    place = tmp_path / "haraka"
    subprocess.run([PROGRAM, "-i", place], check=True, capture_output=True)
    port = free_port()
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
        command = [PROGRAM, "-c", place]
        with open(tmp_path / "log", "wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            until(lambda: not is_refused(port))
            yield port, served
        finally:
            process.terminate()
            process.wait(PATIENCE)


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
