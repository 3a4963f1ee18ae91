"""`nbspam eval` reports every number in every way of judging, under the stated costs."""

import json

import pytest

from nbspam.evaluation.report import MEASURES
from support import MELONS, texts, write_files

NAMES = {measure.name for measure in MEASURES} - {"bayes_risk"}  # which needs stated costs
OF_TWO_CLASSES = {"hm_rate", "sm_rate", "lam", "auc", "sm_at_hm"}


@pytest.fixture
def some(tmp_path, mails):
    """A folder with every eighth of these messages."""
    paths = [path for label in ("ham", "spam") for path in sorted((mails / label).iterdir())[::8]]
    files = {f"{path.parent.name}/{path.name}": path.read_bytes() for path in paths}
    return write_files(tmp_path / "some", files)


@pytest.fixture
def judged(nbspam, some):
    """Run eval: (*arguments) -> its JSON."""

    def run(*arguments):
        status, out, err = nbspam("eval", some, "--json", *arguments)
        assert status == 0, err
        return json.loads(out)

    return run


@pytest.mark.parametrize("how", ["--cv", "--online", "--test", "model"])
def test_eval_reports_every_number_and_its_interval(
    nbspam, judged, some, model, few_resamples, how
):
    if how == "model":
        assert nbspam("train", some)[0] == 0
    ways = {"--cv": ("--cv", 3), "--online": ("--online",), "--test": ("--test", some)}
    answer = judged("--intervals", *ways.get(how, ()))

    assert all(answer[name] is not None for name in NAMES)
    assert set(answer["intervals"]) == NAMES
    assert set(answer["class_intervals"]) == {"ham", "spam"}
    assert set(answer["shares"]) == {"assumed", "observed", "estimated"}


def test_many_classes_lack_only_the_numbers_of_two_classes(nbspam, tmp_path, few_resamples):
    table = tmp_path / "t.csv"
    rows = [f"{label},word{label} {n % 3} common" for n in range(9) for label in "abc"]
    table.write_text("label,text\n" + "\n".join(rows))
    status, out, _ = nbspam("eval", table, "--cv", 3, "--intervals", "--json")

    assert status == 0
    answer = json.loads(out)
    assert {name for name in NAMES if answer[name] is not None} == NAMES - OF_TWO_CLASSES
    assert set(answer["intervals"]) == NAMES - OF_TWO_CLASSES


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


def test_one_document_at_a_time_can_be_left_out(nbspam, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("label,text\n" + "a,x y\na,x z\na,x w\nb,q\nb,q r\n")
    by_name = nbspam("eval", table, "--cv", "loo", "--model", "multinomial", "--json")
    assert (by_name[0], by_name[2]) == (0, "")
    assert json.loads(by_name[1])["n_docs"] == 5
    assert nbspam("eval", table, "--cv", "5", "--model", "multinomial", "--json") == by_name
    other = ("compare", table, "--cv", "loo", "--against", "--model multinomial", "--json")
    assert json.loads(nbspam(*other)[1])["n_folds"] == 5


# --- what was wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how", [["--cv", 3], ["--online"], ["--test", "some"], ["model"], ["table"]]
)
def test_errors_are_listed_in_every_way_of_judging(nbspam, some, model, tmp_path, how):
    group, source, path = [], some, tmp_path / "wrong.tsv"
    if how == ["table"]:
        group, source, how = ["table"], MELONS, ["--target", "好瓜", "--cv", 3]
    elif how == ["model"]:
        # A model of the opposite is wrong nearly everywhere.
        assert nbspam("train", "--ham", some / "spam", "--spam", some / "ham")[0] == 0
        how = []
    how = [some if each == "some" else each for each in how]

    status, report, _ = nbspam(*group, "eval", source, *how, "--errors", path)

    assert status == 0
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    assert f", {len(rows)} wrong" in report
    for answer, truth, probability, name in rows:
        assert answer != truth
        assert 0 < float(probability) <= 1
        assert "watermelon-3.0.csv#" in name if source == MELONS else f"/{truth}/" in name
    shown = nbspam(*group, "eval", source, *how, "--errors", "-")[1]
    assert shown == report + path.read_text()


def test_the_text_fits_eighty_columns_and_has_the_shares(nbspam, some):
    status, out, _ = nbspam("eval", some, "--cv", 3)
    assert status == 0
    assert "share of documents, %   assumed      here  estimated\n" in out
    assert max(map(len, out.splitlines())) <= 80


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
        status, out, err = nbspam("table", *command)
        assert (status, err) == (0, "")
        assert "rows" in out or command[0] == "eval"
        assert not {"messages", "documents,"} & set(out.replace("share of documents,", "").split())
        assert "positives" not in out
        if command[0] == "eval":
            assert "ham called spam, %" in out
            assert "lam %" not in out


def test_texts_are_called_texts(nbspam, model, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("label,text\n" + "ham,lunch on friday\nspam,cheap pills\n" * 3)

    assert nbspam("train", table)[1].startswith("read 6 texts (3 ham, 3 spam)")
    assert "trained\t6 texts (3 ham, 3 spam)" in nbspam("info")[1]
    assert nbspam("tune", table, "--cv", 3)[1].startswith("6 texts; a miss costs 1")
    assert "6 texts, 3 folds" in nbspam("compare", table, "--cv", 3, "--against", "--pairs")[1]


def test_the_seed_draws_the_folds(nbspam, tmp_path):
    rows = [{"label": item.label, "text": item.data.decode()} for item in texts(8, 1, length=0)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    one, again, other = (
        nbspam("eval", tmp_path / "t.jsonl", "--cv", "2", "--seed", seed, "--json")[1]
        for seed in (0, 0, 1)
    )
    assert one == again != other


def test_a_model_is_not_praised_for_what_it_learned(nbspam, judged, some, mails, model):
    assert nbspam("train", some)[0] == 0
    n = judged()["known"]
    assert (judged()["n_docs"], judged()["accuracy_of_unknown"]) == (n, None)
    err = nbspam("eval", some)[2]
    assert err == (
        f"nbspam: the model has learned {n} of these {n} messages, so this says nothing of"
        f" others; nbspam eval {some} --cv 10 judges models by what they do not know\n"
    )
    answer = json.loads(nbspam("eval", mails, "--json")[1])
    wrong = round((1 - answer["accuracy_of_unknown"]) * (answer["n_docs"] - n))
    assert (answer["known"], answer["n_docs"] > n) == (n, True)
    assert 0 < wrong <= answer["errors"]
    known, others = nbspam("eval", mails)[2].split("; ")[:2]
    assert known == f"nbspam: the model has learned {n} of these {answer['n_docs']} messages"
    assert others == f"of the others it gets {answer['accuracy_of_unknown']:.2%} right"
    assert judged("--cv", 2)["known"] is None
