"""Training: the same model however the work is cut, and a bounded one."""

import numpy as np
import pytest

from nbspam.classifier.training import count_items, train_classifier
from nbspam.counts.counting import CountingLimits
from nbspam.counts.memory import Sampling
from nbspam.settings import MANY, PRESENCE, PRESETS
from nbspam.sources.items import Item, read_items
from nbspam.store.open import save_classifier
from stored import EVERY_SETTING
from support import HAM, SPAM


def model_bytes(tmp_path, items, settings, jobs=1, **limits):
    path = tmp_path / "m.nbspam"
    training = count_items(items, settings, jobs, limits=CountingLimits(**limits))
    save_classifier(str(path), train_classifier(training, settings))
    return path.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("settings", EVERY_SETTING.values(), ids=EVERY_SETTING)
def test_a_model_is_the_same_whatever_the_jobs_and_the_batches(mails, tmp_path, settings):
    items = [item for n in range(2) for item in read_items([str(mails)])]  # two chunks
    if settings in MANY.values():
        items = [item._replace(label=f"c{n % 3}") for n, item in enumerate(items)]
    one = model_bytes(tmp_path, items, settings)

    small = {"batch_bytes": 1 << 14, "tokens": 100}
    assert model_bytes(tmp_path, items, settings, jobs=2, **small) == one


def test_answers_are_the_same_alone_and_in_bulk_and_on_many_cores(mails, mail_classifier):
    classifier = mail_classifier
    items = list(read_items([str(mails)])) * 3
    bulk = [answer.joint for answer in classifier.answers(items)]

    assert np.array_equal(bulk, [answer.joint for answer in classifier.answers(items, 2)])
    for item, joint in list(zip(items, bulk, strict=True))[::40]:
        (alone,) = classifier.answers([item])
        assert alone.joint == pytest.approx(joint, abs=1e-9)


def test_training_on_more_messages_than_are_kept_works():
    settings = PRESETS["mail"]
    both = (("ham", HAM), ("spam", SPAM))
    items = [Item("", label, data + b"%d\n" % n) for n in range(60) for label, data in both]
    training = count_items(items, settings)
    sampling = Sampling(PRESENCE, limit=40)
    sampling.add(training.messages)
    part = training._replace(messages=tuple(sampling.messages), bits=sampling.bits)
    classifier = train_classifier(part, settings)

    memory = classifier.memory
    assert 0 < len(memory.sample.digests) <= 40
    assert memory.sample.bits == sampling.bits > 0
    assert len(memory.ledger.digests) == classifier.table.n_docs == 120
    verdicts = classifier.classify([Item("a", None, SPAM), Item("b", None, HAM)])
    assert [verdict.label for verdict in verdicts] == ["spam", "ham"]
