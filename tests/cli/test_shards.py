"""`shard` and `merge` of its parts: what they print, and what they refuse."""

import json
import os
import stat

import pytest

from support import HAM, SPAM, complains, write_mails

pytestmark = pytest.mark.usefixtures("quick_disk")


@pytest.fixture
def parts(nbspam, tmp_path):
    """Return the paths of both parts of a folder of four messages, and the folder."""
    mails = write_mails(tmp_path / "corpus")
    paths = [tmp_path / f"part.{number}" for number in (1, 2)]
    for number, path in enumerate(paths, 1):
        assert nbspam("shard", f"{number}/2", mails, "-o", path)[0] == 0
    return *paths, mails


def test_parts_are_counted_and_added(nbspam, parts, tmp_path):
    first, _, mails = parts
    status, out, err = nbspam("shard", "1/2", mails, "-o", first)
    assert (status, err) == (0, "")
    assert out.startswith("read 2 of 4 messages (1 ham, 1 spam)\ncounted ")
    assert out.endswith(f" tokens; part 1/2 in {first}\n")
    assert os.name != "posix" or stat.S_IMODE(first.stat().st_mode) & 0o077 == 0

    whole, once = tmp_path / "whole", tmp_path / "once"
    globbed = sorted(tmp_path.glob("part.*"))  # with locks, as a shell does it
    status, out, err = nbspam("merge", *globbed, "-o", whole)
    assert (status, err) == (0, "")
    assert out.startswith("added 2 parts: 4 messages (2 ham, 2 spam)\nlearned ")
    assert nbspam("train", mails, "-m", once)[0] == 0
    assert whole.read_bytes() == once.read_bytes()

    # A part that replaces a model keeps it.
    _, _, err = nbspam("shard", "1/2", mails, "-o", once)
    assert err == f"nbspam: the model that was there is kept as {once}~\n"
    assert nbspam("classify", "-m", f"{once}~", stdin=SPAM)[0] == 0


def test_json_says_the_same(nbspam, parts, tmp_path):
    first, second, mails = parts
    (mails / "ham" / "bad.eml.gz").write_bytes(b"not gzip")
    status, out, _ = nbspam("shard", "3/3", mails, "-o", tmp_path / "part", "--json")
    told = json.loads(out)
    assert (status, told["shard"], told["items"]) == (0, [3, 3], 5)
    assert [each["name"] for each in told["skipped"]] == [str(mails / "ham" / "bad.eml.gz")]

    told = json.loads(nbspam("merge", first, second, "-o", tmp_path / "m", "--json")[1])
    assert (told["parts"], told["repeated"], told["read"]) == (2, 0, {"ham": 2, "spam": 2})


def test_messages_that_come_again_are_counted_once_and_reported(nbspam, tmp_path):
    mbox = tmp_path / "spam.mbox"
    mbox.write_bytes(b"From x\n" + SPAM + b"\nFrom x\n" + SPAM + b"\n")
    (tmp_path / "ham.eml").write_bytes(HAM)
    sources = ("--spam", mbox, "--ham", tmp_path / "ham.eml")
    for number in "123":
        nbspam("shard", f"{number}/3", *sources, "-o", tmp_path / f"p{number}")
    out = nbspam("merge", *(tmp_path / f"p{number}" for number in "123"), "-o", tmp_path / "m")[1]

    assert out.startswith("added 3 parts: 2 messages (1 ham, 1 spam), 1 more than once\n")


def test_the_day_is_that_of_the_merge_or_the_one_that_is_given(nbspam, parts, tmp_path):
    first, second, _ = parts
    nbspam("merge", first, second, "-o", tmp_path / "m", "--day", "2024-02-29")
    lines = nbspam("export", "-m", tmp_path / "m")[1].splitlines()
    days = {line["day"] for line in map(json.loads, lines) if "message" in line}

    assert days == {"2024-02-29"}
    twice = ("merge", tmp_path / "m", tmp_path / "m", "-o", tmp_path / "n")
    assert complains(nbspam(*twice, "--day", "2024-02-29"), 2, "--day: for parts of a training")
    for wrong in ("tomorrow", "1969-12-31", "2999-01-01"):
        assert complains(nbspam(*twice, "--day", wrong), 2, "not a day from 1970-01-01 on")


def test_a_part_is_not_a_model_yet(nbspam, parts):
    said = f"{parts[0]}: a part of a training, and not a model yet; add it"
    for command in ("classify -", "info", "update --spam -", "export", "explain -"):
        result = nbspam(*command.split(), "-m", parts[0], stdin=SPAM)
        assert complains(result, 1, said)
