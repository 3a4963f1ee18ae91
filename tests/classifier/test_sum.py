"""Plain models of documents: Bernoulli counts documents, as textbooks and scikit-learn do."""

import math
import string
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import BernoulliNB

import nbspam
from nbspam.classifier.estimator import TextClassifier
from nbspam.evaluation.judging import judge_folds
from nbspam.settings import SettingsChoices, chosen_settings
from nbspam.sources.items import Item
from support import examples

# Six texts; the query `apple`.  Documents of a class that hold a token, of 3 each:
#         apple  pear  plum  cash
#   ham     1     2     2     0
#   spam    1     1     0     2
# By Ng's eq. 4 and 7, phi = (n + 1) / (3 + 2); absent tokens count 1 - phi, priors are equal.
SIX = [
    *(("ham", text) for text in ("apple apple pear", "plum", "plum pear")),
    *(("spam", text) for text in ("cash apple", "cash", "pear")),
]
# For ham 2/5 2/5 2/5 4/5 and for spam 2/5 3/5 4/5 2/5: spam has 3/5 of both together.
VERDICT = "spam\t0.600000\t"
BERNOULLI = ["--model", "bernoulli"]


@pytest.fixture
def sources(tmp_path):
    """Give the six texts in the ways in which users keep them."""
    rows = "".join(f"{c}\t{t}\n" for c, t in SIX)
    (tmp_path / "six.tsv").write_text(f"label\ttext\n{rows}")
    for n, (label, text) in enumerate(SIX):
        (tmp_path / "mails" / label).mkdir(parents=True, exist_ok=True)
        (tmp_path / "mails" / label / f"{n}.txt").write_text(text)
    (tmp_path / "apple.txt").write_text("apple")
    return tmp_path


@pytest.mark.parametrize(
    "source",
    [["six.tsv"], ["mails"], ["six.tsv", "--preset", "tutorial"], ["mails", "--preset", "text"]],
    ids=" ".join,
)
def test_bernoulli_counts_documents_whatever_the_source(nbspam, model, sources, source):
    assert nbspam("train", sources / source[0], *source[1:], *BERNOULLI)[0] == 0
    assert nbspam("classify", sources / "apple.txt")[1].startswith(VERDICT)


def test_unlearned_words_leave_the_model_at_once(nbspam, model, sources):
    # Multinomial by name: counts and Laplace's rule.  Without "cash apple" and "cash", spam has
    # one word, pear, among the three that are left: P(plum | spam) = 1/4, P(plum | ham) = 3/9.
    assert nbspam("train", sources / "six.tsv", "--model", "multinomial")[0] == 0
    for text in (b"cash apple", b"cash"):
        assert nbspam("unlearn", "-", stdin=text)[0] == 0
    said = nbspam("classify", "-", stdin=b"plum")[1]
    odds = Fraction(3, 4) * Fraction(2 + 1, 6 + 3) / (Fraction(1, 4) * Fraction(0 + 1, 1 + 3))
    assert said.startswith(f"ham\t{float(odds / (odds + 1)):.6f}\t")


def test_the_prior_of_the_classes_may_be_named_as_their_column(nbspam, model, sources):
    how = "--model", "multinomial", "--dirichlet", "label=3,2"
    assert nbspam("train", sources / "six.tsv", *how)[0] == 0
    assert nbspam("classify", sources / "apple.txt")[1].startswith(
        "ham\t0.590164\t"
    )  # the guide's


@pytest.mark.parametrize("model", ["bernoulli", "multinomial", "complement", "tan"])
def test_parameters_of_the_classes_are_counts_in_the_library_too(model):
    pairs = [(text, label) for label, text in SIX]
    alike = nbspam.train(pairs, model=model, dirichlet=np.ones(2))
    uneven = nbspam.train(pairs, model=model, dirichlet={None: (7, 1)})

    for text in ("apple", "cash plum", ""):
        one, other = (m.classify(text).posterior for m in (alike, uneven))
        # By (3 + 7) / 14 against (3 + 1) / 14, once (3 + 1) / 8 against the same.
        ratio = Fraction(10, 4)
        odds = one["ham"] / one["spam"] * float(ratio)
        assert other["ham"] / other["spam"] == pytest.approx(odds)


def test_the_classes_have_one_prior_whatever_holds_its_numbers():
    pairs = [(text, label) for label, text in SIX]
    with pytest.raises(nbspam.NbspamError, match="as class_prior; leave out one"):
        nbspam.train(pairs, class_prior=np.full(2, 0.5), dirichlet=(7, 1))


def test_em_keeps_the_stated_prior_of_the_classes(nbspam, model, sources):
    (sources / "more.tsv").write_text("label\ttext\n\tzebra\n\tzebra apple\n")
    how = "--model", "bernoulli", "--unlabelled", sources / "more.tsv", "--unlabelled-weight", "0"
    assert nbspam("train", sources / "six.tsv", "--dirichlet", "1,3", *how)[0] == 0
    assert "class_dirichlet\t1.0, 3.0" in nbspam("info")[1]


# --- maximum likelihood, by fractions --------------------------------------------------------


def _by_fractions(corpus, text):
    """Return P(class given text) by Ng's equation 4, and the prior if no class allows the text."""
    classes, words = sorted({c for c, _ in corpus}), {w for _, t in corpus for w in t.split()}
    joint, prior = [], []
    for name in classes:
        own = [set(t.split()) for c, t in corpus if c == name]
        prior.append(Fraction(len(own), len(corpus)))
        phi = {w: Fraction(sum(w in d for d in own), len(own)) for w in words}
        factors = [p if w in text.split() else 1 - p for w, p in phi.items()]
        joint.append(prior[-1] * math.prod(factors))
    weights = joint if any(joint) else prior
    return {c: float(w / sum(weights)) for c, w in zip(classes, weights, strict=True)}


@pytest.mark.parametrize(
    "corpus",
    [SIX, [("ham", "a b"), ("ham", "a"), ("spam", "c")], [("x", "a"), ("y", "a b"), ("z", "a c")]],
)
def test_without_smoothing_every_text_gets_its_fraction(corpus):
    words = sorted({word for _, text in corpus for word in text.split()})
    texts = [" ".join(some) for n in range(4) for some in combinations(words, n)]
    model = nbspam.train([(t, c) for c, t in corpus], model="bernoulli", alpha=0)
    for text in texts:
        assert model.classify(text).posterior == pytest.approx(_by_fractions(corpus, text))


def test_an_explanation_without_smoothing_says_which_tokens_decide(nbspam, model, sources):
    assert nbspam("train", sources / "six.tsv", *BERNOULLI, "--alpha", "0")[0] == 0
    result = nbspam("explain", "-", stdin=b"cash plum")[1]
    assert result.startswith("ham  probability 0.5000  score +0.00 for ham  -\n")
    assert "\n  +inf    2     0  text  plum\n  -inf    0     2  text  cash\n" in result


def test_words_without_smoothing_have_no_weight_where_it_is_infinite(nbspam, model, sources):
    (sources / "every.tsv").write_text("label\ttext\nham\tfig plum\nspam\tfig\nspam\tfig\n")
    assert nbspam("train", sources / "every.tsv", *BERNOULLI, "--alpha", "0")[0] == 0
    status, out, err = nbspam("words")
    assert (status, err) == (0, "")
    assert "0.000\t1\t2\tfig\n" in out
    assert "0.000\t1\t0\tplum\n" in out


@st.composite
def corpora(draw):
    """Return texts in which words repeat, their classes, and a smoothing."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_classes = int(rng.integers(2, 5))
    n_docs = int(rng.integers(2 * n_classes, 40))
    letters = list(string.ascii_lowercase)
    found = [" ".join(rng.choice(letters, rng.integers(1, 15))) for _ in range(n_docs)]
    y = np.concatenate([np.tile(np.arange(n_classes), 2), rng.integers(0, n_classes, n_docs)])
    return found, y[:n_docs], float(rng.choice([0.01, 0.5, 1.0, 3.0]))


def _oracle(train, y, asked, alpha):
    """Return scikit-learn's P(class given text), shape (n_texts, n_classes)."""
    words = CountVectorizer(token_pattern=r"\S+")
    model = BernoulliNB(alpha=alpha).fit(words.fit_transform(train), y)
    return model.predict_proba(words.transform(asked))


@given(corpora())
@examples(60)
def test_bernoulli_gives_scikit_learns_probabilities(corpus):
    found, y, alpha = corpus
    asked = [*found, "a b b c unheard", "z z z"]
    ours = TextClassifier(model="bernoulli", alpha=alpha).fit(found, y).predict_proba(asked)
    np.testing.assert_allclose(ours, _oracle(found, y, asked, alpha), rtol=1e-9, atol=1e-12)


@given(corpora())
@examples(30)
def test_bernoulli_learns_on_to_scikit_learns_probabilities(corpus):
    found, y, alpha = corpus
    found = [f"{text} number{n}" for n, text in enumerate(found)]  # a known text is not learned
    names = [f"class{k}" for k in y]
    half = max(len(found) // 2, len(set(names)))
    pairs = list(zip(found, names, strict=True))
    asked = [*found, "a b b c unheard"]

    model = nbspam.train(pairs[:half], model="bernoulli", alpha=alpha)
    model.update(pairs[half:])
    ours = [list(model.classify(text).posterior.values()) for text in asked]

    np.testing.assert_allclose(ours, _oracle(found, y, asked, alpha), rtol=1e-9, atol=1e-12)


@given(corpora())
@examples(30)
def test_bernoulli_is_cross_validated_as_scikit_learn_would(corpus):
    found, y, alpha = corpus
    assume(len(set(found)) == len(found))  # equal ones are in one fold
    settings = chosen_settings(SettingsChoices(model="bernoulli", alpha=alpha), is_text=True)
    items = [
        Item(str(n), f"class{k}", text.encode(), is_text=True)
        for n, (text, k) in enumerate(zip(found, y, strict=True))
    ]

    trial = judge_folds(items, settings, 2, seed=0)

    for fold in (0, 1):
        rest, of = np.flatnonzero(trial.fold != fold), np.flatnonzero(trial.fold == fold)
        train, asked = ([found[n] for n in rows] for rows in (rest, of))
        oracle = _oracle(train, y[rest], asked, alpha)
        np.testing.assert_allclose(trial.probability[of], oracle, rtol=1e-9, atol=1e-12)
