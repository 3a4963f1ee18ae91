import json

import numpy as np
import pytest

from nbspam.classifier import training
from nbspam.counts.table import CountTable
from nbspam.errors import ModelFileError, UsageError
from nbspam.settings import LOG_LENGTH, PRESENCE
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from nbspam.store.prune import DEFAULT, PruningRule, faded, prune_model
from nbspam.tokens.documents import Vocabulary
from stored import train_on

pytestmark = pytest.mark.usefixtures("quick_disk")
OLD, NEW = 1000, 1500


def item(n, label, words):
    return Item(f"m{n}", label, b"Message-ID: <%d@x>\n\n%s\n" % (n, words))


@pytest.fixture
def aged(tmp_path):
    """Common words in all messages; old ones and new ones in one message each."""
    path = str(tmp_path / "m.nbspam")
    items = [item(n, "ham" if n % 2 else "spam", b"common old%d" % n) for n in range(6)]
    train_on(items, path, day=OLD)
    more = [item(n, "ham" if n % 2 else "spam", b"common new%d" % n) for n in range(6, 10)]
    StoredModel(path).learn(more, day=NEW)
    return path


def words(path):
    vocabulary = StoredModel(path).whole().table.vocabulary
    texts = {vocabulary.text(j) for j in range(len(vocabulary))}
    return {text for text in texts if text.startswith(("old", "new", "common"))}


@pytest.mark.parametrize(
    ("rule", "left"),
    [
        (DEFAULT, {"common", "new6", "new7", "new8", "new9"}),
        (PruningRule(min_df=2), {"common"}),
        (PruningRule(older_than=365), {"common", "new6", "new7", "new8", "new9"}),
        (PruningRule(older_than=600), None),
        (PruningRule(min_df=2, older_than=NEW - OLD), None),  # old is more than so many days
        (
            PruningRule(min_df=2, older_than=NEW - OLD - 1),
            {"common", "new6", "new7", "new8", "new9"},
        ),
        (PruningRule(min_df=100), set()),
    ],
)
def test_a_rule_says_what_goes(aged, rule, left):
    before = words(aged)
    was, now = prune_model(aged, rule, NEW)

    assert words(aged) == (before if left is None else left)
    assert left is None or (was.tokens > now.tokens and was.bytes > now.bytes)
    assert StoredModel(aged).whole().table.n_docs == 10


def test_counts_fade_by_half_in_a_half_life_whenever_that_is_asked_for(aged):
    prune_model(aged, PruningRule(half_life=500), NEW)
    once = StoredModel(aged).whole().table
    prune_model(aged, PruningRule(half_life=500), NEW)

    assert once.class_count.tolist() == [2, 2]  # five of each, rounded to even
    assert StoredModel(aged).whole().table.class_count.tolist() == [2, 2]
    prune_model(aged, PruningRule(half_life=500), NEW + 10_000)
    assert StoredModel(aged).whole().table.class_count.tolist() == [1, 1]


def test_what_cannot_be_pruned_is_refused(tmp_path):
    for values in ({"min_df": 0}, {"older_than": -1}, {"half_life": 0.0}):
        with pytest.raises(UsageError, match=next(iter(values))):
            PruningRule(**values)
    with pytest.raises(ModelFileError, match="no such model"):
        prune_model(str(tmp_path / "new" / "m"), DEFAULT, NEW)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("weighting", [PRESENCE, LOG_LENGTH])
def test_counts_fade_as_fast_in_many_steps_as_in_one(weighting):
    """Tokens of one, three and forty messages among a thousand of each class."""
    n_docs, n_tokens, steps = 1000.0, 6000, 25
    times = np.tile([1.0, 3.0, 40.0], n_tokens // 3)
    keys = np.sort(np.random.default_rng(0).choice(2**40, n_tokens, replace=False) << 23)
    keys, groups = keys.astype(np.uint64), np.zeros(n_tokens, np.uint8)
    start = CountTable(
        ("ham", "spam"),
        np.array([n_docs, n_docs]),
        Vocabulary(keys, np.zeros(0, np.uint8), np.zeros(n_tokens + 1, int), groups),
        np.stack([times, 0 * times], axis=1),
        times.astype(np.int64),
    )
    table = start
    for day in range(steps):
        table = faded(table, 0.5 ** (1 / steps), weighting, day)

    left = np.zeros(n_tokens)
    left[np.searchsorted(start.vocabulary.keys, table.vocabulary.keys)] = table.feature_count[:, 0]
    for n in (1.0, 3.0, 40.0):
        assert left[times == n].mean() == pytest.approx(n / 2, rel=0.05)
    assert (table.feature_count[:, 0] <= table.document_frequency).all()
    assert table.class_count == pytest.approx([n_docs / 2] * 2, rel=0.02)


def test_messages_that_have_faded_can_be_unlearned_without_harm(aged):
    prune_model(aged, PruningRule(min_df=2, half_life=500), NEW)
    StoredModel(aged).unlearn([item(n, None, b"common old%d" % n) for n in (0, 1)], day=NEW)
    table = StoredModel(aged).whole().table

    assert table.class_count.tolist() == [1, 1]
    assert ((table.feature_count >= 0) & (table.feature_count <= table.class_count)).all()
    assert (table.document_frequency > 0).all()
    StoredModel(aged).unlearn([item(n, None, b"common old%d" % n) for n in (2, 4)], day=NEW)
    assert StoredModel(aged).classifier().lack is not None
    prune_model(aged, PruningRule(half_life=500), NEW + 500)
    assert StoredModel(aged).whole().table.class_count.tolist() == [1, 0]


def test_of_too_many_tokens_the_rarest_and_oldest_go(aged, monkeypatch):
    whole = StoredModel(aged).whole()
    n_tokens = len(whole.table.vocabulary)
    room = training._TOKEN_BYTES + 2 * training._CLASS_BYTES
    monkeypatch.setattr(training, "MAX_BYTES", (n_tokens - 5) * room)
    StoredModel(aged).learn([item(30, "ham", b"common")], day=NEW)
    kept = StoredModel(aged).whole()

    assert len(kept.table.vocabulary) == n_tokens - 5
    assert words(aged) >= {"common", "new6", "new7", "new8", "new9"}
    assert len(kept.memory.last_seen) == n_tokens - 5
    sample = kept.memory.sample.documents
    assert sample.columns.max() < n_tokens - 5
    texts = np.array([kept.table.vocabulary.text(j) for j in range(n_tokens - 5)])
    assert "common" in texts[sample.one(0).tokens]


def test_prune_says_what_it_did(nbspam, trained):
    status, out, err = nbspam("prune", "--min-df", "2")
    before, after = out.splitlines()

    assert (status, err) == (0, "")
    assert before.startswith("tokens ")
    assert "bytes" in after
    facts = json.loads(nbspam("prune", "--json")[1])
    assert facts["before"] == facts["after"]
