"""The library's face, as its users see it."""

import copy
import importlib
import json
import os
import pickle
import subprocess
import sys
import time
import warnings
from contextlib import chdir
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from scipy import sparse

import nbspam
from nbspam.arrays import today
from nbspam.errors import InputError, ModelFileError, NbspamError, NotTrainedError, UsageError
from nbspam.models.network_questions import Belief
from nbspam.sources.items import read_items
from nbspam.store.open import load_tokens
from support import HAM, LIHANG, MELONS, ROOT, SPAM

FOUR = [("a", "x"), ("b", "y"), ("c", "x"), ("d", "y")]
PAIRS = [("what does it cost", "sales"), ("it does not start", "help")] * 4


@pytest.fixture(scope="module")
def mail_model(mails):
    return nbspam.train(mails)


@pytest.fixture
def stored(folder, tmp_path):
    nbspam.train(folder).save(tmp_path / "m.nbspam")
    return nbspam.load(tmp_path / "m.nbspam")


def test_the_face_has_at_most_sixteen_names_and_type_checkers_see_all_of_them():
    assert len(nbspam.__all__) <= 16
    assert set(nbspam.__all__) <= set(dir(nbspam))
    source = (ROOT / "nbspam" / "__init__.py").read_text()
    for name in nbspam.__all__:
        assert getattr(nbspam, name).__name__.removeprefix("nbspam.") == name
        assert f"import {name} as {name}" in source
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = nbspam.nothing
    assert "TYPE_CHECKING = False" not in source  # behind that, Jedi completes no names
    assert (ROOT / "nbspam" / "py.typed").exists()


def test_importing_it_imports_nothing_that_takes_time():
    slow = "{'numpy', 'click', 'typing'} & set(sys.modules)"
    script = f"import sys, nbspam; slow = {slow}; nbspam.models; print(slow)"
    # Without site-packages, where other packages may import typing at every start.
    command = [sys.executable, "-S", "-c", script]
    done = subprocess.run(command, capture_output=True, cwd=ROOT, text=True)

    assert done.stdout == "set()\n", done.stderr


@pytest.mark.parametrize(("machine", "shown"), [("arm64", ["b"]), ("x86_64", ["a", "b"])])
def test_false_warnings_of_products_on_arm_are_not_shown(monkeypatch, machine, shown):
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine=machine))
    text = "divide by zero encountered in matmul"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        importlib.reload(nbspam)
        for name, module in (("a", "nbspam.models.pairs"), ("b", "program")):
            warnings.warn_explicit(text, RuntimeWarning, name, 1, module)
    assert [each.filename for each in caught] == shown


def test_a_message_is_bytes_a_path_or_an_item_and_a_string_is_text(mail_model, tmp_path):
    (tmp_path / "message.eml").write_bytes(SPAM)
    item = next(iter(read_items([str(tmp_path / "message.eml")])))
    verdict = mail_model.classify(SPAM)

    assert verdict.label in mail_model.classes
    for same in (tmp_path / "message.eml", item):
        assert mail_model.classify(same).posterior == verdict.posterior
    text = mail_model.classify(SPAM.decode())
    assert text.posterior != verdict.posterior  # read as text, headers and all


def test_many_are_judged_in_order_and_what_cannot_be_read_is_skipped(mail_model, tmp_path):
    (tmp_path / "damaged.gz").write_bytes(b"not gzip")
    given = [HAM, tmp_path / "none.eml", tmp_path / "damaged.gz", SPAM]
    first, *skipped, last = mail_model.classify_many(given)

    assert [each.name for each in skipped] == [str(path) for path in given[1:3]]
    assert all(isinstance(each, nbspam.Skipped) for each in skipped)
    assert first == mail_model.classify(HAM)._replace(name="#0")
    assert last == mail_model.classify(SPAM)._replace(name="#3")
    with pytest.raises(InputError, match=r"none\.eml"):
        mail_model.classify(tmp_path / "none.eml")
    of_one_name = [nbspam.Item("same", None, data) for data in (HAM, SPAM)]
    found = [verdict.posterior for verdict in mail_model.classify_many(of_one_name)]
    assert found == [first.posterior, last.posterior]


def test_saving_to_its_own_path_keeps_what_others_taught_and_another_is_a_copy(stored, tmp_path):
    assert repr(stored) == f"<Model of ham, spam; {str(tmp_path / 'm.nbspam')!r}>"
    other = nbspam.load(tmp_path / "m.nbspam")
    for n in range(3):
        assert other.update([(b"Subject: x%d\n\ny" % n, "ham")]).learned == 1
    assert other.classify(HAM) == stored.classify(HAM)
    stored.save(tmp_path / "." / "m.nbspam")

    assert load_tokens(str(tmp_path / "m.nbspam")).table.n_docs == 7
    assert not (tmp_path / "m.nbspam.journal").exists()
    assert stored.update([(b"Subject: x1\n\ny", "ham")]).already_known == 1
    stored.save(tmp_path / "copy.nbspam")
    with chdir(tmp_path):
        copied = nbspam.load("copy.nbspam")
    assert copied.update([(b"Subject: x\n\ny", "ham")]).learned == 1
    copies = [load_tokens(str(tmp_path / f"{name}.nbspam")) for name in ("m", "copy")]
    assert [each.table.n_docs for each in copies] == [7, 8]


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]
)
def test_a_model_is_copied_and_pickled_a_stored_one_by_its_path(folder, tmp_path, copied):
    in_memory = nbspam.train(folder)
    assert repr(in_memory) == "<Model of ham, spam; not saved>"
    lesson = [(b"Subject: seed catalogue\n\ntulips\n", "ham")]
    in_memory.update(lesson)
    in_memory.save(tmp_path / "m.nbspam")
    stored = nbspam.load(tmp_path / "m.nbspam")
    another, same = copied(in_memory), copied(stored)

    for model in another, same:
        assert model.classify(SPAM) == in_memory.classify(SPAM)
        assert model.update(lesson).already_known == 1
        assert model.unlearn([lesson[0][0]]).unlearned == 1
    assert in_memory.update(lesson).already_known == 1
    assert stored.update(lesson).learned == 1  # the copy un-learned it in the file of both


def test_texts_come_as_pairs_and_classes_are_whatever_their_labels_are():
    texts, labels = zip(*PAIRS, strict=True)
    model = nbspam.train(zip(texts, np.array(labels), strict=True))
    assert model.classify("what is the cost").label == "sales"
    assert model.classifier.settings.reading == "text"
    again = [("what a bill", np.str_("sales")), nbspam.Item("#", np.str_("help"), b"a lamp", True)]
    assert model.update([*again, ("no label", float("nan"))]).learned == 2
    assert model.relabel(["a lamp"], to=np.str_("sales")).moved == 1
    assert model.classes == ("help", "sales")
    numbered = nbspam.train(zip(texts, np.array([1.0, 0.0] * 4), strict=True))
    assert (numbered.classes, numbered.update([("a bill", 1)]).learned) == (("0", "1"), 1)


def test_the_largest_number_of_features_is_one_that_a_model_holds(tmp_path):
    nbspam.train(PAIRS, max_features=(1 << 63) - 1).save(tmp_path / "m")
    assert nbspam.load(tmp_path / "m").classes == ("help", "sales")


def test_an_empty_label_is_none_and_unlearns_nothing():
    model = nbspam.train([*PAIRS, ("nobody knows", ""), nbspam.Item("#", "", b"nor this", True)])
    assert (model.classes, len(model.skipped)) == (("help", "sales"), 2)
    outcome = model.update([(PAIRS[0][0], "")], new_class=True)
    assert (outcome.unlearned, len(outcome.skipped)) == (0, 1)
    with pytest.raises(UsageError, match="relabel: an empty class; name one, or use unlearn"):
        model.relabel([PAIRS[0][0]], to="", new_class=True)


@pytest.mark.parametrize("label", ["help\0", "\0", "text of a cell that has no end " * 100])
def test_a_label_that_is_no_name_is_skipped(label):
    """An array of labels drops a NUL at the end, and gives each the room of the longest."""
    model = nbspam.train([*PAIRS, ("nobody knows", label)])
    assert (model.classes, len(model.skipped)) == (("help", "sales"), 1)
    outcome = model.update([("nor this", label)], new_class=True)
    assert [each.reason for each in outcome.skipped] == ["its label is no name of a class"]
    assert model.classes == ("help", "sales")
    with pytest.raises(UsageError, match=r"^[^:]{1,300}: not among .* new_class makes"):
        model.update([("nor this", label)])


def test_a_table_is_trained_by_its_target_and_judges_rows(tmp_path):
    melons = nbspam.train(MELONS, target="好瓜")
    (first, *_) = melons.classify_many(MELONS)

    assert melons.classes == ("否", "是")
    assert melons.classify({"纹理": "清晰", "密度": 0.697}).label == "是"
    assert melons.explain({"纹理": "清晰"}).verdict.label == "是"
    melons.save(tmp_path / "melons.nbspam")
    assert next(nbspam.load(tmp_path / "melons.nbspam").classify_many(MELONS)) == first
    assert next(melons.classify_many([{"纹理": "清晰"}])).name == "#0"


def test_factors_and_estimates_are_those_of_example_4_2_in_li_hang():
    model = nbspam.train(LIHANG, target="Y")
    prior, _, last = model.factors({"X1": "2", "X2": "S"}).product.tolist()
    assert prior == pytest.approx([7 / 17, 10 / 17])
    assert last == pytest.approx([28 / 459, 5 / 153])
    found = [e for e in model.estimates() if e["of"] == {"X2": "S"}]
    assert [(e["given"]["Y"], e["count"]) for e in found] == [("-1", 3), ("1", 1)]
    assert [e["probability"] for e in found] == pytest.approx([4 / 9, 2 / 12])


def test_of_equal_products_the_first_class_is_the_answer():
    """P(row, a) = 1/2 · 3/5 · 2/5 · 1/5; P(row, b) has the same factors in another order."""
    rows = ("pqqa", "ppqa", "qqqa", "qqpb", "qppb", "qqqb")
    model = nbspam.train([dict(zip("uvwy", row, strict=True)) for row in rows], target="y")
    row = dict.fromkeys("uvw", "p")
    assert (model.classify(row).label, model.explain(row).towards) == ("a", "a")


@pytest.mark.parametrize("how", [
    {"model": "aode", "max_features": 20}, {"model": "multinomial", "vocabulary": ["meeting"]},
])  # fmt: skip
def test_models_that_keep_no_messages_answer_and_do_not_learn_on(mails, tmp_path, how):
    model = nbspam.train(mails, **how)
    model.save(tmp_path / "m.nbspam")
    again = nbspam.load(tmp_path / "m.nbspam")

    assert again.classify(SPAM) == model.classify(SPAM)
    for each in (model, again):
        with pytest.raises(UsageError, match="does not learn on"):
            each.update([(SPAM, "spam")])


def test_cross_validation_is_that_of_nbspam_eval(request, mails):
    result = nbspam.cross_validate(mails, cv=3, seed=1, dirichlet=[3, 7], strip=None)
    judged = request.getfixturevalue("nbspam").json
    words = "--cv", "3", "--seed", "1", "--dirichlet", "3,7"
    assert result.accuracy == judged("eval", *words, mails)["accuracy"]
    assert result.n_docs == 196
    assert repr(result) == f"<Result of 196 documents; accuracy {result.accuracy:.4f}>"


def test_results_show_themselves_in_one_line(mail_model):
    clusters = nbspam.cluster([{"n": n} for n in (1, 2, 9, 8)], 2, rows=True)
    assert repr(clusters) == "<Clustering of 4 documents as 1, 2>"
    assert len(repr(mail_model.explain(SPAM))) < 400
    assert repr(mail_model.explain(SPAM)).startswith("<Explanation of spam 0.")


def test_a_type_checker_lets_the_answer_of_a_query_be_used_as_either_kind():
    assert Any in get_args(get_type_hints(nbspam.query, localns={"Belief": Belief})["return"])


def test_what_cannot_be_trained_on_is_one_clear_error():
    for given, error in (
        ("mails/", "one text is no collection"),
        ([3], "give a str, bytes or pathlib.Path"),
        ([("a", "spam", 1)], "tuple: neither text nor mail"),
        ([{"sky": "sun"}], "dict: neither text nor mail; give .*, or for rows .* their target"),
        (3, "int: no collection of texts"),
        ({"ham": ["a"], "spam": ["b"]}, "dict: no collection of texts"),
        (np.array([["a", "spam"]]), "or for a table its target"),
        (Path("no/such/folder"), "no/such/folder"),
    ):
        with pytest.raises(NbspamError, match=error):
            nbspam.train(given)


def test_what_makes_no_sense_is_refused(stored):
    melons = nbspam.train(MELONS, target="好瓜")
    network = ROOT / "corpora/machines-network.json"
    for call, error, why in (
        (lambda: nbspam.train([("a", "x")]), NotTrainedError, "only one .*, or pairs of data and"),
        (lambda: nbspam.train(PAIRS, class_prior={"help": 1}), UsageError, "uniform, or numbers"),
        (lambda: nbspam.train(PAIRS, weightin=1), UsageError, "did you mean weighting"),
        (lambda: nbspam.train(PAIRS, bogus=1), UsageError, "no option 'bogus'; they are those"),
        (lambda: nbspam.train(PAIRS, structure={}), UsageError, "give target too"),
        (lambda: nbspam.train(PAIRS, em=True), UsageError, "em: for rows"),
        (lambda: nbspam.train(["a,b\n1,2"], target="b"), UsageError, "not a row of a table"),
        (lambda: nbspam.train(ROWS, target="ply"), InputError, "rows: no column 'ply'; did you m"),
        (lambda: nbspam.train(np.array([1]), target=0), UsageError, "one row or column"),
        (lambda: nbspam.train(Frame("sky", "sky "), target="y"), InputError, "called 'sky'; rena"),
        (lambda: nbspam.train(ARROW_TWICE, target="y"), InputError, "columns are called 'a'; re"),
        (lambda: nbspam.train({"a": [1, 2]}, target="a"), InputError, "'a' has several cells; gi"),
        (lambda: nbspam.cross_validate(PAIRS, target="y"), UsageError, "an estimator of nbspam"),
        (lambda: nbspam.train(PAIRS, engine=3), UsageError, "int is none; give a name"),
        (lambda: nbspam.cross_validate(PAIRS, engine=3), UsageError, "int is none; give a name"),
        (lambda: of_rows(engine="loky"), UsageError, "engine: for mail"),
        (lambda: of_rows(max_tokens=9), UsageError, "a table of columns"),
        (lambda: nbspam.vectorize(["a"], vocabulary=["a", "a"]), UsageError, "twice"),
        (lambda: nbspam.vectorize([Path("gone.eml")]), UsageError, "gone.eml: .*; leave it out"),
        (lambda: nbspam.cluster(["a"], 2, drop=np.ones(2)), UsageError, "say rows=True"),
        (lambda: nbspam.cluster(["a", "b"], 5), UsageError, "^k 5: not from 2 to the number"),
        (lambda: nbspam.cluster(["a", "b"], 2, typical=-1), UsageError, "typical: -1 is not"),
        (lambda: nbspam.cluster(MELONS, 2, rows=True, alpha="auto"), UsageError, "for texts"),
        (lambda: nbspam.cluster(MELONS, 2, rows=True, start=[]), UsageError, "for texts"),
        (lambda: nbspam.cluster(["a", "b"], 2, start=[]), UsageError, "start: not components"),
        (lambda: nbspam.query(stored, "class"), UsageError, "no network; .* --model network -m n"),
        (lambda: nbspam.query(network, independent="part"), UsageError, "not two variables"),
        (lambda: nbspam.query(network, "part", gibbs=""), UsageError, "^gibbs: '' is not a wh"),
        (lambda: nbspam.train(PAIRS, model=[]), UsageError, r"^model: \[\] is not a name; give"),
        (lambda: stored.save(""), ModelFileError, "^'': not the name of a file; give another one"),
        (lambda: melons.save("a\0b"), ModelFileError, r"^'a\\x00b': not the name of a file"),
        (lambda: nbspam.train(PAIRS).learn_sent_mail([SPAM]), UsageError, "for mail, .* of te"),
        (lambda: melons.classify({"密度": "x"}), InputError, "or train with categorical '密度'"),
        (
            lambda: nbspam.train(PAIRS, ledger=False).unlearn(PAIRS),
            UsageError,
            "train it again without ledger=False$",
        ),
        (lambda: nbspam.load(5), UsageError, "int: no path; give a str or pathlib.Path"),
        (lambda: stored.save(None), UsageError, "NoneType: no path"),
        (lambda: stored.classify(3), UsageError, "neither text nor mail"),
        (lambda: melons.classify("清晰"), UsageError, "give a dict"),
        (lambda: melons.classify(MELONS), UsageError, "several rows; give one, or classify_many"),
        (lambda: melons.update(3), UsageError, "int: not a row of a table"),
        (lambda: melons.factors({"密度": "?!"}), InputError, r"密度 is '\?!', not a number"),
        (lambda: stored.factors("x"), UsageError, "factors and estimates are of tables"),
        (lambda: stored.update([(SPAM, "spam")], policy="no"), UsageError, "everything, error, n"),
        (lambda: stored.update((SPAM, "spam")), UsageError, "one pair .*; give a list of pairs"),
    ):
        with pytest.raises(error, match=why):
            call()


def test_a_number_that_makes_no_sense_is_refused():
    for call, error in (
        (lambda: nbspam.train(PAIRS, jobs=0), "jobs: 0 is not a whole number from 1 up"),
        (lambda: nbspam.vectorize(["a"], jobs="x"), "jobs: 'x' is not a whole number"),
        (lambda: nbspam.train(PAIRS, max_tokens=-1), "max_tokens: -1 is .* whole number from 1"),
        (lambda: nbspam.train(PAIRS, max_features=0.5), "^max_features: 0.5 is not a whole"),
        (lambda: nbspam.train(PAIRS, min_df=True), "^min_df: True is not a whole number from 1"),
        (lambda: nbspam.train(PAIRS, pairs=1), "pairs: 1 is neither True nor False; give one"),
        (lambda: nbspam.train(PAIRS, attachments="no"), "attachments: 'no' is neither True nor"),
        (lambda: nbspam.train(PAIRS, day=-1), "day: -1 is not a whole number from 0 to 65,535"),
        (lambda: nbspam.train(PAIRS, dirichlet=3), "dirichlet: 3 are no numbers; give one for ea"),
        (lambda: of_rows(values={"sky": [1, 1]}), "to their different"),
        (lambda: nbspam.train(PAIRS, beta=3, model="bernoulli"), "beta: 3; give two numbers"),
        (lambda: nbspam.train(PAIRS, beta=np.ones(2), estimate="mle"), "^beta: estimate mle adds"),
        (lambda: nbspam.vectorize(["a"], min_df=-1), "min_df: -1 is not a whole number from 1 up"),
        (lambda: nbspam.cluster(["a"], 2.5), "k: 2.5 is not a whole number from 2 up"),
        (lambda: nbspam.cluster(ROWS, 2, rows=True, seed=-1), "seed: -1 is .* 0 to 4,294,967,295"),
        (lambda: nbspam.cluster(ROWS, 2, rows=True, restarts=0), "restarts: 0 is not a whole"),
        (lambda: nbspam.cluster(ROWS, 2, rows=True, alpha="x"), "alpha: 'x' is not a number from"),
        (lambda: nbspam.cluster(ROWS, 2, rounds="x"), "rounds: 'x' is not a whole number from 1"),
        (lambda: nbspam.cluster(ROWS, 2, epsilon=0), "epsilon: 0 is not a number above 0; give"),
        (lambda: nbspam.cross_validate(FOUR, 2, seed=-1), "seed: -1 is not a whole number"),
        (lambda: of_rows(em={"bogus": 1}), "em: no option 'bogus'; cho"),
        (lambda: of_rows(em={"weight": "x"}), "weight: 'x' is not a num"),
        (lambda: of_rows(em={"restarts": -1}), "restarts: -1 is not a"),
        (lambda: of_rows(discretise="width", bins=1), "^bins: 1 is not a whole number from 2 to"),
    ):
        with pytest.raises(UsageError, match=error):
            call()


@pytest.mark.parametrize(
    ("seconds", "day"), [(-2 * 86_400, 0), (20_000 * 86_400 + 1, 20_000), (1e12, 65_535)]
)
def test_the_day_is_one_that_a_model_holds(monkeypatch, seconds, day):
    monkeypatch.setattr(time, "time", lambda: seconds)  # a clock that is wrong by a century
    assert today() == day


# --- rows in memory, vectors, EM, clusters, queries ------------------------------------------

ROWS = [
    {"sky": s, "wind": w, "play": p} for s, w, p in zip("ssrrsr", "hlhllh", "ynynyn", strict=True)
]
ARROW_TWICE = SimpleNamespace(column_names=("a", "a"), to_pylist=list)


def of_rows(**options):
    """Return a model of these rows."""
    return nbspam.train(ROWS, target="play", **options)


class Frame:
    """The methods of a DataFrame that are used."""

    def __init__(self, *names):
        self.names = names

    def __iter__(self):
        return iter(self.names)

    def to_dict(self, orient):
        assert orient == "records"
        return [
            {**row, "wind": float("nan") if row["wind"] == "?" else row["wind"]} for row in ROWS
        ]


def test_rows_in_memory_train_the_model_of_their_file(tmp_path):
    rows = "".join(f"{','.join(row.values())}\n" for row in ROWS)
    (tmp_path / "play.csv").write_text(f"sky,wind,play\n{rows}")
    of_file = nbspam.train(tmp_path / "play.csv", target="play")
    polars = SimpleNamespace(to_dicts=lambda: ROWS, to_dict=None)
    arrow = SimpleNamespace(to_pylist=lambda: ROWS)
    for given in (ROWS, Frame(*ROWS[0]), polars, arrow, iter(ROWS)):
        model = nbspam.train(given, target="play")
        assert model.classify({"sky": "s", "wind": None}) == of_file.classify({"sky": "s"})


def test_rows_without_any_column_of_the_model_are_refused():
    model = of_rows()
    said = r"#0: none of its columns \(0, 1\) is the model's; give some of: sky, wind, play"
    for rows in [{0: "s", 1: "h"}], np.eye(2):
        with pytest.raises(InputError, match=said):
            _ = [*model.classify_many(rows)]
    assert model.classify({}).posterior == model.classify({"sky": None}).posterior
    row = SimpleNamespace(ndim=1, to_dict=lambda: {"sky": "s"})  # as `iterrows` of pandas has it
    assert model.classify(row) == model.classify({"sky": "s"})


def test_whole_numbers_are_the_same_categories_as_floats():
    """As a DataFrame has them where a cell of the column is missing, by any of its names."""

    class NA:
        def __str__(self):
            return "<NA>"

        def __ne__(self, other):
            raise TypeError("boolean value of NA is ambiguous")

    rows = [{"a": n, "y": n > 1} for n in (1, 2, 3)] * 2
    model = nbspam.train(rows, target="y", structure={"a": ["y"]})
    of_ints, of_floats = (
        list(model.classify_many([{"a": a} for a in cells]))
        for cells in ([1, 3, None, None], [1.0, np.float64(3), float("nan"), NA()])
    )
    assert of_ints == of_floats
    one, same = (nbspam.query(model, "y", {"a": a}).probability for a in ("1", 1.0))
    assert one.tolist() == same.tolist()


def test_a_row_of_a_file_is_the_same_row_in_memory(tmp_path):
    rows = [{" flag": n > 1, "n": float(n), "y": f"{n > 1} "} for n in (-1, 2, 3)] * 2
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    cells = [",".join(map(str, row.values())).upper() for row in rows]
    (tmp_path / "t.csv").write_text("\n".join(["flag,n,y", *cells]))
    for path in tmp_path.iterdir():
        of_file = nbspam.train(path, target="y", values={"n": [-1, 2, 3]})
        answers = [*of_file.classify_many(path)]
        for given in rows, [{**row, "n": int(row["n"])} for row in rows]:
            found = zip(of_file.classify_many(given), answers, strict=True)
            assert all(one.posterior == other.posterior for one, other in found)
        assert of_file.update(given).notes == ()


def test_arrays_are_rows_whose_columns_are_numbered():
    X = np.array([[0, 1, 0], [1, 0, 1], [1, 1, 1], [0, 0, 0]])
    for given in (X, sparse.csr_array(X)):
        for how in ({"categorical": ("0", 1)}, {"values": {0: [0, 1], "1": range(2)}}):
            model = nbspam.train(given, target=2, **how)
            # Laplace: P(1) = 1/2, P(column 0 is 1 | 1) = 3/4, P(column 1 is 1 | 1) = 2/4.
            assert model.classify({"0": 1, "1": 1}).probability == pytest.approx(3 / 4)
        model = nbspam.train(given, target=2, drop=1, numeric=None, dirichlet={0: [1, 2]})
        assert model.classify({0: 1}).probability == pytest.approx(4 / (4 + 2))
        assert nbspam.query(nbspam.train(given, target=2, structure={0: [2]}), "2", {0: 1})


def test_a_string_is_one_name():
    assert nbspam.vectorize(["plum pear"], vocabulary="plum")[1] == ["plum"]
    found = nbspam.cluster([{"n": n, "id": n} for n in (1, 2, 9, 8)], 2, rows=True, drop="id")
    assert {each.column for each in found.typical["1"]} == {"n"}
    model = of_rows(drop="wind", categorical="sky")
    assert model.classifier.schema.names == ("sky", "play")
    assert nbspam.train(PAIRS, strip="quotes").classifier.settings.strip == ("quotes",)


def test_a_table_of_one_class_gives_every_row_that_class_and_python_warns():
    with pytest.warns(UserWarning, match="'play' is 'y' in every row: one class"):
        model = nbspam.train([{**row, "play": "y"} for row in ROWS], target="play")
    assert (model.classes, model.classify({"sky": "s"}).label) == (("y",), "y")
    numbered = [{"n": n, "x": n % 2} for n in range(9)]
    with pytest.warns(UserWarning, match="'n' only tells the rows apart: drop n leaves it out$"):
        nbspam.cluster(numbered, 2, rows=True)


def test_em_shows_its_rounds():
    few, many = PAIRS[:4], [text for text, _ in PAIRS] * 3
    model = nbspam.train(few, unlabelled=many, em={"weight": 0.5, "rounds": 3}, min_df=1)
    assert len(model.steps) == 4
    assert [s.log_posterior for s in model.steps] == sorted(s.log_posterior for s in model.steps)
    rows = [*ROWS, {"sky": "s", "wind": "h", "play": ""}]
    by_rows = nbspam.train(rows, target="play", em={"epsilon": 1e-9, "hard": True})
    assert by_rows.steps[-1].change < 1e-9
    assert of_rows(unlabelled=ROWS[:2], em=True).steps


def test_clusters_of_texts_and_of_rows():
    found = nbspam.cluster(["plum pear fig", "pear plum", "tax rent", "rent tax bill"] * 3, 2)
    best = found.share.argmax(axis=1).tolist()
    assert best in ([0, 0, 1, 1] * 3, [1, 1, 0, 0] * 3)
    fruit = {token.token for token in found.typical[found.clusters[best[0]]]}
    assert {"plum", "pear"} <= fruit
    assert found.names[:2] == ("#0", "#1")
    rows = nbspam.cluster([{"n": n} for n in (1, 2, 1.5, 9, 9.5, 8)], 2, rows=True, epsilon=1e-6)
    assert sorted(round(f[0].mean) for f in rows.typical.values()) == [2, 9]
    assert rows.steps[-1].change < 1e-6


@pytest.mark.parametrize("sky", ["sky", "sky=noon"])
def test_a_network_is_asked_by_the_library(sky):
    rows = [row | {sky: row["sky"]} for row in ROWS]
    model = nbspam.train(rows, target="play", structure={"wind": [sky], "play": [sky]})
    # With Laplace's rule: P(wind h | sky s) = (1 + 1) / (3 + 2).
    belief = nbspam.query(model, "wind=h", {sky: "s"})
    assert belief.probability.tolist() == pytest.approx([2 / 5])
    assert nbspam.query(model, ["wind", "play"]).probability.sum() == pytest.approx(1)
    assert nbspam.query(model, independent=("wind", "play"), evidence=[f"{sky}=s"]) is True
    assert nbspam.query(model, f"{sky}=s").probability.shape == (1,)
    alone = nbspam.query(model, "wind=h", f"{sky}=s")
    assert alone.probability.tolist() == belief.probability.tolist()
    assert nbspam.query(model, independent=("wind", "play")) is False
    assert nbspam.query(model, "wind", gibbs=400, seed=1).sampled.n_samples == 400
    with pytest.raises(UsageError, match="no target"):
        nbspam.query(model)
