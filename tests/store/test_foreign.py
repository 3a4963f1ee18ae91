"""What other filters write of their counts is known, and refused with the reason."""

import os
import shutil
import subprocess

import pytest

from support import complains

BACKUP = b"v\t3\tdb_version # this must be the first line!!!\nv\t40\tnum_spam\n"
DUMP = b"0.000          0          3          0  non-token data: bayes db version\n"
EXPORT = b'0,3,8868,"$"\n0,1,8868,"$ fax"\n'
ADVICE = "train from the mail: nbspam train --spam PATH --ham PATH"
TEXTS = {
    "sa-learn --backup": (BACKUP, "a backup of sa-learn, which has hashes in place of words"),
    "sa-learn --dump": (DUMP, "a dump of sa-learn, which has hashes"),
    "spamprobe export": (EXPORT, "an export of spamprobe, which does not say in how many"),
    "spamprobe dump": (b"0.3000000       0       3  0x000022a4  $\n", "a dump of spamprobe"),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_an_import_says_why_it_cannot_be_and_what_to_do(nbspam, model, kind):
    text, reason = TEXTS[kind]

    assert complains(nbspam("import", "-", stdin=text), 1, f"-: {reason}", ADVICE)
    assert not model.exists()


@pytest.mark.parametrize(
    ("program", "learn", "write"),
    [
        pytest.param(
            *("sa-learn", ["--dbpath", "bayes", "--spam"], ["--dbpath", "bayes", "--backup"]),
            marks=pytest.mark.slow,
        ),
        ("spamprobe", ["-c", "-d", "probe", "spam"], ["-d", "probe", "export"]),
        ("spamprobe", ["-c", "-d", "probe", "spam"], ["-d", "probe", "dump"]),
    ],
)
def test_what_the_programs_write_themselves_is_known(
    nbspam, model, mails, tmp_path, program, learn, write
):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")

    def run(*command):
        how = {"cwd": tmp_path, "env": {**os.environ, "HOME": str(tmp_path)}}
        return subprocess.run([program, *command], capture_output=True, check=True, **how).stdout

    run(*learn, str(mails / "spam" / "001-pills-plain.eml"))
    result = nbspam("import", "-", stdin=run(*write))

    assert complains(result, 1, program, ADVICE)
