"""A model that is replaced stays as MODEL~, if anything of it would be lost."""

import json
import os
from dataclasses import replace

import pytest

from nbspam.decision import Cutoffs
from nbspam.settings import PRESETS
from nbspam.store.journal import journal_path
from nbspam.store.open import load_tokens as load
from nbspam.store.open import save_classifier
from nbspam.store.upkeep import BAD, findings
from support import HAM, ROOT, SPAM, complains, write_mails

MELONS = (ROOT / "corpora" / "watermelon-3.0.csv", "--target", "好瓜")


def kept(model):
    return model.with_name(model.name + "~")


@pytest.fixture
def other(tmp_path):
    """A folder of other mail than the model's."""
    folder = write_mails(tmp_path / "other", 24)
    for path in folder.rglob("*.eml"):
        path.write_bytes(path.read_bytes() + b"other\n")
    return folder


def test_a_model_of_other_mail_is_kept_whole_with_its_journal(nbspam, trained, other):
    assert nbspam("train", other)[0] == 0
    assert nbspam("update", "--spam", "-", stdin=SPAM + b"later\n")[0] == 0
    assert os.path.exists(journal_path(str(trained)))
    before = load(str(trained)).table
    status, out, err = nbspam("train", "--spam", "-", "--ham", other / "ham", stdin=SPAM)

    assert (status, err) == (0, f"nbspam: the model that was there is kept as {kept(trained)}\n")
    assert out.startswith("read 25 messages")
    assert not os.path.exists(journal_path(str(trained)))
    old = load(str(kept(trained))).table
    assert old.class_count.tolist() == before.class_count.tolist() == [24, 25]
    assert not [each for each in findings(str(kept(trained))) if each.state == BAD]
    learns = ("update", "-m", kept(trained), "--ham", "-")
    assert nbspam(*learns, stdin=HAM + b"x")[1] == "learned 1\n"
    # The one that is kept next takes the place of both.
    trained.chmod(0o640)
    nbspam("train", other)
    assert load(str(kept(trained))).table.n_docs == 25
    assert not os.path.exists(journal_path(str(kept(trained))))
    assert kept(trained).stat().st_mode & 0o777 == 0o640


def test_only_a_model_of_which_training_again_would_lose_something_is_kept(
    nbspam, trained, folder
):
    assert nbspam("train", folder)[2] == ""
    (folder / "spam" / "9.eml").write_bytes(SPAM + b"9\n")
    assert nbspam("train", folder)[2] == ""
    nbspam("unlearn", folder / "spam" / "9.eml")
    nbspam("train", folder)
    assert not kept(trained).exists()

    (folder / "spam" / "9.eml").unlink()
    assert f"kept as {kept(trained)}" in nbspam("train", folder)[2]
    assert load(str(kept(trained))).table.n_docs == 5
    nbspam("relabel", "--to", "ham", folder / "spam" / "1.eml")
    nbspam("train", folder)
    assert load(str(kept(trained))).table.class_count.tolist() == [3, 1]


@pytest.mark.parametrize(
    "change",
    [
        {"cutoffs": Cutoffs(0.9, 0.1)},
        {"settings": replace(PRESETS["mail"], min_df=2)},
        {"memory": None},
        {},
    ],
    ids=["tuned cutoffs", "other settings", "no ledger", "counts without messages"],
)
def test_choices_and_counts_that_training_again_would_lose_are_kept(
    nbspam, trained, folder, change
):
    if change:
        save_classifier(str(trained), replace(load(str(trained)), **change))
    else:
        counts = b".MSG_COUNT 4 5 20260101\npills 3 0 20260101\n"
        assert nbspam("import", "-", stdin=counts)[0] == 0
        kept(trained).unlink()
    before = load(str(trained)).table.n_docs
    nbspam("train", folder)

    assert load(str(kept(trained))).table.n_docs == before


def test_a_damaged_model_is_kept_and_what_is_no_model_is_not_replaced(nbspam, trained, folder):
    damaged = trained.read_bytes()[:-1]
    trained.write_bytes(damaged)
    nbspam("train", folder)
    assert kept(trained).read_bytes() == damaged
    trained.write_text("notes")
    assert complains(nbspam("train", folder), 1, "the file there is not a model")
    assert kept(trained).read_bytes() == damaged


def test_json_says_where_it_is(nbspam, trained, folder, other, tmp_path):
    def said(*command):
        return json.loads(nbspam(*command, "--json")[1])["kept"]

    assert said("train", folder) is None
    assert said("train", other) == str(kept(trained))
    assert said("train", folder, "--unlabelled", other) == str(kept(trained))
    nbspam("train", folder)
    (tmp_path / "export").write_text(nbspam("export")[1])
    nbspam("train", other)
    assert said("import", tmp_path / "export") == str(kept(trained))
    nbspam("train", other, "-m", tmp_path / "b")
    assert said("merge", trained, tmp_path / "b", "-o", trained) is None
    assert said("merge", trained, tmp_path / "b", "-o", tmp_path / "b") is None


def test_a_table_replaces_the_model_of_a_mail_filter_only_by_name(nbspam, trained, folder):
    before = trained.read_bytes()

    assert complains(
        nbspam("table", "train", *MELONS), 1, str(trained), "of a mail filter", "-m FILE"
    )
    assert trained.read_bytes() == before
    assert nbspam("table", "train", *MELONS, "-m", trained)[0] == 0
    assert kept(trained).read_bytes() == before
    # The reverse harms nobody, and is said; nor does a model of other classes matter.
    assert "kept as" in nbspam("train", folder)[2]
    assert trained.read_bytes() == before
    (folder / "spam").rename(folder / "work")
    nbspam("train", folder)
    assert "kept as" in nbspam("table", "train", *MELONS)[2]
