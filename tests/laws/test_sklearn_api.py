"""The estimators pass scikit-learn's checks and work in its pipelines and searches."""

import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is an optional judge")

from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from nbspam.models import BernoulliNB, CategoricalNB, ComplementNB, MultinomialNB
from support import COLUMN_MODELS, TOKEN_MODELS

MODELS = [Class() for Class in TOKEN_MODELS]
OTHERS = [
    *(Class() for Class in COLUMN_MODELS), BernoulliNB(alpha="auto"),
    ComplementNB(alpha="auto", norm=True), MultinomialNB(alpha=0, class_prior="uniform"),
]  # fmt: skip
EXPECTED_FAILURES = {
    "check_estimators_unfitted": "expects scikit-learn's own NotFittedError, which nbspam does "
    "not import; ours is also a ValueError and an AttributeError",
    "check_supervised_y_2d": "expects a column of labels to be accepted with scikit-learn's own "
    "DataConversionWarning; nbspam raises an error that says what to do",
}
FAILURES_OF_CATEGORIES = EXPECTED_FAILURES | {
    "check_sample_weight_equivalence_on_dense_data": "the number of values of a column is taken "
    "from all rows, also those of weight 0, as in scikit-learn's own CategoricalNB",
    "check_sample_weight_equivalence_on_sparse_data": "the same",
    "check_positive_only_tag_during_fit": "below 0 means missing, but fractions are refused",
    "check_classifiers_one_label_sample_weights": "expects numbers that are no codes to pass",
}

with warnings.catch_warnings():
    # The models do not inherit from scikit-learn's classes, so that nbspam need not import it.
    warnings.filterwarnings("ignore", "Estimator .* does not inherit from", UserWarning)
    estimator_checks = parametrize_with_checks(
        MODELS + OTHERS,
        expected_failed_checks=lambda model: (
            FAILURES_OF_CATEGORIES if isinstance(model, CategoricalNB) else EXPECTED_FAILURES
        ),
    )


@pytest.mark.filterwarnings("ignore:Estimator .* does not inherit from:UserWarning")
@estimator_checks
def test_estimator_check(request, estimator, check):
    assert is_classifier(estimator)
    try:
        check(estimator)
    except Exception as error:
        if request.node.get_closest_marker("xfail"):
            # With a traceback, pytest would parse all of scikit-learn's checks each time.
            raise error.with_traceback(None) from None
        raise


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_works_in_pipelines_and_searches(model):
    rng = np.random.default_rng(0)
    y = np.repeat(["ham", "spam"], 30)
    X = rng.poisson(np.where(y == "spam", 3.0, 0.2)[:, None] * [1.0, 0.1], (60, 2))
    X[:, 1] = rng.poisson(np.where(y == "ham", 3.0, 0.2))
    pipeline = make_pipeline(FunctionTransformer(), model)
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.8

    with config_context(enable_metadata_routing=True):
        assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.8
        weighted = pipeline.fit(X, y, sample_weight=np.arange(60.0))
        expected = clone(model).fit(X, y, np.arange(60.0)).predict_proba(X)
        assert np.array_equal(weighted.predict_proba(X), expected)

    search = GridSearchCV(model, {"alpha": ["auto", 0.5]}, cv=3, scoring="neg_log_loss")
    assert search.fit(X, y).best_estimator_.classes_.tolist() == ["ham", "spam"]
