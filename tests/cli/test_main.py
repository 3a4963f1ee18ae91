import json
import math
import subprocess
import sys

import pytest

from support import HAM, SPAM, complains, json_lines, write_files


def test_train_and_info_say_what_was_read_and_learned_and_classify_its_verdicts(
    nbspam, folder, model
):
    out = nbspam.out("train", folder)
    assert "read 4 messages (2 ham, 2 spam)" in out
    assert str(model) in out
    assert model.stat().st_mode & 0o777 == 0o600
    out = nbspam.out("info")
    assert "4 messages (2 ham, 2 spam)" in out
    assert {"min_df\t1", "max_features\tno", "combine\tyes"} <= set(out.splitlines())
    assert nbspam.json("info")["read"] == {"ham": 2, "spam": 2}

    status, out, _ = nbspam("classify", folder / "spam" / "1.eml")
    label, posterior, name = out.rstrip("\n").split("\t")
    assert (status, label, name) == (0, "spam", str(folder / "spam" / "1.eml"))
    assert 0.5 < float(posterior) <= 1
    assert nbspam("classify", stdin=HAM)[1].startswith("ham\t")
    assert nbspam("classify", "-", stdin=SPAM)[1].startswith("spam\t")
    verdicts = json_lines(nbspam("classify", "--json", folder)[1])
    assert [verdict["label"] for verdict in verdicts] == ["ham", "ham", "spam", "spam"]
    assert all(sum(v["posterior"].values()) == pytest.approx(1) for v in verdicts)
    wrapped = b"Content-Type: message/rfc822; x-spam-type=original\n\n" + SPAM
    write_files(folder, {"spam/1.eml": wrapped})
    assert "train: reports of SpamAssassin around 1 message," in nbspam("train", folder)[2]


def loss(path, *actions):
    """Write costs of some actions: each is best for nothing."""
    costs = {"actions": actions, "loss": dict.fromkeys(("ham", "spam"), [0] * len(actions))}
    path.write_text(json.dumps(costs))
    return "--loss", path


def test_exit_codes_are_those_of_bogofilter_three_on_every_failure(
    nbspam, trained, folder, tmp_path
):
    unsure = loss(tmp_path / "unsure.json", "unsure")
    for options, stdin, status in (((), SPAM, 0), ((), HAM, 1), (unsure, SPAM, 2)):
        assert nbspam("classify", "--exit-code", *options, stdin=stdin) == (status, "", "")
    other = loss(tmp_path / "loss.json", "quarantine", "spam")
    (folder / "ham").rename(folder / "work")
    for arguments, words in (
        ((tmp_path / "none",), "none: no such file"),
        (("--no-such-option",), "--no-such-option: no such option"),
        ((folder,), "one message"),
        (("-m", tmp_path / "none.nbspam"), "none.nbspam: no such model"),
        (other, "the labels of --loss are quarantine, spam"),
    ):
        assert complains(nbspam("classify", "--exit-code", *arguments, stdin=HAM), 3, words)
    assert nbspam("predict", *other, stdin=HAM)[1] == "quarantine\n"
    nbspam("train", folder)
    words = "the model's classes are spam, work"
    assert complains(nbspam("classify", "--exit-code", stdin=HAM), 3, words)
    for option in ("--fp-cost", "--unsure-cost"):
        assert complains(nbspam("predict", option, "0.1", stdin=HAM), 2, f"{option}: {words}")


def test_costs_move_the_verdict(nbspam, trained, folder):
    (verdict,) = json_lines(nbspam("classify", "--json", folder / "spam" / "1.eml")[1])
    assert verdict["probability"] == verdict["posterior"][verdict["label"]]
    odds = math.exp(verdict["score"])

    for options, labels in (
        (["--fp-cost", 0.99 * odds], "spam"),
        (["--fp-cost", 1.01 * odds], "ham"),
        (["--fp-cost", 1.01 * odds, "--unsure-cost", 0.01], "unsure"),
    ):
        for command in ("classify", "predict"):
            assert nbspam(command, *options, stdin=SPAM[:-1] + b"\n1\n")[1].split()[0] == labels


def test_predict_keeps_line_n_for_message_n(nbspam, trained, folder):
    (folder / "ham" / "1.eml.gz").write_bytes(b"not gzip")
    status, out, err = nbspam("predict", folder)

    assert (status, out) == (1, "ham\n\nham\nspam\nspam\n")
    assert err.startswith("nbspam: skipped")
    assert "1.eml.gz" in err
    assert err.count("\n") == 1
    answers = map(json.loads, nbspam("predict", "--json", folder)[1].splitlines())
    assert [answer["label"] for answer in answers] == ["ham", None, "ham", "spam", "spam"]
    status, out, told = nbspam("tokens", folder)
    assert (status, out.count("\tsubject:cheap\n"), told) == (1, 2, err)
    message = folder / "spam" / "1.eml"
    damaged, gone = folder / "ham" / "1.eml.gz", folder / "gone.eml"
    status, out, err = nbspam("predict", message, damaged, gone, message)
    assert (status, out) == (1, "spam\n\n\nspam\n")
    assert err.endswith("gone.eml: no such file or folder; check the spelling\n")


def test_words_and_tokens_are_shown(nbspam, trained):
    out = nbspam.out("tokens", stdin=SPAM)
    assert {"1\tsubject:cheap", "2\tcheap", "2\tpills"} <= set(out.splitlines())
    out = nbspam.out("words", "-n", "100")
    ham, spam = out.split("# spam: weight")
    assert ["lunch" in ham, "pills" in ham, "lunch" in spam, "pills" in spam] == [1, 0, 0, 1]
    rows = json_lines(nbspam("words", "--json", "-n", "3")[1])
    assert [row["class"] for row in rows] == ["ham"] * 3 + ["spam"] * 3
    assert rows[0]["counts"] == {"ham": 2, "spam": 0}


def test_tokens_and_vectors_have_the_words_of_documents_if_asked(nbspam, tmp_path):
    for library in ("olefile", "pypdfium2", "zxingcpp"):
        pytest.importorskip(library)
    message = b"Content-Type: application/rtf\n\n{\\rtf1 cheap pills}"
    for command in (("tokens", "-"), ("vectorize", "-", "-o", tmp_path / "x.npz")):
        shown = [nbspam.out(*command, *how, stdin=message) for how in ((), ["--attachments"])]
        assert ["attached:pills" in out for out in shown] == [False, True]


def test_options_state_the_class_of_a_path(nbspam, folder, model):
    work = f"work={folder}/ham/1.eml"
    # A message in a folder of one class is read once, as the class that is stated for itself.
    for ham in (folder / "ham", f"{folder}/ham//"):
        sources = ("--spam", folder / "spam", "--ham", ham, "--label", work)
        assert "read 4 messages (1 ham, 2 spam, 1 work)\n" in nbspam("train", *sources)[1]
    (folder / "ham" / "junk").mkdir()
    (folder / "spam" / "1.eml").rename(folder.parent / "3.eml")
    (folder / "ham" / "junk" / "3.eml").symlink_to(folder.parent / "3.eml")
    (folder / "spam" / "2.eml").rename(folder / "ham" / "junk.mbox")
    junk = ("--spam", folder / "ham" / "junk", "--spam", folder / "ham" / "junk.mbox")
    for others in (("--ham", folder / "ham"), (folder,)):
        assert "of 4 right" in nbspam("eval", *junk, *junk, *others)[1]  # nothing is judged twice
        nbspam("update", *junk, *others)
        assert nbspam("update", *junk, *others)[1] == "already known 4\n"
    (folder / "ham" / "junk").rename(folder.parent / "junk")
    (folder / "ham" / "junk").symlink_to(folder.parent / "junk")
    assert nbspam("update", *junk, "--ham", folder / "ham")[1] == "already known 4\n"
    above = ("--spam", folder / "ham" / "junk" / "..", "--ham", folder)  # not the link's folder
    assert "read 4 messages" in nbspam("train", *above)[1]
    one = ("--spam", f"{folder}/ham/junk.mbox#1", "--ham", folder / "ham" / "junk.mbox")
    assert "read 4 messages (3 ham, 1 spam)" in nbspam("train", *one, "--ham", folder / "ham")[1]
    # As a shell writes `--spam ham/*`: the option has the first path, the sources the others.
    some = ("--spam", folder / "ham" / "junk", folder / "ham" / "junk.mbox", folder, "-")
    assert "read 5 messages (2 ham, 3 spam)" in nbspam("train", *some, stdin=b"x")[1]


def test_labelled_items_are_read_once_from_paths_in_each_other(nbspam, folder, model, tmp_path):
    (folder / "2024").mkdir()
    for name in ("ham", "spam"):
        (folder / name).rename(folder / "2024" / name)
    (tmp_path / "t.tsv").write_text("a\tgold oak\na\tgold\nb\toak elm\nb\telm\n")
    inner = folder / "2024" / "ham"
    (tmp_path / "link").symlink_to("t.tsv")
    twice = (tmp_path / "link", tmp_path / "t.tsv", f"{tmp_path}/./t.tsv")
    for sources in ((folder, folder / "2024", inner), (inner, folder), twice):
        assert "read 4 " in nbspam("train", *sources)[1]
        assert "of 4 right" in nbspam("eval", *sources)[1]
        assert "of 4 right" in nbspam("eval", *sources, "--cv", "2")[1]
        assert nbspam("update", *sources)[1] == "already known 4\n"
    tables = {"a.csv": b"x,ham,oak\ny,spam,elm\n", "b.csv": b"x,work,ash\n"}  # x is no copy of x
    write_files(tmp_path / "t", {name: b"id,label,text\n" + rows for name, rows in tables.items()})
    sources = (tmp_path / "t" / name for name in ("a.csv", "b.csv", "b.csv"))
    assert " work)" in nbspam("train", *sources, "--id-column", "id")[1]


@pytest.mark.parametrize("mark", ["\t", ","])
def test_a_table_of_any_name_is_one_if_its_columns_are_named(mark, nbspam, model, tmp_path):
    rows = "kind,words\na,gold oak\nb,oak elm\nc,elm oak\n".replace(",", mark)
    (tmp_path / "t.txt").write_text(rows)
    columns = ("--text-column", "words", "--label-column", "kind", "--weighting", "presence")
    trained = nbspam("train", tmp_path / "t.txt", *columns)
    assert trained[1].startswith("read 3 texts")
    first, *shown = nbspam.out("words").splitlines()
    assert first == "# a: weight\ta\tothers\ttoken"
    counts = {row.split("\t")[3]: row.split("\t")[1:3] for row in shown[:3]}
    assert counts == {"gold": ["1", "0"], "oak": ["1", "2"], "token": ["b", "others"]}
    assert nbspam.out("classify", tmp_path / "t.txt", columns[0], "words").count("\n") == 3
    (tmp_path / "new.csv").write_text("words\noak\n")  # which needs no classes
    lazy = nbspam("lazy", tmp_path / "t.txt", tmp_path / "new.csv", *columns)
    assert lazy == nbspam("classify", tmp_path / "new.csv")
    said = nbspam("train", tmp_path / "t.txt", *columns[:3], "other")[2]
    assert said.endswith("t.txt: no column 'other'; there are: kind, words\n")


def test_a_class_that_cannot_be_read_is_named(nbspam, folder, model):
    for path in (folder / "spam").iterdir():
        path.unlink()
    (folder / "spam" / "3.eml.gz").write_bytes(b"not gzip")
    status, _, err = nbspam("train", folder)
    said = f"only one class (ham), and 1 not readable, such as {folder}/spam/3.eml.gz: damaged"
    assert (status, said in err) == (1, True)
    assert "no label" in nbspam("train", folder / "ham" / "1.eml")[2]


def test_control_characters_in_names_never_reach_the_terminal(nbspam, folder, model):
    (folder / "ham" / "1.eml").rename(folder / "ham" / "a\x1b[31m.eml")
    (folder / "ham").rename(folder / "ham\x1b[2J")

    assert "\x1b" not in nbspam("train", folder)[1] + nbspam("classify", folder)[1]
    assert "\x1b" not in nbspam("words")[1] + nbspam("info")[1] + nbspam("eval", folder)[1]


def test_an_interrupt_while_the_program_is_imported_ends_it_quietly():
    script = """
import sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == "click":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from nbspam.__main__ import run
run()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_stated_costs_alone_make_risks_of_which_the_label_has_the_least(
    nbspam, trained, folder, tmp_path
):
    how = ("--fp-cost", "9", "--unsure-cost", "0.2")
    (verdict,) = json_lines(nbspam("classify", "--json", *how, stdin=SPAM)[1])
    ham, spam = verdict["posterior"].values()
    assert verdict["risk"] == pytest.approx({"ham": spam, "spam": 9 * ham, "unsure": 0.2})
    assert verdict["risk"][verdict["label"]] == min(verdict["risk"].values())
    shown = nbspam("explain", *how, stdin=SPAM)[1].splitlines()[-3:]
    assert shown == [
        f"{cost:.6g}  expected cost of the answer {name}"
        for name, cost in sorted(verdict["risk"].items(), key=lambda each: each[1])
    ]
    answer = nbspam.json("eval", folder, *how)
    verdicts = json_lines(nbspam("classify", folder, "--json", *how)[1])
    least = [min(each["risk"].values()) for each in verdicts]
    assert answer["bayes_risk"] == pytest.approx(sum(least) / len(least))
    assert f"Bayes risk{answer['bayes_risk']:>22.5f}\n" in nbspam("eval", folder, *how)[1]

    (verdict,) = json_lines(nbspam("classify", "--json", stdin=SPAM)[1])
    assert verdict["risk"] is None
    assert nbspam.json("eval", folder)["bayes_risk"] is None
    assert "Bayes risk" not in nbspam("eval", folder)[1]
    likelier = "spam is likelier, but not likely enough for that label"
    usual, dear = (nbspam("explain", *how, stdin=SPAM)[1] for how in ((), ("--fp-cost", "1e9")))
    assert not any(words in usual for words in ("expected cost", likelier))
    assert dear.startswith("ham  probability 0.0")
    assert dear.splitlines()[1] == likelier
    junk = {"actions": ["inbox", "junk"], "loss": {"ham": [0, 1], "spam": [1, 0]}}
    (tmp_path / "loss.json").write_text(json.dumps(junk))
    answer = nbspam("explain", "--loss", tmp_path / "loss.json", stdin=SPAM)[1]
    assert answer.startswith("junk")
    assert likelier not in answer
