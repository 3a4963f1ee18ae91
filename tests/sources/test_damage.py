"""What cannot be read is skipped and counted, or refused by its line, and never ends a run."""

import csv
import gzip
import io
import os
from contextlib import nullcontext
from itertools import chain, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.errors import InputError
from nbspam.sources.items import read_items
from nbspam.sources.mailboxes import walk
from nbspam.sources.rows import lines_of, split_rows
from support import FROM, complains, write_files


def read_or_error(item):
    try:
        return item.read()
    except InputError as error:
        return str(error).encode()


@pytest.fixture
def box(tmp_path):
    """A folder with a message and two in a mailbox."""
    message = b"Subject: x\n\none\n"
    mailbox = (FROM + message + b"\n") * 2
    return write_files(tmp_path / "box", {"1.eml": message, "Other": mailbox})


@pytest.mark.parametrize(
    ("name", "said"),
    [("Inbox", "cannot be read"), ("Inbox.mbox.gz", "damaged (Compressed file ended")],
)
def test_an_unreadable_or_damaged_mailbox_does_not_stop_its_folder(box, name, said):
    if name == "Inbox":
        (box / name).symlink_to("/proc/self/mem")  # reading it is an error
    else:
        (box / name).write_bytes(gzip.compress((box / "Other").read_bytes())[:-9])
    found = [read_or_error(item) for item in read_items([str(box)])]

    assert found.count(b"Subject: x\n\none\n") == len(found) - 1 >= 3
    assert any(data.startswith(f"{box / name}: {said}".encode()) for data in found)


def test_a_folder_that_cannot_be_read_does_not_stop_the_others(box, monkeypatch):
    (box / "barred").mkdir()
    scan = os.scandir

    def scandir(path):
        if str(path).startswith(f"{box / 'barred'}"):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = list(walk(str(box), "x", None))
    assert (f"{box / 'barred'}", "x", "eml") in found
    assert len(found) == 3
    with pytest.raises(PermissionError):
        list(walk(str(box / "barred"), "x", None))


@pytest.mark.parametrize("ending", ["", ".eml"])
def test_a_link_that_leads_nowhere_is_skipped_and_counted(box, ending, nbspam):
    (box / f"dead{ending}").symlink_to("nowhere")
    (box / f"loop{ending}").symlink_to(f"loop{ending}")
    spam, model = box.parent / "spam.eml", box.parent / "model"
    spam.write_bytes(b"Subject: win\n\ncasino\n")
    status, output, errors = nbspam("train", "--ham", box, "--spam", spam, "-m", model)
    assert (status, "skipped 2" in output) == (0, True)
    assert f"skipped {box}/dead{ending}: leads to a file that is not there" in errors
    assert f"skipped {box}/loop{ending}: cannot be read (Too many levels" in errors
    assert nbspam("predict", box, "-m", model)[1] == "ham\n" * 3  # no lines for the links


def test_a_link_that_there_are_no_rights_to_follow_is_an_unreadable_message(box, monkeypatch):
    class Barred:
        name = "barred.eml"

        def stat(self):
            raise PermissionError(13, "Permission denied")

        is_dir = is_file = stat

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", lambda path: nullcontext([Barred()]))
        names = [name for name, *_ in walk(str(box), "x", None)]
    assert names == [f"{box}/barred.eml"]


cells = st.text(st.characters(codec="ascii", exclude_characters='\r\0"'), max_size=8)


@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=6), st.data())
def test_any_open_quote_is_found_in_any_table(table, data):
    at = data.draw(st.integers(0, len(table) - 1))
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows(table[:at])
    line = out.getvalue().count("\n") + 1
    first, last = table[at]
    text = out.getvalue() + f'"{first}","{last}\n' + "x,y\n" * (len(table) - at)
    lines = lines_of(io.BytesIO(text.encode()))
    where = line + first.count(chr(10))
    with pytest.raises(ValueError, match=rf"^line {where}: not CSV, a quote that opens here"):
        list(split_rows(lines, "csv")[0])


@pytest.mark.parametrize("line", ["xxxxxxxxx\n", "x" * 9999 + "\n"])
def test_an_open_quote_in_an_endless_table_needs_no_more_memory_than_a_cell(line):
    n_taken = 0

    def lines():
        nonlocal n_taken
        for each in chain(["label,text\n", "ham,x\n", 'ham,"'], repeat(line)):
            n_taken += 1
            yield each

    csv.field_size_limit(131_072)  # the default; the limit is only ever raised
    with pytest.raises(ValueError, match="line 3: not CSV, a quote that opens here"):
        list(split_rows(lines(), "csv", 200_000)[0])
    assert n_taken * len(line) < 600_000


def test_a_mailbox_that_breaks_off_in_the_middle_ends_the_reading(nbspam, trained, tmp_path):
    messages = (FROM + os.urandom(99_000).hex().encode() + b"\n\n" for _ in range(9))
    data = gzip.compress(b"".join(messages))
    write_files(tmp_path / "box" / "spam", {"1.mbox.gz": data[: len(data) // 2]})
    before = trained.read_bytes()

    assert complains(nbspam("update", tmp_path / "box"), 1, "1.mbox.gz: damaged (")
    assert trained.read_bytes() == before


@pytest.mark.parametrize(("n", "end"), [(5, "not a gzipped file"), (7, "skipped 2 more")])
def test_five_messages_that_cannot_be_read_are_named(nbspam, folder, model, n, end):
    for k in range(n):
        (folder / "ham" / f"bad{k}.eml.gz").write_bytes(b"no gzip")
    lines = nbspam("train", folder)[2].splitlines()
    assert [f"bad{k}.eml.gz" in line for k, line in enumerate(lines)][:5] == [True] * 5
    assert len(lines) == min(n, 6)
    assert end.lower() in lines[-1].lower()
