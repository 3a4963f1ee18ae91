"""What a model has learned, without a fit: the same messages as in the file written anew."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.settings import SettingsChoices, chosen_settings
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from support import HAM, SPAM, examples, plain

pytestmark = pytest.mark.usefixtures("quick_disk")
STEPS = st.lists(
    st.tuples(st.sampled_from(["ham", "spam", None]), st.integers(0, 6)), min_size=1, max_size=12
)


def messages(documents, y):
    return sorted(
        (int(y[row]), documents.one(row).tokens.tolist()) for row in range(documents.n_docs)
    )


@examples(30)
@given(STEPS)
def test_lessons_are_those_of_the_model_that_a_fit_would_make(tmp_path_factory, steps):
    path = str(tmp_path_factory.mktemp("model") / "m")
    model = StoredModel(path, new=chosen_settings(SettingsChoices(), is_text=False))
    model.learn([Item("-", "ham", HAM), Item("-", "spam", SPAM)], day=1)
    known = [Item("-", "ham", HAM + b"word%d\n" % n) for n in range(30)]
    model.learn(known, day=1)  # so that the journal holds some changes
    for label, n in steps:
        item = Item("-", label, SPAM + b"other%d\n" % n)
        if label is None:
            model.unlearn([item], day=2)
        else:
            model.learn([item], day=2, classes=[label])

    table, documents, y = StoredModel(path).lessons()
    whole = StoredModel(path).whole()
    met = np.flatnonzero(table.document_frequency)
    assert table.class_count.tolist() == whole.table.class_count.tolist()
    assert plain(table.take(met)) == plain(whole.table)
    keys = whole.table.vocabulary.keys
    sample = whole.memory.sample.documents
    over_keys = sample._replace(tokens=keys[sample.tokens])
    assert messages(documents, y) == messages(over_keys, whole.memory.sample_labels)


def test_the_base_is_what_was_fitted_last(tmp_path):
    model = StoredModel(str(tmp_path / "m"), new=chosen_settings(SettingsChoices(), is_text=False))
    many = [Item("-", "ham", HAM + b"%d\n" % n) for n in range(60)]
    model.learn([Item("-", "spam", SPAM), *many], day=1)
    model.learn([Item("-", "ham", HAM + b"later\n")], day=1)

    # A fit is due when a class has grown by a twentieth: at 59 messages, and then at 62.
    assert model.base.table.class_count.tolist() == [59, 1]
    assert model.classifier().table.class_count.tolist() == [61, 1]
