"""Commands before there is a model, with a model of one class, and with classes misspelt."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from nbspam.sources.items import Item
from nbspam.store import model
from nbspam.store.open import load_tokens as load
from support import FROM, HAM, SPAM, complains, json_lines, write_files, write_mails

ONLY_SPAM = (
    "nbspam: the model knows only spam, and is unsure of everything; teach it ham:"
    " nbspam update --ham PATH\n"
)


def test_update_makes_the_model_that_train_makes(nbspam, model, folder, tmp_path):
    result = nbspam("update", "--spam", "-", stdin=SPAM)
    assert result == (0, "learned 1\n", f"nbspam: {model}: a new model\n{ONLY_SPAM}")
    assert nbspam("update", "--ham", "-", stdin=HAM) == (0, "learned 1\n", "")
    assert nbspam("update", "--spam", "-", stdin=SPAM) == (0, "already known 1\n", "")

    table = tmp_path / "t.csv"
    table.write_text("label,text\nham,lunch on friday\nspam,cheap pills\n")
    rows, told = table.read_bytes(), f"nbspam: {model}: a new model\n"
    for source, n in (([folder], 4), ([table], 2), (["--format", "csv", "-"], 2)):
        for path in model.parent.iterdir():
            path.unlink()
        assert nbspam("update", *source, stdin=rows)[1:] == (f"learned {n}\n", told)
        nbspam("train", *source, "-m", tmp_path / "at once", stdin=rows)
        assert model.read_bytes() == (tmp_path / "at once").read_bytes()


@pytest.mark.parametrize("options", [(), ("--fp-cost", "99"), ("--unsure-cost", "0.1")])
def test_every_command_is_unsure_with_one_class_and_says_why(nbspam, model, tmp_path, options):
    nbspam("update", "--spam", "-", stdin=SPAM)
    (tmp_path / "a.eml").write_bytes(SPAM)
    name = str(tmp_path / "a.eml")

    judged = nbspam("classify", *options, name)
    assert judged == (0, f"unsure\t0.500000\t{name}\n", ONLY_SPAM)
    assert nbspam("classify", "--exit-code", *options, name)[0] == 2
    values = nbspam.json("classify", *options, name)
    assert (values["label"], values["probability"]) == ("unsure", 0.5)
    assert values["posterior"] == {"ham": 0.5, "spam": 0.5}
    assert nbspam("predict", name)[:2] == (0, "unsure\n")
    assert nbspam("explain", *options, name)[1].startswith("unsure  probability 0.5000  score +0")
    status, out, err = nbspam("filter", "--bogosity", *options, stdin=SPAM)
    assert (status, err) == (0, ONLY_SPAM)
    assert out.startswith("X-Nbspam: unsure, probability=0.500000")
    assert "X-Bogosity: Unsure, tests=bogofilter, spamicity=0.500000" in out
    assert out.endswith(SPAM.decode())


def test_evaluation_headers_and_info_of_a_model_of_one_class(nbspam, model, folder, few_resamples):
    answer = nbspam.json("update", "--spam", "-", stdin=SPAM)
    assert answer["notes"] == [f"{model}: a new model", ONLY_SPAM[8:-1]]

    status, out, err = nbspam("eval", folder, "--json")
    answer = json.loads(out)
    assert (status, err) == (0, ONLY_SPAM)
    assert (answer["n_docs"], answer["undecided"], answer["errors"]) == (4, 4, 0)

    out = nbspam("filter", "--spam-status", "--subject-tag", "[SPAM] ", stdin=SPAM)[1]
    assert "X-Spam-Status: No, score=4.9 required=5.0 tests=BAYES_50" in out
    assert "X-Spam-Flag" not in out
    assert "[SPAM]" not in out

    # A filter that learns what it is sure of learns nothing.
    nbspam("filter", "--learn", "confident", "--sure", "0.6", stdin=HAM)
    out = nbspam("info")[1]
    assert "trained\t1 message (0 ham, 1 spam)" in out
    assert f"decision\t{ONLY_SPAM[8:]}" in out
    of_user = model.with_name("model")  # as serve --users names it
    shutil.copy(model, of_user)
    by_itself = "decision\twith serve --users, on top of the site's model; by itself, "
    assert f"{by_itself}{ONLY_SPAM[8:]}" in nbspam("info", "-m", of_user)[1]

    words = b".MSG_COUNT 3 0 20260101\npills 3 0 20260101\n"
    status, out, err = nbspam("import", "-", stdin=words)
    assert (status, err.endswith(f"\n{ONLY_SPAM}")) == (0, True)
    assert "(0 ham, 3 spam)" in out
    assert nbspam("classify", stdin=SPAM)[1] == "unsure\t0.500000\t-\n"


@pytest.mark.parametrize(
    ("options", "place"), [((), ".Spam/cur/m{}"), (("--flag", "F"), "cur/m{}:2,SF")]
)
def test_sort_makes_a_model_of_what_the_user_moves(nbspam, model, tmp_path, options, place):
    folders = ("cur", "tmp", ".Spam/cur", ".Spam/new")
    for folder in folders:
        (tmp_path / "Maildir" / folder).mkdir(parents=True)
    maildir = write_files(tmp_path / "Maildir", {"new/1": HAM})
    status, out, err = nbspam("sort", *options, maildir)
    assert (status, out) == (0, "new: 1 unsure; learned from moves: nothing\n")
    assert "knows no mail yet" in err
    assert "new mail stays where it is" in err
    assert (maildir / "new" / "1").exists()
    assert not model.exists()

    write_files(maildir, {place.format(n): SPAM + b"%d\n" % n for n in range(3)})
    status, out, err = nbspam("sort", *options, maildir)

    assert (status, out) == (0, "new: 1 unsure; learned from moves: 3 spam\n")
    assert "knows only spam" in err
    assert load(str(model)).table.class_count.tolist() == [0, 3]
    assert (maildir / "new" / "1").exists()

    nbspam("update", "--ham", "-", stdin=HAM + b"x")
    (maildir / "new" / "2").write_bytes(SPAM + b"again\n")
    result = nbspam("sort", *options, maildir)
    assert result == (0, "new: 1 ham, 1 spam; learned from moves: nothing\n", "")
    write_files(maildir, {"cur/3": HAM, ".Spam/cur/3": HAM})
    said = "" if options else "3 is in two folders at once"
    assert said in nbspam("sort", *options, maildir)[2]


# --- classes that the model does not have ----------------------------------------------------


@pytest.mark.parametrize("command", [
    "relabel --to spma typo/ham",
    "update --label spma=typo/ham/1.eml typo/ham/2.eml",
    "update typo", "update index", "update t.csv", "update --spam typo/ham/1.eml typo",
    "update --policy error typo", "update --format csv -",
])  # fmt: skip
def test_a_misspelt_class_is_refused_before_anything_is_learned(
    nbspam, trained, tmp_path, monkeypatch, command
):
    nbspam("train", write_mails(tmp_path / "many", 30))
    nbspam("update", "--spam", "-", stdin=SPAM + b"later\n")
    assert os.path.exists(f"{trained}.journal")

    folder = write_mails(tmp_path / "typo", 5)
    (folder / "spam").rename(folder / "spma")
    (tmp_path / "t.csv").write_text("label,text\n" + "ham,hello again\n" * 9 + "spma,cheap\n")
    names = [f"ham typo/ham/{n}.eml\n" for n in range(1, 6)]
    (tmp_path / "index").write_text("".join([*names, "spma typo/spma/1.eml\n"]))

    def on_disk():
        return trained.read_bytes(), trained.with_name("m.nbspam.journal").read_bytes()

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(model, "_MAX_ENTRIES", 1)
    monkeypatch.setattr(model, "_WAITING_BYTES", 1)
    before = on_disk()
    stdin = (tmp_path / "t.csv").read_bytes()
    result = nbspam(*command.split(), stdin=stdin)

    assert complains(result, 2, "spma: not among", "(ham, spam)", "did you mean spam?")
    assert on_disk() == before
    status, _, err = nbspam(*command.split(), "--new-class", stdin=stdin)
    assert status == 0
    assert "spma: a new class; the model had ham, spam" in err
    assert load(str(trained)).classes == ("ham", "spam", "spma")


def test_classes_unlike_those_of_the_model_need_leave(nbspam, model, folder):
    assert complains(nbspam("update", "--label", "sapm=-", stdin=SPAM), 2, "did you mean spam?")
    assert not model.parent.exists()
    (folder / "ham").rename(folder / "work")
    (folder / "spam").rename(folder / "home")
    nbspam("train", folder)
    said = "spam: not among the model's classes (home, work); --new-class"
    assert complains(nbspam("update", "--spam", "-", stdin=SPAM), 2, said)
    assert nbspam("update", "--spam", "-", "--new-class", stdin=SPAM)[0] == 0


def test_items_wait_on_disk_and_come_back_as_they_were(monkeypatch):
    monkeypatch.setattr(model, "_WAITING_BYTES", 10)
    data = bytes(range(256))
    given = [Item("a\udcff\n", "ham", data), Item("b", None), Item("c", "é", b"", True)]
    with model.looked_through(iter(given)) as (classes, again):
        assert classes == {"ham", "é"}
        assert list(again) == given


def test_a_full_disk_for_waiting_items_is_one_line(trained, tmp_path):
    """A process of its own may write files of 100 kB only."""
    (tmp_path / "big.csv").write_text("label,text\n" + "ham," + "word " * 400_000 + "\n")
    script = (
        "import resource, signal, sys; from nbspam.cli.main import exit_status\n"
        "from nbspam.store import model; model._WAITING_BYTES = 10\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "sys.exit(exit_status(['update', sys.argv[1]]))\n"
    )
    command = [sys.executable, "-c", script, tmp_path / "big.csv"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert complains((done.returncode, done.stdout, done.stderr), 1, "ulimit -f", "TMPDIR")


def test_a_quoted_pattern_stands_for_the_files_that_it_matches(nbspam, model, tmp_path):
    write_files(tmp_path, {"a/1x.txt": HAM, "a/spm1": SPAM, "b/spm2": SPAM + b"2\n", "b/o": HAM})
    labels = "--label", f"spam={tmp_path}/*/spm*", "--label", f"ham={tmp_path}/a/[0-9]*"
    assert "read 3 messages (1 ham, 2 spam)" in nbspam("train", *labels)[1]
    (tmp_path / "[x]").write_bytes(SPAM + b"x\n")  # the name of a file is no pattern
    assert nbspam("update", "--spam", tmp_path / "[x]")[1] == "learned 1\n"
    assert complains(nbspam("update", "--spam", tmp_path / "no*"), 1, "no*: no such file")


# ---- newcomer ----


def test_relabelling_says_what_was_new_and_other_commands_need_no_source(nbspam, trained, folder):
    new = folder / "new.eml"
    new.write_bytes(SPAM + b"new\n")
    found = nbspam("relabel", "--to", "spam", new, folder / "ham" / "1.eml")
    assert found == (0, "learned 1 that the model did not know, moved 1\n", "")
    box = b"".join(FROM + each + b"\n" for each in (HAM, SPAM, HAM + b"2\n", SPAM + b"2\n"))
    for command in ("cluster -k 2 --assignments", "classify", "tokens"):
        assert nbspam.out(*command.split(), stdin=box)


WAITING = "reading from this terminal; end with Ctrl-D\n"


def test_every_command_that_waits_for_a_terminal_says_so(nbspam, places, monkeypatch):
    for words, why in (
        ("classify", "no SOURCE"),
        ("explain -", "-"),
        ("update --spam -", "-"),
        ("unlearn -", "-"),
        ("train FOLDER --sent -", "-"),
        ("eval FOLDER --test -", "-"),
        ("classify --files0-from -", "--files0-from -"),
        ("filter", "-"),
        ("import - -m OTHER", "-"),
        ("table classify -m TABLE", "no SOURCE"),
        ("table update -m TABLE -", "-"),
    ):
        arguments = [places.get(word, word) for word in words.split()]
        line = f"nbspam: {why}: {WAITING}"
        assert line not in nbspam(*arguments, stdin=SPAM)[2]
        with monkeypatch.context() as patch:
            patch.setattr("nbspam.cli.output.at_terminal", lambda: True)
            assert nbspam(*arguments, stdin=SPAM)[2].count(line) == 1
            assert line not in nbspam("-q", *arguments, stdin=SPAM)[2]


PASTED = "nbspam: -: no head of a mail, judged as text; paste the message's source to judge all"


def test_mail_that_is_pasted_without_a_head_is_judged_as_text(nbspam, trained):
    for data, is_text in (
        (b"buy cheap pills\n\nnow", True),
        (SPAM, False),
        (b"From x@example.com Thu Aug 22 12:36:23 2002\n" + SPAM, False),
        (b"", False),
        (b"\x7fELF", False),  # which has a line of its own
    ):
        for command in ("classify", "explain", "predict"):
            assert nbspam(command, stdin=data)[2].count(PASTED) == is_text
    assert PASTED not in nbspam("classify", trained.parent.parent / "mails")[2]


def test_a_model_of_texts_judges_what_is_pasted_and_tells_words_instead_of_runs(nbspam, tmp_path):
    table, model = tmp_path / "t.csv", tmp_path / "m.nbspam"
    table.write_text("label,text\n" + "ham,hello lunch\nspam,cheap pills\n" * 9)
    assert nbspam("train", "-m", model, table)[0] == 0

    out = nbspam.out("explain", "-m", model, stdin=b"cheap pillz")
    assert "char:" not in out
    (pillz,) = [line.split() for line in out.splitlines() if "pillz" in line]
    assert pillz[1:] == ["characters", "pillz"]  # and no counts
    assert "char:pill" in nbspam("explain", "--tokens", "-m", model, stdin=b"cheap pillz")[1]
    (values,) = json_lines(nbspam("explain", "--json", "-m", model, stdin=b"cheap pillz")[1])
    assert [t["counts"] for t in values["tokens"] if t["token"] == "pillz"] == [None]

    assert "char:" not in nbspam("words", "-m", model)[1]
    assert "char:" in nbspam("words", "--tokens", "-m", model)[1]
    assert nbspam("doubts", table) == (0, "", "nbspam: no label is probably wrong\n")
