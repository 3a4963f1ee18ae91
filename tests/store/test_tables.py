"""Models of tables on disk: update, unlearn, merge and relabel as commands and in the library."""

import json
import os
from concurrent.futures import ProcessPoolExecutor

import pytest

import nbspam as library
from nbspam.errors import UsageError
from nbspam.store.open import load_classifier
from support import MELONS, complains

pytestmark = pytest.mark.usefixtures("quick_disk")
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
    assert (status, out) == (
        0,
        f"added 2 models: 17 rows (9 否, 8 是)\nlearned 好瓜; model in {both}\n",
    )
    assert answers(both) == whole
    status, out, _ = table("merge", model, tmp_path / "other", "-o", both, "--json")
    assert json.loads(out)["read"] == {"否": 9, "是": 8}


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


@pytest.mark.parametrize(
    ("command", "stdin", "status", "words"),
    [
        (
            "update",
            "好瓜,密度\n是,0.5",
            1,
            "-: no column '色泽', which the model has learned from",
        ),
        ("unlearn", "青绿,硬挺,清脆,清晰,平坦,软粘,0.243,0.267,是", 1, "not all of these rows"),
        (
            "merge MODEL MAIL -o OUT",
            "",
            2,
            "mail: not a model of a table; name models of one kind",
        ),
        ("merge MAIL MODEL -o OUT", "", 2, "the model of a table; see: nbspam table"),
    ],
)
def test_what_a_model_of_a_table_cannot_do_is_refused_in_one_line(
    nbspam, table, folder, model, tmp_path, command, stdin, status, words
):
    names = {"MODEL": model, "MAIL": tmp_path / "mail", "OUT": tmp_path / "o"}
    assert nbspam("train", folder, "-m", names["MAIL"])[0] == 0
    assert table("train", MELONS, *TARGET)[0] == 0
    before = model.read_bytes()
    words_of = [names.get(word, word) for word in command.split()]
    assert complains(table(*words_of, stdin=stdin.encode()), status, words)
    assert model.read_bytes() == before
    assert not names["OUT"].exists()


@pytest.mark.parametrize("command", ["update", "unlearn", "relabel --to ham"])
def test_a_model_of_chosen_tokens_says_why_it_does_not_learn_on(nbspam, folder, model, command):
    assert nbspam("train", folder, "--model", "aode", "--features", "9")[0] == 0
    result = nbspam(*command.split(), folder)
    assert complains(
        result, 2, f"{model}: a model of kind features, which cannot learn on, because"
    )


def test_a_crash_leaves_the_model_as_it_was(table, model, halves, monkeypatch):
    assert table("train", halves[0], *TARGET)[0] == 0
    before = model.read_bytes()

    def crash(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("nbspam.disk.os.replace", crash)
        with pytest.raises(KeyboardInterrupt):
            library.load(model).update(halves[1])
    assert model.read_bytes() == before
    assert table("update", halves[1])[:2] == (0, "learned 8\n")


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
        with pytest.raises(UsageError, match="rows of a table are not remembered"):
            each.relabel(rows, "b")
    answer = living_one.classify({"size": "huge"})
    assert stored.classify({"size": "huge"}) == answer
    assert other.classify({"size": "huge"}) == answer  # taught by another object
    stored.save(model)
    assert library.load(model).classify({"size": "huge"}) == answer
