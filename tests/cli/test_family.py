"""Every console block of the guide to the models is run and compared with its output.

`pytest tests/cli/test_family.py --rewrite-golden` writes the outputs anew; look at the diff.
"""

import glob
import re
import shlex
import subprocess

from support import ROOT

GUIDE = ROOT / "docs" / "family.md"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)


def run(line, nbspam):
    """Return the output of a command line; a shell runs the part before `| nbspam`."""
    before, pipe, command = line.rpartition("| nbspam ")
    stdin = b""
    if pipe:
        stdin = subprocess.run(before, shell=True, capture_output=True, check=True).stdout
    else:
        command = line.removeprefix("nbspam ")
    words = []
    for word in shlex.split(command):
        words += sorted(glob.glob(word)) if "*" in word else [word]
    status, out, err = nbspam(*words, stdin=stdin)
    assert status == 0, (line, err)
    return "".join(f"{each.rstrip()}\n" for each in out.splitlines())


def test_every_console_block_of_the_guide_prints_what_it_shows(
    nbspam, tmp_path, monkeypatch, request
):
    (tmp_path / "corpora").symlink_to(ROOT / "corpora")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NBSPAM_MODEL", "MODEL")
    text = GUIDE.read_text("utf-8")

    def again(block):
        lines = [line for line in block[1].splitlines() if line.startswith("$ ")]
        shown = [line + "\n" + run(line[2:], nbspam) for line in lines]
        return "```console\n" + "".join(shown) + "```"

    found = BLOCK.sub(again, text)
    if request.config.getoption("--rewrite-golden"):
        GUIDE.write_text(found, "utf-8")
    for there, now in zip(BLOCK.findall(text), BLOCK.findall(found), strict=True):
        assert now.splitlines() == there.splitlines()


def test_the_guide_names_a_command_for_every_system():
    table = GUIDE.read_text("utf-8").split("## Every system")[1]
    rows = re.findall(r"^\| ([^|]+) \| .*`[^`\n]+`.* \|$", table, re.MULTILINE)

    assert len(rows) == 14
    assert rows[7:11] == ["SPODE", "TAN", "AODE", "A2DE"]
