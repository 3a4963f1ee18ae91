"""File names of any bytes survive a round trip, and never reach a terminal raw."""

import json
import os
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbspam.errors import InputError
from nbspam.sources.files import file_names_in
from support import HAM, SPAM, complains, write_files

NAMES = [
    b"plain.eml", b"a b.eml", b"line\nbreak.eml", b"tab\there.eml", b"caf\xe9.eml", b"\xff\xfe",
    b"\x1b[31mred.eml", b"-dash.eml", b" lead.eml", b"quote'\".eml", "好.eml".encode(), b"back\\n",
]  # fmt: skip


def run(*arguments, stdin=b""):
    command = [sys.executable, "-m", "nbspam", *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def box(tmp_path):
    names = [os.fsdecode(name) for name in NAMES]
    files = {name: SPAM + b"number %d\n" % number for number, name in enumerate(names)}
    return os.fsencode(write_files(tmp_path / "box", files))


def test_names_of_any_bytes_go_from_classify_by_xargs_to_update(trained, box):
    status, out, err = run("classify", "-0", box)
    assert (status, err) == (0, b"")
    answers = [answer.split(b"\t", 2) for answer in out.split(b"\0")[:-1]]
    assert {name for _, _, name in answers} == {os.path.join(box, name) for name in NAMES}

    # As in the guide: the third field of those that are spam.
    pick = "grep -az ^spam | cut -z -f3-"
    names = subprocess.run(pick, shell=True, input=out, capture_output=True, check=True).stdout
    assert names.count(b"\0") == len(NAMES)
    update = ["xargs", "-0", sys.executable, "-m", "nbspam", "relabel", "--to", "spam"]
    done = subprocess.run(update, input=names, capture_output=True, check=True)
    assert done.stdout == b"learned 12 that the model did not know\n"
    assert run("relabel", "--to", "spam", "--files0-from", "-", stdin=names)[1] == (
        b"already known 12\n"
    )


def test_names_of_any_bytes_are_the_same_in_json_and_escaped_where_lines_end_in_newlines(
    trained, box
):
    _, out, _ = run("classify", "--json", box)
    names = {os.fsencode(json.loads(line)["name"]) for line in out.splitlines()}
    assert names == {os.path.join(box, name) for name in NAMES}

    _, out, err = run("classify", box)
    assert len(out.splitlines()) == len(NAMES)
    assert b"\x1b" not in out
    assert b"line\\nbreak.eml" in out
    status, _, err = run("classify", box + b"\x1b/no\nsuch")
    assert (status, err.count(b"\n")) == (1, 1)
    assert b"\x1b" not in err


def test_a_terminal_gets_no_raw_names(nbspam, trained, tmp_path, monkeypatch):
    (tmp_path / "a\x1b[31m\n.eml").write_bytes(HAM)
    path = str(tmp_path / "a\x1b[31m\n.eml")
    assert "\x1b[31m\n" in nbspam("classify", "-0", path)[1]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    out = nbspam("classify", "-0", path)[1]
    assert "\x1b" not in out


names = st.binary(min_size=1, max_size=20).filter(lambda name: b"\0" not in name and name != b"-")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(names, max_size=6), st.booleans())
def test_a_list_of_names_is_read_back(tmp_path, listed, ends):
    data = b"\0".join(listed) + b"\0" * (ends and bool(listed))
    (tmp_path / "list").write_bytes(data)
    if b"\n" in data and b"\0" not in data:
        return  # a list whose names end in newlines, as below
    assert [os.fsencode(name) for name in file_names_in(str(tmp_path / "list"))] == listed


def test_lists_of_names_are_read_after_those_of_the_command_line(nbspam, trained, folder):
    files = sorted(folder.rglob("*.eml"))
    listed = b"\0".join(os.fsencode(path) for path in files[1:]) + b"\0"
    both = nbspam("classify", files[0], "--files0-from", "-", stdin=listed)
    assert both == nbspam("classify", *files)
    (folder.parent / "list").write_bytes(listed)
    assert nbspam("classify", files[0], "--files0-from", folder.parent / "list") == both

    for command in (("classify",), ("predict",), ("explain",), ("classify", "--json")):
        assert nbspam(*command, "--files0-from", "-") == (0, "", "")
    assert nbspam("update", "--files0-from", "-") == (0, "nothing to do\n", "")
    assert complains(nbspam("train", "--files0-from", "-"), 1, "nothing to read")


def test_wrong_lists_are_refused(nbspam, trained, tmp_path, monkeypatch):
    for listed, words in [
        (b"a.eml\nb.eml\n", "--files0-from -: no NUL in it, its names end in newlines"),
        (b"a.eml\0\0b.eml\0", "--files0-from -: name 2 is empty; leave it out"),
        (b"gone.eml\0", "gone.eml: no such file or folder"),
        (b"-\0", "./-: no such file or folder"),
    ]:
        assert complains(nbspam("classify", "--files0-from", "-", stdin=listed), 1, words)

    for one, other in (("-0", "--json"), ("--csv", "-0"), ("--csv", "--exit-code")):
        status, _, err = nbspam("classify", one, other)
        assert status in (2, 3)
        assert "two forms of answer" in err

    assert complains(nbspam("classify", "--files0-from", tmp_path / "no"), 1, "no such file")
    monkeypatch.setattr("sys.stdin", None)

    with pytest.raises(InputError, match="--files0-from -: standard input is closed"):
        file_names_in("-")
