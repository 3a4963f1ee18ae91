"""Sources: none but a terminal, and beside class options what a shell's glob leaves to SOURCE."""

import json
import os
import pty
import subprocess
import sys

import pytest

from nbspam.store.open import load_tokens as load
from support import SPAM, complains, write_files

pytestmark = pytest.mark.usefixtures("quick_disk")


@pytest.fixture
def new(tmp_path):
    """Return files of a Maildir's cur, as a shell's glob lists them."""
    messages = {f"{n}:2,S": SPAM + b"new %d\n" % n for n in range(3)}
    return sorted(write_files(tmp_path / ".Spam" / "cur", messages).iterdir())


def test_files_of_a_glob_and_standard_input_have_the_class(nbspam, trained, new, folder):
    assert nbspam("update", *new)[:2] == (1, "skipped 3\n")
    assert nbspam("update", "--spam", *new) == (0, "learned 3\n", "")
    result = nbspam("update", "--spam", new[0], "--spam", *new[1:], "-", stdin=SPAM + b"x")
    assert result == (0, "learned 1, already known 3\n", "")
    assert load(str(trained)).table.class_count.tolist() == [2, 6]
    # Folders that state classes keep theirs.
    assert nbspam("update", "--ham", *new, folder)[1] == "already known 4, moved 3\n"


def test_a_table_keeps_its_classes_and_a_folder_without_any_is_skipped(
    nbspam, trained, folder, new, tmp_path
):
    (tmp_path / "t.csv").write_text("label,text\nham,lunch on friday\n")
    status, out, err = nbspam("update", "--spam", new[0], tmp_path / "t.csv", new[0].parent)
    assert (status, out) == (1, "learned 2, skipped 3\n")
    assert "no label" in err

    two = ("--ham", new[1], "--spam", new[2], tmp_path / "t.csv", folder)
    assert nbspam("update", *two)[:2] == (0, "learned 2, already known 5\n")


@pytest.mark.parametrize("command", ["update", "train", "eval"])
def test_beside_two_classes_a_file_without_one_is_wrong_usage(nbspam, trained, new, command):
    before = trained.read_bytes()
    result = nbspam(command, "--ham", new[0], "--spam", *new[1:])

    assert complains(result, 2, str(new[2]), "states no class", "spam, ham")
    assert trained.read_bytes() == before


def test_train_and_eval_read_globs(nbspam, model, folder, new, tmp_path):
    assert nbspam("train", "--spam", *new, folder)[1].startswith("read 7 messages (2 ham, 5 spam)")
    answer = json.loads(nbspam("eval", "--spam", *new, folder, "--cv", "2", "--json")[1])
    assert answer["n_docs"] == 7


def test_without_a_source_at_a_terminal_it_says_that_it_waits(trained):
    typing, terminal = pty.openpty()
    os.write(typing, b"Subject: cheap pills\n\nBuy now.\n\x04")
    command = [sys.executable, "-m", "nbspam", "classify"]
    done = subprocess.run(command, stdin=terminal, capture_output=True, text=True, check=True)

    assert done.stderr == "nbspam: no SOURCE: reading from this terminal; end with Ctrl-D\n"
    assert done.stdout.startswith("spam\t")
