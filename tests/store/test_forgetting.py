"""Models that forget: pruning, fading, bounds on tokens, and models without a ledger."""

import json
from pathlib import Path

import numpy as np
import pytest

from maildirs import Maildir
from nbspam.classifier import training
from nbspam.classifier.training import train_classifier
from nbspam.counts import ledger
from nbspam.counts.counting import CountingLimits, count_items
from nbspam.counts.table import CountTable
from nbspam.errors import ModelFileError, UsageError
from nbspam.settings import LOG_LENGTH, PRESENCE, PRESETS, Bounds
from nbspam.sources.items import Item
from nbspam.store.merging import merge
from nbspam.store.model import StoredModel
from nbspam.store.open import load_classifier, save_classifier
from nbspam.store.text import model_lines, model_of_lines
from nbspam.store.upkeep import DEFAULT, PruningRule, faded, prune_model
from nbspam.tokens.sparse import Vocabulary
from stored import bytes_of, train_on, trained
from support import HAM, SPAM, check_bound, words_of, write_mails
from support import items_of_words as items

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
    texts = words_of(StoredModel(path).whole().table)
    return {text for text in texts if text.startswith(("old", "new", "common"))}


@pytest.mark.parametrize(
    ("rule", "left"),
    [
        (DEFAULT, {"common", "new6", "new7", "new8", "new9"}),
        (PruningRule(min_df=2), {"common"}),
        (PruningRule(min_df=10), {"common"}),
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
    assert "common" in np.array(words_of(kept.table))[sample.one(0).tokens]


def test_prune_says_what_it_did(nbspam, trained):
    status, out, err = nbspam("prune", "--min-df", "2")
    before, after = out.splitlines()

    assert (status, err) == (0, "")
    assert before.startswith("tokens ")
    assert "bytes" in after
    facts = json.loads(nbspam("prune", "--json")[1])
    assert facts["before"] == facts["after"]


# ---- bounded models ----

MAIL = PRESETS["mail"]
NO_LEDGER = Bounds(ledger=False)


def write(path, given, bounds):
    limits = CountingLimits(tokens=50)  # so that the limit is looked at often
    counted = count_items(given, MAIL, 1, limits, bounds)
    save_classifier(str(path), train_classifier(counted, MAIL, day=9))
    return str(path)


@pytest.fixture
def forgetful(tmp_path):
    return write(tmp_path / "forgetful", items(range(100)), Bounds(max_tokens=60))


@pytest.fixture
def unledgered(tmp_path):
    return write(tmp_path / "unledgered", items(range(100)), NO_LEDGER)


def whole(path):
    return StoredModel(path).whole()


def table_of(given):
    """Return the exact counts of items."""
    return trained(given, MAIL, day=9).table


# ---- tokens that were forgotten ----


@pytest.mark.parametrize("kind", ["forgetful", "unledgered"])
def test_a_model_and_its_text_say_what_it_does_not_hold(kind, tmp_path, request):
    path = request.getfixturevalue(kind)
    again = model_of_lines(model_lines(whole(path)), "x")

    assert (whole(path).table.loss is not None) == (kind == "forgetful")
    assert bytes_of(again, tmp_path / "again") == Path(path).read_bytes()


def test_the_bound_holds_after_learning_on_and_un_learning(forgetful, tmp_path):
    model = StoredModel(forgetful)
    model.learn(items(range(100, 200)), day=9)
    model.unlearn(items(range(30)), day=9)
    model.learn(items(range(30, 60), "ham"), day=9)
    true = [*items(range(30, 60), "ham"), *items(range(60, 200))]

    check_bound(whole(forgetful).table, table_of(true))


def test_readers_of_a_journal_know_what_was_forgotten(forgetful):
    before = whole(forgetful).table.loss
    StoredModel(forgetful).learn([Item("x", "ham", b"\n\nbrandnew\n")], day=9)
    table = load_classifier(forgetful).table

    assert table.loss.of_each[words_of(table).index("brandnew")] == before.of_others


def test_the_bound_holds_after_merging_and_pruning(forgetful, tmp_path):
    other = write(tmp_path / "other", items(range(100, 200)), Bounds(max_tokens=80))
    merged, exact = str(tmp_path / "merged"), items(range(200))
    save_classifier(merged, merge([forgetful, other], 9).classifier)
    check_bound(whole(merged).table, table_of(exact))

    prune_model(merged, PruningRule(min_df=4), 9)
    check_bound(whole(merged).table, table_of(exact))
    before = whole(merged).table.loss
    prune_model(merged, PruningRule(half_life=10), 19)
    assert whole(merged).table.loss.of_others == -(-before.of_others // 2)

    pruned = write(tmp_path / "pruned", exact, Bounds())
    prune_model(pruned, PruningRule(min_df=4), 9)
    assert whole(pruned).table.loss.of_others == 3
    assert not whole(pruned).table.loss.of_each.any()


def test_train_merge_and_info_say_what_was_forgotten(nbspam, tmp_path, mails):
    model = tmp_path / "m"
    status, out, err = nbspam("train", mails, "-m", model, "--max-tokens", "100", "-j", "1")

    assert (status, err) == (0, "")
    assert "\nforgot tokens of up to " in out
    assert "\nlearned 100 tokens" in out
    assert "forgotten\ttokens of up to " in nbspam("info", "-m", model)[1]
    found = json.loads(nbspam("info", "-m", model, "--json")[1])["forgotten"]
    assert found["messages"] > 0
    assert 0 < found["exact"] <= 100
    other = write_mails(tmp_path / "other")
    assert nbspam("train", other, "-m", tmp_path / "n")[0] == 0
    merged = nbspam("merge", model, tmp_path / "n", "-o", tmp_path / "both")[1]
    assert "\nforgot tokens of up to " in merged


# ---- models without a ledger ----


def test_without_a_ledger_every_copy_counts(nbspam, tmp_path, monkeypatch):
    path = write(tmp_path / "m", [*items(range(100)), *items(range(30))], NO_LEDGER)

    assert whole(path).table.class_count.sum() == 130
    assert len(whole(path).memory.sample.digests) == 100  # no message is in the sample twice
    assert "note\tledger\tnone, by --no-ledger" in nbspam("doctor", "-m", path)[1]
    assert nbspam("update", "--spam", "-", "-m", path, stdin=SPAM)[0] == 0
    assert whole(path).table.class_count.sum() == 131
    monkeypatch.setattr(ledger, "MAX_SAMPLE", 50)  # which copies do not crowd
    given = [*items(range(40)), *items(range(40)) * 5]
    assert len(whole(write(tmp_path / "n", given, NO_LEDGER)).memory.sample.digests) == 40


def test_without_copies_only_the_ledger_differs(unledgered, tmp_path):
    exact = whole(write(tmp_path / "exact", items(range(100)), Bounds()))
    model = whole(unledgered)

    assert np.array_equal(model.table.feature_count, exact.table.feature_count)
    assert np.array_equal(model.fit.correction, exact.fit.correction)
    assert (model.memory.has_ledger, exact.memory.has_ledger) == (False, True)


def test_a_ledger_of_the_sample_is_all_that_is_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(ledger, "MAX_SAMPLE", 20)
    path = write(tmp_path / "m", items(range(100)), NO_LEDGER)
    known = len(whole(path).memory.sample.digests)
    # Of messages that come again only those in the sample are known.
    assert StoredModel(path).learn(items(range(100)), day=9).learned == 100 - known
    StoredModel(path).learn(items(range(100, 200)), day=9)
    kept = whole(path).memory

    assert whole(path).table.class_count.sum() == 300 - known
    assert len(kept.ledger.digests) <= 20
    assert np.array_equal(kept.ledger.digests, kept.sample.digests)


def test_sorting_refuses_to_learn_what_was_moved(unledgered, tmp_path):
    maildir = Maildir(tmp_path / "Maildir", unledgered)
    maildir.put("new/1.h", HAM)
    maildir.sort()
    (name,) = maildir.files
    maildir.rename(name, "cur/1.h:2," if name.startswith(".") else ".Spam/cur/1.h:2,S")

    with pytest.raises(UsageError, match="has no ledger"):
        maildir.sort()


def test_a_merge_with_such_a_model_has_no_ledger_and_says_so(nbspam, unledgered, tmp_path):
    other = write(tmp_path / "other", items(range(100, 150)), Bounds())
    status, _, err = nbspam("merge", other, unledgered, "-o", tmp_path / "both")

    assert status == 0
    assert "without a ledger" in err
    assert not whole(str(tmp_path / "both")).memory.has_ledger
