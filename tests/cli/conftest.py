"""Shared by tests of the command line: files that its commands can be run on."""

import pytest

from support import HAM, LIHANG, MELONS, ROOT, SPAM, write_files, write_misfiled


@pytest.fixture
def places(nbspam, trained, folder, tmp_path):
    """Return what words in capitals stand for: FOLDER has the mail that MODEL has learned."""
    nbspam("table", "train", LIHANG, "--target", "Y", "-m", tmp_path / "table")
    nbspam("shard", "1/1", folder, "-o", tmp_path / "part")
    (tmp_path / "box" / "cur").mkdir(parents=True)
    files = {
        "box/new/1": HAM,
        "new.eml": SPAM + b"new\n",
        "text": nbspam("export")[1].encode(),
        "rows.csv": b"X1,X2\n2,S\n",
        "row.csv": b"X1,X2,Y\n1,S,-1\n",
        "t.csv": b"label,text\n" + b"a,x y z\nb,q r s\n" * 4,
    }
    write_files(tmp_path, files)
    return {
        "FOLDER": folder,
        "CORPUS": ROOT / "corpora" / "mail",
        "ONE": folder / "ham" / "1.eml",
        "MODEL": trained,
        "OTHER": tmp_path / "other",
        "VECTORS": tmp_path / "vectors.npz",
        "PART": tmp_path / "part",
        "TABLE": tmp_path / "table",
        "LIHANG": LIHANG,
        "MELONS": MELONS,
        "ROWS": tmp_path / "rows.csv",
        "ROW": tmp_path / "row.csv",
        "TEXTS": tmp_path / "t.csv",
        "TEXT": tmp_path / "text",
        "BOX": tmp_path / "box",
        "NEW": tmp_path / "new.eml",
        "MISFILED": write_misfiled(tmp_path / "misfiled"),
        "NETWORK": ROOT / "corpora" / "melon-network.json",
    }
