"""Texts as vectors and a given vocabulary, against fractions; parts of a training."""

import json
import os
import stat
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.naive_bayes import BernoulliNB, MultinomialNB
from sklearn.tree import DecisionTreeClassifier

import nbspam as library
from nbspam.errors import UsageError
from support import HAM, SPAM, complains, json_lines, write_mails

SIX = (
    ("apple apple pear", "ham"),
    ("plum", "ham"),
    ("plum pear", "ham"),
    ("cash apple", "spam"),
    ("cash", "spam"),
    ("pear", "spam"),
)
GIVEN = ["zebra", "plum", "apple"]  # no text has the first


@pytest.fixture
def six(tmp_path):
    (tmp_path / "six.tsv").write_text("".join(f"{label}\t{text}\n" for text, label in SIX))
    # As an editor of Windows writes it.
    (tmp_path / "given.txt").write_bytes("\r\n".join(["\ufeffzebra", *GIVEN[1:], ""]).encode())
    return tmp_path / "six.tsv"


def share(name, token, label):
    """Return P(token given class) over the given vocabulary, by Laplace's rule."""
    texts = [text.split() for text, of in SIX if of == label]
    if name == "bernoulli":
        return Fraction(sum(token in text for text in texts) + 1, len(texts) + 2)
    words = [word for text in texts for word in text if word in GIVEN]
    return Fraction(words.count(token) + 1, len(words) + len(GIVEN))


def posterior(name, text):
    joint = {"ham": Fraction(1, 2), "spam": Fraction(1, 2)}
    for label in joint:
        for token in GIVEN:
            p, n = share(name, token, label), text.split().count(token)
            joint[label] *= (p if n else 1 - p) if name == "bernoulli" else p**n
    return {label: float(p / sum(joint.values())) for label, p in joint.items()}


@pytest.mark.parametrize("name", ["bernoulli", "multinomial"])
@pytest.mark.parametrize("text", ["apple apple pear", "zebra", "plum zebra", "fig"])
def test_a_model_counts_the_tokens_of_a_given_vocabulary(nbspam, six, tmp_path, name, text):
    how = "--model", name, "--vocabulary", tmp_path / "given.txt", "-m", tmp_path / "m"
    assert "learned 3 tokens" in nbspam("train", six, *how)[1]
    expected = pytest.approx(posterior(name, text))
    answer = nbspam("classify", "--json", "-m", tmp_path / "m", stdin=text.encode())
    (verdict,) = json_lines(answer[1])
    assert (verdict["posterior"], verdict["score"]) == (expected, None)  # none is combined
    model = library.train(SIX, model=name, vocabulary=GIVEN)
    assert model.classify(text).posterior == expected
    X, tokens = library.vectorize([text for text, _ in SIX], vocabulary=GIVEN)
    their = (BernoulliNB if name == "bernoulli" else MultinomialNB)()
    their.fit(X, [label for _, label in SIX])
    found = their.predict_proba(library.vectorize([text], vocabulary=tokens)[0])[0]
    assert dict(zip(their.classes_.tolist(), found, strict=True)) == expected

    shown = dict.fromkeys(GIVEN)
    prior, *lines, _ = nbspam("info", "-m", tmp_path / "m")[1].splitlines()[-5:]
    assert prior == "(class)\t0.500000 (3)\t0.500000 (3)"
    for line in lines:
        token, *cells = line.split("\t")
        shown[token] = [float(cell.split()[0]) for cell in cells]
    assert shown == {
        token: pytest.approx([float(share(name, token, c)) for c in ("ham", "spam")], abs=1e-6)
        for token in GIVEN
    }
    refused = nbspam("update", six, "-m", tmp_path / "m")  # such a model does not learn on
    assert complains(refused, 1, "as after --unlabelled or --vocabulary")
    with pytest.raises(UsageError, match="not for a table of columns"):
        library.train([{"a": 1, "y": "n"}], target="y", vocabulary=GIVEN)


def test_vectors_are_written_with_their_labels(nbspam, six, tmp_path):
    path = tmp_path / "six.npz"
    status, out, err = nbspam("vectorize", six, "-o", path)
    X, tokens = library.vectorize([text for text, _ in SIX])
    assert (status, out.splitlines(), err) == (0, tokens, "")
    DecisionTreeClassifier().fit(sparse.load_npz(path), np.load(path)["labels"])
    assert sparse.load_npz(path).toarray().tolist() == X.toarray().tolist()
    assert np.load(path)["labels"].tolist() == [label for _, label in SIX]
    named = "--vocabulary", tmp_path / "given.txt"
    assert nbspam("vectorize", six, "-o", path, "--binary", *named)[1].splitlines() == GIVEN
    assert sparse.load_npz(path).toarray()[0].tolist() == [0, 0, 1]
    nbspam("vectorize", six, "-o", tmp_path / "six.csv")
    table = (tmp_path / "six.csv").read_text().splitlines()
    assert table[:2] == ["apple,cash,pear,plum,label", "2,0,1,0,ham"]
    (tmp_path / "given.txt").write_text("label\nplum\n")
    nbspam("vectorize", six, "-o", tmp_path / "six.csv", *named)
    assert (tmp_path / "six.csv").read_text().startswith("label,plum,(label)\n0,0,ham\n0,1,ham\n")
    for name in ("-", "six.xlsx"):
        assert complains(nbspam("vectorize", six, "-o", name), 2, f"{name}: neither .npz nor .csv")

    X, tokens = library.vectorize(["a b", "a c", ""], min_df=2)
    assert (tokens, X.toarray().tolist()) == (["a"], [[1], [1], [0]])
    # Runs end at the 1,000th byte of a text, here within a character.
    X, tokens = library.vectorize(["x" * 999 + "д", "x" * 999 + "я"], characters=True)
    assert len(tokens) == len(set(tokens)) == X.shape[1]
    assert not any("\ufffd" in token for token in tokens)


def test_a_class_whose_name_is_not_utf_8_is_written_as_it_is_printed(nbspam, tmp_path):
    for name, text in ((b"caf\xe9", "apple"), (b"tea", "pear")):
        folder = Path(os.fsdecode(bytes(tmp_path) + b"/mails/" + name))
        folder.mkdir(parents=True)
        (folder / "1.eml").write_text(f"Subject: {text}\n\n{text}\n")
    status, _, err = nbspam("vectorize", tmp_path / "mails", "-o", tmp_path / "mails.csv")
    assert (status, err) == (0, "")
    labels = [row.rpartition(",")[2] for row in (tmp_path / "mails.csv").read_text().split()]
    assert labels == ["label", r"caf\udce9", "tea"]


def test_the_probabilities_of_tokens_are_exported(nbspam, six, tmp_path):
    exported = {}
    for name in ("bernoulli", "multinomial", "complement"):
        nbspam("train", six, "--model", name, "-m", tmp_path / name)
        lines = map(json.loads, nbspam("export", "-m", tmp_path / name)[1].splitlines())
        exported[name] = {
            line["token"]: line.get("probability") for line in lines if "token" in line
        }
    assert exported["bernoulli"]["cash"] == pytest.approx({"ham": 1 / 5, "spam": 3 / 5})
    assert exported["multinomial"]["cash"] == pytest.approx({"ham": 1 / 10, "spam": 3 / 8})
    assert not any(exported["complement"].values())


# ---- `shard` and `merge` of its parts: what they print, and what they refuse ----


@pytest.fixture
def parts(nbspam, tmp_path):
    """Return the paths of both parts of a folder of four messages, and the folder."""
    mails = write_mails(tmp_path / "corpus")
    paths = [tmp_path / f"part.{number}" for number in (1, 2)]
    for number, path in enumerate(paths, 1):
        assert nbspam("shard", f"{number}/2", mails, "-o", path)[0] == 0
    return *paths, mails


def test_parts_are_counted_and_added(nbspam, parts, tmp_path):
    first, _, mails = parts
    out = nbspam.out("shard", "1/2", mails, "-o", first)
    assert out.startswith("read 2 of 4 messages (1 ham, 1 spam)\ncounted ")
    assert out.endswith(f" tokens; part 1/2 in {first}\n")
    assert os.name != "posix" or stat.S_IMODE(first.stat().st_mode) & 0o077 == 0

    whole, once = tmp_path / "whole", tmp_path / "once"
    globbed = sorted(tmp_path.glob("part.*"))  # with locks, as a shell does it
    out = nbspam.out("merge", *globbed, "-o", whole)
    assert out.startswith("added 2 parts: 4 messages (2 ham, 2 spam)\nlearned ")
    assert nbspam("train", mails, "-m", once)[0] == 0
    assert whole.read_bytes() == once.read_bytes()
    # A part that is counted again replaces itself, and keeps another part or a model.
    nbspam.out("shard", "1/2", mails, "-o", first)
    _, _, err = nbspam("shard", "1/1", mails, "-o", first)
    assert err == f"nbspam: the file that was there is kept as {first}~\n"
    assert nbspam.out("merge", f"{first}~", parts[1], "-o", whole).startswith("added 2 parts")
    assert nbspam.out("merge", first, "-o", whole).startswith("added 1 part: 4 messages")

    _, _, err = nbspam("shard", "1/2", mails, "-o", once)
    assert err == f"nbspam: the file that was there is kept as {once}~\n"
    assert nbspam("classify", "-m", f"{once}~", stdin=SPAM)[0] == 0
    _, _, err = nbspam("train", mails, "-m", parts[1])  # somebody may want to merge it
    assert err == f"nbspam: the file that was there is kept as {parts[1]}~\n"


def test_json_says_the_same_and_the_day_is_that_of_the_merge_or_given(nbspam, parts, tmp_path):
    first, second, mails = parts
    (mails / "ham" / "bad.eml.gz").write_bytes(b"not gzip")
    status, out, _ = nbspam("shard", "3/3", mails, "-o", tmp_path / "part", "--json")
    told = json.loads(out)
    assert (status, told["shard"], told["items"]) == (0, [3, 3], 5)
    assert [each["name"] for each in told["skipped"]] == [str(mails / "ham" / "bad.eml.gz")]

    told = nbspam.json("merge", first, second, "-o", tmp_path / "m")
    assert (told["parts"], told["repeated"], told["read"]) == (2, 0, {"ham": 2, "spam": 2})

    nbspam("merge", first, second, "-o", tmp_path / "m", "--day", "2024-02-29")
    lines = nbspam("export", "-m", tmp_path / "m")[1].splitlines()
    days = {line["day"] for line in map(json.loads, lines) if "message" in line}
    assert days == {"2024-02-29"}
    twice = ("merge", tmp_path / "m", tmp_path / "m", "-o", tmp_path / "n")
    assert complains(nbspam(*twice, "--day", "2024-02-29"), 2, "--day: for parts of a training")
    for wrong in ("tomorrow", "1969-12-31", "2999-01-01"):
        assert complains(nbspam(*twice, "--day", wrong), 2, "not a day from 1970-01-01 on")


def test_messages_that_come_again_are_counted_once_and_reported(nbspam, tmp_path):
    mbox = tmp_path / "spam.mbox"
    mbox.write_bytes(b"From x\n" + SPAM + b"\nFrom x\n" + SPAM + b"\n")
    (tmp_path / "ham.eml").write_bytes(HAM)
    sources = ("--spam", mbox, "--ham", tmp_path / "ham.eml")
    for number in "123":
        nbspam("shard", f"{number}/3", *sources, "-o", tmp_path / f"p{number}")
    out = nbspam("merge", *(tmp_path / f"p{number}" for number in "123"), "-o", tmp_path / "m")[1]

    assert out.startswith("added 3 parts: 2 messages (1 ham, 1 spam), 1 more than once\n")
