"""What commands refuse to do with models: one line, the status, and nothing written."""

import json
import shlex

import pytest

import nbspam as library
from support import HAM, MELONS, ROOT, SPAM, complains, texts, write_files, write_mails

MELON = f"{MELONS} --target 好瓜"
WRITTEN = {  # what a command reads, by file
    "ham": HAM,
    "spam": SPAM,
    "text.csv": b"text,label\n" + b"some words,a\nother words,b\n" * 4,
    "texts.tsv": b"label\ttext\nham\tplum\nspam\tcash\nham\tpear\nspam\tapple\n",
    "rows": "好瓜,密度\n是,0.5".encode(),
    "row": "青绿,硬挺,清脆,清晰,平坦,软粘,0.243,0.267,是".encode(),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with models of every kind, and what commands read."""
    place = tmp_path_factory.mktemp("refusals")
    mails = write_mails(place / "mails")
    write_files(place, WRITTEN)
    few = [json.dumps({"label": i.label, "text": i.data.decode()}) for i in texts(2, 1)]
    (place / "few.jsonl").write_text("\n".join(few))
    write_files(place / "others", {f"{i.name}.txt": i.data for i in texts(20, 2)})
    write_files(place / "box", {"cur/1.h:2,S": HAM, "new/2.h": SPAM})
    library.train(mails).save(place / "mail")
    library.train(mails, ledger=False).save(place / "unledgered")
    library.train(mails, model="aode", max_features=9).save(place / "features")
    library.train(MELONS, target="好瓜").save(place / "table")
    return place


def contents(place):
    files = (path for path in place.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {path: path.read_bytes() for path in files}


OF_ALL_TOKENS = ("prune -m", "tune mails -m", "sort box -m", "export -m")
IS_FEATURES = "a model of kind features, which this command does not know"
IS_TABLE = "the model of a table; see: nbspam table"
EM = "train few.jsonl --unlabelled"
NOT_WEIGHED = "sees only whether a token is in a document"
THERE = "unknown; choose from fork, dask, loky, ray, or dask:ADDRESS, such as dask:tcp://host:8786"

# Command line (-m: a model, < what it reads), status, words of the line.
REFUSED = [
    # models that do not learn on, or are of another kind
    *((f"{line} features", 2, f"features: {IS_FEATURES}") for line in OF_ALL_TOKENS),
    ("sort box -m table", 2, f"table: {IS_TABLE}"),
    ("filter -m features < spam", 2, f"features: {IS_FEATURES}"),
    *(
        (f"{line} mails -m features", 2, "features: a model of kind features, which cannot learn")
        for line in ("update", "unlearn", "relabel --to ham")
    ),
    *(
        (f"{line} mails -m unledgered", 2, "unledgered: has no ledger … without --no-ledger")
        for line in ("unlearn", "relabel --to ham")
    ),
    ("table update -m table < rows", 1, "-: no column '色泽', which the model has learned from"),
    ("table unlearn -m table < row", 1, "not all of these rows"),
    ("table merge table mail -o new", 2, "mail: not a model of a table; name models of one kind"),
    ("table merge mail table -o new", 2, IS_TABLE),
    # options of training
    ("train text.csv --no-ledger --unlabelled x", 2, "not for EM; leave them out"),
    ("train text.csv --no-ledger --model tan", 2, "not for --model tan; leave them out"),
    ("train text.csv --sent box", 2, "this model is of texts"),
    ("train mails --sent box --unlabelled text.csv", 2, "not for EM"),
    ("train mails --model bernoulli --criterion aic", 2, "--criterion … spode"),
    (
        f"train {ROOT / 'corpora' / 'mail'} --model a2de --features 2000",
        2,
        "values cubed … GiB … fewer",
    ),
    ("train --spam mails/spam --model aode", 1, "two classes"),
    ("train mails --model aode --min-df 99", 1, "--min-df"),
    ("train texts.tsv --model bernoulli --weighting counts", 2, NOT_WEIGHED),
    ("train texts.tsv --model aode --weighting counts", 2, NOT_WEIGHED),
    *(
        (f"train mails --engine {name}", 2, f"--engine {name}: {THERE}")
        for name in ("dusk", "loky:here", "Dask")
    ),
    (f"table eval {MELON} --test {MELONS} --engine loky", 2, "--engine: for --cv; --test trains"),
    # EM, and clusters
    (f"{EM} others --unlabelled-weight -1", 2, "--unlabelled-weight -1"),
    ("train few.jsonl --unlabelled-weight 1", 2, "--unlabelled PATH"),
    (f"{EM} others --model complement", 2, "bernoulli or multinomial"),
    (f"{EM} others --model bernoulli --weighting tf-idf", 2, "tf-idf: --model"),
    (f"{EM} others --alpha 0", 2, "--alpha 0"),
    (f"{EM} others --min-df 1000", 2, "--min-df 1000"),
    # judging
    *(
        (f"classify mails -m mail --prior {stated}", 2, "nbspam: --prior")
        for stated in ("spam", "spam=x", "estimated=1", "=0.3", "eggs=0.3", "spam=2")
    ),
    ("eval mails --model aode --online", 2, "--online: not for"),
    ("compare mails --online --against '--model tan'", 2, "--online: not for --model tan"),
    (f"table compare {MELON} --against '--target y'", 2, "give it outside the quotes"),
    (f"table compare {MELON} --against --pairs", 2, "give options of `nbspam table train`"),
    ("sort box -m mail --spam-folder ../x", 2, "not the name of a Maildir folder"),
]


@pytest.mark.parametrize(("line", "status", "words"), REFUSED)
def test_it_is_refused_in_one_line_and_nothing_is_written(
    nbspam, place, monkeypatch, line, status, words
):
    monkeypatch.chdir(place)
    monkeypatch.setenv("NBSPAM_MODEL", "new")
    before = contents(place)
    command, _, given = line.partition(" < ")
    stdin = WRITTEN.get(given, b"")
    result = nbspam(*shlex.split(command), stdin=stdin)

    assert complains(result, status, *words.split(" … "))
    assert contents(place) == before
    assert result[1] == (stdin.decode() if command.startswith("filter") else "")
