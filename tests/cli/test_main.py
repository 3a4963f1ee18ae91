import json
import math

import pytest

from support import HAM, SPAM, json_lines


def test_train_says_what_it_read_and_learned(nbspam, folder, model):
    status, out, err = nbspam("train", folder)

    assert status == 0
    assert "read 4 messages (2 ham, 2 spam)" in out
    assert str(model) in out
    assert err == ""
    assert model.stat().st_mode & 0o777 == 0o600


def test_classify_prints_label_posterior_and_name(nbspam, trained, folder):
    status, out, _ = nbspam("classify", folder / "spam" / "1.eml")

    label, posterior, name = out.rstrip("\n").split("\t")
    assert (status, label, name) == (0, "spam", str(folder / "spam" / "1.eml"))
    assert 0.5 < float(posterior) <= 1


def test_classify_reads_standard_input(nbspam, trained):
    assert nbspam("classify", stdin=HAM)[1].startswith("ham\t")
    assert nbspam("classify", "-", stdin=SPAM)[1].startswith("spam\t")


def test_classify_json_is_one_object_a_message(nbspam, trained, folder):
    _, out, _ = nbspam("classify", "--json", folder)

    verdicts = [json.loads(line) for line in out.splitlines()]
    assert [verdict["label"] for verdict in verdicts] == ["ham", "ham", "spam", "spam"]
    assert all(sum(v["posterior"].values()) == pytest.approx(1) for v in verdicts)


def test_exit_codes_are_those_of_bogofilter(nbspam, trained):
    assert nbspam("classify", "--exit-code", stdin=SPAM) == (0, "", "")
    assert nbspam("classify", "--exit-code", stdin=HAM) == (1, "", "")


COSTS_OF_UNSURE = {"actions": ["unsure"], "loss": {"ham": [0], "spam": [0]}}


def test_exit_code_is_two_for_unsure(nbspam, trained, tmp_path):
    (tmp_path / "loss.json").write_text(json.dumps(COSTS_OF_UNSURE))
    unsure = ("classify", "--exit-code", "--loss", tmp_path / "loss.json")

    assert nbspam(*unsure, stdin=SPAM) == (2, "", "")


def test_exit_code_is_three_on_every_failure(nbspam, trained, folder, tmp_path):
    for arguments in (
        ("classify", "--exit-code", tmp_path / "none"),
        ("classify", "--exit-code", "--no-such-option"),
        ("classify", "--exit-code", folder),
        ("classify", "--exit-code", "-m", tmp_path / "none.nbspam"),
    ):
        status, _, err = nbspam(*arguments)
        assert status == 3, arguments
        assert err


def test_exit_code_is_for_models_of_ham_and_spam(nbspam, tmp_path, folder):
    (folder / "ham").rename(folder / "work")
    model = tmp_path / "m.nbspam"
    nbspam("train", "-m", model, folder)

    status, _, err = nbspam("classify", "--exit-code", "-m", model, stdin=HAM)
    assert status == 3
    assert "the model's classes are spam, work" in err


def test_costs_move_the_verdict(nbspam, trained, folder):
    _, out, _ = nbspam("classify", "--json", folder / "spam" / "1.eml")
    verdict = json.loads(out)
    assert verdict["probability"] == verdict["posterior"][verdict["label"]]
    odds = math.exp(verdict["score"])

    for options, labels in (
        (["--fp-cost", 0.99 * odds], "spam"),
        (["--fp-cost", 1.01 * odds], "ham"),
        (["--fp-cost", 1.01 * odds, "--unsure-cost", 0.01], "unsure"),
    ):
        for command in ("classify", "predict"):
            assert nbspam(command, *options, stdin=SPAM[:-1] + b"\n1\n")[1].split()[0] == labels


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--fp-cost", "0"], "--fp-cost 0: not a number above 0"),
        (["--fp-cost", "-1"], "--fp-cost -1: not a number above 0"),
        (["--fp-cost", "inf"], "--fp-cost inf: not a number above 0"),
        (["--fp-cost", "dear"], "--fp-cost dear: not a number above 0"),
        (["--unsure-cost", "nan"], "--unsure-cost nan: not a number above 0"),
        (["--unsure-cost", "0.7"], "with --fp-cost 2 give less than 0.667"),
        (["--loss", "x", "--fp-cost", "1"], "--loss: it has all costs"),
        (["--loss", "none"], "--loss none: No such file"),
        (["--loss", "loss"], "--loss loss: not JSON; write {"),
        (["--loss", "deep"], "--loss deep: not JSON"),
        (["--loss", "large"], "--loss large: more than 1,048,576 bytes"),
        (["--loss", "list"], '--loss list: not an object with "actions" and "loss"'),
    ],
)
def test_wrong_costs_are_refused_in_one_line(
    nbspam, trained, tmp_path, monkeypatch, options, complaint
):
    monkeypatch.chdir(tmp_path)
    for name, text in (
        ("loss", "{"),
        ("deep", "[" * 100_000),
        ("large", " " * (1 << 20) + "1"),
        ("list", "[]"),
    ):
        (tmp_path / name).write_text(text)
    for command in ("classify", "predict", "explain"):
        status, out, err = nbspam(command, *options, stdin=SPAM)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert complaint in err


def test_costs_of_ham_and_spam_need_a_model_of_ham_and_spam(nbspam, tmp_path, folder):
    (folder / "ham").rename(folder / "work")
    model = tmp_path / "m.nbspam"
    nbspam("train", "-m", model, folder)

    for option in ("--fp-cost", "--unsure-cost"):
        status, _, err = nbspam("predict", option, "0.1", "-m", model, stdin=HAM)
        assert status == 2
        assert f"{option}: the model's classes are spam, work" in err


def test_exit_code_refuses_labels_without_a_number(nbspam, trained, tmp_path):
    costs = {"actions": ["spam", "quarantine"], "loss": {"ham": [1, 0], "spam": [0, 1]}}
    (tmp_path / "loss.json").write_text(json.dumps(costs))
    status, _, err = nbspam("classify", "--exit-code", "--loss", tmp_path / "loss.json", stdin=HAM)

    assert status == 3
    assert "the labels of --loss are spam, quarantine" in err
    assert nbspam("predict", "--loss", tmp_path / "loss.json", stdin=HAM)[1] == "quarantine\n"


def test_predict_keeps_line_n_for_message_n(nbspam, trained, folder):
    (folder / "ham" / "1.eml.gz").write_bytes(b"not gzip")
    status, out, err = nbspam("predict", folder)

    assert (status, out) == (1, "ham\n\nham\nspam\nspam\n")
    assert err.startswith("nbspam: skipped")
    assert "1.eml.gz" in err
    assert err.count("\n") == 1
    answers = map(json.loads, nbspam("predict", "--json", folder)[1].splitlines())
    assert [answer["label"] for answer in answers] == ["ham", None, "ham", "spam", "spam"]
    message = folder / "spam" / "1.eml"
    status, out, err = nbspam("predict", message, folder / "gone.eml", message)
    assert (status, out) == (1, "spam\n\nspam\n")
    assert err.endswith("gone.eml: no such file or folder; check the spelling\n")


def test_eval_cross_validates_and_splits(nbspam, folder):
    for arguments in (("--cv", 2), ("--test", folder)):
        status, out, _ = nbspam("eval", folder, "--json", *arguments)
        assert status == 0
        assert json.loads(out)["n_docs"] == 4


def test_eval_says_what_is_wrong_with_its_options(nbspam, trained, folder):
    for arguments, complaint in [
        (["--cv", "3"], "the smallest class has 2 documents"),
        (["--cv", "2", "--test", "x"], "two ways to judge"),
        (["--alpha", "1"], "--alpha: only for training"),
        (["--cv", "2", "--alpha", "-1"], "not a number from 0 up"),
        (["--cv", "2", "--class-prior", "0.5,0.6"], "probabilities that sum to 1"),
        (["--cv", "2", "--label", "work"], "write it as --label work=mail/work"),
    ]:
        status, _, err = nbspam("eval", folder, *arguments)

        assert status == 2
        assert complaint in err


def test_tokens_shows_what_the_tokenizer_made_of_a_message(nbspam):
    status, out, _ = nbspam("tokens", stdin=SPAM)

    assert status == 0
    assert {"1\tsubject:cheap", "2\tcheap", "2\tpills"} <= set(out.splitlines())


def test_words_shows_the_strongest_tokens(nbspam, trained):
    status, out, _ = nbspam("words", "-n", "100")

    ham, spam = out.split("# spam: weight")
    assert status == 0
    assert "lunch" in ham
    assert "pills" in spam
    rows = json_lines(nbspam("words", "--json", "-n", "3")[1])
    assert [row["class"] for row in rows] == ["ham"] * 3 + ["spam"] * 3
    assert rows[0]["counts"] == {"ham": 2, "spam": 0}


def test_info_shows_what_is_in_a_model(nbspam, trained):
    status, out, _ = nbspam("info")

    assert status == 0
    assert "4 messages (2 ham, 2 spam)" in out
    assert {"min_df\t1", "max_features\tno", "combine\tyes"} <= set(out.splitlines())
    assert json.loads(nbspam("info", "--json")[1])["read"] == {"ham": 2, "spam": 2}


def test_options_state_the_class_of_a_path(nbspam, folder, model):
    _, out, _ = nbspam(
        "train",
        "--spam",
        folder / "spam",
        "--ham",
        folder / "ham",
        "--label",
        f"work={folder}/ham/1.eml",
    )

    # A message named for two classes belongs to the last of them.
    assert "read 4 messages (1 ham, 2 spam, 1 work), 1 more than once" in out


def test_mail_without_labels_is_not_trained_on(nbspam, folder, model):
    status, _, err = nbspam("train", folder / "ham" / "1.eml")

    assert status == 1
    assert "no label" in err


def test_an_unreadable_message_is_skipped_unless_strict(nbspam, folder, model):
    (folder / "spam" / "3.eml.gz").write_bytes(b"not gzip")
    status, out, err = nbspam("train", folder)

    assert status == 0
    assert "skipped 1" in out
    assert "3.eml" in err
    assert nbspam("train", "--strict", folder)[0] == 1


def test_control_characters_in_names_never_reach_the_terminal(nbspam, trained, tmp_path):
    path = tmp_path / "a\x1b[31m.eml"
    path.write_bytes(HAM)

    assert "\x1b" not in nbspam("classify", path)[1]


def test_control_characters_in_class_names_never_reach_the_terminal(nbspam, folder, model):
    (folder / "ham").rename(folder / "ham\x1b[2J")

    assert "\x1b" not in nbspam("train", folder)[1]
    assert "\x1b" not in nbspam("words")[1] + nbspam("info")[1] + nbspam("eval", folder)[1]


def test_a_table_of_texts_makes_a_model_of_text(nbspam, tmp_path, model):
    table = tmp_path / "t.csv"
    table.write_text("label,text\n" + "ham,see you at lunch\nspam,win money now\n" * 3)
    status, out, _ = nbspam("train", table)

    assert status == 0
    assert "3 ham, 3 spam" in out
    assert json.loads(nbspam("info", "--json")[1])["settings"]["reading"] == "text"
    assert nbspam("predict", table)[1].split() == ["ham", "spam"] * 3


def labelled(path, *labels):
    path.write_text("".join(f"{label}\tsome text of {label}\n" for label in labels))
    return path


def test_the_number_of_classes_decides_the_weighting(nbspam, model, tmp_path):
    for labels, weighting in [
        ("ab" * 9, "presence"),
        ("abc" * 9, "log-length"),
        (["spam", "a", "b"], "presence"),  # names of a mail filter decide at once
    ]:
        assert nbspam("train", labelled(tmp_path / "t.tsv", *labels))[0] == 0
        assert json.loads(nbspam("info", "--json")[1])["settings"]["weighting"] == weighting


def test_a_model_asked_for_by_name_sums_its_evidence(nbspam, model, tmp_path):
    path = labelled(tmp_path / "t.tsv", *"abcabc")

    assert nbspam("train", path, "--model", "complement", "--characters")[0] == 0
    facts = json.loads(nbspam("info", "--json")[1])["settings"]
    assert (facts["combine"], facts["weighting"], facts["model"]) == (
        False,
        "counts",
        "complement",
    )
    assert facts["tokens"]["characters"]
