"""Doctor, pruning and bounded models, and what of a replaced model is kept."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from maildirs import Maildir
from nbspam.classifier import training
from nbspam.classifier.training import train_classifier
from nbspam.counts import counting, ledger
from nbspam.counts.counting import count_items
from nbspam.counts.table import CountTable
from nbspam.decision import Cutoffs
from nbspam.errors import ModelFileError, UsageError
from nbspam.settings import LOG_LENGTH, PRESENCE, PRESETS, Bounds
from nbspam.sources.items import Item
from nbspam.store import model as store_model
from nbspam.store import upkeep
from nbspam.store.journal import journal_path
from nbspam.store.merging import merge
from nbspam.store.model import StoredModel
from nbspam.store.open import load_classifier, save_classifier
from nbspam.store.open import load_tokens as load
from nbspam.store.text import model_lines, model_of_lines
from nbspam.store.upkeep import BAD, GOOD, NOTE, PruningRule, allowed, findings, prune_model
from nbspam.tokens.sparse import Vocabulary
from stored import bytes_of, train_on, trained
from support import HAM, ROOT, SPAM, check_bound, complains, raising, words_of, write_mails
from support import items_of_words as items


def states(path):
    return {finding.what: finding.state for finding in findings(str(path))}


def test_of_a_whole_model_everything_is_good(nbspam, model, tmp_path):
    nbspam("train", write_mails(tmp_path / "more", 24))  # so that the journal takes one more
    nbspam("update", "--spam", "-", stdin=SPAM)
    out = nbspam.out("doctor", "-m", model)
    assert {line.split("\t")[0] for line in out.splitlines()} == {GOOD}
    assert "1 change, " in out
    assert [each["state"] for each in nbspam.json("doctor")["findings"]] == [GOOD] * 6
    nbspam("train", "--preset", "text", tmp_path / "more")
    assert "ledger\t48 texts" in nbspam.out("doctor")


def test_a_damaged_file_and_what_is_no_model_are_bad(nbspam, trained, tmp_path):
    data = bytearray(trained.read_bytes())
    data[len(data) // 2] ^= 1
    trained.write_bytes(data)
    for path, why in ((trained, "damaged"), (tmp_path / "none", "no such"), (tmp_path, "folder")):
        status, out, err = nbspam("doctor", "-m", path)
        assert (status, err) == (1, "")
        assert out.startswith("bad\tfile\t")
        assert why in out


def test_counts_that_contradict_each_other_are_told(nbspam, trained):
    whole = StoredModel(str(trained)).whole()

    def stored(**changes):
        save_classifier(str(trained), replace(whole, table=whole.table._replace(**changes)))
        return states(trained)

    # A token in more messages than there are is bad; more messages than the ledger is a note.
    assert stored(feature_count=whole.table.feature_count + 5)["counts"] == BAD
    assert stored(class_count=whole.table.class_count * 10)["ledger"] == NOTE
    assert nbspam("doctor")[0] == 0
    save_classifier(str(trained), replace(load_classifier(str(trained)), memory=None))
    found = {"file": GOOD, "rights": GOOD, "counts": GOOD, "ledger": NOTE, "journal": GOOD}
    assert states(trained) == found


# ---- rights ----


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder that everyone can enter, as far as the test can tell."""
    real = os.stat

    def stat(path, **options):
        status = real(path, **options)
        if str(tmp_path).startswith(f"{path}/"):
            return os.stat_result((0o040755, *status[1:]))
        return status

    monkeypatch.setattr(os, "stat", stat)
    tmp_path.chmod(0o755)
    return tmp_path


def made(place, name="m", mode=0o600):
    path = place / name
    path.write_bytes(b"x")
    path.chmod(mode)
    return str(path)


def test_whoever_may_read_a_file_of_the_model_is_named(place):
    path = made(place)
    others = [made(place, name, 0o644) for name in ("m.journal", "m.share-wal")]
    older = made(place, "m~", 0o640)
    made(place, "m.lock", 0o644)
    made(place, "mail", 0o644)

    found = allowed(path, stat.S_IROTH)
    assert found.pop(upkeep.EVERYONE) == others
    assert list(found.values()) == [[older]]
    assert next(iter(found)).startswith("group ")


def test_a_file_that_vanishes_and_a_folder_that_is_not_listed_are_no_obstacle(place, monkeypatch):
    path, listed = made(place, mode=0o644), os.listdir
    monkeypatch.setattr(os, "listdir", lambda folder: [*listed(folder), "m.journal"])
    assert allowed(path, stat.S_IROTH) == {upkeep.EVERYONE: [path]}

    monkeypatch.setattr(os, "listdir", raising(PermissionError))
    journal = made(place, "m.journal", 0o644)
    assert allowed(path, stat.S_IROTH) == {upkeep.EVERYONE: [path, journal]}


def test_doctor_says_who_can_read_or_change_a_model(trained, place):
    folder = trained.parent
    for entered, mode, states, words in (
        (0o755, 0o600, [GOOD], ""),
        (0o755, 0o644, [NOTE], f"{upkeep.EVERYONE} can read the words of your mail in {trained}"),
        (0o755, 0o666, [BAD], "can change"),
        (0o777, 0o660, [NOTE, BAD], f"{upkeep.EVERYONE} can change {folder};"),  # beside a group
        (0o1777, 0o600, [GOOD], ""),  # as /tmp: nobody can replace another's file
        (0o755, 0o602, [BAD], f"{upkeep.EVERYONE} can change {trained};"),
        (0o700, 0o666, [GOOD], ""),  # nobody else can enter the folder
        (0o710, 0o640, [NOTE], f"can read the words of your mail in {trained}"),
        (0o700, 0o640, [GOOD], ""),
    ):
        folder.chmod(entered)
        trained.chmod(mode)
        rights = [found for found in findings(str(trained)) if found.what == "rights"]
        assert [found.state for found in rights] == states
        assert words in rights[-1].text


# ---- models that forget: pruning, fading, bounds on tokens, and models without a ledger ----


OLD, NEW = 1000, 1500
YOUNG = {"common", "new6", "new7", "new8", "new9"}  # words of messages of the new day


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


@pytest.mark.parametrize(("rule", "left"), [
    (upkeep.DEFAULT, YOUNG), (PruningRule(min_df=2), {"common"}),
    (PruningRule(min_df=10), {"common"}), (PruningRule(older_than=365), YOUNG),
    (PruningRule(older_than=600), None),
    (PruningRule(min_df=2, older_than=NEW - OLD), None),  # old is more than so many days
    (PruningRule(min_df=2, older_than=NEW - OLD - 1), YOUNG),
    (PruningRule(min_df=100), set()),
])  # fmt: skip
def test_a_rule_says_what_goes(aged, rule, left):
    before = words(aged)
    was, now, kept = prune_model(aged, rule, NEW)

    assert words(aged) == (before if left is None else left)
    assert kept == (f"{aged}~" if 2 * now.tokens < was.tokens else None)
    assert kept is None or words(kept) == before
    assert left is None or (was.tokens > now.tokens and was.bytes > now.bytes)
    assert StoredModel(aged).whole().table.n_docs == 10


def test_counts_fade_by_half_in_a_half_life_whenever_that_is_asked_for(aged):
    StoredModel(aged).learn([item(10, "ham", b"common")], day=1)  # a false clock
    for day in (NEW, NEW, NEW - 500, NEW):  # a clock may be set back
        prune_model(aged, PruningRule(half_life=500), day)
        counts = StoredModel(aged).whole().table.class_count.tolist()
        # Six and five messages times (6 / 2 + 4 + 1 / 8) / 11, rounded by the day.
        assert counts == [3, 3]
    prune_model(aged, PruningRule(half_life=500), NEW + 10_000)
    assert StoredModel(aged).whole().table.class_count.tolist() == [1, 1]


def test_a_class_that_faded_stays_as_long_as_one_of_its_messages_does(tmp_path):
    path = str(tmp_path / "m.nbspam")
    given = [item(n, "abc"[n % 3], b"common word%d" % n) for n in range(9)]
    train_on(given, path, day=OLD)
    prune_model(path, PruningRule(half_life=1), NEW)

    for numbers, classes in (((0, 1), "abc"), ((3, 4, 5), "abc"), ((6,), "bc")):
        StoredModel(path).unlearn([given[n] for n in numbers], day=NEW)
        StoredModel(path).compact()
        left = StoredModel(path).whole().table
        assert (left.classes, left.class_count.tolist()) == (tuple(classes), [1] * len(classes))


@pytest.mark.parametrize("labels", [("ham", "spam"), ("a", "b", "c")])
def test_a_model_can_lose_all_tokens(tmp_path, labels):
    path = str(tmp_path / "m.nbspam")
    train_on([item(n, label, b"word") for n, label in enumerate(labels)], path, day=OLD)
    prune_model(path, PruningRule(min_df=100), NEW)

    (answer,) = load_classifier(path).classify([Item("new", None, b"\n\nword")])
    assert list(answer.posterior.values()) == pytest.approx([1 / len(labels)] * len(labels))


def test_what_cannot_be_pruned_is_refused(tmp_path):
    for values, words in (
        ({"min_df": 0}, "min_df: 0 is not a whole number from 1 up; give one"),
        ({"older_than": -1}, "older_than: -1 is not a whole number from 0 up; give one"),
        ({"half_life": 0.0}, r"half_life: 0\.0 is not a number above 0; give one"),
    ):
        with pytest.raises(UsageError, match=words):
            PruningRule(**values)
    with pytest.raises(ModelFileError, match="no such model"):
        prune_model(str(tmp_path / "new" / "m"), upkeep.DEFAULT, NEW)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("weighting", [PRESENCE, LOG_LENGTH])
def test_counts_fade_as_fast_in_many_steps_as_in_one(weighting):
    """Tokens of one, three and forty messages among a thousand of ham and forty of spam."""
    n_docs, n_tokens, steps = np.array([1000.0, 40.0]), 6000, 100
    times = np.tile([1.0, 3.0, 40.0], n_tokens // 3)
    keys = np.sort(np.random.default_rng(0).choice(2**40, n_tokens, replace=False) << 23)
    keys, groups = keys.astype(np.uint64), np.zeros(n_tokens, np.uint8)
    start = CountTable(
        ("ham", "spam"),
        n_docs,
        Vocabulary(keys, np.zeros(0, np.uint8), np.zeros(n_tokens + 1, int), groups),
        np.stack([times, 0 * times], axis=1),
        times.astype(np.int64),
    )
    table = start
    for day in range(steps):
        table = upkeep.faded(table, 0.5 ** (1 / steps), weighting, day)

    left = np.zeros(n_tokens)
    left[np.searchsorted(start.vocabulary.keys, table.vocabulary.keys)] = table.feature_count[:, 0]
    for n in (1.0, 3.0, 40.0):
        assert left[times == n].mean() == pytest.approx(n / 2, rel=0.05)
    assert (table.feature_count[:, 0] <= table.document_frequency).all()
    assert table.class_count == pytest.approx(n_docs / 2, rel=0.02, abs=2)


def test_messages_that_have_faded_can_be_unlearned_without_harm(aged, monkeypatch):
    prune_model(aged, PruningRule(min_df=2, half_life=500), NEW)
    StoredModel(aged).unlearn([item(n, None, b"common old%d" % n) for n in (0, 1)], day=NEW)
    table = StoredModel(aged).whole().table

    assert table.class_count.tolist() == [2, 2]
    assert ((table.feature_count >= 0) & (table.feature_count <= table.class_count)).all()
    assert (table.document_frequency > 0).all()
    StoredModel(aged).unlearn([item(n, None, b"common old%d" % n) for n in (2, 4)], day=NEW)
    assert StoredModel(aged).classifier().lack is not None
    prune_model(aged, PruningRule(half_life=500), NEW + 500)
    assert StoredModel(aged).whole().table.class_count.tolist() == [1, 0]
    # A server judges before another process has fitted the model again.
    monkeypatch.setattr(store_model, "_APART", 0)
    served = StoredModel(aged, served=f"{aged}.served")
    served.unlearn([item(n, None, b"common old%d" % n) for n in (3, 5)], day=NEW)
    assert "knows no mail yet" in served.classifier().lack


def test_of_too_many_tokens_the_rarest_and_oldest_go(aged, monkeypatch):
    whole = StoredModel(aged).whole()
    n_tokens = len(whole.table.vocabulary)
    room = training._TOKEN_BYTES + 2 * training._CLASS_BYTES
    monkeypatch.setattr(training, "MAX_MODEL_BYTES", (n_tokens - 5) * room)
    StoredModel(aged).learn([item(30, "ham", b"common")], day=NEW)
    kept = StoredModel(aged).whole()

    assert len(kept.table.vocabulary) == n_tokens - 5
    assert words(aged) >= YOUNG
    assert len(kept.memory.last_seen) == n_tokens - 5
    sample = kept.memory.sample.documents
    assert sample.columns.max() < n_tokens - 5
    assert "common" in np.array(words_of(kept.table))[sample.one(0).tokens]


def test_prune_says_what_it_did(nbspam, trained):
    _, out, said = nbspam("prune", "--min-df", "99")
    assert [line.split()[0] for line in out.splitlines()] == ["tokens", "bytes"]
    assert said == f"nbspam: the file that was there is kept as {trained}~\n"
    facts = nbspam.json("prune")
    assert (facts["before"], facts["kept"]) == (facts["after"], None)


# ---- bounded models ----

MAIL = PRESETS["mail"]
NO_LEDGER = Bounds(ledger=False)


def write(path, given, bounds):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "MAX_TOKENS", 50)  # so that the limit is looked at often
        counted = count_items(given, MAIL, bounds=bounds)
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
    return trained(given, MAIL, day=9).table


# ---- tokens that were forgotten ----


@pytest.mark.parametrize("kind", ["forgetful", "unledgered"])
def test_a_model_and_its_text_say_what_it_does_not_hold(kind, tmp_path, request):
    path = request.getfixturevalue(kind)
    again = model_of_lines(model_lines(whole(path)), "x")

    assert (whole(path).table.loss is not None) == (kind == "forgetful")
    assert bytes_of(again, tmp_path / "again") == Path(path).read_bytes()


def test_the_bound_holds_for_readers_of_a_journal_and_after_learning_on_and_un_learning(forgetful):
    before, new = whole(forgetful).table.loss, Item("x", "ham", b"\n\nbrandnew\n")
    model = StoredModel(forgetful)
    model.learn([new], day=9)
    table = load_classifier(forgetful).table
    assert table.loss.of_each[words_of(table).index("brandnew")] == before.of_others

    model.learn(items(range(100, 200)), day=9)
    model.unlearn(items(range(30)), day=9)
    model.learn(items(range(30, 60), "ham"), day=9)
    true = [new, *items(range(30, 60), "ham"), *items(range(60, 200))]
    check_bound(whole(forgetful).table, table_of(true))


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
    out = nbspam.out("train", mails, "-m", model, "--max-tokens", "100", "-j", "1")
    assert "\nforgot tokens of up to " in out
    assert "\nlearned 100 tokens" in out
    assert "forgotten\ttokens of up to " in nbspam("info", "-m", model)[1]
    found = nbspam.json("info", "-m", model)["forgotten"]
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


def test_without_copies_only_the_ledger_differs_and_a_merge_has_none_and_says_so(
    unledgered, tmp_path, nbspam
):
    exact = whole(write(tmp_path / "exact", items(range(100)), Bounds()))
    model = whole(unledgered)

    assert np.array_equal(model.table.feature_count, exact.table.feature_count)
    assert np.array_equal(model.fit.correction, exact.fit.correction)
    assert (model.memory.has_ledger, exact.memory.has_ledger) == (False, True)
    other = write(tmp_path / "other", items(range(100, 150)), Bounds())
    status, _, err = nbspam("merge", other, unledgered, "-o", tmp_path / "both")

    assert status == 0
    assert "without a ledger" in err
    assert not whole(str(tmp_path / "both")).memory.has_ledger


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


# ---- a model that is replaced stays as MODEL~, if anything of it would be lost ----


MELONS = (ROOT / "corpora" / "watermelon-3.0.csv", "--target", "好瓜")


def kept(model):
    return model.with_name(model.name + "~")


@pytest.fixture
def other(tmp_path):
    """A folder of other mail than the model's."""
    folder = write_mails(tmp_path / "other", 24)
    for path in folder.rglob("*.eml"):
        path.write_bytes(path.read_bytes() + b"other\n")
    return folder


def test_a_model_of_other_mail_is_kept_whole_with_its_journal(nbspam, trained, other):
    assert nbspam("train", other)[0] == 0
    assert nbspam("update", "--spam", "-", stdin=SPAM + b"later\n")[0] == 0
    assert os.path.exists(journal_path(str(trained)))
    before = load(str(trained)).table
    status, out, err = nbspam("train", other)  # without the lesson of the journal

    assert (status, err) == (0, f"nbspam: the file that was there is kept as {kept(trained)}\n")
    assert out.startswith("read 48 messages")
    assert not os.path.exists(journal_path(str(trained)))
    old = load(str(kept(trained))).table
    assert old.class_count.tolist() == before.class_count.tolist() == [24, 25]
    assert not [each for each in findings(str(kept(trained))) if each.state == BAD]
    learns = ("update", "-m", kept(trained), "--ham", "-")
    assert nbspam(*learns, stdin=HAM + b"x")[1] == "learned 1\n"
    # The one that is kept next takes the place of both.
    trained.chmod(0o640)
    nbspam("train", "--spam", "-", "--ham", other / "ham", stdin=SPAM)
    assert load(str(kept(trained))).table.n_docs == 48
    assert not os.path.exists(journal_path(str(kept(trained))))
    assert kept(trained).stat().st_mode & 0o777 == 0o640


def test_only_a_model_of_which_training_again_would_lose_something_is_kept(
    nbspam, trained, folder
):
    assert nbspam("train", folder)[2] == ""
    (folder / "spam" / "9.eml").write_bytes(SPAM + b"9\n")
    assert nbspam("train", folder)[2] == ""
    nbspam("unlearn", folder / "spam" / "9.eml")
    nbspam("train", folder)
    assert not kept(trained).exists()

    (folder / "spam" / "9.eml").unlink()
    assert f"kept as {kept(trained)}" in nbspam("train", folder)[2]
    assert load(str(kept(trained))).table.n_docs == 5
    nbspam("relabel", "--to", "ham", folder / "spam" / "1.eml")
    nbspam("train", folder)
    assert load(str(kept(trained))).table.class_count.tolist() == [3, 1]
    kept(trained).unlink()
    nbspam("relabel", "--to", "spam", folder / "spam" / "1.eml")
    nbspam("train", folder)
    assert load(str(kept(trained))).table.class_count.tolist() == [2, 2]


@pytest.mark.parametrize(
    "change",
    [
        {"cutoffs": Cutoffs(0.9, 0.1)},
        {"settings": replace(PRESETS["mail"], min_df=2)},
        {"memory": None},
        {},
    ],
    ids=["tuned cutoffs", "other settings", "no ledger", "counts without messages"],
)
def test_choices_and_counts_that_training_again_would_lose_are_kept(
    nbspam, trained, folder, change
):
    if change:
        save_classifier(str(trained), replace(load(str(trained)), **change))
    else:
        counts = b".MSG_COUNT 4 5 20260101\npills 3 0 20260101\n"
        assert nbspam("import", "-", stdin=counts)[0] == 0
        kept(trained).unlink()
    before = load(str(trained)).table.n_docs
    nbspam("train", folder)

    assert load(str(kept(trained))).table.n_docs == before


def test_a_damaged_model_is_kept_and_what_is_no_model_is_not_replaced(nbspam, trained, folder):
    damaged = trained.read_bytes()[:-1]
    trained.write_bytes(damaged)
    nbspam("train", folder)
    assert kept(trained).read_bytes() == damaged
    (mailbox := folder.parent / "inbox").write_text("From me\n")
    assert complains(nbspam("train", folder, "-m", mailbox), 1, "the file there is not a model")
    assert sorted(mailbox.parent.glob("inbox*")) == [mailbox]  # a lock would keep out mail


def test_json_says_where_it_is(nbspam, trained, folder, other, tmp_path):
    def said(*command):
        return nbspam.json(*command)["kept"]

    assert said("train", folder) is None
    assert said("train", other) == str(kept(trained))
    assert said("train", folder, "--unlabelled", other) == str(kept(trained))
    nbspam("train", folder)
    (tmp_path / "export").write_text(nbspam("export")[1])
    nbspam("train", other)
    assert said("import", tmp_path / "export") == str(kept(trained))
    nbspam("train", other, "-m", tmp_path / "b")
    assert said("merge", trained, tmp_path / "b", "-o", trained) is None
    assert said("merge", trained, tmp_path / "b", "-o", tmp_path / "b") is None


def test_a_table_replaces_the_model_of_a_mail_filter_only_by_name(nbspam, trained, folder):
    before = trained.read_bytes()

    refused = nbspam("table", "train", *MELONS)
    assert complains(refused, 1, str(trained), "of a mail filter", "-m FILE")
    assert trained.read_bytes() == before
    assert nbspam("table", "train", *MELONS, "-m", trained)[0] == 0
    assert kept(trained).read_bytes() == before
    # The reverse harms nobody, and is said; nor does a model of other classes matter.
    assert "kept as" in nbspam("train", folder)[2]
    assert trained.read_bytes() == before
    (folder / "spam").rename(folder / "work")
    nbspam("train", folder)
    assert "kept as" in nbspam("table", "train", *MELONS)[2]
