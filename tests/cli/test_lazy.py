"""Table look-up, lazy learning and incremental learning give the same answers, bit by bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nbspam.errors import NotTrainedError, UsageError
from nbspam.models.base import Lazy
from nbspam.models.tokens import BernoulliNB, ComplementNB, MultinomialNB
from support import MELONS, examples

MODELS = [BernoulliNB(alpha=0.5), MultinomialNB(), ComplementNB(), MultinomialNB(alpha="auto")]


@pytest.mark.parametrize("like", MODELS, ids=repr)
@given(seed=st.integers(0, 2**32 - 1), as_csr=st.booleans())
@examples(8)
def test_look_up_lazy_and_incremental_answer_alike(like, seed, as_csr):
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.7, (24, 6)).astype(float)
    store = sparse.csr_array if as_csr else np.asarray
    y = np.tile(["ham", "spam", "news"], 8)
    made = type(like)(**like.get_params())
    lazy = Lazy(like)
    for rows in (slice(0, 9), slice(9, 12), slice(12, 24)):
        made.partial_fit(store(X[rows]), y[rows])  # incremental
        lazy.keep(store(X[rows]), y[rows])
    table = type(like)(**like.get_params()).fit(store(X), y).tables()  # look-up

    ask = store(rng.poisson(0.7, (5, 6)).astype(float))
    by_lazy = lazy.predict_joint_log_proba(ask)
    assert (made.predict_joint_log_proba(ask) == by_lazy).all()
    assert (table.joint_log_proba(made._events(ask)) == by_lazy).all()
    assert (lazy.predict(ask) == made.predict(ask)).all()
    assert (lazy.predict_proba(ask) == made.predict_proba(ask)).all()

    lazy.drop(1)
    made.unlearn(store(X[9:12]), y[9:12])
    assert (made.predict_joint_log_proba(ask) == lazy.predict_joint_log_proba(ask)).all()


def test_a_lazy_model_without_documents_is_refused():
    with pytest.raises(NotTrainedError, match="no documents are kept"):
        Lazy(BernoulliNB()).predict([[1]])
    with pytest.raises(UsageError, match="no batch 0; 0 are kept"):
        Lazy(BernoulliNB()).drop(0)


def test_the_lazy_command_answers_as_train_and_classify(nbspam, folder, trained):
    lazy = nbspam("lazy", folder, folder / "spam" / "1.eml", folder / "ham")
    learned = nbspam("classify", folder / "spam" / "1.eml", folder / "ham")

    assert lazy == learned
    assert lazy[0] == 0
    assert nbspam("lazy", folder, folder, "--json") == nbspam("classify", folder, "--json")

    status, _, err = nbspam("lazy", folder, "no/such.eml")

    assert (status, err) == (1, nbspam("classify", "no/such.eml")[2])

    question = b"From: a@b.c\nSubject: quarterly zebra\n\nzebra zebra\n"
    before = nbspam("lazy", folder, "-", "--model", "multinomial", stdin=question)[1]
    (folder / "spam" / "3.eml").write_bytes(question)
    after = nbspam("lazy", folder, "-", "--model", "multinomial", stdin=question)[1]

    assert after.startswith("spam")
    assert before != after


@pytest.mark.parametrize(
    "how", [("--model", "aode", "--features", "20"), ("--model", "network", "--features", "5")]
)
def test_the_lazy_command_knows_models_of_dependent_tokens_and_tables(nbspam, mails, model, how):
    assert nbspam("train", mails, *how)[0] == 0
    assert nbspam("lazy", mails, mails / "spam", *how) == nbspam("classify", mails / "spam")

    model.unlink()
    target = ("--target", "好瓜", *how[:2])
    assert nbspam("table", "train", MELONS, *target)[0] == 0
    lazy = nbspam("table", "lazy", MELONS, MELONS, *target)
    assert lazy == nbspam("table", "classify", MELONS)
