"""A real Exim that scans content: `spam = nobody`, by spamd's protocol and by rspamd's.

Debian's package exim4-daemon-heavy excludes Postfix.  It can be unpacked into a folder: EXIM names
the program then, and LD_LIBRARY_PATH the folders of its libraries.
"""

import os
import shlex
import shutil
import subprocess

import pytest

from serving import serving, swaks
from support import HAM, SPAM

EXIM = os.environ.get("EXIM") or shutil.which("exim4")
CONFIG = """
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
  warn  spam = nobody:true
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


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not scans(), reason="needs root, swaks and an Exim that scans content: EXIM names it"
    ),
]


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
        config.write_text(CONFIG.format(**names))
        said = swaks(tmp_path, SPAM, *to)
        assert "550 This message is spam (" in said, (said, served.errors.read_text())
        assert "250 OK id=" in swaks(tmp_path, HAM, *to)
        [head] = (tmp_path / "exim" / "input").glob("*-H")  # of the message in the queue
        text = head.read_bytes()
    assert header in text
