"""The page about several servers, run word for word."""

import os

import pytest

from shared_logs import message
from support import ROOT, blocks_of, install_program
from test_documents import assert_prints

PAGE = (ROOT / "docs" / "howto" / "sharing.md").read_text("utf-8")


@pytest.mark.parametrize("server", ["redis"], indirect=True)
def test_the_page_prints_what_it_shows(server, tmp_path, monkeypatch):
    for number, name in enumerate(("ham", "spam")):
        (tmp_path / f"{name}.eml").write_bytes(message(number))
    program = install_program(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{program}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    names = {"127.0.0.1:6379": f"127.0.0.1:{server.port}"}
    assert_prints(blocks_of(PAGE, "text"), tmp_path, names)
