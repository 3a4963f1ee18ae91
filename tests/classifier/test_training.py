import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.classifier.training import count_items, train
from nbspam.counts import sample, tally
from nbspam.counts.sample import Sampling, sample_batch
from nbspam.mail.digest import digest_of
from nbspam.mail.message import Field, Message
from nbspam.settings import MANY, PRESETS, TokenSettings
from nbspam.sources.items import read_items
from nbspam.store.open import load_tokens as load
from nbspam.tokens import tokenizer
from nbspam.tokens.tokenizer import tokenize
from support import HAM, SPAM


def model_bytes(tmp_path, items, settings, jobs=1):
    path = tmp_path / "m.nbspam"
    train(count_items(items, settings, jobs), settings).save(str(path))
    return path.read_bytes()


ALL_SETTINGS = {**PRESETS, **{f"many, {name}": settings for name, settings in MANY.items()}}


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(settings, id=name, marks=[pytest.mark.slow] if name != "mail" else [])
        for name, settings in ALL_SETTINGS.items()
    ],
)
def test_a_model_is_the_same_whatever_the_jobs_and_the_batches(
    mails, tmp_path, monkeypatch, settings
):
    items = [item for n in range(2) for item in read_items([str(mails)])]  # two chunks
    if settings in MANY.values():
        items = [item._replace(label=f"c{n % 3}") for n, item in enumerate(items)]
    one = model_bytes(tmp_path, items, settings)
    two = model_bytes(tmp_path, items, settings, jobs=2)
    monkeypatch.setattr(tokenizer.batches, "__defaults__", (1 << 14,))
    small = model_bytes(tmp_path, items, settings)
    monkeypatch.setattr(tally, "_MAX_TOKENS", 100)
    in_parts = model_bytes(tmp_path, items, settings, jobs=2)

    assert one == two
    assert one == small
    assert one == in_parts


def test_a_model_comes_back_as_it_was(mails, tmp_path):
    settings = PRESETS["mail"]
    classifier = train(count_items(read_items([str(mails)]), settings), settings)
    classifier.save(str(tmp_path / "m.nbspam"))
    again = load(str(tmp_path / "m.nbspam"))

    assert again.settings == settings
    items = list(read_items([str(mails)]))
    before, after = classifier.answers(items), again.answers(items)
    assert all((a.joint == b.joint).all() for a, b in zip(before, after, strict=True))


def test_answers_are_the_same_alone_and_in_bulk_and_on_many_cores(mails, tmp_path):
    settings = PRESETS["mail"]
    classifier = train(count_items(read_items([str(mails)]), settings), settings)
    items = list(read_items([str(mails)])) * 3
    bulk = [answer.joint for answer in classifier.answers(items)]

    assert np.array_equal(bulk, [answer.joint for answer in classifier.answers(items, 2)])
    for item, joint in list(zip(items, bulk, strict=True))[::40]:
        (alone,) = classifier.answers([item])
        assert alone.joint == pytest.approx(joint, abs=1e-9)


def documents(n, n_words=1):
    texts = [b" ".join(b"word%d-%d" % (i, k) for k in range(n_words)) for i in range(n)]
    messages = [Message((Field("body", text),), ()) for text in texts]
    labels = [f"c{i % 2}" for i in range(n)]
    digests = [digest_of(b"%d of %d" % (i, n)) for i in range(n)]
    return sample_batch(tokenize(messages, TokenSettings()), labels, digests, "presence")


def sampled(parts, limit=60):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample, "MAX_SAMPLE", limit)
        sampling = Sampling("presence")
    sampling.add(parts)
    return sampling


@given(st.permutations(range(6)))
def test_the_messages_that_are_kept_do_not_depend_on_the_order(order):
    parts = [documents(10 * (i + 1)) for i in range(6)]
    kept, expected = sampled(parts[i] for i in order), sampled(parts)

    digests, same = (
        np.concatenate([part.digests for part in s.samples]) for s in (kept, expected)
    )
    assert sorted(digests.tolist()) == sorted(same.tolist())
    assert 0 < len(digests) <= 60
    assert kept.bits == expected.bits


def test_of_long_messages_fewer_are_kept(monkeypatch):
    short, long = (documents(100, n_words) for n_words in (1, 9))
    monkeypatch.setattr(sample, "_ENOUGH", 10)
    monkeypatch.setattr(sample, "MAX_ENTRIES", 400)

    assert len(sampled([short], 1000).samples[0].labels) == 100
    (kept,) = sampled([long], 1000).samples
    assert 10 < len(kept.labels) <= 400 // 9
    monkeypatch.setattr(sample, "MAX_ENTRIES", 0)
    (kept,) = sampled([long], 1000).samples
    assert 0 < len(kept.labels) <= 10


def test_of_other_models_than_those_of_presence_few_messages_are_kept(monkeypatch):
    monkeypatch.setattr(sample, "_ENOUGH", 10)
    sampling = Sampling("log-length")
    sampling.add([documents(50)])

    assert 0 < len(sampling.samples[0].labels) <= 10


def test_a_thinned_sample_keeps_its_messages_words():
    whole = documents(50)
    (part,) = sampled([whole], 20).samples
    # Every message is one word of its own.
    in_order = whole.columns[np.argsort(whole.documents)]
    words = dict(zip(whole.digests.tolist(), whole.keys[in_order].tolist(), strict=True))

    for entry in range(len(part.documents)):
        digest = int(part.digests[part.documents[entry]])
        assert words[digest] == int(part.keys[part.columns[entry]])


def test_training_on_more_messages_than_are_kept_works(nbspam, folder, model, monkeypatch):
    for n in range(60):
        (folder / "ham" / f"{n}.eml").write_bytes(HAM + b"note %d\n" % n)
        (folder / "spam" / f"{n}.eml").write_bytes(SPAM + b"offer %d\n" % n)
    monkeypatch.setattr(sample, "MAX_SAMPLE", 40)

    assert nbspam("train", "-j", "1", folder)[0] == 0
    assert json.loads(nbspam("classify", "--json", stdin=SPAM)[1])["label"] == "spam"
