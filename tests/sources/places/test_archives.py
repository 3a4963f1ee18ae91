"""Archives hold the messages that a folder would hold, and nothing of them reaches the disk."""

import gzip
import io
import os
import tarfile
import zipfile

import pytest

from nbspam.errors import InputError
from nbspam.sources import archives, files
from nbspam.sources.items import SourceOptions, read_items
from support import HAM, SPAM, complains

FROM = b"From someone@example.org Thu Aug 22 12:36:23 2002\n"
MBOX = FROM + HAM + b"\n" + FROM + SPAM + b"\n"
KINDS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")
LAYOUTS = {
    "classes": ("ham/1.eml", "ham/2.eml", "spam/1.eml"),
    "classes beside files": ("readme", "ham/1", "spam/2"),
    "three classes": ("sea/1", "sky/1", "sky/2", "wood/x"),
    "parts": ("train/ham/1", "train/spam/1", "test/ham/2", "test/spam/2"),
    "halves": ("a-train/sea/1", "a-train/sky/1", "a-test/sea/1", "a-test/sky/2"),
    "no classes": ("1.eml", "2.eml", "more/3.eml"),
    "Maildir": ("cur/1:2,S", "new/2", "tmp/3", ".Junk/cur/4"),
    "class of Maildir": ("ham/cur/1", "ham/new/2", "spam/new/3"),
    "MH": (".mh_sequences", "1", "2", "context", "sub/3"),
    "hidden": ("ham/.x", "ham/1~", "ham/#1#", "ham/1", "spam/1", ".git/1"),
    "deep": ("spam/a/b/c/1", "ham/a/1", "ham/a/2"),
    "mailboxes": ("ham/old.mbox", "spam/Inbox", "spam/new.mbox.gz"),
    "compressed": ("ham/1.eml.gz", "spam/2.eml.gz"),
}


def content(name):
    data = MBOX if "box" in name else b"Subject: %s\n\nx\n" % name.encode()
    return gzip.compress(data) if name.endswith(".gz") else data


def pack(path, members):
    """Write an archive of names and their contents, with the library's own writers."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        return path
    with tarfile.open(
        path, f"w:{'gz' if path.suffix == '.tgz' else path.suffix[1:]}".replace(":tar", "")
    ) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def unpack(folder, members):
    for name, data in members.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def found(path, **options):
    items = read_items([str(path)], options=SourceOptions(**options))
    return {item.name[len(str(path)) + 1 :]: (item.label, item.read()) for item in items}


@pytest.mark.parametrize("names", LAYOUTS.values(), ids=LAYOUTS)
def test_an_archive_is_read_as_the_folder_that_is_packed_in_it(names, tmp_path):
    members = {name: content(name) for name in names}
    expected = found(unpack(tmp_path / "folder", members))
    assert len(expected) > 1
    for kind in (".tar", ".zip"):
        archive = pack(tmp_path / f"mail{kind}", members)

        assert found(archive) == expected
        assert {item.label for item in read_items([str(archive)], label="x")} == {"x"}
    assert set(os.listdir(tmp_path)) == {"folder", "mail.tar", "mail.zip"}


def test_a_folder_that_only_wraps_the_others_states_no_class(tmp_path):
    wrapped = pack(tmp_path / "a.tar", {"news/sea/1": b"a\n", "news/sky/1": b"b\n"})
    alone = pack(tmp_path / "b.tar", {"spam/2001/1": b"a\n", "spam/2002/1": b"b\n"})
    plain = pack(tmp_path / "c.tar", {"junk/1": b"a\n", "junk/2": b"b\n"})

    assert {name: label for name, (label, _) in found(wrapped).items()} == {
        "news/sea/1": "sea",
        "news/sky/1": "sky",
    }
    assert {label for label, _ in found(alone).values()} == {"spam"}
    assert {label for label, _ in found(plain).values()} == {"junk"}


def test_what_macos_adds_to_an_archive_is_no_class(tmp_path):
    names = ("ham/1", "spam/1", "__MACOSX/ham/._1", "__MACOSX/x/1")
    archive = pack(tmp_path / "mail.zip", {name: content(name) for name in names})

    assert found(archive).keys() == {"ham/1", "spam/1"}


def test_archives_in_a_folder_are_read_with_its_class(tmp_path):
    members = {"1.eml": HAM, "2.eml": SPAM}
    (tmp_path / "ham").mkdir()
    (tmp_path / "spam").mkdir()
    pack(tmp_path / "ham" / "2001.tar", members)
    pack(tmp_path / "spam" / "2001.zip", members)

    labels = {name: label for name, (label, _) in found(tmp_path).items()}
    assert labels == {
        "ham/2001.tar#1.eml": "ham",
        "ham/2001.tar#2.eml": "ham",
        "spam/2001.zip#1.eml": "spam",
        "spam/2001.zip#2.eml": "spam",
    }


@pytest.mark.parametrize("kind", KINDS)
def test_an_archive_trains_the_model_that_its_folder_trains(kind, nbspam, folder, tmp_path):
    members = {
        str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.eml"))
    }
    archive = pack(tmp_path / f"mail{kind}", members)

    exports = []
    for source in (folder, archive):
        model = tmp_path / "m.nbspam"
        assert nbspam("train", source, "-m", model)[0] == 0
        exports.append(nbspam("export", "-m", model)[1])
    assert exports[0] == exports[1]


def test_names_lead_from_the_archive_to_the_member(nbspam, trained, tmp_path):
    archive = pack(tmp_path / "mail.tar", {"new/1.eml": SPAM, "new/old.mbox": MBOX})

    _, output, _ = nbspam("classify", archive)
    assert [line.split("\t")[2] for line in output.splitlines()] == [
        f"{archive}#new/1.eml",
        f"{archive}#new/old.mbox#1",
        f"{archive}#new/old.mbox#2",
    ]


def test_messages_of_an_archive_are_learned_moved_and_unlearned(nbspam, trained, tmp_path):
    mail = pack(tmp_path / "mail.zip", {"spam/9.eml": SPAM + b"nine\n"})

    assert "learned 1" in nbspam("update", mail)[1]
    assert "moved 1" in nbspam("relabel", "--to", "ham", mail)[1]
    assert "unlearned 1" in nbspam("unlearn", mail)[1].replace("un-learned", "unlearned")


def test_one_message_in_an_archive_was_filed_and_not_told(nbspam, trained, tmp_path):
    mail = pack(tmp_path / "mail.tar", {"9.eml": SPAM + b"nine\n"})
    nbspam("update", "--spam", mail)

    # What a person has told is confirmed, not learned again.
    assert "confirmed" not in nbspam("update", "--spam", mail)[1]


# ---- hostile archives ----


@pytest.mark.parametrize("kind", [".tar", ".zip"])
def test_names_that_lead_out_of_the_archive_lead_nowhere(kind, tmp_path):
    outside = ("../../spam/1", "/spam/2", "./spam/./3", "spam/../ham/4", "ham//5")
    archive = pack(tmp_path / f"mail{kind}", {name: content(name) for name in outside})

    assert found(archive).keys() == {"spam/1", "spam/2", "spam/3", "spam/ham/4", "ham/5"}
    assert not (tmp_path.parent / "spam").exists()


def test_links_are_skipped_and_said_devices_are_none_of_our_business(nbspam, trained, tmp_path):
    path = tmp_path / "mail.tar"
    with tarfile.open(path, "w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
            info = tarfile.TarInfo(f"{kind.decode()}.eml")
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        info = tarfile.TarInfo("z.eml")
        info.size = len(SPAM)
        archive.addfile(info, io.BytesIO(SPAM))

    _, output, errors = nbspam("classify", path)
    assert output.count("\n") == 1
    assert errors.count("a link; unpack it to read what it leads to") == 2
    assert errors.count("\n") == 2


def test_links_in_a_zip_are_skipped(tmp_path):
    link = zipfile.ZipInfo("1.eml")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "mail.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    (item,) = read_items([str(tmp_path / "mail.zip")])

    with pytest.raises(InputError, match=r"mail.zip#1.eml: a link; unpack it"):
        item.read()


@pytest.mark.parametrize("inner", ["a.tar", "a.zip", "a.tar.gz", "a.parquet"])
def test_an_archive_in_an_archive_is_skipped_and_said(inner, tmp_path):
    archive = pack(tmp_path / "mail.tar", {inner: b"x", "1.eml": HAM})
    items = list(read_items([str(archive)]))

    assert len(items) == 2
    with pytest.raises(InputError, match=f"{inner}: an archive in an archive; unpack the outer"):
        items[0].read()


@pytest.mark.parametrize("kind", KINDS)
def test_an_archive_that_expands_without_end_is_refused(
    kind, nbspam, trained, monkeypatch, tmp_path
):
    monkeypatch.setattr(files, "MOST_FREE", 1 << 19)
    members = {f"{n}.eml": bytes(1 << 19) for n in range(4)}
    archive = pack(tmp_path / f"bomb{kind}", members)
    if kind == ".tar":
        assert nbspam("classify", archive)[0] == 0  # it is as large as it looks
    else:
        assert complains(nbspam("classify", archive), 1, "more than 250 times its size")


def test_an_encrypted_zip_asks_for_its_password_to_be_used(nbspam, trained, tmp_path):
    archive = pack(tmp_path / "mail.zip", {"1.eml": HAM})
    data = bytearray(archive.read_bytes())
    data[data.index(b"PK\1\2") + 8] |= 1  # the flag in the central directory
    archive.write_bytes(data)

    said = f"{archive}: encrypted; unpack it with its password"
    assert complains(nbspam("classify", archive), 1, said)


@pytest.mark.parametrize(
    ("kind", "part"),
    [*((kind, 0.6) for kind in KINDS), (".tar", 0.0), (".zip", 0.3), (".tgz", 0.8)],
)
def test_of_a_cut_off_archive_nothing_is_learned(part, kind, nbspam, trained, tmp_path):
    members = {f"spam/{n}.eml": SPAM + os.urandom(2000) for n in range(20)}
    archive = pack(tmp_path / f"mail{kind}", members)
    archive.write_bytes(archive.read_bytes()[: int(part * archive.stat().st_size)])
    before = trained.read_bytes()

    for command in ("update", "train"):
        status, output, errors = nbspam(command, archive)
        assert (status, output, errors.count("\n")) == (1, "", 1)
        assert str(archive) in errors
        assert trained.read_bytes() == before
        assert not trained.with_name("m.nbspam-journal").exists()


def test_of_a_cut_off_archive_in_a_folder_nothing_is_learned_either(nbspam, trained, tmp_path):
    (tmp_path / "box" / "spam").mkdir(parents=True)
    archive = pack(tmp_path / "box" / "spam" / "mail.tar", {"1": SPAM, "2": SPAM + b"2\n"})
    archive.write_bytes(archive.read_bytes()[:2000])
    before = trained.read_bytes()

    said = f"{archive}: cut off, its end is missing; copy it again from its source"
    assert complains(nbspam("update", tmp_path / "box"), 1, said)
    assert trained.read_bytes() == before


def test_a_damaged_member_of_a_zip_ends_the_reading(nbspam, trained, tmp_path):
    archive = pack(tmp_path / "mail.zip", {"1.eml": SPAM})
    data = bytearray(archive.read_bytes())
    data[45] ^= 0xFF
    archive.write_bytes(data)

    assert complains(nbspam("update", "--spam", archive), 1, str(archive), "damaged (")


def test_a_damaged_member_that_is_compressed_ends_the_reading(nbspam, trained, tmp_path):
    data = gzip.compress(os.urandom(3000))[:-900]
    archive = pack(tmp_path / "mail.tar", {"1.eml.gz": data})

    said = f"{archive}#1.eml.gz: damaged ("
    assert complains(nbspam("update", "--spam", archive), 1, said)


def test_too_many_or_too_deep_folders_are_refused(monkeypatch, tmp_path):
    deep = pack(tmp_path / "deep.tar", {"a/" * 200 + "1": HAM})
    with pytest.raises(InputError, match="nested more than 100 deep, as mail is not; unpack it"):
        found(deep)
    monkeypatch.setattr(archives, "_MOST_FOLDERS", 50)
    wide = pack(tmp_path / "wide.tar", {f"{n}/1": HAM for n in range(60)})
    with pytest.raises(InputError, match="more than 50 folders, as mail has not; unpack it"):
        found(wide)


@pytest.mark.parametrize("name", ["a.tar", "a.zip", "a.parquet"])
def test_a_packed_file_is_no_table_of_columns(name, nbspam, model, tmp_path):
    (tmp_path / name).write_bytes(b"x")
    found = nbspam("table", "train", "--target", "x", tmp_path / name)
    assert complains(found, 1, f"{name}: mail or texts, not a table of columns; give CSV")


def test_an_archive_cannot_come_from_standard_input(nbspam, trained):
    found = nbspam("classify", "--format", "tar", "-", stdin=b"x")
    assert complains(found, 1, "-: --format tar is read twice; give a file")
