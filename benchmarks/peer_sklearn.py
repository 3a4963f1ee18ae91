"""Train and classify with scikit-learn as `nbspam train` and `nbspam classify` do.

usage: python benchmarks/peer_sklearn.py train|classify MODEL CORPUS

speed.py runs this as a program of its own, so that both programs start from files.
"""

import sys
from pathlib import Path

import joblib
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

verb, model, corpus = sys.argv[1:]
paths = [path for name in ("ham", "spam") for path in sorted((Path(corpus) / name).iterdir())]
texts = [path.read_text("latin-1") for path in paths]
if verb == "train":
    pipeline = make_pipeline(CountVectorizer(), MultinomialNB())
    joblib.dump(pipeline.fit(texts, [path.parent.name for path in paths]), model)
else:
    for path, label in zip(paths, joblib.load(model).predict(texts), strict=True):
        print(path, label)
