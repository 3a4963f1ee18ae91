"""Documents are kept true by running what they show."""

import re
import shlex

import pytest

from nbspam.cli.main import COMMANDS
from support import ROOT

README = (ROOT / "README.md").read_text()


@pytest.mark.slow
def test_every_command_of_the_readme_runs(nbspam, mails, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NBSPAM_MODEL", str(tmp_path / "m.nbspam"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("mails", "mails/train", "mails/test"):
        (tmp_path / name).mkdir()
    for part in ("mails/train", "mails/test"):
        for label in ("ham", "spam"):
            (tmp_path / part / label).symlink_to(mails / label)
    for label in ("ham", "spam"):
        (tmp_path / "mails" / label).symlink_to(mails / label)
    (tmp_path / "mails" / "train").rename(tmp_path / "train")
    (tmp_path / "mails" / "test").rename(tmp_path / "test")
    name = "watermelon-3.0.csv"
    (tmp_path / name).symlink_to(ROOT / "corpora" / name)
    for name in ("cur", "new"):
        (tmp_path / "Maildir" / name).mkdir(parents=True)
    message = next((mails / "spam").iterdir()).read_bytes()
    (tmp_path / "message.eml").write_bytes(message)
    (tmp_path / "Maildir" / "new" / "1").write_bytes(message)

    lines = re.findall(r"^\$ (.*nbspam .*?)(?:  +#.*)?$", README, re.MULTILINE)
    assert len(lines) > 5
    for line in lines:
        words = shlex.split(line.split("| ")[-1].replace("~", str(tmp_path)))
        arguments = [word.replace("mails/t", "t") for word in words[1:]]
        status, _, err = nbspam(*arguments, stdin=message)
        assert status == 0, (line, err)


def test_every_command_is_in_the_readme():
    for name in COMMANDS:
        assert f"nbspam {name}" in README


def test_the_python_block_of_the_readme_runs(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    (block,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(block, "README.md", "exec"), {})

    assert "spam" in capsys.readouterr().out


def test_the_corpora_are_counted_truly():
    counted = (ROOT / "corpora" / "README.md").read_text()
    for label in ("ham", "spam"):
        n = len(list((ROOT / "corpora" / "mail" / label).glob("*.eml")))
        assert re.search(rf"\b{n}\b", counted), (label, n)
