"""Commands before there is a model, with a model of one class, and with classes misspelt."""

import json
import os
import subprocess
import sys

import pytest

from nbspam.sources import items
from nbspam.sources.items import Item, looked_through
from nbspam.store import model
from nbspam.store.open import load_tokens as load
from support import HAM, SPAM, complains, write_mails

pytestmark = pytest.mark.usefixtures("quick_disk")
ONLY_SPAM = (
    "nbspam: the model knows only spam, and is unsure of everything; teach it ham:"
    " nbspam update --ham PATH\n"
)


def test_update_makes_a_model_and_says_what_it_needs(nbspam, model):
    result = nbspam("update", "--spam", "-", stdin=SPAM)

    assert result == (0, "learned 1\n", f"nbspam: {model}: a new model\n{ONLY_SPAM}")
    assert nbspam("update", "--ham", "-", stdin=HAM) == (0, "learned 1\n", "")
    assert nbspam("update", "--spam", "-", stdin=SPAM) == (0, "already known 1\n", "")


def test_update_makes_the_model_that_train_makes(nbspam, model, folder, tmp_path):
    assert nbspam("update", folder)[1:] == ("learned 4\n", f"nbspam: {model}: a new model\n")
    nbspam("train", folder, "-m", tmp_path / "at once")

    assert model.read_bytes() == (tmp_path / "at once").read_bytes()


def test_update_makes_models_of_texts_too(nbspam, model, tmp_path):
    (tmp_path / "t.csv").write_text("label,text\nham,lunch on friday\nspam,cheap pills\n")
    nbspam("update", tmp_path / "t.csv")
    nbspam("train", tmp_path / "t.csv", "-m", tmp_path / "at once")

    assert model.read_bytes() == (tmp_path / "at once").read_bytes()


def test_json_has_the_notes(nbspam, model):
    answer = json.loads(nbspam("update", "--spam", "-", "--json", stdin=SPAM)[1])

    assert answer["notes"] == [f"{model}: a new model", ONLY_SPAM[8:-1]]


@pytest.mark.parametrize("options", [(), ("--fp-cost", "99"), ("--unsure-cost", "0.1")])
def test_every_command_is_unsure_with_one_class_and_says_why(nbspam, model, tmp_path, options):
    nbspam("update", "--spam", "-", stdin=SPAM)
    (tmp_path / "a.eml").write_bytes(SPAM)
    name = str(tmp_path / "a.eml")

    judged = nbspam("classify", *options, name)
    assert judged == (0, f"unsure\t0.500000\t{name}\n", ONLY_SPAM)
    assert nbspam("classify", "--exit-code", *options, name)[0] == 2
    values = json.loads(nbspam("classify", "--json", *options, name)[1])
    assert (values["label"], values["probability"]) == ("unsure", 0.5)
    assert values["posterior"] == {"ham": 0.5, "spam": 0.5}
    assert nbspam("predict", name)[:2] == (0, "unsure\n")
    assert nbspam("explain", *options, name)[1].startswith("unsure  probability 0.5000  score +0")
    status, out, err = nbspam("filter", "--bogosity", *options, stdin=SPAM)
    assert (status, err) == (0, ONLY_SPAM)
    assert out.startswith("X-Nbspam: unsure, probability=0.500000")
    assert "X-Bogosity: Unsure, tests=bogofilter, spamicity=0.500000" in out
    assert out.endswith(SPAM.decode())


def test_eval_finds_every_message_undecided_with_one_class(nbspam, model, folder, few_resamples):
    nbspam("update", "--spam", "-", stdin=SPAM)
    status, out, err = nbspam("eval", folder, "--json")
    answer = json.loads(out)

    assert (status, err) == (0, ONLY_SPAM)
    assert (answer["n_docs"], answer["undecided"], answer["errors"]) == (4, 4, 0)


def test_other_filters_headers_say_unsure_too(nbspam, model):
    nbspam("update", "--spam", "-", stdin=SPAM)
    out = nbspam("filter", "--spam-status", "--subject-tag", "[SPAM] ", stdin=SPAM)[1]

    assert "X-Spam-Status: No, score=4.9 required=5.0 tests=BAYES_50" in out
    assert "X-Spam-Flag" not in out
    assert "[SPAM]" not in out


def test_a_filter_that_learns_what_it_is_sure_of_learns_nothing(nbspam, model):
    nbspam("update", "--spam", "-", stdin=SPAM)
    nbspam("filter", "--learn", "confident", "--sure", "0.6", stdin=HAM)

    assert load(str(model)).table.n_docs == 1


def test_info_says_what_a_model_needs(nbspam, model):
    nbspam("update", "--spam", "-", stdin=SPAM)
    out = nbspam("info")[1]

    assert "trained\t1 messages (0 ham, 1 spam)" in out
    assert f"decision\t{ONLY_SPAM[8:]}" in out


def test_training_with_one_class_is_refused_and_names_update(nbspam, model, folder):
    result = nbspam("train", "--spam", folder / "spam")

    assert complains(result, 1, "only one class (spam)", "nbspam update")
    assert not model.exists()


def test_an_import_of_one_class_says_what_it_needs(nbspam, model):
    words = b".MSG_COUNT 3 0 20260101\npills 3 0 20260101\n"
    status, out, err = nbspam("import", "-", stdin=words)

    assert (status, err) == (0, ONLY_SPAM)
    assert "(0 ham, 3 spam)" in out
    assert nbspam("classify", stdin=SPAM)[1] == "unsure\t0.500000\t-\n"


# --- sort ------------------------------------------------------------------------------------


@pytest.fixture
def maildir(tmp_path):
    root = tmp_path / "Maildir"
    for folder in ("cur", "new", "tmp", ".Spam/cur", ".Spam/new"):
        (root / folder).mkdir(parents=True)
    (root / "new" / "1").write_bytes(HAM)
    return root


def test_sort_leaves_mail_alone_before_it_has_a_model(nbspam, model, maildir):
    status, out, err = nbspam("sort", maildir)

    assert (status, out) == (0, "new: 1 unsure; learned from moves: nothing\n")
    assert "knows no mail yet" in err
    assert "new mail stays where it is" in err
    assert (maildir / "new" / "1").exists()
    assert not model.exists()


@pytest.mark.parametrize("options", [(), ("--flag", "F")])
def test_sort_makes_a_model_of_what_the_user_moves(nbspam, model, maildir, options):
    for n in range(3):
        (maildir / (f"cur/m{n}:2,SF" if options else f".Spam/cur/m{n}")).write_bytes(
            SPAM + b"%d\n" % n
        )
    status, out, err = nbspam("sort", *options, maildir)

    assert (status, out) == (0, "new: 1 unsure; learned from moves: 3 spam\n")
    assert "knows only spam" in err
    assert load(str(model)).table.class_count.tolist() == [0, 3]
    assert (maildir / "new" / "1").exists()

    nbspam("update", "--ham", "-", stdin=HAM + b"x")
    (maildir / "new" / "2").write_bytes(SPAM + b"again\n")
    result = nbspam("sort", *options, maildir)
    assert result == (0, "new: 1 spam; learned from moves: nothing\n", "")


# --- classes that the model does not have ----------------------------------------------------


def on_disk(model):
    journal = model.with_name(model.name + ".journal")
    return model.read_bytes(), journal.exists() and journal.read_bytes()


@pytest.fixture
def with_journal(nbspam, trained, tmp_path):
    """A model with a journal."""
    nbspam("train", write_mails(tmp_path / "many", 30))
    nbspam("update", "--spam", "-", stdin=SPAM + b"later\n")
    assert os.path.exists(f"{trained}.journal")
    return trained


@pytest.fixture
def typo(tmp_path):
    """Sources in which one class is misspelt, the last of many messages."""
    folder = write_mails(tmp_path / "typo", 5)
    (folder / "spam").rename(folder / "spma")
    (tmp_path / "t.csv").write_text("label,text\n" + "ham,hello again\n" * 9 + "spma,cheap\n")
    names = [f"ham typo/ham/{n}.eml\n" for n in range(1, 6)]
    (tmp_path / "index").write_text("".join([*names, "spma typo/spma/1.eml\n"]))
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "relabel --to spma typo/ham",
        "update --label spma=typo/ham/1.eml typo/ham/2.eml",
        "update typo",
        "update index",
        "update t.csv",
        "update --spam typo/ham/1.eml typo",
        "update --policy error typo",
        "update --format csv -",
    ],
)
def test_a_misspelt_class_is_refused_before_anything_is_learned(
    nbspam, with_journal, typo, monkeypatch, command
):
    monkeypatch.chdir(typo)
    monkeypatch.setattr(model, "MAX_ENTRIES", 1)
    monkeypatch.setattr(items, "_WAITING_BYTES", 1)
    before = on_disk(with_journal)
    stdin = (typo / "t.csv").read_bytes()
    result = nbspam(*command.split(), stdin=stdin)

    assert complains(result, 2, "spma: not among", "(ham, spam)", "did you mean spam?")
    assert on_disk(with_journal) == before
    status, _, err = nbspam(*command.split(), "--new-class", stdin=stdin)
    assert status == 0
    assert "spma: a new class; the model had ham, spam" in err
    assert load(str(with_journal)).classes == ("ham", "spam", "spma")


def test_a_class_like_no_other_gets_no_suggestion(nbspam, trained, tmp_path):
    result = nbspam("update", "--label", "work=-", stdin=HAM)

    assert complains(result, 2, "work: not among the model's classes (ham, spam); --new-class")


def test_ham_and_spam_need_leave_in_a_model_of_other_classes(nbspam, model, folder):
    (folder / "ham").rename(folder / "work")
    (folder / "spam").rename(folder / "home")
    nbspam("train", folder)

    assert complains(nbspam("update", "--spam", "-", stdin=SPAM), 2, "spam: not among")
    assert nbspam("update", "--spam", "-", "--new-class", stdin=SPAM)[0] == 0


def test_a_misspelt_class_makes_no_model(nbspam, model):
    assert complains(nbspam("update", "--label", "sapm=-", stdin=SPAM), 2, "did you mean spam?")
    assert not model.parent.exists()


def test_items_wait_on_disk_and_come_back_as_they_were(monkeypatch):
    monkeypatch.setattr(items, "_WAITING_BYTES", 10)
    given = [
        Item("a\udcff\n", "ham", bytes(range(256))),
        Item("b", None),
        Item("c", "é", b"", True),
    ]
    with looked_through(iter(given)) as (classes, again):
        assert classes == {"ham", "é"}
        assert list(again) == given


def test_a_full_disk_for_waiting_items_is_one_line(trained, tmp_path):
    """A process of its own may write files of 100 kB only."""
    (tmp_path / "big.csv").write_text("label,text\n" + "ham," + "word " * 400_000 + "\n")
    script = (
        "import resource, signal, sys; from nbspam.cli.main import exit_status\n"
        "from nbspam.sources import items; items._WAITING_BYTES = 10\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "sys.exit(exit_status(['update', sys.argv[1]]))\n"
    )
    command = [sys.executable, "-c", script, tmp_path / "big.csv"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert complains((done.returncode, done.stdout, done.stderr), 1, "too large", "TMPDIR")
