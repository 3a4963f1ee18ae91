"""`nbspam eval` reports every number in every way of judging, under the stated costs."""

import io
import json
import sys
from functools import partial
from xml.etree import ElementTree

import click
import pytest

from markup import Page, rows_of
from nbspam.cli.main import exit_status
from nbspam.cli.output import check_page, write_text
from nbspam.evaluation.report import MEASURES
from stored import full_disk
from support import FROM, MELONS, complains, write_files

pytestmark = pytest.mark.usefixtures("few_resamples")
NAMES = {measure.name for measure in MEASURES} - {"bayes_risk"}  # which needs stated costs
OF_TWO_CLASSES = {"hm_rate", "sm_rate", "lam", "auc", "sm_at_hm"}
SHARES, VARYING = {"accuracy", "hm_rate", "sm_rate"}, NAMES - {"calibration_error"}


@pytest.fixture
def some(tmp_path, mails):
    """A folder with every eighth of these messages."""
    paths = [path for label in ("ham", "spam") for path in sorted((mails / label).iterdir())[::8]]
    files = {f"{path.parent.name}/{path.name}": path.read_bytes() for path in paths}
    return write_files(tmp_path / "some mail", files)


@pytest.fixture
def judged(nbspam, some):
    """Run eval: (*arguments) -> its JSON."""
    return partial(nbspam.json, "eval", some)


def test_costs_decide_and_are_counted(judged, tmp_path):
    usual = judged("--cv", 3)
    dear = judged("--cv", 3, "--fp-cost", 99)
    assert usual["answers"] == dear["answers"] == ["ham", "spam"]
    assert dear["false_positives"] < usual["false_positives"]
    n, fp, fn = dear["n_docs"], dear["false_positives"], dear["false_negatives"]
    assert dear["cost"] == pytest.approx((99 * fp + fn) / n)
    unsure = judged("--cv", 3, "--unsure-cost", 0.1)
    assert unsure["answers"] == ["ham", "spam", "unsure"]
    assert unsure["undecided"] == sum(row[2] for row in unsure["confusion"]) > 0
    # Costs of a loss matrix do not depend on the names of answers.
    loss = {"actions": ["inbox", "junk"], "loss": {"ham": [0, 99], "spam": [1, 0]}}
    (tmp_path / "loss.json").write_text(json.dumps(loss))
    house = judged("--cv", 3, "--loss", tmp_path / "loss.json")
    assert house["cost"] == pytest.approx(dear["cost"])
    assert house["answers"] == ["ham", "spam"]


@pytest.fixture
def page(tmp_path):
    return tmp_path / "page.html"


def text_of(path):
    return Page(path.read_text("utf-8")).text


# --- what was wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how", [["--cv", 3], ["--online"], ["--test", "some"], ["model"], ["table"]]
)
def test_every_number_its_interval_errors_page_and_picture_are_given_in_every_way_of_judging(
    nbspam, judged, some, model, page, tmp_path, how
):
    group, source, path = [], some, tmp_path / "wrong.tsv"
    if how == ["table"]:
        group, source, how = ["table"], MELONS, ["--target", "好瓜", "--cv", 3]
    elif how == ["model"]:
        # A model of the opposite is wrong nearly everywhere.
        assert nbspam("train", "--ham", some / "spam", "--spam", some / "ham")[0] == 0
        how = []
    how = [some if each == "some" else each for each in how]
    if not group:
        answer = judged("--intervals", *how)
        assert all(answer[name] is not None for name in NAMES)
        found = set(answer["intervals"])
        # Where all is right, or all is wrong, resamples of most measures do not differ.
        assert found == VARYING or (answer["accuracy"] in (0, 1) and SHARES <= found < VARYING)
        assert set(answer["class_intervals"]) == {"ham", "spam"}
        assert set(answer["shares"]) == {"assumed", "observed", "estimated"}

    files = ["--errors", path, "--report", page, "--plot", tmp_path / "a.SVG"]
    status, report, _ = nbspam(*group, "eval", source, *how, *files)

    assert status == 0
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    assert f", {len(rows)} wrong" in report
    # Like models: they hold names and text of mail.
    assert [file.stat().st_mode & 0o777 for file in (path, page)] == [0o600, 0o600]
    for answer, truth, probability, name in rows:
        assert answer != truth
        assert 0 < float(probability) <= 1
        assert "watermelon-3.0.csv#" in name if source == MELONS else f"/{truth}/" in name
    shown = nbspam(*group, "eval", source, *how, "--errors", "-")[1]
    assert shown == f"{report}\n{path.read_text()}"

    assert f"{source}{' --online' if how == ['--online'] else ''}" in text_of(page)
    html = page.read_text("utf-8")
    assert Page(html).within("pre")[0].strip() == report.strip()
    assert html.count("The share of wrong answers by the number of") == 1
    assert len(ElementTree.parse(tmp_path / "a.SVG").getroot()) > 5
    sketched = nbspam(*group, "eval", source, *how, "--plot", "-")[1]
    assert sketched.startswith(report)
    assert "Calibration" in sketched


def test_the_text_fits_eighty_columns_and_has_the_shares(nbspam, some, config):
    config.write_text('[eval]\nper-week = 9\npolicy = "error"\norder = "name"\n')  # for others
    out = nbspam.out("eval", some, "--cv", 3)
    assert "share of documents, %   assumed      here  estimated\n" in out
    assert max(map(len, out.splitlines())) <= 80
    assert "interval" not in out
    one, same = (nbspam("eval", some, "--cv", 3, "--intervals", "--seed", 1)[1] for _ in "ab")
    assert one == same
    assert "95 % interval" in one


# --- tables are no mail --------------------------------------------------------------------------


def test_rows_of_a_table_are_not_called_messages_nor_ham(nbspam, model, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("size,kind\n" + "1,ham\n2,spam\n1,ham\n1,spam\n2,spam\n2,ham\n" * 3)
    target = ["--target", "kind"]
    against = ["--against", "--model aode"]
    for command in (
        ["train", table, *target],
        ["eval", table],
        ["eval", table, *target, "--cv", 3],
        ["compare", table, *target, "--cv", 3, *against],
        ["info"],
    ):
        out = nbspam.out("table", *command)
        assert "rows" in out or command[0] == "eval"
        assert not {"messages", "documents,"} & set(out.replace("share of documents,", "").split())
        assert "positives" not in out
        if command[0] == "eval":
            assert "ham called spam, %" in out
            assert "lam %" not in out


def test_texts_are_called_texts_and_many_classes_lack_only_the_numbers_of_two(
    nbspam, model, tmp_path
):
    table = tmp_path / "t.csv"
    rows = [f"{label},word{n and label} {n % 3} common" for n in range(9) for label in "abc"]
    table.write_text("label,text\n" + "\n".join(rows))
    answer = nbspam.json("eval", table, "--cv", 3, "--intervals")
    assert {name for name in NAMES if answer[name] is not None} == NAMES - OF_TWO_CLASSES
    assert set(answer["intervals"]) == VARYING - OF_TWO_CLASSES

    table.write_text("kind,words\n" + "".join(f"ham,lunch {n}\nspam,pills {n}\n" for n in "abc"))
    named = "--label-column", "kind", "--text-column", "words"
    assert nbspam("train", table, *named)[1].startswith("read 6 texts (3 ham, 3 spam)")
    assert "trained\t6 texts (3 ham, 3 spam)" in nbspam("info")[1]
    assert nbspam("tune", table, "--cv", 3)[1].startswith("6 texts; a miss costs 1")
    compare = "compare", table, *named, "--cv", 3, "--against", "--pairs"
    assert "6 texts, 3 folds" in nbspam(*compare)[1]


def test_a_model_is_not_praised_for_what_it_learned(nbspam, judged, some, mails, model):
    assert nbspam("train", some)[0] == 0
    n = judged()["known"]
    assert (judged()["n_docs"], judged()["accuracy_of_unknown"]) == (n, None)
    err = nbspam("eval", some)[2]
    assert err == (
        f"nbspam: the model has learned {n} of these {n} messages, so this says nothing of"
        " others; --cv 10 judges models by what they do not know\n"
    )
    costly = "--fp-cost", 2000
    answer = nbspam.json("eval", mails, *costly)
    wrong = round((1 - answer["accuracy_of_unknown"]) * (answer["n_docs"] - n))
    assert (answer["known"], answer["n_docs"] > n) == (n, True)
    assert 0 < wrong == answer["errors"] - judged(*costly)["errors"]
    known, others = nbspam("eval", mails, *costly)[2].split("; ")[:2]
    assert known == f"nbspam: the model has learned {n} of these {answer['n_docs']} messages"
    assert others == f"of the others it gets {100 * answer['accuracy_of_unknown']:.2f} % right"
    assert judged("--cv", 2)["known"] is None
    assert judged("--test", some)["known"] == n


# ---- lazy ----


def test_the_lazy_command_answers_as_train_and_classify(nbspam, folder, trained):
    lazy = nbspam("lazy", folder, folder / "spam" / "1.eml", folder / "ham")
    assert lazy == nbspam("classify", folder / "spam" / "1.eml", folder / "ham")
    assert lazy[0] == 0
    assert nbspam("lazy", folder, folder, "--json") == nbspam("classify", folder, "--json")
    status, _, err = nbspam("lazy", folder, "no/such.eml")
    assert (status, err) == (1, nbspam("classify", "no/such.eml")[2])

    question = b"From: a@b.c\nSubject: quarterly zebra\n\nzebra zebra\n"
    before = nbspam("lazy", folder, "-", "--model", "multinomial", stdin=question)[1]
    (folder / "spam" / "3.eml").write_bytes(question)
    after = nbspam("lazy", folder, "-", "--model", "multinomial", stdin=question)[1]

    assert after.startswith("spam")
    assert before != after

    words = write_files(folder.parent, {"words": b"zebra\nmoney\n"}) / "words"
    how = ("--model", "bernoulli", "--vocabulary", words)
    assert nbspam("train", folder, *how)[0] == 0
    assert nbspam("lazy", folder, folder, *how) == nbspam("classify", folder)


@pytest.mark.parametrize(
    "how", [("--model", "aode", "--features", "20"), ("--model", "network", "--features", "5")]
)
def test_the_lazy_command_knows_models_of_dependent_tokens_and_tables(nbspam, mails, model, how):
    assert nbspam("train", mails, *how)[0] == 0
    assert nbspam("lazy", mails, mails / "spam", *how) == nbspam("classify", mails / "spam")

    model.unlink()
    target = ("--target", "好瓜", *how[:2])
    assert nbspam("table", "train", MELONS, *target)[0] == 0
    lazy = nbspam("table", "lazy", MELONS, MELONS, *target)
    assert lazy == nbspam("table", "classify", MELONS)


# ---- `--report` of eval, compare and explain writes a page, and says at once where it cannot ----


def test_costs_tables_and_mail_from_a_pipe_have_pages(nbspam, mails, model, page):
    words = ["--fp-cost", 9, "--prior", "spam=0.8", "--intervals", "--json", "--per-week", 350]
    assert nbspam("eval", mails, "--cv", 2, "--report", page, *words)[0] == 0
    assert "counts a lost ham as 9 missed spam" in text_of(page)
    assert "95 % interval" in text_of(page)
    assert "Of 350 messages a week mixed like these (179 ham, 171 spam)" in text_of(page)

    options = ["--target", "好瓜", "--test", MELONS, "--report", page]
    assert nbspam("table", "eval", MELONS, *options)[0] == 0
    assert "纹理=清晰" in text_of(page)
    assert nbspam("table", "train", MELONS, *options[:2])[0] == 0
    assert nbspam("table", "eval", MELONS, "--report", page)[0] == 0
    text = text_of(page)
    assert "the model keeps no rows that smaller models could learn from." in text
    assert "nbspam table eval SOURCE --cv 10 --report FILE.html" in text

    paths = sorted((mails / "spam").iterdir())[:20]
    box = b"".join(FROM + path.read_bytes() + b"\n" for path in paths)
    options = ["-m", page.with_name("m.nbspam")]
    assert nbspam("train", mails, *options)[0] == 0
    words = ["--ham", "-", "--format", "mbox", *options, "--report", page]
    assert nbspam("eval", *words, "-q", stdin=box)[::2] == (0, "")
    assert page.read_text("utf-8").count('<div class="text"') == 20


def test_compare_writes_a_page(nbspam, mails, page):
    words = ["compare", mails, "--cv", 2, "--against", "--pairs", "--report", page]
    out = nbspam.out(*words, "--per-week", 100)
    rows = {row[0]: row for row in rows_of(page.read_text("utf-8"), "Side by side")}
    assert rows[""] == ["", "A", "B"]
    assert "of 100 messages a week: ham lost" in rows
    assert "only A right" in out
    options = ["--target", "好瓜", "--cv", 3, "--against", "--model aode"]
    out = nbspam.out("table", "compare", MELONS, *options, "--report", page)
    assert "--model aode" in text_of(page)
    assert nbspam.out("table", "compare", *options, stdin=MELONS.read_bytes()) == out


def test_compare_spells_options_as_they_are_given(nbspam, monkeypatch):
    monkeypatch.setenv("NBSPAM_TABLE_COMPARE_CLASS_PARENTS", "0")  # like a flag that is not given
    ways = "--target 好瓜 --values 好瓜=否,是 --model network --dirichlet 2,3 --dirichlet 触感=1,2"
    words = ["table", "compare", MELONS, "--cv", 2, *ways.split(), "--against", "--model tan"]
    assert nbspam.out(*words).splitlines()[0] == f"A  {ways}"


def test_explain_writes_a_page_although_nobody_reads_the_explanations(
    nbspam, trained, folder, page, monkeypatch
):
    class Closed(io.TextIOWrapper):
        def write(self, text):
            raise BrokenPipeError

    words = ["explain", folder, "--report", page]
    out = nbspam.out(*words)
    assert page.read_text("utf-8").count("<details") == 4
    assert out == nbspam("explain", folder)[1]
    assert nbspam(*words, "--json")[0] == 0
    assert nbspam("explain", folder / "gone", "--report", page)[0] == 1
    page.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Closed(io.BytesIO()))
        assert exit_status(list(map(str, words))) == 0
    monkeypatch.setattr("os.fsync", full_disk)  # which keeps the old page
    assert complains(nbspam(*words), 1, f"--report {page}: No space left on device; free some")
    assert page.read_text("utf-8").count("<details") == 4

    page.unlink()
    page.symlink_to("/dev/null/no.html")
    assert complains(nbspam(*words), 1, f"--report {page}", "give another name")


def test_names_of_pages_and_their_bytes(tmp_path):
    with click.Context(click.Command("eval")):
        check_page(str(tmp_path / "Page.HTML"))
    write_text(["lone \udcff"], "--report", str(tmp_path / "page.html"))
    assert (tmp_path / "page.html").read_text() == "lone \\udcff"
