"""Models that have forgotten tokens, and models without a ledger: what they can and cannot."""

import json
from pathlib import Path

import numpy as np
import pytest

from maildirs import Maildir
from nbspam.classifier.training import train_classifier
from nbspam.counts import memory
from nbspam.counts.counting import CountingLimits, count_items
from nbspam.errors import UsageError
from nbspam.settings import PRESETS, Bounds
from nbspam.sources.items import Item
from nbspam.store.library import train as library_train
from nbspam.store.merging import merge
from nbspam.store.model import StoredModel
from nbspam.store.open import load_classifier, read_text_model, save_classifier
from nbspam.store.prune import PruningRule, prune_model
from nbspam.store.text import model_lines
from support import HAM, SPAM, complains, write_mails

pytestmark = pytest.mark.usefixtures("quick_disk")
MAIL = PRESETS["mail"]
NO_LEDGER = Bounds(ledger=False)


def items(numbers, label=None):
    words = np.random.default_rng(0).zipf(1.3, (200, 8))
    return [
        Item(
            f"m{n}",
            label or ("ham", "spam")[n % 2],
            b"Message-ID: <%d@x>\n\n%s\n" % (n, b" ".join(b"w%d" % word for word in words[n])),
        )
        for n in numbers
    ]


def write(path, given, bounds):
    limits = CountingLimits(tokens=50)  # so that the limit is looked at often
    save_classifier(
        str(path), train_classifier(count_items(given, MAIL, 1, limits, bounds), MAIL, day=9)
    )
    return str(path)


@pytest.fixture
def forgetful(tmp_path):
    return write(tmp_path / "forgetful", items(range(100)), Bounds(max_tokens=60))


@pytest.fixture
def unledgered(tmp_path):
    return write(tmp_path / "unledgered", items(range(100)), NO_LEDGER)


def whole(path):
    return StoredModel(path).whole()


def check_bound(model, exact):
    """Assert that a model's counts lack what its loss says at most, and never have too much."""
    table, true = model.table, exact.table
    had = dict(zip(true.vocabulary.keys.tolist(), true.document_frequency.tolist(), strict=True))
    for key, n, lacks in zip(
        table.vocabulary.keys.tolist(),
        table.document_frequency.tolist(),
        table.loss.of_each.tolist(),
        strict=True,
    ):
        assert n <= had.pop(key) <= n + lacks
    assert max(had.values(), default=0) <= table.loss.of_others


# ---- tokens that were forgotten ----


@pytest.mark.parametrize("kind", ["forgetful", "unledgered"])
def test_a_model_and_its_text_say_what_it_does_not_hold(kind, tmp_path, request):
    path = request.getfixturevalue(kind)
    (tmp_path / "lines").write_bytes(b"".join(model_lines(whole(path))))
    save_classifier(str(tmp_path / "again"), read_text_model(str(tmp_path / "lines")))

    assert (whole(path).table.loss is not None) == (kind == "forgetful")
    assert (tmp_path / "again").read_bytes() == Path(path).read_bytes()


@pytest.mark.parametrize("name", ["others_had", "ledger"])
def test_a_text_that_states_it_wrongly_is_refused(nbspam, tmp_path, forgetful, name):
    header, *lines = model_lines(whole(forgetful))
    wrong = json.dumps(json.loads(header) | {name: -1}).encode() + b"\n"
    (tmp_path / "lines").write_bytes(wrong + b"".join(lines))

    complains(nbspam("import", tmp_path / "lines", "-m", tmp_path / "m"), 1, "line 1", "-1 is n")


def test_the_bound_holds_after_learning_on_and_un_learning(forgetful, tmp_path):
    model = StoredModel(forgetful)
    model.learn(items(range(100, 200)), day=9)
    model.unlearn(items(range(30)), day=9)
    model.learn(items(range(30, 60), "ham"), day=9)
    true = [*items(range(30, 60), "ham"), *items(range(60, 200))]

    check_bound(whole(forgetful), whole(write(tmp_path / "exact", true, Bounds())))


def test_readers_of_a_journal_know_what_was_forgotten(forgetful):
    before = whole(forgetful).table.loss
    StoredModel(forgetful).learn([Item("x", "ham", b"\n\nbrandnew\n")], day=9)
    table = load_classifier(forgetful).table

    column = [table.vocabulary.text(j) for j in range(len(table.vocabulary))].index("brandnew")
    assert table.loss.of_each[column] == before.of_others


def test_the_bound_holds_after_merging_and_pruning(forgetful, tmp_path):
    other = write(tmp_path / "other", items(range(100, 200)), Bounds(max_tokens=80))
    merged, exact = str(tmp_path / "merged"), items(range(200))
    save_classifier(merged, merge([forgetful, other], 9).classifier)
    truth = whole(write(tmp_path / "exact", exact, Bounds()))
    check_bound(whole(merged), truth)

    prune_model(merged, PruningRule(min_df=4), 9)
    check_bound(whole(merged), truth)
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


@pytest.mark.parametrize(
    "options",
    [["--unlabelled", "x"], ["--model", "tan"]],
)
def test_what_needs_everything_at_once_refuses_bounds(nbspam, tmp_path, options):
    table = tmp_path / "t.csv"
    table.write_text("text,label\n" + "some words,a\nother words,b\n" * 4)
    result = nbspam("train", table, "-m", tmp_path / "m", "--no-ledger", *options)

    assert complains(result, 2, "everything at once; leave them out")

    with pytest.raises(UsageError, match="a table of columns needs everything"):
        library_train(table, target="label", max_tokens=10)


# ---- models without a ledger ----


def test_without_a_ledger_every_copy_counts(nbspam, tmp_path, monkeypatch):
    path = write(tmp_path / "m", [*items(range(100)), *items(range(30))], NO_LEDGER)

    assert whole(path).table.class_count.sum() == 130
    assert len(whole(path).memory.sample.digests) == 100  # no message is in the sample twice
    assert "note\tledger\tnone, by --no-ledger" in nbspam("doctor", "-m", path)[1]
    assert nbspam("update", "--spam", "-", "-m", path, stdin=SPAM)[0] == 0
    assert whole(path).table.class_count.sum() == 131
    monkeypatch.setattr(memory, "MAX_SAMPLE", 50)  # which copies do not crowd
    given = [*items(range(40)), *items(range(40)) * 5]
    assert len(whole(write(tmp_path / "n", given, NO_LEDGER)).memory.sample.digests) == 40


def test_without_copies_only_the_ledger_differs(unledgered, tmp_path):
    exact = whole(write(tmp_path / "exact", items(range(100)), Bounds()))
    model = whole(unledgered)

    assert np.array_equal(model.table.feature_count, exact.table.feature_count)
    assert np.array_equal(model.fit.correction, exact.fit.correction)
    assert (model.memory.has_ledger, exact.memory.has_ledger) == (False, True)


def test_a_ledger_of_the_sample_is_all_that_is_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "MAX_SAMPLE", 20)
    path = write(tmp_path / "m", items(range(100)), NO_LEDGER)
    known = len(whole(path).memory.sample.digests)
    # Of messages that come again only those in the sample are known.
    assert StoredModel(path).learn(items(range(100)), day=9).learned == 100 - known
    StoredModel(path).learn(items(range(100, 200)), day=9)
    kept = whole(path).memory

    assert whole(path).table.class_count.sum() == 300 - known
    assert len(kept.ledger.digests) <= 20
    assert np.array_equal(kept.ledger.digests, kept.sample.digests)


@pytest.mark.parametrize("command", [["unlearn"], ["relabel", "--to", "ham"]])
def test_what_needs_the_ledger_refuses_with_a_line(nbspam, unledgered, folder, command):
    result = nbspam(command[0], folder, "-m", unledgered, *command[1:])

    complains(result, 2, unledgered, "has no ledger", "train it again without --no-ledger")


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
