"""Models of tables on disk, and models of every kind under every command."""

import json
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from threading import Thread

import numpy as np
import pytest

import nbspam as library
from nbspam.disk import locked, stamp_of
from nbspam.errors import UsageError
from nbspam.sources.records import rows_given
from nbspam.store.journal import journal_path, write_model
from nbspam.store.modelfile import load_state
from nbspam.store.open import load_classifier, save_classifier
from nbspam.tables.training import learn_rows
from stored import save_state
from support import MELONS, SPAM, complains, json_lines, write_mails

TARGET = ("--target", "好瓜")


@pytest.fixture
def halves(tmp_path):
    """Two tables that make the melons when put together: 9 rows and 8 rows."""
    header, *rows = MELONS.read_text("utf-8").splitlines()
    paths = tmp_path / "one.csv", tmp_path / "two.csv"
    # Both have rows of both classes.
    for path, part in zip(paths, (rows[::2], rows[1::2]), strict=True):
        path.write_text("\n".join([header, *part, ""]), "utf-8")
    return paths


def test_saving_to_its_own_path_loses_no_row_that_others_learn(halves, tmp_path):
    path = str(tmp_path / "m")
    library.train(halves[0], target="好瓜").save(path)
    model = library.load(path)
    with locked(path):
        saving = Thread(target=model.save, args=(path,))
        saving.start()
        saving.join(0.5)
        more = learn_rows(load_classifier(path), list(rows_given(halves[1]))).classifier
        write_model(path, more.to_state(), stamp_of(path))
    saving.join()

    assert model.classifier.model.class_count_.sum() == 17


@pytest.mark.parametrize("name", ["mixed", "network"])
def test_update_unlearn_and_merge_give_the_answers_of_training_at_once(
    table, halves, model, tmp_path, name
):
    def train(path, into=model):
        # For the network, numbers would be cut where the classes of each half change.
        kinds = ("--categorical", "密度", "--categorical", "含糖率") if name == "network" else ()
        assert table("train", path, *TARGET, "--model", name, *kinds, "-m", into)[0] == 0

    def answers(path=model):
        return table("predict", MELONS, "--json", "-m", path)[1]

    train(MELONS)
    whole = answers()
    train(halves[0])
    half = answers()
    assert half != whole
    status, out, _ = table("update", halves[1])
    assert (status, out) == (0, "learned 8\n")
    assert answers() == whole
    assert table("unlearn", halves[1])[:2] == (0, "un-learned 8\n")
    assert answers() == half

    train(halves[1], tmp_path / "other")
    both = tmp_path / "both"
    status, out, _ = table("merge", model, tmp_path / "other", "-o", both)
    said = f"added 2 models: 17 rows (9 否, 8 是)\nlearned 好瓜; model in {both}\n"
    assert (status, out) == (0, said)
    assert answers(both) == whole
    assert table.json("merge", model, tmp_path / "other", "-o", both)["read"] == {"否": 9, "是": 8}


def test_rows_without_names_are_learned_in_the_order_of_training(table, model, tmp_path):
    (tmp_path / "t.csv").write_text("size,y\nbig,a\nsmall,b\n")
    assert table("train", tmp_path / "t.csv", "--target", "y")[0] == 0
    before = model.read_bytes()
    refused = table("update", stdin=b"huge,a\nbig,c\n")
    assert complains(refused, 2, "c: not among the model's classes (a, b)", "--new-class")
    assert model.read_bytes() == before
    status, out, err = table("update", "--new-class", stdin=b"huge,a\nbig,c\n")
    assert (status, out) == (0, "learned 2\n")
    assert err == "nbspam: size: new values huge\nnbspam: c: a new class; the model had a, b\n"
    assert table("info", "--json")[0] == 0
    assert load_classifier(str(model)).classes == ("a", "b", "c")
    before = os.stat(model)
    status, out, err = table("update", stdin=b"size,y\nbig,\n")
    assert (status, out, err) == (1, "skipped 1\n", "nbspam: skipped -#1: no label\n")
    assert os.stat(model).st_ino == before.st_ino  # nothing was written


def _teach(path, rows):
    library.load(path).update(rows)


def test_what_two_processes_teach_at_once_is_all_kept(table, model, halves):
    assert table("train", halves[0], *TARGET)[0] == 0
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(_teach, [model] * 8, [halves[1]] * 8))
    assert load_classifier(str(model)).model.class_count_.sum() == 9 + 8 * 8


def test_the_library_teaches_rows_in_memory_and_on_disk(model, halves):
    rows = [{"size": "big", "y": "a"}, {"size": "small", "y": "b"}]
    path = halves[0].parent / "t.csv"
    path.write_text("size,y\nbig,a\nsmall,b\n")
    living_one = library.train(path, target="y")
    living_one.save(model)
    stored, other = library.load(model), library.load(model)
    for each in (living_one, stored):
        assert each.update([*rows, {"size": "huge", "y": "b"}]).learned == 3
        assert each.unlearn(rows[:1]).unlearned == 1
        for verb, given in ((each.learn_sent_mail, ()), (partial(each.relabel, to="b"), rows)):
            with pytest.raises(UsageError, match="rows of a table are not remembered"):
                verb(given)
    answer = living_one.classify({"size": "huge"})
    assert stored.classify({"size": "huge"}) == answer
    assert other.classify({"size": "huge"}) == answer  # taught by another object
    stored.save(model)
    assert library.load(model).classify({"size": "huge"}) == answer


# ---- models of every kind under every command ----

KINDS = ("table", "features")


@pytest.fixture
def make(nbspam, folder, model):
    """Train a model of a kind on a source; return the source, which the model can judge."""

    def call(kind, *options):
        source, *how = {
            "table": (MELONS, *TARGET),
            "features": (folder, "--model", "aode", "--features", "9"),
            "tokens": (folder,),
        }[kind]
        group = ("table",) if kind == "table" else ()
        assert nbspam(*group, "train", source, *how, *options)[0] == 0
        return source

    return call


@pytest.fixture
def run(nbspam, table):
    """Run a command for the model of a kind."""

    def call(kind, *words):
        return (table if kind == "table" else nbspam)(*words)

    return call


MANY_VALUES = ("--model", "akde", "--discretise", "width", "--bins", "500")  # for few rows


@pytest.mark.parametrize(
    ("kind", "options"), [("table", ()), ("table", MANY_VALUES), ("features", ())]
)
def test_doctor_and_info_know_every_kind(nbspam, run, make, model, kind, options):
    make(kind, *options)
    found = json.loads(nbspam.out("doctor", "--json"))["findings"]
    assert [each["what"] for each in found] == ["file", "rights", "model"]
    assert run(kind, "info")[0] == run(kind, "info", "--json")[0] == 0

    save_state(str(model), {**load_state(str(model)), "learnt": {}})
    status, out, _ = nbspam("doctor")
    assert status == 1
    assert out.startswith("bad\tfile\t")


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_takes_the_place_of_another_and_of_its_journal(
    nbspam, run, make, folder, model, tmp_path, kind
):
    assert nbspam("train", write_mails(tmp_path / "more", 24))[0] == 0
    (folder / "more.eml").write_bytes(SPAM + b"more")
    assert nbspam("update", "--spam", folder / "more.eml")[0] == 0
    (folder / "more.eml").unlink()
    assert os.path.exists(journal_path(str(model)))
    source = make(kind, "-m", model)
    assert not os.path.exists(journal_path(str(model)))
    assert run(kind, "predict", source)[0] == 0


@pytest.mark.parametrize("kind", [*KINDS, "tokens"])
def test_a_model_opened_and_saved_is_the_same_to_the_byte(make, model, tmp_path, kind):
    make(kind)
    copy = tmp_path / "copy.nbspam"
    save_classifier(str(copy), load_classifier(str(model)))
    assert copy.read_bytes() == model.read_bytes()


@pytest.mark.parametrize("kind", [*KINDS, "tokens"])
def test_another_prior_is_bayes_rule_whatever_the_kind(run, make, model, kind):
    source = make(kind)
    classifier = load_classifier(str(model))
    name = classifier.classes[1]

    def posteriors(*options):
        status, out, _ = run(kind, "classify", source, "--json", *options)
        assert status == 0
        return np.array([json.loads(row)["posterior"][name] for row in out.splitlines()])

    p, (q, r) = posteriors(), (0.9, classifier.prior[1])
    expected = p * q / r / (p * q / r + (1 - p) * (1 - q) / (1 - r))
    np.testing.assert_allclose(posteriors("--prior", f"{name}=0.9"), expected, rtol=1e-9)

    assert run(kind, "classify", source, "--prior", "estimated")[0] == 0
    shares = json.loads(run(kind, "eval", source, "--prior", "estimated", "--json")[1])["shares"]
    assert shares["assumed"] == pytest.approx(shares["estimated"], abs=1e-6)

    def explained(*options):
        status, out, _ = run(kind, "explain", source, "--json", "-n", 99, *options)
        assert status == 0
        return json_lines(out)

    if kind == "table":
        factors = run(kind, "explain", source, "--factors", "--json", "--prior", f"{name}=0.9")[1]
        first = json.loads(factors.splitlines()[0])["factors"][0]
        assert first["factor"] == pytest.approx({"否": 0.1, "是": 0.9})
    for row, plain in zip(explained("--prior", f"{name}=0.9"), explained(), strict=True):
        total = row["constant"] + sum(token["contribution"] for token in row["tokens"])
        assert row["score"] == pytest.approx(total)
        towards_name, before = (
            each["score"] * (1 if each["towards"] == name else -1) for each in (row, plain)
        )
        shift = np.log(q / (1 - q)) - np.log(r / (1 - r))
        assert towards_name == pytest.approx(before + shift)


# --- one trial, whatever the model ---------------------------------------------------------


@pytest.mark.parametrize("how", [("--cv", "4"), ("--test", MELONS)])
def test_a_table_is_judged_with_all_that_mail_is_judged_with(table, tmp_path, few_resamples, how):
    loss = tmp_path / "loss.json"
    loss.write_text('{"actions": ["是", "?"], "loss": {"是": [0, 1], "否": [5, 1]}}')
    out = table.out("eval", MELONS, *TARGET, *how, "--intervals", "--loss", loss)
    assert "cost per document" in out
    assert "95 % interval" in out
    values = table.json("eval", MELONS, *TARGET, *how, "--prior", "是=0.9")
    assert values["shares"]["assumed"]["是"] == pytest.approx(0.9)


def test_compare_on_a_table_is_eval_twice(table):
    others = ("--against", "--model aode", "--against", "--discretise width --bins 3")
    out = table.out("compare", MELONS, *TARGET, "--cv", 4, *others, "--json")
    for comparison, options in zip(json_lines(out), others[1::2], strict=True):
        errors = comparison["differences"][0]
        assert errors["name"] == "errors"
        for which, how in (("first", ""), ("second", options)):
            judged = table.json("eval", MELONS, *TARGET, "--cv", 4, *how.split())
            assert errors[which] == round(judged["n_docs"] * (1 - judged["accuracy"]))
