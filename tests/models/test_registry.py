"""The table names every estimator once, and the package exports each lazily."""

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
from contextlib import suppress
from copy import copy
from pathlib import Path

import numpy as np
import pytest

import nbspam.models
from nbspam import models
from nbspam.errors import NbspamError, UsageError
from nbspam.models import COUNTED, ESTIMATORS, TOKEN_MODELS, columns, estimator_class
from nbspam.models.base import Estimator
from nbspam.models.dependent import CountedWithParents
from nbspam.models.gaussian import NormalColumns
from nbspam.models.pairs import PairModel
from nbspam.models.smoothing import SmoothedModel
from nbspam.models.tokens import LinearModel

ABSTRACT = {
    Estimator, SmoothedModel, columns.CountedColumns, LinearModel, columns.ColumnModel,
    columns.BinaryByDefault, PairModel, columns.RowsModel, NormalColumns, CountedWithParents,
}  # fmt: skip


def estimators_found():
    """Return every concrete estimator class in any module of the package."""
    modules = pkgutil.walk_packages(nbspam.models.__path__, "nbspam.models.")
    values = [v for info in modules for v in vars(importlib.import_module(info.name)).values()]
    return {v for v in values if isinstance(v, type) and issubclass(v, Estimator)} - ABSTRACT


def test_every_estimator_is_registered_once():
    registered = {name: estimator_class(name) for name in ESTIMATORS}
    of_counts = {models.column_class(name) for name in COUNTED} - {columns.CategoricalNB}

    assert {*registered.values(), *of_counts} == estimators_found()
    assert len(registered) == len(set(registered.values()))
    assert set(COUNTED) == set(TOKEN_MODELS)
    assert {n for n, each in registered.items() if issubclass(each, LinearModel)} == {
        *TOKEN_MODELS
    }


def test_the_package_exports_every_estimator_by_its_class_name_and_type_checkers_see_them():
    assert set(nbspam.models.__all__) == {class_name for _, class_name in ESTIMATORS.values()}
    assert set(nbspam.models.__all__) <= set(dir(nbspam.models))
    for name, (_, class_name) in ESTIMATORS.items():
        assert getattr(nbspam.models, class_name) is estimator_class(name)
    with pytest.raises(AttributeError, match="no attribute 'PerceptronNB'"):
        nbspam.models.PerceptronNB  # noqa: B018
    tree = ast.parse(Path(nbspam.models.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    found = [(node.module, each.name, each.asname) for node in block.body for each in node.names]
    expected = [(f"nbspam.models.{module}", name, name) for module, name in ESTIMATORS.values()]

    assert ast.unparse(block.test) == "TYPE_CHECKING"
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_docstring_of_an_estimator_has_an_example_and_leads_to_all_parameters(name):
    classes = {each.__name__: each for found in estimators_found() for each in found.__mro__}
    made = estimator_class(name)
    read = [made.__name__]
    for each in read:
        named = re.findall(r"`(?:\w+\.)?(\w+)`", classes[each].__doc__)
        read += [other for other in named if other in classes and other not in read]
    told = " ".join(classes[each].__doc__ for each in read)

    assert ">>> " in made.__doc__
    assert [p for p in made().get_params() if not re.search(rf"\b{p}\b", told)] == []


NAMES_WITHOUT_NUMPY = """
import sys
import nbspam.models
from nbspam import models
assert "AODE" in dir(models)
assert "numpy" not in sys.modules and "dataclasses" not in sys.modules
models.AODE
assert "numpy" in sys.modules and "scipy" not in sys.modules
assert "nbspam.models.network" not in sys.modules
"""
TOKENS_WITHOUT_SCIPY = """
import sys
sys.modules["scipy"] = sys.modules["sklearn"] = None  # importing either now fails
from nbspam.models import BernoulliNB, ComplementNB, MultinomialNB
for Model in BernoulliNB, ComplementNB, MultinomialNB:
    model = Model(alpha="auto").fit([[1, 0], [0, 1]], ["a", "b"])
    assert model.predict([[0, 1]]).tolist() == ["b"]
    model.contributions([[0, 1]])
"""


@pytest.mark.parametrize("code", [NAMES_WITHOUT_NUMPY, TOKENS_WITHOUT_SCIPY])
def test_nothing_is_imported_that_is_not_needed(code):
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_parameter_of_a_wrong_type_is_refused_by_fit_or_else_when_the_model_answers(name):
    X, y = [[0, 1, 0], [1, 1, 1], [0, 0, 1], [1, 0, 0]], ["a", "b", "b", "a"]
    make = estimator_class(name)
    fitted = make().fit(X, y)
    for parameter in fitted.get_params():
        for wrong in ("x", -1, 1.5, float("nan"), [1], ["a"] * len(y), {}, object()):
            with suppress(NbspamError):
                again = make(**{parameter: wrong}).fit(X, y)
                assert np.isfinite(again.predict_proba(X)).all()
            with suppress(NbspamError):
                later = copy(fitted).set_params(**{parameter: wrong})
                assert np.isfinite(later.predict_proba(X)).all()


@pytest.mark.parametrize("name", models.__all__)
def test_the_error_about_an_unknown_parameter_names_the_class_that_was_called(name):
    with pytest.raises(TypeError, match=rf"^{name}\.__init__\(\) .* 'fit_prior'"):
        getattr(models, name)(fit_prior=False)


def test_unknown_parameters_and_models_are_refused():
    with pytest.raises(UsageError, match="--min-support: --model tan has no such setting"):
        models.new_column_model("tan", {"min_support": 2})
    with pytest.raises(ValueError, match="no model of columns, but 'oracle'"):
        models.restored("oracle", {"parameters": {}, "learnt": {}}, ["a"], [[0]])
    state = models.model_state(columns.CategoricalNB().fit([[0], [1]], ["a", "b"]))
    with pytest.raises(ValueError, match="classes and sums differ in number"):
        models.restored("categorical", state, ["a"], [[0]])
