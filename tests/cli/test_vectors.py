"""Texts as vectors, a given vocabulary, and P(token given class): against fractions."""

import json
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.naive_bayes import BernoulliNB, MultinomialNB

import nbspam as library
from nbspam.errors import UsageError
from support import complains, json_lines

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
    (tmp_path / "given.txt").write_bytes("\r\n".join([*GIVEN, ""]).encode())
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
    assert json_lines(answer[1])[0]["posterior"] == expected
    model = library.train(SIX, model=name, vocabulary=GIVEN)
    assert model.classify(text).posterior == expected
    X, tokens = library.vectorize([text for text, _ in SIX], vocabulary=GIVEN)
    their = (BernoulliNB if name == "bernoulli" else MultinomialNB)()
    their.fit(X, [label for _, label in SIX])
    found = their.predict_proba(library.vectorize([text], vocabulary=tokens)[0])[0]
    assert dict(zip(their.classes_.tolist(), found, strict=True)) == expected

    shown = dict.fromkeys(GIVEN)
    for line in nbspam("info", "-m", tmp_path / "m")[1].splitlines()[-3:]:
        token, ham, spam = line.split("\t")
        shown[token] = float(ham), float(spam)
    assert shown == {
        token: pytest.approx([float(share(name, token, c)) for c in ("ham", "spam")], abs=1e-6)
        for token in GIVEN
    }


def test_such_a_model_does_not_learn_on_and_refuses_what_contradicts_it(nbspam, six, tmp_path):
    named = "--vocabulary", tmp_path / "given.txt"
    ours = "-m", tmp_path / "m"
    bernoulli = "--model", "bernoulli"
    assert nbspam("train", six, *bernoulli, *named, *ours)[0] == 0
    assert complains(nbspam("update", six, *ours), 1, "as after --unlabelled or --vocabulary")
    (tmp_path / "twice.txt").write_text("a\na\n")
    for status, words, *options in (
        (2, "--vocabulary: for bernoulli, multinomial", *named),
        (2, "--vocabulary: for bernoulli, multinomial", "--model", "tan", *named),
        (
            2,
            "--min-df, --max-features: --vocabulary",
            "--model",
            "bernoulli",
            "--min-df",
            2,
            *named,
        ),
        (2, "not for a model with --vocabulary", "--model", "bernoulli", "--no-ledger", *named),
        (2, "not for EM", "--unlabelled", six, *named),
        (
            2,
            "a token is there twice",
            "--model",
            "bernoulli",
            "--vocabulary",
            tmp_path / "twice.txt",
        ),
        (1, "give a file of tokens", "--model", "bernoulli", "--vocabulary", tmp_path / "gone"),
    ):
        assert complains(nbspam("train", six, *options, *ours), status, words)
    with pytest.raises(UsageError, match="not for a table of columns"):
        library.train([{"a": 1, "y": "n"}], target="y", vocabulary=GIVEN)


def test_vectors_are_written_with_their_labels(nbspam, six, tmp_path):
    path = tmp_path / "six.npz"
    status, out, err = nbspam("vectorize", six, "-o", path)
    X, tokens = library.vectorize([text for text, _ in SIX])
    assert (status, out.splitlines(), err) == (0, tokens, "")
    assert sparse.load_npz(path).toarray().tolist() == X.toarray().tolist()
    assert np.load(path)["labels"].tolist() == [label for _, label in SIX]
    named = "--vocabulary", tmp_path / "given.txt"
    assert nbspam("vectorize", six, "-o", path, "--binary", *named)[1].splitlines() == GIVEN
    assert sparse.load_npz(path).toarray()[0].tolist() == [0, 0, 1]
    assert complains(nbspam("vectorize", six, "-o", path, "--min-df", 2, *named), 2, "--min-df")
    assert complains(nbspam("vectorize", six, "-o", tmp_path / "no" / "x"), 2, "no folder")


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
