"""The default pipeline as a scikit-learn estimator."""

import pickle
import warnings

import numpy as np
import pytest

from nbspam import TextClassifier
from nbspam.models.inputs import DataError, UnfittedError
from nbspam.settings import SettingsChoices
from nbspam.sources.items import Item, read_items
from nbspam.store.library import train
from nbspam.verdicts import posterior
from support import THREE_TOPICS, TOPICS
from support import texts as topical

pytest.importorskip("sklearn", reason="scikit-learn is an optional judge")

from sklearn.base import is_classifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator


def texts(n, seed=0, topics=TOPICS):
    """Return n texts a topic, and their labels in turn."""
    found = sorted(topical(n, seed, topics=topics), key=lambda item: item.name.split("-")[1])
    return [item.data.decode() for item in found], [item.label for item in found]


@pytest.fixture(scope="module")
def fitted():
    return TextClassifier().fit(*texts(20))


@pytest.mark.parametrize("topics", [TOPICS, THREE_TOPICS])
def test_texts_get_their_labels(topics):
    classifier = TextClassifier().fit(*texts(25, topics=topics))
    X, y = texts(10, 1, topics)
    probability = classifier.predict_proba(X)

    assert classifier.classes_.tolist() == sorted(topics)
    assert classifier.score(iter(X), y) > 0.9  # read once, and never made one array
    assert probability.shape == (len(X), len(topics))
    assert probability.sum(axis=1) == pytest.approx(1)
    assert np.exp(classifier.predict_log_proba(X)) == pytest.approx(probability)
    plain = TextClassifier(model="multinomial").fit(X, y)
    assert np.isfinite(plain.predict_log_proba([" ".join(X * 99)])).all()


def test_it_is_the_model_that_the_library_trains():
    X, y = texts(20)
    for names in (["sea", "sky"], ["ham", "spam"]):  # the latter are fitted for filters of mail
        named = [names[label == "sky"] for label in y]
        model = train(list(zip(X, named, strict=True)))
        items = [Item("", None, x.encode(), True) for x in X]
        joint = np.stack([answer.joint for answer in model.classifier.answers(items)])
        ours = TextClassifier().fit(X, named).predict_proba(X)
        assert ours.tolist() == posterior(joint).tolist()


def test_bytes_are_mail(mails):
    items = list(read_items([str(mails)]))[::4]
    X, y = [item.read() for item in items], [item.label for item in items]
    classifier = TextClassifier().fit(X, y)
    assert classifier.classifier_.settings.reading == "mail"
    assert classifier.score(X, y) > 0.9


@pytest.mark.parametrize("labels", ["abbcc", [0, 9, 9, 10, 10]])  # numbers keep their order
def test_a_label_whose_messages_all_moved_to_another_one_is_no_class(labels):
    bodies = ["cheap pills", "cheap pills", "pills now", "lunch on friday", "dinner on friday"]
    mails, labels = [f"Subject: hi\n\n{body}\n".encode() for body in bodies], list(labels)
    classifier = TextClassifier().fit(mails, labels)
    assert classifier.classes_.tolist() == [labels[1], labels[3]]
    assert classifier.predict_proba(mails).shape == (5, 2)
    assert classifier.predict(mails).tolist() == [labels[1], *labels[1:]]


def test_choices_reach_the_settings():
    X, y = texts(20)
    classifier = TextClassifier(model="multinomial", alpha=0.5, strip="quotes").fit(X, y)
    settings = classifier.classifier_.settings
    assert (settings.model, settings.alpha, settings.strip) == ("multinomial", 0.5, ("quotes",))
    assert set(TextClassifier().get_params()) <= set(SettingsChoices._fields)


def test_before_fitting_it_says_so_and_no_texts_have_no_labels(fitted):
    with pytest.raises(UnfittedError, match="call fit first"):
        TextClassifier().predict(["ship"])
    assert fitted.predict([]).tolist() == []
    assert fitted.predict_proba([]).shape == (0, 2)


@pytest.mark.parametrize("labels", [[], ["spam", "spam"]])
def test_fewer_than_two_classes_are_refused_and_leave_it_as_it_was(fitted, labels):
    with pytest.raises(DataError, match="fewer than two classes"):
        fitted.fit(["ship", "rent"][: len(labels)], labels)
    assert fitted.classes_.tolist() == sorted(TOPICS)


@pytest.mark.parametrize(
    "X", ["one text", b"one mail", None, [["a", "list"]], [1, 2], np.array([["a"], ["b"]])]
)
def test_what_is_no_collection_of_texts_is_refused(fitted, X):
    with pytest.raises(DataError, match="give"):
        fitted.predict(X)


def test_a_pickle_has_the_answers(fitted):
    X, _ = texts(5, 2)
    assert is_classifier(fitted)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.predict_proba(X).tolist() == fitted.predict_proba(X).tolist()


def test_works_in_pipelines_searches_and_cross_validation():
    X, y = texts(24)
    pipeline = make_pipeline(FunctionTransformer(), TextClassifier())
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.9
    search = GridSearchCV(TextClassifier(model="multinomial"), {"alpha": np.ones(2)}, cv=2)
    assert search.fit(X, y).best_estimator_.predict(X[:2]).tolist() == y[:2]


def test_scikit_learn_finds_nothing_wrong():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        results = check_estimator(TextClassifier(), on_fail="raise")
    # Its checks make matrices of numbers; of an estimator of texts it checks the rest.
    assert all(each["status"] != "failed" for each in results)
    assert not [w for w in said if "failed" in str(w.message)]
