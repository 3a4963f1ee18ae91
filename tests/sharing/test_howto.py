"""The page about several servers, run word for word."""

import os
import subprocess

import pytest

from shared_logs import message
from support import ROOT, blocks_of, install_program
from test_documents import COMMAND, fits

PAGE = (ROOT / "docs" / "howto" / "sharing.md").read_text("utf-8")


@pytest.mark.parametrize("server", ["redis"], indirect=True)
def test_the_page_prints_what_it_shows(server, tmp_path):
    for number, name in enumerate(("ham", "spam")):
        (tmp_path / f"{name}.eml").write_bytes(message(number))
    path = f"{install_program(tmp_path / 'bin')}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    sessions = blocks_of(PAGE, "text")
    commands = [found for session in sessions for found in COMMAND.findall(session)]
    for line, shown in commands:
        line, shown = (
            text.replace("127.0.0.1:6379", f"127.0.0.1:{server.port}") for text in (line, shown)
        )
        done = subprocess.run(
            line,
            shell=True,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert fits(shown, done.stdout), (line, done.stdout)

    assert len(commands) == 6
