"""Compare the plain models of nbspam and of scikit-learn on 20 newsgroups, text by text.

usage: python benchmarks/newsgroups.py CORPUS

CORPUS has train/ and test/, each with a folder for each of the twenty groups ("bydate").  Both
programs read files as Latin-1 and cut them into words as scikit-learn's tutorial does.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import BernoulliNB, MultinomialNB
from sklearn.preprocessing import normalize

from nbspam.evaluation.judging.single import judge_split
from nbspam.settings import Choices, chosen
from nbspam.sources.items import Item, read_items


def peer(model: str, train: list[Item], test: list[Item]) -> Any:
    """Return the classes that scikit-learn's model finds, (n_test,)."""
    words = CountVectorizer(encoding="latin-1")
    X, asked = words.fit_transform(texts(train)), words.transform(texts(test))
    y = [item.label for item in train]
    if model == "bernoulli":
        return BernoulliNB().fit(X, y).predict(asked)
    return MultinomialNB().fit(normalize(X), y).predict(normalize(asked))


def texts(items: list[Item]) -> list[bytes]:
    return [item.read() for item in items]


corpus = Path(sys.argv[1])
train, test = (list(read_items([str(corpus / part)])) for part in ("train", "test"))
for model in ("bernoulli", "multinomial"):
    settings = chosen(Choices(preset="tutorial", model=model), is_text=False)
    trial = judge_split(train, test, settings)
    truth, ours = (np.array(trial.classes)[k] for k in (trial.y, trial.joint.argmax(axis=1)))
    theirs = peer(model, train, test)
    print(
        f"{model:12} nbspam {(ours == truth).sum():,} right, scikit-learn"
        f" {(theirs == truth).sum():,}, the same class {(ours == theirs).sum():,}"
        f" of {len(truth):,}"
    )
